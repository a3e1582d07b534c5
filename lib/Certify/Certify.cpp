//===- Certify.cpp - proves that a rank's program computes the global graph --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Certify.h"

#include "Certify/Stages.h"
#include "Dist/Dist.h"
#include "Train/Train.h"
#include "meshwright/Phase.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"

#include <chrono>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
/// One check of two modules.
class Certifier {
public:
  Certifier(ModuleOp global, ModuleOp local)
      : before(proof, global, Mesh()), global(global), local(local) {}

  LogicalResult run(const Mesh &mesh, Certificate &certificate);

private:
  LogicalResult readVariables();
  LogicalResult readVariables(Checker &after);
  LogicalResult readInputs(func::FuncOp of, func::FuncOp by, Checker &after,
                           SmallVectorImpl<Fact> &expected, SmallVectorImpl<Fact> &found);
  LogicalResult compareResults(func::FuncOp of, func::FuncOp by, Checker &after, Facts expected,
                               Facts found);
  LogicalResult compareState(func::FuncOp of, func::FuncOp by, Checker &after);
  LogicalResult compareFunction(func::FuncOp of, Certificate &certificate);
  /// Says where the two programs first differ.
  InFlightDiagnostic differ(Operation *at, const llvm::Twine &what, const Expression *expected,
                            const Expression *found);

  /// How the program holds a value of type `type`, by the attribute `dist.global`, and of variables
  /// that are padded with zeros `dist.logical`.
  FailureOr<Distribution> held(Operation *op, Checker &after, Type local, Attribute global,
                               Type expected, Attribute logical = {});

  Proof proof;
  Checker before;
  Programs programs;
  ModuleOp global, local;
  llvm::MapVector<StringRef, Fact> initialBefore;
  std::map<const Checker *, llvm::MapVector<StringRef, Fact>> initialAfter; ///< of each program
  unsigned firstOfLocal = 0;
};
} // namespace

static uint64_t hashOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return llvm::xxh3_64bits(text);
}

FailureOr<Distribution> Certifier::held(Operation *op, Checker &after, Type type,
                                        Attribute attribute, Type expected, Attribute logical) {
  auto global = RankedTensorType();
  if (auto typed = dyn_cast_or_null<TypeAttr>(attribute))
    global = dyn_cast<RankedTensorType>(typed.getValue());
  auto known = dyn_cast<RankedTensorType>(expected), part = dyn_cast<RankedTensorType>(type);
  if (!known || !part || known.getRank() != part.getRank() || !known.hasStaticShape() ||
      !part.hasStaticShape())
    return emitError(op->getLoc())
           << "not proved: a value of type " << type << " is no part of one of type " << expected;
  if (!global) {
    if (part != known)
      return emitError(op->getLoc()) << "not proved: a value of type " << part
                                     << " says nothing of its global type, " << known;
    return Distribution::replicated(known.getShape());
  }
  if (logical && logical != TypeAttr::get(known))
    return emitError(op->getLoc())
           << "not proved: dist.logical is " << logical << ", but the global graph has " << known;
  Distribution result = Distribution::replicated(global.getShape());
  bool isLarger = global.getRank() == known.getRank();
  for (int64_t dim = 0; isLarger && dim < result.rank(); ++dim) {
    isLarger = global.getDimSize(dim) >= known.getDimSize(dim);
    if (logical && global.getDimSize(dim) > known.getDimSize(dim))
      result.padding[dim] = {known.getDimSize(dim), 0.0, false};
  }
  if (!isLarger || result.expressionShape() != known.getShape() ||
      global.getElementType() != known.getElementType() ||
      part.getElementType() != known.getElementType())
    return emitError(op->getLoc())
           << "not proved: dist.global is " << global << ", but the global graph has " << known;
  if (auto sharding = dist::shardingOf(global)) {
    dist::Sharding on = sharding.on(after.mesh);
    if (!on.partial.empty())
      return emitError(op->getLoc())
             << "not proved: dist.global is partial, for which there is no rule";
    result.root = after.without1(on.root);
    llvm::sort(result.root);
    for (auto [axes, dim] : llvm::zip(result.dims, on.dims)) {
      axes = after.without1(dim);
      after.sharding.insert(axes.begin(), axes.end());
    }
    if (after.fixed && on.uses(*after.fixed))
      return emitError(op->getLoc()) << "not proved: dist.global is divided along "
                                     << after.mesh.str({*after.fixed}) << ", in a stage's program";
  }
  for (int64_t dim = 0; dim < result.rank(); ++dim)
    if (result.shape[dim] % after.mesh.size(result.dims[dim]) ||
        result.localExtent(dim, after.mesh) != part.getDimSize(dim))
      return emitError(op->getLoc()) << "not proved: " << part << " is no part of " << global;
  return result;
}

