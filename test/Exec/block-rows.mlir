// An update of states in blocks is one kernel, which reduces a row for each block.
// RUN: meshwright-opt %s --exec-assign-target --exec-form-kernels | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: train.reshape %{{.*}} : (tensor<4x2048xi8>) -> tensor<4x8x256xi8>
// CHECK: exec.launch @step.k0
// CHECK-NOT: exec.launch
// CHECK: train.reshape %{{.*}} : (tensor<4x8x256xi8>) -> tensor<4x2048xi8>
// CHECK: func.func private @step.k0({{.*}}tensor<4x8x256xi8>
// CHECK: train.dequantize_blocks signed %{{.*}} by %{{.*}} : (tensor<4x8x256xi8>, tensor<4x8xf32>) -> tensor<4x8x256xf32>
// CHECK: %[[SUM:.*]] = train.lerp {{.*}} -> tensor<4x8x256xf32>
// CHECK: %[[AMAX:.*]] = train.block_amax %[[SUM]] of 256 : (tensor<4x8x256xf32>) -> tensor<4x8xf32>
// CHECK: train.quantize_blocks signed %[[SUM]] by %[[AMAX]]
module {
  train.variable @w : tensor<4x2048xf32>
  train.variable @w.momentum : tensor<4x2048xi8> state "momentum" of @w
  train.variable @w.momentum_amax : tensor<4x8xf32> state "momentum_amax" of @w
  func.func @step(%g: tensor<4x2048xf32>, %beta: tensor<f32>) {
    %old = train.get @w.momentum : tensor<4x2048xi8>
    %oldamax = train.get @w.momentum_amax : tensor<4x8xf32>
    %m = train.dequantize_blocks signed %old by %oldamax : (tensor<4x2048xi8>, tensor<4x8xf32>) -> tensor<4x2048xf32>
    %new = train.lerp %g to %m by %beta : (tensor<4x2048xf32>, tensor<4x2048xf32>, tensor<f32>) -> tensor<4x2048xf32>
    %amax = train.block_amax %new of 256 : (tensor<4x2048xf32>) -> tensor<4x8xf32>
    %codes = train.quantize_blocks signed %new by %amax : (tensor<4x2048xf32>, tensor<4x8xf32>) -> tensor<4x2048xi8>
    train.set @w.momentum, %codes : tensor<4x2048xi8>
    train.set @w.momentum_amax, %amax : tensor<4x8xf32>
    return
  }
}
