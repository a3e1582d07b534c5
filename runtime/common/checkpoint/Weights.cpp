//===- Weights.cpp - filling a rank's variables ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Weights.h"

#include "common/checkpoint/Finite.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/checkpoint/TensorCopy.h"
#include "common/monitor/Error.h"
#include "common/monitor/Rounds.h"
#include "common/plan/Plan.h"
#include "common/plan/Sharding.h"
#include "meshwright/runtime/Int8Weights.h"
#include "meshwright/runtime/Normal.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>

using namespace meshwright;

static_assert(int(ElementType::I8) == MW_I8);

namespace {
/// This rank's part of one tensor of a variable.
struct Piece {
  const Variable *variable;
  int64_t number;             ///< of the tensor, global
  std::vector<int64_t> begin; ///< within the tensor, global
  std::vector<int64_t> extent;
  std::vector<int64_t> localStrides;
  char *data;
  int64_t bytes;    ///< with padding
  std::string name; ///< of the tensor in the file
};

/// So much is read before it is handed on.
constexpr int64_t bytesAtOnce = Rounds::part;
} // namespace

std::string meshwright::tensorName(const Variable &variable, int64_t number, WeightKind kind) {
  std::string name = storageName(variable, number);
  if (kind == WeightKind::OptimizerStates)
    return name;
  if (variable.isAverage())
    name.resize(name.size() - variable.state.size() - 1);
  if (kind == WeightKind::Parameters && variable.isAdapter)
    name.erase(0, std::strlen(adapterPrefix));
  return name;
}

/// Whether `variable` is filled with what the file of these has: averages of parameters begin as these.
static bool isFilledFrom(const Variable &variable, WeightKind kind) {
  if (!variable.isAverage() || kind == WeightKind::OptimizerStates)
    return isOf(variable, kind);
  return variable.isAdapter == (kind == WeightKind::Adapters) || variable.isOfModel;
}

/// Of the variables that `isWanted` says.
template <typename IsWanted>
static std::vector<Piece> piecesOf(const WeightTarget &target, WeightKind kind, IsWanted isWanted) {
  std::vector<Piece> result;
  for (const Variable &variable : target.plan.variables) {
    if (!isWanted(variable))
      continue;
    Box box = shardOf(target.plan, variable, target.rank);
    std::vector<int64_t> strides = denseStrides(variable.localShape);
    size_t skip = variable.numbered;
    for (int64_t number : tensorsIn(variable, box)) {
      Piece piece{&variable,
                  number,
                  {box.begin.begin() + skip, box.begin.end()},
                  {box.extent.begin() + skip, box.extent.end()},
                  {strides.begin() + skip, strides.end()},
                  target.addresses.of(variable) +
                      tensorOffset(variable, box, number) * bytesOf(variable.type),
                  bytesOf(variable.type),
                  tensorName(variable, number, kind)};
      for (size_t d = skip; d < variable.localShape.size(); ++d)
        piece.bytes *= variable.localShape[d];
      result.push_back(std::move(piece));
    }
  }
  return result;
}

static std::vector<Piece> pieces(const WeightTarget &target, WeightKind kind) {
  return piecesOf(target, kind, [&](const Variable &variable) { return isFilledFrom(variable, kind); });
}

/// Copies numbers of a weight or of a state to where `variable` has them.
static void copyTo(const Variable &variable, const std::vector<int64_t> &extent,
                   const TensorView &from, const TensorView &to) {
  bool upper = variable.isHalved && variable.role == Variable::Parameter;
  (upper ? copyUpperHalves : copyTensor)(extent, from, to);
}

/// Calls body(i) for [first, last) on the rank's threads. What the first that fails throws, the
/// caller gets.
template <typename Body>
static void inParallel(const WeightTarget &target, size_t first, size_t last, Body body) {
  std::exception_ptr error;
  size_t failed = last;
  std::mutex mutex;
#pragma omp parallel for num_threads(target.threads) schedule(dynamic)
  for (size_t i = first; i < last; ++i) {
    try {
      body(i);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (i < failed)
        error = std::current_exception();
      failed = std::min(failed, i);
    }
  }
  if (error)
    std::rethrow_exception(error);
}

