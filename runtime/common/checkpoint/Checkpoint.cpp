//===- Checkpoint.cpp - saving and resuming a run -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Checkpoint.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/Finite.h"
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/OutputFile.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/SaveFolder.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "common/train/Context.h"
#include "meshwright/runtime/Averages.h"
#include "meshwright/runtime/NonFinite.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;
namespace fs = std::filesystem;

static constexpr int64_t stateVersion = 3;
/// The version before checksums, which is read too.
static constexpr int64_t uncheckedVersion = 2;
/// The largest of the whole numbers that every reader of JSON takes.
static constexpr int64_t largest = (int64_t(1) << 53) - 1;
static const char *modelFile = "model.safetensors", *optimizerFile = "optimizer.safetensors";
/// A folder as Hugging Face has it, with averages as weights.
static const char *averagesFolder = "/ema";

static void writeText(const std::string &path, const std::string &content) {
  OutputFile file(path);
  file.write(content);
  file.sync();
  file.close();
}

static int64_t bytesIn(const std::vector<FileTensor> &tensors) {
  int64_t all = 0;
  for (const FileTensor &tensor : tensors)
    all += tensor.bytes();
  return all;
}

/// Returns the file's id on rank 0.
static std::string saveTensors(MwContext &context, const VariableAddresses &addresses,
                               const std::string &path, const std::vector<FileTensor> &tensors) {
  std::unique_ptr<SafeTensorsWriter> writer;
  if (context.rank() == 0) {
    std::vector<SafeTensorsWriter::Entry> entries;
    for (const FileTensor &tensor : tensors)
      entries.push_back({tensor.name, tensor.shape});
    writer = std::make_unique<SafeTensorsWriter>(path, entries);
  }
  Rounds rounds(*context.world, bytesIn(tensors));
  GatherBuffers buffers;
  int64_t waiting = 0; // Bytes that may not be on the disk yet.
  auto take = [&](const float *elements, int64_t count) {
    if (writer)
      writer->write(elements, count);
    if (waiting += count * 4; writer && waiting >= Rounds::part) {
      writer->sync();
      waiting = 0;
    }
    rounds.done(count * 4);
  };
  for (const FileTensor &tensor : tensors)
    gatherTensor(context, addresses, tensor, buffers, take);
  std::string id = writer ? writer->finish() : "";
  rounds.finish();
  return id;
}

static bool keepsAverages(const Plan &plan) {
  const auto &states = plan.optimizerStates;
  return std::find(states.begin(), states.end(), averageState) != states.end();
}

/// The parameters' tensors, with the averages of all that have one.
static std::vector<FileTensor> averagedTensors(const Plan &plan) {
  std::map<std::string, FileTensor> states;
  for (FileTensor &state : fileTensors(plan, WeightKind::OptimizerStates))
    states.emplace(state.name, std::move(state));
  std::vector<FileTensor> tensors = fileTensors(plan, trainedWeights(plan));
  for (FileTensor &tensor : tensors)
    if (auto average = states.find(tensor.name + "." + averageState); average != states.end())
      tensor.parts = average->second.parts;
  return tensors;
}

int64_t meshwright::checkpointBytes(const Plan &plan) {
  return bytesIn(fileTensors(plan, trainedWeights(plan))) * (keepsAverages(plan) ? 2 : 1) +
         bytesIn(fileTensors(plan, WeightKind::OptimizerStates));
}

/// The file of a checkpoint that holds the weights that are trained.
static const char *weightsFile(const Plan &plan) {
  return plan.adapterConfig ? adapterFile : modelFile;
}

/// The file of a checkpoint that holds the model's description.
static const char *configName(const std::string &config) {
  return isConfig(config) ? "/config.json" : "/model.mlir";
}

