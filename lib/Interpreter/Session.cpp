//===- Session.cpp - running a module on global tensors ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Session.h"

#include "Dist/Programs.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static constexpr StringLiteral globalAttr = dist::DistDialect::globalAttr;

bool interp::isPartitioned(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (isa<InterpretableCollectiveOpInterface>(op) || op->hasAttr(globalAttr))
      return WalkResult::interrupt();
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (function.getArgAttr(i, globalAttr))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

FailureOr<Session> Session::create(ModuleOp module, int64_t ranks, Precision precision) {
  dist::Mesh mesh;
  int64_t needed = 1;
  if (failed(dist::verifyPrograms(module)))
    return failure();
  if (isPartitioned(module)) {
    dist::MeshOp meshOp = dist::lookupMesh(module);
    if (!meshOp)
      return failure();
    mesh = meshOp.getMesh();
    needed = mesh.size();
    if (ranks != 0 && ranks != needed)
      return meshOp.emitError() << "has " << needed << " devices, but --ranks says " << ranks;
  }
  return Session(module, std::make_unique<Interpreter>(module, needed, precision), mesh);
}

Session::Session(ModuleOp module, std::unique_ptr<Interpreter> runs, dist::Mesh mesh)
    : op(module), interpreter(std::move(runs)), mesh(std::move(mesh)) {
  for (int64_t rank = 0; rank < ranks(); ++rank)
    programs.push_back(*llvm::find_if(dist::programsOf(op), [&](ModuleOp program) {
      return dist::runsOn(program, this->mesh, rank);
    }));
}

FunctionOpInterface Session::lookup(StringRef name) const {
  ModuleOp program = programs[0];
  if (auto function = program.lookupSymbol<FunctionOpInterface>(name))
    return function;
  std::string names;
  for (auto function : program.getOps<FunctionOpInterface>())
    names += " @" + cast<SymbolOpInterface>(*function).getName().str();
  program.emitError() << "there is no function @" << name << "; there are:" << names;
  return nullptr;
}

SmallVector<train::VariableOp> Session::variables() const {
  SmallVector<train::VariableOp> all;
  llvm::StringSet<> names;
  for (ModuleOp program : dist::programsOf(op))
    for (auto variable : program.getOps<train::VariableOp>())
      if (names.insert(variable.getSymName()).second)
        all.push_back(variable);
  return all;
}

bool Session::has(int64_t rank, train::VariableOp variable) const {
  return programs[rank].lookupSymbol<train::VariableOp>(variable.getSymName()) != nullptr;
}

//===--- names and types ------------------------------------------------------===//

static RankedTensorType typeOr(Attribute global, Type local) {
  if (auto attr = dyn_cast_or_null<TypeAttr>(global))
    return cast<RankedTensorType>(attr.getValue());
  return cast<RankedTensorType>(local);
}

/// As files and users know it.
RankedTensorType Session::globalType(train::VariableOp variable) const {
  if (Attribute logical = variable->getAttr(dist::DistDialect::logicalAttr))
    return typeOr(logical, variable.getTensorType());
  return typeOr(variable->getAttr(globalAttr), variable.getTensorType());
}

RankedTensorType Session::globalArgument(FunctionOpInterface function, unsigned i) const {
  return typeOr(function.getArgAttr(i, globalAttr), function.getArgumentTypes()[i]);
}

int64_t Session::partsOfArgument(FunctionOpInterface function, unsigned i, unsigned dim) const {
  dist::ShardingAttr sharding = dist::shardingOf(globalArgument(function, i));
  return sharding && ranks() > 1 ? mesh.size(sharding.on(mesh).dims[dim]) : 1;
}

std::string Session::argumentName(FunctionOpInterface function, unsigned i) {
  if (StringRef name = train::inputName(function, i); !name.empty())
    return name.str();
  return "arg" + std::to_string(i);
}

std::string Session::resultName(FunctionOpInterface function, unsigned i) {
  if (StringRef name = train::outputName(function, i); !name.empty())
    return name.str();
  if (auto of = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::gradientAttr))
    return "gradient of @" + of.getValue().str();
  return "result" + std::to_string(i);
}

//===--- global to local and back ---------------------------------------------===//

/// Each rank's part: copies where nothing says otherwise.
TensorList Session::scatter(const Tensor &global, Attribute globalType) const {
  auto type = dyn_cast_or_null<TypeAttr>(globalType);
  dist::ShardingAttr attr = type ? dist::shardingOf(type.getValue()) : dist::ShardingAttr();
  TensorList parts(ranks(), global);
  if (!attr)
    return parts;
  dist::Sharding sharding = attr.on(mesh);
  for (int64_t rank = 0; rank < ranks(); ++rank)
    parts[rank] = global.box(dist::localOffset(global.shape(), sharding, mesh, rank),
                             dist::localShape(global.shape(), sharding, mesh));
  return parts;
}

