//===- PtxTest.cpp - the machine that runs PTX -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PtxJudge.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <stdexcept>

using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {
/// One allocation.
struct Buffer : ptx::Memories {
  alignas(256) uint32_t words[64] = {};
  size_t bytes = sizeof(words);
  std::pair<uint64_t, uint64_t> around(uint64_t address) override {
    uint64_t begin = uint64_t(words);
    if (address < begin || address >= begin + bytes)
      throw std::runtime_error("not allocated");
    return {begin, begin + bytes};
  }
};

constexpr char head[] = R"(
.version 7.8
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 tail[];
.visible .entry kernel(
	.param .u64 .ptr .global .align 1 kernel_param_0
)
.maxntid 64, 1, 1
{
	.reg .pred 	%p<9>;
	.reg .b32 	%r<99>;
	.reg .b64 	%rd<99>;
	.shared .align 4 .b8 own[8];
	ld.param.b64 	%rd1, [kernel_param_0];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
)";

/// Runs a body after `head`, with a judge: %rd1 is the buffer, %r1 the thread, %rd3 its word.
void run(Buffer &buffer, const std::string &body, int threads = 64, int64_t shared = 256,
         int blocks = 1, ptx::Judge &&judge = {}) {
  ptx::Module module(std::string(head) + body + "\n\tret;\n}\n");
  ptx::run(module.entries().at("kernel"), blocks, threads, shared, {uint64_t(buffer.words)}, buffer,
           &judge);
}

auto fails(const std::string &body, const std::string &words, int threads = 64, int blocks = 1) {
  EXPECT_THAT([=] { Buffer buffer; run(buffer, body, threads, 256, blocks); },
              ThrowsMessage<std::runtime_error>(HasSubstr(words)));
}
} // namespace

TEST(Ptx, LanesOfALoopMeetAgain) {
  // Thread i adds 1 i times; the body lies before the test, as compilers place it.
  Buffer buffer;
  run(buffer, R"(
	mov.b32 	%r2, 0;
	bra.uni 	$test;
$body:
	add.s32 	%r2, %r2, 1;
$test:
	setp.lt.u32 	%p1, %r2, %r1;
	@%p1 bra 	$body;
	shfl.sync.bfly.b32 	%r3, %r2, 1, 31, -1;
	st.global.b32 	[%rd3], %r3;)");
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(buffer.words[i], i ^ 1);
}

TEST(Ptx, BothSidesOfABranchRun) {
  Buffer buffer;
  run(buffer, R"(
	and.b32 	%r2, %r1, 1;
	setp.eq.b32 	%p1, %r2, 0;
	@%p1 bra 	$even;
	mov.b32 	%r3, 10;
	bra.uni 	$end;
$even:
	mov.b32 	%r3, 20;
$end:
	add.s32 	%r3, %r3, %r1;
	st.global.b32 	[%rd3], %r3;)");
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(buffer.words[i], (i % 2 ? 10 : 20) + i);
}

TEST(Ptx, SharedMemoryGoesAcrossWarps) {
  Buffer buffer;
  run(buffer, R"(
	mov.b64 	%rd4, tail;
	add.s64 	%rd5, %rd4, %rd2;
	st.shared.b32 	[%rd5], %r1;
	bar.sync 	0;
	sub.s64 	%rd6, %rd4, %rd2;
	ld.shared.b32 	%r2, [%rd6+252];
	st.global.b32 	[%rd3], %r2;)");
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(buffer.words[i], 63 - i);
}

TEST(Ptx, ArithmeticRoundsAsTheTypesSay) {
  Buffer buffer;
  run(buffer, R"(
	mov.b32 	%r2, 0f3F803F80;
	mov.b32 	%r3, 0f33800000;
	fma.rn.f32 	%r4, %r2, %r2, %r3;
	cvt.rn.bf16x2.f32 	%r5, %r4, %r2;
	mov.b32 	%r6, 0fCF800000;
	cvt.rzi.s32.f32 	%r7, %r6;
	mul.hi.u32 	%r8, %r7, 6;
	shr.s32 	%r9, %r7, 40;
	st.global.v4.b32 	[%rd1], {%r5, %r7, %r8, %r9};)", 1);
  EXPECT_EQ(buffer.words[0], 0x3F803F80u); // Both halves are the nearest bf16, to even.
  EXPECT_EQ(buffer.words[1], 0x80000000u); // The end of the range.
  EXPECT_EQ(buffer.words[2], 3u);
  EXPECT_EQ(buffer.words[3], ~0u);
}

