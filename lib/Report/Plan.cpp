//===- Plan.cpp - the plan of a module ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "DividedWork.h"
#include "Exec/Exec.h"
#include "ExpectedStep.h"
#include "Kernels.h"
#include "MemoryTables.h"
#include "PredictedTrace.h"
#include "StepTasks.h"
#include "Train/GradientBlocks.h"
#include "Train/Optimizer.h"
#include "Train/Quantize.h"
#include "meshwright/Communication.h"
#include "meshwright/Cost/DevicesInUse.h"
#include "meshwright/Cost/Flops.h"
#include "meshwright/LocationText.h"
#include "meshwright/PlanJson.h"
#include "meshwright/Report.h"
#include "meshwright/Strategy.h"
#include "meshwright/runtime/PlanHash.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace meshwright;
using llvm::createStringError;

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << getElementTypeOrSelf(type);
  return text;
}

namespace {
class PlanBuilder {
public:
  explicit PlanBuilder(ModuleOp module)
      : module(module), programs(dist::programsOf(module)), communication(module) {}
  llvm::Expected<CompiledPlan> build(bool forReport, plan::List<plan::Setting> numbers);

private:
  llvm::Error addModel();
  void addMesh();
  void addVariables(ModuleOp program, int64_t number);
  llvm::Error addProgram(ModuleOp program, int64_t number, bool forReport);
  void addPorts(ModuleOp program, int64_t number);
  void addCommunication();
  /// Adds products that ranks of `program` compute alike.
  void addRepeated(ModuleOp program);
  int64_t ranksOf(ModuleOp program);
  /// Adds the floating-point operations of a step on all ranks that run `program`, and those of
  /// them that have run before.
  void addFlops(ModuleOp program);

  ModuleOp module;
  SmallVector<ModuleOp> programs;
  codegen::Communication communication;
  dist::Mesh mesh;
  llvm::DenseMap<Operation *, int64_t> ranks; ///< of each program
  CompiledPlan plan;
  cost::FlopCounter flops;
};
} // namespace

llvm::Error PlanBuilder::addModel() {
  auto text = [&](StringRef name) {
    auto attribute = module->getAttrOfType<StringAttr>(name);
    return attribute ? attribute.str() : "";
  };
  auto missing = [](StringRef name) {
    return createStringError("the module has no " + name +
                             ", which an executable's plan needs: a description of a model in "
                             ".mlir sets it as an attribute of the module");
  };
  plan.model = text(train::modelAttr);
  plan.config = text(train::configAttr);
  for (auto [name, number] : {std::pair<StringRef, int64_t *>(train::batchAttr, &plan.batch),
                              {train::sequenceAttr, &plan.sequence},
                              {train::microbatchesAttr, &plan.microbatches},
                              {train::vocabularyAttr, &plan.vocabulary},
                              {train::maxPositionsAttr, &plan.maxPositions}}) {
    std::optional<int64_t> size = train::moduleSize(module, name);
    if (!size)
      return missing(name);
    *number = *size;
  }
  if (auto share = module->getAttrOfType<FloatAttr>(train::maskedShareAttr)) {
    plan.maskedShare = share.getValueAsDouble();
    plan.maskToken = train::moduleSize(module, train::maskTokenAttr);
  }
  if (auto beta = module->getAttrOfType<FloatAttr>(train::dpoBetaAttr))
    plan.dpoBeta = beta.getValueAsDouble();
  plan.gradientBlocks = train::moduleSize(module, train::gradientBlocksAttr);
  plan.sourceSequence = train::moduleSize(module, train::sourceSequenceAttr);
  plan.startToken = train::moduleSize(module, train::startTokenAttr);
  if (auto config = module->getAttrOfType<StringAttr>(train::adapterConfigAttr))
    plan.adapterConfig = config.str();
  plan.target = exec::targetOf(programs.front()).getName().str();
  std::string precision = text(train::precisionAttr);
  plan.precision = precision.empty() ? "f32" : precision;
  auto gradients = module->getAttrOfType<TypeAttr>(train::gradTypeAttr);
  plan.gradDtype = gradients ? typeName(gradients.getValue()) : "f32";
  std::string name = text(train::optimizerAttr);
  if (name.empty())
    return missing(train::optimizerAttr);
  const train::Optimizer *optimizer = nullptr;
  if (llvm::Error error = train::parseOption(name, optimizer))
    return createStringError(train::optimizerAttr + " of the module: " +
                             llvm::toString(std::move(error)));
  addToPlan(*optimizer, plan);
  if (train::keepsAverages(module))
    train::addAveragesToPlan(plan);
  return llvm::Error::success();
}

