// How propagation and partitioning take quantized tensors: an amax is a partial maximum where devices have parts.
// RUN: meshwright-opt %s -split-input-file --dist-propagate --dist-verify | FileCheck %s
// RUN: meshwright-opt %s -split-input-file --dist-propagate --dist-verify --dist-partition | FileCheck %s --check-prefix=LOCAL

dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @f
// LOCAL-LABEL: func.func @f
func.func @f(%x: tensor<8x16xbf16> {dist.seed = #dist.sharding<@mesh, [{data}, {}]>}, %w: tensor<32x16xf8E4M3FN>, %s: tensor<f32>) -> tensor<8x32xbf16> {
  // CHECK: %[[PART:.*]] = train.amax %{{.*}} -> tensor<f32, {{.*}}max_data
  // CHECK: %[[AMAX:.*]] = dist.reshard %[[PART]]
  // CHECK: train.quantization_scale %[[AMAX]]
  // LOCAL: %[[PART:.*]] = train.amax %{{.*}} : (tensor<4x16xbf16>) -> tensor<f32>
  // LOCAL: %[[AMAX:.*]] = dist.all_reduce max %[[PART]] over <@mesh {data}>
  // LOCAL: train.quantization_scale %[[AMAX]]
  %amax = train.amax %x : (tensor<8x16xbf16>) -> tensor<f32>
  %scale = train.quantization_scale %amax to f8E4M3FN : (tensor<f32>) -> tensor<f32>
  // LOCAL: train.quantize {{.*}} -> tensor<4x16xf8E4M3FN>
  %q = train.quantize %x by %scale : (tensor<8x16xbf16>, tensor<f32>) -> tensor<8x16xf8E4M3FN>
  // LOCAL: train.scaled_contract {{.*}} -> tensor<4x32xbf16>
  %y = train.scaled_contract "b i, o i -> b o" %q, %w scales(%scale, %s) : (tensor<8x16xf8E4M3FN>, tensor<32x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x32xbf16>
  return %y : tensor<8x32xbf16>
}

// -----

// Of a sharded sum the product is partial.
dist.mesh @mesh ["tensor" = 2]
// LOCAL-LABEL: func.func @g
func.func @g(%x: tensor<8x16xf8E5M2> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}, %w: tensor<32x16xf8E4M3FN> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}, %s: tensor<f32>) -> tensor<8x32xbf16> {
  // LOCAL: %[[PART:.*]] = train.scaled_contract {{.*}} : (tensor<8x8xf8E5M2>, tensor<32x8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x32xbf16>
  // LOCAL: dist.all_reduce sum %[[PART]] over <@mesh {tensor}>
  %y = train.scaled_contract "b i, o i -> b o" %x, %w scales(%s, %s) : (tensor<8x16xf8E5M2>, tensor<32x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x32xbf16>
  return %y : tensor<8x32xbf16>
}
