//===- Suggestion.h - what a misspelt name was meant to be -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// For the messages of the compiler and of executables alike, so without LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_SUGGESTION_H
#define MESHWRIGHT_RUNTIME_SUGGESTION_H

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

/// Letters to insert, delete, replace or swap with their neighbour to make `a` into `b`.
inline size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The one of `names` that `word` was most likely meant to be, or nothing: one of its parts
/// between dashes is missing or too many (batch-size), or few letters differ: one in four, and
/// three at most.
template <typename Names> std::string nearestName(std::string_view word, const Names &names) {
  auto begins = [](std::string_view text, std::string_view start) {
    return text.size() > start.size() && text.substr(0, start.size()) == start &&
           text[start.size()] == '-';
  };
  std::string nearest;
  size_t distance = 1 + std::min<size_t>(word.size() / 4, 3) + (word.size() == 3);
  for (std::string_view name : names) {
    // At least as many letters differ, of words of any length.
    size_t apart = std::max(word.size(), name.size()) - std::min(word.size(), name.size());
    if (apart >= distance && !begins(word, name) && !begins(name, word))
      continue;
    size_t edits = begins(word, name) || begins(name, word) ? 1 : editDistance(word, name);
    if (edits < distance && edits < std::max(word.size(), name.size())) {
      distance = edits;
      nearest = name;
    }
  }
  return nearest;
}

/// The one of `models` that a model type was most likely meant to be, or nothing: other signs
/// stand between its words (gpt-2), or one letter in seven differs. Models of other numbers are
/// others (gemma4 is no gemma2).
template <typename Names> std::string nearestModel(std::string_view word, const Names &models) {
  auto only = [](std::string_view text, int (*kind)(int)) {
    std::string kept;
    for (unsigned char c : text)
      if (kind(c))
        kept += char(std::tolower(c));
    return kept;
  };
  std::string nearest;
  size_t distance = 1 + word.size() / 7;
  for (std::string_view model : models) {
    // Signs between words add few letters; words of any length are not compared letter by letter.
    if (word.size() > 2 * model.size() + 4)
      continue;
    if (only(word, std::isalnum) == only(model, std::isalnum))
      return std::string(model);
    size_t edits = editDistance(word, model);
    if (edits < distance && only(word, std::isdigit) == only(model, std::isdigit)) {
      distance = edits;
      nearest = model;
    }
  }
  return nearest;
}

/// Rewrites CLI11's messages for a flag that is given again, "--batch: At Most 1 required but
/// received 2", and for one without its value, "--batch: 1 required B missing".
inline std::string plainly(std::string message) {
  static constexpr std::string_view repeated = ": At Most 1 required but received ";
  if (size_t at = message.find(repeated); at != std::string::npos) {
    std::string times = message.substr(at + repeated.size());
    return message.substr(0, at) + " is given " + (times == "2" ? "twice" : times + " times");
  }
  static constexpr std::string_view middle = ": 1 required ", ending = " missing";
  size_t at = message.find(middle), end = message.rfind(ending);
  if (at == std::string::npos || end == std::string::npos || end < at)
    return message;
  return message.substr(0, at) + " needs a value, " +
         message.substr(at + middle.size(), end - at - middle.size()) +
         message.substr(end + ending.size());
}

/// The mesh axis that other systems call `word`, or nothing: tp, tensor-parallel-size.
inline std::string axisCalled(std::string_view word) {
  static constexpr std::string_view names[][2] = {
      {"dp", "data"},         {"ddp", "data"},      {"fsdp", "data"},        {"tp", "tensor"},
      {"mp", "tensor"},       {"pp", "pipe"},       {"cp", "context"},       {"ep", "expert"},
      {"model", "tensor"},    {"pipeline", "pipe"}, {"sequence", "context"}, {"data", "data"},
      {"tensor", "tensor"},   {"pipe", "pipe"},     {"context", "context"},  {"expert", "expert"},
      {"replica", "replica"}, {"hsdp", "replica"}};
  for (std::string_view ending : {"-size", "-parallel", "_size", "_parallel"})
    if (word.size() > ending.size() && word.substr(word.size() - ending.size()) == ending)
      return axisCalled(word.substr(0, word.size() - ending.size()));
  for (auto &[name, axis] : names)
    if (word == name)
      return std::string(axis);
  return "";
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_SUGGESTION_H
