//===- Pad.cpp - pads indices to what seeds and matrices want ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Types first: every value and variable grows where its indices do, except inputs
// and outputs and what ops that need an index whole read and make. Then masks,
// where padding would be summed (PaddingZeros.h).
//
//===----------------------------------------------------------------------===//
#include "Dist/Partition/LocalIndices.h"
#include "Train/Quantize.h"
#include "Train/TensorType.h"
#include "Dist/Passes.h"
#include "PaddingZeros.h"
#include "SeededClasses.h"
#include "meshwright/Cost/Flops.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using train::tensor;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTPAD
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

/// FLOPs of products and attention in one run of a function.
static double flopsOf(func::FuncOp function) {
  return cost::FlopCounter(cost::FlopCounter::Products).of(function.getBody().front());
}

/// "1.25%", of how much `padded` is more than `logical`.
static std::string shareText(double logical, double padded) {
  return llvm::formatv("{0:f2}%", 100 * (padded / logical - 1));
}

namespace {
class Padder {
public:
  Padder(ModuleOp module, MeshOp meshOp, const IndexClasses &classes, int64_t rowBytes)
      : module(module), mesh(meshOp.getMesh()), classes(classes), rowBytes(rowBytes) {}

  LogicalResult run() {
    parts = seededClasses(module, mesh, classes);
    llvm::MapVector<unsigned, int64_t> multiples = parts;
    if (rowBytes > 1)
      alignRows(multiples);
    for (auto [id, n] : multiples) {
      int64_t size = classes[id].size;
      if (size % n == 0)
        continue;
      padded[id] = llvm::alignTo(size, n);
      for (auto [op, factor] : classes[id].neededWhole)
        if (factor < 0)
          return op->emitOpError("takes or makes ")
                 << size << " slices along a dimension that seeds shard into " << n
                 << " parts; layers and microbatches are never padded";
    }
    if (padded.empty())
      return success();
    FailureOr<Structure> structure = structureOf(module);
    if (failed(structure))
      return failure();
    growStorage(*structure);
    if (failed(findShapes(*structure)))
      return failure();
    func::FuncOp step = module.lookupSymbol<func::FuncOp>("step");
    double logicalFlops = step ? flopsOf(step) : 0;
    // What ops say about themselves is read while types are still logical.
    for (func::FuncOp function : structure->functions)
      function.walk([&](Operation *op) {
        keepSizes(op);
        findWhole(op);
        findExchanged(op);
      });
    changeTypes(*structure);
    for (BlockArgument argument : structure->inputs)
      padInput(argument);
    for (const ValueBinding &h : structure->bindings) {
      if (h.isOutput())
        sliceOutput(*h.use);
      else if (h.to && isa_and_nonnull<ConstrainOp>(h.to.getDefiningOp()))
        fitBoundary(*h.use, h.to);
    }
    for (auto &[op, dims] : wholeDims)
      runWhole(op, dims);
    for (func::FuncOp function : structure->functions) {
      Block &body = function.getBody().front();
      function.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(),
                                         body.getTerminator()->getOperandTypes()));
    }
    updateSizes(module);
    if (logicalFlops > 0)
      sayCost(logicalFlops, flopsOf(step));
    return maskPadding(module, logical);
  }

