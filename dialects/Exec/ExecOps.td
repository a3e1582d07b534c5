//===- ExecOps.td - the ops of floor 3 --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_OPS
#define MESHWRIGHT_EXEC_OPS

include "Collectives.td"
include "Exec/ExecDialect.td"
include "Exec/ExecInterfaces.td"
include "Exec/ExecOpBase.td"
include "Train/TrainDialect.td"
include "Train/TrainInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "An entry point of the executable, or a program that others call";
  let description = [{
    A list of ops that run in order, in the memory form. `@step` becomes
    `meshwright_step`, `@eval` becomes `meshwright_eval`. Programs share the arena and run
    one at a time: buffers with `variable`, `input` or `output` are the same memory in all
    of them.

    A `private` program is called by others, with `exec.call`. Its arguments are memory of
    the caller: it reads `ins`, reads and writes `inouts`, and writes `outs`. Its own
    buffers have offsets from the start of a workspace of `exec.arena_bytes` that the
    caller provides; it has no persistent buffers.

    ```mlir
    exec.program @eval {
      %w = exec.buffer "wte" parameter variable @wte offset 0 : memref<256x64xf32>
      exec.loop %i = 12 {
        ...
      }
    }
    exec.program private @add ins(%x: memref<4xf32>) inouts(%sum: memref<4xf32>) {
      exec.launch @k ins(%x, %sum : memref<4xf32>, memref<4xf32>) outs(%sum : memref<4xf32>)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{0, 0, 0}">:$argumentSegments);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::Block::BlockArgListType getSegment(unsigned segment) {
      auto sizes = getArgumentSegments();
      return getBlock().getArguments().slice(
          segment == 0 ? 0 : segment == 1 ? sizes[0] : sizes[0] + sizes[1], sizes[segment]);
    }
    /// The arguments of a private program that it reads, reads and writes, and writes.
    ::mlir::Block::BlockArgListType getInputs() { return getSegment(0); }
    ::mlir::Block::BlockArgListType getUpdated() { return getSegment(1); }
    ::mlir::Block::BlockArgListType getOutputs() { return getSegment(2); }
  }];
}

def Exec_CallOp : Exec_Op<"call", [AttrSizedOperandSegments, TripCountOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a private program";
  let description = [{
    Operands are memory for the callee's arguments and, if the callee has buffers of its
    own, a workspace, which `exec-assign-offsets` adds. In the tensor form the op is a
    `func.call`.

    ```mlir
    exec.call @backward.0 ins(%dy : memref<4xf32>) inouts(%sum : memref<8xf32>) outs(%dx : memref<4xf32>)
        workspace(%w : memref<4096xi8>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Arg<Variadic<Exec_MemRef>, "", [MemRead]>:$inputs,
                       Arg<Variadic<Exec_MemRef>, "", [MemRead, MemWrite]>:$updated,
                       Arg<Variadic<Exec_MemRef>, "", [MemWrite]>:$outputs,
                       Arg<Optional<Exec_MemRef>, "", [MemWrite]>:$workspace);
  let assemblyFormat = [{
    $callee (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`inouts` `(` $updated^ `:` type($updated) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)? attr-dict
  }];
}

def Exec_LoopOp : Exec_Op<"loop", [AttrSizedOperandSegments, SingleBlock,
    DeclareOpInterfaceMethods<TripCountOpInterface, ["getTripCount"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs its body a fixed or data-dependent number of times";
  let description = [{
    The first argument of the body, of type index, is the number of the iteration: 0 to
    `count`-1, downwards with `reverse`. In the memory form it is the only one.

    With `times`, an i32 in memory or a `tensor<i32>`, as many iterations run as it says, at most
    `count`; it has no stacks, and `each` operands only where it is over microbatches (`train.role`). With
    `from` those before that number stand before the loop.

    In the tensor form the op is a `train.repeat` with its function inlined: the body also takes the
    carried values and the iteration's slice of each `each` operand along its first dimension, and
    `exec.yield`s the next carried values, then those that are stacked along a new first dimension.

    ```mlir
    exec.loop %i = 12 reverse { ... }
    exec.loop %i = 4 times(%n : memref<i32>) from 1 { ... }
    %y, %kept = exec.loop %i = 12 carry(%c = %x) each(%w = %ws)
        : (tensor<4x64xf32>, tensor<12x64xf32>) -> (tensor<4x64xf32>, tensor<12x4x64xf32>) {
      ...
      exec.yield %next, %c : tensor<4x64xf32>, tensor<4x64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, UnitAttr:$reverse, Variadic<AnyRankedTensor>:$carry,
                       Variadic<AnyRankedTensor>:$each,
                       Optional<AnyTypeOf<[AnyRankedTensor, Exec_MemRef]>>:$times,
                       DefaultValuedAttr<I64Attr, "0">:$from);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int64_t":$count, "bool":$reverse, "::mlir::ValueRange":$carry,
                                 "::mlir::ValueRange":$each, "::mlir::TypeRange":$stacks,
                                 CArg<"::mlir::Value", "{}">:$times)>];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The iteration's number.
    ::mlir::BlockArgument getIndex() { return getBlock().getArgument(0); }
    /// The carried values and slices inside the body.
    ::mlir::Block::BlockArgListType getCarryArguments() {
      return getBlock().getArguments().slice(1, getCarry().size());
    }
    ::mlir::Block::BlockArgListType getEachArguments() {
      return getBlock().getArguments().drop_front(1 + getCarry().size());
    }
    /// The results that are carried values, and those that are stacks.
    ::mlir::ResultRange getCarried() { return getResults().take_front(getCarry().size()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getCarry().size()); }
  }];
}

def Exec_WhenOp : Exec_Op<"when", [NoTerminator, SingleBlock, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<TripCountOpInterface, ["getTripCount"]>]> {
  let summary = "Runs its body in some iterations of the loop around it";
  let description = [{
    The body runs in the iterations from `begin` to before `end`. Memory form.

    ```mlir
    exec.when %i from 1 to 12 {
      exec.all_gather ...
    }
    ```
  }];
  let arguments = (ins Index:$index, I64Attr:$begin, I64Attr:$end);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$index `from` $begin `to` $end attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$index, "int64_t":$begin, "int64_t":$end)>];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The loop whose iterations it is about.
    LoopOp getLoop() {
      return ::llvm::cast<LoopOp>(getIndex().getParentBlock()->getParentOp());
    }
  }];
}

def Exec_ShiftOp : Exec_Op<"shift", [Pure]> {
  let summary = "The number of an earlier or later iteration";
  let description = [{
    The number of a loop's iteration plus `by`; with `modulo` its remainder, which is not negative: the slot
    that this iteration uses if iterations use `modulo` slots in turn. With `mirrored` iterations are numbered
    from the loop's other end, by `count` - 1 minus the number. The result indexes slots.

    ```mlir
    %mine = exec.shift %i by 1 modulo 2
    %back = exec.shift %i mirrored by 0
    ```
  }];
  let arguments = (ins Index:$index, I64Attr:$by, OptionalAttr<I64Attr>:$modulo, UnitAttr:$mirrored);
  let results = (outs Index:$result);
  let assemblyFormat = "$index (`mirrored` $mirrored^)? `by` $by (`modulo` $modulo^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The loop whose iterations are numbered.
    LoopOp getLoop() { return ::llvm::cast<LoopOp>(getIndex().getParentBlock()->getParentOp()); }
    /// What it is where the loop's iteration number is `iteration`.
    int64_t evaluate(int64_t iteration);
  }];
}

def Exec_YieldOp : Exec_Op<"yield", [Terminator, Pure, ParentOneOf<["LoopOp"]>]> {
  let summary = "Ends a loop's body";
  let description = [{
    In the tensor form the operands are the next carried values, then the values to stack.
    In the memory form there are no operands and the op is not printed.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
}

def Exec_IndexOp : Exec_Op<"index", [Pure]> {
  let summary = "The number of a loop's iteration as a tensor";
  let description = [{
    `index` is that of a loop, the result a tensor<i32>. Tensor form; in the memory form the
    op is an `exec.store_index`.
  }];
  let arguments = (ins Index:$index);
  let results = (outs 0DTensorOf<[I32]>:$value);
  let assemblyFormat = "$index attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

def Exec_BufferOp : Exec_Op<"buffer", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A range of the arena";
  let description = [{
    With the type `memref<.., "host">` it is a range of the host's arena, see
    `exec-offload`. `name` is unique in its program. `variable`, `input` and `output` mark
    persistent memory, which is the same in every program. `offset`, in bytes
    from the start of the arena and a multiple of 64, is set by `exec-assign-offsets`.
  }];
  let arguments = (ins StrAttr:$name, Exec_CategoryAttr:$category,
                       OptionalAttr<FlatSymbolRefAttr>:$variable, OptionalAttr<StrAttr>:$input,
                       OptionalAttr<StrAttr>:$output, OptionalAttr<I64Attr>:$offset);
  let results = (outs Exec_MemRef:$memory);
  let assemblyFormat = [{
    $name $category (`variable` $variable^)? (`input` $input^)? (`output` $output^)?
    (`offset` $offset^)? attr-dict `:` type($memory)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Keeps its contents between runs of programs.
    bool isPersistent() { return getVariable() || getInput() || getOutput(); }
    /// Its size in bytes, not rounded up.
    int64_t getBytes();
  }];
}

def Exec_SlotOp : Exec_Op<"slot", [Pure]> {
  let summary = "One slice of stacked memory";
  let description = [{
    [n, ...] to [...]: the slice at `index` along the first dimension. `index` is the number
    of a loop's iteration, or an `exec.shift` of one, and is less than n in every iteration
    that uses the slot.
  }];
  let arguments = (ins Exec_MemRef:$base, Index:$index);
  let results = (outs Exec_MemRef:$slice);
  let assemblyFormat = "$base `[` $index `]` attr-dict `:` type($base) `->` type($slice)";
  let hasVerifier = 1;
}

def Exec_ViewOp : Exec_Op<"view", [Pure]> {
  let summary = "The same memory with another shape";
  let description = [{
    Row-major, from element `offset` of `base` on; may be shorter than `base`.
  }];
  let arguments = (ins Exec_MemRef:$base, DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Exec_MemRef:$result);
  let assemblyFormat = "$base (`from` $offset^)? attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def Exec_WindowOp : Exec_Op<"window", [Pure]> {
  let summary = "The device's own part of memory";
  let description = [{
    `base` consists of equal parts, one after the other, and the result is the part whose
    number is the device's rank among the ranks that differ only in `axes`: a `dist.slice`
    of contiguous parts. With `shift` it is the part of the device that many ranks further,
    modulo the number of ranks: the memory in which a part of a `dist.concat` is computed.
  }];
  let arguments = (ins Exec_MemRef:$base, StrArrayAttr:$axes, DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs Exec_MemRef:$result);
  let assemblyFormat = "$base (`shift` $shift^)? `over` $axes attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def Exec_CopyOp : Exec_Op<"copy", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Copies a value";
  let description = [{
    Memory form: `target` becomes equal to `source`, of the same type; they do not overlap.
    One of the two may be memory of the host. Such a copy can be asynchronous, as a
    collective can; copies of one direction run in order. Tensor form: the result is the
    value in memory of its own; `exec-bufferize` inserts these copies where two values may
    not share memory and removes those whose values may.

    ```mlir
    exec.copy %mine to %kept {exec.async_token = 0 : i64} : memref<4x64xf32> to memref<4x64xf32, "host">
    ```
  }];
  let arguments = (ins Exec_Operand:$source, Optional<Exec_MemRef>:$target);
  let results = (outs Optional<AnyRankedTensor>:$value);
  let assemblyFormat = [{
    $source (`to` $target^)? attr-dict `:` type($source) (`to` type($target)^)? (`->` type($value)^)?
  }];
  let hasVerifier = 1;
}

def Exec_ObserveOp : Exec_Op<"observe", [MemoryEffects<[MemWrite]>]> {
  let summary = "Passes a value to the runtime, which may write it to a file";
  let description = [{
    `source` holds result `result` of the op to which `exec-assign-value-ids` gave the id
    `value`. A program has these ops if its executable is to dump a step for
    `meshwright replay`.

    ```mlir
    exec.observe %y as 17 result 0 : memref<4x64xf32>
    ```
  }];
  let arguments = (ins Reads<Exec_MemRef>:$source, I64Attr:$value, I64Attr:$result);
  let assemblyFormat = "$source `as` $value `result` $result attr-dict `:` type($source)";
}

def Exec_StoreIndexOp : Exec_Op<"store_index"> {
  let summary = "Writes the number of a loop's iteration";
  let description = [{
    `target` is one i32. In the tensor form the op was an `exec.index`.
  }];
  let arguments = (ins Index:$index, Writes<Exec_MemRef>:$target);
  let assemblyFormat = "$index `,` $target attr-dict `:` type($target)";
  let hasVerifier = 1;
}

def Exec_StoreOffsetOp : Exec_Op<"store_offset"> {
  let summary = "Writes the offset of this device's part";
  let description = [{
    `target`, one i32, becomes `size` times the device's rank among the ranks that differ
    only in `axes`. In the tensor form the op was a `dist.offset`. With `shift` it is the
    offset of the part that many ranks further, modulo `members` ranks.
  }];
  let arguments = (ins I64Attr:$size, StrArrayAttr:$axes, Writes<Exec_MemRef>:$target,
                       DefaultValuedAttr<I64Attr, "0">:$shift, DefaultValuedAttr<I64Attr, "1">:$members);
  let assemblyFormat = "$size (`shift` $shift^ `of` $members)? `over` $axes `to` $target attr-dict `:` type($target)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Exec_LaunchOp : Exec_Op<"launch", [AttrSizedOperandSegments, OwnFlops,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs a generated kernel";
  let description = [{
    `kernel` is a `func.func` with the attribute `exec.kernel`. Tensor form:
    operands and results are those of the function. Memory form: `ins` hold the
    arguments, `outs` receive the results, an operand may occur in both where the
    kernel's `exec.inplace` allows it, `workspace` is present
    when the kernel's `exec.workspace` is not 0. At run time the kernel gets the
    addresses of ins, outs and workspace, in this order.

    ```mlir
    %y = exec.launch @k ins(%x, %b : tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
    exec.launch @k ins(%0, %1 : memref<8x64xf32>, memref<64xf32>) outs(%0 : memref<8x64xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_Operand>:$inputs,
                       Variadic<Exec_MemRef>:$outputs, Optional<Exec_MemRef>:$workspace);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `ins` `(` ($inputs^ `:` type($inputs))? `)` (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)? attr-dict (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

def Exec_ProductOp : Exec_Op<"product", [AttrSizedOperandSegments, Pure, ContractionOpInterface]> {
  let summary = "A matrix product with its epilogue";
  let description = [{
    Tensor form; in the memory form an `exec.matmul` with the same operands. The einsum
    `rule` as of `train.contract`, its two factors, and then, on f32 sums:

    - `addend`, of the result's type, is added, and so is `bias`, [n], where n is the
      size of the result's contiguous index of columns;
    - `gelu`: the tanh form of `train.gelu` of that is the result. A second result, if
      there is one, is what gelu is taken of;
    - or `gelu_grad`: the sum is multiplied by the derivative of the tanh form of gelu
      at this operand, of the result's type. Nothing is added then;
    - or `bias_grad`: a second result has the sums of factor 0 or 1 over the index that the
      product sums, in the order of the factor's other dimensions and with the result's
      element type. Only an addend goes with it, which has no part in these sums.

    Only the results are rounded. `exec-fuse-epilogues` makes it.

    ```mlir
    %y, %x = exec.product "b i, o i -> b o" %a, %w bias %b gelu : (tensor<8x4xbf16>, tensor<16x4xbf16>, tensor<16xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>)
    %dx = exec.product "b o, o i -> b i" %dy, %w gelu_grad %x : (tensor<8x4xbf16>, tensor<4x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
    %dw, %db = exec.product "b o, b i -> o i" %dy, %a bias_grad 0 : (tensor<8x4xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins StrAttr:$rule, AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       Optional<AnyRankedTensor>:$addend, Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$slope_at, UnitAttr:$gelu,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<1>]>>:$bias_grad);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$beside);
  let assemblyFormat = [{
    $rule $lhs `,` $rhs (`addend` $addend^)? (`bias` $bias^)? (`gelu_grad` $slope_at^)? (`gelu` $gelu^)?
    (`bias_grad` $bias_grad^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The factor table of the sum of products, of operands 0 and 1 and result 0.
    ::meshwright::ShardingRule getProductRule();
    /// What the second result is; null if it is not this.
    ::mlir::Value getPreactivation() { return getGelu() ? getBeside() : ::mlir::Value(); }
    ::mlir::Value getFactorSums() { return getBiasGrad() ? getBeside() : ::mlir::Value(); }
  }];
}

def Exec_MatmulOp : Exec_Op<"matmul", [AttrSizedOperandSegments, OwnFlops,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "C = alpha op(A) op(B) + beta C";
  let description = [{
    The arguments of `mw_matmul_f32` (meshwright/runtime/ABI.h): row-major, `m`,
    `n`, `k` after transposition, `lda`, `ldb`, `ldc` row strides in elements of
    the matrices as stored, `batch` repetitions with strides in elements.
    With beta 0, C is not read. A and B do not overlap C.

    A and B are both f32, bf16 or f16, C any of these, with sums in f32. How large the
    `workspace` is, if there is one, is the target's to say.

    On targets whose library has them, and as of `exec.product`: `addend`, which lies as C and may be the same
    memory, is added in place of beta C, with alpha 1; `bias` [n]; `gelu`, with what it is
    taken of in `preactivation`; `gelu_grad`. These lie as C and have its type. `sum_a` [m]
    or `sum_b` [n], of C's element type: the sums over k of A, which must be stored k first,
    or of B, stored so too. C may be added to then, by beta or an addend.
  }];
  let arguments = (ins Exec_MemRef:$a, Exec_MemRef:$b, Exec_MemRef:$c,
                       Optional<Exec_MemRef>:$addend, Optional<Exec_MemRef>:$bias,
                       Optional<Exec_MemRef>:$slope_at, Optional<Exec_MemRef>:$preactivation,
                       Optional<Exec_MemRef>:$sum_a, Optional<Exec_MemRef>:$sum_b,
                       Optional<Exec_MemRef>:$workspace, UnitAttr:$gelu, BoolAttr:$transA,
                       BoolAttr:$transB, I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$lda,
                       I64Attr:$ldb, I64Attr:$ldc, I64Attr:$batch, I64Attr:$strideA,
                       I64Attr:$strideB, I64Attr:$strideC, F32Attr:$alpha, F32Attr:$beta);
  let assemblyFormat = [{
    $a `,` $b `,` $c `trans` `(` $transA `,` $transB `)` `sizes` `(` $m `,` $n `,` $k `)`
    `ld` `(` $lda `,` $ldb `,` $ldc `)` `batch` $batch `strides` `(` $strideA `,` $strideB `,` $strideC `)`
    `alpha` $alpha `beta` $beta (`addend` `(` $addend^ `:` type($addend) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`gelu_grad` `(` $slope_at^ `:` type($slope_at) `)`)? (`gelu` $gelu^)?
    (`preactivation` `(` $preactivation^ `:` type($preactivation) `)`)?
    (`sum_a` `(` $sum_a^ `:` type($sum_a) `)`)? (`sum_b` `(` $sum_b^ `:` type($sum_b) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)?
    attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether some matrix is not f32.
    bool isMixed();
    ::meshwright::exec::ProductShape getShape();
    ::llvm::SmallVector<::meshwright::exec::Epilogue> getEpilogues();
    /// Whether more is done than a product and a sum in place.
    bool hasEpilogue() {
      return getAddend() || getBias() || getSlopeAt() || getPreactivation() || getGelu() ||
             getSumA() || getSumB();
    }
  }];
}

class Exec_AttentionBase<string mnemonic> : Exec_Op<mnemonic, [AttrSizedOperandSegments, OwnFlops]> {
  defvar shapeCode = [{
    ::meshwright::train::AttentionOptions getOptions() { return ::meshwright::train::attentionOptionsOf(*this); }
    /// The runtime's description of this call; pointers are null.
    MwAttention getAttention();
    /// Floating-point operations for one pair of a query and a key, in all heads of the batch.
    double getFlopsOfPair();
    /// Pairs of which the query sees the key, on average over devices that divide queries or
    /// keys, because these share a program.
    double getVisiblePairs();
  }];
  let extraClassDeclaration = shapeCode;
  let hasVerifier = 1;
}
/// As train's ops have them.
defvar AttentionOptions = (ins Reads<Optional<Exec_MemRef>>:$ids, Reads<Optional<Exec_MemRef>>:$key,
                               Reads<Optional<Exec_MemRef>>:$head_offset, Reads<Optional<Exec_MemRef>>:$query_offset,
                               Reads<Optional<Exec_MemRef>>:$key_offset, Reads<Optional<Exec_MemRef>>:$positions,
                               Reads<Optional<Exec_MemRef>>:$lengths, Reads<Optional<Exec_MemRef>>:$slopes,
                               Reads<Optional<Exec_MemRef>>:$sinks, Reads<Optional<Exec_MemRef>>:$distances);
defvar AttentionOptionsText = [{
    (`dropout` `(` $ids^ `,` $key `)`)? (`head_offset` `(` $head_offset^ `)`)? (`query_offset` `(` $query_offset^ `)`)?
    (`key_offset` `(` $key_offset^ `)`)? (`positions` `(` $positions^ `)`)? (`lengths` `(` $lengths^ `)`)?
    (`slopes` `(` $slopes^ `)`)? (`sinks` `(` $sinks^ `)`)? (`distances` `(` $distances^ `)`)?
}];
defvar AttentionAttrs = (ins Train_AttentionAttr:$spec, OptionalAttr<AnyAttr>:$library, OptionalAttr<StrAttr>:$reason);
defvar AttentionAttrsText = [{
    (`workspace` `(` $workspace^ `)`)? custom<AttentionSpec>($spec) attr-dict `:` functional-type(operands, results)
}];

def Exec_AttentionOp : Exec_AttentionBase<"attention"> {
  let summary = "mw_attention_forward";
  let description = [{
    q: [batch, queries, heads, d]; k: [batch, keys, kv heads, d]; v: [batch, keys, kv heads, e];
    out: [batch, queries, heads, e], all of one of the types f32, bf16 and f16; lse: [batch, heads, queries]
    in f32. Other operands and the attribute are those of `train.attention`, with tensors of one element as
    offsets; its numbers of `heads` and `queries` are always there. With `key_offset` out is in f32, and
    `pairs` is how many pairs are visible on average over devices. How large the
    workspace is, if there is one, is the target's to say.

    `library` is the target's choice of a library that makes the call, `reason` why there is
    none (`exec-choose-libraries`).
  }];
  let arguments = !con((ins Reads<Exec_MemRef>:$q, Reads<Exec_MemRef>:$k, Reads<Exec_MemRef>:$v), AttentionOptions,
                       (ins Reads<Optional<Exec_MemRef>>:$before, Reads<Optional<Exec_MemRef>>:$before_lse,
                            Writes<Exec_MemRef>:$out, Writes<Exec_MemRef>:$lse,
                            Writes<Optional<Exec_MemRef>>:$workspace),
                       AttentionAttrs);
  let builders = [OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
                                 "const ::meshwright::train::AttentionOptions &":$options,
                                 "::mlir::Value":$before, "::mlir::Value":$before_lse,
                                 "::mlir::Value":$out, "::mlir::Value":$lse, "::mlir::Value":$workspace,
                                 "::meshwright::train::AttentionAttr":$spec, "::mlir::Attribute":$library,
                                 "::mlir::StringAttr":$reason)>];
  let assemblyFormat = !strconcat("`ins` `(` $q `,` $k `,` $v `)` ", AttentionOptionsText, [{
    (`before` `(` $before^ `,` $before_lse `)`)? `outs` `(` $out `,` $lse `)`
  }], AttentionAttrsText);
}

def Exec_AttentionGradOp : Exec_AttentionBase<"attention_grad"> {
  let summary = "mw_attention_backward";
  let description = [{
    Gradients of `exec.attention`'s q, k and v from the gradient of its result, and of its sinks and distances
    if it has any; in f32 where it has `key_offset`.
  }];
  let arguments = !con((ins Reads<Exec_MemRef>:$dout, Reads<Exec_MemRef>:$q, Reads<Exec_MemRef>:$k,
                            Reads<Exec_MemRef>:$v, Reads<Exec_MemRef>:$out, Reads<Exec_MemRef>:$lse),
                       AttentionOptions,
                       (ins Writes<Exec_MemRef>:$dq, Writes<Exec_MemRef>:$dk, Writes<Exec_MemRef>:$dv,
                            Writes<Optional<Exec_MemRef>>:$dsinks, Writes<Optional<Exec_MemRef>>:$ddistances,
                            Writes<Optional<Exec_MemRef>>:$workspace),
                       AttentionAttrs);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$operands,
                                 "const ::meshwright::train::AttentionOptions &":$options,
                                 "::mlir::ValueRange":$gradients, "::mlir::Value":$dsinks,
                                 "::mlir::Value":$ddistances, "::mlir::Value":$workspace,
                                 "::meshwright::train::AttentionAttr":$spec, "::mlir::Attribute":$library,
                                 "::mlir::StringAttr":$reason)>];
  let assemblyFormat = !strconcat("`ins` `(` $dout `,` $q `,` $k `,` $v `,` $out `,` $lse `)` ",
                                  AttentionOptionsText, [{
    `outs` `(` $dq `,` $dk `,` $dv (`,` $dsinks^)? `)` (`ddistances` `(` $ddistances^ `)`)?
  }], AttentionAttrsText);
}

//===----------------------------------------------------------------------===//
// Mixtures of experts
//===----------------------------------------------------------------------===//

def Exec_RouteOp : Exec_Op<"route"> {
  let summary = "mw_route";
  let description = [{
    mask: [b, s, experts] of f32, bf16 or f16; chosen, rows: [k, b, s], choices, experts:
    [x, b, m], all i32, as `train.route` describes them. How large the workspace is, if there is one, is
    the target's to say.
  }];
  let arguments = (ins Reads<Exec_MemRef>:$mask, Writes<Exec_MemRef>:$chosen, Writes<Exec_MemRef>:$rows,
                       Writes<Exec_MemRef>:$choices, Writes<Exec_MemRef>:$experts,
                       Writes<Optional<Exec_MemRef>>:$workspace, DefaultValuedAttr<I64Attr, "0">:$capacity);
  let assemblyFormat = [{
    $mask `to` $chosen `,` $rows `,` $choices `,` $experts (`workspace` `(` $workspace^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::meshwright::exec::RouteShape getShape();
  }];
}

def Exec_RoundsOp : Exec_Op<"rounds"> {
  let summary = "mw_rounds";
  let description = [{ choices: [x, b, m], rounds: one i32, as `train.rounds` describes them. }];
  let arguments = (ins Reads<Exec_MemRef>:$choices, Writes<Exec_MemRef>:$rounds, I64Attr:$slots);
  let assemblyFormat = "$choices `to` $rounds `slots` $slots attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Exec_RowsOfRoundOp : Exec_Op<"rows_of_round"> {
  let summary = "mw_rows_of_round";
  let description = [{
    round: one i32, 0 without one; rows, own_rows: [k, b, s], choices, experts: [x, b, m], own_choices,
    own_experts: [x, b, c], all i32, as `train.rows_of_round` describes them.
  }];
  let arguments = (ins Reads<Optional<Exec_MemRef>>:$round, Reads<Exec_MemRef>:$rows,
                       Reads<Exec_MemRef>:$choices, Reads<Exec_MemRef>:$experts, Writes<Exec_MemRef>:$own_rows,
                       Writes<Exec_MemRef>:$own_choices, Writes<Exec_MemRef>:$own_experts,
                       DefaultValuedAttr<I64Attr, "0">:$part, DefaultValuedAttr<I64Attr, "1">:$parts);
  let assemblyFormat = [{
    ($round^)? `of` $rows `,` $choices `,` $experts `to` $own_rows `,` $own_choices `,` $own_experts
    (`part` $part `of` $parts^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Exec_GroupedMatmulOp : Exec_Op<"grouped_matmul", [OwnFlops]> {
  let summary = "mw_grouped_matmul";
  let description = [{
    x: [x, b, m, k], weight: [x e, n, k], with `transposed` [x e, k, n], y: [x, b, m, n], of one of
    the types f32, bf16 and f16; experts: [x, b, m] i32. y[r] = op(weight[i]) x[r], where i is
    e times r's block plus experts[r]; 0 for an expert outside [0, e). How large the workspace
    is, if there is one, is the target's to say. `filled` is the share of rows of some expert, on average.
  }];
  let arguments = (ins Reads<Exec_MemRef>:$x, Reads<Exec_MemRef>:$weight, Reads<Exec_MemRef>:$experts,
                       Writes<Exec_MemRef>:$y, Writes<Optional<Exec_MemRef>>:$workspace,
                       UnitAttr:$transposed, DefaultValuedAttr<F64Attr, "1.0">:$filled);
  let assemblyFormat = [{
    $x `,` $weight `of` $experts `to` $y (`transposed` $transposed^)? (`workspace` `(` $workspace^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The product that it would be if all rows were of one expert.
    ::meshwright::exec::ProductShape getShape();
    ::meshwright::exec::GroupShape getGroups();
  }];
}

def Exec_GroupedMatmulGradOp : Exec_Op<"grouped_matmul_grad", [OwnFlops,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "mw_grouped_matmul_grad";
  let description = [{
    dy: [x, b, m, o], x: [x, b, m, i], experts: [x, b, m] i32, result: [x e, o, i].
    result[j] = sum of dy[r] x[r]^T over the rows r of expert j, added to what is there with
    `accumulates`. Types as of `exec.matmul`; sums are in f32, and a narrower result is rounded once.
  }];
  let arguments = (ins Exec_MemRef:$dy, Exec_MemRef:$x, Exec_MemRef:$experts, Exec_MemRef:$result,
                       Optional<Exec_MemRef>:$workspace, UnitAttr:$accumulates,
                       DefaultValuedAttr<F64Attr, "1.0">:$filled);
  let assemblyFormat = [{
    $dy `,` $x `of` $experts `to` $result (`accumulates` $accumulates^)? (`workspace` `(` $workspace^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The product that it would be if all rows were of one expert.
    ::meshwright::exec::ProductShape getShape();
    ::meshwright::exec::GroupShape getGroups();
  }];
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

class ReadsAll<Type type> : Arg<Variadic<type>, "", [MemRead]>;
class WritesAll<Type type> : Arg<Variadic<type>, "", [MemWrite]>;

/// A row of the table of collectives, as a call on memory.
class Exec_TableOp<Collective c> : Exec_Op<c.name, !listconcat(
    [MemoryCollectiveOpInterface]<Trait>,
    !if(c.bucket, [AttrSizedOperandSegments]<Trait>, []<Trait>))> {
  string memory = !if(c.bucket, "s", "");
  let summary = "mw_" # c.name # ", among the ranks that differ only in `axes`";
  let description = c.call;
  let arguments = !con(
      !if(c.bucket, (ins ReadsAll<Exec_MemRef>:$inputs, WritesAll<Exec_MemRef>:$outputs),
                    (ins Reads<Exec_MemRef>:$input, Writes<Exec_MemRef>:$output)),
      !if(!eq(c.who, "From"), (ins DenseI64ArrayAttr:$from), (ins)),
      !if(!eq(c.who, "Root"), (ins I64Attr:$root), (ins)),
      (ins StrArrayAttr:$axes),
      !if(c.reduces, (ins Train_ReduceKindAttr:$reduction), (ins)));
  let assemblyFormat = !if(c.reduces, "$reduction ", "") #
      "$input" # memory # " `to` $output" # memory # " " #
      !if(!eq(c.who, "From"), "`from` $from ", "") # !if(!eq(c.who, "Root"), "`root` $root ", "") #
      "`over` $axes attr-dict `:` type($input" # memory # ") `to` type($output" # memory # ")";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral growth = "}] # c.growth # [{";
  }] # !if(!eq(c.growth, "Same"), "", [{
    int64_t getParts(int64_t members) { return members; }
  }]) # !if(c.reduces, [{
    ::std::optional<::meshwright::train::ReduceKind> getReductionKind() { return getReduction(); }
  }], "") # !if(!eq(c.who, "Root"), [{
    ::std::optional<int64_t> getRootOrPeer() { return int64_t(getRoot()); }
  }], "") # !if(!eq(c.who, "From"), [{
    ::llvm::SmallVector<int64_t> getTable() { return ::llvm::to_vector(getFrom()); }
    bool isPermutation() { return true; }
  }], "") # !if(c.bucket, [{
    bool isBucket() { return true; }
  }], "");
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() { return verifyTensors(*this); }
  }];
}

foreach c = !instances<Collective>() in
  def "Exec_" # c.op # "Op" : Exec_TableOp<c>;

def Exec_ExchangeOp : Exec_Op<"exchange", [MemoryCollectiveOpInterface, AttrSizedOperandSegments]> {
  let summary = "mw_exchange: one message for each rank that takes part";
  let description = [{
    `dist.exchange` in place: received pieces are added to those of each `memory`, or
    replace them. For pieces that are added, `workspace` holds the received values. The op
    may take several tensors.

    ```mlir
    exec.exchange reducing sum %a pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1]
        over ["data"] workspace(%w : memref<16xi8>) : memref<8xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<Train_ReduceKindAttr>:$kind,
                       Arg<Variadic<Exec_MemRef>, "", [MemRead, MemWrite]>:$memory,
                       Writes<Optional<Exec_MemRef>>:$workspace, I64Attr:$pieces, I64Attr:$length,
                       DenseI64ArrayAttr:$to, DenseI64ArrayAttr:$send, DenseI64ArrayAttr:$from,
                       DenseI64ArrayAttr:$receive, StrArrayAttr:$axes);
  let assemblyFormat = [{
    (`reducing` $kind^)? $memory `pieces` $pieces `length` $length `to` $to `send` $send
    `from` $from `receive` $receive `over` $axes (`workspace` `(` $workspace^ `:` type($workspace) `)`)?
    attr-dict `:` type($memory)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::SmallVector<::mlir::Value> getSources() { return ::llvm::to_vector(::mlir::ValueRange(getMemory())); }
    ::mlir::SmallVector<::mlir::Value> getTargets() { return getSources(); }
    bool isBucket() { return true; }
    ::llvm::SmallVector<int64_t> getTable();
    ::std::optional<::mlir::Value> getScratch() { return getWorkspace(); }
    /// Bytes of what the rank that gets most gets.
    int64_t getReceivedBytes();
  }];
}
def Exec_SendOp : Exec_Op<"send", [MemoryCollectiveOpInterface, MemoryEffects<[MemWrite]>]> {
  let summary = "mw_send to rank `to` of the group";
  let description = [{
    Copies the input to `buffer` and returns; waits only if the previous message is still
    in `buffer`. Sends of one channel to one rank share a buffer of the size of the largest
    message, which no other op uses until `exec.finish_sends`.
  }];
  let arguments = (ins Reads<Exec_MemRef>:$input, Writes<Exec_MemRef>:$buffer, I64Attr:$to,
                       I64Attr:$channel, StrArrayAttr:$axes);
  let assemblyFormat = "$input `to` $to `channel` $channel `over` $axes `buffer` $buffer attr-dict `:` type($input) `,` type($buffer)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::SmallVector<::mlir::Value> getTargets() { return {}; }
    ::std::optional<int64_t> getRootOrPeer() { return int64_t(getTo()); }
    int64_t getMessageChannel() { return getChannel() + 1; }
    ::std::optional<::mlir::Value> getScratch() { return getBuffer(); }
  }];
}
def Exec_FinishSendsOp : Exec_Op<"finish_sends", [MemoryEffects<[MemWrite]>]> {
  let summary = "mw_finish_sends: waits until all messages have been received";
  let description = [{
    The last op of a program that sends; `buffers` are those of all of its messages.
  }];
  let arguments = (ins Arg<Variadic<Exec_MemRef>, "", [MemRead, MemWrite]>:$buffers);
  let assemblyFormat = "$buffers attr-dict `:` type($buffers)";
}
def Exec_WaitOp : Exec_Op<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "mw_wait: waits for an asynchronous collective or copy";
  let description = [{
    A collective, or a copy from or to the host, with the attribute
    `exec.async_token = n : i64` is asynchronous: the op starts it, and it overlaps the
    following ops. `exec.wait n` returns when the latest op with that async token has
    ended. Since the ops of a queue end in the order in which they start, all earlier ops
    of its queue have ended then, too; the queues are communication, copies to the device
    and copies to the host. Without such an op it returns at once. Until then only later ops of the
    same queue may write the op's operands or touch its results.

    ```mlir
    exec.reduce_scatter sum %g to %mine over ["data"] {exec.async_token = 0 : i64} : memref<8xf32> to memref<4xf32>
    ...
    exec.wait 0
    ```
  }];
  let arguments = (ins I64Attr:$async_token);
  let assemblyFormat = "$async_token attr-dict";
}
def Exec_RecvOp : Exec_Op<"recv", [MemoryCollectiveOpInterface]> {
  let summary = "mw_recv from rank `from` of the group";
  let description = [{
    Waits for the sender's `exec.send` of the same channel.
  }];
  let arguments = (ins Writes<Exec_MemRef>:$output, I64Attr:$from, I64Attr:$channel, StrArrayAttr:$axes);
  let assemblyFormat = "`from` $from `channel` $channel `over` $axes `to` $output attr-dict `:` type($output)";
  let extraClassDeclaration = [{
    ::mlir::SmallVector<::mlir::Value> getSources() { return {}; }
    ::mlir::SmallVector<::mlir::Value> getTargets() { return {getOutput()}; }
    ::std::optional<int64_t> getRootOrPeer() { return int64_t(getFrom()); }
    int64_t getMessageChannel() { return getChannel() + 1; }
  }];
}

#endif // MESHWRIGHT_EXEC_OPS
