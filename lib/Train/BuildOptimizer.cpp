//===- BuildOptimizer.cpp - the parameter update ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "MeanSquares.h"
#include "OneBit.h"
#include "Orthogonalize.h"
#include "ParameterGroups.h"
#include "PowerSgd.h"
#include "QuantizedStates.h"
#include "TopK.h"
#include "Train/GradientBlocks.h"
#include "Train/Optimizer.h"
#include "Train/Passes.h"
#include "Train/Quantize.h"
#include "meshwright/runtime/Averages.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINBUILDOPTIMIZER
#include "Train/Passes.h.inc"
} // namespace meshwright::train

namespace {
class StepBuilder {
public:
  StepBuilder(ModuleOp module, const Optimizer &optimizer, const GroupedParameters &groups,
              MomentType moments, Orthogonalization orthogonalization, bool averages, const GradientCompression &compression)
      : module(module), symbols(module), builder(module.getContext()), optimizer(optimizer), groups(groups),
        orthogonalization(orthogonalization), averages(averages), compression(compression),
        stateType(moments == MomentType::bf16 ? Type(builder.getBF16Type())
                                               : Type(builder.getF32Type())) {}

  LogicalResult build(func::FuncOp gradients);
  /// Has `eval` read the averages of parameters in place of these.
  void evaluateAverages(func::FuncOp eval);

private:
  /// The scalar input called `name`, declared on first use.
  Value scalar(StringRef name);
  /// The input `eps` times `factor`, computed on first use.
  Value scaledEps(double factor);
  /// A variable beside `parameter`, of its shape or of `type`.
  VariableOp state(VariableOp parameter, StringRef role, Type element);
  /// ... that begins as `init` says, by default with zeros.
  VariableOp state(VariableOp parameter, StringRef role, RankedTensorType type, bool ofExperts, InitAttr init = {});
  /// `value` with elements of type `element`.
  Value as(Type element, Value value);
  /// How many blocks of 8-bit states a row of `parameter` has; 0 where its states are not quantized.
  int64_t blocksOf(VariableOp parameter);
  /// The variable that is updated: the parameter, or its copy in f32.
  VariableOp masterOf(VariableOp parameter);
  /// Makes gradients those at the sum of each parameter and its offset, which is computed once, at the start of
  /// the step. Its ops so far are those of `gradients`, with the results `values`.
  void offsetGradients(func::FuncOp gradients, MutableArrayRef<Value> values);
  /// `parameter` plus its offset, as it is computed with.
  Value offsetParameter(VariableOp parameter);
  Value read(VariableOp variable) {
    return GetOp::create(builder, variable.getLoc(), variable.getType(), variable.getSymName());
  }
  /// The weight of parameters in their averages after an update.
  Value averageWeight();
  /// `updated`, or `previous` where gradients have overflowed.
  Value guarded(Value updated, Value previous);
  void update(VariableOp parameter, Value gradient, Value clip);
  /// The row that updates `parameter`.
  const Optimizer &rowOf(VariableOp parameter);
  /// The direction of the step of `parameter`, whose value is `weight`, and its averages of mean squares,
  /// of which `means` are the last.
  Direct directionOf(VariableOp parameter, Value weight, Value gradient, Value clip,
                     ArrayRef<Value> states, ArrayRef<Value> means);
  /// The sum of the blocks of a gradient, compressed. What its states become waits in `compressed`.
  Value compress(VariableOp parameter, Value blocks);
  /// The average of gradients along which the updates of `parameter` go, in f32; null where its row has none.
  AverageOfGradients averageOf(VariableOp parameter);
  /// The factor that clips gradients of this norm.
  Value clipFactor(Value norm);
  /// Keeps result `i` of `gradients`, counts of tokens, and moves the bias that they balance.
  void keepTokens(func::FuncOp gradients, unsigned i, Value tokens);
  /// Puts what a step has observed before the history of `variable`, which becomes the largest of it.
  void keepAmax(VariableOp variable, Value amax);

