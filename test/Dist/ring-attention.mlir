// RUN: meshwright-opt %s --dist-ring-attention -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-ring-attention=context-balance=none -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: meshwright-opt %s --dist-ring-attention --dist-count-attention -split-input-file | FileCheck %s --check-prefix=WORK
// What goes around already is not balanced again.
// RUN: meshwright-opt %s --dist-ring-attention --dist-balance-attention -split-input-file | FileCheck %s

// BEGIN EXAMPLE --dist-ring-attention=context-balance=none --canonicalize
dist.mesh @mesh ["context" = 3] {dist.ring}
func.func @forward(%q: tensor<2x4x4x16xbf16>, %k: tensor<2x4x4x16xbf16>, %v: tensor<2x4x4x16xbf16>)
    -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>) {
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x4x16xbf16>) -> tensor<2x12x4x16xbf16>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x4x16xbf16>) -> tensor<2x12x4x16xbf16>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 causal queries 12
      : (tensor<2x4x4x16xbf16>, tensor<2x12x4x16xbf16>, tensor<2x12x4x16xbf16>, tensor<i32>) -> (tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>)
  return %out, %lse : tensor<2x4x4x16xbf16>, tensor<2x4x4xf32>
}
// END EXAMPLE

// NONE-LABEL: func.func @forward(
// NONE-SAME: %[[Q:[a-z0-9_]+]]: {{.*}}, %[[K0:[a-z0-9_]+]]: {{.*}}, %[[V0:[a-z0-9_]+]]:
// NONE: %[[FIRST:.*]] = dist.offset 4 over
// NONE: %[[AT0:.*]] = dist.offset 4 over
// NONE: %[[AT1:.*]] = dist.offset 4 shift 2 over
// NONE: %[[AT2:.*]] = dist.offset 4 shift 1 over
// The part of the device before this one is on its way while attention of the device's own runs.
// NONE: %[[K1:.*]] = dist.permute %[[K0]] from [2, 0, 1]
// NONE: %[[V1:.*]] = dist.permute %[[V0]] from [2, 0, 1]
// NONE: %[[OUT0:.*]], %[[LSE0:.*]] = train.attention %[[Q]], %[[K0]], %[[V0]] query_offset %[[FIRST]] key_offset %[[AT0]] scale
// NONE-SAME: keys 12 {{.*}}-> (tensor<2x4x4x16xf32>, tensor<2x4x4xf32>)
// NONE: %[[K2:.*]] = dist.permute %[[K1]] from [2, 0, 1]
// NONE: %[[V2:.*]] = dist.permute %[[V1]] from [2, 0, 1]
// NONE: %[[OUT1:.*]], %[[LSE1:.*]] = train.attention %[[Q]], %[[K1]], %[[V1]] query_offset %[[FIRST]] key_offset %[[AT1]] before(%[[OUT0]], %[[LSE0]])
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

// -----

