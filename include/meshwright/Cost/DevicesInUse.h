//===- DevicesInUse.h - what the devices that a program runs on have ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_DEVICESINUSE_H
#define MESHWRIGHT_COST_DEVICESINUSE_H

#include "meshwright/Cost/Cluster.h"

namespace meshwright::cost {

/// Of the first devices of a cluster, on which the ranks of a program are.
struct DevicesInUse {
  DevicesInUse(const Cluster &cluster, int64_t devices);

  double capacity = 0;                ///< bytes of the smallest; 0: not known of any
  double peakF32 = 0, peakNarrow = 0; ///< promised FLOPs a second, on average
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_DEVICESINUSE_H
