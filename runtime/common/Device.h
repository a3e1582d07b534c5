//===- Device.h - what a rank computes on ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
#define MESHWRIGHT_RUNTIME_COMMON_DEVICE_H

#include "common/Trace.h"

#include <memory>
#include <string>

namespace meshwright {

struct Plan;
class Communicator;

/// A rank's accelerator. Each target's runtime has its own.
class Device {
public:
  virtual ~Device() = default;

  /// What it is, and the memory in use on it beside the arena, for the start of a run.
  virtual std::string describe() const = 0;

  /// What the program enqueues between the two is one span of a trace: `endSpan` gets it with
  /// the host's times, and the device adds one with its own once it has got there.
  virtual void beginSpan() = 0;
  virtual void endSpan(Trace &trace, const Trace::Span &span) = 0;
};

/// Opens the device of this rank of `world`; null where the host computes. Collective.
std::unique_ptr<Device> openDevice(const Plan &plan, Communicator &world);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DEVICE_H
