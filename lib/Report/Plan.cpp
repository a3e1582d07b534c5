//===- Plan.cpp - the plan of a module ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Communication.h"
#include "Codegen/LocationText.h"
#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "CopiedBytes.h"
#include "Exec/Exec.h"
#include "Flops.h"
#include "Kernels.h"
#include "MemoryTables.h"
#include "PredictedTrace.h"
#include "StepTasks.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace meshwright;
using llvm::createStringError;
using llvm::json::Array;
using llvm::json::Object;

static Array numbers(ArrayRef<int64_t> values) { return Array(values); }

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << getElementTypeOrSelf(type);
  return text;
}

namespace {
class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, bool forReport)
      : module(module), forReport(forReport), programs(dist::programsOf(module)),
        communication(module) {}
  llvm::Expected<Plan> build();

private:
  llvm::Error addModel();
  llvm::Error addMesh();
  void addVariables(ModuleOp program, int64_t number);
  void addStorage(train::VariableOp op, ArrayRef<int64_t> layerShape, Object &out);
  llvm::Error addProgram(ModuleOp program, int64_t number);
  void addPorts(ModuleOp program, int64_t number);
  void addCommunication();
  int64_t ranksOf(ModuleOp program);
  /// Floating-point operations of a step on all ranks that run `program`.
  double flopsOf(ModuleOp program, bool again = false);

  ModuleOp module;
  bool forReport;
  SmallVector<ModuleOp> programs;
  codegen::Communication communication;
  std::vector<int64_t> besideBytes; ///< by program
  dist::Mesh mesh;
  llvm::DenseMap<Operation *, int64_t> ranks; ///< of each program
  Object plan;
  report::FlopCounter flops;
  Array memoryOverTime;
};
} // namespace

