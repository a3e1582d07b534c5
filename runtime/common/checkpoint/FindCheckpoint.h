//===- FindCheckpoint.h - which checkpoint a run resumes ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_FINDCHECKPOINT_H
#define MESHWRIGHT_RUNTIME_COMMON_FINDCHECKPOINT_H

#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// The checkpoint that --resume `path` means: itself, or what its "latest" names.
std::string findCheckpoint(const std::string &path);

/// What completes a checkpoint of --save-commit file: a file with the checksum of its state.json.
inline constexpr char commitFile[] = "commit";

/// A file in a checkpoint that a run writes, or removes, in place: before "commit" is there it is not complete.
inline constexpr char uncommittedFile[] = ".uncommitted";

/// What a small file has, such as state.json; empty where it cannot be read. It is not mapped: a file that a run has mapped is
/// none that it may write.
std::string contentsOf(const std::string &path);

/// Why the checkpoint `directory`, whose state.json has these contents, is not complete; empty if it is.
std::string missingCommit(const std::string &directory, const std::string &state);

/// Whether a run that ended while it wrote or removed the checkpoint `directory` in place left it: another that saves there
/// removes it.
bool isUnfinished(const std::string &directory);

/// The checkpoint that --resume auto means: of those that the links "latest" in `folders` name, the
/// one written last, since a run that went back to an earlier step may have left later steps behind;
/// where several folders have it, the first folder's. Another run's (".others") is taken only where no
/// folder has one of the run's own. One that is damaged is passed over, for the one written before it in its folder, and `note` gets a sentence that says so.
/// Damage that shows in the state and the headers of its files counts; what tensors hold is verified
/// when they are read. Empty where no folder has any checkpoint; an Error where all are damaged.
std::string newestCheckpoint(const std::vector<std::string> &folders,
                             const std::function<void(const std::string &)> &note);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_FINDCHECKPOINT_H
