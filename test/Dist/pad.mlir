// RUN: meshwright-opt %s -split-input-file --dist-pad | FileCheck %s
// RUN: meshwright-opt %s -split-input-file --dist-pad=row-bytes=16 | FileCheck %s --check-prefix ROWS

// BEGIN EXAMPLE --dist-pad
dist.mesh @mesh ["tensor" = 2]
train.variable @w : tensor<5x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}
func.func @f(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %w = train.get @w : tensor<5x4xf32>
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<8x5xf32>
  %1 = train.exp %0 : (tensor<8x5xf32>) -> tensor<8x5xf32>
  %2 = train.reduce sum %1 over [1] : (tensor<8x5xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
// END EXAMPLE

// CHECK: train.variable @w : tensor<6x4xf32> {{.*}}dist.logical = tensor<5x4xf32>
// CHECK-LABEL: func.func @f
// CHECK: %[[E:.*]] = train.exp %{{.*}} : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK: %[[M:.*]] = train.mask %[[E]] dim 1 below 5 : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK: train.reduce sum %[[M]] over [1]

// -----

// A sequence of six that four devices divide is exchanged for columns with its padding, which is cut off where the sequence is whole. Cutting it off
// before would gather all columns.
dist.mesh @mesh ["context" = 4]
// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<6x8xf32> {dist.seed = #dist.sharding<@mesh, [{context}, {}]>}) -> tensor<6x8xf32> {
  // CHECK: %[[IN:.*]] = dist.constrain %{{.*}} to #R_context boundary : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: %[[WHOLE:.*]] = train.slice %[[IN]] rows 6 : (tensor<8x8xf32>) -> tensor<6x8xf32>
  %0 = dist.constrain %x to <@mesh, [{}, {context}]> boundary : (tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK-NEXT: train.exp %[[WHOLE]] : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %1 = train.exp %0 : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}

// -----

// Where zeros stay zeros no mask is needed: gelu(0) = 0.
dist.mesh @mesh ["tensor" = 2]
train.variable @w : tensor<5x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}
// CHECK-LABEL: func.func @zeros
func.func @zeros(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  // CHECK-NOT: train.mask
  %w = train.get @w : tensor<5x4xf32>
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<8x5xf32>
  %1 = train.gelu %0 : (tensor<8x5xf32>) -> tensor<8x5xf32>
  %2 = train.reduce sum %1 over [1] : (tensor<8x5xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A maximum never wants padding, be it zero.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<8x5xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> tensor<8xf32> {
  // CHECK: %[[P:.*]] = train.pad %{{.*}} dim 1 rows 6
  // CHECK: %[[C:.*]] = dist.constrain %[[P]] to #R_tensor
  // CHECK: %[[M:.*]] = train.mask %[[C]] dim 1 below 5 {value = 0xFFF0000000000000 : f64}
  // CHECK: train.reduce max %[[M]] over [1]
  %0 = train.reduce max %x over [1] : (tensor<8x5xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Positions of a sequence of 7 over 2: ids are padded with -1, attention has
// 8 queries and 7 keys, outputs have 7.
dist.mesh @mesh ["context" = 2]
train.variable @table : tensor<9x4xf32> init <"normal", 2.0e-02 : f64>
// CHECK-LABEL: func.func @sequence
func.func @sequence(%tokens: tensor<2x7xi32> {train.input = "tokens", dist.seed = #dist.sharding<@mesh, [{}, {context}]>}) -> (tensor<2x7x4xf32>, tensor<2x4xf32>) {
  // CHECK: %[[IDS:.*]] = train.pad %{{.*}} dim 1 rows 8 {value = -1 : i64} : (tensor<2x7xi32>) -> tensor<2x8xi32>
  // CHECK: dist.constrain %[[IDS]] to #R_context
  // CHECK: train.embedding {{.*}} -> tensor<2x8x4xf32>
  %table = train.get @table : tensor<9x4xf32>
  %x = train.embedding %table, %tokens : (tensor<9x4xf32>, tensor<2x7xi32>) -> tensor<2x7x4xf32>
  %h = train.reshape %x : (tensor<2x7x4xf32>) -> tensor<2x7x2x2xf32>
  // CHECK: %[[K:.*]] = train.slice %[[Q:.*]] dim 1 rows 7 : (tensor<2x8x2x2xf32>) -> tensor<2x7x2x2xf32>
  // CHECK: %[[V:.*]] = train.slice %[[Q]] dim 1 rows 7 : (tensor<2x8x2x2xf32>) -> tensor<2x7x2x2xf32>
  // CHECK: train.attention %[[Q]], %[[K]], %[[V]] {{.*}}queries 7 {{.*}} -> (tensor<2x8x2x2xf32>, tensor<2x2x8xf32>)
  %o, %lse = train.attention %h, %h, %h scale 1.0 : (tensor<2x7x2x2xf32>, tensor<2x7x2x2xf32>, tensor<2x7x2x2xf32>) -> (tensor<2x7x2x2xf32>, tensor<2x2x7xf32>)
  %y = train.reshape %o : (tensor<2x7x2x2xf32>) -> tensor<2x7x4xf32>
  // A query of zeros gets a mean of values, which are not 0.
  // CHECK: %[[SHOWN:.*]] = train.mask %{{.*}} dim 1 below 7 : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  // CHECK: train.reduce sum %[[SHOWN]] over [1]
  %sum = train.reduce sum %y over [1] : (tensor<2x7x4xf32>) -> tensor<2x4xf32>
  // CHECK: train.slice %{{.*}} dim 1 rows 7 : (tensor<2x8x4xf32>) -> tensor<2x7x4xf32>
  return %y, %sum : tensor<2x7x4xf32>, tensor<2x4xf32>
}

// -----

// The two sides of a boundary are padded for themselves.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @boundary
func.func @boundary(%x: tensor<5x4xf32>) -> tensor<5x4xf32> {
  // CHECK: %[[P:.*]] = train.pad %{{.*}} rows 6 : (tensor<5x4xf32>) -> tensor<6x4xf32>
  // CHECK: dist.constrain %[[P]] to #data_R boundary : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %0 = dist.constrain %x to <@mesh, [{data}, {}]> boundary : (tensor<5x4xf32>) -> tensor<5x4xf32>
  // CHECK: %[[S:.*]] = train.slice %{{.*}} rows 5 : (tensor<6x4xf32>) -> tensor<5x4xf32>
  // CHECK: dist.constrain %[[S]] to #R_R boundary : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %1 = dist.constrain %0 to <@mesh, [{}, {}]> boundary : (tensor<5x4xf32>) -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}

// -----

// What is stored in finer parts than it is computed with is padded like that: 5 heads of 8 rows over 2
// devices are 48 rows, so 8 parts of the same rows are too, although they divide 40.
dist.mesh @mesh ["tensor" = 2, "data" = 4]
train.variable @w : tensor<40x3xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{tensor, data}, {}]>}
// CHECK: train.variable @w : tensor<48x3xf32> {{.*}}dist.logical = tensor<40x3xf32>
// CHECK-LABEL: func.func @storage
func.func @storage(%x: tensor<2x3xf32>) -> tensor<2x5x8xf32> {
  // CHECK: dist.constrain %{{.*}} to #tensor_R boundary : (tensor<48x3xf32>) -> tensor<48x3xf32>
  %w = train.get @w : tensor<40x3xf32>
  %0 = dist.constrain %w to <@mesh, [{tensor}, {}]> boundary : (tensor<40x3xf32>) -> tensor<40x3xf32>
  // CHECK: train.linear {{.*}} -> tensor<2x48xf32>
  %1 = train.linear %x, %0 : (tensor<2x3xf32>, tensor<40x3xf32>) -> tensor<2x40xf32>
  %2 = train.reshape %1 : (tensor<2x40xf32>) -> tensor<2x5x8xf32>
  return %2 : tensor<2x5x8xf32>
}

// -----

// With --dist-pad=row-bytes=16, rows of matrices begin at multiples of 16 bytes: a vocabulary of 50 in
// bf16 becomes 56. Its logits are without probability there and without gradient, so no other mask is needed.
dist.mesh @mesh []
// ROWS: train.variable @w : tensor<56x8xbf16> {{.*}}dist.logical = tensor<50x8xbf16>
train.variable @w : tensor<50x8xbf16> init <"normal", 2.0e-02 : f64>
// CHECK-LABEL: func.func @vocabulary
// CHECK-NOT: tensor<56
// ROWS-LABEL: func.func @vocabulary
func.func @vocabulary(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>, %one: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %w = train.get @w : tensor<50x8xbf16>
  // ROWS: %[[L:.*]] = train.linear {{.*}} -> tensor<2x4x56xbf16>
  %logits = train.linear %x, %w : (tensor<2x4x8xbf16>, tensor<50x8xbf16>) -> tensor<2x4x50xbf16>
  // ROWS: %[[M:.*]] = train.mask %[[L]] dim 2 below 50 {value = 0xFFF0000000000000 : f64}
  // ROWS: train.cross_entropy %[[M]]
  %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<2x4x50xbf16>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
  // ROWS: train.mask %[[L]] dim 2 below 50 {value = 0xFFF0000000000000 : f64}
  // ROWS: %[[D:.*]] = train.cross_entropy_grad
  %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 1.0 : (tensor<2x4x50xbf16>, tensor<2x4xi32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4x50xbf16>
  // ROWS-NEXT: %[[G:.*]] = train.contract {{.*}} %[[D]]
  %g = train.contract "a b o, a b i -> o i" %d, %x : (tensor<2x4x50xbf16>, tensor<2x4x8xbf16>) -> tensor<50x8xf32>
  // ROWS-NEXT: train.square_sum %[[G]]
  %norm = train.square_sum %g : (tensor<50x8xf32>) -> tensor<f32>
  return %loss, %norm : tensor<f32>, tensor<f32>
}

// -----

// What could only be padded by copies stays: an index that a norm needs whole, heads of 3 inside rows of 6.
dist.mesh @mesh []
// ROWS-LABEL: func.func @whole
func.func @whole(%x: tensor<4x6xbf16>, %w: tensor<6x6xbf16>, %s: tensor<6xbf16>) -> tensor<4x2x3xbf16> {
  // ROWS-NOT: tensor<{{.*}}8x
  // ROWS: return {{.*}} : tensor<4x2x3xbf16>
  %0 = train.rms_norm %x, %s eps 1.0e-05 : (tensor<4x6xbf16>, tensor<6xbf16>) -> tensor<4x6xbf16>
  %1 = train.linear %0, %w : (tensor<4x6xbf16>, tensor<6x6xbf16>) -> tensor<4x6xbf16>
  %2 = train.reshape %1 : (tensor<4x6xbf16>) -> tensor<4x2x3xbf16>
  return %2 : tensor<4x2x3xbf16>
}

// -----

// An index that is cut into 2 parts here and 3 there divides by both.
dist.mesh @mesh ["a" = 2, "b" = 3]
// CHECK-LABEL: func.func @both
func.func @both(%x: tensor<8x7xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>}, %y: tensor<8x7xf32> {dist.seed = #dist.sharding<@mesh, [{}, {b}]>}) -> tensor<8x7xf32> {
  // CHECK: train.add {{.*}} : (tensor<8x12xf32>, tensor<8x12xf32>) -> tensor<8x12xf32>
  %0 = train.add %x, %y : (tensor<8x7xf32>, tensor<8x7xf32>) -> tensor<8x7xf32>
  return %0 : tensor<8x7xf32>
}

// -----

// What a loop carries has zeros in its padding only if its next value does too: exp(0) = 1.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func private @body
// CHECK: %[[M:.*]] = train.mask %arg0 dim 1 below 5 : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: train.reduce sum %[[M]] over [1]
func.func private @body(%x: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<8xf32>) {
  %sum = train.reduce sum %x over [1] : (tensor<8x5xf32>) -> tensor<8xf32>
  %next = train.exp %x : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %next, %sum : tensor<8x5xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @carried
func.func @carried(%x: tensor<8x5xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> (tensor<8x5xf32>, tensor<3x8xf32>) {
  %y, %sums = train.repeat @body x 3 carry(%x) each() shared() : (tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<3x8xf32>)
  return %y, %sums : tensor<8x5xf32>, tensor<3x8xf32>
}

// -----

// Variables have zeros in their padding again.
dist.mesh @mesh ["tensor" = 2]
train.variable @w : tensor<5xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{tensor}]>}
// CHECK-LABEL: func.func @variable
func.func @variable() {
  // CHECK: %[[E:.*]] = train.exp
  // CHECK-NEXT: %[[M:.*]] = train.mask %[[E]] dim 0 below 5
  // CHECK-NEXT: train.set @w, %[[M]]
  %w = train.get @w : tensor<5xf32>
  %0 = train.exp %w : (tensor<5xf32>) -> tensor<5xf32>
  train.set @w, %0 : tensor<5xf32>
  return
}
