//===- RouteEmitter.cpp - rows in the order of their experts ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A stable counting sort of choices by their expert. Choices are in chunks: choice j of the 128
// tokens of a block is chunk j * groups + block. Scratch memory holds how many of each chunk are
// of each expert, then how many of the chunks before it are, and last how many all are.
//
// With a capacity a block has tokens of one sequence. Scratch memory then also holds how many of
// each block's tokens chose each expert, so that every block knows how many of the sequence's
// earlier tokens did. Choices beyond the capacity get the row -1 before rows have numbers, and are
// not counted.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/BlockEmitter.h"
#include "Codegen/CUDA/Experts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr int64_t ofChunk = BlockEmitter::threads;

/// Tokens that chunks divide: those of a sequence, or of all where sequences do not matter.
static int64_t runOf(const exec::RouteShape &shape) {
  return shape.capacity > 0 ? shape.length : shape.sequences * shape.length;
}
static int64_t groupsOfRun(const exec::RouteShape &shape) {
  return llvm::divideCeil(runOf(shape), ofChunk);
}
static int64_t groupsOf(const exec::RouteShape &shape) {
  return shape.sequences * shape.length / runOf(shape) * groupsOfRun(shape);
}

int64_t cuda::routeWorkspace(const exec::RouteShape &shape) {
  int64_t groups = groupsOf(shape), counts = shape.k * groups + 1;
  if (shape.capacity > 0)
    counts += groups;
  return counts * shape.experts * int64_t(sizeof(int32_t));
}

namespace {
class RouteEmitter : BlockEmitter {
public:
  RouteEmitter(exec::RouteOp op, gpu::GPUModuleOp module)
      : BlockEmitter(module, op.getLoc()), shape(op.getShape()),
        tokens(shape.sequences * shape.length), run(runOf(shape)), ofRun(groupsOfRun(shape)),
        groups(groupsOf(shape)), chunks(shape.k * groups), ofBlock(shape.experts / shape.blocks),
        element(cast<MemRefType>(op.getMask().getType()).getElementType()) {}

  bool hasCapacity() const { return shape.capacity > 0; }
  void emitChoices(const std::string &name);
  void emitKept(const std::string &name);
  void emitOffsets(const std::string &name);
  void emitRows(const std::string &name);

private:
  void beginKernel(const std::string &name, int64_t blocks) {
    begin(name, 6, blocks);
    unsigned next = 0;
    for (Value *operand : {&mask, &chosen, &rows, &choices, &experts, &counts})
      *operand = function.getArgument(next++);
    firstOfRun = times(remainder(block, ofRun), ofChunk);
    first = add(times(divide(block, ofRun), run), firstOfRun);
    taken = at(counts, b.getI32Type(), constant((chunks + 1) * shape.experts));
  }
  /// Whether the block has so many tokens and one more.
  Value isToken(Value local) { return less(add(firstOfRun, local), constant(run)); }
  /// The sum of `term(i)` for i from `low` to `high`.
  Value sum(Value low, Value high, llvm::function_ref<Value(Value)> term) {
    return loop(low, high, {constant(0)}, [&](Value i, ValueRange in) {
      return Values{add(in[0], term(i))};
    })[0];
  }
  /// `body` for each of `count` numbers, divided among the threads of the block.
  void forEach(int64_t count, llvm::function_ref<void(Value)> body) {
    loop(constant(0), constant(llvm::divideCeil(count, threads)), {}, [&](Value i, ValueRange) {
      Value number = add(times(i, threads), thread);
      guarded(less(number, constant(count)), [&] { body(number); });
      return Values();
    });
  }
  Value isEqual(Value x, Value y) { return select(equal(x, y), constant(1), constant(0)); }
  Value chunkOf(Value choice) { return add(times(choice, groups), block); }
  /// Counts of the choices in `found` of each expert and choice of a token.
  void countChoices(Value found);
  /// Of 32 lanes those before this one that are in `votes`.
  Value countOf(Value votes) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), math::CtPopOp::create(b, loc, votes));
  }

  exec::RouteShape shape;
  int64_t tokens, run, ofRun, groups, chunks, ofBlock;
  Type element;
  Value mask, chosen, rows, choices, experts, counts, taken;
  Value first, firstOfRun; ///< token of a block among all, and among those of its run
};
} // namespace

