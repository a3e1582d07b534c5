//===- StepSimulation.cpp - how long a step takes ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StepSimulation.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/CallWork.h"
#include "meshwright/Cost/MovedBytes.h"
#include "meshwright/LocationText.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <deque>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

void TimeParts::forEach(llvm::function_ref<void(StringRef, double)> visit) const {
  visit("products", products);
  visit("attention", attention);
  visit("kernels", kernels);
  visit("optimizer", optimizer);
  visit("launches", launches);
  visit("copies", copies);
  std::map<std::string, double> byAxes;
  for (auto &[kind, seconds] : communication)
    byAxes[kind.axes] += seconds;
  for (auto &[axes, seconds] : byAxes)
    visit("communication[" + axes + "]", seconds);
  visit("bubble", bubble);
}

double TimeParts::sum() const {
  double sum = 0;
  forEach([&](StringRef, double seconds) { sum += seconds; });
  return sum;
}

void TimeParts::add(const TimeParts &other, double factor) {
  for (auto part : {&TimeParts::products, &TimeParts::attention, &TimeParts::kernels,
                    &TimeParts::optimizer, &TimeParts::launches, &TimeParts::copies,
                    &TimeParts::bubble})
    this->*part += factor * other.*part;
  for (auto &[kind, seconds] : other.communication)
    communication[kind] += factor * seconds;
}

TimeParts StepTime::mean() const {
  TimeParts mean;
  double ranks = 0;
  for (const Program &program : programs)
    ranks += double(program.ranks);
  for (const Program &program : programs)
    mean.add(program.parts, double(program.ranks) / ranks);
  return mean;
}

cost::Cluster report::machineOf(const cost::Device &device) {
  cost::Cluster cluster;
  cluster.name = device.name;
  cluster.description = device.description;
  cluster.devices.push_back({device, 0});
  cluster.devices.front().device.launch = 0;
  cluster.levels.push_back({"machine", 0, {0, device.machine.bandwidth}, {}});
  return cluster;
}

//===----------------------------------------------------------------------===//
// The simulation
//===----------------------------------------------------------------------===//

namespace {
/// The moments up to which the resources of a program are in use.
struct Clocks {
  double now = 0;  ///< of the stream that computes
  double host = 0; ///< of the host that launches, where the profile has times for it
  SmallVector<double> links; ///< of each level of the cluster
  double copies[copyEngines] = {};
  std::map<int64_t, double> started; ///< ends of what an async token is of

  void forEach(const Clocks &other, llvm::function_ref<void(double &, double)> visit) {
    visit(now, other.now);
    visit(host, other.host);
    for (auto [mine, its] : llvm::zip(links, other.links))
      visit(mine, its);
    for (auto [mine, its] : llvm::zip(copies, other.copies))
      visit(mine, its);
    for (auto &[token, end] : started)
      if (auto found = other.started.find(token); found != other.started.end())
        visit(end, found->second);
  }
};

/// One program on its way through its step.
struct Runner {
  ModuleOp module;
  Block *block = nullptr; ///< of @step
  Block::iterator next;
  int64_t device = 0;          ///< that of its first rank
  SmallVector<int64_t> ranks;  ///< that run it
  /// The types of their devices, and by which factor the slowest of a type computes longer than its
  /// mean.
  SmallVector<std::pair<const cost::Device *, double>, 1> types;
  Clocks clocks;
  TimeParts parts;
  std::map<int64_t, CommunicationKind> awaited; ///< what async tokens are of
  llvm::DenseMap<int64_t, Operation *> copies;  ///< which copies others are of
  double longestWait = 0;                       ///< for a copy, in seconds
  Operation *waitsFor = nullptr;                ///< that copy
  llvm::DenseSet<Operation *> shown; ///< callees whose ops have been
};

/// What an op that computes takes.
struct Cost {
  double TimeParts::*part = nullptr;
  double seconds = 0;
  bool isLaunched = false;
  /// Of adding up gradients after a product that has not, in the system of the profile.
  double accumulates = 0;
  /// How much longer a kernel takes whose memory is in an offload space.
  double copies = 0;
};

class Simulation {
public:
  Simulation(ModuleOp module, const cost::Cluster &cluster, const cost::Profile &profile,
             EventObserver observe);
  llvm::Expected<StepTime> run();

private:
  /// By sender, receiver and channel.
  using Channel = std::tuple<int64_t, int64_t, int64_t>;
  struct Message {
    double arrival, duration;
  };

