//===- TrainElementwiseOps.td - element by element -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_ELEMENTWISE_OPS
#define MESHWRIGHT_TRAIN_ELEMENTWISE_OPS

include "Train/TrainOpBase.td"

class Train_BinaryOp<string mnemonic, string linear, string additive, list<Trait> traits = []>
    : Train_TensorOp<mnemonic, "", !listconcat(traits, [InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>])> {
  let arguments = (ins Train_Tensor:$lhs, Train_Tensor:$rhs);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = [{
    ::meshwright::ShardingRule $cppClass::getShardingRule() {
      return elementwiseRuleOf(getOperation(), }] # linear # [{, }] # additive # [{);
    }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast("}] # mnemonic # [{", location, adaptor.getLhs().getType(),
                            adaptor.getRhs().getType(), types);
    }
  }];
}

def Train_AddOp : Train_BinaryOp<"add", "false", "true"> {
  let summary = "Sum";
  let description = [{
    Element by element. rhs may have fewer dimensions than lhs, matched from the
    last (a bias [d], a position table [s, d]); sizes equal, never 1 against n;
    element types equal.
  }];
  let hasFolder = 1;
}

def Train_MulOp : Train_BinaryOp<"mul", "true", "false"> {
  let summary = "Product";
  let description = [{ Element by element; shapes as in `train.add`. }];
}