TEST(Ptx, NaNWinsInHalves) {
  Buffer buffer;
  run(buffer, R"(
	mov.b32 	%r2, 0x3F807FC0;
	mov.b32 	%r3, 0xC0003F80;
	max.NaN.bf16x2 	%r4, %r2, %r3;
	min.NaN.bf16x2 	%r5, %r2, %r3;
	st.global.v2.b32 	[%rd1], {%r4, %r5};)", 1);
  EXPECT_EQ(buffer.words[0], 0x3F807FFFu);
  EXPECT_EQ(buffer.words[1], 0xC0007FFFu);
}

TEST(Ptx, HalvesThatNobodyNeedsAreWrittenInTwoWays) {
  Buffer buffer;
  run(buffer, R"(
	mov.b64 	%rd4, 0x0000000700000005;
	mov.b64 	{_, %r2}, %rd4;
	{ .reg .b32 tmp; mov.b64 {tmp, %r3}, %rd4; }
	{ .reg .b32 tmp; mov.b64 {%r4, tmp}, %rd4; }
	add.s32 	%r2, %r2, %r3;
	add.s32 	%r2, %r2, %r4;
	st.global.b32 	[%rd3], %r2;)");
  EXPECT_EQ(buffer.words[0], 19u);
}

TEST(Ptx, CountsVotes) {
  Buffer buffer;
  run(buffer, R"(
	setp.lt.u32 	%p1, %r1, 40;
	vote.sync.ballot.b32 	%r2, %p1, -1;
	popc.b32 	%r3, %r2;
	st.global.b32 	[%rd3], %r3;)");
  EXPECT_EQ(buffer.words[0], 32u);
  EXPECT_EQ(buffer.words[31], 32u);
  EXPECT_EQ(buffer.words[32], 8u);
  EXPECT_EQ(buffer.words[63], 8u);
  fails(R"(
	setp.lt.u32 	%p1, %r1, 40;
	@!%p1 bra 	$end;
	vote.sync.ballot.b32 	%r2, %p1, -1;
$end:)", "some lanes miss a ballot");
}

/// Lane l writes elements 8 l to 8 l + 7, a row of matrix l / 8, and loads all four.
static std::string matrices(const std::string &transposed, const std::string &store) {
  std::string body = R"(
	mov.b64 	%rd4, tail;
	shl.b32 	%r2, %r1, 4;
	cvt.u64.u32 	%rd5, %r2;
	add.s64 	%rd5, %rd4, %rd5;
	shl.b32 	%r2, %r1, 3;
	mov.b32 	%r9, 65537;
	mul.lo.s32 	%r3, %r2, %r9;
	add.s32 	%r3, %r3, 65536;
	add.s32 	%r4, %r3, 131074;
	add.s32 	%r5, %r4, 131074;
	add.s32 	%r6, %r5, 131074;
	st.shared.v4.b32 	[%rd5], {%r3, %r4, %r5, %r6};
	bar.warp.sync 	-1;
)";
  return body + "\tldmatrix.sync.aligned.m8n8.x4" + transposed +
         ".shared.b16 {%r10, %r11, %r12, %r13}, [%rd5];\n" + store;
}

TEST(Ptx, MatricesAreLoadedByFragments) {
  const char *two = "\tst.global.b32 \t[%rd3], %r10;\n\tst.global.b32 \t[%rd3+128], %r13;";
  Buffer buffer;
  run(buffer, matrices("", two), 32, 512);
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t element = l / 4 * 8 + l % 4 * 2;
    EXPECT_EQ(buffer.words[l], element | (element + 1) << 16);
    EXPECT_EQ(buffer.words[32 + l], (element + 192) | (element + 193) << 16);
  }
  run(buffer, matrices(".trans", two), 32, 512);
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t element = l % 4 * 2 * 8 + l / 4;
    EXPECT_EQ(buffer.words[l], element | (element + 8) << 16);
    EXPECT_EQ(buffer.words[32 + l], (element + 192) | (element + 200) << 16);
  }
}

