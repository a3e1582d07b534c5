// RUN: meshwright-opt %s --exec-verify -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --exec-verify
module attributes {exec.arena_bytes = 192 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 64 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    // expected-error @+1 {{reads 'a' where 'b' has been written over it}}
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
  }
}
// END EXAMPLE

// -----

// The same memory at different times is fine.
// CHECK: exec.program @fine
module attributes {exec.arena_bytes = 192 : i64} {
  exec.program @fine {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 128 : memref<16xf32>
    %c = exec.buffer "c" temporary offset 64 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
    exec.copy %b to %c : memref<16xf32> to memref<16xf32>
  }
}

// -----

// expected-error @+1 {{has no attribute exec.arena_bytes, see exec-assign-offsets}}
module {
}

// -----

module attributes {exec.arena_bytes = 64 : i64} {
  // expected-error @+1 {{is neither a program nor a kernel}}
  func.func @step() {
    return
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64} {
  exec.program @step {
    // expected-error @+1 {{'x' has no offset, see exec-assign-offsets}}
    %x = exec.buffer "x" input input "x" : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64} {
  exec.program @step {
    // expected-error @+1 {{'x' ends at 128, outside the arena of 64 bytes}}
    %x = exec.buffer "x" input input "x" offset 64 : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %a = exec.buffer "a" temporary offset 0 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 64 : memref<16xf32>
    // expected-error @+1 {{reads 'a' before anything is written there}}
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" input input "y" offset 64 : memref<16xf32>
    // expected-error @+1 {{writes the input 'y'}}
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    // expected-error @+1 {{is the second one named 'x'}}
    %y = exec.buffer "x" temporary offset 64 : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @eval {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
  }
  exec.program @step {
    // expected-error @+1 {{'x' lies elsewhere in another program}}
    %x = exec.buffer "x" input input "x" offset 64 : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  train.variable @w : tensor<16xf32> init <"normal", 0.02>
  exec.program @eval {
    %w = exec.buffer "w" parameter variable @w offset 0 : memref<16xf32>
  }
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 64 : memref<16xf32>
    // expected-error @+1 {{'t' overlaps 'w', which outlives the program}}
    %t = exec.buffer "t" temporary offset 0 : memref<16xf32>
    exec.copy %x to %t : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = []} {
    return %x : tensor<16xf32>
  }
  exec.program @step {
    %x = exec.buffer "x" output output "x" offset 0 : memref<16xf32>
    // expected-error @+1 {{writes output 0 over input 0, which @k does not allow}}
    exec.launch @k ins(%x : memref<16xf32>) outs(%x : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    // expected-error @+1 {{uses 'tensor<16xf32>'; programs hold memory only, see exec-bufferize}}
    %t = train.fill 0.0 : () -> tensor<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    exec.loop %i = 2 {
      // expected-error @+1 {{is inside a loop; buffers belong at the program's top}}
      %x = exec.buffer "x" temporary offset 0 : memref<16xf32>
    }
  }
}

// -----

// CHECK: exec.program @fine
module attributes {exec.arena_bytes = 256 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = [[0, 0]]} { return %x : tensor<16xf32> }
  exec.program @fine {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 64 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    exec.launch @k ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.launch @k ins(%a : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.launch @k ins(%x : memref<16xf32>) outs(%b : memref<16xf32>)
    exec.launch @k ins(%b : memref<16xf32>) outs(%b : memref<16xf32>)
  }
}

// -----

// expected-error @below {{has no attribute exec.arena_bytes, see exec-assign-offsets}}
module {}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  // expected-error @below {{is neither a program nor a kernel}}
  func.func @left() { return }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  exec.program @step {
    // expected-error @below {{'a' has no offset, see exec-assign-offsets}}
    %a = exec.buffer "a" temporary : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 96 : i64} {
  exec.program @step {
    // expected-error @below {{'a' ends at 128, outside the arena of 96 bytes}}
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  exec.program @step {
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    // expected-error @below {{is the second one named 'a'}}
    %b = exec.buffer "a" temporary offset 64 : memref<16xf32>
  }
}

// -----

// Memory that outlives the program, by one element.
module attributes {exec.arena_bytes = 256 : i64} {
  func.func private @k(%x: tensor<17xf32>) -> tensor<17xf32> attributes {exec.kernel} { return %x : tensor<17xf32> }
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<17xf32>
    // expected-error @below {{'a' overlaps 'x', which outlives the program}}
    %a = exec.buffer "a" temporary offset 64 : memref<17xf32>
    exec.launch @k ins(%x : memref<17xf32>) outs(%a : memref<17xf32>)
  }
}

// -----

// Two that do.
module attributes {exec.arena_bytes = 256 : i64} {
  train.variable @a : tensor<17xf32>
  train.variable @b : tensor<16xf32>
  exec.program @step {
    %a = exec.buffer "a" parameter variable @a offset 0 : memref<17xf32>
    // expected-error @below {{'b' overlaps 'a', which outlives the program}}
    %b = exec.buffer "b" parameter variable @b offset 64 : memref<16xf32>
  }
}

// -----

// A byte that nothing has written.
module attributes {exec.arena_bytes = 256 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<17xf32>
    %y = exec.buffer "y" output output "y" offset 192 : memref<16xf32>
    %first = exec.view %a : memref<17xf32> -> memref<16xf32>
    %second = exec.view %a from 1 : memref<17xf32> -> memref<16xf32>
    exec.copy %x to %first : memref<16xf32> to memref<16xf32>
    // expected-error @below {{reads 'a' before anything is written there}}
    exec.copy %second to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Not live in the body's middle, but carried around the loop.
module attributes {exec.arena_bytes = 256 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %c = exec.buffer "c" temporary offset 64 : memref<16xf32>
    %t = exec.buffer "t" temporary offset 128 : memref<16xf32>
    %u = exec.buffer "u" temporary offset 64 : memref<16xf32>
    exec.launch @k ins(%x : memref<16xf32>) outs(%c : memref<16xf32>)
    exec.loop %i = 2 {
      // expected-error @below {{reads 'c' where 'u' has been written over it}}
      exec.launch @k ins(%c : memref<16xf32>) outs(%t : memref<16xf32>)
      exec.launch @k ins(%t : memref<16xf32>) outs(%c : memref<16xf32>)
      exec.launch @k ins(%x : memref<16xf32>) outs(%u : memref<16xf32>)
    }
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program @step {
    %a = exec.buffer "a" temporary offset 0 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 64 : memref<16xf32>
    // expected-error @below {{reads 'a' before anything is written there}}
    exec.launch @k ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  train.variable @a : tensor<16xf32>
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program @step {
    %a = exec.buffer "a" parameter variable @a offset 0 : memref<16xf32>
    // expected-error @below {{writes output 0 over input 0, which @k does not allow}}
    exec.launch @k ins(%a : memref<16xf32>) outs(%a : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  train.variable @a : tensor<16xf32>
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program @step {
    %a = exec.buffer "a" parameter variable @a offset 0 : memref<16xf32>
    %x = exec.buffer "x" input input "x" offset 64 : memref<16xf32>
    // expected-error @below {{writes the input 'x'}}
    exec.launch @k ins(%a : memref<16xf32>) outs(%x : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 256 : i64} {
  train.variable @a : tensor<16xf32>
  exec.program @step {
    %a = exec.buffer "a" parameter variable @a offset 0 : memref<16xf32>
  }
  exec.program @eval {
    // expected-error @below {{'a' lies elsewhere in another program}}
    %a = exec.buffer "a" parameter variable @a offset 64 : memref<16xf32>
  }
}

// -----

// Scratch memory of one program where another one keeps a variable.
module attributes {exec.arena_bytes = 256 : i64} {
  train.variable @a : tensor<16xf32>
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel} { return %x : tensor<16xf32> }
  exec.program @step {
    %a = exec.buffer "a" parameter variable @a offset 0 : memref<16xf32>
  }
  exec.program @eval {
    %x = exec.buffer "x" input input "x" offset 64 : memref<16xf32>
    // expected-error @below {{'t' overlaps 'a', which outlives the program}}
    %t = exec.buffer "t" temporary offset 0 : memref<16xf32>
    exec.launch @k ins(%x : memref<16xf32>) outs(%t : memref<16xf32>)
  }
}

// -----

// Collectives and their groups have numbers by now: each has one, and none is another's.
module attributes {exec.arena_bytes = 64 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  exec.program @step {
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    // expected-error @below {{is of group ["pipe", 1], which the module does not have in exec.groups, see exec-number-collectives}}
    exec.recv from 0 channel 0 over ["pipe"] to %y : memref<16xf32>
  }
}

// -----

// expected-error @below {{has 2 groups in exec.groups, but 1 communicate}}
module attributes {exec.arena_bytes = 64 : i64, exec.groups = [["pipe", 1], ["data"]]} {
  dist.mesh @mesh ["pipe" = 2]
  exec.program @step {
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    exec.recv from 0 channel 0 over ["pipe"] to %y {exec.collective = 0 : i64} : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64, exec.groups = [["pipe", 1]]} {
  dist.mesh @mesh ["pipe" = 2]
  exec.program @step {
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    // expected-error @below {{has no attribute exec.collective, see exec-number-collectives}}
    exec.recv from 0 channel 0 over ["pipe"] to %y : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64, exec.groups = [["pipe", 1]]} {
  dist.mesh @mesh ["pipe" = 2]
  exec.program @step {
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    // expected-error @below {{is collective 1 of 1}}
    exec.recv from 0 channel 0 over ["pipe"] to %y {exec.collective = 1 : i64} : memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 64 : i64, exec.groups = [["pipe", 1]]} {
  dist.mesh @mesh ["pipe" = 2]
  exec.program @step {
    %y = exec.buffer "y" output output "y" offset 0 : memref<16xf32>
    // expected-note @below {{that is here}}
    exec.recv from 0 channel 0 over ["pipe"] to %y {exec.collective = 0 : i64} : memref<16xf32>
    // expected-error @below {{is collective 0, as another one is}}
    exec.recv from 0 channel 0 over ["pipe"] to %y {exec.collective = 0 : i64} : memref<16xf32>
  }
}

// -----

// Whichever is declared first.
module attributes {exec.arena_bytes = 192 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %b = exec.buffer "b" temporary offset 64 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    // expected-error @+1 {{reads 'a' where 'b' has been written over it}}
    exec.copy %a to %b : memref<16xf32> to memref<16xf32>
  }
}

// -----

// A loop fills the slots of one stack where it has emptied those of another, and what the next one needs for a while
// is where it has emptied a slot.
// CHECK: exec.program @shared
module attributes {exec.arena_bytes = 512 : i64} {
  exec.program @shared {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %acts = exec.buffer "acts" activation offset 192 : memref<4x16xf32>
    %grads = exec.buffer "grads" gradient offset 128 : memref<4x16xf32>
    %b = exec.buffer "b" temporary offset 448 : memref<16xf32>
    %late = exec.buffer "late" temporary offset 384 : memref<16xf32>
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %a to %b : memref<16xf32> to memref<16xf32>
      exec.copy %b to %g : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %g to %late : memref<16xf32> to memref<16xf32>
      exec.copy %late to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// An op that fills a slot of "grads" may not do it over the slot of "acts" that it reads.
module attributes {exec.arena_bytes = 512 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %acts = exec.buffer "acts" activation offset 128 : memref<4x16xf32>
    %grads = exec.buffer "grads" gradient offset 128 : memref<4x16xf32>
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 reverse {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      // expected-error @below {{reads 'acts' where 'grads' has been written over it}}
      exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// One slot further would do backwards; upwards it is over what the next iteration reads.
module attributes {exec.arena_bytes = 512 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %acts = exec.buffer "acts" activation offset 128 : memref<4x16xf32>
    %grads = exec.buffer "grads" gradient offset 192 : memref<4x16xf32>
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %a = exec.slot %acts[%i] : memref<4x16xf32> -> memref<16xf32>
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      // expected-error @below {{reads 'acts' where 'grads' has been written over it}}
      exec.copy %a to %g : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// The slot that is filled last is free for "t", and not the one before it.
module attributes {exec.arena_bytes = 512 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %grads = exec.buffer "grads" gradient offset 128 : memref<4x16xf32>
    %t = exec.buffer "t" temporary offset 192 : memref<16xf32>
    exec.loop %i = 4 reverse {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %x to %t : memref<16xf32> to memref<16xf32>
      exec.copy %t to %y : memref<16xf32> to memref<16xf32>
      exec.copy %x to %g : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 4 {
      %g = exec.slot %grads[%i] : memref<4x16xf32> -> memref<16xf32>
      // expected-error @below {{reads 'grads' where 't' has been written over it}}
      exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// The places are right for stacks that the loop fills and empties, but in one iteration of many it leaves the slot of
// "grads" as "acts" has left it.
module attributes {exec.arena_bytes = 4096 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %acts = exec.buffer "acts" activation offset 128 : memref<40x16xf32>
    %grads = exec.buffer "grads" gradient offset 192 : memref<40x16xf32>
    exec.loop %i = 40 {
      %a = exec.slot %acts[%i] : memref<40x16xf32> -> memref<16xf32>
      exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 40 reverse {
      %a = exec.slot %acts[%i] : memref<40x16xf32> -> memref<16xf32>
      %g = exec.slot %grads[%i] : memref<40x16xf32> -> memref<16xf32>
      exec.when %i from 0 to 20 {
        exec.copy %a to %g : memref<16xf32> to memref<16xf32>
      }
      exec.when %i from 21 to 40 {
        exec.copy %a to %g : memref<16xf32> to memref<16xf32>
      }
    }
    exec.loop %i = 40 {
      %g = exec.slot %grads[%i] : memref<40x16xf32> -> memref<16xf32>
      // expected-error @below {{reads 'grads' where 'acts' has been written over it}}
      exec.copy %g to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// Types in files are those of whole tensors without padding: 3 of the 4 rows of a device's two, and 3 behind them.
module attributes {exec.arena_bytes = 0 : i64} {
  train.variable @q : tensor<2x4xf32> storage <"qk", full = 6> {dist.global = tensor<4x4xf32>, dist.logical = tensor<3x4xf32>}
  train.variable @k : tensor<2x4xf32> storage <"qk", offset = 3, full = 6> {dist.global = tensor<4x4xf32>, dist.logical = tensor<3x4xf32>}
}

// -----

module attributes {exec.arena_bytes = 0 : i64} {
  train.variable @q : tensor<2x4xf32> storage <"qk", full = 6> {dist.global = tensor<4x4xf32>}
  // expected-error @below {{is stored in tensor 'qk', in rows where @q is; give it a storage of its own}}
  train.variable @k : tensor<2x4xf32> storage <"qk", offset = 3, full = 6> {dist.global = tensor<4x4xf32>, dist.logical = tensor<3x4xf32>}
}
