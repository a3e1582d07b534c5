//===- Collectives.cpp - communication by NCCL ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Error.h"
#include "common/Failure.h"
#include "cuda/Gpu.h"

#include <exception>

using namespace meshwright;
using namespace meshwright::cuda;

static ncclDataType_t typeOf(int32_t type) {
  switch (ElementType(type)) {
  case ElementType::F32:
    return ncclFloat32;
  case ElementType::F64:
    return ncclFloat64;
  case ElementType::BF16:
    return ncclBfloat16;
  case ElementType::F16:
    return ncclFloat16;
  case ElementType::I32:
    return ncclInt32;
  }
  __builtin_unreachable();
}

static ncclRedOp_t reductionOf(int32_t reduction) {
  return reduction == MW_MAX ? ncclMax : ncclSum;
}

/// Puts collective `op` on a stream: `body(communicator, stream)`.
template <typename Body>
static void enqueue(MwContext *context, int32_t op, int32_t group, const char *kind, Body body) {
  try {
    Communication &communication = *Gpu::of(context).communication;
    communication.run(op, [&](CUstream stream) { body(communication.group(group), stream); });
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", ", kind, " ", op, ": ", error.what()));
  }
}

/// Calls of `each` for several tensors become one operation.
template <typename Each>
static void grouped(const MwSegment *segments, int64_t count, Each each) {
  MW_NCCL(ncclGroupStart);
  for (int64_t i = 0; i < count; ++i)
    each(segments[i]);
  MW_NCCL(ncclGroupEnd);
}

void mw_all_reduce(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t reduction,
                   const MwSegment *segments, int64_t count) {
  enqueue(context, op, group, "all_reduce", [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclAllReduce, s.input, s.output, size_t(s.count), typeOf(type),
              reductionOf(reduction), comm, stream);
    });
  });
}

void mw_all_gather(MwContext *context, int32_t op, int32_t group, int32_t type,
                   const MwSegment *segments, int64_t count) {
  enqueue(context, op, group, "all_gather", [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclAllGather, s.input, s.output, size_t(s.count), typeOf(type), comm, stream);
    });
  });
}

void mw_reduce_scatter(MwContext *context, int32_t op, int32_t group, int32_t type,
                       int32_t reduction, const MwSegment *segments, int64_t count) {
  enqueue(context, op, group, "reduce_scatter", [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclReduceScatter, s.input, s.output, size_t(s.count), typeOf(type),
              reductionOf(reduction), comm, stream);
    });
  });
}

void mw_all_to_all(MwContext *context, int32_t op, int32_t group, int32_t type, const void *input,
                   void *output, int64_t count) {
  enqueue(context, op, group, "all_to_all", [&](ncclComm_t comm, CUstream stream) {
    int64_t bytes = count * bytesOf(ElementType(type));
    int size = context->groups[size_t(group)]->size();
    MW_NCCL(ncclGroupStart);
    for (int peer = 0; peer < size; ++peer) {
      MW_NCCL(ncclSend, static_cast<const char *>(input) + peer * bytes, size_t(count),
              typeOf(type), peer, comm, stream);
      MW_NCCL(ncclRecv, static_cast<char *>(output) + peer * bytes, size_t(count), typeOf(type),
              peer, comm, stream);
    }
    MW_NCCL(ncclGroupEnd);
  });
}

void mw_permute(MwContext *context, int32_t op, int32_t group, int32_t type, const int32_t *from,
                const void *input, void *output, int64_t count) {
  enqueue(context, op, group, "permute", [&](ncclComm_t comm, CUstream stream) {
    Communicator &members = *context->groups[size_t(group)];
    MW_NCCL(ncclGroupStart);
    for (int to = 0; to < members.size(); ++to)
      if (from[to] == members.rank())
        MW_NCCL(ncclSend, input, size_t(count), typeOf(type), to, comm, stream);
    MW_NCCL(ncclRecv, output, size_t(count), typeOf(type), from[members.rank()], comm, stream);
    MW_NCCL(ncclGroupEnd);
  });
}