static std::string stateText(const Plan &plan, const TrainingState &state,
                             const CheckpointIds &ids) {
  nlohmann::ordered_json json = {
      {"version", stateVersion},
      {"checksum", noChecksum},
      {"files", {{weightsFile(plan), ids.model}, {optimizerFile, ids.optimizer}}},
      {"step", state.step},
      {"position", state.position},
      {"seed", state.seed},
      {"shuffle", state.shuffle},
      {"tokens", state.tokens},
      {"batch", state.batch},
      {"model", plan.model},
      {"optimizer", plan.optimizer},
      {"sequence", plan.sequence},
      {"vocabulary", plan.vocabulary},
      {"mesh", plan.meshText()},
      {"plan", plan.hash}};
  if (const auto &scale = state.lossScale)
    json["loss_scale"] = {{"scale", scale->scale},
                          {"good_steps", scale->goodSteps},
                          {"overflows", scale->overflows},
                          {"skipped", scale->skipped}};
  if (const auto &rates = state.rates)
    json["rates"] = {{"largest", rates->largest}, {"sum", rates->sum}};
  if (state.skipped)
    json["skipped"] = state.skipped;
  if (!state.fileTokens.empty())
    json["file_tokens"] = state.fileTokens;
  json["mixed"] = state.mixed;
  json["sources"] = nlohmann::ordered_json::array();
  for (const TrainingState::Source &source : state.sources)
    json["sources"].push_back({{"name", source.name}, {"weight", source.weight}, {"taken", source.taken}});
  json["data"] = state.data;
  json["flags"] = state.flags;
  // Flags may have paths that are no UTF-8.
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  seal(text);
  return text;
}

std::string meshwright::checkpointName(int64_t step) {
  char name[32];
  snprintf(name, sizeof(name), "step-%08lld", static_cast<long long>(step));
  return name;
}

void meshwright::saveCheckpoint(MwContext &context, const VariableAddresses &addresses,
                                SaveFolder *folder, int64_t keep, const TrainingState &state) {
  ActivityScope activity(context.status, "saving a checkpoint");
  TraceScope span(context.trace.get(), "checkpoint", "io");
  const Plan &plan = context.plan;
  try {
    checkFinite(plan, addresses, context.rank(), context.threads);
    context.world->barrier(); // Nothing is published before all have looked.
    if (folder)
      checkSpace(folder->path(), checkpointBytes(plan), "a checkpoint");
    std::string name = checkpointName(state.step), partial = folder ? folder->begin(name) : "";
    auto save = [&](const char *file, WeightKind kind) {
      return saveTensors(context, addresses, partial + "/" + file, fileTensors(plan, kind));
    };
    if (keepsAverages(plan)) {
      std::string whole = partial + averagesFolder;
      if (folder)
        fs::create_directory(whole);
      // Averages are zeros until the first update, after which they equal the parameters.
      int64_t skipped = state.skipped + (state.lossScale ? state.lossScale->skipped : 0);
      saveTensors(context, addresses, whole + "/" + weightsFile(plan),
                  state.step > skipped ? averagedTensors(plan) : fileTensors(plan, trainedWeights(plan)));
      if (folder)
        writeText(whole + configName(plan.config), plan.config);
      if (folder && plan.adapterConfig)
        writeText(whole + "/" + adapterConfigFile, *plan.adapterConfig);
    }
    CheckpointIds ids;
    ids.model = save(weightsFile(plan), trainedWeights(plan));
    ids.optimizer = save(optimizerFile, WeightKind::OptimizerStates);
    if (folder) {
      writeText(partial + configName(plan.config), plan.config);
      if (plan.adapterConfig)
        writeText(partial + "/" + adapterConfigFile, *plan.adapterConfig);
      writeText(partial + "/state.json", stateText(plan, state, ids));
      folder->publish(name, keep);
    }
  } catch (const Error &error) {
    fail("saving the checkpoint of step ", state.step, ": ", error.what());
  }
  context.world->barrier();
}

