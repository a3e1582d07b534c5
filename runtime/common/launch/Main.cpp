//===- Main.cpp - the entry point of every executable ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/MachineMemory.h"
#include "common/generate/Generate.h"
#include "common/launch/Agreement.h"
#include "common/launch/Device.h"
#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "common/monitor/WaitMonitor.h"
#include "common/plan/PlanHash.h"
#include "common/train/Trainer.h"
#include "cpu/ThreadCommunicator.h"
#include "meshwright/runtime/Version.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

using namespace meshwright;

/// The executable's plan as `rank` sees it.
static Plan readPlan(int64_t rank) {
  std::string_view text(meshwright_plan, size_t(meshwright_plan_size));
  checkPlanHash(text);
  return Plan::parse(text, rank);
}

/// One rank from its communicator to the end of the run, on `cores` if there are any. Returns the
/// exit code, on which all ranks agree.
static int trainRank(const Options &options, std::unique_ptr<RankGroup> world, int threads,
                     const CoreList &cores, RankStatus &status) {
  // An error ends the process with all of these in place: a device may be computing in the arena,
  // and other ranks may be reading there.
  std::optional<Plan> own;
  std::optional<MwContext> context;
  std::optional<Trainer> trainer;
  try {
    // Before there is memory or a thread of the rank's own.
    CoreList allowed = allowedCores();
    bool bound = !cores.empty() && runOn(cores);
    own = readPlan(world->rank());
    {
      // Before ranks do anything together that the plan or flags say.
      ActivityScope activity(status, "comparing flags and files");
      checkAgreement(*world, termsOf(*own, options));
    }
    context.emplace(*own, std::move(world), threads, status);
    if (bound) {
      context->cores = textOf(cores);
      context->unboundCores = allowed;
    }
    if (!options.trace.empty() || options.stragglers) {
      context->trace = std::make_unique<Trace>();
      context->trace->recording = context->trace->keeping = !options.trace.empty();
      if (context->device)
        context->trace->kernelCategory = "gpu";
    }
    return trainer.emplace(*context, options).train();
  } catch (const std::exception &error) {
    endAllRanks(error);
  }
}

/// What --buddy takes of this machine for states of `bytes` each, besides what is there already: two are there while one is
/// written.
static int64_t moreInMemory(const Options &options, int64_t bytes) {
  if (options.buddy.empty())
    return 0;
  MemoryTaken taken = takenIn(options.buddy, options.resume);
  return std::max<int64_t>(0, (taken.resumed ? 1 : 2) * bytes - taken.others);
}

static int runThreads(const Plan &plan, const Options &options, const std::string &program) {
  int ranks = int(options.ranks ? options.ranks : 1);
  checkRankCount(plan, Launch(), ranks, program);
  // Counting bytes takes time of each layer's tensors.
  int64_t kept = options.asyncSave || !options.buddy.empty() ? checkpointBytes(plan) : 0;
  checkMemory(plan, ranks, options.asyncSave * kept + moreInMemory(options, kept));
  int threads = threadsPerRank(ranks);
  checkThreads(ranks, threads);
  std::vector<CoreList> cores = sharesOfCores(ranks, threads);
  std::vector<std::unique_ptr<RankStatus>> owned;
  std::vector<RankStatus *> statuses;
  for (int rank = 0; rank < ranks; ++rank) {
    owned.push_back(std::make_unique<RankStatus>(rank));
    statuses.push_back(owned.back().get());
  }
  WaitMonitor monitor(plan, statuses, waitTimeout());
  auto world = ThreadCommunicator::createWorld(ranks, threads, statuses);
  std::vector<std::thread> others;
  try {
    for (int rank = 1; rank < ranks; ++rank)
      others.emplace_back([&, rank] {
        trainRank(options, std::move(world[size_t(rank)]), threads, cores[size_t(rank)],
                  *statuses[size_t(rank)]);
      });
  } catch (const std::exception &error) {
    endAllRanks(error); // Those that have started wait for the others.
  }
  int code = trainRank(options, std::move(world[0]), threads, cores[0], *statuses[0]);
  for (std::thread &other : others)
    other.join();
  return code;
}

namespace {
/// A process that is one rank and has met the others.
class Process {
public:
  Process(const Plan &plan, const Options &options, const Launch &launch, const std::string &program)
      : status(launch.rank), monitor(plan, {&status}, waitTimeout()) {
    checkLaunch(launch);
    if (options.ranks && options.ranks != launch.processes)
      fail("--ranks ", options.ranks, " but ", launch.processes,
           " processes were started: drop --ranks, which starts ranks as threads");
    checkRankCount(plan, launch, launch.processes, program);
    meeting = meetRanks(plan, launch, status);
    setFailureProcess(meeting.world->rank(), meeting.world->size());
    setFailureAbort(meeting.abort);
    monitor.setLostPeer(meeting.lostPeer);
  }

