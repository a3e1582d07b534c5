// RUN: split-file %s %t
// RUN: meshwright-opt %t/step.mlir --exec-inline-repeats --exec-order --exec-bufferize --exec-assign-offsets --exec-verify | FileCheck %s
// RUN: meshwright-opt %t/step.mlir --exec-inline-repeats --annotate-inplace-aliases | FileCheck %s --check-prefix=ALIAS
// RUN: meshwright-opt %t/keep.mlir --exec-inline-repeats --annotate-inplace-aliases | FileCheck %s --check-prefix=NOALIAS
// RUN: meshwright-opt %t/keep.mlir --exec-inline-repeats --exec-bufferize | FileCheck %s --check-prefix=KEEP
// RUN: meshwright-opt %t/given.mlir --annotate-inplace-aliases | FileCheck %s --check-prefix=GIVEN
// RUN: meshwright-opt %t/variables.mlir --exec-inline-repeats | FileCheck %s --check-prefix=GET
// RUN: not meshwright-opt %t/recursion.mlir --exec-bufferize 2>&1 | FileCheck %s --check-prefix=RECURSION
// RUN: not meshwright-opt %t/kernel.mlir --exec-bufferize 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not meshwright-opt %t/set.mlir --exec-inline-repeats 2>&1 | FileCheck %s --check-prefix=SET

// Functions that a schedule calls several times stay functions.

