//===- MmaTiles.cpp - products of tiles on tensor cores ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// mma.sync.m16n8k16 with sums in f32. Each of a block's four warps has 16 rows of the kept
// tiles, or 32; what it computes stays in its registers, for a product's result has the layout
// of an operand of the next (Dao, FlashAttention-2, arXiv:2307.08691). Walked tiles are copied
// by cp.async while the last ones are multiplied, so there are two of each. Rows in shared
// memory are padded by 16 bytes: then the eight rows that ldmatrix reads at a time are in
// different banks for all sizes of heads, multiples of 16.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Fragments.h"
#include "Codegen/CUDA/Tiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr int64_t threads = BlockEmitter::threads, warps = BlockEmitter::warps;
static constexpr int64_t side = Fragments::side, piece = Fragments::piece;
/// Registers for what a thread keeps at most, so that ptxas spills none of its 255: without
/// and with parts of kept tiles.
static constexpr int64_t mostMmaNumbers = 178, mostHeld = 180;

namespace {
class MmaTiles : public Tiles {
public:
  MmaTiles(BlockEmitter &e, Type element) : e(e), element(element), fragments(e, element) {}

  std::optional<TileSizes> sizesFor(const TileNeeds &needs) const override;
  void start(const TileSizes &sizes, const TileNeeds &needs) override;

  Value rowOf(int64_t r) override { return e.add(firstRow, e.constant(rowOffset(r))); }
  Value columnOf(int64_t c) override { return e.add(firstColumn, e.constant(columnOffset(c))); }
  // Two of each 16 rows, two of each 8 columns.
  int64_t rowOffset(int64_t r) const override { return r / 2 * side + r % 2 * 8; }
  int64_t columnOffset(int64_t c) const override { return c / 2 * 8 + c % 2; }
  Value isFirst() override { return e.equal(firstColumn, e.constant(0)); }
  Value rowSum(Value value) override { return e.sumOf(4, value); }
  Value rowMax(Value value) override { return e.maxOf(4, value); }

  Tile &allocate(bool walked, int64_t dim) override {
    findStarts(dim);
    if (walked) {
      Value base = e.at(walkedMemory, e.b.getI8Type(), e.constant(walkedBytes));
      walkedBytes += bytesOf(sizes.columns, dim);
      return tiles.emplace_back(Tile{sizes.columns, dim, base, walked});
    }
    bool inRegisters = heldOf(sizes.rows, dim) <= room;
    if (inRegisters)
      room -= heldOf(sizes.rows, dim);
    return tiles.emplace_back(
        Tile{sizes.rows, dim, e.allocate(bytesOf(sizes.rows, dim)), walked, inRegisters});
  }
  void load(const Tile &tile, const Rows &from) override;
  void settle() override;
  Values walk(Value low, Value high, ValueRange start, Fetch fetch, Body body) override;

  Values zeros(int64_t dim) override { return Values(rows * dim / 4, e.number(0)); }
  void scale(MutableArrayRef<Value> sums, ValueRange factors) override {
    int64_t perRow = int64_t(sums.size()) / rows;
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = e.mul(sum, factors[i / perRow]);
  }
  Values product(const Tile &x, const Tile &y) override;
  Values accumulate(ValueRange scores, const Tile &y, ValueRange sums) override;
  Values dot(const Tile &x, const Rows &y) override;
  void add(const Rows &from, ValueRange factors, MutableArrayRef<Value> sums) override;
  void write(const Rows &to, ValueRange sums, ValueRange factors) override;
  Value exponential(Value score, double factor, Value shift) override;

private:
  static int64_t strideOf(int64_t depth) { return depth + piece; }
  static int64_t bytesOf(int64_t count, int64_t depth) { return count * strideOf(depth) * 2; }
  static int64_t bytesOf(int64_t count, ArrayRef<int64_t> depths) {
    int64_t bytes = 0;
    for (int64_t depth : depths)
      bytes += bytesOf(count, depth);
    return bytes;
  }
  /// Registers for what there is of so many times 16 rows and of n columns. Scores are also
  /// there as the operands of 16 bits that they become, not all at a time: five in 16 more.
  int64_t numbersOf(const TileNeeds &needs, int64_t m, int64_t n) const {
    int64_t sums = 0;
    for (int64_t depth : needs.sums)
      sums += depth / 2;
    return m * (sums + needs.scores * n * 21 / 32) + needs.terms * n / 4;
  }
  /// ... and for a kept tile.
  int64_t heldOf(int64_t count, int64_t depth) const { return count / warps * depth / 64; }
  /// Where lanes begin in tiles whose rows have `depth` elements.
  void findStarts(int64_t depth);
  /// Of a kept tile, rows 16 m ... of this warp and columns 16 k ....
  Fragment rowsOf(const Tile &tile, int64_t m, int64_t k);
  /// Of a walked tile, this thread's address, and the one at so many rows and columns from it.
  Value walkedBase(const Tile &tile, Value laneStart) {
    return e.at(e.at(tile.base, e.b.getI8Type(), inUse), element, laneStart);
  }
  Value addressFrom(Value base, const Tile &tile, int64_t row, int64_t column) {
    return e.at(base, element, e.constant(row * strideOf(tile.depth) + column));
  }
  /// Adds a product to four sums, columns 8 n ... of a row operand's rows.
  void multiply(const Fragment &a, Value b0, Value b1, MutableArrayRef<Value> sums, int64_t m,
                int64_t n, int64_t perRow);

