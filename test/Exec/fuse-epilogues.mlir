// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags=epilogues=bias,addend,gelu,gelu-grad" --exec-fuse-epilogues -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags=epilogues=bias-grad" --exec-fuse-epilogues -split-input-file | FileCheck %s --check-prefix GRAD
// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags=epilogues=bias" --exec-fuse-epilogues -split-input-file | FileCheck %s --check-prefix BIAS
// RUN: not meshwright-opt %s --exec-assign-target="target=cuda flags=epilogues=silu" -split-input-file 2>&1 | FileCheck %s --check-prefix UNKNOWN
// RUN: not meshwright-opt %s --exec-assign-target="target=cuda flags=epilogues=bias,addend,bias" -split-input-file 2>&1 | FileCheck %s --check-prefix TWICE
// TWICE: --epilogues bias,addend,bias names bias twice; name it once
// UNKNOWN: --epilogues silu is not supported; there are bias, addend, gelu, gelu-grad and bias-grad, or auto or none

// BEGIN EXAMPLE --exec-assign-target=target=cuda --exec-fuse-epilogues
func.func @mlp(%x: tensor<4x8xbf16>, %w: tensor<16x8xbf16>, %b: tensor<16xbf16>, %v: tensor<8x16xbf16>) -> tensor<4x8xbf16> {
  %0 = train.linear %x, %w : (tensor<4x8xbf16>, tensor<16x8xbf16>) -> tensor<4x16xbf16>
  %1 = train.add %0, %b : (tensor<4x16xbf16>, tensor<16xbf16>) -> tensor<4x16xbf16>
  %2 = train.gelu tanh %1 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %3 = train.linear %2, %v : (tensor<4x16xbf16>, tensor<8x16xbf16>) -> tensor<4x8xbf16>
  %4 = train.add %x, %3 : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %4 : tensor<4x8xbf16>
}
// END EXAMPLE

// CHECK-LABEL: func.func @mlp
// CHECK-NEXT: %[[H:.*]] = exec.product "{{.*}}" %arg0, %arg1 bias %arg2 gelu : (tensor<4x8xbf16>, tensor<16x8xbf16>, tensor<16xbf16>) -> tensor<4x16xbf16>
// CHECK-NEXT: %[[Y:.*]] = exec.product "{{.*}}" %[[H]], %arg3 addend %arg0 : (tensor<4x16xbf16>, tensor<8x16xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
// CHECK-NEXT: return %[[Y]]
// BIAS-LABEL: func.func @mlp
// BIAS-NEXT: %[[H:.*]] = exec.product "{{.*}}" %arg0, %arg1 bias %arg2 :
// BIAS-NEXT: train.gelu tanh %[[H]]
// BIAS-NEXT: train.linear
// BIAS-NEXT: train.add

// -----

// What gelu is taken of is kept for the backward; there its derivative is an epilogue too.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT: %[[Y:.*]], %[[X:.*]] = exec.product "{{.*}}" %arg0, %arg1 bias %arg2 gelu :
// CHECK-NEXT: %[[D:.*]] = exec.product "b o, o i -> b i" %arg3, %arg4 gelu_grad %[[X]] :
// CHECK-NEXT: return %[[Y]], %[[D]]
func.func @kept(%x: tensor<4x8xbf16>, %w: tensor<16x8xbf16>, %b: tensor<16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  %0 = train.linear %x, %w : (tensor<4x8xbf16>, tensor<16x8xbf16>) -> tensor<4x16xbf16>
  %1 = train.add %0, %b : (tensor<4x16xbf16>, tensor<16xbf16>) -> tensor<4x16xbf16>
  %2 = train.gelu tanh %1 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %3 = train.contract "b o, o i -> b i" %dy, %v : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  %4 = train.gelu_grad tanh %3, %1 : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return %2, %4 : tensor<4x16xbf16>, tensor<4x16xbf16>
}

// -----

// Bias and residual in one; the residual may come later than the product.
// CHECK-LABEL: func.func @both
// CHECK-NEXT: %[[R:.*]] = train.relu %arg3
// CHECK-NEXT: exec.product "{{.*}}" %arg0, %arg1 addend %[[R]] bias %arg2 :
// CHECK-NEXT: return
func.func @both(%x: tensor<4x8xf32>, %w: tensor<5x8xf32>, %b: tensor<5xf32>, %r: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x5xf32>
  %1 = train.add %0, %b : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  %2 = train.relu %r : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %3 = train.add %2, %1 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}

