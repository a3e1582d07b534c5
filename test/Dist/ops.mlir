// RUN: meshwright-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: dist.mesh @mesh ["data" = 2, "tensor" = 4]
dist.mesh @mesh ["data" = 2, "tensor" = 4]
// CHECK: tensor<8x16xf32, #data-tensor_R>
func.func @global(%x: tensor<8x16xf32, #dist.sharding<@mesh, [{data, tensor}, {}]>>,
                  %y: tensor<8x16xf32, #dist.sharding<@mesh, [{data}, {}], partial = max {tensor}>>) {
  // CHECK: dist.reshard {{.*}} -> tensor<8x16xf32, #R_R_partial_data>
  %0 = dist.reshard %x : (tensor<8x16xf32, #dist.sharding<@mesh, [{data, tensor}, {}]>>) -> tensor<8x16xf32, #dist.sharding<@mesh, [{}, {}], partial = {data}>>
  return
}
// CHECK: dist.seed = #dist.sharding<@mesh, [{data, ?}, {?}]>
func.func @local(%x: tensor<8x16xf32> {dist.seed = #dist.sharding<@mesh, [{data, ?}, {?}]>}) {
  // CHECK: dist.all_reduce sum %{{.*}} over <@mesh {data, tensor}>
  %0 = dist.all_reduce sum %x over <@mesh {data, tensor}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 over <@mesh {tensor}>
  %1 = dist.all_gather %x dim 1 over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<8x64xf32>
  // CHECK: dist.reduce_scatter max %{{.*}} dim 0 over <@mesh {data}>
  %2 = dist.reduce_scatter max %x dim 0 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<4x16xf32>
  // CHECK: dist.all_to_all %{{.*}} split 0 concat 1 over <@mesh {tensor}>
  %3 = dist.all_to_all %x split 0 concat 1 over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<2x64xf32>
  // CHECK: dist.permute %{{.*}} from [1, 0] over <@mesh {data}>
  %4 = dist.permute %x from [1, 0] over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.take %{{.*}} at 3 : (tensor<8x16xf32>) -> tensor<16xf32>
  %taken = dist.take %x at 3 : (tensor<8x16xf32>) -> tensor<16xf32>
  // CHECK: dist.slice %{{.*}} dim 1 over <@mesh {tensor, data}>
  %5 = dist.slice %x dim 1 over <@mesh {tensor, data}> : (tensor<8x16xf32>) -> tensor<8x2xf32>
  // CHECK: dist.broadcast %{{.*}} root 3 over <@mesh {tensor}>
  %7 = dist.broadcast %x root 3 over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.reduce sum %{{.*}} root 1 over <@mesh {data}>
  %8 = dist.reduce sum %x root 1 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.gather %{{.*}} dim 0 root 0 over <@mesh {data}>
  %9 = dist.gather %x dim 0 root 0 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<16x16xf32>
  // CHECK: dist.scatter %{{.*}} dim 1 root 2 over <@mesh {tensor}>
  %10 = dist.scatter %x dim 1 root 2 over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<8x4xf32>
  // CHECK: dist.send %{{.*}} to 1 channel 7 over <@mesh {data}> : tensor<8x16xf32>
  dist.send %x to 1 channel 7 over <@mesh {data}> : tensor<8x16xf32>
  // CHECK: dist.recv from 0 channel 7 over <@mesh {data}> : tensor<8x16xf32>
  %11 = dist.recv from 0 channel 7 over <@mesh {data}> : tensor<8x16xf32>
  // CHECK: dist.all_reduce sum %{{.*}}, %{{.*}} over <@mesh {data}> : (tensor<8x16xf32>, tensor<8x4xf32>) -> (tensor<8x16xf32>, tensor<8x4xf32>)
  %12, %13 = dist.all_reduce sum %x, %10 over <@mesh {data}> : (tensor<8x16xf32>, tensor<8x4xf32>) -> (tensor<8x16xf32>, tensor<8x4xf32>)
  // CHECK: dist.all_gather %{{.*}}, %{{.*}} dim [1, 0] over <@mesh {data}>
  %14, %15 = dist.all_gather %x, %10 dim [1, 0] over <@mesh {data}> : (tensor<8x16xf32>, tensor<8x4xf32>) -> (tensor<8x32xf32>, tensor<16x4xf32>)
  // CHECK: dist.constrain %{{.*}} to <@mesh, [{data}, {?}], replicated = {tensor}> boundary
  %16 = dist.constrain %x to <@mesh, [{data}, {?}], replicated = {tensor}> boundary : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: dist.offset 2 over <@mesh {tensor}> : tensor<i32>
  %6 = dist.offset 2 over <@mesh {tensor}> : tensor<i32>
  return
}

// -----

// expected-error @+1 {{names axis 'data' twice}}
dist.mesh @mesh ["data" = 2, "data" = 4]

// -----

// expected-error @+1 {{has more than 2^20 devices with axis 'tensor' of 4096}}
dist.mesh @mesh ["data" = 512, "tensor" = 4096]

// -----

// expected-error @+1 {{has more than 2^20 devices with axis 'pipe' of 2147483648}}
dist.mesh @mesh ["pipe" = 2147483648]

// -----

// expected-error @+1 {{attribute 'dist.coordinates' is {pipe = "0"}; expected a dictionary of a coordinate, or a list of them, by mesh axis}}
module @program attributes {dist.coordinates = {pipe = "0"}} {}

// -----

// expected-error @+1 {{attribute 'dist.logical' belongs on a train.variable}}
func.func private @f(tensor<4xf32>) attributes {dist.logical = tensor<4xf32>}

// -----

func.func @attention(%q: tensor<1x4x2x4xf32>) {
  // expected-error @+1 {{attribute 'dist.pairs' is array<i32: 10>; expected array<i64: ..>}}
  %y, %lse = train.attention %q, %q, %q scale 0.5 causal {dist.pairs = array<i32: 10>} : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention(%q: tensor<1x4x2x4xf32>) {
  // expected-error @+1 {{has 'dist.first_queries' of a group of devices without 'dist.divided_over', which names the group}}
  %y, %lse = train.attention %q, %q, %q scale 0.5 causal {dist.first_queries = array<i64: 0, 2>} : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

// expected-error @+1 {{axis 'data' needs at least one device, found 0}}
dist.mesh @mesh ["data" = 0]

// -----

// expected-error @+1 {{axis "a" appears twice in a sharding}}
func.func private @f(tensor<8x16xf32, #dist.sharding<@mesh, [{a}, {a}]>>)

// -----

// expected-error @+1 {{a sharding of 1 dimensions cannot be that of a tensor with 2}}
func.func private @f(tensor<8x16xf32, #dist.sharding<@mesh, [{a}]>>)

// -----

// expected-error @+1 {{'?' is for seeds; the sharding of a type leaves nothing open}}
func.func private @f(tensor<8x16xf32, #dist.sharding<@mesh, [{a, ?}, {}]>>)

// -----

dist.mesh @mesh ["data" = 3]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{cannot split dimension 0 of 'tensor<8x16xf32>' into 3 equal parts}}
  %0 = dist.reduce_scatter sum %x dim 0 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{over 2 devices makes 'tensor<8x32xf32>' of 'tensor<8x16xf32>', not 'tensor<16x16xf32>'}}
  %0 = dist.all_gather %x dim 1 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<16x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{names axis "tensor", which @mesh does not have}}
  %0 = dist.all_reduce sum %x over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{names @mesh, which is not a dist.mesh}}
  %0 = dist.all_reduce sum %x over <@mesh {tensor}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'from' must be a permutation of the 2 ranks of the group}}
  %0 = dist.permute %x from [1, 1] over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{needs two different dimensions, found 0 twice}}
  %0 = dist.all_to_all %x split 0 concat 0 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{needs a sharding in 'tensor<8x16xf32>'}}
  %0 = dist.reshard %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 4]
