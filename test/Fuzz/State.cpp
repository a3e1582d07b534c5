//===- State.cpp - any bytes as the state of a checkpoint -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The bytes get the checksum that they would have been written with, where they have room for one.
//
//===----------------------------------------------------------------------===//
#include "Scratch.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/Checksum.h"
#include "common/monitor/Error.h"

using namespace meshwright;

// `checkSameModel`, which is not called here, calls it for runs with adapters, and it would need all that gathers tensors.
void meshwright::checkAdapterConfig(const Plan &, const std::string &, const std::string &) { abort(); }

template <typename Read> static void attempt(Read read) {
  try {
    read();
  } catch (const Error &) {
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::Scratch scratch;
  static const std::string folder = scratch.path("run"), checkpoint = folder + "/step-00000003";
  static const bool isMade = std::filesystem::create_directories(checkpoint);
  (void)isMade;
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.find(noChecksum) != std::string::npos)
    seal(bytes);
  scratch.write("run/step-00000003/state.json", bytes);
  attempt([&] { readState(checkpoint); });
  attempt([&] { readIds(checkpoint); });
  attempt([&] { newestCheckpoint({folder}, [](const std::string &) {}); });
  attempt([&] { isUnfinished(checkpoint); });
  return 0;
}
