// RUN: meshwright-opt %s --exec-verify -split-input-file -verify-diagnostics

// What passes have found out is found out again, and what kernels and calls need.
module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{is a kernel without a body}}
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
}

// -----

module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{attribute 'exec.workspace' is 64, but its loop nests need 0 bytes}}
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.workspace = 64 : i64} {
    return %x : tensor<16xf32>
  }
}

// -----

// A sum over all rows has a partial result for each of the chunks, which is more than no bytes.
module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{attribute 'exec.workspace' is 0, but its loop nests need }}
  func.func private @k(%x: tensor<512x1024xf32>) -> tensor<f32> attributes {exec.kernel} {
    %y = train.reduce sum %x over [0, 1] : (tensor<512x1024xf32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{attribute 'exec.chunks' is array<i64: -1>, but its loop nests are array<i64: 1>}}
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.chunks = array<i64: -1>} {
    return %x : tensor<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{attribute 'exec.template' is ["scatter"], but its loop nests are ["elementwise"]}}
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["scatter"]} {
    return %x : tensor<16xf32>
  }
}

// -----

// The halves of a row are read by each other's elements, after some of them are written.
module attributes {exec.arena_bytes = 0 : i64} {
  // expected-error @below {{attribute 'exec.inplace' lets result 0 be the same memory as argument 0, which is read after it is written, or not as it is written}}
  func.func private @k(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]} {
    %y = train.rotate_half %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 8192 : i64} {
  dist.mesh @mesh ["context" = 2]
  exec.program private @f ins(%q: memref<1x4x2x4xf32>, %k: memref<1x8x2x4xf32>, %n: memref<i32>) outs(%o: memref<1x4x2x4xf32>, %lse: memref<1x2x4xf32>)
      attributes {exec.arena_bytes = 0 : i64} {
    // expected-error @below {{gives 0 bytes of workspace where }}
    exec.attention ins(%q, %k, %k) query_offset(%n) outs(%o, %lse) scale 0.5 causal heads 2 queries 8
        : (memref<1x4x2x4xf32>, memref<1x8x2x4xf32>, memref<1x8x2x4xf32>, memref<i32>, memref<1x4x2x4xf32>, memref<1x2x4xf32>) -> ()
  }
}
