//===- BatchRamp.cpp - how the batch of a step grows ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/BatchRamp.h"

#include "common/monitor/Error.h"

#include <charconv>

using namespace meshwright;

BatchRamp::Numbers BatchRamp::parse(const std::string &value) {
  Numbers numbers{0, 0, 0};
  const char *at = value.data(), *end = at + value.size();
  auto read = [&](int64_t &number, char before) {
    if (before && (at == end || *at++ != before))
      return false;
    auto [stop, error] = std::from_chars(at, end, number);
    at = stop;
    return error == std::errc() && number >= 1;
  };
  if (!read(numbers.start, 0) || !read(numbers.increment, '+') || !read(numbers.samples, ':') || at != end)
    fail("--batch-ramp is \"", value,
         "\": it must be START+INCREMENT:SAMPLES, three whole numbers of sequences from 1 on, such as 8+8:100000: the "
         "batch begins with 8 sequences and grows in steps of 8 until 100000 have been read");
  return numbers;
}

int64_t BatchRamp::samplesOf(const std::string &text) { return parse(text).samples; }

/// "2, 4 or 6": the multiples of `unit` below `end` that `isPossible`, at most ten of them.
template <typename Test> static std::string choices(int64_t unit, int64_t end, Test isPossible) {
  std::string words, last;
  int64_t count = 0;
  for (int64_t number = unit; number < end && count <= 10; number += unit) {
    if (!isPossible(number))
      continue;
    if (!last.empty())
      words += (words.empty() ? "" : ", ") + last;
    last = ++count <= 10 ? std::to_string(number) : "..";
  }
  return words.empty() ? last : words + (count > 10 ? ", " : " or ") + last;
}

BatchRamp::BatchRamp(const std::string &text, int64_t batch, int64_t microbatches)
    : numbers(parse(text)), batch(batch) {
  int64_t unit = batch / microbatches;
  auto [start, increment, samples] = numbers;
  std::string of = meshwright::text("--batch-ramp ", text, ": this executable's batch of ", batch, " sequences has ",
                                    microbatches, " microbatches of ", unit, ", so ");
  if (start % unit || start >= batch)
    fail(of, "START must be ", choices(unit, batch, [](int64_t) { return true; }), ", but is ", start);
  auto divides = [&, start = start](int64_t number) { return (batch - start) % number == 0; };
  if (increment % unit || increment > batch - start || !divides(increment))
    fail(of, "INCREMENT must be ", choices(unit, batch - start + 1, divides), " to come from ", start, " to ", batch,
         ", but is ", increment);
}

int64_t BatchRamp::batchAt(int64_t position) const {
  if (position >= numbers.samples)
    return batch;
  // The product may exceed 2^63.
  int64_t parts = (batch - numbers.start) / numbers.increment;
  auto done = int64_t(static_cast<unsigned __int128>(position) * uint64_t(parts) / uint64_t(numbers.samples));
  return numbers.start + done * numbers.increment;
}
