//===- Import.cpp - a loss function of JAX to floor 1 ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// @main becomes @loss: its float arguments are parameters, its integer arguments tokens. Private
// functions are imported where they are called.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include "Text.h"
#include "meshwright/Frontend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;
using namespace meshwright::train;

void meshwright::registerStableHLO(MLIRContext &context) { hlo::registerText(context); }

bool meshwright::isStableHLO(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        StringRef dialect = op->getName().getDialectNamespace();
        return llvm::is_contained({"stablehlo", "chlo"}, dialect) ? WalkResult::interrupt()
                                                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

//===--- names --------------------------------------------------------------===//

/// The parts of a path as JAX writes it: `params['blocks'][0].up` has params, blocks, 0 and up.
static SmallVector<StringRef> partsOf(StringRef path) {
  SmallVector<StringRef> parts, found;
  llvm::SplitString(path, parts, "[].");
  for (StringRef part : parts)
    if (StringRef name = part.trim("'\""); !name.empty())
      found.push_back(name);
  return found;
}

LogicalResult Importer::nameParameters() {
  SmallVector<SmallVector<StringRef>> paths;
  llvm::StringSet<> roots;
  for (BlockArgument argument : parameters) {
    auto name = argument.getLoc()->findInstanceOf<NameLoc>();
    if (!name)
      return main.emitError("argument ")
             << argument.getArgNumber() << " of @main, " << argument.getType()
             << ", has no name; print the text with names: "
                "jax.jit(f).lower(..).as_text(debug_info=True) "
             << "or jax.export.export(jax.jit(f))(..).mlir_module()";
    paths.push_back(partsOf(name.getName()));
    if (paths.back().empty())
      return main.emitError("argument ")
             << argument.getArgNumber() << " of @main has the name '" << name.getName().getValue()
             << "', which has no letters; rename it";
    roots.insert(paths.back().front());
  }
  // One argument of the function holds all parameters: its name says nothing.
  bool isOneTree =
      roots.size() == 1 && llvm::all_of(paths, [](auto &path) { return path.size() > 1; });
  llvm::StringSet<> taken;
  for (auto &path : paths) {
    names.push_back(llvm::join(ArrayRef(path).drop_front(isOneTree ? 1 : 0), "."));
    if (!taken.insert(names.back()).second)
      return main.emitError("two parameters of @main are both called '")
             << names.back() << "'; rename one";
  }
  return success();
}

//===--- arguments ----------------------------------------------------------===//

LogicalResult Importer::readArguments() {
  if (main.getNumResults() != 1)
    return main.emitError("@main has ")
           << main.getNumResults() << " results; a loss function returns one, the scalar mean loss";
  auto result = dyn_cast<RankedTensorType>(main.getResultTypes()[0]);
  if (!result || result.getRank() != 0 || !result.getElementType().isF32())
    return main.emitError("@main returns ")
           << main.getResultTypes()[0] << "; a loss function returns a scalar in f32: tensor<f32>";
  SmallVector<BlockArgument> integers;
  for (BlockArgument argument : main.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto refuse = [&]() {
      return main.emitError("argument ")
             << argument.getArgNumber() << " of @main is " << argument.getType();
    };
    if (!type || !type.hasStaticShape())
      return refuse() << ", whose shape is not known; export the function for one batch size and "
                         "sequence length";
    for (StringRef attribute : {"mhlo.sharding", "sdy.sharding"})
      if (main.getArgAttr(argument.getArgNumber(), attribute))
        return refuse() << " with " << attribute
                        << "; export the function without shardings, --mesh makes them";
    if (type.getElementType().isF32())
      parameters.push_back(argument);
    else if (type.getElementType().isInteger(32))
      integers.push_back(argument);
    else
      return refuse()
             << "; parameters are f32 and tokens i32 (--precision bf16 makes parameters narrow)";
  }
  if (parameters.empty())
    return main.emitError("@main has no parameters, arguments of f32");
  if (integers.empty() || integers.size() > 2)
    return main.emitError("@main has ")
           << integers.size()
           << " arguments of i32; it takes tokens [batch, sequence + 1], or tokens and "
           << "targets, both [batch, sequence]";
  for (BlockArgument argument : integers)
    if (cast<RankedTensorType>(argument.getType()).getRank() != 2 ||
        argument.getType() != integers.front().getType())
      return main.emitError("argument ")
             << argument.getArgNumber() << " of @main is " << argument.getType() << "; "
             << (integers.size() == 1 ? "tokens are [batch, sequence + 1]"
                                      : "tokens and targets are both [batch, sequence]");
  auto type = cast<RankedTensorType>(integers.front().getType());
  rows = type.getDimSize(0);
  sequence = type.getDimSize(1) - (integers.size() == 1 ? 1 : 0);
  if (rows < 1 || sequence < 1)
    return main.emitError("argument ") << integers.front().getArgNumber() << " of @main is " << type
                                       << ", which has no tokens and targets";
  tokenArguments = integers;
  return success();
}

void Importer::makeModule(StringRef path) {
  MLIRContext *context = graph.builder.getContext();
  module = ModuleOp::create(FileLineColLoc::get(context, path, 0, 0));
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  auto floats = RankedTensorType::get({}, Float32Type::get(context));
  auto ids = RankedTensorType::get({rows, sequence}, IntegerType::get(context, 32));
  SmallVector<std::pair<StringRef, Type>> inputs = {
      {"tokens", ids}, {"targets", ids}, {"target_weight", floats}};
  SmallVector<Type> types = llvm::map_to_vector(inputs, [](auto &input) { return input.second; });
  loss = func::FuncOp::create(builder, NameLoc::get(builder.getStringAttr("loss")), "loss",
                              builder.getFunctionType(types, {floats}));
  loss.setResultAttr(0, outputAttr, builder.getStringAttr("loss"));
  loss.addEntryBlock();
  for (auto [i, input] : llvm::enumerate(inputs)) {
    StringAttr name = builder.getStringAttr(input.first);
    loss.setArgAttr(i, inputAttr, name);
    loss.getArgument(i).setLoc(NameLoc::get(name));
  }
  builder.setInsertionPoint(loss);
  graph.builder.setInsertionPointToEnd(&loss.getBody().front());
  for (auto [argument, name] : llvm::zip_equal(parameters, names)) {
    auto type = cast<RankedTensorType>(argument.getType());
    Location at = NameLoc::get(builder.getStringAttr(name));
    auto init = InitAttr::get(context, "normal", builder.getF64FloatAttr(0.02));
    auto variable =
        VariableOp::create(builder, at, name, type, /*stacked=*/false, IntegerAttr(), init,
                           StorageAttr::get(context, name, false, 0, 0, 0, 0, {}, false),
                           FlatSymbolRefAttr(), StringAttr(), StringAttr());
    variables.push_back(variable);
    Value value = GetOp::create(graph.builder, at, type, FlatSymbolRefAttr::get(context, name));
    Dims all = llvm::to_vector<6>(llvm::seq<int64_t>(0, type.getRank()));
    values[argument] = graph.wrap(type.getShape(), all, value);
  }
  if (tokenArguments.size() == 2) {
    for (int i : {0, 1})
      values[tokenArguments[i]] = graph.wrap({rows, sequence}, {0, 1}, loss.getArgument(i));
  } else {
    Lazy both{{rows, sequence + 1}, {}, ids.getElementType(), {}, {}};
    both.form = Form::bothTokens;
    values[tokenArguments[0]] = std::make_shared<Lazy>(both);
  }
}

//===--- functions ----------------------------------------------------------===//

/// Where the user wrote an op, without the names of JAX's tracing around it.
static Location placeOf(Location location) {
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return file;
  return UnknownLoc::get(location.getContext());
}

/// Whether the op moves, compares or looks up tokens. Of what all others make of them nothing is
/// known that could be used.
static bool takesTokens(Operation *op) {
  return llvm::is_contained({"stablehlo.broadcast_in_dim", "stablehlo.compare", "stablehlo.convert",
                             "stablehlo.gather", "stablehlo.reduce", "stablehlo.reshape",
                             "stablehlo.select", "stablehlo.slice", "stablehlo.transpose"},
                            op->getName().getStringRef());
}

LogicalResult Importer::importBody(func::FuncOp function, SmallVectorImpl<Ref> &results) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError("has no body of one block");
  for (Operation &op : function.getBody().front()) {
    graph.at = &op;
    graph.location = placeOf(op.getLoc());
    if (isa<func::ReturnOp>(op)) {
      for (Value operand : op.getOperands())
        results.push_back(values.lookup(operand));
      return success();
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(importCall(call)))
        return failure();
      continue;
    }
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
        return graph.error()
               << "makes " << type
               << ", whose shape is not known; export the function for one batch size and "
                  "sequence length";
    Handler handler = handlerOf(op.getName().getStringRef());
    if (!handler || op.getNumResults() != 1)
      return graph.error() << refusalOf(op.getName().getStringRef());
    if (!agrees(&op))
      return graph.error() << "has operands, attributes and a result that do not fit each other";
    bool isOfTokens = llvm::any_of(op.getOperands(), [&](Value operand) {
      Ref value = values.lookup(operand);
      return !value->isFloat() && !value->isKnown();
    });
    FailureOr<Ref> result =
        isOfTokens && !takesTokens(&op) ? FailureOr<Ref>(unknown(&op)) : (this->*handler)(&op);
    if (failed(result))
      return failure();
    values[op.getResult(0)] = *result;
  }
  return function.emitError("does not return");
}

