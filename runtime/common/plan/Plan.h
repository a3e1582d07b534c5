//===- Plan.h - the compiler's plan, parsed -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The JSON of docs/plan.md as structs, one per table. Parsing checks everything
// the runtime relies on, so that the rest of it need not.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_PLAN_H
#define MESHWRIGHT_RUNTIME_COMMON_PLAN_H

#include "common/plan/ElementType.h"
#include "meshwright/runtime/Averages.h"
#include "meshwright/runtime/PlanSchema.h"
#include "meshwright/runtime/cuda/Cudnn.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

using plan::MemoryLine;
using plan::MeshAxis;
using plan::StorageSlice;

/// The inputs of a step that may have fewer microbatches than the program is for: how many, and the program's number
/// over that, by which means over the program's batch are those over the step's.
inline constexpr char microbatchesInput[] = "microbatches", batchWeightInput[] = "batch_weight";

/// Where a variable lives in a safetensors file.
struct Storage {
  std::string tensor; ///< with {layer} for stacked variables, and {expert}
  bool transpose = false;
  std::optional<StorageSlice> slice;
  bool isOptional = false; ///< a file may lack it: the variable is zeros then
};

struct Initializer {
  /// RowNorms: the norms of the rows of the weight that an adapter's magnitudes are of.
  enum Kind { Normal, Uniform, Constant, RowNorms };
  Kind kind = Constant;
  float value = 0; ///< standard deviation, bound, or the constant
};

struct Variable {
  /// Scale: of each row of a frozen parameter in 8 bits (meshwright/runtime/Int8Weights.h).
  enum Role { Parameter, Master, State, Tokens, Scale };
  std::string name;
  Role role = Parameter;
  bool isOfOwnShape = false; ///< a state whose shape is not that of its parameter
  std::string state; ///< which state of the optimizer it is
  std::string of;    ///< the parameter a state belongs to
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape, localShape;
  /// The first dimensions of which each index has a tensor of its own in files: layers of stacked
  /// variables, then experts.
  size_t numbered = 0;
  bool stacked = false;
  std::vector<std::vector<int>> sharding; ///< per dimension: indices of mesh axes
  int64_t offset = 0;
  MemorySpace space = MemorySpace::Device;
  size_t program = 0; ///< which of the plan's programs has it
  Initializer init;
  Storage storage;

  /// A parameter, or the master of one, that is in the files of an adapter.
  bool isAdapter = false;
  /// Of these, one of a module that is trained whole: it begins as the model's.
  bool isOfModel = false;

  /// A parameter that is the rounded value of a master, which files are read into
  /// and written from.
  bool hasMaster = false;
  /// Of it and of such a parameter: the master has the lower halves alone, the parameter the
  /// upper ones (see ElementType.h).
  bool isHalved = false;

  /// How many tensors it is in files.
  int64_t tensors() const {
    int64_t count = 1;
    for (size_t d = 0; d < numbered; ++d)
      count *= shape[d];
    return count;
  }
  /// A parameter whose numbers are codes of 8 bits, which a scale belongs to.
  bool isQuantized() const { return role == Parameter && type == ElementType::I8; }
  /// A weight of the model: a parameter or a master.
  bool isWeight() const { return role == Parameter || role == Master; }
  bool isOptimizerState() const { return role == State; }
  /// An average of a parameter, which begins as that does.
  bool isAverage() const { return role == State && state == averageState; }
};

/// Where the host finds a rank's variables: the arena of each memory space, of the device's the arena or
/// the host's copy of what it begins with.
struct VariableAddresses {
  VariableAddresses(char *arena) : arenas{{arena}} {}
  VariableAddresses(const BySpace<char *> &arenas) : arenas(arenas) {}
  char *of(const Variable &variable) const { return arenas[variable.space] + variable.offset; }

  BySpace<char *> arenas;
};

/// An input or output of the program: where it lies in the arena.
struct Port {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  int64_t offset = 0;
};

/// Bytes of the arena from `begin` to `end`.
struct ArenaRange {
  int64_t begin = 0, end = 0;
};

