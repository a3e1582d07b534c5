//===- PredictedTrace.cpp - a step as the plan has it, for Perfetto ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PredictedTrace.h"

#include "StepSimulation.h"

#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/Cost/Flops.h"
#include "meshwright/LocationText.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

namespace {
class TraceText {
public:
  explicit TraceText(ModuleOp module) : communication(module) {}
  void name(int64_t program, StringRef kind, int64_t track, StringRef value,
            StringRef key = "name");
  void add(const SimulatedEvent &event);
  std::string text;

private:
  codegen::Communication communication;
  cost::FlopCounter flops;
};
} // namespace

void TraceText::name(int64_t program, StringRef kind, int64_t track, StringRef value,
                     StringRef key) {
  text += llvm::formatv(
      "{0}{1}", text.empty() ? "" : ",\n",
      llvm::json::Value(llvm::json::Object{{"name", kind},
                                           {"ph", "M"},
                                           {"pid", program},
                                           {"tid", track},
                                           {"args", llvm::json::Object{{key, value}}}}));
}

void TraceText::add(const SimulatedEvent &event) {
  llvm::json::Object arguments{{"location", codegen::locationText(event.op->getLoc())}};
  if (std::optional<int64_t> number = exec::collectiveOf(event.op)) {
    const codegen::Collective &collective = communication.collectives[*number];
    arguments["bytes"] = collective.groupBytes / collective.members;
  } else if (double count = flops.of(event.op)) {
    arguments["flops"] = count;
  }
  bool computes = event.track == SimulatedEvent::Computing;
  text += llvm::formatv(
      ",\n{0}", llvm::json::Value(llvm::json::Object{{"name", event.name},
                                                     {"cat", computes ? "compute" : "communication"},
                                                     {"ph", "X"},
                                                     {"pid", event.program},
                                                     {"tid", int64_t(event.track)},
                                                     {"ts", 1e6 * event.begin},
                                                     {"dur", 1e6 * (event.end - event.begin)},
                                                     {"args", std::move(arguments)}}));
}

/// What the times of a trace without a cluster are.
static std::string relativeTimes(const cost::Device &device) {
  return llvm::formatv(
      "relative, no forecast: what the peak rates of {0} allow, {1:e2} operations of f32 and "
      "{2:e2} of 16 bits, {3:e2} bytes of memory and {4:e2} bytes sent a second, without latency",
      device.description, device.kernels.peak(), device.products.narrow.peak(),
      device.memory.peak(), device.machine.bandwidth);
}

llvm::Expected<std::string> report::predictTrace(ModuleOp module, const cost::Cluster *cluster,
                                                 StepTime &step) {
  exec::TargetAttr target = exec::targetOf(dist::programsOf(module).front());
  const cost::Device &device =
      cost::getDevice(target.getTarget().getDefaultDevice(target.getParameters()));
  cost::Cluster machine = machineOf(device);
  TraceText trace(module);
  std::string label = cluster ? "predicted on " + cluster->name : "relative times, no forecast";
  for (auto [number, program] : llvm::enumerate(dist::programsOf(module))) {
    trace.name(number, "process_name", 0, program.getSymName().value_or("every rank"));
    trace.name(number, "process_labels", 0, label, "labels");
    trace.name(number, "thread_name", SimulatedEvent::Computing, "computes");
    trace.name(number, "thread_name", SimulatedEvent::Communicating, "communicates");
  }
  llvm::Expected<StepTime> simulated =
      simulateStep(module, cluster ? *cluster : machine, cost::Profile(),
                   [&](const SimulatedEvent &event) { trace.add(event); });
  if (!simulated)
    return simulated.takeError();
  step = std::move(*simulated);
  std::string title = cluster ? "A step as predicted on " + cluster->name
                              : std::string("A step as planned, in relative times");
  std::string times = cluster ? "predicted: " + cluster->description : relativeTimes(device);
  return llvm::formatv("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"title\":{0},\"times\":{1}},"
                       "\"traceEvents\":[\n",
                       llvm::json::Value(title), llvm::json::Value(times))
             .str() +
         trace.text + "\n]}\n";
}
