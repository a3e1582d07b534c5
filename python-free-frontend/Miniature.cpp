//===- Miniature.cpp - a configuration with small widths ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Miniature.h"

#include "llvm/Support/MathExtras.h"

using namespace meshwright;
using namespace meshwright::frontend;

/// Models that are at most as wide stay as they are.
static constexpr int64_t smallHidden = 256;
static constexpr int64_t shortWindow = 16, fewPositions = 512;

namespace {
/// The sizes of a configuration, by the keys of its family.
class Sizes {
public:
  explicit Sizes(llvm::json::Object &config) : config(config) {}

  std::optional<int64_t> get(const Key<std::optional<int64_t>> &key) const {
    if (std::optional<int64_t> found = find(key.name, key.alias))
      return found;
    return isNull(key.name) ? std::nullopt : key.otherwise;
  }
  int64_t get(const Key<int64_t> &key) const { return find(key.name, key.alias).value_or(key.otherwise); }

  template <typename T> void set(const Key<T> &key, int64_t size) {
    if (key.name.empty())
      return;
    auto place = [&](StringRef name) { return placeOf(config, name); };
    auto [object, name] = place(key.name);
    if (auto [other, alias] = place(key.alias); other && other->get(alias) && !(object && object->get(name)))
      std::tie(object, name) = std::pair(other, alias);
    if (object)
      (*object)[name] = size;
  }
  /// Makes a size at most `most`.
  template <typename T> void limit(const Key<T> &key, int64_t most) {
    if (std::optional<int64_t> size = get(key); !key.name.empty() && size && *size > most)
      set(key, most);
  }

private:
  /// Where a key lies: dots lead into objects, of which there may be none.
  static std::pair<llvm::json::Object *, StringRef> placeOf(llvm::json::Object &config, StringRef key) {
    llvm::json::Object *object = &config;
    while (object && key.contains('.')) {
      auto [first, rest] = key.split('.');
      object = object->getObject(first);
      key = rest;
    }
    return {key.empty() ? nullptr : object, key};
  }
  std::optional<int64_t> find(StringRef name, StringRef alias) const {
    std::optional<int64_t> found;
    for (StringRef key : {name, alias})
      if (auto [object, last] = placeOf(config, key); object && !found)
        found = object->getInteger(last);
    return found;
  }
  bool isNull(StringRef name) const {
    auto [object, last] = placeOf(config, name);
    const llvm::json::Value *value = object ? object->get(last) : nullptr;
    return value && value->getAsNull();
  }

  llvm::json::Object &config;
};
} // namespace

/// A number of about `multiple` with the remainder of `size`.
static int64_t smaller(int64_t size, int64_t multiple) {
  return size <= 2 * multiple ? size : multiple + size % multiple;
}

/// Makes heads of recurrences small. Where they are to fill a multiple of the hidden size, `hidden` becomes what they fill,
/// which attention's heads divide evenly.
static void shrinkRecurrence(Sizes &sizes, const Recurrence &keys, int64_t heads, int64_t &hidden) {
  constexpr int64_t shortChunk = 8, small = 8;
  sizes.limit(keys.chunk, shortChunk);
  sizes.limit(keys.keyDim, small);
  if (sizes.get(keys.inner) && keys.headDim.name.empty())
    return sizes.set(keys.inner, hidden);
  if (sizes.get(keys.inner)) {
    sizes.limit(keys.headDim, small);
    return sizes.set(keys.inner, sizes.get(keys.heads) * std::max<int64_t>(sizes.get(keys.headDim), 1));
  }
  if (keys.expand.name.empty() || keys.heads.name.empty())
    return sizes.limit(keys.headDim, small);
  int64_t own = std::max<int64_t>(sizes.get(keys.heads), 1), expand = std::max<int64_t>(sizes.get(keys.expand), 1);
  for (int64_t head = own > 32 ? 4 : small;; head += 2) {
    if (own * head % (2 * expand * heads))
      continue;
    hidden = own * head / expand;
    return sizes.limit(keys.headDim, head);
  }
}

/// Numbers of tokens that a smaller vocabulary does not have.
static void limitTokens(llvm::json::Object &config, int64_t vocabulary) {
  auto limit = [&](llvm::json::Value &value) {
    if (std::optional<int64_t> token = value.getAsInteger(); token && *token >= vocabulary)
      value = *token % vocabulary;
  };
  for (auto &[key, value] : config) {
    if (!StringRef(key).ends_with("_token_id"))
      continue;
    if (llvm::json::Array *tokens = value.getAsArray())
      for (llvm::json::Value &token : *tokens)
        limit(token);
    else
      limit(value);
  }
}

