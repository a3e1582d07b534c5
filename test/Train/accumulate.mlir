// RUN: meshwright-opt %s --train-autodiff --train-accumulate -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --train-autodiff --train-accumulate
module attributes {train.microbatches = 4 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK-LABEL: func.func private @gradients
// CHECK-SAME: tensor<4x2x4xf32> {train.input = "x"}
// CHECK: train.repeat @microbatch x 4 carry({{.*}}) each(%arg0) shared() {train.role = #train.role<microbatch>}
// CHECK-LABEL: func.func private @microbatch
// CHECK: train.accumulate {{.*}} tensor<f32>
// CHECK: train.accumulate {{.*}} tensor<4xf32>
// CHECK-LABEL: func.func @eval

// -----

// Two microbatches: a loop that carries the loss and the gradients. The stacked
// gradient is accumulated inside the layer's backward, in its slice.
module attributes {train.microbatches = 2 : i64} {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %d = train.dropout %y, %ids, %key rate 0.1 stream 1 : (tensor<2x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    return %d : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %ids: tensor<2xi32> {train.input = "sequence_ids"}, %key: tensor<2xi32> {train.input = "key"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %v = train.get @v : tensor<4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared(%ids, %key) : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    %z = train.mul %y, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @layer.backward
// CHECK: train.accumulate

// CHECK-LABEL: func.func private @gradients
// CHECK-SAME: tensor<2x2x4xf32> {train.input = "x"}
// CHECK-SAME: tensor<2x2xi32> {train.input = "sequence_ids"}
// CHECK-SAME: tensor<2xi32> {train.input = "key"}
// CHECK: train.repeat @microbatch x 2 carry({{.*}}) each({{.*}}) shared({{.*}})

// CHECK-LABEL: func.func private @microbatch
// CHECK: %[[LAYERS:.*]]:2 = train.repeat @layer.backward x 3 reverse
// CHECK: %[[LOSS:.*]] = train.accumulate {{.*}} tensor<f32>
// CHECK: %[[V:.*]] = train.accumulate {{.*}} tensor<4xf32>
// CHECK: return %[[LOSS]], %[[LAYERS]]#1, %[[V]]

// Evaluation drops nothing and asks for neither ids nor key.
// CHECK-LABEL: func.func private @layer.eval
// CHECK-NOT: train.dropout
// CHECK-LABEL: func.func @eval
// CHECK-SAME: (%{{[a-z0-9]*}}: tensor<2x2x4xf32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"})

// -----

// expected-error @+1 {{attribute 'train.microbatches' is 0 : i64; expected an i64 from 1 on}}
module attributes {train.microbatches = 0 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %z = train.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = train.reduce sum %z over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 1 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  // expected-error @+1 {{argument 0 has no train.input attribute}}
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %z = train.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = train.reduce sum %z over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Sums of the batch come from a loop before the one that trains; an evaluation has zeros.
// CHECK-LABEL: func.func private @gradients
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32> {train.input = "x"}) ->
// CHECK: %[[SUMS:.*]] = train.repeat @count x 2 carry(%{{.*}}) each(%[[X]]) shared() {train.role = #train.role<count>} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
// CHECK: train.repeat @microbatch x 2 carry({{.*}}) each(%[[X]]) shared(%[[SUMS]])
// CHECK-LABEL: func.func private @count
// CHECK: train.accumulate
// CHECK-LABEL: func.func @eval
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32> {train.input = "x"}) ->
// CHECK: %[[NONE:.*]] = train.fill 0.000000e+00 : () -> tensor<3xf32>
// CHECK: train.repeat @eval.microbatch x 2 carry({{.*}}) each(%[[X]]) shared(%[[NONE]])
module attributes {train.microbatches = 2 : i64} {
  train.variable @v : tensor<3xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<3xf32> {train.input = "x"}, %sum: tensor<3xf32> {train.batch_sum = 0 : i64}) -> tensor<f32> {
    %v = train.get @v : tensor<3xf32>
    %y = train.mul %sum, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %z = train.mul %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = train.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func private @loss.counts(%x: tensor<3xf32> {train.input = "x"}) -> tensor<3xf32> {
    return %x : tensor<3xf32>
  }
}

// -----

// A stacked gradient that is two parameters' is added up outside, for each of them.
module attributes {train.microbatches = 2 : i64} {
  train.variable @a : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"{layer}.a">
  train.variable @b : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"{layer}.b">
  func.func private @scaled(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.mul %x, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %a = train.get @a : tensor<3x4xf32>
    %b = train.get @b : tensor<3x4xf32>
    %s = train.add %a, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %y = train.repeat @scaled x 3 carry(%x) each(%s) shared() : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @scaled.backward
// CHECK-NOT: train.accumulate
// CHECK-LABEL: func.func private @microbatch
// CHECK: %[[BOTH:.*]]:2 = train.repeat @scaled.backward x 3 reverse
// CHECK: %[[A:.*]] = train.accumulate %{{.*}}, %[[BOTH]]#1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[B:.*]] = train.accumulate %{{.*}}, %[[BOTH]]#1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[A]], %[[B]]

// -----

// Where a loss repeats the same layers twice, evaluation has a function for each repeat: they may need other results.
module attributes {train.microbatches = 2 : i64} {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %d = train.dropout %y, %ids, %key rate 0.1 stream 1 : (tensor<2x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    return %d : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %ids: tensor<2xi32> {train.input = "sequence_ids"}, %key: tensor<2xi32> {train.input = "key"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared(%ids, %key) : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 3 carry(%y) each(%w) shared(%ids, %key) : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @layer.eval(
// CHECK-LABEL: func.func private @layer.eval_0(
// CHECK-LABEL: func.func private @eval.microbatch
// CHECK: train.repeat @layer.eval x 3
// CHECK: train.repeat @layer.eval_0 x 3

// -----

// A step may have fewer microbatches: the loop takes the first slices of the same inputs. An evaluation has all.
module attributes {train.microbatches = 4 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %target_weight: tensor<f32> {train.input = "target_weight"}, %microbatches: tensor<i32> {train.input = "microbatches"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %sum = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %loss = train.mul %sum, %target_weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @gradients
// CHECK-SAME: tensor<4x2x4xf32> {train.input = "x"}, %[[WEIGHT:.*]]: tensor<f32> {train.input = "target_weight"}, %[[MICROBATCHES:.*]]: tensor<i32> {train.input = "microbatches"})
// CHECK: train.repeat @microbatch x 4 times %[[MICROBATCHES]] carry({{.*}}) each(%arg0) shared(%[[WEIGHT]]) {train.role = #train.role<microbatch>}
// CHECK-LABEL: func.func @eval
// CHECK-SAME: (%{{[a-z0-9]*}}: tensor<4x2x4xf32> {train.input = "x"}, %{{[a-z0-9]*}}: tensor<f32> {train.input = "target_weight"}) -> (tensor<f32> {train.output = "loss"})
// CHECK: train.repeat @eval.microbatch x 4 carry(

// -----

module attributes {train.microbatches = 4 : i64} {
  train.variable @v : tensor<2xf32> init <"normal", 0.02>
  // expected-error @+1 {{input microbatches is 'tensor<2xi32>'; expected tensor<i32>}}
  func.func @loss(%x: tensor<2xf32> {train.input = "x"}, %microbatches: tensor<2xi32> {train.input = "microbatches"}) -> tensor<f32> {
    %v = train.get @v : tensor<2xf32>
    %y = train.mul %x, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %loss = train.reduce sum %y over [0] : (tensor<2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 4 : i64} {
  train.variable @v : tensor<2xf32> init <"normal", 0.02>
  // expected-error @+1 {{has an input microbatches, but none that says what a smaller batch's means are divided by: target_weight, of counted targets, or batch_weight}}
  func.func @loss(%x: tensor<2xf32> {train.input = "x"}, %microbatches: tensor<i32> {train.input = "microbatches"}) -> tensor<f32> {
    %v = train.get @v : tensor<2xf32>
    %y = train.mul %x, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %loss = train.reduce sum %y over [0] : (tensor<2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 1 : i64} {
  train.variable @v : tensor<2xf32> init <"normal", 0.02>
  // expected-error @+1 {{has an input microbatches, but train.microbatches is 1: there are no fewer microbatches to run; leave the input out}}
  func.func @loss(%x: tensor<2xf32> {train.input = "x"}, %weight: tensor<f32> {train.input = "batch_weight"}, %microbatches: tensor<i32> {train.input = "microbatches"}) -> tensor<f32> {
    %v = train.get @v : tensor<2xf32>
    %y = train.mul %x, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %sum = train.reduce sum %y over [0] : (tensor<2xf32>) -> tensor<f32>
    %loss = train.mul %sum, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 4 : i64} {
  train.variable @v : tensor<2xf32> init <"normal", 0.02>
  // expected-error @+1 {{input microbatches is used by the loss of a microbatch, which does not depend on how many there are; multiply means over the batch by the input batch_weight}}
  func.func @loss(%x: tensor<2xf32> {train.input = "x"}, %microbatches: tensor<i32> {train.input = "microbatches"}) -> tensor<f32> {
    %v = train.get @v : tensor<2xf32>
    %y = train.mul %x, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %sum = train.reduce sum %y over [0] : (tensor<2xf32>) -> tensor<f32>
    %number = arith.sitofp %microbatches : tensor<i32> to tensor<f32>
    %loss = train.mul %sum, %number : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
