//===- Toml.h - the parser of TOML files ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOML_H
#define MESHWRIGHT_TOML_H

// toml++ 3.3 asserts, or lets the compiler assume, that a key begins with a character of keys, which `[[[` at the end of a file does not have. What follows such an assertion
// checks it again and reports an error, so it is neither asserted nor assumed.
#include <cassert>
// Errors are values, as elsewhere here.
#define TOML_EXCEPTIONS 0
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#endif // MESHWRIGHT_TOML_H
