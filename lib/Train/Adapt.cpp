//===- Adapt.cpp - low-rank adapters of matrix products ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A target is found by the names of tensors in files and adapted where its weight is used: in a
// product of @loss, or in one of a function that a train.repeat passes the weight to. Nothing else
// is known of the model.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"
#include "Train/Storage.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINADAPT
#include "Train/Passes.h.inc"
} // namespace meshwright::train

static constexpr StringLiteral allLinear = "all-linear", weightSuffix = ".weight";
/// So that rows of padding, which are zeros, have a norm to divide by.
static constexpr double aboveZero = 1e-30;

/// Whether `op` is y = x W^T with W, its operand 1, as [out, in].
static bool isProduct(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!isa<ContractionOpInterface>(op) || !ruled || op->getNumOperands() != 2 ||
      op->getNumResults() != 1)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  const auto &x = rule.operands[0].dims, &w = rule.operands[1].dims, &y = rule.results[0].dims;
  return w.size() == 2 && !x.empty() && x.size() == y.size() && x.back() == w[1] &&
         y.back() == w[0] && std::equal(x.begin(), x.end() - 1, y.begin()) &&
         llvm::all_of(w[1], [&](unsigned factor) { return rule.factors[factor].reduced; });
}

/// The first op that uses `weight`, here or in functions that it is passed to, and is no product;
/// null if there is none.
static Operation *otherUse(Value weight, SymbolTable &symbols) {
  for (OpOperand &use : weight.getUses()) {
    Operation *op = use.getOwner();
    if (auto repeat = dyn_cast<RepeatOp>(op);
        repeat && use.getOperandNumber() >= repeat.getCarry().size()) {
      auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
      BlockArgument argument = callee.getArgument(repeat.getCalleeArgument(use.getOperandNumber()));
      if (Operation *other = otherUse(argument, symbols))
        return other;
    } else if (use.getOperandNumber() != 1 || !isProduct(op)) {
      return op;
    }
  }
  return nullptr;
}

/// Whether `weight` is a factor of a product, and whether it is used by another op.
static std::pair<bool, bool> kindsOfUse(Value weight, SymbolTable &symbols) {
  std::pair<bool, bool> kinds;
  for (OpOperand &use : weight.getUses()) {
    Operation *op = use.getOwner();
    std::pair<bool, bool> here(isProduct(op), !isProduct(op));
    if (auto repeat = dyn_cast<RepeatOp>(op);
        repeat && use.getOperandNumber() >= repeat.getCarry().size())
      here = kindsOfUse(symbols.lookup<func::FuncOp>(repeat.getCallee())
                            .getArgument(repeat.getCalleeArgument(use.getOperandNumber())),
                        symbols);
    kinds = {kinds.first || here.first, kinds.second || here.second};
  }
  return kinds;
}

namespace {
/// The weights that a file has in one tensor, or in one a layer: those of one linear module.
struct Module {
  SmallVector<VariableOp> weights;
  bool isTarget = false, isSaved = false;

  VariableOp first() const { return weights.front(); }
  /// The path of the module of tensor `number`; empty if the tensor is no weight.
  std::string path(int64_t number) const {
    std::string text = storedTensorName(first(), number);
    return StringRef(text).ends_with(weightSuffix)
               ? StringRef(text).drop_back(weightSuffix.size()).str()
               : "";
  }
};

class Adapter {
public:
  Adapter(ModuleOp module, func::FuncOp loss, const Adapters &lora)
      : module(module), symbols(module), loss(loss), lora(lora), builder(module.getContext()) {}

  LogicalResult run();

private:
  void collectModules();
  LogicalResult findTargets();
  /// Why a module cannot be adapted; empty if it can.
  std::string refusal(const Module &candidate);
  /// Whether all-linear leaves it out: a router, or the layer whose rows are those of the vocabulary.
  bool isSpecial(const Module &candidate);
  LogicalResult emitNoTarget(StringRef target);
  /// Finds the modules that are trained whole, and marks what they consist of.
  LogicalResult findSaved();
  std::string refusalToSave(const Module &candidate);
  void save(const Module &saved);

