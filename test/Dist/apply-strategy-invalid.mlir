// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=data=3 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=data=2,expert=2 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=rows=2 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not meshwright-opt %s --dist-apply-strategy=mesh=data=two 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=data=2 zero=4" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not meshwright-opt %s --dist-apply-strategy="mesh=data=2 sequence-parallel" 2>&1 | FileCheck %s --check-prefix=SEQUENCE

// RUN: sed 's/tensor<2x4x8xi32>/tensor<2x3x8xi32>/' %s | not meshwright-opt - --dist-apply-strategy=mesh=data=2 2>&1 | FileCheck %s --check-prefix=UNEVEN

// BATCH: batch 8 does not divide by 6 (3 devices along {data} times 2 microbatches); the next batch that does is 12
// UNEVEN: input "tokens" has 3 sequences in a microbatch, which do not divide by the 2 devices along {data}
// AXIS: mesh axis 'expert' = 2 finds no experts to divide; use data
// NAME: mesh axis 'rows' is unknown; the axes are pipe, replica, data, context, expert, tensor
// SIZE: mesh axis 'data' needs a number of devices, found 'two'; write it as data=2
// ZERO: --zero 4: levels are 0, 1, 2 and 3
// SEQUENCE: --sequence-parallel shards the sequence over the tensor axis, which the mesh does not have; add e.g. tensor=2
module attributes {train.batch = 8 : i64, train.microbatches = 2 : i64} {
  func.func @step(%tokens: tensor<2x4x8xi32> {train.input = "tokens"}) {
    return
  }
}
