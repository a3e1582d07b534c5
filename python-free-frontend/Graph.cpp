//===- Graph.cpp - builds a model's floor-1 module ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"
#include "Train/Redistribution.h"
#include "meshwright/runtime/DecoderVariables.h"
#include "meshwright/runtime/ExpertPlacement.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

static RankedTensorType floats(MLIRContext *context, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, Float32Type::get(context));
}

static RankedTensorType integers(MLIRContext *context, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, IntegerType::get(context, 32));
}

void FullPrecision::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  op->setAttr(train::fullPrecisionAttr, UnitAttr::get(op->getContext()));
}

//===--- ops ----------------------------------------------------------------===//

FunctionGraph::FunctionGraph(func::FuncOp function, int &streams)
    : builder(function.getContext()), function(function), location(function.getLoc()),
      streams(streams) {
  builder.setInsertionPointToEnd(&function.getBody().front());
}

void FunctionGraph::part(StringRef name) { location = NameLoc::get(builder.getStringAttr(name)); }

Value FunctionGraph::linear(Value x, Value weight, Value bias) {
  Value y = LinearOp::create(builder, location, x, weight);
  return bias ? add(y, bias) : y;
}

Value FunctionGraph::add(Value a, Value b) { return AddOp::create(builder, location, a, b); }
Value FunctionGraph::mul(Value a, Value b) { return MulOp::create(builder, location, a, b); }

Value FunctionGraph::scale(Value x, double factor) {
  if (factor == 1)
    return x;
  return ScaleOp::create(builder, location, x, builder.getF64FloatAttr(factor));
}

Value FunctionGraph::fill(double value, ArrayRef<int64_t> shape) {
  return FillOp::create(builder, location, floats(builder.getContext(), shape),
                        builder.getF64FloatAttr(value));
}

Value FunctionGraph::norm(NormKind kind, Value x, Value weight, Value bias, double eps,
                          bool plusOne) {
  int64_t size = cast<RankedTensorType>(x.getType()).getShape().back();
  if (!weight)
    weight = fill(1, {size});
  else if (plusOne)
    weight = add(weight, fill(1, {size}));
  FloatAttr epsilon = builder.getF64FloatAttr(eps);
  if (kind == NormKind::RMS)
    return RmsNormOp::create(builder, location, x, weight, epsilon);
  return LayerNormOp::create(builder, location, x, weight, bias ? bias : fill(0, {size}), epsilon);
}

Value FunctionGraph::embedding(Value table, Value ids, int64_t padding) {
  return EmbeddingOp::create(builder, location, table, ids, padding);
}

Value FunctionGraph::firstRows(Value x, int64_t rows) {
  if (cast<RankedTensorType>(x.getType()).getDimSize(0) == rows)
    return x;
  return SliceOp::create(builder, location, x, rows);
}

Value FunctionGraph::sum(Value x) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(x.getType()).getRank()));
  return ReduceOp::create(builder, location, ReduceKind::Sum, x, dims);
}

Value FunctionGraph::slice(Value x, int64_t dim, int64_t from, int64_t rows) {
  return SliceOp::create(builder, location, x, rows, dim, from);
}

Value FunctionGraph::redistribute(Value x) {
  return readsSequences ? Value(createRedistribution(builder, x.getLoc(), x, /*dim=*/1)) : x;
}

Value FunctionGraph::firstColumns(Value x, int64_t columns) {
  int64_t last = cast<RankedTensorType>(x.getType()).getRank() - 1;
  return SliceOp::create(builder, location, x, columns, /*dim=*/last);
}

Value FunctionGraph::positionRows(Value table, int64_t sequence, int64_t first) {
  int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(0) - first;
  if (first != 0)
    table = slice(table, /*dim=*/0, first, positions ? rows : sequence);
  return positions ? embedding(table, positions) : firstRows(table, sequence);
}

