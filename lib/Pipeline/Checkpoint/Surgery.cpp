//===- Surgery.cpp - checkpoint surgery -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Folders.h"

#include "common/monitor/Error.h"
#include "meshwright/GradientCompression.h"
#include "meshwright/runtime/Averages.h"
#include "meshwright/runtime/Normal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

using namespace meshwright;
using namespace meshwright::checkpoint;

/// Of state.json beside files that hold whole tensors.
static constexpr int mergedVersion = 3;

namespace {
/// What a weight begins with anew.
struct Start {
  std::string pattern;
  enum Kind { Constant, Normal } kind;
  float value; ///< or the standard deviation
};

/// What is done to the tensors of a checkpoint.
struct Changes {
  std::map<std::string, std::string> renamed; ///< to what
  std::vector<std::string> dropped;           ///< patterns
  std::vector<Start> starts;
  bool resetOptimizer = false, resetStep = false;
  uint64_t seed = 0;
  /// Of patterns and names, those that some weight has matched.
  std::set<std::string> used = {};
};
} // namespace

static bool matches(const std::string &pattern, const std::string &name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// "a=b" as the two around the last '='.
static std::pair<std::string, std::string> pairOf(const std::string &flag, const std::string &word, const char *form) {
  size_t at = word.rfind('=');
  if (at == word.npos || at == 0 || at + 1 == word.size())
    fail(flag, " ", word, ": write ", flag, " ", form);
  return {word.substr(0, at), word.substr(at + 1)};
}

static Start startOf(const std::string &word) {
  auto [pattern, what] = pairOf("--reinit", word, "PATTERN=zeros|ones|normal:STD");
  if (what == "zeros" || what == "ones")
    return {pattern, Start::Constant, what == "ones" ? 1.0f : 0.0f};
  float deviation = 0;
  const char *begin = what.data() + 7, *end = what.data() + what.size();
  bool isNormal = what.rfind("normal:", 0) == 0 && std::from_chars(begin, end, deviation).ptr == end && begin != end;
  if (!isNormal || !(deviation > 0) || std::isinf(deviation))
    fail("--reinit ", word, ": tensors begin as zeros, ones or normal:STD, such as normal:0.02");
  return {pattern, Start::Normal, deviation};
}

static Changes planOf(const Arguments &arguments) {
  Changes plan;
  for (const std::string &word : arguments.values("--rename")) {
    auto [from, to] = pairOf("--rename", word, "OLD=NEW");
    if (!plan.renamed.emplace(from, to).second)
      fail("--rename ", word, ": ", from, " is renamed twice");
  }
  plan.dropped = arguments.values("--drop");
  for (const std::string &word : arguments.values("--reinit"))
    plan.starts.push_back(startOf(word));
  plan.resetOptimizer = arguments.has("--reset-optimizer");
  plan.resetStep = arguments.has("--reset-step");
  if (arguments.has("--seed")) {
    std::string word = arguments.value("--seed");
    auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), plan.seed);
    if (error != std::errc() || stop != word.data() + word.size())
      fail("--seed ", word, ": it must be a whole number of at least 0");
  }
  if (plan.renamed.empty() && plan.dropped.empty() && plan.starts.empty() && !plan.resetOptimizer && !plan.resetStep)
    fail("nothing to do: give --rename, --drop, --reinit, --reset-optimizer or --reset-step");
  if (plan.resetStep && !plan.resetOptimizer)
    fail("--reset-step needs --reset-optimizer: bias corrections of step 0 do not fit the moments of later steps; give both");
  bool isDrawn = std::any_of(plan.starts.begin(), plan.starts.end(), [](const Start &start) { return start.kind == Start::Normal; });
  if (arguments.has("--seed") && !isDrawn)
    fail("--seed changes nothing without --reinit PATTERN=normal:STD: leave it out");
  return plan;
}

namespace {
/// A tensor of the new file.
struct Made {
  const TensorFile *from; ///< that has its elements, if it does not begin anew
  std::string was, name;
  std::vector<int64_t> shape;
  std::optional<Start> start; ///< that it begins with
  std::string drawnAs; ///< the name of the weight whose random numbers it begins with
};
} // namespace

/// The weight that a state of the optimizer, "WEIGHT.STATE", belongs to; empty if there is none.
static std::string weightOf(const std::string &state, const std::set<std::string> &weights) {
  for (size_t dot = state.rfind('.'); dot != state.npos && dot > 0; dot = state.rfind('.', dot - 1))
    if (std::string name = state.substr(0, dot); weights.count(name))
      return name;
  return "";
}

