//===- Options.h - what a user asks of the compiler --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_OPTIONS_H
#define MESHWRIGHT_OPTIONS_H

#include "Exec/Target.h"
#include "meshwright/runtime/FileArguments.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace meshwright {

/// The values of `meshwright compile`'s flags. Counts are global unless said.
struct CompileOptions {
  std::string model;  ///< config.json, or .mlir at any floor; of a folder, the file in it
  std::string output; ///< the executable, or the file --emit writes
  std::string recipe; ///< TOML file with any of the flags below
  std::string target; ///< empty: the default target
  std::string mesh;     ///< "data=4,tensor=2", outermost first; empty: one rank
  int64_t batch = 0;    ///< sequences an optimizer step; 0: one a rank and microbatch
  int64_t sequence = 0; ///< tokens a sequence; 0: the model's positions, at most 1024
  int64_t microbatches = 1;
  int64_t layers = 0; ///< replaces the model's number of layers, no flag; 0: the model's
  int64_t zero = 0;
  bool sequenceParallel = false, tensor2d = false;
  std::string dataSync = "all-reduce";
  std::string schedule = "1f1b";
  std::string cuts;
  std::string remat = "none";
  std::string memoryLimit;
  std::string offload;                  ///< optimizer, activations or both
  std::string offloadBuffer = "32MiB"; ///< bytes of a part of one optimizer state
  std::string collectiveAlgorithm = "native", collectiveMatmul = "off";
  std::string overlap = "auto"; ///< auto: what the target prefers
  bool replay = false; ///< the executable can dump a step for `meshwright replay`
  std::string precision = "f32", gradDtype = "f32";
  std::string optimizer = "adamw";
  std::string dropout;        ///< empty: what the config says
  exec::FlagValues targetFlags; ///< those of targets that were given
  std::string emit = "exe";
  std::string dumpIr, report;
  std::vector<std::string> assertions;
  std::string explainSharding; ///< a variable or input to say the seeds of
  /// From the recipe's table [seeds]: patterns of parameters' names and shardings.
  std::vector<std::pair<std::string, std::string>> seeds;
  std::set<std::string> given;      ///< names of the flags that the user or the recipe set
  std::set<std::string> fromRecipe; ///< of these, those that only the recipe set
};

/// A flag that a target reads: its value is in CompileOptions::targetFlags.
struct OfTarget {
  const exec::Target *target;
  const char *initial;
};

/// One flag: the parser, the recipe reader and the help all read this table.
struct Flag {
  const char *name;  ///< without dashes; also the key in a recipe
  const char *value; ///< what stands for the value in help; empty for a switch
  const char *help;
  std::variant<std::string CompileOptions::*, int64_t CompileOptions::*, bool CompileOptions::*,
               std::vector<std::string> CompileOptions::*, OfTarget>
      member;
  std::vector<std::string> choices = {}; ///< empty: any value
  /// Why the flag changes nothing beside the others, and what to do; empty if it does. Null: it
  /// always does.
  std::string (*idle)(const CompileOptions &) = nullptr;
  /// From which stage on IR holds what the flag decides, so that it can change nothing; null: never.
  const char *decided = nullptr;
  FileUse use = FileUse::None; ///< of a flag whose value is a FILE or DIR
  const char *writes = "";     ///< as of FileArgument

  Flag unless(std::string (*why)(const CompileOptions &)) const {
    Flag flag = *this;
    flag.idle = why;
    return flag;
  }
  Flag until(const char *stage) const {
    Flag flag = *this;
    flag.decided = stage;
    return flag;
  }
  Flag file(FileUse as, const char *files = "") const {
    Flag flag = *this;
    flag.use = as;
    flag.writes = files;
    return flag;
  }
};

/// The flags of `meshwright compile`.
llvm::ArrayRef<Flag> compileFlags();

/// Reads `args` (after the word `compile`) and the recipe they name; flags win.
/// On `--help` returns an error of class HelpRequested holding the text.
llvm::Expected<CompileOptions> parseCompileOptions(llvm::ArrayRef<std::string> args);

/// Refuses values that are well formed but for which nothing is built in yet,
/// naming the value and what works.
llvm::Error checkSupported(const CompileOptions &options);

/// Help was asked for; not a failure.
class HelpRequested : public llvm::ErrorInfo<HelpRequested> {
public:
  explicit HelpRequested(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return {}; }
  static char ID;
  std::string text;
};

} // namespace meshwright

#endif // MESHWRIGHT_OPTIONS_H
