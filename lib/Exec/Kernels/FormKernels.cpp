//===- FormKernels.cpp - exec-form-kernels ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Invariant: the block's ops are partitioned into groups, and the groups are the
// nodes of an acyclic graph. Two groups of kernel ops merge when that stays so
// and every value between them stays inside a row.
//
//===----------------------------------------------------------------------===//
#include "Exec/Memory/InsertCopies.h"
#include "BlockRows.h"
#include "Exec/Passes.h"
#include "RowSpace.h"

#include "Dist/Dist.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <queue>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECFORMKERNELS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// A constant: every kernel that reads it makes its own.
static bool isFill(Operation *op) { return isa_and_nonnull<train::FillOp>(op); }
static bool isKernelOp(Operation *op) {
  return isa<train::KernelOpInterface>(op) && !isFill(op) && !isView(op);
}

namespace {
class KernelFormer {
public:
  /// `mostOperands`: inputs and results that one launch may have, 0 if any number.
  KernelFormer(Block &block, SymbolTable &symbols, unsigned mostOperands)
      : block(block), symbols(symbols), mostOperands(mostOperands) {}

  void run(StringRef prefix, llvm::StringMap<func::FuncOp> &known);

private:
  void isolateFills();
  void divideSums(StringRef prefix, llvm::StringMap<func::FuncOp> &known);
  void buildGraph();
  using Pair = std::pair<unsigned, unsigned>;
  llvm::SetVector<Pair> findPairs();
  void mergeAll();
  /// Bytes of traffic saved by making one kernel of two groups, 0 if it cannot be.
  int64_t benefit(unsigned a, unsigned b);
  bool canExchange(Value value, Operation *reader);
  /// Whether a launch may have the inputs and results of the two groups' kernel.
  bool fitsLaunch(unsigned a, unsigned b);
  bool wouldCycle(unsigned a, unsigned b);
  void merge(unsigned a, unsigned b);
  void sort();
  void outline(ArrayRef<Operation *> ops, StringRef prefix, llvm::StringMap<func::FuncOp> &known);

  Block &block;
  SymbolTable &symbols;
  unsigned mostOperands;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> groupOf;
  DenseMap<Operation *, RowSpace> spaces;
  /// By group number: its ops in program order; empty once merged into another.
  std::vector<SmallVector<Operation *>> groups;
  std::vector<llvm::SetVector<unsigned>> successors, predecessors;
};
} // namespace

/// Fills stay ops of their own, one per reader outside kernels: what a loop
/// carries or an op adds to becomes that reader's memory.
void KernelFormer::isolateFills() {
  for (auto fill : llvm::to_vector(block.getOps<train::FillOp>())) {
    for (OpOperand &use : llvm::make_early_inc_range(fill.getResult().getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*fill)->getResult(0));
    }
    fill.erase();
  }
}

/// One launch takes only so many values. The first terms of a longer sum are added up in kernels of their own, in
/// the order of the sum, before any groups are formed: each such addition could merge with every other.
void KernelFormer::divideSums(StringRef prefix, llvm::StringMap<func::FuncOp> &known) {
  if (mostOperands == 0)
    return;
  for (auto norm : llvm::to_vector(block.getOps<train::GlobalNormOp>())) {
    size_t most = mostOperands - 1; // and the result
    while (norm.getSquares().size() > most) {
      OpBuilder builder(norm);
      SmallVector<Operation *> additions;
      Value sum = norm.getSquares().front();
      for (Value square : norm.getSquares().slice(1, most - 1)) {
        sum = train::AddOp::create(builder, norm.getLoc(), sum, square);
        additions.push_back(sum.getDefiningOp());
      }
      SmallVector<Value> terms{sum};
      llvm::append_range(terms, norm.getSquares().drop_front(most));
      norm.getSquaresMutable().assign(terms);
      outline(additions, prefix, known);
    }
  }
}

