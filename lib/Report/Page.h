//===- Page.h - the plan as a page ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_PAGE_H
#define MESHWRIGHT_LIB_REPORT_PAGE_H

#include "meshwright/Report.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace meshwright::report {

/// A picture with what belongs to it.
struct Section {
  std::string id, title, html;
};

/// A page that needs no other file.
void writePage(const CompiledPlan &plan, llvm::ArrayRef<Section> sections, llvm::raw_ostream &os);

/// Its first screen: what the plan is of, whether it fits, what fills memory, how long a step takes.
void writeSummary(const CompiledPlan &plan, llvm::raw_ostream &os);
/// The axes of the mesh, and which ranks are along each.
void writeMesh(const CompiledPlan &plan, llvm::raw_ostream &os);

/// What an HTML table shows: columns that begin with '#' hold numbers.
class Table {
public:
  Table(llvm::raw_ostream &os, llvm::ArrayRef<llvm::StringRef> columns);
  ~Table() { os << "</table></div>\n"; }
  /// The last cell ends with `html`.
  void row(llvm::ArrayRef<std::string> cells, llvm::StringRef html = "");
  /// A row whose cells are HTML.
  void htmlRow(llvm::ArrayRef<std::string> cells);

private:
  llvm::raw_ostream &os;
};

std::string escaped(llvm::StringRef text);
/// Text for people, which shows what it is exactly where the pointer rests on it.
std::string titled(const llvm::Twine &text, const llvm::Twine &exact);
/// A size of memory or of messages, with its bytes as `titled`.
std::string sized(double bytes);
/// "24.7 PFLOP".
std::string workText(double flops);
/// With commas between thousands.
std::string number(int64_t value);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_PAGE_H
