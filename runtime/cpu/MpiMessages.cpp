//===- MpiMessages.cpp - messages by OpenMPI ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/MpiMessages.h"

#include "common/monitor/Error.h"

#include <thread>

using namespace meshwright;

/// Of a tag: room for this many communicators, the rest for the numbers of calls.
static constexpr int channelBits = 12;

MpiMessages::MpiMessages(int processes) : mpi(MpiSymbols::load()) {
  int provided;
  // The thread of CommunicationQueue calls MPI when it has work, else the rank's own does.
  check(mpi.MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    fail("this MPI may be called by one thread only, but communication has a thread of its own "
         "beside computation: use one built with MPI_THREAD_SERIALIZED, or start the ranks "
         "as threads of one process (--ranks N)");
  check(mpi.MPI_Comm_dup(mpi.ompi_mpi_comm_world, &comm), "MPI_Comm_dup");
  check(mpi.MPI_Comm_set_errhandler(comm, mpi.ompi_mpi_errors_return), "MPI_Comm_set_errhandler");
  check(mpi.MPI_Comm_rank(comm, &self), "MPI_Comm_rank");
  check(mpi.MPI_Comm_size(comm, &count), "MPI_Comm_size");
  void *limit = nullptr;
  int known = 0;
  check(mpi.MPI_Comm_get_attr(comm, MPI_TAG_UB, &limit, &known), "MPI_Comm_get_attr");
  for (int tag = known ? *static_cast<int *>(limit) : 32767; tag >> channelBits > 1; tag >>= 1)
    ++callBits;
  if (count != processes) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    mpi.MPI_Get_library_version(version, &length);
    fail("the launcher started ", processes, " processes but MPI sees ", count, " (",
         std::string(version, size_t(length)), "): use the mpirun of this MPI, or srun --mpi=pmix");
  }
}

void MpiMessages::check(int code, const char *call) const {
  if (code == MPI_SUCCESS)
    return;
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  mpi.MPI_Error_string(code, message, &length);
  fail(call, " failed: ", std::string(message, size_t(length)),
       ": see the other ranks' messages for one that ended");
}

/// Calls whose numbers have no room, and none, are 0.
int MpiMessages::tagOf(int channel, int call) const {
  if (channel >> channelBits)
    fail("MPI has tags for ", 1 << channelBits, " communicators, and this is one more");
  return channel << callBits | (call + 1 < 1 << callBits ? call + 1 : 0);
}

std::unique_ptr<MpiMessages::Request> MpiMessages::startSend(int peer, int channel, int call,
                                                             const void *data, int64_t bytes) {
  owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
  auto request = std::make_unique<Request>();
  check(mpi.MPI_Isend(data, int(bytes), mpi.ompi_mpi_byte, peer, tagOf(channel, call), comm,
                      &request->handle),
        "MPI_Isend");
  return request;
}

std::unique_ptr<MpiMessages::Request> MpiMessages::startReceive(int peer, int channel, int call,
                                                                void *data, int64_t bytes) {
  owner.store(std::this_thread::get_id(), std::memory_order_relaxed);
  auto request = std::make_unique<Request>();
  request->matched = false;
  request->from = peer;
  request->bytes = int(bytes);
  request->call = call;
  request->data = data;
  std::deque<Arrived> &early = arrived[{peer, channel}];
  if (early.empty()) {
    waiting[{peer, channel}].push_back(request.get());
    return request;
  }
  Arrived message = early.front();
  early.pop_front();
  receive(*request, message);
  return request;
}

/// Takes what has come from `peer`, for who waits for it or for later.
void MpiMessages::match(int peer) {
  while (true) {
    int found = 0;
    Arrived message;
    MPI_Status status;
    check(mpi.MPI_Improbe(peer, MPI_ANY_TAG, comm, &found, &message.message, &status),
          "MPI_Improbe");
    if (!found)
      return;
    check(mpi.MPI_Get_count(&status, mpi.ompi_mpi_byte, &message.bytes), "MPI_Get_count");
    message.call = (status.MPI_TAG & ((1 << callBits) - 1)) - 1;
    std::pair<int, int> queue(peer, status.MPI_TAG >> callBits);
    std::deque<Request *> &receivers = waiting[queue];
    if (receivers.empty()) {
      arrived[queue].push_back(message);
      continue;
    }
    Request *receiver = receivers.front();
    receivers.pop_front();
    receive(*receiver, message);
  }
}

void MpiMessages::receive(Request &request, Arrived message) {
  // What fits is taken in first, so that the queues stay in order.
  if (message.bytes != request.bytes) {
    checkCall(request, message.call);
    fail("rank ", request.from, " sent ", message.bytes, " bytes, but ", request.bytes,
         " were expected; the program is broken, please report it");
  }
  check(mpi.MPI_Imrecv(request.data, request.bytes, mpi.ompi_mpi_byte, &message.message,
                       &request.handle),
        "MPI_Imrecv");
  request.theirs = message.call;
  request.matched = true;
}

bool MpiMessages::test(Request &request) {
  if (!request.matched)
    match(request.from);
  if (!request.matched)
    return false;
  int done = 0;
  MPI_Status status;
  check(mpi.MPI_Test(&request.handle, &done, &status), "MPI_Test");
  if (done)
    checkCall(request, request.theirs);
  return done;
}

void MpiMessages::abort(int code) {
  // One thread at a time may call MPI. From another the process just ends, which its
  // launcher notices too.
  if (std::this_thread::get_id() == owner.load(std::memory_order_relaxed))
    mpi.MPI_Abort(mpi.ompi_mpi_comm_world, code);
}

void MpiMessages::finish() { check(mpi.MPI_Finalize(), "MPI_Finalize"); }
