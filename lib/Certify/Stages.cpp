//===- Stages.cpp - programs of pipeline stages, run together ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Stages.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

FailureOr<Programs> Programs::of(ModuleOp module, const Mesh &mesh, Proof &proof) {
  Programs programs;
  if (!dist::hasPrograms(module)) {
    programs.all.push_back(std::make_unique<Checker>(proof, module, mesh));
    return programs;
  }
  if (auto functions = module.getOps<func::FuncOp>(); !functions.empty())
    return emitError((*functions.begin()).getLoc())
           << "not proved: @" << (*functions.begin()).getSymName() << " is in no stage's program";
  std::map<int64_t, ModuleOp> byCoordinate;
  for (ModuleOp program : dist::programsOf(module)) {
    auto coordinates = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr);
    int number = coordinates && coordinates.size() == 1
                     ? mesh.find(coordinates.begin()->getName().getValue())
                     : -1;
    SmallVector<int64_t> at;
    if (number >= 0)
      at = dist::coordinatesOf(coordinates.begin()->getValue());
    if (at.size() != 1 || (programs.axis && *programs.axis != unsigned(number)) ||
        !byCoordinate.insert({at[0], program}).second)
      return emitError(program.getLoc())
             << "not proved: @" << program.getName().value_or("")
             << " is no program of one stage, and for others there is no rule";
    programs.axis = number;
  }
  int64_t count = 0;
  for (auto [coordinate, program] : byCoordinate) {
    dist::MeshOp own = dist::lookupMesh(program);
    auto isLike = [](const dist::MeshAxis &a, const dist::MeshAxis &b) {
      return a.name == b.name && a.size == b.size;
    };
    if (coordinate != count++ || !own || !llvm::equal(own.getMesh().axes, mesh.axes, isLike))
      return emitError(program.getLoc()) << "not proved: @" << program.getName().value_or("")
                                         << " is no stage of the mesh";
    programs.all.push_back(std::make_unique<Checker>(proof, program, own.getMesh()));
    programs.all.back()->fixed = programs.axis;
  }
  if (count != mesh.axes[*programs.axis].size)
    return emitError(module.getLoc()) << "not proved: there are " << count << " stages on "
                                      << mesh.axes[*programs.axis].size << " coordinates";
  return programs;
}

/// Whether an op communicates along the axis of stages.
static dist::GroupAttr groupAlong(std::optional<unsigned> axis, Operation &op,
                                  const Mesh &mesh) {
  auto group = op.getAttrOfType<dist::GroupAttr>("group");
  return group && axis && llvm::is_contained(group.on(mesh), *axis) ? group : dist::GroupAttr();
}

FailureOr<Fact> Programs::leaving(unsigned number, unsigned operand) {
  Stage &stage = stages[number];
  Operation *op = &*stage.at;
  Fact fact = stage.facts.lookup(op->getOperand(operand));
  settle(fact, *stage.checker);
  if (fact.offset || fact.type.hasParts() || fact.type.isDiagonal() || fact.type.rows ||
      !fact.type.root.empty())
    return stage.checker->refuse(op) << "sends " << Checker::nameOf(op, operand) << ", "
                                     << fact.type.str(stage.checker->mesh) << ", to another stage";
  return fact;
}

LogicalResult Programs::send(unsigned number) {
  Stage &stage = stages[number];
  auto op = cast<dist::SendOp>(*stage.at);
  auto fact = leaving(number, 0);
  if (failed(fact))
    return failure();
  if (op.getGroup().on(stage.checker->mesh) != Axes{*axis} || op.getTo() >= stages.size() ||
      op.getTo() == number)
    return stage.checker->refuse(op) << "sends to no other stage";
  messages[{op.getChannel(), number, op.getTo()}].push_back({op.getX().getType(), *fact});
  return success();
}

FailureOr<bool> Programs::receive(unsigned number) {
  Stage &stage = stages[number];
  auto op = cast<dist::RecvOp>(*stage.at);
  if (op.getGroup().on(stage.checker->mesh) != Axes{*axis})
    return stage.checker->refuse(op) << "receives from no stage";
  auto &queue = messages[{op.getChannel(), op.getFrom(), number}];
  if (queue.empty())
    return false;
  if (queue.front().type != op.getType())
    return stage.checker->refuse(op) << "receives " << op.getType() << ", where stage "
                                     << int64_t(op.getFrom()) << " sends " << queue.front().type;
  FactList fact = {queue.front().fact};
  queue.pop_front();
  if (failed(stage.checker->assign(*op, fact, stage.facts)))
    return failure();
  return true;
}

