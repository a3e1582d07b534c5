//===- KeyExpansion.cpp - what keys and values are made of ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KeyExpansion.h"

#include "AttentionChunks.h"
#include "Dist/Remat/LayerPairs.h"
#include "GatheredKeys.h"
#include "meshwright/Remat.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

//===--- ops on tokens ------------------------------------------------------===//

namespace {
/// The index of tokens in an op's rule, and in which dimension a tensor has it.
struct TokenFactor {
  unsigned factor;
  int64_t size;

  /// -1 where `value` has no tokens; nothing where they are not all of a dimension.
  std::optional<int64_t> dimOf(Value value, const TensorFactors &tensor) const {
    int64_t dim = -1;
    for (auto [d, factors] : llvm::enumerate(tensor.dims)) {
      if (!llvm::is_contained(factors, factor))
        continue;
      if (factors.size() > 1 || dim >= 0 ||
          cast<RankedTensorType>(value.getType()).getDimSize(unsigned(d)) != size)
        return std::nullopt;
      dim = int64_t(d);
    }
    return dim;
  }
};
} // namespace

/// The index that is dimension `dim` of `value`, if the op does not need it whole.
static std::optional<TokenFactor> tokensOf(const ShardingRule &rule, Value value,
                                           const TensorFactors &tensor, int64_t dim) {
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(unsigned(dim));
  if (tensor.dims[dim].size() != 1)
    return std::nullopt;
  const Factor &factor = rule.factors[tensor.dims[dim].front()];
  if (factor.whole || factor.size != size)
    return std::nullopt;
  return TokenFactor{tensor.dims[dim].front(), size};
}

/// Whether the op's rule says all that it does with tokens, so that it does the same with any.
static bool isOfTokens(Operation *op) {
  auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op);
  return op->getNumResults() == 1 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         isa<train::ShardingRuleOpInterface>(op) &&
         !isa<CollectiveOpInterface, train::IndexedOpInterface>(op) &&
         !(accumulating && !accumulating.getInitMutable().empty());
}

