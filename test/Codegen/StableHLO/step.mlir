// RUN: meshwright compile %s --target stablehlo --emit step -o - | FileCheck %s
// RUN: not meshwright compile %s --target stablehlo --emit exec -o - 2>&1 | FileCheck %s --check-prefix=EXIT
// EXIT: --emit exec is not supported; --target stablehlo has step, dist, local

// CHECK: // argument 0: train.variable @w : tensor<4x8xf32>
// CHECK: // result 0: @w
// CHECK: // argument 1: input x : tensor<3x8xf32>
// CHECK: // argument 2: input ids : tensor<3xi32>
// CHECK: // result 1: output y : tensor<3x4xf32>
// CHECK: "func.func"() <{function_type = (tensor<4x8xf32>, tensor<3x8xf32>, tensor<3xi32>) -> (tensor<4x8xf32>, tensor<3x4xf32>, tensor<4x8xf32>)
// CHECK-SAME: sym_name = "main"
// CHECK: ^bb0(%[[W:.*]]: tensor<4x8xf32>, %[[X:.*]]: tensor<3x8xf32>, %[[IDS:.*]]: tensor<3xi32>):
// CHECK: %[[P:.*]] = "stablehlo.dot_general"(%[[X]], %[[W]])
// CHECK-SAME: lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]
// CHECK: "stablehlo.while"
// CHECK: "func.call"
// CHECK-SAME: callee = @twice
// CHECK: "stablehlo.multiply"(%[[W]],
// Ids that point nowhere are -1.
// CHECK: %[[NONE:.*]] = "stablehlo.constant"() {value = dense<-1> : tensor<i32>}
// CHECK-NEXT: "stablehlo.pad"(%[[IDS]], %[[NONE]])
module attributes {meshwright.phase = "step"} {
  train.variable @w : tensor<4x8xf32> init <"constant", 0.0 : f64> storage <"w">
  func.func private @twice(%x: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {train.role = #train.role<forward>} {
    %y = train.add %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    return %y : tensor<3x4xf32>
  }
  func.func @eval(%x: tensor<3x8xf32> {train.input = "x"}) -> (tensor<3x4xf32> {train.output = "y"}) {
    %w = train.get @w : tensor<4x8xf32>
    %y = train.linear %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    return %y : tensor<3x4xf32>
  }
  func.func @step(%x: tensor<3x8xf32> {train.input = "x"}, %ids: tensor<3xi32> {train.input = "ids"})
      -> (tensor<3x4xf32> {train.output = "y"}, tensor<4x8xf32> {train.output = "rows"}) {
    %w = train.get @w : tensor<4x8xf32>
    %y = train.linear %x, %w : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    %z = train.repeat @twice x 5 carry(%y) each() shared() {train.role = #train.role<forward>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %half = train.scale %w by 0.5 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    train.set @w, %half : tensor<4x8xf32>
    %padded = train.pad %ids rows 4 {value = -1 : i64} : (tensor<3xi32>) -> tensor<4xi32>
    %rows = train.embedding %w, %padded : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
    return %z, %rows : tensor<3x4xf32>, tensor<4x8xf32>
  }
}
