//===- Plan.cpp - the compiler's plan, parsed -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Plan.h"

#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/Averages.h"
#include "meshwright/runtime/ExpertPlacement.h"
#include "meshwright/runtime/Staging.h"
#include "meshwright/runtime/StorageName.h"
#include "meshwright/runtime/StorageRows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;

//===----------------------------------------------------------------------===//
// The schema's structs from JSON; `path` leads to `json`, for messages.
//===----------------------------------------------------------------------===//

template <typename T> static void read(const Json &json, T &value, const std::string &path);
template <typename T>
static void read(const Json &json, std::vector<T> &list, const std::string &path);
template <typename T>
static void read(const Json &json, std::map<std::string, T> &table, const std::string &path);

template <typename T>
static void read(const Json &json, std::optional<T> &value, const std::string &path) {
  read(json, value.emplace(), path);
}

static void expect(bool fine, const Json &json, const std::string &path) {
  if (!fine)
    fail("plan: ", path, " is ", json.dump(),
         ", which has the wrong type: compile the executable again");
}

template <typename T>
static void read(const Json &json, std::vector<T> &list, const std::string &path) {
  expect(json.is_array(), json, path);
  for (const Json &entry : json) {
    T value{};
    read(entry, value, text(path, "[", list.size(), "]"));
    list.push_back(std::move(value));
  }
}

template <typename T>
static void read(const Json &json, std::map<std::string, T> &table, const std::string &path) {
  expect(json.is_object(), json, path);
  for (const auto &[key, value] : json.items())
    read(value, table[key], path + "." + key);
}

template <typename T> static void read(const Json &json, T &value, const std::string &path) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    bool number = !std::is_same_v<T, bool> && std::is_arithmetic_v<T>;
    expect(number ? json.is_number() : json.type() == Json(T()).type(), json, path);
    value = json.get<T>();
  } else {
    expect(json.is_object(), json, path.empty() ? "the plan" : path);
    T::fields(value, [&](const char *key, auto &field) {
      auto found = json.find(key);
      if (found != json.end())
        read(*found, field, path.empty() ? key : path + "." + key);
      else if (!plan::isOptional<std::decay_t<decltype(field)>>)
        fail("plan: ", path.empty() ? "the plan" : path, " has no \"", key,
             "\": compile the executable again");
    });
  }
}

/// What entries of some kinds must say.
template <typename T>
static const T &required(const std::optional<T> &value, const char *key, const std::string &path) {
  if (!value)
    fail("plan: ", path, " has no \"", key, "\": compile the executable again");
  return *value;
}

static ElementType typeOf(const std::string &name, const std::string &path) {
  if (auto type = elementTypeNamed(name))
    return *type;
  fail("plan: ", path, " has type \"", name, "\", which this runtime does not know");
}

//===----------------------------------------------------------------------===//
// What follows from it for a rank
//===----------------------------------------------------------------------===//

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

static void checkRange(int64_t arena, const std::string &path, int64_t offset, int64_t bytes) {
  if (offset < 0 || offset % MW_ALIGNMENT != 0)
    fail("plan: ", path, " has offset ", offset, ", not a multiple of ", MW_ALIGNMENT);
  if (bytes < 0 || offset + bytes > arena)
    fail("plan: ", path, " ends at byte ", offset + bytes, " of an arena of ", arena);
}

static Initializer initializerOf(const plan::Initializer &init, const std::string &path) {
  if (init.kind == "normal")
    return {Initializer::Normal, float(required(init.deviation, "std", path))};
  if (init.kind == "uniform")
    return {Initializer::Uniform, float(required(init.bound, "bound", path))};
  if (init.kind == "ones")
    return {Initializer::Constant, 1.0f};
  if (init.kind == "zeros")
    return {Initializer::Constant, 0.0f};
  if (init.kind == "constant")
    return {Initializer::Constant, float(required(init.value, "value", path))};
  if (init.kind == "row_norms")
    return {Initializer::RowNorms, 1.0f};
  fail("plan: ", path, " has kind \"", init.kind, "\", not normal, uniform, ones, zeros, constant or row_norms");
}

