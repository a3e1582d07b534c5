//===- MmaProductTiles.cpp - tiles of products on tensor cores --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A block has 128 x 128 results, each of its four warps 64 x 64 of them. Parts of both factors
// come by cp.async, two turns ahead, into a ring of three. Rows in shared memory are padded by 16
// bytes: then the eight rows that ldmatrix reads at a time are in different banks. Where indices
// that are summed over come first in memory, ldmatrix transposes.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Fragments.h"
#include "Codegen/CUDA/ProductTiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr int64_t threads = BlockEmitter::threads, side = Fragments::side,
                         eight = Fragments::piece;
/// Rows and columns of a block and of a warp; parts of each factor in shared memory.
static constexpr int64_t block = 128, warpBlock = 64, stages = 3;
/// Fragments of a warp's rows, and pairs of those of its columns.
static constexpr int64_t fragmentsOfWarp = warpBlock / side;

namespace {
class MmaProductTiles : public ProductTiles {
public:
  MmaProductTiles(BlockEmitter &e, Type element) : e(e), element(element), fragments(e, element) {
    // Two of each 16 rows, two columns of each 8.
    rows = warpBlock / 8;
    pieces = warpBlock / 8;
    width = 2;
  }

  TileSizes sizes() const override { return {block, block}; }
  void start(bool depthFirstA, bool depthFirstB) override;
  void load(Factor factor, const FactorPart &from) override;
  Values walk(Value steps, Fetch fetch) override;

  Value rowOf(int64_t r) override {
    return e.add(firstRow, e.constant(r / 2 * side + r % 2 * 8));
  }
  Value columnOf(int64_t piece) override { return e.add(firstColumn, e.constant(piece * 8)); }
  Value piece(ValueRange sums, int64_t r, int64_t piece) override {
    int64_t at = indexOf(r / 2, piece) + r % 2 * 2;
    return vector::FromElementsOp::create(e.b, e.loc, fragments.pair(e.b.getF32Type()),
                                          ValueRange{sums[at], sums[at + 1]});
  }

private:
  struct Shared {
    bool depthFirst;
    int64_t rows, columns, stride; ///< of a part, as in memory
    Value base, lane; ///< of the ring, and where this lane's addresses begin
    int64_t bytes() const { return rows * stride * 2; }
  };
  /// Of a thread's sums the four of fragment (m, n).
  static int64_t indexOf(int64_t m, int64_t n) { return (m * warpBlock / 8 + n) * 4; }
  void begin(Shared &of, bool depthFirst, bool isA, Value warpOffset);
  /// 16 along the rows or columns of the warp and 16 along the depth.
  Fragment fragmentOf(const Shared &of, int64_t across, int64_t k);
  Values multiply(ValueRange sums);

  BlockEmitter &e;
  Type element;
  Fragments fragments;
  Shared factors[2];
  Value inUse; ///< the part of the rings, counted from 0
  Value lane, firstRow, firstColumn;
};
} // namespace

void MmaProductTiles::begin(Shared &of, bool depthFirst, bool isA, Value warpOffset) {
  of.depthFirst = depthFirst;
  of.rows = depthFirst ? depth : block;
  of.columns = depthFirst ? block : depth;
  of.stride = of.columns + eight;
  of.base = e.allocate(stages * of.bytes());
  // A fragment's four matrices by eight lanes. Of A in order [g, t], [g + 8, t], [g, t + 8],
  // [g + 8, t + 8]; of B, whose fragments are two, the two in the middle change places.
  auto eights = [&](int64_t n) {
    return e.mul(e.remainder(e.divide(lane, n), 2), e.constant(8));
  };
  bool inOrder = isA != depthFirst;
  Value row = e.add(e.remainder(lane, 8), eights(inOrder ? 8 : 16));
  Value column = eights(inOrder ? 16 : 8);
  (depthFirst ? column : row) = e.add(depthFirst ? column : row, warpOffset);
  of.lane = e.add(e.mul(row, e.constant(of.stride)), column);
}

void MmaProductTiles::start(bool depthFirstA, bool depthFirstB) {
  Value warp = e.divide(e.thread, BlockEmitter::warpSize);
  lane = e.remainder(e.thread, BlockEmitter::warpSize);
  Value warpRow = e.mul(e.divide(warp, 2), e.constant(warpBlock));
  Value warpColumn = e.mul(e.remainder(warp, 2), e.constant(warpBlock));
  firstRow = e.add(warpRow, e.divide(lane, 4));
  firstColumn = e.add(warpColumn, e.mul(e.remainder(lane, 4), e.constant(2)));
  begin(factors[A], depthFirstA, /*isA=*/true, warpRow);
  begin(factors[B], depthFirstB, /*isA=*/false, warpColumn);
}

