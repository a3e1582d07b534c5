//===- Plugin.h - what a shared library with passes includes ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A plugin is a pass plugin of MLIR whose passes may use the ops, types and interfaces of
// Meshwright's dialects: their classes are the tool's own, which exports them. There is no stable
// ABI, so a plugin says which versions it was compiled with, and tools of others refuse it before
// they load it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PLUGIN_H
#define MESHWRIGHT_PLUGIN_H

#include "meshwright/runtime/Version.h"

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

namespace meshwright {

/// The section of a plugin with the versions that it was compiled with.
inline constexpr char pluginSection[] = "meshwright_plugin";

/// The versions of Meshwright and of MLIR that this file is compiled with.
struct PluginVersions {
  char meshwright[16];
  char mlir[16];
};

#define MESHWRIGHT_VERSION_TEXT_(MAJOR, MINOR) #MAJOR "." #MINOR
#define MESHWRIGHT_VERSION_TEXT(MAJOR, MINOR) MESHWRIGHT_VERSION_TEXT_(MAJOR, MINOR)
/// Patch releases of LLVM keep its ABI.
#define MESHWRIGHT_MLIR_VERSION MESHWRIGHT_VERSION_TEXT(LLVM_VERSION_MAJOR, LLVM_VERSION_MINOR)

constexpr PluginVersions pluginVersions() {
  PluginVersions versions{{}, MESHWRIGHT_MLIR_VERSION};
  static_assert(sizeof(version) <= sizeof(versions.meshwright));
  for (unsigned i = 0; i < sizeof(version); ++i)
    versions.meshwright[i] = version[i];
  return versions;
}

} // namespace meshwright

/// Makes a shared library a plugin: tools that load it call REGISTER(), which registers passes by
/// mlir::registerPass and optimizers by train::registerOptimizer.
#define MESHWRIGHT_PLUGIN(NAME, REGISTER)                                                          \
  __attribute__((section("meshwright_plugin"), used)) static const ::meshwright::PluginVersions    \
      meshwrightPluginVersions = ::meshwright::pluginVersions();                                   \
  extern "C" __attribute__((visibility("default"))) ::mlir::PassPluginLibraryInfo                  \
  mlirGetPassPluginInfo() {                                                                        \
    return {MLIR_PLUGIN_API_VERSION, NAME, ::meshwright::version, [] { REGISTER(); }};             \
  }

#endif // MESHWRIGHT_PLUGIN_H
