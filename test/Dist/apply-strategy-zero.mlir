// A bf16 parameter and its f32 copy: states are stored in parts, and what is gathered has two bytes.
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=3" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition | FileCheck %s --check-prefix=LOCAL1
// RUN: sed 's/init <"normal", 1.0>$/init <"normal", 1.0> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}/' %s | meshwright-opt - --dist-apply-strategy="mesh=data=3,tensor=2 zero=1" | FileCheck %s --check-prefix=UNCUT
// Where all must be padded, a dimension that computing leaves whole is shared out: 4 columns over 3 rather than 8 rows over 2 x 3.
// UNCUT: @w.master : {{.*}}dist.seed = #tensor_data}
// UNCUT: @w.momentum : {{.*}}dist.seed = #tensor_data}
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=3" --dist-propagate --dist-partition | FileCheck %s --check-prefix=LOCAL3
// RUN: sed 's/init <"normal", 1.0>$/init <"normal", 1.0> {dist.seed = #dist.sharding<@mesh, [{data}, {?}]>}/' %s | meshwright-opt - --dist-apply-strategy="mesh=data=2 zero=3" | FileCheck %s --check-prefix=OWN
// RUN: sed 's/init <"normal", 1.0>$/init <"normal", 1.0> {dist.seed = #dist.sharding<@mesh, [{}, {}], replicated = {data}>}/' %s | meshwright-opt - --dist-apply-strategy="mesh=data=2 zero=3" | FileCheck %s --check-prefix=COPIES
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=data=8 zero=3" -o /dev/null
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=data=9 zero=3" 2>&1 | FileCheck %s --check-prefix=MANY

// A seed of the user that cuts along the data axis is where the parameter is stored and computed with.
// OWN: @w : tensor<8x4xbf16> init <"normal", 1.000000e+00 : f64> {dist.seed = #dist.sharding<@mesh, [{data}, {?}]>}
// OWN: @w.momentum : {{.*}}, dist.seed = #dist.sharding<@mesh, [{data}, {?}]>}
// OWN: dist.constrain {{.*}} to <@mesh, [{data}, {?}]> boundary
// One that wants copies over them has copies.
// COPIES: @w : tensor<8x4xbf16> init <"normal", 1.000000e+00 : f64> {dist.seed = #dist.sharding<@mesh, [{}, {}], replicated = {data}>}
// MANY: --zero 3 cannot share parameters out over the 9 devices along {data}: the largest dimension is 0 of @w, of 8; use 8 devices or fewer, and e.g. replica=2 for others
// ONE: @w : tensor<8x4xbf16> {{.*}}, dist.seed = #R_R}
// THREE: @w : tensor<8x4xbf16> {{.*}}, dist.seed = #data_R}
// CHECK: @w.master : {{.*}}, dist.seed = #data_R}
// CHECK: @w.momentum : {{.*}}, dist.seed = #data_R}
// THREE: %[[STORED:.*]] = train.get @w : tensor<8x4xbf16>
// THREE: %[[WHOLE:.*]] = dist.constrain %[[STORED]] to #R_R boundary
// THREE: train.linear %arg0, %[[WHOLE]]
// CHECK: %[[MASTER:.*]] = train.get @w.master
// CHECK: train.update "sgd" %[[MASTER]],
// CHECK: %[[GUARDED:.*]] = train.guard
// CHECK: train.set @w.master, %[[GUARDED]]
// CHECK: %[[NARROW:.*]] = train.cast %[[GUARDED]]
// ONE: %[[GATHERED:.*]] = dist.constrain %[[NARROW]] to #R_R boundary
// ONE: train.set @w, %[[GATHERED]]
// THREE: train.set @w, %[[NARROW]]

// LOCAL1: @w.master : tensor<4x4xf32>
// LOCAL1: %[[PART:.*]] = train.cast %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// LOCAL1: dist.all_gather %[[PART]] dim 0 over <@mesh {data}> : (tensor<4x4xbf16>) -> tensor<8x4xbf16>
// LOCAL3: @w : tensor<4x4xbf16>
// LOCAL3: dist.all_gather {{.*}} dim 0 over <@mesh {data}> : (tensor<4x4xbf16>) -> tensor<8x4xbf16>
// LOCAL3-NOT: dist.all_gather
train.variable @w : tensor<8x4xbf16> init <"normal", 1.0>
train.variable @w.master : tensor<8x4xf32> init <"normal", 1.0> state "master" of @w
train.variable @w.momentum : tensor<8x4xf32> init <"constant", 0.0> state "momentum" of @w
func.func @step(%x: tensor<2x4xbf16> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>, train.input = "x"}, %clip: tensor<f32>,
                %lr: tensor<f32>, %norm: tensor<f32>) {
  %w = train.get @w : tensor<8x4xbf16>
  %y = train.linear %x, %w : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xbf16>
  %dw = train.contract "s i, s j -> i j" %y, %x : (tensor<2x8xbf16>, tensor<2x4xbf16>) -> tensor<8x4xf32>
  %m = train.get @w.master : tensor<8x4xf32>
  %new = train.update "sgd" %m, %dw, %clip, %lr : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
  %kept = train.guard %new, %m if_finite %norm : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  train.set @w.master, %kept : tensor<8x4xf32>
  %narrow = train.cast %kept : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  train.set @w, %narrow : tensor<8x4xbf16>
  return
}
