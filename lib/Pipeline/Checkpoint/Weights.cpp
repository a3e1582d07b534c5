//===- Weights.cpp - checkpoint convert and merge -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Folders.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

using namespace meshwright;
using namespace meshwright::checkpoint;

/// The number behind a flag with a unit such as 5GB, in bytes; 0 where there is none.
static int64_t bytesOfText(const std::string &flag, const std::string &word) {
  if (word.empty())
    return 0;
  double number = 0;
  auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  std::string unit(static_cast<const char *>(stop), word.data() + word.size());
  static const std::pair<const char *, double> units[] = {
      {"", 1},       {"KB", 1e3},   {"MB", 1e6},       {"GB", 1e9},
      {"KiB", 1024}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  for (auto [name, factor] : units)
    if (error == std::errc() && unit == name && number * factor >= 1)
      return int64_t(number * factor);
  fail(flag, " ", word, ": it must be a number of bytes, such as 5GB or 500MiB");
}

static ElementType typeOfText(const std::string &word) {
  for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::F16})
    if (word == nameOf(type))
      return type;
  fail("--dtype ", word, ": it is one of f32|bf16|f16");
}

/// `config`, which says that weights are of `type` where it says anything of it.
static std::string configOf(const std::string &config, ElementType type) {
  Json json = Json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return config; // With numbers that JSON does not have.
  const char *name = type == ElementType::F32 ? "float32" : type == ElementType::BF16 ? "bfloat16" : "float16";
  bool changed = false;
  for (const char *key : {"torch_dtype", "dtype"})
    if (json.contains(key) && json[key].is_string() && json[key] != name) {
      json[key] = name;
      changed = true;
    }
  return changed ? json.dump(2) + "\n" : config;
}

/// Writes elements as `type`, which must hold them.
static void writeAs(SafeTensorsWriter &writer, ElementType type, const std::string &name, const float *values, int64_t count) {
  if (type == ElementType::F32)
    return writer.write(values, count);
  std::vector<uint16_t> narrow(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    narrow[size_t(i)] = type == ElementType::BF16 ? floatToBf16(values[i]) : floatToF16(values[i]);
    float back = type == ElementType::BF16 ? bf16ToFloat(narrow[size_t(i)]) : f16ToFloat(narrow[size_t(i)]);
    if (std::isfinite(values[i]) && !std::isfinite(back))
      fail("--dtype ", nameOf(type), ": tensor ", name, " has the value ", values[i], ", which is too large for it: give bf16 or f32");
  }
  writer.write(narrow.data(), count);
}

namespace {
/// A tensor that is written.
struct Weight {
  std::string name; ///< by which readers find it
  SafeTensorsWriter::Entry entry;
};
} // namespace

/// Writes these tensors into one file, or into several of `shardBytes` at most, with the index that names
/// them. `values` gives the elements of a tensor to its argument, part by part.
template <typename Values>
static int writeWeights(const NewFolder &folder, const std::vector<Weight> &weights, int64_t shardBytes,
                        Values values) {
  auto bytesIn = [](const SafeTensorsWriter::Entry &entry) { return bytesOf(entry.type) * elementsIn(entry.shape); };
  std::vector<std::vector<SafeTensorsWriter::Entry>> shards(1);
  int64_t open = 0, total = 0;
  for (const auto &[name, entry] : weights) {
    if (shardBytes && open && open + bytesIn(entry) > shardBytes) {
      shards.emplace_back();
      open = 0;
    }
    shards.back().push_back(entry);
    open += bytesIn(entry);
    total += bytesIn(entry);
  }
  Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", Json::object()}};
  auto next = weights.begin();
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    if (shards.size() == 1)
      snprintf(name, sizeof(name), "%s", weightsName);
    SafeTensorsWriter writer(folder.file(name), shards[i]);
    for (const SafeTensorsWriter::Entry &entry : shards[i]) {
      index["weight_map"][entry.name] = name;
      if (elementsIn(entry.shape) == 0)
        writer.write(nullptr, 0);
      values((next++)->name, [&](const float *part, int64_t count) { writeAs(writer, entry.type, entry.name, part, count); });
    }
    writer.finish();
  }
  if (shards.size() > 1)
    folder.write(std::string(weightsName) + ".index.json", index.dump(2) + "\n");
  return int(shards.size());
}

/// The weights of `folder` in `file`, which are written as `type`. An Error where it has adapters.
static std::vector<Weight> weightsOf(const Folder &folder, const TensorFile &file, ElementType type) {
  if (folder.weights().name == adaptersName)
    fail(folder.path, " has adapters alone: merge them into their model first, with an executable's --resume ", folder.path,
         " --save-merged DIR");
  std::vector<Weight> weights;
  for (const std::string &name : file.reader->names())
    weights.push_back({name, {writtenName(*file.reader, name), file.reader->find(name)->shape, type}});
  return weights;
}

