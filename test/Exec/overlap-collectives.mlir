// RUN: meshwright-opt %s --exec-overlap-collectives=min-bytes=32 -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --exec-overlap-collectives=min-bytes=32
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  %mine = exec.buffer "mine" gradient : memref<8xf32>
  %other = exec.buffer "other" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<8xf32>
  exec.copy %x to %g : memref<16xf32> to memref<16xf32>
  exec.reduce_scatter sum %g to %mine over ["data"] : memref<16xf32> to memref<8xf32>
  exec.copy %x to %other : memref<16xf32> to memref<16xf32>
  exec.copy %mine to %y : memref<8xf32> to memref<8xf32>
}
// END EXAMPLE

// CHECK: exec.reduce_scatter sum %1 to %2 over ["data"] {exec.async_token = 0 : i64}
// CHECK-NEXT: exec.copy %0 to %3
// CHECK-NEXT: exec.wait 0
// CHECK-NEXT: exec.copy %2 to %4

// -----

// What is read may be read meanwhile, but not written. Programs end with nothing started.
// CHECK-LABEL: exec.program @reads
exec.program @reads {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  exec.copy %x to %g : memref<16xf32> to memref<16xf32>
  // CHECK: exec.all_reduce {{.*}} {exec.async_token = 0 : i64}
  exec.all_reduce sum %g to %y over ["data"] : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.copy %1 to %2
  exec.copy %g to %a : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.wait 0
  // CHECK-NEXT: exec.copy %2 to %1
  exec.copy %a to %g : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.all_reduce {{.*}} {exec.async_token = 1 : i64}
  exec.all_reduce sum %g to %z over ["data"] : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.copy %1 to %2
  exec.copy %g to %a : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.wait 1
  // CHECK-NEXT: }
}

// -----

// Nothing to compute meanwhile, too small, a message: unchanged. Communication keeps its
// order anyway and waits for none.
// CHECK-LABEL: exec.program @unchanged
// CHECK-NOT: exec.async_token
// CHECK-NOT: exec.wait
exec.program @unchanged {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %small = exec.buffer "small" input input "small" : memref<4xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  %c = exec.buffer "c" temporary : memref<4xf32>
  %s = exec.buffer "s" workspace : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  exec.all_reduce sum %x to %a over ["data"] : memref<16xf32> to memref<16xf32>
  exec.all_to_all %a to %b over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %b to %y : memref<16xf32> to memref<16xf32>
  exec.all_reduce sum %small to %c over ["data"] : memref<4xf32> to memref<4xf32>
  exec.send %x to 1 channel 0 over ["data"] buffer %s : memref<16xf32>, memref<16xf32>
  exec.copy %b to %y : memref<16xf32> to memref<16xf32>
  exec.finish_sends %s : memref<16xf32>
}

// -----

// One slot is reduced while the next is written; the wait may stand in the next iteration
// or behind the loop.
// CHECK-LABEL: exec.program @slots
exec.program @slots {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %all = exec.buffer "all" gradient : memref<4x16xf32>
  %y = exec.buffer "y" output output "y" : memref<4x16xf32>
  // CHECK: exec.loop %[[I:.*]] = 4 {
  exec.loop %i = 4 {
    %g = exec.slot %all[%i] : memref<4x16xf32> -> memref<16xf32>
    // CHECK: exec.copy
    exec.copy %x to %g : memref<16xf32> to memref<16xf32>
    // CHECK-NEXT: exec.all_reduce {{.*}} {exec.async_token = 0 : i64}
    exec.all_reduce sum %g to %g over ["data"] : memref<16xf32> to memref<16xf32>
    // CHECK-NEXT: }
  }
  // CHECK-NEXT: exec.wait 0
  // CHECK-NEXT: exec.copy
  exec.copy %all to %y : memref<4x16xf32> to memref<4x16xf32>
}

// -----

// A loop reads how often it runs, before its first iteration.
// CHECK-LABEL: exec.program @times
exec.program @times {
  %n = exec.buffer "n" input input "n" : memref<8xi32>
  %all = exec.buffer "all" temporary : memref<8xi32>
  %times = exec.view %all : memref<8xi32> -> memref<i32>
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  // CHECK: exec.all_reduce max {{.*}} {exec.async_token = 0 : i64}
  exec.all_reduce max %n to %all over ["data"] : memref<8xi32> to memref<8xi32>
  // CHECK-NEXT: exec.copy
  exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.wait 0
  // CHECK-NEXT: exec.loop
  exec.loop %i = 3 times(%times : memref<i32>) {
    exec.copy %x to %z : memref<16xf32> to memref<16xf32>
  }
}

// -----

// It may not run: what it needs is waited for before it, and what it computes is nothing to run beside.
// CHECK-LABEL: exec.program @seldom
exec.program @seldom {
  %n = exec.buffer "n" input input "n" : memref<i32>
  %all = exec.buffer "all" temporary : memref<16xf32>
  %other = exec.buffer "other" temporary : memref<16xf32>
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  // CHECK: exec.all_reduce sum {{.*}} {exec.async_token = 0 : i64}
  exec.all_reduce sum %x to %all over ["data"] : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.copy
  exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  // CHECK-NEXT: exec.all_reduce sum
  // CHECK-NOT: exec.async_token
  exec.all_reduce sum %y to %other over ["data"] : memref<16xf32> to memref<16xf32>
  // CHECK: exec.wait 0
  // CHECK-NEXT: exec.loop
  exec.loop %i = 3 times(%n : memref<i32>) from 1 {
    // CHECK-NEXT: exec.copy
    exec.copy %all to %z : memref<16xf32> to memref<16xf32>
  }
  // CHECK-NEXT: }
  // CHECK-NEXT: exec.copy
  // CHECK-NEXT: exec.copy
  exec.copy %other to %y : memref<16xf32> to memref<16xf32>
  exec.copy %all to %z : memref<16xf32> to memref<16xf32>
}
