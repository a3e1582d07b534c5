//===- LearningRate.cpp - the course of the learning rate -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/LearningRate.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace meshwright;

//===--- what is left of the rate ---------------------------------------------===//

static double linear(double done) { return 1.0 - done; }
static double cosine(double done) { return 0.5 * (1.0 + std::cos(M_PI * done)); }

namespace {
/// The shapes of --decay-shape: what is left of lr - min-lr when this share of the decay is done.
/// They are those of Megatron-LM's --lr-wsd-decay-style.
struct DecayShape {
  const char *name;
  double (*left)(double done);
};
} // namespace

static constexpr DecayShape shapes[] = {
    {"linear", linear},
    {"cosine", cosine},
    {"1-sqrt", [](double done) { return 1.0 - std::sqrt(done); }},
    {"exponential", [](double done) { return 2.0 * std::pow(0.5, done) - 1.0; }},
};

/// From lr down to min-lr in the steps from `first` to the last.
static double decay(const Options &options, int64_t step, int64_t first, double (*left)(double)) {
  if (step >= options.steps)
    return options.minLr;
  double done = double(step - first) / double(options.steps - first);
  return options.minLr + left(done) * (options.lr - options.minLr);
}

//===--- schedules ------------------------------------------------------------===//

static int64_t decaySteps(const Options &options) {
  return std::llround(options.decayFraction * double(options.steps));
}

static double wsd(const Options &options, int64_t step) {
  int64_t first = options.steps - decaySteps(options);
  if (step < first)
    return options.lr;
  for (const DecayShape &shape : shapes)
    if (shape.name == options.decayShape)
      return decay(options, step, first, shape.left);
  fail("--decay-shape ", options.decayShape, ": there is no such shape");
}

/// Vaswani et al. 2017, with steps from 1 and the rate at the end of the warm-up as --lr.
static double inverseSqrt(const Options &options, int64_t step) {
  double warmup = double(std::max<int64_t>(options.warmup, 1));
  return std::max(options.minLr, options.lr * std::sqrt(warmup / double(step + 1)));
}

/// The steps of --lr-milestones.
static std::vector<int64_t> milestones(const Options &options) {
  const std::string &list = options.lrMilestones;
  std::vector<int64_t> steps;
  for (const char *at = list.data(), *end = at + list.size(); at < end;) {
    int64_t step = 0;
    auto [stop, error] = std::from_chars(at, end, step);
    if (error != std::errc() || (stop != end && *stop != ',') || stop + 1 == end ||
        step <= (steps.empty() ? 0 : steps.back()))
      fail("--lr-milestones is \"", list,
           "\": it must be ascending numbers of steps from 1 on, such as 8000,9000");
    steps.push_back(step);
    at = stop == end ? end : stop + 1;
  }
  return steps;
}

/// torch.optim.lr_scheduler.MultiStepLR.
static double multiStep(const Options &options, int64_t step) {
  std::vector<int64_t> all = milestones(options);
  auto passed = std::upper_bound(all.begin(), all.end(), step) - all.begin();
  return options.lr * std::pow(options.lrGamma, double(passed));
}

namespace {
struct Schedule {
  const char *name;
  /// The rate of a step after the warm-up.
  double (*rate)(const Options &options, int64_t step);
  bool endsAtLastStep = false, fallsToMinimum = false;
};
} // namespace

/// Those of --lr-schedule.
static constexpr Schedule schedules[] = {
    {"constant", [](const Options &options, int64_t) { return options.lr; }},
    {"cosine",
     [](const Options &options, int64_t step) {
       return decay(options, step, options.warmup, cosine);
     },
     true, true},
    {"linear",
     [](const Options &options, int64_t step) {
       return decay(options, step, options.warmup, linear);
     },
     true, true},
    {"wsd", wsd, true, true},
    {"inverse-sqrt", inverseSqrt, false, true},
    {"multi-step", multiStep},
};

static const Schedule &scheduleNamed(const std::string &name) {
  for (const Schedule &schedule : schedules)
    if (schedule.name == name)
      return schedule;
  fail("--lr-schedule ", name, ": there is no such schedule");
}

double meshwright::learningRate(const Options &options, int64_t step) {
  if (step < options.warmup)
    return options.lr * double(step + 1) / double(options.warmup);
  return scheduleNamed(options.lrSchedule).rate(options, step);
}

bool meshwright::endsAtLastStep(const std::string &name) {
  return scheduleNamed(name).endsAtLastStep;
}

bool meshwright::fallsToMinimum(const std::string &name) {
  return scheduleNamed(name).fallsToMinimum;
}

//===--- checks ---------------------------------------------------------------===//

void meshwright::checkLearningRate(const Options &options) {
  if (fallsToMinimum(options.lrSchedule) && options.minLr > options.lr)
    fail("--min-lr ", options.minLr, " is larger than --lr ", options.lr,
         ": the schedules go down from --lr to --min-lr");
  if (options.lrSchedule == "wsd" && options.warmup + decaySteps(options) > options.steps &&
      options.steps > 0)
    fail("--warmup ", options.warmup, " and a decay of ", decaySteps(options),
         " steps (--decay-fraction ", options.decayFraction, " of --steps ", options.steps,
         ") do not fit into the run: give less of one, or more --steps");
  if (options.lrSchedule != "multi-step")
    return;
  if (milestones(options).empty())
    fail(
        "--lr-schedule multi-step needs --lr-milestones: give the steps at which the rate changes, "
        "such as 8000,9000");
}
