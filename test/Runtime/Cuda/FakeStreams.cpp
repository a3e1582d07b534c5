//===- FakeStreams.cpp - streams, events and graphs of the fake GPU ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FakeStreams.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

using namespace fake;

std::recursive_mutex fake::mutex;
double fake::busy = 0;
thread_local CUresult fake::sticky = CUDA_SUCCESS;

void fake::wrong(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "fake GPU: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  _Exit(99);
}

namespace {
/// How many pieces of work of each line are known to have ended.
using Clock = std::map<unsigned, uint64_t>;
void merge(Clock &into, const Clock &from) {
  for (auto &[line, time] : from)
    into[line] = std::max(into[line], time);
}
bool covers(const Clock &clock, unsigned line, uint64_t time) {
  auto found = clock.find(line);
  return found != clock.end() && found->second >= time;
}

std::atomic<unsigned> lines{0};
/// A stream, or one of a graph's branches during a launch.
struct Line {
  unsigned id = ++lines;
  Clock clock;
  bool stalled = false;
};

/// What an event has been recorded after.
struct Point {
  Clock clock;
  bool stalled = false;
};

struct Capture {
  enum Kind { DoWork, Record, Wait };
  struct Command {
    Kind kind;
    CUstream stream;
    CUevent event;
    Work work;
  };
  CUstream origin;
  std::vector<Command> commands;
};

struct Stream : Line {
  std::shared_ptr<Capture> capture;
};
struct Event {
  Point point;
  std::weak_ptr<Capture> capture; ///< the one it was last recorded in
  bool captured = false;
  double busy = 0; ///< what work before it would have taken
};
struct Graph {
  std::shared_ptr<Capture> capture;
};

/// What has touched memory, and may still do so for all the host knows. Each rank is a
/// thread, which has its own memory.
struct Past {
  Access access;
  unsigned line;
  uint64_t time;
  std::string name;
};
thread_local std::multimap<CUdeviceptr, Past> past;
thread_local Clock host;
thread_local std::shared_ptr<Capture> capturing;

std::set<CUstream> streams;
std::set<CUevent> events;

Stream &streamOf(const char *what, CUstream stream) {
  Lock lock(mutex);
  if (!streams.count(stream))
    wrong("%s: no such stream", what);
  return *(Stream *)stream;
}
Event &eventOf(const char *what, CUevent event) {
  Lock lock(mutex);
  if (!events.count(event))
    wrong("%s: no such event", what);
  return *(Event *)event;
}

bool mustBeOrdered(Access::Kind before, Access::Kind after) {
  // A kernel's argument may be read only, so what was read before is no matter to it.
  return before == Access::Write || after == Access::Write ||
         (before == Access::Use && after != Access::Use);
}

void checkOrder(const Line &line, const Work &work, const std::vector<Access> &accesses) {
  for (const Access &access : accesses)
    for (auto &[begin, before] : past) {
      if (begin >= access.begin + access.bytes)
        break;
      if (begin + before.access.bytes > access.begin &&
          mustBeOrdered(before.access.kind, access.kind) &&
          !covers(line.clock, before.line, before.time))
        wrong("%s does not wait for %s, which touches the same memory (%llx)", work.name.c_str(),
              before.name.c_str(), (unsigned long long)std::max(begin, access.begin));
    }
}

void execute(Line &line, const Work &work) {
  if (line.stalled)
    return;
  merge(line.clock, host);
  checkOrder(line, work, work.accesses);
  uint64_t time = ++line.clock[line.id];
  auto remember = [&](const std::vector<Access> &accesses) {
    for (const Access &access : accesses)
      past.insert({access.begin, {access, line.id, time, work.name}});
  };
  remember(work.accesses);
  line.stalled = !work.run();
  if (!work.found)
    return;
  checkOrder(line, work, *work.found);
  remember(*work.found);
}
Point record(const Line &line) {
  Point point{line.clock, line.stalled};
  merge(point.clock, host);
  return point;
}
void wait(Line &line, const Point &point) {
  merge(line.clock, point.clock);
  line.stalled |= point.stalled;
}
/// The host knows that the line has done everything.
void meetHost(const Clock &clock) {
  merge(host, clock);
  for (auto i = past.begin(); i != past.end();)
    i = covers(host, i->second.line, i->second.time) ? past.erase(i) : std::next(i);
}

/// Runs what was captured; `origin` is the line it is launched on.
void replay(const Capture &capture, Line &origin, bool dry) {
  std::map<CUstream, Line> branches;
  std::map<CUevent, Point> points;
  auto lineOf = [&](CUstream stream) -> Line & {
    return stream == capture.origin ? origin : branches[stream];
  };
  for (const Capture::Command &command : capture.commands) {
    Line &line = lineOf(command.stream);
    if (command.kind == Capture::Record)
      points[command.event] = record(line);
    else if (command.kind == Capture::Wait)
      wait(line, points.at(command.event));
    else if (dry)
      ++line.clock[line.id];
    else
      execute(line, command.work);
  }
  for (auto &[stream, line] : branches)
    if (!origin.stalled && !covers(origin.clock, line.id, line.clock[line.id]))
      wrong("a stream that the capture has forked is not joined when it ends");
}
} // namespace

void fake::checkStream(const char *what, CUstream stream) { streamOf(what, stream); }

