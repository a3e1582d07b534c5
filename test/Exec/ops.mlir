// RUN: split-file %s %t
// RUN: meshwright-opt %t/valid.mlir | meshwright-opt | FileCheck %t/valid.mlir
// RUN: meshwright-opt %t/invalid.mlir --split-input-file --verify-diagnostics

//--- valid.mlir
func.func private @k(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel, exec.workspace = 64 : i64}

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<4x8xf32>, %w: tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) {
  // CHECK: %{{.*}}:2 = exec.loop %[[I:.*]] = 3 reverse carry(%[[C:.*]] = %arg0) each(%{{.*}} = %arg1) : (tensor<4x8xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) {
  %y, %s = exec.loop %i = 3 reverse carry(%c = %x) each(%e = %w) : (tensor<4x8xf32>, tensor<3x8xf32>) -> (tensor<4x8xf32>, tensor<3x4x8xf32>) {
    // CHECK: exec.index %[[I]] : tensor<i32>
    %n = exec.index %i : tensor<i32>
    // CHECK: exec.copy %[[C]] : tensor<4x8xf32> -> tensor<4x8xf32>
    %0 = exec.copy %c : tensor<4x8xf32> -> tensor<4x8xf32>
    // CHECK: exec.launch @k ins(%{{.*}} : tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = exec.launch @k ins(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: exec.yield %{{.*}}, %[[C]] : tensor<4x8xf32>, tensor<4x8xf32>
    exec.yield %1, %c : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %y, %s : tensor<4x8xf32>, tensor<3x4x8xf32>
}

// CHECK-LABEL: exec.program @memory
exec.program @memory {
  // CHECK: exec.buffer "x" {{ ?}}input input "x" offset 128 : memref<4x8xf32>
  %x = exec.buffer "x" input input "x" offset 128 : memref<4x8xf32>
  %y = exec.buffer "y" temporary : memref<3x4x8xf32>
  %n = exec.buffer "n" temporary : memref<i32>
  %w = exec.buffer "w" workspace : memref<64xi8>
  // CHECK: exec.loop %[[I:.*]] = 3 {
  // CHECK-NOT: exec.yield
  exec.loop %i = 3 {
    // CHECK: exec.store_index %[[I]], %{{.*}} : memref<i32>
    exec.store_index %i, %n : memref<i32>
    // CHECK: %[[S:.*]] = exec.slot %{{.*}}[%[[I]]] : memref<3x4x8xf32> -> memref<4x8xf32>
    %s = exec.slot %y[%i] : memref<3x4x8xf32> -> memref<4x8xf32>
    // CHECK: %[[M:.*]] = exec.shift %[[I]] mirrored by 0
    // CHECK: exec.slot %{{.*}}[%[[M]]]
    %m = exec.shift %i mirrored by 0
    %last = exec.slot %y[%m] : memref<3x4x8xf32> -> memref<4x8xf32>
    // CHECK: exec.launch @k ins(%{{.*}} : memref<4x8xf32>) outs(%[[S]] : memref<4x8xf32>) workspace(%{{.*}} : memref<64xi8>)
    exec.launch @k ins(%x : memref<4x8xf32>) outs(%s : memref<4x8xf32>) workspace(%w : memref<64xi8>)
  }
  // CHECK: exec.loop %{{.*}} = 4 times(%{{.*}} : memref<i32>) from 1 {
  exec.loop %r = 4 times(%n : memref<i32>) from 1 {
    exec.launch @k ins(%x : memref<4x8xf32>) outs(%x : memref<4x8xf32>) workspace(%w : memref<64xi8>)
  }
  // CHECK: exec.view %{{.*}} : memref<3x4x8xf32> -> memref<2x16xf32>
  %v = exec.view %y : memref<3x4x8xf32> -> memref<2x16xf32>
  %g = exec.buffer "g" gradient : memref<6x16xf32>
  // CHECK: exec.copy
  exec.copy %v to %v : memref<2x16xf32> to memref<2x16xf32>
  // CHECK: exec.all_gather %{{.*}} to %{{.*}} over ["data"] : memref<2x16xf32> to memref<6x16xf32>
  exec.all_gather %v to %g over ["data"] : memref<2x16xf32> to memref<6x16xf32>
  // CHECK: exec.reduce_scatter {{ ?}}max
  exec.reduce_scatter max %g to %v over ["data"] : memref<6x16xf32> to memref<2x16xf32>
  // CHECK: exec.all_reduce {{ ?}}sum
  exec.all_reduce sum %g to %g over ["data", "replica"] : memref<6x16xf32> to memref<6x16xf32>
  // CHECK: exec.all_to_all
  exec.all_to_all %g to %g over ["data"] : memref<6x16xf32> to memref<6x16xf32>
  // CHECK: exec.all_reduce sum %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} over ["data"] : memref<6x16xf32>, memref<2x16xf32> to memref<6x16xf32>, memref<2x16xf32>
  exec.all_reduce sum %g, %v to %g, %v over ["data"] : memref<6x16xf32>, memref<2x16xf32> to memref<6x16xf32>, memref<2x16xf32>
  // CHECK: exec.permute %{{.*}} to %{{.*}} from [1, 2, 0] over ["data"]
  exec.permute %g to %g from [1, 2, 0] over ["data"] : memref<6x16xf32> to memref<6x16xf32>
  // CHECK: exec.broadcast %{{.*}} to %{{.*}} root 1 over ["data"]
  exec.broadcast %v to %v root 1 over ["data"] : memref<2x16xf32> to memref<2x16xf32>
  // CHECK: exec.reduce sum %{{.*}} to %{{.*}} root 1 over ["data"]
  exec.reduce sum %v to %v root 1 over ["data"] : memref<2x16xf32> to memref<2x16xf32>
  // CHECK: exec.gather %{{.*}} to %{{.*}} root 2 over ["data"] : memref<2x16xf32> to memref<6x16xf32>
  exec.gather %v to %g root 2 over ["data"] : memref<2x16xf32> to memref<6x16xf32>
  // CHECK: exec.scatter %{{.*}} to %{{.*}} root 0 over ["data"] : memref<6x16xf32> to memref<2x16xf32>
  exec.scatter %g to %v root 0 over ["data"] : memref<6x16xf32> to memref<2x16xf32>
  // CHECK: exec.send %{{.*}} to 1 channel 0 over ["data"] buffer %{{.*}}
  exec.send %v to 1 channel 0 over ["data"] buffer %v : memref<2x16xf32>, memref<2x16xf32>
  // CHECK: exec.exchange reducing sum %{{.*}} pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] workspace(%{{.*}} : memref<64xi8>)
  %ws = exec.buffer "ws" workspace : memref<64xi8>
  exec.exchange reducing sum %v pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1]
      over ["data"] workspace(%ws : memref<64xi8>) : memref<2x16xf32>
  // CHECK: exec.finish_sends %{{.*}} : memref<2x16xf32>
  exec.finish_sends %v : memref<2x16xf32>
  // CHECK: exec.recv from 0 channel 0 over ["data"] to %{{.*}} : memref<2x16xf32>
  exec.recv from 0 channel 0 over ["data"] to %v : memref<2x16xf32>
}

