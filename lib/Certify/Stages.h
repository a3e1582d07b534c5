//===- Stages.h - programs of pipeline stages, run together ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each stage's program runs on facts, op by op, until it waits: for a message that no
// stage has sent yet, or in a collective for the other stages. What a stage receives is
// the fact that was sent, the next one of its channel. So it does not matter here in
// which order stages run their tasks, only which value arrives where; that they do not
// wait for each other for ever is what dist-verify-communication proves.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_STAGES_H
#define MESHWRIGHT_CERTIFY_STAGES_H

#include "Certify/Checker.h"

#include <deque>
#include <map>
#include <memory>

namespace meshwright::certify {

/// The programs of a module: one, that all devices run, or one for each coordinate of an axis.
class Programs {
public:
  /// Emits an error if they are others.
  static llvm::FailureOr<Programs> of(mlir::ModuleOp module, const Mesh &mesh, Proof &proof);

  std::vector<std::unique_ptr<Checker>> all;

  /// Runs a function of all of them, on the inputs of each, whose results are pushed for each.
  llvm::LogicalResult run(llvm::StringRef function, llvm::ArrayRef<FactList> inputs,
                          std::vector<FactList> &results);

private:
  /// How far a program is.
  struct Stage {
    Checker *checker;
    mlir::func::FuncOp function;
    mlir::Block::iterator at;
    llvm::DenseMap<mlir::Value, Fact> facts;
    bool isDone() const { return at->hasTrait<mlir::OpTrait::IsTerminator>(); }
  };
  /// Runs what a stage can run alone; whether that was something.
  llvm::FailureOr<bool> advance(unsigned stage);
  llvm::FailureOr<bool> receive(unsigned stage);
  llvm::LogicalResult send(unsigned stage);
  /// Runs the collective that all stages are in.
  llvm::LogicalResult meet();
  /// What all stages have of an operand together, each its own terms of a sum; none if that is zero.
  llvm::FailureOr<std::optional<Fact>> sumOf(unsigned operand);
  llvm::LogicalResult meetInSum(llvm::SmallVectorImpl<Fact> &results);
  /// A round of messages of which a sum is made.
  llvm::LogicalResult meetInMessages(llvm::SmallVectorImpl<Fact> &results);
  /// An operand that may leave the stage.
  llvm::FailureOr<Fact> leaving(unsigned stage, unsigned operand);

  std::optional<unsigned> axis; ///< along which programs differ
  std::vector<Stage> stages;
  struct Message {
    mlir::Type type; ///< of the sender's tensor
    Fact fact;
  };
  /// By channel, sender and receiver: what is under way.
  std::map<std::tuple<int64_t, unsigned, unsigned>, std::deque<Message>> messages;
};

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_STAGES_H
