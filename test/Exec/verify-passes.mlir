// What passes make of programs is right by exec-verify, which reads programs by code of its own. Each program here is one that
// a fault in ProgramWalk, by which the passes read them, makes wrong: see test/mutation.
// RUN: meshwright-opt %s --exec-overlap-collectives=min-bytes=32 --exec-assign-offsets --exec-number-collectives --exec-verify -split-input-file -o /dev/null

// What a collective reads is written.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %g = exec.buffer "g" gradient : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  exec.copy %x to %g : memref<16xf32> to memref<16xf32>
  exec.all_reduce sum %g to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.copy %a to %g : memref<16xf32> to memref<16xf32>
}

// -----

// The last element of what it writes is read.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<1xf32>
  %last = exec.view %y from 15 : memref<16xf32> -> memref<1xf32>
  exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.copy %last to %z : memref<1xf32> to memref<1xf32>
}

// -----

// A rank's own part of that.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<8xf32>
  %own = exec.window %y over ["data"] : memref<16xf32> -> memref<8xf32>
  exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.copy %own to %z : memref<8xf32> to memref<8xf32>
}

// -----

// The second half of a buffer, by its number.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %both = exec.buffer "both" temporary : memref<32xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %second = exec.view %both from 16 : memref<32xf32> -> memref<16xf32>
  %halves = exec.view %both : memref<32xf32> -> memref<2x16xf32>
  exec.all_reduce sum %x to %second over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.loop %i = 2 {
    %half = exec.slot %halves[%i] : memref<2x16xf32> -> memref<16xf32>
    exec.when %i from 1 to 2 {
      exec.copy %half to %y : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// The first iteration alone.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.loop %i = 3 {
    exec.when %i from 0 to 1 {
      exec.copy %y to %z : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// The slot of the iteration before, in a loop that counts down.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %all = exec.buffer "all" gradient : memref<4x16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  exec.loop %i = 4 reverse {
    exec.when %i from 0 to 3 {
      %number = exec.shift %i by 1
      %before = exec.slot %all[%number] : memref<4x16xf32> -> memref<16xf32>
      exec.copy %before to %y : memref<16xf32> to memref<16xf32>
    }
    %mine = exec.slot %all[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %mine to %mine over ["data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

// The last slot of a long loop.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %all = exec.buffer "all" gradient : memref<10x16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %last = exec.view %all from 144 : memref<10x16xf32> -> memref<16xf32>
  exec.loop %i = 10 {
    %mine = exec.slot %all[%i] : memref<10x16xf32> -> memref<16xf32>
    exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %mine to %mine over ["data"] : memref<16xf32> to memref<16xf32>
  }
  exec.copy %last to %y : memref<16xf32> to memref<16xf32>
}

// -----

// Its first slot, which the same op with the same token has left first.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %all = exec.buffer "all" gradient : memref<4x16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %first = exec.view %all : memref<4x16xf32> -> memref<16xf32>
  exec.loop %i = 4 {
    %mine = exec.slot %all[%i] : memref<4x16xf32> -> memref<16xf32>
    exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %mine to %mine over ["data"] : memref<16xf32> to memref<16xf32>
  }
  exec.copy %first to %y : memref<16xf32> to memref<16xf32>
}

// -----

// Two slots in turns: every iteration needs what the one before the last has sent.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %g = exec.buffer "g" gradient : memref<2x16xf32>
  %y = exec.buffer "y" output output "y" : memref<2x16xf32>
  exec.loop %i = 9 {
    %turn = exec.shift %i by 0 modulo 2
    %mine = exec.slot %g[%turn] : memref<2x16xf32> -> memref<16xf32>
    %sum = exec.slot %y[%turn] : memref<2x16xf32> -> memref<16xf32>
    exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %mine to %sum over ["data"] : memref<16xf32> to memref<16xf32>
  }
}

// -----

// A wait for one collective is none for the next.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %b = exec.buffer "b" temporary : memref<16xf32>
  %c = exec.buffer "c" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  exec.all_reduce sum %x to %a over ["data"] : memref<16xf32> to memref<16xf32>
  exec.all_reduce sum %x to %b over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %c : memref<16xf32> to memref<16xf32>
  exec.copy %a to %y : memref<16xf32> to memref<16xf32>
  exec.copy %b to %z : memref<16xf32> to memref<16xf32>
}

// -----

// A copy to the host does not queue behind communication.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %kept = exec.buffer "kept" activation : memref<16xf32, "host">
  exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.copy %y to %kept : memref<16xf32> to memref<16xf32, "host">
}

// -----

// Data says how often a loop runs, and comes from a collective.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %n = exec.buffer "n" input input "n" : memref<8xi32>
  %all = exec.buffer "all" temporary : memref<8xi32>
  %times = exec.view %all : memref<8xi32> -> memref<i32>
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  exec.all_reduce max %n to %all over ["data"] : memref<8xi32> to memref<8xi32>
  exec.copy %x to %y : memref<16xf32> to memref<16xf32>
  exec.loop %i = 3 times(%times : memref<i32>) {
    exec.copy %x to %z : memref<16xf32> to memref<16xf32>
  }
}

// -----

// The wait for what a loop inside such a loop reads is before both.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %n = exec.buffer "n" input input "n" : memref<i32>
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  exec.all_reduce sum %x to %y over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.loop %i = 3 times(%n : memref<i32>) from 1 {
    exec.loop %j = 2 {
      exec.copy %y to %z : memref<16xf32> to memref<16xf32>
    }
  }
}

// -----

// As is that for what its second iteration reads.
dist.mesh @mesh ["data" = 2]
exec.program @step {
  %n = exec.buffer "n" input input "n" : memref<i32>
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %all = exec.buffer "all" input input "all" : memref<3x16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %s = exec.buffer "s" temporary : memref<3x16xf32>
  %z = exec.buffer "z" output output "z" : memref<16xf32>
  %second = exec.view %s from 16 : memref<3x16xf32> -> memref<16xf32>
  exec.copy %all to %s : memref<3x16xf32> to memref<3x16xf32>
  exec.all_reduce sum %x to %second over ["data"] : memref<16xf32> to memref<16xf32>
  exec.copy %x to %a : memref<16xf32> to memref<16xf32>
  exec.loop %i = 3 times(%n : memref<i32>) {
    %slot = exec.slot %s[%i] : memref<3x16xf32> -> memref<16xf32>
    exec.copy %slot to %z : memref<16xf32> to memref<16xf32>
  }
}
