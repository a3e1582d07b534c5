// RUN: meshwright-opt %s --dist-split-stages -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-split-stages=schedule=zb-h1 -split-input-file | FileCheck %s --check-prefix=ZERO
// RUN: meshwright-opt %s --annotate-parts -split-input-file | FileCheck %s --check-prefix=PARTS

// BEGIN EXAMPLE --dist-split-stages
module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {train.role = #train.role<forward>} {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @microbatch(%sum: tensor<f32>, %x: tensor<2x4xf32>) -> tensor<f32> attributes {train.role = #train.role<microbatch>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %new = train.accumulate %sum, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %new : tensor<f32>
  }
  func.func @eval(%x: tensor<2x2x4xf32>) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    %loss = train.repeat @microbatch x 2 carry(%zero) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<2x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: dist.mesh @mesh ["pipe" = 2]
// CHECK-LABEL: module @stage0
// CHECK-SAME: attributes {dist.coordinates = {pipe = 0 : i64}} {
// CHECK-NEXT: dist.mesh @mesh ["pipe" = 2]
// CHECK-NEXT: train.variable @h.0.w
// CHECK-NOT: @h.1.w
// CHECK: func.func @eval
// CHECK: %[[ROW:.*]] = dist.take %arg0 at 0
// CHECK: %[[A:.*]] = {{.*}}call @eval.forward.0(%[[ROW]]) {dist.task = "F0.0"}
// CHECK: dist.send %[[A]] to 1 channel 2 over <@mesh {pipe}> {dist.task = "F0.0"}
// CHECK: call @eval.forward.0({{.*}} {dist.task = "F1.0"}
// CHECK: %[[NONE:.*]] = train.fill
// CHECK: %[[LOSS:.*]] = dist.broadcast %[[NONE]] root 1 over <@mesh {pipe}>
// CHECK: return %[[LOSS]]
// CHECK-LABEL: module @stage1
// CHECK-NOT: @h.0.w
// CHECK: func.func @eval
// CHECK: %[[IN:.*]] = dist.recv from 0 channel 2 over <@mesh {pipe}> {dist.task = "F0.1"}
// CHECK: %[[SUM:.*]] = {{.*}}call @eval.forward.1(%[[IN]], %{{.*}}) {dist.task = "F0.1"}
// CHECK: %[[IN1:.*]] = dist.recv
// CHECK: call @eval.forward.1(%[[IN1]], %[[SUM]]) {dist.task = "F1.1"}

// -----

// Reads of variables, and what is made of them alone, are repeated wherever they are read; the sum of the gradients of @t
// has become one accumulator a chunk.
// PARTS: func.func private @microbatch
// PARTS: func.func private @microbatch
// PARTS-NEXT: train.get @t {dist.part = "free"}
// PARTS: train.linear {{.*}} {dist.part = "forward 0"}
// PARTS-NEXT: train.repeat @forward x 1 {{.*}} {dist.part = "forward 0",
// PARTS-NEXT: train.repeat @forward x 1 {{.*}} {dist.part = "forward 1",
// PARTS-NEXT: train.linear {{.*}} {dist.part = "forward 1"}
// PARTS: train.contract {{.*}} %[[ONE:.*]], %0 {dist.part = "free"}
// PARTS-NEXT: %[[DH:.*]] = train.contract {{.*}} {dist.part = "backward 1"}
// PARTS: train.repeat @backward x 1 {{.*}} {dist.part = "backward 0",
// PARTS-NEXT: %[[DE:.*]] = train.contract {{.*}} {dist.part = "backward 0"}
// PARTS: train.accumulate %arg1, %[[DH]] {dist.part = "backward 1"}
// PARTS-NEXT: train.accumulate %arg4, %[[DE]] {dist.part = "backward 0"}

