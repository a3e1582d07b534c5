// RUN: meshwright-opt %s --exec-decompose-kernels --exec-offload=parameters=host --exec-assign-offsets --exec-number-collectives --exec-verify -split-input-file | FileCheck %s

// A layer's parameters arrive one layer ahead, upwards and downwards, and its gradient leaves. The sum of all squares reads the host's
// memory, the update goes through both. What is no layer's stays on the device, and so do a gradient that no layer makes and states.
// CHECK: module attributes {exec.arena_bytes = {{[0-9]+}} : i64, exec.host_bytes = 640 : i64, exec.host_memory = {gradient = 320 : i64, parameter = 320 : i64}
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
train.variable @e : tensor<16xf32> init <"normal", 0.02>
train.variable @w.momentum : tensor<5x16xf32> stacked state "momentum" of @w
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @squares(%x: tensor<5x16xf32>) -> tensor<f32> attributes {exec.kernel, exec.template = ["partials", "scalars"], exec.iterations = array<i64: 1, 1>, exec.chunks = array<i64: 1, 1>, exec.inplace = [], exec.workspace = 64 : i64} {
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
  %sums = exec.buffer "sums" workspace : memref<64xi8>
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
  exec.launch @squares ins(%g : memref<5x16xf32>) outs(%n : memref<f32>) workspace(%sums : memref<64xi8>)
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
// CHECK-DAG: %[[W:.*]] = exec.buffer "w" parameter variable @w {{.*}} : memref<5x16xf32, "host">
// CHECK-DAG: %[[E:.*]] = exec.buffer "e" parameter variable @e offset {{[0-9]+}} : memref<16xf32>
// CHECK-DAG: exec.buffer "m" optimizer variable @w.momentum offset {{[0-9]+}} : memref<5x16xf32>
// CHECK-DAG: %[[G:.*]] = exec.buffer "g" gradient offset {{[0-9]+}} : memref<5x16xf32, "host">
// CHECK-DAG: exec.buffer "ge" gradient offset {{[0-9]+}} : memref<16xf32>
// CHECK-DAG: %[[UP:.*]] = exec.buffer "offload.0" parameter {{.*}} : memref<2x16xf32>
// CHECK-DAG: %[[DOWN:.*]] = exec.buffer "offload.1" parameter {{.*}} : memref<2x16xf32>
// CHECK-DAG: exec.buffer "offload.2" parameter {{.*}} : memref<3x16xf32>
// CHECK-DAG: %[[MADE:.*]] = exec.buffer "offload.4" gradient {{.*}} : memref<2x16xf32>
// CHECK-DAG: %[[READ:.*]] = exec.buffer "offload.5" gradient {{.*}} : memref<2x16xf32>
// CHECK: %[[FIRST:.*]] = exec.view %[[W]] : memref<5x16xf32, "host"> -> memref<16xf32, "host">
// CHECK: %[[PLACE:.*]] = exec.view %[[UP]]
// CHECK: exec.copy %[[FIRST]] to %[[PLACE]] {exec.async_token = 0 : i64}
// CHECK: exec.loop %[[I:.*]] = 5 attributes {train.role = #train.role<forward>} {
// CHECK-NEXT: exec.wait 0
// CHECK-NEXT: exec.when %[[I]] from 0 to 4 {
// CHECK: %[[NEXT:.*]] = exec.slot %[[W]]
// CHECK: %[[OTHER:.*]] = exec.slot %[[UP]]
// CHECK: exec.copy %[[NEXT]] to %[[OTHER]] {exec.async_token = 0 : i64}
// CHECK: }
// CHECK: %[[MINE:.*]] = exec.slot %[[UP]]
// CHECK: exec.launch @add ins(%{{.*}}, %[[MINE]] :
// CHECK: %[[LAST:.*]] = exec.view %[[W]] from 64
// CHECK: exec.copy %[[LAST]] to %{{.*}} {exec.async_token = 1 : i64}
// CHECK: exec.loop %[[J:.*]] = 5 reverse attributes {train.role = #train.role<backward>} {
// CHECK-NEXT: exec.wait 1
// CHECK-NEXT: exec.when %[[J]] from 1 to 5 {
// CHECK: exec.slot %[[DOWN]]
// CHECK: }
// CHECK: %[[MADEHERE:.*]] = exec.slot %[[MADE]]
// CHECK: exec.launch @add {{.*}} outs(%[[MADEHERE]] :
// CHECK: exec.wait 4
// CHECK: %[[LEFT:.*]] = exec.slot %[[G]][%[[J]]]
// CHECK: exec.copy %[[MADEHERE]] to %[[LEFT]] {exec.async_token = 4 : i64}
// All gradients have left before their squares are added up.
// CHECK: exec.wait 4
// CHECK: exec.launch @squares ins(%[[G]] : memref<5x16xf32, "host">)
// CHECK: exec.loop %[[K:.*]] = 5 attributes {train.role = #train.role<update>} {
// What is left of gradients behind an update stays on the device; parameters go back.
// CHECK: exec.launch @add ins(%[[MOMENTUM:[^ ,]*]], {{.*}} outs(%[[MOMENTUM]] :
// CHECK: exec.launch @add ins(%[[NEW:[^ ,]*]], {{.*}} outs(%[[NEW]] :
// CHECK: exec.wait 3
// CHECK: %[[BACK:.*]] = exec.slot %[[W]][%[[K]]]
// CHECK: exec.copy %[[NEW]] to %[[BACK]] {exec.async_token = 3 : i64} : memref<16xf32> to memref<16xf32, "host">
// CHECK-NOT: to memref<16xf32, "host">
// CHECK: exec.wait 3

// -----

// A collective gets a copy of all layers, a kernel works where they are; both programs have the variable on the host. A loop that is not
// over layers moves nothing.
// CHECK: exec.host_memory = {parameter = 320 : i64}
dist.mesh @mesh ["data" = 2]
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
train.variable @table : tensor<5x16xf32> init <"normal", 0.02>
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: exec.program @step
exec.program @step {
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK-DAG: %[[W:.*]] = exec.buffer "w" parameter variable @w {{.*}} : memref<5x16xf32, "host">
  // CHECK-DAG: exec.buffer "table" parameter variable @table offset {{[0-9]+}} : memref<5x16xf32>
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %t = exec.buffer "table" parameter variable @table : memref<5x16xf32>
  exec.loop %i = 5 {
    %ti = exec.slot %t[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%ti, %ti : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  }
  exec.loop %i = 5 attributes {train.role = #train.role<forward>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%y, %wi : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  }
  // CHECK: exec.copy %[[W]] to %[[ALL:.*]] {exec.async_token = [[FETCH:[0-9]+]] : i64}
  // CHECK: exec.wait [[FETCH]]
  // CHECK: exec.all_reduce sum %[[ALL]] to %[[ALL]]
  // CHECK: exec.copy %[[ALL]] to %[[W]] {exec.async_token = [[STORE:[0-9]+]] : i64}
  // CHECK: exec.wait [[STORE]]
  exec.all_reduce sum %w to %w over ["data"] : memref<5x16xf32> to memref<5x16xf32>
}
// CHECK-LABEL: exec.program @eval
exec.program @eval {
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.buffer "w" parameter variable @w {{.*}} : memref<5x16xf32, "host">
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  // CHECK-NOT: exec.copy
  // CHECK: exec.launch @add ins(%[[PART:.*]], %[[PART]] : memref<16xf32, "host">, memref<16xf32, "host">)
  %first = exec.view %w : memref<5x16xf32> -> memref<16xf32>
  exec.launch @add ins(%first, %first : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
}

// -----

// What the first loop of an update leaves in the gradient's memory goes back for the second one, which leaves nothing.
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: exec.program @step
// CHECK: %[[G:.*]] = exec.buffer "g" gradient offset {{[0-9]+}} : memref<5x16xf32, "host">
// CHECK: exec.loop %[[B:.*]] = 5 reverse
// CHECK: exec.slot %[[G]][%[[B]]]
// CHECK: exec.loop %[[I:.*]] = 5 attributes {train.role = #train.role<update>}
// CHECK: exec.launch @add ins(%[[LEFT:[^ ,]*]], %{{.*}}) outs(%[[LEFT]] :
// CHECK: %[[BACK:.*]] = exec.slot %[[G]][%[[I]]]
// CHECK: exec.copy %[[LEFT]] to %[[BACK]] {{.*}} : memref<16xf32> to memref<16xf32, "host">
// CHECK: exec.loop %{{.*}} = 5 attributes {train.role = #train.role<update>}
// CHECK: exec.launch @add ins(%[[D:[^ ,]*]], %[[D]] :
// CHECK: exec.launch @add ins(%[[W:[^ ,]*]], %[[D]] : {{.*}} outs(%[[W]] :
// CHECK: exec.copy %[[W]] to %{{.*}} : memref<16xf32> to memref<16xf32, "host">
// CHECK-NOT: to memref<16xf32, "host">
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %g = exec.buffer "g" gradient : memref<5x16xf32>
  exec.loop %i = 5 reverse attributes {train.role = #train.role<backward>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%x, %wi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  exec.loop %i = 5 attributes {train.role = #train.role<update>} {
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%gi, %x : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  exec.loop %i = 5 attributes {train.role = #train.role<update>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%gi, %gi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
    exec.launch @add ins(%wi, %gi : memref<16xf32>, memref<16xf32>) outs(%wi : memref<16xf32>)
  }
}

// -----

// A kernel that writes all of a gradient before an op looks at it needs nothing of what is on the host.
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
func.func private @zero() -> tensor<5x16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [], exec.workspace = 0 : i64} {
  %0 = train.fill 0.000000e+00 : () -> tensor<5x16xf32>
  return %0 : tensor<5x16xf32>
}
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: exec.program @step
// CHECK: %[[G:.*]] = exec.buffer "g" gradient offset {{[0-9]+}} : memref<5x16xf32, "host">
// CHECK-NOT: exec.copy
// CHECK: exec.launch @zero ins() outs(%[[ALL:.*]] : memref<5x16xf32>)
// CHECK: exec.copy %[[ALL]] to %[[G]]
// CHECK: exec.observe %[[ALL]] as 7
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %g = exec.buffer "g" gradient : memref<5x16xf32>
  exec.launch @zero ins() outs(%g : memref<5x16xf32>)
  exec.observe %g as 7 result 0 : memref<5x16xf32>
  exec.loop %i = 5 reverse attributes {train.role = #train.role<backward>} {
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%x, %gi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  exec.loop %i = 5 attributes {train.role = #train.role<update>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%wi, %gi : memref<16xf32>, memref<16xf32>) outs(%wi : memref<16xf32>)
  }
}
