//===- Checkpoint.cpp - saving and resuming a run -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/Checkpoint.h"

#include "common/Context.h"
#include "common/Error.h"
#include "common/Failure.h"
#include "common/Gather.h"
#include "common/OutputFile.h"
#include "common/SafeTensors.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace meshwright;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

static const char *partialPrefix = ".partial-";
static constexpr int64_t stateVersion = 2;

/// Removes what runs that were killed while saving have left behind.
static void removePartial(const std::string &directory) {
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, ignored))
    if (entry.path().filename().string().rfind(partialPrefix, 0) == 0)
      fs::remove_all(entry.path(), ignored);
}

static void writeText(const std::string &path, const std::string &content) {
  OutputFile file(path);
  file.write(content);
  file.sync();
  file.close();
}

static void saveTensors(MwContext &context, const VariablePlaces &places, const std::string &path,
                        WeightKind kind) {
  std::vector<FileTensor> tensors = fileTensors(context.plan, kind);
  std::unique_ptr<SafeTensorsWriter> writer;
  if (context.rank() == 0) {
    std::vector<SafeTensorsWriter::Entry> entries;
    for (const FileTensor &tensor : tensors)
      entries.push_back({tensor.name, tensor.shape});
    writer = std::make_unique<SafeTensorsWriter>(path, entries);
  }
  std::vector<float> data;
  for (const FileTensor &tensor : tensors) {
    gatherTensor(context, places, tensor, data);
    if (writer)
      writer->write(data.data(), int64_t(data.size()));
  }
  if (writer)
    writer->finish();
}

/// The file of a checkpoint that holds the model's description.
static const char *configName(const std::string &config) {
  return Json::accept(config) ? "/config.json" : "/model.mlir";
}

static std::string stateText(const Plan &plan, const TrainingState &state) {
  Json json = {{"version", stateVersion},
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
  return json.dump(2) + "\n";
}

/// Gives the finished directory `partial` its name. One of the same step, left by an
/// earlier run, is exchanged for it, so that there is a whole one at every moment.
static void publish(const std::string &partial, const std::string &path) {
  if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return;
  int code = errno;
  if (code == EEXIST) {
    if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      return;
    }
    code = errno;
  }
  // File systems without these flags (NFS among them) rename plainly, which works
  // if nothing is in the way.
  if (code == EINVAL) {
    if (rename(partial.c_str(), path.c_str()) == 0)
      return;
    code = errno;
  }
  fail("--save: cannot rename ", partial, " to ", path, ": ", errnoText(code),
       ": remove what is in its place, or check the directory's permissions");
}

static void pointLatest(const std::string &directory, const std::string &name) {
  std::string link = directory + "/" + partialPrefix + "latest";
  std::string latest = directory + "/latest";
  std::error_code error;
  fs::remove(link, error);
  fs::create_symlink(name, link, error);
  if (error)
    fail("--save: cannot make the link ", link, ": ", error.message(),
         ": use a file system with symbolic links");
  if (rename(link.c_str(), latest.c_str()) != 0)
    fail("--save: cannot replace ", latest, ": ", errnoText(errno),
         ": remove what is in its place");
}

std::string meshwright::saveCheckpoint(MwContext &context, const VariablePlaces &places,
                                       const std::string &directory, const TrainingState &state) {
  ActivityScope activity(context.status, "saving a checkpoint", ActivityScope::Patient);
  TraceScope span(context.trace.get(), "checkpoint", "io");
  char name[32];
  snprintf(name, sizeof(name), "step-%08lld", static_cast<long long>(state.step));
  std::string path = directory + "/" + name, partial = directory + "/" + partialPrefix + name;
  bool isRoot = context.rank() == 0;
  try {
    if (isRoot) {
      removePartial(directory);
      std::error_code error;
      fs::create_directory(partial, error);
      if (error)
        fail("--save: cannot make the directory ", partial, ": ", error.message(),
             ": free space there or name another place");
      setFailureCleanup(partial);
    }
    saveTensors(context, places, partial + "/model.safetensors", WeightKind::Parameters);
    saveTensors(context, places, partial + "/optimizer.safetensors", WeightKind::OptimizerStates);
    if (isRoot) {
      const Plan &plan = context.plan;
      writeText(partial + configName(plan.config), plan.config);
      writeText(partial + "/state.json", stateText(plan, state));
      syncDirectory(partial);
      publish(partial, path);
      setFailureCleanup("");
      syncDirectory(directory);
      pointLatest(directory, name);
      syncDirectory(directory);
    }
  } catch (const Error &error) {
    std::error_code ignored;
    bool earlier = fs::exists(directory + "/latest", ignored);
    fail("saving the checkpoint of step ", state.step, ": ", error.what(),
         earlier ? "; the last good one is " + directory + "/latest" : "");
  }
  context.world->barrier();
  return path;
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

/// Reads from state.json of the checkpoint `directory` with `read(json)`.
template <typename Read> static void withState(const std::string &directory, Read read) {
  std::string path = directory + "/state.json";
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    if (auto version = json.at("version").get<int64_t>(); version != stateVersion)
      fail("--resume: ", path, " has version ", version, ", but version ", stateVersion,
           " is what is read: start a new run with --init ", directory, "/model.safetensors");
    read(json);
  } catch (const Json::exception &error) {
    fail("--resume: ", path, " is damaged (", error.what(), "): name another checkpoint");
  }
}