TEST(Ptx, MatricesAreMultiplied) {
  // A is the identity, B[k][n] = k + 16 n, C is 1000: lane 4 g + t has rows g and g + 8 of
  // the sum, columns 2 t and 2 t + 1.
  const char *body = R"(
	shr.u32 	%r2, %r1, 2;
	and.b32 	%r3, %r1, 3;
	shl.b32 	%r4, %r3, 1;
	add.s32 	%r5, %r4, 1;
	setp.eq.b32 	%p1, %r2, %r4;
	setp.eq.b32 	%p2, %r2, %r5;
	selp.b32 	%r6, 16256, 0, %p1;
	selp.b32 	%r6, 1065353216, %r6, %p2;
	mov.b32 	%r7, 0;
	shl.b32 	%r8, %r2, 4;
	add.s32 	%r10, %r8, %r4;
	add.s32 	%r11, %r10, 1;
	add.s32 	%r12, %r10, 8;
	add.s32 	%r13, %r10, 9;
	cvt.rn.f32.u32 	%r10, %r10;
	cvt.rn.f32.u32 	%r11, %r11;
	cvt.rn.f32.u32 	%r12, %r12;
	cvt.rn.f32.u32 	%r13, %r13;
	cvt.rn.bf16x2.f32 	%r14, %r11, %r10;
	cvt.rn.bf16x2.f32 	%r15, %r13, %r12;
	mov.b32 	%r16, 0f447A0000;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
		{%r20, %r21, %r22, %r23},
		{%r6, %r7, %r7, %r6},
		{%r14, %r15},
		{%r16, %r16, %r16, %r16};
	cvt.rzi.u32.f32 	%r20, %r20;
	cvt.rzi.u32.f32 	%r23, %r23;
	st.global.b32 	[%rd3], %r20;
	st.global.b32 	[%rd3+128], %r23;)";
  Buffer buffer;
  run(buffer, body, 32);
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t g = l / 4, t = l % 4;
    EXPECT_EQ(buffer.words[l], 1000 + g + 16 * (2 * t));
    EXPECT_EQ(buffer.words[32 + l], 1000 + (g + 8) + 16 * (2 * t + 1));
  }
}

/// Lanes 0 to 7 copy 16 bytes each from the buffer's first half; `wait` follows, then each
/// reads its word.
static std::string copies(const std::string &size, const std::string &wait) {
  return R"(
	mov.b64 	%rd4, tail;
	mul.wide.u32 	%rd5, %r1, 16;
	add.s64 	%rd6, %rd4, %rd5;
	add.s64 	%rd7, %rd1, %rd5;
	setp.gt.u32 	%p1, %r1, 7;
	@%p1 bra 	$rest;
	mov.b32 	%r2, )" +
         size + R"(;
	cp.async.cg.shared.global [%rd6], [%rd7], 16, %r2;
$rest:
	cp.async.commit_group;
)" + wait + R"(
	add.s64 	%rd8, %rd4, %rd2;
	ld.shared.b32 	%r3, [%rd8];
	st.global.b32 	[%rd3+128], %r3;)";
}

TEST(Ptx, CopiesArriveWhenTheyAreWaitedFor) {
  for (bool isThere : {true, false}) {
    Buffer buffer;
    for (uint32_t i = 0; i < 64; ++i)
      buffer.words[i] = i + 1;
    run(buffer, copies(isThere ? "16" : "0", "\tcp.async.wait_group \t0;\n\tbar.sync \t0;"), 32);
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(buffer.words[32 + i], isThere ? i + 1 : 0);
  }
  fails(copies("16", ""), "byte 16 of shared memory has a copy on its way", 32);
  // The latest group may still be on its way.
  fails(copies("16", "\tcp.async.wait_group \t1;"), "a copy on its way", 32);
  fails(copies("7", ""), "cp.async of 7 of 16 bytes is not known", 32);
  // They have arrived for the thread that waited.
  fails(copies("16", "\tcp.async.wait_group \t0;"),
        "thread 1 of block 0 reads what thread 0 of block 0 wrote, at byte 20 of shared", 32);
  fails(copies("16", "\tbar.sync \t0;\n\tcp.async.wait_group \t0;"), "race", 32);
  // Others may still read what a copy would write.
  std::string again = "\n\tcp.async.cg.shared.global [%rd4], [%rd1], 16, 16;";
  std::string wait = "\tcp.async.wait_group \t0;\n\tbar.sync \t0;";
  fails(copies("16", wait) + again, "writes what thread 1 of block 0 read", 32);
}

