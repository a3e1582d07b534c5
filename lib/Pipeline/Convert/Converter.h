//===- Converter.h - settings to flags ----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each system has a function, which reads the keys that decide layout, batch and rates,
// and a table of all other keys that it knows. What neither reads is reported as not
// understood, so that no key of a file is dropped silently.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CONVERT_CONVERTER_H
#define MESHWRIGHT_LIB_PIPELINE_CONVERT_CONVERTER_H

#include "Settings.h"
#include "meshwright/OptionValues.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <set>

namespace meshwright::convert {

/// What becomes of a key that does not become a flag.
enum class Fate {
  Nearest,   ///< nothing is equivalent; what comes nearest, or what is left out
  Undecided, ///< the file leaves it to the program or to the command line
  Model,     ///< it describes MODEL
  Unknown,   ///< not understood
  NoEffect   ///< it changes neither the program nor what it computes
};

struct Remark {
  Fate fate;
  Setting setting;
  std::string why;
};

/// Keys that need no code, separated by blanks; "profiling.*" is all keys of a table.
struct Rule {
  enum Use {
    Run,      ///< `text` is the executable's flag of the same meaning and unit
    Nearest,  ///< `text` says what comes nearest; values that switch the key off have no effect
    Describe, ///< part of MODEL
    Ignore    ///< without effect; `text` says why
  };
  llvm::StringLiteral keys;
  Use use;
  llvm::StringLiteral text;
};

/// Devices along each axis, and how a replica's part of the batch is computed.
struct Layout {
  int64_t pipe = 1, replica = 1, data = 1, expert = 1, context = 1, tensor = 1;
  int64_t microbatchSize = 0; ///< sequences of a rank; 0: not decided
  int64_t microbatches = 1;   ///< of a data-parallel rank, for an optimizer step

  int64_t dataParallel() const { return replica * data; }
};

/// A learning-rate schedule, as steps of the run.
struct RateSchedule {
  std::string shape = "constant"; ///< constant, linear, cosine, 1-sqrt, exponential or inverse-sqrt
  int64_t steps = 0, warmup = 0;
  int64_t decay = 0; ///< steps at the end over which the rate falls; those after the warm-up: no stable phase
  double least = 0;
};

struct OptimizerNumbers {
  std::string name = "adamw"; ///< a value of --optimizer
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0;
  std::optional<double> decay = 0.0; ///< nothing: not decided
};

/// Converts one file. Errors are kept, the first one counts, so that code reads on.
class Converter {
public:
  Converter(llvm::StringRef file, Settings settings, int64_t devices)
      : file(file), settings(std::move(settings)), devices(devices) {}

  /// The number of devices that the command line gives; 0: none.
  int64_t givenDevices() const { return devices; }

  //===--- reading: each key that is read counts as used ---------------------------===//

  bool has(llvm::StringRef key) const { return find(key); }
  bool hasTable(llvm::StringRef name) const;
  const Setting *use(llvm::StringRef key);
  int64_t count(llvm::StringRef key, int64_t otherwise, int64_t least = 1);
  double number(llvm::StringRef key, double otherwise, double least = 0);
  bool isOn(llvm::StringRef key, bool otherwise = false);
  std::string text(llvm::StringRef key, llvm::StringRef otherwise = "");
  /// The meaning of a text that is one of `meanings`, each "theirs=ours".
  std::string choice(llvm::StringRef key, llvm::StringRef otherwise, llvm::ArrayRef<llvm::StringLiteral> meanings);

  //===--- writing ------------------------------------------------------------------===//

  void flag(llvm::StringRef name, const llvm::Twine &value) { flags.push_back({name.str(), value.str()}); }
  void run(llvm::StringRef name, const llvm::Twine &value) { runFlags.push_back({name.str(), value.str()}); }
  void runNumber(llvm::StringRef name, double value) { run(name, numberText(value)); }
  void remark(Fate fate, llvm::StringRef key, const llvm::Twine &why);

  /// --mesh, --batch and --microbatches; experts must divide data-parallel ranks.
  void writeLayout(const Layout &layout, llvm::StringRef expertKey);
  /// --zero, if there are ranks to shard among; `key` decides the level.
  void writeZero(int64_t level, const Layout &layout, llvm::StringRef key);
  /// Lists those of `keys` that are given: on one device along `axis` they have no effect.
  void remarkUndivided(int64_t size, llvm::StringRef axis, llvm::ArrayRef<llvm::StringRef> keys);
  /// The devices along `data`, where a system gives all devices and the other axes.
  int64_t dataDevices(const Layout &others, int64_t all, llvm::StringRef remedy);
  void writeSchedule(const RateSchedule &schedule);
  /// --optimizer, and of the hyperparameters those that it has.
  void writeOptimizer(const OptimizerNumbers &numbers);
  /// Lets vectors decay as matrices do, for systems whose weight decay is that of all parameters.
  void writeDecayOfAll(const OptimizerNumbers &numbers);
  void writeRemat(llvm::StringRef policy) { if (policy != "none") flag("remat", policy); }

  /// Disposes of the keys that nothing has read.
  void apply(llvm::ArrayRef<Rule> rules);

  /// An error about the value of `key`, or about the file if it is empty.
  void fail(llvm::StringRef key, const llvm::Twine &why);
  bool failed() const { return !error.empty(); }

  static std::string numberText(double value);
  /// a * b; fails beyond what any cluster has.
  int64_t times(int64_t a, int64_t b);

  std::vector<std::pair<std::string, std::string>> flags, runFlags;
  std::vector<Remark> remarks;
  /// A Hugging Face configuration, if the settings describe the model.
  std::optional<llvm::json::Object> model;
  std::string error;

private:
  const Setting *find(llvm::StringRef key) const;

  std::string file;
  Settings settings;
  int64_t devices;
  std::set<std::string> used;
};

void convertTorchtitan(Converter &c);
void convertMegatron(Converter &c);
void convertDeepSpeed(Converter &c);
void convertNanotron(Converter &c);

} // namespace meshwright::convert

#endif // MESHWRIGHT_LIB_PIPELINE_CONVERT_CONVERTER_H
