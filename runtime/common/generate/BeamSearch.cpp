//===- BeamSearch.cpp - the likeliest sequence that a search finds --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The program reads one sequence. So the beams are read one after the other, each from the keys and values
// that it has in common with those before, which are kept token by token.
//
//===----------------------------------------------------------------------===//
#include "common/generate/BeamSearch.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;

namespace {
/// A sequence that may go on.
struct Beam {
  std::vector<int32_t> tokens; ///< behind the prompt
  double score = 0;            ///< the logarithm of its probability
  KeptSequence kept;           ///< without its last token
};

/// One more token of a beam.
struct Candidate {
  double score;
  size_t beam;
  int32_t token;
};

struct Finished {
  double score;
  std::vector<int32_t> tokens;
};
} // namespace

EarlyStopping meshwright::earlyStoppingNamed(const std::string &name) {
  return name == "on" ? EarlyStopping::On : name == "off" ? EarlyStopping::Off : EarlyStopping::Never;
}

/// The `count` best continuations, in order.
static std::vector<Candidate> bestOf(std::vector<Candidate> all, size_t count) {
  auto isBetter = [](const Candidate &a, const Candidate &b) {
    if (a.score != b.score)
      return a.score > b.score;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + std::ptrdiff_t(count), all.end(), isBetter);
  all.resize(count);
  return all;
}

std::vector<int32_t> BeamSearch::run(Decoder &decoder, const Conventions &conventions,
                                     const std::vector<int32_t> &prompt, int64_t most) const {
  auto width = size_t(beams);
  // Enough that as many go on where each beam has one continuation for each token that ends it.
  size_t considered = std::max<size_t>(2, 1 + conventions.ends.size()) * width;
  auto scaled = [&](double score, int64_t length) {
    return score / std::pow(double(length), lengthPenalty);
  };
  std::vector<Beam> running(1);
  std::vector<Finished> finished;
  for (int64_t made = 0; made < most; ++made) {
    std::vector<Candidate> all;
    for (size_t i = 0; i < running.size(); ++i) {
      Beam &beam = running[i];
      decoder.goBackTo(beam.kept);
      std::vector<double> scores = logProbabilities(
          made == 0 ? decoder.read(prompt) : decoder.read({beam.tokens.back()}), decoder.vocabulary());
      beam.kept = decoder.keep();
      conventions.apply(scores, made, most);
      std::vector<Candidate> its;
      for (size_t token = 0; token < scores.size(); ++token)
        if (std::isfinite(scores[token]))
          its.push_back({beam.score + scores[token], i, int32_t(token)});
      its = bestOf(std::move(its), considered);
      all.insert(all.end(), its.begin(), its.end());
    }
    all = bestOf(std::move(all), considered);

    std::vector<Beam> next;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const Candidate &candidate = all[rank];
      const Beam &from = running[candidate.beam];
      std::vector<int32_t> tokens = from.tokens;
      tokens.push_back(candidate.token);
      bool ends = conventions.isEnd(candidate.token) || made + 1 == most;
      // The others are there for beams to go on with.
      if (ends && rank < width)
        finished.push_back({scaled(candidate.score, made + 1), std::move(tokens)});
      else if (!ends && next.size() < width)
        next.push_back({std::move(tokens), candidate.score, from.kept});
    }
    std::stable_sort(finished.begin(), finished.end(),
                     [](const Finished &a, const Finished &b) { return a.score > b.score; });
    if (finished.size() > width)
      finished.resize(width);
    running = std::move(next);
    if (running.empty())
      break;
    if (finished.size() < width)
      continue;
    bool looksFar = earlyStopping == EarlyStopping::Never && lengthPenalty > 0;
    double possible = scaled(running.front().score, looksFar ? most : made + 1);
    if (earlyStopping == EarlyStopping::On || possible <= finished.back().score)
      break;
  }
  return finished.empty() ? std::vector<int32_t>() : finished.front().tokens;
}
