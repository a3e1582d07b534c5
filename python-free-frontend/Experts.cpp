//===- Experts.cpp - layers with experts in place of the MLP --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Experts.h"
#include "meshwright/runtime/ExpertPlacement.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

//===--- one layer ----------------------------------------------------------===//

namespace {
/// Ops of the train dialect at the current part of a layer.
struct ExpertBuilder {
  LayerGraph &g;
  const Model &m;
  int64_t b, s;
  const ExpertSizes &e = m.experts;

  template <typename Op, typename... Args> Op make(Args &&...args) {
    return Op::create(g.builder, g.where(), std::forward<Args>(args)...);
  }
  RankedTensorType type(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, g.builder.getF32Type());
  }
  Value sum(Value x, int64_t dim) {
    return make<ReduceOp>(ReduceKind::Sum, x, ArrayRef<int64_t>{dim});
  }
  Value repeat(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
    return make<BroadcastOp>(type(shape), x, dims);
  }

  /// What scores are made of, [b, s, experts], of what routers read.
  Value logits(Value h);
  /// The scores of all experts for each token.
  Value scores(Value logits);
  /// What is added to scores to choose, [experts].
  Value choiceBias();
  /// 1 at the experts that a token chooses, else 0.
  Value choose(Value scores);
  /// Adds what the balance of experts is made of to the layer's sums.
  void balance(Value scores, Value mask);
  /// The weights of the two experts that SparseMixer chooses by logits, 0 of the others.
  Value mix(Value logits);
  /// The scores of chosen experts as weights, 0 of the others.
  Value weights(Value scores, Value mask);
  /// A stacked variable of the layer; of a tensor with `{expert}` in its name, its first dimension
  /// counts the experts.
  Value variable(StringRef name, ArrayRef<int64_t> shape, double std, bool full = false);
  /// The matrices of all experts, [experts, out, in], and their biases, [experts, out, 1], if there
  /// are. Of a tensor that holds two, gate is part 0 and up is part 1.
  std::pair<Value, Value> matrices(StringRef name, int64_t in, int64_t out, double std,
                                   std::optional<int64_t> part);
  /// What the MLP of an expert makes of gate and up; gate is null where it has none.
  Value activate(Value gate, Value up);
  /// The matrices of an expert's MLP, and where they come from.
  struct Matrices {
    std::string part;
    Value weight, bias;
  };
  /// What tokens go to experts by: rows, choices, experts as `train.route` gives them.
  struct Rows {
    Value rows, choices, experts;
    int64_t slots;  ///< of a sequence, in each block
    double filled;  ///< of all blocks, by the rows of a sequence, at most
    int64_t piece;  ///< tokens of a sequence that have slots of their own; 0: all
  };
  /// Where copies of experts are: the layer's table, row by row, and 1 where a slot takes its expert's tokens with a residue,
  /// else 0, [residues, slots].
  struct Copies {
    Value table, takes;
  };
  Copies copies();
  /// 1 at the expert whose matrices a slot has, else 0, [slots, experts]. Each call makes new ops, so that the slots of tokens and those of
  /// matrices, which devices divide, are no one index.
  Value expertsOf(const Copies &copies);
  /// What x, [b, s, experts], has of each expert, in that of the copy where the token goes to one: [b, s, experts and
  /// copies], by block.
  Value place(Value x, const Copies &copies);
  /// The matrices of each block's experts, then those of its copies.
  Value withCopies(Value matrices, const Copies &copies);
  /// `own` and `copies` of all blocks along dimension `dim`, block by block.
  Value byBlock(Value own, Value copies, int64_t dim);
  /// The sum of the experts' results for each token of h, with the weight of each choice.
  Value products(Value h, Value ofChoice, const Rows &rows, ArrayRef<Matrices> matrices);
  /// That of the rows of round `number`, 0 if it is null.
  Value ofRound(Value number, Value h, Value ofChoice, const Rows &rows,
                ArrayRef<Matrices> matrices, int64_t slotsOfPart);
  /// That in as many rounds as the rows take.
  Value rounds(Value h, Value ofChoice, const Rows &rows, ArrayRef<Matrices> matrices,
               int64_t slotsOfPart);
  /// The MLP beside the experts.
  Value shared(Value h);
  /// `experts` and `mlp` in the shares that a token's h says.
  Value combine(Value h, Value experts, Value mlp);
  Value build(Value h, Value routed);
};
} // namespace

