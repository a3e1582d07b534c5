//===- MappingWatch.cpp - errors of mapped files --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/MappingWatch.h"

#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"

#include <csignal>
#include <map>
#include <mutex>

using namespace meshwright;

namespace {
struct Mapping {
  int64_t bytes;
  std::string before, after;
};
/// The files that are mapped now, for the handler of SIGBUS.
struct Mappings {
  std::mutex mutex;
  std::map<const char *, Mapping> files;
};
} // namespace

// Never destroyed: threads may still read while static objects are torn down.
static Mappings &mappings() {
  static Mappings *instance = new Mappings;
  return *instance;
}

/// The thread that gets the signal was reading memory, and so holds no lock.
static void onMissingPage(int, siginfo_t *info, void *) {
  const auto *address = static_cast<const char *>(info->si_addr);
  std::string found;
  {
    std::lock_guard<std::mutex> lock(mappings().mutex);
    auto next = mappings().files.upper_bound(address);
    if (next != mappings().files.begin()) {
      const auto &[start, file] = *--next;
      if (address < start + file.bytes)
        found = text(file.before, address - start, file.after);
    }
  }
  if (!found.empty())
    endAllRanks(found);
  // Not memory of a file: as if there were no handler.
  signal(SIGBUS, SIG_DFL);
}

static void handleMissingPages() {
  struct sigaction action = {};
  action.sa_sigaction = onMissingPage;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

MappingWatch::MappingWatch(const void *memory, int64_t bytes, std::string before, std::string after)
    : start(static_cast<const char *>(memory)) {
  static std::once_flag once;
  std::call_once(once, handleMissingPages);
  std::lock_guard<std::mutex> lock(mappings().mutex);
  mappings().files[start] = {bytes, std::move(before), std::move(after)};
}

MappingWatch::~MappingWatch() {
  std::lock_guard<std::mutex> lock(mappings().mutex);
  mappings().files.erase(start);
}
