// Blocks of 8-bit states: devices have whole blocks, or partial maxima of rows that are one block each.
// RUN: meshwright-opt %s -split-input-file --dist-propagate --dist-verify --dist-partition | FileCheck %s

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<4x1024xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> tensor<4x1024xf32> {
  // CHECK: %[[AMAX:.*]] = train.block_amax %{{.*}} of 256 : (tensor<4x512xf32>) -> tensor<4x2xf32>
  // CHECK-NOT: dist.
  // CHECK: train.quantize_blocks signed %{{.*}} by %[[AMAX]] : (tensor<4x512xf32>, tensor<4x2xf32>) -> tensor<4x512xi8>
  // CHECK: train.dequantize_blocks signed %{{.*}} by %[[AMAX]] : (tensor<4x512xi8>, tensor<4x2xf32>) -> tensor<4x512xf32>
  %amax = train.block_amax %x of 256 : (tensor<4x1024xf32>) -> tensor<4x4xf32>
  %codes = train.quantize_blocks signed %x by %amax : (tensor<4x1024xf32>, tensor<4x4xf32>) -> tensor<4x1024xi8>
  %y = train.dequantize_blocks signed %codes by %amax : (tensor<4x1024xi8>, tensor<4x4xf32>) -> tensor<4x1024xf32>
  return %y : tensor<4x1024xf32>
}

// -----

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<4x64xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> tensor<4x64xi8> {
  // CHECK: %[[PART:.*]] = train.block_amax %{{.*}} of 64 : (tensor<4x32xf32>) -> tensor<4x1xf32>
  // CHECK: %[[AMAX:.*]] = dist.all_reduce max %[[PART]] over <@mesh {tensor}>
  // CHECK: train.quantize_blocks %{{.*}} by %[[AMAX]] : (tensor<4x32xf32>, tensor<4x1xf32>) -> tensor<4x32xi8>
  %amax = train.block_amax %x of 64 : (tensor<4x64xf32>) -> tensor<4x1xf32>
  %codes = train.quantize_blocks %x by %amax : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xi8>
  return %codes : tensor<4x64xi8>
}
