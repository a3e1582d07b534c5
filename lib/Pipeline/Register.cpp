//===- Register.cpp - dialects and passes for tools -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Register.h"

#include "Dist/Dist.h"
#include "Dist/Passes.h"
#include "Exec/Exec.h"
#include "Exec/Passes.h"
#include "Train/Passes.h"
#include "Train/Train.h"
#include "meshwright/Codegen.h"
#include "meshwright/Interpreter.h"
#include "meshwright/Pipeline.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

void meshwright::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, dist::DistDialect, exec::ExecDialect, func::FuncDialect,
                  math::MathDialect, train::TrainDialect>();
  interp::registerModels(registry);
  registerCodegen(registry);
  registerTargets();
  for (const auto &target : exec::getTargets())
    target->registerDialects(registry);
}

void meshwright::registerPasses() {
  train::registerTrainPasses();
  dist::registerDistPasses();
  exec::registerExecPasses();
  registerTransformsPasses();
  registerPipeline();
}
