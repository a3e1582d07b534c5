//===- Export.cpp - programs as StableHLO ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Functions stay functions and repeats become `while` loops that call them. Variables are
// values: a function takes those that it reads as further arguments, behind its own. What
// is memory-bound goes by its own decomposition for kernels; sums of products, attention
// and collectives have forms of their own.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"

#include "Train/Quantize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using stablehlo::HLOBuilder;
using stablehlo::plain;
using stablehlo::Results;

RankedTensorType stablehlo::plain(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType());
}

/// `{data, tensor}` of a dimension, or of several, as Shardy writes them.
static std::string shardyText(dist::ShardingAttr sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "sharding<@" << sharding.getMesh().getValue() << ", [";
  llvm::interleaveComma(sharding.getDims(), os, [&](dist::DimAttr dim) {
    os << "{";
    llvm::interleaveComma(dim.getAxes(), os, [&](StringAttr axis) { os << axis; });
    os << "}";
  });
  os << "]>";
  return text;
}

static dist::ShardingAttr shardingOf(Type type) {
  return dyn_cast_or_null<dist::ShardingAttr>(cast<RankedTensorType>(type).getEncoding());
}

static Attribute shardy(MLIRContext *context, const Twine &text) {
  return OpaqueAttr::get(StringAttr::get(context, "sdy"), text.str(), NoneType::get(context));
}

namespace {
class Exporter {
public:
  explicit Exporter(ModuleOp module) : module(module), b(module.getContext()) {}
  FailureOr<std::string> run();

private:
  using Environment = llvm::MapVector<StringAttr, Value>; ///< values of variables

  const llvm::SetVector<StringAttr> &variablesRead(func::FuncOp function);
  LogicalResult addMain(func::FuncOp step);
  FailureOr<func::FuncOp> functionFor(func::FuncOp source);
  FailureOr<SmallVector<Value>> exportBody(Block &source, ValueRange arguments,
                                           Environment &variables, OpBuilder &to);
  FailureOr<Results> exportOp(Operation *op, ValueRange operands, Environment &variables,
                              HLOBuilder &to);
  FailureOr<Results> exportKernel(train::KernelOpInterface op, ValueRange operands, HLOBuilder &to);
  FailureOr<Results> exportRepeat(train::RepeatOp op, ValueRange operands, Environment &variables,
                                  HLOBuilder &to);
  FailureOr<Results> callFunction(func::FuncOp callee, ValueRange arguments,
                                  Environment &variables, HLOBuilder &to);
  void describe(StringRef what, unsigned number, const Twine &text);

  ModuleOp module;
  OpBuilder b;
  OwningOpRef<ModuleOp> result;
  dist::Mesh mesh;
  SymbolTableCollection symbols;
  llvm::DenseMap<Operation *, llvm::SetVector<StringAttr>> read;
  llvm::DenseMap<Operation *, func::FuncOp> made;
  std::string comments;
};
} // namespace

void Exporter::describe(StringRef what, unsigned number, const Twine &text) {
  comments += ("// " + what + " " + Twine(number) + ": " + text + "\n").str();
}

