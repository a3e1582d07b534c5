//===- Optimizer.cpp - the table of optimizers ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Optimizer.h"
#include "meshwright/runtime/Averages.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;
using namespace meshwright::train::formula;

namespace meshwright::train {
#define OPTIMIZER(ROW) extern const Optimizer ROW;
#include "Train/Optimizers.def"
} // namespace meshwright::train

static std::vector<const Optimizer *> &rows() {
  static std::vector<const Optimizer *> rows = {
#define OPTIMIZER(ROW) &ROW,
#include "Train/Optimizers.def"
  };
  return rows;
}

ArrayRef<const Optimizer *> train::optimizers() { return rows(); }

void train::registerOptimizer(const Optimizer &row) {
  // Two plugins, or two versions of one, would train with whichever comes first.
  if (findOptimizer(row.name))
    llvm::reportFatalUsageError("there is an optimizer called '" + row.name + "' already; give yours another name");
  rows().push_back(&row);
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
  return llvm::is_contained({"lr", "grad_clip", "loss_scale", averageDecay, averageCorrection}, name) ||
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
  if (gradientOffset())
    names.push_back(updateWeight);
  return names;
}

bool Optimizer::keeps(StringRef state) const {
  return llvm::any_of(states, [&](const OptimizerState &row) { return row.name == state; }) ||
         llvm::any_of(means, [&](const MeanSquare &row) { return row.name == state; }) ||
         (elsewhere && elsewhere->keeps(state));
}

std::string train::amaxOf(StringRef state) { return (state + "_amax").str(); }

const OptimizerState *Optimizer::gradientOffset() const {
  const auto *found =
      llvm::find_if(states, [](const OptimizerState &state) { return state.isGradientOffset; });
  return found == states.end() ? nullptr : found;
}

//===--- formulas -------------------------------------------------------------===//

/// `value` times `factor`, which is no op where that is 1.
static Expr scaled(Expr value, double factor) { return factor == 1 ? value : value * factor; }

static double factorOr1(std::optional<llvm::APFloat> factor) {
  return factor ? factor->convertToDouble() : 1;
}

/// The number of an update's operands before its scalars.
static size_t tensorsOf(const Optimizer &optimizer) {
  return 2 + optimizer.states.size() + optimizer.hasDirection();
}

UpdateInputs::UpdateInputs(UpdateOp op, OpBuilder &builder, ValueRange operands)
    : UpdateInputs(op, *findOptimizer(op.getOptimizer()), builder, operands) {}

UpdateInputs::UpdateInputs(UpdateOp op, const Optimizer &optimizer, OpBuilder &builder,
                           ValueRange operands)
    : parameter(expr(builder, op.getLoc(), operands[0])), gradient(parameter.with(operands[1])),
      clip(parameter.with(operands[tensorsOf(optimizer)])),
      lr(scaled(parameter.with(operands[tensorsOf(optimizer) + 1]), factorOr1(op.getLrFactor()))),
      decays(op.getDecay()), optimizer(optimizer), decayFactor(factorOr1(op.getDecayFactor())),
      states(operands.slice(2, optimizer.states.size())),
      scalars(operands.drop_front(tensorsOf(optimizer) + 2)) {
  if (optimizer.hasDirection())
    direction = parameter.with(operands[tensorsOf(optimizer) - 1]);
}

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
  if (optimizer.hasDirection())
    text += ", " + whole;
  for (size_t i = 0; i < 2 + optimizer.scalars().size(); ++i)
    text += ", ";
  return text + " -> " + results;
}

ShardingRule UpdateOp::getShardingRule() {
  return ruleOf(*this, ruleText(*findOptimizer(getOptimizer())));
}

OpOperand *UpdateOp::getDirection() {
  const Optimizer &optimizer = *findOptimizer(getOptimizer());
  return optimizer.hasDirection() ? &getOperation()->getOpOperand(tensorsOf(optimizer) - 1)
                                  : nullptr;
}

LogicalResult UpdateOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  const Optimizer *row = findOptimizer(adaptor.getOptimizer());
  if (!row)
    return emitOptionalError(location, "'train.update' op optimizer ",
                             notAmong(adaptor.getOptimizer(), optimizerNames()));
  size_t others = tensorsOf(*row) + row->scalars().size();
  if (adaptor.getOthers().size() != others)
    return emitOptionalError(
        location, "'train.update' op of \"", row->name, "\" has ", adaptor.getOthers().size(),
        " operands behind the gradient, expected ", others, ": its states (",
        llvm::join(llvm::map_range(row->states, [](auto &state) { return state.name; }), ", "),
        row->hasDirection() ? "), the direction, the clip factor" : "), the clip factor",
        ", the learning rate and its scalars (", llvm::join(row->scalars(), ", "),
        ")");
  return inferFromRule("update", ruleText(*row), location, adaptor.getOperands().getTypes(), types);
}

//===--- plans ----------------------------------------------------------------===//

/// The names of a plan's rows that it has already.
template <typename Rows> static bool hasRow(const Rows &rows, StringRef name) {
  return llvm::any_of(rows, [&](const auto &row) { return row.name == name; });
}

static void addRow(const Optimizer &optimizer, plan::Header &plan) {
  auto addState = [&](StringRef name) {
    if (!llvm::is_contained(plan.optimizerStates, name))
      plan.optimizerStates.push_back(name.str());
  };
  for (const OptimizerState &state : optimizer.states) {
    addState(state.name);
    if (optimizer.quantizesStates)
      addState(amaxOf(state.name));
  }
  for (const MeanSquare &mean : optimizer.means)
    addState(mean.name);
  for (const Hyperparameter &number : optimizer.hyperparameters) {
    if (hasRow(plan.hyperparameters, number.name))
      continue;
    plan::Hyperparameter entry{
        number.name.str(), number.help.str(), number.initial, number.most, {}};
    if (!number.decayOf.empty())
      entry.decayOf = number.decayOf.str();
    plan.hyperparameters.push_back(entry);
  }
  for (const BiasCorrection &correction : optimizer.corrections)
    if (!hasRow(plan.biasCorrections, correction.name)) {
      plan.biasCorrections.push_back({correction.name.str(), correction.of.str(), {}});
      if (correction.isPower)
        plan.biasCorrections.back().power = true;
    }
}

void train::addToPlan(const Optimizer &optimizer, plan::Header &plan) {
  plan.optimizer = optimizer.name.str();
  addRow(optimizer, plan);
  if (optimizer.elsewhere)
    addRow(*optimizer.elsewhere, plan);
}

void train::addAveragesToPlan(plan::Header &plan) {
  plan.optimizerStates.push_back(averageState);
  plan.hyperparameters.push_back(
      {averageDecay, "decay of the average of parameters", 0.999, belowOne, {}});
  plan.biasCorrections.push_back({averageCorrection, averageDecay, {}});
}

bool train::keepsAverages(ModuleOp module) {
  bool found = false;
  module.walk([&](VariableOp variable) { found |= variable.getRole() == averageState; });
  return found;
}

//===--- options --------------------------------------------------------------===//

llvm::Error train::parseOption(StringRef text, const Optimizer *&optimizer) {
  // The only one of its kind goes without the name of what it is made of, too.
  optimizer = findOptimizer(text == "schedule-free" ? "schedule-free-adamw" : text);
  return optimizer ? llvm::Error::success()
                   : llvm::createStringError(notAmong(text, optimizerNames()));
}

std::string train::optionText(const Optimizer *optimizer) { return optimizer->name.str(); }
