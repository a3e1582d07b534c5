// RUN: meshwright compile %s --target stablehlo --emit step -o - | FileCheck %s
// In a window of 2 are the keys at a distance of less than that; in chunks of 2 those from a position on that has no
// remainder.

// CHECK: sym_name = "main"
// CHECK: %[[QUERY:.*]] = "stablehlo.iota"() {{.*}}iota_dimension = 3
// CHECK: %[[KEY:.*]] = "stablehlo.iota"() {{.*}}iota_dimension = 4
// CHECK: "stablehlo.compare"(%[[KEY]], %[[QUERY]]) {{.*}}comparison_direction LE
// CHECK: %[[FAR:.*]] = "stablehlo.constant"() {{.*}}value = dense<2>
// CHECK: %[[APART:.*]] = "stablehlo.subtract"(%[[QUERY]], %[[KEY]])
// CHECK: "stablehlo.compare"(%[[APART]], %[[FAR]]) {{.*}}comparison_direction LT
// CHECK: %[[PLACE:.*]] = "stablehlo.iota"() {{.*}}iota_dimension = 1{{.*}}tensor<1x4xi32>
// CHECK: %[[CHUNK:.*]] = "stablehlo.constant"() {{.*}}value = dense<2>
// CHECK: %[[IN:.*]] = "stablehlo.remainder"(%[[PLACE]], %[[CHUNK]])
// CHECK: "stablehlo.subtract"(%[[PLACE]], %[[IN]])
// CHECK: comparison_direction GE
// Targets that are negative are none of the columns.
// CHECK: "stablehlo.bitcast_convert"({{.*}}tensor<3xui32>
// CHECK: "stablehlo.compare"({{.*}}comparison_type UNSIGNED
module attributes {meshwright.phase = "step"} {
  func.func @eval(%x: tensor<3xf32> {train.input = "x"}) -> (tensor<3xf32> {train.output = "y"}) {
    return %x : tensor<3xf32>
  }
  func.func @step(%q: tensor<1x4x2x8xf32> {train.input = "q"}, %x: tensor<3xf32> {train.input = "x"}, %t: tensor<3xi32> {train.input = "t"})
      -> (tensor<1x4x2x8xf32> {train.output = "y"}, tensor<f32> {train.output = "loss"}) {
    %out, %lse = train.attention %q, %q, %q scale 0.5 causal window 2 : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
    %in, %lse_in = train.attention %q, %out, %out scale 0.5 causal chunk 2 : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
    %loss, %kept = train.token_loss %x, %x, %t below 2 scale 0.5 : (tensor<3xf32>, tensor<3xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    return %in, %loss : tensor<1x4x2x8xf32>, tensor<f32>
  }
}
