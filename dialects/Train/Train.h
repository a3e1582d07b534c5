//===- Train.h - the train dialect ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_TRAIN_H
#define MESHWRIGHT_TRAIN_TRAIN_H

#include "Train/Attention.h"
#include "Train/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <array>

namespace meshwright::train {

/// What an argument of a program is ("tokens", "lr"), what a result is ("loss"), and of which
/// parameter a result is the gradient.
inline constexpr llvm::StringLiteral inputAttr = "train.input", outputAttr = "train.output",
                                     gradientAttr = "train.gradient_of";
/// Of a module: the model's family and its configuration's text; the sizes it is written for.
inline constexpr llvm::StringLiteral modelAttr = "train.model", configAttr = "train.config",
                                     batchAttr = "train.batch", sequenceAttr = "train.sequence",
                                     microbatchesAttr = "train.microbatches",
                                     vocabularyAttr = "train.vocabulary",
                                     maxPositionsAttr = "train.max_positions";
/// ... and, of an encoder-decoder model, the tokens of a source sequence, and the token that a target
/// begins with.
inline constexpr llvm::StringLiteral sourceSequenceAttr = "train.source_sequence",
                                     startTokenAttr = "train.start_token";
/// ... and, where tokens are masked, the share of them that a model is to predict, and the token that
/// stands for most of those.
inline constexpr llvm::StringLiteral maskedShareAttr = "train.masked_share",
                                     maskTokenAttr = "train.mask_token";
/// ... and, of direct preference optimization, its beta: two sequences in a row are the chosen and the
/// rejected completion of a prompt.
inline constexpr llvm::StringLiteral dpoBetaAttr = "train.dpo_beta";
/// Of a module from phase `step` on: its optimizer as flags call it. In mixed precision also the type it
/// computes in as flags call it, the element type of parameters' gradients, and whether gradients are scaled.
inline constexpr llvm::StringLiteral optimizerAttr = "train.optimizer",
                                     precisionAttr = "train.precision",
                                     gradTypeAttr = "train.grad_type",
                                     lossScalingAttr = "train.loss_scaling";
/// Marks an op that runs again what has run before: its FLOPs are counted apart. A unit where
/// --remat asks for it, else one of these strings: the experts' results of rounds, whose number is
/// data, are not kept, and a ring sends latents from which each step makes keys and values.
inline constexpr llvm::StringLiteral recomputedAttr = "train.recomputed",
                                     recomputedOfRounds = "rounds",
                                     recomputedOfLatents = "latents";
/// Of a result of the loss: the router whose choices it counts, and the bias that these counts
/// balance. Of that bias: by how much a step changes it, in place of a gradient.
inline constexpr llvm::StringLiteral tokensOfAttr = "train.tokens_of",
                                     balancesAttr = "train.balances",
                                     balanceRateAttr = "train.balance_rate";
/// Of a parameter that steps do not change: it has no gradient, no update and no states.
inline constexpr llvm::StringLiteral frozenAttr = "train.frozen";
/// Of a parameter that belongs to an adapter, which has files of its own, and of the module: the text
/// of that adapter's configuration.
inline constexpr llvm::StringLiteral adapterAttr = "train.adapter",
                                     adapterConfigAttr = "train.adapter_config";
/// Of an argument of the loss: the number of the result of `@loss.counts` that it is the sum of, over
/// all microbatches. It is no input of a program.
inline constexpr llvm::StringLiteral batchSumAttr = "train.batch_sum";
/// The state that keeps such counts.
inline constexpr llvm::StringLiteral tokensRole = "tokens";
/// Of an op or a variable before mixed precision: its floats stay f32 there.
inline constexpr llvm::StringLiteral fullPrecisionAttr = "train.full_precision";

/// The attribute `train.input` of an argument; empty without.
llvm::StringRef inputName(mlir::FunctionOpInterface function, unsigned argument);
llvm::StringRef inputName(mlir::BlockArgument argument);
/// Whether an input of that name has a number for each token: [..., batch, sequence].
bool isByToken(llvm::StringRef input);
/// Whether it has one for each sequence: [..., batch].
bool isBySequence(llvm::StringRef input);
/// The input of direct preference optimization, the log-probability of each sequence under the model that
/// a run began with, and the output that is the trained model's.
inline constexpr llvm::StringLiteral referenceInput = "reference_log_probs", logProbsOutput = "log_probs";
/// The inputs of a step whose batch may have fewer microbatches than the program is for: how many it has, an i32,
/// and that number in the place of the program's as a factor, program's / step's, in f32, of what is a mean over the batch.
inline constexpr llvm::StringLiteral microbatchesInput = "microbatches", batchWeightInput = "batch_weight";
/// The attribute of the module that says how long the sequences of an input by token are.
llvm::StringRef lengthAttrOf(llvm::StringRef input);
/// The attribute `train.output` of a result; empty without.
llvm::StringRef outputName(mlir::FunctionOpInterface function, unsigned result);
/// The attribute `train.tokens_of` of a result, or null.
mlir::FlatSymbolRefAttr tokensOf(mlir::FunctionOpInterface function, unsigned result);
/// A size of the module, by one of the names above.
std::optional<int64_t> moduleSize(mlir::ModuleOp module, llvm::StringRef name);

/// The rule `text` for the op's operands and results, with the sizes of their
/// types; `known` gives factors that no operand dimension determines.
ShardingRule ruleOf(mlir::Operation *op, llvm::StringRef text,
                    llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> known = {});

/// The rule of an element-wise op with broadcasting of trailing dimensions.
ShardingRule elementwiseRuleOf(mlir::Operation *op, bool linear, bool additive);

/// Result types from a rule and operand types; element types are operand 0's.
/// Emits an error naming the op and the disagreeing dimensions.
mlir::LogicalResult inferFromRule(llvm::StringRef opName, llvm::StringRef text,
                                  std::optional<mlir::Location> location, mlir::TypeRange operands,
                                  llvm::SmallVectorImpl<mlir::Type> &results,
                                  llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> known = {});

/// The type of `lhs`, if `rhs` has a trailing part of its shape.
mlir::LogicalResult inferBroadcast(llvm::StringRef opName, std::optional<mlir::Location> location,
                                   mlir::Type lhs, mlir::Type rhs,
                                   llvm::SmallVectorImpl<mlir::Type> &results);

/// Whether tensor types agree in shape and element type; encodings may differ.
bool equalButEncoding(mlir::TypeRange a, mlir::TypeRange b);
/// The same, but float types may differ: a sum may have any float type.
bool equalButFloats(mlir::TypeRange a, mlir::TypeRange b);

/// `type`, or f32 for narrower float types: the type of sums and statistics.
mlir::Type atLeastF32(mlir::Type type);
/// The tensor type `type` with another element type.
mlir::RankedTensorType withElementType(mlir::Type type, mlir::Type element);

/// One operation per element of the largest operand or result.
double defaultFlops(mlir::Operation *op);
/// How many iterations a loop is taken to run whose number data decides, such as the rounds in
/// which rows reach their experts.
enum class Rounds {
  Expected, ///< one, which is all that balanced routing needs
  Most      ///< as many as can run
};
/// Twice the product of all factor sizes of the op's rule.
double contractionFlops(mlir::Operation *op);

} // namespace meshwright::train

