// A recurrence needs its sequence whole. What enters it is divided by channels instead, first by groups of heads, and then by the heads of
// a group; what leaves it is divided by positions again. What all heads share is gathered.
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2 context-parallel=gather" | FileCheck %s --check-prefix=TWO
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=4 context-parallel=gather" | FileCheck %s --check-prefix=FOUR
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=8 context-parallel=gather" | FileCheck %s --check-prefix=EIGHT
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=3 context-parallel=gather" | FileCheck %s --check-prefix=THREE
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=2,tensor=2 context-parallel=gather" | FileCheck %s --check-prefix=TENSOR
// RUN: meshwright-opt %s --dist-apply-strategy="mesh=context=4x2,tensor=2 context-parallel=hybrid" | FileCheck %s --check-prefix=HYBRID
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=2 | FileCheck %s --check-prefix=DATA

// TWO: dist.mesh @mesh ["context" = 2]
// TWO-LABEL: @layer
// TWO: dist.constrain %{{.*}} to #R_R_context boundary {dist.reason = "context parallel"} : (tensor<2x24x24xf32>)
// TWO: dist.constrain %{{.*}} to #R_R_context boundary {dist.reason = "context parallel"} : (tensor<2x24x6xf32>)
// TWO: dist.constrain %{{.*}} to #R_R_R boundary {dist.reason = "context parallel"} : (tensor<2x24x5xf32>)
// TWO: dist.constrain %{{.*}} to #R_context_R boundary {dist.reason = "context parallel"} : (tensor<2x24x24xf32>)
// TWO-NOT: train.redistributes

// FOUR: dist.mesh @mesh ["context.0" = 2, "context.1" = 2]
// FOUR: dist.constrain %{{.*}} to #R_R_context_0-context_1 boundary {{.*}} : (tensor<2x24x24xf32>)
// FOUR: dist.constrain %{{.*}} to #R_R_context_0 boundary {{.*}} : (tensor<2x24x6xf32>)
// FOUR: dist.constrain %{{.*}} to #R_context_0-context_1_R boundary {{.*}} : (tensor<2x24x24xf32>)

// Elements of heads are divided where heads do not suffice.
// EIGHT: dist.mesh @mesh ["context.0" = 2, "context.1" = 2, "context.2" = 2]
// EIGHT: dist.constrain %{{.*}} to #R_R_context_0-context_1-context_2 boundary {{.*}} : (tensor<2x24x24xf32>)

// Two groups are not divided among three: all compute all of them.
// THREE: dist.mesh @mesh ["context" = 3]
// THREE: dist.constrain %{{.*}} to #R_R_R boundary {{.*}} : (tensor<2x24x24xf32>)
// THREE: dist.constrain %{{.*}} to #R_context_R boundary {{.*}} : (tensor<2x24x24xf32>)

// TENSOR: dist.constrain %{{.*}} to #R_R_tensor-context boundary {{.*}} : (tensor<2x24x24xf32>)
// TENSOR: dist.constrain %{{.*}} to #R_R_tensor boundary {{.*}} : (tensor<2x24x6xf32>)
// TENSOR: dist.constrain %{{.*}} to #R_context_tensor boundary {{.*}} : (tensor<2x24x24xf32>)

// The two heads that tensor parallelism leaves of a group are not divided among four rings. What tensor divides stays divided.
// HYBRID: dist.constrain %{{.*}} to #R_R_tensor boundary {{.*}} : (tensor<2x24x24xf32>)
// HYBRID: dist.constrain %{{.*}} to #R_R_tensor boundary {{.*}} : (tensor<2x24x6xf32>)
// HYBRID: dist.constrain %{{.*}} to #R_context_0-context_1_tensor boundary {{.*}} : (tensor<2x24x24xf32>)

