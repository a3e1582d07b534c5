//===- Stragglers.cpp - ranks that compute slower than others -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Stragglers.h"

#include "common/communication/RankGroup.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unistd.h>

using namespace meshwright;

/// Of an even number of values, which are in order, the mean of the two in the middle.
static double medianOf(const std::vector<double> &values) {
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

RankTimes::RankTimes(std::vector<int32_t> work)
    : work(std::move(work)), last(this->work.size()), medians(this->work.size()), told(this->work.size()) {}

double RankTimes::fellows(size_t rank) const {
  auto group = sorted.find(work[rank]);
  if (group == sorted.end() || group->second.size() < 2)
    return 0;
  // The median of all but one of the values: those behind it move up by one.
  const std::vector<double> &values = group->second;
  auto own = size_t(std::lower_bound(values.begin(), values.end(), medians[rank]) - values.begin());
  auto other = [&](size_t i) { return values[i < own ? i : i + 1]; };
  size_t others = values.size() - 1, half = others / 2;
  return others % 2 ? other(half) : (other(half - 1) + other(half)) / 2;
}

std::pair<size_t, double> RankTimes::slowest() const {
  std::pair<size_t, double> result = {0, 1};
  for (size_t rank = 0; rank < work.size(); ++rank)
    if (double others = fellows(rank); others > 0 && median(rank) / others > result.second)
      result = {rank, median(rank) / others};
  return result;
}

std::vector<size_t> RankTimes::add(const std::vector<float> &seconds) {
  sorted.clear();
  for (size_t rank = 0; rank < work.size(); ++rank) {
    last[rank].push_back(seconds[rank]);
    if (last[rank].size() > window)
      last[rank].pop_front();
    std::vector<double> values(last[rank].begin(), last[rank].end());
    std::sort(values.begin(), values.end());
    medians[rank] = medianOf(values);
    sorted[work[rank]].push_back(medians[rank]);
  }
  for (auto &[number, values] : sorted)
    std::sort(values.begin(), values.end());
  std::vector<size_t> found;
  for (size_t rank = 0; rank < work.size() && last[rank].size() == window; ++rank) {
    double others = fellows(rank), ratio = others > 0 ? median(rank) / others : 1;
    if (ratio >= slow && !told[rank])
      found.push_back(rank);
    told[rank] = ratio >= slow || (told[rank] && ratio >= over);
  }
  return found;
}

/// What all ranks have, in their order.
template <typename T> static std::vector<T> gathered(RankGroup &world, ElementType type, const T *mine, size_t count) {
  std::vector<T> all(count * size_t(world.size()));
  world.allGather(type, mine, all.data(), int64_t(count));
  return all;
}

Stragglers::Stragglers(RankGroup &world, int32_t work)
    : world(world), times(gathered(world, ElementType::I32, &work, 1)) {
  // Names of hosts travel as words of four bytes.
  std::array<int32_t, 16> name = {};
  gethostname(reinterpret_cast<char *>(name.data()), sizeof(name) - 1);
  std::vector<int32_t> names = gathered(world, ElementType::I32, name.data(), name.size());
  for (int rank = 0; rank < world.size(); ++rank)
    hosts.emplace_back(reinterpret_cast<const char *>(&names[size_t(rank) * name.size()]));
}

std::vector<std::string> Stragglers::note(double seconds) {
  auto mine = float(seconds);
  std::vector<std::string> words;
  for (size_t rank : times.add(gathered(world, ElementType::F32, &mine, 1))) {
    double own = times.median(rank), others = times.fellows(rank);
    char numbers[160];
    snprintf(numbers, sizeof(numbers), "%.2f times as long as those of ranks with the same work (%.4g ms a step, theirs %.4g ms)",
             own / others, own * 1e3, others * 1e3);
    if (world.rank() == 0)
      words.push_back(text("straggler: the kernels of rank ", rank, " on ", hosts[rank], " take ", numbers));
  }
  return words;
}
