//===- ScheduleCommand.cpp - the `schedule` command --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/AtomicFile.h"
#include "meshwright/MeasuredTasks.h"
#include "meshwright/Pipeline.h"
#include "meshwright/PipelineSchedule.h"
#include "meshwright/TimelinePicture.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

static constexpr const char *scheduleUsage =
    "usage: meshwright schedule NAME --stages P --microbatches M [--costs F,B,W | --trace FILE]\n"
    "                           [-o FILE.svg]\n"
    "  Draws a pipeline schedule on the terminal, and as SVG with -o: naive, gpipe, 1f1b,\n"
    "  interleaved:V, zb-h1, zb-h2, zb-v, v-half, v-min or dualpipe-v. A task is named by its kind (F forward,\n"
    "  B backward, W weight gradients), its microbatch, and its chunk if a stage has several.\n"
    "  --costs gives the time of each kind of task for one chunk, in any unit (default: 1,1,1);\n"
    "  schedules that do not split the backward use B + W. --trace reads measured task times, in ms,\n"
    "  from a trace that an executable wrote with --trace, and compares the predicted step time\n"
    "  with the measured one.\n";

/// Draws the timeline with the times of a trace and compares it with the step measured.
static Expected<schedule::Timeline> predict(const schedule::PipelineSchedule &schedule,
                                            StringRef trace, llvm::raw_ostream &os) {
  Expected<report::MeasuredTasks> measured = report::readMeasured(trace, schedule);
  if (!measured)
    return measured.takeError();
  Expected<schedule::Timeline> timeline = simulate(schedule, measured->costs);
  if (!timeline)
    return timeline.takeError();
  timeline->addRounds({measured->rest});
  os << llvm::formatv("medians of {0} steps, in ms\n", measured->steps);
  for (auto [chunk, cost] : llvm::enumerate(measured->costs.chunks)) {
    os << llvm::formatv("  chunk {0} on stage {1}: F {2:f3}, B {3:f3}", chunk,
                        schedule.stageOf[chunk], cost.forward, cost.backward);
    if (schedule.splitsBackward)
      os << llvm::formatv(", W {0:f3}", cost.weight);
    os << "\n";
  }
  for (auto [stage, rest] : llvm::enumerate(measured->rest))
    os << llvm::formatv("  stage {0} outside of tasks: {1:f3}\n", stage, rest);
  double predicted = timeline->end();
  os << llvm::formatv("step: {0:f3} ms predicted, {1:f3} ms measured, {2:f1}% apart\n", predicted,
                      measured->step, 100 * std::abs(predicted / measured->step - 1));
  return timeline;
}

/// The costs of --costs, or nothing.
static std::optional<schedule::TaskCosts::Chunk> parseCosts(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  double values[3];
  if (parts.size() != 3)
    return std::nullopt;
  for (auto [part, value] : llvm::zip(parts, values))
    if (part.getAsDouble(value) || !(value > 0 && value < 1e15))
      return std::nullopt;
  return schedule::TaskCosts::Chunk{values[0], values[1], values[2]};
}

Error showSchedule(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  auto fail = [](const llvm::Twine &message) { return createStringError(message + "\n" + scheduleUsage); };
  std::string name, svg, trace, costsText = "1,1,1";
  bool hasCosts = false;
  int64_t stages = 0, microbatches = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef word = args[i];
    if (word == "-h" || word == "--help")
      return llvm::make_error<HelpRequested>(scheduleUsage);
    bool takesValue = llvm::is_contained({"--stages", "--microbatches", "--costs", "--trace", "-o"}, word);
    if (takesValue && i + 1 == args.size())
      return fail(word + " needs a value");
    if (word == "--stages" || word == "--microbatches") {
      int64_t &number = word == "--stages" ? stages : microbatches;
      if (StringRef(args[++i]).getAsInteger(10, number) || number < 1 || number > 100000)
        return fail(word + " '" + args[i] + "' must be a whole number from 1 to 100000");
    } else if (word == "--costs") {
      costsText = args[++i];
      hasCosts = true;
    } else if (word == "--trace") {
      trace = args[++i];
    } else if (word == "-o") {
      svg = args[++i];
    } else if (!name.empty() || word.starts_with("-")) {
      return fail("unexpected argument '" + word + "'");
    } else {
      name = word.str();
    }
  }
  if (name.empty() || !stages || !microbatches)
    return fail("name a schedule, --stages and --microbatches");
  std::optional<schedule::TaskCosts::Chunk> cost = parseCosts(costsText);
  if (!cost)
    return fail("--costs '" + costsText + "' must be three positive numbers, e.g. 1,1,1");

  if (!trace.empty() && !svg.empty())
    if (std::string clash = clashOf({{"--trace", trace, FileUse::Input}, {"-o", svg, FileUse::Output}});
        !clash.empty())
      return fail(clash);
  if (hasCosts && !trace.empty())
    return fail("--costs and --trace both say how long tasks take; give one");

  Expected<schedule::ScheduleKind> kind = schedule::ScheduleKind::parse(name);
  if (!kind)
    return kind.takeError();
  Expected<schedule::PipelineSchedule> schedule =
      schedule::makeSchedule(*kind, stages, microbatches);
  if (!schedule)
    return schedule.takeError();
  schedule::TaskCosts costs;
  costs.chunks.assign(schedule->chunks(), *cost);
  Expected<schedule::Timeline> timeline =
      trace.empty() ? simulate(*schedule, costs) : predict(*schedule, trace, os);
  if (!timeline)
    return timeline.takeError();

  drawTimelineText(*timeline, os);
  describeTimeline(kind->str(), *schedule, *timeline, os);
  if (svg.empty())
    return Error::success();
  std::string picture;
  llvm::raw_string_ostream stream(picture);
  drawTimelineSvg(*timeline,
                  kind->str() + (trace.empty() ? " with tasks that take " + costsText + "."
                                               : ", tasks as long as measured, in ms."),
                  stream);
  return writeFileAtomically(picture, svg);
}

} // namespace meshwright
