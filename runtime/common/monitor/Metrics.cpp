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
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace meshwright;
using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The lines of `path` that belong to steps before `firstStep`, and the evaluations of weights of
/// no more steps. A line cut short by a kill is not JSON and is dropped.
static std::string earlierLines(const std::string &path, int64_t firstStep) {
  std::ifstream input(path);
  std::string kept;
  for (std::string line; std::getline(input, line);) {
    OrderedJson json = OrderedJson::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
      continue;
    // A line of a step names it, one of an evaluation alone says how many steps were made.
    for (auto [key, end] : {std::pair("step", firstStep), {"steps", firstStep + 1}})
      if (json.contains(key) && json[key].is_number_integer() && json[key].get<int64_t>() < end)
        kept += line + "\n";
  }
  return kept;
}

static std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells(1);
  for (char c : line)
    if (c == ',')
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  return cells;
}

/// The same of a table, whose first columns are those that `path` has: `columns` gets them. A row that was cut short,
/// or was written without a line's end, is dropped.
static std::string earlierRows(const std::string &path, int64_t firstStep, std::vector<std::string> &columns) {
  std::ifstream input(path);
  std::string line, kept;
  if (!std::getline(input, line))
    return kept;
  std::vector<std::string> there = cellsOf(line);
  size_t before = there.size();
  auto columnOf = [&](const char *name) {
    return size_t(std::find(there.begin(), there.end(), name) - there.begin());
  };
  size_t step = columnOf("step"), steps = columnOf("steps"); // as lines of JSON have one or the other
  if (step == before && steps == before)
    fail("--metrics ", path, ": its first line names no column \"step\", so it is no table of a run: name another file");
  for (const std::string &column : columns)
    if (std::find(there.begin(), there.end(), column) == there.end())
      there.push_back(column);
  columns = there;
  while (std::getline(input, line) && !input.eof()) {
    std::vector<std::string> cells = cellsOf(line);
    auto isBelow = [&](size_t column, int64_t limit) {
      char *end = nullptr;
      return column < before && !cells[column].empty() && strtoll(cells[column].c_str(), &end, 10) < limit && !*end;
    };
    if (cells.size() != before || !(isBelow(step, firstStep) || isBelow(steps, firstStep + 1)))
      continue;
    kept += line + std::string(columns.size() - before, ',') + "\n";
  }
  return kept;
}

MetricsFile::MetricsFile(const std::string &path, int64_t firstStep, std::vector<std::string> columns)
    : path(path), isTable(fs::path(path).extension() == ".csv" && !columns.empty()), columns(std::move(columns)) {
  open(firstStep);
}

void MetricsFile::goBackTo(int64_t step) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return;
  file->close();
  open(step);
}

std::string MetricsFile::header() const {
  std::string line;
  for (const std::string &column : columns)
    line += (line.empty() ? "" : ",") + column;
  return isTable ? line + "\n" : "";
}

void MetricsFile::open(int64_t firstStep) {
  std::error_code error;
  // Not through a pipe or a device; and a link stays one.
  fs::path existing = fs::canonical(path, error);
  if (firstStep == 0 || error || !fs::is_regular_file(existing, error)) {
    file = std::make_unique<OutputFile>(path);
    file->write(header());
    return;
  }
  std::string kept = isTable ? earlierRows(existing, firstStep, columns) : earlierLines(existing, firstStep);
  std::string partial = existing.string() + ".partial";
  addFailureCleanup(partial);
  file = std::make_unique<OutputFile>(partial);
  file->write(header() + kept);
  file->sync();
  fs::permissions(partial, fs::status(existing, error).permissions(), error);
  file->rename(existing);
  dropFailureCleanup(partial);
}