LogicalResult Importer::importCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return call.emitError("calls @") << call.getCallee() << ", which has no body";
  if (llvm::is_contained(callers, callee))
    return call.emitError("calls @")
           << call.getCallee() << ", which calls itself; unroll the recursion";
  for (auto [argument, operand] : llvm::zip_equal(callee.getArguments(), call.getOperands()))
    values[argument] = values.lookup(operand);
  callers.push_back(callee);
  SmallVector<Ref> results;
  if (failed(importBody(callee, results)))
    return failure();
  callers.pop_back();
  for (auto [result, value] : llvm::zip_equal(call.getResults(), results))
    values[result] = value;
  return success();
}

//===--- the loss -----------------------------------------------------------===//

FailureOr<Value> Importer::lossOf(const Ref &value) {
  // The logits, of which the tokens' dimensions come first, and the tokens.
  const Lazy &logits = *value->of;
  Dims all = llvm::to_vector<6>(llvm::seq<int64_t>(0, logits.shape.size()));
  FailureOr<Value> x = graph.fit(value->of, all);
  FailureOr<Value> ids = graph.fit(value->other, ArrayRef(all).drop_back());
  if (failed(x) || failed(ids))
    return failure();
  vocabulary = std::min(vocabulary, logits.shape.back());
  Value sum =
      CrossEntropyOp::create(graph.builder, graph.location, *x, *ids, graph.number(1)).getLoss();
  // How many targets count is known when a step's data is read; without a mask all do.
  Value mean = MulOp::create(graph.builder, graph.location, sum, loss.getArgument(2));
  double factor = value->number * double(rows * sequence);
  // The text has numbers of f32.
  if (std::abs(factor - 1) < 1e-6)
    return mean;
  return Value(ScaleOp::create(graph.builder, graph.location, mean, graph.number(factor)));
}

