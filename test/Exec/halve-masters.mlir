// RUN: meshwright-opt %s --exec-halve-masters --exec-assign-offsets --exec-verify -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --exec-halve-masters -split-input-file 2>&1 | FileCheck %s --check-prefix=HOST

// BEGIN EXAMPLE --exec-halve-masters
train.variable @w : tensor<8xbf16>
train.variable @w.master : tensor<8xf32> state "master" of @w
func.func private @update(%master: tensor<8xf32>, %gradient: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>)
    attributes {exec.inplace = [[0, 0], [1, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.subf %master, %gradient : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
exec.program @step {
  %gradient = exec.buffer "gradient" input input "gradient" : memref<8xf32>
  %w = exec.buffer "w" parameter variable @w : memref<8xbf16>
  %master = exec.buffer "w.master" optimizer variable @w.master : memref<8xf32>
  exec.launch @update ins(%master, %gradient : memref<8xf32>, memref<8xf32>) outs(%master, %w : memref<8xf32>, memref<8xbf16>)
}
// END EXAMPLE

// The variable and its buffer have half of the bytes, and the parameter is read besides.
// CHECK: train.variable @w.master : tensor<8xi16> state "master" of @w
// CHECK: func.func private @update(%[[LOW:.*]]: tensor<8xi16>, %[[G:.*]]: tensor<8xf32>, %[[HIGH:.*]]: tensor<8xbf16>) -> (tensor<8xi16>, tensor<8xbf16>)
// CHECK-SAME: exec.inplace = {{\[}}[0, 0], [2, 1]]
// CHECK-DAG: %[[X:.*]] = arith.extf %[[HIGH]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-DAG: %[[XB:.*]] = arith.bitcast %[[X]] : tensor<8xf32> to tensor<8xi32>
// CHECK-DAG: %[[L:.*]] = arith.extsi %[[LOW]] : tensor<8xi16> to tensor<8xi32>
// CHECK: %[[SUM:.*]] = arith.addi %[[XB]], %[[L]]
// CHECK: %[[OLD:.*]] = arith.bitcast %[[SUM]] : tensor<8xi32> to tensor<8xf32>
// CHECK: %[[FULL:.*]] = arith.subf %[[OLD]], %[[G]]
// Numbers below the normal ones are zeros.
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[FULL]]
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[FULL]]
// CHECK: %[[ZERO:.*]] = arith.mulf %[[FULL]]
// CHECK: %[[SMALL:.*]] = arith.select %[[ABOVE]], %[[ZERO]], %[[FULL]]
// CHECK: %[[NEW:.*]] = arith.select %[[BELOW]], %[[SMALL]], %[[FULL]]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[NEW]] : tensor<8xf32> to tensor<8xi32>
// CHECK: %[[REST:.*]] = arith.trunci %[[BITS]] : tensor<8xi32> to tensor<8xi16>
// CHECK: %[[RESTB:.*]] = arith.extsi %[[REST]]
// CHECK: %[[UPPER:.*]] = arith.subi %[[BITS]], %[[RESTB]]
// CHECK: %[[UP:.*]] = arith.bitcast %[[UPPER]]
// CHECK: %[[IS:.*]] = arith.cmpf oeq, %[[NEW]], %[[NEW]]
// CHECK: %[[SOME:.*]] = arith.select %[[IS]], %[[UP]], %[[NEW]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SOME]]
// CHECK: return %[[REST]], %[[ROUNDED]] : tensor<8xi16>, tensor<8xbf16>
// CHECK-LABEL: exec.program @step
// CHECK: %[[W:.*]] = exec.buffer "w" parameter {{.*}} : memref<8xbf16>
// CHECK: %[[MASTER:.*]] = exec.buffer "w.master" optimizer {{.*}} : memref<8xi16>
// CHECK: exec.launch @update ins(%[[MASTER]], %{{.*}}, %[[W]] : memref<8xi16>, memref<8xf32>, memref<8xbf16>) outs(%[[MASTER]], %[[W]] : memref<8xi16>, memref<8xbf16>)

// -----

// Two launches of one kernel; a kernel that leaves zeros in padding; and a master in f32 whose parameter is in f16.
train.variable @a : tensor<8xbf16>
train.variable @a.master : tensor<8xf32> state "master" of @a
train.variable @b : tensor<8xbf16>
train.variable @b.master : tensor<8xf32> state "master" of @b
train.variable @padded : tensor<8xbf16>
train.variable @padded.master : tensor<8xf32> state "master" of @padded
train.variable @f16 : tensor<8xf16>
train.variable @f16.master : tensor<8xf32> state "master" of @f16
func.func private @both(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.addf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
func.func private @mask(%master: tensor<8xf32>) -> (tensor<8xbf16>, tensor<8xf32>) attributes {exec.inplace = [[0, 1]], exec.kernel, exec.workspace = 0 : i64} {
  %zeros = arith.constant dense<0.0> : tensor<8xf32>
  %narrow = arith.constant dense<0.0> : tensor<8xbf16>
  %rows = arith.constant dense<7> : tensor<8xi32>
  %row = train.iota 0 : () -> tensor<8xi32>
  %inside = arith.cmpi ult, %row, %rows : tensor<8xi32>
  %updated = arith.addf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  %some = arith.select %inside, %rounded, %narrow : tensor<8xi1>, tensor<8xbf16>
  %all = arith.select %inside, %updated, %zeros : tensor<8xi1>, tensor<8xf32>
  return %some, %all : tensor<8xbf16>, tensor<8xf32>
}
func.func private @half(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.addf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xf16>
}
exec.program @step {
  %a = exec.buffer "a" parameter variable @a : memref<8xbf16>
  %am = exec.buffer "a.master" optimizer variable @a.master : memref<8xf32>
  %b = exec.buffer "b" parameter variable @b : memref<8xbf16>
  %bm = exec.buffer "b.master" optimizer variable @b.master : memref<8xf32>
  %padded = exec.buffer "padded" parameter variable @padded : memref<8xbf16>
  %paddedm = exec.buffer "padded.master" optimizer variable @padded.master : memref<8xf32>
  %f16 = exec.buffer "f16" parameter variable @f16 : memref<8xf16>
  %f16m = exec.buffer "f16.master" optimizer variable @f16.master : memref<8xf32>
  exec.launch @both ins(%am : memref<8xf32>) outs(%am, %a : memref<8xf32>, memref<8xbf16>)
  exec.launch @both ins(%bm : memref<8xf32>) outs(%bm, %b : memref<8xf32>, memref<8xbf16>)
  exec.launch @mask ins(%paddedm : memref<8xf32>) outs(%padded, %paddedm : memref<8xbf16>, memref<8xf32>)
  exec.launch @half ins(%f16m : memref<8xf32>) outs(%f16m, %f16 : memref<8xf32>, memref<8xf16>)
}
// CHECK: @a.master : tensor<8xi16>
// CHECK: @b.master : tensor<8xi16>
// CHECK: @padded.master : tensor<8xi16>
// CHECK: @f16.master : tensor<8xf32>

// -----

// Masters stay whole that are read elsewhere (@copied), whose parameter something else writes (@written), beside whose
// update the kernel reads the parameter (@read), and with which another launch of the kernel does something else (@shared).
train.variable @copied : tensor<8xbf16>
train.variable @copied.master : tensor<8xf32> state "master" of @copied
train.variable @written : tensor<8xbf16>
train.variable @written.master : tensor<8xf32> state "master" of @written
train.variable @read : tensor<8xbf16>
train.variable @read.master : tensor<8xf32> state "master" of @read
train.variable @shared : tensor<8xbf16>
train.variable @shared.master : tensor<8xf32> state "master" of @shared
func.func private @of_copied(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.addf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
func.func private @of_written(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.mulf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
func.func private @of_read(%master: tensor<8xf32>, %w: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0], [1, 1]], exec.kernel, exec.workspace = 0 : i64} {
  %wide = arith.extf %w : tensor<8xbf16> to tensor<8xf32>
  %updated = arith.addf %master, %wide : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
func.func private @of_shared(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.subf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
exec.program @step {
  %out = exec.buffer "out" output output "out" : memref<8xf32>
  %part = exec.buffer "part" temporary : memref<8xbf16>
  %copied = exec.buffer "copied" parameter variable @copied : memref<8xbf16>
  %copiedm = exec.buffer "copied.master" optimizer variable @copied.master : memref<8xf32>
  %written = exec.buffer "written" parameter variable @written : memref<8xbf16>
  %writtenm = exec.buffer "written.master" optimizer variable @written.master : memref<8xf32>
  %read = exec.buffer "read" parameter variable @read : memref<8xbf16>
  %readm = exec.buffer "read.master" optimizer variable @read.master : memref<8xf32>
  %shared = exec.buffer "shared" parameter variable @shared : memref<8xbf16>
  %sharedm = exec.buffer "shared.master" optimizer variable @shared.master : memref<8xf32>
  exec.launch @of_copied ins(%copiedm : memref<8xf32>) outs(%copiedm, %copied : memref<8xf32>, memref<8xbf16>)
  exec.copy %copiedm to %out : memref<8xf32> to memref<8xf32>
  exec.launch @of_written ins(%writtenm : memref<8xf32>) outs(%writtenm, %part : memref<8xf32>, memref<8xbf16>)
  exec.copy %part to %written : memref<8xbf16> to memref<8xbf16>
  exec.launch @of_read ins(%readm, %read : memref<8xf32>, memref<8xbf16>) outs(%readm, %read : memref<8xf32>, memref<8xbf16>)
  exec.launch @of_shared ins(%sharedm : memref<8xf32>) outs(%sharedm, %shared : memref<8xf32>, memref<8xbf16>)
  exec.launch @of_shared ins(%out : memref<8xf32>) outs(%out, %part : memref<8xf32>, memref<8xbf16>)
}
// CHECK-LABEL: train.variable @copied
// CHECK-NOT: i16
// CHECK-LABEL: func.func private @of_shared
// CHECK-NOT: i16

// -----

// The upper half of a parameter on the host is not there.
// HOST: remark: masters: parameters on the host leave their f32 masters whole, which takes 16 bytes of the device more than lower halves; --offload optimizer,parameters keeps them on the host too
train.variable @far : tensor<8xbf16>
train.variable @far.master : tensor<8xf32> state "master" of @far
func.func private @of_far(%master: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) attributes {exec.inplace = [[0, 0]], exec.kernel, exec.workspace = 0 : i64} {
  %updated = arith.subf %master, %master : tensor<8xf32>
  %rounded = arith.truncf %updated : tensor<8xf32> to tensor<8xbf16>
  return %updated, %rounded : tensor<8xf32>, tensor<8xbf16>
}
exec.program @step {
  %part = exec.buffer "part" temporary : memref<8xbf16>
  %far = exec.buffer "far" parameter variable @far : memref<8xbf16, "host">
  %farm = exec.buffer "far.master" optimizer variable @far.master : memref<8xf32>
  exec.launch @of_far ins(%farm : memref<8xf32>) outs(%farm, %part : memref<8xf32>, memref<8xbf16>)
  exec.copy %part to %far : memref<8xbf16> to memref<8xbf16, "host">
}
// CHECK-LABEL: train.variable @far
// CHECK-NOT: i16
