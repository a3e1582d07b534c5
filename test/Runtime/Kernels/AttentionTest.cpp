//===- AttentionTest.cpp - tests of attention, forward and backward -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttentionTiling.h"
#include "Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

using namespace meshwright::cpu;
using namespace meshwright::test;

/// Errors in the 2-norm that f32 accumulation explains for these sizes.
static constexpr double kForwardTolerance = 1e-6;
static constexpr double kBackwardTolerance = 3e-6;

namespace {
struct Results {
  std::vector<float> out, lse, dq, dk, dv, dsinks, ddistances;
  bool operator==(const Results &other) const {
    auto same = [](const std::vector<float> &a, const std::vector<float> &b) {
      return a.size() == b.size() && !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
    };
    return same(out, other.out) && same(lse, other.lse) && same(dq, other.dq) &&
           same(dk, other.dk) && same(dv, other.dv) && same(dsinks, other.dsinks) &&
           same(ddistances, other.ddistances);
  }
};

/// Scratch with a line of canaries behind it.
class Workspace {
public:
  explicit Workspace(int64_t bytes) : bytes(bytes), data(bytes + MW_ALIGNMENT, char(0x5A)) {
    // NaNs: a kernel that reads what it has not written shows.
    std::memset(data.data(), 0xFF, bytes);
  }
  ~Workspace() {
    for (size_t i = bytes; i < data.size(); ++i)
      EXPECT_EQ(data[i], char(0x5A)) << "written past the workspace";
  }
  void *get() { return data.data(); }

private:
  size_t bytes;
  std::vector<char> data;
};
} // namespace

static Results run(const AttentionKernels &kernels, int threads, const AttentionCase &test) {
  float junk = std::numeric_limits<float>::quiet_NaN();
  const MwAttention &shape = test.shape;
  Results r;
  r.out.assign(test.dout.size(), junk);
  r.lse.assign(shape.batch * shape.heads * shape.queries, junk);
  r.dq.assign(test.q.size(), junk);
  r.dk.assign(test.k.size(), junk);
  r.dv.assign(test.v.size(), junk);
  r.dsinks.assign(test.sinks.size(), junk);
  r.ddistances.assign(test.distances.size(), junk);
  Workspace forward(mw_attention_forward_workspace(&shape));
  attentionForward(kernels, threads, shape, test.q.data(), test.k.data(), test.v.data(), nullptr,
                   nullptr, r.out.data(), r.lse.data(), forward.get());
  Workspace backward(mw_attention_backward_workspace(&shape));
  attentionBackward(kernels, threads, shape, test.dout.data(), test.q.data(), test.k.data(),
                    test.v.data(), r.out.data(), r.lse.data(), r.dq.data(), r.dk.data(),
                    r.dv.data(), r.dsinks.data(), r.ddistances.data(), backward.get());
  return r;
}

/// The same in another element type: what comes back is in f32 again.
static Results runIn(int32_t type, const AttentionKernels &kernels, int threads,
                     const AttentionCase &test) {
  MwAttention shape = test.shape;
  shape.elementType = type;
  std::vector<char> q = encode(type, test.q), k = encode(type, test.k), v = encode(type, test.v),
                    dout = encode(type, test.dout);
  const float junk = std::numeric_limits<float>::quiet_NaN();
  auto like = [&](const std::vector<float> &values) {
    return encode(type, std::vector<float>(values.size(), junk));
  };
  std::vector<char> out = like(test.dout), dq = like(test.q), dk = like(test.k), dv = like(test.v);
  Results r;
  r.lse.assign(shape.batch * shape.heads * shape.queries, junk);
  r.dsinks.assign(test.sinks.size(), junk);
  r.ddistances.assign(test.distances.size(), junk);
  Workspace forward(mw_attention_forward_workspace(&shape));
  attentionForward(kernels, threads, shape, q.data(), k.data(), v.data(), nullptr, nullptr,
                   out.data(), r.lse.data(),
                   forward.get());
  Workspace backward(mw_attention_backward_workspace(&shape));
  attentionBackward(kernels, threads, shape, dout.data(), q.data(), k.data(), v.data(), out.data(),
                    r.lse.data(), dq.data(), dk.data(), dv.data(), r.dsinks.data(), r.ddistances.data(),
                    backward.get());
  r.out = decode(type, out);
  r.dq = decode(type, dq);
  r.dk = decode(type, dk);
  r.dv = decode(type, dv);
  return r;
}

/// How large the sum of a sink's gradient would be if its terms had one sign.
static double sinkTerms(const AttentionCase &test) {
  const MwAttention &s = test.shape;
  return std::sqrt(double(s.heads)) * double(s.batch * s.queries) / double(1 + s.keys);
}

