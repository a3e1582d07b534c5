// RUN: meshwright-opt %s --train-freeze=patterns=embed --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --train-verify -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --train-freeze=patterns=embed --train-mixed-precision=precision=bf16 --train-autodiff --train-accumulate --train-build-optimizer -split-input-file | FileCheck %s --check-prefix=NARROW
// DEFINE: %{patterns} =
// DEFINE: %{refused} = not meshwright-opt %s --train-freeze="patterns=%{patterns}" 2>&1 | FileCheck %s --check-prefix
// REDEFINE: %{patterns} = layers.1.*
// RUN: %{refused}=LAYER
// REDEFINE: %{patterns} = *.u
// RUN: %{refused}=NONE
// REDEFINE: %{patterns} = embed;layers.*.v
// RUN: %{refused}=ALL
// REDEFINE: %{patterns} = e*;embed
// RUN: %{refused}=AGAIN
// REDEFINE: %{patterns} = [
// RUN: %{refused}=MALFORMED
// REDEFINE: %{patterns} = embed;
// RUN: %{refused}=EMPTY
// RUN: not meshwright-opt %s --train-freeze=patterns=embed --train-autodiff --train-accumulate --train-build-optimizer="optimizer-groups=embed:lr=2" 2>&1 | FileCheck %s --check-prefix=GROUP

// BEGIN EXAMPLE --train-freeze=patterns=emb*
module attributes {train.microbatches = 1 : i64} {
  train.variable @embed : tensor<4x4xf32> init <"normal", 0.02> storage <"embed">
  train.variable @v : tensor<2x4xf32> stacked init <"constant", 1.0> storage <"layers.{layer+1}.v">
  func.func private @layer(%x: tensor<2x4xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %embed = train.get @embed : tensor<4x4xf32>
    %v = train.get @v : tensor<2x4xf32>
    %a = train.linear %x, %embed : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = train.repeat @layer x 2 carry(%a) each(%v) shared() : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %b over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: train.variable @embed : tensor<4x4xf32> {{.*}} {train.frozen}
// CHECK-NOT: @embed.momentum
// CHECK: train.variable @v.momentum
// CHECK-LABEL: func.func @step
// CHECK: train.update "adamw"
// CHECK: train.set @v,
// CHECK-NOT: train.update
// CHECK-NOT: train.set @embed,
// CHECK: return

// A frozen parameter has no master.
// NARROW: train.variable @embed : tensor<4x4xbf16> {{.*}} {train.frozen}
// NARROW-NOT: @embed.master
// NARROW: train.variable @v.master

// LAYER: error: --freeze: the pattern 'layers.1.*' matches layers.1.v but not layers.2.v, which are one parameter, @v; write * in place of the number
// NONE: error: --freeze: the pattern '*.u' matches no parameter; parameters are embed, layers.1.v
// ALL: error: --freeze: 'embed;layers.*.v' leaves no parameter to train; name fewer
// AGAIN: error: --freeze: the pattern 'embed' matches only parameters that are frozen already; leave it out
// MALFORMED: error: --freeze: the pattern '[' is malformed
// EMPTY: 'embed;' has an empty pattern; write PATTERN;PATTERN
// GROUP: error: --optimizer-groups: the pattern 'embed' matches frozen parameters only, which no update changes; leave it out