// CHECK-LABEL: @experts
exec.program @experts {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  %x = exec.buffer "x" temporary : memref<3x2x5x8xf32>
  %y = exec.buffer "y" temporary : memref<3x2x5x16xf32>
  %w = exec.buffer "w" temporary : memref<6x16x8xf32>
  %scratch = exec.buffer "scratch" temporary : memref<64xi8>
  // CHECK: exec.route %{{.*}} workspace(%{{.*}}) :
  exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch) : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<64xi8>) -> ()
  // CHECK: exec.route %{{.*}} to %
  exec.route %mask to %chosen, %rows, %choices, %experts : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>) -> ()
  %n = exec.buffer "n" temporary : memref<i32>
  %own_choices = exec.buffer "own_choices" temporary : memref<3x2x2xi32>
  %own_experts = exec.buffer "own_experts" temporary : memref<3x2x2xi32>
  // CHECK: exec.rounds %{{.*}} to %{{.*}} slots 2 :
  exec.rounds %choices to %n slots 2 : (memref<3x2x5xi32>, memref<i32>) -> ()
  // CHECK: exec.loop %{{.*}} = 3 times(%{{.*}} : memref<i32>) {
  exec.loop %i = 3 times(%n : memref<i32>) {
    // CHECK: exec.rows_of_round of %{{.*}} to {{.*}} part 2 of 3 :
    exec.rows_of_round of %rows, %choices, %experts to %chosen, %own_choices, %own_experts part 2 of 3 : (memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<3x2x4xi32>, memref<3x2x2xi32>, memref<3x2x2xi32>) -> ()
    // CHECK: exec.rows_of_round %{{.*}} of %{{.*}} to
    exec.rows_of_round %n of %rows, %choices, %experts to %chosen, %own_choices, %own_experts : (memref<i32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<3x2x4xi32>, memref<3x2x2xi32>, memref<3x2x2xi32>) -> ()
  }
  // CHECK: exec.grouped_matmul %{{.*}}, %{{.*}} of %{{.*}} to %{{[0-9]+}} :
  exec.grouped_matmul %x, %w of %experts to %y : (memref<3x2x5x8xf32>, memref<6x16x8xf32>, memref<3x2x5xi32>, memref<3x2x5x16xf32>) -> ()
  // CHECK: exec.grouped_matmul %{{.*}} transposed :
  exec.grouped_matmul %y, %w of %experts to %x transposed : (memref<3x2x5x16xf32>, memref<6x16x8xf32>, memref<3x2x5xi32>, memref<3x2x5x8xf32>) -> ()
  // CHECK: exec.grouped_matmul_grad %{{.*}} accumulates :
  exec.grouped_matmul_grad %y, %x of %experts to %w accumulates : (memref<3x2x5x16xf32>, memref<3x2x5x8xf32>, memref<3x2x5xi32>, memref<6x16x8xf32>) -> ()
}

