// In float64 a narrow sum is the sum, of tensors that devices divide and of others.
// RUN: for wire in bf16 fp8; do for f in bucket scatter; do \
// RUN:   sed "s/bf16/$wire/" %s > %t.mlir && meshwright-opt %t.mlir --exec-contiguous-collectives -o %t.after.mlir && \
// RUN:   meshwright-interpret %t.mlir --compare %t.after.mlir --ranks 3 --function $f || exit 1; done; done

dist.mesh @mesh ["data" = 3]
func.func @bucket(%x: tensor<2x4xf32>, %y: tensor<3xf32>, %z: tensor<2xf32>) -> (tensor<2x4xf32>, tensor<3xf32>, tensor<2xf32>) {
  %0:3 = dist.all_reduce sum %x, %y, %z over <@mesh {data}> {dist.wire = "bf16"} : (tensor<2x4xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<3xf32>, tensor<2xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x4xf32>, tensor<3xf32>, tensor<2xf32>
}
func.func @scatter(%x: tensor<2x6x5xf32>)
    -> (tensor<2x2x5xf32> {dist.global = tensor<2x6x5xf32, #dist.sharding<@mesh, [{}, {data}, {}]>>}) {
  %0 = dist.reduce_scatter sum %x dim 1 over <@mesh {data}> {dist.wire = "bf16"} : (tensor<2x6x5xf32>) -> tensor<2x2x5xf32>
  return %0 : tensor<2x2x5xf32>
}
