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

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace meshwright {

class Communicator;

class Trace {
public:
  /// Spans a rank keeps (48 MB); later ones are counted, and the file says so.
  static constexpr size_t limit = 1 << 20;

  /// Nanoseconds on the clock that all processes of a machine share.
  static int64_t now();

  /// Under which row of its rank a thread's spans are shown: 0, or 1 for communication
  /// beside computation.
  static thread_local int row;

  /// `name` and `category` live for ever. `index` (a collective's; -1 for none)
  /// and `bytes` become arguments of the span.
  void add(const char *name, const char *category, int64_t begin, int64_t end, int64_t index = -1,
           int64_t bytes = -1) {
    std::lock_guard<std::mutex> lock(mutex);
    if (spans.size() < limit)
      spans.push_back({name, category, begin, end, index, bytes, row});
    else
      ++dropped;
  }

  /// Bytes that the rank's collectives have sent, by kind.
  std::map<std::string, int64_t> sentBytes;

  /// Gathers every rank's spans and writes them to `path`, on rank 0. Collective.
  static void write(const Trace &mine, Communicator &world, const std::string &path);

private:
  struct Span {
    const char *name, *category;
    int64_t begin, end, index, bytes;
    int row;
  };
  std::string json(int rank) const;

  std::mutex mutex; ///< of what follows
  std::vector<Span> spans;
  uint64_t dropped = 0;
};

/// Records the time from its construction to its end, if there is a trace.
class TraceScope {
public:
  TraceScope(Trace *trace, const char *name, const char *category, int64_t index = -1,
             int64_t bytes = -1)
      : trace(trace), name(name), category(category), index(index), bytes(bytes),
        begin(trace ? Trace::now() : 0) {}
  ~TraceScope() {
    if (trace)
      trace->add(name, category, begin, Trace::now(), index, bytes);
  }
  TraceScope(const TraceScope &) = delete;
  TraceScope &operator=(const TraceScope &) = delete;

private:
  Trace *trace;
  const char *name, *category;
  int64_t index, bytes, begin;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TRACE_H
