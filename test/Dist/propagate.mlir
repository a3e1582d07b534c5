// RUN: meshwright-opt %s -split-input-file --dist-propagate --dist-verify | FileCheck %s

// BEGIN EXAMPLE --dist-propagate
dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>}) -> tensor<4xf32> {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = train.reduce sum %0 over [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f
// CHECK: train.gelu {{.*}} -> tensor<8x4xf32, #data_R>
// CHECK: %[[SUM:.*]] = train.reduce {{.*}} -> tensor<4xf32, #R_partial_data>
// CHECK: %[[ALL:.*]] = dist.reshard %[[SUM]]
// CHECK: return %[[ALL]] : tensor<4xf32, #R>

// -----

// A cut batch cuts what is made of it; the sum over it is partial, and complete
// before it leaves.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>},
                   %w: tensor<6x4xf32>) -> tensor<6xf32> {
  // CHECK: train.linear {{.*}} -> tensor<8x6xf32, #data_R>
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  // CHECK: %[[SUM:.*]] = train.reduce {{.*}} -> tensor<6xf32, #R_partial_data>
  %1 = train.reduce sum %0 over [0] : (tensor<8x6xf32>) -> tensor<6xf32>
  // CHECK: %[[ALL:.*]] = dist.reshard %[[SUM]]
  // CHECK: return %[[ALL]] : tensor<6xf32, #R>
  return %1 : tensor<6xf32>
}

// -----

// A wish for the result reaches the inputs.
dist.mesh @mesh ["a" = 2, "b" = 2]
// CHECK-LABEL: func.func @backward
// CHECK-SAME: tensor<8x4xf32, #a_R>
// CHECK-SAME: tensor<6x4xf32, #b_R>
// CHECK-NOT: dist.reshard
func.func @backward(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>)
    -> (tensor<8x6xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {b}]>}) {
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// Partial terms are added before they are completed, and all uses share one
// complete value.
dist.mesh @mesh ["t" = 2]
// CHECK-LABEL: func.func @additive
func.func @additive(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {t}]>},
                    %u: tensor<6x4xf32>, %v: tensor<6x4xf32>) -> (tensor<8x6xf32>, tensor<f32>) {
  %0 = train.linear %x, %u : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = train.linear %x, %v : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  // CHECK: %[[ADD:.*]] = train.add {{.*}} -> tensor<8x6xf32, #R_R_partial_t>
  %2 = train.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  // CHECK-NEXT: %[[ALL:.*]] = dist.reshard %[[ADD]]
  // CHECK-NEXT: train.gelu %[[ALL]]
  %3 = train.gelu %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  // CHECK-NEXT: train.square_sum %[[ALL]]
  %4 = train.square_sum %2 : (tensor<8x6xf32>) -> tensor<f32>
  // CHECK-NOT: dist.reshard
  return %3, %4 : tensor<8x6xf32>, tensor<f32>
}

// -----

// A bias is not partial, so what it is added to is completed before.
dist.mesh @mesh ["t" = 2]
// CHECK-LABEL: func.func @bias
func.func @bias(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {t}]>},
                %u: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  // CHECK: %[[Y:.*]] = train.linear
  // CHECK-NEXT: %[[ALL:.*]] = dist.reshard %[[Y]]
  // CHECK-NEXT: train.add %[[ALL]]
  %0 = train.linear %x, %u : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = train.add %0, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// The gradient of a loop over microbatches: the accumulator starts as partial
