// RUN: meshwright-opt %s --exec-decompose-kernels --exec-carry-in-slots --exec-assign-offsets --exec-verify -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --exec-carry-in-slots -split-input-file | FileCheck %s --check-prefix=KEPT
// What the pass leaves alone keeps its copy.

// BEGIN EXAMPLE --exec-carry-in-slots
func.func private @next(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
exec.program @step {
  %in = exec.buffer "in" input input "in" : memref<8xf32>
  %out = exec.buffer "out" output output "out" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %h = exec.buffer "h" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  exec.launch @next ins(%in : memref<8xf32>) outs(%x : memref<8xf32>)
  exec.loop %i = 3 {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.launch @next ins(%x : memref<8xf32>) outs(%h : memref<8xf32>)
    exec.launch @next ins(%h : memref<8xf32>) outs(%x : memref<8xf32>)
  }
  exec.launch @next ins(%x : memref<8xf32>) outs(%out : memref<8xf32>)
  exec.loop %i = 3 reverse {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.launch @next ins(%slot : memref<8xf32>) outs(%out : memref<8xf32>)
  }
}
// END EXAMPLE

// CHECK-LABEL: exec.program @step
// CHECK-NOT: exec.buffer "x"
// CHECK: %[[STACK:.*]] = exec.buffer "kept" activation offset {{.*}} : memref<4x8xf32>
// CHECK: %[[FIRST:.*]] = exec.view %[[STACK]] : memref<4x8xf32> -> memref<8xf32>
// CHECK: exec.launch @next {{.*}} outs(%[[FIRST]]
// CHECK: exec.loop %[[I:.*]] = 3 {
// CHECK: %[[HERE:.*]] = exec.slot %[[STACK]][%[[I]]] : memref<4x8xf32> -> memref<8xf32>
// CHECK: %[[AFTER:.*]] = exec.shift %[[I]] by 1
// CHECK: %[[NEXT:.*]] = exec.slot %[[STACK]][%[[AFTER]]] : memref<4x8xf32> -> memref<8xf32>
// CHECK-NOT: exec.copy
// CHECK: exec.launch @next ins(%[[HERE]]
// CHECK: exec.launch @next {{.*}} outs(%[[NEXT]]
// CHECK: }
// CHECK: %[[LAST:.*]] = exec.view %[[STACK]] from 24 : memref<4x8xf32> -> memref<8xf32>
// CHECK: exec.launch @next ins(%[[LAST]]
// CHECK: exec.loop %[[J:.*]] = 3 reverse {
// CHECK: exec.slot %[[STACK]][%[[J]]] : memref<4x8xf32> -> memref<8xf32>

// -----

// In a loop over microbatches too. A product whose addend is the value reads it from the slot before.
module attributes {exec.target = #exec.target<"cuda", {}>} {
exec.program @microbatches {
  %w = exec.buffer "w" input input "w" : memref<4x4xf32>
  %ws = exec.buffer "ws" workspace : memref<33554624xi8>
  %x = exec.buffer "x" temporary : memref<4x4xf32>
  %kept = exec.buffer "kept" activation : memref<2x4x4xf32>
  %out = exec.buffer "out" output output "out" : memref<4x4xf32>
  exec.loop %m = 2 {
    exec.copy %w to %x : memref<4x4xf32> to memref<4x4xf32>
    exec.loop %i = 2 {
      %slot = exec.slot %kept[%i] : memref<2x4x4xf32> -> memref<4x4xf32>
      exec.copy %x to %slot : memref<4x4xf32> to memref<4x4xf32>
      exec.matmul %w, %w, %x trans(false, true) sizes(4, 4, 4) ld(4, 4, 4) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 addend(%x : memref<4x4xf32>) workspace(%ws : memref<33554624xi8>) : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
    }
    exec.copy %x to %out : memref<4x4xf32> to memref<4x4xf32>
  }
}
}
// CHECK-LABEL: exec.program @microbatches
// CHECK: exec.loop
// CHECK: exec.copy {{.*}} to %[[FIRST:.*]] :
// CHECK: exec.loop
// CHECK-NOT: exec.copy
// CHECK: %[[HERE:.*]] = exec.slot
// CHECK: exec.shift
// CHECK-NEXT: %[[NEXT:.*]] = exec.slot
// CHECK: exec.matmul {{.*}}, {{.*}}, %[[NEXT]] {{.*}} addend(%[[HERE]]

// -----

// A view of the whole stack is the stack as it was.
func.func private @all(%x: tensor<24xf32>) -> tensor<24xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
}
exec.program @whole {
  %out = exec.buffer "out" output output "out" : memref<24xf32>
  %w = exec.buffer "w" input input "w" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  exec.loop %i = 3 {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  }
  %flat = exec.view %kept : memref<3x8xf32> -> memref<24xf32>
  exec.launch @all ins(%flat : memref<24xf32>) outs(%out : memref<24xf32>)
}
// CHECK-LABEL: exec.program @whole
// CHECK: %[[STACK:.*]] = exec.buffer "kept" {{.*}} : memref<4x8xf32>
// CHECK: %[[OLD:.*]] = exec.view %[[STACK]] : memref<4x8xf32> -> memref<3x8xf32>
// CHECK: %[[FLAT:.*]] = exec.view %[[OLD]] : memref<3x8xf32> -> memref<24xf32>
// CHECK: exec.launch @all ins(%[[FLAT]]

