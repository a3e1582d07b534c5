// RUN: meshwright-opt %s --train-autodiff --train-block-gradients=method=powersgd:1,blocks=2 -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=BLOCKS
// RUN: meshwright-opt %s --train-autodiff --train-block-gradients=method=powersgd:1,blocks=2 --train-accumulate --train-build-optimizer=grad-compression=powersgd:1 --train-verify -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=STEP
// On two devices each has its block: only the factors are summed over devices.
// RUN: meshwright-opt %S/Inputs/blocks.mlir --train-autodiff --train-block-gradients=method=powersgd:1,blocks=2 --train-accumulate --train-build-optimizer=grad-compression=powersgd:1 --train-verify --symbol-dce -o %t.step.mlir
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=data=2 --dist-propagate --dist-partition -o %t.local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t.local.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function step --ranks 2
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition -o %t.zero.mlir
// RUN: FileCheck %s --check-prefix=ZERO < %t.zero.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.zero.mlir --function step --ranks 2
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=tensor=2 --dist-propagate --dist-partition -o %t.tensor.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.tensor.mlir --function step --ranks 2
// RUN: not meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=data=4 2>&1 | FileCheck %s --check-prefix=UNEVEN
// UNEVEN: gradients are compressed in 2 blocks, which do not divide by the 4 devices along {data}; use as many blocks as devices, or a multiple

