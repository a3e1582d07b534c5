//===- Recurrence.h - builds recurrences and short convolutions ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_RECURRENCE_H
#define MESHWRIGHT_FRONTEND_RECURRENCE_H

#include "Graph.h"
#include "Model.h"

#include "llvm/Support/MathExtras.h"

namespace meshwright::frontend {

/// Builds what a layer has in place of attention.
struct RecurrenceBuilder {
  LayerGraph &g;
  const Model &m;
  int64_t rows, sequence; ///< sequences, and positions of each
  Value firsts;           ///< 1 where a document begins, else 0, [rows, sequence]; null where sequences are one
  Value valid;            ///< 1 for tokens, 0 for what pads a call, [rows, sequence]; null unless it goes on from calls before
  Value begins;           ///< as `firsts`, also where sequences are one; null unless the family asks for it
  const Recurrence &keys = m.family.recurrence;
  const RecurrenceSizes &s = m.recurrence;
  int64_t perKey = s.keyHeads ? s.heads / s.keyHeads : 0; ///< heads that share a key
  int64_t chunk = 0, chunks = 0; ///< positions of a chunk, and how many a sequence has

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(g.builder, g.where(), std::forward<Args>(args)...);
  }
  static ArrayRef<int64_t> shapeOf(Value x) { return mlir::cast<mlir::RankedTensorType>(x.getType()).getShape(); }
  Value contract(StringRef rule, Value x, Value y) {
    return make<train::ContractOp>(g.builder.getStringAttr(rule), x, y, Value());
  }
  Value exp(Value x) { return make<train::ExpOp>(x); }
  Value decay(Value to, Value from, bool strict = false) { return make<train::DecayOp>(to, from, strict); }
  /// x, [heads, ..], times `factor`, which has no heads, and maybe not the last dimension.
  Value ofAll(Value x, Value factor) {
    if (!factor)
      return x;
    llvm::SmallVector<int64_t> dims{0};
    if (shapeOf(x).size() > shapeOf(factor).size() + 1)
      dims.push_back(int64_t(shapeOf(x).size()) - 1);
    return g.mul(x, g.broadcast(factor, shapeOf(x), dims));
  }
  /// log(1 + exp(x)).
  Value softplus(Value x) {
    // The logarithm of exp(x) + exp(0).
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    shape.push_back(1);
    return make<train::LogSumExpOp>(g.pad(g.reshape(x, shape), int64_t(shape.size()) - 1, 0, 2));
  }
  /// x and y where x has no dimension `dim`.
  Value spread(Value x, Value like, int64_t dim) { return g.broadcast(x, shapeOf(like), {dim}); }
  Value slice(Value x, int64_t dim, int64_t from, int64_t count) {
    return shapeOf(x)[dim] == count ? x : make<train::SliceOp>(x, count, dim, from);
  }
  /// Row `at` of dimension `dim`, which the result does not have.
  Value row(Value x, int64_t dim, int64_t at) {
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    shape.erase(shape.begin() + dim);
    return g.reshape(slice(x, dim, at, 1), shape);
  }
  /// x, [rows, sequence, heads, ..], chunk by chunk with heads first, as matrix products need them:
  /// [heads, rows, chunks, chunk, ..], zeros behind the sequence.
  Value chunked(Value x) {
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    if (chunk * chunks != sequence)
      x = g.pad(x, 1, 0, chunk * chunks);
    int64_t heads = shape[2], size = shape.size() > 3 ? shape[3] : 1;
    x = make<train::TransposeBlocksOp>(g.reshape(x, {rows * chunk * chunks, heads, size}));
    llvm::SmallVector<int64_t> to{heads, rows, chunks, chunk};
    to.append(shape.begin() + 3, shape.end());
    return g.reshape(x, to);
  }
  /// The inverse of `chunked`.
  Value whole(Value x) {
    int64_t heads = shapeOf(x).front(), size = shapeOf(x).back();
    x = make<train::TransposeBlocksOp>(g.reshape(x, {heads, rows * chunk * chunks, size}));
    return slice(g.reshape(x, {rows, chunk * chunks, heads, size}), 1, 0, sequence);
  }
  /// x, whose first dimension counts heads of keys, for each head of values.
  Value perHead(Value x) {
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    shape.insert(shape.begin() + 1, perKey);
    x = g.broadcast(x, shape, {1});
    shape.erase(shape.begin());
    shape.front() = s.heads;
    return g.reshape(x, shape);
  }
  void setChunk(int64_t size) {
    chunk = size;
    chunks = llvm::divideCeil(sequence, chunk);
  }

