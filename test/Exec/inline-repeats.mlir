// RUN: meshwright-opt %s --exec-inline-repeats -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --exec-inline-repeats
train.variable @w : tensor<12x4x4xf32> stacked init <"normal", 0.02>
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y, %x : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @f(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<12x2x4xf32>) {
  %w = train.get @w : tensor<12x4x4xf32>
  %y, %kept = train.repeat @layer x 12 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<12x4x4xf32>) -> (tensor<2x4xf32>, tensor<12x2x4xf32>)
  return %y, %kept : tensor<2x4xf32>, tensor<12x2x4xf32>
}
// END EXAMPLE

// CHECK-NOT: @layer
// CHECK-LABEL: func.func @f
// CHECK: %[[W:.*]] = train.get @w
// CHECK: %[[LOOP:.*]]:2 = exec.loop %{{.*}} = 12 carry(%[[X:.*]] = %arg0) each(%[[SLICE:.*]] = %[[W]])
// CHECK: %[[Y:.*]] = train.linear %[[X]], %[[SLICE]]
// CHECK: exec.yield %[[Y]], %[[X]]
// CHECK: return %[[LOOP]]#0, %[[LOOP]]#1

// -----

// Loops nest, count down, tell their number, and leave the reading of variables to
// the program.
train.variable @v : tensor<4xf32> init <"normal", 0.02>
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = train.get @v : tensor<4xf32>
  %y = train.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @outer(%i: tensor<i32>, %x: tensor<4xf32>, %key: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>) {
  %y = train.repeat @inner x 3 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  %k = train.fold_in %key, %i : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  return %y, %k : tensor<4xf32>, tensor<2xi32>
}
// CHECK-LABEL: func.func @nested
// CHECK-NEXT: %[[V:.*]] = train.get @v
// CHECK-NEXT: exec.loop %[[I:.*]] = 2 reverse carry
// CHECK-NEXT: %[[N:.*]] = exec.index %[[I]]
// CHECK-NEXT: exec.loop %{{.*}} = 3 carry
// CHECK-NEXT: train.mul %{{.*}}, %[[V]]
// CHECK: train.fold_in %arg1, %[[N]]
func.func @nested(%x: tensor<4xf32>, %key: tensor<2xi32>) -> tensor<4xf32> {
  %y, %keys = train.repeat @outer x 2 reverse indexed carry(%x) each() shared(%key) : (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<2x2xi32>)
  return %y : tensor<4xf32>
}

// -----

