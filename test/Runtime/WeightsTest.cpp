//===- WeightsTest.cpp - plans, shards, initial values, safetensors -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Weights.h"

#include "PlanText.h"
#include "Process.h"
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/TensorCopy.h"
#include "common/monitor/AttentionShares.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/Normal.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace meshwright;
using namespace testing_process;
using Json = nlohmann::json;
using testing::HasSubstr;

// Every element is on the ranks it should be, padding is zero, whatever the layout.
static void checkInitialValues(const Json &text, const std::vector<std::string> &layerNames) {
  Plan plan = Plan::parse(text.dump());
  const Variable &variable = plan.variables[0];
  std::vector<int64_t> strides = denseStrides(variable.shape);
  std::vector<int64_t> localStrides = denseStrides(variable.localShape);
  int64_t layerElements = 1;
  for (size_t d = variable.stacked; d < variable.shape.size(); ++d)
    layerElements *= variable.shape[d];
  for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
    alignas(64) char arena[4096] = {};
    alignas(64) char handedOn[sizeof(arena)] = {};
    initializeWeights({plan, rank, arena, 2,
                       [&](const Variable &, const char *data, int64_t bytes) {
                         std::memcpy(handedOn + (data - arena), data, size_t(bytes));
                       }},
                      42);
    ASSERT_EQ(std::memcmp(arena, handedOn, sizeof(arena)), 0) << "rank " << rank;
    const auto *values = reinterpret_cast<const float *>(arena + variable.offset);
    Box box = shardOf(plan, variable, rank);
    int64_t local = localStrides[0] * variable.localShape[0];
    for (int64_t i = 0; i < local; ++i) {
      int64_t global = 0;
      bool padding = false;
      for (size_t d = 0; d < variable.shape.size(); ++d) {
        int64_t index = i / localStrides[d] % variable.localShape[d];
        padding |= index >= box.extent[d];
        global += (box.begin[d] + index) * strides[d];
      }
      float expected = 0;
      if (!padding)
        expected = 2.0f * normalValue(initialKey(42, layerNames[size_t(global / layerElements)]),
                                      uint64_t(global % layerElements));
      ASSERT_EQ(values[i], expected) << "rank " << rank << ", element " << i;
    }
  }
}

TEST(Weights, InitialValuesFollowGlobalIndices) {
  Json none = Json::array();
  checkInitialValues(planText({7, 5}, {7, 5}, {none, none}), {"w"});
  checkInitialValues(planText({7, 5}, {2, 5}, {{"a", "b"}, none}), {"w"});
  checkInitialValues(planText({7, 5}, {4, 2}, {{"a"}, {"b"}}), {"w"});
  checkInitialValues(planText({7, 5, 9}, {7, 2, 5}, {none, {"b"}, {"a"}}), {"w"});
  checkInitialValues(
      planText({3, 7, 5}, {3, 3, 3}, {none, {"b"}, {"a"}}, true, {{"tensor", "h.{layer}.w"}}),
      {"h.0.w", "h.1.w", "h.2.w"});
  checkInitialValues(
      planText({2, 7, 5}, {2, 7, 5}, {none, none, none}, true, {{"tensor", "h.{layer+6}.w"}}),
      {"h.6.w", "h.7.w"});
  // Layers may be divided too; a slice has its own name.
  checkInitialValues(planText({3, 7, 5}, {2, 3, 5}, {{"a"}, {"b"}, none}, true,
                              {{"tensor", "h.{layer}.w"},
                               {"transpose", true},
                               {"slice", {{"dim", 1}, {"begin", 7}, {"size", 7}, {"full", 21}}}}),
                     {"h.0.w[1:7]", "h.1.w[1:7]", "h.2.w[1:7]"});
}

/// A parameter in a narrow type with its master, which may be cut otherwise.
static Json withMaster(const char *type, Json masterLocal, Json masterSharding) {
  Json text = planText({6, 5}, {6, 5}, {Json::array(), Json::array()});
  text["variables"][0]["type"] = type;
  text["variables"].push_back(masterText("f32", masterLocal, masterSharding));
  return text;
}