  /// Goes on with a program as far as it comes.
  bool advance(int64_t number);
  /// Whether the op of the step itself could run: messages and meetings of programs wait.
  bool runTop(int64_t number, Operation &op);
  void runBlock(int64_t number, Block &block, bool show);
  void runLoop(int64_t number, exec::LoopOp loop, bool show);
  void runOp(int64_t number, Operation &op, bool show);
  void communicate(int64_t number, Operation &op, double from, bool show, double calls = 1);
  /// Lets the host launch something, which takes it `seconds`, and the device wait for that.
  void dispatch(Runner &runner, double seconds);
  /// The only collective of a loop that the system of the profile makes in one call, or null.
  Operation *batchedIn(const Runner &runner, exec::LoopOp loop);
  /// Whether its group is along these axes alone.
  bool isAlong(const codegen::Collective &collective, llvm::ArrayRef<std::string> axes) const;
  /// Seconds of an all-reduce of gradients in which each member sends `bytes`.
  double gradientSeconds(double bytes, const cost::GroupLayout &layout) const;
  /// Seconds of the host for a collective.
  double dispatchOf(const codegen::Collective &collective) const;
  void copy(int64_t number, Operation &op);
  /// Lets a program wait for a copy until `until`.
  void waitForCopy(Runner &runner, double until, Operation *copy);
  /// Lets a program wait until `until`, for `what` at most `most` seconds, and else for others.
  void wait(Runner &runner, double until, double &what, double most);

  /// The collective that an op is, or null.
  const codegen::Collective *collectiveAt(Operation *op) const {
    std::optional<int64_t> number = exec::collectiveOf(op);
    return number ? &communication.collectives[*number] : nullptr;
  }
  std::string axesOf(const codegen::Collective &collective) const {
    return llvm::join(communication.groups[collective.group], ",");
  }
  /// How the groups of a collective that ranks of a program are in lie. Where machines do not divide
  /// groups evenly, some span more of them: that of the slowest, for which others wait.
  const cost::GroupLayout &layoutOf(int64_t number, const codegen::Collective &collective);
  Cost costOf(const Runner &runner, Operation *op);
  /// How messages between the ranks of two programs get to their receivers.
  const cost::MessageWay &wayBetween(int64_t number, int64_t peer);
  /// The same of a permutation or an exchange, in which each rank sends one message; null for others.
  const cost::MessageWay *wayOf(int64_t number, const codegen::Collective &collective);
  dist::Axes axesNumbered(const codegen::Collective &collective) const;
  /// Groups that are no boxes of a torus.
  llvm::Error checkGroups() const;
  bool joinsPrograms(exec::MemoryCollectiveOpInterface op) const;
  void tell(int64_t number, SimulatedEvent::Track track, StringRef name, Operation &op,
            double begin, double end, bool show) {
    if (show && end > begin)
      observe({track, number, &op, name.str(), begin, end});
  }

  codegen::Communication communication;
  const cost::Cluster &cluster;
  const cost::Profile &profile;
  EventObserver observe;
  SymbolTableCollection symbols;
  cost::WorkReader work;
  dist::Mesh mesh;
  llvm::StringSet<> between; ///< axes along which programs differ
  bool spansMachines = false; ///< whether programs run on different machines
  std::vector<Runner> runners;
  llvm::DenseMap<Value, int64_t> iterations; ///< of loops that run, by their index
  llvm::DenseMap<Operation *, Cost> costs;
  std::map<std::pair<int64_t, unsigned>, cost::GroupLayout> layouts; ///< by program and group
  std::map<std::pair<int64_t, unsigned>, cost::GroupLayout> byPlace; ///< ... and of one of its groups
  std::map<std::pair<int64_t, int64_t>, cost::MessageWay> links; ///< by the programs at both ends
  std::map<std::pair<int64_t, Operation *>, cost::MessageWay> ways; ///< of permutations, by program
  std::map<Channel, std::deque<Message>> mail;
  /// Programs that have come to their next common collective, and when.
  std::map<int64_t, double> waiting;
};
} // namespace

