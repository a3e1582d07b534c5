// An adapter's rank stays whole under tensor parallelism: its other index is sharded as that of the weight it adds to, so that
// no layer's input or output is gathered for it.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=2 --dist-propagate | FileCheck %s

// CHECK-DAG: @up : {{.*}}#tensor_R>
// CHECK-DAG: @down : {{.*}}#R_tensor>
// CHECK-DAG: @up.lora_A : {{.*}}#R_R>{{.*}}dist.copies = "dimension 0 is an adapter's rank; dimension 1 is the residual stream's"
// CHECK-DAG: @up.lora_B : {{.*}}#tensor_R>
// CHECK-DAG: @down.lora_A : {{.*}}#R_tensor>
// CHECK-DAG: @down.lora_B : {{.*}}#R_R>

// CHECK-LABEL: func.func @step
// CHECK-NOT: dist.reshard {{.*}}tensor<4x6x32xf32, #R_R_tensor>) -> tensor<4x6x32xf32, #R_R_R>
// CHECK: return

train.variable @wte : tensor<20x16xf32> init <"normal", 1.0>
train.variable @up : tensor<32x16xf32> init <"normal", 1.0> {train.frozen}
train.variable @up.lora_A : tensor<4x16xf32> init <"normal", 1.0> {train.adapter}
train.variable @up.lora_B : tensor<32x4xf32> init <"constant", 0.0> {train.adapter}
train.variable @down : tensor<16x32xf32> init <"normal", 1.0> {train.frozen}
train.variable @down.lora_A : tensor<4x32xf32> init <"normal", 1.0> {train.adapter}
train.variable @down.lora_B : tensor<16x4xf32> init <"constant", 0.0> {train.adapter}
func.func private @layer(%x: tensor<4x6x16xf32>, %up: tensor<32x16xf32>, %ua: tensor<4x16xf32>, %ub: tensor<32x4xf32>,
    %down: tensor<16x32xf32>, %da: tensor<4x32xf32>, %db: tensor<16x4xf32>) -> tensor<4x6x16xf32> attributes {train.role = #train.role<forward>} {
  %0 = train.linear %x, %up : (tensor<4x6x16xf32>, tensor<32x16xf32>) -> tensor<4x6x32xf32>
  %1 = train.linear %x, %ua : (tensor<4x6x16xf32>, tensor<4x16xf32>) -> tensor<4x6x4xf32>
  %2 = train.linear %1, %ub : (tensor<4x6x4xf32>, tensor<32x4xf32>) -> tensor<4x6x32xf32>
  %3 = train.add %0, %2 : (tensor<4x6x32xf32>, tensor<4x6x32xf32>) -> tensor<4x6x32xf32>
  %4 = train.linear %3, %down : (tensor<4x6x32xf32>, tensor<16x32xf32>) -> tensor<4x6x16xf32>
  %5 = train.linear %3, %da : (tensor<4x6x32xf32>, tensor<4x32xf32>) -> tensor<4x6x4xf32>
  %6 = train.linear %5, %db : (tensor<4x6x4xf32>, tensor<16x4xf32>) -> tensor<4x6x16xf32>
  %7 = train.add %4, %6 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
  %8 = train.add %x, %7 : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
  return %8 : tensor<4x6x16xf32>
}
func.func @step(%tokens: tensor<4x6xi32> {train.input = "tokens"}) -> tensor<4x6x16xf32> {
  %t = train.get @wte : tensor<20x16xf32>
  %up = train.get @up : tensor<32x16xf32>
  %ua = train.get @up.lora_A : tensor<4x16xf32>
  %ub = train.get @up.lora_B : tensor<32x4xf32>
  %down = train.get @down : tensor<16x32xf32>
  %da = train.get @down.lora_A : tensor<4x32xf32>
  %db = train.get @down.lora_B : tensor<16x4xf32>
  %x = train.embedding %t, %tokens : (tensor<20x16xf32>, tensor<4x6xi32>) -> tensor<4x6x16xf32>
  %y = train.repeat @layer x 3 carry(%x) each() shared(%up, %ua, %ub, %down, %da, %db) {train.role = #train.role<forward>} : (tensor<4x6x16xf32>, tensor<32x16xf32>, tensor<4x16xf32>, tensor<32x4xf32>, tensor<16x32xf32>, tensor<4x32xf32>, tensor<16x4xf32>) -> tensor<4x6x16xf32>
  return %y : tensor<4x6x16xf32>
}
