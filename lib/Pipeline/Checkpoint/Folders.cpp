//===- Folders.cpp - checkpoints and models as files ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Folders.h"

#include "common/checkpoint/FindCheckpoint.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace meshwright;
using namespace meshwright::checkpoint;
namespace fs = std::filesystem;

static constexpr const char *flag = "meshwright checkpoint:";

int64_t TensorFile::elements() const {
  int64_t all = 0;
  for (const std::string &name : reader->names())
    all += elementsIn(reader->find(name)->shape);
  return all;
}

const TensorFile *Folder::file(const std::string &name) const {
  for (const TensorFile &file : files)
    if (file.name == name)
      return &file;
  return nullptr;
}

const TensorFile *Folder::averages() const {
  const TensorFile *ofWeights = file(averagesName);
  return ofWeights ? ofWeights : file(adapterAveragesName);
}

static std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file)
    fail("cannot read ", path, ": ", errnoText(errno));
  return content.str();
}

/// The folder itself, or the checkpoint that its link "latest" names.
static std::string resolve(const std::string &path) {
  std::error_code error;
  std::string latest = latestIn(path);
  return fs::exists(path + "/state.json", error) || latest.empty() ? path : latest;
}

/// Whether `folder` has shards, as PyTorch writes them, itself.
static bool holdsShards(const std::string &folder) {
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (std::string name = entry.path().filename();
        name.rfind("shard-", 0) == 0 && entry.path().extension() == ".safetensors")
      return true;
  return false;
}

namespace {
/// A file that a state names, or the folder of shards in its place.
struct Named {
  std::string path; ///< within the checkpoint
  std::string id;   ///< empty if the state names neither
};
} // namespace

/// What `files` of a state says of the file `name`.
static Named namedIn(const Json &files, const std::string &name) {
  std::map<std::string, std::string> shards;
  std::string folder = shardFolder(name) + "/";
  for (const auto &[path, id] : files.items()) {
    std::string words = id.is_string() ? id.get<std::string>() : id.dump();
    if (path == name)
      return {name, words};
    if (path.rfind(folder, 0) == 0)
      shards[path.substr(folder.size())] = words;
  }
  return {folder, shards.empty() ? "" : idOfShards(shards)};
}

/// What checkpoints' folders have beside tensors and companions.
static bool isOfCheckpoint(const std::string &name) {
  return name == "state.json" || name == commitFile || name == uncommittedFile;
}

Folder checkpoint::openFolder(const std::string &given, Completeness wanted) {
  std::error_code error;
  if (!fs::exists(given, error))
    fail(given, ": there is no such file or folder; name a checkpoint, a folder of --save, or a safetensors file");
  Folder folder;
  auto add = [&](const std::string &path, const std::string &name) {
    folder.files.push_back({name, std::make_unique<SafeTensorsReader>(path, flag)});
  };
  if (!fs::is_directory(given, error)) {
    folder.path = fs::path(given).parent_path().string();
    add(given, weightsName);
    return folder;
  }
  folder.path = resolve(given);
  auto has = [&](const std::string &name) { return fs::is_regular_file(folder.path + "/" + name, error); };
  // Adds a file, or the folder of shards that is in its place.
  auto addAny = [&](const std::string &name) {
    std::string shards = folder.path + "/" + shardFolder(name);
    bool isSharded = !has(name) && fs::is_directory(shards, error);
    if (has(name) || isSharded)
      add(isSharded ? shards : folder.path + "/" + name, name);
    return has(name) || isSharded;
  };
  std::string index = std::string(weightsName) + ".index.json";
  if (has(index) && !has(weightsName))
    add(folder.path + "/" + index, weightsName);
  else if (!addAny(weightsName) && !addAny(adaptersName) && holdsShards(folder.path))
    add(folder.path, weightsName);
  if (folder.files.empty())
    fail(given, ": the folder has neither ", weightsName, " nor ", index, " nor ", adaptersName,
         ": name a checkpoint, a folder of --save or a model's folder");
  for (const char *name : {averagesName, adapterAveragesName, optimizerName})
    addAny(name);
  if (has("state.json")) {
    folder.stateText = readText(folder.path + "/state.json");
    folder.state = Json::parse(folder.stateText, nullptr, /*allow_exceptions=*/false);
    if (folder.state->is_discarded() || !folder.state->is_object())
      fail(folder.path, "/state.json is no JSON object: the file is damaged");
    folder.missing = missingCommit(folder.path, folder.stateText);
  } else if (isUnfinished(folder.path)) {
    folder.missing = text(folder.path, " has no state.json, so the run that wrote it ended before it was complete");
  }
  if (wanted == Completeness::Needed && !folder.missing.empty())
    fail(folder.missing, ": name another checkpoint");
  for (const fs::directory_entry &entry : fs::directory_iterator(folder.path))
    if (std::string name = entry.path().filename();
        entry.is_regular_file(error) && !isOfCheckpoint(name) && name.find(".safetensors") == name.npos)
      folder.companions.push_back(name);
  std::sort(folder.companions.begin(), folder.companions.end());
  return folder;
}