Simulation::Simulation(ModuleOp module, const cost::Cluster &cluster, const cost::Profile &profile,
                       EventObserver observe)
    : communication(module), cluster(cluster), profile(profile), observe(observe) {
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  for (ModuleOp program : dist::programsOf(module)) {
    Runner runner;
    runner.module = program;
    runner.clocks.links.resize(cluster.levels.size());
    if (auto step = program.lookupSymbol<exec::ProgramOp>("step")) {
      runner.block = &step.getBlock();
      runner.next = runner.block->begin();
    }
    while (runner.device + 1 < mesh.size() && !dist::runsOn(program, mesh, runner.device))
      ++runner.device;
    for (int64_t rank = 0; rank < mesh.size(); ++rank)
      if (dist::runsOn(program, mesh, rank))
        runner.ranks.push_back(rank);
    if (runner.ranks.empty())
      runner.ranks.push_back(runner.device);
    llvm::MapVector<const cost::Device *, int64_t> counts;
    for (int64_t rank : runner.ranks)
      ++counts[&cluster.deviceAt(rank)];
    for (auto [type, count] : counts)
      runner.types.push_back({type, type->slowest(count)});
    runners.push_back(std::move(runner));
    if (auto at = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr))
      for (NamedAttribute entry : at)
        between.insert(entry.getName());
  }
  spansMachines = llvm::any_of(runners, [&](const Runner &runner) {
    return &cluster.between(runners.front().device, runner.device) != &cluster.levels.front();
  });
}

dist::Axes Simulation::axesNumbered(const codegen::Collective &collective) const {
  dist::Axes axes;
  for (StringRef name : communication.groups[collective.group])
    if (int axis = mesh.find(name); axis >= 0)
      axes.push_back(axis);
  return axes;
}

const cost::GroupLayout &Simulation::layoutOf(int64_t number,
                                              const codegen::Collective &collective) {
  auto [entry, isNew] = layouts.try_emplace({number, collective.group});
  if (!isNew)
    return entry->second;
  dist::Axes axes = axesNumbered(collective);
  // Each group once, but for axes along which programs differ. Groups whose first ranks are at the same
  // place in a unit of the outermost level, or in a torus, lie alike.
  auto isFirst = [&](int64_t rank) {
    return llvm::all_of(axes, [&](int axis) {
      return mesh.coordinate(rank, axis) == 0 || between.contains(mesh.axes[axis].name);
    });
  };
  auto seconds = [&](const cost::GroupLayout &layout) {
    return cluster.collectiveSeconds(collective.getName(),
                                     double(collective.groupBytes) / double(collective.members), layout);
  };
  int64_t unit = cluster.periodOfPlaces();
  llvm::DenseSet<int64_t> seen;
  for (int64_t rank : llvm::make_filter_range(runners[number].ranks, isFirst)) {
    if (!seen.insert(rank % unit).second)
      continue;
    SmallVector<int64_t> group = mesh.group(rank, axes);
    auto [known, isUnknown] = byPlace.try_emplace({group.front() % unit, collective.group});
    if (isUnknown)
      known->second = cluster.layoutOf(group);
    if (seen.size() == 1 || seconds(known->second) > seconds(entry->second))
      entry->second = known->second;
  }
  return entry->second;
}

const cost::MessageWay &Simulation::wayBetween(int64_t number, int64_t peer) {
  auto [entry, isNew] = links.try_emplace({number, peer});
  if (isNew) {
    SmallVector<std::pair<int64_t, int64_t>> messages;
    for (auto [from, to] : llvm::zip(runners[number].ranks, runners[peer].ranks))
      messages.push_back({from, to});
    entry->second = cluster.wayOf(messages);
  }
  return entry->second;
}

