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

#define MW_HOLD_One
#define MW_HOLD_Bucket                                                                             \
  Tensors all(segments, segmentCount);                                                             \
  int64_t count = all.count();
#define MW_PASS_One , input, output, count
#define MW_PASS_Bucket , all
#define MW_PASS_Moves
#define MW_PASS_Reduces , Reduction(reduction)
#define MW_PASS_All
#define MW_PASS_Rows , context->plan.collectives.at(size_t(op)).row
#define MW_PASS_Root , root
#define MW_PASS_From , from
#define MW_COLLECTIVE(Op, method, name, growth, sent, tensors, kind, who, ...)                     \
  MW_COLLECTIVE_FUNCTION(name, tensors, kind, who) {                                               \
    auto type = ElementType(elementType);                                                          \
    MW_HOLD_##tensors                                                                              \
    runCollective(context, op, group, #name, count * bytesOf(type), [=](Communicator &comm) {      \
      comm.method(type MW_PASS_##kind MW_PASS_##tensors MW_PASS_##who);                            \
    });                                                                                            \
  }
#include "meshwright/runtime/Collectives.def"

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

void mw_start(MwContext *context, int32_t token) { context->communication.startNext(token); }

void mw_wait(MwContext *context, int32_t token) {
  int64_t begin = context->trace ? Trace::now() : 0;
  bool waited = context->communication.wait(token);
  for (CommunicationQueue &transfers : context->transfers)
    waited = waited || transfers.wait(token);
  if (waited && context->trace)
    context->trace->add("wait", "wait", begin, Trace::now(), token);
}

void mw_recv(MwContext *context, int32_t op, int32_t group, int32_t elementType, int32_t peer,
             void *output, int64_t count) {
  auto type = ElementType(elementType);
  runCollective(context, op, group, "recv", count * bytesOf(type),
                [=](Communicator &comm) { comm.receive(type, output, count, peer); });
}
