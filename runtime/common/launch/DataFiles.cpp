//===- DataFiles.cpp - the files that flags of data mean ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/DataFiles.h"

#include "common/data/Documents.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <glob.h>
#include <optional>

using namespace meshwright;

/// A share below this one would be read once in a billion sequences.
static constexpr double leastShare = 1e-9;

Options::Files meshwright::filesNamed(const char *flag, const std::string &value) {
  std::error_code error;
  bool isFolder = std::filesystem::is_directory(value, error);
  if (!isFolder && (value.find_first_of("*?[") == value.npos || std::filesystem::exists(value, error)))
    return {value};
  std::string folder;
  for (char c : value)
    folder += (strchr("*?[]\\", c) ? "\\" : "") + std::string(1, c);
  glob_t matches = {};
  glob(isFolder ? (folder + "/*.bin").c_str() : value.c_str(), 0, nullptr, &matches);
  Options::Files files;
  for (size_t i = 0; i < matches.gl_pathc; ++i)
    if (!std::filesystem::is_directory(matches.gl_pathv[i], error))
      files.push_back(matches.gl_pathv[i]);
  globfree(&matches);
  if (files.empty())
    fail(flag, " ", value,
         isFolder ? ": the folder has no file whose name ends in .bin: name its files, e.g. with a "
                    "pattern"
                  : ": there is no file of such a name: check the pattern");
  std::sort(files.begin(), files.end()); // whatever the locale
  return files;
}

/// Takes the weight off `value`, PATH:WEIGHT. A path that exists is one, whatever its name.
static std::optional<double> takeWeight(std::string &value) {
  std::error_code error;
  size_t colon = value.rfind(':');
  if (colon == value.npos || std::filesystem::exists(value, error))
    return std::nullopt;
  std::string path = value.substr(0, colon), word = value.substr(colon + 1);
  double weight = 0;
  auto [stop, failed] = std::from_chars(word.data(), word.data() + word.size(), weight);
  bool isNumber = failed == std::errc() && stop == word.data() + word.size() && !word.empty();
  if (!isNumber && !std::filesystem::exists(path, error) && path.find_first_of("*?[") == path.npos)
    return std::nullopt; // A file that is missing, with a colon in its name.
  if (!isNumber || !std::isfinite(weight) || weight <= 0)
    fail("--data ", value, ": the weight \"", word, "\" is not a number above 0",
         isNumber && weight == 0 ? ": leave the source out" : ": write --data PATH:WEIGHT, such as ",
         isNumber && weight == 0 ? "" : path + ":0.3");
  value = path;
  return weight;
}

void meshwright::resolveData(Options &options) {
  Options::Files files;
  std::vector<Options::Source> sources;
  std::string first, unweighted;
  bool isOneFile = options.data.size() == 1;
  for (std::string value : options.data) {
    std::optional<double> weight = takeWeight(value);
    (weight ? first : unweighted) = value;
    Options::Files named = filesNamed("--data", value);
    isOneFile &= named == Options::Files{value};
    sources.push_back({value, int64_t(named.size()), weight.value_or(1)});
    files.insert(files.end(), named.begin(), named.end());
  }
  if (!first.empty() && !unweighted.empty())
    fail("--data ", unweighted, " has no weight, but --data ", first,
         " has one: give each a weight, or none, where all files are one source of sequences");
  double sum = 0;
  for (const Options::Source &source : sources)
    sum += source.weight;
  for (const Options::Source &source : sources)
    if (!(source.weight / sum >= leastShare))
      fail("--data ", source.name, ": its weight ", source.weight, " is less than a billionth of all weights: "
           "leave the source out, or give it more");
  if (first.empty() && !sources.empty())
    sources = {{sources.front().name, int64_t(files.size())}};
  options.data = std::move(files);
  options.sources = std::move(sources);
  if (options.shuffle && options.noShuffle)
    fail("--shuffle and --no-shuffle are both given: drop one of them");
  options.shuffle |= !isOneFile && !options.noShuffle;
}

//===--- what is evaluated -----------------------------------------------------===//

/// Takes the name off `value`, NAME=PATH. A path that exists is one, whatever its name.
static std::string takeName(std::string &value) {
  std::error_code error;
  size_t end = value.find('=');
  bool isName = end != value.npos && end > 0 &&
                std::all_of(value.begin(), value.begin() + int64_t(end), [](unsigned char c) {
                  return std::isalnum(c) || strchr("_-.", c);
                });
  if (!isName || std::filesystem::exists(value, error))
    return "";
  std::string name = value.substr(0, end);
  value.erase(0, end + 1);
  return name;
}

/// Replaces the values of a flag by the files that they mean, and gives them to the sets that they name.
static void shareOut(const char *flag, Options::Files &values, Options &options,
                     Options::Files Options::EvaluationSet::*member) {
  Options::Files files;
  std::vector<Options::EvaluationSet> &sets = options.evaluationSets;
  bool isData = member == &Options::EvaluationSet::data;
  for (std::string value : values) {
    std::string whole = value, name = takeName(value);
    if (value.empty() && !name.empty())
      fail(flag, " ", whole, ": there is no path after the name: write ", flag, " ", name, "=PATH");
    Options::Files named = filesNamed(flag, value);
    auto found = std::find_if(sets.begin(), sets.end(), [&](const auto &set) { return set.name == name; });
    if (isData && found == sets.end()) {
      sets.push_back({name, {}, {}, {}, {}, {}, {}});
      found = sets.end() - 1;
    }
    if (found == sets.end() && !name.empty())
      fail(flag, " ", whole, ": --eval-data has no set ", name, ": name one of its sets");
    // A token that ends documents is the same in all sets.
    if (found == sets.end() && (named.size() > 1 || !documentToken(value)))
      fail(flag, " ", whole, " does not say of which set of --eval-data it is: write ", flag, " NAME=PATH");
    for (Options::EvaluationSet &set : sets)
      if (found == sets.end() || &set == &*found)
        (set.*member).insert((set.*member).end(), named.begin(), named.end());
    files.insert(files.end(), named.begin(), named.end());
  }
  values = std::move(files);
}

void meshwright::resolveEvaluation(Options &options) {
  using Set = Options::EvaluationSet;
  if (options.evalData.empty())
    return; // The other flags need it.
  shareOut("--eval-data", options.evalData, options, &Set::data);
  const std::vector<Set> &sets = options.evaluationSets;
  auto unnamed = std::find_if(sets.begin(), sets.end(), [](const Set &set) { return set.name.empty(); });
  if (sets.size() > 1 && unnamed != sets.end())
    fail("--eval-data ", unnamed->data.front(), " has no name, but other sets have: write --eval-data NAME=PATH for each");
  shareOut("--eval-loss-mask", options.evalLossMask, options, &Set::lossMask);
  shareOut("--eval-documents", options.evalDocuments, options, &Set::documents);
  shareOut("--eval-source", options.evalSource, options, &Set::source);
  shareOut("--eval-source-documents", options.evalSourceDocuments, options, &Set::sourceDocuments);
  shareOut("--eval-reference-log-probs", options.evalReferenceLogProbs, options, &Set::reference);
  if (!options.logProbs.empty() && sets.size() > 1)
    fail("--log-probs ", options.logProbs, ": is of one set, but --eval-data has ", sets.size(),
         ": evaluate each in a run of its own");
}