struct CollectiveEntry {
  std::string op;
  int64_t program = 0; ///< which of the plan's programs calls it
  int64_t group = 0;
  ElementType type = ElementType::F32;
  int64_t count = 0;
  std::string location;
  int64_t peer = -1;    ///< of a message, the other's rank in the group
  bool started = false; ///< it runs beside what follows
  bool inRounds = false; ///< it runs in as many rounds as data says
  int64_t row = 0;      ///< elements of a row of which parts consist; 0: they need not
};

/// A call of attention in a program for GPUs.
struct AttentionEntry {
  cudnn::Attention call;
  bool byCudnn = false;
  bool fallback = false; ///< the executable has generated kernels for it too
  int64_t workspaceBytes = 0;
  std::string location;
};

/// Attention of packed sequences that ranks divide.
struct AttentionShare : plan::AttentionShare {
  std::vector<int> group; ///< `axes` as indices into the mesh
};

/// The memory that a rank needs, by space.
struct NeededMemory {
  struct Arena {
    int64_t bytes = 0;
    std::vector<MemoryLine> memory; ///< by category, when most of it is live
  };
  BySpace<Arena> spaces;
  /// Memory of a device beside the arena; none if the host computes.
  std::vector<MemoryLine> allowances;

  const Arena &arena() const { return spaces[MemorySpace::Device]; }
};

/// A program that some of the ranks run, or all ranks if there is only one.
struct Program : NeededMemory {
  std::string name;
  /// Axes of the mesh, and the coordinates of its ranks on them.
  std::vector<std::pair<int, std::vector<int64_t>>> at;
  std::vector<AttentionShare> attentionShares;
};

/// The plan as one rank sees it: arena, memory, variables, inputs and outputs are those of its
/// program.
struct Plan : plan::Header, NeededMemory {
  std::vector<int> dataAxes; ///< indices into mesh, outermost first
  std::vector<Variable> variables;
  std::vector<Program> programs;
  size_t program = 0; ///< this rank's
  /// Those of all programs, in the same order on every rank.
  std::vector<Variable> allVariables;
  std::map<std::string, Port> inputs, outputs;
  std::set<std::string> inputNames;     ///< of all programs
  std::vector<std::vector<int>> groups; ///< per group: indices of mesh axes
  std::vector<int64_t> scratchBytes;    ///< per group: what its communicator allocates at most
  std::vector<CollectiveEntry> collectives;
  std::vector<AttentionEntry> attentions;

  /// The plan in `json` for `rank`, or an Error naming what is missing or inconsistent.
  static Plan parse(std::string_view json, int64_t rank = 0);

  /// "data,tensor".
  std::string axesText(const std::vector<int> &axes) const;
  /// "all_reduce (collective 3, group [data], 8 x f32, at ...)".
  std::string describeCollective(int number) const;

  /// How many sequences in a row are read together: the two of a pair, or each alone.
  int64_t sequenceGroupSize() const { return dpoBeta ? 2 : 1; }

  /// The number of the program that `rank` runs.
  size_t programOf(int64_t rank) const;

  /// Product of the mesh's sizes.
  int64_t ranks() const;
  /// "data=2,tensor=4", or "one rank".
  std::string meshText() const;
  /// Position of `rank` on each mesh axis; ranks are numbered row-major.
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// Product of the sizes of `axes`.
  int64_t axesSize(const std::vector<int> &axes) const;
  /// Row-major position of `coordinates` within `axes`, the first outermost.
  int64_t axesIndex(const std::vector<int> &axes, const std::vector<int64_t> &coordinates) const;
  /// The ranks that differ from `rank` only in `axes`, in row-major order of these.
  std::vector<int> groupMembers(const std::vector<int> &axes, int64_t rank) const;

  const Variable &parameter(const std::string &name, size_t program) const;
  /// The scales of a parameter that is quantized.
  const Variable &scaleOf(const Variable &parameter) const;

  /// The parts of the arena that have all variables in it, one of them, and all of `ports`.
  ArenaRange variableRange() const;
  static ArenaRange rangeOf(const Variable &variable);
  static ArenaRange rangeOf(const std::map<std::string, Port> &ports);
};

/// Whether the plan gives ranks along an axis unequal work: where attention's positions are not balanced.
inline bool hasUnevenWork(const Plan &plan, const MeshAxis &axis) {
  return plan.attentionImbalance.value_or(1) > 1.02 && axis.name.rfind("context", 0) == 0;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_PLAN_H
