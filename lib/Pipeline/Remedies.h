//===- Remedies.h - what would make a plan fit ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_REMEDIES_H
#define MESHWRIGHT_LIB_PIPELINE_REMEDIES_H

#include "meshwright/Pipeline.h"

namespace meshwright {

/// No policy of rematerialization has a plan within the budget.
class NothingFits : public llvm::ErrorInfo<NothingFits> {
public:
  static char ID;
  NothingFits(std::string message, RematChoice smallest, double bytes, double budget)
      : message(std::move(message)), smallest(std::move(smallest)), bytes(bytes), budget(budget) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string message;
  RematChoice smallest; ///< the policies of the smallest plan, which needs `bytes`
  double bytes, budget;
};

/// The first three single changes of `options`, the least costly first, whose plans with the
/// policies of `refused` fit its budget, each with its plan's bytes; or that none does.
std::string describeRemedies(const CompileOptions &options, const NothingFits &refused,
                             mlir::MLIRContext &context);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_REMEDIES_H
