//===- PlanSchema.h - what a plan says --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The JSON of an executable's plan as structs. The compiler writes the plan and makes
// reports of it, the runtime reads it, and each key is spelled here alone. docs/plan.md
// says what the keys mean; a test checks that it describes each of them. `fields` names
// the members of a struct for the code that converts them (meshwright/PlanJson.h,
// runtime/common/plan/Plan.cpp). What is std::optional may be absent.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_PLANSCHEMA_H
#define MESHWRIGHT_RUNTIME_PLANSCHEMA_H

#include "meshwright/runtime/AttentionMask.h"
#include "meshwright/runtime/MemorySpace.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

/// The fields of the struct in which it stands: calls `v` with the key and the member of each.
#define MESHWRIGHT_FIELDS(...)                                                                     \
  template <typename Self, typename Visitor> static void fields(Self &self, Visitor &&v) {         \
    __VA_ARGS__                                                                                    \
  }

namespace meshwright::plan {

template <typename T> using List = std::vector<T>;
template <typename T> using Table = std::map<std::string, T>;
using std::optional;
using std::string;
using Shape = List<int64_t>;
template <typename T> constexpr bool isOptional = false;
template <typename T> constexpr bool isOptional<optional<T>> = true;

struct MeshAxis {
  string name;
  int64_t size = 1;
  MESHWRIGHT_FIELDS(v("axis", self.name); v("size", self.size);)
};

/// Bytes of a category at a peak.
struct MemoryLine {
  string category;
  int64_t bytes = 0;
  MESHWRIGHT_FIELDS(v("category", self.category); v("bytes", self.bytes);)
};

/// What a rank has in an offload space.
struct Offloaded {
  optional<int64_t> bytes; ///< of the space's arena; absent: nothing is there
  optional<List<MemoryLine>> memory;
};
/// Keys of each offload space.
template <typename Spaces, typename Visitor>
void offloadedFields(Spaces &offloaded, Visitor &&v) {
#define MW_OFFLOAD_SPACE(Space, name, text, bytesKey, memoryKey, ...)                              \
  v(bytesKey, offloaded[MemorySpace::Space].bytes);                                                \
  v(memoryKey, offloaded[MemorySpace::Space].memory);
#include "meshwright/runtime/MemorySpaces.def"
}

/// The space of a variable: a key of each offload space, which is true or absent.
template <typename Space, typename Visitor> void spaceFields(Space &of, Visitor &&v) {
#define MW_OFFLOAD_SPACE(Space, name, text, bytes, memory, budget, budgetFlag, variable, ...)      \
  {                                                                                                \
    optional<bool> isThere;                                                                        \
    if (of == MemorySpace::Space)                                                                  \
      isThere = true;                                                                              \
    v(variable, isThere);                                                                          \
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(of)>>)                         \
      if (isThere.value_or(false))                                                                 \
        of = MemorySpace::Space;                                                                   \
  }
#include "meshwright/runtime/MemorySpaces.def"
}

/// Memory of a device that is neither in the arena nor under Meshwright's control: drivers and
/// libraries take it. An allowance is what is set aside for it, not what was measured.
struct Allowance {
  string category;
  int64_t bytes = 0;
  string source; ///< where the number comes from
  MESHWRIGHT_FIELDS(v("category", self.category); v("bytes", self.bytes); v("source", self.source);)
};

//===--- programs ---------------------------------------------------------===//

/// Bytes that one run of an entry point copies, by the number of the copy engine; absent: the program has
/// nothing in that space.
struct CopiedBytes {
  optional<int64_t> bytes[copyEngines];

  int64_t in(MemorySpace space, bool stores) const {
    return bytes[CopyEngine{space, stores}.number()].value_or(0);
  }
  template <typename Self, typename Visitor> static void fields(Self &self, Visitor &&v) {
#define MW_OFFLOAD_SPACE(Space, name, text, arenaBytes, memory, budget, budgetFlag, variable,      \
                         fetched, stored, ...)                                                     \
  v(fetched, self.bytes[CopyEngine{MemorySpace::Space, false}.number()]);                          \
  v(stored, self.bytes[CopyEngine{MemorySpace::Space, true}.number()]);
#include "meshwright/runtime/MemorySpaces.def"
  }
};

