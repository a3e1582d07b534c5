//===- AttentionRules.cpp - attention and its gradient -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A device has some sequences, some heads and some queries of each, and all keys that
// these see. Query head h reads key head h / r, where r heads share one, so heads are
// two indices, (g r): a device has some g and the heads of each, or, if it has one g,
// some heads of it.
//
// Where keys are in parts too, as those that go around a ring, a call makes terms
// (Parts.h): of the softmax, which merges with the results of other keys, or of
// gradients. Which queries and keys they are of is what the offsets say, and these must
// be where the device's queries and keys are.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
/// The number of the option of sinks, in the order of Call::certify.
constexpr unsigned sinksOption = 5;

/// The sinks of an expression of attention, null if it has none.
const Expression *sinksOf(const Expression *attention) {
  if (attention->name == unroundedName)
    attention = attention->operands[0];
  auto numbers = dyn_cast_or_null<ArrayAttr>(attention->attributes);
  if (attention->name != train::AttentionOp::getOperationName() || !numbers)
    return nullptr;
  for (auto [index, number] : llvm::enumerate(numbers.getValue().drop_front()))
    if (cast<IntegerAttr>(number).getInt() == sinksOption)
      return attention->operands[3 + index];
  return nullptr;
}

/// Index `b` of sequences, `s` of queries, `g r` of heads, `t` of keys, `d` and `e` of features,
/// `n` of distances, `w` of a key's words.
enum Index : unsigned { b, s, g, r, t, d, e, n, w };
using Indices = SmallVector<unsigned, 4>;

template <typename OpT> class Call {
public:
  Call(OpT op, Facts operands, Checker &checker) : op(op), checker(checker) {
    for (auto [value, fact] : llvm::zip(op->getOperands(), operands))
      facts[value] = fact;
  }

  LogicalResult certify(ArrayRef<std::pair<Value, Indices>> tensors, ArrayRef<Indices> results,
                        StringRef linear, NewFacts &made);

private:
  LogicalResult checkSizes();
  LogicalResult checkPaddedSequences();
  /// Finds out which queries and keys each device has, and makes of them equal parts and all keys.
  LogicalResult readParts();
  LogicalResult readParts(ArrayRef<std::pair<Value, int64_t>> tensors,
                          std::optional<Pieces> &pieces);
  /// The part of a dimension that `offset` and `stride` say is the device's.
  LogicalResult checkPart(Value offset, StringRef of, int64_t stride,
                          const std::vector<Span> &blocks);
  /// Gives a result its parts, or the terms that it is.
  void addParts(unsigned index, Distribution &type);
  /// The results before must be those of one call, or the softmax that weighs one is not the other's.
  LogicalResult checkBefore();
  /// The terms of all keys so far.
  LogicalResult mergeBefore(Value value, const Expression *expression, Distribution &type);
  /// The expression of a result, from those of the operands, that a call with all keys has.
  const Expression *express(unsigned index, ArrayRef<int64_t> shape);
  /// Whether a query does not see all keys of its sequence that there are before it.
  bool seesPart() { return spec.window || spec.chunk || op.getOptions().positions; }
  /// The results of other keys, if there are any.
  SmallVector<Value, 2> befores() {
    if constexpr (std::is_same_v<OpT, train::AttentionOp>)
      if (op.getBefore())
        return {op.getBefore(), op.getBeforeLse()};
    return {};
  }
  /// Whether results depend on the positions of queries and keys.
  bool isByPosition() {
    train::AttentionOptions options = op.getOptions();
    return spec.causal || spec.window || spec.chunk || spec.dropout > 0 || options.positions ||
           options.slopes || options.distances;
  }
  LogicalResult add(Value value, Indices indices);
  /// Makes the two indices of heads of dimension `dim`.
  LogicalResult splitHeads(Distribution &type, int64_t dim);
  static void mergeHeads(Distribution &type, const Indices &indices);
  /// Whether an offset, null for none, is where the device's part begins.
  LogicalResult checkOffset(Value offset, StringRef of, const Axes &axes, int64_t size);

  OpT op;
  Checker &checker;
  llvm::DenseMap<Value, Fact> facts;
  train::AttentionSpec spec;
  Distribution q, k; ///< as they are
  /// What a device has, if not equal parts of queries and all keys.
  std::optional<Pieces> queryParts, keyParts;
  int64_t heldKeys = 0; ///< of all devices, with those in the padding, which no query sees
  /// Whether no query in the padding sees a key: what they make is 0, and their logarithms are those of 0.
  bool seesNothing = false;
  Axes group; ///< along which devices have parts
  SmallVector<unsigned> given; ///< numbers of the options behind q, k and v
  IndexRule rule;
  FactList operands; ///< whose heads are split
  unsigned required = 0; ///< operands that are no options
};
} // namespace

