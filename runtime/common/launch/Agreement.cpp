//===- Agreement.cpp - what ranks must have in common ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Agreement.h"

#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/communication/RankText.h"
#include "common/data/Documents.h"
#include "common/data/MappedFile.h"
#include "common/launch/Options.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

using namespace meshwright;
namespace fs = std::filesystem;

// Files are hashed as a whole up to 4 MiB; of larger ones 256 blocks of 4 KiB, evenly apart, the first and
// the last among them: a terabyte on a network file system must not delay the start.
static constexpr int64_t wholeBytes = int64_t(1) << 22;
static constexpr int64_t blockBytes = 4096, blocks = 256;

namespace {
/// The size and a hash of one file or of several in order.
class Fingerprint {
public:
  void add(const MappedFile &file) {
    int64_t size = file.size();
    bytes += size;
    sum.add(&size, sizeof(size));
    if (size <= wholeBytes)
      return sum.add(file.data(), size_t(size));
    for (int64_t i = 0; i < blocks; ++i) {
      auto at = int64_t(__int128(size - blockBytes) * i / (blocks - 1));
      sum.add(file.data() + at, size_t(blockBytes));
    }
  }

  std::string words() {
    return grouped(uint64_t(bytes)) + " bytes with contents " + sum.take().substr(0, 16);
  }

private:
  RunningChecksum sum;
  int64_t bytes = 0;
};
} // namespace

static std::string fileWords(const Options::Files &paths, const std::string &flag) {
  Fingerprint print;
  for (const std::string &path : paths)
    print.add(MappedFile(path, flag));
  return (paths.size() > 1 ? text(paths.size(), " files of ") : "") + print.words();
}

std::string meshwright::weightsWords(const std::string &path, const std::string &flag) {
  SafeTensorsReader weights(path, flag);
  Fingerprint print;
  for (const MappedFile &file : weights.mapped())
    print.add(file);
  return print.words();
}

static std::string checkpointWords(const std::string &directory, const std::string &flag) {
  std::vector<std::string> paths;
  for (const auto &entry : fs::directory_iterator(directory))
    if (fs::path path = entry.path(); path.extension() == ".json" || path.extension() == ".safetensors")
      paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  Fingerprint print;
  for (const std::string &path : paths)
    print.add(MappedFile(path, flag));
  return text("step ", readState(directory).step, ", ", print.words());
}

/// What of a flag is compared.
static Term termOf(const FlagValue &flag) {
  static const char *sameFile = "give every rank the same file, at whatever path";
  static const char *sameValue = "start every rank with the same flags";
  if (flag.value.empty() || flag.across == AcrossRanks::Same)
    return {flag.name, flag.value.empty() ? "not given" : flag.value, "", sameValue};
  switch (flag.across) {
  case AcrossRanks::SameDocuments:
    if (documentToken(flag.value))
      return {flag.name, flag.value, "", sameValue};
    [[fallthrough]];
  case AcrossRanks::SameFile:
    return {flag.name, fileWords(flag.files, flag.name) + (flag.sets.empty() ? "" : " as " + flag.sets),
            flag.files.size() == 1
                ? flag.value
                : text("from ", flag.files.front(), " to ", flag.files.back()),
            flag.files.size() == 1 ? sameFile
                                   : "give every rank the same files in the same order, at whatever "
                                     "path"};
  case AcrossRanks::SameWeights:
    return {flag.name, weightsWords(flag.value, flag.name), flag.value, sameFile};
  case AcrossRanks::SameCheckpoint: {
    std::string directory = findCheckpoint(flag.value);
    return {
        flag.name, checkpointWords(directory, flag.name), directory,
        "give every rank the same checkpoint, at whatever path; --resume auto looks in the folder "
        "of --save, which every rank must see"};
  }
  default:
    return {flag.name, "given", flag.value, "give it to all ranks or to none"};
  }
}

std::vector<Term> meshwright::termsOf(const Plan &plan, const Options &options) {
  std::vector<Term> terms = {
      {"the executable's plan", plan.hash, "", "start the same executable on every rank"}};
  for (const FlagValue &flag : flagValues(options))
    if (flag.across != AcrossRanks::Free)
      terms.push_back(termOf(flag));
  return terms;
}

std::map<std::string, std::string> meshwright::trainingData(const Options &options) {
  std::map<std::string, std::string> words;
  for (const FlagValue &flag : flagValues(options))
    for (const char *name : {"--data", "--loss-mask", "--documents", "--source", "--source-documents",
                             "--reference-log-probs"})
      if (flag.name == name && !flag.value.empty())
        words[name] = termOf(flag).value;
  // Adapters belong to the weights that they are trained beside.
  if (options.trainsAdapters && !options.init.empty())
    words["--init"] = weightsWords(options.init, "--init");
  return words;
}

// Between terms and between their parts is a byte that no flag and no path has.
static std::string packTerms(const std::vector<Term> &terms) {
  std::string words;
  for (const Term &term : terms)
    for (const std::string &part : {term.name, term.value, term.where, term.remedy})
      words += part + '\0';
  return words;
}

static std::vector<Term> unpackTerms(const std::string &words) {
  std::vector<Term> terms;
  std::istringstream stream(words);
  stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
  for (Term term; std::getline(stream, term.name, '\0') && std::getline(stream, term.value, '\0') &&
                  std::getline(stream, term.where, '\0') && std::getline(stream, term.remedy, '\0');)
    terms.push_back(term);
  return terms;
}

static Term termAt(const std::vector<Term> &terms, size_t i) {
  return i < terms.size() ? terms[i] : Term{"nothing more", "", "", ""};
}

/// The first term of `mine` that is not as in `theirs`; `none` if all are.
static int32_t firstDifference(const std::vector<Term> &mine, const std::vector<Term> &theirs,
                               int32_t none) {
  for (size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i)
    if (Term a = termAt(mine, i), b = termAt(theirs, i); a.name != b.name || a.value != b.value)
      return int32_t(i);
  return none;
}

void meshwright::checkAgreement(RankGroup &world, const std::vector<Term> &mine) {
  constexpr int32_t none = std::numeric_limits<int32_t>::max();
  std::vector<Term> first = unpackTerms(broadcastText(world, packTerms(mine), 0));
  int32_t differs = firstDifference(mine, first, none);
  std::vector<int32_t> all(size_t(world.size()));
  world.allGather(ElementType::I32, &differs, all.data(), 1);
  auto least = std::min_element(all.begin(), all.end());
  if (*least == none)
    return;
  auto rank = int(least - all.begin());
  auto index = size_t(*least);
  Term ours = termAt(first, index);
  Term theirs = termAt(unpackTerms(broadcastText(world, packTerms({termAt(mine, index)}), rank)), 0);
  if (ours.name != theirs.name)
    fail("rank 0 compares ", ours.name, " where rank ", rank, " compares ", theirs.name,
         ": start the same executable on every rank");
  auto say = [](const Term &term, int rank) {
    return text(term.value, " on rank ", rank, term.where.empty() ? "" : " (" + term.where + ")");
  };
  fail(ours.name, " is ", say(ours, 0), " but ", say(theirs, rank), ": ", ours.remedy);
}