static void expectCorrect(const AttentionCase &test, const AttentionReference &expected,
                          const Results &actual) {
  EXPECT_LT(relativeError(actual.out, expected.out), kForwardTolerance);
  EXPECT_LT(relativeError(actual.lse, expected.lse), kForwardTolerance);
  // Where each query sees one key, dP - delta is 0 but for rounding, which is
  // measured against the terms.
  double terms = 1e-30;
  int64_t most = 0;
  for (int64_t query = 0; query < test.shape.queries; ++query) {
    int64_t seen = 0;
    for (int64_t key = 0; key < test.shape.keys; ++key)
      seen += test.visible(0, query, key);
    most = std::max(most, seen);
  }
  if (most <= 1)
    terms = std::abs(test.shape.scale) * std::sqrt(double(test.q.size() * test.shape.headDim));
  EXPECT_LT(relativeError(actual.dq, expected.dq, terms), kBackwardTolerance);
  EXPECT_LT(relativeError(actual.dk, expected.dk, terms), kBackwardTolerance);
  EXPECT_LT(relativeError(actual.dv, expected.dv), kBackwardTolerance);
  // A sum over all queries of numbers of both signs: errors count against its terms.
  EXPECT_LT(relativeError(actual.dsinks, expected.dsinks, sinkTerms(test)), kBackwardTolerance);
  // ... and so is one over all pairs of a distance.
  EXPECT_LT(relativeError(actual.ddistances, expected.ddistances, std::sqrt(double(test.q.size()))),
            kBackwardTolerance);
}

static void checkAllKernels(const AttentionCase &test) {
  const MwAttention &s = test.shape;
  SCOPED_TRACE(::testing::Message()
               << "batch " << s.batch << " queries " << s.queries << " keys " << s.keys << " heads "
               << s.heads << "/" << s.kvHeads << " dim " << s.headDim << " causal " << s.causal
               << " window " << s.window << " dropout " << s.dropout << " cap " << s.cap
               << " values of " << s.valueDim << " slopes " << bool(s.slopes) << " sinks "
               << bool(s.sinks) << " distances " << s.distanceCount << " lengths "
               << bool(s.lengths));
  AttentionReference expected(test);
  int count;
  const AttentionKernels *const *kernels = availableAttentionKernels(&count);
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(kernels[i]->name);
    Results actual = run(*kernels[i], 2, test);
    expectCorrect(test, expected, actual);
    EXPECT_TRUE(run(*kernels[i], 1, test) == actual) << "depends on the number of threads";
    EXPECT_TRUE(run(*kernels[i], 5, test) == actual) << "depends on the number of threads";
  }
}

static MwAttention sizes(int64_t batch, int64_t queries, int64_t keys, int64_t heads,
                         int64_t kvHeads, int64_t headDim) {
  MwAttention shape{};
  shape.batch = batch;
  shape.queries = queries;
  shape.keys = keys;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.headDim = shape.valueDim = headDim;
  shape.scale = 1.0f / std::sqrt(float(headDim));
  shape.globalHeads = heads;
  shape.globalQueries = queries;
  return shape;
}

TEST(Attention, Gpt2Causal) {
  std::mt19937 generator(1);
  for (int64_t sequence : {64, 200}) {
    MwAttention shape = sizes(2, sequence, sequence, 12, 12, 64);
    shape.causal = 1;
    checkAllKernels(AttentionCase(shape, generator));
  }
}

TEST(Attention, RandomShapes) {
  std::mt19937 generator(2);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[generator() % values.size()];
  };
  for (int i = 0; i < 150; ++i) {
    int64_t kvHeads = pick({1, 2, 3}), groupHeads = pick({1, 1, 2, 4});
    int64_t queries = 1 + int64_t(generator() % 210);
    int64_t keys = generator() % 2 ? queries : 1 + int64_t(generator() % 210);
    MwAttention shape = sizes(pick({1, 2, 3}), queries, keys, kvHeads * groupHeads, kvHeads,
                              pick({1, 5, 8, 16, 33, 64, 80, 128}));
    shape.causal = int32_t(generator() % 2);
    shape.window = pick({0, 0, 1, 7, 50, 64, 100, 1000});
    shape.dropout = pick({0, 1}) ? 0.3f : 0.0f;
    shape.stream = int32_t(generator() % 100);
    static const int32_t begins[] = {0, 3};
    const int32_t *begin = &begins[pick({0, 1})];
    shape.headOffset = *begin ? begin : nullptr;
    shape.globalHeads = shape.heads + *begin + pick({0, 2});
    const int32_t first = int32_t(pick({0, 0, 3, 64, 150}));
    shape.queryOffset = first ? &first : nullptr;
    shape.globalQueries = shape.queries + first + pick({0, 20});
    if (pick({0, 0, 0, 1}))
      shape.scale = -0.5f;
    if (pick({0, 1}))
      shape.valueDim = pick({1, 5, 16, 24, 64, 100});
    AttentionCase test(shape, generator);
    if (pick({0, 0, 1}))
      test.addSlopes(generator);
    if (pick({0, 0, 1}))
      test.addSinks(generator);
    if (pick({0, 0, 1}))
      test.addDistances(generator);
    if (pick({0, 0, 1}))
      test.addLengths(generator);
    checkAllKernels(test);
  }
}

