//===- AttentionGraphTest.cpp - what cuDNN's graphs compute, against f64 ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The graphs that executables build, computed operation by operation (FakeCudnnGraph.h):
// extents, strides, masks, scales and the parts of a call are right, whatever the speed.
// That the real cuDNN takes them is CudnnPlanTest.cpp's.
//
//===----------------------------------------------------------------------===//
#include "cuda/AttentionGraph.h"
#include "Kernels/Reference.h"
#include "common/monitor/Error.h"
#include "cuda/Libraries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace meshwright;
using namespace meshwright::cuda;
using namespace meshwright::test;

namespace {
/// Memory of the GPU's, which is the host's here.
class Memory {
public:
  explicit Memory(size_t bytes) : bytes(bytes) { MW_CUDA(cuMemAlloc, &address, bytes); }
  explicit Memory(const std::vector<char> &from) : Memory(from.size()) {
    memcpy(data(), from.data(), bytes);
  }
  Memory(const Memory &) = delete;
  ~Memory() { MW_CUDA(cuMemFree, address); }
  char *data() const { return reinterpret_cast<char *>(address); }
  std::vector<float> values(int32_t type) const { return decode(type, {data(), data() + bytes}); }

private:
  size_t bytes;
  CUdeviceptr address = 0;
};

struct Shape {
  const char *name;
  int64_t batch, queries, keys, heads, kvHeads, headDim, window;
  bool causal;
  int32_t type = MW_BF16;
};
void PrintTo(const Shape &shape, std::ostream *os) { *os << shape.name; }
const Shape shapes[] = {
    {"GPT2", 2, 64, 64, 3, 3, 64, 0, true},
    {"SharedKeys", 2, 48, 48, 8, 2, 64, 0, true},
    {"HeadsOf128", 1, 72, 72, 4, 1, 128, 0, true},
    {"Window", 2, 64, 64, 4, 2, 64, 16, true},
    {"WindowOfOne", 1, 16, 16, 2, 2, 8, 1, true},
    {"WindowBeyondTheSequence", 1, 24, 24, 2, 2, 16, 40, true},
    {"OddLength", 2, 37, 37, 6, 3, 96, 0, true},
    {"OddLengthAndWindow", 1, 41, 41, 3, 1, 24, 7, true},
    {"F16", 2, 40, 40, 4, 4, 80, 0, true, MW_F16},
    {"NoMask", 2, 32, 32, 4, 2, 64, 0, false},
    {"WindowOnBothSides", 2, 32, 32, 4, 2, 64, 5, false},
    {"OddLengthAndWindowOnBothSides", 1, 41, 41, 3, 1, 24, 7, false},
    {"WindowOfOneOnBothSides", 1, 16, 16, 2, 2, 8, 1, false},
    {"MoreKeysThanQueriesInAWindow", 2, 20, 44, 4, 4, 64, 9, false},
    {"MoreKeysThanQueries", 2, 20, 44, 4, 4, 64, 0, true},
    {"MoreQueriesThanKeys", 2, 44, 20, 4, 4, 64, 0, false},
};
// So many that the deterministic gradient is made in parts of the batch, and of the heads.
const Shape partedShapes[] = {
    {"ManySequences", 3, 2, 2, 32768, 16384, 8, 0, true},
    {"ManyHeads", 2, 3, 3, 81920, 20480, 8, 0, true},
};

MwAttention sizesOf(const Shape &shape) {
  MwAttention sizes = {};
  sizes.batch = shape.batch;
  sizes.queries = shape.queries;
  sizes.keys = shape.keys;
  sizes.heads = sizes.globalHeads = shape.heads;
  sizes.globalQueries = sizes.queries;
  sizes.kvHeads = shape.kvHeads;
  sizes.headDim = sizes.valueDim = shape.headDim;
  sizes.window = shape.window;
  sizes.causal = shape.causal;
  sizes.scale = 0.2f;
  sizes.elementType = shape.type;
  return sizes;
}

cudnn::Attention callOf(const MwAttention &sizes, bool backward, bool deterministic) {
  cudnn::Attention call;
  call.sizes = sizes;
  call.backward = backward;
  call.deterministic = deterministic;
  return call;
}

/// A call with the memory it needs and no more, the results and scratch memory NaNs.
class Call {
public:
  Call(const cudnn::Attention &call, int arch, CUstream stream)
      : graph(call, {arch, 1, stream}), stream(stream) {}
  void input(const Memory &memory) { operands.push_back(memory.data()); }
  Memory &output(size_t bytes) {
    results.push_back(std::make_unique<Memory>(std::vector<char>(bytes, char(0xFF))));
    input(*results.back());
    return *results.back();
  }
  void run() {
    output(size_t(graph.workspaceBytes()));
    graph.run(operands.data());
    MW_CUDA(cuStreamSynchronize, stream);
  }