/// The variables that a function and those it calls read, in the order in which it meets them.
const llvm::SetVector<StringAttr> &Exporter::variablesRead(func::FuncOp function) {
  auto [known, isNew] = read.try_emplace(function);
  if (!isNew)
    return known->second;
  llvm::SetVector<StringAttr> names;
  function.walk([&](Operation *op) {
    func::FuncOp callee;
    if (auto get = dyn_cast<train::GetOp>(op))
      names.insert(get.getVariableAttr().getAttr());
    else if (auto repeat = dyn_cast<train::RepeatOp>(op))
      callee = repeat.lookupCallee(symbols);
    else if (auto call = dyn_cast<func::CallOp>(op))
      callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (callee) {
      auto inner = variablesRead(callee);
      names.insert(inner.begin(), inner.end());
    }
  });
  return read[function] = std::move(names);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

FailureOr<Results> Exporter::exportKernel(train::KernelOpInterface op, ValueRange operands,
                                          HLOBuilder &to) {
  // Decomposed in a function of its own, whose arguments stand for the operands.
  OpBuilder scratch(op.getContext());
  auto types = llvm::map_to_vector(op->getOperandTypes(), [](Type t) -> Type { return plain(t); });
  OwningOpRef<func::FuncOp> holder =
      func::FuncOp::create(scratch, op.getLoc(), "kernel", scratch.getFunctionType(types, {}));
  Block *block = holder->addEntryBlock();
  scratch.setInsertionPointToStart(block);
  IRMapping map;
  for (auto [operand, argument] : llvm::zip_equal(op->getOperands(), block->getArguments()))
    map.map(operand, argument);
  Operation *copy = scratch.clone(*op, map);
  for (OpResult value : copy->getResults())
    value.setType(plain(value.getType()));
  SmallVector<Value> values =
      train::decomposeInF32(cast<train::KernelOpInterface>(copy), scratch);
  IRMapping done;
  for (auto [argument, operand] : llvm::zip_equal(block->getArguments(), operands))
    done.map(argument, operand);
  for (Operation &inner : *block) {
    if (&inner == copy)
      continue;
    auto mapped = llvm::map_to_vector(inner.getOperands(),
                                      [&](Value value) { return done.lookup(value); });
    FailureOr<Results> exported = stablehlo::exportPrimitive(&inner, mapped, to);
    if (failed(exported))
      return op.emitOpError("has no form in StableHLO: it is made of ") << inner.getName();
    for (auto [value, out] : llvm::zip_equal(inner.getResults(), *exported))
      done.map(value, out);
  }
  return llvm::map_to_vector(values, [&](Value value) { return done.lookup(value); });
}

FailureOr<Results> Exporter::callFunction(func::FuncOp callee, ValueRange arguments,
                                          Environment &variables, HLOBuilder &to) {
  FailureOr<func::FuncOp> function = functionFor(callee);
  if (failed(function))
    return failure();
  SmallVector<Value> all(arguments);
  for (StringAttr name : variablesRead(callee))
    all.push_back(variables.lookup(name));
  auto call = func::CallOp::create(to.builder(), to.getLoc(), *function, all);
  return Results(call.getResults());
}

FailureOr<Results> Exporter::exportRepeat(train::RepeatOp op, ValueRange operands,
                                          Environment &variables, HLOBuilder &to) {
  func::FuncOp callee = op.lookupCallee(symbols);
  if (failed(functionFor(callee)))
    return failure();
  size_t carried = op.getCarry().size(), sliced = op.getEach().size();
  // Carried by the loop: the carried values, stacks, and what its body reads: slices' sources,
  // shared operands, how often it runs, variables.
  SmallVector<Value> values(operands.take_front(carried));
  for (Value stack : op.getStacks())
    values.push_back(to.splat(plain(stack.getType()), 0));
  llvm::append_range(values, operands.drop_front(carried));
  const auto &names = variablesRead(callee);
  for (StringAttr name : names)
    values.push_back(variables.lookup(name));

  size_t stacks = op.getStacks().size(), first = carried + stacks;
  std::optional<unsigned> times;
  if (op.getTimes())
    times = first + sliced + op.getShared().size();
  bool isMade = true;
  Results ends = to.loop(op.getCount(), values, [&](Value i, ValueRange in, HLOBuilder &body) {
    Value at = i;
    if (op.getReverse())
      at = body.sub(body.splat(HLOBuilder::typeOf(i), double(op.getCount()) - 1), i);
    Value zero = body.splat(HLOBuilder::typeOf(i), 0);
    auto begin = [&](Value tensor) {
      SmallVector<Value> indices(HLOBuilder::typeOf(tensor).getRank(), zero);
      indices[0] = at;
      return indices;
    };
    SmallVector<Value> arguments;
    if (op.getIndexed())
      arguments.push_back(at);
    llvm::append_range(arguments, in.take_front(carried));
    for (Value source : in.slice(first, sliced)) {
      SmallVector<int64_t> sizes(HLOBuilder::typeOf(source).getShape());
      sizes[0] = 1;
      arguments.push_back(body.reshape(body.dynamicSlice(source, begin(source), sizes),
                                       ArrayRef(sizes).drop_front()));
    }
    llvm::append_range(arguments, in.slice(first + sliced, op.getShared().size()));
    Environment inner;
    for (auto [name, value] : llvm::zip_equal(names, in.take_back(names.size())))
      inner[name] = value;
    FailureOr<Results> called = callFunction(callee, arguments, inner, body);
    if (isMade = succeeded(called); !isMade)
      return Results(in);
    Results next(ArrayRef(*called).take_front(carried));
    for (auto [stack, value] :
         llvm::zip_equal(in.slice(carried, stacks), ArrayRef(*called).drop_front(carried))) {
      SmallVector<int64_t> sizes{1};
      llvm::append_range(sizes, HLOBuilder::typeOf(value).getShape());
      SmallVector<Value> update{stack, body.reshape(value, sizes)};
      llvm::append_range(update, begin(stack));
      next.push_back(body.op("dynamic_update_slice", stack.getType(), update));
    }
    llvm::append_range(next, in.drop_front(first));
    return next;
  }, times);
  if (!isMade)
    return failure();
  ends.truncate(first);
  return ends;
}

FailureOr<Results> Exporter::exportOp(Operation *op, ValueRange operands, Environment &variables,
                                      HLOBuilder &to) {
  if (auto get = dyn_cast<train::GetOp>(op))
    return Results{variables.lookup(get.getVariableAttr().getAttr())};
  if (auto set = dyn_cast<train::SetOp>(op)) {
    variables[set.getVariableAttr().getAttr()] = operands[0];
    return Results();
  }
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    return exportRepeat(repeat, operands, variables, to);
  if (auto call = dyn_cast<func::CallOp>(op))
    return callFunction(
        symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()), operands,
        variables, to);
  if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
    // A partial sum stands for its total in a global program.
    Attribute sharding =
        shardy(op->getContext(), shardyText(shardingOf(reshard.getY().getType())));
    return Results{to.op("sdy.sharding_constraint", operands[0].getType(), operands[0],
                         b.getNamedAttr("sharding", sharding))};
  }
  for (auto attempt :
       {stablehlo::exportPrimitive, stablehlo::exportAttention, stablehlo::exportExperts})
    if (FailureOr<Results> found = attempt(op, operands, to); succeeded(found))
      return found;
  if (isa<train::ContractionOpInterface>(op) && !isa<train::ScaledContractOp>(op))
    if (FailureOr<Results> found = stablehlo::exportContraction(op, operands, to);
        succeeded(found))
      return found;
  if (auto kernel = dyn_cast<train::KernelOpInterface>(op))
    return exportKernel(kernel, operands, to);
  if (FailureOr<Results> found = stablehlo::exportCollective(op, operands, mesh, to);
      succeeded(found))
    return found;
  return op->emitOpError("has no form in StableHLO; compile without it, e.g. with --dropout 0, "
                         "--context-parallel gather --context-balance zigzag or "
                         "without a parameter server");
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> Exporter::exportBody(Block &source, ValueRange arguments,
                                                   Environment &variables, OpBuilder &to) {
  IRMapping map;
  for (auto [from, value] : llvm::zip_equal(source.getArguments(), arguments))
    map.map(from, value);
  auto lookup = [&](Value value) { return map.lookup(value); };
  for (Operation &op : source.without_terminator()) {
    HLOBuilder builder(to, op.getLoc());
    FailureOr<Results> results =
        exportOp(&op, llvm::map_to_vector(op.getOperands(), lookup), variables, builder);
    if (failed(results))
      return failure();
    for (auto [value, out] : llvm::zip_equal(op.getResults(), *results))
      map.map(value, out);
  }
  return llvm::map_to_vector(source.getTerminator()->getOperands(), lookup);
}

