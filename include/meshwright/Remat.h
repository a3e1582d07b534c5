//===- Remat.h - what the backward computes again ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REMAT_H
#define MESHWRIGHT_REMAT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A value of --remat, apart from `auto`.
struct RematPolicy {
  /// Layers of which only the first one's input is kept; 0: the square root of their
  /// number.
  int64_t every = 1;
  /// What a byte is worth in FLOPs: within a layer, what costs less is computed
  /// again. Absent: everything that the backward reads is kept.
  std::optional<double> price;

  /// As parsePolicy reads it.
  std::string str() const;
};

/// Reads none, full, selective, sqrt, every:K, price:P or every:K+price:P.
llvm::Expected<RematPolicy> parsePolicy(llvm::StringRef text);

/// The price of `selective`.
inline constexpr double selectivePrice = 16;

/// FLOPs that a byte a device sends is worth: what an accelerator computes while it
/// sends one (A100: 312 TFLOPS in bf16, 300 GB/s of NVLink each way).
inline constexpr double flopsPerByteSent = 1040;

/// A policy with what it comes to on one device and step, by the graph of the layers:
/// bytes of residuals kept, and FLOPs run again, collectives as flopsPerByteSent.
struct RematCandidate {
  RematPolicy policy;
  double bytes = 0, cost = 0;
};

/// All policies for a module after stage `local` that are the best of their kind:
/// each number of layers, with each price that makes a difference. Ascending in
/// cost; none costs more than another and keeps as much.
std::vector<RematCandidate> rematCandidates(mlir::ModuleOp module);

/// A lower bound of the cost of every choice of that kind that keeps at most `bytes`;
/// infinity if there is none.
double leastRematCost(mlir::ModuleOp module, double bytes);

} // namespace meshwright

#endif // MESHWRIGHT_REMAT_H
