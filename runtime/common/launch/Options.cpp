//===- Options.cpp - the executable's command line ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The parser and the help are made from the table in Flags.cpp.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Options.h"

#include "common/checkpoint/AdapterFiles.h"
#include "common/checkpoint/FindCheckpoint.h"
#include "common/data/LearningRate.h"
#include "common/launch/DataFiles.h"
#include "common/launch/Flags.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "meshwright/runtime/LatestCheckpoint.h"
#include "meshwright/runtime/Suggestion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace meshwright;

Options::Options(const plan::Header &plan)
    : optimizer(plan.optimizer), trainsAdapters(plan.adapterConfig.has_value()) {
  for (const plan::Hyperparameter &number : plan.hyperparameters) {
    std::string flag = "--" + number.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    hyperparameters.push_back({number, flag, number.initial});
  }
}

double Options::hyperparameter(const std::string &name) const {
  for (const Hyperparameter &number : hyperparameters)
    if (number.name == name)
      return number.value;
  fail("the optimizer ", optimizer, " has no hyperparameter ", name);
}

double Options::hyperparameter(const Hyperparameter &number, int64_t updates) const {
  return isFrozen(number.name, updates) ? 1 : number.value;
}

bool Options::isFrozen(const std::string &name, int64_t updates) const {
  return name == secondDecay && freezeVariance > 0 && updates > freezeVariance;
}

double Options::biasCorrection(const plan::BiasCorrection &correction, int64_t updates) const {
  if (isFrozen(correction.of, updates))
    updates = freezeVariance;
  double h = hyperparameter(correction.of), t = double(updates);
  return correction.power.value_or(false) ? std::pow(t, -h) : 1.0 - std::pow(h, t);
}

static const char *footer =
    "Environment: OMP_NUM_THREADS (threads per rank), MESHWRIGHT_TIMEOUT (seconds a rank waits "
    "for others,\n300). mpirun and srun --mpi start ranks as MPI processes. GPU ranks can "
    "rendezvous without MPI: with\ntorchrun's RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or "
    "under srun with MASTER_ADDR set. On\nSIGUSR1 a process prints what each of its ranks is "
    "waiting for.";

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

