//===- Passes.td - the passes of floor 3 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_PASSES
#define MESHWRIGHT_EXEC_PASSES

include "mlir/Pass/PassBase.td"

/// Bytes of the smallest collectives that are worth a start and a wait of their own.
defvar smallestAsynchronous = "16384";

/// A pass on the way to a phase; it refuses IR that is past it.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::meshwright::PhasePass<::meshwright::Phase::" # phase # ">">;

def ExecSliceCollectives : PhasePass<"exec-slice-collectives", "exec"> {
  let summary = "Gathers and scatters stacked tensors slice by slice";
  let description = [{
    If the shards of a tensor are pieces of its rows, one collective over the whole tensor
    needs as much memory again for contiguous shards. For the stacked
    weights of layers, sharded along a dimension of the layer, that would be a second copy
    of all of them. The pass turns an `all_gather` or a `reduce_scatter` of one such tensor
    into a repeat over its first dimension: the parts of one slice are contiguous, or need
    the memory of one slice to become so. A slice has at least `min-bytes`, so that the
    latency of a collective does not matter; smaller slices stay together.

    With `sums` an `all_reduce` is sliced, too: of gradients in host memory
    (`exec-offload`) a device then holds a slice at a time.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", "1 << 20", "bytes of the smallest slices">,
    Option<"sums", "sums", "bool", "false", "whether an all_reduce is sliced">,
  ];
  let dependentDialects = ["::meshwright::train::TrainDialect"];
}

def ExecContiguousCollectives : PhasePass<"exec-contiguous-collectives", "exec"> {
  let summary = "Restricts collectives to contiguous blocks";
  let description = [{
    The runtime's collectives move blocks that are contiguous in memory. Parts along a
    dimension are contiguous if all dimensions before it are 1. Otherwise each part is a
    piece of every row, and a `train.transpose_blocks` lays the parts out one after the
    other before the collective, or assembles rows after it: a memory-bound op that becomes
    a kernel. A device's own part of rows (`dist.slice`) is copied by
    `train.dynamic_slice`, which can be fused into a kernel that reads it. Nothing is copied
    where parts are contiguous.

    A sum over n devices with `dist.wire`, bf16 or fp8, becomes what sends such numbers and adds in f32: each device
    rounds its terms, an `all_to_all` brings every device the n terms of its part, and the device adds them in the
    order of ranks. That is a `reduce_scatter`; for an `all_reduce` the device rounds its part of the sum, too, and an
    `all_gather` brings it to all. Where n does not divide the elements of an `all_reduce`, zeros fill the last part. With
    fp8, the numbers are f8E4M3FN. All devices have one scale for their terms of a tensor, and one for the sum: powers of
    two (`train.quantization_scale`) of the largest magnitude, an `all_reduce` of one number each.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFuseAccumulate : PhasePass<"exec-fuse-accumulate", "exec"> {
  let summary = "Fuses gradient accumulation into the ops that compute gradients";
  let description = [{
    If one term of a sum is a contraction or an embedding gradient, and nothing else reads
    either term, the other term becomes that op's `init`: the matrix library and the scatter
    kernel add to memory as cheaply as they write it. A loop that accumulates the gradients of a chunked loss
    (`dist-divide-loss`) starts from the other term instead of from zeros. Sums with zeros are removed.
  }];
}

def ExecSliceUpdates : PhasePass<"exec-slice-updates", "exec"> {
  let summary = "Splits optimizer updates into slices";
  let description = [{
    The optimizer's update of a variable becomes a repeat over equal parts of it, as few as
    are no larger than `part-bytes`, counted in f32. Its states can then stream through a device
    that cannot hold all of them (`exec-offload`). A variable smaller than that is one
    part, and one smaller than a sixteenth of it stays as it is: the launches of several such
    updates may become one (`exec-merge-launches`), whose states then pass together. Parts are
    runs of elements in memory, whatever the shape: layers of a stack, rows of a table, or
    pieces of them. Parts begin at multiples of 32 elements if the number of elements allows
    it. Other ops that are computed element by element for the update or from it (a guard, a
    cast to the parameter's type) are divided with it. If one of these ops depends on the
    index of its elements (`IndexedOpInterface`, a mask of padding), parts keep the variable's
    dimensions, as rows of a table or pieces of one row, and the op gets the part's offset
    (`train.part_offset`).
  }];
  let options = [
    Option<"partBytes", "part-bytes", "int64_t", "32 << 20", "bytes of the largest part of one state">,
  ];
  let dependentDialects = ["::meshwright::train::TrainDialect"];
}

def ExecAssignTarget : PhasePass<"exec-assign-target", "exec"> {
  let summary = "Sets the target that a module is compiled for";
  let description = [{
    The pass sets the module's attribute `exec.target`, which holds the target's parameters in
    parsed form. All later passes ask the target for facts that depend on the device: limits
    of schedules, epilogues and attention of libraries, scratch memory. The pass refuses
    unknown targets, and values of flags that the target does not know.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "name of a target">,
    Option<"flags", "flags", "std::string", "\"\"",
           "the target's flags as flag=value, separated by blanks; without them defaults">];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFuseEpilogues : PhasePass<"exec-fuse-epilogues", "exec"> {
  let summary = "Fuses ops into the epilogues of matrix products";
  let description = [{
    The pass works for targets whose library has epilogues. If only one op reads the result of
    a product and stands in the same block, the product absorbs it and becomes an
    `exec.product`:

    | epilogue | the op it absorbs |
    |---|---|
    | `bias` | adding a row, as long as the result's contiguous index of columns |
    | `addend` | adding a tensor of the result's type, in place if that tensor dies |
    | `gelu` | gelu's tanh form; its operand may have other readers and is written too |
    | `gelu-grad` | multiplying by the derivative of that form |
    | `bias-grad` | the sums of a factor over the index that the product sums, which need not read its result |

    So the bias of a linear layer and the residual after it cost no pass over memory, nor does
    gelu. Sums stay in f32 until the result is rounded once. The target says which of these
    its library can do with a product, and which it should. Products that add to an `init`,
    batched products, gelu by erf and other activations stay as they are. The product moves to
    the position of the last op that it absorbed.

    The gradient of a linear layer's bias is such a sum, beside the product that makes the
    gradient of its weights; both must have the same element type. That product may add to an
    `init`, which becomes an addend; the sums cannot add to anything. A kernel that writes or
    reads the factor anyway computes its sums for free: there they stay. So do the sums of a
    factor whose summed index is the contiguous one, and those of a product with one row or
    column.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFormKernels : PhasePass<"exec-form-kernels", "exec"> {
  let summary = "Fuses memory-bound ops into kernels";
  let description = [{
    Every op with `KernelOpInterface` becomes part of a kernel: a private function with the
    attribute `exec.kernel`, which an `exec.launch` calls in the op's stead. Ops are fused in
    the order of the memory traffic that fusing them saves, largest first:

    - an op and the reader of its result, if both iterate over the same rows;
    - two readers of the same tensor that iterate over the same rows.

    Two ops have the same rows if the tensors that span their loops, which the sharding rule
    names, have equal shapes. A result that is reduced over rows (a bias gradient, a sum of
    squares, the loss) leaves the kernel: to read it inside, all threads would have to wait
    for each other. Ops that scatter stay alone. Nothing is computed twice except constants.
    Equal kernels become one function. No kernel gets more operands and results than the target
    allows a launch.

    Ops on 8-bit states in blocks first get a row for each block, and so do element-wise ops behind them, whatever
    has to be reshaped for that. So an update, with what reads its states and writes them, is one kernel that
    reduces rows.

    Tensors stay tensors; contractions, attention, collectives, reshapes and slices (which are
    views) stay where they are. A launch states in `exec.gradients` and `exec.moves` what the
    categories of memory need to know of its kernel; see the dialect.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecDecomposeKernels : PhasePass<"exec-decompose-kernels", "exec"> {
  let summary = "Rewrites kernel bodies into arith, math and structural primitives";
  let description = [{
    Each op of a kernel is replaced by its own `KernelOpInterface::decompose`. Then common
    subexpressions are merged (such as the statistics that a norm and its gradient share) and
    arithmetic with constants is folded. The gradient of an embedding in bf16 or f16 sums the rows
    of equal ids in f32 first, if that takes less memory than its whole target in f32 would. The
    pass refuses ops in kernels without a decomposition.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecMergeLaunches : PhasePass<"exec-merge-launches", "exec"> {
  let summary = "Merges launches that perform the same operation on different tensors";
  let description = [{
    Launches of kernels that do the same to each element of tensors of one shape each, and
    that do not depend on each other, become one launch of one kernel: the updates of all
    parameters by an optimizer, the squares of all gradients. On a GPU a launch takes some
    microseconds, as long as updating a million parameters. Two kernels do the same if they
    hold the same operations in the same order, whatever the shapes: element-wise ones,
    broadcasts of scalars and reductions to scalars.

    The merged launch stands where the last of them was; ops that read the first ones' results,
    such as writes of variables, move behind it. Launches stay apart if an op may not move (a
    call of a function, another read of the variable), if a collective takes their results (it
    would have to wait for all of them), or if they wait for different collectives, which may
    end at different times. The target limits the operands and results of a launch; longer
    lists become several launches. On targets where a launch costs next to nothing, nothing
    changes.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecScheduleKernels : PhasePass<"exec-schedule-kernels", "exec"> {
  let summary = "Forms the loop nests of each kernel and divides them into chunks";
  let description = [{
    A kernel becomes loop nests that run one after the other, each made from one of the
    templates `elementwise`, `row-reduce`, `partials` (sums over rows or over everything, one
    partial result a chunk), `columns` (sums over few rows), `scatter` and `scalars`. The
    function gets `exec.template`, `exec.iterations` and `exec.chunks` with one entry a loop
    nest, and for the whole kernel `exec.workspace` (bytes for partial results and for tensors
    that a later loop nest needs) and `exec.inplace`. All of these follow from shapes alone, so
    that results do not depend on the number of threads. The target says how large and how many
    chunks are.

    The pass refuses, and names, ops that cannot stand in a kernel, memory of types other than
    f32, bf16, f16 and i32, and arithmetic in bf16 or f16.
  }];
  let options = [
    Option<"maxChunks", "max-chunks", "int64_t", "0", "maximum number of chunks of a loop nest, if not 0">,
    Option<"chunkWork", "chunk-work", "int64_t", "0",
           "minimum work of a chunk, if not 0, in elements times an eighth of their instructions">];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecInlineRepeats : PhasePass<"exec-inline-repeats", "exec"> {
  let summary = "Turns train.repeat into exec.loop with the function's body inside";
  let description = [{
    After this pass each value belongs to one point of one program, so that memory can be
    assigned to it. A loop stays a loop: the IR does not grow with the number of layers. Reads
    of variables move out of loops; functions that only repeats called disappear. A `func.call`
    stays: its callee is compiled once, and the variables that it reads become arguments. The
    pass refuses writes of variables inside repeated and called functions.

    The first all-to-all round of experts (`train.role` round, `times`) is peeled off the loop of the others, which
    seldom run, so that collectives of that round can overlap surrounding ops, such as shared experts.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOrder : PhasePass<"exec-order", "exec"> {
  let summary = "Orders operations to reduce peak memory";
  let description = [{
    The pass keeps program order, but moves an op down to its first reader if the op's result
    is larger than the operands that only this op keeps alive. Activations are therefore recomputed
    where the backward needs them, not all at its start. An op moves past a loop only if that does
    not increase peak memory on the way: the gradient of a head is computed before the
    layers' backward, not after it, when the gradients of all layers
    and the logits would be live together. An op that computes with a part in ring attention stays
    where it overlaps the transfer of the next part. The pass runs on tensors, before
    bufferization, because in-place updates restrict which ops may move.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecAssignValueIds : PhasePass<"exec-assign-value-ids", "exec"> {
  let summary = "Numbers values, and stores the program for replay";
  let description = [{
    Every launch, product, attention and collective gets an id, `exec.value_id`. After each of
    them `exec-bufferize` inserts an `exec.observe` with that id for each result, so that an
    executable can dump the values that a step computes. The module keeps its own text in the
    attribute `exec.tensor_form`: the last form with tensors, which the interpreter runs, so
    that each dumped value can be traced to its op. An op runs equally often and in the same
    order in both forms. Views, copies and calls get no id: they compute nothing, or only what
    their callee computes.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecChooseLibraries : PhasePass<"exec-choose-libraries", "exec"> {
  let summary = "Selects the library that computes each call of attention";
  let description = [{
    If the target has a library for attention beside generated kernels, and that library can
    compute a call, the op gets the attribute `exec.library`, which only the target reads: how
    much scratch memory the library may use, and whether generated kernels stand by. Otherwise
    `exec.reason` says why not. The pass refuses calls that the library cannot compute if the
    target's flags ask for that library alone.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecBufferize : PhasePass<"exec-bufferize", "exec"> {
  let summary = "Assigns a buffer to every value";
  let description = [{
    `@step` and `@eval` become `exec.program`s. Each variable, input and output has its
    buffer; a read of a variable names its buffer, a slice of a stack is a slot of its buffer,
    and a reshape is a view.

    First the pass inserts a copy wherever a value must end up in given memory: carried values
    of loops, slots of stacks, written variables, outputs, accumulators. Then it removes
    copies: source and target become the same memory unless two different values would have to
    be in it at once (the coalescing of SSA destruction: Boissinot et al. 2009, with the slots
    of loops as part of an address). Last, kernels that allow it (`exec.inplace`) write over an
    operand that dies. So the optimizer updates variables in place, gradients accumulate in
    place, residuals of a layer are written to their slots and the gradient of the logits
    overwrites them.

    A called function becomes a private program that reads its arguments where they are and
    writes its results where the caller wants them. A result that is computed in the memory of
    an argument (a gradient in its accumulator) is an in-place alias, one of `inouts`, if no
    caller needs the argument afterwards.

    Each buffer has a category. A `gradient` is what launches say (`exec.gradients`), and the
    value that devices put together to it; an `activation` is a value that a loop with
    `train.role` forward stacks, or a loop with backward for one with weight, and a value that
    one called function computes for another.

    Contractions become `exec.matmul`, attention `exec.attention`, collectives those of this
    floor, and `dist.slice` a window of its operand's memory. The pass refuses, and names, a
    contraction that needs a transposition in memory or whose factors differ in type, a
    collective or `dist.slice` of parts that are not contiguous (see
    `exec-contiguous-collectives`), a second write of a variable, a function that calls
    itself, and ops that are in no kernel.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOffload : PhasePass<"exec-offload", "exec"> {
  let summary = "CPU offload: moves buffers to host memory and copies parts of them to the device and back";
  let description = [{
    Memory that moves gets the type `memref<.., "host">`. Ops that compute use buffers on the
    device instead, and asynchronous copies connect the two:

    - `optimizer`: the states of the optimizer. If a loop updates a variable part by part
      (`exec-slice-updates`), each state has three buffers on the device, which slices use in
      turn: while one slice is updated, the next one is copied to the device and the
      previous one back, in two queues. A variable that is updated at once is copied
      as a whole.
    - `activations`: stacks into which one loop writes one slot an iteration and which later
      loops read: the residuals of layers. A slot is copied to the host as soon as it is
      written, while the next iteration computes, and back one iteration before the one that
      reads it, with a double buffer for each direction. If calls keep it for other calls, as
      tasks of a pipeline do, it is memory of the caller on the host, and the callees copy it.
      Stacks inside of an iteration that reads such a stack, of recomputed layers, stay on the
      device.
    - `parameters`: parameters of layers, and the stacks of their gradients. A layer's slot is copied
      to the device one iteration before the one that reads it, in the forward and again in the
      backward, with a double buffer. A layer's gradients leave as residuals do, and are copied back first if
      they are accumulated. Updates go through both as through states. A kernel that goes through
      all layers element by element, such as the sum of squares for the norm of gradients, works in the
      host's memory, so that sums keep their order. Any other op that uses all layers at once, such as
      a collective, gets a copy of them; a gradient that such ops use in parts stays on the device. Parameters outside of layers, such as embeddings, and their gradients stay on
      the device: they are used as a whole.

    With `ssd` memory gets the type `memref<.., "ssd">` and is part of a file. Copies are the same, but no kernel
    works there: one that uses all layers at once gets a copy of them, and gradients of parameters that are on the
    SSD are on the host.

    An `exec.wait` stands before each op that may not run before a copy has ended, and between
    two copies with one async token. Copies are exact: results have the same bits.
  }];
  let options = [
    Option<"optimizer", "optimizer", "::meshwright::MemorySpace", "::meshwright::MemorySpace::Device",
           "where the optimizer's states are: device, host or ssd">,
    Option<"activations", "activations", "::meshwright::MemorySpace", "::meshwright::MemorySpace::Device",
           "where the residuals of layers are: device, host or ssd">,
    Option<"parameters", "parameters", "::meshwright::MemorySpace", "::meshwright::MemorySpace::Device",
           "where the parameters of layers are: device, host or ssd">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecHalveMasters : PhasePass<"exec-halve-masters", "exec"> {
  let summary = "Stores only the lower halves of master weights";
  let description = [{
    The 32 bits of a master weight are the 16 bits of its value rounded to bf16, shifted left by 16, plus a
    number from -32768 to 32767: its lower half. If the parameter is that rounded value, the
    pass changes the type of the master's variable and buffer to i16, for the lower half alone. The
    kernel that updates a master weight gets the parameter as one more input, combines the halves into the
    f32 value, and splits the new value again. No bit of a master weight is lost, and an
    update writes 2 bytes less per parameter and reads as many as before. Ties are rounded
    away from zero, because rounding to even would not determine in which half a master weight was.

    The pass leaves master weights whole in these cases: an op other than a launch accesses them or writes the
    parameter, such as a collective that gathers its shards (ZeRO 1 and 2); the launch
    has only part of either, or the kernel also reads the parameter; they are in
    host memory; another launch of the kernel uses these operands differently; or the kernel
    would have more operands than the target allows a launch. Master weights of f16 parameters stay
    whole, because f16 does not have the exponents of f32.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect", "::mlir::arith::ArithDialect"];
}

def ExecCarryInSlots : PhasePass<"exec-carry-in-slots", "exec"> {
  let summary = "Keeps carried values in the slots that save them";
  let description = [{
    A loop over layers saves its carried value for the backward: each iteration copies
    it to its slot of a stack. The pass gives the stack one more slot and removes the copy. The
    first value is then written to slot 0, iteration i reads slot i and writes the next value to
    slot i + 1, and ops after the loop read the last slot.

    The pass does not change loops that run downwards, whose carried value or stack is memory
    of a caller, of the host or of a variable, in which an asynchronous or in-place op accesses
    one of the two, or whose stack is still read when the first value is written.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFillWaits : PhasePass<"exec-fill-waits", "exec"> {
  let summary = "Hides the latency of the experts' all-to-alls behind matrix products";
  let description = [{
    The first op that reads the result of an all-to-all of rows (`dist.slots`) usually follows
    it directly. Later matrix products that do not depend on it, such as those of shared experts,
    move before that op, together with the ops that compute their operands, so that
    `exec-overlap-collectives` can overlap the dispatch with them.
    Their results are live longer. An all-to-all of fewer than `min-bytes` would not be asynchronous,
    so it is skipped. So is one that already overlaps products. Products move to the largest all-to-all
    that they can overlap. Products of a collective matmul (`--collective-matmul`) stay between its permutes. Nothing
    moves into loops: if rows are sent in rounds, only the first round, which is before the loop of the others, overlaps shared experts.

    Small all-to-alls of the same group that depend on no product, those of expert numbers and weights, move before the large one,
    because a rank's all-to-alls run one after the other, and they would wait for it. An all-to-all is small if it moves fewer than `min-bytes`,
    or less than a sixteenth of the large one.
    If rows are sent in several chunks (`--expert-parts`), all chunks are in flight while the first is computed: another large
    all-to-all of the same group that depends on no product moves before the first op that reads the first chunk, and the products of
    one chunk move after the all-to-all that returns the results of another.

    Finally, an all-to-all itself moves, with small ones, before preceding products that it does not depend on, but past no
    other collective of at least `min-bytes`: in a backward the products of shared experts precede the dispatch.
    The pass runs on tensors, where only data dependences restrict what may move.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", smallestAsynchronous, "bytes of the smallest all-to-alls that are overlapped">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecPairTasks : PhasePass<"exec-pair-tasks", "exec"> {
  let summary = "Merges a forward and a backward task, so that each hides the other's collectives";
  let description = [{
    If a pipeline stage runs a forward and then a backward task of two microbatches, with no
    message in between, it calls one program for both. Their loops over layers become one loop, whose
    body alternates between the two: when one needs the result of a collective of at least `min-bytes`,
    the other continues, so that `exec-overlap-collectives` can overlap the collective with it.
    With expert parallelism, dispatch and combine of one task overlap attention and products of the other
    (DeepSeek-AI 2024); with `tensor`, so do the all-reduces. The backward task comes first.

    Tasks are not merged if either writes what the other uses, if they have no two loops with equally many
    iterations that wait for a collective (all rounds of experts after the first are a loop of
    their own), or if they copy to or from the host in between. `dist-schedule` places such tasks next to
    each other with `pairs`. The programs of the single tasks remain, for other calls and for
    FLOP counts: `exec.pair` names them. A pair needs the memory of both tasks.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", smallestAsynchronous, "bytes of the smallest collectives that are overlapped">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOverlapCollectives : PhasePass<"exec-overlap-collectives", "exec"> {
  let summary = "Makes collectives asynchronous, to overlap communication with computation";
  let description = [{
    A collective of at least `min-bytes` becomes asynchronous: the op only starts it,
    and an `exec.wait` precedes the first op that must run after its end, which is
    an op that writes its operands or accesses its results. In a loop that may be an op of the
    next iteration. The start moves up as far as data dependences and other communication allow, except for a permute
    that forwards the result of another, which stays in place, so that a device holds only
    two parts of a ring. If no computation would overlap, nothing changes.

    In a loop without inner loops, such as the loop over layers, iterations overlap
    (`OverlapLoops`). A collective that gathers memory which the loop does not write
    (parameters that devices shard) starts one iteration earlier, and for the first iteration
    before the loop: the next layer arrives while this one computes. For a collective that
    reduces (gradients) the program waits at the end of the next iteration, which then runs the
    ops that depend on it; for the last iteration they run after the loop. Results of the
    former, and operands and results of the latter, have double buffers: this is the memory that
    overlap costs.

    An all_reduce of stacked gradients of layers becomes one all_reduce a layer, which starts
    when the layer has run for the last time, in the last microbatch (`OverlapBuckets`): it runs
    while the layers below compute.

    Each rank runs its communication in the order of the starts, one op after the other, and
    waits only for communication that has started. Without the changes to loops, this is the
    order of the synchronous program: a rank waits for nothing that it did not wait for there,
    and because that program ends, so does this one. Where the order changes, there are no
    messages and no collectives with ranks of other programs: all ranks that take part change
    their order in the same way, and run all other communication before or after.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", smallestAsynchronous, "bytes of the smallest collectives that become asynchronous">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecAssignOffsets : PhasePass<"exec-assign-offsets", "exec"> {
  let summary = "Assigns every buffer an offset in one arena";
  let description = [{
    Variables, inputs and outputs come first, at the same offsets in every program. All other
    buffers get offsets by their live intervals: the programs run one after the other, so that
    they share memory; a buffer that a loop carries is live through the whole loop, and a buffer
    of an asynchronous collective until the program has waited for it. The pass tries several
    orders of best fit, then lets the buffers that end on top choose earlier, for a fixed number
    of rounds or until the arena is as small as the largest sum of live buffers, which is a lower
    bound. Buffers without uses are removed. The pass sets `exec.arena_bytes`,
    `exec.live_bytes` and `exec.memory`.

    A stack that a loop empties, such as the layers' activations in the backward, and one that the same loop
    fills, such as their gradients, share memory slot by slot: the gradients of a layer may be placed where activations
    of later layers were, whose backward has run. A value that is live only inside an iteration may
    use the slot that the loop fills last, if it is dead when that slot is filled, or the slot that the loop
    empties first. This requires a loop with a fixed number of iterations, at most 1,024, that accesses a stack
    only through the slots of its own iterations, and no asynchronous ops on it; other stacks are live as a whole.

    A private program is handled before its callers, with offsets from the start of a workspace
    and the same three attributes; each call gets a workspace of that size, which is live during
    the call alone. Buffers that are live at the peak of the callee count by category at the peak
    of the caller.

    The pass refuses a variable, input or output with different types in two programs, and host
    memory that belongs to a private program.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecNumberCollectives : PhasePass<"exec-number-collectives", "exec"> {
  let summary = "Numbers collectives and groups of ranks";
  let description = [{
    The pass works on the whole module, because ranks of all programs share groups. Each
    collective gets `exec.collective`, its row in the plan, in the order of programs and of the
    ops in them. The module gets `exec.groups`: the axes and the channel of each group in which
    ranks communicate or ask for their rank. Both orders are final; generated code, the plan and
    predicted traces read them.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecVerify : PhasePass<"exec-verify", "exec"> {
  let summary = "Checks that floor 3 is complete";
  let description = [{
    The verifier of the floor: programs hold no tensors; every buffer has an aligned offset
    inside the arena; buffers that persist have the same offset in all programs, and no other
    buffer shares their memory; no launch, call or matmul writes over an operand that it may not
    overwrite; and private programs write their `outs` and not their `ins`.

    The pass then runs every program without values but with the addresses of its buffers, by
    code that shares nothing with the passes before it. All iterations of loops run, except those
    that find memory as an earlier one did and touch the same bytes; a loop with `times` may end
    after any number of them. No op may read bytes that nothing has written, or that another
    buffer has been written to since; so buffers share memory exactly where that does no harm.
    While an asynchronous collective runs, only other communication may write its operands or
    touch its results, and none may run when the program ends. Copies between host and device are
    ordered among those of one direction, so a copy in the other direction or communication may
    not touch such memory either. Only copies, calls and launches use memory of the host. If the device has a
    copy of such memory, the older of the two is not read, and changes that a program makes in a
    copy of a variable or of an `inouts` are copied back.

    Collectives of the whole module have different ids, from 0 on, and `exec.groups` lists every
    group once; axes, parts, roots, peers and permutations are those of the mesh.

    Facts that passes recorded are derived again: loop chunks, workspace and in-place operands of a kernel from
    its loop nests, workspaces of library calls from their shapes, query-key pairs from the positions at which
    devices begin. Sizes of the module are those of its inputs, variables are shards of their global types, and
    each row of a file's tensor belongs to one parameter.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

#endif // MESHWRIGHT_EXEC_PASSES
