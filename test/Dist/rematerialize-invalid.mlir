// RUN: not meshwright-opt %s --dist-rematerialize=policy=full,none 2>&1 | FileCheck %s
// CHECK: has 1 chunk of layers, but 2 policies of rematerialization; give one, or one for each
// RUN: meshwright-opt %s --dist-rematerialize=policy=every:4 -verify-diagnostics
// RUN: sed 's/ attributes {train.role = #train.role<[a-z]*>}//; s/ {train.role = #train.role<[a-z]*>}//' %s | not meshwright-opt - --dist-rematerialize=policy=full 2>&1 | FileCheck %s --check-prefix=ROLE
// ROLE: has no train.role, by which forward and backward are told apart; train-autodiff gives layers one
dist.mesh @mesh []
func.func private @layer(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {train.role = #train.role<forward>} {
  %y = train.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %y, %x : tensor<8xf32>, tensor<8xf32>
}
func.func private @back(%dy: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> attributes {train.role = #train.role<backward>} {
  %0 = train.relu_grad %dy, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{repeats 6 times, which groups of 4 layers do not divide; train-split-layers makes a run of its own of what is left over, so compile from the model, or use every:K with K = 1, 2, 3, 6}}
  %y:2 = train.repeat @layer x 6 carry(%x) each() shared() {train.role = #train.role<forward>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<6x8xf32>)
  %d = train.repeat @back x 6 reverse carry(%y#0) each(%y#1) shared() {train.role = #train.role<backward>} : (tensor<8xf32>, tensor<6x8xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}
