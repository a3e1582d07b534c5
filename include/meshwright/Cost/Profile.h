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

#include <map>
#include <string>
#include <vector>

namespace meshwright::cost {

/// How the steps of another training system differ from those of our program, from which they are
/// predicted. The default is Meshwright itself.
struct Profile {
  std::string name = "meshwright", description;

  // Factors of times.
  double products = 1;      ///< matrix products
  double attention = 1;     ///< attention and its gradient
  double kernels = 1;       ///< all other kernels but those of the optimizer
  double optimizer = 1;     ///< kernels that update parameters and states
  double communication = 1; ///< collectives, but for
  double network = 1;       ///< those of gradients between machines

  // Seconds.
  double launch = 0;  ///< of the device, more from each kernel to the next
  double message = 0; ///< more for each message of a pipeline
  /// Of the host, for each kernel and collective that it launches. The host runs ahead of the
  /// device: a kernel begins when both are ready.
  double dispatch = 0;
  /// Of the host, more for each batched collective and member where a pipeline spans machines.
  double dispatchPeer = 0;

  // What the system does in another way than our programs.
  /// Host and device wait for each other and for the transfer at each message of a pipeline.
  bool synchronousMessages = false;
  /// Matrix products write gradients in 16 bits, which a kernel adds to those in f32.
  bool separateAccumulation = false;
  /// Bytes of memory that its kernels of the cross entropy move for each logit, where those are more than one:
  /// forward, with the conversion of logits to f32, and backward. 0: as ours.
  double logitsForward = 0, logitsBackward = 0;
  /// Mesh axes whose collectives transfer all sequences of a microbatch at once.
  std::vector<std::string> batchedCollectives;
  /// Mesh axes of gradients that are all-reduced, not reduce-scattered, and without overlap.
  std::vector<std::string> allReducedGradients;
  /// Bytes of smaller gradients that are all-reduced in one call; 0: each gradient in its own.
  double gradientBucket = 0;
  /// Algorithms of a cluster's collectives, by name, that its communication library does not use.
  std::vector<std::string> excludedAlgorithms;

  /// Whether gradients are reduced in their own memory, without results beside them.
  bool gradientsInPlace = false;
  /// Bytes for each element of a layer's matrices, which a system keeps for gradients that autograd asks for though they have
  /// been added up elsewhere, and for the head's while it computes that gradient.
  double unusedGradients = 0;
  /// Factors of the bytes of a category of memory where a program needs most.
  std::map<std::string, double> memory;
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
