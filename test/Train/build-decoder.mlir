// RUN: meshwright-opt %s --train-build-decoder=length=32 --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// Keys and values of a layer are added to its slices of two caches, and attention is over these.
// BEGIN EXAMPLE --train-build-decoder=length=32
module attributes {train.batch = 1 : i64, train.sequence = 4 : i64, train.vocabulary = 16 : i64} {
  train.variable @embed : tensor<16x8xf32> init <"normal", 0.02>
  train.variable @layers.proj : tensor<3x8x8xf32> stacked init <"normal", 0.02>
  func.func private @layer(%x: tensor<1x4x8xf32>, %w: tensor<8x8xf32>, %positions: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
    %qkv = train.linear %x, %w : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
    %heads = train.reshape %qkv : (tensor<1x4x8xf32>) -> tensor<1x4x2x4xf32>
    %a, %lse = train.attention %heads, %heads, %heads positions %positions scale 0.5 causal : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4xi32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
    %y = train.reshape %a : (tensor<1x4x2x4xf32>) -> tensor<1x4x8xf32>
    return %y : tensor<1x4x8xf32>
  }
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}, %targets: tensor<1x4xi32> {train.input = "targets"}, %positions: tensor<1x4xi32> {train.input = "positions"}, %target_weight: tensor<f32> {train.input = "target_weight"}) -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed : tensor<16x8xf32>
    %x = train.embedding %embed, %tokens : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    %proj = train.get @layers.proj : tensor<3x8x8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%proj) shared(%positions) : (tensor<1x4x8xf32>, tensor<3x8x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    %logits = train.linear %y, %embed : (tensor<1x4x8xf32>, tensor<16x8xf32>) -> tensor<1x4x16xf32>
    %sum, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<1x4x16xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<1x4xf32>)
    %loss = train.mul %sum, %target_weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK-DAG: train.variable @cache.0 : tensor<3x32x8xf32>
// CHECK-DAG: train.variable @cache.1 : tensor<3x32x8xf32>
// CHECK: func.func private @layer(%{{.*}}: tensor<1x4x8xf32>, %{{.*}}: tensor<8x8xf32>, %[[K:.*]]: tensor<32x8xf32>, %[[V:.*]]: tensor<32x8xf32>, %{{.*}}: tensor<1x4xi32>, %[[POSITIONS:.*]]: tensor<1x4xi32>, %[[FIRST:.*]]: tensor<i32>) -> (tensor<1x4x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
// CHECK: %[[KEYS:.*]] = train.embedding_grad %{{.*}}, %[[POSITIONS]] init %[[K]] rows 32
// CHECK: %[[ALL_KEYS:.*]] = train.reshape %[[KEYS]] : (tensor<32x8xf32>) -> tensor<1x32x2x4xf32>
// CHECK: %[[VALUES:.*]] = train.embedding_grad %{{.*}}, %[[POSITIONS]] init %[[V]] rows 32
// CHECK: %[[ALL_VALUES:.*]] = train.reshape %[[VALUES]]
// CHECK: train.attention %{{.*}}, %[[ALL_KEYS]], %[[ALL_VALUES]] query_offset %[[FIRST]] scale 5.000000e-01 causal queries 32
// CHECK: return %{{.*}}, %[[KEYS]], %[[VALUES]]
// CHECK: func.func @step(%[[TOKENS:.*]]: tensor<1x1x4xi32> {train.input = "tokens"}, %{{.*}}: tensor<1x1x4xi32> {train.input = "positions"}, %{{.*}}: tensor<i32> {train.input = "first_position"}) -> (tensor<1x4x16xf32> {train.output = "logits"})
// CHECK: %[[STEP:.*]]:3 = train.repeat @layer x 3
// CHECK-SAME: train.role = #train.role<forward>
// CHECK: %[[LOGITS:.*]] = train.linear
// CHECK-NOT: cross_entropy
// CHECK-DAG: train.set @cache.0, %[[STEP]]#1
// CHECK-DAG: train.set @cache.1, %[[STEP]]#2
// CHECK: return %[[LOGITS]]

// -----

module {
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}, %positions: tensor<1x4xi32> {train.input = "positions"}, %x: tensor<1x4x2x4xf32> {train.input = "x"}) -> (tensor<1x4x2x4xf32> {train.output = "loss"}) {
    // expected-error @+1 {{is not causal: the model predicts no next token}}
    %a, %lse = train.attention %x, %x, %x scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
    return %a : tensor<1x4x2x4xf32>
  }
}

