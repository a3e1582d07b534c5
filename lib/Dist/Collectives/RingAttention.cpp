//===- RingAttention.cpp - keys and values that go around -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ring Attention (Liu et al. 2023): attention whose keys and values are gathered becomes one
// call for each device's part of them, while the parts travel from device to device. In step t
// device p has the part of device p - t. Results for a part are merged with those before it; in
// the gradient, those of a part travel with it, and home after the last step.
//
// With balance, keys and values are exchanged as queries are (AttentionChunks.h). With zigzag, of the
// four pairs of a chunk of queries and one of keys two are visible then, in every step and on every
// device; a call of the others finds nothing to do. With striped there is one pair, of whose triangle
// a diagonal is visible or not.
//
// Where keys and values are made of something narrow, that travels instead, and its gradient, and each
// device makes keys and values of it (KeyExpansion.h).
//
//===----------------------------------------------------------------------===//
#include "AttentionChunks.h"
#include "Dist/Passes.h"
#include "GatheredKeys.h"
#include "KeyExpansion.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTRINGATTENTION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
/// What goes around of a device's part of the sequence, or of a chunk of it: what keys and values are made
/// of, or gradients of that.
using RingBlock = SmallVector<Value>;

/// The ring of one op.
template <typename Op> class Ring {
public:
  Ring(Op op, const Mesh &mesh, const cost::Device &device)
      : op(op), mesh(mesh), device(device), b(op), loc(op.getLoc()) {}

  /// Whether devices have parts of the keys. Others, as those of a table, are none of a sequence, and all
  /// have them.
  bool dividesKeys() {
    AttentionShape shape = AttentionShape::of(op);
    return shape.keys == shape.queries ||
           comeAlong(mesh.named("context"), {op.getK(), op.getV()}, mesh);
  }
  /// Whether what keys and values are made of may travel in their place.
  bool mayExpand() {
    Gathered k = gatheredOf(op.getK()), v = gatheredOf(op.getV());
    return dividesKeys() && k.gather && v.gather && k.gather.getGroup() == v.gather.getGroup() &&
           !k.sum && !v.sum &&
           cast<RankedTensorType>(k.gather->getOperand(0).getType()).getDimSize(1) ==
               AttentionShape::of(op).part;
  }
  /// Finds what there is to do; fails with a message if the op is no ring.
  LogicalResult match(ContextBalance balance);

protected:
  InFlightDiagnostic refuse(const Twine &why) {
    return op.emitError("--context-parallel ring ")
           << why << "; use --context-parallel gather or ulysses";
  }
  /// Where devices with the same queries have parts of the keys or values, these are gathered
  /// among them first, and what they have together goes around: as many as a device has queries. So it is
  /// where devices that have other heads share key heads, or end a sum with a part of it each.
  void shareKeys(Gathered &keys, int64_t queries);
  /// What of the gathered keys or values the device begins with.
  Value ownPart(const Gathered &keys);
  /// Visible pairs of chunk `a` of queries and the chunk `c` of keys that a device has in step t, on
  /// average over devices.
  double pairs(int64_t t, int a, int c) const { return counted[(t * count + a) * count + c]; }
  /// Whether there may be some. Documents begin where data says, and move chunks of the mask with them.
  bool sees(int64_t t, int a, int c) const { return seen[(t * count + a) * count + c]; }
  void findSteps();
  /// Whether somebody sees something of chunk `c` in step t.
  bool isIn(int64_t t, int c) const { return llvm::is_contained(chunkSteps[c], t); }
  /// What the device `by` ranks before has.
  Value from(Value x, int64_t by);
  RingBlock from(const RingBlock &block, int64_t by) {
    return llvm::map_to_vector(block, [&](Value x) { return from(x, by); });
  }
  /// Sends chunks that are there in step t to where they are next; others stay.
  SmallVector<RingBlock> following(int64_t t, ArrayRef<RingBlock> blocks);
  /// Finds what travels.
  void findSources();
  SmallVector<RingBlock> ownBlocks();
  /// Positions of the first keys of chunks in steps: of chunk c in step t number t * count + c. All are made
  /// before the first step: they become one kernel, which all steps come after.
  SmallVector<Value> keyOffsets();
  Value queryOffset(int a) {
    Value offset = op.getQueryOffset();
    return offset ? chunks->offsetFrom(b, loc, offset, a) : offset;
  }
  /// The options of a part whose queries and keys begin at these positions. A sink is one key of all, so of the
  /// first part.
  train::AttentionOptions optionsOf(Value queryOffset, Value keyOffset, bool first) {
    train::AttentionOptions options = op.getOptions();
    options.queryOffset = queryOffset;
    options.keyOffset = keyOffset;
    if (!first)
      options.sinks = {};
    return options;
  }
  train::AttentionSpec specOf(double pairs) {
    train::AttentionSpec spec = op.getSpec().getValue();
    spec.keys = op.getSizes().keys;
    spec.pairs = pairs;
    spec.queryStride = spec.keyStride = chunks->stride();
    return spec;
  }
  /// Chunk `i` of queries or of keys.
  Value chunkOf(Value x, int64_t dim, int i) {
    return chunks->take(b, loc, x, dim, i);
  }
  /// The results of all chunks as one, in the type of `like`.
  Value whole(ArrayRef<Value> parts, int64_t dim, Type like) {
    SmallVector<Value> rounded;
    for (Value part : parts) {
      auto type = cast<RankedTensorType>(part.getType());
      Type wanted = RankedTensorType::get(type.getShape(), getElementTypeOrSelf(like));
      rounded.push_back(type == wanted ? part : train::CastOp::create(b, loc, wanted, part));
    }
    return chunks->join(b, loc, rounded, dim);
  }
  Value sum(Value x, Value y) {
    return !x ? y : !y ? x : train::AddOp::create(b, loc, x, y).getResult();
  }

  Op op;
  const Mesh &mesh;
  const cost::Device &device;
  OpBuilder b;
  Location loc;
  Gathered k, v;
  KeyExpansion expansion;
  GroupAttr group; ///< who the ring is
  int64_t n = 0, part = 0; ///< devices; keys of one
  std::optional<Chunks> chunks;
  int count = 1; ///< chunks of queries, and of keys
  /// Steps in which somebody sees something; of each chunk of keys, which goes straight from one to the next.
  SmallVector<int64_t> steps;
  SmallVector<SmallVector<int64_t>> chunkSteps;
  SmallVector<double> counted; ///< pairs
  SmallVector<bool> seen;      ///< whether there may be some
};
} // namespace

