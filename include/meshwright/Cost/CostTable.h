//===- CostTable.h - the devices whose numbers are known --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_COSTTABLE_H
#define MESHWRIGHT_COST_COSTTABLE_H

#include "meshwright/Cost/Device.h"
#include "meshwright/OptionValues.h"

namespace meshwright::cost {

/// The devices of the table.
llvm::ArrayRef<Device> getDevices();
/// The device called `name`, or null.
const Device *findDevice(llvm::StringRef name);
/// ... which a target or a test names, so that it must be there.
const Device &getDevice(llvm::StringRef name);

/// A device as the value of an option, by its name.
struct DeviceChoice {
  /// The one that passes take which are run alone, without a target: an A100.
  DeviceChoice() : device(&getDevice("a100-sxm")) {}
  DeviceChoice(const Device &device) : device(&device) {}

  const Device &operator*() const { return *device; }
  const Device *operator->() const { return device; }

  const Device *device;
};
llvm::Error parseOption(llvm::StringRef text, DeviceChoice &choice);
inline std::string optionText(const DeviceChoice &choice) { return choice->name; }

} // namespace meshwright::cost

MESHWRIGHT_PASS_OPTION(::meshwright::cost::DeviceChoice)

#endif // MESHWRIGHT_COST_COSTTABLE_H