// -----

module {
  // expected-error @+1 {{has no input positions: a decoder needs tokens and their positions; import the model with --packed}}
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    return %zero : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{has the input tokens of type 'tensor<2x4xi32>', but a decoder reads one sequence}}
  func.func @loss(%tokens: tensor<2x4xi32> {train.input = "tokens"}, %positions: tensor<2x4xi32> {train.input = "positions"}) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    return %zero : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{must have one train.cross_entropy, whose logits a decoder returns}}
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}, %positions: tensor<1x4xi32> {train.input = "positions"}) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    return %zero : tensor<f32>
  }
}

// -----

// expected-error @+1 {{has no @loss to make a decoder of}}
module {
}

// -----

// What depends on the source alone is computed by @encode: states of the encoder, and of each layer the keys that attention makes of
// these. Layers read slices of these keys, and numbers by distance are those of 32 tokens.
module attributes {train.batch = 1 : i64, train.sequence = 4 : i64, train.source_sequence = 6 : i64, train.start_token = 0 : i64, train.vocabulary = 16 : i64} {
  train.variable @embed : tensor<16x8xf32> init <"normal", 0.02>
  train.variable @relative : tensor<8x2xf32> init <"normal", 0.02>
  train.variable @encoder.proj : tensor<8x8xf32> init <"normal", 0.02>
  train.variable @layers.keys : tensor<3x8x8xf32> stacked init <"normal", 0.02>
  func.func private @layer(%x: tensor<1x4x8xf32>, %w: tensor<8x8xf32>, %positions: tensor<1x4xi32>, %distances: tensor<7x2xf32>, %lengths: tensor<1xi32>, %states: tensor<1x6x8xf32>) -> tensor<1x4x8xf32> {
    %heads = train.reshape %x : (tensor<1x4x8xf32>) -> tensor<1x4x2x4xf32>
    %a, %lse = train.attention %heads, %heads, %heads positions %positions distances %distances scale 0.5 causal : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4xi32>, tensor<7x2xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
    %product = train.linear %states, %w : (tensor<1x6x8xf32>, tensor<8x8xf32>) -> tensor<1x6x8xf32>
    %keys = train.reshape %product : (tensor<1x6x8xf32>) -> tensor<1x6x2x4xf32>
    %b, %lse_b = train.attention %a, %keys, %keys lengths %lengths scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1xi32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
    %y = train.reshape %b : (tensor<1x4x2x4xf32>) -> tensor<1x4x8xf32>
    return %y : tensor<1x4x8xf32>
  }
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}, %targets: tensor<1x4xi32> {train.input = "targets"}, %positions: tensor<1x4xi32> {train.input = "positions"}, %source: tensor<1x6xi32> {train.input = "source"}, %source_lengths: tensor<1xi32> {train.input = "source_lengths"}, %target_weight: tensor<f32> {train.input = "target_weight"}) -> (tensor<f32> {train.output = "loss"}) {
    %embed = train.get @embed : tensor<16x8xf32>
    %read = train.embedding %embed, %source : (tensor<16x8xf32>, tensor<1x6xi32>) -> tensor<1x6x8xf32>
    %proj = train.get @encoder.proj : tensor<8x8xf32>
    %states = train.linear %read, %proj : (tensor<1x6x8xf32>, tensor<8x8xf32>) -> tensor<1x6x8xf32>
    %x = train.embedding %embed, %tokens : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    %relative = train.get @relative : tensor<8x2xf32>
    %buckets = train.distance_buckets 8 to 16 queries 4 keys 4 causal : tensor<7xi32>
    %distances = train.embedding %relative, %buckets : (tensor<8x2xf32>, tensor<7xi32>) -> tensor<7x2xf32>
    %keys = train.get @layers.keys : tensor<3x8x8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%keys) shared(%positions, %distances, %source_lengths, %states) : (tensor<1x4x8xf32>, tensor<3x8x8xf32>, tensor<1x4xi32>, tensor<7x2xf32>, tensor<1xi32>, tensor<1x6x8xf32>) -> tensor<1x4x8xf32>
    %logits = train.linear %y, %embed : (tensor<1x4x8xf32>, tensor<16x8xf32>) -> tensor<1x4x16xf32>
    %sum, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<1x4x16xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<1x4xf32>)
    %loss = train.mul %sum, %target_weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: module attributes {{.*}}train.source_sequence