  LogicalResult add(const Module &target);
  VariableOp variable(VariableOp beside, const Twine &name, ArrayRef<int64_t> shape, InitAttr init,
                      StorageAttr storage);
  Value get(VariableOp variable);
  /// The values that adapt a weight.
  struct Factors {
    Value a, b, magnitude; ///< magnitude: null without DoRA
  };
  LogicalResult adapt(Value weight, Factors factors);
  void adaptProduct(Operation *product, Factors factors);
  /// DoRA: what each element of a row's product is multiplied by, the row's magnitude over its norm.
  Value rowScale(Value weight, Factors factors, Location loc);
  /// What the callee of `repeat` gets for `value`, which becomes an operand beside number `like`.
  BlockArgument pass(RepeatOp repeat, unsigned like, Value value);
  /// A function that only `repeat` calls.
  func::FuncOp ownCallee(RepeatOp repeat);
  /// `x` with dropout, and the random key and numbers of sequences in its function.
  Value dropped(Value x, Value a);
  std::pair<Value, Value> randomness(func::FuncOp function);
  Value input(StringRef name, RankedTensorType type);
  std::string config();

  ModuleOp module;
  SymbolTable symbols;
  func::FuncOp loss;
  const Adapters &lora;
  OpBuilder builder;
  llvm::MapVector<StringRef, Module> modules; ///< by the name of their tensors
  bool namesAreFree = true;
  llvm::DenseMap<std::pair<Value, Value>, Value> reduced; ///< by x and A: x A^T, scaled
  llvm::DenseMap<std::pair<Operation *, Value>, BlockArgument> passed;
  llvm::DenseMap<Operation *, std::pair<Value, Value>> random; ///< by function
  llvm::DenseMap<Operation *, RepeatOp> callOf;
  int32_t streams = 0;
};
} // namespace

//===--- targets ----------------------------------------------------------------===//

void Adapter::collectModules() {
  for (auto variable : module.getOps<VariableOp>()) {
    StorageAttr storage = variable.getStorageAttr();
    StringRef name = storage ? storage.getTensor() : variable.getSymName();
    if (variable.isParameter() && isa<FloatType>(variable.getTensorType().getElementType()))
      modules[name].weights.push_back(variable);
  }
}

std::string Adapter::refusal(const Module &candidate) {
  for (VariableOp weight : candidate.weights) {
    if (weight.getExperts())
      return "is the weights of experts, which have no adapters; name the modules that have one by "
             "more of their path, e.g. self_attn.q_proj";
    if (weight.getTensorType().getRank() != 2 + int64_t(weight.getStacked()) ||
        weight.getNumbered() > int64_t(weight.getStacked()))
      return "is no matrix; adapters are of matrices";
    StorageAttr storage = weight.getStorageAttr();
    if (storage && storage.getFull() && storage.getDim() != (storage.getTranspose() ? 1 : 0))
      return "is a part of the columns of a file's tensor, so its adapters have no tensors there";
    bool isRead = false;
    for (auto get : loss.getOps<GetOp>()) {
      if (get.getVariable() != weight.getSymName())
        continue;
      isRead = true;
      if (Operation *other = otherUse(get, symbols))
        return ("is used by " + other->getName().getStringRef() +
                ", which is no product with a matrix; name other modules")
            .str();
    }
    if (!isRead)
      return "is not used by the loss";
  }
  return "";
}

bool Adapter::isSpecial(const Module &candidate) {
  std::optional<int64_t> vocabulary = moduleSize(module, vocabularyAttr);
  return llvm::any_of(candidate.weights, [&](VariableOp weight) {
    // A layer's MLP may be as wide as the vocabulary is long.
    return weight->hasAttr(fullPrecisionAttr) ||
           (!weight.getStacked() && weight.getTensorType().getDimSize(0) == vocabulary);
  });
}

