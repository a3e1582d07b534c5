//===- Storage.h - which rows of files variables are stored in --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_STORAGE_H
#define MESHWRIGHT_TRAIN_STORAGE_H

#include "Train/Train.h"

namespace meshwright::train {

/// A parameter and its type as files have it: of the whole tensor, without padding.
struct StoredVariable {
  VariableOp variable;
  mlir::RankedTensorType type;
};

/// In how many tensors of a file a parameter is stored: one for each layer of a stack, and for each
/// expert or head that has its own.
int64_t storedTensors(VariableOp variable);
/// The name of one of them, counted by layer first.
std::string storedTensorName(VariableOp variable, int64_t number);

/// What precedes the names of a model's modules in the files of adapters.
inline constexpr llvm::StringLiteral adapterPrefix = "base_model.model.";
/// Whether an adapter adds the parameter to the model. Modules that are trained whole beside adapters are in their
/// files, too, and begin as the model's.
bool isAddedByAdapter(VariableOp variable);
/// The storage of such a module's parameter in the model's files.
StorageAttr storageInModel(VariableOp variable);

/// Checks that every row of a file's tensor belongs to one parameter: where two have it, saving
/// keeps one of them, and where none has it, there is nothing to save.
mlir::LogicalResult verifyStorage(llvm::ArrayRef<StoredVariable> variables);

/// ... of the parameters of a module whose tensors are whole.
mlir::LogicalResult verifyStorage(mlir::ModuleOp module);

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_STORAGE_H
