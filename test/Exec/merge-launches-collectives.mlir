// What waits for a collective and what does not, or waits for another one, is not launched together: the one can run
// while the other's memory is on its way.
// RUN: meshwright-opt %s --exec-assign-target=target=cuda --exec-merge-launches | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[R:.*]] = dist.all_reduce sum %arg2
// CHECK: %[[S:.*]]:2 = dist.all_reduce sum %arg3, %arg4
// CHECK-NEXT: exec.launch @k ins(%[[R]] : {{.*}}) -> tensor<8xf32>
// CHECK-NEXT: exec.launch @k.all ins(%arg0, %arg1 :
// CHECK-NEXT: exec.launch @k.all_0 ins(%[[S]]#0, %[[S]]#1 :
// CHECK-NEXT: return
module {
  dist.mesh @mesh ["a" = 2]
  func.func @step(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>, %e: tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %r = dist.all_reduce sum %c over <@mesh {a}> : (tensor<8xf32>) -> tensor<8xf32>
    %s:2 = dist.all_reduce sum %d, %e over <@mesh {a}> : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %0 = exec.launch @k ins(%a : tensor<8xf32>) -> tensor<8xf32>
    %1 = exec.launch @k ins(%r : tensor<8xf32>) -> tensor<8xf32>
    %2 = exec.launch @k ins(%s#0 : tensor<8xf32>) -> tensor<8xf32>
    %3 = exec.launch @k ins(%b : tensor<8xf32>) -> tensor<8xf32>
    %4 = exec.launch @k ins(%s#1 : tensor<8xf32>) -> tensor<8xf32>
    return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
    %y = arith.mulf %x, %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
