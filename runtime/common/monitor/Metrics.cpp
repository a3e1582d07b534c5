//===- Metrics.cpp - what a run reports while it trains -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Metrics.h"

#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace meshwright;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The lines of `path` that belong to steps before `firstStep`, and the evaluations of weights of
/// no more steps. A line cut short by a kill is not JSON and is dropped.
static std::string earlierLines(const std::string &path, int64_t firstStep) {
  std::ifstream input(path);
  std::string kept;
  for (std::string line; std::getline(input, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
      continue;
    // A line of a step names it, one of an evaluation alone says how many steps were made.
    for (auto [key, end] : {std::pair("step", firstStep), {"steps", firstStep + 1}})
      if (json.contains(key) && json[key].is_number_integer() && json[key].get<int64_t>() < end)
        kept += line + "\n";
  }
  return kept;
}

MetricsFile::MetricsFile(const std::string &path, int64_t firstStep) {
  std::error_code error;
  // Not through a pipe or a device; and a link stays one.
  fs::path existing = fs::canonical(path, error);
  if (firstStep == 0 || error || !fs::is_regular_file(existing, error)) {
    file = std::make_unique<OutputFile>(path);
    return;
  }
  std::string kept = earlierLines(existing, firstStep);
  std::string partial = existing.string() + ".partial";
  addFailureCleanup(partial);
  file = std::make_unique<OutputFile>(partial);
  file->write(kept);
  file->sync();
  fs::permissions(partial, fs::status(existing, error).permissions(), error);
  file->rename(existing);
  dropFailureCleanup(partial);
}

void MetricsFile::write(const StepMetrics &metrics) {
  Json json = {{"step", metrics.step},          {"loss", metrics.loss},
               {"grad_norm", metrics.gradNorm}, {"lr", metrics.lr},
               {"step_ms", metrics.stepMs},     {"tokens_per_s", metrics.tokensPerSecond}};
  if (metrics.evaluatedOnly)
    json = {{"steps", metrics.step}};
  else if (metrics.auxLoss)
    json["aux_loss"] = *metrics.auxLoss;
  if (metrics.expertRounds)
    json["expert_rounds"] = *metrics.expertRounds;
  if (metrics.attentionImbalance)
    json["attention_imbalance"] = *metrics.attentionImbalance;
  if (metrics.evalLoss)
    json["eval_loss"] = *metrics.evalLoss;
  if (metrics.evalBitsPerByte)
    json["eval_bits_per_byte"] = *metrics.evalBitsPerByte;
  if (metrics.lossScale) {
    json["loss_scale"] = *metrics.lossScale;
    json["skipped"] = metrics.skipped;
  }
  if (metrics.failedRouter) {
    json["skipped"] = metrics.skipped;
    json["failed_router"] = metrics.failedRouter->router;
  }
  for (const LayerTokens &layer : metrics.expertTokens) {
    Json counts = Json::array();
    for (float count : layer.counts)
      counts.push_back(std::isfinite(count) ? Json(int64_t(count)) : Json());
    json["expert_tokens"][std::to_string(layer.layer)] = counts;
  }
  file->write(json.dump() + "\n");
}

Progress::Progress(int64_t firstStep, int64_t steps)
    : firstStep(firstStep),
      steps(steps), // mpirun gives its processes a terminal of their own, whatever it writes to.
      terminal(isatty(STDOUT_FILENO) && !getenv("OMPI_COMM_WORLD_SIZE")), begin(Clock::now()),
      shown(begin) {}

static std::string duration(double seconds) {
  auto total = int64_t(seconds + 0.5);
  char buffer[64];
  if (total >= 3600)
    snprintf(buffer, sizeof(buffer), "%ld:%02ld:%02ld", long(total / 3600), long(total / 60 % 60),
             long(total % 60));
  else
    snprintf(buffer, sizeof(buffer), "%ld:%02ld", long(total / 60), long(total % 60));
  return buffer;
}

void Progress::show(const StepMetrics &metrics) {
  int64_t done = metrics.step + 1;
  Clock::time_point now = Clock::now();
  double sinceShown = std::chrono::duration<double>(now - shown).count();
  bool edge = metrics.step == firstStep || done == steps || metrics.evalLoss;
  if (terminal ? !edge && sinceShown < 0.1
               : !edge && done % std::max<int64_t>(1, steps / 20) != 0 && sinceShown < 10)
    return;
  shown = now;
  double elapsed = std::chrono::duration<double>(now - begin).count();
  double left = elapsed / double(done - firstStep) * double(steps - done);
  char line[256];
  char part[64] = "";
  if (metrics.auxLoss)
    snprintf(part, sizeof(part), "  aux loss %.4f", *metrics.auxLoss);
  snprintf(line, sizeof(line), "step %ld (%ld/%ld)  loss %.4f%s  lr %.3g  %s tokens/s  ETA %s",
           long(metrics.step), long(done), long(steps), metrics.loss, part, metrics.lr,
           grouped(uint64_t(metrics.tokensPerSecond)).c_str(), duration(left).c_str());
  std::string text = line;
  if (metrics.evalLoss) {
    snprintf(line, sizeof(line), "  eval loss %.4f", *metrics.evalLoss);
    text += line;
  }
  if (terminal)
    printf("\r%s\033[K", text.c_str());
  else
    printf("%s\n", text.c_str());
  lineOpen = terminal;
  if (terminal && (metrics.evalLoss || done == steps))
    endLine();
  fflush(stdout);
}

void Progress::endLine() {
  if (lineOpen)
    printf("\n");
  lineOpen = false;
}