/// The name of a variable or a part of a layer has no braces.
static std::string withoutExpert(StringRef tensor) {
  auto [before, after] = tensor.split(".{expert}");
  return (before + after).str();
}

Value ExpertBuilder::variable(StringRef tensor, ArrayRef<int64_t> shape, double std, bool full) {
  std::string name = withoutExpert(tensor);
  Weight weight{name, SmallVector<int64_t>(shape), std, 0, tensor.str()};
  weight.experts = name != tensor ? e.mostRows() : 0;
  weight.full = full;
  return g.weight(weight);
}

std::pair<Value, Value> ExpertBuilder::matrices(StringRef name, int64_t in, int64_t out,
                                                double std, std::optional<int64_t> part) {
  const Experts &names = m.family.experts;
  if (names.storage == ExpertStorage::Apart)
    return {variable((name + ".weight").str(), {e.count, out, in}, std), Value()};
  if (names.storage == ExpertStorage::Stacked || names.storage == ExpertStorage::Below) {
    std::string variable = (name + ".weight").str();
    Weight matrix{variable, {e.count, out, in}, std, 0, (name + names.suffix).str()};
    matrix.experts = e.mostRows();
    if (names.storage == ExpertStorage::Below) {
      // Rows of all are inner elements, so that of down is [in, out].
      matrix.tensor += "{rows}";
      matrix.transpose = !part;
      matrix.rows.full = e.count * e.inner;
    }
    return {g.weight(matrix), Value()};
  }
  std::string tensor = ((part ? names.gateUp : name) + names.suffix).str();
  std::string ofMatrix = (name + ".weight").str(), ofBias = (name + ".bias").str();
  FileRows rows;
  if (part && names.storage == ExpertStorage::Halves)
    rows = {*part * out, 2 * out};
  else if (part)
    rows = {*part, 2 * out, 2 * out, {0, out, 2}};
  Value matrix = g.weight({ofMatrix, {e.count, out, in}, std, 0, tensor, names.transposed, rows,
                           /*rowDim=*/1, e.mostRows()});
  if (!names.bias)
    return {matrix, Value()};
  Value bias = g.weight({ofBias, {e.count, out}, 0, 0, tensor + "_bias", false, rows, 1, e.mostRows()});
  return {matrix, g.reshape(bias, {e.count, out, 1})};
}

Value ExpertBuilder::activate(Value gate, Value up) {
  return gate ? g.gated(m.activation, gate, up, e.gate) : g.activation(m.activation, up);
}

Value ExpertBuilder::logits(Value h) {
  const Experts &names = m.family.experts;
  g.part(names.router);
  if (!names.routerScale.empty()) {
    Value scale = g.weight({names.routerScale, {m.hidden}, 0, 1});
    h = g.scale(g.norm(NormKind::RMS, h, scale, {}, m.eps, false), 1 / std::sqrt(double(m.hidden)));
  }
  Value weight =
      variable((names.router + ".weight").str(), {e.all(), m.hidden}, m.std, names.fullRouter);
  Value bias;
  if (names.routerBias)
    bias = variable((names.router + ".bias").str(), {e.all()}, m.std, names.fullRouter);
  std::optional<FullPrecision> full;
  if (names.fullRouter)
    full.emplace(g.builder);
  return g.linear(h, weight, bias);
}

Value ExpertBuilder::scores(Value logits) {
  return e.sigmoid ? Value(make<SigmoidOp>(logits)) : make<SoftmaxOp>(logits);
}

Value ExpertBuilder::choiceBias() {
  StringRef name = m.family.experts.choiceBias;
  Weight bias{name, {1, e.all()}};
  bias.full = true;
  // Nothing but counts of tokens may change it.
  bias.frozen = e.biasRate == 0;
  bias.balanceRate = e.biasRate;
  if (m.family.experts.choiceBiasIsRow)
    return g.reshape(g.weight(bias), {e.all()});
  bias.shape = {e.all()};
  return g.weight(bias);
}

