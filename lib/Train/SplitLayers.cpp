//===- SplitLayers.cpp - one run of layers becomes several -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"
#include "meshwright/Cost/Flops.h"
#include "meshwright/RematPolicy.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINSPLITLAYERS
#include "Train/Passes.h.inc"
} // namespace meshwright::train

using SplitPoints = SmallVector<int64_t>;

//===--- where to split ----------------------------------------------------------===//

namespace {
/// What a layer, or several, come to.
struct Cost {
  double flops = 0, bytes = 0; ///< computed in a forward; of parameters

  Cost &operator+=(const Cost &other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};
} // namespace

/// Splits a row of costs into `parts` so that `combine` of what `value` says of the parts is
/// least. Returns where parts after the first begin.
static std::pair<double, SplitPoints> splitRow(ArrayRef<Cost> costs, int64_t parts,
                                               llvm::function_ref<double(const Cost &)> value,
                                               llvm::function_ref<double(double, double)> combine) {
  int64_t n = costs.size();
  constexpr double never = std::numeric_limits<double>::infinity();
  // best[k][j]: of the first j costs in k parts; from[k][j]: where the last part begins.
  std::vector<std::vector<double>> best(parts + 1, std::vector<double>(n + 1, never));
  std::vector<std::vector<int64_t>> from(parts + 1, std::vector<int64_t>(n + 1, 0));
  best[0][0] = 0;
  for (int64_t k = 1; k <= parts; ++k)
    for (int64_t j = k; j <= n; ++j) {
      Cost last;
      for (int64_t i = j - 1; i >= k - 1; --i) {
        last += costs[i];
        double all = combine(best[k - 1][i], value(last));
        if (all < best[k][j]) {
          best[k][j] = all;
          from[k][j] = i;
        }
      }
    }
  SplitPoints points;
  for (int64_t k = parts, j = n; k > 1; --k)
    points.insert(points.begin(), j = from[k][j]);
  return {best[parts][n], points};
}

/// The least FLOPs of the part that has most and, among those splits, the one most even in
/// FLOPs and bytes.
static SplitPoints balance(ArrayRef<Cost> costs, int64_t parts) {
  Cost all;
  for (const Cost &cost : costs)
    all += cost;
  double largest = splitRow(
                       costs, parts, [](const Cost &part) { return part.flops; },
                       [](double a, double b) { return std::max(a, b); })
                       .first;
  auto uneven = [&](const Cost &part) {
    if (part.flops > largest * (1 + 1e-12))
      return std::numeric_limits<double>::infinity();
    double flops = part.flops / std::max(all.flops, 1.0),
           bytes = part.bytes / std::max(all.bytes, 1.0);
    return flops * flops + bytes * bytes;
  };
  return splitRow(costs, parts, uneven, std::plus<double>()).second;
}

//===--- splitting --------------------------------------------------------------===//

namespace {
class LayerSplitter {
public:
  LayerSplitter(ModuleOp module, func::FuncOp loss) : module(module), symbols(module), loss(loss) {}

  /// `@loss`'s repeats of layers, in order; those as often as data says are none.
  SmallVector<RepeatOp> runs();
  /// What each layer comes to; embedding counts to the first, the head to the last.
  SmallVector<Cost> costs();
  LogicalResult split(ArrayRef<int64_t> points);
  /// Ends the last run with a layer that passes on what it is given: the chunk of a head alone.
  RepeatOp addEmptyLayer();
  /// `points` and where groups of `every` layers, one number a chunk, leave a tail.
  SplitPoints withTails(ArrayRef<int64_t> points, ArrayRef<int64_t> every);

private:
  LogicalResult split(RepeatOp repeat, int64_t first, ArrayRef<int64_t> begins);
  /// Renames a function or variable, since the first of its parts may have its name.
  LogicalResult reserve(Operation *whole);
  /// As it was called before.
  StringRef nameOf(StringRef symbol) const {
    auto found = originals.find(symbol);
    return found == originals.end() ? symbol : StringRef(found->second);
  }
  FailureOr<func::FuncOp> cloneLayer(RepeatOp repeat, int64_t first, int64_t begin);
  FailureOr<Value> part(Value stack, RepeatOp repeat, int64_t first, int64_t begin, int64_t count,
                        OpBuilder &builder);
  /// The counts of tokens that `stack` is become `parts`, of layers that begin at `begins`.
  LogicalResult splitCounts(OpResult stack, ArrayRef<Value> parts, ArrayRef<int64_t> begins);
  /// Refuses runs of layers over the same stack that are not split at the same layers.
  LogicalResult refuseTie(RepeatOp repeat, VariableOp whole);
  /// Refuses stacks that are still read as a whole: their parts are variables of their own.
  LogicalResult checkNoWholeIsRead();

