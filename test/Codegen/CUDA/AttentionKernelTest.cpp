//===- AttentionKernelTest.cpp - PTX of attention against f64 -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
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
MwAttention sizes(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kvHeads,
                  int64_t dim) {
  MwAttention shape = {};
  shape.batch = batch;
  shape.queries = shape.globalQueries = queries;
  shape.keys = keys;
  shape.heads = shape.globalHeads = heads;
  shape.kvHeads = kvHeads;
  shape.headDim = shape.valueDim = dim;
  shape.scale = 0.3f;
  shape.elementType = MW_F32;
  return shape;
}

struct Results {
  std::vector<float> out, lse, dq, dk, dv, dsinks;
};

/// Both directions of attention, as a program has them.
class Attention {
public:
  explicit Attention(const AttentionCase &test) : test(test), shape(test.shape) {
    kernels = PtxKernels::ofProgram(text());
  }
  std::optional<Results> run();
  /// Whether all kernels multiply on tensor cores; none may where it is false.
  bool usesTensorCores() {
    SmallVector<StringRef> entries;
    StringRef(kernels->getText()).split(entries, ".entry ");
    auto with = llvm::count_if(entries, [](StringRef entry) { return entry.contains("mma.sync"); });
    // Gradients of sinks are sums alone.
    int64_t all = int64_t(kernels->getNames().size()) - kernels->has("attention_grad$1$sinks");
    EXPECT_TRUE(with == 0 || with == all);
    return with > 0;
  }

private:
  std::string text() const;

  const AttentionCase &test;
  MwAttention shape;
  std::unique_ptr<PtxKernels> kernels;
};
} // namespace