/// Variables that the functions `op` repeats or calls read or write.
static void collectVariables(Operation *op, llvm::SmallSetVector<StringRef, 4> &names,
                             SymbolTable &symbols) {
  if (auto get = dyn_cast<train::GetOp>(op))
    names.insert(get.getVariable());
  if (auto set = dyn_cast<train::SetOp>(op))
    names.insert(set.getVariable());
  StringRef callee;
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    callee = repeat.getCallee();
  else if (auto call = dyn_cast<func::CallOp>(op))
    callee = call.getCallee();
  if (!callee.empty())
    for (Operation &inner : symbols.lookup<func::FuncOp>(callee).getBody().front())
      collectVariables(&inner, names, symbols);
}

void KernelFormer::buildGraph() {
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  groups.resize(ops.size());
  successors.resize(ops.size());
  predecessors.resize(ops.size());
  for (auto [i, op] : llvm::enumerate(ops)) {
    groups[i].push_back(op);
    groupOf[op] = i;
    if (isKernelOp(op))
      spaces.try_emplace(op, op);
  }
  auto edge = [&](Operation *from, Operation *to) {
    if (from && from->getBlock() == &block && from != to) {
      successors[groupOf[from]].insert(groupOf[to]);
      predecessors[groupOf[to]].insert(groupOf[from]);
    }
  };
  // Beside values: accesses of a variable stay in order, and so do collectives,
  // which all ranks must meet in one order, and calls, whose order is a schedule.
  llvm::StringMap<Operation *> lastAccess;
  Operation *lastCollective = nullptr;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      edge(operand.getDefiningOp(), op);
    llvm::SmallSetVector<StringRef, 4> variables;
    collectVariables(op, variables, symbols);
    for (StringRef name : variables) {
      edge(lastAccess.lookup(name), op);
      lastAccess[name] = op;
    }
    if (isa<dist::CollectiveOpInterface, train::RepeatOp, func::CallOp>(op)) {
      edge(lastCollective, op);
      lastCollective = op;
    }
  }
}

/// Whether `reader` finds what it needs of `value` while both walk the same row.
bool KernelFormer::canExchange(Value value, Operation *reader) {
  Operation *producer = value.getDefiningOp();
  RowSpace &from = spaces.find(producer)->second, &to = spaces.find(reader)->second;
  Extent made = from.results[cast<OpResult>(value).getResultNumber()];
  if (!from.isLocal(made) || from.shape != to.shape)
    return false;
  for (OpOperand &operand : reader->getOpOperands())
    if (operand.get() == value && to.operands[operand.getOperandNumber()] != made)
      return false;
  return true;
}

bool KernelFormer::fitsLaunch(unsigned a, unsigned b) {
  if (mostOperands == 0)
    return true;
  auto inside = [&](Operation *op) {
    auto it = groupOf.find(op);
    return it != groupOf.end() && (it->second == a || it->second == b);
  };
  llvm::DenseSet<Value> passed;
  for (unsigned group : {a, b})
    for (Operation *op : groups[group]) {
      for (Value operand : op->getOperands())
        if (!isFill(operand.getDefiningOp()) && !inside(operand.getDefiningOp()))
          passed.insert(operand);
      for (Value result : op->getResults())
        if (!llvm::all_of(result.getUsers(), inside))
          passed.insert(result);
    }
  return passed.size() <= mostOperands;
}

/// Results that scatter, or sums over part of the dimensions: a kernel of its own.
static bool standsAlone(const RowSpace &space) {
  return llvm::is_contained(space.results, Extent::Other);
}

