// A layer with attention and an MLP: which parameters tensor parallelism cuts, and
// what it and the others refuse.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=2 | FileCheck %s --check-prefix=TWO
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2,tensor=4 | FileCheck %s --check-prefix=FOUR
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=tensor=2x4 tensor-2d=true" | FileCheck %s --check-prefix=SQUARE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=tensor=2 sequence-parallel=true" | FileCheck %s --check-prefix=SEQUENCE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=replica=2,data=2,tensor=2 zero=3" | FileCheck %s --check-prefix=ZERO
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=8 | FileCheck %s --check-prefix=EIGHT
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=3 | FileCheck %s --check-prefix=THREE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=tensor=2x3 tensor-2d=true" | FileCheck %s --check-prefix=RESIDUAL
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=tensor=4 sequence-parallel=true" | FileCheck %s --check-prefix=TOKENS
// RUN: sed -e 's/tensor<4x6/tensor<12x6/g' -e 's/tensor<4x4x6/tensor<12x4x6/g' %s | meshwright-opt - --dist-apply-strategy="mesh=data=3 zero=1" | FileCheck %s --check-prefix=UNEVEN
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=32 -o /dev/null
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=tensor=33 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=tensor=2x2 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=tensor=4 tensor-2d=true" 2>&1 | FileCheck %s --check-prefix=NOPARTS
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2 context-parallel=ulysses" | FileCheck %s --check-prefix=CONTEXT
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=4 context-parallel=ulysses zero=1" | FileCheck %s --check-prefix=HEADS
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=ulysses sequence-parallel=true" | FileCheck %s --check-prefix=BOTH
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=3,tensor=2 context-parallel=gather sequence-parallel=true" | FileCheck %s --check-prefix=QUERIES
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=3x2 context-parallel=auto" | FileCheck %s --check-prefix=HYBRID
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=1x4 context-parallel=hybrid" | FileCheck %s --check-prefix=SHARED
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=3 context-parallel=auto" | FileCheck %s --check-prefix=AUTO
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=4 context-parallel=hybrid" 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=2x2 context-parallel=ring" 2>&1 | FileCheck %s --check-prefix=HALVES
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=2x3 context-parallel=hybrid" 2>&1 | FileCheck %s --check-prefix=UNEVENHEADS
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=1x2x2" 2>&1 | FileCheck %s --check-prefix=THIRDS
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=3 context-parallel=ulysses" 2>&1 | FileCheck %s --check-prefix=UNDIVIDED
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=context=4,tensor=2 context-parallel=ulysses" 2>&1 | FileCheck %s --check-prefix=TOOMANY
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=context=2 2>&1 | FileCheck %s --check-prefix=NOSCHEME
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=data=2 context-parallel=ulysses" 2>&1 | FileCheck %s --check-prefix=NOCONTEXT

// Queries have 2 groups of 2 heads of 4; keys 2 heads of 4.
// TWO: @wte {{.*}}dist.reason = "tensor parallel", dist.seed = #tensor_R}
// TWO: @norm {{.*}}, dist.seed = #R_R}
// TWO: @q {{.*}}, dist.seed = #R_tensor_R}
// TWO: @k {{.*}}, dist.seed = #R_tensor_R}
// TWO: @v {{.*}}, dist.seed = #R_tensor_R}
// TWO: @o {{.*}}, dist.seed = #R_R_tensor}
// TWO: @up {{.*}}, dist.seed = #R_tensor_R}
// TWO: @down {{.*}}, dist.seed = #R_R_tensor}

// More devices than groups: the axis becomes two.
// FOUR: dist.mesh @mesh ["data" = 2, "tensor.0" = 2, "tensor.1" = 2]
// FOUR: @q {{.*}}, dist.seed = #R_tensor_0-tensor_1_R}
// FOUR: @k {{.*}}, dist.seed = #R_tensor_0_R}
// FOUR: @v {{.*}}, dist.seed = #R_tensor_0_R}
// FOUR: @o {{.*}}, dist.seed = #R_R_tensor_0-tensor_1}
// FOUR: @up {{.*}}, dist.seed = #R_tensor_0-tensor_1_R}

