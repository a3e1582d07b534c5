//===- ProgramEmitter.h - exec programs as functions ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A program becomes a function of the host that calls the runtime for one op after the
// other. Addresses, loops, calls, products and collectives are the same for every target.
// A target derives its own emitter, which runs kernels and attention and writes bytes.
//
// An address is computed where it is used, and what all of a function uses is kept on its stack:
// the time of LLVM's register allocation grows with the square of a register's uses in a block, and
// a model with many different layers has tens of thousands of calls in one.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_PROGRAMEMITTER_H
#define MESHWRIGHT_CODEGEN_PROGRAMEMITTER_H

#include "Exec/Quantize.h"
#include "Codegen/ModuleKernels.h"
#include "meshwright/Communication.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace meshwright::codegen {

class ProgramEmitter {
public:
  /// The module that receives a program's functions, and the facts they are made from.
  struct Scope {
    mlir::ModuleOp target;
    mlir::SymbolTable &symbols; ///< of `target`
    const ScheduledKernels &kernels;
    const Communication &communication;
    const cost::KernelRows &rows; ///< of the program's plan, whose numbers spans have
    mlir::StringRef suffix; ///< distinguishes the functions of several programs
  };
  explicit ProgramEmitter(const Scope &scope)
      : target(scope.target), symbols(scope.symbols), b(target.getContext()), loc(target.getLoc()),
        ptr(mlir::LLVM::LLVMPointerType::get(b.getContext())), kernels(scope.kernels),
        communication(scope.communication), rows(scope.rows), suffix(scope.suffix) {}
  virtual ~ProgramEmitter() = default;

  mlir::LogicalResult emit(exec::ProgramOp program);

protected:
  //===--- the target's part ------------------------------------------------===//
  /// Runs the loop nests of `kernelLoops`.
  virtual mlir::LogicalResult launch(exec::LaunchOp op, const KernelLoops &kernelLoops) = 0;
  virtual mlir::LogicalResult product(exec::MatmulOp op) = 0;
  virtual mlir::LogicalResult product(exec::ScaledMatmulOp op);
  virtual mlir::LogicalResult attention(exec::AttentionOp op) = 0;
  virtual mlir::LogicalResult attention(exec::AttentionGradOp op) = 0;
  /// The order of rows of experts, and products with their matrices.
  virtual mlir::LogicalResult experts(mlir::Operation *op) = 0;
  virtual void copy(mlir::Value to, mlir::Value from, int64_t bytes) = 0;
  /// Writes one i32, or reads one for the host to go on by.
  virtual void store(mlir::Value number, mlir::Value to) = 0;
  virtual mlir::Value load(mlir::Value from) = 0;

  //===--- what it is made of -----------------------------------------------===//
  /// The MwElementType of what is in `memory`.
  mlir::Value elementType(mlir::Value memory);
  /// Calls the runtime's function `name` with the context and `arguments`; its
  /// result, if it has one.
  mlir::Value call(mlir::StringRef name, llvm::SmallVector<mlir::Value> arguments,
                   mlir::Type result = {});
  /// The address of `memory`; none of none.
  mlir::Value at(mlir::Value memory) {
    Address address = memory ? known.lookup(memory) : Address();
    mlir::Value base = address.isKept ? reload(ptr, address.base) : address.base;
    return address.bytes ? offset(base, i64(address.bytes)) : base;
  }
  mlir::Value orNull(mlir::Value address) {
    return address ? address : mlir::LLVM::ZeroOp::create(b, loc, ptr).getResult();
  }
  /// An array of the addresses of `memory`, valid until the next call.
  mlir::Value addresses(mlir::ValueRange memory);
  mlir::Value i64(int64_t value) { return mlir::arith::ConstantIntOp::create(b, loc, value, 64); }
  mlir::Value i32(int64_t value) { return mlir::arith::ConstantIntOp::create(b, loc, value, 32); }
  mlir::Value f32(double value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  }
  /// Stack memory made once a program, also for ops in loops.
  mlir::Value stack(mlir::Type type, int64_t count);

  mlir::ModuleOp target;
  mlir::SymbolTable &symbols;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::Type ptr;

private:
  mlir::LogicalResult emit(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult call(const Collective &collective, int64_t number);
  void call(exec::CallOp op);
  /// The address of a string, with a zero at its end.
  mlir::Value text(mlir::StringRef value);
  /// Opens a span of the runtime's trace; `mw_end` closes it.
  void beginSpan(mlir::Operation &op);
  mlir::Value constants(const std::string &name, llvm::ArrayRef<int64_t> values);
  mlir::Value segments(const Collective &collective);
  /// The function of a program: its arguments are the context, where its buffers are,
  /// and, of a private one, the addresses that its callers give.
  mlir::LLVM::LLVMFuncOp declare(mlir::StringRef program, size_t arguments);
  /// This rank's rank in the group along `axes`.
  mlir::Value groupRank(mlir::ArrayAttr axes);
  /// ... of the rank that is `shift` further, modulo `members`.
  mlir::Value groupRank(mlir::ArrayAttr axes, int64_t shift, int64_t members);
  mlir::Value offset(mlir::Value base, mlir::Value bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base, mlir::ValueRange{bytes});
  }

  /// Where the address of a space's arena is kept.
  mlir::Value arenaOf(MemorySpace space);
  /// Stores a value of the function's first block on the stack; where.
  mlir::Value keep(mlir::Value value);
  mlir::Value reload(mlir::Type type, mlir::Value slot) {
    return mlir::LLVM::LoadOp::create(b, loc, type, slot);
  }

  const ScheduledKernels &kernels;
  const Communication &communication;
  const cost::KernelRows &rows;
  mlir::StringRef suffix;
  mlir::LLVM::LLVMFuncOp function;
  mlir::Operation *lastKept = nullptr; ///< the last store of `keep`
  mlir::Value operands;
  mlir::Value context, arena; ///< where they are kept
  BySpace<mlir::Value> offloaded; ///< where the addresses of other arenas are kept
  llvm::DenseMap<mlir::Attribute, mlir::Value> groupRanks; ///< where they are kept, by the group's axes
  /// An address, or a loop's index.
  struct Address {
    mlir::Value base;
    int64_t bytes = 0;   ///< after `base`
    bool isKept = false; ///< `base` is where it is kept
  };
  llvm::DenseMap<mlir::Value, Address> known; ///< of memory
};

/// Makes the emitter of one program.
using MakeEmitter =
    llvm::function_ref<std::unique_ptr<ProgramEmitter>(const ProgramEmitter::Scope &)>;

/// Adds to `target` the functions of the programs of `kernels`' module, named as ABI.h
/// says.
mlir::LogicalResult emitPrograms(const ModuleKernels &kernels, mlir::ModuleOp target,
                                 MakeEmitter make);

/// Adds a text and its size, as meshwright_NAME in section .meshwright.NAME; nothing for an empty one.
void emitText(mlir::ModuleOp target, llvm::StringRef name, llvm::StringRef text);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_PROGRAMEMITTER_H
