//===- RandomGraph.cpp - random programs to test passes with ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/RandomGraph.h"

#include "Train/Train.h"

#include <random>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
/// Grows one block: each step takes values it finds in the pool, adds ops and new
/// block arguments for weights and ids, and puts results into the pool.
class Grower {
public:
  Grower(MLIRContext *context, Block *block, uint64_t seed, const RandomGraphOptions &options)
      : b(OpBuilder::atBlockEnd(block)), loc(UnknownLoc::get(context)), block(block),
        options(options), random(seed) {
    f32 = b.getF32Type();
    i32 = b.getI32Type();
  }

  OpBuilder b;
  Location loc;
  SmallVector<Value> pool;

  /// Uniform in [low, high]; not std::uniform_int_distribution, whose results
  /// differ between libraries.
  int64_t pick(int64_t low, int64_t high) {
    return low + int64_t(random() % uint64_t(high - low + 1));
  }
  bool flip() { return pick(0, 1); }
  /// A dimension of 1 to `most` grains.
  int64_t size(int64_t most = 4) { return options.granularity * pick(1, most); }
  /// ... not 1, where a dimension of one element would make a formula trivial.
  int64_t width() { return std::max<int64_t>(size(), 2); }

  RankedTensorType type(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, f32); }
  Value argument(ArrayRef<int64_t> shape) { return block->addArgument(type(shape), loc); }
  Value ids(ArrayRef<int64_t> shape) {
    return block->addArgument(RankedTensorType::get(shape, i32), loc);
  }
  ArrayRef<int64_t> shape(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

  /// A random value of the pool that `suits`, or null.
  template <typename Suits> Value choose(Suits suits) {
    SmallVector<Value> found;
    for (Value value : pool)
      if (suits(value))
        found.push_back(value);
    return found.empty() ? Value() : found[pick(0, int64_t(found.size()) - 1)];
  }
  Value chooseRank(unsigned least, unsigned most = 3) {
    return choose([&](Value v) { return shape(v).size() >= least && shape(v).size() <= most; });
  }
  Value linear(Value x, int64_t out) {
    return train::LinearOp::create(b, loc, x, argument({out, shape(x).back()}));
  }
  Value reshape(Value x, ArrayRef<int64_t> to) {
    return train::ReshapeOp::create(b, loc, type(to), x);
  }

  /// One step of growth; false if no value suits it.
  bool norm();
  bool project();
  bool activate();
  bool combine();
  bool addTrailing();
  bool scale();
  bool attend();
  bool multiply();
  bool recur();
  bool reduce();
  bool repeatValues();
  bool positions();
  bool look();
  bool drop();

  /// Makes `steps` steps of the kinds in `table`.
  using Step = bool (Grower::*)();
  void grow(ArrayRef<Step> table, unsigned steps) {
    for (unsigned done = 0; done < steps;)
      done += (this->*table[pick(0, int64_t(table.size()) - 1)])();
  }
  /// Those whose new inputs are weights.
  static constexpr Step weightSteps[] = {
      &Grower::norm,  &Grower::project, &Grower::activate, &Grower::combine,  &Grower::addTrailing,
      &Grower::scale, &Grower::attend,  &Grower::multiply, &Grower::positions};
  static constexpr Step allSteps[] = {&Grower::norm,    &Grower::project,      &Grower::activate,
                                      &Grower::combine, &Grower::addTrailing,  &Grower::scale,
                                      &Grower::attend,  &Grower::multiply,     &Grower::positions,
                                      &Grower::reduce,  &Grower::repeatValues, &Grower::look,
                                      &Grower::recur};

private:
  Block *block;
  const RandomGraphOptions &options;
  std::mt19937_64 random;
  Type f32, i32;
};
} // namespace

bool Grower::norm() {
  Value x = chooseRank(2);
  if (!x)
    return false;
  int64_t d = shape(x).back();
  FloatAttr eps = b.getF64FloatAttr(1e-5);
  if (flip())
    pool.push_back(train::LayerNormOp::create(b, loc, x, argument({d}), argument({d}), eps));
  else
    pool.push_back(train::RmsNormOp::create(b, loc, x, argument({d}), eps));
  return true;
}

