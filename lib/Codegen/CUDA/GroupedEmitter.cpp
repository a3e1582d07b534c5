//===- GroupedEmitter.cpp - products with the matrix of each row's expert ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rows lie in runs of one expert, but how long runs are is data. So tiles of rows are where they
// would be in one product: a block looks up the experts of its rows, multiplies all rows by the
// matrix of each of them, and writes the rows that are of it. A tile within a run is one product,
// and a run that crosses tiles costs a product more, as if tiles began with runs. A gradient walks
// lists of the places where its expert has rows, 32 rows at a time with a bit for each.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Experts.h"
#include "Codegen/CUDA/Fragments.h"
#include "Codegen/CUDA/ProductTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

/// Rows of an entry of a list, one for each bit of a word.
static constexpr int64_t ofEntry = ProductTiles::depth;
/// Tiles of rows whose blocks follow each other for one tile of columns, so that both factors are
/// found in caches.
static constexpr int64_t together = 8;
static constexpr int64_t noExpert = std::numeric_limits<int32_t>::max();

static int64_t entriesOf(const exec::GroupShape &shape) {
  return llvm::divideCeil(shape.rows, ofEntry);
}
/// Of an entry's bits one word for each expert of its block.
static int64_t maskWords(const exec::GroupShape &shape) {
  return llvm::alignTo(shape.experts * entriesOf(shape), 4);
}

int64_t cuda::groupedGradWorkspace(const exec::GroupShape &shape) {
  // A list has its length, and then pairs of an entry and its bits.
  int64_t words = maskWords(shape) + shape.experts * 2 * (entriesOf(shape) + 1);
  return words * int64_t(sizeof(int32_t));
}

namespace {
class GroupedEmitter : BlockEmitter {
public:
  GroupedEmitter(gpu::GPUModuleOp module, Location loc, const exec::GroupShape &shape, Type element,
                 bool usesTensorCores)
      : BlockEmitter(module, loc), shape(shape), ofBlock(shape.experts / shape.blocks),
        element(element), tiles(usesTensorCores ? createMmaProductTiles(*this, element)
                                                : createFmaProductTiles(*this, element)) {}

  void emitProduct(const std::string &name, exec::GroupedMatmulOp op, bool aligned);
  void emitMasks(const std::string &name);
  void emitLists(const std::string &name);
  void emitGradient(const std::string &name, exec::GroupedMatmulGradOp op, bool aligned);

private:
  Value isZero(Value word) { return equal(word, this->word(0)); }
  /// Blocks for tiles of rows and columns of `count` matrices, and which this block has.
  int64_t blocksFor(int64_t rows, int64_t columns) const;
  void decompose(int64_t rows, int64_t columns, Value index, Value &row, Value &column);
  /// The number of an expert of this block's rows, or of none: ofBlock.
  Value knownExpert(Value number) {
    Value isKnown = both(less(constant(-1), number), less(number, constant(ofBlock)));
    return select(isKnown, number, constant(ofBlock));
  }
  /// The smallest number above `previous` among those of the tile's rows.
  Value nextExpert(Value numbers, Value previous);
  /// Writes the rows for which `isOwn` holds, from element (`row`, `column`) of a matrix on.
  void write(ValueRange sums, Value pointer, Type type, int64_t width, Value row, Value column,
             bool aligned, bool adds, llvm::function_ref<Value(Value)> isOwn);
  Value listOf(Value workspace, Value expert) {
    Value begin = add(constant(maskWords(shape)), times(expert, 2 * (entriesOf(shape) + 1)));
    return at(workspace, b.getI32Type(), begin);
  }

  exec::GroupShape shape;
  int64_t ofBlock;
  Type element;
  std::unique_ptr<ProductTiles> tiles;
};
} // namespace

int64_t GroupedEmitter::blocksFor(int64_t rows, int64_t columns) const {
  auto [ofRows, ofColumns] = tiles->sizes();
  int64_t group = std::min(together, llvm::divideCeilSigned(rows, ofRows));
  return llvm::alignTo(llvm::divideCeil(rows, ofRows), group) * llvm::divideCeil(columns, ofColumns);
}

