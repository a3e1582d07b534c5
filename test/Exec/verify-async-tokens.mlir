// RUN: meshwright-opt %s --exec-number-collectives --exec-verify -split-input-file -verify-diagnostics

// A copy reads what a started collective writes.
module attributes {exec.arena_bytes = 128 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-note @below {{it is started here}}
    exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 3 : i64} : memref<16xf32> to memref<16xf32>
    // expected-error @below {{touches memory of collective 3, which may still run}}
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
    exec.wait 3
  }
}

// -----

// Another buffer at the same place: the plan is wrong, not the program.
module attributes {exec.arena_bytes = 192 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %g = exec.buffer "g" gradient offset 128 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %v = exec.view %y : memref<16xf32> -> memref<16xf32>
    exec.copy %x to %g : memref<16xf32> to memref<16xf32>
    exec.loop %i = 9 {
      // expected-note @below {{it is started here}}
      exec.all_reduce sum %g to %y over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
      // expected-error @below {{touches memory of collective 0, which may still run}}
      exec.copy %x to %g : memref<16xf32> to memref<16xf32>
      exec.wait 0
    }
  }
}

// -----

// Two slots in turns are apart, but not from the iteration after the next.
module attributes {exec.arena_bytes = 320 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %g = exec.buffer "g" gradient offset 192 : memref<2x16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<2x16xf32>
    exec.loop %i = 9 {
      %turn = exec.shift %i by 0 modulo 2
      %mine = exec.slot %g[%turn] : memref<2x16xf32> -> memref<16xf32>
      %out = exec.slot %y[%turn] : memref<2x16xf32> -> memref<16xf32>
      // expected-error @below {{touches memory of collective 0, which may still run}}
      exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
      // expected-note @below {{it is started here}}
      exec.all_reduce sum %mine to %out over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    }
    exec.wait 0
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{waits for 1, which nothing starts}}
    exec.wait 1
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{is started as 1 and may still run when the program ends}}
    exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 1 : i64} : memref<16xf32> to memref<16xf32>
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    // expected-error @below {{has 'exec.async_token' but is neither communication nor a copy from or to the host}}
    exec.copy %x to %y {exec.async_token = 1 : i64} : memref<16xf32> to memref<16xf32>
  }
}

// -----

// A part of a state that has not come yet.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 64 : i64} {
  train.variable @m : tensor<16xf32> init <"constant", 0.0>
  exec.program @step {
    %m = exec.buffer "m" optimizer variable @m offset 0 : memref<16xf32, "host">
    %here = exec.buffer "here" optimizer offset 0 : memref<16xf32>
    // expected-note @below {{it is started here}}
    exec.copy %m to %here {exec.async_token = 0 : i64} : memref<16xf32, "host"> to memref<16xf32>
    // expected-error @below {{touches memory of copy 0, which may still run}}
    exec.copy %here to %m {exec.async_token = 1 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 0
    exec.wait 1
  }
}

// -----

// Copies to the host do not wait for communication.
module attributes {exec.arena_bytes = 128 : i64, exec.host_bytes = 64 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %kept = exec.buffer "kept" activation offset 0 : memref<16xf32, "host">
    // expected-note @below {{it is started here}}
    exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    // expected-error @below {{touches memory of collective 0, which may still run}}
    exec.copy %y to %kept : memref<16xf32> to memref<16xf32, "host">
    exec.wait 0
  }
}

// -----

// What computes cannot use memory of the host.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 64 : i64} {
  exec.program @step {
    %kept = exec.buffer "kept" activation offset 0 : memref<i32, "host">
    exec.loop %i = 2 {
      // expected-error @below {{uses 'memref<i32, "host">' of the host; copy it, see exec-offload}}
      exec.store_index %i, %kept : memref<i32, "host">
    }
  }
}

// -----

// The host's arena has a size of its own.
module attributes {exec.arena_bytes = 64 : i64, exec.host_bytes = 64 : i64} {
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    // expected-error @below {{'kept' ends at 128, outside the host's arena of 64 bytes}}
    %kept = exec.buffer "kept" activation offset 64 : memref<16xf32, "host">
    exec.copy %x to %kept : memref<16xf32> to memref<16xf32, "host">
  }
}

// -----

