//===- Profile.cpp - how another system's steps differ ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Profile.h"

#include "TomlReader.h"
#include "meshwright/InputFile.h"
#include "meshwright/OptionValues.h"

using namespace meshwright;
using namespace meshwright::cost;
using llvm::createStringError;
using llvm::StringRef;

static llvm::Expected<Profile> parseProfile(StringRef text, StringRef file) {
  TomlReader reader(file);
  Profile profile;
  const std::pair<StringRef, double *> numbers[] = {{"products", &profile.products},
                                                    {"attention", &profile.attention},
                                                    {"kernels", &profile.kernels},
                                                    {"optimizer", &profile.optimizer},
                                                    {"communication", &profile.communication},
                                                    {"network", &profile.network},
                                                    {"launch", &profile.launch},
                                                    {"message", &profile.message},
                                                    {"dispatch", &profile.dispatch},
                                                    {"dispatch_peer", &profile.dispatchPeer},
                                                    {"gradient_bucket", &profile.gradientBucket},
                                                    {"unused_gradients", &profile.unusedGradients}};
  auto read = [&](const toml::table &table) {
    reader.expectOnly(table, {"name", "description", "source", "products", "attention", "kernels",
                              "optimizer", "logits", "communication", "network", "launch", "message", "dispatch",
                              "dispatch_peer", "synchronous_messages", "separate_accumulation",
                              "batched_collectives", "all_reduced_gradients", "gradient_bucket",
                              "excluded_algorithms", "gradients_in_place", "unused_gradients",
                              "memory"});
    profile.name = reader.text(table, "name");
    profile.description = reader.text(table, "description", false);
    reader.text(table, "source");
    for (auto [key, value] : numbers)
      if (table.get(std::string_view(key)))
        *value = reader.number(table, key);
    profile.synchronousMessages = reader.flag(table, "synchronous_messages");
    profile.gradientsInPlace = reader.flag(table, "gradients_in_place");
    profile.separateAccumulation = reader.flag(table, "separate_accumulation");
    profile.batchedCollectives = reader.texts(table, "batched_collectives");
    profile.allReducedGradients = reader.texts(table, "all_reduced_gradients");
    profile.excludedAlgorithms = reader.texts(table, "excluded_algorithms");
    if (const toml::node *logits = reader.find(table, "logits", /*mustBe=*/false)) {
      if (const toml::table *bytes = logits->as_table()) {
        reader.expectOnly(*bytes, {"forward", "backward"});
        profile.logitsForward = reader.number(*bytes, "forward");
        profile.logitsBackward = reader.number(*bytes, "backward");
      } else {
        reader.fail(*logits, "'logits' must be a table with bytes of forward and backward");
      }
    }
    const toml::node *memory = reader.find(table, "memory", /*mustBe=*/false);
    if (!memory)
      return;
    if (!memory->is_table())
      return reader.fail(*memory, "'memory' must be a table of factors by category");
    reader.expectOnly(*memory->as_table(), {"parameter", "gradient", "optimizer", "activation",
                                            "temporary", "workspace", "input", "output"});
    for (auto &&[key, node] : *memory->as_table())
      profile.memory[std::string(key.str())] =
          reader.number(*memory->as_table(), StringRef(key.data(), key.length()));
  };
  if (llvm::Error error = reader.parse(text, read))
    return std::move(error);
  return profile;
}

llvm::Expected<Profile> cost::readProfile(StringRef nameOrFile) {
  if (nameOrFile == Profile().name)
    return Profile();
  for (const NamedProfile &known : getProfiles())
    if (known.name == nameOrFile)
      return parseProfile(known.text, nameOrFile);
  if (!nameOrFile.ends_with(".toml")) {
    auto names =
        llvm::map_to_vector(getProfiles(), [](const NamedProfile &known) { return known.name; });
    names.insert(names.begin(), "meshwright");
    return createStringError("--profile " + notAmong(nameOrFile, names) +
                             "; a file's name ends in .toml");
  }
  auto file = readInput(nameOrFile, clusterInput);
  if (!file)
    return createStringError("cannot read '" + nameOrFile + "': " + toString(file.takeError()));
  return parseProfile((*file)->getBuffer(), nameOrFile);
}
