//===- InputFile.h - files that tools read ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Tools read a file whole. A FIFO would make them wait for a writer that may never
// come, a device such as /dev/zero has no end, and a file given by mistake may be
// larger than memory: each is refused before it is read.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INPUTFILE_H
#define MESHWRIGHT_INPUTFILE_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

namespace meshwright {

/// What a file is read as, and how many MiB it has at most; or whether it is mapped, so that only the
/// pages that are touched are read.
struct InputKind {
  llvm::StringLiteral name;
  uint64_t mebibytes;
  bool isMapped = false;
};

inline constexpr InputKind recipeInput{"a recipe", 4}, clusterInput{"a cluster", 4}, configInput{"a model description", 16},
    jsonInput{"a JSON file", 256}, traceInput{"a trace", 4096}, irInput{"IR", 4096},
    planInput{"an executable or a plan", 4096}, metricsInput{"a file of metrics", 16384},
    indexInput{"the index of a dump", 4096}, dumpInput{"a dump", uint64_t(1) << 30, true};

/// Why the file at `path` cannot be read as a `kind`, as what follows "cannot read FILE: ".
inline llvm::Error checkInput(const llvm::Twine &path, InputKind kind) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return llvm::createStringError(error, error.message());
  if (llvm::sys::fs::is_directory(status))
    return llvm::createStringError("Is a directory");
  if (!llvm::sys::fs::is_regular_file(status))
    return llvm::createStringError("it is a pipe or a device; name a regular file");
  if (status.getSize() >> 20 >= kind.mebibytes)
    return llvm::createStringError("it has " + llvm::Twine(status.getSize()) + " bytes, but " +
                                   kind.name + " has less than " + llvm::Twine(kind.mebibytes) +
                                   " MiB; name another file");
  return llvm::Error::success();
}

/// The contents of the file at `path`, or the error of `checkInput`.
inline llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(const llvm::Twine &path, InputKind kind, bool isText = false) {
  if (llvm::Error error = checkInput(path, kind))
    return std::move(error);
  auto file = llvm::MemoryBuffer::getFile(path, isText, /*RequiresNullTerminator=*/!kind.isMapped);
  if (!file)
    return llvm::createStringError(file.getError(), file.getError().message());
  return std::move(*file);
}

} // namespace meshwright

#endif // MESHWRIGHT_INPUTFILE_H
