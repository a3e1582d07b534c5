//===- MpiTransport.cpp - messages by OpenMPI -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/MpiTransport.h"

#include "common/Error.h"
#include "cpu/MpiSymbols.h"

#include <atomic>
#include <sched.h>
#include <thread>
#include <unistd.h>

using namespace meshwright;

namespace {
class MpiTransport final : public Transport {
public:
  explicit MpiTransport(int processes);

  int rank() const override { return self; }
  int size() const override { return count; }
  std::unique_ptr<Request> startSend(int peer, int channel, const void *data,
                                     int64_t bytes) override;
  std::unique_ptr<Request> startReceive(int peer, int channel, void *data, int64_t bytes) override;
  bool test(Request &request) override;
  void idle(std::chrono::nanoseconds waited) override;
  void abort(int code) override;
  void finish() override;

private:
  struct MpiRequest final : Request {
    MPI_Request handle;
    int from = -1; ///< of a message that is received, with its bytes
    int bytes = 0;
  };
  void check(int code, const char *call) const;

  const MpiSymbols &mpi;
  MPI_Comm comm = nullptr;
  int self = 0, count = 0;
  /// The thread that MPI was last called from; one at a time does.
  std::atomic<std::thread::id> owner{std::this_thread::get_id()};
};
} // namespace

MpiTransport::MpiTransport(int processes) : mpi(MpiSymbols::load()) {
  int provided;
  // The thread of CommunicationQueue calls MPI when it has work, else the rank's own does.
  check(mpi.MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
        "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    fail("this MPI may be called by one thread only, but communication has a thread of its own "
         "beside computation: use one built with MPI_THREAD_SERIALIZED, or start the ranks "
         "without mpirun (meshwright run) so that they use TCP");
  check(mpi.MPI_Comm_dup(mpi.ompi_mpi_comm_world, &comm), "MPI_Comm_dup");
  check(mpi.MPI_Comm_set_errhandler(comm, mpi.ompi_mpi_errors_return), "MPI_Comm_set_errhandler");
  check(mpi.MPI_Comm_rank(comm, &self), "MPI_Comm_rank");
  check(mpi.MPI_Comm_size(comm, &count), "MPI_Comm_size");
  if (count != processes) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    mpi.MPI_Get_library_version(version, &length);
    fail("the launcher started ", processes, " processes but MPI sees ", count, " (",
         std::string(version, size_t(length)), "): use the mpirun of this MPI, or srun --mpi=pmix");
  }
}

void MpiTransport::check(int code, const char *call) const {
  if (code == MPI_SUCCESS)
    return;
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  mpi.MPI_Error_string(code, message, &length);
  fail(call, " failed: ", std::string(message, size_t(length)),
       ": see the other ranks' messages for one that ended");
}

std::unique_ptr<Transport::Request> MpiTransport::startSend(int peer, int channel, const void *data,
                                                            int64_t bytes) {
  owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
  auto request = std::make_unique<MpiRequest>();
  check(mpi.MPI_Isend(data, int(bytes), mpi.ompi_mpi_byte, peer, channel, comm, &request->handle),
        "MPI_Isend");
  return request;
}

std::unique_ptr<Transport::Request> MpiTransport::startReceive(int peer, int channel, void *data,
                                                               int64_t bytes) {
  owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
  auto request = std::make_unique<MpiRequest>();
  request->from = peer;
  request->bytes = int(bytes);
  check(mpi.MPI_Irecv(data, int(bytes), mpi.ompi_mpi_byte, peer, channel, comm, &request->handle),
        "MPI_Irecv");
  return request;
}

bool MpiTransport::test(Request &request) {
  auto &own = static_cast<MpiRequest &>(request);
  int done = 0, sent = 0;
  MPI_Status status;
  check(mpi.MPI_Test(&own.handle, &done, &status), "MPI_Test");
  if (done && own.from >= 0) {
    check(mpi.MPI_Get_count(&status, mpi.ompi_mpi_byte, &sent), "MPI_Get_count");
    if (sent != own.bytes)
      fail("rank ", own.from, " sent ", sent, " bytes, but ", own.bytes,
           " were expected; the program is broken, please report it");
  }
  return done;
}

// MPI has no wait with a time-out, so this is a compromise between quick answers
// and leaving the core alone.
void MpiTransport::idle(std::chrono::nanoseconds waited) {
  if (waited < std::chrono::milliseconds(1))
    sched_yield();
  else
    usleep(waited < std::chrono::milliseconds(100) ? 20 : 500);
}

void MpiTransport::abort(int code) {
  // One thread at a time may call MPI. From another the process just ends, which its
  // launcher notices too.
  if (std::this_thread::get_id() == owner.load(std::memory_order_relaxed))
    mpi.MPI_Abort(mpi.ompi_mpi_comm_world, code);
}

void MpiTransport::finish() { check(mpi.MPI_Finalize(), "MPI_Finalize"); }

std::shared_ptr<Transport> meshwright::openMpiTransport(int processes) {
  return std::make_shared<MpiTransport>(processes);
}