/// In mixed precision, sums over features and what is computed of them alone, as a norm's variance
/// and its root, stay f32, as in the norms of other models.
void Importer::keepStatistics() {
  llvm::DenseSet<Value> statistics;
  for (Operation &op : loss.getBody().front()) {
    auto isStatistic = [&](Value value) { return statistics.contains(value); };
    auto isKnown = [](Value value) { return value.getDefiningOp<FillOp>() != nullptr; };
    bool isSum = isa<ReduceOp>(op);
    bool isOfSums =
        isa<AddOp, MulOp, ScaleOp, InverseRootOp, LogOp>(op) &&
        llvm::any_of(op.getOperands(), isStatistic) &&
        llvm::all_of(op.getOperands(), [&](Value v) { return isStatistic(v) || isKnown(v); });
    if (!isSum && !isOfSums)
      continue;
    op.setAttr(fullPrecisionAttr, graph.builder.getUnitAttr());
    statistics.insert(op.getResult(0));
  }
}

LogicalResult Importer::finish(Ref result, const ModelOptions &options) {
  graph.at = main.getBody().front().getTerminator();
  graph.location = placeOf(graph.at->getLoc());
  bool isMean = result->form == Form::tokenLoss;
  if (!isMean && options.microbatches > 1)
    return main.emitError("@main returns more than a mean of the tokens' cross-entropies, which "
                          "microbatches cannot be shown to add up to; use --microbatches 1");
  FailureOr<Ref> plain = usable(result);
  if (failed(plain))
    return failure();
  if ((*plain)->isKnown() || !(*plain)->dims.empty())
    return main.emitError("@main returns a constant, which has no gradient");
  func::ReturnOp::create(graph.builder, graph.location, (*plain)->core);

  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(loss.getBody().front())))
    if (isOpTriviallyDead(&op) || (isa<GetOp>(op) && op.use_empty()))
      op.erase();
  // Without a mean of tokens' losses none can be left out: --loss-mask needs this input.
  if (loss.getArgument(2).use_empty())
    (void)loss.eraseArgument(2);
  // A vector that is multiplied begins at 1, one that is added at 0. It may be cast or moved
  // before.
  std::function<bool(Value)> isFactor = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return isa<MulOp>(user) ||
             (isa<BroadcastOp, CastOp, ReshapeOp, ScaleOp, TransposeBlocksOp>(user) &&
              isFactor(user->getResult(0)));
    });
  };
  OpBuilder &b = graph.builder;
  for (auto [variable, argument] : llvm::zip_equal(variables, parameters)) {
    GetOp read;
    for (auto get : loss.getOps<GetOp>())
      if (get.getVariable() == variable.getSymName())
        read = get;
    if (!read)
      return main.emitError("the loss does not depend on parameter '")
             << variable.getSymName() << "'; leave it out of the function's arguments";
    if (variable.getTensorType().getRank() < 2)
      variable.setInitAttr(InitAttr::get(b.getContext(), "constant",
                                         b.getF64FloatAttr(isFactor(read.getResult()) ? 1 : 0)));
  }
  if (vocabulary == std::numeric_limits<int64_t>::max())
    return main.emitError("@main looks no token up in a table and has no cross-entropy of logits");
  for (const Bound &bound : bounds)
    if (bound.tokens < vocabulary)
      return bound.at->emitError()
             << bound.at->getName() << " compares tokens, which are below " << vocabulary
             << ", with " << bound.tokens - 1 << "; only checks that all tokens pass are supported";
  keepStatistics();
  ModuleOp op = *module;
  auto size = [&](StringRef name, int64_t value) { op->setAttr(name, b.getI64IntegerAttr(value)); };
  op->setAttr(modelAttr, b.getStringAttr(source.getSymName().value_or("jax")));
  op->setAttr(configAttr, b.getStringAttr(""));
  size(batchAttr, rows * options.microbatches);
  size(sequenceAttr, sequence);
  size(microbatchesAttr, options.microbatches);
  size(vocabularyAttr, vocabulary);
  size(maxPositionsAttr, sequence);
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> Importer::run(StringRef path, const ModelOptions &options) {
  main = source.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return source.emitError("has no function @main, the loss");
  callers.push_back(main);
  SmallVector<Ref> results;
  if (failed(readArguments()) || failed(nameParameters()))
    return failure();
  makeModule(path);
  if (failed(importBody(main, results)) || failed(finish(results.front(), options)))
    return failure();
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>> meshwright::importStableHLO(ModuleOp source, StringRef path,
                                                             const ModelOptions &options) {
  return Importer(source).run(path, options);
}
