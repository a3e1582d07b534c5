//===- Context.cpp - one rank's running program ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Context.h"

#include "common/Threads.h"

#include <algorithm>

using namespace meshwright;

MwContext::MwContext(const Plan &plan, std::unique_ptr<Communicator> worldCommunicator, int threads,
                     RankStatus &status)
    : plan(plan), world(std::move(worldCommunicator)), threads(std::max(1, threads)),
      status(status) {
  for (const auto &axes : plan.groups)
    groups.push_back(world->split(plan.groupMembers(axes, world->rank())));
  device = openDevice(plan, *world);
}

int mw_context_threads(const MwContext *context) { return context->threads; }

int32_t mw_program(const MwContext *context) { return int32_t(context->plan.program); }

int64_t mw_place(const MwContext *context, int32_t group) {
  return context->groups[size_t(group)]->rank();
}
