//===- InsertedPass.h - passes of users between those of the compiler -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_INSERTEDPASS_H
#define MESHWRIGHT_LIB_PIPELINE_INSERTEDPASS_H

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// What --insert-pass says: after=dist-partition:my-pass{option=1}.
struct InsertedPass {
  std::string text;   ///< all of it, for messages
  bool isAfter;       ///< behind the pass at `place`, or before it
  std::string place;  ///< a pass of the compiler
  std::string passes; ///< one pass, or several as in --pass-pipeline
};

llvm::Expected<InsertedPass> parseInsertedPass(llvm::StringRef text);

/// The passes of `inserted`, for a module; refuses names that are not registered.
llvm::Expected<mlir::OpPassManager> makeInsertedPass(const InsertedPass &inserted);

/// An error about `inserted`.
llvm::Error refuseInserted(const InsertedPass &inserted, const llvm::Twine &why);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_INSERTEDPASS_H
