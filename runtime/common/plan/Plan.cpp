//===- Plan.cpp - the compiler's plan, parsed -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Plan.h"

#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace meshwright;
using Json = nlohmann::json;

namespace {
/// A JSON object and the path that led to it, for messages.
class Reader {
public:
  Reader(const Json &json, std::string path) : json(json), path(std::move(path)) {
    if (!json.is_object())
      fail("plan: ", this->path, " is not an object: compile the executable again");
  }

  template <typename T> T get(const char *key) const {
    try {
      return at(key).get<T>();
    } catch (const Json::exception &) {
      fail("plan: \"", key, "\" of ", path, " is ", at(key).dump(),
           ", which has the wrong type: compile the executable again");
    }
  }

  bool has(const char *key) const { return json.contains(key); }

  const Json &at(const char *key) const {
    auto found = json.find(key);
    if (found == json.end())
      fail("plan: ", path, " has no \"", key, "\": compile the executable again");
    return *found;
  }

  Reader object(const char *key) const { return Reader(at(key), path + "." + key); }

  /// Calls `visit(reader)` for each object of the array `key`.
  template <typename Visitor> void each(const char *key, Visitor visit) const {
    const Json &array = at(key);
    if (!array.is_array())
      fail("plan: \"", key, "\" of ", path, " is not an array: compile the executable again");
    for (size_t i = 0; i < array.size(); ++i)
      visit(Reader(array[i], text(key, "[", i, "]")));
  }

  ElementType type() const {
    auto name = get<std::string>("type");
    if (auto type = elementTypeNamed(name))
      return *type;
    fail("plan: ", path, " has type \"", name, "\", which this runtime does not know");
  }

private:
  const Json &json;

public:
  const std::string path;
};
} // namespace

