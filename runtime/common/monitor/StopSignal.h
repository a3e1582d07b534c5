//===- StopSignal.h - SIGTERM and SIGINT ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// While a run that has --save trains, the first of these signals asks it to save and end
// after the current step. Otherwise, and the second time, they end the process at once.
// The wait monitor's thread receives them.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H
#define MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H

namespace meshwright {

/// While one lives, the first signal is a request.
struct StopRequests {
  StopRequests();
  ~StopRequests();
};

/// The signal that has asked this process to stop, or 0.
int stopRequest();

/// `signal` has come: remembers it as a request, or ends the process by it.
void receiveStopSignal(int signal);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H
