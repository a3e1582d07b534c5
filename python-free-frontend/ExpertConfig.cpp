//===- ExpertConfig.cpp - what configurations say of experts --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Experts.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

namespace {
/// The values of keys, or the family's where a field has no name.
struct ExpertReader {
  Config &config;
  const Family &family;
  const Experts &names = family.experts;

  int64_t count(const Key<int64_t> &key) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.count(key.name, key.otherwise);
  }
  /// Whether `key` lists a number for each layer.
  bool lists(const Key<int64_t> &key) {
    const llvm::json::Value *value = key.name.empty() ? nullptr : config.json(key.name);
    return value && value->getAsArray();
  }
  /// The numbers of a list, of which each layer that `sparse` marks has one, and other layers have 0.
  std::vector<int64_t> numbersOfLayers(const Key<int64_t> &key, const std::vector<bool> &sparse);
  int64_t size(const Key<std::optional<int64_t>> &key, int64_t otherwise) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? otherwise
                            : config.optionalSize(key.name, key.otherwise).value_or(otherwise);
  }
  bool flag(const Key<bool> &key) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.flag(key.name, key.otherwise);
  }

  /// Which of the `listed` layers that lists are about have experts.
  std::vector<bool> layers(int64_t listed, int64_t experts);
  ExpertSizes sizes(int64_t experts, int64_t chosen, const Model &m, const ModelOptions &options);
  void readGroups(ExpertSizes &sizes);
  void check(const ExpertSizes &sizes, const ModelOptions &options);
};
} // namespace

std::vector<int64_t> ExpertReader::numbersOfLayers(const Key<int64_t> &key, const std::vector<bool> &sparse) {
  std::vector<int64_t> list = config.counts(key.name).value_or(std::vector<int64_t>());
  size_t layers = sparse.size(), some = size_t(llvm::count(sparse, true));
  if (names.listsSparse && list.size() == 1)
    list.assign(some, list.front());
  std::vector<int64_t> numbers(layers);
  if (config.failed())
    return numbers;
  if (names.listsSparse && list.size() != some) {
    config.error(key.name) << "\"" << key.name << "\" lists " << list.size() << " layers, but " << some
                           << " layers have experts; it lists these alone, or one number for all of them";
    return numbers;
  }
  if (!names.listsSparse && !fitsLayers(config, family, key.name, list.size(), int64_t(layers)))
    return numbers;
  auto next = list.begin();
  for (size_t i = 0; i < layers; ++i) {
    int64_t number = names.listsSparse ? (sparse[i] ? *next++ : 0) : list[i];
    if (!sparse[i])
      continue;
    numbers[i] = number;
    if (number < 1 && !config.failed())
      config.error(key.name) << "\"" << key.name << "\" lists " << number << " for layer " << i
                             << ", which has experts; numbers of such layers are 1 or more";
  }
  return numbers;
}

std::vector<bool> ExpertReader::layers(int64_t listed, int64_t experts) {
  int64_t first = count(names.denseFirst), every = 1;
  std::vector<bool> sparse(listed);
  if (!names.sparse.empty()) {
    if (auto list = config.listedCounts(names.sparse)) {
      config.ignore(names.every.name);
      for (int64_t i = 0; i < listed; ++i)
        sparse[i] = llvm::is_contained(*list, i);
      return sparse;
    } else if (names.needsSparse && !config.failed())
      config.error(names.sparse) << "\"" << names.sparse << "\" must list the layers that have experts, from 0";
  }
  if (!names.marks.empty())
    if (auto list = config.counts(names.marks); list && fitsLayers(config, family, names.marks, list->size(), listed)) {
      for (int64_t i = 0; i < listed; ++i)
        sparse[i] = (*list)[i] != 0;
      return sparse;
    }
  if (!names.kinds.empty())
    if (auto list = config.texts(names.kinds)) {
      if (!names.denseFirst.name.empty())
        config.ignore(names.denseFirst.name);
      fitsLayers(config, family, names.kinds, list->size(), listed);
      for (int64_t i = 0; i < listed && !config.failed(); ++i) {
        sparse[i] = (*list)[i] == "sparse";
        if (!sparse[i] && (*list)[i] != "dense")
          config.error(names.kinds) << "\"" << names.kinds << "\": \"" << (*list)[i]
                                    << "\" is not known; dense and sparse are";
      }
      return sparse;
    }
  if (!names.every.name.empty())
    every = config.size(names.every.name, names.every.otherwise);
  int64_t last = names.last.name.empty() ? -1 : config.index(names.last.name, names.last.otherwise);
  int64_t remainder = every - 1;
  if (!names.offset.name.empty())
    remainder = config.count(names.offset.name, names.offset.otherwise);
  if (remainder >= every && !config.failed())
    config.error(names.offset.name) << "\"" << names.offset.name << "\" = " << remainder << " must be less than "
                                    << names.every.name << " = " << every << ", of which it is a remainder";
  auto dense = names.dense.empty() ? std::nullopt : config.counts(names.dense);
  for (int64_t i = 0; i < listed; ++i)
    sparse[i] = experts > 0 && i >= first && (last < 0 || i <= last) && i % every == remainder &&
                !(dense && llvm::is_contained(*dense, i));
  return sparse;
}