/// Few key heads with many queries: several items share a key head's gradients, and with a window
/// some of them meet no query that sees a tile of keys, or none does.
TEST(Attention, ItemsShareKeyHeads) {
  std::mt19937 generator(17);
  for (int64_t window : {0, 70, 1}) {
    // With a window of one a tile of keys meets one tile of queries, which one item has.
    MwAttention shape = window == 1 ? sizes(1, 2048, 2048, 1, 1, 8) : sizes(1, 500, 700, 8, 2, 16);
    shape.causal = 1;
    shape.window = window;
    AttentionTiling tiling(shape);
    EXPECT_GT(tiling.parts, 1);
    // Of a forward with few threads an item has several units, which share a packing of the keys.
    EXPECT_GT(AttentionTiling(shape, 1).unitsPerItem, tiling.unitsPerItem);
    EXPECT_LE(AttentionTiling(shape, 1).forwardScratch * 4,
              mw_attention_forward_workspace(&shape));
    checkAllKernels(AttentionCase(shape, generator));
  }
}

/// Parts of a sequence's queries give what all of them give in one call.
TEST(Attention, PartsOfQueries) {
  std::mt19937 generator(11);
  for (int64_t window : {0, 40}) {
    MwAttention shape = sizes(2, 200, 200, 4, 2, 16);
    shape.causal = 1;
    shape.window = window;
    shape.dropout = 0.3f;
    AttentionCase all(shape, generator);
    all.addSlopes(generator);
    AttentionReference expected(all);
    std::vector<double> dk(expected.dk.size());
    constexpr int64_t part = 50;
    for (int32_t first = 0; first < 200; first += part) {
      MwAttention some = all.shape;
      some.queries = part;
      some.queryOffset = &first;
      AttentionCase test(some, generator);
      test.slopes = all.slopes;
      test.shape.slopes = test.slopes.data();
      test.k = all.k, test.v = all.v, test.sequenceIds = all.sequenceIds, test.key = all.key;
      test.shape.sequenceIds = test.sequenceIds.data(), test.shape.key = test.key.data();
      for (int64_t b = 0; b < 2; ++b)
        for (auto [to, from] : {std::pair(&test.q, &all.q), std::pair(&test.dout, &all.dout)})
          std::copy_n(from->begin() + all.queryIndex(b, first, 0), part * 4 * 16,
                      to->begin() + test.queryIndex(b, 0, 0));
      int count;
      Results actual = run(*availableAttentionKernels(&count)[0], 2, test);
      double worst = 0;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; i < part * 4 * 16; ++i)
          worst = std::max(worst, std::abs(actual.out[test.queryIndex(b, 0, 0) + i] -
                                           expected.out[all.queryIndex(b, first, 0) + i]));
      EXPECT_LT(worst, 1e-5) << "from query " << first << " with window " << window;
      for (size_t i = 0; i < dk.size(); ++i)
        dk[i] += actual.dk[i];
    }
    for (size_t i = 0; i < dk.size(); ++i)
      ASSERT_NEAR(dk[i], expected.dk[i], 1e-4);
  }
}

