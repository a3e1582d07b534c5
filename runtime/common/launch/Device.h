//===- Device.h - what a rank computes on ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
#define MESHWRIGHT_RUNTIME_COMMON_DEVICE_H

#include "common/communication/Communicator.h"
#include "common/launch/Cores.h"
#include "common/monitor/Trace.h"
#include "meshwright/runtime/ABI.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace meshwright {

struct Plan;
struct Launch;
class Arena;
class RankStatus;

/// A program of the executable, such as meshwright_step.
using EntryPoint = void (*)(MwContext *, char *arena);

/// A rank's accelerator. Each target's runtime has its own.
class Device {
public:
  virtual ~Device() = default;

  /// What it is, and the memory in use on it beside the arena, for the start of a run.
  virtual std::string describe() const = 0;

  /// Whether programs are run as graphs: "on", "off", or "auto", where that works.
  virtual void useGraphs(const std::string &mode) = 0;

  /// Runs a program, or enqueues what it does.
  virtual void run(MwContext &context, EntryPoint program, char *arena) = 0;

  /// Copies what the program has computed at `from` to the host's memory.
  virtual void read(void *to, const void *from, int64_t bytes) = 0;

  /// Chooses algorithms by what `file` says, or by timing them in the arena, which holds
  /// nothing yet, and writes it. Collective.
  virtual void tune(Arena &arena, const std::string &file, RankGroup &world) = 0;

  /// What the program enqueues between the two is one span of a trace: `endSpan` gets it with
  /// the host's times, and the device adds one with its own once it has got there.
  virtual void beginSpan() = 0;
  virtual void endSpan(Trace &trace, const Trace::Span &span) = 0;
};

/// How this process has met the others of its job.
struct Meeting {
  std::unique_ptr<RankGroup> world;
  /// Ends the others, for setFailureAbort; may be empty.
  std::function<void(int code)> abort;
  /// A rank that has ended, or -1; may be empty. From any thread.
  std::function<int()> lostPeer;
  /// Takes leave of the others after the run; may be empty.
  std::function<void()> finish;
};

/// Starts MPI, which must find `processes` processes. On any target.
Meeting meetByMpi(int processes, RankStatus &status);

// What differs between targets. Each target's runtime has its own.

/// Whether the host computes, in its own memory, and not a device.
bool hostComputes();

/// FLOP/s of products in f32 on `threads` threads at once, where the host computes.
double measurePeak(int threads);

/// Prepares what a process has once for all of its ranks.
void prepareTarget();

/// The cores of each of so many ranks that have the same cores; of each none where a device says
/// which are near it.
std::vector<CoreList> sharesOfCores(int ranks, int threads);

/// An Error where ranks of this target cannot be the processes that `launch` found.
void checkLaunch(const Launch &launch);

/// Meets these processes.
Meeting meetRanks(const Plan &plan, const Launch &launch, RankStatus &status);

/// The communicators of the plan's groups, where the host sends what the program does. Collective.
std::vector<std::unique_ptr<Communicator>> splitGroups(const Plan &plan, RankGroup &world);

/// Opens the device of this rank of `world`; null where the host computes. What it is at it
/// writes to `status`. Collective.
std::unique_ptr<Device> openDevice(const Plan &plan, RankGroup &world, RankStatus &status);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
