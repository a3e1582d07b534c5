//===- LatestCheckpoint.h - which checkpoint of a folder is its newest ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// "latest" in a folder of --save is a symbolic link to the newest checkpoint, or with --save-commit file, since stores have
// no links, a file with its name.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_LATESTCHECKPOINT_H
#define MESHWRIGHT_RUNTIME_LATESTCHECKPOINT_H

#include <filesystem>
#include <fstream>
#include <string>

namespace meshwright {

inline constexpr char latestName[] = "latest";

/// The path that "latest" in `folder` names, whether or not it is there; empty if there is no "latest", or if it names
/// nothing.
inline std::string latestIn(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string path = folder + "/" + latestName, name;
  if (fs::is_symlink(path, error)) {
    name = fs::read_symlink(path, error).string();
  } else if (fs::is_regular_file(path, error)) {
    std::ifstream file(path);
    std::getline(file, name);
    // What is no name of a checkpoint leads nowhere.
    if (name.find('/') != name.npos || name.rfind("step-", 0) != 0)
      name.clear();
  }
  return name.empty() ? "" : (fs::path(folder) / name).string();
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_LATESTCHECKPOINT_H
