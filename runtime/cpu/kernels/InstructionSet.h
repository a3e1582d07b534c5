//===- InstructionSet.h - what this machine can run -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_INSTRUCTIONSET_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_INSTRUCTIONSET_H

/// The instruction sets that kernels are compiled for, best first: the levels of
/// the x86-64 psABI, and before them v4 with products of bf16 (AVX512-BF16). CMakeLists.txt has
/// the same list.
#if defined(__x86_64__)
#define MW_FOR_EACH_ISA(MACRO) MACRO(v4bf16) MACRO(v4) MACRO(v3) MACRO(v2)
#else
#define MW_FOR_EACH_ISA(MACRO) MACRO(generic)
#endif

namespace meshwright::cpu {

/// Index into MW_FOR_EACH_ISA of the first that this machine can run. Asks for
/// all features of a level, not for a processor's name, so that processors newer
/// than this code get the best they can do.
int bestInstructionSet();

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_INSTRUCTIONSET_H