#include "Train/TrainDialect.h.inc"
#include "Train/TrainEnums.h.inc"

namespace meshwright::train {
/// What a kernel primitive does: all that code generators know of it. x is its first
/// operand, ids or a place its second.
struct Primitive {
  enum Kind {
    View,    ///< dimension d of x is dimension dims[d] of the result
    Reduce,  ///< x reduced over `dims` by `reduction`
    Iota,    ///< the index along `dim`
    Gather,  ///< rows `ids` of x, zeros where x has no such row
    Scatter, ///< x added to rows `ids` of the third operand, or of zeros
    Pad,     ///< x from index `from` along `dim` on, and `value` before and beyond
    Window,  ///< x from the place on along `dim`
    Halves   ///< rows of two halves, each a half of x's row: see `halves`
  };
  /// The half of x's row that is read, and whether its negative is taken.
  struct Half {
    int from = 0;
    bool negated = false;
  };

  Kind kind = View;
  llvm::SmallVector<int64_t, 6> dims = {};
  int64_t dim = 0;
  ReduceKind reduction = ReduceKind::Sum;
  int64_t value = 0;
  int64_t from = 0;
  std::array<Half, 2> halves = {};
};
} // namespace meshwright::train

#include "Train/TrainInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "Train/TrainOps.h.inc"

namespace meshwright::train {
/// The attribute of ops of attention as their text has it.
mlir::ParseResult parseAttentionSpec(mlir::OpAsmParser &parser, AttentionAttr &spec);
void printAttentionSpec(mlir::OpAsmPrinter &printer, mlir::Operation *op, AttentionAttr spec);

/// Rewrites `op` into kernel primitives that compute in f32 at least: operands of
/// narrower float types are extended, results rounded.
llvm::SmallVector<mlir::Value> decomposeInF32(KernelOpInterface op, mlir::OpBuilder &builder);

/// The most rows that a sequence of `length` tokens, each of which chooses k experts, has in a block
/// of `experts` experts, which take `capacity` tokens of a sequence each, or all of them if it is 0.
int64_t mostRowsOfBlock(int64_t length, int64_t k, int64_t experts, int64_t capacity);

/// The attribute `train.role` of a repetition or a function.
std::optional<Role> roleOf(mlir::Operation *op);
void setRole(mlir::Operation *op, Role role);
/// Whether `repeat` runs layers, or groups of them: forward, backward or for weights alone.
bool isLayers(RepeatOp repeat);
/// Whether a loop is over microbatches, whose number is a run's choice where a program leaves it open. Other
/// numbers of iterations that are left open follow from data.
bool isOverMicrobatches(mlir::Operation *loop);
/// The attribute `train.chunk` of layers.
std::optional<int64_t> chunkOf(RepeatOp repeat);
} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_TRAIN_H