TEST(Weights, NarrowParametersAreRoundedMasters) {
  TemporaryDirectory scratch;
  std::vector<float> file;
  for (int i = 0; i < 30; ++i)
    file.push_back(1.0f + float(i) * 0x1p-12f);
  {
    SafeTensorsWriter writer(scratch.path("w"), {{"w", {6, 5}}});
    writer.write(file.data(), 30);
    writer.finish();
  }
  for (const char *type : {"bf16", "f16"})
    for (bool cut : {false, true}) {
      Json none = Json::array();
      Plan plan = Plan::parse(
          (cut ? withMaster(type, {3, 5}, {{"a"}, none}) : withMaster(type, {6, 5}, {none, none}))
              .dump());
      auto narrow = [&](float value) {
        return plan.variables[0].type == ElementType::BF16 ? bf16ToFloat(floatToBf16(value))
                                                           : f16ToFloat(floatToF16(value));
      };
      auto check = [&](const char *arena, int64_t rank, auto expected) {
        const auto *bits = reinterpret_cast<const uint16_t *>(arena + 64);
        const auto *master = reinterpret_cast<const float *>(arena + 1024);
        for (int64_t i = 0; i < 30; ++i)
          ASSERT_EQ(type[0] == 'b' ? bf16ToFloat(bits[i]) : f16ToFloat(bits[i]),
                    narrow(expected(i)));
        int64_t begin = cut ? rank / 3 * 15 : 0;
        for (int64_t i = 0; i < (cut ? 15 : 30); ++i)
          ASSERT_EQ(master[i], expected(begin + i));
      };
      for (int64_t rank : {0, 4}) {
        alignas(64) char arena[4096] = {};
        initializeWeights({plan, rank, arena, 2}, 7);
        check(arena, rank,
              [](int64_t i) { return 2.0f * normalValue(initialKey(7, "w"), uint64_t(i)); });
        readWeights({plan, rank, arena, 2}, WeightKind::Parameters, scratch.path("w"), "--init");
        check(arena, rank, [&](int64_t i) { return file[size_t(i)]; });
      }
      // What is written is the master.
      std::vector<FileTensor> tensors = fileTensors(plan, WeightKind::Parameters);
      ASSERT_EQ(tensors.size(), 1u);
      ASSERT_EQ(tensors[0].parts.size(), 1u);
      EXPECT_EQ(tensors[0].parts[0].first->name, "w.master");
      EXPECT_TRUE(fileTensors(plan, WeightKind::OptimizerStates).empty());
    }
}

/// A weight in 8 bits with the scales of its rows.
static Json withScale(Json local, Json sharding) {
  Json text = planText({6, 5}, local, sharding);
  text["variables"][0]["type"] = "i8";
  text["variables"].push_back({{"name", "w.scale"}, {"in", 0}, {"role", "scale"}, {"of", "w"}, {"type", "f32"}, {"shape", Json::array({6})},
                               {"local_shape", Json::array({local[0]})}, {"sharding", Json::array({sharding[0]})}, {"stacked", false}, {"offset", 1024}});
  return text;
}

// Whatever part of a row a rank has, its codes and its scale are those of the whole row.
TEST(Weights, CodesAreOfWholeRows) {
  TemporaryDirectory scratch;
  std::vector<float> file;
  for (int i = 0; i < 30; ++i)
    file.push_back(i / 5 == 2 ? 0.0f : float((i * 37) % 23 - 11) * (i == 4 ? 3.0f : 0.37f));
  auto write = [&](const char *name) {
    SafeTensorsWriter writer(scratch.path(name), {{"w", {6, 5}}});
    writer.write(file.data(), 30);
    writer.finish();
  };
  write("w");
  Json none = Json::array();
  for (const auto &[local, sharding] : {std::pair<Json, Json>({6, 5}, {none, none}), {{3, 5}, {{"a"}, none}}, {{6, 2}, {none, {"b"}}}}) {
    Plan plan = Plan::parse(withScale(local, sharding).dump());
    for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
      alignas(64) char arena[4096] = {};
      readWeights({plan, rank, arena, 2}, WeightKind::Parameters, scratch.path("w"), "--init");
      Box box = shardOf(plan, plan.variables[0], rank);
      for (int64_t row = 0; row < box.extent[0]; ++row) {
        const float *whole = file.data() + (box.begin[0] + row) * 5;
        float amax = 0;
        for (int i = 0; i < 5; ++i)
          amax = std::max(amax, std::abs(whole[i]));
        float scale = amax / 127;
        EXPECT_EQ(reinterpret_cast<float *>(arena + 1024)[row], scale);
        for (int64_t i = 0; i < box.extent[1]; ++i)
          EXPECT_EQ(reinterpret_cast<int8_t *>(arena + 64)[row * plan.variables[0].localShape[1] + i],
                    scale ? int(std::nearbyint(whole[box.begin[1] + i] / scale)) : 0)
              << "rank " << rank << ", row " << row << ", column " << i;
      }
    }
  }
  Plan plan = Plan::parse(withScale({6, 5}, {none, none}).dump());
  file[7] = INFINITY;
  write("infinite");
  alignas(64) char arena[4096] = {};
  EXPECT_THAT([&] { readWeights({plan, 0, arena, 2}, WeightKind::Parameters, scratch.path("infinite"), "--init"); },
              testing::ThrowsMessage<Error>(HasSubstr("has values that are not finite numbers in f32")));
  // In f16 neither is what codes of larger numbers stand for.
  file[7] = 1e5f;
  write("large");
  readWeights({plan, 0, arena, 2}, WeightKind::Parameters, scratch.path("large"), "--init");
  plan.precision = "fp16";
  EXPECT_THAT([&] { readWeights({plan, 0, arena, 2}, WeightKind::Parameters, scratch.path("large"), "--init"); },
              testing::ThrowsMessage<Error>(HasSubstr("has values that are not finite numbers in f16")));
  // Codes are numbers by their scales alone.
  Json lacking = withScale({6, 5}, {none, none});
  lacking["variables"].erase(1);
  EXPECT_THAT([&] { Plan::parse(lacking.dump()); }, testing::ThrowsMessage<Error>(HasSubstr("has codes of 8 bits, but no scale")));
  Json other = withScale({6, 5}, {none, none});
  other["variables"][0]["type"] = "f32";
  EXPECT_THAT([&] { Plan::parse(other.dump()); }, testing::ThrowsMessage<Error>(HasSubstr("the scales w.scale are f32")));
}

