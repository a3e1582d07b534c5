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
#include "cpu/kernels/Blas.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

using namespace meshwright;

bool meshwright::hostComputes() { return true; }

double meshwright::measurePeak(int threads) {
  constexpr int64_t size = 512;       // Three matrices of it fit into a core's second-level cache, or nearly.
  constexpr double seconds = 0.05;    // of each try
  constexpr int tries = 5;            // of which the fastest counts
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates(static_cast<size_t>(threads));
  auto measure = [&](double &rate) {
    std::vector<float> a(size_t(size * size), 0.5f), b = a, c = a;
    for (int i = 0; i < tries; ++i) {
      int64_t products = 0;
      Clock::time_point begin = Clock::now();
      double passed = 0;
      for (; passed < seconds; passed = std::chrono::duration<double>(Clock::now() - begin).count(), ++products)
        cpu::multiply(false, false, size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(), size);
      rate = std::max(rate, 2.0 * double(size * size * size * products) / passed);
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < rates.size(); ++i)
    others.emplace_back(measure, std::ref(rates[i]));
  measure(rates[0]);
  for (std::thread &other : others)
    other.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

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
