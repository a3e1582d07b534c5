//===- cpu_kernels.cpp - speed of the CPU kernels -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Prints one JSON object: GFLOP/s of the matrix products of GPT-2 124M training
// in all transposition forms, and milliseconds of attention, of its variations beside those
// of plain attention, and of ranks that divide queries. Medians. Then products of bf16 and f16
// by each instruction set of this machine, and attention in bf16, beside f32: the least
// milliseconds of processors of each.
//
//   bench_cpu_kernels [THREADS [SECONDS-PER-ROW [narrow|variations|balance]]]
//
// With `narrow` only these; with `variations` only those of attention, with `balance` only ranks.
//
//===----------------------------------------------------------------------===//
#include "MatmulMixed.h"
#include "common/launch/Threads.h"
#include "common/plan/ElementType.h"
#include "meshwright/runtime/AttentionMask.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

struct MwContext {
  int threads;
};
int mw_context_threads(const MwContext *context) { return context->threads; }

static MwContext context{2};
static double secondsPerRow = 0.5;
static const char *separator = "";

/// Median seconds of a call.
static double measure(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> times;
  auto start = Clock::now();
  do {
    auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  } while (times.size() < 5 ||
           std::chrono::duration<double>(Clock::now() - start).count() < secondsPerRow);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

static std::vector<float> randomValues(int64_t count) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(generator);
  return values;
}

/// Rounded, in the memory of as many.
static std::vector<uint16_t> narrowed(int32_t type, const std::vector<float> &values) {
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(),
                 type == MW_BF16 ? meshwright::floatToBf16 : meshwright::floatToF16);
  return bits;
}

static void matmul(int transA, int transB, int64_t m, int64_t n, int64_t k, float beta) {
  std::vector<float> a = randomValues(m * k), b = randomValues(k * n), c(m * n);
  double seconds = measure([&] {
    mw_matmul_f32(&context, transA, transB, m, n, k, 1.0f, a.data(), transA ? m : k, b.data(),
                  transB ? k : n, beta, c.data(), n, 1, 0, 0, 0);
  });
  std::printf("%s\n  {\"op\": \"matmul\", \"form\": \"%c%c\", \"m\": %ld, \"n\": %ld, \"k\": %ld, "
              "\"beta\": %g, \"ms\": %.4f, \"gflops\": %.1f}",
              separator, transA ? 't' : 'n', transB ? 't' : 'n', long(m), long(n), long(k),
              double(beta), seconds * 1e3, 2e-9 * double(m) * double(n) * double(k) / seconds);
  separator = ",";
}

/// Attention with as many key heads as heads.
static MwAttention causal(int64_t batch, int64_t sequence, int64_t heads, int64_t headDim) {
  MwAttention shape{};
  shape.batch = batch;
  shape.queries = shape.keys = sequence;
  shape.heads = shape.kvHeads = shape.globalHeads = heads;
  shape.globalQueries = shape.queries;
  shape.headDim = shape.valueDim = headDim;
  shape.scale = 1 / std::sqrt(float(headDim));
  shape.causal = 1;
  return shape;
}

namespace {
/// One call's tensors.
class AttentionCall {
public:
  explicit AttentionCall(const MwAttention &sizes)
      : shape(sizes), ids(shape.batch), rows(shape.batch * shape.queries * shape.heads),
        keyRows(shape.batch * shape.keys * shape.kvHeads), q(randomValues(rows * shape.headDim)),
        k(randomValues(keyRows * shape.headDim)), v(randomValues(keyRows * shape.valueDim)),
        dout(randomValues(rows * shape.valueDim)), out(dout.size()), dq(q.size()), dk(k.size()),
        dv(v.size()), lse(rows), dsinks(shape.heads),
        workspace(std::max(mw_attention_forward_workspace(&shape),
                           mw_attention_backward_workspace(&shape))) {
    shape.key = key;
    shape.sequenceIds = ids.data();
    if (shape.elementType != MW_F32)
      for (std::vector<float> *values : {&q, &k, &v, &dout}) {
        std::vector<uint16_t> bits = narrowed(shape.elementType, *values);
        std::memcpy(values->data(), bits.data(), bits.size() * sizeof(uint16_t));
      }
  }
  AttentionCall(const AttentionCall &) = delete;

