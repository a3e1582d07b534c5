//===- Attention.cpp - what calls of attention have in common ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Train.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

/// Doubles by their bits, so that equal attributes have equal hashes.
static uint64_t bitsOf(double value) { return llvm::bit_cast<uint64_t>(value); }
static uint64_t bitsOf(int64_t value) { return uint64_t(value); }
static uint64_t bitsOf(bool value) { return value; }

bool train::operator==(const AttentionSpec &a, const AttentionSpec &b) {
  bool equal = bitsOf(a.scale) == bitsOf(b.scale);
  forEachAttentionField(
      [&](const auto &field) { equal &= bitsOf(a.*field.member) == bitsOf(b.*field.member); });
  return equal;
}

llvm::hash_code train::hash_value(const AttentionSpec &spec) {
  llvm::hash_code code = llvm::hash_value(bitsOf(spec.scale));
  forEachAttentionField(
      [&](const auto &field) { code = llvm::hash_combine(code, bitsOf(spec.*field.member)); });
  return code;
}

static ParseResult parseValue(AsmParser &, bool &value) {
  value = true;
  return success();
}
static ParseResult parseValue(AsmParser &parser, int64_t &value) { return parser.parseInteger(value); }
static ParseResult parseValue(AsmParser &parser, double &value) { return parser.parseFloat(value); }

FailureOr<AttentionSpec> train::parseSpec(AsmParser &parser) {
  AttentionSpec spec;
  if (parser.parseKeyword("scale") || parser.parseFloat(spec.scale))
    return failure();
  for (bool more = true; more;) {
    more = false;
    bool failed = false;
    forEachAttentionField([&](const auto &field) {
      if (more || failed || parser.parseOptionalKeyword(field.name))
        return;
      more = true;
      failed = bool(parseValue(parser, spec.*field.member));
    });
    if (failed)
      return failure();
  }
  return spec;
}

static void printValue(AsmPrinter &, bool) {}
static void printValue(AsmPrinter &printer, int64_t value) { printer << " " << value; }
static void printValue(AsmPrinter &printer, double value) {
  printer << " ";
  printer.printFloat(APFloat(value));
}

void train::printSpec(AsmPrinter &printer, const AttentionSpec &spec) {
  printer << "scale";
  printValue(printer, spec.scale);
  forEachAttentionField([&](const auto &field) {
    if (bitsOf(spec.*field.member) == bitsOf(AttentionSpec().*field.member))
      return;
    printer << " " << field.name;
    printValue(printer, spec.*field.member);
  });
}

Attribute AttentionAttr::parse(AsmParser &parser, Type) {
  auto emitError = [&, at = parser.getCurrentLocation()] { return parser.emitError(at); };
  if (parser.parseLess())
    return {};
  FailureOr<AttentionSpec> spec = parseSpec(parser);
  if (failed(spec) || parser.parseGreater())
    return {};
  return getChecked(emitError, parser.getContext(), *spec);
}

void AttentionAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printSpec(printer, getValue());
  printer << ">";
}

LogicalResult AttentionAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                    AttentionSpec spec) {
  LogicalResult result = success();
  auto check = [&](const auto &field) {
    if constexpr (std::is_same_v<decltype(field), const AttentionField<int64_t> &>)
      if (int64_t number = spec.*field.member;
          succeeded(result) && (number < field.least || number > std::numeric_limits<int32_t>::max()))
        result = emitError() << "attention needs " << field.name << " from " << field.least
                             << " to 2^31 - 1, found " << number;
  };
  forEachAttentionField(check);
  if (failed(result))
    return failure();
  if (!(spec.dropout >= 0 && spec.dropout < 1))
    return emitError() << "attention needs dropout in [0, 1), found " << spec.dropout;
  if (!(spec.cap >= 0) || !std::isfinite(spec.cap))
    return emitError() << "attention needs a cap of 0, for none, or above, found " << spec.cap;
  if (spec.chunk && !spec.causal)
    return emitError() << "attention in chunks of " << spec.chunk << " must be causal";
  return success();
}

ParseResult train::parseAttentionSpec(OpAsmParser &parser, AttentionAttr &spec) {
  auto emitError = [&, at = parser.getCurrentLocation()] { return parser.emitError(at); };
  FailureOr<AttentionSpec> value = parseSpec(parser);
  if (failed(value))
    return failure();
  spec = AttentionAttr::getChecked(emitError, parser.getContext(), *value);
  return success(bool(spec));
}
void train::printAttentionSpec(OpAsmPrinter &printer, Operation *, AttentionAttr spec) {
  printSpec(printer, spec.getValue());
}

//===----------------------------------------------------------------------===//
// The optional operands
//===----------------------------------------------------------------------===//

