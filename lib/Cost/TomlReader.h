//===- TomlReader.h - reads tables of TOML, with errors for people ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_COST_TOMLREADER_H
#define MESHWRIGHT_LIB_COST_TOMLREADER_H

#include "meshwright/Cost/Device.h"
#include "meshwright/Toml.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <vector>
namespace meshwright::cost {

/// Reads values of tables, and keeps the first error, which names file, line and key.
class TomlReader {
public:
  explicit TomlReader(llvm::StringRef file) : file(file) {}

  /// Parses `text`, and lets `read` read it.
  llvm::Error parse(llvm::StringRef text, llvm::function_ref<void(const toml::table &)> read);

  void fail(const toml::node &at, const llvm::Twine &message);
  bool failed() const { return !error.empty(); }

  /// Refuses what the table has beside `keys`.
  void expectOnly(const toml::table &table, std::initializer_list<llvm::StringRef> keys);
  /// A key that must be there is refused where it is not.
  const toml::node *find(const toml::table &table, llvm::StringRef key, bool mustBe);
  std::string text(const toml::table &table, llvm::StringRef key, bool mustBe = true);
  /// A list of texts; empty where there is none.
  std::vector<std::string> texts(const toml::table &table, llvm::StringRef key);
  /// True or false; false where there is none.
  bool flag(const toml::table &table, llvm::StringRef key);
  /// A number that is not negative; 0 where there is none.
  double number(const toml::table &table, llvm::StringRef key, bool mustBe = true);
  /// A whole number from 1 on; 0 where there is none.
  int64_t count(const toml::table &table, llvm::StringRef key, bool mustBe);
  /// A positive number, or [[size, number], ...] by ascending size.
  std::optional<Rate> rate(const toml::table &table, llvm::StringRef key, bool mustBe = false);
  /// A table of rates by type, all of which must be there if it is to be `complete`.
  void rates(const toml::table &table, llvm::StringRef key, RatesByType &rates,
             bool complete = false);
  std::vector<const toml::table *> tables(const toml::table &table, llvm::StringRef key,
                                          bool mustBe);

private:
  llvm::StringRef file;
  std::string error;
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_LIB_COST_TOMLREADER_H
