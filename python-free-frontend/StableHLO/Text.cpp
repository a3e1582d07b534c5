//===- Text.cpp - StableHLO as JAX prints it ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The dialects here have no ops. They only give MLIR's parser a hook for the pretty form of each op
// that the import knows, so that locations, functions, types and constants are read by MLIR.
//
//===----------------------------------------------------------------------===//
#include "Text.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace meshwright;

using Operands = SmallVector<OpAsmParser::UnresolvedOperand, 4>;

//===--- parts of ops -------------------------------------------------------===//

/// `[1, 2]`
static ParseResult parseIntegers(AsmParser &parser, SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    return parser.parseInteger(values.emplace_back());
  });
}

static Attribute arrayOf(AsmParser &parser, ArrayRef<int64_t> values) {
  return parser.getBuilder().getDenseI64ArrayAttr(values);
}

/// What ends an op: its other attributes, and its types as one type, as that of the operands and of
/// the result, as a predicate's and that of all others, or as a function's.
static ParseResult parseTypes(OpAsmParser &parser, OperationState &state,
                              const Operands &operands) {
  SMLoc location = parser.getCurrentLocation();
  Type type;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(type))
    return failure();
  if (auto function = dyn_cast<FunctionType>(type)) {
    state.addTypes(function.getResults());
    return parser.resolveOperands(operands, function.getInputs(), location, state.operands);
  }
  SmallVector<Type> inputs(operands.size(), type);
  Type result = type;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseType(result))
      return failure();
    if (operands.empty())
      return parser.emitError(location)
             << "has two types and no operands; write those between its name and the colon";
    std::fill(inputs.begin() + 1, inputs.end(), result);
  } else if (succeeded(parser.parseOptionalArrow()) && parser.parseType(result)) {
    return failure();
  }
  state.addTypes(result);
  return parser.resolveOperands(operands, inputs, location, state.operands);
}

/// The operands of an op whose pretty form has them before keywords, as in `%a, %b, dims = [0]`.
/// The commas are read, and the keyword behind the last one is left to the caller.
static ParseResult parseOperandsUpTo(OpAsmParser &parser, Operands &operands) {
  do {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult read = parser.parseOptionalOperand(operand);
    if (!read.has_value())
      return success();
    if (failed(*read))
      return failure();
    operands.push_back(operand);
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

//===--- ops ----------------------------------------------------------------===//

/// `%a, %b : types`
static ParseResult parseElementwise(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  return failure(parser.parseOperandList(operands) || parseTypes(parser, state, operands));
}

/// `dense<0> : tensor<i32>`
static ParseResult parseConstant(OpAsmParser &parser, OperationState &state) {
  TypedAttr value;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseAttribute(value))
    return failure();
  state.addAttribute("value", value);
  state.addTypes(value.getType());
  return success();
}

/// `%x, key = [0, 1] : types`
template <const char *key, const char *attribute>
static ParseResult parseWithDims(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  SmallVector<int64_t> dims;
  if (parseOperandsUpTo(parser, operands) || parser.parseKeyword(key) || parser.parseEqual() ||
      parseIntegers(parser, dims))
    return failure();
  state.addAttribute(attribute, arrayOf(parser, dims));
  return parseTypes(parser, state, operands);
}

/// `%x, dim = 0 : types`
template <const char *attribute>
static ParseResult parseWithDim(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  int64_t dim = 0;
  if (parseOperandsUpTo(parser, operands) || parser.parseKeyword("dim") || parser.parseEqual() ||
      parser.parseInteger(dim))
    return failure();
  state.addAttribute(attribute, parser.getBuilder().getI64IntegerAttr(dim));
  return parseTypes(parser, state, operands);
}

/// `%x [0:4, 1:17:2] : types`
static ParseResult parseSlice(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  SmallVector<int64_t> starts, limits, strides;
  auto range = [&]() -> ParseResult {
    strides.push_back(1);
    if (parser.parseInteger(starts.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limits.emplace_back()))
      return failure();
    return succeeded(parser.parseOptionalColon()) ? parser.parseInteger(strides.back())
                                                  : ParseResult(success());
  };
  if (parser.parseOperand(operands.emplace_back()) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, range))
    return failure();
  state.addAttribute("start_indices", arrayOf(parser, starts));
  state.addAttribute("limit_indices", arrayOf(parser, limits));
  state.addAttribute("strides", arrayOf(parser, strides));
  return parseTypes(parser, state, operands);
}

