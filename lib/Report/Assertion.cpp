//===- Assertion.cpp - budgets on the plan -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Report.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace meshwright {

/// Bytes of "70GiB", "1.5e9" or "512"; nothing if it is neither.
static std::optional<double> parseBytes(StringRef text) {
  text = text.trim();
  size_t end = text.find_first_not_of("0123456789.eE+");
  double number;
  if (text.substr(0, end).getAsDouble(number))
    return std::nullopt;
  double unit = StringSwitch<double>(end == StringRef::npos ? "" : text.substr(end).trim())
                    .Cases({"", "B"}, 1)
                    .Case("kB", 1e3)
                    .Case("MB", 1e6)
                    .Case("GB", 1e9)
                    .Case("KiB", 1024.)
                    .Case("MiB", 1024. * 1024)
                    .Case("GiB", 1024. * 1024 * 1024)
                    .Default(0);
  return unit ? std::optional(number * unit) : std::nullopt;
}

Error checkAssertion(const Plan &plan, StringRef condition) {
  auto malformed = [&] {
    return createStringError(
        "--assert '" + condition +
        "' is not understood; write e.g. 'peak<=70GiB' (units B, kB, MB, GB, KiB, MiB, GiB)");
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
