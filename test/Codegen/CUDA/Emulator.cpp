//===- Emulator.cpp - runs GPU kernels without a GPU ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Emulator.h"
#include "../../Runtime/Cuda/Fragments.h"
#include "Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cstring>
#include <deque>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

/// A pointer is the number of its memory above this bit, and an offset in bytes that
/// starts in the middle: in a broken kernel it may be negative.
static constexpr unsigned memoryShift = 40;
static uint64_t startOf(uint64_t memory) {
  return memory << memoryShift | uint64_t(1) << (memoryShift - 1);
}
static constexpr int64_t warpSize = 32;
/// The name of the memory whose size launches say.
static constexpr llvm::StringLiteral sharedName = "meshwright$shared";

unsigned Emulator::add(void *data, int64_t bytes, bool initialised) {
  Memory &memory = memories.emplace_back();
  memory.data = static_cast<char *>(data);
  memory.bytes = bytes;
  memory.name = ("memory " + Twine(memories.size() - 1)).str();
  memory.cells.resize((bytes + 1) / 2);
  for (Cell &cell : memory.cells)
    cell.initialised = initialised;
  return memories.size() - 1;
}

void Emulator::complain(Operation *op, const Twine &message) {
  std::string text;
  llvm::raw_string_ostream(text) << op->getParentOfType<gpu::GPUFuncOp>().getName() << ": "
                                 << message << " at " << *op;
  if (complaints.size() < 8 && !llvm::is_contained(complaints, text))
    complaints.push_back(text);
}

//===----------------------------------------------------------------------===//
// One block of threads
//===----------------------------------------------------------------------===//

namespace meshwright::test {
class BlockEmulator {
public:
  BlockEmulator(Emulator &emulator, gpu::GPUFuncOp function, int64_t block, int64_t threads)
      : emulator(emulator), function(function), copies(threads), block(block), threads(threads),
        warpEpochs(llvm::divideCeil(threads, warpSize)) {}

  void run(ArrayRef<unsigned> arguments, ArrayRef<int64_t> numbers);

private:
  using Mask = std::vector<char>;
  void run(Block &block, const Mask &mask);
  void run(Operation *op, const Mask &mask);
  void runIf(scf::IfOp op, const Mask &mask);
  void runFor(scf::ForOp op, const Mask &mask);
  void shuffle(gpu::ShuffleOp op, const Mask &mask);
  void ballot(NVVM::VoteSyncOp op, const Mask &mask);
  /// Calls `body` for each warp's first thread where all or none of the warp come.
  void forWarps(Operation *op, const Mask &mask, llvm::function_ref<void(int64_t)> body);
  void multiply(NVVM::MmaOp op, const Mask &mask);
  void loadMatrices(NVVM::LdMatrixOp op, const Mask &mask);
  void copy(NVVM::CpAsyncOp op, const Mask &mask);
  void wait(NVVM::CpAsyncWaitGroupOp op, const Mask &mask);
  struct Copy;
  void setArriving(const Copy &copy, bool arriving);
  void copyOperands(Operation *from, ArrayRef<Lanes *> to, const Mask &mask);
  /// Reads or writes `value`'s elements of one thread, `bytes` each.
  void access(Operation *op, int64_t thread, uint64_t pointer, uint64_t *value, unsigned count,
              unsigned bytes, unsigned alignment, bool write);
  void touch(Operation *op, Emulator::Memory &memory, int64_t offset, int64_t thread, bool write);
  bool ordered(const Emulator::Access &before, int64_t thread);

  Lanes &get(Value value) {
    Lanes *&known = values[value];
    if (!known)
      known = &storage.emplace_back(value.getType(), threads);
    return *known;
  }
  static unsigned widthOf(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.getNumElements() : 1;
  }
  static unsigned bytesOf(Type type) {
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  }

  /// 16 bytes that a thread's cp.async brings.
  struct Copy {
    Operation *op;
    uint64_t to;
    uint64_t bytes[2];
  };
  struct Copies {
    std::vector<std::vector<Copy>> groups;
    std::vector<Copy> open;
  };

  Emulator &emulator;
  gpu::GPUFuncOp function;
  std::vector<Copies> copies; ///< of each thread
  int64_t block, threads;
  unsigned asked = 0; ///< shared memory that the launch asks for
  uint32_t blockEpoch = 0;
  std::vector<uint32_t> warpEpochs;
  std::deque<Lanes> storage;
  DenseMap<Value, Lanes *> values;
};
} // namespace meshwright::test

