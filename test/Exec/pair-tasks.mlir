// RUN: meshwright-opt %s --exec-pair-tasks=min-bytes=32 -split-input-file | FileCheck %s
// What comes of it can run: the addresses are walked, in the other half's loop too.
// RUN: meshwright-opt %s --exec-pair-tasks=min-bytes=32 --exec-overlap-collectives=min-bytes=32 --exec-assign-offsets -split-input-file -o %t
// RUN: FileCheck %s --check-prefix=BESIDE < %t
// RUN: meshwright-opt %t --exec-number-collectives --exec-verify -split-input-file -o /dev/null

// The loops of both run in one, of which the backward counts from the other end. While one waits for its sum, the other copies.
// CHECK-LABEL: exec.program private @forward.1.backward.0
// CHECK-SAME: ins(%[[X:[a-z0-9]+]]: memref<3x16xf32>, %[[DY:[a-z0-9]+]]: memref<3x16xf32>) inouts(%[[SUM:[a-z0-9]+]]: memref<3x16xf32>) outs(%[[Y:[a-z0-9]+]]: memref<3x16xf32>, %[[DX:[a-z0-9]+]]: memref<3x16xf32>)
// CHECK: %[[ALL:.*]] = exec.buffer "all" temporary
// CHECK: %[[OTHER:.*]] = exec.buffer "all.1" gradient
// CHECK: exec.loop %[[I:.*]] = 3 {
// CHECK-NEXT: %[[BACK:.*]] = exec.shift %[[I]] mirrored by 0
// CHECK-NEXT: %[[DYI:.*]] = exec.slot %[[DY]][%[[BACK]]]
// CHECK-NEXT: exec.all_reduce sum %[[DYI]] to %[[OTHER]]
// CHECK-NEXT: %[[DXI:.*]] = exec.slot %[[DX]][%[[BACK]]]
// CHECK-NEXT: %[[SUMI:.*]] = exec.slot %[[SUM]][%[[BACK]]]
// CHECK-NEXT: %[[XI:.*]] = exec.slot %[[X]][%[[I]]]
// CHECK-NEXT: exec.all_reduce sum %[[XI]] to %[[ALL]]
// CHECK-NEXT: %[[YI:.*]] = exec.slot %[[Y]][%[[I]]]
// CHECK-NEXT: exec.copy %[[OTHER]] to %[[DXI]]
// CHECK-NEXT: exec.copy %[[OTHER]] to %[[SUMI]]
// CHECK-NEXT: exec.copy %[[ALL]] to %[[YI]]
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @step
// CHECK: exec.call @forward.1.backward.0 ins(%[[A:.*]], %[[B:.*]] : memref<3x16xf32>, memref<3x16xf32>) inouts(%[[C:.*]] : memref<3x16xf32>) outs(%[[D:.*]], %[[E:.*]] : memref<3x16xf32>, memref<3x16xf32>) {dist.task = "F3.1+B1.0", exec.pair = [@forward.1, @backward.0]}
// CHECK-NOT: exec.call

// BESIDE-LABEL: exec.program private @forward.1.backward.0
// BESIDE: exec.loop
// BESIDE: exec.all_reduce {{.*}}exec.async_token = [[FIRST:[0-9]+]]
// BESIDE: exec.all_reduce {{.*}}exec.async_token = [[SECOND:[0-9]+]]
// BESIDE: exec.wait [[FIRST]]
// BESIDE: exec.copy
// BESIDE-NEXT: exec.copy
// BESIDE: exec.wait [[SECOND]]
// BESIDE-NEXT: exec.copy

