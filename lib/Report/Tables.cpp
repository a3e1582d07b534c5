//===- Tables.cpp - what follows from a plan --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "Exec/Exec.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace meshwright::report {

static StringRef text(const json::Object &object, StringRef key) {
  return object.getString(key).value_or("?");
}

static dist::Mesh meshOf(const json::Object &plan) {
  dist::Mesh mesh;
  for (const json::Value &axis : *plan.getArray("mesh"))
    mesh.axes.push_back({text(*axis.getAsObject(), "axis").str(),
                         axis.getAsObject()->getInteger("size").value_or(0)});
  return mesh;
}

int64_t ranksOf(const json::Object &plan) { return meshOf(plan).size(); }

std::vector<Traffic> trafficOf(const json::Object &plan) {
  dist::Mesh mesh = meshOf(plan);
  int64_t ranks = mesh.size();
  const json::Array &groups = *plan.getArray("groups");
  std::map<std::tuple<std::string, std::string, std::string>, Traffic> rows;
  for (const json::Value &value : *plan.getArray("collectives")) {
    const json::Object &op = *value.getAsObject();
    std::string axes;
    int64_t members = 1;
    for (const json::Value &name : *groups[op.getInteger("group").value_or(0)].getAsArray()) {
      int axis = mesh.find(name.getAsString().value_or(""));
      if (axis < 0 || mesh.axes[axis].size == 1)
        continue;
      members *= mesh.axes[axis].size;
      axes += (axes.empty() ? "" : ",") + mesh.axes[axis].name;
    }
    if (members == 1)
      continue;
    Traffic &row = rows[{text(op, "program").str(), axes, text(op, "op").str()}];
    int64_t times = op.getInteger("times").value_or(1);
    row.calls += times;
    row.bytes += double(times) * double(op.getInteger("bytes").value_or(0));
  }
  std::vector<Traffic> result;
  for (auto &[key, row] : rows) {
    std::tie(row.program, row.axes, row.op) = key;
    row.bytesOfRank = int64_t(row.bytes / double(ranks));
    result.push_back(row);
  }
  return result;
}

std::vector<Copies> copiesOf(const json::Object &plan) {
  dist::Mesh mesh = meshOf(plan);
  StringSet<> dataAxes;
  for (const json::Value &axis : *plan.getArray("data_axes"))
    dataAxes.insert(axis.getAsString().value_or(""));
  // What a strategy says of a parameter holds for its states.
  std::map<StringRef, StringRef> said;
  for (const json::Value &value : *plan.getArray("variables"))
    if (auto reason = value.getAsObject()->getString("copies"))
      said[text(*value.getAsObject(), "name")] = *reason;
  std::vector<Copies> rows;
  for (const json::Value &value : *plan.getArray("variables")) {
    const json::Object &variable = *value.getAsObject();
    StringSet<> cut;
    for (const json::Value &dim : *variable.getArray("sharding"))
      for (const json::Value &axis : *dim.getAsArray())
        cut.insert(axis.getAsString().value_or(""));
    StringRef role = text(variable, "role");
    StringRef parameter = variable.getString("of").value_or(text(variable, "name"));
    for (const dist::MeshAxis &axis : mesh.axes) {
      if (axis.size == 1 || cut.contains(axis.name))
        continue;
      std::string reason = "no seed cuts it along " + axis.name;
      if (axis.name == "replica")
        reason = "replicas hold copies of everything";
      else if (dataAxes.contains(axis.name))
        reason += role == "parameter" ? "; --zero 3 would" : "; --zero 1 would";
      else if (auto it = said.find(parameter); it != said.end())
        reason = it->second.str();
      rows.push_back({text(variable, "name").str(), role.str(), axis.name, axis.size,
                      bytesOf(variable), reason});
    }
  }
  return rows;
}

int64_t categoryBytes(const json::Object &plan, StringRef category) {
  for (const json::Value &entry : *plan.getArray("memory"))
    if (text(*entry.getAsObject(), "category") == category)
      return entry.getAsObject()->getInteger("bytes").value_or(0);
  return 0;
}

std::vector<StringRef> categories() {
  std::vector<StringRef> names;
  for (unsigned i = 0; i <= exec::getMaxEnumValForCategory(); ++i)
    names.push_back(exec::stringifyCategory(exec::Category(i)));
  return names;
}

int64_t bytesOf(const json::Object &variable) {
  StringRef type = text(variable, "type");
  int64_t bytes = type == "bf16" || type == "f16" ? 2 : 4;
  for (const json::Value &size : *variable.getArray("local_shape"))
    bytes *= size.getAsInteger().value_or(1);
  return bytes;
}

int64_t scratchBytes(const json::Object &plan) {
  int64_t sum = 0;
  if (const json::Array *groups = plan.getArray("scratch_bytes"))
    for (const json::Value &bytes : *groups)
      sum += bytes.getAsInteger().value_or(0);
  return sum;
}

std::string grouped(double number) {
  std::string text = formatv("{0:F0}", number).str();
  for (size_t i = text.size(); i > 3 && isDigit(text[i - 4]); i -= 3)
    text.insert(i - 3, ",");
  return text;
}

std::string operationsText(const json::Object &plan, StringRef key) {
  return grouped(plan.getNumber(key).value_or(0));
}

std::string placeText(const json::Object &program) {
  std::string text;
  for (const auto &[axis, places] : *program.getObject("at")) {
    text += (text.empty() ? "" : ", ") + StringRef(axis).str();
    for (const json::Value &place : *places.getAsArray())
      text += " " + std::to_string(place.getAsInteger().value_or(0));
  }
  return text.empty() ? "everywhere" : text;
}

std::string shapeText(const json::Array *shape) {
  std::string text;
  for (const json::Value &size : *shape)
    text += (text.empty() ? "" : " x ") + std::to_string(size.getAsInteger().value_or(0));
  return text.empty() ? "scalar" : text;
}

std::string shardingText(const json::Array *sharding) {
  std::string text;
  for (auto [d, axes] : enumerate(*sharding))
    for (const json::Value &axis : *axes.getAsArray())
      text += formatv("{0}dim {1} over {2}", text.empty() ? "" : ", ", d,
                      axis.getAsString().value_or("?"))
                  .str();
  return text.empty() ? "replicated" : text;
}

std::string meshText(const json::Object &plan) {
  dist::Mesh mesh = meshOf(plan);
  return mesh.axes.empty() ? "one rank" : dist::meshText(mesh);
}

std::string precisionText(const json::Object &plan) {
  StringRef precision = text(plan, "precision");
  if (precision == "f32")
    return precision.str();
  return (precision + ", gradients in " + text(plan, "grad_dtype")).str();
}

} // namespace meshwright::report

bool meshwright::isPlan(const json::Object &plan) {
  return all_of(ArrayRef<const char *>{"mesh", "data_axes", "memory", "variables", "inputs",
                                       "outputs", "programs", "groups", "collectives"},
                [&](const char *list) { return plan.getArray(list); });
}
