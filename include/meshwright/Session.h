//===- Session.h - running a module on global tensors -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What a module computes seen from outside: global inputs, global variables and
// global results, whether the module is global or has been partitioned. So IR
// from before and after partitioning can be run alike and compared.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_SESSION_H
#define MESHWRIGHT_SESSION_H

#include "Dist/Dist.h"
#include "meshwright/Interpreter.h"

namespace meshwright::interp {

/// Whether the module holds one device's program: it has collectives or values
/// that say what they are part of (`dist.global`).
bool isPartitioned(mlir::ModuleOp module);

class Session {
public:
  /// `ranks` 0 stands for as many as the module needs: one for a global module,
  /// those of its mesh for a partitioned one. Fails with an error if another
  /// number is asked for.
  static llvm::FailureOr<Session> create(mlir::ModuleOp module, int64_t ranks, Precision precision);

  mlir::ModuleOp module() const { return op; }
  int64_t ranks() const { return interpreter->ranks(); }
  /// The function called `name` (where devices run several programs, rank 0's), or null
  /// after an error that lists those there are.
  mlir::FunctionOpInterface lookup(llvm::StringRef name) const;
  /// Those of all programs; one that several programs hold once.
  llvm::SmallVector<train::VariableOp> variables() const;

  /// The variable's logical global type, without padding.
  mlir::RankedTensorType globalType(train::VariableOp variable) const;
  mlir::RankedTensorType globalArgument(mlir::FunctionOpInterface function, unsigned i) const;
  /// The device groups that hold different parts of dimension `dim` of an argument.
  int64_t partsOfArgument(mlir::FunctionOpInterface function, unsigned i, unsigned dim) const;
  /// The name an argument or result goes by: its `train.input` (`train.output`,
  /// `train.gradient_of`) or "arg0" ("result0").
  static std::string argumentName(mlir::FunctionOpInterface function, unsigned i);
  static std::string resultName(mlir::FunctionOpInterface function, unsigned i);

  void setVariable(train::VariableOp variable, const Tensor &global);
  llvm::FailureOr<Tensor> getVariable(train::VariableOp variable) const;
  llvm::LogicalResult run(mlir::FunctionOpInterface function, llvm::ArrayRef<Tensor> arguments,
                          TensorList &results);
  /// Watches every op that runs from here on.
  void observe(Observer observer) { interpreter->observe(std::move(observer)); }

private:
  Session(mlir::ModuleOp module, std::unique_ptr<Interpreter> interpreter, dist::Mesh mesh);

  TensorList scatter(const Tensor &global, mlir::Attribute globalType) const;
  llvm::FailureOr<Tensor> gather(llvm::ArrayRef<Tensor> parts, mlir::Attribute globalType,
                                 mlir::Operation *at, llvm::StringRef what) const;

  /// Whether the program of `rank` has this variable.
  bool has(int64_t rank, train::VariableOp variable) const;

  mutable mlir::ModuleOp op; // MLIR's handles are not const-correct
  /// What each rank runs: one of the module's programs or the module itself.
  mutable llvm::SmallVector<mlir::ModuleOp> programs;
  std::unique_ptr<Interpreter> interpreter;
  dist::Mesh mesh;
};

} // namespace meshwright::interp

#endif // MESHWRIGHT_SESSION_H
