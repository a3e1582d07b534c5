//===- AttentionRules.cpp - attention and its gradient -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A device has some sequences, some heads and some queries of each, and all keys that
// these see. Query head h reads key head h / r, where r heads share one, so heads are
// two indices, (g r): a device has some g and the heads of each, or, if it has one g,
// some heads of it.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
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
  /// Whether a query does not see all keys of its sequence that there are before it.
  bool seesPart() { return spec.window || spec.chunk || op.getOptions().positions; }
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
  IndexRule rule;
  FactList operands; ///< whose heads are split
};
} // namespace

template <typename OpT>
LogicalResult Call<OpT>::checkOffset(Value offset, StringRef of, const Axes &axes, int64_t size) {
  Offset expected = Offset::ofParts(axes, size, checker.mesh), found;
  if (offset) {
    if (facts[offset].expression->name != "zero")
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
  Fact query = facts[op.getQ()], key = facts[op.getK()];
  pin(query, op.getQ(), checker);
  pin(key, op.getK(), checker);
  q = query.type;
  k = key.type;
  if (q.rank() != 4 || k.rank() != 4)
    return checker.refuse(op) << "has no four dimensions";
  spec = op.getSpec().getValue();
  if (options.keyOffset || spec.keys)
    return checker.refuse(op) << "has a part of the keys, for which there is no rule";
  if (spec.queryStride != 1 || spec.keyStride != 1)
    return checker.refuse(op) << "has queries or keys that are apart, for which there is no rule";
  int64_t heads = q.localExtent(2, checker.mesh), queries = q.localExtent(1, checker.mesh);
  if ((spec.heads ? spec.heads : heads) != q.logical(2))
    return checker.refuse(op) << "counts " << spec.heads << " heads where there are "
                              << q.logical(2);
  if ((spec.queries ? spec.queries : queries) != q.logical(1))
    return checker.refuse(op) << "counts " << spec.queries << " queries where there are "
                              << q.logical(1);
  if (failed(checkPaddedSequences()))
    return failure();
  int64_t last = q.shape[1] - 1, first = 0;
  if (spec.window)
    first = last - spec.window + 1;
  if (spec.chunk)
    first = std::max(first, last / spec.chunk * spec.chunk);
  // How many keys there are, and where chunks begin, is known of no padded query if data says it.
  bool isByData = (options.lengths && seesPart()) || (options.positions && spec.chunk);
  if (q.padding.count(1) && (first >= k.shape[1] || isByData))
    return checker.refuse(op) << "has queries in the padding of " << q.str(checker.mesh)
                              << (isByData ? " that may see no keys" : " that see no keys");
  // Without dropout a head's number does not matter.
  if (options.headOffset || spec.dropout > 0)
    if (failed(checkOffset(options.headOffset, "heads", q.dims[2], heads)))
      return failure();
  // All queries see the same keys, and alike, where nothing depends on their positions.
  bool isByPosition = spec.causal || spec.window || spec.chunk || spec.dropout > 0 ||
                      options.positions || options.slopes || options.distances;
  if (options.queryOffset || isByPosition)
    if (failed(checkOffset(options.queryOffset, "queries", q.dims[1], queries)))
      return failure();
  spec.heads = q.logical(2);
  spec.queries = q.logical(1);
  spec.pairs = 0;
  return success();
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
  Builder builder(op);
  SmallVector<Attribute> attributes = {train::AttentionAttr::get(op.getContext(), spec)};
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
    attributes.push_back(builder.getI64IntegerAttr(number));
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
  auto types = rule.apply(op, operands, checker);
  if (failed(types))
    return failure();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  // What a head makes is 0 where its values are.
  constexpr unsigned values = 2, headOfValues = 2, headOfResult = 2;
  if (linear.empty() && operands[values].type.isFilled(headOfValues, 0))
    types->front().padding[headOfResult].fill = 0;
  for (auto [index, type] : llvm::enumerate(*types)) {
    mergeHeads(type, Indices(rule.results[index]));
    made.push_back({checker.make(op, builder.getArrayAttr(attributes), expressionsOf(operands),
                                 index, type.expressionShape()),
                    type});
  }
  return success();
}

static LogicalResult attention(train::AttentionOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  if (op.getBefore())
    return checker.refuse(op) << "has results of other keys, for which there is no rule";
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
  attachRule<train::AttentionOp, attention, OnPadding::known>(context);
  attachRule<train::AttentionGradOp, attentionGrad, OnPadding::known>(context);
}