bool Grower::project() {
  Value x = chooseRank(2);
  if (!x)
    return false;
  Value y = linear(x, width());
  if (options.biases) {
    y = train::AddOp::create(b, loc, y, argument({shape(y).back()}));
    if (flip())
      y = train::GeluOp::create(b, loc, y, /*tanh=*/true);
    y = linear(y, width());
  }
  if (options.gates) {
    Value gate = train::SiluOp::create(b, loc, linear(x, shape(y).back()));
    y = linear(train::MulOp::create(b, loc, gate, y), width());
  }
  pool.push_back(y);
  return true;
}

bool Grower::activate() {
  Value x = chooseRank(1);
  if (!x)
    return false;
  switch (pick(0, 4)) {
  case 0:
    pool.push_back(train::GeluOp::create(b, loc, x, /*tanh=*/true));
    break;
  case 3:
    pool.push_back(train::ClampOp::create(b, loc, x, b.getF64FloatAttr(-1),
                                          b.getF64FloatAttr(flip() ? 1 : INFINITY)));
    break;
  case 1:
    pool.push_back(train::GeluOp::create(b, loc, x, /*tanh=*/false));
    break;
  case 2:
    pool.push_back(train::SiluOp::create(b, loc, x));
    break;
  default:
    pool.push_back(train::ReluOp::create(b, loc, x));
  }
  return true;
}

bool Grower::combine() {
  Value x = chooseRank(1);
  if (!x)
    return false;
  Value y = choose([&](Value v) { return v.getType() == x.getType() && v != x; });
  if (!y)
    return false;
  if (flip())
    pool.push_back(train::AddOp::create(b, loc, x, y));
  else
    pool.push_back(train::MulOp::create(b, loc, x, y));
  return true;
}

bool Grower::addTrailing() {
  Value x = chooseRank(2);
  if (!x)
    return false;
  Value y = argument(shape(x).take_back(pick(1, int64_t(shape(x).size()) - 1)));
  if (flip())
    pool.push_back(train::AddOp::create(b, loc, x, y));
  else
    pool.push_back(train::MulOp::create(b, loc, x, y));
  return true;
}

bool Grower::scale() {
  Value x = chooseRank(1);
  if (!x)
    return false;
  pool.push_back(train::ScaleOp::create(b, loc, x, b.getF64FloatAttr(double(pick(1, 5)) * 0.25)));
  return true;
}

bool Grower::attend() {
  Value x = choose([&](Value v) { return shape(v).size() == 3; });
  if (!x)
    return false;
  int64_t batch = shape(x)[0], positions = shape(x)[1];
  int64_t kvHeads = size(2), heads = kvHeads * pick(1, 3), depth = 2 * size(2);
  int64_t valueDepth = flip() ? depth : width();
  auto project = [&](int64_t n, int64_t depth) {
    return reshape(linear(x, n * depth), {batch, positions, n, depth});
  };
  Value q = project(heads, depth), k = project(kvHeads, depth), v = project(kvHeads, valueDepth);
  if (flip()) {
    SmallVector<double> frequencies;
    for (int64_t i = 0; i < depth / 2; ++i)
      frequencies.push_back(1.0 / double(1 + 3 * i));
    auto table = train::RopeTableOp::create(
        b, loc, type({positions, depth / 2}), type({positions, depth / 2}), Value(), Value(),
        b.getDenseF64ArrayAttr(frequencies), b.getF64FloatAttr(1));
    q = train::RopeOp::create(b, loc, q, table.getCos(), table.getSin(), false);
    k = train::RopeOp::create(b, loc, k, table.getCos(), table.getSin(), false);
  }
  train::AttentionSpec spec;
  spec.scale = 1 / std::sqrt(double(depth));
  spec.causal = flip();
  spec.window = pick(0, 2) == 0 ? pick(1, positions) : 0;
  spec.chunk = spec.causal && pick(0, 2) == 0 ? pick(1, positions) : 0;
  train::AttentionOptions options;
  if (pick(0, 2) == 0)
    options.slopes = train::AlibiSlopesOp::create(b, loc, type({heads}), Value(),
                                                  b.getF64FloatAttr(8), b.getI64IntegerAttr(0));
  if (pick(0, 2) == 0)
    options.sinks = argument({heads});
  if (pick(0, 2) == 0)
    options.distances = argument({2 * positions - 1, heads});
  auto attention =
      train::AttentionOp::create(b, loc, q, k, v, options, Value(), Value(), spec);
  pool.push_back(
      linear(reshape(attention.getOut(), {batch, positions, heads * valueDepth}), shape(x)[2]));
  return true;
}

