//===- Diff.cpp - what two plans say differently ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "meshwright/Report.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
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
      os << formatv("  {0,-48} {1,24} -> {2}", name, shown(a), shown(b));
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
  static std::string shown(const Cell &cell) {
    bool isLong = cell && (cell->size() > 100 || StringRef(*cell).contains('\n'));
    return !cell ? "-" : isLong ? "(long)" : *cell;
  }

  MapVector<std::string, std::pair<Cell, Cell>, std::map<std::string, unsigned>> rows;
  std::map<std::string, std::array<double, 2>> numbers;
};
} // namespace

static std::string plain(const json::Value &value) {
  if (auto text = value.getAsString())
    return text->str();
  return formatv("{0}", value).str();
}

/// What `diffPlans` shows row by row, and what follows from the rest.
static bool isTable(StringRef key) {
  return is_contained({"memory", "allowances", "variables", "inputs", "outputs", "collectives", "groups",
                       "scratch_bytes", "communication", "replicated", "timeline", "memory_over_time", "hash", "mesh", "data_axes"},
                      key);
}

unsigned diffPlans(const json::Object &a, const json::Object &b, raw_ostream &os) {
  Comparison facts, memory, variables, sent;
  for (bool ofB : {false, true}) {
    const json::Object &plan = ofB ? b : a;
    facts.add(ofB, "mesh", meshText(plan));
    memory.add(ofB, "messages, beside the arena", scratchBytes(plan));
    for (StringRef category : categories())
      memory.add(ofB, category, categoryBytes(plan, category));
    if (const json::Array *allowances = plan.getArray("allowances"))
      for (const json::Value &line : *allowances)
        memory.add(ofB, "allowance for " + line.getAsObject()->getString("category").value_or("?").str(),
                   line.getAsObject()->getInteger("bytes").value_or(0));
    for (const json::Value &value : *plan.getArray("variables")) {
      const json::Object &variable = *value.getAsObject();
      variables.add(ofB, variable.getString("name").value_or("?"),
                    formatv("{0} {1}, {2}", shapeText(variable.getArray("local_shape")),
                            variable.getString("type").value_or("?"),
                            shardingText(variable.getArray("sharding")))
                        .str());
    }
    for (const char *list : {"inputs", "outputs"})
      for (const json::Value &value : *plan.getArray(list)) {
        const json::Object &port = *value.getAsObject();
        variables.add(ofB, Twine(list) + ": " + port.getString("name").value_or("?"),
                      shapeText(port.getArray("shape")) + " " +
                          port.getString("type").value_or("?").str());
      }
    for (const Traffic &row : trafficOf(plan)) {
      std::string name = row.program + ", " + row.axes + ": " + row.op;
      sent.add(ofB, name + ", calls", row.calls);
      sent.add(ofB, name + ", bytes a rank", row.bytesOfRank);
    }
  }
  // Whatever else plans say, so that none that differ pass for the same.
  std::set<std::string> keys;
  for (const json::Object *plan : {&a, &b})
    for (auto &[key, value] : *plan)
      if (!isTable(key))
        keys.insert(key.str());
  for (const std::string &key : keys)
    for (bool ofB : {false, true}) {
      const json::Value *value = (ofB ? b : a).get(key);
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
  if (count == 0 && a.getString("hash") != b.getString("hash")) {
    os << "the same memory, variables and communication, but other places in the arena or "
          "another order of collectives\n";
    ++count;
  }
  return count;
}

} // namespace meshwright
