//===- PageSummary.cpp - the first screen of a report ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Page.h"
#include "Palette.h"
#include "Tables.h"
#include "TextTable.h"
#include "meshwright/StepTime.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <memory>

using namespace llvm;

namespace meshwright::report {

static void writeTile(StringRef title, StringRef large, ArrayRef<std::string> lines, raw_ostream &os,
                      StringRef meter = "") {
  os << "<section class=tile><h2>" << title << "</h2><b>" << large << "</b>" << meter;
  for (const std::string &line : lines)
    os << "<p>" << line << "</p>";
  os << "</section>\n";
}

/// A number below 1000 with one of the units, each a thousand times the one before.
static std::string scaled(double value, ArrayRef<StringLiteral> units) {
  unsigned i = 0;
  for (; value >= 1000 && i + 1 < units.size(); ++i)
    value /= 1000;
  return formatv("{0:F1} {1}", value, units[i]).str();
}

std::string workText(double flops) {
  static constexpr StringLiteral units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP", "YFLOP"};
  return scaled(flops, units);
}

/// "671.0 billion parameters, of which a token uses 37.5 billion".
static std::string parametersText(const plan::Plan &plan) {
  static constexpr StringLiteral units[] = {"", "thousand", "million", "billion", "trillion"};
  Parameters parameters = parametersOf(plan);
  auto text = [](int64_t count) { return count < 1000 ? number(count) : scaled(double(count), units); };
  return titled(text(parameters.all), number(parameters.all)) + " parameters" +
         (parameters.all == parameters.used ? "" : ", of which a token uses " + titled(text(parameters.used), number(parameters.used)));
}

/// The class of the palette that shows a category of memory.
static StringRef styleOf(StringRef category) {
  return category == "input" || category == "output" ? StringRef("other") : category;
}

static void writeMemoryTiles(const CompiledPlan &plan, raw_ostream &os) {
  double share = plan.limit > 0 ? double(plan.deviceBytes) / plan.limit : 0;
  std::vector<std::string> lines;
  std::string meter;
  if (plan.limit > 0) {
    meter = formatv("<div class=meter role=img aria-label=\"{0:P0} of the limit\"><i class={1} style=\"width:{2:F1}%\"></i></div>",
                    share, share > 1 ? "over" : "used", 100 * std::min(share, 1.0));
    double free = plan.limit - double(plan.deviceBytes);
    lines.push_back(("of " + sizeText(plan.limit) + " (" + escaped(plan.limitSource) + "), " +
                     (free < 0 ? sizeText(-free) + " too much" : sizeText(free) + " free")));
  }
  lines.push_back(plan.deviceBytes == plan.arenaBytes ? std::string("all of it for tensors")
                                                      : sizeText(double(plan.arenaBytes)) + " of tensors, " +
                                                            sizeText(double(plan.deviceBytes - plan.arenaBytes)) + " for driver and libraries");
  writeTile("Peak memory of a rank", sized(double(plan.deviceBytes)), lines, os, meter);

  std::vector<plan::MemoryLine> rows(plan.memory.begin(), plan.memory.end());
  llvm::stable_sort(rows, [](auto &a, auto &b) { return a.bytes > b.bytes; });
  double total = 0;
  for (const plan::MemoryLine &row : rows)
    total += double(row.bytes);
  if (rows.empty() || total == 0)
    return;
  std::string bar = "<div class=meter role=img aria-label=\"shares of categories\">", text;
  for (const plan::MemoryLine &row : rows) {
    bar += formatv("<i class={0} style=\"width:{1:F1}%\" title=\"{2} {3}\"></i>", styleOf(row.category), 100 * double(row.bytes) / total,
                   row.category, sizeText(double(row.bytes)));
    if (double(row.bytes) >= 0.005 * total)
      text += (text.empty() ? "" : ", ") + row.category + " " + sizeText(double(row.bytes));
  }
  lines = {text};
  auto peak = find_if(plan.programs, [&](const plan::Program &p) { return p.peak && p.arenaBytes == plan.arenaBytes; });
  if (peak != plan.programs.end()) {
    std::string where = plan.programs.size() > 1 ? peak->name + ", " : "";
    lines.push_back("largest in " + escaped(where) + "@" + escaped(peak->peak->program) +
                    (peak->peak->task.empty() ? "" : ", task " + escaped(peak->peak->task)));
  }
  writeTile("What fills it", formatv("{0} {1:P0}", rows.front().category, double(rows.front().bytes) / total).str(), lines, os,
            bar + "</div>");
}

static void writeTimeTile(const CompiledPlan &plan, raw_ostream &os) {
  if (!plan.expected) {
    writeTile("Step time", "not known", {"<code>--cluster NAME</code> adds step time, MFU and what the step waits for"}, os);
    return;
  }
  const ExpectedStep &step = *plan.expected;
  auto most = llvm::max_element(step.parts, [](auto &a, auto &b) { return a.seconds < b.seconds; });
  writeTile("Step time on " + escaped(step.cluster), timeText(step.seconds),
            {formatv("MFU {0:P1}, {1:N0} tokens a second and device", step.mfu, std::llround(step.tokensPerDevice)),
             formatv("longest: {0}, {1:P0} of the step", escaped(most->what), most->seconds / step.seconds)},
            os);
}

static void writeWorkTiles(const CompiledPlan &plan, raw_ostream &os) {
  std::map<std::string, int64_t> byAxes;
  int64_t sent = 0;
  for (const Traffic &row : trafficOf(plan))
    if (row.program == "step") {
      byAxes[row.axes] += row.bytesOfRank;
      sent += row.bytesOfRank;
    }
  std::vector<std::string> lines;
  for (auto &[axes, bytes] : byAxes)
    lines.push_back("along " + escaped(axes) + " " + sizeText(double(bytes)));
  if (byAxes.empty())
    lines.push_back("ranks send each other nothing");
  writeTile("A rank sends in a step", sizeText(double(sent)), {join(lines, ", ")}, os);
  std::string again = plan.recomputedFlops > 0 ? formatv("{0:P1} of it recomputed", plan.recomputedFlops / plan.flops).str()
                                               : "nothing is recomputed";
  writeTile("Work of a step", workText(plan.flops),
            {workText(plan.flops / double(ranksOf(plan))) + " a rank, " + again}, os);
}

void writeSummary(const CompiledPlan &plan, raw_ostream &os) {
  os << "<header><h1>" << escaped(plan.model) << "</h1>\n<p class=sub>" << parametersText(plan) << "; " << escaped(meshText(plan)) << (ranksOf(plan) > 1 ? formatv(" on {0:N0} ranks", ranksOf(plan)).str() : "")
     << formatv("; {0:N0} sequences of {1:N0} tokens a step in {2:N0} {3}; {4}, {5}, {6}", plan.batch, plan.sequence, plan.microbatches,
                plan.microbatches == 1 ? "microbatch" : "microbatches", escaped(plan.target), escaped(precisionText(plan)),
                escaped(plan.optimizer))
     << "</p></header>\n<div class=tiles>\n";
  writeMemoryTiles(plan, os);
  writeTimeTile(plan, os);
  writeWorkTiles(plan, os);
  os << "</div>\n";
}

//===--- the mesh -------------------------------------------------------------===//

/// Ranks of the first positions along the three inner axes: cells in rows, rows in blocks. What an axis has more is told by
/// its count alone.
static void drawMesh(ArrayRef<plan::MeshAxis> axes, raw_ostream &os) {
  constexpr int cellWidth = 44, cellHeight = 24, mostCells = 8, mostRows = 4, mostBlocks = 4, gap = 14, top = 20;
  auto inner = [&](size_t i) { return i < axes.size() ? axes[axes.size() - 1 - i] : plan::MeshAxis{"", 1}; };
  plan::MeshAxis cells = inner(0), rows = inner(1), blocks = inner(2);
  auto shown = [](int64_t size, int most) { return int(std::min<int64_t>(size, most)); };
  int columns = shown(cells.size, mostCells), lines = shown(rows.size, mostRows), groups = shown(blocks.size, mostBlocks);
  int blockWidth = columns * cellWidth, left = rows.name.empty() ? 4 : 10 + 8 * int(rows.name.size() + 4);
  int width = left + groups * (blockWidth + gap) + 40, height = top + lines * cellHeight + 28;
  os << formatv("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" role=\"img\" class=\"mesh\" aria-label=\"ranks by their place in the mesh\">\n"
                "<style>\n{2}</style>\n", width, height, pictureStyle);
  // Where an axis has more than is drawn, the last position stands for all others.
  auto at = [](int i, int drawn, int64_t size) { return i == drawn - 1 ? size - 1 : int64_t(i); };
  auto label = [](StringRef axis, int i, int drawn, int64_t size) {
    if (i == drawn - 2 && size > drawn)
      return std::string("…");
    return i == drawn - 1 && size > drawn ? formatv("{0} .. {1}", escaped(axis), size - 1).str() : formatv("{0} {1}", escaped(axis), i).str();
  };
  for (int block = 0; block < groups; ++block) {
    int x = left + block * (blockWidth + gap);
    if (!blocks.name.empty())
      os << formatv("<text x=\"{0}\" y=\"13\">{1}</text>\n", x, label(blocks.name, block, groups, blocks.size));
    for (int row = 0; row < lines; ++row) {
      int y = top + row * cellHeight;
      if (block == 0 && !rows.name.empty())
        os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\n", left - 6, y + 16, label(rows.name, row, lines, rows.size));
      for (int cell = 0; cell < columns; ++cell) {
        int64_t rank = (at(block, groups, blocks.size) * rows.size + at(row, lines, rows.size)) * cells.size + at(cell, columns, cells.size);
        bool isGap = (cell == columns - 2 && cells.size > columns) || (row == lines - 2 && rows.size > lines) ||
                     (block == groups - 2 && blocks.size > groups);
        os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\"/><text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>\n",
                      x + cell * cellWidth, y, cellWidth, cellHeight, x + cell * cellWidth + cellWidth / 2, y + 16,
                      isGap ? std::string("…") : std::to_string(rank));
      }
    }
  }
  os << formatv("<text x=\"{0}\" y=\"{1}\">{2} →</text>\n</svg>\n", left, height - 8, escaped(cells.name));
}

