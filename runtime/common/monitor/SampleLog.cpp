//===- SampleLog.cpp - which sequences each step has read -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/SampleLog.h"

#include <nlohmann/json.hpp>

using namespace meshwright;
using OrderedJson = nlohmann::ordered_json;

// Names of files need not be UTF-8.
static std::string lineOf(const OrderedJson &json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

SampleLog::SampleLog(const std::string &path, int64_t firstStep, const std::vector<std::string> &files)
    : file(path, firstStep), firstStep(firstStep), files(files) {
  writeFiles();
}

void SampleLog::writeFiles() { file.writeLine(lineOf({{"step", firstStep}, {"files", files}})); }

void SampleLog::goBackTo(int64_t step) {
  file.goBackTo(step);
  if (step <= firstStep) // The names of the files were dropped with their steps.
    writeFiles();
}

void SampleLog::write(int64_t step, const Samples &samples) {
  OrderedJson places = OrderedJson::array();
  for (const auto &[number, sequence] : samples)
    places.push_back(OrderedJson::array({number, sequence}));
  file.writeLine(lineOf({{"step", step}, {"samples", places}}));
}