//--- invalid.mlir
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{attribute 'exec.gradients' is array<i64: 1>; expected numbers of the 1 inputs of a launch}}
  %0 = exec.launch @k ins(%x : tensor<4xf32>) {exec.gradients = array<i64: 1>} -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{names @missing, which is not a kernel}}
  %0 = exec.launch @missing ins(%x : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{input 0 is 'tensor<8xf32>' but @k has 'tensor<4xf32>'}}
  %0 = exec.launch @k ins(%x : tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.workspace = 256 : i64}
exec.program @p {
  %x = exec.buffer "x" temporary : memref<4xf32>
  // expected-error @below {{gives 0 bytes of workspace but @k needs 256}}
  exec.launch @k ins(%x : memref<4xf32>) outs(%x : memref<4xf32>)
}

// -----

exec.program @p {
  // expected-error @below {{'x' lies at 32, not at a multiple of 64}}
  %x = exec.buffer "x" temporary offset 32 : memref<4xf32>
}

// -----

exec.program @p {
  // expected-error @below {{'x' can be a variable, an input or an output, not several}}
  %x = exec.buffer "x" input input "x" output "y" : memref<4xf32>
}

// -----

exec.program @p {
  %x = exec.buffer "x" temporary : memref<4x8xf32>
  exec.loop %i = 5 {
    // expected-error @below {{counts to 5 but 'memref<4x8xf32>' has 4 slots}}
    %s = exec.slot %x[%i] : memref<4x8xf32> -> memref<8xf32>
  }
}

// -----

exec.program @p {
  %x = exec.buffer "x" temporary : memref<4x8xf32>
  exec.loop %i = 4 {
    // expected-error @below {{gives 'memref<4xf32>', which is not a slice of 'memref<4x8xf32>'}}
    %s = exec.slot %x[%i] : memref<4x8xf32> -> memref<4xf32>
  }
}

// -----

exec.program @p {
  %x = exec.buffer "x" temporary : memref<4x8xf32>
  // expected-error @below {{gives 'memref<33xf32>', which 'memref<4x8xf32>' does not hold}}
  %v = exec.view %x : memref<4x8xf32> -> memref<33xf32>
}

// -----

exec.program @p {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  %b = exec.buffer "b" temporary : memref<8x8xf32>
  %c = exec.buffer "c" temporary : memref<4x7xf32>
  // expected-error @below {{c reaches element 32 of 'memref<4x7xf32>'}}
  exec.matmul %a, %b, %c trans(false, false) sizes(4, 8, 8) ld(8, 8, 8) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x7xf32>
}

// -----

