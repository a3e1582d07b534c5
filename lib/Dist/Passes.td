//===- Passes.td - the passes of floor 2 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_PASSES
#define MESHWRIGHT_DIST_PASSES

include "mlir/Pass/PassBase.td"

/// A pass on the way to a stage; it refuses IR that is past it.
class StagedPass<string argument, string stage>
    : PassBase<argument, "::meshwright::StagedPass<::meshwright::Stage::" # stage # ">">;

def DistApplyStrategy : StagedPass<"dist-apply-strategy", "dist"> {
  let summary = "Writes the mesh and the strategy's seed shardings";
  let description = [{
    Adds `dist.mesh @mesh` and a few `dist.seed` attributes, from which propagation
    makes everything else. Beside each stands a `dist.reason`, the strategy's name, or
    a dictionary of one for each axis.

    - The batch of the inputs tokens, targets and sequence_ids is cut over the axes
      replica and data (and the third of tensor=RxCxD).
    - `tensor` cuts every index of a parameter that is not the residual stream's and
      that no op needs whole, but for sums over it: heads, the MLP's inner dimension,
      the vocabulary (Megatron-LM). More devices than groups of heads make it an axis
      of two parts, tensor.0 for groups, tensor.1 for the heads of a group, where they
      divide these; otherwise groups are padded. With `tensor-2d`, tensor=RxC, C cuts the
      residual stream's features too; tensor=RxCxD divides the batch by D and stores
      parameters once over it.
    - `sequence-parallel` cuts the sequence of what layers hand on over `tensor`.
    - `zero` cuts optimizer states (1), also accumulated gradients (2), also
      parameters (3) over data, and not over replica (hybrid sharding). The changes
      between what is stored and what is computed with are `dist.constrain` ops with
      `boundary`.

    - `data-sync=parameter-server` puts optimizer states and the f32 copies of narrow
      parameters on the device at coordinate 0 of data and replica (`root`), for each
      coordinate of tensor one. Gradients go there after the last microbatch, updated
      parameters back.

    A seed that is there already stays, and so do those that the module's
    `dist.seeds`, a list of ["pattern", "[{axis}, ..]"], gives parameters by name; two
    patterns that want one parameter placed differently are refused. An axis that a
    seed in the program names is in that seed's hands.

    What a seed cuts need not divide (`dist-pad`); ZeRO prefers dimensions that do.
    Refuses a batch that does not divide, naming what would; mesh axes whose
    strategy is not available, unless a seed uses them; and more devices than tensor
    parallelism or ZeRO can give a part of any parameter.
  }];
  let options = [
    Option<"mesh", "mesh", "::meshwright::dist::Mesh", "", "axes outermost first, e.g. data=4,tensor=2">,
    Option<"zero", "zero", "int64_t", "0", "ZeRO stage 0 to 3">,
    Option<"dataSync", "data-sync", "::meshwright::DataSync", "::meshwright::DataSync::allReduce",
           "who adds gradients and updates: all-reduce or parameter-server">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "cut the residual stream along the sequence over the tensor axis">,
    Option<"tensor2d", "tensor-2d", "bool", "false",
           "tensor=RxC: R cuts inner dimensions, C the residual stream">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistSplitReductions : StagedPass<"dist-split-reductions", "dist"> {
  let summary = "Lets indices be cut that ops need whole only to sum over them";
  let description = [{
    Cross-entropy needs a token's logits whole and a norm its row, but only for sums
    and maxima. Where a seed cuts such an index anywhere in the program
    (`lib/Dist/Strategy/IndexClasses.h`), the op becomes its sums
    (`SplittableOpInterface`), which are partial values on a mesh. Elsewhere it stays
    one op, which is one kernel.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistPad : StagedPass<"dist-pad", "dist"> {
  let summary = "Pads indices that seeds cut into parts that do not divide them, and rows of matrices";
  let description = [{
    An index that seeds cut into n parts grows to the next multiple of n in every
    tensor that has it, variables included, so that all that follows divides evenly.
    With `row-bytes` so does the last dimension of a matrix in a product until, in each
    part, rows begin at multiples of so many bytes, and at multiples of 128 where that
    adds less than 1%: a vocabulary of 50257 in bf16 becomes 50304. An index that
    cannot be padded without copies, or inside a dimension, stays.
    Padding is at the end of an index. Variables keep their own type as
    `dist.logical` and hold zeros beyond it, always. Inputs and outputs of the
    program keep their shapes: an input is padded after it (ids with -1, which
    point nowhere), an output is sliced. An op that needs the index whole runs without
    the padding, or with values there that change nothing (cross-entropy). What is stored in finer parts than it is computed with (ZeRO) is
    padded alike where that divides.

    Values in the padding are finite. Where an op sums over the index and no operand
    is known to be zero there, or takes a maximum, a `train.mask` comes before it.

    Refuses to pad the batch, and an index that is not the major one of a dimension,
    whose padding would lie in the middle.
  }];
  let options = [Option<"rowBytes", "row-bytes", "int64_t", "0",
                        "bytes at whose multiples rows of matrices begin; 0: where they do">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistPropagate : StagedPass<"dist-propagate", "dist"> {
  let summary = "Gives every tensor a sharding, from seeds and factor tables";
  let description = [{
    Axes spread from `dist.seed` attributes along the factors of the ops' tables,
    forward and backward, across calls, loops and variables, to a fixed point on a
    side table: first through calls and variables, then through ops that only pass
    an index on, then through reductions. Where tensors of one op want an axis for
    different factors, seeds of the user win (those without a `dist.reason`), then
    parameters and their gradients, which stay where they are, then what moves
    least bytes. Each op then runs cut as its tensors say, conflicts decided the
    same way; a cut reduction gives a partial value. Partial values flow through
    linear ops, additions and accumulators and are completed once. The result is
    written into the types, with one `dist.reshard` for all uses that want a value
    in the same other placement. Results of functions nobody calls are replicated
    unless seeded. Nothing spreads through a `dist.constrain` with `boundary`.

    A seed on an op's results, `dist.seed` (an array where there are several, `unit`
    for none), is for gradients: it decides like a parameter's.

    An op with an operand that only a root has runs there: its results are the
    root's and its other operands go there. That ends at variables, boundaries and
    results, which say themselves where they are.

    Calls of one function that want different shardings get copies of it.

    Refuses ops without a factor table, seeds that do not fit their tensor or the
    mesh, and partial seeds.
  }];
  let options = [Option<"explain", "explain", "std::string", "\"\"",
                        "says which seed put each axis of this variable or input there">];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistVerify : StagedPass<"dist-verify", "dist"> {
  let summary = "Checks that every use fits its op's factor table";
  let description = [{
    Every tensor carries a sharding of the mesh. In each op all tensors cut a
    factor alike, no axis serves two factors, whole factors are whole; results are
    partial exactly over cut reductions and what linear or additive operands
    bring in. An op of which a root has one tensor alone has them all there. Values keep their placement across calls, loops and variables. A
    partial value read as if it were complete is an error.
  }];
}

def DistPartition : StagedPass<"dist-partition", "local"> {
  let summary = "From global tensors with shardings to one device's program";
  let description = [{
    Every type becomes the shape of one device's part, without encoding; each
    `dist.reshard` becomes the collectives that the reshard planner finds. Ids that
    point into a cut dimension are counted from where the device's part begins
    (`dist.begin`), and ops whose result depends on global indices get it as an
    operand.
    Variables and the arguments of functions nobody calls keep their global type
    as `dist.global`. Beside layers of pipeline chunks ops keep as `dist.replicated`
    along which axes devices have copies of their results, for `dist-split-stages`.

    Refuses dimensions that do not divide evenly.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect"];
}

def DistSplitStages : StagedPass<"dist-split-stages", "stages"> {
  let summary = "One program for each stage of the pipeline";
  let description = [{
    Along the mesh axis `pipe` devices run different programs, nested modules `@stage0`,
    `@stage1`, ... (see Programs.h) with the variables, functions and functions' callees
    they need. The layers come cut into chunks, by `train-cut-layers`; `schedule` says
    which stage holds which chunk (chunk c stage c mod stages; zb-v: there and back) and
    whether gradients of weights are tasks of their own.

    Each chunk is a function `@forward.c`, which also returns what the backward reads
    (the stash), `@backward.c` and, for zero-bubble schedules, `@weight.c`. What comes
    before the layers belongs to the chunk that reads it first, what comes after them to
    the last; reads of variables, rotary tables and other things that need no layer are
    repeated wherever they are read. `@step` and `@eval` call the functions once a
    microbatch, one after the other, with `dist.send` and `dist.recv` of what crosses
    stages; `dist.task` names the task of each op. Each device sends what it has to the
    device at the same place of the other stage. Devices that have the same value, as
    those along `tensor` have without sequence parallelism, each send a part of it and
    gather it there (Narayanan et al. 2021b) where that takes less time: along axes that
    the mesh names after `pipe`, further in, by a model with the bandwidths `between`
    stages and `inside` one and a latency each message and each round of the gather's ring has.
    `scatter-gather` says `never`, `cheaper` or `always`.

    After the last microbatch a stage reduces its gradients and updates its variables.
    A variable that several stages read is held by all of them (tied embeddings): they
    exchange their sums of gradients and add them in the same order, so that the copies
    stay equal to the last bit. The squares of the gradients are added over the stages,
    each once, and the loss is broadcast. So clipping is a barrier between the last
    microbatch and the updates.

    Without an axis `pipe` nothing changes. Refuses layers without a `train.chunk` or,
    where devices may have copies, a `dist.replicated`, chunks that are not those of the
    schedule or do not begin in order, and tensors that seeds have cut over `pipe`.
  }];
  let options = [
    Option<"schedule", "schedule", "::meshwright::planner::ScheduleKind", "", "the schedule, as for dist-schedule">,
    Option<"scatterGather", "scatter-gather", "std::string", "\"cheaper\"",
           "when devices with copies of a value each send a part of it: never, cheaper or always">,
    Option<"between", "between", "double", "25e9",
           "bytes a second a device sends to another stage (an InfiniBand link of 200 Gb/s)">,
    Option<"inside", "inside", "double", "300e9",
           "bytes a second it sends along axes further in (NVLink of an A100)">,
    Option<"latency", "latency", "double", "1e-5", "seconds a message takes at least">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def DistSchedule : StagedPass<"dist-schedule", "schedule"> {
  let summary = "Puts the tasks of pipeline stages into the order of a schedule";
  let description = [{
    naive, gpipe, 1f1b, interleaved:V (microbatches a multiple of the stages), zb-h1 (at
    least as many microbatches as stages), zb-h2 and zb-v (at least twice the stages less
    one); `lib/Planner/PipelineSchedule.h` has their sources. `@eval` does the forward
    tasks in the same order.

    A value is sent right after the call that makes it and received right before the
    call that reads it. The programs end when one message may be on its way from a
    stage to another: where stages would wait for one another in a circle, one of
    them receives earlier.

    Programs with the attribute `dist.order = ["F0.0", "F1.0", "B0.0", ...]` (forward of
    microbatch 0 in chunk 0, ...) do their tasks in that order instead. Refuses orders
    that never end, name the tasks that wait, or sum microbatches out of order.
  }];
  let options = [
    Option<"schedule", "schedule", "::meshwright::planner::ScheduleKind", "",
           "naive, gpipe, 1f1b, interleaved:V, zb-h1, zb-h2 or zb-v">];
}

def DistRematerialize : StagedPass<"dist-rematerialize", "stages"> {
  let summary = "Computes activations again in the backward instead of keeping them";
  let description = [{
    Works on pairs of repeats, a forward and a backward by their `train.role`, of which
    the second reads, slice by slice, what the first stacks and nobody else reads.
    `policy` says what is still kept:

    - `none`: everything that is today;
    - `price:P`: the choice of values of a layer for which FLOPs computed again plus P
      times bytes kept are least, by a minimum cut through the layer's graph (Jain et
      al. 2020; Chillee et al. 2022). Bytes and FLOPs are of one device; a byte that
      a collective sends again counts as 1040 FLOPs. So results of collectives,
      contractions and attention go last, norms and activations first. What the
      backward has anyway (parameters, what all layers share) costs nothing;
    - `selective`: `price:16`. No contraction that sums over 64 elements or more and
      no attention is run again (compare Korthikanti et al. 2022);
    - `full`: only what a layer starts from; all of it runs again;
    - `every:K`: only what every K-th layer starts from. Both repeats become repeats of
      groups of K layers, and the backward of a group runs the layers of the group
      forward once more, keeping what their backwards read, before it goes back. What
      is left over is a shorter group at the end, a run of its own that
      `train-cut-layers` has cut off;
    - `sqrt`: `every:K` such that K plus the number of groups is least, so memory
      grows with the square root of the depth (Chen et al. 2016);
    - `every:K+price:P`: both; with a price also the layers of a group keep less.

    An op that runs again computes what it computed first, dropout too: its random
    numbers are a function of key, layer and element. It stands in another function
    than the first, so common subexpressions between the two do not exist.
    Contractions, attention and repeats that run again have the attribute
    `dist.recomputed`; the plan counts their FLOPs apart.

    Ops that may not run twice (with effects) and what depends on them are kept.
    Stacks that something between the two repeats reads are kept.

    Runs before `dist-split-stages`: the layers of a chunk of a pipeline are pairs of
    their own, whose policy is the chunk's where `policy` gives one for each, and what is
    kept is the chunk's stash. Where gradients of weights are tasks of their own, what is
    computed again stands in the backward, which hands it to them.

    Refuses groups that do not divide the layers of a run, and repeats without a role.
  }];
  let options = [ListOption<"policies", "policy", "::meshwright::RematPolicy",
                            "none, full, every:K, sqrt, selective, price:P or every:K+price:P; "
                            "between commas one for each chunk">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistSplitServers : StagedPass<"dist-split-servers", "stages"> {
  let summary = "One program for parameter servers, one for workers";
  let description = [{
    Where variables are a root's, or values are reduced or gathered to one, devices run
    two programs, nested modules with `dist.at`: `@server` for those at coordinate 0 of
    the root's axes, which is the whole, and `@workers` for the others. A worker has no
    variable of the root's and no op that reads what only the root has, from the reduce
    that sends it there to the broadcast that brings it back. Into that it puts the old
    value of the variable that gets the result, or zeros, which nobody reads.

    Several root axes make a worker's program for each, since places are boxes of
    coordinates: those beside the server along the first axis, then along the next.

    Other modules stay as they are. Refuses root values that enter a call or leave a
    function, and roots of different axes in one module.
  }];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistOptimizeCollectives : StagedPass<"dist-optimize-collectives", "schedule"> {
  let summary = "Fewer and smaller collectives";
  let description = [{
    An `all_reduce` whose only use is a `slice` over the same group becomes a
    `reduce_scatter`; a `slice` of what was just gathered so is the gathered part
    itself; equal collectives are done once; sums of two results of a reduction
    become the reduction of a sum.

    Then `all_reduce`, `reduce_scatter` and `all_gather` that are alike but for their
    tensors become one call of all of them, a bucket (as in PyTorch's
    DistributedDataParallel, Li et al. 2020), in their order, until a call has
    `bucket-bytes`. Memory-bound readers of the first results wait for the last
    operand; other readers that cannot wait end a bucket.
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
           "Most bytes that several tensors of one call have together">];
}

def DistLoopCollectives : StagedPass<"dist-loop-collectives", "schedule"> {
  let summary = "A collective and the products that need it as one loop of both";
  let description = [{
    After Wang et al., Overlap Communication with Dependent Computation via
    Decomposition (ASPLOS 2023). Over a group of n devices a product (any op with
    `ContractionOpInterface`) and its collective become n steps, written one after the
    other, in which one part is multiplied while the next is on its way by a
    `permute`; n - 1 permutes of a part send what the collective did.

    An `all_gather` of operands: step t multiplies the part of the device t places on.
    Where the gathered index is one of the result's, a `dist.concat` puts the steps'
    results together; where it is summed, the steps' results are added. Other operands
    with the index, and such results, are cut alike. All products that read the
    gathered value share one loop, and the value is never whole.

    A `reduce_scatter` of a product, or of a sum with products in it: an accumulator
    goes round, to which each device adds the part of the product that belongs where
    the accumulator will end. It is rounded to its element type at each step.

    A collective stays as it is, with a remark that says why, when something that is
    no such product needs the gathered value too, when the parts would cut an index
    that is not the outermost one of its dimension, or over more than `max-devices`.
    Works on collectives of one tensor, so before `dist-optimize-collectives` makes
    buckets. The collectives of all_reduce are `dist-decompose-collectives`' business.
  }];
  let options = [Option<"maxDevices", "max-devices", "int64_t", "16",
                        "largest group whose steps are written out">];
  let statistics = [
    Statistic<"gathers", "all-gathers", "all_gathers that became loops">,
    Statistic<"scatters", "reduce-scatters", "reduce_scatters that became loops">,
    Statistic<"kept", "kept", "all_gathers and reduce_scatters that stay">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistDecomposeCollectives : StagedPass<"dist-decompose-collectives", "schedule"> {
  let summary = "all_reduce as messages between pairs of devices";
  let description = [{
    Writes each `all_reduce` as `dist.exchange` ops by a known algorithm
    (`lib/Dist/Collectives/CollectiveAlgorithms.h`): parameter-server, sequential, ring, parallel,
    doubling, halving-doubling, or whichever of these is fastest by the
    alpha-beta model (`auto`). `native` leaves them to the runtime. Where the
    number of pieces does not divide the elements the last pieces are shorter. The
    tensors of a bucket go in the same messages.

    [docs/collectives.md](collectives.md) has the rounds and volumes of each.
  }];
  let options = [
    Option<"algorithm", "algorithm", "::meshwright::dist::CollectiveAlgorithm",
           "::meshwright::dist::CollectiveAlgorithm::Native", "the algorithm, or native or auto">,
    Option<"latency", "latency", "double", "1e-5", "for auto: seconds a round takes at least">,
    Option<"bandwidth", "bandwidth", "double", "1e10", "for auto: bytes a device moves a second">];
  let dependentDialects = ["::meshwright::dist::DistDialect", "::meshwright::train::TrainDialect"];
}

def DistVerifyCommunication : StagedPass<"dist-verify-communication", "schedule"> {
  let summary = "Proves that all that devices tell each other meets";
  let description = [{
    Where all devices run one program and exchange no messages, the order of
    collectives agrees as long as every device runs every one of them: each stands in
    a function body, under no control flow of its own, its group is of the module's
    mesh, and no sharding is left that would still have to move data.

    Where programs differ or send messages, their communication is also run through,
    calls and repetitions written out, without values: each message is received by
    the `dist.recv` that is next on its channel and has its type, the devices of a
    group come to the same collectives in the same order, and nobody waits in a
    circle, over messages and collectives of all groups together. A sender waits when
    `capacity` messages of the channel have not been received; the runtime has room
    for one. Since nobody can overtake, one such run stands for all; devices that
    no message and no program tell apart are run as one, so that the size of the
    other axes does not matter. What does not meet is shown with its counterpart.

    Of pipeline stages, whose calls have `dist.task`, three things more are proved: a
    stage never keeps results of more forward tasks for later backward and weight
    tasks than its schedule says (`dist.held`), whatever a task makes for another stage
    goes there once for every microbatch, to tasks of the same one, and every
    boundary between chunks is crossed each way.
  }];
  let options = [Option<"capacity", "capacity", "int64_t", "1",
                        "messages of a channel that may be on their way to a device; 0: none">];
}

#endif // MESHWRIGHT_DIST_PASSES
