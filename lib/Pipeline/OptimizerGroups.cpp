//===- OptimizerGroups.cpp - groups of parameters in files ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OptimizerGroups.h"
#include "meshwright/InputFile.h"
#include "meshwright/Toml.h"
#include "meshwright/TomlKeys.h"

#include "llvm/ADT/Twine.h"

#include <iomanip>
#include <sstream>

using namespace llvm;

namespace meshwright {

/// One table as the flag's text has it, or what is wrong with it.
static Expected<std::string> groupOf(const toml::table &table) {
  std::string pattern, factors;
  for (auto &&[key, node] : table) {
    StringRef name(key.str());
    if (name == "pattern") {
      pattern = node.value_or(std::string());
      if (pattern.empty() || StringRef(pattern).find_first_of(":;") != StringRef::npos)
        return createStringError("pattern must be the text of a pattern, without ':' and ';'");
      continue;
    }
    if (name != "lr" && name != "decay")
      return createStringError("'" + name + "' is no key of a group; the keys are pattern, lr and decay");
    std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value)
      return createStringError(name + " must be a number");
    std::ostringstream text;
    text << (factors.empty() ? "" : ",") << name.str() << '=' << std::setprecision(17) << *value;
    factors += text.str();
  }
  if (pattern.empty())
    return createStringError("pattern is missing");
  if (factors.empty())
    return createStringError("neither lr nor decay is there, so the group changes nothing");
  return pattern + ":" + factors;
}

Expected<std::string> optimizerGroupsOf(StringRef value) {
  if (!value.ends_with(".toml"))
    return value.str();
  auto fail = [&](const Twine &message) { return createStringError("'" + value + "': " + message); };
  auto file = readInput(value, recipeInput, /*isText=*/true);
  if (!file)
    return fail("cannot read the file: " + toString(file.takeError()));
  if (unsigned line = lineOfDeepKey((*file)->getBuffer()))
    return fail("line " + Twine(line) + ": a key has more than 64 parts between dots");
  toml::parse_result parsed = toml::parse(std::string_view((*file)->getBuffer()), value.str());
  if (!parsed)
    return fail("line " + Twine(parsed.error().source().begin.line) + ": " + std::string(parsed.error().description()));
  const toml::table &table = parsed;
  constexpr const char *example = "it has tables [[group]], e.g.\n[[group]]\npattern = \"*.bias\"\ndecay = 0";
  for (auto &&[key, node] : table)
    if (key != "group" || !node.is_array_of_tables())
      return fail("line " + Twine(node.source().begin.line) + ": '" + StringRef(key.str()) + "' is no [[group]]; " + example);
  const toml::array *groups = table["group"].as_array();
  if (!groups || groups->empty())
    return fail(Twine("no group is in it; ") + example);
  std::string all;
  for (auto &&group : *groups) {
    Expected<std::string> text = groupOf(*group.as_table());
    if (!text)
      return fail("line " + Twine(group.source().begin.line) + ": " + toString(text.takeError()));
    all += (all.empty() ? "" : ";") + *text;
  }
  return all;
}

} // namespace meshwright
