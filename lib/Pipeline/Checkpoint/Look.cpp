//===- Look.cpp - checkpoint inspect, verify and diff ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Folders.h"

#include "common/checkpoint/Checksum.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

using namespace meshwright;
using namespace meshwright::checkpoint;
namespace fs = std::filesystem;

//===--- inspect ---------------------------------------------------------------===//

/// "step 20, 160 sequences, gpt2, .." of the state, as far as it says so.
static std::string stateWords(const Json &state) {
  auto say = [&](const char *key, const char *before, const char *after) {
    auto found = state.find(key);
    if (found == state.end() || !found->is_primitive())
      return std::string();
    return text(before, found->is_string() ? found->get<std::string>() : found->dump(), after);
  };
  return say("step", "step ", "") + say("position", ", ", " sequences read") + say("batch", ", batch ", "") +
         say("sequence", ", sequences of ", " tokens") + say("model", ", ", "") + say("optimizer", ", ", "") +
         say("mesh", ", saved by ", "");
}

/// The hash by which runs say what they compute, as executables print it.
static std::string numbersHash(const Json &numbers) {
  std::map<std::string, std::string> sorted;
  for (const auto &[name, value] : numbers.items())
    sorted[name] = value.is_string() ? value.get<std::string>() : value.dump();
  RunningChecksum sum;
  for (const auto &[name, value] : sorted) {
    std::string line = name + '=' + value + '\n';
    sum.add(line.data(), line.size());
  }
  return sum.take().substr(0, 16);
}

bool checkpoint::inspect(const Arguments &arguments, std::ostream &os) {
  for (const std::string &path : arguments.paths) {
    Folder folder = openFolder(path, Completeness::LookAtAny);
    os << path << ": " << (folder.state ? stateWords(*folder.state) : "weights") << "\n";
    if (!folder.missing.empty())
      os << "  not complete: " << folder.missing << "\n";
    if (folder.state && folder.state->contains("flags"))
      for (const auto &[name, value] : (*folder.state)["flags"].items())
        os << "  " << name << " " << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
    if (folder.state && folder.state->contains("numbers"))
      os << "  numbers " << numbersHash((*folder.state)["numbers"]) << "\n";
    for (const TensorFile &file : folder.files) {
      std::vector<std::string> names = file.reader->names();
      std::set<std::string> types;
      for (const std::string &name : names)
        types.insert(nameOf(file.reader->find(name)->type));
      os << "  " << file.name << ": " << names.size() << (names.size() == 1 ? " tensor, " : " tensors, ")
         << grouped(uint64_t(file.elements())) << " elements";
      for (const std::string &type : types)
        os << ", " << type;
      os << (file.reader->id().empty() ? ", without checksums" : "") << "\n";
      if (arguments.has("--tensors"))
        for (const std::string &name : names)
          os << "    " << name << " " << nameOf(file.reader->find(name)->type) << " "
             << shapeText(file.reader->find(name)->shape) << "\n";
    }
  }
  return false;
}

//===--- verify ----------------------------------------------------------------===//