// Gradients: what backward reads is kept, a cotangent goes back, each stage has its
// own accumulator and the tied variable @t is updated by both from both sums.
module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @t : tensor<4x4xf32> init <"normal", 0.02>
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @forward(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {train.role = #train.role<forward>} {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y, %x : tensor<2x4xf32>, tensor<2x4xf32>
  }
  func.func private @backward(%dy: tensor<2x4xf32>, %w: tensor<4x4xf32>, %x: tensor<2x4xf32>, %sum: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) attributes {train.role = #train.role<backward>} {
    %dx = train.contract "b o, o i -> b i" %dy, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %dw = train.contract "b o, b i -> o i" %dy, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %new = train.accumulate %sum, %dw : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %dx, %new : tensor<2x4xf32>, tensor<4x4xf32>
  }
  func.func private @microbatch(%l: tensor<f32>, %gt: tensor<4x4xf32>, %g0: tensor<1x4x4xf32>, %g1: tensor<1x4x4xf32>, %x: tensor<2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) attributes {train.role = #train.role<microbatch>} {
    %t = train.get @t : tensor<4x4xf32>
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %a = train.linear %x, %t : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %y, %ka = train.repeat @forward x 1 carry(%a) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x2x4xf32>)
    %z, %kb = train.repeat @forward x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x2x4xf32>)
    %o = train.linear %z, %t : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %o over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %one = train.fill 1.0 : () -> tensor<2x4xf32>
    %dz = train.contract "b o, o i -> b i" %one, %t : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %dh = train.contract "b o, b i -> o i" %one, %z : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %dy, %n1 = train.repeat @backward x 1 reverse carry(%dz) each(%w1, %kb, %g1) shared() {train.chunk = 1 : i64, train.role = #train.role<backward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x4x4xf32>)
    %da, %n0 = train.repeat @backward x 1 reverse carry(%dy) each(%w0, %ka, %g0) shared() {train.chunk = 0 : i64, train.role = #train.role<backward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4xf32>, tensor<1x4x4xf32>) -> (tensor<2x4xf32>, tensor<1x4x4xf32>)
    %de = train.contract "b o, b i -> o i" %da, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %dt = train.add %dh, %de : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %nl = train.accumulate %l, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %nt = train.accumulate %gt, %dt : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %nl, %nt, %n0, %n1 : tensor<f32>, tensor<4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>
  }
  func.func @step(%x: tensor<3x2x4xf32>, %lr: tensor<f32>, %limit: tensor<f32>) -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"}) {
    %l = train.fill 0.0 : () -> tensor<f32>
    %gt = train.fill 0.0 : () -> tensor<4x4xf32>
    %g = train.fill 0.0 : () -> tensor<1x4x4xf32>
    %r:4 = train.repeat @microbatch x 3 carry(%l, %gt, %g, %g) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<3x2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>)
    %st = train.square_sum %r#1 : (tensor<4x4xf32>) -> tensor<f32>
    %s0 = train.square_sum %r#2 : (tensor<1x4x4xf32>) -> tensor<f32>
    %s1 = train.square_sum %r#3 : (tensor<1x4x4xf32>) -> tensor<f32>
    %norm = train.global_norm %st, %s0, %s1 : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %clip = train.clip_factor %norm, %limit : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %t = train.get @t : tensor<4x4xf32>
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %ut = train.update "sgd" %t, %r#1, %clip, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
    %u0 = train.update "sgd" %w0, %r#2, %clip, %lr : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x4xf32>
    %u1 = train.update "sgd" %w1, %r#3, %clip, %lr : (tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x4xf32>
    train.set @t, %ut : tensor<4x4xf32>
    train.set @h.0.w, %u0 : tensor<1x4x4xf32>
    train.set @h.1.w, %u1 : tensor<1x4x4xf32>
    return %r#0, %norm : tensor<f32>, tensor<f32>
  }
}

// CHECK-LABEL: module @stage0
// CHECK: func.func private @backward.0(
// CHECK-LABEL: func.func @step
// CHECK: %[[F:.*]]:2 = call @forward.0({{.*}}"F0.0"
// CHECK: dist.send %[[F]]#0 to 1 channel [[UP:.*]] over
// CHECK: %[[DY:.*]] = dist.recv from 1 channel [[DOWN:.*]] over
// CHECK: call @backward.0({{.*}}%[[DY]]{{.*}}"B0.0"
// CHECK: %[[LAST:.*]]:2 = call @backward.0({{.*}}"B2.0"
// CHECK: %[[HEAD:.*]] = dist.recv from 1 channel [[HEADS:[0-9]+]] over <@mesh {pipe}> : tensor<4x4xf32>
// CHECK: dist.send %[[LAST]]#{{.}} to 1 channel [[TABLES:[0-9]+]] over <@mesh {pipe}> : tensor<4x4xf32>
// CHECK: %[[TIED:.*]] = train.add %[[HEAD]], %[[LAST]]#{{.}} {train.role = #train.role<update>}
// The tied variable's square is counted here, and not in the other stage.
// CHECK: train.square_sum %[[TIED]]
// CHECK: train.square_sum %[[LAST]]#
// CHECK: %[[SQUARES:.*]] = train.add
// CHECK: dist.all_reduce sum %[[SQUARES]] over <@mesh {pipe}>
// CHECK: train.update "sgd" %{{.*}}, %[[TIED]]
// CHECK: train.set @t
// CHECK: train.set @h.0.w
// CHECK: dist.broadcast %{{.*}} root 1
// CHECK-LABEL: module @stage1
// CHECK-LABEL: func.func @step
// CHECK: dist.recv from 0 channel [[UP]]
// CHECK: call @forward.1
// CHECK: call @backward.1
// CHECK: dist.send %{{.*}} to 0 channel [[DOWN]]
// CHECK: dist.send %[[HEAD:.*]] to 0 channel [[HEADS]]
// CHECK: %[[TABLE:.*]] = dist.recv from 0 channel [[TABLES]]
// CHECK: %[[TIED:.*]] = train.add %[[HEAD]], %[[TABLE]]
// CHECK: %[[SQUARE:.*]] = train.square_sum %{{.*}} : (tensor<1x4x4xf32>)
// CHECK: dist.all_reduce sum %[[SQUARE]] over <@mesh {pipe}>
// CHECK: train.update "sgd" %{{.*}}, %[[TIED]]
// CHECK: train.set @t
// CHECK: train.set @h.1.w

