//===- CommunicationSimulator.h - what devices tell each other, in order ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs the communication of programs without their values. A device waits only for
// devices that the op names, so whether all programs end does not depend on timing:
// one run proves it for all runs (Kahn 1974).
//
// Devices that run one program and that no message distinguishes do the same at the
// same time. One of them stands for all, and collectives among them alone are skipped.
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
  /// `capacity`: messages of one channel that a device can have in flight to another
  /// before it waits; with 0 it waits until each message is received.
  CommunicationSimulator(llvm::ArrayRef<mlir::ModuleOp> programs, const Mesh &mesh,
                         int64_t capacity);

  /// Whether messages or programs distinguish devices at all.
  bool isNeeded() const { return !apart.empty(); }

  /// Runs the functions `entries`, one of each program. An error names both ops that do
  /// not match.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::func::FuncOp> entries);

private:
  struct Device {
    int64_t rank;
    mlir::func::FuncOp entry;
    const llvm::SmallVector<mlir::Operation *, 0> *ops;
    size_t next = 0;
    /// Whether the op at `next` has begun: its message is sent, or the device has reached
    /// its collective.
    bool begun = false;
  };
  /// From, to, the group's axes, channel.
  using Channel = std::tuple<int64_t, int64_t, Axes, int64_t>;
  struct Message {
    SendOp op;
    bool waitedFor; ///< the sender continues when it is received
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
  /// Runs a device until it has to wait; false after an error.
  bool advance(size_t number);
  /// Each true: done; false: it waits; nothing: after an error.
  std::optional<bool> send(Device &device, SendOp op);
  std::optional<bool> receive(Device &device, RecvOp op);
  std::optional<bool> meet(size_t number, mlir::Operation *op);
  int64_t peerOf(const Device &device, mlir::Operation *op, int64_t groupRank) const;
  void wake(int64_t rank) { ready.push_back(numbers.at(rank)); }
  /// The ranks that a device waits for.
  llvm::SmallVector<int64_t> awaited(const Device &device) const;
  mlir::LogicalResult reportStandstill();
  std::string describe(int64_t rank) const;

  llvm::SmallVector<mlir::ModuleOp> programs;
  const Mesh &mesh;
  int64_t capacity;
  Axes apart; ///< the axes along which devices differ
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *, 0>> expanded;
  std::vector<Device> devices;
  std::map<int64_t, size_t> numbers; ///< of devices, by rank
  std::map<Channel, std::deque<Message>> mail;
  std::map<Group, Meeting> meetings;
  std::deque<size_t> ready;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_COMMUNICATIONSIMULATOR_H
