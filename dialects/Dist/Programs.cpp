//===- Programs.cpp - what devices run that do not all run the same ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Programs.h"
#include "Dist/Dist.h"
#include "Train/Storage.h"

using namespace mlir;

namespace meshwright::dist {

bool hasPrograms(ModuleOp module) {
  return llvm::any_of(module.getOps<ModuleOp>(),
                      [](ModuleOp nested) { return nested->hasAttr(coordinatesAttr); });
}

SmallVector<ModuleOp> programsOf(ModuleOp module) {
  if (!hasPrograms(module))
    return {module};
  return llvm::filter_to_vector(module.getOps<ModuleOp>(),
                                [](ModuleOp nested) { return nested->hasAttr(coordinatesAttr); });
}

SmallVector<int64_t> coordinatesOf(Attribute entry) {
  if (auto one = dyn_cast<IntegerAttr>(entry))
    return {one.getInt()};
  SmallVector<int64_t> coordinates;
  if (auto list = dyn_cast<ArrayAttr>(entry))
    for (Attribute attr : list) {
      auto one = dyn_cast<IntegerAttr>(attr);
      if (!one)
        return {};
      coordinates.push_back(one.getInt());
    }
  return coordinates;
}

bool runsOn(ModuleOp program, const Mesh &mesh, int64_t rank) {
  auto at = program->getAttrOfType<DictionaryAttr>(coordinatesAttr);
  return !at || llvm::all_of(at, [&](NamedAttribute entry) {
    int axis = mesh.find(entry.getName());
    return axis >= 0 &&
           llvm::is_contained(coordinatesOf(entry.getValue()), mesh.coordinate(rank, axis));
  });
}

bool isFixed(StringRef axis, Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto at = op->getAttrOfType<DictionaryAttr>(coordinatesAttr))
      if (Attribute entry = at.get(axis))
        return coordinatesOf(entry).size() == 1;
  return false;
}

/// Axes and coordinates of one program, against the mesh.
static LogicalResult verifyCoordinates(ModuleOp program, const Mesh &mesh) {
  auto at = program->getAttrOfType<DictionaryAttr>(coordinatesAttr);
  if (!at)
    return program.emitError("expected '")
           << coordinatesAttr << "' to be a dictionary of coordinates";
  for (NamedAttribute entry : at) {
    int axis = mesh.find(entry.getName());
    if (axis < 0)
      return program.emitError("'") << coordinatesAttr << "' names '" << entry.getName().getValue()
                                    << "', which is no axis of the mesh";
    SmallVector<int64_t> coordinates = coordinatesOf(entry.getValue());
    int64_t size = mesh.axes[axis].size;
    if (coordinates.empty() || llvm::any_of(coordinates, [&](int64_t coordinate) {
          return coordinate < 0 || coordinate >= size;
        }))
      return program.emitError("'")
             << coordinatesAttr << "' puts the program at " << entry.getValue() << " of axis '"
             << entry.getName().getValue() << "', whose coordinates are 0 to " << size - 1;
  }
  return success();
}

LogicalResult verifyPrograms(ModuleOp module) {
  if (!hasPrograms(module))
    return success();
  MeshOp outer = lookupMesh(module);
  if (!outer)
    return failure();
  Mesh mesh = outer.getMesh();
  SmallVector<ModuleOp> programs = programsOf(module);
  for (ModuleOp program : programs) {
    if (failed(verifyCoordinates(program, mesh)))
      return failure();
    MeshOp own = lookupMesh(program);
    if (!own)
      return failure();
    if (own->getAttrDictionary() != outer->getAttrDictionary()) {
      InFlightDiagnostic error = own.emitError("the mesh of a program is not the module's");
      error.attachNote(outer.getLoc()) << "which is this";
      return error;
    }
  }
  for (int64_t rank = 0, n = mesh.size(); rank < n; ++rank) {
    ModuleOp first;
    for (ModuleOp program : programs) {
      if (!runsOn(program, mesh, rank))
        continue;
      if (first) {
        InFlightDiagnostic error = program.emitError("device ")
                                   << rank << " would run two programs, this one";
        error.attachNote(first.getLoc()) << "and this one";
        return error;
      }
      first = program;
    }
    if (!first)
      return module.emitError("no program is for device ") << rank;
  }
  return success();
}

/// The type of a variable in files: whole and without padding.
static RankedTensorType typeInFiles(train::VariableOp variable) {
  for (StringRef name : {DistDialect::logicalAttr, DistDialect::globalAttr})
    if (auto type = variable->getAttrOfType<TypeAttr>(name))
      return cast<RankedTensorType>(type.getValue());
  return variable.getTensorType();
}

/// A partitioned variable is one device's part of its global type.
static LogicalResult verifyPart(train::VariableOp variable, const Mesh &mesh) {
  auto type = variable->getAttrOfType<TypeAttr>(DistDialect::globalAttr);
  ShardingAttr sharding = type ? shardingOf(type.getValue()) : ShardingAttr();
  if (!sharding)
    return success();
  auto error = [&] { return variable.emitOpError("of global type ") << type << " "; };
  if (failed(sharding.verifyAxes(mesh, error)))
    return failure();
  ArrayRef<int64_t> global = cast<RankedTensorType>(type.getValue()).getShape();
  Sharding placed = sharding.on(mesh);
  if (firstUneven(global, placed, mesh) >= 0 ||
      localShape(global, placed, mesh) != variable.getTensorType().getShape())
    return error() << "is " << variable.getTensorType() << ", which is not one device's part of that";
  return success();
}

LogicalResult verifyStorage(ModuleOp module) {
  SmallVector<train::StoredVariable> parameters;
  llvm::StringMap<train::StoredVariable> known;
  Mesh mesh;
  for (auto op : module.getOps<MeshOp>())
    mesh = op.getMesh();
  for (ModuleOp program : programsOf(module))
    for (auto variable : program.getOps<train::VariableOp>()) {
      if (failed(verifyPart(variable, mesh)))
        return failure();
      if (!variable.isParameter())
        continue;
      train::StoredVariable entry{variable, typeInFiles(variable)};
      auto [other, isNew] = known.try_emplace(variable.getSymName(), entry);
      if (isNew) {
        parameters.push_back(entry);
        continue;
      }
      auto [first, type] = other->second;
      if (first.getStorageAttr() != variable.getStorageAttr() ||
          type.getShape() != entry.type.getShape()) {
        InFlightDiagnostic error = variable.emitOpError(
            "is in several programs, which store it in different rows or shapes; give it a name of its own");
        error.attachNote(first.getLoc()) << "it is here too";
        return error;
      }
    }
  return train::verifyStorage(parameters);
}

} // namespace meshwright::dist
