// RUN: meshwright-opt %s --train-adapt="lora=r=2,alpha=8,targets=up+c_attn" | FileCheck %s
// RUN: meshwright-opt %s --train-adapt="lora=r=4,alpha=8,targets=all-linear,rslora" --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --train-verify | FileCheck %s --check-prefix=LINEAR
// RUN: meshwright-opt %s --train-adapt="lora=r=2,alpha=2,targets=up,dropout=0.25" | FileCheck %s --check-prefix=DROPOUT
// RUN: meshwright-opt %s --train-adapt="lora=r=2,alpha=4,targets=up,dora,modules_to_save=embed" | FileCheck %s --check-prefix=DORA
// RUN: meshwright-opt %s --train-adapt="lora=r=2,alpha=4,targets=up,dora,modules_to_save=embed" --train-autodiff --train-accumulate --train-build-optimizer --canonicalize --train-verify | FileCheck %s --check-prefix=UPDATES
// A layer's matrix with as many rows as the vocabulary is no head.
// RUN: sed 's/tensor<16x4xf32>/tensor<4x4xf32>/g; s/train.vocabulary = 16/train.vocabulary = 4/' %s | meshwright-opt - --train-adapt="lora=r=2,alpha=8,targets=all-linear" | FileCheck %s --check-prefix=WIDE
// DEFINE: %{lora} =
// DEFINE: %{refused} = not meshwright-opt %s --train-adapt="lora=%{lora}" 2>&1 | FileCheck %s --check-prefix
// REDEFINE: %{lora} = r=2,alpha=2,targets=q_proj
// RUN: %{refused}=NONE
// REDEFINE: %{lora} = r=2,alpha=2,targets=0.up
// RUN: %{refused}=LAYER
// REDEFINE: %{lora} = r=2,alpha=2,targets=embed
// RUN: %{refused}=EMBED
// REDEFINE: %{lora} = r=2,alpha=2
// RUN: %{refused}=MISSING
// REDEFINE: %{lora} = r=0,alpha=2,targets=up
// RUN: %{refused}=RANK
// REDEFINE: %{lora} = r=4611686018427387904,alpha=2,targets=up
// RUN: %{refused}=LARGE
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,v_proj
// RUN: %{refused}=COMMA
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,targets=c_attn
// RUN: %{refused}=TWICE
// REDEFINE: %{lora} = r=2,alpha=2,targets=up+all-linear
// RUN: %{refused}=ALONE
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,dora,dropout=0.5
// RUN: %{refused}=DROPPED
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,modules_to_save=up
// RUN: %{refused}=BOTH
// REDEFINE: %{lora} = r=2,alpha=2,targets=c_attn,modules_to_save=0.up
// RUN: %{refused}=PART
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,modules_to_save=lm_head
// RUN: %{refused}=UNKNOWN
// REDEFINE: %{lora} = r=2,alpha=2,targets=up,modules_to_save=
// RUN: %{refused}=EMPTY

