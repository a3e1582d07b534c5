//===- TrainSignOps.td - signs of numbers as bits ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// 1-bit compression of gradients and their averages (Seide et al. 2014; Tang et al. 2021, "1-bit Adam"): a group of elements
// is their signs, a bit each, and their mean magnitude. Devices send each other these in place of elements.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_SIGN_OPS
#define MESHWRIGHT_TRAIN_SIGN_OPS

include "Train/TrainOpBase.td"

def Train_SignedNumbers : StaticShapeTensorOf<[F32, F64]>;
def Train_SignBytes : StaticShapeTensorOf<[I8]>;

def Train_SignBitsOp : Train_TensorOp<"sign_bits", "... k! -> ...", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The signs of eight elements as the bits of a byte";
  let description = [{
    x: [.., 8]; bits: [..] i8. Bit j, counted from the lowest, is 1 where x[.., j] is at least 0, and 0 where it is less, or NaN.
  }];
  let arguments = (ins Train_SignedNumbers:$x);
  let results = (outs Train_SignBytes:$bits);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_MagnitudeOp : Train_TensorOp<"magnitude", "... k! -> ...", [ZeroPreservingOpInterface,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The mean magnitude of each row";
  let description = [{
    x: [.., n]; y: [..], the mean over the last dimension of |x|. NaN if an element is.
  }];
  let arguments = (ins Train_SignedNumbers:$x);
  let results = (outs Train_SignedNumbers:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_SignsOp : Train_TensorOp<"signs", "... q, ~... -> ... q k!", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Numbers of one magnitude with signs that are given as bits";
  let description = [{
    bits: [.., q] i8, as `train.sign_bits` makes them; scale: [..]; y: [.., q, 8]. y[.., i, j] is scale[..] if bit j of
    bits[.., i] is 1, else -scale[..].
  }];
  let arguments = (ins Train_SignBytes:$bits, Train_SignedNumbers:$scale);
  let results = (outs Train_SignedNumbers:$y);
  let assemblyFormat = "$bits `by` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_SumSignsOp : Train_TensorOp<"sum_signs", ""> {
  let summary = "The sum of numbers of one magnitude with signs that are given as bits";
  let description = [{
    bits, scale: as of `train.signs`; y: [.., q, 8], without dimension `dim` of scale: the sum of what `train.signs` makes over that
    dimension, which is needed whole. Devices that have some of it send each other bits and scales, and add on their
    own. `exec-form-kernels` makes a `train.signs` and a `train.reduce` of it.
  }];
  let arguments = (ins Train_SignBytes:$bits, Train_SignedNumbers:$scale, I64Attr:$dim);
  let results = (outs Train_SignedNumbers:$y);
  let assemblyFormat = "$bits `by` $scale `over` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // MESHWRIGHT_TRAIN_SIGN_OPS