void ExpertReader::readGroups(ExpertSizes &sizes) {
  int64_t groups = size(names.groups, 1), chosen = size(names.chosenGroups, 1);
  if (!names.method.name.empty()) {
    std::string method = config.text(names.method.name, names.method.plain);
    if (method == names.method.plain)
      return;
    if (method != names.method.grouped) {
      config.error(names.method.name)
          << names.method.name << " \"" << method << "\" is not supported; \"" << names.method.plain
          << "\" and \"" << names.method.grouped << "\" are";
      return;
    }
  }
  sizes.groups = groups;
  sizes.chosenGroups = chosen;
}

ExpertSizes ExpertReader::sizes(int64_t experts, int64_t chosen, const Model &m, const ModelOptions &options) {
  auto proportional = [&](const Key<std::optional<int64_t>> &key, int64_t size) {
    return inProportion(config, key.name, size, m.listedHidden, options);
  };
  ExpertSizes sizes;
  sizes.count = experts;
  sizes.chosen = chosen;
  // That of the MLP is in proportion already; 0 says that there is none of its own.
  sizes.inner = size(names.inner, 0);
  sizes.inner = sizes.inner ? proportional(names.inner, sizes.inner) : m.inner;
  sizes.sharedInner = names.sharedMayLack ? config.count(names.sharedInner.name, 0)
                                          : size(names.sharedInner, 0);
  sizes.sharedInner = proportional(names.sharedInner, sizes.sharedInner);
  sizes.sharedInner += sizes.inner * count(names.sharedCount);
  sizes.residual = flag(names.residual);
  if (sizes.residual)
    sizes.sharedInner = sizes.inner;
  sizes.normalized = flag(names.normalized);
  if (const llvm::json::Value *order = names.normOrder.empty() ? nullptr : config.json(names.normOrder)) {
    sizes.normalized = !order->getAsNull();
    if (sizes.normalized && order->getAsNumber() != 1.0)
      config.error(names.normOrder) << "\"" << names.normOrder << "\": weights of experts are divided by their sum (1) or not (null); "
                                    << "norms of other orders are not supported";
  }
  sizes.identities = count(names.identities);
  if (!names.leastSum.name.empty())
    sizes.leastSum = config.positive(names.leastSum.name, names.leastSum.otherwise);
  if (!names.jitter.name.empty())
    sizes.jitter = config.positive(names.jitter.name, names.jitter.otherwise);
  if (!names.factor.name.empty())
    sizes.factor = config.optionalPositive(names.factor.name, names.factor.otherwise).value_or(1);
  if (!names.limit.name.empty())
    sizes.gate = {config.positive(names.limit.name, names.limit.otherwise), config.positive(names.gain.name, names.gain.otherwise)};
  readGroups(sizes);
  sizes.sigmoid = names.sigmoid;
  if (!names.scores.empty()) {
    std::string scores = config.text(names.scores, "softmax");
    sizes.sigmoid = scores == "sigmoid";
    if (!sizes.sigmoid && scores != "softmax")
      config.error(names.scores) << "\"" << names.scores << "\": \"" << scores << "\" is not known; softmax and sigmoid are";
    sizes.normalized |= !sizes.sigmoid; // a softmax over the chosen ones
  }
  if (!names.combination.empty()) {
    std::string combination = config.text(names.combination, "average");
    sizes.averaged = combination == "average" && sizes.sharedInner;
    if (combination != "average" && combination != "sum")
      config.error(names.combination) << "\"" << names.combination << "\": \"" << combination << "\" is not known; average and sum are";
  }
  double factor = names.balance.name.empty()
                      ? 0
                      : config.probability(names.balance.name, names.balance.otherwise);
  bool balanced = flag(names.balanced);
  bool wanted = options.auxLoss == AuxLoss::config ? balanced : options.auxLoss != AuxLoss::none;
  if (wanted)
    sizes.balance = options.auxLossFactor.value_or(factor);
  if (options.auxLoss != AuxLoss::config)
    sizes.balanceKind = options.auxLoss;
  else if (names.balanceOfLayers)
    sizes.balanceKind = chosen == 2 ? AuxLoss::gshard : AuxLoss::switchLoss;
  sizes.scope = options.auxLoss == AuxLoss::sequence ? AuxScope::sequence : options.auxScope;
  sizes.counted = options.microbatches > 1 && sizes.scope == AuxScope::batch;
  sizes.zLoss = options.zLoss.value_or(0);
  sizes.biasRate = options.routerBiasRate.value_or(0);
  sizes.blocks = options.expertBlocks;
  sizes.buffer = options.expertBuffer;
  sizes.parts = options.expertParts;
  sizes.redundant = options.redundantExperts;
  sizes.contextParts = options.contextParts;
  sizes.sequenceParts = options.sequenceParts;
  sizes.capacity = options.expertCapacity;
  return sizes;
}

