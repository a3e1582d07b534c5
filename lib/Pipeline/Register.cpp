//===- Register.cpp - dialects and passes for tools -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Register.h"

#include "Dist/Dist.h"
#include "Dist/Passes.h"
#include "Train/Passes.h"
#include "Train/Train.h"
#include "meshwright/Interpreter.h"

using namespace mlir;

void meshwright::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, dist::DistDialect, func::FuncDialect, math::MathDialect,
                  train::TrainDialect>();
  interp::registerModels(registry);
}

void meshwright::registerPasses() {
  train::registerTrainPasses();
  dist::registerDistPasses();
}
