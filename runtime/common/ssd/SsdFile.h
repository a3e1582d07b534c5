//===- SsdFile.h - a rank's tensors on an SSD --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SSDFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_SSDFILE_H

#include "common/monitor/MappingWatch.h"
#include "common/plan/Arena.h"
#include "common/ssd/SsdTransfers.h"

#include <optional>

namespace meshwright {

/// A file of zeros, which is gone when the process ends, however that ends. Its bytes are allocated at once where the
/// file system can, so that the disk cannot be full later. An Error where `folder` is not one of a local disk that has room for them.
class SsdFile : public OffloadMemory {
public:
  SsdFile(const std::string &folder, int rank, int64_t bytes, char *staging, int64_t stagingBytes);
  ~SsdFile() override;

  /// The file as the host sees it between steps: pages of it are in memory while they are used.
  char *data() const override { return mapped; }
  void copy(void *to, const void *from, int64_t bytes, bool stores) override;
  void settle() override;
  std::string note() const override { return refusal; }

private:
  void open(const std::string &folder, int rank);
  void allocate(const std::string &folder);
  std::unique_ptr<IoQueue> openQueue();

  std::string path;
  int file = -1;
  int64_t bytes;
  char *mapped = nullptr;
  std::optional<MappingWatch> watch;
  std::string refusal; ///< of io_uring, and what is done instead
  std::unique_ptr<SsdTransfers> fetches, stores;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SSDFILE_H
