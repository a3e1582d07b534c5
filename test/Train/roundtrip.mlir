// RUN: meshwright-opt %s | meshwright-opt | FileCheck %s
// CHECK: train.variable @h.experts : tensor<2x6x96x64xf32> stacked experts 2 init
// CHECK: train.repeat @layer x 2 carry
// CHECK: train.cross_entropy
// CHECK: train.route %{{.*}} k 2 blocks 3 slots 128
// CHECK: train.rounds %{{.*}} slots 70 : (tensor<3x8x128xi32>) -> tensor<i32>
// CHECK: train.rows_of_round %{{.*}} of %rows, %choices, %experts slots 70
// CHECK: train.rows_of_round of %rows, %choices, %experts slots 35 part 1 of 2 :
// CHECK: train.route %{{.*}} k 2 blocks 3 slots 128 {piece = 32 : i64}
// CHECK: train.rounds %{{.*}} slots 70 of 128 :
// CHECK: train.rows_of_round %{{.*}} of {{.*}} slots 70 {piece = 32 : i64}
// CHECK: train.dispatch %{{.*}} {piece = 32 : i64}
// CHECK: train.collect %{{.*}} {piece = 32 : i64}
// CHECK: train.repeat @round x 2 times %{{.*}} indexed carry
// CHECK: train.grouped_linear %{{.*}}, %arg3 of %experts :
// CHECK: train.grouped_linear transposed
// CHECK: train.grouped_linear_grad {{.*}} count 6
// CHECK: train.attention {{.*}} query_offset %{{.*}} key_offset %{{.*}} sinks %{{.*}} scale 5.000000e-01 causal window 3 chunk 2 cap 3.000000e+01 dropout 2.500000e-01 stream 7 heads 4 queries 16 keys 16 pairs 9.500000e+00 query_stride 2 key_stride 2 :
// CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 :
module attributes {train.microbatches = 2 : i64} {
  train.variable @wte : tensor<256x64xf32> init <"normal", 2.0e-02 : f64> storage <"transformer.wte.weight">
  train.variable @h.ln_1.weight : tensor<2x64xf32> stacked init <"constant", 1.0 : f64> storage <"transformer.h.{layer}.ln_1.weight">
  train.variable @h.ln_1.bias : tensor<2x64xf32> stacked init <"constant", 0.0 : f64> storage <"transformer.h.{layer}.ln_1.bias">
  train.variable @h.q : tensor<2x64x64xf32> stacked init <"normal", 2.0e-02 : f64> storage <"transformer.h.{layer}.attn.c_attn.weight", transpose = true, dim = 1, offset = 0, full = 192>
  train.variable @h.experts : tensor<2x6x96x64xf32> stacked experts 2 init <"normal", 2.0e-02 : f64> storage <"h.{layer}.{expert}.weight">
  func.func @layer(%x: tensor<8x64x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>, %q: tensor<64x64xf32>) -> tensor<8x64x64xf32> {
    %0 = train.layer_norm %x, %w, %b eps 1.0e-05 : (tensor<8x64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<8x64x64xf32>
    %1 = train.linear %0, %q : (tensor<8x64x64xf32>, tensor<64x64xf32>) -> tensor<8x64x64xf32>
    %2 = train.reshape %1 : (tensor<8x64x64xf32>) -> tensor<8x64x4x16xf32>
    %3, %lse = train.attention %2, %2, %2 scale 2.5e-01 causal : (tensor<8x64x4x16xf32>, tensor<8x64x4x16xf32>, tensor<8x64x4x16xf32>) -> (tensor<8x64x4x16xf32>, tensor<8x4x64xf32>)
    %4 = train.reshape %3 : (tensor<8x64x4x16xf32>) -> tensor<8x64x64xf32>
    %5 = train.gelu tanh %4 : (tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %6 = train.add %x, %5 : (tensor<8x64x64xf32>, tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    return %6 : tensor<8x64x64xf32>
  }
  func.func @loss(%tokens: tensor<8x64xi32> {train.input = "tokens"}, %targets: tensor<8x64xi32> {train.input = "targets"}) -> tensor<f32> {
    %wte = train.get @wte : tensor<256x64xf32>
    %w = train.get @h.ln_1.weight : tensor<2x64xf32>
    %b = train.get @h.ln_1.bias : tensor<2x64xf32>
    %q = train.get @h.q : tensor<2x64x64xf32>
    %x = train.embedding %wte, %tokens : (tensor<256x64xf32>, tensor<8x64xi32>) -> tensor<8x64x64xf32>
    %y = train.repeat @layer x 2 carry(%x) each(%w, %b, %q) shared() : (tensor<8x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>) -> tensor<8x64x64xf32>
    %logits = train.linear %y, %wte : (tensor<8x64x64xf32>, tensor<256x64xf32>) -> tensor<8x64x256xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.001953125 : (tensor<8x64x256xf32>, tensor<8x64xi32>) -> (tensor<f32>, tensor<8x64xf32>)
    return %loss : tensor<f32>
  }
  func.func private @round(%i: tensor<i32>, %x: tensor<8x64x64xf32>, %y: tensor<8x64x6xf32>) -> tensor<8x64x64xf32> {
    return %x : tensor<8x64x64xf32>
  }
  func.func @experts(%x: tensor<8x64x64xf32>, %logits: tensor<8x64x6xf32>, %router: tensor<8x64x6xf32>, %w: tensor<6x96x64xf32>) -> tensor<6x96x64xf32> {
    %0 = train.softmax %logits : (tensor<8x64x6xf32>) -> tensor<8x64x6xf32>
    %1 = train.sigmoid %0 : (tensor<8x64x6xf32>) -> tensor<8x64x6xf32>
    %mask = train.top_k %1 k 2 : (tensor<8x64x6xf32>) -> tensor<8x64x6xf32>
    %lse = train.log_sum_exp %logits : (tensor<8x64x6xf32>) -> tensor<8x64xf32>
    %tokens = train.tally %mask, %logits : (tensor<8x64x6xf32>, tensor<8x64x6xf32>) -> tensor<6xf32>
    %bias = train.balance %tokens by %tokens rate 1.000000e-03 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %chosen, %rows, %choices, %experts = train.route %mask k 2 blocks 3 slots 128 : (tensor<8x64x6xf32>) -> (tensor<2x8x64xi32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>, tensor<3x8x128xi32>)
    %rounds = train.rounds %choices slots 70 : (tensor<3x8x128xi32>) -> tensor<i32>
    %own:3 = train.rows_of_round %rounds of %rows, %choices, %experts slots 70 : (tensor<i32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>, tensor<3x8x128xi32>) -> (tensor<2x8x64xi32>, tensor<3x8x70xi32>, tensor<3x8x70xi32>)
    %part:3 = train.rows_of_round of %rows, %choices, %experts slots 35 part 1 of 2 : (tensor<2x8x64xi32>, tensor<3x8x128xi32>, tensor<3x8x128xi32>) -> (tensor<2x8x64xi32>, tensor<3x8x35xi32>, tensor<3x8x35xi32>)
    %c, %r, %of, %e = train.route %mask k 2 blocks 3 slots 128 {piece = 32 : i64} : (tensor<8x64x6xf32>) -> (tensor<2x8x64xi32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>, tensor<3x8x128xi32>)
    %n = train.rounds %of slots 70 of 128 : (tensor<3x8x128xi32>) -> tensor<i32>
    %o:3 = train.rows_of_round %n of %r, %of, %e slots 70 {piece = 32 : i64} : (tensor<i32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>, tensor<3x8x128xi32>) -> (tensor<2x8x64xi32>, tensor<3x8x70xi32>, tensor<3x8x70xi32>)
    %d = train.dispatch %x by %of, %r {piece = 32 : i64} : (tensor<8x64x64xf32>, tensor<3x8x128xi32>, tensor<2x8x64xi32>) -> tensor<3x8x128x64xf32>
    %t = train.collect %d by %r, %of {piece = 32 : i64} : (tensor<3x8x128x64xf32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>) -> tensor<2x8x64x64xf32>
    %sum = train.repeat @round x 2 times %rounds indexed carry(%x) each() shared(%logits) : (tensor<8x64x64xf32>, tensor<8x64x6xf32>, tensor<i32>) -> tensor<8x64x64xf32>
    %hot = train.one_hot %chosen : (tensor<2x8x64xi32>) -> tensor<2x8x64x6xf32>
    %2 = train.dispatch %x by %choices, %rows : (tensor<8x64x64xf32>, tensor<3x8x128xi32>, tensor<2x8x64xi32>) -> tensor<3x8x128x64xf32>
    %3 = train.grouped_linear %2, %w of %experts : (tensor<3x8x128x64xf32>, tensor<6x96x64xf32>, tensor<3x8x128xi32>) -> tensor<3x8x128x96xf32>
    %4 = train.grouped_linear transposed %3, %w of %experts : (tensor<3x8x128x96xf32>, tensor<6x96x64xf32>, tensor<3x8x128xi32>) -> tensor<3x8x128x64xf32>
    %5 = train.collect %4 by %rows, %choices : (tensor<3x8x128x64xf32>, tensor<2x8x64xi32>, tensor<3x8x128xi32>) -> tensor<2x8x64x64xf32>
    %6 = train.dispatch %5 by %choices, %rows : (tensor<2x8x64x64xf32>, tensor<3x8x128xi32>, tensor<2x8x64xi32>) -> tensor<3x8x128x64xf32>
    %7 = train.grouped_linear_grad %3, %6 of %experts count 6 : (tensor<3x8x128x96xf32>, tensor<3x8x128x64xf32>, tensor<3x8x128xi32>) -> tensor<6x96x64xf32>
    return %7 : tensor<6x96x64xf32>
  }
  // Fields with their default are not printed.
  func.func @attention(%q: tensor<1x4x2x8xf32>, %kv: tensor<1x4x1x8xf32>, %ids: tensor<1xi32>, %key: tensor<2xi32>, %at: tensor<i32>, %sinks: tensor<2xf32>) -> tensor<1x4x2x8xf32> {
    %0, %lse = train.attention %q, %kv, %kv dropout(%ids, %key) query_offset %at key_offset %at sinks %sinks scale 5.000000e-01 window 3 causal chunk 2 cap 3.000000e+01 dropout 2.500000e-01 stream 7 heads 4 queries 16 keys 16 pairs 9.500000e+00 query_stride 2 key_stride 2 : (tensor<1x4x2x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1xi32>, tensor<2xi32>, tensor<i32>, tensor<i32>, tensor<2xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
    %1, %lse_1 = "train.attention"(%0, %0, %0) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, spec = #train.attention<scale 0.5 key_stride 1>}> : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
    return %1 : tensor<1x4x2x8xf32>
  }
}
