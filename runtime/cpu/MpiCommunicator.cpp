//===- MpiCommunicator.cpp - collectives of MPI processes -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/MpiCommunicator.h"

#include "common/communication/Reduce.h"
#include "common/launch/Device.h"
#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/Traffic.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <unistd.h>

using namespace meshwright;

// Below this a broadcast goes straight from the root; above, the root scatters and
// the members gather, so that it does not send everything size() - 1 times.
static constexpr int64_t directBroadcastBytes = 64 * 1024;

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiMessages> mpi, RankStatus &status)
    : MpiCommunicator(mpi, status, firstRanks(mpi->size()), mpi->rank(), std::make_shared<int>(0)) {
}

// Every process creates its communicators in the same order (split is collective),
// so counting them gives all members of a group the same channel.
MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiMessages> mpi, RankStatus &status,
                                 std::vector<int> members, int rank, std::shared_ptr<int> channels)
    : Communicator(std::move(members), rank), mpi(std::move(mpi)), status(status),
      nextChannel(std::move(channels)), channel((*nextChannel)++), posted(this->members.size()) {}

std::unique_ptr<Communicator> MpiCommunicator::split(const std::vector<int> &positions) {
  auto found = std::find(positions.begin(), positions.end(), rank());
  if (found == positions.end())
    fail("rank ", worldRank(rank()), " splits off a group that it is not in");
  std::vector<int> ranks;
  for (int position : positions)
    ranks.push_back(worldRank(position));
  return std::unique_ptr<Communicator>(new MpiCommunicator(
      mpi, status, std::move(ranks), int(found - positions.begin()), nextChannel));
}

// MPI has no wait with a time-out, so this is a compromise between quick answers
// and leaving the core alone.
static void idle(std::chrono::nanoseconds waited) {
  if (waited < std::chrono::milliseconds(1))
    sched_yield();
  else
    usleep(waited < std::chrono::milliseconds(100) ? 20 : 500);
}

/// Polls until all requests are done. Never blocks in the library, so that wait
/// reports and time-outs work; backs off so that a waiting rank leaves its core to
/// those it waits for.
void MpiCommunicator::waitAll(Requests &requests) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  Clock::time_point begin = {}, reported = {};
  int64_t polls = 0;
  size_t before = requests.size();
  while (true) {
    auto done = [&](auto &request) { return mpi->test(*request.second); };
    requests.erase(std::remove_if(requests.begin(), requests.end(), done), requests.end());
    if (requests.empty())
      break;
    if (++polls < 100)
      continue;
    Clock::time_point now = Clock::now();
    if (begin == Clock::time_point())
      begin = now;
    if (now - begin > milliseconds(5) && now - reported > milliseconds(50)) {
      std::vector<int> peers;
      for (const auto &request : requests)
        if (std::find(peers.begin(), peers.end(), request.first) == peers.end())
          peers.push_back(request.first);
      // Each message that has come extends the deadline.
      if (requests.size() != before) {
        status.clearWaiting();
        before = requests.size();
      }
      status.setWaiting(std::move(peers));
      reported = now;
    }
    idle(now - begin);
  }
  if (reported != Clock::time_point())
    status.clearWaiting();
}

/// Starts all messages, the receives first.
void MpiCommunicator::start(const std::vector<Message> &messages, Requests &requests) {
  for (Message::Direction direction : {Message::Receive, Message::Send})
    for (const Message &message : messages) {
      if (message.direction != direction)
        continue;
      int peer = worldRank(message.peer);
      for (int64_t at = 0; at < message.bytes; at += MpiMessages::maxMessageBytes) {
        int64_t bytes = std::min(MpiMessages::maxMessageBytes, message.bytes - at);
        char *data = static_cast<char *>(message.data) + at;
        sent += direction == Message::Send ? bytes : 0;
        requests.push_back({peer, direction == Message::Receive
                                      ? mpi->startReceive(peer, channel, call, data, bytes)
                                      : mpi->startSend(peer, channel, call, data, bytes)});
      }
    }
}

void MpiCommunicator::exchange(const std::vector<Message> &messages) {
  Requests requests;
  start(messages, requests);
  waitAll(requests);
}