/// `LT, %a, %b, SIGNED : types`
static ParseResult parseCompare(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  StringRef direction, type;
  if (parser.parseKeyword(&direction) || parser.parseComma() || parseOperandsUpTo(parser, operands))
    return failure();
  if (succeeded(parser.parseOptionalKeyword(&type)))
    state.addAttribute("compare_type", parser.getBuilder().getStringAttr(type));
  state.addAttribute("comparison_direction", parser.getBuilder().getStringAttr(direction));
  return parseTypes(parser, state, operands);
}

/// `%a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]
/// : types`
static ParseResult parseDotGeneral(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  if (parseOperandsUpTo(parser, operands))
    return failure();
  NamedAttrList numbers;
  auto ignored = [&]() -> ParseResult {
    StringRef word;
    return parser.parseKeyword(&word);
  };
  do {
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (key == "precision") { // All precisions are at least f32's here.
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, ignored))
        return failure();
      continue;
    }
    if (!key.consume_back("_dims"))
      return parser.emitError(parser.getCurrentLocation())
             << "with " << key << " cannot be imported; leave preferred algorithms out";
    SmallVector<int64_t> lhs, rhs;
    if (parseIntegers(parser, lhs) || parser.parseKeyword("x") || parseIntegers(parser, rhs))
      return failure();
    numbers.set(("lhs_" + key + "_dimensions").str(), arrayOf(parser, lhs));
    numbers.set(("rhs_" + key + "_dimensions").str(), arrayOf(parser, rhs));
  } while (succeeded(parser.parseOptionalComma()));
  state.addAttribute("dot_dimension_numbers", numbers.getDictionary(parser.getContext()));
  return parseTypes(parser, state, operands);
}

/// `(%x init: %c) applies stablehlo.add across dimensions = [2] : types`
static ParseResult parseReduce(OpAsmParser &parser, OperationState &state) {
  Operands operands(2);
  SmallVector<int64_t> dims;
  StringRef applied;
  if (parser.parseLParen() || parser.parseOperand(operands[0]) || parser.parseKeyword("init") ||
      parser.parseColon() || parser.parseOperand(operands[1]) || parser.parseRParen())
    return failure();
  if (failed(parser.parseOptionalComma()) && succeeded(parser.parseOptionalKeyword("applies"))) {
    if (parser.parseKeyword(&applied) || parser.parseKeyword("across") ||
        parser.parseKeyword("dimensions") || parser.parseEqual() || parseIntegers(parser, dims))
      return failure();
    state.addAttribute("applies", parser.getBuilder().getStringAttr(applied));
    state.addAttribute("dimensions", arrayOf(parser, dims));
    return parseTypes(parser, state, operands);
  }
  return parser.emitError(parser.getNameLoc())
         << "of several tensors, or by several ops, cannot be imported; of one tensor by "
            "stablehlo.add or stablehlo.maximum it can";
}

static ParseResult parseRefused(OpAsmParser &parser, OperationState &state) {
  return parser.emitError(parser.getNameLoc()) << hlo::refusalOf(state.name.getStringRef());
}

//===--- tables -------------------------------------------------------------===//

using Parse = ParseResult (*)(OpAsmParser &, OperationState &);

/// Hooks refer to entries of the table, which stay.
static const Parse &parserOf(StringRef name) {
  static constexpr char dims[] = "dims", broadcast[] = "broadcast_dimensions",
                        permutation[] = "permutation", dimension[] = "dimension",
                        iota[] = "iota_dimension";
  static const llvm::StringMap<Parse> known = [] {
    llvm::StringMap<Parse> found = {
        {"chlo.erf", parseElementwise},
        {"chlo.erfc", parseElementwise},
        {"chlo.square", parseElementwise},
        {"stablehlo.constant", parseConstant},
        {"stablehlo.iota", parseWithDim<iota>},
        {"stablehlo.broadcast_in_dim", parseWithDims<dims, broadcast>},
        {"stablehlo.transpose", parseWithDims<dims, permutation>},
        {"stablehlo.concatenate", parseWithDim<dimension>},
        {"stablehlo.slice", parseSlice},
        {"stablehlo.compare", parseCompare},
        {"stablehlo.dot_general", parseDotGeneral},
        {"stablehlo.reduce", parseReduce},
    };
    for (const char *name :
         {"abs",         "add",       "and",      "convert", "cosine",   "divide",
          "exponential", "log",       "logistic", "maximum", "minimum",  "multiply",
          "negate",      "is_finite", "not",      "or",      "power",    "reshape",
          "rsqrt",       "select",    "sine",     "sqrt",    "subtract", "tanh"})
      found[(Twine("stablehlo.") + name).str()] = parseElementwise;
    return found;
  }();
  static const Parse refused = parseRefused;
  auto found = known.find(name);
  return found == known.end() ? refused : found->second;
}

