//===- Uring.cpp - reads and writes by io_uring ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The two rings of io_uring(7) are memory that is shared with the kernel: this thread writes requests and moves the
// tail of one ring, the kernel writes results and moves the tail of the other.
//
//===----------------------------------------------------------------------===//
#include "common/ssd/IoQueue.h"

#include "common/monitor/Error.h"

#include <cerrno>
#include <cstring>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace meshwright;

namespace {
/// Memory that is shared with the kernel; null where it could not be mapped.
class Shared {
public:
  Shared(int ring, size_t bytes, off_t what) : bytes(bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    memory = mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
  }
  ~Shared() {
    if (memory)
      munmap(memory, bytes);
  }
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;

  template <typename T> T *at(uint32_t offset) const { return reinterpret_cast<T *>(memory + offset); }
  explicit operator bool() const { return memory; }

private:
  char *memory;
  size_t bytes;
};

class Uring : public IoQueue {
public:
  Uring(int ring, int file, const io_uring_params &setup)
      : ring(ring), file(file), setup(setup),
        requests(ring, setup.sq_off.array + setup.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING),
        entries(ring, setup.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES),
        results(ring, setup.cq_off.cqes + setup.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING) {}
  ~Uring() override { close(ring); }

  bool isMapped() const { return requests && entries && results; }
  void start(int number, const IoRequest &request) override;
  Done next() override;

private:
  /// Gives the kernel what has been written and waits for `results` of what is under way.
  void enter(unsigned written, unsigned results);

  int ring, file;
  io_uring_params setup;
  Shared requests, entries, results;
};
} // namespace

void Uring::enter(unsigned written, unsigned results) {
  while (true) {
    long taken = syscall(SYS_io_uring_enter, ring, written, results, results ? IORING_ENTER_GETEVENTS : 0, nullptr, 0);
    if (taken >= long(written))
      return;
    if (taken < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY)
      fail("io_uring_enter: ", errnoText(errno));
    if (taken > 0)
      written -= unsigned(taken);
  }
}

void Uring::start(int number, const IoRequest &request) {
  uint32_t *tail = requests.at<uint32_t>(setup.sq_off.tail);
  uint32_t place = *tail & *requests.at<uint32_t>(setup.sq_off.ring_mask);
  io_uring_sqe &entry = entries.at<io_uring_sqe>(0)[place];
  std::memset(&entry, 0, sizeof(entry));
  entry.opcode = request.isWrite ? IORING_OP_WRITE : IORING_OP_READ;
  entry.fd = file;
  entry.addr = reinterpret_cast<uintptr_t>(request.memory);
  entry.len = uint32_t(request.bytes);
  entry.off = uint64_t(request.offset);
  entry.user_data = uint64_t(number);
  requests.at<uint32_t>(setup.sq_off.array)[place] = place;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  enter(1, 0);
}

IoQueue::Done Uring::next() {
  uint32_t *head = results.at<uint32_t>(setup.cq_off.head);
  while (*head == __atomic_load_n(results.at<uint32_t>(setup.cq_off.tail), __ATOMIC_ACQUIRE))
    enter(0, 1);
  const io_uring_cqe &entry =
      results.at<io_uring_cqe>(setup.cq_off.cqes)[*head & *results.at<uint32_t>(setup.cq_off.ring_mask)];
  Done done{int(entry.user_data), entry.res};
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  return done;
}

std::unique_ptr<IoQueue> meshwright::openUring(int file, int depth, int &error) {
  io_uring_params setup = {};
  auto ring = int(syscall(SYS_io_uring_setup, unsigned(depth), &setup));
  if (ring < 0) {
    error = errno;
    return nullptr;
  }
  auto queue = std::make_unique<Uring>(ring, file, setup);
  if (queue->isMapped())
    return queue;
  error = ENOMEM;
  return nullptr;
}
