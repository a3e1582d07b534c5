//===- Target.cpp - ranks that compute on NVIDIA's GPUs -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Device.h"
#include "common/launch/Launch.h"
#include "common/plan/Plan.h"
#include "cuda/Gpu.h"
#include "cuda/Rendezvous.h"

#include <cstdlib>

using namespace meshwright;

bool meshwright::hostComputes() { return false; }

double meshwright::measurePeak(int) { fail("--peak-flops measure: this executable computes on GPUs"); }

void meshwright::prepareTarget() {} // Each rank opens what it needs.

// NVML says which cores are near a rank's GPU (Affinity.h).
std::vector<CoreList> meshwright::sharesOfCores(int ranks, int) {
  return std::vector<CoreList>(size_t(ranks));
}

void meshwright::checkLaunch(const Launch &launch) {
  if (launch.kind == Launch::Slurm && !getenv("MASTER_ADDR"))
    refuseLonelyTask(launch, "or set MASTER_ADDR (and MASTER_PORT) to task 0's machine:\n    "
                             "MASTER_ADDR=$(scontrol show hostnames | head -n 1) srun ...\n");
}

Meeting meshwright::meetRanks(const Plan &plan, const Launch &launch, RankStatus &status) {
  // MPI would only introduce the ranks to each other, which needs none where they have an address.
  if (launch.kind == Launch::Mpi && !getenv("MASTER_ADDR"))
    return meetByMpi(launch.processes, status);
  return cuda::meetAtMaster(plan, launch.rank, launch.processes, status);
}

// NCCL sends what the program does.
std::vector<std::unique_ptr<Communicator>> meshwright::splitGroups(const Plan &, RankGroup &) {
  return {};
}

std::unique_ptr<Device> meshwright::openDevice(const Plan &plan, RankGroup &world,
                                               RankStatus &status) {
  return std::make_unique<cuda::Gpu>(plan, world, status);
}
