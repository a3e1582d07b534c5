//===- Passes.td - the passes of floor 2 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_PASSES
#define MESHWRIGHT_DIST_PASSES

include "mlir/Pass/PassBase.td"

/// A pass on the way to a phase; it refuses IR that is past it.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::meshwright::PhasePass<::meshwright::Phase::" # phase # ">">;

def DistApplyStrategy : PhasePass<"dist-apply-strategy", "dist"> {
  let summary = "Writes the mesh and the strategy's seed shardings";
  let description = [{
    Adds `dist.mesh @mesh` and the `dist.seed` attributes from which propagation derives
    every other sharding. Each seed has a `dist.reason`: the strategy's name, or
    a dictionary with one name for each axis.

    - The batch of the inputs tokens, targets, positions, source, sequence_ids, source_lengths and reference_log_probs is sharded over the axes
      replica and data (and the third of tensor=RxCxD).
    - `tensor` shards every index of a parameter that does not belong to the residual
      stream and that no op needs whole except to sum over it: heads, the MLP's inner
      dimension, the vocabulary (Megatron-LM). With more devices than groups of heads the
      axis gets two parts, tensor.0 for groups and tensor.1 for the heads of a group, if
      their number divides; otherwise groups are padded. With `tensor-2d`, tensor=RxC, C
      shards the residual stream's features too; tensor=RxCxD divides the batch by D and
      stores each parameter once over it.
    - `sequence-parallel` shards over `tensor` the sequence of the values that layers pass
      to each other.
    - `zero` shards optimizer states (1), also accumulated gradients (2), also parameters
      (3) over data, and not over replica (hybrid sharding). Between the stored tensor and
      the one that ops compute with stands a `dist.constrain` with `boundary`.

    - context shards the residual stream's sequence, over devices that have the same parameters. An
      op that needs the sequence whole, attention, is sharded along its heads instead with
      `context-parallel=ulysses`, with an all-to-all before it and one after it (Jacobs et al. 2023);
      with `context-parallel=gather` or `ring` along its queries, and keys and values are gathered
      (Grattafiori et al. 2024); with `context-parallel=hybrid`, of a context axis in two parts the first
      shards queries and the second shards heads (Fang and Zhao 2024). ZeRO shards state over context too.
      For `ring` and `hybrid` the mesh gets `dist.ring`, for `dist-ring-attention`.
    - `data-sync=parameter-server` keeps optimizer states and the f32 copies of narrow
      parameters on the device at coordinate 0 of data and replica (`root`), one such
      device for each coordinate of tensor. Gradients are sent to it after the last
      microbatch, and updated parameters are sent back.

    A seed that the program has already stays. So do the seeds that the module's
    `dist.seeds`, a list of ["pattern", "[{axis}, ..]"], gives parameters by name, and values
    by the pattern "@function:value"; two patterns that ask for different shardings of one
    parameter or value are refused. If a seed in the program names an axis, no strategy uses
    that axis.

    The dimensions that a seed shards need not divide evenly (`dist-pad`); ZeRO prefers
    dimensions that do. The pass refuses a batch that does not divide, and names one that
    would; mesh axes without an available strategy, unless a seed uses them; and more
    devices than tensor parallelism or ZeRO can give a part of any parameter.
  }];
  let options = [
    Option<"mesh", "mesh", "::meshwright::dist::Mesh", "", "axes outermost first, e.g. data=4,tensor=2">,
    Option<"zero", "zero", "int64_t", "0", "ZeRO stage 0 to 3">,
    Option<"dataSync", "data-sync", "::meshwright::DataSync", "::meshwright::DataSync::allReduce",
           "gradient synchronization: all-reduce or parameter-server">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "shard the residual stream along the sequence over the tensor axis">,
    Option<"tensor2d", "tensor-2d", "bool", "false",
           "tensor=RxC: R shards inner dimensions, C the residual stream">,
    Option<"contextParallel", "context-parallel", "::meshwright::ContextParallel",
           "::meshwright::ContextParallel::none",
           "how attention is sharded over context: by queries (gather, ring), by heads (ulysses), or by both (hybrid)">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistSplitReductions : PhasePass<"dist-split-reductions", "dist"> {
  let summary = "Splits ops whose whole index is only summed over, so that seeds can shard it";
  let description = [{
    Cross-entropy needs the logits of a token whole, and a norm needs its row whole, but
    both only for sums and maxima. Where a seed shards such an index anywhere in the
    program (`lib/Dist/Strategy/IndexClasses.h`), the op becomes its sums
    (`SplittableOpInterface`), which are partial values on a mesh. Otherwise the op stays
    whole and becomes one kernel.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistPad : PhasePass<"dist-pad", "dist"> {
  let summary = "Pads indices whose size the number of shards does not divide, and rows of matrices";
  let description = [{
    An index that seeds shard into n parts grows to the next multiple of n in every
    tensor that has it, variables included, so that all later passes divide evenly.
    With `row-bytes` the last dimension of a matrix in a product grows too, until the
    rows of each part begin at multiples of that many bytes, and at multiples of 128
    where that adds less than 1%: a vocabulary of 50257 in bf16 becomes 50304. An index
    that cannot be padded without copies, or that lies inside a dimension, stays.

    Padding lies at the end of an index. Variables keep their own type as `dist.logical`
    and always hold zeros in the padding. Inputs and outputs of the program keep their
    shapes: an input is padded after it is read (ids with -1, which select no row), an
    output is sliced. An op that needs the index whole runs without the padding, or with
    values there that do not change its result (cross-entropy). A tensor that is stored
    in finer parts than ops compute with (ZeRO) is padded for both, if the finer number
    of parts is a multiple of the other.

    A remark lists the indices that grow, and the additional FLOPs of products and attention, and
    bytes of variables.

    Values in the padding are finite. Before an op that sums over the index and whose
    operands are not known to be zero in the padding, and before an op that takes a
    maximum, the pass inserts a `train.mask`.

    The pass refuses to pad the batch, and an index that is not the major one of a
    dimension, because its padding would lie in the middle.
  }];
  let options = [Option<"rowBytes", "row-bytes", "int64_t", "0",
                        "alignment of the rows of matrices in bytes; 0: no alignment">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistPropagate : PhasePass<"dist-propagate", "dist"> {
  let summary = "Gives every tensor a sharding, from seeds and factor tables";
  let description = [{
    Axes spread from `dist.seed` attributes along the factors of the ops' tables,
    forward and backward, across calls, loops and variables, until nothing changes. The
    order is: calls and variables first, then ops that only pass an index on, then
    reductions. If tensors of one op ask for an axis on different factors, the user's
    seeds win (seeds without a `dist.reason`); next come parameters and their gradients,
    which stay where they are; then the choice that moves the fewest bytes. Each op then
    runs sharded as its tensors are, and conflicts are decided in the same order. A
    sharded reduction makes a partial value. Partial values flow through linear ops,
    additions and accumulators and are completed once. The pass writes the result into
    the types, with one `dist.reshard` for all uses of a value that need the same other
    sharding. Results of functions that nobody calls are replicated unless they have a
    seed. Nothing spreads through a `dist.constrain` with `boundary`;
    sums along axes that its sharding does not use may be completed behind it.

    A seed on the results of an op, `dist.seed` (an array if the op has several results,
    `unit` for none), is meant for gradients: it has the priority of a parameter's seed.

    An op with an operand that only a root has runs on the root: its results belong to
    the root, and its other operands are sent there. This ends at variables, boundaries
    and results, which have shardings of their own.

    Calls of one function that need different shardings get copies of the function.

    The pass refuses ops without a factor table, seeds that do not fit their tensor or
    the mesh, and partial seeds.
  }];
  let options = [Option<"explain", "explain", "std::string", "\"\"",
                        "prints which seed put each axis on this variable, tensor of files or input">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistVerify : PhasePass<"dist-verify", "dist"> {
  let summary = "Checks that every use fits its op's factor table";
  let description = [{
    Every tensor carries a sharding of the mesh. In each op all tensors shard a factor
    alike, no axis serves two factors, and factors that must be whole are whole. Results
    are partial exactly over the sharded reductions and the axes that linear or additive
    operands are partial over. If one tensor of an op is on a root alone, all of its
    tensors are. Values keep their sharding across calls, loops and variables. Reading a
    partial value as if it were complete is an error.
  }];
}

def DistPartition : PhasePass<"dist-partition", "local"> {
  let summary = "Turns global tensors with shardings into one device's program";
  let description = [{
    Every type becomes the shape of one device's part, without encoding; each
    `dist.reshard` becomes the collectives of the reshard path. Ids that point into a
    sharded dimension are counted from the offset of the device's part (`dist.offset`),
    and ops whose result depends on global indices get the offset as an operand.
    Variables and the arguments of functions that nobody calls keep their global type as
    `dist.global`. Next to the layers of pipeline chunks ops keep in `dist.replicated` the
    axes along which devices have copies of their results, for `dist-split-stages`.
    Gradients of attention that several devices compute alike say along which axes in
    `dist.copied`: a library may only make them if it adds in a fixed order.

    If the module says in `dist.gradient_wire` in which type devices send each other gradients, the sums over devices that
    complete those of parameters get it as `dist.wire`; `exec-contiguous-collectives` carries it out. Gradients are
    followed from updates back through casts, sums and loops. Other sums, of losses, activations, counts and
    norms, do not have it.

    The pass refuses dimensions that do not divide evenly.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistRingAttention : PhasePass<"dist-ring-attention", "local"> {
  let summary = "Passes keys and values from device to device instead of gathering them";
  let description = [{
    The pass implements ring attention (Liu et al. 2023) if the mesh has `dist.ring`, which the
    pass removes: attention that reads keys and values gathered from n devices becomes n calls, one
    for each device's part. In step t a device has the part of the device t ranks before it, which a
    `dist.permute` transferred during the previous step, so a device never holds more than two
    parts. A call takes the results of the previous calls and merges them with its own (`before` of
    `train.attention`), in f32. In the backward, the accumulated gradients of keys and values travel
    with them, in f32 too, from the second step on, and return to their owner after the last. The
    volume of keys and values is that of an all-gather; their gradients are f32.

    If keys and values are derived from something narrower, such as the latents of multi-head latent
    attention (DeepSeek-AI 2024), that is sent instead, and every device recomputes keys and values
    from it in each step. In the backward, its gradient travels, and gradients of the weights in
    between are accumulated over the steps. The values to send are a minimum cut through the ops
    that treat all tokens alike, at the price of a byte in FLOPs of `device`
    (`Device::flopsPerByteSent`), if that is less than half of keys and values. Layers then save the values that are sent instead of keys and
    values.

    Steps in which a window or chunks hide all keys from all queries are omitted,
    and so are calls for pairs that no device needs. With `context-balance=zigzag`,
    if that gains 2% or more, devices p and n - 1 - p exchange the second halves of their
    queries, and of their keys and values (see `dist-balance-attention`): all devices then have
    equal work in every step. With `context-balance=striped` device p receives the
    queries, keys and values p, p + n, p + 2n, .. instead, by an all-to-all (Brandon et al. 2023):
    in every step each device computes one triangle of pairs, with or without its diagonal.
  }];
  let options = [
    Option<"contextBalance", "context-balance", "::meshwright::ContextBalance",
           "::meshwright::ContextBalance::zigzag", "zigzag, striped, or none: nothing is exchanged">,
    Option<"device", "device", "::meshwright::cost::DeviceChoice", "", "the device whose FLOPs a byte sent is worth">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistBalanceAttention : PhasePass<"dist-balance-attention", "local"> {
  let summary = "Balances causal attention over devices";
  let description = [{
    If n devices divide the queries of causal attention, those of the last device see the most keys: up
    to twice the mean. The pass splits each device's queries into two chunks, of which devices p and
    n - 1 - p exchange the second: of 2n chunks, device p computes chunks 2p and
    2 (n - 1 - p) + 1, in two calls (`dist.permute`, `train.attention`). Results are returned to
    their owners; gradients of keys and values are added. Positions, masks and random
    numbers, which a call derives from its `query_offset`, do not change, and no other op is affected.
    With `context-balance=striped` device p computes queries p, p + n, p + 2n, .. in one call with
    `query_stride`, between two all-to-alls.

    Queries are exchanged if that reduces the number of query-key pairs on the most loaded device by at
    least 2%: not if nothing is masked, or if a window gives all queries but the first the same
    number of keys. The pass counts the pairs;
    `dist-count-attention` writes them. The pass refuses stripes of parts that n does not divide.
  }];
  let options = [
    Option<"contextBalance", "context-balance", "::meshwright::ContextBalance",
           "::meshwright::ContextBalance::zigzag", "zigzag, striped, or none: nothing is exchanged">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistDivideLoss : PhasePass<"dist-divide-loss", "local"> {
  let summary = "Computes cross-entropy in chunks of tokens (fused linear cross-entropy)";
  let description = [{
    The logits of a large vocabulary are the largest tensor of many steps, and only the loss
    and its gradient read them. The pass turns the product that computes them, and all of its
    readers, into a loop: each iteration computes the logits of a chunk of the tokens, their contribution to the loss,
    the gradient of these logits, and from it the chunk's rows of the activations' gradient; the
    loss and the gradients of the head are accumulated. Only one chunk of logits is live, forward and
    backward are in one loop, and nothing is recomputed (Hsu et al. 2024, Liger Kernel). In
    evaluation the loop has the forward alone. `train.role` of the loop and its function is `loss`.

    Factor tables determine the ops of the loop: rows are the indices of the product's first
    operand, columns those of its second; every op that reads or computes a value with both belongs
    to the loop, and so do ops on a path between two such ops or from one to the loss, such as all-reduces of maxima
    and sums if the vocabulary is sharded. A loss is a scalar that is a sum over all rows. Tokens are
    those of the rank, over all of its sequences, so shardings do not matter, and
    chunks are contiguous in memory. Gradients are accumulated in their own type, as over microbatches;
    `exec-fuse-accumulate` lets the loop start from the microbatches' accumulators.

    Without `parts` the pass divides logits of 64 MiB or more into as many chunks as leave at least `least-rows` tokens in each.
    It refuses `parts` that do not divide the tokens, and more than one
    if no loss of the step can be divided: an op at the logits has no factor table, needs all tokens at once, or
    reads a token's index.
  }];
  let options = [
    Option<"parts", "parts", "::meshwright::LossParts", "::meshwright::LossParts()", "number of chunks, or auto">,
    Option<"leastRows", "least-rows", "int64_t", "1024", "minimum number of tokens in a chunk, for auto">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistCountAttention : PhasePass<"dist-count-attention", "local"> {
  let summary = "Counts the query-key pairs that each device computes";
  let description = [{
    If n devices divide the queries of attention, their queries may see different numbers of keys. `dist.pairs`
    of each call is the number of visible query-key pairs on each device, in one head of one sequence.
    The plan adds them up over a step: `attention_imbalance`. Documents of packed sequences are
    not known at compile time; each sequence counts as one document. `dist.first_queries` and `dist.first_keys` give the positions
    at which the parts of the devices of group `dist.divided_over` begin: for runs with packed sequences, which know the
    documents, and for `exec-verify`.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistSplitStages : PhasePass<"dist-split-stages", "stages"> {
  let summary = "Makes one program for each stage of the pipeline";
  let description = [{
    Along the mesh axis `pipe` devices run different programs: nested modules `@stage0`,
    `@stage1`, ... (see Programs.h) with the variables and functions that they need. The
    layers have been split into chunks by `train-split-layers`; `schedule` says which stage
    owns which chunk (chunk c belongs to stage c mod stages; zb-v, v-half, v-min and dualpipe-v go there and back)
    and whether gradients of weights are tasks of their own.

    Each chunk is a function `@forward.c`, which also returns the stash that the backward
    reads, a function `@backward.c` and, for zero-bubble schedules, a function
    `@weight.c`. Ops before the layers belong to the first chunk that reads their
    results, ops after the layers to the last chunk; reads of variables, rotary tables
    and other ops that need no layer are repeated wherever their results are read.
    `@step` and `@eval` call the functions once for each microbatch, one after the other,
    with `dist.send` and `dist.recv` for values that cross stages; `dist.task` names the
    task of each op. Each device sends its values to the device of the other stage with
    the same other coordinates. Devices that hold the same value, as the devices along
    `tensor` do without sequence parallelism, can each send a part of it, which the
    receivers gather (Narayanan et al. 2021b). They do so where a cost model says that it
    takes less time: along axes that the mesh names after `pipe`, with the links of `device`
    or, where they are given, the bandwidths `between` stages and `inside` a stage and the latency of
    each message and of each round of the gather's ring. `scatter-gather` says `never`, `cheaper` or `always`.

    After the last microbatch a stage reduces its gradients and updates its variables. A
    variable that several stages read is stored by all of them (tied embeddings): the
    stages exchange their sums of gradients and add them in the same order, so that the
    copies stay equal to the last bit. The squares of the gradients are added over the
    stages, each once, and the loss is broadcast. So gradient clipping is a barrier
    between the last microbatch and the updates.

    Without an axis `pipe` nothing changes. The pass refuses layers without a
    `train.chunk` or, if devices may have copies, without a `dist.replicated`; chunks that
    are not those of the schedule or do not begin in order; and tensors that seeds shard
    over `pipe`.
  }];
  let options = [
    Option<"schedule", "schedule", "::meshwright::schedule::ScheduleKind", "", "the schedule, as for dist-schedule">,
    Option<"scatterGather", "scatter-gather", "std::string", "\"cheaper\"",
           "scatter/gather: devices with copies of a value each send one part of it: never, cheaper or always">,
    Option<"device", "device", "::meshwright::cost::DeviceChoice", "", "the device whose links these are">,
    Option<"between", "between", "double", "0",
           "bytes per second that a device sends to another stage; 0: through the device's network">,
    Option<"inside", "inside", "double", "0",
           "bytes per second that it sends along the axes after pipe; 0: as within the device's machine">,
    Option<"latency", "latency", "double", "0", "minimum seconds per message; 0: those of the device's links">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def DistSchedule : PhasePass<"dist-schedule", "schedule"> {
  let summary = "Orders the tasks of pipeline stages by a schedule";
  let description = [{
    The schedules are naive, gpipe, 1f1b, interleaved:V (the number of microbatches is a
    multiple of the stages), zb-h1 (at least as many microbatches as stages), zb-h2 and
    zb-v (at least twice the stages minus one), v-half, v-min, dualpipe-v (at least twice the stages); `meshwright/PipelineSchedule.h` names
    their sources. `@eval` runs the forward tasks in the same order.

    A value is sent right after the call that computes it and received right before the call
    that reads it. The programs terminate even if only one message may be in flight from one stage to
    another: if stages would wait for each other in a cycle, one of them receives earlier.

    With `pairs`, dualpipe-v places the forward and the backward task that should overlap
    next to each other if both have equally many layers with collectives, of whatever size: both
    receive before the first and send after the second, so that `exec-pair-tasks` can merge them.

    Programs with the attribute `dist.order = ["F0.0", "F1.0", "B0.0", ...]` (forward of
    microbatch 0 in chunk 0, ...) run their tasks in that order instead. The pass refuses
    orders that never end, and names the tasks that wait, and orders that add microbatches
    in another sequence.
  }];
  let options = [
    Option<"schedule", "schedule", "::meshwright::schedule::ScheduleKind", "",
           "naive, gpipe, 1f1b, interleaved:V, zb-h1, zb-h2, zb-v, v-half, v-min or dualpipe-v">,
    Option<"pairs", "pairs", "bool", "false",
           "dualpipe-v: pairs of tasks receive before both and send after both">];
}

def DistRematerialize : PhasePass<"dist-rematerialize", "stages"> {
  let summary = "Activation checkpointing: recomputes activations in the backward instead of saving them";
  let description = [{
    The pass works on pairs of repeats, a forward and a backward by their `train.role`: the
    first stacks results slice by slice, and only the second reads them.
    `policy` selects the values that are still saved:

    - `none`: the same values as before;
    - `price:P`: the set of values that minimizes recomputed FLOPs plus P times the bytes
      saved, by a minimum cut through the layer's graph (Jain et al. 2020; Chillee et al.
      2022). Bytes and FLOPs are those of one device; a byte that a collective sends again
      counts as the FLOPs of products of 16 bits that `device` computes while it sends one to another of its
      machine: 1040 on an A100. Results of collectives, contractions and attention are therefore the
      last to be recomputed, norms and activation functions the first. Values that the backward has
      anyway (parameters, values that all layers share) cost nothing;
    - `selective`: `price:16`. No contraction that sums over 64 elements or more and no
      attention is recomputed (compare Korthikanti et al. 2022);
    - `full`: only the input of each layer; the whole layer is recomputed;
    - `every:K`: only the input of every K-th layer. Both repeats become repeats of groups
      of K layers. The backward of a group first recomputes the forward of its layers and
      saves what their backwards read. Layers that do not fill a group form a shorter group
      at the end, a run of its own that `train-split-layers` has split off;
    - `sqrt`: `every:K` with the K that minimizes K plus the number of groups, so that
      memory grows with the square root of the depth (Chen et al. 2016);
    - `every:K+price:P`: both; with a price the layers of a group save less, too.

    A recomputed op yields exactly its first result, dropout included: its random numbers
    are a function of key, layer and element. It is in another function than the first
    op, so that no pass can merge the two as common subexpressions. Contractions, attention
    and repeats that are recomputed have the attribute `train.recomputed`; the plan counts their
    FLOPs separately, by its value: none here, "rounds" of experts (`train-autodiff`), "latents" of a
    ring (`dist-ring-attention`).

    Results of ops that may not run twice (because they have effects), and of ops that depend on
    them, are saved. So are stacks that an op between the two repeats reads.

    The pass runs before `dist-split-stages`: the layers of a pipeline chunk are pairs of
    their own, with the chunk's policy if `policy` names one for each chunk, and the kept
    values are the chunk's stash. If gradients of weights are tasks of their own, the
    backward task recomputes and passes the results to the weight task.

    The pass refuses groups that do not divide the layers of a run, and repeats without a
    role.
  }];
  let options = [ListOption<"policies", "policy", "::meshwright::RematPolicy",
                            "none, full, every:K, sqrt, selective, price:P or every:K+price:P; "
                            "or one for each chunk, separated by commas">,
    Option<"device", "device", "::meshwright::cost::DeviceChoice", "",
           "the device whose FLOPs a byte sent again is worth">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistSplitServers : PhasePass<"dist-split-servers", "stages"> {
  let summary = "Makes one program for parameter servers and one for workers";
  let description = [{
    Where variables belong to a root, or values are reduced or gathered to a root, devices
    run two programs, nested modules with `dist.coordinates`: `@server` for the devices at
    coordinate 0 of the root's axes, which is the whole program, and `@workers` for all
    others. A worker has no variable of the root and none of the ops between the reduce
    that sends values to the root and the broadcast that brings results back. As operand
    of the broadcast it uses the old value of the variable that receives the result, or
    zeros; nobody reads either.

    With several root axes there are several programs of workers, because a program is for
    a box of coordinates: first the devices beside the server along the first axis, then
    along the next.

    Other modules stay as they are. The pass refuses values of a root that enter a call or
    leave a function, and roots of different axes in one module.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistOptimizeCollectives : PhasePass<"dist-optimize-collectives", "schedule"> {
  let summary = "Merges and shrinks collectives";
  let description = [{
    An `all_reduce` whose only use is a `slice` over the same group becomes a
    `reduce_scatter`; a `slice` that undoes a gather becomes the gathered part; equal
    collectives run once; the sum of two reductions becomes the reduction of a sum.

    Then `all_reduce`, `reduce_scatter` and `all_gather` ops that differ in their tensors
    alone become one call with all tensors, a bucket (as in PyTorch's
    DistributedDataParallel, Li et al. 2020), in program order, until a call has
    `bucket-bytes`, or what a ring of n devices needs so that at most a fifth of its time is
    latency, 4 (n - 1) times latency times bandwidth of the device's network. Tensors of up to
    a sixty-fourth of that join a full bucket too, up to a quarter of it together. Stacked tensors of layers, which move
    layer by layer later, join no call of more than `bucket-bytes`. Memory-bound readers of the
    first results move behind the last operand; a reader that cannot move ends the bucket.
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
           "bucket size: total bytes of the tensors of one call, more in large groups; 0: no buckets">,
    Option<"sliceBytes", "slice-bytes", "int64_t", "1 << 20", "bytes of a layer's part of the stacks that move layer by layer">,
    Option<"device", "device", "::meshwright::cost::DeviceChoice", "", "the device whose network the calls use">];
}

def DistLoopCollectives : PhasePass<"dist-loop-collectives", "schedule"> {
  let summary = "Collective matmul: turns a collective and the products that depend on it into one loop";
  let description = [{
    The transformation is that of Wang et al., Overlap Communication with Dependent
    Computation via Decomposition (ASPLOS 2023). Over a group of n devices a product (any
    op with `ContractionOpInterface`) and its collective become n steps, which are written
    out one after the other. Each step multiplies one part while a `permute` brings the
    next part; n - 1 permutes of a part send as many bytes as the collective did.

    An `all_gather` of operands: step t multiplies the part of the device that is t ranks
    further. If the gathered index is an index of the result, a `dist.concat` puts the
    results of the steps together; if it is summed, the results are added. Other operands
    with that index, and such results, are divided alike. All products that read the
    gathered value share one loop, and the value never exists as a whole.

    A `reduce_scatter` of a product, or of a sum that contains products: an accumulator
    travels around the group, and each device adds the part of the product that belongs to
    the accumulator's last device. The accumulator is rounded to its element type at each
    step.

    A collective stays as it is, with a remark that says why, if an op that is not such a
    product needs the gathered value, if dividing would split an index that is not the
    outermost one of its dimension, or if the group is larger than `max-devices`. The pass
    works on collectives of one tensor and therefore runs before
    `dist-optimize-collectives` makes buckets. It leaves all_reduce to
    `dist-decompose-collectives`.
  }];
  let options = [Option<"maxDevices", "max-devices", "int64_t", "16",
                        "size of the largest group whose collectives become loops">];
  let statistics = [
    Statistic<"gathers", "all-gathers", "all_gathers that became loops">,
    Statistic<"scatters", "reduce-scatters", "reduce_scatters that became loops">,
    Statistic<"kept", "kept", "all_gathers and reduce_scatters that stay">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistDecomposeCollectives : PhasePass<"dist-decompose-collectives", "schedule"> {
  let summary = "Decomposes all_reduce into messages between pairs of devices";
  let description = [{
    The pass writes each `all_reduce` as `dist.exchange` ops by a known algorithm
    (`lib/Dist/Collectives/CollectiveAlgorithms`): parameter-server, sequential, ring, parallel,
    doubling, halving-doubling, or the fastest of these by the alpha-beta model (`auto`).
    `native` leaves them to the runtime. If the number of pieces does not divide the
    elements, the last pieces are shorter. The tensors of a bucket share messages.

    [docs/collectives.md](collectives.md) lists rounds and volumes of each algorithm.
  }];
  let options = [
    Option<"algorithm", "algorithm", "::meshwright::dist::CollectiveAlgorithm",
           "::meshwright::dist::CollectiveAlgorithm::Native", "the algorithm, or native or auto">,
    Option<"device", "device", "::meshwright::cost::DeviceChoice", "", "for auto: the device whose network messages take">,
    Option<"latency", "latency", "double", "0", "for auto: minimum seconds per round; 0: the network's">,
    Option<"bandwidth", "bandwidth", "double", "0", "for auto: bytes per second of a device; 0: the network's">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistVerifyCommunication : PhasePass<"dist-verify-communication", "schedule"> {
  let summary = "Proves that the communication of all devices matches and is free of deadlock";
  let description = [{
    If all devices run one program and exchange no messages, the order of collectives
    agrees if every device runs every collective. The pass checks that: each collective
    stands in a function body under no control flow of its own, its group belongs to the
    module's mesh, and no sharding is left that would still have to move data.

    If programs differ or send messages, the pass also simulates their communication, with
    calls and repetitions written out and without values: each message is received by the
    next `dist.recv` of its channel, which has the message's type; the devices of a group
    reach the same collectives in the same order; and no devices wait for each other in a
    circle, over the messages and collectives of all groups together. A sender waits when
    `capacity` messages of the channel have not been received; the runtime has room for
    one. Because no message can overtake another, one simulation stands for all runs.
    Devices that no message and no program distinguish are simulated as one, so that the
    size of the other axes does not matter. An error shows the op that does not match and
    its counterpart.

    For pipeline stages, whose calls have `dist.task`, the pass proves three more facts: a
    stage never keeps results of more forward tasks for later backward and weight tasks
    than its schedule says (`dist.held`); each value that a task makes for another stage
    is sent once for every microbatch, to tasks of the same microbatch; and every boundary
    between chunks is crossed in each direction. It shares no code with the passes that make
    stages and order their tasks.
  }];
  let options = [Option<"capacity", "capacity", "int64_t", "1",
                        "messages of a channel that may be in flight to a device; 0: none">];
}

#endif // MESHWRIGHT_DIST_PASSES