// Gradients of weights apart: the layer has two backward functions.
// ZERO-LABEL: module @stage0
// ZERO: func.func private @backward.input(
// ZERO: train.contract "b o, o i -> b i"
// ZERO-NOT: train.contract
// ZERO: func.func private @backward.weight({{.*}} attributes {train.role = #train.role<weight>}
// ZERO: train.contract "b o, b i -> o i"
// ZERO: func.func private @backward.0(
// ZERO: train.repeat @backward.input x 1 reverse {{.*}} {train.chunk = 0 : i64, train.role = #train.role<backward>}
// ZERO: func.func private @weight.0(
// ZERO: train.repeat @backward.weight x 1 reverse carry() {{.*}} {train.chunk = 0 : i64, train.role = #train.role<weight>}
// ZERO: func.func @step
// ZERO: call @backward.0({{.*}}"B0.0"
// ZERO: call @weight.0({{.*}}"W0.0"

// -----

// What is counted beforehand comes before all tasks, one microbatch after the other, with messages of its own; the stage
// that counts it reads it.
// CHECK-LABEL: module @stage0
// CHECK: func.func @step
// CHECK: %[[A:.*]] = {{.*}}call @count.forward.0(%{{.*}}) : {{.*}}
// CHECK-NEXT: dist.send %[[A]] to 1 channel [[COUNT:[0-9]+]] over <@mesh {pipe}> :
// CHECK: call @count.forward.0
// CHECK: call @forward.0(%{{.*}}) {dist.task = "F0.0"}
// CHECK-NEXT: dist.send %{{.*}} to 1 channel {{[0-9]+}} over <@mesh {pipe}> {dist.task = "F0.0"}
// CHECK-LABEL: module @stage1
// CHECK: func.func @step
// CHECK: %[[IN:.*]] = dist.recv from 0 channel [[COUNT]] over <@mesh {pipe}> :
// CHECK: %[[SUM:.*]] = {{.*}}call @count.forward.1(%[[IN]], %{{.*}}) :
// CHECK: %[[ALL:.*]] = {{.*}}call @count.forward.1(%{{.*}}, %[[SUM]]) :
// CHECK: %[[TWICE:.*]] = train.scale %[[ALL]]
// CHECK-NOT: channel [[COUNT]] over
// CHECK: call @forward.1(%{{.*}}, %[[TWICE]], %{{.*}}) {dist.task = "F0.1"}
module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {train.role = #train.role<forward>} {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @count(%sum: tensor<4xf32>, %x: tensor<2x4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<count>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %c = train.reduce sum %z over [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %new = train.accumulate %sum, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %new : tensor<4xf32>
  }
  func.func private @microbatch(%sum: tensor<f32>, %x: tensor<2x4xf32>, %c: tensor<4xf32>) -> tensor<f32> attributes {train.role = #train.role<microbatch>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %l = train.mul %z, %c : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %l over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %new = train.accumulate %sum, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %new : tensor<f32>
  }
  func.func @step(%x: tensor<2x2x4xf32>) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    %none = train.fill 0.0 : () -> tensor<4xf32>
    %c = train.repeat @count x 2 carry(%none) each(%x) shared() {train.role = #train.role<count>} : (tensor<4xf32>, tensor<2x2x4xf32>) -> tensor<4xf32>
    %d = train.scale %c by 2.0 : (tensor<4xf32>) -> tensor<4xf32>
    %loss = train.repeat @microbatch x 2 carry(%zero) each(%x) shared(%d) {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<2x2x4xf32>, tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A sum that something else reads too stays one, with one accumulator, of its last chunk.
// PARTS: func.func private @shared(
// PARTS: %[[SUM:.*]] = train.add {{.*}} {dist.part = "forward 1"}
// PARTS-NEXT: %[[TWICE:.*]] = train.scale %[[SUM]] {{.*}}dist.part = "forward 1"
// PARTS-NEXT: train.accumulate %arg0, %[[SUM]] {dist.part = "forward 1"}
// PARTS-NEXT: train.accumulate %arg1, %[[TWICE]] {dist.part = "forward 1"}
// PARTS-NEXT: return
module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {train.role = #train.role<forward>} {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @shared(%sum: tensor<f32>, %double: tensor<f32>, %x: tensor<2x4xf32>) -> (tensor<f32>, tensor<f32>) attributes {train.role = #train.role<microbatch>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %a = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %b = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %s = train.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %t = train.scale %s by 2.0 : (tensor<f32>) -> tensor<f32>
    %ns = train.accumulate %sum, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %nt = train.accumulate %double, %t : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %ns, %nt : tensor<f32>, tensor<f32>
  }
  func.func @eval(%x: tensor<2x2x4xf32>) -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "double"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    %r:2 = train.repeat @shared x 2 carry(%zero, %zero) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<f32>, tensor<2x2x4xf32>) -> (tensor<f32>, tensor<f32>)
    return %r#0, %r#1 : tensor<f32>, tensor<f32>
  }
}
