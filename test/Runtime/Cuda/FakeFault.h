//===- FakeFault.h - what goes wrong on the fake GPU -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_FAKEFAULT_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_FAKEFAULT_H

#include <string>

namespace fake {

/// What FAKE_GPU_FAULT says.
struct Fault {
  std::string kind;
  int rank = -1;
  long at = 0;
};
const Fault &fault();

/// The rank that this thread is.
extern thread_local int rankHere;

/// For the log: messages of a channel that were sent, or received where `change` is -1.
void countMessage(const std::string &channel, long change);
/// For the log: a communicator with at most so many channels, or as many as NCCL likes.
void countChannels(int most);
/// For the log: the arena was made known to a communicator, as a "windows" or a "buffers".
void countRegistered(const char *kind);

} // namespace fake

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_FAKEFAULT_H
