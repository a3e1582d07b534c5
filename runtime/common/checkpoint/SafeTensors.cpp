//===- SafeTensors.cpp - the safetensors file format ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/SafeTensors.h"

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/Json.h"
#include "common/monitor/Error.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;

static constexpr uint64_t maxHeaderBytes = 100'000'000;
static const std::string checksumKey = "xxh128";
/// Of PyTorch's distributed checkpoints, with the one version that there is.
static const std::string shardingKey = "DCP_SHARDING_INFO", offsetsKey = "saved_offsets", shardVersionKey = "DCP_VERSION",
                         shardVersion = "1.0";
static const char *damaged = ": the file is truncated or damaged; write or download it again";

/// Types a file may hold but the runtime does not convert, with their widths:
/// buffers such as masks come in them.
static int64_t otherTypeBytes(const std::string &dtype) {
  if (dtype == "I64" || dtype == "U64")
    return 8;
  if (dtype == "U32")
    return 4;
  if (dtype == "I16" || dtype == "U16")
    return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype == "F8_E4M3" || dtype == "F8_E5M2")
    return 1;
  return 0;
}

static std::optional<ElementType> convertible(const std::string &dtype) {
  std::string lower;
  for (char c : dtype) {
    if (islower(c))
      return std::nullopt;
    lower += char(tolower(c));
  }
  std::optional<ElementType> type = elementTypeNamed(lower);
  // No halves in files, and codes as other numbers.
  return type == ElementType::I16 || type == ElementType::I8 ? std::nullopt : type;
}

/// What one file holds.
struct SafeTensorsReader::Header {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> others; ///< types of those that are not converted
  std::map<std::string, std::string> metadata;
  std::string checksum;
};

/// The bytes of one tensor, counted from the header's end.
struct Extent {
  uint64_t begin, end;
  std::string name;
};

SafeTensorsReader::SafeTensorsReader(const std::string &path, const std::string &flag)
    : name(path), flag(flag) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    openShards();
    return;
  }
  if (std::filesystem::path(path).extension() == ".json") {
    openIndex();
    return;
  }
  Header header = openFile(path, flag);
  tensors = std::move(header.tensors);
  others = std::move(header.others);
  checksum = header.checksum;
  addTied(header.metadata);
}

/// What wrappers of a module put into the names of its tensors, anywhere: torch.compile, FSDP and
/// activation checkpointing.
static constexpr const char *wrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                           "_checkpoint_wrapped_module."};
/// What DistributedDataParallel and DeepSpeed put in front of them.
static constexpr const char *replicaPrefix = "module.";
/// What the names of the language model begin with in a model of more than text. Its head is within
/// that, too, or beside it.
static constexpr const char *textPrefixes[] = {"model.language_model.", "language_model.",
                                               "model.text_model.", "text_model."};

/// Removes `prefix`, if `name` begins with it.
static bool dropPrefix(std::string &name, const char *prefix) {
  if (name.rfind(prefix, 0) != 0)
    return false;
  name.erase(0, std::strlen(prefix));
  return true;
}

/// The name of a tensor without what wrappers put into it.
static std::string withoutWrappers(std::string name) {
  for (const char *wrapper : wrappers)
    for (size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper, at))
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, std::strlen(wrapper));
      else
        ++at;
  while (dropPrefix(name, replicaPrefix))
    ;
  return name;
}

/// Whether `name` has begun with the prefix of a text part, which it does not any more.
static bool dropTextPrefix(std::string &name) {
  for (const char *prefix : textPrefixes)
    if (dropPrefix(name, prefix))
      return true;
  return false;
}

/// The name that the tensor `name` of a file has in the model that is trained.
static std::string presentName(std::string name) {
  name = withoutWrappers(name);
  dropTextPrefix(name);
  // What files of bert's first years call gamma and beta.
  for (auto [old, present] : {std::pair("LayerNorm.gamma", "weight"), {"LayerNorm.beta", "bias"}})
    if (size_t dot = name.rfind('.'), begin = name.rfind(old);
        begin != std::string::npos && begin + std::strlen(old) == name.size())
      return name.substr(0, dot + 1) + present;
  return name;
}

/// Takes from a file's metadata which tensors it lacks because others are the same:
/// safetensors.torch.save_model writes {"lm_head.weight": "model.embed_tokens.weight"}.
void SafeTensorsReader::addTied(const std::map<std::string, std::string> &metadata) {
  for (const auto &[removed, kept] : metadata)
    if (tensors.count(presentName(kept)) && !tensors.count(presentName(removed)))
      tied[presentName(removed)] = presentName(kept);
}

