//===- AttributeTable.h - the attributes that ops of a dialect do not declare ===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Passes write to each other in discardable attributes, such as `train.role`. Each is a row of its
// dialect's table, a .def file, which says its type, where it may be, who writes it and in which
// phases it may exist. The dialect's hooks refuse what does not fit and attributes that no table
// has, so readers need no checks of their own; pipelines check phases (AttributeLifetimes.h).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_ATTRIBUTETABLE_H
#define MESHWRIGHT_ATTRIBUTETABLE_H

#include "meshwright/Phase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace meshwright {

/// What has an attribute: an op, or an argument or a result of a function.
enum class Holder { Op, Argument, Result };

/// What an attribute must be, in words for messages and pages, and an example in MLIR's syntax.
struct AttributeType {
  llvm::StringLiteral text, example;
  bool (*fits)(mlir::Attribute);
};

/// Where it may be.
struct AttributePlace {
  llvm::StringLiteral text;
  bool (*fits)(mlir::Operation *, Holder);
};

struct KnownAttribute {
  llvm::StringLiteral name;
  const AttributeType &type;
  const AttributePlace &place;
  Phase first, last; ///< the phases in which IR may have it
  llvm::StringLiteral writer, meaning;
};

/// Refuses an attribute that `known` does not have, or has with another type or place.
mlir::LogicalResult verifyAttribute(llvm::ArrayRef<KnownAttribute> known, mlir::Operation *op,
                                    Holder holder, mlir::NamedAttribute attribute);

/// Whether all elements of an array attribute fit.
inline bool allElements(mlir::Attribute attribute, bool (*fits)(mlir::Attribute)) {
  auto array = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  return array && llvm::all_of(array, fits);
}

/// Whether an attribute is an i64 of at least `least`.
inline bool isNumber(mlir::Attribute attribute, int64_t least) {
  auto number = llvm::dyn_cast<mlir::IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

template <typename... Ops> bool isOn(mlir::Operation *op, Holder holder) {
  return holder == Holder::Op && llvm::isa<Ops...>(op);
}

namespace attributes {
// The types and places that several tables use.
inline constexpr AttributeType
    Unit{"no value", "unit", [](mlir::Attribute a) { return llvm::isa<mlir::UnitAttr>(a); }},
    String{"a string", "\"text\"", [](mlir::Attribute a) { return llvm::isa<mlir::StringAttr>(a); }},
    Strings{"an array of strings", "[\"text\"]",
            [](mlir::Attribute a) { return allElements(a, String.fits); }},
    Symbol{"a symbol", "@name",
           [](mlir::Attribute a) { return llvm::isa<mlir::FlatSymbolRefAttr>(a); }},
    Number{"an i64 from 0 on", "0 : i64", [](mlir::Attribute a) { return isNumber(a, 0); }},
    Size{"an i64 from 1 on", "1 : i64", [](mlir::Attribute a) { return isNumber(a, 1); }},
    Numbers{"array<i64: ..>", "array<i64: 0>",
            [](mlir::Attribute a) { return llvm::isa<mlir::DenseI64ArrayAttr>(a); }},
    Float{"an f64", "1.0 : f64",
          [](mlir::Attribute a) {
            auto number = llvm::dyn_cast<mlir::FloatAttr>(a);
            return number && number.getType().isF64();
          }},
    WholeTensor{"a tensor type of static shape", "tensor<4xf32>",
               [](mlir::Attribute a) {
                 auto type = llvm::dyn_cast<mlir::TypeAttr>(a);
                 auto tensor = type ? llvm::dyn_cast<mlir::RankedTensorType>(type.getValue())
                                    : mlir::RankedTensorType();
                 return tensor && tensor.hasStaticShape();
               }},
    Anything{"any attribute", "unit", [](mlir::Attribute) { return true; }};

inline constexpr AttributePlace
    OnOp{"an op that is no module",
         [](mlir::Operation *op, Holder holder) {
           return holder == Holder::Op && !llvm::isa<mlir::ModuleOp>(op);
         }},
    OnModule{"a module", isOn<mlir::ModuleOp>},
    OnFunction{"a function", isOn<mlir::FunctionOpInterface>},
    OnArgument{"an argument of a function",
               [](mlir::Operation *, Holder holder) { return holder == Holder::Argument; }},
    OnResult{"a result of a function",
             [](mlir::Operation *, Holder holder) { return holder == Holder::Result; }};

} // namespace attributes

namespace train {
llvm::ArrayRef<KnownAttribute> knownAttributes();
/// Those of no floor, `meshwright.*`, and the dialect that checks them, which has nothing else.
llvm::ArrayRef<KnownAttribute> commonAttributes();
void registerCommonAttributes(mlir::DialectRegistry &registry);
} // namespace train
namespace dist {
llvm::ArrayRef<KnownAttribute> knownAttributes();
} // namespace dist
namespace exec {
llvm::ArrayRef<KnownAttribute> knownAttributes();
} // namespace exec

} // namespace meshwright

#endif // MESHWRIGHT_ATTRIBUTETABLE_H