TEST(Weights, HalvesMakeTheNumber) {
  for (uint32_t bits :
       {0u, 0x80000000u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0x3f800000u, 0x3f808000u, 0x3f818000u,
        0xbf808000u, 0x3f807fffu, 0x3fffffffu, 0x7f7fffffu, 0xff800000u, 0x7f800000u}) {
    float value = bitsAs<float>(bits), upper = bf16ToFloat(upperHalf(value));
    EXPECT_EQ(bitsAs<uint32_t>(addLowerHalf(upper, lowerHalf(value))), bits);
    bool isHalfWay = (bits & 0xffff) == 0x8000;
    EXPECT_EQ(upper, isHalfWay ? bitsAs<float>(bits + 0x8000) : bf16ToFloat(floatToBf16(value)));
  }
  EXPECT_TRUE(std::isnan(bf16ToFloat(upperHalf(bitsAs<float>(0x7fffffffu)))));
  EXPECT_TRUE(std::isnan(addLowerHalf(bf16ToFloat(upperHalf(bitsAs<float>(0x7fffffffu))), -1)));
}

/// A master that has the lower halves alone, and the parameter with the upper ones.
TEST(Weights, HalvedMastersAreReadWithoutLoss) {
  TemporaryDirectory scratch;
  std::vector<float> file;
  for (int i = 0; i < 30; ++i) // some of them half way
    file.push_back((i % 2 ? -1.0f : 1.0f) * (1.0f + float(i) * 0x1p-8f + float(i % 3) * 0x1p-23f));
  {
    SafeTensorsWriter writer(scratch.path("w"), {{"w", {6, 5}}});
    writer.write(file.data(), 30);
    writer.finish();
  }
  Json text = withMaster("bf16", {6, 5}, {Json::array(), Json::array()});
  text["variables"][1]["type"] = "i16";
  Plan plan = Plan::parse(text.dump());
  alignas(64) char arena[4096] = {};
  auto number = [&](int64_t i) {
    return addLowerHalf(bf16ToFloat(reinterpret_cast<const uint16_t *>(arena + 64)[i]),
                        reinterpret_cast<const int16_t *>(arena + 1024)[i]);
  };
  initializeWeights({plan, 0, arena, 2}, 7);
  for (int64_t i = 0; i < 30; ++i)
    ASSERT_EQ(number(i), 2.0f * normalValue(initialKey(7, "w"), uint64_t(i)));
  readWeights({plan, 0, arena, 2}, WeightKind::Parameters, scratch.path("w"), "--init");
  for (int64_t i = 0; i < 30; ++i)
    ASSERT_EQ(number(i), file[size_t(i)]);
  // What is written is made of both, the upper halves first.
  std::vector<FileTensor> tensors = fileTensors(plan, WeightKind::Parameters);
  ASSERT_EQ(tensors.size(), 1u);
  ASSERT_EQ(tensors[0].parts.size(), 2u);
  EXPECT_EQ(tensors[0].parts[0].first->name, "w");
  EXPECT_EQ(tensors[0].parts[1].first->name, "w.master");
  std::vector<float> upper{1.0f, 2.0f, 3.0f, 4.0f};
  std::vector<int16_t> lower{1, -1, 0, 2};
  addLowerHalves({2, 2}, {ElementType::I16, lower.data(), {1, 2}},
                 {ElementType::F32, upper.data(), {2, 1}});
  EXPECT_EQ(upper, (std::vector<float>{addLowerHalf(1, 1), 2.0f, addLowerHalf(3, -1),
                                       addLowerHalf(4, 2)}));
}

