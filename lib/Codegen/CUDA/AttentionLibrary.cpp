//===- AttentionLibrary.cpp - which calls of attention are cuDNN's ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// cuDNN's fused attention is made for each architecture, with its own products and copies,
// where the generated kernels use what all GPUs from sm_80 on have. But cuDNN knows fewer
// cases (meshwright/runtime/cuda/Cudnn.h).
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Attentions.h"
#include "Dist/Dist.h"
#include "Dist/Programs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

Attribute cuda::toAttribute(const Library &library, MLIRContext *context) {
  Builder b(context);
  SmallVector<NamedAttribute> entries{
      b.getNamedAttr("name", b.getStringAttr("cudnn")),
      b.getNamedAttr("workspace", b.getI64IntegerAttr(library.workspaceBytes))};
  if (library.fallback)
    entries.push_back(b.getNamedAttr("fallback", b.getUnitAttr()));
  if (library.deterministic)
    entries.push_back(b.getNamedAttr("deterministic", b.getUnitAttr()));
  return b.getDictionaryAttr(entries);
}

std::optional<cuda::Library> cuda::libraryOf(Attribute attribute) {
  auto entries = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!entries)
    return std::nullopt;
  auto name = entries.getAs<StringAttr>("name");
  auto workspace = entries.getAs<IntegerAttr>("workspace");
  if (!name || name != "cudnn" || !workspace)
    return std::nullopt;
  return Library{workspace.getInt(), entries.contains("fallback"),
                 entries.contains("deterministic")};
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// The call as cuDNN would see it.
template <typename Op> static cudnn::Attention describeCall(Op op, bool deterministic) {
  train::AttentionOptions options = op.getOptions();
  cudnn::Attention call;
  call.sizes = train::describeCall(op.getQ().getType(), op.getK().getType(), op.getV().getType(),
                                   op.getSpec().getValue(), options);
  call.slopes = bool(options.slopes);
  call.sinks = bool(options.sinks);
  call.queryOffset = bool(options.queryOffset);
  call.documents = bool(options.positions);
  call.lengths = bool(options.lengths);
  call.distances = bool(options.distances);
  call.backward = isa<train::AttentionGradOp>(op);
  call.deterministic = deterministic;
  return call;
}

/// The numbers of sm_90, sm_80. What is no architecture is refused where code for it is made.
static SmallVector<int64_t> numbersOf(ArrayRef<std::string> archs) {
  SmallVector<int64_t> numbers;
  for (StringRef name : archs) {
    int64_t number = 0;
    if (name.consume_front("sm_") && !name.consumeInteger(10, number))
      numbers.push_back(number);
  }
  return numbers;
}

int64_t cuda::leastScratchTraffic(const MwAttention &shape, bool backward, Attribute attribute,
                                  ArrayRef<std::string> archs) {
  std::optional<Library> library = libraryOf(attribute);
  // Generated kernels of a gradient leave dout times out, summed over a head.
  if (!library)
    return backward ? shape.batch * shape.heads * shape.queries * int64_t(sizeof(float)) : 0;
  std::optional<int64_t> least;
  for (int64_t arch : numbersOf(archs)) {
    cudnn::Attention call{shape};
    call.backward = backward;
    call.deterministic = library->deterministic;
    int64_t bytes = cudnn::leastScratchTraffic(call, arch);
    least = std::min(bytes, least.value_or(bytes));
  }
  return least.value_or(0);
}

/// Whether several devices make the call and must get the same bits of it.
static bool hasCopies(Operation *op) {
  auto axes = op->getAttrOfType<ArrayAttr>(dist::copiedAttr);
  return axes && llvm::any_of(axes.getAsValueRange<StringAttr>(),
                              [&](StringRef axis) { return !dist::isFixed(axis, op); });
}

LogicalResult cuda::chooseAttention(Operation *op, StringRef attention, bool deterministic,
                                    ArrayRef<std::string> archs) {
  Builder b(op->getContext());
  deterministic |= hasCopies(op);
  cudnn::Attention call =
      llvm::TypeSwitch<Operation *, cudnn::Attention>(op)
          .Case<train::AttentionOp, train::AttentionGradOp>(
              [&](auto attention) { return describeCall(attention, deterministic); });
  int64_t bytes = -1;
  std::string reason = "--attention generated";
  if (attention != "generated")
    for (int64_t arch : numbersOf(archs)) {
      std::string found = cudnn::whyNot(call, arch);
      if (found.empty()) {
        bytes = std::max(bytes, cudnn::workspaceBytes(call, arch));
        continue;
      }
      reason = std::move(found);
      if (attention == "cudnn")
        return op->emitOpError("cannot be cuDNN's: ")
               << reason << "; --attention auto or generated works";
    }
  if (bytes < 0)
    op->setAttr(exec::reasonAttr, b.getStringAttr(reason));
  else
    op->setAttr(exec::libraryAttr,
                toAttribute({bytes, /*fallback=*/attention == "auto", deterministic},
                            op->getContext()));
  return success();
}