bool BlockEmulator::ordered(const Emulator::Access &before, int64_t thread) {
  int64_t mine = block * threads + thread;
  if (before.thread < 0 || before.thread == mine)
    return true;
  if (before.thread / threads != block)
    return false;
  return before.blockEpoch < blockEpoch ||
         (before.thread % threads / warpSize == thread / warpSize &&
          before.warpEpoch < warpEpochs[thread / warpSize]);
}

void BlockEmulator::touch(Operation *op, Emulator::Memory &memory, int64_t offset, int64_t thread,
                          bool write) {
  Emulator::Cell &cell = memory.cells[offset / 2];
  auto race = [&](const Emulator::Access &other, StringRef what) {
    if (!ordered(other, thread))
      emulator.complain(op, "race: thread " + Twine(block * threads + thread) +
                                (write ? " writes byte " : " reads byte ") + Twine(offset) +
                                " of " + memory.name + ", which thread " + Twine(other.thread) +
                                " " + what);
  };
  Emulator::Access now{block * threads + thread, blockEpoch, warpEpochs[thread / warpSize]};
  if (cell.arriving)
    emulator.complain(op, "thread " + Twine(now.thread) + " touches byte " + Twine(offset) + " of " +
                              memory.name + ", where a copy arrives that was not waited for");
  race(cell.writer, "wrote");
  if (write) {
    race(cell.readers[0], "read");
    race(cell.readers[1], "read");
    cell.writer = now;
    cell.initialised = true;
    return;
  }
  if (!cell.initialised)
    emulator.complain(op, "thread " + Twine(now.thread) + " reads byte " + Twine(offset) + " of " +
                              memory.name + ", which nobody wrote");
  if (cell.readers[0].thread != now.thread)
    cell.readers[1] = cell.readers[0];
  cell.readers[0] = now;
}

void BlockEmulator::access(Operation *op, int64_t thread, uint64_t pointer, uint64_t *value,
                           unsigned count, unsigned bytes, unsigned alignment, bool write) {
  Emulator::Memory &memory = emulator.memories[pointer >> memoryShift];
  int64_t offset = int64_t(pointer - startOf(pointer >> memoryShift));
  if (offset < 0 || offset + int64_t(count) * bytes > memory.bytes) {
    emulator.complain(op, "thread " + Twine(block * threads + thread) + " accesses bytes " +
                              Twine(offset) + " to " + Twine(offset + int64_t(count) * bytes) +
                              " of " + memory.name + ", which has " + Twine(memory.bytes));
    return;
  }
  if (reinterpret_cast<uintptr_t>(memory.data + offset) % alignment)
    emulator.complain(op, "thread " + Twine(block * threads + thread) + " accesses byte " +
                              Twine(offset) + " of " + memory.name + ", not aligned to " +
                              Twine(alignment));
  for (unsigned i = 0; i < count; ++i) {
    char *at = memory.data + offset + i * bytes;
    for (unsigned byte = 0; byte < bytes; byte += 2)
      touch(op, memory, offset + i * bytes + byte, thread, write);
    if (write) {
      std::memcpy(at, &value[i], bytes);
    } else {
      value[i] = 0;
      std::memcpy(&value[i], at, bytes);
    }
  }
}

void BlockEmulator::copyOperands(Operation *from, ArrayRef<Lanes *> to, const Mask &mask) {
  std::vector<Lanes> read;
  for (Value operand : from->getOperands())
    read.push_back(get(operand));
  for (auto [source, target] : llvm::zip(read, to))
    for (int64_t t = 0; t < threads; ++t)
      if (mask[t])
        std::copy_n(source.at(t), source.width, target->at(t));
}

void BlockEmulator::runIf(scf::IfOp op, const Mask &mask) {
  Lanes &condition = get(op.getCondition());
  SmallVector<Lanes *> results;
  for (Value result : op.getResults())
    results.push_back(&get(result));
  for (bool taken : {true, false}) {
    Block *block = taken ? op.thenBlock() : op.elseBlock();
    if (!block)
      continue;
    Mask inside(mask);
    for (int64_t t = 0; t < threads; ++t)
      inside[t] &= bool(*condition.at(t)) == taken;
    if (!llvm::is_contained(inside, 1))
      continue;
    run(*block, inside);
    copyOperands(block->getTerminator(), results, inside);
  }
}

