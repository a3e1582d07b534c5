// A parameter server: the f32 copy and the state of a narrow parameter are on it alone; the gradient goes there, the
// parameter comes back.
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=replica=2,data=2 data-sync=parameter-server" | FileCheck %s
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=replica=2,data=2 data-sync=parameter-server" --dist-propagate --dist-verify --dist-partition | FileCheck %s --check-prefix=LOCAL

// CHECK: @w : tensor<8x4xbf16> {{.*}}, dist.seed = #R_R}
// CHECK: @w.master : {{.*}}dist.reason = "parameter server", dist.seed = #R_R_root_replica-data}
// CHECK: @w.momentum : {{.*}}dist.reason = "parameter server", dist.seed = #R_R_root_replica-data}
// CHECK: %[[RAW:.*]] = train.contract
// CHECK: %[[GRADIENT:.*]] = dist.constrain %[[RAW]] to #R_R_root_replica-data boundary
// CHECK: train.reduce sum %[[GRADIENT]]
// CHECK: train.update "sgd" %{{.*}}, %[[GRADIENT]]
// CHECK: %[[NARROW:.*]] = train.cast
// CHECK: %[[BACK:.*]] = dist.constrain %[[NARROW]] to #R_R boundary
// CHECK: train.set @w, %[[BACK]]

// LOCAL: @w.master : tensor<8x4xf32> {{.*}}dist.global = tensor<8x4xf32, #R_R_root_replica-data>
// LOCAL: %[[RAW:.*]] = train.contract
// LOCAL: %[[SUM:.*]] = dist.reduce sum %[[RAW]] root 0 over <@mesh {replica, data}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
// LOCAL: %[[NORM:.*]] = train.reduce sum %[[SUM]]
// LOCAL: train.update "sgd" %{{.*}}, %[[SUM]]
// LOCAL: %[[NARROW:.*]] = train.cast %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xbf16>
// LOCAL: %[[BACK:.*]] = dist.broadcast %[[NARROW]] root 0 over <@mesh {replica, data}> : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
// LOCAL: train.set @w, %[[BACK]]
// LOCAL: %[[OUT:.*]] = dist.broadcast %[[NORM]] root 0
// LOCAL: return %[[OUT]]
train.variable @w : tensor<8x4xbf16> init <"normal", 1.0>
train.variable @w.master : tensor<8x4xf32> init <"normal", 1.0> state "master" of @w
train.variable @w.momentum : tensor<8x4xf32> init <"constant", 0.0> state "momentum" of @w
func.func @step(%x: tensor<4x4xbf16> {dist.seed = #dist.sharding<@mesh, [{replica, data}, {}]>, train.input = "x"},
                %clip: tensor<f32>, %lr: tensor<f32>) -> tensor<f32> {
  %w = train.get @w : tensor<8x4xbf16>
  %y = train.linear %x, %w : (tensor<4x4xbf16>, tensor<8x4xbf16>) -> tensor<4x8xbf16>
  %dw = train.contract "s i, s j -> i j" %y, %x : (tensor<4x8xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %norm = train.reduce sum %dw over [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %m = train.get @w.master : tensor<8x4xf32>
  %new = train.update "sgd" %m, %dw, %clip, %lr : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
  train.set @w.master, %new : tensor<8x4xf32>
  %narrow = train.cast %new : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  train.set @w, %narrow : tensor<8x4xbf16>
  return %norm : tensor<f32>
}
