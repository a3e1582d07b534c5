// RUN: meshwright compile %s --target stablehlo --emit local -o - | FileCheck %s
// The part that ranks further on have comes round.

// CHECK-DAG: value = dense<[2, 4, 0, 2, 4, 0]> : tensor<6xi32>
// CHECK-DAG: value = dense<[10, 0, 5, 10, 0, 5]> : tensor<6xi32>
module attributes {meshwright.phase = "local"} {
  dist.mesh @mesh ["data" = 2, "tensor" = 3]
  func.func @eval(%x: tensor<6x4xf32> {train.input = "x"}) -> (tensor<6x4xf32> {train.output = "y"}) {
    return %x : tensor<6x4xf32>
  }
  func.func @step(%x: tensor<6x4xf32> {train.input = "x"}) -> (tensor<2x4xf32> {train.output = "y"}, tensor<i32> {train.output = "at"}) {
    %0 = dist.slice %x dim 0 shift 1 over <@mesh {tensor}> : (tensor<6x4xf32>) -> tensor<2x4xf32>
    %1 = dist.offset 5 shift 2 over <@mesh {tensor}> : tensor<i32>
    return %0, %1 : tensor<2x4xf32>, tensor<i32>
  }
}
