// RUN: meshwright-opt %s --exec-order -split-input-file | FileCheck %s

// BEGIN EXAMPLE --exec-order
func.func @f(%s: tensor<f32>, %x: tensor<4x8xf32>, %u: tensor<8x8xf32>, %w: tensor<64x8xf32>) -> tensor<4x64xf32> {
  %big = train.broadcast %s along [0, 1] : (tensor<f32>) -> tensor<4x64xf32>
  %h = train.linear %x, %u : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %y = train.linear %h, %w : (tensor<4x8xf32>, tensor<64x8xf32>) -> tensor<4x64xf32>
  %z = train.add %y, %big : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %z : tensor<4x64xf32>
}
// END EXAMPLE

// The big value appears where it is read.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: train.linear
// CHECK-NEXT: train.linear
// CHECK-NEXT: train.broadcast
// CHECK-NEXT: train.add

// -----

// Moving the sum down would keep the larger term alive instead.
// CHECK-LABEL: func.func @stays
// CHECK: train.reduce
// CHECK-NEXT: train.linear
// CHECK-NEXT: train.add
func.func @stays(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<8xf32> {
  %h = train.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %sum = train.reduce sum %h over [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  %v = train.linear %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = train.add %v, %sum : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %z = train.reduce sum %y over [0] : (tensor<8x8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// Collectives keep their order, whatever they make.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @collectives
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dist.all_reduce
func.func @collectives(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = dist.all_gather %x dim 0 over <@mesh {a}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = dist.all_reduce sum %y over <@mesh {a}> : (tensor<8xf32>) -> tensor<8xf32>
  %2 = train.silu %1 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = train.add %0, %2 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

func.func private @grow(%x: tensor<4xf32>) -> tensor<64xf32> attributes {exec.kernel}
func.func private @shrink(%x: tensor<64xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func private @join(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {exec.kernel}

// What is computed again moves to its reader: two large values are not live at once.
// CHECK-LABEL: func.func @recompute
// CHECK-NEXT: exec.launch @grow ins(%arg0
// CHECK-NEXT: exec.launch @shrink
// CHECK-NEXT: exec.launch @grow ins(%arg1
// CHECK-NEXT: exec.launch @shrink
func.func @recompute(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = exec.launch @grow ins(%a : tensor<4xf32>) -> tensor<64xf32>
  %1 = exec.launch @grow ins(%b : tensor<4xf32>) -> tensor<64xf32>
  %2 = exec.launch @shrink ins(%0 : tensor<64xf32>) -> tensor<4xf32>
  %3 = exec.launch @shrink ins(%1 : tensor<64xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// What makes less than it alone keeps alive stays where it is.
// CHECK-LABEL: func.func @free_early
// CHECK: %[[BIG:.*]] = exec.launch @grow ins(%arg0
// CHECK-NEXT: exec.launch @shrink ins(%[[BIG]]
// CHECK-NEXT: exec.launch @grow ins(%arg1
func.func @free_early(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = exec.launch @grow ins(%a : tensor<4xf32>) -> tensor<64xf32>
  %1 = exec.launch @shrink ins(%0 : tensor<64xf32>) -> tensor<4xf32>
  %2 = exec.launch @grow ins(%b : tensor<4xf32>) -> tensor<64xf32>
  %3 = exec.launch @grow ins(%1 : tensor<4xf32>) -> tensor<64xf32>
  return %2, %3 : tensor<64xf32>, tensor<64xf32>
}

// Inside loops too.
// CHECK-LABEL: func.func @loop
// CHECK: exec.loop
// CHECK-NEXT: %[[S:.*]] = exec.launch @shrink
// CHECK-NEXT: %[[Y:.*]] = exec.launch @grow ins(%[[S]]
// CHECK-NEXT: %[[X:.*]] = exec.launch @grow
// CHECK-NEXT: exec.launch @join ins(%[[X]], %[[Y]]
func.func @loop(%a: tensor<4xf32>, %b: tensor<64xf32>) -> (tensor<4xf32>, tensor<3x64xf32>) {
  %r:2 = exec.loop %i = 3 carry(%c = %a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3x64xf32>) {
    %0 = exec.launch @grow ins(%c : tensor<4xf32>) -> tensor<64xf32>
    %1 = exec.launch @shrink ins(%b : tensor<64xf32>) -> tensor<4xf32>
    %2 = exec.launch @grow ins(%1 : tensor<4xf32>) -> tensor<64xf32>
    %3 = exec.launch @join ins(%0, %2 : tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    exec.yield %1, %3 : tensor<4xf32>, tensor<64xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<3x64xf32>
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<40xf32>) attributes {exec.kernel}
func.func private @logits(%x: tensor<4xf32>) -> tensor<64xf32> attributes {exec.kernel}
func.func private @dw(%d: tensor<64xf32>) -> tensor<128xf32> attributes {exec.kernel}
func.func private @dx(%d: tensor<64xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func private @back41(%d: tensor<4xf32>, %a: tensor<40xf32>) -> (tensor<4xf32>, tensor<41xf32>) attributes {exec.kernel}
func.func private @update41(%dw: tensor<128xf32>, %g: tensor<3x41xf32>) -> tensor<f32> attributes {exec.kernel}
func.func private @back42(%d: tensor<4xf32>, %a: tensor<40xf32>) -> (tensor<4xf32>, tensor<42xf32>) attributes {exec.kernel}
func.func private @update42(%dw: tensor<128xf32>, %g: tensor<3x42xf32>) -> tensor<f32> attributes {exec.kernel}

// The gradient of a head, 128 numbers, stays in front of the layers' backward, which has room for it: activations make
// way for gradients there, slot by slot. Behind it the 64 numbers from @logits would be there with all gradients,
// 64 + 128 + 3 * 42, and in front with all activations and what @dx makes, 64 + 128 + 3 * 40 + 4, which is less.
// CHECK-LABEL: func.func @head_first
// CHECK: exec.launch @logits
// CHECK-NEXT: exec.launch @dw
// CHECK-NEXT: exec.launch @dx
// CHECK-NEXT: exec.loop
// CHECK-NEXT: exec.launch @back
// CHECK-NEXT: exec.yield
// CHECK-NEXT: }
// CHECK-NEXT: exec.launch @update42
func.func @head_first(%x: tensor<4xf32>) -> tensor<f32> {
  %f:2 = exec.loop %i = 3 carry(%c = %x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3x40xf32>) {
    %0:2 = exec.launch @layer ins(%c : tensor<4xf32>) -> tensor<4xf32>, tensor<40xf32>
    exec.yield %0#0, %0#1 : tensor<4xf32>, tensor<40xf32>
  }
  %d = exec.launch @logits ins(%f#0 : tensor<4xf32>) -> tensor<64xf32>
  %dw = exec.launch @dw ins(%d : tensor<64xf32>) -> tensor<128xf32>
  %dx = exec.launch @dx ins(%d : tensor<64xf32>) -> tensor<4xf32>
  %b:2 = exec.loop %i = 3 reverse carry(%c = %dx) each(%a = %f#1) : (tensor<4xf32>, tensor<3x40xf32>) -> (tensor<4xf32>, tensor<3x42xf32>) {
    %0:2 = exec.launch @back42 ins(%c, %a : tensor<4xf32>, tensor<40xf32>) -> tensor<4xf32>, tensor<42xf32>
    exec.yield %0#0, %0#1 : tensor<4xf32>, tensor<42xf32>
  }
  %u = exec.launch @update42 ins(%dw, %b#1 : tensor<128xf32>, tensor<3x42xf32>) -> tensor<f32>
  return %u : tensor<f32>
}

// With three numbers less, 64 + 128 + 3 * 41, it does no harm behind the loop, and is made there.
// CHECK-LABEL: func.func @head_last
// CHECK: exec.launch @logits
// CHECK-NEXT: exec.launch @dx
// CHECK-NEXT: exec.loop
// CHECK-NEXT: exec.launch @back
// CHECK-NEXT: exec.yield
// CHECK-NEXT: }
// CHECK-NEXT: exec.launch @dw
// CHECK-NEXT: exec.launch @update41
func.func @head_last(%x: tensor<4xf32>) -> tensor<f32> {
  %f:2 = exec.loop %i = 3 carry(%c = %x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3x40xf32>) {
    %0:2 = exec.launch @layer ins(%c : tensor<4xf32>) -> tensor<4xf32>, tensor<40xf32>
    exec.yield %0#0, %0#1 : tensor<4xf32>, tensor<40xf32>
  }
  %d = exec.launch @logits ins(%f#0 : tensor<4xf32>) -> tensor<64xf32>
  %dw = exec.launch @dw ins(%d : tensor<64xf32>) -> tensor<128xf32>
  %dx = exec.launch @dx ins(%d : tensor<64xf32>) -> tensor<4xf32>
  %b:2 = exec.loop %i = 3 reverse carry(%c = %dx) each(%a = %f#1) : (tensor<4xf32>, tensor<3x40xf32>) -> (tensor<4xf32>, tensor<3x41xf32>) {
    %0:2 = exec.launch @back41 ins(%c, %a : tensor<4xf32>, tensor<40xf32>) -> tensor<4xf32>, tensor<41xf32>
    exec.yield %0#0, %0#1 : tensor<4xf32>, tensor<41xf32>
  }
  %u = exec.launch @update41 ins(%dw, %b#1 : tensor<128xf32>, tensor<3x41xf32>) -> tensor<f32>
  return %u : tensor<f32>
}
