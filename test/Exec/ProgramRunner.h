//===- ProgramRunner.h - runs the memory form, slowly ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Executes an exec.program in an arena of its planned size at its planned offsets,
// so that a buffer that should not have been shared shows. Kernels and attention
// are run by the interpreter on what memory holds. A copy that is only started is made as
// late as possible, when the program waits for it, and its target holds nothing until then. One device, in f64: element types
// say only how many bytes a number takes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_EXEC_PROGRAMRUNNER_H
#define MESHWRIGHT_TEST_EXEC_PROGRAMRUNNER_H

#include "Exec/Exec.h"
#include "meshwright/Session.h"

namespace meshwright::exec {

class ProgramRunner {
public:
  explicit ProgramRunner(mlir::ModuleOp module);

  /// What a variable, an input or an output holds.
  void write(llvm::StringRef name, const interp::Tensor &value);
  interp::Tensor read(llvm::StringRef name) const;

  mlir::LogicalResult run(llvm::StringRef program);

private:
  mlir::LogicalResult runBlock(mlir::Block &block);
  mlir::LogicalResult runOp(mlir::Operation *op);
  mlir::LogicalResult call(llvm::StringRef function, mlir::ValueRange inputs,
                           mlir::ValueRange outputs);
  void matmul(MatmulOp op);
  void epilogue(exec::MatmulOp op, interp::Tensor &result);
  void scribble(mlir::Value workspace);
  void copy(CopyOp op);
  void wait(WaitOp op);
  /// The iteration number, or what is counted from it.
  int64_t indexOf(mlir::Value index);
  /// The first cell of `memory`, and cells an element takes.
  double *at(mlir::Value memory);
  static int64_t cells(mlir::Value memory);
  interp::Tensor load(mlir::Value memory);
  void store(mlir::Value memory, const interp::Tensor &value);

  mlir::ModuleOp module;
  std::optional<interp::Session> session;
  /// A cell for every two bytes; a number is in the first cell of its own.
  BySpace<std::vector<double>> arenas;
  /// Copies that have been started, in their order.
  struct Started {
    int64_t number;
    Queue queue;
    const double *from;
    double *to;
    int64_t cells;
  };
  std::vector<Started> started;
  /// Makes the first `count` of them that are in `queue`.
  void finish(Queue queue, size_t count);
  llvm::StringMap<BufferOp> persistent;
  llvm::DenseMap<mlir::Value, int64_t> indices;
  /// Of the private programs that run: where their arguments and buffers are.
  llvm::DenseMap<mlir::Value, double *> arguments;
  llvm::DenseMap<mlir::Operation *, double *> workspaces;
  llvm::DenseMap<mlir::Operation *, std::string> attentions;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_TEST_EXEC_PROGRAMRUNNER_H
