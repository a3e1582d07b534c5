//===- TrainStorage.cpp - which rows of files variables are stored in -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Storage.h"
#include "meshwright/runtime/StorageName.h"
#include "meshwright/runtime/StorageRows.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace {
/// A tensor of a file, and the variables that are stored in it.
struct StoredTensor {
  SmallVector<unsigned> variables;
  llvm::BitVector rows; ///< those that they have
};

std::string patternOf(VariableOp variable) {
  if (StorageAttr storage = variable.getStorageAttr())
    return storage.getTensor().str();
  return variable.getSymName().str() + (variable.getStacked() ? ".{layer}" : "");
}

/// The number in the name of the first layer's tensor; none where names have no number of a layer.
std::optional<int64_t> firstNumber(StringRef pattern) {
  std::optional<std::string> name = layerTensorName(pattern, 0);
  if (!name)
    return std::nullopt;
  size_t begin = pattern.find("{layer");
  size_t behind = pattern.size() - pattern.find('}', begin) - 1;
  int64_t number = 0;
  StringRef(*name).drop_front(begin).drop_back(behind).getAsInteger(10, number);
  return number;
}

/// Goes through the tensors of files. Of neighbouring layers that the same variables are stored in,
/// which may be millions, one stands for all.
class StorageVerifier {
public:
  explicit StorageVerifier(ArrayRef<StoredVariable> variables) : variables(variables) {}

  LogicalResult run() {
    for (auto [variable, type] : variables)
      addCuts(variable, type);
    for (unsigned i = 0; i < variables.size(); ++i)
      if (failed(findRows(i)) || failed(add(i)))
        return failure();
    for (auto &[name, tensor] : tensors) {
      VariableOp variable = variables[tensor.variables.front()].variable;
      if (int hole = tensor.rows.find_first_unset(); hole >= 0)
        return variable.emitOpError("is stored in tensor '")
               << name << "' of " << tensor.rows.size() << " rows, of which no variable has row "
               << hole << "; a file of it could not be written";
    }
    return success();
  }

private:
  void addCuts(VariableOp variable, RankedTensorType type);
  LogicalResult findRows(unsigned i);
  LogicalResult add(unsigned i);
  bool canShare(unsigned i, unsigned j) const;

  ArrayRef<StoredVariable> variables;
  /// Numbers of layers at which other variables begin or end.
  std::set<int64_t> cuts;
  /// Of each variable the rows that it has along the dimension that its storage names; none where it
  /// has all of a tensor.
  std::vector<llvm::BitVector> rows;
  llvm::MapVector<std::string, StoredTensor, std::map<std::string, unsigned>> tensors;
  DenseSet<std::pair<unsigned, unsigned>> compared;
};
} // namespace

void StorageVerifier::addCuts(VariableOp variable, RankedTensorType type) {
  std::string pattern = patternOf(variable);
  if (auto first = firstNumber(pattern)) {
    cuts.insert({*first, *first + (variable.getStacked() ? type.getDimSize(0) : 1)});
    return;
  }
  // A name without a mark may be that of one layer of others.
  for (StringRef rest = pattern; !rest.empty();) {
    int64_t number;
    rest = rest.drop_until(llvm::isDigit);
    StringRef digits = rest.take_while(llvm::isDigit);
    if (!digits.getAsInteger(10, number) && number < std::numeric_limits<int64_t>::max())
      cuts.insert({number, number + 1});
    rest = rest.drop_front(digits.size());
  }
}

