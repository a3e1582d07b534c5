//===- Inspect.cpp - the `inspect` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Codegen.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"

using llvm::Error;
using llvm::Expected;

namespace meshwright {

Error inspect(llvm::StringRef executable, bool json, llvm::raw_ostream &os) {
  Expected<std::string> plan = readPlan(executable);
  if (!plan)
    return plan.takeError();
  Expected<llvm::json::Value> value = llvm::json::parse(*plan);
  const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  bool whole = object;
  for (const char *list : {"mesh", "memory", "variables", "collectives"})
    whole = whole && object->getArray(list);
  if (!whole)
    return llvm::createStringError("the plan in '" + executable +
                                   "' is damaged; compile the model again" +
                                   (value ? "" : ": " + toString(value.takeError())));
  if (json)
    os << llvm::formatv("{0:2}\n", *value);
  else
    printPlan(*object, os);
  return Error::success();
}

} // namespace meshwright
