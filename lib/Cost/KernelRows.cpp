//===- KernelRows.cpp - the kinds of kernels in a step ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/KernelRows.h"

#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Exec/Quantize.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::cost;

/// The templates of a generated kernel's loop nests, each once.
static std::string templatesOf(func::FuncOp kernel) {
  SmallVector<StringRef> templates;
  if (auto list = kernel->getAttrOfType<ArrayAttr>(exec::templateAttr))
    for (Attribute name : list)
      if (!llvm::is_contained(templates, cast<StringAttr>(name).getValue()))
        templates.push_back(cast<StringAttr>(name).getValue());
  return llvm::join(templates, ", ");
}

/// The sizes of a product; empty for other ops.
static std::string sizesOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<exec::MatmulOp, exec::ScaledMatmulOp>([](auto product) {
        std::string sizes = llvm::formatv("{0}x{1}x{2}", product.getM(), product.getN(), product.getK());
        return product.getBatch() > 1 ? sizes + " x " + std::to_string(product.getBatch()) : sizes;
      })
      .Case<exec::GroupedMatmulOp, exec::GroupedMatmulGradOp>([](auto product) {
        exec::ProductShape shape = product.getShape();
        return std::string(llvm::formatv("{0}x{1}x{2}, {3} experts", shape.m, shape.n, shape.k,
                                         product.getGroups().experts));
      })
      .Default([](Operation *) { return std::string(); });
}

KernelRows::KernelRows(ModuleOp program, FlopCounter &flops) {
  auto step = program.lookupSymbol<exec::ProgramOp>("step");
  if (!step)
    return;
  SymbolTableCollection symbols;
  std::map<std::string, int64_t> known;
  forEachRun(step.getBlock(), Rounds::Expected, symbols, [&](Operation *op, double runs) {
    if (isa<dist::CollectiveOpInterface, exec::MemoryCollectiveOpInterface>(op))
      return;
    KernelRow row;
    row.moved = movedBy(op, symbols);
    if (row.moved.read + row.moved.written == 0)
      return;
    if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      row.op = launch.getKernel().str();
      row.kind = templatesOf(
          symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr()));
    } else {
      row.op = op->getName().stripDialect().str();
      row.kind = sizesOf(op);
      row.flops = flops.of(op);
    }
    // Products of one size may still differ in their types, and attention of parts in what is visible.
    std::string key = llvm::formatv("{0} {1} {2} {3} {4}", row.op, row.kind, row.moved.read,
                                    row.moved.written, row.flops);
    auto [entry, isNew] = known.try_emplace(key, int64_t(rows.size()));
    if (isNew)
      rows.push_back(row);
    rows[size_t(entry->second)].times += runs;
    numbers[op] = entry->second;
  });
}
