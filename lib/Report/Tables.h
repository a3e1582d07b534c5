//===- Tables.h - what follows from a plan ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The tables that pages, terminals, assertions and comparisons show, all made from
// the plan's JSON, so that they can be made of an executable's plan too.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_TABLES_H
#define MESHWRIGHT_LIB_REPORT_TABLES_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace meshwright::report {

/// All collectives of one kind along the same axes in one run of a program.
struct Traffic {
  std::string program;
  /// Those longer than 1, as "data" or "replica,data".
  std::string axes;
  std::string op;
  int64_t calls = 0;
  /// What all ranks send. A double, as many ranks may send more than 2^63 bytes.
  double bytes = 0;
  /// What one of them sends on average.
  int64_t bytesOfRank = 0;
};
/// By program, then axes, then kind.
std::vector<Traffic> trafficOf(const llvm::json::Object &plan);

/// A variable of which the devices along an axis hold copies.
struct Copies {
  std::string variable, role, axis;
  int64_t size = 0;  ///< of the axis
  int64_t bytes = 0; ///< of the variable on one rank
  std::string reason;
};
std::vector<Copies> copiesOf(const llvm::json::Object &plan);

/// Bytes of a category at the peak; 0 if none are.
int64_t categoryBytes(const llvm::json::Object &plan, llvm::StringRef category);
/// The categories there can be.
std::vector<llvm::StringRef> categories();

/// A variable's bytes on one rank.
int64_t bytesOf(const llvm::json::Object &variable);
/// What all communicators of a rank allocate at most, where ranks send messages.
int64_t scratchBytes(const llvm::json::Object &plan);
int64_t ranksOf(const llvm::json::Object &plan);

/// Rounded to an integer, with commas; of numbers that may exceed 2^63.
std::string grouped(double number);
/// An operation count of a plan or of a program in it, with commas.
std::string operationsText(const llvm::json::Object &plan, llvm::StringRef key);

/// Where a program runs: "pipe 0", or "everywhere".
std::string placeText(const llvm::json::Object &program);
std::string shapeText(const llvm::json::Array *shape);
/// "dim 0 over data", or "replicated".
std::string shardingText(const llvm::json::Array *sharding);
std::string meshText(const llvm::json::Object &plan);
/// "bf16, gradients in f32"; gradients of a f32 model are f32.
std::string precisionText(const llvm::json::Object &plan);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_TABLES_H