void BlockEmulator::runFor(scf::ForOp op, const Mask &mask) {
  Lanes index = get(op.getLowerBound()), high = get(op.getUpperBound()), step = get(op.getStep());
  SmallVector<Lanes *> carried, results;
  for (auto [argument, init, result] :
       llvm::zip(op.getRegionIterArgs(), op.getInitArgs(), op.getResults())) {
    carried.push_back(&get(argument));
    results.push_back(&get(result));
    *carried.back() = get(init);
  }
  Mask inside(mask);
  while (true) {
    for (int64_t t = 0; t < threads; ++t)
      inside[t] &= int64_t(*index.at(t)) < int64_t(*high.at(t));
    if (!llvm::is_contained(inside, 1))
      break;
    get(op.getInductionVar()) = index;
    run(*op.getBody(), inside);
    copyOperands(op.getBody()->getTerminator(), carried, inside);
    for (int64_t t = 0; t < threads; ++t)
      *index.at(t) += *step.at(t);
  }
  for (auto [argument, result] : llvm::zip(carried, results))
    *result = *argument;
}

void BlockEmulator::shuffle(gpu::ShuffleOp op, const Mask &mask) {
  Lanes &value = get(op.getValue()), &offset = get(op.getOffset());
  Lanes &result = get(op.getShuffleResult()), &valid = get(op.getValid());
  if (op.getMode() != gpu::ShuffleMode::XOR)
    return emulator.complain(op, "the emulator knows shuffles with xor only");
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    int64_t other = t / warpSize * warpSize + ((t % warpSize) ^ int64_t(*offset.at(t)));
    if (other >= threads || !mask[other]) {
      emulator.complain(op, "thread " + Twine(t) + " reads from thread " + Twine(other) +
                                ", which does not take part in the shuffle");
      continue;
    }
    *result.at(t) = *value.at(other);
    *valid.at(t) = 1;
  }
}

void BlockEmulator::ballot(NVVM::VoteSyncOp op, const Mask &mask) {
  Lanes &members = get(op.getMask()), &condition = get(op.getPred()), &result = get(op.getRes());
  if (op.getKind() != NVVM::VoteSyncKind::ballot)
    return emulator.complain(op, "the emulator knows ballots only");
  for (int64_t first = 0; first < threads; first += warpSize) {
    uint64_t votes = 0, here = 0, asked = 0;
    int64_t end = std::min(first + warpSize, threads);
    for (int64_t t = first; t < end; ++t) {
      if (!mask[t])
        continue;
      here |= uint64_t(1) << (t - first);
      asked |= *members.at(t) & 0xffffffff;
      votes |= uint64_t(*condition.at(t) & 1) << (t - first);
    }
    asked &= (uint64_t(1) << (end - first)) - 1; // threads that never were
    if (here && asked != here)
      emulator.complain(op, "some threads of warp " + Twine(first / warpSize) +
                                " do not take part in the ballot");
    for (int64_t t = first; t < end; ++t)
      if (mask[t])
        *result.at(t) = votes;
  }
}

//===----------------------------------------------------------------------===//
// Tensor cores, and copies beside the threads
//===----------------------------------------------------------------------===//

void BlockEmulator::forWarps(Operation *op, const Mask &mask,
                             llvm::function_ref<void(int64_t)> body) {
  for (int64_t first = 0; first < threads; first += warpSize) {
    auto all = ArrayRef<char>(mask).slice(first, std::min(warpSize, threads - first));
    if (int64_t(llvm::count(all, 1)) == warpSize)
      body(first);
    else if (llvm::is_contained(all, 1))
      emulator.complain(op, "some threads of warp " + Twine(first / warpSize) +
                                " do not take part");
  }
}

