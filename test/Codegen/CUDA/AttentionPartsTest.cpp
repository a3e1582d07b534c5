//===- AttentionPartsTest.cpp - PTX of attention of parts of the keys ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// As a ring calls it: results for parts of the keys are merged, gradients added up.
//
//===----------------------------------------------------------------------===//
#include "../../Runtime/Kernels/Reference.h"
#include "Codegen/CUDA/Lowering.h"
#include "Exec/Exec.h"
#include "PtxKernels.h"
#include "meshwright/Codegen.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <deque>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

namespace {
/// A call of all keys, as calls of `part` keys each. The first has the sinks, the others merge.
class Parts {
public:
  Parts(const AttentionCase &all, int64_t part, int64_t stride)
      : all(all), shape(all.shape), part(part), stride(stride) {
    kernels = PtxKernels::ofProgram(text());
  }

  /// Compares with all keys at once. `order`: where parts begin, in the order of the calls.
  void check(ArrayRef<int32_t> order);

private:
  std::string text() const;
  std::string tensor(int64_t length, int64_t heads, int64_t dim, StringRef type) const {
    return llvm::formatv("memref<{0}x{1}x{2}x{3}x{4}>", shape.batch, length, heads, dim, type);
  }
  unsigned add(std::vector<char> bytes, bool isWritten) {
    memory.push_back(std::move(bytes));
    return run->add(memory.back().data(), int64_t(memory.back().size()), isWritten);
  }
  template <typename T> unsigned given(const T *from, int64_t count) {
    return add({(const char *)from, (const char *)(from + count)}, true);
  }
  /// The part of `rows`, of all keys, that begins with key `first`. Behind the last key are numbers
  /// that nobody may read.
  unsigned keysFrom(const std::vector<float> &rows, int64_t first, int64_t width) {
    std::vector<float> some(shape.batch * part * width, 7.0f);
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t t = 0; t < part && first + t * stride < shape.keys; ++t)
        std::copy_n(rows.begin() + (b * shape.keys + first + t * stride) * width, width,
                    some.begin() + (b * part + t) * width);
    return add(encode(shape.elementType, some), true);
  }
  /// Adds a part's gradient, in f32, to that of all keys.
  void addTo(std::vector<float> &sums, unsigned gradient, int64_t first, int64_t width);
  bool launch(StringRef name, ArrayRef<unsigned> operands) {
    std::string wrong = run->launch(name, operands);
    if (!wrong.empty())
      ADD_FAILURE() << name.str() << ": " << wrong;
    return wrong.empty();
  }

  const AttentionCase &all;
  MwAttention shape;
  int64_t part, stride; ///< keys of a part, and from one to the next
  std::unique_ptr<PtxKernels> kernels;
  std::optional<PtxRun> run;
  std::deque<std::vector<char>> memory;
};
} // namespace

