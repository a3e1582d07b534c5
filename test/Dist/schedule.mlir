// RUN: meshwright-opt %s --dist-schedule | FileCheck %s
// RUN: meshwright-opt %s --dist-schedule=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// The order of the module wins.
// RUN: sed 's/{pipe = 0 : i64}/{pipe = 0 : i64}, dist.order = ["F0.0", "F1.0", "F2.0", "B0.0", "B1.0", "B2.0"]/; s/{pipe = 1 : i64}/{pipe = 1 : i64}, dist.order = ["F0.1", "F1.1", "F2.1", "B0.1", "B1.1", "B2.1"]/' %s | meshwright-opt --dist-schedule | FileCheck %s --check-prefix=GPIPE

// BEGIN EXAMPLE --dist-schedule
dist.mesh @mesh ["pipe" = 2]
module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.0() -> tensor<4xf32>
  func.func private @backward.0(%dy: tensor<4xf32>)
  func.func @step() {
    %0 = func.call @forward.0() {dist.task = "F0.0"} : () -> tensor<4xf32>
    dist.send %0 to 1 channel 0 over <@mesh {pipe}> {dist.task = "F0.0"} : tensor<4xf32>
    %1 = dist.recv from 1 channel 1 over <@mesh {pipe}> {dist.task = "B0.0"} : tensor<4xf32>
    func.call @backward.0(%1) {dist.task = "B0.0"} : (tensor<4xf32>) -> ()
    %2 = func.call @forward.0() {dist.task = "F1.0"} : () -> tensor<4xf32>
    dist.send %2 to 1 channel 0 over <@mesh {pipe}> {dist.task = "F1.0"} : tensor<4xf32>
    %3 = dist.recv from 1 channel 1 over <@mesh {pipe}> {dist.task = "B1.0"} : tensor<4xf32>
    func.call @backward.0(%3) {dist.task = "B1.0"} : (tensor<4xf32>) -> ()
    %4 = func.call @forward.0() {dist.task = "F2.0"} : () -> tensor<4xf32>
    dist.send %4 to 1 channel 0 over <@mesh {pipe}> {dist.task = "F2.0"} : tensor<4xf32>
    %5 = dist.recv from 1 channel 1 over <@mesh {pipe}> {dist.task = "B2.0"} : tensor<4xf32>
    func.call @backward.0(%5) {dist.task = "B2.0"} : (tensor<4xf32>) -> ()
    return
  }
}
module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @forward.1(%x: tensor<4xf32>)
  func.func private @backward.1() -> tensor<4xf32>
  func.func @step() {
    %0 = dist.recv from 0 channel 0 over <@mesh {pipe}> {dist.task = "F0.1"} : tensor<4xf32>
    func.call @forward.1(%0) {dist.task = "F0.1"} : (tensor<4xf32>) -> ()
    %1 = func.call @backward.1() {dist.task = "B0.1"} : () -> tensor<4xf32>
    dist.send %1 to 0 channel 1 over <@mesh {pipe}> {dist.task = "B0.1"} : tensor<4xf32>
    %2 = dist.recv from 0 channel 0 over <@mesh {pipe}> {dist.task = "F1.1"} : tensor<4xf32>
    func.call @forward.1(%2) {dist.task = "F1.1"} : (tensor<4xf32>) -> ()
    %3 = func.call @backward.1() {dist.task = "B1.1"} : () -> tensor<4xf32>
    dist.send %3 to 0 channel 1 over <@mesh {pipe}> {dist.task = "B1.1"} : tensor<4xf32>
    %4 = dist.recv from 0 channel 0 over <@mesh {pipe}> {dist.task = "F2.1"} : tensor<4xf32>
    func.call @forward.1(%4) {dist.task = "F2.1"} : (tensor<4xf32>) -> ()
    %5 = func.call @backward.1() {dist.task = "B2.1"} : () -> tensor<4xf32>
    dist.send %5 to 0 channel 1 over <@mesh {pipe}> {dist.task = "B2.1"} : tensor<4xf32>
    return
  }
}
// END EXAMPLE

// The first stage works one microbatch ahead.
// CHECK-LABEL: module @stage0
// CHECK: func.func @step
// CHECK-NEXT: %[[A:.*]] = call @forward.0() {dist.task = "F0.0"}
// CHECK-NEXT: dist.send %[[A]] to 1 channel 0 over <@mesh {pipe}> :
// CHECK-NEXT: %[[B:.*]] = call @forward.0() {dist.task = "F1.0"}
// CHECK-NEXT: dist.send %[[B]] to 1
// CHECK-NEXT: %[[D:.*]] = dist.recv from 1 channel 1
// CHECK-NEXT: call @backward.0(%[[D]]) {dist.task = "B0.0"}
// CHECK-NEXT: call @forward.0() {dist.task = "F2.0"}
// CHECK-LABEL: module @stage1
// CHECK: call @forward.1(%{{.*}}) {dist.task = "F0.1"}
// CHECK-NEXT: call @backward.1() {dist.task = "B0.1"}

// GPIPE-LABEL: module @stage0
// GPIPE-SAME: attributes {dist.coordinates = {pipe = 0 : i64}, dist.held = 3 : i64} {
// GPIPE: "F0.0"
// GPIPE: "F1.0"
// GPIPE: "F2.0"
// GPIPE: "B0.0"
// GPIPE-LABEL: module @stage1
// GPIPE: "F2.1"
// GPIPE: "B0.1"