/// Calls body(first, last) for runs of `count` items with about `bytesAtOnce` bytes each.
template <typename BytesOf, typename Body>
static void inRuns(const WeightTarget &target, size_t count, BytesOf bytesOf, Body body) {
  for (size_t first = 0, last; first < count; first = last) {
    int64_t bytes = bytesOf(first);
    for (last = first + 1; last < count && bytes + bytesOf(last) <= bytesAtOnce; ++last)
      bytes += bytesOf(last);
    body(first, last);
    if (target.rounds)
      target.rounds->done(bytes);
  }
}

/// A tensor of a file, and how large it is there in f32.
struct SizedName {
  std::string name;
  int64_t bytes;
};

/// The file tensors that this rank verifies: of all that the ranks of `target.sharing` read,
/// about as many bytes as each other one. The same on each of them, whatever the file.
static std::vector<SizedName> verifiedHere(const WeightTarget &target, WeightKind kind) {
  std::vector<int> sharing = target.sharing;
  if (sharing.empty())
    sharing = {int(target.rank)};
  std::map<std::string, int64_t> read;
  for (const Variable &variable : target.plan.allVariables) {
    if (!isOf(variable, kind))
      continue;
    std::set<int64_t> numbers;
    for (int rank : sharing) {
      Box box = shardOf(target.plan, variable, rank);
      if (target.plan.programOf(rank) == variable.program && box.elements() > 0)
        for (int64_t number : tensorsIn(variable, box))
          numbers.insert(number);
    }
    int64_t bytes = 4;
    for (int64_t size : storageLayout(variable).fileShape)
      bytes *= size;
    for (int64_t number : numbers)
      read[tensorName(variable, number, kind)] = bytes;
  }
  std::vector<SizedName> tensors;
  for (const auto &[name, bytes] : read)
    tensors.push_back({name, bytes});
  // The largest first, each to whoever has the least.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const SizedName &a, const SizedName &b) { return a.bytes > b.bytes; });
  std::vector<int64_t> loads(sharing.size());
  std::vector<SizedName> mine;
  for (const SizedName &tensor : tensors) {
    auto least = std::min_element(loads.begin(), loads.end());
    *least += tensor.bytes;
    if (sharing[size_t(least - loads.begin())] == target.rank)
      mine.push_back(tensor);
  }
  return mine;
}

int64_t meshwright::weightBytes(const WeightTarget &target) {
  int64_t bytes = 0;
  for (WeightKind kind :
       {WeightKind::Parameters, WeightKind::Adapters, WeightKind::OptimizerStates}) {
    for (const Piece &piece : pieces(target, kind))
      bytes += piece.bytes;
    for (const SizedName &tensor : verifiedHere(target, kind))
      bytes += tensor.bytes;
  }
  return bytes;
}

/// Elements [first, first + count) of the normal values under `key`, times `scale`.
/// The vector units may differ; the results do not (see Normal.h).
__attribute__((target_clones("default", "avx2", "avx512f"))) static void
fillNormal(std::array<uint32_t, 2> key, uint64_t first, int64_t count, float scale, float *out) {
  int64_t i = 0;
  for (; i < count && (first + uint64_t(i)) % 4; ++i)
    out[i] = scale * normalValue(key, first + uint64_t(i));
  int64_t blocks = (count - i) / 4;
  uint64_t firstBlock = (first + uint64_t(i)) / 4;
  for (int64_t block = 0; block < blocks; ++block)
    normalBlock(key, firstBlock + uint64_t(block), out + i + 4 * block);
  for (int64_t j = i; j < i + 4 * blocks; ++j)
    out[j] *= scale;
  for (i += 4 * blocks; i < count; ++i)
    out[i] = scale * normalValue(key, first + uint64_t(i));
}

