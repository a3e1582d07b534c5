//===- Collectives.cpp - the communication half of the C interface --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/Collective.h"

#include <cstring>

using namespace meshwright;

namespace {
/// The tensors of a call that may run after it has returned.
struct Tensors {
  std::vector<MwSegment> segments;

  Tensors(const MwSegment *data, int64_t size) : segments(data, data + size) {}
  operator Segments() const { return {segments.data(), segments.size()}; }
  int64_t count() const {
    int64_t sum = 0;
    for (const MwSegment &segment : segments)
      sum += segment.count;
    return sum;
  }
};
} // namespace

void mw_all_reduce(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   int32_t reduction, const MwSegment *segments, int64_t segmentCount) {
  auto type = ElementType(elementType);
  Tensors all(segments, segmentCount);
  runCollective(context, op, group, "all_reduce", all.count() * bytesOf(type),
                [=](Communicator &comm) { comm.allReduce(type, Reduction(reduction), all); });
}

void mw_all_gather(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   const MwSegment *segments, int64_t segmentCount) {
  auto type = ElementType(elementType);
  Tensors all(segments, segmentCount);
  runCollective(context, op, group, "all_gather", all.count() * bytesOf(type),
                [=](Communicator &comm) { comm.allGather(type, all); });
}

void mw_reduce_scatter(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                       int32_t reduction, const MwSegment *segments, int64_t segmentCount) {
  auto type = ElementType(elementType);
  Tensors all(segments, segmentCount);
  runCollective(context, op, group, "reduce_scatter", all.count() * bytesOf(type),
                [=](Communicator &comm) { comm.reduceScatter(type, Reduction(reduction), all); });
}

void mw_all_to_all(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                   const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "all_to_all", count * bytesOf(type),
                [=](Communicator &comm) { comm.allToAll(type, input, output, count); });
}

void mw_permute(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                const int32_t *from, const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "permute", count * bytesOf(type), [=](Communicator &comm) {
    std::vector<std::pair<int, int>> pairs;
    for (int to = 0; to < comm.size(); ++to)
      pairs.push_back({from[to], to});
    comm.permute(type, input, output, count, pairs);
  });
}

void mw_exchange(MwContext *context, int32_t op, int32_t group, int32_t elementType,
                 const int32_t *table, const MwSegment *segments, int64_t segmentCount,
                 void *workspace) {
  auto type = ElementType(elementType);
  Tensors all(segments, segmentCount);
  runCollective(context, op, group, "exchange", all.count() * bytesOf(type),
                [=](Communicator &comm) {
                  comm.exchange(type, {table, comm.size()}, all, workspace);
                });
}

void mw_broadcast(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t root,
                  const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "broadcast", count * bytesOf(type), [=](Communicator &comm) {
    if (comm.rank() == root && input != output && count > 0)
      std::memcpy(output, input, size_t(count * bytesOf(type)));
    comm.broadcast(type, output, count, root);
  });
}

void mw_reduce(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t root,
               int32_t reduction, const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "reduce", count * bytesOf(type), [=](Communicator &comm) {
    comm.reduce(type, Reduction(reduction), input, output, count, root);
  });
}

void mw_gather(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t root,
               const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "gather", count * bytesOf(type),
                [=](Communicator &comm) { comm.gather(type, input, output, count, root); });
}

void mw_scatter(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t root,
                const void *input, void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "scatter", count * bytesOf(type),
                [=](Communicator &comm) { comm.scatter(type, input, output, count, root); });
}

void mw_send(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t peer,
             const void *input, int64_t count, void *buffer) {
  auto type = ElementType(elementType);
  int64_t bytes = count * bytesOf(type);
  runCollective(context, op, group, "send", bytes, [=](Communicator &comm) {
    comm.finishSend(peer);
    std::memcpy(buffer, input, size_t(bytes));
    comm.post(type, buffer, count, peer);
  });
}

void mw_finish_sends(MwContext *context) {
  context->communication.run([=] {
    try {
      TraceScope span(context->trace.get(), "finish_sends", "wait");
      for (auto &group : context->groups)
        group->finishSends();
    } catch (const std::exception &error) {
      endAllRanks(text("rank ", context->rank(), ", last messages: ", error.what()));
    }
  });
}

void mw_start(MwContext *context, int32_t start) { context->communication.startNext(start); }

void mw_wait(MwContext *context, int32_t start) {
  int64_t begin = context->trace ? Trace::now() : 0;
  bool waited = context->communication.wait(start) || context->transfers[0].wait(start) ||
                context->transfers[1].wait(start);
  if (waited && context->trace)
    context->trace->add("wait", "wait", begin, Trace::now(), start);
}

void mw_recv(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t peer,
             void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "recv", count * bytesOf(type),
                [=](Communicator &comm) { comm.receive(type, output, count, peer); });
}
