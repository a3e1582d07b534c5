//===- Checkpoint.cpp - resuming a run ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Checkpoint.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/FindCheckpoint.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/Shards.h"
#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/NonFinite.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// The version before checksums, which is read too.
static constexpr int64_t uncheckedVersion = 2;
/// The largest of the whole numbers that every reader of JSON takes.
static constexpr int64_t largest = (int64_t(1) << 53) - 1;

const char *meshwright::configName(const std::string &config) {
  return isConfig(config) ? "/config.json" : "/model.mlir";
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
    if (version != stateVersion && version != shardedVersion && version != uncheckedVersion)
      fail("--resume: ", path, " has version ", version, ", but version ", stateVersion,
           " is what is read: start a new run with --init ", directory, "/", modelFile);
    isChecked = version != uncheckedVersion;
    if (isChecked ? !isSealed(content, string("checksum")) : json.contains("checksum"))
      fail("--resume: ", path, " does not have the checksum that it was written with", remedy);
    if (std::string missing = missingCommit(directory, content); !missing.empty())
      fail("--resume: ", missing, ": name another checkpoint");
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
    std::map<std::string, std::string> shards;
    std::string folder = shardFolder(file) + "/";
    for (const auto &[name, id] : files.items())
      if (name.rfind(folder, 0) == 0)
        shards[name.substr(folder.size())] = string(files, name.c_str());
    return shards.empty() ? string(files, file) : idOfShards(shards);
  }
  /// Whether the checkpoint holds adapters in place of a model's weights.
  bool isOfAdapters() const {
    if (!json.contains("files") || !json["files"].is_object())
      return false;
    std::string folder = shardFolder(adapterFile) + "/";
    for (const auto &[name, id] : json["files"].items())
      if (name == adapterFile || name.rfind(folder, 0) == 0)
        return true;
    return false;
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

  std::map<int64_t, std::vector<double>> expertLoads() const {
    std::map<int64_t, std::vector<double>> loads;
    if (!json.contains("expert_loads"))
      return loads;
    const Json &layers = json["expert_loads"];
    if (!layers.is_object())
      refuse("expert_loads", layers, "an object");
    for (const auto &[key, counts] : layers.items()) {
      bool fits = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos &&
                  counts.is_array() && !counts.empty();
      for (const Json &count : counts)
        fits &= count.is_number() && count.get<double>() >= 0;
      if (!fits)
        refuse("expert_loads", layers, "lists of counts by layer");
      loads[std::stoll(key)] = counts.get<std::vector<double>>();
    }
    return loads;
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
  state.expertLoads = json.expertLoads();
  if (json.has("skipped"))
    state.skipped = json.whole("skipped", 0, largest);
  state.fileTokens = json.fileTokens();
  state.sources = json.sources();
  if (!state.sources.empty())
    state.mixed = json.whole("mixed", 0, state.position);
  state.data = json.texts("data");
  state.flags = json.texts("flags");
  state.numbers = json.texts("numbers");
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

std::string meshwright::tensorsIn(const std::string &directory, const std::string &name) {
  std::string file = directory + "/" + name, folder = directory + "/" + shardFolder(name);
  std::error_code error;
  return !fs::exists(file, error) && fs::is_directory(folder, error) ? folder : file;
}

/// What else may be done with a checkpoint that a run cannot go on from.
static std::string orInit(const std::string &directory) {
  return text(", or start a new run with --init ", tensorsIn(directory, modelFile));
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
  fs::path path = fs::path(modelFolder(weights)) / "config.json";
  if (!isConfig(plan.config) || !fs::is_regular_file(path, error))
    return "";
  auto parsed = [](const std::string &content) {
    return Json::parse(withoutNonFinite(content), nullptr, /*allow_exceptions=*/false);
  };
  Json theirs = parsed(contentsOf(path)), mine = parsed(plan.config);
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
         "--init ", tensorsIn(directory, modelFile));
  if (plan.adapterConfig)
    checkAdapterConfig(plan, directory, "--resume");
  checkSameWeights(plan, directory, orInit(directory));
  refuseOther(directory, "--optimizer", json.string("optimizer"), plan.optimizer,
              "compile with the checkpoint's optimizer" + orInit(directory));
  refuseOther(directory, "--seq", text(json.whole("sequence", 1, largest)), text(plan.sequence),
              "compile with the checkpoint's --seq, in which it counts its position in the data" +
                  orInit(directory));
}