// CHECK: train.variable @source.0 : tensor<3x1x6x2x4xf32>
// CHECK: func.func private @layer(%{{.*}}: tensor<1x4x8xf32>, %[[KEPT:[a-z_0-9]*]]: tensor<1x6x2x4xf32>, %{{.*}}: tensor<32x8xf32>, %{{.*}}: tensor<32x8xf32>, %{{.*}}: tensor<1x4xi32>, %[[DISTANCES:[a-z_0-9]*]]: tensor<63x2xf32>, %[[LENGTHS:[a-z_0-9]*]]: tensor<1xi32>,
// CHECK: train.attention {{.*}} distances %[[DISTANCES]] scale 5.000000e-01 causal queries 32
// CHECK-NOT: train.linear
// CHECK: train.attention %{{.*}}, %[[KEPT]], %[[KEPT]] lengths %[[LENGTHS]] scale
// CHECK: func.func @step(%{{[a-z_0-9]*}}: tensor<1x1x4xi32> {train.input = "tokens"}, %{{[a-z_0-9]*}}: tensor<1x1x4xi32> {train.input = "positions"}, %{{[a-z_0-9]*}}: tensor<1x1xi32> {train.input = "source_lengths"}, %{{[a-z_0-9]*}}: tensor<i32> {train.input = "first_position"})
// CHECK-DAG: %[[KEYS:.*]] = train.get @source.0
// CHECK-DAG: train.distance_buckets 8 to 16 queries 32 keys 32 causal : tensor<63xi32>
// CHECK: train.repeat @layer x 3 {{.*}}each(%[[KEYS]],
// CHECK: func.func private @layer.source(%{{.*}}: tensor<8x8xf32>, %{{.*}}: tensor<1x6x8xf32>) -> tensor<1x6x2x4xf32>
// CHECK: func.func @encode(%{{.*}}: tensor<1x1x6xi32> {train.input = "source"}) {
// CHECK: %[[STATES:.*]] = train.linear
// CHECK: %[[ALL:.*]] = train.repeat @layer.source x 3 carry() each(%{{.*}}) shared(%[[STATES]])
// CHECK-SAME: train.role = #train.role<forward>
// CHECK: train.set @source.0, %[[ALL]]

// -----

module {
  func.func private @layer(%x: tensor<1x4x2x4xf32>, %distances: tensor<7x2xf32>) -> tensor<1x4x2x4xf32> {
    // expected-error @+1 {{has distances that are not rows of a table by train.distance_buckets, which a decoder makes for whole sequences}}
    %a, %lse = train.attention %x, %x, %x distances %distances scale 0.5 causal : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<7x2xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
    return %a : tensor<1x4x2x4xf32>
  }
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}, %positions: tensor<1x4xi32> {train.input = "positions"}, %x: tensor<1x4x2x4xf32> {train.input = "x"}, %distances: tensor<7x2xf32> {train.input = "distances"}) -> (tensor<1x4x2x4xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared(%distances) : (tensor<1x4x2x4xf32>, tensor<7x2xf32>) -> tensor<1x4x2x4xf32>
    return %y : tensor<1x4x2x4xf32>
  }
}

// -----

module {
  func.func private @layer(%x: tensor<1x6x8xf32>, %states: tensor<1x6x8xf32>) -> tensor<1x6x8xf32> {
    %double = train.add %states, %states : (tensor<1x6x8xf32>, tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    %y = train.add %x, %double : (tensor<1x6x8xf32>, tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    return %y : tensor<1x6x8xf32>
  }
  func.func @loss(%tokens: tensor<1x6xi32> {train.input = "tokens"}, %positions: tensor<1x6xi32> {train.input = "positions"}, %source: tensor<1x6xi32> {train.input = "source"}, %table: tensor<16x8xf32> {train.input = "table"}) -> (tensor<1x6x8xf32> {train.output = "loss"}) {
    %x = train.embedding %table, %tokens : (tensor<16x8xf32>, tensor<1x6xi32>) -> tensor<1x6x8xf32>
    %weights = train.fill 1.0 : () -> tensor<16x8xf32>
    %states = train.embedding %weights, %source : (tensor<16x8xf32>, tensor<1x6xi32>) -> tensor<1x6x8xf32>
    // expected-error @+1 {{computes in @layer what depends on the source alone, which a decoder computes once; another repetition of the function}}
    %y = train.repeat @layer x 2 carry(%x) each() shared(%states) : (tensor<1x6x8xf32>, tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    %z = train.repeat @layer x 2 carry(%y) each() shared(%states) : (tensor<1x6x8xf32>, tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
    return %z : tensor<1x6x8xf32>
  }
}