  void forward() {
    mw_attention_forward(&context, &shape, q.data(), k.data(), v.data(), nullptr, nullptr,
                         out.data(), lse.data(), workspace.data());
  }
  void backward() {
    mw_attention_backward(&context, &shape, dout.data(), q.data(), k.data(), v.data(), out.data(),
                          lse.data(), dq.data(), dk.data(), dv.data(), dsinks.data(),
                          nullptr, workspace.data());
  }
  /// Of products over the visible scores: one of each size forward, three and two backward.
  double forwardFlops() const { return pairs() * double(shape.headDim + shape.valueDim); }
  double backwardFlops() const { return pairs() * double(3 * shape.headDim + 2 * shape.valueDim); }

  int64_t workspaceBytes() const { return int64_t(workspace.size()); }

private:
  MwAttention shape;
  double pairs() const {
    return 2.0 * double(shape.batch * shape.heads) *
           meshwright::attentionMaskOf(shape).visiblePairs(shape.queries, shape.keys);
  }

  const int32_t key[2] = {1, 2};
  std::vector<int32_t> ids;
  int64_t rows, keyRows;
  std::vector<float> q, k, v, dout, out, dq, dk, dv, lse, dsinks;
  std::vector<char> workspace;
};
} // namespace

static void printShape(const MwAttention &shape) {
  std::printf("\"batch\": %ld, \"heads\": %ld, \"seq\": %ld, \"head_dim\": %ld, "
              "\"value_dim\": %ld",
              long(shape.batch), long(shape.heads), long(shape.queries), long(shape.headDim),
              long(shape.valueDim));
}

static void attention(const MwAttention &shape) {
  AttentionCall call(shape);
  double forward = measure([&] { call.forward(); }), backward = measure([&] { call.backward(); });
  std::printf("%s\n  {\"op\": \"attention\", ", separator);
  printShape(shape);
  std::printf(", \"dropout\": %g, \"forward_ms\": %.3f, \"backward_ms\": %.3f, "
              "\"forward_gflops\": %.1f, \"backward_gflops\": %.1f, \"workspace_bytes\": %ld}",
              double(shape.dropout), forward * 1e3, backward * 1e3,
              1e-9 * call.forwardFlops() / forward, 1e-9 * call.backwardFlops() / backward,
              long(call.workspaceBytes()));
  separator = ",";
}

