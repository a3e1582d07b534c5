//===- Profile.h - how another system's steps differ ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_PROFILE_H
#define MESHWRIGHT_COST_PROFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright::cost {

/// What another system takes where Meshwright's program takes a second, and what it takes beside
/// that: its steps are predicted from our program. The default is Meshwright itself.
struct Profile {
  std::string name = "meshwright", description;
  double products = 1;      ///< matrix products, attention and its gradient
  double kernels = 1;       ///< all other kernels, those of the optimizer too
  double communication = 1; ///< collectives
  double launch = 0;        ///< seconds more from each kernel to the next
  double message = 0;       ///< seconds more for each message of a pipeline
};

/// A profile by its name, or from a file of TOML.
llvm::Expected<Profile> readProfile(llvm::StringRef nameOrFile);

/// The profiles that Meshwright has: names and texts of files.
struct NamedProfile {
  llvm::StringRef name, text;
};
llvm::ArrayRef<NamedProfile> getProfiles();

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_PROFILE_H
