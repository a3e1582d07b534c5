//===- Target.cpp - ranks that compute on the host ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Binding.h"
#include "common/launch/Device.h"
#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"

using namespace meshwright;

bool meshwright::hostComputes() { return true; }

std::vector<CoreList> meshwright::sharesOfCores(int ranks, int threads) {
  return sharesOfMachine(allowedCores(), ranks, threads);
}

void meshwright::checkLaunch(const Launch &launch) {
  if (launch.kind == Launch::Slurm)
    refuseLonelyTask(launch, "");
  if (launch.kind == Launch::Torchrun)
    fail("this process is rank ", launch.rank, " of ", launch.processes,
         " by torchrun's variables "
         "(RANK, WORLD_SIZE), which start ranks with GPUs alone, but this executable computes on "
         "processors: start its processes by MPI, with\n    meshwright run --mpi -n ",
         launch.processes, " EXE ...\nor\n    mpirun -n ", launch.processes,
         " EXE ...\nor give "
         "--ranks ",
         launch.processes, ", and ranks are threads of one process");
}

Meeting meshwright::meetRanks(const Plan &, const Launch &launch, RankStatus &status) {
  return meetByMpi(launch.processes, status);
}

std::vector<std::unique_ptr<Communicator>> meshwright::splitGroups(const Plan &plan,
                                                                   RankGroup &world) {
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const auto &axes : plan.groups)
    groups.push_back(
        dynamic_cast<Communicator &>(world).split(plan.groupMembers(axes, world.rank())));
  return groups;
}

std::unique_ptr<Device> meshwright::openDevice(const Plan &, RankGroup &, RankStatus &) {
  return nullptr;
}