void RouteEmitter::emitChoices(const std::string &name) {
  beginKernel(name, groups);
  Value found = allocate(shape.k * ofChunk * 4), none = constant(shape.experts);
  forEach(shape.k * ofChunk, [&](Value i) { putInt(none, found, i); });
  barrier();

  // A warp looks at one token after the other, 32 experts at a time.
  Value lane = remainder(thread, warpSize), warp = divide(thread, warpSize);
  Value one = word(1);
  Value before = arith::SubIOp::create(b, loc, arith::ShLIOp::create(b, loc, one, narrow(lane)), one);
  int64_t perWarp = ofChunk / warps;
  loop(constant(0), constant(perWarp), {}, [&](Value i, ValueRange) {
    Value local = add(times(warp, perWarp), i), token = add(first, local);
    guarded(isToken(local), [&] {
      Value steps = constant(llvm::divideCeil(shape.experts, warpSize));
      loop(constant(0), steps, {constant(0)}, [&](Value step, ValueRange in) {
        Value expert = add(times(step, warpSize), lane), isThere;
        if (shape.experts % warpSize)
          isThere = less(expert, constant(shape.experts));
        Value number = loadOne(at(mask, element, add(times(token, shape.experts), expert)), element, isThere);
        Value isChosen = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, number, this->number(0));
        Value votes = NVVM::VoteSyncOp::create(b, loc, b.getI32Type(), word(~0u), isChosen,
                                               NVVM::VoteSyncKind::ballot);
        Value place = add(in[0], countOf(arith::AndIOp::create(b, loc, votes, before)));
        guarded(both(isChosen, less(place, constant(shape.k))),
                [&] { putInt(expert, found, add(times(place, ofChunk), local)); });
        return Values{add(in[0], countOf(votes))};
      });
    });
    return Values();
  });
  barrier();

  guarded(isToken(thread), [&] {
    loop(constant(0), constant(shape.k), {}, [&](Value j, ValueRange) {
      Value choice = add(times(j, tokens), add(first, thread));
      putInt(getInt(found, add(times(j, ofChunk), thread)), chosen, choice);
      return Values();
    });
  });
  if (hasCapacity())
    forEach(shape.experts, [&](Value expert) {
      Value count = sum(constant(0), constant(shape.k * ofChunk),
                        [&](Value i) { return isEqual(getInt(found, i), expert); });
      putInt(count, taken, add(times(block, shape.experts), expert));
    });
  else
    countChoices(found);
  end();
}

void RouteEmitter::countChoices(Value found) {
  forEach(shape.experts, [&](Value expert) {
    loop(constant(0), constant(shape.k), {}, [&](Value j, ValueRange) {
      Value begin = times(j, ofChunk);
      Value count = sum(constant(0), constant(ofChunk),
                        [&](Value i) { return isEqual(getInt(found, add(begin, i)), expert); });
      putInt(count, counts, add(times(chunkOf(j), shape.experts), expert));
      return Values();
    });
  });
}

void RouteEmitter::emitKept(const std::string &name) {
  beginKernel(name, groups);
  int64_t all = shape.k * ofChunk;
  Value found = allocate(all * 4), kept = allocate(all * 4), none = constant(shape.experts);
  forEach(all, [&](Value i) {
    putInt(none, found, i);
    putInt(none, kept, i);
  });
  barrier();
  auto choicesOfToken = [&](llvm::function_ref<void(Value, Value)> body) {
    guarded(isToken(thread), [&] {
      loop(constant(0), constant(shape.k), {}, [&](Value j, ValueRange) {
        body(add(times(j, tokens), add(first, thread)), add(times(j, ofChunk), thread));
        return Values();
      });
    });
  };
  choicesOfToken([&](Value choice, Value place) { putInt(getInt(chosen, choice), found, place); });
  barrier();
  forEach(shape.experts, [&](Value expert) {
    Value before = sum(sub(block, remainder(block, ofRun)), block, [&](Value other) {
      return getInt(taken, add(times(other, shape.experts), expert));
    });
    loop(constant(0), constant(ofChunk), {before}, [&](Value token, ValueRange in) {
      return loop(constant(0), constant(shape.k), in, [&](Value j, ValueRange count) {
        Value place = add(times(j, ofChunk), token), isOwn = equal(getInt(found, place), expert);
        guarded(both(isOwn, less(count[0], constant(shape.capacity))),
                [&] { putInt(expert, kept, place); });
        return Values{add(count[0], select(isOwn, constant(1), constant(0)))};
      });
    });
  });
  barrier();
  countChoices(kept);
  choicesOfToken([&](Value choice, Value place) {
    putInt(select(equal(getInt(kept, place), none), constant(-1), constant(0)), rows, choice);
  });
  end();
}

