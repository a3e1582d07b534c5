// RUN: split-file %s %t
// RUN: meshwright-opt %t/update.mlir --exec-bufferize | FileCheck %t/update.mlir
// RUN: meshwright-opt %t/loops.mlir --exec-bufferize | FileCheck %t/loops.mlir
// RUN: meshwright-opt %t/copies.mlir --exec-bufferize | FileCheck %t/copies.mlir
// RUN: meshwright-opt %t/library.mlir --exec-bufferize | FileCheck %t/library.mlir
// RUN: meshwright-opt %t/invalid.mlir --exec-bufferize --split-input-file --verify-diagnostics

//--- update.mlir
train.variable @w : tensor<8x4xf32> init <"normal", 0.1 : f64>
train.variable @w.momentum : tensor<8x4xf32> init <"constant", 0.0 : f64> state "momentum" of @w

func.func private @update(%w: tensor<8x4xf32>, %g: tensor<8x4xf32>, %m: tensor<8x4xf32>, %lr: tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    attributes {exec.kernel, exec.inplace = [[0, 0], [2, 1]]}
func.func private @loss(%x: tensor<2x4x8xf32>) -> (tensor<f32>, tensor<2x4x8xf32>)
    attributes {exec.kernel, exec.inplace = [[0, 1]], exec.workspace = 64 : i64}

// Variables are updated in place, the gradient of the logits overwrites them, a
// reshape is a view, an output is written where it belongs: no copy.
// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[X:.*]] = exec.buffer "x" input input "x" : memref<1x2x4x4xf32>
// CHECK-DAG: %[[LR:.*]] = exec.buffer "lr" input input "lr" : memref<f32>
// CHECK-DAG: %[[W:.*]] = exec.buffer "w" parameter variable @w : memref<8x4xf32>
// CHECK-DAG: %[[M:.*]] = exec.buffer "w.momentum" optimizer variable @w.momentum : memref<8x4xf32>
// CHECK-DAG: %[[LOGITS:.*]] = exec.buffer "temporary.0" temporary : memref<2x4x8xf32>
// CHECK-DAG: %[[LOSS:.*]] = exec.buffer "loss" output output "loss" : memref<f32>
// CHECK-DAG: %[[SCRATCH:.*]] = exec.buffer "workspace.0" workspace : memref<64xi8>
// CHECK-DAG: %[[G:.*]] = exec.buffer "gradient.0" gradient : memref<8x4xf32>
// CHECK: %[[VIEW:.*]] = exec.view %[[X]] : memref<1x2x4x4xf32> -> memref<2x4x4xf32>
// CHECK-NEXT: exec.matmul %[[VIEW]], %[[W]], %[[LOGITS]] trans(false, true) sizes(8, 8, 4) ld(4, 4, 8)
// CHECK-NEXT: exec.launch @loss ins(%[[LOGITS]] : memref<2x4x8xf32>) outs(%[[LOSS]], %[[LOGITS]] : memref<f32>, memref<2x4x8xf32>) workspace(%[[SCRATCH]] : memref<64xi8>)
// CHECK-NEXT: exec.matmul %[[LOGITS]], %[[VIEW]], %[[G]] trans(true, false) sizes(8, 4, 8) ld(8, 4, 4)
// CHECK-NEXT: exec.launch @update ins(%[[W]], %[[G]], %[[M]], %[[LR]] : {{.*}}) outs(%[[W]], %[[M]] :
// CHECK-NEXT: }
func.func @step(%x: tensor<1x2x4x4xf32> {train.input = "x"}, %lr: tensor<f32> {train.input = "lr"}) -> (tensor<f32> {train.output = "loss"}) {
  %w = train.get @w : tensor<8x4xf32>
  %m = train.get @w.momentum : tensor<8x4xf32>
  %0 = train.reshape %x : (tensor<1x2x4x4xf32>) -> tensor<2x4x4xf32>
  %1 = train.linear %0, %w : (tensor<2x4x4xf32>, tensor<8x4xf32>) -> tensor<2x4x8xf32>
  %2:2 = exec.launch @loss ins(%1 : tensor<2x4x8xf32>) -> tensor<f32>, tensor<2x4x8xf32>
  %3 = train.contract "a b o, a b i -> o i" %2#1, %0 : (tensor<2x4x8xf32>, tensor<2x4x4xf32>) -> tensor<8x4xf32>
  %4:2 = exec.launch @update ins(%w, %3, %m, %lr : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) {exec.gradients = array<i64: 1>} -> tensor<8x4xf32>, tensor<8x4xf32>
  train.set @w, %4#0 : tensor<8x4xf32>
  train.set @w.momentum, %4#1 : tensor<8x4xf32>
  return %2#0 : tensor<f32>
}

//--- loops.mlir
train.variable @h : tensor<3x8x8xf32> stacked init <"normal", 0.1 : f64> storage <"h.{layer}">

func.func private @zeros() -> tensor<3x8x8xf32> attributes {exec.kernel}
func.func private @act(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]}
func.func private @aside(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel}
func.func private @seed(%x: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> attributes {exec.kernel}
func.func private @sgd(%w: tensor<3x8x8xf32>, %g: tensor<3x8x8xf32>) -> tensor<3x8x8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]}