/// The result of assembling a kernel for one architecture.
struct Assembled {
  string arch;
  int64_t registers = 0, spilledBytes = 0;
  MESHWRIGHT_FIELDS(v("arch", self.arch); v("registers", self.registers);
                    v("spilled_bytes", self.spilledBytes);)
};

/// One kind of a step's kernels and library calls.
struct Kernel {
  string op, kind;
  int64_t times = 0, readBytes = 0, writtenBytes = 0;
  double flops = 0;
  optional<List<Assembled>> assembled;
  MESHWRIGHT_FIELDS(v("op", self.op); v("kind", self.kind); v("times", self.times);
                    v("read_bytes", self.readBytes); v("written_bytes", self.writtenBytes);
                    v("flops", self.flops); v("assembled", self.assembled);)
};

struct PeakBuffer {
  string name, category;
  int64_t bytes = 0, slices = 0;
  string task, op, location;
  MESHWRIGHT_FIELDS(v("name", self.name); v("category", self.category); v("bytes", self.bytes);
                    v("slices", self.slices); v("task", self.task); v("op", self.op);
                    v("location", self.location);)
};

/// The buffers that are live when the sum of their bytes is largest.
struct Peak {
  string program;
  int64_t op = 0, ops = 0;
  string task;
  int64_t bytes = 0, lasting = 0;
  List<PeakBuffer> buffers;
  int64_t others = 0;
  MESHWRIGHT_FIELDS(v("program", self.program); v("op", self.op); v("ops", self.ops);
                    v("task", self.task); v("bytes", self.bytes); v("lasting", self.lasting);
                    v("buffers", self.buffers); v("others", self.others);)
};

/// The part of an attention mask that is the same with and without `causal`: its window and its chunks.
struct Mask {
  int64_t window = 0;
  optional<int64_t> chunk;
  Mask() = default;
  explicit Mask(const AttentionMask &mask) : window(mask.window) {
    if (mask.chunk)
      chunk = mask.chunk;
  }
  AttentionMask read(bool causal) const { return {causal, window, chunk.value_or(0)}; }
  MESHWRIGHT_FIELDS(v("window", self.window); v("chunk", self.chunk);)
};

/// Calls of attention of packed sequences whose queries, and in a ring keys, ranks divide. How many
/// pairs of both each rank has follows from where documents begin.
struct AttentionShare : Mask {
  List<string> axes;         ///< which number these ranks
  Shape firstQueries;        ///< the position of the first query, by rank
  optional<Shape> firstKeys; ///< ... and of the first key; absent: 0
  int64_t queries = 0, queryStride = 1, keys = 0, keyStride = 1; ///< how many a rank has, how far apart
  double flops = 0; ///< of a pair, in all these calls
  MESHWRIGHT_FIELDS(v("axes", self.axes); v("first_queries", self.firstQueries);
                    v("first_keys", self.firstKeys); v("queries", self.queries);
                    v("query_stride", self.queryStride); v("keys", self.keys);
                    v("key_stride", self.keyStride); Mask::fields(self, v); v("flops", self.flops);)
};