Value FunctionGraph::pad(Value x, int64_t dim, int64_t from, int64_t rows) {
  return PadOp::create(builder, location, x, rows, dim, /*value=*/0, from);
}

Value FunctionGraph::broadcast(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  return BroadcastOp::create(builder, location, floats(builder.getContext(), shape), x, dims);
}

Value FunctionGraph::reshape(Value x, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(x.getType()).getElementType());
  return ReshapeOp::create(builder, location, type, x);
}

Value FunctionGraph::rope(Value x, Value cos, Value sin) {
  return RopeOp::create(builder, location, x, cos, sin, /*inverse=*/false);
}

Value FunctionGraph::activation(StringRef name, Value x) {
  if (name == "gelu")
    return GeluOp::create(builder, location, x, /*tanh=*/false);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh")
    return GeluOp::create(builder, location, x, /*tanh=*/true);
  if (name == "silu" || name == "swish")
    return SiluOp::create(builder, location, x);
  if (name == "relu")
    return ReluOp::create(builder, location, x);
  if (name == "relu2") {
    Value y = ReluOp::create(builder, location, x);
    return mul(y, y);
  }
  return {};
}

Value FunctionGraph::gated(StringRef name, Value gate, Value up, const GateLimits &limits) {
  FloatAttr most = builder.getF64FloatAttr(limits.limit), none = builder.getF64FloatAttr(-INFINITY);
  auto bounded = [&](Value x) -> Value { return limits.limit ? ClampOp::create(builder, location, x, none, most).getResult() : x; };
  if (limits.gain == 0)
    return mul(bounded(activation(name, gate)), clamp(up, limits.limit));
  gate = bounded(gate);
  up = clamp(up, limits.limit);
  Value glu = mul(gate, SigmoidOp::create(builder, location, scale(gate, limits.gain)));
  return add(mul(up, glu), glu);
}

Value FunctionGraph::clamp(Value x, double limit) {
  if (limit == 0)
    return x;
  return ClampOp::create(builder, location, x, builder.getF64FloatAttr(-limit),
                         builder.getF64FloatAttr(limit));
}

Value FunctionGraph::softCap(Value x, double cap) {
  if (cap == 0)
    return x;
  return scale(TanhOp::create(builder, location, scale(x, 1 / cap)), cap);
}

Value FunctionGraph::attention(Value q, Value k, Value v, const ScoreTerms &terms,
                               AttentionSpec spec) {
  AttentionOptions options;
  if (spec.dropout > 0) {
    options.ids = ids;
    options.key = key;
    spec.stream = streams++;
  }
  if (spec.causal)
    options.positions = positions;
  options.lengths = terms.lengths;
  options.slopes = terms.slopes;
  options.sinks = terms.sinks;
  options.distances = terms.distances;
  return AttentionOp::create(builder, location, q, k, v, options, Value(), Value(), spec).getOut();
}

Value FunctionGraph::dropout(Value x, double rate) {
  if (rate == 0)
    return x;
  return DropoutOp::create(builder, location, x, ids, key, builder.getF64FloatAttr(rate),
                           builder.getI32IntegerAttr(streams++));
}

//===--- layers -------------------------------------------------------------===//

Value LayerGraph::input() { return function.getArgument(key ? 1 : 0); }

/// Adds an argument in front of the `after` last ones.
static Value insertArgument(func::FuncOp function, Type type, unsigned after, StringRef name) {
  unsigned index = function.getNumArguments() - after;
  auto location = NameLoc::get(StringAttr::get(function.getContext(), name));
  (void)function.insertArgument(index, type, {}, location);
  return function.getArgument(index);
}

/// What precedes the names of the layer's variables.
std::string LayerGraph::prefix() const {
  return model->prefix + "." + (onlyRun ? "" : std::to_string(run.first) + ".");
}

