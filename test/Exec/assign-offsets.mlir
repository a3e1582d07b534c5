// RUN: meshwright-opt %s --exec-assign-offsets -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --exec-assign-offsets
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<256xf32>
  %a = exec.buffer "a" temporary : memref<256xf32>
  %b = exec.buffer "b" temporary : memref<256xf32>
  %c = exec.buffer "c" temporary : memref<256xf32>
  %y = exec.buffer "y" output output "y" : memref<256xf32>
  exec.copy %x to %a : memref<256xf32> to memref<256xf32>
  exec.copy %a to %b : memref<256xf32> to memref<256xf32>
  exec.copy %b to %c : memref<256xf32> to memref<256xf32>
  exec.copy %c to %y : memref<256xf32> to memref<256xf32>
}
// END EXAMPLE

// When c is written, nobody needs a any more: they share memory.
// CHECK: module attributes {exec.arena_bytes = 4096 : i64, exec.live_bytes = 4096 : i64, exec.memory = {input = 1024 : i64, output = 1024 : i64, temporary = 2048 : i64}}
// CHECK: exec.buffer "x" input input "x" offset 0
// CHECK: exec.buffer "a" temporary offset [[A:[0-9]+]]
// CHECK: exec.buffer "b" temporary offset
// CHECK: exec.buffer "c" temporary offset [[A]]
// CHECK: exec.buffer "y" output output "y" offset 1024

// -----

// Variables come first, in the module's order, and are one place in all programs;
// programs share the rest. Places are multiples of 64 bytes. What nobody uses goes.
// CHECK: module attributes {exec.arena_bytes = 192 : i64, exec.live_bytes = 192 : i64
train.variable @v : tensor<3xf32> init <"normal", 0.02>
train.variable @w : tensor<4xf32> init <"normal", 0.02>
// CHECK: exec.program @eval
exec.program @eval {
  // CHECK: exec.buffer "w" parameter variable @w offset 64
  %w = exec.buffer "w" parameter variable @w : memref<4xf32>
  // CHECK: exec.buffer "t" temporary offset 128
  %t = exec.buffer "t" temporary : memref<4xf32>
  // CHECK-NOT: unused
  %unused = exec.buffer "unused" temporary : memref<400xf32>
  exec.copy %w to %t : memref<4xf32> to memref<4xf32>
}
// CHECK: exec.program @step
exec.program @step {
  // CHECK: exec.buffer "v" parameter variable @v offset 0
  %v = exec.buffer "v" parameter variable @v : memref<3xf32>
  // CHECK: exec.buffer "w" parameter variable @w offset 64
  %w = exec.buffer "w" parameter variable @w : memref<4xf32>
  // CHECK: exec.buffer "t" temporary offset 128
  %t = exec.buffer "t" temporary : memref<3xf32>
  exec.copy %v to %t : memref<3xf32> to memref<3xf32>
}

// -----

// What a loop reads before it writes lives through the whole loop; what it writes
// first does not outlive an iteration.
// CHECK: exec.arena_bytes = 192 : i64
exec.program @step {
  // CHECK: exec.buffer "x" input input "x" offset 0
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  // CHECK: exec.buffer "carried" temporary offset [[CARRIED:[0-9]+]]
  %carried = exec.buffer "carried" temporary : memref<16xf32>
  // CHECK: exec.buffer "inner" temporary offset [[INNER:[0-9]+]]
  %inner = exec.buffer "inner" temporary : memref<16xf32>
  // CHECK: exec.buffer "after" temporary offset [[INNER]]
  %after = exec.buffer "after" temporary : memref<16xf32>
  exec.copy %x to %carried : memref<16xf32> to memref<16xf32>
  exec.loop %i = 3 {
    exec.copy %carried to %inner : memref<16xf32> to memref<16xf32>
    exec.copy %inner to %carried : memref<16xf32> to memref<16xf32>
  }
  exec.copy %carried to %after : memref<16xf32> to memref<16xf32>
}

// -----

train.variable @w : tensor<4xf32> init <"normal", 0.02>
exec.program @eval {
  %w = exec.buffer "w" parameter variable @w : memref<4xf32>
}
exec.program @step {
  // expected-error @+1 {{'w' is 'memref<2x2xf32>' here and 'memref<4xf32>' in another program}}
  %w = exec.buffer "w" parameter variable @w : memref<2x2xf32>
}
