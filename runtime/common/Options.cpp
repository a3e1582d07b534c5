//===- Options.cpp - the executable's command line ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// One table says everything about each flag; the parser and the help are made
// from it.
//
//===----------------------------------------------------------------------===//
#include "common/Options.h"

#include "common/Error.h"
#include "meshwright/Suggestion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <variant>

using namespace meshwright;

namespace {
using Text = std::string Options::*;
using Integer = int64_t Options::*;
using Real = double Options::*;
using Switch = bool Options::*;

struct Flag {
  const char *name;
  const char *value; ///< how the help writes the value
  std::variant<Text, Integer, Real, Switch> member;
  const char *help;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  const char *choices = nullptr; ///< separated by '|'
  const char *needs = nullptr;   ///< a flag that must be given too
};
} // namespace

// The programs compute with 32-bit floats; this is the largest one below 1.
static constexpr double oneBelow = 1.0 - 0x1p-24;
// The key of dropout has 32 bits for the seed and 32 for the step.
static constexpr double largestSeed = 4294967295.0;

static const Flag flags[] = {
    {"--data", "FILE", &Options::data,
     "tokens to train on: plain little-endian ones, or a llm.c file"},
    {"--tokens", "TYPE", &Options::tokens, "type of the tokens in --data and --eval-data", 0, 0,
     "u8|u16|u32"},
    {"--steps", "N", &Options::steps, "optimizer steps in all, those before --resume included", 0},
    {"--lr", "RATE", &Options::lr, "learning rate", 0},
    {"--min-lr", "RATE", &Options::minLr, "rate at which cosine and linear end", 0},
    {"--warmup", "W", &Options::warmup, "steps t < W run at lr * (t + 1) / W", 0},
    {"--lr-schedule", "NAME", &Options::lrSchedule, "how the rate goes on after the warm-up", 0, 0,
     "constant|cosine|linear"},
    {"--seed", "N", &Options::seed, "seed of initial weights, --shuffle and dropout", 0,
     largestSeed},
    {"--shuffle", nullptr, &Options::shuffle,
     "visit the sequences in a new random order each epoch"},
    {"--beta1", "X", &Options::beta1, "AdamW's decay of the first moment", 0, oneBelow},
    {"--beta2", "X", &Options::beta2, "AdamW's decay of the second moment", 0, oneBelow},
    {"--eps", "X", &Options::eps, "added to AdamW's root", 0},
    {"--weight-decay", "X", &Options::weightDecay,
     "AdamW's decay of parameters with two or more dimensions", 0},
    {"--grad-clip", "X", &Options::gradClip, "largest global gradient norm; 0: no clipping", 0},
    {"--initial-loss-scale", "X", &Options::initialLossScale,
     "fp16: factor of the loss at the start", 1},
    {"--min-loss-scale", "X", &Options::minLossScale, "fp16: least factor of the loss", 1},
    {"--loss-scale-window", "N", &Options::lossScaleWindow,
     "fp16: good steps in a row after which the factor doubles", 1},
    {"--hysteresis", "N", &Options::hysteresis, "fp16: overflows after which the factor is halved",
     1},
    {"--init", "FILE", &Options::init,
     "initial weights: a safetensors file, or the index of several"},
    {"--save", "DIR", &Options::save,
     "write checkpoints into this folder, one at the end of the run"},
    {"--save-every", "K", &Options::saveEvery,
     "also write one after every K steps; 0: only at the end", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--save"},
    {"--resume", "DIR", &Options::resume,
     "go on from the latest checkpoint in DIR, or from the checkpoint DIR"},
    {"--metrics", "FILE", &Options::metrics,
     "write a line of JSON for each step: loss, rate, time and so on"},
    {"--eval-data", "FILE", &Options::evalData,
     "tokens to evaluate on, all of them, at the end of the run"},
    {"--eval-every", "K", &Options::evalEvery,
     "also evaluate after every K steps; 0: only at the end", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--eval-data"},
    {"--eval-batches", "N", &Options::evalBatches,
     "evaluate on the first N batches at most; 0: on all", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--eval-data"},
    {"--trace", "FILE", &Options::trace,
     "write what each rank did, for Perfetto or chrome://tracing; at most 1048576 spans a rank"},
    {"--trace-from", "K", &Options::traceFrom, "trace from step K on (the first step is 0)", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--trace"},
    {"--trace-steps", "N", &Options::traceSteps, "trace N steps; 0: all", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--trace"},
    {"--dump", "DIR", &Options::dump,
     "write all that one step reads and computes, for `meshwright replay DIR`"},
    {"--dump-step", "K", &Options::dumpStep, "dump step K (the first step is 0)", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--dump"},
    {"--cuda-graphs", "MODE", &Options::cudaGraphs,
     "run the program on a GPU as a CUDA graph; auto: where it can be captured and has no "
     "messages, "
     "as pipelines do",
     0, 0, "on|off|auto"},
    {"--tune", "FILE", &Options::tune,
     "GPUs: use the fastest algorithms of products and attention. FILE has them, or they are timed "
     "now and written there"},
    {"--ranks", "N", &Options::ranks, "run N ranks as threads of this process", 1},
};

static const char *footer =
    "Environment: OMP_NUM_THREADS (threads per rank), MESHWRIGHT_TIMEOUT (seconds a rank waits for "
    "others,\n300). Under mpirun or srun --mpi the ranks are MPI processes; with RANK, WORLD_SIZE, "
    "MASTER_ADDR and MASTER_PORT\nset they connect by TCP, and so do the tasks of a plain srun "
    "with "
    "MASTER_ADDR set. SIGUSR1 makes every\nrank of a process say what it waits for.";

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

/// The whole number `value`, as plain decimal digits.
static int64_t parseInteger(const Flag &flag, const std::string &value) {
  int64_t number = 0;
  const char *end = value.data() + value.size();
  auto [stop, error] = std::from_chars(value.data(), end, number);
  if (stop != end || error == std::errc::invalid_argument)
    fail(flag.name, " is \"", value, "\": it must be a whole number");
  if (error == std::errc::result_out_of_range)
    fail(flag.name, " is ", value, ": it must fit into 64 bits, at most ",
         std::numeric_limits<int64_t>::max());
  return number;
}

/// The number `value`, which the program will hold as a 32-bit float.
static double parseReal(const Flag &flag, const std::string &value) {
  double number = 0;
  const char *end = value.data() + value.size();
  auto [stop, error] = std::from_chars(value.data(), end, number);
  if (stop != end || error == std::errc::invalid_argument || std::isnan(number))
    fail(flag.name, " is \"", value, "\": it must be a number");
  if (error == std::errc::result_out_of_range || std::isinf(float(number)) ||
      (number != 0 && float(number) == 0))
    fail(flag.name, " is ", value,
         ": it must be a number that a 32-bit float holds, 0 or from 1.4e-45 to 3.4e38");
  return number;
}

static void addFlag(CLI::App &app, const Flag &flag, Options &options) {
  auto add = [&](auto parse, auto member) {
    return app.add_option_function<std::string>(
        flag.name,
        [=, &flag, &options](const std::string &value) { options.*member = parse(flag, value); },
        flag.help);
  };
  if (auto member = std::get_if<Switch>(&flag.member)) {
    app.add_flag(flag.name, options.*(*member), flag.help);
    return;
  }
  CLI::Option *option;
  if (auto member = std::get_if<Integer>(&flag.member))
    option = add(parseInteger, *member)->default_str(text(options.*(*member)));
  else if (auto member = std::get_if<Real>(&flag.member))
    option = add(parseReal, *member)->default_str(text(options.*(*member)));
  else
    option = app.add_option(flag.name, options.*std::get<Text>(flag.member), flag.help)
                 ->capture_default_str();
  option->type_name(flag.choices ? flag.choices : flag.value);
}

static void checkFlag(const Flag &flag, const Options &options) {
  if (flag.needs && !options.given(flag.needs))
    fail(flag.name, " needs ", flag.needs, ": give both");
  if (auto member = std::get_if<Text>(&flag.member)) {
    const std::string &value = options.*(*member);
    if (value.empty())
      fail(flag.name, " is empty: give ", flag.value);
    if (!flag.choices)
      return;
    std::vector<std::string> choices = split(flag.choices, '|');
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      fail(flag.name, " ", value, ": it is one of ", flag.choices);
    return;
  }
  auto check = [&](auto value) {
    if (double(value) >= flag.least && double(value) <= flag.most)
      return;
    if (flag.most == oneBelow)
      fail(flag.name, " is ", value, ": it must be at least 0 and less than 1 (in 32 bits)");
    if (std::isinf(flag.most))
      fail(flag.name, " is ", value, ": it must be at least ", flag.least);
    fail(flag.name, " is ", value, ": it must be from ", flag.least, " to ", int64_t(flag.most));
  };
  if (auto member = std::get_if<Integer>(&flag.member))
    check(options.*(*member));
  else if (auto member = std::get_if<Real>(&flag.member))
    check(options.*(*member));
}

[[noreturn]] static void failUnknown(const std::string &word) {
  std::string name = word.substr(0, word.find('='));
  if (name.rfind("--", 0) != 0)
    fail("'", word,
         "' belongs to no flag: files are named by flags, such as --data FILE; see --help");
  std::vector<std::string> names;
  for (const Flag &flag : flags)
    names.push_back(flag.name + 2);
  std::string near = nearestName(name.substr(2), names);
  if (name == "--learning-rate")
    near = "lr";
  fail("there is no flag ", name, near.empty() ? "" : "; did you mean --" + near + "?",
       near.empty() ? "; see" : " See",
       " --help for the flags of this executable, and 'meshwright compile --help' for what is "
       "chosen "
       "when a model is compiled");
}

bool meshwright::parseOptions(int argc, const char *const *argv, Options &options, bool printHelp,
                              const std::function<std::string()> &version) {
  CLI::App app("Trains the model this executable was compiled from.", argc ? argv[0] : "EXE");
  app.footer(footer);
  app.get_formatter()->column_width(34);
  for (const Flag &flag : flags)
    addFlag(app, flag, options);
  if (version)
    app.set_version_flag("--version", version, "print what this executable was made from");
  app.get_option("--data")->required();
  app.get_option("--steps")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    if (printHelp)
      fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::CallForVersion &) {
    if (printHelp)
      puts(app.version().c_str());
    return false;
  } catch (const CLI::ParseError &error) {
    // A misspelt flag first: that another is missing may follow from it.
    if (std::vector<std::string> unknown = app.remaining(); !unknown.empty())
      failUnknown(unknown.front());
    fail(plainly(error.what()), ": see --help for the flags and what they take");
  }
  for (const Flag &flag : flags)
    if (app.get_option(flag.name)->count())
      options.givenFlags.insert(flag.name);
  for (const Flag &flag : flags)
    if (options.given(flag.name))
      checkFlag(flag, options);
  if (options.given("--init") && options.given("--resume"))
    fail("--init and --resume are both given: a resumed run takes its weights from the checkpoint; "
         "drop one of them");
  if (options.minLr > options.lr && options.lrSchedule != "constant")
    fail("--min-lr ", options.minLr, " is larger than --lr ", options.lr,
         ": the schedules go down from --lr to --min-lr");
  return true;
}