/// Stripes of a sequence, of each four queries or keys one, give what all of them give in one call; with
/// stripes of keys too, and with keys whole. The last stripes are padded.
TEST(Attention, Stripes) {
  std::mt19937 generator(13);
  constexpr int64_t ranks = 4, part = 48, length = 190, heads = 4, kvHeads = 2, dim = 24;
  struct Kind {
    int64_t window, most; ///< tokens of a document, 0: one document
    bool causal = true, keysToo = true;
  };
  for (Kind kind : {Kind{0, 0}, {40, 0}, {0, 60}, {3, 0}, {40, 0, false}, {0, 60, true, false},
                    {40, 0, true, false}, {40, 0, false, false}}) {
    SCOPED_TRACE(::testing::Message() << "window " << kind.window << " documents " << kind.most
                                      << " causal " << kind.causal << " keys " << kind.keysToo);
    MwAttention shape = sizes(2, length, length, heads, kvHeads, dim);
    shape.causal = kind.causal;
    shape.window = kind.window;
    shape.dropout = 0.3f;
    AttentionCase all(shape, generator);
    all.addSlopes(generator);
    if (kind.most)
      all.addDocuments(generator, kind.most);
    AttentionReference expected(all);
    const int32_t stripes[] = {0, 1, 2, 3};
    auto stripe = [&](const std::vector<float> &from, int64_t first, int64_t width) {
      std::vector<float> rows(2 * part * width);
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; first + i * ranks < length; ++i)
          std::copy_n(from.begin() + (b * length + first + i * ranks) * width, width,
                      rows.begin() + (b * part + i) * width);
      return rows;
    };
    auto addStripe = [&](std::vector<double> &to, const std::vector<float> &rows, int64_t first,
                         int64_t width) {
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; first + i * ranks < length; ++i)
          for (int64_t j = 0; j < width; ++j)
            to[(b * length + first + i * ranks) * width + j] += rows[(b * part + i) * width + j];
    };
    int count;
    const AttentionKernels &kernels = *availableAttentionKernels(&count)[0];
    std::vector<double> out(all.dout.size()), dq(all.q.size()), dk(all.k.size()), dv(all.v.size());
    for (const int32_t &query : stripes) {
      MwAttention some = all.shape;
      some.queries = part;
      some.queryOffset = &query;
      some.queryStride = ranks;
      if (kind.keysToo) {
        some.keys = part;
        some.keyStride = ranks;
        some.globalKeys = length;
        some.partial = 1;
      }
      auto keys = [&](const std::vector<float> &from, int32_t key) {
        return kind.keysToo ? stripe(from, key, kvHeads * dim) : from;
      };
      std::vector<float> q = stripe(all.q, query, heads * dim), dout = stripe(all.dout, query, heads * dim);
      std::vector<float> result(q.size()), lse(2 * heads * part), before;
      int64_t turns = kind.keysToo ? ranks : 1;
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int32_t &key = stripes[(query + turn) % ranks];
        some.keyOffset = kind.keysToo ? &key : nullptr;
        Workspace forward(mw_attention_forward_workspace(&some));
        attentionForward(kernels, 2, some, q.data(), keys(all.k, key).data(), keys(all.v, key).data(),
                         turn ? result.data() : nullptr, turn ? lse.data() : nullptr, result.data(),
                         lse.data(), forward.get());
      }
      addStripe(out, result, query, heads * dim);
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int32_t &key = stripes[(query + turn) % ranks];
        some.keyOffset = kind.keysToo ? &key : nullptr;
        std::vector<float> k = keys(all.k, key), v = keys(all.v, key), dqPart(q.size()),
                           dkPart(k.size()), dvPart(v.size());
        Workspace backward(mw_attention_backward_workspace(&some));
        attentionBackward(kernels, 2, some, dout.data(), q.data(), k.data(), v.data(), result.data(),
                          lse.data(), dqPart.data(), dkPart.data(), dvPart.data(), nullptr,
                          nullptr, backward.get());
        addStripe(dq, dqPart, query, heads * dim);
        for (auto [to, from] : {std::pair(&dk, &dkPart), std::pair(&dv, &dvPart)})
          if (kind.keysToo)
            addStripe(*to, *from, key, kvHeads * dim);
          else
            for (size_t i = 0; i < to->size(); ++i)
              (*to)[i] += (*from)[i];
      }
    }
    auto apart = [](const std::vector<double> &actual, const std::vector<double> &wanted) {
      return relativeError(std::vector<float>(actual.begin(), actual.end()), wanted, 1);
    };
    EXPECT_LT(apart(out, expected.out), 1e-6);
    EXPECT_LT(apart(dq, expected.dq), 1e-5);
    EXPECT_LT(apart(dk, expected.dk), 1e-5);
    EXPECT_LT(apart(dv, expected.dv), 1e-5);
  }
}

