//===- Trace.h - what a rank really did, for chrome://tracing -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Spans are kept in memory and written once, at the end of the run, in the Trace
// Event Format (one process per rank), which chrome://tracing and Perfetto read.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TRACE_H
#define MESHWRIGHT_RUNTIME_COMMON_TRACE_H

#include "meshwright/runtime/MemorySpace.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace meshwright {

class RankGroup;
class OutputFile;

class Trace {
public:
  /// Spans a rank keeps (64 MiB); later ones are counted, and the file says so.
  static constexpr size_t limit = 1 << 20;

  /// One thing a rank did. Strings live for ever; -1 and null are for what it has not.
  struct Span {
    const char *name, *category, *location;
    int64_t begin, end, index, bytes;
    int row; ///< of its rank
  };

  /// Nanoseconds on the clock that all processes of a machine share.
  static int64_t now();

  /// Under which row of its rank a thread's spans are shown: 0, 1 for communication
  /// beside computation, 2 for what a GPU computed, 3 for what it communicated, and those behind for
  /// copies, one for each copy engine.
  static thread_local int row;
  static constexpr int rowOf(CopyEngine engine) { return 4 + engine.number(); }

  /// Of any thread.
  void add(const char *name, const char *category, int64_t begin, int64_t end, int64_t index = -1,
           int64_t bytes = -1, const char *location = nullptr);

  /// Spans that enclose others, of the thread that runs the program.
  void open(const char *name, const char *category, const char *location, int64_t index,
            int64_t bytes) {
    opened.push_back({name, category, location, now(), 0, index, bytes, 0});
  }
  Span close() {
    Span span = opened.back();
    span.end = now();
    add(span.name, span.category, span.begin, span.end, span.index, span.bytes, span.location);
    opened.pop_back();
    return span;
  }

  /// Whether spans are taken now, and whether they are kept for the file: of steps that are not asked for none are.
  bool recording = true, keeping = true;
  /// Nanoseconds of the spans of kernels that were taken, also of those that are not kept. Theirs is the category `kernelCategory`.
  int64_t kernels = 0;
  const char *kernelCategory = "compute";
  uint64_t droppedSpans() const { return dropped; }

  /// Bytes that the rank's collectives have sent, by kind.
  std::map<std::string, int64_t> sentBytes;
  /// Bytes that the rank's program has copied between host and device, by direction.
  std::map<std::string, int64_t> copiedBytes;

  /// Gathers every rank's spans and writes them to `file`, which rank 0 has opened. Collective.
  static void write(const Trace &mine, RankGroup &world, OutputFile *file);

private:
  std::string json(int rank) const;

  std::mutex mutex; ///< of `spans` and `dropped`
  std::deque<Span> spans;
  uint64_t dropped = 0;
  std::vector<Span> opened;
};

/// Records the time from its construction to its end, if there is a trace.
class TraceScope {
public:
  TraceScope(Trace *trace, const char *name, const char *category, int64_t index = -1,
             int64_t bytes = -1, const char *location = nullptr)
      : trace(trace && trace->recording ? trace : nullptr), name(name), category(category),
        location(location), index(index), bytes(bytes), begin(this->trace ? Trace::now() : 0) {}
  ~TraceScope() {
    if (trace)
      trace->add(name, category, begin, Trace::now(), index, bytes, location);
  }
  TraceScope(const TraceScope &) = delete;
  TraceScope &operator=(const TraceScope &) = delete;

private:
  Trace *trace;
  const char *name, *category, *location;
  int64_t index, bytes, begin;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TRACE_H
