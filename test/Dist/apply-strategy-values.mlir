// Seeds by names of values, "@function:value": of arguments and of results, which axes may still come to where they are open.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s
// RUN: sed 's/"@layer:h"/"@layers:h"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: sed 's/"@layer:h"/"@layer:hidden"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: sed 's/"@layer:h", "\[{?}/"@layer:h", "[{?}, {}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/"@lay\*:y"/"@layer:*"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/"@layer:h"/"@[:h"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: sed 's/{?}, {tensor}/{?}, {rows}/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=AXIS

// RUN: sed 's/"@layer:h"/"@layer"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=NOVALUE
// RUN: sed 's/"@layer:h"/"@layer:"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=NOVALUE
// RUN: sed 's/"@layer:h"/"@:h"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=NOVALUE
// RUN: sed 's/"@layer:h"/"@layer:h#2"/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 2>&1 | FileCheck %s --check-prefix=NUMBER
// Of several arguments of a name one by its number; a name's own # is written with a backslash.
// RUN: sed 's/"@layer:h"/"@layer:h#1"/' %s | meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s --check-prefix=SECOND
// RUN: sed 's/"@layer:h"/"@layer:#0"/' %s | meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s --check-prefix=FIRST
// RUN: sed -e 's/"@layer:h"/"@layer:h\\\\#1"/' -e 's/loc("h"), %z/loc("h#1"), %z/' %s | meshwright-opt - --dist-apply-strategy=mesh=data=2,tensor=2 | FileCheck %s --check-prefix=FIRST

// NOVALUE: names no value; write @function:value, such as @layer.forward:x, or @layer.forward:* for all of them
// NUMBER: seed "@layer:h#2" = "[{?}, {?}], replicated = {tensor}" matches no value of @layer
// FIRST: func.func @layer(%{{.*}}: tensor<8x16xf32> {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {tensor}>}, %{{.*}}: tensor<8x16xf32>)
// SECOND: func.func @layer(%{{.*}}: tensor<8x16xf32>, %{{.*}}: tensor<8x16xf32> {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {tensor}>})
// FUNCTION: seed "@layers:h" = "[{?}, {?}], replicated = {tensor}" matches no function; functions are layer
// VALUE: seed "@layer:hidden" = "[{?}, {?}], replicated = {tensor}" matches no value of @layer; names are those of --emit step, without % and the number behind equal ones, and #N behind a name means argument N alone
// RANK: has 3 dimensions, but no value of that name has
// TWICE: seed "@layer:*" = "[{?}, {tensor}]" contradicts another seed of a value in @layer; keep one
// PATTERN: seed "@[:h" = "[{?}, {?}], replicated = {tensor}" has a bad pattern
// AXIS: names axis "rows", which @mesh does not have; its axes are {data, tensor}
// CHECK-NOT: dist.seeds
module attributes {dist.seeds = [["@layer:h", "[{?}, {?}], replicated = {tensor}"], ["@lay*:y", "[{?}, {tensor}]"]]} {
  train.variable @w : tensor<16x16xf32> init <"normal", 1.0>
  // CHECK: func.func @layer(
  // CHECK-SAME: {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {tensor}>}, {{.*}} {dist.seed = #dist.sharding<@mesh, [{?}, {?}], replicated = {tensor}>}
  func.func @layer(%x: tensor<8x16xf32> loc("h"), %z: tensor<8x16xf32> loc("h")) -> tensor<8x16xf32> {
    %w = train.get @w : tensor<16x16xf32>
    // CHECK: train.linear {{.*}} {dist.seed = [#dist.sharding<@mesh, [{?}, {tensor}]>]}
    %y = train.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("y")
    return %y : tensor<8x16xf32>
  }
}
