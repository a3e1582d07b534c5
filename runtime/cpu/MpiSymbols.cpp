//===- MpiSymbols.cpp - OpenMPI, loaded when it is needed -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/MpiSymbols.h"

#include "common/monitor/Error.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace meshwright;

// The library's name since OpenMPI 4.0; 5.x keeps it.
static const char *libraryName = "libmpi.so.40";

static void *symbol(void *library, const char *name) {
  if (void *found = dlsym(library, name))
    return found;
  fail(libraryName, " has no ", name, " (", dlerror(),
       "): it is not OpenMPI 4 or 5; install OpenMPI (Debian package libopenmpi3)");
}

static MpiSymbols loadSymbols() {
  // Global, because OpenMPI's own plug-ins look up its symbols.
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char *path = getenv("LD_LIBRARY_PATH");
    fail("started under a MPI launcher, but ", libraryName,
         " (OpenMPI 4 or 5) cannot be loaded: ", dlerror(), ". Looked in LD_LIBRARY_PATH (",
         path ? path : "not set",
         ") and the system's library directories: install OpenMPI (Debian package libopenmpi3), "
         "or run with --ranks N, which needs no MPI");
  }
  MpiSymbols symbols;
#define MW_LOAD(name)                                                                              \
  symbols.name = reinterpret_cast<decltype(symbols.name)>(symbol(library, #name));
  MW_MPI_FUNCTIONS(MW_LOAD)
#undef MW_LOAD
#define MW_LOAD(type, name) symbols.name = reinterpret_cast<type>(symbol(library, #name));
  MW_MPI_HANDLES(MW_LOAD)
#undef MW_LOAD
  return symbols;
}

const MpiSymbols &MpiSymbols::load() {
  static const MpiSymbols symbols = loadSymbols();
  return symbols;
}
