//===- ExpectedStep.h - what a simulated step says --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_EXPECTEDSTEP_H
#define MESHWRIGHT_LIB_REPORT_EXPECTEDSTEP_H

#include "meshwright/Report.h"
#include "meshwright/StepTime.h"

namespace meshwright::report {

/// What a report says of `step`, a step of `plan` on `cluster`.
ExpectedStep expectedStep(const plan::Plan &plan, const StepTime &step, const cost::Cluster &cluster);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_EXPECTEDSTEP_H
