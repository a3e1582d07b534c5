//===- TensorBoard.h - event files of scalars -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TENSORBOARD_H
#define MESHWRIGHT_RUNTIME_COMMON_TENSORBOARD_H

#include "common/checkpoint/OutputFile.h"
#include "common/monitor/Metrics.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace meshwright {

/// A file of TensorBoard's events (TFRecords of Event messages) in a folder that may have those of
/// earlier runs: what these say of steps from `firstStep` on is replaced.
class EventFile {
public:
  EventFile(const std::string &folder, int64_t firstStep);
  void write(const StepMetrics &metrics);
  /// TensorBoard drops what it knows of steps from `step` on.
  void goBackTo(int64_t step);
  void close() { file->close(); }

private:
  void record(const std::string &event);

  std::unique_ptr<OutputFile> file;
};

/// CRC-32C (Castagnoli) of `bytes`, masked as TFRecords have it.
uint32_t maskedCrc(const std::string &bytes);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TENSORBOARD_H
