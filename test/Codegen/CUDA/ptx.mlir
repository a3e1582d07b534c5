// RUN: meshwright compile %s --target cuda --emit ptx -o %t.ptx && FileCheck %s < %t.ptx
// RUN: meshwright compile %s --target cuda --gpu-arch sm_80 --emit ptx -o - | FileCheck %s --check-prefix=SM80

// Vectors of 16 bytes where every launch's memory is aligned to them, single elements
// where a slot of a stack is not.

// SM80: .target sm_80

module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 3200000 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  train.variable @w : tensor<3x1024x262xbf16> stacked init #train.init<"constant", 1.0 : f64>
      storage #train.storage<"h.{layer}.w">
  train.variable @v : tensor<3x513x257xf32> stacked init #train.init<"constant", 1.0 : f64>
      storage #train.storage<"h.{layer}.v">

  // The dot of a name is a dollar in PTX.
  // CHECK: .target sm_90
  // CHECK-LABEL: .entry layer$aligned(
  // CHECK: .maxntid 256
  // CHECK: ld.global.v4.b32
  // CHECK: fma.rn.f32
  // CHECK: cvt.rn.bf16x2.f32
  // CHECK: st.global.v4.b32
  func.func private @layer.aligned(%x: tensor<1024x262xbf16>) -> tensor<1024x262xbf16>
      attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
    %0 = arith.extf %x : tensor<1024x262xbf16> to tensor<1024x262xf32>
    %1 = arith.mulf %0, %0 : tensor<1024x262xf32>
    %2 = arith.addf %1, %0 : tensor<1024x262xf32>
    %3 = arith.truncf %2 : tensor<1024x262xf32> to tensor<1024x262xbf16>
    return %3 : tensor<1024x262xbf16>
  }

  // 513 * 257 * 4 bytes: slots are aligned to 4 only.
  // CHECK-LABEL: .entry odd(
  // CHECK-NOT: .v2
  // CHECK-NOT: .v4
  // CHECK: ld.global.b32
  // CHECK: ret;
  func.func private @odd(%x: tensor<513x257xf32>) -> tensor<513x257xf32>
      attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
    %0 = arith.mulf %x, %x : tensor<513x257xf32>
    return %0 : tensor<513x257xf32>
  }

  // Sums of a row: five shuffles in a warp; rows longer than a warp takes go through
  // shared memory.
  // CHECK-LABEL: .entry rows(
  // CHECK-COUNT-5: shfl.sync.bfly
  // CHECK: st.shared
  // CHECK: bar{{(rier)?}}.sync
  // CHECK: ld.shared
  func.func private @rows(%x: tensor<64x2048xf32>) -> tensor<64xf32>
      attributes {exec.kernel, exec.workspace = 0 : i64} {
    %0 = train.reduce sum %x over [1] : (tensor<64x2048xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }

  exec.program @step {
    %w = exec.buffer "w" parameter variable @w offset 0 : memref<3x1024x262xbf16>
    %v = exec.buffer "v" parameter variable @v offset 1609728 : memref<3x513x257xf32>
    exec.loop %i = 3 {
      %a = exec.slot %w[%i] : memref<3x1024x262xbf16> -> memref<1024x262xbf16>
      exec.launch @layer.aligned ins(%a : memref<1024x262xbf16>) outs(%a : memref<1024x262xbf16>)
      %b = exec.slot %v[%i] : memref<3x513x257xf32> -> memref<513x257xf32>
      exec.launch @odd ins(%b : memref<513x257xf32>) outs(%b : memref<513x257xf32>)
    }
  }
}
