//===- Launch.cpp - how this process was started --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Launch.h"

#include "common/communication/RankGroup.h"
#include "common/launch/Cores.h"
#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/plan/Plan.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace meshwright;

int meshwright::environmentNumber(const char *name, int least) {
  const char *value = getenv(name);
  if (!value)
    fail("the environment variable ", name, " is not set: set it, or start with --ranks N");
  char *end;
  long number = strtol(value, &end, 10);
  if (end == value || *end || number < least || number > 1000000)
    fail(name, " is \"", value, "\": it must be a whole number of at least ", least);
  return int(number);
}

void meshwright::checkProcessor(const std::string &needed) {
  std::string missing;
#if defined(__x86_64__)
  std::istringstream words(needed);
  const std::set<std::string> names{std::istream_iterator<std::string>(words), {}};
  __builtin_cpu_init();
#define MW_FEATURE(name)                                                                           \
  if (names.count(name) && !__builtin_cpu_supports(name))                                          \
    missing += std::string(missing.empty() ? "" : ", ") + name;
#include "meshwright/runtime/ProcessorFeatures.def"
#undef MW_FEATURE
#endif
  if (!missing.empty())
    fail("this executable was compiled for a CPU with ", missing, ", which this machine's CPU lacks: "
         "compile it on this machine, or for --cpu x86-64-v3 or x86-64-v2");
}

Launch Launch::detect() {
  if (getenv("OMPI_COMM_WORLD_SIZE"))
    return {Mpi, environmentNumber("OMPI_COMM_WORLD_RANK", 0),
            environmentNumber("OMPI_COMM_WORLD_SIZE", 1)};
  // srun with a MPI plug-in.
  for (const char *rank : {"PMIX_RANK", "PMI_RANK"})
    if (getenv(rank) && getenv("SLURM_NTASKS"))
      return {Mpi, environmentNumber(rank, 0), environmentNumber("SLURM_NTASKS", 1)};
  if (getenv("RANK") && getenv("WORLD_SIZE")) {
    Launch launch{Torchrun, environmentNumber("RANK", 0), environmentNumber("WORLD_SIZE", 1)};
    if (launch.rank >= launch.processes)
      fail("RANK is ", launch.rank, " but WORLD_SIZE is ", launch.processes,
           ": ranks are numbered from 0 to WORLD_SIZE - 1");
    if (launch.processes > 1)
      return launch;
  }
  // srun gives every task these, so one that started on its own would train alone.
  if (getenv("SLURM_PROCID") && getenv("SLURM_NTASKS"))
    if (int tasks = environmentNumber("SLURM_NTASKS", 1); tasks > 1)
      return {Slurm, environmentNumber("SLURM_PROCID", 0), tasks};
  return {};
}

bool Launch::mayBeThreads() const {
  bool isStep = getenv("SLURM_STEP_ID"); // Not in a batch script.
  return kind == Threads || kind == Torchrun || (kind == Slurm && !isStep);
}

void meshwright::refuseLonelyTask(const Launch &launch, const std::string &what) {
  if (launch.rank != 0)
    _exit(exitFailure);
  fail("this is one of ", launch.processes, " tasks of Slurm (SLURM_NTASKS), which have no way to "
       "find each other: start them with\n    srun --mpi=pmix ...\n", what,
       "or start one task (srun -n 1) with --ranks N, which are threads of one process");
}

void meshwright::checkRankCount(const Plan &plan, const Launch &launch, int64_t ranks,
                                const std::string &program) {
  int64_t wanted = plan.ranks();
  if (ranks == wanted)
    return;
  std::string exe = program.find('/') == std::string::npos ? "./" + program : program;
  std::string command = launch.kind == Launch::Mpi ? text("mpirun -n ", wanted, " ", exe, " ...")
                        : launch.kind == Launch::Torchrun
                            ? text("WORLD_SIZE=", wanted, " on every rank")
                        : launch.kind == Launch::Slurm ? text("srun -n ", wanted, " ", exe, " ...")
                                                       : text(exe, " --ranks ", wanted, " ...");
  fail("this executable was compiled for ", wanted, wanted == 1 ? " rank" : " ranks", " (mesh ",
       plan.meshText(), ") but was started with ", ranks, ": start it with\n    ", command,
       "\nor compile it for another --mesh");
}

