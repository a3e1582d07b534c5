//===- Dump.h - what one step reads and computes, in files ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// For `meshwright replay`. Each rank writes DIR/rank-R.bin, values as they lie in memory
// one after the other, and at the end DIR/rank-R.json, which says what they are:
//   {"rank", "ranks", "step",
//    "before", "after": [{"kind": "variable", "input" or "output", "name", "type", "shape",
//                         "begin"}],
//    "values": [[number of the op, number of the result, begin, bytes], ...]}
// where `begin` is a byte of rank-R.bin. Rank 0 also writes DIR/program.mlir, whose ops
// have these numbers as `exec.value_id`.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DUMP_H
#define MESHWRIGHT_RUNTIME_COMMON_DUMP_H

#include "common/checkpoint/OutputFile.h"
#include "common/plan/Plan.h"

namespace meshwright {

class Dump {
public:
  /// Opens the file of values of this `rank`.
  Dump(const std::string &directory, const Plan &plan, int rank, int64_t step);

  /// Writes variables and inputs as they are before the step.
  void before(const VariableAddresses &addresses);
  /// Writes a result of an op.
  void value(int number, int result, const void *address, int64_t bytes);
  /// Writes variables and outputs after the step, and the index.
  void after(const VariableAddresses &addresses);

  /// Whether the executable calls `mw_observe`.
  static bool isPossible();

private:
  std::string variables(const VariableAddresses &addresses);
  std::string ports(const char *kind, const std::map<std::string, Port> &ports, const char *arena);
  std::string entry(const std::string &kind, const std::string &name, ElementType type,
                    const std::vector<int64_t> &shape, const char *address);
  /// Where in the file the values were put.
  int64_t append(const void *address, int64_t bytes);

  std::string directory;
  const Plan &plan;
  int rank;
  int64_t step, size = 0;
  OutputFile file;
  std::string stateBefore, values;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DUMP_H
