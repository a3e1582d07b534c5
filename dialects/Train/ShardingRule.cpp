//===- ShardingRule.cpp - einsum-like factor tables --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/ShardingRule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace llvm;

namespace meshwright {

int ShardingRule::find(StringRef name) const {
  for (auto [i, f] : enumerate(factors))
    if (f.name == name)
      return i;
  return -1;
}

void ShardingRule::markReduced() {
  SmallVector<bool> inResult(factors.size(), false);
  for (const TensorFactors &t : results)
    for (const auto &dim : t.dims)
      for (unsigned f : dim)
        inResult[f] = true;
  for (auto [f, in] : llvm::zip(factors, inResult))
    f.reduced = !in;
}

std::string ShardingRule::str() const {
  std::string text;
  raw_string_ostream os(text);
  auto name = [&](unsigned f) { os << factors[f].name << (factors[f].whole ? "!" : ""); };
  auto tensor = [&](const TensorFactors &t) {
    os << (t.linear ? "~" : t.additive ? "+" : "");
    if (t.indexes >= 0)
      os << "@" << factors[t.indexes].name << (t.dims.empty() ? "" : " ");
    interleave(
        t.dims, os,
        [&](const SmallVector<unsigned, 1> &dim) {
          if (dim.empty())
            os << "1";
          else if (dim.size() == 1)
            name(dim[0]);
          else {
            os << "(";
            interleave(dim, os, name, " ");
            os << ")";
          }
        },
        " ");
  };
  interleave(operands, os, tensor, ", ");
  os << " -> ";
  interleave(results, os, tensor, ", ");
  return text;
}

namespace {
/// Reads one rule text. Ranks are known for operands only, which is enough to
/// expand the ellipsis.
class Parser {
public:
  Parser(StringRef text, ArrayRef<int64_t> ranks, std::string &error)
      : text(text), ranks(ranks), error(error) {}

  FailureOr<ShardingRule> parse() {
    auto [left, right] = text.split("->");
    SmallVector<StringRef> ins, outs;
    if (!ranks.empty())
      left.split(ins, ',');
    right.split(outs, ',');
    if (ins.size() != ranks.size()) {
      error = (Twine("the rule '") + text + "' has " + Twine(ins.size()) +
               " operands, the op has " + Twine(ranks.size()))
                  .str();
      return failure();
    }
    for (auto [tensor, rank] : llvm::zip(ins, ranks))
      if (failed(parseTensor(tensor.trim(), rank, rule.operands.emplace_back())))
        return failure();
    for (StringRef tensor : outs)
      if (failed(parseTensor(tensor.trim(), -1, rule.results.emplace_back())))
        return failure();
    rule.markReduced();
    return rule;
  }

private:
  unsigned factor(StringRef name) {
    bool whole = name.consume_back("!");
    int i = rule.find(name);
    if (i < 0) {
      i = rule.factors.size();
      rule.factors.push_back({name.str(), 0, false, false});
    }
    rule.factors[i].whole |= whole;
    return i;
  }

  LogicalResult parseTensor(StringRef tensor, int64_t rank, TensorFactors &out) {
    out.linear = tensor.consume_front("~");
    out.additive = tensor.consume_front("+");
    SmallVector<SmallVector<unsigned, 1>> before, after;
    if (tensor.consume_front("@")) {
      StringRef name = tensor.take_until([](char c) { return c == ' '; });
      tensor = tensor.drop_front(name.size());
      out.indexes = factor(name);
    }
    bool sawEllipsis = false, wholeEllipsis = false;
    for (tensor = tensor.ltrim(); !tensor.empty(); tensor = tensor.ltrim()) {
      if (tensor.consume_front("...")) {
        sawEllipsis = true;
        wholeEllipsis |= tensor.consume_front("!");
        continue;
      }
      SmallVector<unsigned, 1> dim;
      StringRef item;
      if (tensor.consume_front("(")) {
        std::tie(item, tensor) = tensor.split(')');
        SmallVector<StringRef> names;
        item.split(names, ' ', -1, false);
        for (StringRef name : names)
          dim.push_back(factor(name));
      } else {
        item = tensor.take_until([](char c) { return c == ' '; });
        tensor = tensor.drop_front(item.size());
        if (item != "1")
          dim.push_back(factor(item));
      }
      (sawEllipsis ? after : before).push_back(std::move(dim));
    }
    int64_t named = before.size() + after.size();
    if (sawEllipsis && ellipsis < 0 && rank >= 0) {
      ellipsis = rank - named;
      if (ellipsis < 0) {
        error = (Twine("expected at least ") + Twine(named) + " dimensions, found " + Twine(rank))
                    .str();
        return failure();
      }
    }
    int64_t wanted = named + (sawEllipsis ? std::max<int64_t>(ellipsis, 0) : 0);
    if (rank >= 0 && rank != wanted) {
      error = (Twine("expected ") + Twine(wanted) + " dimensions, found " + Twine(rank)).str();
      return failure();
    }
    out.dims = std::move(before);
    if (sawEllipsis)
      for (int64_t i = 0; i < ellipsis; ++i)
        out.dims.push_back({factor(("_" + Twine(i) + (wholeEllipsis ? "!" : "")).str())});
    llvm::append_range(out.dims, after);
    return success();
  }

