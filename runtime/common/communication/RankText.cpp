//===- RankText.cpp - text that ranks tell each other -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/RankText.h"

#include <algorithm>

using namespace meshwright;

// Text travels as i32 words, padded with zeros.
static int64_t wordsFor(int64_t bytes) { return (bytes + 3) / 4; }

std::string meshwright::broadcastText(RankGroup &world, std::string words, int root) {
  auto size = int32_t(words.size());
  world.broadcast(ElementType::I32, &size, 1, root);
  words.resize(size_t(wordsFor(size)) * 4);
  world.broadcast(ElementType::I32, words.data(), int64_t(words.size() / 4), root);
  words.resize(size_t(size));
  return words;
}

std::vector<std::string> meshwright::gatherText(RankGroup &world, const std::string &words) {
  auto members = size_t(world.size());
  auto size = int32_t(words.size());
  std::vector<int32_t> sizes(members);
  world.allGather(ElementType::I32, &size, sizes.data(), 1);
  int64_t most = wordsFor(*std::max_element(sizes.begin(), sizes.end()));
  std::vector<std::string> all(members);
  if (most == 0)
    return all;
  std::string mine = words, together(members * size_t(most) * 4, '\0');
  mine.resize(size_t(most) * 4);
  world.allGather(ElementType::I32, mine.data(), together.data(), most);
  for (size_t i = 0; i < members; ++i)
    all[i] = together.substr(i * size_t(most) * 4, size_t(sizes[i]));
  return all;
}
