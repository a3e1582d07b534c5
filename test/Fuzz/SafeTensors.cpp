//===- SafeTensors.cpp - any bytes as a safetensors file --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The first byte says what the others are: a whole file, a header before 256 bytes of tensors, or an index.
//
//===----------------------------------------------------------------------===//
#include "Scratch.h"

#include "common/checkpoint/SafeTensors.h"
#include "common/monitor/Error.h"

using namespace meshwright;

static std::string framed(const std::string &header) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += char(uint64_t(header.size()) >> (8 * i));
  return bytes + header + std::string(256, '\1');
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::Scratch scratch;
  static const std::string part = scratch.write(
      "part.safetensors", framed(R"({"a":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]},"b":{"dtype":"BF16","shape":[64],"data_offsets":[128,256]}})"));
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  std::string path;
  switch (data[0] % 4) {
  case 0:
    path = scratch.write("file.safetensors", bytes);
    break;
  case 1:
    path = scratch.write("model.safetensors.index.json", bytes);
    break;
  default:
    path = scratch.write("file.safetensors", framed(bytes));
  }
  try {
    SafeTensorsReader reader(path, "--init");
    for (const std::string &name : reader.names()) {
      const SafeTensorsReader::Tensor *tensor = reader.find(name);
      if (!tensor)
        continue;
      int64_t count = 1;
      for (int64_t extent : tensor->shape)
        count *= extent;
      forRuns(*tensor, 0, count, [&](const unsigned char *run, int64_t elements, int64_t) {
        for (int64_t i = 0; i < elements * bytesOf(tensor->type); ++i)
          fuzz::sink = run[i];
      });
      reader.verify(*tensor, name);
    }
    for (const std::string &name : reader.otherNames())
      reader.otherType(name);
  } catch (const Error &) {
  }
  return 0;
}
