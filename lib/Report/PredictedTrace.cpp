//===- PredictedTrace.cpp - a step as the plan has it, for Perfetto ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PredictedTrace.h"

#include "Dist/Programs.h"
#include "Kernels.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/Cost/MovedBytes.h"
#include "meshwright/LocationText.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <deque>
#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

namespace {
enum Track { computing, communicating };

/// One program on its way through its step. Times are in microseconds.
struct Runner {
  ModuleOp module;
  Block *block = nullptr; ///< of @step
  Block::iterator next;
  double now = 0;     ///< when what it computes next can begin
  double network = 0; ///< when what it communicates next can
  std::map<int64_t, double> started; ///< ends of collectives that run beside it
  llvm::DenseSet<Operation *> shown; ///< callees whose ops have been
};

class Predictor {
public:
  explicit Predictor(ModuleOp module);
  llvm::Expected<std::string> run();

private:
  /// By sender, receiver and channel.
  using Channel = std::tuple<int64_t, int64_t, int64_t>;

  /// Goes on with a program as far as it comes.
  bool advance(int64_t number);
  /// Whether the op of the step itself could run: messages and meetings of programs wait.
  bool runTop(int64_t number, Operation &op);
  void runBlock(int64_t number, Block &block, bool show);
  void runOp(int64_t number, Operation &op, bool show);
  void communicate(int64_t number, Operation &op, double from, bool show);
  /// The collective that an op is, or null.
  const codegen::Collective *collectiveAt(Operation *op) const {
    std::optional<int64_t> number = exec::collectiveOf(op);
    return number ? &communication.collectives[*number] : nullptr;
  }
  /// The microseconds that an op takes at least, communicating or computing.
  double communicatesFor(Operation *op) const;
  double computesFor(Operation *op);
  bool joinsPrograms(exec::MemoryCollectiveOpInterface op) const;
  void event(int64_t number, Track track, StringRef name, Operation &op, double begin, double end);
  void name(int64_t number, StringRef kind, int64_t track, StringRef text, StringRef key = "name");

  codegen::Communication communication;
  SymbolTableCollection symbols;
  cost::FlopCounter flops;
  cost::DeviceChoice device;
  llvm::StringSet<> between; ///< axes along which programs differ
  std::vector<Runner> runners;
  std::map<Channel, std::deque<double>> mail; ///< when messages arrive
  /// Programs that have come to their next common collective, and when.
  std::map<int64_t, double> waiting;
  std::string text;
};
} // namespace

Predictor::Predictor(ModuleOp module) : communication(module) {
  exec::TargetAttr target = exec::targetOf(dist::programsOf(module).front());
  device = cost::getDevice(target.getTarget().getDefaultDevice(target.getParameters()));
  for (ModuleOp program : dist::programsOf(module)) {
    Runner runner;
    runner.module = program;
    if (auto step = program.lookupSymbol<exec::ProgramOp>("step")) {
      runner.block = &step.getBlock();
      runner.next = runner.block->begin();
    }
    runners.push_back(std::move(runner));
    if (auto at = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr))
      for (NamedAttribute entry : at)
        between.insert(entry.getName());
  }
}

double Predictor::communicatesFor(Operation *op) const {
  const codegen::Collective *collective = collectiveAt(op);
  return 1e6 * double(collective->groupBytes) / double(collective->members) /
         device->machine.bandwidth;
}

double Predictor::computesFor(Operation *op) {
  if (exec::queueOf(op))
    return 0; // Copies to and from the host run beside what computes.
  cost::MovedBytes moved = cost::movedBy(op, symbols);
  double bytes = double(moved.read + moved.written), count = flops.of(op);
  const cost::Rate *rate = &device->kernels;
  if (!isa<exec::LaunchOp>(op)) {
    // Library calls say by their first operand what they multiply.
    auto type =
        op->getNumOperands() ? dyn_cast<MemRefType>(op->getOperand(0).getType()) : MemRefType();
    const cost::RatesByType &rates = isa<exec::AttentionOp>(op)       ? device->attention
                                     : isa<exec::AttentionGradOp>(op) ? device->attentionGrad
                                                                      : device->products;
    rate = &rates.ofBits(type ? type.getElementTypeBitWidth() : 32);
  }
  return 1e6 * std::max(rate->seconds(count), device->memory.seconds(bytes));
}

bool Predictor::joinsPrograms(exec::MemoryCollectiveOpInterface op) const {
  return llvm::any_of(op.getAxes().getAsValueRange<StringAttr>(),
                      [&](StringRef axis) { return between.contains(axis); });
}

void Predictor::event(int64_t number, Track track, StringRef name, Operation &op, double begin,
                      double end) {
  llvm::json::Object arguments{{"location", codegen::locationText(op.getLoc())}};
  if (const codegen::Collective *collective = collectiveAt(&op))
    arguments["bytes"] = collective->groupBytes / collective->members;
  else if (double count = flops.of(&op))
    arguments["flops"] = count;
  text += llvm::formatv(",\n{0}", llvm::json::Value(llvm::json::Object{
                                      {"name", name},
                                      {"cat", track == computing ? "compute" : "communication"},
                                      {"ph", "X"},
                                      {"pid", number},
                                      {"tid", int64_t(track)},
                                      {"ts", begin},
                                      {"dur", end - begin},
                                      {"args", std::move(arguments)}}));
}

void Predictor::communicate(int64_t number, Operation &op, double from, bool show) {
  Runner &runner = runners[number];
  double begin = std::max(from, runner.network), end = begin + communicatesFor(&op);
  runner.network = end;
  if (std::optional<int64_t> start = exec::asyncTokenOf(&op))
    runner.started[*start] = end;
  else
    runner.now = std::max(runner.now, end);
  if (show)
    event(number, communicating, op.getName().stripDialect(), op, begin, end);
}

