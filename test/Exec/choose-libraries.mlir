// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags='gpu-arch=sm_90 deterministic=on'" --exec-choose-libraries -split-input-file | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags='gpu-arch=sm_100,sm_80 deterministic=on'" --exec-choose-libraries -split-input-file | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: meshwright-opt %s --exec-assign-target="target=cuda" --exec-choose-libraries -split-input-file | FileCheck %s --check-prefix=ANY
// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags=attention=generated" --exec-choose-libraries -split-input-file | FileCheck %s --check-prefix=GENERATED
// RUN: meshwright-opt %s --exec-assign-target="target=cuda flags='attention=cudnn gpu-arch=sm_90,sm_80'" --exec-choose-libraries -split-input-file -verify-diagnostics -o /dev/null
// RUN: meshwright-opt %s --exec-choose-libraries -split-input-file | FileCheck %s --check-prefix=NONE
// Processors have no library to choose.
// NONE-NOT: exec.library
// NONE-NOT: exec.reason

// BEGIN EXAMPLE --exec-assign-target=target=cuda --exec-choose-libraries
module {
  func.func @f(%q: tensor<2x128x4x64xbf16>, %k: tensor<2x128x2x64xbf16>) -> tensor<2x128x4x64xbf16> {
    %out, %lse = train.attention %q, %k, %k scale 0.125 causal
        : (tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
    return %out : tensor<2x128x4x64xbf16>
  }
}
// END EXAMPLE

// CHECK-LABEL: func.func @f
// CHECK: train.attention {{.*}} {exec.library = {deterministic, fallback, name = "cudnn", workspace = 512 : i64}}
// ANY-LABEL: func.func @f
// ANY: train.attention {{.*}} {exec.library = {fallback, name = "cudnn", workspace = 512 : i64}}
// GENERATED-LABEL: func.func @f
// GENERATED: train.attention {{.*}} {exec.reason = "--attention generated"}

// -----

module {
  // The products of queries and keys, 8 heads of 128 x 128 in bf16, dout times out, and for
  // the heads that share keys dk and dv of each; without the first, dq in f32.
  // CHECK-LABEL: func.func @gradient
  // SM90: train.attention_grad {{.*}} {exec.library = {deterministic, fallback, name = "cudnn", workspace = 528896 : i64}}
  // SM80: train.attention_grad {{.*}} {exec.library = {deterministic, fallback, name = "cudnn", workspace = 528896 : i64}}
  // ANY-LABEL: func.func @gradient
  // ANY: train.attention_grad {{.*}} {exec.library = {fallback, name = "cudnn", workspace = 528896 : i64}}
  func.func @gradient(%q: tensor<2x128x4x64xbf16>, %k: tensor<2x128x2x64xbf16>, %lse: tensor<2x4x128xf32>) -> tensor<2x128x4x64xbf16> {
    %dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %q, %lse scale 0.125 causal
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>)
    return %dq : tensor<2x128x4x64xbf16>
  }
}

// -----

