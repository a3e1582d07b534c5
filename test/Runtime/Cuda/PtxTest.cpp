//===- PtxTest.cpp - the machine that runs PTX -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Ptx.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <stdexcept>

using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {
/// One allocation.
struct Buffer : ptx::Memories {
  alignas(256) uint32_t words[64] = {};
  std::pair<uint64_t, uint64_t> around(uint64_t address) override {
    uint64_t begin = uint64_t(words);
    if (address < begin || address >= begin + sizeof(words))
      throw std::runtime_error("not allocated");
    return {begin, begin + sizeof(words)};
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

/// Runs a body after `head`: %rd1 is the buffer, %r1 the thread, %rd3 its word.
void run(Buffer &buffer, const std::string &body, int threads = 64, int64_t shared = 256) {
  ptx::Module module(std::string(head) + body + "\n\tret;\n}\n");
  ptx::run(module.entries().at("kernel"), 1, threads, shared, {uint64_t(buffer.words)}, buffer);
}

auto fails(const std::string &body, const std::string &words, int threads = 64) {
  EXPECT_THAT([=] { Buffer buffer; run(buffer, body, threads); },
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
	st.global.v4.b32 	[%rd1], {%r5, %r7, %r8, %r9};)");
  EXPECT_EQ(buffer.words[0], 0x3F803F80u); // Both halves are the nearest bf16, to even.
  EXPECT_EQ(buffer.words[1], 0x80000000u); // The end of the range.
  EXPECT_EQ(buffer.words[2], 3u);
  EXPECT_EQ(buffer.words[3], ~0u);
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

TEST(Ptx, SaysWhatIsWrong) {
  fails("\tld.global.b32 \t%r2, [%rd3+4];", "line 19 of the PTX: not allocated");
  fails("\tld.global.b32 \t%r2, [%rd2];", "not allocated");
  fails("\tld.global.v4.b32 \t{%r2, %r3, %r4, %r5}, [%rd3];", "16 bytes at");
  fails("\tmov.b64 \t%rd4, tail;\n\tst.shared.b32 \t[%rd4+256], %r1;", "outside of the 272 of shared");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n\tbar.sync \t0;\n$skip:", "barrier");
  fails("\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$skip;\n"
        "\tshfl.sync.bfly.b32 \t%r2, %r1, 1, 31, -1;\n$skip:",
        "some lanes miss a shuffle");
  fails("\tfrobnicate.b32 \t%r2, %r1;", "line 19 of the PTX: 'frobnicate.b32' is not known");
  fails("\tadd.s32 \t%r2, %rd1, 1;", "%rd1 has not the width");
  fails("\tbra \t$nowhere;", "no label $nowhere in kernel");
}
