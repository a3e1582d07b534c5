//===- OptionValues.cpp - how values of options are written ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Adapters.h"
#include "meshwright/GradientCompression.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <charconv>
#include <cmath>

using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace meshwright {

/// Reads an amount of memory of `least` bytes or more; an error calls it `what`.
static Error readBytes(StringRef text, Bytes &bytes, double least, const llvm::Twine &what) {
  std::optional<double> count = parseBytes(text);
  if (!count || *count < least)
    return createStringError("'" + text + "' is no amount of memory" + what + " (units " +
                             byteUnits + ")");
  bytes.count = *count;
  bytes.text = text.str();
  return Error::success();
}

Error parseOption(StringRef text, Bytes &bytes) {
  return readBytes(text, bytes, -HUGE_VAL, "; write e.g. 70GiB");
}

Error parseOption(StringRef text, BufferBytes &bytes) {
  return readBytes(text, bytes, 128, " of 128 bytes or more; write e.g. 32MiB");
}

Error parseOption(StringRef text, Probability &probability) {
  double value = 0;
  if (text.getAsDouble(value) || !(value >= 0 && value < 1))
    return createStringError("'" + text + "' must be a number in [0, 1)");
  probability.value = value;
  return Error::success();
}

/// All digits, so that what differs is written differently.
static std::string allDigits(std::optional<double> value) {
  char text[32] = "";
  if (value)
    *std::to_chars(std::begin(text), std::end(text) - 1, *value).ptr = 0;
  return text;
}

std::string optionText(const Probability &probability) { return allDigits(probability.value); }

Error parseOption(StringRef text, Multiple &multiple) {
  double value = 0;
  if (text.getAsDouble(value) || !(value > 0 && std::isfinite(value)))
    return createStringError("'" + text + "' must be a number above 0");
  multiple.value = value;
  return Error::success();
}

std::string optionText(const Multiple &multiple) { return allDigits(multiple.value); }

Error parseOption(StringRef text, TokenNumber &token) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < 0)
    return createStringError("'" + text + "' must be the number of a token, from 0 on");
  token.value = value;
  return Error::success();
}

std::string optionText(const TokenNumber &token) {
  return token.value ? std::to_string(*token.value) : "";
}

Error parseOption(StringRef text, LossParts &parts) {
  int64_t value = 0;
  if (text == "auto") {
    parts.value.reset();
    return Error::success();
  }
  if (text.getAsInteger(10, value) || value < 1)
    return createStringError("'" + text + "' must be auto or a number of parts, from 1 on");
  parts.value = value;
  return Error::success();
}

std::string optionText(const LossParts &parts) {
  return parts.value ? std::to_string(*parts.value) : "auto";
}

Error parseOption(StringRef text, LayerNumbers &layers) {
  layers.numbers.clear();
  for (StringRef item : llvm::split(text, ','))
    if (item.trim().getAsInteger(10, layers.numbers.emplace_back()))
      return createStringError("'" + text + "': '" + item + "' is no layer number");
  return Error::success();
}

std::string optionText(const LayerNumbers &layers) {
  return llvm::join(
      llvm::map_range(layers.numbers, [](int64_t layer) { return std::to_string(layer); }), ",");
}

/// Reads "lr=0.1" or "decay=0" into `group`.
static Error readFactor(StringRef text, ParameterGroup &group) {
  auto [name, number] = text.split('=');
  double value = 0;
  if (name != "lr" && name != "decay")
    return createStringError("'" + name + "' is neither lr nor decay");
  if (number.getAsDouble(value) || !(value >= 0 && std::isfinite(value)))
    return createStringError("'" + number + "' of " + name + " must be a number of at least 0");
  if (name == "lr")
    group.rate = value;
  else
    group.decay = value;
  return Error::success();
}

Error parseOption(StringRef text, ParameterGroups &groups) {
  groups.groups.clear();
  for (StringRef item : llvm::split(text, ';')) {
    auto [pattern, factors] = item.trim().rsplit(':');
    if (pattern.empty() || factors.empty())
      return createStringError(
          "'" + item +
          "' is no group; write PATTERN:lr=X,decay=Y, of which one factor may be "
          "left out, e.g. '*.bias:decay=0'");
    ParameterGroup &group = groups.groups.emplace_back();
    group.pattern = pattern.str();
    for (StringRef factor : llvm::split(factors, ','))
      if (Error error = readFactor(factor.trim(), group))
        return createStringError("'" + item + "': " + llvm::toString(std::move(error)));
  }
  return Error::success();
}