void SafeTensorsReader::openIndex() {
  std::string prefix = flag + " " + name + ": ";
  MappedFile index(name, flag);
  Json json = parseJson({reinterpret_cast<const char *>(index.data()), size_t(index.size())},
                        prefix + "it", damaged);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail(prefix, "has no object \"weight_map\", so it is not the index of a sharded model: name a "
                 "safetensors file or its model.safetensors.index.json");
  std::filesystem::path directory = std::filesystem::path(name).parent_path();
  std::map<std::string, Header> shards;
  for (const auto &[tensor, value] : json["weight_map"].items()) {
    auto shard = value.is_string() ? value.get<std::string>() : "";
    // A file elsewhere is not part of this model.
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos)
      fail(prefix, "\"weight_map\" puts tensor ", tensor, " in ", shortText(value),
           ", which is not the name of a file beside it", damaged);
    auto found = shards.find(shard);
    if (found == shards.end())
      found = shards.emplace(shard, openFile(directory / shard, prefix + "shard")).first;
    const Header &header = found->second;
    std::string known = presentName(tensor);
    if (auto entry = header.tensors.find(known); entry != header.tensors.end())
      tensors.insert(*entry);
    else if (auto other = header.others.find(known); other != header.others.end())
      others.insert(*other);
    else
      fail(prefix, "\"weight_map\" puts tensor ", tensor, " in ", shard,
           ", which has no such tensor: write or download both again");
  }
  for (const auto &[_, header] : shards)
    addTied(header.metadata);
}

std::string meshwright::idOfShards(const std::map<std::string, std::string> &ids) {
  std::string all;
  for (const auto &[file, id] : ids) {
    if (id.empty())
      return "";
    all += file + " " + id + "\n";
  }
  return checksumOf(all.data(), all.size());
}

std::string meshwright::modelFolder(const std::string &path) {
  std::error_code error;
  for (const char *file : {"/config.json", "/tokenizer.json", "/tokenizer.model"})
    if (std::filesystem::is_regular_file(path + file, error))
      return path;
  return std::filesystem::path(path).parent_path().string();
}

/// Whether the boxes have an element in common.
static bool overlap(const Box &a, const Box &b) {
  for (size_t d = 0; d < a.begin.size(); ++d)
    if (a.begin[d] >= b.begin[d] + b.extent[d] || b.begin[d] >= a.begin[d] + a.extent[d])
      return false;
  return true;
}

static std::string boxText(const Box &box) {
  return text("at ", shapeText(box.begin), " of shape ", shapeText(box.extent));
}

/// An Error unless the chunks of `tensor` are all of it, each element once.
static void checkChunks(SafeTensorsReader::Tensor &tensor, const std::string &name, const std::string &prefix) {
  auto first = [](const Box &box) { return box.begin.empty() ? 0 : box.begin[0]; };
  std::sort(tensor.chunks.begin(), tensor.chunks.end(),
            [&](const auto &a, const auto &b) { return first(a.box) < first(b.box); });
  int64_t bytes = 0;
  for (size_t i = 0; i < tensor.chunks.size(); ++i) {
    const SafeTensorsReader::Chunk &chunk = tensor.chunks[i];
    bytes += chunk.bytes;
    // Those behind begin later along the first dimension.
    for (size_t j = i + 1; j < tensor.chunks.size() && chunk.bytes; ++j) {
      const SafeTensorsReader::Chunk &next = tensor.chunks[j];
      if (!chunk.box.begin.empty() && next.box.begin[0] >= chunk.box.begin[0] + chunk.box.extent[0])
        break;
      if (next.bytes && overlap(chunk.box, next.box))
        fail(prefix, "tensor ", name, ": the boxes ", boxText(chunk.box), " of ", chunk.file->path(), " and ",
             boxText(next.box), " of ", next.file->path(), " overlap: keep the files of one checkpoint alone");
    }
  }
  if (bytes != tensor.bytes)
    fail(prefix, "its files have ", bytes, " of the ", tensor.bytes, " bytes of tensor ", name, " of shape ",
         shapeText(tensor.shape), ": a file is missing; copy all files of the folder again");
}