const cost::MessageWay *Simulation::wayOf(int64_t number, const codegen::Collective &collective) {
  SmallVector<int64_t> to(collective.members, -1);
  if (auto permute = dyn_cast<exec::PermuteOp>(collective.op)) {
    for (auto [receiver, sender] : llvm::enumerate(permute.getFrom()))
      to[sender] = receiver;
  } else if (auto exchange = dyn_cast<exec::ExchangeOp>(collective.op)) {
    llvm::copy(exchange.getTo(), to.begin());
  } else {
    return nullptr;
  }
  auto [entry, isNew] = ways.try_emplace({number, collective.op});
  if (isNew) {
    dist::Axes axes = axesNumbered(collective);
    SmallVector<std::pair<int64_t, int64_t>> messages;
    for (int64_t rank : runners[number].ranks)
      if (int64_t receiver = to[mesh.position(rank, axes)]; receiver >= 0)
        messages.push_back({rank, mesh.group(rank, axes)[receiver]});
    entry->second = cluster.wayOf(messages);
  }
  return &entry->second;
}

llvm::Error Simulation::checkGroups() const {
  const std::optional<cost::Torus> &torus = cluster.levels.front().torus;
  if (!torus)
    return llvm::Error::success();
  llvm::DenseSet<unsigned> known;
  for (const codegen::Collective &collective : communication.collectives) {
    dist::Axes axes = axesNumbered(collective);
    if (axes.empty() || !llvm::is_contained(cost::CollectiveAlgorithm::known(), collective.getName()) ||
        !known.insert(collective.group).second)
      continue;
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.position(rank, axes) != 0)
        continue;
      cost::GroupLayout layout = cluster.layoutOf(mesh.group(rank, axes));
      if (layout.level == 0 && layout.members > 1 && !layout.box)
        return llvm::createStringError(
            "no time can be predicted: the " + Twine(layout.members) + " devices along " +
            axesOf(collective) + " from device " + Twine(rank) + " on are no box of the torus " +
            llvm::join(llvm::map_range(torus->dimensions, [](int64_t size) { return std::to_string(size); }), "x") +
            "; choose sizes of axes that divide its dimensions or are multiples of them");
    }
  }
  return llvm::Error::success();
}

/// Seconds of what each rank of a program does for itself, by the type that takes longest.
static double longest(const Runner &runner, llvm::function_ref<double(const cost::Device &)> of) {
  double seconds = 0;
  for (auto [type, slowest] : runner.types)
    seconds = std::max(seconds, of(*type));
  return seconds;
}

/// The link between a device and an offload space.
static const cost::Link &linkOf(const cost::Device &device, MemorySpace space) {
  static constexpr cost::Link cost::Device::*links[] = {
#define MW_OFFLOAD_SPACE(Space, name, text, bytes, memory, budget, budgetFlag, variable, fetched,  \
                         stored, link, ...)                                                        \
  &cost::Device::link,
#include "meshwright/runtime/MemorySpaces.def"
  };
  return device.*links[int(space) - 1];
}

/// How long what `op` reads and writes in offload spaces takes over their links, which work in both
/// directions at once.
static double secondsOverLinks(const cost::Device &device, Operation *op) {
  double seconds = 0;
  auto launch = dyn_cast<exec::LaunchOp>(op);
  for (MemorySpace space : offloadSpaces) {
    auto bytes = [&](ValueRange memory) {
      double sum = 0;
      for (Type type : memory.getTypes())
        if (exec::spaceOf(type) == space)
          sum += double(exec::bytesOf(type));
      return sum;
    };
    double most = launch ? std::max(bytes(launch.getInputs()), bytes(launch.getOutputs())) : 0;
    if (most > 0)
      seconds = std::max(seconds, linkOf(device, space).seconds(most));
  }
  return seconds;
}

