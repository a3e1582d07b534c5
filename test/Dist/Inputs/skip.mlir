// What pipeline stages do not have in a plain transformer: every layer reads the
// embedding and a weight that all layers share, and the head reads both again.
module attributes {
  train.model = "skip", train.config = "{}", train.batch = 8 : i64, train.sequence = 4 : i64, train.microbatches = 4 : i64,
  train.vocabulary = 16 : i64, train.max_positions = 4 : i64
} {
  train.variable @embed.weight : tensor<16x8xf32> init <"normal", 0.5 : f64> storage <"embed.weight">
  train.variable @all.weight : tensor<8x8xf32> init <"normal", 0.5 : f64> storage <"all.weight">
  train.variable @layers.weight : tensor<3x8x8xf32> stacked init <"normal", 0.5 : f64> storage <"layers.{layer}.weight">
  func.func private @layer(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %x0: tensor<2x4x8xf32>, %all: tensor<8x8xf32>) -> tensor<2x4x8xf32> {
    %a = train.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %b = train.gelu %a : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %c = train.linear %b, %all : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %y = train.add %c, %x0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %y : tensor<2x4x8xf32>
  }
  func.func @loss(%tokens: tensor<2x4xi32> {train.input = "tokens"}, %targets: tensor<2x4xi32> {train.input = "targets"})
      -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed.weight : tensor<16x8xf32>
    %all = train.get @all.weight : tensor<8x8xf32>
    %w = train.get @layers.weight : tensor<3x8x8xf32>
    %x0 = train.embedding %embed, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %y = train.repeat @layer x 3 carry(%x0) each(%w) shared(%x0, %all)
        : (tensor<2x4x8xf32>, tensor<3x8x8xf32>, tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %z = train.add %y, %x0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %u = train.linear %z, %all : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %logits = train.linear %u, %embed : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
    return %loss : tensor<f32>
  }
}
