//===- Documents.cpp - the documents of a stream of tokens ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/Documents.h"

#include "common/data/TokenMask.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

using namespace meshwright;

std::optional<int64_t> meshwright::documentToken(const std::string &text) {
  int64_t number = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (stop != end || error == std::errc::invalid_argument || number < 0)
    return {};
  return error == std::errc::result_out_of_range ? std::numeric_limits<int64_t>::max() : number;
}

Documents::Documents(const std::string &value, const std::string &flag, const TokenFile &tokens,
                     int64_t vocabulary)
    : prefix(flag + " " + value + ": "), token(documentToken(value)), tokens(tokens) {
  if (token && *token >= vocabulary)
    fail(prefix, "is no token of the model, whose vocabulary has ", vocabulary,
         ": give the token that ends documents, or, for a file of that name, ./", value);
  if (token)
    return;
  index = std::make_unique<MappedFile>(value, flag);
  if (index->size() == 0)
    fail(prefix, "is empty, which would make all of ", tokens.path(), " one document: write the "
         "number of each document's first token as u64 (a single 0 for one document), or give the "
         "token that ends documents");
  if (index->size() % int64_t(sizeof(uint64_t)))
    fail(prefix, "has ", index->size(), " bytes, which are no whole number of u64: write the number "
         "of each document's first token, e.g. numpy.asarray(starts, \"<u8\").tofile(\"", value,
         "\")");
}

Documents::Documents(const TokenFile &tokens, const std::string &flag)
    : prefix(flag + " " + tokens.path() + ": "), tokens(tokens) {
  if (tokens.documents() == 0)
    fail(prefix, "does not say where its documents begin: make it with 'meshwright tokenize --documents'");
}

uint64_t Documents::start(int64_t number) const {
  if (!index)
    return tokens.documentStart(number);
  uint64_t value = 0;
  // Not from the mapping, which the file's end may have left.
  index->read(number * int64_t(sizeof(value)), &value, sizeof(value));
  return value;
}

std::pair<int64_t, int64_t> Documents::range(int64_t number) const {
  auto first = int64_t(start(number));
  int64_t end = number + 1 < starts() ? int64_t(start(number + 1)) : tokens.tokens();
  if (first < 0 || first >= end || end > tokens.tokens()) // The file may have changed since the start.
    failStart(number, text(", but the document ends before token ", end));
  return {first, end};
}

void Documents::failStart(int64_t number, const std::string &why) const {
  fail(prefix, "start ", number, " (at byte ", number * int64_t(sizeof(uint64_t)), ") is ",
       start(number), why, ": starts are the numbers of documents' first tokens, each above the one "
       "before, as u64");
}

void Documents::check(int64_t part, int64_t parts,
                      const std::function<void(int64_t bytes)> &done) const {
  if (token)
    return;
  constexpr int64_t block = 1 << 23;
  auto at = [&](int64_t number) {
    uint64_t value = 0;
    if (!index)
      return start(number);
    std::memcpy(&value, index->data() + number * int64_t(sizeof(value)), sizeof(value));
    return value;
  };
  int64_t end = starts() * (part + 1) / parts;
  for (int64_t first = starts() * part / parts; first < end; first += block) {
    int64_t last = std::min(end, first + block);
    for (int64_t i = first; i < last; ++i) {
      if (at(i) >= uint64_t(tokens.tokens()))
        failStart(i, text(", but ", tokens.path(), " has ", tokens.tokens(), " tokens"));
      if (i > 0 && at(i) <= at(i - 1))
        failStart(i, text(" after ", at(i - 1)));
    }
    if (done)
      done((last - first) * int64_t(sizeof(uint64_t)));
  }
}

std::string Documents::doubt() const {
  constexpr int64_t most = 1 << 24; // No document is as long, and reading them takes a moment.
  if (!token || tokens.has(*token, most))
    return "";
  return text(prefix, tokens.tokens() > most ? text("the first ", grouped(most), " tokens of ") : "",
              tokens.path(), tokens.tokens() > most ? " have" : " has", " no such token, so all of it is one document");
}

std::vector<bool> Documents::begins(int64_t sequence, int64_t length, const int32_t *inputs) const {
  std::vector<bool> result(size_t(length) + 1);
  if (token) {
    for (int64_t i = 0; i < length; ++i)
      result[size_t(i) + 1] = inputs[i] == *token;
    return result;
  }
  auto first = uint64_t(sequence * length);
  int64_t low = 0, high = starts();
  while (low < high) {
    int64_t middle = (low + high) / 2;
    (start(middle) <= first ? low : high) = start(middle) <= first ? middle + 1 : middle;
  }
  for (uint64_t before = first; low < starts(); ++low) {
    uint64_t at = start(low);
    if (at <= before) // The file may have changed since the start.
      failStart(low, text(" after ", before));
    if (at - first > uint64_t(length))
      break;
    result[size_t(at - first)] = true;
    before = at;
  }
  return result;
}

void Documents::apply(int64_t sequence, int64_t length, const int32_t *inputs, int32_t *positions,
                      int32_t *targets) const {
  std::vector<bool> begin = begins(sequence, length, inputs);
  for (int64_t i = 0; i < length; ++i) {
    positions[i] = i == 0 || begin[size_t(i)] ? 0 : positions[i - 1] + 1;
    if (begin[size_t(i) + 1])
      targets[i] = noTarget;
  }
}

int64_t meshwright::countTargets(const TokenFile &file, const Documents *documents,
                                 const LossMask *mask, const DataOrder &order, int64_t position,
                                 int64_t sequences, int64_t length, int64_t vocabulary) {
  if (!documents && !mask)
    return sequences * length;
  if (!documents)
    return mask->count(order, position, sequences, length);
  std::vector<int32_t> inputs(static_cast<size_t>(length)), targets(inputs), positions(inputs);
  int64_t counted = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    int64_t sequence = order.at(position + i);
    file.read(sequence, length, vocabulary, inputs.data(), targets.data());
    documents->apply(sequence, length, inputs.data(), positions.data(), targets.data());
    if (mask)
      mask->apply(sequence, length, targets.data());
    counted += length - std::count(targets.begin(), targets.end(), noTarget);
  }
  return counted;
}