//--- step.mlir
train.variable @w : tensor<8x8xf32> init <"normal", 0.1 : f64>
func.func private @zeros() -> tensor<8x8xf32> attributes {exec.kernel} {
  %0 = arith.constant dense<0.0> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @act(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel} {
  return %x : tensor<4x8xf32>
}
func.func private @sgd(%w: tensor<8x8xf32>, %g: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]} {
  %0 = arith.subf %w, %g : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Peak: w 256, x 256, the accumulator 256, y and kept of the first microbatch 256, those
// of the second 256, and 128 inside the first call of @backward.
// CHECK: module attributes {exec.arena_bytes = 1408 : i64, exec.live_bytes = 1408 : i64,
// CHECK-SAME: exec.memory = {activation = 512 : i64, gradient = 256 : i64, input = 256 : i64, parameter = 256 : i64, temporary = 128 : i64}

// CHECK: exec.program private @forward ins(%[[X:.*]]: memref<4x8xf32>, %[[W:.*]]: memref<8x8xf32>) outs(%[[Y:.*]]: memref<4x8xf32>, %[[KEPT:.*]]: memref<4x8xf32>)
// CHECK-SAME: exec.arena_bytes = 128 : i64, exec.live_bytes = 128 : i64, exec.memory = {temporary = 128 : i64}
// CHECK-NEXT: %[[T:.*]] = exec.buffer "temporary.0" temporary offset 0 : memref<4x8xf32>
// CHECK-NEXT: exec.matmul %[[X]], %[[W]], %[[KEPT]]
// CHECK-NEXT: exec.launch @act ins(%[[KEPT]] : memref<4x8xf32>) outs(%[[T]] : memref<4x8xf32>)
// CHECK-NEXT: exec.launch @act ins(%[[T]] : memref<4x8xf32>) outs(%[[Y]] : memref<4x8xf32>)
func.func private @forward(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = exec.launch @act ins(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = exec.launch @act ins(%1 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}

// The gradient can be added up where its accumulator is, argument 1.
// ALIAS: func.func private @forward({{.*}} {exec.inplace_aliases = array<i64: -1, -1>}
// ALIAS: func.func private @backward({{.*}} {exec.inplace_aliases = array<i64: 1>}
// CHECK: exec.program private @backward ins(%[[DY:[a-z0-9]+]]: memref<4x8xf32>, %[[K:[a-z0-9]+]]: memref<4x8xf32>) inouts(%[[ACC:[a-z0-9]+]]: memref<8x8xf32>)
// CHECK-NEXT: %[[T:.*]] = exec.buffer
// CHECK-NEXT: exec.launch @act ins(%[[DY]] : memref<4x8xf32>) outs(%[[T]] : memref<4x8xf32>)
// CHECK-NEXT: exec.matmul %[[T]], %[[K]], %[[ACC]] {{.*}} beta 1.0
func.func private @backward(%dy: tensor<4x8xf32>, %acc: tensor<8x8xf32>, %kept: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %t = exec.launch @act ins(%dy : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = train.contract "n o, n i -> o i" %t, %kept init %acc : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// The second microbatch is a place of the input; the accumulator goes through both calls.
// CHECK: exec.program @step
// CHECK-NOT: exec.copy
// CHECK-DAG: exec.call @forward ins(%[[X0:[0-9]+]], %[[VW:[0-9]+]] : memref<4x8xf32>, memref<8x8xf32>) outs(%[[Y0:[0-9]+]], %[[K0:[0-9]+]] : memref<4x8xf32>, memref<4x8xf32>) workspace(%{{.*}} : memref<128xi8>)
// CHECK-DAG: %[[X1:[0-9]+]] = exec.view %{{.*}} from 32 : memref<2x4x8xf32> -> memref<4x8xf32>
// CHECK: exec.call @forward ins(%[[X1]], %[[VW]] : {{.*}}) outs(%[[Y1:[0-9]+]], %[[K1:[0-9]+]] : {{.*}})
// CHECK: exec.call @backward ins(%[[Y0]], %[[K0]] : {{.*}}) inouts(%[[G:[0-9]+]] : memref<8x8xf32>)
// CHECK-NEXT: exec.call @backward ins(%[[Y1]], %[[K1]] : {{.*}}) inouts(%[[G]] : memref<8x8xf32>)
// CHECK-NEXT: exec.launch @sgd ins(%[[VW]], %[[G]]
// CHECK-NOT: exec.copy
func.func @step(%x: tensor<2x4x8xf32> {train.input = "x"}) {
  %w = train.get @w : tensor<8x8xf32>
  %zero = exec.launch @zeros ins() -> tensor<8x8xf32>
  %x0 = dist.take %x at 0 : (tensor<2x4x8xf32>) -> tensor<4x8xf32>
  %y0, %k0 = func.call @forward(%x0, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %x1 = dist.take %x at 1 : (tensor<2x4x8xf32>) -> tensor<4x8xf32>
  %y1, %k1 = func.call @forward(%x1, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %g0 = func.call @backward(%y0, %zero, %k0) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %g1 = func.call @backward(%y1, %g0, %k1) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %new = exec.launch @sgd ins(%w, %g1 : tensor<8x8xf32>, tensor<8x8xf32>) {exec.gradients = array<i64: 1>} -> tensor<8x8xf32>
  train.set @w, %new : tensor<8x8xf32>
  return
}

// An argument that a caller still needs is not written over.

//--- keep.mlir
// NOALIAS: func.func private @add({{.*}} {exec.inplace_aliases = array<i64: -1>}
// KEEP: exec.program private @add ins(%{{.*}}: memref<8x8xf32>, %{{.*}}: memref<4x8xf32>) outs(%{{.*}}: memref<8x8xf32>)
// KEEP: exec.copy
func.func private @add(%acc: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %0 = train.contract "n o, n i -> o i" %x, %x init %acc : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func @step(%x: tensor<4x8xf32> {train.input = "x"}, %a: tensor<8x8xf32> {train.input = "a"}) -> (tensor<8x8xf32> {train.output = "y"}) {
  %0 = func.call @add(%a, %x) : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Variables that callees read are read by the callers, through all levels and out of loops.

//--- given.mlir
// A variable, what is given twice, and what a view reads afterwards are not written over.
train.variable @w : tensor<8x8xf32> init <"normal", 0.1 : f64>
func.func private @zeros() -> tensor<8x8xf32> attributes {exec.kernel}
func.func private @flat(%x: tensor<64xf32>) -> tensor<64xf32> attributes {exec.kernel}
// GIVEN: func.func private @variable({{.*}} {exec.inplace_aliases = array<i64: -1>}
func.func private @variable(%acc: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %0 = train.contract "n o, n i -> o i" %x, %x init %acc : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// GIVEN: func.func private @twice({{.*}} {exec.inplace_aliases = array<i64: -1>}
func.func private @twice(%acc: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.contract "n o, n i -> o i" %x, %x init %acc : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// GIVEN: func.func private @seen({{.*}} {exec.inplace_aliases = array<i64: -1>}
func.func private @seen(%acc: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %0 = train.contract "n o, n i -> o i" %x, %x init %acc : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func @step(%x: tensor<4x8xf32> {train.input = "x"}) -> (tensor<8x8xf32> {train.output = "a"}, tensor<8x8xf32> {train.output = "b"}, tensor<8x8xf32> {train.output = "c"}, tensor<64xf32> {train.output = "d"}) {
  %w = train.get @w : tensor<8x8xf32>
  %0 = func.call @variable(%w, %x) : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %z = exec.launch @zeros ins() -> tensor<8x8xf32>
  %1 = func.call @twice(%z, %z) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = exec.launch @zeros ins() -> tensor<8x8xf32>
  %r = train.reshape %y : (tensor<8x8xf32>) -> tensor<64xf32>
  %2 = func.call @seen(%y, %x) : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %3 = exec.launch @flat ins(%r : tensor<64xf32>) -> tensor<64xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<64xf32>
}

//--- variables.mlir
train.variable @w : tensor<8xf32> init <"normal", 0.1 : f64>
func.func private @k(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel}
// GET: func.func private @inner(%[[X:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<8xf32>)
// GET-NEXT: exec.launch @k ins(%[[X]], %[[W]] :
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = train.get @w : tensor<8xf32>
  %0 = exec.launch @k ins(%x, %w : tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// GET: func.func private @outer(%[[X:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<8xf32>)
// GET-NEXT: call @inner(%[[X]], %[[W]])
func.func private @outer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// GET: func.func @step
// GET: %[[W:.*]] = train.get @w
// GET: exec.loop
// GET-NEXT: call @outer(%{{.*}}, %[[W]])
// GET: call @outer(%{{.*}}, %[[W]])
func.func private @body(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @outer(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @step(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %0 = train.repeat @body x 3 carry(%x) each() shared() : (tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @outer(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

//--- recursion.mlir
// RECURSION: error: calls itself; memory is assigned for calls that end
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @step(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

//--- kernel.mlir
// KERNEL: calls @k; a private function that is no kernel and has a body works
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel}
func.func @step(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %0 = func.call @k(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

//--- set.mlir
// SET: is inside a called function; variables are written by @step itself
train.variable @w : tensor<8xf32> init <"normal", 0.1 : f64>
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  train.set @w, %x : tensor<8xf32>
  return %x : tensor<8xf32>
}
func.func @step(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