// A microbatch loop of a forward and a backward loop. The gradient is one buffer:
// carried by the outer loop, sliced and stacked by the inner one, added to where it
// is. The forward's results are kept in their slots, written there by the product;
// the carried value is written in place of the old one by the product, whose
// operand is the slot.
// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[X:.*]] = exec.buffer "x" input input "x" : memref<2x4x8xf32>
// CHECK-DAG: %[[G:.*]] = exec.buffer "gradient.0" gradient : memref<3x8x8xf32>
// CHECK-DAG: %[[KEPT:.*]] = exec.buffer "activation.0" activation : memref<3x4x8xf32>
// CHECK-DAG: %[[H:.*]] = exec.buffer "h" parameter variable @h : memref<3x8x8xf32>
// CHECK: exec.launch @zeros ins() outs(%[[G]] :
// CHECK-NEXT: exec.loop %[[M:.*]] = 2 {
// CHECK-NEXT: exec.store_index %[[M]], %[[INDEX:.*]] : memref<i32>
// CHECK-NEXT: %[[XM:.*]] = exec.slot %[[X]][%[[M]]]
// CHECK-NEXT: exec.launch @seed ins(%[[XM]], %[[INDEX]] : {{.*}}) outs(%[[C:.*]] : memref<4x8xf32>)
// CHECK-NEXT: exec.loop %[[I:.*]] = 3 attributes {train.role = #train.role<forward>} {
// CHECK-NEXT: %[[W:.*]] = exec.slot %[[H]][%[[I]]]
// CHECK-NEXT: %[[SLOT:.*]] = exec.slot %[[KEPT]][%[[I]]]
// CHECK-NEXT: exec.matmul %[[C]], %[[W]], %[[SLOT]] trans(false, true)
// CHECK-NEXT: exec.launch @act ins(%[[SLOT]] : memref<4x8xf32>) outs(%[[C]] : memref<4x8xf32>)
// CHECK-NEXT: }
// CHECK-NEXT: exec.loop %[[J:.*]] = 3 reverse attributes {train.role = #train.role<backward>} {
// CHECK-NEXT: %[[K:.*]] = exec.slot %[[KEPT]][%[[J]]]
// CHECK-NEXT: %[[DW:.*]] = exec.slot %[[G]][%[[J]]]
// CHECK-NEXT: exec.matmul %[[C]], %[[K]], %[[DW]] trans(true, false) {{.*}} beta 1.0
// CHECK-NEXT: %[[V:.*]] = exec.slot %[[H]][%[[J]]]
// CHECK-NEXT: exec.matmul %[[C]], %[[V]], %[[T:.*]] trans(false, false)
// CHECK-NEXT: exec.launch @act ins(%[[T]] : memref<4x8xf32>) outs(%[[C]] : memref<4x8xf32>)
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: exec.launch @sgd ins(%[[H]], %[[G]] : {{.*}}) outs(%[[H]] :
// CHECK-NOT: exec.copy
func.func @step(%x: tensor<2x4x8xf32> {train.input = "x"}) {
  %h = train.get @h : tensor<3x8x8xf32>
  %zero = exec.launch @zeros ins() -> tensor<3x8x8xf32>
  %g = exec.loop %m = 2 carry(%acc = %zero) each(%xm = %x) : (tensor<3x8x8xf32>, tensor<2x4x8xf32>) -> tensor<3x8x8xf32> {
    %index = exec.index %m : tensor<i32>
    %start = exec.launch @seed ins(%xm, %index : tensor<4x8xf32>, tensor<i32>) -> tensor<4x8xf32>
    %y, %kept = exec.loop %i = 3 carry(%c = %start) each(%w = %h) : (tensor<4x8xf32>, tensor<3x8x8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) attributes {train.role = #train.role<forward>} {
      %0 = train.linear %c, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %1 = exec.launch @act ins(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
      exec.yield %1, %0 : tensor<4x8xf32>, tensor<4x8xf32>
    }
    %dx, %dh = exec.loop %i = 3 reverse carry(%d = %y) each(%w = %h, %k = %kept, %a = %acc)
        : (tensor<4x8xf32>, tensor<3x8x8xf32>, tensor<3x4x8xf32>, tensor<3x8x8xf32>) -> (tensor<4x8xf32>, tensor<3x8x8xf32>) attributes {train.role = #train.role<backward>} {
      %2 = train.contract "n o, n i -> o i" %d, %k init %a : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %3 = train.contract "n o, o i -> n i" %d, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %4 = exec.launch @act ins(%3 : tensor<4x8xf32>) -> tensor<4x8xf32>
      exec.yield %4, %2 : tensor<4x8xf32>, tensor<8x8xf32>
    }
    exec.yield %dh : tensor<3x8x8xf32>
  }
  %new = exec.launch @sgd ins(%h, %g : tensor<3x8x8xf32>, tensor<3x8x8xf32>) {exec.gradients = array<i64: 1>} -> tensor<3x8x8xf32>
  train.set @h, %new : tensor<3x8x8xf32>
  return
}

// A backward keeps something for the gradients of weights; what other loops hand on is no activation.
// CHECK-LABEL: exec.program @kept
// CHECK-DAG: exec.buffer "activation.0" activation : memref<5x4x8xf32>
// CHECK-DAG: exec.buffer "temporary.{{.}}" temporary : memref<7x4x8xf32>
// CHECK-NOT: activation
// CHECK: }
func.func @kept(%x: tensor<5x4x8xf32> {train.input = "x"}, %y: tensor<7x4x8xf32> {train.input = "y"})
    -> (tensor<5x4x8xf32> {train.output = "p"}, tensor<7x4x8xf32> {train.output = "q"}) {
  %0 = exec.loop %i = 5 reverse each(%a = %x) : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> attributes {train.role = #train.role<backward>} {
    %4 = exec.launch @act ins(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
    exec.yield %4 : tensor<4x8xf32>
  }
  %1 = exec.loop %i = 5 reverse each(%a = %0) : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> attributes {train.role = #train.role<weight>} {
    %4 = exec.launch @aside ins(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
    exec.yield %4 : tensor<4x8xf32>
  }
  %2 = exec.loop %i = 7 each(%a = %y) : (tensor<7x4x8xf32>) -> tensor<7x4x8xf32> {
    %4 = exec.launch @act ins(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
    exec.yield %4 : tensor<4x8xf32>
  }
  %3 = exec.loop %i = 7 each(%a = %2) : (tensor<7x4x8xf32>) -> tensor<7x4x8xf32> {
    %4 = exec.launch @aside ins(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
    exec.yield %4 : tensor<4x8xf32>
  }
  return %1, %3 : tensor<5x4x8xf32>, tensor<7x4x8xf32>
}

//--- copies.mlir
train.variable @a : tensor<8xf32> init <"normal", 0.1 : f64>
train.variable @b : tensor<8xf32> init <"normal", 0.1 : f64>

func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]}
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel}

// Variables that swap: one of the old values is saved.
// CHECK-LABEL: exec.program @swap
// CHECK-DAG: %[[A:.*]] = exec.buffer "a"
// CHECK-DAG: %[[B:.*]] = exec.buffer "b"
// CHECK: exec.copy %[[A]] to %[[T:.*]] :
// CHECK-NEXT: exec.copy %[[B]] to %[[A]] :
// CHECK-NEXT: exec.copy %[[T]] to %[[B]] :
// CHECK-NEXT: }
func.func @swap() {
  %a = train.get @a : tensor<8xf32>
  %b = train.get @b : tensor<8xf32>
  train.set @a, %b : tensor<8xf32>
  train.set @b, %a : tensor<8xf32>
  return
}

// The new value of a variable is not written over the old one while that is read.
// CHECK-LABEL: exec.program @late_read
// CHECK: exec.launch @f ins(%[[A:.*]] : memref<8xf32>) outs(%[[T:.*]] : memref<8xf32>)
// CHECK-NEXT: exec.launch @g ins(%[[A]] : memref<8xf32>) outs(%[[OUT:.*]] : memref<8xf32>)
// CHECK-NEXT: exec.copy %[[T]] to %[[A]]
// CHECK-NEXT: }
func.func @late_read() -> (tensor<8xf32> {train.output = "y"}) {
  %a = train.get @a : tensor<8xf32>
  %0 = exec.launch @f ins(%a : tensor<8xf32>) -> tensor<8xf32>
  %1 = exec.launch @g ins(%a : tensor<8xf32>) -> tensor<8xf32>
  train.set @a, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Carried values that swap places, and one that is kept as well: it is copied to
// its slot before its successor overwrites it. Kernels that cannot work in place
// get memory of their own.
// CHECK-LABEL: exec.program @rotate
// CHECK: exec.loop
// CHECK-NEXT: %[[SLOT:.*]] = exec.slot
// CHECK-NEXT: exec.copy %[[C:.*]] to %[[SLOT]] :
// CHECK-NEXT: exec.launch @g ins(%[[C]] : memref<8xf32>) outs(%[[T:.*]] : memref<8xf32>)
// CHECK-NEXT: exec.copy %[[D:.*]] to %[[C]] :
// CHECK-NEXT: exec.copy %[[T]] to %[[D]] :
// CHECK-NEXT: }
func.func @rotate(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "p"}, tensor<3x8xf32> {train.output = "kept"}) {
  %p, %q, %kept = exec.loop %i = 3 carry(%c = %x, %d = %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<3x8xf32>) {
    %0 = exec.launch @g ins(%c : tensor<8xf32>) -> tensor<8xf32>
    exec.yield %d, %0, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %p, %kept : tensor<8xf32>, tensor<3x8xf32>
}

// What a view reads of a variable after it is written is its old value.
// CHECK-LABEL: exec.program @late_view
// CHECK-DAG: %[[A:.*]] = exec.buffer "a"
// CHECK: exec.copy %[[A]] to %[[OLD:.*]] :
// CHECK: exec.launch @flat ins(%{{.*}} : memref<2x4xf32>)
func.func private @flat(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {exec.kernel}
func.func @late_view(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<2x4xf32> {train.output = "y"}) {
  %a = train.get @a : tensor<8xf32>
  %v = train.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  train.set @a, %x : tensor<8xf32>
  %0 = exec.launch @flat ins(%v : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

//--- library.mlir
// Attention gets scratch memory as the runtime asks for it.
// CHECK-LABEL: exec.program @attention
// CHECK: %[[W:.*]] = exec.buffer "workspace.0" workspace : memref<{{[0-9]+}}xi8>
// CHECK: exec.attention ins(%{{.*}}, %{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}) workspace(%[[W]])
// CHECK-SAME: causal
// CHECK-SAME: heads 4
// CHECK: exec.attention_grad
func.func @attention(%q: tensor<2x8x4x16xf32> {train.input = "q"}, %k: tensor<2x8x2x16xf32> {train.input = "k"}) -> (tensor<2x8x4x16xf32> {train.output = "dq"}) {
  %out, %lse = train.attention %q, %k, %k scale 0.25 causal : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %out, %lse scale 0.25 causal
      : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  return %dq : tensor<2x8x4x16xf32>
}

// A sum over devices is done in place when its operand dies.
// CHECK-LABEL: exec.program @reduce
// CHECK: exec.matmul %{{.*}}, %{{.*}}, %[[G:.*]] trans
// CHECK-NEXT: exec.all_reduce {{ ?}}sum %[[G]] to %[[G]] over ["data"]
dist.mesh @mesh ["data" = 2]
func.func @reduce(%x: tensor<4x8xf32> {train.input = "x"}) -> (tensor<8x8xf32> {train.output = "g"}) {
  %0 = train.contract "n o, n i -> o i" %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = dist.all_reduce sum %0 over <@mesh {data}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

//--- invalid.mlir
func.func @step(%x: tensor<4x8x2xf32> {train.input = "x"}, %y: tensor<8x6xf32> {train.input = "y"}) -> (tensor<4x2x6xf32> {train.output = "z"}) {
  // expected-error @below {{'train.contract' op is not one matrix product of its operands as they lie in memory: indices a and b are one index of the matrix product but do not follow one another in operand 0; reorder the dimensions of an operand or split the op}}
  %0 = train.contract "a k b, k c -> a b c" %x, %y : (tensor<4x8x2xf32>, tensor<8x6xf32>) -> tensor<4x2x6xf32>
  return %0 : tensor<4x2x6xf32>
}

// -----

func.func @step(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "z"}) {
  // expected-error @below {{'train.gelu' op has no form in memory; memory-bound ops are put into kernels by exec-form-kernels}}
  %0 = train.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 has no train.input attribute to name its buffer}}
func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32> {train.output = "z"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{result 0 has no train.output attribute to name its buffer}}
func.func @step(%x: tensor<4xf32> {train.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

train.variable @v : tensor<4xf32> init <"normal", 0.1 : f64>
func.func @step(%x: tensor<4xf32> {train.input = "x"}, %y: tensor<4xf32> {train.input = "y"}) {
  train.set @v, %x : tensor<4xf32>
  // expected-error @below {{is the second write of @v; one is supported}}
  train.set @v, %y : tensor<4xf32>
  return
}