  ModuleOp module;
  SymbolTable symbols; ///< its variables, also new ones
  OpBuilder builder;
  const Optimizer &optimizer;
  const GroupedParameters &groups;
  Orthogonalization orthogonalization;
  bool averages; ///< whether parameters' averages are kept
  const GradientCompression &compression; ///< of gradients in blocks
  Type stateType; ///< in which states are stored
  func::FuncOp step;
  bool areNamesFree = true; ///< those of the states so far
  Value weightOfLast; ///< see averageWeight
  DenseMap<Operation *, VariableOp> masters, offsets, moments; ///< by parameter
  std::map<double, Value> epsBy; ///< by factor, see scaledEps
  SmallVector<std::pair<VariableOp, Value>> compressed; ///< states of compression, and what they become
  Value check; ///< not finite where the step is to change nothing
};
} // namespace

Value StepBuilder::scalar(StringRef name) {
  assert(isOptimizerInput(name));
  if (BlockArgument argument = inputNamed(step, name))
    return argument;
  auto attrs =
      builder.getDictionaryAttr(builder.getNamedAttr(inputAttr, builder.getStringAttr(name)));
  auto type = RankedTensorType::get({}, builder.getF32Type());
  unsigned at = step.getNumArguments();
  (void)step.insertArgument(at, type, attrs, nameLocation(name, step.getLoc()));
  return step.getArgument(at);
}

Value StepBuilder::scaledEps(double factor) {
  Value eps = scalar("eps");
  if (factor == 1)
    return eps;
  Value &scaled = epsBy[factor];
  if (!scaled)
    scaled = ScaleOp::create(builder, nameLocation("scaled_eps", step.getLoc()), eps,
                             builder.getF64FloatAttr(factor));
  return scaled;
}

VariableOp StepBuilder::state(VariableOp parameter, StringRef role, Type element) {
  return state(parameter, role, withElementType(parameter.getType(), element),
               /*ofExperts=*/true);
}

VariableOp StepBuilder::state(VariableOp parameter, StringRef role, RankedTensorType type,
                              bool ofExperts, InitAttr init) {
  OpBuilder b(parameter->getContext());
  b.setInsertionPointAfter(parameter);
  auto name = (parameter.getSymName() + "." + role).str();
  areNamesFree &= succeeded(
      checkNameIsFree(symbols, name, ("the " + role + " of @" + parameter.getSymName()).str()));
  if (!init)
    init = InitAttr::get(b.getContext(), "constant", b.getF64FloatAttr(0.0));
  auto variable = VariableOp::create(
      b, nameLocation(name, parameter.getLoc()), name, type, parameter.getStacked(),
      ofExperts ? parameter.getExpertsAttr() : IntegerAttr(), init, StorageAttr(),
      FlatSymbolRefAttr::get(parameter.getSymNameAttr()), b.getStringAttr(role), StringAttr());
  symbols.insert(variable);
  return variable;
}

VariableOp StepBuilder::masterOf(VariableOp parameter) {
  Type element = parameter.getTensorType().getElementType();
  if (atLeastF32(element) == element)
    return parameter;
  VariableOp &master = masters[parameter];
  if (!master)
    master = state(parameter, "master", builder.getF32Type());
  return master;
}

Value StepBuilder::offsetParameter(VariableOp parameter) {
  Value from = read(masterOf(parameter));
  VariableOp &offset = offsets[parameter];
  offset = state(parameter, optimizer.gradientOffset()->name, stateType);
  Value sum = AddOp::create(builder, parameter.getLoc(), from, read(offset));
  return as(parameter.getTensorType().getElementType(), sum);
}

