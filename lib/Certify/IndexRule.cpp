//===- IndexRule.cpp - rules of ops that work on indices alike ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/IndexRule.h"

#include "Certify/Sums.h"

#include "Train/Train.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// "0 1" or "0+1".
static SmallVector<SmallVector<unsigned, 2>> parseGroups(StringRef text) {
  SmallVector<SmallVector<unsigned, 2>> groups;
  for (StringRef group : llvm::split(text, ' ')) {
    if (group.empty())
      continue;
    groups.emplace_back();
    for (StringRef operand : llvm::split(group, '+')) {
      unsigned number = 0;
      bool wrong = operand.getAsInteger(10, number);
      assert(!wrong && "a group is a list of operands");
      (void)wrong;
      groups.back().push_back(number);
    }
  }
  return groups;
}

IndexRule IndexRule::parse(StringRef text, StringRef linear, Operation *op) {
  IndexRule rule;
  rule.linear = parseGroups(linear);
  llvm::StringMap<unsigned> numbers;
  auto numberOf = [&](const llvm::Twine &name) {
    return numbers.try_emplace(name.str(), numbers.size()).first->second;
  };
  auto read = [&](StringRef side, auto values, auto &tensors) {
    SmallVector<StringRef> texts;
    side.split(texts, ',');
    for (auto [tensor, value] : llvm::zip(texts, values)) {
      SmallVector<StringRef> names;
      tensor.split(names, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
      tensors.emplace_back();
      for (StringRef name : names) {
        if (name == "...") {
          int64_t leading = rankOf(value) - int64_t(names.size()) + 1;
          for (int64_t i = 0; i < leading; ++i)
            tensors.back().push_back(numberOf("." + llvm::Twine(i)));
          continue;
        }
        bool isWhole = name.consume_back("!");
        tensors.back().push_back(numberOf(name));
        if (isWhole)
          rule.whole.insert(tensors.back().back());
      }
    }
  };
  auto [before, after] = text.split("->");
  read(before, op->getOperands(), rule.operands);
  read(after, op->getResults(), rule.results);
  return rule;
}

IndexRule IndexRule::elementwise(StringRef linear, Operation *op) {
  IndexRule rule;
  rule.linear = parseGroups(linear);
  auto label = [](int64_t rank) {
    SmallVector<unsigned, 4> indices;
    for (int64_t dim = 0; dim < rank; ++dim)
      indices.push_back(rank - 1 - dim);
    return indices;
  };
  for (Value operand : op->getOperands())
    rule.operands.push_back(label(rankOf(operand)));
  for (Value result : op->getResults())
    rule.results.push_back(label(rankOf(result)));
  return rule;
}

namespace {
/// One application of a rule: what is known of each index, and of each axis.
class Application {
public:
  Application(const IndexRule &rule, Operation *op, MutableArrayRef<Fact> operands,
              Checker &checker)
      : rule(rule), op(op), operands(operands), checker(checker) {}

  LogicalResult readOperands();
  /// As pin, of the dimensions that are whole or reduced alone.
  void pinRows(Fact &fact, Value value, ArrayRef<unsigned> tensor);
  LogicalResult readRows(unsigned o, ArrayRef<unsigned> tensor);
  LogicalResult checkRows();
  /// Of sums, and of sums of products: two indices may be divided along one axis. If one of them is summed over,
  /// or in other pieces than equal parts in order, devices have terms of the result, which the rules
  /// of few other ops know.
  void divideProduct();
  LogicalResult checkIndices();
  LogicalResult checkPartial();
  LogicalResult checkTerms();
  LogicalResult readChunks();
  LogicalResult checkPadding();
  LogicalResult checkRoots();
  Distributions makeResults() const;
  /// Says what the result is a sum over.
  void describe(SmallVectorImpl<SummedIndex> &sums) const;

private:
  struct Index {
    int64_t extent = anyExtent, logical = anyExtent;
    Axes axes;
    std::optional<Pieces> pieces;
    unsigned operand = 0, dim = 0; ///< which said so
    bool isReduced = false;
    bool isKnown = false; ///< whether an operand says how many elements there are
  };
  static Axes axesOf(const Index &index) { return index.pieces ? index.pieces->group : index.axes; }
  std::string str(ArrayRef<unsigned> axes) const { return checker.mesh.str(axes); }
  /// Divides index `number` along an axis; false if another one is, and both may not be.
  bool take(unsigned axis, unsigned number) {
    auto [found, isNew] = indexOf.try_emplace(axis, number);
    if (isNew)
      return true;
    bool isOfSummands = summed.count(found->second);
    if (!dividesTwo || indices[number].isReduced ||
        (!isOfSummands && indices[found->second].isReduced) || !shared.insert(axis).second)
      return false;
    if (!isOfSummands)
      diagonal.insert(number);
    return true;
  }
  /// Whether an index is one of the three along which rows of choices are numbered.
  bool isOfRows(unsigned number) const {
    return number == block || number == sequence || number == slot;
  }
  /// Whether the op is linear in these operands, and all others that it adds to them are 0; or else
  /// one of the others.
  bool isLinearIn(const std::set<unsigned> &terms, std::optional<unsigned> &complete) const;
  /// Whether all that the op computes at the padding of an index is 0.
  bool isZeroAt(unsigned number) const;
  /// What operand `o` is there: 0, or else.
  bool isZeroAt(unsigned number, unsigned o) const;
  /// Whether it is not below 0.
  bool isPositiveAt(unsigned number) const;

  const IndexRule &rule;
  Operation *op;
  MutableArrayRef<Fact> operands;
  Checker &checker;
  std::map<unsigned, Index> indices;
  std::map<unsigned, unsigned> indexOf; ///< by axis
  Axes partial;
  Axes root; ///< along which the first device alone has an operand, and so the results
  std::optional<Terms> terms;                 ///< of operands
  std::optional<unsigned> sideOfTerms;        ///< the index that is divided along their group
  std::optional<Pieces> partsOfTerms;         ///< ... as it is
  bool isProduct = false;                     ///< a sum of products
  bool dividesTwo = false;                    ///< whether two indices may be divided along an axis
  std::set<unsigned> shared;                  ///< the axes along which two are
  std::set<unsigned> diagonal;                ///< the second one of two that results have
  std::set<unsigned> summed;                  ///< the indices that summands are of
  std::optional<Summands> summands;           ///< of results
  std::optional<Chunks> chunks;               ///< of operands
  SmallVector<unsigned, 4> chunked;           ///< the indices of tokens that chunks have some of
  std::optional<RoutedRows> rows;             ///< of operands
  unsigned block = 0, sequence = 0, slot = 0; ///< their indices
};
} // namespace

/// All tensors of rows must have the same ones, in the same dimensions.
LogicalResult Application::readRows(unsigned o, ArrayRef<unsigned> tensor) {
  const std::optional<RoutedRows> &found = operands[o].type.rows;
  if (!found)
    return success();
  if (found->isIds)
    return checker.refuse(op) << "reads " << Checker::nameOf(op, o)
                              << ", numbers of rows, as if they were global";
  if (*found->slotDim != *found->blockDim + 2)
    return checker.refuse(op) << "reads " << Checker::nameOf(op, o)
                              << ", whose blocks, sequences and slots are in another order";
  unsigned blockOf = tensor[*found->blockDim], slotOf = tensor[*found->slotDim];
  sequence = tensor[*found->blockDim + 1];
  if (rows && (!rows->isLike(*found) || block != blockOf || slot != slotOf))
    return checker.refuse(op) << "combines " << Checker::nameOf(op, o)
                              << " with a tensor of other rows";
  rows = found;
  block = blockOf;
  slot = slotOf;
  return success();
}

/// A tensor of rows cannot be combined row by row with a tensor of anything else, and a sum over
/// rows would include rows that belong to no routing choice.
LogicalResult Application::checkRows() {
  if (!rows)
    return success();
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, number] : llvm::enumerate(tensor))
      if (isOfRows(number) && !operands[o].type.rows && !operands[o].type.isAny(dim))
        return checker.refuse(op) << "combines " << Checker::nameOf(op, o)
                                  << ", which has no rows of routing choices, with rows";
  for (unsigned number : {block, sequence, slot})
    if (indices[number].isReduced || rule.whole.count(number))
      return checker.refuse(op) << "works along rows of routing choices, which are in no order";
  return success();
}

