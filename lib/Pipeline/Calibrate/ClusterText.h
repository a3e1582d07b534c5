//===- ClusterText.h - a cluster as the text of its file ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CALIBRATE_CLUSTERTEXT_H
#define MESHWRIGHT_LIB_PIPELINE_CALIBRATE_CLUSTERTEXT_H

#include "meshwright/Cost/Cluster.h"

namespace meshwright::calibrate {

/// What `cost::readCluster` reads as `cluster`, whose devices and links all have `source`. Numbers
/// have four digits.
std::string clusterText(const cost::Cluster &cluster, llvm::StringRef source);

} // namespace meshwright::calibrate

#endif // MESHWRIGHT_LIB_PIPELINE_CALIBRATE_CLUSTERTEXT_H