// Without the axis nothing is redistributed.
// DATA-NOT: redistributes
// DATA-NOT: dist.constrain
train.variable @v : tensor<1x24x16xf32> stacked init <"normal", 1.0>
train.variable @k : tensor<1x6x16xf32> stacked init <"normal", 1.0>
train.variable @gate : tensor<1x5x16xf32> stacked init <"normal", 1.0>
train.variable @o : tensor<1x16x24xf32> stacked init <"normal", 1.0>
func.func private @layer(%x: tensor<2x24x16xf32>, %wv: tensor<24x16xf32>, %wk: tensor<6x16xf32>, %wg: tensor<5x16xf32>, %wo: tensor<16x24xf32>) -> tensor<2x24x16xf32> attributes {train.role = #train.role<forward>} {
  %1 = train.linear %x, %wv : (tensor<2x24x16xf32>, tensor<24x16xf32>) -> tensor<2x24x24xf32>
  %2 = train.linear %x, %wk : (tensor<2x24x16xf32>, tensor<6x16xf32>) -> tensor<2x24x6xf32>
  %3 = train.linear %x, %wg : (tensor<2x24x16xf32>, tensor<5x16xf32>) -> tensor<2x24x5xf32>
  %4 = train.slice %1 dim 1 rows 24 {train.redistributes} : (tensor<2x24x24xf32>) -> tensor<2x24x24xf32>
  %5 = train.slice %2 dim 1 rows 24 {train.redistributes} : (tensor<2x24x6xf32>) -> tensor<2x24x6xf32>
  %6 = train.slice %3 dim 1 rows 24 {train.redistributes} : (tensor<2x24x5xf32>) -> tensor<2x24x5xf32>
  %v = train.reshape %4 : (tensor<2x24x24xf32>) -> tensor<2x24x2x2x6xf32>
  %k = train.reshape %5 : (tensor<2x24x6xf32>) -> tensor<2x24x2x3xf32>
  // The last of five is needed whole.
  %7 = train.slice %6 dim 2 rows 1 : (tensor<2x24x5xf32>) -> tensor<2x24x1xf32>
  %state = train.contract "b t g p v, b t g k -> b g p v k" %v, %k : (tensor<2x24x2x2x6xf32>, tensor<2x24x2x3xf32>) -> tensor<2x2x2x6x3xf32>
  %y = train.contract "b g p v k, b t g k -> b t g p v" %state, %k : (tensor<2x2x2x6x3xf32>, tensor<2x24x2x3xf32>) -> tensor<2x24x2x2x6xf32>
  %8 = train.reshape %y : (tensor<2x24x2x2x6xf32>) -> tensor<2x24x24xf32>
  %9 = train.slice %8 dim 1 rows 24 {train.redistributes} : (tensor<2x24x24xf32>) -> tensor<2x24x24xf32>
  %10 = train.linear %9, %wo : (tensor<2x24x24xf32>, tensor<16x24xf32>) -> tensor<2x24x16xf32>
  %11 = train.add %x, %10 : (tensor<2x24x16xf32>, tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  return %11 : tensor<2x24x16xf32>
}
func.func @step(%tokens: tensor<2x24xi32> {train.input = "tokens"}, %table: tensor<8x16xf32> {train.input = "table"}) -> tensor<2x24x16xf32> {
  %v = train.get @v : tensor<1x24x16xf32>
  %k = train.get @k : tensor<1x6x16xf32>
  %g = train.get @gate : tensor<1x5x16xf32>
  %o = train.get @o : tensor<1x16x24xf32>
  %x = train.embedding %table, %tokens : (tensor<8x16xf32>, tensor<2x24xi32>) -> tensor<2x24x16xf32>
  %y = train.repeat @layer x 1 carry(%x) each(%v, %k, %g, %o) shared() {train.role = #train.role<forward>} : (tensor<2x24x16xf32>, tensor<1x24x16xf32>, tensor<1x6x16xf32>, tensor<1x5x16xf32>, tensor<1x16x24xf32>) -> tensor<2x24x16xf32>
  return %y : tensor<2x24x16xf32>
}