/// That each row of a slice is one of the file's.
static void checkRuns(const StorageSlice &slice, const std::string &path, const std::string &name) {
  if (!slice.period && !slice.runs)
    return;
  bool possible = slice.period && slice.runs && *slice.period > 0 && !slice.runs->empty() &&
                  slice.runs->size() % 3 == 0;
  for (size_t i = 0; possible && i < slice.runs->size(); i += 3)
    possible = (*slice.runs)[i] >= 0 && (*slice.runs)[i + 1] > 0 && (*slice.runs)[i + 2] > 0;
  auto inside = [&](const StoredRows &rows) {
    possible = possible && rows.fileRow + (rows.count - 1) * rows.step < slice.full;
  };
  if (possible)
    forEachStoredRows(slice.begin, *slice.period, *slice.runs, 0, slice.size, inside);
  if (!possible)
    fail("plan: ", path, " (", name, ") has impossible runs of rows");
}

static void checkVariable(const Plan &plan, const Variable &variable, const std::string &path) {
  size_t rank = variable.shape.size();
  if (variable.localShape.size() != rank || variable.sharding.size() != rank)
    fail("plan: ", path, " (", variable.name, ") has shape ", shapeText(variable.shape),
         ", local_shape ", shapeText(variable.localShape), " and a sharding of ",
         variable.sharding.size(), " dimensions");
  if (variable.numbered > rank)
    fail("plan: ", path, " (", variable.name, ") has ", rank, " dimensions, not the ",
         variable.numbered, " of layers, and experts or heads, that its storage name counts along");
  for (size_t d = 0; d < rank; ++d) {
    int64_t parts = plan.axesSize(variable.sharding[d]);
    // More where the index is padded for the sake of other tensors.
    if (variable.localShape[d] < ceilDivide(variable.shape[d], parts))
      fail("plan: ", path, " (", variable.name, ") divides ", shapeText(variable.shape), " into ",
           parts, " parts in dimension ", d, ", but has local_shape ",
           shapeText(variable.localShape));
  }
  if (variable.type == ElementType::F64 || variable.type == ElementType::I32 ||
      variable.type == ElementType::F8E4M3 || variable.type == ElementType::F8E5M2 ||
      (variable.type == ElementType::I16 && variable.role != Variable::Master) ||
      (variable.type == ElementType::I8 && variable.role != Variable::State && variable.role != Variable::Parameter))
    fail("plan: ", path, " (", variable.name, ") has type ", nameOf(variable.type),
         "; variables are f32, bf16 or f16, halves of masters i16, optimizer states and frozen weights of 8 bits i8");
  if (variable.isQuantized()) {
    if (rank != variable.numbered + 2)
      fail("plan: ", path, " (", variable.name, ") has codes of 8 bits but is no matrix: its shape is ",
           shapeText(variable.shape));
    (void)plan.scaleOf(variable); // An Error if there is none.
  }
  const Program &program = plan.programs[variable.program];
  checkRange(program.spaces[variable.space].bytes, path, variable.offset,
             elementsIn(variable.localShape) * bytesOf(variable.type));
  size_t layerRank = rank - variable.numbered;
  const Storage &storage = variable.storage;
  if (storage.transpose && layerRank < 2)
    fail("plan: ", path, " (", variable.name, ") is transposed but has ", layerRank, " dimensions");
  if (storage.slice) {
    const StorageSlice &slice = *storage.slice;
    if (slice.dim < 0 || slice.dim >= int64_t(layerRank) || slice.begin < 0 || slice.size < 0 ||
        slice.begin + slice.size > slice.full)
      fail("plan: ", path, " (", variable.name, ") has an impossible storage slice");
    checkRuns(slice, path, variable.name);
  }
}

/// The program that an entry of a table belongs to.
static size_t programAt(const Plan &plan, int64_t index, const std::string &path) {
  if (index < 0 || index >= int64_t(plan.programs.size()))
    fail("plan: ", path, " is in program ", index, " of ", plan.programs.size());
  return size_t(index);
}

