//===- Allowances.cpp - what a GPU holds beside the arena -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Allowances.h"
#include "Exec/Exec.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/TripCount.h"
#include "meshwright/runtime/cuda/ArenaPages.h"
#include "meshwright/runtime/cuda/NcclChannels.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

//===----------------------------------------------------------------------===//
// The table: NVIDIA GPUs from sm_80 on
//===----------------------------------------------------------------------===//

static constexpr int64_t kib = 1 << 10, mib = 1 << 20;

// What the driver and the libraries took of an H100 (80 GB, driver 580, CUDA 13.0, cuBLASLt 13.1,
// cuDNN 9.19, NCCL 2.28) beside models of one to two billion parameters, in pages of 2 MiB: rounded
// up by one page where two runs differed by one.
static constexpr int64_t contextBytes = 536 * mib;
static constexpr const char *contextSource =
    "measured: 559,480,832 bytes of an H100 under driver 580 and CUDA 13.0";

static constexpr int64_t kernelsBytes = 6 * mib, blasBytes = 8 * mib, cudnnBytes = 20 * mib,
                         ncclCodeBytes = 2 * mib;
static constexpr const char *librariesSource =
    "measured on an H100: the program's kernels {0} MiB, NCCL {1} MiB, {2} MiB of cuBLASLt for products "
    "and {3} MiB of cuDNN for attention where the program has them";

static constexpr const char *pagesSource = "exact: the driver gives memory in pages of 2 MiB";

static constexpr int64_t nodeBytes = 2 * kib;
static constexpr const char *nodeSource =
    "{0:N0} nodes at most of 2 KiB: a graph of 2,346 nodes took 4,194,304 bytes of an H100";

/// Of one channel between two ranks: buffers of all protocols where data arrives (NCCL_BUFFSIZE,
/// 4 MiB, and those of LL and LL128) and what the sender has.
static constexpr int64_t connectionBytes = 12 * mib;
/// A ring and a tree: data comes from one neighbour in the first, in the second from one or,
/// between more than two ranks, from two.
static int64_t connectionsOfGroup(int64_t members) { return members == 2 ? 2 : 3; }
static constexpr int64_t connectionsOfMessages = 1;
/// Of one channel of sums that an NVLink switch adds, for each of the GPUs on it: 8 pieces of
/// 128 KiB (NCCL_NVLS_CHUNKSIZE) each way.
static constexpr int64_t switchBytes = 2 * mib, mostOnSwitch = 8;
static constexpr const char *ncclSource =
    "{0} communicators of groups with {1} channels where they work beside computation, else {2}, {3} of messages with {4}; 12 MiB a connection, as NCCL's log "
    "of allocations has it (NVIDIA/nccl issue 1685); 2 MiB a channel and GPU for NVLink's switches";
static constexpr int64_t worldBytes = 32 * mib;

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// Kernels, copies and the like that one run of `block` puts on streams, or more: loop nests of
/// a kernel are known when code is made, and conditions are taken as true.
static int64_t nodesOf(Block &block, SymbolTableCollection &symbols) {
  int64_t nodes = 0;
  for (Operation &op : block) {
    if (auto loop = dyn_cast<exec::LoopOp>(op)) {
      nodes +=
          int64_t(cost::tripCount(loop, cost::Rounds::Most)) * nodesOf(loop.getBlock(), symbols);
    } else if (auto when = dyn_cast<exec::WhenOp>(op)) {
      nodes += nodesOf(when.getBlock(), symbols);
    } else if (auto call = dyn_cast<exec::CallOp>(op)) {
      auto callee = symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
      nodes += nodesOf(callee.getBlock(), symbols);
    } else if (isa<exec::MemoryCollectiveOpInterface>(op)) {
      nodes += 4; // With notes of where it begins and ends, and a copy or sum.
    } else if (isa<exec::RouteOp>(op)) {
      nodes += 4;
    } else if (isa<exec::LaunchOp, exec::GroupedMatmulGradOp>(op)) {
      nodes += 3;
    } else if (!isMemoryEffectFree(&op)) {
      nodes += 2;
    }
  }
  return nodes;
}

