//===- CommunicationSimulator.h - what devices tell each other, in order ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs the communication of programs without their values. Devices wait for named
// others only, so whether all come to their ends does not depend on who is faster:
// one run proves it for all (Kahn 1974).
//
// Devices that run one program and differ only along axes of which no message and
// no program tells them apart do the same at the same time. One of them stands for
// all, and collectives among them alone need not be looked at.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_COMMUNICATIONSIMULATOR_H
#define MESHWRIGHT_LIB_DIST_COMMUNICATIONSIMULATOR_H

#include "Dist/Dist.h"

#include <deque>
#include <map>

namespace meshwright::dist {

class CommunicationSimulator {
public:
  /// `capacity`: messages of one channel that a device can have on their way to
  /// another before it waits; with 0 it waits until they are received.
  CommunicationSimulator(llvm::ArrayRef<mlir::ModuleOp> programs, const Mesh &mesh,
                         int64_t capacity);

  /// Whether messages or programs tell devices apart at all.
  bool isNeeded() const { return !apart.empty(); }

  /// Runs the functions `entries`, one of each program. What does not meet is
  /// reported at both places.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::func::FuncOp> entries);

private:
  struct Device {
    int64_t rank;
    mlir::func::FuncOp entry;
    const llvm::SmallVector<mlir::Operation *, 0> *ops;
    size_t next = 0;
    /// Whether the op at `next` has begun: sent, or come to the meeting.
    bool begun = false;
  };
  /// From, to, the group's axes, channel.
  using Channel = std::tuple<int64_t, int64_t, Axes, int64_t>;
  struct Message {
    SendOp op;
    bool waitedFor; ///< the sender goes on when it is received
  };
  /// By the axes and the first member of the group.
  using Group = std::pair<Axes, int64_t>;
  struct Meeting {
    mlir::Operation *first = nullptr;
    int64_t firstRank = 0;
    llvm::SmallVector<size_t> here; ///< numbers of devices
  };

  const llvm::SmallVector<mlir::Operation *, 0> &opsOf(mlir::func::FuncOp function);
  bool isRelevant(mlir::Operation *op) const;
  /// Moves a device on as far as it goes; false after an error.
  bool advance(size_t number);
  /// Each true: done; false: it waits; nothing: after an error.
  std::optional<bool> send(Device &device, SendOp op);
  std::optional<bool> receive(Device &device, RecvOp op);
  std::optional<bool> meet(size_t number, mlir::Operation *op);
  int64_t peerOf(const Device &device, mlir::Operation *op, int64_t place) const;
  void wake(int64_t rank) { ready.push_back(numbers.at(rank)); }
  /// The ranks that a device waits for.
  llvm::SmallVector<int64_t> awaited(const Device &device) const;
  mlir::LogicalResult reportStandstill();
  std::string describe(int64_t rank) const;

  llvm::SmallVector<mlir::ModuleOp> programs;
  const Mesh &mesh;
  int64_t capacity;
  Axes apart; ///< the axes along which devices are told apart
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 0>> expanded;
  std::vector<Device> devices;
  std::map<int64_t, size_t> numbers; ///< of devices, by rank
  std::map<Channel, std::deque<Message>> mail;
  std::map<Group, Meeting> meetings;
  std::deque<size_t> ready;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_COMMUNICATIONSIMULATOR_H