int64_t KernelFormer::benefit(unsigned a, unsigned b) {
  if (a > b)
    std::swap(a, b);
  RowSpace &first = spaces.find(groups[a].front())->second;
  RowSpace &second = spaces.find(groups[b].front())->second;
  if (first.shape != second.shape || standsAlone(first) || standsAlone(second))
    return 0;
  // Scalar arithmetic costs its launches, not its traffic.
  int64_t saved = first.isScalar() ? 1 : 0;
  auto inside = [&](Operation *op) {
    auto it = groupOf.find(op);
    return it != groupOf.end() && (it->second == a || it->second == b);
  };
  llvm::SmallDenseMap<Value, unsigned> readBy; // bit 0: by a, bit 1: by b
  for (auto [bit, group] : {std::pair(1u, a), std::pair(2u, b)})
    for (Operation *op : groups[group])
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        Operation *producer = value.getDefiningOp();
        if (producer && groupOf.lookup(producer) != group && inside(producer)) {
          if (!canExchange(value, op))
            return 0;
          bool internal = llvm::all_of(value.getUsers(), inside);
          saved += bytesOf(value.getType()) * (internal ? 2 : 1);
        } else if (!isFill(producer) && !inside(producer) &&
                   spaces.find(op)->second.operands[operand.getOperandNumber()] == Extent::Full) {
          readBy[value] |= bit;
        }
      }
  for (auto [value, bits] : readBy)
    if (bits == 3)
      saved += bytesOf(value.getType());
  return saved;
}

bool KernelFormer::wouldCycle(unsigned a, unsigned b) {
  // A path from one to the other through a third.
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    SmallVector<unsigned> work;
    llvm::DenseSet<unsigned> seen;
    for (unsigned next : successors[from])
      if (next != to && seen.insert(next).second)
        work.push_back(next);
    while (!work.empty()) {
      unsigned node = work.pop_back_val();
      for (unsigned next : successors[node]) {
        if (next == to)
          return true;
        if (seen.insert(next).second)
          work.push_back(next);
      }
    }
  }
  return false;
}

void KernelFormer::merge(unsigned a, unsigned b) {
  llvm::append_range(groups[a], groups[b]);
  llvm::sort(groups[a], [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  for (Operation *op : groups[b])
    groupOf[op] = a;
  groups[b].clear();
  auto redirect = [&](auto &out, auto &back) {
    for (unsigned other : out[b])
      if (other != a) {
        out[a].insert(other);
        back[other].remove(b);
        back[other].insert(a);
      }
    out[a].remove(b);
    out[b].clear();
  };
  redirect(successors, predecessors);
  redirect(predecessors, successors);
}

/// Pairs of groups of one op that may gain by merging, the lower number first: both are scalar, or
/// a value is one's result and the other's operand, or an operand of both in full.
llvm::SetVector<KernelFormer::Pair> KernelFormer::findPairs() {
  llvm::SetVector<Pair> pairs;
  llvm::MapVector<Value, llvm::SetVector<unsigned>> alike; // readers in full; scalars without a value
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (!isKernelOp(op))
      continue;
    const RowSpace &space = spaces.find(op)->second;
    if (space.isScalar())
      alike[Value()].insert(i);
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (isFill(producer))
        continue;
      if (producer && spaces.contains(producer))
        pairs.insert({groupOf.at(producer), i});
      if (space.operands[operand.getOperandNumber()] == Extent::Full)
        alike[operand.get()].insert(i);
    }
  }
  for (auto &[value, all] : alike)
    for (auto [i, a] : llvm::enumerate(all))
      for (unsigned b : llvm::drop_begin(all, i + 1))
        pairs.insert({a, b});
  return pairs;
}

