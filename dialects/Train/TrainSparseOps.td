//===- TrainSparseOps.td - the few elements of a tensor that are kept ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Top-k sparsification of gradients (Aji and Heafield 2017): a row of n elements is k numbers and the columns in
// which they are. Devices send each other these in place of rows.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_SPARSE_OPS
#define MESHWRIGHT_TRAIN_SPARSE_OPS

include "Train/TrainOpBase.td"

def Train_SparseNumbers : StaticShapeTensorOf<[F32, F64]>;

def Train_SparsifyOp : Train_TensorOp<"sparsify", "... n! -> ... k!, ... k!, ... n!", [
    DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The k elements of each row that are largest in magnitude, and the rest";
  let description = [{
    x: [.., n]. values: [.., k], the elements that are largest in magnitude, largest first; ids: [.., k] i32, their columns;
    rest: [.., n], x with 0 in these columns. Of elements with equal magnitude the first ones count. A row with an
    element that is infinite or NaN has NaN among its values, in any of its columns.
  }];
  let arguments = (ins Train_SparseNumbers:$x);
  let results = (outs Train_SparseNumbers:$values, Train_Ids:$ids, Train_SparseNumbers:$rest);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_DensifyOp : Train_TensorOp<"densify", ""> {
  let summary = "The sum of rows of which some elements are given";
  let description = [{
    values, ids: [.., k], as `train.sparsify` makes them; y: [.., n], without dimension `dim` of values. In column j of y is
    the sum of all values of dimension `dim` and of k whose id is j, in their order, or 0. Dimension `dim` is needed whole:
    devices that have some of it gather values and ids, and add on their own. `exec-form-kernels` makes a `train.embedding_grad` of it.
  }];
  let arguments = (ins Train_SparseNumbers:$values, Train_Ids:$ids, I64Attr:$dim);
  let results = (outs Train_SparseNumbers:$y);
  let assemblyFormat = "$values `at` $ids `over` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_PlaceIdsOp : Train_TensorOp<"place_ids", "... -> ...", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Where columns of rows are in a list of all rows";
  let description = [{
    ids: [.., k], columns of rows of `length` elements, as of `train.densify` over `dim`; places: of the same shape, `length` times the number of the
    row plus the column, rows being counted without dimension `dim`. Made by `exec-form-kernels`, when a device's rows are known.
  }];
  let arguments = (ins Train_Ids:$ids, I64Attr:$length, I64Attr:$dim);
  let results = (outs Train_Ids:$places);
  let assemblyFormat = "$ids `of` $length `over` $dim attr-dict `:` type($ids)";
  let hasVerifier = 1;
}

#endif // MESHWRIGHT_TRAIN_SPARSE_OPS