Cost Simulation::costOf(const Runner &runner, Operation *op) {
  auto [entry, isNew] = costs.try_emplace(op);
  if (!isNew)
    return entry->second;
  static constexpr double TimeParts::*parts[] = {&TimeParts::kernels,  &TimeParts::optimizer,
                                                 &TimeParts::products, &TimeParts::products,
                                                 &TimeParts::attention, &TimeParts::attention};
  cost::CallWork call = work.of(op);
  Cost cost{parts[call.kind]};
  // Ranks of a program wait for each other in its collectives.
  for (auto [type, slowest] : runner.types)
    cost.seconds = std::max(cost.seconds, call.seconds(*type) * slowest);
  cost.seconds *= cost.part == &TimeParts::products    ? profile.products
                  : cost.part == &TimeParts::attention ? profile.attention
                  : cost.part == &TimeParts::optimizer ? profile.optimizer
                                                       : profile.kernels;
  if (double bytes = call.logits * ((call.isLossOfLogits ? profile.logitsForward : 0) +
                                    (call.isGradOfLogits ? profile.logitsBackward : 0)))
    cost.seconds = longest(runner, [&](const cost::Device &device) { return device.memory.seconds(bytes); });
  cost.isLaunched = cost.seconds > 0;
  if (profile.separateAccumulation) {
    constexpr double bytesPerElement = 2 + 4 + 4; // the gradient, and the sum read and written
    cost.accumulates = longest(runner, [&](const cost::Device &device) {
      return device.memory.seconds(bytesPerElement * call.accumulated);
    });
  }
  cost.copies = std::max(0., longest(runner, [&](const cost::Device &device) {
                           return secondsOverLinks(device, op);
                         }) - cost.seconds);
  return costs[op] = cost;
}

void Simulation::dispatch(Runner &runner, double seconds) {
  runner.clocks.host += seconds;
  wait(runner, runner.clocks.host, runner.parts.launches, runner.clocks.host);
}

bool Simulation::isAlong(const codegen::Collective &collective,
                         llvm::ArrayRef<std::string> axes) const {
  return llvm::all_of(communication.groups[collective.group],
                      [&](StringRef axis) { return llvm::is_contained(axes, axis); });
}

double Simulation::gradientSeconds(double bytes, const cost::GroupLayout &layout) const {
  // Smaller gradients share a call.
  auto members = double(layout.members);
  double call = std::max(bytes, 2 * profile.gradientBucket * (members - 1) / members);
  return call > 0 ? bytes / call * cluster.collectiveSeconds("all_reduce", call, layout) : 0;
}

double Simulation::dispatchOf(const codegen::Collective &collective) const {
  bool isSlow = spansMachines && isAlong(collective, profile.batchedCollectives);
  return profile.dispatch + (isSlow ? profile.dispatchPeer * double(collective.members) : 0);
}

Operation *Simulation::batchedIn(const Runner &runner, exec::LoopOp loop) {
  Operation *found = nullptr;
  for (Operation &op : loop.getBlock()) {
    if (const codegen::Collective *collective = collectiveAt(&op)) {
      if (found || !isAlong(*collective, profile.batchedCollectives))
        return nullptr;
      found = &op;
    } else if (op.getNumRegions() || exec::queueOf(&op) || isa<exec::WaitOp, exec::CallOp>(op) ||
               costOf(runner, &op).isLaunched) {
      return nullptr;
    }
  }
  return found;
}

bool Simulation::joinsPrograms(exec::MemoryCollectiveOpInterface op) const {
  return llvm::any_of(op.getAxes().getAsValueRange<StringAttr>(),
                      [&](StringRef axis) { return between.contains(axis); });
}

void Simulation::wait(Runner &runner, double until, double &what, double most) {
  double waited = std::max(0.0, until - runner.clocks.now);
  what += std::min(waited, most);
  runner.parts.bubble += std::max(0.0, waited - most);
  runner.clocks.now += waited;
}

/// Bytes of the longest message of a permutation or an exchange.
static double messageBytes(const codegen::Collective &collective) {
  if (auto exchange = dyn_cast<exec::ExchangeOp>(collective.op))
    return double(exchange.getReceivedBytes());
  double bytes = 0;
  for (const codegen::Collective::Segment &segment : collective.segments)
    bytes += double(exec::bytesOf(segment.source.getType()));
  return bytes;
}

