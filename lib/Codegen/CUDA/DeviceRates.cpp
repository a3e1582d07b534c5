//===- DeviceRates.cpp - what NVIDIA's GPUs do a second at most -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/DeviceRates.h"

using namespace meshwright;
using llvm::StringRef;

namespace {
struct Row {
  unsigned arch;
  exec::DeviceRates rates;
};
} // namespace

/// By ascending architecture, the part for data centers that its data sheet from NVIDIA describes.
/// f32 is that of the cores for arithmetic, since products of f32 use no TF32; 16 bits that of
/// tensor cores without sparsity. Links are those of one direction, half of what sheets say.
static const Row table[] = {
    // A100 80GB SXM (2021): FP32 19.5 and BF16 312 TFLOPS, 2,039 GB/s, NVLink 600 GB/s.
    {80, {"an A100 80GB SXM", 19.5e12, 312e12, 2.039e12, 300e9}},
    // A40 (2020): FP32 37.4 and BF16 149.7 TFLOPS, 696 GB/s, NVLink 112.5 GB/s.
    {86, {"an A40", 37.4e12, 149.7e12, 696e9, 56.25e9}},
    // L40S (2023): FP32 91.6 and BF16 362.05 TFLOPS, 864 GB/s, PCIe 4.0 x16 64 GB/s.
    {89, {"an L40S", 91.6e12, 362.05e12, 864e9, 32e9}},
    // H100 SXM (2023): FP32 67 and BF16 1,979 TFLOPS with sparsity, 3.35 TB/s, NVLink 900 GB/s.
    {90, {"an H100 SXM", 67e12, 989.5e12, 3.35e12, 450e9}},
    // HGX B200, of each GPU (Blackwell architecture brief, 2024): FP32 80 and BF16 2,250 TFLOPS
    // dense, 8 TB/s, NVLink 1.8 TB/s.
    {100, {"a B200 of HGX", 80e12, 2250e12, 8e12, 900e9}},
};

exec::DeviceRates codegen::cuda::ratesOf(StringRef arch) {
  unsigned number = 0;
  arch.consume_front("sm_");
  arch.consumeInteger(10, number);
  const Row *found = &table[0];
  for (const Row &row : table)
    if (row.arch <= number)
      found = &row;
  return found->rates;
}
