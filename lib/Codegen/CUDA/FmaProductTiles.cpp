//===- FmaProductTiles.cpp - tiles of products on cores for arithmetic ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A block has 64 x 64 results, each of its 16 x 8 threads four neighbouring rows of them and
// eight columns, in two pieces of four. Parts of both factors lie in shared memory as f32, the
// indices that are summed over first, so that a thread reads vectors of both.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/ProductTiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr int64_t threads = BlockEmitter::threads, block = 64, columnThreads = 8, four = 4;
/// Numbers between rows in shared memory.
static constexpr int64_t stride = block + four;

namespace {
class FmaProductTiles : public ProductTiles {
public:
  FmaProductTiles(BlockEmitter &e, Type element) : e(e), element(element) {
    rows = four;
    pieces = 2;
    width = four;
  }

  TileSizes sizes() const override { return {block, block}; }
  void start(bool depthFirstA, bool depthFirstB) override {
    isDepthFirst[A] = depthFirstA;
    isDepthFirst[B] = depthFirstB;
    for (Value &base : shared)
      base = e.allocate(depth * stride * int64_t(sizeof(float)));
    firstRow = e.mul(e.divide(e.thread, columnThreads), e.constant(four));
    firstColumn = e.mul(e.remainder(e.thread, columnThreads), e.constant(four));
  }
  void load(Factor factor, const FactorPart &from) override;
  Values walk(Value steps, Fetch fetch) override;

  Value rowOf(int64_t r) override { return e.add(firstRow, e.constant(r)); }
  Value columnOf(int64_t piece) override {
    return e.add(firstColumn, e.constant(piece * columnThreads * four));
  }
  Value piece(ValueRange sums, int64_t r, int64_t piece) override {
    return sums[r * pieces + piece];
  }

private:
  /// Four numbers of a row of a part.
  Value numbers(Factor factor, Value k, Value first) {
    Value at = e.add(e.mul(k, e.constant(stride)), first);
    return e.load(e.at(shared[factor], e.b.getF32Type(), at),
                  VectorType::get({four}, e.b.getF32Type()));
  }

  BlockEmitter &e;
  Type element;
  bool isDepthFirst[2];
  Value shared[2], firstRow, firstColumn;
};
} // namespace

void FmaProductTiles::load(Factor factor, const FactorPart &from) {
  int64_t columns = isDepthFirst[factor] ? block : depth;
  e.loop(e.constant(0), e.constant(block * depth / threads), {}, [&](Value step, ValueRange) {
    Value index = e.add(e.mul(step, e.constant(threads)), e.thread);
    Value row = e.divide(index, columns), column = e.remainder(index, columns);
    Value isThere = from.exists ? from.exists(row) : Value(), of = e.add(from.column, column);
    if (from.width % columns != 0)
      isThere = e.both(isThere, e.less(of, e.constant(from.width)));
    Value source = e.add(e.mul(e.add(from.row, row), e.constant(from.stride)), of);
    Value number = e.loadOne(e.at(from.pointer, element, source), element, isThere);
    if (!isDepthFirst[factor])
      std::swap(row, column);
    Value to = e.add(e.mul(row, e.constant(stride)), column);
    e.store(number, e.at(shared[factor], e.b.getF32Type(), to));
    return Values();
  });
}

Values FmaProductTiles::walk(Value steps, Fetch fetch) {
  Values start(rows * pieces, e.splat(e.number(0), four));
  Values ends = e.loop(e.constant(0), steps, start, [&](Value step, ValueRange in) {
    e.barrier(); // Nobody reads the last parts any more.
    fetch(step);
    e.barrier();
    return e.loop(e.constant(0), e.constant(depth), in, [&](Value k, ValueRange before) {
      Values sums(before);
      Value as = numbers(A, k, firstRow);
      for (int64_t p = 0; p < pieces; ++p) {
        Value by = numbers(B, k, columnOf(p));
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = sums[r * pieces + p];
          sum = e.fma(e.splat(e.element(as, r), four), by, sum);
        }
      }
      return sums;
    });
  });
  e.barrier();
  return ends;
}

std::unique_ptr<ProductTiles> cuda::createFmaProductTiles(BlockEmitter &emitter, Type element) {
  return std::make_unique<FmaProductTiles>(emitter, element);
}
