//===- HostArena.cpp - tensors in the host's memory -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Arena.h"
#include "common/train/Context.h"
#include "cpu/BlasBuffers.h"

using namespace meshwright;

namespace {
class HostMemory : public OffloadMemory {
public:
  explicit HostMemory(int64_t bytes) : pages(bytes) {}
  char *data() const override { return pages.data(); }

private:
  Pages pages;
};

class HostArena : public Arena {
public:
  explicit HostArena(const MwContext &context) : pages(context.plan.arena().bytes) {
    host = pages.data();
    allocateOffloaded(context);
  }
  char *program() const override { return host; }
  void upload(int64_t, int64_t) override {}
  void download(int64_t, int64_t) override {}

private:
  Pages pages;
};
} // namespace

std::unique_ptr<OffloadMemory> meshwright::allocateHost(const MwContext &, int64_t bytes, char *) {
  return std::make_unique<HostMemory>(bytes);
}

std::unique_ptr<Arena> meshwright::makeArena(MwContext &context) {
  cpu::reserveBlasBuffers(context.threads);
  return std::make_unique<HostArena>(context);
}
