// RUN: meshwright-opt %s --exec-verify --split-input-file --verify-diagnostics

module attributes {exec.arena_bytes = 128 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program private @f ins(%x: memref<16xf32>, %y: memref<16xf32>) attributes {exec.arena_bytes = 0 : i64} {
    // expected-error@below {{writes argument 1 of "f", which is one of its 'ins'}}
    exec.launch @k ins(%x : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program private @f inouts(%x: memref<16xf32>) outs(%y: memref<16xf32>) attributes {exec.arena_bytes = 0 : i64} {
    // expected-error@below {{reads argument 1 of "f", one of its 'outs', before anything is written there}}
    exec.launch @k ins(%y : memref<16xf32>) outs(%x : memref<16xf32>)
    exec.launch @k ins(%x : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  // expected-error@below {{does not write argument 0, which is one of its 'outs'}}
  exec.program private @f outs(%y: memref<16xf32>) attributes {exec.arena_bytes = 0 : i64} {
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program private @f ins(%x: memref<16xf32>) attributes {exec.arena_bytes = 64 : i64} {
    // expected-error@below {{'x' outlives a program that is called: only its callers have variables, inputs and outputs}}
    %0 = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program private @f ins(%x: memref<16xf32>) outs(%y: memref<16xf32>) attributes {exec.arena_bytes = 0 : i64} {
    exec.launch @k ins(%x : memref<16xf32>) outs(%y : memref<16xf32>)
  }
  exec.program @step {
    %0 = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %1 = exec.buffer "t" temporary offset 64 : memref<16xf32>
    exec.call @f ins(%0 : memref<16xf32>) outs(%1 : memref<16xf32>)
    // expected-error@below {{gives memory that @f writes as another argument as well}}
    exec.call @f ins(%1 : memref<16xf32>) outs(%1 : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  // expected-error@below {{has no attribute exec.arena_bytes, see exec-assign-offsets}}
  exec.program private @f ins(%x: memref<16xf32>) {
  }
}

// -----

exec.program private @f ins(%x: memref<16xf32>) attributes {exec.arena_bytes = 64 : i64} {
}
exec.program @step {
  %0 = exec.buffer "x" input input "x" : memref<16xf32>
  // expected-error@below {{gives 0 bytes of workspace but @f needs 64}}
  exec.call @f ins(%0 : memref<16xf32>)
}

// -----

exec.program private @f ins(%x: memref<16xf32>) {
}
exec.program @step {
  %0 = exec.buffer "x" input input "x" : memref<16xf32>
  // expected-error@below {{as 'inouts' but @f takes}}
  exec.call @f ins(%0 : memref<16xf32>) inouts(%0 : memref<16xf32>)
}

// -----

exec.program @eval {
}
exec.program @step {
  // expected-error@below {{names @eval, which is not a private program}}
  exec.call @eval
}

// -----

// expected-error@below {{takes arguments but is not private: nothing could give them to it}}
exec.program @step ins(%x: memref<16xf32>) {
}

// -----

exec.program @step {
  %0 = exec.buffer "x" input input "x" : memref<16xf32>
  // expected-error@below {{which 'memref<16xf32>' does not hold}}
  %1 = exec.view %0 from 12 : memref<16xf32> -> memref<8xf32>
}