/// The global tensor; devices that should hold the same part must agree. Ranks
/// without a part are of other programs.
FailureOr<Tensor> Session::gather(ArrayRef<Tensor> parts, Attribute globalType, Operation *at,
                                  StringRef what) const {
  auto type = dyn_cast_or_null<TypeAttr>(globalType);
  dist::ShardingAttr attr = type ? dist::shardingOf(type.getValue()) : dist::ShardingAttr();
  dist::Sharding sharding = attr ? attr.on(mesh) : dist::Sharding();
  const Tensor &some = *llvm::find_if(parts, [](const Tensor &part) { return bool(part); });
  if (!attr)
    sharding = dist::Sharding::replicated(some.rank());
  Tensor whole(type ? type.getValue() : Type(some.type()));
  if (sharding.partial.empty()) {
    for (int64_t rank = 0; rank < ranks(); ++rank)
      if (parts[rank] && sharding.isOn(rank, mesh))
        whole.setBox(dist::localOffset(whole.shape(), sharding, mesh, rank), parts[rank]);
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      if (!parts[rank] || !sharding.isOn(rank, mesh))
        continue;
      SmallVector<int64_t> offset = dist::localOffset(whole.shape(), sharding, mesh, rank);
      Difference apart = difference(parts[rank], whole.box(offset, parts[rank].shape()));
      if (!apart.finite || apart.relative > 1e-6)
        return at->emitError() << what << " on rank " << rank
                               << " differs from other ranks' copy of the same elements by "
                               << apart.relative << " (relative)";
    }
    return whole;
  }
  // One term from each coordinate along the partial axes; the first copy of it.
  llvm::DenseSet<std::pair<int64_t, int64_t>> seen;
  dist::Axes sharded;
  for (const dist::Axes &axes : sharding.dims)
    llvm::append_range(sharded, axes);
  if (sharding.max)
    std::fill_n(whole.writeFloats(), whole.size(), -INFINITY);
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    if (!sharding.isOn(rank, mesh) ||
        !seen.insert({mesh.position(rank, sharding.partial), mesh.position(rank, sharded)}).second)
      continue;
    SmallVector<int64_t> offset = dist::localOffset(whole.shape(), sharding, mesh, rank);
    Tensor sum = whole.box(offset, parts[rank].shape());
    double *out = sum.writeFloats();
    for (auto [i, value] : llvm::enumerate(parts[rank].floats()))
      out[i] = sharding.max ? std::max(out[i], value) : out[i] + value;
    whole.setBox(offset, sum);
  }
  return whole;
}

void Session::setVariable(train::VariableOp variable, const Tensor &global) {
  // Padding is zero.
  Attribute type = variable->getAttr(globalAttr);
  SmallVector<int64_t> offsets(global.rank(), 0);
  Tensor padded = global.box(offsets, typeOr(type, variable.getTensorType()).getShape());
  for (auto [rank, part] : llvm::enumerate(scatter(padded, type)))
    if (has(rank, variable))
      interpreter->state(rank)[variable.getSymName()] = part;
}

FailureOr<Tensor> Session::getVariable(train::VariableOp variable) const {
  TensorList parts;
  for (int64_t rank = 0; rank < ranks(); ++rank)
    parts.push_back(interpreter->state(rank).lookup(variable.getSymName()));
  if (llvm::none_of(parts, [](const Tensor &part) { return bool(part); }))
    return variable.emitError("has no value");
  FailureOr<Tensor> padded =
      gather(parts, variable->getAttr(globalAttr), variable, "the variable");
  if (failed(padded))
    return failure();
  ArrayRef<int64_t> shape = globalType(variable).getShape();
  SmallVector<int64_t> offsets(shape.size(), 0);
  Tensor value = padded->box(offsets, shape);
  if (Tensor again = value.box(offsets, padded->shape()); difference(again, *padded).largest != 0)
    return variable.emitError("has padding that is not zero");
  return value;
}

LogicalResult Session::run(FunctionOpInterface function, ArrayRef<Tensor> arguments,
                           TensorList &results) {
  SmallVector<TensorList> perRank(ranks()), produced;
  for (auto [i, argument] : llvm::enumerate(arguments))
    for (auto [rank, part] : llvm::enumerate(scatter(argument, function.getArgAttr(i, globalAttr))))
      perRank[rank].push_back(part);
  SmallVector<FunctionOpInterface> functions;
  for (ModuleOp program : programs) {
    auto own = program.lookupSymbol<FunctionOpInterface>(
        cast<SymbolOpInterface>(*function).getName());
    if (!own || own.getFunctionType() != function.getFunctionType())
      return (own ? own.getOperation() : program.getOperation())
                 ->emitError("expected ")
             << cast<SymbolOpInterface>(*function).getNameAttr() << " of type "
             << function.getFunctionType() << " in every program";
    functions.push_back(own);
  }
  if (failed(interpreter->run(functions, perRank, produced)))
    return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    TensorList parts;
    for (const TensorList &list : produced)
      parts.push_back(list[i]);
    FailureOr<Tensor> whole =
        gather(parts, function.getResultAttr(i, globalAttr), function, resultName(function, i));
    if (failed(whole))
      return failure();
    results.push_back(*whole);
  }
  return success();
}
