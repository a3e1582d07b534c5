//===- TimelinePicture.h - what stages do over time, drawn ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TIMELINEPICTURE_H
#define MESHWRIGHT_TIMELINEPICTURE_H

#include "meshwright/PipelineSchedule.h"

#include "llvm/Support/raw_ostream.h"

namespace meshwright {

/// One line a stage: each task by its name, as wide as it is long, bubbles as dots, then
/// what follows the tasks as U between barriers. Tasks too short for their name lose its end.
void drawTimelineText(const schedule::Timeline &timeline, llvm::raw_ostream &os);

/// How much of it is work, and what the stages hold.
void describeTimeline(llvm::StringRef name, const schedule::PipelineSchedule &schedule,
                      const schedule::Timeline &timeline, llvm::raw_ostream &os);

/// The same as an SVG element, with `caption` above: forward blue, backward red, weight
/// green; bubbles are what stays grey. Tasks say their name and times when pointed at.
void drawTimelineSvg(const schedule::Timeline &timeline, llvm::StringRef caption,
                     llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_TIMELINEPICTURE_H