  ModuleOp module;
  SymbolTable symbols;
  func::FuncOp loss;
  llvm::StringMap<std::string> originals; ///< by the name that `reserve` gave
  /// By that name of a stacked variable, and where the part begins.
  llvm::MapVector<std::pair<StringAttr, int64_t>, VariableOp> variables;
};
} // namespace

SmallVector<Cost> LayerSplitter::costs() {
  SmallVector<Cost> costs;
  DenseSet<Value> afterLayers;
  cost::FlopCounter flops;
  Cost before, after;
  for (Operation &op : loss.getBody().front()) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value v) { return afterLayers.contains(v); });
    Cost here;
    here.flops = flops.of(&op);
    for (Value operand : op.getOperands())
      if (auto get = operand.getDefiningOp<GetOp>())
        here.bytes +=
            double(get.getType().getNumElements()) * get.getType().getElementTypeBitWidth() / 8;
    auto repeat = dyn_cast<RepeatOp>(op);
    if (repeat && !repeat.getTimes()) {
      double count = double(repeat.getCount());
      costs.append(repeat.getCount(), {here.flops / count, here.bytes / count});
      depends = true;
    } else {
      (depends ? after : before) += here;
    }
    if (depends)
      afterLayers.insert(op.result_begin(), op.result_end());
  }
  if (!costs.empty()) {
    costs.front() += before;
    costs.back() += after;
  }
  return costs;
}

SmallVector<RepeatOp> LayerSplitter::runs() {
  return llvm::to_vector(llvm::make_filter_range(
      loss.getOps<RepeatOp>(), [](RepeatOp repeat) { return !repeat.getTimes(); }));
}

/// "h.attn.bias" with layers from 6 on as "h.6.attn.bias", and "h.2.attn.bias" too:
/// as models with several runs of layers call theirs.
static std::string numbered(StringRef name, int64_t layer) {
  auto [prefix, rest] = name.split('.');
  auto [number, tail] = rest.split('.');
  if (!number.empty() && llvm::all_of(number, llvm::isDigit))
    rest = tail;
  return (prefix + "." + Twine(layer) + (rest.empty() ? "" : ".") + rest).str();
}

/// The storage name of a stack whose layer 0 is layer `skip` of `pattern`.
static std::string skipLayers(StringRef pattern, int64_t skip) {
  auto [head, rest] = pattern.split("{layer");
  auto [digits, tail] = rest.split('}');
  int64_t first = 0;
  (void)digits.ltrim('+').getAsInteger(10, first);
  std::string layerText = first + skip ? "{layer+" + std::to_string(first + skip) + "}" : "{layer}";
  return (head + layerText + tail).str();
}

FailureOr<Value> LayerSplitter::part(Value stack, RepeatOp repeat, int64_t first, int64_t begin,
                                     int64_t count, OpBuilder &builder) {
  auto get = stack.getDefiningOp<GetOp>();
  // Of what is computed, each part has its layers' slices.
  if (!get && stack.getDefiningOp())
    return SliceOp::create(builder, stack.getLoc(), stack, count, /*dim=*/0, /*from=*/begin).getResult();
  auto whole = get ? symbols.lookup<VariableOp>(get.getVariable()) : VariableOp();
  if (!whole || !whole.getStacked())
    return repeat.emitOpError("takes slices of ")
           << stack.getType()
           << ", which is not a stacked variable, so the layers cannot be split into stages";
  VariableOp &variable = variables[{whole.getSymNameAttr(), begin}];
  if (!variable) {
    SmallVector<int64_t> shape(whole.getTensorType().getShape());
    shape[0] = count;
    variable = whole.clone();
    variable.setSymName(numbered(nameOf(whole.getSymName()), first + begin));
    variable.setType(RankedTensorType::get(shape, whole.getTensorType().getElementType()));
    // Without a name in files it is stored under its symbol's, which the part must not change.
    StorageAttr s = whole.getStorageAttr();
    if (!s)
      s = StorageAttr::get(module.getContext(), (nameOf(whole.getSymName()) + ".{layer}").str(),
                           /*transpose=*/false, /*dim=*/0, /*offset=*/0, /*full=*/0, /*period=*/0,
                           /*runs=*/{}, /*optional=*/false);
    variable.setStorageAttr(StorageAttr::get(s.getContext(), skipLayers(s.getTensor(), begin),
                                             s.getTranspose(), s.getDim(), s.getOffset(),
                                             s.getFull(), s.getPeriod(), s.getRuns(),
                                             s.getOptional()));
    symbols.insert(variable, whole->getIterator());
  }
  if (variable.getTensorType().getDimSize(0) != count)
    return refuseTie(repeat, whole);
  return GetOp::create(builder, get.getLoc(), variable.getType(), variable.getSymName())
      .getResult();
}

