//===- MergeLaunches.cpp - one launch for what is done to many tensors ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"
#include "Exec/Exec.h"
#include "Exec/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECMERGELAUNCHES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

//===----------------------------------------------------------------------===//
// Kernels that are alike
//===----------------------------------------------------------------------===//

/// What an op does, whatever the shape; nothing if the shape matters.
static std::optional<std::string> describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!value || !value.isSplat())
      return std::nullopt;
    os << " " << value.getSplatValue<Attribute>();
  } else if (auto reduce = dyn_cast<train::ReduceOp>(op)) {
    if (cast<RankedTensorType>(reduce.getResult().getType()).getRank() != 0)
      return std::nullopt;
    os << " " << int(reduce.getKind());
  } else if (auto broadcast = dyn_cast<train::BroadcastOp>(op)) {
    if (cast<RankedTensorType>(broadcast.getX().getType()).getRank() != 0)
      return std::nullopt;
  } else if (op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0) {
    os << " " << op->getAttrDictionary();
  } else if (!isa<func::ReturnOp>(op)) {
    return std::nullopt;
  }
  return text;
}

/// What a kernel does to each element of tensors of one shape; nothing for other kernels.
static std::optional<std::string> describe(func::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ArrayRef<int64_t> shape;
  DenseMap<Value, unsigned> numbers;
  auto add = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    numbers[value] = numbers.size();
    os << " " << type.getElementType() << (type.getRank() ? " each" : "");
    if (type.getRank() && shape.empty())
      shape = type.getShape();
    return type.getRank() == 0 || type.getShape() == shape;
  };
  for (Value argument : kernel.getArguments())
    if (!add(argument))
      return std::nullopt;
  for (Operation &op : kernel.getBody().front()) {
    auto own = describe(&op);
    if (!own)
      return std::nullopt;
    os << "\n" << *own;
    for (Value operand : op.getOperands())
      os << " " << numbers.lookup(operand);
    for (Value result : op.getResults())
      if (!add(result))
        return std::nullopt;
  }
  return shape.empty() ? std::nullopt : std::optional(text);
}

//===----------------------------------------------------------------------===//
// Launches that may be one
//===----------------------------------------------------------------------===//

namespace {
/// Launches of one block that may become one, where the last of them is.
class LaunchGroup {
public:
  LaunchGroup(LaunchOp first, unsigned mostOperands) : members{first}, mostOperands(mostOperands) {
    countOperands(first);
  }

  /// Takes `next`, which comes after all members, unless something between reads what
  /// they write and may not move behind it.
  bool add(LaunchOp next);
  void merge(SymbolTable &symbols);
  unsigned size() const { return members.size(); }

private:
  void countOperands(LaunchOp launch) {
    operands.insert(launch.getInputs().begin(), launch.getInputs().end());
    results += launch.getNumResults();
  }

  SmallVector<LaunchOp> members;
  unsigned mostOperands; ///< that one launch takes
  llvm::SmallSetVector<Value, 16> operands;
  unsigned results = 0;
  /// What has to come after the merged launch, in the order of the block.
  llvm::SetVector<Operation *> after;
};
} // namespace

static bool isCommunication(Operation *op) {
  return isa<dist::CollectiveOpInterface>(op);
}

bool LaunchGroup::add(LaunchOp next) {
  auto more = operands;
  more.insert(next.getInputs().begin(), next.getInputs().end());
  if (more.size() + results + next.getNumResults() > mostOperands)
    return false;
  // What follows from the members' results must be able to wait: values that others
  // compute from them, and variables that nothing else touches meanwhile.
  llvm::SetVector<Operation *> moved;
  llvm::StringSet<llvm::MallocAllocator> variables;
  for (Operation *op = members.front(); op != next; op = op->getNextNode()) {
    if (llvm::is_contained(members, op))
      continue;
    bool follows = false, touches = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *maker = operand.getDefiningOp())
          follows |= moved.contains(maker) ||
                     llvm::any_of(members, [&](LaunchOp member) { return member == maker; });
      // Other ops that know of variables are in functions that are called.
      if (auto get = dyn_cast<train::GetOp>(inner))
        touches |= variables.contains(get.getVariable());
      else if (auto set = dyn_cast<train::SetOp>(inner))
        touches |= variables.contains(set.getVariable());
      else if (isa<SymbolUserOpInterface>(inner) && !isa<LaunchOp>(inner))
        touches |= !variables.empty();
    });
    if (touches)
      return false;
    if (!follows)
      continue;
    auto set = dyn_cast<train::SetOp>(op);
    if (set)
      variables.insert(set.getVariable());
    else if (!isMemoryEffectFree(op) || isCommunication(op) || op->getNumRegions())
      return false;
    moved.insert(op);
  }
  for (Value operand : next.getInputs())
    if (Operation *maker = operand.getDefiningOp())
      if (moved.contains(maker) || llvm::is_contained(members, maker))
        return false;
  after = std::move(moved);
  operands = std::move(more);
  results += next.getNumResults();
  members.push_back(next);
  return true;
}