static AttentionShare attentionShareOf(const Plan &plan, const plan::AttentionShare &entry,
                                       const std::string &path) {
  AttentionShare share{entry, parseAxes(plan, entry.axes, path)};
  auto check = [&](int64_t number, int64_t least) {
    // So no product of two of them overflows.
    if (number < least || number > std::numeric_limits<int32_t>::max())
      fail("plan: ", path, " has a share of attention with the number ", number,
           ", which must be from ", least, " to 2147483647");
  };
  auto checkFirst = [&](const std::vector<int64_t> &first, const char *what) {
    if (int64_t(first.size()) != plan.axesSize(share.group))
      fail("plan: ", path, " divides attention among ", plan.axesSize(share.group),
           " ranks, but has the first ", what, " of ", first.size());
    for (int64_t position : first)
      check(position, 0);
  };
  checkFirst(share.firstQueries, "query");
  if (share.firstKeys)
    checkFirst(*share.firstKeys, "key");
  for (int64_t number : {share.queries, share.keys, share.window, share.chunk.value_or(0)})
    check(number, 0);
  check(share.queryStride, 1);
  check(share.keyStride, 1);
  return share;
}

static Program programOf(const Plan &plan, const plan::Program &entry, const std::string &path) {
  Program program;
  program.name = entry.name;
  for (const auto &[axis, coordinates] : entry.at) {
    int index = parseAxes(plan, {axis}, path).front();
    for (int64_t coordinate : coordinates)
      if (coordinate < 0 || coordinate >= plan.mesh[size_t(index)].size)
        fail("plan: ", path, " is at ", coordinate, " of axis \"", axis, "\", which has ",
             plan.mesh[size_t(index)].size, " coordinates");
    program.at.push_back({index, coordinates});
  }
  program.spaces[MemorySpace::Device] = {entry.arenaBytes, entry.memory};
  for (MemorySpace space : offloadSpaces) {
    const plan::Offloaded &offloaded = entry.offloaded[space];
    program.spaces[space] = {offloaded.bytes.value_or(0),
                             offloaded.memory.value_or(std::vector<MemoryLine>())};
  }
  BySpace<int64_t> arenas = {};
  for (MemorySpace space : memorySpaces)
    arenas[space] = program.spaces[space].bytes;
  if (int64_t staging = stagingBytes(arenas), host = arenas[MemorySpace::Host];
      staging > 0 && (host < staging || host % stagingAlignment))
    fail("plan: ", path, " has ", host, " bytes on the host, not whole pages that end with ", staging, " for copies");
  for (const plan::Allowance &line : entry.allowances)
    program.allowances.push_back({line.category, line.bytes});
  for (const plan::AttentionShare &share :
       entry.attentionShares.value_or(std::vector<plan::AttentionShare>()))
    program.attentionShares.push_back(attentionShareOf(plan, share, path));
  return program;
}

static Variable variableOf(const Plan &plan, const plan::Variable &entry, const std::string &path) {
  Variable variable;
  variable.name = entry.name;
  if (entry.role == "parameter")
    variable.role = Variable::Parameter;
  else if (entry.role == "master")
    variable.role = Variable::Master;
  else if (entry.role == "tokens")
    variable.role = Variable::Tokens;
  else if (entry.role == "scale")
    variable.role = Variable::Scale;
  else if (std::count(plan.optimizerStates.begin(), plan.optimizerStates.end(), entry.role)) {
    variable.role = Variable::State;
    variable.state = entry.role;
  } else
    fail("plan: ", path, " has role \"", entry.role,
         "\", not parameter, master, tokens, scale or one of \"optimizer_states\"");
  variable.type = typeOf(entry.type, path);
  variable.shape = entry.shape;
  variable.localShape = entry.localShape;
  variable.stacked = entry.stacked;
  for (const auto &axes : entry.sharding)
    variable.sharding.push_back(parseAxes(plan, axes, path));
  variable.offset = entry.offset;
  variable.space = entry.space;
  variable.program = programAt(plan, entry.program, path);
  variable.isAdapter = entry.adapter.value_or(false);
  variable.isOfModel = variable.isAdapter && entry.storage && entry.storage->tensor.find(".lora_") == std::string::npos;
  // States of compressed gradients have shapes, initial values and places in files of their own.
  variable.isOfOwnShape = variable.role == Variable::State && entry.storage;
  if (variable.role == Variable::Parameter || variable.isOfOwnShape) {
    variable.init = initializerOf(required(entry.init, "init", path), path + ".init");
    const plan::Storage &storage = required(entry.storage, "storage", path);
    variable.storage = {storage.tensor, storage.transpose.value_or(false), storage.slice,
                        storage.mayLack.value_or(false)};
    if (variable.storage.isOptional &&
        (variable.init.kind != Initializer::Constant || variable.init.value != 0))
      fail("plan: ", path, " (", variable.name, ") may be missing in files, but does not begin with zeros");
    variable.numbered = size_t(variable.stacked) + numberMark(storage.tensor).has_value();
  }
  if (variable.role != Variable::Parameter) {
    variable.of = required(entry.of, "of", path);
  }
  return variable;
}