// A head beside the weights is the embedding again, or the model is not the one of the file.
TEST(Weights, HeadsThatAreNotTiedAreRefused) {
  TemporaryDirectory scratch;
  std::vector<float> embedding(30), other(30);
  std::iota(embedding.begin(), embedding.end(), 0.0f);
  std::iota(other.begin(), other.end(), 1.0f);
  Json text = planText({6, 5}, {6, 5}, {Json::array(), Json::array()});
  text["config"] = "{}";
  Plan plan = Plan::parse(text.dump());
  auto read = [&](const char *file, const std::vector<float> &head) -> std::string {
    {
      SafeTensorsWriter writer(scratch.path(file),
                               {{"model.w", {6, 5}}, {"lm_head.weight", {6, 5}}});
      writer.write(embedding.data(), 30);
      writer.write(head.data(), 30);
      writer.finish();
    }
    alignas(64) char arena[4096] = {};
    try {
      return readWeights({plan, 0, arena, 1}, WeightKind::Parameters, scratch.path(file), "--init");
    } catch (const Error &error) {
      return error.what();
    }
  };
  EXPECT_EQ(read("tied", embedding), "");
  EXPECT_THAT(read("apart", other),
              HasSubstr("lm_head.weight is not the embedding, which this model has for "
                        "its head: compile with \"tie_word_embeddings\": false"));
  // A model written by hand may have no head.
  plan.config = "module {}";
  EXPECT_EQ(read("by hand", other).find("error"), std::string::npos);
}

TEST(Weights, InitialValuesAreNormal) {
  auto key = initialKey(0, "transformer.wte.weight");
  constexpr int64_t count = 1 << 20;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = normalValue(key, uint64_t(i));
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    neighbours += value * before;
    before = value;
  }
  EXPECT_NEAR(sum / count, 0, 0.005);
  EXPECT_NEAR(squares / count, 1, 0.007);
  EXPECT_NEAR(fourth / count, 3, 0.05);
  EXPECT_NEAR(neighbours / count, 0, 0.005);
}

TEST(Weights, ReadsTransposedSlicesOfConvertedTypes) {
  TemporaryDirectory scratch;
  // The file tensor is [5, 21] with value 100 * row + column.
  Json storage = {{"tensor", "transformer.w"},
                  {"transpose", true},
                  {"slice", {{"dim", 1}, {"begin", 7}, {"size", 7}, {"full", 21}}}};
  Plan plan = Plan::parse(planText({7, 5}, {4, 2}, {{"a"}, {"b"}}, false, storage).dump());
  for (ElementType type :
       {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16}) {
    std::string data(size_t(105 * bytesOf(type)), 0);
    std::vector<float> values;
    for (int i = 0; i < 105; ++i)
      values.push_back(float(i / 21 * 4 + i % 21));
    copyTensor({105}, {ElementType::F32, values.data(), {1}}, {type, data.data(), {1}});
    std::string dtype = nameOf(type);
    std::transform(dtype.begin(), dtype.end(), dtype.begin(), ::toupper);
    Json header = {
        {"w", {{"dtype", dtype}, {"shape", {5, 21}}, {"data_offsets", {0, data.size()}}}},
        {"h.0.attn.bias", {{"dtype", "BOOL"}, {"shape", {0}}, {"data_offsets", {0, 0}}}},
        {"odd", {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}}}};
    std::string text = header.dump();
    uint64_t length = text.size();
    writeFile(scratch.path("f"), std::string(reinterpret_cast<char *>(&length), 8) + text + data);
    for (int64_t rank = 0; rank < 6; ++rank) {
      alignas(64) char arena[4096] = {};
      std::string note =
          readWeights({plan, rank, arena, 1}, WeightKind::Parameters, scratch.path("f"), "--init");
      EXPECT_THAT(note, HasSubstr("1 tensor that this model does not use (odd)"));
      const auto *local = reinterpret_cast<const float *>(arena + 64);
      Box box = shardOf(plan, plan.variables[0], rank);
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          bool padding = i >= box.extent[0] || j >= box.extent[1];
          float expected = float((box.begin[1] + j) * 4 + 7 + box.begin[0] + i);
          EXPECT_EQ(local[i * 2 + j], padding ? 0 : expected);
        }
    }
  }
}

TEST(Weights, RefusesQuantizedFiles) {
  TemporaryDirectory scratch;
  Plan plan = Plan::parse(planText({4, 3}, {4, 3}, {Json::array(), Json::array()}, false, {{"tensor", "q.weight"}}).dump());
  auto read = [&](const std::vector<std::tuple<std::string, std::string, int>> &tensors) -> std::string {
    Json header;
    size_t bytes = 0;
    for (const auto &[name, dtype, width] : tensors) {
      header[name] = {{"dtype", dtype}, {"shape", {4, 3}}, {"data_offsets", {bytes, bytes + 12 * width}}};
      bytes += 12 * width;
    }
    std::string text = header.dump();
    uint64_t length = text.size();
    writeFile(scratch.path("f"), std::string(reinterpret_cast<char *>(&length), 8) + text + std::string(bytes, 0));
    alignas(64) char arena[4096] = {};
    try {
      readWeights({plan, 0, arena, 1}, WeightKind::Parameters, scratch.path("f"), "--init");
      return "";
    } catch (const Error &error) {
      return error.what();
    }
  };
  EXPECT_EQ(read({{"q.weight", "F32", 4}, {"k.weight_scale", "F32", 4}}), "");
  for (const char *prefix : {"model.", "transformer.", "gpt_neox.", "biogpt.", "bert.", "roberta."})
    EXPECT_EQ(read({{prefix + std::string("q.weight"), "F32", 4}}), "");
  EXPECT_THAT(read({{"q.weight", "F8_E4M3", 1}, {"q.weight_scale_inv", "F32", 4}}),
              HasSubstr("tensor q.weight is quantized (of type F8_E4M3), which is not read"));
  EXPECT_THAT(read({{"model.q.weight", "U8", 1}}), HasSubstr("tensor q.weight is quantized (of type U8)"));
  EXPECT_THAT(read({{"q.weight", "BF16", 2}, {"q.weight_scale_inv", "F32", 4}}),
              HasSubstr("tensor q.weight is quantized (with q.weight_scale_inv)"));
  EXPECT_THAT(read({{"q.qweight", "I32", 4}}), HasSubstr("quantized (with q.qweight)"));
  EXPECT_THAT(read({{"k.qweight", "I32", 4}}), HasSubstr("has no tensor q.weight"));
}