void writeMesh(const CompiledPlan &plan, raw_ostream &os) {
  std::vector<plan::MeshAxis> axes;
  for (const plan::MeshAxis &axis : plan.mesh)
    if (axis.size > 1)
      axes.push_back(axis);
  if (axes.empty())
    return;
  os << "<h2 id=mesh>Mesh and placement</h2>\n<div class=wide>\n";
  drawMesh(axes, os);
  os << "</div>\n";
  int64_t outside = 1;
  for (const plan::MeshAxis &axis : ArrayRef(axes).drop_back(std::min<size_t>(3, axes.size())))
    outside *= axis.size;
  if (outside > 1)
    os << formatv("<p class=note>The picture is the first of {0:N0} groups that are alike.</p>\n", outside);
  std::map<std::string, int64_t> sent;
  for (const Traffic &row : trafficOf(plan))
    if (row.program == "step")
      sent[row.axes] += row.bytesOfRank;
  os << "<div class=axes>";
  std::vector<StringRef> columns = {"axis", "#size", "ranks of its first group"};
  if (plan.expected)
    columns.push_back("goes over");
  columns.push_back("#a rank sends along it alone");
  auto table = std::make_unique<Table>(os, columns);
  int64_t stride = ranksOf(plan);
  for (const plan::MeshAxis &axis : axes) {
    stride /= axis.size;
    std::vector<std::string> first;
    for (int64_t i = 0; i < std::min<int64_t>(axis.size, 4); ++i)
      first.push_back(number(i * stride));
    if (axis.size > 4)
      llvm::append_range(first, std::initializer_list<std::string>{"…", number((axis.size - 1) * stride)});
    std::vector<std::string> cells = {escaped(axis.name), number(axis.size), "<span>" + join(first, ", ") + "</span>"};
    if (plan.expected) {
      auto links = plan.expected->links.find(axis.name);
      cells.push_back(links == plan.expected->links.end() ? "" : escaped(links->second));
    }
    auto bytes = sent.find(axis.name);
    cells.push_back(bytes == sent.end() ? "" : sized(double(bytes->second)));
    table->htmlRow(cells);
  }
  table.reset(); // It ends inside of what is around it.
  os << "</div>";
}

} // namespace meshwright::report
