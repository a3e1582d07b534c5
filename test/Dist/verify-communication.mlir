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

// -----

dist.mesh @mesh ["a" = 2]
// expected-error @+1 {{calls itself, directly or through others}}
func.func @first(%x: tensor<4xf32>) {
  func.call @second(%x) : (tensor<4xf32>) -> ()
  return
}
func.func private @second(%x: tensor<4xf32>) {
  func.call @first(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

// What one sends both ways at once, each way has room for.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %0 = dist.recv from 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    dist.send %x to 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// The second message finds no room, and waits for one that waits in turn.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    // expected-error @+1 {{never ends: device pipe = 0 waits here for device pipe = 1}}
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %0 = dist.recv from 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %1 = dist.recv from 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    dist.send %x to 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    // expected-note @+1 {{device pipe = 1 waits here for device pipe = 0}}
    dist.send %x to 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// Types differ.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-note @+1 {{which is sent here}}
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{receives 'tensor<8xf32>' on device pipe = 1, but the next message from device pipe = 0 on channel 0 is 'tensor<4xf32>'}}
    %0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<8xf32>
    return
  }
}

// -----

// Nobody sends.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  // expected-note @+1 {{which runs this}}
  func.func @step(%x: tensor<4xf32>) {
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{waits on device pipe = 1 for device pipe = 0, which has ended}}
    %0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// Nobody receives.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{sends from device pipe = 0 what device pipe = 1 never receives}}
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  // expected-note @+1 {{which runs this}}
  func.func @step(%x: tensor<4xf32>) {
    return
  }
}

// -----

// The collectives of one group in another order.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-note @+1 {{which is this}}
    %0 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = dist.all_reduce max %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{is what device pipe = 1 does next among {pipe, data}, but device pipe = 0 does another collective}}
    %0 = dist.all_reduce max %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// Each group has its order; together nobody goes on.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{never ends: device pipe = 0 waits here for device pipe = 1}}
    %0 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = dist.all_reduce sum %x over <@mesh {pipe}> : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-note @+1 {{device pipe = 1 waits here for device pipe = 0}}
    %1 = dist.all_reduce sum %x over <@mesh {pipe}> : (tensor<4xf32>) -> tensor<4xf32>
    %0 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// A collective and a message wait for each other.
dist.mesh @mesh ["pipe" = 2, "data" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-error @+1 {{never ends: device pipe = 0 waits here for device pipe = 1}}
    %0 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]
  func.func @step(%x: tensor<4xf32>) {
    // expected-note @+1 {{device pipe = 1 waits here for device pipe = 0}}
    %1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %0 = dist.all_reduce sum %x over <@mesh {pipe, data}> : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

dist.mesh @mesh ["a" = 2]
func.func @flat(%x: tensor<4xf32>) {
  // expected-error @+1 {{sends from device a = 1 to itself}}
  dist.send %x to 1 channel 0 over <@mesh {a}> : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh ["a" = 2]
module @one attributes {dist.coordinates = {a = 0 : i64}} {
  dist.mesh @mesh ["a" = 2]
  // expected-note @+1 {{as this one has}}
  func.func @eval() {
    return
  }
}
// expected-error @+1 {{program has no @eval, in which devices meet}}
module @two attributes {dist.coordinates = {a = 1 : i64}} {
  dist.mesh @mesh ["a" = 2]
}

// -----

dist.mesh @mesh ["pipe" = 2]
module @first attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
}
// expected-error @+1 {{'dist.coordinates' puts the program at 2 : i64 of axis 'pipe', whose coordinates are 0 to 1}}
module @behind attributes {dist.coordinates = {pipe = 2 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
}

// -----

// Stages may have copies of one parameter, but no other one in its rows of a file.
module {
  dist.mesh @mesh ["pipe" = 2]
  module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
    dist.mesh @mesh ["pipe" = 2]
    train.variable @tied : tensor<4x4xf32> storage <"wte">
    train.variable @k.0 : tensor<2x4xf32> stacked storage <"h.{layer}.k">
  }
  module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
    dist.mesh @mesh ["pipe" = 2]
    train.variable @tied : tensor<4x4xf32> storage <"wte">
    // expected-error @+1 {{is stored in tensor 'h.1.k', in rows where @k.0 is; give it a storage of its own}}
    train.variable @k.1 : tensor<2x4xf32> stacked storage <"h.{layer+1}.k">
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
    dist.mesh @mesh ["pipe" = 2]
    // expected-note @+1 {{it is here too}}
    train.variable @tied : tensor<4x4xf32> storage <"wte">
  }
  module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
    dist.mesh @mesh ["pipe" = 2]
    // expected-error @+1 {{is in several programs, which store it in different rows or shapes; give it a name of its own}}
    train.variable @tied : tensor<4x4xf32> storage <"wte", transpose = true>
  }
}