void PlanBuilder::addMesh() {
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  for (const dist::MeshAxis &axis : mesh.axes)
    plan.mesh.push_back({axis.name, axis.size});
  for (unsigned axis : dist::batchAxes(mesh))
    plan.dataAxes.push_back(mesh.axes[axis].name);
}

/// The buffer of each variable, in any entry point.
static llvm::StringMap<exec::BufferOp> buffersOf(ModuleOp program) {
  llvm::StringMap<exec::BufferOp> buffers;
  program.walk([&](exec::BufferOp buffer) {
    if (std::optional<StringRef> variable = buffer.getVariable())
      buffers[*variable] = buffer;
  });
  return buffers;
}

/// "pipe": [0] for each axis that `dist.coordinates` names.
static plan::Table<plan::Shape> coordinatesObject(ModuleOp program) {
  plan::Table<plan::Shape> result;
  if (auto at = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr))
    for (NamedAttribute entry : at)
      llvm::append_range(result[entry.getName().str()], dist::coordinatesOf(entry.getValue()));
  return result;
}

static plan::Storage storageOf(train::VariableOp op, ArrayRef<int64_t> layerShape) {
  auto storage = op.getStorageAttr();
  if (!storage) // Unnamed in any file: stored under its own name.
    return {op.getSymName().str() + (op.getStacked() ? ".{layer}" : ""), {}, {}};
  plan::Storage result{storage.getTensor().str(), storage.getTranspose(), {}, {}};
  if (storage.getOptional())
    result.mayLack = true;
  if (storage.getFull()) {
    // Sizes are of the file's tensor.
    SmallVector<int64_t> shape(layerShape);
    if (storage.getTranspose())
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    result.slice = plan::StorageSlice{
        storage.getDim(), storage.getOffset(), shape[storage.getDim()], storage.getFull(), {}, {}};
    if (storage.getPeriod()) {
      result.slice->period = storage.getPeriod();
      result.slice->runs = plan::Shape(storage.getRuns().asArrayRef().vec());
    }
  }
  return result;
}

void PlanBuilder::addVariables(ModuleOp program, int64_t number) {
  llvm::StringMap<exec::BufferOp> buffers = buffersOf(program);
  for (auto op : program.getOps<train::VariableOp>()) {
    exec::BufferOp buffer = buffers.lookup(op.getSymName());
    if (!buffer)
      continue; // nothing reads or writes it
    auto global = op.getTensorType();
    if (auto type = op->getAttrOfType<TypeAttr>(dist::DistDialect::globalAttr))
      global = cast<RankedTensorType>(type.getValue());
    auto encoding = dist::shardingOf(global);
    dist::Sharding sharded =
        encoding ? encoding.on(mesh) : dist::Sharding::replicated(global.getRank());
    if (auto type = op->getAttrOfType<TypeAttr>(dist::DistDialect::logicalAttr))
      global = cast<RankedTensorType>(type.getValue());
    plan::Variable &entry = plan.variables.emplace_back();
    for (const dist::Axes &axes : sharded.dims) {
      entry.sharding.emplace_back();
      for (unsigned axis : axes)
        entry.sharding.back().push_back(mesh.axes[axis].name);
    }
    entry.name = op.getSymName().str();
    entry.role = op.getRole().value_or("parameter").str();
    entry.type = typeName(global);
    entry.shape = global.getShape().vec();
    entry.stacked = op.getStacked();
    if (op.getExperts())
      entry.expertsUsed = *op.getExperts();
    entry.localShape = op.getTensorType().getShape().vec();
    entry.offset = buffer.getOffset().value_or(0);
    entry.program = number;
    entry.space = exec::spaceOf(buffer.getType());
    if (auto copies = op->getAttrOfType<StringAttr>(dist::DistDialect::copiesAttr))
      entry.copies = copies.str();
    if (op.getOf())
      entry.of = op.getOf()->str();
    // Other states have the shape of their parameter, and places in files beside it.
    if (train::isOfCompression(op) || train::isOfDelayedScaling(op)) {
      if (!llvm::is_contained(plan.optimizerStates, entry.role))
        plan.optimizerStates.push_back(entry.role);
    } else if (op.getOf()) {
      continue;
    }
    double value = op.getInit().getValue().getValueAsDouble();
    plan::Initializer &init = entry.init.emplace();
    init.kind = op.getInit().getKind().str();
    if (init.kind != "row_norms")
      (init.kind == "normal"    ? init.deviation
       : init.kind == "uniform" ? init.bound
                                : init.value) = value;
    if (op->hasAttr(train::frozenAttr))
      entry.frozen = true;
    if (op->hasAttr(train::adapterAttr))
      entry.adapter = true;
    entry.storage = storageOf(op, global.getShape().drop_front(op.getNumbered()));
    // A run that another one begins without compression has left nothing out so far.
    if (op.getRole() == train::residualRole || op.getRole() == train::serverResidualRole)
      entry.storage->mayLack = true;
  }
}