  /// With what --buddy has left in `folder` on each machine for the run that saves in `saved`; empty if the run does not go on
  /// from there. All ranks call it once.
  void merge(const std::string &folder, const std::string &saved) {
    ActivityScope activity(status, "bringing together what machines have in memory");
    mergeMemory(*meeting.world, folder, saved, [&](const std::string &words) {
      if (meeting.world->rank() == 0)
        fprintf(stderr, "note: %s\n", words.c_str());
    });
  }
  int train(const Plan &plan, const Options &options);

private:
  RankStatus status;
  WaitMonitor monitor;
  Meeting meeting;
};
} // namespace

int Process::train(const Plan &plan, const Options &options) {
  std::unique_ptr<RankGroup> world = std::move(meeting.world);
  Neighbours neighbours = findNeighbours(*world);
  // Rank 0 copies the state, or each rank its part.
  int64_t copied = 0, kept = 0;
  std::vector<int> here = sameOnMachine(*world, "");
  if (options.asyncSave && writesShards(options, plan))
    for (int rank : here)
      copied += shardBytes(plan, rank);
  else if (options.asyncSave && here.front() == 0)
    copied = checkpointBytes(plan);
  if (!options.buddy.empty())
    for (int rank : here)
      kept += shardBytes(plan, rank);
  if (int(here.size()) < world->size())
    kept *= 2; // And about as much of the machine before.
  checkMemory(plan, neighbours.onMachine, copied + moreInMemory(options, kept));
  world->barrier(); // Nobody takes memory before all have looked.
  int threads = threadsPerRank(neighbours.onCores);
  checkThreads(1, threads);
  std::vector<int> alike = sameOnMachine(*world, textOf(allowedCores()));
  auto self = std::find(alike.begin(), alike.end(), world->rank()) - alike.begin();
  CoreList cores = sharesOfCores(int(alike.size()), threads)[size_t(self)];
  int code = trainRank(options, std::move(world), threads, cores, status);
  monitor.setLostPeer(nullptr);
  setFailureAbort(nullptr);
  if (meeting.finish) {
    WaitScope wait(status, "the end of all ranks; ranks that print no such report are missing");
    meeting.finish();
  }
  return code;
}

/// What --version says.
static std::string describe() {
  Plan plan = readPlan(0);
  return text(plan.model, " for ", plan.ranks(), plan.ranks() == 1 ? " rank" : " ranks", " (",
              plan.meshText(), "), target ", plan.target, ", ", plan.precision, ", ",
              plan.optimizer, ", plan ", plan.hash, ", runtime of Meshwright ", version);
}

static int run(int argc, char **argv) {
  Launch launch = Launch::detect();
  setFailureProcess(launch.rank, launch.processes);
  Plan plan = readPlan(0);
  Options options(plan);
  std::string program = argc ? argv[0] : "EXE";
  auto areThreads = [&](const Options &given) {
    return launch.kind == Launch::Threads || (given.ranks && launch.mayBeThreads());
  };
  std::optional<Process> process;
  if (!parseOptions(
          argc, argv, options, /*printHelp=*/launch.rank == 0, describe,
          [](const std::string &resume) { return readState(findCheckpoint(resume)).flags; },
          [&](const Options &given) {
            if (given.buddy.empty())
              return;
            checkOwner(given.buddy, given.save);
            // What a rank finds to resume may be on other machines.
            if (areThreads(given))
              return;
            process.emplace(plan, given, launch, program);
            process->merge(given.buddy, given.save.front());
          }))
    return 0;
  if (meshwright_processor)
    checkProcessor(meshwright_processor);
  if (options.given("--generate")) {
    if (launch.processes > 1)
      fail("--generate runs on one rank, but ", launch.processes,
           " processes were started: start the executable alone");
    generate(options);
    return 0;
  }
  checkEffects(options, plan);
  if (areThreads(options))
    return runThreads(plan, options, program);
  if (!process) {
    process.emplace(plan, options, launch, program);
    process->merge("", "");
  }
  return process->train(plan, options);
}

/// Before all that is constructed at start, for which there may be no memory.
__attribute__((constructor(101))) static void beforeOthers() { endAllRanksOnTerminate(); }

int main(int argc, char **argv) {
  blockMonitorSignals();
  // A limit on file sizes and a closed pipe then show as errors of write().
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prepareTarget();
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    endAllRanks(error);
  }
}
