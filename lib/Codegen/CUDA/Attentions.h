//===- Attentions.h - numbers of calls of attention -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// On GPUs, generated code names a call of attention by its index in the plan's table,
// where the runtime reads what cuDNN must know of it before the program starts. Calls
// that differ in addresses alone have one number.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_ATTENTIONS_H
#define MESHWRIGHT_CODEGEN_CUDA_ATTENTIONS_H

#include "Exec/Exec.h"
#include "meshwright/runtime/PlanSchema.h"
#include "meshwright/runtime/cuda/Cudnn.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::codegen::cuda {

/// The choice of cuDNN for a call of attention: the attribute `library` in parsed form.
struct Library {
  int64_t workspaceBytes = 0; ///< that cuDNN may use
  bool fallback = false;      ///< generated kernels make the call where cuDNN does not
  bool deterministic = false; ///< the gradient has the same bits on every run
};
mlir::Attribute toAttribute(const Library &library, mlir::MLIRContext *context);
/// What `attribute` says; nothing where it is null or no such choice.
std::optional<Library> libraryOf(mlir::Attribute attribute);

/// Bytes that the call `shape` of attention, or of its gradient, writes to scratch memory on
/// GPUs of `archs`, and then reads there, at least. `attribute`: the choice of cuDNN, or null.
int64_t leastScratchTraffic(const MwAttention &shape, bool backward, mlir::Attribute attribute,
                            llvm::ArrayRef<std::string> archs);

/// Chooses who makes the call of attention `op` of the tensor form on GPUs of `archs`, as
/// Target::chooseLibrary has it. `attention`: auto, cudnn or generated.
mlir::LogicalResult chooseAttention(mlir::Operation *op, llvm::StringRef attention,
                                    bool deterministic, llvm::ArrayRef<std::string> archs);

/// Whether tensor cores can make the products of generated kernels: heads of 16, 32, ... 256
/// elements of bf16 or f16. `aligned`: whether all tensors begin at multiples of 16 bytes.
bool fitsTensorCores(const MwAttention &sizes, bool aligned);

class Attentions {
public:
  explicit Attentions(mlir::ModuleOp module);

  /// The plan's rows: what cuDNN must know of each call, or why it is not its own.
  llvm::ArrayRef<plan::Attention> all() const { return rows; }
  unsigned numberOf(mlir::Operation *op) const { return numbers.at(op); }

private:
  std::vector<plan::Attention> rows;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_ATTENTIONS_H
