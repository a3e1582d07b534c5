//===- Importer.h - a loss function of JAX to floor 1 ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_STABLEHLO_IMPORTER_H
#define MESHWRIGHT_FRONTEND_STABLEHLO_IMPORTER_H

#include "Lazy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <limits>

namespace meshwright {
struct ModelOptions;
}

namespace meshwright::hlo {

using llvm::StringRef;
using mlir::LogicalResult;
using mlir::Operation;

class Importer {
public:
  explicit Importer(mlir::ModuleOp source) : source(source), graph(source.getContext()) {}

  FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> run(StringRef path, const ModelOptions &options);

private:
  using Handler = FailureOr<Ref> (Importer::*)(Operation *);
  /// What imports an op of this name, or null.
  static Handler handlerOf(StringRef name);

  /// Whether operands, attributes and the result of an op with a handler fit each other.
  static bool agrees(Operation *op);

  LogicalResult readArguments();
  LogicalResult nameParameters();
  void makeModule(StringRef path);
  LogicalResult importBody(mlir::func::FuncOp function, llvm::SmallVectorImpl<Ref> &results);
  LogicalResult importCall(mlir::func::CallOp call);
  void keepStatistics();
  LogicalResult finish(Ref result, const ModelOptions &options);

  /// The value as one that any op may use, or an error.
  FailureOr<Ref> usable(const Ref &value);
  FailureOr<Ref> operand(Operation *op, unsigned i) {
    return usable(values.lookup(op->getOperand(i)));
  }
  Ref raw(Operation *op, unsigned i) { return values.lookup(op->getOperand(i)); }
  /// What the op makes, of which nothing is known that could be used.
  Ref unknown(Operation *op) const;
  /// The sum of the tokens' losses, of which `value` is a multiple, with the weight of a target.
  FailureOr<Value> lossOf(const Ref &value);

  // Element by element.
  FailureOr<Ref> absolute(Operation *op), add(Operation *op), combine(Operation *op),
      compare(Operation *op), convert(Operation *op), cosine(Operation *op), divide(Operation *op),
      errorFunction(Operation *op), exponential(Operation *op), invert(Operation *op),
      isFinite(Operation *op), logarithm(Operation *op), logistic(Operation *op),
      maximum(Operation *op), minimum(Operation *op), multiply(Operation *op),
      negate(Operation *op), power(Operation *op), root(Operation *op), select(Operation *op),
      square(Operation *op), subtract(Operation *op), tanh(Operation *op);
  // Of shapes and sums.
  FailureOr<Ref> broadcast(Operation *op), concatenate(Operation *op), constant(Operation *op),
      dotGeneral(Operation *op), gather(Operation *op), iota(Operation *op), reduce(Operation *op),
      reshape(Operation *op), slice(Operation *op), transpose(Operation *op);

  FailureOr<Ref> difference(Operation *op, Ref a, Ref b);
  FailureOr<Ref> clamped(const Ref &x, double least, double most);
  FailureOr<Ref> maximumOf(Operation *op, const Ref &x, ArrayRef<int64_t> dims);
  FailureOr<Ref> inverseRoot(const Ref &x), rootOf(const Ref &x);
  FailureOr<Ref> sigmoid(const Ref &x);
  FailureOr<Ref> quotient(Operation *op, const Ref &a, const Ref &b);
  /// A scaled product of queries and keys, as `scores` are one.
  static Ref rescaled(const Ref &scaled, const Ref &scores, double factor);
  /// Probabilities times values as one op, or null where these are no softmax of products.
  FailureOr<Ref> attention(Operation *op, const Ref &a, const Ref &b, mlir::DictionaryAttr numbers);
  /// The rows of a table that tokens, or consecutive numbers, say.
  FailureOr<Ref> rowsOf(Operation *op, mlir::DictionaryAttr numbers, ArrayRef<int64_t> sizes);
  FailureOr<Ref> pick(Operation *op, mlir::DictionaryAttr numbers, ArrayRef<int64_t> sizes);

  mlir::ModuleOp source;
  mlir::func::FuncOp main;
  Graph graph;
  llvm::DenseMap<Value, Ref> values;
  SmallVector<mlir::func::FuncOp> callers;

  SmallVector<mlir::BlockArgument> parameters, tokenArguments;
  SmallVector<std::string> names; ///< of parameters
  int64_t rows = 0, sequence = 0;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp loss;
  SmallVector<train::VariableOp> variables;

  /// How many tokens a table or logits have, and how many pass a check of the text.
  int64_t vocabulary = std::numeric_limits<int64_t>::max();
  struct Bound {
    int64_t tokens;
    Operation *at;
  };
  SmallVector<Bound> bounds;
};

} // namespace meshwright::hlo

#endif // MESHWRIGHT_FRONTEND_STABLEHLO_IMPORTER_H
