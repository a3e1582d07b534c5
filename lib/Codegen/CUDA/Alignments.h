//===- Alignments.h - to how many bytes memory is aligned -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ALIGNMENTS_H
#define MESHWRIGHT_CODEGEN_CUDA_ALIGNMENTS_H

#include "Exec/Exec.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

namespace meshwright::codegen::cuda {

/// To how many bytes, at most 16, memory of programs is aligned.
class Alignments {
public:
  explicit Alignments(mlir::ModuleOp module) {
    mlir::SymbolTableCollection symbols;
    module.walk([&](exec::CallOp call) {
      auto callee = symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
      unsigned number = 0;
      for (mlir::Value memory :
           llvm::concat<mlir::Value>(call.getInputs(), call.getUpdated(), call.getOutputs()))
        given[callee.getBlock().getArgument(number++)].push_back(memory);
    });
  }

  int64_t of(mlir::Value memory) {
    // What is given to a private program is as aligned as in all calls.
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(memory)) {
      auto [known, isNew] = arguments.try_emplace(argument, 16);
      if (!isNew)
        return known->second;
      int64_t bytes = 16;
      for (mlir::Value value : given.lookup(argument))
        bytes = std::gcd(bytes, of(value));
      return arguments[argument] = bytes;
    }
    return llvm::TypeSwitch<mlir::Operation *, int64_t>(memory.getDefiningOp())
        .Case<exec::SlotOp, exec::WindowOp>([&](auto op) {
          return std::gcd(of(op.getBase()),
                          exec::bytesOf(mlir::cast<mlir::MemRefType>(op->getResult(0).getType())));
        })
        .Case<exec::ViewOp>([&](exec::ViewOp op) {
          int64_t begin =
              exec::bytesOf(op.getType()) / op.getType().getNumElements() * int64_t(op.getOffset());
          return std::gcd(of(op.getBase()), begin);
        })
        .Default([](mlir::Operation *) { return int64_t(16); }); // buffers begin at multiples of 64
  }

  /// The least of what is memory among the values.
  int64_t ofAll(mlir::ValueRange values) {
    int64_t bytes = 16;
    for (mlir::Value value : values)
      if (mlir::isa<mlir::MemRefType>(value.getType()))
        bytes = std::gcd(bytes, of(value));
    return bytes;
  }

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> given; ///< by argument
  llvm::DenseMap<mlir::Value, int64_t> arguments;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ALIGNMENTS_H
