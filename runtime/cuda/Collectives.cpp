//===- Collectives.cpp - communication by NCCL ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"
#include "meshwright/runtime/Traffic.h"

#include <numeric>

using namespace meshwright;
using namespace meshwright::cuda;

static ncclDataType_t ncclTypeOf(int32_t type) {
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
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
  case ElementType::I8:
    return ncclUint8; // which are moved, never reduced
  case ElementType::I16:
    fail("halves of numbers are not sent between ranks");
  }
  __builtin_unreachable();
}

static ncclRedOp_t reductionOf(int32_t reduction) {
  return reduction == MW_MAX ? ncclMax : ncclSum;
}

namespace {
/// A collective of the program, as its call describes it.
struct Call {
  MwContext *context;
  int32_t op, group;
  const char *kind;
  ElementType type;
  std::vector<int64_t> counts; ///< of its tensors

  MwContext::Membership self() const { return context->memberships[size_t(group)]; }
  int64_t width() const { return bytesOf(type); }
  int64_t bytes() const {
    return std::accumulate(counts.begin(), counts.end(), int64_t(0)) * width();
  }
  /// What the members send each other, as the plan has it; NCCL divides it as it likes.
  int64_t traffic(int root = 0) const {
    return trafficOf(kind, counts, width(), self().size, root);
  }
  /// This member's part of it, where all have the same.
  int64_t evenly(int root = 0) const {
    int64_t all = traffic(root), size = self().size;
    return all / size + (self().rank < all % size);
  }
  int64_t ifRoot(int root) const { return self().rank == root ? traffic(root) : 0; }
};

std::vector<int64_t> countsOf(const MwSegment *segments, int64_t count) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < count; ++i)
    counts.push_back(segments[i].count);
  return counts;
}
} // namespace

/// Puts a call on a stream: `body(gpu, communicator, stream)`. `sent` is what the rank sends.
template <typename Body> static void enqueue(const Call &call, int64_t sent, Body body) {
  MwContext *context = call.context;
  auto what = [&] { return context->plan.describeCollective(call.op); };
  Gpu::enqueue(context, what, [&](Gpu &gpu) {
    Communication &communication = *gpu.communication;
    Trace *trace = context->trace && context->trace->recording ? context->trace.get() : nullptr;
    context->sentBytes[call.kind] += sent;
    communication.run(call.op, [&](CUstream stream) {
      if (trace)
        gpu.spans->begin(stream);
      body(gpu, call.group, stream);
      if (trace) {
        const char *location = context->plan.collectives.at(size_t(call.op)).location.c_str();
        gpu.spans->end(stream, *trace,
                       {call.kind, "gpu-collective", location, 0, 0, call.op, call.bytes(), 3});
      }
    });
  });
}

/// The same of a call with NCCL alone: `body(communicator, stream)`.
template <typename Body> static void communicate(const Call &call, int64_t sent, Body body) {
  enqueue(call, sent, [&](Gpu &gpu, int32_t group, CUstream stream) {
    body(gpu.communication->group(group), stream);
  });
}

/// NCCL's calls in `body` become one operation.
template <typename Body> static void together(Body body) {
  MW_NCCL(ncclGroupStart);
  body();
  MW_NCCL(ncclGroupEnd);
}

template <typename Each>
static void grouped(const MwSegment *segments, int64_t count, Each each) {
  together([&] {
    for (int64_t i = 0; i < count; ++i)
      each(segments[i]);
  });
}

/// Address `base`, `elements` elements further.
static char *offset(const void *base, int64_t elements, int32_t type) {
  return const_cast<char *>(static_cast<const char *>(base)) +
         elements * bytesOf(ElementType(type));
}

void mw_all_reduce(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t reduction,
                   const MwSegment *segments, int64_t count) {
  Call call{context, op, group, "all_reduce", ElementType(type), countsOf(segments, count)};
  communicate(call, call.evenly(), [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclAllReduce, s.input, s.output, size_t(s.count), ncclTypeOf(type),
              reductionOf(reduction), comm, stream);
    });
  });
}

