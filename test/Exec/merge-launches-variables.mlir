// Two updates between which a read of a variable stands that the first one is written to are not launched together.
// RUN: meshwright-opt %s --exec-assign-target=target=cuda --exec-merge-launches | FileCheck %s

// CHECK-LABEL: func.func @read
// CHECK-NEXT: %[[NEW:.*]] = exec.launch @k ins(%arg0
// CHECK-NEXT: train.set @v, %[[NEW]]
// CHECK-NEXT: train.get @v
// CHECK-NEXT: exec.launch @k ins(%arg1
module {
  train.variable @v : tensor<8xf32> init <"constant", 0.0 : f64>
  func.func @read(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %0 = exec.launch @k ins(%a : tensor<8xf32>) -> tensor<8xf32>
    train.set @v, %0 : tensor<8xf32>
    %v = train.get @v : tensor<8xf32>
    %1 = exec.launch @k ins(%b : tensor<8xf32>) -> tensor<8xf32>
    return %v, %1 : tensor<8xf32>, tensor<8xf32>
  }
  func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel} {
    %y = arith.mulf %x, %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
