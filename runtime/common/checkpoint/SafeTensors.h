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
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
#define MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/OutputFile.h"
#include "common/data/MappedFile.h"
#include "common/plan/ElementType.h"

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// A safetensors file, mapped, or all those of an index (a path that ends in .json).
/// The constructor checks all of the headers.
class SafeTensorsReader {
public:
  struct Tensor {
    ElementType type = ElementType::F32;
    std::vector<int64_t> shape;
    const unsigned char *data = nullptr;
    int64_t bytes = 0;
    std::string checksum; ///< empty if the file has none
    std::string written;  ///< its name with the prefix of the text part of a larger model; empty without one
    const MappedFile *file = nullptr;
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
  /// The checksum of the header, and so of all there is in it; empty if the file has none.
  const std::string &id() const { return checksum; }
  /// An Error if the bytes of `tensor`, called `name`, are not what its checksum says.
  void verify(const Tensor &tensor, const std::string &name) const;

private:
  struct Header;
  Header openFile(const std::string &path, const std::string &flag);
  void openIndex();
  void addTied(const std::map<std::string, std::string> &metadata);

  std::string name, flag, checksum;
  std::deque<MappedFile> files;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> others; ///< types of tensors that are not converted
  std::map<std::string, std::string> tied;   ///< names that are not in the file -> those that are
};

/// The name without the prefix of a model, or of the text part of one.
std::string withoutModelPrefix(const std::string &name);

/// Writes tensors whose names, shapes and types are known beforehand.
class SafeTensorsWriter {
public:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    ElementType type = ElementType::F32; ///< or BF16 or F16
  };

  /// Creates `path`, with room for the header.
  SafeTensorsWriter(const std::string &path, const std::vector<Entry> &entries);
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
  std::vector<std::string> checksums; ///< of the tensors written
  RunningChecksum checksum;           ///< of the next one
  int64_t written = 0;                ///< elements of that one
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