void mw_all_gather(MwContext *context, int32_t op, int32_t group, int32_t type,
                   const MwSegment *segments, int64_t count) {
  Call call{context, op, group, "all_gather", ElementType(type), countsOf(segments, count)};
  communicate(call, call.evenly(), [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclAllGather, s.input, s.output, size_t(s.count), ncclTypeOf(type), comm, stream);
    });
  });
}

void mw_reduce_scatter(MwContext *context, int32_t op, int32_t group, int32_t type,
                       int32_t reduction, const MwSegment *segments, int64_t count) {
  Call call{context, op, group, "reduce_scatter", ElementType(type), countsOf(segments, count)};
  communicate(call, call.evenly(), [&](ncclComm_t comm, CUstream stream) {
    ::grouped(segments, count, [&](const MwSegment &s) {
      MW_NCCL(ncclReduceScatter, s.input, s.output, size_t(s.count), ncclTypeOf(type),
              reductionOf(reduction), comm, stream);
    });
  });
}

void mw_all_to_all(MwContext *context, int32_t op, int32_t group, int32_t type, const void *input,
                   void *output, int64_t count) {
  Call call{context, op, group, "all_to_all", ElementType(type), {count}};
  communicate(call, call.evenly(), [&](ncclComm_t comm, CUstream stream) {
    together([&] {
      for (int peer = 0; peer < call.self().size; ++peer) {
        MW_NCCL(ncclSend, offset(input, peer * count, type), size_t(count), ncclTypeOf(type), peer,
                comm, stream);
        MW_NCCL(ncclRecv, offset(output, peer * count, type), size_t(count), ncclTypeOf(type), peer,
                comm, stream);
      }
    });
  });
}

void mw_permute(MwContext *context, int32_t op, int32_t group, int32_t type, const int32_t *from,
                const void *input, void *output, int64_t count) {
  Call call{context, op, group, "permute", ElementType(type), {count}};
  int self = call.self().rank;
  communicate(call, from[self] == self ? 0 : call.bytes(), [&](ncclComm_t comm, CUstream stream) {
    together([&] {
      for (int to = 0; to < call.self().size; ++to)
        if (from[to] == self)
          MW_NCCL(ncclSend, input, size_t(count), ncclTypeOf(type), to, comm, stream);
      MW_NCCL(ncclRecv, output, size_t(count), ncclTypeOf(type), from[self], comm, stream);
    });
  });
}

/// What is received replaces, or goes to the workspace and is added from there.
void mw_exchange(MwContext *context, int32_t op, int32_t group, int32_t type, const int32_t *table,
                 const MwSegment *segments, int64_t count, void *workspace) {
  Call call{context, op, group, "exchange", ElementType(type), countsOf(segments, count)};
  ExchangeTable exchange{table, call.self().size};
  int groupRank = call.self().rank, to = exchange.to(groupRank),
      from = exchange.from(groupRank);
  int64_t sent = 0;
  for (int64_t elements : call.counts)
    sent += to < 0 ? 0 : exchange.pieces(elements, exchange.send(groupRank)).length();
  bool adds = exchange.reduction() >= 0;
  enqueue(call, sent * call.width(), [&](Gpu &gpu, int32_t, CUstream stream) {
    ncclComm_t comm = gpu.communication->group(group);
    /// Addresses where it lies, where it comes in, and how much it is.
    struct Received {
      char *tensor, *arrives;
      int64_t count;
    };
    std::vector<Received> received;
    int64_t taken = 0;
    ::grouped(segments, count, [&](const MwSegment &s) {
      if (to >= 0) {
        ExchangeTable::Range range = exchange.pieces(s.count, exchange.send(groupRank));
        MW_NCCL(ncclSend, offset(s.output, range.begin, type), size_t(range.length()),
                ncclTypeOf(type), to, comm, stream);
      }
      if (from >= 0) {
        ExchangeTable::Range range = exchange.pieces(s.count, exchange.receive(groupRank));
        char *tensor = offset(s.output, range.begin, type);
        char *arrives = adds ? offset(workspace, taken, type) : tensor;
        MW_NCCL(ncclRecv, arrives, size_t(range.length()), ncclTypeOf(type), from, comm, stream);
        received.push_back({tensor, arrives, range.length()});
        taken += range.length();
      }
    });
    if (!adds || received.empty())
      return;
    int32_t kernel = gpu.kernels->find(
        text("exchange$", exchange.reduction() == MW_MAX ? "max" : "sum", "$", nameOf(call.type)));
    for (const Received &one : received)
      if (one.count > 0) {
        void *operands[] = {one.tensor, one.arrives, reinterpret_cast<void *>(one.count)};
        gpu.kernels->launch(kernel, operands, stream);
      }
  });
}