void MpiCommunicator::sendPart(std::vector<Message> &messages, int peer, const void *data,
                               int64_t bytes) const {
  if (peer != rank() && bytes > 0)
    messages.push_back({Message::Send, peer, const_cast<void *>(data), bytes});
}

void MpiCommunicator::receivePart(std::vector<Message> &messages, int peer, void *data,
                                  int64_t bytes) const {
  if (peer != rank() && bytes > 0)
    messages.push_back({Message::Receive, peer, data, bytes});
}

/// Makes room for `bytes` bytes, no more, with no regard for what was there.
static void grow(std::vector<char> &memory, int64_t bytes) {
  if (int64_t(memory.size()) >= bytes)
    return;
  std::vector<char>().swap(memory);
  memory.resize(size_t(bytes));
}

/// Where a part of `bytes` bytes is received from member `index`.
char *MpiCommunicator::scratchFor(int index, int64_t bytes) {
  grow(received, bytes * size());
  return received.data() + index * bytes;
}

/// output = the reduction of `own` and the others' parts in scratch memory.
void MpiCommunicator::reduceParts(ElementType type, Reduction reduction, const void *own,
                                  void *output, int64_t count) const {
  int64_t width = bytesOf(type);
  std::vector<const void *> inputs(members.size());
  for (int64_t at = 0; at < count; at += reduceBlockElements) {
    for (int i = 0; i < size(); ++i)
      inputs[size_t(i)] =
          (i == rank() ? static_cast<const char *>(own) : received.data() + i * count * width) +
          at * width;
    reduceBlock(type, reduction, inputs.data(), size(), static_cast<char *>(output) + at * width,
                std::min(reduceBlockElements, count - at));
  }
}

void MpiCommunicator::barrier() {
  // Dissemination: after round k everyone knows of 2^(k+1) members (Hensgen, Finkel
  // and Manber, 1988).
  for (int distance = 1; distance < size(); distance *= 2) {
    char out = 0, in = 0;
    exchange({{Message::Send, (rank() + distance) % size(), &out, 1},
              {Message::Receive, (rank() + size() - distance) % size(), &in, 1}});
  }
}

void MpiCommunicator::post(ElementType type, const void *data, int64_t count, int to) {
  finishSend(to);
  std::vector<Message> messages;
  sendPart(messages, to, data, count * bytesOf(type));
  start(messages, posted[size_t(to)]);
}

void MpiCommunicator::finishSend(int to) { waitAll(posted[size_t(to)]); }

void MpiCommunicator::receive(ElementType type, void *data, int64_t count, int from) {
  std::vector<Message> messages;
  receivePart(messages, from, data, count * bytesOf(type));
  exchange(messages);
}

void MpiCommunicator::broadcast(ElementType type, void *data, int64_t count, int root) {
  int64_t bytes = count * bytesOf(type);
  char *bytesData = static_cast<char *>(data);
  std::vector<Message> messages;
  if (bytes <= directBroadcastBytes) {
    for (int i = 0; i < size() && rank() == root; ++i)
      sendPart(messages, i, data, bytes);
    if (rank() != root)
      receivePart(messages, root, data, bytes);
    exchange(messages);
    return;
  }
  int64_t part = ceilDivide(bytes, size());
  auto begin = [&](int i) { return std::min(bytes, i * part); };
  auto length = [&](int i) { return begin(i + 1) - begin(i); };
  for (int i = 0; i < size() && rank() == root; ++i)
    sendPart(messages, i, bytesData + begin(i), length(i));
  if (rank() != root)
    receivePart(messages, root, bytesData + begin(rank()), length(rank()));
  exchange(messages);
  messages.clear();
  for (int i = 0; i < size(); ++i) {
    if (i != root)
      sendPart(messages, i, bytesData + begin(rank()), length(rank()));
    if (rank() != root)
      receivePart(messages, i, bytesData + begin(i), length(i));
  }
  exchange(messages);
}