// zeros, stays partial through the loop and is completed once after it. The
// scalar norm of it and the update read the same complete value.
dist.mesh @mesh ["data" = 2]
train.variable @w : tensor<6x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{}, {}]>}
// CHECK-LABEL: func.func private @microbatch
// CHECK-SAME: tensor<6x4xf32, #R_R_partial_data>
// CHECK-SAME: tensor<4x4xf32, #data_R>
// CHECK-NOT: dist.reshard
func.func private @microbatch(%acc: tensor<6x4xf32>, %x: tensor<4x4xf32>) -> tensor<6x4xf32> {
  %w = train.get @w : tensor<6x4xf32>
  %y = train.linear %x, %w : (tensor<4x4xf32>, tensor<6x4xf32>) -> tensor<4x6xf32>
  %dw = train.contract "b o, b i -> o i" %y, %x : (tensor<4x6xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %sum = train.accumulate %acc, %dw : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<3x4x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {data}, {}]>},
                %lr: tensor<f32>, %clip: tensor<f32>) -> tensor<f32> {
  // CHECK: train.fill 0.0{{.*}} -> tensor<6x4xf32, #R_R_partial_data>
  %zero = train.fill 0.0 : () -> tensor<6x4xf32>
  // CHECK: %[[PARTIAL:.*]] = train.repeat @microbatch
  %g = train.repeat @microbatch x 3 carry(%zero) each(%x) shared() : (tensor<6x4xf32>, tensor<3x4x4xf32>) -> tensor<6x4xf32>
  // CHECK: %[[ALL:.*]] = dist.reshard %[[PARTIAL]]
  // CHECK: train.square_sum %[[ALL]]
  %n = train.square_sum %g : (tensor<6x4xf32>) -> tensor<f32>
  %w = train.get @w : tensor<6x4xf32>
  // CHECK: train.update "sgd" %{{.*}}, %[[ALL]]
  %new = train.update "sgd" %w, %g, %clip, %lr : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<f32>, tensor<f32>) -> tensor<6x4xf32>
  train.set @w, %new : tensor<6x4xf32>
  // CHECK-NOT: dist.reshard
  return %n : tensor<f32>
}

// -----

// With ZeRO each microbatch's gradient goes into shards along `data`. Along `replica`, which the boundary does not use, it is
// summed once, after the last microbatch.
dist.mesh @mesh ["replica" = 2, "data" = 2]
train.variable @w : tensor<6x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>}
// CHECK-LABEL: func.func private @scattered
func.func private @scattered(%acc: tensor<6x4xf32>, %x: tensor<4x4xf32>, %y: tensor<4x6xf32>) -> tensor<6x4xf32> {
  // CHECK: %[[DW:.*]] = train.contract {{.*}} -> tensor<6x4xf32, #R_R_partial_replica-data>
  // CHECK-NEXT: %[[PART:.*]] = dist.reshard %[[DW]] : {{.*}} -> tensor<6x4xf32, #data_R_partial_replica>
  // CHECK-NEXT: train.accumulate %{{.*}}, %[[PART]]
  // CHECK-NEXT: return
  %dw = train.contract "b o, b i -> o i" %y, %x : (tensor<4x6xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %part = dist.constrain %dw to <@mesh, [{data}, {}]> boundary : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %sum = train.accumulate %acc, %part : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<3x4x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {replica, data}, {}]>},
                %y: tensor<3x4x6xf32> {dist.seed = #dist.sharding<@mesh, [{}, {replica, data}, {}]>}, %lr: tensor<f32>, %clip: tensor<f32>) {
  %zero = train.fill 0.0 : () -> tensor<6x4xf32>
  // CHECK: %[[PARTIAL:.*]] = train.repeat @scattered
  %g = train.repeat @scattered x 3 carry(%zero) each(%x, %y) shared() : (tensor<6x4xf32>, tensor<3x4x4xf32>, tensor<3x4x6xf32>) -> tensor<6x4xf32>
  %w = train.get @w : tensor<6x4xf32>
  // CHECK: %[[ALL:.*]] = dist.reshard %[[PARTIAL]] : (tensor<6x4xf32, #data_R_partial_replica>) -> tensor<6x4xf32, #data_R>
  // CHECK-NEXT: train.update "sgd" %{{.*}}, %[[ALL]]
  %new = train.update "sgd" %w, %g, %clip, %lr : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<f32>, tensor<f32>) -> tensor<6x4xf32>
  train.set @w, %new : tensor<6x4xf32>
  return
}

// -----