dist.mesh @mesh ["data" = 2, "context" = 4] {dist.ring}
// Of a window of 4 the last two steps are nothing: each device meets its own part and one more.
// NONE-LABEL: func.func @backward(
// NONE-SAME: %[[DOUT:[a-z0-9_]+]]: {{.*}}, %[[Q:[a-z0-9_]+]]: {{.*}}, %[[K0:[a-z0-9_]+]]: {{.*}}, %[[V0:[a-z0-9_]+]]: {{.*}}, %[[OUT:[a-z0-9_]+]]: {{.*}}, %[[LSE:[a-z0-9_]+]]: tensor<2x4x4xf32>, %[[SINKS:[a-z0-9_]+]]:
func.func @backward(%dout: tensor<2x4x4x8xbf16>, %q: tensor<2x4x4x8xbf16>, %k: tensor<2x4x2x8xbf16>, %v: tensor<2x4x2x8xbf16>,
    %out: tensor<2x4x4x8xbf16>, %lse: tensor<2x4x4xf32>, %sinks: tensor<4xf32>)
    -> (tensor<2x4x4x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>, tensor<4xf32>) {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %gk = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x2x8xbf16>) -> tensor<2x16x2x8xbf16>
  %gv = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x2x8xbf16>) -> tensor<2x16x2x8xbf16>
  // Sequences of 14 are padded.
  %ks = train.slice %gk dim 1 rows 14 : (tensor<2x16x2x8xbf16>) -> tensor<2x14x2x8xbf16>
  %vs = train.slice %gv dim 1 rows 14 : (tensor<2x16x2x8xbf16>) -> tensor<2x14x2x8xbf16>
  // NONE: %[[K1:.*]] = dist.permute %[[K0]] from [3, 0, 1, 2]
  // NONE: %[[V1:.*]] = dist.permute %[[V0]] from [3, 0, 1, 2]
  // A sink is one key of all: it takes part in one step.
  // NONE: %[[DQ0:.*]], %[[DK0:.*]], %[[DV0:.*]], %[[DS:.*]] = train.attention_grad %[[DOUT]], %[[Q]], %[[K0]], %[[V0]], %[[OUT]], %[[LSE]] {{.*}} sinks %[[SINKS]] {{.*}}keys 14
  // NONE: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = train.attention_grad %[[DOUT]], %[[Q]], %[[K1]], %[[V1]], %[[OUT]], %[[LSE]] {{.*}} scale
  // NONE-SAME: -> (tensor<2x4x4x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>)
  // NONE: %[[DQ:.*]] = train.add %[[DQ0]], %[[DQ1]]
  // Home, to the device before.
  // NONE: %[[HOMEK:.*]] = dist.permute %[[DK1]] from [1, 2, 3, 0]
  // NONE: %[[HOMEV:.*]] = dist.permute %[[DV1]] from [1, 2, 3, 0]
  // NONE: %[[DK:.*]] = train.add %[[DK0]], %[[HOMEK]] : (tensor<2x4x2x8xf32>
  // NONE: %[[DV:.*]] = train.add %[[DV0]], %[[HOMEV]]
  // NONE: %[[A:.*]] = train.cast %[[DQ]]
  // NONE: %[[B:.*]] = train.cast %[[DK]]
  // NONE: %[[C:.*]] = train.cast %[[DV]]
  // NONE: return %[[A]], %[[B]], %[[C]], %[[DS]]
  %dq, %dk, %dv, %dsinks = train.attention_grad %dout, %q, %ks, %vs, %out, %lse query_offset %first sinks %sinks scale 0.25 causal window 4 queries 14
      : (tensor<2x4x4x8xbf16>, tensor<2x4x4x8xbf16>, tensor<2x14x2x8xbf16>, tensor<2x14x2x8xbf16>, tensor<2x4x4x8xbf16>, tensor<2x4x4xf32>, tensor<i32>, tensor<4xf32>)
      -> (tensor<2x4x4x8xbf16>, tensor<2x14x2x8xbf16>, tensor<2x14x2x8xbf16>, tensor<4xf32>)
  // As partition sums what is padded, and what is not.
  %rk = dist.all_reduce sum %dk over <@mesh {context}> : (tensor<2x14x2x8xbf16>) -> tensor<2x14x2x8xbf16>
  %pk = train.pad %rk dim 1 rows 16 : (tensor<2x14x2x8xbf16>) -> tensor<2x16x2x8xbf16>
  %ok = dist.slice %pk dim 1 over <@mesh {context}> : (tensor<2x16x2x8xbf16>) -> tensor<2x4x2x8xbf16>
  %pv = train.pad %dv dim 1 rows 16 : (tensor<2x14x2x8xbf16>) -> tensor<2x16x2x8xbf16>
  %ov = dist.reduce_scatter sum %pv dim 1 over <@mesh {context}> : (tensor<2x16x2x8xbf16>) -> tensor<2x4x2x8xbf16>
  return %dq, %ok, %ov, %dsinks : tensor<2x4x4x8xbf16>, tensor<2x4x2x8xbf16>, tensor<2x4x2x8xbf16>, tensor<4xf32>
}

// -----

// Of a window on both sides a device's queries see keys of the device before it and of the one behind: these parts alone are sent, the
// latter straight from where it is after the first step.
dist.mesh @mesh ["context" = 6] {dist.ring}
// NONE-LABEL: func.func @window(
// NONE-COUNT-2: dist.permute {{.*}} from [5, 0, 1, 2, 3, 4]
// NONE: train.attention
// NONE-COUNT-2: dist.permute {{.*}} from [2, 3, 4, 5, 0, 1]
// NONE-NOT: dist.permute
// NONE-COUNT-2: train.attention {{.*}}before
// NONE-NOT: train.attention
// NONE: return
func.func @window(%q: tensor<2x4x4x8xf32>, %k: tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32> {
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %v = train.scale %k by 2.0 : (tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x4x8xf32>) -> tensor<2x24x4x8xf32>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x4x8xf32>) -> tensor<2x24x4x8xf32>
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 window 4 queries 24
      : (tensor<2x4x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<i32>) -> (tensor<2x4x4x8xf32>, tensor<2x4x4xf32>)
  return %out : tensor<2x4x4x8xf32>
}

