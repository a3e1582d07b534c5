//===- FmaTiles.cpp - products of tiles on cores for arithmetic -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A block has 128 threads, 16 by 8: thread (r, c) works on rows r, r + 16, ... of a tile of
// results, and on its columns c, c + 8, ... or, of wide ones, on the pieces of four columns
// c, c + 8, .... The 8 threads of a row are neighbours in one warp, so that what is exchanged
// along rows needs no barrier of the block. Tiles lie in shared memory as f32. Rows are
// padded so that the accesses of a warp go to different banks.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Tiles.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr int64_t rowThreads = 16, columnThreads = 8, threads = BlockEmitter::threads;
/// Elements of one access.
static constexpr int64_t width = 4;
/// Numbers that a thread keeps at most, so that none are spilled.
static constexpr int64_t mostFmaNumbers = 112;

/// Elements of a tile's row for so many of a tensor's, and the pieces of them that a thread has.
static int64_t depthOf(int64_t dim) { return llvm::alignTo(dim, columnThreads * width); }
static int64_t piecesOf(int64_t dim) { return depthOf(dim) / (columnThreads * width); }
static int64_t strideOf(int64_t columns) { return columns + width; }
static int64_t bytesOf(int64_t rows, int64_t columns) {
  return rows * strideOf(columns) * int64_t(sizeof(float));
}

namespace {
class FmaTiles : public Tiles {
public:
  explicit FmaTiles(BlockEmitter &e) : e(e) {}

  std::optional<TileSizes> sizesFor(const TileNeeds &needs) const override {
    for (auto [r, c] :
         {std::pair<int64_t, int64_t>{4, 4}, {2, 4}, {4, 2}, {2, 2}, {1, 4}, {1, 2}}) {
      TileSizes sizes{r * rowThreads, c * columnThreads};
      int64_t numbers = needs.scores * r * c, shared = bytesOf(sizes.rows, sizes.columns);
      for (int64_t dim : needs.sums)
        numbers += r * piecesOf(dim) * width;
      for (int64_t dim : needs.kept)
        shared += bytesOf(sizes.rows, depthOf(dim));
      for (int64_t dim : needs.walked)
        shared += bytesOf(sizes.columns, depthOf(dim));
      if (numbers <= mostFmaNumbers && shared <= BlockEmitter::mostShared)
        return sizes;
    }
    return std::nullopt;
  }
  void start(const TileSizes &chosen, const TileNeeds &) override {
    sizes = chosen;
    rows = sizes.rows / rowThreads;
    columns = sizes.columns / columnThreads;
    rowThread = e.divide(e.thread, columnThreads);
    columnThread = e.remainder(e.thread, columnThreads);
    tiles.clear();
    scores = e.allocate(bytesOf(sizes.rows, sizes.columns));
  }

  Value rowOf(int64_t r) override { return e.add(rowThread, e.constant(rowOffset(r))); }
  Value columnOf(int64_t c) override { return e.add(columnThread, e.constant(columnOffset(c))); }
  int64_t rowOffset(int64_t r) const override { return r * rowThreads; }
  int64_t columnOffset(int64_t c) const override { return c * columnThreads; }
  Value isFirst() override { return e.equal(columnThread, e.constant(0)); }
  Value rowSum(Value value) override { return e.sumOf(columnThreads, value); }
  Value rowMax(Value value) override { return e.maxOf(columnThreads, value); }

  Tile &allocate(bool walked, int64_t dim) override {
    int64_t count = walked ? sizes.columns : sizes.rows, depth = depthOf(dim);
    return tiles.emplace_back(Tile{count, depth, e.allocate(bytesOf(count, depth)), walked});
  }
  void load(const Tile &tile, const Rows &from) override;
  void settle() override { e.barrier(); }
  Values walk(Value low, Value high, ValueRange start, Fetch fetch, Body body) override {
    return e.loop(low, high, start, [&](Value step, ValueRange in) {
      e.barrier(); // Nobody reads the last tiles any more.
      fetch(step);
      e.barrier();
      return body(step, in);
    });
  }

  Values zeros(int64_t dim) override {
    return Values(rows * piecesOf(dim), e.splat(e.number(0), width));
  }
  void scale(MutableArrayRef<Value> sums, ValueRange factors) override {
    int64_t pieces = int64_t(sums.size()) / rows;
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = e.mul(sum, e.splat(factors[i / pieces], width));
  }
  Values product(const Tile &x, const Tile &y) override;
  Values accumulate(ValueRange values, const Tile &y, ValueRange sums) override;
  Values dot(const Tile &x, const Rows &y) override;
  void add(const Rows &from, ValueRange factors, MutableArrayRef<Value> sums) override;
  void write(const Rows &to, ValueRange sums, ValueRange factors) override;
  Value exponential(Value score, double factor, Value shift) override {
    return math::ExpOp::create(e.b, e.loc, e.sub(e.mul(score, e.number(factor)), shift));
  }

private:
  Value pieceOf(int64_t p) {
    return e.mul(e.add(columnThread, e.constant(p * columnThreads)), e.constant(width));
  }
  VectorType wide() { return VectorType::get({width}, e.b.getF32Type()); }
  /// The number at an offset in shared memory with rows of `columns`.
  Value addressOf(Value base, int64_t columns, Value row, Value column) {
    return e.at(base, e.b.getF32Type(),
                e.add(e.mul(row, e.constant(strideOf(columns))), column));
  }
  Value piece(Value base, int64_t columns, Value row, Value column) {
    return e.load(addressOf(base, columns, row, column), wide());
  }
  /// One piece of a row, as f32.
  Value piece(const Rows &from, Value row, Value column);