func.func @f() {
  // expected-error @+1 {{of parts of 1000000000 elements on 4 devices is not an index of 32 bits}}
  %0 = dist.offset 1000000000 over <@mesh {data}> : tensor<i32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 0 sends to rank 1, whose peer is -1}}
  %0 = dist.exchange %x pieces 2 length 1 to [1, -1] send [0, -1] from [-1, -1] receive [-1, -1] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 1 receives from rank 0, whose peer is -1}}
  %0 = dist.exchange %x pieces 2 length 1 to [-1, -1] send [-1, -1] from [-1, 0] receive [-1, 0] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 0 cannot use 2 of 2 pieces from 1 on}}
  %0 = dist.exchange %x pieces 2 length 2 to [1, -1] send [1, -1] from [-1, 0] receive [-1, 0] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 0 sends 2 elements of 'tensor<8xf32>', of which rank 1 takes 3}}
  %0 = dist.exchange %x pieces 3 length 1 to [1, -1] send [2, -1] from [-1, 0] receive [-1, 0] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 0 replaces pieces that it sends}}
  %0 = dist.exchange %x pieces 2 length 1 to [1, 0] send [0, 0] from [1, 0] receive [0, 0] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>, %y: tensor<8xbf16>) {
  // expected-error @+1 {{moves tensors of one element type in a call}}
  %0:2 = dist.exchange %x, %y pieces 2 length 1 to [1, -1] send [0, -1] from [-1, 0] receive [-1, 0] round 0 over <@mesh {data}> : (tensor<8xf32>, tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xbf16>)
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{rank 0 sends to 0, which is not another rank of the group}}
  %0 = dist.exchange %x pieces 1 length 1 to [0, -1] send [0, -1] from [0, -1] receive [0, -1] round 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{has 'root' 2, but the group's ranks are 0 to 1}}
  %0 = dist.broadcast %x root 2 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{has 'to' -1, but the group's ranks are 0 to 1}}
  dist.send %x to -1 channel 0 over <@mesh {data}> : tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{over 2 devices makes 'tensor<8x8xf32>' of 'tensor<8x16xf32>', not 'tensor<4x16xf32>'}}
  %0 = dist.scatter %x dim 1 root 0 over <@mesh {data}> : (tensor<8x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>, %y: tensor<8xi32>) {
  // expected-error @+1 {{moves tensors of one element type in a call, found 'tensor<8xf32>' and 'tensor<8xi32>'}}
  %0, %1 = dist.all_reduce sum %x, %y over <@mesh {data}> : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  return
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{names 1 dimensions for 2 tensors}}
  %0, %1 = dist.all_gather %x, %y dim 0 over <@mesh {data}> : (tensor<8xf32>, tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

// expected-error @+1 {{'replicated' is for seeds; a type's tensor has copies over every axis that it does not name}}
func.func @type(%x: tensor<8xf32, #dist.sharding<@mesh, [{data}], replicated = {tensor}>>) {
  return
}

// -----

// expected-error @+1 {{axis "data" appears twice in a sharding}}
func.func @both(%x: tensor<8xf32> {dist.seed = #dist.sharding<@mesh, [{data, ?}], replicated = {data}>}) {
  return
}

// -----

// Only the device at coordinate 0 of data has it.
// CHECK: func.func @root(%{{.*}}: tensor<8xf32, #tensor_root_data>)
func.func @root(%x: tensor<8xf32, #dist.sharding<@mesh, [{tensor}], root = {data}>>) {
  return
}

// -----

// expected-error @+1 {{axis "data" appears twice in a sharding}}
func.func @rootAndCut(%x: tensor<8xf32, #dist.sharding<@mesh, [{data}], root = {data}>>) {
  return
}

// -----

dist.mesh @mesh ["tensor" = 4]
func.func @shift(%x: tensor<8xf32>) {
  // expected-error @+1 {{shifts by 4 of 4 ranks}}
  %0 = dist.slice %x dim 0 shift 4 over <@mesh {tensor}> : (tensor<8xf32>) -> tensor<2xf32>
  return
}

// -----

dist.mesh @mesh ["tensor" = 4]
func.func @concat(%x: tensor<2xf32>) {
  // expected-error @+1 {{puts 2 parts together; the group has 4 devices}}
  %0 = dist.concat %x, %x dim 0 over <@mesh {tensor}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh ["tensor" = 2]
func.func @concat_parts(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{has parts 'tensor<2xf32>' and 'tensor<3xf32>'}}
  %0 = dist.concat %x, %y dim 0 over <@mesh {tensor}> : (tensor<2xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// A sharding is printed once, under a name that says it; a number tells those apart whose axes' names do not.
// CHECK-DAG: #data_R_tensor = #dist.sharding<@mesh, [{data}, {}, {tensor}]>
// CHECK-DAG: #R_R_data-tensor = #dist.sharding<@mesh, [{}, {}, {data, tensor}]>
// CHECK-DAG: #R_max_tensor = #dist.sharding<@mesh, [{}], partial = max {tensor}>
// CHECK-DAG: #scalar_root_data = #dist.sharding<@mesh, [], root = {data}>
// CHECK-DAG: #tensor_0_R = #dist.sharding<@mesh, [{tensor.0}, {}]>
// CHECK-DAG: #odd_name = #dist.sharding<@mesh, [{"odd name"}]>
// CHECK-DAG: #odd_name1 = #dist.sharding<@mesh, [{odd_name}]>
// CHECK: @names(tensor<2x2x2xf32, #data_R_tensor>, tensor<2x2x2xf32, #R_R_data-tensor>, tensor<2xf32, #R_max_tensor>,
// CHECK-SAME: tensor<f32, #scalar_root_data>, tensor<2x2xf32, #tensor_0_R>, tensor<2xf32, #odd_name>, tensor<2xf32, #odd_name1>)
func.func private @names(tensor<2x2x2xf32, #dist.sharding<@mesh, [{data}, {}, {tensor}]>>,
    tensor<2x2x2xf32, #dist.sharding<@mesh, [{}, {}, {data, tensor}]>>, tensor<2xf32, #dist.sharding<@mesh, [{}], partial = max {tensor}>>,
    tensor<f32, #dist.sharding<@mesh, [], root = {data}>>, tensor<2x2xf32, #dist.sharding<@mesh, [{tensor.0}, {}]>>,
    tensor<2xf32, #dist.sharding<@mesh, [{"odd name"}]>>, tensor<2xf32, #dist.sharding<@mesh, [{odd_name}]>>)
