//===- ContractionModels.cpp - sums of products -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Every contraction is read from its factor table, packed into a batch of plain
// matrix products, and unpacked.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Contraction.h"
#include "Interpreter/Gemm.h"
#include "Interpreter/Model.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// The distance in elements that one step of each factor makes in a tensor; 0
/// for factors it does not have.
static SmallVector<int64_t> stridesOf(const ShardingRule &rule, const TensorFactors &tensor) {
  SmallVector<int64_t> strides(rule.factors.size(), 0);
  int64_t stride = 1;
  for (const auto &dim : llvm::reverse(tensor.dims))
    for (unsigned f : llvm::reverse(dim)) {
      strides[f] = stride;
      stride *= rule.factors[f].size;
    }
  return strides;
}

/// Visits every index of `factors`, the last fastest, with its offset in a tensor
/// of these strides.
template <typename Visit>
static void visit(const ShardingRule &rule, ArrayRef<unsigned> factors, ArrayRef<int64_t> strides,
                  Visit visitor) {
  SmallVector<int64_t> index(factors.size(), 0);
  int64_t offset = 0;
  while (true) {
    visitor(offset);
    int64_t d = int64_t(factors.size()) - 1;
    for (; d >= 0; --d) {
      int64_t stride = strides[factors[d]], size = rule.factors[factors[d]].size;
      offset += stride;
      if (++index[d] < size)
        break;
      offset -= stride * size;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

static int64_t sizeOf(const ShardingRule &rule, ArrayRef<unsigned> factors) {
  int64_t size = 1;
  for (unsigned f : factors)
    size *= rule.factors[f].size;
  return size;
}

/// A tensor's elements in the order of `batch`, `outer`, `inner`, summed over the
/// factors `own` that appear nowhere else.
static std::vector<double> pack(const ShardingRule &rule, const TensorFactors &factors,
                                const Tensor &tensor, ArrayRef<unsigned> batch,
                                ArrayRef<unsigned> outer, ArrayRef<unsigned> inner,
                                ArrayRef<unsigned> own) {
  SmallVector<int64_t> strides = stridesOf(rule, factors);
  SmallVector<unsigned> order(batch);
  llvm::append_range(order, outer);
  llvm::append_range(order, inner);
  std::vector<double> packed;
  packed.reserve(sizeOf(rule, order));
  const double *data = tensor.floats().data();
  visit(rule, order, strides, [&](int64_t at) {
    double sum = 0;
    visit(rule, own, strides, [&](int64_t more) { sum += data[at + more]; });
    packed.push_back(sum);
  });
  return packed;
}

Tensor interp::contract(Operation *op, const ShardingRule &rule, const Tensor &lhs,
                        const Tensor &rhs) {
  SmallVector<unsigned> batch, rows, columns, summed, lhsOnly, rhsOnly;
  auto lhsHas = stridesOf(rule, rule.operands[0]), rhsHas = stridesOf(rule, rule.operands[1]),
       outHas = stridesOf(rule, rule.results[0]);
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    if (lhsHas[f] && rhsHas[f])
      (outHas[f] ? batch : summed).push_back(f);
    else if (lhsHas[f])
      (outHas[f] ? rows : lhsOnly).push_back(f);
    else if (rhsHas[f])
      (outHas[f] ? columns : rhsOnly).push_back(f);
  }
  std::vector<double> a = pack(rule, rule.operands[0], lhs, batch, rows, summed, lhsOnly);
  std::vector<double> b = pack(rule, rule.operands[1], rhs, batch, summed, columns, rhsOnly);
  int64_t m = sizeOf(rule, rows), n = sizeOf(rule, columns), k = sizeOf(rule, summed);
  std::vector<double> c(sizeOf(rule, batch) * m * n);
  for (int64_t i = 0; i < sizeOf(rule, batch); ++i)
    gemm(m, n, k, a.data() + i * m * k, b.data() + i * k * n, c.data() + i * m * n);

  Tensor result(op->getResult(0).getType());
  double *out = result.writeFloats();
  SmallVector<unsigned> order(batch);
  llvm::append_range(order, rows);
  llvm::append_range(order, columns);
  int64_t next = 0;
  visit(rule, order, outHas, [&](int64_t at) { out[at] = c[next++]; });
  return result;
}

static LogicalResult linear(train::LinearOp op, ArrayRef<Tensor> operands,
                            SmallVectorImpl<Tensor> &results, RankContext &) {
  results.push_back(contract(op, op.getShardingRule(), operands[0], operands[1]));
  return success();
}

static LogicalResult contractOp(train::ContractOp op, ArrayRef<Tensor> operands,
                                SmallVectorImpl<Tensor> &results, RankContext &) {
  Tensor result = contract(op, op.getShardingRule(), operands[0], operands[1]);
  if (op.getInit()) {
    double *out = result.writeFloats();
    for (auto [i, value] : llvm::enumerate(operands[2].floats()))
      out[i] += value;
  }
  results.push_back(result);
  return success();
}

void interp::attachContractionModels(MLIRContext *context) {
  attach<train::LinearOp, linear>(context);
  attach<train::ContractOp, contractOp>(context);
}