void MpiCommunicator::reduce(ElementType type, Reduction reduction, const void *input, void *output,
                             int64_t count, int root) {
  int64_t width = bytesOf(type), window = windowElements(width, size());
  const char *in = static_cast<const char *>(input);
  char *out = static_cast<char *>(output);
  std::vector<char> result;
  // Element `at` of each member's part, and how many follow in this window.
  auto begin = [&](int i, int64_t at) {
    return std::min(partOffset(count, size(), i) + at, partOffset(count, size(), i + 1));
  };
  for (int64_t at = 0; at < partOffset(count, size(), 1); at += window) {
    auto length = [&](int i) { return (begin(i, at + window) - begin(i, at)) * width; };
    std::vector<Message> messages;
    for (int i = 0; i < size(); ++i) {
      sendPart(messages, i, in + begin(i, at) * width, length(i));
      receivePart(messages, i, scratchFor(i, length(rank())), length(rank()));
    }
    exchange(messages);
    result.resize(size_t(length(rank())));
    reduceParts(type, reduction, in + begin(rank(), at) * width, result.data(),
                length(rank()) / width);
    messages.clear();
    if (rank() != root) {
      sendPart(messages, root, result.data(), length(rank()));
    } else {
      std::copy(result.begin(), result.end(), out + begin(rank(), at) * width);
      for (int i = 0; i < size(); ++i)
        receivePart(messages, i, out + begin(i, at) * width, length(i));
    }
    exchange(messages);
  }
}

/// Calls move(input, output, count) for each pack of a call's tensors. Of several
/// tensors, input and output are copies: first every tensor's first part, then
/// every tensor's second, and so on.
template <typename Move>
void MpiCommunicator::forEachPack(ElementType type, Segments segments, int64_t inputParts,
                                  int64_t outputParts, Move move) {
  int64_t width = bytesOf(type);
  // Bounded as a whole: what is sent does not depend on packs where there are parts.
  for (Pack pack : packsOf(segments.counts(), width * std::max(inputParts, outputParts))) {
    if (pack.end == pack.begin + 1) {
      const MwSegment &one = segments[pack.begin];
      move(one.input, one.output, one.count);
      continue;
    }
    grow(packed, pack.count * width * (inputParts + outputParts));
    char *input = packed.data(), *output = input + pack.count * width * inputParts;
    auto copyAll = [&](char *at, int64_t parts, bool in) {
      for (int64_t part = 0; part < parts; ++part)
        for (size_t i = pack.begin; i < pack.end; ++i) {
          int64_t bytes = segments[i].count * width;
          if (in)
            std::copy_n(static_cast<const char *>(segments[i].input) + part * bytes, bytes, at);
          else
            std::copy_n(at, bytes, static_cast<char *>(segments[i].output) + part * bytes);
          at += bytes;
        }
    };
    copyAll(input, inputParts, /*in=*/true);
    move(input, output, pack.count);
    copyAll(output, outputParts, /*in=*/false);
  }
}

void MpiCommunicator::allReduce(ElementType type, Reduction reduction, Segments segments) {
  forEachPack(type, segments, 1, 1, [&](const void *input, void *output, int64_t count) {
    allReduceOne(type, reduction, input, output, count);
  });
}

void MpiCommunicator::allGather(ElementType type, Segments segments) {
  forEachPack(type, segments, 1, size(), [&](const void *input, void *output, int64_t count) {
    allGatherOne(type, input, output, count);
  });
}

void MpiCommunicator::reduceScatter(ElementType type, Reduction reduction, Segments segments) {
  forEachPack(type, segments, size(), 1, [&](const void *input, void *output, int64_t count) {
    reduceScatterOne(type, reduction, input, output, count);
  });
}

void MpiCommunicator::allReduceOne(ElementType type, Reduction reduction, const void *input,
                                   void *output, int64_t count) {
  int64_t width = bytesOf(type), window = windowElements(width, size()) * size();
  if (count > 0 && isDirect(count, width, size())) {
    // One exchange instead of two: everyone gets everything and reduces it.
    std::vector<Message> messages;
    for (int i = 0; i < size(); ++i) {
      sendPart(messages, i, input, count * width);
      receivePart(messages, i, scratchFor(i, count * width), count * width);
    }
    exchange(messages);
    reduceParts(type, reduction, input, output, count);
    return;
  }
  for (int64_t at = 0; at < count; at += window) {
    const char *in = static_cast<const char *>(input) + at * width;
    char *out = static_cast<char *>(output) + at * width;
    int64_t all = std::min(window, count - at), part = ceilDivide(all, size());
    auto begin = [&](int i) { return std::min(all, i * part); };
    auto length = [&](int i) { return (begin(i + 1) - begin(i)) * width; };
    std::vector<Message> messages;
    for (int i = 0; i < size(); ++i) {
      sendPart(messages, i, in + begin(i) * width, length(i));
      receivePart(messages, i, scratchFor(i, length(rank())), length(rank()));
    }
    exchange(messages);
    char *mine = out + begin(rank()) * width;
    reduceParts(type, reduction, in + begin(rank()) * width, mine, length(rank()) / width);
    messages.clear();
    for (int i = 0; i < size(); ++i) {
      sendPart(messages, i, mine, length(rank()));
      receivePart(messages, i, out + begin(i) * width, length(i));
    }
    exchange(messages);
  }
}