void ExpertReader::check(const ExpertSizes &sizes, const ModelOptions &options) {
  int64_t ofGroup = sizes.count / sizes.groups, open = ofGroup * sizes.chosenGroups;
  if (sizes.chosen < 1)
    config.error(names.chosen.name)
        << names.chosen.name << " must say how many experts a token chooses, at least 1";
  else if (!names.jitter.name.empty() && sizes.chosen != 2)
    config.error(names.chosen.name) << names.chosen.name << " is " << sizes.chosen
                                    << ", but routers of this family choose 2 experts";
  else if (sizes.count % sizes.groups)
    config.error(names.groups.name) << sizes.groups << " groups do not divide " << sizes.count
                                    << " experts (" << names.count.name << ") into equal parts";
  else if (sizes.groups > 1 && ofGroup < names.groupBest)
    config.error(names.groups.name) << "a group has " << ofGroup << " experts, but its score is "
                                    << "the sum of the " << names.groupBest << " best";
  else if (sizes.chosenGroups > sizes.groups)
    config.error(names.chosenGroups.name)
        << names.chosenGroups.name << " = " << sizes.chosenGroups << " is more than the "
        << sizes.groups << " groups (" << names.groups.name << ")";
  else if (sizes.identities && sizes.groups > 1)
    config.error(names.groups.name) << "zero-computation experts are in no group; use 1 group";
  else if (sizes.chosen > open + sizes.identities)
    config.error(names.chosen.name)
        << names.chosen.name << " = " << sizes.chosen << " is more than the " << open
        << " experts that a token chooses from (" << names.count.name
        << "); it chooses each at most once";
  else if (sizes.count % sizes.blocks)
    config.error(names.count.name)
        << "mesh axis 'expert' = " << sizes.blocks << " cannot divide " << sizes.count
        << " experts (" << names.count.name << ") into equal parts"
        << (sizes.blocks > sizes.count ? ": it has more devices; use expert=" : "; use a divisor of ")
        << sizes.count << (sizes.blocks > sizes.count ? " or fewer" : "");
  else if (sizes.redundant % sizes.blocks || sizes.redundant > sizes.count * (sizes.blocks - 1))
    config.error(names.count.name)
        << "--redundant-experts " << sizes.redundant << ": each of the " << sizes.blocks
        << " devices along mesh axis `expert` has equally many slots for copies, at most one for each expert of the others; "
        << "use a multiple of " << sizes.blocks << ", at most " << sizes.count * (sizes.blocks - 1);
  else if (sizes.redundant && sizes.identities)
    config.error(names.count.name)
        << "--redundant-experts does not go with zero-computation experts, whose tokens go to no device; leave it out";
  else if (sizes.redundant && sizes.capacity)
    config.error(names.count.name)
        << "--redundant-experts does not go with --expert-capacity: an expert and its copies would count the tokens that they "
        << "take apart, and other tokens would be dropped; leave one of them out";
  std::string kind = namesOf(options.auxLoss)[size_t(options.auxLoss)].str();
  bool asked = options.auxLoss != AuxLoss::config && options.auxLoss != AuxLoss::none;
  const char *counting = sizes.balance != 0    ? "the load-balancing loss of routers"
                         : sizes.zLoss != 0    ? "--z-loss"
                         : sizes.biasRate != 0 ? "--router-bias-rate"
                         : sizes.capacity      ? "--expert-capacity"
                                               : nullptr;
  if (options.dpoBeta && counting)
    config.error(sizes.balance != 0 && !asked && !names.balanced.name.empty() ? names.balanced.name : names.count.name)
        << counting << " counts all tokens of a batch, and with --loss dpo those behind a completion are padding; "
        << (sizes.balance != 0 ? "use --aux-loss none" : "leave it out");
  else if (asked && options.auxLoss != AuxLoss::sequence && sizes.sigmoid)
    config.error(names.count.name)
        << "--aux-loss " << kind << " is of a softmax over experts, but scores of this family are "
        << "sigmoids; use --aux-loss sequence, or leave it out";
  else if (asked && sizes.balance == 0)
    config.error(names.count.name)
        << "--aux-loss " << kind << " adds nothing: its coefficient is 0"
        << (options.auxLossFactor ? "" : " without --aux-loss-coef")
        << "; give one, e.g. --aux-loss-coef 1e-3, or use --aux-loss none";
  else if (sizes.balance != 0 && options.microbatches > 1 && sizes.scope == AuxScope::batch &&
           !options.auxCountingPass)
    config.error(names.balanced.name.empty() ? names.count.name : names.balanced.name)
        << "the routers' part of the loss is of the whole batch, which " << options.microbatches
        << " microbatches do not see together; use --aux-counting-pass, which counts their choices "
        << "beforehand, --aux-scope microbatch, --aux-scope sequence, --microbatches 1, or "
        << "--aux-loss none";
}