static void copyModel(const Folder &from, const NewFolder &to, ElementType type) {
  to.copyCompanions(from);
  for (const std::string &name : from.companions)
    if (name == "config.json") {
      std::ifstream file(from.path + "/" + name, std::ios::binary);
      std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      to.write(name, configOf(content, type));
    }
}

bool checkpoint::convert(const Arguments &arguments, std::ostream &os) {
  ElementType type = typeOfText(arguments.value("--dtype", "f32"));
  int64_t shardBytes = bytesOfText("--shard-size", arguments.value("--shard-size"));
  Folder folder = openFolder(arguments.paths[0]);
  const TensorFile *file = &folder.weights();
  if (arguments.has("--ema") && !(file = folder.averages()))
    fail("--ema: ", folder.path, " has no averages of weights, ", averagesName, ": leave --ema out");
  std::vector<Weight> weights = weightsOf(folder, *file, type);
  NewFolder output(arguments.value("-o"));
  int shards = writeWeights(output, weights, shardBytes,
                            [&](const std::string &name, auto take) { forElements(*file->reader, name, take); });
  copyModel(folder, output, type);
  output.finish();
  if (std::vector<std::string> others = file->reader->otherNames(); !others.empty())
    os << "left out: " << others.size() << " tensors of masks or integers, such as " << others.front() << "\n";
  os << arguments.value("-o") << ": " << weights.size() << " tensors in " << nameOf(type) << ", " << shards
     << (shards == 1 ? " file\n" : " files and an index\n");
  return false;
}

/// Shares of the folders in the average, which add up to 1.
static std::vector<double> sharesOf(const Arguments &arguments) {
  size_t count = arguments.paths.size();
  std::vector<double> shares(count, 1);
  if (arguments.has("--weights")) {
    shares.clear();
    std::string words = arguments.value("--weights") + ",";
    for (size_t begin = 0, end; (end = words.find(',', begin)) != words.npos; begin = end + 1) {
      double share = 0;
      auto [stop, error] = std::from_chars(words.data() + begin, words.data() + end, share);
      if (error != std::errc() || stop != words.data() + end || !(share >= 0) || std::isinf(share))
        fail("--weights ", arguments.value("--weights"), ": give a number of at least 0 for each checkpoint, such as 1,2");
      shares.push_back(share);
    }
    if (shares.size() != count)
      fail("--weights ", arguments.value("--weights"), " has ", shares.size(), " numbers for ", count, " checkpoints: give one each");
  }
  double sum = 0;
  for (double share : shares)
    sum += share;
  if (!(sum > 0))
    fail("--weights ", arguments.value("--weights"), " are all 0: one must be more");
  for (double &share : shares)
    share /= sum;
  return shares;
}

bool checkpoint::merge(const Arguments &arguments, std::ostream &os) {
  std::vector<double> shares = sharesOf(arguments);
  std::vector<Folder> folders;
  for (const std::string &path : arguments.paths)
    folders.push_back(openFolder(path));
  const Folder &first = folders.front();
  std::vector<Weight> weights = weightsOf(first, first.weights(), ElementType::F32);
  for (const Folder &other : folders) {
    for (const auto &[name, entry] : weightsOf(other, other.weights(), ElementType::F32))
      if (!first.weights().reader->find(name))
        fail(other.path, " has a tensor ", name, ", but ", first.path, " has none: merge checkpoints of one model");
    for (const auto &[name, entry] : weights) {
      const SafeTensorsReader::Tensor *tensor = other.weights().reader->find(name);
      if (!tensor)
        fail(other.path, " has no tensor ", name, ", but ", first.path, " has one: merge checkpoints of one model");
      if (tensor->shape != entry.shape)
        fail("tensor ", name, " is ", shapeText(entry.shape), " in ", first.path, " and ", shapeText(tensor->shape), " in ",
             other.path, ": merge checkpoints of one model");
    }
  }
  NewFolder output(arguments.value("-o"));
  writeWeights(output, weights, 0, [&](const std::string &name, auto take) {
    for (const Folder &folder : folders)
      folder.weights().reader->verify(*folder.weights().reader->find(name), name);
    constexpr int64_t block = 1 << 20;
    std::vector<float> part, result;
    std::vector<double> sums;
    int64_t all = elementsIn(first.weights().reader->find(name)->shape);
    for (int64_t begin = 0; begin < all; begin += block) {
      int64_t count = std::min(block, all - begin);
      sums.assign(size_t(count), 0);
      part.resize(size_t(count));
      for (size_t i = 0; i < folders.size(); ++i) {
        readElements(*folders[i].weights().reader->find(name), begin, count, part.data());
        for (int64_t j = 0; j < count; ++j)
          sums[size_t(j)] += shares[i] * part[size_t(j)];
      }
      result.assign(sums.begin(), sums.end());
      take(result.data(), count);
    }
  });
  copyModel(first, output, ElementType::F32);
  output.finish();
  os << arguments.value("-o") << ": " << weights.size() << " tensors, averages of " << folders.size() << " checkpoints\n";
  return false;
}
