//===- Normalizer.cpp - what changes text before it is divided -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Normalizer.h"

#include "Tokenizer/Core/Spec.h"
#include "Tokenizer/Core/SplitPattern.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>
#include <cstdlib>
#include <utf8proc.h>
#include <vector>

namespace meshwright::tokenizer {

static bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; });
}

namespace {

/// NFC, NFD, NFKC or NFKD by utf8proc.
class UnicodeForm : public Normalizer {
public:
  UnicodeForm(int options) : options(options) {}
  std::string_view apply(std::string_view text, std::string &storage) const override {
    if (isAscii(text))
      return text;
    storage.clear();
    append(text, storage);
    return storage;
  }
  bool mayCutLines() const override { return true; }

protected:
  void append(std::string_view text, std::string &to) const {
    // utf8proc 2.8 loses U+11A7 after a syllable, which nothing before it composes with.
    constexpr std::string_view lost = "\xe1\x86\xa7";
    size_t begin = 0;
    for (size_t at; (at = text.find(lost, begin + 1)) != text.npos; begin = at)
      appendPart(text.substr(begin, at - begin), to);
    appendPart(text.substr(begin), to);
  }

private:
  void appendPart(std::string_view text, std::string &to) const {
    utf8proc_uint8_t *result = nullptr;
    utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                                         utf8proc_ssize_t(text.size()), &result,
                                         utf8proc_option_t(options | UTF8PROC_STABLE));
    if (size < 0)
      fail("cannot normalize text of ", text.size(), " bytes: ", utf8proc_errmsg(size));
    to.append(reinterpret_cast<const char *>(result), size_t(size));
    free(result);
  }

  int options;
};

/// NFC, which changes little of most text: only the parts around characters that it may change are
/// given to utf8proc.
class ComposedForm : public UnicodeForm {
public:
  ComposedForm() : UnicodeForm(UTF8PROC_COMPOSE) {}

  std::string_view apply(std::string_view text, std::string &storage) const override {
    const uint8_t *classes = charClasses();
    const char *end = text.data() + text.size(), *done = text.data();
    bool changed = false;
    // The last character may compose with the next.
    for (const char *at = text.data(), *last = at; at != end;) {
      const char *next = at;
      if (!(classes[nextCodePoint(next)] & MayCompose)) {
        last = at;
        at = next;
        continue;
      }
      while (next != end) {
        const char *after = next;
        if (!(classes[nextCodePoint(after)] & MayCompose))
          break;
        next = after;
      }
      if (!changed)
        storage.clear();
      changed = true;
      storage.append(done, last);
      append(std::string_view(last, size_t(next - last)), storage);
      done = at = last = next;
    }
    if (!changed)
      return text;
    storage.append(done, end);
    return storage;
  }
};

/// Each character in lower case by itself, as Rust's char::to_lowercase.
class Lowercase : public Normalizer {
public:
  std::string_view apply(std::string_view text, std::string &storage) const override {
    storage.clear();
    for (const char *at = text.data(), *end = at + text.size(); at != end;) {
      uint32_t c = nextCodePoint(at);
      if (c == 0x130) // The one letter whose lower case is two characters.
        storage += "i\xcc\x87";
      else
        appendCodePoint(uint32_t(utf8proc_tolower(int32_t(c))), storage);
    }
    return storage;
  }
  bool mayCutLines() const override { return true; }
};

/// Removes what \p{Mn} is: accents, after NFD.
class StripAccents : public Normalizer {
public:
  std::string_view apply(std::string_view text, std::string &storage) const override {
    storage.clear();
    for (const char *at = text.data(), *end = at + text.size(); at != end;) {
      const char *from = at;
      if (utf8proc_category(int32_t(nextCodePoint(at))) != UTF8PROC_CATEGORY_MN)
        storage.append(from, at);
    }
    return storage;
  }
};