TEST(Weights, ReadsOldNamesOfNorms) {
  TemporaryDirectory scratch;
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 1.0f);
  for (auto [old, present] : {std::pair("gamma", "weight"), {"beta", "bias"}}) {
    std::string file = scratch.path(old);
    SafeTensorsWriter writer(file, {{std::string("bert.x.LayerNorm.") + old, {4, 3}}});
    writer.write(values.data(), 12);
    writer.finish();
    Json storage = {{"tensor", std::string("x.LayerNorm.") + present}};
    Plan plan = Plan::parse(planText({4, 3}, {4, 3}, {Json::array(), Json::array()}, false, storage).dump());
    alignas(64) char arena[4096] = {};
    EXPECT_EQ(readWeights({plan, 0, arena, 1}, WeightKind::Parameters, file, "--init"), "");
    EXPECT_EQ(0, std::memcmp(arena + plan.variables[0].offset, values.data(), 48));
    std::string both = scratch.path(std::string("both-") + old);
    SafeTensorsWriter twice(both, {{std::string("bert.x.LayerNorm.") + old, {4, 3}},
                                   {std::string("bert.x.LayerNorm.") + present, {4, 3}}});
    for (int i = 0; i < 2; ++i)
      twice.write(values.data(), 12);
    twice.finish();
    auto read = [&] { readWeights({plan, 0, arena, 1}, WeightKind::Parameters, both, "--init"); };
    EXPECT_THAT(read, testing::ThrowsMessage<std::exception>(HasSubstr("is there twice")));
  }
}

// What wrappers of modules add to names, alone and together, and the language models of larger models.
TEST(Weights, ReadsNamesOfWrappersAndOfTextParts) {
  TemporaryDirectory scratch;
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 1.0f);
  for (auto [wanted, name] : {
           std::pair("model.norm.weight", "module.model.norm.weight"),
           {"model.norm.weight", "_orig_mod.model.norm.weight"},
           {"model.norm.weight", "module._orig_mod.model.norm.weight"},
           {"model.norm.weight", "_orig_mod.module.norm.weight"},
           {"model.norm.weight", "model._orig_mod._fsdp_wrapped_module.norm._checkpoint_wrapped_module.weight"},
           {"model.norm.weight", "model.language_model.norm.weight"},
           {"model.norm.weight", "language_model.model.norm.weight"},
           {"model.norm.weight", "module.language_model._orig_mod.model.norm.weight"},
           {"model.norm.weight", "model.text_model.norm.weight"},
           {"lm_head.weight", "language_model.lm_head.weight"},
           {"lm_head.weight", "model.language_model.lm_head.weight"},
           {"lm_head.weight", "_orig_mod.lm_head.weight"},
           {"transformer.wte.weight", "module.transformer.wte.weight"},
           {"transformer.wte.weight", "module.wte.weight"},
       }) {
    std::string file = scratch.path(name); // Whatever is read cannot be written any more.
    SafeTensorsWriter writer(file, {{name, {4, 3}}, {"model.visual.norm.weight", {4, 3}}});
    for (int i = 0; i < 2; ++i)
      writer.write(values.data(), 12);
    writer.finish();
    Json storage = {{"tensor", wanted}};
    Plan plan = Plan::parse(planText({4, 3}, {4, 3}, {Json::array(), Json::array()}, false, storage).dump());
    alignas(64) char arena[4096] = {};
    EXPECT_THAT(readWeights({plan, 0, arena, 1}, WeightKind::Parameters, file, "--init"),
                HasSubstr("1 tensor that this model does not use (model.visual.norm.weight)"))
        << name;
    EXPECT_EQ(0, std::memcmp(arena + plan.variables[0].offset, values.data(), 48)) << name;
  }
  // Both of them would be one.
  std::string both = scratch.path("both");
  SafeTensorsWriter writer(both, {{"model.w", {4, 3}}, {"module.model.w", {4, 3}}});
  for (int i = 0; i < 2; ++i)
    writer.write(values.data(), 12);
  writer.finish();
  EXPECT_THAT([&] { SafeTensorsReader(both, "--init"); },
              testing::ThrowsMessage<std::exception>(HasSubstr("tensor model.w is there twice")));
}