// -----

// What was in the stack is read when the first value is there.
exec.program @read_late {
  %out = exec.buffer "out" output output "out" : memref<8xf32>
  %w = exec.buffer "w" input input "w" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  %old = exec.view %kept from 8 : memref<3x8xf32> -> memref<8xf32>
  exec.copy %w to %old : memref<8xf32> to memref<8xf32>
  exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  exec.copy %old to %out : memref<8xf32> to memref<8xf32>
  exec.loop %i = 3 {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  }
}
// KEPT-LABEL: exec.program @read_late
// KEPT: exec.buffer "kept" activation : memref<3x8xf32>
// KEPT: exec.loop
// KEPT: exec.copy

// -----

// Another part of the stack is read in the loop, while the next value would be there.
exec.program @read_inside {
  %out = exec.buffer "out" output output "out" : memref<8xf32>
  %w = exec.buffer "w" input input "w" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  %old = exec.view %kept from 16 : memref<3x8xf32> -> memref<8xf32>
  exec.copy %w to %old : memref<8xf32> to memref<8xf32>
  exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  exec.loop %i = 2 {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.copy %w to %x : memref<8xf32> to memref<8xf32>
    exec.copy %old to %out : memref<8xf32> to memref<8xf32>
  }
}
// KEPT-LABEL: exec.program @read_inside
// KEPT: exec.buffer "kept" activation : memref<3x8xf32>

// -----

// The value is added to in place: there is no other place for the sum.
exec.program @in_place {
  %w = exec.buffer "w" input input "w" : memref<4x4xf32>
  %x = exec.buffer "x" temporary : memref<4x4xf32>
  %kept = exec.buffer "kept" activation : memref<2x4x4xf32>
  exec.copy %w to %x : memref<4x4xf32> to memref<4x4xf32>
  exec.loop %i = 2 {
    %slot = exec.slot %kept[%i] : memref<2x4x4xf32> -> memref<4x4xf32>
    exec.copy %x to %slot : memref<4x4xf32> to memref<4x4xf32>
    exec.matmul %w, %w, %x trans(false, true) sizes(4, 4, 4) ld(4, 4, 4) batch 1 strides(0, 0, 0) alpha 1.0 beta 1.0 : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
  }
}
// KEPT-LABEL: exec.program @in_place
// KEPT: exec.buffer "kept" activation : memref<2x4x4xf32>

// -----

// The next iteration of the loop around reads the last value.
exec.program @around {
  %out = exec.buffer "out" output output "out" : memref<8xf32>
  %w = exec.buffer "w" input input "w" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  exec.loop %m = 2 {
    exec.copy %x to %out : memref<8xf32> to memref<8xf32>
    exec.copy %w to %x : memref<8xf32> to memref<8xf32>
    exec.loop %i = 3 {
      %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
      exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
      exec.copy %w to %x : memref<8xf32> to memref<8xf32>
    }
  }
}
// KEPT-LABEL: exec.program @around
// KEPT: exec.buffer "kept" activation : memref<3x8xf32>

// -----

// Downwards.
exec.program @reverse {
  %w = exec.buffer "w" input input "w" : memref<8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  exec.loop %i = 3 reverse {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.copy %w to %x : memref<8xf32> to memref<8xf32>
  }
}
// KEPT-LABEL: exec.program @reverse
// KEPT: exec.buffer "kept" activation : memref<3x8xf32>

// -----

// The value may be read through a view of a view, which goes with its memory.
func.func private @next(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.workspace = 0 : i64} {
  %0 = train.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
exec.program @views {
  %in = exec.buffer "in" input input "in" : memref<8xf32>
  %out = exec.buffer "out" output output "out" : memref<1x8xf32>
  %x = exec.buffer "x" temporary : memref<8xf32>
  %h = exec.buffer "h" temporary : memref<8xf32>
  %kept = exec.buffer "kept" activation : memref<3x8xf32>
  exec.launch @next ins(%in : memref<8xf32>) outs(%x : memref<8xf32>)
  exec.loop %i = 3 {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.copy %x to %slot : memref<8xf32> to memref<8xf32>
    exec.launch @next ins(%x : memref<8xf32>) outs(%h : memref<8xf32>)
    exec.launch @next ins(%h : memref<8xf32>) outs(%x : memref<8xf32>)
  }
  %rows = exec.view %x : memref<8xf32> -> memref<2x4xf32>
  %row = exec.view %rows : memref<2x4xf32> -> memref<1x8xf32>
  exec.copy %row to %out : memref<1x8xf32> to memref<1x8xf32>
  exec.loop %i = 3 reverse {
    %slot = exec.slot %kept[%i] : memref<3x8xf32> -> memref<8xf32>
    exec.launch @next ins(%slot : memref<8xf32>) outs(%h : memref<8xf32>)
  }
}
// CHECK-LABEL: exec.program @views
// CHECK-NOT: exec.buffer "x"
// CHECK: %[[STACK:.*]] = exec.buffer "kept" activation offset {{.*}} : memref<4x8xf32>
// CHECK-NOT: memref<2x4xf32>
// CHECK: %[[LAST:.*]] = exec.view %[[STACK]] from 24 : memref<4x8xf32> -> memref<1x8xf32>
// CHECK: exec.copy %[[LAST]] to
