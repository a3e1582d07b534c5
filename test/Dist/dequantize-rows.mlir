// Weights of 8 bits: devices have some of the rows, with their scales, or a part of each row, with all scales.
// RUN: meshwright-opt %s -split-input-file --dist-propagate --dist-verify --dist-partition | FileCheck %s

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[CODES:[a-z0-9]*]]: tensor<4x8xi8> {{.*}}, %[[SCALE:[a-z0-9]*]]: tensor<4xf32>
// CHECK-NEXT: %[[W:.*]] = train.dequantize_rows %[[CODES]] by %[[SCALE]] : (tensor<4x8xi8>, tensor<4xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: dist.all_gather %[[W]]
func.func @rows(%codes: tensor<8x8xi8> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}, %scale: tensor<8xf32>) -> tensor<8x8xbf16> {
  %w = train.dequantize_rows %codes by %scale : (tensor<8x8xi8>, tensor<8xf32>) -> tensor<8x8xbf16>
  return %w : tensor<8x8xbf16>
}

// -----

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[CODES:[a-z0-9]*]]: tensor<8x4xi8> {{.*}}, %[[SCALE:[a-z0-9]*]]: tensor<8xf32>
// CHECK-NEXT: %[[W:.*]] = train.dequantize_rows %[[CODES]] by %[[SCALE]] : (tensor<8x4xi8>, tensor<8xf32>) -> tensor<8x4xbf16>
// CHECK-NEXT: dist.all_gather %[[W]]
func.func @columns(%codes: tensor<8x8xi8> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}, %scale: tensor<8xf32>) -> tensor<8x8xbf16> {
  %w = train.dequantize_rows %codes by %scale : (tensor<8x8xi8>, tensor<8xf32>) -> tensor<8x8xbf16>
  return %w : tensor<8x8xbf16>
}

// -----

// What is gathered for storage alone (ZeRO) is gathered in 8 bits.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @gathered
// CHECK: %[[WHOLE:.*]] = dist.all_gather %{{.*}} : (tensor<4x8xi8>) -> tensor<8x8xi8>
// CHECK: train.dequantize_rows %[[WHOLE]] by
func.func @gathered(%codes: tensor<8x8xi8> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>}, %scale: tensor<8xf32> {dist.seed = #dist.sharding<@mesh, [{}]>}) -> (tensor<8x8xbf16> {dist.seed = #dist.sharding<@mesh, [{}, {}]>}) {
  %whole = dist.constrain %codes to <@mesh, [{}, {}]> boundary : (tensor<8x8xi8>) -> tensor<8x8xi8>
  %w = train.dequantize_rows %whole by %scale : (tensor<8x8xi8>, tensor<8xf32>) -> tensor<8x8xbf16>
  return %w : tensor<8x8xbf16>
}