/// Whether PEFT finds a module at `path` by `target`.
static bool isNamed(StringRef path, StringRef target) {
  return path.consume_back(target) && (path.empty() || path.ends_with("."));
}

/// The last name of a path: that of the module in the one that has it.
static StringRef lastName(StringRef path) { return path.substr(path.rfind('.') + 1); }

LogicalResult Adapter::emitNoTarget(StringRef target) {
  InFlightDiagnostic error = module.emitError("--lora: the target '")
                             << target << "' names no linear module; these are ";
  llvm::StringSet<> names;
  std::string list;
  for (auto &[_, candidate] : modules)
    if (std::string path = candidate.path(0); !path.empty() && refusal(candidate).empty())
      if (StringRef last = lastName(path); names.insert(last).second)
        list += (list.empty() ? "" : ", ") + last.str();
  return error << (list.empty() ? "none" : list);
}

LogicalResult Adapter::findTargets() {
  for (const std::string &target : lora.targets) {
    bool finds = false;
    for (auto &[_, candidate] : modules) {
      if (target == allLinear) {
        candidate.isTarget = !candidate.path(0).empty() && refusal(candidate).empty() &&
                             !isSpecial(candidate);
        finds |= candidate.isTarget;
        continue;
      }
      std::optional<int64_t> with, without;
      for (int64_t i = 0, tensors = storedTensors(candidate.first()); i < tensors; ++i)
        (isNamed(candidate.path(i), target) ? with : without) = i;
      if (!with)
        continue;
      if (without)
        return module.emitError("--lora: the target '")
               << target << "' names " << candidate.path(*with) << " but not "
               << candidate.path(*without) << ", which are one parameter, @"
               << candidate.first().getSymName() << "; leave the number of the layer out";
      if (std::string why = refusal(candidate); !why.empty())
        return module.emitError("--lora: the target '")
               << target << "': " << candidate.path(*with) << " " << why;
      candidate.isTarget = finds = true;
    }
    if (!finds)
      return emitNoTarget(target);
  }
  return success();
}

//===--- modules that are trained whole -------------------------------------------===//

/// Whether PEFT finds the tensor `name` in a module whose path ends in `module`, in whatever part of a name.
static bool isInModule(StringRef name, StringRef module) {
  for (size_t end = name.rfind('.'); end != StringRef::npos; end = name.rfind('.', end))
    if (name.take_front(end).ends_with(module))
      return true;
  return false;
}

std::string Adapter::refusalToSave(const Module &candidate) {
  if (candidate.isTarget)
    return "has an adapter already; leave it out of one of both";
  for (VariableOp variable : candidate.weights) {
    if (variable.getExperts())
      return "is the weights of experts; name other modules";
    if (variable->hasAttr(balanceRateAttr))
      return "is no weight that gradients change; name other modules";
    for (auto get : loss.getOps<GetOp>())
      if (get.getVariable() == variable.getSymName() && kindsOfUse(get, symbols) == std::pair(true, true))
        return "is the embedding and the head of the model, which PEFT would save as one of both; compile with "
               "\"tie_word_embeddings\": false, or name other modules";
  }
  return "";
}

LogicalResult Adapter::findSaved() {
  for (const std::string &name : lora.saved) {
    bool finds = false;
    for (auto &[_, candidate] : modules) {
      std::optional<int64_t> with, without;
      for (int64_t i = 0, tensors = storedTensors(candidate.first()); i < tensors; ++i)
        (isInModule(storedTensorName(candidate.first(), i), name) ? with : without) = i;
      if (!with)
        continue;
      auto refuse = [&](const Twine &why) {
        return module.emitError("--lora: modules_to_save '")
               << name << "': " << storedTensorName(candidate.first(), *with) << " " << why;
      };
      if (without)
        return refuse("is one parameter with " + storedTensorName(candidate.first(), *without) +
                      "; leave the number of the layer out");
      if (std::string why = refusalToSave(candidate); !why.empty())
        return refuse(why);
      candidate.isSaved = finds = true;
    }
    if (!finds)
      return module.emitError("--lora: modules_to_save '") << name << "' names no module with weights";
  }
  return success();
}

