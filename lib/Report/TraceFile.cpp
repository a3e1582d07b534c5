//===- TraceFile.cpp - the file that --trace of an executable writes ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TraceFile.h"
#include "meshwright/InputFile.h"
#include "meshwright/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace meshwright::report {

Expected<RankTraces> readTrace(StringRef path) {
  auto file = readInput(path, traceInput);
  if (!file)
    return createStringError("cannot read '" + path + "': " + toString(file.takeError()));
  Expected<json::Value> value = parseJson((*file)->getBuffer());
  const json::Array *events = nullptr;
  if (value && value->getAsObject())
    events = value->getAsObject()->getArray("traceEvents");
  if (!events)
    return createStringError("'" + path + "' is no trace; an executable's --trace FILE writes one" +
                             (value ? "" : ": " + toString(value.takeError())));
  if (const json::Object *other = value->getAsObject()->getObject("otherData"))
    if (other->get("times"))
      return createStringError("'" + path + "' is what --report predicts, in relative times; an "
                               "executable's --trace FILE writes one that was measured");
  RankTraces ranks;
  for (const json::Value &entry : *events) {
    const json::Object *event = entry.getAsObject();
    if (!event)
      continue;
    std::vector<TraceEvent> &rank = ranks[event->getInteger("pid").value_or(0)];
    const json::Object *arguments = event->getObject("args");
    auto number = [&](StringRef key) -> int64_t {
      return arguments ? arguments->getInteger(key).value_or(-1) : -1;
    };
    if (int64_t dropped = number("dropped_spans"); dropped > 0)
      return createStringError("'" + path + "' lacks " + Twine(dropped) +
                               " spans; choose fewer steps with --trace-from and --trace-steps");
    if (event->getString("ph").value_or("") != "X")
      continue;
    double begin = event->getNumber("ts").value_or(0);
    StringRef location = arguments ? arguments->getString("location").value_or("") : "";
    rank.push_back({event->getString("name").value_or("").str(),
                    event->getString("cat").value_or("").str(), location.str(),
                    event->getInteger("tid").value_or(0), number("index"), number("bytes"),
                    begin / 1e6, (begin + event->getNumber("dur").value_or(0)) / 1e6});
  }
  for (auto &[number, rank] : ranks)
    llvm::stable_sort(rank, [](const TraceEvent &a, const TraceEvent &b) { return a.begin < b.begin; });
  return ranks;
}

} // namespace meshwright::report
