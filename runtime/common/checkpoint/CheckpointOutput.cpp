//===- CheckpointOutput.cpp - writing a checkpoint ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/CheckpointOutput.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/Finite.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/OutputFile.h"
#include "common/checkpoint/SaveFolder.h"
#include "common/checkpoint/Shards.h"
#include "common/communication/RankText.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "common/train/Context.h"
#include "meshwright/runtime/Averages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

using namespace meshwright;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// A folder as Hugging Face has it, with averages as weights.
static const char *averagesFolder = "ema";

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

int64_t CheckpointFile::bytes() const { return bytesIn(tensors); }

static int64_t bytesIn(const std::vector<CheckpointFile> &files) {
  int64_t all = 0;
  for (const CheckpointFile &file : files)
    all += file.bytes();
  return all;
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

int64_t meshwright::shardBytes(const Plan &plan, int64_t rank) {
  auto bytesOfRank = [&](const std::vector<FileTensor> &tensors) {
    int64_t bytes = 0;
    for (const std::vector<FileTensor> &file : shardsOf(plan, tensors, rank))
      bytes += bytesIn(file);
    return bytes;
  };
  int64_t bytes = bytesOfRank(fileTensors(plan, trainedWeights(plan))) +
                  bytesOfRank(fileTensors(plan, WeightKind::OptimizerStates));
  // Until the first update, weights are in the place of their averages.
  if (keepsAverages(plan))
    bytes += std::max(bytesOfRank(averagedTensors(plan)), bytesOfRank(fileTensors(plan, trainedWeights(plan))));
  return bytes;
}

/// The file of a checkpoint that holds the weights that are trained.
static const char *weightsFile(const Plan &plan) {
  return plan.adapterConfig ? adapterFile : modelFile;
}

std::vector<CheckpointFile> meshwright::checkpointFiles(const MwContext &context, bool isSharded) {
  const Plan &plan = context.plan;
  std::vector<CheckpointFile> files;
  if (keepsAverages(plan))
    files.push_back({text(averagesFolder, "/", weightsFile(plan)), averagedTensors(plan)});
  files.push_back({weightsFile(plan), fileTensors(plan, trainedWeights(plan))});
  files.push_back({optimizerFile, fileTensors(plan, WeightKind::OptimizerStates)});
  for (CheckpointFile &file : files)
    for (FileTensor &tensor : file.tensors)
      tensor.name = savedName(context, tensor);
  if (!isSharded)
    return files;
  std::vector<CheckpointFile> shards;
  for (const CheckpointFile &file : files) {
    std::vector<std::vector<FileTensor>> mine = shardsOf(plan, file.tensors, context.rank());
    for (size_t i = 0; i < mine.size(); ++i)
      shards.push_back({shardFolder(file.path) + "/" + shardName(context.rank(), i, mine.size()), std::move(mine[i]),
                        true});
  }
  return shards;
}

std::string meshwright::stateText(const Plan &plan, const TrainingState &state, const FileIds &ids, bool isCommitted) {
  nlohmann::ordered_json json = {
      {"version", ids.count(optimizerFile) ? stateVersion : shardedVersion},
      {"checksum", noChecksum},
      {"files", ids},
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
  if (isCommitted)
    json["commit"] = "file";
  if (const auto &scale = state.lossScale)
    json["loss_scale"] = {{"scale", scale->scale},
                          {"good_steps", scale->goodSteps},
                          {"overflows", scale->overflows},
                          {"skipped", scale->skipped}};
  if (const auto &rates = state.rates)
    json["rates"] = {{"largest", rates->largest}, {"sum", rates->sum}};
  auto expertLoads = nlohmann::ordered_json::object();
  for (const auto &[layer, loads] : state.expertLoads)
    expertLoads[std::to_string(layer)] = loads;
  if (!expertLoads.empty())
    json["expert_loads"] = std::move(expertLoads);
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
  json["numbers"] = state.numbers;
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

std::string meshwright::beginCheckpoint(const Plan &plan, SaveFolder &folder, int64_t step, int64_t bytes) {
  checkSpace(folder.path(), bytes, "a checkpoint");
  std::string partial = folder.begin(checkpointName(step));
  if (keepsAverages(plan))
    fs::create_directory(partial + "/" + averagesFolder);
  return partial;
}

FileIds meshwright::gatherIds(RankGroup &world, const FileIds &ids) {
  std::string mine;
  for (const auto &[file, id] : ids)
    mine += file + '\0' + id + '\0';
  FileIds all;
  for (const std::string &words : gatherText(world, mine)) {
    std::istringstream stream(words);
    stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
    for (std::string file, id; std::getline(stream, file, '\0') && std::getline(stream, id, '\0');)
      all[file] = id;
  }
  return all;
}

void CheckpointOutput::beginFile(const CheckpointFile &file) {
  std::vector<SafeTensorsWriter::Entry> entries;
  for (const FileTensor &tensor : file.tensors) {
    entries.push_back({tensor.name, tensor.writtenShape(), ElementType::F32, {}});
    if (tensor.box)
      entries.back().offsets = tensor.box->begin;
  }
  path = file.path;
  std::string folder = fs::path(partial + "/" + path).parent_path().string();
  std::error_code error;
  if (file.isShard && !fs::is_directory(folder, error)) {
    fs::create_directory(folder, error); // Another rank may have made it meanwhile.
    if (!fs::is_directory(folder))
      fail("--save: cannot make the directory ", folder, ": ", error.message(), ": every rank needs to see the folder of ",
           "--save, unless with --save-format merged");
  }
  writer = std::make_unique<SafeTensorsWriter>(partial + "/" + path, entries,
                                               file.isShard ? SafeTensorsWriter::Shard : SafeTensorsWriter::Whole);
  waiting = 0;
}

void CheckpointOutput::write(const float *elements, int64_t count) {
  writer->write(elements, count);
  if (waiting += count * 4; waiting >= Rounds::part) {
    writer->sync();
    waiting = 0;
  }
}

void CheckpointOutput::endFile() {
  std::string id = writer->finish();
  writer.reset();
  if (path.rfind(text(averagesFolder, "/"), 0) != 0)
    written[path] = id;
}

void meshwright::publishCheckpoint(const Plan &plan, SaveFolder &folder, int64_t step, const std::string &state,
                                   fs::file_time_type time, int64_t keep) {
  std::string name = checkpointName(step), partial = folder.partialName(name);
  std::vector<std::string> models = {partial};
  if (keepsAverages(plan))
    models.insert(models.begin(), partial + "/" + averagesFolder);
  for (const std::string &model : models) {
    writeText(model + configName(plan.config), plan.config);
    if (plan.adapterConfig)
      writeText(model + "/" + adapterConfigFile, *plan.adapterConfig);
  }
  writeText(partial + "/state.json", state);
  // A store that does not take it has its own.
  std::error_code ignored;
  fs::last_write_time(partial + "/state.json", time, ignored);
  folder.publish(name, keep);
}

void meshwright::checkState(MwContext &context, const VariableAddresses &addresses) {
  checkFinite(context.plan, addresses, context.rank(), context.threads);
  context.world->barrier(); // Nothing is published before all have looked.
}

void meshwright::writeTensors(MwContext &context, const VariableAddresses &addresses, const std::vector<CheckpointFile> &files,
                              CheckpointOutput *output) {
  Rounds rounds(*context.world, bytesIn(files));
  for (const CheckpointFile &file : files) {
    if (output)
      output->beginFile(file);
    GatherBuffers buffers;
    for (const FileTensor &tensor : file.tensors)
      gatherTensor(context, addresses, tensor, buffers, [&](const float *elements, int64_t count) {
        if (output)
          output->write(elements, count);
        rounds.done(count * 4);
      });
    if (output)
      output->endFile();
  }
  rounds.finish();
}

void meshwright::saveCheckpoint(MwContext &context, const VariableAddresses &addresses,
                                SaveFolder *folder, int64_t keep, const TrainingState &state, bool isSharded) {
  ActivityScope activity(context.status, "saving a checkpoint");
  auto time = fs::file_time_type::clock::now();
  TraceScope span(context.trace.get(), "checkpoint", "io");
  try {
    checkState(context, addresses);
    std::string partial = folder ? beginCheckpoint(context.plan, *folder, state.step, checkpointBytes(context.plan)) : "";
    if (isSharded)
      partial = broadcastText(*context.world, partial, 0);
    std::optional<CheckpointOutput> output;
    if (folder || isSharded)
      output.emplace(context.plan, partial);
    writeTensors(context, addresses, checkpointFiles(context, isSharded), output ? &*output : nullptr);
    FileIds ids = isSharded ? gatherIds(*context.world, output->ids()) : output ? output->ids() : FileIds();
    if (folder)
      publishCheckpoint(context.plan, *folder, state.step, stateText(context.plan, state, ids, folder->commitsByFile()), time,
                        keep);
  } catch (const Error &error) {
    fail("saving the checkpoint of step ", state.step, ": ", error.what());
  }
  context.world->barrier();
}

void meshwright::copyTensors(MwContext &context, const VariableAddresses &addresses,
                             const std::vector<CheckpointFile> &files, float *memory) {
  Rounds rounds(*context.world, bytesIn(files));
  for (const CheckpointFile &file : files) {
    GatherBuffers buffers;
    buffers.into = memory;
    for (const FileTensor &tensor : file.tensors)
      gatherTensor(context, addresses, tensor, buffers,
                   [&](const float *, int64_t count) { rounds.done(count * 4); });
    if (memory)
      memory += file.bytes() / 4;
  }
  rounds.finish();
}
