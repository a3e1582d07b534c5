//===- Context.h - one rank's running program -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CONTEXT_H
#define MESHWRIGHT_RUNTIME_COMMON_CONTEXT_H

#include "common/communication/CommunicationQueue.h"
#include "common/communication/Communicator.h"
#include "common/launch/Cores.h"
#include "common/launch/Device.h"
#include "common/monitor/Dump.h"
#include "common/monitor/RankStatus.h"
#include "common/monitor/Trace.h"
#include "common/plan/Plan.h"
#include "meshwright/runtime/ABI.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {
class OffloadMemory;
}

/// The state of a rank, which generated code passes with every call.
struct MwContext {
  MwContext(const meshwright::Plan &plan, std::unique_ptr<meshwright::RankGroup> world,
            int threads, meshwright::RankStatus &status);

  ~MwContext();

  int rank() const { return world->rank(); }

  /// Runs a program of the executable; on a device it may still be under way afterwards.
  void run(meshwright::EntryPoint program, char *arena);

  const meshwright::Plan &plan;
  std::unique_ptr<meshwright::RankGroup> world;
  /// Null where the host computes.
  std::unique_ptr<meshwright::Device> device;
  /// This rank's place in each group of the plan.
  struct Membership {
    int rank, size;
  };
  std::vector<Membership> memberships;
  /// Of each group, where the host sends what the program does; empty where a device does.
  std::vector<std::unique_ptr<meshwright::Communicator>> groups;
  /// Where the program's current op comes from, for errors; null before the first.
  const char *opName = nullptr, *opLocation = nullptr;
  int threads; ///< OpenMP threads of this rank, at least 1
  std::string cores; ///< that they are bound to; empty where they are not
  meshwright::CoreList unboundCores = {}; ///< of the process, where the rank is bound to some of them
  meshwright::RankStatus &status;
  /// How a file has called tensors that other files of the model call otherwise, by their names in the plan:
  /// they are saved by these.
  std::map<std::string, std::string> fileNames = {};
  /// Bytes that this rank's collectives have sent, by kind.
  std::map<std::string, int64_t> sentBytes;
  /// The most rounds in which this step's rows have gone to experts; none where they go in one.
  std::optional<int32_t> expertRounds;
  /// The folder of --ssd.
  std::string ssd = {};
  /// The memory of offload spaces; null where the plan has nothing there.
  meshwright::BySpace<meshwright::OffloadMemory *> offloaded = {};
  /// Bytes that the program has copied, by copy engine.
  std::array<int64_t, meshwright::copyEngines> copiedBytes = {};
  /// The plan's rows of collectives.
  std::unique_ptr<meshwright::Calls> calls;
  /// Null unless --trace is given.
  std::unique_ptr<meshwright::Trace> trace;
  /// Null but in the step that --dump is to write.
  std::unique_ptr<meshwright::Dump> dump;
  /// Runs what the program sends and receives. Declared last, because its threads use the rest.
  meshwright::CommunicationQueue communication;
  /// The copy engines, where the host computes.
  meshwright::CommunicationQueue transfers[meshwright::copyEngines] = {
#define MW_OFFLOAD_SPACE(Space, ...) MW_TRANSFERS(Space, false), MW_TRANSFERS(Space, true),
#define MW_TRANSFERS(Space, stores)                                                                \
  meshwright::CommunicationQueue(meshwright::Trace::rowOf({meshwright::MemorySpace::Space, stores}))
#include "meshwright/runtime/MemorySpaces.def"
#undef MW_TRANSFERS
  };
};

#endif // MESHWRIGHT_RUNTIME_COMMON_CONTEXT_H
