//===- LossMask.cpp - which tokens of a file count as targets ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/LossMask.h"

#include "common/data/TokenMask.h"
#include "common/monitor/Error.h"

#include <algorithm>

using namespace meshwright;

LossMask::LossMask(const std::string &path, const std::string &flag, const TokenFile &tokens)
    : file(path, flag), prefix(flag + " " + path + ": ") {
  if (file.size() != tokens.tokens())
    fail(prefix, "has ", file.size(), " bytes, but ", tokens.path(), " has ", tokens.tokens(),
         " tokens: a loss mask has one byte for each token, 1 where it counts as a target and 0 "
         "where it does not");
}

void LossMask::failValue(int64_t token, int value) const {
  fail(prefix, "byte ", token, " is ", value,
       ", but a token's byte is 1 where it counts as a target and 0 where it does not: write the "
       "mask as numbers of one byte, e.g. numpy.asarray(mask, \"u1\").tofile(\"mask.bin\")");
}

void LossMask::check(int64_t part, int64_t parts, int threads,
                     const std::function<void(int64_t bytes)> &done) const {
  constexpr int64_t block = 1 << 26;
  int64_t end = file.size() * (part + 1) / parts;
  for (int64_t first = file.size() * part / parts; first < end; first += block) {
    int64_t last = std::min(end, first + block), bad = last;
    const unsigned char *mask = file.data();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
    for (int64_t i = first; i < last; ++i)
      if (mask[i] > 1)
        bad = std::min(bad, i);
    if (bad < last)
      failValue(bad, mask[bad]);
    if (done)
      done(last - first);
  }
}

std::vector<unsigned char> LossMask::read(int64_t first, int64_t count) const {
  std::vector<unsigned char> mask(static_cast<size_t>(count));
  file.read(first, mask.data(), count);
  for (int64_t i = 0; i < count; ++i)
    if (mask[size_t(i)] > 1) // The file may have changed since the start.
      failValue(first + i, mask[size_t(i)]);
  return mask;
}

void LossMask::applyFrom(int64_t first, int64_t count, int32_t *targets) const {
  std::vector<unsigned char> mask = read(first, count);
  for (int64_t i = 0; i < count; ++i)
    if (!mask[size_t(i)])
      targets[i] = noTarget;
}

int64_t LossMask::count(const DataOrder &order, int64_t position, int64_t sequences,
                        int64_t length) const {
  int64_t counted = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    std::vector<unsigned char> mask = read(order.at(position + i) * length + 1, length);
    counted += std::count(mask.begin(), mask.end(), 1);
  }
  return counted;
}
