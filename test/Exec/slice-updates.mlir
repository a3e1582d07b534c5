// RUN: meshwright-opt %s --exec-slice-updates=part-bytes=64 -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --exec-slice-updates=part-bytes=640 -split-input-file | FileCheck %s --check-prefix LARGE
// RUN: sed '/^\/\/ -----/,$d' %s > %t.before.mlir && meshwright-opt %t.before.mlir --exec-slice-updates=part-bytes=64 -o %t.after.mlir
// RUN: meshwright-interpret --compare %t.before.mlir %t.after.mlir --function update
// RUN: sed '1,/^[/][/] MASKED/d' %s > %t.before.mlir
// RUN: for bytes in 64 128 512; do meshwright-opt %t.before.mlir --exec-slice-updates=part-bytes=$bytes -o %t.after.mlir && meshwright-interpret --compare %t.before.mlir %t.after.mlir --function masked || exit 1; done

// BEGIN EXAMPLE --exec-slice-updates=part-bytes=64
func.func @update(%w: tensor<3x16xf32> {train.input = "w"}, %g: tensor<3x16xbf16> {train.input = "g"},
                  %m: tensor<3x16xf32> {train.input = "m"}, %v: tensor<3x16xf32> {train.input = "v"},
                  %s: tensor<f32> {train.input = "s"}) -> (tensor<3x16xbf16>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>) {
  %updated, %momentum, %variance = train.update "adamw" decay %w, %g, %m, %v, %s, %s, %s, %s, %s, %s, %s, %s
    : (tensor<3x16xf32>, tensor<3x16xbf16>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
    -> (tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>)
  %kept = train.guard %updated, %w if_finite %s : (tensor<3x16xf32>, tensor<3x16xf32>, tensor<f32>) -> tensor<3x16xf32>
  %narrow = train.cast %kept : (tensor<3x16xf32>) -> tensor<3x16xbf16>
  return %narrow, %kept, %momentum, %variance : tensor<3x16xbf16>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>
}
// END EXAMPLE

// No part can begin at a multiple of 32 elements: three of 16 then. The guard and the cast go along.
// CHECK-LABEL: func.func @update
// CHECK: %[[W:.*]] = train.reshape %arg0 : (tensor<3x16xf32>) -> tensor<3x16xf32>
// CHECK: train.repeat @update.part x 3 carry() each({{.*}}) shared(%arg4) {train.role = #train.role<update>}
// CHECK-SAME: -> (tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xbf16>)
// CHECK: func.func private @update.part(%arg0: tensor<16xf32>, %arg1: tensor<16xbf16>, %arg2: tensor<16xf32>, %arg3: tensor<16xf32>, %arg4: tensor<f32>)
// CHECK: train.update "adamw" {{.*}} -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
// CHECK: train.guard
// CHECK: train.cast {{.*}} -> tensor<16xbf16>

// -----

// A table is cut wherever that gives equal parts, here inside of rows; what is very small stays as it is, and so
// does what is not computed element by element.
// CHECK-LABEL: func.func @table
// CHECK: train.repeat @update.part x 4
// CHECK-SAME: tensor<4x16xf32>
// CHECK: train.update "sgd" {{.*}} tensor<1xf32>
// CHECK: train.reduce
// What is a part of its own is repeated once. Of 256 bytes, more than a sixteenth of the bound.
// LARGE-LABEL: func.func @table
// LARGE: train.repeat @update.part x 1
// LARGE-SAME: tensor<1x64xf32>
// CHECK: func.func private @update.part(%arg0: tensor<16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<f32>)
func.func @table(%w: tensor<1x64xf32>, %g: tensor<1x64xf32>, %b: tensor<1xf32>, %s: tensor<f32>) -> (tensor<1x64xf32>, tensor<1xf32>, tensor<64xf32>) {
  %0 = train.update "sgd" %w, %g, %s, %s : (tensor<1x64xf32>, tensor<1x64xf32>, tensor<f32>, tensor<f32>) -> tensor<1x64xf32>
  %1 = train.update "sgd" %b, %b, %s, %s : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>) -> tensor<1xf32>
  %2 = train.reduce sum %0 over [0] : (tensor<1x64xf32>) -> tensor<64xf32>
  return %0, %1, %2 : tensor<1x64xf32>, tensor<1xf32>, tensor<64xf32>
}

// -----

// What needs something that is computed later stays behind.
// CHECK-LABEL: func.func @late
// CHECK: train.repeat @update.part x 4
// CHECK: %[[SUM:.*]] = train.reduce
// CHECK: train.add %{{.*}}, %[[SUM]]
func.func @late(%w: tensor<64xf32>, %g: tensor<64xf32>, %x: tensor<2x64xf32>, %s: tensor<f32>) -> tensor<64xf32> {
  %0 = train.update "sgd" %w, %g, %s, %s : (tensor<64xf32>, tensor<64xf32>, tensor<f32>, tensor<f32>) -> tensor<64xf32>
  %1 = train.reduce sum %x over [0] : (tensor<2x64xf32>) -> tensor<64xf32>
  %2 = train.add %0, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// MASKED: a mask keeps its meaning. Parts are of as many dimensions as the table, and where the masked one is cut, each
// begins elsewhere.
// CHECK-LABEL: func.func @masked
// CHECK: train.repeat @update.part x 12 indexed
// CHECK-SAME: tensor<12x1x1x16xf32>
// CHECK: func.func private @update.part(%[[I:.*]]: tensor<i32>, %arg1: tensor<1x1x16xf32>
// CHECK: %[[ROW:.*]] = train.part_offset %[[I]] offset %[[BEGIN:.*]] every 1 parts 4 size 1
// CHECK: train.mask %{{.*}} offset %[[ROW]] dim 1 below 5 : (tensor<1x1x16xf32>, tensor<i32>)
// CHECK: %[[LAYER:.*]] = train.part_offset %[[I]] every 4 parts 3 size 1
// CHECK: train.mask %{{.*}} offset %[[LAYER]] dim 0 below 2
// CHECK: train.mask %{{.*}} offset %[[BEGIN]] dim 2 below 9
// LARGE-LABEL: func.func @masked
// LARGE: train.repeat @update.part x 3 indexed
// LARGE-NOT: train.part_offset %{{.*}} offset
// LARGE: train.mask %{{.*}} dim 1 below 5 : (tensor<1x4x16xf32>, tensor<i32>)
func.func @masked(%w: tensor<3x4x16xf32> {train.input = "w"}, %g: tensor<3x4x16xf32> {train.input = "g"}, %b: tensor<i32> {train.input = "b"},
                  %s: tensor<f32> {train.input = "s"}) -> (tensor<3x4x16xf32>, tensor<3x4x16xf32>, tensor<3x4x16xf32>) {
  %0 = train.update "sgd" %w, %g, %s, %s : (tensor<3x4x16xf32>, tensor<3x4x16xf32>, tensor<f32>, tensor<f32>) -> tensor<3x4x16xf32>
  %1 = train.mask %0 offset %b dim 1 below 5 : (tensor<3x4x16xf32>, tensor<i32>) -> tensor<3x4x16xf32>
  %2 = train.mask %0 dim 0 below 2 : (tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  %3 = train.mask %2 offset %b dim 2 below 9 : (tensor<3x4x16xf32>, tensor<i32>) -> tensor<3x4x16xf32>
  return %1, %2, %3 : tensor<3x4x16xf32>, tensor<3x4x16xf32>, tensor<3x4x16xf32>
}
