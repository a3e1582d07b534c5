// RUN: not meshwright-opt %s --train-split-layers=chunks=4 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not meshwright-opt %s --train-split-layers="chunks=2 cuts=4" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not meshwright-opt %s --train-split-layers="chunks=2 cuts=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not meshwright-opt %s --train-split-layers="chunks=3 cuts=2,1" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not meshwright-opt %s --train-split-layers="chunks=3 cuts=1" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not meshwright-opt %s --train-split-layers="chunks=2 cuts=one" 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not meshwright-opt %s --train-split-layers="chunks=2 every=2,2,2" 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not meshwright-opt %s --train-split-layers=every=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// Of a stack that is no variable, each part has its layers' slices.
// RUN: sed 's/train.get @h.w/train.fill 0.0/; s/train.fill 0.0 :/train.fill 0.0 : () ->/' %s | meshwright-opt - --train-split-layers=chunks=2 | FileCheck %s --check-prefix=STACK

// MANY: the model has 3 layers, fewer than the 4 parts of the pipeline (stages times chunks a stage); use a shorter mesh axis 'pipe' or fewer chunks, 3 parts at most
// RANGE: cuts '4': layer 4 cannot begin a stage; with 3 layers split points are 1 to 3, which leaves the head alone
// ZERO: cuts '0': layer 0 cannot begin a stage
// ORDER: cuts '2,1': 1 does not come after 2; layer numbers must ascend
// NUMBER: cuts '1': 1 layer numbers make 2 parts, but the pipeline has 3; give 2
// WORD: --cuts option: 'one': 'one' is no layer number
// GROUPS: every: 3 numbers for 2 chunks; give one, or one for each
// NEGATIVE: every: '-1' is no number of layers
// STACK: %[[FIRST:.*]] = train.slice %[[STACK:.*]] rows 1 : (tensor<3x4x4xf32>) -> tensor<1x4x4xf32>
// STACK: train.repeat @{{.*}} x 1 carry(%{{.*}}) each(%[[FIRST]])
// STACK: train.slice %[[STACK]] from 1 rows 2 : (tensor<3x4x4xf32>) -> tensor<2x4x4xf32>
train.variable @h.w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = train.get @h.w : tensor<3x4x4xf32>
  %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4xf32>
  %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// What else reads a stack would keep weights of its own.
// RUN: sed 's/^\( *\)%loss = train.reduce.*/&\n\1%1 = train.reduce sum %w over [0, 1, 2] : (tensor<3x4x4xf32>) -> tensor<f32>/; s/return %loss/return %1/' %s | not meshwright-opt - --train-split-layers=chunks=2 2>&1 | FileCheck %s --check-prefix=READ
// READ: reads all layers of @h.w, which are split into stages or groups; give what reads them variables of its own, or leave out stages and --remat every:K
// RUN: sed 's/layer x 3 carry/layer x 3 reverse carry/' %s | not meshwright-opt - --train-split-layers=chunks=2 2>&1 | FileCheck %s --check-prefix=REVERSE
// REVERSE: runs its layers from the last to the first; such layers cannot be split into stages or groups
// RUN: sed 's/^\( *\)%y = \(train.repeat.*\)carry(%x)\(.*\)/\1%z = \2carry(%x)\3\n\1%y = \2carry(%z)\3/' %s | not meshwright-opt - --train-split-layers="chunks=3 cuts=1,5" 2>&1 | FileCheck %s --check-prefix=APART
// RUN: sed 's/^\( *\)%y = \(train.repeat.*\)carry(%x)\(.*\)/\1%z = \2carry(%x)\3\n\1%y = \2carry(%z)\3/' %s | not meshwright-opt - --train-split-layers="chunks=2 cuts=4" 2>&1 | FileCheck %s --check-prefix=APART
// APART: takes slices of @h.w, which other layers take too, and both are not split alike; give --cuts that do, or fewer stages
