// RUN: meshwright-opt %s -split-input-file --dist-propagate -verify-diagnostics

// expected-error @+1 {{has no dist.mesh; dist-apply-strategy writes one}}
module {
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{seed of argument 0 names axis "b", which @mesh does not have; its axes are {a}}}
func.func @f(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{b}, {}]>}) {
  return
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{seed of the variable has 1 dimensions, the tensor has 2}}
train.variable @w : tensor<6x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@mesh, [{a}]>}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{seed of argument 0 must not be partial: only reductions make partial values}}
func.func @f(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{}, {}], partial = {a}>}) {
  return
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{seed of argument 0 is on @grid but the mesh is @mesh}}
func.func @f(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@grid, [{a}, {}]>}) {
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{has no sharding rule, so it cannot run on a mesh; ops of floor 2 implement ShardingRuleOpInterface}}
  %0 = math.exp %x : tensor<8x4xf32>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{calls itself, directly or through others}}
func.func @f(%x: tensor<8x4xf32>) {
  func.call @f(%x) : (tensor<8x4xf32>) -> ()
  return
}

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{is the second of this module; one mesh is used}}
dist.mesh @grid ["a" = 2]

// -----

dist.mesh @mesh ["t.0" = 2, "t.1" = 2]
// expected-error @+1 {{seed of argument 0 means axis {t.0} twice, once as "t"}}
func.func @twice(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<@mesh, [{t.0}, {t}]>}) {
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @count(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{has 1 results and 2 seeds}}
  %0 = train.gelu %x {dist.seed = [unit, unit]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
