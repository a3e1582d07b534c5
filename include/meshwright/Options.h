//===- Options.h - what a user asks of the compiler --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_OPTIONS_H
#define MESHWRIGHT_OPTIONS_H

#include "Exec/Target.h"
#include "Train/Optimizer.h"
#include "meshwright/Cost/Cluster.h"
#include "meshwright/HelpRequested.h"
#include "meshwright/Adapters.h"
#include "meshwright/OptionValues.h"
#include "meshwright/PhasePass.h"
#include "meshwright/PipelineSchedule.h"
#include "meshwright/GradientCompression.h"
#include "meshwright/GradientWire.h"
#include "meshwright/Precision.h"
#include "meshwright/RematPolicy.h"
#include "meshwright/Strategy.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/MemorySpace.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace meshwright {

/// As far as which phase --certify proves programs.
enum class Certify { none, local, schedule };
inline Names namesOf(Certify) {
  static constexpr llvm::StringLiteral names[] = {"none", "local", "schedule"};
  return names;
}

/// The values of the flags of `meshwright compile`, as Options.def lists them, and what
/// else a command line or a recipe says. Counts are global unless a field says otherwise.
struct CompileOptions {
#define OPTION(TYPE, FIELD, INITIAL, ...) TYPE FIELD = INITIAL;
#include "meshwright/Options.def"

  std::string model;            ///< config.json, or .mlir at any floor; of a folder, the file in it
  int64_t tokensAtOnce = 0;     ///< of a sequence that the program reads, no flag; 0: all
  int64_t layers = 0;           ///< replaces the model's number of layers, no flag; 0: the model's
  /// Replaces the model's hidden size, and in proportion how many heads it has and how wide its MLP
  /// is, no flag; 0: the model's.
  int64_t width = 0;
  exec::FlagValues targetFlags; ///< those of targets that were given
  /// From the recipe's table [seeds]: patterns of parameters' names and shardings.
  std::vector<std::pair<std::string, std::string>> seeds;
  std::set<std::string> given;      ///< names of the flags that the user or the recipe set
  std::set<std::string> fromRecipe; ///< of these, those that only the recipe set

  const exec::Target &getTarget() const { return target ? *target : exec::getDefaultTarget(); }

  /// Sequences that stay together on a rank and in a microbatch: the two of a pair with --loss dpo.
  int64_t sequencesTogether() const { return loss == Loss::dpo ? 2 : 1; }
  /// The smallest batch, of which all others are multiples: one sequence, or pair, for each
  /// data-parallel rank, or block of a compressed gradient, and microbatch.
  int64_t leastBatch() const {
    int64_t parts = dist::batchParts(mesh);
    if (gradCompression && gradCompression.blocks)
      parts = std::lcm(parts, gradCompression.blocks);
    return parts * microbatches * sequencesTogether();
  }

  /// --grad-compression with its number of blocks.
  GradientCompression compressionInBlocks() const {
    GradientCompression result = gradCompression;
    if (result && !result.blocks)
      result.blocks = dist::batchParts(mesh);
    return result;
  }

  /// What limits a rank's bytes in each memory space; without text where nothing does.
  BySpace<Bytes> budgets() const {
    Bytes unlimited;
    return {{
#define MW_MEMORY_SPACE(Space, name, text, bytes, live, memory, budget, ...) budget,
#include "meshwright/runtime/MemorySpaces.def"
    }};
  }
};

/// The first memory space of which a rank needs more bytes than its budget.
inline std::optional<MemorySpace> exceeded(const BySpace<int64_t> &needed,
                                           const BySpace<Bytes> &budgets) {
  for (MemorySpace space : memorySpaces)
    if (!budgets[space].text.empty() && double(needed[space]) > budgets[space].count)
      return space;
  return std::nullopt;
}

/// One flag: the parser, the recipe reader and the help all read this table.
struct Flag {
  const char *name;  ///< without dashes; also the key in a recipe
  const char *value; ///< the word for the value in help; empty for a switch
  const char *help;
  std::vector<std::string> choices = {}; ///< empty: any value
  /// Why the flag has no effect beside the others, and a remedy; empty if it has one. Null: it
  /// always has one.
  std::string (*idle)(const CompileOptions &) = nullptr;
  /// From which phase on IR holds what the flag decides, so that it can change nothing.
  std::optional<Phase> decided = std::nullopt;
  const char *alias = ""; ///< another name of the flag, on command lines and in recipes
  /// Of a flag whose value may name a FILE that has what else the value would say: reads it.
  llvm::Expected<std::string> (*expand)(llvm::StringRef) = nullptr;
  FileUse use = FileUse::None; ///< of a flag whose value is a FILE or DIR
  const char *writes = "";     ///< as of FileArgument
  const char *without = "";     ///< the value that the flag has if none follows; empty: one must
  enum Form { Text, Integer, Switch, List } form = Text;
  bool ofPasses = false;                ///< whether passes read it
  const exec::Target *target = nullptr; ///< whose flag it is; null: the compiler's
  const char *initial = "";             ///< of a target's flag
  std::string group = "";               ///< the section of the help that lists it
  /// Sets the flag's field from text; one call for each value of a list.
  llvm::Error (*set)(const Flag &, CompileOptions &, llvm::StringRef) = nullptr;
  std::string (*get)(const Flag &, const CompileOptions &) = nullptr;

  /// As `set`; the error names the flag.
  llvm::Error read(llvm::StringRef text, CompileOptions &options) const;
  /// The value as one would write it; empty where none is set.
  std::string text(const CompileOptions &options) const { return get(*this, options); }

  /// A value follows after "=" alone.
  Flag bare(const char *value) const {
    Flag flag = *this;
    flag.without = value;
    return flag;
  }
  Flag unless(std::string (*why)(const CompileOptions &)) const {
    Flag flag = *this;
    flag.idle = why;
    return flag;
  }
  Flag called(const char *other) const {
    Flag flag = *this;
    flag.alias = other;
    return flag;
  }
  Flag expanding(llvm::Expected<std::string> (*how)(llvm::StringRef)) const {
    Flag flag = *this;
    flag.expand = how;
    return flag;
  }
  Flag until(Phase phase) const {
    Flag flag = *this;
    flag.decided = phase;
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

} // namespace meshwright

#endif // MESHWRIGHT_OPTIONS_H
