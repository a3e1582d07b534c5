//===- EmulatorTest.cpp - the emulator finds what is broken -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Emulator.h"
#include "meshwright/Codegen.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

namespace {
/// Runs the body of a kernel with two blocks of 64 threads on 128 numbers, which
/// are its argument %x; its result are the complaints.
class EmulatorTest : public testing::Test {
protected:
  std::string run(StringRef body) {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, math::MathDialect>();
    registerTargets();
    exec::findTarget("cuda")->registerDialects(registry);
    MLIRContext context(registry);
    context.loadAllAvailableDialects();
    std::string text = R"(gpu.module @m {
      llvm.mlir.global external @meshwright$shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x f32>
      gpu.func @k(%x: !llvm.ptr<1>) workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
          kernel attributes {meshwright.shared_bytes = 2048 : i64, known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
        %t = gpu.thread_id x
        %b = gpu.block_id x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %c63 = arith.constant 63 : index
        %c64 = arith.constant 64 : index
        %one = arith.constant 1.0 : f32
        %base = arith.muli %b, %c64 : index
        %i = arith.addi %base, %t : index
        %i64 = arith.index_cast %i : index to i64
        %p = llvm.getelementptr %x[%i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %other = arith.xori %t, %c1 : index
        %far = arith.xori %t, %c63 : index
)" + body.str() + " gpu.return } }";
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return "does not parse";
    auto inner = *module->getOps<gpu::GPUModuleOp>().begin();
    for (int i = 0; i < 128; ++i)
      data[i] = float(i);
    Emulator emulator(inner);
    unsigned memory = emulator.add(data, sizeof data, true);
    emulator.launch(*inner.getOps<gpu::GPUFuncOp>().begin(), {memory});
    std::string all;
    for (const std::string &complaint : emulator.getComplaints())
      all += complaint + "\n";
    return all;
  }

  alignas(64) float data[128];
};
} // namespace

#define EXPECT_COMPLAINT(text, complaint)                                                          \
  EXPECT_NE(StringRef(text).find(complaint), StringRef::npos) << (text)

TEST_F(EmulatorTest, RunsWhatIsRight) {
  // Each block is reversed through shared memory.
  EXPECT_EQ(run(R"(
    %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %s[%far] : memref<64xf32, #gpu.address_space<workgroup>>
    llvm.store %w, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>)"),
            "");
  EXPECT_EQ(data[0], 63);
  EXPECT_EQ(data[64], 127);
}

TEST_F(EmulatorTest, LoopsAndShuffles) {
  // Each warp's sum, by butterflies, in a loop of two turns that add it twice.
  EXPECT_EQ(run(R"(
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %w32 = arith.constant 32 : i32
    %o1 = arith.constant 1 : i32
    %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %zero) -> f32 {
      %n, %ok = gpu.shuffle xor %v, %o1, %w32 : f32
      %pair = arith.addf %v, %n : f32
      %next = arith.addf %a, %pair : f32
      scf.yield %next : f32
    }
    llvm.store %sum, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>)"),
            "");
  EXPECT_EQ(data[0], 2);
  EXPECT_EQ(data[127], 2 * (126 + 127));
}

// Threads 0 to 15 of a block copy 16 bytes each.
static std::string copies(StringRef size) {
  return (R"(
    %four = arith.constant 4 : i64
    %sixteen = arith.constant 16 : index
    %size = arith.constant )" + size + R"( : i32
    %t64 = arith.index_cast %t : index to i64
    %b64 = arith.index_cast %base : index to i64
    %at = arith.muli %t64, %four : i64
    %from = arith.addi %at, %b64 : i64
    %asked = llvm.mlir.addressof @meshwright$shared : !llvm.ptr<3>
    %to = llvm.getelementptr %asked[%at] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %source = llvm.getelementptr %x[%from] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %few = arith.cmpi slt, %t, %sixteen : index
    scf.if %few {
      nvvm.cp.async.shared.global %to, %source, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
    }
    nvvm.cp.async.commit.group
    %mine = llvm.getelementptr %asked[%t64] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
)").str();
}

TEST_F(EmulatorTest, CopiesBesideTheThreads) {
  std::string wait = "nvvm.cp.async.wait.group 0\n";
  std::string use = R"(
    %w = llvm.load %mine {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %twice = arith.addf %w, %w : f32
    llvm.store %twice, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>)";
  EXPECT_EQ(run(copies("16") + wait + "gpu.barrier" + use), "");
  EXPECT_EQ(data[0], 0);
  EXPECT_EQ(data[127], 254);
  EXPECT_EQ(run(copies("0") + wait + "gpu.barrier" + use), "");
  EXPECT_EQ(data[127], 0);
  EXPECT_COMPLAINT(run(copies("16") + "gpu.barrier" + use), "where a copy arrives that was not waited for");
  EXPECT_COMPLAINT(run(copies("16") + "nvvm.cp.async.wait.group 1\ngpu.barrier" + use),
                   "where a copy arrives that was not waited for");
  EXPECT_COMPLAINT(run(copies("16") + wait + use), "race: thread 1 reads byte 4 of shared memory, which thread 0 wrote");
  // Into memory that others may be reading.
  EXPECT_COMPLAINT(run("memref.store %one, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>\n" + copies("16") + wait +
                       "gpu.barrier" + use +
                       R"(nvvm.cp.async.shared.global %to, %source, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32)"),
                   "writes byte");
}