template <typename OpT>
LogicalResult Call<OpT>::checkOffset(Value offset, StringRef of, const Axes &axes, int64_t size) {
  Offset expected = Offset::ofParts(axes, size, checker.mesh), found;
  if (offset) {
    if (facts[offset].expression->name != "zero" ||
        facts[offset].type != Distribution::replicated({}))
      return checker.refuse(op) << "has an offset of " << of
                                << " that is none of the device's part";
    found = facts[offset].offset;
  }
  if (found != expected)
    return checker.refuse(op) << "does not count " << of
                              << " from the first one of the device's part, which is sharded over "
                              << checker.mesh.str(axes);
  return success();
}

/// Queries in the padding must see a key, or the softmax of their scores is none: sequences there
/// must have keys, and documents that begin no later than their tokens.
template <typename OpT> LogicalResult Call<OpT>::checkPaddedSequences() {
  train::AttentionOptions options = op.getOptions();
  std::pair<Value, double> least[] = {{options.lengths, seesPart() ? double(k.shape[1]) : 1},
                                      {options.positions, 0}};
  for (auto [value, number] : least) {
    if (!value || !q.padding.count(0))
      continue;
    const Distribution &type = facts[value].type;
    auto padding = type.padding.find(0);
    bool isEnough = padding != type.padding.end() && padding->second.fill >= number;
    if (!isEnough)
      return checker.refuse(op) << "has sequences in the padding of " << q.str(checker.mesh)
                                << " that may see no keys: its "
                                << (value == options.lengths ? "lengths" : "positions") << " are "
                                << type.str(checker.mesh) << ", not " << int64_t(number)
                                << " or more there";
  }
  return success();
}

template <typename OpT> LogicalResult Call<OpT>::checkSizes() {
  train::AttentionOptions options = op.getOptions();
  spec = op.getSpec().getValue();
  if (failed(readParts()))
    return failure();
  Fact query = facts[op.getQ()], key = facts[op.getK()];
  pin(query, op.getQ(), checker);
  pin(key, op.getK(), checker);
  q = query.type;
  k = key.type;
  if (q.rank() != 4 || k.rank() != 4)
    return checker.refuse(op) << "has no four dimensions";
  int64_t heads = q.localExtent(2, checker.mesh), queries = q.localExtent(1, checker.mesh);
  if ((spec.heads ? spec.heads : heads) != q.logical(2))
    return checker.refuse(op) << "counts " << spec.heads << " heads where there are "
                              << q.logical(2);
  if ((spec.queries ? spec.queries : queries) != q.logical(1))
    return checker.refuse(op) << "counts " << spec.queries << " queries where there are "
                              << q.logical(1);
  if (failed(checkPaddedSequences()))
    return failure();
  auto firstKeyOf = [&](int64_t query) {
    int64_t first = spec.window ? query - spec.window + 1 : 0;
    return spec.chunk ? std::max(first, query / spec.chunk * spec.chunk) : first;
  };
  // How many keys there are, and where chunks begin, is known of no padded query if data says it.
  bool isByData = (options.lengths && seesPart()) || (options.positions && spec.chunk);
  seesNothing = q.padding.count(1) && firstKeyOf(q.logical(1)) >= k.shape[1];
  bool seesLittle = firstKeyOf(q.shape[1] - 1) >= k.shape[1] && !seesNothing;
  if (q.padding.count(1) && (seesLittle || isByData))
    return checker.refuse(op) << "has queries in the padding of " << q.str(checker.mesh)
                              << (isByData ? " that may see no keys" : " that see no keys");
  // Without dropout a head's number does not matter.
  if (options.headOffset || spec.dropout > 0)
    if (failed(checkOffset(options.headOffset, "heads", q.dims[2], heads)))
      return failure();
  // All queries see the same keys, and alike, where nothing depends on their positions.
  if (!queryParts && (options.queryOffset || isByPosition()))
    if (failed(checkOffset(options.queryOffset, "queries", q.dims[1], queries)))
      return failure();
  spec.heads = q.logical(2);
  spec.queries = q.logical(1);
  spec.pairs = 0;
  spec.keys = 0;
  spec.queryStride = spec.keyStride = 1;
  return success();
}

