// RUN: meshwright-opt %s --train-autodiff -split-input-file -verify-diagnostics | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff=residuals=written -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=WRITTEN

// BEGIN EXAMPLE --train-autodiff
module {
  train.variable @w : tensor<8x4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<8x4xf32>
    %h = train.linear %x, %w : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %y = train.silu %h : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK-LABEL: func.func private @loss.gradients
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<8x4xf32> {train.gradient_of = @w})
// CHECK: %[[H:.*]] = train.linear
// CHECK: %[[LOSS:.*]] = train.reduce sum
// CHECK: %[[DH:.*]] = train.silu_grad %{{.*}}, %[[H]]
// CHECK: %[[DW:.*]] = train.contract "_0 o, _0 i -> o i" %[[DH]], %arg0
// CHECK: return %[[LOSS]], %[[DW]]

// -----

// One layer function gives one forward and one backward, however often it is
// called. The norm's output and the activation's output are not kept: both are
// computed again from the layer's input and the first linear's output.
module {
  train.variable @w1 : tensor<3x8x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w1">
  train.variable @w2 : tensor<3x4x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w2">
  train.variable @norm : tensor<3x4xf32> stacked init <"constant", 1.0> storage <"{layer}.norm">

  func.func private @layer(%x: tensor<2x4xf32>, %w1: tensor<8x4xf32>, %w2: tensor<4x8xf32>, %norm: tensor<4xf32>) -> tensor<2x4xf32> {
    %h = train.rms_norm %x, %norm eps 1.0e-05 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %a = train.linear %h, %w1 : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %g = train.silu %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %y = train.linear %g, %w2 : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %sum = train.add %x, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %sum : tensor<2x4xf32>
  }

  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w1 = train.get @w1 : tensor<3x8x4xf32>
    %w2 = train.get @w2 : tensor<3x4x8xf32>
    %norm = train.get @norm : tensor<3x4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w1, %w2, %norm) shared() : (tensor<2x4xf32>, tensor<3x8x4xf32>, tensor<3x4x8xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: func.func private @loss.gradients
// CHECK-SAME: train.output = "loss"
// CHECK-SAME: train.gradient_of = @w1
// CHECK-SAME: train.gradient_of = @w2
// CHECK-SAME: train.gradient_of = @norm
// CHECK: %[[FORWARD:.*]]:3 = train.repeat @layer.forward x 3 carry{{.*}} {train.role = #train.role<forward>}
// CHECK: %[[DY:.*]] = train.broadcast
// CHECK: train.repeat @layer.backward x 3 reverse carry(%[[DY]]) each(%{{.*}}, %{{.*}}, %{{.*}}, %[[FORWARD]]#1, %[[FORWARD]]#2) {{.*}} {train.role = #train.role<backward>}

// What is kept: the input and the first linear's output.
// CHECK-LABEL: func.func private @layer.forward
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %
// CHECK: %[[A:.*]] = train.linear {{.*}} -> tensor<2x8xf32>
// CHECK: return %{{.*}}, %[[X]], %[[A]] :

// CHECK-LABEL: func.func private @layer.backward
// CHECK: train.rms_norm
// CHECK: train.silu
// CHECK: train.contract "_0 o, o i -> _0 i"
// CHECK: train.contract "_0 o, _0 i -> o i"
// CHECK: train.silu_grad
// CHECK: train.rms_norm_grad

// With all that the forward writes the backward computes nothing again.
// WRITTEN-LABEL: func.func private @layer.forward
// WRITTEN: %[[H:.*]] = train.rms_norm
// WRITTEN: %[[A:.*]] = train.linear %[[H]]
// WRITTEN: %[[G:.*]] = train.silu %[[A]]
// WRITTEN: return %{{.*}}, %arg0, %[[A]], %[[H]], %[[G]] :
// WRITTEN-LABEL: func.func private @layer.backward
// WRITTEN-NOT: train.rms_norm %
// WRITTEN-NOT: train.silu %
// WRITTEN: train.rms_norm_grad

// -----

// A view is not kept beside what it is of: only the input, %a and %s.
module {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @v : tensor<3x2x2xf32> stacked init <"normal", 0.02> storage <"{layer}.v">

  func.func private @viewing(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<2x2xf32>) -> tensor<2x4xf32> {
    %a = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %s = train.silu %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %r = train.reshape %s : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %b = train.linear %r, %v : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %y = train.reshape %b : (tensor<4x2xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }

  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %v = train.get @v : tensor<3x2x2xf32>
    %y = train.repeat @viewing x 3 carry(%x) each(%w, %v) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<3x2x2xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: func.func private @viewing.forward
// WRITTEN-LABEL: func.func private @viewing.forward
// WRITTEN: %[[A:.*]] = train.linear
// WRITTEN: %[[S:.*]] = train.silu %[[A]]
// WRITTEN: return %{{.*}}, %arg0, %[[A]], %[[S]] :

// -----

// A parameter that is read twice (tied weights) has one gradient, the sum.
module {
  train.variable @w : tensor<4x4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<4x4xf32>
    %a = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %again = train.get @w : tensor<4x4xf32>
    %b = train.linear %a, %again : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %b over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[SUM:.*]] = train.add {{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: return %{{.*}}, %[[SUM]] : tensor<f32>, tensor<4x4xf32>

// -----

module {
  train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<4xf32>
    %y = train.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    // expected-error @+1 {{has no derivative: only sums have}}
    %loss = train.reduce max %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  train.variable @w : tensor<1x8x2x4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%f: tensor<i32>) -> tensor<f32> {
    %q = train.get @w : tensor<1x8x2x4xf32>
    // expected-error @+1 {{has no derivative with a part of the keys; differentiate before keys are divided}}
    %o, %l = train.attention %q, %q, %q key_offset %f scale 0.5 keys 16 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<i32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
    %loss = train.reduce sum %o over [0, 1, 2, 3] : (tensor<1x8x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{the loss depends on no parameter}}
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %loss = train.reduce sum %x over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+1 {{needs a function @loss with a result of type tensor<f32>, and others of f32 if it reports more than the loss}}
module {
  func.func @other() {
    return
  }
}

// -----

module {
  train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w">
  // expected-error @+1 {{result 1 has no train.output}}
  func.func @loss(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = train.get @w : tensor<4xf32>
    %y = train.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = train.reduce sum %y over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss, %loss : tensor<f32>, tensor<f32>
  }
}

// -----

// Gradients of parameters leave their sums in the type wanted of them; one that is
// no sum is cast. Those of activations have the types of the activations.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @w : tensor<2x8x8xbf16> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @b : tensor<2x8xbf16> stacked init <"normal", 0.02> storage <"{layer}.b">
  train.variable @p : tensor<4x8xbf16> init <"normal", 0.02>
  func.func private @layer(%x: tensor<2x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>) -> tensor<2x8xbf16> {
    %h = train.linear %x, %w : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
    %y = train.add %h, %b : (tensor<2x8xbf16>, tensor<8xbf16>) -> tensor<2x8xbf16>
    return %y : tensor<2x8xbf16>
  }
  func.func @loss(%x: tensor<2x8xbf16>) -> tensor<f32> {
    %w = train.get @w : tensor<2x8x8xbf16>
    %b = train.get @b : tensor<2x8xbf16>
    %p = train.get @p : tensor<4x8xbf16>
    %rows = train.slice %p rows 2 : (tensor<4x8xbf16>) -> tensor<2x8xbf16>
    %s = train.add %x, %rows : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
    %y = train.repeat @layer x 2 carry(%s) each(%w, %b) shared() : (tensor<2x8xbf16>, tensor<2x8x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
    %z = train.cast %y : (tensor<2x8xbf16>) -> tensor<2x8xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK-SAME: tensor<2x8x8xf32> {train.gradient_of = @w}, tensor<2x8xf32> {train.gradient_of = @b}, tensor<4x8xf32> {train.gradient_of = @p}
// CHECK: %[[DY:.*]] = train.cast %{{.*}} : (tensor<2x8xf32>) -> tensor<2x8xbf16>
// CHECK: train.repeat @layer.backward x 2 reverse carry(%[[DY]]) {{.*}} -> (tensor<2x8xbf16>, tensor<2x8x8xf32>, tensor<2x8xf32>)
// CHECK: %[[DP:.*]] = train.pad {{.*}} tensor<4x8xbf16>
// CHECK: train.cast %[[DP]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-LABEL: func.func private @layer.backward
// CHECK: train.reduce sum {{.*}} : (tensor<2x8xbf16>) -> tensor<8xf32>
// CHECK: train.contract {{.*}} : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
// CHECK: train.contract {{.*}} : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<8x8xf32>

// -----

// How many rounds run is data: the backward keeps nothing of them, runs what it needs again, and
// adds up the gradients of what all rounds share.
module {
  train.variable @w : tensor<4x4xf32> init <"normal", 0.02>
  func.func private @round(%i: tensor<i32>, %y: tensor<2x4xf32>, %x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %h = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %a = train.silu %h : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %sum = train.add %y, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %sum : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %n: tensor<i32> {train.input = "n"}) -> tensor<f32> {
    %w = train.get @w : tensor<4x4xf32>
    %zero = train.fill 0.0 : () -> tensor<2x4xf32>
    %y = train.repeat @round x 3 times %n indexed carry(%zero) each() shared(%x, %w) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<i32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: func.func private @loss.gradients(%arg0: tensor<2x4xf32> {train.input = "x"}, %arg1: tensor<i32>
// CHECK: train.repeat @round.forward x 3 times %arg1 indexed {{.*}} {train.role = #train.role<round>}
// CHECK: train.repeat @round.backward x 3 times %arg1 indexed carry(%{{.*}}, %{{.*}}) each() shared(%arg0, %{{.*}}) {train.role = #train.role<round>}
// CHECK-LABEL: func.func private @round.forward(
// CHECK-SAME: -> tensor<2x4xf32> attributes {train.role = #train.role<round>}
// CHECK-LABEL: func.func private @round.backward(
// CHECK: %[[AGAIN:.*]] = train.linear %{{.*}}, %{{.*}} {train.recomputed = "rounds"}
// CHECK: train.silu_grad %{{.*}}, %[[AGAIN]]

// -----

// What rounds add up is f32, and rounded after the last of them.
module attributes {train.grad_type = bf16} {
  train.variable @v : tensor<4x4xbf16> init <"normal", 0.02>
  func.func private @narrow(%i: tensor<i32>, %y: tensor<2x4xbf16>, %x: tensor<2x4xbf16>, %v: tensor<4x4xbf16>) -> tensor<2x4xbf16> {
    %h = train.linear %x, %v : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
    %sum = train.add %y, %h : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
    return %sum : tensor<2x4xbf16>
  }
  func.func @loss(%x: tensor<2x4xbf16> {train.input = "x"}, %n: tensor<i32> {train.input = "n"}) -> tensor<f32> {
    %v = train.get @v : tensor<4x4xbf16>
    %zero = train.fill 0.0 : () -> tensor<2x4xbf16>
    %y = train.repeat @narrow x 3 times %n indexed carry(%zero) each() shared(%x, %v) : (tensor<2x4xbf16>, tensor<2x4xbf16>, tensor<4x4xbf16>, tensor<i32>) -> tensor<2x4xbf16>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: func.func private @loss.gradients(%arg0: tensor<2x4xbf16>
// CHECK: %[[ZERO:.*]] = train.fill 0.000000e+00 : () -> tensor<4x4xf32>
// CHECK: %[[SUM:.*]]:2 = train.repeat @narrow.backward x 3 times %arg1 indexed carry(%{{.*}}, %[[ZERO]])
// CHECK: train.cast %[[SUM]]#1 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK-LABEL: func.func private @narrow.backward(
// CHECK: %[[OWN:.*]] = train.contract {{.*}} : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
// CHECK: train.add %{{.*}}, %[[OWN]] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>

// -----

module {
  train.variable @w : tensor<4x4xf32> init <"normal", 0.02>
  func.func private @round(%y: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %h = train.linear %y, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %h : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %n: tensor<i32> {train.input = "n"}) -> tensor<f32> {
    %w = train.get @w : tensor<4x4xf32>
    // expected-error @+1 {{carries a value that its derivative needs, which is possible only where the number of iterations is known}}
    %y = train.repeat @round x 3 times %n carry(%x) each() shared(%w) : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<i32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  train.variable @w : tensor<3x4xf32> init <"normal", 0.02>
  func.func private @round(%i: tensor<i32>, %y: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %row = train.embedding %w, %i : (tensor<3x4xf32>, tensor<i32>) -> tensor<4xf32>
    %h = train.scale %y by 0.5 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %sum = train.add %h, %row : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %sum : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %n: tensor<i32> {train.input = "n"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4xf32>
    // expected-error @+1 {{reads the iteration's number and does more than add to what it carries, which has a derivative only where the number of iterations is known}}
    %y = train.repeat @round x 3 times %n indexed carry(%x) each() shared(%w) : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<i32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The gradient has the queries of the attention, which are every second one.
// CHECK-LABEL: func.func private @loss.gradients(%arg0: tensor<i32>
// CHECK: train.attention_grad {{.*}}query_stride 2
module {
  train.variable @w : tensor<1x8x2x4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%first: tensor<i32>) -> tensor<f32> {
    %q = train.get @w : tensor<1x8x2x4xf32>
    %o, %l = train.attention %q, %q, %q query_offset %first scale 0.5 causal queries 16 query_stride 2 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<i32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
    %loss = train.reduce sum %o over [0, 1, 2, 3] : (tensor<1x8x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Called with other active operands, a function has another derivative.
module {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @twice(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}, %c: tensor<3x4x4xf32> {train.input = "c"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %y = train.repeat @twice x 3 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @twice x 3 carry(%y) each(%c) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: train.repeat @twice.forward x 3 carry
// CHECK: train.repeat @twice.forward.1 x 3 carry
// CHECK: %[[DY:.*]] = train.repeat @twice.backward.1 x 3 reverse {{.*}} -> tensor<2x4xf32>
// CHECK: train.repeat @twice.backward x 3 reverse carry(%[[DY]]) {{.*}} -> (tensor<2x4xf32>, tensor<3x4x4xf32>)

// -----

// So has one whose operands' gradients have other types: those of a parameter, and of what is computed of it.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @p : tensor<2x4xbf16> init <"normal", 0.02>
  train.variable @w : tensor<3x4x4xbf16> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @typed(%x: tensor<2x4xbf16>, %w: tensor<4x4xbf16>) -> tensor<2x4xbf16> {
    %y = train.linear %x, %w : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
    return %y : tensor<2x4xbf16>
  }
  func.func @loss(%x: tensor<2x4xbf16>) -> tensor<f32> {
    %p = train.get @p : tensor<2x4xbf16>
    %w = train.get @w : tensor<3x4x4xbf16>
    %s = train.mul %x, %p : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
    %y = train.repeat @typed x 3 carry(%s) each(%w) shared() : (tensor<2x4xbf16>, tensor<3x4x4xbf16>) -> tensor<2x4xbf16>
    %half = train.scale %w by 0.5 : (tensor<3x4x4xbf16>) -> tensor<3x4x4xbf16>
    %z = train.repeat @typed x 3 carry(%y) each(%half) shared() : (tensor<2x4xbf16>, tensor<3x4x4xbf16>) -> tensor<2x4xbf16>
    %wide = train.cast %z : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %loss = train.reduce sum %wide over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: train.repeat @typed.backward.1 x 3 reverse {{.*}} -> (tensor<2x4xbf16>, tensor<3x4x4xbf16>)
// CHECK: train.repeat @typed.backward x 3 reverse {{.*}} -> (tensor<2x4xbf16>, tensor<3x4x4xf32>)

// -----

// A sum that is another value's gradient too keeps its type: the parameter's is a cast of it.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @w : tensor<8x8xbf16> init <"normal", 0.02>
  train.variable @b : tensor<2x8xbf16> init <"normal", 0.02>
  train.variable @v : tensor<8x8xbf16> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x8xbf16>) -> tensor<f32> {
    %w = train.get @w : tensor<8x8xbf16>
    %b = train.get @b : tensor<2x8xbf16>
    %v = train.get @v : tensor<8x8xbf16>
    %h = train.linear %x, %w : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
    %y = train.add %h, %b : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
    %z = train.linear %y, %v : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
    %wide = train.cast %z : (tensor<2x8xbf16>) -> tensor<2x8xf32>
    %loss = train.reduce sum %wide over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[DY:.*]] = train.contract {{.*}} : (tensor<2x8xbf16>, tensor<8x8xbf16>) -> tensor<2x8xbf16>
// CHECK: train.cast %[[DY]] : (tensor<2x8xbf16>) -> tensor<2x8xf32>
// CHECK: train.contract {{.*}}%[[DY]], %arg0 : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<8x8xf32>

// -----

// The decays of a recurrence: the gradient of each sum is that of its row, less that of its column.
module {
  train.variable @a : tensor<4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<4x4xf32>) -> tensor<f32> {
    %a = train.get @a : tensor<4xf32>
    %l = train.decay strict %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %y = train.mul %l, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[L:.*]] = train.decay strict %[[A:.*]], %[[A]]
// CHECK: %[[PRODUCT:.*]] = train.mul %{{.*}}, %[[L]]
// CHECK-DAG: %[[ROWS:.*]] = train.reduce sum %[[PRODUCT]] over [1]
// CHECK-DAG: %[[COLUMNS:.*]] = train.reduce sum %[[PRODUCT]] over [0]
// CHECK-DAG: %[[LESS:.*]] = train.scale %[[COLUMNS]] by -1
// CHECK: train.add %{{.*}}, %{{.*}}
