// RUN: meshwright-opt %s --exec-assign-offsets --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: module attributes {exec.arena_bytes = 896 : i64, exec.live_bytes = 896 : i64,
// CHECK-SAME: exec.memory = {input = 64 : i64, output = 64 : i64, parameter = 256 : i64, temporary = 512 : i64}}
train.variable @v : tensor<2x32xf32> stacked init <"normal", 0.1 : f64> storage <"h.{layer}">
func.func private @k(%x: tensor<32xf32>) -> tensor<32xf32> attributes {exec.kernel}
func.func private @sum(%x: tensor<64xf32>, %y: tensor<f32>) -> tensor<f32> attributes {exec.kernel}
func.func private @big(%x: tensor<f32>) -> tensor<64xf32> attributes {exec.kernel}

// The variable comes first, then the input, then the output, then what lives only
// for a while: %c is carried, so it lives through the loop and not only where it
// is used; %t and %late are not live together.
// CHECK-LABEL: exec.program @step
// CHECK-DAG: exec.buffer "v" parameter variable @v offset 0
// CHECK-DAG: exec.buffer "x" input input "x" offset 256
// CHECK-DAG: exec.buffer "loss" output output "loss" offset 320
// CHECK-DAG: exec.buffer "c" temporary offset {{384|768}}
// CHECK-DAG: exec.buffer "t" temporary offset {{384|512|640|768}}
// CHECK-NOT: "unused"
exec.program @step {
  %v = exec.buffer "v" parameter variable @v : memref<2x32xf32>
  %x = exec.buffer "x" input input "x" : memref<f32>
  %loss = exec.buffer "loss" output output "loss" : memref<f32>
  %c = exec.buffer "c" temporary : memref<32xf32>
  %t = exec.buffer "t" temporary : memref<32xf32>
  %late = exec.buffer "late" temporary : memref<64xf32>
  %unused = exec.buffer "unused" temporary : memref<512xf32>
  %first = exec.view %v : memref<2x32xf32> -> memref<32xf32>
  exec.launch @k ins(%first : memref<32xf32>) outs(%c : memref<32xf32>)
  exec.loop %i = 2 {
    exec.launch @k ins(%c : memref<32xf32>) outs(%t : memref<32xf32>)
    %slot = exec.slot %v[%i] : memref<2x32xf32> -> memref<32xf32>
    exec.launch @k ins(%t : memref<32xf32>) outs(%slot : memref<32xf32>)
    exec.launch @k ins(%t : memref<32xf32>) outs(%c : memref<32xf32>)
  }
  exec.launch @big ins(%x : memref<f32>) outs(%late : memref<64xf32>)
  exec.launch @sum ins(%late, %x : memref<64xf32>, memref<f32>) outs(%loss : memref<f32>)
}

// Another program has what persists at the same place, and its own scratch memory
// where the first one's was.
// CHECK-LABEL: exec.program @eval
// CHECK-DAG: exec.buffer "x" input input "x" offset 256
// CHECK-DAG: exec.buffer "loss" output output "loss" offset 320
// CHECK-DAG: exec.buffer "a" temporary offset {{384|640}}
// CHECK-DAG: exec.buffer "b" temporary offset {{384|640}}
exec.program @eval {
  %x = exec.buffer "x" input input "x" : memref<f32>
  %a = exec.buffer "a" temporary : memref<64xf32>
  %b = exec.buffer "b" temporary : memref<64xf32>
  %loss = exec.buffer "loss" output output "loss" : memref<f32>
  exec.launch @big ins(%x : memref<f32>) outs(%a : memref<64xf32>)
  exec.copy %a to %b : memref<64xf32> to memref<64xf32>
  exec.launch @sum ins(%b, %x : memref<64xf32>, memref<f32>) outs(%loss : memref<f32>)
}

// -----

exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<4xf32>
}
exec.program @eval {
  // expected-error @below {{'x' is 'memref<8xf32>' here and 'memref<4xf32>' in another program}}
  %x = exec.buffer "x" input input "x" : memref<8xf32>
}

// -----

// What the next iteration waits for keeps its memory until then.
// CHECK: exec.arena_bytes = 256 : i64
exec.program @step {
  %x = exec.buffer "x" input input "x" : memref<16xf32>
  %y = exec.buffer "y" output output "y" : memref<16xf32>
  %a = exec.buffer "a" temporary : memref<16xf32>
  %t = exec.buffer "t" temporary : memref<16xf32>
  exec.loop %i = 3 {
    exec.wait 0
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.when %i from 0 to 2 {
      exec.all_reduce sum %a to %a over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    }
    exec.copy %x to %t : memref<16xf32> to memref<16xf32>
    exec.copy %t to %y : memref<16xf32> to memref<16xf32>
  }
}
