// RUN: meshwright-opt %s --exec-decompose-kernels --exec-schedule-kernels --exec-offload=parameters=true --exec-assign-offsets --exec-verify -split-input-file | FileCheck %s

// A layer's parameters arrive one layer ahead, upwards and downwards, and its gradient leaves. The sum of all squares reads the host's
// memory, the update goes through both. What is no layer's stays on the device, and so do a gradient that no layer makes and states.
// CHECK: module attributes {exec.arena_bytes = {{[0-9]+}} : i64, exec.host_bytes = 640 : i64, exec.host_memory = {gradient = 320 : i64, parameter = 320 : i64}
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
train.variable @e : tensor<16xf32> init <"normal", 0.02>
train.variable @w.momentum : tensor<5x16xf32> stacked state "momentum" of @w
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @squares(%x: tensor<5x16xf32>) -> tensor<f32> attributes {exec.kernel} {
  %0 = train.square_sum %x : (tensor<5x16xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %n = exec.buffer "n" output output "n" : memref<f32>
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %e = exec.buffer "e" parameter variable @e : memref<16xf32>
  %m = exec.buffer "m" optimizer variable @w.momentum : memref<5x16xf32>
  %g = exec.buffer "g" gradient : memref<5x16xf32>
  %ge = exec.buffer "ge" gradient : memref<16xf32>
  exec.launch @add ins(%x, %e : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  exec.loop %i = 5 attributes {train.role = #train.role<forward>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%y, %wi : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  }
  exec.loop %i = 5 reverse attributes {train.role = #train.role<backward>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%x, %wi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  exec.launch @add ins(%y, %e : memref<16xf32>, memref<16xf32>) outs(%ge : memref<16xf32>)
  exec.launch @squares ins(%g : memref<5x16xf32>) outs(%n : memref<f32>)
  exec.loop %i = 5 attributes {train.role = #train.role<update>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %mi = exec.slot %m[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%mi, %gi : memref<16xf32>, memref<16xf32>) outs(%mi : memref<16xf32>)
    exec.launch @add ins(%wi, %mi : memref<16xf32>, memref<16xf32>) outs(%wi : memref<16xf32>)
    exec.launch @add ins(%gi, %gi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  exec.launch @add ins(%ge, %e : memref<16xf32>, memref<16xf32>) outs(%e : memref<16xf32>)
}
// CHECK-LABEL: exec.program @step