// facebook/bart-base has no final_logits_bias; in transformers it is zeros.
TEST(Weights, LeavesZerosForWhatAFileMayLack) {
  TemporaryDirectory scratch;
  std::string file = scratch.path("f");
  SafeTensorsWriter writer(file, {});
  writer.finish();
  auto read = [&](bool mayLack, const char *init) {
    Json text = planText({4, 3}, {4, 3}, {Json::array(), Json::array()}, false, {{"tensor", "bias"}, {"optional", mayLack}});
    text["variables"][0]["init"] = {{"kind", init}};
    Plan plan = Plan::parse(text.dump());
    alignas(64) char arena[4096] = {};
    std::string note = readWeights({plan, 0, arena, 1}, WeightKind::Parameters, file, "--init");
    const char *values = arena + plan.variables[0].offset;
    EXPECT_TRUE(std::all_of(values, values + 48, [](char byte) { return byte == 0; }));
    return note;
  };
  EXPECT_EQ(read(true, "zeros"), "");
  EXPECT_THAT([&] { read(false, "zeros"); },
              testing::ThrowsMessage<std::exception>(HasSubstr("has no tensor bias of shape [4, 3]")));
  EXPECT_THAT([&] { read(true, "ones"); },
              testing::ThrowsMessage<std::exception>(
                  HasSubstr("may be missing in files, but does not begin with zeros")));
}

// safetensors.torch.save_model keeps one of two names, and says of the other which one.
TEST(Weights, ReadsTheOneOfTwoTiedTensorsThatIsThere) {
  TemporaryDirectory scratch;
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 1.0f);
  auto write = [&](const char *file, const std::string &kept, const Json &metadata) {
    Json header = {{kept, {{"dtype", "F32"}, {"shape", {4, 3}}, {"data_offsets", {0, 48}}}},
                   {"__metadata__", metadata}};
    std::string text = header.dump();
    uint64_t length = text.size();
    std::string content(reinterpret_cast<const char *>(&length), 8);
    content += text + std::string(reinterpret_cast<const char *>(values.data()), 48);
    writeFile(scratch.path(file), content);
  };
  const std::string head = "lm_head.weight", embedding = "model.embed_tokens.weight";
  auto read = [&](const std::string &wanted, const char *file) -> std::string {
    Json text = planText({4, 3}, {4, 3}, {Json::array(), Json::array()}, false, {{"tensor", wanted}});
    text["config"] = "{}";
    Plan plan = Plan::parse(text.dump());
    alignas(64) char arena[4096] = {};
    try {
      std::string note = readWeights({plan, 0, arena, 1}, WeightKind::Parameters, scratch.path(file), "--init");
      EXPECT_EQ(0, std::memcmp(arena + plan.variables[0].offset, values.data(), 48)) << file;
      return note;
    } catch (const Error &error) {
      return error.what();
    }
  };
  write("head", embedding, {{"format", "pt"}, {head, embedding}});
  write("embedding", head, {{"format", "pt"}, {embedding, head}});
  write("compiled", "_orig_mod." + head, {{"_orig_mod." + embedding, "_orig_mod." + head}});
  for (const char *file : {"head", "embedding", "compiled"})
    for (const std::string &wanted : {head, embedding})
      EXPECT_EQ(read(wanted, file), "") << file << " " << wanted;
  // The metadata of another file.
  write("neither", "model.norm.weight", {{embedding, head}});
  EXPECT_THAT(read(embedding, "neither"), HasSubstr("has no tensor " + embedding));
}

/// Of each 12 rows of the file the variable has 4 from the fourth on, those with even numbers first.
// Of parameters that are rows of one tensor, a mean over rows is one for each, and so it is where a parameter is a single row.
TEST(Weights, MeansOverRowsOfJoinedTensorsAreApart) {
  Json rest = Json::array(), none = {Json::array(), Json::array()};
  auto add = [&](const char *name, const char *role, std::vector<int64_t> shape, Json more) {
    Json entry = {{"name", name},     {"role", role},     {"type", "f32"},    {"shape", shape}, {"local_shape", shape},
                  {"sharding", none}, {"stacked", false}, {"offset", 64 * (rest.size() + 2)}, {"in", 0}};
    entry.update(more);
    rest.push_back(entry);
  };
  auto storage = [](int64_t begin, int64_t size) {
    return Json{{"tensor", "w"}, {"slice", {{"dim", 0}, {"begin", begin}, {"size", size}, {"full", 5}}}};
  };
  add("one", "parameter", {1, 3}, {{"init", {{"kind", "normal"}, {"std", 1.0}}}, {"storage", storage(4, 1)}});
  for (auto [of, rows] : {std::pair("w", 4), std::pair("one", 1)})
    for (auto [state, shape] : std::map<const char *, std::vector<int64_t>>{
             {"row", {rows, 1}}, {"column", {1, 3}}, {"momentum", {rows, 3}}})
      add((std::string(of) + "." + state).c_str(), state, shape, {{"of", of}});
  Json json = planText({4, 3}, {4, 3}, none, false, storage(0, 4));
  json["optimizer_states"] = {"row", "column", "momentum"};
  for (const Json &variable : rest)
    json["variables"].push_back(variable);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const FileTensor &tensor : fileTensors(Plan::parse(json.dump()), WeightKind::OptimizerStates))
    shapes[tensor.name] = tensor.shape;
  using Shape = std::vector<int64_t>;
  EXPECT_THAT(shapes, testing::ElementsAre(testing::Pair("w.column.0", Shape{1, 3}), testing::Pair("w.column.4", Shape{1, 3}),
                                           testing::Pair("w.momentum", Shape{5, 3}), testing::Pair("w.row", Shape{5, 1})));
}