static std::map<std::string, Port> portsOf(const Plan &plan, const std::vector<plan::Port> &entries,
                                           const char *key) {
  std::map<std::string, Port> ports;
  for (size_t i = 0; i < entries.size(); ++i) {
    const plan::Port &entry = entries[i];
    std::string path = text(key, "[", i, "]");
    Port port{entry.name, typeOf(entry.type, path), entry.shape, entry.offset};
    size_t program = programAt(plan, entry.program, path);
    checkRange(plan.programs[program].arena().bytes, path, port.offset,
               elementsIn(port.shape) * bytesOf(port.type));
    if (program == plan.program)
      ports[port.name] = port;
  }
  return ports;
}

static CollectiveEntry collectiveOf(const Plan &plan, const plan::Collective &entry,
                                    const std::string &path) {
  CollectiveEntry collective;
  collective.op = entry.op;
  collective.program = entry.program;
  collective.group = entry.group;
  collective.type = typeOf(entry.type, path);
  collective.count = entry.count;
  collective.location = entry.location;
  if (collective.op == "send" || collective.op == "recv")
    collective.peer = required(entry.peer, "peer", path);
  collective.started = entry.started.value_or(false);
  collective.inRounds = entry.rounds.has_value();
  collective.row = entry.row.value_or(0);
  if (collective.group < 0 || collective.group >= int64_t(plan.groups.size()))
    fail("plan: ", path, " uses group ", collective.group, " of ", plan.groups.size());
  return collective;
}

static AttentionEntry attentionOf(const plan::Attention &entry, const std::string &path) {
  AttentionEntry attention;
  MwAttention &sizes = attention.call.sizes;
  attention.byCudnn = entry.by == "cudnn";
  attention.call.backward = entry.op == "attention_grad";
  attention.location = entry.location;
  sizes.elementType = int32_t(typeOf(entry.type, path));
  sizes.scale = float(entry.scale);
  sizes.causal = entry.causal;
  sizes.batch = entry.batch;
  sizes.queries = entry.queries;
  sizes.keys = entry.keys;
  sizes.heads = entry.heads;
  sizes.kvHeads = entry.kvHeads;
  sizes.headDim = entry.headDim;
  sizes.valueDim = entry.valueDim.value_or(entry.headDim);
  attention.call.slopes = entry.slopes.value_or(false);
  attention.call.sinks = entry.sinks.value_or(false);
  sizes.window = entry.window;
  sizes.chunk = entry.chunk.value_or(0);
  sizes.cap = float(entry.cap.value_or(0));
  if (attention.byCudnn) {
    attention.fallback = required(entry.fallback, "fallback", path);
    attention.call.deterministic = required(entry.deterministic, "deterministic", path);
    attention.workspaceBytes = required(entry.workspaceBytes, "workspace_bytes", path);
  }
  return attention;
}

/// The dimensions over which states are means, by name: those along which any parameter has more elements than its
/// state, counted from the last.
using MeanDims = std::map<std::string, std::set<size_t>>;