void RouteEmitter::emitOffsets(const std::string &name) {
  beginKernel(name, shape.experts);
  Value sums = allocate(threads * 4);
  // Each thread has some chunks that follow each other.
  int64_t perThread = llvm::divideCeil(chunks, threads);
  Value low = smaller(times(thread, perThread), constant(chunks));
  Value high = smaller(add(low, constant(perThread)), constant(chunks));
  auto indexOf = [&](Value chunk) { return add(times(chunk, shape.experts), block); };
  putInt(sum(low, high, [&](Value chunk) { return getInt(counts, indexOf(chunk)); }), sums, thread);
  barrier();
  Value before = sum(constant(0), thread, [&](Value i) { return getInt(sums, i); });
  Value total = loop(low, high, {before}, [&](Value chunk, ValueRange in) {
    Value count = getInt(counts, indexOf(chunk));
    putInt(in[0], counts, indexOf(chunk));
    return Values{add(in[0], count)};
  })[0];
  guarded(equal(thread, constant(threads - 1)),
          [&] { putInt(total, counts, indexOf(constant(chunks))); });
  end();
}

void RouteEmitter::emitRows(const std::string &name) {
  beginKernel(name, groups);
  auto ints = [](int64_t count) { return llvm::alignTo(count * 4, 16); };
  Value found = allocate(shape.k * ofChunk * 4), totals = allocate(ints(shape.experts)),
        begins = allocate(ints(shape.experts)), filled = allocate(ints(shape.blocks));
  Value token = add(first, thread), exists = isToken(thread);
  forEach(shape.experts, [&](Value expert) {
    putInt(getInt(counts, add(constant(chunks * shape.experts), expert)), totals, expert);
  });
  guarded(exists, [&] {
    loop(constant(0), constant(shape.k), {}, [&](Value j, ValueRange) {
      Value choice = add(times(j, tokens), token), expert = getInt(chosen, choice);
      if (hasCapacity())
        expert = select(less(getInt(rows, choice), constant(0)), constant(shape.experts), expert);
      putInt(expert, found, add(times(j, ofChunk), thread));
      return Values();
    });
  });
  barrier();
  // Where each expert's rows begin, and how many a block has.
  forEach(shape.experts, [&](Value expert) {
    Value of = divide(expert, ofBlock), first = times(of, ofBlock);
    Value before = sum(first, expert, [&](Value i) { return getInt(totals, i); });
    putInt(add(times(of, shape.slots), before), begins, expert);
    guarded(equal(remainder(expert, ofBlock), constant(ofBlock - 1)),
            [&] { putInt(add(before, getInt(totals, expert)), filled, of); });
  });
  barrier();

  guarded(exists, [&] {
    loop(constant(0), constant(shape.k), {}, [&](Value j, ValueRange) {
      Value chunk = times(j, ofChunk), choice = add(times(j, tokens), token);
      Value expert = getInt(found, add(chunk, thread)), isRow = less(expert, constant(shape.experts));
      guarded(isRow, [&] {
        Value row = sum(constant(0), thread,
                        [&](Value i) { return isEqual(getInt(found, add(chunk, i)), expert); });
        row = add(row, getInt(counts, add(times(chunkOf(j), shape.experts), expert)));
        row = add(row, getInt(begins, expert));
        putInt(row, rows, choice);
        putInt(choice, choices, row);
        putInt(remainder(expert, ofBlock), experts, row);
      });
      guarded(equal(expert, constant(shape.experts)), [&] { putInt(constant(-1), rows, choice); });
      return Values();
    });
  });
  int64_t all = shape.blocks * shape.slots;
  loop(constant(0), constant(llvm::divideCeil(all, groups * threads)), {}, [&](Value i, ValueRange) {
    Value slot = add(times(add(times(i, groups), block), threads), thread);
    guarded(less(slot, constant(all)), [&] {
      Value of = divide(slot, shape.slots);
      Value isEmpty = less(getInt(filled, of), add(remainder(slot, shape.slots), constant(1)));
      guarded(isEmpty, [&] {
        putInt(constant(-1), choices, slot);
        putInt(constant(ofBlock), experts, slot);
      });
    });
    return Values();
  });
  end();
}

std::vector<std::string> cuda::emitRoute(exec::RouteOp op, const std::string &name,
                                         gpu::GPUModuleOp target) {
  RouteEmitter emitter(op, target);
  std::vector<std::string> names = {name};
  emitter.emitChoices(name);
  if (emitter.hasCapacity())
    emitter.emitKept(names.emplace_back(name + "$kept"));
  emitter.emitOffsets(names.emplace_back(name + "$offsets"));
  emitter.emitRows(names.emplace_back(name + "$rows"));
  return names;
}
