// RUN: meshwright-opt %s --exec-decompose-kernels --exec-offload="optimizer=ssd parameters=ssd" --exec-assign-offsets --exec-number-collectives --exec-verify -split-input-file | FileCheck %s

// States and parameters of layers are in whole blocks of the SSD's arena. The host's has what copies go through, at its end, and the gradients,
// which a kernel sums up.
// CHECK: module attributes {exec.arena_bytes = {{[0-9]+}} : i64
// CHECK-SAME: exec.host_bytes = 8392704 : i64, exec.host_memory = {gradient = 320 : i64, workspace = 8388608 : i64}
// CHECK-SAME: exec.ssd_bytes = 8192 : i64, exec.ssd_memory = {optimizer = 4096 : i64, parameter = 4096 : i64}
train.variable @w : tensor<5x16xf32> stacked init <"normal", 0.02>
train.variable @w.momentum : tensor<5x16xf32> stacked init <"constant", 0.0>
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @all(%x: tensor<5x16xf32>) -> tensor<5x16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  return %0 : tensor<5x16xf32>
}
// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[W:.*]] = exec.buffer "w" parameter variable @w offset 0 : memref<5x16xf32, "ssd">
// CHECK-DAG: %[[M:.*]] = exec.buffer "m" optimizer variable @w.momentum offset 4096 : memref<5x16xf32, "ssd">
// CHECK-DAG: %[[G:.*]] = exec.buffer "g" gradient offset 0 : memref<5x16xf32, "host">
exec.program @step {
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %m = exec.buffer "m" optimizer variable @w.momentum : memref<5x16xf32>
  %g = exec.buffer "g" gradient : memref<5x16xf32>
  %sum = exec.buffer "sum" output output "sum" : memref<5x16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.copy %{{.*}} to %{{.*}} {exec.async_token = {{[0-9]+}} : i64} : memref<16xf32, "ssd"> to memref<16xf32>
  // CHECK: exec.loop %{{.*}} = 5 reverse
  exec.loop %i = 5 reverse attributes {train.role = #train.role<backward>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    // CHECK: exec.copy %{{.*}} : memref<16xf32> to memref<16xf32, "host">
    exec.launch @add ins(%wi, %wi : memref<16xf32>, memref<16xf32>) outs(%gi : memref<16xf32>)
  }
  // Kernels work in the host's memory, of the SSD's they get a copy.
  // CHECK: exec.launch @all ins(%[[G]] : memref<5x16xf32, "host">)
  exec.launch @all ins(%g : memref<5x16xf32>) outs(%sum : memref<5x16xf32>)
  // CHECK: exec.copy %[[W]] to %[[ALL:.*]] {exec.async_token = {{[0-9]+}} : i64} : memref<5x16xf32, "ssd"> to memref<5x16xf32>
  // CHECK: exec.launch @all ins(%[[ALL]] : memref<5x16xf32>)
  exec.launch @all ins(%w : memref<5x16xf32>) outs(%sum : memref<5x16xf32>)
  // CHECK: exec.loop %{{.*}} = 5 attributes {train.role = #train.role<update>}
  exec.loop %i = 5 attributes {train.role = #train.role<update>} {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %mi = exec.slot %m[%i] : memref<5x16xf32> -> memref<16xf32>
    %gi = exec.slot %g[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%mi, %gi : memref<16xf32>, memref<16xf32>) outs(%mi : memref<16xf32>)
    // CHECK: exec.copy %{{.*}} : memref<16xf32> to memref<16xf32, "ssd">
    exec.launch @add ins(%wi, %mi : memref<16xf32>, memref<16xf32>) outs(%wi : memref<16xf32>)
  }
}
