//===- LossMask.h - which tokens of a file count as targets -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LOSSMASK_H
#define MESHWRIGHT_RUNTIME_COMMON_LOSSMASK_H

#include "common/data/DataOrder.h"
#include "common/data/TokenFile.h"

namespace meshwright {

/// A byte for each token of a file: 1 where the model is to predict the token, 0 where what it
/// predicts there is no matter.
class LossMask {
public:
  /// Maps `path`, given by `flag`; an Error unless it has a byte for each of `tokens`.
  LossMask(const std::string &path, const std::string &flag, const TokenFile &tokens);

  /// Reads the `part`-th of `parts` equal pieces with `threads` threads; an Error naming the first
  /// byte there that is neither 0 nor 1. `done` is told of the bytes that have been read.
  void check(int64_t part, int64_t parts, int threads,
             const std::function<void(int64_t bytes)> &done = {}) const;

  /// Sets those targets of sequence `index` of `length` tokens that do not count to `noTarget`.
  void apply(int64_t index, int64_t length, int32_t *targets) const {
    applyFrom(index * length + 1, length, targets); // A token is the target of the one before it.
  }
  /// Of the `count` targets that are token `first` of the file and those behind it.
  void applyFrom(int64_t first, int64_t count, int32_t *targets) const;

  /// Asks the system to read what `apply` reads of sequence `index` ahead.
  void readAhead(int64_t index, int64_t length) const { file.readAhead(index * length + 1, length); }

  /// How many targets count in `sequences` sequences of `length` tokens from `position` of `order`
  /// on.
  int64_t count(const DataOrder &order, int64_t position, int64_t sequences, int64_t length) const;

  int64_t bytes() const { return file.size(); }

  /// The bytes of `count` tokens.
  std::vector<unsigned char> read(int64_t first, int64_t count) const;

private:
  [[noreturn]] void failValue(int64_t token, int value) const;

  MappedFile file;
  std::string prefix; ///< "--loss-mask mask.bin: "
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LOSSMASK_H
