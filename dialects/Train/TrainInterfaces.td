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
    The op's factor table: which dimension of which operand is the same index as
    which dimension of which result, what is summed over, what must stay whole.
    Sizes are those of the op's current types, so the table is right before and
    after partitioning.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"The factor table with sizes.",
                                 "::meshwright::ShardingRule", "getShardingRule">];
}

def VJPOpInterface : OpInterface<"VJPOpInterface"> {
  let description = [{
    Reverse-mode derivative: the vector-Jacobian product. `cotangents` has one
    value per result, null where nothing downstream depends on it (at least one
    is set). Pushes one value per operand onto `grads`, null for operands that
    are not differentiable (token ids) or have no derivative. May use the op's
    operands and results as values: autodiff decides how they reach the backward.
    `needed` says for each operand whether its gradient is wanted; an op may leave
    the others null.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Builds the gradient of each operand.", "::mlir::LogicalResult", "buildVJP",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::ArrayRef<bool>":$needed,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$grads)>];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    What one execution costs. FLOPs count a multiply-add as two; a contraction
    counts its products, attention its two products over the visible part,
    everything else one per output element unless it says otherwise. Bytes are
    what must move at least: each operand read and each result written once. FLOPs are
    a double, as those of a large model's step exceed 2^63.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"Floating-point operations.", "double", "getFlops", (ins), "",
                    [{ return ::meshwright::train::defaultFlops($_op); }]>,
    InterfaceMethod<"Bytes read and written.", "int64_t", "getBytes", (ins), "",
                    [{ return ::meshwright::train::defaultBytes($_op); }]>];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    A memory-bound op: it can become part of a generated kernel. `decompose`
    rewrites it at the builder's insertion point into arith/math ops on tensors
    and primitives (`PrimitiveOpInterface`), from which kernels are formed for every
    target. Such ops are cheap to recompute.

    Kernels compute in f32 at least: callers go through `decomposeInF32`, which
    hands narrower operands over in f32 and rounds the results. An op that
    `movesElements`, without arithmetic, is decomposed in the types it has.
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
    An op with results that are sums. They are computed in f32 at least and rounded
    once, to the result's element type, which need not be the operands': the gradient
    of a bf16 parameter may leave its sum in f32.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"Whether result `index` is such a sum.", "bool", "isSum",
                                 (ins "unsigned":$index), "", [{ return true; }]>];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let description = [{
    An op that wants element types of its own when a model is trained in the type
    `narrow` (bf16 or f16). All others take operands of that type, and what an op
    without operands makes has it.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The type wanted of float operand `index`.", "::mlir::FloatType",
                    "getOperandPrecision",
                    (ins "unsigned":$index, "::mlir::FloatType":$narrow), "",
                    [{ return narrow; }]>,
    InterfaceMethod<"The type of results that no operand determines.", "::mlir::FloatType",
                    "getResultPrecision", (ins "::mlir::FloatType":$narrow), "",
                    [{ return narrow; }]>];
}

def ContractionOpInterface : OpInterface<"ContractionOpInterface"> {
  let description = [{
    A sum of products of operand 0 and operand 1 as the op's sharding rule says:
    factors in operand 0 and the result are rows, in operand 1 and the result
    columns, in both operands only the summed dimension, in all three the batch.
    Lowered to a matrix-multiply library.
  }];
  let cppNamespace = "::meshwright::train";
}

def AccumulatingOpInterface : OpInterface<"AccumulatingOpInterface"> {
  let description = [{
    An op that can add its one result to an operand `init` of the result's type,
    in place when memory is planned: gradients that are summed over microbatches or
    over several uses of a parameter.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"What the result is added to, if anything.",
                                 "::mlir::MutableOperandRange", "getInitMutable">];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let description = [{
    An op that may zero values at random while a model is trained.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Makes the op do what it does in evaluation, and may erase it. Returns false if "
      "nothing was random in it.",
      "bool", "dropRandomness">];
}

def UpdateOpInterface : OpInterface<"UpdateOpInterface"> {
  let description = [{
    The optimizer's update of one parameter: operands that have the parameter's
    shape, and so can be stored in parts (ZeRO), are it, its gradient and its states.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The parameter before.", "::mlir::OpOperand &", "getParameterMutable">,
    InterfaceMethod<"Its gradient.", "::mlir::OpOperand &", "getGradientMutable">,
    InterfaceMethod<"The parameter after.", "::mlir::Value", "getUpdated">];
}

def SplittableOpInterface : OpInterface<"SplittableOpInterface"> {
  let description = [{
    An op that needs an index whole, but is made of sums and maxima over it.
    `split` builds the same values, one per result, from ops that need it whole
    nowhere: cut along it, the sums and maxima are partial values. Used where the
    index is to be cut (`dist-split-reductions`); whole, the op itself is one
    kernel and reads its operands once.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<
      "Builds the op from sums and maxima; one value per result.",
      "::llvm::SmallVector<::mlir::Value>", "split", (ins "::mlir::OpBuilder &":$builder)>];
}

def IndexedOpInterface : OpInterface<"IndexedOpInterface"> {
  let description = [{
    An op whose result depends on the indices of elements and not on the elements
    alone: random numbers, positions, masks. The index is that of the logical
    global tensor, also where the types are padded or one device's part. A
    dimension is named by an operand or result and its number.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [
    InterfaceMethod<"The dimensions whose indices matter.",
                    "::llvm::SmallVector<std::pair<::mlir::Value, int64_t>>", "getIndexedDims">,
    InterfaceMethod<"Called before types change: keeps as attributes what the types say about "
                    "logical sizes, unless attributes say it already.",
                    "void", "keepLogicalSizes", (ins), "", [{ (void)$_op; }]>,
    InterfaceMethod<"What `setBegins` has given it: for each of `getIndexedDims` the index at "
                    "which a part begins, or null.",
                    "::llvm::SmallVector<::mlir::Value>", "getIndexBegins">,
    InterfaceMethod<"Takes for each of `getIndexedDims` the index at which this device's part "
                    "begins (tensor<i32>), null for dimensions that are not cut.",
                    "void", "setBegins", (ins "::mlir::ValueRange":$begins)>];
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
    Results are 0 at an index where an id points nowhere, and sums leave it out; with
    `preservesZero` also where all operands that have the index are 0. Ops that
    are linear in an operand (`~`, `+`) need not say so.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"Whether zeros make a zero result.", "bool", "preservesZero",
                                 (ins "unsigned":$result), "", [{ (void)result; return true; }]>];
}

def NeutralPaddingOpInterface : OpInterface<"NeutralPaddingOpInterface"> {
  let description = [{
    An op that can run on a padded index, be it one that it needs whole: with this value
    in the padding of operand `operand`, results are what they are without padding, and
    0 in their own. No value, no padding of that operand.
  }];
  let cppNamespace = "::meshwright::train";
  let methods = [InterfaceMethod<"What padding of an operand holds.", "::std::optional<double>",
                                 "getNeutralPadding", (ins "unsigned":$operand)>];
}

#endif // MESHWRIGHT_TRAIN_INTERFACES
