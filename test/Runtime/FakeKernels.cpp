//===- FakeKernels.cpp - a program for GPUs without kernels and products ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/runtime/cuda/ABI.h"

extern "C" {
const int64_t meshwright_kernel_count = 0, meshwright_image_count = 0;
const MwKernelShape meshwright_kernel_shapes[] = {{0, 0, 0, 0}};
const char meshwright_kernel_names[] = "";
const MwImage meshwright_images[] = {{0, 0, 0, 0}};
const char meshwright_image_bytes[] = "";
const int64_t meshwright_product_count = 0;
const MwProduct meshwright_products[] = {{}};
const char meshwright_product_locations[] = "";
}
