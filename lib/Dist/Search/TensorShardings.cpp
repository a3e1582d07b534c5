//===- TensorShardings.cpp - the search of shardings, for planners ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/TensorShardings.h"

#include "Dist/Search/TensorSearch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

TensorShardings::TensorShardings(Mesh mesh, Axes searched, const cost::Cluster &cluster)
    : search(std::make_unique<TensorSearch>(std::move(mesh), std::move(searched), cluster)) {}
TensorShardings::~TensorShardings() = default;

LogicalResult TensorShardings::read(ModuleOp module) { return search->read(module); }

TensorShardings::Choice TensorShardings::minimize(size_t mostEntries, Time end,
                                                   double secondsPerByte) const {
  TableSum::Minimum minimum = search->sumWithBytes(secondsPerByte).minimize(mostEntries, end);
  return {std::move(minimum.values), minimum.cost, minimum.bound, minimum.isProved,
          minimum.isOutOfTime};
}

double TensorShardings::costOf(const Choice &choice) const {
  return search->sum().costOf(choice.values);
}
double TensorShardings::bytesOf(const Choice &choice) const { return search->bytesOf(choice.values); }

Sharding TensorShardings::shardingOf(train::VariableOp variable, const Choice &choice) const {
  return search->shardingOf(variable, choice.values);
}
Sharding TensorShardings::shardingOf(Value value, const Choice &choice) const {
  return search->shardingOf(value, choice.values);
}

std::vector<TensorShardings::Sent> TensorShardings::sent(const Choice &choice) const {
  std::vector<Sent> all;
  for (TensorSearch::Sent &one : search->sent(choice.values))
    all.push_back({one.value, std::move(one.from), std::move(one.to), one.seconds});
  return all;
}

SmallVector<BlockArgument> TensorShardings::carriedByLayers() const {
  return search->carriedByLayers();
}
func::FuncOp TensorShardings::originalOf(func::FuncOp function) const {
  return search->originalOf(function);
}
bool TensorShardings::isOfBatch(Value value, unsigned dim) const {
  return search->isOfBatch(value, dim);
}
unsigned TensorShardings::ops() const { return search->ops(); }
