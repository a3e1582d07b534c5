//===- Diff.cpp - what two plans say differently ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "meshwright/PlanJson.h"
#include "meshwright/Report.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

namespace {
/// Rows of one table, by what they are about: A's value and B's. Only those that
/// differ are printed.
class Comparison {
public:
  using Cell = std::optional<std::string>;
  /// Whether it is a number decides how a difference is shown.
  void add(bool ofB, const Twine &name, std::string text) {
    auto &row = rows[name.str()];
    (ofB ? row.second : row.first) = std::move(text);
  }
  void add(bool ofB, const Twine &name, double number) {
    numbers[name.str()][ofB] = number;
    add(ofB, name, grouped(number));
  }

  unsigned print(StringRef title, raw_ostream &os) const {
    unsigned count = 0;
    for (auto &[name, row] : rows) {
      auto &[a, b] = row;
      if (a == b)
        continue;
      if (count++ == 0)
        os << title << "\n";
      if (isLong(a) || isLong(b)) {
        os << formatv("  {0,-48} {1,24}\n", name, "differs");
        continue;
      }
      os << formatv("  {0,-48} {1,24} -> {2}", name, a.value_or("-"), b.value_or("-"));
      auto it = numbers.find(name);
      if (it != numbers.end() && a && b) {
        auto [x, y] = it->second;
        os << formatv(" {0}{1}", y > x ? "+" : "", grouped(y - x));
        if (x != 0)
          os << formatv(" ({0}{1:f1}%)", y > x ? "+" : "", 100.0 * (y - x) / x);
      }
      os << "\n";
    }
    return count;
  }

private:
  /// Whether it is too long for a line.
  static bool isLong(const Cell &cell) {
    return cell && (cell->size() > 100 || StringRef(*cell).contains('\n'));
  }

  MapVector<std::string, std::pair<Cell, Cell>, std::map<std::string, unsigned>> rows;
  std::map<std::string, std::array<double, 2>> numbers;
};
} // namespace

template <typename T> constexpr bool isList = false;
template <typename T> constexpr bool isList<plan::List<T>> = true;

static std::string plain(const json::Value &value) {
  if (auto text = value.getAsString())
    return text->str();
  return formatv("{0}", value).str();
}

/// What a plan says beside the lists that `diffPlans` shows row by row, or from which they follow.
static json::Object restOf(const plan::Plan &plan) {
  json::Object rest = std::move(*json::Value(plan).getAsObject());
  rest.erase(plan::hashKey);
  rest.erase("recomputed");
  rest.erase("numbers");
  plan::Plan::fields(plan, [&](const char *key, const auto &field) {
    using Field = std::decay_t<decltype(field)>;
    if (isList<Field>)
      rest.erase(key);
  });
  return rest;
}

unsigned diffPlans(const plan::Plan &a, const plan::Plan &b, raw_ostream &os) {
  Comparison facts, memory, variables, sent;
  for (bool ofB : {false, true}) {
    const plan::Plan &plan = ofB ? b : a;
    facts.add(ofB, "mesh", meshText(plan));
    for (const plan::Recomputed &row : plan.recomputed.value_or(std::vector<plan::Recomputed>()))
      facts.add(ofB, "recomputed, " + row.reason, row.flops);
    // The hash of the model is of its text: another name of a value changes it.
    for (const plan::Setting &setting : plan.numbers.value_or(std::vector<plan::Setting>()))
      if (setting.name != "model" && setting.name != "optimizer" && setting.name != "precision" && setting.name != "batch")
        facts.add(ofB, "--" + setting.name, setting.value);
    for (const plan::Program &program : plan.programs) {
      int64_t kernels = 0;
      for (const plan::Kernel &kernel : program.kernels)
        kernels += kernel.times;
      facts.add(ofB, "kernels of a step, " + program.name, kernels);
    }
    memory.add(ofB, "messages, beside the arena", scratchBytes(plan));
    for (StringRef category : categories())
      memory.add(ofB, category, categoryBytes(plan, category));
    for (const plan::Allowance &line : plan.allowances)
      memory.add(ofB, "allowance for " + line.category, line.bytes);
    for (const plan::Variable &variable : plan.variables)
      variables.add(ofB, variable.name,
                    shapeText(variable.localShape) + " " + variable.type + ", " +
                        shardingText(variable.sharding));
    for (auto [list, ports] : {std::pair("inputs: ", &plan.inputs), {"outputs: ", &plan.outputs}})
      for (const plan::Port &port : *ports)
        variables.add(ofB, list + port.name, shapeText(port.shape) + " " + port.type);
    for (const Traffic &row : trafficOf(plan)) {
      std::string name = row.program + ", " + row.axes + ": " + row.op;
      sent.add(ofB, name + ", calls", row.calls);
      sent.add(ofB, name + ", bytes a rank", row.bytesOfRank);
    }
  }
  // Whatever else plans say, so that none that differ pass for the same.
  json::Object rest[] = {restOf(a), restOf(b)};
  std::set<std::string> keys;
  for (const json::Object &object : rest)
    for (auto &[key, value] : object)
      keys.insert(key.str());
  for (const std::string &key : keys)
    for (bool ofB : {false, true}) {
      const json::Value *value = rest[ofB].get(key);
      if (!value)
        continue;
      auto number = value->getAsNumber();
      if (number && *number == std::floor(*number))
        facts.add(ofB, key, *number);
      else
        facts.add(ofB, key, plain(*value));
    }
  unsigned count = facts.print("plan", os);
  count += memory.print("bytes of a rank at the peak", os);
  count += variables.print("variables, inputs and outputs on a rank", os);
  count += sent.print("communication", os);
  if (count == 0 && a.hash != b.hash) {
    os << "the same memory, variables and communication, but other kernels, offsets in the arena "
          "or order of collectives\n";
    ++count;
  }
  return count;
}

} // namespace meshwright
