// One function for each op and form of it: the cases of VJPTest (derivatives
// against finite differences) and DecomposeTest (kernels against direct
// formulas). An op with a derivative or a decomposition but without a function
// here fails those tests. Arguments marked `test.constant` are not
// differentiated, those marked `test.positive` are not negative and those marked
// `test.above_one` greater than 1. Ids are 0, 1 or 2: where there are two rows
// some point nowhere.

func.func @linear(%x: tensor<2x3x4xf64>, %w: tensor<5x4xf64>) -> tensor<2x3x5xf64> {
  %y = train.linear %x, %w : (tensor<2x3x4xf64>, tensor<5x4xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @linear_vector(%x: tensor<4xf64>, %w: tensor<5x4xf64>) -> tensor<5xf64> {
  %y = train.linear %x, %w : (tensor<4xf64>, tensor<5x4xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}
func.func @contract(%x: tensor<2x3x4xf64>, %y: tensor<2x5x4xf64>) -> tensor<2x5x3xf64> {
  %z = train.contract "b s i, b t i -> b t s" %x, %y : (tensor<2x3x4xf64>, tensor<2x5x4xf64>) -> tensor<2x5x3xf64>
  return %z : tensor<2x5x3xf64>
}
func.func @contract_wide(%x: tensor<2x3x4xbf16>, %y: tensor<2x5x4xbf16>) -> tensor<2x5x3xf32> {
  %z = train.contract "b s i, b t i -> b t s" %x, %y : (tensor<2x3x4xbf16>, tensor<2x5x4xbf16>) -> tensor<2x5x3xf32>
  return %z : tensor<2x5x3xf32>
}
func.func @contract_init(%x: tensor<6x3xf64>, %y: tensor<6x4xf64>, %init: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %z = train.contract "r o, r i -> o i" %x, %y init %init : (tensor<6x3xf64>, tensor<6x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}
func.func @embedding(%table: tensor<3x4xf64>, %ids: tensor<2x5xi32>) -> tensor<2x5x4xf64> {
  %y = train.embedding %table, %ids : (tensor<3x4xf64>, tensor<2x5xi32>) -> tensor<2x5x4xf64>
  return %y : tensor<2x5x4xf64>
}
func.func @embedding_grad(%dy: tensor<2x5x4xf64>, %ids: tensor<2x5xi32>) -> tensor<4x4xf64> {
  %y = train.embedding_grad %dy, %ids rows 4 : (tensor<2x5x4xf64>, tensor<2x5xi32>) -> tensor<4x4xf64>
  return %y : tensor<4x4xf64>
}
func.func @embedding_grad_init(%dy: tensor<5x4xf64>, %ids: tensor<5xi32>, %init: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = train.embedding_grad %dy, %ids init %init rows 3 : (tensor<5x4xf64>, tensor<5xi32>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @layer_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %y = train.layer_norm %x, %w, %b eps 1.0e-02 : (tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @layer_norm_grad(%dy: tensor<2x3x5xf64>, %x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>) {
  %dx, %dw, %db = train.layer_norm_grad %dy, %x, %w eps 1.0e-02 : (tensor<2x3x5xf64>, tensor<2x3x5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>)
  return %dx, %dw, %db : tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>
}
func.func @layer_norm_narrow(%x: tensor<2x3x4xbf16>, %w: tensor<4xbf16>, %b: tensor<4xbf16>) -> tensor<2x3x4xbf16> {
  %y = train.layer_norm %x, %w, %b eps 7.8125e-03 : (tensor<2x3x4xbf16>, tensor<4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  return %y : tensor<2x3x4xbf16>
}
func.func @layer_norm_grad_wide(%dy: tensor<2x3x4xbf16>, %x: tensor<2x3x4xbf16>, %w: tensor<4xbf16>) -> (tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>) {
  %dx, %dw, %db = train.layer_norm_grad %dy, %x, %w eps 7.8125e-03 : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<4xbf16>) -> (tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dw, %db : tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>
}
func.func @rms_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %y = train.rms_norm %x, %w eps 1.0e-02 : (tensor<2x3x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @rms_norm_one_row(%x: tensor<5xf64>, %w: tensor<5xf64>) -> tensor<5xf64> {
  %y = train.rms_norm %x, %w eps 1.0e-02 : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}
func.func @rms_norm_grad(%dy: tensor<4x5xf64>, %x: tensor<4x5xf64>, %w: tensor<5xf64>) -> (tensor<4x5xf64>, tensor<5xf64>) {
  %dx, %dw = train.rms_norm_grad %dy, %x, %w eps 1.0e-02 : (tensor<4x5xf64>, tensor<4x5xf64>, tensor<5xf64>) -> (tensor<4x5xf64>, tensor<5xf64>)
  return %dx, %dw : tensor<4x5xf64>, tensor<5xf64>
}
func.func @rope_table() -> (tensor<6x3xf64>, tensor<6x3xf64>) {
  %c, %s = train.rope_table [1.0, 0.31, 0.01] : () -> (tensor<6x3xf64>, tensor<6x3xf64>)
  return %c, %s : tensor<6x3xf64>, tensor<6x3xf64>
}
func.func @rope_table_scaled() -> (tensor<6x3xf64>, tensor<6x3xf64>) {
  %c, %s = train.rope_table [1.0, 0.31, 0.0] {scale = 1.25 : f64} : () -> (tensor<6x3xf64>, tensor<6x3xf64>)
  return %c, %s : tensor<6x3xf64>, tensor<6x3xf64>
}
func.func @rope(%x: tensor<2x3x2x4xf64>, %c: tensor<3x2xf64> {test.constant}, %s: tensor<3x2xf64> {test.constant}) -> tensor<2x3x2x4xf64> {
  %y = train.rope %x, %c, %s : (tensor<2x3x2x4xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x3x2x4xf64>
  return %y : tensor<2x3x2x4xf64>
}
func.func @rope_inverse(%x: tensor<2x3x2x4xf64>, %c: tensor<3x2xf64> {test.constant}, %s: tensor<3x2xf64> {test.constant}) -> tensor<2x3x2x4xf64> {
  %y = train.rope inverse %x, %c, %s : (tensor<2x3x2x4xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x3x2x4xf64>
  return %y : tensor<2x3x2x4xf64>
}
func.func @attention(%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x2x4xf64>, %v: tensor<2x5x2x3xf64>) -> (tensor<2x3x2x3xf64>, tensor<2x2x3xf64>) {
  %o, %l = train.attention %q, %k, %v scale 0.5 : (tensor<2x3x2x4xf64>, tensor<2x5x2x4xf64>, tensor<2x5x2x3xf64>) -> (tensor<2x3x2x3xf64>, tensor<2x2x3xf64>)
  return %o, %l : tensor<2x3x2x3xf64>, tensor<2x2x3xf64>
}
func.func @attention_grouped_causal(%q: tensor<2x4x4x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>) {
  %o, %l = train.attention %q, %k, %v scale 0.7 causal : (tensor<2x4x4x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>)
  return %o, %l : tensor<2x4x4x2xf64>, tensor<2x4x4xf64>
}
func.func @attention_window(%q: tensor<1x6x2x2xf64>, %k: tensor<1x6x1x2xf64>, %v: tensor<1x6x1x2xf64>) -> (tensor<1x6x2x2xf64>, tensor<1x2x6xf64>) {
  %o, %l = train.attention %q, %k, %v scale 0.7 causal window 3 : (tensor<1x6x2x2xf64>, tensor<1x6x1x2xf64>, tensor<1x6x1x2xf64>) -> (tensor<1x6x2x2xf64>, tensor<1x2x6xf64>)
  return %o, %l : tensor<1x6x2x2xf64>, tensor<1x2x6xf64>
}
func.func @attention_both_sides(%q: tensor<1x6x2x2xf64>, %k: tensor<1x7x1x2xf64>, %v: tensor<1x7x1x2xf64>) -> (tensor<1x6x2x2xf64>, tensor<1x2x6xf64>) {
  %o, %l = train.attention %q, %k, %v scale 0.7 window 3 : (tensor<1x6x2x2xf64>, tensor<1x7x1x2xf64>, tensor<1x7x1x2xf64>) -> (tensor<1x6x2x2xf64>, tensor<1x2x6xf64>)
  return %o, %l : tensor<1x6x2x2xf64>, tensor<1x2x6xf64>
}
func.func @attention_cap(%q: tensor<1x4x2x2xf64>, %k: tensor<1x4x1x2xf64>, %v: tensor<1x4x1x2xf64>) -> (tensor<1x4x2x2xf64>, tensor<1x2x4xf64>) {
  %o, %l = train.attention %q, %k, %v scale 0.7 causal cap 0.5 : (tensor<1x4x2x2xf64>, tensor<1x4x1x2xf64>, tensor<1x4x1x2xf64>) -> (tensor<1x4x2x2xf64>, tensor<1x2x4xf64>)
  return %o, %l : tensor<1x4x2x2xf64>, tensor<1x2x4xf64>
}
func.func @attention_slopes(%q: tensor<2x4x4x3xf64>, %k: tensor<2x5x2x3xf64>, %v: tensor<2x5x2x2xf64>, %s: tensor<4xf64> {test.constant}) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>) {
  %o, %l = train.attention %q, %k, %v slopes %s scale 0.7 causal : (tensor<2x4x4x3xf64>, tensor<2x5x2x3xf64>, tensor<2x5x2x2xf64>, tensor<4xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>)
  return %o, %l : tensor<2x4x4x2xf64>, tensor<2x4x4xf64>
}
func.func @attention_sinks(%q: tensor<2x4x4x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x3xf64>, %s: tensor<4xf64>) -> (tensor<2x4x4x3xf64>, tensor<2x4x4xf64>) {
  %o, %l = train.attention %q, %k, %v sinks %s scale 0.7 causal window 2 : (tensor<2x4x4x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x3xf64>, tensor<4xf64>) -> (tensor<2x4x4x3xf64>, tensor<2x4x4xf64>)
  return %o, %l : tensor<2x4x4x3xf64>, tensor<2x4x4xf64>
}
func.func @attention_distances(%q: tensor<2x3x4x2xf64>, %k: tensor<2x5x2x2xf64>, %v: tensor<2x5x2x3xf64>, %d: tensor<7x4xf64>) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>) {
  %o, %l = train.attention %q, %k, %v distances %d scale 0.7 : (tensor<2x3x4x2xf64>, tensor<2x5x2x2xf64>, tensor<2x5x2x3xf64>, tensor<7x4xf64>) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>)
  return %o, %l : tensor<2x3x4x3xf64>, tensor<2x4x3xf64>
}
func.func @attention_lengths(%q: tensor<2x3x4x2xf64>, %k: tensor<2x5x2x2xf64>, %v: tensor<2x5x2x3xf64>, %n: tensor<2xi32> {test.values = array<i64: 2, 5>}) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>) {
  %o, %l = train.attention %q, %k, %v lengths %n scale 0.7 : (tensor<2x3x4x2xf64>, tensor<2x5x2x2xf64>, tensor<2x5x2x3xf64>, tensor<2xi32>) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>)
  return %o, %l : tensor<2x3x4x3xf64>, tensor<2x4x3xf64>
}
func.func @attention_lengths_sinks_distances_cap(%q: tensor<2x4x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %n: tensor<2xi32> {test.values = array<i64: 3, 4>}, %s: tensor<2xf64>, %d: tensor<7x2xf64>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>) {
  %o, %l = train.attention %q, %k, %v lengths %n sinks %s distances %d scale 0.7 causal cap 0.5 : (tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2xi32>, tensor<2xf64>, tensor<7x2xf64>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>)
  return %o, %l : tensor<2x4x2x2xf64>, tensor<2x2x4xf64>
}
func.func @distance_buckets() -> tensor<11xi32> {
  %o = train.distance_buckets 8 to 16 queries 4 keys 8 : tensor<11xi32>
  return %o : tensor<11xi32>
}
func.func @attention_slopes_sinks_cap(%q: tensor<2x4x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>, %m: tensor<2xf64> {test.constant}, %s: tensor<2xf64>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>) {
  %o, %l = train.attention %q, %k, %v dropout(%ids, %key) slopes %m sinks %s scale 0.7 cap 0.5 dropout 0.25 stream 3 : (tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>)
  return %o, %l : tensor<2x4x2x2xf64>, tensor<2x2x4xf64>
}
func.func @alibi_slopes() -> tensor<8xf64> {
  %y = train.alibi_slopes bias 8.0 : () -> tensor<8xf64>
  return %y : tensor<8xf64>
}
func.func @alibi_slopes_between() -> tensor<13xf64> {
  %y = train.alibi_slopes bias 6.0 : () -> tensor<13xf64>
  return %y : tensor<13xf64>
}
func.func @alibi_slopes_part(%begin: tensor<i32>) -> tensor<4xf64> {
  %y = train.alibi_slopes bias 8.0 offset %begin {heads = 6 : i64} : (tensor<i32>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
func.func @attention_dropout(%q: tensor<2x4x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>) {
  %o, %l = train.attention %q, %k, %v dropout(%ids, %key) scale 0.7 causal dropout 0.25 stream 3 : (tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>)
  return %o, %l : tensor<2x4x2x2xf64>, tensor<2x2x4xf64>
}
func.func @add(%x: tensor<2x3x4xf64>, %y: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %z = train.add %x, %y : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %z : tensor<2x3x4xf64>
}
func.func @add_trailing(%x: tensor<2x3x4xf64>, %y: tensor<3x4xf64>) -> tensor<2x3x4xf64> {
  %z = train.add %x, %y : (tensor<2x3x4xf64>, tensor<3x4xf64>) -> tensor<2x3x4xf64>
  return %z : tensor<2x3x4xf64>
}
func.func @mul(%x: tensor<2x3x4xf64>, %y: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %z = train.mul %x, %y : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %z : tensor<2x3x4xf64>
}
func.func @mul_trailing(%x: tensor<2x3x4xf64>, %y: tensor<4xf64>) -> tensor<2x3x4xf64> {
  %z = train.mul %x, %y : (tensor<2x3x4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
  return %z : tensor<2x3x4xf64>
}
func.func @accumulate(%x: tensor<3x4xf64>, %y: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %z = train.accumulate %x, %y : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}
func.func @cast(%x: tensor<3x4xbf16>) -> tensor<3x4xf32> {
  %y = train.cast %x : (tensor<3x4xbf16>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @cast_between_narrow(%x: tensor<3x4xbf16>) -> tensor<3x4xf16> {
  %y = train.cast %x : (tensor<3x4xbf16>) -> tensor<3x4xf16>
  return %y : tensor<3x4xf16>
}
func.func @scale(%x: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %y = train.scale %x by -0.75 : (tensor<3x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @gelu(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.gelu %x : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @gelu_tanh(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.gelu tanh %x : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @gelu_grad(%dy: tensor<7x4xf64>, %x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.gelu_grad %dy, %x : (tensor<7x4xf64>, tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @gelu_grad_tanh(%dy: tensor<7x4xf64>, %x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.gelu_grad tanh %dy, %x : (tensor<7x4xf64>, tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @silu(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.silu %x : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @silu_grad(%dy: tensor<7x4xf64>, %x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.silu_grad %dy, %x : (tensor<7x4xf64>, tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @relu(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.relu %x : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @relu_grad(%dy: tensor<7x4xf64>, %x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.relu_grad %dy, %x : (tensor<7x4xf64>, tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @clamp(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.clamp %x from -0.5 to 0.75 : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @clamp_above(%x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.clamp %x from 0xFFF0000000000000 to 0.25 : (tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
func.func @clamp_grad(%dy: tensor<7x4xf64>, %x: tensor<7x4xf64>) -> tensor<7x4xf64> {
  %y = train.clamp_grad %dy, %x from -0.5 to 0.75 : (tensor<7x4xf64>, tensor<7x4xf64>) -> tensor<7x4xf64>
  return %y : tensor<7x4xf64>
}
// Elements have numbers of 64 bits: here the lower 32 overflow inside a sequence.
func.func @dropout_carry(%x: tensor<2x3x5xf64>, %ids: tensor<2xi32> {test.values = array<i64: 286331153, 572662306>}, %key: tensor<2xi32>) -> tensor<2x3x5xf64> {
  %y = train.dropout %x, %ids, %key rate 0.4 stream 7 : (tensor<2x3x5xf64>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @dropout(%x: tensor<2x3x5xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<2x3x5xf64> {
  %y = train.dropout %x, %ids, %key rate 0.4 stream 7 : (tensor<2x3x5xf64>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @fold_in_from(%key: tensor<2xi32>, %index: tensor<i32>) -> tensor<2xi32> {
  %y = train.fold_in %key, %index from 3 : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  return %y : tensor<2xi32>
}
func.func @fold_in(%key: tensor<2xi32>, %index: tensor<i32>) -> tensor<2xi32> {
  %y = train.fold_in %key, %index : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  return %y : tensor<2xi32>
}
func.func @reshape(%x: tensor<2x3x4xf64>) -> tensor<2x3x2x2xf64> {
  %y = train.reshape %x : (tensor<2x3x4xf64>) -> tensor<2x3x2x2xf64>
  return %y : tensor<2x3x2x2xf64>
}
func.func @slice(%x: tensor<5x4xf64>) -> tensor<3x4xf64> {
  %y = train.slice %x rows 3 : (tensor<5x4xf64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @pad(%x: tensor<3x4xf64>) -> tensor<5x4xf64> {
  %y = train.pad %x rows 5 : (tensor<3x4xf64>) -> tensor<5x4xf64>
  return %y : tensor<5x4xf64>
}
func.func @slice_from(%x: tensor<2x5x4xf64>) -> tensor<2x2x4xf64> {
  %y = train.slice %x dim 1 from 3 rows 2 : (tensor<2x5x4xf64>) -> tensor<2x2x4xf64>
  return %y : tensor<2x2x4xf64>
}
func.func @slice_columns_from(%x: tensor<2x5xf64>) -> tensor<2x3xf64> {
  %y = train.slice %x dim 1 from 1 rows 3 : (tensor<2x5xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
func.func @pad_from(%x: tensor<2x3x4xf64>) -> tensor<2x6x4xf64> {
  %y = train.pad %x dim 1 from 2 rows 6 : (tensor<2x3x4xf64>) -> tensor<2x6x4xf64>
  return %y : tensor<2x6x4xf64>
}
func.func @pad_columns_from(%x: tensor<2x3xf64>) -> tensor<2x8xf64> {
  %y = train.pad %x dim 1 from 4 rows 8 : (tensor<2x3xf64>) -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}
func.func @dynamic_slice(%x: tensor<2x6x4xf64>, %b: tensor<i32>) -> tensor<2x3x4xf64> {
  %y = train.dynamic_slice %x dim 1 at %b : (tensor<2x6x4xf64>, tensor<i32>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @transpose_blocks(%x: tensor<2x5x3xf64>) -> tensor<5x2x3xf64> {
  %y = train.transpose_blocks %x : (tensor<2x5x3xf64>) -> tensor<5x2x3xf64>
  return %y : tensor<5x2x3xf64>
}
func.func @reduce(%x: tensor<2x3x4xf64>) -> tensor<3xf64> {
  %y = train.reduce sum %x over [0, 2] : (tensor<2x3x4xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func @reduce_wide(%x: tensor<2x3x4xbf16>) -> tensor<3xf32> {
  %y = train.reduce sum %x over [0, 2] : (tensor<2x3x4xbf16>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @broadcast(%x: tensor<3xf64>) -> tensor<2x3x4xf64> {
  %y = train.broadcast %x along [0, 2] : (tensor<3xf64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @fill() -> tensor<2x3xf64> {
  %y = train.fill 0.125 : () -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
func.func @cross_entropy(%logits: tensor<2x3x4xf64>, %targets: tensor<2x3xi32>) -> (tensor<f64>, tensor<2x3xf64>) {
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.5 : (tensor<2x3x4xf64>, tensor<2x3xi32>) -> (tensor<f64>, tensor<2x3xf64>)
  return %loss, %lse : tensor<f64>, tensor<2x3xf64>
}
func.func @cross_entropy_grad(%logits: tensor<2x3x4xf64>, %targets: tensor<2x3xi32>, %lse: tensor<2x3xf64>, %dloss: tensor<f64>) -> tensor<2x3x4xf64> {
  %y = train.cross_entropy_grad %logits, %targets, %lse, %dloss scale 0.5 : (tensor<2x3x4xf64>, tensor<2x3xi32>, tensor<2x3xf64>, tensor<f64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @cross_entropy_per_token(%logits: tensor<2x3x4xf64>, %targets: tensor<2x3xi32>) -> (tensor<2x3xf64>, tensor<2x3xf64>) {
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.5 per_token : (tensor<2x3x4xf64>, tensor<2x3xi32>) -> (tensor<2x3xf64>, tensor<2x3xf64>)
  return %loss, %lse : tensor<2x3xf64>, tensor<2x3xf64>
}
func.func @cross_entropy_grad_per_token(%logits: tensor<2x3x4xf64>, %targets: tensor<2x3xi32>, %lse: tensor<2x3xf64>, %dloss: tensor<2x3xf64>) -> tensor<2x3x4xf64> {
  %y = train.cross_entropy_grad %logits, %targets, %lse, %dloss scale 0.5 : (tensor<2x3x4xf64>, tensor<2x3xi32>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}
func.func @cross_entropy_per_token_outside(%logits: tensor<3x5x2xf64>, %targets: tensor<3x5xi32>) -> (tensor<3x5xf64>, tensor<3x5xf64>) {
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.5 per_token : (tensor<3x5x2xf64>, tensor<3x5xi32>) -> (tensor<3x5xf64>, tensor<3x5xf64>)
  return %loss, %lse : tensor<3x5xf64>, tensor<3x5xf64>
}
func.func @token_loss_per_token(%lse: tensor<3x5xf64>, %picked: tensor<3x5xf64>, %targets: tensor<3x5xi32>) -> (tensor<3x5xf64>, tensor<3x5xf64>) {
  %loss, %out = train.token_loss %lse, %picked, %targets below 2 scale 0.5 per_token : (tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xi32>) -> (tensor<3x5xf64>, tensor<3x5xf64>)
  return %loss, %out : tensor<3x5xf64>, tensor<3x5xf64>
}
func.func @square_sum(%x: tensor<3x4xf32>) -> tensor<f32> {
  %y = train.square_sum %x : (tensor<3x4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @global_norm(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>) -> tensor<f32> {
  %n = train.global_norm %x, %y, %z : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
func.func @clip_factor(%norm: tensor<f64>, %limit: tensor<f64>) -> tensor<f64> {
  %f = train.clip_factor %norm, %limit : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %f : tensor<f64>
}
func.func @unscale(%x: tensor<3x4xf64>, %s: tensor<f64>) -> tensor<3x4xf64> {
  %y = train.unscale %x, %s : (tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>
  return %y : tensor<3x4xf64>
}
func.func @guard(%x: tensor<3x4xf64>, %y: tensor<3x4xf64>, %c: tensor<f64>) -> tensor<3x4xf64> {
  %z = train.guard %x, %y if_finite %c : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}
func.func @maximum(%x: tensor<3x4xf64>, %y: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %z = train.maximum %x, %y : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}
func.func @lerp(%x: tensor<3x4xf64>, %y: tensor<3x4xf64>, %w: tensor<f64>) -> tensor<3x4xf64> {
  %z = train.lerp %x to %y by %w : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>
  return %z : tensor<3x4xf64>
}
func.func @sgd_narrow_gradient(%p: tensor<3x4xf32>, %g: tensor<3x4xbf16>, %clip: tensor<f32>, %lr: tensor<f32>) -> tensor<3x4xf32> {
  %u = train.update "sgd" %p, %g, %clip, %lr : (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<f32>, tensor<f32>) -> tensor<3x4xf32>
  return %u : tensor<3x4xf32>
}
func.func @sgd(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %clip: tensor<f64>, %lr: tensor<f64>) -> tensor<3x4xf64> {
  %u = train.update "sgd" %p, %g, %clip, %lr : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>) -> tensor<3x4xf64>
  return %u : tensor<3x4xf64>
}
func.func @adamw(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %v: tensor<3x4xf64> {test.positive}, %clip: tensor<f64>, %lr: tensor<f64>,
    %b1: tensor<f64>, %b2: tensor<f64>, %eps: tensor<f64>, %wd: tensor<f64>, %c1: tensor<f64>, %c2: tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm, %nv = train.update "adamw" %p, %g, %m, %v, %clip, %lr, %b1, %b2, %eps, %wd, %c1, %c2
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm, %nv : tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>
}
func.func @adamw_decay(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %v: tensor<3x4xf64> {test.positive}, %clip: tensor<f64>, %lr: tensor<f64>,
    %b1: tensor<f64>, %b2: tensor<f64>, %eps: tensor<f64>, %wd: tensor<f64>, %c1: tensor<f64>, %c2: tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm, %nv = train.update "adamw" decay %p, %g, %m, %v, %clip, %lr, %b1, %b2, %eps, %wd, %c1, %c2
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm, %nv : tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>
}
func.func @adam_decay(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %v: tensor<3x4xf64> {test.positive}, %clip: tensor<f64>, %lr: tensor<f64>, %b1: tensor<f64>, %b2: tensor<f64> {test.positive}, %eps: tensor<f64> {test.positive}, %wd: tensor<f64>, %c1: tensor<f64>, %c2: tensor<f64> {test.positive}) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm, %nv = train.update "adam" decay %p, %g, %m, %v, %clip, %lr, %b1, %b2, %eps, %wd, %c1, %c2
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm, %nv : tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>
}
func.func @lion_decay(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %clip: tensor<f64>, %lr: tensor<f64>, %b1: tensor<f64>, %b2: tensor<f64> {test.positive}, %wd: tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm = train.update "lion" decay %p, %g, %m, %clip, %lr, %b1, %b2, %wd
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm : tensor<3x4xf64>, tensor<3x4xf64>
}

func.func @sgd_momentum_decay(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %clip: tensor<f64>, %lr: tensor<f64>, %mu: tensor<f64>, %wd: tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm = train.update "sgd-momentum" decay %p, %g, %m, %clip, %lr, %mu, %wd
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm : tensor<3x4xf64>, tensor<3x4xf64>
}
func.func @sgd_nesterov_decay(%p: tensor<3x4xf64>, %g: tensor<3x4xf64>, %m: tensor<3x4xf64>, %clip: tensor<f64>, %lr: tensor<f64>, %mu: tensor<f64>, %wd: tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>) {
  %u, %nm = train.update "sgd-nesterov" decay %p, %g, %m, %clip, %lr, %mu, %wd
      : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
  return %u, %nm : tensor<3x4xf64>, tensor<3x4xf64>
}

func.func @embedding_outside(%table: tensor<2x4xf64>, %ids: tensor<3x5xi32>) -> tensor<3x5x4xf64> {
  %y = train.embedding %table, %ids : (tensor<2x4xf64>, tensor<3x5xi32>) -> tensor<3x5x4xf64>
  return %y : tensor<3x5x4xf64>
}
func.func @embedding_grad_outside(%dy: tensor<3x5x4xf64>, %ids: tensor<3x5xi32>) -> tensor<2x4xf64> {
  %y = train.embedding_grad %dy, %ids rows 2 : (tensor<3x5x4xf64>, tensor<3x5xi32>) -> tensor<2x4xf64>
  return %y : tensor<2x4xf64>
}
func.func @cross_entropy_outside(%logits: tensor<3x5x2xf64>, %targets: tensor<3x5xi32>) -> (tensor<f64>, tensor<3x5xf64>) {
  %loss, %lse = train.cross_entropy %logits, %targets scale 0.5 : (tensor<3x5x2xf64>, tensor<3x5xi32>) -> (tensor<f64>, tensor<3x5xf64>)
  return %loss, %lse : tensor<f64>, tensor<3x5xf64>
}
func.func @cross_entropy_grad_outside(%logits: tensor<3x5x2xf64>, %targets: tensor<3x5xi32>, %lse: tensor<3x5xf64>, %dloss: tensor<f64>) -> tensor<3x5x2xf64> {
  %y = train.cross_entropy_grad %logits, %targets, %lse, %dloss scale 0.5 : (tensor<3x5x2xf64>, tensor<3x5xi32>, tensor<3x5xf64>, tensor<f64>) -> tensor<3x5x2xf64>
  return %y : tensor<3x5x2xf64>
}
func.func @shift_ids(%ids: tensor<3x5xi32>, %begin: tensor<i32>) -> tensor<3x5xi32> {
  %y = train.shift_ids %ids, %begin : (tensor<3x5xi32>, tensor<i32>) -> tensor<3x5xi32>
  return %y : tensor<3x5xi32>
}
func.func @part_offset(%part: tensor<i32>, %begin: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %a = train.part_offset %part offset %begin every 2 parts 2 size 7 : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %b = train.part_offset %part every 1 parts 3 size 5 : (tensor<i32>) -> tensor<i32>
  return %a, %b : tensor<i32>, tensor<i32>
}
func.func @ignore_id(%ids: tensor<3x5xi32>) -> tensor<3x5xi32> {
  %y = train.ignore_id %ids id 1 : (tensor<3x5xi32>) -> tensor<3x5xi32>
  return %y : tensor<3x5xi32>
}
func.func @pick(%x: tensor<3x5x2xf64>, %ids: tensor<3x5xi32>) -> tensor<3x5xf64> {
  %y = train.pick %x, %ids : (tensor<3x5x2xf64>, tensor<3x5xi32>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @token_loss(%lse: tensor<3x5xf64>, %picked: tensor<3x5xf64>, %targets: tensor<3x5xi32>) -> (tensor<f64>, tensor<3x5xf64>) {
  %loss, %out = train.token_loss %lse, %picked, %targets below 2 scale 0.5 : (tensor<3x5xf64>, tensor<3x5xf64>, tensor<3x5xi32>) -> (tensor<f64>, tensor<3x5xf64>)
  return %loss, %out : tensor<f64>, tensor<3x5xf64>
}
func.func @tanh(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = train.tanh %x : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @exp(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = train.exp %x : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @log(%x: tensor<3x5xf64> {test.above_one}) -> tensor<3x5xf64> {
  %y = train.log %x : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @inverse_root(%x: tensor<3x5xf64> {test.above_one}) -> tensor<3x5xf64> {
  %y = train.inverse_root %x eps 0.5 : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @dropout_part(%x: tensor<2x3x5xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>, %begin: tensor<i32>) -> tensor<2x3x5xf64> {
  %y = train.dropout %x, %ids, %key offsets(%begin) rate 0.4 stream 7 sizes [4, 8] {offset_dims = array<i64: 2>} : (tensor<2x3x5xf64>, tensor<2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @attention_dropout_part(%q: tensor<2x4x2x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x2xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>, %begin: tensor<i32>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>) {
  %o, %l = train.attention %q, %k, %v dropout(%ids, %key) head_offset %begin scale 0.7 causal dropout 0.25 stream 3 heads 6 : (tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<i32>) -> (tensor<2x4x2x2xf64>, tensor<2x2x4xf64>)
  return %o, %l : tensor<2x4x2x2xf64>, tensor<2x2x4xf64>
}
func.func @attention_part(%q: tensor<2x3x4x2xf64>, %k: tensor<2x7x2x2xf64>, %v: tensor<2x7x2x2xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>, %begin: tensor<i32>, %slopes: tensor<4xf64> {test.constant}, %sinks: tensor<4xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>) {
  %o, %l = train.attention %q, %k, %v dropout(%ids, %key) query_offset %begin slopes %slopes sinks %sinks scale 0.7 causal window 4 dropout 0.25 stream 3 queries 9 : (tensor<2x3x4x2xf64>, tensor<2x7x2x2xf64>, tensor<2x7x2x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<i32>, tensor<4xf64>, tensor<4xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)
  return %o, %l : tensor<2x3x4x2xf64>, tensor<2x4x3xf64>
}
func.func @attention_documents(%q: tensor<2x5x4x2xf64>, %k: tensor<2x5x2x2xf64>, %v: tensor<2x5x2x3xf64>, %p: tensor<2x5xi32> {test.values = array<i64: 0, 1, 0, 1, 2, 0, 0, 1, 2, 3>}) -> (tensor<2x5x4x3xf64>, tensor<2x4x5xf64>) {
  %o, %l = train.attention %q, %k, %v positions %p scale 0.7 causal : (tensor<2x5x4x2xf64>, tensor<2x5x2x2xf64>, tensor<2x5x2x3xf64>, tensor<2x5xi32>) -> (tensor<2x5x4x3xf64>, tensor<2x4x5xf64>)
  return %o, %l : tensor<2x5x4x3xf64>, tensor<2x4x5xf64>
}
func.func @attention_documents_part(%q: tensor<2x3x4x2xf64>, %k: tensor<2x7x2x2xf64>, %v: tensor<2x7x2x2xf64>, %ids: tensor<2xi32>, %key: tensor<2xi32>, %begin: tensor<i32> {test.values = array<i64: 3>}, %p: tensor<2x7xi32> {test.values = array<i64: 0, 1, 2, 0, 1, 0, 1, 0, 1, 2, 3, 4, 5, 0>}, %slopes: tensor<4xf64> {test.constant}, %sinks: tensor<4xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>) {
  %o, %l = train.attention %q, %k, %v dropout(%ids, %key) query_offset %begin positions %p slopes %slopes sinks %sinks scale 0.7 causal window 4 cap 0.5 dropout 0.25 stream 3 queries 7 : (tensor<2x3x4x2xf64>, tensor<2x7x2x2xf64>, tensor<2x7x2x2xf64>, tensor<2xi32>, tensor<2xi32>, tensor<i32>, tensor<2x7xi32>, tensor<4xf64>, tensor<4xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)
  return %o, %l : tensor<2x3x4x2xf64>, tensor<2x4x3xf64>
}
func.func @rope_table_documents(%p: tensor<2x4xi32> {test.values = array<i64: 0, 1, 2, 0, 0, 0, 1, 2>}) -> (tensor<2x4x3xf64>, tensor<2x4x3xf64>) {
  %c, %s = train.rope_table [1.0, 0.31, 0.0] positions %p {scale = 1.25 : f64} : (tensor<2x4xi32>) -> (tensor<2x4x3xf64>, tensor<2x4x3xf64>)
  return %c, %s : tensor<2x4x3xf64>, tensor<2x4x3xf64>
}
func.func @rope_documents(%x: tensor<2x3x2x4xf64>, %c: tensor<2x3x2xf64> {test.constant}, %s: tensor<2x3x2xf64> {test.constant}) -> tensor<2x3x2x4xf64> {
  %y = train.rope %x, %c, %s : (tensor<2x3x2x4xf64>, tensor<2x3x2xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2x4xf64>
  return %y : tensor<2x3x2x4xf64>
}
func.func @mask(%x: tensor<3x4x2xf64>) -> tensor<3x4x2xf64> {
  %y = train.mask %x dim 1 below 3 : (tensor<3x4x2xf64>) -> tensor<3x4x2xf64>
  return %y : tensor<3x4x2xf64>
}
func.func @decay(%to: tensor<2x5xf64>, %from: tensor<2x5xf64>) -> tensor<2x5x5xf64> {
  %y = train.decay %to, %from : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5x5xf64>
  return %y : tensor<2x5x5xf64>
}
func.func @decay_strict(%to: tensor<3x2x4xf64>, %from: tensor<3x2x6xf64>) -> tensor<3x2x4x6xf64> {
  %y = train.decay strict %to, %from : (tensor<3x2x4xf64>, tensor<3x2x6xf64>) -> tensor<3x2x4x6xf64>
  return %y : tensor<3x2x4x6xf64>
}
func.func @mask_part(%x: tensor<3x4x2xf64>, %begin: tensor<i32>) -> tensor<3x4x2xf64> {
  %y = train.mask %x offset %begin dim 0 below 2 {value = -3.5} : (tensor<3x4x2xf64>, tensor<i32>) -> tensor<3x4x2xf64>
  return %y : tensor<3x4x2xf64>
}
func.func @rope_table_part(%begin: tensor<i32>) -> (tensor<6x3xf64>, tensor<6x3xf64>) {
  %c, %s = train.rope_table [1.0, 0.31, 0.01] offset %begin : (tensor<i32>) -> (tensor<6x3xf64>, tensor<6x3xf64>)
  return %c, %s : tensor<6x3xf64>, tensor<6x3xf64>
}
func.func @slice_inside(%x: tensor<3x5x4xf64>) -> tensor<3x2x4xf64> {
  %y = train.slice %x dim 1 rows 2 : (tensor<3x5x4xf64>) -> tensor<3x2x4xf64>
  return %y : tensor<3x2x4xf64>
}
func.func @pad_inside(%x: tensor<3x2x4xf64>) -> tensor<3x2x7xf64> {
  %y = train.pad %x dim 2 rows 7 {value = 2 : i64} : (tensor<3x2x4xf64>) -> tensor<3x2x7xf64>
  return %y : tensor<3x2x7xf64>
}
func.func @pad_ids(%x: tensor<3x4xi32>) -> tensor<3x7xi32> {
  %y = train.pad %x dim 1 rows 7 {value = -1 : i64} : (tensor<3x4xi32>) -> tensor<3x7xi32>
  return %y : tensor<3x7xi32>
}
func.func @cross_entropy_narrow(%x: tensor<3x5x2xbf16>, %t: tensor<3x5xi32>) -> (tensor<f32>, tensor<3x5xf32>) {
  %loss, %lse = train.cross_entropy %x, %t scale 0.5 : (tensor<3x5x2xbf16>, tensor<3x5xi32>) -> (tensor<f32>, tensor<3x5xf32>)
  return %loss, %lse : tensor<f32>, tensor<3x5xf32>
}
func.func @rms_norm_grad_narrow(%dy: tensor<3x4xbf16>, %x: tensor<3x4xbf16>, %w: tensor<4xbf16>) -> (tensor<3x4xbf16>, tensor<4xbf16>) {
  %dx, %dw = train.rms_norm_grad %dy, %x, %w eps 7.8125e-03 : (tensor<3x4xbf16>, tensor<3x4xbf16>, tensor<4xbf16>) -> (tensor<3x4xbf16>, tensor<4xbf16>)
  return %dx, %dw : tensor<3x4xbf16>, tensor<4xbf16>
}
func.func @mask_narrow(%x: tensor<3x4xbf16>) -> tensor<3x4xbf16> {
  %y = train.mask %x dim 1 below 3 {value = -3.5} : (tensor<3x4xbf16>) -> tensor<3x4xbf16>
  return %y : tensor<3x4xbf16>
}
func.func @pad_narrow(%x: tensor<3x4xf16>) -> tensor<3x6xf16> {
  %y = train.pad %x dim 1 rows 6 {value = 2 : i64} : (tensor<3x4xf16>) -> tensor<3x6xf16>
  return %y : tensor<3x6xf16>
}
func.func @slice_narrow(%x: tensor<3x4xbf16>) -> tensor<3x2xbf16> {
  %y = train.slice %x dim 1 rows 2 : (tensor<3x4xbf16>) -> tensor<3x2xbf16>
  return %y : tensor<3x2xbf16>
}
func.func @embedding_outside_narrow(%t: tensor<2x3xbf16>, %ids: tensor<4xi32>) -> tensor<4x3xbf16> {
  %y = train.embedding %t, %ids : (tensor<2x3xbf16>, tensor<4xi32>) -> tensor<4x3xbf16>
  return %y : tensor<4x3xbf16>
}
func.func @sigmoid(%x: tensor<2x3x5xf64>) -> tensor<2x3x5xf64> {
  %y = train.sigmoid %x : (tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @softmax(%x: tensor<2x3x5xf64>) -> tensor<2x3x5xf64> {
  %y = train.softmax %x : (tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
func.func @top_k(%x: tensor<2x3x7xf64>) -> tensor<2x3x7xf64> {
  %y = train.top_k %x k 3 : (tensor<2x3x7xf64>) -> tensor<2x3x7xf64>
  return %y : tensor<2x3x7xf64>
}
func.func @log_sum_exp(%x: tensor<2x3x5xf64>) -> tensor<2x3xf64> {
  %y = train.log_sum_exp %x : (tensor<2x3x5xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
func.func @tally(%mask: tensor<2x3x5xf64>, %logits: tensor<2x3x5xf64>) -> tensor<5xf64> {
  %y = train.tally %mask, %logits : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<5xf64>
  return %y : tensor<5xf64>
}
func.func @balance(%bias: tensor<3x5xf64>, %tokens: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %y = train.balance %bias by %tokens rate 5.0e-01 : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
func.func @one_hot(%ids: tensor<2x3xi32>) -> tensor<2x3x3xf64> {
  %y = train.one_hot %ids : (tensor<2x3xi32>) -> tensor<2x3x3xf64>
  return %y : tensor<2x3x3xf64>
}
func.func @amax(%x: tensor<7x4xf32>) -> tensor<f32> {
  %y = train.amax %x : (tensor<7x4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @amax_scalar(%x: tensor<f32>) -> tensor<f32> {
  %y = train.amax %x : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @quantization_scale(%amax: tensor<f32> {test.positive}) -> tensor<f32> {
  %y = train.quantization_scale %amax to f8E4M3FN : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @quantization_scale_e5m2(%amax: tensor<f32> {test.positive}) -> tensor<f32> {
  %y = train.quantization_scale %amax to f8E5M2 : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @quantize(%x: tensor<7x4xf32>, %scale: tensor<f32> {test.one, test.constant}) -> tensor<7x4xf8E4M3FN> {
  %y = train.quantize %x by %scale : (tensor<7x4xf32>, tensor<f32>) -> tensor<7x4xf8E4M3FN>
  return %y : tensor<7x4xf8E4M3FN>
}
func.func @amax_of_blocks(%x: tensor<3x2x4xf32>) -> tensor<3x4xf32> {
  %y = train.amax %x over [1] : (tensor<3x2x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @amax_of_squares(%x: tensor<3x2x2x4xf32>) -> tensor<3x2xf32> {
  %y = train.amax %x over [1, 3] : (tensor<3x2x2x4xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
func.func @quantization_scale_of_blocks(%amax: tensor<3x2xf32> {test.positive}) -> tensor<3x2xf32> {
  %y = train.quantization_scale %amax to f8E4M3FN : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
func.func @quantize_along(%x: tensor<3x4x2xf32>, %scale: tensor<3x4xf32> {test.one, test.constant}) -> tensor<3x4x2xf8E4M3FN> {
  %y = train.quantize %x by %scale along [2] : (tensor<3x4x2xf32>, tensor<3x4xf32>) -> tensor<3x4x2xf8E4M3FN>
  return %y : tensor<3x4x2xf8E4M3FN>
}
func.func @dequantize(%x: tensor<7x4xf8E4M3FN>, %scale: tensor<f32> {test.one, test.constant}) -> tensor<7x4xf32> {
  %y = train.dequantize %x by %scale : (tensor<7x4xf8E4M3FN>, tensor<f32>) -> tensor<7x4xf32>
  return %y : tensor<7x4xf32>
}
func.func @dequantize_squares(%x: tensor<3x2x2x4xf8E4M3FN>, %scale: tensor<3x2xf32> {test.one, test.constant}) -> tensor<3x2x2x4xf32> {
  %y = train.dequantize %x by %scale along [1, 3] : (tensor<3x2x2x4xf8E4M3FN>, tensor<3x2xf32>) -> tensor<3x2x2x4xf32>
  return %y : tensor<3x2x2x4xf32>
}
func.func @observe(%x: tensor<7x4xf32>, %amax: tensor<f32> {test.constant}) -> tensor<7x4xf32> {
  %y = train.observe %x by %amax : (tensor<7x4xf32>, tensor<f32>) -> tensor<7x4xf32>
  return %y : tensor<7x4xf32>
}
func.func @quantize_gradient(%x: tensor<2x3xf32>, %amax: tensor<f32> {test.values = array<i64: 8>, test.constant}) -> tensor<2x3xf32> {
  %y = train.quantize_gradient %x by %amax to f8E5M2 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
func.func @block_amax(%x: tensor<3x8xf64>) -> tensor<3x2xf64> {
  %y = train.block_amax %x of 4 : (tensor<3x8xf64>) -> tensor<3x2xf64>
  return %y : tensor<3x2xf64>
}
func.func @block_amax_rows(%x: tensor<3x8xf64>) -> tensor<3xf64> {
  %y = train.block_amax %x of 8 : (tensor<3x8xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func @quantize_blocks(%x: tensor<3x256xf64>, %amax: tensor<3x2xf64> {test.above_one}) -> tensor<3x256xi8> {
  %y = train.quantize_blocks signed %x by %amax : (tensor<3x256xf64>, tensor<3x2xf64>) -> tensor<3x256xi8>
  return %y : tensor<3x256xi8>
}
func.func @quantize_blocks_positive(%x: tensor<3x256xf64> {test.positive}, %amax: tensor<3xf64> {test.above_one}) -> tensor<3x256xi8> {
  %y = train.quantize_blocks %x by %amax : (tensor<3x256xf64>, tensor<3xf64>) -> tensor<3x256xi8>
  return %y : tensor<3x256xi8>
}
func.func @dequantize_blocks(%codes: tensor<2x8xi8> {test.values = array<i64: -128, -127, -126, -64, -63, -2, -1, 0, 1, 2, 3, 4, 31, 63, 64, 127>}, %amax: tensor<2x2xf64> {test.positive}) -> tensor<2x8xf64> {
  %y = train.dequantize_blocks signed %codes by %amax : (tensor<2x8xi8>, tensor<2x2xf64>) -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}
func.func @dequantize_blocks_positive(%codes: tensor<2x8xi8> {test.values = array<i64: -128, -127, -126, -64, -63, -2, -1, 0, 1, 2, 3, 4, 31, 63, 64, 127>}, %amax: tensor<2xf64> {test.positive}) -> tensor<2x8xf64> {
  %y = train.dequantize_blocks %codes by %amax : (tensor<2x8xi8>, tensor<2xf64>) -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}
func.func @dequantize_rows(%codes: tensor<2x3x4xi8> {test.values = array<i64: -127, -64, -2, -1, 0, 1, 2, 3, 4, 31, 63, 127, 5, -5, 9, -9, 77, -77, 100, -100, 126, -126, 0, 1>}, %scale: tensor<2x3xf32> {test.positive}) -> tensor<2x3x4xf32> {
  %y = train.dequantize_rows %codes by %scale : (tensor<2x3x4xi8>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
func.func @sparsify(%x: tensor<2x3x7xf64>) -> (tensor<2x3x2xf64>, tensor<2x3x2xi32>, tensor<2x3x7xf64>) {
  %values, %ids, %rest = train.sparsify %x : (tensor<2x3x7xf64>) -> (tensor<2x3x2xf64>, tensor<2x3x2xi32>, tensor<2x3x7xf64>)
  return %values, %ids, %rest : tensor<2x3x2xf64>, tensor<2x3x2xi32>, tensor<2x3x7xf64>
}
func.func @densify(%values: tensor<2x3x2x2xf64>, %ids: tensor<2x3x2x2xi32> {test.values = array<i64: 0, 4, 1, 2, 3, 4, 2, 1, 0, 1, 4, 2, 2, 3, 0, 1, 1, 4, 2, 3, 3, 0, 4, 1>}) -> tensor<2x2x5xf64> {
  %y = train.densify %values at %ids over 1 : (tensor<2x3x2x2xf64>, tensor<2x3x2x2xi32>) -> tensor<2x2x5xf64>
  return %y : tensor<2x2x5xf64>
}
func.func @place_ids(%ids: tensor<2x3x2x2xi32> {test.values = array<i64: 0, 4, 1, 2, 3, 4, 2, 1, 0, 1, 4, 2, 2, 3, 0, 1, 1, 4, 2, 3, 3, 0, 4, 1>}) -> tensor<2x3x2x2xi32> {
  %places = train.place_ids %ids of 5 over 1 : tensor<2x3x2x2xi32>
  return %places : tensor<2x3x2x2xi32>
}
func.func @sign_bits(%x: tensor<2x3x8xf64>) -> tensor<2x3xi8> {
  %bits = train.sign_bits %x : (tensor<2x3x8xf64>) -> tensor<2x3xi8>
  return %bits : tensor<2x3xi8>
}
func.func @magnitude(%x: tensor<2x3x7xf64>) -> tensor<2x3xf64> {
  %y = train.magnitude %x : (tensor<2x3x7xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
func.func @signs(%bits: tensor<2x3x2xi8> {test.values = array<i64: 0, 4, -1, 2, 3, 127, -128, 1, 85, -86, 4, 15>}, %scale: tensor<2x3xf64>) -> tensor<2x3x2x8xf64> {
  %y = train.signs %bits by %scale : (tensor<2x3x2xi8>, tensor<2x3xf64>) -> tensor<2x3x2x8xf64>
  return %y : tensor<2x3x2x8xf64>
}
func.func @sum_signs(%bits: tensor<2x3x2xi8> {test.values = array<i64: 0, 4, -1, 2, 3, 127, -128, 1, 85, -86, 4, 15>}, %scale: tensor<2x3xf64>) -> tensor<2x2x8xf64> {
  %y = train.sum_signs %bits by %scale over 1 : (tensor<2x3x2xi8>, tensor<2x3xf64>) -> tensor<2x2x8xf64>
  return %y : tensor<2x2x8xf64>
}
func.func @scaled_contract(%x: tensor<2x3x4xf8E4M3FN>, %w: tensor<5x4xf8E4M3FN>, %s: tensor<f32> {test.one, test.constant}, %t: tensor<f32> {test.one, test.constant}) -> tensor<2x3x5xf32> {
  %y = train.scaled_contract "b s i, o i -> b s o" %x, %w scales(%s, %t) : (tensor<2x3x4xf8E4M3FN>, tensor<5x4xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}
func.func @dispatch(%x: tensor<2x3x4xf64>, %choices: tensor<2x2x3xi32> {test.values = array<i64: 0, 2, 4, 1, 6, -1, 3, 10, 5, 7, 9, -1>}, %rows: tensor<2x2x3xi32> {test.values = array<i64: 0, 3, 1, 6, 2, 8, 4, 9, -1, 10, 7, -1>}) -> tensor<2x2x3x4xf64> {
  %y = train.dispatch %x by %choices, %rows : (tensor<2x3x4xf64>, tensor<2x2x3xi32>, tensor<2x2x3xi32>) -> tensor<2x2x3x4xf64>
  return %y : tensor<2x2x3x4xf64>
}
func.func @dispatch_choices(%x: tensor<2x2x3x4xf64>, %choices: tensor<2x2x3xi32> {test.values = array<i64: 0, 2, 4, 1, 6, -1, 3, 10, 5, 7, 9, -1>}, %rows: tensor<2x2x3xi32> {test.values = array<i64: 0, 3, 1, 6, 2, 8, 4, 9, -1, 10, 7, -1>}) -> tensor<2x2x3x4xf64> {
  %y = train.dispatch %x by %choices, %rows : (tensor<2x2x3x4xf64>, tensor<2x2x3xi32>, tensor<2x2x3xi32>) -> tensor<2x2x3x4xf64>
  return %y : tensor<2x2x3x4xf64>
}
func.func @collect(%x: tensor<2x2x3x4xf64>, %rows: tensor<2x2x3xi32> {test.values = array<i64: 0, 3, 1, 6, 2, 8, 4, 9, -1, 10, 7, -1>}, %choices: tensor<2x2x3xi32> {test.values = array<i64: 0, 2, 4, 1, 6, -1, 3, 10, 5, 7, 9, -1>}) -> tensor<2x2x3x4xf64> {
  %y = train.collect %x by %rows, %choices : (tensor<2x2x3x4xf64>, tensor<2x2x3xi32>, tensor<2x2x3xi32>) -> tensor<2x2x3x4xf64>
  return %y : tensor<2x2x3x4xf64>
}
func.func @grouped_linear(%x: tensor<2x2x3x4xf64>, %w: tensor<4x5x4xf64>, %experts: tensor<2x2x3xi32> {test.values = array<i64: 0, 0, 0, 1, 1, 2, 0, 0, 1, 1, 1, 2>}) -> tensor<2x2x3x5xf64> {
  %y = train.grouped_linear %x, %w of %experts : (tensor<2x2x3x4xf64>, tensor<4x5x4xf64>, tensor<2x2x3xi32>) -> tensor<2x2x3x5xf64>
  return %y : tensor<2x2x3x5xf64>
}
func.func @grouped_linear_transposed(%x: tensor<2x2x3x4xf64>, %w: tensor<4x4x5xf64>, %experts: tensor<2x2x3xi32> {test.values = array<i64: 0, 0, 0, 1, 1, 2, 0, 0, 1, 1, 1, 2>}) -> tensor<2x2x3x5xf64> {
  %y = train.grouped_linear transposed %x, %w of %experts : (tensor<2x2x3x4xf64>, tensor<4x4x5xf64>, tensor<2x2x3xi32>) -> tensor<2x2x3x5xf64>
  return %y : tensor<2x2x3x5xf64>
}
