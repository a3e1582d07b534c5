//===- LoadPlugin.cpp - passes from shared libraries ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/LoadPlugin.h"

#include "meshwright/Plugin.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace meshwright {

/// The names of the libraries that a shared library is linked with.
static Expected<std::vector<std::string>>
neededBy(const llvm::object::ELF64LEFile &file) {
  auto entries = file.dynamicEntries();
  if (!entries)
    return entries.takeError();
  const uint8_t *strings = nullptr;
  for (const auto &entry : *entries)
    if (entry.getTag() == llvm::ELF::DT_STRTAB) {
      Expected<const uint8_t *> mapped = file.toMappedAddr(entry.getPtr());
      if (!mapped)
        return mapped.takeError();
      strings = *mapped;
    }
  std::vector<std::string> names;
  const uint8_t *end = file.base() + file.getBufSize();
  for (const auto &entry : *entries)
    if (strings && entry.getTag() == llvm::ELF::DT_NEEDED && entry.getVal() < uint64_t(end - strings)) {
      const char *name = reinterpret_cast<const char *>(strings + entry.getVal());
      names.emplace_back(name, strnlen(name, reinterpret_cast<const char *>(end) - name));
    }
  return names;
}

/// "21.1" of "libMLIR.so.21.1"; empty for other libraries.
static StringRef versionOf(StringRef library) {
  return library.consume_front("libMLIR.so.") || library.consume_front("libLLVM.so.") ? library
                                                                                       : "";
}

Error checkPlugin(StringRef path) {
  auto refuse = [&](const Twine &why) {
    return createStringError("--load-pass-plugin '" + path + "': " + why);
  };
  if (!llvm::sys::fs::exists(path))
    return refuse("there is no such file");
  if (!llvm::sys::fs::is_regular_file(path))
    return refuse("it is no file");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return refuse(buffer.getError().message());
  auto object = llvm::object::ObjectFile::createObjectFile((*buffer)->getMemBufferRef());
  auto *elf = object ? llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(object->get()) : nullptr;
  llvm::consumeError(object.takeError());
  if (!elf || elf->getELFFile().getHeader().e_type != llvm::ELF::ET_DYN)
    return refuse("it is no shared library; meshwright_add_plugin of find_package(Meshwright) makes one");

  static constexpr StringRef again = "; compile it again with find_package(Meshwright) of this version";
  StringRef mlir = MESHWRIGHT_MLIR_VERSION;
  Expected<std::vector<std::string>> needed = neededBy(elf->getELFFile());
  if (!needed)
    return refuse(toString(needed.takeError()));
  for (StringRef library : *needed)
    if (StringRef its = versionOf(library); !its.empty() && its != mlir)
      return refuse("it is linked with " + library + ", but this is MLIR " + mlir + again);

  // A pass plugin that knows no op of Meshwright says nothing of it.
  for (const llvm::object::SectionRef &section : elf->sections()) {
    Expected<StringRef> name = section.getName();
    Expected<StringRef> contents = section.getContents();
    bool isOurs = name && contents && *name == pluginSection && contents->size() == sizeof(PluginVersions);
    llvm::consumeError(name.takeError());
    StringRef text = isOurs ? *contents : StringRef();
    llvm::consumeError(contents.takeError());
    if (!isOurs)
      continue;
    auto field = [&](size_t offset, size_t size) {
      StringRef part = text.substr(offset, size);
      return part.take_front(part.find('\0'));
    };
    StringRef its = field(offsetof(PluginVersions, meshwright), sizeof(PluginVersions::meshwright));
    StringRef itsMlir = field(offsetof(PluginVersions, mlir), sizeof(PluginVersions::mlir));
    if (its != version || itsMlir != mlir)
      return refuse("it was compiled for Meshwright " + its + " with MLIR " + itsMlir +
                    ", but this is Meshwright " + version + " with MLIR " + mlir + again);
  }
  return Error::success();
}

Error loadPlugins(llvm::ArrayRef<std::string> paths) {
  static std::set<std::string> loaded;
  for (const std::string &path : paths) {
    llvm::SmallString<256> whole(path);
    // A name without a folder is a file here, not one of the system's libraries; and one file is loaded once, however it is named.
    if (llvm::sys::fs::real_path(path, whole))
      whole = path;
    if (loaded.count(whole.str().str()))
      continue;
    if (Error error = checkPlugin(path))
      return error;
    Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(whole.str().str());
    if (!plugin)
      return createStringError("--load-pass-plugin '" + path + "': " + toString(plugin.takeError()));
    plugin->registerPassRegistryCallbacks();
    loaded.insert(whole.str().str());
  }
  return Error::success();
}

} // namespace meshwright
