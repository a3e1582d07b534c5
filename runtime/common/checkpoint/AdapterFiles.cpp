//===- AdapterFiles.cpp - adapters in PEFT's format -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/AdapterFiles.h"

#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/OutputFile.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "common/train/Context.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;

/// What of a configuration decides what tensors mean.
static Json configOf(const std::string &content, const std::string &what) {
  Json json = parseJson(content, what, ": write or download it again");
  if (!json.is_object())
    fail(what, " is ", shortText(json), ", not an object: write or download it again");
  return json;
}

void meshwright::checkAdapterConfig(const Plan &plan, const std::string &directory,
                                    const std::string &flag) {
  std::string path = directory + "/" + adapterConfigFile, what = flag + ": " + path;
  MappedFile file(path, flag);
  Json theirs = configOf({reinterpret_cast<const char *>(file.data()), size_t(file.size())}, what);
  Json mine = configOf(plan.adapterConfig.value_or("{}"), "the plan's adapter_config");
  auto refuse = [&](const char *key, const std::string &wanted, const std::string &remedy) {
    fail(what, " has \"", key, "\" ", shortText(theirs[key]), ", but ", wanted, ": ", remedy);
  };
  auto number = [&](const Json &json, const char *key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : NAN;
  };
  for (const char *key : {"r", "lora_alpha"})
    if (!(number(theirs, key) == number(mine, key)))
      refuse(key, text("this executable was compiled for ", mine[key].dump()),
             "compile with the adapter's --lora");
  // What is absent is as PEFT has it by default: off.
  auto isOn = [&](const Json &json, const char *key) {
    return json.contains(key) && !json[key].is_null() && json[key] != Json(false) &&
           !((json[key].is_object() || json[key].is_array()) && json[key].empty());
  };
  for (const char *key : {"use_rslora", "use_dora"})
    if (isOn(theirs, key) != isOn(mine, key))
      refuse(key, text("this executable was compiled for ", mine[key].dump()), "compile with the adapter's --lora");
  auto namesIn = [&](const Json &json) {
    std::set<std::string> names;
    if (isOn(json, "modules_to_save"))
      for (const Json &name : json["modules_to_save"])
        names.insert(name.is_string() ? name.get<std::string>() : name.dump());
    return names;
  };
  if (namesIn(theirs) != namesIn(mine))
    refuse("modules_to_save", text("this executable was compiled for ", mine["modules_to_save"].dump()),
           "compile with the adapter's --lora");
  for (const char *key : {"rank_pattern", "alpha_pattern", "trainable_token_indices", "lora_bias", "layer_replication",
                          "alora_invocation_tokens", "use_qalora", "use_bdlora"})
    if (isOn(theirs, key))
      refuse(key, "adapters here are those of LoRA with one rank and one alpha",
             "train the adapter without it");
  // With these PEFT takes from the base's weights what it puts into the adapter. Converted adapters say true.
  if (theirs.contains("init_lora_weights") && theirs["init_lora_weights"].is_string())
    for (const char *method : {"pissa", "olora", "corda", "loftq"})
      if (theirs["init_lora_weights"].get<std::string>().rfind(method, 0) == 0)
        refuse("init_lora_weights", "such an adapter belongs to a base whose weights were changed for it",
               "convert it in PEFT, save_pretrained(DIR, path_initial_model_for_weight_conversion=..)");
  if (theirs.contains("bias") && theirs["bias"] != "none")
    refuse("bias", "biases are not trained beside adapters here", "train the adapter with \"none\"");
  if (theirs.contains("peft_type") && theirs["peft_type"] != "LORA")
    refuse("peft_type", "LORA is what is read", "name an adapter of LoRA");
}

//===--- merging ------------------------------------------------------------------===//

static constexpr char weightEnding[] = ".weight";

namespace {
/// A matrix on rank 0.
struct Matrix {
  std::vector<int64_t> shape;
  std::vector<float> elements;
};
} // namespace

static double scaleOf(const Plan &plan) {
  Json config = configOf(plan.adapterConfig.value_or("{}"), "the plan's adapter_config");
  double rank = config.value("r", 1.0), alpha = config.value("lora_alpha", 1.0);
  return alpha / (config.value("use_rslora", false) ? std::sqrt(rank) : rank);
}

static Matrix gatherMatrix(MwContext &context, const VariableAddresses &addresses,
                           const FileTensor &tensor, GatherBuffers &buffers) {
  Matrix matrix{tensor.shape, {}};
  gatherTensor(context, addresses, tensor, buffers, [&](const float *elements, int64_t count) {
    if (elements)
      matrix.elements.insert(matrix.elements.end(), elements, elements + count);
  });
  return matrix;
}

/// The rows of a weight W + scale B A with magnitudes (DoRA).
struct WeightRows {
  Matrix magnitudes;
  std::vector<double> squares; ///< of their norms
};

