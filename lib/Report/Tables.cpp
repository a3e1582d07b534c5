//===- Tables.cpp - what follows from a plan --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "Exec/Exec.h"
#include "Train/Quantize.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"
#include "meshwright/runtime/Averages.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace llvm;

namespace meshwright::report {

static dist::Mesh meshOf(const plan::Plan &plan) {
  dist::Mesh mesh;
  for (const plan::MeshAxis &axis : plan.mesh)
    mesh.axes.push_back({axis.name, axis.size});
  return mesh;
}

std::vector<Traffic> trafficOf(const plan::Plan &plan) {
  dist::Mesh mesh = meshOf(plan);
  int64_t ranks = mesh.size();
  std::map<std::tuple<std::string, std::string, std::string>, Traffic> rows;
  for (const plan::Collective &op : plan.collectives) {
    std::string axes;
    int64_t members = 1;
    for (const std::string &name : plan.groups.at(op.group)) {
      int axis = mesh.find(name);
      if (axis < 0 || mesh.axes[axis].size == 1)
        continue;
      members *= mesh.axes[axis].size;
      axes += (axes.empty() ? "" : ",") + mesh.axes[axis].name;
    }
    if (members == 1)
      continue;
    Traffic &row = rows[{op.entry, axes, op.op}];
    row.calls += op.times;
    row.bytes += double(op.times) * double(op.bytes);
  }
  std::vector<Traffic> result;
  for (auto &[key, row] : rows) {
    std::tie(row.program, row.axes, row.op) = key;
    row.bytesOfRank = int64_t(row.bytes / double(ranks));
    result.push_back(row);
  }
  return result;
}

std::string timesText(const plan::Collective &op) {
  std::string text = std::to_string(op.times);
  return op.rounds ? text + " in " + std::to_string(*op.rounds) + " rounds" : text;
}

std::vector<Copies> copiesOf(const plan::Plan &plan) {
  dist::Mesh mesh = meshOf(plan);
  // What a strategy says of a parameter holds for its states.
  std::map<StringRef, StringRef> said;
  for (const plan::Variable &variable : plan.variables)
    if (variable.copies)
      said[variable.name] = *variable.copies;
  // A variable of a pipeline stage is where its programs run.
  std::map<StringRef, SmallVector<int64_t, 1>> programsOf;
  for (const plan::Variable &variable : plan.variables)
    programsOf[variable.name].push_back(variable.program);
  auto positions = [&](StringRef variable, const dist::MeshAxis &axis) -> int64_t {
    std::set<int64_t> found;
    for (int64_t program : programsOf[variable]) {
      const plan::Table<plan::Shape> &at = plan.programs[program].at;
      auto pinned = at.find(axis.name);
      if (pinned == at.end())
        return axis.size;
      found.insert(pinned->second.begin(), pinned->second.end());
    }
    return int64_t(found.size());
  };
  std::vector<Copies> rows;
  for (const plan::Variable &variable : plan.variables) {
    const std::string &parameter = variable.of ? *variable.of : variable.name;
    if (variable.program != programsOf[variable.name].front())
      continue; // What several stages have is told once.
    for (const dist::MeshAxis &axis : mesh.axes) {
      int64_t copies = positions(variable.name, axis);
      if (copies == 1 || any_of(variable.sharding, [&](const plan::List<std::string> &axes) {
            return is_contained(axes, axis.name);
          }))
        continue;
      std::string reason = "no seed shards it along " + axis.name;
      if (variable.role == train::tokensRole)
        reason = "every device counts the tokens of all";
      else if (variable.role == train::scaleRole)
        reason = "scales, one number for a row of a weight, are where the rows are computed with";
      else if (train::isOfDelayedScaling(variable.role))
        reason = "magnitudes by which every device scales its parts of a tensor";
      else if (axis.name == "replica")
        reason = "replicas hold copies of everything";
      else if (is_contained(plan.dataAxes, axis.name))
        reason += variable.role == "parameter" ? "; --zero 3 would" : "; --zero 1 would";
      else if (auto it = said.find(parameter); it != said.end())
        reason = it->second.str();
      rows.push_back(
          {variable.name, variable.role, axis.name, copies, bytesOf(variable), reason});
    }
  }
  return rows;
}

int64_t categoryBytes(const plan::Plan &plan, StringRef category) {
  for (const plan::MemoryLine &line : plan.memory)
    if (line.category == category)
      return line.bytes;
  return 0;
}

std::vector<StringRef> categories() {
  std::vector<StringRef> names;
  for (unsigned i = 0; i <= exec::getMaxEnumValForCategory(); ++i)
    names.push_back(exec::stringifyCategory(exec::Category(i)));
  return names;
}

std::string recomputedText(StringRef reason) {
  return StringSwitch<std::string>(reason)
      .Case("remat", "activations that --remat does not save")
      .Case(train::recomputedOfRounds,
            "experts: the backward receives the rows again, in a data-dependent number of rounds "
            "whose results are not saved; none if --expert-buffer fits all rows into one round")
      .Case(train::recomputedOfLatents,
            "keys and values that each ring step recomputes from the latents it receives")
      .Default(reason.str());
}

int64_t bytesOf(const plan::Variable &variable) {
  bool narrow = llvm::is_contained({"bf16", "f16", "i16"}, variable.type);
  int64_t bytes = variable.type == "i8" ? 1 : narrow ? 2 : 4;
  for (int64_t size : variable.localShape)
    bytes *= size;
  return bytes;
}

int64_t checkpointBytes(const plan::Plan &plan) {
  auto isAdapter = [](const plan::Variable &variable) { return variable.adapter.value_or(false); };
  bool hasAdapters = llvm::any_of(plan.variables, isAdapter);
  bool keepsAverages = llvm::is_contained(plan.optimizerStates, averageState);
  std::map<std::pair<std::string, int64_t>, const plan::Variable *> parameters;
  for (const plan::Variable &variable : plan.variables)
    if (variable.role == "parameter")
      parameters[{variable.name, variable.program}] = &variable;
  // Copies of a variable in two programs are the same tensor of the file; different variables that share a tensor have different rows of it.
  std::set<std::tuple<std::string, std::string, int64_t>> counted;
  int64_t elements = 0;
  for (const plan::Variable &variable : plan.variables) {
    bool isState = llvm::is_contained(plan.optimizerStates, variable.role);
    if (!isState && (variable.role != "parameter" || isAdapter(variable) != hasAdapters))
      continue;
    auto owner = parameters.find({variable.of.value_or(variable.name), variable.program});
    if (owner == parameters.end() || !owner->second->storage)
      continue;
    const plan::Storage &storage = *owner->second->storage;
    if (!counted.emplace(variable.role, storage.tensor, storage.slice ? storage.slice->begin : 0).second)
      continue;
    int64_t size = std::accumulate(variable.shape.begin(), variable.shape.end(), int64_t(1), std::multiplies<int64_t>());
    elements += isState || !keepsAverages ? size : 2 * size;
  }
  return 4 * elements;
}

int64_t scratchBytes(const plan::Plan &plan) {
  return std::accumulate(plan.scratchBytes.begin(), plan.scratchBytes.end(), int64_t(0));
}

Parameters parametersOf(const plan::Plan &plan) {
  StringSet<> seen; // stages may share one
  Parameters parameters;
  for (const plan::Variable &variable : plan.variables) {
    if (variable.role != "parameter" || !seen.insert(variable.name).second)
      continue;
    int64_t size = product_of(variable.shape);
    parameters.all += size;
    parameters.used += variable.expertsUsed ? size / variable.shape[variable.stacked] * *variable.expertsUsed : size;
  }
  return parameters;
}

std::string grouped(double number) {
  std::string text = formatv("{0:F0}", number).str();
  for (size_t i = text.size(); i > 3 && isDigit(text[i - 4]); i -= 3)
    text.insert(i - 3, ",");
  return text;
}

std::string coordinatesText(const plan::Program &program) {
  std::string text;
  for (const auto &[axis, coordinates] : program.at) {
    text += (text.empty() ? "" : ", ") + axis;
    for (int64_t coordinate : coordinates)
      text += " " + std::to_string(coordinate);
  }
  return text.empty() ? "everywhere" : text;
}

std::string shapeText(const plan::Shape &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

std::string shardingText(const plan::List<plan::List<std::string>> &sharding) {
  std::string text;
  for (auto [d, axes] : enumerate(sharding))
    for (const std::string &axis : axes)
      text += formatv("{0}dim {1} over {2}", text.empty() ? "" : ", ", d, axis).str();
  return text.empty() ? "replicated" : text;
}

std::string meshText(const plan::Plan &plan) {
  dist::Mesh mesh = meshOf(plan);
  return mesh.axes.empty() ? "one rank" : dist::meshText(mesh);
}

const char *asOneDocument(const plan::Plan &plan) {
  bool packed = any_of(plan.inputs, [](const plan::Port &port) { return port.name == "positions"; });
  return packed ? ", if each sequence were one document" : "";
}

std::string precisionText(const plan::Plan &plan) {
  return plan.precision == "f32" ? plan.precision
                                 : plan.precision + ", gradients in " + plan.gradDtype;
}

} // namespace meshwright::report

int64_t meshwright::ranksOf(const plan::Plan &plan) { return report::meshOf(plan).size(); }

meshwright::BySpace<int64_t> meshwright::neededBytes(const plan::Plan &plan) {
  BySpace<int64_t> bytes = {{plan.deviceBytes}};
  for (MemorySpace space : offloadSpaces)
    bytes[space] = plan.offloaded[space].bytes.value_or(0);
  return bytes;
}

std::string meshwright::offloadedText(const BySpace<int64_t> &bytes) {
  std::string text;
  for (MemorySpace space : offloadSpaces)
    if (bytes[space])
      text += formatv(" and {0:N0} on {1}", bytes[space], spaceRow(space).text);
  return text;
}

int64_t meshwright::bytesOf(ArrayRef<plan::Allowance> allowances) {
  int64_t bytes = 0;
  for (const plan::Allowance &line : allowances)
    bytes += line.bytes;
  return bytes;
}