exec.program @p {
  %a = exec.buffer "a" temporary : memref<8x8xf32>
  // expected-error @below {{cannot write over one of its factors}}
  exec.matmul %a, %a, %a trans(false, false) sizes(8, 8, 8) ld(8, 8, 8) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
}

// -----

exec.program @p {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  %b = exec.buffer "b" temporary : memref<9x8xf32>
  // expected-error @below {{turns 'memref<4x8xf32>' into 'memref<9x8xf32>'; only the first dimension may differ}}
  exec.all_gather %a to %b over ["data"] : memref<4x8xf32> to memref<9x8xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{needs a body that yields one value per result}}
  %0 = exec.loop %i = 2 carry(%c = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    exec.yield
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<3x8xf32> {
  // expected-error @below {{stacks 'tensor<4xf32>' 3 times into 'tensor<3x8xf32>'}}
  %0:2 = exec.loop %i = 3 carry(%c = %x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3x8xf32>) {
    exec.yield %c, %c : tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<3x8xf32>
}

// -----

exec.program @f {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  %b = exec.buffer "b" temporary : memref<4x8xi32>
  // expected-error @below {{moves tensors of one element type in a call, found 'memref<4x8xf32>' and 'memref<4x8xi32>'}}
  exec.all_reduce sum %a, %b to %a, %b over ["data"] : memref<4x8xf32>, memref<4x8xi32> to memref<4x8xf32>, memref<4x8xi32>
}

// -----

exec.program @f {
  %a = exec.buffer "a" temporary : memref<9xf32>
  // expected-error @below {{gives 'memref<4xf32>', which is no equal part of 'memref<9xf32>'}}
  %b = exec.window %a over ["data"] : memref<9xf32> -> memref<4xf32>
}

// -----

exec.program @f {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  exec.loop %i = 4 {
    %next = exec.shift %i by 1
    // expected-error @below {{counts to 5 but 'memref<4x8xf32>' has 4 slots}}
    %s = exec.slot %a[%next] : memref<4x8xf32> -> memref<8xf32>
  }
}

// -----

exec.program @f {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  exec.loop %i = 4 {
    exec.when %i from 0 to 3 {
      %before = exec.shift %i by -1
      // expected-error @below {{counts from -1; slots are numbered from 0}}
      %s = exec.slot %a[%before] : memref<4x8xf32> -> memref<8xf32>
    }
  }
}

// -----

exec.program @f {
  %a = exec.buffer "a" temporary : memref<4x8xf32>
  exec.loop %i = 4 {
    %turn = exec.shift %i by 1 modulo 5
    // expected-error @below {{takes 5 slots in turns but 'memref<4x8xf32>' has 4}}
    %s = exec.slot %a[%turn] : memref<4x8xf32> -> memref<8xf32>
  }
}

// -----

exec.program @f {
  exec.loop %i = 4 {
    // expected-error @below {{is about iterations 0 to 5 of a loop with 4}}
    exec.when %i from 0 to 5 {
    }
  }
}

// -----

exec.program @f {
  exec.loop %i = 4 {
    // expected-error @below {{takes the remainder of 0}}
    %turn = exec.shift %i by 1 modulo 0
  }
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x5xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  // expected-error @below {{cannot put rows into 'memref<3x2x5xi32>'; expected [blocks, b, slots] with blocks of equally many experts}}
  exec.route %mask to %chosen, %rows, %choices, %experts : (memref<2x4x5xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>) -> ()
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  // expected-error @below {{cannot write 'memref<3x2x5xi32>' of 'memref<2x4x6xf32>' and 'memref<3x2x4xi32>'}}
  exec.route %mask to %chosen, %experts, %choices, %experts : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>) -> ()
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<2x2x536870912xi32>
  // expected-error @below {{cannot number 2147483648 choices or rows by i32; use fewer sequences, or --expert-capacity}}
  exec.route %mask to %chosen, %chosen, %choices, %choices : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<2x2x536870912xi32>, memref<2x2x536870912xi32>) -> ()
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  %x = exec.buffer "x" temporary : memref<3x2x5x8xf32>
  %y = exec.buffer "y" temporary : memref<3x2x5x16xf32>
  %w = exec.buffer "w" temporary : memref<6x16x8xf32>
  // expected-error @below {{cannot multiply 'memref<3x2x5x8xf32>' to 'memref<3x2x5x16xf32>' by 'memref<6x16x8xf32>'}}
  exec.grouped_matmul %x, %w of %experts to %y transposed : (memref<3x2x5x8xf32>, memref<6x16x8xf32>, memref<3x2x5xi32>, memref<3x2x5x16xf32>) -> ()
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  %x = exec.buffer "x" temporary : memref<3x2x5x8xf32>
  %y = exec.buffer "y" temporary : memref<3x2x5x16xf32>
  %w = exec.buffer "w" temporary : memref<6x16x8xf32>
  // expected-error @below {{by the experts 'memref<3x2x4xi32>'}}
  exec.grouped_matmul %x, %w of %rows to %y : (memref<3x2x5x8xf32>, memref<6x16x8xf32>, memref<3x2x4xi32>, memref<3x2x5x16xf32>) -> ()
}

