// RUN: meshwright compile %s --target stablehlo --emit step -o - | FileCheck %s
// Rows are put into order by stable sorts. Each of a block's two experts multiplies all rows, in a loop that keeps its own.

// CHECK: sym_name = "main"
// CHECK: ^bb0(%[[MASK:.*]]: tensor<2x3x4xf32>, %[[X:.*]]: tensor<2x2x3x8xf32>, %[[W:.*]]: tensor<4x5x8xf32>, %[[DY:.*]]: tensor<2x2x3x5xf32>):
// The experts of each token, those that it has not chosen behind all.
// CHECK: "stablehlo.sort"(%{{[0-9]+}}) ({
// CHECK: comparison_direction LT
// CHECK: {dimension = 1 : i64, is_stable = true} : (tensor<6x4xi32>) -> tensor<6x4xi32>
// CHECK: "stablehlo.slice"({{.*}}) {limit_indices = array<i64: 6, 1>
// CHECK: "stablehlo.sort"(%{{[0-9]+}}, %{{[0-9]+}}) ({
// CHECK: {dimension = 0 : i64, is_stable = true} : (tensor<6xi32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>)
// CHECK: "stablehlo.reshape"(%[[X]]) : (tensor<2x2x3x8xf32>) -> tensor<2x6x8xf32>
// CHECK: "stablehlo.reshape"(%[[W]]) : (tensor<4x5x8xf32>) -> tensor<2x2x5x8xf32>
// CHECK: "stablehlo.while"
// CHECK: value = dense<2> : tensor<i32>
// CHECK: "stablehlo.dynamic_slice"({{.*}}) {slice_sizes = array<i64: 2, 1, 5, 8>}
// CHECK: "stablehlo.dot_general"
// CHECK-SAME: lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]
// CHECK: "stablehlo.select"
// CHECK: "stablehlo.while"
// CHECK: "stablehlo.select"
// CHECK: "stablehlo.select"
// CHECK: "stablehlo.dot_general"
// CHECK-SAME: lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]
// CHECK: "stablehlo.dynamic_update_slice"
module attributes {meshwright.phase = "step"} {
  func.func @eval(%x: tensor<2x2x3x8xf32> {train.input = "x"}) -> (tensor<2x2x3x8xf32> {train.output = "y"}) {
    return %x : tensor<2x2x3x8xf32>
  }
  func.func @step(%mask: tensor<2x3x4xf32> {train.input = "mask"}, %x: tensor<2x2x3x8xf32> {train.input = "x"},
                  %w: tensor<4x5x8xf32> {train.input = "w"}, %dy: tensor<2x2x3x5xf32> {train.input = "dy"})
      -> (tensor<2x2x3x5xf32> {train.output = "y"}, tensor<4x5x8xf32> {train.output = "dw"}) {
    %chosen, %rows, %choices, %experts = train.route %mask k 1 blocks 2 slots 3
      : (tensor<2x3x4xf32>) -> (tensor<1x2x3xi32>, tensor<1x2x3xi32>, tensor<2x2x3xi32>, tensor<2x2x3xi32>)
    %y = train.grouped_linear %x, %w of %experts
      : (tensor<2x2x3x8xf32>, tensor<4x5x8xf32>, tensor<2x2x3xi32>) -> tensor<2x2x3x5xf32>
    %dw = train.grouped_linear_grad %dy, %x of %experts init %w count 4
      : (tensor<2x2x3x5xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3xi32>, tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
    return %y, %dw : tensor<2x2x3x5xf32>, tensor<4x5x8xf32>
  }
}
