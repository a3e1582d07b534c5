// RUN: split-file %s %t
// RUN: meshwright compile %t/experts.mlir --target cuda --gpu-arch sm_80 --emit ptx -o %t.ptx && FileCheck %t/experts.mlir < %t.ptx
// RUN: FileCheck %t/experts.mlir --check-prefix=NONE < %t.ptx
// RUN: meshwright compile %t/capacity.mlir --target cuda --emit ptx -o - | FileCheck %t/capacity.mlir
// RUN: meshwright compile %t/rounds.mlir --target cuda --emit ptx -o - | FileCheck %t/rounds.mlir
// RUN: not meshwright compile %t/scratch.mlir --target cuda --emit ptx -o - 2>&1 | FileCheck %t/scratch.mlir
// The host reads how many rounds there are, so no graph is allowed for; of one round of all slots it is.
// RUN: meshwright compile %inputs/golden-more/mixtral/config.json --target cuda --mesh expert=5 --emit object -o %t.o
// RUN: meshwright inspect %t.o --json | FileCheck %s --check-prefix=FOLLOWS
// RUN: meshwright compile %inputs/golden-more/mixtral/config.json --target cuda --mesh expert=5 --expert-buffer 8 --emit object -o %t.o
// RUN: meshwright inspect %t.o --json | FileCheck %s --check-prefix=GRAPH
// FOLLOWS: "source": "0 nodes at most
// GRAPH: "source": "{{[1-9][0-9,]*}} nodes at most
// RUN: not meshwright compile %t/many.mlir --target cuda --emit ptx -o - 2>&1 | FileCheck %t/many.mlir

//--- experts.mlir
// The order of rows is three launches; a product is one for all experts, on tensor cores where rows begin at multiples of 16
// bytes; a gradient has two before it, which list where each expert has rows. None of them has atomic operations.
// NONE-NOT: {{[[:space:]]}}atom.
// NONE-NOT: {{[[:space:]]}}red.
// CHECK: .entry route$0(
// CHECK: vote.sync.ballot
// CHECK: .entry route$0$offsets(
// CHECK: .entry route$0$rows(
// CHECK: .entry grouped_matmul$1(
// CHECK: cp.async
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// Rows of 36 bytes.
// CHECK: .entry grouped_matmul$2(
// CHECK-NOT: mma.sync
// CHECK: fma.rn.f32
// CHECK: .entry grouped_matmul_grad$3$masks(
// CHECK: vote.sync.ballot
// CHECK: .entry grouped_matmul_grad$3$lists(
// CHECK: .entry grouped_matmul_grad$3(
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 0 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  exec.program private @step ins(%mask: memref<2x4x6xf32>, %x: memref<3x2x8x16xbf16>, %v: memref<6x18x16xbf16>)
      inouts(%w: memref<6x24x16xbf16>)
      outs(%chosen: memref<3x2x4xi32>, %rows: memref<3x2x4xi32>, %choices: memref<3x2x8xi32>, %experts: memref<3x2x8xi32>, %scratch: memref<1024xi8>, %y: memref<3x2x8x24xbf16>, %z: memref<3x2x8x18xbf16>) attributes {exec.arena_bytes = 0 : i64} {
    exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch)
      : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x8xi32>, memref<3x2x8xi32>, memref<1024xi8>) -> ()
    exec.grouped_matmul %x, %w of %experts to %y
      : (memref<3x2x8x16xbf16>, memref<6x24x16xbf16>, memref<3x2x8xi32>, memref<3x2x8x24xbf16>) -> ()
    exec.grouped_matmul %x, %v of %experts to %z
      : (memref<3x2x8x16xbf16>, memref<6x18x16xbf16>, memref<3x2x8xi32>, memref<3x2x8x18xbf16>) -> ()
    exec.grouped_matmul_grad %y, %x of %experts to %w workspace(%scratch)
      : (memref<3x2x8x24xbf16>, memref<3x2x8x16xbf16>, memref<3x2x8xi32>, memref<6x24x16xbf16>, memref<1024xi8>) -> ()
  }
}

