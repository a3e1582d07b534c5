// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=adamw-8bit --train-verify -split-input-file | FileCheck %s
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=adamw-8bit moments-dtype=bf16" -split-input-file 2>&1 | FileCheck %s --check-prefix NARROW
// NARROW: optimizer adamw-8bit stores moments in 8 bits; use moments-dtype f32

// Blocks are parts of rows: of 2048 elements 256, of 96 all. What is small in files stays in f32, whatever the stack of layers has.
// CHECK: train.variable @large : tensor<2x2048xf32>
// CHECK-NEXT: train.variable @large.momentum : tensor<2x2048xi8> state "momentum" of @large
// CHECK-NEXT: train.variable @large.momentum_amax : tensor<2x8xf32> state "momentum_amax" of @large
// CHECK-NEXT: train.variable @large.variance : tensor<2x2048xi8> state "variance" of @large
// CHECK-NEXT: train.variable @large.variance_amax : tensor<2x8xf32> state "variance_amax" of @large
// CHECK-NEXT: train.variable @rows : tensor<64x96xf32>
// CHECK: train.variable @rows.momentum_amax : tensor<64x1xf32>
// CHECK: train.variable @small.momentum : tensor<4x64x32xf32> stacked state "momentum" of @small
// CHECK: train.variable @narrow.momentum : tensor<2048x2xf32>
// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[CODES:.*]] = train.get @large.momentum : tensor<2x2048xi8>
// CHECK-DAG: %[[AMAX:.*]] = train.get @large.momentum_amax : tensor<2x8xf32>
// CHECK-DAG: %[[M:.*]] = train.dequantize_blocks signed %[[CODES]] by %[[AMAX]] : (tensor<2x2048xi8>, tensor<2x8xf32>) -> tensor<2x2048xf32>
// CHECK-DAG: %[[V:.*]] = train.dequantize_blocks %{{.*}} by %{{.*}} : (tensor<2x2048xi8>, tensor<2x8xf32>) -> tensor<2x2048xf32>
// CHECK: %{{.*}}, %[[NEW:.*]]:2 = train.update "adamw-8bit" decay %{{.*}}, %{{.*}}, %[[M]], %[[V]]
// CHECK: %[[NEWAMAX:.*]] = train.block_amax %[[NEW]]#0 of 256 : (tensor<2x2048xf32>) -> tensor<2x8xf32>
// CHECK: %[[NEWCODES:.*]] = train.quantize_blocks signed %[[NEW]]#0 by %[[NEWAMAX]]
// CHECK: %[[KEPT:.*]] = train.guard %[[NEWCODES]], %[[CODES]]
// CHECK: train.set @large.momentum, %[[KEPT]]
// CHECK: train.quantize_blocks %[[NEW]]#1
module attributes {train.microbatches = 1 : i64} {
  train.variable @large : tensor<2x2048xf32> init <"normal", 0.02> storage <"large">
  train.variable @rows : tensor<64x96xf32> init <"normal", 0.02> storage <"rows">
  train.variable @small : tensor<4x64x32xf32> stacked init <"normal", 0.02> storage <"small.{layer}">
  train.variable @narrow : tensor<2048x2xf32> init <"normal", 0.02> storage <"narrow">
  func.func @loss(%x: tensor<2x2048xf32> {train.input = "x"}, %y: tensor<64x96xf32> {train.input = "y"},
                  %z: tensor<4x64x32xf32> {train.input = "z"}, %w: tensor<2048x2xf32> {train.input = "w"}) -> tensor<f32> {
    %large = train.get @large : tensor<2x2048xf32>
    %rows = train.get @rows : tensor<64x96xf32>
    %small = train.get @small : tensor<4x64x32xf32>
    %narrow = train.get @narrow : tensor<2048x2xf32>
    %0 = train.mul %x, %large : (tensor<2x2048xf32>, tensor<2x2048xf32>) -> tensor<2x2048xf32>
    %1 = train.mul %y, %rows : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
    %2 = train.mul %z, %small : (tensor<4x64x32xf32>, tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
    %3 = train.mul %w, %narrow : (tensor<2048x2xf32>, tensor<2048x2xf32>) -> tensor<2048x2xf32>
    %a = train.reduce sum %0 over [0, 1] : (tensor<2x2048xf32>) -> tensor<f32>
    %b = train.reduce sum %1 over [0, 1] : (tensor<64x96xf32>) -> tensor<f32>
    %c = train.reduce sum %2 over [0, 1, 2] : (tensor<4x64x32xf32>) -> tensor<f32>
    %d = train.reduce sum %3 over [0, 1] : (tensor<2048x2xf32>) -> tensor<f32>
    %ab = train.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %cd = train.add %c, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = train.add %ab, %cd : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
