//===- Torus.cpp - devices linked to their neighbours along dimensions ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Torus.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace meshwright::cost;

int64_t Torus::size() const {
  int64_t size = 1;
  for (int64_t dimension : dimensions)
    size *= dimension;
  return size;
}

/// Steps from one coordinate to another of a ring: negative ones go down.
static int64_t stepsBetween(int64_t from, int64_t to, int64_t size) {
  int64_t up = (to - from + size) % size;
  return 2 * up <= size ? up : up - size;
}

Torus::Load Torus::loadOf(llvm::ArrayRef<std::pair<int64_t, int64_t>> messages) const {
  Load load;
  // By device, dimension and whether it goes up: messages on the link.
  std::map<std::tuple<int64_t, size_t, bool>, int64_t> passing;
  for (auto [from, to] : messages) {
    int64_t at = from, stride = 1, hops = 0;
    for (size_t dimension = dimensions.size(); dimension-- > 0;) {
      int64_t size = dimensions[dimension], coordinate = at / stride % size;
      int64_t steps = stepsBetween(coordinate, to / stride % size, size);
      for (int64_t step = 0; step < std::abs(steps); ++step) {
        load.sharing = std::max(load.sharing, ++passing[{at, dimension, steps > 0}]);
        int64_t next = (coordinate + (steps > 0 ? 1 : size - 1)) % size;
        at += (next - coordinate) * stride;
        coordinate = next;
      }
      hops += std::abs(steps);
      stride *= size;
    }
    load.hops = std::max(load.hops, hops);
  }
  return load;
}

std::optional<llvm::SmallVector<TorusExtent>>
Torus::boxOf(llvm::ArrayRef<int64_t> ranks) const {
  llvm::SmallVector<TorusExtent> box(dimensions.size());
  int64_t stride = 1, members = 1;
  for (size_t dimension = dimensions.size(); dimension-- > 0;) {
    int64_t size = dimensions[dimension];
    std::set<int64_t> coordinates;
    for (int64_t rank : ranks)
      coordinates.insert(rank / stride % size);
    stride *= size;
    TorusExtent &extent = box[dimension];
    extent.count = coordinates.size();
    members *= extent.count;
    if (extent.count < 2)
      continue;
    extent.stride = *std::next(coordinates.begin()) - *coordinates.begin();
    int64_t next = *coordinates.begin();
    for (int64_t coordinate : coordinates) {
      if (coordinate != next)
        return std::nullopt;
      next += extent.stride;
    }
    extent.isRing = extent.count > 2 && extent.count * extent.stride == size;
  }
  // Different ranks that have so many coordinates are at all of them.
  if (members != int64_t(ranks.size()))
    return std::nullopt;
  return box;
}

double Torus::gatherSeconds(llvm::ArrayRef<TorusExtent> box, double bytes, const Link &link) {
  llvm::SmallVector<TorusExtent> dimensions;
  int64_t members = 1;
  for (const TorusExtent &extent : box)
    if (extent.count > 1) {
      dimensions.push_back(extent);
      members *= extent.count;
    }
  if (members < 2)
    return 0;
  // Of each part of what a member has at first: how much of it has been gathered.
  size_t parts = dimensions.size();
  double part = bytes / double(members - 1) / double(parts), seconds = 0;
  llvm::SmallVector<double> gathered(parts, 1);
  for (size_t phase = 0; phase < parts; ++phase) {
    double longest = 0;
    for (size_t i = 0; i < parts; ++i) {
      const TorusExtent &along = dimensions[(i + phase) % parts];
      double sent = double(along.count - 1) * gathered[i] * part;
      // A ring passes half of it on in each direction. On a line the links at its ends pass on everything.
      double passing = double(along.stride) * (along.isRing ? sent / 2 : sent);
      longest = std::max(longest,
                         link.seconds(passing, double((along.count - 1) * along.stride)));
      gathered[i] *= double(along.count);
    }
    seconds += longest;
  }
  return seconds;
}

double Torus::exchangeSeconds(llvm::ArrayRef<TorusExtent> box, double bytes,
                              const Link &link) const {
  int64_t members = 1, hops = 0;
  for (const TorusExtent &extent : box)
    members *= extent.count;
  if (members < 2)
    return 0;
  double busiest = 0;
  for (auto [size, extent] : llvm::zip_equal(dimensions, box)) {
    if (extent.count < 2)
      continue;
    // Messages between all coordinates of a line of the dimension, those of all groups on it together.
    Torus line{{size}};
    llvm::SmallVector<std::pair<int64_t, int64_t>> messages;
    for (int64_t group = 0; group < extent.stride; ++group)
      for (int64_t from = 0; from < extent.count; ++from)
        for (int64_t to = 0; to < extent.count; ++to)
          messages.push_back({group + from * extent.stride, group + to * extent.stride});
    Load load = line.loadOf(messages);
    // Each stands for as many as there are pairs of members with these coordinates.
    busiest = std::max(busiest, double(load.sharing) * double(members / extent.count));
    hops += load.hops;
  }
  return link.seconds(busiest * bytes / double(members - 1), double(hops));
}
