//===- DistOps.td - the ops of floor 2 --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_OPS
#define MESHWRIGHT_DIST_OPS

include "Dist/DistDialect.td"
include "Dist/DistInterfaces.td"
include "Train/TrainDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "The devices, in a grid of named axes";
  let description = [{
    Ranks are numbered row-major: the last axis varies fastest. A mesh without
    axes is one device. Axes have distinct names and at least one device each.

    ```mlir
    dist.mesh @mesh ["data" = 2, "tensor" = 4]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names,
                       DenseI64ArrayAttr:$axis_sizes, OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name custom<MeshAxes>($axis_names, $axis_sizes) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{ Mesh getMesh(); }];
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure]> {
  let summary = "Changes the sharding of a value";
  let description = [{
    On global tensors: the types are equal but for the sharding. Partitioning replaces it
    by collectives.

    ```mlir
    %1 = dist.reshard %0 : (tensor<8x64xf32, #dist.sharding<@mesh, [ {}, {} ], partial = {data}>>)
        -> tensor<8x64xf32, #dist.sharding<@mesh, [ {}, {} ]>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Dist_ConstrainOp : Dist_Op<"constrain", [Pure, SameOperandsAndResultType]> {
  let summary = "A seed in the middle of a program";
  let description = [{
    y = x, with the sharding that is asked for: exactly so in dimensions without `?`.
    Input to propagation, which removes it. After Shardy's sharding_constraint.

    With `boundary` x and y are sharded independently: no axis spreads from one to the
    other, and their dimensions are different indices (see IndexClasses.h). So ZeRO stores
    a tensor with another sharding than ops compute with.

    ```mlir
    %1 = dist.constrain %0 to <@mesh, [ {data}, {?} ]> : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %2 = dist.constrain %1 to <@mesh, [ {}, {data} ]> boundary : (tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, Dist_ShardingAttr:$sharding, UnitAttr:$boundary);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `to` $sharding (`boundary` $boundary^)? attr-dict `:` functional-type(operands, results)";
}

/// An op on local tensors that all devices of a group run together, or that
/// depends on the device's rank in the group. `x` and `y` are this device's.
class Dist_LocalOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>],
                                    traits)>;
class Dist_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Dist_LocalOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<CollectiveOpInterface>],
                                         traits)>;

/// ... with a root. It has effects, so that no pass drops it on devices that do not
/// use the result: only the root uses what they send.
class Dist_RootedOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                     DeclareOpInterfaceMethods<CollectiveOpInterface>],
                                    traits)>;

/// ... of one tensor, or of several of one element type in one call: a bucket.
class Dist_BucketOp<string mnemonic> : Dist_CollectiveOp<mnemonic> {
  code oneTensor = [{
    /// The tensor of an op that has one, as all have before dist-optimize-collectives.
    ::mlir::Value getX() { return (*this)->getOperand(onlyTensor(*this)); }
    ::mlir::Value getY() { return (*this)->getResult(onlyTensor(*this)); }
    operator ::mlir::Value() { return getY(); }
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getY().getType());
    }
    void replaceAllUsesWith(::mlir::Value value) { getY().replaceAllUsesWith(value); }
  }];
  let extraClassDeclaration = oneTensor;
}

def Dist_AllReduceOp : Dist_BucketOp<"all_reduce"> {
  let summary = "Sum or maximum over the group, on every device";
  let description = [{
    y = sum (max) of the group's x, element by element; all shapes are equal. Terms are
    added in the order of ranks, so that all devices get the same bits. Several tensors
    of one element type may share a call.

    ```mlir
    %a1, %b1 = dist.all_reduce sum %a, %b over <@mesh {data}>
        : (tensor<8xf32>, tensor<4x4xf32>) -> (tensor<8xf32>, tensor<4x4xf32>)
    ```
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, Variadic<AnyRankedTensor>:$xs, Dist_GroupAttr:$group);
  let results = (outs Variadic<AnyRankedTensor>:$ys);
  let assemblyFormat = "$kind $xs `over` $group attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Type":$y, "::meshwright::train::ReduceKind":$kind,
                                 "::mlir::Value":$x, "GroupAttr":$group), [{
    build($_builder, $_state, ::mlir::TypeRange(::llvm::ArrayRef(y)), kind, ::mlir::ValueRange(x), group);
  }]>];
}

def Dist_AllGatherOp : Dist_BucketOp<"all_gather"> {
  let summary = "Concatenates the parts of the group, on every device";
  let description = [{
    x: [.., k, ..] to y: [.., n k, ..] along `dim`, where n is the size of the group: the
    x of all devices in the order of their ranks. Several tensors of one element type may
    share a call, each with its own dimension in `dim`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$xs, DenseI64ArrayAttr:$dims, Dist_GroupAttr:$group);
  let results = (outs Variadic<AnyRankedTensor>:$ys);
  let assemblyFormat = "$xs `dim` custom<Dims>($dims) `over` $group attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Type":$y, "::mlir::Value":$x, "int64_t":$dim,
                                 "GroupAttr":$group), [{
    build($_builder, $_state, ::mlir::TypeRange(::llvm::ArrayRef(y)), ::mlir::ValueRange(x), ::llvm::ArrayRef(dim), group);
  }]>];
  let extraClassDeclaration = oneTensor # [{
    int64_t getDim() { return getDims()[onlyTensor(*this)]; }
  }];
}

def Dist_ReduceScatterOp : Dist_BucketOp<"reduce_scatter"> {
  let summary = "Sum or maximum over the group, of which each device keeps one part";
  let description = [{
    x: [.., n k, ..] to y: [.., k, ..] along `dim`: the reduction of the group's x, of
    which the device of rank p keeps the p-th of n parts. Several tensors of one element
    type may share a call, each with its own dimension in `dim`.
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, Variadic<AnyRankedTensor>:$xs,
                       DenseI64ArrayAttr:$dims, Dist_GroupAttr:$group);
  let results = (outs Variadic<AnyRankedTensor>:$ys);
  let assemblyFormat = "$kind $xs `dim` custom<Dims>($dims) `over` $group attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Type":$y, "::meshwright::train::ReduceKind":$kind,
                                 "::mlir::Value":$x, "int64_t":$dim, "GroupAttr":$group), [{
    build($_builder, $_state, ::mlir::TypeRange(::llvm::ArrayRef(y)), kind, ::mlir::ValueRange(x), ::llvm::ArrayRef(dim), group);
  }]>];
  let extraClassDeclaration = oneTensor # [{
    int64_t getDim() { return getDims()[onlyTensor(*this)]; }
  }];
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all"> {
  let summary = "Moves the sharding from one dimension to another";
  let description = [{
    x: [.., n k, .., m, ..] to y: [.., k, .., n m, ..], where `split` is the first and
    `concat` the second of the two dimensions: x is split into n parts along `split`, the
    q-th part goes to the device of rank q, and each device concatenates the parts that it
    receives along `concat`, in the order of the senders' ranks.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$split, I64Attr:$concat, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = [{
    $x `split` $split `concat` $concat `over` $group attr-dict `:` functional-type(operands, results)
  }];
}

def Dist_PermuteOp : Dist_CollectiveOp<"permute", [SameOperandsAndResultType]> {
  let summary = "Each device gets the value of another device of its group";
  let description = [{
    The device of rank p gets the x of the device of rank `from[p]`; `from` is a
    permutation of 0 .. n-1.
  }];
  let arguments = (ins AnyRankedTensor:$x, DenseI64ArrayAttr:$from, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `from` $from `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_BroadcastOp : Dist_RootedOp<"broadcast", [SameOperandsAndResultType]> {
  let summary = "The value of one device of the group, on every device";
  let description = [{
    y = x of the device of rank `root`.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$root, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `root` $root `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_ReduceOp : Dist_RootedOp<"reduce", [SameOperandsAndResultType]> {
  let summary = "Sum or maximum over the group, on one device";
  let description = [{
    `dist.all_reduce` for the device of rank `root` alone. On all other devices y is
    undefined and must not be used; the interpreter fills it with NaN (integers with their
    least value).
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, AnyRankedTensor:$x, I64Attr:$root, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$kind $x `root` $root `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_GatherOp : Dist_RootedOp<"gather"> {
  let summary = "Concatenates the parts of the group, on one device";
  let description = [{
    `dist.all_gather` for the device of rank `root` alone. On all other devices y is
    undefined and must not be used; the interpreter fills it with NaN (integers with their
    least value).
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$dim, I64Attr:$root, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `dim` $dim `root` $root `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_ScatterOp : Dist_RootedOp<"scatter"> {
  let summary = "Splits the value of one device into parts, one for each device of the group";
  let description = [{
    x: [.., n k, ..] to y: [.., k, ..] along `dim`: the device of rank p gets the p-th of
    n parts of the x of the device of rank `root`. The x of other devices is not read.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$dim, I64Attr:$root, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `dim` $dim `root` $root `over` $group attr-dict `:` functional-type(operands, results)";
}

/// One device's half of a message. Has effects, so that nothing drops or repeats it.
class Dist_MessageOp<string mnemonic> : Dist_Op<mnemonic, [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<CollectiveOpInterface>]>;

def Dist_SendOp : Dist_MessageOp<"send"> {
  let summary = "Sends a value to one device of the group";
  let description = [{
    Sends to the device of rank `to` of the group, which is another device and runs the
    `dist.recv` that receives the value. Messages of one channel between two devices arrive
    in the order in which they are sent. The op may wait for the receiver. It is for
    programs that differ between devices; for one common program there is `dist.permute`.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$to, I64Attr:$channel, Dist_GroupAttr:$group);
  let assemblyFormat = "$x `to` $to `channel` $channel `over` $group attr-dict `:` type($x)";
}

def Dist_RecvOp : Dist_MessageOp<"recv"> {
  let summary = "Waits for a value from one device of the group";
  let description = [{
    y is the value that the device of rank `from` of the group, another device, sends to
    this one by `dist.send` on the same channel; the types are equal.
  }];
  let arguments = (ins I64Attr:$from, I64Attr:$channel, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "`from` $from `channel` $channel `over` $group attr-dict `:` type($y)";
}

def Dist_SliceOp : Dist_LocalOp<"slice"> {
  let summary = "The device's own part of a replicated value";
  let description = [{
    x: [.., n k, ..] to y: [.., k, ..] along `dim`: on the device of rank p of the group
    the p-th of n parts; with `shift`, less than n, the part of the device that many ranks
    further, number (p + shift) mod n. Moves no data.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$dim, Dist_GroupAttr:$group,
                       DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `dim` $dim (`shift` $shift^)? `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_ConcatOp : Dist_LocalOp<"concat"> {
  let summary = "Concatenates parts in the order in which they arrive around the group";
  let description = [{
    As many xs as the group has devices, n, of one type [.., k, ..], to y: [.., n k, ..]
    along `dim`. On the device of rank p the t-th x becomes part number (p + t) mod n of
    y: the first x is the device's own part. Moves no data. Floor 3 computes the parts in
    the memory of y, so that nothing is copied.

    ```mlir
    %2 = dist.concat %0, %1 dim 0 over <@mesh {tensor}>
        : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$xs, I64Attr:$dim, Dist_GroupAttr:$group);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$xs `dim` $dim `over` $group attr-dict `:` functional-type(operands, results)";
}

def Dist_TakeOp : Dist_Op<"take", [Pure]> {
  let summary = "One entry of a stack, the same on all devices";
  let description = [{
    x: [n, ...] to y: [...], the entry of index `at`, which is less than n: the microbatch
    of one call in a pipeline's schedule. Moves no data.

    ```mlir
    %1 = dist.take %tokens at 3 : (tensor<4x2x8xi32>) -> tensor<2x8xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$at);
  let results = (outs AnyRankedTensor:$y);
  let assemblyFormat = "$x `at` $at attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Dist_BeginOp : Dist_LocalOp<"begin"> {
  let summary = "The offset of the device's own part";
  let description = [{
    The device's rank in the group times `size`: an op that depends on a global index adds
    this to its local index. With `shift` it is the offset of the part of the device that
    many ranks further, see `dist.slice`.

    ```mlir
    %0 = dist.begin 64 over <@mesh {tensor}> : tensor<i32>
    ```
  }];
  let arguments = (ins I64Attr:$size, Dist_GroupAttr:$group,
                       DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs 0DTensorOf<[I32]>:$value);
  let assemblyFormat = "$size (`shift` $shift^)? `over` $group attr-dict `:` type($value)";
  let builders = [OpBuilder<(ins "int64_t":$size, "GroupAttr":$group, CArg<"int64_t", "0">:$shift)>];
}

def Dist_ExchangeOp : Dist_CollectiveOp<"exchange"> {
  let summary = "One message for each device that takes part";
  let description = [{
    The elements of each x in row-major order are divided into `pieces` pieces of equal
    size; if their number does not divide, the last pieces are shorter or empty. The
    device of rank p sends `length` pieces from `send[p]` on to rank `to[p]`. It adds what
    it receives from rank `from[p]` to its pieces from `receive[p]` on (with `max` it
    keeps the larger value; without a kind the received values replace its own). All other
    pieces of y are those of x. -1 stands for no device, also in `send` and `receive`. So
    each send has its receive: `from[to[p]] = p`. A device does not send pieces that it
    replaces. The pieces of several tensors of one element type share a message.

    Exchanges of one `round` may be in flight together; a later round begins when the
    earlier ones have ended.

    ```mlir
    %1 = dist.exchange reducing sum %0 pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1] round 0
        over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<Train_ReduceKindAttr>:$kind, Variadic<AnyRankedTensor>:$xs,
                       I64Attr:$pieces, I64Attr:$length, DenseI64ArrayAttr:$to,
                       DenseI64ArrayAttr:$send, DenseI64ArrayAttr:$from,
                       DenseI64ArrayAttr:$receive, I64Attr:$round, Dist_GroupAttr:$group);
  let results = (outs Variadic<AnyRankedTensor>:$ys);
  let assemblyFormat = [{
    (`reducing` $kind^)? $xs `pieces` $pieces `length` $length `to` $to `send` $send `from` $from
    `receive` $receive `round` $round `over` $group attr-dict `:` functional-type(operands, results)
  }];
}

#endif // MESHWRIGHT_DIST_OPS
