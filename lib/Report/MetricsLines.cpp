//===- MetricsLines.cpp - what --metrics wrote, line by line -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MetricsLines.h"

#include "meshwright/InputFile.h"
#include "meshwright/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace llvm;

namespace meshwright::report {

/// The rows of a table, whose first line names its columns; an empty cell says nothing.
static Error readTable(StringRef path, ArrayRef<StringRef> lines,
                       function_ref<Error(const json::Object &, size_t)> visit) {
  SmallVector<StringRef> columns;
  if (!lines.empty())
    lines.front().rtrim('\r').split(columns, ',');
  for (size_t i = 1; i < lines.size(); ++i) {
    SmallVector<StringRef> cells;
    lines[i].rtrim('\r').split(cells, ',');
    if (cells.size() != columns.size())
      return createStringError("'" + path + "' line " + Twine(i + 1) + " has " + Twine(cells.size()) + " cells, but its first line names " +
                               Twine(columns.size()) + " columns; expected a file written by --metrics");
    json::Object row;
    for (auto [column, cell] : zip_equal(columns, cells))
      if (double number = 0; !cell.empty() && to_float(cell, number) && std::isfinite(number))
        row[column] = number;
    if (Error error = visit(row, i + 1))
      return error;
  }
  return Error::success();
}

Error readMetrics(StringRef path, function_ref<Error(const json::Object &, size_t)> visit) {
  auto buffer = readInput(path, metricsInput);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + toString(buffer.takeError()));
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, false);
  if (sys::path::extension(path) == ".csv")
    return readTable(path, lines, visit);
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
