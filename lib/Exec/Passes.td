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
    If the parts of a tensor are pieces of its rows, one collective over the whole tensor
    needs as much memory again, in which the parts lie one after the other. For the stacked
    weights of layers, sharded along a dimension of the layer, that would be a second copy
    of all of them. The pass turns an `all_gather` or a `reduce_scatter` of one such tensor
    into a repeat over its first dimension: the parts of one slice are contiguous, or need
    the memory of one slice to become so. A slice has at least `min-bytes`, so that the
    latency of a collective does not matter; smaller slices stay together.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", "1 << 20", "bytes of the smallest slices">,
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
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFuseAccumulate : PhasePass<"exec-fuse-accumulate", "exec"> {
  let summary = "Adds gradients to their accumulators where they are computed";
  let description = [{
    If one term of a sum is a contraction or an embedding gradient, and nothing else reads
    either term, the other term becomes that op's `init`: the matrix library and the scatter
    kernel add to memory as cheaply as they write it. A loop that adds up gradients of a loss part by part
    (`dist-divide-loss`) begins at the other term instead of at zeros. Sums with zeros are removed.
  }];
}

def ExecSliceUpdates : PhasePass<"exec-slice-updates", "exec"> {
  let summary = "Updates variables part by part";
  let description = [{
    The optimizer's update of a variable becomes a repeat over equal parts of it, as few as
    are no larger than `part-bytes`, counted in f32. So its states can pass through a device
    that has no room for all of them (`exec-offload`). A variable smaller than that is one
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
  let summary = "Lets the matrix library compute the op after a product";
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
  let summary = "Merges launches that do the same to different tensors";
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
    Option<"maxChunks", "max-chunks", "int64_t", "0", "Most chunks of a loop nest, if not 0">,
    Option<"chunkWork", "chunk-work", "int64_t", "0",
           "Least work of a chunk, if not 0, in elements times an eighth of their instructions">];
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

    The first of several rounds of experts' rows (`train.role` round, `times`) comes before the loop of the others, which
    seldom run: so collectives of that round can run beside what stands around it, such as experts that all tokens share.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOrder : PhasePass<"exec-order", "exec"> {
  let summary = "Orders operations so that less memory is live";
  let description = [{
    The pass keeps program order, but moves an op down to its first reader if the op's result
    is larger than the operands that only this op keeps alive. So recomputed activations appear
    where the backward needs them and not all at its start. An op moves past a loop only if the
    most that the block holds on the way does not grow: the gradient of a head is made before the
    layers' backward, which makes room for it, and not after it, when the gradients of all layers
    and the logits would be there together. What computes with a part that goes
    around a ring stays where the next one is under way. The pass runs on tensors, before
    bufferization, because in-place updates restrict which ops may move.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecAssignValueIds : PhasePass<"exec-assign-value-ids", "exec"> {
  let summary = "Gives values ids and keeps the program for comparison";
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
  let summary = "Lets the target choose which library computes a call of attention";
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
  let summary = "Gives every value its memory";
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
  let summary = "Moves memory to the host, and copies parts of it to the device and back";
  let description = [{
    Memory that moves gets the type `memref<.., "host">`. Ops that compute use buffers on the
    device instead, and asynchronous copies connect the two:

    - `optimizer`: the states of the optimizer. If a loop updates a variable part by part
      (`exec-slice-updates`), each state has three buffers on the device, which parts use in
      turn: while one part is updated, the next one is on its way to the device and the
      previous one on its way back, in two queues. A variable that is updated at once is copied
      as a whole.
    - `activations`: stacks into which one loop writes one slot an iteration and which later
      loops read: the residuals of layers. A slot is copied to the host as soon as it is
      written, while the next iteration computes, and back one iteration before the one that
      reads it, with a double buffer for each direction. If calls keep it for other calls, as
      tasks of a pipeline do, it is memory of the caller on the host, and the callees copy it.
      Stacks inside of an iteration that reads such a stack, of recomputed layers, stay on the
      device.

    An `exec.wait` stands before each op that may not run before a copy has ended, and between
    two copies with one async token. Copies are exact: results have the same bits.
  }];
  let options = [
    Option<"optimizer", "optimizer", "bool", "false", "move the optimizer's states">,
    Option<"activations", "activations", "bool", "false", "move the residuals of layers">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecHalveMasters : PhasePass<"exec-halve-masters", "exec"> {
  let summary = "Keeps of masters what their parameters do not hold";
  let description = [{
    The 32 bits of a master are the 16 of its value rounded to bf16, shifted left by 16, plus a
    number from -32768 to 32767: its lower half. Where the parameter is that rounded value, the
    pass gives the master's variable and buffer the type i16, for the lower half alone. The
    kernel that updates a master gets the parameter as one more input, adds the halves to the
    master that there was, and divides the new one in two. So no bit of a master is lost, and an
    update moves 2 bytes less a parameter and reads as many as before. Half-way cases are rounded
    away from zero; to even would not say which half a master was in.

    The pass leaves masters whole where an op other than a launch touches one or writes its
    parameter, such as a collective that gathers parts of it (ZeRO 1 and 2), where the launch
    has either only in part or the kernel reads the parameter besides, where they are memory of
    the host, where another launch of the kernel does something else there, and of kernels that
    would have more operands than the target allows a launch. Masters of parameters in f16 are
    whole: f16 has not the exponents of f32.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect", "::mlir::arith::ArithDialect"];
}

def ExecCarryInSlots : PhasePass<"exec-carry-in-slots", "exec"> {
  let summary = "Leaves carried values in the slots that keep them";
  let description = [{
    A loop over layers keeps the value that it carries for the backward: each iteration copies
    it to its slot of a stack. The pass gives the stack one slot more and drops the copy. The
    first value is then written to slot 0, iteration i reads slot i and writes the next value to
    slot i + 1, and what follows the loop reads the last slot.

    The pass leaves loops as they are that run downwards, whose carried value or stack is memory
    of a caller, of the host or of a variable, where an asynchronous op or an op in place touches
    one of the two, or where the stack is still read when the first value is written.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFillWaits : PhasePass<"exec-fill-waits", "exec"> {
  let summary = "Puts products beside exchanges of experts' rows";
  let description = [{
    The first op that needs what an exchange of rows (`dist.slots`) brings usually stands right
    behind it. If products come later that do not need it, such as those of experts that all tokens
    share, they move to before that op, with what they are made of, so that
    `exec-overlap-collectives` lets the exchange run beside them: the dispatch beside the shared experts.
    Their results live longer for that. An exchange of fewer than `min-bytes` would not be asynchronous,
    so it stays as it is. So does one that has products beside it. Products go to the largest exchange
    that they may stand beside. Products of a ring (`--collective-matmul`) stay between its permutes. Nothing
    moves into loops: of rows that go in rounds only the first, which stands before the others' loop, has shared experts beside it.

    Small exchanges of the same group that need no product, of experts' numbers and weights, go before the large one,
    since a rank's exchanges run one after the other and they would wait for it. Small is what moves fewer than `min-bytes`,
    or a sixteenth of the large one.
    Of rows in several parts (`--expert-parts`) all are on their way while the first is computed with: another large
    exchange of the same group that needs no product moves to before the first op that needs the first part, and the products of
    one part move behind what is sent of another's results.

    At last an exchange itself moves, with small ones, to before products in front of it that it does not need, but past no
    other collective of at least `min-bytes`: in a backward the shared experts' products stand in front of the dispatch.
    The pass runs on tensors, where data alone says what may move.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", smallestAsynchronous, "bytes of the smallest exchanges that get something beside them">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecPairTasks : PhasePass<"exec-pair-tasks", "exec"> {
  let summary = "Runs a forward and a backward task as one, each beside the other's collectives";
  let description = [{
    A pipeline stage that does a forward and then a backward task of two microbatches, with no
    message in between, calls one program for both. Their loops over layers become one loop, whose
    body alternates between the two: wherever one needs what a collective of at least `min-bytes`
    brings, the other goes on, so that `exec-overlap-collectives` lets the collective run beside it.
    Of experts the dispatch and the return of one task run beside attention and products of the other
    (DeepSeek-AI 2024), of `tensor` the all-reduces. The backward begins.

    Tasks stay apart if either writes what the other uses, if no two of their loops have as many
    iterations and something that waits for a collective (rounds of rows behind the first are a loop of
    their own), or if they copy to or from the host meanwhile. `dist-schedule` puts such tasks side by
    side with `pairs`. The programs of the tasks alone stay too, for calls elsewhere and for
    their number of operations: `exec.pair` names them. A pair needs the memory of both tasks.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", smallestAsynchronous, "bytes of the smallest collectives that something runs beside">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOverlapCollectives : PhasePass<"exec-overlap-collectives", "exec"> {
  let summary = "Lets collectives run while the program computes";
  let description = [{
    A collective of at least `min-bytes` becomes asynchronous: it only starts where it stands,
    and an `exec.wait` stands before the first op that may not run before it has ended, which is
    an op that writes its operands or touches its results. In a loop that may be an op of the
    next iteration. The start moves up as far as data and other communication allow, but for a permute
    that sends on what another brings, which stays: so of parts that go around a ring a device holds
    two. If no op would compute meanwhile, nothing changes.

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
  let summary = "Gives every buffer its offset in one arena";
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
    fills, such as their gradients, share memory slot by slot: the gradients of a layer may lie where activations
    of later layers were, whose backward has run. A value that lives inside an iteration may
    have the slot that the loop fills last, if it is not needed when that is filled, or the one that it
    empties first. This takes a loop of a fixed number of iterations, at most 1,024, that reaches a stack
    by the slots of its own iterations alone, and no asynchronous ops on it; other stacks live as a whole.

    A private program is handled before its callers, with offsets from the start of a workspace
    and the same three attributes; each call gets a workspace of that size, which is live during
    the call alone. Buffers that are live at the peak of the callee count by category at the peak
    of the caller.

    The pass refuses a variable, input or output of different types in two programs, and memory
    of the host that a private program has for itself.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecNumberCollectives : PhasePass<"exec-number-collectives", "exec"> {
  let summary = "Gives collectives and groups of ranks their numbers";
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
    not touch such memory either. Only copies and calls use memory of the host. If the device has a
    copy of such memory, the older of the two is not read, and changes that a program makes in a
    copy of a variable or of an `inouts` are copied back.

    Collectives of the whole module have different ids, from 0 on, and `exec.groups` lists every
    group once; axes, parts, roots, peers and permutations are those of the mesh.

    What passes wrote down is derived again: loop chunks, workspace and in-place operands of a kernel from
    its loop nests, workspaces of library calls from their shapes, pairs of queries and keys from where
    devices begin. Sizes of the module are those of its inputs, variables are parts of their global types, and
    each row of a file's tensor belongs to one parameter.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

#endif // MESHWRIGHT_EXEC_PASSES
