// RUN: meshwright-opt %s --dist-count-attention | FileCheck %s

// BEGIN EXAMPLE --dist-count-attention
dist.mesh @mesh ["context" = 4]
// Of 16 tokens a device has 4 queries; a window of 6 makes the last three alike.
func.func @forward(%q: tensor<2x4x4x16xf32>, %k: tensor<2x16x4x16xf32>, %v: tensor<2x16x4x16xf32>)
    -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>) {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal window 6 queries 16
      : (tensor<2x4x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>) -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xf32>, tensor<2x4x4xf32>
}
// END EXAMPLE

// CHECK: train.attention {{.*}} causal window 6 queries 16 {dist.divided_over = #dist.group<@mesh {context}>, dist.first_queries = array<i64: 0, 4, 8, 12>, dist.pairs = array<i64: 10, 23, 24, 24>

// Chunks of 8 tokens end where every other device's part does.
func.func @chunks(%q: tensor<2x4x4x16xf32>, %k: tensor<2x16x4x16xf32>, %v: tensor<2x16x4x16xf32>)
    -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>) {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal chunk 8 queries 16
      : (tensor<2x4x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>) -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xf32>, tensor<2x4x4xf32>
}

// CHECK: func.func @chunks
// CHECK: train.attention {{.*}} chunk 8 queries 16 {{.*}}dist.pairs = array<i64: 10, 26, 10, 26>

// Documents of packed sequences are known to a run alone, which finds the pairs by where parts begin.
func.func @packed(%q: tensor<2x4x4x16xf32>, %k: tensor<2x4x4x16xf32>, %v: tensor<2x4x4x16xf32>, %positions: tensor<2x16xi32>)
    -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>) {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %key = dist.offset 4 shift 3 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first key_offset %key positions %positions scale 0.25 causal queries 16 keys 16
      : (tensor<2x4x4x16xf32>, tensor<2x4x4x16xf32>, tensor<2x4x4x16xf32>, tensor<i32>, tensor<i32>, tensor<2x16xi32>) -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xf32>, tensor<2x4x4xf32>
}

// CHECK: func.func @packed
// CHECK: train.attention {{.*}}dist.divided_over = #dist.group<@mesh {context}>, dist.first_keys = array<i64: 12, 0, 4, 8>, dist.first_queries = array<i64: 0, 4, 8, 12>