/// Each variable of the global graph must be one of a program, and several stages may have it.
LogicalResult Certifier::readVariables() {
  for (auto &program : programs.all)
    if (failed(readVariables(*program)))
      return failure();
  unsigned count = llvm::range_size(global.getOps<train::VariableOp>());
  if (count != initialBefore.size())
    return emitError(local.getLoc()) << "not proved: the global graph has " << count
                                     << " variables, the program " << initialBefore.size();
  return success();
}

LogicalResult Certifier::readVariables(Checker &after) {
  llvm::StringMap<train::VariableOp> variables;
  for (auto variable : global.getOps<train::VariableOp>())
    variables[variable.getSymName()] = variable;
  for (auto variable : after.module.getOps<train::VariableOp>()) {
    auto found = variables.find(variable.getSymName());
    if (found == variables.end())
      return after.refuse(variable)
             << "@" << variable.getSymName() << " is no variable of the global graph";
    train::VariableOp original = found->second;
    if (variable.getStacked() != original.getStacked() ||
        variable.getInit() != original.getInit() ||
        variable.getStorageAttr() != original.getStorageAttr() ||
        variable.getOfAttr() != original.getOfAttr() ||
        variable.getExpertsAttr() != original.getExpertsAttr() ||
        variable.getRoleAttr() != original.getRoleAttr())
      return after.refuse(variable)
             << "@" << variable.getSymName() << " starts otherwise than in the global graph";
    auto type =
        held(variable, after, variable.getTensorType(), variable->getAttr(dist::DistDialect::globalAttr),
             original.getTensorType(), variable->getAttr(dist::DistDialect::logicalAttr));
    if (failed(type))
      return failure();
    for (auto &[dim, padding] : type->padding)
      proof.padded.insert({type->shape[dim], padding.logical});
    const Expression *expression =
        before.make(original.getLoc(), "variable", original.getSymNameAttr(), {},
                    original.getTensorType().getElementType(), original.getTensorType().getShape());
    initialBefore[original.getSymName()] = {expression,
                                            Distribution::replicated(expression->shape)};
    initialAfter[&after][variable.getSymName()] = {expression, *type};
  }
  return success();
}

InFlightDiagnostic Certifier::differ(Operation *at, const llvm::Twine &what,
                                     const Expression *expected, const Expression *found) {
  // The oldest expression that only the program has, of those that the value is made of.
  std::set<unsigned> seen;
  SmallVector<const Expression *> work = {found};
  const Expression *first = nullptr;
  while (!work.empty()) {
    const Expression *expression = work.pop_back_val();
    if (!seen.insert(expression->number).second || expression->number < firstOfLocal)
      continue;
    if (!first || expression->number < first->number)
      first = expression;
    llvm::append_range(work, expression->operands);
  }
  if (first)
    return emitError(first->location)
           << "not proved: " << first->name
           << " makes a value that the global graph does not have, of which " << what << " is made";
  // All that it is made of is in the global graph, but put together otherwise.
  while (expected->name == found->name && expected->attributes == found->attributes &&
         expected->result == found->result && expected->operands.size() == found->operands.size()) {
    auto differ = llvm::find_if(llvm::zip(expected->operands, found->operands),
                                [](auto pair) { return std::get<0>(pair) != std::get<1>(pair); });
    std::tie(expected, found) = *differ;
  }
  return emitError(at->getLoc()) << "not proved: " << what << " is made of a value of "
                                 << found->name << " where the global graph has one of "
                                 << expected->name;
}

LogicalResult Certifier::compareResults(func::FuncOp of, func::FuncOp by, Checker &program,
                                        Facts expected, Facts found) {
  Operation *end = by.getBody().front().getTerminator();
  for (unsigned index = 0; index < found.size(); ++index) {
    StringRef name = train::outputName(by, index);
    if (name != train::outputName(of, index))
      return emitError(end->getLoc())
             << "not proved: result " << index << " of @" << by.getSymName() << " is '" << name
             << "', but in the global graph '" << train::outputName(of, index) << "'";
    std::string what = ("result " + llvm::Twine(index) + (name.empty() ? "" : " '" + name + "'") +
                        " of @" + by.getSymName())
                           .str();
    auto type =
        held(by, program, by.getResultTypes()[index], by.getResultAttr(index, dist::DistDialect::globalAttr),
             of.getResultTypes()[index]);
    if (failed(type))
      return failure();
    if (!type->root.empty())
      return emitError(end->getLoc()) << "not proved: " << what << " is on the first device along "
                                      << program.mesh.str(type->root) << " alone";
    Fact before = expected[index], after = found[index];
    pin(before, of.getBody().front().getTerminator()->getOperand(index), this->before);
    pin(after, end->getOperand(index), program);
    if (before.type != Distribution::replicated(before.type.expressionShape()))
      return emitError(of.getLoc()) << "not proved: " << what << " is "
                                    << before.type.str(this->before.mesh) << " in the global graph";
    if (after.offset || after.type != *type)
      return emitError(end->getLoc())
             << "not proved: " << what << " is " << after.type.str(program.mesh)
             << ", but should be " << type->str(program.mesh);
    if (before.expression != after.expression)
      return differ(end, what, before.expression, after.expression);
  }
  return success();
}

