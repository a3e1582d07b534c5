//===- OutputFolder.h - what earlier compiles left in a folder --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_OUTPUTFOLDER_H
#define MESHWRIGHT_OUTPUTFOLDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace meshwright {

/// Removes the files whose names `isOurs` picks: an earlier compile left them, and they would pass
/// for a part of this one.
inline llvm::Error removeFiles(llvm::StringRef folder,
                               llvm::function_ref<bool(llvm::StringRef)> isOurs) {
  namespace fs = llvm::sys::fs;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error))
    if (isOurs(llvm::sys::path::filename(file->path())))
      if (std::error_code failed = fs::remove(file->path()))
        return llvm::createStringError("cannot remove '" + file->path() + "': " + failed.message());
  return error ? llvm::createStringError("cannot read the folder '" + folder +
                                         "': " + error.message())
               : llvm::Error::success();
}

} // namespace meshwright

#endif // MESHWRIGHT_OUTPUTFOLDER_H
