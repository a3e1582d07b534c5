//===- PipelineSchedule.h - which stage does what, in which order -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Pipeline schedules as plain data: a generator for each published one says in
// which order each stage does its tasks, and one topological walk does the rest,
// whoever wrote the order: it finds the first task that waits forever, the time
// each task runs at, and how many activations a stage holds.
//
// A model is split into chunks of consecutive layers; a stage owns one or more. For
// every microbatch there is a forward task of each chunk, in order of the chunks, a
// backward task of each in the opposite order, and in zero-bubble schedules a
// weight task after it: then backward makes the gradient of the chunk's input only.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINESCHEDULE_H
#define MESHWRIGHT_PIPELINESCHEDULE_H

#include "meshwright/OptionValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::schedule {

enum class TaskKind { forward, backward, weight };

struct Task {
  TaskKind kind = TaskKind::forward;
  int64_t microbatch = 0;
  int64_t chunk = 0;

  bool operator==(const Task &other) const {
    return kind == other.kind && microbatch == other.microbatch && chunk == other.chunk;
  }
  /// "F3.1": forward of microbatch 3 in chunk 1; B backward, W weight.
  std::string str() const;
  /// Reads what `str` writes.
  static llvm::Expected<Task> parse(llvm::StringRef text);
};

struct PipelineSchedule {
  int64_t microbatches = 1;
  /// Whether gradients of weights are tasks of their own.
  bool splitsBackward = false;
  /// The stage that holds each chunk.
  llvm::SmallVector<int64_t> stageOf;
  /// The tasks of each stage, in order.
  std::vector<std::vector<Task>> order;

  int64_t stages() const { return order.size(); }
  int64_t chunks() const { return stageOf.size(); }
  /// The tasks that must end before `task`.
  llvm::SmallVector<Task, 2> needs(const Task &task) const;
};

/// A schedule's name and what it asks for.
struct ScheduleKind {
  enum Name { naive, gpipe, oneFOneB, interleaved, zbH1, zbH2, zbV, vHalf, vMin, dualPipeV } name = oneFOneB;
  /// Chunks a stage holds.
  int64_t chunksPerStage = 1;

  bool splitsBackward() const { return name >= zbH1; }
  /// Whether the chunks go down the stages and up again, two on a stage.
  bool goesBack() const { return name >= zbV; }
  /// The fewest microbatches it is made for.
  int64_t leastMicrobatches(int64_t stages) const;
  /// Whether it means two tasks, one after the other on a stage, to run beside each other.
  bool pairs(const Task &first, const Task &second) const {
    return name == dualPipeV && first.kind == TaskKind::forward &&
           second.kind == TaskKind::backward && first.chunk != second.chunk;
  }

  /// Reads "1f1b", "interleaved:2"; an error lists what there is.
  static llvm::Expected<ScheduleKind> parse(llvm::StringRef text);
  std::string str() const;
};
inline llvm::Error parseOption(llvm::StringRef text, ScheduleKind &kind) {
  return ScheduleKind::parse(text).moveInto(kind);
}
inline std::string optionText(const ScheduleKind &kind) { return kind.str(); }

/// Where the chunks are: chunk c on stage c mod stages, or for schedules that go back there and back.
llvm::SmallVector<int64_t> assignChunks(ScheduleKind kind, int64_t stages);

/// The published schedule:
///
/// - naive: one microbatch after the other;
/// - gpipe: all forward, then all backward (Huang et al. 2019);
/// - 1f1b: stage s holds at most stages - s activations (PipeDream-Flush, Narayanan
///   et al. 2021a);
/// - interleaved:V: V chunks on a stage (Narayanan et al. 2021b), microbatches a
///   multiple of the stages;
/// - zb-h1, zb-h2, zb-v: gradients of weights fill the bubbles, with the memory of
///   1f1b, twice that, and with two chunks on a stage (Qi et al. 2024);
/// - v-half, v-min: two chunks on a stage, with half and a third of the activations of 1f1b (Qi et
///   al. 2024b, Pipeline Parallelism with Controllable Memory);
/// - dualpipe-v: two chunks on a stage, of which one goes forward while the other goes backward
///   (DeepSeek-AI 2024).
///
/// An error names the number of microbatches that is too small or does not divide.
llvm::Expected<PipelineSchedule> makeSchedule(ScheduleKind kind, int64_t stages,
                                              int64_t microbatches);

/// Seconds, or any other unit, that the tasks of each chunk take.
struct TaskCosts {
  struct Chunk {
    double forward = 1, backward = 1, weight = 1;
  };
  std::vector<Chunk> chunks;
  /// From the end of a task to where its result is on another stage.
  double message = 0;

  /// All chunks alike. A schedule that does not split backward does both there.
  static TaskCosts uniform(int64_t chunks, double forward = 1, double backward = 1,
                           double weight = 1);
};

struct Timeline {
  struct Span {
    Task task;
    double begin, end;
  };
  /// By stage, in order.
  std::vector<std::vector<Span>> stages;

  /// What stages do after their tasks, in rounds between barriers: by round and stage.
  struct Interval {
    double begin, end;
  };
  std::vector<std::vector<Interval>> rounds;

  /// Adds rounds that take `costs`, by round and stage: a stage begins the first when its
  /// tasks are done, and every other one when all stages are done with the one before.
  void addRounds(const std::vector<std::vector<double>> &costs);
  /// When the last task or round ends.
  double end() const;

  /// From the first task's begin to the last one's end.
  double length() const;
  /// Time the stages work, as a part of the time they have together.
  double utilisation() const;
  /// The longest time that a stage idles between its own first and last task: the
  /// bubble as Qi et al. (2024) count it.
  double bubble() const;
};

/// Runs the orders as they stand. An error names a task that is missing, twice or on the wrong
/// stage, or, when stages wait for one another in a circle, what each waits for.
llvm::Expected<Timeline> simulate(const PipelineSchedule &schedule, const TaskCosts &costs);

/// The most forward results of its chunks that a stage keeps at one time: from a
/// forward task to the last task that reads it.
int64_t mostHeld(const PipelineSchedule &schedule, int64_t stage);

/// What a stage holds so at the begin of a backward task of `chunk`: microbatches of each
/// chunk, the task's own included.
struct HeldAtBackward {
  int64_t chunk;
  std::vector<int64_t> counts;
  bool operator==(const HeldAtBackward &other) const {
    return chunk == other.chunk && counts == other.counts;
  }
};
/// Each different one once.
std::vector<HeldAtBackward> heldAtBackward(const PipelineSchedule &schedule, int64_t stage);

} // namespace meshwright::schedule

MESHWRIGHT_PASS_OPTION(::meshwright::schedule::ScheduleKind)

#endif // MESHWRIGHT_PIPELINESCHEDULE_H
