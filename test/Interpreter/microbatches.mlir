// The first microbatch has the first sequences of each data rank: 0 and 2 of four.
// RUN: printf '\001\002\004\010\020' > %t.data
// RUN: meshwright-interpret %s --train --data %t.data --tokens u8 --steps 1 --lr 1 | FileCheck %s
// CHECK: {"step": 0, "loss": 5{{[,.]}}
module attributes {train.batch = 4 : i64, train.sequence = 1 : i64, train.microbatches = 2 : i64, train.vocabulary = 32 : i64} {
  dist.mesh @mesh ["data" = 2]
  func.func @step(%tokens: tensor<2x1x1xi32> {train.input = "tokens", dist.global = tensor<2x2x1xi32, #dist.sharding<@mesh, [ {}, {data}, {} ]>>})
      -> (tensor<f32> {train.output = "loss"}) {
    %all = arith.sitofp %tokens : tensor<2x1x1xi32> to tensor<2x1x1xf32>
    %first = train.slice %all rows 1 : (tensor<2x1x1xf32>) -> tensor<1x1x1xf32>
    %sum = train.reduce sum %first over [0, 1, 2] : (tensor<1x1x1xf32>) -> tensor<f32>
    %loss = dist.all_reduce sum %sum over <@mesh {data}> : (tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
