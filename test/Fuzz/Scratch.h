//===- Scratch.h - files that fuzz targets read -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FUZZ_SCRATCH_H
#define MESHWRIGHT_FUZZ_SCRATCH_H

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace meshwright::fuzz {

/// A folder in memory of this process's own, which goes when it ends.
class Scratch {
public:
  Scratch() : folder("/dev/shm/meshwright-fuzz-" + std::to_string(getpid())) { std::filesystem::create_directories(folder); }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(const std::string &name) const { return folder + "/" + name; }
  /// Writes `bytes` into the file `name`, the same one each time, and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    FILE *file = fopen(path(name).c_str(), "wb");
    if (!file || fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
      abort();
    fclose(file);
    return path(name);
  }

private:
  std::string folder;
};

/// Keeps the results of reads.
inline volatile unsigned char sink;

} // namespace meshwright::fuzz

#endif // MESHWRIGHT_FUZZ_SCRATCH_H
