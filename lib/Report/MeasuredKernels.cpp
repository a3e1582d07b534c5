//===- MeasuredKernels.cpp - how long the kernels of a plan took --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TraceFile.h"
#include "meshwright/KernelTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace meshwright;
using namespace meshwright::report;
using llvm::Twine;

/// The program that a rank runs; -1 if the mesh has no such rank.
static int64_t programOf(const plan::Plan &plan, int64_t rank) {
  std::map<llvm::StringRef, int64_t> coordinates;
  for (const plan::MeshAxis &axis : llvm::reverse(plan.mesh)) {
    coordinates[axis.name] = rank % axis.size;
    rank /= axis.size;
  }
  if (rank != 0)
    return -1;
  for (auto [number, program] : llvm::enumerate(plan.programs))
    if (llvm::all_of(program.at, [&](auto &place) {
          return llvm::is_contained(place.second, coordinates[place.first]);
        }))
      return int64_t(number);
  return -1;
}

llvm::Expected<MeasuredKernels> meshwright::readMeasuredKernels(llvm::StringRef path,
                                                                const plan::Plan &plan) {
  llvm::Expected<RankTraces> traces = readTrace(path);
  if (!traces)
    return traces.takeError();
  auto refused = [&](const Twine &why) {
    return llvm::createStringError("'" + path + "' is not a trace of this executable: " + why);
  };
  MeasuredKernels measured;
  for (const plan::Program &program : plan.programs)
    measured.emplace_back(program.kernels.size());
  bool any = false;
  for (auto &[rank, events] : *traces) {
    int64_t number = programOf(plan, rank);
    if (number < 0)
      return refused("it has a rank " + Twine(rank));
    const auto &kernels = plan.programs[size_t(number)].kernels;
    // Where a GPU computes, the host's spans are how long it took to launch.
    bool onGpu = llvm::any_of(events, [](const TraceEvent &event) { return event.category == "gpu"; });
    for (const TraceEvent &event : events) {
      if (event.category != (onGpu ? "gpu" : "compute") || event.index < 0)
        continue;
      if (event.index >= int64_t(kernels.size()) || kernels[size_t(event.index)].op != event.name)
        return refused("kernel " + Twine(event.index) + " of its rank " + Twine(rank) + " is " +
                       event.name);
      MeasuredKernel &row = measured[size_t(number)][size_t(event.index)];
      row.seconds += event.end - event.begin;
      ++row.runs;
      any = true;
    }
  }
  if (!any)
    return llvm::createStringError("'" + path + "' has no kernels of a step; choose traced steps with "
                                   "--trace-from and --trace-steps, of an executable that this "
                                   "version compiled");
  return measured;
}