// A boundary that says `replicated` completes sums along these axes, and so does a constraint without `boundary`.
dist.mesh @mesh ["replica" = 2, "data" = 2]
// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<4x4xf32> {dist.seed = #dist.sharding<@mesh, [{replica, data}, {}]>},
                  %y: tensor<4x6xf32> {dist.seed = #dist.sharding<@mesh, [{replica, data}, {}]>}) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %dw = train.contract "b o, b i -> o i" %y, %x : (tensor<4x6xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  // CHECK: %[[A:.*]] = dist.reshard %{{.*}} : (tensor<6x4xf32, #R_R_partial_replica-data>) -> tensor<6x4xf32, #data_R>
  %0 = dist.constrain %dw to <@mesh, [{data}, {}], replicated = {replica}> boundary : (tensor<6x4xf32>) -> tensor<6x4xf32>
  // CHECK: train.scale %[[A]]
  %1 = train.scale %0 by 2.0 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %dw2 = train.contract "b o, b i -> o i" %y, %x : (tensor<4x6xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  // CHECK: %[[B:.*]] = dist.reshard %{{.*}} : (tensor<6x4xf32, #R_R_partial_replica-data>) -> tensor<6x4xf32, #data_R>
  %2 = dist.constrain %dw2 to <@mesh, [{data}, {}]> : (tensor<6x4xf32>) -> tensor<6x4xf32>
  // CHECK: train.scale %[[B]]
  %3 = train.scale %2 by 2.0 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1, %3 : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Layers: slices drop the first dimension, stacks add it, neither is cut.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: tensor<8x4xf32, #data_R>, %{{.*}}: tensor<4x4xf32, #R_R>
func.func private @layer(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %0, %x : tensor<8x4xf32>, tensor<8x4xf32>
}
// CHECK-LABEL: func.func @layers
func.func @layers(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>}, %w: tensor<3x4x4xf32>) -> tensor<f32> {
  // CHECK: train.repeat @layer {{.*}} -> (tensor<8x4xf32, #data_R>, tensor<3x8x4xf32, #R_data_R>)
  %y, %kept = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<8x4xf32>, tensor<3x4x4xf32>) -> (tensor<8x4xf32>, tensor<3x8x4xf32>)
  %s = train.square_sum %kept : (tensor<3x8x4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// Two calls that want different shardings get two functions; two that want the
// same share one.
dist.mesh @mesh ["a" = 2]
// CHECK: func.func private @f(%{{.*}}: tensor<8x4xf32, #a_R>)
// CHECK: func.func private @f_{{.*}}(%{{.*}}: tensor<8x4xf32, #R_a>)
// CHECK-NOT: func.func private
func.func private @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {}]>},
                %y: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>},
                %z: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {}]>}) {
  // CHECK: call @f(
  %0 = func.call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: call @f_
  %1 = func.call @f(%y) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: call @f(
  %2 = func.call @f(%z) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// A dimension that the op needs whole is gathered at the use.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>}, %w: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[X:.*]] = dist.reshard %arg0 : (tensor<8x4xf32, #R_a>) -> tensor<8x4xf32, #R_R>
  // CHECK: train.rms_norm %[[X]]
  %0 = train.rms_norm %x, %w eps 1.0e-05 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A seed in the middle.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @constrained(%{{.*}}: tensor<8x4xf32, #R_a>)
// CHECK-NOT: dist.constrain
func.func @constrained(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dist.constrain %0 to <@mesh, [{}, {a}]> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// Nothing spreads over a boundary, either way.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @boundary(%arg0: tensor<8x4xf32, #a_R>)
func.func @boundary(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {?}]>}) -> (tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{?}, {?}]>}) {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: dist.reshard %{{.*}} : (tensor<8x4xf32, #a_R>) -> tensor<8x4xf32, #R_a>
  %1 = dist.constrain %0 to <@mesh, [{}, {a}]> boundary : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: train.silu %{{.*}} -> tensor<8x4xf32, #R_a>
  %2 = train.silu %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// A seed may name an axis made of parts, and leave axes out.
dist.mesh @mesh ["t.0" = 2, "t.1" = 2, "a" = 2]
// CHECK-LABEL: func.func @parts(%arg0: tensor<8x4xf32, #t_0-t_1_a>)
func.func @parts(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{t}, {a}]>}) -> (tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {a}>}) {
  // CHECK: train.gelu {{.*}} -> tensor<8x4xf32, #t_0-t_1_a>
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: dist.reshard {{.*}} -> tensor<8x4xf32, #t_0-t_1_R>
  return %0 : tensor<8x4xf32>
}