/// A program that some of the ranks run, or all ranks if there is only one.
struct Program {
  string name;
  Table<Shape> at; ///< coordinates of its ranks on some axes
  int64_t arenaBytes = 0, liveBytes = 0;
  List<MemoryLine> memory;
  List<Allowance> allowances;
  double flops = 0;
  List<Kernel> kernels;
  optional<Peak> peak;
  BySpace<Offloaded> offloaded;
  optional<Table<CopiedBytes>> copiedBytes; ///< by entry point
  optional<List<string>> order;             ///< of a pipeline stage: its tasks
  optional<Table<double>> taskFlops;        ///< by phase and chunk
  optional<List<double>> roundFlops;
  optional<List<AttentionShare>> attentionShares;
  MESHWRIGHT_FIELDS(v("name", self.name); v("at", self.at); v("arena_bytes", self.arenaBytes);
                    v("live_bytes", self.liveBytes); v("memory", self.memory);
                    v("allowances", self.allowances); v("flops", self.flops);
                    v("kernels", self.kernels); v("peak", self.peak);
                    offloadedFields(self.offloaded, v); v("copied_bytes", self.copiedBytes); v("order", self.order);
                    v("task_flops", self.taskFlops); v("round_flops", self.roundFlops);
                    v("attention_shares", self.attentionShares);)
};

//===--- the optimizer ----------------------------------------------------===//

/// A number that a run is given: a flag of the executable, `name` with dashes, and an input of a step.
struct Hyperparameter {
  string name, help;
  double initial = 0;
  optional<double> most;    ///< absent: any number from 0 on
  optional<string> decayOf; ///< the state that it lets a step change by its (1 - value)-th part
  MESHWRIGHT_FIELDS(v("name", self.name); v("help", self.help); v("default", self.initial);
                    v("most", self.most); v("decay_of", self.decayOf);)
};

/// One of the things that change the numbers that a program computes: a flag of the compiler, a size, or the hash of the
/// model.
struct Setting {
  string name, value;
  MESHWRIGHT_FIELDS(v("name", self.name); v("value", self.value);)
};

/// An input of a step: of the hyperparameter h in the t-th update 1 - h^t, or t^-h.
struct BiasCorrection {
  string name, of;
  optional<bool> power; ///< it is t^-h
  MESHWRIGHT_FIELDS(v("name", self.name); v("of", self.of); v("power", self.power);)
};

//===--- variables, inputs and outputs ------------------------------------===//

/// Part of a file tensor's dimension. With a period, of each so many rows those of `runs`, which
/// are triples of begin, count and step, in this order.
struct StorageSlice {
  int64_t dim = 0, begin = 0, size = 0, full = 0;
  optional<int64_t> period;
  optional<Shape> runs;
  MESHWRIGHT_FIELDS(v("dim", self.dim); v("begin", self.begin); v("size", self.size);
                    v("full", self.full); v("period", self.period); v("runs", self.runs);)
};

/// Where a variable lives in a safetensors file.
struct Storage {
  string tensor; ///< with {layer} for stacked variables, and {expert} or {head} for one tensor each
  optional<bool> transpose;
  optional<StorageSlice> slice;
  optional<bool> mayLack = {}; ///< a file may lack it
  MESHWRIGHT_FIELDS(v("tensor", self.tensor); v("transpose", self.transpose);
                    v("slice", self.slice); v("optional", self.mayLack);)
};

struct Initializer {
  string kind;
  optional<double> deviation, value, bound; ///< of "normal"; of "constant"; of "uniform"
  MESHWRIGHT_FIELDS(v("kind", self.kind); v("std", self.deviation); v("value", self.value);
                    v("bound", self.bound);)
};

struct Variable {
  string name, role, type;
  Shape shape, localShape;
  bool stacked = false;
  List<List<string>> sharding; ///< by dimension
  int64_t offset = 0, program = 0;
  MemorySpace space = MemorySpace::Device;
  optional<int64_t> expertsUsed; ///< by a token, of those that the first dimension behind layers counts
  optional<string> copies; ///< why tensor parallelism does not shard it
  optional<string> of;     ///< the parameter that a state belongs to
  optional<bool> frozen;   ///< a step does not change it
  optional<bool> adapter;  ///< it is in the files of an adapter
  optional<Initializer> init;
  optional<Storage> storage;
  MESHWRIGHT_FIELDS(v("name", self.name); v("role", self.role); v("type", self.type);
                    v("shape", self.shape); v("local_shape", self.localShape);
                    v("stacked", self.stacked); v("sharding", self.sharding);
                    v("offset", self.offset); v("in", self.program); spaceFields(self.space, v);
                    v("experts_used", self.expertsUsed); v("copies", self.copies); v("of", self.of);
                    v("frozen", self.frozen); v("adapter", self.adapter); v("init", self.init);
                    v("storage", self.storage);)
};