LogicalResult StorageVerifier::findRows(unsigned i) {
  auto [variable, type] = variables[i];
  llvm::BitVector &own = rows.emplace_back();
  StorageAttr storage = variable.getStorageAttr();
  if (!storage || storage.getFull() == 0)
    return success();
  SmallVector<int64_t> shape(type.getShape().drop_front(variable.getNumbered()));
  if (storage.getTranspose())
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  own.resize(storage.getFull());
  ArrayRef<int64_t> runs;
  if (storage.getRuns())
    runs = storage.getRuns().asArrayRef();
  int64_t last = -1, size = shape[storage.getDim()];
  bool isBelow = numberMark(storage.getTensor().str()) == rowsMark;
  int64_t numbers = isBelow ? type.getDimSize(variable.getStacked()) : 1;
  for (int64_t number = 0; number < numbers; ++number)
    forEachStoredRows(storage.getOffset() + number * size, storage.getPeriod(), runs, 0, size,
                      [&](const StoredRows &part) {
                        last = std::max(last, part.fileRow + (part.count - 1) * part.step);
                        for (int64_t row = 0; row < part.count; ++row)
                          if (int64_t at = part.fileRow + row * part.step; at < storage.getFull())
                            own.set(at);
                      });
  if (last >= storage.getFull())
    return variable.emitOpError("is stored in tensor '")
           << storage.getTensor() << "' up to row " << last << ", but that has "
           << storage.getFull();
  return success();
}

/// Whether both can be saved to one tensor: each has rows of its own.
bool StorageVerifier::canShare(unsigned i, unsigned j) const {
  VariableOp one = variables[i].variable, other = variables[j].variable;
  StorageAttr a = one.getStorageAttr(), b = other.getStorageAttr();
  return a && b && a.getFull() && a.getFull() == b.getFull() && a.getDim() == b.getDim() &&
         a.getTranspose() == b.getTranspose() && !rows[i].anyCommon(rows[j]);
}

LogicalResult StorageVerifier::add(unsigned i) {
  auto [variable, type] = variables[i];
  std::string pattern = patternOf(variable);
  std::optional<int64_t> first = firstNumber(pattern);
  SmallVector<int64_t> layers{0};
  if (first && variable.getStacked())
    for (auto cut = cuts.upper_bound(*first); cut != cuts.end() && *cut < *first + type.getDimSize(0); ++cut)
      layers.push_back(*cut - *first);
  for (int64_t layer : layers) {
    std::string name = layerTensorName(pattern, layer).value_or(pattern);
    StoredTensor &tensor = tensors[name];
    for (unsigned j : tensor.variables)
      if (compared.insert({j, i}).second && !canShare(j, i))
        return variable.emitOpError("is stored in tensor '")
               << name << "', in rows where @" << VariableOp(variables[j].variable).getSymName()
               << " is; give it a storage of its own";
    tensor.variables.push_back(i);
    tensor.rows.resize(rows[i].size());
    tensor.rows |= rows[i];
  }
  return success();
}

int64_t train::storedTensors(VariableOp variable) {
  return ShapedType::getNumElements(
      variable.getTensorType().getShape().take_front(variable.getNumbered()));
}

std::string train::storedTensorName(VariableOp variable, int64_t number) {
  int64_t each = 1;
  if (variable.getNumbered() > int64_t(variable.getStacked()))
    each = variable.getTensorType().getDimSize(variable.getStacked());
  std::string name = numberedTensorName(patternOf(variable), number % each);
  return layerTensorName(name, number / each).value_or(name);
}

bool train::isAddedByAdapter(VariableOp variable) {
  return variable->hasAttr(adapterAttr) && StringRef(patternOf(variable)).contains(".lora_");
}

StorageAttr train::storageInModel(VariableOp variable) {
  StorageAttr storage = variable.getStorageAttr();
  StringRef tensor = storage.getTensor();
  tensor.consume_front(adapterPrefix);
  return StorageAttr::get(storage.getContext(), tensor, storage.getTranspose(), storage.getDim(),
                          storage.getOffset(), storage.getFull(), storage.getPeriod(), storage.getRuns(),
                          storage.getOptional());
}

LogicalResult train::verifyStorage(ArrayRef<StoredVariable> variables) {
  return StorageVerifier(variables).run();
}

LogicalResult train::verifyStorage(ModuleOp module) {
  SmallVector<StoredVariable> parameters;
  for (auto variable : module.getOps<VariableOp>())
    if (variable.isParameter())
      parameters.push_back({variable, variable.getTensorType()});
  return verifyStorage(parameters);
}