/// Parts of a sequence's keys, in any order, give what all of them give in one call: results are
/// merged, gradients added. The last part is padded.
TEST(Attention, PartsOfKeys) {
  std::mt19937 generator(12);
  struct Kind {
    int64_t window, most; ///< tokens of a document, 0: one document
    int32_t type;
    int64_t length = 190;
    bool causal = true;
  };
  // Of 182 keys the last part has 32, after which padding begins with a vector.
  for (Kind kind : {Kind{0, 0, MW_F32}, {40, 0, MW_F32}, {0, 60, MW_F32}, {0, 0, MW_BF16},
                    {0, 0, MW_F32, 182, false}, {40, 0, MW_F32, 182, false}}) {
    constexpr int64_t part = 50, heads = 4, kvHeads = 2, dim = 24;
    int64_t length = kind.length;
    MwAttention shape = sizes(2, length, length, heads, kvHeads, dim);
    shape.causal = kind.causal;
    shape.window = kind.window;
    shape.dropout = 0.3f;
    shape.valueDim = 16;
    AttentionCase all(shape, generator);
    all.addSlopes(generator);
    all.addSinks(generator);
    if (kind.most)
      all.addDocuments(generator, kind.most);
    for (std::vector<float> *values : {&all.q, &all.k, &all.v, &all.dout})
      *values = decode(kind.type, encode(kind.type, *values));
    AttentionReference expected(all);
    std::vector<float> out(all.dout.size()), lse(2 * heads * length);
    std::vector<double> dq(all.q.size()), dk(all.k.size()), dv(all.v.size()), dsinks(heads);
    int count;
    const AttentionKernels &kernels = *availableAttentionKernels(&count)[0];
    const int32_t order[] = {100, 0, 150, 50};
    MwAttention some = all.shape;
    some.keys = part;
    some.globalKeys = length;
    some.partial = 1;
    some.elementType = kind.type;
    auto keysFrom = [&](const std::vector<float> &from, int64_t first, int64_t width) {
      std::vector<float> rows(2 * part * width, 7.0f); // padding is read by nobody
      for (int64_t b = 0; b < 2; ++b)
        std::copy_n(from.begin() + (b * length + first) * width,
                    std::min(part, length - first) * width, rows.begin() + b * part * width);
      return encode(kind.type, rows);
    };
    std::vector<char> q = encode(kind.type, all.q), dout = encode(kind.type, all.dout);
    for (const int32_t &first : order) {
      some.keyOffset = &first;
      some.sinks = &first == order ? all.sinks.data() : nullptr;
      Workspace forward(mw_attention_forward_workspace(&some));
      bool isFirst = &first == order;
      attentionForward(kernels, 2, some, q.data(),
                       keysFrom(all.k, first, kvHeads * dim).data(),
                       keysFrom(all.v, first, kvHeads * 16).data(), isFirst ? nullptr : out.data(),
                       isFirst ? nullptr : lse.data(), out.data(), lse.data(), forward.get());
    }
    EXPECT_LT(relativeError(out, expected.out, 1), 1e-6);
    EXPECT_LT(relativeError(lse, expected.lse, 1), 1e-6);
    std::vector<char> given = encode(kind.type, out);
    for (const int32_t &first : order) {
      some.keyOffset = &first;
      bool isFirst = &first == order;
      some.sinks = isFirst ? all.sinks.data() : nullptr;
      const float junk = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> dqPart(dq.size(), junk), dkPart(2 * part * kvHeads * dim, junk),
          dvPart(2 * part * kvHeads * 16, junk), dsinksPart(heads);
      Workspace backward(mw_attention_backward_workspace(&some));
      attentionBackward(kernels, 2, some, dout.data(), q.data(),
                        keysFrom(all.k, first, kvHeads * dim).data(),
                        keysFrom(all.v, first, kvHeads * 16).data(), given.data(), lse.data(),
                        dqPart.data(), dkPart.data(), dvPart.data(), dsinksPart.data(),
                        nullptr, backward.get());
      for (size_t i = 0; i < dq.size(); ++i)
        dq[i] += dqPart[i];
      for (int64_t h = 0; isFirst && h < heads; ++h)
        dsinks[h] = dsinksPart[h];
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t t = 0; t < part; ++t)
          for (auto [to, from, width] : {std::tuple(&dk, &dkPart, kvHeads * dim),
                                         std::tuple(&dv, &dvPart, kvHeads * 16)})
            for (int64_t i = 0; i < width; ++i) {
              float value = (*from)[(b * part + t) * width + i];
              if (first + t < length)
                (*to)[(b * length + first + t) * width + i] = value;
              else
                ASSERT_EQ(value, 0.0f);
            }
    }
    auto apart = [](const std::vector<double> &actual, const std::vector<double> &wanted) {
      return relativeError(std::vector<float>(actual.begin(), actual.end()), wanted, 1);
    };
    double bound = kind.type == MW_F32 ? 1e-5 : 5e-3; // out is rounded between
    EXPECT_LT(apart(dq, expected.dq), bound);
    EXPECT_LT(apart(dk, expected.dk), bound);
    EXPECT_LT(apart(dv, expected.dv), bound);
    EXPECT_LT(apart(dsinks, expected.dsinks), bound);
  }
}