template <typename Op> LogicalResult Ring<Op>::match(ContextBalance balance) {
  k = gatheredOf(op.getK()), v = gatheredOf(op.getV());
  if (!k.gather || !v.gather)
    return refuse("finds keys and values that are no parts of a sequence on each device");
  // Their gradient would be a sum over the parts of the keys, and no model that has them is divided so.
  if (op.getDistances())
    return refuse("finds attention with distances, which needs all keys at once");
  std::optional<QueryOffsets> offsets = queryOffsetsOf(op.getQueryOffset(), mesh);
  AttentionShape shape = AttentionShape::of(op);
  shareKeys(k, shape.part);
  shareKeys(v, shape.part);
  group = k.group;
  part = k.part;
  n = mesh.size(group.on(mesh));
  for (int64_t keys : {k.part, v.part})
    if (shape.part != keys)
      return refuse("finds " + Twine(shape.part) + " queries beside " + Twine(keys) + " keys");
  if (v.group != group)
    return refuse("finds keys and values divided among different devices");
  if (op.getQueryOffset() && (!offsets || offsets->group != group))
    return refuse("finds queries and keys divided among other devices");
  chunks.emplace(ContextBalance::none, group, n, shape);
  if (offsets) {
    FailureOr<Chunks> balanced = 
        Chunks::balanced(balance, *offsets, shape, bool(op.getPositions()), op);
    if (failed(balanced))
      return failure();
    chunks = *balanced;
  }
  chunks->shape.keyStride = chunks->stride();
  count = chunks->count();
  findSteps();
  return success();
}

template <typename Op> void Ring<Op>::shareKeys(Gathered &keys, int64_t queries) {
  GroupAttr group = keys.gather.getGroup();
  keys.group = group;
  keys.part = cast<RankedTensorType>(keys.gather->getOperand(0).getType()).getDimSize(1);
  Axes all = group.on(mesh);
  for (size_t around = 1; around < all.size(); ++around) {
    ArrayRef<unsigned> rest = ArrayRef(all).drop_front(around);
    if (keys.part * mesh.size(rest) != queries)
      continue;
    keys.shared = GroupAttr::from(group.getMesh(), mesh, rest);
    keys.group = GroupAttr::from(group.getMesh(), mesh, ArrayRef(all).take_front(around));
    keys.part = queries;
    return;
  }
}

template <typename Op> Value Ring<Op>::ownPart(const Gathered &keys) {
  Value own = AllGatherOp(keys.gather)->getOperand(0);
  if (AllReduceOp sum = keys.sum)
    own = AllReduceOp::create(b, loc, own.getType(), sum.getKind(), own, sum.getGroup());
  if (!keys.shared)
    return own;
  return AllGatherOp::create(b, loc, resized(own.getType(), 1, part), own, /*dim=*/1, keys.shared);
}

