//===- SafeTensors.h - the safetensors file format ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Eight bytes of header length, the header as JSON (name -> dtype, shape,
// data_offsets), then the tensors, row-major and little-endian:
// https://huggingface.co/docs/safetensors
//
// Large models come as several such files and an index, a JSON file whose
// "weight_map" says for each tensor which of the files beside it has it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
#define MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H

#include "common/ElementType.h"
#include "common/MappedFile.h"
#include "common/OutputFile.h"

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
  };

  SafeTensorsReader(const std::string &path, const std::string &flag);

  /// The tensor called `name`, with or without a leading "transformer." or
  /// "model."; null if there is none.
  const Tensor *find(const std::string &name) const;
  /// The names of all tensors as the file has them.
  std::vector<std::string> names() const;
  const std::string &path() const { return name; }
  /// The file, or those that the index names.
  const std::deque<MappedFile> &mapped() const { return files; }

private:
  struct Header;
  Header openFile(const std::string &path, const std::string &flag);
  void openIndex(const std::string &flag);

  std::string name;
  std::deque<MappedFile> files;
  std::map<std::string, Tensor> tensors;
};

/// The name without a leading "transformer." or "model.".
std::string withoutModelPrefix(const std::string &name);

/// Writes f32 tensors whose names and shapes are known beforehand.
class SafeTensorsWriter {
public:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
  };

  /// Creates `path` and writes its header.
  SafeTensorsWriter(const std::string &path, const std::vector<Entry> &entries);
  /// Writes the next tensor; to be called once per entry, in order.
  void write(const float *data, int64_t elements) { file.write(data, elements * 4); }
  /// Waits until everything is on the disk.
  void finish();

private:
  OutputFile file;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