/// Scores are about 1: one cap bends most of them, the others few and hardly any.
TEST(Attention, CappedScores) {
  std::mt19937 generator(8);
  for (float cap : {0.7f, 3.0f, 30.0f})
    for (int64_t dim : {5, 16, 80}) {
      MwAttention shape = sizes(2, 100, 100, 4, 2, dim);
      shape.causal = 1;
      shape.cap = cap;
      checkAllKernels(AttentionCase(shape, generator));
      shape.window = 40;
      shape.dropout = 0.3f;
      shape.scale = -0.5f;
      checkAllKernels(AttentionCase(shape, generator));
    }
}

/// Inputs that the type holds give what f64 gives, but for the rounding of results:
/// `out` is one of them, which delta is taken from.
TEST(Attention, NarrowTypes) {
  std::mt19937 generator(7);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[generator() % values.size()];
  };
  for (int i = 0; i < 40; ++i) {
    int32_t type = i % 2 ? MW_BF16 : MW_F16;
    // In the 2-norm; a unit in the last place is 2^-8 of a bf16 number.
    double unit = type == MW_BF16 ? 0x1p-8 : 0x1p-11;
    int64_t kvHeads = pick({1, 2}), groupHeads = pick({1, 2}), length = 2 + generator() % 150;
    MwAttention shape = sizes(pick({1, 2, 9}), length, length, kvHeads * groupHeads, kvHeads,
                              pick({1, 5, 16, 33, 64}));
    shape.causal = int32_t(generator() % 2);
    shape.dropout = pick({0, 1}) ? 0.3f : 0.0f;
    shape.valueDim = pick({shape.headDim, 24});
    AttentionCase test(shape, generator);
    if (pick({0, 1}))
      test.addSlopes(generator);
    if (pick({0, 1}))
      test.addSinks(generator);
    for (std::vector<float> *values : {&test.q, &test.k, &test.v, &test.dout})
      *values = decode(type, encode(type, *values));
    AttentionReference expected(test);
    int count;
    const AttentionKernels *const *kernels = availableAttentionKernels(&count);
    for (int j = 0; j < count; ++j) {
      SCOPED_TRACE(::testing::Message()
                   << kernels[j]->name << " type " << type << " batch " << shape.batch << " length "
                   << length << " heads " << shape.heads << "/" << kvHeads << " dim "
                   << shape.headDim << " causal " << shape.causal << " dropout " << shape.dropout);
      Results actual = runIn(type, *kernels[j], 2, test);
      EXPECT_LT(relativeError(actual.out, expected.out), unit);
      EXPECT_LT(relativeError(actual.lse, expected.lse), kForwardTolerance);
      // dS = P (dP - delta) is a small difference where heads are narrow.
      double terms = std::abs(shape.scale) * std::sqrt(double(test.q.size() * shape.headDim));
      EXPECT_LT(relativeError(actual.dq, expected.dq, terms), 2 * unit);
      EXPECT_LT(relativeError(actual.dk, expected.dk, terms), 2 * unit);
      EXPECT_LT(relativeError(actual.dv, expected.dv), unit);
      EXPECT_TRUE(runIn(type, *kernels[j], 5, test) == actual)
          << "depends on the number of threads";
    }
  }
}

/// Slopes and sinks beside a cap, windows and heads whose values are of another size.
TEST(Attention, SlopesAndSinks) {
  std::mt19937 generator(9);
  for (int64_t window : {0, 30})
    for (float cap : {0.0f, 3.0f}) {
      MwAttention shape = sizes(2, 150, 150, 4, 2, 192);
      shape.valueDim = 128;
      shape.causal = 1;
      shape.window = window;
      shape.cap = cap;
      AttentionCase test(shape, generator);
      test.addSlopes(generator);
      checkAllKernels(test);
      test.addSinks(generator);
      checkAllKernels(test);
      // A sink above and one below all scores.
      test.sinks[0] = 50;
      test.sinks[1] = -200;
      checkAllKernels(test);
    }
}