void fake::checkNoCapture(const char *what) {
  if (capturing)
    wrong("%s while this thread captures", what);
}

void fake::forget(CUdeviceptr begin, size_t bytes) {
  past.erase(past.lower_bound(begin), past.lower_bound(begin + bytes));
}

void fake::submit(CUstream handle, Work work) {
  Stream &stream = streamOf(work.name.c_str(), handle);
  if (!stream.capture)
    return execute(stream, work); // May wait for other ranks.
  Lock lock(mutex);
  stream.capture->commands.push_back({Capture::DoWork, handle, nullptr, std::move(work)});
}

#define STICKY                                                                                     \
  if (sticky != CUDA_SUCCESS)                                                                      \
  return sticky

extern "C" {
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned, int) {
  Lock lock(mutex);
  *stream = CUstream(new Stream);
  streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return *least = 0, *greatest = -5, CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream handle) {
  streamOf("cuStreamDestroy", handle);
  Lock lock(mutex);
  streams.erase(handle);
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream handle) {
  STICKY;
  Stream &stream = streamOf("cuStreamQuery", handle);
  Lock lock(mutex);
  if (stream.capture)
    wrong("cuStreamQuery of a stream that is captured");
  if (stream.stalled)
    return CUDA_ERROR_NOT_READY;
  return meetHost(stream.clock), CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream handle) {
  STICKY;
  Stream &stream = streamOf("cuStreamSynchronize", handle);
  Lock lock(mutex);
  if (stream.capture)
    wrong("cuStreamSynchronize of a stream that is captured");
  if (stream.stalled)
    wrong("cuStreamSynchronize: the stream never ends");
  return meetHost(stream.clock), CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned) {
  submit(stream, {"cuStreamWriteValue64", {}, [=] { return *(cuuint64_t *)to = value, true; }});
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
  Lock lock(mutex);
  *event = CUevent(new Event);
  events.insert(*event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  eventOf("cuEventDestroy", event);
  Lock lock(mutex);
  events.erase(event);
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent handle) {
  STICKY;
  Event &event = eventOf("cuEventSynchronize", handle);
  if (event.captured)
    wrong("cuEventSynchronize of an event that was captured");
  return meetHost(event.point.clock), CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  for (CUevent event : {begin, end})
    if (eventOf("cuEventElapsedTime", event).captured)
      wrong("cuEventElapsedTime of an event that was captured");
  Lock lock(mutex);
  return *ms = float(1 + eventOf("", end).busy - eventOf("", begin).busy), CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent handle, CUstream to) {
  Event &event = eventOf("cuEventRecord", handle);
  Stream &stream = streamOf("cuEventRecord", to);
  Lock lock(mutex);
  event.captured = bool(stream.capture);
  event.busy = fake::busy;
  event.capture = stream.capture;
  if (stream.capture)
    stream.capture->commands.push_back({Capture::Record, to, handle, {}});
  else
    event.point = record(stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream to, CUevent handle, unsigned) {
  Event &event = eventOf("cuStreamWaitEvent", handle);
  Stream &stream = streamOf("cuStreamWaitEvent", to);
  Lock lock(mutex);
  std::shared_ptr<Capture> capture = event.capture.lock();
  if (event.captured && (!capture || capture != capturing))
    wrong("cuStreamWaitEvent: the event belongs to a capture that has ended");
  if (stream.capture && stream.capture != capture)
    wrong("cuStreamWaitEvent: a stream that is captured waits for what is not");
  if (!event.captured)
    return wait(stream, event.point), CUDA_SUCCESS;
  stream.capture = capture;
  capture->commands.push_back({Capture::Wait, to, handle, {}});
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  Stream &stream = streamOf("cuStreamBeginCapture", handle);
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
    wrong("cuStreamBeginCapture: other ranks' threads may allocate in the meantime");
  if (stream.capture)
    wrong("cuStreamBeginCapture: the stream is being captured");
  stream.capture = capturing = std::make_shared<Capture>();
  capturing->origin = handle;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  Stream &stream = streamOf("cuStreamEndCapture", handle);
  Lock lock(mutex);
  std::shared_ptr<Capture> capture = std::move(capturing);
  capturing = nullptr;
  if (!capture || stream.capture != capture || capture->origin != handle)
    wrong("cuStreamEndCapture: the capture did not begin here");
  for (CUstream other : streams)
    if (((Stream *)other)->capture == capture)
      ((Stream *)other)->capture = nullptr;
  *graph = nullptr;
  if (getenv("FAKE_GPU_NO_CAPTURE"))
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Line line;
  replay(*capture, line, /*dry=*/true);
  *graph = CUgraph(new Graph{capture});
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *, size_t *count) {
  auto &commands = ((Graph *)graph)->capture->commands;
  *count = size_t(std::count_if(commands.begin(), commands.end(), [](auto &command) {
    return command.kind == Capture::DoWork;
  }));
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long) {
  return *made = CUgraphExec(new Graph(*(Graph *)graph)), CUDA_SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec, CUstream stream) {
  return checkStream("cuGraphUpload", stream), CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream handle) {
  STICKY;
  Stream &stream = streamOf("cuGraphLaunch", handle);
  replay(*((Graph *)graph)->capture, stream, /*dry=*/false);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) { return delete (Graph *)graph, CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec graph) { return delete (Graph *)graph, CUDA_SUCCESS; }
} // extern "C"
