//===- TokenData.cpp - the sequences of some files of tokens ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/TokenData.h"

#include "common/data/TokenMask.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <filesystem>

using namespace meshwright;

bool TokenData::leavesOut() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part &part) { return part.mask || part.documents; });
}

bool meshwright::haveDocuments(const std::vector<std::string> &files) {
  return !files.empty() && std::all_of(files.begin(), files.end(), TokenFile::hasDocuments);
}

std::string TokenData::nameOf(const Files &files) {
  size_t others = files.paths.size() - 1;
  return text(files.flag, " ", files.paths.front(),
              others == 0 ? "" : text(" and ", others, " other file", others > 1 ? "s" : ""));
}

/// An Error unless there is one of `files` for each of `tokens`, or none.
static void checkCount(const TokenData::Files &files, const TokenData::Files &tokens) {
  if (files.paths.empty() || files.paths.size() == tokens.paths.size())
    return;
  fail(files.flag, " names ", files.paths.size(), files.paths.size() == 1 ? " file" : " files",
       ", but ", tokens.flag, " ", tokens.paths.size(), ": give one for each, in the same order");
}

static void refuseToken(const Documents *documents, const std::string &flag) {
  if (documents && documents->isToken())
    fail(flag, ": sources and targets need document boundaries as indices of first tokens, not an "
               "end-of-document token: give a file of these, or files of 'meshwright tokenize "
               "--documents'");
}

TokenData::TokenData(const Files &tokens, const Files &masks, const Files &documents,
                     const std::string &type, int64_t length, int64_t vocabulary,
                     const std::optional<Sources> &sources, bool preferencePairs)
    : files(tokens), masks(masks), documents(documents), sourcesOf(sources), length(length),
      vocabulary(vocabulary), preferencePairs(preferencePairs) {
  bool sameToken = documents.paths.size() == 1 && documentToken(documents.paths.front());
  checkCount(masks, tokens);
  if (!sameToken)
    checkCount(documents, tokens);
  int64_t first = 0;
  for (size_t i = 0; i < tokens.paths.size(); ++i) {
    Part &part = parts.emplace_back(tokens.paths[i], tokens.flag, type);
    part.sequences = part.tokens.tokens() > 0 ? (part.tokens.tokens() - 1) / length : 0;
    if (!masks.paths.empty())
      part.mask = std::make_unique<LossMask>(masks.paths[i], masks.flag, part.tokens);
    if (documents.inTokens)
      part.documents = std::make_unique<Documents>(part.tokens, tokens.flag);
    else if (!documents.paths.empty())
      part.documents = std::make_unique<Documents>(documents.paths[sameToken ? 0 : i],
                                                   documents.flag, part.tokens, vocabulary);
    if (sources && !part.documents && part.tokens.documents())
      part.documents = std::make_unique<Documents>(part.tokens, tokens.flag);
    if (sources) {
      refuseToken(part.documents.get(), tokens.flag);
      part.sequences = part.documents ? part.documents->count() : part.tokens.tokens() / length;
    }
    if (preferencePairs)
      openPreferencePairs(part);
    part.first = first;
    first += part.sequences;
  }
  if (sources)
    openSources(type);
}

void TokenData::openPreferencePairs(Part &part) const {
  if (!part.documents)
    part.documents = std::make_unique<Documents>(part.tokens, files.flag);
  if (part.documents->isToken())
    fail(documents.flag, ": pairs of --loss dpo need document boundaries as indices of first tokens, not an "
                         "end-of-document token: give a file of these, or files of 'meshwright tokenize "
                         "--preferences'");
  part.sequences = part.documents->count();
  if (part.sequences % 2)
    fail(files.flag, " ", part.tokens.path(), ": has ", part.sequences,
         " documents, which are no pairs: a chosen and a rejected completion, each with its prompt, follow "
         "each other");
}

/// Without documents sources follow each other, each as long as can be, and so do targets. Both are
/// numbered over all files, which need not be as many.
void TokenData::openSources(const std::string &type) {
  const Files &tokens = sourcesOf->tokens, &starts = sourcesOf->documents;
  if (tokens.paths.empty())
    fail(tokens.flag, " names no file for ", name(), ": an encoder-decoder model reads a source for each target");
  checkCount(starts, tokens);
  int64_t first = 0;
  for (size_t i = 0; i < tokens.paths.size(); ++i) {
    Part &part = sourceParts.emplace_back(tokens.paths[i], tokens.flag, type);
    if (!starts.paths.empty())
      part.documents = std::make_unique<Documents>(starts.paths[i], starts.flag, part.tokens, vocabulary);
    else if (part.tokens.documents())
      part.documents = std::make_unique<Documents>(part.tokens, tokens.flag);
    refuseToken(part.documents.get(), tokens.flag);
    part.first = first;
    part.sequences = part.documents ? part.documents->count() : part.tokens.tokens() / sourcesOf->length;
    first += part.sequences;
  }
  int64_t targets = parts.back().first + parts.back().sequences;
  if (targets != first)
    fail(nameOf(tokens), " has ", first, " sources, but ", name(), " has ", targets,
         " targets: give as many, in the same order; 'meshwright tokenize' leaves out documents without text");
}

