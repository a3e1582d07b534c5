//===- Toml.h - the parser of TOML files ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOML_H
#define MESHWRIGHT_TOML_H

// toml++ 3.3 asserts that a key begins with a character of keys, or lets the compiler assume it without assertions. A file
// that ends in `[[[` breaks that. The code behind the assertion reports the error, so nothing is asserted or assumed here.
#include <cassert>
// Errors are values, as elsewhere here.
#define TOML_EXCEPTIONS 0
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#endif // MESHWRIGHT_TOML_H