/// The last write of a variable.
static train::SetOp lastWrite(func::FuncOp function, StringRef name) {
  train::SetOp last;
  function.walk([&](train::SetOp set) {
    if (set.getVariable() == name)
      last = set;
  });
  return last;
}

LogicalResult Certifier::compareState(func::FuncOp of, func::FuncOp by, Checker &after) {
  for (auto &[name, fact] : after.state) {
    Fact expected = before.state.lookup(name), found = fact;
    train::SetOp write = lastWrite(by, name), original = lastWrite(of, name);
    if (write)
      pin(found, write.getValue(), after);
    if (original)
      pin(expected, original.getValue(), before);
    Operation *at = write ? write.getOperation() : by.getOperation();
    std::string what = ("@" + name + " after @" + by.getSymName()).str();
    const Distribution &type = initialAfter[&after].find(name)->second.type;
    if (expected.type != Distribution::replicated(expected.type.expressionShape()))
      return emitError(of.getLoc()) << "not proved: " << what << " is " << expected.type.str(before.mesh)
                                    << " in the global graph";
    if (found.offset || found.type != type)
      return emitError(at->getLoc())
             << "not proved: " << what << " is " << found.type.str(after.mesh)
             << ", but is kept as " << type.str(after.mesh);
    if (expected.expression != found.expression)
      return differ(at, what, expected.expression, found.expression);
  }
  return success();
}

LogicalResult Certifier::readInputs(func::FuncOp of, func::FuncOp by, Checker &after,
                                    SmallVectorImpl<Fact> &expected, SmallVectorImpl<Fact> &found) {
  if (of.getNumArguments() != by.getNumArguments() || of.getNumResults() != by.getNumResults())
    return emitError(by.getLoc())
           << "not proved: @" << by.getSymName()
           << " has other numbers of inputs or outputs than in the global graph";
  for (unsigned index = 0; index < of.getNumArguments(); ++index) {
    if (train::inputName(of, index) != train::inputName(by, index))
      return emitError(by.getLoc())
             << "not proved: input " << index << " of @" << by.getSymName() << " is '"
             << train::inputName(by, index) << "', but in the global graph '"
             << train::inputName(of, index) << "'";
    auto type = dyn_cast<RankedTensorType>(of.getArgumentTypes()[index]);
    if (!type || !type.hasStaticShape())
      return emitError(of.getLoc()) << "not proved: input " << index << " of @" << of.getSymName()
                                    << " is no tensor of static shape";
    const Expression *input =
        before.make(of.getArgument(index).getLoc(), "input", Builder(of).getI64IntegerAttr(index),
                    {}, type.getElementType(), type.getShape());
    auto part = held(by, after, by.getArgumentTypes()[index],
                     by.getArgAttr(index, dist::DistDialect::globalAttr), type);
    if (failed(part))
      return failure();
    for (int64_t dim = 0, front = part->rank() - 2; front >= 0 && dim < 2; ++dim)
      for (unsigned axis : part->dims[front + dim])
        after.batch.insert({axis, dim});
    if (StringRef name = train::inputName(of, index); name == "eps")
      after.proof.notNegative.insert(input);
    else if (name.starts_with("beta"))
      after.proof.weights.insert(input);
    expected.push_back({input, Distribution::replicated(type.getShape())});
    found.push_back({input, *part});
  }
  return success();
}

LogicalResult Certifier::compareFunction(func::FuncOp of, Certificate &certificate) {
  FactList inputs, expected;
  std::vector<FactList> parts, found;
  proof.notNegative.clear();
  proof.weights.clear();
  SmallVector<func::FuncOp> functions;
  for (auto &program : programs.all) {
    auto by = SymbolTable(program->module).lookup<func::FuncOp>(of.getSymName());
    if (!by)
      return emitError(program->module.getLoc())
             << "not proved: the program has no @" << of.getSymName();
    functions.push_back(by);
    inputs.clear();
    if (failed(readInputs(of, by, *program, inputs, parts.emplace_back())))
      return failure();
    program->state = initialAfter[program.get()];
  }
  before.state = initialBefore;
  proof.globals = 0;
  if (failed(before.run(of, inputs, expected)))
    return failure();
  proof.globals = firstOfLocal = proof.expressions.size();
  proof.ops = 0;
  if (failed(programs.run(of.getSymName(), parts, found)))
    return failure();
  for (auto [program, by, results] : llvm::zip_equal(programs.all, functions, found))
    if (failed(compareResults(of, by, *program, expected, results)) ||
        failed(compareState(of, by, *program)))
      return failure();
  // What the next function has of its own is not of the global graph either.
  proof.expressions.shrink(firstOfLocal);
  ++certificate.functions;
  certificate.outputs += expected.size();
  certificate.localOps += proof.ops;
  return success();
}

