// RUN: meshwright-opt %s --annotate-memory -split-input-file | FileCheck %s

// A buffer lives from the op that writes it to the last that reads it: two temporaries at once at most.
// In the profile only ops that touch memory count.
// CHECK: exec.program @step attributes {exec.peak = array<i64: 1, 4096>, exec.profile = [
// CHECK-SAME: {from = 0 : i64, input = 1024 : i64, output = 1024 : i64, temporary = 1024 : i64},
// CHECK-SAME: {from = 1 : i64, input = 1024 : i64, output = 1024 : i64, temporary = 2048 : i64},
// CHECK-SAME: {from = 3 : i64, input = 1024 : i64, output = 1024 : i64, temporary = 1024 : i64}]}
exec.program @step {
  // CHECK: exec.buffer "x" input input "x" {exec.live = array<i64: 6, 6>, exec.read_first_by = 6 : i64}
  %x = exec.buffer "x" input input "x" : memref<256xf32>
  // CHECK: exec.buffer "a" temporary {exec.live = array<i64: 6, 7>} :
  %a = exec.buffer "a" temporary : memref<256xf32>
  // CHECK: exec.buffer "b" temporary {exec.live = array<i64: 7, 8>} :
  %b = exec.buffer "b" temporary : memref<256xf32>
  // CHECK: exec.buffer "c" temporary {exec.live = array<i64: 8, 9>} :
  %c = exec.buffer "c" temporary : memref<256xf32>
  %y = exec.buffer "y" output output "y" : memref<256xf32>
  // CHECK: exec.buffer "unused" temporary : memref
  %unused = exec.buffer "unused" temporary : memref<256xf32>
  // CHECK: exec.copy {{.*}} {exec.number = 6 : i64}
  exec.copy %x to %a : memref<256xf32> to memref<256xf32>
  exec.copy %a to %b : memref<256xf32> to memref<256xf32>
  exec.copy %b to %c : memref<256xf32> to memref<256xf32>
  exec.copy %c to %y : memref<256xf32> to memref<256xf32>
}

// -----

// What an iteration reads and the one before wrote lives through the loop, 5 to 10; what it writes first, within an
// iteration; what a started collective uses, until it is waited for, here in the next iteration.
// CHECK: exec.program @step
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  // CHECK: exec.buffer "carried" temporary {exec.live = array<i64: 4, 10>} :
  %carried = exec.buffer "carried" temporary : memref<16xf32>
  // CHECK: exec.buffer "inside" temporary {exec.live = array<i64: 6, 7>} :
  %inside = exec.buffer "inside" temporary : memref<16xf32>
  // CHECK: exec.buffer "sum" temporary {exec.live = array<i64: 5, 10>} :
  %sum = exec.buffer "sum" temporary : memref<16xf32>
  // CHECK: exec.copy {{.*}} {exec.number = 4 : i64}
  exec.copy %x to %carried : memref<16xf32> to memref<16xf32>
  // CHECK: exec.loop {{.*}} attributes {exec.number = 5 : i64}
  exec.loop %i = 9 {
    exec.copy %carried to %inside : memref<16xf32> to memref<16xf32>
    exec.copy %inside to %carried : memref<16xf32> to memref<16xf32>
    exec.wait 0
    // CHECK: exec.all_reduce {{.*}} {exec.async_token = 0 : i64, exec.number = 9 : i64}
    exec.all_reduce sum %x to %sum over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
  }
}

// -----

// The ops of a loop hold what they hold in the first iteration or in the last one, whichever is more. Here it is the
// first: 512 bytes of "acts" go, 256 of "grads" come.
// CHECK: exec.program @step attributes {exec.peak = array<i64: 3, 896>, exec.profile = [
// CHECK-SAME: {activation = 384 : i64, from = 0 : i64, input = 192 : i64, output = 64 : i64},
// CHECK-SAME: {activation = 512 : i64, from = 1 : i64, input = 192 : i64, output = 64 : i64},
// CHECK-SAME: {activation = 512 : i64, from = 3 : i64, input = 192 : i64, output = 64 : i64, temporary = 128 : i64},
// CHECK-SAME: {activation = 384 : i64, from = 4 : i64, gradient = 64 : i64, input = 192 : i64, output = 64 : i64},
// CHECK-SAME: {from = 5 : i64, gradient = 256 : i64, input = 192 : i64, output = 64 : i64}]}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<32xf32>
  %z = exec.buffer "z" input input "z" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %acts = exec.buffer "acts" activation : memref<4x32xf32>
  %grads = exec.buffer "grads" gradient : memref<4x16xf32>
  %b = exec.buffer "b" temporary : memref<32xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x32xf32> -> memref<32xf32>
    exec.copy %x to %a : memref<32xf32> to memref<32xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x32xf32> -> memref<32xf32>
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %a to %b : memref<32xf32> to memref<32xf32>
    exec.copy %z to %g : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// And here the last.
// CHECK: exec.program @step attributes {exec.peak = array<i64: 3, 832>, exec.profile = [
// CHECK-SAME: {activation = 192 : i64, from = 0 : i64, input = 192 : i64, output = 128 : i64},
// CHECK-SAME: {activation = 256 : i64, from = 1 : i64, input = 192 : i64, output = 128 : i64},
// CHECK-SAME: {activation = 64 : i64, from = 2 : i64, gradient = 384 : i64, input = 192 : i64, output = 128 : i64},
// CHECK-SAME: {activation = 64 : i64, from = 3 : i64, gradient = 384 : i64, input = 192 : i64, output = 128 : i64, temporary = 64 : i64},
// CHECK-SAME: {from = 4 : i64, gradient = 512 : i64, input = 192 : i64, output = 128 : i64}]}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %z = exec.buffer "z" input input "z" : memref<32xf32>
  %y = exec.buffer "y" output output "y" : memref<32xf32>
  %acts = exec.buffer "acts" activation : memref<4x16xf32>
  %grads = exec.buffer "grads" gradient : memref<4x32xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  exec.loop %i = 4 {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  }
  exec.loop %i = 4 reverse {
    %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
    %g = exec.slot %grads[%i] : memref<4x32xf32> -> memref<32xf32>
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
    exec.copy %z to %g : memref<32xf32> to memref<32xf32>
  }
  exec.loop %i = 4 {
    %g = exec.slot %grads[%i] : memref<4x32xf32> -> memref<32xf32>
    exec.copy %g to %y : memref<32xf32> to memref<32xf32>
  }
}