Value ExpertBuilder::choose(Value scores) {
  const Experts &names = m.family.experts;
  if (!names.choiceBias.empty())
    scores = g.add(scores, repeat(choiceBias(), {b, s, e.all()}, {0, 1}));
  if (e.groups == 1)
    return make<TopKOp>(scores, e.chosen);
  int64_t size = e.count / e.groups;
  Value grouped = g.reshape(scores, {b, s, e.groups, size});
  Value best = g.mul(grouped, make<TopKOp>(grouped, names.groupBest));
  Value open = make<TopKOp>(sum(best, 3), e.chosenGroups);
  // Scores of other groups are below all: x + 0 is x, and x - 1e30 is -1e30.
  Value closed = g.scale(g.add(open, g.fill(-1, {b, s, e.groups})), 1e30);
  grouped = g.add(grouped, repeat(closed, {b, s, e.groups, size}, 3));
  return make<TopKOp>(g.reshape(grouped, {b, s, e.count}), e.chosen);
}

Value ExpertBuilder::weights(Value scores, Value mask) {
  // Sigmoids may all be 0.
  double least = std::max(m.family.experts.addedToSum, e.sigmoid ? 1e-20 : 0);
  // One weight that is normalized is 1. Divided by itself it would have a gradient of rounding errors,
  // of which AdamW makes steps of full size.
  if (e.normalized && e.chosen == 1 && least == 0 && e.leastSum == 0)
    return g.scale(mask, e.factor);
  Value chosen = g.mul(scores, mask);
  if (e.normalized && e.chosen == 1 && e.leastSum > 0) {
    Builder &b = g.builder;
    return g.scale(make<ClampOp>(g.scale(chosen, 1 / e.leastSum), b.getF64FloatAttr(-INFINITY),
                                 b.getF64FloatAttr(1)),
                   e.factor);
  }
  if (e.normalized) {
    Value total = sum(chosen, 2);
    if (e.leastSum > 0)
      total = make<ClampOp>(total, g.builder.getF64FloatAttr(e.leastSum),
                            g.builder.getF64FloatAttr(INFINITY));
    Value root = make<InverseRootOp>(total, g.builder.getF64FloatAttr(least));
    chosen = g.mul(chosen, repeat(g.mul(root, root), {b, s, e.all()}, 2));
  }
  return g.scale(chosen, e.factor);
}

Value ExpertBuilder::mix(Value logits) {
  Builder &builder = g.builder;
  auto relu = [&](Value x) { return g.activation("relu", x); };
  auto minus = [&](Value x, Value y) { return g.add(x, g.scale(y, -1)); };
  auto spread = [&](Value x) { return repeat(x, {b, s, e.count}, 2); };
  Value first = make<TopKOp>(logits, 1), both = make<TopKOp>(logits, 2);
  Value size = g.add(relu(logits), relu(g.scale(logits, -1)));
  auto weightOf = [&](Value chosen, Value more) {
    Value largest = spread(sum(g.mul(logits, chosen), 2));
    // 1 where (largest - x) / max(|x|, largest) is above 2 jitter, with no gradient.
    Value bound = g.scale(g.add(largest, relu(minus(size, largest))), 2 * e.jitter);
    Value closed = make<ClampOp>(g.scale(minus(minus(largest, logits), bound), 1e30),
                                 builder.getF64FloatAttr(0), builder.getF64FloatAttr(1));
    if (more)
      closed = g.add(closed, more);
    return g.mul(make<SoftmaxOp>(g.add(logits, g.scale(closed, -1e30))), chosen);
  };
  return g.add(weightOf(first, {}), weightOf(minus(both, first), first));
}

