//===- Collective.h - what is around every collective of a program --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_COLLECTIVE_H
#define MESHWRIGHT_RUNTIME_COMMON_COLLECTIVE_H

#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/train/Context.h"

#include <exception>

namespace meshwright {

/// Runs `body(group)`, which holds all it needs, as collective `op` of `context`, now or
/// when its turn comes. `bytes` is what the call counts.
/// Generated code has no unwind tables, so an exception must not pass through it:
/// errors end the run here.
template <typename Body>
void runCollective(MwContext *context, int32_t op, int32_t group, const char *kind, int64_t bytes,
                   Body body) {
  context->communication.run([=] {
    try {
      const char *location =
          context->trace ? context->plan.collectives.at(size_t(op)).location.c_str() : nullptr;
      TraceScope span(context->trace.get(), kind, "collective", op, bytes, location);
      context->status.collective.store(op, std::memory_order_relaxed);
      Communicator &communicator = *context->groups.at(size_t(group));
      int64_t before = communicator.sentBytes();
      communicator.beginCall(op);
      body(communicator);
      communicator.beginCall(-1);
      context->sentBytes[kind] += communicator.sentBytes() - before;
      int64_t allocated = communicator.allocatedBytes();
      int64_t planned = context->plan.scratchBytes.at(size_t(group));
      if (allocated > planned)
        fail("the communicator has allocated ", allocated, " bytes, but the plan has ", planned);
      context->status.collective.store(-1, std::memory_order_relaxed);
    } catch (const std::exception &error) {
      endAllRanks(error, text("rank ", context->rank(), ", ", kind, " ", op, ": "));
    }
  });
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_COLLECTIVE_H