// BEGIN EXAMPLE --exec-pair-tasks=min-bytes=32
dist.mesh @mesh ["tensor" = 2]
exec.program private @forward.1 ins(%x: memref<3x16xf32>) outs(%y: memref<3x16xf32>) {
  %all = exec.buffer "all" temporary : memref<16xf32>
  exec.loop %i = 3 {
    %xi = exec.slot %x[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.all_reduce sum %xi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program private @backward.0 ins(%dy: memref<3x16xf32>) inouts(%sum: memref<3x16xf32>) outs(%dx: memref<3x16xf32>) {
  %all = exec.buffer "all" gradient : memref<16xf32>
  exec.loop %i = 3 reverse {
    %dyi = exec.slot %dy[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.all_reduce sum %dyi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %dxi = exec.slot %dx[%i] : memref<3x16xf32> -> memref<16xf32>
    %sumi = exec.slot %sum[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.copy %all to %dxi : memref<16xf32> to memref<16xf32>
    exec.copy %all to %sumi : memref<16xf32> to memref<16xf32>
  }
}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<3x16xf32>
  %dy = exec.buffer "dy" input input "dy" : memref<3x16xf32>
  %y = exec.buffer "y" output output "y" : memref<3x16xf32>
  %dx = exec.buffer "dx" output output "dx" : memref<3x16xf32>
  %sum = exec.buffer "sum" gradient : memref<3x16xf32>
  exec.copy %x to %sum : memref<3x16xf32> to memref<3x16xf32>
  exec.call @forward.1 ins(%x : memref<3x16xf32>) outs(%y : memref<3x16xf32>) {dist.task = "F3.1"}
  exec.call @backward.0 ins(%dy : memref<3x16xf32>) inouts(%sum : memref<3x16xf32>) outs(%dx : memref<3x16xf32>) {dist.task = "B1.0"}
}
// END EXAMPLE

// -----

// What the backward task reads comes before both, and what reads the forward task's result stays behind; a slot that an iteration
// leaves for the next one is mirrored with it.
// CHECK-LABEL: exec.program private @forward.0.backward.1
// CHECK: exec.loop %[[I:.*]] = 2 reverse {
// CHECK-NEXT: %[[BACK:.*]] = exec.shift %[[I]] mirrored by 0
// CHECK: exec.shift %[[I]] mirrored by 1
// CHECK: exec.store_index %[[BACK]],
// CHECK-LABEL: exec.program @step
// CHECK: exec.copy %{{.*}} to %[[EARLY:.*]] :
// CHECK-NEXT: exec.call @forward.0.backward.1 ins(%{{.*}}, %[[EARLY]] :
// CHECK-NEXT: exec.copy
dist.mesh @mesh ["tensor" = 2]
exec.program private @forward.0 ins(%x: memref<2x16xf32>) outs(%y: memref<2x16xf32>) {
  %all = exec.buffer "all" temporary : memref<16xf32>
  exec.loop %i = 2 reverse {
    %xi = exec.slot %x[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.all_reduce sum %xi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program private @backward.1 ins(%dy: memref<16xf32>) outs(%dx: memref<3x16xf32>) {
  %all = exec.buffer "all" gradient : memref<16xf32>
  %number = exec.buffer "number" temporary : memref<i32>
  %first = exec.view %dx : memref<3x16xf32> -> memref<16xf32>
  exec.copy %dy to %first : memref<16xf32> to memref<16xf32>
  exec.loop %i = 2 {
    %dyi = exec.slot %dx[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.all_reduce sum %dyi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %next = exec.shift %i by 1
    exec.store_index %i, %number : memref<i32>
    %dxi = exec.slot %dx[%next] : memref<3x16xf32> -> memref<16xf32>
    exec.copy %all to %dxi : memref<16xf32> to memref<16xf32>
  }
}
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %dy = exec.buffer "dy" input input "dy" : memref<16xf32>
  %early = exec.buffer "early" temporary : memref<16xf32>
  %y = exec.buffer "y" temporary : memref<2x16xf32>
  %z = exec.buffer "z" output output "z" : memref<2x16xf32>
  %dx = exec.buffer "dx" output output "dx" : memref<3x16xf32>
  exec.call @forward.0 ins(%x : memref<2x16xf32>) outs(%y : memref<2x16xf32>) {dist.task = "F1.0"}
  exec.copy %y to %z : memref<2x16xf32> to memref<2x16xf32>
  exec.copy %dy to %early : memref<16xf32> to memref<16xf32>
  exec.call @backward.1 ins(%early : memref<16xf32>) outs(%dx : memref<3x16xf32>) {dist.task = "B0.1"}
}

// -----

// Tasks stay apart if one writes what the other uses, if a message stands between, if loops have other lengths or nothing that waits.
// CHECK-LABEL: exec.program @same
// CHECK: exec.call @forward ins
// CHECK-NEXT: exec.call @backward ins
// CHECK-LABEL: exec.program @message
// CHECK: exec.call @forward ins
// CHECK-NEXT: exec.send
// CHECK-NEXT: exec.call @backward ins
// CHECK-LABEL: exec.program @length
// CHECK: exec.call @forward ins
// CHECK-NEXT: exec.call @long ins
// CHECK-LABEL: exec.program @busy
// CHECK: exec.call @forward ins
// CHECK-NEXT: exec.call @nothing ins
dist.mesh @mesh ["pipe" = 2, "tensor" = 2]
exec.program private @forward ins(%x: memref<2x16xf32>) outs(%y: memref<2x16xf32>) {
  %all = exec.buffer "all" temporary : memref<16xf32>
  exec.loop %i = 2 {
    %xi = exec.slot %x[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.all_reduce sum %xi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program private @backward ins(%x: memref<2x16xf32>) outs(%y: memref<2x16xf32>) {
  %all = exec.buffer "all" temporary : memref<16xf32>
  exec.loop %i = 2 reverse {
    %xi = exec.slot %x[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.all_reduce sum %xi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program private @long ins(%x: memref<3x16xf32>) outs(%y: memref<3x16xf32>) {
  %all = exec.buffer "all" temporary : memref<16xf32>
  exec.loop %i = 3 reverse {
    %xi = exec.slot %x[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.all_reduce sum %xi to %all over ["tensor"] : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program private @nothing ins(%x: memref<2x16xf32>) outs(%y: memref<2x16xf32>) {
  exec.loop %i = 2 reverse {
    %xi = exec.slot %x[%i] : memref<2x16xf32> -> memref<16xf32>
    %yi = exec.slot %y[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %xi to %yi : memref<16xf32> to memref<16xf32>
  }
}
exec.program @same {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %y = exec.buffer "y" temporary : memref<2x16xf32>
  %z = exec.buffer "z" output output "z" : memref<2x16xf32>
  exec.call @forward ins(%x : memref<2x16xf32>) outs(%y : memref<2x16xf32>) {dist.task = "F1.0"}
  exec.call @backward ins(%y : memref<2x16xf32>) outs(%z : memref<2x16xf32>) {dist.task = "B0.1"}
}
exec.program @message {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %y = exec.buffer "y" temporary : memref<2x16xf32>
  %sent = exec.buffer "sent" temporary : memref<2x16xf32>
  %z = exec.buffer "z" output output "z" : memref<2x16xf32>
  exec.call @forward ins(%x : memref<2x16xf32>) outs(%y : memref<2x16xf32>) {dist.task = "F1.0"}
  exec.send %y to 1 channel 1 over ["pipe"] buffer %sent : memref<2x16xf32>, memref<2x16xf32>
  exec.call @backward ins(%x : memref<2x16xf32>) outs(%z : memref<2x16xf32>) {dist.task = "B0.1"}
}
exec.program @length {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %u = exec.buffer "u" input input "u" : memref<3x16xf32>
  %y = exec.buffer "y" output output "y" : memref<2x16xf32>
  %z = exec.buffer "longer" output output "longer" : memref<3x16xf32>
  exec.call @forward ins(%x : memref<2x16xf32>) outs(%y : memref<2x16xf32>) {dist.task = "F1.0"}
  exec.call @long ins(%u : memref<3x16xf32>) outs(%z : memref<3x16xf32>) {dist.task = "B0.1"}
}
exec.program @busy {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %y = exec.buffer "y" output output "y" : memref<2x16xf32>
  %z = exec.buffer "z" output output "z" : memref<2x16xf32>
  exec.call @forward ins(%x : memref<2x16xf32>) outs(%y : memref<2x16xf32>) {dist.task = "F1.0"}
  exec.call @nothing ins(%x : memref<2x16xf32>) outs(%z : memref<2x16xf32>) {dist.task = "B0.1"}
}
