//===- TrainQuantizeOps.td - tensors of 8-bit floats -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A quantized tensor is two values: numbers q of a type of 8 bits, and scales s, of which q s is what they
// stand for: one scale for the tensor, or one for each block of it. Scales are powers of two. So a product of
// numbers of q is scaled without rounding, and nothing depends on where it is scaled, or on which device.
//
// Blocks are written as dimensions: with rows of 256 in blocks of 128, a tensor is [.., 2, 128], and its scales
// are [.., 2]. `dims` of an op are those that lie within a block, ascending; without them a block is the tensor.
// Train/Quantize.h has their classes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_QUANTIZE_OPS
#define MESHWRIGHT_TRAIN_QUANTIZE_OPS

include "Train/TrainOpBase.td"

def Train_Quantized : StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>;
def Train_Unquantized : StaticShapeTensorOf<[F32, BF16, F16]>;
def Train_Scale : And<[StaticShapeTensorOf<[F32]>.predicate,
                       CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>;
def Train_ScaleTensor : Type<Train_Scale, "tensor<f32>", "::mlir::RankedTensorType">;
def Train_Scales : StaticShapeTensorOf<[F32]>;
def Train_WithinBlock : DefaultValuedAttr<DenseI64ArrayAttr, "{}">;

def Train_AmaxOp : Train_TensorOp<"amax", "", [InferTypeOpAdaptor, ConstantOpInterface,
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The largest magnitude of the elements of a tensor, or of its blocks";
  let description = [{
    amax = max |x| over `dims`, which its shape lacks, in f32; over all of them, a scalar, where none are given. NaN if
    an element is. Of a sharded block a device has a partial maximum, so that no amax depends on the mesh. No gradient
    passes.
  }];
  let arguments = (ins Train_Unquantized:$x, Train_WithinBlock:$dims);
  let results = (outs Train_Scales:$amax);
  let assemblyFormat = "$x (`over` $dims^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_QuantizationScaleOp : Train_EinsumOp<"quantization_scale", "... -> ...", [
    ConstantOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The scales of blocks with a largest magnitude each";
  let description = [{
    The smallest power of two s for which amax / s is a number of the type `element` that is not beyond
    its largest: 448 of f8E4M3FN, 57344 of f8E5M2 (Micikevicius et al. 2022). At least 2^-126; 1 where amax is 0; NaN
    where amax is not finite, so that a tensor with an infinite element has none that looks like a number.
  }];
  let arguments = (ins Train_Scales:$amax, TypeAttr:$element);
  let results = (outs Train_Scales:$scale);
  let assemblyFormat = "$amax `to` $element attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_QuantizeOp : Train_TensorOp<"quantize", "", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "A tensor's elements as numbers of 8 bits";
  let description = [{
    y = x / scale, rounded to the nearest number of the result's element type, ties to even. The scale's shape is x's
    without `dims`. A finite number beyond the largest becomes the largest (saturation), which no element is of a block
    that the scale was made for. NaN stays NaN, and an infinite element becomes NaN. The gradient of y is that of y scale, the numbers that y stands for, and
    passes to x as it is (straight-through, Bengio et al. 2013).
  }];
  let arguments = (ins Train_Unquantized:$x, Train_Scales:$scale, Train_WithinBlock:$dims);
  let results = (outs Train_Quantized:$y);
  let assemblyFormat = "$x `by` $scale (`along` $dims^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_DequantizeOp : Train_TensorOp<"dequantize", "", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "What numbers of 8 bits stand for";
  let description = [{
    x = y scale; the scale's shape is y's without `dims`. bf16 and f32 hold each such number below 2^128. The gradient of x
    passes to y as it is, as that of `train.quantize` does.
  }];
  let arguments = (ins Train_Quantized:$y, Train_Scales:$scale, Train_WithinBlock:$dims);
  let results = (outs Train_Unquantized:$x);
  let assemblyFormat = "$y `by` $scale (`along` $dims^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class Train_ObservingOp<string mnemonic, dag operands> : Train_Op<mnemonic, [Pure, AllTypesMatch<["x", "y"]>,
    DeclareOpInterfaceMethods<VJPOpInterface>]> {
  let arguments = operands;
  let results = (outs Train_Unquantized:$y);
}

def Train_ObserveOp : Train_ObservingOp<"observe", (ins Train_Unquantized:$x, Train_ScaleTensor:$amax)> {
  let summary = "Makes the largest magnitude of a tensor the gradient of a variable";
  let description = [{
    y = x. x has the gradient of y, and `amax` in place of a gradient the largest magnitude of x, as `train.amax`
    computes it: so the update of the variable that it comes from reads what the step has observed.
    `train-autodiff` removes the op.
  }];
  let assemblyFormat = "$x `by` $amax attr-dict `:` functional-type(operands, results)";
}

def Train_QuantizeGradientOp : Train_ObservingOp<"quantize_gradient",
    (ins Train_Unquantized:$x, Train_ScaleTensor:$amax, TypeAttr:$element)> {
  let summary = "Rounds a tensor's gradient to numbers of 8 bits, and observes its largest magnitude";
  let description = [{
    y = x. x has the gradient of y, quantized to `element` by `train.quantize` with the scale that
    `train.quantization_scale` gives for `amax`; beyond the largest number it saturates. `amax` has in place of a gradient the
    largest magnitude of y's gradient before it is rounded, as with `train.observe`. `train-autodiff` removes the op.
  }];
  let assemblyFormat = "$x `by` $amax `to` $element attr-dict `:` functional-type(operands, results)";
}

def Train_ScaledContractOp : Train_TensorOp<"scaled_contract", "", [ContractionOpInterface,
    AccumulatingOpInterface, SumOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "A two-operand einsum of quantized tensors";
  let description = [{
    lhs_scale rhs_scale sum(lhs rhs) over `rule`, an einsum as of `train.contract`, plus `init` where there is
    one. The sum is taken in f32; the result, in f32, bf16 or f16, is rounded once. lhs and rhs may have
    different types of 8 bits.

    In the gradient, dy is quantized to f8E5M2 by its own amax, if it is not what a `train.dequantize` makes of such
    numbers, and multiplied by rhs for the gradient of lhs and by lhs for that of rhs (Micikevicius et al. 2022).
  }];
  let arguments = (ins StrAttr:$rule, Train_Quantized:$lhs, Train_Quantized:$rhs, Train_ScaleTensor:$lhs_scale,
                       Train_ScaleTensor:$rhs_scale, Optional<Train_Unquantized>:$init);
  let results = (outs Train_Unquantized:$result);
  let assemblyFormat = [{
    $rule $lhs `,` $rhs `scales` `(` $lhs_scale `,` $rhs_scale `)` (`init` $init^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// 8-bit optimizer states (Dettmers et al. 2022)
//
// A tensor in blocks along its last dimension: the largest magnitude (amax) of each block, in f32, and for each
// element a code of 8 bits, which stands for a number of the dynamic map times the block's amax. A tensor
// [.., n] whose amax is [.., b] has b blocks of n / b elements in each row; one whose amax lacks the last
// dimension has one. Blocks belong to the tensor of the whole model. Where devices have parts of a block, they
// have a partial maximum of it.
//
// The dynamic map has seven decades, 10^-7 to 1. With a sign, decade i of 0 to 6 is divided into 2^i cells of
// equal width, without one into 2^(i+1); the numbers are the centers of the cells, 0 and 1, and with a sign
// also the negative ones, but for -1. A code counts numbers from 0 on: -127 to 127, and -128 for 1; without a
// sign 0 to 255, as a byte. So zeros have the code 0, and padding stays zero.
//===----------------------------------------------------------------------===//

def Train_Wide : StaticShapeTensorOf<[F32, F64]>;
def Train_Codes : StaticShapeTensorOf<[I8]>;

def Train_DividesRows : NativeOpTrait<"DividesRows"> {
  let cppNamespace = "::meshwright::train";
}

class Train_BlockOp<string mnemonic, list<Trait> traits = []> : Train_TensorOp<mnemonic, "", !listconcat(traits, [
    Train_DividesRows, ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>])> {
  let hasVerifier = 1;
}

def Train_BlockAmaxOp : Train_BlockOp<"block_amax"> {
  let summary = "The largest magnitude of each block";
  let description = [{
    x: [.., n] to amax: [.., b], or [..] for one block per row. NaN if an element is.
    `length` is n / b of the whole tensor. A device that has a part of each row's only block has fewer elements, and
    a partial maximum. Kernels compute one block per row; `exec-form-kernels` makes rows of blocks.
  }];
  let arguments = (ins Train_Wide:$x, I64Attr:$length);
  let results = (outs Train_Wide:$amax);
  let assemblyFormat = "$x `of` $length attr-dict `:` functional-type(operands, results)";
}

def Train_QuantizeBlocksOp : Train_BlockOp<"quantize_blocks"> {
  let summary = "Codes of 8 bits for elements in blocks";
  let description = [{
    Of each element of x over the amax of its block the code of the nearest number of the dynamic map: the one with a
    sign if `signed`, else the one for numbers of at least 0. Half-way between two numbers it is the larger in
    magnitude. The code is 0 where the quotient is no number: where a block has zeros alone, or NaN.
  }];
  let arguments = (ins Train_Wide:$x, Train_Wide:$amax, UnitAttr:$is_signed);
  let results = (outs Train_Codes:$codes);
  let assemblyFormat = "(`signed` $is_signed^)? $x `by` $amax attr-dict `:` functional-type(operands, results)";
}

def Train_DequantizeBlocksOp : Train_BlockOp<"dequantize_blocks"> {
  let summary = "The numbers that codes in blocks stand for";
  let description = [{
    For each code its number of the dynamic map, with a sign if `signed`, times the amax of its block.
  }];
  let arguments = (ins Train_Codes:$codes, Train_Wide:$amax, UnitAttr:$is_signed);
  let results = (outs Train_Wide:$x);
  let assemblyFormat = "(`signed` $is_signed^)? $codes `by` $amax attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Weight-only int8 (Dettmers et al. 2022, "LLM.int8()": the weights' part of its vector-wise quantization)
//
// A frozen weight [out, in] is codes from -127 to 127 (i8) and, for each of its rows, a scale in f32: what a code
// stands for is code times scale. The scale is the row's largest magnitude over 127, so zeros have the code 0.
// Codes are a parameter, and scales are the state `scale` of it. Both are made when weights are loaded
// (meshwright/runtime/Int8Weights.h); no op makes them.
//===----------------------------------------------------------------------===//

def Train_DequantizeRowsOp : Train_TensorOp<"dequantize_rows", "... k, ... -> ... k", [ConstantOpInterface,
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The weights that codes of 8 bits stand for";
  let description = [{
    w[.., k] = codes[.., k] scale[..], rounded once to the element type of the result. Rows are output channels, so
    devices that have some rows, or a part of each row, need the scales of their rows alone. No gradient passes.
  }];
  let arguments = (ins Train_Codes:$codes, StaticShapeTensorOf<[F32]>:$scale);
  let results = (outs Train_Unquantized:$weight);
  let assemblyFormat = "$codes `by` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // MESHWRIGHT_TRAIN_QUANTIZE_OPS
