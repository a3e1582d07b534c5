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

/// Behind a name of which all numbers of a layer are one tensor, the rows of each below those of the one before.
inline constexpr std::string_view rowsMark = "{rows}";

/// Where a tensor's number among a layer's stands in `pattern`: the mark `{expert}` or `{head}`,
/// where each expert or each head has a tensor of its own, or `{rows}`. They are counted along the first
/// dimension behind that of the layers.
inline std::optional<std::string_view> numberMark(std::string_view pattern) {
  for (std::string_view mark : {std::string_view("{expert}"), std::string_view("{head}"), rowsMark})
    if (size_t begin = pattern.find(mark); begin != std::string_view::npos)
      return pattern.substr(begin, mark.size());
  return std::nullopt;
}

/// `pattern` with its mark, if there is one, replaced by `number`.
inline std::string numberedTensorName(std::string_view pattern, int64_t number) {
  std::optional<std::string_view> mark = numberMark(pattern);
  if (!mark)
    return std::string(pattern);
  size_t begin = size_t(mark->data() - pattern.data());
  std::string name(pattern.substr(0, begin));
  if (*mark != rowsMark)
    name += std::to_string(number);
  return name += pattern.substr(begin + mark->size());
}

/// How many rows of its tensor lie above those of tensor `number`, which has `size`, one of `each` of a layer.
inline int64_t rowsAbove(std::string_view pattern, int64_t number, int64_t each, int64_t size) {
  return numberMark(pattern) == rowsMark ? number % each * size : 0;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_STORAGENAME_H