void GroupedEmitter::decompose(int64_t rows, int64_t columns, Value index, Value &row,
                               Value &column) {
  auto [ofRows, ofColumns] = tiles->sizes();
  int64_t group = std::min(together, llvm::divideCeilSigned(rows, ofRows));
  int64_t ofGroup = group * llvm::divideCeil(columns, ofColumns);
  Value within = remainder(index, ofGroup);
  row = add(times(divide(index, ofGroup), group), remainder(within, group));
  column = times(divide(within, group), ofColumns);
}

Value GroupedEmitter::nextExpert(Value numbers, Value previous) {
  int64_t four = 4;
  auto type = VectorType::get({four}, b.getI32Type());
  return loop(constant(0), constant(tiles->sizes().rows / four), {constant(noExpert)},
              [&](Value i, ValueRange in) {
    Value some = load(at(numbers, b.getI32Type(), times(i, four)), type), best = in[0];
    for (int64_t j = 0; j < four; ++j) {
      Value number = widen(BlockEmitter::element(some, j));
      best = select(less(previous, number), smaller(best, number), best);
    }
    return Values{best};
  })[0];
}

void GroupedEmitter::write(ValueRange sums, Value pointer, Type type, int64_t width, Value row,
                           Value column, bool aligned, bool adds,
                           llvm::function_ref<Value(Value)> isOwn) {
  bool isWhole = width % tiles->sizes().columns == 0;
  bool byPiece = aligned && width % tiles->width == 0;
  for (int64_t r = 0; r < tiles->rows; ++r) {
    Value of = tiles->rowOf(r);
    guarded(isOwn(of), [&] {
      Value begin = times(add(row, of), width);
      for (int64_t p = 0; p < tiles->pieces; ++p) {
        Value first = add(column, tiles->columnOf(p)), sum = tiles->piece(sums, r, p);
        auto put = [&](Value numbers, Value where) {
          Value to = at(pointer, type, add(begin, where));
          Type stored = isa<VectorType>(numbers.getType()) ? VectorType::get({tiles->width}, type) : type;
          if (adds)
            numbers = add(extend(load(to, stored)), numbers);
          store(round(numbers, type), to);
        };
        if (byPiece) {
          guarded(isWhole ? Value() : less(first, constant(width)), [&] { put(sum, first); });
          continue;
        }
        for (int64_t i = 0; i < tiles->width; ++i) {
          Value where = add(first, constant(i));
          guarded(less(where, constant(width)), [&] { put(BlockEmitter::element(sum, i), where); });
        }
      }
    });
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void GroupedEmitter::emitProduct(const std::string &name, exec::GroupedMatmulOp op, bool aligned) {
  exec::ProductShape product = op.getShape();
  int64_t ofTile = tiles->sizes().rows, perBlock = llvm::divideCeil(shape.rows, ofTile);
  int64_t inner = product.k, outer = product.n, count = perBlock * shape.blocks;
  begin(name, op->getNumOperands(), blocksFor(count * ofTile, outer));
  Value x = function.getArgument(0), weight = function.getArgument(1),
        experts = function.getArgument(2), y = function.getArgument(3);
  Value tile, column;
  decompose(count * ofTile, outer, block, tile, column);
  Value exists = count % std::min(together, count) ? less(tile, constant(count)) : Value();
  guarded(exists, [&] {
    // The rows of the tile: `first` in the block of rows, `row` among all.
    Value of = divide(tile, perBlock), first = times(remainder(tile, perBlock), ofTile);
    Value row = add(times(of, shape.rows), first);
    Value numbers = allocate(ofTile * 4), isRow = less(thread, constant(ofTile));
    guarded(ofTile < threads ? isRow : Value(), [&] {
      Value isThere = less(add(first, thread), constant(shape.rows));
      Value last = smaller(add(first, thread), constant(shape.rows - 1));
      Value number = getInt(experts, add(times(of, shape.rows), last));
      putInt(select(isThere, knownExpert(number), constant(-1)), numbers, thread);
    });
    barrier();
    tiles->start(/*depthFirstA=*/false, /*depthFirstB=*/op.getTransposed());

    // Rows of no expert come last, in no turns, which make zeros.
    auto turns = scf::WhileOp::create(b, loc, TypeRange{b.getI64Type()},
                                      ValueRange{nextExpert(numbers, constant(-1))});
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&turns.getBefore(), {}, {b.getI64Type()}, {loc});
    scf::ConditionOp::create(b, loc, less(before->getArgument(0), constant(noExpert)),
                             before->getArguments());
    Block *body = b.createBlock(&turns.getAfter(), {}, {b.getI64Type()}, {loc});
    Value expert = body->getArgument(0);
    Value matrix = add(times(of, ofBlock), expert), isKnown = less(expert, constant(ofBlock));
    Value steps = select(isKnown, constant(llvm::divideCeil(inner, ProductTiles::depth)), constant(0));
    Values sums = tiles->walk(steps, [&](Value step) {
      Value k = times(step, ProductTiles::depth);
      tiles->load(ProductTiles::A, {x, inner, row, k, inner, [&](Value r) {
                    return less(add(first, r), constant(shape.rows));
                  }});
      if (op.getTransposed())
        tiles->load(ProductTiles::B, {weight, outer, add(times(matrix, inner), k), column, outer,
                                      [&](Value r) { return less(add(k, r), constant(inner)); }});
      else
        tiles->load(ProductTiles::B, {weight, inner, add(times(matrix, outer), column), k, inner,
                                      [&](Value r) { return less(add(column, r), constant(outer)); }});
    });
    write(sums, y, element, outer, row, column, aligned, /*adds=*/false,
          [&](Value r) { return equal(getInt(numbers, r), expert); });
    scf::YieldOp::create(b, loc, nextExpert(numbers, expert));
  });
  end();
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

void GroupedEmitter::emitMasks(const std::string &name) {
  int64_t entries = entriesOf(shape), all = entries * shape.blocks;
  begin(name, 5, llvm::divideCeil(all, warps));
  Value experts = function.getArgument(2), masks = function.getArgument(4);
  Value lane = remainder(thread, warpSize), entry = add(times(block, warps), divide(thread, warpSize));
  guarded(less(entry, constant(all)), [&] {
    Value of = divide(entry, entries), row = add(times(remainder(entry, entries), ofEntry), lane);
    Value last = smaller(row, constant(shape.rows - 1));
    Value number = getInt(experts, add(times(of, shape.rows), last));
    number = select(less(row, constant(shape.rows)), number, constant(-1));
    // A lane keeps the word of every 32nd expert.
    loop(constant(0), constant(llvm::divideCeil(ofBlock, warpSize)), {}, [&](Value i, ValueRange) {
      Value first = times(i, warpSize), own = word(0);
      for (int64_t e = 0; e < std::min(warpSize, ofBlock); ++e) {
        Value votes = NVVM::VoteSyncOp::create(b, loc, b.getI32Type(), word(~0u),
                                               equal(number, add(first, constant(e))),
                                               NVVM::VoteSyncKind::ballot);
        own = select(equal(lane, constant(e)), votes, own);
      }
      Value expert = add(first, lane);
      guarded(less(expert, constant(ofBlock)),
              [&] { store(own, at(masks, b.getI32Type(), add(times(entry, ofBlock), expert))); });
      return Values();
    });
  });
  end();
}

void GroupedEmitter::emitLists(const std::string &name) {
  int64_t entries = entriesOf(shape), perThread = llvm::divideCeil(entries, threads);
  begin(name, 5, shape.experts);
  Value workspace = function.getArgument(4), counts = allocate(threads * 4);
  Value of = divide(block, ofBlock), expert = remainder(block, ofBlock);
  Value list = listOf(workspace, block);
  // Each thread has some entries that follow each other.
  Value low = smaller(times(thread, perThread), constant(entries));
  Value high = smaller(add(low, constant(perThread)), constant(entries));
  auto maskOf = [&](Value entry) {
    Value index = add(times(add(times(of, entries), entry), ofBlock), expert);
    return load(at(workspace, b.getI32Type(), index), b.getI32Type());
  };
  auto hasRows = [&](Value mask) { return select(isZero(mask), constant(0), constant(1)); };
  Value count = loop(low, high, {constant(0)}, [&](Value entry, ValueRange in) {
    return Values{add(in[0], hasRows(maskOf(entry)))};
  })[0];
  putInt(count, counts, thread);
  barrier();
  Value begin = loop(constant(0), thread, {constant(0)}, [&](Value i, ValueRange in) {
    return Values{add(in[0], getInt(counts, i))};
  })[0];
  Value length = loop(low, high, {begin}, [&](Value entry, ValueRange in) {
    Value mask = maskOf(entry);
    guarded(less(constant(0), hasRows(mask)), [&] {
      Value place = times(add(in[0], constant(1)), 2);
      putInt(entry, list, place);
      store(mask, at(list, b.getI32Type(), add(place, constant(1))));
    });
    return Values{add(in[0], hasRows(mask))};
  })[0];
  guarded(equal(thread, constant(threads - 1)), [&] { putInt(length, list, constant(0)); });
  end();
}

void GroupedEmitter::emitGradient(const std::string &name, exec::GroupedMatmulGradOp op,
                                  bool aligned) {
  exec::ProductShape product = op.getShape();
  int64_t ofMatrix = blocksFor(product.m, product.n);
  begin(name, 5, ofMatrix * shape.experts);
  Value dy = function.getArgument(0), x = function.getArgument(1),
        result = function.getArgument(3), workspace = function.getArgument(4);
  int64_t ofRows = tiles->sizes().rows;
  Value expert = divide(block, ofMatrix), tile, column;
  decompose(product.m, product.n, remainder(block, ofMatrix), tile, column);
  Value of = divide(expert, ofBlock), list = listOf(workspace, expert);
  Value length = getInt(list, constant(0)), row = times(tile, ofRows);
  Value works = less(row, constant(product.m));
  if (op.getAccumulates())
    works = both(works, less(constant(0), length));
  guarded(works, [&] {
    tiles->start(/*depthFirstA=*/true, /*depthFirstB=*/true);
    Values sums = tiles->walk(length, [&](Value step) {
      Value place = times(add(step, constant(1)), 2);
      Value first = add(times(of, shape.rows), times(getInt(list, place), ofEntry));
      Value mask = load(at(list, b.getI32Type(), add(place, constant(1))), b.getI32Type());
      auto exists = [&](Value r) {
        Value bit = arith::ShRUIOp::create(b, loc, mask, narrow(r));
        return Value(arith::TruncIOp::create(b, loc, b.getI1Type(), bit));
      };
      tiles->load(ProductTiles::A, {dy, product.m, first, row, product.m, exists});
      tiles->load(ProductTiles::B, {x, product.n, first, column, product.n, exists});
    });
    Type type = cast<MemRefType>(op.getResult().getType()).getElementType();
    write(sums, result, type, product.n, add(times(expert, product.m), row), column, aligned,
          op.getAccumulates(), [&](Value r) { return less(add(row, r), constant(product.m)); });
  });
  end();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Whether tensor cores can make products of rows of these widths.
static bool fitsTensorCores(Type element, bool aligned, ArrayRef<int64_t> widths) {
  return !element.isF32() && aligned && llvm::all_of(widths, [](int64_t width) {
    return width % Fragments::piece == 0;
  });
}

std::vector<std::string> cuda::emitGrouped(exec::GroupedMatmulOp op, bool aligned,
                                           const std::string &name, gpu::GPUModuleOp target) {
  exec::ProductShape product = op.getShape();
  Type element = cast<MemRefType>(op.getX().getType()).getElementType();
  GroupedEmitter emitter(target, op.getLoc(), op.getGroups(), element,
                         fitsTensorCores(element, aligned, {product.k, product.n}));
  emitter.emitProduct(name, op, aligned);
  return {name};
}

std::vector<std::string> cuda::emitGrouped(exec::GroupedMatmulGradOp op, bool aligned,
                                           const std::string &name, gpu::GPUModuleOp target) {
  exec::ProductShape product = op.getShape();
  Type element = cast<MemRefType>(op.getX().getType()).getElementType();
  GroupedEmitter emitter(target, op.getLoc(), op.getGroups(), element,
                         fitsTensorCores(element, aligned, {product.m, product.n}));
  std::vector<std::string> names = {name + "$masks", name + "$lists", name};
  emitter.emitMasks(names[0]);
  emitter.emitLists(names[1]);
  emitter.emitGradient(names[2], op, aligned);
  return names;
}