/// The checkpoints that `path` means: all of a folder of --save, or itself.
static std::vector<std::string> foldersAt(const std::string &path) {
  std::vector<std::string> found;
  std::error_code error;
  if (!fs::exists(path, error))
    fail(path, ": there is no such file or folder; name a checkpoint, a folder of --save, or a safetensors file");
  if (fs::is_directory(path, error) && !fs::exists(path + "/state.json", error))
    for (const fs::directory_entry &entry : fs::directory_iterator(path))
      if (entry.path().filename().string().rfind("step-", 0) == 0)
        found.push_back(path + "/" + entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found.empty() ? std::vector{path} : found;
}

/// Verifies all of the folder at `path`. Returns what it has, in words; an Error says what is wrong.
static std::string verified(const std::string &path) {
  Folder folder = openFolder(path, Completeness::LookAtAny);
  if (!folder.state && !folder.missing.empty())
    fail(folder.missing);
  if (folder.state) {
    const Json &state = *folder.state;
    // Version 2 had none.
    if (!state.contains("checksum") && state.value("version", Json()) == 2)
      return "it is of a version without checksums: damage would not be found";
    checkSealed(folder);
  }
  int64_t tensors = 0, bytes = 0;
  for (const TensorFile &file : folder.files) {
    if (file.reader->id().empty())
      return text("its ", file.name, " has no checksums, as other tools write it: damage would not be found");
    for (const std::string &name : file.reader->names()) {
      bool isFinite = true;
      forElements(*file.reader, name, [&](const float *values, int64_t count) {
        isFinite &= std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
      });
      if (!isFinite)
        fail(file.name, ": tensor ", name, " has values that are infinite or no numbers");
      ++tensors;
      bytes += file.reader->find(name)->bytes;
    }
  }
  return text("whole: ", tensors, " tensors, ", grouped(uint64_t(bytes)), " bytes");
}

bool checkpoint::verify(const Arguments &arguments, std::ostream &os) {
  bool isDamaged = false;
  for (const std::string &given : arguments.paths)
    for (const std::string &path : foldersAt(given))
      try {
        os << path << ": " << verified(path) << "\n";
      } catch (const Error &error) {
        isDamaged = true;
        os << path << ": damaged: " << error.what() << "\n";
      }
  return isDamaged;
}

//===--- diff ------------------------------------------------------------------===//

namespace {
/// A tensor that two folders have otherwise.
struct Difference {
  std::string words;
  double relative; ///< infinite where the tensors cannot be compared
};
} // namespace

static std::vector<Difference> differences(const TensorFile &a, const TensorFile &b) {
  std::vector<Difference> found;
  constexpr double most = HUGE_VAL;
  std::vector<std::string> ofA = a.reader->names(), ofB = b.reader->names();
  std::set<std::string> names(ofA.begin(), ofA.end());
  names.insert(ofB.begin(), ofB.end());
  for (const std::string &name : names) {
    const SafeTensorsReader::Tensor *left = a.reader->find(name), *right = b.reader->find(name);
    if (!left || !right) {
      found.push_back({text(name, ": only in the ", left ? "first" : "second"), most});
      continue;
    }
    if (left->shape != right->shape) {
      found.push_back({text(name, ": ", shapeText(left->shape), " and ", shapeText(right->shape)), most});
      continue;
    }
    b.reader->verify(*right, name);
    double largest = 0, squares = 0, change = 0;
    int64_t begin = 0, differ = 0;
    std::vector<float> others;
    forElements(*a.reader, name, [&](const float *values, int64_t count) {
      others.resize(size_t(count));
      readElements(*right, begin, count, others.data());
      begin += count;
      for (int64_t i = 0; i < count; ++i) {
        double distance = std::abs(double(values[i]) - double(others[size_t(i)]));
        // Numbers that are no numbers differ from all.
        differ += !(distance == 0);
        largest = std::isnan(distance) ? most : std::max(largest, distance);
        squares += double(values[i]) * values[i];
        change += distance * distance;
      }
    });
    double relative = squares > 0 ? std::sqrt(change / squares) : most;
    if (differ)
      found.push_back({text(name, ": ", grouped(uint64_t(differ)), " of ", grouped(uint64_t(begin)),
                            " elements differ, by ", largest, " at most; the difference's norm is ", relative,
                            " of the tensor's"),
                       relative});
    else if (left->type != right->type)
      found.push_back({text(name, ": equal, as ", nameOf(left->type), " and ", nameOf(right->type)), 0});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Difference &x, const Difference &y) { return x.relative > y.relative; });
  return found;
}

/// Prints the keys of two states that differ. Returns how many do.
static int diffStates(const Json &a, const Json &b, std::ostream &os) {
  Json keys = a;
  keys.update(b);
  int differ = 0;
  for (const auto &[key, ignored] : keys.items()) {
    // These follow from the rest, or from how the files are divided.
    if (key == "checksum" || key == "files" || key == "version" || key == "commit" || a.value(key, Json()) == b.value(key, Json()))
      continue;
    ++differ;
    if (key == "flags" || key == "data" || key == "numbers") {
      os << "state.json: " << key << ":\n";
      diffStates(a.value(key, Json::object()), b.value(key, Json::object()), os);
      continue;
    }
    os << "state.json: " << key << " is " << a.value(key, Json()).dump() << " and " << b.value(key, Json()).dump() << "\n";
  }
  return differ;
}

bool checkpoint::diff(const Arguments &arguments, std::ostream &os) {
  Folder a = openFolder(arguments.paths[0]), b = openFolder(arguments.paths[1]);
  size_t shown = arguments.has("--all") ? SIZE_MAX : 10;
  bool differ = false;
  if (a.state && b.state)
    differ |= diffStates(*a.state, *b.state, os) > 0;
  std::set<std::string> names;
  for (const Folder *folder : {&a, &b})
    for (const TensorFile &file : folder->files)
      names.insert(file.name);
  for (const std::string &name : names) {
    const TensorFile *left = a.file(name), *right = b.file(name);
    if (!left || !right) {
      os << name << ": only in " << (left ? a : b).path << "\n";
      differ = true;
      continue;
    }
    std::vector<Difference> found = differences(*left, *right);
    differ |= !found.empty();
    os << name << ": " << (found.empty() ? "equal" : text(found.size(), found.size() == 1 ? " tensor differs" : " tensors differ"))
       << "\n";
    for (size_t i = 0; i < std::min(shown, found.size()); ++i)
      os << "  " << found[i].words << "\n";
    if (found.size() > shown)
      os << "  and " << found.size() - shown << " more: --all shows them\n";
  }
  return differ;
}
