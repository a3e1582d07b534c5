//===- HelpRequested.h - a command line that asks for help -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_HELPREQUESTED_H
#define MESHWRIGHT_HELPREQUESTED_H

#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// Help was asked for; not a failure.
class HelpRequested : public llvm::ErrorInfo<HelpRequested> {
public:
  explicit HelpRequested(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return {}; }
  static inline char ID = 0;
  std::string text;
};

} // namespace meshwright

#endif // MESHWRIGHT_HELPREQUESTED_H