std::pair<int64_t, int64_t> TokenData::rangeOf(const Documents *documents, int64_t index,
                                               int64_t length) {
  if (!documents)
    return {index * length, (index + 1) * length};
  return documents->range(index);
}

int32_t TokenData::readSource(int64_t index, int32_t *source) const {
  const Part &part = sourceParts[size_t(placeIn(sourceParts, index).first)];
  int64_t most = sourcesOf->length;
  auto [first, end] = rangeOf(part.documents.get(), index - part.first, most);
  int64_t count = std::min(end - first, most);
  part.tokens.readTokens(first, count, vocabulary, source);
  std::fill(source + count, source + most, 0);
  return int32_t(count);
}

int64_t TokenData::longer(const std::deque<Part> &parts, int64_t length, int64_t part, int64_t count) {
  int64_t found = 0;
  for (const Part &each : parts)
    for (int64_t i = each.sequences * part / count;
         each.documents && i < each.sequences * (part + 1) / count; ++i) {
      auto [first, end] = each.documents->range(i);
      found += end - first > length;
    }
  return found;
}

int64_t TokenData::longerSources(int64_t part, int64_t count) const {
  return longer(sourceParts, sourcesOf->length, part, count);
}
int64_t TokenData::longerTargets(int64_t part, int64_t count) const {
  return longer(parts, preferencePairs ? length + 1 : length, part, count);
}

int64_t TokenData::tokens() const {
  int64_t count = 0;
  for (const Part &part : parts)
    count += part.tokens.tokens();
  return count;
}

std::optional<double> TokenData::bytesPerToken() const {
  int64_t bytes = 0;
  for (const Part &part : parts) {
    std::optional<int64_t> itsBytes = part.tokens.textBytes();
    if (!itsBytes)
      return std::nullopt;
    bytes += *itsBytes;
  }
  return double(bytes) / double(tokens());
}

std::vector<int64_t> TokenData::tokensByFile() const {
  std::vector<int64_t> counts;
  for (const Part &part : parts)
    counts.push_back(part.tokens.tokens());
  return counts;
}

int64_t TokenData::sequences(int64_t batch) const {
  if (sourcesOf) {
    int64_t pairs = parts.back().first + parts.back().sequences;
    if (pairs < batch)
      fail(name(), " and ", nameOf(sourcesOf->tokens), " have ", pairs, pairs == 1 ? " pair" : " pairs",
           ", but a batch has ", batch, ": name longer files, or compile with a smaller --batch");
    return pairs;
  }
  int64_t count = parts.back().first + parts.back().sequences;
  if (preferencePairs && count < batch)
    fail(name(), " has ", count / 2, count == 2 ? " pair" : " pairs", " of documents, but a batch has ", batch / 2,
         ": name more files, or compile with a smaller --batch");
  if (preferencePairs)
    return count;
  if (parts.size() == 1)
    return parts.front().tokens.sequences(length, batch);
  if (count < batch)
    fail(files.flag, ": the ", parts.size(), " files have ", tokens(), " tokens, ", count,
         " sequences of ", length, " that lie in one file with their targets, but a batch has ",
         batch, ": name more files, or compile with a smaller --batch or --seq");
  return count;
}

std::vector<DataOrder::Source>
TokenData::sources(const std::vector<Options::Source> &mixture) const {
  std::vector<DataOrder::Source> result;
  auto part = parts.begin();
  for (const Options::Source &source : mixture) {
    DataOrder::Source &next = result.emplace_back();
    next.first = part->first;
    next.weight = source.weight;
    int64_t count = 0;
    for (auto end = part + source.files; part != end; ++part) {
      next.sequences += part->sequences;
      count += part->tokens.tokens();
    }
    if (next.sequences == 0)
      fail(files.flag, " ", source.name, ": has ", count, " tokens and no sequence of ", length,
           " with its targets: name longer files, compile with a smaller --seq, or leave it out");
  }
  return result;
}

