//===- ProductTilesTest.cpp - products by tiles and waves, against an H100 ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/CallWork.h"
#include "meshwright/Cost/CostTable.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace meshwright;
using namespace meshwright::cost;

namespace {
const Device &h100() { return getDevice("h100-sxm-measured"); }

/// A product of bf16. Its result of `resultBytes` an element is written, and what the product adds
/// to it, if anything, is read: `beside` bytes.
CallWork product(int64_t m, int64_t n, int64_t k, int64_t resultBytes = 2, double beside = 0,
                 double sums = 0) {
  CallWork work{CallWork::Product};
  work.bits = 16;
  work.sizes = {m, n, k};
  work.flops = work.sizes.flops();
  work.bytes = work.reuse = 2.0 * double(m * k + k * n) + double(resultBytes * m * n) + beside;
  work.factorSums = sums;
  return work;
}

double milliseconds(const CallWork &work) { return work.seconds(h100()) * 1e3; }

/// Products of a step that a trace of one H100 counted together, and their time
/// (commit da847086, docs/performance.md).
struct Measured {
  const char *what;
  double milliseconds;
  std::vector<std::pair<double, CallWork>> calls;
};

TEST(ProductTiles, PredictsProductsAlone) {
  auto file = llvm::MemoryBuffer::getFile(MESHWRIGHT_RATES);
  ASSERT_TRUE(bool(file)) << MESHWRIGHT_RATES;
  auto rates = llvm::json::parse((*file)->getBuffer());
  ASSERT_TRUE(bool(rates));
  double count = 0, near = 0, sum = 0;
  for (const llvm::json::Value &entry : *rates->getAsObject()->getArray("products")) {
    const llvm::json::Object &row = *entry.getAsObject();
    bool adds = *row.getNumber("beta") != 0;
    int64_t m = *row.getInteger("m"), n = *row.getInteger("n"), k = *row.getInteger("k");
    int64_t resultBytes = row.getString("result") == "f32" ? 4 : 2;
    CallWork work = product(m, n, k, resultBytes, adds ? double(resultBytes * m * n) : 0);
    if (row.getString("operands") != "bf16" || work.flops < 1e9)
      continue;
    double measured = std::min(*row.getNumber("first_ms"), *row.getNumber("best_ms"));
    double error = std::abs(milliseconds(work) / measured - 1);
    ++count;
    near += error < 0.15;
    sum += error;
  }
  EXPECT_EQ(count, 329);
  EXPECT_GT(near / count, 0.88);
  EXPECT_LT(sum / count, 0.07);
}

TEST(ProductTiles, PredictsProductsInSteps) {
  // Bytes of the activations of 16,384 tokens.
  auto tokens = [](double width) { return 2.0 * 16384 * width; };
  std::vector<Measured> all{
      {"GPT-2, attention", 56.845, {{240, product(16384, 1600, 1600)},
                                    {144, product(16384, 1600, 1600, 2, tokens(1600))}}},
      {"GPT-2, its weight gradients, three with those of biases", 29.197,
       {{48, product(1600, 1600, 16384, 4)},
        {144, product(1600, 1600, 16384, 4, 0, tokens(1600))}}},
      {"GPT-2, up with gelu, down's input gradient with its derivative", 56.608,
       {{96, product(16384, 6400, 1600, 2, tokens(6400))}}},
      {"GPT-2, down, up's input gradient", 47.971,
       {{48, product(16384, 1600, 6400, 2, tokens(1600))}, {48, product(16384, 1600, 6400)}}},
      {"GPT-2, up's weight gradient with that of its bias", 30.579,
       {{48, product(6400, 1600, 16384, 4, 0, tokens(6400))}}},
      {"GPT-2, down's weight gradient", 23.927, {{48, product(1600, 6400, 16384, 4)}}},
      {"GPT-2, head", 8.276, {{4, product(4096, 50304, 1600)}, {4, product(4096, 1600, 50304)}}},
      {"OLMoE, attention", 6.103, {{20, product(16384, 2048, 2048)},
                                   {12, product(16384, 2048, 2048, 2, tokens(2048))}}}};
  // By sequences of 4,096 and of 8,192.
  struct {
    double mlp, mlpWeights, head, attention, weights, keys;
  } llama[] = {{79.322, 39.480, 28.819, 14.342, 6.730, 4.576},
               {77.895, 35.732, 24.602, 14.182, 6.125, 4.556}};
  for (auto &run : llama) {
    all.push_back({"Llama, MLP", run.mlp, {{48, product(16384, 8192, 2048)},
                                           {16, product(16384, 2048, 8192)},
                                           {32, product(16384, 2048, 8192, 2, tokens(2048))}}});
    all.push_back({"Llama, MLP's weight gradients", run.mlpWeights, {{48, product(2048, 8192, 16384, 4)}}});
    all.push_back({"Llama, head", run.head, {{4, product(4096, 128256, 2048)},
                                             {4, product(4096, 2048, 128256)}}});
    all.push_back({"Llama, queries and attention's output", run.attention,
                   {{32, product(16384, 2048, 2048)},
                    {32, product(16384, 2048, 2048, 2, tokens(2048))}}});
    all.push_back({"Llama, their weight gradients", run.weights, {{32, product(2048, 2048, 16384, 4)}}});
    all.push_back({"Llama, keys and values", run.keys, {{32, product(16384, 512, 2048)},
                                                        {16, product(16384, 2048, 512)},
                                                        {16, product(16384, 2048, 512, 2, tokens(2048))}}});
  }
  auto predicted = [](const Measured &row) {
    double sum = 0;
    for (auto &[times, call] : row.calls)
      sum += times * milliseconds(call);
    return sum;
  };
  for (const Measured &row : all)
    EXPECT_NEAR(predicted(row) / row.milliseconds, 1, 0.15) << row.what;
  // Those that are not: GPUs ran the first slower in steps than alone, by half; in OLMoE's steps, of
  // which less than half is products, the GPU is not at its power limit.
  Measured keys{"", 2.707, {{32, product(512, 2048, 16384, 4)}}},
      olmoe{"", 2.803, {{16, product(2048, 2048, 16384, 4)}}};
  EXPECT_NEAR(predicted(keys) / keys.milliseconds, 0.76, 0.03);
  EXPECT_NEAR(predicted(olmoe) / olmoe.milliseconds, 1.2, 0.03);
}

TEST(ProductTiles, CountsWaves) {
  // 132 multiprocessors have a tile of 256 x 128 each, or one of them two.
  ProductTiles tiles = *h100().tiles;
  tiles.sustained = 1e18;
  auto computes = [&](int64_t m) { return tiles.seconds({m, 128 * 12, 4096}, 0, 1e18) - tiles.call; };
  EXPECT_GT(computes(256 * 11 + 64), 1.1 * computes(256 * 11));
  // A few long sums are divided.
  EXPECT_LT(tiles.seconds({256, 256, 65536}, 0, 3e12), 0.5 * tiles.seconds({256, 256, 65536}, 0, 1));
  // A product that moves more than it computes takes as long as that, and a part of computing.
  EXPECT_NEAR(tiles.seconds({1024, 1024, 1024}, 3e12, 3e12), 1, 1e-4);
  // Those of a batch fill waves together.
  EXPECT_DOUBLE_EQ(tiles.seconds({320, 128, 4096, 132}, 0, 1e18), tiles.seconds({320 * 132, 128, 4096}, 0, 1e18));
}

TEST(ProductTiles, AreOf16Bits) {
  CallWork work = product(1600, 1600, 16384);
  work.bits = 32;
  EXPECT_DOUBLE_EQ(work.seconds(h100()), work.flops / h100().products.f32.at(work.flops));
  EXPECT_FALSE(getDevice("h100-sxm").tiles);
}
} // namespace
