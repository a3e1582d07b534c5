// RUN: meshwright compile %s --emit llvm -o %t.ll && FileCheck %s < %t.ll
// RUN: meshwright compile %s --emit object -o %t.o && meshwright inspect %t.o --json | FileCheck %s --check-prefix=PLAN

// Programs are calls in a row; memory is the arena plus constants; a loop's slots
// are reached with a stride.

// CHECK: @meshwright_plan = {{.*}}section ".meshwright.plan"
// CHECK: @meshwright_plan_size = {{.*}}constant i64

module attributes {meshwright.phase = "exec", exec.arena_bytes = 1024 : i64, exec.live_bytes = 1024 : i64, train.batch = 1 : i64,
    train.sequence = 4 : i64, train.microbatches = 1 : i64, train.vocabulary = 8 : i64,
    train.max_positions = 4 : i64, train.optimizer = "sgd"} {
  train.variable @w : tensor<3x4x4xf32> stacked init #train.init<"constant", 1.0 : f64>
      storage #train.storage<"h.{layer}.w">

  func.func private @k(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<f32>)
      attributes {exec.kernel, exec.inplace = [[0, 0]], exec.workspace = 64 : i64} {
    %0 = arith.mulf %x, %x : tensor<4x4xf32>
    %1 = train.reduce sum %0 over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
    return %0, %1 : tensor<4x4xf32>, tensor<f32>
  }

  // Context and arena are kept on the stack, and addresses are computed where they are used.
  // CHECK: ; Function Attrs: noinline nounwind optnone
  // CHECK-NEXT: define void @meshwright_step(ptr %0, ptr %1)
  // CHECK-DAG: store ptr %0, ptr %[[CONTEXT:[0-9]+]]
  // CHECK-DAG: store ptr %1, ptr %[[ARENA:[0-9]+]]
  // CHECK: %[[BASE:.*]] = load ptr, ptr %[[ARENA]]
  // CHECK-NEXT: getelementptr i8, ptr %[[BASE]], i32 256
  // The kernel has two stages: partial sums, and their sum.
  // CHECK: getelementptr {{.*}}, i32 448
  // CHECK-NEXT: store ptr
  // CHECK-NEXT: %[[HERE:.*]] = load ptr, ptr %[[CONTEXT]]
  // CHECK-NEXT: call void @mw_launch(ptr %[[HERE]], ptr @k, ptr {{.*}}, i64 1, i64 1)
  // CHECK: call void @mw_launch(ptr {{.*}}, ptr @k.1, ptr {{.*}}, i64 1, i64 1)
  // The last layer first: 2 * 64 bytes from the stack's start, then down.
  // CHECK: %[[LAYER:.*]] = sub i64 2,
  // CHECK: mul i64 %[[LAYER]], 64
  // CHECK: call void @mw_matmul_f32(ptr {{.*}}, i32 0, i32 1, i64 4, i64 4, i64 4, float 1.000000e+00, ptr {{.*}}, i64 4, ptr {{.*}}, i64 4, float 0.000000e+00, ptr {{.*}}, i64 4, i64 1, i64 0, i64 0, i64 0)
  // CHECK: store i32
  // CHECK: call void @llvm.memcpy{{.*}}i64 64
  exec.program @step {
    %w = exec.buffer "w" parameter variable @w offset 0 : memref<3x4x4xf32>
    %x = exec.buffer "x" activation offset 256 : memref<4x4xf32>
    %y = exec.buffer "y" activation offset 320 : memref<4x4xf32>
    %n = exec.buffer "n" temporary offset 384 : memref<i32>
    %p = exec.buffer "p" workspace offset 448 : memref<64xi8>
    %loss = exec.buffer "loss" output output "loss" offset 512 : memref<f32>
    %start = exec.buffer "start" input input "start" offset 576 : memref<4x4xf32>
    exec.copy %start to %x : memref<4x4xf32> to memref<4x4xf32>
    exec.launch @k ins(%x : memref<4x4xf32>) outs(%x, %loss : memref<4x4xf32>, memref<f32>)
        workspace(%p : memref<64xi8>)
    exec.loop %i = 3 reverse {
      %slot = exec.slot %w[%i] : memref<3x4x4xf32> -> memref<4x4xf32>
      exec.matmul %x, %slot, %y trans(false, true) sizes(4, 4, 4) ld(4, 4, 4) batch 1
          strides(0, 0, 0) alpha 1.0 beta 0.0
          : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
      exec.store_index %i, %n : memref<i32>
      exec.copy %y to %x : memref<4x4xf32> to memref<4x4xf32>
    }
  }
}

// PLAN-DAG: "arena_bytes": 1024
// PLAN-DAG: "hash": "{{[0-9a-f]+}}"
// PLAN-DAG: "local_shape": [
// PLAN-DAG: "tensor": "h.{layer}.w"
// PLAN-DAG: "name": "loss"
