//===- Checker.h - runs a program on facts in place of tensors ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_CHECKER_H
#define MESHWRIGHT_CERTIFY_CHECKER_H

#include "Certify/Fact.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <set>

namespace meshwright::certify {
class Checker;
}
#include "Certify/CertifyInterfaces.h.inc"

namespace meshwright::certify {

using Facts = llvm::ArrayRef<Fact>;
using NewFacts = llvm::SmallVectorImpl<Fact>;

/// What a run of either program shares with the other one.
struct Proof {
  Expressions expressions;
  std::set<std::string> kernels, rewrites;
  /// The shapes that reshapes and pads of the global graph have before and after them. What is made of
  /// a value that the graph does not have is read as the graph's own op of these shapes, so that the
  /// value is what an error names.
  std::set<std::tuple<llvm::StringRef, std::vector<int64_t>, std::vector<int64_t>>> shapes;
  /// Inputs that programs take from 0 on, and those of them that are at most 1, weights of means.
  std::set<const Expression *> notNegative, weights;
  /// Extents with padding that variables and inputs have, and without: of all stages, of which the first
  /// alone has inputs.
  std::set<std::pair<int64_t, int64_t>> padded;
  unsigned partials = 0; ///< how many values have had a number of their own, by Checker::termsOf
  unsigned messages = 0; ///< how many sums have been under way in messages
  unsigned globals = 0; ///< how many expressions the global graph has; 0 while it runs
  unsigned ops = 0;
};

/// A loop whose iterations have some rows of routing choices each, or a chunk of the tokens, and
/// together all.
struct Rounds {
  int64_t level;
  unsigned axis;            ///< of the mesh, whose positions are the iterations
  const Expression *number; ///< of rounds, for which rows; null for chunks
};
/// A constant, from which devices differ by an offset.
inline constexpr llvm::StringLiteral numberName = "number";
/// An operand before it is rounded to the element type of the global graph's value.
inline constexpr llvm::StringLiteral unroundedName = "unrounded";
/// What a round adds to carried value (level, index); the operand is complete over all rounds.
inline constexpr llvm::StringLiteral accumulatedName = "accumulated";

/// One program: the global graph, whose mesh has no axes, or a rank's.
class Checker {
public:
  Checker(Proof &proof, mlir::ModuleOp module, Mesh mesh)
      : proof(proof), module(module), mesh(std::move(mesh)), deviceAxes(this->mesh.axes.size()) {}

  Proof &proof;
  mlir::ModuleOp module;
  /// Of devices, and of the rounds of loops around the op.
  Mesh mesh;
  /// How many axes of the mesh are of devices; those behind them are of rounds of loops.
  unsigned deviceAxes;
  /// Axes that shard variables and inputs: what else is sharded is guessed to be so along these first.
  std::set<unsigned> sharding;
  /// Axes that shard inputs' sequences, dimension 0, and their tokens, dimension 1.
  std::set<std::pair<unsigned, int64_t>> batch;
  /// Variables' values, by name.
  llvm::MapVector<llvm::StringRef, Fact> state;
  /// How many loops are around the op.
  unsigned depth = 0;
  /// The axis along which the devices of this program have one coordinate: of a pipeline stage.
  std::optional<unsigned> fixed;
  /// Whether loops over microbatches are written out, as schedules of stages have them.
  bool unrolls = false;
  /// The loops over rounds around the op.
  llvm::SmallVector<Rounds, 1> rounds;

  /// Runs a function; it must have been verified.
  llvm::LogicalResult run(mlir::func::FuncOp function, Facts arguments, NewFacts &results);
  mlir::func::FuncOp lookup(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

  /// Begins an error: "not proved: train.add ...".
  mlir::InFlightDiagnostic refuse(mlir::Operation *op);

  /// An expression of the op with its own attributes, or with others.
  const Expression *make(mlir::Operation *op, Operands operands, unsigned result,
                         llvm::ArrayRef<int64_t> shape);
  const Expression *make(mlir::Operation *op, mlir::Attribute attributes, Operands operands,
                         unsigned result, llvm::ArrayRef<int64_t> shape);
  const Expression *make(mlir::Location location, llvm::StringRef name, mlir::Attribute attributes,
                         Operands operands, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  /// Whether the global graph has an op of these shapes, of another value; notes those that it has.
  bool hasLike(llvm::StringRef name, const Expression *operand, llvm::ArrayRef<int64_t> shape);
  /// A sum, whatever the order and the grouping of its terms.
  const Expression *sum(mlir::Location location, Operands terms, mlir::Type element,
                        llvm::ArrayRef<int64_t> shape);
  /// A constant of any extents.
  const Expression *fill(mlir::Location location, double value, mlir::Type element, int64_t rank);

  /// The terms of which `x` is the sum, one of each device, whatever they are: the same ones for a value
  /// of this run of its function alone.
  const Expression *termsOf(mlir::Value x, const Expression *of);

  /// Whether an expression is of the global graph; all are while that runs.
  bool isGlobal(const Expression *expression) const {
    return !proof.globals || expression->number < proof.globals;
  }

  /// Says that a rewrite was used.
  void use(llvm::StringRef rewrite) { proof.rewrites.insert(rewrite.str()); }

  /// Axes without those of one device.
  Axes without1(llvm::ArrayRef<unsigned> axes) const;
  /// "operand 1 (%x)" in messages.
  static std::string nameOf(mlir::Operation *op, unsigned operand);

  /// Runs an op.
  llvm::LogicalResult evaluate(mlir::Operation &op, llvm::DenseMap<mlir::Value, Fact> &facts);
  /// Gives the results of an op their facts, which must fit its types.
  llvm::LogicalResult assign(mlir::Operation &op, Facts results,
                             llvm::DenseMap<mlir::Value, Fact> &facts);

private:
  llvm::LogicalResult runRule(mlir::Operation &op, Facts operands, NewFacts &results);
  /// Runs an op on other readings of its operands, where its results are of the global graph.
  bool readOtherwise(mlir::Operation &op, Facts operands, llvm::ArrayRef<FactList> readings,
                     NewFacts &results);
  llvm::LogicalResult checkTypes(mlir::Operation &op, Facts results);

  mlir::SymbolTableCollection symbols;
  llvm::SmallPtrSet<mlir::Operation *, 8> running;
  unsigned runs = 0, thisRun = 0;
  llvm::DenseMap<std::pair<unsigned, mlir::Value>, unsigned> partials;
};

/// Whether an expression is a sum of Checker::sum.
bool isSum(const Expression *expression);

/// The value of a constant, if it is one.
std::optional<double> fillOf(const Expression *expression);
bool isZero(const Expression *expression);
/// Whether no element can be below 0.
bool isNotNegative(const Expression *expression, Checker &checker);
/// Whether it is a number from 0 to 1.
bool isWeight(const Expression *expression, Checker &checker);

/// The number that a value is in an element type, which may be infinite there; none if it is no
/// number of it.
std::optional<double> valueIn(llvm::APFloat value, mlir::Type element);

/// Terms that are all there are of a value are that value, or partial. Others stay, and `why` says
/// what is missing.
void settle(Fact &fact, Checker &checker, std::string *why = nullptr);

/// Gives dimensions of any extent those of the device's tensor: what reads them needs a number, and
/// every device has the whole.
void pin(Fact &fact, mlir::Value value, Checker &checker);

/// The other reshapes of a value that the global graph has and of which the device's tensor is a part,
/// too: where a device has one element of a dimension, no op need change its shape.
FactList otherReadings(const Fact &fact, mlir::Value value, Checker &checker);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_CHECKER_H