void StepBuilder::offsetGradients(func::FuncOp gradients, MutableArrayRef<Value> values) {
  // Parameters are read in the step or in the functions of its loops over microbatches.
  Block &body = step.getBody().front();
  auto reads = llvm::to_vector(body.getOps<GetOp>());
  builder.setInsertionPointToStart(&body);
  DenseMap<StringAttr, Value> sums;
  for (unsigned i = 0; i < gradients.getNumResults(); ++i)
    if (auto of = gradients.getResultAttrOfType<FlatSymbolRefAttr>(i, gradientAttr))
      if (auto variable = symbols.lookup<VariableOp>(of.getAttr()); variable.isParameter())
        sums[of.getAttr()] = offsetParameter(variable);
  auto replace = [&](GetOp get, Value sum) {
    std::replace(values.begin(), values.end(), Value(get.getValue()), sum);
    get.getValue().replaceAllUsesWith(sum);
    get.erase();
  };
  for (GetOp get : reads)
    if (Value sum = sums.lookup(get.getVariableAttr().getAttr()))
      replace(get, sum);
  for (auto loop : body.getOps<RepeatOp>()) {
    auto callee = module.lookupSymbol<func::FuncOp>(loop.getCallee());
    Block &inside = callee.getBody().front();
    for (GetOp get : llvm::to_vector(inside.getOps<GetOp>()))
      if (Value sum = sums.lookup(get.getVariableAttr().getAttr())) {
        loop.getSharedMutable().append(sum);
        replace(get, inside.addArgument(sum.getType(), get.getLoc()));
      }
    callee.setType(
        builder.getFunctionType(inside.getArgumentTypes(), callee.getResultTypes()));
  }
  builder.setInsertionPointToEnd(&body);
}

Value StepBuilder::as(Type element, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return CastOp::create(builder, value.getLoc(), withElementType(type, element), value);
}

/// (1 - d) / (1 - d^t), with which an average of all values so far has weights that fall by d and whose
/// sum is 1: the first value is the first update's.
Value StepBuilder::averageWeight() {
  if (weightOfLast)
    return weightOfLast;
  Value decay = scalar(averageDecay), correction = scalar(averageCorrection);
  Location loc = nameLocation("ema_weight", step.getLoc());
  Value one = FillOp::create(builder, loc, decay.getType(), builder.getF64FloatAttr(1));
  Value less = ScaleOp::create(builder, loc, decay, builder.getF64FloatAttr(-1));
  Value rest = AddOp::create(builder, loc, one, less);
  return weightOfLast = UnscaleOp::create(builder, loc, rest, correction);
}

Value StepBuilder::guarded(Value updated, Value previous) {
  return GuardOp::create(builder, updated.getLoc(), updated, previous, check);
}

int64_t StepBuilder::blocksOf(VariableOp parameter) {
  return rowOf(parameter).quantizesStates ? quantizedBlocks(parameter) : 0;
}

const Optimizer &StepBuilder::rowOf(VariableOp parameter) {
  return optimizer.elsewhere && !isHiddenMatrix(parameter) ? *optimizer.elsewhere : optimizer;
}

Direct StepBuilder::directionOf(VariableOp parameter, Value weight, Value gradient, Value clip,
                                ArrayRef<Value> states, ArrayRef<Value> means) {
  Location loc = parameter.getLoc();
  Value clipped = MulOp::create(builder, loc, as(builder.getF32Type(), gradient), clip);
  if (!optimizer.orthogonalizes())
    return factoredDirection(parameter, clipped, means,
                             {scalar("beta2_weight"), scalar("eps"),
                              optimizer.direction == Direction::scaled ? weight : Value()},
                             builder);
  // Nesterov: where the average will be if the next gradient is this one.
  Value mu = scalar("momentum");
  Value average = LerpOp::create(builder, loc, clipped, states[0], mu);
  Value ahead = LerpOp::create(builder, loc, clipped, average, mu);
  double factor = orthogonalFactor(parameter, orthogonalization.scale);
  if (optimizer.direction == Direction::orthogonalized)
    return {orthogonalize(parameter, ahead, factor, orthogonalization, builder), {}};
  Value orthogonal = orthogonalize(parameter, ahead, /*factor=*/1, orthogonalization, builder);
  return normalizedDirection(parameter, orthogonal, means[0], scalar("beta2"), factor, builder);
}

