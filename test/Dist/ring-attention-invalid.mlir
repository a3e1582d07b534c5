// RUN: meshwright-opt %s --dist-ring-attention -split-input-file -verify-diagnostics

dist.mesh @mesh ["context" = 2] {dist.ring}
func.func @whole(%q: tensor<2x8x4x16xf32>, %k: tensor<2x16x4x16xf32>, %v: tensor<2x16x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %first = dist.offset 8 over <@mesh {context}> : tensor<i32>
  // expected-error @+1 {{--context-parallel ring finds keys and values that are no parts of a sequence on each device; use --context-parallel gather or ulysses}}
  %out, %lse = train.attention %q, %k, %v query_offset %first scale 0.25 causal queries 16
      : (tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %out : tensor<2x8x4x16xf32>
}

// -----

dist.mesh @mesh ["context" = 2] {dist.ring}
func.func @kept(%dout: tensor<2x8x4x16xf32>, %q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %out: tensor<2x8x4x16xf32>, %lse: tensor<2x4x8xf32>)
    -> tensor<2x16x4x16xf32> {
  %first = dist.offset 8 over <@mesh {context}> : tensor<i32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x8x4x16xf32>) -> tensor<2x16x4x16xf32>
  // expected-error @+1 {{finds gradients of keys and values that are not summed where these are}}
  %dq, %dk, %dv = train.attention_grad %dout, %q, %ks, %ks, %out, %lse query_offset %first scale 0.25 causal queries 16
      : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<i32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>)
  return %dk : tensor<2x16x4x16xf32>
}

// -----

dist.mesh @mesh ["context" = 2, "data" = 2] {dist.ring}
func.func @apart(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %first = dist.offset 8 over <@mesh {context}> : tensor<i32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x8x4x16xf32>) -> tensor<2x16x4x16xf32>
  %vs = dist.all_gather %v dim 1 over <@mesh {data}> : (tensor<2x8x4x16xf32>) -> tensor<2x16x4x16xf32>
  // expected-error @+1 {{--context-parallel ring finds keys and values divided among different devices; use --context-parallel gather or ulysses}}
  %out, %lse = train.attention %q, %ks, %vs query_offset %first scale 0.25 causal queries 16
      : (tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %out : tensor<2x8x4x16xf32>
}

// -----

dist.mesh @mesh ["context" = 2] {dist.ring}
func.func @distances(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %d: tensor<31x4xf32>) -> tensor<2x8x4x16xf32> {
  %first = dist.offset 8 over <@mesh {context}> : tensor<i32>
  %ks = dist.all_gather %k dim 1 over <@mesh {context}> : (tensor<2x8x4x16xf32>) -> tensor<2x16x4x16xf32>
  %vs = dist.all_gather %v dim 1 over <@mesh {context}> : (tensor<2x8x4x16xf32>) -> tensor<2x16x4x16xf32>
  // expected-error @+1 {{--context-parallel ring finds attention with distances, which needs all keys at once; use --context-parallel gather or ulysses}}
  %out, %lse = train.attention %q, %ks, %vs query_offset %first distances %d scale 0.25 causal queries 16
      : (tensor<2x8x4x16xf32>, tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>, tensor<i32>, tensor<31x4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %out : tensor<2x8x4x16xf32>
}
