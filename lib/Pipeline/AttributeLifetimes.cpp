//===- AttributeLifetimes.cpp - in which phases attributes may exist ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttributeLifetimes.h"
#include "meshwright/AttributeTable.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace meshwright {

/// The row of the tables that describes `name`; null for attributes of other dialects.
static const KnownAttribute *rowOf(StringAttr name) {
  static const llvm::StringMap<const KnownAttribute *> rows = [] {
    llvm::StringMap<const KnownAttribute *> all;
    for (llvm::ArrayRef<KnownAttribute> table :
         {train::commonAttributes(), train::knownAttributes(), dist::knownAttributes(),
          exec::knownAttributes()})
      for (const KnownAttribute &row : table)
        all[row.name] = &row;
    return all;
  }();
  return name.getReferencedDialect() ? rows.lookup(name.getValue()) : nullptr;
}

/// Calls `visit` for each discardable attribute of `op`, and of its arguments and results where it
/// is a function.
static void forEachAttribute(Operation *op, llvm::function_ref<void(NamedAttribute)> visit) {
  llvm::for_each(op->getDiscardableAttrs(), visit);
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    llvm::for_each(function.getArgAttrs(i), visit);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    llvm::for_each(function.getResultAttrs(i), visit);
}

LogicalResult checkAttributeLifetimes(ModuleOp module, Phase phase) {
  llvm::SmallPtrSet<const KnownAttribute *, 4> reported; // Each once, however many ops have it.
  module.walk([&](Operation *op) {
    forEachAttribute(op, [&](NamedAttribute attribute) {
      const KnownAttribute *row = rowOf(attribute.getName());
      if (!row || (row->first <= phase && phase <= row->last) || !reported.insert(row).second)
        return;
      auto error = op->emitOpError("attribute '")
                   << row->name << "' of IR at phase " << phaseNames[unsigned(phase)];
      if (phase < row->first)
        error << " comes too early: it is written by " << row->writer << " on the way to phase "
              << phaseNames[unsigned(row->first)];
      else
        error << " comes too late: nothing reads it after phase " << phaseNames[unsigned(row->last)]
              << "; leave it out";
    });
  });
  return success(reported.empty());
}

void dropExpiredAttributes(ModuleOp module, Phase phase) {
  auto isExpired = [&](NamedAttribute attribute) {
    const KnownAttribute *row = rowOf(attribute.getName());
    return row && row->last < phase;
  };
  module.walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (isExpired(attribute))
        op->removeDiscardableAttr(attribute.getName());
    if (auto function = dyn_cast<FunctionOpInterface>(op)) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        for (NamedAttribute attribute : llvm::to_vector(function.getArgAttrs(i)))
          if (isExpired(attribute))
            function.removeArgAttr(i, attribute.getName());
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        for (NamedAttribute attribute : llvm::to_vector(function.getResultAttrs(i)))
          if (isExpired(attribute))
            function.removeResultAttr(i, attribute.getName());
    }
  });
}

} // namespace meshwright