/// Merges the pair that gains most, the first of equal ones, until none gains.
void KernelFormer::mergeAll() {
  // Gains with the numbers inverted, so that low ones come first. A candidate counts as long as its
  // gain is the one in `gains`, which lacks pairs that may not merge as they are.
  std::priority_queue<std::tuple<int64_t, unsigned, unsigned>> candidates;
  llvm::DenseMap<Pair, int64_t> gains;
  // By group: those that it would gain by, whether or not it may merge with them. What two groups
  // gain by a third is nothing unless one of them does.
  std::vector<llvm::DenseSet<unsigned>> partners(groups.size());
  auto update = [&](unsigned a, unsigned b) {
    Pair pair(std::min(a, b), std::max(a, b));
    if (int64_t gain = benefit(a, b)) {
      gains[pair] = gain;
      candidates.push({gain, ~pair.first, ~pair.second});
      partners[a].insert(b);
      partners[b].insert(a);
    } else {
      gains.erase(pair);
      partners[a].erase(b);
      partners[b].erase(a);
    }
  };
  for (auto [a, b] : findPairs())
    update(a, b);
  while (!candidates.empty()) {
    auto [gain, notA, notB] = candidates.top();
    unsigned a = ~notA, b = ~notB;
    candidates.pop();
    auto known = gains.find({a, b});
    if (known == gains.end() || known->second != gain)
      continue;
    gains.erase(known);
    if (!fitsLaunch(a, b) || wouldCycle(a, b))
      continue;
    merge(a, b);
    llvm::DenseSet<unsigned> others = partners[a];
    for (unsigned other : partners[b]) {
      gains.erase({std::min(b, other), std::max(b, other)});
      partners[other].erase(b);
      others.insert(other);
    }
    partners[b].clear();
    for (unsigned other : others)
      if (other != a && other != b)
        update(a, other);
  }
}

/// Puts the block in an order that respects the groups, near the one it had.
void KernelFormer::sort() {
  std::vector<unsigned> waiting(groups.size());
  using Entry = std::pair<unsigned, unsigned>; // place of the last op, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  DenseMap<Operation *, unsigned> position;
  for (auto [i, op] : llvm::enumerate(ops))
    position[op] = i;
  for (unsigned i = 0; i < groups.size(); ++i) {
    waiting[i] = predecessors[i].size();
    if (!groups[i].empty() && waiting[i] == 0)
      ready.push({position[groups[i].back()], i});
  }
  Operation *end = block.getTerminator();
  while (!ready.empty()) {
    unsigned group = ready.top().second;
    ready.pop();
    for (Operation *op : groups[group])
      op->moveBefore(end);
    for (unsigned next : successors[group])
      if (--waiting[next] == 0)
        ready.push({position[groups[next].back()], next});
  }
}

/// The numbers of the `inputs` from which updates among `ops`, or sums for an update, compute
/// their gradients.
static SmallVector<int64_t> gradientsIn(ArrayRef<Operation *> ops, ArrayRef<Value> inputs) {
  llvm::SetVector<Value> from;
  for (Operation *op : ops)
    if (auto update = dyn_cast<train::UpdateOpInterface>(op))
      from.insert(update.getGradientMutable().get());
    else if (train::roleOf(op) == train::Role::Update)
      from.insert(op->operand_begin(), op->operand_end());
  for (size_t i = 0; i < from.size(); ++i)
    if (!llvm::is_contained(inputs, from[i]))
      if (Operation *op = from[i].getDefiningOp())
        from.insert(op->operand_begin(), op->operand_end());
  SmallVector<int64_t> numbers;
  for (auto [i, input] : llvm::enumerate(inputs))
    if (from.contains(input) && cast<RankedTensorType>(input.getType()).getRank() > 0)
      numbers.push_back(i);
  return numbers;
}

/// The numbers of the `outputs` that are `input` with its elements moved.
static SmallVector<int64_t> movesOf(Value input, ArrayRef<Value> outputs) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> numbers;
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value value = output;
    while (value != input) {
      auto op = value.getDefiningOp<train::KernelOpInterface>();
      if (!op || !op.movesElements() || op->getNumOperands() != 1)
        break;
      value = op->getOperand(0);
    }
    if (value == input && type.getRank() > 0 &&
        cast<RankedTensorType>(output.getType()).getNumElements() == type.getNumElements())
      numbers.push_back(i);
  }
  return numbers;
}

