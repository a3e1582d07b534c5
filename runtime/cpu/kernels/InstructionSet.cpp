//===- InstructionSet.cpp - what this machine can run ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "InstructionSet.h"

int meshwright::cpu::bestInstructionSet() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // All of a level, as the compiler may use all of it: v3 has F16C besides AVX2, which a virtual
  // machine may hide.
  if (!__builtin_cpu_supports("x86-64-v3"))
    return 3;
  if (!__builtin_cpu_supports("x86-64-v4"))
    return 2;
  if (!__builtin_cpu_supports("avx512bf16"))
    return 1;
#endif
  return 0;
}
