// Frequencies keep all their digits through text.
// RUN: meshwright-opt %s | meshwright-opt | FileCheck %s
// CHECK: train.rope_table [1.000000e+00, 0.15848931924611132, 6.3095734448019298E-4]
func.func @tables() -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %cos, %sin = train.rope_table [1.0, 0.15848931924611132, 6.3095734448019298E-4] : () -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %cos, %sin : tensor<4x3xf32>, tensor<4x3xf32>
}
