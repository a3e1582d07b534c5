//===- Converter.cpp - what all systems' settings have in common --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Converter.h"

#include "meshwright/OptionValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <charconv>
#include <cstdio>

using namespace llvm;

namespace meshwright::convert {

/// More devices, sequences or steps than anybody has.
static constexpr int64_t most = (int64_t(1) << 31) - 1;

std::string Converter::numberText(double value) {
  // Products such as 1e-3 * 1e-4 are not written with their rounding errors.
  char text[64];
  snprintf(text, sizeof(text), "%.12g", value);
  to_float(StringRef(text), value);
  return std::string(text, std::to_chars(text, std::end(text), value).ptr);
}

const Setting *Converter::find(StringRef key) const {
  auto found = find_if(settings, [&](const Setting &setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

bool Converter::hasTable(StringRef name) const {
  return any_of(settings, [&](const Setting &setting) {
    StringRef key = setting.key;
    return key.consume_front(name) && key.starts_with(".");
  });
}

const Setting *Converter::use(StringRef key) {
  const Setting *setting = find(key);
  if (!setting)
    return nullptr;
  used.insert(key.str());
  if (setting->otherLine)
    fail(key, "line " + Twine(setting->otherLine) +
                  " has another value, and conditions are not evaluated; keep one of them");
  return setting->kind == Setting::Null ? nullptr : setting;
}

void Converter::fail(StringRef key, const Twine &why) {
  if (failed())
    return;
  const Setting *setting = key.empty() ? nullptr : find(key);
  if (!setting) {
    error = ("'" + file + "': " + why).str();
    return;
  }
  error = ("'" + file + "'" + (setting->line ? ", line " + Twine(setting->line) : Twine()) + ": " + key + " is '" +
           setting->text + "': " + why)
              .str();
}

/// What a value of a script may be that is no number: a variable.
static std::string orVariable(const Setting &setting, const Twine &expected) {
  return StringRef(setting.text).contains('$')
             ? "the file does not decide this variable; write its value, " + expected.str()
             : expected.str();
}

int64_t Converter::count(StringRef key, int64_t otherwise, int64_t least) {
  const Setting *setting = use(key);
  if (!setting)
    return otherwise;
  int64_t value = 0;
  if (StringRef(setting->text).getAsInteger(10, value) || value < least || value > most) {
    fail(key, orVariable(*setting, "it must be a whole number from " + Twine(least) + " to " + Twine(most)));
    return std::max<int64_t>(otherwise, 1);
  }
  return value;
}

double Converter::number(StringRef key, double otherwise, double least) {
  const Setting *setting = use(key);
  if (!setting)
    return otherwise;
  double value = 0;
  if (!to_float(setting->text, value) || !(value >= least && value <= 1e30)) {
    fail(key, orVariable(*setting, "it must be a number of at least " + numberText(least)));
    return otherwise;
  }
  return value;
}

bool Converter::isOn(StringRef key, bool otherwise) {
  const Setting *setting = use(key);
  if (!setting)
    return otherwise;
  if (setting->kind != Setting::Switch)
    fail(key, orVariable(*setting, "it must be true or false"));
  return setting->text == "true";
}

std::string Converter::text(StringRef key, StringRef otherwise) {
  const Setting *setting = use(key);
  if (setting && setting->kind == Setting::List)
    fail(key, "it must be one value");
  return setting ? setting->text : otherwise.str();
}

std::string Converter::choice(StringRef key, StringRef otherwise, ArrayRef<StringLiteral> meanings) {
  const Setting *setting = use(key);
  if (!setting)
    return otherwise.str();
  std::vector<std::string> names;
  for (StringRef entry : meanings) {
    auto [theirs, ours] = entry.split('=');
    if (theirs.equals_insensitive(setting->text))
      return ours.str();
    names.push_back(theirs.str());
  }
  fail(key, orVariable(*setting, "it must be one of " + join(names, ", ")));
  return otherwise.str();
}

void Converter::remark(Fate fate, StringRef key, const Twine &why) {
  const Setting *setting = find(key);
  auto isSame = [&](const Remark &remark) { return remark.setting.key == key && remark.why == why.str(); };
  if (setting && none_of(remarks, isSame)) {
    used.insert(key.str());
    remarks.push_back({fate, *setting, why.str()});
  }
}

int64_t Converter::times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product) && product <= most)
    return product;
  fail("", Twine(a) + " times " + Twine(b) + " devices or sequences are more than " + Twine(most));
  return 1;
}

int64_t Converter::dataDevices(const Layout &others, int64_t all, StringRef remedy) {
  int64_t fixed = times(times(times(others.pipe, others.replica), others.context), others.tensor);
  if (!all) {
    fail("", "it does not say how many devices there are; " + remedy +
                 (fixed > 1 ? " (a multiple of " + Twine(fixed) + ")" : Twine()));
    return 1;
  }
  if (all % fixed)
    fail("", Twine(all) + " devices are no multiple of the " + Twine(fixed) +
                 " of the file's other parallel degrees; give --devices another number");
  return std::max<int64_t>(1, all / fixed);
}

void Converter::writeLayout(const Layout &layout, StringRef expertKey) {
  if (layout.expert > 1 && layout.data % layout.expert)
    return fail(expertKey, "Meshwright's axis expert divides data-parallel ranks, of which there are " +
                               Twine(layout.data) + "; use a divisor of " + Twine(layout.data));
  std::pair<StringRef, int64_t> axes[] = {
      {"pipe", layout.pipe},     {"replica", layout.replica}, {"data", layout.data / std::max<int64_t>(1, layout.expert)},
      {"expert", layout.expert}, {"context", layout.context}, {"tensor", layout.tensor}};
  std::string mesh;
  for (auto [name, size] : axes)
    if (size > 1)
      mesh += (mesh.empty() ? "" : ",") + name.str() + "=" + std::to_string(size);
  if (!mesh.empty())
    flag("mesh", mesh);
  if (layout.microbatchSize)
    flag("batch", Twine(times(times(layout.microbatchSize, layout.microbatches), layout.dataParallel())));
  if (layout.microbatches > 1)
    flag("microbatches", Twine(layout.microbatches));
}

void Converter::writeZero(int64_t level, const Layout &layout, StringRef key) {
  if (layout.data == 1 && layout.context == 1)
    remark(Fate::NoEffect, key, "there is one rank to shard among");
  else if (level)
    flag("zero", Twine(level));
}

void Converter::remarkUndivided(int64_t size, StringRef axis, ArrayRef<StringRef> keys) {
  if (size == 1)
    for (StringRef key : keys)
      remark(Fate::NoEffect, key, "there is one device along " + axis);
}

void Converter::writeSchedule(const RateSchedule &schedule) {
  const RateSchedule &s = schedule;
  if (s.steps)
    run("steps", Twine(s.steps));
  if (s.warmup)
    run("warmup", Twine(s.warmup));
  bool toTheEnd = !s.steps || s.decay >= s.steps - s.warmup;
  if (s.shape == "constant" || s.shape == "inverse-sqrt" ||
      (toTheEnd && (s.shape == "linear" || s.shape == "cosine"))) {
    run("lr-schedule", s.shape);
  } else {
    run("lr-schedule", "wsd");
    run("decay-fraction",
        numberText(double(std::min(s.decay, s.steps - s.warmup)) / double(std::max<int64_t>(1, s.steps))));
    run("decay-shape", s.shape);
  }
  if (s.least > 0 && s.shape != "constant")
    runNumber("min-lr", s.least);
}

void Converter::writeOptimizer(const OptimizerNumbers &numbers) {
  StringRef name = numbers.name;
  flag("optimizer", name);
  bool isAdam = name == "adamw" || name == "adam" || name == "muon"; // Muon's other parameters are AdamW's.
  if (isAdam || name == "lion") {
    runNumber("beta1", numbers.beta1);
    runNumber("beta2", numbers.beta2);
  }
  if (isAdam)
    runNumber("eps", numbers.eps);
  if (name == "muon" || name == "sgd-momentum" || name == "sgd-nesterov")
    runNumber("momentum", numbers.momentum);
  if (name != "sgd" && numbers.decay)
    runNumber("weight-decay", *numbers.decay);
}

void Converter::writeDecayOfAll(const OptimizerNumbers &numbers) {
  if (numbers.name != "sgd" && numbers.decay.value_or(0) > 0)
    flag("optimizer-groups", "*:decay=1");
}

static bool matches(StringRef keys, StringRef key) {
  while (!keys.empty()) {
    StringRef one;
    std::tie(one, keys) = keys.split(' ');
    if (one == key || (one.consume_back("*") && key.starts_with(one)))
      return true;
  }
  return false;
}

void Converter::apply(ArrayRef<Rule> rules) {
  for (const Setting &setting : settings) {
    if (used.count(setting.key))
      continue;
    auto *rule = find_if(rules, [&](const Rule &rule) { return matches(rule.keys, setting.key); });
    if (rule == rules.end()) {
      remarks.push_back({Fate::Unknown, setting, "not a known key; check its spelling"});
      continue;
    }
    switch (rule->use) {
    case Rule::Run:
      if (setting.kind != Setting::Null)
        runNumber(rule->text, number(setting.key, 0));
      break;
    case Rule::Nearest:
      remarks.push_back({setting.isOff() ? Fate::NoEffect : Fate::Nearest, setting,
                         setting.isOff() ? std::string("switched off") : rule->text.str()});
      break;
    case Rule::Describe:
      remarks.push_back({model ? Fate::NoEffect : Fate::Model, setting,
                         model ? std::string("not needed in config.json") : rule->text.str()});
      break;
    case Rule::Ignore:
      remarks.push_back({Fate::NoEffect, setting, rule->text.str()});
      break;
    }
  }
}

} // namespace meshwright::convert