  std::string name(const Twine &part) { return (keys.part + "." + part).str(); }
  /// A parameter that stays f32, of one initial value.
  Value parameter(StringRef part, ArrayRef<int64_t> shape, double value) {
    std::string whole = name(part);
    g.part(whole);
    Weight w{whole, llvm::SmallVector<int64_t>(shape), 0, value};
    w.full = true;
    return g.weight(w);
  }
  Value ofHeads(StringRef part, double value) { return parameter(part, {s.heads}, value); }
  /// The product of h with rows of the tensor `tensor`, called `part`.
  Value project(StringRef part, StringRef tensor, Value h, const FileRows &where, int64_t count,
                bool biased) {
    std::string base = name(part), file = name(tensor), weight = base + ".weight", bias = base + ".bias";
    g.part(base);
    Value w = g.weight({weight, {count, shapeOf(h).back()}, m.std, 0, file + ".weight", false, where});
    return g.linear(h, w, biased ? g.weight({bias, {count}, 0, 0, file + ".bias", false, where}) : Value());
  }
  /// The last product.
  Value output(StringRef part, Value x) {
    std::string base = name(part), weight = base + ".weight", bias = base + ".bias";
    g.part(base);
    int64_t width = shapeOf(x).back();
    Value w = g.weight({weight, {m.hidden, width}, s.outputStd});
    return g.linear(x, w, s.outputBias ? g.weight({bias, {m.hidden}}) : Value());
  }
  /// A causal convolution of each of the last dimension's channels over positions: output t sees the
  /// `kernel` inputs up to t. Its weights are rows of the tensor `tensor`.
  Value convolve(StringRef part, StringRef tensor, Value x, const FileRows &where);

  /// x, [rows, sequence, ..], with zeros for what pads a call.
  Value ofTokens(Value x) {
    llvm::SmallVector<int64_t> dims;
    for (int64_t d = 2; d < int64_t(shapeOf(x).size()); ++d)
      dims.push_back(d);
    return valid ? g.mul(x, g.broadcast(valid, shapeOf(x), dims)) : x;
  }
  /// The inputs of the convolution `name`, behind those of the calls before that it sees.
  Value behindTail(StringRef name, Value x);

  /// Sums of x, [heads, rows, chunks, chunk], up to and with each position of a chunk.
  Value sums(Value x) { return contract("h b n u, t u -> h b n t", x, triangle(chunk)); }
  /// And behind it.
  Value behind(Value x) { return contract("h b n u, u t -> h b n t", x, triangle(chunk, true)); }
  /// What of a state is retained within a document, and nothing across the beginning of one: factors of decays. A document
  /// that begins is a log decay of -1024, whose exponential is 0; sums of them are exact, and apart from those of other decays,
  /// which would lose digits beside them. All are null where sequences are one document.
  struct Documents {
    Value inside; ///< [rows, chunks, chunk, chunk], from a position to a later one of its chunk, which is the last dimension
    Value toEnd, fromStart;     ///< [rows, chunks, chunk], to the end of a chunk, and from before its beginning
    Value across, between;      ///< [rows, chunks], of a whole chunk; [rows, chunks, chunks], as `between` in `scan`
  };
  Documents documents();
  /// What the beginning of each chunk retains of the end of each, from products that are those of ends, in dimension `dim`.
  Value delayed(Value x, int64_t dim) { return g.pad(slice(x, dim, 0, chunks - 1), dim, 1, chunks); }
  /// The products of decays after u up to t, [.., u, t], 0 where u > t, of log decays x, [heads, rows, chunks, positions].
  Value products(Value x);
  /// x times a factor of each position, or of each of its elements.
  Value weigh(Value x, Value factor) {
    return g.mul(x, shapeOf(factor).size() == shapeOf(x).size() ? factor : g.broadcast(factor, shapeOf(x), {4}));
  }
  /// The recurrence S_t = exp(a_t) S_(t-1) + k_t v_t^T, whose outputs are S_t^T q_t, all `chunked`: q and
  /// k have a head for each key head.
  Value scan(Value q, Value k, Value v, Value a);
  /// That of the gated delta rule; beta as a, of which each element of a key may have its own.
  Value deltaScan(Value q, Value k, Value v, Value a, Value beta);
  /// What the delta rule needs of decays of elements of keys.
  struct ElementDecays {
    Value upTo, behind;  ///< sums of log decays in a chunk, up to and with each position, and behind it, as a
    Value keys, queries; ///< products of each position's key with a later one's key, or with its own and later ones' queries, [.., u, t]
  };
  /// Of q, k and log decays a, all [heads, rows, chunks, chunk, keys].
  ElementDecays elementDecays(Value q, Value k, Value a);
  /// The inverse of 1 + x, where x is 0 on and below the diagonal of its last two dimensions.
  Value invert(Value x);
  /// A triangle of ones, [size, size], with or without the diagonal.
  Value triangle(int64_t size, bool strict = false) {
    Value zeros = g.fill(0, {size});
    return decay(zeros, zeros, strict);
  }

  /// Its transpose.
  Value upper(int64_t size, bool strict = false) {
    return g.add(g.fill(1, {size, size}), g.scale(triangle(size, !strict), -1));
  }

  /// The recurrence h_t = a_t h_(t-1) + x_t of each element, over dimension 1.
  Value linearScan(Value a, Value x);
  /// That which goes on from what the calls before have left, of `shape`, where there were any.
  Value linearScanOn(Value a, Value x, ArrayRef<int64_t> shape);

  Value stateSpace(Value h);
  Value delta(Value h);
  Value realGated(Value h);
  Value selective(Value h);
  Value convolution(Value h);
  /// `rates`: what states of each head decay by, as logarithms, [heads].
  Value lightning(Value h, Value rates);
};

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_RECURRENCE_H