TrainingState meshwright::readState(const std::string &directory) {
  TrainingState state;
  withState(directory, [&](const Json &json) {
    state.step = json.at("step").get<int64_t>();
    state.position = json.at("position").get<int64_t>();
    state.seed = json.at("seed").get<int64_t>();
    state.shuffle = json.at("shuffle").get<bool>();
    state.tokens = json.at("tokens").get<int64_t>();
    state.batch = json.at("batch").get<int64_t>();
    if (json.contains("loss_scale")) {
      const Json &scale = json.at("loss_scale");
      state.lossScale =
          LossScale{scale.at("scale").get<double>(), scale.at("good_steps").get<int64_t>(),
                    scale.at("overflows").get<int64_t>(), scale.at("skipped").get<int64_t>()};
    }
  });
  if (state.step < 0 || state.position < 0)
    fail("--resume: ", directory, "/state.json is damaged (step ", state.step, ", position ",
         state.position, "): name another checkpoint");
  return state;
}

/// Where two model descriptions differ: the first key of two configurations with its
/// values, or the texts themselves. Two equal texts if they say the same.
static std::pair<std::string, std::string> difference(const std::string &saved,
                                                      const std::string &mine) {
  auto a = nlohmann::json::parse(saved, nullptr, /*allow_exceptions=*/false);
  auto b = nlohmann::json::parse(mine, nullptr, /*allow_exceptions=*/false);
  if (!a.is_object() || !b.is_object())
    return {saved, mine};
  auto entry = [](const nlohmann::json &json, const std::string &key) {
    return key + (json.contains(key) ? " = " + json[key].dump() : " absent");
  };
  nlohmann::json keys = a;
  keys.update(b);
  for (const auto &item : keys.items())
    if (std::string was = entry(a, item.key()), is = entry(b, item.key()); was != is)
      return {was, is};
  return {};
}

void meshwright::checkSameModel(const Plan &plan, const std::string &directory) {
  auto refuse = [&](const std::string &what, const std::string &saved, const std::string &mine,
                    const std::string &remedy) {
    if (saved != mine)
      fail("--resume: the checkpoint ", directory, " was trained with ", what, " ", saved,
           ", but this executable was compiled for ", mine, ": ", remedy,
           ", or start a new run with --init ", directory, "/model.safetensors");
  };
  withState(directory, [&](const Json &json) {
    refuse("the model", json.at("model").get<std::string>(), plan.model,
           "compile " + directory + configName(plan.config));
    refuse("--optimizer", json.at("optimizer").get<std::string>(), plan.optimizer,
           "compile with the checkpoint's optimizer");
    refuse("--seq", text(json.at("sequence").get<int64_t>()), text(plan.sequence),
           "compile with the checkpoint's --seq, which its place in the data counts in");
    refuse("a vocabulary of", text(json.at("vocabulary").get<int64_t>()), text(plan.vocabulary),
           "compile the checkpoint's model");
  });
  std::string path = directory + configName(plan.config);
  std::ifstream file(path);
  std::string saved(std::istreambuf_iterator<char>(file), {});
  if (!file)
    fail("--resume: cannot read ", path,
         ", the model that the checkpoint is of: name another checkpoint");
  auto [was, is] = difference(saved, plan.config);
  refuse("a model of", was, is, "compile " + path);
}
