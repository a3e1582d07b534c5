//===- ModelFacts.h - what is known of a model before layouts are compiled --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_MODELFACTS_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_MODELFACTS_H

#include "meshwright/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <vector>

namespace meshwright::planner {

/// FLOPs of a sequence, by what decides their rate.
struct Work {
  double products = 0; ///< dense
  double grouped = 0;  ///< products of experts
  double attention = 0;

  void add(const Work &other, double factor = 1) {
    products += factor * other.products;
    grouped += factor * other.grouped;
    attention += factor * other.attention;
  }
};

/// A chunk of consecutive layers, the last one with the head of the model.
struct Chunk {
  Work forward;
  int64_t layers = 0; ///< with attention
};

/// What is known of a model before anything is compiled for a mesh.
struct ModelFacts {
  int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
  double parameters = 0, expertParameters = 0; ///< elements; of all, and of experts' own
  double codes = 0;                            ///< of all, those of 8 bits, which no expert has
  double trained = 0, trainedExperts = 0;      ///< of these, what steps change
  int64_t experts = 0;                         ///< of a layer; 0: none
  Work forward, backward;                      ///< the backward without activation checkpointing
  /// Bytes that the layers keep of a sequence for the backward, without activation checkpointing, and where
  /// experts are divided: then the backward receives their rows again.
  double kept = 0, keptApart = 0;
  double largestCall = 0; ///< FLOPs of the head, or of all products of a layer, experts' too
  /// By their number, how the compiler cuts the layers into chunks; empty: it refuses to.
  std::map<int64_t, std::vector<Chunk>> cuts;
};

/// Reads models as the compiler does.
class ModelReader {
public:
  /// Options of a compilation, whose mesh, batch and schedule do not matter.
  ModelReader(const CompileOptions &options, mlir::MLIRContext &context);

  /// What the model says itself, with no cuts yet; an error if it cannot be imported.
  llvm::Expected<ModelFacts> read();
  /// Adds how the layers are cut into `chunks`.
  void addCut(ModelFacts &facts, int64_t chunks);

private:
  /// What a sequence has of what a batch has.
  Work ofSequence(const Work &work) const;
  /// What layers keep of a sequence where so many experts are divided; 0: not known.
  double keptApart(int64_t experts);
  /// The model after the passes from the first to `last`; null if they refuse it.
  mlir::OwningOpRef<mlir::ModuleOp> runPasses(llvm::StringRef last, int64_t chunks);

  CompileOptions options;
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> model;
};

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_MODELFACTS_H