static MeanDims meanDims(const Plan &plan) {
  MeanDims found;
  for (const Variable &state : plan.allVariables) {
    if (state.role != Variable::State)
      continue;
    const std::vector<int64_t> &whole = plan.parameter(state.of, state.program).shape;
    for (size_t d = 0; d < whole.size() && whole.size() == state.shape.size(); ++d)
      if (state.shape[d] < whole[d])
        found[state.state].insert(whole.size() - d);
  }
  return found;
}

/// Gives a state that is a mean over dimensions a tensor of its own, where the parameter has rows of a
/// tensor along one of these: others have means of that name too. The first of the rows tells them apart. The
/// parameter may have one row, of which a mean looks like any state.
static void separate(Variable &state, const Variable &parameter, const MeanDims &means) {
  const auto &slice = parameter.storage.slice;
  auto dims = means.find(state.state);
  if (!slice || dims == means.end())
    return;
  // The dimension counts along the file's; transposing swaps the last two.
  size_t rank = parameter.shape.size() - parameter.numbered, dim = size_t(slice->dim);
  if (parameter.storage.transpose && dim + 2 >= rank)
    dim = 2 * rank - 3 - dim;
  if (dim >= rank || !dims->second.count(rank - dim))
    return;
  int64_t first = slice->begin + (slice->period ? slice->runs->front() : 0);
  state.storage.tensor += "." + std::to_string(first);
  // Those of experts whose rows are in one tensor would have one name.
  if (size_t mark = state.storage.tensor.find(rowsMark); mark != std::string::npos)
    state.storage.tensor.replace(mark, rowsMark.size(), ".{expert}");
  state.storage.slice.reset();
}

/// Whether a state of shape `state` belongs to a parameter of shape `parameter`: it may be a mean over
/// dimensions, of one element there, or have one for each block of the last.
static bool isShapeOfState(const std::vector<int64_t> &state, const std::vector<int64_t> &parameter) {
  bool fits = state.size() == parameter.size();
  for (size_t d = 0; fits && d < state.size(); ++d) {
    bool areBlocks = d + 1 == state.size() && state[d] > 0 && parameter[d] % state[d] == 0;
    fits = state[d] == parameter[d] || state[d] == 1 || areBlocks;
  }
  return fits;
}

/// An optimizer state is stored beside its parameter, under its name and a suffix; a
/// master in its parameter's place. Counts of tokens are not stored; they are of its rows.
static void findStates(Plan &plan) {
  MeanDims means = meanDims(plan);
  for (Variable &variable : plan.allVariables) {
    if (variable.role == Variable::Parameter)
      continue;
    Variable &parameter =
        const_cast<Variable &>(plan.parameter(variable.of, variable.program));
    if (variable.role == Variable::Tokens) {
      variable.storage.tensor = parameter.storage.tensor;
      variable.numbered = variable.stacked;
      std::vector<int64_t> rows(parameter.shape);
      if (!rows.empty())
        rows.pop_back();
      // A rank has the counts of all experts, with padding behind them where the router's rows are padded.
      std::vector<int64_t> unpadded(variable.localShape);
      if (!unpadded.empty() && !rows.empty() && unpadded.back() > rows.back())
        unpadded.back() = rows.back();
      if (variable.shape != rows || unpadded != rows ||
          variable.stacked != parameter.stacked || variable.type != ElementType::F32)
        fail("plan: the counts of tokens ", variable.name, " have shape ",
             shapeText(variable.shape), " but their router ", parameter.name, " has ",
             shapeText(parameter.shape));
      continue;
    }
    variable.isAdapter = parameter.isAdapter;
    if (variable.isOfOwnShape)
      continue;
    variable.storage = parameter.storage;
    variable.numbered = parameter.numbered;
    if (variable.role == Variable::Scale) {
      std::vector<int64_t> rows(parameter.shape);
      if (!rows.empty())
        rows.pop_back();
      if (variable.shape != rows || variable.stacked != parameter.stacked || variable.type != ElementType::F32 ||
          !parameter.isQuantized())
        fail("plan: the scales ", variable.name, " are ", nameOf(variable.type), " of shape ", shapeText(variable.shape),
             " but their parameter ", parameter.name, " is ", nameOf(parameter.type), " of shape ", shapeText(parameter.shape));
      // One for each row, wherever the file has that.
      variable.storage.tensor += ".scale";
      variable.storage.transpose = false;
      if (variable.storage.slice)
        variable.storage.slice->dim = 0;
      continue;
    }
    variable.isOfModel = parameter.isOfModel;
    if (variable.role == Variable::Master) {
      variable.init = parameter.init;
      parameter.hasMaster = true;
      if (variable.type != ElementType::F32 && variable.type != ElementType::I16)
        fail("plan: the master ", variable.name, " is ", nameOf(variable.type), ", not f32 or i16");
      if (variable.type == ElementType::I16) {
        if (parameter.type != ElementType::BF16)
          fail("plan: the master ", variable.name, " has the lower halves of ", parameter.name,
               ", which is ", nameOf(parameter.type), ", not bf16");
        variable.isHalved = parameter.isHalved = true;
      }
    }
    if (!isShapeOfState(variable.shape, parameter.shape) ||
        (variable.role == Variable::Master && variable.shape != parameter.shape) ||
        variable.stacked != parameter.stacked)
      fail("plan: the optimizer state ", variable.name, " has shape ", shapeText(variable.shape),
           " but its parameter ", parameter.name, " has ", shapeText(parameter.shape));
    if (variable.role == Variable::Master)
      continue;
    if (variable.isAverage())
      variable.init = parameter.init;
    variable.storage.tensor += "." + variable.state;
    separate(variable, parameter, means);
  }
}

