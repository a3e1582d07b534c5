//===- LogProbs.cpp - log-probabilities of sequences in a file --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/LogProbs.h"

#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"

#include <cmath>

using namespace meshwright;

LogProbs::LogProbs(const std::string &path, const std::string &flag, int64_t sequences,
                   const std::string &data) {
  MappedFile file(path, flag);
  if (file.size() != sequences * int64_t(sizeof(float)))
    fail(flag, " ", path, ": has ", file.size(), " bytes, but ", data, " has ", sequences,
         " sequences, whose log-probabilities are ", sequences * int64_t(sizeof(float)),
         " bytes of f32: write the file with --eval-only --log-probs on the same data");
  values.resize(size_t(sequences));
  file.read(0, values.data(), file.size());
  for (int64_t i = 0; i < sequences; ++i)
    if (!(std::isfinite(at(i)) && at(i) <= 0))
      fail(flag, " ", path, ": number ", i, " is ", at(i),
           ", but the logarithm of a probability is at most 0: write the file with --eval-only "
           "--log-probs on the same data");
}
