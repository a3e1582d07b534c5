//===- StopSignal.h - SIGTERM and SIGINT ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// While a run that has --save or --trace trains, the first of these signals asks it to write what
// it is to write and end after the current step. Otherwise, and the second time, they end the
// process at once. One request may arrive twice, where a launcher signals a process and its group:
// what comes within a second of the first is part of it. The wait monitor's thread receives them.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H
#define MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H

namespace meshwright {

/// While one lives, the first signal is a request. `answer`, if there is one, is printed then.
struct StopRequests {
  explicit StopRequests(const char *answer);
  ~StopRequests();
};

/// The signal that has asked this process to stop, or 0.
int stopRequest();

/// `signal` has come: remembers it as a request, or ends the process by it.
void receiveStopSignal(int signal);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_STOPSIGNAL_H