void Adapter::save(const Module &saved) {
  for (VariableOp variable : saved.weights) {
    StorageAttr storage = variable.getStorageAttr();
    StringRef tensor = storage ? storage.getTensor() : variable.getSymName();
    std::string name = (adapterPrefix + tensor).str();
    variable.setStorageAttr(
        storage ? StorageAttr::get(module.getContext(), name, storage.getTranspose(), storage.getDim(),
                                   storage.getOffset(), storage.getFull(), storage.getPeriod(),
                                   storage.getRuns(), storage.getOptional())
                : StorageAttr::get(module.getContext(), name, false, 0, 0, 0, 0, {}, /*optional=*/false));
    variable->removeAttr(frozenAttr);
    variable->setAttr(adapterAttr, builder.getUnitAttr());
  }
}

//===--- adapters ---------------------------------------------------------------===//

VariableOp Adapter::variable(VariableOp beside, const Twine &name, ArrayRef<int64_t> shape,
                             InitAttr init, StorageAttr storage) {
  SmallVector<int64_t> all;
  if (beside.getStacked())
    all.push_back(beside.getTensorType().getDimSize(0));
  llvm::append_range(all, shape);
  std::string symbol = name.str();
  namesAreFree &= succeeded(checkNameIsFree(module, symbol, "an adapter"));
  builder.setInsertionPointAfter(beside);
  auto made = VariableOp::create(
      builder, nameLocation(symbol, beside.getLoc()), symbol,
      RankedTensorType::get(all, beside.getTensorType().getElementType()), beside.getStacked(),
      IntegerAttr(), init, storage, FlatSymbolRefAttr(), StringAttr(), StringAttr());
  made->setAttr(adapterAttr, builder.getUnitAttr());
  return made;
}

Value Adapter::get(VariableOp variable) {
  builder.setInsertionPointToStart(&loss.getBody().front());
  return GetOp::create(builder, variable.getLoc(), variable.getType(), variable.getSymName());
}

LogicalResult Adapter::add(const Module &target) {
  VariableOp first = target.first();
  MLIRContext *context = module.getContext();
  int64_t in = first.getTensorType().getShape().back();
  StorageAttr storage = first.getStorageAttr();
  StringRef tensor = storage ? storage.getTensor() : first.getSymName();
  auto nameOf = [&](StringRef of, StringRef which) {
    return (of.drop_back(of.ends_with(weightSuffix) ? weightSuffix.size() : 0) + "." + which).str();
  };
  auto stored = [&](StringRef which, StorageAttr like) {
    // Rows of B in files are those of the weight.
    return like ? StorageAttr::get(context, adapterPrefix.str() + nameOf(tensor, which), false, 0,
                                   like.getOffset(), like.getFull(), like.getPeriod(),
                                   like.getRuns(), /*optional=*/false)
                : StorageAttr::get(context, adapterPrefix.str() + nameOf(tensor, which), false, 0, 0, 0,
                                   0, {}, /*optional=*/false);
  };
  // kaiming_uniform with a = sqrt 5, as torch.nn.Linear begins.
  auto uniform = InitAttr::get(context, "uniform",
                               builder.getF64FloatAttr(1 / std::sqrt(double(in))));
  auto zero = InitAttr::get(context, "constant", builder.getF64FloatAttr(0));
  std::string nameA = nameOf(first.getSymName(), "lora_A.weight");
  VariableOp a = variable(first, nameA, {lora.rank, in}, uniform, stored("lora_A.weight", {}));
  Value valueA = get(a);
  for (VariableOp weight : target.weights) {
    int64_t out = weight.getTensorType().getDimSize(weight.getStacked());
    VariableOp b = variable(weight == first ? a : weight, nameOf(weight.getSymName(), "lora_B.weight"),
                            {out, lora.rank}, zero, stored("lora_B.weight", weight.getStorageAttr()));
    Factors factors{valueA, get(b), {}};
    if (lora.decomposed) {
      auto norms = InitAttr::get(context, "row_norms", builder.getF64FloatAttr(1));
      VariableOp magnitude = variable(b, nameOf(weight.getSymName(), "lora_magnitude_vector"), {out}, norms,
                                      stored("lora_magnitude_vector", weight.getStorageAttr()));
      magnitude->setAttr(fullPrecisionAttr, builder.getUnitAttr());
      factors.magnitude = get(magnitude);
    }
    for (auto read : llvm::to_vector(loss.getOps<GetOp>()))
      if (read.getVariable() == weight.getSymName() && failed(adapt(read, factors)))
        return failure();
  }
  return success();
}