bool Grower::multiply() {
  Value x = choose([&](Value v) { return shape(v).size() == 3; });
  if (!x)
    return false;
  Value y = choose([&](Value v) {
    return shape(v).size() == 3 && shape(v)[0] == shape(x)[0] && shape(v)[2] == shape(x)[2];
  });
  pool.push_back(
      train::ContractOp::create(b, loc, b.getStringAttr("b s i, b t i -> b s t"), x, y, Value()));
  return true;
}

bool Grower::recur() {
  Value x = choose([&](Value v) { return shape(v).size() == 3; });
  if (!x)
    return false;
  int64_t batch = shape(x)[0], positions = shape(x)[1], depth = size(2);
  auto contract = [&](StringRef rule, Value lhs, Value rhs) -> Value {
    return train::ContractOp::create(b, loc, b.getStringAttr(rule), lhs, rhs, Value());
  };
  // Log decays and their sums up to each position.
  Value decays = reshape(train::TanhOp::create(b, loc, linear(x, 1)), {batch, positions});
  Value zeros = train::FillOp::create(b, loc, type({positions}), b.getF64FloatAttr(0));
  Value ones = train::DecayOp::create(b, loc, zeros, zeros, /*strict=*/false);
  Value sums = contract("b u, t u -> b t", decays, ones);
  Value q = linear(x, depth), k = linear(x, depth), v = linear(x, depth);
  Value scores = contract("b t k, b u k -> b t u", q, k);
  scores = train::MulOp::create(b, loc, scores, train::DecayOp::create(b, loc, sums, sums, flip()));
  Value y = contract("b t u, b u v -> b t v", scores, v);
  pool.push_back(linear(y, shape(x)[2]));
  return true;
}

bool Grower::reduce() {
  Value x = chooseRank(1);
  if (!x)
    return false;
  SmallVector<int64_t> dims;
  for (size_t d = 0; d < shape(x).size(); ++d)
    if (flip())
      dims.push_back(int64_t(d));
  if (dims.empty())
    dims.push_back(int64_t(shape(x).size()) - 1);
  auto kind = flip() ? train::ReduceKind::Sum : train::ReduceKind::Max;
  pool.push_back(train::ReduceOp::create(b, loc, kind, x, dims));
  return true;
}

bool Grower::repeatValues() {
  Value x = chooseRank(1, 2);
  if (!x)
    return false;
  SmallVector<int64_t> to(shape(x));
  int64_t at = pick(0, int64_t(to.size()));
  to.insert(to.begin() + at, width());
  pool.push_back(train::BroadcastOp::create(b, loc, type(to), x, at));
  return true;
}

bool Grower::positions() {
  Value x = chooseRank(2);
  if (!x)
    return false;
  ArrayRef<int64_t> sizes = shape(x);
  int64_t rows = sizes[sizes.size() - 2];
  Value table = argument({rows + size(), sizes.back()});
  pool.push_back(train::AddOp::create(b, loc, x, train::SliceOp::create(b, loc, table, rows)));
  return true;
}

bool Grower::look() {
  int64_t rows = std::max<int64_t>(size(), 2);
  pool.push_back(
      train::EmbeddingOp::create(b, loc, argument({rows, width()}), ids({width(), width()})));
  return true;
}