void Application::pinRows(Fact &fact, Value value, ArrayRef<unsigned> tensor) {
  ArrayRef<int64_t> local = cast<RankedTensorType>(value.getType()).getShape();
  bool isPinned = false;
  for (auto [dim, number] : llvm::enumerate(tensor))
    if (fact.type.isAny(dim) && !indices[number].isKnown &&
        (indices[number].isReduced || rule.whole.count(number))) {
      fact.type.shape[dim] = local[dim];
      isPinned = true;
    }
  if (isPinned)
    fact.expression = checker.make(value.getLoc(), "of extents", {}, {fact.expression},
                                   fact.expression->element, fact.type.expressionShape());
}

LogicalResult Application::readOperands() {
  if (rule.operands.size() != operands.size() || rule.results.size() != op->getNumResults())
    return checker.refuse(op) << "has operands or results that its rule does not know";
  for (auto [o, tensor] : llvm::enumerate(rule.operands)) {
    if (tensor.size() != size_t(operands[o].type.rank()))
      return checker.refuse(op) << "has " << Checker::nameOf(op, o) << " of rank "
                                << operands[o].type.rank() << ", not " << tensor.size();
    if (operands[o].offset)
      return checker.refuse(op) << "reads " << Checker::nameOf(op, o)
                                << ", whose numbers count from the device's own offset";
    if (failed(readRows(o, tensor)))
      return failure();
    for (unsigned index : tensor)
      indices[index];
    if (const std::optional<Terms> &found = operands[o].type.terms; found && !terms) {
      terms = found;
      for (auto [dim, number] : llvm::enumerate(tensor))
        if (auto pieces = operands[o].type.piecesOf(dim, checker.mesh);
            pieces && pieces->group == found->group) {
          sideOfTerms = number;
          partsOfTerms = pieces;
        }
    }
  }
  for (auto &[number, index] : indices)
    for (auto &tensor : rule.results)
      index.isReduced |= !llvm::is_contained(tensor, number);
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, number] : llvm::enumerate(tensor))
      indices[number].isKnown |= !operands[o].type.isAny(dim);
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    if (o < op->getNumOperands())
      pinRows(operands[o], op->getOperand(o), tensor);
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, number] : llvm::enumerate(tensor)) {
      const Distribution &type = operands[o].type;
      Index &index = indices[number];
      if (type.isAny(dim))
        continue;
      if (index.extent == anyExtent) {
        index.extent = type.shape[dim];
        index.logical = type.logical(dim);
        index.axes = type.dims[dim];
        if (auto found = type.pieces.find(dim); found != type.pieces.end())
          index.pieces = found->second;
        index.operand = o;
        index.dim = dim;
        continue;
      }
      auto found = type.pieces.find(dim);
      if (index.pieces != (found == type.pieces.end() ? std::nullopt
                                                      : std::optional(found->second)))
        return checker.refuse(op) << "combines dimension " << index.dim << " of "
                                  << Checker::nameOf(op, index.operand) << " with other pieces, dimension "
                                  << dim << " of " << Checker::nameOf(op, o) << ", "
                                  << type.str(checker.mesh);
      if (index.extent != type.shape[dim])
        return checker.refuse(op) << "combines dimension " << index.dim << " of "
                                  << Checker::nameOf(op, index.operand) << ", which has "
                                  << index.extent << " elements in all, with dimension " << dim
                                  << " of " << Checker::nameOf(op, o) << ", which has "
                                  << type.shape[dim];
      if (index.logical != type.logical(dim))
        return checker.refuse(op) << "combines dimension " << index.dim << " of "
                                  << Checker::nameOf(op, index.operand) << ", which has "
                                  << index.logical
                                  << " elements before its padding, with dimension " << dim
                                  << " of " << Checker::nameOf(op, o) << ", which has "
                                  << type.logical(dim);
      if (index.axes != type.dims[dim])
        return checker.refuse(op) << "combines dimension " << index.dim << " of "
                                  << Checker::nameOf(op, index.operand) << ", sharded over "
                                  << str(index.axes) << ", with dimension " << dim << " of "
                                  << Checker::nameOf(op, o) << ", sharded over "
                                  << str(type.dims[dim]);
    }
  for (auto &[number, given] : rule.given) {
    indices[number].extent = given.extent;
    indices[number].axes = given.axes;
    indices[number].logical = given.logical.value_or(given.extent);
  }
  return success();
}