def Train_AccumulateOp : Train_TensorOp<"accumulate", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Adds a gradient to its accumulator";
  let description = [{
    accumulator + value, of one shape; the result has the accumulator's element
    type.
  }];
  let arguments = (ins Train_Tensor:$accumulator, Train_Tensor:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$accumulator `,` $value attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_MaximumOp : Train_EinsumOp<"maximum", "..., ... -> ...", [ZeroPreservingOpInterface,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The larger of two numbers";
  let description = [{
    max(lhs, rhs), element by element; lhs, rhs and the result have one shape. NaN if one of them is. It
    has no gradient.
  }];
  let arguments = (ins Train_Tensor:$lhs, Train_Tensor:$rhs);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Train_CastOp : Train_TensorOp<"cast", "", [DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Another float element type";
  let description = [{
    The same shape; each element rounded to the nearest number of the result's type,
    ties to even. A partial sum may pass: the sum is then completed in the type it
    was cast to. The gradient is cast back.
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_ScaleOp : Train_EinsumOp<"scale", "~... -> ...", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "x times a constant";
  let description = [{ Any shape; `factor` is rounded to the element type. }];
  let arguments = (ins Train_Tensor:$x, F64Attr:$factor);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `by` $factor attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

class Train_ActivationOp<string mnemonic> : Train_EinsumOp<mnemonic, "... -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let results = (outs Train_Tensor:$y);
}
class Train_ActivationGradOp<string mnemonic> : Train_EinsumOp<mnemonic, "~..., ... -> ...", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let results = (outs Train_Tensor:$dx);
}

def Train_GeluOp : Train_ActivationOp<"gelu"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    x/2 (1 + erf(x/sqrt 2)), or with `tanh` its approximation
    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
    Element by element, any shape.
  }];
  let arguments = (ins Train_Tensor:$x, UnitAttr:$tanh);
  let assemblyFormat = "(`tanh` $tanh^)? $x attr-dict `:` functional-type(operands, results)";
}
def Train_GeluGradOp : Train_ActivationGradOp<"gelu_grad"> {
  let summary = "dy times the derivative of gelu at x";
  let description = [{ dy, x and the result have one shape; `tanh` as in `train.gelu`. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, UnitAttr:$tanh);
  let assemblyFormat = "(`tanh` $tanh^)? $dy `,` $x attr-dict `:` functional-type(operands, results)";
}
def Train_SiluOp : Train_ActivationOp<"silu"> {
  let summary = "x sigmoid(x)";
  let description = [{ Element by element, any shape; also called swish (Elfwing et al. 2017). }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_SiluGradOp : Train_ActivationGradOp<"silu_grad"> {
  let summary = "dy times the derivative of silu at x";
  let description = [{ dy, x and the result have one shape. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}
def Train_TanhOp : Train_ActivationOp<"tanh"> {
  let summary = "Hyperbolic tangent";
  let description = [{ Element by element, any shape. c tanh(x / c) caps x softly at c. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_ReluOp : Train_ActivationOp<"relu"> {
  let summary = "max(x, 0)";
  let description = [{ Element by element, any shape. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_ReluGradOp : Train_ActivationGradOp<"relu_grad"> {
  let summary = "dy where x > 0, else 0";
  let description = [{ dy, x and the result have one shape. The derivative at 0 is 0. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}

def Train_ClampOp : Train_EinsumOp<"clamp", "... -> ...", [
    DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "x within bounds";
  let description = [{
    min(max(x, least), most), element by element, any shape; NaN stays NaN. `least` is at
    most `most`; either may be infinite, which leaves that side open.
  }];
  let arguments = (ins Train_Tensor:$x, F64Attr:$least, F64Attr:$most);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `from` $least `to` $most attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Train_ClampGradOp : Train_ActivationGradOp<"clamp_grad"> {
  let summary = "dy where x is within bounds, else 0";
  let description = [{
    dy, x and the result have one shape; `least` and `most` as in `train.clamp`. At the
    bounds themselves the derivative is 1.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, F64Attr:$least, F64Attr:$most);
  let assemblyFormat = [{
    $dy `,` $x `from` $least `to` $most attr-dict `:` functional-type(operands, results)
  }];
}

class Train_FunctionOp<string mnemonic, list<Trait> more = []> : Train_EinsumOp<mnemonic, "... -> ...", !listconcat(more, [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>])> {
  let results = (outs Train_Tensor:$y);
}
def Train_ExpOp : Train_FunctionOp<"exp"> {
  let summary = "e to the x";
  let description = [{ Element by element, any shape. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_LogOp : Train_FunctionOp<"log", [DeclareOpInterfaceMethods<FinitePaddingOpInterface>]> {
  let summary = "Natural logarithm";
  let description = [{ Element by element, any shape; x is positive. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_InverseRootOp : Train_FunctionOp<"inverse_root", [DeclareOpInterfaceMethods<FinitePaddingOpInterface>]> {
  let summary = "1 / sqrt(x + eps)";
  let description = [{ Element by element, any shape; x + eps is positive. }];
  let arguments = (ins Train_Tensor:$x, F64Attr:$eps);
  let assemblyFormat = "$x `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_DecayOp : Train_EinsumOp<"decay", "... t!, ... u! -> ... t! u!", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "How much of each earlier position a later one retains";
  let description = [{
    y[.., t, u] = exp(to[.., t] - from[.., u]) where u <= t, or u < t with `strict`, else 0.
    to: [.., t], from: [.., u]; t and u are counted from 0 and whole. Where both are the sums of
    log decays up to and with a position, y is the product of the decays after u up to t: the matrix of a
    linear recurrence with scalar decays (Dao and Gu 2024). Of zeros it is a triangle of ones, which sums up to each position.
    Elements that are 0 have no exponential, so their sums may be any.
  }];
  let arguments = (ins Train_Tensor:$to, Train_Tensor:$from, UnitAttr:$strict);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "(`strict` $strict^)? $to `,` $from attr-dict `:` functional-type(operands, results)";
}

def Train_DropoutOp : Train_TensorOp<"dropout", "", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<RandomOpInterface>, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>]> {
  let summary = "Zeroes elements at random and scales the rest by 1/(1-rate)";
  let description = [{
    x: [b, ...], ids: [b] numbers each sequence in the step's global batch, key:
    [2]. Element i of x, where i is the row-major index with ids[n] in place of n,
    is kept when Philox4x32-10 with counter (i low, i high, stream, 0) gives at
    least rate * 2^32 in its first word. Equal on every mesh and in every
    recomputation; its own gradient.

    The index is that of the logical global tensor. Where x is padded or a part of
    it, `sizes` are the logical sizes of the dimensions after the first, and
    `offsets` (tensor<i32>) the indices at which the part begins in the dimensions
    `offset_dims`.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids, Train_Ids:$key, Variadic<Train_Ids>:$offsets,
                       F64Attr:$rate, I32Attr:$stream, OptionalAttr<DenseI64ArrayAttr>:$sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$offset_dims);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = [{
    $x `,` $ids `,` $key (`offsets` `(` $offsets^ `)`)? `rate` $rate `stream` $stream (`sizes` $sizes^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$ids, "::mlir::Value":$key,
                                 "::mlir::FloatAttr":$rate, "::mlir::IntegerAttr":$stream)>];
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
    /// The logical size of each dimension after the first.
    ::llvm::SmallVector<int64_t> getLogicalSizes();
    /// The index at which dimension `dim` begins, or null for 0.
    ::mlir::Value getOffset(int64_t dim);
  }];
}

def Train_MaskOp : Train_TensorOp<"mask", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, DeclareOpInterfaceMethods<IndexedOpInterface>]> {
  let summary = "x where an index is below a limit, else a value";
  let description = [{
    y = x where the index along `dim` is less than `below`, else `value`; any shape
    with that dimension. The index is that of the logical global tensor: where x is
    a part of it, `offset` (tensor<i32>) is the index at which the part begins.
    Takes padding out before sums and maxima (`dist-pad`). Differentiable where
    `value` is 0.
  }];
  let arguments = (ins Train_Any:$x, Optional<Train_Ids>:$offset, I64Attr:$dim, I64Attr:$below,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Train_Any:$y);
  let assemblyFormat = [{
    $x (`offset` $offset^)? `dim` $dim `below` $below attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_PartOffsetOp : Train_Op<"part_offset", [Pure, InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The index at which one of equal parts begins";
  let description = [{
    offset + part / every modulo parts * size, all integers (tensor<i32>): a loop over
    the parts of a tensor divides one dimension into `parts` parts of `size` and runs
    `every` iterations in each of them. `offset` is where the whole begins, 0 without it.

    ```mlir
    %0 = train.part_offset %i offset %b every 1 parts 3 size 43 : (tensor<i32>, tensor<i32>) -> tensor<i32>
    ```
  }];
  let arguments = (ins Train_Ids:$part, Optional<Train_Ids>:$offset, I64Attr:$every, I64Attr:$parts,
                       I64Attr:$size);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = [{
    $part (`offset` $offset^)? `every` $every `parts` $parts `size` $size attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
  }];
}

def Train_FoldInOp : Train_Op<"fold_in", [Pure, InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The random key of one iteration";
  let description = [{
    key: tensor<2xi32>, index: tensor<i32>; result: tensor<2xi32>, two words of
    Philox4x32-10 (Salmon et al. 2011) with counter (first + index, 0, 0xF01D, 1).
    `first` is the number of the iteration called 0: not 0 where one run of layers was
    split into several, each with its own numbers.
  }];
  let arguments = (ins Train_Ids:$key, Train_Ids:$index, DefaultValuedAttr<I64Attr, "0">:$first);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = "$key `,` $index (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
  }];
}

#endif // MESHWRIGHT_TRAIN_ELEMENTWISE_OPS
