//===- Transfers.cpp - copies to and from offload spaces ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where the host computes both ends are its memory. Copies run in threads beside the
// program all the same, so that it waits for what it would wait for on a GPU.
//
//===----------------------------------------------------------------------===//
#include "common/train/Context.h"

#include <cstring>

using namespace meshwright;

static constexpr const char *names[] = {
#define MW_OFFLOAD_SPACE(Space, name, ...) "copy from " #name, "copy to " #name,
#include "meshwright/runtime/MemorySpaces.def"
};

void mw_transfer(MwContext *context, void *to, const void *from, int64_t bytes, int32_t engine,
                 int32_t start) {
  context->copiedBytes[size_t(engine)] += bytes;
  CommunicationQueue &queue = context->transfers[engine];
  if (start >= 0)
    queue.startNext(start);
  queue.run([=] {
    TraceScope span(context->trace.get(), names[engine], "copy");
    std::memcpy(to, from, size_t(bytes));
  });
}
