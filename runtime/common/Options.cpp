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
#include "meshwright/runtime/FileArguments.h"

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

/// A text that names a file or a folder.
struct File {
  Text path;
  FileUse use;
  const char *writes = ""; ///< as of FileArgument
};
constexpr File input(Text path) { return {path, FileUse::Input}; }
constexpr File output(Text path) { return {path, FileUse::Output}; }
constexpr File outputFolder(Text path, const char *writes) {
  return {path, FileUse::OutputFolder, writes};
}

struct Flag {
  const char *name;
  const char *value; ///< how the help writes the value
  std::variant<Text, Integer, Real, Switch, File> member;
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

static constexpr Flag flags[] = {
    {"--data", "FILE", input(&Options::data), "token file to train on; may have a llm.c header"},
    {"--tokens", "TYPE", &Options::tokens, "type of the tokens in --data and --eval-data", 0, 0,
     "u8|u16|u32"},
    {"--steps", "N", &Options::steps, "optimizer steps, counted from the run's first start", 0},
    {"--lr", "RATE", &Options::lr, "learning rate", 0},
    {"--min-lr", "RATE", &Options::minLr, "where cosine and linear end", 0},
    {"--warmup", "W", &Options::warmup, "steps t < W run at lr * (t + 1) / W", 0},
    {"--lr-schedule", "NAME", &Options::lrSchedule, "course of the rate after the warm-up", 0, 0,
     "constant|cosine|linear"},
    {"--seed", "N", &Options::seed, "of initial weights, --shuffle and dropout", 0, largestSeed},
    {"--shuffle", nullptr, &Options::shuffle,
     "visit the sequences in a new random order each epoch"},
    {"--beta1", "X", &Options::beta1, "AdamW's decay of the first moment", 0, oneBelow},
    {"--beta2", "X", &Options::beta2, "AdamW's decay of the second moment", 0, oneBelow},
    {"--eps", "X", &Options::eps, "added to AdamW's root", 0},
    {"--weight-decay", "X", &Options::weightDecay, "of parameters with two or more dimensions", 0},
    {"--grad-clip", "X", &Options::gradClip, "largest global gradient norm; 0: no clipping", 0},
    {"--initial-loss-scale", "X", &Options::initialLossScale,
     "fp16: what the loss is first multiplied by", 1},
    {"--min-loss-scale", "X", &Options::minLossScale, "fp16: the least it may become", 1},
    {"--loss-scale-window", "N", &Options::lossScaleWindow,
     "fp16: good steps in a row that double it", 1},
    {"--hysteresis", "N", &Options::hysteresis, "fp16: overflows before it is halved", 1},
    {"--init", "FILE", input(&Options::init),
     "safetensors file, or index of several, to take the initial weights from"},
    {"--save", "DIR", outputFolder(&Options::save, "latest step-*"),
     "write checkpoints here, the last at the end"},
    {"--save-every", "K", &Options::saveEvery, "and after every K steps; 0: only at the end", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--save"},
    {"--resume", "DIR", File{&Options::resume, FileUse::InputFolder},
     "go on from DIR/latest, or from one checkpoint"},
    {"--metrics", "FILE", output(&Options::metrics), "write one JSON object per step"},
    {"--eval-data", "FILE", input(&Options::evalData),
     "token file to evaluate on (first 64 batches)"},
    {"--eval-every", "K", &Options::evalEvery, "evaluate after every K steps and at the end", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--eval-data"},
    {"--trace", "FILE", output(&Options::trace),
     "write what each rank did, for Perfetto or chrome://tracing; at most 1048576 spans a rank"},
    {"--trace-from", "K", &Options::traceFrom, "of the steps from step K on", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--trace"},
    {"--trace-steps", "N", &Options::traceSteps, "of N steps; 0: of all", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--trace"},
    {"--dump", "DIR", outputFolder(&Options::dump, "rank-* program.mlir"),
     "write all that one step reads and computes, for `meshwright replay DIR`"},
    {"--dump-step", "K", &Options::dumpStep, "of step K", 0,
     std::numeric_limits<double>::infinity(), nullptr, "--dump"},
    {"--cuda-graphs", "MODE", &Options::cudaGraphs,
     "run the program on a GPU as a CUDA graph; auto: where it can be captured and has no messages, "
     "as pipelines do",
     0, 0, "on|off|auto"},
    {"--tune", "FILE", output(&Options::tune),
     "GPUs: use the fastest algorithms for products and attention, from FILE or timed now and written there"},
    {"--ranks", "N", &Options::ranks, "run N ranks as threads of this process", 1},
};

/// Whether each flag whose value is a file or a folder says how the run uses it.
static constexpr bool knowsFiles() {
  for (const Flag &flag : flags) {
    std::string_view value = flag.value ? flag.value : "";
    if ((value == "FILE" || value == "DIR") != std::holds_alternative<File>(flag.member))
      return false;
  }
  return true;
}
static_assert(knowsFiles(), "a flag of a FILE or a DIR says whether it is read or written");

static const char *footer =
    "Environment: OMP_NUM_THREADS (threads per rank), MESHWRIGHT_TIMEOUT (seconds a rank waits for "
    "others,\n300). Under mpirun or srun --mpi the ranks are MPI processes; with RANK, WORLD_SIZE, "
    "MASTER_ADDR and MASTER_PORT\nset they connect by TCP, and so do the tasks of a plain srun "
    "with "
    "MASTER_ADDR set. SIGUSR1 makes every\nrank of a process say what it waits for.";

/// The text that `flag` sets, of a file too; null if it sets none.
static Text textOf(const Flag &flag) {
  if (auto file = std::get_if<File>(&flag.member))
    return file->path;
  auto text = std::get_if<Text>(&flag.member);
  return text ? *text : nullptr;
}

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
    option = app.add_option(flag.name, options.*textOf(flag), flag.help)
                 ->capture_default_str();
  option->type_name(flag.choices ? flag.choices : flag.value);
}

static void checkFlag(const Flag &flag, const Options &options) {
  if (flag.needs && !options.given(flag.needs))
    fail(flag.name, " needs ", flag.needs, ": give both");
  if (Text member = textOf(flag)) {
    const std::string &value = options.*member;
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

/// Whether `file` is one of the checkpoint that --resume `folder` reads.
static bool isInCheckpoint(const std::string &folder, const std::string &file) {
  std::error_code error;
  std::string latest = folder + "/latest";
  bool hasLatest = std::filesystem::exists(latest, error);
  return std::filesystem::is_regular_file(file, error) &&
         isSameFile(placeOf(file).parent_path().string(), hasLatest ? latest : folder);
}

/// Refuses to write what is read or written already, the executable itself too.
static void checkFiles(const Options &options) {
  std::vector<FileArgument> files = {{"the executable", "/proc/self/exe", FileUse::Input}};
  for (const Flag &flag : flags)
    if (auto file = std::get_if<File>(&flag.member); file && options.given(flag.name))
      files.push_back({flag.name, options.*file->path, file->use, file->writes});
  if (std::string clash = clashOf(files); !clash.empty())
    fail(clash);
  for (const FileArgument &folder : files)
    for (const FileArgument &file : files)
      if (folder.use == FileUse::InputFolder && file.use == FileUse::Output &&
          isInCheckpoint(folder.path, file.path))
        fail(file.text(), " would overwrite a file of ", folder.text(), ": name another file for ",
             file.flag);
}

bool meshwright::parseOptions(int argc, const char *const *argv, Options &options, bool printHelp) {
  CLI::App app("Trains the model this executable was compiled from.", argc ? argv[0] : "EXE");
  app.footer(footer);
  app.get_formatter()->column_width(34);
  for (const Flag &flag : flags)
    addFlag(app, flag, options);
  app.get_option("--data")->required();
  app.get_option("--steps")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    if (printHelp)
      fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError &error) {
    fail(error.what(), ": see --help for the flags and what they take");
  }
  for (const Flag &flag : flags)
    if (app.get_option(flag.name)->count())
      options.givenFlags.insert(flag.name);
  for (const Flag &flag : flags)
    if (options.given(flag.name))
      checkFlag(flag, options);
  checkFiles(options);
  if (options.given("--init") && options.given("--resume"))
    fail("--init and --resume are both given: a resumed run takes its weights from the checkpoint; "
         "drop one of them");
  if (options.minLr > options.lr && options.lrSchedule != "constant")
    fail("--min-lr ", options.minLr, " is larger than --lr ", options.lr,
         ": the schedules go down from --lr to --min-lr");
  return true;
}
