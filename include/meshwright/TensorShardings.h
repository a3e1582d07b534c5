//===- TensorShardings.h - the search of shardings, for planners ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What lib/Dist/Search finds, for those who write it as seeds.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TENSORSHARDINGS_H
#define MESHWRIGHT_TENSORSHARDINGS_H

#include "Dist/Sharding.h"
#include "Train/Train.h"
#include "meshwright/Cost/Cluster.h"

#include <chrono>
#include <memory>
#include <vector>

namespace meshwright::dist {

class TensorSearch;

class TensorShardings {
public:
  /// A choice for every tensor; its seconds, and the least that any choice has.
  struct Choice {
    std::vector<unsigned> values;
    double cost = 0, bound = 0;
    bool isProved = false; ///< whether no choice costs less
    bool isOutOfTime = false; ///< the time ended before the search
  };
  /// A reshard, and its seconds of a step.
  struct Sent {
    mlir::Value value;
    Sharding from, to;
    double seconds = 0;
  };

  /// `searched` are axes of `mesh`.
  TensorShardings(Mesh mesh, Axes searched, const cost::Cluster &cluster);
  ~TensorShardings();

  /// Reads a training step of one device along all other axes.
  mlir::LogicalResult read(mlir::ModuleOp module);
  using Time = std::chrono::steady_clock::time_point;
  /// The least choice with tables of at most so many entries and a price for bytes that are kept.
  /// What is left at `end` is done with small tables.
  Choice minimize(size_t mostEntries, Time end, double secondsPerByte = 0) const;
  /// Seconds without a price; bytes that are kept.
  double costOf(const Choice &choice) const;
  double bytesOf(const Choice &choice) const;
  Sharding shardingOf(train::VariableOp variable, const Choice &choice) const;
  Sharding shardingOf(mlir::Value value, const Choice &choice) const;
  /// The longest first.
  std::vector<Sent> sent(const Choice &choice) const;
  /// What layers pass to the next one, in forward and backward.
  llvm::SmallVector<mlir::BlockArgument> carriedByLayers() const;
  /// The function of which one that is called several times is a copy, or itself.
  mlir::func::FuncOp originalOf(mlir::func::FuncOp function) const;
  /// Whether a dimension is that of the batch's sequences, or begins with it.
  bool isOfBatch(mlir::Value value, unsigned dim) const;
  unsigned ops() const;

private:
  std::unique_ptr<TensorSearch> search;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_TENSORSHARDINGS_H