/// Programs are the functions that are not private: a step, and an evaluation.
LogicalResult Certifier::run(const Mesh &mesh, Certificate &certificate) {
  auto found = Programs::of(local, mesh, proof);
  if (failed(found))
    return failure();
  programs = std::move(*found);
  before.unrolls = programs.all.size() > 1;
  if (failed(readVariables()))
    return failure();
  SymbolTable globals(global);
  for (auto of : global.getOps<func::FuncOp>())
    if (!of.isPrivate() && failed(compareFunction(of, certificate)))
      return failure();
  for (auto &program : programs.all)
    for (auto by : program->module.getOps<func::FuncOp>())
      if (auto of = globals.lookup<func::FuncOp>(by.getSymName());
          !by.isPrivate() && (!of || of.isPrivate()))
        return emitError(by.getLoc())
               << "not proved: the global graph has no program @" << by.getSymName();
  if (!certificate.functions)
    return emitError(global.getLoc()) << "not proved: the global graph has no program";
  certificate.programs = programs.all.size();
  certificate.variables = initialBefore.size();
  certificate.kernels = proof.kernels;
  certificate.rewrites = proof.rewrites;
  return success();
}

FailureOr<Certificate> certify::certify(ModuleOp global, ModuleOp local) {
  auto begin = std::chrono::steady_clock::now();
  dist::MeshOp meshOp = dist::lookupMesh(local);
  if (!meshOp)
    return failure();
  Mesh mesh = meshOp.getMesh();
  Certificate certificate;
  if (auto phase = local->getAttrOfType<StringAttr>(phaseAttr))
    certificate.phase = phase.getValue();
  llvm::raw_string_ostream name(certificate.mesh);
  llvm::interleave(
      mesh.axes, name, [&](const dist::MeshAxis &axis) { name << axis.name << "=" << axis.size; },
      ",");
  certificate.globalHash = hashOf(global);
  certificate.localHash = hashOf(local);
  if (failed(Certifier(global, local).run(mesh, certificate)))
    return failure();
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return certificate;
}

void certify::print(const Certificate &certificate, llvm::raw_ostream &os) {
  os << "proved: on mesh " << (certificate.mesh.empty() ? "of one rank" : certificate.mesh)
     << ", all ranks together compute " << certificate.outputs
     << (certificate.outputs == 1 ? " output" : " outputs") << " and the next "
     << (certificate.variables == 1
             ? "value of 1 variable"
             : "values of " + std::to_string(certificate.variables) + " variables")
     << " of the global graph\n"
     << "  global graph        " << llvm::format_hex(certificate.globalHash, 18) << "\n"
     << "  program of a rank   " << llvm::format_hex(certificate.localHash, 18)
     << (certificate.phase.empty() ? "" : " at phase " + certificate.phase) << "\n"
     << "  programs            " << certificate.functions
     << (certificate.programs > 1 ? " of " + std::to_string(certificate.programs) + " stages" : "")
     << ", " << certificate.localOps
     << " ops checked\n";
  if (certificate.seconds)
    os << "  seconds             " << llvm::format("%.3f", *certificate.seconds) << "\n";
  os << "algebra used:\n";
  for (const std::string &rewrite : certificate.rewrites)
    os << "  " << rewrite << "\n";
  os << "assumed, not proved:\n"
     << "  numbers are real: rounding, overflow and the order of sums are not considered\n"
     << (certificate.kernels.count("train.update") ? "  an optimizer's eps is above 0\n" : "")
     << "  ranks begin with the parts of inputs and variables that dist.global says, and padding "
        "of 0\n"
     << "  passes behind this phase, code generation and the runtime keep what the program computes\n"
     << "  on one device, each op computes its definition (tested, docs/ops-train.md):";
  unsigned column = 200;
  for (StringRef kernel : certificate.kernels) {
    if (column + kernel.size() > 100) {
      os << "\n   ";
      column = 3;
    }
    os << " " << kernel;
    column += kernel.size() + 1;
  }
  os << "\n";
}
