// RUN: meshwright-opt %s -split-input-file --dist-pad -verify-diagnostics

dist.mesh @mesh ["data" = 2]
// expected-error @+1 {{input "tokens" has 5 sequences in dimension 0, which seeds shard into parts that divide 6; sequences are never padded: choose a batch that divides}}
func.func @batch(%tokens: tensor<5x4xi32> {train.input = "tokens", dist.seed = #dist.sharding<@mesh, [{data}, {}]>}, %table: tensor<9x4xf32>) -> tensor<5x4x4xf32> {
  %x = train.embedding %table, %tokens : (tensor<9x4xf32>, tensor<5x4xi32>) -> tensor<5x4x4xf32>
  return %x : tensor<5x4x4xf32>
}

// -----

dist.mesh @mesh ["a" = 2]
func.func private @layer(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @layers(%x: tensor<4xf32>, %w: tensor<3x4xf32> {dist.seed = #dist.sharding<@mesh, [{a}, {}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{takes or makes 3 slices along a dimension that seeds shard into 2 parts; layers and microbatches are never padded}}
  %0 = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{argument 0 of @inside has an index of 5 elements inside its dimension 1 of 10; it cannot be padded to 6: choose a mesh that divides it}}
func.func @inside(%x: tensor<3x10xf32>) -> tensor<3x2x5xf32> {
  %0 = train.reshape %x : (tensor<3x10xf32>) -> tensor<3x2x5xf32>
  %1 = dist.constrain %0 to <@mesh, [{}, {}, {a}]> : (tensor<3x2x5xf32>) -> tensor<3x2x5xf32>
  return %1 : tensor<3x2x5xf32>
}
