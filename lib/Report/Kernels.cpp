//===- Kernels.cpp - what each kernel of a step moves and computes ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Tables.h"

#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Train/Train.h"
#include "meshwright/Cost/MovedBytes.h"
#include "meshwright/Report.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

namespace {
struct Row {
  plan::Kernel kernel;
  double times = 0;
};

class Collector {
public:
  explicit Collector(cost::FlopCounter &flops) : flops(flops) {}
  void walk(Block &block);
  std::vector<plan::Kernel> take();

private:
  void add(Operation *op, double times);

  cost::FlopCounter &flops;
  SymbolTableCollection symbols;
  llvm::MapVector<std::string, Row, std::map<std::string, unsigned>> rows;
};
} // namespace

void Collector::add(Operation *op, double times) {
  plan::Kernel row;
  cost::MovedBytes moved = cost::movedBy(op, symbols);
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr());
    row.op = launch.getKernel().str();
    SmallVector<StringRef> templates;
    if (auto list = kernel->getAttrOfType<ArrayAttr>(exec::templateAttr))
      for (Attribute name : list)
        if (!llvm::is_contained(templates, cast<StringAttr>(name).getValue()))
          templates.push_back(cast<StringAttr>(name).getValue());
    row.kind = llvm::join(templates, ", ");
  } else {
    row.op = op->getName().stripDialect().str();
    if (auto product = dyn_cast<exec::MatmulOp>(op))
      row.kind = llvm::formatv("{0}x{1}x{2}{3}{4}", product.getM(), product.getN(), product.getK(),
                               product.getBatch() > 1 ? " x " : "",
                               product.getBatch() > 1 ? std::to_string(product.getBatch()) : "");
    llvm::TypeSwitch<Operation *>(op).Case<exec::GroupedMatmulOp, exec::GroupedMatmulGradOp>(
        [&](auto product) {
          exec::ProductShape shape = product.getShape();
          row.kind = llvm::formatv("{0}x{1}x{2}, {3} experts", shape.m, shape.n, shape.k,
                                   product.getGroups().experts);
        });
    row.flops = flops.of(op);
  }
  if (moved.read + moved.written == 0)
    return;
  row.readBytes = moved.read;
  row.writtenBytes = moved.written;
  // Products of one size may still differ in their types, and attention of parts in what is visible.
  std::string key = llvm::formatv("{0} {1} {2} {3} {4}", row.op, row.kind, row.readBytes,
                                  row.writtenBytes, row.flops);
  rows.insert({key, Row{row}}).first->second.times += times;
}

void Collector::walk(Block &block) {
  cost::forEachRun(block, cost::Rounds::Expected, symbols, [&](Operation *op, double runs) {
    if (!isa<dist::CollectiveOpInterface>(op))
      add(op, runs);
  });
}

std::vector<plan::Kernel> Collector::take() {
  std::vector<plan::Kernel> list;
  for (auto &[key, row] : rows) {
    row.kernel.times = int64_t(row.times + 0.5);
    list.push_back(row.kernel);
  }
  return list;
}

std::vector<plan::Kernel> report::kernelsOf(ModuleOp program, cost::FlopCounter &flops) {
  Collector collector(flops);
  for (auto entry : program.getOps<exec::ProgramOp>())
    if (entry.getSymName() == "step")
      collector.walk(entry.getBlock());
  return collector.take();
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

void meshwright::printKernels(const plan::Plan &plan, const Ceilings &ceilings,
                              llvm::raw_ostream &os) {
  struct Line {
    const plan::Kernel *row;
    double times, bytes, floor;
  };
  for (const plan::Program &program : plan.programs) {
    std::vector<Line> lines;
    double bytes = 0, flops = 0, floor = 0;
    std::set<llvm::StringRef> archs;
    size_t nameWidth = 23, kindWidth = 31; // and a space
    for (const plan::Kernel &row : program.kernels) {
      Line line{&row, double(row.times), double(row.readBytes) + double(row.writtenBytes), 0};
      if (ceilings.known())
        line.floor = std::max(line.bytes / ceilings.copyRate, row.flops / ceilings.matmulRate);
      bytes += line.times * line.bytes;
      flops += line.times * row.flops;
      floor += line.times * line.floor;
      lines.push_back(line);
      nameWidth = std::max(nameWidth, row.op.size());
      kindWidth = std::max(kindWidth, row.kind.size());
      if (row.assembled)
        for (const plan::Assembled &assembled : *row.assembled)
          archs.insert(assembled.arch);
    }
    // What takes most of a step first.
    auto weight = [&](const Line &line) {
      return line.times * (ceilings.known() ? line.floor : line.bytes);
    };
    llvm::stable_sort(lines, [&](const Line &a, const Line &b) { return weight(a) > weight(b); });
    os << llvm::formatv("{0}, kernels of a step on one rank\n",
                        program.name);
    auto printNames = [&](llvm::StringRef name, llvm::StringRef kind) {
      os << "  " << llvm::left_justify(name, nameWidth) << " "
         << llvm::left_justify(kind, kindWidth) << " ";
    };
    printNames("operation", "template or size");
    os << llvm::formatv("{0,7}{1,18}{2,18}{3,22}", "times", "reads", "writes", "FLOPs each");
    if (ceilings.known())
      os << llvm::formatv("{0,16}{1,12}{2,8}", "floor each, us", "a step, ms", "share");
    for (llvm::StringRef arch : archs)
      os << llvm::formatv("{0,18}{1,9}", (arch + " registers").str(), "spills");
    os << "\n";
    for (const Line &line : lines) {
      printNames(line.row->op, line.row->kind);
      os << llvm::formatv("{0,7}{1,18:N0}{2,18:N0}{3,22}", line.row->times, line.row->readBytes,
                          line.row->writtenBytes, grouped(line.row->flops));
      if (ceilings.known())
        os << llvm::formatv("{0,16:F2}{1,12:F3}{2,8:P1}", line.floor * 1e6,
                            line.times * line.floor * 1e3, line.times * line.floor / floor);
      for (llvm::StringRef arch : archs)
        if (const plan::Assembled *numbers = assembledFor(*line.row, arch))
          os << llvm::formatv("{0,18}{1,9}", numbers->registers, numbers->spilledBytes);
        else // not a generated kernel
          os << llvm::formatv("{0,18}{1,9}", "", "");
      os << "\n";
    }
    os << llvm::formatv("  in all {0} bytes and {1} FLOPs", grouped(bytes), grouped(flops));
    if (ceilings.known())
      os << llvm::formatv(", no faster than {0:F3} ms with the rates given: {1:E2} bytes/s, {2:E2} FLOP/s",
                          floor * 1e3, ceilings.copyRate, ceilings.matmulRate);
    os << "\n";
  }
}
