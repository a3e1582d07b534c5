//===- Passes.td - the passes of floor 3 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_PASSES
#define MESHWRIGHT_EXEC_PASSES

include "mlir/Pass/PassBase.td"

/// A pass on the way to a stage; it refuses IR that is past it.
class StagedPass<string argument, string stage>
    : PassBase<argument, "::meshwright::StagedPass<::meshwright::Stage::" # stage # ">">;

def ExecSliceCollectives : StagedPass<"exec-slice-collectives", "exec"> {
  let summary = "Gathers and scatters stacked tensors slice by slice";
  let description = [{
    Where parts of a tensor are pieces of its rows, one collective over all of it needs
    as much memory again, in which the parts lie one after the other. For weights that
    layers stack, cut along a dimension of the layer, this is a second copy of them all.
    An `all_gather` or a `reduce_scatter` of one such tensor becomes a repetition over
    its first dimension: the parts of one slice are contiguous, or need no more than a
    slice to become so. A slice has `min-bytes` at least, so that what goes at a time is
    enough for the time that a collective takes to start not to matter; smaller ones
    stay together.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", "1 << 20", "bytes of the smallest slices">,
  ];
  let dependentDialects = ["::meshwright::train::TrainDialect"];
}

def ExecContiguousCollectives : StagedPass<"exec-contiguous-collectives", "exec"> {
  let summary = "Lets collectives move contiguous blocks only";
  let description = [{
    Collectives of the runtime move blocks that are contiguous in memory, which parts
    along a dimension are when those before it are 1. Where they are not, a part
    being a piece of every row, a `train.transpose_blocks` lays the parts out one
    after the other before the collective, or puts rows together after it: a
    memory-bound op that becomes a kernel. A device's own part of rows (`dist.slice`)
    is copied by `train.dynamic_slice`, which a kernel that reads it does on the
    way. Nothing is copied where parts are contiguous.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFuseAccumulate : StagedPass<"exec-fuse-accumulate", "exec"> {
  let summary = "Adds gradients to their accumulators where they are computed";
  let description = [{
    A sum whose one term is a contraction or an embedding gradient that nothing else
    reads, and whose other term nothing else reads either, becomes that op's `init`:
    the matrix library and the scatter kernel add to memory as cheaply as they write
    it. Sums with zeros go away.
  }];
}

def ExecSliceUpdates : StagedPass<"exec-slice-updates", "exec"> {
  let summary = "Updates variables part by part";
  let description = [{
    The optimizer's update of a variable becomes a repetition over equal parts of it, as few
    as are no larger than `part-bytes`, counted in f32, so that its states can pass through a device
    that has no place for all of them (`exec-offload`). What is smaller than that is one part, and what is
    smaller than a sixteenth of it stays as it is: launches of several such updates may become one
    (`exec-merge-launches`), whose states then pass together. Parts are runs of elements in memory, whatever the shape: layers of a
    stack, rows of a table, or pieces of them. Parts begin at multiples of 32 elements where
    the number of elements allows it. What else is computed element by element for the
    update or from it (a guard, a cast to the parameter's type) goes with it. Where one of
    these ops depends on the place of its elements (`IndexedOpInterface`, a mask of
    padding), parts keep the variable's dimensions, rows of a table or pieces of one row, and
    the op gets the index at which its part begins (`train.part_begin`).
  }];
  let options = [
    Option<"partBytes", "part-bytes", "int64_t", "32 << 20", "bytes of the largest part of one state">,
  ];
  let dependentDialects = ["::meshwright::train::TrainDialect"];
}

def ExecAssignTarget : StagedPass<"exec-assign-target", "exec"> {
  let summary = "Says which target a module is compiled for";
  let description = [{
    Sets the module's attribute `exec.target`, which holds the target's parameters in parsed
    form. All passes after it ask the target for what depends on the device: limits of
    schedules, epilogues and attention of libraries, scratch memory. Refuses unknown targets,
    and values of flags that the target does not know.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "name of a target">,
    Option<"flags", "flags", "std::string", "\"\"",
           "the target's flags as flag=value, between blanks; defaults without">];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFuseEpilogues : StagedPass<"exec-fuse-epilogues", "exec"> {
  let summary = "Lets the matrix library do what comes right after a product";
  let description = [{
    For targets whose library has epilogues. A product whose result only one
    op reads, in the same block, takes that op in and becomes an `exec.product`:

    | epilogue | what it takes in |
    |---|---|
    | `bias` | adding a row, as long as the result's contiguous index of columns |
    | `addend` | adding a tensor of the result's type, in place where that dies |
    | `gelu` | gelu's tanh form; what it is taken of may have other readers and is written too |
    | `gelu-grad` | multiplying by the derivative of that form |
    | `bias-grad` | the sums of a factor over what the product sums, which need not read its result |

    So a linear layer's bias and the residual behind it cost no pass over memory, nor
    does gelu. Sums stay in f32 until the result, once, is rounded. The target says which of
    these its library can do with a product, and which it should. Products that add to an `init`,
    batched ones, gelu by erf and other activations stay as they are. The product comes
    where the last op was that it took in.

    The gradient of a linear layer's bias is such sums, beside the product that makes the
    gradient of its weights; they are of the same element type then. It may add to an
    `init`, which becomes an addend; to the sums nothing is added. A kernel that makes or
    reads the factor sums it for nothing: there they stay. So do those of a factor whose
    summed index is the contiguous one, and those of a product by one row or column.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecFormKernels : StagedPass<"exec-form-kernels", "exec"> {
  let summary = "Fuses memory-bound ops into kernels";
  let description = [{
    Every op with `KernelOpInterface` ends up in a kernel, a private function with
    the attribute `exec.kernel` that an `exec.launch` calls in its place. Which ops
    share one is decided by the memory traffic it saves, most first:

    - an op and the reader of its result, when both walk the same rows;
    - two readers of the same tensor that walk the same rows.

    "The same rows" means equal shapes of the tensor that spans the op's loops,
    which its sharding rule tells. A result that is reduced over rows (a bias
    gradient, a sum of squares, the loss) leaves the kernel: reading it back would
    need all threads to wait. Ops that scatter stay alone. Nothing is computed
    twice but constants. Kernels that are equal are one function.

    Tensors stay tensors; contractions, attention, collectives, reshapes and slices
    (which are views) stay where they are. A launch says what its kernel hides and
    categories of memory need: `exec.gradients` and `exec.moves`, see the dialect.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecDecomposeKernels : StagedPass<"exec-decompose-kernels", "exec"> {
  let summary = "Rewrites kernel bodies into arith, math and structural primitives";
  let description = [{
    Each op of a kernel is replaced by its own `KernelOpInterface::decompose`; then
    common subexpressions merge (the statistics that a norm and its gradient share)
    and arithmetic with constants folds. Refuses ops in kernels that have none.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecMergeLaunches : StagedPass<"exec-merge-launches", "exec"> {
  let summary = "Launches once what is done to many tensors";
  let description = [{
    Launches of kernels that do the same to each element of tensors of one shape each, and of
    which none waits for another, become one launch of one kernel, which does all of it side by
    side: the updates of all parameters by an optimizer, the squares of all gradients.
    On a GPU a launch takes some microseconds, as long as it takes to update a million
    parameters. Kernels are alike if they hold the same operations in the same order,
    whatever the shapes: element-wise ones, broadcasts of scalars and reductions to scalars.

    The one launch stands where the last of them was; what follows from the first ones,
    writes of variables for one, moves behind it. Launches stay apart where something may not
    move: functions that are called, other reads of the variables. So do launches whose results a
    collective takes, which would have to wait for all, and launches that wait for different
    collectives, which may end at other times. The target says how many operands and results a
    launch has at most; more become several launches. On targets where a launch costs next to
    nothing nothing changes.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecScheduleKernels : StagedPass<"exec-schedule-kernels", "exec"> {
  let summary = "Plans the loops of each kernel and cuts them into chunks";
  let description = [{
    A kernel becomes stages that run one after the other, each a loop nest of one of
    the templates `elementwise`, `row-reduce`, `partials` (sums over rows or over
    everything, one partial result a chunk), `columns` (sums over few rows),
    `scatter` and `scalars`. Written on the function, one entry a stage:
    `exec.template`, `exec.iterations` and `exec.chunks`; and for the whole kernel
    `exec.workspace` (bytes for partial results and for tensors that a later stage
    needs) and `exec.inplace`. All follow from shapes alone, so that results do not
    depend on the number of threads. Chunks are as large and as many as the target says.

    Refuses, naming the op, what has no place in a kernel, memory of types other than
    f32, bf16, f16 and i32, and arithmetic in bf16 or f16.
  }];
  let options = [
    Option<"maxChunks", "max-chunks", "int64_t", "0", "Most chunks of a stage, if not 0">,
    Option<"chunkWork", "chunk-work", "int64_t", "0",
           "Least work of a chunk, if not 0, in elements times an eighth of their instructions">];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecInlineRepeats : StagedPass<"exec-inline-repeats", "exec"> {
  let summary = "Turns train.repeat into exec.loop with the function's body inside";
  let description = [{
    From here on a value belongs to one place of one program, so that memory can be
    planned for it. A loop stays a loop: the IR does not grow with the number of
    layers. Reads of variables move out of loops; functions that only repeats called
    disappear. A `func.call` stays: its callee is planned and compiled once, and
    variables that it reads become arguments. Refuses writes of variables inside
    repeated and called functions.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOrder : StagedPass<"exec-order", "exec"> {
  let summary = "Orders operations so that less memory is live";
  let description = [{
    Keeps program order, but moves an op down to its first reader when what it makes
    is larger than what it alone keeps alive: recomputed activations appear where the
    backward needs them and not all at its start. Runs on tensors, before memory
    gets its form, because in-place updates restrict what may move.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecNumberValues : StagedPass<"exec-number-values", "exec"> {
  let summary = "Numbers what a program computes, and keeps the program to compare with";
  let description = [{
    Every launch, product, attention and collective gets a number, `exec.value`. After
    each of them `exec-bufferize` puts an `exec.observe` with that number on each result:
    an executable can then dump what a step computes. The module is kept as text in its
    attribute `exec.tensor_form`: the last form with tensors, which the interpreter runs,
    so that each value of a dump has the op that it belongs to. An op runs as often and
    in the same order in both forms. Views, copies and calls get no number: they compute
    nothing, or what their callee does.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecChooseLibraries : StagedPass<"exec-choose-libraries", "exec"> {
  let summary = "Lets the target choose which library makes a call of attention";
  let description = [{
    Where the target has a library for attention beside generated kernels, and that library can
    make a call, the op gets the attribute `exec.library`, which only the target reads: how much
    scratch memory the library may use, whether generated kernels stand by. Otherwise
    `exec.reason` says why not. Refuses calls that the library cannot make where the target's
    flags ask for it alone.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecBufferize : StagedPass<"exec-bufferize", "exec"> {
  let summary = "Gives every value a place in memory";
  let description = [{
    `@step` and `@eval` become `exec.program`s. Each variable, input and output has
    its buffer; reading a variable is naming its buffer, a slice of a stack is a slot
    of its buffer, a reshape is a view.

    First every place where a value must arrive in given memory gets a copy: carried
    values of loops, slots of stacks, written variables, outputs, what an op adds to.
    Then copies go away: source and target become the same memory unless two
    different values would have to be in it at once (the coalescing of SSA
    destruction: Boissinot et al. 2009, with loops' slots as part of an address).
    Last, kernels that allow it (`exec.inplace`) write over an operand that dies.
    So the optimizer updates variables in place, gradients accumulate in place, a
    layer's kept values are written to their slots and the gradient of the logits
    overwrites them.

    A called function becomes a private program that reads its arguments where they are
    and writes its results where the caller wants them. A result that is computed in the
    place of an argument (a gradient's accumulator) is one memory with it, `inouts`, where
    no caller needs the argument afterwards.

    Each buffer has a category. A `gradient` is what launches say (`exec.gradients`), and
    what that was before devices put it together; an `activation` is what a loop with
    `train.role` forward stacks, or one with backward for one with weight, and what one
    called function computes for another.

    Contractions become `exec.matmul`, attention `exec.attention`, collectives those
    of this floor, `dist.slice` a window of its operand's memory. Refuses, naming the
    op, a contraction that needs a transposition in memory or whose factors differ in type, a
    collective or `dist.slice` of parts that are not contiguous (see
    `exec-contiguous-collectives`), a second write of a variable, a function that
    calls itself, and ops that no kernel took.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOffload : StagedPass<"exec-offload", "exec"> {
  let summary = "Moves memory to the host, and copies of its parts to and fro";
  let description = [{
    Memory that moves is of type `memref<.., "host">` from here on, and ops that compute
    use buffers on the device instead, with started copies between the two:

    - `optimizer`: the states of the optimizer. Where a loop updates a variable part by part
      (`exec-slice-updates`) each part has three places in turns: while one is updated, the
      next part is on its way to the device and the one before on its way back, which are two
      queues. A variable that is updated at once is copied as a whole.
    - `activations`: stacks that one loop writes, a slot an iteration, and later ones
      read: what layers keep for their backward. A slot is copied to the host as soon as it
      is written, while the next iteration computes, and back one iteration before the one
      that reads it; two places in turns each. Where calls keep it for other calls, as tasks of a
      pipeline do, it is memory of the caller on the host and copied inside of the callees. Stacks that live
      inside of an iteration that reads such a stack, of layers that are computed again,
      stay on the device.

    An `exec.wait` stands before each op that may not run before a copy has ended, none
    elsewhere but where copies of one number follow each other. Copies are exact: results have
    the same bits.
  }];
  let options = [
    Option<"optimizer", "optimizer", "bool", "false", "move the optimizer's states">,
    Option<"activations", "activations", "bool", "false", "move what layers keep for their backward">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecOverlapCollectives : StagedPass<"exec-overlap-collectives", "exec"> {
  let summary = "Lets collectives run while the program computes";
  let description = [{
    A collective of `min-bytes` at least is only started where it stands, and an
    `exec.wait` stands before the first op that may not run before it has ended: one that
    writes what it reads, or touches what it writes. In a loop that may be an op of the
    next iteration. A start moves up as far as data and other communication allow. Where no
    op that computes would run meanwhile, nothing changes.

    In a loop without loops inside, which layers are, iterations overlap (`OverlapLoops`).
    What an iteration gathers from memory that the loop does not write, parameters that
    devices share out, is started an iteration earlier, for the first one before the loop:
    the next layer arrives while this one computes. What an iteration reduces, gradients,
    is waited for at the end of the next one, which then does what follows from it; after
    the loop that is done for the last one. Results of the former, operands and results
    of the latter have two places, which iterations take in turns: this is the memory that
    the overlap costs.

    An all_reduce of gradients that layers have stacked becomes one of each layer's slots,
    started when the layer is done for the last time, in the last microbatch
    (`OverlapBuckets`): it runs while the layers below compute.

    Each rank does its communication in the order of the starts, one after the other, and
    waits are for what was started before. Without these changes of loops this is the
    order of the program without starts: whatever one rank waits for it waited for there,
    and that program ends, so this one does. Where the order changes there are no messages and
    no collectives with ranks of other programs: the ranks that communicate there change
    theirs in the same way, and whatever else they do they do before or after.
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", "16384", "bytes of the smallest collectives that are only started">,
  ];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecPlanMemory : StagedPass<"exec-plan-memory", "exec"> {
  let summary = "Gives every buffer its offset in one arena";
  let description = [{
    Variables, inputs and outputs come first, at the same offsets in every program.
    The rest is placed by lifetime: the programs run one after the other, so that
    they share memory; a buffer that a loop carries lives through the whole loop, and
    what a started collective uses until the program has waited for it.
    Several orders of best fit are tried, then the buffers that end on top choose
    earlier, for a fixed number of rounds or until the arena is as small as the
    largest sum of live buffers: it cannot be smaller. Buffers that nothing uses go
    away. Sets `exec.arena_bytes`, `exec.live_bytes` and `exec.memory`.

    A private program is planned before its callers, with offsets from the start of a
    workspace and the same three attributes; each call of it gets a workspace of that
    size, which is live during the call alone. What is live in it at its own peak counts
    by category at the caller's.

    Refuses a variable, input or output of different types in two programs, and memory of the
    host that a private program has for itself.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecNumberCollectives : StagedPass<"exec-number-collectives", "exec"> {
  let summary = "Gives collectives and groups of ranks their numbers";
  let description = [{
    Works on the whole module, as ranks of all programs share groups. Each collective gets
    `exec.collective`, its row in the plan, in the order of programs and of the ops in them. The module gets
    `exec.groups`: the axes, and the channel, of each group in which ranks communicate or
    count their own rank. Their order is final by now; generated code, the plan and predicted traces
    read the numbers here.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

def ExecVerify : StagedPass<"exec-verify", "exec"> {
  let summary = "Checks that floor 3 is complete";
  let description = [{
    Closes the floor: no tensors in programs, every buffer has an aligned offset
    inside the arena, buffers that are live together do not overlap, nothing is read
    before it is written, no launch, call or matmul writes over an operand that it may
    not, private programs write their `outs` and not their `ins`, and buffers that persist have the same offset in all programs.
    Programs are walked through as they would run, first and last iterations of loops, with the addresses of the
    plan: while a started collective runs, nothing but other communication may write what it reads or
    touch what it writes, and none may run when the program ends. Copies between host and device are
    in order among those of one direction, so a copy the other way or communication may not touch such
    memory either. Nothing but copies and calls uses memory of the host. Where the device has a copy
    of it, the older of the two is not read, and what a program changes in a copy of a variable or of an `inouts`
    is copied back. Of the whole module, collectives are numbered from 0 on, each differently, and
    `exec.groups` has every group once.
  }];
  let dependentDialects = ["::meshwright::exec::ExecDialect"];
}

#endif // MESHWRIGHT_EXEC_PASSES
