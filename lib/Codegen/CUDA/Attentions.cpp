//===- Attentions.cpp - numbers of calls of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Attentions.h"
#include "Codegen/CUDA/Alignments.h"
#include "Codegen/LocationText.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

bool cuda::fitsTensorCores(const MwAttention &sizes, bool aligned) {
  return sizes.elementType != MW_F32 && sizes.headDim % 16 == 0 && sizes.headDim <= 256 && aligned;
}

template <typename Op> static AttentionEntry entryOf(Op op, cuda::Alignments &alignments) {
  AttentionEntry entry;
  entry.call.sizes = op.getAttention();
  entry.call.backward = isa<exec::AttentionGradOp>(op);
  std::optional<Library> library = libraryOf(op.getLibraryAttr());
  entry.byCudnn = library.has_value();
  if (library) {
    entry.call.deterministic = library->deterministic;
    entry.fallback = library->fallback;
    entry.workspaceBytes = library->workspaceBytes;
  }
  entry.reason = op.getReason().value_or("");
  entry.tensorCores =
      (!entry.byCudnn || entry.fallback) &&
      fitsTensorCores(entry.call.sizes, alignments.ofAll(op->getOperands()) == 16);
  entry.first = op;
  return entry;
}

/// All that calls of one number have in common, as text.
static std::string keyOf(const AttentionEntry &entry) {
  const MwAttention &s = entry.call.sizes;
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t number :
       {int64_t(entry.call.backward), int64_t(entry.call.deterministic), int64_t(entry.byCudnn),
        int64_t(entry.fallback), int64_t(entry.tensorCores), entry.workspaceBytes, s.batch, s.queries, s.keys, s.heads,
        s.kvHeads, s.headDim, s.window, int64_t(s.causal), int64_t(s.elementType)})
    os << number << " ";
  // As whole numbers, which are exact.
  os << llvm::bit_cast<uint32_t>(s.scale) << " " << llvm::bit_cast<uint32_t>(s.dropout);
  return text;
}

Attentions::Attentions(ModuleOp module) {
  llvm::StringMap<unsigned> known;
  cuda::Alignments alignments(module);
  auto add = [&](AttentionEntry entry) {
    auto [place, isNew] = known.try_emplace(keyOf(entry), entries.size());
    numbers[entry.first] = place->second;
    if (isNew)
      entries.push_back(std::move(entry));
  };
  module.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<exec::AttentionOp, exec::AttentionGradOp>(
        [&](auto attention) { add(entryOf(attention, alignments)); });
  });
}

llvm::json::Array cuda::rowsOf(ModuleOp module) {
  llvm::json::Array rows;
  Attentions attentions(module);
  for (const AttentionEntry &entry : attentions.all()) {
    const MwAttention &s = entry.call.sizes;
    std::string type;
    llvm::raw_string_ostream(type) << getElementTypeOrSelf(entry.first->getOperand(0));
    llvm::json::Object row{{"op", entry.call.backward ? "attention_grad" : "attention"},
                           {"by", entry.byCudnn ? "cudnn" : "generated"},
                           {"type", type},
                           {"batch", s.batch},
                           {"queries", s.queries},
                           {"keys", s.keys},
                           {"heads", s.heads},
                           {"kv_heads", s.kvHeads},
                           {"head_dim", s.headDim},
                           {"scale", double(s.scale)},
                           {"causal", bool(s.causal)},
                           {"window", s.window},
                           {"location", locationText(entry.first->getLoc())}};
    if (entry.byCudnn) {
      row["fallback"] = entry.fallback;
      row["deterministic"] = entry.call.deterministic;
      row["workspace_bytes"] = entry.workspaceBytes;
    } else {
      row["reason"] = entry.reason;
    }
    if (!entry.byCudnn || entry.fallback)
      row["tensor_cores"] = entry.tensorCores;
    rows.push_back(std::move(row));
  }
  return rows;
}