/// Rows [begin, end) of a piece seen as (all outer dimensions) x (innermost one).
static void initializeRows(const Piece &piece, std::array<uint32_t, 2> key, int64_t begin,
                           int64_t end) {
  const Variable &variable = *piece.variable;
  std::vector<int64_t> tensorShape(variable.shape.begin() + variable.numbered, variable.shape.end());
  std::vector<int64_t> globalStrides = denseStrides(tensorShape);
  size_t rank = tensorShape.size();
  int64_t columns = rank ? piece.extent[rank - 1] : 1;
  std::vector<float> values(static_cast<size_t>(columns));
  for (int64_t row = begin; row < end; ++row) {
    int64_t global = rank ? piece.begin[rank - 1] : 0, local = 0, rest = row;
    for (size_t d = rank ? rank - 1 : 0; d-- > 0; rest /= piece.extent[d]) {
      int64_t index = rest % piece.extent[d];
      global += (piece.begin[d] + index) * globalStrides[d];
      local += index * piece.localStrides[d];
    }
    char *address = piece.data + local * bytesOf(variable.type);
    bool direct = variable.type == ElementType::F32;
    float *out = direct ? reinterpret_cast<float *>(address) : values.data();
    if (variable.init.kind == Initializer::Normal)
      fillNormal(key, uint64_t(global), columns, variable.init.value, out);
    else if (variable.init.kind == Initializer::Uniform)
      for (int64_t i = 0; i < columns; ++i)
        out[i] = variable.init.value * uniformValue(key, uint64_t(global + i));
    else
      std::fill_n(out, columns, variable.init.value);
    if (!direct)
      copyTo(variable, {columns}, {ElementType::F32, out, {1}}, {variable.type, address, {1}});
  }
}

static std::array<uint32_t, 2> keyOf(const Piece &piece, uint64_t seed) {
  std::string name = piece.name;
  if (const auto &slice = piece.variable->storage.slice)
    name += text("[", slice->dim, ":", slice->begin + rowsAbove(*piece.variable, piece.number), "]");
  return initialKey(seed, name);
}

/// The weight whose rows the magnitudes of `variable` are of: it has their place in the model's files.
static const Variable &weightOf(const Plan &plan, const Variable &variable) {
  auto stemOf = [](const std::string &name) { return name.substr(0, name.rfind('.')); };
  auto isSameSlice = [](const std::optional<StorageSlice> &a, const std::optional<StorageSlice> &b) {
    return a.has_value() == b.has_value() && (!a || (a->begin == b->begin && a->runs == b->runs));
  };
  std::string pattern = variable.storage.tensor;
  if (variable.isAverage())
    pattern = stemOf(pattern);
  std::string wanted = stemOf(pattern).substr(std::strlen(adapterPrefix)) + ".weight";
  for (const Variable &weight : plan.allVariables)
    if (weight.role == Variable::Parameter && weight.storage.tensor == wanted &&
        weight.program == variable.program && isSameSlice(weight.storage.slice, variable.storage.slice))
      return weight;
  fail("plan: the magnitudes ", variable.name, " have no weight ", wanted);
}

/// As what `weight` is loaded: codes of 8 bits are made of numbers in f32.
static Variable asLoaded(const Variable &weight) {
  Variable loaded = weight;
  if (weight.isQuantized())
    loaded.type = ElementType::F32;
  return loaded;
}

/// Visits rows [begin, begin + count) of tensor `number` of a matrix, with all columns and in f32, which `fill` writes to
/// memory: visit(row - begin, numbers).
template <typename Fill, typename Visit>
static void forRows(const WeightTarget &target, const Variable &weight, int64_t number, int64_t begin, int64_t count,
                    Fill fill, Visit visit) {
  constexpr int64_t most = int64_t(1) << 20; // elements at once
  int64_t columns = weight.shape.back(), chunk = std::max<int64_t>(1, most / std::max<int64_t>(1, columns));
  Variable loaded = asLoaded(weight);
  std::string name = tensorName(weight, number, WeightKind::Parameters);
#pragma omp parallel for num_threads(target.threads) schedule(dynamic)
  for (int64_t first = 0; first < count; first += chunk) {
    int64_t rows = std::min(chunk, count - first);
    std::vector<char> bytes(static_cast<size_t>(rows * columns * bytesOf(loaded.type)));
    std::vector<float> values(static_cast<size_t>(rows * columns));
    fill(Piece{&loaded, number, {begin + first, 0}, {rows, columns}, {columns, 1}, bytes.data(), int64_t(bytes.size()), name});
    copyTensor({rows * columns}, {loaded.type, bytes.data(), {1}}, {ElementType::F32, values.data(), {1}});
    for (int64_t row = 0; row < rows; ++row)
      visit(first + row, values.data() + row * columns);
  }
}