FailureOr<func::FuncOp> LayerSplitter::cloneLayer(RepeatOp repeat, int64_t first, int64_t begin) {
  auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
  func::FuncOp clone = layer.clone();
  clone.setSymName(numbered(nameOf(layer.getSymName()), first + begin));
  symbols.insert(clone, layer->getIterator());
  if (repeat.getIndexed())
    for (OpOperand &use : clone.getArgument(0).getUses()) {
      auto fold = dyn_cast<FoldInOp>(use.getOwner());
      if (!fold)
        return use.getOwner()->emitOpError("reads the number of the layer; where layers are split "
                                           "into stages only train.fold_in can");
      fold.setFirst(int64_t(fold.getFirst()) + begin);
    }
  return clone;
}

LogicalResult LayerSplitter::splitCounts(OpResult stack, ArrayRef<Value> parts,
                                         ArrayRef<int64_t> begins) {
  Operation *end = loss.getBody().front().getTerminator();
  if (!stack.hasOneUse() || *stack.user_begin() != end ||
      !tokensOf(loss, stack.getUses().begin()->getOperandNumber()))
    return stack.getOwner()->emitOpError("stacks results that are no counts of tokens, so the "
                                         "layers cannot be split into stages");
  unsigned at = stack.getUses().begin()->getOperandNumber();
  SmallVector<Value> results(end->getOperands());
  SmallVector<DictionaryAttr> attrs;
  loss.getAllResultAttrs(attrs);
  DictionaryAttr whole = attrs[at];
  results.erase(results.begin() + at);
  attrs.erase(attrs.begin() + at);
  for (auto [i, value] : llvm::enumerate(parts)) {
    NamedAttrList said(whole);
    for (StringRef name : {tokensOfAttr, balancesAttr})
      if (auto of = dyn_cast_if_present<FlatSymbolRefAttr>(whole.get(name))) {
        VariableOp variable = variables.lookup({of.getAttr(), begins[i]});
        if (!variable)
          return loss.emitError("result ") << at << " counts tokens of @" << nameOf(of.getValue())
                                           << ", which the layers that count them do not take "
                                              "slices of, so they cannot be split";
        said.set(name, FlatSymbolRefAttr::get(variable.getSymNameAttr()));
      }
    results.insert(results.begin() + at + i, value);
    attrs.insert(attrs.begin() + at + i, said.getDictionary(loss.getContext()));
  }
  end->setOperands(results);
  loss.setType(FunctionType::get(loss.getContext(), loss.getArgumentTypes(),
                                 ValueRange(results).getTypes()));
  loss.setAllResultAttrs(attrs);
  return success();
}

