//===- MetricsLines.cpp - what --metrics wrote, line by line -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MetricsLines.h"

#include "meshwright/InputFile.h"
#include "meshwright/Json.h"


using namespace llvm;

namespace meshwright::report {

Error readMetrics(StringRef path, function_ref<Error(const json::Object &, size_t)> visit) {
  auto buffer = readInput(path, metricsInput);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + toString(buffer.takeError()));
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, false);
  for (auto [i, line] : enumerate(lines)) {
    Expected<json::Value> value = parseJson(line);
    const json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object) {
      if (!value)
        consumeError(value.takeError());
      return createStringError("'" + path + "' line " + Twine(i + 1) +
                               " is not a JSON object; expected a file written by --metrics");
    }
    if (Error error = visit(*object, i + 1))
      return error;
  }
  return Error::success();
}

Error writePicture(StringRef file, function_ref<void(raw_ostream &)> draw) {
  if (file.empty())
    return Error::success();
  std::error_code error;
  raw_fd_ostream os(file, error);
  if (!error) {
    draw(os);
    os.flush();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return createStringError("cannot write '" + file + "': " + error.message());
  return Error::success();
}

} // namespace meshwright::report
