//===- Trace.cpp - what a rank really did, for chrome://tracing -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Trace.h"

#include "common/checkpoint/OutputFile.h"
#include "common/communication/RankGroup.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>

using namespace meshwright;

thread_local int Trace::row = 0;

int64_t Trace::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

void Trace::add(const char *name, const char *category, int64_t begin, int64_t end, int64_t index,
                int64_t bytes, const char *location) {
  if (!recording)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (!std::strcmp(category, kernelCategory))
    kernels += end - begin;
  if (!keeping)
    return;
  if (spans.size() < limit)
    spans.push_back({name, category, location, begin, end, index, bytes, row});
  else
    ++dropped;
}

/// `value` inside a JSON string.
static std::string escaped(const char *value) {
  std::string result;
  for (const char *c = value; *c; ++c) {
    if (*c == '"' || *c == '\\')
      result += '\\';
    // Names of ops and locations have no other characters that JSON does not take.
    result += (unsigned char)*c < ' ' ? ' ' : *c;
  }
  return result;
}

std::string Trace::json(int rank) const {
  std::string process = "\"pid\":" + std::to_string(rank);
  std::string result = "{\"name\":\"process_name\",\"ph\":\"M\"," + process +
                       ",\"args\":{\"name\":\"rank " + std::to_string(rank) +
                       "\",\"dropped_spans\":" + std::to_string(dropped) + ",\"sent_bytes\":{";
  auto list = [&](const std::map<std::string, int64_t> &bytesOf) {
    for (const auto &[kind, bytes] : bytesOf)
      result += (result.back() == '{' ? "\"" : ",\"") + kind + "\":" + std::to_string(bytes);
  };
  list(sentBytes);
  result += "},\"copied_bytes\":{";
  list(copiedBytes);
  result += "}}}";
  std::vector<std::string> names{"program", "communication", "GPU", "GPU communication"};
  for (int32_t number = 0; number < copyEngines; ++number) {
    CopyEngine engine = CopyEngine::numbered(number);
    names.push_back(std::string("copies ") + (engine.stores ? "to " : "from ") +
                    spaceRow(engine.space).text);
  }
  std::set<int> rows{0};
  for (const Span &span : spans)
    rows.insert(span.row);
  for (int row : rows)
    result += ",\n{\"name\":\"thread_name\",\"ph\":\"M\"," + process +
              ",\"tid\":" + std::to_string(row) + ",\"args\":{\"name\":\"" +
              names[size_t(row)] + "\"}}";
  for (const Span &span : spans) {
    char times[96];
    snprintf(times, sizeof(times), "\"ts\":%.3f,\"dur\":%.3f", double(span.begin) / 1e3,
             double(span.end - span.begin) / 1e3);
    result += ",\n{\"name\":\"" + escaped(span.name) + "\",\"cat\":\"" + span.category +
              "\",\"ph\":\"X\"," + process + ",\"tid\":" + std::to_string(span.row) + "," +
              times + ",\"args\":{";
    auto argument = [&](const char *name, const std::string &value) {
      result += (result.back() == '{' ? "\"" : ",\"") + std::string(name) + "\":" + value;
    };
    if (span.index >= 0)
      argument("index", std::to_string(span.index));
    if (span.bytes >= 0)
      argument("bytes", std::to_string(span.bytes));
    if (span.location && *span.location)
      argument("location", "\"" + escaped(span.location) + "\"");
    result += "}}";
  }
  return result;
}

// Text travels as i32 words, four bytes to a word, padded with spaces: JSON does
// not mind them.
void Trace::write(const Trace &mine, RankGroup &world, OutputFile *file) {
  std::string events = mine.json(world.rank());
  events.resize((events.size() + 3) / 4 * 4, ' ');
  // Ranks meet after each part, so that none waits for more than one (Rounds.h).
  if (world.rank() != 0) {
    for (int rank = 1; rank < world.rank(); ++rank)
      world.barrier();
    int64_t words = int64_t(events.size() / 4);
    int32_t halves[2] = {int32_t(words >> 31), int32_t(words & 0x7fffffff)};
    world.send(ElementType::I32, halves, 2, 0);
    world.send(ElementType::I32, events.data(), words, 0);
    for (int rank = world.rank(); rank < world.size(); ++rank)
      world.barrier();
    return;
  }
  file->write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  file->write(events);
  for (int rank = 1; rank < world.size(); ++rank) {
    int32_t halves[2];
    world.receive(ElementType::I32, halves, 2, rank);
    int64_t words = (int64_t(halves[0]) << 31) + halves[1];
    events.resize(size_t(words) * 4);
    world.receive(ElementType::I32, events.data(), words, rank);
    file->write(",\n");
    file->write(events);
    world.barrier();
  }
  file->write("\n]}\n");
  file->close();
}