/// The least seconds of processors of each of two calls, which take turns: what else runs on the
/// machine disturbs both, and the least of many little.
static std::pair<double, double> leastOf(const std::function<void()> &one,
                                         const std::function<void()> &other) {
  auto seconds = [](const std::function<void()> &call) {
    std::clock_t begin = std::clock();
    call();
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  one(), other();
  std::pair<double, double> least{1e30, 1e30};
  double spent = 0;
  for (int turn = 0; turn < 5 || spent < 4 * secondsPerRow; ++turn) {
    double a = seconds(one), b = seconds(other);
    least = {std::min(least.first, a), std::min(least.second, b)};
    spent += a + b;
  }
  return least;
}

/// What families add to attention, each beside plain attention of as many heads: how many times as
/// long it takes per FLOP.
static void variations() {
  MwAttention plain = causal(1, 1024, 16, 128);
  std::vector<float> sinks = randomValues(plain.heads), slopes(plain.heads);
  for (size_t head = 0; head < slopes.size(); ++head)
    slopes[head] = std::exp2(-8 * float(head + 1) / float(slopes.size()));
  struct Variation {
    const char *name;
    MwAttention shape;
  };
  std::vector<Variation> all(5, {"", plain});
  all[0].name = "cap", all[0].shape.cap = 30;
  all[1].name = "window", all[1].shape.window = 256;
  all[2].name = "slopes", all[2].shape.slopes = slopes.data();
  all[3].name = "sinks", all[3].shape.sinks = sinks.data();
  all[4].name = "latent heads", all[4].shape.headDim = 192;
  AttentionCall usual(plain);
  for (const Variation &variation : all) {
    AttentionCall call(variation.shape);
    auto [forward, otherForward] = leastOf([&] { usual.forward(); }, [&] { call.forward(); });
    auto [backward, otherBackward] = leastOf([&] { usual.backward(); }, [&] { call.backward(); });
    std::printf("%s\n  {\"op\": \"attention\", \"with\": \"%s\", ", separator, variation.name);
    printShape(variation.shape);
    std::printf(", \"forward_per_flop\": %.3f, \"backward_per_flop\": %.3f}",
                otherForward / call.forwardFlops() / (forward / usual.forwardFlops()),
                otherBackward / call.backwardFlops() / (backward / usual.backwardFlops()));
    separator = ",";
  }
}

/// Causal attention of which each of `ranks` ranks has a part of the queries: how many times as
/// long as with --context-balance zigzag the one with most computes without, on one thread.
static void balance(int64_t sequence, int64_t ranks) {
  int threads = std::exchange(context.threads, 1);
  auto callOf = [&](int64_t queries, const int32_t &first) {
    MwAttention shape = causal(1, sequence, 2, 64);
    shape.queries = queries;
    shape.queryOffset = &first;
    return std::make_unique<AttentionCall>(shape);
  };
  int64_t part = sequence / ranks, half = part / 2;
  auto last = int32_t(sequence - part);
  std::unique_ptr<AttentionCall> most = callOf(part, last);
  double without = 1e30, with = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int32_t own = int32_t(rank * part), other = int32_t(sequence - rank * part - half);
    std::unique_ptr<AttentionCall> one = callOf(half, own), two = callOf(half, other);
    auto run = [](AttentionCall &call) { call.forward(), call.backward(); };
    auto [whole, halves] = leastOf([&] { run(*most); }, [&] { run(*one), run(*two); });
    without = std::min(without, whole);
    with = std::max(with, halves);
  }
  std::printf("%s\n  {\"op\": \"attention\", \"with\": \"balance\", \"seq\": %ld, \"ranks\": %ld, "
              "\"ms\": %.1f, \"balanced_ms\": %.1f, \"times_as_long\": %.2f}",
              separator, long(sequence), long(ranks), 1e3 * without, 1e3 * with, without / with);
  context.threads = threads;
}

/// A product of factors of a narrow type beside that of f32, by each instruction set. The result
/// is of the same type, or f32 as of weights' gradients.
static void narrowMatmul(int32_t type, int transA, int transB, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a = randomValues(m * k), b = randomValues(k * n), c(m * n);
  std::vector<uint16_t> x = narrowed(type, a), y = narrowed(type, b), z(transA ? 0 : m * n);
  std::vector<char> workspace(mw_matmul_mixed_workspace(m, n, k, 1));
  int64_t lda = transA ? m : k, ldb = transB ? k : n;
  meshwright::cpu::MixedProduct product{transA != 0,
                                        transB != 0,
                                        m,
                                        n,
                                        k,
                                        1.0f,
                                        0.0f,
                                        type,
                                        x.data(),
                                        lda,
                                        y.data(),
                                        ldb,
                                        transA ? int32_t(MW_F32) : type,
                                        transA ? static_cast<void *>(c.data()) : z.data(),
                                        n,
                                        1,
                                        0,
                                        0,
                                        0};
  int count;
  const auto *const *kernels = meshwright::cpu::availablePanelKernels(&count);
  for (int i = 0; i < count; ++i) {
    // Only bf16 has an instruction set of its own; logits of many tokens take long by the others.
    int best = type != MW_BF16 && kernels[0]->elementsOfWord(MW_BF16) > 1 ? 1 : 0;
    if (i < best || (i > best && m * n * k > int64_t(5e9)))
      continue;
    auto [wide, narrow] = leastOf(
        [&] {
          mw_matmul_f32(&context, transA, transB, m, n, k, 1.0f, a.data(), lda, b.data(), ldb, 0,
                        c.data(), n, 1, 0, 0, 0);
        },
        [&] {
          meshwright::cpu::multiplyMixed(*kernels[i], context.threads, product, workspace.data());
        });
    std::printf("%s\n  {\"op\": \"matmul\", \"type\": \"%s\", \"kernels\": \"%s\", \"form\": "
                "\"%c%c\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"f32_ms\": %.3f, \"ms\": %.3f, "
                "\"of_f32\": %.3f}",
                separator, nameOf(meshwright::ElementType(type)), kernels[i]->name,
                transA ? 't' : 'n', transB ? 't' : 'n', long(m), long(n), long(k), wide * 1e3,
                narrow * 1e3, narrow / wide);
    separator = ",";
    std::fflush(stdout);
  }
}