void StepBuilder::update(VariableOp parameter, Value gradient, Value clip) {
  Location loc = parameter.getLoc();
  const Optimizer &optimizer = rowOf(parameter);
  auto get = [&](VariableOp variable) { return read(variable); };
  auto set = [&](VariableOp variable, Value value) {
    SetOp::create(builder, loc, variable.getSymName(), value);
  };
  VariableOp master = masterOf(parameter);
  Value weight = get(master);
  VariableOp average;
  if (averages)
    average = state(parameter, averageState, builder.getF32Type());
  auto setWeight = [&](Value updated) {
    updated = guarded(updated, weight);
    set(master, updated);
    if (master != parameter)
      set(parameter, CastOp::create(builder, loc, parameter.getType(), updated));
    if (!averages)
      return;
    Value old = get(average);
    Value moved = LerpOp::create(builder, loc, old, updated, averageWeight());
    set(average, guarded(moved, old));
  };
  // A state is inserted directly behind the parameter.
  SmallVector<MeanSquare> rows = meansOf(optimizer, parameter);
  SmallVector<VariableOp> states(optimizer.states.size()), means(rows.size());
  for (size_t i = means.size(); i-- > 0;)
    means[i] = state(parameter, rows[i].name, meanType(parameter, rows[i].of), /*ofExperts=*/true);
  int64_t blocks = blocksOf(parameter);
  SmallVector<VariableOp> amaxes(blocks ? states.size() : 0);
  for (size_t i = states.size(); i-- > 0;) {
    StringRef name = optimizer.states[i].name;
    if (blocks)
      amaxes[i] = state(parameter, amaxOf(name), blockType(parameter, blocks), /*ofExperts=*/true);
    states[i] = optimizer.states[i].isGradientOffset ? offsets.lookup(parameter)
                : !optimizer.states[i].decay.empty() && moments.count(parameter)
                    ? moments.lookup(parameter)
                    : state(parameter, name, blocks ? builder.getI8Type() : stateType);
  }
  SmallVector<Value> old, oldAmaxes = llvm::map_to_vector(amaxes, get), operands{weight, gradient};
  for (VariableOp state : states)
    old.push_back(get(state));
  auto number = [&](size_t i) -> Value {
    if (!blocks)
      return as(builder.getF32Type(), old[i]);
    Type type = withElementType(old[i].getType(), builder.getF32Type());
    return DequantizeBlocksOp::create(builder, loc, type, old[i], oldAmaxes[i], !optimizer.states[i].isPositive);
  };
  for (size_t i = 0; i < states.size(); ++i)
    operands.push_back(number(i));
  if (optimizer.hasDirection()) {
    SmallVector<Value> before = llvm::map_to_vector(means, get);
    Direct direct = directionOf(parameter, weight, gradient, clip,
                                ArrayRef(operands).drop_front(2), before);
    operands.push_back(direct.direction);
    for (auto [variable, updated, previous] : llvm::zip_equal(means, direct.averages, before))
      set(variable, guarded(updated, previous));
  }
  operands.append({clip, scalar("lr")});
  UpdateFactors factors = groups.factorsOf(parameter);
  for (StringRef name : optimizer.scalars())
    operands.push_back(name == "eps" ? scaledEps(factors.eps) : scalar(name));
  SmallVector<Type> types{weight.getType()};
  for (Value value : ArrayRef(operands).slice(2, states.size()))
    types.push_back(value.getType());
  auto factor = [&](double value) {
    return value == 1 ? FloatAttr() : builder.getF64FloatAttr(value);
  };
  bool decays = factors.decay != 0;
  auto update = UpdateOp::create(builder, loc, types, optimizer.name, operands[0], operands[1],
                                 ArrayRef(operands).drop_front(2), decays, factor(factors.rate),
                                 factor(decays ? factors.decay : 1));
  setWeight(update.getUpdated());
  for (auto [i, updated] : llvm::enumerate(update.getStates())) {
    if (!blocks) {
      set(states[i], guarded(as(stateType, updated), old[i]));
      continue;
    }
    int64_t length = parameter.getTensorType().getShape().back() / blocks;
    Value amax = BlockAmaxOp::create(builder, loc, oldAmaxes[i].getType(), updated, length);
    Value codes = QuantizeBlocksOp::create(builder, loc, old[i].getType(), updated, amax,
                                           !optimizer.states[i].isPositive);
    set(states[i], guarded(codes, old[i]));
    set(amaxes[i], guarded(amax, oldAmaxes[i]));
  }
}

