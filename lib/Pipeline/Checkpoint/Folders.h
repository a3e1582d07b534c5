//===- Folders.h - checkpoints and models as files ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_FOLDERS_H
#define MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_FOLDERS_H

#include "common/checkpoint/SafeTensors.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::checkpoint {

using Json = nlohmann::ordered_json;

inline constexpr const char weightsName[] = "model.safetensors", adaptersName[] = "adapter_model.safetensors",
                            optimizerName[] = "optimizer.safetensors", averagesName[] = "ema/model.safetensors",
                            adapterAveragesName[] = "ema/adapter_model.safetensors";

/// Tensors of a file, of all files of an index, or of all shards of a folder.
struct TensorFile {
  std::string name; ///< within the folder, as a checkpoint has it
  std::unique_ptr<SafeTensorsReader> reader;

  int64_t elements() const;
};

/// A checkpoint of --save, or the weights of a model as Hugging Face has them.
struct Folder {
  std::string path;
  std::string stateText;     ///< empty where it is no checkpoint
  std::optional<Json> state; ///< of `stateText`
  std::string missing;       ///< why the run that wrote it has not completed it; empty if it has
  std::vector<TensorFile> files; ///< weights first
  /// Files beside the tensors and the state, which go where the weights go.
  std::vector<std::string> companions;

  const TensorFile &weights() const { return files.front(); }
  const TensorFile *file(const std::string &name) const;
  /// The averages of the weights or of the adapters; null where there are none.
  const TensorFile *averages() const;
};

/// The folder at `path`: a checkpoint, the latest in a folder of --save, a model's folder or a
/// safetensors file. An Error where it has no weights, where the headers of its files are damaged, or where it is not
/// complete; LookAtAny leaves what is missing to the caller.
enum class Completeness { Needed, LookAtAny };
Folder openFolder(const std::string &path, Completeness wanted = Completeness::Needed);

/// The checkpoint at `path`; an Error where it has no state.
Folder openCheckpoint(const std::string &path);

/// An Error where the state of `folder` does not have its checksum, where a file is not the one that the state names, or
/// where it names one that checkpoints do not have.
void checkSealed(const Folder &folder);

/// The name under which tensors of `reader` called `name` are written: with the prefix of the text part
/// of a larger model, where its file has one.
std::string writtenName(const SafeTensorsReader &reader, const std::string &name);

/// Elements of a tensor as f32, from `begin` on; reads no more than `count`.
void readElements(const SafeTensorsReader::Tensor &tensor, int64_t begin, int64_t count, float *to);

/// Calls `take` with all elements of a tensor, part by part, after verifying its checksum.
template <typename Take>
void forElements(const SafeTensorsReader &reader, const std::string &name, Take take) {
  constexpr int64_t block = 1 << 20;
  const SafeTensorsReader::Tensor &tensor = *reader.find(name);
  reader.verify(tensor, name);
  std::vector<float> values;
  for (int64_t begin = 0, left = elementsIn(tensor.shape); left > 0; begin += block, left -= block) {
    values.resize(size_t(std::min(block, left)));
    readElements(tensor, begin, int64_t(values.size()), values.data());
    take(values.data(), int64_t(values.size()));
  }
}

/// A folder that is being written; it gets its name once all of it is on the disk.
class NewFolder {
public:
  /// An Error where something is at `path` already.
  explicit NewFolder(const std::string &path);
  ~NewFolder();
  NewFolder(const NewFolder &) = delete;
  NewFolder &operator=(const NewFolder &) = delete;

  /// Where a file called `name` is written.
  std::string file(const std::string &name) const;
  void write(const std::string &name, const std::string &text) const;
  /// Copies the files that accompany weights.
  void copyCompanions(const Folder &from) const;
  void finish();

private:
  std::string path, partial;
};

} // namespace meshwright::checkpoint

#endif // MESHWRIGHT_LIB_PIPELINE_CHECKPOINT_FOLDERS_H