/// The whole number `value`, as plain decimal digits.
static int64_t parseInteger(const RunFlag &flag, const std::string &value) {
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
static double parseReal(const RunFlag &flag, const std::string &value) {
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

static void addFlag(CLI::App &app, const RunFlag &flag, Options &options) {
  auto add = [&](auto parse, auto member) {
    return app.add_option_function<std::string>(
        flag.name,
        [=, &flag, &options](const std::string &value) { options.*member = parse(flag, value); },
        flag.help);
  };
  if (auto member = std::get_if<RunFlag::Switch>(&flag.member)) {
    app.add_flag(flag.name, options.*(*member), flag.help);
    return;
  }
  CLI::Option *option;
  if (auto member = std::get_if<RunFlag::Integer>(&flag.member))
    option = add(parseInteger, *member)->default_str(text(options.*(*member)));
  else if (auto member = std::get_if<RunFlag::Real>(&flag.member))
    option = add(parseReal, *member)->default_str(text(options.*(*member)));
  else if (auto member = std::get_if<RunFlag::Hyperparameter>(&flag.member))
    option = app.add_option_function<std::string>(
                    flag.name,
                    [&flag, &value = options.hyperparameters[member->number].value](
                        const std::string &text) { value = parseReal(flag, text); },
                    flag.help)
                 ->default_str(text(options.hyperparameters[member->number].value));
  else if (auto member = std::get_if<RunFlag::Texts>(&flag.member))
    option = app.add_option(flag.name, options.*(*member), flag.help)->allow_extra_args(false);
  else
    option = app.add_option(flag.name, options.*std::get<RunFlag::Text>(flag.member), flag.help)
                 ->capture_default_str();
  option->type_name(flag.choices ? flag.choices : flag.value);
}

static void checkFlag(const RunFlag &flag, const Options &options) {
  if (flag.needs && !options.given(flag.needs))
    fail(flag.name, " needs ", flag.needs, ": give both");
  auto checkGiven = [&](const std::string &value) {
    if (value.empty())
      fail(flag.name, " is empty: give ", flag.value);
  };
  if (auto member = std::get_if<RunFlag::Texts>(&flag.member))
    for (const std::string &value : options.*(*member))
      checkGiven(value);
  if (auto member = std::get_if<RunFlag::Text>(&flag.member)) {
    const std::string &value = options.*(*member);
    checkGiven(value);
    if (!flag.choices || (*member == &Options::tokens && options.given("--generate")))
      return;
    std::vector<std::string> choices = split(flag.choices, '|');
    if (std::find(choices.begin(), choices.end(), value) == choices.end())
      fail(flag.name, " ", value, ": it is one of ", flag.choices);
    return;
  }
  auto check = [&](auto value) {
    if (double(value) >= flag.least && double(value) <= flag.most)
      return;
    if (flag.most == flag.least)
      fail(flag.name, " is ", value, ", but ", flag.help, ": leave it out");
    if (flag.most == oneBelow)
      fail(flag.name, " is ", value, ": it must be at least 0 and less than 1 (in 32 bits)");
    if (std::isinf(flag.most))
      fail(flag.name, " is ", value, ": it must be at least ", flag.least);
    fail(flag.name, " is ", value, ": it must be from ", flag.least, " to ", int64_t(flag.most));
  };
  if (auto member = std::get_if<RunFlag::Integer>(&flag.member))
    check(options.*(*member));
  else if (auto member = std::get_if<RunFlag::Real>(&flag.member))
    check(options.*(*member));
  else if (auto member = std::get_if<RunFlag::Hyperparameter>(&flag.member))
    check(options.hyperparameters[member->number].value);
}

/// The files or folders that a flag names.
static Options::Files filesOf(const RunFlag &flag, const Options &options) {
  if (auto member = std::get_if<RunFlag::Texts>(&flag.member))
    return options.*(*member);
  if (auto member = std::get_if<RunFlag::Text>(&flag.member); member && flag.use != FileUse::None)
    return {options.*(*member)};
  return {};
}

/// The value of a flag as text, as short as says it exactly.
static std::string valueText(const RunFlag &flag, const Options &options) {
  auto words = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::string>) {
      return value;
    } else if constexpr (std::is_same_v<decltype(value), Options::Files>) {
      std::string all;
      for (const std::string &file : value)
        all += (all.empty() ? "" : " ") + file;
      return all;
    } else if constexpr (std::is_same_v<decltype(value), bool>) {
      return std::string(value ? "on" : "off");
    } else {
      char digits[64];
      return std::string(digits, std::to_chars(digits, std::end(digits), value).ptr);
    }
  };
  if (auto member = std::get_if<RunFlag::Hyperparameter>(&flag.member))
    return words(options.hyperparameters[member->number].value);
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), RunFlag::Hyperparameter>)
          return std::string();
        else
          return words(options.*member);
      },
      flag.member);
}

std::vector<FlagValue> meshwright::flagValues(const Options &options) {
  std::vector<FlagValue> values;
  for (const RunFlag &flag : flagTable(options)) {
    bool isSaved = flag.isKept && !options.resume.empty() && !options.given(flag.name);
    values.push_back(
        {flag.name, flag.across, isSaved ? "" : valueText(flag, options), filesOf(flag, options)});
    auto member = std::get_if<RunFlag::Texts>(&flag.member);
    if (member && *member == &Options::save)
      for (const Options::SaveTier &tier : options.saveTiers) // Ranks save together.
        values.back().value += tier.byFlag ? "" : text(" ", tier.folder, ":", tier.every);
    if (member && *member == &Options::evalData && options.evaluationSets.size() > 1)
      for (const Options::EvaluationSet &set : options.evaluationSets)
        values.back().sets += text(values.back().sets.empty() ? "" : ", ", set.name, " of ", set.data.size());
  }
  return values;
}

