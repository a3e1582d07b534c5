// RUN: meshwright-opt %s --dist-ring-attention=context-balance=striped --dist-balance-attention=context-balance=striped \
// RUN:   -canonicalize --dist-count-attention -split-input-file -verify-diagnostics | FileCheck %s

// Of 16 tokens a device has 4 in a row, and computes attention of each fourth.
dist.mesh @mesh ["context" = 4] {dist.ring}
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[Q:[a-z0-9_]+]]: {{.*}}, %[[K:[a-z0-9_]+]]: {{.*}}, %[[V:[a-z0-9_]+]]:
func.func @forward(%q: tensor<2x4x4x16xbf16>, %k: tensor<2x4x2x16xbf16>, %v: tensor<2x4x2x16xbf16>)
    -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>) {
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x2x16xbf16>) -> tensor<2x16x2x16xbf16>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x2x16xbf16>) -> tensor<2x16x2x16xbf16>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  // CHECK: %[[COLUMNS:.*]] = train.reshape %[[Q]] : (tensor<2x4x4x16xbf16>) -> tensor<2x1x4x4x16xbf16>
  // CHECK: %[[DEALT:.*]] = dist.all_to_all %[[COLUMNS]] split 2 concat 1 over <@mesh {context}> {{.*}} -> tensor<2x4x1x4x16xbf16>
  // CHECK: %[[STRIPE:.*]] = train.reshape %[[DEALT]] : (tensor<2x4x1x4x16xbf16>) -> tensor<2x4x4x16xbf16>
  // CHECK: dist.offset 1 over
  // Keys and values are dealt out too.
  // CHECK-COUNT-2: dist.all_to_all {{.*}} split 2 concat 1
  // Each step has a triangle of 4 queries and 4 keys, with its diagonal or without.
  // CHECK: train.attention %[[STRIPE]], {{.*}} causal queries 16 keys 16 pairs 1.000000e+01 query_stride 4 key_stride 4 {{.*}}dist.pairs = array<i64: 10, 10, 10, 10>
  // CHECK: train.attention %[[STRIPE]], {{.*}}dist.pairs = array<i64: 6, 10, 10, 10>
  // CHECK: train.attention %[[STRIPE]], {{.*}}dist.pairs = array<i64: 6, 6, 10, 10>
  // CHECK: train.attention %[[STRIPE]], {{.*}}dist.pairs = array<i64: 6, 6, 6, 10>
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 causal queries 16
      : (tensor<2x4x4x16xbf16>, tensor<2x16x2x16xbf16>, tensor<2x16x2x16xbf16>, tensor<i32>) -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>)
  // Back go results and their logarithms.
  // CHECK: dist.all_to_all {{.*}} split 1 concat 2 {{.*}} -> tensor<2x1x4x4x16xbf16>
  // CHECK: dist.all_to_all {{.*}} split 2 concat 3 {{.*}} -> tensor<2x4x1x4xf32>
  return %out, %lse : tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>
}

// -----

// Keys that are gathered stay in order; all queries are one call.
dist.mesh @mesh ["context" = 2]
// CHECK-LABEL: func.func @gathered(
// CHECK: dist.all_to_all
// CHECK: train.attention {{.*}} causal queries 8 query_stride 2 {{.*}}dist.pairs = array<i64: 16, 20>
func.func @gathered(%q: tensor<2x4x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>)
    -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>) {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal queries 8
      : (tensor<2x4x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<i32>) -> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xf32>, tensor<2x4x4xf32>
}

// -----

dist.mesh @mesh ["context" = 2]
func.func @uneven(%q: tensor<2x3x4x16xf32>, %k: tensor<2x6x4x16xf32>, %v: tensor<2x6x4x16xf32>)
    -> (tensor<2x3x4x16xf32>, tensor<2x4x3xf32>) {
  %first = dist.offset 3 over <@mesh {context}> : tensor<i32>
  // expected-error @+1 {{--context-balance striped cannot deal out evenly the 3 tokens of each of 2 ranks; use a --seq of which each rank has a multiple of 2, or --context-balance zigzag}}
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal queries 6
      : (tensor<2x3x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>, tensor<i32>) -> (tensor<2x3x4x16xf32>, tensor<2x4x3xf32>)
  return %out, %lse : tensor<2x3x4x16xf32>, tensor<2x4x3xf32>
}
