//===- Kernels.cpp - what each kernel of a step moves and computes ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Tables.h"

#include "meshwright/Cost/Device.h"
#include "meshwright/Cost/KernelRows.h"
#include "meshwright/KernelTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

std::vector<plan::Kernel> report::kernelsOf(ModuleOp program, cost::FlopCounter &flops) {
  std::vector<plan::Kernel> list;
  cost::KernelRows rows(program, flops);
  for (const cost::KernelRow &row : rows.list()) {
    plan::Kernel &entry = list.emplace_back();
    entry.op = row.op;
    entry.kind = row.kind;
    entry.times = int64_t(row.times + 0.5);
    entry.readBytes = row.moved.read;
    entry.writtenBytes = row.moved.written;
    entry.flops = row.flops;
  }
  return list;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// What the assembler said of a row's kernel for `arch`, if it was asked.
static const plan::Assembled *assembledFor(const plan::Kernel &row, llvm::StringRef arch) {
  if (row.assembled)
    for (const plan::Assembled &entry : *row.assembled)
      if (entry.arch == arch)
        return &entry;
  return nullptr;
}

namespace {
struct Line {
  const plan::Kernel *row;
  double times, bytes, floor, expected;
  MeasuredKernel measured;

  double rate(double amount) const { return measured.runs > 0 ? amount / measured.each() : 0; }
};

/// The table of one program.
class Table {
public:
  Table(const plan::Plan &plan, size_t number, const KernelTimes &show);

  void print(llvm::raw_ostream &os) const;
  /// Rows that were faster than the ceilings allow, in words.
  std::vector<std::string> impossible() const;

private:
  void printHeader(llvm::raw_ostream &os) const;
  void printLine(const Line &line, llvm::raw_ostream &os) const;
  void printNames(llvm::StringRef name, llvm::StringRef kind, llvm::raw_ostream &os) const {
    os << "  " << llvm::left_justify(name, nameWidth) << " " << llvm::left_justify(kind, kindWidth)
       << " ";
  }

  const plan::Program &program;
  const Ceilings &ceilings;
  const cost::Device *device;
  bool isMeasured;
  std::vector<Line> lines;
  double bytes = 0, flops = 0, floor = 0, expected = 0, launches = 0, took = 0;
  std::set<llvm::StringRef> archs;
  size_t nameWidth = 23, kindWidth = 31; // and a space
};
} // namespace

Table::Table(const plan::Plan &plan, size_t number, const KernelTimes &show)
    : program(plan.programs[number]), ceilings(show.ceilings), device(show.device),
      isMeasured(show.measured) {
  for (auto [index, row] : llvm::enumerate(program.kernels)) {
    Line line{&row, double(row.times), double(row.readBytes) + double(row.writtenBytes), 0, 0, {}};
    if (ceilings.known())
      line.floor = std::max(line.bytes / ceilings.copyRate, row.flops / ceilings.matmulRate);
    if (device)
      line.expected = report::expectedSeconds(plan, row, *device);
    if (isMeasured)
      line.measured = (*show.measured)[number][index];
    bytes += line.times * line.bytes;
    flops += line.times * row.flops;
    floor += line.times * line.floor;
    expected += line.times * line.expected;
    launches += line.times * (device ? device->launch : 0);
    took += line.times * line.measured.each();
    lines.push_back(line);
    nameWidth = std::max(nameWidth, row.op.size());
    kindWidth = std::max(kindWidth, row.kind.size());
    if (row.assembled)
      for (const plan::Assembled &assembled : *row.assembled)
        archs.insert(assembled.arch);
  }
  // What takes most of a step first.
  llvm::stable_sort(lines, [&](const Line &a, const Line &b) {
    auto weight = [&](const Line &line) {
      return line.times * (isMeasured         ? line.measured.each()
                           : device           ? line.expected
                           : ceilings.known() ? line.floor
                                              : line.bytes);
    };
    return weight(a) > weight(b);
  });
}

void Table::printHeader(llvm::raw_ostream &os) const {
  os << program.name << ", kernels of a step on one rank\n";
  printNames("operation", "template or size", os);
  os << llvm::formatv("{0,7}{1,18}{2,18}{3,22}", "times", "reads", "writes", "FLOPs each");
  if (ceilings.known())
    os << llvm::formatv("{0,16}{1,12}{2,8}", "floor each, us", "a step, ms", "share");
  if (device)
    os << llvm::formatv("{0,19}{1,12}", "expected each, us", "a step, ms");
  if (isMeasured)
    os << llvm::formatv("{0,19}{1,12}{2,8}{3,10}", "measured each, us", "a step, ms", "GB/s",
                        "TFLOP/s");
  if (isMeasured && ceilings.known())
    os << llvm::formatv("{0,18}", "floor / measured");
  if (isMeasured && device)
    os << llvm::formatv("{0,21}", "expected / measured");
  for (llvm::StringRef arch : archs)
    os << llvm::formatv("{0,18}{1,9}", (arch + " registers").str(), "spills");
  os << "\n";
}

void Table::printLine(const Line &line, llvm::raw_ostream &os) const {
  printNames(line.row->op, line.row->kind, os);
  os << llvm::formatv("{0,7}{1,18:N0}{2,18:N0}{3,22}", line.row->times, line.row->readBytes,
                      line.row->writtenBytes, grouped(line.row->flops));
  if (ceilings.known())
    os << llvm::formatv("{0,16:F2}{1,12:F3}{2,8:P1}", line.floor * 1e6,
                        line.times * line.floor * 1e3, line.times * line.floor / floor);
  if (device)
    os << llvm::formatv("{0,19:F2}{1,12:F3}", line.expected * 1e6, line.times * line.expected * 1e3);
  if (isMeasured)
    os << llvm::formatv("{0,19:F2}{1,12:F3}{2,8:F0}{3,10:F1}", line.measured.each() * 1e6,
                        line.times * line.measured.each() * 1e3, line.rate(line.bytes) / 1e9,
                        line.rate(line.row->flops) / 1e12);
  if (isMeasured && ceilings.known())
    os << llvm::formatv("{0,18:F2}", line.rate(line.floor));
  if (isMeasured && device)
    os << llvm::formatv("{0,21:F2}", line.rate(line.expected));
  for (llvm::StringRef arch : archs)
    if (const plan::Assembled *numbers = assembledFor(*line.row, arch))
      os << llvm::formatv("{0,18}{1,9}", numbers->registers, numbers->spilledBytes);
    else // not a generated kernel
      os << llvm::formatv("{0,18}{1,9}", "", "");
  os << "\n";
}

void Table::print(llvm::raw_ostream &os) const {
  printHeader(os);
  for (const Line &line : lines)
    printLine(line, os);
  os << llvm::formatv("  in all {0} bytes and {1} FLOPs", grouped(bytes), grouped(flops));
  if (ceilings.known())
    os << llvm::formatv(", no faster than {0:F3} ms with the rates given: {1:E2} bytes/s, {2:E2} FLOP/s",
                        floor * 1e3, ceilings.copyRate, ceilings.matmulRate);
  if (device)
    os << llvm::formatv("; on {0} expected {1:F3} ms and {2:F3} ms of launches", device->description,
                        expected * 1e3, launches * 1e3);
  if (isMeasured)
    os << llvm::formatv("; measured {0:F3} ms", took * 1e3);
  os << "\n";
}

std::vector<std::string> Table::impossible() const {
  // Clocks are read to a microsecond or so, and rates are medians.
  static constexpr double tolerance = 0.05;
  std::vector<std::string> rows;
  for (const Line &line : lines)
    if (line.measured.runs > 0 && line.measured.each() * (1 + tolerance) < line.floor)
      rows.push_back(llvm::formatv("{0}{1}{2} took {3:F2} us, floor {4:F2}", line.row->op,
                                   line.row->kind.empty() ? "" : " ", line.row->kind,
                                   line.measured.each() * 1e6, line.floor * 1e6));
  return rows;
}

llvm::Error meshwright::printKernels(const plan::Plan &plan, const KernelTimes &times,
                                     llvm::raw_ostream &os) {
  std::vector<std::string> impossible;
  for (size_t number = 0; number < plan.programs.size(); ++number) {
    Table table(plan, number, times);
    table.print(os);
    llvm::append_range(impossible, table.impossible());
  }
  if (impossible.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      "measured more than 5% faster than the rates given allow, so either the rates are too low or the table "
      "is wrong: " + llvm::join(impossible, "; "));
}