  BlockEmitter &e;
  Type element;
  Fragments fragments;
  TileSizes sizes;
  int64_t room = 0; ///< registers for kept tiles
  Value warpRow, lane, firstRow, firstColumn;
  /// Of lanes, in elements: of rows of a kept tile, of rows and of columns of a walked one.
  struct Starts {
    Value kept, row, column;
  };
  llvm::DenseMap<int64_t, Starts> starts; ///< by the elements of a row
  /// Two of each walked tile: the second ones are as far from the first ones as all these are long.
  Value walkedMemory;
  int64_t walkedBytes = 0; ///< of those that are allocated
  Value inUse; ///< bytes from a walked tile's memory to the part of it that is in use
};
} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

std::optional<TileSizes> MmaTiles::sizesFor(const TileNeeds &needs) const {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{2, 64}, {2, 32}, {1, 64}, {1, 32}, {1, 16}}) {
    TileSizes chosen{m * warps * side, n};
    if (m > 1 && needs.length <= chosen.rows / 2)
      continue; // Half of the warps would have nothing to do.
    int64_t shared = bytesOf(chosen.rows, needs.kept) + 2 * bytesOf(n, needs.walked);
    if (numbersOf(needs, m, n) <= mostMmaNumbers && shared <= BlockEmitter::mostShared)
      return chosen;
  }
  return std::nullopt;
}

void MmaTiles::start(const TileSizes &chosen, const TileNeeds &needs) {
  sizes = chosen;
  rows = sizes.rows / (warps * 8);
  columns = sizes.columns / 4;
  room = mostHeld - numbersOf(needs, rows / 2, sizes.columns);
  tiles.clear();
  starts.clear();
  walkedMemory = e.allocate(2 * bytesOf(sizes.columns, needs.walked));
  walkedBytes = 0;
  Value warp = e.divide(e.thread, BlockEmitter::warpSize);
  lane = e.remainder(e.thread, BlockEmitter::warpSize);
  warpRow = e.mul(warp, e.constant(sizes.rows / warps));
  firstRow = e.add(warpRow, e.divide(lane, 4));
  firstColumn = e.mul(e.remainder(lane, 4), e.constant(2));
}

