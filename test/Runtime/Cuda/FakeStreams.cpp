//===- FakeStreams.cpp - streams, events and graphs of the fake GPU ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FakeStreams.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>

using namespace fake;

std::recursive_mutex fake::mutex;
double fake::busy = 0;
thread_local CUresult fake::sticky = CUDA_SUCCESS;
thread_local bool fake::communicates = false;

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
  long behind = 0; ///< pieces of work that came after it had stalled
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
    int priority = 0; ///< of the stream
  };
  CUstream origin;
  std::vector<Command> commands;
};

struct Stream : Line {
  std::shared_ptr<Capture> capture;
  CUcontext context = nullptr;
  int priority = 0;
};
struct Event {
  Point point;
  CUcontext context = nullptr;
  bool timed = true, recorded = false;
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
thread_local CUcontext current = nullptr;

/// Memory of the host that work reads, and may still read for all the host knows.
struct Source {
  const char *begin;
  size_t bytes;
  uint64_t hash;
  unsigned line;
  uint64_t time;
  std::string name;
};
thread_local std::vector<Source> sources;

/// A message that may still be on its way.
struct Sent {
  Flag taken;
  unsigned line;
  uint64_t time, group;
};
thread_local std::vector<Sent> sent;

/// Whether a message that `clock` has waited for is on its way, but for those of `group`.
bool waitsForTaking(const Clock &clock, uint64_t group) {
  auto isTaken = [](const Sent &one) { return one.taken->load(); };
  sent.erase(std::remove_if(sent.begin(), sent.end(), isTaken), sent.end());
  return std::any_of(sent.begin(), sent.end(), [&](const Sent &one) {
    return covers(clock, one.line, one.time) && (!group || group != one.group);
  });
}
/// As on a GPU, where the kernel that sends ends when there is nothing left to send.
void awaitTaking(const Clock &clock, uint64_t group, const std::string &name) {
  constexpr auto step = std::chrono::milliseconds(1);
  for (int64_t steps = std::chrono::seconds(60) / step; waitsForTaking(clock, group); --steps) {
    if (steps == 0)
      wrong("%s waits for a message before it on its stream, which is not taken", name.c_str());
    std::this_thread::sleep_for(step);
  }
}

uint64_t hashOf(const char *begin, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ uint8_t(begin[i])) * 0x100000001b3;
  return hash;
}

std::set<CUstream> streams;
std::set<CUevent> events;