void mw_broadcast(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
                  const void *input, void *output, int64_t count) {
  Call call{context, op, group, "broadcast", ElementType(type), {count}};
  communicate(call, call.ifRoot(root), [&](ncclComm_t comm, CUstream stream) {
    MW_NCCL(ncclBroadcast, input, output, size_t(count), ncclTypeOf(type), root, comm, stream);
  });
}

void mw_reduce(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
               int32_t reduction, const void *input, void *output, int64_t count) {
  Call call{context, op, group, "reduce", ElementType(type), {count}};
  communicate(call, call.evenly(root), [&](ncclComm_t comm, CUstream stream) {
    MW_NCCL(ncclReduce, input, output, size_t(count), ncclTypeOf(type), reductionOf(reduction), root,
            comm, stream);
  });
}

void mw_gather(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
               const void *input, void *output, int64_t count) {
  Call call{context, op, group, "gather", ElementType(type), {count}};
  bool isRoot = call.self().rank == root;
  communicate(call, isRoot ? 0 : call.bytes(), [&](ncclComm_t comm, CUstream stream) {
    together([&] {
      MW_NCCL(ncclSend, input, size_t(count), ncclTypeOf(type), root, comm, stream);
      for (int peer = 0; isRoot && peer < call.self().size; ++peer)
        MW_NCCL(ncclRecv, offset(output, peer * count, type), size_t(count), ncclTypeOf(type), peer,
                comm, stream);
    });
  });
}

void mw_scatter(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t root,
                const void *input, void *output, int64_t count) {
  Call call{context, op, group, "scatter", ElementType(type), {count}};
  bool isRoot = call.self().rank == root;
  communicate(call, call.ifRoot(root), [&](ncclComm_t comm, CUstream stream) {
    together([&] {
      for (int peer = 0; isRoot && peer < call.self().size; ++peer)
        MW_NCCL(ncclSend, offset(input, peer * count, type), size_t(count), ncclTypeOf(type), peer,
                comm, stream);
      MW_NCCL(ncclRecv, output, size_t(count), ncclTypeOf(type), root, comm, stream);
    });
  });
}

void mw_send(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t peer,
             const void *input, int64_t count, void *buffer) {
  Call call{context, op, group, "send", ElementType(type), {count}};
  enqueue(call, call.bytes(), [&](Gpu &gpu, int32_t, CUstream stream) {
    gpu.communication->send(group, peer, ncclTypeOf(type), input, size_t(count), size_t(call.bytes()),
                            buffer, stream);
  });
}

void mw_recv(MwContext *context, int32_t op, int32_t group, int32_t type, int32_t peer,
             void *output, int64_t count) {
  Call call{context, op, group, "recv", ElementType(type), {count}};
  enqueue(call, 0, [&](Gpu &gpu, int32_t, CUstream stream) {
    gpu.communication->receive(group, peer, ncclTypeOf(type), output, size_t(count), stream);
  });
}

void mw_finish_sends(MwContext *context) {
  auto what = [] { return "the last messages"; };
  Gpu::enqueue(context, what, [&](Gpu &gpu) { gpu.communication->finishSends(); });
}

void mw_start(MwContext *context, int32_t token) {
  Gpu::of(context).communication->startNext(token);
}

void mw_wait(MwContext *context, int32_t token) {
  auto what = [&] { return text("the wait for collective or copy ", token); };
  Gpu::enqueue(context, what, [&](Gpu &gpu) {
    // Numbers of one program are those of collectives or of copies.
    if (!gpu.transfers || !gpu.transfers->wait(token))
      gpu.communication->wait(token);
  });
}