std::string TokenData::unused() const {
  int64_t count = 0;
  std::string first;
  for (const Part &part : parts)
    if (part.sequences == 0 && count++ == 0)
      first = text(part.tokens.path(), " with ", part.tokens.tokens(), " tokens");
  if (count == 0)
    return "";
  return text(files.flag, ": nothing is read of ", count, count == 1 ? " file" : " files",
              " too short for a sequence of ", length, " with its targets (", first,
              count > 1 ? ", ...)" : ")");
}

void TokenData::check(int64_t part, int64_t parts, int threads,
                      const std::function<void(int64_t bytes)> &done) const {
  for (const Part &each : this->parts) {
    each.tokens.checkFormat(vocabulary);
    each.tokens.checkTokens(vocabulary, part, parts, threads, done);
    if (each.mask)
      each.mask->check(part, parts, threads, done);
    if (each.documents)
      each.documents->check(part, parts, done);
  }
  for (const Part &each : sourceParts) {
    each.tokens.checkFormat(vocabulary);
    each.tokens.checkTokens(vocabulary, part, parts, threads, done);
    if (each.documents)
      each.documents->check(part, parts, done);
  }
}

TokenData::Completion TokenData::completion(const Part &part, int64_t index) const {
  auto [first, end] = part.documents->range(index);
  int64_t count = std::min(end - first, length + 1);
  Completion result;
  result.tokens.resize(size_t(count));
  part.tokens.readTokens(first, count, vocabulary, result.tokens.data());
  std::vector<unsigned char> mask = part.mask ? part.mask->read(first, count) : std::vector<unsigned char>(size_t(count), 1);
  result.prompt = std::find(mask.begin(), mask.end(), 1) - mask.begin();
  result.hasTargets = std::find(mask.begin() + 1, mask.end(), 1) != mask.end();
  return result;
}

/// Where a completion is cut off, the tokens of its prompt that are read are compared.
void TokenData::checkPrompts(const Part &part, int64_t index, const Completion &chosen, const Completion &rejected) const {
  int64_t common = std::min(chosen.prompt, rejected.prompt);
  bool areWhole = chosen.prompt < int64_t(chosen.tokens.size()) && rejected.prompt < int64_t(rejected.tokens.size());
  if ((!areWhole || chosen.prompt == rejected.prompt) &&
      std::equal(chosen.tokens.begin(), chosen.tokens.begin() + common, rejected.tokens.begin()))
    return;
  fail(files.flag, " ", part.tokens.path(), ": documents ", index, " and ", index + 1,
       " are no pair: up to the first token that counts as a target, both have the tokens of one prompt. "
       "'meshwright tokenize --preferences' writes the prompt with the chosen and the prompt with the rejected "
       "completion, in turn, and a loss mask that leaves out the prompt");
}

TokenData::Uncounted TokenData::checkPreferencePairs(int64_t part, int64_t parts,
                                                     const std::function<void(int64_t bytes)> &done) const {
  Uncounted found;
  int64_t pairs = sequences() / 2, end = pairs * (part + 1) / parts;
  for (int64_t pair = pairs * part / parts; pair < end; ++pair) {
    const Part &its = partOf(2 * pair);
    int64_t index = 2 * pair - its.first;
    Completion chosen = completion(its, index), rejected = completion(its, index + 1);
    int64_t without = !chosen.hasTargets + !rejected.hasTargets;
    // Without any token that counts nothing says where prompts end.
    if (without == 2 && found.ofBoth++ == 0)
      found.firstOfBoth = pair;
    if (without == 1 && found.ofOne++ == 0)
      found.firstOfOne = pair;
    if (without < 2)
      checkPrompts(its, index, chosen, rejected);
    done(int64_t((chosen.tokens.size() + rejected.tokens.size()) * sizeof(int32_t)));
  }
  return found;
}

std::string TokenData::pairText(int64_t pair) const {
  auto [file, number] = placeOf(2 * pair);
  return text("pair ", number / 2, " of ", path(file));
}

std::string TokenData::unusedMask() const {
  std::error_code ignored;
  for (const Part &part : parts) {
    auto mask = std::filesystem::path(part.tokens.path()).replace_extension(".mask");
    if (!part.mask && part.tokens.tokenizerSum() && std::filesystem::is_regular_file(mask, ignored))
      return text(files.flag, " ", part.tokens.path(), ": ", mask.string(),
                  " says which of its tokens count as targets, but ", masks.flag, " is not given, so that all count");
  }
  return "";
}

