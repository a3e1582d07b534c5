//===- Expression.cpp - global values as hash-consed expressions -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Expression.h"

using namespace mlir;
using namespace meshwright::certify;

void Expression::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddString(name);
  id.AddPointer(attributes.getAsOpaquePointer());
  id.AddInteger(unsigned(operands.size()));
  for (const Expression *operand : operands)
    id.AddPointer(operand);
  id.AddInteger(result);
  id.AddPointer(element.getAsOpaquePointer());
  for (int64_t extent : shape)
    id.AddInteger(extent);
}

static Expression describe(Location location, StringRef name, Attribute attributes,
                           Operands operands, unsigned result, Type element,
                           ArrayRef<int64_t> shape) {
  Expression expression(location);
  expression.name = name;
  expression.attributes = attributes;
  expression.operands.assign(operands.begin(), operands.end());
  expression.result = result;
  expression.element = element;
  expression.shape.assign(shape.begin(), shape.end());
  return expression;
}

const Expression *Expressions::find(Location location, StringRef name, Attribute attributes,
                                    Operands operands, unsigned result, Type element,
                                    ArrayRef<int64_t> shape) {
  llvm::FoldingSetNodeID id;
  describe(location, name, attributes, operands, result, element, shape).Profile(id);
  void *position;
  return set.FindNodeOrInsertPos(id, position);
}

const Expression *Expressions::get(Location location, StringRef name, Attribute attributes,
                                   Operands operands, unsigned result, Type element,
                                   ArrayRef<int64_t> shape) {
  if (const Expression *found = find(location, name, attributes, operands, result, element, shape))
    return found;
  storage.push_back(describe(location, name, attributes, operands, result, element, shape));
  storage.back().number = storage.size() - 1;
  set.InsertNode(&storage.back());
  return &storage.back();
}

void Expressions::shrink(unsigned size) {
  while (storage.size() > size) {
    set.RemoveNode(&storage.back());
    storage.pop_back();
  }
}