FlagTexts meshwright::keptFlags(const Options &options) {
  FlagTexts texts;
  for (const RunFlag &flag : flagTable(options))
    if (std::string value = valueText(flag, options); flag.isKept && !value.empty())
      texts[flag.name] = value;
  return texts;
}

std::string meshwright::changedFlags(const Options &options, const FlagTexts &saved) {
  std::string changes;
  for (const RunFlag &flag : flagTable(options)) {
    auto was = saved.find(flag.name);
    std::string value = valueText(flag, options);
    // Texts that are not given are not kept; without any flag, the checkpoint is of an earlier version.
    bool isNew = was == saved.end() && !saved.empty() && !value.empty() && options.given(flag.name) &&
                 std::holds_alternative<RunFlag::Text>(flag.member) && !flag.choices;
    if (!flag.isKept || (was == saved.end() ? !isNew : was->second == value))
      continue;
    changes += text(changes.empty() ? "" : "; ", flag.name, " ", value, ", was ", isNew ? "not given" : was->second);
    auto member = std::get_if<RunFlag::Integer>(&flag.member);
    if (member && *member == &Options::steps && endsAtLastStep(options.lrSchedule))
      changes += text(", where ", options.lrSchedule, " ends");
  }
  return changes;
}

std::string meshwright::unsaidFlags(const Options &options, const Plan &plan,
                                    const FlagTexts &saved) {
  std::string names;
  for (const RunFlag &flag : flagTable(options))
    if (flag.isKept && !options.given(flag.name) && !saved.count(flag.name) &&
        (!flag.idle || flag.idle(options, plan).empty()))
      names += text(names.empty() ? "" : ", ", flag.name, " ", valueText(flag, options));
  return names;
}

/// Whether `file` is one of the checkpoint that --resume `folder` reads.
static bool isInCheckpoint(const std::string &folder, const std::string &file) {
  std::error_code error;
  std::string latest = latestIn(folder);
  bool hasLatest = !latest.empty() && std::filesystem::exists(latest, error);
  return std::filesystem::is_regular_file(file, error) &&
         isSameFile(canonicalPath(file).parent_path().string(), hasLatest ? latest : folder);
}

/// Refuses to write what is read or written already, the executable itself too.
static void checkFiles(const Options &options) {
  std::vector<FileArgument> files = {{"the executable", "/proc/self/exe", FileUse::Input}};
  for (const RunFlag &flag : flagTable(options))
    if (options.given(flag.name))
      for (const std::string &file : filesOf(flag, options))
        files.push_back({flag.name, file, flag.use, flag.writes});
  if (std::string clash = clashOf(files); !clash.empty())
    fail(clash);
  for (const FileArgument &folder : files)
    for (const FileArgument &file : files)
      if (folder.use == FileUse::InputFolder && file.use == FileUse::Output &&
          isInCheckpoint(folder.path, file.path))
        fail(file.text(), " would overwrite a file of ", folder.text(), ": name another file for ",
             file.flag);
}

/// Which flags the optimizer has, for who asks for those of another.
static std::string optimizerFlags(const Options &options) {
  if (options.optimizer.empty())
    return "";
  std::string names;
  for (const Options::Hyperparameter &number : options.hyperparameters)
    names += (names.empty() ? "" : ", ") + number.flag;
  return text("; the optimizer of this executable, ", options.optimizer, ", has ",
              names.empty() ? "none of its own" : names);
}