void ExpertBuilder::balance(Value scores, Value mask) {
  // Sums over the tokens of each part of the batch that has statistics of its own.
  bool apart = e.scope == AuxScope::sequence;
  SmallVector<int64_t, 2> both{0, 1}, tokens = apart ? SmallVector<int64_t, 2>{1} : both;
  if (e.balanceKind == AuxLoss::sequence) {
    // What a token would choose without groups and the bias, and sigmoids as shares of their sum.
    if (e.groups > 1 || !m.family.experts.choiceBias.empty())
      mask = make<TopKOp>(scores, e.chosen);
    if (e.sigmoid) {
      Value root = make<InverseRootOp>(sum(scores, 2), g.builder.getF64FloatAttr(1e-20));
      scores = g.mul(scores, repeat(g.mul(root, root), {b, s, e.all()}, 2));
    }
  }
  // transformers counts what a token would choose without the bias.
  if (e.balanceKind == AuxLoss::hf && !m.family.experts.choiceBias.empty())
    mask = make<TopKOp>(scores, e.chosen);
  // Of the experts that a token has chosen, the one with the largest score is its first choice.
  if (e.balanceKind == AuxLoss::gshard && e.chosen > 1)
    mask = make<TopKOp>(e.groups > 1 ? g.mul(scores, mask) : scores, 1);
  Value choices = make<ReduceOp>(ReduceKind::Sum, mask, tokens);
  scores = make<ReduceOp>(ReduceKind::Sum, scores, tokens);
  if (e.balanceKind == AuxLoss::hf) {
    g.addToSum(0, choices);
    g.addToSum(1, scores);
    return;
  }
  if (e.counted)
    choices = make<BatchSumOp>(choices);
  SmallVector<int64_t, 2> all = apart ? both : SmallVector<int64_t, 2>{0};
  g.addToSum(0, g.scale(make<ReduceOp>(ReduceKind::Sum, g.mul(scores, choices), all), e.balanceShare));
}

ExpertBuilder::Copies ExpertBuilder::copies() {
  int64_t residues = e.residues(s), slots = e.redundant;
  Value table = g.reshape(g.expertPlacement(), {(residues + 1) * slots});
  Value taken = g.reshape(g.slice(table, 0, 0, residues * slots), {residues, slots});
  return {table, sum(make<OneHotOp>(type({residues, slots, e.count}), taken), 2)};
}

Value ExpertBuilder::expertsOf(const Copies &copies) {
  int64_t slots = e.redundant;
  return make<OneHotOp>(type({slots, e.count}), g.slice(copies.table, 0, e.residues(s) * slots, slots));
}

Value ExpertBuilder::byBlock(Value own, Value copies, int64_t dim) {
  int64_t each = e.count / e.blocks, more = e.redundant / e.blocks;
  auto pad = [&](Value x, int64_t count, int64_t from) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
    shape[dim] = e.blocks;
    shape.insert(shape.begin() + dim + 1, count);
    return g.pad(g.reshape(x, shape), dim + 1, from, each + more);
  };
  Value all = g.add(pad(own, each, 0), pad(copies, more, each));
  SmallVector<int64_t> shape(cast<RankedTensorType>(own.getType()).getShape());
  shape[dim] = e.count + e.redundant;
  return g.reshape(all, shape);
}

Value ExpertBuilder::place(Value x, const Copies &copies) {
  int64_t residues = e.residues(s), slots = e.redundant;
  Value hot = expertsOf(copies);
  Value ofCopies = g.reshape(g.linear(x, hot), {b, s / residues, residues, slots});
  ofCopies = g.mul(ofCopies, repeat(copies.takes, {b, s / residues, residues, slots}, {0, 1}));
  ofCopies = g.reshape(ofCopies, {b, s, slots});
  Value gone = make<ContractOp>(g.builder.getStringAttr("b s c, c e -> b s e"), ofCopies, hot, Value());
  return byBlock(g.add(x, g.scale(gone, -1)), ofCopies, 2);
}

Value ExpertBuilder::withCopies(Value matrices, const Copies &copies) {
  Value ofCopies =
      make<ContractOp>(g.builder.getStringAttr("e o i, c e -> c o i"), matrices, expertsOf(copies), Value());
  return byBlock(matrices, ofCopies, 0);
}

