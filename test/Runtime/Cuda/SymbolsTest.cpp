//===- SymbolsTest.cpp - NVIDIA's libraries have what the runtime loads ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The fake libraries have every function that the runtime looks for, under the name that the
// headers' macros make of it. So do the real ones, where they are installed, and the driver's
// stub; none needs a GPU to be opened.
//
//===----------------------------------------------------------------------===//
#include "cuda/Libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {
#define MW_TEXT(name) #name
#define MW_LISTED(name) MW_TEXT(name),

void expectAll(const std::string &path, const std::vector<const char *> &names) {
  void *library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    GTEST_SKIP() << dlerror();
  for (const char *name : names)
    EXPECT_TRUE(dlsym(library, name)) << path << " has no " << name;
  dlclose(library);
}

TEST(Symbols, Driver) { expectAll(CUDA_STUB, {MW_DRIVER_FUNCTIONS(MW_LISTED)}); }
TEST(Symbols, CublasLt) { expectAll("libcublasLt.so.13", {MW_BLAS_FUNCTIONS(MW_LISTED)}); }
TEST(Symbols, Nccl) {
  expectAll("libnccl.so.2", {MW_NCCL_FUNCTIONS(MW_LISTED) MW_NCCL_NEWER_FUNCTIONS(MW_LISTED)});
}
} // namespace
