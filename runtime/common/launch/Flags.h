//===- Flags.h - the flags of an executable -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// One table says everything about each flag: the parser, the help, and what compares
// ranks, files and effects read it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_FLAGS_H
#define MESHWRIGHT_RUNTIME_COMMON_FLAGS_H

#include "common/launch/Options.h"
#include "meshwright/runtime/FileArguments.h"

#include <iterator>
#include <limits>
#include <variant>

namespace meshwright {

constexpr double unlimited = std::numeric_limits<double>::infinity();
// The programs compute with 32-bit floats; this is the largest one below 1.
constexpr double oneBelow = 1.0 - 0x1p-24;

/// `Flag` is the compiler's, which meshwright-interpret links too.
struct RunFlag {
  using Text = std::string Options::*;
  using Integer = int64_t Options::*;
  using Real = double Options::*;
  using Switch = bool Options::*;
  struct Hyperparameter {
    size_t number; ///< of those of the optimizer
  };
  using Texts = Options::Files Options::*; ///< of a flag that may be repeated
  /// Why the flag changes nothing in this run, and what to do; empty if it does.
  using Idle = std::string (*)(const Options &, const Plan &);

  const char *name;
  const char *value; ///< how the help writes the value
  std::variant<Text, Integer, Real, Switch, Texts, Hyperparameter> member;
  const char *help;

  double least = -unlimited, most = unlimited;
  const char *choices = nullptr; ///< separated by '|'
  const char *needs = nullptr;   ///< a flag that must be given too
  Idle missing = nullptr;        ///< why the run cannot do without, if so; null: it can
  Idle idle = nullptr;           ///< null: the flag always changes something
  bool generates = false; ///< whether --generate reads it
  bool evaluates = false; ///< whether --eval-only reads it
  bool isKept = false; ///< a resumed run that is not given it has the value of the checkpoint's run
  AcrossRanks across = AcrossRanks::Same;
  FileUse use = FileUse::None; ///< of a FILE or DIR
  const char *writes = "";     ///< as of FileArgument

  constexpr RunFlag from(double least, double most = unlimited) const {
    RunFlag flag = *this;
    flag.least = least;
    flag.most = most;
    return flag;
  }
  constexpr RunFlag oneOf(const char *choices) const {
    RunFlag flag = *this;
    flag.choices = choices;
    return flag;
  }
  constexpr RunFlag with(const char *other) const {
    RunFlag flag = *this;
    flag.needs = other;
    return flag;
  }
  constexpr RunFlag unless(Idle why) const {
    RunFlag flag = *this;
    flag.idle = why;
    return flag;
  }
  constexpr RunFlag neededBy(Idle why) const {
    RunFlag flag = *this;
    flag.missing = why;
    return flag;
  }
  constexpr RunFlag kept() const {
    RunFlag flag = *this;
    flag.isKept = true;
    return flag;
  }
  /// For --generate too.
  constexpr RunFlag generating() const {
    RunFlag flag = *this;
    flag.generates = true;
    return flag;
  }
  /// For --eval-only too.
  constexpr RunFlag evaluating() const {
    RunFlag flag = *this;
    flag.evaluates = true;
    return flag;
  }
  constexpr RunFlag onRanks(AcrossRanks across) const {
    RunFlag flag = *this;
    flag.across = across;
    return flag;
  }
  constexpr RunFlag file(FileUse use, const char *writes = "") const {
    RunFlag flag = *this;
    flag.use = use;
    flag.writes = writes;
    return flag;
  }
};

/// The flags, in the order of the help. Those of the optimizer's hyperparameters are valid as long
/// as `options`.
std::vector<RunFlag> flagTable(const Options &options);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_FLAGS_H
