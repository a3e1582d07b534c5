//===- Launch.h - how this process was started ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LAUNCH_H
#define MESHWRIGHT_RUNTIME_COMMON_LAUNCH_H

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

struct Plan;
class RankGroup;

/// Who started the ranks, found from the environment.
struct Launch {
  /// Torchrun: by its variables, also by hand; Slurm: a task of several of srun, without MPI.
  enum Kind { Threads, Mpi, Torchrun, Slurm };
  Kind kind = Threads;
  /// Of this process among those of the job; 0 of 1 for threads.
  int rank = 0, processes = 1;

  static Launch detect();

  /// Whether --ranks, which starts ranks as threads, may overrule what was found: torchrun's
  /// variables are left set in many environments, and a batch script sees its job's. A
  /// task of srun is one of several, whatever its flags say.
  bool mayBeThreads() const;
};

/// Checks that this processor has what the program's code was made for; `needed` as
/// meshwright_processor has it.
void checkProcessor(const std::string &needed);

/// The number in the environment variable `name`, an Error if it is not set, no number or
/// less than `least`.
int environmentNumber(const char *name, int least);

/// Ends a task of Slurm that has no way to find the others: task 0 says `what` to do.
[[noreturn]] void refuseLonelyTask(const Launch &launch, const std::string &what);

/// Checks that `ranks` were started, as many as the mesh has; the Error says which
/// command starts the right number. `program` is argv[0].
void checkRankCount(const Plan &plan, const Launch &launch, int64_t ranks,
                    const std::string &program);

/// How many ranks of `world` share this machine, and how many this process's cores.
struct Neighbours {
  int onMachine = 1, onCores = 1;
};
Neighbours findNeighbours(RankGroup &world);

/// This rank's number among those of its machine: what the launcher says (LOCAL_RANK,
/// OMPI_COMM_WORLD_LOCAL_RANK or SLURM_LOCALID), else how many ranks of `world` before this
/// one are there, as with ranks that are threads of one process. Collective.
int localRank(RankGroup &world);

/// The ranks of `world` on this machine that say the same `words` as this one. Collective.
std::vector<int> sameOnMachine(RankGroup &world, const std::string &words);

/// OpenMP threads for each rank when `sharing` ranks have this process's cores:
/// OMP_NUM_THREADS, else an equal share, at least 1.
int threadsPerRank(int sharing);

/// Checks that this process may start all the threads of its `ranks`, before any of them has
/// work: OpenMP would end the process where it lacks one.
void checkThreads(int ranks, int threads);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LAUNCH_H