/// Bytes by category, in an attribute of a planned program.
static std::vector<plan::MemoryLine> linesOf(ModuleOp program, StringRef attribute) {
  std::vector<plan::MemoryLine> lines;
  if (auto list = program->getAttrOfType<DictionaryAttr>(attribute))
    for (NamedAttribute line : list)
      lines.push_back({line.getName().str(), cast<IntegerAttr>(line.getValue()).getInt()});
  return lines;
}

/// What a run of a block copies, in all of its loops and calls, between the device and the spaces in which
/// its program has memory.
static plan::CopiedBytes copiedBy(Block &block, const BySpace<plan::Offloaded> &offloaded) {
  plan::CopiedBytes sum;
  for (int32_t engine = 0; engine < copyEngines; ++engine)
    if (offloaded[CopyEngine::numbered(engine).space].bytes)
      sum.bytes[engine] = 0;
  SymbolTableCollection symbols;
  cost::forEachRun(block, cost::Rounds::Most, symbols, [&](Operation *op, double runs) {
    std::optional<CopyEngine> engine = exec::copyEngineOf(op);
    if (engine && sum.bytes[engine->number()])
      *sum.bytes[engine->number()] +=
          std::llround(runs) * exec::bytesOf(cast<exec::CopyOp>(op).getSource().getType());
  });
  return sum;
}

llvm::Error PlanBuilder::addProgram(ModuleOp program, int64_t number, bool forReport) {
  auto arena = program->getAttrOfType<IntegerAttr>(exec::arenaBytesAttr);
  auto live = program->getAttrOfType<IntegerAttr>(exec::liveBytesAttr);
  if (!arena || !live)
    return createStringError("the module's buffers have no offsets: run exec-assign-offsets");
  plan::Program &entry = plan.programs.emplace_back();
  entry.name = program == module ? "main" : program.getSymName().value_or("").str();
  entry.at = coordinatesObject(program);
  entry.arenaBytes = arena.getInt();
  entry.liveBytes = live.getInt();
  entry.memory = linesOf(program, exec::memoryAttr);
  entry.allowances = exec::targetOf(program).getTarget().getAllowances(program, communication);
  addFlops(program);
  entry.kernels = report::kernelsOf(program, flops);
  // For all of the executable stands the rank that needs most.
  bool first = number == 0;
  if (first || entry.arenaBytes > plan.arenaBytes) {
    plan.arenaBytes = entry.arenaBytes;
    plan.memory = entry.memory;
  }
  int64_t device = entry.arenaBytes + bytesOf(entry.allowances);
  if (first || device > plan.deviceBytes) {
    plan.deviceBytes = device;
    plan.allowances = entry.allowances;
  }
  for (MemorySpace space : offloadSpaces)
    if (auto bytes = program->getAttrOfType<IntegerAttr>(exec::memoryAttributes[space].bytes)) {
      entry.offloaded[space] = {bytes.getInt(), linesOf(program, exec::memoryAttributes[space].memory)};
      if (bytes.getInt() > plan.offloaded[space].bytes)
        plan.offloaded[space] = entry.offloaded[space];
      entry.copiedBytes.emplace();
    }
  if (entry.copiedBytes)
    for (auto step : program.getOps<exec::ProgramOp>())
      if (!step.isPrivate())
        (*entry.copiedBytes)[step.getSymName().str()] = copiedBy(step.getBlock(), entry.offloaded);
  report::addTasks(program, programs, flops, entry);
  if (auto shares = report::attentionShares(program, plan.microbatches); !shares.empty())
    entry.attentionShares = std::move(shares);
  auto profiles = exec::profileMemory(program);
  entry.peak = report::peakOf(profiles);
  for (auto &[entryPoint, profile] : profiles) {
    if (!forReport)
      break;
    MemoryOverTime &overTime = plan.memoryOverTime.emplace_back(report::overTime(profile));
    overTime.in = number;
    overTime.program = entryPoint;
  }
  addVariables(program, number);
  addPorts(program, number);
  return llvm::Error::success();
}

