//===- Flags.cpp - the flags of `meshwright compile` --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Options.h"
#include "meshwright/StagedPass.h"
#include "meshwright/Strategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace meshwright {

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessStatesOnHost(const CompileOptions &o) {
  return is_contained(split(o.offload, ','), "optimizer")
             ? ""
             : "it applies to --offload optimizer, which is not given";
}

static std::string unlessOnlyBudget(const CompileOptions &o) {
  return StringRef(o.remat).starts_with("auto:")
             ? "--remat " + o.remat + " names the bytes already; write --remat auto, or leave it out"
             : "";
}

/// IR has its mesh, and what asks for nothing may be said of every mesh.
static std::string onOneRank(const CompileOptions &o, bool asksForNothing) {
  if (asksForNothing || StringRef(o.model).ends_with(".mlir"))
    return "";
  Expected<dist::Mesh> mesh = dist::parseMesh(o.mesh);
  if (!mesh) {
    consumeError(mesh.takeError()); // Others refuse it.
    return "";
  }
  return mesh->size() > 1 ? ""
                          : "one rank has no collectives; leave it out, or add e.g. --mesh data=2";
}

static std::string unlessAlgorithm(const CompileOptions &o) {
  return onOneRank(o, o.collectiveAlgorithm == "native" || o.collectiveAlgorithm == "auto");
}

static std::string unlessLooped(const CompileOptions &o) {
  return onOneRank(o, o.collectiveMatmul == "off");
}

static std::string unlessOverlap(const CompileOptions &o) {
  return onOneRank(o, o.overlap != "on");
}

//===--- what targets add ------------------------------------------------------===//

static std::vector<std::string> targetChoices() {
  std::vector<std::string> names;
  for (const auto &target : exec::getTargets())
    names.push_back(target->getName().str());
  return names;
}

static std::vector<std::string> emissions() {
  std::vector<std::string> names(std::begin(stageNames), std::end(stageNames));
  names.push_back("llvm");
  for (const auto &target : exec::getTargets())
    for (StringRef name : target->getEmissions())
      names.push_back(name.str());
  names.insert(names.end(), {"object", "exe"});
  return names;
}

/// The flags of all targets behind those of the compiler.
static std::vector<Flag> withTargets(std::vector<Flag> flags) {
  for (const auto &target : exec::getTargets())
    for (const exec::TargetFlag &flag : target->getFlags())
      flags.push_back(Flag{flag.name, flag.value, flag.help, OfTarget{target.get(), flag.initial},
                           flag.choices}
                          .until(flag.planned ? "exec" : nullptr));
  return flags;
}

//===--- the table -------------------------------------------------------------===//

