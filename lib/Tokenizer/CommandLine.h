//===- CommandLine.h - flags of the commands of tokenizers -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_COMMANDLINE_H
#define MESHWRIGHT_TOKENIZER_COMMANDLINE_H

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace meshwright::tokenizer {

/// A whole number of a flag and what it may be.
struct NumberFlag {
  int64_t *value;
  int64_t least, most;
};

/// Where the value of each flag goes, by its name with dashes.
using FlagTable = std::map<std::string, std::variant<std::string *, bool *, NumberFlag>>;

/// Reads the flags of `args`; what is none is appended to `rest`. An Error, with `usage` behind it,
/// names a flag that is unknown, is given again or lacks its value.
void parseFlags(const std::vector<std::string> &args, const FlagTable &flags,
                std::vector<std::string> &rest, const std::string &usage);

/// How many threads a command has where none are said.
int64_t defaultThreads();

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_COMMANDLINE_H
