//===- ExchangeRule.cpp - sums over devices in messages ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An all-reduce that is written as messages has, between them, for each piece of the
// tensor on each device the terms of some devices. It is done when all of them are
// everywhere.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

/// The terms that each device begins with: its own.
static LogicalResult begin(dist::ExchangeOp op, unsigned operand, Fact &fact, const Axes &group,
                           bool isMax, Checker &checker) {
  int64_t devices = checker.mesh.size(group), pieces = op.getPieces();
  if (devices > mostDevices || pieces > mostDevices)
    return checker.refuse(op) << "is one of " << devices << " devices and " << pieces
                              << " pieces, more than " << mostDevices << ", for which there is no rule";
  Axes &terms = isMax ? fact.type.max : fact.type.sum;
  for (unsigned axis : group)
    if (!llvm::is_contained(terms, axis))
      return checker.refuse(op) << "adds, of " << Checker::nameOf(op, operand)
                                << ", what are no terms along " << checker.mesh.str({axis}) << ": "
                                << fact.type.str(checker.mesh);
  llvm::erase_if(terms, [&](unsigned axis) { return llvm::is_contained(group, axis); });
  Messages messages{group, isMax, pieces, {}};
  messages.number = ++checker.proof.messages;
  for (int64_t device = 0; device < devices; ++device) {
    llvm::BitVector own(devices);
    own.set(device);
    messages.terms.push_back(std::vector<llvm::BitVector>(pieces, own));
  }
  fact.type.messages = messages;
  return success();
}

static LogicalResult exchange(dist::ExchangeOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  Axes group = checker.without1(op.getGroup().on(checker.mesh));
  int64_t devices = checker.mesh.size(group), pieces = op.getPieces(), length = op.getLength();
  for (auto [index, operand] : llvm::enumerate(operands)) {
    Fact fact = operand;
    settle(fact, checker);
    bool isReplacing = !op.getKind();
    // What is sent to be added up later, all terms of a device at once, is a sum or a maximum already.
    const Axes &maxima = fact.type.max;
    bool isMax = isReplacing ? !group.empty() && llvm::is_contained(maxima, group[0])
                             : op.getKind() == train::ReduceKind::Max;
    if (isZero(fact.expression)) {
      results.push_back(fact);
      continue;
    }
    // A chunk of tokens is the same one on all devices, and so are pieces of it.
    bool hasOtherParts = fact.type.terms || fact.type.summands || !fact.type.pieces.empty();
    bool isIds = fact.type.rows && fact.type.rows->isIds;
    if (fact.offset || !fact.type.root.empty() || isIds || hasOtherParts)
      return checker.refuse(op) << "sends " << fact.type.str(checker.mesh);
    if (!fact.type.messages && failed(begin(op, index, fact, group, isMax, checker)))
      return failure();
    const Messages before = *fact.type.messages;
    if (before.group != group || before.pieces != pieces ||
        (!isReplacing && before.isMax != isMax) || int64_t(op.getTo().size()) != devices)
      return checker.refuse(op) << "goes on with other devices, pieces or another kind of sum than "
                                   "the message before it";
    Messages &after = *fact.type.messages;
    for (int64_t device = 0; device < devices; ++device) {
      int64_t sender = op.getFrom()[device];
      if (sender < 0)
        continue;
      int64_t from = op.getSend()[sender], to = op.getReceive()[device];
      if (sender >= devices || op.getTo()[sender] != device || from < 0 || to < 0 ||
          from + length > pieces || to + length > pieces)
        return checker.refuse(op) << "receives, on the device at position " << device
                                  << ", what no device sends to it";
      for (int64_t i = 0; i < length; ++i) {
        const llvm::BitVector &sent = before.terms[sender][from + i];
        llvm::BitVector &own = after.terms[device][to + i];
        // A piece is added to the same piece.
        if (from != to)
          return checker.refuse(op) << "puts piece " << from + i << " into piece " << to + i;
        if (isReplacing) {
          own = sent;
          continue;
        }
        if (!isMax && own.anyCommon(sent))
          return checker.refuse(op) << "adds, on the device at position " << device
                                    << ", terms of a device that piece " << to + i << " has already";
        own |= sent;
      }
    }
    bool isDone = llvm::all_of(after.terms, [](auto &of) {
      return llvm::all_of(of, [](const llvm::BitVector &terms) { return terms.all(); });
    });
    if (isDone) {
      fact.type.messages.reset();
      checker.use(isMax ? "maxima may be reordered"
                        : "sums over devices and microbatches may be reordered");
    }
    results.push_back(fact);
  }
  return success();
}

void certify::attachExchangeRule(MLIRContext *context) {
  attachRule<dist::ExchangeOp, exchange, OnPadding::known, OnParts::known>(context);
}