void PlanBuilder::addPorts(ModuleOp program, int64_t number) {
  llvm::StringSet<> seen;
  program.walk([&](exec::BufferOp buffer) {
    auto name = buffer.getInput() ? buffer.getInput() : buffer.getOutput();
    if (!name || !seen.insert(*name).second)
      return;
    auto type = buffer.getType();
    (buffer.getInput() ? plan.inputs : plan.outputs)
        .push_back({name->str(), typeName(type), type.getShape().vec(),
                    int64_t(buffer.getOffset().value_or(0)), number});
  });
}

void PlanBuilder::addCommunication() {
  for (auto &axes : communication.groups)
    llvm::append_range(plan.groups.emplace_back(),
                       llvm::map_range(axes, [](StringRef axis) { return axis.str(); }));
  auto add = [&](const codegen::Collective &collective, StringRef program, int64_t times) {
    ModuleOp in = collective.op->getParentOfType<ModuleOp>();
    int64_t number = llvm::find(programs, in) - programs.begin();
    // A message goes out of every rank of the program; of the rest each rank has its share,
    // rounded so that those of all programs add up.
    // The product may exceed 2^63.
    auto share = [&](int64_t ranks) {
      return int64_t(__int128(collective.groupBytes) * ranks / collective.members);
    };
    int64_t ranks = ranksOf(in), before = 0;
    for (ModuleOp other : ArrayRef(programs).take_front(number))
      before += ranksOf(other);
    bool message = isa<exec::SendOp>(collective.op);
    plan::Collective &row = plan.collectives.emplace_back();
    row.op = collective.getName().str();
    row.group = collective.group;
    row.type = typeName(collective.getElementType());
    row.count = collective.getCount();
    row.entry = program.str();
    row.program = number;
    row.times = times;
    row.groupBytes = collective.groupBytes;
    row.bytes = message ? collective.groupBytes * ranks : share(before + ranks) - share(before);
    row.location = codegen::locationText(collective.op->getLoc());
    if (collective.op->hasAttr(exec::asyncTokenAttr))
      row.started = true;
    if (auto length = collective.op->getAttrOfType<IntegerAttr>(exec::rowAttr))
      row.row = length.getInt();
    for (auto loop = collective.op->getParentOfType<exec::LoopOp>(); loop;
         loop = loop->getParentOfType<exec::LoopOp>())
      if (loop.getTimes() && !train::isOverMicrobatches(loop))
        row.rounds = row.rounds.value_or(1) * int64_t(cost::tripCount(loop, cost::Rounds::Most));
    if (isa<exec::SendOp, exec::RecvOp>(collective.op))
      row.peer = *cast<exec::MemoryCollectiveOpInterface>(collective.op).getRootOrPeer();
  };
  // Calls name a collective by its row. One in a function that two programs call has a
  // second row behind those.
  for (const codegen::Collective &collective : communication.collectives)
    if (collective.runs.empty())
      add(collective, "", 0);
    else
      add(collective, collective.runs[0].first, collective.runs[0].second);
  for (const codegen::Collective &collective : communication.collectives)
    for (auto [program, times] : ArrayRef(collective.runs).drop_front(!collective.runs.empty()))
      add(collective, program, times);
  llvm::append_range(plan.scratchBytes, communication.scratchBytes);
}