[[noreturn]] static void failUnknown(const std::string &word, const Options &options) {
  std::string name = word.substr(0, word.find('='));
  std::error_code ignored;
  if (name.rfind("--", 0) != 0 && std::filesystem::exists(word, ignored))
    fail("'", word,
         "' belongs to no flag: files are named by flags, such as --data FILE; of several each has a "
         "flag of its own, or a pattern in quotes names them, --data 'DIR/*.bin'; see --help");
  if (name.rfind("--", 0) != 0)
    fail("'", word,
         "' belongs to no flag: files are named by flags, such as --data FILE; see --help");
  std::vector<std::string> names;
  for (const RunFlag &flag : flagTable(options))
    names.push_back(flag.name + 2);
  std::string near = nearestName(name.substr(2), names);
  if (name == "--learning-rate")
    near = "lr";
  if (name == "--evaluate" || name == "--eval")
    near = "eval-only";
  fail("there is no flag ", name, near.empty() ? "" : "; did you mean --" + near + "?",
       near.empty() ? optimizerFlags(options) + "; see" : " See",
       " --help for the flags of this executable, and 'meshwright compile --help' for what is "
       "chosen when a model is compiled");
}

/// Whether `folder` has shards of a checkpoint, as Meshwright and PyTorch call them.
static bool hasShards(const std::string &folder) {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind("shard-", 0) == 0 && entry.path().extension() == ".safetensors")
      return true;
  }
  return false;
}

