//===- Commands.h - what `meshwright checkpoint` can do -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_COMMANDS_H
#define MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_COMMANDS_H

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::checkpoint {

/// The command line of a subcommand.
struct Arguments {
  std::vector<std::string> paths;
  std::map<std::string, std::vector<std::string>> flags; ///< with the values of each use

  bool has(const std::string &name) const { return flags.count(name) != 0; }
  /// The value of a flag that is given once, or `otherwise`.
  std::string value(const std::string &name, const std::string &otherwise = "") const;
  /// The values of a flag that may be repeated.
  std::vector<std::string> values(const std::string &name) const;
};

// Each writes what it finds to `os`, and returns whether that is a difference or damage. All of
// them throw an Error where they cannot do what is asked.

bool inspect(const Arguments &arguments, std::ostream &os);
bool verify(const Arguments &arguments, std::ostream &os);
bool diff(const Arguments &arguments, std::ostream &os);
bool convert(const Arguments &arguments, std::ostream &os);
bool merge(const Arguments &arguments, std::ostream &os);
bool surgery(const Arguments &arguments, std::ostream &os);

} // namespace meshwright::checkpoint

#endif // MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_COMMANDS_H
