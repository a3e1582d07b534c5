//===- CopiedBytes.h - what a program copies between host and device ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_COPIEDBYTES_H
#define MESHWRIGHT_LIB_REPORT_COPIEDBYTES_H

#include "Exec/Exec.h"

namespace meshwright::report {

struct CopiedBytes {
  int64_t toDevice = 0, toHost = 0;
};

/// What one run of an entry point copies, in all of its loops and calls.
CopiedBytes copiedBytes(exec::ProgramOp program);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_COPIEDBYTES_H