/// Whether a run of `block` goes on by numbers that it computes. It is not captured then.
static bool followsData(Block &block, SymbolTableCollection &symbols) {
  return block
      .walk([&](Operation *op) {
        auto loop = dyn_cast<exec::LoopOp>(op);
        auto call = dyn_cast<exec::CallOp>(op);
        if (loop && loop.getTimes())
          return WalkResult::interrupt();
        if (!call)
          return WalkResult::advance();
        auto callee = symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
        return followsData(callee.getBlock(), symbols) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

static int64_t nodesOf(ModuleOp program) {
  SymbolTableCollection symbols;
  int64_t nodes = 0;
  for (auto entry : program.getOps<exec::ProgramOp>())
    if (!entry.isPrivate() && !followsData(entry.getBlock(), symbols))
      nodes += nodesOf(entry.getBlock(), symbols);
  return nodes;
}

static plan::Allowance librariesOf(ModuleOp program) {
  int64_t bytes = kernelsBytes + ncclCodeBytes, blas = 0, cudnn = 0;
  program.walk([&](Operation *op) {
    if (isa<exec::MatmulOp>(op))
      blas = blasBytes;
    if (op->hasAttr(exec::libraryAttr))
      cudnn = cudnnBytes;
  });
  return {"kernels and libraries", bytes + blas + cudnn,
          llvm::formatv(librariesSource, kernelsBytes / mib, ncclCodeBytes / mib, blasBytes / mib,
                        cudnnBytes / mib)
              .str()};
}

std::vector<plan::Allowance> cuda::allowancesOf(ModuleOp program,
                                                const Communication &communication) {
  int64_t nodes = nodesOf(program);
  auto arena = program->getAttrOfType<IntegerAttr>(exec::arenaBytesAttr);
  std::vector<plan::Allowance> result = {
      {"last page of the arena", restOfLastPage(arena ? arena.getInt() : 0), pagesSource},
      {"CUDA context", contextBytes, contextSource},
      librariesOf(program),
      {"CUDA graphs", nodes * nodeBytes, llvm::formatv(nodeSource, nodes).str()}};
  // Every rank is in a communicator of each group, but only in those of its own messages.
  struct Group {
    int64_t members = 0;
    bool overlaps = false; // with computation
  };
  std::map<unsigned, Group> groups;
  std::set<std::tuple<unsigned, int64_t, bool>> messages;
  for (const Collective &collective : communication.collectives) {
    if (collective.members == 1)
      continue;
    bool sends = isa<exec::SendOp>(collective.op), receives = isa<exec::RecvOp>(collective.op);
    if (!sends && !receives) {
      Group &group = groups[collective.group];
      group.members = collective.members;
      group.overlaps |= collective.op->hasAttr(exec::asyncTokenAttr);
    }
    else if (program->isAncestor(collective.op))
      messages.insert(
          {collective.group, *cast<exec::MemoryCollectiveOpInterface>(collective.op).getRootOrPeer(), sends});
  }
  if (groups.empty() && messages.empty())
    return result;
  int64_t ofGroups = 0;
  for (auto [number, group] : groups) {
    int64_t channels = group.overlaps ? ncclGroupChannels : ncclFreeChannels;
    ofGroups += connectionsOfGroup(group.members) * channels * connectionBytes;
    if (group.members > 2)
      ofGroups += std::min(group.members, mostOnSwitch) * channels * switchBytes;
  }
  int64_t ofMessages = connectionsOfMessages * ncclMessageChannels * connectionBytes;
  result.push_back({"NCCL", worldBytes + ofGroups + int64_t(messages.size()) * ofMessages,
                    llvm::formatv(ncclSource, groups.size(), ncclGroupChannels, ncclFreeChannels,
                                  messages.size(), ncclMessageChannels)
                        .str()});
  return result;
}
