// RUN: meshwright-interpret %s --function sum | FileCheck %s --check-prefix SUM
// The same seed and names give the same inputs, another seed others:
// RUN: meshwright-interpret %s --function sum --seed 2 | grep result0 > %t.first
// RUN: meshwright-interpret %s --function same --seed 2 | diff %t.first -
// RUN: meshwright-interpret %s --function same --seed 3 | not diff %t.first -

// SUM: result0 : tensor<2xf32> = [{{-?[0-9.]+}}, {{-?[0-9.]+}}]
// SUM-NEXT: result1 : tensor<3x3xi32> = [{{([01], ){8}[01]}}]
func.func @sum(%x: tensor<2xf32>, %y: tensor<2xf32>, %ids: tensor<3x3xi32>) -> (tensor<2xf32>, tensor<3x3xi32>) {
  %z = train.add %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %z, %ids : tensor<2xf32>, tensor<3x3xi32>
}
func.func @same(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %z = arith.addf %x, %y : tensor<2xf32>
  return %z : tensor<2xf32>
}

// --precision f32 rounds results to their element types, f64 does not.
// RUN: meshwright-interpret %s --function round | FileCheck %s --check-prefix F64
// RUN: meshwright-interpret %s --function round --precision f32 | FileCheck %s --check-prefix F32
// F64: result0 : tensor<bf16> = 0.33{{3+}}
// F32: result0 : tensor<bf16> = 0.333984375
func.func @round() -> tensor<bf16> {
  %one = arith.constant dense<1.0> : tensor<bf16>
  %three = arith.constant dense<3.0> : tensor<bf16>
  %third = arith.divf %one, %three : tensor<bf16>
  return %third : tensor<bf16>
}

// Calls, repetition backwards with slices, stacks and the iteration's number:
// carried 1 -> 1*2+2 = 4 -> 4*2+1 = 9 -> 9*2+0 = 18.
// RUN: meshwright-interpret %s --function repeat | FileCheck %s --check-prefix REPEAT
// REPEAT: result0 : tensor<f32> = 18
// REPEAT-NEXT: result1 : tensor<3xf32> = [9, 4, 1]
func.func private @body(%i: tensor<i32>, %x: tensor<f32>, %k: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %n = arith.sitofp %i : tensor<i32> to tensor<f32>
  %y = arith.mulf %x, %k : tensor<f32>
  %z = arith.addf %y, %n : tensor<f32>
  return %z, %x : tensor<f32>, tensor<f32>
}
func.func @repeat() -> (tensor<f32>, tensor<3xf32>) {
  %x = arith.constant dense<1.0> : tensor<f32>
  %k = arith.constant dense<2.0> : tensor<3xf32>
  %y, %kept = train.repeat @body x 3 reverse indexed carry(%x) each(%k) shared()
      : (tensor<f32>, tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
  return %y, %kept : tensor<f32>, tensor<3xf32>
}

// Variables live in program order.
// RUN: meshwright-interpret %s --function twice | FileCheck %s --check-prefix TWICE
// TWICE: result0 : tensor<2xf32> = [5, 5]
train.variable @v : tensor<2xf32> init <"constant", 1.0 : f64>
func.func @twice() -> tensor<2xf32> {
  %c = arith.constant dense<2.5> : tensor<2xf32>
  train.set @v, %c : tensor<2xf32>
  %v = train.get @v : tensor<2xf32>
  %s = train.scale %v by 2.0 : (tensor<2xf32>) -> tensor<2xf32>
  train.set @v, %s : tensor<2xf32>
  %w = train.get @v : tensor<2xf32>
  return %w : tensor<2xf32>
}

// RUN: not meshwright-interpret %s --function absent 2>&1 | FileCheck %s --check-prefix ABSENT
// ABSENT: there is no function @absent; there are: @sum @same
// An error shows its line of the file and not the whole module.
// ABSENT-NOT: current operation
// RUN: not meshwright-interpret %s 2>&1 | FileCheck %s --check-prefix WHICH
// WHICH: error: several functions can be run; choose one: --function sum, --function same, --function round

// A sum over microbatches has no value before a pass makes one.
// RUN: not meshwright-interpret %s --function batch 2>&1 | FileCheck %s --check-prefix BATCH
// BATCH: 'train.batch_sum' op is a sum over all microbatches, which no function has yet: interpret what train-count-batch makes of the module
func.func @batch(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = train.batch_sum %x : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