ArrayRef<Flag> compileFlags() {
  using O = CompileOptions;
  static const std::vector<Flag> flags = withTargets({
      Flag{"output", "FILE",
           "executable to write, or the file of --emit (default: the model's name, of a "
           "config.json its folder's)",
           &O::output}
          .file(FileUse::Output),
      Flag{"recipe", "FILE.toml", "read flags from a file; those on the command line win",
           &O::recipe}
          .file(FileUse::Input),
      {"target", "T", "what the program runs on", &O::target, targetChoices()},
      {"mesh", "AXES",
       "device mesh, outermost axis first, e.g. pipe=2,data=4,tensor=2; absent: one rank",
       &O::mesh},
      {"batch", "B",
       "sequences per optimizer step over all ranks (default: one per data rank and microbatch)",
       &O::batch},
      {"seq", "S", "tokens per sequence (default: the model's positions, at most 1024)",
       &O::sequence},
      {"microbatches", "M",
       "parts in which a batch is computed one after the other; their gradients are added",
       &O::microbatches},
      Flag{"zero", "STAGE",
           "ZeRO: what is divided among data ranks: 0 nothing, 1 optimizer states, 2 gradients "
           "too, 3 parameters too (FSDP)",
           &O::zero}
          .until("dist"),
      Flag{"sequence-parallel", "",
           "divide sequences among tensor ranks where there is no matrix product (Megatron's)",
           &O::sequenceParallel}
          .until("dist"),
      Flag{"tensor-2d", "", "two-dimensional tensor parallelism over tensor=RxC", &O::tensor2d}
          .until("dist"),
      Flag{"data-sync",
           "HOW",
           "who adds gradients and updates parameters: all ranks (all-reduce) or the first data "
           "rank (parameter-server)",
           &O::dataSync,
           {"all-reduce", "parameter-server"}}
          .until("dist"),
      Flag{"schedule", "NAME",
           "pipeline schedule: naive, gpipe, 1f1b, interleaved:V, zb-h1, zb-h2, zb-v", &O::schedule}
          .until("schedule"),
      Flag{"cuts", "L1,L2,..",
           "layers at which the pipeline is cut: the first layer of each chunk but the first",
           &O::cuts}
          .until("step"),
      Flag{"remat", "POLICY",
           "what the backward computes again: none, full, every:K, sqrt, selective, price:P, "
           "every:K+price:P (P FLOPs for a byte), between commas one for each pipeline stage, or "
           "auto[:BYTES], the least work that fits",
           &O::remat}
          .until("stages"),
      Flag{"memory-limit", "BYTES",
           "bytes a rank may use, e.g. 70GiB; also the budget of --remat auto", &O::memoryLimit}
          .unless(unlessOnlyBudget),
      Flag{"offload", "WHAT",
           "what the host's memory keeps, between commas: optimizer (its states, which pass "
           "through the device part by part), activations (what layers keep for their backward)",
           &O::offload}
          .until("exec"),
      Flag{"offload-buffer", "BYTES",
           "largest part of an optimizer state that is copied at once; the device has room for "
           "three",
           &O::offloadBuffer}
          .unless(unlessStatesOnHost)
          .until("exec"),
      Flag{"collective-algorithm",
           "NAME",
           "algorithm of all-reduces: native (the runtime's), sequential, ring, parallel, "
           "doubling, halving-doubling, or auto (the fastest by the alpha-beta model)",
           &O::collectiveAlgorithm,
           {"native", "sequential", "ring", "parallel", "doubling", "halving-doubling", "auto"}}
          .unless(unlessAlgorithm)
          .until("schedule"),
      Flag{"collective-matmul",
           "HOW",
           "on: matrix products with a gathered operand or a scattered result are computed part "
           "by part, each while the next is communicated",
           &O::collectiveMatmul,
           {"on", "off"}}
          .unless(unlessLooped)
          .until("schedule"),
      Flag{"overlap",
           "HOW",
           "on: collectives run while the program computes, which takes two places for what a "
           "layer gathers or reduces; auto: on where no core that computes has to communicate",
           &O::overlap,
           {"auto", "on", "off"}}
          .unless(unlessOverlap)
          .until("exec"),
      Flag{"replay", "", "make an executable whose --dump writes a step for `meshwright replay`",
           &O::replay}
          .until("exec"),
      {"precision",
       "TYPE",
       "type of weights and activations: f32, or bf16 or fp16 with f32 copies of the weights",
       &O::precision,
       {"f32", "bf16", "fp16"}},
      {"grad-dtype",
       "TYPE",
       "type that parameters' gradients are summed in: f32, or bf16 with --precision bf16",
       &O::gradDtype,
       {"f32", "bf16"}},
      {"optimizer", "NAME", "sgd or adamw", &O::optimizer, {"sgd", "adamw"}},
      Flag{"dropout", "P",
           "probability for all of the model's dropouts (default: what the config says)",
           &O::dropout}
          .until("train"),
      {"emit", "STAGE",
       "stop at train, step, dist, local, stages, schedule, exec, llvm, object, or what only a "
       "target has; exe goes all the way",
       &O::emit, emissions()},
      Flag{"dump-ir", "DIR", "write the IR after each pass into numbered files", &O::dumpIr}.file(
          FileUse::OutputFolder, "[0-9]*-*.mlir"),
      Flag{"explain-sharding", "NAME",
           "say which seed put each axis on this parameter or input, and what it competed with",
           &O::explainSharding}
          .until("dist"),
      Flag{"report", "DIR", "write the plan as a page (index.html), data (report.json) and pictures",
           &O::report}
          .file(FileUse::OutputFolder, "report.json trace.json index.html *.svg"),
      {"assert", "COND",
       "fail unless the plan satisfies e.g. 'peak<=70GiB'; quantities: peak, device, host, "
       "parameter, gradient, optimizer, activation, temporary, workspace, input, output, "
       "communication, communication[AXES], flops, recomputed_flops, collectives, sums with +; "
       "may be repeated",
       &O::assertions},
  });
  return flags;
}

} // namespace meshwright
