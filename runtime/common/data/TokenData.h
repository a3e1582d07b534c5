//===- TokenData.h - the sequences of some files of tokens ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TOKENDATA_H
#define MESHWRIGHT_RUNTIME_COMMON_TOKENDATA_H

#include "common/data/Documents.h"
#include "common/data/LossMask.h"
#include "common/data/TokenFile.h"
#include "common/launch/Options.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Whether all of the files say where their documents begin.
bool haveDocuments(const std::vector<std::string> &files);

/// Files of tokens as one source of sequences: those of the first file, then those of the second,
/// and so on. A sequence and its targets are of one file; what a file has beyond its last whole
/// sequence is not used. Each file may have a loss mask and documents of its own.
class TokenData {
public:
  /// Files and the flags that gave them.
  struct Files {
    std::string flag;
    std::vector<std::string> paths;
    bool inTokens = false; ///< of documents: each file of tokens says where its own begin
  };

  /// What an encoder reads: a source for each sequence, which is a target then.
  struct Sources {
    Files tokens, documents;
    int64_t length;     ///< of a source, at most; shorter ones are padded, longer ones cut off
    int64_t startToken; ///< what a decoder reads before the first token of a target
  };

  /// Maps the files. There are as many masks as token files, or none, and so of documents, or one
  /// token that ends them in all files. Sequences have `length` tokens below `vocabulary`. Where they are
  /// `preferencePairs`, each is a document, shorter ones padded and longer ones cut off, and a file has as many chosen as
  /// rejected ones, in turn.
  TokenData(const Files &tokens, const Files &masks, const Files &documents,
            const std::string &type, int64_t length, int64_t vocabulary,
            const std::optional<Sources> &sources = std::nullopt, bool preferencePairs = false);

  int64_t tokens() const;
  /// Those of each file.
  std::vector<int64_t> tokensByFile() const;
  /// An Error if there are fewer than a `batch`.
  int64_t sequences(int64_t batch = 1) const;
  /// The sources of a mixture, each of the next of the files; an Error if one has no sequence.
  std::vector<DataOrder::Source> sources(const std::vector<Options::Source> &mixture) const;
  /// Files in which there is no whole sequence; empty if each has one.
  std::string unused() const;

  /// Reads the `part`-th of `parts` equal pieces of every file with `threads` threads; an Error
  /// naming the first value there that may not be. `done` is told of the bytes that have been read,
  /// of `bytes()` in all parts.
  void check(int64_t part, int64_t parts, int threads,
             const std::function<void(int64_t bytes)> &done) const;
  int64_t bytes() const;
  /// What may be wrong with the token that ends documents; else empty.
  std::string doubt() const;

  /// Copies sequence `index` and its targets, those that do not count being `noTarget`; where there
  /// are documents, also the positions of its tokens in theirs.
  void read(int64_t index, int32_t *inputs, int32_t *targets, int32_t *positions) const;

  /// Copies the source of sequence `index`, then zeros, and returns how many tokens it has.
  int32_t readSource(int64_t index, int32_t *source) const;
  /// How many sources, and how many targets, have more tokens than are read, of the `part`-th of `parts` of all.
  int64_t longerSources(int64_t part, int64_t parts) const;
  int64_t longerTargets(int64_t part, int64_t parts) const;

  /// Pairs with completions of which no token is read and counts as a target.
  struct Uncounted {
    int64_t ofBoth = 0, ofOne = 0; ///< how many pairs: of which both completions are so, and one
    int64_t firstOfBoth = -1, firstOfOne = -1; ///< the first of them, counted over all files
  };
  /// Looks for such pairs in the `part`-th of `parts` of all; an Error where two documents have not the same prompt,
  /// which is what is before the first token that counts. `done` is told of the bytes that have been read.
  Uncounted checkPreferencePairs(int64_t part, int64_t parts, const std::function<void(int64_t bytes)> &done) const;
  /// "pair 3 of pairs.bin".
  std::string pairText(int64_t pair) const;

  /// Asks the system to read sequence `index` ahead, which goes on meanwhile.
  void readAhead(int64_t index) const;
  /// The number of the file in which sequence `index` is, and that of the sequence there.
  std::pair<int64_t, int64_t> placeOf(int64_t index) const { return placeIn(parts, index); }
  const std::string &path(int64_t file) const { return parts[size_t(file)].tokens.path(); }
  /// Bytes of text of a token, on average; none if a file does not say it.
  std::optional<double> bytesPerToken() const;

  /// The tokenizer's file, as the first file of tokens says.
  std::string tokenizer() const { return parts.front().tokens.tokenizer(); }

  /// Flag and path of each file that says its tokenizer, and that one's checksum.
  std::vector<std::pair<std::string, uint64_t>> tokenizers() const;

  /// That all targets count although `meshwright tokenize` has written a mask; else empty.
  std::string unusedMask() const;

  /// How many targets count in `sequences` sequences from `position` of `order` on.
  int64_t countTargets(const DataOrder &order, int64_t position, int64_t sequences) const;

  /// Whether targets may be left out.
  bool leavesOut() const;
  bool hasSources() const { return sourcesOf.has_value(); }
  bool hasPreferencePairs() const { return preferencePairs; }
  bool hasMasks() const { return bool(parts.front().mask); }
  /// "--loss-mask mask.bin" or the documents, for messages about targets that are left out.
  std::string leavingOut() const;
  /// "--data a.bin" or "--data a.bin and 2 other files".
  std::string name() const { return nameOf(files); }

private:
  struct Part {
    Part(const std::string &path, const std::string &flag, const std::string &type)
        : tokens(path, flag, type) {}
    TokenFile tokens;
    std::unique_ptr<LossMask> mask;       ///< null: all targets count
    std::unique_ptr<Documents> documents; ///< null: sequences are one
    int64_t first = 0, sequences = 0;
  };

  /// What is read of a document of a pair.
  struct Completion {
    std::vector<int32_t> tokens;
    int64_t prompt;  ///< how many tokens are before the first that counts; all if there is none
    bool hasTargets; ///< whether a token counts and is a target, which the first one is not
  };

  static std::string nameOf(const Files &files);
  void openSources(const std::string &type);
  void openPreferencePairs(Part &part) const;
  /// As `read`, of a part of pairs.
  void readDocument(const Part &part, int64_t index, int32_t *inputs, int32_t *targets) const;
  Completion completion(const Part &part, int64_t index) const;
  void checkPrompts(const Part &part, int64_t index, const Completion &chosen, const Completion &rejected) const;
  static std::pair<int64_t, int64_t> placeIn(const std::deque<Part> &parts, int64_t index);
  static int64_t longer(const std::deque<Part> &parts, int64_t length, int64_t part, int64_t count);
  /// The tokens of a target, and of a source, of which the first `length` are read.
  static std::pair<int64_t, int64_t> rangeOf(const Documents *documents, int64_t index, int64_t length);
  const Part &partOf(int64_t index) const;

  Files files, masks, documents;
  std::optional<Sources> sourcesOf;
  int64_t length, vocabulary;
  bool preferencePairs;
  std::deque<Part> parts, sourceParts;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TOKENDATA_H