/// Leaves of each list of factors, one for a pair of a head's elements, as many as a head of `to` of `from` elements needs.
static void shortenFactors(llvm::json::Object &config, int64_t from, int64_t to) {
  for (auto &[name, value] : config) {
    StringRef key(name);
    if (llvm::json::Object *object = value.getAsObject()) {
      shortenFactors(*object, from, to);
      continue;
    }
    llvm::json::Array *factors = value.getAsArray();
    if (!factors || (key != "short_factor" && key != "long_factor"))
      continue;
    int64_t count = int64_t(factors->size()) * to / from;
    llvm::json::Array kept;
    for (int64_t i = 0; i < count; ++i)
      kept.push_back((*factors)[size_t(i * int64_t(factors->size()) / count)]);
    value = std::move(kept);
  }
}

void meshwright::frontend::makeSmall(llvm::json::Object &config, const Family &family, int64_t multiple) {
  Sizes sizes(config);
  int64_t hidden = sizes.get(family.hidden), heads = std::max<int64_t>(sizes.get(family.heads), 1);
  if (hidden <= smallHidden)
    return;
  if (family.source)
    makeSmall(config, *family.source, multiple);

  std::optional<int64_t> own = sizes.get(family.headDim);
  bool ownHeadDim = own || family.latent.used;
  // A head's part that turns is to be a whole number of pairs.
  int64_t head = own.value_or(hidden / heads), small = std::min<int64_t>(head, heads <= 16 ? 16 : heads <= 32 ? 8 : 4);
  if (const Key<double> &part = family.rotary.part; family.rotary.used && !part.name.empty()) {
    double turned = config.getNumber(part.name).value_or(part.otherwise);
    while (small < head && turned > 0 && (turned * double(small) < 2 || int64_t(turned * double(small)) % 2))
      small *= 2;
  }
  small = std::min(small, head);
  if (!family.rotary.width.name.empty() && config.get(family.rotary.width.name))
    sizes.set(family.rotary.width,
              std::max<int64_t>(2, llvm::alignDown(uint64_t(sizes.get(family.rotary.width) * small / head), 2)));
  shortenFactors(config, head, small);

  std::optional<int64_t> embedding = sizes.get(family.embeddingWidth);
  int64_t narrow = ownHeadDim ? smaller(hidden, multiple) : heads * small;
  if (family.recurrence.any()) {
    shrinkRecurrence(sizes, family.recurrence, ownHeadDim ? 1 : heads, narrow);
    // JSON has no infinity: what takes its place is as large.
    llvm::json::Array *limit = family.recurrence.limit.empty() ? nullptr : config.getArray(family.recurrence.limit);
    if (limit && limit->size() == 2 && (*limit)[1].getAsNumber() == 0.0)
      (*limit)[1] = 1e30;
  }
  if (embedding)
    sizes.set(family.embeddingWidth, *embedding == hidden ? narrow : smaller(*embedding, multiple / 2));
  sizes.set(family.hidden, narrow);
  if (own)
    sizes.set(family.headDim, small);
  if (family.latent.used) {
    sizes.limit(family.latent.queryRank, 32);
    sizes.limit(family.latent.keyRank, 16);
    sizes.limit(family.latent.plainDim, 8);
    sizes.limit(family.latent.turnedDim, 8);
    sizes.limit(family.latent.valueDim, 8);
  }
  if (std::optional<int64_t> inner = sizes.get(family.inner))
    sizes.set(family.inner, smaller(*inner, multiple));
  for (const Key<std::optional<int64_t>> &key : {family.experts.inner, family.experts.sharedInner, family.experts.denseInner})
    if (std::optional<int64_t> inner = sizes.get(key); family.experts.any() && inner)
      sizes.set(key, smaller(*inner, multiple / 2));

  int64_t vocabulary = smaller(sizes.get(family.vocabulary), 2 * multiple);
  sizes.set(family.vocabulary, vocabulary);
  if (StringRef target = family.targetVocabulary; !target.empty() && config.get(target))
    config[target] = vocabulary;
  limitTokens(config, vocabulary);

  sizes.limit(family.valueDim, small);
  sizes.limit(family.mixed.headDim, small);
  sizes.limit(family.inputs.width, small);
  sizes.limit(family.inputs.vocabulary, vocabulary);
  sizes.limit(family.kinds.window, shortWindow);
  sizes.limit(family.temperature.every, shortWindow);
  if (!family.positionTable.empty())
    sizes.limit(family.positions, fewPositions);
}
