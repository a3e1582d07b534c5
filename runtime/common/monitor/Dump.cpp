//===- Dump.cpp - what one step reads and computes, in files --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Dump.h"

#include "common/monitor/Error.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace meshwright;

static std::string nameOfRank(const std::string &directory, int rank, const char *ending) {
  return text(directory, "/rank-", rank, ending);
}

bool Dump::isPossible() { return meshwright_program != nullptr; }

Dump::Dump(const std::string &directory, const Plan &plan, int rank, int64_t step)
    : directory(directory), plan(plan), rank(rank), step(step),
      file(nameOfRank(directory, rank, ".bin")) {
  // An index is of values that are all there.
  remove(nameOfRank(directory, rank, ".json").c_str());
}

int64_t Dump::append(const void *address, int64_t bytes) {
  file.write(address, bytes);
  size += bytes;
  return size - bytes;
}

std::string Dump::entry(const std::string &kind, const std::string &name, ElementType type,
                        const std::vector<int64_t> &shape, const char *address) {
  int64_t bytes = bytesOf(type);
  for (int64_t dim : shape)
    bytes *= dim;
  nlohmann::json json = {{"kind", kind},   {"name", name},   {"type", nameOf(type)},
                         {"shape", shape}, {"begin", append(address, bytes)}};
  return json.dump() + ",\n";
}

std::string Dump::variables(const VariableAddresses &addresses) {
  std::string result;
  for (const Variable &variable : plan.variables)
    result += entry("variable", variable.name, variable.type, variable.localShape,
                    addresses.of(variable));
  return result;
}

std::string Dump::ports(const char *kind, const std::map<std::string, Port> &ports,
                        const char *arena) {
  std::string result;
  for (const auto &[name, port] : ports)
    result += entry(kind, name, port.type, port.shape, arena + port.offset);
  return result;
}

void Dump::before(const VariableAddresses &addresses) {
  stateBefore = variables(addresses) + ports("input", plan.inputs, addresses.arenas[MemorySpace::Device]);
}

void Dump::value(int number, int result, const void *address, int64_t bytes) {
  values += text("[", number, ",", result, ",", append(address, bytes), ",", bytes, "],\n");
}

void Dump::after(const VariableAddresses &addresses) {
  std::string stateAfter = variables(addresses) + ports("output", plan.outputs, addresses.arenas[MemorySpace::Device]);
  file.close();
  auto list = [](std::string &entries) { // Without the last comma.
    return "[\n" + entries.substr(0, entries.size() < 2 ? 0 : entries.size() - 2) + "]";
  };
  if (rank == 0) {
    OutputFile program(directory + "/program.mlir");
    program.write({meshwright_program, size_t(meshwright_program_size)});
    program.close();
  }
  OutputFile index(nameOfRank(directory, rank, ".json"));
  index.write(text("{\"rank\":", rank, ",\"ranks\":", plan.ranks(), ",\"step\":", step,
                   ",\n\"before\":", list(stateBefore), ",\n\"values\":", list(values),
                   ",\n\"after\":", list(stateAfter), "}\n"));
  index.close();
}