/// ceil(multiple * amount / parts), but `most` if that is less. It is exact for the decimal that somebody
/// has written, the shortest that is this binary number.
static int64_t shareOf(double multiple, int64_t amount, int64_t parts, int64_t most) {
  double about = multiple * double(amount) / double(parts);
  if (about >= 2 * double(most))
    return most;
  if (about < 0.5)
    return 1;
  // Digits times a power of ten.
  char decimal[32];
  auto written = std::to_chars(decimal, std::end(decimal), multiple, std::chars_format::scientific);
  auto [mantissa, power] = StringRef(decimal, size_t(written.ptr - decimal)).split('e');
  auto [whole, part] = mantissa.split('.');
  int64_t exponent = 0;
  (void)power.ltrim('+').getAsInteger(10, exponent);
  exponent -= int64_t(part.size());
  // 17 digits, two integers, and powers that make up for their quotient.
  constexpr unsigned bits = 512;
  auto number = [](int64_t n) { return llvm::APInt(bits, uint64_t(n)); };
  llvm::APInt above = llvm::APInt(bits, (whole + part).str(), 10) * number(amount),
              below = number(parts);
  for (; exponent > 0; --exponent)
    above *= number(10);
  for (; exponent < 0; ++exponent)
    below *= number(10);
  llvm::APInt share = (above + below - 1).udiv(below);
  return share.ult(number(most)) ? int64_t(share.getZExtValue()) : most;
}

/// How many sums go from layer to layer for the balance of experts.
static unsigned balanceSums(const ExpertSizes &e) {
  return e.balance == 0 ? 0 : e.balanceKind == AuxLoss::hf ? 2 : 1;
}

Value ExpertBuilder::build(Value h, Value routed) {
  const Experts &names = m.family.experts;
  int64_t k = e.mostRows();
  Value logits = this->logits(routed);
  // Which experts are chosen and what they weigh is rounded once: where they are weighed.
  FullPrecision full(g.builder);
  Value probabilities = scores(logits);
  Value mask = choose(names.byLogits || e.jitter ? logits : probabilities);
  g.count(make<TallyOp>(mask, logits), (names.router + ".weight").str(),
          e.biasRate > 0 ? names.choiceBias : "");
  if (e.balance != 0)
    balance(probabilities, mask);
  if (e.zLoss != 0) {
    Value lse = make<LogSumExpOp>(logits);
    SmallVector<int64_t, 2> tokens{0, 1};
    g.addToSum(balanceSums(e), make<ReduceOp>(ReduceKind::Sum, g.mul(lse, lse), tokens));
  }
  int64_t x = e.blocks, capacity = 0;
  // An expert that takes all tokens of a sequence drops none.
  if (e.capacity)
    capacity = shareOf(*e.capacity, k * s, e.all(), s);
  if (capacity == s)
    capacity = 0;
  int64_t all = e.count + e.redundant, slots = mostRowsOfBlock(s, k, all / x, capacity);
  // What a capacity drops depends on the whole sequence.
  bool apart = e.contextParts > 1 && s % e.sequenceParts == 0 && !capacity;
  int64_t pieces = apart ? e.contextParts : 1, piece = apart ? s / pieces : 0;
  std::optional<Copies> copies;
  if (e.redundant)
    copies = this->copies();
  // What experts give that have no matrices is no row.
  Value chosen = e.identities ? g.slice(mask, 2, 0, e.count) : mask;
  auto route = make<RouteOp>(copies ? place(chosen, *copies) : chosen, k, x, slots, capacity, piece);
  Rows rows{route.getRows(), route.getChoices(), route.getExperts(), slots, double(k * s), piece};
  if (capacity)
    rows.filled = std::min(rows.filled, double(capacity * e.count));
  // The weight of each choice.
  Value weightsOf = e.jitter ? mix(logits) : weights(probabilities, mask);
  if (!names.expertScale.empty()) {
    Weight scale{names.expertScale, {e.count}, 0, 1};
    scale.full = true;
    weightsOf = g.mul(weightsOf, repeat(g.weight(scale), {b, s, e.count}, {0, 1}));
  }
  Value ofIdentities;
  if (e.identities) {
    ofIdentities = repeat(sum(g.slice(weightsOf, 2, e.count, e.identities), 2), {b, s, m.hidden}, 2);
    weightsOf = g.slice(weightsOf, 2, 0, e.count);
  }
  if (copies)
    weightsOf = place(weightsOf, *copies);
  Value spread = repeat(weightsOf, {k, b, s, all}, 0);
  Value hot = make<OneHotOp>(type({k, b, s, all}), route.getChosen());
  Value ofChoice = g.reshape(sum(g.mul(spread, hot), 3), {k, b, s, 1});
  full.end();

  SmallVector<Matrices, 3> experts;
  auto add = [&](StringRef name, int64_t in, int64_t out, double std,
                 std::optional<int64_t> part) {
    g.part(withoutExpert(name));
    auto [weight, bias] = matrices(name, in, out, std, part);
    if (copies) {
      weight = withCopies(weight, *copies);
      bias = bias ? withCopies(bias, *copies) : Value();
    }
    experts.push_back({withoutExpert(name), weight, bias});
  };
  if (m.gated)
    add(names.gate, m.hidden, e.inner, m.std, 0);
  add(names.up, m.hidden, e.inner, m.std, 1);
  add(names.down, e.inner, m.hidden, m.projectionStd, std::nullopt);
  g.part("experts");
  double slotsOfRound = std::ceil(e.buffer * double(k * s) / double(x));
  // Parts have as many slots each, and so have pieces of a sequence.
  auto slotsOfPart = [&](int64_t count) -> int64_t {
    return pieces * llvm::divideCeil(count, pieces * e.parts);
  };
  bool several = x > 1 && slotsOfRound < double(slots) &&
                 e.parts * slotsOfPart(int64_t(slotsOfRound)) < slots;
  Value result = several ? rounds(h, ofChoice, rows, experts, slotsOfPart(int64_t(slotsOfRound)))
                 : x > 1 && e.parts > 1
                     ? ofRound({}, h, ofChoice, rows, experts, slotsOfPart(slots))
                     : products(h, ofChoice, rows, experts);
  if (ofIdentities)
    result = g.add(result, g.mul(h, ofIdentities));
  if (e.residual)
    result = combine(h, result, shared(h));
  else if (e.sharedInner)
    result = g.scale(g.add(result, shared(h)), e.averaged ? 0.5 : 1);
  if (names.postNorm.empty())
    return result;
  std::string norm = (names.postNorm + ".weight").str();
  g.part(names.postNorm);
  return g.norm(NormKind::RMS, result, g.weight({norm, {m.hidden}, 0, 1}), {}, m.eps, false);
}

