// RUN: meshwright-opt %s --dist-partition -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --annotate-reshards -split-input-file | FileCheck %s --check-prefix=STEPS

// BEGIN EXAMPLE --dist-partition
dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>> {
  %0 = train.reduce sum %x over [0] : (tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>
  %1 = dist.reshard %0 : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return %1 : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f(
// CHECK-SAME: tensor<4x4xf32> {dist.global = tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>}
// CHECK: %[[SUM:.*]] = train.reduce sum %{{.*}} over [0] : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK: dist.all_reduce sum %[[SUM]] over <@mesh {data}>

// -----

dist.mesh @mesh ["a" = 2, "b" = 4]
// CHECK: train.variable @w : tensor<4x8xf32> {{.*}} {dist.global = tensor<8x8xf32, #a_R>}
train.variable @w : tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>> init <"normal", 2.0e-02 : f64>

// CHECK: func.func private @layer(%{{.*}}: tensor<2x8xf32>) -> tensor<2x8xf32>
func.func private @layer(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>> {
  %0 = train.gelu %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
  return %0 : tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
}

// CHECK: func.func @main(%[[X:.*]]: tensor<2x8xf32> {dist.global = tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x1xf32>)
func.func @main(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>)
    -> (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>) {
  // CHECK: %[[Y:.*]] = train.repeat @layer x 2 {{.*}} -> tensor<2x8xf32>
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
  // CHECK: %[[W:.*]] = train.get @w : tensor<4x8xf32>
  %w = train.get @w : tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>>
  // CHECK: %[[G:.*]] = dist.all_gather %[[W]] dim 0 over <@mesh {a}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %all = dist.reshard %w : (tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[P:.*]] = train.contract "s i, s j -> i j" %[[Y]], %[[X]] {dist.repeated = ["a"]} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %p = train.contract "s i, s j -> i j" %y, %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>
  // CHECK: %[[R:.*]] = dist.all_reduce sum %[[P]] over <@mesh {b}>
  %r = dist.reshard %p : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[S:.*]] = dist.slice %[[P]] dim 1 over <@mesh {a}> : (tensor<8x8xf32>) -> tensor<8x4xf32>
  // CHECK: %[[T:.*]] = dist.reduce_scatter sum %[[S]] dim 1 over <@mesh {b}> : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %t = dist.reshard %p : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>
  // The planner's paths, with what a device sends.
  // STEPS: dist.reshard %{{.*}} {dist.sent = 3.200000e+01 : f64, dist.steps = ["all_gather dim 0 {a}"]}
  // STEPS: dist.reshard %{{.*}} {dist.sent = 9.600000e+01 : f64, dist.steps = ["all_reduce {b}"]}
  // STEPS: dist.reshard %{{.*}} {dist.sent = 2.400000e+01 : f64, dist.steps = ["slice dim 1 {a}", "reduce_scatter dim 1 {b}"]}
  // STEPS: dist.reshard %{{.*}} {dist.sent = 1.200000e+01 : f64, dist.steps = ["all_to_all split 1 concat 0 {b}"]}
  // A reshard of a reshard.
  // CHECK: dist.all_to_all %[[Y]] split 1 concat 0 over <@mesh {b}> : (tensor<2x8xf32>) -> tensor<8x2xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 over <@mesh {b}> : (tensor<8x2xf32>) -> tensor<8x8xf32>
  %u = dist.reshard %y : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {b}]>>
  %v = dist.reshard %u : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {b}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  return %r, %all, %t : tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>
}

// -----

// Ids that point into a cut table are counted from where a device's rows begin; a
// row of another device is zero, and the sum over devices has it.
dist.mesh @mesh ["data" = 2, "tensor" = 4]
// CHECK-LABEL: func.func @ids
func.func @ids(%table: tensor<16x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>, %ids: tensor<4x6xi32, #dist.sharding<@mesh, [{data}, {}]>>)
    -> tensor<4x6x8xf32, #dist.sharding<@mesh, [{data}, {}, {}]>> {
  // CHECK: %[[BEGIN:.*]] = dist.offset 4 over <@mesh {tensor}> : tensor<i32>
  // CHECK: %[[LOCAL:.*]] = train.shift_ids %{{.*}}, %[[BEGIN]] : (tensor<2x6xi32>, tensor<i32>) -> tensor<2x6xi32>
  // CHECK: %[[PART:.*]] = train.embedding %{{.*}}, %[[LOCAL]] : (tensor<4x8xf32>, tensor<2x6xi32>) -> tensor<2x6x8xf32>
  // CHECK: dist.all_reduce sum %[[PART]] over <@mesh {tensor}>
  %x = train.embedding %table, %ids {padding = 11} : (tensor<16x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>, tensor<4x6xi32, #dist.sharding<@mesh, [{data}, {}]>>)
      -> tensor<4x6x8xf32, #dist.sharding<@mesh, [{data}, {}, {}], partial = {tensor}>>
  %y = dist.reshard %x : (tensor<4x6x8xf32, #dist.sharding<@mesh, [{data}, {}, {}], partial = {tensor}>>) -> tensor<4x6x8xf32, #dist.sharding<@mesh, [{data}, {}, {}]>>
  return %y : tensor<4x6x8xf32, #dist.sharding<@mesh, [{data}, {}, {}]>>
}

// -----

// What depends on indices gets where the part begins, and keeps the global sizes.
dist.mesh @mesh ["a" = 2, "b" = 4]
// CHECK-LABEL: func.func @indices
func.func @indices(%x: tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>, %ids: tensor<2xi32, #dist.sharding<@mesh, [{}]>>, %key: tensor<2xi32, #dist.sharding<@mesh, [{}]>>)
    -> (tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>, tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>) {
  // CHECK: %[[A:.*]] = dist.offset 3 over <@mesh {a}>
  // CHECK: %[[B:.*]] = dist.offset 2 over <@mesh {b}>
  // CHECK: train.dropout %{{.*}}, %{{.*}}, %{{.*}} offsets(%[[A]], %[[B]]) rate 5.000000e-01 stream 3 sizes [6, 8] {offset_dims = array<i64: 1, 2>}
  %y = train.dropout %x, %ids, %key rate 0.5 stream 3 : (tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>, tensor<2xi32, #dist.sharding<@mesh, [{}]>>, tensor<2xi32, #dist.sharding<@mesh, [{}]>>) -> tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>
  // CHECK: %[[M:.*]] = dist.offset 2 over <@mesh {b}>
  // CHECK: train.mask %{{.*}} offset %[[M]] dim 2 below 7 : (tensor<2x3x2xf32>, tensor<i32>) -> tensor<2x3x2xf32>
  %z = train.mask %x dim 2 below 7 : (tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>) -> tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>
  return %y, %z : tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>, tensor<2x6x8xf32, #dist.sharding<@mesh, [{}, {a}, {b}]>>
}

// -----

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<4x8xf32, #dist.sharding<@mesh, [{}, {tensor}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>> {
  // CHECK: %[[MOST:.*]] = train.reduce max %{{.*}} over [1] : (tensor<4x4xf32>) -> tensor<4xf32>
  // CHECK: dist.all_reduce max %[[MOST]] over <@mesh {tensor}>
  %0 = train.reduce max %x over [1] : (tensor<4x8xf32, #dist.sharding<@mesh, [{}, {tensor}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = max {tensor}>>
  %1 = dist.reshard %0 : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = max {tensor}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return %1 : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
}

// -----

// Beside layers of pipeline chunks ops keep along which axes devices have copies; inside of layers nobody asks.
dist.mesh @mesh ["pipe" = 2, "data" = 2, "tensor" = 2]
// CHECK-NOT: dist.replicated
// CHECK-LABEL: func.func @chunks
func.func private @layer(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>) attributes {train.role = #train.role<forward>} {
  %0 = train.gelu %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>
  %1 = dist.reshard %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>
  return %0, %1 : tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>
}
func.func @chunks(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>> {
  // CHECK-NEXT: %[[G:.*]] = train.gelu %{{.*}} {dist.replicated = {{\[\[}}"pipe"]]}
  %0 = train.gelu %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>
  // CHECK-NEXT: %[[X:.*]] = dist.all_gather %[[G]] {{.*}} {dist.replicated = {{\[\[}}"pipe", "tensor"]]}
  %1 = dist.reshard %0 : (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>
  // CHECK-NEXT: train.repeat @layer x 3 carry(%[[X]]) {{.*}} {dist.replicated = {{\[\[}}"pipe", "tensor"]], train.chunk = 0
  %y, %kept = train.repeat @layer x 3 carry(%1) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>}
      : (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> (tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>, tensor<3x8x8xf32, #dist.sharding<@mesh, [{}, {data}, {tensor}]>>)
  return %y : tensor<8x8xf32, #dist.sharding<@mesh, [{data}, {}]>>
}

// -----

// A part of the queries looks at all keys, from its place in the sequence on. Gradients of keys are partial sums.
dist.mesh @mesh ["context" = 2]
// CHECK-LABEL: func.func @queries
func.func @queries(%q: tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, %k: tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}]>>, %lse: tensor<4x2x8xf32, #dist.sharding<@mesh, [{}, {}, {context}]>>)
    -> (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>) {
  // CHECK: %[[AT:.*]] = dist.offset 4 over <@mesh {context}> : tensor<i32>
  // CHECK: %{{.*}}, %[[DK:.*]], %{{.*}} = train.attention_grad {{.*}} query_offset %[[AT]] scale 5.000000e-01 causal heads 2 queries 8 :
  // CHECK-SAME: -> (tensor<4x4x2x4xf32>, tensor<4x8x2x4xf32>, tensor<4x8x2x4xf32>)
  // CHECK: dist.reduce_scatter sum %[[DK]] dim 1 over <@mesh {context}> : (tensor<4x8x2x4xf32>) -> tensor<4x4x2x4xf32>
  %dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %q, %lse scale 0.5 causal
      : (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x2x8xf32, #dist.sharding<@mesh, [{}, {}, {context}]>>)
        -> (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}], partial = {context}>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}], partial = {context}>>)
  %0 = dist.reshard %dk : (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {}, {}, {}], partial = {context}>>) -> tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>
  return %dq, %0 : tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{}, {context}, {}, {}]>>
}

// -----

// Gradients of attention say along which axes devices compute the same one.
dist.mesh @mesh ["data" = 2, "tensor" = 2]
// CHECK-LABEL: func.func @gradients
func.func @gradients(%q: tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, %lse: tensor<4x2x8xf32, #dist.sharding<@mesh, [{data}, {}, {}]>>, %p: tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, %sums: tensor<4x2x8xf32, #dist.sharding<@mesh, [{data}, {tensor}, {}]>>)
    -> (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>) {
  // CHECK: train.attention_grad {{.*}} causal {dist.copied = ["tensor"], dist.repeated = ["tensor"]} : (tensor<2x8x2x4xf32>
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %q, %lse scale 0.5 causal
      : (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x2x8xf32, #dist.sharding<@mesh, [{data}, {}, {}]>>)
        -> (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>)
  // CHECK: train.attention_grad {{.*}} causal heads 2 queries 8 : (tensor<2x8x1x4xf32>
  %1, %2, %3 = train.attention_grad %p, %p, %p, %p, %p, %sums scale 0.5 causal
      : (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x2x8xf32, #dist.sharding<@mesh, [{data}, {tensor}, {}]>>)
        -> (tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>)
  return %dq, %1 : tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {}, {}]>>, tensor<4x8x2x4xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}, {}]>>
}
