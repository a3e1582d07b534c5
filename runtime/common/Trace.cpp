//===- Trace.cpp - what a rank really did, for chrome://tracing -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Trace.h"

#include "common/Communicator.h"
#include "common/OutputFile.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>

using namespace meshwright;

thread_local int Trace::row = 0;

int64_t Trace::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

std::string Trace::json(int rank) const {
  char line[512];
  snprintf(line, sizeof(line),
           "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
           "\"args\":{\"name\":\"rank %d\",\"dropped_spans\":%" PRIu64 ",\"sent_bytes\":{",
           rank, rank, dropped);
  std::string result = line;
  for (const auto &[kind, bytes] : sentBytes)
    result += (result.back() == '{' ? "\"" : ",\"") + kind + "\":" + std::to_string(bytes);
  result += "}}}";
  for (const Span &span : spans) {
    snprintf(line, sizeof(line),
             ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
             "\"dur\":%.3f,\"args\":{",
             span.name, span.category, rank, span.row, double(span.begin) / 1e3,
             double(span.end - span.begin) / 1e3);
    result += line;
    if (span.index >= 0) {
      snprintf(line, sizeof(line), "\"index\":%" PRId64, span.index);
      result += line;
    }
    if (span.bytes >= 0) {
      snprintf(line, sizeof(line), "%s\"bytes\":%" PRId64, span.index >= 0 ? "," : "", span.bytes);
      result += line;
    }
    result += "}}";
  }
  return result;
}

// Text travels as i32 words, four bytes to a word, padded with spaces: JSON does
// not mind them.
void Trace::write(const Trace &mine, Communicator &world, const std::string &path) {
  std::string events = mine.json(world.rank());
  events.resize((events.size() + 3) / 4 * 4, ' ');
  if (world.rank() != 0) {
    int64_t words = int64_t(events.size() / 4);
    int32_t halves[2] = {int32_t(words >> 31), int32_t(words & 0x7fffffff)};
    world.send(ElementType::I32, halves, 2, 0);
    world.send(ElementType::I32, events.data(), words, 0);
    return;
  }
  OutputFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  file.write(events);
  for (int rank = 1; rank < world.size(); ++rank) {
    int32_t halves[2];
    world.receive(ElementType::I32, halves, 2, rank);
    int64_t words = (int64_t(halves[0]) << 31) + halves[1];
    events.resize(size_t(words) * 4);
    world.receive(ElementType::I32, events.data(), words, rank);
    file.write(",\n");
    file.write(events);
  }
  file.write("\n]}\n");
  file.close();
}
