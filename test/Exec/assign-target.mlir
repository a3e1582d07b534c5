// RUN: meshwright-opt %s --exec-assign-target="target=cpu flags=cpu=znver4" | FileCheck %s
// RUN: meshwright-opt %s --exec-assign-target=target=cpu | FileCheck %s --check-prefix=NATIVE
// RUN: not meshwright-opt %s --exec-assign-target=target=tpu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not meshwright-opt %s --exec-assign-target="target=cpu flags=gpu-arch=sm_90" 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not meshwright-opt %s --exec-assign-target="target=cpu flags=cpu" 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not meshwright-opt %s --exec-assign-target="target=cuda flags=attention=none" 2>&1 | FileCheck %s --check-prefix=CHOICE

// BEGIN EXAMPLE --exec-assign-target=target=cuda
module {
}
// END EXAMPLE

// CHECK: module attributes {exec.target = #exec.target<"cpu", {processor = "znver4"}>}
// NATIVE: module attributes {exec.target = #exec.target<"cpu">}
// UNKNOWN: target 'tpu' is unknown; there are
// FLAG: --gpu-arch sm_90 is not for --target cpu
// VALUE: 'cpu' sets no flag of a target; write flag=value
// CHOICE: --attention none is not supported; there are auto, cudnn, generated
