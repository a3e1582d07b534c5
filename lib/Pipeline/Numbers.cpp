//===- Numbers.cpp - what changes the numbers that a program computes ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Numbers.h"

#include "Train/Train.h"
#include "meshwright/Pipeline.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using llvm::Expected;

namespace meshwright {

CompileOptions sequentialOptions(const CompileOptions &options) {
  CompileOptions one;
  one.model = options.model;
  one.layers = options.layers;
  one.batch = options.batch ? options.batch : options.leastBatch();
  if (llvm::sys::path::extension(options.model) == ".mlir")
    one.batch = options.batch;
  one.sequence = options.sequence;
  one.sourceSequence = options.sourceSequence;
  one.microbatches = options.microbatches;
  one.batchRamp = options.batchRamp;
  one.dropout = options.dropout;
  one.packed = options.packed;
  one.maskedShare = options.maskedShare;
  one.maskToken = options.maskToken;
  one.loss = options.loss;
  one.dpoBeta = options.dpoBeta;
  one.expertCapacity = options.expertCapacity;
  one.auxLoss = options.auxLoss;
  one.auxLossCoef = options.auxLossCoef;
  one.auxScope = options.auxScope;
  one.auxCountingPass = options.auxCountingPass;
  one.zLoss = options.zLoss;
  one.routerBiasRate = options.routerBiasRate;
  one.optimizer = options.optimizer;
  one.optimizerGroups = options.optimizerGroups;
  one.muonScale = options.muonScale;
  one.muonCoefficients = options.muonCoefficients;
  one.mupBase = options.mupBase;
  one.freeze = options.freeze;
  one.lora = options.lora;
  one.frozenWeights = options.frozenWeights;
  one.ema = options.ema;
  one.evalEma = options.evalEma;
  one.gradCompression = options.compressionInBlocks();
  one.overlap = Overlap::off;
  return one;
}

/// Flags that change nothing but where, when and how often something is computed, and what is written. Every other flag
/// changes numbers.
static bool isOfLayout(StringRef flag) {
  return llvm::is_contained(
      {"mesh",          "zero",          "sequence-parallel", "tensor-2d",        "context-parallel", "context-balance",
       "data-sync",     "schedule",      "cuts",              "overlap",          "collective-matmul", "collective-algorithm",
       "expert-buffer", "expert-parts",  "redundant-experts", "aux-counting-pass", "remat",           "residuals",        "loss-parts",
       "memory-limit",  "offload",       "offload-buffer",    "masters",          "cluster",          "plan",
       "devices",       "output",        "recipe",            "emit",             "dump-ir",          "explain-sharding",
       "certify",       "report",        "assert",            "replay",           "target",
       "batch-ramp"},
      flag);
}

/// Flags that the hash of the model is of.
static bool isOfModel(StringRef flag) {
  return llvm::is_contained({"batch", "seq", "source-seq", "microbatches", "dropout", "packed", "mlm", "mask-id", "loss", "dpo-beta",
                             "expert-capacity", "aux-loss", "aux-loss-coef", "z-loss", "router-bias-rate", "mup-base"},
                            flag);
}

/// The model and its loss as text: of a configuration for one sequence on one rank, so that no mesh changes it.
static Expected<std::string> modelText(const CompileOptions &options, ModuleOp compiled) {
  CompileOptions one = sequentialOptions(options);
  if (llvm::sys::path::extension(options.model) != ".mlir") {
    one.microbatches = 1;
    one.batchRamp = false; // Which batches a step has is said when it runs.
    one.batch = one.leastBatch();
    one.sequence = train::moduleSize(compiled, train::sequenceAttr).value_or(0);
  } else {
    one.target = options.target; // IR past phase schedule is written for one.
  }
  auto module = loadModel(one, *compiled.getContext(), llvm::nulls());
  if (!module)
    return module.takeError();
  // Keys of the configuration that change nothing are not in the ops.
  (**module)->removeAttr(train::configAttr);
  std::string text;
  llvm::raw_string_ostream os(text);
  (**module)->print(os);
  return text;
}

Expected<plan::List<plan::Setting>> numbersOf(const CompileOptions &options, ModuleOp compiled) {
  Expected<std::string> text = modelText(options, compiled);
  if (!text)
    return text.takeError();
  plan::List<plan::Setting> numbers;
  numbers.push_back({"model", llvm::formatv("{0:x-16}", llvm::xxh3_64bits(*text)).str()});
  for (auto [name, attribute] : {std::pair("batch", train::batchAttr), {"seq", train::sequenceAttr},
                                 {"source-seq", train::sourceSequenceAttr}})
    if (std::optional<int64_t> size = train::moduleSize(compiled, attribute))
      numbers.push_back({name, std::to_string(*size)});
  if (options.auxScope == AuxScope::microbatch)
    numbers.push_back({"microbatches", std::to_string(options.microbatches)});
  // Without fp8 there is no recipe, and hashes of programs that send gradients as they sum them, or store weights as they
  // compute with them, do not say so.
  auto isUnused = [&](StringRef flag) {
    return (flag == "fp8-recipe" && !options.precision.isFp8()) || (flag == "grad-compression" && !options.gradCompression) ||
           (flag == "frozen-weights" && options.frozenWeights == FrozenWeights::precision) ||
           (flag == "grad-reduce-dtype" && options.gradReduceDtype == GradientWire::asSummed);
  };
  // The number of blocks is that of this mesh.
  CompileOptions asked = options;
  asked.gradCompression = options.compressionInBlocks();
  for (const Flag &flag : compileFlags())
    if (!flag.target && !isOfLayout(flag.name) && !isOfModel(flag.name) && !isUnused(flag.name))
      if (std::string value = flag.text(asked); !value.empty())
        numbers.push_back({flag.name, value});
  return numbers;
}

} // namespace meshwright
