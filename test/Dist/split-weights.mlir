// RUN: meshwright-opt %s --dist-split-stages=schedule=zb-h1 | FileCheck %s

// What waits for the gradients of weights is as small as it can be: the product of what is read of forward, and not its two
// factors; and no gradient of the logits, since the head's weight does not wait.
module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @t : tensor<8x4xf32> init <"normal", 0.02>
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @forward(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) attributes {train.role = #train.role<forward>} {
    %a = train.silu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = train.mul %a, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %z = train.linear %y, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %z, %a, %x : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  }
  func.func private @backward(%dz: tensor<2x4xf32>, %w: tensor<4x4xf32>, %a: tensor<2x4xf32>, %x: tensor<2x4xf32>, %sum: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) attributes {train.role = #train.role<backward>} {
    %dy = train.contract "b o, o i -> b i" %dz, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %y = train.mul %a, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %dw = train.contract "b o, b i -> o i" %dz, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %new = train.accumulate %sum, %dw : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %dy, %new : tensor<2x4xf32>, tensor<4x4xf32>
  }
  func.func private @microbatch(%l: tensor<f32>, %gt: tensor<8x4xf32>, %g0: tensor<1x4x4xf32>, %g1: tensor<1x4x4xf32>, %x: tensor<2x4xf32>) -> (tensor<f32>, tensor<8x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) attributes {train.role = #train.role<microbatch>} {
    %t = train.get @t : tensor<8x4xf32>
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y, %aa, %ax = train.repeat @forward x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
    %z, %ba, %bx = train.repeat @forward x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
    %o = train.linear %z, %t : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %loss = train.reduce sum %o over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
    %do = train.silu %o : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %dz = train.contract "b o, o i -> b i" %do, %t : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %dt = train.contract "b o, b i -> o i" %do, %z : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    %dy, %n1 = train.repeat @backward x 1 reverse carry(%dz) each(%w1, %ba, %bx, %g1) shared() {train.chunk = 1 : i64, train.role = #train.role<backward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x4x4xf32>)
    %dx, %n0 = train.repeat @backward x 1 reverse carry(%dy) each(%w0, %aa, %ax, %g0) shared() {train.chunk = 0 : i64, train.role = #train.role<backward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x4x4xf32>)
    %nl = train.accumulate %l, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %nt = train.accumulate %gt, %dt : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %nl, %nt, %n0, %n1 : tensor<f32>, tensor<8x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>
  }
  func.func @step(%x: tensor<3x2x4xf32>, %lr: tensor<f32>) -> (tensor<f32> {train.output = "loss"}) {
    %l = train.fill 0.0 : () -> tensor<f32>
    %gt = train.fill 0.0 : () -> tensor<8x4xf32>
    %g = train.fill 0.0 : () -> tensor<1x4x4xf32>
    %one = train.fill 1.0 : () -> tensor<f32>
    %r:4 = train.repeat @microbatch x 3 carry(%l, %gt, %g, %g) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<8x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<3x2x4xf32>) -> (tensor<f32>, tensor<8x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>)
    %t = train.get @t : tensor<8x4xf32>
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %ut = train.update "sgd" %t, %r#1, %one, %lr : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
    %u0 = train.update "sgd" %w0, %r#2, %one, %lr : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x4xf32>
    %u1 = train.update "sgd" %w1, %r#3, %one, %lr : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x4xf32>
    train.set @t, %ut : tensor<8x4xf32>
    train.set @h.0.w, %u0 : tensor<1x4x4xf32>
    train.set @h.1.w, %u1 : tensor<1x4x4xf32>
    return %r#0 : tensor<f32>
  }
}

// CHECK-LABEL: module @stage1
// CHECK: func.func private @backward.input(
// CHECK: %[[DY:.*]] = train.contract "b o, o i -> b i" %[[DZ:[^,]*]],
// CHECK: %[[PRODUCT:.*]] = train.mul
// CHECK: return %[[DY]], %[[DZ]], %[[PRODUCT]] :
// CHECK: func.func private @backward.weight(%{{[^:]*}}: tensor<4x4xf32>, %{{[^:]*}}: tensor<2x4xf32>, %{{[^:]*}}: tensor<2x4xf32>)
// CHECK-NOT: train.mul
// CHECK: func.func private @backward.1(
// CHECK: train.contract "b o, b i -> o i" {{.*}} -> tensor<8x4xf32>
// CHECK: func.func private @weight.1(
// CHECK-NOT: tensor<8x4xf32>
// CHECK: func.func @step
