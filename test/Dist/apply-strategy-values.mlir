// Seeds by names of values, "@function:value": of arguments and of results, which axes may still come to where they are open.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s
// RUN: sed 's/"@layer:h"/"@layers:h"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: sed 's/"@layer:h"/"@layer:hidden"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: sed 's/"@layer:h", "\[{?}/"@layer:h", "[{?}, {}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/"@lay\*:y"/"@layer:*"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/"@layer:h"/"@[:h"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: sed 's/{?}, {tensor}/{?}, {rows}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=AXIS

// FUNCTION: seed "@layers:h" = "[{?}, {?}], replicated = {tensor}" matches no function; functions are layer
// VALUE: seed "@layer:hidden" = "[{?}, {?}], replicated = {tensor}" matches no value of @layer; names are those of --emit step, without % and number
// RANK: has 3 dimensions, but no value of that name has
// TWICE: seed "@layer:*" = "[{?}, {tensor}]" contradicts another seed of a value in @layer; keep one
// PATTERN: seed "@[:h" = "[{?}, {?}], replicated = {tensor}" has a bad pattern
// AXIS: names axis "rows", which @mesh does not have; its axes are {data, tensor}
// CHECK-NOT: dist.seeds
module attributes {dist.seeds = [["@layer:h", "[{?}, {?}], replicated = {tensor}"], ["@lay*:y", "[{?}, {tensor}]"]]} {
  train.variable @w : tensor<16x16xf32> init <"normal", 1.0>
  // CHECK: func.func @layer(
  // CHECK-SAME: {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {tensor}>}
  func.func @layer(%x: tensor<8x16xf32> loc("h")) -> tensor<8x16xf32> {
    %w = train.get @w : tensor<16x16xf32>
    // CHECK: train.linear {{.*}} {dist.seed = [#dist.sharding<@mesh, [{?}, {tensor}]>]}
    %y = train.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("y")
    return %y : tensor<8x16xf32>
  }
}
