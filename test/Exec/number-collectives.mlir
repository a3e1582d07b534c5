// RUN: meshwright-opt %s --exec-number-collectives -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --exec-number-collectives --exec-verify -split-input-file -o /dev/null

// BEGIN EXAMPLE --exec-number-collectives
// In the order of the program, in loops too; a group along the same axes is there once.
module attributes {exec.arena_bytes = 128 : i64} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    exec.loop %i = 3 {
      exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
    }
    exec.all_reduce max %y to %y over ["data", "tensor"] : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %y to %y over ["data"] : memref<16xf32> to memref<16xf32>
  }
}
// END EXAMPLE
// CHECK: module attributes {exec.arena_bytes = 128 : i64, exec.groups = {{\[}}["data"], ["data", "tensor"]]}
// CHECK: exec.all_reduce sum {{.*}} over ["data"] {exec.collective = 0 : i64}
// CHECK: exec.all_reduce max {{.*}} over ["data", "tensor"] {exec.collective = 1 : i64}
// CHECK: exec.all_reduce sum {{.*}} over ["data"] {exec.collective = 2 : i64}

// -----

// Over all programs. Messages are in groups of their own, by channel, and a group is there too
// where a rank only counts its place in it.
// CHECK: module attributes {exec.groups = {{\[}}["pipe", 2], ["data"]]}
module {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, exec.arena_bytes = 64 : i64} {
    exec.program @step {
      %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
      // CHECK: exec.recv {{.*}} {exec.collective = 0 : i64}
      exec.recv from 1 channel 1 over ["pipe"] to %y : memref<16xf32>
    }
  }
  module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, exec.arena_bytes = 64 : i64} {
    exec.program @step {
      %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
      // CHECK: exec.recv {{.*}} {exec.collective = 1 : i64}
      exec.recv from 0 channel 1 over ["pipe"] to %y : memref<16xf32>
      %half = exec.window %y over ["data"] : memref<16xf32> -> memref<8xf32>
    }
  }
}
