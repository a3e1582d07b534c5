//===- DistOps.td - the ops of floor 2 --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_OPS
#define MESHWRIGHT_DIST_OPS

include "Collectives.td"
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
    a tensor with another sharding than ops compute with. A sum along axes that the sharding
    does not use may be completed later.

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

/// A row of the table. An op with a root has effects, so that no pass drops it on devices that do
/// not use the result: only the root uses what they send.
class Dist_TableOp<Collective c> : Dist_Op<c.name, !listconcat(
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     DeclareOpInterfaceMethods<CollectiveOpInterface, ["getGrowingDims", "getShrinkingDims"]>]<Trait>,
    !if(!eq(c.who, "Root"), []<Trait>, [Pure]<Trait>),
    !if(!and(!eq(c.growth, "Same"), !not(c.bucket)), [SameOperandsAndResultType]<Trait>, []<Trait>))> {
  bit parts = !or(!eq(c.growth, "Grows"), !eq(c.growth, "Shrinks"));
  bit trades = !eq(c.growth, "Trades");
  string dims = !if(c.bucket, "::llvm::to_vector(getDims())", "{int64_t(getDim())}");
  let summary = c.summary;
  let description = c.description;
  let arguments = !con(
      !if(c.reduces, (ins Train_ReduceKindAttr:$kind), (ins)),
      !if(c.bucket, (ins Variadic<AnyRankedTensor>:$xs), (ins AnyRankedTensor:$x)),
      !cond(trades: (ins I64Attr:$split, I64Attr:$concat), !not(parts): (ins),
            c.bucket: (ins DenseI64ArrayAttr:$dims), true: (ins I64Attr:$dim)),
      !if(!eq(c.who, "From"), (ins DenseI64ArrayAttr:$from), (ins)),
      !if(!eq(c.who, "Root"), (ins I64Attr:$root), (ins)),
      (ins Dist_GroupAttr:$group));
  let results = !if(c.bucket, (outs Variadic<AnyRankedTensor>:$ys), (outs AnyRankedTensor:$y));
  let assemblyFormat = !if(c.reduces, "$kind ", "") # !if(c.bucket, "$xs ", "$x ") #
      !cond(trades: "`split` $split `concat` $concat ", !not(parts): "",
            c.bucket: "`dim` custom<Dims>($dims) ", true: "`dim` $dim ") #
      !if(!eq(c.who, "From"), "`from` $from ", "") # !if(!eq(c.who, "Root"), "`root` $root ", "") #
      "`over` $group attr-dict `:` functional-type(operands, results)";
  let builders = !if(c.bucket, [OpBuilder<
      !con((ins "::mlir::Type":$y),
           !if(c.reduces, (ins "::meshwright::train::ReduceKind":$kind), (ins)),
           (ins "::mlir::Value":$x), !if(parts, (ins "int64_t":$dim), (ins)),
           (ins "GroupAttr":$group)),
      "build($_builder, $_state, ::mlir::TypeRange(::llvm::ArrayRef(y)), " #
          !if(c.reduces, "kind, ", "") # "::mlir::ValueRange(x), " #
          !if(parts, "::llvm::ArrayRef(dim), ", "") # "group);">], []<OpBuilder>);
  let extraClassDeclaration = !if(c.bucket, [{
    /// The tensor of an op that has one, as all have before dist-optimize-collectives.
    ::mlir::Value getX() { return (*this)->getOperand(onlyTensor(*this)); }
    ::mlir::Value getY() { return (*this)->getResult(onlyTensor(*this)); }
    operator ::mlir::Value() { return getY(); }
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getY().getType());
    }
    void replaceAllUsesWith(::mlir::Value value) { getY().replaceAllUsesWith(value); }
  }] # !if(parts, [{
    int64_t getDim() { return getDims()[onlyTensor(*this)]; }
  }], ""), "") # !if(!eq(c.who, "From"), [{
    bool isPermutation() { return true; }
  }], "");
  let extraClassDefinition = [{
    ::llvm::SmallVector<int64_t> $cppClass::getGrowingDims() {
      return }] # !cond(trades: "{int64_t(getConcat())}", !eq(c.growth, "Grows"): dims, true: "{}") # [{;
    }
    ::llvm::SmallVector<int64_t> $cppClass::getShrinkingDims() {
      return }] # !cond(trades: "{int64_t(getSplit())}", !eq(c.growth, "Shrinks"): dims, true: "{}") # [{;
    }
    int64_t $cppClass::getSentBytes(int64_t n) { return sentBytes(*this, n); }
    ::llvm::LogicalResult $cppClass::verifySymbolUses(::mlir::SymbolTableCollection &symbols) {
      return verifyCollective(*this, symbols);
    }
  }];
}

foreach c = !instances<Collective>() in
  def "Dist_" # c.op # "Op" : Dist_TableOp<c>;

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

def Dist_OffsetOp : Dist_LocalOp<"offset"> {
  let summary = "The offset of the device's own part";
  let description = [{
    The device's rank in the group times `size`: an op that depends on a global index adds
    this to its local index. With `shift` it is the offset of the part of the device that
    many ranks further, see `dist.slice`.

    ```mlir
    %0 = dist.offset 64 over <@mesh {tensor}> : tensor<i32>
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