void Predictor::runOp(int64_t number, Operation &op, bool show) {
  Runner &runner = runners[number];
  double begin = runner.now;
  if (exec::collectiveOf(&op))
    return communicate(number, op, begin, show);
  if (auto wait = dyn_cast<exec::WaitOp>(op)) {
    runner.now = std::max(begin, runner.started[wait.getAsyncToken()]);
    return;
  }
  if (auto loop = dyn_cast<exec::LoopOp>(op)) {
    double iterations = cost::tripCount(loop);
    if (iterations == 0)
      return;
    double network = runner.network;
    runBlock(number, loop.getBlock(), show);
    // The others take as long as the first.
    double others = iterations - 1;
    runner.now += others * (runner.now - begin);
    runner.network += others * std::max(0.0, runner.network - std::max(network, begin));
    if (show)
      event(number, computing, "loop x " + std::to_string(int64_t(iterations)), op, begin,
            runner.now);
    return;
  }
  if (auto call = dyn_cast<exec::CallOp>(op)) {
    auto callee = symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
    runBlock(number, callee.getBlock(), show && runner.shown.insert(callee).second);
    auto task = op.getAttrOfType<StringAttr>(dist::taskAttr);
    if (show)
      event(number, computing, task ? task.getValue() : call.getCallee(), op, begin, runner.now);
    return;
  }
  for (Region &region : op.getRegions())
    runBlock(number, region.front(), show);
  if (op.getNumRegions())
    return;
  runner.now += computesFor(&op);
  if (show && runner.now > begin) {
    auto launch = dyn_cast<exec::LaunchOp>(op);
    event(number, computing, launch ? launch.getKernel() : op.getName().stripDialect(), op, begin,
          runner.now);
  }
}

void Predictor::runBlock(int64_t number, Block &block, bool show) {
  for (Operation &op : block)
    runOp(number, op, show);
}

bool Predictor::runTop(int64_t number, Operation &op) {
  Runner &runner = runners[number];
  auto collective = dyn_cast<exec::MemoryCollectiveOpInterface>(op);
  if (!collective || !joinsPrograms(collective)) {
    runOp(number, op, /*show=*/true);
    return true;
  }
  // Programs are at their coordinates along the axis that tells them apart.
  if (auto send = dyn_cast<exec::SendOp>(op)) {
    double begin = std::max(runner.now, runner.network);
    runner.network = begin + communicatesFor(&op);
    mail[{number, send.getTo(), send.getChannel()}].push_back(runner.network);
    event(number, communicating, "send", op, begin, runner.network);
    return true;
  }
  if (auto recv = dyn_cast<exec::RecvOp>(op)) {
    auto &messages = mail[{recv.getFrom(), number, recv.getChannel()}];
    if (messages.empty())
      return false;
    double begin = runner.now;
    runner.now = std::max(begin, messages.front());
    messages.pop_front();
    event(number, communicating, "recv", op, std::max(begin, runner.network),
          std::max(runner.now, runner.network));
    runner.network = std::max(runner.now, runner.network);
    return true;
  }
  // The last to come lets all go.
  waiting[number] = runner.now;
  if (waiting.size() < runners.size())
    return false;
  double latest = 0;
  for (auto [at, time] : waiting)
    latest = std::max({latest, time, runners[at].network});
  for (auto [at, time] : waiting) {
    Operation &own = *runners[at].next;
    communicate(at, own, latest, /*show=*/true);
    if (at != number)
      ++runners[at].next;
  }
  waiting.clear();
  return true;
}

bool Predictor::advance(int64_t number) {
  Runner &runner = runners[number];
  bool progress = false;
  while (runner.block && runner.next != runner.block->end() && !waiting.count(number)) {
    if (!runTop(number, *runner.next))
      break;
    ++runner.next;
    progress = true;
  }
  return progress;
}

void Predictor::name(int64_t number, StringRef kind, int64_t track, StringRef value,
                     StringRef key) {
  text += llvm::formatv(
      "{0}{1}", text.empty() ? "" : ",\n",
      llvm::json::Value(llvm::json::Object{{"name", kind},
                                           {"ph", "M"},
                                           {"pid", number},
                                           {"tid", track},
                                           {"args", llvm::json::Object{{key, value}}}}));
}

llvm::Expected<std::string> Predictor::run() {
  for (auto [number, runner] : llvm::enumerate(runners)) {
    name(number, "process_name", 0, runner.module.getSymName().value_or("every rank"));
    name(number, "process_labels", 0, "relative times, no forecast", "labels");
    name(number, "thread_name", computing, "computes");
    name(number, "thread_name", communicating, "communicates");
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t number = 0; number < runners.size(); ++number)
      progress |= advance(number);
  }
  for (Runner &runner : runners)
    if (runner.block && runner.next != runner.block->end())
      return llvm::createStringError("no time can be predicted: '" +
                                     runner.next->getName().getStringRef() + "' of program " +
                                     runner.module.getSymName().value_or("main") +
                                     " waits for ever");
  std::string times = llvm::formatv(
      "relative, no forecast: what the peak rates of {0} allow, {1:e2} operations of f32 and "
      "{2:e2} "
      "of 16 bits, {3:e2} bytes of memory and {4:e2} bytes sent a second, without latency",
      device->description, device->kernels.peak(), device->products.narrow.peak(),
      device->memory.peak(), device->machine.bandwidth);
  return llvm::formatv("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"title\":\"A step as planned, in "
                       "relative times\",\"times\":{0}},\"traceEvents\":[\n",
                       llvm::json::Value(times))
             .str() +
         text + "\n]}\n";
}

llvm::Expected<std::string> report::predictTrace(ModuleOp module) {
  return Predictor(module).run();
}