std::string Parts::text() const {
  StringRef element = shape.elementType == MW_F32 ? "f32" : "bf16";
  std::string q = tensor(shape.queries, shape.heads, shape.headDim, element),
              k = tensor(part, shape.kvHeads, shape.headDim, element),
              v = tensor(part, shape.kvHeads, shape.valueDim, element),
              given = tensor(shape.queries, shape.heads, shape.valueDim, element),
              out = tensor(shape.queries, shape.heads, shape.valueDim, "f32"),
              dq = tensor(shape.queries, shape.heads, shape.headDim, "f32"),
              dk = tensor(part, shape.kvHeads, shape.headDim, "f32"),
              dv = tensor(part, shape.kvHeads, shape.valueDim, "f32");
  std::string perHead = llvm::formatv("memref<{0}xf32>", shape.heads),
              lse = llvm::formatv("memref<{0}x{1}x{2}xf32>", shape.batch, shape.heads, shape.queries),
              ids = llvm::formatv("memref<{0}xi32>", shape.batch),
              places = llvm::formatv("memref<{0}x{1}xi32>", shape.batch, shape.keys);
  std::string scratch =
      llvm::formatv("memref<{0}xi8>", shape.batch * shape.heads * shape.queries * 4);
  std::string optional, types;
  auto take = [&](bool present, StringRef spelled, StringRef type) {
    if (present)
      optional += (" " + spelled).str(), types += (type + ", ").str();
  };
  take(shape.dropout > 0, "dropout(%ids, %key)", ids + ", memref<2xi32>");
  take(shape.queryOffset, "query_offset(%query)", "memref<i32>");
  take(true, "key_offset(%at)", "memref<i32>");
  take(shape.positions, "positions(%places)", places);
  take(shape.slopes, "slopes(%slopes)", perHead);
  std::string sinks, sinksType, dsinks;
  if (shape.sinks)
    sinks = " sinks(%sinks)", sinksType = perHead + ", ", dsinks = ", %dsinks";
  std::string attributes = llvm::formatv(
      "scale {0:e16}{1} window {2} chunk {3} cap {4:e16} dropout {5:e16} stream {6} heads {7} queries {8} "
      "keys {9} key_stride {10}",
      double(shape.scale), shape.causal ? " causal" : "", shape.window, shape.chunk,
      double(shape.cap), double(shape.dropout), shape.stream, shape.globalHeads, shape.globalQueries,
      shape.keys, stride);
  std::string arguments = llvm::formatv(
      "ins(%dout: {0}, %q: {1}, %k: {2}, %v: {3}, %given: {0}, %ids: {4}, %key: memref<2xi32>, "
      "%query: memref<i32>, %at: memref<i32>, %places: {5}, %slopes: {6}, %sinks: {6}, %before: {7}, "
      "%beforeLse: {8}) outs(%out: {7}, %lse: {8}, ",
      given, q, k, v, ids, places, perHead, out, lse);
  arguments += llvm::formatv("%dq: {0}, %dk: {1}, %dv: {2}, %dsinks: {3}, %scratch: {4})", dq, dk, dv,
                             perHead, scratch);
  std::string body = llvm::formatv(
      "exec.attention ins(%q, %k, %v){0}{1} outs(%out, %lse) {2} : ({3}, {4}, {5}, {6}{7}{8}, {9}) -> ()\n",
      optional, sinks, attributes, q, k, v, types, sinksType, out, lse);
  body += llvm::formatv(
      "exec.attention ins(%q, %k, %v){0} before(%before, %beforeLse) outs(%out, %lse) {1} : ({2}, {3}, "
      "{4}, {5}{6}, {7}, {6}, {7}) -> ()\n",
      optional, attributes, q, k, v, types, out, lse);
  for (bool first : {true, false}) {
    if (!first && !shape.sinks)
      break; // There is one of both kinds.
    std::string operands = llvm::formatv("({0}, {1}, {2}, {3}, {0}, {4}, {5}{6}", given, q, k, v, lse,
                                         types, first ? sinksType : "");
    body += llvm::formatv("exec.attention_grad ins(%dout, %q, %k, %v, %given, %lse){0}{1} outs(%dq, %dk, "
                          "%dv{2}) workspace(%scratch) {3}",
                          optional, first ? sinks : "", first ? dsinks : "", attributes);
    body += llvm::formatv(" : {0}{1}, {2}, {3}, {4}{5}) -> ()\n", operands, dq, dk, dv,
                          first ? sinksType : "", scratch);
  }
  return llvm::formatv("module attributes {{exec.target = #exec.target<\"cuda\">} {{\n"
                       "exec.program private @step {0} {{\n{1}}\n}",
                       arguments, body);
}

void Parts::addTo(std::vector<float> &sums, unsigned gradient, int64_t first, int64_t width) {
  std::vector<float> rows = decode(MW_F32, memory[gradient]);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t t = 0; t < part; ++t)
      for (int64_t i = 0; i < width; ++i) {
        float value = rows[(b * part + t) * width + i];
        if (first + t * stride < shape.keys)
          sums[(b * shape.keys + first + t * stride) * width + i] += value;
        else
          ASSERT_EQ(value, 0.0f) << "of padding";
      }
}

void Parts::check(ArrayRef<int32_t> order) {
  ASSERT_TRUE(kernels) << text();
  run.emplace(*kernels);
  AttentionReference want(all);
  int32_t type = shape.elementType;
  int64_t rows = shape.batch * shape.heads * shape.queries;
  size_t outBytes = 4 * rows * shape.valueDim;
  unsigned q = add(encode(type, all.q), true), dout = add(encode(type, all.dout), true);
  unsigned delta = add(std::vector<char>(4 * rows), false),
           dsinks = add(std::vector<char>(4 * shape.heads), false);
  SmallVector<unsigned> common;
  if (shape.dropout > 0)
    common = {given(all.sequenceIds.data(), shape.batch), given(all.key.data(), 2)};
  if (shape.queryOffset)
    common.push_back(given(shape.queryOffset, 1));
  struct Call {
    unsigned k, v;
    SmallVector<unsigned> optional;
  };
  SmallVector<Call> calls;
  std::optional<unsigned> places, slopes;
  if (shape.positions)
    places = given(shape.positions, shape.batch * shape.keys);
  if (shape.slopes)
    slopes = given(shape.slopes, shape.heads);
  for (const int32_t &first : order) {
    Call call{keysFrom(all.k, first, shape.kvHeads * shape.headDim),
              keysFrom(all.v, first, shape.kvHeads * shape.valueDim), common};
    call.optional.push_back(given(&first, 1));
    if (places)
      call.optional.push_back(*places);
    if (slopes)
      call.optional.push_back(*slopes);
    if (shape.sinks && &first == order.begin())
      call.optional.push_back(given(shape.sinks, shape.heads));
    calls.push_back(call);
  }

  // In two memories in turn, and in one where a call has nothing to do but return.
  std::pair<unsigned, unsigned> result, before;
  for (auto [i, call] : llvm::enumerate(calls)) {
    if (i % 2 == 0)
      result = {add(std::vector<char>(outBytes), false), add(std::vector<char>(4 * rows), false)};
    SmallVector<unsigned> operands{q, call.k, call.v};
    operands.append(call.optional);
    if (i > 0)
      operands.append({before.first, before.second});
    operands.append({result.first, result.second});
    if (!launch(i == 0 ? "attention$0" : "attention$1", operands))
      return;
    before = result;
  }
  std::vector<float> out = decode(MW_F32, memory[result.first]);
  // Weights are rounded to bf16 on tensor cores, results nowhere.
  double tolerance = type == MW_F32 ? 2e-6 : 5e-3;
  EXPECT_LT(relativeError(out, want.out), tolerance);
  EXPECT_LT(relativeError(decode(MW_F32, memory[result.second]), want.lse), 1e-6);

  unsigned rounded = add(encode(type, out), true);
  std::vector<float> dq(all.q.size()), dk(all.k.size()), dv(all.v.size());
  for (auto [i, call] : llvm::enumerate(calls)) {
    unsigned dqPart = add(std::vector<char>(4 * all.q.size()), false),
             dkPart = add(std::vector<char>(4 * shape.batch * part * shape.kvHeads * shape.headDim), false),
             dvPart = add(std::vector<char>(4 * shape.batch * part * shape.kvHeads * shape.valueDim), false);
    SmallVector<unsigned> operands{dout, q, call.k, call.v, rounded, result.second};
    operands.append(call.optional);
    operands.append({dqPart, dkPart, dvPart});
    bool sinks = shape.sinks && i == 0;
    if (sinks)
      operands.push_back(dsinks);
    operands.push_back(delta);
    std::string name = shape.sinks && i > 0 ? "attention_grad$3" : "attention_grad$2";
    for (StringRef kind : {"", "$keys", "$values", "$sinks"})
      if (kernels->has(name + kind.str()) && !launch(name + kind.str(), operands))
        return;
    std::vector<float> added = decode(MW_F32, memory[dqPart]);
    for (auto [sum, value] : llvm::zip(dq, added))
      sum += value;
    addTo(dk, dkPart, order[i], shape.kvHeads * shape.headDim);
    addTo(dv, dvPart, order[i], shape.kvHeads * shape.valueDim);
  }
  tolerance = type == MW_F32 ? 4e-6 : 8e-3;
  double size = std::sqrt(double(want.dq.size()));
  EXPECT_LT(relativeError(dq, want.dq, size / 10), tolerance);
  EXPECT_LT(relativeError(dk, want.dk, size / 10), tolerance);
  EXPECT_LT(relativeError(dv, want.dv), tolerance);
  if (shape.sinks)
    EXPECT_LT(relativeError(decode(MW_F32, memory[dsinks]), want.dsinks,
                            std::sqrt(double(want.lse.size()))),
              tolerance);
}

/// `documents`: how long one is at most; 0: a sequence is one. `terms`: with slopes and sinks.
static void checkParts(MwAttention shape, int64_t part, ArrayRef<int32_t> order, bool terms = false,
                  int64_t documents = 0, int64_t stride = 1) {
  SCOPED_TRACE(testing::Message() << shape.queries << " queries, " << shape.keys << " keys in parts of "
                                  << part << ", heads of " << shape.headDim << ", causal "
                                  << shape.causal << ", window " << shape.window << ", dropout "
                                  << shape.dropout << ", cap " << shape.cap << ", type "
                                  << shape.elementType << ", terms " << terms << ", documents of "
                                  << documents << ", of each " << stride << " keys one");
  std::mt19937 generator(3);
  AttentionCase all(shape, generator);
  if (terms)
    all.addSlopes(generator), all.addSinks(generator);
  if (documents)
    all.addDocuments(generator, documents);
  for (std::vector<float> *values : {&all.q, &all.k, &all.v, &all.dout})
    *values = decode(shape.elementType, encode(shape.elementType, *values));
  Parts(all, part, stride).check(order);
}

static MwAttention sizes(int64_t batch, int64_t length, int64_t dim, int64_t valueDim, int32_t type) {
  MwAttention shape = {};
  shape.batch = batch;
  shape.queries = shape.globalQueries = shape.keys = length;
  shape.heads = shape.globalHeads = 4;
  shape.kvHeads = 2;
  shape.headDim = dim;
  shape.valueDim = valueDim;
  shape.scale = 0.3f;
  shape.causal = 1;
  shape.elementType = type;
  return shape;
}

/// All that hides keys or changes scores. Of the last part a few keys are padding.
static void checkAll(MwAttention shape, int32_t part) {
  const int32_t order[] = {2 * part, 0, 3 * part, part};
  shape.queries = shape.globalQueries = shape.keys = 4 * part - 7;
  checkParts(shape, part, order, /*terms=*/true, /*documents=*/part);
  shape.window = part / 2;
  shape.cap = 3;
  shape.dropout = 0.25f;
  shape.stream = 5;
  checkParts(shape, part, order, /*terms=*/true);
  shape.causal = 0; // The window is on both sides.
  shape.cap = 0;
  checkParts(shape, part, order);
  shape.window = 0;
  shape.dropout = 0;
  checkParts(shape, part, order);
}

TEST(GPUAttentionParts, F32) { checkAll(sizes(1, 0, 24, 16, MW_F32), 21); }
TEST(GPUAttentionParts, OddHeads) { checkParts(sizes(2, 60, 5, 7, MW_BF16), 20, {40, 0, 20}, true, 20); }
TEST(GPUAttentionParts, TensorCores) { checkAll(sizes(1, 0, 16, 32, MW_BF16), 40); }
TEST(GPUAttentionParts, SeveralTiles) { checkParts(sizes(1, 210, 64, 64, MW_BF16), 70, {140, 0, 70}); }

