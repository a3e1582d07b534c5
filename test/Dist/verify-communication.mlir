// RUN: meshwright-opt %s -split-input-file --dist-verify-communication -allow-unregistered-dialect -verify-diagnostics

// BEGIN EXAMPLE --dist-verify-communication -allow-unregistered-dialect
dist.mesh @mesh ["data" = 2]
func.func @branches(%x: tensor<4xf32>) {
  "test.branch"() [^one, ^two] : () -> ()
^one:
  // expected-error @+1 {{stands in a function with branches, so some devices could pass it by while others wait in it}}
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  "test.branch"() [^two] : () -> ()
^two:
  return
}
// END EXAMPLE

// -----

dist.mesh @mesh ["a" = 2]
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {a}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @fine(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.repeat @layer x 3 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @encoded(%x: tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {a}>>) {
  // expected-error @+1 {{still has a sharding, 'tensor<4xf32, #dist.sharding<@mesh, [{}]>>'; run dist-partition first}}
  %0 = dist.reshard %x : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {a}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
func.func private @outside()
func.func @unknown() {
  // expected-error @+1 {{calls @outside, which is not a function with a body}}
  func.call @outside() : () -> ()
  return
}
