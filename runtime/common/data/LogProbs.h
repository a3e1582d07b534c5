//===- LogProbs.h - log-probabilities of sequences in a file ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LOGPROBS_H
#define MESHWRIGHT_RUNTIME_COMMON_LOGPROBS_H

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// The log-probability of each sequence of some data under a model: little-endian f32, one after the
/// other in the order of the files. A run with --log-probs writes the file, and training reads it as
/// --reference-log-probs.
class LogProbs {
public:
  /// Reads `path`, given by `flag`; an Error unless it has a number for each of the `sequences` of
  /// `data`, none of which is above 0 or not finite.
  LogProbs(const std::string &path, const std::string &flag, int64_t sequences, const std::string &data);

  float at(int64_t sequence) const { return values[size_t(sequence)]; }

private:
  std::vector<float> values;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LOGPROBS_H