/// Adds scale B A to elements [begin, begin + count) of a weight of `shape`, which a file has as
/// [out, in] or, transposed, as [in, out].
static void addProduct(const Matrix &a, const Matrix &b, double scale, bool transposed,
                       const std::vector<int64_t> &shape, int64_t begin, std::vector<float> &elements) {
  int64_t columns = shape[1], rank = a.shape[0], in = a.shape[1];
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t row = (begin + int64_t(i)) / columns, column = (begin + int64_t(i)) % columns;
    const float *ofB = b.elements.data() + (transposed ? column : row) * rank;
    const float *ofA = a.elements.data() + (transposed ? row : column);
    double sum = 0;
    for (int64_t r = 0; r < rank; ++r)
      sum += double(ofB[r]) * double(ofA[r * in]);
    elements[i] = float(double(elements[i]) + scale * sum);
  }
}

int64_t meshwright::mergedBytes(const Plan &plan) {
  int64_t bytes = 0;
  for (const FileTensor &tensor : fileTensors(plan, WeightKind::Parameters))
    bytes += tensor.bytes();
  return bytes;
}

/// Visits elements [begin, begin + elements.size()) of a weight whose file has them as `shape`, with their rows.
template <typename Visit>
static void forEachInRow(bool transposed, const std::vector<int64_t> &shape, int64_t begin,
                         std::vector<float> &elements, Visit visit) {
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t row = (begin + int64_t(i)) / shape[1], column = (begin + int64_t(i)) % shape[1];
    visit(elements[i], size_t(transposed ? column : row));
  }
}

void meshwright::saveMerged(MwContext &context, const VariableAddresses &addresses,
                            const std::string &directory) {
  ActivityScope activity(context.status, "saving the merged model");
  const Plan &plan = context.plan;
  double scale = scaleOf(plan);
  std::vector<FileTensor> tensors = fileTensors(plan, WeightKind::Parameters);
  std::map<std::string, const FileTensor *> adapters;
  std::vector<FileTensor> adapterTensors = fileTensors(plan, WeightKind::Adapters);
  for (const FileTensor &tensor : adapterTensors)
    adapters[tensor.name] = &tensor;
  std::unique_ptr<SafeTensorsWriter> writer;
  if (context.rank() == 0) {
    checkSpace(directory, mergedBytes(plan), "the merged model");
    std::vector<SafeTensorsWriter::Entry> entries;
    for (const FileTensor &tensor : tensors)
      entries.push_back({savedName(context, tensor), tensor.shape});
    writer = std::make_unique<SafeTensorsWriter>(directory + "/model.safetensors", entries);
  }
  Rounds rounds(*context.world, mergedBytes(plan));
  GatherBuffers buffers;
  for (const FileTensor &tensor : tensors) {
    std::string stem = tensor.name;
    if (size_t at = stem.rfind(weightEnding); at != std::string::npos)
      stem.resize(at);
    auto found = adapters.find(adapterPrefix + stem + ".lora_A.weight");
    Matrix a, b;
    WeightRows rows;
    bool transposed = tensor.parts.front().first->storage.transpose;
    if (found != adapters.end()) {
      a = gatherMatrix(context, addresses, *found->second, buffers);
      b = gatherMatrix(context, addresses, *adapters.at(adapterPrefix + stem + ".lora_B.weight"), buffers);
    }
    auto magnitudes = adapters.find(adapterPrefix + stem + ".lora_magnitude_vector");
    bool isDecomposed = magnitudes != adapters.end();
    if (isDecomposed) {
      rows.magnitudes = gatherMatrix(context, addresses, *magnitudes->second, buffers);
      rows.squares.resize(size_t(magnitudes->second->shape[0]));
    }
    // The norms of whole rows are known once all elements have been seen.
    for (bool isLast : isDecomposed ? std::vector<bool>{false, true} : std::vector<bool>{true}) {
      int64_t begin = 0;
      std::vector<float> merged;
      gatherTensor(context, addresses, tensor, buffers, [&](const float *elements, int64_t count) {
        if (writer) {
          merged.assign(elements, elements + count);
          if (!a.elements.empty())
            addProduct(a, b, scale, transposed, tensor.shape, begin, merged);
          if (isDecomposed)
            forEachInRow(transposed, tensor.shape, begin, merged, [&](float &element, size_t row) {
              if (isLast)
                element = float(double(element) * double(rows.magnitudes.elements[row]) / std::sqrt(rows.squares[row]));
              else
                rows.squares[row] += double(element) * double(element);
            });
          if (isLast)
            writer->write(merged.data(), count);
        }
        begin += count;
        if (isLast)
          rounds.done(count * 4);
      });
    }
  }
  if (writer) {
    writer->finish();
    OutputFile config(directory + (isConfig(plan.config) ? "/config.json" : "/model.mlir"));
    config.write(plan.config);
    config.sync();
    config.close();
  }
  rounds.finish();
  context.world->barrier();
}