static int32_t hashOf(const std::string &text) { return int32_t(std::hash<std::string>()(text)); }

Neighbours meshwright::findNeighbours(RankGroup &world) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  int32_t mine[2] = {hashOf(name), hashOf(textOf(allowedCores()))};
  std::vector<int32_t> all(size_t(world.size()) * 2);
  world.allGather(ElementType::I32, mine, all.data(), 2);
  Neighbours result{0, 0};
  for (size_t i = 0; i < all.size(); i += 2) {
    result.onMachine += all[i] == mine[0];
    result.onCores += all[i] == mine[0] && all[i + 1] == mine[1];
  }
  return result;
}

std::vector<int> meshwright::sameOnMachine(RankGroup &world, const std::string &words) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  int32_t mine[2] = {hashOf(name), hashOf(words)};
  std::vector<int32_t> all(size_t(world.size()) * 2);
  world.allGather(ElementType::I32, mine, all.data(), 2);
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size(); ++rank)
    if (all[size_t(rank) * 2] == mine[0] && all[size_t(rank) * 2 + 1] == mine[1])
      ranks.push_back(rank);
  return ranks;
}

/// The variable by which the launcher of this process numbers those of a machine; null where
/// none does. In the order in which Launch::detect looks.
static const char *localRankVariable() {
  for (auto [local, other] : {std::pair("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
                              std::pair("LOCAL_RANK", "WORLD_SIZE"),
                              std::pair("SLURM_LOCALID", "SLURM_NTASKS")})
    if (getenv(local) && getenv(other))
      return local;
  return nullptr;
}

int meshwright::localRank(RankGroup &world) {
  std::vector<int> here = sameOnMachine(world, "");
  int counted = int(std::count_if(here.begin(), here.end(),
                                  [&](int rank) { return rank < world.rank(); }));
  bool threads = sameOnMachine(world, std::to_string(getpid())).size() > 1;
  // One variable cannot number the threads of a process.
  const char *variable = threads ? nullptr : localRankVariable();
  return variable ? environmentNumber(variable, 0) : counted;
}

int meshwright::threadsPerRank(int sharing) {
  if (const char *value = getenv("OMP_NUM_THREADS"); value && *value) {
    // A list gives the numbers of nested levels, outermost first.
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || (*end && *end != ',') || number < 1 || number > 4096)
      fail("OMP_NUM_THREADS is \"", value, "\": it must be a whole number of at least 1");
    return int(number);
  }
  return std::max(1, int(allowedCores().size()) / std::max(1, sharing));
}

namespace {
/// Threads that wait until there are all of them, or no more can be started.
class WaitingThreads {
public:
  ~WaitingThreads() {
    all.set_value();
    for (std::thread &thread : started)
      thread.join();
  }
  void start() {
    started.emplace_back([end = end] { end.wait(); });
  }

private:
  std::promise<void> all;
  std::shared_future<void> end{all.get_future()};
  std::vector<std::thread> started;
};
} // namespace

void meshwright::checkThreads(int ranks, int threads) {
  // One more of each rank communicates, and one of the process watches them.
  size_t wanted = size_t(ranks) * size_t(threads + 1) + 1, count = 1; // This thread is the first of them.
  std::string problem;
  try {
    WaitingThreads waiting;
    for (; count < wanted; ++count)
      waiting.start();
  } catch (const std::system_error &error) {
    problem = error.code().message();
  }
  if (!problem.empty())
    fail("this process may start only ", count, " threads (", problem, "), but its ",
         ranks == 1 ? "rank" : text(ranks, " ranks"), " of ", threads, " threads need ", wanted,
         " with those that communicate and watch: raise the limit of processes (ulimit -u, or a "
         "container's pids limit) or of memory (ulimit -v), or set OMP_NUM_THREADS to fewer threads "
         "a rank");
}
