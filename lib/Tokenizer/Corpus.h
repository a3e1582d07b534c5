//===- Corpus.h - text in files -----------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORPUS_H
#define MESHWRIGHT_TOKENIZER_CORPUS_H

#include "Tokenizer/Core/Tokenizer.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace meshwright::tokenizer {

/// Text to encode by itself: a document, or a part of one.
struct TextPart {
  std::string_view text;
  bool beginsDocument = true, endsDocument = true;
  const char *line = nullptr; ///< in its portion, where it is of a line of JSON
};

/// What one thread encodes at a time.
struct Portion {
  size_t file = 0;
  std::string_view bytes;                    ///< lines of JSON, or text
  bool beginsFile = false, endsFile = false; ///< whether it is their first or their last
};

/// The files of a command line: each file that is no JSONL is a document, each line of one that is
/// JSONL, by its ending, is another.
class Corpus {
public:
  /// Finds and maps the files; those of folders are taken in the order of their paths. An Error
  /// naming one that is no text, unless `anyBytes`.
  Corpus(const std::vector<std::string> &paths, bool anyBytes);
  ~Corpus();

  uint64_t bytes() const;
  size_t files() const { return sources.size(); }
  bool isJsonLines(size_t file) const { return sources[file].isJsonLines; }
  const std::string &path(size_t file) const { return sources[file].path; }
  /// Files that are documents without text, of which there is no portion.
  size_t emptyDocuments() const {
    return size_t(std::count_if(sources.begin(), sources.end(), [](const Source &source) {
      return !source.isJsonLines && source.text.empty();
    }));
  }

  /// The next portion, cut where `tokenizer` allows, or false after the last. Of one thread at a
  /// time.
  bool next(const Tokenizer &tokenizer, Portion &portion);

  /// "FILE, line N" of what `at` points to.
  std::string place(size_t file, const char *at) const;

private:
  struct Source {
    std::string path;
    bool isJsonLines;
    std::string_view text;
  };
  void addFile(const std::string &path, bool anyBytes);

  std::deque<Source> sources;
  size_t file = 0, offset = 0;
};

/// The texts of a portion, each in turn. Of JSON lines it is the string that each line's object has
/// as `field`; an Error naming a line that has none.
class PortionReader {
public:
  PortionReader(const Corpus &corpus, std::string field)
      : corpus(corpus), field(std::move(field)) {}

  template <typename Each> void each(const Portion &portion, Each &&take) {
    if (!corpus.isJsonLines(portion.file)) {
      take(TextPart{portion.bytes, portion.beginsFile, portion.endsFile});
      return;
    }
    eachLine(portion, [&](std::string_view line) {
      take(TextPart{textOf(portion, line), true, true, line.data()});
    });
  }

  /// Calls `take` with each line that is not empty.
  template <typename Take> static void eachLine(const Portion &portion, Take &&take) {
    for (size_t begin = 0; begin < portion.bytes.size();) {
      size_t end = std::min(portion.bytes.find('\n', begin), portion.bytes.size());
      std::string_view line = portion.bytes.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != line.npos)
        take(line);
      begin = end + 1;
    }
  }

private:
  std::string_view textOf(const Portion &portion, std::string_view line);

  const Corpus &corpus;
  std::string field, text;
};

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORPUS_H