/// Where `value` has no tokens, all devices of the ring have the same if it is of floats: what an op
/// reads beside parts of a sequence is neither divided among the sequence's devices nor partial, so only
/// numbers of a device differ (`dist.offset`), which are integers.
static bool isOfFloats(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

static Type wide(Type type) {
  return train::withElementType(type, train::atLeastF32(getElementTypeOrSelf(type)));
}

void TokenOps::clone(OpBuilder &b, IRMapping &map, int64_t tokens, bool again) const {
  for (Operation *op : ops) {
    Operation *copy = b.clone(*op, map);
    if (auto found = dims.find(op->getResult(0)); found != dims.end())
      copy->getResult(0).setType(resized(copy->getResult(0).getType(), found->second, tokens));
    if (auto sized = dyn_cast<train::SizedOpInterface>(copy))
      sized.updateSizes();
    if (again)
      markRecomputed(copy, train::recomputedOfLatents);
  }
}

/// The values of `dims`, numbered in their order, and which of `ops` makes which of which.
static RecomputeGraph graphOf(const llvm::MapVector<Value, int64_t> &dims,
                              ArrayRef<Operation *> ops,
                              llvm::function_ref<RecomputeGraph::Value(Value, int64_t)> nodeOf) {
  RecomputeGraph graph;
  for (auto [value, dim] : dims)
    graph.values.push_back(nodeOf(value, dim));
  for (auto [i, op] : llvm::enumerate(ops)) {
    RecomputeGraph::Op &node = graph.ops.emplace_back();
    for (Value operand : op->getOperands())
      if (auto found = dims.find(operand); found != dims.end())
        node.operands.push_back(found - dims.begin());
    graph.values[dims.find(op->getResult(0)) - dims.begin()].op = int(i);
  }
  return graph;
}

//===--- keys and values ----------------------------------------------------===//

KeyExpansion::KeyExpansion(Value k, Value v) : k(k), v(v), sources{k, v} {
  made.dims[k] = 1;
  made.dims[v] = 1;
}

namespace {
/// All that keys and values are made of, as far as ops treat all tokens alike.
struct Origins {
  explicit Origins(ArrayRef<Value> wanted);

  llvm::MapVector<Value, int64_t> dims;
  SmallVector<Operation *> ops; ///< in order
};
} // namespace

/// The dimensions of tokens in the operands of `op`, by that in its result: -1 for an operand without
/// tokens; nothing if the op cannot run on other tokens.
static std::optional<SmallVector<int64_t>> operandDims(Operation *op, int64_t resultDim) {
  if (!isOfTokens(op))
    return std::nullopt;
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<TokenFactor> tokens =
      tokensOf(rule, op->getResult(0), rule.results[0], resultDim);
  if (!tokens)
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    std::optional<int64_t> dim = tokens->dimOf(operand, tensor);
    if (!dim || !isOfFloats(operand))
      return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

Origins::Origins(ArrayRef<Value> wanted) {
  for (Value value : wanted)
    dims[value] = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto [value, dim] = *(dims.begin() + i);
    Operation *maker = value.getDefiningOp();
    std::optional<SmallVector<int64_t>> needed;
    if (maker)
      needed = operandDims(maker, dim);
    if (!needed)
      continue;
    bool agree = llvm::all_of(llvm::zip(maker->getOperands(), *needed), [&](auto operandAndDim) {
      auto [operand, at] = operandAndDim;
      auto found = dims.find(operand);
      return found == dims.end() || found->second == at;
    });
    if (!agree)
      continue;
    ops.push_back(maker);
    for (auto [operand, at] : llvm::zip(maker->getOperands(), *needed))
      if (at >= 0)
        dims[operand] = at;
  }
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

KeyExpansion KeyExpansion::cheapest(Value k, Value v, const cost::Device &device) {
  KeyExpansion itself(k, v), expansion(k, v);
  SmallVector<Value> wanted{k};
  if (k != v)
    wanted.push_back(v);
  Origins origins(wanted);
  RecomputeGraph graph = graphOf(origins.dims, origins.ops, [&](Value value, int64_t) {
    return RecomputeGraph::Value{bytesOf(value.getType()), -1, /*free=*/false,
                                 llvm::is_contained(wanted, value)};
  });
  for (auto [node, op] : llvm::zip(graph.ops, origins.ops))
    node.cost = costOfOp(op, device);
  int64_t all = 0;
  for (Value value : wanted)
    all += bytesOf(value.getType());
  RecomputeChoice choice = cheapestChoice(graph, device.flopsPerByteSent());
  if (choice.kept.none() || 2 * choice.bytes >= all)
    return itself;
  expansion.sources.clear();
  for (auto [number, entry] : llvm::enumerate(origins.dims))
    if (choice.kept.test(number)) {
      expansion.sources.push_back(entry.first);
      expansion.made.dims[entry.first] = entry.second;
    }
  for (auto [i, op] : llvm::enumerate(origins.ops))
    if (choice.recomputed.test(i)) {
      expansion.made.ops.push_back(op);
      expansion.made.dims[op->getResult(0)] = origins.dims[op->getResult(0)];
    }
  return expansion;
}

IRMapping KeyExpansion::expand(OpBuilder &b, ArrayRef<Value> sent, bool again) const {
  IRMapping map;
  if (sent == ArrayRef<Value>(sources)) {
    for (auto [value, dim] : made.dims)
      map.map(value, value);
    return map;
  }
  for (auto [source, value] : llvm::zip(sources, sent))
    map.map(source, value);
  auto type = cast<RankedTensorType>(sent.front().getType());
  made.clone(b, map, type.getDimSize(dim(sources.front())), again);
  return map;
}

//===--- gradients ----------------------------------------------------------===//

KeyGradient::KeyGradient(Value dk, Value dv) : dk(dk), dv(dv), travel{dk, dv} {
  moved.dims[dk] = 1;
  moved.dims[dv] = 1;
}

/// The ops behind `op` that make `value`, in order; nothing if they cannot run before it.
static std::optional<SmallVector<Operation *>> makersBehind(Value value, Operation *op) {
  llvm::SetVector<Operation *> makers;
  auto insert = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    if (maker && maker->getBlock() == op->getBlock() && !maker->isBeforeInBlock(op))
      makers.insert(maker);
  };
  insert(value);
  for (size_t i = 0; i < makers.size(); ++i) {
    if (makers[i] == op || !isMemoryEffectFree(makers[i]))
      return std::nullopt;
    llvm::for_each(makers[i]->getOperands(), insert);
  }
  SmallVector<Operation *> ordered(makers.begin(), makers.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

namespace {
/// What becomes of gradients of keys and values, as far as it is linear in them and treats all tokens
/// alike.
class GradientFlow {
public:
  GradientFlow(const KeyExpansion &expansion, Value dk, Value dv, Operation *attention)
      : expansion(expansion), attention(attention) {
    dims[dk] = 1;
    dims[dv] = 1;
    // Only ops behind one of both read them.
    Operation *first = dk.getDefiningOp();
    if (dv.getDefiningOp()->isBeforeInBlock(first))
      first = dv.getDefiningOp();
    for (Operation &op : llvm::make_range(std::next(Block::iterator(first)), first->getBlock()->end()))
      add(op);
  }

  llvm::MapVector<Value, int64_t> dims; ///< -1: summed over tokens
  SmallVector<Operation *> ops;

private:
  /// Adds `op` if gradients of tokens flow through it, one step's after the other.
  void add(Operation &op);
  bool isGradientOfTokens(Value value) const {
    auto found = dims.find(value);
    return found != dims.end() && found->second >= 0;
  }

  const KeyExpansion &expansion;
  Operation *attention;
};
} // namespace

void GradientFlow::add(Operation &op) {
  if (!isOfTokens(&op) || llvm::none_of(op.getOperands(), [&](Value operand) {
        return isGradientOfTokens(operand);
      }))
    return;
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(&op).getShardingRule();
  std::optional<TokenFactor> tokens;
  unsigned gradients = 0, added = 0;
  for (auto [operand, tensor] : llvm::zip(op.getOperands(), rule.operands)) {
    added += tensor.additive;
    if (!isGradientOfTokens(operand))
      continue;
    ++gradients;
    std::optional<TokenFactor> here = tokensOf(rule, operand, tensor, dims.lookup(operand));
    if (!here || !(tensor.linear || tensor.additive) || (tokens && tokens->factor != here->factor))
      return;
    tokens = here;
  }
  // All that is added, or one factor of a product.
  if (gradients != std::max(added, 1u))
    return;
  for (auto [operand, tensor] : llvm::zip(op.getOperands(), rule.operands)) {
    if (isGradientOfTokens(operand))
      continue;
    auto there = expansion.made.dims.find(operand);
    int64_t expected = there == expansion.made.dims.end() ? -1 : there->second;
    if (tokens->dimOf(operand, tensor) != expected)
      return;
    if (expected < 0 && (!isOfFloats(operand) || !makersBehind(operand, attention)))
      return;
  }
  std::optional<int64_t> dim = tokens->dimOf(op.getResult(0), rule.results[0]);
  if (!dim || rule.max)
    return;
  ops.push_back(&op);
  dims[op.getResult(0)] = *dim;
}

KeyGradient KeyGradient::cheapest(const KeyExpansion &expansion, Value dk, Value dv,
                                  Operation *attention, const cost::Device &device) {
  KeyGradient asTheyAre(dk, dv), gradient(dk, dv);
  GradientFlow flow(expansion, dk, dv, attention);
  // What is needed after the ring travels, or is computed of what does.
  RecomputeGraph graph = graphOf(flow.dims, flow.ops, [&](Value value, int64_t dim) {
    bool needed = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !llvm::is_contained(flow.ops, user);
    });
    return RecomputeGraph::Value{dim < 0 ? 0 : bytesOf(wide(value.getType())), -1, /*free=*/false,
                                 needed};
  });
  RecomputeChoice choice = cheapestChoice(graph, anyPrice);
  gradient.travel.clear();
  llvm::SmallDenseSet<Value> wanted;
  for (auto [number, entry] : llvm::enumerate(flow.dims))
    if (choice.kept.test(number)) {
      (entry.second < 0 ? gradient.stay : gradient.travel).push_back(entry.first);
      wanted.insert(entry.first);
    }
  double cost = 0;
  for (Operation *op : llvm::reverse(flow.ops))
    if (wanted.contains(op->getResult(0))) {
      wanted.insert(op->operand_begin(), op->operand_end());
      gradient.moved.ops.push_back(op);
      cost += costOfOp(op, device);
    }
  std::reverse(gradient.moved.ops.begin(), gradient.moved.ops.end());
  for (auto [value, dim] : flow.dims)
    if (dim >= 0)
      gradient.moved.dims[value] = dim;
  int64_t all = bytesOf(wide(dk.getType())) + bytesOf(wide(dv.getType()));
  bool gains = cost <= device.flopsPerByteSent() * double(all - choice.bytes);
  return gains && !gradient.travel.empty() && !gradient.moved.ops.empty() ? gradient : asTheyAre;
}

static Value withElements(OpBuilder &b, Value value, Type element) {
  Type wanted = train::withElementType(value.getType(), element);
  return value.getType() == wanted
             ? value
             : train::CastOp::create(b, value.getLoc(), wanted, value).getResult();
}

/// `value` in f32 at least. Sums, and sums of these, that at most `readers` ops read are not rounded
/// before.
static Value widened(OpBuilder &b, Value value, unsigned readers) {
  Operation *op = value.getDefiningOp();
  Type type = wide(value.getType());
  if (value.getType() == type)
    return value;
  auto sum = dyn_cast_or_null<train::SumOpInterface>(op);
  if (op && value.getNumUses() <= readers) {
    if (sum && sum.isSum(0)) {
      value.setType(type);
      return value;
    }
    if (isa<train::AddOp>(op)) {
      OpBuilder before(op);
      for (OpOperand &operand : op->getOpOperands())
        operand.set(widened(before, operand.get(), 1));
      value.setType(type);
      return value;
    }
  }
  return withElements(b, value, getElementTypeOrSelf(type));
}

SmallVector<Value> KeyGradient::terms(OpBuilder &b, IRMapping &map, Value stepDk, Value stepDv,
                                      bool again) const {
  map.map(dk, withElements(b, stepDk, getElementTypeOrSelf(dk)));
  map.map(dv, withElements(b, stepDv, getElementTypeOrSelf(dv)));
  moved.clone(b, map, cast<RankedTensorType>(stepDk.getType()).getDimSize(1), again);
  SmallVector<Value> terms;
  for (Value value : llvm::concat<const Value>(travel, stay))
    terms.push_back(widened(b, map.lookup(value), 0));
  return terms;
}

void KeyGradient::hoistOperands(Operation *attention) const {
  for (Operation *op : moved.ops)
    for (Value operand : op->getOperands())
      if (!moved.dims.contains(operand))
        if (std::optional<SmallVector<Operation *>> makers = makersBehind(operand, attention))
          for (Operation *maker : *makers)
            maker->moveBefore(attention);
}

void KeyGradient::eraseDead() const {
  for (Operation *op : llvm::reverse(moved.ops))
    if (op->use_empty())
      op->erase();
}

//===--- layers -------------------------------------------------------------===//

/// Of what `pair` keeps, keys and values of `expansions` are computed again from what they are made
/// of, and all else stays.
static void keepSources(LayerPair &pair, ArrayRef<KeyExpansion> expansions,
                        const cost::Device &device) {
  LayerGraph layer(pair, device);
  RecomputeGraph graph = layer.graph;
  llvm::SmallDenseSet<Operation *> expanding;
  for (const KeyExpansion &expansion : expansions)
    expanding.insert(expansion.made.ops.begin(), expansion.made.ops.end());
  SmallVector<unsigned> stay;
  bool any = false;
  for (auto [value, number] : layer.values) {
    RecomputeGraph::Value &node = graph.values[number];
    if (!node.needed)
      continue;
    if (value.getDefiningOp() && expanding.contains(value.getDefiningOp())) {
      any = true;
      continue;
    }
    node.needed = false;
    if (!node.free)
      stay.push_back(number);
    node.free = true;
  }
  if (!any)
    return;
  // On the way what costs memory traffic alone can run again, and so can collectives: gathers of
  // weights, which the backward has anyway, and of parts of a latent.
  for (auto [op, node] : llvm::zip(layer.ops, graph.ops))
    if (!expanding.contains(op) && node.cost > 0 &&
        !isa<train::KernelOpInterface, CollectiveOpInterface>(op))
      node.cost = std::numeric_limits<double>::infinity();
  RecomputeChoice choice = cheapestChoice(graph, anyPrice);
  for (unsigned number : stay)
    choice.kept.set(number);
  applyChoice(pair, layer, choice, train::recomputedOfLatents);
  func::FuncOp backward = pair.backwardFunction();
  IRRewriter rewriter(backward->getContext());
  DominanceInfo dominance(backward);
  // What the backward computed already of the sources is the same value.
  eliminateCommonSubExpressions(rewriter, dominance, backward);
}

void dist::keepKeySources(ModuleOp module, llvm::function_ref<bool(train::AttentionOp)> isRing,
                          const cost::Device &device) {
  for (LayerPair &pair : findLayerPairs(module)) {
    SmallVector<KeyExpansion> expansions;
    pair.forwardFunction().walk([&](train::AttentionOp op) {
      if (!isRing(op))
        return;
      KeyExpansion expansion =
          KeyExpansion::cheapest(gatheredOf(op.getK()).gather->getOperand(0),
                                 gatheredOf(op.getV()).gather->getOperand(0), device);
      if (!expansion.isTrivial())
        expansions.push_back(expansion);
    });
    if (!expansions.empty())
      keepSources(pair, expansions, device);
  }
}