static void narrowAttention(int64_t sequence) {
  MwAttention shape = causal(4, sequence, 12, 64);
  AttentionCall wide(shape);
  shape.elementType = MW_BF16;
  AttentionCall narrow(shape);
  auto [forward, narrowForward] = leastOf([&] { wide.forward(); }, [&] { narrow.forward(); });
  auto [backward, narrowBackward] = leastOf([&] { wide.backward(); }, [&] { narrow.backward(); });
  std::printf("%s\n  {\"op\": \"attention\", \"type\": \"bf16\", ", separator);
  printShape(shape);
  std::printf(", \"forward_ms\": %.3f, \"backward_ms\": %.3f, \"forward_of_f32\": %.3f, "
              "\"backward_of_f32\": %.3f}",
              narrowForward * 1e3, narrowBackward * 1e3, narrowForward / forward,
              narrowBackward / backward);
  separator = ",";
}

static void narrowTypes() {
  for (int32_t type : {MW_BF16, MW_F16})
    for (int64_t tokens : {256, 2048}) {
      const int64_t layers[][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50257, 768}};
      for (auto [outputs, inputs] : layers) {
        narrowMatmul(type, 0, 1, tokens, outputs, inputs); // y = x w^T
        narrowMatmul(type, 0, 0, tokens, inputs, outputs); // dx = dy w
        narrowMatmul(type, 1, 0, outputs, inputs, tokens); // dw = dy^T x
      }
    }
  for (int64_t sequence : {64, 512, 1024})
    narrowAttention(sequence);
}

int main(int argc, char **argv) {
  if (argc > 1)
    context.threads = std::max(1, std::atoi(argv[1]));
  if (argc > 2)
    secondsPerRow = std::atof(argv[2]);
  std::printf("{\"threads\": %d, \"rows\": [", context.threads);
  const char *only = argc > 3 ? argv[3] : "";
  bool narrow = std::strcmp(only, "narrow") == 0;
  if (narrow || std::strcmp(only, "variations") == 0) {
    narrow ? narrowTypes() : variations();
    std::printf("\n]}\n");
    return 0;
  }
  if (std::strcmp(only, "balance") == 0) {
    for (int64_t ranks : {2, 4, 8}) {
      balance(8192, ranks);
      separator = ",";
    }
    std::printf("\n]}\n");
    return 0;
  }
  for (int64_t tokens : {256, 2048}) {
    const int64_t layers[][2] = {{768, 768}, {2304, 768}, {3072, 768}, {768, 3072}, {50257, 768}};
    for (auto [outputs, inputs] : layers) {
      matmul(0, 1, tokens, outputs, inputs, 0); // y = x w^T
      matmul(0, 0, tokens, inputs, outputs, 0); // dx = dy w
      matmul(1, 0, outputs, inputs, tokens, 0); // dw = dy^T x
      matmul(1, 0, outputs, inputs, tokens, 1);
    }
    matmul(1, 1, tokens, 768, 768, 0);
  }
  for (int64_t sequence : {64, 512, 1024})
    for (float dropout : {0.0f, 0.1f}) {
      MwAttention shape = causal(4, sequence, 12, 64);
      shape.dropout = dropout;
      attention(shape);
    }
  attention(causal(12, 64, 12, 64));
  variations();
  for (int64_t ranks : {2, 4})
    balance(8192, ranks);
  separator = ",";
  narrowTypes();
  std::printf("\n]}\n");
}