Value LayerGraph::weight(const Weight &given) {
  Weight weight = given;
  auto numbered = [&](StringRef name) {
    auto [first, rest] = name.split('.');
    return half && !rest.empty() ? (first + "." + Twine(*half) + "." + rest).str() : name.str();
  };
  std::string name = numbered(given.name);
  weight.name = name;
  weight.tensor = numbered(given.tensor);
  std::string tensor = model->layerTensor + ".";
  if (model->sharesLayers)
    return shared(model->declare(weight, prefix(), tensor, 0), name);
  // A run that does not begin with layer 0 numbers its tensors from its first.
  if (run.first > 0) {
    size_t position = tensor.find("{layer}");
    tensor.replace(position, 7, "{layer+" + std::to_string(run.first) + "}");
  }
  Value stack = model->declare(weight, prefix(), tensor, run.count);
  stacks.push_back(stack);
  return insertArgument(function, floats(builder.getContext(), weight.shape), sharedOuter.size(),
                        weight.name);
}

Value LayerGraph::shared(Value outer, StringRef name) {
  for (auto [i, known] : llvm::enumerate(sharedOuter))
    if (known == outer)
      return function.getArgument(function.getNumArguments() - sharedOuter.size() + i);
  sharedOuter.push_back(outer);
  return insertArgument(function, outer.getType(), 0, name);
}

Value LayerGraph::each(Value stack, StringRef name) {
  stacks.push_back(stack);
  auto type = cast<RankedTensorType>(stack.getType());
  return insertArgument(function, RankedTensorType::get(type.getShape().drop_front(), type.getElementType()),
                        sharedOuter.size(), name);
}

Value LayerGraph::expertPlacement() {
  Value ofRun = model->slice(model->input(expertPlacementInput), 0, run.first, run.count);
  return each(ofRun, expertPlacementInput);
}

Value LayerGraph::state(StringRef name, ArrayRef<int64_t> shape) {
  std::string variable = (plan::statePrefix + prefix() + name).str();
  SmallVector<int64_t> all{run.count};
  llvm::append_range(all, shape);
  RankedTensorType type = floats(builder.getContext(), all);
  OpBuilder top(*model->module->getOps<func::FuncOp>().begin());
  VariableOp::create(top, location, variable, type, /*stacked=*/false, /*experts=*/IntegerAttr(),
                     InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0.0)), StorageAttr(),
                     /*of=*/FlatSymbolRefAttr(), /*role=*/StringAttr(), /*sym_visibility=*/StringAttr());
  stateNames.push_back(variable);
  return each(GetOp::create(model->builder, location, type, FlatSymbolRefAttr::get(builder.getContext(), variable)), name);
}

void LayerGraph::keep(Value state) { keptStates.push_back(state); }

void LayerGraph::setLastSum(unsigned i, Value value) { sums[sums.size() - 1 - i] = value; }

void LayerGraph::addToSum(unsigned i, Value value) { sums[i] = add(sums[i], value); }

void LayerGraph::count(Value tokens, StringRef router, StringRef bias) {
  auto named = [&](StringRef name) { return name.empty() ? "" : prefix() + name.str(); };
  counts.push_back({tokens, named(router), named(bias)});
}