// -----

// Heads that share one key head, where nothing depends on a position: the two devices that have the same queries gather their keys, then
// these go around. Keys are values too, and their gradients one sum.
dist.mesh @mesh ["context.0" = 2, "context.1" = 2] {dist.ring}
// NONE-LABEL: func.func @shared(
// NONE: dist.all_gather {{.*}} over <@mesh {context.1}>
// NONE: dist.permute {{.*}} from [1, 0] over <@mesh {context.0}>
// NONE: train.attention_grad
// NONE: train.attention_grad
// NONE: train.add
// NONE: dist.reduce_scatter sum {{.*}} dim 1 over <@mesh {context.1}>
// NONE-NOT: dist.reduce_scatter
// NONE: return
func.func @shared(%q: tensor<1x8x2x8xf32>, %k: tensor<1x4x1x8xf32>, %lse: tensor<1x2x8xf32>) -> (tensor<1x8x2x8xf32>, tensor<1x4x1x8xf32>) {
  %ks = dist.all_gather %k dim 1 over <@mesh {context.0, context.1}> : (tensor<1x4x1x8xf32>) -> tensor<1x16x1x8xf32>
  %dq, %dk, %dv = train.attention_grad %q, %q, %ks, %ks, %q, %lse scale 0.25 queries 16
      : (tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>, tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>, tensor<1x8x2x8xf32>, tensor<1x2x8xf32>)
      -> (tensor<1x8x2x8xf32>, tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>)
  %both = train.add %dk, %dv : (tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>) -> tensor<1x16x1x8xf32>
  %sum = dist.reduce_scatter sum %both dim 1 over <@mesh {context.0, context.1}> : (tensor<1x16x1x8xf32>) -> tensor<1x4x1x8xf32>
  return %dq, %sum : tensor<1x8x2x8xf32>, tensor<1x4x1x8xf32>
}

// -----

// Keys that every device has, as those of a table, go nowhere.
dist.mesh @mesh ["context" = 2] {dist.ring}
// NONE-LABEL: func.func @table(
// NONE-NOT: dist.permute
// NONE: train.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale {{[^ ]+}} :
func.func @table(%q: tensor<1x8x2x8xf32>, %k: tensor<1x5x2x8xf32>) -> tensor<1x8x2x8xf32> {
  %out, %lse = train.attention %q, %k, %k scale 0.25
      : (tensor<1x8x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>) -> (tensor<1x8x2x8xf32>, tensor<1x2x8xf32>)
  return %out : tensor<1x8x2x8xf32>
}

// -----

// Latent heads: keys and values of 8 heads are made of 12 numbers a token. These go around, after the first step keys and values
// are made of them again, and in the backward their gradients go around. Gradients of weights are added up where they are.
dist.mesh @mesh ["context" = 2] {dist.ring}
// NONE-LABEL: func.func @latent(
// NONE-SAME: %[[Q:[a-z0-9_]+]]: {{.*}}, %[[L0:[a-z0-9_]+]]: {{.*}}, %[[KW:[a-z0-9_]+]]: {{.*}}, %[[VW:[a-z0-9_]+]]: tensor
// NONE-DAG: %[[KF0:.*]] = train.linear %[[L0]], %[[KW]] : (
// NONE-DAG: %[[K0:.*]] = train.reshape %[[KF0]]
// NONE-DAG: %[[VF0:.*]] = train.linear %[[L0]], %[[VW]] : (
// NONE-DAG: %[[V0:.*]] = train.reshape %[[VF0]]
// NONE: %[[L1:.*]] = dist.permute %[[L0]] from [1, 0] {{.*}} : (tensor<2x4x12xf32>)
// NONE-NOT: dist.permute
// NONE: train.attention %[[Q]], %[[K0]], %[[V0]]
// NONE-DAG: %[[KF1:.*]] = train.linear %[[L1]], %[[KW]] {train.recomputed = "latents"}
// NONE-DAG: %[[K1:.*]] = train.reshape %[[KF1]]
// NONE-DAG: %[[VF1:.*]] = train.linear %[[L1]], %[[VW]] {train.recomputed = "latents"}
// NONE-DAG: %[[V1:.*]] = train.reshape %[[VF1]]
// NONE: train.attention %[[Q]], %[[K1]], %[[V1]] {{.*}}before
// NONE-NOT: dist.permute
// NONE: return
func.func @latent(%q: tensor<2x4x8x16xf32>, %latent: tensor<2x4x12xf32>, %kw: tensor<128x12xf32>, %vw: tensor<128x12xf32>) -> tensor<2x4x8x16xf32> {
  %kf = train.linear %latent, %kw : (tensor<2x4x12xf32>, tensor<128x12xf32>) -> tensor<2x4x128xf32>
  %k = train.reshape %kf : (tensor<2x4x128xf32>) -> tensor<2x4x8x16xf32>
  %vf = train.linear %latent, %vw : (tensor<2x4x12xf32>, tensor<128x12xf32>) -> tensor<2x4x128xf32>
  %v = train.reshape %vf : (tensor<2x4x128xf32>) -> tensor<2x4x8x16xf32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x8x16xf32>) -> tensor<2x8x8x16xf32>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x8x16xf32>) -> tensor<2x8x8x16xf32>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 causal queries 8
      : (tensor<2x4x8x16xf32>, tensor<2x8x8x16xf32>, tensor<2x8x8x16xf32>, tensor<i32>) -> (tensor<2x4x8x16xf32>, tensor<2x8x4xf32>)
  return %out : tensor<2x4x8x16xf32>
}

