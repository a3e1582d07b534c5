//===- TextTable.cpp - columns on a terminal ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TextTable.h"
#include "Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace meshwright::report {

TextTable::TextTable(std::vector<std::string> titles) {
  for (std::string &title : titles) {
    numeric.push_back(StringRef(title).starts_with("#"));
    title = StringRef(title).ltrim('#').str();
  }
  rows.push_back(std::move(titles));
}

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(numeric.size());
  rows.push_back(std::move(cells));
}

void TextTable::print(raw_ostream &os) const {
  std::vector<size_t> widths(numeric.size());
  for (auto [r, cells] : enumerate(rows))
    for (auto [c, cell] : enumerate(cells))
      widths[c] = std::max(widths[c], cell.size() + (r && !c ? 2 : 0));
  for (auto [r, cells] : enumerate(rows)) {
    std::string line;
    for (auto [c, cell] : enumerate(cells)) {
      std::string text = r && !c ? "  " + cell : cell;
      std::string padding(widths[c] - text.size(), ' ');
      line += (c ? "  " : "") + (numeric[c] ? padding + text : text + padding);
    }
    os << StringRef(line).rtrim() << "\n";
  }
}

/// Three digits of `value` with the largest of the units, `base` apart, that it reaches.
static std::string shortened(double value, double base, ArrayRef<StringRef> units) {
  size_t unit = 0;
  // What would be rounded up to the next unit is written in it.
  for (; value >= base - 0.5 && unit + 1 < units.size(); ++unit)
    value /= base;
  int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return formatv("{0} {1}", format("%.*f", decimals, value), units[unit]).str();
}

std::string sizeText(double bytes) {
  return shortened(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string bytesText(int64_t bytes) {
  std::string exact = formatv("{0:N0} bytes", bytes).str();
  return bytes < 1024 ? exact : exact + " (" + sizeText(double(bytes)) + ")";
}

std::string countText(double count) {
  std::string exact = grouped(count);
  return count < 1000
             ? exact
             : exact + " (" + shortened(count, 1000, {"", "k", "M", "G", "T", "P", "E"}) + ")";
}

} // namespace meshwright::report