void LaunchGroup::merge(SymbolTable &symbols) {
  SmallVector<Value> inputs(operands.begin(), operands.end());
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (LaunchOp member : members) {
    llvm::append_range(types, member.getResultTypes());
    locs.push_back(member.getLoc());
  }
  OpBuilder builder(members.back());
  Location loc = builder.getFusedLoc(locs);
  auto first = symbols.lookup<func::FuncOp>(members.front().getKernel());
  std::string name = (members.front().getKernel() + ".all").str();
  auto kernel = func::FuncOp::create(
      loc, name, builder.getFunctionType(TypeRange(ValueRange(inputs)), types));
  kernel.setPrivate();
  kernel->setAttr(kernelAttr, builder.getUnitAttr());
  symbols.insert(kernel, std::next(Block::iterator(first)));
  OpBuilder inner = OpBuilder::atBlockEnd(kernel.addEntryBlock());
  for (auto [argument, input] : llvm::zip(kernel.getArguments(), inputs))
    argument.setLoc(input.getLoc());
  SmallVector<Value> returned;
  for (LaunchOp member : members) {
    auto function = symbols.lookup<func::FuncOp>(member.getKernel());
    IRMapping mapping;
    for (auto [argument, operand] : llvm::zip(function.getArguments(), member.getInputs()))
      mapping.map(argument, kernel.getArgument(llvm::find(inputs, operand) - inputs.begin()));
    for (Operation &op : function.getBody().front().without_terminator())
      inner.clone(op, mapping);
    for (Value value : function.getBody().front().getTerminator()->getOperands())
      returned.push_back(mapping.lookup(value));
  }
  func::ReturnOp::create(inner, loc, returned);

  auto launch =
      LaunchOp::create(builder, loc, types, kernel.getSymName(), inputs, ValueRange(), Value());
  SmallVector<int64_t> gradients;
  for (LaunchOp member : members)
    if (auto numbers = member->getAttrOfType<DenseI64ArrayAttr>(gradientsAttr))
      for (int64_t i : numbers.asArrayRef())
        gradients.push_back(llvm::find(inputs, member.getInputs()[i]) - inputs.begin());
  if (!gradients.empty())
    launch->setAttr(gradientsAttr, builder.getDenseI64ArrayAttr(gradients));
  Operation *last = launch;
  for (Operation *op : after) {
    op->moveAfter(last);
    last = op;
  }
  unsigned result = 0;
  for (LaunchOp member : members) {
    for (Value old : member.getResults())
      old.replaceAllUsesWith(launch.getResult(result++));
    member.erase();
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ExecMergeLaunches : exec::impl::ExecMergeLaunchesBase<ExecMergeLaunches> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    mostOperands = targetOf(module).getTarget().getMostLaunchOperands();
    if (mostOperands == 0)
      return;
    SymbolTable symbols(module);
    llvm::StringMap<std::optional<std::string>> descriptions;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(kernelAttr))
        descriptions[function.getSymName()] = describe(function);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (!function.isExternal() && !function->hasAttr(kernelAttr))
        run(function.getBody().front(), symbols, descriptions);
    // Kernels that nothing launches any more.
    llvm::StringSet<llvm::MallocAllocator> used;
    module.walk([&](LaunchOp launch) { used.insert(launch.getKernel()); });
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function->hasAttr(kernelAttr) && descriptions.contains(function.getSymName()) &&
          !used.contains(function.getSymName()))
        function.erase();
  }

  /// Of each op of a block the collectives of the block that it waits for.
  using Waits = llvm::DenseMap<Operation *, std::set<Operation *>>;
  static Waits waitsOf(Block &block) {
    Waits waits;
    for (Operation &op : block) {
      std::set<Operation *> own;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == &block)
            own.insert(waits[maker].begin(), waits[maker].end());
      });
      if (isCommunication(&op))
        own.insert(&op);
      waits[&op] = std::move(own);
    }
    return waits;
  }

  void run(Block &block, SymbolTable &symbols,
                  const llvm::StringMap<std::optional<std::string>> &descriptions) {
    // Kind by kind, since merging one moves others' launches.
    llvm::SetVector<StringRef> kinds;
    for (auto launch : block.getOps<LaunchOp>())
      if (auto &description = descriptions.at(launch.getKernel()))
        kinds.insert(*description);
    for (StringRef kind : kinds)
      while (mergeOne(block, kind, symbols, descriptions))
        ;
  }

  /// Merges the first launches of a kind that may become one. Those that wait for other
  /// collectives stay apart, which may end at other times.
  bool mergeOne(Block &block, StringRef kind, SymbolTable &symbols,
                       const llvm::StringMap<std::optional<std::string>> &descriptions) {
    Waits waits = waitsOf(block);
    std::vector<std::pair<std::set<Operation *>, LaunchGroup>> groups;
    for (auto launch : block.getOps<LaunchOp>()) {
      auto known = descriptions.find(launch.getKernel());
      if (known == descriptions.end() || known->second != kind || feedsCommunication(launch))
        continue;
      // What does not fit into the last one opens the next.
      auto alike = llvm::find_if(llvm::reverse(groups), [&](auto &group) {
        return group.first == waits[launch];
      });
      if (alike == groups.rend() || !alike->second.add(launch))
        groups.push_back({waits[launch], LaunchGroup(launch, mostOperands)});
    }
    for (auto &[waited, group] : groups)
      if (group.size() > 1) {
        group.merge(symbols);
        return true;
      }
    return false;
  }

  /// Communication that could begin as soon as one member is done should not wait for all.
  static bool feedsCommunication(LaunchOp launch) {
    return llvm::any_of(launch->getUsers(), isCommunication);
  }

  unsigned mostOperands = 0; ///< of one launch on the module's target
};
} // namespace