// -----

// What the library does not do, or not exactly: gelu in f32, by erf, with rows of 12
// elements; a product that others read too; a bias of two dimensions.
// CHECK-LABEL: func.func @not
// CHECK-NOT: exec.product
// CHECK: return
func.func @not(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %n: tensor<4x8xbf16>, %m: tensor<16x8xbf16>, %o: tensor<12x8xbf16>, %p: tensor<2x4x8xbf16>, %b: tensor<4x16xbf16>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xbf16>, tensor<4x12xbf16>, tensor<2x4x16xbf16>) {
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %1 = train.gelu tanh %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = train.add %0, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %3 = train.linear %n, %m : (tensor<4x8xbf16>, tensor<16x8xbf16>) -> tensor<4x16xbf16>
  %4 = train.gelu %3 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %5 = train.linear %n, %o : (tensor<4x8xbf16>, tensor<12x8xbf16>) -> tensor<4x12xbf16>
  %6 = train.gelu tanh %5 : (tensor<4x12xbf16>) -> tensor<4x12xbf16>
  %7 = train.linear %p, %m : (tensor<2x4x8xbf16>, tensor<16x8xbf16>) -> tensor<2x4x16xbf16>
  %8 = train.add %7, %b : (tensor<2x4x16xbf16>, tensor<4x16xbf16>) -> tensor<2x4x16xbf16>
  return %1, %2, %4, %6, %8 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xbf16>, tensor<4x12xbf16>, tensor<2x4x16xbf16>
}

// -----