template <typename Op> void Ring<Op>::findSteps() {
  chunkSteps.resize(count);
  // All that documents, wherever they begin, let queries see.
  AttentionShape most = chunks->shape;
  if (op.getPositions())
    most.mask = {most.mask.causal, most.mask.reach(), /*chunk=*/0};
  for (int64_t t = 0; t < n; ++t) {
    for (int a = 0; a < count; ++a)
      for (int c = 0; c < count; ++c) {
        auto pairsOf = [&](const AttentionShape &shape) {
          int64_t sum = 0;
          for (int64_t rank = 0; rank < n; ++rank)
            sum += shape.pairs(chunks->first(rank, a), chunks->sizes[a],
                               chunks->first((rank - t + n) % n, c), chunks->sizes[c]);
          return sum;
        };
        counted.push_back(double(pairsOf(chunks->shape)) / double(n));
        seen.push_back(pairsOf(most) > 0);
      }
    for (int c = 0; c < count; ++c)
      if (t == 0 || sees(t, 0, c) || sees(t, count - 1, c))
        chunkSteps[c].push_back(t);
    if (llvm::any_of(chunkSteps, [&](ArrayRef<int64_t> of) { return of.back() == t; }))
      steps.push_back(t);
  }
}

template <typename Op>
SmallVector<RingBlock> Ring<Op>::following(int64_t t, ArrayRef<RingBlock> blocks) {
  SmallVector<RingBlock> following(blocks);
  for (int c = 0; c < count; ++c)
    if (isIn(t, c) && t < chunkSteps[c].back())
      following[c] = from(blocks[c], *llvm::upper_bound(chunkSteps[c], t) - t);
  return following;
}

template <typename Op> Value Ring<Op>::from(Value x, int64_t by) {
  SmallVector<int64_t> ranks;
  for (int64_t p = 0; p < n; ++p)
    ranks.push_back((p - by + n) % n);
  return PermuteOp::create(b, loc, x.getType(), x, ranks, group);
}

template <typename Op> void Ring<Op>::findSources() {
  Value ownK = ownPart(k), ownV = ownPart(v);
  expansion = mayExpand() ? KeyExpansion::cheapest(ownK, ownV, device) : KeyExpansion(ownK, ownV);
}

template <typename Op> SmallVector<RingBlock> Ring<Op>::ownBlocks() {
  SmallVector<RingBlock> blocks;
  for (int c = 0; c < count; ++c)
    blocks.push_back(llvm::map_to_vector(expansion.sources, [&](Value source) {
      return chunkOf(source, expansion.dim(source), c);
    }));
  return blocks;
}

template <typename Op> SmallVector<Value> Ring<Op>::keyOffsets() {
  SmallVector<Value> offsets;
  for (int64_t t = 0; t < n; ++t) {
    Value own = chunks->offset(b, loc, t, 0);
    for (int c = 0; c < count; ++c)
      offsets.push_back(c == 0 ? own : chunks->offsetFrom(b, loc, own, c));
  }
  return offsets;
}

namespace {
class ForwardRing : public Ring<train::AttentionOp> {
public:
  using Ring::Ring;

  void build() {
    SmallVector<Value> q, offsets, outs(count), lses(count);
    for (int a = 0; a < count; ++a) {
      q.push_back(chunkOf(op.getQ(), 1, a));
      offsets.push_back(queryOffset(a));
    }
    SmallVector<Value> keyOffsets = this->keyOffsets();
    findSources();
    SmallVector<RingBlock> blocks = ownBlocks();
    for (int64_t t : steps) {
      // Under way before attention begins.
      SmallVector<RingBlock> following = this->following(t, blocks);
      for (int c = 0; c < count; ++c) {
        if (!isIn(t, c))
          continue;
        IRMapping keys = expansion.expand(b, blocks[c], /*again=*/t > 0);
        for (int a = 0; a < count; ++a) {
          if (!sees(t, a, c))
            continue;
          double pairs = this->pairs(t, a, c);
          auto part = train::AttentionOp::create(
              b, loc, q[a], keys.lookup(expansion.k), keys.lookup(expansion.v),
              optionsOf(offsets[a], keyOffsets[t * count + c], /*first=*/!outs[a]), outs[a], lses[a],
              specOf(pairs));
          part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
          outs[a] = part.getOut();
          lses[a] = part.getLse();
        }
      }
      blocks = following;
    }
    op.getOut().replaceAllUsesWith(whole(outs, 1, op.getOut().getType()));
    op.getLse().replaceAllUsesWith(whole(lses, 2, op.getLse().getType()));
    op.erase();
  }
};

class BackwardRing : public Ring<train::AttentionGradOp> {
public:
  using Ring::Ring;

