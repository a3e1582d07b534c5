//===- Orthogonalize.cpp - the direction of Muon's steps --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Newton-Schulz iteration for the polar factor (Jordan et al. 2024): X over its norm, and five times
// X = a X + (b A + c A A) X, A = X X^T. Of a matrix with more rows than columns A = X^T X is on the
// other side, which is the same polynomial of X with the smaller A; nothing is transposed.
//
// One layer at a time: a repeat, whose function has the intermediate values of one layer.
//
//===----------------------------------------------------------------------===//
#include "Orthogonalize.h"
#include "FunctionUtils.h"
#include "MeanSquares.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace {
/// X = a X + b A X + c A A X.
struct Polynomial {
  double a, b, c;
};

/// Steps, and what norms are multiplied by before them.
struct Iteration {
  std::array<Polynomial, 5> steps;
  double margin;
};
} // namespace

static Iteration iterationOf(MuonCoefficients coefficients) {
  if (coefficients == MuonCoefficients::keller) {
    Iteration iteration{{}, /*margin=*/1};
    iteration.steps.fill({3.4445, -4.7750, 2.0315});
    return iteration;
  }
  // Amsel et al. 2025, implementation 1: singular values from 1e-3 on, and a margin of 1% for rounding
  // errors in every polynomial of the five.
  Iteration iteration{{{{8.28721201814563, -23.595886519098837, 17.300387312530933},
                        {4.107059111542203, -2.9478499167379106, 0.5448431082926601},
                        {3.9486908534822946, -2.908902115962949, 0.5518191394370137},
                        {3.3184196573706015, -2.488488024314874, 0.51004894012372},
                        {2.300652019954817, -1.6689039845747493, 0.4188073119525673}}},
                      /*margin=*/1.01};
  for (Polynomial &p : iteration.steps)
    p = {p.a / 1.01, p.b / std::pow(1.01, 3), p.c / std::pow(1.01, 5)};
  return iteration;
}

bool train::isHiddenMatrix(VariableOp parameter) {
  return parameter.getStacked() &&
         parameter.getTensorType().getRank() - countsOf(parameter) == 2;
}

double train::orthogonalFactor(VariableOp parameter, MuonScale scale) {
  ArrayRef<int64_t> matrix = parameter.getTensorType().getShape().take_back(2);
  return scale == MuonScale::keller
             ? std::sqrt(std::max(1.0, double(matrix[0]) / double(matrix[1])))
             : 0.2 * std::sqrt(double(std::max(matrix[0], matrix[1])));
}

namespace {
/// The body of the function for one layer.
class NewtonSchulz {
public:
  NewtonSchulz(OpBuilder &builder, Location loc, RankedTensorType type)
      : b(builder), loc(loc), type(type), rank(type.getRank()), rows(type.getDimSize(rank - 2)),
        columns(type.getDimSize(rank - 1)) {}

  Value run(Value x, double factor, const Orthogonalization &how) {
    Iteration iteration = iterationOf(how.coefficients);
    x = normalized(x, iteration.margin);
    x = cast(x, how.element);
    for (const Polynomial &p : iteration.steps)
      x = step(x, p);
    x = cast(x, type.getElementType());
    return factor == 1 ? x : scale(x, factor);
  }

private:
  Value scale(Value x, double factor) {
    return ScaleOp::create(b, loc, x, b.getF64FloatAttr(factor));
  }
  Value add(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  Value cast(Value x, Type element) {
    auto from = ::cast<RankedTensorType>(x.getType());
    if (from.getElementType() == element)
      return x;
    return CastOp::create(b, loc, RankedTensorType::get(from.getShape(), element), x);
  }

  /// Each matrix over its norm, which is 1e-7 at least, as torch has it: zeros stay zeros.
  Value normalized(Value x, double margin) {
    Value squares = MulOp::create(b, loc, x, x);
    SmallVector<int64_t> dims{rank - 2, rank - 1};
    Value sum = ReduceOp::create(b, loc, ReduceKind::Sum, squares, dims);
    if (margin != 1)
      sum = scale(sum, margin * margin);
    sum = ClampOp::create(b, loc, sum, b.getF64FloatAttr(1e-14), b.getF64FloatAttr(INFINITY));
    Value inverse = InverseRootOp::create(b, loc, sum, b.getF64FloatAttr(0));
    return MulOp::create(b, loc, x, BroadcastOp::create(b, loc, type, inverse, dims));
  }

  Value step(Value x, const Polynomial &p) {
    bool left = rows <= columns;
    Value a = left ? contract("i k", x, "j k", x, "i j") : contract("k i", x, "k j", x, "i j");
    Value square = contract("i k", a, "k j", a, "i j");
    Value factor = add(scale(a, p.b), scale(square, p.c));
    Value product =
        left ? contract("i k", factor, "k j", x, "i j") : contract("i k", x, "k j", factor, "i j");
    return add(scale(x, p.a), product);
  }

  /// A product for each expert or head.
  Value contract(StringRef lhs, Value x, StringRef rhs, Value y, StringRef result) {
    std::string counts;
    for (int64_t d = 0; d < rank - 2; ++d)
      counts += "e" + std::to_string(d) + " ";
    std::string rule = counts + lhs.str() + ", " + counts + rhs.str() + " -> " + counts + result.str();
    return ContractOp::create(b, loc, rule, x, y, Value());
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType type;
  int64_t rank, rows, columns;
};
} // namespace

Value train::orthogonalize(VariableOp parameter, Value value, double factor,
                           const Orthogonalization &how, OpBuilder &builder) {
  auto module = parameter->getParentOfType<ModuleOp>();
  auto type = cast<RankedTensorType>(value.getType());
  auto layer = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  Location loc = nameLocation((parameter.getSymName() + ".direction").str(), parameter.getLoc());
  OpBuilder inside(module.getContext());
  func::FuncOp function = createFunction(
      module, inside, loc, (parameter.getSymName() + ".orthogonalize").str(), layer, {});
  function.setPrivate();
  setRole(function, Role::Update);
  Value result = NewtonSchulz(inside, loc, layer).run(function.getArgument(0), factor, how);
  finishFunction(function, inside, result);
  auto repeat = RepeatOp::create(builder, loc, type, function.getSymName(),
                                 uint64_t(type.getDimSize(0)), /*reverse=*/false,
                                 /*indexed=*/false, ValueRange{}, value, ValueRange{});
  setRole(repeat, Role::Update);
  return repeat.getResult(0);
}
