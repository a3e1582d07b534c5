//===- Driver.h - the `meshwright` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DRIVER_H
#define MESHWRIGHT_DRIVER_H

#include <string>
#include <vector>

namespace meshwright {

/// Runs the command line `args` (program name left out); the exit status.
int driverMain(const std::vector<std::string> &args);

} // namespace meshwright

#endif // MESHWRIGHT_DRIVER_H
