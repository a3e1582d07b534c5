//===- SafeTensors.cpp - the safetensors file format ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/SafeTensors.h"

#include "common/Error.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;

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
  for (char c : dtype)
    lower += char(tolower(c));
  return elementTypeNamed(lower);
}

/// What one file holds.
struct SafeTensorsReader::Header {
  std::map<std::string, Tensor> tensors;
  std::set<std::string> others; ///< of types that are not converted
};

SafeTensorsReader::SafeTensorsReader(const std::string &path, const std::string &flag)
    : name(path) {
  if (std::filesystem::path(path).extension() == ".json")
    openIndex(flag);
  else
    tensors = openFile(path, flag).tensors;
}

void SafeTensorsReader::openIndex(const std::string &flag) {
  std::string prefix = flag + " " + name + ": ";
  MappedFile index(name, flag);
  const char *begin = reinterpret_cast<const char *>(index.data());
  Json json = Json::parse(begin, begin + index.size(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    fail(prefix, "is not valid JSON", damaged);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail(prefix, "has no object \"weight_map\", so it is not the index of a sharded model: name a "
                 "safetensors file or its model.safetensors.index.json");
  std::filesystem::path directory = std::filesystem::path(name).parent_path();
  std::map<std::string, Header> shards;
  for (const auto &[tensor, value] : json["weight_map"].items()) {
    auto shard = value.is_string() ? value.get<std::string>() : "";
    // A file elsewhere is not part of this model.
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos)
      fail(prefix, "\"weight_map\" places tensor ", tensor, " in ", value.dump(),
           ", which is not the name of a file beside it", damaged);
    auto found = shards.find(shard);
    if (found == shards.end())
      found = shards.emplace(shard, openFile(directory / shard, prefix + "shard")).first;
    const Header &header = found->second;
    if (auto entry = header.tensors.find(tensor); entry != header.tensors.end())
      tensors.insert(*entry);
    else if (!header.others.count(tensor))
      fail(prefix, "\"weight_map\" places tensor ", tensor, " in ", shard,
           ", which has no such tensor: write or download both again");
  }
}

SafeTensorsReader::Header SafeTensorsReader::openFile(const std::string &path,
                                                      const std::string &flag) {
  const MappedFile &file = files.emplace_back(path, flag);
  Header result;
  std::string prefix = flag + " " + path + ": ";
  if (file.size() < 8)
    fail(prefix, "has ", file.size(), " bytes, less than a safetensors file's first 8", damaged);
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  uint64_t dataBytes = uint64_t(file.size()) - 8;
  if (headerBytes > dataBytes)
    fail(prefix, "its header claims ", headerBytes, " bytes but the file has ", file.size(),
         damaged);
  dataBytes -= headerBytes;

  const char *header = reinterpret_cast<const char *>(file.data()) + 8;
  Json json = Json::parse(header, header + headerBytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    fail(prefix, "its header of ", headerBytes, " bytes is not a JSON object", damaged);
  for (const auto &[name, entry] : json.items()) {
    if (name == "__metadata__")
      continue;
    std::string dtype;
    std::vector<int64_t> shape;
    std::vector<uint64_t> offsets;
    try {
      dtype = entry.at("dtype").get<std::string>();
      shape = entry.at("shape").get<std::vector<int64_t>>();
      offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
    } catch (const Json::exception &) {
      fail(prefix, "the header entry of tensor ", name, " is ", entry.dump(),
           ", without a readable dtype, shape and data_offsets", damaged);
    }
    std::optional<ElementType> type = convertible(dtype);
    int64_t width = type ? bytesOf(*type) : otherTypeBytes(dtype);
    if (width == 0)
      fail(prefix, "tensor ", name, " has dtype ", dtype,
           ", which is not known: convert the file to F32, BF16 or F16");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > dataBytes)
      fail(prefix, "tensor ", name, " lies at bytes ", entry["data_offsets"].dump(), " of ",
           dataBytes, " data bytes", damaged);
    // Sizes are multiplied with care: a damaged shape may overflow.
    uint64_t bytes = uint64_t(width);
    bool overflow = false;
    for (int64_t size : shape)
      overflow |= size < 0 || __builtin_mul_overflow(bytes, uint64_t(size), &bytes);
    if (overflow || bytes != offsets[1] - offsets[0])
      fail(prefix, "tensor ", name, " of shape ", shapeText(shape), " and dtype ", dtype, " has ",
           offsets[1] - offsets[0], " bytes, not those of its shape", damaged);
    if (type)
      result.tensors[name] = {*type, shape, file.data() + 8 + headerBytes + offsets[0]};
    else
      result.others.insert(name);
  }
  return result;
}

std::string meshwright::withoutModelPrefix(const std::string &name) {
  for (const char *prefix : {"transformer.", "model."})
    if (name.rfind(prefix, 0) == 0)
      return name.substr(std::strlen(prefix));
  return name;
}

const SafeTensorsReader::Tensor *SafeTensorsReader::find(const std::string &name) const {
  std::string bare = withoutModelPrefix(name);
  for (const std::string &candidate : {name, bare, "transformer." + bare, "model." + bare})
    if (auto found = tensors.find(candidate); found != tensors.end())
      return &found->second;
  return nullptr;
}

std::vector<std::string> SafeTensorsReader::names() const {
  std::vector<std::string> result;
  for (const auto &entry : tensors)
    result.push_back(entry.first);
  return result;
}

SafeTensorsWriter::SafeTensorsWriter(const std::string &path, const std::vector<Entry> &entries)
    : file(path) {
  // `transformers` wants to know which framework's layout this is.
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (const Entry &entry : entries) {
    int64_t bytes = 4;
    for (int64_t size : entry.shape)
      bytes *= size;
    header[entry.name] = {
        {"dtype", "F32"}, {"shape", entry.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // Aligns the tensors.
  uint64_t length = text.size();
  file.write(&length, 8);
  file.write(text);
}

void SafeTensorsWriter::finish() {
  file.sync();
  file.close();
}