static std::vector<std::string> familiesWithChoiceBias() {
  std::vector<std::string> names;
  for (const Family &family : families())
    if (!family.experts.choiceBias.empty())
      names.push_back(family.name.str());
  return names;
}

/// Refuses flags that would change nothing.
static void checkFlags(Config &config, const Model &m, const ModelOptions &options) {
  bool sparse = llvm::any_of(m.kinds, [](const LayerKind &kind) { return kind.sparse; });
  if (config.failed())
    return;
  if (options.expertCapacity && !sparse)
    config.error("") << "--expert-capacity is of experts, but no layer of this model has some; leave "
                     << "it out";
  if (options.redundantExperts && !sparse)
    config.error("") << "--redundant-experts is of experts, but no layer of this model has some; leave it out";
  if (options.zLoss && !sparse)
    config.error("") << "--z-loss is of routers, but no layer of this model has experts; leave it out";
  if (options.routerBiasRate && (!sparse || m.family.experts.choiceBias.empty())) {
    auto error = config.error("");
    error << "--router-bias-rate is of a bias by which routers choose experts, but "
          << (sparse ? "family " : "no layer of this model has experts; leave it out");
    if (sparse)
      error << m.family.name << " has none; use it with "
            << llvm::join(familiesWithChoiceBias(), " or ");
  }
  if (m.experts.balance != 0)
    return;
  if (options.auxLoss != AuxLoss::config && !sparse)
    config.error("") << "--aux-loss " << namesOf(options.auxLoss)[size_t(options.auxLoss)]
                     << " is of routers, but no layer of this model has experts; leave it out";
  else if (options.auxScope != AuxScope::batch || options.auxCountingPass ||
           (sparse ? options.auxLossFactor.value_or(0) != 0 : options.auxLossFactor.has_value()))
    config.error("") << (options.auxLossFactor     ? "--aux-loss-coef"
                         : options.auxCountingPass ? "--aux-counting-pass"
                                                   : "--aux-scope")
                     << " changes nothing, because routers add nothing to this model's loss; "
                     << (!sparse                    ? "leave it out"
                         : m.experts.sigmoid ? "add --aux-loss sequence"
                                                    : "add --aux-loss hf");
}

ExpertSizes Model::expertsOf(const LayerKind &kind) const {
  ExpertSizes own = experts;
  own.count = kind.experts ? kind.experts : experts.count;
  own.chosen = kind.chosen ? kind.chosen : experts.chosen;
  own.normalized = experts.normalized && !(family.experts.normalizesSeveral && own.chosen == 1);
  own.gate.limit = kind.limit ? kind.limit : experts.gate.limit;
  own.balanceShare = double(own.all()) * experts.counting() / (own.counting() * double(experts.all()));
  return own;
}

