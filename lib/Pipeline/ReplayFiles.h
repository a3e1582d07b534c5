//===- ReplayFiles.h - programs and steps that executables carry and dump ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_REPLAYFILES_H
#define MESHWRIGHT_LIB_PIPELINE_REPLAYFILES_H

#include "meshwright/Interpreter.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

namespace meshwright {

/// The text that `exec-assign-value-ids` has kept of a module or of its programs; empty
/// where it has not run.
llvm::Expected<std::string> tensorForm(mlir::ModuleOp module);

/// What one rank has written of a step: runtime/common/monitor/Dump.h describes the files.
class RankDump {
public:
  static llvm::Expected<RankDump> open(llvm::StringRef directory, int64_t rank);

  int64_t ranks = 0, step = 0;

  /// A variable, an input or an output, before or after the step.
  llvm::Expected<interp::Tensor> state(llvm::StringRef when, llvm::StringRef kind,
                                       llvm::StringRef name, mlir::RankedTensorType type) const;
  /// The next value of a result; the first call has that of the op's first run.
  llvm::Expected<interp::Tensor> next(int64_t value, int64_t result, mlir::RankedTensorType type);
  /// How many values `next` has returned, and how many there are.
  int64_t taken = 0, count = 0;

private:
  struct FileRange {
    int64_t begin, bytes;
  };
  llvm::Expected<interp::Tensor> read(FileRange range, const llvm::Twine &what,
                                      mlir::RankedTensorType type) const;

  std::string path; ///< of the index
  llvm::json::Value index = nullptr;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
  std::map<std::pair<int64_t, int64_t>, std::vector<FileRange>> values;
  std::map<std::pair<int64_t, int64_t>, size_t> used;
};

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_REPLAYFILES_H
