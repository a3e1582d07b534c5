//===- DefaultDevice.h - the device that passes take -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_DEFAULTDEVICE_H
#define MESHWRIGHT_LIB_PIPELINE_DEFAULTDEVICE_H

#include "meshwright/Cost/CostTable.h"
#include "meshwright/Options.h"

namespace meshwright {

/// The device whose costs passes take: the first of --cluster, else the default of the target that
/// `options` name, with the flags of the target that they have. An error if these cannot be read.
/// It lives as long as `options`.
llvm::Expected<cost::DeviceChoice> deviceOf(const CompileOptions &options);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_DEFAULTDEVICE_H
