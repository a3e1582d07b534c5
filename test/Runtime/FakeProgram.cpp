//===- FakeProgram.cpp - a hand-written training program ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// meshwright_step and meshwright_eval as the compiler would write them for the
// model of FakeProgram.h. Environment variables make it misbehave:
// FAKE_NAN_STEP=k, FAKE_HANG_STEP=k (the last rank stays away from a collective),
// FAKE_SLEEP_MS=n (per step), FAKE_KILL_STEP=k (the last rank kills its process),
// FAKE_FLIP_STEP=k (the last rank's bias gets another bit; FAKE_FLIP_TIME=n: the nth time that
// its process makes step k),
// FAKE_STRAY_STEP=k (the last rank is out of step), FAKE_ALLOCATE_STEP=k (the last rank
// wants more memory than there is).
// FAKE_OVERLAP=1 only starts the collectives of gradients.
//
//===----------------------------------------------------------------------===//
#include "FakeProgram.h"

#include "common/train/Context.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <unistd.h>

using namespace fake;

static float *at(char *arena, int64_t offset) { return reinterpret_cast<float *>(arena + offset); }

static int64_t tensorIndex(MwContext *context) { return context->rank() % sizes().tensor; }

/// The loss over this rank's sequences and its rows of the table; with gradients if
/// `gradients` is set.
static double forward(MwContext *context, char *arena, bool gradients) {
  Sizes &s = sizes();
  const auto *tokens = reinterpret_cast<const int32_t *>(arena + s.tokens);
  const auto *targets = reinterpret_cast<const int32_t *>(arena + s.targets);
  float *table = at(arena, s.table.offset[0]), *bias = at(arena, s.bias.offset[0]);
  float *tableGradient = at(arena, s.table.gradient), *biasGradient = at(arena, s.bias.gradient);
  int64_t rows = s.table.elements / width, first = tensorIndex(context) * rows;
  int64_t count = batch / s.data * sequence;
  auto scale = float(1.0 / double(batch * sequence));
  double loss = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = tokens[i] - first;
    if (row < 0 || row >= rows || targets[i] < 0)
      continue;
    float target = float(targets[i]) / float(vocabulary);
    for (int64_t j = 0; j < width; ++j) {
      float error = table[row * width + j] + bias[j] - target;
      loss += 0.5 * error * error * scale;
      if (gradients) {
        tableGradient[row * width + j] += error * scale;
        biasGradient[j] += error * scale;
      }
    }
  }
  return loss;
}

static double squares(const float *values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += double(values[i]) * values[i];
  return sum;
}

static void allReduce(MwContext *context, int32_t op, int32_t group, const float *input,
                      float *output, int64_t count) {
  MwSegment segment{input, output, count};
  mw_all_reduce(context, op, group, MW_F32, MW_SUM, &segment, 1);
}

static void update(char *arena, const Parameter &parameter, float clip, bool decay) {
  Sizes &s = sizes();
  auto scalar = [&](int i) { return *at(arena, s.scalars[i]); };
  float *weight = at(arena, parameter.offset[0]), *m = at(arena, parameter.offset[1]),
        *v = at(arena, parameter.offset[2]), *gradient = at(arena, parameter.gradient);
  for (int64_t i = 0; i < parameter.elements; ++i) {
    float g = gradient[i] * clip;
    if (decay)
      weight[i] -= scalar(0) * scalar(4) * weight[i];
    m[i] = scalar(1) * m[i] + (1 - scalar(1)) * g;
    v[i] = scalar(2) * v[i] + (1 - scalar(2)) * g * g;
    weight[i] -= scalar(0) * (m[i] / scalar(6)) / (std::sqrt(v[i] / scalar(7)) + scalar(3));
  }
}

static void misbehave(MwContext *context, int64_t step) {
  bool isLast = context->rank() == context->world->size() - 1;
  if (int64_t sleep = setting("FAKE_SLEEP_MS", 0))
    usleep(useconds_t(sleep * 1000));
  if (isLast && step == setting("FAKE_HANG_STEP", -1))
    sleep(1000);
  if (isLast && step == setting("FAKE_KILL_STEP", -1))
    raise(SIGKILL);
  [[maybe_unused]] char *volatile kept = nullptr; // So that it is not optimised away.
  if (isLast && step == setting("FAKE_ALLOCATE_STEP", -1))
    kept = new char[size_t(1) << 50];
}

void meshwright_step(MwContext *context, char *arena) {
  Sizes &s = sizes();
  int64_t step = context->status.step;
  misbehave(context, step);
  for (const Parameter *parameter : {&s.table, &s.query, &s.key, &s.bias})
    std::fill_n(at(arena, parameter->gradient), parameter->elements, 0.0f);
  double loss = forward(context, arena, true);

  // The stacked parameters' gradient is that of half their sum of squares.
  for (const Parameter *parameter : {&s.query, &s.key})
    std::copy_n(at(arena, parameter->offset[0]), parameter->elements,
                at(arena, parameter->gradient));
  float *table = at(arena, s.table.gradient), *bias = at(arena, s.bias.gradient);
  bool overlap = setting("FAKE_OVERLAP", 0);
  if (overlap)
    mw_start(context, 5);
  allReduce(context, 0, 0, table, table, s.table.elements);
  if (overlap)
    mw_start(context, 2);
  allReduce(context, 1, 1, bias, bias, width);
  mw_wait(context, 5); // nothing is started without overlap: at once
  mw_wait(context, 2);

  // Each logical element once: rows and columns are on one tensor rank, all are on
  // every data rank.
  double norm = squares(table, s.table.elements) +
                squares(at(arena, s.query.gradient), s.query.elements) +
                squares(at(arena, s.key.gradient), s.key.elements);
  if (tensorIndex(context) == 0)
    norm += squares(bias, width);
  float *sums = at(arena, s.scratch);
  sums[0] = float(loss);
  sums[1] = float(norm / double(s.data));
  // The last rank may take this for another call of the same length.
  bool strays = context->rank() == context->world->size() - 1 &&
                step == setting("FAKE_STRAY_STEP", -1);
  allReduce(context, strays ? 0 : 1, 1, sums, sums, 2);
  float total = std::sqrt(sums[1]), limit = *at(arena, s.scalars[5]);
  float clip = limit > 0 ? std::min(1.0f, limit / (total + 1e-6f)) : 1.0f;
  update(arena, s.table, clip, true);
  update(arena, s.query, clip, true);
  update(arena, s.key, clip, true);
  update(arena, s.bias, clip, false);
  static int64_t times = 0; // that the last rank has made the step in which a bit changes
  if (context->rank() == context->world->size() - 1 && step == setting("FAKE_FLIP_STEP", -1) &&
      ++times == setting("FAKE_FLIP_TIME", 1))
    reinterpret_cast<uint32_t *>(at(arena, s.bias.offset[0]))[1] ^= 1;
  *at(arena, s.loss) = step == setting("FAKE_NAN_STEP", -1) ? NAN : sums[0];
  *at(arena, s.gradNorm) = total;
}

void meshwright_eval(MwContext *context, char *arena) {
  float loss = float(forward(context, arena, false));
  allReduce(context, 1, 1, &loss, at(arena, sizes().loss), 1);
}
