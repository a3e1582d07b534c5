// RUN: meshwright-opt %s --exec-assign-value-ids | FileCheck %s
// RUN: meshwright-opt %s --exec-assign-value-ids --exec-bufferize | FileCheck %s --check-prefix=MEMORY

// BEGIN EXAMPLE --exec-assign-value-ids --exec-bufferize
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @step(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "y"}) {
  %y = exec.loop %i = 3 carry(%c = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %d = exec.launch @double ins(%c : tensor<4xf32>) -> tensor<4xf32>
    exec.yield %d : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
// END EXAMPLE

// The module keeps its text, numbers included.
// CHECK: module attributes {exec.tensor_form = "{{.*}}exec.value_id = 0 : i64
// CHECK: exec.loop
// CHECK-NOT: exec.value_id = 1
// CHECK: exec.launch @double {{.*}}{exec.value_id = 0 : i64}

// MEMORY: exec.program @step
// MEMORY: exec.loop
// MEMORY: exec.launch @double
// MEMORY-NEXT: exec.observe {{.*}} as 0 result 0 : memref<4xf32>
