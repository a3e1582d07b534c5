//===- Fragments.h - which lane has which element of a matrix ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After NVIDIA's PTX ISA: "Matrix Fragments for mma.m16n8k16 with floating point type", of
// .f16 and .bf16, and "ldmatrix" of .m8n8.b16. Two elements of 16 bits share a register, the
// first in its low half.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_CUDA_FRAGMENTS_H
#define MESHWRIGHT_TEST_RUNTIME_CUDA_FRAGMENTS_H

namespace fragments {

constexpr int lanes = 32;
struct Place {
  int row, column;
};

/// Element 0 to 7 of A, 16 x 16.
constexpr Place ofA(int lane, int i) {
  bool isUpper = i < 2 || (i >= 4 && i < 6);
  return {lane / 4 + (isUpper ? 0 : 8), lane % 4 * 2 + i % 2 + (i < 4 ? 0 : 8)};
}
/// Element 0 to 3 of B, 16 x 8.
constexpr Place ofB(int lane, int i) { return {lane % 4 * 2 + i % 2 + (i < 2 ? 0 : 8), lane / 4}; }
/// Element 0 to 3 of C and D, 16 x 8.
constexpr Place ofC(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2}; }
/// Element 0 or 1 of a matrix of 8 x 8 that ldmatrix loads; matrix m's rows are at the
/// addresses of lanes 8 m to 8 m + 7.
constexpr Place loaded(int lane, int i, bool isTransposed) {
  return isTransposed ? Place{lane % 4 * 2 + i, lane / 4} : Place{lane / 4, lane % 4 * 2 + i};
}

/// D = A B + C of one warp. `a(lane, i)` and so on get elements as numbers, `d(lane, i, x)`
/// takes one. Products are exact; the sum is rounded once, where a GPU's order and rounding are
/// not said.
template <typename A, typename B, typename C, typename D> void multiply(A a, B b, C c, D d) {
  double x[16][16], y[16][8];
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < 8; ++i)
      x[ofA(lane, i).row][ofA(lane, i).column] = a(lane, i);
    for (int i = 0; i < 4; ++i)
      y[ofB(lane, i).row][ofB(lane, i).column] = b(lane, i);
  }
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      auto [row, column] = ofC(lane, i);
      double sum = c(lane, i);
      for (int k = 0; k < 16; ++k)
        sum += x[row][k] * y[k][column];
      d(lane, i, float(sum));
    }
}

} // namespace fragments

#endif // MESHWRIGHT_TEST_RUNTIME_CUDA_FRAGMENTS_H
