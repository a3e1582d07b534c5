//===- MessagePairs.cpp - which ranks send to which, and when they are connected -===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/MessagePairs.h"

#include <map>
#include <set>

namespace meshwright::cuda {

bool isMessage(const CollectiveEntry &entry) { return entry.op == "send" || entry.op == "recv"; }

std::vector<MessagePair> messagePairs(const Plan &plan) {
  std::map<int64_t, std::vector<int>> ranks; // by program
  for (int rank = 0; rank < plan.ranks(); ++rank)
    ranks[int64_t(plan.programOf(rank))].push_back(rank);
  std::set<std::tuple<int64_t, int64_t, int64_t>> done; // program, group and receiver's rank
  std::set<MessagePair> pairs; // Several programs' messages may go the same way.
  for (const CollectiveEntry &entry : plan.collectives) {
    if (entry.op != "send" || !done.insert({entry.program, entry.group, entry.peer}).second)
      continue;
    for (int from : ranks[entry.program]) {
      int to = plan.groupMembers(plan.groups[size_t(entry.group)], from).at(size_t(entry.peer));
      if (to != from)
        pairs.insert({entry.group, from, to});
    }
  }
  return {pairs.begin(), pairs.end()};
}

std::vector<std::vector<MessagePair>> roundsOf(const std::vector<MessagePair> &pairs) {
  std::vector<std::vector<MessagePair>> rounds;
  std::map<int, std::vector<bool>> taken; // rounds, by rank
  for (const MessagePair &pair : pairs) {
    std::vector<bool> &from = taken[pair.from], &to = taken[pair.to];
    auto isTaken = [](const std::vector<bool> &of, size_t round) { return round < of.size() && of[round]; };
    size_t round = 0;
    while (isTaken(from, round) || isTaken(to, round))
      ++round;
    for (std::vector<bool> *of : {&from, &to}) {
      if (of->size() <= round)
        of->resize(round + 1);
      (*of)[round] = true;
    }
    if (rounds.size() <= round)
      rounds.resize(round + 1);
    rounds[round].push_back(pair);
  }
  return rounds;
}

} // namespace meshwright::cuda