Value ExpertBuilder::products(Value h, Value ofChoice, const Rows &rows,
                              ArrayRef<Matrices> matrices) {
  int64_t x = e.blocks;
  bool weighsInput = m.family.experts.weighsInput;
  const Matrices &up = matrices.drop_back().back(), &down = matrices.back();
  // In the order of rows.
  FullPrecision full(g.builder);
  Value ofRow = make<DispatchOp>(ofChoice, rows.choices, rows.rows, rows.piece);
  auto weigh = [&](int64_t width) {
    return repeat(g.reshape(ofRow, {x, b, rows.slots}), {x, b, rows.slots, width}, 3);
  };
  Value weight = weigh(weighsInput ? m.hidden : e.inner);
  Value ofBias = down.bias ? weigh(m.hidden) : Value();
  full.end();

  Value tokens = make<DispatchOp>(h, rows.choices, rows.rows, rows.piece);
  if (weighsInput)
    tokens = g.mul(tokens, weight);
  auto multiply = [&](Value rowsOf, Value by) -> Value {
    return make<GroupedLinearOp>(rowsOf, by, rows.experts, /*transposed=*/false,
                                 llvm::APFloat(rows.filled / double(x * rows.slots)));
  };
  // A bias is the matrix of one column; it is multiplied by ones.
  Value one = down.bias ? g.fill(1, {x, b, rows.slots, 1}) : Value();
  auto grouped = [&](Value rowsOf, const Matrices &by, Value factor = {}) {
    g.part(by.part);
    Value y = multiply(rowsOf, by.weight);
    if (!by.bias)
      return y;
    Value shift = multiply(one, by.bias);
    return g.add(y, factor ? g.mul(shift, factor) : shift);
  };
  Value gated = m.gated ? grouped(tokens, matrices.front()) : Value(), wide = grouped(tokens, up);
  g.part("experts");
  Value inner = activate(gated, wide);
  // W (w a) = w (W a): so the weight costs no pass over the experts' results.
  if (!weighsInput)
    inner = g.mul(inner, weight);
  Value y = grouped(inner, down, ofBias);
  g.part("experts");
  return sum(make<CollectOp>(y, rows.rows, rows.choices, rows.piece), 0);
}