template <typename OpT>
LogicalResult Call<OpT>::readParts(ArrayRef<std::pair<Value, int64_t>> tensors,
                                   std::optional<Pieces> &pieces) {
  llvm::SmallDenseSet<Value> seen;
  for (auto [value, dim] : tensors) {
    Fact &fact = facts[value];
    if (!seen.insert(value).second || fillOf(fact.expression))
      continue;
    std::string why;
    settle(fact, checker, &why);
    Distribution &type = fact.type;
    if (type.rank() <= dim || type.terms || type.chunks)
      return checker.refuse(op) << "reads " << type.str(checker.mesh)
                                << (why.empty() ? why : ", which " + why);
    auto own = type.piecesOf(dim, checker.mesh);
    if (seen.size() > 1 && pieces != own)
      return checker.refuse(op) << "reads " << type.str(checker.mesh)
                                << ", of other queries or keys than what is beside it";
    pieces = own;
    type.pieces.erase(dim);
    if (!type.pieces.empty())
      return checker.refuse(op) << "reads pieces of another dimension than that of queries or keys: "
                                << type.str(checker.mesh);
  }
  return success();
}

template <typename OpT>
LogicalResult Call<OpT>::checkPart(Value offset, StringRef of, int64_t stride,
                                   const std::vector<Span> &blocks) {
  SmallVector<int64_t> first(blocks.size());
  if (offset) {
    const Fact &fact = facts[offset];
    const Expression *number = fact.expression;
    int64_t constant = 0;
    if (fact.type != Distribution::replicated({}))
      return checker.refuse(op) << "has an offset of " << of << " that not all devices have";
    if (number->name == numberName)
      constant = int64_t(*fillOf(number->operands[0]));
    else if (number->name != "zero")
      return checker.refuse(op) << "has an offset of " << of << " that is no number of a device";
    auto numbers = fact.offset.along(group, checker.mesh);
    if (!numbers)
      return checker.refuse(op) << "has an offset of " << of << " that is not one along "
                                << checker.mesh.str(group);
    for (auto [position, number] : llvm::enumerate(*numbers))
      first[position] = constant + number;
  }
  for (auto [position, block] : llvm::enumerate(blocks))
    if (first[position] != block.first || (block.size > 1 && stride != block.stride))
      return checker.refuse(op) << "counts " << of << " of the device at position " << position
                                << " along " << checker.mesh.str(group) << " from "
                                << first[position] << " in steps of " << stride
                                << ", where they are those from " << block.first << " in steps of "
                                << block.stride;
  return success();
}

