//===- Settings.h - settings files of other training systems ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// TOML, JSON, YAML and command lines become one list of keys and values, in the order
// of the file, which the tables of each system read.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CONVERT_SETTINGS_H
#define MESHWRIGHT_LIB_PIPELINE_CONVERT_SETTINGS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace meshwright::convert {

/// A value, by the path of its key: "optimizer.params.lr", or "lr" for `--lr` of a command line.
struct Setting {
  enum Kind { Null, Switch, Number, Text, List };

  std::string key;
  Kind kind = Null;
  std::string text; ///< as written, without quotes; of a list its items between commas
  unsigned line = 0;
  std::vector<std::string> items = {}; ///< of a list
  /// The line of an earlier, other value of the same key; 0: there is none.
  unsigned otherLine = 0;

  /// Whether the value switches off what the key is about.
  bool isOff() const;
};

using Settings = std::vector<Setting>;

/// Each reads the `text` of the file `path`, by which errors name it.
llvm::Expected<Settings> readToml(llvm::StringRef text, llvm::StringRef path);
llvm::Expected<Settings> readJson(llvm::StringRef text, llvm::StringRef path);
llvm::Expected<Settings> readYaml(llvm::StringRef text, llvm::StringRef path);
/// The arguments `--key value` of a shell script or a plain list of them. Variables that the script
/// sets are replaced by their values; conditions are not evaluated.
llvm::Expected<Settings> readArguments(llvm::StringRef text, llvm::StringRef path);

/// `text` as a value of the kind that it looks like; `quoted` text is no number.
Setting settingOf(std::string key, llvm::StringRef text, unsigned line, bool quoted = false);
/// A list of such values.
Setting listOf(std::string key, std::vector<std::string> items, unsigned line);

/// `settings` with each key once: the last of several values counts, and remembers where another one is.
Settings distinct(Settings settings);

} // namespace meshwright::convert

#endif // MESHWRIGHT_LIB_PIPELINE_CONVERT_SETTINGS_H