void Application::divideProduct() {
  // What works on elements one by one does so on those that a device has, whichever they are.
  dividesTwo = isa<train::AddOp>(op);
  bool isPlain = llvm::all_of(operands, [](const Fact &fact) {
    return !fact.type.terms && !fact.type.chunks && !fact.type.rows;
  });
  if (!isPlain || rule.max || rule.results.size() != 1 ||
      !isa<train::ContractionOpInterface>(op))
    return;
  isProduct = dividesTwo = true;
  for (auto &[number, index] : indices) {
    // Those that a dimension of the result is divided along, too.
    Axes shared;
    for (unsigned axis : axesOf(index))
      if (llvm::any_of(indices, [&](const auto &other) {
            return !other.second.isReduced && llvm::is_contained(axesOf(other.second), axis);
          }))
        shared.push_back(axis);
    if (!index.isReduced || (shared.empty() && !index.pieces) || rule.whole.count(number))
      continue;
    std::optional<Summands> own;
    if (checker.mesh.size(axesOf(index)) > mostDevices)
      continue;
    if (!index.pieces)
      own = Summands::ofDevices(shared, checker.mesh);
    else if (auto blocks = Summands::ofBlocks(*index.pieces, index.extent))
      own = withoutOwn(*blocks, shared, checker.mesh);
    if (!own || own->count * (summands ? summands->count : 1) > mostDevices)
      continue;
    summands = summands ? summands->times(*own) : own;
    summed.insert(number);
  }
}