/// Whether a state is one of compressed gradients, which are called as the program calls them, with layers behind all else.
static bool isOfCompression(const std::string &state, const char *role) {
  return (state + ".").find(text(".", role, ".")) != state.npos;
}

/// The new tensors of `file`, whose tensors belong to those of `weightsFile`: as weights, or as states of them.
static std::vector<Made> tensorsOf(const TensorFile &file, const TensorFile &weightsFile, Changes &plan) {
  bool areStates = file.name == optimizerName;
  std::vector<std::string> names = weightsFile.reader->names();
  std::set<std::string> weights(names.begin(), names.end());
  std::vector<Made> made;
  std::set<std::string> taken;
  bool changesWeights = !plan.dropped.empty() || !plan.starts.empty() || !plan.renamed.empty();
  for (const std::string &name : file.reader->names()) {
    std::string weight = areStates ? weightOf(name, weights) : name;
    std::string rest = weight.empty() ? "" : name.substr(weight.size());
    bool isDropped = false;
    for (const std::string &pattern : plan.dropped)
      if (!weight.empty() && matches(pattern, weight)) {
        plan.used.insert(pattern);
        isDropped = true;
      }
    if (areStates && weight.empty() && !plan.resetOptimizer && changesWeights &&
        (isOfCompression(name, gradientFactorState) || isOfCompression(name, gradientResidualState) ||
         isOfCompression(name, gradientServerResidualState)))
      fail(name, " is a state of --grad-compression, which has no weight's name: give --reset-optimizer, with which compression begins anew");
    Made tensor{&file, name, writtenName(*file.reader, name), file.reader->find(name)->shape, {}, ""};
    std::optional<Start> ofWeight;
    for (const Start &start : plan.starts)
      if (!weight.empty() && matches(start.pattern, weight)) {
        plan.used.insert(start.pattern);
        ofWeight = start;
      }
    tensor.drawnAs = weight;
    if (auto to = plan.renamed.find(weight); to != plan.renamed.end() && !weight.empty()) {
      plan.used.insert(weight);
      tensor.name = to->second + rest;
      tensor.drawnAs = to->second;
    }
    bool beginsAnew = ofWeight || (areStates && plan.resetOptimizer);
    // As in a run that begins. Late steps hardly move an average.
    if (beginsAnew && areStates && rest == std::string(".") + averageState) {
      tensor.from = &weightsFile;
      tensor.was = weight;
      tensor.start = ofWeight;
    } else if (beginsAnew) {
      tensor.start = areStates ? Start{"", Start::Constant, 0} : ofWeight;
      // With a factor of zeros gradients would be approximated by zeros for ever.
      if (areStates && isOfCompression(name, gradientFactorState)) {
        tensor.start = Start{"", Start::Normal, 1};
        tensor.drawnAs = tensor.name;
      }
    }
    if (isDropped)
      continue;
    if (!taken.insert(tensor.name).second)
      fail("--rename: two tensors of ", file.name, " would be called ", tensor.name, ": drop one of them, or give it another name");
    made.push_back(std::move(tensor));
  }
  return made;
}

/// Gives the elements of `tensor` to `take`, part by part.
template <typename Take> static void elementsFor(const Made &tensor, uint64_t seed, Take take) {
  if (!tensor.start)
    return forElements(*tensor.from->reader, tensor.was, take);
  constexpr int64_t block = 1 << 20;
  int64_t all = elementsIn(tensor.shape);
  std::vector<float> values;
  auto key = initialKey(seed, tensor.drawnAs);
  for (int64_t begin = 0; begin < all; begin += block) {
    values.assign(size_t(std::min(block, all - begin)), tensor.start->value);
    for (size_t i = 0; tensor.start->kind == Start::Normal && i < values.size(); ++i)
      values[i] *= normalValue(key, uint64_t(begin) + i);
    take(values.data(), int64_t(values.size()));
  }
}

/// Writes `tensors` as the file `name`. Returns its id.
static std::string writeFile(const NewFolder &output, const std::string &name, const std::vector<Made> &tensors, uint64_t seed) {
  std::vector<SafeTensorsWriter::Entry> entries;
  for (const Made &tensor : tensors)
    entries.push_back({tensor.name, tensor.shape});
  SafeTensorsWriter writer(output.file(name), entries);
  for (const Made &tensor : tensors)
    elementsFor(tensor, seed, [&](const float *values, int64_t count) { writer.write(values, count); });
  return writer.finish();
}