TEST(Ptx, SaysWhatIsWrong) {
  fails("\tld.global.b32 \t%r2, [%rd3+4];", "line 19 of the PTX: not allocated");
  fails("\tld.global.b32 \t%r2, [%rd2];", "not allocated");
  fails("\tld.global.b32 \t%r2, [%rd3+-4];", "not allocated");
  Buffer shorter;
  shorter.bytes = 252;
  EXPECT_THAT([&] { run(shorter, "\tld.global.b64 \t%rd4, [%rd1+248];"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("beyond its allocation")));
  fails("\tld.global.v4.b32 \t{%r2, %r3, %r4, %r5}, [%rd3];", "16 bytes at");
  fails("\tmov.b64 \t%rd4, tail;\n\tst.shared.b32 \t[%rd4+256], %r1;", "outside of the 272 of shared");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n\tbar.sync \t0;\n$skip:",
        "some lanes miss a barrier");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n"
        "\tshfl.sync.bfly.b32 \t%r2, %r1, 1, 31, -1;\n$skip:",
        "some lanes miss a shuffle");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n"
        "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%r2, %r3, %r4, %r5}, [%rd4];\n$skip:",
        "some lanes miss an ldmatrix");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n"
        "\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r2, %r3, %r4, %r5}, "
        "{%r2, %r3, %r4, %r5}, {%r2, %r3}, {%r2, %r3, %r4, %r5};\n$skip:",
        "some lanes miss an mma");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n\tbar.warp.sync \t-1;\n$skip:",
        "some lanes miss a barrier of the warp");
  fails("\tsetp.lt.u32 \t%p1, %r1, 32;\n\t@%p1 bra \t$skip;\n\tbar.sync \t0;\n$skip:",
        "some warps end where others wait at a barrier");
  fails("\tfrobnicate.b32 \t%r2, %r1;", "line 19 of the PTX: 'frobnicate.b32' is not known");
  fails("\tadd.s32 \t%r2, %rd1, 1;", "%rd1 has not the width");
  fails("\tbra \t$nowhere;", "no label $nowhere in kernel");
}

//===----------------------------------------------------------------------===//
// What the judge adds
//===----------------------------------------------------------------------===//

/// Each thread's word of shared memory is at %rd5, its neighbour's at %rd6, that of thread 63 - t
/// at %rd7.
static std::string words(const std::string &then) {
  return R"(
	mov.b64 	%rd4, tail;
	add.s64 	%rd5, %rd4, %rd2;
	xor.b64 	%rd6, %rd2, 4;
	add.s64 	%rd6, %rd4, %rd6;
	xor.b64 	%rd7, %rd2, 252;
	add.s64 	%rd7, %rd4, %rd7;
)" + then;
}
static const std::string storeMine = "\tst.shared.b32 \t[%rd5], %r1;\n",
                         loadMine = "\tld.shared.b32 \t%r2, [%rd5];\n",
                         loadNext = "\tld.shared.b32 \t%r2, [%rd6];\n",
                         loadFar = "\tld.shared.b32 \t%r2, [%rd7];\n",
                         barrier = "\tbar.sync \t0;\n",
                         warpBarrier = "\tbar.warp.sync \t-1;\n",
                         shuffle = "\tshfl.sync.bfly.b32 \t%r3, %r1, 1, 31, -1;\n";

TEST(PtxJudge, SharedMemoryIsReadBehindABarrier) {
  const char *race = "race: thread 0 of block 0 reads what thread 1 of block 0 wrote, at byte 20";
  fails(words(storeMine + loadNext), race);
  fails(words(storeMine + shuffle + loadNext), race); // Which orders no memory.
  Buffer buffer;
  run(buffer, words(storeMine + barrier + loadNext + loadFar));
  run(buffer, words(storeMine + warpBarrier + loadNext));
  // A warp's barrier is no other warp's.
  fails(words(storeMine + barrier + storeMine + warpBarrier + loadFar),
        "race: thread 32 of block 0 writes what thread 31 of block 0 read");
}