int64_t PlanBuilder::ranksOf(ModuleOp program) {
  auto [known, isNew] = ranks.try_emplace(program, 0);
  if (isNew)
    known->second = llvm::count_if(llvm::seq(mesh.size()), [&](int64_t rank) {
      return dist::runsOn(program, mesh, rank);
    });
  return known->second;
}

void PlanBuilder::addFlops(ModuleOp program) {
  auto step = program.lookupSymbol<exec::ProgramOp>("step");
  if (!step)
    return;
  auto ranks = double(ranksOf(program));
  plan.programs.back().flops = flops.of(step.getBlock()) * ranks;
  plan.flops += plan.programs.back().flops;
  llvm::SetVector<Attribute> marks;
  program.walk([&](Operation *op) {
    if (Attribute mark = op->getAttr(train::recomputedAttr))
      marks.insert(mark);
  });
  for (Attribute mark : marks) {
    double again = flops.of(step.getBlock(), mark) * ranks;
    if (again == 0)
      continue;
    auto text = dyn_cast<StringAttr>(mark);
    std::string reason = text ? text.str() : "remat";
    plan.recomputedFlops += again;
    auto &rows = plan.recomputed ? *plan.recomputed : plan.recomputed.emplace();
    auto row = llvm::find_if(rows, [&](const auto &row) { return row.reason == reason; });
    if (row == rows.end())
      rows.push_back({reason, again});
    else
      row->flops += again;
  }
}

void PlanBuilder::addRepeated(ModuleOp program) {
  for (plan::Repeated &row : report::repeatedWork(program, mesh, flops)) {
    row.flops *= double(ranksOf(program));
    // Stages may repeat the same.
    if (!plan.repeated)
      plan.repeated.emplace();
    auto same = llvm::find_if(*plan.repeated, [&](const plan::Repeated &other) {
      return other.location == row.location && other.axes == row.axes;
    });
    if (same == plan.repeated->end())
      plan.repeated->push_back(row);
    else
      same->flops += row.flops;
  }
}

llvm::Expected<CompiledPlan> PlanBuilder::build(bool forReport, plan::List<plan::Setting> numbers) {
  if (llvm::Error error = addModel())
    return error;
  if (!numbers.empty())
    plan.numbers = std::move(numbers);
  addMesh();
  for (auto [number, program] : llvm::enumerate(programs)) {
    if (llvm::Error error = addProgram(program, number, forReport))
      return error;
    addRepeated(program);
    if (std::optional<double> factor = report::attentionImbalance(program))
      plan.attentionImbalance = std::max(plan.attentionImbalance.value_or(1), *factor);
  }
  exec::targetOf(programs.front()).getTarget().addToPlan(module, plan);
  addCommunication();
  if (llvm::Expected<std::optional<report::StepTasks>> tasks = report::tasksOf(plan); !tasks)
    return tasks.takeError();
  // Of all that is said, and so the last to be.
  plan.hash = planHash(plan);
  plan.json = planText(plan);
  return std::move(plan);
}

std::string meshwright::planText(const plan::Plan &plan) {
  return llvm::formatv("{0:2}\n", plan::toJSON<plan::Plan>(plan)).str();
}

std::string meshwright::planHash(plan::Plan plan) {
  plan.hash.assign(plan::hashDigits, '0');
  for (plan::Program &program : plan.programs)
    for (plan::Kernel &kernel : program.kernels)
      kernel.assembled.reset();
  return llvm::formatv("{0:x-16}", llvm::xxh3_64bits(plan::hashedText(planText(plan)))).str();
}

llvm::Expected<CompiledPlan> meshwright::buildPlan(ModuleOp module, bool forReport,
                                          const cost::Cluster *cluster,
                                          plan::List<plan::Setting> numbers) {
  llvm::Expected<CompiledPlan> plan = PlanBuilder(module).build(forReport, std::move(numbers));
  if (!plan || !forReport)
    return plan;
  StepTime step;
  llvm::Expected<std::string> trace = report::predictTrace(module, cluster, step);
  if (!trace)
    return trace.takeError();
  plan->predictedTrace = std::move(*trace);
  if (cluster) {
    plan->expected = report::expectedStep(*plan, step, *cluster);
    plan->limit = cost::DevicesInUse(*cluster, ranksOf(*plan)).capacity;
    plan->limitSource = cluster->name;
  }
  return plan;
}
