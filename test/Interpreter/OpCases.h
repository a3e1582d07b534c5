//===- OpCases.h - one small function per op --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_INTERPRETER_OPCASES_H
#define MESHWRIGHT_TEST_INTERPRETER_OPCASES_H

#include "Interpreter/Compare.h"
#include "Train/Train.h"
#include "meshwright/Register.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

namespace meshwright::interp {

/// The functions of Inputs/ops.mlir, each around one op.
class OpCases {
public:
  OpCases() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
    module = mlir::parseSourceFile<mlir::ModuleOp>(MESHWRIGHT_OP_CASES, &context);
  }

  /// Calls `check(function, op)` for every function whose op has the interface,
  /// and fails for registered train ops that have it but no function.
  template <typename Interface, typename Check> void forEach(Check check) {
    ASSERT_TRUE(module) << "cannot parse " << MESHWRIGHT_OP_CASES;
    llvm::DenseSet<mlir::OperationName> seen;
    for (auto function : module->getOps<mlir::func::FuncOp>()) {
      mlir::Operation *op = &function.getBody().front().front();
      if (!mlir::isa<Interface>(op))
        continue;
      seen.insert(op->getName());
      SCOPED_TRACE(function.getSymName().str());
      check(function, op);
    }
    for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
      if (name.getDialectNamespace() == "train" && name.hasInterface<Interface>())
        EXPECT_TRUE(seen.contains(name))
            << name.getStringRef().str() << " has no function in " << MESHWRIGHT_OP_CASES;
  }

  /// Random arguments for a function.
  static TensorList arguments(mlir::func::FuncOp function) {
    TensorList values;
    for (mlir::BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      values.push_back(randomTensor(mlir::cast<mlir::RankedTensorType>(argument.getType()),
                                    function.getSymName().str() + std::to_string(i), 1, 3));
      if (auto given = function.getArgAttrOfType<mlir::DenseI64ArrayAttr>(i, "test.values"))
        values.back().isFloat() ? (void)llvm::copy(given.asArrayRef(), values.back().writeFloats())
                                : (void)llvm::copy(given.asArrayRef(), values.back().writeIntegers());
      if (function.getArgAttr(i, "test.one"))
        std::fill_n(values.back().writeFloats(), values.back().size(), 1.0);
      bool aboveOne = bool(function.getArgAttr(i, "test.above_one"));
      if (!aboveOne && !function.getArgAttr(i, "test.positive"))
        continue;
      double *data = values.back().writeFloats();
      for (int64_t j = 0; j < values.back().size(); ++j)
        data[j] = std::abs(data[j]) + (aboveOne ? 1 : 0);
    }
    return values;
  }

  /// Runs a function of the module.
  TensorList run(mlir::func::FuncOp function, const TensorList &arguments) {
    Interpreter interpreter(*module, 1, Precision::F64);
    llvm::SmallVector<TensorList> results;
    if (failed(interpreter.run(function, {arguments}, results))) {
      ADD_FAILURE() << "@" << function.getSymName().str() << " cannot be interpreted";
      return TensorList(function.getNumResults(), Tensor());
    }
    return results[0];
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace meshwright::interp

#endif // MESHWRIGHT_TEST_INTERPRETER_OPCASES_H
