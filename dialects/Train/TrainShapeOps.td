//===- TrainShapeOps.td - other shapes, and what kernels are made of -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_SHAPE_OPS
#define MESHWRIGHT_TRAIN_SHAPE_OPS

include "Train/TrainOpBase.td"

defvar IsPrimitive = DeclareOpInterfaceMethods<PrimitiveOpInterface>;

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Train_ReshapeOp : Train_TensorOp<"reshape", "", [DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "Same elements in row-major order under another shape";
  let description = [{
    As [b, s, heads*d] to [b, s, heads, d] and back; as many elements in as out.
    Costs nothing.
  }];
  let arguments = (ins Train_Any:$x);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_SliceOp : Train_TensorOp<"slice", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<SizedOpInterface>, IsPrimitive,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Some rows of a tensor";
  let description = [{
    x: [.., n, ..] to [.., rows, ..] along dimension `dim` (default 0):
    `rows` rows from row `from` (default 0) on: for example the positions that a
    sequence uses, a part of each head, or a tensor without its padding. Refuses more rows
    than there are.
  }];
  let arguments = (ins Train_Any:$x, I64Attr:$rows, DefaultValuedAttr<I64Attr, "0">:$dim,
                       DefaultValuedAttr<I64Attr, "0">:$from);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x (`dim` $dim^)? (`from` $from^)? `rows` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
    /// Whether the result is the beginning of x in row-major order.
    bool isPrefix();
  }];
}

def Train_PadOp : Train_TensorOp<"pad", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<SizedOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, IsPrimitive]> {
  let summary = "Pads a tensor with rows of one value: with zeros the gradient of slice";
  let description = [{
    x: [.., n, ..] to [.., rows, ..] along dimension `dim` (default 0):
    x begins at row `from` (default 0), and the other rows are
    `value` (default 0); i32 ids that select no row are -1. The sum of tensors that
    are padded with zeros to disjoint rows is their concatenation. Refuses too few rows.
  }];
  let arguments = (ins Train_Any:$x, I64Attr:$rows, DefaultValuedAttr<I64Attr, "0">:$dim,
                       DefaultValuedAttr<I64Attr, "0">:$value, DefaultValuedAttr<I64Attr, "0">:$from);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x (`dim` $dim^)? (`from` $from^)? `rows` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_DynamicSliceOp : Train_TensorOp<"dynamic_slice", "", [
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, IsPrimitive]> {
  let summary = "A part of a tensor whose offset is known at run time";
  let description = [{
    x: [.., n, ..] to y: [.., k, ..] along `dim`: the k from `offset`, a tensor<i32>
    of 0 to n - k, on. A begin outside this range is an error in the interpreter and
    undefined elsewhere. Made on floor 3 of a device's own part of a value.
  }];
  let arguments = (ins Train_Any:$x, 0DTensorOf<[I32]>:$offset, I64Attr:$dim);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x `dim` $dim `at` $offset attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_TransposeBlocksOp : Train_EinsumOp<"transpose_blocks", "~a n k -> n a k", [
    DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, IsPrimitive]> {
  let summary = "Blocks of k elements transposed";
  let description = [{
    x: [a, n, k] to y: [n, a, k], y[j, i, :] = x[i, j, :]. On floor 3 it makes one
    piece of parts that lie inside rows, so that collectives can move them.
  }];
  let arguments = (ins Train_Any:$x);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_ReduceOp : Train_TensorOp<"reduce", "", [InferTypeOpAdaptor, SumOpInterface,
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>, IsPrimitive],
    [CostOpInterface], "equalButFloats"> {
  let summary = "Sum or maximum over dimensions";
  let description = [{
    `dims`, ascending, disappear from the shape. Computed in f32 at least; the result
    may have another float type than x. Only `sum` is differentiable. Of sharded
    dimensions a device has a partial sum or maximum.
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, Train_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$kind $x `over` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_BroadcastOp : Train_TensorOp<"broadcast", "", [DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, IsPrimitive]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{ `dims` (ascending) are the result's dimensions that x does not have. }];
  let arguments = (ins Train_Any:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x `along` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_FillOp : Train_TensorOp<"fill", "", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "A tensor of one value";
  let description = [{ Any shape, float element type; `value` is rounded to it. }];
  let arguments = (ins F64Attr:$value);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$value attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Kernel primitives: what memory-bound ops decompose into, beside arith and math
//===----------------------------------------------------------------------===//

def Train_IotaOp : Train_Op<"iota", [Pure, IsPrimitive]> {
  let summary = "Each element's own index along one dimension";
  let description = [{ i32, any shape. Only inside kernels. }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Train_Ids:$y);
  let assemblyFormat = "$dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_GatherRowsOp : Train_Op<"gather_rows", [Pure, IsPrimitive]> {
  let summary = "y[r.., c..] = table[ids[r..], c..]";
  let description = [{
    table: [rows.., d..], ids: [...], y: [..., d..] of the table's element type: as many
    dimensions of the table are a row as y has behind those of ids, and the others
    number the rows together. Only inside kernels.
  }];
  let arguments = (ins Train_Any:$table, Train_Ids:$ids);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_ScatterRowsOp : Train_Op<"scatter_rows", [Pure, IsPrimitive]> {
  let summary = "y = init or 0; y[ids[r..], c] += x[r.., c] in the order of r";
  let description = [{
    x: [..., d], ids: [...], y and init: [rows, d]. Where y and init are narrower than x, sums are
    rounded to their type, and no two ids point to one row. Only inside kernels.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids, Optional<Train_Tensor>:$init);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $ids (`init` $init^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RotateHalfOp : Train_Op<"rotate_half", [Pure, SameOperandsAndResultType, IsPrimitive]> {
  let summary = "(a, c) -> (-c, a), the halves of the last dimension";
  let description = [{ The last dimension is even. Only inside kernels. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_DuplicateHalfOp : Train_Op<"duplicate_half", [Pure, IsPrimitive]> {
  let summary = "y = (x, x) along the last dimension";
  let description = [{ x: [..., d], y: [..., 2 d]. Only inside kernels. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // MESHWRIGHT_TRAIN_SHAPE_OPS