class Strip : public Normalizer {
public:
  Strip(bool left, bool right) : left(left), right(right) {}
  std::string_view apply(std::string_view text, std::string &) const override {
    const uint8_t *classes = charClasses();
    const char *begin = text.data(), *end = begin + text.size();
    for (const char *next = begin; left && begin != end; begin = next)
      if (!(classes[nextCodePoint(next)] & Space))
        break;
    while (right && begin != end) {
      const char *last = previousCharacter(end), *at = last;
      if (!(classes[nextCodePoint(at)] & Space))
        break;
      end = last;
    }
    return {begin, size_t(end - begin)};
  }

private:
  bool left, right;
};

class Prepend : public Normalizer {
public:
  Prepend(std::string prefix) : prefix(std::move(prefix)) {}
  std::string_view apply(std::string_view text, std::string &storage) const override {
    if (text.empty())
      return text;
    storage = prefix;
    storage += text;
    return storage;
  }

private:
  std::string prefix;
};

class Replace : public Normalizer {
public:
  Replace(std::unique_ptr<SplitPattern> pattern, std::string content)
      : pattern(std::move(pattern)), content(std::move(content)) {}
  std::string_view apply(std::string_view text, std::string &storage) const override {
    std::vector<std::pair<size_t, size_t>> found;
    pattern->matches(text, found);
    if (found.empty())
      return text;
    storage.clear();
    size_t done = 0;
    for (auto [begin, end] : found) {
      storage.append(text, done, begin - done).append(content);
      done = end;
    }
    storage.append(text, done);
    return storage;
  }

private:
  std::unique_ptr<SplitPattern> pattern;
  std::string content;
};

class NormalizerSequence : public Normalizer {
public:
  NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps(std::move(steps)) {}
  std::string_view apply(std::string_view text, std::string &storage) const override {
    std::string other;
    for (const auto &step : steps) {
      bool inStorage =
          text.data() >= storage.data() && text.data() <= storage.data() + storage.size();
      text = step->apply(text, inStorage ? other : storage);
      if (inStorage && text.data() >= other.data() && text.data() <= other.data() + other.size()) {
        size_t begin = size_t(text.data() - other.data());
        storage.swap(other);
        text = std::string_view(storage).substr(begin, text.size());
      }
    }
    return text;
  }
  bool mayCutLines() const override {
    return std::all_of(steps.begin(), steps.end(), [](auto &step) { return step->mayCutLines(); });
  }

private:
  std::vector<std::unique_ptr<Normalizer>> steps;
};

} // namespace

std::unique_ptr<Normalizer> makeNormalizer(const Json &spec) {
  if (spec.is_null())
    return nullptr;
  std::string type = typeOf(spec, "normalizer");
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const Json &step : arrayOf(spec, "normalizers", "normalizer"))
      if (auto made = makeNormalizer(step))
        steps.push_back(std::move(made));
    return std::make_unique<NormalizerSequence>(std::move(steps));
  }
  if (type == "NFC")
    return std::make_unique<ComposedForm>();
  if (type == "NFD")
    return std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE);
  if (type == "NFKC")
    return std::make_unique<UnicodeForm>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD")
    return std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  if (type == "Lowercase")
    return std::make_unique<Lowercase>();
  if (type == "StripAccents")
    return std::make_unique<StripAccents>();
  if (type == "Strip")
    return std::make_unique<Strip>(get(spec, "strip_left", true), get(spec, "strip_right", true));
  if (type == "Prepend")
    return std::make_unique<Prepend>(get(spec, "prepend", std::string()));
  if (type == "Replace")
    return std::make_unique<Replace>(makeSpecPattern(spec, "normalizer Replace"),
                                     get(spec, "content", std::string()));
  fail("its normalizer ", type,
       " is not supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
       "StripAccents, Prepend, Replace and Sequence are",
       type == "Precompiled" ? "; for a SentencePiece model give its tokenizer.model" : "");
}

} // namespace meshwright::tokenizer
