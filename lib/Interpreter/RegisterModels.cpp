//===- RegisterModels.cpp - models of all dialects --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;

void interp::registerModels(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, arith::ArithDialect *, math::MathDialect *, train::TrainDialect *) {
        attachArithModels(context);
        attachStructureModels(context);
        attachContractionModels(context);
        attachAttentionModels(context);
        attachRowModels(context);
        attachExpertModels(context);
        attachElementwiseModels(context);
        attachShapeModels(context);
        attachQuantizeModels(context);
        attachSignModels(context);
        attachSparseModels(context);
        attachOptimizerModels(context);
      });
  registry.addExtension(
      +[](MLIRContext *context, dist::DistDialect *) { attachDistModels(context); });
  registry.addExtension(
      +[](MLIRContext *context, exec::ExecDialect *) { attachExecModels(context); });
}