// A copy of a caller's memory that the program changes but does not copy back.
module attributes {exec.arena_bytes = 192 : i64, exec.host_bytes = 64 : i64} {
  exec.program private @backward inouts(%kept: memref<2x16xf32, "host">) outs(%y: memref<16xf32>) attributes {exec.arena_bytes = 128 : i64} {
    %x = exec.buffer "x" activation offset 0 : memref<16xf32>
    %first = exec.view %kept : memref<2x16xf32, "host"> -> memref<16xf32, "host">
    exec.copy %first to %x {exec.async_token = 0 : i64} : memref<16xf32, "host"> to memref<16xf32>
    exec.wait 0
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
    // expected-error @below {{changes a copy of argument 0, which is not copied back to the host}}
    exec.copy %y to %x : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Its place is taken by the next slot: then too.
module attributes {exec.arena_bytes = 192 : i64, exec.host_bytes = 1280 : i64} {
  exec.program @step {
    %in = exec.buffer "in" input input "in" offset 128 : memref<16xf32>
    %kept = exec.buffer "kept" activation offset 0 : memref<20x16xf32, "host">
    %x = exec.buffer "x" activation offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    exec.loop %i = 20 {
      %slot = exec.slot %kept[%i] : memref<20x16xf32, "host"> -> memref<16xf32, "host">
      exec.wait 0
      exec.copy %in to %x : memref<16xf32> to memref<16xf32>
      exec.copy %x to %slot {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32, "host">
    }
    exec.loop %i = 20 reverse {
      %slot = exec.slot %kept[%i] : memref<20x16xf32, "host"> -> memref<16xf32, "host">
      exec.wait 0
      exec.copy %slot to %x {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
      exec.wait 1
      // expected-note @below {{the copy is changed here}}
      exec.copy %in to %x : memref<16xf32> to memref<16xf32>
    }
    exec.loop %i = 20 {
      %slot = exec.slot %kept[%i] : memref<20x16xf32, "host"> -> memref<16xf32, "host">
      // expected-error @below {{reads 'kept' on the host, of which a changed copy was not copied back}}
      exec.copy %slot to %x {exec.async_token = 2 : i64} : memref<16xf32, "host"> to memref<16xf32>
      exec.wait 2
      exec.copy %x to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// It is copied back to another place: the loop's own slot is the next one's.
module attributes {exec.arena_bytes = 192 : i64, exec.host_bytes = 192 : i64} {
  exec.program @step {
    %in = exec.buffer "in" input input "in" offset 128 : memref<16xf32>
    %kept = exec.buffer "kept" activation offset 0 : memref<3x16xf32, "host">
    %x = exec.buffer "x" activation offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %0 = exec.view %kept : memref<3x16xf32, "host"> -> memref<16xf32, "host">
    %1 = exec.view %kept from 16 : memref<3x16xf32, "host"> -> memref<16xf32, "host">
    exec.copy %in to %0 {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 0
    exec.copy %0 to %x {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
    exec.wait 1
    // expected-note @below {{the copy is changed here}}
    exec.copy %in to %x : memref<16xf32> to memref<16xf32>
    exec.copy %x to %1 {exec.async_token = 2 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 2
    // expected-error @below {{reads 'kept' on the host, of which a changed copy was not copied back}}
    exec.copy %0 to %y {exec.async_token = 3 : i64} : memref<16xf32, "host"> to memref<16xf32>
    exec.wait 3
  }
}

// -----

// A copy that was made too early.
module attributes {exec.arena_bytes = 256 : i64, exec.host_bytes = 64 : i64} {
  exec.program @step {
    %in = exec.buffer "in" input input "in" offset 192 : memref<16xf32>
    %kept = exec.buffer "kept" activation offset 0 : memref<16xf32, "host">
    %x = exec.buffer "x" activation offset 0 : memref<16xf32>
    %next = exec.buffer "next" activation offset 128 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    exec.copy %in to %next : memref<16xf32> to memref<16xf32>
    exec.copy %next to %kept {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 0
    exec.copy %kept to %x {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
    exec.wait 1
    // expected-note @below {{it is changed here}}
    exec.copy %next to %kept {exec.async_token = 2 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 2
    // expected-error @below {{reads a copy of 'kept', which has changed on the host}}
    exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// A loop reads how often it runs.
module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %n = exec.buffer "n" input input "n" offset 0 : memref<i32>
    %times = exec.buffer "times" activation offset 64 : memref<i32>
    %x = exec.buffer "x" input input "x" offset 192 : memref<8xf32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<8xf32>
    // expected-note @below {{it is started here}}
    exec.all_reduce max %n to %times over ["data"] {exec.async_token = 0 : i64} : memref<i32> to memref<i32>
    // expected-error @below {{touches memory of collective 0, which may still run}}
    exec.loop %i = 4 times(%times : memref<i32>) {
      exec.copy %x to %y : memref<8xf32> to memref<8xf32>
    }
    exec.wait 0
  }
}

// -----

// A loop that data may leave out is no place to wait for what is started around it.
module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    %z = exec.buffer "z" output output "z" offset 192 : memref<16xf32>
    exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    exec.loop %i = 3 times(%n : memref<i32>) from 1 {
      // expected-error @below {{waits for 0 in a loop that data may leave out, but it is started around that}}
      exec.wait 0
    }
    exec.copy %y to %z : memref<16xf32> to memref<16xf32>
  }
}

// -----

// It may not touch what is in flight when it is reached.
module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    %z = exec.buffer "z" output output "z" offset 192 : memref<16xf32>
    // expected-note @below {{it is started here}}
    exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    exec.loop %i = 3 times(%n : memref<i32>) from 1 {
      // expected-error @below {{touches memory of collective 0, which may still run}}
      exec.copy %y to %z : memref<16xf32> to memref<16xf32>
    }
    exec.wait 0
  }
}

// -----

// Another slot of the loop around is not touched.
module attributes {exec.arena_bytes = 448 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<3x16xf32>
    %z = exec.buffer "z" output output "z" offset 320 : memref<16xf32>
    %w = exec.buffer "w" temporary offset 384 : memref<16xf32>
    exec.loop %l = 2 {
      %yl = exec.slot %y[%l] : memref<3x16xf32> -> memref<16xf32>
      %next = exec.shift %l by 1
      %yn = exec.slot %y[%next] : memref<3x16xf32> -> memref<16xf32>
      exec.copy %x to %yl : memref<16xf32> to memref<16xf32>
      exec.all_reduce sum %x to %yn over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
      exec.loop %i = 3 times(%n : memref<i32>) from 1 {
        exec.copy %yl to %z : memref<16xf32> to memref<16xf32>
      }
      exec.wait 0
    }
  }
}

// -----

// The turn before the first is the last one.
module attributes {exec.arena_bytes = 256 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<2x16xf32>
    %last = exec.view %y from 16 : memref<2x16xf32> -> memref<16xf32>
    // expected-note @below {{it is started here}}
    exec.all_reduce sum %x to %last over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    exec.loop %i = 2 {
      %before = exec.shift %i by -1 modulo 2
      %turn = exec.slot %y[%before] : memref<2x16xf32> -> memref<16xf32>
      // expected-error @below {{touches memory of collective 0, which may still run}}
      exec.copy %x to %turn : memref<16xf32> to memref<16xf32>
    }
    exec.wait 0
  }
}

// -----

// What is in flight is remembered as it was started, however much more starts.
module attributes {exec.arena_bytes = 384 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %a = exec.buffer "a" input input "a" offset 0 : memref<16xf32>
    %x = exec.buffer "x" output output "x" offset 64 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    %z = exec.buffer "z" output output "z" offset 192 : memref<16xf32>
    %u = exec.buffer "u" output output "u" offset 256 : memref<16xf32>
    %v = exec.buffer "v" output output "v" offset 320 : memref<16xf32>
    exec.copy %a to %x : memref<16xf32> to memref<16xf32>
    exec.copy %a to %y : memref<16xf32> to memref<16xf32>
    exec.copy %a to %z : memref<16xf32> to memref<16xf32>
    exec.exchange %x pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] {exec.async_token = 0 : i64} : memref<16xf32>
    exec.exchange %y pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] {exec.async_token = 1 : i64} : memref<16xf32>
    exec.exchange %z pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] {exec.async_token = 2 : i64} : memref<16xf32>
    exec.copy %a to %u : memref<16xf32> to memref<16xf32>
    exec.copy %a to %v : memref<16xf32> to memref<16xf32>
    exec.wait 1
    exec.copy %a to %y : memref<16xf32> to memref<16xf32>
    exec.wait 0
    // expected-note @below {{it is started here}}
    exec.exchange %y pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] over ["data"] {exec.async_token = 1 : i64} : memref<16xf32>
    exec.copy %a to %u : memref<16xf32> to memref<16xf32>
    exec.wait 2
    // expected-error @below {{touches memory of collective 1, which may still run}}
    exec.copy %a to %y : memref<16xf32> to memref<16xf32>
    exec.wait 1
  }
}

// -----

// Communication of the last iteration alone does not run where a loop ends before it.
module attributes {exec.arena_bytes = 448 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    %sum = exec.buffer "sum" gradient offset 192 : memref<16xf32>
    exec.loop %i = 3 times(%n : memref<i32>) attributes {train.role = #train.role<microbatch>} {
      exec.copy %x to %sum : memref<16xf32> to memref<16xf32>
      exec.when %i from 2 to 3 {
        // expected-error @below {{runs in iterations from 2 to 3 of a loop that may end after iteration 0: data may leave it out}}
        exec.all_reduce sum %sum to %sum over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
      }
    }
    exec.wait 0
    exec.copy %sum to %y : memref<16xf32> to memref<16xf32>
  }
}

// -----

// Nor does that of a loop inside, which waits for nothing, where the first iteration stands before the loop.
module attributes {exec.arena_bytes = 448 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    exec.loop %i = 3 times(%n : memref<i32>) from 1 {
      exec.loop %l = 2 {
        exec.when %i from 2 to 3 {
          // expected-error @below {{runs in iterations from 2 to 3 of a loop that may end after iteration 1: data may leave it out}}
          exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
        }
      }
    }
  }
}

