//===- Panels.h - products of packed parts of matrices --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A product C = A B is computed tile by tile in registers (Goto and van de Geijn 2008).
// The factors are packed for this: a line is a row of A or a column of B, and a panel has as
// many lines as a tile. Memory of a panel is [words][lines], where a word is of 32 bits and
// holds what one multiply-add takes from a line: an element in f32, or two neighbours
// along the sum in bf16. Numbers of 8 bits become bf16, which is exact.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_PANELS_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_PANELS_H

#include "meshwright/runtime/ABI.h"

namespace meshwright::cpu {

/// A part of a factor as it is stored: `lines` of `depth` elements each.
struct Lines {
  int32_t type; ///< MW_F32, MW_BF16, MW_F16 or of 8 bits
  const void *data;
  int64_t ld;      ///< between rows of the matrix, in elements
  bool alongDepth; ///< whether a line's elements are neighbours, else those of one depth are
  int64_t lines, depth;
};

/// Packed lines have places for a multiple of this many, whatever the instruction set.
constexpr int64_t kLineUnit = 48;

/// What one instruction set does.
struct PanelKernels {
  const char *name;
  /// How many elements of factors of a type make a word.
  int64_t (*elementsOfWord)(int32_t type);
  /// To panels as high as a tile, or as wide. Zeros follow a line that ends inside a word, and
  /// the lines of an incomplete panel.
  void (*packRows)(const Lines &from, float *to);
  void (*packColumns)(const Lines &from, float *to);
  /// C[rows][columns] = alpha * A B + beta * C of packed lines of factors of a type; with beta = 0
  /// C is not read.
  void (*multiply)(int32_t type, int64_t rows, int64_t columns, int64_t words, const float *a,
                   const float *b, float alpha, float beta, float *c, int64_t ldc);
  /// to[count] = from + beta * to, rounded to `type`; with beta = 0 `to` is not read.
  void (*round)(int32_t type, const float *from, float beta, void *to, int64_t count);
};

/// Those that this machine can run, best first.
const PanelKernels *const *availablePanelKernels(int *count);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_PANELS_H
