// RUN: meshwright-opt %s --dist-decompose-collectives=algorithm=ring | FileCheck %s --check-prefix=RING
// RUN: meshwright-opt %s --dist-decompose-collectives=algorithm=parallel | FileCheck %s --check-prefix=PARALLEL
// RUN: meshwright-opt %s --dist-decompose-collectives=algorithm=halving-doubling | FileCheck %s --check-prefix=HALVING
// RUN: meshwright-opt %s --dist-decompose-collectives="algorithm=auto latency=1 bandwidth=1e12" | FileCheck %s --check-prefix=LATENCY
// RUN: meshwright-opt %s --dist-decompose-collectives="algorithm=auto latency=1e-12 bandwidth=1" | FileCheck %s --check-prefix=RING
// RUN: meshwright-opt %s --dist-decompose-collectives | FileCheck %s --check-prefix=NATIVE
// RUN: not meshwright-opt %s --dist-decompose-collectives=algorithm=tree 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: for a in parameter-server sequential ring parallel doubling halving-doubling; do \
// RUN:   meshwright-opt %s --dist-decompose-collectives=algorithm=$a -o %t.mlir && \
// RUN:   meshwright-interpret %s --compare %t.mlir --ranks 3 --function sum && \
// RUN:   meshwright-interpret %s --compare %t.mlir --ranks 3 --function uneven || exit 1; done

// BEGIN EXAMPLE --dist-decompose-collectives=algorithm=ring
dist.mesh @mesh ["data" = 3]
func.func @sum(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// END EXAMPLE

// RING-LABEL: func.func @sum
// RING-NEXT: %[[A:.*]] = dist.exchange reducing sum %arg0 pieces 3 length 1 to [1, 2, 0] send [0, 1, 2] from [2, 0, 1] receive [2, 0, 1] round 0
// RING-NEXT: %[[B:.*]] = dist.exchange reducing sum %[[A]] pieces 3 length 1 to [1, 2, 0] send [2, 0, 1] from [2, 0, 1] receive [1, 2, 0] round 1
// RING-NEXT: %[[C:.*]] = dist.exchange %[[B]] pieces 3 length 1 to [1, 2, 0] send [1, 2, 0] from [2, 0, 1] receive [0, 1, 2] round 2
// RING-NEXT: %[[D:.*]] = dist.exchange %[[C]] {{.*}} round 3
// RING-NEXT: return %[[D]]

// PARALLEL-LABEL: func.func @sum
// PARALLEL-NEXT: train.broadcast %arg0 along [0] : (tensor<2x3xf32>) -> tensor<3x2x3xf32>
// PARALLEL-COUNT-2: dist.exchange %{{.*}} round 0
// PARALLEL-NEXT: train.reduce sum

// Place 2 is folded onto place 0.
// HALVING-LABEL: func.func @sum
// HALVING-NEXT: dist.exchange reducing sum %arg0 pieces 2 length 2 to [-1, -1, 0] send [-1, -1, 0] from [2, -1, -1] receive [0, -1, -1] round 0
// HALVING-COUNT-3: dist.exchange

// LATENCY-LABEL: func.func @sum
// LATENCY-COUNT-2: dist.exchange %{{.*}} round 0
// NATIVE: dist.all_reduce

// UNKNOWN: --algorithm option: 'tree' is not supported; the choices are native, auto, parameter-server, sequential, ring, parallel, doubling, halving-doubling

// Three pieces of five elements are two, two and one; of two elements one, one and
// none. Both tensors go in one message.
// RING-LABEL: func.func @uneven
// RING-NEXT: dist.exchange reducing max %arg0, %arg1 pieces 3 length 1
// RING-COUNT-3: dist.exchange
// RING-NEXT: return
// PARALLEL-LABEL: func.func @uneven
// PARALLEL-COUNT-2: train.broadcast
// PARALLEL-COUNT-2: dist.exchange %{{.*}}, %{{.*}} pieces 3 length 1
// PARALLEL-COUNT-2: train.reduce max
// PARALLEL-NEXT: return
func.func @uneven(%x: tensor<5x1xf32>, %y: tensor<2xf32>) -> (tensor<5x1xf32>, tensor<2xf32>) {
  %0:2 = dist.all_reduce max %x, %y over <@mesh {data}> : (tensor<5x1xf32>, tensor<2xf32>) -> (tensor<5x1xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<5x1xf32>, tensor<2xf32>
}

// No device may pass on a sum of some terms where these are narrower.
// RING-LABEL: func.func @narrow
// RING-NEXT: dist.all_reduce sum %arg0 over <@mesh {data}> {dist.wire = "bf16"}
func.func @narrow(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> {dist.wire = "bf16"} : (tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