/// What is received replaces; sums of two need a kernel that is not there.
void mw_exchange(MwContext *context, int32_t op, int32_t group, int32_t type, const int32_t *table,
                 const MwSegment *segments, int64_t count, void *) {
  enqueue(context, op, group, "exchange", [&](ncclComm_t comm, CUstream stream) {
    Communicator &members = *context->groups[size_t(group)];
    ExchangeTable exchange{table, members.size()};
    int place = members.rank(), to = exchange.to(place), from = exchange.from(place);
    if (exchange.reduction() >= 0)
      fail("adds what it receives, which the compiler refuses for GPUs");
    int64_t width = bytesOf(ElementType(type));
    ::grouped(segments, count, [&](const MwSegment &s) {
      char *tensor = static_cast<char *>(s.output);
      if (to >= 0) {
        ExchangeTable::Range sent = exchange.pieces(s.count, exchange.send(place));
        MW_NCCL(ncclSend, tensor + sent.begin * width, size_t(sent.length()), typeOf(type), to,
                comm, stream);
      }
      if (from >= 0) {
        ExchangeTable::Range got = exchange.pieces(s.count, exchange.receive(place));
        MW_NCCL(ncclRecv, tensor + got.begin * width, size_t(got.length()), typeOf(type), from,
                comm, stream);
      }
    });
  });
}

void mw_broadcast(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
                  const void *input, void *output, int64_t count) {
  enqueue(context, op, group, "broadcast", [&](ncclComm_t comm, CUstream stream) {
    MW_NCCL(ncclBroadcast, input, output, size_t(count), typeOf(type), root, comm, stream);
  });
}

void mw_reduce(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
               int32_t reduction, const void *input, void *output, int64_t count) {
  enqueue(context, op, group, "reduce", [&](ncclComm_t comm, CUstream stream) {
    MW_NCCL(ncclReduce, input, output, size_t(count), typeOf(type), reductionOf(reduction), root,
            comm, stream);
  });
}

void mw_gather(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
               const void *input, void *output, int64_t count) {
  enqueue(context, op, group, "gather", [&](ncclComm_t comm, CUstream stream) {
    Communicator &members = *context->groups[size_t(group)];
    int64_t bytes = count * bytesOf(ElementType(type));
    MW_NCCL(ncclGroupStart);
    MW_NCCL(ncclSend, input, size_t(count), typeOf(type), root, comm, stream);
    if (members.rank() == root)
      for (int peer = 0; peer < members.size(); ++peer)
        MW_NCCL(ncclRecv, static_cast<char *>(output) + peer * bytes, size_t(count), typeOf(type),
                peer, comm, stream);
    MW_NCCL(ncclGroupEnd);
  });
}

void mw_scatter(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
                const void *input, void *output, int64_t count) {
  enqueue(context, op, group, "scatter", [&](ncclComm_t comm, CUstream stream) {
    Communicator &members = *context->groups[size_t(group)];
    int64_t bytes = count * bytesOf(ElementType(type));
    MW_NCCL(ncclGroupStart);
    if (members.rank() == root)
      for (int peer = 0; peer < members.size(); ++peer)
        MW_NCCL(ncclSend, static_cast<const char *>(input) + peer * bytes, size_t(count),
                typeOf(type), peer, comm, stream);
    MW_NCCL(ncclRecv, output, size_t(count), typeOf(type), root, comm, stream);
    MW_NCCL(ncclGroupEnd);
  });
}

void mw_send(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t peer,
             const void *input, int64_t count, void *buffer) {
  try {
    Gpu::of(context).communication->send(op, group, peer, typeOf(type), input, size_t(count),
                                         size_t(count * bytesOf(ElementType(type))), buffer);
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", send ", op, ": ", error.what()));
  }
}

void mw_recv(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t peer,
             void *output, int64_t count) {
  try {
    Gpu::of(context).communication->receive(op, group, peer, typeOf(type), output, size_t(count));
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", recv ", op, ": ", error.what()));
  }
}

void mw_finish_sends(MwContext *context) {
  try {
    Gpu::of(context).communication->finishSends();
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", last messages: ", error.what()));
  }
}

void mw_start(MwContext *context, int32_t start) {
  Gpu::of(context).communication->startNext(start);
}

void mw_wait(MwContext *context, int32_t start) {
  try {
    Gpu::of(context).communication->wait(start);
  } catch (const std::exception &error) {
    endAllRanks(text("rank ", context->rank(), ", wait ", start, ": ", error.what()));
  }
}
