//===- GatherTest.cpp - file tensors in windows -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/Shards.h"

#include "PlanText.h"
#include "common/checkpoint/Weights.h"
#include "common/plan/Plan.h"
#include "common/plan/Sharding.h"
#include "common/train/Context.h"
#include "cpu/ThreadCommunicator.h"
#include "meshwright/runtime/Normal.h"

#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>

using namespace meshwright;
using Json = nlohmann::json;

/// (element of the box, where it is in the file) of all elements of `parts`.
static std::set<std::pair<std::vector<int64_t>, int64_t>>
placesOf(const std::vector<StoredPart> &parts) {
  std::set<std::pair<std::vector<int64_t>, int64_t>> places;
  for (const StoredPart &part : parts) {
    int64_t count = 1;
    for (int64_t size : part.extent)
      count *= size;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> element = part.first;
      int64_t place = part.fileOffset, rest = i;
      for (size_t d = part.extent.size(); d-- > 0; rest /= part.extent[d]) {
        element[d] += rest % part.extent[d];
        place += rest % part.extent[d] * part.fileStrides[d];
      }
      EXPECT_TRUE(places.insert({element, place}).second);
    }
  }
  return places;
}

// What is gathered window by window is all of a tensor, each element once and where it belongs.
TEST(Gather, WindowsDivideFileTensors) {
  struct Case {
    std::vector<int64_t> shape; ///< of the variable
    Json storage;
  };
  for (const Case &c : {
           Case{{}, {{"tensor", "w"}}},
           Case{{7}, {{"tensor", "w"}}},
           Case{{6, 5}, {{"tensor", "w"}}},
           Case{{1, 5}, {{"tensor", "w"}, {"transpose", true}}},
           Case{{6, 1, 4}, {{"tensor", "w"}, {"transpose", true}}},
           Case{{3, 4, 5}, {{"tensor", "w"}, {"transpose", true}}},
           Case{{3, 4, 5},
                {{"tensor", "w"}, {"slice", {{"dim", 0}, {"begin", 2}, {"size", 3}, {"full", 9}}}}},
           Case{{7, 5},
                {{"tensor", "w"},
                 {"transpose", true},
                 {"slice", {{"dim", 1}, {"begin", 7}, {"size", 7}, {"full", 21}}}}},
           Case{{8, 3}, storageOfRowsApart(false)},
       }) {
    Plan plan = Plan::parse(planText(c.shape, c.shape,
                                     Json(std::vector<Json>(c.shape.size(), Json::array())), false,
                                     c.storage)
                                .dump());
    const Variable &variable = plan.variables[0];
    std::vector<int64_t> shape = storageLayout(variable).fileShape, strides = denseStrides(shape);
    std::vector<StoredPart> whole =
        storedParts(variable, std::vector<int64_t>(c.shape.size()), c.shape);
    auto wanted = placesOf(whole);
    for (int64_t capacity : {1, 2, 3, 4, 6, 10, 1000}) {
      SCOPED_TRACE(c.storage.dump() + " " + std::to_string(capacity));
      int64_t next = 0;
      std::vector<StoredPart> all;
      for (const Box &window : windowsOf(shape, capacity)) {
        EXPECT_LE(window.elements(), capacity);
        int64_t begin = 0;
        for (size_t d = 0; d < shape.size(); ++d)
          begin += window.begin[d] * strides[d];
        EXPECT_EQ(begin, next);
        next += window.elements();
        std::vector<StoredPart> inside;
        for (const StoredPart &part : whole)
          if (auto found = partWithin(part, shape, window))
            inside.push_back(*found);
        for (const auto &[element, place] : placesOf(inside))
          EXPECT_TRUE(place >= begin && place < next) << place;
        all.insert(all.end(), inside.begin(), inside.end());
      }
      int64_t elements = 1;
      for (int64_t size : shape)
        elements *= size;
      EXPECT_EQ(next, elements);
      EXPECT_EQ(placesOf(all), wanted);
    }
  }
}

/// `body(context)` on each rank of the plan.
template <typename Body> static void onRanks(const Plan &plan, Body body) {
  std::vector<std::unique_ptr<RankStatus>> owned;
  std::vector<RankStatus *> statuses;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    statuses.push_back(owned.emplace_back(std::make_unique<RankStatus>(rank)).get());
  auto world = ThreadCommunicator::createWorld(int(plan.ranks()), 1, statuses);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < statuses.size(); ++rank)
    threads.emplace_back([&, rank] {
      MwContext context(plan, std::move(world[rank]), 1, *statuses[rank]);
      body(context);
    });
  for (std::thread &thread : threads)
    thread.join();
}

