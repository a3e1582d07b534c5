//===- Device.h - what a rank computes on ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
#define MESHWRIGHT_RUNTIME_COMMON_DEVICE_H

#include <memory>

namespace meshwright {

struct Plan;
class Communicator;

/// A rank's accelerator. Each target's runtime has its own.
class Device {
public:
  virtual ~Device() = default;
};

/// Opens the device of this rank of `world`; null where the host computes. Collective.
std::unique_ptr<Device> openDevice(const Plan &plan, Communicator &world);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
