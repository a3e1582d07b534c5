// RUN: meshwright-opt %s --exec-overlap-collectives=min-bytes=32 --exec-assign-offsets -split-input-file -o %t && FileCheck %s < %t
// RUN: meshwright-opt %t --exec-number-collectives --exec-verify -split-input-file -o /dev/null

// Parameters that ranks share out: the next iteration's are gathered while this one
// computes, into a double buffer; the last iteration starts nothing. The plan has
// both places beside w and y: 2 x 64 bytes.
// CHECK: module attributes {exec.arena_bytes = 512 : i64, exec.live_bytes = 512 : i64
dist.mesh @mesh ["data" = 2]
train.variable @w : tensor<4x8xf32> init <"normal", 0.02>
// CHECK-LABEL: exec.program @prefetch
exec.program @prefetch {
  // CHECK-DAG: %[[W:.*]] = exec.buffer "w"
  %w = exec.buffer "w" parameter variable @w : memref<4x8xf32>
  // CHECK-DAG: %[[TURNS:.*]] = exec.buffer "all.turns.0" temporary offset {{.*}} : memref<2x16xf32>
  %all = exec.buffer "all" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<4x16xf32>
  // CHECK: %[[FIRST:.*]] = exec.view %[[TURNS]] : memref<2x16xf32> -> memref<16xf32>
  // CHECK: %[[W0:.*]] = exec.view %[[W]] : memref<4x8xf32> -> memref<8xf32>
  // CHECK: exec.all_gather %[[W0]] to %[[FIRST]] {{.*}} {exec.async_token = 0 : i64}
  // CHECK: exec.loop %[[I:.*]] = 4 {
  exec.loop %i = 4 {
    %wi = exec.slot %w[%i] : memref<4x8xf32> -> memref<8xf32>
    // CHECK: exec.wait 0
    // CHECK: exec.when %[[I]] from 0 to 3 {
    // CHECK: %[[NEXT:.*]] = exec.shift %[[I]] by 1
    // CHECK: %[[OTHER:.*]] = exec.shift %[[I]] by 1 modulo 2
    // CHECK: %[[TO:.*]] = exec.slot %[[TURNS]][%[[OTHER]]]
    // CHECK: %[[FROM:.*]] = exec.slot %[[W]][%[[NEXT]]]
    // CHECK: exec.all_gather %[[FROM]] to %[[TO]] {{.*}} {exec.async_token = 0 : i64}
    // CHECK: }
    exec.all_gather %wi to %all over ["data"] : memref<8xf32> to memref<16xf32>
    // CHECK: %[[MINE:.*]] = exec.shift %[[I]] by 0 modulo 2
    // CHECK: %[[HERE:.*]] = exec.slot %[[TURNS]][%[[MINE]]]
    // CHECK: exec.copy %[[HERE]] to
    %yi = exec.slot %y[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
  }
  // CHECK: }
  // CHECK-NOT: exec.all_gather
}

// -----

// Gradients of a layer, downwards: what is added to the sum is added an iteration later,
// and after the loop for the last one. Two places for g, 2 x 64 bytes, and for its part.
// CHECK: module attributes {exec.arena_bytes = 576 : i64, exec.live_bytes = 576 : i64
// CHECK-LABEL: exec.program @defer
dist.mesh @mesh ["data" = 2]
exec.program @defer {
  %x = exec.buffer "x" input input "x" : memref<4x16xf32>
  // CHECK-DAG: %[[G:.*]] = exec.buffer "g.turns.0" gradient offset {{.*}} : memref<2x16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  // CHECK-DAG: %[[MINE:.*]] = exec.buffer "mine.turns.0" gradient offset {{.*}} : memref<2x8xf32>
  %mine = exec.buffer "mine" gradient : memref<8xf32>
  %y = exec.buffer "y" output output "y" : memref<4x8xf32>
  // CHECK: exec.loop %[[I:.*]] = 4 reverse {
  exec.loop %i = 4 reverse {
    %xi = exec.slot %x[%i] : memref<4x16xf32> -> memref<16xf32>
    // CHECK: exec.copy
    exec.copy %xi to %g : memref<16xf32> to memref<16xf32>
    // CHECK: exec.wait 0
    // CHECK-NEXT: exec.reduce_scatter sum {{.*}} {exec.async_token = 0 : i64}
    exec.reduce_scatter sum %g to %mine over ["data"] : memref<16xf32> to memref<8xf32>
    // CHECK-NEXT: exec.when %[[I]] from 0 to 3 {
    // CHECK: exec.shift %[[I]] by 1
    // CHECK: exec.copy
    // CHECK: }
    %yi = exec.slot %y[%i] : memref<4x8xf32> -> memref<8xf32>
    exec.copy %mine to %yi : memref<8xf32> to memref<8xf32>
  }
  // CHECK: }
  // CHECK: exec.wait 0
  // CHECK-NEXT: exec.copy
}

// -----

// What the loop writes cannot be gathered before, what the next iteration needs not be
// reduced after: a sum that layers hand on.
// CHECK-LABEL: exec.program @needed
// CHECK-NOT: exec.async_token
// CHECK-NOT: exec.when
dist.mesh @mesh ["data" = 2]
exec.program @needed {
  %x = exec.buffer "x" input input "x" : memref<8xf32>
  %w = exec.buffer "w" temporary : memref<4x8xf32>
  %all = exec.buffer "all" temporary : memref<16xf32>
  %part = exec.buffer "part" temporary : memref<8xf32>
  %h = exec.buffer "h" temporary : memref<8xf32>
  %y = exec.buffer "y" output output "y" : memref<4x16xf32>
  exec.copy %x to %h : memref<8xf32> to memref<8xf32>
  exec.loop %i = 4 {
    %wi = exec.slot %w[%i] : memref<4x8xf32> -> memref<8xf32>
    exec.copy %h to %wi : memref<8xf32> to memref<8xf32>
    exec.all_gather %wi to %all over ["data"] : memref<8xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
    exec.copy %h to %part : memref<8xf32> to memref<8xf32>
    exec.all_reduce sum %part to %h over ["data"] : memref<8xf32> to memref<8xf32>
    exec.copy %h to %part : memref<8xf32> to memref<8xf32>
  }
}

// -----

// Ranks along "pipe" run other programs: what goes there keeps its place.
module attributes {dist.coordinates = {pipe = [0]}} {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @w : tensor<4x8xf32> init <"normal", 0.02>
  // CHECK-LABEL: exec.program @abroad
  // CHECK-NOT: exec.when
  exec.program @abroad {
    %w = exec.buffer "w" parameter variable @w : memref<4x8xf32>
    %all = exec.buffer "all" temporary : memref<16xf32>
    %y = exec.buffer "y" output output "y" : memref<4x16xf32>
    exec.loop %i = 4 {
      %wi = exec.slot %w[%i] : memref<4x8xf32> -> memref<8xf32>
      exec.all_gather %wi to %all over ["pipe"] : memref<8xf32> to memref<16xf32>
      %yi = exec.slot %y[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// What layers have stacked in the microbatches is reduced slot by slot when the last
// microbatch has left it; the rest of the bucket stays.
// CHECK-LABEL: exec.program @buckets
dist.mesh @mesh ["data" = 2]
exec.program @buckets {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %z = exec.buffer "z" input input "z" : memref<3x16xf32>
  // CHECK-DAG: %[[SUM:.*]] = exec.buffer "sum"
  %sum = exec.buffer "sum" gradient : memref<3x16xf32>
  // CHECK-DAG: %[[ONE:.*]] = exec.buffer "one"
  %one = exec.buffer "one" gradient : memref<3x16xf32>
  %y = exec.buffer "y" output output "y" : memref<3x16xf32>
  // CHECK: exec.loop %[[M:.*]] = 2 {
  exec.loop %m = 2 {
    %xm = exec.slot %x[%m] : memref<2x16xf32> -> memref<16xf32>
    // CHECK: exec.loop %[[I:.*]] = 3 reverse {
    exec.loop %i = 3 reverse {
      %s = exec.slot %sum[%i] : memref<3x16xf32> -> memref<16xf32>
      // CHECK: %[[SLOT:.*]] = exec.slot %[[SUM]][%[[I]]]
      // CHECK: exec.copy
      exec.copy %xm to %s : memref<16xf32> to memref<16xf32>
      // CHECK-NEXT: exec.when %[[M]] from 1 to 2 {
      // CHECK-NEXT: exec.all_reduce sum %[[SLOT]] to %[[SLOT]] over ["data"] {exec.async_token = 0 : i64}
      // CHECK-NEXT: }
    }
    exec.copy %z to %one : memref<3x16xf32> to memref<3x16xf32>
  }
  // CHECK: exec.all_reduce sum %[[ONE]] to %[[ONE]] over
  // CHECK: exec.wait 0
  // CHECK-NEXT: exec.copy %[[SUM]]
  exec.all_reduce sum %sum, %one to %sum, %one over ["data"] : memref<3x16xf32>, memref<3x16xf32> to memref<3x16xf32>, memref<3x16xf32>
  exec.copy %sum to %y : memref<3x16xf32> to memref<3x16xf32>
  exec.copy %one to %y : memref<3x16xf32> to memref<3x16xf32>
}

// -----

// Of two iterations the second reads what the first one's sum becomes.
// CHECK-LABEL: exec.program @last_pair
// CHECK-NOT: exec.async_token
// CHECK-NOT: exec.when
dist.mesh @mesh ["data" = 2]
train.variable @w : tensor<2x8xf32> init <"normal", 0.02>
exec.program @last_pair {
  %w = exec.buffer "w" parameter variable @w : memref<2x8xf32>
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  %mine = exec.buffer "mine" gradient : memref<8xf32>
  %z = exec.buffer "z" output output "z" : memref<8xf32>
  %first = exec.view %w : memref<2x8xf32> -> memref<8xf32>
  exec.loop %i = 2 {
    exec.copy %first to %z : memref<8xf32> to memref<8xf32>
    %xi = exec.slot %x[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %xi to %g : memref<16xf32> to memref<16xf32>
    exec.reduce_scatter sum %g to %mine over ["data"] : memref<16xf32> to memref<8xf32>
    %wi = exec.slot %w[%i] : memref<2x8xf32> -> memref<8xf32>
    exec.copy %mine to %wi : memref<8xf32> to memref<8xf32>
  }
}

// -----

// What is read after it is sent stays one place: the collective ends in its iteration.
// CHECK-LABEL: exec.program @read_behind
// CHECK-NOT: turns
// CHECK: exec.wait 0
dist.mesh @mesh ["data" = 2]
exec.program @read_behind {
  %x = exec.buffer "x" input input "x" : memref<4x16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  %mine = exec.buffer "mine" gradient : memref<8xf32>
  %y = exec.buffer "y" output output "y" : memref<4x8xf32>
  %z = exec.buffer "z" output output "z" : memref<4x16xf32>
  exec.loop %i = 4 {
    %xi = exec.slot %x[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %xi to %g : memref<16xf32> to memref<16xf32>
    exec.reduce_scatter sum %g to %mine over ["data"] : memref<16xf32> to memref<8xf32>
    %zi = exec.slot %z[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %g to %zi : memref<16xf32> to memref<16xf32>
    %yi = exec.slot %y[%i] : memref<4x8xf32> -> memref<8xf32>
    exec.copy %mine to %yi : memref<8xf32> to memref<8xf32>
  }
}

// -----

// Downwards the last microbatch is number 0.
// CHECK-LABEL: exec.program @downwards
dist.mesh @mesh ["data" = 2]
exec.program @downwards {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %sum = exec.buffer "sum" gradient : memref<3x16xf32>
  %y = exec.buffer "y" output output "y" : memref<3x16xf32>
  // CHECK: exec.loop %[[M:.*]] = 2 reverse {
  exec.loop %m = 2 reverse {
    %xm = exec.slot %x[%m] : memref<2x16xf32> -> memref<16xf32>
    exec.loop %i = 3 {
      %s = exec.slot %sum[%i] : memref<3x16xf32> -> memref<16xf32>
      exec.copy %xm to %s : memref<16xf32> to memref<16xf32>
      // CHECK: exec.when %[[M]] from 0 to 1 {
      // CHECK-NEXT: exec.all_reduce
    }
  }
  exec.all_reduce sum %sum to %sum over ["data"] : memref<3x16xf32> to memref<3x16xf32>
  exec.copy %sum to %y : memref<3x16xf32> to memref<3x16xf32>
}

// -----

// Of microbatches of which a step may have fewer none is known to be the last: the sum of all is reduced behind the loop.
// CHECK-LABEL: exec.program @ramped
// CHECK: exec.loop %{{.*}} = 2 times(
// CHECK: exec.loop %{{.*}} = 3 {
// CHECK-NOT: exec.when
// CHECK-NOT: exec.all_reduce
// CHECK: exec.copy
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: exec.all_reduce sum %{{.*}} {exec.async_token = 0 : i64} : memref<3x16xf32>
// CHECK-NEXT: exec.copy
// CHECK-NEXT: exec.wait 0
dist.mesh @mesh ["data" = 2]
exec.program @ramped {
  %x = exec.buffer "x" input input "x" : memref<2x16xf32>
  %n = exec.buffer "n" input input "microbatches" : memref<i32>
  %start = exec.buffer "start" input input "start" : memref<3x16xf32>
  %sum = exec.buffer "sum" gradient : memref<3x16xf32>
  %y = exec.buffer "y" output output "y" : memref<3x16xf32>
  %z = exec.buffer "z" output output "z" : memref<2x16xf32>
  exec.copy %start to %sum : memref<3x16xf32> to memref<3x16xf32>
  exec.loop %m = 2 times(%n : memref<i32>) attributes {train.role = #train.role<microbatch>} {
    %xm = exec.slot %x[%m] : memref<2x16xf32> -> memref<16xf32>
    exec.loop %i = 3 {
      %s = exec.slot %sum[%i] : memref<3x16xf32> -> memref<16xf32>
      exec.copy %xm to %s : memref<16xf32> to memref<16xf32>
    }
  }
  exec.all_reduce sum %sum to %sum over ["data"] : memref<3x16xf32> to memref<3x16xf32>
  exec.copy %x to %z : memref<2x16xf32> to memref<2x16xf32>
  exec.copy %sum to %y : memref<3x16xf32> to memref<3x16xf32>
}

// -----

// The first gather of an inner loop begins ahead of it, from the slot of the outer one's iteration, whose shift the inner loop computes.
// CHECK-LABEL: exec.program @nested
// CHECK: exec.loop %[[O:.*]] = 3 {
// CHECK: %[[AT:.*]] = exec.shift %[[O]] by 0 modulo 2
// CHECK: %[[LAYERS:.*]] = exec.slot %{{.*}}[%[[AT]]] : memref<2x4x8xf32> -> memref<4x8xf32>
// CHECK: %[[W0:.*]] = exec.view %[[LAYERS]] : memref<4x8xf32> -> memref<8xf32>
// CHECK: exec.all_gather %[[W0]] to %{{.*}} {exec.async_token = 0 : i64}
// CHECK: exec.loop %{{.*}} = 4 {
// CHECK: exec.wait 0
dist.mesh @mesh ["data" = 2]
exec.program @nested {
  %x = exec.buffer "x" input input "x" : memref<2x4x8xf32>
  %turns = exec.buffer "turns" temporary : memref<2x4x8xf32>
  %all = exec.buffer "all" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<4x16xf32>
  exec.copy %x to %turns : memref<2x4x8xf32> to memref<2x4x8xf32>
  exec.loop %o = 3 {
    exec.loop %i = 4 {
      %at = exec.shift %o by 0 modulo 2
      %layers = exec.slot %turns[%at] : memref<2x4x8xf32> -> memref<4x8xf32>
      %wi = exec.slot %layers[%i] : memref<4x8xf32> -> memref<8xf32>
      exec.all_gather %wi to %all over ["data"] : memref<8xf32> to memref<16xf32>
      %yi = exec.slot %y[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %all to %yi : memref<16xf32> to memref<16xf32>
    }
  }
}