void SafeTensorsReader::openShards() {
  std::string prefix = flag + " " + name + ": ";
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator(name))
    if (entry.path().extension() == ".safetensors")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (paths.empty())
    fail(prefix, "the folder has no safetensors files: name a model's folder or a checkpoint");
  std::map<std::string, std::string> ids;
  for (const std::string &path : paths) {
    Header header = openFile(path, prefix + "shard");
    ids[std::filesystem::path(path).filename().string()] = header.checksum;
    others.insert(header.others.begin(), header.others.end());
    for (auto &[known, box] : header.tensors) {
      std::vector<int64_t> offsets = box.offsets.value_or(std::vector<int64_t>(box.shape.size()));
      auto [entry, isNew] = tensors.try_emplace(known);
      Tensor &whole = entry->second;
      if (isNew) {
        whole.type = box.type;
        whole.written = box.written;
        whole.shape.resize(box.shape.size());
      }
      if (whole.type != box.type || whole.shape.size() != box.shape.size())
        fail(prefix, "tensor ", known, " is ", nameOf(whole.type), " with ", whole.shape.size(), " dimensions in ",
             whole.chunks.front().file->path(), ", but ", nameOf(box.type), " with ", box.shape.size(), " in ", path,
             ": keep the files of one checkpoint alone");
      for (size_t d = 0; d < offsets.size(); ++d)
        whole.shape[d] = std::max(whole.shape[d], offsets[d] + box.shape[d]);
      whole.chunks.push_back({{offsets, box.shape}, box.data, box.bytes, box.checksum, box.file});
    }
  }
  for (auto &[known, tensor] : tensors) {
    // Sizes are multiplied with care: offsets from elsewhere may be of any size.
    tensor.bytes = bytesOf(tensor.type);
    for (int64_t size : tensor.shape)
      if (__builtin_mul_overflow(tensor.bytes, size, &tensor.bytes))
        fail(prefix, "tensor ", known, " has shape ", shapeText(tensor.shape), ", too large for any machine", damaged);
    checkChunks(tensor, known, prefix);
  }
  checksum = idOfShards(ids);
}

void meshwright::forRuns(const SafeTensorsReader::Tensor &tensor, int64_t begin, int64_t count,
                         const std::function<void(const unsigned char *, int64_t, int64_t)> &take) {
  int64_t width = bytesOf(tensor.type);
  if (tensor.chunks.empty())
    return take(tensor.data + begin * width, count, 0);
  size_t rank = tensor.shape.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t d = rank; d-- > 1;)
    strides[d - 1] = strides[d] * tensor.shape[d];
  for (const SafeTensorsReader::Chunk &chunk : tensor.chunks) {
    if (chunk.bytes == 0)
      continue;
    // Dimensions behind `outer` of them are one run: whole ones, and one before these.
    size_t outer = rank;
    int64_t run = 1;
    while (outer > 0) {
      run *= chunk.box.extent[--outer];
      if (chunk.box.extent[outer] != tensor.shape[outer])
        break;
    }
    int64_t runs = chunk.bytes / width / run;
    std::vector<int64_t> index(outer);
    for (int64_t i = 0; i < runs; ++i) {
      int64_t first = 0;
      for (size_t d = 0; d < rank; ++d)
        first += (chunk.box.begin[d] + (d < outer ? index[d] : 0)) * strides[d];
      int64_t from = std::max(first, begin), to = std::min(first + run, begin + count);
      if (from < to)
        take(chunk.data + (i * run + from - first) * width, to - from, from - begin);
      for (size_t d = outer; d-- > 0;) {
        if (++index[d] < chunk.box.extent[d])
          break;
        index[d] = 0;
      }
    }
  }
}

/// The whole numbers of the list `json`; none if it is anything else.
static std::optional<std::vector<uint64_t>> wholeNumbers(const Json &json) {
  std::vector<uint64_t> result;
  if (!json.is_array())
    return std::nullopt;
  for (const Json &number : json) {
    if (!number.is_number_unsigned())
      return std::nullopt;
    result.push_back(number.get<uint64_t>());
  }
  return result;
}