private:
  /// Says what a user has not asked for: which indices grow, and what that costs.
  void sayCost(double logicalFlops, double paddedFlops) {
    double logicalBytes = 0, paddedBytes = 0;
    for (auto variable : module.getOps<train::VariableOp>()) {
      auto type = variable.getTensorType();
      auto before = variable->getAttrOfType<TypeAttr>(DistDialect::logicalAttr);
      double bytes = double(type.getElementTypeBitWidth()) / 8;
      paddedBytes += bytes * double(type.getNumElements());
      logicalBytes += bytes * double(before ? cast<RankedTensorType>(before.getValue()).getNumElements()
                                            : type.getNumElements());
    }
    SmallVector<std::string> what;
    for (auto &[id, index] : classes.all()) {
      auto it = padded.find(id);
      if (it == padded.end())
        continue;
      std::string text = llvm::formatv("{0} -> {1} in ", index.size, it->second);
      if (index.parameters.empty()) {
        text += index.inIntegerInputs ? "sequences" : "activations";
      } else {
        auto [variable, dim] = index.parameters.front();
        text += llvm::formatv("dimension {0} of {1}", dim, variable.getSymName());
        if (size_t others = index.parameters.size() - 1)
          text += llvm::formatv(" (and {0} more)", others);
      }
      // Steps and evaluations have sequences of their own.
      if (!llvm::is_contained(what, text))
        what.push_back(text);
    }
    module.emitRemark() << "padding: " << llvm::join(what, ", ") << "; FLOPs of a step "
                        << shareText(logicalFlops, paddedFlops) << " more, bytes of variables "
                        << shareText(logicalBytes, paddedBytes) << " more";
  }

  using AtomsOf = function_ref<Atoms::List(unsigned)>;

  int64_t sizeOf(ArrayRef<unsigned> atoms) const {
    int64_t size = 1;
    for (unsigned atom : atoms) {
      auto it = padded.find(atom);
      size *= it != padded.end() ? it->second : classes[atom].size;
    }
    return size;
  }
  int64_t partsOf(ArrayRef<unsigned> atoms) const {
    int64_t n = 1;
    for (unsigned atom : atoms)
      n *= parts.lookup(atom) ? parts.lookup(atom) : 1;
    return n;
  }

  /// Classes that padding must not lie inside a dimension of.
  llvm::DenseSet<unsigned> minorClasses() {
    llvm::DenseSet<unsigned> minor;
    auto add = [&](ArrayRef<unsigned> atoms) {
      if (!atoms.empty())
        minor.insert_range(atoms.drop_front());
    };
    for (auto variable : module.getOps<train::VariableOp>())
      for (int64_t d = 0; d < variable.getTensorType().getRank(); ++d)
        add(classes.of(variable, d));
    auto addValue = [&](Value value) {
      for (int64_t d = 0; d < tensor(value).getRank(); ++d)
        add(classes.of(value, d));
    };
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      llvm::for_each(function.getArguments(), addValue);
      function.walk([&](Operation *op) { llvm::for_each(op->getResults(), addValue); });
    }
    return minor;
  }

  /// Libraries read and write matrices in pieces of `rowBytes`, which rows must then
  /// begin at. Long rows begin at a line of 128 bytes, which costs less than 1%. An
  /// index that no padding can be added to, or only by copies, stays as it is.
  void alignRows(llvm::MapVector<unsigned, int64_t> &multiples) {
    llvm::MapVector<unsigned, int64_t> wanted; ///< elements
    module.walk([&](train::ContractionOpInterface op) {
      for (Value matrix : {op->getOperand(0), op->getOperand(1), Value(op->getResult(0))}) {
        RankedTensorType type = tensor(matrix);
        int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
        Atoms::List atoms =
            type.getRank() ? classes.of(matrix, type.getRank() - 1) : Atoms::List();
        if (atoms.size() == 1)
          wanted[atoms[0]] = std::max(wanted.lookup(atoms[0]), rowBytes / bytes);
      }
    });
    llvm::DenseSet<unsigned> minor = minorClasses();
    for (auto [id, multiple] : wanted) {
      const IndexClass &index = classes[id];
      bool fits = llvm::all_of(index.neededWhole, [](auto need) {
        return need.second >= 0 && isa<train::NeutralPaddingOpInterface>(need.first);
      });
      int64_t n = parts.lookup(id) ? parts.lookup(id) : 1;
      if (!fits || index.inIntegerInputs || minor.contains(id) || index.size % (n * multiple) == 0)
        continue;
      int64_t line = 128 / rowBytes * multiple;
      multiples[id] = n * (index.size / n >= 100 * line ? line : multiple);
    }
  }

  /// What is stored in finer parts than it is computed with (ZeRO) is padded alike
  /// where that divides: then parts of parts are gathered, without moving rows.
  void growStorage(const Structure &structure) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ValueBinding &h : structure.bindings) {
        if (!h.to || !isa_and_nonnull<ConstrainOp>(h.to.getDefiningOp()))
          continue;
        for (int64_t d = 0; d < tensor(h.to).getRank(); ++d) {
          Atoms::List stored = classes.of(h.use->get(), d), computed = classes.of(h.to, d);
          if (sizeOf(stored) > sizeOf(computed))
            std::swap(stored, computed);
          int64_t size = sizeOf(computed);
          if (stored.empty() || sizeOf(stored) == size || partsOf(stored) <= partsOf(computed))
            continue;
          int64_t inner = sizeOf(ArrayRef(stored).drop_front());
          if (size % inner || size / inner % partsOf(stored.front()))
            continue;
          padded[stored.front()] = size / inner;
          changed = true;
        }
      }
    }
  }

  /// The padded shape, or the same; an error where padding is inside a dimension.
  FailureOr<SmallVector<int64_t>> paddedShape(ArrayRef<int64_t> shape, AtomsOf atomsOf,
                                              Operation *at, const Twine &what) {
    SmallVector<int64_t> result;
    for (auto [d, size] : llvm::enumerate(shape)) {
      for (auto [i, atom] : llvm::enumerate(atomsOf(d))) {
        auto it = padded.find(atom);
        if (it != padded.end() && i != 0)
          return at->emitOpError() << what << " has an index of " << classes[atom].size
                                   << " elements inside its dimension " << d << " of " << size
                                   << "; it cannot be padded to " << it->second
                                   << ": choose a mesh that divides it";
      }
      result.push_back(sizeOf(atomsOf(d)));
    }
    return result;
  }

  LogicalResult findShape(Value value, Operation *at) {
    auto shape = paddedShape(
        tensor(value).getShape(), [&](unsigned d) { return classes.of(value, d); }, at,
        describe(value));
    if (failed(shape))
      return failure();
    if (ArrayRef(*shape) != tensor(value).getShape()) {
      logical[value] = llvm::to_vector(tensor(value).getShape());
      newShapes[value] = *shape;
    }
    return success();
  }

  LogicalResult findShapes(const Structure &structure) {
    for (BlockArgument input : structure.inputs)
      if (failed(checkBatch(input)))
        return failure();
    for (auto variable : module.getOps<train::VariableOp>()) {
      auto type = variable.getTensorType();
      auto shape = paddedShape(
          type.getShape(), [&](unsigned d) { return classes.of(variable, d); }, variable,
          "variable");
      if (failed(shape))
        return failure();
      if (ArrayRef(*shape) == type.getShape())
        continue;
      variable->setAttr(DistDialect::logicalAttr, TypeAttr::get(type));
      variable.setType(RankedTensorType::get(*shape, type.getElementType()));
    }
    for (func::FuncOp function : structure.functions) {
      for (BlockArgument argument : function.getArguments())
        if (failed(findShape(argument, function)))
          return failure();
      WalkResult result = function.walk([&](Operation *op) {
        for (Value value : op->getResults())
          if (failed(findShape(value, op)))
            return WalkResult::interrupt();
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return failure();
    }
    return success();
  }

  /// Sequences are never made up: only the last dimension of tokens, targets and positions may
  /// grow.
  LogicalResult checkBatch(BlockArgument input) {
    StringRef name = train::inputName(input);
    bool tokens = train::isByToken(name);
    if (!tokens && !train::isBySequence(name))
      return success();
    for (int64_t d = 0; d < tensor(input).getRank() - (tokens ? 1 : 0); ++d)
      for (unsigned atom : classes.of(input, d))
        if (auto it = padded.find(atom); it != padded.end())
          return input.getOwner()->getParentOp()->emitOpError("input \"")
                 << name << "\" has " << classes[atom].size << " sequences in dimension " << d
                 << ", which seeds shard into parts that divide " << it->second
                 << "; sequences are never padded: choose a batch that divides";
    return success();
  }

  //===--- before types change ----------------------------------------------===//

  void keepSizes(Operation *op) {
    auto indexed = dyn_cast<train::IndexedOpInterface>(op);
    if (indexed && llvm::any_of(indexed.getIndexedDims(), [&](auto entry) {
          auto it = newShapes.find(entry.first);
          return it != newShapes.end() &&
                 it->second[entry.second] != tensor(entry.first).getDimSize(entry.second);
        }))
      indexed.keepLogicalSizes();
  }

  /// The dimensions of an op's operands and results that it needs whole and that are
  /// padded.
  struct WholeDims {
    SmallVector<std::pair<unsigned, int64_t>> operands, results;
  };

  /// Whether `value`, an operand, may have the padding that PaddingZeros.h puts there.
  static bool runsPadded(Operation *op, Value value) {
    auto neutral = dyn_cast<train::NeutralPaddingOpInterface>(op);
    return neutral && llvm::any_of(op->getOpOperands(), [&](OpOperand &use) {
             return use.get() == value && neutral.getNeutralPadding(use.getOperandNumber());
           });
  }

  void findWhole(Operation *op) {
    auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op);
    if (!ruled)
      return;
    ShardingRule rule = ruled.getShardingRule();
    WholeDims dims;
    llvm::SmallDenseSet<unsigned> needed; // factors
    for (auto [f, factor] : llvm::enumerate(rule.factors))
      if (factor.whole)
        needed.insert(f);
    // Blocks are of real elements, wherever padding lies.
    if (auto reshape = dyn_cast<train::ReshapeOp>(op); reshape && train::reshapesBlocks(reshape))
      for (const TensorFactors &tensor : {rule.operands[0], rule.results[0]})
        for (auto &factors : tensor.dims)
          if (factors.size() > 1)
            needed.insert_range(factors);
    auto add = [&](auto &list, ValueRange values, ArrayRef<TensorFactors> tensors) {
      for (auto [i, value] : llvm::enumerate(values))
        if (auto it = newShapes.find(value); it != newShapes.end() && !runsPadded(op, value))
          for (auto [d, factors] : llvm::enumerate(tensors[i].dims))
            if (it->second[d] != tensor(value).getDimSize(d) &&
                llvm::any_of(factors, [&](unsigned f) { return needed.contains(f); }))
              list.push_back({unsigned(i), int64_t(d)});
    };
    add(dims.operands, op->getOperands(), rule.operands);
    add(dims.results, op->getResults(), rule.results);
    if (!dims.operands.empty() || !dims.results.empty())
      wholeDims.push_back({op, dims});
  }

  /// The dimensions of activations that a boundary makes whole, dividing others instead, and that have more padding before it
  /// than behind it.
  void findExchanged(Operation *op) {
    auto constrain = dyn_cast<ConstrainOp>(op);
    auto it = constrain && constrain.getBoundary() ? newShapes.find(constrain.getX()) : newShapes.end();
    if (it == newShapes.end() ||
        llvm::all_of(constrain.getSharding().getDims(), [](DimAttr dim) { return dim.getAxes().empty(); }))
      return;
    auto isParameters = [&](unsigned atom) { return !classes[atom].parameters.empty(); };
    for (auto [d, dim] : llvm::enumerate(constrain.getSharding().getDims()))
      if (dim.getAxes().empty() && !dim.getOpen() && it->second[d] > tensor(constrain.getX()).getDimSize(d) &&
          llvm::none_of(classes.of(constrain.getX(), d), isParameters))
        exchanged[constrain].push_back(d);
  }

  //===--- types ------------------------------------------------------------===//

  void changeTypes(const Structure &structure) {
    for (BlockArgument input : structure.inputs) {
      inputShapes[input] = newShapes.lookup(input);
      newShapes.erase(input);
      logical.erase(input);
    }
    for (auto &[value, shape] : newShapes) {
      Value v = value;
      v.setType(RankedTensorType::get(shape, tensor(v).getElementType()));
    }
  }

  /// `value` along `dim` with `size` elements: sliced or padded.
  Value resize(OpBuilder &b, Location loc, Value value, int64_t dim, int64_t size) {
    int64_t have = tensor(value).getDimSize(dim);
    if (have == size)
      return value;
    SmallVector<int64_t> shape = logicalShape(value);
    Value result;
    if (size < have) {
      result = train::SliceOp::create(b, loc, value, size, dim);
    } else {
      bool ids = tensor(value).getElementType().isInteger(32);
      result = train::PadOp::create(b, loc, value, size, dim, ids ? uint64_t(-1) : 0);
    }
    shape[dim] = std::min(shape[dim], size);
    if (ArrayRef(shape) != tensor(result).getShape())
      logical[result] = shape;
    return result;
  }

  SmallVector<int64_t> logicalShape(Value value) {
    auto it = logical.find(value);
    return it != logical.end() ? it->second : llvm::to_vector(tensor(value).getShape());
  }

  /// The input keeps its shape, its uses get the padded value. A seed cannot shard
  /// what does not divide: it moves to the padded value.
  void padInput(BlockArgument input) {
    SmallVector<int64_t> shape = inputShapes.lookup(input);
    if (shape.empty() || !input.getOwner()->isEntryBlock())
      return;
    OpBuilder b = OpBuilder::atBlockBegin(input.getOwner());
    auto function = cast<func::FuncOp>(input.getOwner()->getParentOp());
    unsigned number = input.getArgNumber();
    Value value = input;
    llvm::SmallPtrSet<Operation *, 4> made;
    for (auto [d, size] : llvm::enumerate(shape)) {
      Value next = resize(b, input.getLoc(), value, d, size);
      if (next != value)
        made.insert(next.getDefiningOp());
      value = next;
    }
    auto seed = function.getArgAttrOfType<ShardingAttr>(number, DistDialect::seedAttr);
    if (seed && seed.getDims().size() == shape.size()) {
      auto constrain = ConstrainOp::create(b, input.getLoc(), value.getType(), value, seed);
      logical[constrain] = logicalShape(value);
      made.insert(constrain);
      value = constrain;
      function.setArgAttr(number, DistDialect::seedAttr,
                          onlyEven(seed, tensor(input).getShape(), shape));
    }
    input.replaceAllUsesExcept(value, made);
  }

  /// The seed without the axes of dimensions that are padded.
  static ShardingAttr onlyEven(ShardingAttr seed, ArrayRef<int64_t> logical,
                               ArrayRef<int64_t> padded) {
    SmallVector<DimAttr> dims(seed.getDims());
    for (auto [d, dim] : llvm::enumerate(dims))
      if (logical[d] != padded[d])
        dim = DimAttr::get(seed.getContext(), {}, false);
    return ShardingAttr::get(seed.getContext(), seed.getMesh(), dims, seed.getPartial(),
                             seed.getMax(), seed.getReplicated());
  }

  void sliceOutput(OpOperand &use) {
    SmallVector<int64_t> shape = logicalShape(use.get());
    auto function = use.getOwner()->getParentOfType<func::FuncOp>();
    unsigned number = use.getOperandNumber();
    if (auto seed = function.getResultAttrOfType<ShardingAttr>(number, DistDialect::seedAttr))
      if (seed.getDims().size() == shape.size())
        function.setResultAttr(number, DistDialect::seedAttr,
                               onlyEven(seed, shape, tensor(use.get()).getShape()));
    OpBuilder b(use.getOwner());
    for (auto [d, size] : llvm::enumerate(shape))
      use.set(resize(b, use.getOwner()->getLoc(), use.get(), d, size));
  }

  /// The two sides of a boundary need not be padded alike. Where a dimension is divided before it and whole behind it, its padding
  /// is cut off behind it: that needs the dimension whole, and the devices divide another one there instead.
  void fitBoundary(OpOperand &use, Value to) {
    OpBuilder b(use.getOwner());
    SmallVector<int64_t> shape = logicalShape(to), behind(tensor(to).getShape()), through(behind);
    ArrayRef<int64_t> whole = exchanged[to.getDefiningOp()];
    for (auto [d, size] : llvm::enumerate(behind)) {
      if (llvm::is_contained(whole, int64_t(d))) {
        through[d] = tensor(use.get()).getDimSize(d);
        continue;
      }
      if (tensor(use.get()).getDimSize(d) == size)
        continue;
      use.set(resize(b, to.getLoc(), use.get(), d, shape[d]));
      use.set(resize(b, to.getLoc(), use.get(), d, size));
    }
    if (through == behind)
      return;
    to.setType(RankedTensorType::get(through, tensor(to).getElementType()));
    logical[to] = shape;
    b.setInsertionPointAfterValue(to);
    Value fitted = to;
    Operation *first = nullptr;
    for (int64_t d : whole)
      for (int64_t size : {shape[d], behind[d]}) {
        fitted = resize(b, to.getLoc(), fitted, d, size);
        if (!first && fitted != to)
          first = fitted.getDefiningOp();
      }
    to.replaceAllUsesExcept(fitted, first);
  }

  /// The op on logical sizes: operands sliced before, results padded after.
  void runWhole(Operation *op, const WholeDims &dims) {
    OpBuilder b(op);
    for (auto [i, d] : dims.operands) {
      Value value = op->getOperand(i);
      op->setOperand(i, resize(b, op->getLoc(), value, d, logicalShape(value)[d]));
    }
    b.setInsertionPointAfter(op);
    for (OpResult result : op->getResults()) {
      SmallVector<int64_t> full(tensor(result).getShape()), sizes(full);
      SmallVector<int64_t> inside = logicalShape(result);
      for (auto [i, d] : dims.results)
        if (i == result.getResultNumber())
          sizes[d] = inside[d];
      if (sizes == full)
        continue;
      result.setType(RankedTensorType::get(sizes, tensor(result).getElementType()));
      // No seed of the op can shard an index that it needs whole.
      if (auto seeds = op->getAttrOfType<ArrayAttr>(DistDialect::seedAttr)) {
        SmallVector<Attribute> kept(seeds.getValue());
        Attribute &own = kept[result.getResultNumber()];
        if (auto seed = dyn_cast<ShardingAttr>(own); seed && seed.getDims().size() == full.size())
          own = onlyEven(seed, sizes, full);
        op->setAttr(DistDialect::seedAttr, ArrayAttr::get(op->getContext(), kept));
      }
      Value wide = result;
      Operation *first = nullptr;
      for (auto [d, size] : llvm::enumerate(full)) {
        wide = resize(b, op->getLoc(), wide, d, size);
        if (!first && wide != result)
          first = wide.getDefiningOp();
      }
      result.replaceAllUsesExcept(wide, first);
    }
  }

  ModuleOp module;
  Mesh mesh;
  const IndexClasses &classes;
  int64_t rowBytes;
  /// Into how many parts seeds shard classes.
  llvm::MapVector<unsigned, int64_t> parts;
  /// The sizes of classes that grow.
  llvm::DenseMap<unsigned, int64_t> padded;
  llvm::DenseMap<Value, SmallVector<int64_t>> newShapes, inputShapes;
  LogicalShapes logical;
  std::vector<std::pair<Operation *, WholeDims>> wholeDims;
  /// Of boundaries, the dimensions whose padding goes through.
  llvm::DenseMap<Operation *, SmallVector<int64_t>> exchanged;
};

class PadPass : public dist::impl::DistPadBase<PadPass> {
  using DistPadBase::DistPadBase;
  void runOnModule() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh || failed(separateCallees(getOperation())))
      return signalPassFailure();
    FailureOr<IndexClasses> classes = IndexClasses::of(getOperation());
    if (failed(classes) || failed(Padder(getOperation(), mesh, *classes, rowBytes).run()) ||
        failed(mergeEqualCallees(getOperation())))
      signalPassFailure();
  }
};
} // namespace
