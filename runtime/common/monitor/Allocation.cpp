//===- Allocation.cpp - what there is no memory for -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Replaces the library's operator new, whose exception does not say how much was wanted.
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {
/// Allocates nothing itself.
class OutOfMemory : public std::bad_alloc {
public:
  explicit OutOfMemory(size_t bytes) {
    snprintf(message, sizeof(message),
             "cannot allocate %zu bytes: there is no memory left, or a limit is reached (ulimit "
             "-v, control groups): use fewer ranks a machine, or raise the limit",
             bytes);
  }
  const char *what() const noexcept override { return message; }

private:
  char message[192];
};
} // namespace

void *operator new(size_t bytes) {
  if (void *memory = malloc(bytes ? bytes : 1))
    return memory;
  throw OutOfMemory(bytes);
}

void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }
