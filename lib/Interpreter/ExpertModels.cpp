//===- ExpertModels.cpp - routers, rows of experts and their products -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

//===--- routers ------------------------------------------------------------===//

static LogicalResult sigmoid(train::SigmoidOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *y = result.writeFloats();
  for (auto [i, x] : llvm::enumerate(in[0].floats()))
    y[i] = 1 / (1 + std::exp(-x));
  results.push_back(result);
  return success();
}

/// A result of x's shape, each row made of x's row by `compute(x, y, width)`.
template <typename Compute> static Tensor byRows(Type type, const Tensor &x, Compute compute) {
  Tensor result(type);
  int64_t width = x.shape().back();
  double *y = result.writeFloats();
  for (int64_t row = 0; row < x.size(); row += width)
    compute(x.floats().data() + row, y + row, width);
  return result;
}

static LogicalResult softmax(train::SoftmaxOp op, Operands in, Results &results, RankContext &) {
  results.push_back(byRows(op.getType(), in[0], [](const double *x, double *y, int64_t n) {
    double most = *std::max_element(x, x + n), sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i)
      y[i] /= sum;
  }));
  return success();
}

static LogicalResult topK(train::TopKOp op, Operands in, Results &results, RankContext &) {
  int64_t k = op.getK();
  results.push_back(byRows(op.getType(), in[0], [&](const double *x, double *y, int64_t n) {
    if (std::any_of(x, x + n, [](double v) { return std::isnan(v); }))
      return; // nothing is chosen
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
    for (int64_t i = 0; i < k; ++i)
      y[order[i]] = 1;
  }));
  return success();
}

static LogicalResult oneHot(train::OneHotOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t width = result.shape().back();
  double *y = result.writeFloats();
  for (auto [i, id] : llvm::enumerate(in[0].integers()))
    if (id >= 0 && id < width)
      y[i * width + id] = 1;
  results.push_back(result);
  return success();
}

static LogicalResult logSumExp(train::LogSumExpOp op, Operands in, Results &results,
                               RankContext &) {
  Tensor result(op.getType());
  int64_t width = in[0].shape().back();
  double *y = result.writeFloats();
  for (int64_t row = 0; row < result.size(); ++row) {
    const double *x = in[0].floats().data() + row * width;
    double most = *std::max_element(x, x + width), sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum += std::exp(x[i] - most);
    y[row] = most + std::log(sum);
  }
  results.push_back(result);
  return success();
}

static LogicalResult tally(train::TallyOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t experts = result.size();
  double *y = result.writeFloats();
  for (auto [i, chosen] : llvm::enumerate(in[0].floats()))
    y[i % experts] += std::isfinite(in[1].floats()[i]) ? chosen : NAN;
  results.push_back(result);
  return success();
}

static LogicalResult batchSum(train::BatchSumOp op, Operands, Results &, RankContext &) {
  return op.emitOpError("is a sum over all microbatches, which no function has yet: interpret what "
                        "train-count-batch makes of the module");
}

static LogicalResult balance(train::BalanceOp op, Operands in, Results &results, RankContext &) {
  Tensor result = in[0];
  int64_t experts = result.shape().back();
  double rate = op.getRate().convertToDouble(), *bias = result.writeFloats();
  for (int64_t row = 0; row < result.size(); row += experts) {
    const double *tokens = in[1].floats().data() + row;
    double all = std::accumulate(tokens, tokens + experts, 0.0);
    for (int64_t e = 0; e < experts; ++e) {
      double share = tokens[e] * double(experts);
      bias[row + e] += share < all ? rate : share > all ? -rate : 0;
    }
  }
  results.push_back(result);
  return success();
}

//===--- rows of experts ----------------------------------------------------===//

static LogicalResult route(train::RouteOp op, Operands in, Results &results, RankContext &) {
  for (Type type : op->getResultTypes())
    results.emplace_back(type);
  int64_t experts = in[0].dim(2), k = op.getK(), tokens = in[0].dim(0) * in[0].dim(1);
  int64_t ofBlock = experts / int64_t(op.getBlocks()), slots = in[0].dim(0) * int64_t(op.getSlots());
  int64_t *chosen = results[0].writeIntegers(), *rows = results[1].writeIntegers();
  int64_t *choices = results[2].writeIntegers(), *sorted = results[3].writeIntegers();
  int64_t capacity = op.getCapacity() ? int64_t(op.getCapacity()) : tokens;
  std::vector<int64_t> taken(experts); // tokens of the sequence that each expert has
  std::vector<bool> dropped(k * tokens);
  for (int64_t token = 0; token < tokens; ++token) {
    if (token % in[0].dim(1) == 0)
      taken.assign(experts, 0);
    const double *mask = in[0].floats().data() + token * experts;
    int64_t found = 0;
    for (int64_t e = 0; e < experts && found < k; ++e)
      if (mask[e] != 0) {
        dropped[found * tokens + token] = ++taken[e] > capacity;
        chosen[found++ * tokens + token] = e;
      }
    for (; found < k; ++found)
      chosen[found * tokens + token] = experts;
  }
  std::fill_n(choices, results[2].size(), -1);
  std::fill_n(sorted, results[3].size(), ofBlock);
  std::vector<int64_t> order(k * tokens), filled(op.getBlocks());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return chosen[a] < chosen[b]; });
  for (int64_t choice : order) {
    rows[choice] = -1;
    if (chosen[choice] == experts || dropped[choice])
      continue;
    int64_t block = chosen[choice] / ofBlock, row = block * slots + filled[block]++;
    rows[choice] = row;
    choices[row] = choice;
    sorted[row] = chosen[choice] % ofBlock;
  }
  return success();
}

static LogicalResult rounds(train::RoundsOp op, Operands in, Results &results, RankContext &) {
  results.emplace_back(op.getType());
  int64_t blocks = in[0].dim(0), all = in[0].size() / blocks;
  int64_t ofRound = in[0].dim(1) * int64_t(op.getSlots()), most = 0;
  for (int64_t block = 0; block < blocks; ++block)
    most = std::max<int64_t>(most, llvm::count_if(in[0].integers().slice(block * all, all),
                                                  [](int64_t choice) { return choice >= 0; }));
  *results.back().writeIntegers() = llvm::divideCeil(most, ofRound);
  return success();
}

static LogicalResult rowsOfRound(train::RowsOfRoundOp op, Operands in, Results &results,
                                 RankContext &) {
  for (Type type : op->getResultTypes())
    results.emplace_back(type);
  unsigned first = op.getRound() ? 1 : 0; // of those operands that are always there
  int64_t round = op.getRound() ? in[0].asInteger() : 0;
  int64_t blocks = in[first + 1].dim(0), all = in[first + 1].size() / blocks;
  int64_t ofPart = results[1].size() / blocks, part = op.getPart(), parts = op.getParts();
  int64_t before = round * parts * ofPart;
  // The slots that each block has in this part: [from, to).
  SmallVector<int64_t> from, to;
  for (int64_t block = 0; block < blocks; ++block) {
    ArrayRef<int64_t> choices = in[first + 1].integers().slice(block * all, all);
    int64_t end = parts == 1 ? all : llvm::count_if(choices, [](int64_t c) { return c >= 0; });
    int64_t there = std::clamp<int64_t>(end - before, 0, parts * ofPart);
    int64_t share = llvm::divideCeil(there, parts);
    from.push_back(before + part * share);
    to.push_back(std::min(before + (part + 1) * share, before + there));
  }
  int64_t *rows = results[0].writeIntegers();
  for (auto [i, row] : llvm::enumerate(in[first].integers())) {
    int64_t block = std::max<int64_t>(row, 0) / all, at = row - block * all;
    bool isOwn = row >= 0 && at >= from[block] && at < to[block];
    rows[i] = isOwn ? block * ofPart + at - from[block] : -1;
  }
  for (int which : {1, 2}) {
    int64_t *own = results[which].writeIntegers();
    for (int64_t slot = 0; slot < blocks * ofPart; ++slot) {
      int64_t block = slot / ofPart, at = from[block] + slot % ofPart;
      own[slot] = at < to[block] ? in[first + which].integers()[block * all + at] : -1;
    }
  }
  return success();
}

/// Row i of the result is row `ids[i]` modulo the number of x's rows, zeros where that is negative.
static Tensor rowsOf(Type type, const Tensor &x, const Tensor &ids) {
  Tensor result(type);
  int64_t width = x.shape().back(), count = x.size() / width;
  double *y = result.writeFloats();
  for (auto [i, id] : llvm::enumerate(ids.integers()))
    if (id >= 0)
      std::copy_n(x.floats().data() + id % count * width, width, y + i * width);
  return result;
}

static LogicalResult dispatch(train::DispatchOp op, Operands in, Results &results, RankContext &) {
  results.push_back(rowsOf(op.getType(), in[0], in[1]));
  return success();
}
static LogicalResult collect(train::CollectOp op, Operands in, Results &results, RankContext &) {
  results.push_back(rowsOf(op.getType(), in[0], in[1]));
  return success();
}

//===--- products -----------------------------------------------------------===//

/// The expert of a row among all `count`, where `id` is its number in the row's block; -1: none.
static int64_t expertOf(int64_t row, int64_t id, const Tensor &experts, int64_t count) {
  int64_t blocks = experts.dim(0), ofBlock = count / blocks;
  return id < 0 || id >= ofBlock ? -1 : row / (experts.size() / blocks) * ofBlock + id;
}

static LogicalResult groupedLinear(train::GroupedLinearOp op, Operands in, Results &results,
                                   RankContext &) {
  Tensor result(op.getType());
  const Tensor &x = in[0], &weight = in[1];
  int64_t inner = x.shape().back(), outer = result.shape().back();
  int64_t ofOut = op.getTransposed() ? 1 : inner, ofIn = op.getTransposed() ? outer : 1;
  double *y = result.writeFloats();
  for (auto [row, id] : llvm::enumerate(in[2].integers())) {
    int64_t expert = expertOf(row, id, in[2], weight.dim(0));
    if (expert < 0)
      continue; // zeros
    const double *w = weight.floats().data() + expert * inner * outer;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        y[row * outer + o] += w[o * ofOut + i * ofIn] * x.floats()[row * inner + i];
  }
  results.push_back(result);
  return success();
}

static LogicalResult groupedLinearGrad(train::GroupedLinearGradOp op, Operands in, Results &results,
                                       RankContext &) {
  Tensor result = op.getInit() ? in[3] : Tensor(op.getType());
  const Tensor &dy = in[0], &x = in[1];
  int64_t inner = x.shape().back(), outer = dy.shape().back();
  double *dw = result.writeFloats();
  for (auto [row, id] : llvm::enumerate(in[2].integers())) {
    int64_t expert = expertOf(row, id, in[2], result.dim(0));
    if (expert < 0)
      continue;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        dw[(expert * outer + o) * inner + i] +=
            dy.floats()[row * outer + o] * x.floats()[row * inner + i];
  }
  results.push_back(result);
  return success();
}

void interp::attachExpertModels(MLIRContext *context) {
  attach<train::SigmoidOp, sigmoid>(context);
  attach<train::SoftmaxOp, softmax>(context);
  attach<train::TopKOp, topK>(context);
  attach<train::OneHotOp, oneHot>(context);
  attach<train::LogSumExpOp, logSumExp>(context);
  attach<train::TallyOp, tally>(context);
  attach<train::BatchSumOp, batchSum>(context);
  attach<train::BalanceOp, balance>(context);
  attach<train::RouteOp, route>(context);
  attach<train::RoundsOp, rounds>(context);
  attach<train::RowsOfRoundOp, rowsOfRound>(context);
  attach<train::DispatchOp, dispatch>(context);
  attach<train::CollectOp, collect>(context);
  attach<train::GroupedLinearOp, groupedLinear>(context);
  attach<train::GroupedLinearGradOp, groupedLinearGrad>(context);
}
