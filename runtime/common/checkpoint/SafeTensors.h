//===- SafeTensors.h - the safetensors file format ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Eight bytes of header length, the header as JSON (name -> dtype, shape,
// data_offsets), then the tensors, row-major and little-endian:
// https://huggingface.co/docs/safetensors
//
// A file is read as strictly as the format's own library does: no hole, no overlap, no key
// twice, a header of 100 MB at most. What is written has checksums in "__metadata__":
// "xxh128" of the header, "xxh128.NAME" of each tensor's bytes. A file that has the first
// must have all of them; one without, as others write, has none.
//
// Large models come as several such files and an index, a JSON file whose
// "weight_map" says for each tensor which of the files beside it has it.
//
// A sharded checkpoint is a folder of such files, each with boxes of tensors, in the layout of PyTorch's distributed
// checkpoints (torch.distributed.checkpoint, HuggingFaceStorageWriter): "DCP_SHARDING_INFO" in "__metadata__" is JSON that
// says where in its tensor each box begins, {NAME: {"saved_offsets": [..]}}.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
#define MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/OutputFile.h"
#include "common/data/MappedFile.h"
#include "common/plan/ElementType.h"
#include "common/plan/Sharding.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A safetensors file, mapped, all those of an index (a path that ends in .json), or all those of a folder of shards.
/// The constructor checks all of the headers, and that shards tile their tensors.
class SafeTensorsReader {
public:
  /// What one file of a folder of shards has of a tensor.
  struct Chunk {
    Box box;
    const unsigned char *data;
    int64_t bytes;
    std::string checksum;
    const MappedFile *file;
  };
  struct Tensor {
    ElementType type = ElementType::F32;
    std::vector<int64_t> shape;
    const unsigned char *data = nullptr; ///< null if it is in chunks
    int64_t bytes = 0;
    std::string checksum; ///< empty if the file has none
    std::string written;  ///< its name with the prefix of the text part of a larger model; empty without one
    const MappedFile *file = nullptr;
    std::vector<Chunk> chunks = {}; ///< of a folder of shards
    /// Where the box begins that a file of shards has, read alone; none where a file does not say it.
    std::optional<std::vector<int64_t>> offsets = {};
  };

  SafeTensorsReader(const std::string &path, const std::string &flag);

  /// The tensor called `name`, with or without the prefix of a model, such as
  /// "transformer." or "model.", or the one that the file has in its place, as two tied tensors
  /// are one; null if there is none.
  const Tensor *find(const std::string &name) const;
  /// The type of such a tensor of integers, masks or numbers of 8 bits, which are not converted;
  /// empty if there is none.
  std::string otherType(const std::string &name) const;
  /// The names of all tensors as the file has them, but for what wrappers of a model put into them
  /// and for the prefix of the text part of a larger model.
  std::vector<std::string> names() const;
  /// The names of tensors of integers, masks or numbers of 8 bits.
  std::vector<std::string> otherNames() const;
  const std::string &path() const { return name; }
  /// The file, or those that the index names.
  const std::deque<MappedFile> &mapped() const { return files; }
  /// The checksum of the header, and so of all there is in it; of a folder of shards, that of all their headers. Empty if
  /// a file has none.
  const std::string &id() const { return checksum; }
  /// An Error if the bytes of `tensor`, called `name`, are not what its checksum says.
  void verify(const Tensor &tensor, const std::string &name) const;

private:
  struct Header;
  Header openFile(const std::string &path, const std::string &flag);
  void openIndex();
  void openShards();
  void addTied(const std::map<std::string, std::string> &metadata);

  std::string name, flag, checksum;
  std::deque<MappedFile> files;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> others; ///< types of tensors that are not converted
  std::map<std::string, std::string> tied;   ///< names that are not in the file -> those that are
};

/// Calls `take` with the elements [begin, begin + count) of a tensor, in runs that lie together: their memory, their
/// number, and which of the elements the first one is, counted from `begin`. Runs of shards come in the order of chunks.
void forRuns(const SafeTensorsReader::Tensor &tensor, int64_t begin, int64_t count,
             const std::function<void(const unsigned char *data, int64_t count, int64_t at)> &take);

/// The folder of shards that a sharded checkpoint has in the place of the file `path`.
inline std::string shardFolder(const std::string &path) { return path.substr(0, path.rfind(".safetensors")); }

/// The folder of the model whose weights are at `path`: that of a file, or of a folder of shards that is within it or
/// is it.
std::string modelFolder(const std::string &path);

/// The id of a folder of shards whose files have these ids, by name.
std::string idOfShards(const std::map<std::string, std::string> &ids);

/// The name without the prefix of a model, or of the text part of one.
std::string withoutModelPrefix(const std::string &name);

/// Writes tensors whose names, shapes and types are known beforehand.
class SafeTensorsWriter {
public:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    ElementType type = ElementType::F32; ///< or BF16 or F16
    std::vector<int64_t> offsets = {};   ///< of a shard: where the box of this shape begins in its tensor
  };
  enum Kind { Whole, Shard };

  /// Creates `path`, with room for the header. A shard says which boxes of tensors it has.
  SafeTensorsWriter(const std::string &path, const std::vector<Entry> &entries, Kind kind = Whole);
  /// Writes the next elements, of the entry's type: all of each entry, in order, at once or in
  /// several calls.
  void write(const void *data, int64_t elements);
  /// Waits until what has been written is on the disk.
  void sync() { file.sync(); }
  /// Writes the header and waits until everything is on the disk. Returns the file's id.
  std::string finish();

private:
  std::string headerText() const;

  OutputFile file;
  std::vector<Entry> entries;
  Kind kind;
  std::vector<std::string> checksums; ///< of the tensors written
  RunningChecksum checksum;           ///< of the next one
  int64_t written = 0;                ///< elements of that one
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
