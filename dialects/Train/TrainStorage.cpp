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

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace {
/// A tensor of a file, and the variables that are stored in it.
struct StoredTensor {
  SmallVector<unsigned> variables;
  llvm::BitVector rows; ///< those that they have
};

class StorageVerifier {
public:
  explicit StorageVerifier(ArrayRef<StoredVariable> variables) : variables(variables) {}

  LogicalResult run() {
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
  LogicalResult findRows(unsigned i);
  LogicalResult add(unsigned i);
  bool canShare(unsigned i, unsigned j) const;

  ArrayRef<StoredVariable> variables;
  /// Of each variable the rows that it has along the dimension that its storage names; none where it
  /// has all of a tensor.
  std::vector<llvm::BitVector> rows;
  llvm::MapVector<std::string, StoredTensor, std::map<std::string, unsigned>> tensors;
  DenseSet<std::pair<unsigned, unsigned>> compared;
};
} // namespace

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
  int64_t last = -1;
  forEachStoredRows(storage.getOffset(), storage.getPeriod(), runs, 0, shape[storage.getDim()],
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
  StorageAttr storage = variable.getStorageAttr();
  std::string pattern = storage
                            ? storage.getTensor().str()
                            : variable.getSymName().str() + (variable.getStacked() ? ".{layer}" : "");
  int64_t layers = variable.getStacked() ? type.getDimSize(0) : 1;
  for (int64_t layer = 0; layer < layers; ++layer) {
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