LogicalResult LayerSplitter::split(RepeatOp repeat, int64_t first, ArrayRef<int64_t> begins) {
  if (repeat.getReverse())
    return repeat.emitOpError("runs its layers from the last to the first; such layers cannot be "
                              "split into stages or groups");
  OpBuilder builder(repeat);
  SmallVector<Value> carry(repeat.getCarry());
  SmallVector<SmallVector<Value>> parts(repeat.getStacks().size());
  for (auto [i, begin] : llvm::enumerate(begins)) {
    int64_t end = i + 1 < begins.size() ? begins[i + 1] : int64_t(repeat.getCount());
    FailureOr<func::FuncOp> layer = cloneLayer(repeat, first, begin);
    if (failed(layer))
      return failure();
    SmallVector<Value> each;
    for (Value stack : repeat.getEach()) {
      FailureOr<Value> piece = part(stack, repeat, first, begin, end - begin, builder);
      if (failed(piece))
        return failure();
      each.push_back(*piece);
    }
    SmallVector<Type> types(repeat.getCarry().getTypes());
    for (Value stack : repeat.getStacks()) {
      auto type = cast<RankedTensorType>(stack.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = end - begin;
      types.push_back(RankedTensorType::get(shape, type.getElementType()));
    }
    auto piece = RepeatOp::create(builder, repeat.getLoc(), types, layer->getSymName(),
                                  uint64_t(end - begin), repeat.getReverse(), repeat.getIndexed(),
                                  carry, each, repeat.getShared());
    llvm::copy(piece.getCarried(), carry.begin());
    for (auto [part, stack] : llvm::zip_equal(parts, piece.getStacks()))
      part.push_back(stack);
  }
  for (auto [part, stack] : llvm::zip_equal(parts, repeat.getStacks()))
    if (failed(splitCounts(cast<OpResult>(stack), part, begins)))
      return failure();
  llvm::SetVector<GetOp> stacks;
  for (Value stack : repeat.getEach())
    if (auto get = stack.getDefiningOp<GetOp>())
      stacks.insert(get);
  Operation *layer = symbols.lookup(repeat.getCallee());
  for (auto [old, now] : llvm::zip_equal(repeat.getCarried(), carry))
    old.replaceAllUsesWith(now);
  repeat.erase();
  for (GetOp get : stacks)
    if (get->use_empty()) {
      Operation *variable = symbols.lookup(get.getVariable());
      get.erase();
      if (SymbolTable::symbolKnownUseEmpty(variable, module))
        symbols.erase(variable);
    }
  if (SymbolTable::symbolKnownUseEmpty(layer, module))
    symbols.erase(layer);
  return success();
}

RepeatOp LayerSplitter::addEmptyLayer() {
  RepeatOp last = runs().back();
  OpBuilder builder(last->getContext());
  auto types = last.getCarry().getTypes();
  auto layer = func::FuncOp::create(last.getLoc(), "head.pass", builder.getFunctionType(types, types));
  layer.setPrivate();
  Block *body = layer.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  func::ReturnOp::create(builder, last.getLoc(), body->getArguments());
  symbols.insert(layer, loss->getIterator());
  builder.setInsertionPointAfter(last);
  auto empty = RepeatOp::create(builder, last.getLoc(), types, layer.getSymName(), /*count=*/1,
                                /*reverse=*/false, /*indexed=*/false, last.getCarried(),
                                /*each=*/ValueRange(), /*shared=*/ValueRange());
  for (auto [before, after] : llvm::zip_equal(last.getCarried(), empty.getCarried()))
    before.replaceAllUsesExcept(after, empty);
  return empty;
}

LogicalResult LayerSplitter::reserve(Operation *whole) {
  std::string name = SymbolTable::getSymbolName(whole).str(), reserved = "whole." + name;
  if (originals.contains(name))
    return success();
  if (failed(checkNameIsFree(module, reserved, "a run of layers while it is split")))
    return failure();
  originals[reserved] = name;
  return symbols.rename(whole, reserved);
}

LogicalResult LayerSplitter::split(ArrayRef<int64_t> points) {
  SmallVector<std::tuple<RepeatOp, int64_t, SmallVector<int64_t>>> apart;
  int64_t first = 0;
  for (RepeatOp repeat : runs()) {
    int64_t count = repeat.getCount();
    SmallVector<int64_t> begins{0};
    for (int64_t point : points)
      if (point > first && point < first + count)
        begins.push_back(point - first);
    if (begins.size() > 1)
      apart.push_back({repeat, first, begins});
    first += count;
  }
  for (auto &[repeat, first, begins] : apart) {
    if (failed(reserve(symbols.lookup(repeat.getCallee()))))
      return failure();
    for (Value stack : repeat.getEach())
      if (auto get = stack.getDefiningOp<GetOp>())
        if (failed(reserve(symbols.lookup(get.getVariable()))))
          return failure();
  }
  for (auto &[repeat, first, begins] : apart)
    if (failed(split(repeat, first, begins)))
      return failure();
  // A function that other layers call still is called as it was.
  for (const auto &entry : originals)
    if (auto function = symbols.lookup<func::FuncOp>(entry.getKey());
        function && !symbols.lookup(entry.second))
      if (failed(symbols.rename(function, entry.second)))
        return failure();
  return checkNoWholeIsRead();
}

LogicalResult LayerSplitter::refuseTie(RepeatOp repeat, VariableOp whole) {
  return repeat.emitOpError("takes slices of @")
         << nameOf(whole.getSymName())
         << ", which other layers take too, and both are not split alike; give --cuts that do, or "
            "fewer stages";
}

LogicalResult LayerSplitter::checkNoWholeIsRead() {
  for (auto &[key, variable] : variables)
    if (auto whole = symbols.lookup<VariableOp>(key.first)) {
      Operation *user = SymbolTable::getSymbolUses(whole, module)->begin()->getUser();
      for (Operation *reader : user->getUsers())
        if (auto repeat = dyn_cast<RepeatOp>(reader))
          return refuseTie(repeat, whole);
      return user->emitOpError("reads all layers of @")
             << nameOf(key.first)
             << ", which are split into stages or groups; give what reads them "
             << "variables of its own, or leave out stages and --remat every:K";
    }
  return success();
}

SplitPoints LayerSplitter::withTails(ArrayRef<int64_t> points, ArrayRef<int64_t> every) {
  SplitPoints all(points), begins(points);
  int64_t layers = 0;
  for (RepeatOp repeat : runs())
    begins.push_back(layers += repeat.getCount());
  begins.push_back(0);
  llvm::sort(begins);
  begins.erase(llvm::unique(begins), begins.end());
  for (auto [first, end] : llvm::zip(begins, ArrayRef(begins).drop_front())) {
    int64_t chunk = llvm::upper_bound(points, first) - points.begin();
    LayerGroups groups = groupsOf(every[every.size() > 1 ? chunk : 0], end - first);
    if (groups.tail(end - first))
      all.push_back(first + groups.layers);
  }
  llvm::sort(all);
  return all;
}

//===--- the pass ---------------------------------------------------------------===//

/// Checks the first layers of `chunks` - 1 chunks out of `layers`.
static FailureOr<SplitPoints> checkSplitPoints(ModuleOp module, const LayerNumbers &given,
                                               int64_t chunks, int64_t layers) {
  SplitPoints points;
  auto refuse = [&](const Twine &why) {
    return module.emitError("cuts '") << optionText(given) << "': " << why;
  };
  for (int64_t point : given.numbers) {
    if (point < 1 || point > layers)
      return refuse("layer " + Twine(point) + " cannot begin a stage; with " + Twine(layers) +
                    " layers split points are 1 to " + Twine(layers) +
                    ", which leaves the head alone");
    if (!points.empty() && point <= points.back())
      return refuse(Twine(point) + " does not come after " + Twine(points.back()) +
                    "; layer numbers must ascend");
    points.push_back(point);
  }
  if (int64_t(points.size()) != chunks - 1)
    return refuse(Twine(points.size()) + " layer numbers make " + Twine(points.size() + 1) +
                  " parts, but the pipeline has " + Twine(chunks) + "; give " + Twine(chunks - 1));
  return points;
}

namespace {
struct TrainSplitLayers : train::impl::TrainSplitLayersBase<TrainSplitLayers> {
  using TrainSplitLayersBase::TrainSplitLayersBase;

  void runOnModule() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    ModuleOp module = getOperation();
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    if (!loss)
      return module.emitError("there is no function @loss whose layers could be split");
    LayerSplitter splitter(module, loss);
    SmallVector<Cost> costs = splitter.costs();
    int64_t layers = costs.size();
    if (chunks < 1)
      return module.emitError("layers are split into 1 part or more, not ") << int64_t(chunks);
    bool isHeadAlone = !cuts.numbers.empty() && cuts.numbers.back() == layers;
    if (layers + isHeadAlone < chunks && chunks > 1)
      return module.emitError("the model has ")
             << layers << " layers, fewer than the " << int64_t(chunks)
             << " parts of the pipeline (stages times chunks a stage); use a shorter mesh axis "
                "'pipe' or fewer chunks, "
             << layers << (layers == 1 ? " part" : " parts") << " at most";
    FailureOr<SplitPoints> where = cuts.numbers.empty()
                                       ? FailureOr<SplitPoints>(balance(costs, chunks))
                                       : checkSplitPoints(module, cuts, chunks, layers);
    if (failed(where))
      return failure();
    SplitPoints groups(every.begin(), every.end());
    if (groups.empty())
      groups.push_back(1);
    if (const auto *bad = llvm::find_if(groups, [](int64_t layers) { return layers < 0; });
        bad != groups.end())
      return module.emitError("every: '") << *bad << "' is no number of layers";
    if (groups.size() > 1 && int64_t(groups.size()) != chunks)
      return module.emitError("every: ") << groups.size() << " numbers for " << int64_t(chunks)
                                         << " chunks; give one, or one for each";
    if (failed(splitter.split(splitter.withTails(*where, groups))))
      return failure();
    Builder builder(&getContext());
    int64_t first = 0;
    if (isHeadAlone)
      splitter.addEmptyLayer();
    for (RepeatOp repeat : splitter.runs()) {
      if (chunks > 1)
        repeat->setAttr(
            TrainDialect::chunkAttr,
            builder.getI64IntegerAttr(llvm::upper_bound(*where, first) - where->begin()));
      first += repeat.getCount();
    }
    return success();
  }
};
} // namespace
