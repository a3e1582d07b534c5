//===- ReplicaCheck.cpp - whether replicas are equal ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/ReplicaCheck.h"

#include "common/checkpoint/Checksum.h"
#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"
#include "common/train/Context.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace meshwright;

/// Bytes of a checksum, and how many 32-bit words that is.
static constexpr size_t checksumBytes = 32, checksumWords = checksumBytes / 4;

static std::string tensorName(const Variable &variable, int64_t number) {
  const char *what = variable.role == Variable::Master ? " (f32 master weights)" : variable.isOptimizerState() ? " of the optimizer" : "";
  return storageName(variable, number) + what;
}

/// All that equal parts have in common: the tensor, its type and layout, and which part of it this is.
static std::string keyOf(const Plan &plan, const Variable &variable, int64_t number, int64_t rank) {
  Box box = shardOf(plan, variable, rank);
  auto after = [&](const std::vector<int64_t> &sizes) {
    return shapeText({sizes.begin() + int64_t(variable.numbered), sizes.end()});
  };
  const auto &slice = variable.storage.slice;
  return text(tensorName(variable, number), "|", nameOf(variable.type), variable.storage.transpose, "|",
              slice ? slice->begin + rowsAbove(variable, number) : -1, "|", after(variable.shape), after(variable.localShape), after(box.begin),
              after(box.extent));
}

std::vector<ReplicaCheck::Part> ReplicaCheck::partsOf(int64_t rank) const {
  const Plan &plan = context.plan;
  size_t program = plan.programOf(rank);
  std::vector<Part> parts;
  // This rank's variables are those that it finds in memory; others' are only named.
  bool isOwn = rank == context.rank();
  for (const Variable &variable : isOwn ? plan.variables : plan.allVariables) {
    // Counts of a rank's own tokens differ.
    if ((!isOwn && variable.program != program) || variable.role == Variable::Tokens)
      continue;
    Box box = shardOf(plan, variable, rank);
    if (box.elements() == 0)
      continue;
    int64_t elements = 1;
    for (size_t d = variable.numbered; d < variable.localShape.size(); ++d)
      elements *= variable.localShape[d];
    for (int64_t number : tensorsIn(variable, box))
      parts.push_back({&variable, number, tensorOffset(variable, box, number), elements});
  }
  return parts;
}

ReplicaCheck::ReplicaCheck(MwContext &context) : context(context), own(partsOf(context.rank())) {
  std::map<std::string, Replicas> found;
  for (int rank = 0; rank < context.world->size(); ++rank) {
    std::vector<Part> parts = partsOf(rank);
    mostParts = std::max(mostParts, parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      Replicas &replicas = found[keyOf(context.plan, *parts[i].variable, parts[i].number, rank)];
      replicas.name = tensorName(*parts[i].variable, parts[i].number);
      replicas.holders.emplace_back(rank, i);
    }
  }
  for (auto &[key, replicas] : found)
    if (replicas.holders.size() > 1)
      values.push_back(std::move(replicas));
  if (values.empty())
    fail("--check-replicas: no two ranks of this mesh (", context.plan.meshText(), ") hold the same value: leave it out");
}

/// "rank 2", "ranks 0, 1 and 3".
static std::string ranksText(const std::vector<int> &ranks) {
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr size_t most = 8;
  for (size_t i = 0; i < std::min(most, ranks.size()); ++i)
    words += text(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return ranks.size() > most ? text(words, " and ", ranks.size() - most, " more") : words;
}

std::string ReplicaCheck::difference(const VariableAddresses &addresses) {
  ActivityScope activity(context.status, "comparing replicas");
  TraceScope span(context.trace.get(), "compare replicas", "io");
  std::vector<int32_t> mine(mostParts * checksumWords), all(mine.size() * size_t(context.world->size()));
#pragma omp parallel for schedule(dynamic) num_threads(context.threads)
  for (size_t i = 0; i < own.size(); ++i) {
    const Part &part = own[i];
    int64_t width = bytesOf(part.variable->type);
    std::string checksum = checksumOf(addresses.of(*part.variable) + part.offset * width, size_t(part.elements * width));
    std::memcpy(&mine[i * checksumWords], checksum.data(), checksumBytes);
  }
  context.world->allGather(ElementType::I32, mine.data(), all.data(), int64_t(mine.size()));
  std::string words;
  size_t differ = 0;
  for (const Replicas &replicas : values) {
    std::map<std::string, std::vector<int>> byChecksum;
    for (auto [rank, number] : replicas.holders) {
      const int32_t *checksum = &all[(size_t(rank) * mostParts + number) * checksumWords];
      byChecksum[std::string(reinterpret_cast<const char *>(checksum), checksumBytes)].push_back(rank);
    }
    if (byChecksum.size() == 1 || differ++)
      continue;
    // Most are right, or as many of which the first rank is one.
    std::vector<int> right;
    for (const auto &[checksum, ranks] : byChecksum)
      if (ranks.size() > right.size() || (ranks.size() == right.size() && ranks < right))
        right = ranks;
    std::vector<int> wrong;
    for (const auto &[checksum, ranks] : byChecksum)
      if (ranks != right)
        wrong.insert(wrong.end(), ranks.begin(), ranks.end());
    std::sort(wrong.begin(), wrong.end());
    words = text("tensor ", replicas.name, " has other bits on ", ranksText(wrong), " than on ", ranksText(right),
                 wrong.size() >= right.size() ? " (which of them is right is not known)" : "");
  }
  return differ > 1 ? text(words, "; so have ", differ - 1, " more tensors") : words;
}
