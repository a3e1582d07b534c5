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