func::FuncOp Adapter::ownCallee(RepeatOp repeat) {
  auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
  bool isShared = false;
  module.walk([&](RepeatOp other) {
    isShared |= other != repeat && other.getCallee() == repeat.getCallee();
  });
  if (isShared) {
    callee = callee.clone();
    symbols.insert(callee, std::next(symbols.lookup(repeat.getCallee())->getIterator()));
    repeat.setCallee(callee.getSymName());
    callOf[callee] = repeat;
    return callee;
  }
  callOf[callee] = repeat;
  return callee;
}

BlockArgument Adapter::pass(RepeatOp repeat, unsigned like, Value value) {
  BlockArgument &argument = passed[{repeat, value}];
  if (argument)
    return argument;
  auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
  unsigned eachs = repeat.getCarry().size() + repeat.getEach().size();
  bool isEach = like < eachs;
  unsigned at = isEach ? eachs : eachs + repeat.getShared().size();
  auto type = cast<RankedTensorType>(value.getType());
  if (isEach)
    type = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  (void)callee.insertArgument(repeat.getCalleeArgument(at), type, {}, value.getLoc());
  (isEach ? repeat.getEachMutable() : repeat.getSharedMutable()).append(value);
  return argument = callee.getArgument(repeat.getCalleeArgument(at));
}

LogicalResult Adapter::adapt(Value weight, Factors factors) {
  for (OpOperand &use : llvm::make_early_inc_range(weight.getUses())) {
    auto repeat = dyn_cast<RepeatOp>(use.getOwner());
    if (!repeat) {
      adaptProduct(use.getOwner(), factors);
      continue;
    }
    unsigned number = use.getOperandNumber();
    func::FuncOp callee = ownCallee(repeat);
    BlockArgument inside = callee.getArgument(repeat.getCalleeArgument(number));
    Factors passedOn{pass(repeat, number, factors.a), pass(repeat, number, factors.b), {}};
    if (factors.magnitude)
      passedOn.magnitude = pass(repeat, number, factors.magnitude);
    if (failed(adapt(inside, passedOn)))
      return failure();
  }
  return success();
}

Value Adapter::rowScale(Value weight, Factors factors, Location loc) {
  auto full = [&](auto op) {
    op->setAttr(fullPrecisionAttr, builder.getUnitAttr());
    return op.getResult();
  };
  Value change = ContractOp::create(builder, loc, builder.getStringAttr("o r, r i -> o i"), factors.b, factors.a, Value());
  if (lora.scale() != 1)
    change = ScaleOp::create(builder, loc, change.getType(), change, builder.getF64FloatAttr(lora.scale()));
  Value adapted = full(AddOp::create(builder, loc, weight, change));
  Value squares = full(MulOp::create(builder, loc, adapted, adapted));
  Value sums = full(ReduceOp::create(builder, loc, ReduceKind::Sum, squares, ArrayRef<int64_t>{1}));
  auto inverse = InverseRootOp::create(builder, loc, sums, builder.getF64FloatAttr(aboveZero));
  // As in the paper (section 4.3) and in PEFT, gradients do not pass through the norm.
  inverse->setAttr(constantAttr, builder.getUnitAttr());
  return full(MulOp::create(builder, loc, factors.magnitude, full(inverse)));
}

