//===- DefaultDevice.cpp - the device that passes take -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DefaultDevice.h"

#include "Exec/Target.h"

#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace meshwright;

llvm::Expected<cost::DeviceChoice> meshwright::deviceOf(const CompileOptions &options) {
  if (options.cluster)
    return options.cluster->devices.front().device;
  const exec::Target &target = options.getTarget();
  // Parameters are attributes, and passes are made before there is a module.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  llvm::Expected<exec::Target::Parameters> parameters = target.parse(options.targetFlags, context);
  if (!parameters)
    return parameters.takeError();
  return cost::getDevice(target.getDefaultDevice(*parameters));
}
