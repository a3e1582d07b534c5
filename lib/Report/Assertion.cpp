//===- Assertion.cpp - budgets on the plan -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Bytes.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace meshwright {

Error checkAssertion(const Plan &plan, StringRef condition) {
  auto malformed = [&] {
    return createStringError(
        "--assert '" + condition +
        "' is not understood; write e.g. 'peak<=70GiB' (units " + byteUnits + ")");
  };
  size_t at = condition.find_first_of("<>");
  if (at == StringRef::npos || condition.substr(0, at).trim() != "peak")
    return malformed();
  bool less = condition[at] == '<';
  bool equal = condition.substr(at + 1).starts_with("=");
  std::optional<double> limit = parseBytes(condition.substr(at + 1 + equal));
  if (!limit)
    return malformed();
  double peak = plan.arenaBytes;
  bool holds =
      less ? (equal ? peak <= *limit : peak < *limit) : (equal ? peak >= *limit : peak > *limit);
  if (holds)
    return Error::success();
  return createStringError(formatv("--assert '{0}' is broken: the peak is {1:N0} bytes a rank",
                                   condition, plan.arenaBytes)
                               .str());
}

} // namespace meshwright