std::string Attention::text() const {
  const char *element = shape.elementType == MW_F32 ? "f32" : shape.elementType == MW_BF16 ? "bf16" : "f16";
  std::string q = llvm::formatv("memref<{0}x{1}x{2}x{3}x{4}>", shape.batch, shape.queries,
                                shape.heads, shape.headDim, element);
  std::string k = llvm::formatv("memref<{0}x{1}x{2}x{3}x{4}>", shape.batch, shape.keys,
                                shape.kvHeads, shape.headDim, element);
  auto withValues = [&](int64_t length, int64_t heads) {
    return llvm::formatv("memref<{0}x{1}x{2}x{3}x{4}>", shape.batch, length, heads, shape.valueDim, element)
        .str();
  };
  std::string out = withValues(shape.queries, shape.heads), v = withValues(shape.keys, shape.kvHeads);
  std::string perHead = llvm::formatv("memref<{0}xf32>", shape.heads);
  std::string lse = llvm::formatv("memref<{0}x{1}x{2}xf32>", shape.batch, shape.heads, shape.queries);
  std::string ids = llvm::formatv("memref<{0}xi32>", shape.batch);
  std::string places = llvm::formatv("memref<{0}x{1}xi32>", shape.batch, shape.keys);
  std::string scratch = llvm::formatv("memref<{0}xi8>", shape.batch * shape.heads * shape.queries * 4);
  std::string optional, optionalTypes, dsinks, dsinksType;
  std::string arguments =
      llvm::formatv("ins(%dout: {0}, %q: {1}, %k: {2}, %v: {3}, %ids: {4}, %key: memref<2xi32>, "
                    "%begin: memref<i32>, "
                    "%first: memref<i32>, %places: {8}, %slopes: {5}, %sinks: {5}) outs(%out: {0}, %lse: {6}, "
                    "%dq: {1}, %dk: {2}, %dv: {3}, %dsinks: {5}, "
                    "%scratch: {7})",
                    out, q, k, v, ids, perHead, lse, scratch, places);
  if (shape.dropout > 0) {
    optional = " dropout(%ids, %key)";
    optionalTypes = ids + ", memref<2xi32>, ";
  }
  if (shape.headOffset) {
    optional += " head_offset(%begin)";
    optionalTypes += "memref<i32>, ";
  }
  if (shape.queryOffset) {
    optional += " query_offset(%first)";
    optionalTypes += "memref<i32>, ";
  }
  if (shape.positions) {
    optional += " positions(%places)";
    optionalTypes += places + ", ";
  }
  if (shape.slopes) {
    optional += " slopes(%slopes)";
    optionalTypes += perHead + ", ";
  }
  if (shape.sinks) {
    optional += " sinks(%sinks)";
    optionalTypes += perHead + ", ";
    dsinks = ", %dsinks";
    dsinksType = perHead + ", ";
  }
  std::string attributes = llvm::formatv(
      "scale {0:e16}{1} window {2} chunk {3} cap {4:e16} dropout {5:e16} stream {6} heads {7} queries {8}",
      double(shape.scale), shape.causal ? " causal" : "", shape.window, shape.chunk,
      double(shape.cap), double(shape.dropout), shape.stream, shape.globalHeads, shape.globalQueries);
  return llvm::formatv(R"(
module attributes {{exec.target = #exec.target<"cuda">} {{
  exec.program private @step {0} {{
    exec.attention ins(%q, %k, %v){1} outs(%out, %lse) {2} : ({3}, {4}, {8}, {5}{9}, {6}) -> ()
    exec.attention_grad ins(%dout, %q, %k, %v, %out, %lse){1} outs(%dq, %dk, %dv{10}) workspace(%scratch) {2}
      : ({9}, {3}, {4}, {8}, {9}, {6}, {5}{3}, {4}, {8}, {11}{7}) -> ()
  }
})", arguments, optional, attributes, q, k, optionalTypes, lse, scratch, v, out, dsinks, dsinksType);
}

std::optional<Results> Attention::run() {
  if (!kernels) {
    ADD_FAILURE() << text();
    return std::nullopt;
  }
  PtxRun run(*kernels);
  std::deque<std::vector<char>> memory;
  auto add = [&](std::vector<char> bytes, bool isWritten) {
    memory.push_back(std::move(bytes));
    return run.add(memory.back().data(), memory.back().size(), isWritten);
  };
  auto given = [&](const std::vector<char> &bytes) { return add(bytes, true); };
  auto numbers = [&](const void *from, size_t count) {
    return add({(const char *)from, (const char *)from + 4 * count}, true);
  };
  auto empty = [&](size_t bytes) { return add(std::vector<char>(bytes), false); };

  int32_t type = shape.elementType, begin = shape.headOffset ? *shape.headOffset : 0;
  unsigned q = given(encode(type, test.q)), k = given(encode(type, test.k));
  unsigned v = given(encode(type, test.v)), dout = given(encode(type, test.dout));
  size_t rows = shape.batch * shape.heads * shape.queries * 4;
  unsigned out = empty(memory[dout].size()), lse = empty(rows), delta = empty(rows);
  unsigned dq = empty(memory[q].size()), dk = empty(memory[k].size()), dv = empty(memory[v].size());
  unsigned dsinks = empty(4 * shape.heads);
  SmallVector<unsigned> optional;
  if (shape.dropout > 0)
    optional = {numbers(test.sequenceIds.data(), test.sequenceIds.size()),
                numbers(test.key.data(), test.key.size())};
  if (shape.headOffset)
    optional.push_back(numbers(&begin, 1));
  if (shape.queryOffset)
    optional.push_back(numbers(shape.queryOffset, 1));
  if (shape.positions)
    optional.push_back(numbers(shape.positions, shape.batch * shape.keys));
  if (shape.slopes)
    optional.push_back(numbers(shape.slopes, shape.heads));
  if (shape.sinks)
    optional.push_back(numbers(shape.sinks, shape.heads));

  SmallVector<unsigned> forward{q, k, v}, gradient{dout, q, k, v, out, lse};
  forward.append(optional), forward.append({out, lse});
  gradient.append(optional), gradient.append({dq, dk, dv});
  if (shape.sinks)
    gradient.push_back(dsinks);
  gradient.push_back(delta);
  for (StringRef name : {"attention$0", "attention_grad$1", "attention_grad$1$keys",
                         "attention_grad$1$values", "attention_grad$1$sinks"}) {
    if (name.contains("$1$") && !kernels->has(name))
      continue;
    if (std::string wrong = run.launch(name, name == "attention$0" ? forward : gradient);
        !wrong.empty()) {
      ADD_FAILURE() << wrong;
      return std::nullopt;
    }
  }
  return Results{decode(type, memory[out]), decode(MW_F32, memory[lse]), decode(type, memory[dq]),
                 decode(type, memory[dk]), decode(type, memory[dv]), decode(MW_F32, memory[dsinks])};
}

/// `documents`: how long a document is at most; 0: sequences are one.
static void checkAttention(const MwAttention &shape, bool slopes = false, bool sinks = false,
                  int64_t documents = 0) {
  std::mt19937 generator(1);
  AttentionCase test(shape, generator);
  if (documents)
    test.addDocuments(generator, documents);
  if (slopes)
    test.addSlopes(generator);
  if (sinks)
    test.addSinks(generator);
  SCOPED_TRACE(testing::Message()
               << shape.batch << " x " << shape.queries << " queries, " << shape.keys << " keys, "
               << shape.heads << "/" << shape.kvHeads << " heads of " << shape.headDim << ", causal "
               << shape.causal << ", window " << shape.window << ", dropout " << shape.dropout
               << ", cap " << shape.cap << ", type " << shape.elementType << ", values of "
               << shape.valueDim << ", slopes " << slopes << ", sinks " << sinks << ", documents of "
               << documents);
  bool narrow = shape.elementType != MW_F32;
  // The reference sees what the type holds.
  if (narrow)
    for (std::vector<float> *values : {&test.q, &test.k, &test.v, &test.dout})
      *values = decode(shape.elementType, encode(shape.elementType, *values));
  Attention attention(test);
  auto got = attention.run();
  ASSERT_TRUE(got);
  EXPECT_EQ(attention.usesTensorCores(),
            narrow && shape.headDim % 16 == 0 && shape.headDim <= 256 && shape.valueDim % 16 == 0);
  AttentionReference want(test);
  // Of bf16 results the last bit is 2^-9 of the number; gradients take `out` rounded. In
  // f32 errors of sums over a head grow with its size.
  double tolerance = shape.elementType == MW_BF16  ? 8e-3
                     : shape.elementType == MW_F16 ? 1e-3
                     : shape.headDim > 128         ? 4e-6
                                                   : 2e-6;
  EXPECT_LT(relativeError(got->out, want.out), tolerance);
  EXPECT_LT(relativeError(got->lse, want.lse), 1e-6);
  // Of what may be zero in truth the errors count against the inputs, which are about 1.
  double size = std::sqrt(double(want.dq.size()));
  EXPECT_LT(relativeError(got->dq, want.dq, size / 10), tolerance);
  EXPECT_LT(relativeError(got->dk, want.dk, size / 10), tolerance);
  EXPECT_LT(relativeError(got->dv, want.dv), tolerance);
  if (sinks)
    EXPECT_LT(relativeError(got->dsinks, want.dsinks, std::sqrt(double(want.lse.size()))), tolerance);
}

TEST(GPUAttention, OneTile) { checkAttention(sizes(1, 5, 5, 1, 1, 8)); }

TEST(GPUAttention, SeveralTilesAndHeads) { checkAttention(sizes(2, 70, 70, 2, 2, 16)); }

TEST(GPUAttention, Causal) {
  MwAttention shape = sizes(1, 81, 81, 4, 2, 32);
  shape.causal = 1;
  checkAttention(shape);
}

TEST(GPUAttention, SlidingWindow) {
  MwAttention shape = sizes(1, 100, 100, 2, 1, 8);
  shape.causal = 1;
  for (int64_t window : {1, 7, 40})  {
    shape.window = window;
    checkAttention(shape);
  }
  shape.causal = 0; // The window is on both sides.
  for (int64_t window : {1, 7, 40})  {
    shape.window = window;
    checkAttention(shape);
  }
}

/// Causal with more queries than keys, and keys that nobody sees.
TEST(GPUAttention, QueriesAndKeysDiffer) {
  MwAttention shape = sizes(1, 20, 90, 2, 2, 8);
  shape.causal = 1;
  checkAttention(shape);
  checkAttention(sizes(1, 90, 20, 2, 2, 8));
  shape = sizes(1, 90, 20, 1, 1, 8);
  shape.window = 30; // The last queries see nothing.
  checkAttention(shape);
}

TEST(GPUAttention, SoftCap) {
  MwAttention shape = sizes(1, 70, 70, 2, 1, 16);
  shape.causal = 1;
  for (float cap : {0.7f, 30.0f}) {
    shape.cap = cap;
    checkAttention(shape);
  }
  shape.scale = -0.5f;
  shape.dropout = 0.25f;
  checkAttention(shape);
}

/// Alone, together, and beside all else that changes scores.
static void checkTerms(MwAttention shape) {
  shape.causal = 1;
  checkAttention(shape, /*slopes=*/true);
  checkAttention(shape, /*slopes=*/false, /*sinks=*/true);
  shape.window = 40;
  shape.cap = 3;
  checkAttention(shape, true, true);
  shape.window = 0;
  shape.cap = 0;
  shape.scale = -0.5f;
  shape.dropout = 0.25f;
  checkAttention(shape, true, true);
}

TEST(GPUAttention, SlopesAndSinks) { checkTerms(sizes(2, 70, 70, 2, 1, 16)); }

/// Queries that are a part of a sequence, at a tile's beginning and anywhere, and one past all
/// keys.
static void checkParts(MwAttention shape) {
  shape.globalQueries = shape.keys;
  shape.causal = 1;
  for (int32_t first : {64, 37, 250}) {
    shape.queryOffset = &first;
    shape.window = 0;
    shape.dropout = 0;
    checkAttention(shape);
    shape.window = 40;
    shape.dropout = 0.25f;
    checkAttention(shape, /*slopes=*/true, /*sinks=*/true);
  }
}

TEST(GPUAttention, PartsOfQueries) { checkParts(sizes(1, 50, 200, 2, 1, 8)); }

/// Chunks shorter and longer than tiles, of whole sequences, of documents and of a part of the queries.
static void checkChunks(MwAttention shape) {
  shape.causal = 1;
  for (int64_t chunk : {5, 40}) {
    shape.chunk = chunk;
    checkAttention(shape);
    checkAttention(shape, false, false, /*most=*/60);
  }
  shape.window = 30;
  shape.dropout = 0.25f;
  const int32_t first = 37;
  shape.queryOffset = &first;
  shape.globalQueries = shape.keys;
  shape.queries = shape.keys - 60;
  checkAttention(shape, /*slopes=*/true, /*sinks=*/true);
}

TEST(GPUAttention, Chunks) {
  checkChunks(sizes(2, 70, 70, 2, 1, 8));
  MwAttention narrow = sizes(1, 140, 140, 2, 1, 16);
  narrow.elementType = MW_BF16;
  checkChunks(narrow);
}

/// Documents shorter and longer than tiles, alone and beside all else that hides keys, of all queries
/// and of a part of them.
static void checkDocuments(MwAttention shape) {
  shape.causal = 1;
  for (int64_t most : {4, 60})
    checkAttention(shape, false, false, most);
  shape.window = 40;
  shape.dropout = 0.25f;
  shape.cap = 3;
  checkAttention(shape, /*slopes=*/true, /*sinks=*/true, 60);
  const int32_t first = 37;
  shape.queryOffset = &first;
  shape.globalQueries = shape.keys;
  shape.queries = shape.keys - 60;
  checkAttention(shape, true, true, 60);
  // Some behind all keys.
  shape.dropout = 0;
  shape.window = 0;
  shape.queries += 30;
  checkAttention(shape, false, false, 60);
}

TEST(GPUAttention, Documents) { checkDocuments(sizes(2, 70, 70, 2, 1, 8)); }

/// Queries that see no key see their sink.
TEST(GPUAttention, SinksAlone) {
  MwAttention shape = sizes(1, 90, 20, 2, 1, 8);
  shape.window = 30;
  checkAttention(shape, false, true);
}

TEST(GPUAttention, OtherValues) {
  for (auto [dim, valueDim] : {std::pair<int64_t, int64_t>{24, 16}, {8, 40}, {5, 33}, {192, 128}}) {
    MwAttention shape = sizes(1, 40, 40, 2, 1, dim);
    shape.valueDim = valueDim;
    shape.causal = 1;
    checkAttention(shape);
    checkAttention(shape, true, true);
  }
}

TEST(GPUAttention, SizesOfHeads) {
  for (int64_t dim : {1, 5, 33, 64, 80, 128, 256, 352})
    checkAttention(sizes(1, 19, 19, 1, 1, dim));
}

TEST(GPUAttention, Dropout) {
  MwAttention shape = sizes(2, 40, 40, 2, 1, 8);
  shape.dropout = 0.25f;
  shape.stream = 7;
  shape.causal = 1;
  checkAttention(shape);
  static const int32_t begin = 3;
  shape.headOffset = &begin;
  shape.globalHeads = 8;
  checkAttention(shape);
}

/// What tensor cores make: heads of a multiple of 16 elements in 16-bit types.
static MwAttention narrow(int32_t type, MwAttention shape) {
  shape.elementType = type;
  return shape;
}

TEST(GPUAttentionTensorCores, SizesOfHeads) {
  for (int64_t dim : {16, 48, 64, 80, 128, 208, 256})
    checkAttention(narrow(MW_BF16, sizes(1, 37, 37, 1, 1, dim)));
}

TEST(GPUAttentionTensorCores, F16) {
  for (int64_t dim : {32, 64})
    checkAttention(narrow(MW_F16, sizes(1, 90, 90, 2, 1, dim)));
}

/// More than a tile of queries and of keys, odd lengths, heads that share keys.
TEST(GPUAttentionTensorCores, Causal) {
  for (int64_t length : {64, 150, 257}) {
    MwAttention shape = narrow(MW_BF16, sizes(1, length, length, 4, 2, 64));
    shape.causal = 1;
    checkAttention(shape);
  }
}

TEST(GPUAttentionTensorCores, SlidingWindow) {
  MwAttention shape = narrow(MW_BF16, sizes(2, 200, 200, 2, 1, 16));
  shape.causal = 1;
  for (int64_t window : {1, 7, 70, 128}) {
    shape.window = window;
    checkAttention(shape);
  }
  shape.causal = 0; // The window is on both sides.
  for (int64_t window : {1, 7, 70, 128}) {
    shape.window = window;
    checkAttention(shape);
  }
}

TEST(GPUAttentionTensorCores, SoftCap) {
  for (int64_t dim : {32, 256}) {
    MwAttention shape = narrow(MW_BF16, sizes(1, 150, 150, 2, 1, dim));
    shape.causal = 1;
    shape.cap = 0.7f;
    checkAttention(shape);
    shape.cap = 30;
    shape.window = 40;
    checkAttention(shape);
  }
}

TEST(GPUAttentionTensorCores, QueriesAndKeysDiffer) {
  MwAttention shape = narrow(MW_BF16, sizes(1, 20, 190, 2, 2, 32));
  shape.causal = 1;
  checkAttention(shape);
  checkAttention(narrow(MW_BF16, sizes(1, 190, 20, 2, 2, 32)));
  shape = narrow(MW_BF16, sizes(1, 190, 20, 1, 1, 32));
  shape.window = 30; // The last queries see nothing.
  checkAttention(shape);
}

TEST(GPUAttentionTensorCores, Dropout) {
  MwAttention shape = narrow(MW_BF16, sizes(2, 70, 70, 2, 1, 16));
  shape.dropout = 0.25f;
  shape.stream = 7;
  shape.causal = 1;
  checkAttention(shape);
  static const int32_t begin = 3;
  shape.headOffset = &begin;
  shape.globalHeads = 8;
  checkAttention(shape);
}

/// The largest product has the smallest score.
TEST(GPUAttentionTensorCores, NegativeScale) {
  MwAttention shape = narrow(MW_BF16, sizes(1, 40, 40, 1, 1, 16));
  shape.scale = -0.3f;
  checkAttention(shape);
}

TEST(GPUAttentionTensorCores, SlopesAndSinks) {
  checkTerms(narrow(MW_BF16, sizes(1, 150, 150, 2, 1, 32)));
}

TEST(GPUAttentionTensorCores, PartsOfQueries) {
  checkParts(narrow(MW_BF16, sizes(1, 50, 200, 2, 1, 32)));
}

TEST(GPUAttentionTensorCores, Documents) {
  checkDocuments(narrow(MW_BF16, sizes(1, 150, 150, 2, 1, 32)));
}

TEST(GPUAttentionTensorCores, OtherValues) {
  for (auto [dim, valueDim] : {std::pair<int64_t, int64_t>{192, 128}, {16, 64}, {48, 32}}) {
    MwAttention shape = narrow(MW_BF16, sizes(1, 150, 150, 2, 1, dim));
    shape.valueDim = valueDim;
    shape.causal = 1;
    checkAttention(shape);
    shape.cap = 2;
    checkAttention(shape, true, true);
  }
}

TEST(GPUAttention, NarrowTypes) {
  for (int32_t type : {MW_BF16, MW_F16})
    for (int64_t dim : {24, 6}) {
      MwAttention shape = sizes(1, 40, 40, 4, 2, dim);
      shape.causal = 1;
      shape.elementType = type;
      checkAttention(shape);
    }
}