void MmaTiles::findStarts(int64_t depth) {
  auto [found, isNew] = starts.try_emplace(depth);
  if (!isNew)
    return;
  Value stride = e.constant(strideOf(depth));
  // The matrices of a fragment by eight lanes: [g, t], [g + 8, t], [g, t + 8], [g + 8, t + 8]
  // for rows, and for what becomes two fragments of columns the two in the middle change
  // places, unless the matrices are transposed.
  auto eights = [&](int64_t n) { return e.mul(e.remainder(e.divide(lane, n), 2), e.constant(8)); };
  auto offsetOf = [&](Value row, Value column) { return e.add(e.mul(row, stride), column); };
  Value within = e.remainder(lane, 8);
  Starts &of = found->second;
  of.column = offsetOf(e.add(within, eights(8)), eights(16));
  of.kept = e.add(e.mul(warpRow, stride), of.column);
  of.row = offsetOf(e.add(within, eights(16)), eights(8));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void MmaTiles::load(const Tile &tile, const Rows &from) {
  // Of as many rows as there are threads for, which have as many neighbouring pieces as divide
  // both a row and the threads: then all of a thread's pieces are at fixed distances from one.
  int64_t depth = tile.depth, stride = strideOf(depth);
  int64_t perRow = depth / piece, across = std::gcd(perRow, threads), down = threads / across;
  Value row = e.divide(e.thread, across);
  Value column = e.mul(e.remainder(e.thread, across), e.constant(piece));
  auto begin = [&](Value base, int64_t stride) {
    return e.at(base, element, e.add(e.mul(row, e.constant(stride)), column));
  };
  Value to = tile.walked ? e.at(tile.base, e.b.getI8Type(), inUse) : tile.base;
  Value target = begin(to, stride), source = begin(from.pointer, from.stride);
  Value last; // How far the last row that is there is from this thread's first one.
  if (from.end % tile.rows != 0)
    last = e.narrow(e.sub(e.constant(from.end - 1), e.add(from.first, row)));
  e.guarded(tile.rows < down ? e.less(row, e.constant(tile.rows)) : Value(), [&] {
    for (int64_t further = 0; further < tile.rows; further += down) {
      Value exists = e.constant(further), size = e.word(16);
      if (last) {
        // For a row that is not there, the last one's address stands, of which nothing is read:
        // zeros are written.
        Value distance = e.word(uint32_t(further));
        size = e.select(e.less(last, distance), e.word(0), size);
        exists = e.widen(e.smaller(distance, last));
      }
      Value there = e.at(source, element, e.mul(exists, e.constant(from.stride)));
      for (int64_t along = 0; along < depth; along += across * piece)
        fragments.copy(addressFrom(target, tile, further, along),
                       e.at(there, element, e.constant(along)), size);
    }
  });
}

void MmaTiles::settle() {
  fragments.commit();
  fragments.wait(0);
  e.barrier();
  for (Tile &tile : tiles) {
    if (!tile.inRegisters || !tile.held.empty())
      continue;
    Values held;
    for (int64_t m = 0; m < rows / 2; ++m)
      for (int64_t k = 0; k < tile.depth / side; ++k)
        llvm::append_range(held, rowsOf(tile, m, k));
    tile.held = held;
  }
}

Values MmaTiles::walk(Value low, Value high, ValueRange start, Fetch fetch, Body body) {
  int64_t bytes = walkedBytes;
  inUse = e.constant(0);
  e.guarded(e.less(low, high), [&] { fetch(low); });
  settle();
  Values carried(start);
  carried.push_back(inUse);
  Values ends = e.loop(low, high, carried, [&](Value step, ValueRange in) {
    Value now = in.back(), other = e.sub(e.constant(bytes), now);
    // What this thread has copied is there, and after the barrier what all have; nobody
    // reads the other tiles any more.
    fragments.wait(0);
    e.barrier();
    Value next = e.add(step, e.constant(1));
    inUse = other;
    e.guarded(e.less(next, high), [&] { fetch(next); });
    fragments.commit();
    inUse = now;
    Values results = body(step, in.drop_back());
    results.push_back(other);
    return results;
  });
  ends.pop_back();
  return ends;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Fragment MmaTiles::rowsOf(const Tile &tile, int64_t m, int64_t k) {
  Fragment result;
  if (tile.held.empty())
    return fragments.load(
        addressFrom(e.at(tile.base, element, starts.at(tile.depth).kept), tile, m * side, k * side),
        false);
  std::copy_n(tile.held.begin() + (m * tile.depth / side + k) * 4, 4, result.begin());
  return result;
}

void MmaTiles::multiply(const Fragment &a, Value b0, Value b1, MutableArrayRef<Value> sums,
                        int64_t m, int64_t n, int64_t perRow) {
  // Of a thread's sums, two of row g and two of row g + 8.
  std::array<Value *, 4> to;
  for (int64_t i = 0; i < 4; ++i)
    to[i] = &sums[(2 * m + i / 2) * perRow + 2 * n + i % 2];
  fragments.multiply(a, b0, b1, to);
}

Values MmaTiles::product(const Tile &x, const Tile &y) {
  Values sums(rows * columns, e.number(0));
  Value base = walkedBase(y, starts.at(y.depth).row);
  for (int64_t k = 0; k < x.depth / side; ++k) {
    SmallVector<Fragment> of;
    for (int64_t m = 0; m < rows / 2; ++m)
      of.push_back(rowsOf(x, m, k));
    for (int64_t n = 0; n < sizes.columns / side; ++n) {
      Fragment by = fragments.load(addressFrom(base, y, n * side, k * side), false);
      for (int64_t m = 0; m < rows / 2; ++m)
        for (int64_t half = 0; half < 2; ++half)
          multiply(of[m], by[2 * half], by[2 * half + 1], sums, m, 2 * n + half, columns);
    }
  }
  return sums;
}

Values MmaTiles::accumulate(ValueRange scores, const Tile &y, ValueRange sums) {
  Values next(sums);
  Value base = walkedBase(y, starts.at(y.depth).column);
  for (int64_t k = 0; k < sizes.columns / side; ++k) {
    SmallVector<Fragment> of;
    for (int64_t m = 0; m < rows / 2; ++m) {
      Fragment &fragment = of.emplace_back();
      for (int64_t i = 0; i < 4; ++i) {
        int64_t at = (2 * m + i % 2) * columns + 4 * k + i / 2 * 2;
        fragment[i] = fragments.pack(scores[at], scores[at + 1]);
      }
    }
    for (int64_t n = 0; n < y.depth / side; ++n) {
      Fragment by = fragments.load(addressFrom(base, y, k * side, n * side), true);
      for (int64_t m = 0; m < rows / 2; ++m)
        for (int64_t half = 0; half < 2; ++half)
          multiply(of[m], by[2 * half], by[2 * half + 1], next, m, 2 * n + half, y.depth / 4);
    }
  }
  return next;
}

Values MmaTiles::dot(const Tile &x, const Rows &y) {
  Values sums(rows, e.number(0));
  for (int64_t m = 0; m < rows / 2; ++m)
    for (int64_t k = 0; k < x.depth / side; ++k) {
      Fragment of = rowsOf(x, m, k);
      for (int64_t i = 0; i < 4; ++i) {
        int64_t r = 2 * m + i % 2;
        Value &sum = sums[r];
        // Of a row that is not there, zeros in `of`, another one takes the place.
        Value exists = e.less(e.add(y.first, rowOf(r)), e.constant(y.end));
        Value row = e.mul(e.select(exists, rowOf(r), e.constant(0)), e.constant(y.stride));
        Value column = e.add(firstColumn, e.constant(k * side + i / 2 * 8));
        Value by = e.extend(e.load(e.at(y.pointer, element, e.add(row, column)), fragments.pair(element)));
        Value wide = e.extend(fragments.bitcast(fragments.pair(element), of[i]));
        for (int64_t j = 0; j < 2; ++j)
          sum = e.fma(e.element(wide, j), e.element(by, j), sum);
      }
    }
  for (Value &sum : sums)
    sum = rowSum(sum);
  return sums;
}

void MmaTiles::add(const Rows &from, ValueRange factors, MutableArrayRef<Value> sums) {
  int64_t perRow = int64_t(sums.size()) / rows;
  for (int64_t r = 0; r < rows; ++r) {
    MutableArrayRef<Value> of = sums.slice(r * perRow, perRow);
    Value exists = e.less(e.add(from.first, rowOf(r)), e.constant(from.end));
    llvm::copy(e.changed(exists, Values(of), [&] {
      Value row = e.at(from.pointer, from.element, e.mul(rowOf(r), e.constant(from.stride)));
      Values added;
      for (int64_t c = 0; c < perRow; c += 2) {
        Value two = e.load(e.at(row, from.element, columnOf(c)), VectorType::get({2}, from.element));
        for (int64_t i : {0, 1})
          added.push_back(e.fma(factors[r], e.element(two, i), of[c + i]));
      }
      return added;
    }), of.begin());
  }
}

void MmaTiles::write(const Rows &to, ValueRange sums, ValueRange factors) {
  Values scaled(sums);
  scale(scaled, factors);
  int64_t perRow = int64_t(sums.size()) / rows;
  for (int64_t r = 0; r < rows; ++r)
    e.guarded(e.less(e.add(to.first, rowOf(r)), e.constant(to.end)), [&] {
      Value row = e.at(to.pointer, to.element, e.mul(rowOf(r), e.constant(to.stride)));
      for (int64_t c = 0; c < perRow; c += 2) {
        int64_t at = r * perRow + c;
        Value two = to.element.isF32() ? vector::FromElementsOp::create(
                                             e.b, e.loc, VectorType::get({2}, to.element),
                                             ValueRange{scaled[at], scaled[at + 1]})
                                       : fragments.pack(scaled[at], scaled[at + 1]);
        e.store(two, e.at(row, to.element, columnOf(c)));
      }
    });
}

/// 2^x, to 22 bits; what is smaller than normal numbers is zero.
Value MmaTiles::exponential(Value score, double factor, Value shift) {
  constexpr double log2e = 1.4426950408889634;
  Value power = e.fma(score, e.number(factor * log2e), e.mul(shift, e.number(-log2e)));
  return LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getF32Type(),
                                       e.b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
                                       ValueRange{power})
      .getResults();
}

std::unique_ptr<Tiles> cuda::createMmaTiles(BlockEmitter &emitter, Type element) {
  return std::make_unique<MmaTiles>(emitter, element);
}