/// An input or output.
struct Port {
  string name, type;
  Shape shape;
  int64_t offset = 0, program = 0;
  MESHWRIGHT_FIELDS(v("name", self.name); v("type", self.type); v("shape", self.shape);
                    v("offset", self.offset); v("in", self.program);)
};

//===--- calls ------------------------------------------------------------===//

struct Collective {
  string op;
  int64_t group = 0;
  string type;
  int64_t count = 0;
  string entry; ///< step or eval
  int64_t program = 0, times = 0, groupBytes = 0, bytes = 0;
  string location;
  optional<bool> started;
  optional<int64_t> peer; ///< of a message, the other's rank in the group
  optional<int64_t> rounds; ///< in which all of `times` are; as many run as data says
  optional<int64_t> row;  ///< elements of a row, where rows of zeros at the end of a part need not be sent
  MESHWRIGHT_FIELDS(v("op", self.op); v("group", self.group); v("type", self.type);
                    v("count", self.count); v("program", self.entry); v("in", self.program);
                    v("times", self.times); v("group_bytes", self.groupBytes);
                    v("bytes", self.bytes); v("location", self.location);
                    v("started", self.started); v("peer", self.peer);
                    v("rounds", self.rounds); v("row", self.row);)
};

/// A call of attention in a program for GPUs.
struct Attention : Mask {
  string op, by, type;
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kvHeads = 0, headDim = 0;
  double scale = 0;
  bool causal = false;
  optional<double> cap; ///< of scores
  optional<int64_t> valueDim; ///< of heads of values, where it is not head_dim
  optional<bool> slopes, sinks;
  string location;
  optional<bool> fallback, deterministic;
  optional<int64_t> workspaceBytes;
  optional<string> reason;
  optional<bool> tensorCores;
  MESHWRIGHT_FIELDS(v("op", self.op); v("by", self.by); v("type", self.type);
                    v("batch", self.batch); v("queries", self.queries); v("keys", self.keys);
                    v("heads", self.heads); v("kv_heads", self.kvHeads);
                    v("head_dim", self.headDim); v("scale", self.scale);
                    v("causal", self.causal); Mask::fields(self, v);
                    v("cap", self.cap);
                    v("value_dim", self.valueDim); v("slopes", self.slopes); v("sinks", self.sinks);
                    v("location", self.location); v("fallback", self.fallback);
                    v("deterministic", self.deterministic);
                    v("workspace_bytes", self.workspaceBytes); v("reason", self.reason);
                    v("tensor_cores", self.tensorCores);)
};

/// Products and attention that several ranks compute alike.
struct Repeated {
  string location;   ///< the part of the model
  List<string> axes; ///< along which ranks compute the same
  double flops = 0;  ///< of a step, over all ranks, beside those of one rank along `axes`
  MESHWRIGHT_FIELDS(v("location", self.location); v("axes", self.axes); v("flops", self.flops);)
};

//===--- beside the plan --------------------------------------------------===//

/// The results of assembling a program's kernels, by name.
struct AssembledProgram {
  Table<List<Assembled>> kernels;
  MESHWRIGHT_FIELDS(v("kernels", self.kernels);)
};

/// Those of all programs. They follow from the plan: executables carry them in their own section,
/// and `meshwright inspect` shows them with the plan.
struct AssembledKernels {
  List<AssembledProgram> programs;
  MESHWRIGHT_FIELDS(v("programs", self.programs);)
};

/// Work that a step does again, and why.
struct Recomputed {
  string reason;
  double flops = 0;
  MESHWRIGHT_FIELDS(v("reason", self.reason); v("flops", self.flops);)
};

//===--- the whole --------------------------------------------------------===//

