// RUN: meshwright-opt %s --exec-decompose-kernels --exec-offload="optimizer=host activations=host" --exec-assign-offsets --exec-verify -split-input-file | FileCheck %s

// A state that is updated part by part has three places in turns, one that is updated at once is copied as a whole. The
// variables are on the host, whose arena the plan has beside the other one.
// CHECK: module attributes {exec.arena_bytes = {{[0-9]+}} : i64, exec.host_bytes = 384 : i64, exec.host_memory = {optimizer = 384 : i64}
// BEGIN EXAMPLE --exec-offload=optimizer=host
train.variable @w : tensor<5x16xf32> init <"normal", 0.02>
train.variable @w.momentum : tensor<5x16xf32> init <"constant", 0.0>
train.variable @b.momentum : tensor<16xf32> init <"constant", 0.0>
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0], [1, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
exec.program @step {
  %w = exec.buffer "w" parameter variable @w : memref<5x16xf32>
  %m = exec.buffer "m" optimizer variable @w.momentum : memref<5x16xf32>
  %b = exec.buffer "b" optimizer variable @b.momentum : memref<16xf32>
  exec.loop %i = 5 {
    %wi = exec.slot %w[%i] : memref<5x16xf32> -> memref<16xf32>
    %mi = exec.slot %m[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @add ins(%mi, %wi : memref<16xf32>, memref<16xf32>) outs(%mi : memref<16xf32>)
  }
  exec.launch @add ins(%b, %b : memref<16xf32>, memref<16xf32>) outs(%b : memref<16xf32>)
}
// END EXAMPLE

// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[M:.*]] = exec.buffer "m" optimizer variable @w.momentum offset {{.*}} : memref<5x16xf32, "host">
// CHECK-DAG: %[[B:.*]] = exec.buffer "b" optimizer variable @b.momentum offset {{.*}} : memref<16xf32, "host">
// CHECK-DAG: %[[TURNS:.*]] = exec.buffer "offload.0" optimizer offset {{.*}} : memref<3x16xf32>
// CHECK-DAG: %[[COPIED:.*]] = exec.buffer "offload.2" optimizer offset {{.*}} : memref<16xf32>
// CHECK: %[[FIRST:.*]] = exec.view %[[M]] : memref<5x16xf32, "host"> -> memref<16xf32, "host">
// CHECK: %[[PLACE:.*]] = exec.view %[[TURNS]] : memref<3x16xf32> -> memref<16xf32>
// CHECK: exec.copy %[[FIRST]] to %[[PLACE]] {exec.async_token = 0 : i64}
// CHECK: exec.loop %[[I:.*]] = 5 {
// CHECK: exec.wait 0
// CHECK: exec.when %[[I]] from 0 to 4 {
// CHECK: %[[NEXT:.*]] = exec.shift %[[I]] by 1
// CHECK: %[[FROM:.*]] = exec.slot %[[M]][%[[NEXT]]]
// CHECK: %[[OTHER:.*]] = exec.shift %[[I]] by 1 modulo 3
// CHECK: %[[TO:.*]] = exec.slot %[[TURNS]][%[[OTHER]]]
// CHECK: exec.copy %[[FROM]] to %[[TO]] {exec.async_token = 0 : i64}
// CHECK: }
// CHECK: %[[TURN:.*]] = exec.shift %[[I]] by 0 modulo 3
// CHECK: %[[MINE:.*]] = exec.slot %[[TURNS]][%[[TURN]]]
// CHECK: exec.launch @add ins(%[[MINE]], {{.*}}) outs(%[[MINE]]
// CHECK: exec.wait 1
// CHECK: %[[BACK:.*]] = exec.slot %[[M]][%[[I]]]
// CHECK: exec.copy %[[MINE]] to %[[BACK]] {exec.async_token = 1 : i64}
// CHECK: }
// The last part is on the host before the next state comes.
// CHECK: exec.wait 1
// CHECK: exec.copy %[[B]] to %[[COPIED]] {exec.async_token = 2 : i64}
// CHECK: exec.wait 2
// CHECK: exec.launch @add
// CHECK: exec.copy %[[COPIED]] to %[[B]] {exec.async_token = 3 : i64}
// CHECK: exec.wait 3

// -----

// What one loop keeps for another: copied away while the next iteration computes, and back before the one that reads.
// CHECK: exec.host_memory = {activation = 320 : i64}
func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: exec.program @step
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK-DAG: %[[KEPT:.*]] = exec.buffer "kept" activation {{.*}} : memref<5x16xf32, "host">
  %kept = exec.buffer "kept" activation : memref<5x16xf32>
  // CHECK-DAG: %[[OUT:.*]] = exec.buffer "offload.0" activation {{.*}} : memref<2x16xf32>
  // CHECK-DAG: %[[IN:.*]] = exec.buffer "offload.1" activation {{.*}} : memref<2x16xf32>
  // CHECK: exec.loop %[[I:.*]] = 5 {
  exec.loop %i = 5 {
    %k = exec.slot %kept[%i] : memref<5x16xf32> -> memref<16xf32>
    // CHECK: exec.launch @double {{.*}} outs(%[[MINE:.*]] :
    exec.launch @double ins(%x : memref<16xf32>) outs(%k : memref<16xf32>)
    // CHECK: exec.wait 0
    // CHECK: %[[SLOT:.*]] = exec.slot %[[KEPT]][%[[I]]]
    // CHECK: exec.copy %[[MINE]] to %[[SLOT]] {exec.async_token = 0 : i64}
    exec.copy %k to %y : memref<16xf32> to memref<16xf32>
  }
  // The last of the host's slots is written before it is read.
  // CHECK: exec.wait 0
  // CHECK: exec.copy {{.*}} {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
  // CHECK: exec.loop %[[J:.*]] = 5 reverse {
  exec.loop %j = 5 reverse {
    // CHECK: exec.wait 1
    // CHECK: exec.when %[[J]] from 1 to 5 {
    // CHECK: exec.copy {{.*}} {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
    // CHECK: }
    %k = exec.slot %kept[%j] : memref<5x16xf32> -> memref<16xf32>
    // CHECK: exec.launch @double ins(
    exec.launch @double ins(%k : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// As argument of calls: on the host for all of them, copied inside of the callees. What is read at once stays.
func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: exec.program private @forward
// CHECK-SAME: outs(%{{.*}}: memref<3x16xf32, "host">, %{{.*}}: memref<16xf32>)
exec.program private @forward ins(%x: memref<16xf32>) outs(%kept: memref<3x16xf32>, %last: memref<16xf32>) {
  exec.loop %i = 3 {
    %k = exec.slot %kept[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.launch @double ins(%x : memref<16xf32>) outs(%k : memref<16xf32>)
    // CHECK: exec.copy {{.*}} : memref<16xf32> to memref<16xf32, "host">
    exec.copy %k to %last : memref<16xf32> to memref<16xf32>
  }
  // CHECK: exec.wait
}
// CHECK-LABEL: exec.program private @backward
// CHECK-SAME: ins(%{{.*}}: memref<3x16xf32, "host">, %{{.*}}: memref<16xf32>)
exec.program private @backward ins(%kept: memref<3x16xf32>, %last: memref<16xf32>) outs(%y: memref<16xf32>) {
  exec.loop %i = 3 reverse {
    %k = exec.slot %kept[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.launch @double ins(%k : memref<16xf32>) outs(%y : memref<16xf32>)
  }
  exec.copy %last to %y : memref<16xf32> to memref<16xf32>
}
// CHECK-LABEL: exec.program @step
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK-DAG: exec.buffer "kept" activation {{.*}} : memref<3x16xf32, "host">
  %kept = exec.buffer "kept" activation : memref<3x16xf32>
  // CHECK-DAG: exec.buffer "last" activation {{.*}} : memref<16xf32>
  %last = exec.buffer "last" activation : memref<16xf32>
  exec.call @forward ins(%x : memref<16xf32>) outs(%kept, %last : memref<3x16xf32>, memref<16xf32>)
  exec.call @backward ins(%kept, %last : memref<3x16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
}

// -----

// What a callee leaves in its caller's stack is copied back, for another callee reads it.
func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
exec.program private @forward ins(%x: memref<16xf32>) outs(%kept: memref<4x16xf32>) {
  exec.loop %i = 4 {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @double ins(%x : memref<16xf32>) outs(%k : memref<16xf32>)
  }
}
// CHECK-LABEL: exec.program private @backward
// CHECK-SAME: inouts(%[[KEPT:.*]]: memref<4x16xf32, "host">)
// CHECK-DAG: %[[TURNS:.*]] = exec.buffer "offload.0" activation {{.*}} : memref<3x16xf32>
// CHECK: exec.loop %[[I:.*]] = 4 reverse {
// CHECK: exec.launch @double ins(%[[MINE:.*]] : memref<16xf32>) outs(%[[MINE]] : memref<16xf32>)
// CHECK: exec.wait 1
// CHECK: %[[SLOT:.*]] = exec.slot %[[KEPT]][%[[I]]]
// CHECK: exec.copy %[[MINE]] to %[[SLOT]] {exec.async_token = 1 : i64}
// CHECK: }
// CHECK: exec.wait 1
exec.program private @backward inouts(%kept: memref<4x16xf32>) {
  exec.loop %i = 4 reverse {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @double ins(%k : memref<16xf32>) outs(%k : memref<16xf32>)
  }
}
exec.program private @weight ins(%kept: memref<4x16xf32>) outs(%y: memref<16xf32>) {
  exec.loop %i = 4 {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @double ins(%k : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %kept = exec.buffer "kept" activation : memref<4x16xf32>
  exec.call @forward ins(%x : memref<16xf32>) outs(%kept : memref<4x16xf32>)
  exec.call @backward inouts(%kept : memref<4x16xf32>)
  exec.call @weight ins(%kept : memref<4x16xf32>) outs(%y : memref<16xf32>)
}

// -----

// A state of which a program writes a part is fetched: the rest stays.
// CHECK: train.variable @m
train.variable @m : tensor<2x8xf32> init <"constant", 0.0>
train.variable @n : tensor<4x16xf32> init <"constant", 0.0>
func.func private @double(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK: exec.program @step
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<8xf32>
  // CHECK-DAG: %[[M:.*]] = exec.buffer "m" optimizer variable @m offset {{.*}} : memref<2x8xf32, "host">
  %m = exec.buffer "m" optimizer variable @m : memref<2x8xf32>
  %n = exec.buffer "n" optimizer variable @n : memref<4x16xf32>
  // CHECK-DAG: exec.buffer "offload.2" optimizer offset {{.*}} : memref<3x16xf32>
  // CHECK: exec.copy %[[M]] to %{{.*}} {exec.async_token = 0 : i64}
  %second = exec.view %m from 8 : memref<2x8xf32> -> memref<8xf32>
  exec.launch @double ins(%x : memref<8xf32>) outs(%second : memref<8xf32>)
  exec.loop %i = 4 {
    %ni = exec.slot %n[%i] : memref<4x16xf32> -> memref<16xf32>
    %half = exec.view %ni from 8 : memref<16xf32> -> memref<8xf32>
    exec.launch @double ins(%x : memref<8xf32>) outs(%half : memref<8xf32>)
  }
}

// -----

// What one reader leaves for another one is copied back.
// CHECK: func.func private @doubled_in_place
func.func private @doubled_in_place(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK: exec.program @step
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK-DAG: exec.buffer "offload.1" activation {{.*}} : memref<3x16xf32>
  %kept = exec.buffer "kept" activation : memref<4x16xf32>
  exec.loop %i = 4 {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @doubled_in_place ins(%x : memref<16xf32>) outs(%k : memref<16xf32>)
  }
  exec.loop %i = 4 reverse {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @doubled_in_place ins(%k : memref<16xf32>) outs(%k : memref<16xf32>)
  }
  exec.loop %i = 4 {
    %k = exec.slot %kept[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.launch @doubled_in_place ins(%k : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// A state that is read as a whole before and behind the update of its parts, as one whose average is kept: it is copied again
// once the parts are on the host.
train.variable @m : tensor<5x16xf32> init <"constant", 0.0>
func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @all(%x: tensor<5x16xf32>) -> tensor<5x16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  return %0 : tensor<5x16xf32>
}
// CHECK: exec.program @step
exec.program @step {
  // CHECK-DAG: %[[M:.*]] = exec.buffer "m" optimizer variable @m offset {{.*}} : memref<5x16xf32, "host">
  %m = exec.buffer "m" optimizer variable @m : memref<5x16xf32>
  %y = exec.buffer "y" output output "y" : memref<5x16xf32>
  %z = exec.buffer "z" output output "z" : memref<5x16xf32>
  // CHECK: exec.copy %[[M]] to %[[BEFORE:[^ ]*]] {exec.async_token = 0 : i64}
  // CHECK: exec.wait 0
  // CHECK: exec.launch @all ins(%[[BEFORE]]
  // CHECK: exec.launch @all ins(%[[BEFORE]]
  exec.launch @all ins(%m : memref<5x16xf32>) outs(%y : memref<5x16xf32>)
  exec.launch @all ins(%m : memref<5x16xf32>) outs(%y : memref<5x16xf32>)
  // CHECK: exec.loop
  exec.loop %i = 5 {
    %mi = exec.slot %m[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @double ins(%mi : memref<16xf32>) outs(%mi : memref<16xf32>)
    // CHECK: exec.copy {{.*}} {exec.async_token = [[STORE:[0-9]+]] : i64} : memref<16xf32> to memref<16xf32, "host">
    // CHECK: }
  }
  // CHECK: exec.wait [[STORE]]
  // CHECK: exec.copy %[[M]] to %[[BEHIND:[^ ]*]] {exec.async_token = [[AGAIN:[0-9]+]] : i64}
  // CHECK: exec.wait [[AGAIN]]
  // CHECK: exec.launch @all ins(%[[BEHIND]]
  exec.launch @all ins(%m : memref<5x16xf32>) outs(%z : memref<5x16xf32>)
}

// -----

// What is written as a whole before the loop and behind it is on the host when the loop fetches its parts.
train.variable @m : tensor<5x16xf32> init <"constant", 0.0>
func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @all(%x: tensor<5x16xf32>) -> tensor<5x16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<5x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  return %0 : tensor<5x16xf32>
}
// CHECK: exec.program @step
exec.program @step {
  %m = exec.buffer "m" optimizer variable @m : memref<5x16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  // CHECK: exec.launch @all
  // CHECK: exec.copy {{.*}} : memref<5x16xf32> to memref<5x16xf32, "host">
  exec.launch @all ins(%m : memref<5x16xf32>) outs(%m : memref<5x16xf32>)
  // CHECK: exec.loop
  exec.loop %i = 5 {
    %mi = exec.slot %m[%i] : memref<5x16xf32> -> memref<16xf32>
    exec.launch @double ins(%mi : memref<16xf32>) outs(%y : memref<16xf32>)
  }
  // CHECK: exec.copy {{.*}} : memref<5x16xf32, "host"> to memref<5x16xf32>
  // CHECK: exec.launch @all
  // CHECK: exec.copy {{.*}} : memref<5x16xf32> to memref<5x16xf32, "host">
  exec.launch @all ins(%m : memref<5x16xf32>) outs(%m : memref<5x16xf32>)
}