TEST(PtxJudge, SharedMemoryIsWrittenBehindItsReaders) {
  const std::string filled = storeMine + barrier;
  fails(words(filled + loadNext + storeMine), "writes what thread 1 of block 0 read");
  fails(words(filled + loadNext + shuffle + storeMine), "writes what thread 1 of block 0 read");
  // The thread itself read last, all others of its warp before.
  fails(words(filled + loadNext + loadMine + storeMine), "writes what thread 1 of block 0 read");
  // Warp 0 read first, which the barrier of warp 1 and its own readers do not undo.
  const std::string both = filled + "\tsetp.gt.u32 \t%p1, %r1, 31;\n\t@!%p1" + loadFar + loadNext;
  const std::string storeUpper = "\t@%p1 st.shared.b32 \t[%rd5], %r1;";
  fails(words(both + warpBarrier + storeUpper),
        "thread 32 of block 0 writes what thread 31 of block 0 read");
  Buffer buffer;
  run(buffer, words(both + barrier + storeUpper));
  run(buffer, words(filled + loadNext + loadMine + warpBarrier + storeMine));
  run(buffer, words(filled + loadNext + warpBarrier + loadMine + storeMine));
  run(buffer, words(filled + loadMine + storeMine));
}

TEST(PtxJudge, ThreadsWriteTheirOwn) {
  std::string all = "\tmov.b64 \t%rd4, tail;\n\tst.shared.b32 \t[%rd4], %r1;\n";
  fails(all, "race: thread 1 of block 0 writes what thread 0 of block 0 wrote, at byte 16", 2);
  Buffer buffer;
  run(buffer, all, 1, 256, 2); // Each block has a shared memory of its own.
}

/// What follows is the second block's.
static const std::string isSecond =
    "\tmov.u32 \t%r3, %ctaid.x;\n\tsetp.eq.b32 \t%p1, %r3, 1;\n\t@%p1";

TEST(PtxJudge, BlocksWaitForNobody) {
  std::string write = "\tst.global.b32 \t[%rd3], %r1;", read = "\tld.global.b32 \t%r2, [%rd3];\n";
  Buffer buffer;
  run(buffer, write);
  fails(write, "race: thread 0 of block 1 writes what thread 0 of block 0 wrote", 64, 2);
  run(buffer, read, 64, 256, 2);
  // Both blocks read the first word, which the second then writes.
  std::string first = "\tld.global.b32 \t%r2, [%rd1];\n" + barrier;
  fails(first + isSecond + write, "thread 0 of block 1 writes what thread 31 of block 0 read", 64,
        2);
}

TEST(PtxJudge, LaunchesWaitForEachOther) {
  Buffer buffer;
  ptx::Judge judge;
  auto launch = [&](const std::string &body) { run(buffer, body, 64, 256, 2, std::move(judge)); };
  std::string writeIt = "\tst.global.b32 \t[%rd3], %r1;";
  std::string readFirst = "\tld.global.b32 \t%r2, [%rd1];\n";
  launch(isSecond + writeIt);
  launch(readFirst);
  launch(isSecond + writeIt);
  launch(readFirst);
  // Who read before is no reader of this launch, and stands for none.
  std::string isLast = "\n\tsetp.gt.u32 \t%p2, %r1, 62;\n\tand.pred \t%p1, %p1, %p2;\n\t@%p1";
  EXPECT_THAT([&] { launch(isSecond + readFirst + isLast + "\tst.global.b32 \t[%rd1], %r1;"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("thread 63 of block 1 writes what")));
}

TEST(PtxJudge, MemoryIsWrittenBeforeItIsRead) {
  fails(words(loadMine), "thread 0 of block 0 reads memory that nobody wrote, at byte 16 of shared");
  fails("\tst.shared.b16 \t[own], %r1;\n\tld.shared.b32 \t%r2, [own];", "nobody wrote, at byte 2", 1);
  Buffer buffer;
  auto unwritten = [&](const std::string &body) {
    ptx::Judge judge;
    judge.addUnwritten(uint64_t(buffer.words), 128);
    run(buffer, body, 32, 256, 1, std::move(judge));
  };
  std::string read = "\tld.global.b32 \t%r2, [%rd3];";
  EXPECT_THAT([&] { unwritten(read); },
              ThrowsMessage<std::runtime_error>(HasSubstr("nobody wrote")));
  unwritten("\tst.global.b32 \t[%rd3], %r1;\n" + read);
  unwritten("\tld.global.b32 \t%r2, [%rd3+128];");
}
