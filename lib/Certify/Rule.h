//===- Rule.h - attaching rules to ops ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A rule is a function
//   LogicalResult f(OpT op, Facts operands, NewFacts &results, Checker &checker)
// that pushes one fact per result, or emits an error and fails; attachRule<OpT, f>
// gives it to the op. attachIndices<OpT, text> does so for an op whose rule is its
// indices alone. Rules are written from the ops' documented formulas (docs/ops-train.md,
// docs/ops-dist.md), not from the factor tables of propagation.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_RULE_H
#define MESHWRIGHT_CERTIFY_RULE_H

#include "Certify/IndexRule.h"

namespace meshwright::certify {

template <typename OpT>
using RuleFunction = llvm::LogicalResult (*)(OpT, Facts, NewFacts &, Checker &);

/// Whether a rule says what becomes of padding.
enum class OnPadding { refused, known };
/// Whether it says what becomes of pieces, terms and chunks (Parts.h).
enum class OnParts { refused, known };

template <typename OpT, RuleFunction<OpT> function, OnPadding padding, OnParts parts>
struct RuleModel
    : CertifiableOpInterface::ExternalModel<RuleModel<OpT, function, padding, parts>, OpT> {
  bool knowsPadding(mlir::Operation *) const { return padding == OnPadding::known; }
  bool knowsParts(mlir::Operation *) const { return parts == OnParts::known; }
  llvm::LogicalResult certify(mlir::Operation *op, Facts operands, NewFacts &results,
                              Checker &checker) const {
    return function(mlir::cast<OpT>(op), operands, results, checker);
  }
};

template <typename OpT, RuleFunction<OpT> function, OnPadding padding = OnPadding::refused,
          OnParts parts = OnParts::refused>
void attachRule(mlir::MLIRContext *context) {
  OpT::template attachInterface<RuleModel<OpT, function, padding, parts>>(*context);
}

/// Indices as IndexRule::parse reads them, or none for an element-wise op.
struct IndexText {
  llvm::StringLiteral indices = "";
  llvm::StringLiteral linear = "";
  /// What the op makes of padding.
  enum Padding {
    real,   ///< of real numbers a real number
    positive, ///< ... that is not below 0
    zero,   ///< and of zeros a zero
    refused ///< perhaps no number, as the logarithm of 0 is none
  } padding = real;
};

template <typename OpT, const IndexText &text>
struct IndexModel : CertifiableOpInterface::ExternalModel<IndexModel<OpT, text>, OpT> {
  bool knowsPadding(mlir::Operation *) const { return text.padding != IndexText::refused; }
  bool knowsParts(mlir::Operation *) const { return true; }
  llvm::LogicalResult certify(mlir::Operation *op, Facts operands, NewFacts &results,
                              Checker &checker) const {
    IndexRule rule = text.indices.empty() ? IndexRule::elementwise(text.linear, op)
                                          : IndexRule::parse(text.indices, text.linear, op);
    rule.keepsZero = text.padding == IndexText::zero;
    if (failed(applyRule(rule, op, operands, results, checker)))
      return mlir::failure();
    for (auto &[dim, padding] : results[0].type.padding)
      padding.isPositive |= text.padding == IndexText::positive && !padding.fill;
    return mlir::success();
  }
};

template <typename OpT, const IndexText &text> void attachIndices(mlir::MLIRContext *context) {
  OpT::template attachInterface<IndexModel<OpT, text>>(*context);
}

/// Tokens in the padding must have no target, so that they have no loss, and an infinite logarithm
/// of a sum.
llvm::LogicalResult ignorePadding(mlir::Operation *op, unsigned targets, Facts operands,
                                  Distribution &logSums, Checker &checker);

/// Whether `x` is a constant, of which an op that moves elements makes that constant again.
bool movesConstant(mlir::Operation *op, const Fact &x, NewFacts &results, Checker &checker);

// The rules of each group of ops; registerRules calls them all.
void attachStructureRules(mlir::MLIRContext *context);
void attachCallRule(mlir::MLIRContext *context);
void attachTakeRule(mlir::MLIRContext *context);
void attachExchangeRule(mlir::MLIRContext *context);
void attachElementwiseRules(mlir::MLIRContext *context);
void attachShapeRules(mlir::MLIRContext *context);
void attachReshapeRule(mlir::MLIRContext *context);
void attachProductRules(mlir::MLIRContext *context);
void attachQuantizeRules(mlir::MLIRContext *context);
void attachSignRules(mlir::MLIRContext *context);
void attachSparseRules(mlir::MLIRContext *context);
void attachIdRules(mlir::MLIRContext *context);
void attachRowRules(mlir::MLIRContext *context);
void attachAttentionRules(mlir::MLIRContext *context);
void attachOptimizerRules(mlir::MLIRContext *context);
void attachExpertRules(mlir::MLIRContext *context);
void attachCollectiveRules(mlir::MLIRContext *context);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_RULE_H
