// A small model as one program, and in two.mlir cut into two that call their parts.
module attributes {train.model = "tiny", train.config = "", train.batch = 4 : i64, train.sequence = 8 : i64,
    train.microbatches = 2 : i64, train.vocabulary = 32 : i64, train.max_positions = 8 : i64} {
  train.variable @wte : tensor<32x16xf32> init <"normal", 0.3 : f64> storage <"wte.weight">
  train.variable @head : tensor<32x16xf32> init <"normal", 0.3 : f64> storage <"head.weight">
  func.func @loss(%tokens: tensor<2x8xi32> {train.input = "tokens"}, %targets: tensor<2x8xi32> {train.input = "targets"}) -> (tensor<f32> {train.output = "loss"}) {
    %w = train.get @wte : tensor<32x16xf32>
    %h = train.get @head : tensor<32x16xf32>
    %x = train.embedding %w, %tokens : (tensor<32x16xf32>, tensor<2x8xi32>) -> tensor<2x8x16xf32>
    %y = train.gelu %x : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %logits = train.linear %y, %h : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<2x8x32xf32>, tensor<2x8xi32>) -> (tensor<f32>, tensor<2x8xf32>)
    return %loss : tensor<f32>
  }
}
