// RUN: meshwright-opt %s --exec-verify -split-input-file -verify-diagnostics

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{names axis "pipe", which the mesh does not have}}
    exec.all_reduce sum %x to %y over ["pipe"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{names axis "data" twice}}
    exec.all_reduce sum %x to %y over ["data", "data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<32xf32>
    // expected-error @below {{over 4 ranks cannot turn 'memref<16xf32>' into 'memref<32xf32>'}}
    exec.all_gather %x to %y over ["data", "tensor"] : memref<16xf32> to memref<32xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<4xf32>
    // expected-error @below {{over 2 ranks cannot turn 'memref<16xf32>' into 'memref<4xf32>'}}
    exec.reduce_scatter sum %x to %y over ["data"] : memref<16xf32> to memref<4xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{'from' must be a permutation of the 2 ranks of the group}}
    exec.permute %x to %y from [1, -1] over ["data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{'from' must be a permutation of the 2 ranks of the group}}
    exec.permute %x to %y from [1] over ["data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{has the root 2147483648, but the group's ranks are 0 to 1}}
    exec.broadcast %x to %y root 2147483648 over ["data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{has the peer -1, but the group's ranks are 0 to 3}}
    exec.send %x to -1 channel 0 over ["data", "tensor"] buffer %y : memref<16xf32>, memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{is on channel -1; channels are numbered from 0, by less than 2^31}}
    exec.send %x to 1 channel -1 over ["data"] buffer %y : memref<16xf32>, memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{is on channel 2147483648; channels are numbered from 0, by less than 2^31}}
    exec.recv from 1 channel 2147483648 over ["data"] to %y : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
    // expected-error @below {{needs an entry for each of the 4 ranks of the group, found 2}}
    exec.exchange %y pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data", "tensor"] : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<4xf32>
    // expected-error @below {{takes one of 4 parts, but the group has 2 ranks}}
    %w = exec.window %x over ["data"] : memref<16xf32> -> memref<4xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<i32>
    // expected-error @below {{shifts by ranks of 4, but the group has 2}}
    exec.store_offset 8 shift 1 of 4 over ["data"] to %y : memref<i32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2, "tensor" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<i32>
    // expected-error @below {{of parts of 1073741824 elements on 4 ranks is not an index of 32 bits}}
    exec.store_offset 1073741824 over ["data", "tensor"] to %y : memref<i32>
  }
}
