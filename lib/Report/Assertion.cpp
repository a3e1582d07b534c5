//===- Assertion.cpp - budgets on the plan -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "meshwright/Bytes.h"
#include "meshwright/Report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

namespace {
/// What is measured, in the words of messages.
enum class Unit { Bytes, Operations, Calls };
struct Quantity {
  double value = 0;
  Unit unit = Unit::Bytes;
};
} // namespace

static StringRef unitText(Unit unit) {
  return unit == Unit::Bytes        ? "bytes a rank"
         : unit == Unit::Operations ? "floating-point operations a step"
                                    : "calls a step";
}

/// The number in `text`, in units of `unit`; nothing if it is none.
static std::optional<double> parseLimit(StringRef text, Unit unit) {
  if (unit == Unit::Bytes)
    return parseBytes(text);
  text = text.trim();
  size_t end = text.find_first_not_of("0123456789.eE+");
  double number;
  if (text.substr(0, end).getAsDouble(number))
    return std::nullopt;
  StringRef suffix = end == StringRef::npos ? "" : text.substr(end).trim();
  if (suffix.empty())
    return number;
  if (unit != Unit::Operations)
    return std::nullopt;
  double factor = StringSwitch<double>(suffix)
                      .Case("GFLOP", 1e9)
                      .Case("TFLOP", 1e12)
                      .Case("PFLOP", 1e15)
                      .Case("EFLOP", 1e18)
                      .Default(0);
  return factor ? std::optional(number * factor) : std::nullopt;
}

/// Names between commas, whatever their order.
static std::set<StringRef> namesOf(StringRef list) {
  SmallVector<StringRef> names;
  list.split(names, ',');
  return {names.begin(), names.end()};
}

/// Bytes that a rank sends in a step, along the axes if they are given.
static Expected<double> communicationAlong(const plan::Plan &plan,
                                           std::optional<StringRef> wanted) {
  double sum = 0;
  for (const Traffic &row : trafficOf(plan))
    if (row.program == "step" && (!wanted || namesOf(row.axes) == namesOf(*wanted)))
      sum += double(row.bytesOfRank);
  if (!wanted)
    return sum;
  StringSet<> known;
  for (const plan::MeshAxis &axis : plan.mesh)
    known.insert(axis.name);
  for (StringRef name : namesOf(*wanted))
    if (!known.contains(name))
      return createStringError("mesh axis '" + name + "' is not in the mesh " + meshText(plan));
  return sum;
}

static Expected<Quantity> quantityNamed(StringRef name, const plan::Plan &plan) {
  if (name == "peak")
    return Quantity{double(plan.arenaBytes)};
  if (name == "device")
    return Quantity{double(plan.deviceBytes)};
  for (MemorySpace space : offloadSpaces)
    if (name == spaceRow(space).name)
      return Quantity{double(plan.offloaded[space].bytes.value_or(0))};
  if (is_contained(categories(), name))
    return Quantity{double(categoryBytes(plan, name))};
  if (name == "flops")
    return Quantity{plan.flops, Unit::Operations};
  if (name == "recomputed_flops")
    return Quantity{plan.recomputedFlops, Unit::Operations};
  if (name == "collectives") {
    int64_t calls = 0;
    for (const Traffic &row : trafficOf(plan))
      calls += row.program == "step" ? row.calls : 0;
    return Quantity{double(calls), Unit::Calls};
  }
  StringRef axes = name;
  bool along = axes.consume_front("communication[") && axes.consume_back("]");
  if (name == "communication" || along) {
    std::string plain = axes.str();
    llvm::erase(plain, ' ');
    Expected<double> bytes =
        communicationAlong(plan, along ? std::optional<StringRef>(plain) : std::nullopt);
    if (!bytes)
      return bytes.takeError();
    return Quantity{*bytes};
  }
  auto offloaded = map_range(offloadSpaces, [](MemorySpace space) { return StringRef(spaceRow(space).name); });
  return createStringError(
      "'" + name + "' is no quantity; quantities are peak, device, " + join(offloaded, ", ") + ", " +
      join(categories(), ", ") +
      ", communication, communication[AXES], flops, recomputed_flops and collectives, and "
      "sums of them like parameter+gradient");
}

Error checkAssertion(const plan::Plan &plan, StringRef condition) {
  auto fail = [&](const Twine &why) {
    return createStringError("--assert '" + condition + "' is not understood: " + why);
  };
  size_t at = condition.find_first_of("<>");
  if (at == StringRef::npos)
    return fail("it has no <=, <, >= or >; write e.g. 'peak<=70GiB'");
  Quantity sum;
  SmallVector<StringRef> names;
  condition.substr(0, at).split(names, '+');
  for (auto [i, name] : enumerate(names)) {
    Expected<Quantity> quantity = quantityNamed(name.trim(), plan);
    if (!quantity)
      return fail(toString(quantity.takeError()));
    if (i > 0 && quantity->unit != sum.unit)
      return fail("'" + name.trim() + "' counts " + unitText(quantity->unit) +
                  " and what is before " + unitText(sum.unit) + ", which cannot be added");
    sum.unit = quantity->unit;
    sum.value += quantity->value;
  }
  bool less = condition[at] == '<';
  bool equal = condition.substr(at + 1).starts_with("=");
  std::optional<double> limit = parseLimit(condition.substr(at + 1 + equal), sum.unit);
  if (!limit)
    return fail("after the comparison stands a number of " + unitText(sum.unit) +
                (sum.unit == Unit::Bytes ? " with or without a unit: " + byteUnits
                 : sum.unit == Unit::Operations
                     ? " with or without a unit: GFLOP, TFLOP, PFLOP, EFLOP"
                     : StringRef()));
  double value = sum.value;
  bool holds = less ? (equal ? value <= *limit : value < *limit)
                    : (equal ? value >= *limit : value > *limit);
  if (holds)
    return Error::success();
  return createStringError(formatv("--assert '{0}' is broken: {1} is {2} {3}", condition,
                                   condition.substr(0, at).trim(), grouped(value),
                                   unitText(sum.unit))
                               .str());
}

} // namespace meshwright