void Adapter::adaptProduct(Operation *product, Factors factors) {
  auto [a, b, magnitude] = factors;
  Value x = product->getOperand(0), y = product->getResult(0);
  auto named = [&](StringRef what) {
    auto name = product->getLoc()->findInstanceOf<NameLoc>();
    return nameLocation(name ? (name.getName().strref() + "." + what).str() : what.str(),
                        product->getLoc());
  };
  // Weights of one module read one x: what A makes of it is computed once.
  Value &less = reduced[{x, a}];
  if (!less) {
    builder.setInsertionPointAfterValue(x);
    Value input = lora.dropout > 0 ? dropped(x, a) : x;
    Value low = LinearOp::create(builder, named("lora_A"), input, a);
    if (lora.scale() != 1)
      low = ScaleOp::create(builder, named("lora_A"), low.getType(), low,
                            builder.getF64FloatAttr(lora.scale()));
    // The map may have grown meanwhile.
    reduced[{x, a}] = low;
  }
  builder.setInsertionPointAfter(product);
  Value delta = LinearOp::create(builder, named("lora_B"), reduced[{x, a}], b);
  Value sum = AddOp::create(builder, named("lora"), y, delta), adapted = sum;
  if (magnitude) {
    Location loc = named("dora");
    auto scaled = MulOp::create(builder, loc, sum, rowScale(product->getOperand(1), factors, loc));
    // The factors of all rows are near 1, which a narrow type would round them to.
    scaled->setAttr(fullPrecisionAttr, builder.getUnitAttr());
    adapted = scaled.getResult();
  }
  y.replaceAllUsesExcept(adapted, sum.getDefiningOp());
}

//===--- dropout ------------------------------------------------------------------===//

Value Adapter::input(StringRef name, RankedTensorType type) {
  if (BlockArgument argument = inputNamed(loss, name))
    return argument;
  unsigned at = loss.getNumArguments();
  (void)loss.insertArgument(
      at, type, builder.getDictionaryAttr(builder.getNamedAttr(inputAttr, builder.getStringAttr(name))),
      nameLocation(name, loss.getLoc()));
  return loss.getArgument(at);
}

std::pair<Value, Value> Adapter::randomness(func::FuncOp function) {
  if (auto found = random.find(function); found != random.end())
    return found->second;
  OpBuilder::InsertionGuard guard(builder);
  Type integer = builder.getI32Type();
  if (function == loss) {
    auto tokens = cast<RankedTensorType>(inputNamed(loss, "tokens").getType());
    Value ids = input("sequence_ids", RankedTensorType::get({tokens.getDimSize(0)}, integer));
    return random[function] = {ids, input("key", RankedTensorType::get({2}, integer))};
  }
  // Each iteration has a key of its own.
  RepeatOp repeat = callOf.lookup(function);
  auto [ids, key] = randomness(repeat->getParentOfType<func::FuncOp>());
  unsigned shared = repeat.getCarry().size() + repeat.getEach().size();
  BlockArgument ownIds = pass(repeat, shared, ids), ownKey = pass(repeat, shared, key);
  if (!repeat.getIndexed()) {
    (void)function.insertArgument(0, RankedTensorType::get({}, integer), {},
                                  nameLocation("layer", function.getLoc()));
    repeat.setIndexed(true);
  }
  builder.setInsertionPointToStart(&function.getBody().front());
  Value folded = FoldInOp::create(builder, nameLocation("lora_dropout", function.getLoc()), ownKey,
                                  function.getArgument(0));
  return random[function] = {ownIds, folded};
}

