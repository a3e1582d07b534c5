//===- Attentions.h - numbers of calls of attention -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// On GPUs, generated code names a call of attention by its place in the plan's table,
// where the runtime reads what cuDNN must know of it before the program starts. Calls
// that differ in addresses alone have one number.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_ATTENTIONS_H
#define MESHWRIGHT_CODEGEN_ATTENTIONS_H

#include "Exec/Exec.h"
#include "meshwright/runtime/Cudnn.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::codegen {

/// An exec.attention or exec.attention_grad, without its memory.
struct AttentionEntry {
  cudnn::Attention call;
  bool byCudnn = false, fallback = false;
  int64_t workspaceBytes = 0; ///< that cuDNN may use
  mlir::StringRef reason;     ///< why it is not cuDNN's
  bool tensorCores = false;   ///< whether the generated kernels multiply there
  mlir::Operation *first = nullptr;
};

/// Whether tensor cores can make the products of generated kernels: heads of 16, 32, ... 256
/// elements of bf16 or f16. `aligned`: whether all tensors begin at multiples of 16 bytes.
bool fitsTensorCores(const MwAttention &sizes, bool aligned);

class Attentions {
public:
  explicit Attentions(mlir::ModuleOp module);

  llvm::ArrayRef<AttentionEntry> all() const { return entries; }
  unsigned numberOf(mlir::Operation *op) const { return numbers.at(op); }

private:
  llvm::SmallVector<AttentionEntry> entries;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_ATTENTIONS_H