static bool isFiniteInF16(float number) {
  uint16_t narrow = 0;
  copyTensor({1}, {ElementType::F32, &number, {1}}, {ElementType::F16, &narrow, {1}});
  return isFinite(ElementType::F16, reinterpret_cast<const char *>(&narrow), 1);
}

/// Fills this rank's part of a weight with the codes of its numbers, by rows of which it may have a part; whether all
/// numbers are finite.
template <typename Fill> static bool fillCodes(const WeightTarget &target, const Piece &piece, Fill fill) {
  if (elementsIn(piece.extent) == 0)
    return true;
  int64_t columns = piece.variable->shape.back();
  std::atomic<bool> areFinite = true;
  auto *codes = reinterpret_cast<int8_t *>(piece.data);
  forRows(target, *piece.variable, piece.number, piece.begin[0], piece.extent[0], fill, [&](int64_t row, const float *numbers) {
    if (!isFinite(ElementType::F32, reinterpret_cast<const char *>(numbers), columns))
      areFinite = false;
    float scale = scaleOfRow(numbers, columns);
    // Products compute in f16 with what the codes stand for.
    if (target.plan.precision == "fp16" && !isFiniteInF16(scale * largestCode))
      areFinite = false;
    for (int64_t i = 0; i < piece.extent[1]; ++i)
      codes[row * piece.localStrides[0] + i] = codeOf(numbers[piece.begin[1] + i], scale);
  });
  return areFinite;
}

/// Fills the scales of weights in 8 bits, which `fill` writes to memory.
template <typename Fill> static void fillScales(const WeightTarget &target, Fill fill) {
  auto isScale = [](const Variable &variable) { return variable.role == Variable::Scale; };
  for (const Piece &piece : piecesOf(target, WeightKind::Parameters, isScale)) {
    const Variable &weight = target.plan.parameter(piece.variable->of, piece.variable->program);
    auto *scales = reinterpret_cast<float *>(piece.data);
    forRows(target, weight, piece.number, piece.begin[0], piece.extent[0], fill, [&](int64_t row, const float *numbers) {
      scales[row * piece.localStrides[0]] = scaleOfRow(numbers, weight.shape.back());
    });
    if (target.filled)
      target.filled(*piece.variable, piece.data, piece.bytes);
  }
}

/// Replaces a row of numbers by those that programs compute with in place of them.
static void roundAsStored(const Plan &plan, float *row, int64_t columns) {
  float scale = scaleOfRow(row, columns);
  for (int64_t i = 0; i < columns; ++i)
    row[i] = float(codeOf(row[i], scale)) * scale;
  std::vector<uint16_t> narrow(static_cast<size_t>(columns));
  for (auto [name, type] : {std::pair("bf16", ElementType::BF16), {"fp16", ElementType::F16}})
    if (plan.precision == name) {
      copyTensor({columns}, {ElementType::F32, row, {1}}, {type, narrow.data(), {1}});
      copyTensor({columns}, {type, narrow.data(), {1}}, {ElementType::F32, row, {1}});
    }
}

/// Fills the magnitudes of adapters with the norms of the rows of their weights, which `fill` writes to memory.
template <typename Fill> static void fillRowNorms(const WeightTarget &target, Fill fill) {
  for (const Piece &piece : pieces(target, WeightKind::Adapters)) {
    if (piece.variable->init.kind != Initializer::RowNorms || piece.extent[0] == 0)
      continue;
    const Variable &weight = weightOf(target.plan, *piece.variable);
    int64_t columns = weight.shape.back();
    forRows(target, weight, piece.number, piece.begin[0], piece.extent[0], fill, [&](int64_t row, float *numbers) {
      if (weight.isQuantized())
        roundAsStored(target.plan, numbers, columns);
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i)
        sum += double(numbers[i]) * double(numbers[i]);
      auto norm = float(std::sqrt(sum));
      copyTo(*piece.variable, {1}, {ElementType::F32, &norm, {1}},
             {piece.variable->type, piece.data + row * piece.localStrides[0] * bytesOf(piece.variable->type), {1}});
    });
    if (target.filled)
      target.filled(*piece.variable, piece.data, piece.bytes);
  }
}