/// What is logged of a step, in the order of columns.
static OrderedJson jsonOf(const StepMetrics &metrics) {
  OrderedJson json = {{"step", metrics.step},          {"loss", metrics.loss},
               {"grad_norm", metrics.gradNorm}, {"lr", metrics.lr},
               {"step_ms", metrics.stepMs},     {"tokens_per_s", metrics.tokensPerSecond},
               {"tokens", metrics.tokens}};
  if (metrics.evaluatedOnly)
    json = {{"steps", metrics.step}};
  else if (metrics.auxLoss)
    json["aux_loss"] = *metrics.auxLoss;
  if (metrics.batch)
    json["batch"] = *metrics.batch;
  if (metrics.rewards && !metrics.evaluatedOnly)
    metrics.rewards->each([&](const char *name, double value) { json[name] = value; });
  if (metrics.mfu)
    json["mfu"] = *metrics.mfu;
  if (metrics.expertRounds)
    json["expert_rounds"] = *metrics.expertRounds;
  if (metrics.attentionImbalance)
    json["attention_imbalance"] = *metrics.attentionImbalance;
  if (metrics.slowest) {
    json["slowest_rank"] = metrics.slowest->first;
    json["slowest_rank_ratio"] = metrics.slowest->second;
  }
  if (metrics.lossScale)
    json["loss_scale"] = *metrics.lossScale;
  if (metrics.lossScale || metrics.failedRouter || metrics.skipped)
    json["skipped"] = metrics.skipped;
  if (metrics.failedRouter)
    json["failed_router"] = metrics.failedRouter->router;
  for (const Evaluation &evaluation : metrics.evaluations) {
    json[evaluation.key("eval_loss")] = evaluation.loss;
    if (evaluation.bitsPerByte)
      json[evaluation.key("eval_bits_per_byte")] = *evaluation.bitsPerByte;
    if (evaluation.rewards)
      evaluation.rewards->each([&](const char *name, double value) {
        json[evaluation.key((std::string("eval_") + name).c_str())] = value;
      });
  }
  OrderedJson norms = OrderedJson::object();
  for (const auto &[name, norm] : metrics.norms)
    norms[name] = norm;
  if (!norms.empty())
    json["norms"] = std::move(norms);
  for (const LayerTokens &layer : metrics.expertTokens) {
    OrderedJson counts = OrderedJson::array();
    for (float count : layer.counts)
      counts.push_back(std::isfinite(count) ? OrderedJson(int64_t(count)) : OrderedJson());
    json["expert_tokens"][std::to_string(layer.layer)] = counts;
  }
  return json;
}

std::vector<std::string> MetricsFile::columnsOf(const StepMetrics &metrics) {
  std::vector<std::string> columns;
  OrderedJson json = jsonOf(metrics);
  for (const auto &[key, value] : json.items())
    columns.push_back(key);
  return columns;
}

void MetricsFile::write(const StepMetrics &metrics) {
  OrderedJson json = jsonOf(metrics);
  if (!isTable) {
    file->write(json.dump() + "\n");
    return;
  }
  std::string row;
  for (const std::string &column : columns) {
    row += row.empty() && &column == &columns.front() ? "" : ",";
    if (json.contains(column) && !json[column].is_null() && !json[column].is_structured())
      row += json[column].is_string() ? json[column].get<std::string>() : json[column].dump();
  }
  file->write(row + "\n");
}

Progress::Progress(int64_t firstStep, int64_t steps, int64_t every)
    : firstStep(firstStep), steps(steps), every(every), // mpirun gives its processes a terminal of their own, whatever it writes to.
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
  bool edge = metrics.step == firstStep || done == steps || !metrics.evaluations.empty();
  bool due = every ? done % every == 0
                   : done % std::max<int64_t>(1, steps / 20) == 0 || sinceShown >= 10;
  if (!edge && (terminal ? sinceShown < 0.1 : !due))
    return;
  shown = now;
  double elapsed = std::chrono::duration<double>(now - begin).count();
  double left = elapsed / double(done - firstStep) * double(steps - done);
  char line[256];
  char part[128] = "";
  if (metrics.auxLoss)
    snprintf(part, sizeof(part), "  aux loss %.4f", *metrics.auxLoss);
  if (metrics.rewards)
    snprintf(part + strlen(part), sizeof(part) - strlen(part), "  accuracy %.3f  margin %.3g", metrics.rewards->accuracy,
             metrics.rewards->margin);
  snprintf(line, sizeof(line), "step %ld (%ld/%ld)  loss %.4f%s  lr %.3g  %s tokens/s  ETA %s",
           long(metrics.step), long(done), long(steps), metrics.loss, part, metrics.lr,
           grouped(uint64_t(metrics.tokensPerSecond)).c_str(), duration(left).c_str());
  std::string text = line;
  for (const Evaluation &evaluation : metrics.evaluations) {
    snprintf(line, sizeof(line), " %.4f", evaluation.loss);
    text += "  " + evaluation.key("eval loss") + line;
  }
  if (terminal)
    printf("\r%s\033[K", text.c_str());
  else
    printf("%s\n", text.c_str());
  lineOpen = terminal;
  if (terminal && (!metrics.evaluations.empty() || done == steps))
    endLine();
  fflush(stdout);
}

void Progress::endLine() {
  if (lineOpen)
    printf("\n");
  lineOpen = false;
}