FailureOr<bool> Programs::advance(unsigned number) {
  Stage &stage = stages[number];
  bool isSomething = false;
  for (; !stage.isDone(); ++stage.at, isSomething = true) {
    Operation &op = *stage.at;
    if (isa<dist::RecvOp>(op)) {
      auto received = receive(number);
      if (failed(received))
        return failure();
      if (!*received)
        break;
    } else if (isa<dist::SendOp>(op)) {
      if (failed(send(number)))
        return failure();
    } else if (groupAlong(axis, op, stage.checker->mesh)) {
      break;
    } else if (failed(stage.checker->evaluate(op, stage.facts))) {
      return failure();
    }
  }
  return isSomething;
}

/// A sum of copies is copies of the sum.
static const Expression *sumOfTerms(Operands terms, const Fact &like, Location location,
                                    Checker &checker) {
  const Expression *first = terms[0];
  bool areCopies = llvm::all_of(terms, [&](const Expression *term) {
    return term->name == train::BroadcastOp::getOperationName() &&
           term->attributes == first->attributes &&
           term->operands[0]->shape == first->operands[0]->shape;
  });
  if (!areCopies || terms.size() == 1)
    return checker.sum(location, terms, like.expression->element, like.type.expressionShape());
  auto copied = llvm::map_to_vector(terms, [](const Expression *term) { return term->operands[0]; });
  const Expression *sum =
      checker.sum(location, copied, first->operands[0]->element, first->operands[0]->shape);
  return checker.make(location, first->name, first->attributes, {sum}, first->element, first->shape);
}

FailureOr<std::optional<Fact>> Programs::sumOf(unsigned operand) {
  std::optional<Fact> sum;
  SmallVector<const Expression *> terms;
  for (unsigned number = 0; number < stages.size(); ++number) {
    Stage &stage = stages[number];
    Operation *op = &*stage.at;
    auto fact = leaving(number, operand);
    if (failed(fact))
      return failure();
    if (isZero(fact->expression))
      continue;
    // The sum of the maxima is not the maximum of the sums, and that of what is in padding is no longer that.
    bool hasFill = llvm::any_of(fact->type.padding, [](auto &entry) {
      return entry.second.fill.value_or(0) != 0;
    });
    if (!fact->type.max.empty() || hasFill)
      return stage.checker->refuse(op) << "adds " << fact->type.str(stage.checker->mesh)
                                       << ", for which there is no rule";
    if (sum && (sum->type != fact->type || sum->expression->element != fact->expression->element))
      return stage.checker->refuse(op) << "adds " << fact->type.str(stage.checker->mesh)
                                       << " to what is held otherwise on another stage, "
                                       << sum->type.str(stage.checker->mesh);
    sum = *fact;
    terms.push_back(fact->expression);
  }
  Stage &first = stages[0];
  if (sum) {
    sum->summed.clear();
    sum->expression = sumOfTerms(terms, *sum, first.at->getLoc(), *first.checker);
    sum->type.sum.push_back(*axis);
    llvm::sort(sum->type.sum);
    first.checker->use("sums over devices and microbatches may be reordered");
  }
  return sum;
}

/// The sum of what the stages have, and of the terms of the devices of each.
LogicalResult Programs::meetInSum(SmallVectorImpl<Fact> &results) {
  Stage &first = stages[0];
  auto op = cast<dist::AllReduceOp>(*first.at);
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    auto sum = sumOf(operand);
    if (failed(sum))
      return failure();
    if (!*sum) {
      results.push_back(first.facts.lookup(op->getOperand(operand)));
      continue;
    }
    Fact &fact = results.emplace_back(**sum);
    for (unsigned along : first.checker->without1(op.getGroup().on(first.checker->mesh))) {
      if (!llvm::is_contained(fact.type.sum, along))
        return first.checker->refuse(op) << "adds what are no terms of a sum, "
                                         << fact.type.str(first.checker->mesh);
      llvm::erase(fact.type.sum, along);
    }
  }
  return success();
}

