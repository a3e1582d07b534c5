//===- CallWork.h - what a call's time depends on -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_CALLWORK_H
#define MESHWRIGHT_COST_CALLWORK_H

#include "meshwright/Cost/Device.h"
#include "meshwright/Cost/Flops.h"

#include <map>
#include <string>

namespace meshwright::cost {

/// What an op of the memory form that computes does, as far as its time depends on it.
struct CallWork {
  enum Kind {
    Kernel,         ///< a generated kernel, ...
    Optimizer,      ///< ... of those that update parameters or states
    Product,        ///< a matrix product, ...
    GroupedProduct, ///< ... of experts
    Attention,
    AttentionGrad
  };
  Kind kind = Kernel;
  double flops = 0, bytes = 0; ///< bytes are those read and written
  /// Of a generated kernel: how often it evaluates what takes more than one instruction for an
  /// element, by the name of the op without its dialect: exp, divf, truncf.
  std::map<std::string, double> functions = {};
  /// The working set: bytes accessed between two uses of the same memory, which decide the cache
  /// level. The update accesses each variable once a step, so it is that of all variables; otherwise
  /// it is that of the call.
  double reuse = 0;
  unsigned bits = 32;          ///< of the operands' element type
  int64_t keys = 0, headSize = 0; ///< of attention: keys of a sequence, elements of a head
  int64_t rows = 0;               ///< of a matrix product's result
  ProductSizes sizes = {};        ///< of a matrix product; none: not known
  double factorSums = 0;          ///< bytes of the factor that it also adds up, for a bias gradient
  /// Elements in f32 that a matrix product of narrower operands adds its result to.
  double accumulated = 0;
  /// Of a kernel of the cross entropy: logits that it reads, and whether it computes losses and gradients of
  /// these.
  double logits = 0;
  bool isLossOfLogits = false, isGradOfLogits = false;

  bool isProduct() const { return kind >= Product; }
  /// Whether anything is computed or moved.
  bool any() const { return flops > 0 || bytes > 0; }
  /// Seconds on `device` without the launch.
  double seconds(const Device &device) const;
};

/// Reads the work of ops of the memory form: launches, products, calls of attention and copies.
/// Programs must not change between questions.
class WorkReader {
public:
  CallWork of(mlir::Operation *op);

private:
  /// Bytes of the parameters and states of the program that has `op`.
  double variablesOf(mlir::Operation *op);

  FlopCounter flops;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, double> variables; ///< by program
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_CALLWORK_H
