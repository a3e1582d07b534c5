//===- floor.cpp - the least a training step can take -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Times the matrix products of one training step alone, through the library
// that executables use, and a copy of as many bytes as one pass over the
// optimizer's state moves. Prints one JSON object: step_ms is their sum.
//
//   bench_floor THREADS PARAMETERS ROWSxOUTxINxCALLS...
//
// ROWS tokens go through CALLS matrices of [OUT, IN], for each list of sizes.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Threads.h"
#include "meshwright/runtime/ABI.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct MwContext {
  int threads;
};
int mw_context_threads(const MwContext *context) { return context->threads; }

static MwContext context{2};

template <typename Fn> static double medianSeconds(int rounds, Fn fn) {
  std::vector<double> times;
  fn();
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    fn();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_floor THREADS PARAMETERS ROWSxOUTxINxCALLS...\n");
    return 1;
  }
  context.threads = std::atoi(argv[1]);
  const int64_t parameters = std::atoll(argv[2]);
  struct Linear {
    long long rows, out, in, calls;
  };
  std::vector<Linear> linears;
  for (int i = 3; i < argc; ++i) {
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
  for (const Linear &linear : linears) {
    const int64_t tokens = linear.rows, size = linear.out * linear.in, calls = linear.calls;
    std::vector<float> weights(size * calls, 0.01f), gradients(size * calls);
    std::vector<float> x(tokens * linear.in, 0.5f), y(tokens * linear.out, 0.5f);
    matmuls += medianSeconds(5, [&] {
      for (int64_t i = 0; i < calls; ++i) {
        float *w = weights.data() + i * size, *g = gradients.data() + i * size;
        mw_matmul_f32(&context, 0, 1, tokens, linear.out, linear.in, 100.0f / linear.in, x.data(),
                      linear.in, w, linear.in, 0, y.data(), linear.out, 1, 0, 0, 0);
        mw_matmul_f32(&context, 0, 0, tokens, linear.in, linear.out, 100.0f / linear.out, y.data(),
                      linear.out, w, linear.in, 0, x.data(), linear.in, 1, 0, 0, 0);
        mw_matmul_f32(&context, 1, 0, linear.out, linear.in, tokens, 1, y.data(), linear.out,
                      x.data(), linear.in, 0, g, linear.in, 1, 0, 0, 0);
      }
    });
  }
  // A copy moves two bytes for each it is asked to copy; the pass reads four
  // values and writes three per parameter.
  const int64_t moved = parameters * 7 * 4;
  std::vector<char> from(moved / 8, 1), to(moved / 8);
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