template <typename OpT> LogicalResult Call<OpT>::readParts() {
  train::AttentionOptions options = op.getOptions();
  auto hasPieces = [&](Value value) { return facts[value].type.hasParts(); };
  auto isBefore = [&](Value value) {
    return llvm::is_contained(befores(), value);
  };
  bool hasParts = options.keyOffset || spec.keys || spec.queryStride != 1 || spec.keyStride != 1 ||
                  llvm::any_of(op->getOperands(), hasPieces);
  if (!hasParts)
    return success();
  SmallVector<std::pair<Value, int64_t>> ofQueries = {{op.getQ(), 1}};
  if constexpr (std::is_same_v<OpT, train::AttentionGradOp>)
    ofQueries.append({{op.getDout(), 1}, {op.getOut(), 1}, {op.getLse(), 2}});
  std::pair<Value, int64_t> ofKeys[] = {{op.getK(), 1}, {op.getV(), 1}};
  for (auto [query, dim] : ofQueries)
    for (auto [key, other] : ofKeys)
      if (query == key)
        return checker.refuse(op) << "reads one tensor as queries and keys, in parts";
  for (Value value : {op.getQ(), op.getK()})
    pin(facts[value], value, checker);
  std::optional<Pieces> queries, keys;
  if (failed(readParts(ofQueries, queries)) || failed(readParts(ofKeys, keys)))
    return failure();
  for (Value value : op->getOperands())
    if (!isBefore(value) && facts[value].type.hasParts())
      return checker.refuse(op) << "reads " << facts[value].type.str(checker.mesh)
                                << " as one of its options";
  if (!queries)
    return checker.refuse(op)
           << "has a part of the keys, but all queries, for which there is no rule";
  group = queries->group;
  if (keys && keys->group != group)
    return checker.refuse(op) << "has queries and keys that are divided along other axes, "
                              << checker.mesh.str(group) << " and "
                              << checker.mesh.str(keys->group);
  const Distribution &key = facts[op.getK()].type;
  bool countsAll = (!keys && !spec.keys && !key.padding.count(1)) || spec.keys == key.logical(1);
  if (bool(options.keyOffset) != bool(keys) || !countsAll || (!keys && spec.keyStride != 1))
    return checker.refuse(op) << "counts " << spec.keys << " keys in steps of " << spec.keyStride
                              << ", of which the device has " << key.str(checker.mesh);
  auto queryBlocks = queries->single();
  if (!queryBlocks)
    return checker.refuse(op) << "has queries that are no one block";
  if ((options.queryOffset || isByPosition()) &&
      failed(checkPart(options.queryOffset, "queries", spec.queryStride, *queryBlocks)))
    return failure();
  if (keys) {
    auto keyBlocks = keys->single();
    if (!keyBlocks)
      return checker.refuse(op) << "has keys that are no one block";
    if (failed(checkPart(options.keyOffset, "keys", spec.keyStride, *keyBlocks)))
      return failure();
  }
  queryParts = queries;
  keyParts = keys;
  for (auto [value, dim] : ofQueries)
    if (!fillOf(facts[value].expression))
      facts[value].type.dims[dim] = group;
  heldKeys = key.shape[1];
  for (auto [value, dim] : ofKeys) {
    Distribution &type = facts[value].type;
    if (fillOf(facts[value].expression))
      continue;
    type.dims[dim].clear();
    auto padding = type.padding.find(dim);
    if (padding == type.padding.end())
      continue;
    if (padding->second.fill && std::isinf(*padding->second.fill))
      return checker.refuse(op) << "computes with infinite padding of keys or values";
    type.shape[dim] = padding->second.logical;
    type.padding.erase(padding);
  }
  return success();
}