void MpiCommunicator::allGatherOne(ElementType type, const void *input, void *output,
                                   int64_t count) {
  int64_t bytes = count * bytesOf(type);
  char *out = static_cast<char *>(output);
  std::vector<Message> messages;
  for (int i = 0; i < size(); ++i) {
    sendPart(messages, i, input, bytes);
    receivePart(messages, i, out + i * bytes, bytes);
  }
  if (bytes && out + rank() * bytes != input)
    std::memcpy(out + rank() * bytes, input, size_t(bytes));
  exchange(messages);
}

void MpiCommunicator::reduceScatterOne(ElementType type, Reduction reduction, const void *input,
                                       void *output, int64_t count) {
  int64_t width = bytesOf(type), window = windowElements(width, size());
  const char *in = static_cast<const char *>(input);
  for (int64_t at = 0; at < count; at += window) {
    int64_t part = std::min(window, count - at);
    std::vector<Message> messages;
    for (int i = 0; i < size(); ++i) {
      sendPart(messages, i, in + (i * count + at) * width, part * width);
      receivePart(messages, i, scratchFor(i, part * width), part * width);
    }
    exchange(messages);
    reduceParts(type, reduction, in + (rank() * count + at) * width,
                static_cast<char *>(output) + at * width, part);
  }
}

void MpiCommunicator::allToAll(ElementType type, const void *input, void *output, int64_t count,
                               int64_t row) {
  int64_t bytes = count * bytesOf(type);
  const char *in = static_cast<const char *>(input);
  char *out = static_cast<char *>(output);
  // How much of each block is sent, and received, is said first.
  std::vector<int64_t> mine(size_t(size()), bytes), theirs(size_t(size()), bytes);
  std::vector<Message> messages;
  for (int i = 0; row > 0 && i < size(); ++i) {
    mine[size_t(i)] = filledBytes(in + i * bytes, bytes, row * bytesOf(type));
    sendPart(messages, i, &mine[size_t(i)], sizeof(int64_t));
    receivePart(messages, i, &theirs[size_t(i)], sizeof(int64_t));
  }
  exchange(messages);
  theirs[size_t(rank())] = mine[size_t(rank())];
  messages.clear();
  for (int i = 0; i < size(); ++i) {
    if (theirs[size_t(i)] < 0 || theirs[size_t(i)] > bytes)
      fail("all_to_all: member ", i, " says that it sends ", theirs[size_t(i)], " of ", bytes,
           " bytes");
    sendPart(messages, i, in + i * bytes, mine[size_t(i)]);
    receivePart(messages, i, out + i * bytes, theirs[size_t(i)]);
  }
  if (bytes)
    std::memcpy(out + rank() * bytes, in + rank() * bytes, size_t(bytes));
  exchange(messages);
  for (int i = 0; i < size(); ++i)
    std::memset(out + i * bytes + theirs[size_t(i)], 0, size_t(bytes - theirs[size_t(i)]));
}

void MpiCommunicator::gather(ElementType type, const void *input, void *output, int64_t count,
                             int root) {
  int64_t bytes = count * bytesOf(type);
  char *out = static_cast<char *>(output);
  std::vector<Message> messages;
  if (rank() != root) {
    sendPart(messages, root, input, bytes);
  } else {
    for (int i = 0; i < size(); ++i)
      receivePart(messages, i, out + i * bytes, bytes);
    if (bytes)
      std::memcpy(out + rank() * bytes, input, size_t(bytes));
  }
  exchange(messages);
}

