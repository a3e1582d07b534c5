// Of each group of a row of a block's gradient some elements are sent; what is left waits in the residual.
// RUN: meshwright-opt %s --train-autodiff --train-block-gradients=method=topk:0.2,blocks=2 --train-accumulate --train-build-optimizer=grad-compression=topk:0.2 --train-verify -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=STEP
// On two devices each has its block: values and columns are gathered, and rows nowhere.
// RUN: meshwright-opt %S/Inputs/blocks.mlir --train-autodiff --train-block-gradients=method=topk:0.2,blocks=2 --train-accumulate --train-build-optimizer=grad-compression=topk:0.2 --train-verify --symbol-dce -o %t.step.mlir
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=data=2 --dist-propagate --dist-partition -o %t.local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t.local.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function step --ranks 2
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition -o %t.zero.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t.zero.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.zero.mlir --function step --ranks 2
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=tensor=2 --dist-propagate --dist-partition -o %t.tensor.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.tensor.mlir --function step --ranks 2
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=data=2,tensor=2 --dist-propagate --dist-partition -o %t.both.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.both.mlir --function step --ranks 4
// RUN: not meshwright-opt %S/Inputs/blocks.mlir --train-autodiff --train-block-gradients 2>&1 | FileCheck %s --check-prefix=METHOD
// METHOD: needs a method of compression, e.g. method=powersgd:4,blocks=2

module attributes {train.batch = 8 : i64, train.microbatches = 2 : i64} {
  train.variable @w : tensor<3x6x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<4x2x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x2x8xf32> {
    %y = train.linear %x, %w : (tensor<4x2x8xf32>, tensor<6x8xf32>) -> tensor<4x2x6xf32>
    %z = train.pad %y dim 2 rows 8 : (tensor<4x2x6xf32>) -> tensor<4x2x8xf32>
    return %z : tensor<4x2x8xf32>
  }
  func.func @loss(%x: tensor<4x2x8xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x6x8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<4x2x8xf32>, tensor<3x6x8xf32>) -> tensor<4x2x8xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<4x2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// STEP: train.variable @w.grad_residual : tensor<3x2x6x8xf32> stacked state "grad_residual" of @w
// STEP-NOT: grad_factor
// STEP-LABEL: func.func @step
// STEP: %[[E:.*]] = train.get @w.grad_residual
// STEP: %[[M:.*]] = train.add %{{.*}}, %[[E]] : (tensor<3x2x6x8xf32>
// STEP: %[[ROWS:.*]] = train.reshape %[[M]] : (tensor<3x2x6x8xf32>) -> tensor<3x2x6x1x8xf32>
// STEP: %[[VALUES:.*]], %[[IDS:.*]], %[[REST:.*]] = train.sparsify %[[ROWS]] : (tensor<3x2x6x1x8xf32>) -> (tensor<3x2x6x1x2xf32>, tensor<3x2x6x1x2xi32>, tensor<3x2x6x1x8xf32>)
// STEP: %[[SUM:.*]] = train.densify %[[VALUES]] at %[[IDS]] over 1 : (tensor<3x2x6x1x2xf32>, tensor<3x2x6x1x2xi32>) -> tensor<3x6x1x8xf32>
// STEP: %[[G:.*]] = train.reshape %[[SUM]] : (tensor<3x6x1x8xf32>) -> tensor<3x6x8xf32>
// STEP: %[[LEFT:.*]] = train.reshape %[[REST]] : (tensor<3x2x6x1x8xf32>) -> tensor<3x2x6x8xf32>
// Norm and update are of what is sent. A step that overflows changes no state.
// STEP: train.square_sum %[[G]]
// STEP: train.update "adamw" decay %{{.*}}, %[[G]],
// STEP: %[[KEPT:.*]] = train.guard %[[LEFT]], %{{.*}} if_finite
// STEP: train.set @w.grad_residual, %[[KEPT]]

// LOCAL-LABEL: func.func @step
// LOCAL-NOT: dist.{{(all|reduce).*}}tensor<3x{{([12]x)?}}8x{{(1x)?}}8xf32>)
// LOCAL-DAG: dist.all_gather {{.*}} : (tensor<3x1x8x1x2xf32>) -> tensor<3x2x8x1x2xf32>
// LOCAL-DAG: dist.all_gather {{.*}} : (tensor<3x1x8x1x2xi32>) -> tensor<3x2x8x1x2xi32>
// LOCAL-NOT: dist.{{(all_reduce|reduce).*}}tensor<3x{{([12]x)?}}8x{{(1x)?}}8xf32>)
// LOCAL: return

// -----

module attributes {train.batch = 4 : i64, train.microbatches = 1 : i64} {
  // expected-error @below {{@w has 3221225472 elements in all layers, more than the 2147483647 that topk can number; use powersgd}}
  train.variable @w : tensor<98304x32768xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<4x2x32768xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<98304x32768xf32>
    %y = train.linear %x, %w : (tensor<4x2x32768xf32>, tensor<98304x32768xf32>) -> tensor<4x2x98304xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<4x2x98304xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @below {{no gradient of a matrix is a product over the batch whose elements and their columns at density 2.000000e-01 are less than it: nothing would be compressed; use a lower density, or leave compression out}}
module attributes {train.batch = 4 : i64, train.microbatches = 1 : i64} {
  train.variable @w : tensor<4x2xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<4x2x2xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<4x2xf32>
    %y = train.linear %x, %w : (tensor<4x2x2xf32>, tensor<4x2xf32>) -> tensor<4x2x4xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<4x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