// Each element is where it belongs in the file, whoever holds it, in however many parts.
TEST(Gather, RanksSendSeveralPartsOfAWindow) {
  const int64_t rows[] = {4, 6, 5, 7, 16, 18, 17, 19}, columns = 6;
  for (bool transposed : {false, true}) {
    Json storage = storageOfRowsApart(transposed);
    Plan plan = Plan::parse(planText({8, columns}, {4, 2}, {{"a"}, {"b"}}, false, storage).dump());
    const Variable &variable = plan.variables[0];
    FileTensor tensor{"w", storageLayout(variable).fileShape, {{&variable, 0}}};
    std::map<int64_t, float> wanted; // by place in the file
    for (int64_t row : rows)
      for (int64_t column = 0; column < columns; ++column)
        wanted[transposed ? column * 24 + row : row * columns + column] =
            float(row * columns + column);
    for (int64_t capacity : {1, 7, 30, 1000}) {
      SCOPED_TRACE(storage.dump() + " " + std::to_string(capacity));
      std::vector<float> file;
      onRanks(plan, [&](MwContext &context) {
        alignas(64) char arena[4096] = {};
        auto *local = reinterpret_cast<float *>(arena + 64);
        Box box = shardOf(plan, variable, context.rank());
        for (int64_t i = 0; i < box.extent[0]; ++i)
          for (int64_t j = 0; j < box.extent[1]; ++j)
            local[i * 2 + j] = float(rows[box.begin[0] + i] * columns + box.begin[1] + j);
        GatherBuffers buffers;
        buffers.capacity = capacity;
        gatherTensor(context, arena, tensor, buffers, [&](const float *elements, int64_t count) {
          EXPECT_EQ(elements != nullptr, context.rank() == 0);
          if (elements)
            file.insert(file.end(), elements, elements + count);
        });
      });
      ASSERT_EQ(int64_t(file.size()), 24 * columns);
      for (auto [place, value] : wanted)
        EXPECT_EQ(file[size_t(place)], value) << place;
    }
  }
}

// Of shards each element is written by one rank, also where several hold it, and its rank writes what belongs there.
TEST(Gather, ShardsHaveEachElementOnce) {
  const int64_t rows[] = {4, 6, 5, 7, 16, 18, 17, 19}, columns = 6;
  struct Division {
    std::vector<int64_t> local;
    Json sharding;
  };
  for (const Division &division : {Division{{4, 2}, {{"a"}, {"b"}}}, Division{{4, 6}, {{"a"}, Json::array()}},
                                   Division{{8, 2}, {Json::array(), {"b"}}}, Division{{8, 6}, {Json::array(), Json::array()}}})
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(division.sharding.dump() + (transposed ? " transposed" : ""));
      Plan plan = Plan::parse(planText({8, columns}, division.local, division.sharding, false, storageOfRowsApart(transposed)).dump());
      const Variable &variable = plan.variables[0];
      FileTensor tensor{"w", storageLayout(variable).fileShape, {{&variable, 0}}};
      std::vector<int64_t> strides = denseStrides(tensor.shape);
      std::map<int64_t, float> found; // by place in the file
      std::mutex mutex;
      onRanks(plan, [&](MwContext &context) {
        alignas(64) char arena[4096] = {};
        auto *local = reinterpret_cast<float *>(arena + 64);
        Box box = shardOf(plan, variable, context.rank());
        for (int64_t i = 0; i < box.extent[0]; ++i)
          for (int64_t j = 0; j < box.extent[1]; ++j)
            local[i * division.local[1] + j] = float(rows[box.begin[0] + i] * columns + box.begin[1] + j);
        for (const std::vector<FileTensor> &file : shardsOf(plan, {tensor}, context.rank()))
          for (const FileTensor &shard : file) {
            GatherBuffers buffers;
            buffers.capacity = 5;
            std::vector<float> elements;
            gatherTensor(context, arena, shard, buffers,
                         [&](const float *part, int64_t count) { elements.insert(elements.end(), part, part + count); });
            ASSERT_EQ(int64_t(elements.size()), shard.box->elements());
            std::lock_guard<std::mutex> lock(mutex);
            for (int64_t i = 0; i < int64_t(elements.size()); ++i) {
              int64_t row = shard.box->begin[0] + i / shard.box->extent[1], column = shard.box->begin[1] + i % shard.box->extent[1];
              EXPECT_TRUE(found.emplace(row * strides[0] + column, elements[size_t(i)]).second) << row << " " << column;
            }
          }
      });
      EXPECT_EQ(int64_t(found.size()), 8 * columns);
      for (int64_t row : rows)
        for (int64_t column = 0; column < columns; ++column)
          EXPECT_EQ(found[transposed ? column * 24 + row : row * columns + column], float(row * columns + column));
    }
}

// The lower halves of masters are added to the upper ones that parameters are, here and from other
// ranks.
TEST(Gather, HalvesMakeTheNumber) {
  Json sharding = {{"a"}, Json::array()};
  Json text = planText({6, 5}, {3, 5}, sharding);
  text["variables"][0]["type"] = "bf16";
  text["variables"].push_back(masterText("i16", {3, 5}, sharding));
  Plan plan = Plan::parse(text.dump());
  std::vector<FileTensor> tensors = fileTensors(plan, WeightKind::Parameters);
  ASSERT_EQ(tensors.size(), 1u);
  for (int64_t capacity : {4, 1000}) {
    std::vector<float> file;
    onRanks(plan, [&](MwContext &context) {
      alignas(64) char arena[4096] = {};
      initializeWeights({plan, context.rank(), arena, 1}, 7);
      GatherBuffers buffers;
      buffers.capacity = capacity;
      gatherTensor(context, arena, tensors[0], buffers, [&](const float *elements, int64_t count) {
        if (elements)
          file.insert(file.end(), elements, elements + count);
      });
    });
    ASSERT_EQ(file.size(), 30u);
    for (size_t i = 0; i < file.size(); ++i)
      EXPECT_EQ(file[i], 2.0f * normalValue(initialKey(7, "w"), i)) << i;
  }
}