//--- capacity.mlir
// One launch more, which leaves out choices. The same without a capacity is another kernel.
// CHECK: .entry route$0(
// CHECK: .entry route$0$kept(
// CHECK: .entry route$0$offsets(
// CHECK: .entry route$0$rows(
// CHECK: .entry route$1(
// CHECK-NOT: kept
// CHECK: .entry route$1$offsets(
module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 0 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  exec.program private @step ins(%mask: memref<2x4x6xf32>)
      outs(%chosen: memref<3x2x4xi32>, %rows: memref<3x2x4xi32>, %choices: memref<3x2x8xi32>, %experts: memref<3x2x8xi32>, %scratch: memref<1024xi8>) attributes {exec.arena_bytes = 0 : i64} {
    exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch) {capacity = 2 : i64}
      : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x8xi32>, memref<3x2x8xi32>, memref<1024xi8>) -> ()
    exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch)
      : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x8xi32>, memref<3x2x8xi32>, memref<1024xi8>) -> ()
  }
}

//--- rounds.mlir
// The same with other slots is another kernel.
// CHECK: .entry rounds$0(
// CHECK: .entry rounds$1(
// CHECK: .entry rows_of_round$2(
module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 0 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  exec.program private @step ins(%rows: memref<3x2x4xi32>, %choices: memref<3x2x8xi32>, %experts: memref<3x2x8xi32>, %round: memref<i32>)
      outs(%rounds: memref<i32>, %ownRows: memref<3x2x4xi32>, %ownChoices: memref<3x2x3xi32>, %ownExperts: memref<3x2x3xi32>) attributes {exec.arena_bytes = 0 : i64} {
    exec.rounds %choices to %rounds slots 3 : (memref<3x2x8xi32>, memref<i32>) -> ()
    exec.rounds %choices to %rounds slots 4 : (memref<3x2x8xi32>, memref<i32>) -> ()
    exec.rows_of_round %round of %rows, %choices, %experts to %ownRows, %ownChoices, %ownExperts
      : (memref<i32>, memref<3x2x4xi32>, memref<3x2x8xi32>, memref<3x2x8xi32>, memref<3x2x4xi32>, memref<3x2x3xi32>, memref<3x2x3xi32>) -> ()
  }
}

//--- scratch.mlir
// CHECK: 'exec.route' op gives 64 bytes of workspace where 96 are needed
module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 0 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  exec.program private @step ins(%mask: memref<2x4x6xf32>)
      outs(%chosen: memref<3x2x4xi32>, %rows: memref<3x2x4xi32>, %choices: memref<3x2x8xi32>, %experts: memref<3x2x8xi32>, %scratch: memref<64xi8>) attributes {exec.arena_bytes = 0 : i64} {
    exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch)
      : (memref<2x4x6xf32>, memref<3x2x4xi32>, memref<3x2x4xi32>, memref<3x2x8xi32>, memref<3x2x8xi32>, memref<64xi8>) -> ()
  }
}

//--- many.mlir
// CHECK: 'exec.route' op has 5000 experts, of which a token chooses 2, too many for a block of threads; up to 4096 experts and 64 choices work
module attributes {meshwright.phase = "exec", exec.target = #exec.target<"cuda">, exec.arena_bytes = 0 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  exec.program private @step ins(%mask: memref<1x4x5000xf32>)
      outs(%chosen: memref<2x1x4xi32>, %rows: memref<2x1x4xi32>, %choices: memref<1x1x8xi32>, %experts: memref<1x1x8xi32>, %scratch: memref<60000xi8>) attributes {exec.arena_bytes = 0 : i64} {
    exec.route %mask to %chosen, %rows, %choices, %experts workspace(%scratch)
      : (memref<1x4x5000xf32>, memref<2x1x4xi32>, memref<2x1x4xi32>, memref<1x1x8xi32>, memref<1x1x8xi32>, memref<60000xi8>) -> ()
  }
}
