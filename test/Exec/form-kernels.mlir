// RUN: meshwright-opt %s --exec-form-kernels -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --annotate-row-spaces -split-input-file | FileCheck %s --check-prefix=ROWS
// RUN: meshwright-opt %s --exec-form-kernels -split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix FROM

// BEGIN EXAMPLE --exec-form-kernels
func.func @f(%x: tensor<8x64xf32>, %w: tensor<32x64xf32>, %bias: tensor<32xf32>) -> tensor<8x32xf32> {
  %0 = train.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  %1 = train.add %0, %bias : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = train.gelu tanh %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f(
// CHECK-NEXT: %[[H:.*]] = train.linear
// CHECK-NEXT: %[[Y:.*]] = exec.launch @f.k0 ins(%[[H]], %arg2
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f.k0
// CHECK-SAME: attributes {exec.kernel}
// CHECK-NEXT: train.add
// CHECK-NEXT: train.gelu tanh

// -----

// Two readers of one tensor share a kernel; a sum over rows leaves it, so what reads
// the sum is another kernel.
// ROWS-LABEL: func.func @readers
// ROWS-NEXT: train.silu {{.*}} {exec.operands = ["full"], exec.results = ["full"], exec.rows = array<i64: 8, 64>}
// ROWS-NEXT: train.reduce {{.*}} {exec.operands = ["full"], exec.results = ["column"], exec.rows = array<i64: 8, 64>}
// ROWS-NEXT: train.relu {{.*}} {exec.operands = ["full"], exec.results = ["full"], exec.rows = array<i64: 64>}
// CHECK-LABEL: func.func @readers
// CHECK-NEXT: %[[BOTH:.*]]:2 = exec.launch @[[A:.*]] ins(%arg0
// CHECK-NEXT: exec.launch @[[B:.*]] ins(
// CHECK: func.func private @[[A]]
// CHECK: train.silu
// CHECK: train.reduce
// CHECK: func.func private @[[B]]
func.func @readers(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %0 = train.silu %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = train.reduce sum %x over [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %2 = train.relu %1 : (tensor<64xf32>) -> tensor<64xf32>
  return %0, %2 : tensor<8x64xf32>, tensor<64xf32>
}

// -----

// Equal kernels are one function; an op between two others keeps them apart.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT: exec.launch @equal.k0
// CHECK-NEXT: train.linear
// CHECK-NEXT: exec.launch @equal.k0
// CHECK: func.func private @equal.k0
// CHECK-NOT: func.func
func.func @equal(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.silu %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = train.linear %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = train.silu %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Constants are made again by each kernel that reads them.
// CHECK-LABEL: func.func @constants
// CHECK: func.func private
// CHECK: train.fill
// CHECK: train.mul
func.func @constants(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.fill 2.0 : () -> tensor<8x8xf32>
  %1 = train.mul %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A bias and an activation are one kernel, whose results are what others read:
// before the activation too, when the backward wants that. Matrix products stay.
// CHECK-LABEL: func.func @bias_gelu
// CHECK: %[[X:.*]] = train.linear
// CHECK-NEXT: %[[K:.*]]:2 = exec.launch @bias_gelu.k0 ins(%[[X]], %arg2 : tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>, tensor<2x4x8xf32>
// CHECK-NEXT: return %[[K]]#1, %[[K]]#0
func.func @bias_gelu(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  %0 = train.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %1 = train.add %0, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %2 = train.gelu tanh %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %2, %1 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

// Readers of one tensor share the reading: a norm computed again, its gradient,
// the residual's sum and a bias gradient. The sum over rows leaves the kernel and
// is accumulated by another one.
// CHECK-LABEL: func.func @norm_backward
// CHECK-NEXT: %[[K:.*]]:3 = exec.launch @norm_backward.k1
// CHECK-NEXT: %[[A:.*]] = exec.launch @norm_backward.k2 ins(%arg4, %[[K]]#1 : tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return %[[K]]#0, %[[K]]#2, %[[A]]
func.func @norm_backward(%dy: tensor<2x4x8xf32>, %x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %dres: tensor<2x4x8xf32>, %acc: tensor<8xf32>)
    -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>) {
  %0 = train.rms_norm %x, %w eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %dx, %dw = train.rms_norm_grad %dy, %x, %w eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  %1 = train.add %dres, %dx : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %2 = train.accumulate %acc, %dw : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>
}

// No cycles: the first and the last op share %x, but a product lies between them.
// CHECK-LABEL: func.func @no_cycle
// CHECK: exec.launch
// CHECK: train.linear
// CHECK: exec.launch
func.func @no_cycle(%x: tensor<2x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %0 = train.silu %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = train.linear %0, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = train.mul %1, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// The loss and the gradient of the logits read the logits once. The loss itself is
// a sum over everything, so what uses it is another kernel.
// CHECK-LABEL: func.func @loss
// CHECK-NEXT: %[[K:.*]]:2 = exec.launch @loss.k{{[0-9]+}} ins(%arg0, %arg1 : tensor<4x16xf32>, tensor<4xi32>) -> tensor<f32>, tensor<4x16xf32>
// CHECK-NEXT: exec.launch @loss.k{{[0-9]+}} ins(%arg2, %[[K]]#0 : tensor<f32>, tensor<f32>)
func.func @loss(%logits: tensor<4x16xf32>, %targets: tensor<4xi32>, %sum: tensor<f32>) -> (tensor<f32>, tensor<4x16xf32>) {
  %one = train.fill 1.0 : () -> tensor<f32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.25 : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 0.25 : (tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>, tensor<f32>) -> tensor<4x16xf32>
  %total = train.accumulate %sum, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %total, %d : tensor<f32>, tensor<4x16xf32>
}

// Scalars are one launch; the updates they feed are their own, and equal ones are
// one kernel. Launches say what of their inputs is a gradient.
// CHECK-LABEL: func.func @update
// CHECK-COUNT-2: exec.launch @update.k[[SQUARE:[0-9]+]]
// CHECK: %[[CLIP:.*]]:2 = exec.launch
// CHECK-COUNT-2: exec.launch @update.k[[SGD:[0-9]+]] ins({{.*}}) {exec.gradients = array<i64: 1>} -> tensor<8x8xf32>
// CHECK-NOT: exec.launch
func.func @update(%p: tensor<8x8xf32>, %g: tensor<8x8xf32>, %q: tensor<8x8xf32>, %h: tensor<8x8xf32>, %limit: tensor<f32>, %lr: tensor<f32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
  %0 = train.square_sum %g : (tensor<8x8xf32>) -> tensor<f32>
  %1 = train.square_sum %h : (tensor<8x8xf32>) -> tensor<f32>
  %2 = train.global_norm %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = train.clip_factor %2, %limit : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = train.update "sgd" %p, %g, %3, %lr : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %5 = train.update "sgd" %q, %h, %3, %lr : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  return %4, %5, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
}

// ... also what they compute a gradient from: two terms of a sum here, which the
// second one adds up before the norm.
// CHECK-LABEL: func.func @terms
// CHECK-NEXT: exec.launch @{{.*}} ins(%arg1, %arg2, %arg0, %arg3 : {{.*}}) {exec.gradients = array<i64: 0, 1>} ->
func.func @terms(%p: tensor<8x8xf32>, %g: tensor<8x8xf32>, %h: tensor<8x8xf32>, %s: tensor<f32>) -> tensor<8x8xf32> {
  %0 = train.add %g, %h : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = train.update "sgd" %p, %0, %s, %s : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @sum
// CHECK-NEXT: exec.launch @{{.*}} ins(%arg0, %arg1 : {{.*}}) {exec.gradients = array<i64: 0, 1>} ->
func.func @sum(%g: tensor<8x8xf32>, %h: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<f32>) {
  %0 = train.add %g, %h {train.role = #train.role<update>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = train.square_sum %0 : (tensor<8x8xf32>) -> tensor<f32>
  return %0, %1 : tensor<8x8xf32>, tensor<f32>
}

// A result that is the input in another type is told from one that is computed.
// CHECK-LABEL: func.func @moves
// CHECK-NEXT: exec.launch @{{.*}} ins(%arg0 : tensor<4x8xf32>) {exec.moves = array<i64: 0>} -> tensor<4x8xbf16>, tensor<f32>
func.func @moves(%x: tensor<4x8xf32>) -> (tensor<4x8xbf16>, tensor<f32>) {
  %0 = train.cast %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %1 = train.square_sum %x : (tensor<4x8xf32>) -> tensor<f32>
  return %0, %1 : tensor<4x8xbf16>, tensor<f32>
}

// Slices and reshapes are views; a fill that no kernel reads is filled in place of
// its reader, so two readers are two.
// CHECK-LABEL: func.func @views
// CHECK: train.slice
// CHECK: train.reshape
// CHECK: %[[A:.*]] = exec.launch @views.k[[FILL:[0-9]+]] ins() -> tensor<4xf32>
// CHECK: %[[B:.*]] = exec.launch @views.k[[FILL]] ins() -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[B]], %[[A]]
func.func @views(%x: tensor<6x4xf32>) -> (tensor<2x2x2xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = train.slice %x rows 2 : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %1 = train.reshape %0 : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
  %2 = train.fill 0.0 : () -> tensor<4xf32>
  return %1, %2, %2 : tensor<2x2x2xf32>, tensor<4xf32>, tensor<4xf32>
}

// A scatter stands alone, and what computes its operand too.
// CHECK-LABEL: func.func @scatter
// CHECK-COUNT-2: exec.launch
func.func @scatter(%x: tensor<4x8xf32>, %ids: tensor<4xi32>) -> tensor<9x8xf32> {
  %0 = train.scale %x by 2.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.embedding_grad %0, %ids rows 9 : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<9x8xf32>
  return %1 : tensor<9x8xf32>
}

// CHECK: func.func private @bias_gelu.k0(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) attributes {exec.kernel}
// CHECK-NEXT: train.add
// CHECK-NEXT: train.gelu tanh
// CHECK-NEXT: return

// -----

// A launch says what it was made from, and a kernel what all its launches were; its arguments are named as what it is first given.
// FROM: func.func @from
// FROM: exec.launch @from.k0 {{.*}} loc(fused["gate", "up"])
// FROM: exec.launch @from.k0 {{.*}} loc(fused["gate.1", "up.1"])
// FROM: func.func private @from.k0(%arg0: tensor<4x4xf32> loc("x"), %arg1: tensor<4x4xf32> loc("w"))
// FROM-NEXT: train.silu {{.*}} loc("gate")
// FROM-NEXT: train.mul {{.*}} loc("up")
// FROM: } loc(fused["gate", "up", "gate.1", "up.1"])
func.func @from(%x: tensor<4x4xf32> loc("x"), %w: tensor<4x4xf32> loc("w")) -> tensor<4x4xf32> {
  %0 = train.silu %x : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("gate")
  %1 = train.mul %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("up")
  %2 = train.linear %1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("down")
  %3 = train.silu %2 : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("gate.1")
  %4 = train.mul %3, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("up.1")
  return %4 : tensor<4x4xf32>
}

// -----

// What a row sums to is not what its columns are multiplied by, though there are as many.
// CHECK-LABEL: func.func @square
// CHECK-NEXT: %[[S:.*]] = exec.launch @square.k0 ins(%arg0
// CHECK-NEXT: exec.launch @square.k1 ins(%arg0, %[[S]]
func.func @square(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.reduce sum %x over [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  %1 = train.mul %x, %0 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Calls stay in their order, also where the first waits for a kernel with a later op.
// CHECK-LABEL: func.func @calls
// CHECK: exec.launch
// CHECK-NEXT: call @first
// CHECK-NEXT: call @second
func.func private @first(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
func.func private @second(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
func.func @calls(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = train.silu %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @first(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = func.call @second(%y) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = train.relu %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A read of a variable stays behind the write, which waits for a kernel with a later op.
// CHECK-LABEL: func.func @variable
// CHECK-NEXT: %[[K:.*]]:2 = exec.launch
// CHECK-NEXT: train.set @v, %[[K]]#0
// CHECK-NEXT: train.get @v
train.variable @v : tensor<8xf32> init <"normal", 0.1 : f64>
func.func @variable(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = train.silu %x : (tensor<8xf32>) -> tensor<8xf32>
  train.set @v, %0 : tensor<8xf32>
  %1 = train.get @v : tensor<8xf32>
  %2 = train.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
