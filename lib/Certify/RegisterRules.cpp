//===- RegisterRules.cpp - rules of all dialects -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"
#include "meshwright/Certify.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;

void certify::registerRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *) {
    attachStructureRules(context);
    attachElementwiseRules(context);
    attachShapeRules(context);
    attachReshapeRule(context);
    attachProductRules(context);
    attachQuantizeRules(context);
    attachSignRules(context);
    attachSparseRules(context);
    attachRowRules(context);
    attachAttentionRules(context);
    attachOptimizerRules(context);
    attachExpertRules(context);
  });
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *, dist::DistDialect *) {
    attachIdRules(context);
    attachCollectiveRules(context);
    attachTakeRule(context);
    attachExchangeRule(context);
  });
  registry.addExtension(
      +[](MLIRContext *context, func::FuncDialect *) { attachCallRule(context); });
}
