// A byte-level transformer that no Hugging Face family describes, written as
// floor-1 text. Attention and MLP of a layer stand side by side on one shared
// LayerNorm without biases around them (GPT-J, PaLM), all query heads share one key
// and value head (MQA), positions are rotary, the MLP squares its ReLU (Primer), and
// the head is the embedding itself.
//
// Sizes are part of the types: 16 sequences of 64 tokens a step, 4 layers of width
// 128, 4 heads of 32. `@loss` sees one microbatch; there is one here.
module attributes {
  train.model = "parallel-block", train.config = "{\"model_type\": \"parallel-block\"}",
  train.batch = 16 : i64, train.sequence = 64 : i64, train.microbatches = 1 : i64,
  train.vocabulary = 256 : i64, train.max_positions = 64 : i64
} {
  // State: name, type, start, and the tensor's name in checkpoints. A stacked variable
  // holds one slice a layer, and `{layer}` in its tensor's name counts them.
  train.variable @embed.weight : tensor<256x128xf32>
      init <"normal", 2.0e-02 : f64> storage <"embed.weight">
  train.variable @layers.norm.weight : tensor<4x128xf32> stacked
      init <"constant", 1.0 : f64> storage <"layers.{layer}.norm.weight">
  train.variable @layers.norm.bias : tensor<4x128xf32> stacked
      init <"constant", 0.0 : f64> storage <"layers.{layer}.norm.bias">
  train.variable @layers.q.weight : tensor<4x128x128xf32> stacked
      init <"normal", 2.0e-02 : f64> storage <"layers.{layer}.q.weight">
  train.variable @layers.k.weight : tensor<4x32x128xf32> stacked
      init <"normal", 2.0e-02 : f64> storage <"layers.{layer}.k.weight">
  train.variable @layers.v.weight : tensor<4x32x128xf32> stacked
      init <"normal", 2.0e-02 : f64> storage <"layers.{layer}.v.weight">
  // What is added to the residual stream starts smaller: 0.02 / sqrt(2 * 4 layers).
  train.variable @layers.o.weight : tensor<4x128x128xf32> stacked
      init <"normal", 7.0710678118654755e-03 : f64> storage <"layers.{layer}.o.weight">
  train.variable @layers.up.weight : tensor<4x512x128xf32> stacked
      init <"normal", 2.0e-02 : f64> storage <"layers.{layer}.up.weight">
  train.variable @layers.down.weight : tensor<4x128x512xf32> stacked
      init <"normal", 7.0710678118654755e-03 : f64> storage <"layers.{layer}.down.weight">
  train.variable @norm.weight : tensor<128xf32>
      init <"constant", 1.0 : f64> storage <"norm.weight">
  train.variable @norm.bias : tensor<128xf32>
      init <"constant", 0.0 : f64> storage <"norm.bias">

  // One layer: the residual stream, this layer's weights, and what all layers share.
  func.func private @layer(
      %x: tensor<16x64x128xf32>, %norm_weight: tensor<128xf32>, %norm_bias: tensor<128xf32>,
      %wq: tensor<128x128xf32>, %wk: tensor<32x128xf32>, %wv: tensor<32x128xf32>,
      %wo: tensor<128x128xf32>, %up: tensor<512x128xf32>, %down: tensor<128x512xf32>,
      %cos: tensor<64x16xf32>, %sin: tensor<64x16xf32>) -> tensor<16x64x128xf32> {
    %n = train.layer_norm %x, %norm_weight, %norm_bias eps 1.0e-05 : (tensor<16x64x128xf32>, tensor<128xf32>, tensor<128xf32>) -> tensor<16x64x128xf32>

    // Attention: [batch, position, heads, 32] for queries, one head for keys and values.
    %q_flat = train.linear %n, %wq : (tensor<16x64x128xf32>, tensor<128x128xf32>) -> tensor<16x64x128xf32>
    %k_flat = train.linear %n, %wk : (tensor<16x64x128xf32>, tensor<32x128xf32>) -> tensor<16x64x32xf32>
    %v_flat = train.linear %n, %wv : (tensor<16x64x128xf32>, tensor<32x128xf32>) -> tensor<16x64x32xf32>
    %q_plain = train.reshape %q_flat : (tensor<16x64x128xf32>) -> tensor<16x64x4x32xf32>
    %k_plain = train.reshape %k_flat : (tensor<16x64x32xf32>) -> tensor<16x64x1x32xf32>
    %v = train.reshape %v_flat : (tensor<16x64x32xf32>) -> tensor<16x64x1x32xf32>
    %q = train.rope %q_plain, %cos, %sin : (tensor<16x64x4x32xf32>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x64x4x32xf32>
    %k = train.rope %k_plain, %cos, %sin : (tensor<16x64x1x32xf32>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x64x1x32xf32>
    %heads, %lse = train.attention %q, %k, %v scale 0.17677669529663689 causal : (tensor<16x64x4x32xf32>, tensor<16x64x1x32xf32>, tensor<16x64x1x32xf32>) -> (tensor<16x64x4x32xf32>, tensor<16x4x64xf32>)
    %joined = train.reshape %heads : (tensor<16x64x4x32xf32>) -> tensor<16x64x128xf32>
    %attention = train.linear %joined, %wo : (tensor<16x64x128xf32>, tensor<128x128xf32>) -> tensor<16x64x128xf32>

    // MLP, from the same norm: relu(x)^2 between the two linears.
    %wide = train.linear %n, %up : (tensor<16x64x128xf32>, tensor<512x128xf32>) -> tensor<16x64x512xf32>
    %positive = train.relu %wide : (tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
    %squared = train.mul %positive, %positive : (tensor<16x64x512xf32>, tensor<16x64x512xf32>) -> tensor<16x64x512xf32>
    %mlp = train.linear %squared, %down : (tensor<16x64x512xf32>, tensor<128x512xf32>) -> tensor<16x64x128xf32>

    %both = train.add %attention, %mlp : (tensor<16x64x128xf32>, tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    %y = train.add %x, %both : (tensor<16x64x128xf32>, tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    return %y : tensor<16x64x128xf32>
  }

  // The mean cross-entropy of a step's tokens: scale is 1 / (16 * 64).
  func.func @loss(%tokens: tensor<16x64xi32> {train.input = "tokens"},
                  %targets: tensor<16x64xi32> {train.input = "targets"})
      -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed.weight : tensor<256x128xf32>
    %norm_weight = train.get @layers.norm.weight : tensor<4x128xf32>
    %norm_bias = train.get @layers.norm.bias : tensor<4x128xf32>
    %wq = train.get @layers.q.weight : tensor<4x128x128xf32>
    %wk = train.get @layers.k.weight : tensor<4x32x128xf32>
    %wv = train.get @layers.v.weight : tensor<4x32x128xf32>
    %wo = train.get @layers.o.weight : tensor<4x128x128xf32>
    %up = train.get @layers.up.weight : tensor<4x512x128xf32>
    %down = train.get @layers.down.weight : tensor<4x128x512xf32>
    %last_weight = train.get @norm.weight : tensor<128xf32>
    %last_bias = train.get @norm.bias : tensor<128xf32>

    // Frequencies 10000^(-i/16) turn the 16 pairs of a head.
    %cos, %sin = train.rope_table [
      1.0, 0.56234132519034907, 0.31622776601683794, 0.17782794100389229, 0.1,
      0.056234132519034911, 0.031622776601683791, 0.017782794100389229, 0.01,
      0.0056234132519034911, 0.0031622776601683794, 0.0017782794100389228, 0.001,
      5.6234132519034912E-4, 3.1622776601683794E-4, 1.7782794100389227E-4
    ] : () -> (tensor<64x16xf32>, tensor<64x16xf32>)

    %rows = train.embedding %embed, %tokens : (tensor<256x128xf32>, tensor<16x64xi32>) -> tensor<16x64x128xf32>
    // Rows of a tied table are small; the stream begins near unit size: sqrt(128).
    %x = train.scale %rows by 11.313708498984761 : (tensor<16x64x128xf32>) -> tensor<16x64x128xf32>
    %y = train.repeat @layer x 4 carry(%x)
        each(%norm_weight, %norm_bias, %wq, %wk, %wv, %wo, %up, %down) shared(%cos, %sin)
        : (tensor<16x64x128xf32>, tensor<4x128xf32>, tensor<4x128xf32>, tensor<4x128x128xf32>, tensor<4x32x128xf32>, tensor<4x32x128xf32>, tensor<4x128x128xf32>, tensor<4x512x128xf32>, tensor<4x128x512xf32>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x64x128xf32>
    %n = train.layer_norm %y, %last_weight, %last_bias eps 1.0e-05 : (tensor<16x64x128xf32>, tensor<128xf32>, tensor<128xf32>) -> tensor<16x64x128xf32>
    %logits = train.linear %n, %embed : (tensor<16x64x128xf32>, tensor<256x128xf32>) -> tensor<16x64x256xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 9.765625e-04 : (tensor<16x64x256xf32>, tensor<16x64xi32>) -> (tensor<f32>, tensor<16x64xf32>)
    return %loss : tensor<f32>
  }
}