void KernelFormer::outline(ArrayRef<Operation *> members, StringRef prefix,
                           llvm::StringMap<func::FuncOp> &known) {
  llvm::SetVector<Value> inputs, outputs;
  llvm::SetVector<Operation *> body;
  for (Operation *op : members) {
    for (Value operand : op->getOperands())
      if (isFill(operand.getDefiningOp()))
        body.insert(operand.getDefiningOp());
    body.insert(op);
  }
  for (Operation *op : body) {
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !body.contains(operand.getDefiningOp()))
        inputs.insert(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !body.contains(user); }))
        outputs.insert(result);
  }
  OpBuilder builder(members.back());
  SmallVector<Location> locs;
  for (Operation *op : members)
    locs.push_back(op->getLoc());
  Location loc = builder.getFusedLoc(locs);
  auto type =
      builder.getFunctionType(llvm::map_to_vector(inputs, [](Value v) { return v.getType(); }),
                              llvm::map_to_vector(outputs, [](Value v) { return v.getType(); }));
  OwningOpRef<func::FuncOp> kernel = func::FuncOp::create(loc, "kernel", type);
  kernel->setPrivate();
  (*kernel)->setAttr(kernelAttr, builder.getUnitAttr());
  OpBuilder inner(kernel->getContext());
  Block *entry = kernel->addEntryBlock();
  inner.setInsertionPointToEnd(entry);
  IRMapping mapping;
  mapping.map(inputs.getArrayRef(), entry->getArguments());
  for (auto [argument, input] : llvm::zip(entry->getArguments(), inputs))
    argument.setLoc(input.getLoc());
  for (Operation *op : body)
    inner.clone(*op, mapping);
  func::ReturnOp::create(inner, loc,
                         llvm::map_to_vector(outputs, [&](Value v) { return mapping.lookup(v); }));

  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().printGenericOpForm().enableDebugInfo(false));
  func::FuncOp &shared = known[text];
  if (!shared) {
    shared = kernel.release();
    shared.setSymName((prefix + ".k" + Twine(known.size() - 1)).str());
    symbols.insert(shared);
  }
  shared->setLoc(builder.getFusedLoc({shared->getLoc(), loc})); // All that it is made from.
  auto launch = LaunchOp::create(builder, loc, type.getResults(), shared.getSymName(),
                                 inputs.getArrayRef(), ValueRange(), Value());
  if (auto numbers = gradientsIn(members, inputs.getArrayRef()); !numbers.empty())
    launch->setAttr(gradientsAttr, builder.getDenseI64ArrayAttr(numbers));
  if (inputs.size() == 1)
    if (auto numbers = movesOf(inputs[0], outputs.getArrayRef()); !numbers.empty())
      launch->setAttr(movesAttr, builder.getDenseI64ArrayAttr(numbers));
  for (unsigned i = 0; i < outputs.size(); ++i) {
    Value output = outputs[i];
    output.replaceUsesWithIf(launch.getResult(i),
                             [&](OpOperand &use) { return !body.contains(use.getOwner()); });
  }
  for (Operation *op : llvm::reverse(body.getArrayRef()))
    op->erase();
}

void KernelFormer::run(StringRef prefix, llvm::StringMap<func::FuncOp> &known) {
  isolateFills();
  divideSums(prefix, known);
  buildGraph();
  mergeAll();
  sort();
  // In the order of the block, so that names are.
  SmallVector<unsigned> order;
  for (unsigned i = 0; i < groups.size(); ++i)
    if (!groups[i].empty() && isKernelOp(groups[i].front()))
      order.push_back(i);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return groups[a].front()->isBeforeInBlock(groups[b].front());
  });
  for (unsigned i : order)
    outline(groups[i], prefix, known);
  for (auto fill : llvm::make_early_inc_range(block.getOps<train::FillOp>()))
    outline({fill.getOperation()}, prefix, known);
}

namespace {
struct ExecFormKernels : exec::impl::ExecFormKernelsBase<ExecFormKernels> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    unsigned mostOperands = targetOf(module).getTarget().getMostLaunchOperands();
    llvm::StringMap<func::FuncOp> known;
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (function.isExternal() || function->hasAttr(kernelAttr))
        continue;
      makeRowsOfBlocks(function.getBody().front());
      IRRewriter rewriter(&getContext());
      (void)runRegionDCE(rewriter, function.getBody());
      KernelFormer(function.getBody().front(), symbols, mostOperands)
          .run(function.getSymName(), known);
    }
  }
};
} // namespace