void Simulation::communicate(int64_t number, Operation &op, double from, bool show,
                             double calls) {
  Runner &runner = runners[number];
  const codegen::Collective &collective = *collectiveAt(&op);
  const cost::GroupLayout &layout = layoutOf(number, collective);
  const cost::MessageWay *way = wayOf(number, collective);
  size_t level = way ? way->level : layout.level;
  dispatch(runner, dispatchOf(collective));
  from = std::max(from, runner.clocks.now);
  double &link = runner.clocks.links[level];
  double bytes = calls * double(collective.groupBytes) / double(collective.members);
  StringRef name = collective.getName();
  // Gradients of what tensor parallelism replicates are summed along its axis too.
  bool isGradient = isAlong(collective, profile.allReducedGradients) ||
                    (name == "all_reduce" &&
                     llvm::any_of(communication.groups[collective.group], [&](StringRef axis) {
                       return llvm::is_contained(profile.allReducedGradients, axis);
                     }));
  double factor = level > 0 && isGradient ? profile.network : profile.communication;
  // A member of an all-reduce sends as much again as it gathers.
  double seconds = factor * (way ? way->seconds(calls * messageBytes(collective))
                             : isGradient && name == "reduce_scatter" ? gradientSeconds(2 * bytes, layout)
                             : isGradient && name == "all_reduce"   ? gradientSeconds(bytes, layout)
                                                 : cluster.collectiveSeconds(name, bytes, layout));
  double begin = std::max(from, link), end = begin + seconds;
  link = end;
  CommunicationKind kind{axesOf(collective), collective.getName().str(),
                                 cluster.levels[level].name};
  std::optional<int64_t> token = exec::asyncTokenOf(&op);
  if (token) {
    runner.clocks.started[*token] = end;
    runner.awaited[*token] = kind;
  }
  if (token && !isGradient) {
    // What is computed meanwhile is held up, which is paid at once.
    double heldUp = cluster.levels[level].contention * seconds;
    runner.parts.communication[kind] += heldUp;
    runner.clocks.now += heldUp;
  } else {
    wait(runner, end, runner.parts.communication[kind], end - from);
  }
  tell(number, SimulatedEvent::Communicating, op.getName().stripDialect(), op, begin, end, show);
}

void Simulation::copy(int64_t number, Operation &op) {
  Runner &runner = runners[number];
  // exec.finish_sends is no copy: it takes as long as one of no bytes.
  CopyEngine engine = exec::copyEngineOf(&op).value_or(CopyEngine::numbered(0));
  double &queue = runner.clocks.copies[engine.number()];
  double bytes = double(cost::movedBy(&op, symbols).written);
  // One disk reads or writes; memory does both at once.
  if (!spaceRow(engine.space).hasAddresses())
    queue = std::max(queue, runner.clocks.copies[CopyEngine{engine.space, !engine.stores}.number()]);
  queue = std::max(queue, runner.clocks.now) + longest(runner, [&](const cost::Device &device) {
            return linkOf(device, engine.space).seconds(bytes);
          });
  if (std::optional<int64_t> token = exec::asyncTokenOf(&op)) {
    runner.clocks.started[*token] = queue;
    runner.awaited.erase(*token);
    runner.copies[*token] = &op;
  } else {
    waitForCopy(runner, queue, &op);
  }
}

void Simulation::waitForCopy(Runner &runner, double until, Operation *copy) {
  if (double seconds = until - runner.clocks.now; copy && seconds > runner.longestWait) {
    runner.longestWait = seconds;
    runner.waitsFor = copy;
  }
  wait(runner, until, runner.parts.copies, until);
}

/// "the copy of 4,096 bytes from the SSD at model.mlir:3:5"; empty for none.
static std::string textOfCopy(Operation *op) {
  std::optional<CopyEngine> engine = op ? exec::copyEngineOf(op) : std::nullopt;
  if (!engine)
    return "";
  return llvm::formatv("the copy of {0:N0} bytes {1} {2} at {3}", exec::bytesOf(cast<exec::CopyOp>(op).getSource().getType()),
                       engine->stores ? "to" : "from", spaceRow(engine->space).text,
                       codegen::locationText(op->getLoc()))
      .str();
}

/// How many iterations of a loop, in their order, are done when an exec.when in it begins or ends,
/// and at the loop's end.
static std::set<int64_t> changesOf(exec::LoopOp loop, int64_t iterations) {
  std::set<int64_t> changes{iterations};
  loop.getBlock().walk([&](exec::WhenOp when) {
    if (when.getLoop() == loop)
      for (int64_t at : {int64_t(when.getBegin()), int64_t(when.getEnd())})
        if (at > 0 && at < iterations)
          changes.insert(loop.getReverse() ? iterations - at : at);
  });
  return changes;
}