// The first round of experts' rows stands before the loop of the others, and takes the first rows.
func.func private @round(%r: tensor<i32>, %out: tensor<2x1x4xf32>, %x: tensor<1x4x2xf32>, %rows: tensor<2x1x4xi32>, %choices: tensor<2x1x4xi32>, %experts: tensor<2x1x4xi32>) -> tensor<2x1x4xf32> attributes {train.role = #train.role<round>} {
  %own:3 = train.rows_of_round %r of %rows, %choices, %experts slots 2 : (tensor<i32>, tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<2x1x4xi32>) -> (tensor<2x1x4xi32>, tensor<2x1x2xi32>, tensor<2x1x2xi32>)
  %next = train.silu %out : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  return %next : tensor<2x1x4xf32>
}
// CHECK-LABEL: func.func @rounds
// CHECK-NEXT: train.rows_of_round of %arg2, %arg3, %arg4 slots 2
// CHECK-NEXT: %[[FIRST:.*]] = train.silu %arg0
// CHECK-NEXT: %[[LOOP:.*]] = exec.loop %[[I:.*]] = 2 times(%arg5 : tensor<i32>) from 1 carry(%{{.*}} = %[[FIRST]])
// CHECK-NEXT: %[[N:.*]] = exec.index %[[I]]
// CHECK-NEXT: train.rows_of_round %[[N]] of %arg2, %arg3, %arg4 slots 2
// CHECK: return %[[LOOP]]
func.func @rounds(%out: tensor<2x1x4xf32>, %x: tensor<1x4x2xf32>, %rows: tensor<2x1x4xi32>, %choices: tensor<2x1x4xi32>, %experts: tensor<2x1x4xi32>, %n: tensor<i32>) -> tensor<2x1x4xf32> {
  %y = train.repeat @round x 2 times %n indexed carry(%out) each() shared(%x, %rows, %choices, %experts) {train.role = #train.role<round>} : (tensor<2x1x4xf32>, tensor<1x4x2xf32>, tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<2x1x4xi32>, tensor<i32>) -> tensor<2x1x4xf32>
  return %y : tensor<2x1x4xf32>
}

// -----

train.variable @v : tensor<4xf32> init <"normal", 0.02>
func.func private @write(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is inside a repeated function; variables are written by @step itself}}
  train.set @v, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) {
  %y = train.repeat @write x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

train.variable @w : tensor<3x8x8xf32> stacked init <"normal", 0.1 : f64> storage <"h.{layer}.w">
train.variable @v : tensor<8x8xf32> init <"normal", 0.1 : f64>

// CHECK-NOT: func.func private
func.func private @layer(%i: tensor<i32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %again: tensor<8x8xf32>, %c: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %v = train.get @v : tensor<8x8xf32>
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = train.linear %0, %again : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = train.linear %1, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %2, %x : tensor<4x8xf32>, tensor<4x8xf32>
}

func.func private @outer(%x: tensor<4x8xf32>, %c: tensor<8xf32>) -> tensor<4x8xf32> {
  %w = train.get @w : tensor<3x8x8xf32>
  %y, %kept = train.repeat @layer x 3 indexed carry(%x) each(%w, %w) shared(%c)
      : (tensor<4x8xf32>, tensor<3x8x8xf32>, tensor<3x8x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>)
  return %y : tensor<4x8xf32>
}

// Loops in loops; reads of variables come out of them, once each; a stack that is
// sliced twice is sliced once.
// CHECK-LABEL: func.func @step
// CHECK: %[[W:.*]] = train.get @w
// CHECK: %[[V:.*]] = train.get @v
// CHECK: exec.loop %{{.*}} = 2 reverse carry(%[[X:.*]] = %arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
// CHECK: %[[INNER:.*]]:2 = exec.loop %[[I:.*]] = 3 carry(%[[Y:.*]] = %[[X]]) each(%[[SLICE:.*]] = %[[W]]) : (tensor<4x8xf32>, tensor<3x8x8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) {
// CHECK: exec.index %[[I]] : tensor<i32>
// CHECK: %[[A:.*]] = train.linear %[[Y]], %[[SLICE]]
// CHECK: %[[B:.*]] = train.linear %[[A]], %[[SLICE]]
// CHECK: %[[C:.*]] = train.linear %[[B]], %[[V]]
// CHECK: exec.yield %[[C]], %[[Y]]
// CHECK: exec.yield %[[INNER]]#0
func.func @step(%x: tensor<4x8xf32> {train.input = "x"}, %c: tensor<8xf32> {train.input = "c"}) -> (tensor<4x8xf32> {train.output = "y"}) {
  %y = train.repeat @outer x 2 reverse carry(%x) each() shared(%c) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

train.variable @v : tensor<8xf32> init <"normal", 0.1 : f64>
func.func private @layer(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{is inside a repeated function; variables are written by @step itself}}
  train.set @v, %x : tensor<8xf32>
  return %x : tensor<8xf32>
}
func.func @step(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// What is read behind a write is what was written.
train.variable @v : tensor<4xf32> init <"normal", 0.02>
// CHECK-LABEL: func.func @written
// CHECK-NEXT: %[[OLD:.*]] = train.get @v
// CHECK-NEXT: train.set @v, %arg0
// CHECK-NEXT: %[[NEW:.*]] = train.get @v
// CHECK-NEXT: return %[[OLD]], %[[NEW]]
func.func @written(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %old = train.get @v : tensor<4xf32>
  train.set @v, %x : tensor<4xf32>
  %new = train.get @v : tensor<4xf32>
  return %old, %new : tensor<4xf32>, tensor<4xf32>
}

// -----

// A loop over as many microbatches as a step has takes slices, and stays whole: there is always one.
func.func private @part(%sum: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<microbatch>} {
  %next = train.accumulate %sum, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %next : tensor<4xf32>
}
// CHECK-LABEL: func.func @ramped
// CHECK-NEXT: exec.loop %{{.*}} = 3 times(%arg2 : tensor<i32>) carry(%[[SUM:.*]] = %arg0) each(%[[X:.*]] = %arg1)
// CHECK-NEXT: train.accumulate %[[SUM]], %[[X]]
func.func @ramped(%zero: tensor<4xf32>, %x: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %y = train.repeat @part x 3 times %n carry(%zero) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<4xf32>, tensor<3x4xf32>, tensor<i32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