// -----

exec.program @f {
  %mask = exec.buffer "mask" temporary : memref<2x4x6xf32>
  %chosen = exec.buffer "chosen" temporary : memref<3x2x4xi32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %experts = exec.buffer "experts" temporary : memref<3x2x5xi32>
  %x = exec.buffer "x" temporary : memref<3x2x5x8xf32>
  %y = exec.buffer "y" temporary : memref<3x2x5x16xf32>
  %w = exec.buffer "w" temporary : memref<6x16x8xf32>
  // expected-error @below {{cannot sum 'memref<3x2x5x8xf32>' times 'memref<3x2x5x16xf32>' to 'memref<6x16x8xf32>'}}
  exec.grouped_matmul_grad %x, %y of %experts to %w : (memref<3x2x5x8xf32>, memref<3x2x5x16xf32>, memref<3x2x5xi32>, memref<6x16x8xf32>) -> ()
}

// -----

exec.program @f {
  %n = exec.buffer "n" temporary : memref<2xi32>
  // expected-error @below {{takes the number of its iterations from 'memref<2xi32>'; expected one i32}}
  exec.loop %i = 3 times(%n : memref<2xi32>) {
  }
}

// -----

exec.program @f {
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  // expected-error @below {{cannot count rounds of 2 slots in 'memref<3x2x5xi32>' to 'memref<3x2x5xi32>'}}
  exec.rounds %choices to %choices slots 2 : (memref<3x2x5xi32>, memref<3x2x5xi32>) -> ()
}

// -----

exec.program @f {
  %n = exec.buffer "n" temporary : memref<i32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %own = exec.buffer "own" temporary : memref<2x2x2xi32>
  // expected-error @below {{a round has no part 2 of 2}}
  exec.rows_of_round %n of %rows, %choices, %choices to %rows, %own, %own part 2 of 2 : (memref<i32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<3x2x4xi32>, memref<2x2x2xi32>, memref<2x2x2xi32>) -> ()
}

// -----

exec.program @f {
  %n = exec.buffer "n" temporary : memref<i32>
  %rows = exec.buffer "rows" temporary : memref<3x2x4xi32>
  %choices = exec.buffer "choices" temporary : memref<3x2x5xi32>
  %own = exec.buffer "own" temporary : memref<2x2x2xi32>
  // expected-error @below {{cannot take 'memref<2x2x2xi32>' of a round from 'memref<3x2x5xi32>'}}
  exec.rows_of_round %n of %rows, %choices, %choices to %rows, %own, %own : (memref<i32>, memref<3x2x4xi32>, memref<3x2x5xi32>, memref<3x2x5xi32>, memref<3x2x4xi32>, memref<2x2x2xi32>, memref<2x2x2xi32>) -> ()
}

// -----

exec.program @f {
  // expected-error @below {{begins at iteration 1 of 3; only a loop with a number of iterations from data begins behind its first}}
  "exec.loop"() <{count = 3 : i64, from = 1 : i64, operandSegmentSizes = array<i32: 0, 0, 0>}> ({
  ^bb0(%i: index):
    exec.yield
  }) : () -> ()
}

// -----

