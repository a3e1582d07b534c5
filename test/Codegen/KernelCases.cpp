//===- KernelCases.cpp - kernels that every target must get right -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cmath>
#include <cstring>

using namespace meshwright;
using namespace meshwright::test;

std::ostream &test::operator<<(std::ostream &out, const Case &c) { return out << c.name; }

bool Case::narrow() const {
  for (const char *other : {"broadcast", "whole_sum_broadcast_back", "softmax", "log_sum_exp", "softplus_far_below_0", "rotate_half", "decay", "decay_sums",
                            "halves_of_two_widths"})
    if (llvm::StringRef(name) == other)
      return false;
  return true;
}

static std::string replaceAll(std::string text, llvm::StringRef from, std::string to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string test::instantiate(const Case &c, Sizes sizes, llvm::StringRef element) {
  std::string text = c.text;
  text = replaceAll(text, "$XD", "tensor<$Bx$Sx$Dxf32>");
  text = replaceAll(text, "$XR", "ROWS"); // f32 whatever the rest is
  text = replaceAll(text, "$ID", "tensor<$Bx$Sxi32>");
  text = replaceAll(text, "$VD", "tensor<$Dxf32>");
  text = replaceAll(text, "$TD", "tensor<$Sx$Dxf32>");
  text = replaceAll(text, "$I", "tensor<i32>");
  text = replaceAll(text, "$F", "tensor<f32>");
  text = replaceAll(text, "$B", std::to_string(sizes.b));
  text = replaceAll(text, "$S", std::to_string(sizes.s));
  text = replaceAll(text, "$D", std::to_string(sizes.d));
  text = replaceAll(text, "$H", std::to_string(sizes.d / 2));
  if (element != "f32")
    text = replaceAll(text, "xf32>", "x" + element.str() + ">");
  return replaceAll(text, "ROWS",
                    "tensor<" + std::to_string(sizes.b) + "x" + std::to_string(sizes.s) + "xf32>");
}

void test::expectClose(const Memory &got, const Values &want, double tolerance,
                       const std::string &what, double scale) {
  ASSERT_EQ(got.elements, int64_t(want.size()));
  if (got.element == Memory::I32) {
    for (int64_t i = 0; i < got.elements; ++i)
      ASSERT_EQ(got.get(i), want[i]) << what << " element " << i;
    return;
  }
  // A narrow result may be rounded the other way: one unit in its last place.
  if (got.element != Memory::F32)
    tolerance = std::max(tolerance, got.element == Memory::BF16 ? 0x1p-7 : 0x1p-10);
  for (double value : want)
    if (std::isfinite(value))
      scale = std::max(scale, std::abs(value));
  for (int64_t i = 0; i < got.elements; ++i) {
    double error = std::abs(got.get(i) - want[i]);
    ASSERT_LE(error, tolerance * scale + 1e-30)
        << what << " element " << i << ": " << got.get(i) << " for " << want[i];
  }
}

bool test::same(const Memory &a, const Memory &b) {
  return std::memcmp(a.data, b.data, a.bytes()) == 0;
}

void test::makePositive(KernelInput &input, std::vector<Memory> &arguments) {
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (input.getFunction().getArgAttr(i, "test.positive"))
      for (int64_t k = 0; k < arguments[i].elements; ++k)
        arguments[i].set(k, std::abs(arguments[i].get(k)) + 0.01);
}

static const Case cases[] = {
    {"add", "func.func @k(%x: $XD, %y: $XD) -> $XD { %0 = train.add %x, %y : ($XD, $XD) -> $XD "
            "return %0 : $XD }"},
    {"add_bias", "func.func @k(%x: $XD, %y: $VD) -> $XD { %0 = train.add %x, %y : ($XD, $VD) -> "
                 "$XD return %0 : $XD }"},
    {"add_table", "func.func @k(%x: $XD, %y: $TD) -> $XD { %0 = train.add %x, %y : ($XD, $TD) -> "
                  "$XD return %0 : $XD }"},
    {"mul", "func.func @k(%x: $XD, %y: $TD) -> $XD { %0 = train.mul %x, %y : ($XD, $TD) -> $XD "
            "return %0 : $XD }"},
    {"scale",
     "func.func @k(%x: $XD) -> $XD { %0 = train.scale %x by 0.25 : ($XD) -> $XD return %0 : $XD }"},
    {"accumulate", "func.func @k(%x: $XD, %y: $XD) -> $XD { %0 = train.accumulate %x, %y : ($XD, "
                   "$XD) -> $XD return %0 : $XD }"},
    {"gelu_tanh",
     "func.func @k(%x: $XD) -> $XD { %0 = train.gelu tanh %x : ($XD) -> $XD return %0 : $XD }"},
    {"gelu", "func.func @k(%x: $XD) -> $XD { %0 = train.gelu %x : ($XD) -> $XD return %0 : $XD }"},
    {"gelu_tanh_grad", "func.func @k(%y: $XD, %x: $XD) -> $XD { %0 = train.gelu_grad tanh %y, %x : "
                       "($XD, $XD) -> $XD return %0 : $XD }"},
    {"gelu_grad", "func.func @k(%y: $XD, %x: $XD) -> $XD { %0 = train.gelu_grad %y, %x : ($XD, "
                  "$XD) -> $XD return %0 : $XD }"},
    {"silu", "func.func @k(%x: $XD) -> $XD { %0 = train.silu %x : ($XD) -> $XD return %0 : $XD }"},
    {"silu_grad", "func.func @k(%y: $XD, %x: $XD) -> $XD { %0 = train.silu_grad %y, %x : ($XD, "
                  "$XD) -> $XD return %0 : $XD }"},
    {"tanh", "func.func @k(%x: $XD) -> $XD { %0 = train.tanh %x : ($XD) -> $XD return %0 : $XD }"},
    {"relu", "func.func @k(%x: $XD) -> $XD { %0 = train.relu %x : ($XD) -> $XD return %0 : $XD }"},
    {"relu_grad", "func.func @k(%y: $XD, %x: $XD) -> $XD { %0 = train.relu_grad %y, %x : ($XD, "
                  "$XD) -> $XD return %0 : $XD }"},
    {"clamp", "func.func @k(%x: $XD) -> $XD { %0 = train.clamp %x from -0.5 to 0.25 : ($XD) -> $XD "
              "return %0 : $XD }"},
    {"clamp_above", "func.func @k(%x: $XD) -> $XD { %0 = train.clamp %x from 0xFFF0000000000000 to "
                    "0.25 : ($XD) -> $XD return %0 : $XD }"},
    {"clamp_grad", "func.func @k(%y: $XD, %x: $XD) -> $XD { %0 = train.clamp_grad %y, %x from -0.5 "
                   "to 0.25 : ($XD, $XD) -> $XD return %0 : $XD }"},
    {"decay", R"(func.func @k(%x: $XR, %y: $XR) -> tensor<$Bx$Sx$Sxf32> {
       %0 = train.decay %x, %y : ($XR, $XR) -> tensor<$Bx$Sx$Sxf32> return %0 : tensor<$Bx$Sx$Sxf32> })"},
    {"decay_sums", R"(func.func @k(%x: $XR, %y: $XR) -> ($XR, $XR) {
       %0 = train.decay strict %x, %y : ($XR, $XR) -> tensor<$Bx$Sx$Sxf32>
       %1 = train.reduce sum %0 over [2] : (tensor<$Bx$Sx$Sxf32>) -> $XR
       %2 = train.reduce sum %0 over [1] : (tensor<$Bx$Sx$Sxf32>) -> $XR return %1, %2 : $XR, $XR })",
     8, 1e-5},
    {"layer_norm", R"(func.func @k(%x: $XD, %w: $VD, %c: $VD) -> $XD {
       %0 = train.layer_norm %x, %w, %c eps 1.0e-5 : ($XD, $VD, $VD) -> $XD return %0 : $XD })"},
    {"layer_norm_grad", R"(func.func @k(%y: $XD, %x: $XD, %w: $VD) -> ($XD, $VD, $VD) {
       %0:3 = train.layer_norm_grad %y, %x, %w eps 1.0e-2 : ($XD, $XD, $VD) -> ($XD, $VD, $VD)
       return %0#0, %0#1, %0#2 : $XD, $VD, $VD })",
     8, 2e-5},
    {"rms_norm", R"(func.func @k(%x: $XD, %w: $VD) -> $XD {
       %0 = train.rms_norm %x, %w eps 1.0e-5 : ($XD, $VD) -> $XD return %0 : $XD })"},
    {"rms_norm_grad", R"(func.func @k(%y: $XD, %x: $XD, %w: $VD) -> ($XD, $VD) {
       %0:2 = train.rms_norm_grad %y, %x, %w eps 1.0e-5 : ($XD, $XD, $VD) -> ($XD, $VD)
       return %0#0, %0#1 : $XD, $VD })",
     8, 1e-5},
    // Codes of 8 bits with a scale for each row.
    {"dequantize_rows", R"(func.func @k(%c: tensor<$Bx$Sx$Dxi8>, %s: $XR) -> $XD {
       %0 = train.dequantize_rows %c by %s : (tensor<$Bx$Sx$Dxi8>, $XR) -> $XD return %0 : $XD })"},
    {"embedding", R"(func.func @k(%t: tensor<8x$Dxf32>, %i: $ID) -> $XD {
       %0 = train.embedding %t, %i : (tensor<8x$Dxf32>, $ID) -> $XD return %0 : $XD })"},
    {"embedding_grad", R"(func.func @k(%y: $XD, %i: $ID) -> tensor<9x$Dxf32> {
       %0 = train.embedding_grad %y, %i rows 9 : ($XD, $ID) -> tensor<9x$Dxf32> return %0 : tensor<9x$Dxf32> })"},
    {"embedding_grad_init",
     R"(func.func @k(%y: $XD, %i: $ID, %a: tensor<9x$Dxf32>) -> tensor<9x$Dxf32> {
       %0 = train.embedding_grad %y, %i init %a rows 9 : ($XD, $ID, tensor<9x$Dxf32>) -> tensor<9x$Dxf32>
       return %0 : tensor<9x$Dxf32> })"},
    {"rope_table", R"(func.func @k() -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>) {
       %0:2 = train.rope_table [1.0, 0.0517, 0.00021] : () -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>)
       return %0#0, %0#1 : tensor<$Bx3xf32>, tensor<$Bx3xf32> })"},
    // What does not turn is not scaled.
    {"rope_table_scaled", R"(func.func @k() -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>) {
       %0:2 = train.rope_table [1.0, 0.0517, 0.0] {scale = 1.25 : f64} : () -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>)
       return %0#0, %0#1 : tensor<$Bx3xf32>, tensor<$Bx3xf32> })"},
    {"rope",
     R"(func.func @k(%x: tensor<$Bx$Sx3x$Dxf32>, %c: tensor<$Sx$Hxf32>, %s: tensor<$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32> {
       %0 = train.rope %x, %c, %s : (tensor<$Bx$Sx3x$Dxf32>, tensor<$Sx$Hxf32>, tensor<$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       return %0 : tensor<$Bx$Sx3x$Dxf32> })",
     8, 3e-6, true},
    {"rope_inverse_norm",
     R"(func.func @k(%x: tensor<$Bx$Sx3x$Dxf32>, %c: tensor<$Sx$Hxf32>, %s: tensor<$Sx$Hxf32>, %w: $VD) -> tensor<$Bx$Sx3x$Dxf32> {
       %n = train.rms_norm %x, %w eps 1.0e-5 : (tensor<$Bx$Sx3x$Dxf32>, $VD) -> tensor<$Bx$Sx3x$Dxf32>
       %0 = train.rope inverse %n, %c, %s : (tensor<$Bx$Sx3x$Dxf32>, tensor<$Sx$Hxf32>, tensor<$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       return %0 : tensor<$Bx$Sx3x$Dxf32> })",
     8, 3e-6, true},
    {"rope_sum_over_rows",
     R"(func.func @k(%x: tensor<$Bx$Sx3x$Dxf32>, %c: tensor<$Sx$Hxf32>, %s: tensor<$Sx$Hxf32>) -> $VD {
       %0 = train.rope %x, %c, %s : (tensor<$Bx$Sx3x$Dxf32>, tensor<$Sx$Hxf32>, tensor<$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       %1 = train.reduce sum %0 over [0, 1, 2] : (tensor<$Bx$Sx3x$Dxf32>) -> $VD return %1 : $VD })",
     8, 3e-6, true},
    {"rope_table_documents", R"(func.func @k(%i: $ID) -> (tensor<$Bx$Sx3xf32>, tensor<$Bx$Sx3xf32>) {
       %0:2 = train.rope_table [1.0, 0.0517, 0.0] positions %i {scale = 1.25 : f64} : ($ID) -> (tensor<$Bx$Sx3xf32>, tensor<$Bx$Sx3xf32>)
       return %0#0, %0#1 : tensor<$Bx$Sx3xf32>, tensor<$Bx$Sx3xf32> })"},
    {"rope_documents",
     R"(func.func @k(%x: tensor<$Bx$Sx3x$Dxf32>, %c: tensor<$Bx$Sx$Hxf32>, %s: tensor<$Bx$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32> {
       %0 = train.rope inverse %x, %c, %s : (tensor<$Bx$Sx3x$Dxf32>, tensor<$Bx$Sx$Hxf32>, tensor<$Bx$Sx$Hxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       return %0 : tensor<$Bx$Sx3x$Dxf32> })",
     8, 3e-6, true},
    {"dropout", R"(func.func @k(%x: $XD, %i: tensor<$Bxi32>, %key: tensor<2xi32>) -> $XD {
       %0 = train.dropout %x, %i, %key rate 0.3 stream 5 : ($XD, tensor<$Bxi32>, tensor<2xi32>) -> $XD return %0 : $XD })",
     100000},
    {"fold_in_from", R"(func.func @k(%key: tensor<2xi32>, %i: tensor<i32>) -> tensor<2xi32> {
       %0 = train.fold_in %key, %i from 3 : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32> return %0 : tensor<2xi32> })"},
    {"fold_in", R"(func.func @k(%key: tensor<2xi32>, %i: tensor<i32>) -> tensor<2xi32> {
       %0 = train.fold_in %key, %i : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32> return %0 : tensor<2xi32> })"},
    {"slice", R"(func.func @k(%x: tensor<40x$Dxf32>) -> tensor<$Bx$Dxf32> {
       %0 = train.slice %x rows $B : (tensor<40x$Dxf32>) -> tensor<$Bx$Dxf32> return %0 : tensor<$Bx$Dxf32> })"},
    {"pad", R"(func.func @k(%x: $XD) -> tensor<40x$Sx$Dxf32> {
       %0 = train.pad %x rows 40 : ($XD) -> tensor<40x$Sx$Dxf32> return %0 : tensor<40x$Sx$Dxf32> })"},
    {"pad_vector", R"(func.func @k(%x: $VD) -> tensor<60000xf32> {
       %0 = train.pad %x rows 60000 : ($VD) -> tensor<60000xf32> return %0 : tensor<60000xf32> })"},
    {"pad_computed", R"(func.func @k(%x: $XD, %w: $VD) -> tensor<40x$Sx$Dxf32> {
       %n = train.rms_norm %x, %w eps 1.0e-5 : ($XD, $VD) -> $XD
       %0 = train.pad %n rows 40 : ($XD) -> tensor<40x$Sx$Dxf32> return %0 : tensor<40x$Sx$Dxf32> })"},
    {"dynamic_slice",
     R"(func.func @k(%x: tensor<40x$Sx$Dxf32>, %b: $I) -> $XD {
       %0 = train.dynamic_slice %x dim 0 at %b : (tensor<40x$Sx$Dxf32>, $I) -> $XD return %0 : $XD })",
     7},
    {"dynamic_slice_middle",
     R"(func.func @k(%x: tensor<$Bx17x$Dxf32>, %b: $I) -> $XD {
       %0 = train.dynamic_slice %x dim 1 at %b : (tensor<$Bx17x$Dxf32>, $I) -> $XD return %0 : $XD })"},
    {"dynamic_slice_of_rows",
     R"(func.func @k(%x: tensor<3x50270xf32>, %i: tensor<3x50270xi32>, %b: $I) -> (tensor<3x$Dxf32>, tensor<3x$Dxi32>) {
       %0 = train.dynamic_slice %x dim 1 at %b : (tensor<3x50270xf32>, $I) -> tensor<3x$Dxf32>
       %1 = train.dynamic_slice %i dim 1 at %b : (tensor<3x50270xi32>, $I) -> tensor<3x$Dxi32>
       return %0, %1 : tensor<3x$Dxf32>, tensor<3x$Dxi32> })"},
    {"transpose_blocks", R"(func.func @k(%x: $XD) -> tensor<$Sx$Bx$Dxf32> {
       %0 = train.transpose_blocks %x : ($XD) -> tensor<$Sx$Bx$Dxf32> return %0 : tensor<$Sx$Bx$Dxf32> })"},
    {"reduce_rows", R"(func.func @k(%x: $XD) -> ($XR, $XR) {
       %0 = train.reduce max %x over [2] : ($XD) -> $XR %1 = train.reduce sum %x over [2] : ($XD) -> $XR
       return %0, %1 : $XR, $XR })",
     8, 1e-5},
    {"reduce_columns", R"(func.func @k(%x: $XD) -> ($VD, $VD) {
       %0 = train.reduce max %x over [0, 1] : ($XD) -> $VD %1 = train.reduce sum %x over [0, 1] : ($XD) -> $VD
       return %0, %1 : $VD, $VD })",
     8, 1e-5},
    {"reduce_batch", R"(func.func @k(%x: $XD) -> $TD {
       %0 = train.reduce sum %x over [0] : ($XD) -> $TD return %0 : $TD })",
     8, 1e-5},
    {"reduce_middle", R"(func.func @k(%x: $XD) -> tensor<$Bx$Dxf32> {
       %0 = train.reduce sum %x over [1] : ($XD) -> tensor<$Bx$Dxf32> return %0 : tensor<$Bx$Dxf32> })",
     8, 1e-5},
    {"reduce_ends", R"(func.func @k(%x: $XD) -> tensor<$Sxf32> {
       %0 = train.reduce sum %x over [0, 2] : ($XD) -> tensor<$Sxf32> return %0 : tensor<$Sxf32> })",
     8, 1e-5},
    {"reduce_trailing", R"(func.func @k(%x: $XD) -> tensor<$Bxf32> {
       %0 = train.reduce max %x over [1, 2] : ($XD) -> tensor<$Bxf32> return %0 : tensor<$Bxf32> })",
     8, 1e-5},
    {"reduce_all", R"(func.func @k(%x: $XD) -> ($F, $F) {
       %0 = train.reduce max %x over [0, 1, 2] : ($XD) -> $F %1 = train.reduce sum %x over [0, 1, 2] : ($XD) -> $F
       return %0, %1 : $F, $F })",
     8, 1e-4},
    {"broadcast", R"(func.func @k(%x: $XR, %y: $F) -> ($XD, $XD) {
       %0 = train.broadcast %x along [2] : ($XR) -> $XD %1 = train.broadcast %y along [0, 1, 2] : ($F) -> $XD
       return %0, %1 : $XD, $XD })"},
    {"fill", "func.func @k() -> $XD { %0 = train.fill 2.5 : () -> $XD return %0 : $XD }"},
    {"cross_entropy", R"(func.func @k(%x: $XD, %t: $ID) -> ($F, $XR) {
       %0:2 = train.cross_entropy %x, %t scale 0.01 : ($XD, $ID) -> ($F, $XR) return %0#0, %0#1 : $F, $XR })",
     1, 2e-6},
    {"cross_entropy_grad", R"(func.func @k(%x: $XD, %t: $ID, %l: $XR, %g: $F) -> $XD {
       %0 = train.cross_entropy_grad %x, %t, %l, %g scale 0.01 : ($XD, $ID, $XR, $F) -> $XD return %0 : $XD })",
     1},
    {"cross_entropy_per_token", R"(func.func @k(%x: $XD, %t: $ID, %g: $XR) -> ($XR, $XR, $XD) {
       %0:2 = train.cross_entropy %x, %t scale 0.01 per_token : ($XD, $ID) -> ($XR, $XR)
       %1 = train.cross_entropy_grad %x, %t, %0#1, %g scale 0.01 : ($XD, $ID, $XR, $XR) -> $XD
       return %0#0, %0#1, %1 : $XR, $XR, $XD })",
     1, 2e-6},
    // Its other result is infinite where no target counts.
    {"token_loss_per_token", R"(func.func @k(%p: $XR, %q: $XR, %t: $ID) -> $XR {
       %0:2 = train.token_loss %p, %q, %t below 2 scale 0.01 per_token : ($XR, $XR, $ID) -> ($XR, $XR)
       return %0#0 : $XR })"},
    {"square_sum",
     "func.func @k(%x: $XD) -> $F { %0 = train.square_sum %x : ($XD) -> $F return %0 : $F }"},
    {"global_norm",
     R"(func.func @k(%x: $F {test.positive}, %y: $F {test.positive}, %l: $F) -> ($F, $F) {
       %0 = train.global_norm %x, %y : ($F, $F) -> $F %1 = train.clip_factor %0, %l : ($F, $F) -> $F
       return %0, %1 : $F, $F })"},
    {"sgd", R"(func.func @k(%p: $XD, %g: $XD, %c: $F, %l: $F) -> $XD {
       %0 = train.update "sgd" %p, %g, %c, %l : ($XD, $XD, $F, $F) -> $XD return %0 : $XD })"},
    {"adamw",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %v: $XD {test.positive}, %c: $F, %l: $F, %b1: $F, %b2: $F {test.positive},
          %e: $F {test.positive}, %wd: $F, %c1: $F, %c2: $F {test.positive}) -> ($XD, $XD, $XD) {
       %b3 = train.scale %b2 by 0.2 : ($F) -> $F
       %0:3 = train.update "adamw" decay %p, %g, %m, %v, %c, %l, %b1, %b3, %e, %wd,
           %c1, %c2 : ($XD, $XD, $XD, $XD, $F, $F, $F, $F, $F, $F, $F, $F) -> ($XD, $XD, $XD)
       return %0#0, %0#1, %0#2 : $XD, $XD, $XD })",
     8, 1e-5},
    {"adam",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %v: $XD {test.positive}, %c: $F, %l: $F, %b1: $F, %b2: $F {test.positive},
          %e: $F {test.positive}, %wd: $F, %c1: $F, %c2: $F {test.positive}) -> ($XD, $XD, $XD) {
       %b3 = train.scale %b2 by 0.2 : ($F) -> $F
       %0:3 = train.update "adam" decay %p, %g, %m, %v, %c, %l, %b1, %b3, %e, %wd,
           %c1, %c2 : ($XD, $XD, $XD, $XD, $F, $F, $F, $F, $F, $F, $F, $F) -> ($XD, $XD, $XD)
       return %0#0, %0#1, %0#2 : $XD, $XD, $XD })",
     8, 1e-5},
    {"lion",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %c: $F, %l: $F, %b1: $F, %b2: $F, %wd: $F) -> ($XD, $XD) {
       %0:2 = train.update "lion" decay %p, %g, %m, %c, %l, %b1, %b2, %wd : ($XD, $XD, $XD, $F, $F, $F, $F, $F) -> ($XD, $XD)
       return %0#0, %0#1 : $XD, $XD })"},
    {"sgd_momentum",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %c: $F, %l: $F, %mu: $F, %wd: $F) -> ($XD, $XD) {
       %0:2 = train.update "sgd-momentum" decay %p, %g, %m, %c, %l, %mu, %wd : ($XD, $XD, $XD, $F, $F, $F, $F) -> ($XD, $XD)
       return %0#0, %0#1 : $XD, $XD })"},
    {"sgd_nesterov",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %c: $F, %l: $F, %mu: $F, %wd: $F) -> ($XD, $XD) {
       %0:2 = train.update "sgd-nesterov" decay %p, %g, %m, %c, %l, %mu, %wd : ($XD, $XD, $XD, $F, $F, $F, $F) -> ($XD, $XD)
       return %0#0, %0#1 : $XD, $XD })"},
    {"muon",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %d: $XD, %c: $F, %l: $F, %mu: $F, %wd: $F) -> ($XD, $XD) {
       %0:2 = train.update "muon" decay %p, %g, %m, %d, %c, %l, %mu, %wd : ($XD, $XD, $XD, $XD, $F, $F, $F, $F) -> ($XD, $XD)
       return %0#0, %0#1 : $XD, $XD })"},
    {"adafactor",
     R"(func.func @k(%p: $XD, %g: $XD, %d: $XD, %c: $F, %l: $F, %b2: $F, %e: $F, %wd: $F, %w: $F) -> $XD {
       %0 = train.update "adafactor" decay %p, %g, %d, %c, %l, %b2, %e, %wd, %w : ($XD, $XD, $XD, $F, $F, $F, $F, $F, $F) -> $XD
       return %0 : $XD })"},
    {"schedule_free_adamw",
     R"(func.func @k(%p: $XD, %g: $XD, %v: $XD {test.positive}, %s: $XD, %c: $F, %l: $F, %b1: $F, %b2: $F {test.positive},
          %e: $F {test.positive}, %wd: $F, %power: $F, %c2: $F {test.positive}, %w: $F) -> ($XD, $XD, $XD) {
       %b3 = train.scale %b1 by 0.2 : ($F) -> $F
       %b4 = train.scale %b2 by 0.2 : ($F) -> $F
       %0:3 = train.update "schedule-free-adamw" decay %p, %g, %v, %s, %c, %l, %b3, %b4, %e, %wd, %power,
           %c2, %w : ($XD, $XD, $XD, $XD, $F, $F, $F, $F, $F, $F, $F, $F, $F) -> ($XD, $XD, $XD)
       return %0#0, %0#1, %0#2 : $XD, $XD, $XD })",
     8, 1e-5},
    {"lerp",
     R"(func.func @k(%x: $XD, %y: $XD, %w: $F) -> $XD {
       %0 = train.lerp %x to %y by %w : ($XD, $XD, $F) -> $XD
       return %0 : $XD })"},
    {"lion_factors",
     R"(func.func @k(%p: $XD, %g: $XD, %m: $XD, %c: $F, %l: $F, %b1: $F, %b2: $F, %wd: $F) -> ($XD, $XD) {
       %0:2 = train.update "lion" decay %p, %g, %m, %c, %l, %b1, %b2, %wd {lr_factor = 0.3 : f64, decay_factor = 3.0 : f64}
           : ($XD, $XD, $XD, $F, $F, $F, $F, $F) -> ($XD, $XD)
       return %0#0, %0#1 : $XD, $XD })"},
    // The same for tensors of several shapes.
    {"many_updates",
     R"(func.func @k(%p: $XD, %g: $XD, %q: $VD, %h: $VD, %r: $XD, %i: $XD, %s: $TD, %j: $TD, %c: $F, %l: $F)
           -> ($XD, $VD, $XD, $TD) {
       %0 = train.update "sgd" %p, %g, %c, %l : ($XD, $XD, $F, $F) -> $XD
       %1 = train.update "sgd" %q, %h, %c, %l : ($VD, $VD, $F, $F) -> $VD
       %2 = train.update "sgd" %r, %i, %c, %l : ($XD, $XD, $F, $F) -> $XD
       %3 = train.update "sgd" %s, %j, %c, %l : ($TD, $TD, $F, $F) -> $TD
       return %0, %1, %2, %3 : $XD, $VD, $XD, $TD })"},
    {"many_square_sums", R"(func.func @k(%x: $XD, %y: $VD, %z: $XD, %t: $TD) -> ($F, $F, $F, $F) {
       %0 = train.square_sum %x : ($XD) -> $F %1 = train.square_sum %y : ($VD) -> $F
       %2 = train.square_sum %z : ($XD) -> $F %3 = train.square_sum %t : ($TD) -> $F
       return %0, %1, %2, %3 : $F, $F, $F, $F })"},
    // Ids and indices of a part.
    {"embedding_outside", R"(func.func @k(%t: tensor<5x$Dxf32>, %i: $ID, %b: tensor<i32>) -> $XD {
       %s = train.shift_ids %i, %b : ($ID, tensor<i32>) -> $ID
       %0 = train.embedding %t, %s : (tensor<5x$Dxf32>, $ID) -> $XD return %0 : $XD })"},
    {"embedding_grad_outside",
     R"(func.func @k(%y: $XD, %i: $ID, %b: tensor<i32>) -> tensor<5x$Dxf32> {
       %s = train.shift_ids %i, %b : ($ID, tensor<i32>) -> $ID
       %0 = train.embedding_grad %y, %s rows 5 : ($XD, $ID) -> tensor<5x$Dxf32> return %0 : tensor<5x$Dxf32> })"},
    {"rows_outside", R"(func.func @k(%t: tensor<5xf32>, %i: $ID) -> tensor<$Bx$Sxf32> {
       %0 = train.gather_rows %t, %i : (tensor<5xf32>, $ID) -> tensor<$Bx$Sxf32> return %0 : tensor<$Bx$Sxf32> })"},
    {"ignore_id", R"(func.func @k(%i: $ID) -> $ID {
       %0 = train.ignore_id %i id 3 : ($ID) -> $ID return %0 : $ID })"},
    {"pick", R"(func.func @k(%x: $XD, %i: $ID) -> tensor<$Bx$Sxf32> {
       %0 = train.pick %x, %i : ($XD, $ID) -> tensor<$Bx$Sxf32> return %0 : tensor<$Bx$Sxf32> })",
     40},
    {"cross_entropy_ignored", R"(func.func @k(%x: $XD, %t: $ID) -> $F {
       %i = train.ignore_id %t id 2 : ($ID) -> $ID
       %0:2 = train.cross_entropy %x, %i scale 0.01 : ($XD, $ID) -> ($F, $XR) return %0#0 : $F })",
     3, 2e-6},
    // Most threads find nothing but minus infinity in a row.
    {"cross_entropy_masked", R"(func.func @k(%x: $XD, %t: $ID) -> ($F, $XR, $XD) {
       %m = train.mask %x dim 2 below 1 {value = 0xFFF0000000000000 : f64} : ($XD) -> $XD
       %0:2 = train.cross_entropy %m, %t scale 0.01 : ($XD, $ID) -> ($F, $XR)
       %g = train.fill 1.0 : () -> $F
       %1 = train.cross_entropy_grad %m, %t, %0#1, %g scale 0.01 : ($XD, $ID, $XR, $F) -> $XD
       return %0#0, %0#1, %1 : $F, $XR, $XD })",
     1, 2e-6},
    {"cross_entropy_grad_ignored", R"(func.func @k(%x: $XD, %t: $ID, %p: $XR, %g: $F) -> $XD {
       %l:2 = train.token_loss %p, %p, %t below 2 scale 0.01 : ($XR, $XR, $ID) -> ($F, $XR)
       %0 = train.cross_entropy_grad %x, %t, %l#1, %g scale 0.01 : ($XD, $ID, $XR, $F) -> $XD return %0 : $XD })",
     4},
    {"exp_log", R"(func.func @k(%x: $XD) -> ($XD, $XD) {
       %0 = train.exp %x : ($XD) -> $XD %1 = train.log %0 : ($XD) -> $XD return %0, %1 : $XD, $XD })",
     8, 1e-5},
    {"inverse_root", R"(func.func @k(%x: $XD {test.positive}) -> $XD {
       %0 = train.inverse_root %x eps 1.0e-2 : ($XD) -> $XD return %0 : $XD })"},
    {"mask", R"(func.func @k(%x: $XD, %b: tensor<i32>) -> ($XD, $XD) {
       %0 = train.mask %x dim 1 below 2 : ($XD) -> $XD
       %1 = train.mask %x offset %b dim 2 below 30 {value = -2.5} : ($XD, tensor<i32>) -> $XD
       return %0, %1 : $XD, $XD })"},
    {"mask_of_part", R"(func.func @k(%x: $XD, %i: tensor<i32>, %b: tensor<i32>) -> ($XD, $XD) {
       %p = train.part_offset %i offset %b every 2 parts 3 size 5 : (tensor<i32>, tensor<i32>) -> tensor<i32>
       %q = train.part_offset %i every 1 parts 2 size 1 : (tensor<i32>) -> tensor<i32>
       %0 = train.mask %x offset %p dim 2 below 12 : ($XD, tensor<i32>) -> $XD
       %1 = train.mask %x offset %q dim 1 below 2 : ($XD, tensor<i32>) -> $XD return %0, %1 : $XD, $XD })"},
    {"mask_max", R"(func.func @k(%x: $XD) -> $XR {
       %0 = train.mask %x dim 2 below 1 {value = 0xFFF0000000000000 : f64} : ($XD) -> $XD
       %1 = train.reduce max %0 over [2] : ($XD) -> $XR return %1 : $XR })"},
    {"dropout_part",
     R"(func.func @k(%x: $XD, %i: tensor<$Bxi32>, %key: tensor<2xi32>, %b: tensor<i32>) -> $XD {
       %0 = train.dropout %x, %i, %key offsets(%b, %b) rate 0.3 stream 5 sizes [100, 200] {offset_dims = array<i64: 1, 2>}
         : ($XD, tensor<$Bxi32>, tensor<2xi32>, tensor<i32>, tensor<i32>) -> $XD return %0 : $XD })",
     100000},
    {"rope_table_part", R"(func.func @k(%b: tensor<i32>) -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>) {
       %0:2 = train.rope_table [1.0, 0.0517, 0.00021] offset %b : (tensor<i32>) -> (tensor<$Bx3xf32>, tensor<$Bx3xf32>)
       return %0#0, %0#1 : tensor<$Bx3xf32>, tensor<$Bx3xf32> })"},
    {"slice_middle", R"(func.func @k(%x: tensor<$Bx40x$Dxf32>) -> $XD {
       %0 = train.slice %x dim 1 rows $S : (tensor<$Bx40x$Dxf32>) -> $XD return %0 : $XD })"},
    {"slice_columns", R"(func.func @k(%x: tensor<$Sx60000xf32>) -> $TD {
       %0 = train.slice %x dim 1 rows $D : (tensor<$Sx60000xf32>) -> $TD return %0 : $TD })"},
    {"pad_middle", R"(func.func @k(%x: $XD, %w: $VD) -> tensor<$Bx40x$Dxf32> {
       %n = train.rms_norm %x, %w eps 1.0e-5 : ($XD, $VD) -> $XD
       %0 = train.pad %n dim 1 rows 40 {value = 3 : i64} : ($XD) -> tensor<$Bx40x$Dxf32> return %0 : tensor<$Bx40x$Dxf32> })"},
    {"pad_columns", R"(func.func @k(%x: $TD) -> tensor<$Sx60000xf32> {
       %0 = train.pad %x dim 1 rows 60000 : ($TD) -> tensor<$Sx60000xf32> return %0 : tensor<$Sx60000xf32> })"},
    {"pad_ids", R"(func.func @k(%i: $ID) -> tensor<$Bx40xi32> {
       %0 = train.pad %i dim 1 rows 40 {value = -1 : i64} : ($ID) -> tensor<$Bx40xi32> return %0 : tensor<$Bx40xi32> })"},
    {"slice_from", R"(func.func @k(%x: tensor<$Bx40x$Dxf32>) -> tensor<$Bx9x$Dxf32> {
       %0 = train.slice %x dim 1 from 30 rows 9 : (tensor<$Bx40x$Dxf32>) -> tensor<$Bx9x$Dxf32> return %0 : tensor<$Bx9x$Dxf32> })"},
    {"slice_columns_from", R"(func.func @k(%x: tensor<$Sx60000xf32>) -> $TD {
       %0 = train.slice %x dim 1 from 37 rows $D : (tensor<$Sx60000xf32>) -> $TD return %0 : $TD })"},
    // Rows that begin anywhere are not read by vectors.
    {"norm_of_columns_from", R"(func.func @k(%x: tensor<$Sx60000xf32>, %w: $VD) -> $TD {
       %0 = train.slice %x dim 1 from 37 rows $D : (tensor<$Sx60000xf32>) -> $TD
       %1 = train.rms_norm %0, %w eps 1.0e-5 : ($TD, $VD) -> $TD return %1 : $TD })"},
    {"pad_from", R"(func.func @k(%x: $XD) -> tensor<$Bx140x$Dxf32> {
       %0 = train.pad %x dim 1 from 3 rows 140 {value = 3 : i64} : ($XD) -> tensor<$Bx140x$Dxf32> return %0 : tensor<$Bx140x$Dxf32> })"},
    {"pad_columns_from", R"(func.func @k(%x: $TD) -> tensor<$Sx60000xf32> {
       %0 = train.pad %x dim 1 from 5 rows 60000 : ($TD) -> tensor<$Sx60000xf32> return %0 : tensor<$Sx60000xf32> })"},
    {"concatenation",
     R"(func.func @k(%x: tensor<$Bx$Sx1x$Dxf32>, %y: tensor<$Sx1x$Dxf32>) -> tensor<$Bx$Sx3x$Dxf32> {
       %2 = train.pad %x dim 2 from 2 rows 3 : (tensor<$Bx$Sx1x$Dxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       %3 = train.pad %y dim 1 rows 3 : (tensor<$Sx1x$Dxf32>) -> tensor<$Sx3x$Dxf32>
       %4 = train.broadcast %3 along [0] : (tensor<$Sx3x$Dxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       %5 = train.add %2, %4 : (tensor<$Bx$Sx3x$Dxf32>, tensor<$Bx$Sx3x$Dxf32>) -> tensor<$Bx$Sx3x$Dxf32>
       return %5 : tensor<$Bx$Sx3x$Dxf32> })"},
    {"alibi_slopes", R"(func.func @k(%b: $I) -> tensor<$Dxf32> {
       %0 = train.alibi_slopes bias 8.0 offset %b {heads = 60001 : i64} : ($I) -> tensor<$Dxf32> return %0 : tensor<$Dxf32> })"},
    // Clusters.
    {"bias_gelu", R"(func.func @k(%x: $XD, %c: $VD) -> ($XD, $XD) {
       %0 = train.add %x, %c : ($XD, $VD) -> $XD %1 = train.gelu tanh %0 : ($XD) -> $XD return %0, %1 : $XD, $XD })"},
    {"residual_norm", R"(func.func @k(%x: $XD, %y: $XD, %c: $VD, %w: $VD, %b: $VD) -> ($XD, $XD) {
       %0 = train.add %y, %c : ($XD, $VD) -> $XD %1 = train.add %x, %0 : ($XD, $XD) -> $XD
       %2 = train.layer_norm %1, %w, %b eps 1.0e-5 : ($XD, $VD, $VD) -> $XD return %1, %2 : $XD, $XD })"},
    {"gelu_grad_bias_grad", R"(func.func @k(%y: $XD, %x: $XD) -> ($XD, $VD) {
       %0 = train.gelu_grad tanh %y, %x : ($XD, $XD) -> $XD %1 = train.reduce sum %0 over [0, 1] : ($XD) -> $VD
       return %0, %1 : $XD, $VD })",
     8, 1e-5},
    {"norm_grad_accumulate",
     R"(func.func @k(%y: $XD, %x: $XD, %w: $VD, %r: $XD, %aw: $VD) -> ($XD, $VD, $VD, $VD) {
       %0:3 = train.layer_norm_grad %y, %x, %w eps 1.0e-2 : ($XD, $XD, $VD) -> ($XD, $VD, $VD)
       %1 = train.accumulate %r, %0#0 : ($XD, $XD) -> $XD
       %2 = train.accumulate %aw, %0#1 : ($VD, $VD) -> $VD
       %3 = train.reduce sum %1 over [0, 1] : ($XD) -> $VD
       return %1, %2, %0#2, %3 : $XD, $VD, $VD, $VD })",
     8, 2e-5},
    {"norm_column_max", R"(func.func @k(%x: $XD, %w: $VD) -> ($XD, $VD) {
       %0 = train.rms_norm %x, %w eps 1.0e-5 : ($XD, $VD) -> $XD
       %1 = train.reduce max %0 over [0, 1] : ($XD) -> $VD return %0, %1 : $XD, $VD })"},
    {"norm_grad_embedding_grad",
     R"(func.func @k(%y: $XD, %x: $XD, %w: $VD, %i: $ID, %a: tensor<9x$Dxf32>) -> (tensor<9x$Dxf32>, $TD) {
       %0:3 = train.layer_norm_grad %y, %x, %w eps 1.0e-2 : ($XD, $XD, $VD) -> ($XD, $VD, $VD)
       %1 = train.embedding_grad %0#0, %i init %a rows 9 : ($XD, $ID, tensor<9x$Dxf32>) -> tensor<9x$Dxf32>
       %2 = train.reduce sum %0#0 over [0] : ($XD) -> $TD
       return %1, %2 : tensor<9x$Dxf32>, $TD })",
     8, 2e-5, false, true},
    {"dropout_residual_norm",
     R"(func.func @k(%x: $XD, %y: $XD, %i: tensor<$Bxi32>, %key: tensor<2xi32>, %w: $VD) -> $XD {
       %0 = train.dropout %y, %i, %key rate 0.1 stream 1 : ($XD, tensor<$Bxi32>, tensor<2xi32>) -> $XD
       %1 = train.add %x, %0 : ($XD, $XD) -> $XD
       %2 = train.rms_norm %1, %w eps 1.0e-5 : ($XD, $VD) -> $XD return %2 : $XD })",
     1000},
    {"embedding_position_norm",
     R"(func.func @k(%t: tensor<8x$Dxf32>, %i: $ID, %p: tensor<40x$Dxf32>, %w: $VD, %c: $VD) -> ($XD, $XD) {
       %0 = train.embedding %t, %i : (tensor<8x$Dxf32>, $ID) -> $XD
       %1 = train.slice %p rows $S : (tensor<40x$Dxf32>) -> $TD
       %2 = train.add %0, %1 : ($XD, $TD) -> $XD
       %3 = train.layer_norm %2, %w, %c eps 1.0e-5 : ($XD, $VD, $VD) -> $XD return %2, %3 : $XD, $XD })"},
    {"whole_sum_broadcast_back", R"(func.func @k(%x: $XD) -> $XD {
       %0 = train.square_sum %x : ($XD) -> $F
       %1 = train.broadcast %0 along [0, 1, 2] : ($F) -> $XD
       %2 = train.add %x, %1 : ($XD, $XD) -> $XD return %2 : $XD })"},
    {"norm_of_own_part",
     R"(func.func @k(%x: $XD, %p: tensor<17x$Dxf32>, %b: $I, %w: $VD) -> ($XD, tensor<$Sx$Bx$Dxf32>) {
       %0 = train.dynamic_slice %p dim 0 at %b : (tensor<17x$Dxf32>, $I) -> $TD
       %1 = train.add %x, %0 : ($XD, $TD) -> $XD
       %2 = train.rms_norm %1, %w eps 1.0e-5 : ($XD, $VD) -> $XD
       %3 = train.transpose_blocks %1 : ($XD) -> tensor<$Sx$Bx$Dxf32>
       return %2, %3 : $XD, tensor<$Sx$Bx$Dxf32> })"},
    {"gate", R"(func.func @k(%x: $XD, %y: $XD) -> ($XD, $F) {
       %0 = train.silu %x : ($XD) -> $XD %1 = train.mul %0, %y : ($XD, $XD) -> $XD
       %2 = train.square_sum %1 : ($XD) -> $F return %1, %2 : $XD, $F })",
     8, 1e-5},
    {"softmax", R"(func.func @k(%x: $XD) -> $XD {
       %m = train.reduce max %x over [2] : ($XD) -> $XR
       %mb = train.broadcast %m along [2] : ($XR) -> $XD
       %c = arith.subf %x, %mb : $XD %e = math.exp %c : $XD
       %s = train.reduce sum %e over [2] : ($XD) -> $XR
       %sb = train.broadcast %s along [2] : ($XR) -> $XD
       %y = arith.divf %e, %sb : $XD return %y : $XD })"},
    {"log_sum_exp", R"(func.func @k(%x: $XD) -> $XR {
       %0 = train.log_sum_exp %x : ($XD) -> $XR return %0 : $XR })"},
    // All results are about exp(-8), of which 1 + exp(-8) keeps three digits.
    {"softplus_far_below_0", R"(func.func @k(%x: $XD) -> $XD {
       %s = train.scale %x by 0.01 : ($XD) -> $XD
       %f = train.fill -8.0 : () -> $XD
       %a = train.add %s, %f : ($XD, $XD) -> $XD
       %b = train.broadcast %a along [3] : ($XD) -> tensor<$Bx$Sx$Dx1xf32>
       %p = train.pad %b dim 3 rows 2 : (tensor<$Bx$Sx$Dx1xf32>) -> tensor<$Bx$Sx$Dx2xf32>
       %0 = train.log_sum_exp %p : (tensor<$Bx$Sx$Dx2xf32>) -> $XD return %0 : $XD })"},
    {"tally", R"(func.func @k(%m: $XD, %x: $XD) -> $VD {
       %0 = train.tally %m, %x : ($XD, $XD) -> $VD return %0 : $VD })"},
    {"balance", R"(func.func @k(%b: $TD, %n: $TD) -> $TD {
       %0 = train.balance %b by %n rate 0.125 : ($TD, $TD) -> $TD return %0 : $TD })"},
    {"identity",
     "func.func @k(%x: $XD, %t: $ID) -> ($XD, $XD, $ID) { return %x, %x, %t : $XD, $XD, $ID }"},
    // The second update is launched with the first, before what stands between them reads.
    {"updates_around_reader",
     R"(func.func @k(%p: $XD, %g: $XD, %q: $XD, %h: $XD, %c: $F, %l: $F) -> ($XD, tensor<$Sx$Bx$Dxf32>, $XD) {
       %0 = train.update "sgd" %p, %g, %c, %l : ($XD, $XD, $F, $F) -> $XD
       %1 = train.transpose_blocks %q : ($XD) -> tensor<$Sx$Bx$Dxf32>
       %2 = train.update "sgd" %q, %h, %c, %l : ($XD, $XD, $F, $F) -> $XD
       return %0, %1, %2 : $XD, tensor<$Sx$Bx$Dxf32>, $XD })"},
    // In bf16 and f16 rows of equal ids are summed before they are added.
    {"embedding_grad_large_table",
     R"(func.func @k(%y: $XD, %i: $ID, %a: tensor<1300x$Dxf32>) -> tensor<1300x$Dxf32> {
       %0 = train.embedding_grad %y, %i init %a rows 1300 : ($XD, $ID, tensor<1300x$Dxf32>) -> tensor<1300x$Dxf32>
       return %0 : tensor<1300x$Dxf32> })",
     8, 1e-5},
    {"embedding_grad_large_table_outside",
     R"(func.func @k(%y: $XD, %i: $ID, %b: tensor<i32>) -> tensor<1300x$Dxf32> {
       %s = train.shift_ids %i, %b : ($ID, tensor<i32>) -> $ID
       %0 = train.embedding_grad %y, %s rows 1300 : ($XD, $ID) -> tensor<1300x$Dxf32> return %0 : tensor<1300x$Dxf32> })",
     1400, 1e-5},
    {"embedding_grad_large_table_blocks",
     R"(func.func @k(%y: tensor<2x$Bx$Sx$Dxf32>, %i: tensor<2x$Bx$Sxi32>) -> tensor<2700x$Dxf32> {
       %0 = train.embedding_grad %y, %i rows 2700 : (tensor<2x$Bx$Sx$Dxf32>, tensor<2x$Bx$Sxi32>) -> tensor<2700x$Dxf32>
       return %0 : tensor<2700x$Dxf32> })",
     8, 1e-5},
    {"embedding_grad_init_sum",
     R"(func.func @k(%y: $XD, %i: $ID, %a: tensor<3x9x$Dxf32>) -> tensor<9x$Dxf32> {
       %s = train.reduce sum %a over [0] : (tensor<3x9x$Dxf32>) -> tensor<9x$Dxf32>
       %0 = train.embedding_grad %y, %i init %s rows 9 : ($XD, $ID, tensor<9x$Dxf32>) -> tensor<9x$Dxf32>
       return %0 : tensor<9x$Dxf32> })",
     8, 1e-5},
    {"rotate_half", R"(func.func @k(%x: $XD) -> $XD {
       %0 = train.rotate_half %x : ($XD) -> $XD return %0 : $XD })",
     8, 3e-6, true},
    {"halves_of_two_widths", R"(func.func @k(%x: $XD, %z: tensor<$Bx$Sx6xf32>) -> $XD {
       %r = train.rotate_half %z : (tensor<$Bx$Sx6xf32>) -> tensor<$Bx$Sx6xf32>
       %s = train.reduce sum %r over [2] : (tensor<$Bx$Sx6xf32>) -> $XR
       %b = train.broadcast %s along [2] : ($XR) -> $XD
       %h = train.rotate_half %x : ($XD) -> $XD
       %0 = train.add %h, %b : ($XD, $XD) -> $XD return %0 : $XD })",
     8, 1e-5, true},
    {"row_sum_in_place", R"(func.func @k(%x: $XD, %m: tensor<$Bx$Sxf32>) -> ($XD, tensor<$Bx$Sxf32>) {
       %s = train.reduce sum %x over [2] : ($XD) -> tensor<$Bx$Sxf32>
       %0 = train.add %s, %m : (tensor<$Bx$Sxf32>, tensor<$Bx$Sxf32>) -> tensor<$Bx$Sxf32>
       %1 = train.broadcast %0 along [2] : (tensor<$Bx$Sxf32>) -> $XD
       %2 = train.add %x, %1 : ($XD, $XD) -> $XD return %2, %0 : $XD, tensor<$Bx$Sxf32> })",
     8, 1e-5},
    {"many_reductions", R"(func.func @k(%x: $XD, %y: $XD) -> ($F, $F) {
       %0 = train.reduce max %x over [0, 1, 2] : ($XD) -> $F %1 = train.reduce sum %y over [0, 1, 2] : ($XD) -> $F
       return %0, %1 : $F, $F })",
     8, 1e-4},
    {"norm_of_vector", R"(func.func @k(%x: $VD, %w: $VD) -> $VD {
       %0 = train.rms_norm %x, %w eps 1.0e-5 : ($VD, $VD) -> $VD return %0 : $VD })"},
};

std::vector<Case> test::kernelCases() { return {std::begin(cases), std::end(cases)}; }
