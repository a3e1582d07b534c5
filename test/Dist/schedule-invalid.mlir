// RUN: not meshwright-opt %s --dist-schedule=schedule=best 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not meshwright-opt %s --dist-schedule=schedule=zb-h1 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not meshwright-opt %s --dist-schedule=schedule=zb-h2 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: sed 's/pipe = 0 : i64}/&, dist.order = ["F0.0"]/' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: sed 's/pipe = 0 : i64}/&, dist.order = ["F0.0", "F1.0"]/; s/pipe = 1 : i64}/&, dist.order = ["B0.1", "F0.1", "F1.1", "B1.1"]/' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed 's/pipe = 0 : i64}/&, dist.order = ["F0.0", "B0.0", "F1.0", "B1.0"]/; s/pipe = 1 : i64}/&, dist.order = ["B0.1", "F0.1", "F1.1", "B1.1"]/' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=CIRCLE
// RUN: sed 's/pipe = 0 : i64}/&, dist.order = ["F0.0", "F1.0", "B1.0", "B0.0"]/; s/pipe = 1 : i64}/&, dist.order = ["F0.1", "F1.1", "B1.1", "B0.1"]/' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: sed 's/pipe = 0 : i64}/&, dist.order = ["X0.0"]/; s/pipe = 1 : i64}/&, dist.order = []/' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=TASK
// RUN: sed '/dist.send %5/d' %s | not meshwright-opt --dist-schedule 2>&1 | FileCheck %s --check-prefix=NOBODY

// NAME: 'best' is no schedule; there are naive, gpipe, 1f1b
// SPLIT: the stages were not split for schedule zb-h1; give dist-split-stages the same schedule
// FEW: schedule zb-h2 on 2 stages needs 3 microbatches or more; there are 2
// ONE: has no dist.order, but another stage has one; give all or none
// MISSING: dist.order: task B0.0 is missing on stage 0
// CIRCLE: dist.order: the order never ends: stage 0 has B0.0 next, which needs B0.1 of stage 1; stage 1 has B0.1 next, which needs F0.1 of stage 1
// SUM: dist.order: B1.0 is before B0.0; gradients and the loss are summed in the order of the microbatches
// TASK: dist.order: 'X0.0' is no task
// NOBODY: waits for a message that nobody sends
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
    %5 = func.call @backward.1() {dist.task = "B1.1"} : () -> tensor<4xf32>
    dist.send %5 to 0 channel 1 over <@mesh {pipe}> {dist.task = "B1.1"} : tensor<4xf32>
    return
  }
}
