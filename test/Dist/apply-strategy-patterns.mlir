// Seeds by parameters' names, as a recipe gives them: they win over the mesh's
// strategies, and two that disagree are refused.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s
// RUN: sed 's/"head\*"/"*.weight"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/"layers.q/"heads.q/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/{tensor}, {?}/tensor/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: sed 's/{tensor}, {?}/{rows}, {}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=AXIS
// What does not divide is padded, as wherever seeds say so.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2,tensor=3 --dist-pad | FileCheck %s --check-prefix=UNEVEN
// RUN: sed 's/{tensor}, {?}/{}, {}, {}, {}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/{tensor}, {?}/{tensor}, {}, {}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=LAYERS

// TWICE: seed "*.weight" = "[{}, {tensor}]" contradicts seed "layers.q*": both are for @layers.q.weight; keep one
// NONE: seed "heads.q*" = "[{tensor}, {?}], replicated = {data}" matches no parameter; parameters are layers.q.weight, head.weight
// TEXT: seed "layers.q*" = "[tensor], replicated = {data}" is not a list of dimensions; write it as "[{tensor}, {}]"
// AXIS: seed "layers.q*" = "[{rows}, {}], replicated = {data}" names axis "rows", which @mesh does not have; its axes are {data, tensor}
// UNEVEN: @layers.q.weight : tensor<3x18x16xf32>
// RANK: has 4 dimensions, but @layers.q.weight has 2
// LAYERS: shards the layers of @layers.q.weight, which are one after another; shard another dimension
// CHECK-NOT: dist.seeds
module attributes {dist.seeds = [["layers.q*", "[{tensor}, {?}], replicated = {data}"], ["head*", "[{}, {tensor}]"]]} {
  // CHECK: @layers.q.weight {{.*}} {dist.seed = #dist.sharding<@mesh, [{}, {tensor}, {?}], replicated = {data}>}
  train.variable @layers.q.weight : tensor<3x16x16xf32> stacked init <"normal", 1.0>
  // CHECK: @head.weight {{.*}} {dist.seed = #R_tensor}
  train.variable @head.weight : tensor<20x16xf32> init <"normal", 1.0>
}