void Simulation::runLoop(int64_t number, exec::LoopOp loop, bool show) {
  // Two iterations fill what reaches from one into the next; those like them take as long as the
  // third.
  constexpr int64_t simulated = 3;
  Runner &runner = runners[number];
  double begin = runner.clocks.now;
  int64_t iterations = std::llround(cost::tripCount(loop)), done = 0;
  if (Operation *collective = batchedIn(runner, loop))
    return communicate(number, *collective, begin, show, double(iterations));
  for (int64_t change : changesOf(loop, iterations)) {
    Clocks before;
    TimeParts parts;
    for (int64_t i = 0; i < simulated && done < change; ++i, ++done) {
      before = runner.clocks;
      parts = runner.parts;
      this->iterations[loop.getIndex()] = loop.getReverse() ? iterations - 1 - done : done;
      runBlock(number, loop.getBlock(), show && done == 0);
    }
    auto others = double(change - done);
    if (others == 0)
      continue;
    runner.clocks.forEach(before, [&](double &mine, double its) { mine += others * (mine - its); });
    TimeParts grown = runner.parts;
    grown.add(parts, -1);
    runner.parts.add(grown, others);
    dispatch(runner, 0); // which of host and device is ahead may have changed meanwhile
    done = change;
  }
  tell(number, SimulatedEvent::Computing, "loop x " + std::to_string(iterations), *loop, begin,
       runner.clocks.now, show);
}

void Simulation::runOp(int64_t number, Operation &op, bool show) {
  Runner &runner = runners[number];
  double begin = runner.clocks.now;
  if (exec::collectiveOf(&op))
    return communicate(number, op, begin, show);
  if (exec::queueOf(&op))
    return copy(number, op);
  if (auto waits = dyn_cast<exec::WaitOp>(op)) {
    int64_t token = waits.getAsyncToken();
    auto kind = runner.awaited.find(token);
    double end = runner.clocks.started[token];
    if (kind == runner.awaited.end())
      return waitForCopy(runner, end, runner.copies.lookup(token));
    return wait(runner, end, runner.parts.communication[kind->second], end);
  }
  if (auto loop = dyn_cast<exec::LoopOp>(op))
    return runLoop(number, loop, show);
  if (auto call = dyn_cast<exec::CallOp>(op)) {
    auto callee = symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
    runBlock(number, callee.getBlock(), show && runner.shown.insert(callee).second);
    auto task = op.getAttrOfType<StringAttr>(dist::taskAttr);
    return tell(number, SimulatedEvent::Computing, task ? task.getValue() : call.getCallee(), op,
                begin, runner.clocks.now, show);
  }
  if (auto when = dyn_cast<exec::WhenOp>(op)) {
    int64_t iteration = iterations[when.getIndex()];
    if (iteration < int64_t(when.getBegin()) || iteration >= int64_t(when.getEnd()))
      return;
  }
  for (Region &region : op.getRegions())
    runBlock(number, region.front(), show);
  if (op.getNumRegions())
    return;
  Cost cost = costOf(runner, &op);
  if (!cost.isLaunched)
    return;
  double launch = longest(runner, [](const cost::Device &d) { return d.launch; }) + profile.launch;
  dispatch(runner, profile.dispatch);
  runner.parts.*cost.part += cost.seconds;
  runner.parts.kernels += cost.accumulates;
  runner.parts.copies += cost.copies;
  runner.parts.launches += launch;
  runner.clocks.now += cost.seconds + cost.accumulates + cost.copies + launch;
  auto kernel = dyn_cast<exec::LaunchOp>(op);
  tell(number, SimulatedEvent::Computing, kernel ? kernel.getKernel() : op.getName().stripDialect(),
       op, begin, runner.clocks.now, show);
}

void Simulation::runBlock(int64_t number, Block &block, bool show) {
  for (Operation &op : block)
    runOp(number, op, show);
}