/// The size of a dimension, or nothing if there are several.
static std::optional<int64_t> sizeOf(char dim, const AttentionSizes &sizes) {
  switch (dim) {
  case 'b':
    return sizes.batch;
  case 'h':
    return sizes.heads;
  case 't':
    return sizes.keys;
  case 'k':
    return 2;
  }
  return {};
}

bool AttentionSizes::fits(const AttentionOption &option, ArrayRef<int64_t> shape) const {
  if (shape.size() != option.dims.size())
    return false;
  for (auto [dim, size] : llvm::zip(option.dims, shape)) {
    if (std::optional<int64_t> wanted = sizeOf(dim, *this); wanted ? size != *wanted : false)
      return false;
    // Where keys are padded there are fewer distances, which those of no padding have.
    if (dim == 'n' && (size < queries || size > queries + keys - 1))
      return false;
  }
  return true;
}

std::string AttentionSizes::textOf(const AttentionOption &option) const {
  auto text = [&](char dim) { return std::to_string(sizeOf(dim, *this).value_or(queries + keys - 1)); };
  return "[" + llvm::join(llvm::map_range(option.dims, text), ", ") + "]";
}

MwAttention train::describeCall(ShapedType q, ShapedType k, ShapedType v,
                                const AttentionSpec &spec, const AttentionOptions &options) {
  MwAttention call = {};
  call.batch = q.getDimSize(0);
  call.queries = q.getDimSize(1);
  call.heads = q.getDimSize(2);
  call.headDim = q.getDimSize(3);
  call.keys = k.getDimSize(1);
  call.kvHeads = k.getDimSize(2);
  call.valueDim = v.getDimSize(3);
  call.scale = spec.scale;
  call.causal = spec.causal;
  call.window = spec.window;
  call.chunk = spec.chunk;
  call.dropout = spec.dropout;
  call.stream = spec.stream;
  call.globalHeads = spec.heads ? spec.heads : call.heads;
  call.globalQueries = spec.queries ? spec.queries : call.queries;
  call.globalKeys = spec.keys ? spec.keys : call.keys;
  call.cap = spec.cap;
  call.queryStride = spec.queryStride;
  call.keyStride = spec.keyStride;
  Type element = q.getElementType();
  call.elementType = element.isBF16() ? MW_BF16 : element.isF16() ? MW_F16 : MW_F32;
  call.partial = bool(options.keyOffset);
  auto distances = options.distances ? cast<ShapedType>(options.distances.getType()) : ShapedType();
  if (distances && distances.getRank() == 2) // of others the verifier says that they are wrong
    call.distanceCount = distances.getDimSize(0);
  return call;
}

LogicalResult train::verifyAttentionCall(llvm::function_ref<InFlightDiagnostic()> emitError,
                                     const AttentionSpec &spec, const AttentionOptions &options,
                                     const AttentionSizes &sizes, Type floats) {
  for (const AttentionOption &option : attentionOptions)
    if (Value value = options.*option.member) {
      auto type = cast<ShapedType>(value.getType());
      // Memory has one element where a tensor has no dimension.
      bool fits = option.dims.empty() ? type.getNumElements() == 1 : sizes.fits(option, type.getShape());
      Type element = option.isFloat ? floats : IntegerType::get(floats.getContext(), 32);
      if (!fits || type.getElementType() != element)
        return emitError() << "needs " << option.name << " of "
                           << (option.dims.empty() ? "one number" : sizes.textOf(option)) << " in "
                           << element << ", found " << type;
    }
  for (auto [name, number] : {std::pair("heads", sizes.heads), {"queries", sizes.queries}, {"keys", sizes.keys}})
    if (number > std::numeric_limits<int32_t>::max())
      return emitError() << "needs fewer than 2^31 " << name << ", found " << number;
  if ((spec.dropout != 0) != bool(options.ids) || bool(options.ids) != bool(options.key))
    return emitError() << "takes sequence ids and a key exactly when its dropout is not 0";
  if (bool(options.keyOffset) != (spec.keys != 0))
    return emitError() << "says how many keys there are exactly when it has a part of them, which "
                          "key_offset is the position of the first of";
  if (spec.queryStride != 1 && !options.queryOffset)
    return emitError() << "has queries that are " << spec.queryStride
                       << " positions apart without query_offset";
  if (spec.keyStride != 1 && !options.keyOffset)
    return emitError() << "has keys that are " << spec.keyStride
                       << " positions apart without key_offset";
  if (options.positions && !spec.causal)
    return emitError() << "with positions is causal: without, a query would see the documents after "
                          "its own";
  if (options.distances && (options.keyOffset || spec.queryStride != 1))
    return emitError() << "takes distances with all keys and queries in a row alone";
  return success();
}