/// Weights in a folder: as a file, in several, or in the latest checkpoint.
static std::string weightsIn(const std::string &folder) {
  std::error_code error;
  // Files, and folders of shards: checkpoints' and, of PyTorch's writer, beside consolidated files or alone.
  std::string latest = latestIn(folder);
  if (std::filesystem::is_symlink(folder + "/latest", error))
    latest = folder + "/latest"; // as users know it
  std::vector<std::string> places = {folder + "/model.safetensors", folder + "/model.safetensors.index.json", folder + "/model"};
  if (!latest.empty())
    places.insert(places.end(), {latest + "/model.safetensors", latest + "/model"});
  places.insert(places.end(), {folder + "/sharded", folder});
  for (const std::string &path : places)
    if (std::filesystem::is_regular_file(path, error) || hasShards(path))
      return path;
  for (const char *name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (std::filesystem::exists(folder + "/" + name, error))
      fail("--init ", folder, ": the folder has ", name,
           ", weights as PyTorch pickles them, which is not read: convert them to "
           "model.safetensors, e.g. with transformers' from_pretrained and save_pretrained");
  if (std::filesystem::exists(folder + "/" + adapterFile, error))
    fail("--init ", folder, ": the folder has an adapter, not a model's weights: give them to --init "
         "and the adapter to --adapter");
  fail("--init ", folder,
       ": the folder has neither model.safetensors nor model.safetensors.index.json, nor a "
       "checkpoint: name the file of the weights");
}

/// The adapter in a folder: PEFT's, or that of the latest checkpoint.
static std::string adapterIn(const std::string &folder) {
  std::error_code error;
  std::string latest = std::filesystem::is_symlink(folder + "/latest", error) ? folder + "/latest" : latestIn(folder);
  for (const std::string &place : {folder, latest}) {
    if (place.empty())
      continue; // There is no latest checkpoint.
    if (std::string file = place + "/" + adapterFile; std::filesystem::exists(file, error))
      return file;
    if (std::string shards = place + "/adapter_model"; hasShards(shards))
      return shards;
  }
  if (std::filesystem::exists(folder + "/adapter_model.bin", error))
    fail("--adapter ", folder,
         ": the folder has adapter_model.bin, tensors as PyTorch pickles them, which is not read: save "
         "the adapter with PEFT's save_pretrained, which writes ", adapterFile);
  fail("--adapter ", folder, ": the folder has no ", adapterFile,
       ": name a folder of PEFT's, or one of --save");
}

/// Takes the interval off each value of --save, DIR:K.
static void resolveSave(Options &options) {
  for (std::string &folder : options.save) {
    size_t colon = folder.rfind(':');
    std::string word = colon == folder.npos ? "" : folder.substr(colon + 1);
    bool isNumber = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    Options::SaveTier tier{folder, options.saveEvery, true};
    if (isNumber) {
      static constexpr RunFlag interval{"--save", "DIR:K", &Options::saveEvery, "steps"};
      tier = {folder.substr(0, colon), parseInteger(interval, word), false};
      if (tier.every == 0)
        fail("--save ", folder, ": the interval is 0 steps: give at least 1, or leave :0 out to save "
             "only at the end; a folder of this name is ", folder, "/");
      if (tier.folder.empty())
        fail("--save ", folder, ": there is no folder before the colon: write DIR:K");
    }
    folder = tier.folder;
    for (const Options::SaveTier &other : options.saveTiers)
      if (isSameFile(other.folder, tier.folder))
        fail("--save ", other.folder, " and --save ", tier.folder,
             " are one folder: give each tier a folder of its own");
    options.saveTiers.push_back(std::move(tier));
  }
}

static void setValue(const RunFlag &flag, const std::string &value, Options &options) {
  if (auto member = std::get_if<RunFlag::Integer>(&flag.member))
    options.*(*member) = parseInteger(flag, value);
  else if (auto member = std::get_if<RunFlag::Real>(&flag.member))
    options.*(*member) = parseReal(flag, value);
  else if (auto member = std::get_if<RunFlag::Hyperparameter>(&flag.member))
    options.hyperparameters[member->number].value = parseReal(flag, value);
  else
    options.*std::get<RunFlag::Text>(flag.member) = value;
}

/// Gives the flags that are left out the values of the checkpoint's run.
static void takeSavedFlags(Options &options,
                           const std::function<FlagTexts(const std::string &)> &savedFlags) {
  FlagTexts saved;
  try {
    saved = savedFlags(options.resume);
  } catch (const Error &) {
    // Ranks find it out together, unless the run cannot begin without.
    if (!options.given("--steps"))
      throw;
    return;
  }
  for (const RunFlag &flag : flagTable(options))
    if (auto value = saved.find(flag.name);
        flag.isKept && !options.given(flag.name) && value != saved.end())
      setValue(flag, value->second, options);
  if (!options.given("--steps") && !saved.count("--steps"))
    fail("--steps is required: the checkpoint ", options.resume,
         " is of a version that does not say it");
}

/// Makes the words that stand for others what they stand for. This process prints notes if it `says`.
static void resolve(Options &options, bool says,
                    const std::function<FlagTexts(const std::string &)> &savedFlags,
                    const std::function<void(const Options &)> &prepare) {
  resolveSave(options);
  if (options.resume == "auto") {
    if (options.save.empty())
      fail("--resume auto goes on from the latest checkpoint in --save's folder, but --save is not "
           "given: add --save DIR, or name a checkpoint");
    if (prepare)
      prepare(options);
    Options::Files folders = options.save;
    if (!options.buddy.empty())
      folders.push_back(options.buddy);
    options.resume = newestCheckpoint(folders, [says](const std::string &passedOver) {
      if (says)
        fprintf(stderr, "note: %s\n", passedOver.c_str());
    });
    bool isThere = !options.resume.empty();
    // A run that begins ends its schedule where it says.
    for (const char *flag : {"--resume", "--reschedule"})
      if (!isThere)
        options.givenFlags.erase(flag);
    // A run that goes on does not begin.
    for (const char *flag : {"--init", "--adapter", "--initial-loss-scale"})
      if (isThere && (std::string_view(flag) != "--init" || !options.trainsAdapters))
        options.givenFlags.erase(flag);
    if (isThere)
      options.adapter = "";
    if (isThere && !options.trainsAdapters)
      options.init = "";
  }
  static constexpr RunFlag peak{"--peak-flops", "X", &Options::peakFlops, "FLOP/s of a rank"};
  options.measurePeak = options.peakRate == "measure";
  if (options.given("--peak-flops") && !options.measurePeak)
    options.peakFlops = parseReal(peak, options.peakRate);
  if (options.given("--peak-flops") && !options.measurePeak && options.peakFlops <= 0)
    fail("--peak-flops is ", options.peakRate, ": it must be more than 0, or measure");
  resolveEvaluation(options);
  if (options.evalOnly) {
    // A run without steps, on data that it need not read.
    const Options::EvaluationSet &first = options.evaluationSets.front();
    options.data = first.data;
    options.lossMask = first.lossMask;
    options.documents = first.documents;
    options.source = first.source;
    options.sourceDocuments = first.sourceDocuments;
    options.sources = {{first.data.front(), int64_t(first.data.size())}};
  } else {
    resolveData(options);
  }
  for (const RunFlag &flag : flagTable(options))
    if (auto member = std::get_if<RunFlag::Texts>(&flag.member);
        member && (*member == &Options::lossMask || *member == &Options::documents ||
                   *member == &Options::source || *member == &Options::sourceDocuments) &&
        !options.evalOnly) {
      Options::Files files;
      for (const std::string &value : options.*(*member))
        for (std::string &file : filesNamed(flag.name, value))
          files.push_back(std::move(file));
      options.*(*member) = std::move(files);
    }
  if (options.given("--generate")) {
    // Nothing is trained.
  } else if (!options.resume.empty()) {
    if (savedFlags)
      takeSavedFlags(options, savedFlags);
  } else if (!options.given("--steps"))
    fail("--steps is required: give the number of optimizer steps to train, e.g. --steps 100; see --help for all flags");
  std::error_code ignored; // Whoever opens it says what is wrong.
  if (std::filesystem::is_directory(options.init, ignored))
    options.init = weightsIn(options.init);
  // A run with adapters that is resumed, wherever that is, reads them again: from where a link such
  // as "latest" points now. The file itself may be a link to one without an ending.
  if (options.trainsAdapters && !options.init.empty()) {
    std::filesystem::path file = std::filesystem::absolute(options.init, ignored);
    std::error_code error;
    std::filesystem::path folder = std::filesystem::canonical(file.parent_path(), error);
    options.init = error ? file : folder / file.filename();
  }
  if (std::filesystem::is_directory(options.adapter, ignored))
    options.adapter = adapterIn(options.adapter);
}

/// Makes a run that only evaluates one without steps on the data that it evaluates. Refuses what it
/// does not read: with --loss-mask in place of --eval-loss-mask, all targets would count.
static void checkEvaluation(const std::vector<RunFlag> &table, Options &options) {
  for (const RunFlag &flag : table) {
    if (!options.given(flag.name) || flag.evaluates)
      continue;
    std::string ofEvaluation = text("--eval-", flag.name + 2);
    bool hasOther = std::any_of(table.begin(), table.end(),
                                [&](const RunFlag &other) { return other.name == ofEvaluation; });
    fail(flag.name, " changes nothing with --eval-only, which does not train: leave it out",
         hasOther ? ", or give " + ofEvaluation : "");
  }
  if (!options.given("--eval-data"))
    fail("--eval-only needs --eval-data: give both");
  if (!options.given("--resume") && !options.given("--init"))
    fail("--eval-only needs weights: give --resume DIR, a checkpoint, or --init FILE|DIR");
  options.steps = 0;
  options.givenFlags.insert({"--steps", "--data"});
}

/// Refuses what --generate does not read, or cannot do without.
static void checkGeneration(const std::vector<RunFlag> &table, Options &options) {
  for (const RunFlag &flag : table)
    if (options.given(flag.name) && !flag.generates)
      fail(flag.name, " changes nothing with --generate, which does not train: leave it out");
  if (!options.given("--resume") && !options.given("--init"))
    fail("--generate needs weights: give --resume DIR, a checkpoint, or --init FILE|DIR");
  for (const char *flag : {"--top-k", "--top-p"})
    if (options.given(flag) && options.temperature == 0)
      fail(flag, " changes nothing with --temperature 0, which always takes the most likely token: leave one of them out");
  for (const char *flag : {"--temperature", "--top-k", "--top-p", "--seed"})
    if (options.beams > 1 && options.given(flag))
      fail(flag, " changes nothing with --beams, which searches and draws no token: leave one of them out");
  for (const char *flag : {"--length-penalty", "--early-stopping"})
    if (options.beams == 1 && options.given(flag))
      fail(flag, " changes nothing with one beam: give --beams N, 2 or more, or leave it out");
  if (!options.given("--tokens"))
    return;
  static constexpr RunFlag count{"--tokens", "N", &Options::generateTokens,
                                 "how many tokens to generate"};
  options.generateTokens = parseInteger(count, options.tokens);
  if (options.generateTokens < 1)
    fail("--tokens is ", options.generateTokens, ": with --generate it must be at least 1");
}

bool meshwright::parseOptions(int argc, const char *const *argv, Options &options, bool printHelp,
                              const std::function<std::string()> &version,
                              const std::function<FlagTexts(const std::string &)> &savedFlags,
                              const std::function<void(const Options &)> &prepare) {
  CLI::App app("Trains the model this executable was compiled from.", argc ? argv[0] : "EXE");
  app.footer(footer);
  app.get_formatter()->column_width(34);
  const std::vector<RunFlag> table = flagTable(options);
  for (const RunFlag &flag : table)
    addFlag(app, flag, options);
  if (version)
    app.set_version_flag("--version", version, "print what this executable was made from");
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
      failUnknown(unknown.front(), options);
    fail(plainly(error.what()), ": see --help for the flags and what they take");
  }
  for (const RunFlag &flag : table)
    if (app.get_option(flag.name)->count())
      options.givenFlags.insert(flag.name);
  if (options.given("--generate"))
    checkGeneration(table, options);
  else if (options.evalOnly)
    checkEvaluation(table, options);
  else if (!options.given("--data"))
    fail("--data is required: give a file of tokens, as 'meshwright tokenize' writes, or with --tokens u8 any file, whose bytes "
         "are tokens; see --help for all flags");
  resolve(options, printHelp, savedFlags, prepare);
  for (const RunFlag &flag : table)
    if (options.given(flag.name))
      checkFlag(flag, options);
  checkFiles(options);
  if (options.given("--adapter") && options.given("--resume"))
    fail("--adapter and --resume are both given: a resumed run takes its adapters from the "
         "checkpoint; drop one of them");
  if (options.given("--init") && options.given("--resume") && !options.trainsAdapters)
    fail("--init and --resume are both given: a resumed run takes its weights from the checkpoint; "
         "drop one of them");
  checkLearningRate(options);
  return true;
}