Folder checkpoint::openCheckpoint(const std::string &path) {
  Folder folder = openFolder(path);
  if (!folder.state)
    fail(path, " has no state.json, so it is no checkpoint: name a folder that --save wrote");
  return folder;
}

void checkpoint::checkSealed(const Folder &folder) {
  const Json &state = *folder.state;
  if (!state.contains("checksum") || !state["checksum"].is_string() || !isSealed(folder.stateText, state["checksum"]))
    fail("state.json does not have the checksum that it was written with");
  if (!folder.missing.empty())
    fail(folder.missing);
  if (!state.contains("files") || !state["files"].is_object())
    fail("state.json does not say which files belong to it");
  const std::initializer_list<const char *> names = {weightsName, adaptersName, optimizerName};
  for (const char *name : names) {
    Named named = namedIn(state["files"], name);
    const TensorFile *file = folder.file(name);
    if (!named.id.empty() && !file)
      fail("it has no ", named.path);
    if (!named.id.empty() && named.id != file->reader->id())
      fail(named.path, " is of another checkpoint than state.json: its id is ", file->reader->id(), ", not ", named.id);
  }
  for (const auto &[path, ignored] : state["files"].items())
    if (std::none_of(names.begin(), names.end(), [&, &path = path](const char *name) {
          return path == name || path.rfind(shardFolder(name) + "/", 0) == 0;
        }))
      fail("state.json names a file that checkpoints do not have, ", path);
}

std::string checkpoint::writtenName(const SafeTensorsReader &reader, const std::string &name) {
  const std::string &written = reader.find(name)->written;
  return written.empty() ? name : written;
}

/// Elements in `from`, of `type`, as f32.
static void convertElements(ElementType type, const unsigned char *from, int64_t count, float *to) {
  auto each = [&](auto stored, auto convert) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(&stored, from + i * int64_t(sizeof(stored)), sizeof(stored));
      to[i] = float(convert(stored));
    }
  };
  switch (type) {
  case ElementType::F32:
    std::memcpy(to, from, size_t(count) * 4);
    return;
  case ElementType::F64:
    return each(double(), [](double value) { return value; });
  case ElementType::BF16:
    return each(uint16_t(), bf16ToFloat);
  case ElementType::F16:
    return each(uint16_t(), f16ToFloat);
  case ElementType::I32:
    return each(int32_t(), [](int32_t value) { return value; });
  case ElementType::I16:
    return each(int16_t(), [](int16_t value) { return value; });
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
  case ElementType::I8:
    break; // no reader gives them
  }
  __builtin_unreachable();
}

void checkpoint::readElements(const SafeTensorsReader::Tensor &tensor, int64_t begin, int64_t count, float *to) {
  forRuns(tensor, begin, count, [&](const unsigned char *from, int64_t run, int64_t at) {
    convertElements(tensor.type, from, run, to + at);
  });
}

NewFolder::NewFolder(const std::string &given) : path(given) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  partial = path + ".partial-" + std::to_string(getpid());
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)))
    fail("-o ", path, ": it is there already: name a new folder");
  fs::create_directories(partial, error);
  if (error)
    fail("-o ", path, ": cannot make the folder: ", error.message(), ": name a path that you may write to");
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!partial.empty())
    fs::remove_all(partial, ignored);
}

std::string NewFolder::file(const std::string &name) const {
  fs::path whole = fs::path(partial) / name;
  fs::create_directories(whole.parent_path());
  return whole.string();
}

void NewFolder::write(const std::string &name, const std::string &text) const {
  OutputFile out(file(name));
  out.write(text);
  out.sync();
  out.close();
}

void NewFolder::copyCompanions(const Folder &from) const {
  for (const std::string &name : from.companions)
    write(name, readText(from.path + "/" + name));
}

void NewFolder::finish() {
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(partial))
    if (entry.is_directory())
      syncDirectory(entry.path().string());
  syncDirectory(partial);
  std::error_code error;
  fs::rename(partial, path, error);
  if (error)
    fail("-o ", path, ": cannot give the folder its name: ", error.message());
  partial.clear();
  std::string parent = fs::path(path).parent_path().string();
  syncDirectory(parent.empty() ? "." : parent);
}