Stream &streamOf(const char *what, CUstream stream) {
  Lock lock(mutex);
  checkContext(what);
  if (!streams.count(stream))
    wrong("%s: no such stream", what);
  if (((Stream *)stream)->context != current)
    wrong("%s: the stream is another context's", what);
  return *(Stream *)stream;
}
Event &eventOf(const char *what, CUevent event) {
  Lock lock(mutex);
  checkContext(what);
  if (!events.count(event))
    wrong("%s: no such event", what);
  if (((Event *)event)->context != current)
    wrong("%s: the event is another context's", what);
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

/// A queue has an end, where calls wait.
void enqueueBehind(Line &line) {
  const char *most = getenv("FAKE_GPU_QUEUE");
  if (!most || ++line.behind <= atol(most))
    return;
  for (;;)
    std::this_thread::sleep_for(std::chrono::seconds(1));
}

void execute(Line &line, const Work &work) {
  if (line.stalled)
    return enqueueBehind(line);
  merge(line.clock, host);
  awaitTaking(line.clock, work.group, work.name);
  checkOrder(line, work, work.accesses);
  uint64_t time = ++line.clock[line.id];
  auto remember = [&](const std::vector<Access> &accesses) {
    for (const Access &access : accesses)
      past.insert({access.begin, {access, line.id, time, work.name}});
  };
  remember(work.accesses);
  if (work.source)
    sources.push_back({work.source, work.sourceBytes, hashOf(work.source, work.sourceBytes), line.id,
                       time, work.name});
  if (work.sends) {
    *work.sends = std::make_shared<std::atomic<bool>>(false);
    sent.push_back({*work.sends, line.id, time, work.group});
  }
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
  for (auto i = sources.begin(); i != sources.end();) {
    if (!covers(host, i->line, i->time)) {
      ++i;
      continue;
    }
    if (hashOf(i->begin, i->bytes) != i->hash)
      wrong("%s: the host's memory was written to before the copy was known to have ended",
            i->name.c_str());
    i = sources.erase(i);
  }
}
/// Whether the host knows that what the event was recorded after has ended.
bool isOver(const Event &event) {
  for (auto &[line, time] : event.point.clock)
    if (!covers(host, line, time))
      return false;
  return !event.point.stalled;
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

void fake::checkContext(const char *what) {
  if (!current)
    wrong("%s in a thread without a context", what);
}

void fake::checkNoCapture(const char *what) {
  if (capturing)
    wrong("%s while this thread captures", what);
}

void fake::launchOfLibrary(const std::string &name) {
  static thread_local std::set<std::string> loaded;
  if (loaded.insert(name).second && communicates)
    wrong("%s is loaded with its first launch, which may wait for what other ranks wait for", name.c_str());
}

void fake::checkOver(const char *what, CUdeviceptr begin, size_t bytes) {
  for (auto &[address, before] : past)
    if (address < begin + bytes && address + before.access.bytes > begin &&
        !covers(host, before.line, before.time))
      wrong("%s: %s may still touch the memory", what, before.name.c_str());
}

void fake::forget(CUdeviceptr begin, size_t bytes) {
  past.erase(past.lower_bound(begin), past.lower_bound(begin + bytes));
}

void fake::submit(CUstream handle, Work work) {
  Stream &stream = streamOf(work.name.c_str(), handle);
  if (!stream.capture)
    return execute(stream, work); // May wait for other ranks.
  Lock lock(mutex);
  if (work.source)
    wrong("%s in a capture, of memory of the host that is not pinned", work.name.c_str());
  stream.capture->commands.push_back(
      {Capture::DoWork, handle, nullptr, std::move(work), stream.priority});
}

#define STICKY                                                                                     \
  if (sticky != CUDA_SUCCESS)                                                                      \
  return sticky

extern "C" {
CUresult cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current, CUDA_SUCCESS; }

CUresult cuStreamCreateWithPriority(CUstream *made, unsigned flags, int priority) {
  checkContext("cuStreamCreate");
  // Others wait for the legacy stream, which libraries may use, and it for them.
  if (flags != CU_STREAM_NON_BLOCKING)
    wrong("cuStreamCreate: the stream is not CU_STREAM_NON_BLOCKING");
  Lock lock(mutex);
  auto *stream = new Stream;
  stream->context = current;
  stream->priority = priority;
  streams.insert(*made = CUstream(stream));
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
  if (stream.capture)
    wrong("cuStreamQuery of a stream that is captured");
  if (stream.stalled)
    return CUDA_ERROR_NOT_READY;
  if (waitsForTaking(stream.clock, 0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // The others need the processor.
    return CUDA_ERROR_NOT_READY;
  }
  return meetHost(stream.clock), CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream handle) {
  STICKY;
  Stream &stream = streamOf("cuStreamSynchronize", handle);
  if (stream.capture)
    wrong("cuStreamSynchronize of a stream that is captured");
  const char *fault = getenv("FAKE_GPU_FAULT");
  while (stream.stalled && fault && strncmp(fault, "hang", 4) == 0)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  if (stream.stalled)
    wrong("cuStreamSynchronize: the stream never ends");
  awaitTaking(stream.clock, 0, "cuStreamSynchronize");
  return meetHost(stream.clock), CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned) {
  submit(stream, {"cuStreamWriteValue64", {}, [=] { return *(cuuint64_t *)to = value, true; }});
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *made, unsigned flags) {
  checkContext("cuEventCreate");
  Lock lock(mutex);
  auto *event = new Event;
  event->context = current;
  event->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  events.insert(*made = CUevent(event));
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
CUresult cuEventQuery(CUevent handle) {
  STICKY;
  Event &event = eventOf("cuEventQuery", handle);
  if (event.captured)
    wrong("cuEventQuery of an event that was captured");
  return isOver(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  for (CUevent handle : {begin, end}) {
    Event &event = eventOf("cuEventElapsedTime", handle);
    if (event.captured)
      wrong("cuEventElapsedTime of an event that was captured");
    if (!event.timed || !event.recorded)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!isOver(event))
      return CUDA_ERROR_NOT_READY;
  }
  Lock lock(mutex);
  return *ms = float(1 + eventOf("", end).busy - eventOf("", begin).busy), CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent handle, CUstream to) {
  Event &event = eventOf("cuEventRecord", handle);
  Stream &stream = streamOf("cuEventRecord", to);
  Lock lock(mutex);
  event.recorded = true;
  event.captured = bool(stream.capture);
  event.busy = fake::busy;
  event.capture = stream.capture;
  if (stream.capture)
    stream.capture->commands.push_back({Capture::Record, to, handle, {}, 0});
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
  capture->commands.push_back({Capture::Wait, to, handle, {}, 0});
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
CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
  auto &commands = ((Graph *)graph)->capture->commands;
  if (!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) &&
      std::any_of(commands.begin(), commands.end(), [](auto &one) { return one.priority != 0; }))
    wrong("cuGraphInstantiate: the priorities of streams get lost");
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