  /// Where one value is keys and values, the op that adds both gradients of it.
  train::AddOp bothGradients() {
    Value dk = op.getDk(), dv = op.getDv();
    bool added = dk.hasOneUse() && dv.hasOneUse() && *dk.user_begin() == *dv.user_begin();
    return added ? dyn_cast<train::AddOp>(*dk.user_begin()) : train::AddOp();
  }
  /// Whether the ring gives `part`, with collectives of the other devices' after it.
  bool canSum(const SummedPart &part) {
    return part.value && llvm::all_of(part.dims, [&](const Axes &axes) {
             return llvm::all_of(axes, [&](unsigned a) { return part.summed.contains(a); });
           });
  }
  /// `part` from what the ring sums, in chunks.
  Value finish(const SummedPart &part, ArrayRef<Value> chunks) {
    auto like = cast<RankedTensorType>(part.value.getType());
    SmallVector<Axes> dims = part.dims;
    Axes ring = group.on(mesh), rest(part.summed.begin(), part.summed.end());
    dims[1].erase(dims[1].begin(), dims[1].begin() + ring.size());
    llvm::erase_if(rest, [&](unsigned a) {
      return llvm::is_contained(ring, a) ||
             llvm::any_of(dims, [&](const Axes &axes) { return llvm::is_contained(axes, a); });
    });
    llvm::sort(rest);
    if (part.summed.size() == ring.size())
      return whole(chunks, 1, like);
    Value sum = whole(chunks, 1, chunks[0].getType());
    auto others = [&](ArrayRef<unsigned> axes) {
      return GroupAttr::from(group.getMesh(), mesh, axes);
    };
    for (auto [dim, axes] : llvm::enumerate(dims))
      if (!axes.empty())
        sum = ReduceScatterOp::create(b, loc, resized(sum.getType(), dim, like.getDimSize(dim)),
                                      train::ReduceKind::Sum, sum, dim, others(axes));
    if (!rest.empty())
      sum = AllReduceOp::create(b, loc, sum.getType(), train::ReduceKind::Sum, sum, others(rest));
    return sum.getType() == like ? sum : train::CastOp::create(b, loc, like, sum).getResult();
  }