void Application::describe(SmallVectorImpl<SummedIndex> &sums) const {
  for (auto &[number, index] : indices)
    if (summed.count(number) || (isProduct && index.isReduced && !index.axes.empty()))
      sums.push_back({nullptr, number, index.extent, axesOf(index)});
}

LogicalResult Application::checkIndices() {
  for (unsigned number : summed)
    for (unsigned axis : axesOf(indices[number]))
      if (!take(axis, number))
        return checker.refuse(op) << "sums over two dimensions that are both divided along "
                                  << str({axis});
  for (auto &[number, index] : indices) {
    if (summed.count(number))
      continue;
    if (index.pieces) {
      bool isSummed = index.isReduced && number != sideOfTerms;
      if (rule.whole.count(number) || isSummed || index.pieces->hasZeros())
        return checker.refuse(op) << "reads dimension " << index.dim << " of "
                                  << Checker::nameOf(op, index.operand) << " in pieces, "
                                  << operands[index.operand].type.str(checker.mesh);
      for (unsigned axis : index.pieces->group)
        if (!take(axis, number))
          return checker.refuse(op)
                 << "combines two dimensions that are both divided along " << str({axis});
    }
    if (rule.whole.count(number) && !index.axes.empty())
      return checker.refuse(op) << "needs dimension " << index.dim << " of "
                                << Checker::nameOf(op, index.operand)
                                << " whole, which is sharded over " << str(index.axes);
    for (unsigned axis : index.axes)
      if (!take(axis, number))
        return checker.refuse(op) << "combines two dimensions that are both sharded over "
                                  << str({axis});
  }
  return success();
}

