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

exec.program @eval {
  %x = exec.buffer "x" input input "x" : memref<4xf32>
}
exec.program @step {
  // expected-error @+1 {{'x' is 'memref<2x2xf32>' here and 'memref<4xf32>' in another program}}
  %x = exec.buffer "x" input input "x" : memref<2x2xf32>
}

// -----

// A loop that empties one stack and fills another needs one slot for both, and one more where the same op reads the
// one and writes the other: in the first iteration all of "acts" is live and one slot of "grads".
// CHECK: module attributes {exec.arena_bytes = 448 : i64, exec.live_bytes = 448 : i64, exec.memory = {activation = 256 : i64, gradient = 64 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "acts" activation offset 128
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  // CHECK: exec.buffer "grads" gradient offset 192
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Where a later op of the body writes, an iteration fills the slot that it has read. In each iteration of an outer
// loop, too.
// CHECK: module attributes {exec.arena_bytes = 448 : i64, exec.live_bytes = 448 : i64, exec.memory = {activation = 256 : i64, input = 64 : i64, output = 64 : i64, temporary = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "acts" activation offset [[ACTS:[0-9]+]]
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  // CHECK: exec.buffer "grads" gradient offset [[ACTS]]
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  exec.loop %o = 3 {
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 reverse {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %a to %b : memref<16xf32> to memref<16xf32>
      exec.copy %b to %g : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// Upwards the other way round: what is filled lies below the slots that are emptied. These may be part of a larger
// buffer, of which the loop needs nothing else.
// CHECK: module attributes {exec.arena_bytes = 512 : i64, exec.live_bytes = 512 : i64, exec.memory = {activation = 384 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "acts" activation offset 128
  %acts = exec.buffer "acts" activation : memref<6x16xf32>
  // CHECK: exec.buffer "grads" gradient offset 128
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %middle = exec.view %acts from 16 : memref<6x16xf32> -> memref<4x16xf32>
  exec.loop %i = 6 {
    %a = exec.slot %acts[%i] : memref<6x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %a = exec.slot %middle[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// What an iteration needs before it fills its slot lies in the slot that is filled last, the lowest here: "a" and not
// "b", from which the slot is filled.
// CHECK: module attributes {exec.arena_bytes = 448 : i64, exec.live_bytes = 448 : i64, exec.memory = {gradient = 192 : i64, input = 64 : i64, output = 64 : i64, temporary = 128 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "grads" gradient offset [[GRADS:[0-9]+]]
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  // CHECK: exec.buffer "a" temporary offset [[GRADS]]
  %a = exec.buffer "a" temporary : memref<16xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  exec.loop %i = 4 reverse {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
    exec.copy %b to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Behind the op that reads a slot last there is room in the slot that is emptied first.
// CHECK: module attributes {exec.arena_bytes = 448 : i64, exec.live_bytes = 448 : i64, exec.memory = {activation = 256 : i64, input = 64 : i64, output = 64 : i64, temporary = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "acts" activation offset 128
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  // CHECK: exec.buffer "b" temporary offset 320
  %b = exec.buffer "b" temporary : memref<16xf32>
  exec.loop %i = 4 {
    %s = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %s : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %s = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %s to %a : memref<16xf32> to memref<16xf32>
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
    exec.copy %b to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// What follows shares nothing. Slots of a shifted number: no iteration has its own.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %back = exec.shift %i mirrored by 0
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%back] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// What runs beside other ops.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %g to %g over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    exec.wait 0
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Where data says how many iterations run, what the others would have read is there to the end.
// CHECK: module attributes {exec.arena_bytes = 704 : i64, exec.live_bytes = 704 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 128 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %n = exec.buffer "n" input input "n" : memref<i32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 times(%n : memref<i32>) {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// A slot that an iteration reads before it writes it: something was there before.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Another slot than the iteration's own, by a view, of the stack that is emptied.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %last = exec.view %acts from 48 : memref<4x16xf32> -> memref<16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    exec.copy %last to %y : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// All of the stack that is filled.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %window = exec.window %grads over ["data"] : memref<4x16xf32> -> memref<16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    exec.copy %x to %window : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Slots of an outer loop, whose iterations fill one each: the inner loop fills the same slot four times.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %o = 4 {
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    %g = exec.slot %grads[%o] : memref<4x16xf32> -> memref<16xf32>
    exec.loop %i = 4 reverse {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    }
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Slots of an inner loop: each iteration of the outer one reads all of them.
// CHECK: module attributes {exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 256 : i64, input = 64 : i64, output = 64 : i64}}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %o = 4 reverse {
    %g = exec.slot %grads[%o] : memref<4x16xf32> -> memref<16xf32>
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    }
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Slots that are no multiples of 64 bytes: "a", which is rounded up, ends where slots of "grads" begin. That two of
// these, 80 bytes, are live with it counts as 64, so that live bytes are no more than the arena has.
// CHECK: module attributes {exec.arena_bytes = 256 : i64, exec.live_bytes = 256 : i64
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<10xf32>
  %y = exec.buffer "y" output output "y" : memref<10xf32>
  // CHECK: exec.buffer "grads" gradient offset [[GRADS:[0-9]+]]
  %grads = exec.buffer "grads" gradient : memref<3x10xf32>
  // CHECK: exec.buffer "a" temporary offset [[GRADS]]
  %a = exec.buffer "a" temporary : memref<10xf32>
  exec.loop %i = 3 reverse {
    %g = exec.slot %grads[%i] : memref<3x10xf32> -> memref<10xf32>
    exec.copy %x to %a : memref<10xf32> to memref<10xf32>
    exec.copy %a to %y : memref<10xf32> to memref<10xf32>
    exec.copy %x to %g : memref<10xf32> to memref<10xf32>
  }
  exec.loop %i = 3 {
    %g = exec.slot %grads[%i] : memref<3x10xf32> -> memref<10xf32>
    exec.copy %g to %y : memref<10xf32> to memref<10xf32>
  }
}

// -----

// The outer loop may be in its last iteration and an inner one in its first: three slots of f, all of e.
// CHECK: exec.arena_bytes = 640 : i64, exec.live_bytes = 640 : i64, exec.memory = {activation = 256 : i64, gradient = 192 : i64, input = 64 : i64, output = 64 : i64, temporary = 64 : i64}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %f = exec.buffer "f" gradient : memref<4x16xf32>
  %e = exec.buffer "e" activation : memref<4x16xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  exec.loop %o = 4 {
    exec.loop %i = 4 {
      %a = exec.slot %e[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %a = exec.slot %e[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %a to %b : memref<16xf32> to memref<16xf32>
      exec.copy %b to %y : memref<16xf32> to memref<16xf32>
    }
    %g = exec.slot %f[%o] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %f[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}