void MmaProductTiles::load(Factor factor, const FactorPart &from) {
  // Neighbouring threads have neighbouring pieces of a row; a thread's rows are at fixed distances.
  const Shared &to = factors[factor];
  int64_t perRow = to.columns / eight, down = threads / perRow;
  Value row = e.divide(e.thread, perRow);
  Value column = e.mul(e.remainder(e.thread, perRow), e.constant(eight));
  Value inRing = e.mul(inUse, e.constant(to.rows * to.stride));
  Value target =
      e.at(to.base, element, e.add(inRing, e.add(e.mul(row, e.constant(to.stride)), column)));
  Value fromColumn = e.add(from.column, column);
  Value isInside;
  if (from.width % to.columns != 0)
    isInside = e.less(fromColumn, e.constant(from.width));
  for (int64_t further = 0; further < to.rows; further += down) {
    Value of = e.add(row, e.constant(further));
    Value isThere = e.both(from.exists ? from.exists(of) : Value(), isInside);
    Value source = e.add(e.mul(e.add(from.row, of), e.constant(from.stride)), fromColumn);
    // Nothing is read of what is not there: zeros are written.
    if (isThere)
      source = e.select(isThere, source, e.constant(0));
    fragments.copy(e.at(target, element, e.constant(further * to.stride)),
                   e.at(from.pointer, element, source),
                   e.select(isThere, e.word(16), e.word(0)));
  }
}

Values MmaProductTiles::walk(Value steps, Fetch fetch) {
  for (int64_t stage = 0; stage < stages - 1; ++stage) {
    inUse = e.constant(stage);
    e.guarded(e.less(inUse, steps), [&] { fetch(e.constant(stage)); });
    fragments.commit();
  }
  Values start(fragmentsOfWarp * warpBlock / 8 * 4, e.number(0));
  start.push_back(e.constant(0));
  Values ends = e.loop(e.constant(0), steps, start, [&](Value step, ValueRange in) {
    // The oldest part of this thread is there, and after the barrier that of all; nobody reads the
    // part before it any more.
    Value now = in.back(), last = e.constant(stages - 1);
    fragments.wait(stages - 2);
    e.barrier();
    inUse = e.select(e.equal(now, e.constant(0)), last, e.sub(now, e.constant(1)));
    Value next = e.add(step, last);
    e.guarded(e.less(next, steps), [&] { fetch(next); });
    fragments.commit();
    inUse = now;
    Values results = multiply(in.drop_back());
    results.push_back(e.select(e.equal(now, last), e.constant(0), e.add(now, e.constant(1))));
    return results;
  });
  ends.pop_back();
  fragments.wait(0);
  e.barrier();
  return ends;
}

Fragment MmaProductTiles::fragmentOf(const Shared &of, int64_t across, int64_t k) {
  Value base = e.at(of.base, element, e.add(e.mul(inUse, e.constant(of.rows * of.stride)), of.lane));
  int64_t offset = of.depthFirst ? k * of.stride + across : across * of.stride + k;
  return fragments.load(e.at(base, element, e.constant(offset)), of.depthFirst);
}

Values MmaProductTiles::multiply(ValueRange before) {
  Values sums(before);
  for (int64_t k = 0; k < depth; k += side) {
    SmallVector<Fragment> as;
    for (int64_t m = 0; m < fragmentsOfWarp; ++m)
      as.push_back(fragmentOf(factors[A], m * side, k));
    for (int64_t n = 0; n < fragmentsOfWarp; ++n) {
      Fragment by = fragmentOf(factors[B], n * side, k);
      for (int64_t m = 0; m < fragmentsOfWarp; ++m)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t at = indexOf(m, 2 * n + half);
          fragments.multiply(as[m], by[2 * half], by[2 * half + 1],
                             {&sums[at], &sums[at + 1], &sums[at + 2], &sums[at + 3]});
        }
    }
  }
  return sums;
}

std::unique_ptr<ProductTiles> cuda::createMmaProductTiles(BlockEmitter &emitter, Type element) {
  return std::make_unique<MmaProductTiles>(emitter, element);
}