/// Chunks that end in parts and at their ends.
TEST(GPUAttentionParts, Chunks) {
  const int32_t order[] = {40, 0, 60, 20};
  for (MwAttention shape : {sizes(1, 77, 24, 16, MW_F32), sizes(1, 77, 16, 32, MW_BF16)})
    for (int64_t chunk : {20, 27}) {
      shape.chunk = chunk;
      checkParts(shape, 20, order, /*terms=*/true);
      checkParts(shape, 20, order, /*terms=*/false, /*documents=*/20);
    }
}

/// Of each four keys a part has one.
TEST(GPUAttentionParts, Stripes) {
  const int32_t order[] = {2, 0, 3, 1};
  for (MwAttention shape : {sizes(1, 77, 24, 16, MW_F32), sizes(1, 77, 16, 32, MW_BF16)}) {
    checkParts(shape, 20, order, /*terms=*/true, /*documents=*/20, /*stride=*/4);
    shape.window = 10;
    shape.dropout = 0.25f;
    shape.stream = 5;
    checkParts(shape, 20, order, /*terms=*/true, /*documents=*/0, /*stride=*/4);
    shape.causal = 0;
    checkParts(shape, 20, order, /*terms=*/false, /*documents=*/0, /*stride=*/4);
  }
}

/// Queries of a device see nothing of some parts: the first leaves zeros, the others what is before.
TEST(GPUAttentionParts, Unseen) {
  for (int32_t type : {MW_F32, MW_BF16}) {
    MwAttention shape = sizes(1, 80, 16, 16, type);
    const int32_t first = 20;
    shape.queryOffset = &first;
    shape.queries = 20;
    checkParts(shape, 20, {60, 20, 0, 40});
    shape.window = 7;
    checkParts(shape, 20, {20, 60, 0, 40}, /*terms=*/true);
  }
}

/// Scores that are no numbers are not taken for nothing where results are merged.
TEST(GPUAttentionParts, NaNStays) {
  auto kernels = PtxKernels::ofProgram(R"(module attributes {exec.target = #exec.target<"cuda">} {
    exec.program private @step ins(%q: memref<1x1x1x4xf32>, %k: memref<1x1x1x4xf32>, %v: memref<1x1x1x4xf32>, %at: memref<i32>, %before: memref<1x1x1x4xf32>, %beforeLse: memref<1x1x1xf32>) outs(%out: memref<1x1x1x4xf32>, %lse: memref<1x1x1xf32>) {
      exec.attention ins(%q, %k, %v) key_offset(%at) before(%before, %beforeLse) outs(%out, %lse) scale 1.0 heads 1 queries 1 keys 1 : (memref<1x1x1x4xf32>, memref<1x1x1x4xf32>, memref<1x1x1x4xf32>, memref<i32>, memref<1x1x1x4xf32>, memref<1x1x1xf32>, memref<1x1x1x4xf32>, memref<1x1x1xf32>) -> ()
    }
  })");
  ASSERT_TRUE(kernels);
  PtxRun run(*kernels);
  std::vector<float> q(4, NAN), k(4, 1.0f), v(4, 1.0f), before(4, 0.0f), beforeLse(1, -INFINITY), out(4), lse(1);
  int32_t at = 0;
  SmallVector<unsigned> operands;
  for (std::vector<float> *given : {&q, &k, &v})
    operands.push_back(run.add(given->data(), 4 * given->size(), true));
  operands.push_back(run.add(&at, 4, true));
  for (std::vector<float> *given : {&before, &beforeLse})
    operands.push_back(run.add(given->data(), 4 * given->size(), true));
  for (std::vector<float> *result : {&out, &lse})
    operands.push_back(run.add(result->data(), 4 * result->size(), false));
  ASSERT_EQ(run.launch("attention$0", operands), "");
  EXPECT_TRUE(std::isnan(lse[0]) && std::isnan(out[0]));
}