Value ModelGraph::layers(Value x, LayerRun run, bool onlyRun, MutableArrayRef<Value> sums,
                         llvm::function_ref<Value(LayerGraph &)> body) {
  MLIRContext *context = builder.getContext();
  std::string name = layerFunction + (onlyRun ? "" : "." + std::to_string(run.first));
  SmallVector<Value> carry{x};
  llvm::append_range(carry, sums);
  SmallVector<Type> types(ValueRange(carry).getTypes()), arguments;
  if (key)
    arguments.push_back(integers(context, {}));
  llvm::append_range(arguments, types);
  OpBuilder top(function);
  auto callee = func::FuncOp::create(top, NameLoc::get(builder.getStringAttr(name)), name,
                                     builder.getFunctionType(arguments, types));
  callee.setPrivate();
  callee.addEntryBlock();
  LayerGraph layer(callee, streams);
  layer.model = this;
  layer.run = run;
  layer.onlyRun = onlyRun;
  layer.readsSequences = readsSequences;
  layer.input().setLoc(NameLoc::get(builder.getStringAttr("x")));
  llvm::append_range(layer.sums, callee.getArguments().take_back(sums.size()));
  if (key) {
    layer.part("dropout");
    layer.ids = layer.shared(ids, "sequence_ids");
    Value folded = FoldInOp::create(layer.builder, layer.location, layer.shared(key, "key"),
                                    callee.getArgument(0));
    layer.key = folded;
  }
  if (positions)
    layer.positions = layer.shared(positions, "positions");
  SmallVector<Value> results{body(layer)};
  llvm::append_range(results, layer.sums);
  for (const TokenCounts &count : layer.counts) {
    results.push_back(count.value);
    SmallVector<int64_t> shape{run.count};
    llvm::append_range(shape, cast<RankedTensorType>(count.value.getType()).getShape());
    types.push_back(floats(context, shape));
  }
  for (Value state : layer.keptStates) {
    results.push_back(state);
    SmallVector<int64_t> shape{run.count};
    llvm::append_range(shape, cast<RankedTensorType>(state.getType()).getShape());
    types.push_back(floats(context, shape));
  }
  func::ReturnOp::create(layer.builder, callee.getLoc(), results);
  callee.setType(builder.getFunctionType(callee.getArgumentTypes(), ValueRange(results).getTypes()));

  part(prefix);
  auto repeat = RepeatOp::create(builder, location, types, StringRef(name), uint64_t(run.count),
                                 /*reverse=*/false, /*indexed=*/bool(key), carry,
                                 ValueRange(layer.stacks), ValueRange(layer.sharedOuter));
  llvm::copy(repeat.getCarried().drop_front(), sums.begin());
  for (auto [count, stack] : llvm::zip(layer.counts, repeat.getStacks()))
    counts.push_back({stack, count.router, count.bias});
  for (auto [name, stack] : llvm::zip_equal(layer.stateNames, repeat.getStacks().drop_front(layer.counts.size())))
    SetOp::create(builder, location, name, stack);
  return repeat.getResult(0);
}

//===--- the module ---------------------------------------------------------===//

static int64_t tokensAtOnce(const ModelOptions &options) {
  return options.tokens ? options.tokens : options.sequence;
}

/// A module with an empty @loss.
static OwningOpRef<ModuleOp> makeModule(MLIRContext &context, StringRef path,
                                        const ModelOptions &options, bool withDropout) {
  Location location = FileLineColLoc::get(&context, path, 0, 0);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  int64_t rows = options.batch / options.microbatches, tokens = tokensAtOnce(options);
  SmallVector<std::pair<StringRef, Type>> inputs = {
      {"tokens", integers(&context, {rows, tokens})},
      {"targets", integers(&context, {rows, tokens})}};
  if (withDropout || options.dpoBeta)
    inputs.push_back({"sequence_ids", integers(&context, {rows})});
  if (withDropout)
    inputs.push_back({"key", integers(&context, {2})});
  if (options.packed)
    inputs.push_back({"positions", integers(&context, {rows, tokens})});
  if (options.sourceSequence) {
    inputs.push_back({"source", integers(&context, {rows, options.sourceSequence})});
    inputs.push_back({"source_lengths", integers(&context, {rows})});
  }
  if (options.dpoBeta)
    inputs.push_back({referenceInput, floats(&context, {rows})});
  else
    inputs.push_back({"target_weight", floats(&context, {})});
  if (options.batchRamp) {
    inputs.push_back({microbatchesInput, integers(&context, {})});
    inputs.push_back({batchWeightInput, floats(&context, {})});
  }
  SmallVector<Type> types = llvm::map_to_vector(inputs, [](auto &input) { return input.second; });
  auto loss = func::FuncOp::create(builder, NameLoc::get(builder.getStringAttr("loss")), "loss",
                                   builder.getFunctionType(types, {floats(&context, {})}));
  loss.setResultAttr(0, train::outputAttr, builder.getStringAttr("loss"));
  loss.addEntryBlock();
  for (auto [i, input] : llvm::enumerate(inputs)) {
    StringAttr name = builder.getStringAttr(input.first);
    loss.setArgAttr(i, train::inputAttr, name);
    loss.getArgument(i).setLoc(NameLoc::get(name));
  }
  return module;
}

