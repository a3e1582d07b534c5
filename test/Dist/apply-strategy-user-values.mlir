// What the user seeds by value stays where a strategy would seed it, and keeps the user's priority beside what a strategy seeds: only the latter has
// a reason. What a strategy cannot do without is refused.
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=ulysses" | FileCheck %s
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=ulysses" --dist-propagate | FileCheck %s --check-prefix=TYPES
// RUN: sed 's/"@layer:a", "\[{?}, {?}, {tensor, context}/"@layer:a", "[{?}, {?}, {tensor}/' %s | not meshwright-opt - --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=ulysses" 2>&1 | FileCheck %s --check-prefix=CONTRADICTS
// RUN: sed 's/"@layer:x"/"@layer:x#0"/' %s | meshwright-opt - --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=ulysses" | FileCheck %s

// CONTRADICTS: seed #dist.sharding<@mesh, [{?}, {?}, {tensor}, {?}]> of result 0 of train.attention in @layer contradicts mesh axis 'context', which needs #dist.sharding<@mesh, [{?}, {?}, {tensor, context}, {?}]>; seed that, or leave the seed out
// CHECK: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.seed = #dist.sharding<@mesh, [{?}, {context}, {tensor}]>}
// CHECK: train.attention {{.*}}dist.reason = ["context parallel", unit], dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {tensor, context}, {?}]>, #dist.sharding<@mesh, [{?}, {tensor, context}, {?}]>]
// CHECK: train.attention {{.*}}{dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {tensor, context}, {?}]>, unit]}
// CHECK: train.embedding_grad {{.*}}{dist.seed = [#R_R]}
// TYPES: train.attention {{.*}} -> (tensor<4x6x4x4xf32, #R_R_tensor-context_R>, tensor<4x4x6xf32, #R_tensor-context_R>)
module attributes {dist.seeds = [["@layer:x", "[{?}, {context}, {tensor}]"], ["@layer:b", "[{?}, {tensor, context}, {?}]"], ["@layer:a", "[{?}, {?}, {tensor, context}, {?}]"], ["@step:g", "[{}, {}]"]]} {
  train.variable @wte : tensor<20x16xf32> init <"normal", 1.0>
  train.variable @q : tensor<3x16x16xf32> stacked init <"normal", 1.0>
  train.variable @o : tensor<3x16x16xf32> stacked init <"normal", 1.0>
  func.func private @layer(%x: tensor<4x6x16xf32> loc("x"), %wq: tensor<16x16xf32>, %wo: tensor<16x16xf32>) -> tensor<4x6x16xf32> attributes {train.role = #train.role<forward>} {
    %0 = train.linear %x, %wq : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
    %q = train.reshape %0 : (tensor<4x6x16xf32>) -> tensor<4x6x4x4xf32>
    %one, %lse = train.attention %q, %q, %q scale 0.5 causal : (tensor<4x6x4x4xf32>, tensor<4x6x4x4xf32>, tensor<4x6x4x4xf32>) -> (tensor<4x6x4x4xf32>, tensor<4x4x6xf32>) loc("b")
    %two, %lse2 = train.attention %one, %q, %q scale 0.5 causal : (tensor<4x6x4x4xf32>, tensor<4x6x4x4xf32>, tensor<4x6x4x4xf32>) -> (tensor<4x6x4x4xf32>, tensor<4x4x6xf32>) loc("a")
    %4 = train.reshape %two : (tensor<4x6x4x4xf32>) -> tensor<4x6x16xf32>
    %5 = train.linear %4, %wo : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
    %6 = train.add %x, %5 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    return %6 : tensor<4x6x16xf32>
  }
  func.func @step(%tokens: tensor<4x6xi32> {train.input = "tokens"}, %lr: tensor<f32> {train.input = "lr"}, %clip: tensor<f32> {train.input = "grad_clip"}) -> tensor<4x6x16xf32> {
    %t = train.get @wte : tensor<20x16xf32>
    %q = train.get @q : tensor<3x16x16xf32>
    %o = train.get @o : tensor<3x16x16xf32>
    %x = train.embedding %t, %tokens : (tensor<20x16xf32>, tensor<4x6xi32>) -> tensor<4x6x16xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%q, %o) shared() {train.role = #train.role<forward>} : (tensor<4x6x16xf32>, tensor<3x16x16xf32>, tensor<3x16x16xf32>) -> tensor<4x6x16xf32>
    %g = train.embedding_grad %y, %tokens rows 20 : (tensor<4x6x16xf32>, tensor<4x6xi32>) -> tensor<20x16xf32> loc("g")
    %new = train.update "sgd" %t, %g, %clip, %lr : (tensor<20x16xf32>, tensor<20x16xf32>, tensor<f32>, tensor<f32>) -> tensor<20x16xf32>
    train.set @wte, %new : tensor<20x16xf32>
    return %y : tensor<4x6x16xf32>
  }
}