void meshwright::initializeWeights(const WeightTarget &target, uint64_t seed, WeightKind kind) {
  auto fill = [&](const Piece &rows) { initializeRows(rows, keyOf(rows, seed), 0, rows.extent[0]); };
  for (const Piece &piece : pieces(target, kind)) {
    const Variable &variable = *piece.variable;
    if (variable.init.kind == Initializer::Constant && variable.init.value == 0)
      continue; // The arena is zeroed.
    if (kind == WeightKind::Adapters && (variable.isOfModel || variable.init.kind == Initializer::RowNorms))
      continue; // They have been filled with the model's.
    if (kind == WeightKind::OptimizerStates && variable.isAverage())
      continue; // They begin as parameters.
    std::array<uint32_t, 2> key = keyOf(piece, seed);
    int64_t elements = 1;
    for (int64_t size : piece.extent)
      elements *= size;
    if (elements == 0)
      continue;
    int64_t rows = piece.extent.empty() ? 1 : elements / piece.extent.back();
    int64_t chunk = std::max<int64_t>(1, 65536 * rows / elements);
    if (variable.isQuantized()) {
      fillCodes(target, piece, fill);
    } else {
#pragma omp parallel for num_threads(target.threads) schedule(dynamic) if (elements > 65536)
      for (int64_t begin = 0; begin < rows; begin += chunk)
        initializeRows(piece, key, begin, std::min(rows, begin + chunk));
    }
    if (target.filled)
      target.filled(variable, piece.data, piece.bytes);
    if (target.rounds)
      target.rounds->done(piece.bytes);
  }
  if (kind == WeightKind::Parameters) {
    fillScales(target, fill);
    fillRowNorms(target, fill);
  }
}