bool Application::isLinearIn(const std::set<unsigned> &terms,
                             std::optional<unsigned> &complete) const {
  for (const auto &group : rule.linear) {
    if (!llvm::all_of(terms, [&](unsigned o) { return llvm::is_contained(group, o); }))
      continue;
    complete.reset();
    for (unsigned o : group)
      if (!terms.count(o) && !isZero(operands[o].expression))
        complete = o;
    if (!complete)
      return true;
  }
  return false;
}

/// Whether what devices have are the blocks of queries, or of keys, that their terms are of.
static bool haveBlocksOf(const Terms &terms, const Pieces &parts) {
  auto blocks = parts.single();
  return blocks && llvm::all_of(llvm::zip_equal(terms.of, *blocks), [&](auto pair) {
           return llvm::all_of(std::get<0>(pair), [&](const Terms::Pair &own) {
             return (terms.side == Terms::queries ? own.queries : own.keys) == std::get<1>(pair);
           });
         });
}

/// The op makes of terms the same terms of its result, if it is linear in them and all else is the
/// same on all devices of their group, or divided as they are.
LogicalResult Application::checkTerms() {
  if (!terms)
    return success();
  std::set<unsigned> readers;
  for (auto [o, fact] : llvm::enumerate(operands))
    if (fact.type.terms)
      readers.insert(o);
  unsigned first = *readers.begin();
  auto refuse = [&] {
    std::string why;
    Fact fact = operands[first];
    settle(fact, checker, &why);
    return checker.refuse(op) << "reads " << Checker::nameOf(op, first) << ", which " << why << ", ";
  };
  std::optional<unsigned> complete;
  if (terms->kind != Terms::sum || rule.max || !isLinearIn(readers, complete))
    return refuse() << "as if it were complete";
  for (unsigned o : readers)
    if (*operands[o].type.terms != *terms)
      return refuse() << "beside other terms";
  // What is summed over must be all that the terms are of: nothing shows it later.
  if (sideOfTerms && indices[*sideOfTerms].isReduced && !haveBlocksOf(*terms, *partsOfTerms))
    return checker.refuse(op) << "adds up " << Checker::nameOf(op, first) << ", "
                              << operands[first].type.str(checker.mesh)
                              << ", which has not all of the queries or keys that its terms are of";
  for (unsigned axis : terms->group) {
    auto found = indexOf.find(axis);
    std::optional<unsigned> number;
    if (found != indexOf.end())
      number = found->second;
    if (number != sideOfTerms || (terms->side == Terms::none) != !number)
      return refuse() << "beside a tensor that is divided along " << str({axis});
    for (const Fact &fact : operands)
      if (llvm::is_contained(fact.type.sum, axis) || llvm::is_contained(fact.type.root, axis))
        return refuse() << "beside a tensor that is partial or on a root along " << str({axis});
  }
  checker.use("linear ops and sums commute with sums over devices");
  return success();
}

