//===- Plan.cpp - the plan of a module ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Communication.h"
#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
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

static std::string locationText(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn();
  else
    os << LocationAttr(location);
  return text;
}

namespace {
class PlanBuilder {
public:
  explicit PlanBuilder(ModuleOp module) : module(module) {}
  llvm::Expected<Plan> build();

private:
  llvm::Error addModel();
  llvm::Error addMesh();
  llvm::Error addVariables();
  void addStorage(train::VariableOp op, ArrayRef<int64_t> layerShape, Object &out);
  llvm::Error addMemory();
  void addPorts();
  void addCommunication();
  /// Floating-point operations of one rank in `block`; with `again` only of what
  /// has run before.
  double flops(Block &block, bool again = false);
  /// The buffer of each variable, in any program.
  exec::BufferOp bufferOf(StringRef variable);

  ModuleOp module;
  dist::Mesh mesh;
  Object plan;
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
  plan["target"] = "cpu";
  auto precision = module->getAttrOfType<StringAttr>("train.precision");
  plan["precision"] = precision ? precision.getValue() : "f32";
  auto gradients = module->getAttrOfType<TypeAttr>("train.grad_type");
  plan["grad_dtype"] = gradients ? typeName(gradients.getValue()) : "f32";
  bool moments = llvm::any_of(module.getOps<train::VariableOp>(), [](train::VariableOp op) {
    return op.getRole() == StringRef("momentum");
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

exec::BufferOp PlanBuilder::bufferOf(StringRef variable) {
  exec::BufferOp found;
  module.walk([&](exec::BufferOp buffer) {
    if (buffer.getVariable() == variable)
      found = buffer;
  });
  return found;
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

llvm::Error PlanBuilder::addVariables() {
  Array variables;
  for (auto op : module.getOps<train::VariableOp>()) {
    exec::BufferOp buffer = bufferOf(op.getSymName());
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
                 {"offset", int64_t(buffer.getOffset().value_or(0))}};
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
  plan["variables"] = std::move(variables);
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addMemory() {
  auto arena = module->getAttrOfType<IntegerAttr>(exec::arenaBytesAttr);
  if (!arena)
    return createStringError("the module's memory is not planned: run exec-plan-memory");
  plan["arena_bytes"] = arena.getInt();
  Array memory;
  if (auto lines = module->getAttrOfType<DictionaryAttr>(exec::memoryAttr))
    for (NamedAttribute line : lines)
      memory.push_back(Object{{"category", line.getName().getValue()},
                              {"bytes", cast<IntegerAttr>(line.getValue()).getInt()}});
  plan["memory"] = std::move(memory);
  return llvm::Error::success();
}

void PlanBuilder::addPorts() {
  Array inputs, outputs;
  llvm::StringSet<> seen;
  module.walk([&](exec::BufferOp buffer) {
    auto name = buffer.getInput() ? buffer.getInput() : buffer.getOutput();
    if (!name || !seen.insert(*name).second)
      return;
    auto type = buffer.getType();
    (buffer.getInput() ? inputs : outputs)
        .push_back(Object{{"name", *name},
                          {"type", typeName(type)},
                          {"shape", numbers(type.getShape())},
                          {"offset", int64_t(buffer.getOffset().value_or(0))}});
  });
  plan["inputs"] = std::move(inputs);
  plan["outputs"] = std::move(outputs);
}

void PlanBuilder::addCommunication() {
  codegen::Communication communication(module);
  Array groups, collectives;
  for (auto &axes : communication.groups) {
    Array names;
    for (StringRef axis : axes)
      names.push_back(axis);
    groups.push_back(std::move(names));
  }
  for (const codegen::Collective &collective : communication.collectives)
    collectives.push_back(Object{{"op", collective.getName()},
                                 {"group", collective.group},
                                 {"type", typeName(collective.getElementType())},
                                 {"count", collective.getCount()},
                                 {"program", collective.program},
                                 {"times", collective.times},
                                 {"group_bytes", collective.groupBytes},
                                 {"location", locationText(collective.op->getLoc())}});
  plan["groups"] = std::move(groups);
  plan["scratch_bytes"] = numbers(communication.scratchBytes);
  plan["collectives"] = std::move(collectives);
}

/// Two products over the visible part of queries x keys.
static double attentionFlops(const MwAttention &shape) {
  double visible = 0;
  for (int64_t query = 0; query < shape.queries; ++query) {
    int64_t last = shape.causal ? std::min(query + 1, shape.keys) : shape.keys;
    int64_t first = shape.window ? std::max<int64_t>(0, query - shape.window + 1) : 0;
    visible += std::max<int64_t>(0, last - first);
  }
  return 4.0 * double(shape.batch * shape.heads * shape.headDim) * visible;
}

double PlanBuilder::flops(Block &block, bool again) {
  double sum = 0;
  for (Operation &op : block) {
    bool marked = op.hasAttr(dist::recomputedAttr);
    if (again && !marked && !isa<exec::LoopOp>(op))
      continue;
    sum += llvm::TypeSwitch<Operation *, double>(&op)
               .Case<exec::LoopOp>(
                   [&](auto loop) { return double(loop.getCount()) * flops(loop.getBlock(), again && !marked); })
               .Case<exec::MatmulOp>([](auto op) {
                 return 2.0 * double(op.getM()) * double(op.getN()) * double(op.getK()) *
                        double(op.getBatch());
               })
               .Case<exec::AttentionOp>([](auto op) { return attentionFlops(op.getAttention()); })
               // The scores again, and two products for each of the two.
               .Case<exec::AttentionGradOp>(
                   [](auto op) { return 2.5 * attentionFlops(op.getAttention()); })
               .Case<exec::LaunchOp>([](auto op) {
                 double elements = 0;
                 for (Value out : op.getOutputs())
                   elements += double(cast<MemRefType>(out.getType()).getNumElements());
                 return elements;
               })
               .Default(0.0);
  }
  return sum;
}

llvm::Expected<Plan> PlanBuilder::build() {
  if (llvm::Error error = addModel())
    return error;
  if (llvm::Error error = addMesh())
    return error;
  if (llvm::Error error = addVariables())
    return error;
  if (llvm::Error error = addMemory())
    return error;
  addPorts();
  addCommunication();
  double work = 0, again = 0;
  for (auto program : module.getOps<exec::ProgramOp>())
    if (program.getSymName() == "step")
    {
      work = flops(program.getBody().front());
      again = flops(program.getBody().front(), /*again=*/true);
    }
  plan["flops"] = work * double(mesh.size());
  plan["recomputed_flops"] = again * double(mesh.size());

  Plan result;
  result.ranks = mesh.size();
  result.arenaBytes = *plan.getInteger("arena_bytes");
  result.recomputedFlops = again * double(mesh.size());
  uint64_t hash = llvm::xxh3_64bits(llvm::formatv("{0}", llvm::json::Value(Object(plan))).str());
  plan["hash"] = llvm::formatv("{0:x-16}", hash).str();
  result.json = llvm::formatv("{0:2}", llvm::json::Value(std::move(plan))).str() + "\n";
  return result;
}

llvm::Expected<Plan> meshwright::buildPlan(ModuleOp module) { return PlanBuilder(module).build(); }
