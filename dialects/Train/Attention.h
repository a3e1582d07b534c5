//===- Attention.h - what calls of attention have in common -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// `train.attention`, its gradient, and the calls of floor 3 that they become have the same attribute
// and the same optional operands. Both are described here, as tables, which verifiers, sharding
// rules, builders and lowerings read. CONTRIBUTING.md says what a new mask or operand touches.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_ATTENTION_H
#define MESHWRIGHT_TRAIN_ATTENTION_H

#include "meshwright/runtime/ABI.h"
#include "meshwright/runtime/AttentionMask.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/Hashing.h"

#include <tuple>

namespace meshwright::train {

//===--- the attribute ------------------------------------------------------===//

/// The value of `#train.attention`: all of a call that is no operand. `train.attention` says what the
/// fields mean.
struct AttentionSpec : AttentionMask {
  double scale = 0, cap = 0, dropout = 0, pairs = 0;
  int64_t stream = 0, heads = 0, queries = 0, keys = 0, queryStride = 1, keyStride = 1;
};

template <typename T> struct AttentionField {
  llvm::StringLiteral name; ///< in IR, where a field that is not its default is printed
  T AttentionSpec::*member;
  int64_t least = 0; ///< of integers, which are at most 2^31 - 1: the kernels' positions are i32
};
/// All fields but the scale, which comes first and is always there, in the order in which they are printed.
inline constexpr std::tuple attentionFields{
    AttentionField<bool>{"causal", &AttentionSpec::causal},
    AttentionField<int64_t>{"window", &AttentionSpec::window},
    AttentionField<int64_t>{"chunk", &AttentionSpec::chunk},
    AttentionField<double>{"cap", &AttentionSpec::cap},
    AttentionField<double>{"dropout", &AttentionSpec::dropout},
    AttentionField<int64_t>{"stream", &AttentionSpec::stream, std::numeric_limits<int32_t>::min()},
    AttentionField<int64_t>{"heads", &AttentionSpec::heads},
    AttentionField<int64_t>{"queries", &AttentionSpec::queries},
    AttentionField<int64_t>{"keys", &AttentionSpec::keys},
    AttentionField<double>{"pairs", &AttentionSpec::pairs},
    AttentionField<int64_t>{"query_stride", &AttentionSpec::queryStride, 1},
    AttentionField<int64_t>{"key_stride", &AttentionSpec::keyStride, 1}};
template <typename Visit> void forEachAttentionField(Visit visit) {
  std::apply([&](const auto &...field) { (visit(field), ...); }, attentionFields);
}

bool operator==(const AttentionSpec &a, const AttentionSpec &b);
llvm::hash_code hash_value(const AttentionSpec &spec);

/// `scale 0.125 causal window 512`: as attributes and ops have it.
mlir::FailureOr<AttentionSpec> parseSpec(mlir::AsmParser &parser);
void printSpec(mlir::AsmPrinter &printer, const AttentionSpec &spec);

//===--- the optional operands ----------------------------------------------===//

/// The optional operands of both directions, null where a call does not have them.
struct AttentionOptions {
  mlir::Value ids, key, headOffset, queryOffset, keyOffset, positions, lengths, slopes, sinks,
      distances;
};

/// One of them.
struct AttentionOption {
  llvm::StringLiteral name;
  mlir::Value AttentionOptions::*member;
  /// Its dimensions: `b`atch, `h`eads of queries, keys of the whole sequence (`t`), or another letter for
  /// what no device divides. A call with `key_offset` does not divide `t` either.
  llvm::StringLiteral dims;
  bool isFloat = false;
  bool hasGradient = false; ///< a float that is no constant
};

/// In the order of operands.
inline constexpr AttentionOption attentionOptions[] = {
    {"ids", &AttentionOptions::ids, "b"},
    {"key", &AttentionOptions::key, "k"},
    {"head_offset", &AttentionOptions::headOffset, ""},
    {"query_offset", &AttentionOptions::queryOffset, ""},
    {"key_offset", &AttentionOptions::keyOffset, ""},
    {"positions", &AttentionOptions::positions, "bt"},
    {"lengths", &AttentionOptions::lengths, "b"},
    {"slopes", &AttentionOptions::slopes, "h", /*isFloat=*/true},
    {"sinks", &AttentionOptions::sinks, "h", /*isFloat=*/true, /*hasGradient=*/true},
    {"distances", &AttentionOptions::distances, "nh", /*isFloat=*/true, /*hasGradient=*/true}};

template <typename Op> AttentionOptions attentionOptionsOf(Op op) {
  return {op.getIds(),       op.getKey(),     op.getHeadOffset(), op.getQueryOffset(),
          op.getKeyOffset(), op.getPositions(), op.getLengths(),  op.getSlopes(),
          op.getSinks(),     op.getDistances()};
}

/// The sizes of whole sequences that a call works on, and how many heads it has.
struct AttentionSizes {
  int64_t batch, heads, queries, keys;

  /// Whether `shape` is that of an option's dimensions.
  bool fits(const AttentionOption &option, llvm::ArrayRef<int64_t> shape) const;
  /// ... in words: `[2, 8]`.
  std::string textOf(const AttentionOption &option) const;
};

/// The runtime's description of a call; pointers are null.
MwAttention describeCall(mlir::ShapedType q, mlir::ShapedType k, mlir::ShapedType v,
                         const AttentionSpec &spec, const AttentionOptions &options);

/// What both floors demand of the attribute and the options together. `floats`: the element type of lse and
/// of all options that are floats.
mlir::LogicalResult verifyAttentionCall(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                    const AttentionSpec &spec, const AttentionOptions &options,
                                    const AttentionSizes &sizes, mlir::Type floats);

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_ATTENTION_H