FailureOr<func::FuncOp> Exporter::functionFor(func::FuncOp source) {
  if (func::FuncOp known = made.lookup(source))
    return known;
  for (auto set : source.getOps<train::SetOp>())
    return set.emitOpError("is in a function that is called, which cannot write variables in "
                           "StableHLO; write the variable in @step");
  SmallVector<Type> inputs, outputs;
  for (Type type : source.getArgumentTypes())
    inputs.push_back(plain(type));
  for (Type type : source.getResultTypes())
    outputs.push_back(plain(type));
  for (StringAttr name : variablesRead(source))
    inputs.push_back(plain(
        cast<train::VariableOp>(symbols.lookupSymbolIn(module, name)).getType()));
  OpBuilder to = OpBuilder::atBlockEnd(result->getBody());
  auto function = func::FuncOp::create(to, source.getLoc(), source.getName(),
                                       b.getFunctionType(inputs, outputs));
  function.setPrivate();
  made[source] = function;
  Block *block = function.addEntryBlock();
  Environment variables;
  size_t own = source.getNumArguments();
  for (auto [name, value] :
       llvm::zip_equal(variablesRead(source), block->getArguments().drop_front(own)))
    variables[name] = value;
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  FailureOr<SmallVector<Value>> values =
      exportBody(source.getBody().front(), block->getArguments().take_front(own), variables, inner);
  if (failed(values))
    return failure();
  func::ReturnOp::create(inner, source.getLoc(), *values);
  return function;
}