std::string meshwright::findCheckpoint(const std::string &path) {
  std::error_code error;
  auto isCheckpoint = [&](const std::string &directory) {
    std::string file = directory + "/state.json";
    if (fs::is_directory(file, error))
      fail("--resume ", path, ": ", file,
           " is a folder, where a checkpoint has a file: name another checkpoint");
    return fs::exists(file, error);
  };
  if (isCheckpoint(path))
    return path;
  std::string latest = path + "/latest";
  bool isLink = fs::is_symlink(latest, error);
  // The link's target, so that a checkpoint written meanwhile does not mix in.
  std::string target =
      isLink ? (fs::path(path) / fs::read_symlink(latest, error)).string() : latest;
  if (isCheckpoint(target))
    return target;
  if (!fs::exists(path, error))
    fail("--resume ", path, ": there is no such folder: name one that --save wrote");
  if (isLink && !fs::exists(target, error))
    fail("--resume ", path, ": ", latest, " points to ", target,
         ", which does not exist: name another checkpoint in ", path);
  if (fs::exists(latest, error))
    fail("--resume ", path, ": ", target,
         " has no state.json, so it is no whole checkpoint: name another one in ", path);
  fail("--resume ", path, ": there is no checkpoint: neither ", path, "/state.json nor ", latest,
       " exists; name a folder that --save wrote");
}