Value ExpertBuilder::ofRound(Value number, Value h, Value ofChoice, const Rows &rows,
                             ArrayRef<Matrices> matrices, int64_t slotsOfPart) {
  Value result;
  for (int64_t part = 0; part < e.parts; ++part) {
    auto own = make<RowsOfRoundOp>(number, rows.rows, rows.choices, rows.experts, slotsOfPart,
                                   part, e.parts, rows.piece);
    Rows ofPart{own.getOwnRows(), own.getOwnChoices(), own.getOwnExperts(), slotsOfPart,
                rows.filled / double(e.parts), rows.piece};
    Value y = products(h, ofChoice, ofPart, matrices);
    result = result ? g.add(result, y) : y;
  }
  return result;
}

Value ExpertBuilder::rounds(Value h, Value ofChoice, const Rows &rows,
                            ArrayRef<Matrices> matrices, int64_t slotsOfPart) {
  int64_t slots = e.parts * slotsOfPart;
  Value times = make<RoundsOp>(rows.choices, slots, rows.piece ? rows.slots : 0);
  Value none = g.fill(0, {b, s, m.hidden});
  SmallVector<Value> shared{h, ofChoice, rows.rows, rows.choices, rows.experts};
  for (const Matrices &of : matrices)
    for (Value value : {of.weight, of.bias})
      if (value)
        shared.push_back(value);
  // Arguments: the round, the sum so far, and what all rounds share.
  SmallVector<Type> types{RankedTensorType::get({}, g.builder.getI32Type()), none.getType()};
  llvm::append_range(types, ValueRange(shared).getTypes());
  OpBuilder top(g.function);
  std::string name = (g.function.getSymName() + ".round").str();
  auto round = func::FuncOp::create(top, g.where(), name,
                                    top.getFunctionType(types, none.getType()));
  round.setPrivate();
  Block &body = *round.addEntryBlock();
  for (auto [argument, value] : llvm::zip(body.getArguments().drop_front(2), shared))
    argument.setLoc(value.getLoc());
  auto result =
      RepeatOp::create(g.builder, g.where(), none.getType(), name,
                       llvm::divideCeil(rows.slots, slots), /*reverse=*/false, /*indexed=*/true,
                       none, ValueRange(), shared, times);

  OpBuilder::InsertionGuard guard(g.builder);
  g.builder.setInsertionPointToStart(&body);
  auto next = body.getArguments().drop_front(2).begin();
  Value tokens = *next++, weights = *next++, all[3] = {*next++, *next++, *next++};
  SmallVector<Matrices, 3> inside(matrices);
  for (Matrices &of : inside) {
    of.weight = *next++;
    of.bias = of.bias ? *next++ : Value();
  }
  Value sum = ofRound(body.getArgument(0), tokens, weights,
                    {all[0], all[1], all[2], rows.slots, rows.filled, rows.piece}, inside, slotsOfPart);
  func::ReturnOp::create(g.builder, g.where(), g.add(body.getArgument(1), sum));
  return result.getResult(0);
}

Value ExpertBuilder::shared(Value h) {
  const Experts &names = m.family.experts;
  // Files may hold gate and up in one tensor.
  auto linear = [&](const Twine &part, Value x, int64_t in, int64_t out, bool biased, double std,
                    StringRef file = {}, const FileRows &rows = {}) {
    std::string name = part.str(), weight = name + ".weight", bias = name + ".bias";
    auto tensor = [&](StringRef of) { return file.empty() ? std::string() : (file + of).str(); };
    g.part(name);
    Value w = g.weight({weight, {out, in}, std, 0, tensor(".weight"), false, rows});
    return g.linear(x, w,
                    biased ? g.weight({bias, {out}, 0, 0, tensor(".bias"), false, rows}) : Value());
  };
  int64_t inner = e.sharedInner, both = names.sharedGateUp.empty() ? 0 : 2 * inner;
  FileRows first{0, both}, second{both / 2, both};
  Value gate;
  if (m.gated)
    gate = linear(names.shared + ".gate_proj", h, m.hidden, inner, m.mlpBias, m.std, names.sharedGateUp, first);
  Value up = linear(names.shared + ".up_proj", h, m.hidden, inner, m.mlpBias, m.std,
                    names.sharedGateUp, second);
  Value wide = gate ? g.gated(m.activation, gate, up, m.gate) : g.activation(m.activation, up);
  Value y = linear(names.shared + ".down_proj", wide, inner, m.hidden, m.mlpBias, m.projectionStd, names.sharedDown);
  if (names.sharedGate.empty())
    return y;
  Value open = make<SigmoidOp>(linear(names.sharedGate, h, m.hidden, 1, false, m.std));
  return g.mul(y, repeat(g.reshape(open, {b, s}), {b, s, m.hidden}, 2));
}