// NONE-LABEL: func.func @latent_backward(
// NONE: dist.permute {{.*}} from [1, 0] {{.*}} : (tensor<2x4x12xbf16>)
// NONE-NOT: dist.permute
// NONE: %{{.*}}, %[[DK0:[a-z0-9_]+]], %[[DV0:[a-z0-9_]+]] = train.attention_grad
// NONE: %[[DKB:.*]] = train.cast %[[DK0]] {{.*}} -> tensor<2x4x8x16xbf16>
// Neither what travels nor what is a sum over tokens is rounded before it is a sum over steps.
// NONE-DAG: %[[DL0:.*]] = train.add {{.*}} : (tensor<2x4x12xf32>, tensor<2x4x12xf32>)
// NONE-DAG: %[[DKW0:.*]] = train.contract "b s o, b s i -> o i" {{.*}} -> tensor<128x12xf32>
// NONE: train.attention_grad
// NONE-DAG: %[[DL1:.*]] = train.add {{.*}} : (tensor<2x4x12xf32>, tensor<2x4x12xf32>)
// NONE-DAG: train.contract "b s o, b s i -> o i" {{.*}} {train.recomputed = "latents"}
// NONE: train.add %[[DKW0]], %{{.*}} {dist.sum_of_steps}
// NONE: %[[HOME:.*]] = dist.permute %[[DL1]] from [1, 0]
// NONE: train.add %[[DL0]], %[[HOME]]
// NONE-NOT: dist.permute
// NONE: return
func.func @latent_backward(%dout: tensor<2x4x8x16xbf16>, %q: tensor<2x4x8x16xbf16>, %latent: tensor<2x4x12xbf16>, %kw: tensor<128x12xbf16>,
    %vw: tensor<128x12xbf16>, %out: tensor<2x4x8x16xbf16>, %lse: tensor<2x8x4xf32>)
    -> (tensor<2x4x8x16xbf16>, tensor<2x4x12xbf16>, tensor<128x12xbf16>, tensor<128x12xbf16>) {
  %kf = train.linear %latent, %kw : (tensor<2x4x12xbf16>, tensor<128x12xbf16>) -> tensor<2x4x128xbf16>
  %k = train.reshape %kf : (tensor<2x4x128xbf16>) -> tensor<2x4x8x16xbf16>
  %vf = train.linear %latent, %vw : (tensor<2x4x12xbf16>, tensor<128x12xbf16>) -> tensor<2x4x128xbf16>
  %v = train.reshape %vf : (tensor<2x4x128xbf16>) -> tensor<2x4x8x16xbf16>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x8x16xbf16>) -> tensor<2x8x8x16xbf16>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x8x16xbf16>) -> tensor<2x8x8x16xbf16>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %dq, %dks, %dvs = train.attention_grad %dout, %q, %ks, %vs, %out, %lse query_offset %first scale 0.25 causal queries 8
      : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x8x8x16xbf16>, tensor<2x8x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x8x4xf32>, tensor<i32>)
      -> (tensor<2x4x8x16xbf16>, tensor<2x8x8x16xbf16>, tensor<2x8x8x16xbf16>)
  %dkh = dist.reduce_scatter sum %dks dim 1 over <@mesh {context}> : (tensor<2x8x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  %dvh = dist.reduce_scatter sum %dvs dim 1 over <@mesh {context}> : (tensor<2x8x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  %dk = train.reshape %dkh : (tensor<2x4x8x16xbf16>) -> tensor<2x4x128xbf16>
  %dv = train.reshape %dvh : (tensor<2x4x8x16xbf16>) -> tensor<2x4x128xbf16>
  %dead = train.reshape %dkh : (tensor<2x4x8x16xbf16>) -> tensor<8x128xbf16>
  %dlk = train.contract "b s o, o i -> b s i" %dk, %kw : (tensor<2x4x128xbf16>, tensor<128x12xbf16>) -> tensor<2x4x12xbf16>
  %dkw = train.contract "b s o, b s i -> o i" %dk, %latent : (tensor<2x4x128xbf16>, tensor<2x4x12xbf16>) -> tensor<128x12xbf16>
  %dlv = train.contract "b s o, o i -> b s i" %dv, %vw : (tensor<2x4x128xbf16>, tensor<128x12xbf16>) -> tensor<2x4x12xbf16>
  %dvw = train.contract "b s o, b s i -> o i" %dv, %latent : (tensor<2x4x128xbf16>, tensor<2x4x12xbf16>) -> tensor<128x12xbf16>
  %dl = train.add %dlk, %dlv : (tensor<2x4x12xbf16>, tensor<2x4x12xbf16>) -> tensor<2x4x12xbf16>
  return %dq, %dl, %dkw, %dvw : tensor<2x4x8x16xbf16>, tensor<2x4x12xbf16>, tensor<128x12xbf16>, tensor<128x12xbf16>
}

// Where the gradients of keys and values themselves are needed, they go around.
// NONE-LABEL: func.func @latent_read(
// NONE: dist.permute {{.*}} : (tensor<2x4x12xf32>)
// NONE: %{{.*}}, %[[DK0:[a-z0-9_]+]], %[[DV0:[a-z0-9_]+]] = train.attention_grad
// NONE: %{{.*}}, %[[DK1:[a-z0-9_]+]], %[[DV1:[a-z0-9_]+]] = train.attention_grad
// NONE: %[[HOMEK:.*]] = dist.permute %[[DK1]] from [1, 0]
// NONE: %[[HOMEV:.*]] = dist.permute %[[DV1]] from [1, 0]
// NONE: %[[DK:.*]] = train.add %[[DK0]], %[[HOMEK]]
// NONE: %[[DV:.*]] = train.add %[[DV0]], %[[HOMEV]]
// NONE: return %{{.*}}, %[[DK]], %[[DV]]
func.func @latent_read(%dout: tensor<2x4x8x8xf32>, %q: tensor<2x4x8x16xf32>, %latent: tensor<2x4x12xf32>, %kw: tensor<128x12xf32>,
    %vw: tensor<64x12xf32>, %out: tensor<2x4x8x8xf32>, %lse: tensor<2x8x4xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>) {
  %kf = train.linear %latent, %kw : (tensor<2x4x12xf32>, tensor<128x12xf32>) -> tensor<2x4x128xf32>
  %k = train.reshape %kf : (tensor<2x4x128xf32>) -> tensor<2x4x8x16xf32>
  %vf = train.linear %latent, %vw : (tensor<2x4x12xf32>, tensor<64x12xf32>) -> tensor<2x4x64xf32>
  %v = train.reshape %vf : (tensor<2x4x64xf32>) -> tensor<2x4x8x8xf32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x4x8x16xf32>) -> tensor<2x8x8x16xf32>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x4x8x8xf32>) -> tensor<2x8x8x8xf32>
  %first = dist.offset 4 over <@mesh {context}> : tensor<i32>
  %dq, %dks, %dvs = train.attention_grad %dout, %q, %ks, %vs, %out, %lse query_offset %first scale 0.25 causal queries 8
      : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x8x16xf32>, tensor<2x8x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x8x4xf32>, tensor<i32>)
      -> (tensor<2x4x8x16xf32>, tensor<2x8x8x16xf32>, tensor<2x8x8x8xf32>)
  %dk = dist.reduce_scatter sum %dks dim 1 over <@mesh {context}> : (tensor<2x8x8x16xf32>) -> tensor<2x4x8x16xf32>
  %dv = dist.reduce_scatter sum %dvs dim 1 over <@mesh {context}> : (tensor<2x8x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %dq, %dk, %dv : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x8xf32>
}