// -----

// What the first iteration starts is no less than what any number of them does.
module attributes {exec.arena_bytes = 448 : i64} {
  dist.mesh @mesh ["data" = 2]
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %y = exec.buffer "y" output output "y" offset 128 : memref<16xf32>
    exec.loop %i = 3 times(%n : memref<i32>) attributes {train.role = #train.role<microbatch>} {
      exec.when %i from 0 to 1 {
        exec.all_reduce sum %x to %y over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
      }
    }
    exec.wait 0
  }
}

// -----

// A kernel may read the host's memory, once a copy to it has ended, and not where the device has a newer copy.
module attributes {exec.arena_bytes = 192 : i64, exec.host_bytes = 64 : i64} {
  func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
    %0 = arith.addf %x, %x : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %here = exec.buffer "here" gradient offset 128 : memref<16xf32>
    %g = exec.buffer "g" gradient offset 0 : memref<16xf32, "host">
    exec.copy %x to %g {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32, "host">
    exec.wait 0
    exec.launch @double ins(%g : memref<16xf32, "host">) outs(%g : memref<16xf32, "host">)
    exec.copy %g to %here {exec.async_token = 1 : i64} : memref<16xf32, "host"> to memref<16xf32>
    exec.wait 1
    // expected-note @below {{the copy is changed here}}
    exec.launch @double ins(%here : memref<16xf32>) outs(%here : memref<16xf32>)
    // expected-error @below {{reads 'g' on the host, of which a changed copy was not copied back}}
    exec.launch @double ins(%g : memref<16xf32, "host">) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.arena_bytes = 128 : i64, exec.host_bytes = 64 : i64} {
  func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.template = ["elementwise"], exec.iterations = array<i64: 1>, exec.chunks = array<i64: 1>, exec.inplace = [[0, 0]], exec.workspace = 0 : i64} {
    %0 = arith.addf %x, %x : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  exec.program @step {
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %y = exec.buffer "y" output output "y" offset 64 : memref<16xf32>
    %g = exec.buffer "g" gradient offset 0 : memref<16xf32, "host">
    // expected-note @below {{it is started here}}
    exec.copy %x to %g {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32, "host">
    // expected-error @below {{touches memory of copy 0, which may still run}}
    exec.launch @double ins(%g : memref<16xf32, "host">) outs(%y : memref<16xf32>)
    exec.wait 0
  }
}