void MpiCommunicator::scatter(ElementType type, const void *input, void *output, int64_t count,
                              int root) {
  int64_t bytes = count * bytesOf(type);
  const char *in = static_cast<const char *>(input);
  std::vector<Message> messages;
  if (rank() != root) {
    receivePart(messages, root, output, bytes);
  } else {
    for (int i = 0; i < size(); ++i)
      sendPart(messages, i, in + i * bytes, bytes);
    if (bytes)
      std::memcpy(output, in + rank() * bytes, size_t(bytes));
  }
  exchange(messages);
}

void MpiCommunicator::permute(ElementType type, const void *input, void *output, int64_t count,
                              const std::vector<std::pair<int, int>> &pairs) {
  int64_t bytes = count * bytesOf(type);
  std::vector<Message> messages;
  bool receives = false;
  for (auto [from, to] : pairs) {
    if (from == rank())
      sendPart(messages, to, input, bytes);
    if (to != rank())
      continue;
    receives = true;
    receivePart(messages, from, output, bytes);
    if (from == to && bytes)
      std::memcpy(output, input, size_t(bytes));
  }
  if (!receives && bytes)
    std::memset(output, 0, size_t(bytes));
  exchange(messages);
}

// Small tensors travel together in packs. What is received lies in the same order on
// both sides, so sums need no unpacking: their packs arrive behind one another in the
// workspace.
void MpiCommunicator::exchange(ElementType type, ExchangeTable table, Segments segments,
                               void *workspace) {
  int64_t width = bytesOf(type);
  int to = table.to(rank()), from = table.from(rank());
  bool adds = table.reduction() >= 0;
  // The bytes of each tensor that are moved, and the packs that they go in.
  struct Side {
    std::vector<char *> parts;
    std::vector<int64_t> counts;
    std::vector<Pack> packs;
  };
  auto sideOf = [&](int first) {
    Side side;
    for (const MwSegment &segment : segments) {
      ExchangeTable::Range range = table.pieces(segment.count, first);
      side.parts.push_back(static_cast<char *>(segment.output) + range.begin * width);
      side.counts.push_back(range.length());
    }
    side.packs = packsOf(side.counts, width);
    return side;
  };
  Side out, in;
  if (to >= 0)
    out = sideOf(table.send(rank()));
  if (from >= 0)
    in = sideOf(table.receive(rank()));
  grow(packed, table.packedBytes(rank(), segments.counts(), width));
  std::vector<Message> messages;
  char *at = packed.data();
  for (const Pack &pack : out.packs) {
    if (pack.end == pack.begin + 1) {
      sendPart(messages, to, out.parts[pack.begin], pack.count * width);
      continue;
    }
    sendPart(messages, to, at, pack.count * width);
    for (size_t i = pack.begin; i < pack.end; ++i)
      at = std::copy_n(out.parts[i], out.counts[i] * width, at);
  }
  char *scratch = adds ? static_cast<char *>(workspace) : at;
  for (const Pack &pack : in.packs) {
    bool direct = !adds && pack.end == pack.begin + 1;
    receivePart(messages, from, direct ? in.parts[pack.begin] : scratch, pack.count * width);
    scratch += direct ? 0 : pack.count * width;
  }
  exchange(messages);
  scratch = adds ? static_cast<char *>(workspace) : at;
  for (const Pack &pack : in.packs)
    for (size_t i = pack.begin; i < pack.end; ++i) {
      int64_t bytes = in.counts[i] * width;
      if (!adds) {
        if (pack.end > pack.begin + 1) {
          std::copy_n(scratch, bytes, in.parts[i]);
          scratch += bytes;
        }
        continue;
      }
      for (int64_t done = 0; done < in.counts[i]; done += reduceBlockElements) {
        char *mine = in.parts[i] + done * width;
        const void *both[] = {mine, scratch + done * width};
        reduceBlock(type, Reduction(table.reduction()), both, 2, mine,
                    std::min(reduceBlockElements, in.counts[i] - done));
      }
      scratch += bytes;
    }
}

Meeting meshwright::meetByMpi(int processes, RankStatus &status) {
  WaitScope wait(status, "the start of MPI; ranks that print no such report are missing");
  auto mpi = std::make_shared<MpiMessages>(processes);
  Meeting meeting;
  meeting.world = std::make_unique<MpiCommunicator>(mpi, status);
  meeting.abort = [mpi](int code) { mpi->abort(code); };
  meeting.finish = [mpi] { mpi->finish(); };
  return meeting;
}