/// The runtime fills exactly the inputs it knows, and each must have its size.
static void checkInputs(const Plan &plan) {
  int64_t sequences = plan.batch / plan.axesSize(plan.dataAxes);
  std::map<std::string, std::pair<ElementType, int64_t>> known = {
      {"tokens", {ElementType::I32, sequences * plan.sequence}},
      {"targets", {ElementType::I32, sequences * plan.sequence}},
      {"sequence_ids", {ElementType::I32, sequences}},
      {"positions", {ElementType::I32, sequences * plan.sequence}},
      {"source", {ElementType::I32, sequences * plan.sourceSequence.value_or(0)}},
      {"source_lengths", {ElementType::I32, sequences}},
      {"reference_log_probs", {ElementType::F32, sequences}},
      {"first_position", {ElementType::I32, 1}},
      {"key", {ElementType::I32, 2}},
      {microbatchesInput, {ElementType::I32, 1}}};
  for (const char *scalar : {"lr", "grad_clip", "loss_scale", "target_weight", batchWeightInput, updateWeight})
    known[scalar] = {ElementType::F32, 1};
  for (const plan::Hyperparameter &number : plan.hyperparameters)
    known[number.name] = {ElementType::F32, 1};
  for (const plan::BiasCorrection &correction : plan.biasCorrections) {
    known[correction.name] = {ElementType::F32, 1};
    if (!known.count(correction.of))
      fail("plan: \"bias_corrections\" has ", correction.name, " of \"", correction.of,
           "\", which is none of \"hyperparameters\"");
  }
  if (auto placement = plan.inputs.find(expertPlacementInput); placement != plan.inputs.end())
    known[expertPlacementInput] = {ElementType::I32, elementsIn(placement->second.shape)};
  for (const auto &[name, port] : plan.inputs) {
    auto entry = known.find(name);
    if (entry == known.end())
      fail("plan: \"inputs\" has \"", name, "\", which this runtime does not know");
    auto [type, count] = entry->second;
    if (port.type != type || elementsIn(port.shape) != count)
      fail("plan: input \"", name, "\" is ", shapeText(port.shape), " of ", nameOf(port.type),
           ", but ", count, " elements of ", nameOf(type), " are what the runtime fills in");
  }
}

/// `make` of each entry of a list of the plan, with its path.
template <typename T, typename Make>
static auto each(const std::vector<T> &list, const char *key, Make make) {
  std::vector<decltype(make(list[0], key))> result;
  for (size_t i = 0; i < list.size(); ++i)
    result.push_back(make(list[i], text(key, "[", i, "]")));
  return result;
}