LogicalResult Exporter::addMain(func::FuncOp step) {
  SmallVector<train::VariableOp> list(module.getOps<train::VariableOp>());
  SmallVector<Type> inputs, outputs;
  SmallVector<dist::ShardingAttr> ofInputs, ofOutputs;
  auto addInput = [&](Type type) {
    inputs.push_back(plain(type));
    ofInputs.push_back(shardingOf(type));
  };
  auto addOutput = [&](Type type) {
    outputs.push_back(plain(type));
    ofOutputs.push_back(shardingOf(type));
  };
  auto textOf = [](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };
  for (train::VariableOp variable : list) {
    std::string text;
    llvm::raw_string_ostream os(text);
    variable->print(os);
    describe("argument", inputs.size(), text);
    describe("result", outputs.size(), "@" + variable.getSymName());
    addInput(variable.getType());
    addOutput(variable.getType());
  }
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    StringRef name = train::inputName(step, i);
    Type type = step.getArgumentTypes()[i];
    describe("argument", inputs.size(),
             "input " + (name.empty() ? "?" : name) + " : " + textOf(type));
    addInput(type);
  }
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    StringRef name = train::outputName(step, i);
    Type type = step.getResultTypes()[i];
    describe("result", outputs.size(),
             "output " + (name.empty() ? "?" : name) + " : " + textOf(type));
    addOutput(type);
  }
  OpBuilder to = OpBuilder::atBlockEnd(result->getBody());
  auto main = func::FuncOp::create(to, step.getLoc(), "main", b.getFunctionType(inputs, outputs));
  for (auto [i, sharding] : llvm::enumerate(ofInputs))
    if (sharding)
      main.setArgAttr(i, "sdy.sharding", shardy(module.getContext(), shardyText(sharding)));
  for (auto [i, sharding] : llvm::enumerate(ofOutputs))
    if (sharding)
      main.setResultAttr(i, "sdy.sharding", shardy(module.getContext(), shardyText(sharding)));
  Block *block = main.addEntryBlock();
  Environment variables;
  for (auto [variable, value] : llvm::zip(list, block->getArguments()))
    variables[variable.getSymNameAttr()] = value;
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  FailureOr<SmallVector<Value>> values =
      exportBody(step.getBody().front(), block->getArguments().drop_front(list.size()), variables,
                 inner);
  if (failed(values))
    return failure();
  SmallVector<Value> returned;
  for (train::VariableOp variable : list)
    returned.push_back(variables.lookup(variable.getSymNameAttr()));
  llvm::append_range(returned, *values);
  func::ReturnOp::create(inner, step.getLoc(), returned);
  return success();
}

FailureOr<std::string> Exporter::run() {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step)
    return module.emitError("has no function @step to write as StableHLO; phases step, dist and "
                            "local have");
  auto phase = module->getAttrOfType<StringAttr>("meshwright.phase");
  for (auto op : module.getOps<dist::MeshOp>())
    if (phase && phase == "local" && op.getMesh().size(op.getMesh().named("pipe")) > 1)
      return module.emitError("pipeline stages are programs of their own, which StableHLO's "
                              "replicas are not; leave the mesh axis 'pipe' out");
  result = ModuleOp::create(module.getLoc());
  for (auto op : module.getOps<dist::MeshOp>()) {
    mesh = op.getMesh();
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "mesh<[";
    llvm::interleaveComma(mesh.axes, os, [&](const dist::MeshAxis &axis) {
      os << "\"" << axis.name << "\"=" << axis.size;
    });
    os << "]>";
    OpBuilder to = OpBuilder::atBlockEnd(result->getBody());
    HLOBuilder(to, op.getLoc())
        .create("sdy.mesh", {}, {},
                {b.getNamedAttr("mesh", shardy(module.getContext(), text)),
                 b.getNamedAttr("sym_name", op.getSymNameAttr())});
  }
  if (failed(addMain(step)))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << comments;
  result->print(os, OpPrintingFlags().printGenericOpForm());
  os << "\n";
  return text;
}

FailureOr<std::string> stablehlo::exportStep(ModuleOp module) {
  // Ops and attributes of dialects that are not there, while they are written.
  MLIRContext *context = module.getContext();
  bool before = context->allowsUnregisteredDialects();
  context->allowUnregisteredDialects(true);
  auto restore = llvm::scope_exit([&] { context->allowUnregisteredDialects(before); });
  return Exporter(module).run();
}