static int64_t elements(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

static std::vector<int> parseAxes(const Plan &plan, const std::vector<std::string> &names,
                                  const std::string &path) {
  std::vector<int> axes;
  for (const std::string &name : names) {
    size_t index = 0;
    while (index < plan.mesh.size() && plan.mesh[index].name != name)
      ++index;
    if (index == plan.mesh.size())
      fail("plan: ", path, " names the axis \"", name, "\", which the mesh ", plan.meshText(),
           " does not have");
    axes.push_back(int(index));
  }
  return axes;
}

static void checkPlace(int64_t arena, const std::string &path, int64_t offset, int64_t bytes) {
  if (offset < 0 || offset % MW_ALIGNMENT != 0)
    fail("plan: ", path, " has offset ", offset, ", not a multiple of ", MW_ALIGNMENT);
  if (bytes < 0 || offset + bytes > arena)
    fail("plan: ", path, " ends at byte ", offset + bytes, " of an arena of ", arena);
}

static Initializer parseInit(const Reader &reader) {
  auto kind = reader.get<std::string>("kind");
  if (kind == "normal")
    return {Initializer::Normal, reader.get<float>("std")};
  if (kind == "ones")
    return {Initializer::Constant, 1.0f};
  if (kind == "zeros")
    return {Initializer::Constant, 0.0f};
  if (kind == "constant")
    return {Initializer::Constant, reader.get<float>("value")};
  fail("plan: ", reader.path, " has kind \"", kind, "\", not normal, ones, zeros or constant");
}

static Storage parseStorage(const Reader &reader) {
  Storage storage;
  storage.tensor = reader.get<std::string>("tensor");
  storage.transpose = reader.has("transpose") && reader.get<bool>("transpose");
  if (reader.has("slice")) {
    Reader slice = reader.object("slice");
    storage.slice = StorageSlice{slice.get<int64_t>("dim"), slice.get<int64_t>("begin"),
                                 slice.get<int64_t>("size"), slice.get<int64_t>("full")};
  }
  return storage;
}

static void checkVariable(const Plan &plan, const Variable &variable, const std::string &path) {
  size_t rank = variable.shape.size();
  if (variable.localShape.size() != rank || variable.sharding.size() != rank)
    fail("plan: ", path, " (", variable.name, ") has shape ", shapeText(variable.shape),
         ", local_shape ", shapeText(variable.localShape), " and a sharding of ",
         variable.sharding.size(), " dimensions");
  if (variable.stacked && rank == 0)
    fail("plan: ", path, " (", variable.name, ") is stacked but has no dimension");
  for (size_t d = 0; d < rank; ++d) {
    int64_t parts = plan.axesSize(variable.sharding[d]);
    // More where the index is padded for the sake of other tensors.
    if (variable.localShape[d] < ceilDivide(variable.shape[d], parts))
      fail("plan: ", path, " (", variable.name, ") divides ", shapeText(variable.shape), " into ",
           parts, " parts in dimension ", d, ", but has local_shape ",
           shapeText(variable.localShape));
  }
  if (variable.type == ElementType::F64 || variable.type == ElementType::I32)
    fail("plan: ", path, " (", variable.name, ") has type ", nameOf(variable.type),
         "; variables are f32, bf16 or f16");
  const Program &program = plan.programs[variable.program];
  checkPlace(variable.onHost ? program.hostBytes : program.arenaBytes, path, variable.offset,
             elements(variable.localShape) * bytesOf(variable.type));
  size_t layerRank = rank - variable.stacked;
  const Storage &storage = variable.storage;
  if (storage.transpose && layerRank < 2)
    fail("plan: ", path, " (", variable.name, ") is transposed but has ", layerRank, " dimensions");
  if (storage.slice) {
    const StorageSlice &slice = *storage.slice;
    if (slice.dim < 0 || slice.dim >= int64_t(layerRank) || slice.begin < 0 || slice.size < 0 ||
        slice.begin + slice.size > slice.full)
      fail("plan: ", path, " (", variable.name, ") has an impossible storage slice");
  }
}

/// The program that an entry of a table belongs to.
static size_t programIn(const Plan &plan, const Reader &reader) {
  auto index = reader.get<int64_t>("in");
  if (index < 0 || index >= int64_t(plan.programs.size()))
    fail("plan: ", reader.path, " is in program ", index, " of ", plan.programs.size());
  return size_t(index);
}

static Program parseProgram(const Plan &plan, const Reader &reader) {
  Program program;
  program.name = reader.get<std::string>("name");
  for (const auto &[axis, coordinates] :
       reader.get<std::map<std::string, std::vector<int64_t>>>("at")) {
    int index = parseAxes(plan, {axis}, reader.path).front();
    for (int64_t coordinate : coordinates)
      if (coordinate < 0 || coordinate >= plan.mesh[size_t(index)].size)
        fail("plan: ", reader.path, " is at ", coordinate, " of axis \"", axis,
             "\", which has ", plan.mesh[size_t(index)].size, " coordinates");
    program.at.push_back({index, coordinates});
  }
  program.arenaBytes = reader.get<int64_t>("arena_bytes");
  reader.each("memory", [&](const Reader &line) {
    program.memory.push_back({line.get<std::string>("category"), line.get<int64_t>("bytes")});
  });
  if (reader.has("allowances"))
    reader.each("allowances", [&](const Reader &line) {
      program.allowances.push_back({line.get<std::string>("category"), line.get<int64_t>("bytes")});
    });
  if (reader.has("host_bytes")) {
    program.hostBytes = reader.get<int64_t>("host_bytes");
    reader.each("host_memory", [&](const Reader &line) {
      program.hostMemory.push_back({line.get<std::string>("category"), line.get<int64_t>("bytes")});
    });
  }
  return program;
}

static Variable parseVariable(const Plan &plan, const Reader &reader) {
  Variable variable;
  variable.name = reader.get<std::string>("name");
  auto role = reader.get<std::string>("role");
  if (role == "parameter")
    variable.role = Variable::Parameter;
  else if (role == "master")
    variable.role = Variable::Master;
  else if (role == "momentum")
    variable.role = Variable::Momentum;
  else if (role == "variance")
    variable.role = Variable::Variance;
  else
    fail("plan: ", reader.path, " has role \"", role,
         "\", not parameter, master, momentum or variance");
  variable.type = reader.type();
  variable.shape = reader.get<std::vector<int64_t>>("shape");
  variable.localShape = reader.get<std::vector<int64_t>>("local_shape");
  variable.stacked = reader.has("stacked") && reader.get<bool>("stacked");
  for (const auto &axes : reader.get<std::vector<std::vector<std::string>>>("sharding"))
    variable.sharding.push_back(parseAxes(plan, axes, reader.path));
  variable.offset = reader.get<int64_t>("offset");
  variable.onHost = reader.has("on_host") && reader.get<bool>("on_host");
  variable.program = programIn(plan, reader);
  if (variable.role == Variable::Parameter) {
    variable.init = parseInit(reader.object("init"));
    variable.storage = parseStorage(reader.object("storage"));
  } else {
    variable.of = reader.get<std::string>("of");
  }
  return variable;
}

static std::map<std::string, Port> parsePorts(const Plan &plan, const Reader &reader,
                                              const char *key) {
  std::map<std::string, Port> ports;
  reader.each(key, [&](const Reader &entry) {
    Port port;
    port.name = entry.get<std::string>("name");
    port.type = entry.type();
    port.shape = entry.get<std::vector<int64_t>>("shape");
    port.offset = entry.get<int64_t>("offset");
    size_t program = programIn(plan, entry);
    checkPlace(plan.programs[program].arenaBytes, entry.path, port.offset,
               elements(port.shape) * bytesOf(port.type));
    if (program == plan.program)
      ports[port.name] = port;
  });
  return ports;
}

/// An optimizer state is stored beside its parameter, under its name and a suffix; a
/// master in its parameter's place.
static void placeStates(Plan &plan) {
  for (Variable &variable : plan.allVariables) {
    if (variable.role == Variable::Parameter)
      continue;
    Variable &parameter =
        const_cast<Variable &>(plan.parameter(variable.of, variable.program));
    variable.storage = parameter.storage;
    if (variable.role == Variable::Master) {
      variable.init = parameter.init;
      parameter.hasMaster = true;
      if (variable.type != ElementType::F32)
        fail("plan: the master ", variable.name, " is ", nameOf(variable.type), ", not f32");
    } else {
      variable.storage.tensor += variable.role == Variable::Momentum ? ".momentum" : ".variance";
    }
    if (variable.shape != parameter.shape || variable.stacked != parameter.stacked)
      fail("plan: the optimizer state ", variable.name, " has shape ", shapeText(variable.shape),
           " but its parameter ", parameter.name, " has ", shapeText(parameter.shape));
  }
}

/// The runtime fills exactly the inputs it knows, and each must have its size.
static void checkInputs(const Plan &plan) {
  int64_t sequences = plan.batch / plan.axesSize(plan.dataAxes);
  std::map<std::string, std::pair<ElementType, int64_t>> known = {
      {"tokens", {ElementType::I32, sequences * plan.sequence}},
      {"targets", {ElementType::I32, sequences * plan.sequence}},
      {"sequence_ids", {ElementType::I32, sequences}},
      {"key", {ElementType::I32, 2}}};
  for (const char *scalar : {"lr", "beta1", "beta2", "eps", "weight_decay", "grad_clip",
                             "bias_correction1", "bias_correction2", "loss_scale"})
    known[scalar] = {ElementType::F32, 1};
  for (const auto &[name, port] : plan.inputs) {
    auto entry = known.find(name);
    if (entry == known.end())
      fail("plan: \"inputs\" has \"", name, "\", which this runtime does not know");
    auto [type, count] = entry->second;
    if (port.type != type || elements(port.shape) != count)
      fail("plan: input \"", name, "\" is ", shapeText(port.shape), " of ", nameOf(port.type),
           ", but ", count, " elements of ", nameOf(type), " are what the runtime fills in");
  }
}

Plan Plan::parse(std::string_view json, int64_t rank) {
  Json document = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    fail("plan: the executable's plan is not JSON: compile the executable again");
  Reader reader(document, "the plan");
  if (auto version = reader.get<int64_t>("version"); version != 1)
    fail("plan: version ", version,
         ", but this runtime reads version 1: compile the executable "
         "again");

  Plan plan;
  plan.hash = reader.get<std::string>("hash");
  plan.model = reader.get<std::string>("model");
  plan.config = reader.get<std::string>("config");
  plan.target = reader.get<std::string>("target");
  plan.precision = reader.get<std::string>("precision");
  plan.optimizer = reader.get<std::string>("optimizer");
  reader.each("mesh", [&](const Reader &axis) {
    plan.mesh.push_back({axis.get<std::string>("axis"), axis.get<int64_t>("size")});
    if (plan.mesh.back().size < 1)
      fail("plan: mesh axis ", plan.mesh.back().name, " has size ", plan.mesh.back().size);
  });
  plan.batch = reader.get<int64_t>("batch");
  plan.sequence = reader.get<int64_t>("sequence");
  plan.microbatches = reader.get<int64_t>("microbatches");
  plan.vocabulary = reader.get<int64_t>("vocabulary");
  plan.maxPositions = reader.get<int64_t>("max_positions");
  plan.dataAxes =
      parseAxes(plan, reader.get<std::vector<std::string>>("data_axes"), "\"data_axes\"");
  reader.each("programs",
              [&](const Reader &entry) { plan.programs.push_back(parseProgram(plan, entry)); });
  for (int64_t other = 0; other < plan.ranks(); ++other)
    (void)plan.programOf(other); // Every rank has one.
  plan.program = plan.programOf(rank);
  plan.arenaBytes = plan.programs[plan.program].arenaBytes;
  plan.memory = plan.programs[plan.program].memory;
  plan.allowances = plan.programs[plan.program].allowances;
  plan.hostBytes = plan.programs[plan.program].hostBytes;
  plan.hostMemory = plan.programs[plan.program].hostMemory;
  reader.each("variables", [&](const Reader &entry) {
    plan.allVariables.push_back(parseVariable(plan, entry));
  });
  placeStates(plan);
  for (size_t i = 0; i < plan.allVariables.size(); ++i) {
    checkVariable(plan, plan.allVariables[i], text("variables[", i, "]"));
    if (plan.allVariables[i].program == plan.program)
      plan.variables.push_back(plan.allVariables[i]);
  }
  plan.inputs = parsePorts(plan, reader, "inputs");
  reader.each("inputs",
              [&](const Reader &entry) { plan.inputNames.insert(entry.get<std::string>("name")); });
  plan.outputs = parsePorts(plan, reader, "outputs");
  for (const auto &names : reader.get<std::vector<std::vector<std::string>>>("groups"))
    plan.groups.push_back(parseAxes(plan, names, "\"groups\""));
  plan.scratchBytes = reader.get<std::vector<int64_t>>("scratch_bytes");
  if (plan.scratchBytes.size() != plan.groups.size())
    fail("plan: \"scratch_bytes\" has ", plan.scratchBytes.size(), " entries for ",
         plan.groups.size(), " groups");
  reader.each("collectives", [&](const Reader &entry) {
    CollectiveEntry collective;
    collective.op = entry.get<std::string>("op");
    collective.program = entry.get<int64_t>("in");
    collective.group = entry.get<int64_t>("group");
    collective.type = entry.type();
    collective.count = entry.get<int64_t>("count");
    collective.location = entry.get<std::string>("location");
    if (collective.op == "send" || collective.op == "recv")
      collective.peer = entry.get<int64_t>("peer");
    collective.started = entry.has("started") && entry.get<bool>("started");
    if (collective.group < 0 || collective.group >= int64_t(plan.groups.size()))
      fail("plan: ", entry.path, " uses group ", collective.group, " of ", plan.groups.size());
    plan.collectives.push_back(std::move(collective));
  });
  // Only of executables for GPUs.
  if (reader.has("attentions"))
    reader.each("attentions", [&](const Reader &entry) {
      AttentionEntry attention;
      MwAttention &sizes = attention.call.sizes;
      attention.byCudnn = entry.get<std::string>("by") == "cudnn";
      attention.call.backward = entry.get<std::string>("op") == "attention_grad";
      attention.location = entry.get<std::string>("location");
      sizes.elementType = int32_t(entry.type());
      sizes.scale = entry.get<float>("scale");
      sizes.causal = entry.get<bool>("causal");
      for (auto [size, key] : {std::pair(&sizes.batch, "batch"), std::pair(&sizes.queries, "queries"),
                               std::pair(&sizes.keys, "keys"), std::pair(&sizes.heads, "heads"),
                               std::pair(&sizes.kvHeads, "kv_heads"),
                               std::pair(&sizes.headDim, "head_dim"),
                               std::pair(&sizes.window, "window")})
        *size = entry.get<int64_t>(key);
      if (attention.byCudnn) {
        attention.fallback = entry.get<bool>("fallback");
        attention.call.deterministic = entry.get<bool>("deterministic");
        attention.workspaceBytes = entry.get<int64_t>("workspace_bytes");
      }
      plan.attentions.push_back(std::move(attention));
    });
  plan.flops = reader.get<double>("flops");
  for (const char *name : {"loss", "grad_norm"})
    if (!plan.outputs.count(name) || plan.outputs[name].type != ElementType::F32)
      fail("plan: \"outputs\" has no f32 \"", name, "\" of program ",
           plan.programs[plan.program].name, ": compile the executable again");
  if (plan.batch < 1 || plan.sequence < 1 || plan.microbatches < 1 || plan.vocabulary < 1 ||
      plan.batch % (plan.axesSize(plan.dataAxes) * plan.microbatches) != 0)
    fail("plan: a batch of ", plan.batch, " sequences does not divide into ",
         plan.axesSize(plan.dataAxes), " data ranks of ", plan.microbatches, " microbatches");
  checkInputs(plan);
  return plan;
}

int64_t Plan::ranks() const {
  int64_t product = 1;
  for (const MeshAxis &axis : mesh)
    product *= axis.size;
  return product;
}

std::string Plan::meshText() const {
  // As the user wrote it: the parts of an axis (tensor.0, tensor.1) are one.
  std::string result;
  for (size_t i = 0; i < mesh.size();) {
    std::string name = mesh[i].name.substr(0, mesh[i].name.find('.'));
    int64_t size = 1;
    for (; i < mesh.size() && mesh[i].name.substr(0, mesh[i].name.find('.')) == name; ++i)
      size *= mesh[i].size;
    result += (result.empty() ? "" : ",") + name + "=" + std::to_string(size);
  }
  return result.empty() ? "one rank" : result;
}

std::vector<int64_t> Plan::coordinates(int64_t rank) const {
  std::vector<int64_t> result(mesh.size());
  for (size_t i = mesh.size(); i-- > 0; rank /= mesh[i].size)
    result[i] = rank % mesh[i].size;
  return result;
}

int64_t Plan::axesSize(const std::vector<int> &axes) const {
  int64_t product = 1;
  for (int axis : axes)
    product *= mesh[size_t(axis)].size;
  return product;
}

int64_t Plan::axesIndex(const std::vector<int> &axes,
                        const std::vector<int64_t> &coordinates) const {
  int64_t index = 0;
  for (int axis : axes)
    index = index * mesh[size_t(axis)].size + coordinates[size_t(axis)];
  return index;
}

std::vector<int> Plan::groupMembers(const std::vector<int> &axes, int64_t rank) const {
  std::vector<int64_t> mine = coordinates(rank);
  std::vector<int> members(size_t(axesSize(axes)));
  for (int64_t other = 0; other < ranks(); ++other) {
    std::vector<int64_t> theirs = coordinates(other);
    std::vector<int64_t> onGroup = mine;
    for (int axis : axes)
      onGroup[size_t(axis)] = theirs[size_t(axis)];
    if (onGroup == theirs)
      members[size_t(axesIndex(axes, theirs))] = int(other);
  }
  return members;
}

/// `range` with the tensor of `shape` at `offset` in it.
static ArenaRange extended(ArenaRange range, ElementType type, const std::vector<int64_t> &shape,
                           int64_t offset) {
  int64_t end = offset + bytesOf(type) * elements(shape);
  if (range.begin == range.end)
    return {offset, end};
  return {std::min(range.begin, offset), std::max(range.end, end)};
}

ArenaRange Plan::variableRange() const {
  ArenaRange range;
  for (const Variable &variable : variables)
    if (!variable.onHost)
      range = extended(range, variable.type, variable.localShape, variable.offset);
  return range;
}

ArenaRange Plan::rangeOf(const std::map<std::string, Port> &ports) {
  ArenaRange range;
  for (const auto &[name, port] : ports)
    range = extended(range, port.type, port.shape, port.offset);
  return range;
}

std::string Plan::axesText(const std::vector<int> &axes) const {
  std::string result;
  for (int axis : axes)
    result += (result.empty() ? "" : ",") + mesh[size_t(axis)].name;
  return result;
}

std::string Plan::describeCollective(int number) const {
  const CollectiveEntry &entry = collectives[size_t(number)];
  std::string axes = axesText(groups[size_t(entry.group)]);
  return text(entry.op, " (collective ", number, ", group [", axes, "], ", entry.count, " x ",
              nameOf(entry.type), ", at ", entry.location, ")");
}

size_t Plan::programOf(int64_t rank) const {
  std::vector<int64_t> mine = coordinates(rank);
  size_t found = programs.size();
  for (size_t i = 0; i < programs.size(); ++i) {
    bool runs = std::all_of(programs[i].at.begin(), programs[i].at.end(), [&](const auto &place) {
      const auto &[axis, places] = place;
      return std::count(places.begin(), places.end(), mine[size_t(axis)]) > 0;
    });
    if (runs && found < programs.size())
      fail("plan: rank ", rank, " is to run both program ", programs[found].name, " and program ",
           programs[i].name, ": compile the executable again");
    if (runs)
      found = i;
  }
  if (found == programs.size())
    fail("plan: no program is for rank ", rank, ": compile the executable again");
  return found;
}

const Variable &Plan::parameter(const std::string &name, size_t program) const {
  for (const Variable &variable : allVariables)
    if (variable.role == Variable::Parameter && variable.name == name &&
        variable.program == program)
      return variable;
  fail("plan: there is no parameter \"", name, "\", which an optimizer state belongs to");
}