ModelGraph::ModelGraph(MLIRContext &context, StringRef path, const ModelOptions &options,
                       bool withDropout, StringRef prefix, StringRef layerTensor)
    : ModelGraph(makeModule(context, path, options, withDropout), options, withDropout) {
  beginStack(prefix, layerTensor);
}

void ModelGraph::beginStack(StringRef prefix, StringRef layerTensor, StringRef function) {
  this->prefix = prefix.str();
  this->layerTensor = layerTensor.str();
  layerFunction = function.str();
}

ModelGraph::ModelGraph(OwningOpRef<ModuleOp> made, const ModelOptions &options, bool withDropout)
    : FunctionGraph(cast<func::FuncOp>(made->getBody()->front()), streamCount),
      module(std::move(made)), rows(options.batch / options.microbatches),
      sequence(tokensAtOnce(options)), tokens(input("tokens")), targets(input("targets")),
      targetWeight(input("target_weight")), source(input("source")),
      sourceLengths(input("source_lengths")), options(options) {
  positions = input("positions");
  readsSequences = !generates();
  if (withDropout) {
    ids = input("sequence_ids");
    key = input("key");
  }
}

void ModelGraph::addInput(StringRef name, Type type) {
  unsigned index = function.getNumArguments();
  auto attrs = builder.getDictionaryAttr(builder.getNamedAttr(train::inputAttr, builder.getStringAttr(name)));
  (void)function.insertArgument(index, type, attrs, NameLoc::get(builder.getStringAttr(name)));
}

Value ModelGraph::input(StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (inputName(argument) == name)
      return argument;
  return {};
}

Value ModelGraph::declare(const Weight &weight, StringRef prefix, StringRef tensorPrefix,
                          int64_t layers) {
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> shape;
  if (layers)
    shape.push_back(layers);
  llvm::append_range(shape, weight.shape);
  RankedTensorType type = floats(context, shape);
  std::string name = (prefix + weight.name).str();
  std::string tensor =
      (tensorPrefix + (weight.tensor.empty() ? weight.name.str() : weight.tensor)).str();
  auto init = InitAttr::get(context, weight.std > 0 ? "normal" : "constant",
                            builder.getF64FloatAttr(weight.std > 0 ? weight.std : weight.value));
  // Dimensions of the storage are the file's.
  const FileRows &rows = weight.rows;
  bool sliced = rows.full > 0;
  int64_t dim = weight.rowDim, rank = weight.shape.size();
  if (weight.transpose && dim >= rank - 2) // the last two are swapped
    dim = 2 * rank - 3 - dim;
  auto storage = StorageAttr::get(
      context, tensor, weight.transpose, sliced ? dim : 0, rows.offset, rows.full, rows.period,
      rows.runs.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(rows.runs),
      weight.optional);
  // Variables stand together, before the functions.
  auto firstFunction = *module->getOps<func::FuncOp>().begin();
  OpBuilder top(firstFunction);
  Location at = NameLoc::get(builder.getStringAttr(name));
  auto variable = VariableOp::create(
      top, at, name, type, /*stacked=*/layers > 0,
      weight.experts ? builder.getI64IntegerAttr(weight.experts) : IntegerAttr(), init, storage,
      /*of=*/FlatSymbolRefAttr(), /*role=*/StringAttr(), /*sym_visibility=*/StringAttr());
  if (weight.full)
    variable->setAttr(train::fullPrecisionAttr, builder.getUnitAttr());
  if (weight.frozen)
    variable->setAttr(train::frozenAttr, builder.getUnitAttr());
  if (weight.balanceRate > 0)
    variable->setAttr(train::balanceRateAttr, builder.getF64FloatAttr(weight.balanceRate));
  return GetOp::create(builder, at, type, FlatSymbolRefAttr::get(context, name));
}

