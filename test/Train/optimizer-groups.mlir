// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer-groups={model.1.w*,none}:lr=0.5;*.[u-v]:lr=2,decay=3;model.?.w:decay=0;*.w:lr=4" | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd optimizer-groups=*:lr=0.25" | FileCheck %s --check-prefix=SGD
// DEFINE: %{groups} =
// DEFINE: %{refused} = not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="%{groups}" 2>&1 | FileCheck %s --check-prefix
// REDEFINE: %{groups} = optimizer-groups=*.w:lr=1;layers.1.*:lr=2
// RUN: %{refused}=LAYER
// REDEFINE: %{groups} = optimizer-groups=*.u:lr=1
// RUN: %{refused}=NONE
// REDEFINE: %{groups} = optimizer-groups=*:lr=1;*.w:decay=0
// RUN: %{refused}=TAKEN
// REDEFINE: %{groups} = optimizer-groups=[:lr=1
// RUN: %{refused}=MALFORMED
// REDEFINE: %{groups} = optimizer=sgd optimizer-groups=*:decay=0
// RUN: %{refused}=DECAY
// REDEFINE: %{groups} = optimizer-groups=*.w
// RUN: %{refused}=FACTORS
// REDEFINE: %{groups} = optimizer-groups=*.w:wd=0
// RUN: %{refused}=WORD
// REDEFINE: %{groups} = optimizer-groups=*.w:lr=-1
// RUN: %{refused}=NUMBER

// A group is of names in checkpoints; the first that matches holds.
module attributes {train.microbatches = 1 : i64} {
  train.variable @one : tensor<4x4xf32> init <"normal", 0.02> storage <"model.1.w">
  train.variable @two : tensor<4x4xf32> init <"normal", 0.02> storage <"model.2.w">
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"layers.{layer+1}.w">
  train.variable @v : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"layers.{layer+1}.v">
  train.variable @bias : tensor<4xf32> init <"normal", 0.02> storage <"model.bias">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = train.add %y, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %z : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %one = train.get @one : tensor<4x4xf32>
    %two = train.get @two : tensor<4x4xf32>
    %w = train.get @w : tensor<3x4x4xf32>
    %v = train.get @v : tensor<3x4xf32>
    %bias = train.get @bias : tensor<4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w, %v) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %a = train.linear %y, %one : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = train.linear %a, %two : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %c = train.add %b, %bias : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %c over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func @step
// CHECK: train.update "adamw" decay {{.*}} {lr_factor = 5.000000e-01 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @one,
// CHECK: train.update "adamw" %{{[^{]*$}}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @two,
// CHECK: train.update "adamw" decay {{.*}} {lr_factor = 4.000000e+00 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @w,
// CHECK: train.update "adamw" decay {{.*}} {decay_factor = 3.000000e+00 : f64, lr_factor = 2.000000e+00 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @v,
// CHECK: train.update "adamw" %{{[^{]*$}}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @bias,

// SGD-LABEL: func.func @step
// SGD-COUNT-5: train.update "sgd" {{.*}} {lr_factor = 2.500000e-01 : f64}

// LAYER: error: --optimizer-groups: the pattern 'layers.1.*' matches layers.1.w but not layers.2.w, which are one parameter, @w; write * in place of the number
// NONE: error: --optimizer-groups: the pattern '*.u' matches no parameter; parameters are model.1.w, model.2.w, layers.1.w, layers.1.v, model.bias
// TAKEN: error: --optimizer-groups: the pattern '*.w' matches parameters of earlier groups only
// MALFORMED: error: --optimizer-groups: the pattern '[' is malformed
// DECAY: error: --optimizer-groups: the pattern '*' has a decay, but --optimizer sgd decays no parameters; leave decay= out, or choose another optimizer
// FACTORS: '*.w' is no group; write PATTERN:lr=X,decay=Y
// WORD: '*.w:wd=0': 'wd' is neither lr nor decay
// NUMBER: '*.w:lr=-1': '-1' of lr must be a number of at least 0
