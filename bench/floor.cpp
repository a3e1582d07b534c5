//===- floor.cpp - the least a training step can take -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Times the matrix products of one training step alone, through the library
// that executables use, and a copy of as many bytes as one pass over the
// optimizer's state moves. Prints one JSON object: step_ms is their sum.
//
//   bench_floor THREADS PARAMETERS f32|bf16 ROWSxOUTxINxCALLS...
//
// ROWS tokens go through CALLS matrices of [OUT, IN], for each list of sizes. With bf16 weights and
// activations are bf16, and gradients of weights f32.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Threads.h"
#include "common/plan/ElementType.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <vector>

struct MwContext {
  int threads;
};
int mw_context_threads(const MwContext *context) { return context->threads; }

static MwContext context{2};

/// The median of `rounds` calls after one that warms up; if that one takes a second, of two fewer.
template <typename Fn> static double medianSeconds(int rounds, Fn fn) {
  std::vector<double> times;
  auto first = std::chrono::steady_clock::now();
  fn();
  if (std::chrono::steady_clock::now() - first > std::chrono::seconds(1))
    rounds -= 2;
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    fn();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

namespace {
/// Memory in huge pages, as an executable's arena is, so that products walk both equally fast.
class Bytes {
public:
  explicit Bytes(size_t bytes, char value = 0) : count(bytes) {
    constexpr size_t huge = size_t(2) << 20;
    size_t whole = (bytes + huge - 1) / huge * huge;
    memory.reset(static_cast<char *>(std::aligned_alloc(huge, whole)));
    if (!memory)
      throw std::bad_alloc();
    madvise(memory.get(), whole, MADV_HUGEPAGE);
    std::memset(memory.get(), value, whole);
  }
  char *data() const { return memory.get(); }
  size_t size() const { return count; }

private:
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  size_t count;
  std::unique_ptr<char, Free> memory;
};

/// Matrices of f32 or bf16 whose elements are all equal.
class Matrices {
public:
  Matrices(int32_t type, int64_t count, float value)
      : width(type == MW_F32 ? 4 : 2), data(size_t(count) * width) {
    uint16_t narrow = meshwright::floatToBf16(value);
    for (size_t i = 0; i < data.size(); i += width)
      std::memcpy(data.data() + i, type == MW_F32 ? static_cast<void *>(&value) : &narrow, width);
  }
  char *at(int64_t element) { return data.data() + element * int64_t(width); }

private:
  size_t width;
  Bytes data;
};
} // namespace

/// C = alpha op(A) op(B) of matrices that begin at these addresses, by whichever function has their
/// types.
static void multiply(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha,
                     int32_t factorType, const char *a, const char *b, int32_t resultType, char *c,
                     std::unique_ptr<Bytes> &workspace) {
  int64_t lda = transA ? m : k, ldb = transB ? k : n;
  if (factorType == MW_F32)
    return mw_matmul_f32(
        &context, transA, transB, m, n, k, alpha, reinterpret_cast<const float *>(a), lda,
        reinterpret_cast<const float *>(b), ldb, 0, reinterpret_cast<float *>(c), n, 1, 0, 0, 0);
  auto needed = size_t(mw_matmul_mixed_workspace(m, n, k, 1));
  if (!workspace || workspace->size() < needed)
    workspace = std::make_unique<Bytes>(needed);
  mw_matmul_mixed(&context, transA, transB, m, n, k, alpha, factorType, a, lda, b, ldb, 0,
                  resultType, c, n, 1, 0, 0, 0, workspace->data());
}

int main(int argc, char **argv) {
  if (argc < 5 || (std::strcmp(argv[3], "f32") != 0 && std::strcmp(argv[3], "bf16") != 0)) {
    std::fprintf(stderr, "usage: bench_floor THREADS PARAMETERS f32|bf16 ROWSxOUTxINxCALLS...\n");
    return 1;
  }
  const int32_t type = std::strcmp(argv[3], "f32") == 0 ? MW_F32 : MW_BF16;
  context.threads = std::atoi(argv[1]);
  const int64_t parameters = std::atoll(argv[2]);
  struct Linear {
    long long rows, out, in, calls;
  };
  std::vector<Linear> linears;
  for (int i = 4; i < argc; ++i) {
    Linear linear;
    if (std::sscanf(argv[i], "%lldx%lldx%lldx%lld", &linear.rows, &linear.out, &linear.in,
                    &linear.calls) != 4) {
      std::fprintf(stderr, "bench_floor: '%s' is not ROWSxOUTxINxCALLS\n", argv[i]);
      return 1;
    }
    linears.push_back(linear);
  }
  // Weights and gradients of all layers, so that each product finds its own in
  // memory, not in cache, as in a step.
  // The factors keep all values at 0.5.
  double matmuls = 0;
  std::unique_ptr<Bytes> workspace;
  for (const Linear &linear : linears) {
    const int64_t tokens = linear.rows, size = linear.out * linear.in, calls = linear.calls;
    Matrices weights(type, size * calls, 0.01f), gradients(MW_F32, size * calls, 0);
    Matrices x(type, tokens * linear.in, 0.5f), y(type, tokens * linear.out, 0.5f);
    matmuls += medianSeconds(5, [&] {
      for (int64_t i = 0; i < calls; ++i) {
        const char *w = weights.at(i * size);
        multiply(false, true, tokens, linear.out, linear.in, 100.0f / linear.in, type, x.at(0), w,
                 type, y.at(0), workspace);
        multiply(false, false, tokens, linear.in, linear.out, 100.0f / linear.out, type, y.at(0), w,
                 type, x.at(0), workspace);
        multiply(true, false, linear.out, linear.in, tokens, 1, type, y.at(0), x.at(0), MW_F32,
                 gradients.at(i * size), workspace);
      }
    });
  }
  // A copy moves two bytes for each it is asked to copy; the pass reads four
  // values and writes three per parameter, and the parameter in bf16 besides.
  const int64_t moved = parameters * (7 * 4 + (type == MW_BF16 ? 2 : 0));
  Bytes from(size_t(moved / 8), 1), to(size_t(moved / 8));
  struct Copy {
    char *from, *to;
  } copy{from.data(), to.data()};
  void *buffers[] = {&copy};
  double pass = medianSeconds(5, [&] {
    for (int part = 0; part < 4; ++part)
      mw_launch(
          &context,
          [](void *const *buffers, int64_t begin, int64_t end) {
            auto *copy = static_cast<Copy *>(buffers[0]);
            std::memcpy(copy->to + begin, copy->from + begin, end - begin);
          },
          buffers, from.size(), 64);
  });
  std::printf("{\"matmul_ms\": %.1f, \"optimizer_pass_ms\": %.1f, \"step_ms\": %.1f}\n",
              matmuls * 1e3, pass * 1e3, (matmuls + pass) * 1e3);
  return 0;
}