  StringRef text;
  ArrayRef<int64_t> ranks;
  std::string &error;
  ShardingRule rule;
  int64_t ellipsis = -1;
};
} // namespace

/// A bound on memory where texts come without end.
constexpr size_t mostKnownRules = 4096;

FailureOr<ShardingRule> parseShardingRule(StringRef text, ArrayRef<int64_t> operandRanks,
                                          std::string &error) {
  // The ops of a model have few different rules. Passes in several threads parse them.
  thread_local std::map<std::pair<std::string, std::vector<int64_t>>, ShardingRule, std::less<>> known;
  std::pair<std::string, std::vector<int64_t>> key(text, operandRanks);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  FailureOr<ShardingRule> rule = Parser(text, operandRanks, error).parse();
  if (succeeded(rule) && known.size() < mostKnownRules)
    known.emplace(std::move(key), *rule);
  return rule;
}

LogicalResult inferFactorSizes(ShardingRule &rule, ArrayRef<ArrayRef<int64_t>> operands,
                               ArrayRef<std::pair<StringRef, int64_t>> known, std::string &error) {
  /// A dimension of an operand; none: the op's attributes.
  struct Place {
    int operand = -1, dim = -1;
  };
  SmallVector<Place> where(rule.factors.size());
  for (auto &[name, size] : known) {
    int f = rule.find(name);
    if (f < 0)
      continue;
    rule.factors[f].size = size;
  }
  auto describe = [](Place place) {
    return place.operand < 0 ? "the op's attributes"
                             : ("dimension " + Twine(place.dim) + " of operand " + Twine(place.operand)).str();
  };
  auto set = [&](unsigned f, int64_t size, Place at) {
    if (rule.factors[f].size == 0) {
      rule.factors[f].size = size;
      where[f] = at;
      return success();
    }
    if (rule.factors[f].size == size)
      return success();
    error = (Twine(describe(at)) + " is " + Twine(size) + " but " + describe(where[f]) + " is " +
             Twine(rule.factors[f].size))
                .str();
    return LogicalResult(failure());
  };
  // Plain dimensions first: they give the parts of composed ones.
  for (auto [i, tensor] : enumerate(rule.operands))
    for (auto [d, dim] : enumerate(tensor.dims))
      if (dim.size() == 1 && failed(set(dim[0], operands[i][d], {int(i), int(d)})))
        return failure();
  for (auto [i, tensor] : enumerate(rule.operands))
    for (auto [d, dim] : enumerate(tensor.dims)) {
      if (dim.size() == 1)
        continue;
      int64_t product = 1, unknown = -1;
      for (unsigned f : dim) {
        if (rule.factors[f].size)
          product *= rule.factors[f].size;
        else if (unknown < 0)
          unknown = f;
        else {
          error = describe({int(i), int(d)}) + " has more than one factor of unknown size";
          return failure();
        }
      }
      int64_t size = operands[i][d];
      if (product == 0 || size % product != 0 || (unknown < 0 && size != product)) {
        error =
            (Twine(describe({int(i), int(d)})) + " is " + Twine(size) + ", not a multiple of " + Twine(product))
                .str();
        return failure();
      }
      if (unknown >= 0 && failed(set(unknown, size / product, {int(i), int(d)})))
        return failure();
    }
  return success();
}

SmallVector<int64_t> shapeOf(const ShardingRule &rule, const TensorFactors &tensor) {
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.dims) {
    int64_t size = 1;
    for (unsigned f : dim)
      size *= rule.factors[f].size;
    shape.push_back(size);
  }
  return shape;
}

ShardingRule elementwiseRule(ArrayRef<int64_t> resultShape,
                             ArrayRef<ArrayRef<int64_t>> operandShapes, bool linear,
                             bool additive) {
  ShardingRule rule;
  for (auto [i, size] : enumerate(resultShape))
    rule.factors.push_back({("_" + Twine(i)).str(), size, false, false});
  auto tensor = [&](size_t rank) {
    TensorFactors t;
    for (size_t d = resultShape.size() - rank; d < resultShape.size(); ++d)
      t.dims.push_back({unsigned(d)});
    return t;
  };
  for (ArrayRef<int64_t> shape : operandShapes) {
    rule.operands.push_back(tensor(shape.size()));
    rule.operands.back().linear = linear;
    rule.operands.back().additive = additive;
  }
  rule.results.push_back(tensor(resultShape.size()));
  return rule;
}

ShardingRule reshapeRule(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  ShardingRule rule;
  rule.operands.resize(1);
  rule.results.resize(1);
  rule.operands[0].dims.resize(from.size());
  rule.operands[0].linear = true;
  rule.results[0].dims.resize(to.size());
  auto factor = [&](int64_t size) {
    rule.factors.push_back({("_" + Twine(rule.factors.size())).str(), size, false, false});
    return unsigned(rule.factors.size() - 1);
  };
  // Both sides are consumed major first; the smaller remainder, when it divides
  // the larger, is a common factor. When it does not, the rest of the run up to
  // the next common boundary is one factor that must stay whole.
  size_t i = 0, j = 0;
  int64_t a = from.empty() ? 1 : from[0], b = to.empty() ? 1 : to[0];
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && a == 1) {
      a = ++i < from.size() ? from[i] : 1;
      continue;
    }
    if (j < to.size() && b == 1) {
      b = ++j < to.size() ? to[j] : 1;
      continue;
    }
    if (i >= from.size() || j >= to.size())
      break;
    int64_t common = std::gcd(a, b);
    if (common != std::min(a, b))
      // Minor parts interleave: nothing below this point corresponds evenly.
      return rule;
    unsigned f = factor(common);
    rule.operands[0].dims[i].push_back(f);
    rule.results[0].dims[j].push_back(f);
    a /= common;
    b /= common;
  }
  return rule;
}

} // namespace meshwright
