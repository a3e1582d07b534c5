// RUN: meshwright-opt %s --dist-ring-attention -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-ring-attention=context-balance=none -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: meshwright-opt %s --dist-ring-attention --annotate-attention-work -split-input-file | FileCheck %s --check-prefix=WORK
// What goes around already is not balanced again.
// RUN: meshwright-opt %s --dist-ring-attention --dist-balance-attention -split-input-file | FileCheck %s

// BEGIN EXAMPLE --dist-ring-attention=context-balance=none --canonicalize
dist.mesh @mesh ["context" = 3]
func.func @forward(%q: tensor<2x4x4x16xbf16>, %k: tensor<2x4x4x16xbf16>, %v: tensor<2x4x4x16xbf16>)
    -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>) {
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x4x16xbf16>) -> tensor<2x12x4x16xbf16>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x4x16xbf16>) -> tensor<2x12x4x16xbf16>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 causal {queries = 12 : i64}
      : (tensor<2x4x4x16xbf16>, tensor<2x12x4x16xbf16>, tensor<2x12x4x16xbf16>, tensor<i32>) -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>
}
// END EXAMPLE

// NONE-LABEL: func.func @forward(
// NONE-SAME: %[[Q:[a-z0-9_]+]]: {{.*}}, %[[K0:[a-z0-9_]+]]: {{.*}}, %[[V0:[a-z0-9_]+]]:
// NONE: %[[FIRST:.*]] = dist.offset 4 over
// The part of the device before this one is on its way while attention of the device's own runs.
// NONE: %[[K1:.*]] = dist.permute %[[K0]] from [2, 0, 1]
// NONE: %[[V1:.*]] = dist.permute %[[V0]] from [2, 0, 1]
// NONE: %[[AT0:.*]] = dist.offset 4 over
// NONE: %[[OUT0:.*]], %[[LSE0:.*]] = train.attention %[[Q]], %[[K0]], %[[V0]] query_offset %[[FIRST]] key_offset %[[AT0]] scale
// NONE-SAME: keys = 12 : i64{{.*}}-> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
// NONE: %[[K2:.*]] = dist.permute %[[K1]] from [2, 0, 1]
// NONE: %[[V2:.*]] = dist.permute %[[V1]] from [2, 0, 1]
// NONE: %[[AT1:.*]] = dist.offset 4 shift 2 over
// NONE: %[[OUT1:.*]], %[[LSE1:.*]] = train.attention %[[Q]], %[[K1]], %[[V1]] query_offset %[[FIRST]] key_offset %[[AT1]] before(%[[OUT0]], %[[LSE0]])
// NONE: %[[AT2:.*]] = dist.offset 4 shift 1 over
// NONE: %[[OUT2:.*]], %[[LSE2:.*]] = train.attention %[[Q]], %[[K2]], %[[V2]] query_offset %[[FIRST]] key_offset %[[AT2]] before(%[[OUT1]], %[[LSE1]])
// NONE-NOT: dist.permute
// NONE: %[[OUT:.*]] = train.cast %[[OUT2]] : (tensor<2x4x4x16xf32>) -> tensor<2x4x4x16xbf16>
// NONE: return %[[OUT]], %[[LSE2]]

// With balance the second halves are exchanged first, of queries, keys and values.
// CHECK-LABEL: func.func @forward(
// CHECK-COUNT-3: dist.permute {{.*}} from [2, 1, 0]
// CHECK-COUNT-4: dist.permute {{.*}} from [2, 0, 1]
// CHECK-NOT: train.attention {{.*}}before
// CHECK: train.attention
// What is computed of others' queries goes back.
// CHECK-COUNT-2: dist.permute {{.*}} from [2, 1, 0]
// CHECK: return

// In each step every device has as many pairs: here those of two chunks of 2 queries and 2 keys, 8, or 10 with the
// two triangles of the first step.
// WORK-LABEL: func.func @forward(
// WORK: train.attention {{.*}}dist.pairs = array<i64: 3, 3, 3>
// WORK: train.attention {{.*}}dist.pairs = array<i64: 4, 4, 0>
// WORK: train.attention {{.*}}dist.pairs = array<i64: 0, 0, 4>
// WORK: train.attention {{.*}}dist.pairs = array<i64: 3, 3, 3>
// WORK: train.attention {{.*}}dist.pairs = array<i64: 0, 4, 4>