// BEGIN EXAMPLE --train-adapt=lora=r=2,alpha=8,targets=up+c_attn
module attributes {train.microbatches = 1 : i64, train.vocabulary = 16 : i64} {
  train.variable @embed : tensor<16x4xf32> init <"normal", 0.02> storage <"model.embed.weight">
  train.variable @h.up.weight : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"model.h.{layer}.up.weight">
  train.variable @q.weight : tensor<4x4xf32> init <"normal", 0.02> storage <"c_attn.weight", transpose = true, dim = 1, full = 8>
  train.variable @v.weight : tensor<4x4xf32> init <"normal", 0.02> storage <"c_attn.weight", transpose = true, dim = 1, offset = 4, full = 8>
  func.func private @layer(%x: tensor<2x3x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x3x4xf32> {
    %y = train.linear %x, %w : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    return %y : tensor<2x3x4xf32>
  }
  func.func @loss(%tokens: tensor<2x3xi32> {train.input = "tokens"}) -> tensor<f32> {
    %embed = train.get @embed : tensor<16x4xf32>
    %up = train.get @h.up.weight : tensor<3x4x4xf32>
    %wq = train.get @q.weight : tensor<4x4xf32>
    %wv = train.get @v.weight : tensor<4x4xf32>
    %x = train.embedding %embed, %tokens : (tensor<16x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
    %h = train.repeat @layer x 3 carry(%x) each(%up) shared() : (tensor<2x3x4xf32>, tensor<3x4x4xf32>) -> tensor<2x3x4xf32>
    %q = train.linear %h, %wq : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %v = train.linear %h, %wv : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %y = train.add %q, %v : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// The base is frozen. Weights of one tensor in files share A, and their Bs are rows of one tensor, as they are.
// CHECK: train.adapter_config = {{.*}}lora_alpha
// CHECK: train.variable @embed {{.*}} {train.frozen}
// CHECK: train.variable @h.up.weight {{.*}} {train.frozen}
// CHECK-NEXT: train.variable @h.up.lora_A.weight : tensor<3x2x4xf32> stacked init <"uniform", 5.000000e-01 : f64> storage <"base_model.model.model.h.{layer}.up.lora_A.weight"> {train.adapter}
// CHECK-NEXT: train.variable @h.up.lora_B.weight : tensor<3x4x2xf32> stacked {{.*}}storage <"base_model.model.model.h.{layer}.up.lora_B.weight"> {train.adapter}
// CHECK: train.variable @q.lora_A.weight : tensor<2x4xf32> {{.*}} storage <"base_model.model.c_attn.lora_A.weight"> {train.adapter}
// CHECK-NEXT: train.variable @q.lora_B.weight : tensor<4x2xf32> {{.*}}storage <"base_model.model.c_attn.lora_B.weight", full = 8> {train.adapter}
// CHECK: train.variable @v.lora_B.weight : tensor<4x2xf32> {{.*}}storage <"base_model.model.c_attn.lora_B.weight", offset = 4, full = 8> {train.adapter}
// CHECK-LABEL: func.func private @layer(%arg0: tensor<2x3x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<2x4xf32>, %arg3: tensor<4x2xf32>)
// CHECK: %[[LOW:.*]] = train.linear %arg0, %arg2
// CHECK: %[[SCALED:.*]] = train.scale %[[LOW]] by 4.0
// CHECK: %[[Y:.*]] = train.linear %arg0, %arg1
// CHECK: %[[DELTA:.*]] = train.linear %[[SCALED]], %arg3
// CHECK: %[[SUM:.*]] = train.add %[[Y]], %[[DELTA]]
// CHECK: return %[[SUM]]
// CHECK-LABEL: func.func @loss
// CHECK: train.repeat @layer x 3 carry({{.*}}) each(%{{.*}}, %{{.*}}, %{{.*}}) shared()
// CHECK: train.scale
// CHECK-NOT: train.scale

// LINEAR: train.variable @embed {{.*}} {train.frozen}
// LINEAR-LABEL: func.func @step
// Two As and three Bs of adapters have updates, and nothing else.
// LINEAR-COUNT-5: train.update "adamw"
// LINEAR-NOT: train.update

// The random numbers of adapters are as those of other dropouts: by the layer, the sequence and the step.
// DROPOUT-LABEL: func.func private @layer(%arg0: tensor<i32>, %arg1: tensor<2x3x4xf32>
// DROPOUT: %[[KEY:.*]] = train.fold_in %{{.*}}, %arg0
// DROPOUT: %[[X:.*]] = train.dropout %arg1, %{{.*}}, %[[KEY]] rate 2.500000e-01 stream 0
// DROPOUT: train.linear %[[X]],
// DROPOUT: train.linear %arg1,
// DROPOUT-LABEL: func.func @loss(%arg0: tensor<2x3xi32> {train.input = "tokens"}, %arg1: tensor<2xi32> {train.input = "sequence_ids"}, %arg2: tensor<2xi32> {train.input = "key"})
// DROPOUT: train.repeat @layer x 3 indexed

// NONE: error: --lora: the target 'q_proj' names no linear module; these are up, c_attn
// LAYER: error: --lora: the target '0.up' names model.h.0.up but not model.h.2.up, which are one parameter, @h.up.weight; leave the number of the layer out
// EMBED: error: --lora: the target 'embed': model.embed is used by train.embedding, which is no product with a matrix; name other modules
// MISSING: 'r=2,alpha=2' has no targets=; write e.g. r=8,alpha=16,targets=q_proj+v_proj
// RANK: '0' of r must be a whole number from 1 to 2147483647
// LARGE: '4611686018427387904' of r must be a whole number from 1 to
// COMMA: 'v_proj' is none of r=, alpha=, targets=, dropout=, modules_to_save=, rslora and dora
// TWICE: gives targets twice; targets are separated by +
// WIDE: target_modules\22: [\0A    \22up\22\0A  ]
// ALONE: all-linear has all the others; write it alone
// DROPPED: has dropout beside dora, with which a weight has one product more; leave one of both out
// BOTH: error: --lora: modules_to_save 'up': model.h.2.up.weight has an adapter already
// PART: error: --lora: modules_to_save '0.up': model.h.0.up.weight is one parameter with model.h.2.up.weight; leave the number of the layer out
// UNKNOWN: error: --lora: modules_to_save 'lm_head' names no module with weights
// EMPTY: '' of modules_to_save has an empty name

// Rows of adapted weights have magnitudes, which begin as their norms; these are constants in differentiation. A module
// that is trained whole is in the adapter's files.
// DORA: \22use_dora\22: true
// DORA: train.variable @embed : tensor<16x4xf32> init <"normal", 2.000000e-02 : f64> storage <"base_model.model.model.embed.weight"> {train.adapter}
// DORA: train.variable @h.up.lora_magnitude_vector : tensor<3x4xf32> stacked init <"row_norms", 1.000000e+00 : f64> storage <"base_model.model.model.h.{layer}.up.lora_magnitude_vector"> {train.adapter, train.full_precision}
// DORA-LABEL: func.func private @layer(%arg0: tensor<2x3x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<2x4xf32>, %arg3: tensor<4x2xf32>, %arg4: tensor<4xf32>)
// DORA: %[[SUM:.*]] = train.add
// DORA: %[[CHANGE:.*]] = train.contract "o r, r i -> o i" %arg3, %arg2
// DORA: %[[SCALED:.*]] = train.scale %[[CHANGE]] by 2.0
// DORA: %[[W:.*]] = train.add %arg1, %[[SCALED]] {train.full_precision}
// DORA: %[[SQUARES:.*]] = train.mul %[[W]], %[[W]]
// DORA: %[[SUMS:.*]] = train.reduce sum %[[SQUARES]] over [1]
// DORA: %[[INVERSE:.*]] = train.inverse_root %[[SUMS]] {{.*}}train.constant
// DORA: %[[FACTORS:.*]] = train.mul %arg4, %[[INVERSE]]
// DORA: %[[Y:.*]] = train.mul %[[SUM]], %[[FACTORS]]
// DORA: return %[[Y]]

// UPDATES-LABEL: func.func @step
// UPDATES-COUNT-4: train.update "adamw"
// UPDATES-NOT: train.update