/// Chunks of tokens are combined with chunks of the same tokens alone, and with what has no tokens.
LogicalResult Application::readChunks() {
  for (auto [o, tensor] : llvm::enumerate(rule.operands)) {
    const std::optional<Chunks> &found = operands[o].type.chunks;
    if (!found)
      continue;
    ArrayRef<unsigned> tokens = ArrayRef(tensor).slice(found->first, found->dims);
    if (!found->axis || (chunks && (!chunks->isLike(*found) || tokens != ArrayRef(chunked))))
      return checker.refuse(op) << "combines " << Checker::nameOf(op, o) << ", "
                                << operands[o].type.str(checker.mesh) << ", with other chunks";
    chunks = found;
    chunked.assign(tokens.begin(), tokens.end());
  }
  if (!chunks)
    return success();
  auto isOfTokens = [&](unsigned number) { return llvm::is_contained(chunked, number); };
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, number] : llvm::enumerate(tensor))
      if (const Distribution &type = operands[o].type;
          isOfTokens(number) && !type.isAny(dim) &&
          (!type.chunks || !type.chunks->has(dim)))
        return checker.refuse(op) << "combines " << Checker::nameOf(op, o)
                                  << ", which has all tokens, with a chunk of them";
  for (auto &tensor : rule.results) {
    int64_t count = llvm::count_if(tensor, isOfTokens);
    size_t first = llvm::find(tensor, chunked[0]) - tensor.begin();
    bool hasAll = count == chunks->dims && first + chunked.size() <= tensor.size() &&
                  ArrayRef(tensor).slice(first, chunked.size()) == ArrayRef(chunked);
    if (count != 0 && !hasAll)
      return checker.refuse(op) << "keeps some dimensions of a chunk of tokens";
  }
  for (unsigned number : chunked)
    if (rule.whole.count(number) || rule.given.count(number) || llvm::count(chunked, number) > 1)
      return checker.refuse(op) << "works along the tokens that a chunk has some of";
  if (auto [other, isNew] = indexOf.try_emplace(*chunks->axis, chunked[0]); !isNew)
    return checker.refuse(op) << "combines a chunk of tokens with what is divided along "
                              << str({*chunks->axis});
  return success();
}

LogicalResult Application::checkPartial() {
  std::map<unsigned, std::set<unsigned>> readers; // by axis: the operands that are partial
  for (auto [o, fact] : llvm::enumerate(operands)) {
    if (!fact.type.max.empty())
      return checker.refuse(op) << "reads " << Checker::nameOf(op, o)
                                << ", which is partial by maximum over " << str(fact.type.max)
                                << ", as if it were complete";
    for (unsigned axis : fact.type.sum)
      readers[axis].insert(o);
  }
  for (auto &[axis, partials] : readers) {
    unsigned first = *partials.begin();
    if (indexOf.count(axis))
      return checker.refuse(op) << "reads " << Checker::nameOf(op, first)
                                << ", which is partial by sum over " << str({axis})
                                << ", beside a tensor that is sharded over it";
    std::optional<unsigned> complete;
    bool isLinear = isLinearIn(partials, complete);
    if (!isLinear && complete)
      return checker.refuse(op) << "adds " << Checker::nameOf(op, *complete)
                                << ", which every device along " << str({axis}) << " has, to "
                                << Checker::nameOf(op, first)
                                << ", which is partial by sum over it: it would count "
                                << checker.mesh.axes[axis].size << " times";
    if (!isLinear)
      return checker.refuse(op) << "reads " << Checker::nameOf(op, first)
                                << ", which is partial by sum over " << str({axis})
                                << ", as if it were complete";
    partial.push_back(axis);
    checker.use("linear ops and sums commute with sums over devices");
  }
  if (rule.max && !partial.empty())
    return checker.refuse(op) << "takes the maximum of terms of a sum over " << str(partial);
  return success();
}

bool Application::isZeroAt(unsigned number, unsigned o) const {
  if (isZero(operands[o].expression) && operands[o].type.padding.empty())
    return true;
  for (auto [dim, index] : llvm::enumerate(rule.operands[o]))
    if (index == number && operands[o].type.isFilled(dim, 0))
      return true;
  return false;
}

bool Application::isPositiveAt(unsigned number) const {
  return rule.keepsSign && !isZeroAt(number) &&
         llvm::all_of(llvm::seq<unsigned>(0, operands.size()), [&](unsigned o) {
           for (auto &[dim, padding] : operands[o].type.padding)
             if (rule.operands[o][dim] == number)
               return padding.isPositive || (padding.fill && *padding.fill >= 0);
           return isNotNegative(operands[o].expression, checker);
         });
}

