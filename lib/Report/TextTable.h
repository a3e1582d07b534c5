//===- TextTable.h - columns on a terminal -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_TEXTTABLE_H
#define MESHWRIGHT_LIB_REPORT_TEXTTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace meshwright::report {

/// Rows whose columns are as wide as what they hold, two spaces apart. Columns whose title
/// begins with '#' hold numbers, which end together.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> titles);
  /// Cells that are left out are empty.
  void row(std::vector<std::string> cells);
  /// The titles, and the rows two spaces further in.
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<bool> numeric;
  std::vector<std::vector<std::string>> rows; ///< the first are the titles
};

/// "2.64 GiB".
std::string sizeText(double bytes);
/// "2,834,418,432 bytes (2.64 GiB)"; without the second where it says no more.
std::string bytesText(int64_t bytes);
/// "3,173,618,514,062 (3.17 T)"; of numbers that may exceed 2^63.
std::string countText(double count);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_TEXTTABLE_H
