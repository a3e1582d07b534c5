//===- Inspect.cpp - the `inspect` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Codegen.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using llvm::Error;
using llvm::Expected;

namespace meshwright {

Error inspect(llvm::StringRef executable, bool json, llvm::raw_ostream &os) {
  Expected<std::string> plan = readPlan(executable);
  if (!plan)
    return plan.takeError();
  Expected<llvm::json::Value> value = llvm::json::parse(*plan);
  const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object || !isPlan(*object))
    return llvm::createStringError("the plan in '" + executable +
                                   "' is damaged; compile the model again" +
                                   (value ? "" : ": " + toString(value.takeError())));
  if (json)
    os << llvm::formatv("{0:2}\n", *value);
  else
    printPlan(*object, os);
  return Error::success();
}

/// The plan in an executable, or in a file as `inspect --json` or `--report` writes it.
static Expected<llvm::json::Value> planOf(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + file.getError().message());
  std::string text = (*file)->getBuffer().str();
  if (!llvm::StringRef(text).ltrim().starts_with("{")) {
    Expected<std::string> plan = readPlan(path);
    if (!plan)
      return plan.takeError();
    text = std::move(*plan);
  }
  Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value || !value->getAsObject() || !isPlan(*value->getAsObject()))
    return llvm::createStringError("'" + path + "' has no whole plan in it" +
                                   (value ? "" : ": " + toString(value.takeError())));
  return value;
}

Expected<bool> diff(llvm::StringRef a, llvm::StringRef b, llvm::raw_ostream &os) {
  Expected<llvm::json::Value> first = planOf(a);
  if (!first)
    return first.takeError();
  Expected<llvm::json::Value> second = planOf(b);
  if (!second)
    return second.takeError();
  return diffPlans(*first->getAsObject(), *second->getAsObject(), os) > 0;
}

} // namespace meshwright
