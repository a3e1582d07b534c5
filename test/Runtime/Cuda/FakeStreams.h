//===- FakeStreams.h - streams, events and graphs of the fake GPU -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Work is done when it is put on a stream, unless the stream is being captured: then it
// is kept and done whenever the graph is launched. What is checked is its order, with
// vector clocks (Mattern, 1989): of two pieces of work that touch the same memory, one of
// them writing, one must come first on its stream, by events, or because the host has
// waited for it. That holds for captured work in each launch too, and everything that a
// capture has forked must be joined when it ends. Streams and events belong to the context
// that is current where they are made, and threads have none at first.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_FAKESTREAMS_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_FAKESTREAMS_H

#include "cuda.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fake {

/// Ends the process with a message.
[[noreturn]] void wrong(const char *format, ...);

extern std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

/// Memory that work touches.
struct Access {
  enum Kind {
    Read,
    Write,
    /// A kernel's argument, of which neither the direction nor the size is known: it
    /// comes after writes of its first bytes, and before what is put on later.
    Use
  };
  Kind kind;
  CUdeviceptr begin;
  size_t bytes;
};

using Flag = std::shared_ptr<std::atomic<bool>>;

struct Work {
  std::string name;
  std::vector<Access> accesses;
  /// False: it does not end, and nothing that comes after it on its stream does.
  std::function<bool()> run;
  /// Where not null, `run` writes here what else it has touched.
  std::shared_ptr<std::vector<Access>> found = nullptr;
  /// Memory of the host that is read and not pinned: it must stay as it is until the host
  /// knows that the work has ended, and no capture may have it.
  const char *source = nullptr;
  size_t sourceBytes = 0;
  /// Of a message that is sent: where `run` finds what becomes true once it is taken. Nothing
  /// that comes after it on its stream, or waits for it, goes on before; work of the same
  /// `group` does.
  std::shared_ptr<Flag> sends = nullptr;
  uint64_t group = 0;
};

/// Puts work on a stream.
void submit(CUstream stream, Work work);
void checkStream(const char *what, CUstream stream);
/// Ends the process unless the thread has a context.
void checkContext(const char *what);
/// For calls that the thread that captures must not make.
void checkNoCapture(const char *what);
/// Ends the process unless so much memory is there.
void checkRange(const char *what, CUdeviceptr address, size_t bytes);
/// Whether an allocation is such that other processes' GPUs can have it; ends the process where it is none.
bool isShared(CUdeviceptr address, size_t bytes);
/// Ends the process unless the host knows that all that touches the memory has ended.
void checkOver(const char *what, CUdeviceptr begin, size_t bytes);
/// Ends the process if a communicator knows the memory.
void checkUnregistered(CUdeviceptr address);
/// A library launches its kernel `name`, and loads it where it is the first time: the driver may
/// wait for all that the GPU is doing, so nothing of other ranks' may be under way.
void launchOfLibrary(const std::string &name);
/// Whether this thread's rank has begun to communicate.
extern thread_local bool communicates;
/// Counts in the log what ran.
void countLaunch(const std::string &name);
/// Milliseconds that work would have taken so far; events note it.
extern double busy;
/// The memory is no longer there.
void forget(CUdeviceptr begin, size_t bytes);
/// What the driver has found: every call of this thread says so from now on.
extern thread_local CUresult sticky;

} // namespace fake

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_FAKESTREAMS_H
