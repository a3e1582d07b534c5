//===- Context.cpp - what generated code calls ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The communication half of the C interface. Generated code has no unwind tables,
// so an exception must not pass through it: errors end the run here.
//
//===----------------------------------------------------------------------===//
#include "common/Context.h"

#include "common/Error.h"
#include "common/Failure.h"
#include "common/Threads.h"

#include <algorithm>
#include <exception>

using namespace meshwright;

MwContext::MwContext(const Plan &plan, std::unique_ptr<Communicator> worldCommunicator, int threads,
                     RankStatus &status)
    : plan(plan), world(std::move(worldCommunicator)), threads(std::max(1, threads)),
      status(status) {
  for (const auto &axes : plan.groups)
    groups.push_back(world->split(plan.groupMembers(axes, world->rank())));
}

int mw_context_threads(const MwContext *context) { return context->threads; }

int64_t mw_place(const MwContext *context, int32_t group) {
  return context->groups[size_t(group)]->rank();
}

/// Runs `body(group)` as collective `op` of `context`.
template <typename Body>
static void runCollective(MwContext *context, int32_t op, int32_t group, const char *kind,
                          int64_t bytes, Body body) {
  try {
    TraceScope span(context->trace.get(), kind, "collective", op, bytes);
    context->status.collective.store(op, std::memory_order_relaxed);
    body(*context->groups.at(size_t(group)));
    context->status.collective.store(-1, std::memory_order_relaxed);
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", ", kind, " ", op, ": ", error.what()));
  }
}

void mw_all_reduce(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   int32_t reduction, const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "all_reduce", count * bytesOf(type), [&](Communicator &comm) {
    comm.allReduce(type, Reduction(reduction), input, output, count);
  });
}

void mw_all_gather(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "all_gather", count * bytesOf(type),
                [&](Communicator &comm) { comm.allGather(type, input, output, count); });
}

void mw_reduce_scatter(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                       int32_t reduction, const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "reduce_scatter", count * bytesOf(type),
                [&](Communicator &comm) {
                  comm.reduceScatter(type, Reduction(reduction), input, output, count);
                });
}

void mw_all_to_all(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "all_to_all", count * bytesOf(type),
                [&](Communicator &comm) { comm.allToAll(type, input, output, count); });
}
