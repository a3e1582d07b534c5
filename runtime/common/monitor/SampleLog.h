//===- SampleLog.h - which sequences each step has read -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAMPLELOG_H
#define MESHWRIGHT_RUNTIME_COMMON_SAMPLELOG_H

#include "common/monitor/Metrics.h"

#include <utility>
#include <vector>

namespace meshwright {

/// The JSON-lines file of --log-samples: where a run begins, or goes on, the names of the files of tokens,
/// {"step": 0, "files": ["a.bin", ...]}, and for each step the file's number and the number there of each
/// sequence of the global batch, {"step": 0, "samples": [[0, 17], ...]}.
class SampleLog {
public:
  using Samples = std::vector<std::pair<int64_t, int64_t>>;

  SampleLog(const std::string &path, int64_t firstStep, const std::vector<std::string> &files);
  void write(int64_t step, const Samples &samples);
  /// Drops the lines of steps from `step` on, which the run is about to repeat.
  void goBackTo(int64_t step);
  /// An Error if what was written is not there.
  void close() { file.close(); }

private:
  void writeFiles();

  MetricsFile file;
  int64_t firstStep; ///< whose line names the files
  std::vector<std::string> files;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAMPLELOG_H