// 64 heads of 8192 x 8192 in 8 parts of 8: 1 GiB of products at a time.
module {
  // CHECK-LABEL: func.func @parts
  // CHECK: train.attention_grad {{.*}} {exec.library = {deterministic, fallback, name = "cudnn", workspace = 1107558912 : i64}}
  func.func @parts(%q: tensor<2x8192x32x128xbf16>, %k: tensor<2x8192x8x128xbf16>, %lse: tensor<2x32x8192xf32>) -> tensor<2x8192x32x128xbf16> {
    %dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %q, %lse scale 0.125 causal
        : (tensor<2x8192x32x128xbf16>, tensor<2x8192x32x128xbf16>, tensor<2x8192x8x128xbf16>, tensor<2x8192x8x128xbf16>, tensor<2x8192x32x128xbf16>, tensor<2x32x8192xf32>)
          -> (tensor<2x8192x32x128xbf16>, tensor<2x8192x8x128xbf16>, tensor<2x8192x8x128xbf16>)
    return %dq : tensor<2x8192x32x128xbf16>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @full
  // CHECK: train.attention {{.*}} {exec.reason = "elements are f32; cuDNN's are bf16 and f16"}
  func.func @full(%q: tensor<2x128x4x64xf32>) -> tensor<2x128x4x64xf32> {
    // expected-error @+1 {{cannot be cuDNN's: elements are f32; cuDNN's are bf16 and f16; --attention auto or generated works}}
    %out, %lse = train.attention %q, %q, %q scale 0.125 causal
        : (tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>)
          -> (tensor<2x128x4x64xf32>, tensor<2x4x128xf32>)
    return %out : tensor<2x128x4x64xf32>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @capped
  // CHECK: train.attention {{.*}} cap 5.000000e+01 {exec.reason = "scores are capped; cuDNN's kernels that are used here have no cap"}
  func.func @capped(%q: tensor<2x128x4x64xbf16>) -> tensor<2x128x4x64xbf16> {
    // expected-error @+1 {{cannot be cuDNN's: scores are capped; cuDNN's kernels that are used here have no cap; --attention auto or generated works}}
    %out, %lse = train.attention %q, %q, %q scale 0.125 causal cap 50.0
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
    return %out : tensor<2x128x4x64xbf16>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @terms
  // CHECK: train.attention {{.*}} slopes {{.*}} {exec.reason = "heads have slopes; cuDNN's kernels that are used here have none"}
  // CHECK: train.attention {{.*}} sinks {{.*}} {exec.reason = "heads have sinks; cuDNN's kernels that are used here have none"}
  // CHECK: train.attention {{.*}} {exec.reason = "heads have 64 elements and their values 32; cuDNN's kernels that are used here have as many of both"}
  func.func @terms(%q: tensor<2x128x4x64xbf16>, %v: tensor<2x128x4x32xbf16>, %h: tensor<4xf32>)
      -> (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x32xbf16>) {
    // expected-error @+1 {{cannot be cuDNN's: heads have slopes; cuDNN's kernels that are used here have none; --attention auto or generated works}}
    %0, %lse0 = train.attention %q, %q, %q slopes %h scale 0.125 causal
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<4xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
    %1, %lse1 = train.attention %q, %q, %q sinks %h scale 0.125 causal
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<4xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
    %2, %lse2 = train.attention %q, %q, %v scale 0.125 causal
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x32xbf16>)
          -> (tensor<2x128x4x32xbf16>, tensor<2x4x128xf32>)
    return %0, %1, %2 : tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x32xbf16>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @documents
  // CHECK: train.attention {{.*}} {exec.reason = "sequences hold several documents (--packed); cuDNN's kernels that are used here see all of a sequence"
  func.func @documents(%q: tensor<2x64x4x64xbf16>, %at: tensor<2x64xi32>) -> tensor<2x64x4x64xbf16> {
    // expected-error @+1 {{cannot be cuDNN's: sequences hold several documents (--packed); cuDNN's kernels that are used here see all of a sequence; --attention auto or generated works}}
    %out, %lse = train.attention %q, %q, %q positions %at scale 0.125 causal
        : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64xi32>)
          -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
    return %out : tensor<2x64x4x64xbf16>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @part
  // CHECK: train.attention {{.*}} {exec.reason = "queries are a part of a sequence, in which they begin anywhere; cuDNN's kernels that are used here begin at 0"
  func.func @part(%q: tensor<2x64x4x64xbf16>, %k: tensor<2x128x4x64xbf16>, %at: tensor<i32>) -> tensor<2x64x4x64xbf16> {
    // expected-error @+1 {{cannot be cuDNN's: queries are a part of a sequence, in which they begin anywhere; cuDNN's kernels that are used here begin at 0; --attention auto or generated works}}
    %out, %lse = train.attention %q, %k, %k query_offset %at scale 0.125 causal queries 128
        : (tensor<2x64x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<i32>)
          -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
    return %out : tensor<2x64x4x64xbf16>
  }
}

// -----

module {
  // CHECK-LABEL: func.func @narrow
  // CHECK: train.attention {{.*}} {exec.reason = "heads have 20 elements; cuDNN's have a multiple of 8"}
  func.func @narrow(%q: tensor<2x16x4x20xbf16>) -> tensor<2x16x4x20xbf16> {
    // expected-error @+1 {{heads have 20 elements; cuDNN's have a multiple of 8}}
    %out, %lse = train.attention %q, %q, %q scale 0.125 causal
        : (tensor<2x16x4x20xbf16>, tensor<2x16x4x20xbf16>, tensor<2x16x4x20xbf16>)
          -> (tensor<2x16x4x20xbf16>, tensor<2x4x16xf32>)
    return %out : tensor<2x16x4x20xbf16>
  }
}

// -----

// On one of the architectures only: the runtime sees which it is.
module {
  // CHECK-LABEL: func.func @wide
  // SM90: train.attention {{.*}} {exec.library = {deterministic, fallback, name = "cudnn", workspace = 512 : i64}}
  // SM80: train.attention {{.*}} {exec.reason = "heads have 256 elements; on sm_80 cuDNN's have up to 128"}
  func.func @wide(%q: tensor<1x16x2x256xbf16>) -> tensor<1x16x2x256xbf16> {
    // expected-error @+1 {{heads have 256 elements; on sm_80 cuDNN's have up to 128}}
    %out, %lse = train.attention %q, %q, %q scale 0.125 causal
        : (tensor<1x16x2x256xbf16>, tensor<1x16x2x256xbf16>, tensor<1x16x2x256xbf16>)
          -> (tensor<1x16x2x256xbf16>, tensor<1x2x16xf32>)
    return %out : tensor<1x16x2x256xbf16>
  }
}

// -----

// Devices along `tensor` make this gradient alike and must get the same bits; those along `pipe`
// run other programs.
module {
  // ANY-LABEL: func.func @copies
  // ANY: train.attention_grad {{.*}} {dist.copied = ["tensor"], exec.library = {deterministic, fallback, name = "cudnn", workspace = 528896 : i64}}
  func.func @copies(%q: tensor<2x128x4x64xbf16>, %k: tensor<2x128x2x64xbf16>, %lse: tensor<2x4x128xf32>) -> tensor<2x128x4x64xbf16> {
    %dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %q, %lse scale 0.125 causal {dist.copied = ["tensor"]}
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>)
    return %dq : tensor<2x128x4x64xbf16>
  }
}

// -----

module attributes {dist.coordinates = {pipe = 1 : i64, tensor = [0, 1]}} {
  // ANY-LABEL: func.func @stage
  // ANY: train.attention_grad {{.*}} {dist.copied = ["pipe"], exec.library = {fallback, name = "cudnn"
  // ANY: train.attention_grad {{.*}} {dist.copied = ["pipe", "tensor"], exec.library = {deterministic, fallback, name = "cudnn"
  func.func @stage(%q: tensor<2x128x4x64xbf16>, %lse: tensor<2x4x128xf32>) -> (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>) {
    %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %q, %lse scale 0.125 causal {dist.copied = ["pipe"]}
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>)
    %1, %2, %3 = train.attention_grad %q, %q, %q, %q, %q, %lse scale 0.125 causal {dist.copied = ["pipe", "tensor"]}
        : (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x4x128xf32>)
          -> (tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>)
    return %dq, %1 : tensor<2x128x4x64xbf16>, tensor<2x128x4x64xbf16>
  }
}
