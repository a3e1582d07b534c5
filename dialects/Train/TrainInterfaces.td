//===- TrainInterfaces.td - what passes ask of an op -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What passes ask of an op's meaning, so that a new op needs no change to them.
// They know by name: structure (variables, get and set, repeat, slices and reshapes
// of values), sums (fill, add, accumulate), in train-verify the two ops that take
// tokens (embedding, cross_entropy), and on floor 3 what has a library call of its
// own (attention).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_INTERFACES
#define MESHWRIGHT_TRAIN_INTERFACES

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let description = [{
    The op's factor table: which dimensions of operands and results are one index,
    which indices are summed over, and which must stay whole. Sizes are those of the
    op's current types, so that the table is valid before and after partitioning.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The factor table with sizes.",
                                 "::meshwright::ShardingRule", "getShardingRule">];
}

def VJPOpInterface : OpInterface<"VJPOpInterface"> {
  let description = [{
    Reverse-mode derivative: the vector-Jacobian product. `cotangents` has one
    value per result, null for results that the loss does not depend on (at least one
    is set). The method pushes one value per operand onto `grads`, null for operands
    that are not differentiable (token ids) or have no derivative. It may use the op's
    operands and results as values: autodiff decides how they reach the backward.
    `needed` says for each operand whether its gradient is needed; an op may leave
    the others null.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Builds the gradient of each operand.", "::mlir::LogicalResult", "buildVJP",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::ArrayRef<bool>":$needed,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$grads)>];
}

def ConstantOpInterface : OpInterface<"ConstantOpInterface"> {
  let description = [{
    An op whose results are constant where they are defined, such as counts: differentiation
    ends at them.
  }];
  let cppNamespace = "::meshwright::train";
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    The cost of one execution. A multiply-add counts as two FLOPs; a contraction
    counts its products, attention its two products over the visible part, and every
    other op one FLOP per output element unless it says otherwise. FLOPs are a double,
    because those of a large model's step exceed 2^63. Ops of the memory form, on floor 3,
    have it too; `lib/Cost` adds up what functions and programs do.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"Floating-point operations.", "double", "getFlops", (ins), "",
                    [{ return ::meshwright::train::defaultFlops($_op); }]>];
}

def TripCountOpInterface : OpInterface<"TripCountOpInterface"> {
  let description = [{
    An op that runs other code: a function or a program that it names, or its own region.
    The op says how often; `lib/Cost/TripCount.h` is what passes and reports ask.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<[{
      How often the code runs in one run of the op. A fraction where a condition takes some
      of the iterations of a loop around it.
    }], "double", "getTripCount", (ins "::meshwright::train::Rounds":$rounds), "",
    [{ return 1; }]>,
    InterfaceMethod<"The function or program that runs; null where it is the op's region.",
                    "::mlir::FlatSymbolRefAttr", "getCalleeAttr", (ins), "", [{ return {}; }]>];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    A memory-bound op, which can become part of a generated kernel. `decompose`
    rewrites it at the builder's insertion point into arith and math ops on tensors
    and primitives (`PrimitiveOpInterface`), from which kernels are formed for every
    target. Such ops are cheap to recompute.

    Kernels compute in f32 at least: callers use `decomposeInF32`, which converts
    narrower operands to f32 and rounds the results. An op that `movesElements`,
    without arithmetic, is decomposed in its own types.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"Rewrites the op into kernel primitives; one value per result.",
                    "::llvm::SmallVector<::mlir::Value>", "decompose",
                    (ins "::mlir::OpBuilder &":$builder)>,
    InterfaceMethod<"Whether no element is computed with, only moved or converted.", "bool",
                    "movesElements", (ins), "", [{ return false; }]>];
}