void BlockEmulator::multiply(NVVM::MmaOp op, const Mask &mask) {
  NVVM::MMAShapeAttr shape = op.getShape();
  if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 ||
      op.getLayoutA() != NVVM::MMALayout::row || op.getLayoutB() != NVVM::MMALayout::col)
    return emulator.complain(op, "the emulator knows mma.m16n8k16.row.col only");
  Type element = op.getMultiplicandAPtxType() == NVVM::MMATypes::f16
                     ? Type(Float16Type::get(op.getContext()))
                     : Type(BFloat16Type::get(op.getContext()));
  Type sum = Float32Type::get(op.getContext());
  // Elements of registers, or of vectors of two.
  auto of = [&](OperandRange registers, int64_t first, int i) {
    Lanes &lanes = get(registers[i / 2]);
    uint64_t *value = lanes.at(first);
    return toDouble(lanes.width == 2 ? value[i % 2] : value[0] >> 16 * (i % 2) & 0xFFFF, element);
  };
  Lanes &result = get(op.getRes());
  forWarps(op, mask, [&](int64_t first) {
    fragments::multiply([&](int lane, int i) { return of(op.getOperandA(), first + lane, i); },
                        [&](int lane, int i) { return of(op.getOperandB(), first + lane, i); },
                        [&](int lane, int i) {
                          return toDouble(*get(op.getOperandC()[i]).at(first + lane), sum);
                        },
                        [&](int lane, int i, float x) {
                          result.at(first + lane)[i] = llvm::bit_cast<uint32_t>(x);
                        });
  });
}

void BlockEmulator::loadMatrices(NVVM::LdMatrixOp op, const Mask &mask) {
  Lanes &address = get(op.getPtr()), &result = get(op.getRes());
  bool isTransposed = op.getLayout() == NVVM::MMALayout::col;
  if (op.getNum() != 4 || op.getEltType() != NVVM::LdStMatrixEltType::B16)
    return emulator.complain(op, "the emulator knows ldmatrix.x4.b16 only");
  forWarps(op, mask, [&](int64_t first) {
    uint64_t rows[warpSize][8] = {};
    for (int64_t lane = 0; lane < warpSize; ++lane)
      access(op, first + lane, *address.at(first + lane), rows[lane], 8, 2, 16, /*write=*/false);
    for (int matrix = 0; matrix < 4; ++matrix)
      for (int lane = 0; lane < warpSize; ++lane) {
        uint64_t &word = result.at(first + lane)[matrix] = 0;
        for (int i = 0; i < 2; ++i) {
          auto [row, column] = fragments::loaded(lane, i, isTransposed);
          word |= rows[8 * matrix + row][column] << 16 * i;
        }
      }
  });
}

void BlockEmulator::copy(NVVM::CpAsyncOp op, const Mask &mask) {
  if (op.getSize() != 16 || !op.getCpSize())
    return emulator.complain(op, "the emulator knows cp.async of 16 bytes with a size only");
  Lanes &to = get(op.getDst()), &from = get(op.getSrc()), &size = get(op.getCpSize());
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    Copy copy{op, *to.at(t), {}};
    if (*size.at(t) == 16)
      access(op, t, *from.at(t), copy.bytes, 2, 8, 16, /*write=*/false);
    else if (*size.at(t) != 0)
      return emulator.complain(op, "the emulator knows cp.async of 16 bytes or none only");
    // From now on until it is waited for it may be written.
    access(op, t, copy.to, copy.bytes, 2, 8, 16, /*write=*/true);
    setArriving(copy, true);
    copies[t].open.push_back(copy);
  }
}

void BlockEmulator::wait(NVVM::CpAsyncWaitGroupOp op, const Mask &mask) {
  for (int64_t t = 0; t < threads; ++t) {
    if (!mask[t])
      continue;
    auto &groups = copies[t].groups;
    for (; groups.size() > op.getN(); groups.erase(groups.begin()))
      for (Copy &copy : groups.front()) {
        setArriving(copy, false);
        access(copy.op, t, copy.to, copy.bytes, 2, 8, 16, /*write=*/true);
      }
  }
}

void BlockEmulator::setArriving(const Copy &copy, bool arriving) {
  Emulator::Memory &memory = emulator.memories[copy.to >> memoryShift];
  int64_t offset = int64_t(copy.to - startOf(copy.to >> memoryShift));
  if (offset >= 0 && offset + 16 <= memory.bytes)
    for (int64_t byte = 0; byte < 16; byte += 2)
      memory.cells[(offset + byte) / 2].arriving = arriving;
}