TEST_F(EmulatorTest, MatricesTakeWholeWarps) {
  std::string load = R"(
    %m = nvvm.ldmatrix %asked {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
                               eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>)";
  std::string wait = "nvvm.cp.async.wait.group 0\ngpu.barrier\n";
  EXPECT_EQ(run(copies("16") + wait + load), "");
  EXPECT_COMPLAINT(run(copies("16") + wait + "scf.if %few {" + load + "}"),
                   "some threads of warp 0 do not take part");
}

TEST_F(EmulatorTest, RaceInSharedMemory) {
  std::string missing = run(R"(
    memref.store %one, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    %w = memref.load %s[%other] : memref<64xf32, #gpu.address_space<workgroup>>)");
  EXPECT_COMPLAINT(missing, "race: thread 0 reads byte 4 of shared memory 0, which thread 1 wrote");
}

TEST_F(EmulatorTest, WriteAfterReadRace) {
  EXPECT_COMPLAINT(run(R"(
    memref.store %one, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %s[%other] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %w, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>)"),
                   "writes byte 0 of shared memory 0, which thread 1 read");
}

TEST_F(EmulatorTest, WarpBarrierOrdersOneWarpOnly) {
  std::string body = R"(
    %all = arith.constant -1 : i32
    memref.store %one, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    nvvm.bar.warp.sync %all : i32
    %w = memref.load %s[)";
  EXPECT_EQ(run(body + "%other] : memref<64xf32, #gpu.address_space<workgroup>>"), "");
  EXPECT_COMPLAINT(run(body + "%far] : memref<64xf32, #gpu.address_space<workgroup>>"), "race");
}

TEST_F(EmulatorTest, RaceBetweenBlocks) {
  EXPECT_COMPLAINT(run(R"(
    %l = arith.index_cast %t : index to i64
    %q = llvm.getelementptr %x[%l] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %one, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>)"),
                   "race: thread 64 writes byte 0 of memory 0, which thread 0 wrote");
}

TEST_F(EmulatorTest, UninitialisedSharedMemory) {
  EXPECT_COMPLAINT(run(R"(
    %w = memref.load %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>)"),
                   "which nobody wrote");
}

TEST_F(EmulatorTest, OutOfBounds) {
  std::string behind = run(R"(
    %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<1> -> f32)");
  EXPECT_COMPLAINT(behind, "thread 127 accesses bytes 512 to 516 of memory 0, which has 512");
  EXPECT_COMPLAINT(run(R"(
    %q = llvm.getelementptr %p[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<1> -> f32)"),
                   "accesses bytes -4 to 0");
}

TEST_F(EmulatorTest, Misaligned) {
  EXPECT_COMPLAINT(run(R"(
    %few = arith.cmpi ult, %t, %c16 : index
    scf.if %few {
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    })"),
                   "byte 4 of memory 0, not aligned to 16");
}

TEST_F(EmulatorTest, DivergentBarrier) {
  EXPECT_COMPLAINT(run(R"(
    %few = arith.cmpi ult, %t, %c16 : index
    scf.if %few { gpu.barrier })"),
                   "48 threads of block 0 do not reach the barrier");
}

TEST_F(EmulatorTest, DivergentWarpBarrierAndShuffle) {
  std::string begin = R"(
    %all = arith.constant -1 : i32
    %w32 = arith.constant 32 : i32
    %few = arith.cmpi ult, %t, %c16 : index
    scf.if %few { )";
  EXPECT_COMPLAINT(run(begin + "nvvm.bar.warp.sync %all : i32 }"), "do not reach the warp barrier");
  EXPECT_COMPLAINT(run(begin + R"(
    %o = arith.constant 16 : i32
    %n, %ok = gpu.shuffle xor %one, %o, %w32 : f32 })"),
                   "does not take part in the shuffle");
  EXPECT_COMPLAINT(run(begin + "%v = nvvm.vote.sync ballot %all, %few -> i32 }"),
                   "do not take part in the ballot");
}

TEST_F(EmulatorTest, Ballots) {
  // Every thread stores how many of its warp are among the block's first sixteen.
  ASSERT_EQ(run(R"(
    %all = arith.constant -1 : i32
    %few = arith.cmpi ult, %t, %c16 : index
    %votes = nvvm.vote.sync ballot %all, %few -> i32
    %count = math.ctpop %votes : i32
    %sum = arith.uitofp %count : i32 to f32
    llvm.store %sum, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>)"),
            "");
  EXPECT_EQ(data[0], 16);
  EXPECT_EQ(data[31], 16);
  EXPECT_EQ(data[32], 0);
}