TEST(Weights, ReadsRowsThatLieApart) {
  TemporaryDirectory scratch;
  const int64_t rows[] = {4, 6, 5, 7, 16, 18, 17, 19};
  for (bool transposed : {false, true}) {
    Json storage = storageOfRowsApart(transposed);
    Plan plan = Plan::parse(planText({8, 5}, {5, 2}, {{"a"}, {"b"}}, false, storage).dump());
    std::vector<float> values;
    for (int i = 0; i < 120; ++i)
      values.push_back(float(transposed ? i % 24 * 5 + i / 24 : i));
    std::string path = scratch.path(transposed ? "transposed" : "plain");
    std::vector<int64_t> shape = transposed ? std::vector<int64_t>{5, 24}
                                            : std::vector<int64_t>{24, 5};
    SafeTensorsWriter writer(path, {{"w", shape}});
    writer.write(values.data(), 120);
    writer.finish();
    for (int64_t rank = 0; rank < 6; ++rank) {
      alignas(64) char arena[4096] = {};
      readWeights({plan, rank, arena, 1}, WeightKind::Parameters, path, "--init");
      const auto *local = reinterpret_cast<const float *>(arena + 64);
      Box box = shardOf(plan, plan.variables[0], rank);
      for (int64_t i = 0; i < box.extent[0]; ++i)
        for (int64_t j = 0; j < box.extent[1]; ++j)
          EXPECT_EQ(local[i * 2 + j], float(rows[box.begin[0] + i] * 5 + box.begin[1] + j));
    }
    // Rows beyond the file's tensor.
    storage["slice"]["begin"] = 9;
    EXPECT_THROW(Plan::parse(planText({8, 5}, {5, 2}, {{"a"}, {"b"}}, false, storage).dump()), Error);
  }
}

TEST(SafeTensors, WrittenFilesReadBack) {
  TemporaryDirectory scratch;
  {
    SafeTensorsWriter writer(scratch.path("f"), {{"b", {2, 3}}, {"a", {}}, {"empty", {0, 4}}});
    float b[] = {1, 2, 3, 4, 5, 6}, a = 7;
    writer.write(b, 6);
    writer.write(&a, 1);
    writer.write(nullptr, 0);
    writer.finish();
  }
  SafeTensorsReader reader(scratch.path("f"), "--init");
  ASSERT_NE(reader.find("transformer.b"), nullptr);
  EXPECT_THAT(reader.find("b")->shape, testing::ElementsAre(2, 3));
  float value;
  memcpy(&value, reader.find("b")->data + 20, 4);
  EXPECT_EQ(value, 6);
  memcpy(&value, reader.find("a")->data, 4);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(reader.find("c"), nullptr);
}

// A damaged file is an Error, never a crash: every truncation, and every byte of
// the header changed.
TEST(SafeTensors, DamagedFilesAreErrors) {
  TemporaryDirectory scratch;
  SafeTensorsWriter writer(scratch.path("f"), {{"b", {2, 3}}});
  float b[6] = {};
  writer.write(b, 6);
  writer.finish();
  std::string good = readFile(scratch.path("f"));
  auto read = [&](const std::string &content) {
    writeFile(scratch.path("g"), content);
    try {
      SafeTensorsReader reader(scratch.path("g"), "--init");
      return true;
    } catch (const Error &error) {
      EXPECT_THAT(error.what(), HasSubstr(scratch.path("g")));
      return false;
    }
  };
  EXPECT_TRUE(read(good));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(read(good.substr(0, length)));
  for (size_t i = 0; i + 24 < good.size(); ++i)
    for (char value : {'\0', '-', '9', '"', '\xff'}) {
      std::string bad = good;
      bad[i] = value;
      read(bad);
    }
}

