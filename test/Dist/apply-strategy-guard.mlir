// A guarded parameter in f32: the old value that the guard may keep is the part that is stored and updated, never gathered. Counts of
// tokens are the same everywhere.
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=3" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition | FileCheck %s --check-prefix=LOCAL1
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=3" --dist-propagate --dist-partition | FileCheck %s --check-prefix=LOCAL3
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 data-sync=parameter-server" | FileCheck %s --check-prefix=SERVER

// CHECK: @w.tokens : tensor<8xf32> state "tokens" of @w {{.*}}counts of all tokens{{.*}} dist.seed = #R}
// CHECK: train.contract
// CHECK: %[[OLD:.*]] = train.get @w : tensor<8x4xf32>
// ONE: %[[PART:.*]] = dist.constrain %[[OLD]] to #data_R boundary
// ONE: %[[NEW:.*]] = train.update "sgd" %[[PART]],
// ONE: train.guard %[[NEW]], %[[PART]] if_finite
// THREE: %[[NEW:.*]] = train.update "sgd" %[[OLD]],
// THREE: train.guard %[[NEW]], %[[OLD]] if_finite
// SERVER: @w.tokens {{.*}} dist.seed = #R}

// LOCAL1: train.guard {{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// LOCAL1: dist.all_gather
// LOCAL1-NOT: dist.all_gather
// LOCAL3: dist.all_gather
// LOCAL3-NOT: dist.all_gather
// LOCAL3: train.guard {{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// LOCAL3-NOT: dist.all_gather
// Counts are completed once, where they are kept.
// LOCAL3: %[[TOKENS:.*]] = dist.all_reduce sum {{.*}} : (tensor<8xf32>) -> tensor<8xf32>
// LOCAL3: train.set @w.tokens, %[[TOKENS]]
train.variable @w : tensor<8x4xf32> init <"normal", 1.0>
train.variable @w.tokens : tensor<8xf32> state "tokens" of @w
func.func @step(%x: tensor<2x3x4xf32> {dist.seed = #dist.sharding<@mesh, [{data}, {}, {}]>, train.input = "x"}, %clip: tensor<f32>,
                %lr: tensor<f32>, %norm: tensor<f32>) {
  %w = train.get @w : tensor<8x4xf32>
  %y = train.linear %x, %w : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  %mask = train.top_k %y k 2 : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %tokens = train.tally %mask, %y : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<8xf32>
  %dw = train.contract "b s i, b s j -> i j" %y, %x : (tensor<2x3x8xf32>, tensor<2x3x4xf32>) -> tensor<8x4xf32>
  %old = train.get @w : tensor<8x4xf32>
  %new = train.update "sgd" %old, %dw, %clip, %lr : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
  %kept = train.guard %new, %old if_finite %norm : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  train.set @w, %kept : tensor<8x4xf32>
  train.set @w.tokens, %tokens : tensor<8xf32>
  return
}