template <typename OpT> void Call<OpT>::addParts(unsigned index, Distribution &type) {
  if (!queryParts)
    return;
  constexpr bool isGradient = std::is_same_v<OpT, train::AttentionGradOp>;
  bool ofQueries = !isGradient || index == 0, ofKeys = isGradient && (index == 1 || index == 2);
  if (ofQueries)
    type.setPieces(isGradient || index == 0 ? 1 : 2, *queryParts, checker.mesh);
  else
    llvm::erase_if(type.sum, [&](unsigned axis) { return llvm::is_contained(group, axis); });
  if (ofKeys && type.shape[1] != heldKeys) {
    type.padding[1] = {type.shape[1], 0.0};
    type.shape[1] = heldKeys;
  }
  if (ofKeys && keyParts)
    type.setPieces(1, *keyParts, checker.mesh);
  if (ofQueries && !keyParts)
    return;
  Terms terms;
  terms.kind = isGradient ? Terms::sum : Terms::softmax;
  terms.side = ofQueries ? Terms::queries : ofKeys && keyParts ? Terms::keys : Terms::none;
  terms.group = group;
  train::AttentionOptions options = op.getOptions();
  // Queries behind the last key are in its document, and a sequence has a token at least. Padding of
  // which each query sees nothing is known to be that.
  int64_t seen = k.shape[1], asked = seesNothing ? q.shape[1] : q.logical(1);
  Span sure = {options.positions ? seen - 1 : 0, options.positions || options.lengths ? 1 : seen};
  if (options.positions && options.lengths && seen > 1)
    sure.size = 0;
  terms.view = {q.shape[1], heldKeys, spec.window, options.positions ? 0 : spec.chunk,
                spec.causal, seen, asked, sure};
  std::vector<Span> queries = *queryParts->single();
  for (auto [position, block] : llvm::enumerate(queries)) {
    // A gradient of sinks is a sum over queries alone, that of distances one over pairs.
    Span keys = {0, heldKeys};
    bool isOfDistances = op.getOptions().distances && index + 1 == op->getNumResults();
    if (keyParts && (ofQueries || ofKeys || isOfDistances))
      keys = (*keyParts->single())[position];
    terms.of.push_back({{block, keys}});
  }
  type.terms = terms;
}

template <typename OpT> LogicalResult Call<OpT>::splitHeads(Distribution &type, int64_t dim) {
  const Axes &groups = k.dims[2], axes = type.dims[dim];
  int64_t count = k.shape[2];
  Axes rest(axes.begin() + std::min(groups.size(), axes.size()), axes.end());
  bool isPrefix =
      axes.size() >= groups.size() && ArrayRef(axes).take_front(groups.size()) == ArrayRef(groups);
  if (!isPrefix || (!rest.empty() && checker.mesh.size(groups) != count) || type.shape[dim] % count)
    return checker.refuse(op)
           << "has heads, sharded over " << checker.mesh.str(axes)
           << ", whose keys are not on the same device: their heads are sharded over "
           << checker.mesh.str(groups);
  type.dims[dim] = groups;
  type.dims.insert(type.dims.begin() + dim + 1, rest);
  int64_t each = type.shape[dim] / count, logical = k.logical(2);
  // Padding is whole groups of heads that read a key head each, or heads of the one group.
  if (type.logical(dim) != logical * each && count != 1)
    return checker.refuse(op) << "has " << type.logical(dim) << " heads before its padding for "
                              << logical << " of keys, where a key's head has " << each;
  std::map<int64_t, Padding> padding;
  for (auto &[other, value] : type.padding)
    padding[other + (other > dim || (other == dim && count == 1))] = value;
  if (count != 1 && padding.count(dim))
    padding[dim].logical = logical;
  type.padding = padding;
  type.shape[dim] = count;
  type.shape.insert(type.shape.begin() + dim + 1, each);
  return success();
}

template <typename OpT> LogicalResult Call<OpT>::add(Value value, Indices indices) {
  Fact fact = facts[value];
  pin(fact, value, checker);
  auto heads = llvm::find(indices, Index::r);
  if (heads != indices.end())
    if (failed(splitHeads(fact.type, heads - indices.begin() - 1)))
      return failure();
  rule.operands.push_back(indices);
  operands.push_back(fact);
  return success();
}

