//===- StorageName.h - names of a variable's tensors in files ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Shared by the compiler and the runtime, so it needs the standard library only.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_STORAGENAME_H
#define MESHWRIGHT_RUNTIME_STORAGENAME_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshwright {

/// `pattern` with its `{layer}` replaced by `layer`, or its `{layer+6}` by
/// `layer` + 6: a variable that stacks a model's layers from the seventh on. Nothing
/// where the pattern has no such part or it is malformed.
inline std::optional<std::string> layerTensorName(std::string_view pattern, int64_t layer) {
  constexpr std::string_view opening = "{layer";
  size_t begin = pattern.find(opening);
  size_t end = begin == std::string_view::npos ? begin : pattern.find('}', begin);
  if (end == std::string_view::npos)
    return std::nullopt;
  std::string_view digits = pattern.substr(begin + opening.size(), end - begin - opening.size());
  int64_t first = 0;
  if (!digits.empty()) {
    if (digits.front() != '+' || digits.size() < 2 || digits.size() > 10)
      return std::nullopt;
    for (char digit : digits.substr(1)) {
      if (digit < '0' || digit > '9')
        return std::nullopt;
      first = first * 10 + (digit - '0');
    }
  }
  std::string name(pattern.substr(0, begin));
  name += std::to_string(first + layer);
  return name += pattern.substr(end + 1);
}

/// Whether each expert has a tensor of its own: then `{expert}` stands for its number, along the
/// first dimension behind that of the layers.
inline bool hasExpertTensors(std::string_view pattern) {
  return pattern.find("{expert}") != std::string_view::npos;
}

/// `pattern` with its `{expert}`, if there is one, replaced by `expert`.
inline std::string expertTensorName(std::string_view pattern, int64_t expert) {
  constexpr std::string_view mark = "{expert}";
  size_t begin = pattern.find(mark);
  if (begin == std::string_view::npos)
    return std::string(pattern);
  std::string name(pattern.substr(0, begin));
  name += std::to_string(expert);
  return name += pattern.substr(begin + mark.size());
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_STORAGENAME_H