bool Grower::drop() {
  Value x = chooseRank(2);
  pool.push_back(train::DropoutOp::create(b, loc, x, ids({shape(x)[0]}), ids({2}),
                                          b.getF64FloatAttr(0.25),
                                          b.getI32IntegerAttr(int32_t(pick(0, 9)))));
  return true;
}

/// A function whose type follows from its finished body.
static func::FuncOp finish(OpBuilder &b, func::FuncOp function, ValueRange results) {
  Block &block = function.getBody().front();
  func::ReturnOp::create(b, function.getLoc(), results);
  function.setType(b.getFunctionType(block.getArgumentTypes(), results.getTypes()));
  return function;
}

static func::FuncOp start(ModuleOp module, StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(b, module.getLoc(), name, b.getFunctionType({}, {}));
  function.addEntryBlock();
  return function;
}

OwningOpRef<ModuleOp> interp::randomGraph(MLIRContext *context, uint64_t seed,
                                          const RandomGraphOptions &options) {
  context->loadDialect<train::TrainDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  func::FuncOp function = start(*module, "main");
  Grower grower(context, &function.getBody().front(), seed, options);
  grower.pool.push_back(grower.argument({grower.width(), grower.width(), grower.width()}));
  grower.grow(Grower::allSteps, options.steps);
  if (options.dropout)
    grower.drop();
  SmallVector<Value> results;
  for (Value value : grower.pool)
    if (value.use_empty())
      results.push_back(value);
  finish(grower.b, function, results);
  return module;
}

/// Grows a function that a loop calls: what it carries, [rows, sequence, width], maybe scaled, plus
/// something made of x of that shape. `numbered` ones look up a row for the iteration.
static func::FuncOp growRound(ModuleOp module, uint64_t seed, ArrayRef<int64_t> shape, bool numbered,
                              const RandomGraphOptions &options) {
  func::FuncOp round = start(module, "round");
  Grower body(module.getContext(), &round.getBody().front(), seed, options);
  Value number = numbered ? body.ids({}) : Value();
  Value carry = body.argument(shape), x = body.argument(shape);
  if (numbered) {
    Value row = train::EmbeddingOp::create(body.b, body.loc,
                                           body.argument({options.rounds, shape.back()}), number);
    x = train::AddOp::create(body.b, body.loc, x, row);
  } else if (body.flip()) {
    // Where iterations differ otherwise, the derivative of what is carried is 1.
    carry = train::ScaleOp::create(body.b, body.loc, carry, body.b.getF64FloatAttr(0.75));
  }
  body.pool.push_back(x);
  body.grow(Grower::weightSteps, options.steps);
  for (Value value : body.pool)
    if (value.use_empty())
      carry = train::AddOp::create(body.b, body.loc, carry, body.linear(value, shape.back()));
  finish(body.b, round, carry);
  round.setPrivate();
  return round;
}