AverageOfGradients StepBuilder::averageOf(VariableOp parameter) {
  const OptimizerState *row = llvm::find_if(rowOf(parameter).states, [](const OptimizerState &state) { return !state.decay.empty(); });
  if (row == rowOf(parameter).states.end())
    return {};
  VariableOp average = moments[parameter] = state(parameter, row->name, stateType);
  return {as(builder.getF32Type(), read(average)), scalar(row->decay)};
}

Value StepBuilder::clipFactor(Value norm) {
  // Signs have another norm than the gradients that they are made of, with which clipping would have little to do.
  if (compression.signs)
    return FillOp::create(builder, nameLocation("clip", step.getLoc()), norm.getType(), builder.getF64FloatAttr(1));
  return ClipFactorOp::create(builder, step.getLoc(), norm, scalar("grad_clip"));
}

Value StepBuilder::compress(VariableOp parameter, Value blocks) {
  VariableOp factor;
  if (compression.rank) {
    auto normal = InitAttr::get(builder.getContext(), "normal", builder.getF64FloatAttr(1));
    factor = state(parameter, factorRole, factorType(parameter, compression.rank), /*ofExperts=*/false, normal);
  }
  RankedTensorType type = withElementType(blocks.getType(), builder.getF32Type());
  VariableOp residual = state(parameter, residualRole, type, /*ofExperts=*/false);
  if (compression.signs) {
    VariableOp server = state(parameter, serverResidualRole, builder.getF32Type());
    OneBit result = signsOf(parameter, blocks, read(residual), read(server), averageOf(parameter), builder);
    compressed.append({{residual, result.residual}, {server, result.serverResidual}});
    return result.gradient;
  }
  if (compression.density) {
    Sparse result = largest(parameter, blocks, read(residual), compression.density, builder);
    compressed.push_back({residual, result.residual});
    return result.gradient;
  }
  LowRank result = approximate(parameter, blocks, read(residual), read(factor), builder);
  compressed.append({{residual, result.residual}, {factor, result.factor}});
  return result.gradient;
}

void StepBuilder::keepTokens(func::FuncOp gradients, unsigned i, Value tokens) {
  Location loc = tokens.getLoc();
  auto router = module.lookupSymbol<VariableOp>(tokensOf(gradients, i).getAttr());
  auto type = cast<RankedTensorType>(tokens.getType());
  VariableOp counter = state(router, tokensRole, type, /*ofExperts=*/false);
  SetOp::create(builder, loc, counter.getSymName(), tokens);
  auto balances = gradients.getResultAttrOfType<FlatSymbolRefAttr>(i, balancesAttr);
  if (!balances)
    return;
  auto bias = module.lookupSymbol<VariableOp>(balances.getAttr());
  if (bias->hasAttr(frozenAttr))
    return;
  Value old = GetOp::create(builder, bias.getLoc(), bias.getType(), bias.getSymName());
  // It may be a row of as many elements.
  if (tokens.getType() != bias.getType())
    tokens = ReshapeOp::create(builder, loc, bias.getType(), tokens);
  Value updated = BalanceOp::create(builder, bias.getLoc(), old, tokens,
                                    bias->getAttrOfType<FloatAttr>(balanceRateAttr));
  SetOp::create(builder, loc, bias.getSymName(), guarded(updated, old));
}