// BEGIN EXAMPLE --train-autodiff --train-block-gradients=method=powersgd:1,blocks=2
module attributes {train.batch = 8 : i64, train.microbatches = 2 : i64} {
  train.variable @w : tensor<3x8x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @v : tensor<8xf32> init <"normal", 0.02> storage <"v">
  func.func private @layer(%x: tensor<4x2x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x2x8xf32> {
    %y = train.linear %x, %w : (tensor<4x2x8xf32>, tensor<8x8xf32>) -> tensor<4x2x8xf32>
    return %y : tensor<4x2x8xf32>
  }
  func.func @loss(%x: tensor<4x2x8xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x8x8xf32>
    %v = train.get @v : tensor<8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<4x2x8xf32>, tensor<3x8x8xf32>) -> tensor<4x2x8xf32>
    %z = train.mul %y, %v : (tensor<4x2x8xf32>, tensor<8xf32>) -> tensor<4x2x8xf32>
    %loss = train.reduce sum %z over [0, 1, 2] : (tensor<4x2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// Gradients of vectors are summed as they are.
// BLOCKS: func.func private @loss.gradients
// BLOCKS-SAME: tensor<3x2x8x8xf32> {train.gradient_of = @w}, tensor<8xf32> {train.gradient_of = @v}
// BLOCKS-LABEL: func.func private @layer.backward
// BLOCKS: %[[DY:.*]] = train.reshape {{.*}} : (tensor<4x2x8xf32>) -> tensor<2x2x2x8xf32>
// BLOCKS: %[[X:.*]] = train.reshape {{.*}} : (tensor<4x2x8xf32>) -> tensor<2x2x2x8xf32>
// BLOCKS: train.contract "blocks _0 _1 o, blocks _0 _1 i -> blocks o i" %[[DY]], %[[X]] : {{.*}} -> tensor<2x8x8xf32>

// STEP: train.variable @w.grad_residual : tensor<3x2x8x8xf32> stacked state "grad_residual" of @w
// STEP: train.variable @w.grad_factor : tensor<3x8x1xf32> stacked init <"normal", 1.000000e+00 : f64> state "grad_factor" of @w
// STEP-NOT: @v.grad
// STEP-LABEL: func.func @step
// STEP: %[[E:.*]] = train.get @w.grad_residual
// STEP: %[[Q:.*]] = train.get @w.grad_factor
// STEP: %[[M:.*]] = train.add %{{.*}}, %[[E]] : (tensor<3x2x8x8xf32>
// STEP: %[[PS:.*]] = train.contract "l d m n, l n r -> r l d m" %[[M]], %[[Q]]
// STEP: %[[P:.*]] = train.reduce sum %[[PS]] over [2]
// STEP: %[[BASIS:.*]] = train.repeat @w.orthonormalize x 1 indexed carry(%{{.*}}) each(%[[P]]) shared() {train.role = #train.role<update>}
// STEP: %[[BASES:.*]] = train.broadcast %[[BASIS]] along [1]
// STEP: %[[RIGHTS:.*]] = train.contract "l d m n, l d r m -> l d n r" %[[M]], %[[BASES]]
// STEP: %[[RIGHT:.*]] = train.reduce sum %[[RIGHTS]] over [1]
// A column that is zero keeps its factor.
// STEP: %[[OLD:.*]] = train.mul %[[Q]], %{{.*}}
// STEP: %[[NEXT:.*]] = train.add %[[RIGHT]], %[[OLD]] :
// STEP: %[[G:.*]] = train.contract "l r m, l n r -> l m n" %[[BASIS]], %[[NEXT]]
// STEP: %[[SHARE:.*]] = train.scale %[[G]] by -5.000000e-01
// STEP: %[[ALL:.*]] = train.broadcast %[[SHARE]] along [1]
// STEP: %[[REST:.*]] = train.add %[[M]], %[[ALL]]
// Norm and update are of the approximation. A step that overflows changes no state.
// STEP: train.square_sum %[[G]]
// STEP: train.update "adamw" decay %{{.*}}, %[[G]],
// STEP: %[[KEPT:.*]] = train.guard %[[REST]], %{{.*}} if_finite
// STEP: train.set @w.grad_residual, %[[KEPT]]
// STEP: %[[KEPT:.*]] = train.guard %[[NEXT]], %{{.*}} if_finite
// STEP: train.set @w.grad_factor, %[[KEPT]]
// Two passes for each column.
// STEP-LABEL: func.func private @w.orthonormalize
// STEP-COUNT-2: train.inverse_root
// STEP-NOT: train.inverse_root
// STEP: train.one_hot

// LOCAL-LABEL: func.func @step
// LOCAL-NOT: dist.all_reduce {{.*}}tensor<3x{{(2x)?}}8x8xf32>
// LOCAL: dist.all_reduce sum {{.*}} : (tensor<1x3x8xf32>)
// LOCAL-NOT: dist.all_reduce {{.*}}tensor<3x{{(2x)?}}8x8xf32>
// LOCAL: dist.all_reduce sum {{.*}} : (tensor<3x8x1xf32>)
// LOCAL-NOT: dist.{{(all|reduce)}}{{.*}}tensor<3x{{(2x)?}}8x8xf32>
// LOCAL: return

// With ZeRO parameters are gathered, and nothing for the errors of blocks.
// ZERO-LABEL: func.func @step
// ZERO: dist.all_gather {{.*}} -> tensor<16x8xf32>
// ZERO: dist.all_gather {{.*}} -> tensor<3x8x8xf32>
// ZERO: dist.all_gather {{.*}} -> tensor<10x8xf32>
// ZERO: dist.all_gather {{.*}} -> tensor<10xf32>
// ZERO-NOT: dist.all_gather
// ZERO: return

// -----

// expected-error @below {{no gradient of a matrix is a product over the batch with more than 2 (m + n) elements of m n: nothing would be compressed at rank 1; use a lower rank, or leave compression out}}
module attributes {train.batch = 4 : i64, train.microbatches = 1 : i64} {
  train.variable @w : tensor<4x4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<4x2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<4x4xf32>
    %y = train.linear %x, %w : (tensor<4x2x4xf32>, tensor<4x4xf32>) -> tensor<4x2x4xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<4x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @below {{batch 6 does not divide by 4 (2 microbatches times 2 blocks of the gradient)}}
module attributes {train.batch = 6 : i64, train.microbatches = 2 : i64} {
  train.variable @w : tensor<8x8xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<3x2x8xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<8x8xf32>
    %y = train.linear %x, %w : (tensor<3x2x8xf32>, tensor<8x8xf32>) -> tensor<3x2x8xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<3x2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