namespace {
/// state.json of a checkpoint, whose values are of the types and in the ranges that they
/// must be.
class StateReader {
public:
  explicit StateReader(const std::string &directory) : path(directory + "/state.json") {
    MappedFile file(path, "--resume");
    std::string content(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
    json = parseJson(content, "--resume: " + path, remedy);
    if (!json.is_object())
      fail("--resume: ", path, " is ", shortText(json), ", not an object", remedy);
    int64_t version = whole("version", 0, largest);
    if (version != stateVersion && version != uncheckedVersion)
      fail("--resume: ", path, " has version ", version, ", but version ", stateVersion,
           " is what is read: start a new run with --init ", directory, "/", modelFile);
    isChecked = version == stateVersion;
    if (isChecked ? !isSealed(content, string("checksum")) : json.contains("checksum"))
      fail("--resume: ", path, " does not have the checksum that it was written with", remedy);
  }

  /// Whether the checkpoint has checksums.
  bool isChecked = false;

  int64_t whole(const char *key, int64_t least, int64_t most) const {
    const Json &value = at(json, key);
    if (!value.is_number_integer() || value.get<double>() < double(least) ||
        value.get<double>() > double(most))
      refuse(key, value, text("a whole number from ", least, " to ", most));
    return value.get<int64_t>();
  }
  bool flag(const char *key) const {
    const Json &value = at(json, key);
    if (!value.is_boolean())
      refuse(key, value, "true or false");
    return value.get<bool>();
  }
  bool has(const char *key) const { return json.contains(key); }
  std::string string(const char *key) const { return string(json, key); }
  std::string fileId(const char *file) const {
    const Json &files = at(json, "files");
    if (!files.is_object())
      refuse("files", files, "an object");
    return string(files, file);
  }
  /// Whether the checkpoint holds adapters in place of a model's weights.
  bool isOfAdapters() const {
    return json.contains("files") && json["files"].is_object() &&
           json["files"].contains(adapterFile);
  }
  std::vector<int64_t> fileTokens() const {
    std::vector<int64_t> counts;
    if (!json.contains("file_tokens"))
      return counts;
    const Json &list = json["file_tokens"];
    for (const Json &count : list) {
      if (!list.is_array() || !count.is_number_unsigned())
        refuse("file_tokens", list, "an array of whole numbers");
      counts.push_back(count.get<int64_t>());
    }
    return counts;
  }
  std::vector<TrainingState::Source> sources() const {
    std::vector<TrainingState::Source> result;
    if (!json.contains("sources"))
      return result;
    if (!json["sources"].is_array())
      refuse("sources", json["sources"], "an array");
    for (const Json &source : json["sources"]) {
      StateReader inner(*this);
      inner.json = source;
      if (!source.is_object())
        refuse("sources", json["sources"], "an array of objects");
      const Json &weight = at(source, "weight");
      if (!weight.is_number() || !(weight.get<double>() > 0) || std::isinf(weight.get<double>()))
        refuse("weight", weight, "a number above 0");
      result.push_back({string(source, "name"), weight.get<double>(), inner.whole("taken", 0, largest)});
    }
    return result;
  }
  /// The texts of the object `key`, which may be absent.
  std::map<std::string, std::string> texts(const char *key) const {
    std::map<std::string, std::string> result;
    if (!json.contains(key))
      return result;
    const Json &object = json[key];
    if (!object.is_object())
      refuse(key, object, "an object");
    for (const auto &[name, value] : object.items())
      result[name] = string(object, name.c_str());
    return result;
  }
  std::optional<LossScale> lossScale() const {
    if (!json.contains("loss_scale"))
      return std::nullopt;
    StateReader inner(*this);
    inner.json = json["loss_scale"];
    if (!inner.json.is_object())
      refuse("loss_scale", inner.json, "an object");
    const Json &scale = at(inner.json, "scale");
    if (!scale.is_number() || !(scale.get<double>() >= 1) || std::isinf(float(scale.get<double>())))
      refuse("scale", scale, "a number of at least 1 that a 32-bit float holds");
    return LossScale{scale.get<double>(), inner.whole("good_steps", 0, largest),
                     inner.whole("overflows", 0, largest), inner.whole("skipped", 0, largest)};
  }

  std::optional<RateWeights> rates() const {
    if (!json.contains("rates"))
      return std::nullopt;
    StateReader inner(*this);
    inner.json = json["rates"];
    if (!inner.json.is_object())
      refuse("rates", inner.json, "an object");
    return RateWeights{inner.atLeast0("largest"), inner.atLeast0("sum")};
  }

private:
  double atLeast0(const char *key) const {
    const Json &value = at(json, key);
    if (!value.is_number() || !(value.get<double>() >= 0) || std::isinf(value.get<double>()))
      refuse(key, value, "a number of at least 0");
    return value.get<double>();
  }
  [[noreturn]] void refuse(const char *key, const Json &value, const std::string &wanted) const {
    fail("--resume: ", path, ": \"", key, "\" is ", shortText(value), ", but must be ", wanted,
         remedy);
  }
  const Json &at(const Json &object, const char *key) const {
    auto found = object.find(key);
    if (found == object.end())
      fail("--resume: ", path, " has no \"", key, "\"", remedy);
    return *found;
  }
  std::string string(const Json &object, const char *key) const {
    const Json &value = at(object, key);
    if (!value.is_string())
      refuse(key, value, "a string");
    return value.get<std::string>();
  }

  static constexpr const char *remedy =
      ": the file is damaged or was changed; name another checkpoint";
  std::string path;
  Json json;
};
} // namespace

TrainingState meshwright::readState(const std::string &directory) {
  StateReader json(directory);
  TrainingState state;
  state.step = json.whole("step", 0, largest);
  state.position = json.whole("position", 0, largest);
  state.seed = json.whole("seed", 0, UINT32_MAX);
  state.shuffle = json.flag("shuffle");
  state.tokens = json.whole("tokens", 0, largest);
  state.batch = json.whole("batch", 1, largest);
  state.lossScale = json.lossScale();
  state.rates = json.rates();
  if (json.has("skipped"))
    state.skipped = json.whole("skipped", 0, largest);
  state.fileTokens = json.fileTokens();
  state.sources = json.sources();
  if (!state.sources.empty())
    state.mixed = json.whole("mixed", 0, state.position);
  state.data = json.texts("data");
  state.flags = json.texts("flags");
  return state;
}

CheckpointIds meshwright::readIds(const std::string &directory) {
  StateReader json(directory);
  if (!json.isChecked)
    return {};
  return {json.fileId(json.isOfAdapters() ? adapterFile : modelFile), json.fileId(optimizerFile)};
}

/// Where two model descriptions differ: the first key of two configurations with its
/// values, or the texts themselves. Two equal texts if they say the same.
static std::pair<std::string, std::string>
difference(const std::string &path, const std::string &saved, const std::string &mine) {
  if (!isConfig(mine))
    return {saved, mine};
  // No key that a model needs has a number that is not finite.
  Json a = parseJson(withoutNonFinite(saved), "--resume: " + path, ": name another checkpoint");
  Json b = Json::parse(withoutNonFinite(mine));
  if (!a.is_object() || !b.is_object())
    return {saved, mine};
  auto entry = [](const Json &json, const std::string &key) {
    return key + (json.contains(key) ? " = " + shortText(json[key]) : " absent");
  };
  Json keys = a;
  keys.update(b);
  for (const auto &item : keys.items())
    if (a.value(item.key(), Json()) != b.value(item.key(), Json()) ||
        a.contains(item.key()) != b.contains(item.key()))
      return {entry(a, item.key()), entry(b, item.key())};
  return {};
}

/// Refuses a checkpoint of which `saved` is not as `mine`, that of the plan.
static void refuseOther(const std::string &directory, const std::string &what,
                        const std::string &saved, const std::string &mine,
                        const std::string &remedy) {
  if (saved != mine)
    fail("--resume: the checkpoint ", directory, " was trained with ", what, " ", saved,
         ", but this executable was compiled for ", mine, ": ", remedy);
}

/// What else may be done with a checkpoint that a run cannot go on from.
static std::string orInit(const std::string &directory) {
  return text(", or start a new run with --init ", directory, "/", modelFile);
}

void meshwright::checkSameWeights(const Plan &plan, const std::string &directory,
                                  const std::string &otherwise) {
  StateReader json(directory);
  std::string path = directory + configName(plan.config);
  refuseOther(directory, "the model", json.string("model"), plan.model,
              "compile " + path + otherwise);
  refuseOther(directory, "a vocabulary of", text(json.whole("vocabulary", 1, largest)),
              text(plan.vocabulary), "compile the checkpoint's model" + otherwise);
  MappedFile file(path, "--resume");
  std::string saved(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
  auto [was, is] = difference(path, saved, plan.config);
  refuseOther(directory, "a model of", was, is, "compile " + path + otherwise);
}

std::string meshwright::otherConfig(const Plan &plan, const std::string &weights) {
  std::error_code error;
  fs::path path = fs::path(weights).parent_path() / "config.json";
  if (!isConfig(plan.config) || !fs::is_regular_file(path, error))
    return "";
  auto parsed = [](const std::string &content) {
    return Json::parse(withoutNonFinite(content), nullptr, /*allow_exceptions=*/false);
  };
  // Not mapped: a file that a run has mapped is none that it may write, as --save-merged may.
  std::ifstream file(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Json theirs = parsed(content), mine = parsed(plan.config);
  if (!theirs.is_object() || !mine.is_object())
    return "";
  // These say nothing of the numbers that a model computes.
  static const std::set<std::string> names = {"_name_or_path", "transformers_version", "torch_dtype",
                                              "dtype",         "architectures",        "use_cache"};
  std::string keys;
  for (const auto &[key, value] : theirs.items())
    if (mine.contains(key) && mine[key] != value && !names.count(key))
      keys += text(keys.empty() ? "" : ", ", key, " = ", shortText(value), " (here ",
                   shortText(mine[key]), ")");
  return keys.empty() ? "" : text("--init: ", path.string(), " is of another model than this executable: ", keys);
}

void meshwright::checkSameModel(const Plan &plan, const std::string &directory) {
  StateReader json(directory);
  if (json.isOfAdapters() && !plan.adapterConfig)
    fail("--resume: the checkpoint ", directory,
         " has the adapters of a run with --lora, but this executable trains whole weights: compile "
         "with the checkpoint's --lora");
  if (!json.isOfAdapters() && plan.adapterConfig)
    fail("--resume: the checkpoint ", directory,
         " has whole weights, but this executable trains adapters of them: start a new run with "
         "--init ", directory, "/", modelFile);
  if (plan.adapterConfig)
    checkAdapterConfig(plan, directory, "--resume");
  checkSameWeights(plan, directory, orInit(directory));
  refuseOther(directory, "--optimizer", json.string("optimizer"), plan.optimizer,
              "compile with the checkpoint's optimizer" + orInit(directory));
  refuseOther(directory, "--seq", text(json.whole("sequence", 1, largest)), text(plan.sequence),
              "compile with the checkpoint's --seq, in which it counts its position in the data" +
                  orInit(directory));
}
