// A batch of 8 sequences in two microbatches: a table in which rows are looked up, layers, and a head.
module attributes {train.batch = 8 : i64, train.microbatches = 2 : i64, train.vocabulary = 16 : i64} {
  train.variable @table : tensor<16x8xf32> init <"normal", 1.0> storage <"table">
  train.variable @w : tensor<3x8x8xf32> stacked init <"normal", 1.0> storage <"{layer}.w">
  train.variable @head : tensor<10x8xf32> init <"normal", 1.0> storage <"head">
  train.variable @v : tensor<10xf32> init <"normal", 1.0> storage <"v">
  func.func private @layer(%x: tensor<4x2x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x2x8xf32> {
    %y = train.linear %x, %w : (tensor<4x2x8xf32>, tensor<8x8xf32>) -> tensor<4x2x8xf32>
    %z = train.silu %y : (tensor<4x2x8xf32>) -> tensor<4x2x8xf32>
    return %z : tensor<4x2x8xf32>
  }
  func.func @loss(%tokens: tensor<4x2xi32> {train.input = "tokens"}) -> tensor<f32> {
    %table = train.get @table : tensor<16x8xf32>
    %w = train.get @w : tensor<3x8x8xf32>
    %head = train.get @head : tensor<10x8xf32>
    %v = train.get @v : tensor<10xf32>
    %x = train.embedding %table, %tokens : (tensor<16x8xf32>, tensor<4x2xi32>) -> tensor<4x2x8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<4x2x8xf32>, tensor<3x8x8xf32>) -> tensor<4x2x8xf32>
    %z = train.linear %y, %head : (tensor<4x2x8xf32>, tensor<10x8xf32>) -> tensor<4x2x10xf32>
    %scaled = train.mul %z, %v : (tensor<4x2x10xf32>, tensor<10xf32>) -> tensor<4x2x10xf32>
    %loss = train.reduce sum %scaled over [0, 1, 2] : (tensor<4x2x10xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
