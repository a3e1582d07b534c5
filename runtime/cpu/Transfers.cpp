//===- Transfers.cpp - copies to and from offload spaces ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Copies run in threads beside the program also where both ends are the host's memory, so
// that it waits for what it would wait for on a GPU.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/plan/Arena.h"
#include "common/train/Context.h"

using namespace meshwright;

static constexpr const char *names[] = {
#define MW_OFFLOAD_SPACE(Space, name, ...) "copy from " #name, "copy to " #name,
#include "meshwright/runtime/MemorySpaces.def"
};

void mw_transfer(MwContext *context, void *to, const void *from, int64_t bytes, int32_t engine,
                 int32_t start) {
  context->copiedBytes[size_t(engine)] += bytes;
  CommunicationQueue &queue = context->transfers[engine];
  CopyEngine way = CopyEngine::numbered(engine);
  if (start >= 0)
    queue.startNext(start);
  queue.run([=] {
    TraceScope span(context->trace.get(), names[engine], "copy");
    try {
      context->offloaded[way.space]->copy(to, from, bytes, way.stores);
    } catch (const std::exception &error) {
      endAllRanks(error, text("rank ", context->rank()));
    }
  });
}