Value ModelGraph::weight(const Weight &weight) { return declare(weight, "", "", 0); }

std::pair<Value, Value> ModelGraph::ropeTable(ArrayRef<double> frequencies, double scale) {
  return positionAngles(frequencies, sequence, scale);
}

std::pair<Value, Value> ModelGraph::positionAngles(ArrayRef<double> frequencies, int64_t sequence,
                                                   double scale) {
  SmallVector<int64_t> shape{sequence, int64_t(frequencies.size())};
  if (positions)
    shape.insert(shape.begin(), rows);
  Type type = floats(builder.getContext(), shape);
  auto op = RopeTableOp::create(builder, location, type, type, Value(), positions,
                                builder.getDenseF64ArrayAttr(frequencies),
                                builder.getF64FloatAttr(scale));
  return {op.getCos(), op.getSin()};
}

Value ModelGraph::alibiSlopes(int64_t heads, double bias) {
  return AlibiSlopesOp::create(builder, location, floats(builder.getContext(), {heads}), Value(),
                               builder.getF64FloatAttr(bias), builder.getI64IntegerAttr(0));
}

Value ModelGraph::sinusoids(int64_t sequence, int64_t width, int64_t first, bool toEnd) {
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < width / 2; ++i)
    frequencies.push_back(std::pow(10000.0, -2.0 * double(i) / double(toEnd ? width - 2 : width)));
  if (first == 0) {
    auto [cos, sin] = positionAngles(frequencies, sequence, 1);
    int64_t dim = positions ? 2 : 1;
    return add(pad(sin, dim, 0, width), pad(cos, dim, width / 2, width));
  }
  // A table of all positions, of which those before the first are left out.
  Value given = std::exchange(positions, Value());
  int64_t rows = first + (given ? positionCount() : sequence);
  auto [cos, sin] = positionAngles(frequencies, rows, 1);
  positions = given;
  Value table = add(pad(sin, 1, 0, width), pad(cos, 1, width / 2, width));
  return positionRows(table, sequence, first);
}

Value FunctionGraph::distances(Value table, int64_t sequence, int64_t maxDistance, bool causal) {
  int64_t buckets = cast<RankedTensorType>(table.getType()).getDimSize(0);
  Value ids = DistanceBucketsOp::create(
      builder, location, integers(builder.getContext(), {2 * sequence - 1}), uint64_t(buckets),
      uint64_t(maxDistance), uint64_t(sequence), uint64_t(sequence), causal);
  return embedding(table, ids);
}

std::pair<Value, Value> ModelGraph::preferenceLoss(Value logits) {
  auto losses = CrossEntropyOp::create(builder, location, logits, targets, builder.getF64FloatAttr(1.0),
                                       /*per_token=*/builder.getUnitAttr());
  FullPrecision full(builder);
  Value ofSequences = ReduceOp::create(builder, location, ReduceKind::Sum, losses.getLoss(), {1});
  Value logProbs = scale(ofSequences, -1);
  Value rewards = scale(add(logProbs, scale(input(referenceInput), -1)), *options.dpoBeta);
  Value pairs = reshape(rewards, {rows / 2, 2});
  Value chosen = slice(pairs, 1, 0, 1), rejected = slice(pairs, 1, 1, 1);
  // -log(sigmoid(chosen - rejected)) = log(exp(rejected - chosen) + exp(0))
  Value negativeMargin = add(rejected, scale(chosen, -1));
  Value ofPairs = LogSumExpOp::create(builder, location, pad(negativeMargin, 1, 0, 2));
  Value loss = ofStep(scale(sum(ofPairs), 2 / double(options.batch)));
  // Each sequence has its place in the batch, so that microbatches and devices add up to all.
  Value all = EmbeddingGradOp::create(
      builder, location, floats(builder.getContext(), {options.batch, 1}), reshape(logProbs, {rows, 1}),
      input("sequence_ids"), builder.getI64IntegerAttr(options.batch), Value());
  return {loss, reshape(all, {options.batch})};
}