Value ExpertBuilder::combine(Value h, Value experts, Value mlp) {
  StringRef name = m.family.experts.coefficient;
  g.part(name);
  std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
  Value shares = g.linear(h, g.weight({weight, {2, m.hidden}, m.std}), g.weight({bias, {2}}));
  shares = make<SoftmaxOp>(shares);
  auto take = [&](int64_t i, Value of) {
    return g.mul(of, repeat(g.reshape(g.slice(shares, 2, i, 1), {b, s}), {b, s, m.hidden}, 2));
  };
  return g.add(take(0, experts), take(1, mlp));
}

Value meshwright::frontend::buildExperts(LayerGraph &g, const Model &m, int64_t rows,
                                         int64_t sequence, Value h, Value routed) {
  return ExpertBuilder{g, m, rows, sequence}.build(h, routed ? routed : h);
}

void meshwright::frontend::addExpertInputs(ModelGraph &g, const Model &m) {
  if (int64_t slots = m.experts.redundant)
    g.addInput(expertPlacementInput,
               RankedTensorType::get({m.layers, m.experts.residues(g.sequence) + 1, slots}, g.builder.getI32Type()));
}

//===--- the loss -----------------------------------------------------------===//

SmallVector<Value, 3> meshwright::frontend::routerSums(ModelGraph &g, const Model &m) {
  FullPrecision full(g.builder);
  SmallVector<Value, 3> sums;
  if (m.experts.balance != 0 && m.experts.balanceKind != AuxLoss::hf)
    sums.push_back(g.fill(0, {}));
  else if (m.experts.balance != 0)
    sums.assign(2, g.fill(0, m.experts.scope == AuxScope::sequence
                                 ? ArrayRef<int64_t>{g.rows, m.experts.all()}
                                 : ArrayRef<int64_t>{m.experts.all()}));
  if (m.experts.zLoss != 0)
    sums.push_back(g.fill(0, {}));
  return sums;
}

Value meshwright::frontend::routerLoss(ModelGraph &g, const Model &m, ArrayRef<Value> sums) {
  g.part("router_loss");
  FullPrecision full(g.builder);
  Value loss;
  if (m.experts.balance != 0) {
    bool apart = m.experts.scope == AuxScope::sequence, hf = m.experts.balanceKind == AuxLoss::hf;
    // The loss is the mean of the losses of the parts of the batch that have statistics of their own.
    double rows = double(g.tokensOfBatch() / g.sequence);
    double parts = apart ? rows : m.experts.counted ? 1 : rows / double(g.rows);
    double tokens = double(g.tokensOfBatch()) / parts;
    double choices = tokens * m.experts.counting();
    Value product = sums[0];
    if (hf) {
      // Of all layers together; a token counts as one, however many experts it has chosen.
      tokens *= double(llvm::count_if(m.kinds, [](const LayerKind &kind) { return kind.sparse; }));
      choices = tokens;
      Value chosen = sums[0];
      if (m.experts.counted)
        chosen = BatchSumOp::create(g.builder, g.where(), chosen);
      SmallVector<int64_t, 2> dims{0};
      if (apart)
        dims = {0, 1};
      product =
          ReduceOp::create(g.builder, g.where(), ReduceKind::Sum, g.mul(sums[1], chosen), dims);
    }
    double factor = m.experts.balance * double(m.experts.all()) / (tokens * choices * parts);
    loss = g.ofStep(g.scale(product, factor));
    if (m.experts.counted) // Both factors of a product are sums over the batch.
      loss = g.ofStep(loss);
  }
  if (m.experts.zLoss != 0) {
    // A sum over tokens, so microbatches add up.
    Value squares = g.ofStep(g.scale(sums.back(), m.experts.zLoss / double(g.tokensOfBatch())));
    loss = loss ? g.add(loss, squares) : squares;
  }
  return loss;
}
