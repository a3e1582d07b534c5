//===- Documents.h - the documents of a stream of tokens --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DOCUMENTS_H
#define MESHWRIGHT_RUNTIME_COMMON_DOCUMENTS_H

#include "common/data/LossMask.h"

#include <memory>
#include <optional>

namespace meshwright {

/// The token that `text`, the value of --documents, names: its digits; nothing where it names a
/// file.
std::optional<int64_t> documentToken(const std::string &text);

/// Where the documents of a file of tokens begin: after each end-of-document token, or where an index
/// says so, little-endian u64 that ascend, in a file of its own or in that of the tokens. A document that goes on from the sequence before begins
/// anew with its own sequence.
class Documents {
public:
  /// `value` of `flag` is a token, which must be below `vocabulary`, or the file of an index.
  Documents(const std::string &value, const std::string &flag, const TokenFile &tokens,
            int64_t vocabulary);

  /// Those that `tokens`, given by `flag`, says itself; an Error if it says nothing of them.
  Documents(const TokenFile &tokens, const std::string &flag);

  /// Reads the `part`-th of `parts` equal pieces of the index; an Error naming the first start there
  /// that is not above the one before it and below the number of tokens. `done` is told of the bytes
  /// that have been read.
  void check(int64_t part, int64_t parts,
             const std::function<void(int64_t bytes)> &done = {}) const;

  /// Writes the position of each of the `length` tokens of sequence `index` in its document, and sets
  /// targets that begin another document to `noTarget`: nothing before them says what they are.
  void apply(int64_t index, int64_t length, const int32_t *inputs, int32_t *positions,
             int32_t *targets) const;

  /// What may be wrong with the token, though it is one: that many tokens are not it. Else empty.
  std::string doubt() const;

  /// Whether a token ends documents: so nothing says how many there are.
  bool isToken() const { return token.has_value(); }
  int64_t count() const { return starts(); }
  /// The first token of document `number`, and the one after its last.
  std::pair<int64_t, int64_t> range(int64_t number) const;

  int64_t bytes() const { return token ? 0 : starts() * int64_t(sizeof(uint64_t)); }

private:
  uint64_t start(int64_t number) const;
  int64_t starts() const {
    return index ? index->size() / int64_t(sizeof(uint64_t)) : tokens.documents();
  }
  [[noreturn]] void failStart(int64_t number, const std::string &why) const;
  /// Whether each of tokens 1 to `length` of sequence `sequence`, counted from its first, begins a
  /// document.
  std::vector<bool> begins(int64_t sequence, int64_t length, const int32_t *inputs) const;

  std::string prefix; ///< "--documents starts.bin: "
  std::optional<int64_t> token;
  std::unique_ptr<MappedFile> index; ///< null with a token, or where the file of tokens has it
  const TokenFile &tokens;
};

/// How many targets count in `sequences` sequences of `length` tokens from `position` of `order` on:
/// those that begin no document, if `documents` is given, and that `mask`, if given, says.
int64_t countTargets(const TokenFile &file, const Documents *documents, const LossMask *mask,
                     const DataOrder &order, int64_t position, int64_t sequences, int64_t length,
                     int64_t vocabulary);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DOCUMENTS_H