Value Adapter::dropped(Value x, Value a) {
  auto function = cast<func::FuncOp>(x.getParentBlock()->getParentOp());
  auto [ids, key] = randomness(function);
  // Behind the key, which begins the function.
  if (isa<BlockArgument>(x) && key.getDefiningOp())
    builder.setInsertionPointAfterValue(key);
  return DropoutOp::create(builder, nameLocation("lora_dropout", a.getLoc()), x, ids, key,
                           builder.getF64FloatAttr(lora.dropout),
                           builder.getI32IntegerAttr(streams++));
}

//===--- the whole ----------------------------------------------------------------===//

std::string Adapter::config() {
  llvm::json::Array names;
  llvm::StringSet<> seen;
  bool transposed = false;
  for (auto &[_, target] : modules)
    if (target.isTarget) {
      std::string path = target.path(0);
      StringRef last = lastName(path);
      if (lora.targets.front() == allLinear && seen.insert(last).second)
        names.push_back(last.str());
      StorageAttr storage = target.first().getStorageAttr();
      transposed |= storage && storage.getTranspose();
    }
  if (lora.targets.front() != allLinear)
    for (const std::string &target : lora.targets)
      names.push_back(target);
  llvm::json::Array saved;
  for (const std::string &name : lora.saved)
    saved.push_back(name);
  llvm::json::Value task = "CAUSAL_LM";
  if (moduleSize(module, maskTokenAttr))
    task = nullptr;
  else if (inputNamed(loss, "source"))
    task = "SEQ_2_SEQ_LM";
  llvm::json::Object object{
      {"peft_type", "LORA"},
      {"task_type", std::move(task)},
      {"base_model_name_or_path", nullptr},
      {"r", lora.rank},
      {"lora_alpha", lora.alpha},
      {"lora_dropout", lora.dropout},
      {"target_modules", std::move(names)},
      {"use_rslora", lora.rankStabilized},
      {"use_dora", lora.decomposed},
      {"bias", "none"},
      {"fan_in_fan_out", transposed},
      {"modules_to_save", saved.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(std::move(saved))},
      {"inference_mode", true}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
}

LogicalResult Adapter::run() {
  collectModules();
  if (failed(findTargets()) || failed(findSaved()))
    return failure();
  module.walk([&](Operation *op) {
    if (auto stream = op->getAttrOfType<IntegerAttr>("stream"); stream && isa<RandomOpInterface>(op))
      streams = std::max(streams, int32_t(stream.getInt()) + 1);
  });
  if (lora.dropout > 0 && !inputNamed(loss, "tokens"))
    return module.emitError("--lora: dropout needs @loss to have the input \"tokens\", whose "
                            "sequences its random numbers are of");
  for (auto variable : module.getOps<VariableOp>())
    if (variable.isParameter())
      variable->setAttr(frozenAttr, builder.getUnitAttr());
  for (auto &[_, target] : modules)
    if (target.isTarget && failed(add(target)))
      return failure();
  for (auto &[_, candidate] : modules)
    if (candidate.isSaved)
      save(candidate);
  module->setAttr(adapterConfigAttr, builder.getStringAttr(config()));
  return success(namesAreFree);
}

namespace {
struct TrainAdapt : train::impl::TrainAdaptBase<TrainAdapt> {
  using TrainAdaptBase::TrainAdaptBase;

  void runOnModule() override {
    auto loss = getOperation().lookupSymbol<func::FuncOp>("loss");
    if (!loss) {
      getOperation().emitError("needs a function @loss");
      return signalPassFailure();
    }
    if (lora.getValue().rank == 0) {
      getOperation().emitError("needs the option lora, e.g. r=8,alpha=16,targets=all-linear");
      return signalPassFailure();
    }
    if (failed(Adapter(getOperation(), loss, lora.getValue()).run()))
      signalPassFailure();
  }
};
} // namespace
