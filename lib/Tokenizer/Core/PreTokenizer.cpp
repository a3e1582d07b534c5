//===- PreTokenizer.cpp - what divides text into words -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/PreTokenizer.h"

#include "Tokenizer/Core/Spec.h"
#include "Tokenizer/Core/SplitPattern.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>

namespace meshwright::tokenizer {

namespace {

/// What becomes of matches.
enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

/// Characters of some classes, each a match.
class ClassPattern : public SplitPattern {
public:
  ClassPattern(uint8_t any, bool asciiSigns = false) : any(any), asciiSigns(asciiSigns) {}
  void matches(std::string_view text,
               std::vector<std::pair<size_t, size_t>> &found) const override {
    const uint8_t *classes = charClasses();
    for (const char *at = text.data(), *end = at + text.size(); at != end;) {
      const char *from = at;
      uint32_t c = nextCodePoint(at);
      // Punctuation is all of ASCII's signs too, $ and + for example.
      if (classes[c] & any ||
          (asciiSigns && c > ' ' && c < 0x7f && !(classes[c] & (Letter | Number))))
        found.emplace_back(size_t(from - text.data()), size_t(at - text.data()));
    }
  }

private:
  uint8_t any;
  bool asciiSigns;
};

class Split : public PreTokenizer {
public:
  Split(std::unique_ptr<SplitPattern> pattern, Behavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}

  void split(Pieces &pieces) const override {
    pieces.next.clear();
    for (std::string_view piece : pieces.list) {
      pieces.matches.clear();
      pattern->matches(piece, pieces.matches);
      divide(piece, pieces);
    }
    pieces.list.swap(pieces.next);
  }
  bool mayCutLines() const override {
    return pattern->mayCutLines() && behavior == Behavior::Isolated;
  }

private:
  void divide(std::string_view piece, Pieces &pieces) const {
    // The parts in order: matches, and what is between them.
    std::vector<std::string_view> &out = pieces.next;
    auto eachPart = [&](auto &&take) {
      size_t done = 0;
      for (auto [begin, end] : pieces.matches) {
        if (begin > done)
          take(piece.substr(done, begin - done), invert);
        if (end > begin)
          take(piece.substr(begin, end - begin), !invert);
        done = end;
      }
      if (done < piece.size())
        take(piece.substr(done), invert);
    };
    auto extend = [&](std::string_view part) {
      out.back() = {out.back().data(), out.back().size() + part.size()};
    };
    size_t first = out.size();
    bool previous = false; // whether the part before is a match
    switch (behavior) {
    case Behavior::Removed:
      eachPart([&](std::string_view part, bool isMatch) {
        if (!isMatch)
          out.push_back(part);
      });
      return;
    case Behavior::Isolated:
      eachPart([&](std::string_view part, bool) { out.push_back(part); });
      return;
    case Behavior::Contiguous:
      eachPart([&](std::string_view part, bool isMatch) {
        if (out.size() > first && previous == isMatch)
          extend(part);
        else
          out.push_back(part);
        previous = isMatch;
      });
      return;
    case Behavior::MergedWithPrevious:
      eachPart([&](std::string_view part, bool isMatch) {
        if (isMatch && !previous && out.size() > first)
          extend(part);
        else
          out.push_back(part);
        previous = isMatch;
      });
      return;
    case Behavior::MergedWithNext:
      eachPart([&](std::string_view part, bool isMatch) {
        if (previous && !isMatch)
          extend(part);
        else
          out.push_back(part);
        previous = isMatch;
      });
      return;
    }
  }

