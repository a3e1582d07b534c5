// A training step as floor 1 makes it: on any mesh of the batch it computes what it
// computed, and gradients are summed over devices once, after the last microbatch, in one call with the loss.
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --symbol-dce -o %t.step.mlir
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=replica=2,data=2 --dist-propagate --dist-verify --dist-partition --dist-optimize-collectives --dist-verify-communication -o %t.local.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function step --ranks 4
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function eval --ranks 4
// RUN: FileCheck %s --input-file %t.local.mlir

// In mixed precision gradients are reduced in their own type: partial sums pass the
// casts that make it.
// RUN: meshwright-opt %s --train-mixed-precision="precision=bf16 grad-dtype=bf16" --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --symbol-dce -o %t.step.mlir
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=replica=2,data=2 --dist-propagate --dist-verify --dist-partition --dist-optimize-collectives --dist-verify-communication -o %t.local.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function step --ranks 4
// RUN: FileCheck %s --input-file %t.local.mlir --check-prefix=BF16
// BF16: train.repeat @microbatch
// BF16: dist.all_reduce sum %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} over {{.*}}xbf16>
// BF16: dist.all_reduce sum %{{[^ ]*}} over {{.*}} tensor<f32>
// BF16-NOT: dist.all_reduce

// RUN: meshwright-opt %s --train-mixed-precision=precision=fp16 --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --symbol-dce -o %t.step.mlir
// RUN: meshwright-opt %t.step.mlir --dist-apply-strategy=mesh=replica=2,data=2 --dist-propagate --dist-verify --dist-partition --dist-optimize-collectives --dist-verify-communication -o %t.local.mlir
// RUN: meshwright-interpret --compare %t.step.mlir %t.local.mlir --function step --ranks 4
// RUN: FileCheck %s --input-file %t.local.mlir --check-prefix=FP16
// FP16: train.repeat @microbatch
// FP16: dist.all_reduce sum %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} over {{.*}} tensor<f32>
// FP16-NOT: dist.all_reduce

// CHECK-LABEL: func.func private @microbatch(
// CHECK-NOT: = dist.
// CHECK-LABEL: func.func @eval(
// CHECK-LABEL: func.func @step(
// CHECK: train.repeat @microbatch
// CHECK: dist.all_reduce sum %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} over <@mesh {replica, data}>
// CHECK-NOT: dist.all_reduce
module attributes {train.model = "test", train.config = "{}", train.batch = 8 : i64, train.sequence = 4 : i64, train.microbatches = 2 : i64, train.vocabulary = 16 : i64, train.max_positions = 8 : i64} {
  train.variable @wte : tensor<16x8xf32> init <"normal", 2.0e-02 : f64>
  train.variable @wpe : tensor<8x8xf32> init <"normal", 2.0e-02 : f64>
  train.variable @h.norm : tensor<2x8xf32> stacked init <"constant", 1.0 : f64>
  train.variable @h.w : tensor<2x8x8xf32> stacked init <"normal", 2.0e-02 : f64>
  func.func private @layer(%x: tensor<4x4x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xf32>) -> tensor<4x4x8xf32> {
    %0 = train.rms_norm %x, %n eps 1.0e-05 : (tensor<4x4x8xf32>, tensor<8xf32>) -> tensor<4x4x8xf32>
    %1 = train.linear %0, %w : (tensor<4x4x8xf32>, tensor<8x8xf32>) -> tensor<4x4x8xf32>
    %2 = train.gelu %1 : (tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
    %3 = train.add %x, %2 : (tensor<4x4x8xf32>, tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
    return %3 : tensor<4x4x8xf32>
  }
  func.func @loss(%tokens: tensor<4x4xi32> {train.input = "tokens"}, %targets: tensor<4x4xi32> {train.input = "targets"}) -> (tensor<f32> {train.output = "loss"}) {
    %wte = train.get @wte : tensor<16x8xf32>
    %wpe = train.get @wpe : tensor<8x8xf32>
    %n = train.get @h.norm : tensor<2x8xf32>
    %w = train.get @h.w : tensor<2x8x8xf32>
    %e = train.embedding %wte, %tokens : (tensor<16x8xf32>, tensor<4x4xi32>) -> tensor<4x4x8xf32>
    %p = train.slice %wpe rows 4 : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %x = train.add %e, %p : (tensor<4x4x8xf32>, tensor<4x8xf32>) -> tensor<4x4x8xf32>
    %y = train.repeat @layer x 2 carry(%x) each(%n, %w) shared() : (tensor<4x4x8xf32>, tensor<2x8xf32>, tensor<2x8x8xf32>) -> tensor<4x4x8xf32>
    %logits = train.linear %y, %wte : (tensor<4x4x8xf32>, tensor<16x8xf32>) -> tensor<4x4x16xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<4x4x16xf32>, tensor<4x4xi32>) -> (tensor<f32>, tensor<4x4xf32>)
    return %loss : tensor<f32>
  }
}