  BlockEmitter &e;
  TileSizes sizes;
  Value rowThread, columnThread;
  Value scores; ///< in shared memory, for the products with them
};
} // namespace

Value FmaTiles::piece(const Rows &from, Value row, Value column) {
  Value exists = e.less(e.add(from.first, row), e.constant(from.end));
  Value offset = e.add(e.mul(row, e.constant(from.stride)), column);
  if (!from.aligned) {
    Values elements;
    for (int64_t i = 0; i < width; ++i)
      elements.push_back(
          e.loadOne(e.at(from.pointer, from.element, e.add(offset, e.constant(i))), from.element,
                    e.both(exists, e.less(e.add(column, e.constant(i)), e.constant(from.valid)))));
    return vector::FromElementsOp::create(e.b, e.loc, wide(), elements);
  }
  Value inside = e.both(exists, e.less(column, e.constant(from.valid)));
  return e.changed(inside, e.splat(e.number(0), width), [&] {
    Type type = VectorType::get({width}, from.element);
    return Values{e.extend(e.load(e.at(from.pointer, from.element, offset), type))};
  })[0];
}

void FmaTiles::load(const Tile &tile, const Rows &from) {
  int64_t perRow = tile.depth / width;
  e.loop(e.constant(0), e.constant(tile.rows * perRow / threads), {}, [&](Value step, ValueRange) {
    Value index = e.add(e.mul(step, e.constant(threads)), e.thread);
    Value row = e.divide(index, perRow);
    Value column = e.mul(e.remainder(index, perRow), e.constant(width));
    Value to = addressOf(tile.base, tile.depth, row, column);
    e.store(piece(from, row, column), to);
    return Values();
  });
}

Values FmaTiles::product(const Tile &x, const Tile &y) {
  Values start(rows * columns, e.number(0));
  return e.loop(e.constant(0), e.constant(x.depth / width), start, [&](Value step, ValueRange in) {
    Value column = e.mul(step, e.constant(width));
    Values xs, ys, sums(in);
    for (int64_t r = 0; r < rows; ++r)
      xs.push_back(piece(x.base, x.depth, rowOf(r), column));
    for (int64_t c = 0; c < columns; ++c)
      ys.push_back(piece(y.base, y.depth, columnOf(c), column));
    for (int64_t i = 0; i < width; ++i)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          Value &sum = sums[r * columns + c];
          sum = e.fma(e.element(xs[r], i), e.element(ys[c], i), sum);
        }
    return sums;
  });
}

Values FmaTiles::accumulate(ValueRange values, const Tile &y, ValueRange sums) {
  int64_t pieces = piecesOf(y.depth);
  e.warpBarrier(); // The row's threads have read its last scores.
  for (auto [i, value] : llvm::enumerate(values))
    e.store(value, addressOf(scores, sizes.columns, rowOf(i / columns), columnOf(i % columns)));
  e.warpBarrier();
  return e.loop(e.constant(0), e.constant(sizes.columns / width), sums,
                [&](Value step, ValueRange in) {
    Value column = e.mul(step, e.constant(width));
    Values xs, next(in);
    for (int64_t r = 0; r < rows; ++r)
      xs.push_back(piece(scores, sizes.columns, rowOf(r), column));
    for (int64_t i = 0; i < width; ++i)
      for (int64_t p = 0; p < pieces; ++p) {
        Value of = piece(y.base, y.depth, e.add(column, e.constant(i)), pieceOf(p));
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = next[r * pieces + p];
          sum = e.fma(e.splat(e.element(xs[r], i), width), of, sum);
        }
      }
    return next;
  });
}

Values FmaTiles::dot(const Tile &x, const Rows &y) {
  Values sums;
  for (int64_t r = 0; r < rows; ++r) {
    Value sum = e.number(0);
    for (int64_t p = 0; p < piecesOf(x.depth); ++p) {
      Value of = piece(x.base, x.depth, rowOf(r), pieceOf(p)), by = piece(y, rowOf(r), pieceOf(p));
      for (int64_t i = 0; i < width; ++i)
        sum = e.fma(e.element(of, i), e.element(by, i), sum);
    }
    sums.push_back(rowSum(sum));
  }
  return sums;
}

void FmaTiles::add(const Rows &from, ValueRange factors, MutableArrayRef<Value> sums) {
  int64_t pieces = int64_t(sums.size()) / rows;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t r = i / pieces;
    sum = e.fma(e.splat(factors[r], width), piece(from, rowOf(r), pieceOf(i % pieces)), sum);
  }
}

void FmaTiles::write(const Rows &to, ValueRange sums, ValueRange factors) {
  Values scaled(sums);
  scale(scaled, factors);
  int64_t pieces = int64_t(sums.size()) / rows;
  for (int64_t r = 0; r < rows; ++r)
    e.guarded(e.less(e.add(to.first, rowOf(r)), e.constant(to.end)), [&] {
      for (int64_t p = 0; p < pieces; ++p) {
        Value value = e.round(scaled[r * pieces + p], to.element);
        Value column = pieceOf(p);
        Value offset = e.add(e.mul(rowOf(r), e.constant(to.stride)), column);
        if (to.aligned) {
          e.guarded(e.less(column, e.constant(to.valid)),
                    [&] { e.store(value, e.at(to.pointer, to.element, offset)); });
          continue;
        }
        for (int64_t i = 0; i < width; ++i)
          e.guarded(e.less(e.add(column, e.constant(i)), e.constant(to.valid)), [&] {
            e.store(e.element(value, i),
                    e.at(to.pointer, to.element, e.add(offset, e.constant(i))));
          });
      }
    });
}

std::unique_ptr<Tiles> cuda::createFmaTiles(BlockEmitter &emitter) {
  return std::make_unique<FmaTiles>(emitter);
}
