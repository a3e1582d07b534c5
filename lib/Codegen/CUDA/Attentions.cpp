//===- Attentions.cpp - numbers of calls of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Attentions.h"
#include "Codegen/CUDA/Alignments.h"
#include "meshwright/LocationText.h"
#include "meshwright/PlanJson.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

bool cuda::fitsTensorCores(const MwAttention &sizes, bool aligned) {
  auto fits = [](int64_t dim) { return dim % 16 == 0 && dim <= 256; };
  return sizes.elementType != MW_F32 && fits(sizes.headDim) && fits(sizes.valueDim) && aligned;
}

template <typename Op> static plan::Attention rowOf(Op op, cuda::Alignments &alignments) {
  MwAttention s = op.getAttention();
  plan::Attention row;
  row.op = isa<exec::AttentionGradOp>(op) ? "attention_grad" : "attention";
  llvm::raw_string_ostream(row.type) << getElementTypeOrSelf(op->getOperand(0));
  row.batch = s.batch;
  row.queries = s.queries;
  row.keys = s.keys;
  row.heads = s.heads;
  row.kvHeads = s.kvHeads;
  row.headDim = s.headDim;
  row.scale = s.scale;
  row.causal = s.causal;
  static_cast<plan::Mask &>(row) = plan::Mask(attentionMaskOf(s));
  if (s.cap)
    row.cap = s.cap;
  if (s.valueDim != s.headDim)
    row.valueDim = s.valueDim;
  if (op.getSlopes())
    row.slopes = true;
  if (op.getSinks())
    row.sinks = true;
  row.location = locationText(op->getLoc());
  std::optional<Library> library = libraryOf(op.getLibraryAttr());
  row.by = library ? "cudnn" : "generated";
  if (library) {
    row.fallback = library->fallback;
    row.deterministic = library->deterministic;
    row.workspaceBytes = library->workspaceBytes;
  } else {
    row.reason = op.getReason().value_or("").str();
  }
  if (!library || library->fallback)
    row.tensorCores = fitsTensorCores(s, alignments.ofAll(op->getOperands()) == 16);
  return row;
}

/// All that calls of one number have in common, as text.
static std::string keyOf(plan::Attention row, float dropout) {
  row.location.clear();
  row.reason.reset();
  return llvm::formatv("{0} {1}", llvm::json::Value(row), llvm::bit_cast<uint32_t>(dropout));
}

Attentions::Attentions(ModuleOp module) {
  llvm::StringMap<unsigned> known;
  cuda::Alignments alignments(module);
  module.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<exec::AttentionOp, exec::AttentionGradOp>(
        [&](auto attention) {
          plan::Attention row = rowOf(attention, alignments);
          auto [found, isNew] =
              known.try_emplace(keyOf(row, attention.getAttention().dropout), rows.size());
          numbers[op] = found->second;
          if (isNew)
            rows.push_back(std::move(row));
        });
  });
}
