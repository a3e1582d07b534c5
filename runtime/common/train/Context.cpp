//===- Context.cpp - one rank's running program ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Context.h"

#include "common/launch/Cores.h"
#include "common/launch/Threads.h"
#include "common/monitor/Error.h"
#include "common/plan/Arena.h"

#include <algorithm>

using namespace meshwright;

namespace {
class PlanCalls : public Calls {
public:
  explicit PlanCalls(const Plan &plan) : plan(plan) {}

  // Programs number their calls apart: of two of them the same kind meets in one group,
  // and a send its receive.
  bool meet(int a, int b) const override {
    if (a == b || !isKnown(a) || !isKnown(b))
      return a == b;
    const CollectiveEntry &x = plan.collectives[size_t(a)], &y = plan.collectives[size_t(b)];
    bool kinds = x.op == "send" ? y.op == "recv" : x.op == "recv" ? y.op == "send" : x.op == y.op;
    return x.program != y.program && kinds && x.group == y.group && x.type == y.type &&
           x.count == y.count;
  }
  std::string describe(int call) const override {
    return isKnown(call) ? plan.describeCollective(call) : text("collective ", call);
  }

private:
  bool isKnown(int call) const { return call >= 0 && call < int(plan.collectives.size()); }
  const Plan &plan;
};
} // namespace

MwContext::MwContext(const Plan &plan, std::unique_ptr<RankGroup> all, int threads,
                     RankStatus &status)
    : plan(plan), world(std::move(all)), threads(std::max(1, threads)), status(status) {
  for (const auto &axes : plan.groups) {
    std::vector<int> members = plan.groupMembers(axes, world->rank());
    auto self = std::find(members.begin(), members.end(), world->rank()) - members.begin();
    memberships.push_back({int(self), int(members.size())});
  }
  groups = splitGroups(plan, *world);
  calls = std::make_unique<PlanCalls>(plan);
  for (auto &group : groups)
    group->setCalls(calls.get());
  // A device may keep its rank's threads to cores near it.
  size_t cores = allowedCores().size();
  device = openDevice(plan, *world, status);
  if (size_t left = allowedCores().size(); left < cores)
    this->threads = std::max(1, std::min(this->threads, int(left)));
}

MwContext::~MwContext() {
  for (auto &group : groups)
    group->setCalls(nullptr);
}

void MwContext::run(EntryPoint program, char *arena) {
  if (device)
    device->run(*this, program, arena);
  else
    program(this, arena);
}

int mw_context_threads(const MwContext *context) { return context->threads; }

void mw_note_rounds(MwContext *context, int32_t rounds) {
  context->expertRounds = std::max(context->expertRounds.value_or(0), rounds);
}

void mw_begin(MwContext *context, const char *name, const char *category, const char *location,
              int64_t index, int64_t bytes) {
  context->opName = name;
  context->opLocation = location;
  if (!context->trace || !context->trace->recording)
    return;
  context->trace->open(name, category, location, index, bytes);
  if (context->device)
    context->device->beginSpan();
}

void mw_end(MwContext *context) {
  if (!context->trace || !context->trace->recording)
    return;
  Trace::Span span = context->trace->close();
  if (context->device)
    context->device->endSpan(*context->trace, span);
}

void mw_observe(MwContext *context, int32_t value, int32_t result, const void *address,
                int64_t bytes) {
  if (!context->dump)
    return;
  std::vector<char> copied;
  if (context->device) {
    copied.resize(size_t(bytes));
    context->device->read(copied.data(), address, bytes);
    address = copied.data();
  }
  context->dump->value(value, result, address, bytes);
}

static char *arenaOf(const MwContext &context, MemorySpace space) {
  const OffloadMemory *memory = context.offloaded[space];
  return memory ? memory->data() : nullptr;
}

#define MW_OFFLOAD_SPACE(Space, name, ...)                                                         \
  char *mw_##name##_arena(MwContext *context) { return arenaOf(*context, MemorySpace::Space); }
#include "meshwright/runtime/MemorySpaces.def"

int32_t mw_program(const MwContext *context) { return int32_t(context->plan.program); }

int64_t mw_group_rank(const MwContext *context, int32_t group) {
  return context->memberships[size_t(group)].rank;
}
