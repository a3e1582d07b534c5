// one.mlir for pipe=2, data=2 as pipeline stages make it: each stage calls its forward and
// its backward once a microbatch and sends what the other needs.
module attributes {meshwright.phase = "schedule", train.optimizer = "sgd", train.model = "tiny", train.config = "", train.batch = 4 : i64,
    train.sequence = 8 : i64, train.microbatches = 2 : i64, train.vocabulary = 32 : i64, train.max_positions = 8 : i64} {
  dist.mesh @mesh ["pipe" = 2, "data" = 2]

  module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
    dist.mesh @mesh ["pipe" = 2, "data" = 2]
    train.variable @wte : tensor<32x16xf32> init <"normal", 0.3 : f64> storage <"wte.weight">

    func.func private @forward.0(%tokens: tensor<1x8xi32>) -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>) {
      %w = train.get @wte : tensor<32x16xf32>
      %x = train.embedding %w, %tokens : (tensor<32x16xf32>, tensor<1x8xi32>) -> tensor<1x8x16xf32>
      %y = train.gelu %x : (tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
      return %y, %x : tensor<1x8x16xf32>, tensor<1x8x16xf32>
    }
    func.func private @backward.0(%tokens: tensor<1x8xi32>, %x: tensor<1x8x16xf32>, %dy: tensor<1x8x16xf32>, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
      %dx = train.gelu_grad %dy, %x : (tensor<1x8x16xf32>, tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
      %dw = train.embedding_grad %dx, %tokens rows 32 : (tensor<1x8x16xf32>, tensor<1x8xi32>) -> tensor<32x16xf32>
      %sum = train.accumulate %acc, %dw : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
      return %sum : tensor<32x16xf32>
    }
    func.func @step(%tokens: tensor<2x1x8xi32> {train.input = "tokens"}, %clip: tensor<f32> {train.input = "grad_clip"}, %lr: tensor<f32> {train.input = "lr"})
        -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"}) {
      %t0 = dist.take %tokens at 0 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y0, %x0 = func.call @forward.0(%t0) : (tensor<1x8xi32>) -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>)
      dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %t1 = dist.take %tokens at 1 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y1, %x1 = func.call @forward.0(%t1) : (tensor<1x8xi32>) -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>)
      dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %zero = train.fill 0.0 : () -> tensor<32x16xf32>
      %dy0 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %g0 = func.call @backward.0(%t0, %x0, %dy0, %zero) : (tensor<1x8xi32>, tensor<1x8x16xf32>, tensor<1x8x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
      %dy1 = dist.recv from 1 channel 1 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %g1 = func.call @backward.0(%t1, %x1, %dy1, %g0) : (tensor<1x8xi32>, tensor<1x8x16xf32>, tensor<1x8x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
      %g = dist.all_reduce sum %g1 over <@mesh {data}> : (tensor<32x16xf32>) -> tensor<32x16xf32>
      %mine = train.square_sum %g : (tensor<32x16xf32>) -> tensor<f32>
      %squares = dist.all_reduce sum %mine over <@mesh {pipe}> : (tensor<f32>) -> tensor<f32>
      %norm = train.global_norm %squares : (tensor<f32>) -> tensor<f32>
      %factor = train.clip_factor %norm, %clip : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %w = train.get @wte : tensor<32x16xf32>
      %new = train.update "sgd" %w, %g, %factor, %lr : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<f32>, tensor<f32>) -> tensor<32x16xf32>
      train.set @wte, %new : tensor<32x16xf32>
      %none = train.fill 0.0 : () -> tensor<f32>
      %loss = dist.all_reduce sum %none over <@mesh {pipe, data}> : (tensor<f32>) -> tensor<f32>
      return %loss, %norm : tensor<f32>, tensor<f32>
    }
    func.func @eval(%tokens: tensor<2x1x8xi32> {train.input = "tokens"}) -> (tensor<f32> {train.output = "loss"}) {
      %t0 = dist.take %tokens at 0 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y0, %x0 = func.call @forward.0(%t0) : (tensor<1x8xi32>) -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>)
      dist.send %y0 to 1 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %t1 = dist.take %tokens at 1 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y1, %x1 = func.call @forward.0(%t1) : (tensor<1x8xi32>) -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>)
      dist.send %y1 to 1 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %none = train.fill 0.0 : () -> tensor<f32>
      %loss = dist.all_reduce sum %none over <@mesh {pipe, data}> : (tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
  }

  module @stage1 attributes {dist.coordinates = {pipe = 1 : i64}} {
    dist.mesh @mesh ["pipe" = 2, "data" = 2]
    train.variable @head : tensor<32x16xf32> init <"normal", 0.3 : f64> storage <"head.weight">

    func.func private @forward.1(%y: tensor<1x8x16xf32>, %targets: tensor<1x8xi32>, %sum: tensor<f32>) -> (tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>) {
      %w = train.get @head : tensor<32x16xf32>
      %logits = train.linear %y, %w : (tensor<1x8x16xf32>, tensor<32x16xf32>) -> tensor<1x8x32xf32>
      %loss, %lse = train.cross_entropy %logits, %targets scale 0.03125 : (tensor<1x8x32xf32>, tensor<1x8xi32>) -> (tensor<f32>, tensor<1x8xf32>)
      %next = train.accumulate %sum, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %next, %logits, %lse : tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>
    }
    func.func private @backward.1(%y: tensor<1x8x16xf32>, %targets: tensor<1x8xi32>, %logits: tensor<1x8x32xf32>, %lse: tensor<1x8xf32>, %acc: tensor<32x16xf32>) -> (tensor<1x8x16xf32>, tensor<32x16xf32>) {
      %w = train.get @head : tensor<32x16xf32>
      %one = train.fill 1.0 : () -> tensor<f32>
      %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 0.03125 : (tensor<1x8x32xf32>, tensor<1x8xi32>, tensor<1x8xf32>, tensor<f32>) -> tensor<1x8x32xf32>
      %dy = train.contract "_0 _1 o, o i -> _0 _1 i" %d, %w : (tensor<1x8x32xf32>, tensor<32x16xf32>) -> tensor<1x8x16xf32>
      %dw = train.contract "_0 _1 o, _0 _1 i -> o i" %d, %y : (tensor<1x8x32xf32>, tensor<1x8x16xf32>) -> tensor<32x16xf32>
      %sum = train.accumulate %acc, %dw : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
      return %dy, %sum : tensor<1x8x16xf32>, tensor<32x16xf32>
    }
    func.func @step(%targets: tensor<2x1x8xi32> {train.input = "targets"}, %clip: tensor<f32> {train.input = "grad_clip"}, %lr: tensor<f32> {train.input = "lr"})
        -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"}) {
      %none = train.fill 0.0 : () -> tensor<f32>
      %t0 = dist.take %targets at 0 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %l0, %z0, %lse0 = func.call @forward.1(%y0, %t0, %none) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<f32>) -> (tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>)
      %t1 = dist.take %targets at 1 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %l1, %z1, %lse1 = func.call @forward.1(%y1, %t1, %l0) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<f32>) -> (tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>)
      %zero = train.fill 0.0 : () -> tensor<32x16xf32>
      %dy0, %g0 = func.call @backward.1(%y0, %t0, %z0, %lse0, %zero) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<1x8x32xf32>, tensor<1x8xf32>, tensor<32x16xf32>) -> (tensor<1x8x16xf32>, tensor<32x16xf32>)
      dist.send %dy0 to 0 channel 1 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %dy1, %g1 = func.call @backward.1(%y1, %t1, %z1, %lse1, %g0) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<1x8x32xf32>, tensor<1x8xf32>, tensor<32x16xf32>) -> (tensor<1x8x16xf32>, tensor<32x16xf32>)
      dist.send %dy1 to 0 channel 1 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %g = dist.all_reduce sum %g1 over <@mesh {data}> : (tensor<32x16xf32>) -> tensor<32x16xf32>
      %mine = train.square_sum %g : (tensor<32x16xf32>) -> tensor<f32>
      %squares = dist.all_reduce sum %mine over <@mesh {pipe}> : (tensor<f32>) -> tensor<f32>
      %norm = train.global_norm %squares : (tensor<f32>) -> tensor<f32>
      %factor = train.clip_factor %norm, %clip : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %w = train.get @head : tensor<32x16xf32>
      %new = train.update "sgd" %w, %g, %factor, %lr : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<f32>, tensor<f32>) -> tensor<32x16xf32>
      train.set @head, %new : tensor<32x16xf32>
      %loss = dist.all_reduce sum %l1 over <@mesh {pipe, data}> : (tensor<f32>) -> tensor<f32>
      return %loss, %norm : tensor<f32>, tensor<f32>
    }
    func.func @eval(%targets: tensor<2x1x8xi32> {train.input = "targets"}) -> (tensor<f32> {train.output = "loss"}) {
      %none = train.fill 0.0 : () -> tensor<f32>
      %t0 = dist.take %targets at 0 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y0 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %l0, %z0, %lse0 = func.call @forward.1(%y0, %t0, %none) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<f32>) -> (tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>)
      %t1 = dist.take %targets at 1 : (tensor<2x1x8xi32>) -> tensor<1x8xi32>
      %y1 = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<1x8x16xf32>
      %l1, %z1, %lse1 = func.call @forward.1(%y1, %t1, %l0) : (tensor<1x8x16xf32>, tensor<1x8xi32>, tensor<f32>) -> (tensor<f32>, tensor<1x8x32xf32>, tensor<1x8xf32>)
      %loss = dist.all_reduce sum %l1 over <@mesh {pipe, data}> : (tensor<f32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
  }
}