// As strict as the library of the format: https://huggingface.co/docs/safetensors
TEST(SafeTensors, ReadsWhatTheFormatAllows) {
  TemporaryDirectory scratch;
  auto read = [&](const std::string &header, size_t dataBytes) -> std::string {
    uint64_t length = header.size();
    writeFile(scratch.path("f"), std::string(reinterpret_cast<char *>(&length), 8) + header +
                                     std::string(dataBytes, 'x'));
    try {
      SafeTensorsReader reader(scratch.path("f"), "--init");
      return "";
    } catch (const Error &error) {
      return error.what();
    }
  };
  auto entry = [](const std::string &shape, const std::string &offsets, const char *dtype = "F32") {
    return "{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}";
  };
  std::string a = entry("[2]", "[0,8]"), b = entry("[1]", "[8,12]");
  EXPECT_EQ(read("{\"a\":" + a + ",\"b\":" + b + "}   ", 12), "");
  EXPECT_EQ(read("{\"b\":" + b + ",\"a\":" + a + ",\"none\":" + entry("[0]", "[8,8]") + "}", 12), "");
  EXPECT_EQ(read("{\"__metadata__\":{\"format\":\"pt\"}}", 0), "");
  // Headers of sizes whose first bytes are those of a pickle (0x0280) and of a zip archive (0x04034b50).
  for (size_t size : {0x280, 0x10280, 0x4034b50})
    EXPECT_EQ(read("{\"a\":" + a + std::string(size - a.size() - 6, ' ') + "}", 8), "") << size;
  for (auto [header, bytes, part] : std::vector<std::tuple<std::string, size_t, const char *>>{
           {"{\"a\":" + a + ",\"b\":" + entry("[1]", "[4,8]") + "}", 8, "a and b both lie at byte 4"},
           {"{\"a\":" + a + ",\"b\":" + a + "}", 8, "a and b both lie at byte 0"},
           {"{\"a\":" + a + ",\"b\":" + entry("[1]", "[12,16]") + "}", 16,
            "bytes 8 to 12 of the data, before tensor b, belong to no tensor"},
           {"{\"a\":" + a + "}", 9, "bytes 8 to 9 of the data belong to no tensor"},
           {"{}", 4, "bytes 0 to 4 of the data belong to no tensor"},
           {"{\"a\":" + a + ",\"a\":" + a + "}", 8, "the key \"a\" twice"},
           {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
            "the key \"dtype\" twice"},
           {"{\"a\":" + entry("[2.0]", "[0,8]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("[2.5]", "[0,8]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("[2]", "[0,8.5]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("[2]", "[0,8,8]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("[-2]", "[0,8]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("[true,2]", "[0,8]") + "}", 8, "without a readable"},
           {"{\"a\":" + entry("2", "[0,8]") + "}", 8, "without a readable"},
           {"{\"a\":3}", 8, "without a readable"},
           {"{\"a\":" + entry("[2]", "[8,0]") + "}", 8, "lies at bytes"},
           {"{\"a\":" + entry("[4611686018427387904,4,0]", "[0,0]") + "}", 0, "not those of its shape"},
           {"{\"a\":" + entry("[18446744073709551615,0]", "[0,0]") + "}", 0, "not those of its shape"},
           {"{\"a\":" + entry("[2]", "[0,8]", "f32") + "}", 8, "dtype f32"},
           {"{\"__metadata__\":{\"format\":3}}", 0, "not a string"},
           {"{\"__metadata__\":[]}", 0, "not an object"},
           {"{\"__metadata__\":{\"xxh128.a\":\"0\"},\"a\":" + a + "}", 8, "checksum"},
           {" {\"a\":" + a + "}", 8, "not a JSON object"},
           {"", 0, "not a JSON object"},
           {"{\"a\":" + std::string(100000, '['), 0, "deeper than 256"},
           {"{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "deeper than 256"},
           {"{" + std::string(100'000'000, ' ') + "}", 0, "the format allows 100000000"}})
    EXPECT_THAT(read(header, bytes), HasSubstr(part)) << header.substr(0, 200);

  std::string nested(100000, '[');
  for (const std::string &index : {nested, "{\"weight_map\":{\"a\":" + nested + std::string(100000, ']') + "}}"}) {
    writeFile(scratch.path("index.json"), index);
    EXPECT_THROW(SafeTensorsReader(scratch.path("index.json"), "--init"), Error);
  }
}

TEST(ElementType, HalvesConvertExactlyAndRound) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float wide = f16ToFloat(uint16_t(bits)), brain = bf16ToFloat(uint16_t(bits));
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(wide))));
    else
      EXPECT_EQ(floatToF16(wide), bits);
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(brain))));
    else
      EXPECT_EQ(floatToBf16(brain), bits);
  }
  EXPECT_EQ(floatToF16(1.0f + 0x1p-11f), floatToF16(1.0f));            // A tie, to even.
  EXPECT_EQ(floatToF16(1.0f + 3 * 0x1p-11f), floatToF16(1 + 0x1p-9f)); // A tie, to even.
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(0x1p-25f), 0);
  EXPECT_EQ(floatToBf16(1.0f + 0x1p-8f), floatToBf16(1.0f));
}