std::vector<std::pair<std::string, uint64_t>> TokenData::tokenizers() const {
  std::vector<std::pair<std::string, uint64_t>> known;
  auto add = [&](const std::deque<Part> &parts, const std::string &flag) {
    for (const Part &part : parts)
      if (std::optional<uint64_t> sum = part.tokens.tokenizerSum())
        known.emplace_back(flag + " " + part.tokens.path(), *sum);
  };
  add(parts, files.flag);
  if (sourcesOf)
    add(sourceParts, sourcesOf->tokens.flag);
  return known;
}

int64_t TokenData::bytes() const {
  int64_t count = 0;
  for (const Part &part : parts)
    count += part.tokens.bytes() + (part.mask ? part.mask->bytes() : 0) +
             (part.documents ? part.documents->bytes() : 0);
  for (const Part &part : sourceParts)
    count += part.tokens.bytes() + (part.documents ? part.documents->bytes() : 0);
  return count;
}

std::string TokenData::doubt() const {
  // A file may well be of one document, but not each of several.
  for (const Part &part : parts)
    if (!part.documents || part.documents->doubt().empty())
      return "";
  return parts.front().documents->doubt();
}

const TokenData::Part &TokenData::partOf(int64_t index) const {
  return parts[size_t(placeOf(index).first)];
}

void TokenData::readDocument(const Part &part, int64_t index, int32_t *inputs, int32_t *targets) const {
  auto [first, end] = part.documents->range(index);
  // The last token is a target alone.
  int64_t count = std::min(end - first, length + 1);
  std::vector<int32_t> row(static_cast<size_t>(count));
  part.tokens.readTokens(first, count, vocabulary, row.data());
  std::fill(inputs, inputs + length, 0);
  std::copy_n(row.begin(), std::min(count, length), inputs);
  std::fill(targets, targets + length, noTarget);
  std::copy(row.begin() + 1, row.end(), targets);
  if (part.mask)
    part.mask->applyFrom(first + 1, count - 1, targets);
}

void TokenData::read(int64_t index, int32_t *inputs, int32_t *targets, int32_t *positions) const {
  const Part &part = partOf(index);
  index -= part.first;
  if (preferencePairs)
    return readDocument(part, index, inputs, targets);
  if (sourcesOf) {
    auto [first, end] = rangeOf(part.documents.get(), index, length);
    int64_t count = std::min(end - first, length);
    part.tokens.readTokens(first, count, vocabulary, targets);
    inputs[0] = int32_t(sourcesOf->startToken);
    std::copy_n(targets, count < length ? count : length - 1, inputs + 1);
    std::fill(inputs + std::min(count + 1, length), inputs + length, 0);
    std::fill(targets + count, targets + length, noTarget);
    return;
  }
  part.tokens.read(index, length, vocabulary, inputs, targets);
  if (part.documents)
    part.documents->apply(index, length, inputs, positions, targets);
  if (part.mask)
    part.mask->apply(index, length, targets);
}

void TokenData::readAhead(int64_t index) const {
  const Part &part = partOf(index);
  if (sourcesOf || preferencePairs)
    return; // Where a pair lies is known only by reading the starts of its documents.
  part.tokens.readAhead(index - part.first, length);
  if (part.mask)
    part.mask->readAhead(index - part.first, length);
}

std::pair<int64_t, int64_t> TokenData::placeIn(const std::deque<Part> &parts, int64_t index) {
  auto behind = std::upper_bound(parts.begin(), parts.end(), index,
                                 [](int64_t index, const Part &part) { return index < part.first; });
  return {behind - parts.begin() - 1, index - std::prev(behind)->first};
}

int64_t TokenData::countTargets(const DataOrder &order, int64_t position,
                                int64_t sequences) const {
  if (!leavesOut())
    return sequences * length;
  int64_t counted = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    int64_t index = order.at(position + i);
    const Part &part = partOf(index);
    if (preferencePairs) {
      std::vector<int32_t> inputs(static_cast<size_t>(length)), targets(inputs);
      readDocument(part, index - part.first, inputs.data(), targets.data());
      counted += length - std::count(targets.begin(), targets.end(), noTarget);
      continue;
    }
    if (sourcesOf) {
      auto [first, end] = rangeOf(part.documents.get(), index - part.first, length);
      counted += std::min(end - first, length);
      continue;
    }
    DataOrder inOrder(part.sequences, false, 0);
    counted += meshwright::countTargets(part.tokens, part.documents.get(), part.mask.get(), inOrder,
                                        index - part.first, 1, length, vocabulary);
  }
  return counted;
}

std::string TokenData::leavingOut() const {
  if (masks.paths.empty() && documents.paths.empty())
    return "the documents of " + name();
  return nameOf(masks.paths.empty() ? documents : masks);
}