constexpr int64_t version = 1;
constexpr char hashKey[] = "hash";
/// Of a decoder's plan: how names of variables begin that hold keys and values, and its output.
constexpr char cachePrefix[] = "cache.", logitsOutput[] = "logits";

/// The part of the plan that is the same for all ranks.
struct Header {
  int64_t version = plan::version;
  string hash; ///< over everything else
  string model, config, target, precision, gradDtype, optimizer;
  List<string> optimizerStates; ///< roles of variables
  List<Hyperparameter> hyperparameters;
  List<BiasCorrection> biasCorrections;
  List<MeshAxis> mesh;
  int64_t batch = 0, sequence = 0, microbatches = 1, vocabulary = 0, maxPositions = 0;
  optional<double> dpoBeta; ///< of direct preference optimization, whose sequences are pairs
  optional<double> maskedShare; ///< of tokens, which the model is to predict
  optional<int64_t> maskToken;
  optional<int64_t> gradientBlocks; ///< parts of the batch whose gradients are compressed apart
  optional<int64_t> sourceSequence; ///< tokens of what an encoder reads
  optional<int64_t> startToken;     ///< before the first of a target
  optional<string> adapterConfig; ///< the text of adapter_config.json
  optional<List<Setting>> numbers; ///< all that change what is computed, wherever it is computed
  double flops = 0, recomputedFlops = 0;
  /// Of attention whose queries ranks divide: the most that one computes, over the mean.
  optional<double> attentionImbalance;
  MESHWRIGHT_FIELDS(v("version", self.version); v(hashKey, self.hash); v("model", self.model);
                    v("config", self.config); v("target", self.target);
                    v("precision", self.precision); v("grad_dtype", self.gradDtype);
                    v("optimizer", self.optimizer);
                    v("optimizer_states", self.optimizerStates);
                    v("hyperparameters", self.hyperparameters);
                    v("bias_corrections", self.biasCorrections);
                    v("mesh", self.mesh); v("batch", self.batch);
                    v("sequence", self.sequence); v("microbatches", self.microbatches);
                    v("vocabulary", self.vocabulary); v("max_positions", self.maxPositions);
                    v("dpo_beta", self.dpoBeta);
                    v("masked_share", self.maskedShare); v("mask_token", self.maskToken);
                    v("gradient_blocks", self.gradientBlocks);
                    v("source_sequence", self.sourceSequence); v("start_token", self.startToken);
                    v("adapter_config", self.adapterConfig); v("numbers", self.numbers);
                    v("flops", self.flops); v("recomputed_flops", self.recomputedFlops);
                    v("attention_imbalance", self.attentionImbalance);)
};

struct Plan : Header {
  optional<List<Recomputed>> recomputed;
  List<string> dataAxes;
  List<Program> programs;
  int64_t arenaBytes = 0;
  List<MemoryLine> memory;
  List<Allowance> allowances;
  int64_t deviceBytes = 0;
  BySpace<Offloaded> offloaded;
  List<Variable> variables;
  List<Port> inputs, outputs;
  List<List<string>> groups;
  List<int64_t> scratchBytes;
  List<Collective> collectives;
  optional<List<Attention>> attentions;
  optional<List<Repeated>> repeated;
  MESHWRIGHT_FIELDS(Header::fields(self, v); v("recomputed", self.recomputed);
                    v("data_axes", self.dataAxes);
                    v("programs", self.programs); v("arena_bytes", self.arenaBytes);
                    v("memory", self.memory); v("allowances", self.allowances);
                    v("device_bytes", self.deviceBytes);
                    offloadedFields(self.offloaded, v); v("variables", self.variables);
                    v("inputs", self.inputs); v("outputs", self.outputs); v("groups", self.groups);
                    v("scratch_bytes", self.scratchBytes); v("collectives", self.collectives);
                    v("attentions", self.attentions); v("repeated", self.repeated);)
};

} // namespace meshwright::plan

#endif // MESHWRIGHT_RUNTIME_PLANSCHEMA_H
