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
#include "meshwright/AttributeTable.h"
#include "meshwright/Certify.h"
#include "meshwright/Codegen.h"
#include "meshwright/Interpreter.h"
#include "meshwright/Pipeline.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

void meshwright::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, dist::DistDialect, exec::ExecDialect, func::FuncDialect,
                  math::MathDialect, train::TrainDialect>();
  train::registerCommonAttributes(registry);
  interp::registerModels(registry);
  certify::registerRules(registry);
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

void meshwright::printAttributes(raw_ostream &os) {
  for (ArrayRef<KnownAttribute> table : {train::knownAttributes(), dist::knownAttributes(),
                                         exec::knownAttributes(), train::commonAttributes()})
    for (const KnownAttribute &row : table)
      os << row.name << "\t" << row.type.text << "\t" << row.type.example << "\t" << row.place.text
         << "\t" << phaseNames[unsigned(row.first)] << "\t" << phaseNames[unsigned(row.last)] << "\t"
         << row.writer << "\t" << row.meaning << "\n";
}