  std::vector<void *> operands;

private:
  AttentionGraph graph;
  CUstream stream;
  std::vector<std::unique_ptr<Memory>> results;
};

/// Makes a GPU current, of which a stream is made.
CUstream openGpu() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  MW_CUDA(cuInit, 0);
  MW_CUDA(cuDevicePrimaryCtxRetain, &context, 0);
  MW_CUDA(cuCtxSetCurrent, context);
  MW_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

class AttentionGraphTest : public testing::TestWithParam<std::tuple<Shape, int>> {
protected:
  void SetUp() override {
    loadCudnn();
    stream = openGpu();
  }
  void TearDown() override { MW_CUDA(cuStreamDestroy, stream); }
  CUstream stream = nullptr;
};
} // namespace

TEST_P(AttentionGraphTest, ComputesAttentionAndItsGradient) {
  auto [shape, arch] = GetParam();
  std::mt19937 generator(7);
  MwAttention sizes = sizesOf(shape);
  if (shape.heads > 1000) {
    cudnn::Part part = cudnn::partOf(callOf(sizes, true, true), arch);
    ASSERT_LT(part.batch * part.heads, shape.batch * shape.heads);
  }
  AttentionCase test(sizes, generator);
  for (std::vector<float> *values : {&test.q, &test.k, &test.v, &test.dout})
    *values = decode(shape.type, encode(shape.type, *values));
  AttentionReference want(test);
  auto copied = [&](const std::vector<float> &values) { return encode(shape.type, values); };
  Memory q(copied(test.q)), k(copied(test.k)), v(copied(test.v)), dout(copied(test.dout));
  // Results are rounded, and so are weights before products.
  double narrow = shape.type == MW_BF16 ? 5e-3 : 7e-4;
  double wide = 1e-5;

  Call forward(callOf(sizes, false, false), arch, stream);
  for (const Memory *operand : {&q, &k, &v})
    forward.input(*operand);
  Memory &out = forward.output(2 * test.q.size()), &lse = forward.output(4 * want.lse.size());
  forward.run();
  EXPECT_LE(relativeError(out.values(shape.type), want.out), narrow);
  EXPECT_LE(relativeError(lse.values(MW_F32), want.lse), wide);

  for (bool deterministic : {true, false}) {
    Call backward(callOf(sizes, true, deterministic), arch, stream);
    for (const Memory *operand : {&dout, &q, &k, &v, &out, &lse})
      backward.input(*operand);
    Memory &dq = backward.output(2 * test.q.size());
    Memory &dk = backward.output(2 * test.k.size()), &dv = backward.output(2 * test.k.size());
    backward.run();
    EXPECT_LE(relativeError(dq.values(shape.type), want.dq), narrow) << deterministic;
    EXPECT_LE(relativeError(dk.values(shape.type), want.dk), narrow) << deterministic;
    EXPECT_LE(relativeError(dv.values(shape.type), want.dv), narrow) << deterministic;
  }
}

static std::string nameOf(const testing::TestParamInfo<std::tuple<Shape, int>> &info) {
  return text(std::get<0>(info.param).name, "_sm_", std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGraphTest,
                         testing::Combine(testing::ValuesIn(shapes), testing::Values(80, 90, 100)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Parts, AttentionGraphTest,
                         testing::Combine(testing::ValuesIn(partedShapes), testing::Values(90)),
                         nameOf);

// What a GPU would get wrong in silence, or end the process for.
TEST(AttentionGraphDeathTest, WrongOperandsAreNoticed) {
  loadCudnn();
  MwAttention sizes = sizesOf(shapes[0]);
  size_t bytes = size_t(2 * sizes.batch * sizes.queries * sizes.heads * sizes.headDim);
  CUstream stream = openGpu();
  Memory q(bytes), k(bytes), v(bytes), out(2 * bytes), lse(bytes), scratch(1 << 20);
  AttentionGraph graph(callOf(sizes, false, false), {90, 1, stream});
  auto run = [&](const char *result, const char *last) {
    void *operands[] = {q.data(),   k.data(),
                        v.data(),   const_cast<char *>(result),
                        lse.data(), const_cast<char *>(last)};
    graph.run(operands);
  };
  run(out.data(), scratch.data());
  run(out.data() + bytes, scratch.data());
  EXPECT_THROW(run(out.data() + 8, scratch.data()), Error);
  EXPECT_EXIT(run(out.data() + bytes + 16, scratch.data()), testing::ExitedWithCode(99),
              "reach 16 bytes beyond their allocation");
  EXPECT_EXIT(run(q.data(), scratch.data()), testing::ExitedWithCode(99),
              "tensor 104, which is written, overlaps tensor 101");
  EXPECT_EXIT(run(out.data(), out.data() + 32), testing::ExitedWithCode(99),
              "a tensor lies in the scratch memory");
  EXPECT_EXIT(run(out.data(), scratch.data() + (1 << 20)), testing::ExitedWithCode(99),
              "scratch memory of attention");
}