Plan Plan::parse(std::string_view json, int64_t rank) {
  Json document = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    fail("plan: the executable's plan is not JSON: compile the executable again");
  plan::Plan all;
  // Another version may say everything else in another way.
  auto version = document.find("version");
  if (version != document.end() && *version != plan::version)
    fail("plan: version ", version->dump(), ", but this runtime reads version ", plan::version,
         ": compile the executable again");
  read(document, all, "");

  Plan plan;
  static_cast<plan::Header &>(plan) = all;
  for (const MeshAxis &axis : plan.mesh)
    if (axis.size < 1)
      fail("plan: mesh axis ", axis.name, " has size ", axis.size);
  plan.dataAxes = parseAxes(plan, all.dataAxes, "\"data_axes\"");
  plan.programs = each(all.programs, "programs", [&](const plan::Program &entry, auto path) {
    return ::programOf(plan, entry, path);
  });
  for (int64_t other = 0; other < plan.ranks(); ++other)
    (void)plan.programOf(other); // Every rank has one.
  plan.program = plan.programOf(rank);
  static_cast<NeededMemory &>(plan) = plan.programs[plan.program];
  plan.allVariables = each(all.variables, "variables", [&](const plan::Variable &entry, auto path) {
    return variableOf(plan, entry, path);
  });
  findStates(plan);
  for (size_t i = 0; i < plan.allVariables.size(); ++i) {
    checkVariable(plan, plan.allVariables[i], text("variables[", i, "]"));
    if (plan.allVariables[i].program == plan.program)
      plan.variables.push_back(plan.allVariables[i]);
  }
  plan.inputs = portsOf(plan, all.inputs, "inputs");
  for (const plan::Port &entry : all.inputs)
    plan.inputNames.insert(entry.name);
  plan.outputs = portsOf(plan, all.outputs, "outputs");
  for (const auto &names : all.groups)
    plan.groups.push_back(parseAxes(plan, names, "\"groups\""));
  plan.scratchBytes = all.scratchBytes;
  if (plan.scratchBytes.size() != plan.groups.size())
    fail("plan: \"scratch_bytes\" has ", plan.scratchBytes.size(), " entries for ",
         plan.groups.size(), " groups");
  plan.collectives = each(all.collectives, "collectives",
                          [&](const plan::Collective &entry, auto path) {
                            return collectiveOf(plan, entry, path);
                          });
  if (all.attentions)
    plan.attentions = each(*all.attentions, "attentions", attentionOf);
  bool isDecoder = plan.outputs.count(plan::logitsOutput);
  for (const char *name : {"loss", "grad_norm"})
    if (isDecoder)
      continue;
    else if (!plan.outputs.count(name) || plan.outputs[name].type != ElementType::F32)
      fail("plan: \"outputs\" has no f32 \"", name, "\" of program ",
           plan.programs[plan.program].name, ": compile the executable again");
  if (plan.outputs.count("aux_loss") && plan.outputs["aux_loss"].type != ElementType::F32)
    fail("plan: the output \"aux_loss\" is not f32: compile the executable again");
  if (plan.batch < 1 || plan.sequence < 1 || plan.microbatches < 1 || plan.vocabulary < 1 ||
      plan.batch % (plan.axesSize(plan.dataAxes) * plan.microbatches) != 0)
    fail("plan: a batch of ", plan.batch, " sequences does not divide into ",
         plan.axesSize(plan.dataAxes), " data ranks of ", plan.microbatches, " microbatches");
  if (int64_t blocks = plan.gradientBlocks.value_or(plan.axesSize(plan.dataAxes));
      blocks < 1 || blocks % plan.axesSize(plan.dataAxes) != 0 || plan.batch % (blocks * plan.microbatches) != 0)
    fail("plan: \"gradient_blocks\" ", blocks, " of a batch of ", plan.batch, " sequences in ", plan.microbatches,
         " microbatches do not divide among ", plan.axesSize(plan.dataAxes), " data ranks: compile the executable again");
  if (plan.maskedShare.has_value() != plan.maskToken.has_value() ||
      (plan.maskToken && !plan.inputNames.count("target_weight")))
    fail("plan: \"masked_share\", \"mask_token\" and the input \"target_weight\" go together: "
         "compile the executable again");
  auto logProbs = plan.outputs.find("log_probs");
  if (plan.dpoBeta.has_value() != bool(plan.inputNames.count("reference_log_probs")) ||
      plan.dpoBeta.has_value() != (logProbs != plan.outputs.end()))
    fail("plan: \"dpo_beta\", the input \"reference_log_probs\" and the output \"log_probs\" go together: "
         "compile the executable again");
  if (plan.dpoBeta && (logProbs->second.type != ElementType::F32 || elementsIn(logProbs->second.shape) != plan.batch ||
                       plan.batch / (plan.axesSize(plan.dataAxes) * plan.microbatches) % 2))
    fail("plan: the output \"log_probs\" is ", shapeText(logProbs->second.shape), " of ",
         nameOf(logProbs->second.type), " for a batch of ", plan.batch, " sequences, of which each microbatch of a rank has pairs");
  for (const char *name : {"source", "source_lengths", "target_weight"})
    if (plan.startToken && !plan.inputNames.count(name) &&
        !(isDecoder && std::string_view(name) == "target_weight"))
      fail("plan: \"start_token\" and the inputs \"source\", \"source_lengths\" and \"target_weight\" go "
           "together: compile the executable again");
  if (plan.startToken.has_value() != plan.sourceSequence.has_value() ||
      plan.inputNames.count("source") != size_t(plan.startToken.has_value()) ||
      (plan.startToken && (*plan.startToken < 0 || *plan.startToken >= plan.vocabulary ||
                           *plan.sourceSequence < 1)))
    fail("plan: \"source_sequence\", \"start_token\" and the input \"source\" go together: compile the "
         "executable again");
  if (!isDecoder && plan.inputNames.count("positions") && !plan.inputNames.count("target_weight"))
    fail("plan: the input \"positions\" needs \"target_weight\", since the first targets of "
         "documents do not count: compile the executable again");
  // Else the program divides by the number of all targets of a whole batch.
  if (plan.inputNames.count(microbatchesInput) && !plan.inputNames.count("target_weight") &&
      !plan.inputNames.count(batchWeightInput))
    fail("plan: the input \"", microbatchesInput, "\" needs \"target_weight\" or \"", batchWeightInput,
         "\", by which a smaller batch has means of its own: compile the executable again");
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
  std::vector<int64_t> member = coordinates(rank);
  std::vector<int> members(size_t(axesSize(axes)));
  for (size_t i = 0; i < members.size(); ++i) {
    int64_t rest = int64_t(i), number = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      int64_t size = mesh[size_t(*axis)].size;
      member[size_t(*axis)] = rest % size;
      rest /= size;
    }
    for (size_t axis = 0; axis < mesh.size(); ++axis)
      number = number * mesh[axis].size + member[axis];
    members[i] = int(number);
  }
  return members;
}

