//===- Transfers.cpp - copies to and from what is kept on the host --------===//
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

void mw_transfer(MwContext *context, void *to, const void *from, int64_t bytes, int32_t toHost,
                 int32_t start) {
  context->copiedBytes[toHost] += bytes;
  CommunicationQueue &queue = context->transfers[toHost];
  if (start >= 0)
    queue.startNext(start);
  queue.run([=] {
    TraceScope span(context->trace.get(), toHost ? "copy to host" : "copy from host", "copy");
    std::memcpy(to, from, size_t(bytes));
  });
}
