//===- FileArguments.h - which files a command line reads and writes --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Shared by the compiler and the runtime, so it needs the standard library only.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_FILEARGUMENTS_H
#define MESHWRIGHT_RUNTIME_FILEARGUMENTS_H

#include <filesystem>
#include <fnmatch.h>
#include <sstream>
#include <string>
#include <vector>

namespace meshwright {

/// The kind of file that a flag names. Flag tables say it, so that no flag escapes the checks.
enum class FileUse { None, Input, Output, InputFolder, OutputFolder };

/// One file or folder of a command line.
struct FileArgument {
  std::string flag; ///< as messages call it, "--metrics"
  std::string path;
  FileUse use = FileUse::None;
  /// Patterns of the names that are written to an output folder, separated by blanks.
  const char *writes = "";

  bool isFolder() const { return use == FileUse::InputFolder || use == FileUse::OutputFolder; }
  bool isWritten() const { return use == FileUse::Output || use == FileUse::OutputFolder; }
  std::string text() const { return flag + " " + path; }
};

/// `path` without symbolic links, whether or not a file is there.
inline std::filesystem::path canonicalPath(std::filesystem::path path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    fs::path target = fs::read_symlink(path, error);
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  path = fs::absolute(path, error);
  fs::path canonical = fs::weakly_canonical(path, error);
  return error ? path.lexically_normal() : canonical;
}

/// Whether both lead to one file, also through links of either kind.
inline bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) || canonicalPath(a) == canonicalPath(b);
}

/// Whether the output folder `folder` gets a file at the path of `file`.
inline bool writesInFolder(const FileArgument &folder, const FileArgument &file) {
  std::filesystem::path canonical = canonicalPath(file.path);
  if (folder.use != FileUse::OutputFolder || file.isFolder() ||
      !isSameFile(canonical.parent_path().string(), folder.path))
    return false;
  std::istringstream patterns(folder.writes);
  for (std::string pattern; patterns >> pattern;)
    if (fnmatch(pattern.c_str(), canonical.filename().c_str(), 0) == 0)
      return true;
  return false;
}

/// Why `a` and `b` may not be given together; empty if they may.
inline std::string clashBetween(const FileArgument &a, const FileArgument &b) {
  if (!b.isWritten())
    return a.isWritten() ? clashBetween(b, a) : "";
  if (writesInFolder(a, b) || writesInFolder(b, a)) {
    const FileArgument &folder = a.isFolder() ? a : b, &file = a.isFolder() ? b : a;
    return folder.text() + " would overwrite " + file.text() + ": name another folder for " +
           folder.flag;
  }
  // A checkpoint may be read and written in one folder, and folders get names of their own.
  if (a.isFolder() && b.isFolder())
    return "";
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(b.path, error);
  // Devices and pipes hold nothing that could be overwritten.
  if (std::filesystem::exists(status) && std::filesystem::is_other(status))
    return "";
  if (!isSameFile(a.path, b.path))
    return "";
  std::string remedy = ": name another " + std::string(b.isFolder() ? "folder" : "file") + " for " +
                       b.flag;
  if (a.isWritten())
    return a.text() + " and " + b.text() + " write to the same file" + remedy;
  return b.text() + " would overwrite " + a.text() + ", which is the same file" + remedy;
}

/// Why the files of a command line exclude each other; empty if they do not.
inline std::string clashOf(const std::vector<FileArgument> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (std::string clash = clashBetween(arguments[j], arguments[i]); !clash.empty())
        return clash;
  return "";
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_FILEARGUMENTS_H