  LogicalResult build() {
    // What nothing reads needs no gradients.
    for (Operation &dead : llvm::make_early_inc_range(llvm::reverse(*op->getBlock())))
      if (&dead == op)
        break;
      else if (isOpTriviallyDead(&dead) && !isa<train::AttentionOp, train::AttentionGradOp>(dead))
        dead.erase();
    Axes ring = group.on(mesh);
    int64_t tokens = n * part;
    train::AddOp both = bothGradients();
    SmallVector<SummedPart> parts;
    parts.push_back(summedPartOf(both ? both.getResult() : op.getDk(), ring, tokens, mesh));
    if (!both)
      parts.push_back(summedPartOf(op.getDv(), ring, tokens, mesh));
    if (!llvm::all_of(parts, [&](const SummedPart &part) { return canSum(part); }))
      return refuse("finds gradients of keys and values that are not summed where these are");
    SmallVector<SmallVector<Value>> queries; // dout, q, out, lse of each chunk
    SmallVector<Value> offsets;
    for (int a = 0; a < count; ++a) {
      SmallVector<Value> &of = queries.emplace_back();
      for (auto [operand, dim] : operandsWithQueries(op))
        of.push_back(chunkOf(operand->get(), dim, a));
      offsets.push_back(queryOffset(a));
    }
    SmallVector<Value> keyOffsets = this->keyOffsets();
    findSources();
    bool asTheyAre = both || expansion.isTrivial() || llvm::any_of(parts, [&](const SummedPart &part) {
      return part.summed.size() != ring.size();
    });
    KeyGradient gradient(parts.front().value, parts.back().value);
    if (!asTheyAre)
      gradient = KeyGradient::cheapest(expansion, gradient.dk, gradient.dv, op, device);
    gradient.hoistOperands(op);
    SmallVector<RingBlock> blocks = ownBlocks(), own(count), travelling(count);
    SmallVector<int64_t> places(count); // steps that `travelling` is of
    SmallVector<Value> dq(count), stay(gradient.stay.size());
    Value dsinks;
    auto add = [&](ArrayRef<Value> terms, SmallVectorImpl<Value> &sums) {
      sums.resize(gradient.travel.size());
      for (auto [term, total] : llvm::zip(terms, sums))
        total = sum(total, term);
      for (auto [term, total] : llvm::zip(terms.drop_front(sums.size()), stay)) {
        total = sum(total, term);
        // What every step reads would have to be kept for a sum that is computed later.
        if (total != term)
          total.getDefiningOp()->setAttr(DistDialect::sumOfStepsAttr, b.getUnitAttr());
      }
    };
    for (int64_t t : steps) {
      SmallVector<RingBlock> following = this->following(t, blocks);
      for (int c = 0; c < count; ++c) {
        if (!isIn(t, c))
          continue;
        travelling[c] = from(travelling[c], t - places[c]);
        places[c] = t;
        IRMapping keys = expansion.expand(b, blocks[c], /*again=*/t > 0);
        RingBlock &sums = t == 0 ? own[c] : travelling[c];
        Value dk, dv;
        for (int a = 0; a < count; ++a) {
          if (!sees(t, a, c))
            continue;
          double pairs = this->pairs(t, a, c);
          ArrayRef<Value> of = queries[a];
          auto part = train::AttentionGradOp::create(
              b, loc, of[0], of[1], keys.lookup(expansion.k), keys.lookup(expansion.v), of[2], of[3],
              optionsOf(offsets[a], keyOffsets[t * count + c], /*first=*/!dq[a]), specOf(pairs));
          part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
          dq[a] = sum(dq[a], part.getDq());
          if (gradient.isTrivial()) {
            add({part.getDk(), part.getDv()}, sums);
          } else {
            dk = sum(dk, part.getDk());
            dv = sum(dv, part.getDv());
          }
          if (part.getDsinks())
            dsinks = sum(dsinks, part.getDsinks());
        }
        if (dk)
          add(gradient.terms(b, keys, dk, dv, /*again=*/t > 0), sums);
      }
      blocks = following;
    }
    SmallVector<SmallVector<Value>> sums(gradient.travel.size()); // by chunk
    for (int c = 0; c < count; ++c) {
      RingBlock home = from(travelling[c], -places[c]);
      home.resize(sums.size());
      own[c].resize(sums.size());
      for (auto [chunks, here, there] : llvm::zip(sums, own[c], home))
        chunks.push_back(sum(here, there));
    }
    op.getDq().replaceAllUsesWith(whole(dq, 1, op.getDq().getType()));
    if (both)
      for (auto [dk, dv] : llvm::zip(sums[0], sums[1]))
        dk = sum(dk, dv);
    if (asTheyAre) {
      for (auto [part, chunks] : llvm::zip(parts, sums))
        part.value.replaceAllUsesWith(finish(part, chunks));
    } else {
      for (auto [value, chunks] : llvm::zip(gradient.travel, sums))
        value.replaceAllUsesWith(whole(chunks, gradient.moved.dims.lookup(value), value.getType()));
      for (auto [value, total] : llvm::zip(gradient.stay, stay))
        value.replaceAllUsesWith(
            total.getType() == value.getType()
                ? total
                : train::CastOp::create(b, loc, value.getType(), total).getResult());
      gradient.eraseDead();
    }
    if (op.getSinks())
      op.getDsinks().replaceAllUsesWith(dsinks);
    // From the parts back to the op.
    for (const SummedPart &part : parts)
      for (Operation *dead = part.value.getDefiningOp(); dead != op;) {
        Operation *before = dead->getOperand(0).getDefiningOp();
        dead->erase();
        dead = before;
      }
    op.erase();
    return success();
  }
};

class RingAttentionPass : public dist::impl::DistRingAttentionBase<RingAttentionPass> {
public:
  using DistRingAttentionBase::DistRingAttentionBase;

private:
  void runOnModule() override {
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    if (!meshOp->removeDiscardableAttr(DistDialect::ringAttr))
      return;
    Mesh mesh = meshOp.getMesh();
    keepKeySources(
        getOperation(),
        [&](train::AttentionOp op) { return ForwardRing(op, mesh, *device).mayExpand(); }, *device);
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<train::AttentionOp, train::AttentionGradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto attention = dyn_cast<train::AttentionOp>(op)) {
        ForwardRing ring(attention, mesh, *device);
        if (!ring.dividesKeys())
          continue;
        if (failed(ring.match(contextBalance)))
          return signalPassFailure();
        ring.build();
      } else {
        BackwardRing ring(cast<train::AttentionGradOp>(op), mesh, *device);
        if (!ring.dividesKeys())
          continue;
        if (failed(ring.match(contextBalance)) || failed(ring.build()))
          return signalPassFailure();
      }
    }
  }
};
} // namespace