// From the other end's number: 3, 2, 1.
exec.program @f {
  %y = exec.buffer "y" temporary : memref<3x4xf32>
  exec.loop %i = 3 {
    %m = exec.shift %i mirrored by 1
    // expected-error @below {{counts to 4 but 'memref<3x4xf32>' has 3 slots}}
    %s = exec.slot %y[%m] : memref<3x4xf32> -> memref<4xf32>
  }
}

// -----

exec.program private @f ins(%a: memref<4x8xf32>, %b: memref<8x8xf32>) outs(%c: memref<4x8xf32>) {
  // expected-error @below {{c has matrices -64 elements apart; they follow each other}}
  exec.matmul %a, %b, %c trans(false, false) sizes(2, 8, 8) ld(8, 8, 8) batch 2 strides(16, 0, -64) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x8xf32>
}

// -----

exec.program private @f ins(%a: memref<4x8xf32>, %b: memref<8x8xf32>) outs(%c: memref<4x8xf32>) {
  // expected-error @below {{a reaches element 2^63 of 'memref<4x8xf32>'}}
  exec.matmul %a, %b, %c trans(false, false) sizes(4, 8, 8) ld(9223372036854775807, 8, 8) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x8xf32>
}

// -----

exec.program private @f ins(%a: memref<4x8xf32>, %b: memref<8x8xf32>) outs(%c: memref<4x8xf32>) {
  // expected-error @below {{b reaches element 120 of 'memref<8x8xf32>'}}
  exec.matmul %a, %b, %c trans(false, false) sizes(4, 8, 8) ld(8, 16, 8) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x8xf32>
}

// -----

exec.program private @f ins(%a: memref<4x8xf32>, %b: memref<8x8xf32>) outs(%c: memref<4x8xf32>) {
  // expected-error @below {{does not write each element of c, 'memref<4x8xf32>', once: 1 matrices of 2 x 8 with rows 8 and matrices 0 elements apart}}
  exec.matmul %a, %b, %c trans(false, false) sizes(2, 8, 8) ld(8, 8, 8) batch 1 strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x8xf32>
}

// -----

exec.program private @f ins(%a: memref<4x8xf32>, %b: memref<8x8xf32>) outs(%c: memref<4x8xf32>) {
  // expected-error @below {{does not write each element of c, 'memref<4x8xf32>', once: 2 matrices of 2 x 8 with rows 8 and matrices 8 elements apart}}
  exec.matmul %a, %b, %c trans(false, false) sizes(2, 8, 8) ld(8, 8, 8) batch 2 strides(16, 0, 8) alpha 1.0 beta 0.0 : memref<4x8xf32>, memref<8x8xf32>, memref<4x8xf32>
}

// -----

exec.program @f {
  %n = exec.buffer "n" temporary : memref<i32>
  // expected-error @below {{of parts of -32 elements is not an index of 32 bits}}
  exec.store_offset -32 over ["data"] to %n : memref<i32>
}

// -----

exec.program @f {
  // expected-error @below {{'w' holds @k, which is not a train.variable}}
  %w = exec.buffer "w" parameter variable @k : memref<4xf32>
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}

// -----

train.variable @w : tensor<4xf32>
exec.program @f {
  // expected-error @below {{'w' is 'memref<8xf32>', but its variable @w is 'tensor<4xf32>'}}
  %w = exec.buffer "w" parameter variable @w : memref<8xf32>
}

// -----

exec.program private @f inouts(%x: memref<8xf32>) {
  // expected-error @below {{sends 1 of 0 pieces; at least one is sent of at least one}}
  exec.exchange %x pieces 0 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] : memref<8xf32>
}

// -----

exec.program private @f inouts(%x: memref<8xf32>) {
  // expected-error @below {{rank 0 sends to 7, which is not another rank of the group}}
  exec.exchange %x pieces 2 length 1 to [7, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] : memref<8xf32>
}

// -----

// expected-error @below {{attribute 'exec.inplace' is }}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = [[1, 0]]}

// -----

func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{attribute 'exec.inplace_aliases' is array<i64: 1>; expected numbers of the 1 operands of a call, or -1, for each of its 1 results}}
  %y = func.call @g(%x) {exec.inplace_aliases = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @below {{attribute 'exec.memory' is {rubbish = 4 : i64}; expected a dictionary of bytes by category}}
module attributes {exec.memory = {rubbish = 4 : i64}} {}