std::string optionText(const ParameterGroups &groups) {
  return llvm::join(llvm::map_range(groups.groups,
                                    [](const ParameterGroup &group) {
                                      std::string text =
                                          group.pattern + ":lr=" + allDigits(group.rate);
                                      if (group.decay)
                                        text += ",decay=" + allDigits(group.decay);
                                      return text;
                                    }),
                    ";");
}

double Adapters::scale() const {
  return alpha / (rankStabilized ? std::sqrt(double(rank)) : double(rank));
}

/// Names of modules, with + between them.
static Error readNames(StringRef key, StringRef value, std::vector<std::string> &names) {
  for (StringRef name : llvm::split(value, '+')) {
    if (name.empty())
      return createStringError("'" + value + "' of " + key + " has an empty name; write e.g. q_proj+v_proj");
    names.push_back(name.str());
  }
  return Error::success();
}

/// A key of --lora with its value into `lora`.
static Error readLora(StringRef item, Adapters &lora) {
  auto [key, value] = item.split('=');
  if (item == "rslora") {
    lora.rankStabilized = true;
    return Error::success();
  }
  if (item == "dora") {
    lora.decomposed = true;
    return Error::success();
  }
  if (key == "r") {
    if (value.getAsInteger(10, lora.rank) || lora.rank < 1 || lora.rank > INT32_MAX)
      return createStringError("'" + value + "' of r must be a whole number from 1 to 2147483647");
  } else if (key == "alpha") {
    if (value.getAsDouble(lora.alpha) || !(lora.alpha > 0 && std::isfinite(lora.alpha)))
      return createStringError("'" + value + "' of alpha must be a number above 0");
  } else if (key == "dropout") {
    if (value.getAsDouble(lora.dropout) || !(lora.dropout >= 0 && lora.dropout < 1))
      return createStringError("'" + value + "' of dropout must be a number in [0, 1)");
  } else if (key == "targets") {
    if (Error error = readNames(key, value, lora.targets))
      return error;
    if (lora.targets.size() > 1 && llvm::is_contained(lora.targets, "all-linear"))
      return createStringError("'" + value + "' of targets: all-linear has all the others; write it alone");
  } else if (key == "modules_to_save") {
    return readNames(key, value, lora.saved);
  } else {
    return createStringError("'" + item + "' is none of r=, alpha=, targets=, dropout=, modules_to_save=, rslora and dora");
  }
  return Error::success();
}

Error parseOption(StringRef text, Adapters &lora) {
  lora = {};
  llvm::StringSet<> seen;
  for (StringRef item : llvm::split(text, ',')) {
    item = item.trim();
    if (!seen.insert(item.split('=').first).second)
      return createStringError("'" + text + "' gives " + item.split('=').first +
                               " twice; targets are separated by +");
    if (Error error = readLora(item, lora))
      return createStringError("'" + text + "': " + llvm::toString(std::move(error)));
  }
  for (StringRef key : {"r", "alpha", "targets"})
    if (!seen.contains(key))
      return createStringError("'" + text + "' has no " + key +
                               "=; write e.g. r=8,alpha=16,targets=q_proj+v_proj");
  if (lora.decomposed && lora.dropout > 0)
    return createStringError("'" + text + "' has dropout beside dora, with which a weight has one product more; leave "
                             "one of both out");
  return Error::success();
}

std::string optionText(const Adapters &lora) {
  if (!lora.rank)
    return "";
  std::string text = "r=" + std::to_string(lora.rank) + ",alpha=" + allDigits(lora.alpha) +
                     ",targets=" + llvm::join(lora.targets, "+");
  if (lora.rankStabilized)
    text += ",rslora";
  if (lora.dropout > 0)
    text += ",dropout=" + allDigits(lora.dropout);
  if (lora.decomposed)
    text += ",dora";
  if (!lora.saved.empty())
    text += ",modules_to_save=" + llvm::join(lora.saved, "+");
  return text;
}

