//===- RematPolicy.cpp - how policies of rematerialization are written -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/RematPolicy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using llvm::createStringError;
using llvm::StringRef;

namespace meshwright {

std::string RematPolicy::str() const {
  if (every == 1 && !price)
    return "none";
  if (every == 1 && std::isinf(*price))
    return "full";
  std::string text = every == 0 ? "sqrt" : every == 1 ? "" : "every:" + std::to_string(every);
  if (price)
    llvm::raw_string_ostream(text)
        << (text.empty() ? "price:" : "+price:") << llvm::format("%.6g", *price);
  return text;
}

llvm::Expected<RematPolicy> parsePolicy(StringRef text) {
  RematPolicy policy;
  auto fail = [&](const llvm::Twine &why) { return createStringError("'" + text + "' " + why); };
  if (text == "none")
    return policy;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, '+');
  for (StringRef part : parts) {
    auto [name, value] = part.split(':');
    if (part == "full" || part == "selective") {
      policy.price = part == "full" ? HUGE_VAL : selectivePrice;
    } else if (part == "sqrt") {
      policy.every = 0;
    } else if (name == "every") {
      if (value.getAsInteger(10, policy.every) || policy.every < 1)
        return fail("needs a number of layers of at least 1 after 'every:'");
    } else if (name == "price") {
      double price = 0;
      if (value.getAsDouble(price) || !(price > 0))
        return fail("needs a positive number of FLOPs after 'price:'");
      policy.price = price;
    } else {
      return fail("is no policy; none, full, every:K, sqrt, selective, price:FLOPS, "
                  "every:K+price:FLOPS and auto[:BYTES] are");
    }
  }
  // A layer whose input alone is kept is computed again as a whole.
  if (policy.every == 1 && !policy.price)
    policy.price = HUGE_VAL;
  return policy;
}

llvm::Error parseOption(StringRef text, RematChoice &choice) {
  auto [name, bytes] = text.split(':');
  choice.automatic = name == "auto";
  if (choice.automatic) {
    llvm::Error error = name == text ? llvm::Error::success() : parseOption(bytes, choice.budget);
    return error ? createStringError("auto: " + toString(std::move(error))) : std::move(error);
  }
  choice.policies.clear();
  for (StringRef part : llvm::split(text, ','))
    if (llvm::Error error = parseOption(part.trim(), choice.policies.emplace_back()))
      return error;
  return llvm::Error::success();
}

std::string optionText(const RematChoice &choice) {
  if (choice.automatic)
    return choice.budget.text.empty() ? "auto" : "auto:" + choice.budget.text;
  return llvm::join(llvm::map_range(choice.policies, [](const RematPolicy &p) { return p.str(); }),
                    ",");
}

/// Of groups that divide `count` those whose number is nearest to their length.
static int64_t nearestToRoot(int64_t count) {
  int64_t best = 1;
  for (int64_t size = 2; size <= count; ++size)
    if (count % size == 0 && size + count / size < best + count / best)
      best = size;
  return best;
}

LayerGroups groupsOf(int64_t every, int64_t count) {
  if (every == 0) {
    int64_t size = 1;
    for (int64_t n = 2; n <= count; ++n)
      if (n + (count + n - 1) / n < size + (count + size - 1) / size)
        size = n;
    int64_t layers = count / size * size;
    return {layers, nearestToRoot(layers)};
  }
  int64_t size = std::min(every, count);
  return {count / size * size, size};
}

} // namespace meshwright
