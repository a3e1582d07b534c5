// RUN: meshwright-opt %s -split-input-file --dist-verify-communication -verify-diagnostics

// Two stages that do two microbatches as gpipe does, which keeps both.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k1, %d1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    %x1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%x1) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// One more than the schedule says is kept: the results of a forward task stay until the last
// backward or weight task that reads them.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    // expected-error @+1 {{runs while the stage keeps results of 2 forward tasks, F0.0, F1.0; its schedule allows 1 at most}}
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k1, %d1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    %x1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%x1) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// In the order of 1f1b the same tasks would be fine, did microbatch 1 not read what microbatch 0 keeps.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    // expected-error @+1 {{runs while the stage keeps results of 2 forward tasks, F0.0, F1.0; its schedule allows 1 at most}}
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %k1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    %x1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%x1) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// Microbatch 0 goes twice, and 1 never.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    // expected-note @+1 {{sent here}}
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k1, %d1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    // expected-error @+1 {{gives F1.1 what F0.0 has made, which is another microbatch's}}
    %x1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%x1) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// The same, to a task of the same microbatch.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    // expected-note @+1 {{the first time}}
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    // expected-error @+1 {{sends what F0.0 has made a second time}}
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k1, %d1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %x0b = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %s = train.add %x0, %x0b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %k0 = func.call @forward.1(%s) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%k0) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// Of microbatch 1 nothing goes there.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    // expected-error @+1 {{and the others of channel 0 from stage 0 to stage 1 send nothing of microbatch 1; every one crosses once}}
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %d0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %d0) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    %d1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k1, %d1) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d0 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%k0) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    dist.send %d1 to 0 channel 1 over <@mesh {pipe}> : tensor<4xf32>
    return
  }
}

// -----

// Nothing comes back.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @backward.0(%kept: tensor<4xf32>, %dy: tensor<4xf32>) {
    return
  }
  func.func @step(%x: tensor<4xf32>) {
    %y0, %k0 = func.call @forward.0(%x) {dist.task = "F0.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %y1, %k1 = func.call @forward.0(%x) {dist.task = "F1.0"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    func.call @backward.0(%k0, %x) {dist.task = "B0.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    func.call @backward.0(%k1, %x) {dist.task = "B1.0"} : (tensor<4xf32>, tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}, dist.held = 1 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func private @backward.1(%kept: tensor<4xf32>) -> tensor<4xf32> {
    return %kept : tensor<4xf32>
  }
  // expected-error @+1 {{sends nothing backward from chunk 1 to chunk 0; every microbatch crosses every boundary once each way}}
  func.func @step() {
    %x0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k0 = func.call @forward.1(%x0) {dist.task = "F0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = func.call @backward.1(%k0) {dist.task = "B0.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %x1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<4xf32>
    %k1 = func.call @forward.1(%x1) {dist.task = "F1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    %d1 = func.call @backward.1(%k1) {dist.task = "B1.1"} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// A call's task is read from its name.
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward() {
    return
  }
  func.func @step() {
    // expected-error @below {{'F0.-1' is no task; one looks like F3.1, B3.1 or W3.1, microbatch 3 of chunk 1}}
    func.call @forward() {dist.task = "F0.-1"} : () -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
  func.func @step() {
    return
  }
}