/// An Error unless `extents` tile the `bytes` bytes of data without a hole.
static void checkTiling(std::vector<Extent> extents, uint64_t bytes, const std::string &prefix) {
  std::sort(extents.begin(), extents.end(), [](const Extent &a, const Extent &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t end = 0;
  std::string before = "the header";
  for (const Extent &extent : extents) {
    if (extent.begin < end)
      fail(prefix, "tensors ", before, " and ", extent.name, " both lie at byte ", extent.begin,
           " of the data", damaged);
    if (extent.begin > end)
      fail(prefix, "bytes ", end, " to ", extent.begin, " of the data, before tensor ", extent.name,
           ", belong to no tensor", damaged);
    end = extent.end;
    before = extent.name;
  }
  if (end < bytes)
    fail(prefix, "bytes ", end, " to ", bytes, " of the data belong to no tensor", damaged);
}

/// A header's "__metadata__", whose checksums are verified.
static std::map<std::string, std::string> readMetadata(const Json &json, std::string_view header,
                                                       const std::string &prefix) {
  std::map<std::string, std::string> found;
  if (!json.contains("__metadata__"))
    return found;
  const Json &metadata = json["__metadata__"];
  if (!metadata.is_object())
    fail(prefix, "\"__metadata__\" is ", shortText(metadata), ", not an object", damaged);
  for (const auto &[key, value] : metadata.items()) {
    if (!value.is_string())
      fail(prefix, "\"", key, "\" in \"__metadata__\" is ", shortText(value), ", not a string",
           damaged);
    found[key] = value.get<std::string>();
  }
  auto first = found.lower_bound(checksumKey);
  bool hasChecksums = first != found.end() && first->first.rfind(checksumKey, 0) == 0;
  if (hasChecksums && !isSealed(std::string(header), found[checksumKey]))
    fail(prefix, "its header does not have the checksum that it should have", damaged);
  return found;
}

/// Where the boxes of a shard begin, by the names of their tensors; none if the file does not say it.
static std::optional<Json> shardingOf(const std::map<std::string, std::string> &metadata, const std::string &prefix) {
  auto found = metadata.find(shardingKey);
  if (found == metadata.end())
    return std::nullopt;
  auto written = metadata.find(shardVersionKey);
  if (written != metadata.end() && written->second != shardVersion)
    fail(prefix, "its shards are of version ", written->second, " of PyTorch's distributed checkpoints, but version ",
         shardVersion, " is what is read");
  Json sharding = parseJson(found->second, prefix + "\"" + shardingKey + "\"", damaged);
  if (!sharding.is_object())
    fail(prefix, "\"", shardingKey, "\" is ", shortText(sharding), ", not an object", damaged);
  return sharding;
}

/// Where the box of `shape` of tensor `name` begins.
static std::vector<int64_t> offsetsOf(const Json &sharding, const std::string &name, const std::vector<int64_t> &shape,
                                      const std::string &prefix) {
  auto entry = sharding.find(name);
  std::optional<std::vector<uint64_t>> offsets;
  if (entry != sharding.end() && entry->is_object() && entry->contains(offsetsKey))
    offsets = wholeNumbers((*entry)[offsetsKey]);
  bool isRight = offsets && offsets->size() == shape.size();
  for (size_t d = 0; isRight && d < shape.size(); ++d)
    isRight = (*offsets)[d] <= uint64_t(INT64_MAX - shape[d]);
  if (!isRight)
    fail(prefix, "\"", shardingKey, "\" has no ", offsetsKey, " of ", shape.size(), " dimensions for tensor ", name, damaged);
  return {offsets->begin(), offsets->end()};
}

/// An Error that names the format of weights that are in another one.
static void checkFormat(const MappedFile &file, const std::string &prefix) {
  static const char *torch =
      ", which is not read: convert it, e.g. in Python safetensors.torch.save_file(torch.load(FILE, "
      "weights_only=True), \"model.safetensors\"), or take the release's safetensors files";
  static const struct {
    std::string_view begin;
    const char *what, *remedy;
  } formats[] = {
      {"PK\3\4", "is a zip archive, as PyTorch saves weights (pytorch_model.bin)", torch},
      {"\x80\2", "is a pickle, as early versions of PyTorch save weights", torch},
      {"GGUF", "is a GGUF file, as llama.cpp has them",
       ", which is not read: name the safetensors files that it was made from"},
      {"\x89HDF", "is an HDF5 file, as TensorFlow saves weights",
       ", which is not read: take the release's safetensors files"}};
  std::string_view bytes(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
  // A safetensors file begins with the size of its header, any eight bytes: those of 640 are a pickle's.
  if (bytes.size() > 8 && bytes[8] == '{')
    return;
  for (const auto &format : formats)
    if (bytes.substr(0, format.begin.size()) == format.begin)
      fail(prefix, format.what, format.remedy);
}

SafeTensorsReader::Header SafeTensorsReader::openFile(const std::string &path,
                                                      const std::string &flag) {
  const MappedFile &file = files.emplace_back(path, flag);
  Header result;
  std::string prefix = flag + " " + path + ": ";
  checkFormat(file, prefix);
  if (file.size() < 8)
    fail(prefix, "has ", file.size(), " bytes, less than a safetensors file's first 8", damaged);
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  uint64_t dataBytes = uint64_t(file.size()) - 8;
  if (headerBytes > dataBytes)
    fail(prefix, "its header claims ", headerBytes, " bytes but the file has ", file.size(),
         damaged);
  if (headerBytes > maxHeaderBytes)
    fail(prefix, "its header has ", headerBytes, " bytes, but the format allows ", maxHeaderBytes,
         ": divide the model into several files with an index");
  dataBytes -= headerBytes;

  std::string_view header(reinterpret_cast<const char *>(file.data()) + 8, headerBytes);
  std::string what = text(prefix, "its header of ", headerBytes, " bytes");
  if (header.empty() || header[0] != '{')
    fail(what, " is not a JSON object", damaged);
  Json json = parseJson(header, what, damaged);
  result.metadata = readMetadata(json, header, prefix);
  auto checksumIn = [&](const std::string &key) {
    auto found = result.metadata.find(key);
    return found == result.metadata.end() ? "" : found->second;
  };
  result.checksum = checksumIn(checksumKey);
  std::optional<Json> sharding = shardingOf(result.metadata, prefix);
  std::vector<Extent> extents;
  for (const auto &[name, entry] : json.items()) {
    if (name == "__metadata__")
      continue;
    auto part = [&](const char *key) {
      return entry.is_object() && entry.contains(key) ? entry[key] : Json();
    };
    auto shape = wholeNumbers(part("shape")), offsets = wholeNumbers(part("data_offsets"));
    Json dtype = part("dtype");
    if (!dtype.is_string() || !shape || !offsets || offsets->size() != 2)
      fail(prefix, "the header entry of tensor ", name, " is ", shortText(entry),
           ", without a readable dtype, shape and data_offsets", damaged);
    std::optional<ElementType> type = convertible(dtype.get<std::string>());
    int64_t width = type ? bytesOf(*type) : otherTypeBytes(dtype.get<std::string>());
    if (width == 0)
      fail(prefix, "tensor ", name, " has dtype ", dtype.get<std::string>(),
           ", which is not known: convert the file to F32, BF16 or F16");
    uint64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin > end || end > dataBytes)
      fail(prefix, "tensor ", name, " lies at bytes ", part("data_offsets").dump(), " of ",
           dataBytes, " data bytes", damaged);
    // Sizes are multiplied with care: a damaged shape may overflow.
    uint64_t bytes = uint64_t(width);
    bool overflow = false;
    for (uint64_t size : *shape)
      overflow |= size > INT64_MAX || __builtin_mul_overflow(bytes, size, &bytes);
    std::vector<int64_t> sizes(shape->begin(), shape->end());
    if (overflow || bytes != end - begin)
      fail(prefix, "tensor ", name, " of shape ", shapeText(sizes), " and dtype ",
           dtype.get<std::string>(), " has ", end - begin, " bytes, not those of its shape",
           damaged);
    extents.push_back({begin, end, name});
    std::string checksum = checksumIn(checksumKey + "." + name);
    if (checksum.empty() != result.checksum.empty())
      fail(prefix, "tensor ", name, " has no checksum, but the file has one: write it again");
    std::string known = presentName(name);
    if (type && result.tensors.count(known))
      fail(prefix, "tensor ", known, " is there twice, once as ", name, ": keep one");
    std::string written = withoutWrappers(name), bare = written;
    if (type)
      result.tensors[known] = {*type,    sizes, file.data() + 8 + headerBytes + begin, int64_t(bytes),
                               checksum, dropTextPrefix(bare) ? written : "",         &file,
                               {},       {}};
    if (type && sharding)
      result.tensors[known].offsets = offsetsOf(*sharding, name, sizes, prefix);
    if (!type)
      result.others[known] = dtype.get<std::string>();
  }
  checkTiling(std::move(extents), dataBytes, prefix);
  return result;
}

void SafeTensorsReader::verify(const Tensor &tensor, const std::string &name) const {
  auto verifyBytes = [&](const unsigned char *data, int64_t bytes, const std::string &written, const MappedFile &file) {
    if (written.empty())
      return;
    std::string found = checksumOf(data, size_t(bytes));
    if (found != written)
      fail(flag, " ", file.path(), ": tensor ", name, " has checksum ", found, ", not ", written,
           ", which it was written with: the file is damaged; name another checkpoint, or write or "
           "download it again");
  };
  if (tensor.chunks.empty())
    return verifyBytes(tensor.data, tensor.bytes, tensor.checksum, *tensor.file);
  for (const Chunk &chunk : tensor.chunks)
    verifyBytes(chunk.data, chunk.bytes, chunk.checksum, *chunk.file);
}

/// What names of tensors begin with where a file holds more than the base model.
static constexpr const char *modelPrefixes[] = {"transformer.", "model.", "gpt_neox.",
                                                "biogpt.",      "bert.",  "roberta."};

std::string meshwright::withoutModelPrefix(const std::string &whole) {
  std::string name = whole;
  dropTextPrefix(name);
  for (const char *prefix : modelPrefixes)
    if (name.rfind(prefix, 0) == 0)
      return name.substr(std::strlen(prefix));
  return name;
}

/// What `map` has for a name, with or without the prefix of a model.
template <typename Map> static const auto *findNamed(const Map &map, const std::string &name) {
  if (auto found = map.find(name); found != map.end())
    return &found->second;
  std::string bare = withoutModelPrefix(name);
  if (auto found = map.find(bare); found != map.end())
    return &found->second;
  for (const char *prefix : modelPrefixes)
    if (auto found = map.find(prefix + bare); found != map.end())
      return &found->second;
  return static_cast<decltype(&map.begin()->second)>(nullptr);
}

const SafeTensorsReader::Tensor *SafeTensorsReader::find(const std::string &name) const {
  if (const Tensor *tensor = findNamed(tensors, name))
    return tensor;
  const std::string *kept = findNamed(tied, name);
  return kept ? &tensors.at(*kept) : nullptr;
}

std::string SafeTensorsReader::otherType(const std::string &name) const {
  const std::string *type = findNamed(others, name);
  return type ? *type : "";
}

std::vector<std::string> SafeTensorsReader::names() const {
  std::vector<std::string> result;
  for (const auto &entry : tensors)
    result.push_back(entry.first);
  return result;
}

std::vector<std::string> SafeTensorsReader::otherNames() const {
  std::vector<std::string> result;
  for (const auto &entry : others)
    result.push_back(entry.first);
  return result;
}

SafeTensorsWriter::SafeTensorsWriter(const std::string &path, const std::vector<Entry> &entries, Kind kind)
    : file(path), entries(entries), kind(kind) {
  file.write(headerText());
}

/// With the checksums so far, and `noChecksum` for those to come: as long in the end.
std::string SafeTensorsWriter::headerText() const {
  // `transformers` wants to know which framework's layout this is. A null that becomes an object, for which there is no memory,
  // cannot be destroyed, so that objects begin as such.
  Json header = Json::object(), metadata = {{checksumKey, noChecksum}, {"format", "pt"}};
  int64_t offset = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry &entry = entries[i];
    int64_t bytes = bytesOf(entry.type) * elementsIn(entry.shape);
    const char *type = entry.type == ElementType::F32    ? "F32"
                       : entry.type == ElementType::BF16 ? "BF16"
                                                         : "F16";
    metadata[checksumKey + "." + entry.name] = i < checksums.size() ? checksums[i] : noChecksum;
    header[entry.name] = {
        {"dtype", type}, {"shape", entry.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  if (kind == Shard) {
    Json sharding = Json::object();
    for (const Entry &entry : entries)
      sharding[entry.name] = {{offsetsKey, entry.offsets}};
    metadata[shardingKey] = sharding.dump();
    metadata[shardVersionKey] = shardVersion;
  }
  header["__metadata__"] = metadata;
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // Aligns the tensors.
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + text;
}

void SafeTensorsWriter::write(const void *data, int64_t elements) {
  int64_t bytes = elements * bytesOf(entries[checksums.size()].type);
  file.write(data, bytes);
  checksum.add(data, size_t(bytes));
  written += elements;
  if (written < elementsIn(entries[checksums.size()].shape))
    return;
  checksums.push_back(checksum.take());
  written = 0;
}

std::string SafeTensorsWriter::finish() {
  std::string all = headerText();
  std::string header = all.substr(8);
  std::string id = seal(header);
  file.rewrite(0, all.substr(0, 8) + header);
  file.sync();
  file.close();
  return id;
}