/// Documents of a few tokens, of more than a tile, and of whole sequences, beside all else that hides
/// keys, of whole sequences and of parts.
TEST(Attention, Documents) {
  std::mt19937 generator(12);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[generator() % values.size()];
  };
  for (int i = 0; i < 60; ++i) {
    int64_t keys = 8 + int64_t(generator() % 300), kvHeads = pick({1, 2});
    const int32_t first = int32_t(pick({0, keys / 3, keys / 2}));
    int64_t queries = (first ? keys - keys / 2 : keys) + pick({0, 0, 5}); // Some are padding.
    MwAttention shape = sizes(pick({1, 3}), queries, keys, kvHeads * pick({1, 2}), kvHeads,
                              pick({5, 16, 64}));
    shape.causal = 1;
    shape.queryOffset = first ? &first : nullptr;
    shape.globalQueries = keys;
    shape.window = pick({0, 0, 7, 70});
    shape.dropout = pick({0, 1}) ? 0.3f : 0.0f;
    shape.cap = float(pick({0, 0, 2}));
    AttentionCase test(shape, generator);
    test.addDocuments(generator, pick({3, 30, 150, 1000}));
    if (pick({0, 1}))
      test.addSlopes(generator);
    if (pick({0, 1}))
      test.addSinks(generator);
    if (pick({0, 0, 1}))
      test.addDistances(generator);
    if (pick({0, 0, 1}))
      test.addLengths(generator);
    checkAllKernels(test);
  }
}

/// No bit of a document's results depends on another document.
TEST(Attention, DocumentsDoNotSeeEachOther) {
  std::mt19937 generator(13);
  MwAttention shape = sizes(1, 200, 200, 4, 2, 16);
  shape.causal = 1;
  AttentionCase test(shape, generator);
  // Three documents.
  constexpr int64_t begin = 37, end = 127;
  for (int64_t t = 0; t < 200; ++t)
    test.positions.push_back(int32_t(t < begin ? t : t < end ? t - begin : t - end));
  test.shape.positions = test.positions.data();
  int count;
  const AttentionKernels *const *kernels = availableAttentionKernels(&count);
  std::vector<Results> before;
  for (int i = 0; i < count; ++i)
    before.push_back(run(*kernels[i], 2, test));
  // The second gets other numbers.
  for (std::vector<float> *values : {&test.q, &test.dout, &test.k, &test.v}) {
    auto width = int64_t(values->size() / 200);
    std::vector<float> other = randomValues(generator, (end - begin) * width);
    std::copy(other.begin(), other.end(), values->begin() + begin * width);
  }
  for (int i = 0; i < count; ++i) {
    Results after = run(*kernels[i], 2, test);
    auto same = [&](const std::vector<float> &a, const std::vector<float> &b, int64_t t) {
      size_t width = a.size() / 200;
      return !std::memcmp(&a[size_t(t) * width], &b[size_t(t) * width], width * sizeof(float));
    };
    for (int64_t t = 0; t < 200; ++t) {
      bool isOther = t >= begin && t < end;
      EXPECT_NE(same(before[size_t(i)].out, after.out, t), isOther) << t;
      EXPECT_NE(same(before[size_t(i)].dk, after.dk, t), isOther) << t;
      EXPECT_NE(same(before[size_t(i)].dv, after.dv, t), isOther) << t;
      if (!isOther) {
        EXPECT_TRUE(same(before[size_t(i)].dq, after.dq, t)) << t;
      }
    }
  }
}

/// Chunks shorter and longer than tiles, of whole sequences, of parts of them and of documents, beside all else
/// that hides keys.
TEST(Attention, Chunks) {
  std::mt19937 generator(11);
  const int32_t first = 37;
  for (int64_t chunk : {1, 5, 64, 90}) {
    MwAttention shape = sizes(2, 150, 150, 4, 2, 16);
    shape.causal = 1;
    shape.chunk = chunk;
    checkAllKernels(AttentionCase(shape, generator));
    shape.window = 20;
    shape.dropout = 0.3f;
    AttentionCase documents(shape, generator);
    documents.addDocuments(generator, 40);
    checkAllKernels(documents);
    shape.queries = 70;
    shape.globalQueries = 150;
    shape.queryOffset = &first;
    checkAllKernels(AttentionCase(shape, generator));
  }
}

/// Queries past all keys see their sink alone.
TEST(Attention, SinksOfQueriesThatSeeNothing) {
  std::mt19937 generator(10);
  MwAttention shape = sizes(1, 100, 10, 2, 1, 16);
  shape.window = 5;
  AttentionCase test(shape, generator);
  test.addSinks(generator);
  checkAllKernels(test);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  std::mt19937 generator(3);
  MwAttention shape = sizes(1, 130, 130, 2, 2, 32);
  shape.scale = 20.0f; // scores of about +-350, weights that are nearly one-hot
  AttentionCase test(shape, generator);
  AttentionReference expected(test);
  int count;
  Results actual = run(*availableAttentionKernels(&count)[0], 1, test);
  EXPECT_LT(relativeError(actual.out, expected.out), 1e-4);
  EXPECT_LT(relativeError(actual.lse, expected.lse), 1e-6);
}