void StepBuilder::keepAmax(VariableOp variable, Value amax) {
  Location loc = variable.getLoc();
  auto parameter = symbols.lookup<VariableOp>(*variable.getOf());
  std::string role = (*variable.getRole() + historySuffix).str();
  OpBuilder b(variable->getContext());
  b.setInsertionPointAfter(variable);
  areNamesFree &= succeeded(checkNameIsFree(symbols, (parameter.getSymName() + "." + role).str(),
                                            ("the " + role + " of @" + parameter.getSymName()).str()));
  VariableOp history = makeStateOfScaling(b, parameter, role, {stepsOfHistory});
  symbols.insert(history);
  Value old = read(history);
  int64_t layers = history.getTensorType().getDimSize(0);
  Value column = ReshapeOp::create(builder, loc, history.getTensorType().clone({layers, 1}), amax);
  Value last = PadOp::create(builder, loc, column, /*rows=*/stepsOfHistory, /*dim=*/1);
  Value before = PadOp::create(builder, loc, SliceOp::create(builder, loc, old, stepsOfHistory - 1, /*dim=*/1, /*from=*/0),
                               /*rows=*/stepsOfHistory, /*dim=*/1, /*value=*/0, /*from=*/1);
  Value updated = AddOp::create(builder, loc, before, last);
  Value largest = ReduceOp::create(builder, loc, ReduceKind::Max, updated, {1});
  SetOp::create(builder, loc, history.getSymName(), guarded(updated, old));
  SetOp::create(builder, loc, variable.getSymName(), guarded(largest, read(variable)));
}

LogicalResult StepBuilder::build(func::FuncOp gradients) {
  Location loc = gradients.getLoc();
  step = createFunction(module, builder, loc, "step", gradients.getArgumentTypes(), {});
  step.setPublic();
  copyArgumentAttrs(gradients, step);
  SmallVector<Value> values = inlineBody(gradients, builder, step.getArguments());
  if (optimizer.gradientOffset())
    offsetGradients(gradients, values);

  // The loss, what else is reported, and gradients.
  SmallVector<Value> outputs, squares;
  SmallVector<Attribute> names;
  SmallVector<std::pair<VariableOp, Value>> updates, observed;
  SmallVector<std::pair<unsigned, Value>> counts;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (tokensOf(gradients, i)) {
      counts.push_back({i, value});
      continue;
    }
    auto of = gradients.getResultAttrOfType<FlatSymbolRefAttr>(i, gradientAttr);
    if (of) {
      auto parameter = symbols.lookup<VariableOp>(of.getAttr());
      if (isObserved(parameter)) {
        observed.push_back({parameter, value});
        continue;
      }
      if (cast<RankedTensorType>(value.getType()).getRank() > parameter.getTensorType().getRank())
        value = compress(parameter, value);
      updates.push_back({parameter, value});
      squares.push_back(SquareSumOp::create(builder, nameLocation("square_sum", loc), value));
      continue;
    }
    outputs.push_back(value);
    names.push_back(builder.getStringAttr(outputName(gradients, i)));
  }
  Value norm = GlobalNormOp::create(builder, nameLocation("grad_norm", loc), squares);
  // Scaled gradients: their norm and the factor that clips them are unscaled
  // instead of each element.
  bool scaled = module->hasAttr(lossScalingAttr);
  auto unscaled = [&](Value value) -> Value {
    return scaled ? UnscaleOp::create(builder, loc, value, scalar("loss_scale")) : value;
  };
  norm = unscaled(norm);
  // A gradient that is not finite would end in every weight, where no run could go on from.
  check = norm;
  Value clip = unscaled(clipFactor(norm));
  for (auto [variable, gradient] : updates)
    update(variable, gradient, clip);
  for (auto [variable, value] : compressed)
    SetOp::create(builder, variable.getLoc(), variable.getSymName(), guarded(value, read(variable)));
  for (auto [variable, amax] : observed)
    keepAmax(variable, amax);
  for (auto [i, tokens] : counts)
    keepTokens(gradients, i, tokens);
  outputs.insert(outputs.begin() + 1, norm);
  names.insert(names.begin() + 1, builder.getStringAttr("grad_norm"));
  finishFunction(step, builder, outputs);
  for (auto [i, name] : llvm::enumerate(names))
    step.setResultAttr(i, outputAttr, name);
  // It calls loops of microbatches that are given offset parameters now.
  if (optimizer.gradientOffset())
    gradients.erase();
  return success(areNamesFree);
}