std::string hlo::refusalOf(StringRef name) {
  static const llvm::StringMap<StringRef> advice = {
      {"stablehlo.while",
       "unroll the loop: a Python loop over layers, or jax.lax.scan(.., unroll=True)"},
      {"stablehlo.case", "choose the branch in Python, or compute both and use jnp.where"},
      {"stablehlo.if", "choose the branch in Python, or compute both and use jnp.where"},
      {"stablehlo.custom_call",
       "leave out sharding constraints, callbacks and library kernels; --mesh "
       "shards the model, and a function of the listed ops computes it"},
      {"stablehlo.rng", "dropout and other random numbers cannot be imported; leave them out"},
      {"stablehlo.rng_bit_generator",
       "dropout and other random numbers cannot be imported; leave them out"},
      {"stablehlo.scatter", "differentiate nothing before the export: Meshwright differentiates"},
  };
  StringRef said = advice.lookup(name);
  if (name.starts_with("sdy."))
    said = "export the function without shardings, --mesh makes them";
  return "cannot be imported; " +
         (said.empty() ? "docs/jax.md lists the ops that can" : said.str());
}

//===--- dialects -----------------------------------------------------------===//

namespace {
/// Both dialects, which differ in their names.
class TextDialect : public Dialect {
public:
  TextDialect(StringRef name, MLIRContext *context, TypeID id) : Dialect(name, context, id) {
    allowUnknownOperations();
  }

  std::optional<ParseOpHook> getParseOperationHook(StringRef name) const override {
    return parserOf(name);
  }

  /// `#stablehlo.gather<offset_dims = [2], index_vector_dim = 2>` becomes a dictionary,
  /// `#stablehlo<comparison_direction LT>` the string "LT".
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    if (failed(parser.parseOptionalLess())) {
      if (parser.parseKeyword(&word))
        return {};
      return parser.getBuilder().getStringAttr(word);
    }
    NamedAttrList entries;
    auto entry = [&]() -> ParseResult {
      StringRef key;
      SmallVector<int64_t> values;
      if (parser.parseKeyword(&key) || parser.parseEqual())
        return failure();
      int64_t value = 0;
      OptionalParseResult number = parser.parseOptionalInteger(value);
      if (number.has_value()) {
        entries.set(key, parser.getBuilder().getI64IntegerAttr(value));
        return *number;
      }
      if (parseIntegers(parser, values))
        return failure();
      entries.set(key, arrayOf(parser, values));
      return success();
    };
    if (parser.parseCommaSeparatedList(entry) || parser.parseGreater())
      return {};
    return entries.getDictionary(getContext());
  }
};

struct StableHLOText : TextDialect {
  explicit StableHLOText(MLIRContext *context)
      : TextDialect(getDialectNamespace(), context, TypeID::get<StableHLOText>()) {}
  static constexpr StringLiteral getDialectNamespace() { return "stablehlo"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StableHLOText)
};

/// Shardy's, of which everything is refused.
struct ShardyText : TextDialect {
  explicit ShardyText(MLIRContext *context)
      : TextDialect(getDialectNamespace(), context, TypeID::get<ShardyText>()) {}
  static constexpr StringLiteral getDialectNamespace() { return "sdy"; }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    parser.emitError(parser.getNameLoc())
        << "sdy." << parser.getFullSymbolSpec().take_until([](char c) { return c == '<'; })
        << " cannot be imported; export the function without shardings, --mesh makes them";
    return {};
  }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShardyText)
};

struct CHLOText : TextDialect {
  explicit CHLOText(MLIRContext *context)
      : TextDialect(getDialectNamespace(), context, TypeID::get<CHLOText>()) {}
  static constexpr StringLiteral getDialectNamespace() { return "chlo"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CHLOText)
};
} // namespace

void hlo::registerText(MLIRContext &context) {
  context.getOrLoadDialect<StableHLOText>();
  context.getOrLoadDialect<CHLOText>();
  context.getOrLoadDialect<ShardyText>();
}