/// Buffers that `transformers` once saved beside the weights, and the head of a
/// tied model, which is the embedding again.
static bool isKnownExtra(const std::string &name) {
  for (const char *ending : {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"})
    if (name.size() >= std::strlen(ending) &&
        name.compare(name.size() - std::strlen(ending), std::string::npos, ending) == 0)
      return true;
  return name == "lm_head.weight";
}

/// How the file says that the tensor `name` is quantized; empty if it does not.
static std::string quantizedAs(const SafeTensorsReader &file, const std::string &name) {
  if (std::string type = file.otherType(name); !type.empty())
    return "of type " + type;
  // What the common formats have beside a weight or in its place.
  std::string stem = name.substr(0, name.rfind(".weight"));
  for (const std::string &part :
       {name + "_scale_inv", name + "_scale", name + "_packed", name + ".absmax", stem + ".SCB",
        stem + ".qweight", stem + "_blocks"})
    if (file.find(part) || !file.otherType(part).empty())
      return "with " + part;
  return "";
}

/// Whether both hold the same numbers, of whatever type.
static bool areEqual(const SafeTensorsReader::Tensor &a, const SafeTensorsReader::Tensor &b) {
  if (a.shape != b.shape)
    return false;
  if (a.type == b.type && a.chunks.empty() && b.chunks.empty())
    return std::memcmp(a.data, b.data, size_t(a.bytes)) == 0;
  constexpr int64_t most = 1 << 20;
  std::vector<float> values[2] = {std::vector<float>(most), std::vector<float>(most)};
  int64_t count = a.bytes / bytesOf(a.type);
  for (int64_t i = 0; i < count; i += most) {
    int64_t part = std::min(most, count - i);
    for (const auto &pair : {std::pair(&a, &values[0]), {&b, &values[1]}}) {
      const SafeTensorsReader::Tensor &tensor = *pair.first;
      float *to = pair.second->data();
      forRuns(tensor, i, part, [&](const unsigned char *data, int64_t run, int64_t at) {
        copyTensor({run}, {tensor.type, const_cast<unsigned char *>(data), {1}}, {ElementType::F32, to + at, {1}});
      });
    }
    if (!std::equal(values[0].begin(), values[0].begin() + part, values[1].begin()))
      return false;
  }
  return true;
}

/// An Error if the file has a head of its own, which a language model that takes the embedding for
/// it would not read. A model written by hand may have no use for one.
static void checkTiedHead(const SafeTensorsReader &file, const Plan &plan,
                          const std::map<std::string, const SafeTensorsReader::Tensor *> &used,
                          const std::string &flag) {
  const std::string name = "lm_head.weight";
  const SafeTensorsReader::Tensor *head = file.find(name);
  if (!head || used.count(name) || !isConfig(plan.config))
    return;
  for (const auto &[_, tensor] : used)
    if (areEqual(*tensor, *head))
      return;
  fail(flag, " ", file.path(), ": ", name,
       " is not the embedding, which this model has for its head: compile with "
       "\"tie_word_embeddings\": false, or name a file without it");
}

static std::string
extraTensors(const SafeTensorsReader &file,
             const std::map<std::string, const SafeTensorsReader::Tensor *> &used) {
  int64_t count = 0;
  std::string first;
  std::set<const SafeTensorsReader::Tensor *> read;
  for (const auto &[_, tensor] : used)
    read.insert(tensor);
  for (const std::string &name : file.names())
    if (!read.count(file.find(name)) && !isKnownExtra(name) && count++ == 0)
      first = name;
  if (count == 0)
    return "";
  return text(file.path(), " has ", count, count == 1 ? " tensor" : " tensors",
              " that this model does not use (", first, count > 1 ? ", ...)" : ")");
}

/// Whether all values that were read are finite.
static bool readPiece(const SafeTensorsReader &file, const Piece &piece) {
  const auto *tensor = file.find(piece.name);
  if (!tensor)
    return true; // It may be missing, and stays zeros.
  ElementType type = piece.variable->type;
  // `part`, whose place is counted from `data`.
  auto read = [&](const StoredPart &part, const unsigned char *data) {
    auto *from = const_cast<unsigned char *>(data) + part.fileOffset * bytesOf(tensor->type);
    int64_t first = 0;
    for (size_t d = 0; d < part.first.size(); ++d)
      first += part.first[d] * piece.localStrides[d];
    copyTo(*piece.variable, part.extent, {tensor->type, from, part.fileStrides},
           {type, piece.data + first * bytesOf(type), piece.localStrides});
  };
  for (const StoredPart &part : storedParts(*piece.variable, piece.begin, piece.extent, piece.number)) {
    if (tensor->chunks.empty())
      read(part, tensor->data);
    else if (elementsIn(part.extent) > 0)
      for (const SafeTensorsReader::Chunk &chunk : tensor->chunks)
        if (auto within = partWithin(part, tensor->shape, chunk.box))
          read(partOfBox(std::move(*within), tensor->shape, chunk.box), chunk.data);
  }
  return isFinite(type, piece.data, piece.bytes / bytesOf(type));
}

std::string meshwright::readWeights(const WeightTarget &target, WeightKind kind,
                                    const std::string &path, const std::string &flag,
                                    const std::string &id) {
  SafeTensorsReader file(path, flag);
  if (!id.empty() && file.id() != id)
    fail(flag, ": ", path, " is not the file that its checkpoint was saved with: its id is ",
         file.id().empty() ? "missing" : file.id(), ", but state.json beside it says ", id,
         ": it is damaged or another checkpoint's; name another checkpoint");
  std::vector<Piece> work = pieces(target, kind);
  auto fill = [&](const Piece &rows) { readPiece(file, rows); };
  std::vector<std::string> inFile = file.names();
  bool isShard = std::any_of(inFile.begin(), inFile.end(), [&](const std::string &name) { return file.find(name)->offsets.has_value(); });
  const char *remedy =
      isShard ? "the file is one of a sharded checkpoint: name the folder of all its shards"
      : kind == WeightKind::OptimizerStates
          ? "the checkpoint's run had other states: compile with its --freeze, --ema, --fp8-recipe and --grad-compression, or begin a new run from its weights with --init"
          : "name a file of the same model, or compile with the config it belongs to";
  // Every rank checks every tensor, also those it holds no part of, so that all
  // ranks see the same error.
  std::map<std::string, const SafeTensorsReader::Tensor *> used;
  std::string begun, continued; // states that a file may lack
  for (const Variable &variable : target.plan.allVariables) {
    if (!isOf(variable, kind))
      continue;
    StorageLayout layout = storageLayout(variable);
    for (int64_t number = 0; number < variable.tensors(); ++number) {
      std::string name = tensorName(variable, number, kind);
      const SafeTensorsReader::Tensor *tensor = file.find(name);
      if (std::string how = quantizedAs(file, name); !how.empty())
        fail(flag, " ", path, ": tensor ", name, " is quantized (", how,
             "), which is not read: name the file that it was made from, or dequantize it "
             "(transformers: model.dequantize(), then save_pretrained)");
      if (std::string &state = tensor ? continued : begun; variable.storage.isOptional && state.empty())
        state = name;
      if (!tensor && variable.storage.isOptional)
        continue; // The arena is zeroed.
      if (!tensor)
        fail(flag, " ", path, ": has no tensor ", name, " of shape ", shapeText(layout.fileShape),
             ", which the model ", target.plan.model, " needs: ", remedy);
      if (tensor->type == ElementType::I32)
        fail(flag, " ", path, ": tensor ", name,
             " holds integers: F32, F64, BF16 or F16 is wanted");
      if (tensor->shape != layout.fileShape)
        fail(flag, " ", path, ": tensor ", name, " has shape ", shapeText(tensor->shape),
             ", but the model needs ", shapeText(layout.fileShape), ": ", remedy);
      used[withoutModelPrefix(name)] = tensor;
      if (target.names && kind == WeightKind::Parameters && !tensor->written.empty())
        (*target.names)[name] = tensor->written;
    }
  }
  if (kind == WeightKind::OptimizerStates) {
    if (!begun.empty() && !continued.empty())
      fail(flag, " ", path, ": has the state ", continued, " but not ", begun, ": ", remedy);
    if (target.begun)
      *target.begun = begun;
  }
  // What a model has besides may be of no use; each tensor of an adapter changes a weight.
  if (kind == WeightKind::Adapters)
    if (std::string extra = extraTensors(file, used); !extra.empty())
      fail(flag, " ", extra, ": compile with --lora for all of the adapter's modules");
  if (kind == WeightKind::Parameters)
    checkTiedHead(file, target.plan, used, flag);
  std::vector<SizedName> mine = verifiedHere(target, kind);
  inRuns(
      target, mine.size(), [&](size_t i) { return mine[i].bytes; },
      [&](size_t first, size_t last) {
        inParallel(target, first, last,
                   [&](size_t i) {
                     if (const auto *tensor = file.find(mine[i].name))
                       file.verify(*tensor, mine[i].name);
                   });
      });
  inRuns(
      target, work.size(), [&](size_t i) { return work[i].bytes; },
      [&](size_t first, size_t last) {
        inParallel(target, first, last, [&](size_t i) {
          if (!(work[i].variable->isQuantized() ? fillCodes(target, work[i], fill) : readPiece(file, work[i])))
            fail(flag, " ", path, ": tensor ", work[i].name,
                 " has values that are not finite numbers in ",
                 nameOf(!work[i].variable->isQuantized() ? work[i].variable->type : target.plan.precision == "fp16" ? ElementType::F16 : ElementType::F32),
                 ": training from them would fail at the first step; name a file whose values are all finite");
        });
        for (size_t i = first; i < last && target.filled; ++i)
          target.filled(*work[i].variable, work[i].data, work[i].bytes);
      });
  if (kind == WeightKind::Parameters) {
    fillScales(target, fill);
    fillRowNorms(target, fill);
  }
  return extraTensors(file, used);
}