/// A step may change a state by its (1 - decay)-th part: of a number in bf16 that must be more than
/// half of the distance to the next one, which is up to its 128th part.
static void checkMoves(const Options::Hyperparameter &number, const Plan &plan) {
  for (const Variable &variable : plan.variables)
    if (variable.isOptimizerState() && variable.state == number.decayOf &&
        variable.type == ElementType::BF16 && number.value > 0.99)
      fail(number.flag, " moves the state ", variable.state,
           " by less than bf16 can hold (--moments-dtype bf16): give 0.99 or less, or compile "
           "without --moments-dtype");
}

/// Steps are divided by a gradient's root mean square and this, which keeps zeros from becoming 0 / 0:
/// of rows of an embedding that no token has, and of padding.
static void checkDivision(const Options::Hyperparameter &number) {
  if (number.name == "eps" && number.value == 0)
    fail(number.flag, " is 0, so that an element whose gradients are 0 would be divided by 0: give a number above 0, "
         "such as ", number.initial);
}

void meshwright::checkEffects(const Options &options, const Plan &plan) {
  for (const Options::Hyperparameter &number : options.hyperparameters) {
    checkMoves(number, plan);
    checkDivision(number);
  }
  for (const RunFlag &flag : flagTable(options)) {
    RunFlag::Idle check = options.given(flag.name) ? flag.idle : flag.missing;
    if (std::string why = check ? check(options, plan) : ""; !why.empty())
      fail(flag.name, " ", why);
  }
}
