// RUN: meshwright-opt %s -split-input-file --dist-verify -verify-diagnostics

// BEGIN EXAMPLE --dist-verify
dist.mesh @mesh ["tensor" = 2]
func.func @f(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tensor}]>>) {
  %0 = train.reduce sum %x over [1] : (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {tensor}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {tensor}>>
  // expected-error @+1 {{'train.gelu' op reads result 0 of train.reduce in @f, which is partial over {tensor}, as if it were complete}}
  %1 = train.gelu %0 : (tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {tensor}>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}]>>
  return
}
// END EXAMPLE

// -----

dist.mesh @mesh ["a" = 2, "b" = 2]
// All of this is as it should be.
func.func @fine(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {b}]>>,
                %w: tensor<6x4xf32, #dist.sharding<@mesh, [{}, {b}]>>) -> tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}]>> {
  %0 = train.linear %x, %w : (tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {b}]>>, tensor<6x4xf32, #dist.sharding<@mesh, [{}, {b}]>>) -> tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}], partial = {b}>>
  %1 = train.scale %0 by 2.0 : (tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}], partial = {b}>>) -> tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}], partial = {b}>>
  %2 = dist.reshard %1 : (tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}], partial = {b}>>) -> tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}]>>
  return %2 : tensor<8x6xf32, #dist.sharding<@mesh, [{a}, {}]>>
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @claim(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {a}]>>) {
  // expected-error @+1 {{result 0 is complete, but the op makes it partial over {a}}}
  %0 = train.reduce sum %x over [1] : (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {a}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @differ(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {}]>>, %y: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {}]>>) {
  // expected-error @+1 {{factor _0 is sharded along {a} in operand 0 but along {} in operand 1}}
  %0 = train.add %x, %y : (tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {}]>>, tensor<8x4xf32, #dist.sharding<@mesh, [{}, {}]>>) -> tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @whole(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{}, {a}]>>, %w: tensor<4xf32, #dist.sharding<@mesh, [{a}]>>) {
  // expected-error @+1 {{needs factor d of operand 0 whole, but it is sharded along {a}}}
  %0 = train.rms_norm %x, %w eps 1.0e-05 : (tensor<8x4xf32, #dist.sharding<@mesh, [{}, {a}]>>, tensor<4xf32, #dist.sharding<@mesh, [{a}]>>) -> tensor<8x4xf32, #dist.sharding<@mesh, [{}, {a}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @twice(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {}]>>, %w: tensor<6x4xf32, #dist.sharding<@mesh, [{a}, {}]>>) {
  // expected-error @+1 {{factor _0 is sharded along {a} in operand 0 but along {} in result 0}}
  %0 = train.linear %x, %w : (tensor<8x4xf32, #dist.sharding<@mesh, [{a}, {}]>>, tensor<6x4xf32, #dist.sharding<@mesh, [{a}, {}]>>) -> tensor<8x6xf32, #dist.sharding<@mesh, [{}, {a}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @outer(%x: tensor<8xf32, #dist.sharding<@mesh, [{a}]>>, %y: tensor<8xf32, #dist.sharding<@mesh, [{a}]>>) {
  // expected-error @+1 {{uses axis {a} for factor t and for another one}}
  %0 = train.contract "s, t -> " %x, %y : (tensor<8xf32, #dist.sharding<@mesh, [{a}]>>, tensor<8xf32, #dist.sharding<@mesh, [{a}]>>) -> tensor<f32, #dist.sharding<@mesh, [], partial = {a}>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @mixed(%x: tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>, %y: tensor<8xf32, #dist.sharding<@mesh, [{}]>>) {
  // expected-error @+1 {{adds argument 1 of @mixed, which is partial over {}, to a term partial over {a}}}
  %0 = train.add %x, %y : (tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>, tensor<8xf32, #dist.sharding<@mesh, [{}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @product(%x: tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>) {
  // expected-error @+1 {{multiplies two values that are partial over {a}}}
  %0 = train.mul %x, %x : (tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>, tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func private @f(%x: tensor<8xf32, #dist.sharding<@mesh, [{}]>>) {
  return
}
func.func @main(%x: tensor<3x8xf32, #dist.sharding<@mesh, [{}, {a}]>>) {
  // expected-error @+1 {{passes argument 0 of @main, which is [{a}], to argument 0 of @f, which is [{}]}}
  train.repeat @f x 3 carry() each(%x) shared() : (tensor<3x8xf32, #dist.sharding<@mesh, [{}, {a}]>>) -> ()
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @main(%x: tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>> {
  // expected-error @+1 {{passes argument 0 of @main, which is partial over {a}, out of the program as if it were complete}}
  return %x : tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @plain(%x: tensor<8xf32, #dist.sharding<@mesh, [{}]>>) {
  // expected-error @+1 {{result 0 of train.gelu in @plain of type 'tensor<8xf32>' has no sharding; dist-propagate gives every tensor one}}
  %0 = train.gelu %x : (tensor<8xf32, #dist.sharding<@mesh, [{}]>>) -> tensor<8xf32>
  return
}

// -----

// Devices would run other numbers of rounds, and wait for each other.
dist.mesh @mesh ["a" = 2]
func.func private @round(%x: tensor<4xf32, #dist.sharding<@mesh, [{}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>> {
  return %x : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
}
func.func @rounds(%x: tensor<4xf32, #dist.sharding<@mesh, [{}]>>, %c: tensor<2x4x6xi32, #dist.sharding<@mesh, [{}, {a}, {}]>>) {
  %n = train.rounds %c slots 2 : (tensor<2x4x6xi32, #dist.sharding<@mesh, [{}, {a}, {}]>>) -> tensor<i32, #dist.sharding<@mesh, [], partial = max {a}>>
  // expected-error @+1 {{passes result 0 of train.rounds in @rounds, which is partial over {a}, as the number of iterations, as if it were complete}}
  %y = train.repeat @round x 3 times %n carry(%x) each() shared() : (tensor<4xf32, #dist.sharding<@mesh, [{}]>>, tensor<i32, #dist.sharding<@mesh, [], partial = max {a}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @main(%x: tensor<8xf32, #dist.sharding<@mesh, [{}], root = {a}>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], root = {a}>> {
  // expected-error @+1 {{passes argument 0 of @main, which only the root over {a} has, out of the program as if all had it}}
  return %x : tensor<8xf32, #dist.sharding<@mesh, [{}], root = {a}>>
}

// -----

// Parameters have rows of their own in files, whatever shards them.
dist.mesh @mesh ["data" = 2]
train.variable @q : tensor<4x4xf32, #dist.sharding<@mesh, [{data}, {}]>> storage <"qk", full = 8>
// expected-error @+1 {{is stored in tensor 'qk', in rows where @q is; give it a storage of its own}}
train.variable @k : tensor<4x4xf32, #dist.sharding<@mesh, [{data}, {}]>> storage <"qk", offset = 2, full = 8>