OwningOpRef<ModuleOp> interp::randomModel(MLIRContext *context, uint64_t seed,
                                          const RandomGraphOptions &options) {
  context->loadDialect<train::TrainDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  func::FuncOp layer = start(*module, "layer");
  Grower body(context, &layer.getBody().front(), seed, options);
  int64_t rows = llvm::alignTo(body.width(), options.rowsMultiple), sequence = body.width(),
          width = body.width(), vocabulary = body.width() + 4 * options.granularity;

  // The layer: x plus something of its type made from everything that was grown.
  Value x = body.argument({rows, sequence, width});
  body.pool.push_back(x);
  body.grow(Grower::weightSteps, options.steps);
  Value y = x;
  for (Value value : body.pool) // All are [rows, sequence, some width].
    if (value.use_empty())
      y = train::AddOp::create(body.b, body.loc, y, body.linear(value, width));
  func::FuncOp round;
  if (options.rounds > 0) {
    bool numbered = body.flip();
    round = growRound(*module, seed, {rows, sequence, width}, numbered, options);
    SmallVector<Value> shared{x};
    for (BlockArgument weight : round.getArguments().drop_front(numbered ? 3 : 2))
      shared.push_back(body.argument(body.shape(weight)));
    // Behind the weights: it is the same for all layers.
    Value times = body.ids({});
    y = train::RepeatOp::create(body.b, body.loc, y.getType(), "round", uint64_t(options.rounds),
                                /*reverse=*/false, numbered, y, ValueRange(), shared, times)
            .getResult(0);
  }
  finish(body.b, layer, y);
  layer.setPrivate();
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  auto variable = [&](StringRef name, ArrayRef<int64_t> shape, bool stacked) {
    auto init = train::InitAttr::get(context, "normal", b.getF64FloatAttr(0.3));
    return train::VariableOp::create(
        b, module->getLoc(), b.getStringAttr(name), TypeAttr::get(body.type(shape)),
        stacked ? b.getUnitAttr() : UnitAttr(), /*experts=*/IntegerAttr(), init, train::StorageAttr(),
        FlatSymbolRefAttr(), StringAttr(), StringAttr());
  };
  SmallVector<train::VariableOp> weights;
  for (BlockArgument argument : layer.getArguments().drop_front().drop_back(round ? 1 : 0)) {
    SmallVector<int64_t> shape = {options.layers};
    llvm::append_range(shape, body.shape(argument));
    weights.push_back(variable("layers.w" + std::to_string(argument.getArgNumber()), shape, true));
  }
  train::VariableOp table = variable("table", {vocabulary, width}, false);
  bool tied = body.flip();
  train::VariableOp head = tied ? table : variable("head", {vocabulary, width}, false);

  func::FuncOp loss = start(*module, "loss");
  Grower top(context, &loss.getBody().front(), seed, options);
  auto get = [&](train::VariableOp from) -> Value {
    return train::GetOp::create(top.b, top.loc, from.getTensorType(), from.getSymName());
  };
  Value tokens = top.ids({rows, sequence}), targets = top.ids({rows, sequence});
  SmallVector<Value> shared;
  if (round)
    shared.push_back(top.ids({}));
  Value embedded = train::EmbeddingOp::create(top.b, top.loc, get(table), tokens);
  SmallVector<Value> each = llvm::map_to_vector(weights, get);
  auto repeat = train::RepeatOp::create(
      top.b, top.loc, embedded.getType(), FlatSymbolRefAttr::get(layer),
      b.getI64IntegerAttr(options.layers), UnitAttr(), UnitAttr(), embedded, each, shared, Value());
  Value logits = train::LinearOp::create(top.b, top.loc, repeat.getResult(0), get(head));
  double scale = 1.0 / double(rows * options.microbatches * sequence);
  Value result =
      train::CrossEntropyOp::create(top.b, top.loc, logits, targets, b.getF64FloatAttr(scale),
                                    /*per_token=*/UnitAttr())
          .getLoss();
  finish(top.b, loss, result);
  loss.setArgAttr(0, train::inputAttr, b.getStringAttr("tokens"));
  loss.setArgAttr(1, train::inputAttr, b.getStringAttr("targets"));
  if (round)
    loss.setArgAttr(2, train::inputAttr, b.getStringAttr("rounds"));
  loss.setResultAttr(0, train::outputAttr, b.getStringAttr("loss"));

  auto attribute = [&](StringRef name, int64_t value) {
    (*module)->setAttr(name, b.getI64IntegerAttr(value));
  };
  (*module)->setAttr(train::modelAttr, b.getStringAttr("random"));
  (*module)->setAttr(train::configAttr, b.getStringAttr("{}"));
  attribute(train::batchAttr, rows * options.microbatches);
  attribute(train::sequenceAttr, sequence);
  attribute(train::microbatchesAttr, options.microbatches);
  attribute(train::vocabularyAttr, vocabulary);
  attribute(train::maxPositionsAttr, sequence);
  return module;
}