// Gradients of a linear layer: the product that makes the one of the weights sums dy too, be it
// the left factor or the right one. It may add to an init; nothing is added to the sums.
// GRAD-LABEL: func.func @bias_gradients
// GRAD-NEXT: %[[W:.*]], %[[B:.*]] = exec.product "t s o, t s i -> o i" %arg0, %arg1 bias_grad 0 : (tensor<2x4x16xbf16>, tensor<2x4x8xbf16>) -> (tensor<16x8xf32>, tensor<16xf32>)
// GRAD-NEXT: %[[V:.*]], %[[C:.*]] = exec.product "t s i, t s o -> i o" %arg1, %arg2 addend %arg3 bias_grad 1 :
// GRAD-NEXT: %[[S:.*]] = train.accumulate %arg4, %[[C]]
// GRAD-NEXT: return %[[W]], %[[B]], %[[V]], %[[S]]
// CHECK-LABEL: func.func @bias_gradients
// CHECK-NOT: exec.product
func.func @bias_gradients(%dy: tensor<2x4x16xbf16>, %x: tensor<2x4x8xbf16>, %dz: tensor<2x4x16xbf16>, %v: tensor<8x16xf32>, %c: tensor<16xf32>)
    -> (tensor<16x8xf32>, tensor<16xf32>, tensor<8x16xf32>, tensor<16xf32>) {
  %0 = train.reduce sum %dy over [0, 1] : (tensor<2x4x16xbf16>) -> tensor<16xf32>
  %1 = train.contract "t s o, t s i -> o i" %dy, %x : (tensor<2x4x16xbf16>, tensor<2x4x8xbf16>) -> tensor<16x8xf32>
  %2 = train.contract "t s i, t s o -> i o" %x, %dz init %v : (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = train.reduce sum %dz over [0, 1] : (tensor<2x4x16xbf16>) -> tensor<16xf32>
  %4 = train.accumulate %c, %3 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1, %0, %2, %4 : tensor<16x8xf32>, tensor<16xf32>, tensor<8x16xf32>, tensor<16xf32>
}

// -----

// Where heads are apart the sums are in the order of the factor's dimensions.
// GRAD-LABEL: func.func @heads
// GRAD-NEXT: exec.product "t h d, t i -> h d i" %arg0, %arg1 bias_grad 0 : (tensor<4x2x8xf32>, tensor<4x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8xf32>)
// GRAD-NEXT: return
func.func @heads(%dy: tensor<4x2x8xf32>, %x: tensor<4x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8xf32>) {
  %0 = train.reduce sum %dy over [0] : (tensor<4x2x8xf32>) -> tensor<2x8xf32>
  %1 = train.contract "t h d, t i -> h d i" %dy, %x : (tensor<4x2x8xf32>, tensor<4x8xf32>) -> tensor<2x8x8xf32>
  return %1, %0 : tensor<2x8x8xf32>, tensor<2x8xf32>
}

// -----

// Not: sums of another type; over other dimensions; maxima; of what a kernel makes (%4) or reads
// (%dz); needed before the product; of a factor whose tokens are contiguous.
// GRAD-LABEL: func.func @not_sums
// GRAD-NOT: exec.product
// GRAD: return
func.func @not_sums(%dy: tensor<4x16xbf16>, %x: tensor<4x8xbf16>, %dz: tensor<4x16xbf16>, %t: tensor<16x4xf32>, %y: tensor<8x4xf32>, %s: tensor<16xf32>)
    -> (tensor<16x8xf32>, tensor<16xbf16>, tensor<4xf32>, tensor<16xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<4x16xbf16>, tensor<16x8xf32>, tensor<16xf32>, tensor<4x4xf32>) {
  %0 = train.contract "t o, t i -> o i" %dy, %x : (tensor<4x16xbf16>, tensor<4x8xbf16>) -> tensor<16x8xf32>
  %1 = train.reduce sum %dy over [0] : (tensor<4x16xbf16>) -> tensor<16xbf16>
  %2 = train.reduce sum %dy over [1] : (tensor<4x16xbf16>) -> tensor<4xf32>
  %3 = train.reduce max %dy over [0] : (tensor<4x16xbf16>) -> tensor<16xf32>
  %4 = train.relu %dz : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %5 = train.contract "t o, t i -> o i" %4, %x : (tensor<4x16xbf16>, tensor<4x8xbf16>) -> tensor<16x8xf32>
  %6 = train.reduce sum %4 over [0] : (tensor<4x16xbf16>) -> tensor<16xf32>
  %7 = train.contract "t o, t i -> o i" %dz, %x : (tensor<4x16xbf16>, tensor<4x8xbf16>) -> tensor<16x8xf32>
  %8 = train.reduce sum %dz over [0] : (tensor<4x16xbf16>) -> tensor<16xf32>
  %9 = train.contract "o t, i t -> o i" %t, %y : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %10 = train.reduce sum %t over [1] : (tensor<16x4xf32>) -> tensor<16xf32>
  %11 = train.reduce sum %y over [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %12 = train.broadcast %11 along [0] : (tensor<4xf32>) -> tensor<8x4xf32>
  %13 = train.contract "i s, i t -> s t" %y, %12 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %5, %6, %7, %8, %4, %9, %10, %13 : tensor<16x8xf32>, tensor<16xbf16>, tensor<4xf32>, tensor<16xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<4x16xbf16>, tensor<16x8xf32>, tensor<16xf32>, tensor<4x4xf32>
}

// -----

// What is read before gelu is there before it.
// CHECK-LABEL: func.func @before
// CHECK-NOT: exec.product
// CHECK: return
func.func @before(%x: tensor<4x8xbf16>, %w: tensor<16x8xbf16>) -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  %0 = train.linear %x, %w : (tensor<4x8xbf16>, tensor<16x8xbf16>) -> tensor<4x16xbf16>
  %1 = train.relu %0 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %2 = train.gelu tanh %0 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return %1, %2 : tensor<4x16xbf16>, tensor<4x16xbf16>
}

// -----

// Nor maxima, where nothing else reads the factor.
// GRAD-LABEL: func.func @maxima
// GRAD-NOT: exec.product
// GRAD: return
func.func @maxima(%dy: tensor<2x4x16xbf16>, %x: tensor<2x4x8xbf16>) -> (tensor<16x8xf32>, tensor<16xf32>) {
  %0 = train.contract "t s o, t s i -> o i" %dy, %x : (tensor<2x4x16xbf16>, tensor<2x4x8xbf16>) -> tensor<16x8xf32>
  %1 = train.reduce max %dy over [0, 1] : (tensor<2x4x16xbf16>) -> tensor<16xf32>
  return %0, %1 : tensor<16x8xf32>, tensor<16xf32>
}