/// `range` with the tensor of `shape` at `offset` in it.
static ArenaRange extended(ArenaRange range, ElementType type, const std::vector<int64_t> &shape,
                           int64_t offset) {
  int64_t end = offset + bytesOf(type) * elementsIn(shape);
  if (range.begin == range.end)
    return {offset, end};
  return {std::min(range.begin, offset), std::max(range.end, end)};
}

ArenaRange Plan::variableRange() const {
  ArenaRange range;
  for (const Variable &variable : variables)
    if (variable.space == MemorySpace::Device)
      range = extended(range, variable.type, variable.localShape, variable.offset);
  return range;
}

ArenaRange Plan::rangeOf(const Variable &variable) {
  return extended({}, variable.type, variable.localShape, variable.offset);
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
    bool runs = std::all_of(programs[i].at.begin(), programs[i].at.end(), [&](const auto &entry) {
      const auto &[axis, coordinates] = entry;
      return std::count(coordinates.begin(), coordinates.end(), mine[size_t(axis)]) > 0;
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

const Variable &Plan::scaleOf(const Variable &parameter) const {
  for (const Variable &variable : allVariables)
    if (variable.role == Variable::Scale && variable.of == parameter.name && variable.program == parameter.program)
      return variable;
  fail("plan: the parameter \"", parameter.name, "\" has codes of 8 bits, but no scale");
}