// -----

// A gradient is wanted where its parameter is: with the rows of x cut along the same
// axis, x is gathered.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @gradient
func.func @gradient(%dy: tensor<8x6xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>, dist.reason = "test"},
                    %x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {}]>, dist.reason = "test"}) {
  // CHECK: %[[X:.*]] = dist.reshard %arg1 {{.*}} -> tensor<8x4xf32, #R_R>
  // CHECK: train.contract "b o, b i -> o i" %arg0, %[[X]] : {{.*}} -> tensor<6x4xf32, #a_R>
  %0 = train.contract "b o, b i -> o i" %dy, %x {dist.seed = [#dist.sharding<@mesh, [{a}, {}]>], dist.reason = "gradient"} : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// Terms of one sum that are partial are added first and completed once, even where
// the sum is wanted cut.
dist.mesh @mesh ["a" = 2]
// CHECK-LABEL: func.func @sum
func.func @sum(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>}, %v: tensor<6x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>},
               %w: tensor<6x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>}) -> (tensor<8x6xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {}]>}) {
  // CHECK-NOT: dist.reshard
  // CHECK: train.add {{.*}} -> tensor<8x6xf32, #R_R_partial_a>
  // CHECK-NEXT: dist.reshard {{.*}} (tensor<8x6xf32, #R_R_partial_a>) -> tensor<8x6xf32, #a_R>
  %0 = train.linear %x, %v : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %2 = train.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// -----

// A maximum over a sharded dimension is a partial maximum, complete before any use: its
// negative is not one.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<4x8xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> tensor<4xf32> {
  // CHECK: %[[MOST:.*]] = train.reduce max {{.*}} -> tensor<4xf32, #R_max_tensor>
  // CHECK: %[[ALL:.*]] = dist.reshard %[[MOST]]
  // CHECK: train.scale %[[ALL]]
  %0 = train.reduce max %x over [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = train.scale %0 by -1.0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Of a product's two partial factors neither goes on: it is not linear in both at once.
dist.mesh @mesh ["t" = 2]
// CHECK-LABEL: func.func @factors
func.func @factors(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {t}]>},
                   %u: tensor<6x4xf32>, %v: tensor<6x4xf32>) -> tensor<8x6xf32> {
  %0 = train.linear %x, %u : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = train.linear %x, %v : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  // CHECK: train.mul {{.*}} -> tensor<8x6xf32, #R_R>
  // CHECK-NOT: dist.reshard
  %2 = train.mul %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}

// -----

// What a loop makes of something that only the root has, only the root carries, from the beginning.
dist.mesh @mesh ["a" = 2]
train.variable @w : tensor<8xf32> init <"normal", 1.0> {dist.seed = #dist.sharding<@mesh, [{}], root = {a}>}
// CHECK-LABEL: func.func private @body
// CHECK-SAME: (%{{.*}}: tensor<8xf32, #R_root_a>) -> tensor<8xf32, #R_root_a>
// CHECK-NOT: dist.reshard
func.func private @body(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = train.get @w : tensor<8xf32>
  %0 = train.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @carried
// CHECK: %[[X:.*]] = dist.reshard %arg0 : {{.*}} -> tensor<8xf32, #R_root_a>
// CHECK: %[[Y:.*]] = train.repeat @body x 3 carry(%[[X]])
// CHECK: dist.reshard %[[Y]] : {{.*}} -> tensor<8xf32, #R>
func.func @carried(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = train.repeat @body x 3 carry(%x) each() shared() : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Two functions that do the same to inputs of other names stay two.
dist.mesh @mesh ["a" = 2]
// CHECK: func.func private @f(%{{.*}}: tensor<8x4xf32, #R_R> {train.input = "x"})
// CHECK: func.func private @g(%{{.*}}: tensor<8x4xf32, #R_R> {train.input = "y"})
func.func private @f(%x: tensor<8x4xf32> {train.input = "x"}) -> tensor<8x4xf32> {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @g(%x: tensor<8x4xf32> {train.input = "y"}) -> tensor<8x4xf32> {
  %0 = train.gelu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func @main(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) {
  %0 = func.call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = func.call @g(%y) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