TEST(Attention, QueriesThatSeeNothingGiveZeros) {
  std::mt19937 generator(4);
  MwAttention shape = sizes(1, 100, 10, 1, 1, 16);
  shape.window = 5; // queries 14 and later are past every key
  AttentionCase test(shape, generator);
  int count;
  Results r = run(*availableAttentionKernels(&count)[0], 1, test);
  for (int64_t s = 14; s < 100; ++s) {
    EXPECT_EQ(r.lse[s], -std::numeric_limits<float>::infinity());
    for (int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(r.out[s * 16 + d], 0.0f);
      EXPECT_EQ(r.dq[s * 16 + d], 0.0f);
    }
  }
  expectCorrect(test, AttentionReference(test), r);
}

/// With q = 0 every weight is 1 / keys, so that with v one-hot `out` shows the
/// dropout mask itself.
TEST(Attention, DropoutMaskIsPhiloxExactly) {
  std::mt19937 generator(5);
  MwAttention shape = sizes(2, 128, 128, 2, 2, 128);
  shape.dropout = 0.1f;
  shape.stream = 9;
  static const int32_t begin = 2;
  shape.headOffset = &begin;
  shape.globalHeads = 6;
  AttentionCase test(shape, generator);
  // Indices beyond 2^32 on one sequence, and crossing it on the other.
  test.sequenceIds[0] = 2000000000;
  test.sequenceIds[1] = 43690; // * 6 heads * 128 * 128 = 2^32 - 65536
  std::fill(test.q.begin(), test.q.end(), 0.0f);
  std::fill(test.v.begin(), test.v.end(), 0.0f);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 128; ++t)
      for (int64_t h = 0; h < 2; ++h)
        test.v[test.keyIndex(b, t, h) + t] = 1.0f;
  int count;
  const AttentionKernels *const *kernels = availableAttentionKernels(&count);
  for (int i = 0; i < count; ++i) {
    Results r = run(*kernels[i], 2, test);
    int64_t kept = 0, wrong = 0;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t s = 0; s < 128; ++s)
          for (int64_t t = 0; t < 128; ++t) {
            float weight = r.out[test.queryIndex(b, s, h) + t];
            wrong += (weight != 0) != (test.mask(b, h, s, t) != 0);
            kept += weight != 0;
          }
    EXPECT_EQ(wrong, 0);
    // 65536 draws: six standard deviations are 0.007.
    EXPECT_NEAR(double(kept) / 65536, 0.9, 0.007);
    EXPECT_NEAR(r.lse[0], std::log(128.0), 1e-5) << "lse must be that of all weights";
  }
}

TEST(Attention, WorkspaceDependsOnTheShapeAlone) {
  MwAttention shape = sizes(4, 512, 512, 12, 12, 64);
  shape.causal = 1;
  int64_t forward = mw_attention_forward_workspace(&shape);
  int64_t backward = mw_attention_backward_workspace(&shape);
  shape.dropout = 0.1f;
  shape.stream = 3;
  EXPECT_EQ(forward, mw_attention_forward_workspace(&shape));
  EXPECT_EQ(backward, mw_attention_backward_workspace(&shape));
  EXPECT_EQ(forward % MW_ALIGNMENT, 0);
  EXPECT_EQ(backward % MW_ALIGNMENT, 0);
}

TEST(Attention, RanksCallAtOnce) {
  std::mt19937 generator(6);
  MwAttention shape = sizes(2, 150, 150, 4, 2, 40);
  shape.causal = 1;
  shape.dropout = 0.2f;
  AttentionCase test(shape, generator);
  int count;
  Results expected = run(*availableAttentionKernels(&count)[0], 1, test);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&] {
      MwContext context{2};
      for (int i = 0; i < 5; ++i) {
        Results r = expected;
        Workspace forward(mw_attention_forward_workspace(&shape));
        mw_attention_forward(&context, &test.shape, test.q.data(), test.k.data(), test.v.data(),
                             nullptr, nullptr,
                             r.out.data(), r.lse.data(), forward.get());
        Workspace backward(mw_attention_backward_workspace(&shape));
        mw_attention_backward(&context, &test.shape, test.dout.data(), test.q.data(), test.k.data(),
                              test.v.data(), r.out.data(), r.lse.data(), r.dq.data(), r.dk.data(),
                              r.dv.data(), nullptr, nullptr, backward.get());
        EXPECT_TRUE(r == expected);
      }
    });
  for (std::thread &rank : ranks)
    rank.join();
}