/// A product with zeros is 0, and so is a sum of zeros.
bool Application::isZeroAt(unsigned number) const {
  if (rule.ids)
    for (auto [dim, index] : llvm::enumerate(rule.operands[*rule.ids]))
      if (index == number && operands[*rule.ids].type.isFilled(dim, -1))
        return true;
  for (const auto &group : rule.linear)
    if (llvm::all_of(group, [&](unsigned o) { return isZeroAt(number, o); }))
      return true;
  return rule.keepsZero && llvm::all_of(llvm::seq<unsigned>(0, operands.size()), [&](unsigned o) {
           return !llvm::is_contained(rule.operands[o], number) || isZeroAt(number, o);
         });
}

/// Sums, maxima and rows must be those of the elements before the padding.
LogicalResult Application::checkPadding() {
  for (auto [o, tensor] : llvm::enumerate(rule.operands))
    for (auto &[dim, padding] : operands[o].type.padding) {
      unsigned number = tensor[dim];
      bool isWhole = rule.whole.count(number), isReduced = indices[number].isReduced;
      if ((isWhole || isReduced) && rule.neutral && padding.fill == *rule.neutral)
        continue;
      if (isWhole || (isReduced && (rule.max || !isZeroAt(number))))
        return checker.refuse(op) << (isWhole ? "reads" : "reduces") << " dimension " << dim
                                  << " of " << Checker::nameOf(op, o) << " with its padding, "
                                  << operands[o].type.str(checker.mesh);
      if (padding.fill && std::isinf(*padding.fill))
        return checker.refuse(op) << "computes with infinite padding of " << Checker::nameOf(op, o);
    }
  return success();
}

/// What the first device alone has is computed with there, so it must have all else.
LogicalResult Application::checkRoots() {
  for (auto [o, fact] : llvm::enumerate(operands))
    for (unsigned axis : fact.type.root) {
      if (indexOf.count(axis) || llvm::is_contained(partial, axis))
        return checker.refuse(op) << "reads " << Checker::nameOf(op, o)
                                  << ", which the first device along " << str({axis})
                                  << " has alone, beside a part of a tensor";
      if (!llvm::is_contained(root, axis))
        root.push_back(axis);
    }
  llvm::sort(root);
  return success();
}

Distributions Application::makeResults() const {
  Distributions results;
  for (auto &tensor : rule.results) {
    Distribution type;
    for (unsigned number : tensor) {
      const Index &index = indices.at(number);
      type.shape.push_back(index.extent);
      type.dims.push_back(index.axes);
      if (index.pieces)
        type.setPieces(type.rank() - 1, *index.pieces, checker.mesh);
      if (diagonal.count(number)) {
        type.pieces[type.rank() - 1] =
            index.pieces.value_or(Pieces::ofShards(index.axes, index.extent, checker.mesh));
        type.dims.back().clear();
      }
      if (index.logical != index.extent)
        type.padding[type.rank() - 1] = {index.logical,
                                         isZeroAt(number) ? std::optional(0.0) : std::nullopt,
                                         isPositiveAt(number)};
    }
    type.sum = partial;
    type.root = root;
    if (rows) {
      type.rows = rows;
      type.rows->blockDim = llvm::find(tensor, block) - tensor.begin();
      type.rows->slotDim = llvm::find(tensor, slot) - tensor.begin();
    }
    if (terms) {
      type.terms = terms;
      if (sideOfTerms && !llvm::is_contained(tensor, *sideOfTerms))
        type.terms->side = Terms::none;
    }
    type.summands = summands;
    if (chunks && llvm::is_contained(tensor, chunked[0])) {
      type.chunks = chunks;
      type.chunks->first = llvm::find(tensor, chunked[0]) - tensor.begin();
    } else if (chunks)
      (rule.max ? type.max : type.sum).push_back(*chunks->axis);
    for (auto &[number, index] : indices)
      if (!llvm::is_contained(tensor, number) && number != sideOfTerms)
        for (unsigned axis : summed.count(number) ? axesOf(index) : index.axes)
          if (!summed.count(number) || !llvm::is_contained(summands->group, axis))
            (rule.max ? type.max : type.sum).push_back(axis);
    llvm::sort(type.sum);
    llvm::sort(type.max);
    results.push_back(type);
  }
  return results;
}