template <typename OpT> void Call<OpT>::mergeHeads(Distribution &type, const Indices &indices) {
  auto heads = llvm::find(indices, Index::r);
  if (heads == indices.end())
    return;
  int64_t dim = heads - indices.begin() - 1;
  std::map<int64_t, Padding> padding;
  for (auto &[other, value] : type.padding)
    padding[other - (other > dim)] = {other == dim ? value.logical * type.shape[dim + 1]
                                                   : value.logical,
                                      value.fill, value.isPositive};
  type.padding = padding;
  type.dims[dim].append(type.dims[dim + 1]);
  type.dims.erase(type.dims.begin() + dim + 1);
  type.shape[dim] *= type.shape[dim + 1];
  type.shape.erase(type.shape.begin() + dim + 1);
}

template <typename OpT>
LogicalResult Call<OpT>::certify(ArrayRef<std::pair<Value, Indices>> tensors,
                                 ArrayRef<Indices> results, StringRef linear, NewFacts &made) {
  if (failed(checkSizes()))
    return failure();
  for (const auto &[value, indices] : tensors)
    if (failed(add(value, indices)))
      return failure();
  required = tensors.size();
  train::AttentionOptions options = op.getOptions();
  std::pair<Value, Indices> optional[] = {{options.ids, {b}},
                                          {options.key, {w}},
                                          {options.positions, {b, t}},
                                          {options.lengths, {b}},
                                          {options.slopes, {g, r}},
                                          {options.sinks, {g, r}},
                                          {options.distances, {n, g, r}}};
  for (auto [number, option] : llvm::enumerate(optional)) {
    if (!option.first)
      continue;
    given.push_back(number);
    if (failed(add(option.first, option.second)))
      return failure();
  }
  rule.results.assign(results.begin(), results.end());
  for (auto [option, indices] :
       {std::pair(options.sinks, Indices{g, r}), {options.distances, Indices{n, g, r}}})
    if (option && rule.results.size() < op->getNumResults())
      rule.results.push_back(indices);
  rule.whole = {t, d, e, n, w};
  if (linear == "0")
    rule.linear = {{0}};
  if (rule.results.size() != op->getNumResults())
    return checker.refuse(op) << "has results that its rule does not know";
  // Of a gradient's operands: the logarithm of 0 in each query that sees nothing is read for sinks alone.
  constexpr unsigned logarithms = 5, queriesOfLogarithms = 3;
  if (seesNothing && linear == "0" && !options.sinks) {
    auto &padding = operands[logarithms].type.padding;
    auto found = padding.find(queriesOfLogarithms);
    bool isOfNothing = found != padding.end() && found->second.fill == -std::numeric_limits<double>::infinity();
    if (isOfNothing)
      found->second.fill.reset();
  }
  auto types = rule.apply(op, operands, checker);
  if (failed(types) || failed(checkBefore()))
    return failure();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  // What a head makes is 0 where its values are.
  constexpr unsigned values = 2, headOfValues = 2, headOfResult = 2;
  if (linear.empty() && operands[values].type.isFilled(headOfValues, 0))
    types->front().padding[headOfResult].fill = 0;
  if (seesNothing) {
    types->front().padding[1].fill = 0;
    // A sink is seen by all.
    SmallVector<Value, 2> before = befores();
    bool hasSink = options.sinks || (!before.empty() && sinksOf(facts[before[1]].expression));
    if (linear.empty())
      types->back().padding[3] = {
          q.logical(1), hasSink ? std::nullopt : std::optional(-std::numeric_limits<double>::infinity())};
  }
  for (auto [index, type] : llvm::enumerate(*types)) {
    mergeHeads(type, Indices(rule.results[index]));
    addParts(index, type);
    const Expression *expression = express(index, type.expressionShape());
    if (SmallVector<Value, 2> before = befores(); !before.empty())
      if (failed(mergeBefore(before[index], expression, type)))
        return failure();
    Type element = getElementTypeOrSelf(op->getResult(index).getType());
    if (element != expression->element)
      expression = checker.make(op.getLoc(), unroundedName, {}, {expression}, element,
                                expression->shape);
    made.push_back({expression, type});
  }
  return success();
}

