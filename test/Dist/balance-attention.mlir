// RUN: meshwright-opt %s --dist-balance-attention -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-balance-attention=context-balance=none -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: meshwright-opt %s --dist-balance-attention --dist-count-attention -split-input-file | FileCheck %s --check-prefix=WORK
// What is balanced is not balanced again.
// RUN: meshwright-opt %s --dist-balance-attention --dist-balance-attention -split-input-file | FileCheck %s
// NONE-NOT: dist.permute

// BEGIN EXAMPLE --dist-balance-attention --canonicalize
dist.mesh @mesh ["context" = 2]
func.func @forward(%q: tensor<2x8x4x16xf32>, %k: tensor<2x16x4x16xf32>, %v: tensor<2x16x4x16xf32>)
    -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>) {
  %first = dist.offset 8 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal queries 16
      : (tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %out, %lse : tensor<2x8x4x16xf32>, tensor<2x4x8xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[Q:[a-z0-9_]+]]: tensor<2x8x4x16xf32>, %[[K:[a-z0-9_]+]]: {{.*}}, %[[V:[a-z0-9_]+]]:
// CHECK: %[[FIRST:.*]] = dist.offset 8
// The first half of the device's own queries.
// CHECK: %[[OWN:.*]] = train.slice %[[Q]] dim 1 rows 4
// The second half of the other's: 12 is where the last device's begins.
// CHECK: %[[REST:.*]] = train.slice %[[Q]] dim 1 from 4 rows 4
// CHECK: %[[OTHERS:.*]] = dist.permute %[[REST]] from [1, 0] over <@mesh {context}>
// CHECK: train.pad {{.*}} rows 2 {value = 12 : i64}
// CHECK: %[[SECOND:.*]] = train.shift_ids %{{.*}}, %[[FIRST]]
// Then both are computed, with no exchange in between.
// CHECK: %[[OUT0:.*]], %[[LSE0:.*]] = train.attention %[[OWN]], %[[K]], %[[V]] query_offset %[[FIRST]] {{.*}} causal queries 16
// CHECK-NOT: dist.
// CHECK: %[[OUT1:.*]], %[[LSE1:.*]] = train.attention %[[OTHERS]], %[[K]], %[[V]] query_offset %[[SECOND]]
// What it computed goes back.
// CHECK: %[[X:.*]] = train.pad %[[OUT0]] dim 1 rows 8
// CHECK: %[[BACK:.*]] = dist.permute %[[OUT1]] from [1, 0]
// CHECK: %[[Y:.*]] = train.pad %[[BACK]] dim 1 {{.*}}rows 8
// CHECK: %[[OUT:.*]] = train.add %[[X]], %[[Y]]
// CHECK: train.pad %[[LSE0]] dim 2 rows 8
// CHECK: %[[LSE:.*]] = train.add
// CHECK: return %[[OUT]], %[[LSE]]

// 0..3 and 12..15 see 1 + 2 + 3 + 4 and 13 + 14 + 15 + 16 keys, 68 pairs, as 8..11 and 4..7 do.
// WORK-LABEL: func.func @forward(
// WORK: train.attention {{.*}}dist.pairs = array<i64: 10, 42>
// WORK: train.attention {{.*}}dist.pairs = array<i64: 58, 26>

// -----

dist.mesh @mesh ["data" = 2, "context" = 3]
// CHECK-LABEL: func.func @backward(
func.func @backward(%dout: tensor<2x3x4x16xbf16>, %q: tensor<2x3x4x8xbf16>, %k: tensor<2x9x2x8xbf16>, %v: tensor<2x9x2x16xbf16>,
    %out: tensor<2x3x4x16xbf16>, %lse: tensor<2x4x3xf32>, %sinks: tensor<4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>)
    -> (tensor<2x3x4x8xbf16>, tensor<2x9x2x8xbf16>, tensor<2x9x2x16xbf16>, tensor<4xf32>) {
  %first = dist.offset 3 over <@mesh {context}> : tensor<i32>
  // The device in the middle keeps its own.
  // CHECK: train.slice {{.*}} dim 1 rows 2
  // CHECK: train.slice {{.*}} dim 2 rows 2
  // CHECK-COUNT-4: dist.permute {{.*}} from [2, 1, 0] over <@mesh {context}>
  // CHECK: train.pad {{.*}} rows 2 {value = 8 : i64}
  // CHECK: %[[DQ0:.*]], %[[DK0:.*]], %[[DV0:.*]], %[[DS0:.*]] = train.attention_grad {{.*}} dropout({{.*}}) {{.*}}dist.copied = ["tensor"]
  // CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]], %[[DS1:.*]] = train.attention_grad {{.*}} dropout({{.*}}) {{.*}}dist.copied = ["tensor"]
  // CHECK: dist.permute %[[DQ1]] from [2, 1, 0]
  // CHECK: train.add %[[DK0]], %[[DK1]]
  // CHECK: train.add %[[DV0]], %[[DV1]]
  // CHECK: train.add %[[DS0]], %[[DS1]]
  %dq, %dk, %dv, %ds = train.attention_grad %dout, %q, %k, %v, %out, %lse dropout(%ids, %key) query_offset %first sinks %sinks scale 0.25 causal
      dropout 0.5 heads 4 queries 9 {dist.copied = ["tensor"]}
      : (tensor<2x3x4x16xbf16>, tensor<2x3x4x8xbf16>, tensor<2x9x2x8xbf16>, tensor<2x9x2x16xbf16>, tensor<2x3x4x16xbf16>, tensor<2x4x3xf32>,
         tensor<2xi32>, tensor<2xi32>, tensor<i32>, tensor<4xf32>) -> (tensor<2x3x4x8xbf16>, tensor<2x9x2x8xbf16>, tensor<2x9x2x16xbf16>, tensor<4xf32>)
  return %dq, %dk, %dv, %ds : tensor<2x3x4x8xbf16>, tensor<2x9x2x8xbf16>, tensor<2x9x2x16xbf16>, tensor<4xf32>
}

// -----

// All queries but the first see as many keys: an exchange would gain nothing.
dist.mesh @mesh ["context" = 4]
// CHECK-LABEL: func.func @window(
// CHECK-NOT: dist.permute
// WORK-LABEL: func.func @window(
// WORK: dist.pairs = array<i64: 7, 8, 8, 8>
func.func @window(%q: tensor<1x4x2x8xf32>, %k: tensor<1x16x2x8xf32>, %v: tensor<1x16x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal window 2 queries 16
      : (tensor<1x4x2x8xf32>, tensor<1x16x2x8xf32>, tensor<1x16x2x8xf32>, tensor<i32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x8xf32>
}

// -----

// Of 14 tokens two are padding, which nobody counts.
dist.mesh @mesh ["context" = 4]
// CHECK-LABEL: func.func @padded(
// CHECK: dist.permute {{.*}} from [3, 2, 1, 0]
// WORK-LABEL: func.func @padded(
// WORK: dist.pairs = array<i64: 3, 11, 19, 27>
// WORK: dist.pairs = array<i64: 0, 23, 15, 7>
func.func @padded(%q: tensor<1x4x2x8xf32>, %k: tensor<1x14x2x8xf32>, %v: tensor<1x14x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal queries 14
      : (tensor<1x4x2x8xf32>, tensor<1x14x2x8xf32>, tensor<1x14x2x8xf32>, tensor<i32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x8xf32>
}

// -----

// Heads are divided, or nothing is: queries are whole.
dist.mesh @mesh ["context" = 2]
// CHECK-LABEL: func.func @whole(
// CHECK-NOT: dist.permute
func.func @whole(%q: tensor<1x8x2x8xf32>, %k: tensor<1x8x2x8xf32>, %v: tensor<1x8x2x8xf32>) -> tensor<1x8x2x8xf32> {
  %out, %lse = train.attention %q, %k, %v scale 0.25 causal : (tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>) -> (tensor<1x8x2x8xf32>, tensor<1x2x8xf32>)
  return %out : tensor<1x8x2x8xf32>
}