void BlockEmulator::run(Operation *op, const Mask &mask) {
  auto forEach = [&](auto body) {
    for (int64_t t = 0; t < threads; ++t)
      if (mask[t])
        body(t);
  };
  auto fill = [&](auto value) {
    Lanes &result = get(op->getResult(0));
    for (int64_t t = 0; t < threads; ++t)
      *result.at(t) = uint64_t(value(t));
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<scf::IfOp>([&](scf::IfOp op) { runIf(op, mask); })
      .Case<scf::ForOp>([&](scf::ForOp op) { runFor(op, mask); })
      .Case<scf::YieldOp, gpu::ReturnOp>([](auto) {})
      .Case<gpu::ThreadIdOp>([&](auto) { fill([](int64_t t) { return t; }); })
      .Case<gpu::BlockIdOp>([&](auto) { fill([&](int64_t) { return block; }); })
      .Case<gpu::ShuffleOp>([&](gpu::ShuffleOp op) { shuffle(op, mask); })
      .Case<NVVM::VoteSyncOp>([&](NVVM::VoteSyncOp vote) { ballot(vote, mask); })
      .Case<gpu::BarrierOp>([&](auto) {
        int64_t missing = llvm::count(mask, 0);
        if (missing)
          emulator.complain(op, Twine(missing) + " threads of block " + Twine(block) +
                                    " do not reach the barrier");
        ++blockEpoch;
      })
      .Case<NVVM::SyncWarpOp>([&](auto) {
        for (int64_t warp = 0; warp < int64_t(warpEpochs.size()); ++warp) {
          auto all = ArrayRef<char>(mask).slice(warp * warpSize,
                                                std::min(warpSize, threads - warp * warpSize));
          if (llvm::is_contained(all, 1) && llvm::is_contained(all, 0))
            emulator.complain(op, "some threads of warp " + Twine(warp) +
                                      " do not reach the warp barrier");
          ++warpEpochs[warp];
        }
      })
      .Case<NVVM::MmaOp>([&](NVVM::MmaOp op) { multiply(op, mask); })
      .Case<NVVM::LdMatrixOp>([&](NVVM::LdMatrixOp op) { loadMatrices(op, mask); })
      .Case<NVVM::CpAsyncOp>([&](NVVM::CpAsyncOp op) { copy(op, mask); })
      .Case<NVVM::CpAsyncWaitGroupOp>([&](NVVM::CpAsyncWaitGroupOp op) { wait(op, mask); })
      .Case<NVVM::CpAsyncCommitGroupOp>([&](auto) {
        forEach([&](int64_t t) {
          copies[t].groups.push_back(std::move(copies[t].open));
          copies[t].open.clear();
        });
      })
      .Case<LLVM::AddressOfOp>([&](LLVM::AddressOfOp address) {
        uint64_t memory = address.getGlobalName() == sharedName
                              ? asked
                              : emulator.constants.lookup(address.getGlobalName());
        fill([&](int64_t) { return startOf(memory); });
      })
      .Case<LLVM::GEPOp>([&](LLVM::GEPOp gep) {
        Lanes &base = get(gep.getBase());
        int64_t bytes = bytesOf(gep.getElemType());
        Lanes *index = gep.getDynamicIndices().empty() ? nullptr : &get(gep.getDynamicIndices()[0]);
        int64_t fixed = index ? 0 : gep.getRawConstantIndices()[0];
        fill([&](int64_t t) {
          return *base.at(t) + uint64_t((index ? int64_t(*index->at(t)) : fixed) * bytes);
        });
      })
      .Case<LLVM::ICmpOp>([&](LLVM::ICmpOp compare) {
        Lanes &x = get(compare.getLhs()), &y = get(compare.getRhs());
        bool equal = compare.getPredicate() == LLVM::ICmpPredicate::eq;
        fill([&](int64_t t) { return (*x.at(t) == *y.at(t)) == equal; });
      })
      .Case<LLVM::LoadOp>([&](LLVM::LoadOp load) {
        Lanes &address = get(load.getAddr()), &result = get(load.getResult());
        forEach([&](int64_t t) {
          access(op, t, *address.at(t), result.at(t), result.width, bytesOf(load.getType()),
                 load.getAlignment().value_or(1), /*write=*/false);
        });
      })
      .Case<LLVM::StoreOp>([&](LLVM::StoreOp store) {
        Lanes &address = get(store.getAddr()), &value = get(store.getValue());
        forEach([&](int64_t t) {
          access(op, t, *address.at(t), value.at(t), value.width,
                 bytesOf(store.getValue().getType()), store.getAlignment().value_or(1),
                 /*write=*/true);
        });
      })
      .Case<memref::LoadOp>([&](memref::LoadOp load) {
        Lanes &base = get(load.getMemRef()), &index = get(load.getIndices()[0]);
        Lanes &result = get(load.getResult());
        unsigned bytes = bytesOf(load.getType());
        forEach([&](int64_t t) {
          access(op, t, *base.at(t) + *index.at(t) * bytes, result.at(t), 1, bytes, bytes, false);
        });
      })
      .Case<memref::StoreOp>([&](memref::StoreOp store) {
        Lanes &base = get(store.getMemRef()), &index = get(store.getIndices()[0]);
        Lanes &value = get(store.getValue());
        unsigned bytes = bytesOf(store.getValue().getType());
        forEach([&](int64_t t) {
          access(op, t, *base.at(t) + *index.at(t) * bytes, value.at(t), 1, bytes, bytes, true);
        });
      })
      .Default([&](Operation *op) {
        SmallVector<const Lanes *> operands;
        SmallVector<Lanes *> results;
        for (Value operand : op->getOperands())
          operands.push_back(&get(operand));
        for (Value result : op->getResults())
          results.push_back(&get(result));
        if (!compute(op, operands, results, threads))
          emulator.complain(op, "the emulator does not know this op");
      });
}

void BlockEmulator::run(Block &block, const Mask &mask) {
  for (Operation &op : block)
    run(&op, mask);
}

void BlockEmulator::run(ArrayRef<unsigned> arguments, ArrayRef<int64_t> numbers) {
  auto set = [&](Value value, uint64_t number) {
    Lanes &lanes = get(value);
    for (int64_t t = 0; t < threads; ++t)
      *lanes.at(t) = number;
  };
  auto bind = [&](Value value, uint64_t memory) { set(value, startOf(memory)); };
  for (auto [argument, memory] : llvm::zip(function.getArguments(), arguments))
    bind(argument, memory);
  for (auto [argument, number] :
       llvm::zip(function.getArguments().drop_front(arguments.size()), numbers))
    set(argument, uint64_t(number));
  // Shared memory is this block's alone.
  size_t outside = emulator.memories.size();
  std::deque<std::vector<char>> shared;
  for (auto [i, argument] : llvm::enumerate(function.getWorkgroupAttributions())) {
    auto type = cast<MemRefType>(argument.getType());
    shared.emplace_back(type.getNumElements() * bytesOf(type));
    unsigned memory = emulator.add(shared.back().data(), shared.back().size(), false);
    emulator.memories[memory].name = ("shared memory " + Twine(i)).str();
    bind(argument, memory);
  }
  if (auto bytes = function->getAttrOfType<IntegerAttr>("meshwright.shared_bytes")) {
    shared.emplace_back(bytes.getInt());
    asked = emulator.add(shared.back().data(), shared.back().size(), false);
    emulator.memories[asked].name = "shared memory";
  }
  run(function.getBody().front(), Mask(threads, 1));
  emulator.memories.resize(outside);
}

bool Emulator::launch(gpu::GPUFuncOp function, ArrayRef<unsigned> memory,
                      ArrayRef<int64_t> numbers) {
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    if (global.getSymName() == sharedName)
      continue; // each block has its own
    auto [it, fresh] = constants.try_emplace(global.getSymName());
    if (!fresh)
      continue;
    auto elements = cast<DenseElementsAttr>(global.getValueOrNull());
    owned.emplace_back(elements.getRawData().begin(), elements.getRawData().end());
    it->second = add(owned.back().data(), owned.back().size(), true);
  }
  for (Memory &memory : memories)
    for (Cell &cell : memory.cells)
      cell = Cell{{}, {}, cell.initialised};
  auto grid = *function.getKnownGridSize(), threads = *function.getKnownBlockSize();
  for (int64_t block = 0; block < grid[0] && complaints.empty(); ++block)
    BlockEmulator(*this, function, block, threads[0]).run(memory, numbers);
  return complaints.empty();
}