// SQUARE: @wte {{.*}}, dist.seed = #tensor_0_tensor_1}
// SQUARE: @norm {{.*}}, dist.seed = #R_tensor_1}
// SQUARE: @q {{.*}}, dist.seed = #R_tensor_0_tensor_1}
// SQUARE: @o {{.*}}, dist.seed = #R_tensor_1_tensor_0}

// SEQUENCE: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.reason = "sequence parallel", dist.seed = #dist.sharding<@mesh, [{?}, {tensor}, {?}]>}, %{{.*}}: tensor<16xf32>,

// Updates run on what is stored; replicas store copies.
// ZERO: @q {{.*}}dist.reason = {data = "ZeRO level 3", tensor = "tensor parallel"}, dist.seed = #R_tensor-data_R}
// ZERO: @o {{.*}}dist.reason = {data = "ZeRO level 3", tensor = "tensor parallel"}, dist.seed = #R_data_tensor}
// ZERO-LABEL: func.func private @layer(
// ZERO: %[[N:.*]] = dist.constrain %arg1 to #R boundary {dist.reason = "ZeRO level 3"} : (tensor<16xf32>) -> tensor<16xf32>
// ZERO: train.rms_norm %arg0, %[[N]]

// What does not divide is padded: groups of heads rather than heads inside them, whose padding would lie in the middle.
// EIGHT: dist.mesh @mesh ["tensor" = 8]
// EIGHT: @q {{.*}}, dist.seed = #R_tensor_R}
// EIGHT: @k {{.*}}, dist.seed = #R_tensor_R}
// EIGHT: @up {{.*}}, dist.seed = #R_tensor_R}
// THREE: @wte {{.*}}, dist.seed = #tensor_R}
// THREE: @q {{.*}}, dist.seed = #R_tensor_R}
// THREE: @up {{.*}}, dist.seed = #R_tensor_R}
// RESIDUAL: @wte {{.*}}, dist.seed = #tensor_0_tensor_1}
// TOKENS: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {{.*}}dist.seed = #dist.sharding<@mesh, [{?}, {tensor.0, tensor.1}, {?}]>}
// Sequences are divided, and heads where attention needs a sequence whole; parameters are replicated.
// CONTEXT: @q {{.*}}, dist.seed = #R_R_R}
// CONTEXT: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.reason = "context parallel", dist.seed = #dist.sharding<@mesh, [{?}, {context}, {?}]>}, %{{.*}}: tensor<16xf32>,
// CONTEXT: train.attention {{.*}}dist.reason = "context parallel", dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {context}, {?}]>, unit]
// More devices than groups: the axis becomes two. States are sharded over it.
// HEADS: dist.mesh @mesh ["context.0" = 2, "context.1" = 2]
// HEADS: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {context.0, context.1}, {?}]>, unit]
// HEADS: dist.constrain {{.*}} boundary {dist.reason = "ZeRO level 1"}
// BOTH: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.reason = "context and sequence parallel", dist.seed = #dist.sharding<@mesh, [{?}, {context, tensor}, {?}]>}
// BOTH: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {tensor, context}, {?}]>, unit]
// Or queries are divided, by any number of devices.
// QUERIES: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.reason = "context and sequence parallel", dist.seed = #dist.sharding<@mesh, [{?}, {context, tensor}, {?}]>}
// QUERIES: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {context}, {tensor}, {?}]>, unit]
// Or the first part of the axis divides queries, and the second heads; keys go around.
// HYBRID: dist.mesh @mesh ["context.0" = 3, "context.1" = 2] {dist.ring}
// HYBRID: func.func private @layer(%{{.*}}: tensor<4x6x16xf32> {dist.reason = "context parallel", dist.seed = #dist.sharding<@mesh, [{?}, {context.0, context.1}, {?}]>}
// HYBRID: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {context.0}, {context.1}, {?}]>, unit]
// SHARED: dist.mesh @mesh ["context.0" = 1, "context.1.0" = 2, "context.1.1" = 2]{{$}}
// SHARED: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {?}, {context.1.0, context.1.1}, {?}]>, unit]
// AUTO: dist.mesh @mesh ["context" = 3] {dist.ring}
// AUTO: train.attention {{.*}}dist.seed = [#dist.sharding<@mesh, [{?}, {context}, {?}, {?}]>, unit]
// WHOLE: --context-parallel hybrid needs a mesh axis context=RxU, whose first part divides queries and whose second divides heads, e.g. context=2x2
// HALVES: mesh axis context of 4 devices has parts, which --context-parallel hybrid is for; add it or write context=4
// UNEVENHEADS: --context-parallel hybrid cannot divide 4 heads of attention, of which 2 share each of 2 key heads, among the 3 devices of mesh axis 'context', beside those of 'tensor'
// THIRDS: mesh axis 'context' has two parts, as 4x2, not 1x2x2
// UNDIVIDED: --context-parallel ulysses cannot divide 4 heads of attention, of which 2 share each of 2 key heads, among the 3 devices of mesh axis 'context', beside those of 'tensor'; use a number that divides the key heads that a tensor rank has, or a multiple of them that divides its heads
// TOOMANY: --context-parallel ulysses cannot divide 4 heads of attention, of which 2 share each of 2 key heads, among the 4 devices of mesh axis 'context'
// NOSCHEME: mesh axis 'context' = 2 divides sequences, but not attention; add --context-parallel ring, gather, ulysses or hybrid
// NOCONTEXT: --context-parallel divides attention over the context axis, which the mesh does not have; add e.g. context=2
// States are cut where padding adds least: of 20 x 16 over 3 the rows.
// UNEVEN: dist.constrain {{.*}} to #data_R boundary {{.*}} : (tensor<20x16xf32>) -> tensor<20x16xf32>
// MANY: mesh axis 'tensor' has 33 devices, more than any parameter can be divided among: the largest it shards is dimension 0 of @up, of 32; use 32 devices or fewer
// PARTS: mesh axis tensor of 4 devices has parts, which --tensor-2d is for; add it or write tensor=4
// NOPARTS: --tensor-2d needs a mesh axis tensor=RxC, e.g. tensor=2x2
train.variable @wte : tensor<20x16xf32> init <"normal", 1.0>
train.variable @norm : tensor<3x16xf32> stacked init <"normal", 1.0>
train.variable @q : tensor<3x16x16xf32> stacked init <"normal", 1.0>
train.variable @k : tensor<3x8x16xf32> stacked init <"normal", 1.0>
train.variable @v : tensor<3x8x16xf32> stacked init <"normal", 1.0>
train.variable @o : tensor<3x16x16xf32> stacked init <"normal", 1.0>
train.variable @up : tensor<3x32x16xf32> stacked init <"normal", 1.0>
train.variable @down : tensor<3x16x32xf32> stacked init <"normal", 1.0>
func.func private @layer(%x: tensor<4x6x16xf32>, %n: tensor<16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<8x16xf32>,
                         %wv: tensor<8x16xf32>, %wo: tensor<16x16xf32>, %up: tensor<32x16xf32>, %down: tensor<16x32xf32>) -> tensor<4x6x16xf32> attributes {train.role = #train.role<forward>} {
  %0 = train.rms_norm %x, %n eps 1.0e-05 : (tensor<4x6x16xf32>, tensor<16xf32>) -> tensor<4x6x16xf32>
  %1 = train.linear %0, %wq : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
  %2 = train.linear %0, %wk : (tensor<4x6x16xf32>, tensor<8x16xf32>) -> tensor<4x6x8xf32>
  %3 = train.linear %0, %wv : (tensor<4x6x16xf32>, tensor<8x16xf32>) -> tensor<4x6x8xf32>
  %q = train.reshape %1 : (tensor<4x6x16xf32>) -> tensor<4x6x4x4xf32>
  %k = train.reshape %2 : (tensor<4x6x8xf32>) -> tensor<4x6x2x4xf32>
  %v = train.reshape %3 : (tensor<4x6x8xf32>) -> tensor<4x6x2x4xf32>
  %out, %lse = train.attention %q, %k, %v scale 0.5 causal : (tensor<4x6x4x4xf32>, tensor<4x6x2x4xf32>, tensor<4x6x2x4xf32>) -> (tensor<4x6x4x4xf32>, tensor<4x4x6xf32>)
  %4 = train.reshape %out : (tensor<4x6x4x4xf32>) -> tensor<4x6x16xf32>
  %5 = train.linear %4, %wo : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
  %6 = train.add %x, %5 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
  %7 = train.linear %6, %up : (tensor<4x6x16xf32>, tensor<32x16xf32>) -> tensor<4x6x32xf32>
  %8 = train.silu %7 : (tensor<4x6x32xf32>) -> tensor<4x6x32xf32>
  %9 = train.linear %8, %down : (tensor<4x6x32xf32>, tensor<16x32xf32>) -> tensor<4x6x16xf32>
  %10 = train.add %6, %9 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
  return %10 : tensor<4x6x16xf32>
}
func.func @step(%tokens: tensor<4x6xi32> {train.input = "tokens"}, %lr: tensor<f32> {train.input = "lr"}, %clip: tensor<f32> {train.input = "grad_clip"}) -> tensor<4x6x16xf32> {
  %t = train.get @wte : tensor<20x16xf32>
  %n = train.get @norm : tensor<3x16xf32>
  %q = train.get @q : tensor<3x16x16xf32>
  %k = train.get @k : tensor<3x8x16xf32>
  %v = train.get @v : tensor<3x8x16xf32>
  %o = train.get @o : tensor<3x16x16xf32>
  %u = train.get @up : tensor<3x32x16xf32>
  %d = train.get @down : tensor<3x16x32xf32>
  %x = train.embedding %t, %tokens : (tensor<20x16xf32>, tensor<4x6xi32>) -> tensor<4x6x16xf32>
  %y = train.repeat @layer x 3 carry(%x) each(%n, %q, %k, %v, %o, %u, %d) shared() {train.role = #train.role<forward>} : (tensor<4x6x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x8x16xf32>, tensor<3x8x16xf32>, tensor<3x16x16xf32>, tensor<3x32x16xf32>, tensor<3x16x32xf32>) -> tensor<4x6x16xf32>
  %g = train.embedding_grad %y, %tokens rows 20 : (tensor<4x6x16xf32>, tensor<4x6xi32>) -> tensor<20x16xf32>
  %w = train.get @wte : tensor<20x16xf32>
  %new = train.update "sgd" %w, %g, %clip, %lr : (tensor<20x16xf32>, tensor<20x16xf32>, tensor<f32>, tensor<f32>) -> tensor<20x16xf32>
  train.set @wte, %new : tensor<20x16xf32>
  %ng = train.fill 0.0 : () -> tensor<3x16xf32>
  %nn = train.update "sgd" %n, %ng, %clip, %lr : (tensor<3x16xf32>, tensor<3x16xf32>, tensor<f32>, tensor<f32>) -> tensor<3x16xf32>
  train.set @norm, %nn : tensor<3x16xf32>
  %qg = train.fill 0.0 : () -> tensor<3x16x16xf32>
  %qn = train.update "sgd" %q, %qg, %clip, %lr : (tensor<3x16x16xf32>, tensor<3x16x16xf32>, tensor<f32>, tensor<f32>) -> tensor<3x16x16xf32>
  train.set @q, %qn : tensor<3x16x16xf32>
  %og = train.fill 0.0 : () -> tensor<3x16x16xf32>
  %on = train.update "sgd" %o, %og, %clip, %lr : (tensor<3x16x16xf32>, tensor<3x16x16xf32>, tensor<f32>, tensor<f32>) -> tensor<3x16x16xf32>
  train.set @o, %on : tensor<3x16x16xf32>
  return %y : tensor<4x6x16xf32>
}
