// The pass alone, as mlir-opt runs passes.
// RUN: meshwright-opt --load-pass-plugin=%plugin --pass-pipeline='builtin.module(my-merge-scales)' %s | FileCheck %s
// CHECK: train.scale %{{.*}} by 6.000000e+00
// CHECK-NOT: train.scale

// Inserted into a compile, where it sees a rank's tensors: 4 of 8 sequences.
// RUN: meshwright compile %s --mesh data=2 --emit local --load-pass-plugin %plugin --insert-pass 'after=dist-partition:my-merge-scales' > %t.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t.mlir
// LOCAL: train.scale %{{.*}} by 6.000000e+00 : (tensor<4x4x8xf32>)
// RUN: meshwright compile %s --mesh data=2 --emit local | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: train.scale %{{.*}} by 2.000000e+00

// The strategy's seed, and what is said of it.
// RUN: meshwright compile %s --mesh data=2,tensor=2 --emit dist --load-pass-plugin %plugin --insert-pass 'before=dist-apply-strategy:my-seed-tables{axis=tensor}' | FileCheck %s --check-prefix=SEED
// SEED: train.variable @embed : tensor<32x8xf32, #tensor_R>
module attributes {train.model = "scaled", train.config = "{}", train.batch = 8 : i64, train.sequence = 4 : i64, train.microbatches = 1 : i64,
                   train.vocabulary = 32 : i64, train.max_positions = 4 : i64} {
  train.variable @embed : tensor<32x8xf32> init <"normal", 2.0e-02 : f64> storage <"embed">
  func.func @loss(%tokens: tensor<8x4xi32> {train.input = "tokens"}, %targets: tensor<8x4xi32> {train.input = "targets"})
      -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed : tensor<32x8xf32>
    %x = train.embedding %embed, %tokens : (tensor<32x8xf32>, tensor<8x4xi32>) -> tensor<8x4x8xf32>
    %twice = train.scale %x by 2.0 : (tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
    %six = train.scale %twice by 3.0 : (tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
    %logits = train.linear %six, %embed : (tensor<8x4x8xf32>, tensor<32x8xf32>) -> tensor<8x4x32xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<8x4x32xf32>, tensor<8x4xi32>) -> (tensor<f32>, tensor<8x4xf32>)
    return %loss : tensor<f32>
  }
}
