//===- TensorBoard.cpp - event files of scalars ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The few fields of tensorflow/core/util/event.proto that scalars need, encoded by hand.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/TensorBoard.h"

#include "common/monitor/Error.h"
#include "meshwright/runtime/Protobuf.h"

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <unistd.h>

using namespace meshwright;
using namespace meshwright::protobuf;

uint32_t meshwright::maskedCrc(const std::string &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value & 1 ? value >> 1 ^ 0x82F63B78u : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ uint8_t(byte)) & 0xFF];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static double wallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventFile::EventFile(const std::string &folder, int64_t firstStep) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail("--tensorboard ", folder, ": cannot make the folder: ", error.message());
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  double now = wallTime();
  file = std::make_unique<OutputFile>(text(folder, "/events.out.tfevents.", int64_t(now),
                                                       ".", host, ".", getpid()));
  record(real(1, now) + nested(3, "brain.Event:2"));
  if (firstStep != MetricsFile::noStep)
    goBackTo(firstStep);
}

void EventFile::goBackTo(int64_t step) {
  // The start of a session.
  record(real(1, wallTime()) + number(2, uint64_t(step)) + nested(7, number(1, 1)));
}

void EventFile::record(const std::string &event) {
  std::string length = rawBytes(uint64_t(event.size()));
  file->write(length + rawBytes(maskedCrc(length)) + event + rawBytes(maskedCrc(event)));
}

void EventFile::write(const StepMetrics &metrics) {
  std::string summary;
  auto add = [&](const std::string &tag, double value) {
    summary += nested(1, nested(1, tag) + single(2, float(value)));
  };
  if (!metrics.evaluatedOnly) {
    add("loss", metrics.loss);
    add("grad_norm", metrics.gradNorm);
    add("lr", metrics.lr);
    add("step_ms", metrics.stepMs);
    add("tokens_per_s", metrics.tokensPerSecond);
    add("tokens", double(metrics.tokens));
    if (metrics.mfu)
      add("mfu", *metrics.mfu);
  }
  if (metrics.batch)
    add("batch", double(*metrics.batch));
  if (metrics.auxLoss)
    add("aux_loss", *metrics.auxLoss);
  if (metrics.rewards && !metrics.evaluatedOnly)
    metrics.rewards->each(add);
  if (metrics.expertRounds)
    add("expert_rounds", *metrics.expertRounds);
  if (metrics.attentionImbalance)
    add("attention_imbalance", *metrics.attentionImbalance);
  if (metrics.slowest) {
    add("slowest_rank", double(metrics.slowest->first));
    add("slowest_rank_ratio", metrics.slowest->second);
  }
  if (metrics.lossScale || metrics.failedRouter || metrics.skipped)
    add("skipped", metrics.skipped);
  for (const auto &[name, norm] : metrics.norms)
    add("norms/" + name, norm);
  for (const Evaluation &evaluation : metrics.evaluations) {
    add(evaluation.key("eval/loss"), evaluation.loss);
    if (evaluation.rewards)
      evaluation.rewards->each([&](const std::string &name, double value) {
        add(evaluation.key(("eval/" + name).c_str()), value);
      });
    else
      add(evaluation.key("eval/perplexity"), std::exp(evaluation.loss));
    if (evaluation.bitsPerByte)
      add(evaluation.key("eval/bits_per_byte"), *evaluation.bitsPerByte);
  }
  if (metrics.lossScale)
    add("loss_scale", *metrics.lossScale);
  record(real(1, wallTime()) + number(2, uint64_t(metrics.step)) + nested(5, summary));
}