bool Simulation::runTop(int64_t number, Operation &op) {
  Runner &runner = runners[number];
  auto meeting = dyn_cast<exec::MemoryCollectiveOpInterface>(op);
  if (!meeting || !joinsPrograms(meeting)) {
    runOp(number, op, /*show=*/true);
    return true;
  }
  const codegen::Collective &collective = *collectiveAt(&op);
  // Programs are at their coordinates along the axis that tells them apart.
  if (auto send = dyn_cast<exec::SendOp>(op)) {
    const cost::MessageWay &way = wayBetween(number, send.getTo());
    double &link = runner.clocks.links[way.level];
    double seconds = way.seconds(double(collective.groupBytes)) + profile.message;
    if (profile.synchronousMessages)
      runner.clocks.host = std::max(runner.clocks.host, runner.clocks.now);
    double begin = std::max(runner.clocks.now, link);
    link = begin + seconds;
    mail[{number, send.getTo(), send.getChannel()}].push_back({link, seconds});
    if (profile.synchronousMessages) {
      CommunicationKind kind{axesOf(collective), "message", cluster.levels[way.level].name};
      wait(runner, link, runner.parts.communication[kind], link);
    }
    tell(number, SimulatedEvent::Communicating, "send", op, begin, link, /*show=*/true);
    return true;
  }
  if (auto recv = dyn_cast<exec::RecvOp>(op)) {
    auto &messages = mail[{recv.getFrom(), number, recv.getChannel()}];
    if (messages.empty())
      return false;
    Message message = messages.front();
    messages.pop_front();
    double begin = runner.clocks.now;
    CommunicationKind kind{axesOf(collective), "message",
                           cluster.levels[wayBetween(recv.getFrom(), number).level].name};
    wait(runner, message.arrival, runner.parts.communication[kind], message.duration);
    if (profile.synchronousMessages)
      runner.clocks.host = std::max(runner.clocks.host, runner.clocks.now);
    tell(number, SimulatedEvent::Communicating, "recv", op, begin, runner.clocks.now,
         /*show=*/true);
    return true;
  }
  // The last to come lets all go.
  waiting[number] = runner.clocks.now;
  if (waiting.size() < runners.size())
    return false;
  double latest = 0;
  for (auto [at, time] : waiting)
    latest = std::max(latest, time);
  for (auto [at, time] : waiting) {
    Operation &own = *runners[at].next;
    double none = 0;
    if (!exec::asyncTokenOf(&own))
      wait(runners[at], latest, none, 0);
    communicate(at, own, latest, /*show=*/true);
    if (at != number)
      ++runners[at].next;
  }
  waiting.clear();
  return true;
}

bool Simulation::advance(int64_t number) {
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

llvm::Expected<StepTime> Simulation::run() {
  if (std::optional<int64_t> size = cluster.size(); size && *size < mesh.size())
    return llvm::createStringError("the mesh has " + Twine(mesh.size()) + " devices, but " +
                                   cluster.name + " only " + Twine(*size));
  if (llvm::Error error = checkGroups())
    return std::move(error);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t number = 0; number < runners.size(); ++number)
      progress |= advance(number);
  }
  StepTime step;
  for (Runner &runner : runners) {
    if (runner.block && runner.next != runner.block->end())
      return llvm::createStringError("no time can be predicted: '" +
                                     runner.next->getName().getStringRef() + "' of program " +
                                     runner.module.getSymName().value_or("main") +
                                     " waits forever");
    step.seconds = std::max(step.seconds, runner.clocks.now);
  }
  for (Runner &runner : runners) {
    double none = 0;
    wait(runner, step.seconds, none, 0); // for the slowest
    step.programs.push_back({runner.module.getSymName().value_or("every rank").str(),
                             std::max<int64_t>(1, int64_t(runner.ranks.size())), runner.parts, runner.longestWait,
                             textOfCopy(runner.waitsFor)});
  }
  return step;
}

llvm::Expected<StepTime> report::simulateStep(ModuleOp module, const cost::Cluster &cluster,
                                              const cost::Profile &profile,
                                              EventObserver observe) {
  cost::Cluster used = cluster;
  for (cost::Level &level : used.levels)
    llvm::erase_if(level.algorithms, [&](const cost::CollectiveAlgorithm &algorithm) {
      return llvm::is_contained(profile.excludedAlgorithms, algorithm.name);
    });
  return Simulation(module, used, profile, observe).run();
}

llvm::Expected<StepTime> meshwright::predictStep(ModuleOp module, const cost::Cluster &cluster,
                                                 const cost::Profile &profile) {
  return report::simulateStep(module, cluster, profile, [](const SimulatedEvent &) {});
}
