//===- KeyExpansion.h - what keys and values are made of --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Latent heads (DeepSeek-AI 2024, "DeepSeek-V2") make keys and values of all heads from one narrow
// latent a token and one rotary key. A ring can send these instead, and compute keys and values
// again on each device. What is sent and what is computed is a minimum cut, by the price of a byte
// in FLOPs that rematerialization has; no pattern of a model is looked for.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_KEYEXPANSION_H
#define MESHWRIGHT_LIB_DIST_KEYEXPANSION_H

#include "meshwright/Cost/Device.h"
#include "Dist/Dist.h"

#include "mlir/IR/IRMapping.h"

namespace meshwright::dist {

/// Ops that treat all tokens alike, each token by itself, and in which dimension their values have
/// tokens.
struct TokenOps {
  llvm::SmallVector<mlir::Operation *> ops; ///< in order
  llvm::DenseMap<mlir::Value, int64_t> dims;

  /// The ops on `tokens` tokens, of what `map` says; `map` then has their results too. If they run
  /// `again`, they are marked so.
  void clone(mlir::OpBuilder &b, mlir::IRMapping &map, int64_t tokens, bool again) const;
};

/// Keys and values of a device's tokens, as ops make them of `sources`.
struct KeyExpansion {
  KeyExpansion() = default;
  /// Of themselves. Dimension 1 is of tokens.
  KeyExpansion(mlir::Value k, mlir::Value v);
  /// What is cheapest to send and to compute keys and values from again, if that is less than half
  /// of them; else themselves.
  static KeyExpansion cheapest(mlir::Value k, mlir::Value v, const cost::Device &device);

  bool isTrivial() const { return made.ops.empty(); }
  int64_t dim(mlir::Value source) const { return made.dims.at(source); }
  /// Keys, values and all between, of other tokens, by those of the device.
  mlir::IRMapping expand(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> sent, bool again) const;

  mlir::Value k, v;
  llvm::SmallVector<mlir::Value> sources;
  TokenOps made;
};

/// What gradients of keys and values are added up as, on their way around.
struct KeyGradient {
  KeyGradient() = default;
  /// As they are.
  KeyGradient(mlir::Value dk, mlir::Value dv);
  /// As gradients of what keys and values are made of, if these are fewer bytes and worth computing
  /// on each device; else as they are. `attention` is where these are computed: what ops read
  /// beside is, or can be, computed before it.
  static KeyGradient cheapest(const KeyExpansion &expansion, mlir::Value dk, mlir::Value dv,
                              mlir::Operation *attention, const cost::Device &device);

  bool isTrivial() const { return moved.ops.empty(); }
  /// Terms of `travel` and then of `stay`, in f32 at least, of gradients of keys and values that
  /// `expanded` has.
  llvm::SmallVector<mlir::Value> terms(mlir::OpBuilder &b, mlir::IRMapping &expanded,
                                       mlir::Value stepDk, mlir::Value stepDv, bool again) const;
  /// Moves before `attention` what ops read.
  void hoistOperands(mlir::Operation *attention) const;
  /// Erases moved ops whose results nothing reads any more.
  void eraseDead() const;

  mlir::Value dk, dv;
  llvm::SmallVector<mlir::Value> travel; ///< have tokens
  llvm::SmallVector<mlir::Value> stay;   ///< sums over tokens, as gradients of weights are
  TokenOps moved;                        ///< from dk and dv to these
};

/// Lets backwards of layers keep what keys and values of attention that `isRing` are made of, where a
/// ring is to send that, in place of keys and values.
void keepKeySources(mlir::ModuleOp module,
                    llvm::function_ref<bool(train::AttentionOp)> isRing,
                    const cost::Device &device);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_KEYEXPANSION_H
