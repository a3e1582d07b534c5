//===- Optimizer.cpp - the table of optimizers ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Optimizer.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

namespace meshwright::train {
#define OPTIMIZER(ROW) extern const Optimizer ROW;
#include "Train/Optimizers.def"
} // namespace meshwright::train

ArrayRef<const Optimizer *> train::optimizers() {
  static constexpr const Optimizer *rows[] = {
#define OPTIMIZER(ROW) &ROW,
#include "Train/Optimizers.def"
  };
  return rows;
}

SmallVector<StringRef> train::optimizerNames() {
  return llvm::map_to_vector(optimizers(),
                             [](const Optimizer *row) -> StringRef { return row->name; });
}

const Optimizer *train::findOptimizer(StringRef name) {
  const auto *found = llvm::find_if(optimizers(), [&](auto *row) { return row->name == name; });
  return found == optimizers().end() ? nullptr : *found;
}

bool train::isOptimizerInput(StringRef name) {
  return llvm::is_contained({"lr", "grad_clip", "loss_scale"}, name) ||
         llvm::any_of(optimizers(), [&](const Optimizer *row) {
           return llvm::is_contained(row->scalars(), name);
         });
}

SmallVector<StringRef> Optimizer::scalars() const {
  SmallVector<StringRef> names;
  for (const Hyperparameter &number : hyperparameters)
    if (number.isInput())
      names.push_back(number.name);
  for (const BiasCorrection &correction : corrections)
    names.push_back(correction.name);
  return names;
}

//===--- formulas -------------------------------------------------------------===//

/// `value` times `factor`, which is no op where that is 1.
static Expr scaled(Expr value, double factor) { return factor == 1 ? value : value * factor; }

static double factorOr1(std::optional<llvm::APFloat> factor) {
  return factor ? factor->convertToDouble() : 1;
}

UpdateInputs::UpdateInputs(UpdateOp op, OpBuilder &builder, ValueRange operands)
    : parameter(expr(builder, op.getLoc(), operands[0])), gradient(parameter.with(operands[1])),
      clip(parameter.with(operands[2 + op.getStates().size()])),
      lr(scaled(parameter.with(operands[3 + op.getStates().size()]), factorOr1(op.getLrFactor()))),
      decays(op.getDecay()), optimizer(*findOptimizer(op.getOptimizer())),
      decayFactor(factorOr1(op.getDecayFactor())), states(operands.slice(2, op.getStates().size())),
      scalars(operands.drop_front(4 + op.getStates().size())) {}

Expr UpdateInputs::state(StringRef name) const {
  for (auto [row, value] : llvm::zip_equal(optimizer.states, states))
    if (row.name == name)
      return parameter.with(value);
  llvm_unreachable("the row has no such state");
}

Expr UpdateInputs::scalar(StringRef name) const {
  for (auto [row, value] : llvm::zip_equal(optimizer.scalars(), scalars))
    if (row == name)
      return parameter.with(value);
  llvm_unreachable("the row has no such scalar");
}

Expr UpdateInputs::decay() const { return scaled(scalar("weight_decay"), decayFactor); }

SmallVector<Value> train::buildUpdate(UpdateOp op, OpBuilder &builder, ValueRange operands) {
  const Optimizer &optimizer = *findOptimizer(op.getOptimizer());
  Updated updated = optimizer.update(UpdateInputs(op, builder, operands));
  SmallVector<Value> values{updated.parameter.v};
  for (Expr state : updated.states)
    values.push_back(state.v);
  return values;
}

//===--- the op ---------------------------------------------------------------===//

/// The einsum of an update by `optimizer`.
static std::string ruleText(const Optimizer &optimizer) {
  std::string whole = "...", text = whole + ", " + whole, results = whole;
  for (size_t i = 0; i < optimizer.states.size(); ++i) {
    text += ", " + whole;
    results += ", " + whole;
  }
  for (size_t i = 0; i < 2 + optimizer.scalars().size(); ++i)
    text += ", ";
  return text + " -> " + results;
}

ShardingRule UpdateOp::getShardingRule() {
  return ruleOf(*this, ruleText(*findOptimizer(getOptimizer())));
}

LogicalResult UpdateOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  const Optimizer *row = findOptimizer(adaptor.getOptimizer());
  if (!row)
    return emitOptionalError(location, "'train.update' op optimizer ",
                             notAmong(adaptor.getOptimizer(), optimizerNames()));
  size_t others = row->states.size() + 2 + row->scalars().size();
  if (adaptor.getOthers().size() != others)
    return emitOptionalError(
        location, "'train.update' op of \"", row->name, "\" has ", adaptor.getOthers().size(),
        " operands behind the gradient, expected ", others, ": its states (",
        llvm::join(llvm::map_range(row->states, [](auto &state) { return state.name; }), ", "),
        "), the clip factor, the learning rate and its scalars (", llvm::join(row->scalars(), ", "),
        ")");
  return inferFromRule("update", ruleText(*row), location, adaptor.getOperands().getTypes(), types);
}

//===--- plans ----------------------------------------------------------------===//

void train::addToPlan(const Optimizer &optimizer, plan::Header &plan) {
  plan.optimizer = optimizer.name.str();
  for (const OptimizerState &state : optimizer.states)
    plan.optimizerStates.push_back(state.name.str());
  for (const Hyperparameter &number : optimizer.hyperparameters) {
    plan::Hyperparameter entry{
        number.name.str(), number.help.str(), number.initial, number.most, {}};
    if (!number.decayOf.empty())
      entry.decayOf = number.decayOf.str();
    plan.hyperparameters.push_back(entry);
  }
  for (const BiasCorrection &correction : optimizer.corrections)
    plan.biasCorrections.push_back({correction.name.str(), correction.of.str()});
}

//===--- options --------------------------------------------------------------===//

llvm::Error train::parseOption(StringRef text, const Optimizer *&optimizer) {
  optimizer = findOptimizer(text);
  return optimizer ? llvm::Error::success()
                   : llvm::createStringError(notAmong(text, optimizerNames()));
}

std::string train::optionText(const Optimizer *optimizer) { return optimizer->name.str(); }