template <typename OpT>
const Expression *Call<OpT>::express(unsigned index, ArrayRef<int64_t> shape) {
  constexpr bool isGradient = std::is_same_v<OpT, train::AttentionGradOp>;
  Builder builder(op);
  SmallVector<Attribute> attributes = {train::AttentionAttr::get(op.getContext(), spec)};
  SmallVector<const Expression *> expressions = expressionsOf(operands);
  std::map<unsigned, const Expression *> options;
  for (auto [i, number] : llvm::enumerate(given))
    options[number] = expressions[required + i];
  expressions.truncate(required);
  // The logarithms of sums say what sinks add, so no other gradient than their own depends on them.
  if (isGradient && index < 3)
    options.erase(sinksOption);
  // A sink is one key of all, so the results that are merged first have it.
  if (SmallVector<Value, 2> before = befores(); !before.empty())
    if (const Expression *sinks = sinksOf(facts[before[index]].expression))
      options.insert({sinksOption, sinks});
  for (auto [number, expression] : options) {
    attributes.push_back(builder.getI64IntegerAttr(number));
    expressions.push_back(expression);
  }
  Type element = getElementTypeOrSelf(op->getResult(index).getType());
  // Of a part of the keys results are not rounded.
  std::array<Value, 3> like = {op.getQ(), op.getK(), op.getV()};
  if (keyParts && (isGradient ? index < 3 : index == 0))
    element = getElementTypeOrSelf(like[index].getType());
  return checker.proof.expressions.get(op.getLoc(), op->getName().getStringRef(),
                                       builder.getArrayAttr(attributes), expressions, index,
                                       element, shape);
}

template <typename OpT> LogicalResult Call<OpT>::checkBefore() {
  SmallVector<Value, 2> before = befores();
  if (before.empty())
    return success();
  const Fact &out = facts[before[0]], &lse = facts[before[1]];
  if (out.type.terms != lse.type.terms || sinksOf(out.expression) != sinksOf(lse.expression))
    return checker.refuse(op) << "merges its results with " << out.type.str(checker.mesh)
                              << ", and the logarithms of other sums";
  return success();
}

template <typename OpT>
LogicalResult Call<OpT>::mergeBefore(Value value, const Expression *expression,
                                     Distribution &type) {
  if (op.getOptions().sinks)
    return checker.refuse(op) << "has sinks, which the results before may have too";
  const Fact &before = facts[value];
  const Expression *found = before.expression;
  if (found->name == unroundedName)
    found = found->operands[0];
  std::optional<Terms> all;
  if (type.terms && before.type.terms)
    all = type.terms->plus(*before.type.terms);
  Distribution expected = type;
  expected.terms = before.type.terms;
  if (!all || found != expression || before.type != expected)
    return checker.refuse(op) << "merges its results with " << before.type.str(checker.mesh)
                              << ", which are no results of the same queries for other keys";
  type.terms = all;
  return success();
}

static LogicalResult attention(train::AttentionOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  return Call(op, operands, checker)
      .certify({{op.getQ(), {b, s, g, r, d}}, {op.getK(), {b, t, g, d}}, {op.getV(), {b, t, g, e}}},
               {{b, s, g, r, e}, {b, g, r, s}}, "", results);
}

static LogicalResult attentionGrad(train::AttentionGradOp op, Facts operands, NewFacts &results,
                                   Checker &checker) {
  return Call(op, operands, checker)
      .certify({{op.getDout(), {b, s, g, r, e}},
                {op.getQ(), {b, s, g, r, d}},
                {op.getK(), {b, t, g, d}},
                {op.getV(), {b, t, g, e}},
                {op.getOut(), {b, s, g, r, e}},
                {op.getLse(), {b, g, r, s}}},
               {{b, s, g, r, d}, {b, t, g, d}, {b, t, g, e}}, "0", results);
}

void certify::attachAttentionRules(MLIRContext *context) {
  attachRule<train::AttentionOp, attention, OnPadding::known, OnParts::known>(context);
  attachRule<train::AttentionGradOp, attentionGrad, OnPadding::known, OnParts::known>(context);
}