Error parseOption(StringRef text, GradientCompression &compression) {
  compression = {};
  if (text == "none")
    return Error::success();
  auto [method, rest] = text.split(',');
  auto [name, size] = method.split(':');
  auto [key, blocks] = rest.split('=');
  constexpr int64_t most = 1 << 20;
  compression.signs = method == "onebit";
  if ((name != "powersgd" && name != "topk" && !compression.signs) || (method.size() != text.size() && key != "blocks"))
    return createStringError("'" + text + "' must be none, powersgd:RANK, topk:DENSITY, onebit, or one of these with ,blocks=N");
  if (name == "powersgd" && (size.getAsInteger(10, compression.rank) || compression.rank < 1 || compression.rank > most))
    return createStringError("'" + size + "' of powersgd must be a rank, a whole number from 1 to 1048576; write e.g. powersgd:4");
  if (name == "topk" && (size.getAsDouble(compression.density) || !(compression.density > 0 && compression.density < 0.5)))
    return createStringError("'" + size + "' of topk must be the share of elements that are sent, above 0 and below 0.5; write e.g. topk:0.01");
  if (key == "blocks" && (blocks.getAsInteger(10, compression.blocks) || compression.blocks < 1 || compression.blocks > most))
    return createStringError("'" + blocks + "' of blocks must be a whole number from 1 to 1048576");
  return Error::success();
}

std::string optionText(const GradientCompression &compression) {
  if (!compression)
    return "none";
  std::string text = compression.rank    ? "powersgd:" + std::to_string(compression.rank)
                     : compression.signs ? "onebit"
                                         : "topk:" + allDigits(compression.density);
  return compression.blocks ? text + ",blocks=" + std::to_string(compression.blocks) : text;
}

Error parseOption(StringRef text, NamePatterns &names) {
  names.patterns.clear();
  for (StringRef item : llvm::split(text, ';')) {
    if (item.trim().empty())
      return createStringError("'" + text + "' has an empty pattern; write PATTERN;PATTERN, e.g. "
                               "'*embed*;*.layers.*'");
    names.patterns.push_back(item.trim().str());
  }
  return Error::success();
}

std::string optionText(const NamePatterns &names) { return llvm::join(names.patterns, ";"); }

Error parseOption(StringRef text, MemorySpace &space) {
  for (MemorySpace known : memorySpaces)
    if (text == spaceRow(known).name) {
      space = known;
      return Error::success();
    }
  return createStringError("'" + text + "' is no memory space; device, host and ssd are");
}

std::string optionText(MemorySpace space) { return spaceRow(space).name; }

/// What can be offloaded.
static constexpr struct {
  llvm::StringLiteral name;
  MemorySpace Offload::*space;
} offloadKinds[] = {{"optimizer", &Offload::optimizer},
                    {"activations", &Offload::activations},
                    {"parameters", &Offload::parameters}};

Error parseOption(StringRef text, Offload &offload) {
  offload = {};
  if (text == "none")
    return Error::success();
  for (StringRef item : llvm::split(text, ',')) {
    auto [what, where] = item.split('=');
    auto kind = llvm::find_if(offloadKinds, [&, what = what](auto &kind) { return kind.name == what; });
    if (kind == std::end(offloadKinds))
      return createStringError("'" + text + "': '" + what +
                               "' cannot be kept on the host; optimizer, activations, parameters "
                               "and several of these, separated by commas, can, and none is nothing");
    MemorySpace &kept = offload.*kind->space;
    if (isOffload(kept))
      return createStringError("'" + text + "' names " + what + " twice; name it once");
    kept = MemorySpace::Host;
    if (item == what)
      continue;
    if (Error error = parseOption(where, kept); error || !isOffload(kept)) {
      llvm::consumeError(std::move(error));
      return createStringError("'" + text + "': " + what + " cannot be kept on '" + where + "'; " + what +
                               "=host (as " + what + " alone) and " + what + "=ssd are possible");
    }
  }
  return Error::success();
}

std::string optionText(const Offload &offload) {
  std::vector<std::string> kept;
  for (auto &kind : offloadKinds)
    if (MemorySpace space = offload.*kind.space; isOffload(space))
      kept.push_back(kind.name.str() + (space == MemorySpace::Host ? "" : "=" + optionText(space)));
  return llvm::join(kept, ",");
}

} // namespace meshwright
