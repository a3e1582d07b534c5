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
class HostArena : public Arena {
public:
  HostArena(int64_t bytes, int64_t keptBytes) : pages(bytes), keptPages(keptBytes) {
    host = pages.data();
    kept = keptPages.data();
  }
  char *program() const override { return host; }
  void upload(int64_t, int64_t) override {}
  void download(int64_t, int64_t) override {}

private:
  Pages pages, keptPages;
};
} // namespace

std::unique_ptr<Arena> meshwright::makeArena(MwContext &context) {
  cpu::reserveBlasBuffers(context.threads);
  return std::make_unique<HostArena>(context.plan.arenaBytes, context.plan.hostBytes);
}