  std::unique_ptr<SplitPattern> pattern;
  Behavior behavior;
  bool invert;
};

/// Writes a prefix before pieces that do not begin with it.
class Prefix : public PreTokenizer {
public:
  Prefix(std::string prefix, bool firstOnly) : prefix(std::move(prefix)), firstOnly(firstOnly) {}
  void split(Pieces &pieces) const override {
    for (std::string_view &piece : pieces.list) {
      bool first = piece.data() == pieces.textBegin;
      if (piece.substr(0, prefix.size()) == prefix || (firstOnly && !first))
        continue;
      std::string &text = pieces.owned.emplace_back(prefix);
      text += piece;
      piece = text;
      if (first)
        pieces.textBegin = text.data();
    }
  }

private:
  std::string prefix;
  bool firstOnly;
};

/// Writes Metaspace's replacement for blanks.
class Blanks : public PreTokenizer {
public:
  Blanks(std::string replacement) : replacement(std::move(replacement)) {}
  void split(Pieces &pieces) const override {
    for (std::string_view &piece : pieces.list) {
      if (piece.find(' ') == piece.npos)
        continue;
      bool first = piece.data() == pieces.textBegin;
      std::string &text = pieces.owned.emplace_back();
      for (char c : piece)
        if (c == ' ')
          text += replacement;
        else
          text += c;
      piece = text;
      if (first)
        pieces.textBegin = text.data();
    }
  }

private:
  std::string replacement;
};

class PreTokenizerSequence : public PreTokenizer {
public:
  PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps(std::move(steps)) {}
  void split(Pieces &pieces) const override {
    for (const auto &step : steps)
      step->split(pieces);
  }
  // What a second pattern makes of a line's end is not known.
  bool mayCutLines() const override { return steps.size() == 1 && steps.front()->mayCutLines(); }

private:
  std::vector<std::unique_ptr<PreTokenizer>> steps;
};

using Steps = std::vector<std::unique_ptr<PreTokenizer>>;

} // namespace

static Behavior behaviorOf(const Json &spec, const char *otherwise) {
  static constexpr std::pair<const char *, Behavior> names[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  std::string name = get(spec, "behavior", std::string(otherwise));
  for (auto [known, behavior] : names)
    if (name == known)
      return behavior;
  fail("its pre-tokenizer has the behavior ", name,
       ", which is none of Removed, Isolated, "
       "MergedWithPrevious, MergedWithNext and Contiguous");
}

static void addMetaspace(const Json &spec, Steps &steps) {
  std::string replacement = get(spec, "replacement", std::string("\xe2\x96\x81"));
  std::string scheme = get(spec, "prepend_scheme",
                           std::string(get(spec, "add_prefix_space", true) ? "always" : "never"));
  if (scheme != "always" && scheme != "first" && scheme != "never")
    fail("its pre-tokenizer Metaspace has the prepend_scheme ", scheme,
         ", which is none of always, first and never");
  steps.push_back(std::make_unique<Blanks>(replacement));
  if (scheme != "never")
    steps.push_back(std::make_unique<Prefix>(replacement, scheme == "first"));
  if (get(spec, "split", true))
    steps.push_back(
        std::make_unique<Split>(makeLiteralPattern(replacement), Behavior::MergedWithNext, false));
}

static void addSteps(const Json &spec, Steps &steps, bool &isByteLevel) {
  std::string type = typeOf(spec, "pre-tokenizer");
  if (isByteLevel)
    fail("its pre-tokenizer has ", type,
         " after ByteLevel, which is not supported: ByteLevel must be "
         "the last step");
  auto add = [&](std::unique_ptr<SplitPattern> pattern, Behavior behavior, bool invert = false) {
    steps.push_back(std::make_unique<Split>(std::move(pattern), behavior, invert));
  };
  if (type == "Sequence") {
    for (const Json &step : arrayOf(spec, "pretokenizers", "pre-tokenizer"))
      addSteps(step, steps, isByteLevel);
  } else if (type == "ByteLevel") {
    isByteLevel = true;
    if (get(spec, "add_prefix_space", true))
      steps.push_back(std::make_unique<Prefix>(" ", false));
    if (get(spec, "use_regex", true))
      add(makePattern(patterns::gpt2), Behavior::Isolated);
  } else if (type == "Split") {
    add(makeSpecPattern(spec, "pre-tokenizer Split"), behaviorOf(spec, "Isolated"),
        get(spec, "invert", false));
  } else if (type == "Digits") {
    add(std::make_unique<ClassPattern>(Number),
        get(spec, "individual_digits", false) ? Behavior::Isolated : Behavior::Contiguous);
  } else if (type == "Punctuation") {
    add(std::make_unique<ClassPattern>(Punctuation, true), behaviorOf(spec, "Isolated"));
  } else if (type == "WhitespaceSplit") {
    add(std::make_unique<ClassPattern>(Space), Behavior::Removed);
  } else if (type == "Whitespace") {
    // \w+|[^\w\s]+ as Rust's regular expressions have it, whose words have joiners.
    std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})";
    add(makeRegexPattern("[" + word + "]+|[^" + word + "\\s]+"), Behavior::Removed, true);
  } else if (type == "Metaspace") {
    addMetaspace(spec, steps);
  } else {
    fail("its pre-tokenizer ", type,
         " is not supported: ByteLevel, Split, Digits, Punctuation, "
         "Whitespace, WhitespaceSplit, Metaspace and Sequence are");
  }
}

std::unique_ptr<PreTokenizer> makePreTokenizer(const Json &spec, bool &isByteLevel) {
  isByteLevel = false;
  if (spec.is_null())
    return nullptr;
  Steps steps;
  addSteps(spec, steps, isByteLevel);
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

} // namespace meshwright::tokenizer