LogicalResult Programs::meetInMessages(SmallVectorImpl<Fact> &results) {
  Stage &first = stages[0];
  Operation *op = &*first.at;
  FactList facts;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    Fact &fact = facts.emplace_back(first.facts.lookup(op->getOperand(operand)));
    if (!fact.type.messages) {
      auto sum = sumOf(operand);
      if (failed(sum))
        return failure();
      fact = sum->value_or(fact);
      continue;
    }
    for (Stage &stage : stages) {
      const Fact &other = stage.facts.lookup(stage.at->getOperand(operand));
      if (other.expression != fact.expression || other.type != fact.type)
        return stage.checker->refuse(&*stage.at) << "goes on with another sum than the first stage";
    }
  }
  return cast<CertifiableOpInterface>(op).certify(facts, results, *first.checker);
}

LogicalResult Programs::meet() {
  for (Stage &stage : stages) {
    Operation &op = *stage.at;
    auto group = stage.isDone() ? dist::GroupAttr() : groupAlong(axis, op, stage.checker->mesh);
    if (!group || isa<dist::RecvOp>(op))
      return stage.checker->refuse(&op)
             << (stage.isDone() ? "ends while other stages wait"
                                : "waits for a value that no stage sends, or for other stages");
    Operation &first = *stages[0].at;
    if (op.getName() != first.getName() || op.getNumOperands() != first.getNumOperands() ||
        op.getPropertiesAsAttribute() != first.getPropertiesAsAttribute() ||
        !llvm::equal(op.getOperandTypes(), first.getOperandTypes()))
      return stage.checker->refuse(&op) << "meets another op of another stage, "
                                        << first.getName().getStringRef();
  }
  FactList results;
  Operation &first = *stages[0].at;
  if (auto op = dyn_cast<dist::AllReduceOp>(first); op && op.getKind() == train::ReduceKind::Sum) {
    if (failed(meetInSum(results)))
      return failure();
  } else if (isa<dist::ExchangeOp>(first)) {
    if (failed(meetInMessages(results)))
      return failure();
  } else if (auto op = dyn_cast<dist::BroadcastOp>(first);
             op && op.getGroup().on(stages[0].checker->mesh) == Axes{*axis} &&
             op.getRoot() < stages.size()) {
    auto fact = leaving(op.getRoot(), 0);
    if (failed(fact))
      return failure();
    results.push_back(*fact);
  } else {
    return stages[0].checker->refuse(&first) << "works along stages, for which there is no rule";
  }
  for (Stage &stage : stages) {
    if (failed(stage.checker->assign(*stage.at, results, stage.facts)))
      return failure();
    ++stage.at;
  }
  return success();
}

LogicalResult Programs::run(StringRef name, ArrayRef<FactList> inputs,
                            std::vector<FactList> &results) {
  stages.clear();
  messages.clear();
  for (auto [checker, facts] : llvm::zip_equal(all, inputs)) {
    auto function = SymbolTable(checker->module).lookup<func::FuncOp>(name);
    if (!axis) {
      results.emplace_back();
      return checker->run(function, facts, results.back());
    }
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return checker->refuse(function) << "@" << name << " has no body of one block";
    Stage stage{checker.get(), function, function.getBody().front().begin(),
                llvm::DenseMap<Value, Fact>()};
    for (auto [argument, fact] : llvm::zip_equal(function.getArguments(), facts))
      stage.facts[argument] = fact;
    stages.push_back(std::move(stage));
  }
  while (llvm::any_of(stages, [](const Stage &stage) { return !stage.isDone(); })) {
    bool isSomething = false;
    for (unsigned stage = 0; stage < stages.size(); ++stage) {
      auto advanced = advance(stage);
      if (failed(advanced))
        return failure();
      isSomething |= *advanced;
    }
    if (!isSomething && failed(meet()))
      return failure();
  }
  for (auto &[key, queue] : messages)
    if (!queue.empty())
      return emitError(stages[std::get<1>(key)].function.getLoc())
             << "not proved: stage " << std::get<1>(key) << " sends " << queue.size()
             << " values to stage " << std::get<2>(key) << " on channel " << std::get<0>(key)
             << " that nobody receives";
  for (Stage &stage : stages) {
    FactList &made = results.emplace_back();
    for (Value value : stage.at->getOperands())
      settle(made.emplace_back(stage.facts.lookup(value)), *stage.checker);
  }
  return success();
}