Value ModelGraph::ofStep(Value value) {
  Value weight = input(batchWeightInput);
  return weight ? mul(value, weight) : value;
}

void ModelGraph::finish(Value logits, Value more, StringRef family, StringRef config,
                        int64_t vocabulary, int64_t maxPositions, int64_t startToken) {
  part("loss");
  Value loss, logProbs;
  if (options.dpoBeta) {
    std::tie(loss, logProbs) = preferenceLoss(logits);
  } else {
    // How many targets count is known when a step's data is read.
    auto tokens = CrossEntropyOp::create(builder, location, logits, targets, builder.getF64FloatAttr(1.0),
                                         /*per_token=*/UnitAttr());
    loss = mul(tokens.getLoss(), targetWeight);
  }
  if (more) {
    loss = add(loss, more);
    auto name = builder.getNamedAttr(train::outputAttr, builder.getStringAttr("aux_loss"));
    (void)function.insertResult(1, more.getType(), builder.getDictionaryAttr(name));
  }
  SmallVector<Value> results{loss};
  if (more)
    results.push_back(more);
  if (logProbs) {
    auto name = builder.getNamedAttr(train::outputAttr, builder.getStringAttr(logProbsOutput));
    (void)function.insertResult(results.size(), logProbs.getType(), builder.getDictionaryAttr(name));
    results.push_back(logProbs);
  }
  for (const TokenCounts &count : counts) {
    auto symbol = [&](StringRef name) { return FlatSymbolRefAttr::get(builder.getContext(), name); };
    NamedAttrList said;
    said.set(train::tokensOfAttr, symbol(count.router));
    if (!count.bias.empty())
      said.set(train::balancesAttr, symbol(count.bias));
    (void)function.insertResult(results.size(), count.value.getType(),
                                said.getDictionary(builder.getContext()));
    results.push_back(count.value);
  }
  func::ReturnOp::create(builder, location, results);
  // Counted targets have their own weight, so only other means over the batch read it.
  if (auto weight = cast_if_present<BlockArgument>(input(batchWeightInput)); weight && weight.use_empty())
    (void)function.eraseArgument(weight.getArgNumber());

  ModuleOp op = *module;
  op->setAttr(train::modelAttr, builder.getStringAttr(family));
  op->setAttr(train::configAttr, builder.getStringAttr(config));
  op->setAttr(train::batchAttr, builder.getI64IntegerAttr(options.batch));
  op->setAttr(train::sequenceAttr, builder.getI64IntegerAttr(sequence));
  op->setAttr(train::microbatchesAttr, builder.getI64IntegerAttr(options.microbatches));
  op->setAttr(train::vocabularyAttr, builder.getI64IntegerAttr(vocabulary));
  op->setAttr(train::maxPositionsAttr, builder.getI64IntegerAttr(maxPositions));
  if (source) {
    op->setAttr(train::sourceSequenceAttr, builder.getI64IntegerAttr(options.sourceSequence));
    op->setAttr(train::startTokenAttr, builder.getI64IntegerAttr(startToken));
  }
  if (options.dpoBeta)
    op->setAttr(train::dpoBetaAttr, builder.getF64FloatAttr(*options.dpoBeta));
  if (options.masked) {
    op->setAttr(train::maskedShareAttr, builder.getF64FloatAttr(options.masked->share));
    op->setAttr(train::maskTokenAttr, builder.getI64IntegerAttr(options.masked->token));
  }
}
