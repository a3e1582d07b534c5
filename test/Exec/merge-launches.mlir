// RUN: meshwright-opt %s --exec-assign-target=target=cuda --exec-merge-launches | FileCheck %s
// What is done to each of many tensors is launched once.

// BEGIN EXAMPLE --exec-assign-target=target=cuda --exec-merge-launches
module {
  train.variable @a : tensor<4x8xf32> init <"constant", 0.0 : f64>
  train.variable @b : tensor<6xf32> init <"constant", 0.0 : f64>

  // Two launches become one; what follows from the first moves behind it.
  // CHECK-LABEL: func.func @step
  // CHECK: %[[A:.*]] = train.get @a
  // CHECK-NEXT: %[[B:.*]] = train.get @b
  // CHECK-NEXT: %[[Y:.*]]:2 = exec.launch @step.k0.all ins(%[[A]], %arg0, %arg2, %[[B]], %arg1 : {{.*}}) {exec.gradients = array<i64: 1, 4>} -> tensor<4x8xf32>, tensor<6xf32>
  // CHECK-NEXT: train.set @a, %[[Y]]#0
  // CHECK-NEXT: train.set @b, %[[Y]]#1
  func.func @step(%da: tensor<4x8xf32>, %db: tensor<6xf32>, %lr: tensor<f32>) {
    %a = train.get @a : tensor<4x8xf32>
    %new_a = exec.launch @step.k0 ins(%a, %da, %lr : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>) {exec.gradients = array<i64: 1>} -> tensor<4x8xf32>
    train.set @a, %new_a : tensor<4x8xf32>
    %b = train.get @b : tensor<6xf32>
    %new_b = exec.launch @step.k1 ins(%b, %db, %lr : tensor<6xf32>, tensor<6xf32>, tensor<f32>) {exec.gradients = array<i64: 1>} -> tensor<6xf32>
    train.set @b, %new_b : tensor<6xf32>
    return
  }
  // CHECK-NOT: @step.k0(
  // CHECK: func.func private @step.k0.all(%[[W0:.*]]: tensor<4x8xf32>, %[[G0:.*]]: tensor<4x8xf32>, %[[LR:.*]]: tensor<f32>, %[[W1:.*]]: tensor<6xf32>, %[[G1:.*]]: tensor<6xf32>) -> (tensor<4x8xf32>, tensor<6xf32>) attributes {exec.kernel}
  // CHECK: train.broadcast %[[LR]]
  // CHECK: arith.subf %[[W0]]
  // CHECK: train.broadcast %[[LR]]
  // CHECK: arith.subf %[[W1]]
  func.func private @step.k0(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>, %lr: tensor<f32>) -> tensor<4x8xf32> attributes {exec.kernel} {
    %each = train.broadcast %lr along [0, 1] : (tensor<f32>) -> tensor<4x8xf32>
    %move = arith.mulf %each, %g : tensor<4x8xf32>
    %y = arith.subf %w, %move : tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
  func.func private @step.k1(%w: tensor<6xf32>, %g: tensor<6xf32>, %lr: tensor<f32>) -> tensor<6xf32> attributes {exec.kernel} {
    %each = train.broadcast %lr along [0] : (tensor<f32>) -> tensor<6xf32>
    %move = arith.mulf %each, %g : tensor<6xf32>
    %y = arith.subf %w, %move : tensor<6xf32>
    return %y : tensor<6xf32>
  }
}
// END EXAMPLE
