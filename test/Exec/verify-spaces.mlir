// RUN: meshwright-opt %s --exec-verify -split-input-file -verify-diagnostics

// What has no addresses is copied, also for kernels.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 8388608 : i64, exec.ssd_bytes = 4096 : i64} {
  func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.workspace = 0 : i64} {
    %0 = arith.addf %x, %x : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  train.variable @w : tensor<16xf32> init <"constant", 1.0>
  exec.program @step {
    %w = exec.buffer "w" optimizer variable @w offset 0 : memref<16xf32, "ssd">
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    // expected-error @below {{uses 'memref<16xf32, "ssd">' of the SSD; copy it, see exec-offload}}
    exec.launch @double ins(%w : memref<16xf32, "ssd">) outs(%y : memref<16xf32>)
  }
}

// -----

// Buffers are in blocks of their own.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 8388608 : i64, exec.ssd_bytes = 4096 : i64} {
  train.variable @w : tensor<16xf32> init <"constant", 1.0>
  exec.program @step {
    // expected-error @below {{'w' is at offset 64 of the SSD's arena, not at a multiple of 4096}}
    %w = exec.buffer "w" optimizer variable @w offset 64 : memref<16xf32, "ssd">
  }
}

// -----

// The host's arena ends with what copies go through,
// expected-error @below {{has 4096 bytes in the host's arena, which ends with 8388608 for copies, page-aligned; see exec-assign-offsets}}
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 4096 : i64, exec.ssd_bytes = 4096 : i64} {
  exec.program @step {
  }
}

// -----

// where no buffer is.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 8388608 : i64, exec.ssd_bytes = 4096 : i64} {
  train.variable @w : tensor<16xf32> init <"constant", 1.0>
  exec.program @step {
    // expected-error @below {{'w' ends at 64, outside the host's arena of 0 bytes}}
    %w = exec.buffer "w" optimizer variable @w offset 0 : memref<16xf32, "host">
  }
}