void StepBuilder::evaluateAverages(func::FuncOp eval) {
  // Parameters are read in the evaluation or in the functions of its loops over microbatches.
  SmallVector<func::FuncOp> functions{eval};
  for (auto loop : eval.getBody().front().getOps<RepeatOp>())
    functions.push_back(module.lookupSymbol<func::FuncOp>(loop.getCallee()));
  for (func::FuncOp function : functions)
    for (GetOp get : llvm::to_vector(function.getBody().front().getOps<GetOp>())) {
      auto average = symbols.lookup<VariableOp>((get.getVariable() + "." + averageState).str());
      if (!average || average.getRole() != averageState)
        continue; // It is frozen.
      builder.setInsertionPoint(get);
      Value value = as(getElementTypeOrSelf(get.getType()), read(average));
      get.replaceAllUsesWith(value);
      get.erase();
    }
}

namespace {
struct TrainBuildOptimizer : train::impl::TrainBuildOptimizerBase<TrainBuildOptimizer> {
  using TrainBuildOptimizerBase::TrainBuildOptimizerBase;

  void runOnModule() override {
    auto gradients = getOperation().lookupSymbol<func::FuncOp>("gradients");
    if (!gradients) {
      getOperation().emitError("needs @gradients, which train-accumulate makes");
      return signalPassFailure();
    }
    if (failed(checkNameIsFree(getOperation(), "step", "the function of a training step")))
      return signalPassFailure();
    if (optimizer.getValue()->gradientOffset() && failed(checkAveraging()))
      return signalPassFailure();
    if (optimizer.getValue()->quantizesStates && failed(checkQuantizing()))
      return signalPassFailure();
    GroupedParameters grouped;
    if (failed(grouped.assign(getOperation(), groups, *optimizer)))
      return signalPassFailure();
    auto precision = getOperation()->getAttrOfType<StringAttr>(precisionAttr);
    bool isBrain = precision && llvm::is_contained({"bf16", "fp8"}, precision.getValue());
    Type element = isBrain ? Type(BFloat16Type::get(&getContext()))
                                                               : Type(Float32Type::get(&getContext()));
    Orthogonalization orthogonalization{muonScale, muonCoefficients, element};
    const GradientCompression &method = gradCompression;
    StepBuilder builder(getOperation(), *optimizer, grouped, momentsDtype, orthogonalization, ema, method);
    if (failed(builder.build(gradients)))
      return signalPassFailure();
    if (evalEma && failed(evaluateAverages(builder)))
      return signalPassFailure();
    getOperation()->setAttr(optimizerAttr,
                            StringAttr::get(&getContext(), optimizer.getValue()->name));
  }

  LogicalResult evaluateAverages(StepBuilder &builder) {
    auto eval = getOperation().lookupSymbol<func::FuncOp>("eval");
    if (!ema || !eval)
      return getOperation().emitError("eval-ema needs ema, and @eval, which train-accumulate makes");
    builder.evaluateAverages(eval);
    return success();
  }

  /// Refuses another type of states that are codes.
  LogicalResult checkQuantizing() {
    if (momentsDtype == MomentType::f32)
      return success();
    return getOperation().emitError("optimizer ")
           << optimizer.getValue()->name << " stores moments in 8 bits; use moments-dtype f32";
  }

  /// Refuses what parameters that are averages do not go with.
  LogicalResult checkAveraging() {
    auto refuse = [&](const Twine &what) {
      return getOperation().emitError("optimizer ") << optimizer.getValue()->name << what;
    };
    if (ema)
      return refuse(" averages parameters itself; leave out ema");
    if (momentsDtype == MomentType::bf16)
      return refuse(" adds up what bf16 would round away; use moments-dtype f32");
    return success();
  }
};
} // namespace
