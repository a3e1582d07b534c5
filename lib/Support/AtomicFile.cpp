//===- AtomicFile.cpp - files that appear complete or not at all ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/AtomicFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

llvm::Error meshwright::writeFileAtomically(llvm::StringRef bytes, llvm::StringRef output) {
  auto failed = [&](std::error_code error) {
    return llvm::createStringError(error, "cannot write '" + output + "': " + error.message());
  };
  // A device or pipe must not be replaced by a file.
  bool device = false;
  if (!llvm::sys::fs::is_other(output, device) && device) {
    std::error_code error;
    llvm::raw_fd_ostream os(output, error);
    if (!error) {
      os << bytes;
      os.flush();
      error = os.error();
      os.clear_error();
    }
    return error ? failed(error) : llvm::Error::success();
  }
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(output + ".%%%%%%.tmp");
  if (!file)
    return failed(llvm::errorToErrorCode(file.takeError()));
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << bytes;
  os.flush();
  if (std::error_code error = os.error()) {
    os.clear_error();
    llvm::consumeError(file->discard());
    return failed(error);
  }
  if (llvm::Error error = file->keep(output)) {
    llvm::consumeError(file->discard());
    return failed(llvm::errorToErrorCode(std::move(error)));
  }
  return llvm::Error::success();
}
