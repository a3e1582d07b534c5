//===- CommandLine.cpp - flags of the commands of tokenizers ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/CommandLine.h"

#include "Tokenizer/Core/Error.h"
#include "meshwright/runtime/Suggestion.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <thread>

namespace meshwright::tokenizer {

int64_t defaultThreads() {
  return std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 256);
}

void parseFlags(const std::vector<std::string> &args, const FlagTable &flags,
                std::vector<std::string> &rest, const std::string &usage) {
  std::set<std::string> given;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string &word = args[i];
    if (word.empty() || word[0] != '-' || word == "-") {
      rest.push_back(word);
      continue;
    }
    auto flag = flags.find(word);
    if (flag == flags.end()) {
      std::vector<std::string> names;
      for (const auto &[name, target] : flags)
        names.push_back(name);
      std::string meant = nearestName(word, names);
      fail("unknown option '", word, "'",
           meant.empty() ? "\n" + usage : "; did you mean '" + meant + "'?");
    }
    if (!given.insert(word).second)
      fail(word, " is given twice");
    if (auto *set = std::get_if<bool *>(&flag->second)) {
      **set = true;
      continue;
    }
    if (i + 1 == args.size() || args[i + 1].empty())
      fail(word, " needs a value\n", usage);
    const std::string &value = args[++i];
    if (auto *text = std::get_if<std::string *>(&flag->second)) {
      **text = value;
      continue;
    }
    auto number = std::get<NumberFlag>(flag->second);
    const char *end = value.data() + value.size();
    auto [stop, error] = std::from_chars(value.data(), end, *number.value);
    if (stop != end || error != std::errc() || *number.value < number.least ||
        *number.value > number.most)
      fail(word, " '", value, "' must be a whole number from ", number.least, " to ", number.most);
  }
}

} // namespace meshwright::tokenizer
