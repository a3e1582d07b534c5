//===- Link.cpp - object and runtime to executable --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/AtomicFile.h"
#include "meshwright/Codegen.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace meshwright;
using llvm::Error;
using llvm::SmallString;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// A file that is gone when this is.
struct Temporary {
  SmallString<128> path;
  ~Temporary() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }
};
} // namespace

/// Removes files beside `path` whose names begin with its own and `more`.
static void removeStartingWith(StringRef path, StringRef more) {
  StringRef folder = llvm::sys::path::parent_path(path);
  std::string name = (llvm::sys::path::filename(path) + more).str();
  std::vector<std::string> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder.empty() ? "." : folder, error), end;
       at != end && !error; at.increment(error))
    if (llvm::sys::path::filename(at->path()).starts_with(name))
      found.push_back(at->path());
  for (const std::string &leftover : found)
    llvm::sys::fs::remove(leftover);
}

/// The folder of the runtime: beside the running tool's folder, as in the build
/// tree, or where an installation puts libraries.
static llvm::Expected<std::string> findRuntime(StringRef wanted,
                                                const exec::RuntimeFiles &files) {
  llvm::SmallVector<SmallString<128>> candidates;
  if (!wanted.empty()) {
    candidates.emplace_back(wanted);
  } else {
    std::string tool = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
    StringRef top = llvm::sys::path::parent_path(llvm::sys::path::parent_path(tool));
    for (const char *folder : {"runtime", "lib/meshwright"}) {
      candidates.emplace_back(top);
      llvm::sys::path::append(candidates.back(), folder);
    }
  }
  std::string tried;
  for (StringRef candidate : candidates) {
    SmallString<128> archive(candidate);
    llvm::sys::path::append(archive, files.archive);
    if (llvm::sys::fs::exists(archive))
      return candidate.str();
    tried += (tried.empty() ? "" : ", ") + archive.str().str();
  }
  return llvm::createStringError("cannot find the runtime to link with: no " + tried +
                                 "; build it with `ninja -C build`" +
                                 (*files.hint ? Twine(", where ") + files.hint +
                                                    " are installed (else it is left out)"
                                              : Twine()));
}

/// What the runtime wants on the link line, one argument a line of link.txt.
static llvm::Expected<std::vector<std::string>> readLinkLine(StringRef runtime,
                                                                  const exec::RuntimeFiles &files) {
  SmallString<128> path(runtime);
  llvm::sys::path::append(path, files.linkLine);
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError(buffer.getError(),
                                   "cannot read '" + path + "': " + buffer.getError().message());
  std::vector<std::string> arguments;
  llvm::SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (line = line.trim(); !line.empty())
      arguments.push_back(line.str());
  return arguments;
}

Error meshwright::linkExecutable(llvm::ArrayRef<std::string> objects, StringRef output,
                                 const LinkOptions &options) {
  llvm::Expected<std::string> runtime = findRuntime(options.runtime, options.files);
  if (!runtime)
    return runtime.takeError();
  auto extra = readLinkLine(*runtime, options.files);
  if (!extra)
    return extra.takeError();
  StringRef wanted = options.driver.empty() ? StringRef(MESHWRIGHT_LINK_DRIVER) : options.driver;
  auto driver = llvm::sys::findProgramByName(wanted);
  if (!driver)
    return llvm::createStringError(driver.getError(), "cannot link: no compiler driver '" + wanted +
                                                          "'; install g++ (apt-get install g++)");

  bool device = false;
  if (!llvm::sys::fs::is_other(output, device) && device)
    return llvm::createStringError("cannot write '" + output + "': it is a device");

  // Beside the output, so that the last step is a rename within one file system.
  Temporary linked, log;
  std::vector<Temporary> inputs(objects.size());
  if (auto error = llvm::sys::fs::createUniqueFile(output + ".%%%%%%.tmp", linked.path))
    return llvm::createStringError(error, "cannot write '" + output + "': " + error.message());
  if (auto error = llvm::sys::fs::createTemporaryFile("meshwright", "log", log.path))
    return llvm::createStringError(error, "cannot make a temporary file: " + error.message());
  for (auto [object, input] : llvm::zip_equal(objects, inputs)) {
    if (auto error = llvm::sys::fs::createTemporaryFile("meshwright", "o", input.path))
      return llvm::createStringError(error, "cannot make a temporary file: " + error.message());
    if (Error error = writeFileAtomically(object, input.path))
      return error;
  }

  SmallString<128> archive(*runtime);
  llvm::sys::path::append(archive, options.files.archive);
  std::vector<std::string> arguments{*driver,
                                     "-o",
                                     linked.path.str().str()};
  for (const Temporary &input : inputs)
    arguments.push_back(input.path.str().str());
  llvm::append_range(arguments, std::initializer_list<std::string>{
                                    archive.str().str(), "-static-libstdc++", "-static-libgcc",
                                    "-Wl,--gc-sections"});
  llvm::append_range(arguments, *extra);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log.path), StringRef(log.path)};
  std::string message;
  auto run = [&] {
    std::vector<StringRef> refs(arguments.begin(), arguments.end());
    return llvm::sys::ExecuteAndWait(*driver, refs, std::nullopt, redirects, /*SecondsToWait=*/0,
                                     /*MemoryLimit=*/0, &message);
  };
  int status = 1;
  // Several times faster than the driver's own linker, where it is installed. It writes to mapped
  // memory, so a full disk kills it and its file stays: what is wrong is for the other to say.
  if (llvm::sys::findProgramByName("ld.lld", {MESHWRIGHT_LLVM_TOOLS})) {
    arguments.insert(arguments.end(), {"-fuse-ld=lld", "-B" MESHWRIGHT_LLVM_TOOLS});
    status = run();
    arguments.resize(arguments.size() - 2);
    if (status != 0)
      removeStartingWith(linked.path, ".tmp");
  }
  if (status != 0)
    status = run();
  if (status != 0) {
    auto text = llvm::MemoryBuffer::getFile(log.path);
    return llvm::createStringError("linking '" + output + "' with " + *driver + " failed: " +
                                   message + "\n" + (text ? (*text)->getBuffer() : StringRef()));
  }
  if (auto error = llvm::sys::fs::rename(linked.path, output))
    return llvm::createStringError(error, "cannot write '" + output + "': " + error.message());
  linked.path.clear();
  return Error::success();
}
