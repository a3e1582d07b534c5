//===- Interpreter.h - runs IR directly: the judge of every pass ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs functions of floors 1 and 2, on one rank or on N simulated ranks. A pass
// is tested by running the IR before and after it and comparing; golden runs of
// PyTorch test the interpreter itself. Written independently of everything that
// lowers ops: only the ops' documented formulas are shared.
//
// How ranks run. Each rank is a thread that walks its own function; one of them
// runs at a time, until it reaches a collective or a receive whose peers have not
// reached theirs. So ranks may run different programs (pipeline stages), results
// never depend on timing, and a deadlock is detected and reported with the op that
// each rank is at.
//
// How to give an op its meaning. Attach one of two interfaces as an external
// model (lib/Interpreter/Model.h shortens that to one line per op):
//   InterpretableOpInterface            computes results from operands;
//   InterpretableCollectiveOpInterface  names the ranks that communicate and computes
//                                       all members' results from all operands.
// A model may use its RankContext to call functions, to read and write variables
// and to send and receive. Ops that implement CallOpInterface (func.call and
// launches of kernel functions) need no model.
//
// Floor 2 before partitioning holds global tensors: shardings in types are
// ignored there, and a partial value stands for its total.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_H
#define MESHWRIGHT_INTERPRETER_H

#include "meshwright/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <memory>

namespace meshwright::interp {

/// F64: all float types compute in f64 and nothing is rounded. Quantized: only results of
/// types of 8 bits are rounded, so that products of quantized tensors are of the numbers that
/// they have in any precision. Typed: each op's results are rounded to their element types.
enum class Precision { F64, Quantized, Typed };

/// A rank's variables by name.
using State = llvm::StringMap<Tensor>;

class World;

/// One rank's view of a run, which models receive.
class RankContext {
public:
  RankContext(World &world, int64_t rank) : world(world), myRank(rank) {}

  int64_t rank() const { return myRank; }
  int64_t ranks() const;
  mlir::ModuleOp module() const;
  State &state();
  mlir::SymbolTableCollection &symbols() { return symbolTables; }

  /// Runs a function to its end.
  llvm::LogicalResult call(mlir::FunctionOpInterface function, llvm::ArrayRef<Tensor> arguments,
                           TensorList &results);

  /// Runs a block, inside of one that is running or not, to its terminator, whose operands
  /// are the results.
  llvm::LogicalResult run(mlir::Block &block, llvm::ArrayRef<Tensor> arguments, TensorList &results);

  /// Computes an op again from other operands; the op is not a collective.
  llvm::LogicalResult compute(mlir::Operation *op, TensorList &operands, TensorList &results);

  /// Leaves a tensor for rank `to`; does not wait.
  void send(int64_t to, int64_t channel, Tensor value);
  /// Waits for the next tensor that rank `from` sends on `channel`. `op` is named
  /// if it never comes.
  llvm::FailureOr<Tensor> receive(mlir::Operation *op, int64_t from, int64_t channel);

private:
  using LastUses = llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value, 2>>;
  const LastUses &lastUsesIn(mlir::Block &block);
  llvm::LogicalResult evaluate(mlir::Operation *op, TensorList &operands, TensorList &results);
  llvm::LogicalResult meet(mlir::Operation *op, TensorList &operands, TensorList &results);

  World &world;
  int64_t myRank;
  mlir::SymbolTableCollection symbolTables;
  llvm::DenseMap<mlir::Block *, LastUses> lastUses;
  /// Values of the blocks that are running, the innermost last.
  llvm::SmallVector<llvm::DenseMap<mlir::Value, Tensor> *> frames;
};

/// Called with the operands and results of every op that has run, over all ranks, in an order
/// in which an op comes after the ops that it reads. May replace results; a failure ends the run.
using Observer = std::function<llvm::LogicalResult(RankContext &, mlir::Operation *,
                                                   llvm::ArrayRef<Tensor> operands,
                                                   TensorList &results)>;

/// Runs functions of one module. Variables live from run to run.
class Interpreter {
public:
  Interpreter(mlir::ModuleOp module, int64_t ranks, Precision precision);
  ~Interpreter();

  int64_t ranks() const;
  State &state(int64_t rank);
  void observe(Observer observer);

  /// Rank r runs functions[r] with arguments[r]. On failure an error has been
  /// emitted, and the state is that of the middle of the run.
  llvm::LogicalResult run(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                          llvm::ArrayRef<TensorList> arguments,
                          llvm::SmallVectorImpl<TensorList> &results);

  /// All ranks run the same function.
  llvm::LogicalResult run(mlir::FunctionOpInterface function, llvm::ArrayRef<TensorList> arguments,
                          llvm::SmallVectorImpl<TensorList> &results);

private:
  std::unique_ptr<World> world;
};

/// Adds the models of all dialects to their ops.
void registerModels(mlir::DialectRegistry &registry);

} // namespace meshwright::interp

#include "Interpreter/InterpreterInterfaces.h.inc"

#endif // MESHWRIGHT_INTERPRETER_H
