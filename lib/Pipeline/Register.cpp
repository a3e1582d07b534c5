//===- Register.cpp - dialects and passes for tools -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Register.h"

#include "Dist/Dist.h"
#include "Train/Passes.h"
#include "Train/Train.h"

using namespace mlir;

void meshwright::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, dist::DistDialect, func::FuncDialect, math::MathDialect,
                  train::TrainDialect>();
}

void meshwright::registerPasses() { train::registerTrainPasses(); }
