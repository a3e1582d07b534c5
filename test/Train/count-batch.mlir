// RUN: meshwright-opt %s --train-count-batch -split-input-file -verify-diagnostics | FileCheck %s

// A layer and what follows the layers have sums over the batch. What is counted is computed alone: neither the loss
// that layers carry nor what the sums become.
// BEGIN EXAMPLE --train-count-batch
module attributes {train.microbatches = 2 : i64} {
  train.variable @h.gate : tensor<4x3x8xf32> stacked init <"normal", 0.02> storage <"h.{layer}.gate">
  func.func private @layer(%x: tensor<2x8xf32>, %balance: tensor<f32>, %all: tensor<3xf32>, %gate: tensor<3x8xf32>) -> (tensor<2x8xf32>, tensor<f32>, tensor<3xf32>) {
    %logits = train.linear %x, %gate : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<2x3xf32>
    %mask = train.top_k %logits k 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %count = train.reduce sum %mask over [0] : (tensor<2x3xf32>) -> tensor<3xf32>
    %more = train.add %all, %count : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %batch = train.batch_sum %count : (tensor<3xf32>) -> tensor<3xf32>
    %scores = train.reduce sum %logits over [0] : (tensor<2x3xf32>) -> tensor<3xf32>
    %product = train.mul %scores, %batch : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %own = train.reduce sum %product over [0] : (tensor<3xf32>) -> tensor<f32>
    %sum = train.add %balance, %own : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %y = train.relu %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
    return %y, %sum, %more : tensor<2x8xf32>, tensor<f32>, tensor<3xf32>
  }
  func.func @loss(%x: tensor<2x8xf32> {train.input = "x"}, %target_weight: tensor<f32> {train.input = "target_weight"}) -> (tensor<f32> {train.output = "loss"}) {
    %gate = train.get @h.gate : tensor<4x3x8xf32>
    %zero = train.fill 0.0 : () -> tensor<f32>
    %none = train.fill 0.0 : () -> tensor<3xf32>
    %y, %balance, %all = train.repeat @layer x 4 carry(%x, %zero, %none) each(%gate) shared() : (tensor<2x8xf32>, tensor<f32>, tensor<3xf32>, tensor<4x3x8xf32>) -> (tensor<2x8xf32>, tensor<f32>, tensor<3xf32>)
    %total = train.batch_sum %all : (tensor<3xf32>) -> tensor<3xf32>
    %of_all = train.reduce sum %total over [0] : (tensor<3xf32>) -> tensor<f32>
    %scaled = train.mul %balance, %target_weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = train.mul %scaled, %of_all : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: tensor<2x8xf32>, %[[BALANCE:.*]]: tensor<f32>, %{{.*}}: tensor<3xf32>, %{{.*}}: tensor<3x8xf32>, %[[BATCH:.*]]: tensor<3xf32>)
// CHECK: train.mul %{{.*}}, %[[BATCH]] :
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[STACK:[^:]*]]: tensor<4x3xf32> {train.batch_sum = 0 : i64}, %[[TOTAL:[^:]*]]: tensor<3xf32> {train.batch_sum = 1 : i64})
// CHECK: train.repeat @layer x 4 carry({{.*}}) each(%{{.*}}, %[[STACK]]) shared()
// CHECK: train.reduce sum %[[TOTAL]]
// CHECK-LABEL: func.func private @loss.counts(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x8xf32> {train.input = "x"}) -> (tensor<4x3xf32>, tensor<3xf32>)
// CHECK: %[[ALL:.*]]:3 = train.repeat @layer.counts x 4 carry(%[[X]], %{{.*}}) each(%{{.*}}) shared() : (tensor<2x8xf32>, tensor<3xf32>, tensor<4x3x8xf32>) -> (tensor<2x8xf32>, tensor<3xf32>, tensor<4x3xf32>)
// CHECK: return %[[ALL]]#2, %[[ALL]]#1
// CHECK-LABEL: func.func private @layer.counts(
// CHECK-NOT: train.mul
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<3xf32>, tensor<3xf32>

// -----

// One microbatch is the batch.
module attributes {train.microbatches = 1 : i64} {
  // CHECK-LABEL: func.func @loss(
  // CHECK-SAME: %[[X:.*]]: tensor<f32> {train.input = "x"}) ->
  // CHECK-NEXT: return %[[X]]
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    // expected-error @below {{has helped to compute what another one sums: neither can be first}}
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    %z = train.batch_sum %y : (tensor<f32>) -> tensor<f32>
    return %z : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @below {{must be in @loss or in a function that @loss itself repeats}}
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
    %y = train.repeat @inner x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// expected-error @below {{needs @loss and the attribute train.microbatches}}
module {
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  // expected-error @below {{has the name that the function with the counts of @loss will have; rename it}}
  func.func private @loss.counts(%x: tensor<f32> {train.input = "x"}) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func private @layer(tensor<f32>) -> tensor<f32>
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    // expected-error @below {{repeats @layer, which has no body or repeats itself}}
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    %z = train.batch_sum %y : (tensor<f32>) -> tensor<f32>
    return %z : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @below {{repeats @layer, which has no body or repeats itself}}
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    %z = train.batch_sum %y : (tensor<f32>) -> tensor<f32>
    return %z : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
    %y = train.batch_sum %x : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @other(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @below {{repeats @layer outside of @loss, where its train.batch_sum has no value}}
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}
