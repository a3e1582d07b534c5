//===- FunctionUtils.h - building functions from functions ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_FUNCTIONUTILS_H
#define MESHWRIGHT_LIB_TRAIN_FUNCTIONUTILS_H

#include "Train/Constant.h"
#include "Train/Train.h"

#include "mlir/IR/IRMapping.h"

namespace meshwright::train {

/// A new empty function after the last of `module`, its body open at `builder`. Where `name` is
/// taken it gets another that begins like it.
mlir::func::FuncOp createFunction(mlir::ModuleOp module, mlir::OpBuilder &builder,
                                  mlir::Location loc, llvm::StringRef name,
                                  mlir::TypeRange arguments, mlir::TypeRange results);

/// Refuses an op of `module` that has the name which `what`, a function that others look up by
/// name, will have.
mlir::LogicalResult checkNameIsFree(mlir::ModuleOp module, llvm::StringRef name,
                                    llvm::StringRef what);
/// ... where many names are checked, with the module's table.
mlir::LogicalResult checkNameIsFree(const mlir::SymbolTable &symbols, llvm::StringRef name,
                                    llvm::StringRef what);

/// Ends `function` by returning `values` and makes its type fit.
void finishFunction(mlir::func::FuncOp function, mlir::OpBuilder &builder, mlir::ValueRange values);

/// Clones the body of `function` at `builder` with `arguments` for its
/// arguments, whose names they take; what it returned.
llvm::SmallVector<mlir::Value> inlineBody(mlir::func::FuncOp function, mlir::OpBuilder &builder,
                                          mlir::ValueRange arguments);

/// Gives `to`'s first arguments the attributes and names of `from`'s.
void copyArgumentAttrs(mlir::func::FuncOp from, mlir::func::FuncOp to);

/// The argument called `name` by `train.input`, or null.
mlir::BlockArgument inputNamed(mlir::func::FuncOp function, llvm::StringRef name);

/// A location whose values are printed as %name. Reports still name the part that `location` names.
mlir::Location nameLocation(llvm::StringRef name, mlir::Location location);

/// A tensor of zeros.
mlir::Value zeros(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);

/// Products of a layer of which routing decisions are made: routers.
mlir::DenseSet<mlir::Operation *> routersIn(mlir::func::FuncOp layer);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_FUNCTIONUTILS_H
