// RUN: meshwright-opt %s --exec-fill-waits=min-bytes=64 | FileCheck %s

// BEGIN EXAMPLE --exec-fill-waits=min-bytes=64
dist.mesh @mesh ["data"=2, "expert"=2]
func.func @layer(%rows: tensor<2x4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %shared: tensor<8x8xf32>) -> (tensor<2x4x8xf32>, tensor<4x8xf32>) {
  %here = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %out = train.linear %here, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %back = dist.all_to_all %out split 1 concat 0 over <@mesh {expert}> {dist.slots} : (tensor<1x8x8xf32>) -> tensor<2x4x8xf32>
  %of_all = train.linear %x, %shared : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %back, %of_all : tensor<2x4x8xf32>, tensor<4x8xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @layer
// CHECK: dist.all_to_all %arg0
// CHECK-NEXT: %[[SHARED:.*]] = train.linear %arg1, %arg3
// CHECK-NEXT: train.linear
// CHECK-NEXT: dist.all_to_all
// CHECK-NEXT: return %{{.*}}, %[[SHARED]]

// What a product is made of comes with it. One that needs another collective stays, and so does all
// where the exchange is small, is not of rows, or has a product beside it.
// CHECK-LABEL: func.func @chain
func.func @chain(%rows: tensor<2x4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: dist.all_to_all
  // CHECK-NEXT: train.silu
  // CHECK-NEXT: train.linear %{{.*}}, %arg2 : (tensor<4x8xf32>
  // CHECK-NEXT: train.linear %{{.*}}, %arg2 : (tensor<1x8x8xf32>
  // CHECK-NEXT: dist.all_reduce
  // CHECK-NEXT: train.linear
  %here = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %out = train.linear %here, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %a = train.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = train.linear %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %all = dist.all_reduce sum %x over <@mesh {expert}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = train.linear %all, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %out, %b, %c : tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Rows in two parts: both are sent before the first is computed with, and the second is computed with while the first one's results are
// sent. What the second exchange reads comes with it, what is sent of a product follows it, and small ones that the second product needs go first, which would wait for the rows otherwise.
// CHECK-LABEL: func.func @parts
func.func @parts(%first: tensor<2x4x8xf32>, %second: tensor<2x4x8xf32>, %few: tensor<2x4x1xf32>, %w: tensor<8x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  // CHECK: %[[FEW:.*]] = dist.all_to_all %arg2
  // CHECK-NEXT: %[[A:.*]] = dist.all_to_all %arg0
  // CHECK-NEXT: %[[ROWS:.*]] = train.silu %arg1
  // CHECK-NEXT: %[[B:.*]] = dist.all_to_all %[[ROWS]]
  // CHECK-NEXT: %[[C:.*]] = train.linear %[[A]]
  // CHECK-NEXT: %[[BACK:.*]] = dist.all_to_all %[[C]]
  // CHECK-NEXT: train.reshape %[[FEW]]
  // CHECK-NEXT: %[[FACTOR:.*]] = train.broadcast
  // CHECK-NEXT: %[[WEIGHED:.*]] = train.mul %[[B]], %[[FACTOR]]
  // CHECK-NEXT: %[[D:.*]] = train.linear %[[WEIGHED]]
  // CHECK-NEXT: dist.all_to_all %[[D]]
  // CHECK-NEXT: train.silu %[[BACK]]
  %a = dist.all_to_all %first split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %c = train.linear %a, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %back = dist.all_to_all %c split 1 concat 0 over <@mesh {expert}> {dist.slots} : (tensor<1x8x8xf32>) -> tensor<2x4x8xf32>
  %sum = train.silu %back : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %weights = dist.all_to_all %few split 0 concat 1 over <@mesh {expert}> : (tensor<2x4x1xf32>) -> tensor<1x8x1xf32>
  %rows = train.silu %second : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %b = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %flat = train.reshape %weights : (tensor<1x8x1xf32>) -> tensor<1x8xf32>
  %factor = train.broadcast %flat along [2] : (tensor<1x8xf32>) -> tensor<1x8x8xf32>
  %weighed = train.mul %b, %factor : (tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %d = train.linear %weighed, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %other = dist.all_to_all %d split 1 concat 0 over <@mesh {expert}> {dist.slots} : (tensor<1x8x8xf32>) -> tensor<2x4x8xf32>
  return %sum, %other : tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

// Small exchanges go before large ones.
// CHECK-LABEL: func.func @small
func.func @small(%first: tensor<2x4x8xf32>, %few: tensor<2x4x1xf32>, %w: tensor<8x8xf32>) -> (tensor<1x8x8xf32>, tensor<1x8x1xf32>) {
  // CHECK: train.silu %arg1
  // CHECK-NEXT: dist.all_to_all
  // CHECK-NEXT: dist.all_to_all %arg0
  // CHECK-NEXT: train.linear
  %a = dist.all_to_all %first split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %x = train.silu %few : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %weights = dist.all_to_all %x split 0 concat 1 over <@mesh {expert}> : (tensor<2x4x1xf32>) -> tensor<1x8x1xf32>
  %c = train.linear %a, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  return %c, %weights : tensor<1x8x8xf32>, tensor<1x8x1xf32>
}

// So do larger ones that carry a number a row, since the rows themselves are many times as much.
// CHECK-LABEL: func.func @numbers
func.func @numbers(%first: tensor<2x64x32xf32>, %second: tensor<2x64x32xf32>, %few: tensor<2x64x1xf32>, %w: tensor<32x32xf32>) -> (tensor<2x64x32xf32>, tensor<2x64x32xf32>) {
  // CHECK: %[[FEW:.*]] = dist.all_to_all %arg2
  // CHECK-NEXT: %[[A:.*]] = dist.all_to_all %arg0
  // CHECK-NEXT: %[[B:.*]] = dist.all_to_all %arg1
  // CHECK-NEXT: %[[C:.*]] = train.linear %[[A]]
  // CHECK-NEXT: %[[BACK:.*]] = dist.all_to_all %[[C]]
  // CHECK-NEXT: train.reshape %[[FEW]]
  // CHECK-NEXT: train.broadcast
  // CHECK-NEXT: %[[WEIGHED:.*]] = train.mul %[[B]]
  // CHECK-NEXT: %[[D:.*]] = train.linear %[[WEIGHED]]
  // CHECK-NEXT: dist.all_to_all %[[D]]
  // CHECK-NEXT: train.silu %[[BACK]]
  %a = dist.all_to_all %first split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x64x32xf32>) -> tensor<1x128x32xf32>
  %c = train.linear %a, %w : (tensor<1x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x32xf32>
  %back = dist.all_to_all %c split 1 concat 0 over <@mesh {expert}> {dist.slots} : (tensor<1x128x32xf32>) -> tensor<2x64x32xf32>
  %sum = train.silu %back : (tensor<2x64x32xf32>) -> tensor<2x64x32xf32>
  %weights = dist.all_to_all %few split 0 concat 1 over <@mesh {expert}> : (tensor<2x64x1xf32>) -> tensor<1x128x1xf32>
  %b = dist.all_to_all %second split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x64x32xf32>) -> tensor<1x128x32xf32>
  %flat = train.reshape %weights : (tensor<1x128x1xf32>) -> tensor<1x128xf32>
  %factor = train.broadcast %flat along [2] : (tensor<1x128xf32>) -> tensor<1x128x32xf32>
  %weighed = train.mul %b, %factor : (tensor<1x128x32xf32>, tensor<1x128x32xf32>) -> tensor<1x128x32xf32>
  %d = train.linear %weighed, %w : (tensor<1x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x32xf32>
  %other = dist.all_to_all %d split 1 concat 0 over <@mesh {expert}> {dist.slots} : (tensor<1x128x32xf32>) -> tensor<2x64x32xf32>
  return %sum, %other : tensor<2x64x32xf32>, tensor<2x64x32xf32>
}

// What another group brings before the first op that waits is there for a product that comes to it.
// CHECK-LABEL: func.func @between
func.func @between(%rows: tensor<2x4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<4x8xf32>) -> (tensor<1x8x8xf32>, tensor<4x8xf32>) {
  // CHECK: dist.all_to_all
  // CHECK-NEXT: %[[V:.*]] = dist.all_gather
  // CHECK-NEXT: train.linear %arg1, %[[V]]
  // CHECK-NEXT: train.linear
  %here = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %all = dist.all_gather %v dim 0 over <@mesh {data}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %out = train.linear %here, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %of_all = train.linear %x, %all : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %out, %of_all : tensor<1x8x8xf32>, tensor<4x8xf32>
}

// Products in front of an exchange that does not need them run beside it too, as those of shared experts in a backward. The exchange passes
// neither what it needs nor a large collective.
// CHECK-LABEL: func.func @front
func.func @front(%rows: tensor<2x4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: train.silu %arg1
  // CHECK-NEXT: %[[ROWS:.*]] = train.silu %arg0
  // CHECK-NEXT: %[[HERE:.*]] = dist.all_to_all %[[ROWS]]
  // CHECK-NEXT: train.linear %{{.*}}, %arg2 : (tensor<4x8xf32>
  // CHECK-NEXT: dist.all_gather
  // CHECK-NEXT: train.linear %{{.*}}, %arg2 : (tensor<2x4x8xf32>
  // CHECK-NEXT: %[[AGAIN:.*]] = dist.all_to_all
  // CHECK-NEXT: train.linear
  // CHECK-NEXT: train.linear %[[HERE]]
  // CHECK-NEXT: train.linear %[[AGAIN]]
  %a = train.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = train.linear %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %sent = train.silu %rows : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %here = dist.all_to_all %sent split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %v = dist.all_gather %w dim 0 over <@mesh {data}> : (tensor<8x8xf32>) -> tensor<16x8xf32>
  %more = train.linear %rows, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %c = train.linear %x, %v : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %again = dist.all_to_all %more split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %out = train.linear %here, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %other = train.linear %again, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %sum = train.slice %c dim 1 rows 8 : (tensor<4x16xf32>) -> tensor<4x8xf32>
  return %out, %other, %b, %sum : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Large collectives of the group that are no exchanges stay: rows would wait for them.
// CHECK-LABEL: func.func @large
func.func @large(%rows: tensor<2x4x8xf32>, %gradient: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<1x8x8xf32>, tensor<4x8xf32>) {
  // CHECK: dist.all_to_all
  // CHECK-NEXT: dist.reduce_scatter
  // CHECK-NEXT: train.linear
  %a = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %sum = dist.reduce_scatter sum %gradient dim 0 over <@mesh {expert}> : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = train.linear %a, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  return %c, %sum : tensor<1x8x8xf32>, tensor<4x8xf32>
}

// Products of a ring stay between its permutes, whether they need what comes or not.
// CHECK-LABEL: func.func @ring
func.func @ring(%rows: tensor<2x4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<1x8x8xf32>, tensor<4x8xf32>) {
  // CHECK: dist.all_to_all
  // CHECK-NEXT: train.silu
  // CHECK-NEXT: dist.permute
  // CHECK-NEXT: train.linear
  %here = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %a = train.silu %here : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %next = dist.permute %x from [1, 0] over <@mesh {expert}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %part = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %sum = train.add %next, %part : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a, %sum : tensor<1x8x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @stays
func.func @stays(%rows: tensor<2x4x8xf32>, %few: tensor<2x1xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x1xf32>) -> (tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<1x2xf32>, tensor<1x8x8xf32>, tensor<4x8xf32>) {
  // CHECK: dist.all_to_all %arg0
  // CHECK-NEXT: train.linear %arg2
  // CHECK-NEXT: train.silu
  // CHECK-NEXT: dist.all_to_all %arg1
  // CHECK-NEXT: train.silu
  // CHECK-NEXT: dist.all_to_all %arg0
  // CHECK-NEXT: train.silu
  // CHECK-NEXT: train.linear
  %here = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %beside = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a = train.silu %here : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %small = dist.all_to_all %few split 0 concat 1 over <@mesh {expert}> {dist.slots} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %b = train.silu %small : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %other = dist.all_to_all %rows split 0 concat 1 over <@mesh {expert}> : (tensor<2x4x8xf32>) -> tensor<1x8x8xf32>
  %c = train.silu %other : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %d = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %a, %beside, %b, %c, %d : tensor<1x8x8xf32>, tensor<4x8xf32>, tensor<1x2xf32>, tensor<1x8x8xf32>, tensor<4x8xf32>
}
