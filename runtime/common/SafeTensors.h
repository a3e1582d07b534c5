//===- SafeTensors.h - the safetensors file format ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Eight bytes of header length, the header as JSON (name -> dtype, shape,
// data_offsets), then the tensors, row-major and little-endian:
// https://huggingface.co/docs/safetensors
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H
#define MESHWRIGHT_RUNTIME_COMMON_SAFETENSORS_H

#include "common/ElementType.h"
#include "common/MappedFile.h"
#include "common/OutputFile.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// A safetensors file, mapped. The constructor checks all of its header.
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
  const std::string &path() const { return file.path(); }

private:
  MappedFile file;
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
