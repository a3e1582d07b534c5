// An optimizer of a plugin is a choice like those of the compiler, at every floor and on every mesh.
// RUN: meshwright compile --help --load-pass-plugin %plugin | FileCheck %s --check-prefix=HELP
// HELP: signum (sign of the average of gradients)
// RUN: meshwright compile %s --optimizer signum --load-pass-plugin %plugin --emit step | FileCheck %s
// CHECK: train.variable @embed.momentum
// CHECK: train.update "signum"
// RUN: meshwright compile %s --optimizer signum --load-pass-plugin=%plugin --mesh data=2 --zero 1 -o %t.exe
// RUN: %t.exe --help | FileCheck %s --check-prefix=FLAGS
// FLAGS: --momentum
// FLAGS: --weight-decay

// A recipe may name the plugin.
// RUN: printf 'optimizer = "signum"\nload-pass-plugin = "%plugin"\n' > %t.toml
// RUN: meshwright compile %s --recipe %t.toml --emit step | FileCheck %s

// Without the plugin there is no such optimizer.
// RUN: not meshwright compile %s --optimizer signum --emit step 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: signum
module attributes {train.model = "table", train.config = "{}", train.batch = 8 : i64, train.sequence = 4 : i64, train.microbatches = 1 : i64,
                   train.vocabulary = 32 : i64, train.max_positions = 4 : i64} {
  train.variable @embed : tensor<32x8xf32> init <"normal", 2.0e-02 : f64> storage <"embed">
  func.func @loss(%tokens: tensor<8x4xi32> {train.input = "tokens"}, %targets: tensor<8x4xi32> {train.input = "targets"})
      -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed : tensor<32x8xf32>
    %x = train.embedding %embed, %tokens : (tensor<32x8xf32>, tensor<8x4xi32>) -> tensor<8x4x8xf32>
    %logits = train.linear %x, %embed : (tensor<8x4x8xf32>, tensor<32x8xf32>) -> tensor<8x4x32xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<8x4x32xf32>, tensor<8x4xi32>) -> (tensor<f32>, tensor<8x4xf32>)
    return %loss : tensor<f32>
  }
}