/// Writes into `numbers`, what changes the numbers of a run, that they are not those of the run that wrote the checkpoint:
/// a run that begins has the weights with the id `id` from here, one that goes on has them behind what it did before.
static void noteNumbers(Json &state, const Changes &plan, const std::string &id, bool areAdapters) {
  bool changesValues = !plan.dropped.empty() || !plan.starts.empty() || plan.resetOptimizer;
  if (!state.contains("numbers") || !state["numbers"].is_object() || !changesValues)
    return;
  Json &numbers = state["numbers"];
  if (plan.resetStep) {
    for (const char *key : {"history", "--initial-loss-scale"})
      numbers.erase(key);
    numbers[areAdapters ? "--adapter" : "--init"] = "checkpoint surgery " + id.substr(0, 16);
    return;
  }
  std::string before = numbers.contains("history") && numbers["history"].is_string() ? numbers["history"].get<std::string>() : "";
  numbers["history"] = text(before, before.empty() ? "" : ", ", "checkpoint surgery ", id.substr(0, 16), " at step ",
                            state.value("step", Json()).dump(), plan.resetOptimizer ? ", optimizer state reset" : "");
}

/// `state` of a run that begins with these weights.
static void resetStep(Json &state) {
  for (const char *key : {"step", "position", "mixed"})
    if (state.contains(key))
      state[key] = 0;
  if (state.contains("sources"))
    for (Json &source : state["sources"])
      source["taken"] = 0;
  // What a run that begins has none of.
  for (const char *key : {"skipped", "loss_scale", "rates"})
    state.erase(key);
}

bool checkpoint::surgery(const Arguments &arguments, std::ostream &os) {
  Changes plan = planOf(arguments);
  Folder folder = openCheckpoint(arguments.paths[0]);
  Json &state = *folder.state;
  try {
    checkSealed(folder);
  } catch (const Error &error) {
    fail(folder.path, ": the checkpoint is damaged: ", error.what());
  }
  if (state.contains("rates") && plan.resetOptimizer && !plan.resetStep)
    fail("--reset-optimizer: the optimizer ", state.value("optimizer", ""),
         " weighs steps in its averages, which begin anew with step 0 only: give --reset-step too");
  NewFolder output(arguments.value("-o"));
  // What is written is merged, whatever it is made of.
  Json files = Json::object();
  size_t kept = 0, made = 0;
  for (const TensorFile &file : folder.files) {
    std::vector<Made> tensors = tensorsOf(file, folder.weights(), plan);
    // Averages that begin anew equal the weights.
    if (&file == folder.averages() && plan.resetOptimizer)
      tensors = tensorsOf(folder.weights(), folder.weights(), plan);
    std::string id = writeFile(output, file.name, tensors, plan.seed);
    if (file.name.rfind("ema/", 0) != 0)
      files[file.name] = id;
    kept += tensors.size();
    made += size_t(std::count_if(tensors.begin(), tensors.end(), [](const Made &tensor) { return tensor.start.has_value(); }));
  }
  auto checkUsed = [&](const char *flag, const std::string &pattern) {
    if (!plan.used.count(pattern))
      fail(flag, " ", pattern, ": no weight of ", folder.path, " is called so: `meshwright checkpoint inspect --tensors` lists them");
  };
  for (const auto &[from, to] : plan.renamed)
    checkUsed("--rename", from);
  for (const std::string &pattern : plan.dropped)
    checkUsed("--drop", pattern);
  for (const Start &start : plan.starts)
    checkUsed("--reinit", start.pattern);
  state["files"] = files;
  state["version"] = mergedVersion;
  state.erase("commit"); // What is written here is renamed.
  noteNumbers(state, plan, files[folder.weights().name], folder.weights().name == adaptersName);
  if (plan.resetStep)
    resetStep(state);
  state["checksum"] = noChecksum;
  std::string text = state.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  seal(text);
  output.write("state.json", text);
  output.copyCompanions(folder);
  if (folder.averages())
    for (const std::string &name : folder.companions)
      output.write("ema/" + name, [&] {
        std::ifstream file(folder.path + "/" + name, std::ios::binary);
        return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      }());
  output.finish();
  os << arguments.value("-o") << ": " << kept << " tensors, of which " << made << " begin anew\n";
  return false;
}
