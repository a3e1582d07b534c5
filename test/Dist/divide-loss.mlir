// RUN: meshwright-opt %s --dist-divide-loss=parts=2 -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-divide-loss=least-rows=1 -split-input-file | FileCheck %s --check-prefix=SMALL
// SMALL-NOT: train.repeat @{{.*}}.loss

// BEGIN EXAMPLE --dist-divide-loss=parts=2
func.func @step(%x: tensor<2x4x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<2x4xi32>)
    -> (tensor<f32>, tensor<2x4x8xf32>, tensor<100x8xf32>) {
  %logits = train.linear %x, %w : (tensor<2x4x8xf32>, tensor<100x8xf32>) -> tensor<2x4x100xf32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.125 : (tensor<2x4x100xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
  %one = train.fill 1.0 : () -> tensor<f32>
  %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 0.125
      : (tensor<2x4x100xf32>, tensor<2x4xi32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4x100xf32>
  %dx = train.contract "b s o, o i -> b s i" %d, %w : (tensor<2x4x100xf32>, tensor<100x8xf32>) -> tensor<2x4x8xf32>
  %dw = train.contract "b s o, b s i -> o i" %d, %x : (tensor<2x4x100xf32>, tensor<2x4x8xf32>) -> tensor<100x8xf32>
  return %loss, %dx, %dw : tensor<f32>, tensor<2x4x8xf32>, tensor<100x8xf32>
}
// END EXAMPLE

// Each iteration has four of the eight tokens, and all that has their logits.
// CHECK-LABEL: func.func private @step.loss(
// CHECK-SAME: %[[LOSS:[a-z0-9]+]]: tensor<f32>, %[[DW:[a-z0-9]+]]: tensor<100x8xf32>, %[[X:[a-z0-9]+]]: tensor<1x4x8xf32>, %[[T:[a-z0-9]+]]: tensor<1x4xi32>, %[[W:[a-z0-9]+]]: tensor<100x8xf32>, %[[D:[a-z0-9]+]]: tensor<f32>)
// CHECK-SAME: attributes {train.role = #train.role<loss>}
// CHECK-NEXT: %[[L:.*]] = train.linear %[[X]], %[[W]] {{.*}} -> tensor<1x4x100xf32>
// CHECK-NEXT: %[[PART:.*]], %[[LSE:.*]] = train.cross_entropy %[[L]], %[[T]] scale 1.250000e-01
// CHECK-NEXT: %[[DL:.*]] = train.cross_entropy_grad %[[L]], %[[T]], %[[LSE]], %[[D]]
// CHECK-NEXT: %[[DX:.*]] = train.contract "b s o, o i -> b s i" %[[DL]], %[[W]] {{.*}} -> tensor<1x4x8xf32>
// CHECK-NEXT: %[[DWPART:.*]] = train.contract "b s o, b s i -> o i" %[[DL]], %[[X]] {{.*}} -> tensor<100x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = train.accumulate %[[LOSS]], %[[PART]]
// CHECK-NEXT: %[[DWSUM:.*]] = train.accumulate %[[DW]], %[[DWPART]]
// CHECK-NEXT: return %[[SUM]], %[[DWSUM]], %[[DX]]
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x8xf32>, %[[W:[a-z0-9]+]]: tensor<100x8xf32>, %[[T:[a-z0-9]+]]: tensor<2x4xi32>
// CHECK: %[[ONE:.*]] = train.fill 1.0
// CHECK-DAG: %[[ZERO:.*]] = train.fill 0.000000e+00 : () -> tensor<f32>
// CHECK-DAG: %[[ZEROS:.*]] = train.fill 0.000000e+00 : () -> tensor<100x8xf32>
// CHECK-DAG: %[[XS:.*]] = train.reshape %[[X]] : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
// CHECK-DAG: %[[TS:.*]] = train.reshape %[[T]] : (tensor<2x4xi32>) -> tensor<2x1x4xi32>
// CHECK: %[[R:.*]]:3 = train.repeat @step.loss x 2 carry(%[[ZERO]], %[[ZEROS]]) each(%[[XS]], %[[TS]]) shared(%[[W]], %[[ONE]]) {train.role = #train.role<loss>}
// CHECK-NEXT: %[[DX:.*]] = train.reshape %[[R]]#2 : (tensor<2x1x4x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT: return %[[R]]#0, %[[DX]], %[[R]]#1

// -----

// In evaluation there is the forward alone. Capped logits and a bias belong to it too.
// CHECK-LABEL: func.func private @eval.loss(
// CHECK-SAME: %{{.*}}: tensor<f32>, %{{.*}}: tensor<1x4x8xf32>, %{{.*}}: tensor<1x4xi32>, %{{.*}}: tensor<100x8xf32>, %[[B:[a-z0-9]+]]: tensor<100xf32>)
// CHECK: %[[BIASED:.*]] = train.add %{{.*}}, %[[B]] : (tensor<1x4x100xf32>, tensor<100xf32>) -> tensor<1x4x100xf32>
// CHECK-NEXT: %[[TANH:.*]] = train.tanh %[[BIASED]] : (tensor<1x4x100xf32>) -> tensor<1x4x100xf32>
// CHECK-NEXT: train.scale %[[TANH]] by 3.000000e+01
// CHECK-LABEL: func.func @eval(
// CHECK: %[[LOSS:.*]] = train.repeat @eval.loss x 2
// CHECK-NEXT: train.mul %[[LOSS]],
func.func @eval(%x: tensor<2x4x8xf32>, %w: tensor<100x8xf32>, %b: tensor<100xf32>, %targets: tensor<2x4xi32>, %weight: tensor<f32>) -> tensor<f32> {
  %0 = train.linear %x, %w : (tensor<2x4x8xf32>, tensor<100x8xf32>) -> tensor<2x4x100xf32>
  %1 = train.add %0, %b : (tensor<2x4x100xf32>, tensor<100xf32>) -> tensor<2x4x100xf32>
  %2 = train.tanh %1 : (tensor<2x4x100xf32>) -> tensor<2x4x100xf32>
  %3 = train.scale %2 by 30.0 : (tensor<2x4x100xf32>) -> tensor<2x4x100xf32>
  %loss, %lse = train.cross_entropy %3, %targets scale 1.0 : (tensor<2x4x100xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
  %mean = train.mul %loss, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %mean : tensor<f32>
}

// -----

// Where a vocabulary is sharded, maxima and sums of all devices are between: they are reduced part by part.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func private @microbatch.loss(
// CHECK: train.reduce max {{.*}} -> tensor<1x2xf32>
// CHECK-NEXT: dist.all_reduce max {{.*}} -> tensor<1x2xf32>
// CHECK: dist.all_reduce sum {{.*}} -> tensor<1x2xf32>
// CHECK: train.accumulate
// CHECK-NEXT: train.accumulate
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @microbatch(
// CHECK: %[[R:.*]]:2 = train.repeat @microbatch.loss x 2 carry(%{{.*}}, %{{.*}}) each(
// CHECK-NEXT: train.accumulate %{{.*}}, %[[R]]#0
// CHECK-NEXT: train.accumulate %{{.*}}, %[[R]]#1
func.func private @microbatch(%acc: tensor<50x8xf32>, %losses: tensor<f32>, %x: tensor<1x4x8xf32>, %w: tensor<50x8xf32>, %targets: tensor<1x4xi32>, %mine: tensor<1x4xi32>,
                              %one: tensor<f32>) -> (tensor<50x8xf32>, tensor<f32>) attributes {train.role = #train.role<microbatch>} {
  %logits = train.linear %x, %w : (tensor<1x4x8xf32>, tensor<50x8xf32>) -> tensor<1x4x50xf32>
  %0 = train.reduce max %logits over [2] : (tensor<1x4x50xf32>) -> tensor<1x4xf32>
  %1 = dist.all_reduce max %0 over <@mesh {tensor}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = train.broadcast %1 along [2] : (tensor<1x4xf32>) -> tensor<1x4x50xf32>
  %3 = train.scale %2 by -1.0 : (tensor<1x4x50xf32>) -> tensor<1x4x50xf32>
  %4 = train.add %logits, %3 : (tensor<1x4x50xf32>, tensor<1x4x50xf32>) -> tensor<1x4x50xf32>
  %5 = train.exp %4 : (tensor<1x4x50xf32>) -> tensor<1x4x50xf32>
  %6 = train.reduce sum %5 over [2] : (tensor<1x4x50xf32>) -> tensor<1x4xf32>
  %7 = dist.all_reduce sum %6 over <@mesh {tensor}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %8 = train.log %7 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %9 = train.add %1, %8 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %10 = train.pick %logits, %mine : (tensor<1x4x50xf32>, tensor<1x4xi32>) -> tensor<1x4xf32>
  %11 = dist.all_reduce sum %10 over <@mesh {tensor}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %loss, %lse = train.token_loss %9, %11, %targets below 100 scale 1.0 : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<1x4xf32>)
  %d = train.cross_entropy_grad %logits, %mine, %lse, %one scale 1.0 : (tensor<1x4x50xf32>, tensor<1x4xi32>, tensor<1x4xf32>, tensor<f32>) -> tensor<1x4x50xf32>
  %dw = train.contract "b s o, b s i -> o i" %d, %x : (tensor<1x4x50xf32>, tensor<1x4x8xf32>) -> tensor<50x8xf32>
  %12 = train.accumulate %losses, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %13 = train.accumulate %acc, %dw : (tensor<50x8xf32>, tensor<50x8xf32>) -> tensor<50x8xf32>
  return %13, %12 : tensor<50x8xf32>, tensor<f32>
}

// -----

// What an op outside reads of the loss comes behind the loop, wherever it stood. Products of layers,
// whose results go on, stay whole.
// CHECK-LABEL: func.func @late
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[Y:.*]] = train.linear %[[X]], %{{.*}} -> tensor<4x8xf32>
// CHECK: %[[R:.*]]:2 = train.repeat @late.loss x 2 carry(%{{.*}}, %{{.*}}) each(%{{.*}}, %{{.*}}) shared(
// CHECK: %[[TWICE:.*]] = train.add %[[R]]#0, %[[R]]#0
// CHECK-NEXT: return %[[TWICE]], %[[R]]#1
func.func @late(%x: tensor<4x8xf32>, %u: tensor<8x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<4xi32>, %one: tensor<f32>) -> (tensor<f32>, tensor<100x8xf32>) {
  %y = train.linear %x, %u : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %logits = train.linear %y, %w : (tensor<4x8xf32>, tensor<100x8xf32>) -> tensor<4x100xf32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<4x100xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %twice = train.add %loss, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 1.0 : (tensor<4x100xf32>, tensor<4xi32>, tensor<4xf32>, tensor<f32>) -> tensor<4x100xf32>
  %dw = train.contract "s o, s i -> o i" %d, %y : (tensor<4x100xf32>, tensor<4x8xf32>) -> tensor<100x8xf32>
  return %twice, %dw : tensor<f32>, tensor<100x8xf32>
}

// -----

// So it is in evaluation, where nothing behind the sums of all devices reads the logits again. A vocabulary that
// was padded is one of its own behind the slice.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func private @eval.loss(
// CHECK: train.linear {{.*}} -> tensor<1x2x50xf32>
// CHECK-NEXT: train.slice {{.*}} -> tensor<1x2x48xf32>
// CHECK: dist.all_reduce sum {{.*}} -> tensor<1x2xf32>
// CHECK: train.token_loss
// CHECK-NEXT: train.accumulate
// CHECK-NEXT: return
// CHECK-LABEL: func.func @eval(
// CHECK: train.repeat @eval.loss x 2
func.func @eval(%x: tensor<1x4x8xf32>, %w: tensor<50x8xf32>, %targets: tensor<1x4xi32>, %mine: tensor<1x4xi32>) -> tensor<f32> {
  %padded = train.linear %x, %w : (tensor<1x4x8xf32>, tensor<50x8xf32>) -> tensor<1x4x50xf32>
  %logits = train.slice %padded dim 2 rows 48 : (tensor<1x4x50xf32>) -> tensor<1x4x48xf32>
  %0 = train.exp %logits : (tensor<1x4x48xf32>) -> tensor<1x4x48xf32>
  %1 = train.reduce sum %0 over [2] : (tensor<1x4x48xf32>) -> tensor<1x4xf32>
  %2 = dist.all_reduce sum %1 over <@mesh {tensor}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = train.log %2 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = train.pick %logits, %mine : (tensor<1x4x48xf32>, tensor<1x4xi32>) -> tensor<1x4xf32>
  %5 = dist.all_reduce sum %4 over <@mesh {tensor}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %loss, %lse = train.token_loss %3, %5, %targets below 96 scale 1.0 : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<1x4xf32>)
  return %loss : tensor<f32>
}

// -----

// A loss of other ops, weighted token by token, and a second one of three tokens, which stays whole.
// CHECK-LABEL: func.func private @two.loss(
// CHECK: train.linear {{.*}} -> tensor<2x100xf32>
// CHECK-NEXT: train.softmax
// CHECK: train.mul {{.*}} -> tensor<2xf32>
// CHECK-NEXT: train.reduce sum
// CHECK-LABEL: func.func @two(
// CHECK: train.repeat @two.loss x 2
// CHECK: train.linear {{.*}} -> tensor<3x50xf32>
// CHECK-NEXT: train.cross_entropy
func.func @two(%x: tensor<4x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<4xi32>, %weights: tensor<4xf32>,
               %y: tensor<3x8xf32>, %u: tensor<50x8xf32>, %others: tensor<3xi32>) -> tensor<f32> {
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<100x8xf32>) -> tensor<4x100xf32>
  %1 = train.softmax %0 : (tensor<4x100xf32>) -> tensor<4x100xf32>
  %2 = train.pick %1, %targets : (tensor<4x100xf32>, tensor<4xi32>) -> tensor<4xf32>
  %3 = train.mul %2, %weights : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = train.reduce sum %3 over [0] : (tensor<4xf32>) -> tensor<f32>
  %5 = train.linear %y, %u : (tensor<3x8xf32>, tensor<50x8xf32>) -> tensor<3x50xf32>
  %loss, %lse = train.cross_entropy %5, %others scale 1.0 : (tensor<3x50xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
  %sum = train.add %4, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