/// Refuses losses that have no meaning where layers differ in their experts.
static void checkMixed(Config &config, const Model &m, const ModelOptions &options) {
  const Experts &names = m.family.experts;
  bool counts = false, chosen = false;
  for (const LayerKind &kind : m.kinds) {
    counts |= kind.experts != 0;
    chosen |= kind.chosen != 0;
  }
  if (config.failed() || m.experts.balance == 0)
    return;
  if (counts && m.experts.balanceKind == AuxLoss::hf)
    config.error(names.count.name)
        << "\"" << names.count.name << "\": layers have different numbers of experts, and the load-balancing loss of transformers is of "
        << "the tokens of all layers together; use --aux-loss switch, gshard or sequence, which are of each layer, or --aux-loss none";
  else if (chosen && names.balanceOfLayers && options.auxLoss == AuxLoss::config)
    config.error(names.chosen.name)
        << "\"" << names.chosen.name << "\": layers choose different numbers of experts, by which this family's load-balancing loss is "
        << "another one; use --aux-loss switch, gshard, sequence or none";
}

void meshwright::frontend::readExperts(Config &config, Model &m, int64_t listed,
                                       const ModelOptions &options) {
  const Experts &names = m.family.experts;
  if (!names.any())
    return checkFlags(config, m, options);
  if (!names.used.name.empty() && !config.flag(names.used.name, names.used.otherwise)) {
    for (StringRef key : {names.count.name, names.chosen.name, names.inner.name, names.sparse, names.residual.name, names.balance.name})
      config.ignore(key);
    return checkFlags(config, m, options);
  }
  if (!names.count.alias.empty())
    config.alias(names.count.name, names.count.alias);
  if (!names.chosen.alias.empty())
    config.alias(names.chosen.name, names.chosen.alias);
  ExpertReader reader{config, m.family};
  // Where a list may leave layers without experts, none at all is another way to say so.
  bool countsListed = reader.lists(names.count), chosenListed = reader.lists(names.chosen);
  int64_t experts = countsListed ? 1
                    : names.dense.empty() && !names.mayLack ? config.size(names.count.name, names.count.otherwise)
                                                            : reader.count(names.count);
  if (names.oneIsNone && experts == 1 && !countsListed)
    experts = 0;
  std::vector<bool> sparse = reader.layers(listed, experts);
  for (int64_t i = 0; i < m.layers; ++i)
    m.kinds[i].sparse = sparse[i % listed];
  auto readLimits = [&](StringRef key, double LayerKind::*limit) {
    const llvm::json::Value *value = key.empty() ? nullptr : config.json(key);
    if (!value || value->getAsNull())
      return;
    const llvm::json::Array *list = value->getAsArray();
    if (!fitsLayers(config, m.family, key, list ? list->size() : 0, listed))
      return;
    for (int64_t i = 0; i < m.layers; ++i) {
      const llvm::json::Value &one = (*list)[size_t(i % listed)];
      m.kinds[i].*limit = one.getAsNumber().value_or(one.getAsNull() ? 0.0 : -1.0);
      if (m.kinds[i].*limit < 0 && !config.failed())
        config.error(key) << "\"" << key << "\" must list numbers above 0, or null or 0 for layers without a limit";
    }
  };
  readLimits(names.limits, &LayerKind::limit);
  readLimits(names.mlpLimits, &LayerKind::mlpLimit);
  for (LayerKind &kind : m.kinds)
    kind.limit = kind.sparse ? kind.limit : 0;
  if (!names.denseInner.name.empty())
    if (auto inner = config.optionalSize(names.denseInner.name, names.denseInner.otherwise))
      for (LayerKind &kind : m.kinds)
        kind.inner = kind.sparse ? 0 : inProportion(config, names.denseInner.name, *inner, m.listedHidden, options);
  auto numbers = [&](const Key<int64_t> &key, bool isList, int64_t otherwise) {
    return isList ? reader.numbersOfLayers(key, sparse) : std::vector<int64_t>(size_t(listed), otherwise);
  };
  std::vector<int64_t> counts = numbers(names.count, countsListed, experts);
  std::vector<int64_t> chosen = numbers(names.chosen, chosenListed, chosenListed ? 0 : reader.count(names.chosen));
  m.experts = reader.sizes(*llvm::max_element(counts), *llvm::max_element(chosen), m, options);
  for (int64_t i = 0; i < m.layers; ++i) {
    LayerKind &kind = m.kinds[size_t(i)];
    int64_t count = counts[size_t(i % listed)], ofToken = chosen[size_t(i % listed)];
    kind.experts = kind.sparse && count != m.experts.count ? count : 0;
    kind.chosen = kind.sparse && ofToken != m.experts.chosen ? ofToken : 0;
  }
  if (!config.failed() && llvm::is_contained(sparse, true)) {
    for (const LayerKind &kind : m.kinds)
      if (kind.sparse && !config.failed())
        reader.check(m.expertsOf(kind), options);
    checkMixed(config, m, options);
  } else
    m.experts.balance = 0;
  checkFlags(config, m, options);
}
