// What it makes can be read back.
// RUN: meshwright-opt %s --exec-bufferize -split-input-file -verify-diagnostics | meshwright-opt -split-input-file | FileCheck %s

// BEGIN EXAMPLE --exec-bufferize
train.variable @w : tensor<4x8xf32> init <"normal", 0.02>
func.func private @update(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]} {
  %0 = arith.subf %w, %g : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @step(%dy: tensor<2x4xf32> {train.input = "dy"}, %x: tensor<2x8xf32> {train.input = "x"}) {
  %w = train.get @w : tensor<4x8xf32>
  %g = train.contract "b o, b i -> o i" %dy, %x : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %new = exec.launch @update ins(%w, %g : tensor<4x8xf32>, tensor<4x8xf32>) {exec.gradients = array<i64: 1>} -> tensor<4x8xf32>
  train.set @w, %new : tensor<4x8xf32>
  return
}
// END EXAMPLE

// The parameter is updated in place; its gradient is memory of its own.
// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[DY:.*]] = exec.buffer "dy" input input "dy" : memref<2x4xf32>
// CHECK-DAG: %[[X:.*]] = exec.buffer "x" input input "x" : memref<2x8xf32>
// CHECK-DAG: %[[G:.*]] = exec.buffer "gradient.0" gradient : memref<4x8xf32>
// CHECK-DAG: %[[W:.*]] = exec.buffer "w" parameter variable @w : memref<4x8xf32>
// CHECK: exec.matmul %[[DY]], %[[X]], %[[G]] trans(true, false) sizes(4, 8, 2)
// CHECK: exec.launch @update ins(%[[W]], %[[G]] : {{.*}}) outs(%[[W]] :

// -----

// A value that a loop carries is one place, and a stacked parameter is read in
// slots. A matrix product cannot write over its factor: it writes aside.
// CHECK-LABEL: exec.program @loop
// CHECK: exec.loop %[[I:.*]] = 3
// CHECK: %[[WI:.*]] = exec.slot %{{.*}}[%[[I]]] : memref<3x4x4xf32> -> memref<4x4xf32>
// CHECK: exec.matmul %[[CARRIED:.*]], %[[WI]], %[[NEXT:.*]] trans(false, true)
// CHECK: exec.copy %[[NEXT]] to %[[CARRIED]]
train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02>
func.func @loop(%x: tensor<2x4xf32> {train.input = "x"}) -> (tensor<2x4xf32> {train.output = "y"}) {
  %w = train.get @w : tensor<3x4x4xf32>
  %y = exec.loop %i = 3 carry(%c = %x) each(%wi = %w) : (tensor<2x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4xf32> {
    %0 = train.linear %c, %wi : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    exec.yield %0 : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}

// -----

// Adding to an input that must stay takes a copy; adding in place afterwards none.
// CHECK-LABEL: exec.program @sum
// CHECK: exec.copy %[[A:.*]] to %[[OUT:.*]] :
// CHECK-NEXT: exec.matmul %{{.*}}, %{{.*}}, %[[OUT]] {{.*}} beta 1.0
// CHECK-NOT: exec.copy
// CHECK: exec.matmul %{{.*}}, %{{.*}}, %[[OUT]] {{.*}} beta 1.0
func.func @sum(%a: tensor<4x8xf32> {train.input = "a"}, %dy: tensor<2x4xf32> {train.input = "dy"}, %x: tensor<2x8xf32> {train.input = "x"}) -> (tensor<4x8xf32> {train.output = "y"}) {
  %0 = train.contract "b o, b i -> o i" %dy, %x init %a : (tensor<2x4xf32>, tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.contract "b o, b i -> o i" %dy, %x init %0 : (tensor<2x4xf32>, tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// A reshape is the same memory.
// CHECK-LABEL: exec.program @reshape
// CHECK-NOT: exec.copy
// CHECK: exec.view %{{.*}} : memref<2x4xf32> -> memref<8xf32>
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
  return %x : tensor<8xf32>
}
func.func @reshape(%x: tensor<2x4xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %0 = train.reshape %x : (tensor<2x4xf32>) -> tensor<8xf32>
  %1 = exec.launch @k ins(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func @transposed(%x: tensor<2x4x8xf32> {train.input = "x"}, %w: tensor<2x3x8xf32> {train.input = "w"}) -> (tensor<4x3xf32> {train.output = "y"}) {
  // expected-error @+1 {{is not one matrix product of its operands as they lie in memory}}
  %0 = train.contract "i s j, i o j -> s o" %x, %w : (tensor<2x4x8xf32>, tensor<2x3x8xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

func.func @loose(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  // expected-error @+1 {{has no form in memory; memory-bound ops are put into kernels by exec-form-kernels}}
  %0 = train.silu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @wide(%x: tensor<2x4xf64> {train.input = "x"}, %w: tensor<3x4xf64> {train.input = "w"}) -> (tensor<2x3xf64> {train.output = "y"}) {
  // expected-error @+1 {{has 'tensor<2x4xf64>'; matrices are multiplied in f32, bf16 or f16}}
  %0 = train.linear %x, %w : (tensor<2x4xf64>, tensor<3x4xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// -----

// expected-error @+1 {{argument 0 has no train.input attribute to name its buffer}}
func.func @unnamed(%x: tensor<8xf32>) {
  return
}

// -----

// expected-error @+1 {{result 0 has no train.output attribute to name its buffer}}
func.func @nameless(%x: tensor<8xf32> {train.input = "x"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

train.variable @w : tensor<8xf32> init <"normal", 0.02>
func.func @twice(%x: tensor<8xf32> {train.input = "x"}) {
  train.set @w, %x : tensor<8xf32>
  // expected-error @+1 {{is the second write of @w; one is supported}}
  train.set @w, %x : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @columns(%x: tensor<8x2xf32> {train.input = "x"}) -> (tensor<8x4xf32> {train.output = "y"}) {
  // expected-error @+1 {{works along dimension 1 of 'tensor<8x2xf32>', the parts of which are not contiguous; see exec-contiguous-collectives}}
  %0 = dist.all_gather %x dim 1 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @own_columns(%x: tensor<8x4xf32> {train.input = "x"}) -> (tensor<8x2xf32> {train.output = "y"}) {
  // expected-error @+1 {{works along dimension 1 of 'tensor<8x4xf32>', the parts of which are not contiguous; see exec-contiguous-collectives}}
  %0 = dist.slice %x dim 1 over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

// A device's own part is a window of memory; reading it copies nothing, also
// through a reshape. Where it must arrive elsewhere, it is copied.
// CHECK-LABEL: exec.program @own_rows
// CHECK: %[[PART:.*]] = exec.window %{{.*}} over ["a"] : memref<8x4xf32> -> memref<4x4xf32>
// CHECK-NOT: exec.copy
// CHECK: exec.matmul %[[PART]], %[[PART]], %{{.*}}
// CHECK: %[[FLAT:.*]] = exec.view %[[PART]] : memref<4x4xf32> -> memref<16xf32>
// CHECK: exec.copy %[[FLAT]] to
dist.mesh @mesh ["a" = 2]
func.func @own_rows(%x: tensor<8x4xf32> {train.input = "x"}) -> (tensor<4x4xf32> {train.output = "y"}, tensor<16xf32> {train.output = "z"}) {
  %0 = dist.slice %x dim 0 over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = train.linear %0, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = train.reshape %0 : (tensor<4x4xf32>) -> tensor<16xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<16xf32>
}

// -----

// The whole stays as long as a part of it is read, and nothing is written over it
// in place: the part begins elsewhere.
// CHECK-LABEL: exec.program @kept
// CHECK: exec.launch @twice ins(%{{.*}}) outs(%[[X:.*]] : memref<8xf32>)
// CHECK: %[[PART:.*]] = exec.window %[[X]]
// CHECK: exec.launch @sum ins(%[[PART]], %[[HEAD:.*]] : {{.*}}) outs(%[[Y:.*]] : memref<4xf32>)
// CHECK-NOT: exec.launch {{.*}} outs(%[[HEAD]]
dist.mesh @mesh ["a" = 2]
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]} {
  %0 = arith.addf %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = [[0, 0], [1, 0]]} {
  %0 = arith.addf %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @kept(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "y"}) {
  %0 = exec.launch @twice ins(%x : tensor<8xf32>) -> tensor<8xf32>
  %1 = dist.slice %0 dim 0 over <@mesh {a}> : (tensor<8xf32>) -> tensor<4xf32>
  %2 = train.slice %0 rows 4 : (tensor<8xf32>) -> tensor<4xf32>
  %3 = exec.launch @sum ins(%1, %2 : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// Slots are counted from where a stack begins: a window of stacks is copied.
// CHECK-LABEL: exec.program @stack
// CHECK: %[[PART:.*]] = exec.window
// CHECK: exec.copy %[[PART]] to %[[COPY:.*]] :
// CHECK: exec.loop
// CHECK: exec.slot %[[COPY]]
dist.mesh @mesh ["a" = 2]
func.func @stack(%x: tensor<2xf32> {train.input = "x"}, %ws: tensor<6x2x2xf32> {train.input = "w"}) -> (tensor<2xf32> {train.output = "y"}) {
  %w = dist.slice %ws dim 0 over <@mesh {a}> : (tensor<6x2x2xf32>) -> tensor<3x2x2xf32>
  %y = exec.loop %i = 3 carry(%c = %x) each(%wi = %w) : (tensor<2xf32>, tensor<3x2x2xf32>) -> tensor<2xf32> {
    %0 = train.linear %c, %wi : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
    exec.yield %0 : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}

// -----

// CHECK-LABEL: exec.program @begin
// CHECK: exec.store_offset 4 over ["a"] to %{{.*}} : memref<i32>
// CHECK: exec.all_to_all %{{.*}} to %{{.*}} over ["a"] : memref<2x8xf32> to memref<2x8xf32>
dist.mesh @mesh ["a" = 2]
func.func @begin(%x: tensor<8x2xf32> {train.input = "x"}) -> (tensor<i32> {train.output = "b"}, tensor<1x16xf32> {train.output = "y"}) {
  %0 = dist.offset 4 over <@mesh {a}> : tensor<i32>
  %1 = train.reshape %x : (tensor<8x2xf32>) -> tensor<2x8xf32>
  %2 = dist.all_to_all %1 split 0 concat 1 over <@mesh {a}> : (tensor<2x8xf32>) -> tensor<1x16xf32>
  return %0, %2 : tensor<i32>, tensor<1x16xf32>
}

// -----

// Several tensors in one call, each in place when its operand dies: not the first,
// which is read again.
// CHECK-LABEL: exec.program @bucket
// CHECK: exec.matmul %{{.*}}, %{{.*}}, %[[A:.*]] trans
// CHECK: exec.matmul %{{.*}}, %{{.*}}, %[[B:.*]] trans
// CHECK: exec.all_reduce {{ ?}}sum %[[A]], %[[B]] to %[[C:.*]], %[[B]] over ["a"]
// CHECK: exec.reduce_scatter {{ ?}}max %[[B]], %{{.*}} to %{{.*}}, %{{.*}} over ["a"] : memref<8x8xf32>, memref<6xf32> to memref<4x8xf32>, memref<3xf32>
dist.mesh @mesh ["a" = 2]
func.func @bucket(%x: tensor<4x8xf32> {train.input = "x"}, %v: tensor<1x6xf32> {train.input = "v"}) -> (tensor<8x8xf32> {train.output = "y"}, tensor<4x8xf32> {train.output = "z"}, tensor<1x3xf32> {train.output = "w"}, tensor<8x8xf32> {train.output = "u"}) {
  %0 = train.contract "n o, n i -> o i" %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = train.contract "n o, n i -> o i" %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %2:2 = dist.all_reduce sum %0, %1 over <@mesh {a}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %3:2 = dist.reduce_scatter max %2#1, %v dim [0, 1] over <@mesh {a}> : (tensor<8x8xf32>, tensor<1x6xf32>) -> (tensor<4x8xf32>, tensor<1x3xf32>)
  %4 = train.linear %0, %2#0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2#0, %3#0, %3#1, %4 : tensor<8x8xf32>, tensor<4x8xf32>, tensor<1x3xf32>, tensor<8x8xf32>
}

// -----

// Exchanges work in place; the first on a copy, since its operand is an input.
// CHECK-LABEL: exec.program @exchange
// CHECK: %[[X:.*]] = exec.buffer "x"
// CHECK: %[[Y:.*]] = exec.buffer "y"
// CHECK: %[[W:.*]] = exec.buffer {{.*}} workspace : memref<24xi8>
// CHECK: exec.copy %[[X]] to %[[Y]]
// CHECK: exec.exchange reducing sum %[[Y]] pieces 2 length 1 {{.*}} over ["a"] workspace(%[[W]] : memref<24xi8>) : memref<12xf32>
// CHECK-NEXT: exec.exchange %[[Y]] pieces 2 length 1 {{.*}} over ["a"] : memref<12xf32>
dist.mesh @mesh ["a" = 2]
func.func @exchange(%x: tensor<12xf32> {train.input = "x"}) -> (tensor<12xf32> {train.output = "y"}) {
  %0 = dist.exchange reducing sum %x pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] round 0 over <@mesh {a}> : (tensor<12xf32>) -> tensor<12xf32>
  %1 = dist.exchange %0 pieces 2 length 1 to [1, 0] send [0, 1] from [1, 0] receive [1, 0] round 1 over <@mesh {a}> : (tensor<12xf32>) -> tensor<12xf32>
  return %1 : tensor<12xf32>
}

// -----

// CHECK-LABEL: exec.program @roots
// CHECK: exec.broadcast %[[X:.*]] to %[[B:.*]] root 1 over ["a"]
// CHECK: exec.reduce {{ ?}}sum %[[B]] to %{{.*}} root 0 over ["a"]
// CHECK: exec.gather %{{.*}} to %{{.*}} root 0 over ["a"] : memref<4x3xf32> to memref<8x3xf32>
// CHECK: exec.scatter %{{.*}} to %{{.*}} root 1 over ["a"] : memref<4x3xf32> to memref<2x3xf32>
// CHECK: exec.permute %[[X]] to %{{.*}} from [1, 0] over ["a"]
// CHECK: exec.send %[[X]] to 1 channel 2 over ["a"] buffer %[[BUFFER:.*]] : memref<1x4x3xf32>, memref<48xi8>
// CHECK: exec.recv from 1 channel 2 over ["a"] to %{{.*}}
// CHECK: exec.finish_sends %[[BUFFER]] : memref<48xi8>
dist.mesh @mesh ["a" = 2]
func.func @roots(%x: tensor<1x4x3xf32> {train.input = "x"}) -> (tensor<1x4x3xf32> {train.output = "r"}, tensor<1x8x3xf32> {train.output = "g"}, tensor<1x2x3xf32> {train.output = "s"}, tensor<1x4x3xf32> {train.output = "p"}, tensor<1x4x3xf32> {train.output = "m"}) {
  %0 = dist.broadcast %x root 1 over <@mesh {a}> : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %1 = dist.reduce sum %0 root 0 over <@mesh {a}> : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %2 = dist.gather %0 dim 1 root 0 over <@mesh {a}> : (tensor<1x4x3xf32>) -> tensor<1x8x3xf32>
  %3 = dist.scatter %0 dim 1 root 1 over <@mesh {a}> : (tensor<1x4x3xf32>) -> tensor<1x2x3xf32>
  %4 = dist.permute %x from [1, 0] over <@mesh {a}> : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  dist.send %x to 1 channel 2 over <@mesh {a}> : tensor<1x4x3xf32>
  %5 = dist.recv from 1 channel 2 over <@mesh {a}> : tensor<1x4x3xf32>
  return %1, %2, %3, %4, %5 : tensor<1x4x3xf32>, tensor<1x8x3xf32>, tensor<1x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x3xf32>
}

// -----

// A carried value that becomes a window of itself is saved first.
// CHECK-LABEL: exec.program @own
// CHECK: exec.loop
// CHECK-NEXT: exec.copy %[[C:.*]] to %[[SAVED:.*]] :
// CHECK: exec.copy %{{.*}} to %[[C]] :
func.func @own(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<8xf32> {train.output = "y"}) {
  %y = exec.loop %i = 2 carry(%c = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %0 = train.reshape %c : (tensor<8xf32>) -> tensor<1x8xf32>
    %1 = dist.take %0 at 0 : (tensor<1x8xf32>) -> tensor<8xf32>
    exec.yield %1 : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// -----

// A part is not written over while another one of the same value is read.
// CHECK-LABEL: exec.program @kept_inside
// CHECK: exec.buffer "temporary.0" temporary : memref<8xf32>
// CHECK: %[[T:.*]] = exec.buffer "temporary.1" temporary : memref<4xf32>
// CHECK: exec.launch @sum ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%[[T]] : memref<4xf32>)
dist.mesh @mesh ["a" = 2]
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]}
func.func private @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = [[0, 0], [1, 0]]}
func.func private @aside(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func @kept_inside(%x: tensor<8xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "y"}) {
  %0 = exec.launch @twice ins(%x : tensor<8xf32>) -> tensor<8xf32>
  %1 = dist.slice %0 dim 0 over <@mesh {a}> : (tensor<8xf32>) -> tensor<4xf32>
  %2 = train.slice %0 rows 4 : (tensor<8xf32>) -> tensor<4xf32>
  %3 = exec.launch @sum ins(%1, %2 : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = exec.launch @aside ins(%3 : tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// Messages of one channel share a buffer of the size of the largest, those of another one have theirs.
// CHECK-LABEL: exec.program @channels
// CHECK: exec.send %{{.*}} to 1 channel 1 over ["a"] buffer %[[A:.*]] : memref<4xf32>, memref<48xi8>
// CHECK: exec.send %{{.*}} to 1 channel 1 over ["a"] buffer %[[A]] : memref<12xf32>, memref<48xi8>
// CHECK: exec.send %{{.*}} to 1 channel 2 over ["a"] buffer %[[B:.*]] : memref<4xf32>, memref<16xi8>
// CHECK: exec.finish_sends %[[A]], %[[B]]
dist.mesh @mesh ["a" = 2]
func.func @channels(%x: tensor<4xf32> {train.input = "x"}, %y: tensor<12xf32> {train.input = "y"}) {
  dist.send %x to 1 channel 1 over <@mesh {a}> : tensor<4xf32>
  dist.send %y to 1 channel 1 over <@mesh {a}> : tensor<12xf32>
  dist.send %x to 1 channel 2 over <@mesh {a}> : tensor<4xf32>
  return
}