FailureOr<Distributions> IndexRule::apply(Operation *op, MutableArrayRef<Fact> facts,
                                          Checker &checker, SmallVectorImpl<SummedIndex> *found) const {
  for (Fact &fact : facts) {
    settle(fact, checker);
    // Equal parts in order may be known as pieces, where another dimension is divided, too.
    for (const auto &[dim, pieces] : std::map(fact.type.pieces))
      fact.type.setPieces(dim, pieces, checker.mesh);
  }
  Application application(*this, op, facts, checker);
  if (failed(application.readOperands()))
    return failure();
  if (found)
    application.divideProduct();
  if (failed(application.checkIndices()) ||
      failed(application.readChunks()) || failed(application.checkRows()) ||
      failed(application.checkPartial()) || failed(application.checkTerms()) ||
      failed(application.checkRoots()) || failed(application.checkPadding()))
    return failure();
  if (found)
    application.describe(*found);
  return application.makeResults();
}

SmallVector<const Expression *> certify::expressionsOf(Facts facts) {
  return llvm::map_to_vector(facts, [](const Fact &fact) { return fact.expression; });
}

LogicalResult certify::applyToKnown(IndexRule rule, unsigned index, Operation *op, Facts operands,
                                    llvm::function_ref<Attribute(int64_t)> attributes,
                                    NewFacts &results, Checker &checker) {
  IndexRule::Given &given = rule.given[index];
  auto isInGraph = [&](int64_t logical) {
    given.logical = logical;
    FactList facts(operands);
    auto types = rule.apply(op, facts, checker);
    return succeeded(types) &&
           checker.proof.expressions.find(op->getLoc(), op->getName().getStringRef(),
                                          attributes(logical), expressionsOf(facts), 0,
                                          getElementTypeOrSelf(op->getResult(0).getType()),
                                          types->front().expressionShape());
  };
  auto found = llvm::find_if(checker.proof.padded, [&](auto extents) {
    return extents.first == given.extent && isInGraph(extents.second);
  });
  given.logical = found == checker.proof.padded.end() ? given.extent : found->second;
  return applyRule(rule, op, operands, results, checker, attributes(*given.logical));
}

LogicalResult certify::applyRule(const IndexRule &rule, Operation *op, Facts operands,
                                 NewFacts &results, Checker &checker, Attribute attributes) {
  FactList facts(operands);
  if (isa<train::ContractionOpInterface>(op))
    divideFactors(op, facts, checker);
  if (llvm::any_of(facts, [](const Fact &fact) { return fact.type.summands.has_value(); }))
    return applyToTerms(rule, op, facts, results, checker, attributes);
  SmallVector<SummedIndex, 0> summed;
  FailureOr<Distributions> types = rule.apply(op, facts, checker, &summed);
  if (failed(types))
    return failure();
  if (!attributes)
    attributes = op->getPropertiesAsAttribute();
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  bool isProductWithZero = llvm::any_of(rule.linear, [&](const auto &group) {
    return llvm::all_of(group, [&](unsigned o) { return isZero(operands[o].expression); });
  });
  if (isProductWithZero) {
    checker.use("0 x = 0");
    for (auto [type, result] : llvm::zip_equal(*types, op->getResults())) {
      const Expression *zero =
          checker.fill(op->getLoc(), 0, getElementTypeOrSelf(result.getType()), type.rank());
      Distribution any = Distribution::replicated(zero->shape);
      any.root = type.root;
      results.push_back({zero, any});
    }
    return success();
  }
  for (auto [index, type] : llvm::enumerate(*types))
    results.push_back(
        {checker.make(op, attributes, expressionsOf(facts), index, type.expressionShape()), type});
  if (!isa<train::ContractionOpInterface>(op))
    return success();
  Fact &result = results.back();
  for (SummedIndex &index : summed)
    index.of = result.expression;
  result.summed = summed;
  if (std::optional<Summands> &summands = result.type.summands)
    summands->term = termOf(summed, summands->group, checker);
  return success();
}