llvm::Error PlanBuilder::addModel() {
  for (const char *key : {"model", "config"}) {
    auto text = module->getAttrOfType<StringAttr>(("train." + Twine(key)).str());
    plan[key] = text ? text.getValue() : "";
  }
  for (const char *key : {"batch", "sequence", "microbatches", "vocabulary", "max_positions"}) {
    auto number = module->getAttrOfType<IntegerAttr>(("train." + Twine(key)).str());
    if (!number)
      return createStringError("the module has no train." + Twine(key) +
                               ", which an executable's plan needs: a description of a model in "
                               ".mlir sets it as an attribute of the module");
    plan[key] = number.getInt();
  }
  plan["version"] = 1;
  plan["target"] = exec::targetOf(programs.front()).getName();
  auto precision = module->getAttrOfType<StringAttr>("train.precision");
  plan["precision"] = precision ? precision.getValue() : "f32";
  auto gradients = module->getAttrOfType<TypeAttr>("train.grad_type");
  plan["grad_dtype"] = gradients ? typeName(gradients.getValue()) : "f32";
  bool moments = llvm::any_of(programs, [](ModuleOp program) {
    return llvm::any_of(program.getOps<train::VariableOp>(), [](train::VariableOp op) {
      return op.getRole() == StringRef("momentum");
    });
  });
  plan["optimizer"] = moments ? "adamw" : "sgd";
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addMesh() {
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  Array axes, dataAxes;
  for (const dist::MeshAxis &axis : mesh.axes)
    axes.push_back(Object{{"axis", axis.name}, {"size", axis.size}});
  for (unsigned axis : dist::batchAxes(mesh))
    dataAxes.push_back(mesh.axes[axis].name);
  plan["mesh"] = std::move(axes);
  plan["data_axes"] = std::move(dataAxes);
  return llvm::Error::success();
}

/// The buffer of a variable, in any entry point.
static exec::BufferOp bufferOf(ModuleOp program, StringRef variable) {
  exec::BufferOp found;
  program.walk([&](exec::BufferOp buffer) {
    if (buffer.getVariable() == variable)
      found = buffer;
  });
  return found;
}

/// "pipe": [0] for each axis that `dist.at` names.
static Object placeOf(ModuleOp program) {
  Object result;
  if (auto at = program->getAttrOfType<DictionaryAttr>(dist::placeAttr))
    for (NamedAttribute entry : at)
      result[entry.getName().getValue()] = numbers(dist::coordinatesOf(entry.getValue()));
  return result;
}

void PlanBuilder::addStorage(train::VariableOp op, ArrayRef<int64_t> layerShape, Object &out) {
  auto storage = op.getStorageAttr();
  if (!storage) {
    // Unnamed in any file: stored under its own name.
    out["storage"] =
        Object{{"tensor", op.getSymName().str() + (op.getStacked() ? ".{layer}" : "")}};
    return;
  }
  Object result{{"tensor", storage.getTensor()}, {"transpose", storage.getTranspose()}};
  if (storage.getFull()) {
    // Sizes are of the file's tensor.
    SmallVector<int64_t> shape(layerShape);
    if (storage.getTranspose())
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    result["slice"] = Object{{"dim", storage.getDim()},
                             {"begin", storage.getBegin()},
                             {"size", shape[storage.getDim()]},
                             {"full", storage.getFull()}};
  }
  out["storage"] = std::move(result);
}

void PlanBuilder::addVariables(ModuleOp program, int64_t number) {
  Array &variables = *plan.getArray("variables");
  for (auto op : program.getOps<train::VariableOp>()) {
    exec::BufferOp buffer = bufferOf(program, op.getSymName());
    if (!buffer)
      continue; // nothing reads or writes it
    auto global = op.getTensorType();
    if (auto type = op->getAttrOfType<TypeAttr>(dist::DistDialect::globalAttr))
      global = cast<RankedTensorType>(type.getValue());
    Array sharding;
    auto encoding = dist::shardingOf(global);
    dist::Sharding cut =
        encoding ? encoding.on(mesh) : dist::Sharding::replicated(global.getRank());
    if (auto type = op->getAttrOfType<TypeAttr>(dist::DistDialect::logicalAttr))
      global = cast<RankedTensorType>(type.getValue());
    for (const dist::Axes &axes : cut.dims) {
      Array names;
      for (unsigned axis : axes)
        names.push_back(mesh.axes[axis].name);
      sharding.push_back(std::move(names));
    }
    Object entry{{"name", op.getSymName()},
                 {"role", op.getRole() ? op.getRole()->str() : "parameter"},
                 {"type", typeName(global)},
                 {"shape", numbers(global.getShape())},
                 {"stacked", op.getStacked()},
                 {"local_shape", numbers(op.getTensorType().getShape())},
                 {"sharding", std::move(sharding)},
                 {"offset", int64_t(buffer.getOffset().value_or(0))},
                 {"in", number}};
    if (exec::isOnHost(buffer.getType()))
      entry["on_host"] = true;
    if (auto copies = op->getAttrOfType<StringAttr>(dist::DistDialect::copiesAttr))
      entry["copies"] = copies.getValue();
    if (op.getOf()) {
      entry["of"] = *op.getOf();
    } else {
      double value = op.getInit().getValue().getValueAsDouble();
      bool normal = op.getInit().getKind() == "normal";
      entry["init"] = Object{{"kind", op.getInit().getKind()}, {normal ? "std" : "value", value}};
      addStorage(op, global.getShape().drop_front(op.getStacked()), entry);
    }
    variables.push_back(std::move(entry));
  }
}

static Array toJson(ArrayRef<exec::Allowance> allowances) {
  Array lines;
  for (const exec::Allowance &line : allowances)
    lines.push_back(
        Object{{"category", line.category}, {"bytes", line.bytes}, {"source", line.source}});
  return lines;
}

llvm::Error PlanBuilder::addProgram(ModuleOp program, int64_t number) {
  auto arena = program->getAttrOfType<IntegerAttr>(exec::arenaBytesAttr);
  auto live = program->getAttrOfType<IntegerAttr>(exec::liveBytesAttr);
  if (!arena || !live)
    return createStringError("the module's memory is not planned: run exec-plan-memory");
  Array memory;
  if (auto lines = program->getAttrOfType<DictionaryAttr>(exec::memoryAttr))
    for (NamedAttribute line : lines)
      memory.push_back(Object{{"category", line.getName().getValue()},
                              {"bytes", cast<IntegerAttr>(line.getValue()).getInt()}});
  std::vector<exec::Allowance> allowances =
      exec::targetOf(program).getTarget().getAllowances(program, communication);
  besideBytes.push_back(0);
  for (const exec::Allowance &line : allowances)
    besideBytes.back() += line.bytes;
  // For all of the executable stands the rank that needs most.
  if (arena.getInt() > plan.getInteger("arena_bytes").value_or(-1)) {
    plan["arena_bytes"] = arena.getInt();
    plan["memory"] = Array(memory);
  }
  if (int64_t device = arena.getInt() + besideBytes.back();
      device > plan.getInteger("device_bytes").value_or(-1)) {
    plan["device_bytes"] = device;
    plan["allowances"] = toJson(allowances);
  }
  Object entry{{"name", program == module ? "main" : program.getSymName().value_or("")},
               {"at", placeOf(program)},
               {"arena_bytes", arena.getInt()},
               {"live_bytes", live.getInt()},
               {"memory", std::move(memory)},
               {"allowances", toJson(allowances)},
               {"flops", flopsOf(program)}};
  entry["kernels"] = report::kernelsOf(program, flops);
  if (auto host = program->getAttrOfType<IntegerAttr>(exec::hostBytesAttr)) {
    Array lines;
    for (NamedAttribute line : program->getAttrOfType<DictionaryAttr>(exec::hostMemoryAttr))
      lines.push_back(Object{{"category", line.getName().getValue()},
                             {"bytes", cast<IntegerAttr>(line.getValue()).getInt()}});
    entry["host_bytes"] = host.getInt();
    entry["host_memory"] = Array(lines);
    Object copied;
    for (auto step : program.getOps<exec::ProgramOp>())
      if (!step.isPrivate()) {
        report::CopiedBytes bytes = report::copiedBytes(step);
        copied[step.getSymName()] = Object{{"to_device", bytes.toDevice}, {"to_host", bytes.toHost}};
      }
    entry["copied_bytes"] = std::move(copied);
    if (host.getInt() > plan.getInteger("host_bytes").value_or(-1)) {
      plan["host_bytes"] = host.getInt();
      plan["host_memory"] = std::move(lines);
    }
  }
  report::addTasks(program, programs, flops, entry);
  auto profiles = exec::profileMemory(program);
  entry["peak"] = report::peakOf(profiles);
  for (auto &[entryPoint, profile] : profiles) {
    if (!forReport)
      break;
    Object overTime = report::overTime(profile);
    overTime["in"] = number;
    overTime["program"] = entryPoint;
    memoryOverTime.push_back(std::move(overTime));
  }
  plan.getArray("programs")->push_back(std::move(entry));
  addVariables(program, number);
  addPorts(program, number);
  return llvm::Error::success();
}

void PlanBuilder::addPorts(ModuleOp program, int64_t number) {
  llvm::StringSet<> seen;
  program.walk([&](exec::BufferOp buffer) {
    auto name = buffer.getInput() ? buffer.getInput() : buffer.getOutput();
    if (!name || !seen.insert(*name).second)
      return;
    auto type = buffer.getType();
    plan.getArray(buffer.getInput() ? "inputs" : "outputs")
        ->push_back(Object{{"name", *name},
                           {"type", typeName(type)},
                           {"shape", numbers(type.getShape())},
                           {"offset", int64_t(buffer.getOffset().value_or(0))},
                           {"in", number}});
  });
}

void PlanBuilder::addCommunication() {
  Array groups, collectives;
  for (auto &axes : communication.groups) {
    Array names;
    for (StringRef axis : axes)
      names.push_back(axis);
    groups.push_back(std::move(names));
  }
  auto add = [&](const codegen::Collective &collective, StringRef program, int64_t times) {
    ModuleOp in = collective.op->getParentOfType<ModuleOp>();
    int64_t number = llvm::find(programs, in) - programs.begin();
    // A message goes out of every rank of the program; of the rest each rank has its share,
    // rounded so that those of all programs add up.
    // The product may exceed 2^63.
    auto share = [&](int64_t ranks) {
      return int64_t(__int128(collective.groupBytes) * ranks / collective.members);
    };
    int64_t ranks = ranksOf(in), before = 0;
    for (ModuleOp other : ArrayRef(programs).take_front(number))
      before += ranksOf(other);
    bool message = isa<exec::SendOp>(collective.op);
    int64_t bytes = message ? collective.groupBytes * ranks : share(before + ranks) - share(before);
    Object row{{"op", collective.getName()},
               {"group", collective.group},
               {"type", typeName(collective.getElementType())},
               {"count", collective.getCount()},
               {"program", program},
               {"in", number},
               {"times", times},
               {"group_bytes", collective.groupBytes},
               {"bytes", bytes},
               {"location", codegen::locationText(collective.op->getLoc())}};
    if (collective.op->hasAttr(exec::startAttr))
      row["started"] = true;
    if (isa<exec::SendOp, exec::RecvOp>(collective.op))
      row["peer"] = *cast<exec::CollectiveOpInterface>(collective.op).getPlace();
    collectives.push_back(std::move(row));
  };
  // Calls name a collective by its row. One in a function that two programs call has a
  // second row behind those.
  for (const codegen::Collective &collective : communication.collectives)
    if (collective.runs.empty())
      add(collective, "", 0);
    else
      add(collective, collective.runs[0].first, collective.runs[0].second);
  for (const codegen::Collective &collective : communication.collectives)
    for (auto [program, times] : ArrayRef(collective.runs).drop_front(!collective.runs.empty()))
      add(collective, program, times);
  plan["groups"] = std::move(groups);
  plan["scratch_bytes"] = numbers(communication.scratchBytes);
  plan["collectives"] = std::move(collectives);
}

int64_t PlanBuilder::ranksOf(ModuleOp program) {
  auto [known, isNew] = ranks.try_emplace(program, 0);
  if (isNew)
    known->second = llvm::count_if(llvm::seq(mesh.size()), [&](int64_t rank) {
      return dist::runsOn(program, mesh, rank);
    });
  return known->second;
}

double PlanBuilder::flopsOf(ModuleOp program, bool again) {
  for (auto op : program.getOps<exec::ProgramOp>())
    if (op.getSymName() == "step")
      return flops.of(op.getBlock(), again) * double(ranksOf(program));
  return 0;
}

llvm::Expected<Plan> PlanBuilder::build() {
  if (llvm::Error error = addModel())
    return error;
  if (llvm::Error error = addMesh())
    return error;
  for (const char *table : {"programs", "variables", "inputs", "outputs"})
    plan[table] = Array();
  double work = 0, again = 0;
  for (auto [number, program] : llvm::enumerate(programs)) {
    if (llvm::Error error = addProgram(program, number))
      return error;
    work += flopsOf(program);
    again += flopsOf(program, /*again=*/true);
  }
  exec::targetOf(programs.front()).getTarget().addToPlan(module, plan);
  addCommunication();
  if (llvm::Expected<std::optional<report::StepTasks>> tasks = report::tasksOf(plan); !tasks)
    return tasks.takeError();
  plan["flops"] = work;
  plan["recomputed_flops"] = again;

  Plan result;
  result.ranks = mesh.size();
  result.arenaBytes = *plan.getInteger("arena_bytes");
  result.deviceBytes = *plan.getInteger("device_bytes");
  result.besideBytes = std::move(besideBytes);
  result.hostBytes = plan.getInteger("host_bytes").value_or(0);
  result.recomputedFlops = again;
  result.memoryOverTime = std::move(memoryOverTime);
  uint64_t hash = llvm::xxh3_64bits(llvm::formatv("{0}", llvm::json::Value(Object(plan))).str());
  plan["hash"] = llvm::formatv("{0:x-16}", hash).str();
  result.json = llvm::formatv("{0:2}", llvm::json::Value(std::move(plan))).str() + "\n";
  return result;
}

llvm::Expected<Plan> meshwright::buildPlan(ModuleOp module, bool forReport) {
  llvm::Expected<Plan> plan = PlanBuilder(module, forReport).build();
  if (!plan || !forReport)
    return plan;
  llvm::Expected<std::string> trace = report::predictTrace(module);
  if (!trace)
    return trace.takeError();
  plan->predictedTrace = std::move(*trace);
  return plan;
}