def PrimitiveOpInterface : OpInterface<"PrimitiveOpInterface"> {
  let description = [{
    One of the ops that decompositions are made of, beside element-wise arith and math
    ops. It says what it does in terms that the code generators of all targets have, so
    that none of them knows it by name.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"What the op does.", "::meshwright::train::Primitive",
                                 "getPrimitive">];
}

def SumOpInterface : OpInterface<"SumOpInterface"> {
  let description = [{
    An op whose results are sums. They are computed in f32 at least and rounded once, to
    the result's element type, which may differ from the operands': the gradient of a
    bf16 parameter may be a sum in f32.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"Whether result `index` is such a sum.", "bool", "isSum",
                                 (ins "unsigned":$index), "", [{ return true; }]>];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let description = [{
    An op that needs element types of its own when a model is trained in the type
    `narrow` (bf16 or f16). All other ops take operands of that type, and results of
    ops without operands have it.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The type that float operand `index` must have.", "::mlir::FloatType",
                    "getOperandPrecision",
                    (ins "unsigned":$index, "::mlir::FloatType":$narrow), "",
                    [{ return narrow; }]>,
    InterfaceMethod<"The type of results that no operand determines.", "::mlir::FloatType",
                    "getResultPrecision", (ins "::mlir::FloatType":$narrow), "",
                    [{ return narrow; }]>];
}

def ContractionOpInterface : OpInterface<"ContractionOpInterface"> {
  let description = [{
    A sum of products of operand 0 and operand 1, by the op's sharding rule: factors
    of operand 0 and the result are rows, factors of operand 1 and the result are
    columns, factors of both operands alone are summed over, and factors of all three
    are the batch. Lowered to calls of a matrix library.
  }];
  let cppNamespace = "::meshwright::train";
}

def AccumulatingOpInterface : OpInterface<"AccumulatingOpInterface"> {
  let description = [{
    An op that can add its one result to an operand `init` of the result's type, which
    bufferization does in place: gradients that are summed over microbatches or over
    several uses of a parameter.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The operand that the result is added to, if there is one.",
                                 "::mlir::MutableOperandRange", "getInitMutable">];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let description = [{
    An op that may zero values at random while a model is trained.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Makes the op compute what it computes in evaluation, and may erase it. Returns false "
      "if the op was not random.",
      "bool", "dropRandomness">];
}

def UpdateOpInterface : OpInterface<"UpdateOpInterface"> {
  let description = [{
    The optimizer's update of one parameter. The operands with the parameter's shape,
    which ZeRO can shard, are the parameter, its gradient and its states.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The parameter before.", "::mlir::OpOperand &", "getParameterMutable">,
    InterfaceMethod<"Its gradient.", "::mlir::OpOperand &", "getGradientMutable">,
    InterfaceMethod<"The parameter after.", "::mlir::Value", "getUpdated">,
    InterfaceMethod<"The direction of the step, where that is computed from whole matrices; or null.",
                    "::mlir::OpOperand *", "getDirection">];
}

def SplittableOpInterface : OpInterface<"SplittableOpInterface"> {
  let description = [{
    An op that needs an index whole, but only for sums and maxima over it. `split`
    builds the same values, one per result, from ops that do not need the index whole:
    if it is sharded, the sums and maxima are partial values. `dist-split-reductions`
    uses it for indices that seeds shard; otherwise the op itself is one kernel and
    reads its operands once.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Builds the op from sums and maxima; one value per result.",
      "::llvm::SmallVector<::mlir::Value>", "split", (ins "::mlir::OpBuilder &":$builder)>];
}

def IndexedOpInterface : OpInterface<"IndexedOpInterface"> {
  let description = [{
    An op whose result depends on the indices of elements and not on the elements
    alone: random numbers, positions, masks. The index is that of the logical global
    tensor, even if the types are padded or those of one device's part. A dimension is
    given by an operand or result and the dimension's number.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The dimensions whose indices matter.",
                    "::llvm::SmallVector<std::pair<::mlir::Value, int64_t>>", "getIndexedDims">,
    InterfaceMethod<"Called before types change: stores the logical sizes of the types as "
                    "attributes, unless the op has them already.",
                    "void", "keepLogicalSizes", (ins), "", [{ (void)$_op; }]>,
    InterfaceMethod<"The operands that `setOffsets` has set: for each of `getIndexedDims` the "
                    "offset of the part, or null.",
                    "::llvm::SmallVector<::mlir::Value>", "getIndexOffsets">,
    InterfaceMethod<"Sets for each of `getIndexedDims` the offset of this device's part "
                    "(tensor<i32>), null for dimensions that are not sharded.",
                    "void", "setOffsets", (ins "::mlir::ValueRange":$offsets)>];
}

def SizedOpInterface : OpInterface<"SizedOpInterface"> {
  let description = [{
    An op with attributes that repeat sizes of its results. A pass that changes
    types calls `updateSizes` afterwards.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"Makes the attributes say what the types say.", "void", "updateSizes">];
}

def ZeroPreservingOpInterface : OpInterface<"ZeroPreservingOpInterface"> {
  let description = [{
    Results are 0 at an index whose id selects no row, and sums omit that index; with
    `preservesZero` the same holds if all operands with the index are 0. Ops that are
    linear in an operand (`~`, `+`) do not need this interface.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"Whether zeros make a zero result.", "bool", "preservesZero",
                                 (ins "unsigned":$result), "", [{ (void)result; return true; }]>];
}

def SlotsOpInterface : OpInterface<"SlotsOpInterface"> {
  let description = [{
    An op between tokens and rows of experts (TrainExpertOps.td). `getSlots` is its tensor
    of rows, [blocks, b, slots, ..]: of each block the last slots, which no row fills, hold zeros.
    Where those are moved, ranks that know so need not send zeros.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The tensor of rows.", "::mlir::Value", "getSlots">];
}

def NeutralPaddingOpInterface : OpInterface<"NeutralPaddingOpInterface"> {
  let description = [{
    An op that can run on a padded index, even one that it needs whole: with this value
    in the padding of operand `operand`, results are the same as without padding, and 0
    in their own padding. Without a value that operand cannot be padded.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The value in the padding of an operand.", "::std::optional<double>",
                                 "getNeutralPadding", (ins "unsigned":$operand)>];
}

def FinitePaddingOpInterface : OpInterface<"FinitePaddingOpInterface"> {
  let description = [{
    An op whose results may not be finite where its operand is 0, as padding is: what is multiplied
    by 0 behind it would be no number. With this value in the padding they are finite.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The value in the padding, or nothing where 0 will do.", "::std::optional<double>",
                                 "getFinitePadding", (ins)>];
}

#endif // MESHWRIGHT_TRAIN_INTERFACES
