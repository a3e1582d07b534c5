//===- MatmulTest.cpp - tests of matrix products --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MatmulMixed.h"
#include "Reference.h"
#include "common/plan/ElementType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

using namespace meshwright;
using namespace meshwright::test;

namespace {
struct Shape {
  int32_t transA, transB;
  int64_t m, n, k;
  float alpha = 1, beta = 0;
  int64_t batch = 1, padding = 0; // extra elements between rows and matrices
};

struct Operands {
  int64_t lda, ldb, ldc, strideA, strideB, strideC;
  std::vector<float> a, b, c;

  Operands(const Shape &p, std::mt19937 &generator)
      : lda((p.transA ? p.m : p.k) + p.padding), ldb((p.transB ? p.k : p.n) + p.padding),
        ldc(p.n + p.padding), strideA(lda * (p.transA ? p.k : p.m) + p.padding),
        strideB(ldb * (p.transB ? p.n : p.k) + p.padding), strideC(ldc * p.m + p.padding),
        a(randomValues(generator, strideA * p.batch)),
        b(randomValues(generator, strideB * p.batch)),
        c(randomValues(generator, strideC * p.batch)) {
    // With beta = 0 what C holds must not matter, NaNs included.
    if (p.beta == 0)
      for (int64_t i = 0; i < p.batch; ++i)
        for (int64_t row = 0; row < p.m; ++row)
          for (int64_t column = 0; column < p.n; ++column)
            c[i * strideC + row * ldc + column] = std::numeric_limits<float>::quiet_NaN();
  }
};
} // namespace

static std::vector<float> multiply(int threads, const Shape &p, const Operands &o) {
  MwContext context{threads};
  std::vector<float> c = o.c;
  mw_matmul_f32(&context, p.transA, p.transB, p.m, p.n, p.k, p.alpha, o.a.data(), o.lda, o.b.data(),
                o.ldb, p.beta, c.data(), o.ldc, p.batch, o.strideA, o.strideB, o.strideC);
  return c;
}

static std::vector<double> expected(const Shape &p, const Operands &o) {
  std::vector<double> expected(o.c.begin(), o.c.end());
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t row = 0; row < p.m; ++row)
      for (int64_t column = 0; column < p.n; ++column) {
        double sum = 0;
        for (int64_t x = 0; x < p.k; ++x)
          sum += double(o.a[i * o.strideA + (p.transA ? x * o.lda + row : row * o.lda + x)]) *
                 o.b[i * o.strideB + (p.transB ? column * o.ldb + x : x * o.ldb + column)];
        double &c = expected[i * o.strideC + row * o.ldc + column];
        c = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * c);
      }
  return expected;
}

static void check(int threads, const Shape &p, std::mt19937 &generator) {
  SCOPED_TRACE(::testing::Message()
               << "threads " << threads << " trans " << p.transA << p.transB << " m " << p.m
               << " n " << p.n << " k " << p.k << " alpha " << p.alpha << " beta " << p.beta
               << " batch " << p.batch << " padding " << p.padding);
  Operands o(p, generator);
  std::vector<double> wanted = expected(p, o);
  if (p.k == 0) {
    EXPECT_LT(relativeError(multiply(threads, p, o), wanted), 1e-6);
    return;
  }
  auto same = [](const std::vector<float> &x, const std::vector<float> &y) {
    return !std::memcmp(x.data(), y.data(), x.size() * sizeof(float));
  };
  std::vector<float> actual = multiply(threads, p, o);
  // An f32 sum of k terms in the library's order.
  EXPECT_LT(relativeError(actual, wanted), 1e-6 * std::sqrt(1 + p.k / 100.0));
  EXPECT_TRUE(same(multiply(threads, p, o), actual)) << "depends on the run";
}

TEST(Matmul, RandomShapes) {
  std::mt19937 generator(1);
  for (int i = 0; i < 400; ++i) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % limit); };
    int64_t limit = i % 4 == 0 ? 300 : 40;
    Shape p{int32_t(generator() % 2), int32_t(generator() % 2), size(limit), size(limit),
            size(limit)};
    p.alpha = generator() % 2 ? 1.0f : -0.75f;
    p.beta = std::vector<float>{0.0f, 1.0f, 0.5f}[generator() % 3];
    p.batch = generator() % 3 ? 1 : size(5);
    p.padding = generator() % 2 ? 0 : size(9);
    check(1 + int(generator() % 5), p, generator);
  }
}

namespace {
/// A product with narrow types: its operands as stored, and as f32.
struct Mixed {
  Shape p;
  int32_t factor, result;
  Operands o;
  std::vector<char> a, b, c;

  Mixed(const Shape &p, int32_t factor, int32_t result, std::mt19937 &generator)
      : p(p), factor(factor), result(result), o(p, generator) {
    store();
  }
  /// To be called after a change of `o`, whose values get those that the types hold.
  void store() {
    a = encode(factor, o.a), b = encode(factor, o.b), c = encode(result, o.c);
    o.a = decode(factor, a), o.b = decode(factor, b), o.c = decode(result, c);
  }
  std::vector<char> multiply(const cpu::PanelKernels &kernels, int threads) const {
    std::vector<char> out = c;
    std::vector<char> scratch(mw_matmul_mixed_workspace(p.m, p.n, p.k, p.batch) + 64, 0x5A);
    cpu::MixedProduct product{p.transA != 0, p.transB != 0, p.m,      p.n,       p.k,
                              p.alpha,       p.beta,        factor,   a.data(),  o.lda,
                              b.data(),      o.ldb,         result,   out.data(), o.ldc,
                              p.batch,       o.strideA,     o.strideB, o.strideC};
    cpu::multiplyMixed(kernels, threads, product, scratch.data());
    for (size_t j = scratch.size() - 64; j < scratch.size(); ++j)
      EXPECT_EQ(scratch[j], 0x5A) << "written past the workspace";
    return out;
  }
};

/// Those of this machine.
std::vector<const cpu::PanelKernels *> panelKernels() {
  int count;
  const cpu::PanelKernels *const *all = cpu::availablePanelKernels(&count);
  return {all, all + count};
}
} // namespace

/// Factors and result in any of the types, by the kernels of each instruction set: inputs that the
/// types hold give what f64 gives, rounded once.
TEST(Matmul, MixedTypes) {
  std::mt19937 generator(5);
  for (int i = 0; i < 150; ++i) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % limit); };
    int64_t limit = i % 5 == 0 ? 600 : 50;
    Shape p{int32_t(generator() % 2), int32_t(generator() % 2), size(limit), size(limit),
            size(limit)};
    p.alpha = generator() % 3 ? 1.0f : -0.75f;
    p.beta = std::vector<float>{0.0f, 1.0f, 0.5f}[generator() % 3];
    p.batch = generator() % 3 ? 1 : size(4);
    p.padding = generator() % 2 ? 0 : size(9);
    const std::vector<int32_t> types = {MW_BF16, MW_F16, MW_F32};
    Mixed mixed(p, types[generator() % 3], types[generator() % 3], generator);
    std::vector<double> wanted = expected(p, mixed.o);
    for (const cpu::PanelKernels *kernels : panelKernels()) {
      SCOPED_TRACE(::testing::Message()
                   << kernels->name << " types " << mixed.factor << " " << mixed.result << " trans "
                   << p.transA << p.transB << " m " << p.m << " n " << p.n << " k " << p.k
                   << " alpha " << p.alpha << " beta " << p.beta << " batch " << p.batch
                   << " padding " << p.padding);
      std::vector<char> actual = mixed.multiply(*kernels, 1);
      for (int threads : {2, 3, 100})
        EXPECT_EQ(mixed.multiply(*kernels, threads), actual) << "depends on the number of threads";
      EXPECT_LT(relativeError(decode(mixed.result, actual), wanted),
                mixed.result == MW_F32   ? 1e-6
                : mixed.result == MW_F16 ? 0x1p-11
                                         : 0x1p-8);
    }
  }
}

/// A number of 8 bits by its definition: sign, exponent, `digits` bits behind the point. NaN where it is none.
static double numberOf(uint8_t bits, int digits, int bias, bool hasInfinity) {
  int exponent = (bits & 0x7f) >> digits, mantissa = bits & ((1 << digits) - 1);
  double number = exponent ? std::ldexp(1 + std::ldexp(mantissa, -digits), exponent - bias)
                           : std::ldexp(mantissa, 1 - bias - digits);
  if (exponent == 0x7f >> digits && hasInfinity)
    number = mantissa ? std::nan("") : std::numeric_limits<double>::infinity();
  else if ((bits & 0x7f) == 0x7f)
    number = std::nan("");
  return bits & 0x80 ? -number : number;
}
static double numberOf(int32_t type, uint8_t bits) {
  return type == MW_F8E4M3 ? numberOf(bits, 3, 7, false) : numberOf(bits, 2, 15, true);
}

TEST(Matmul, NumbersOf8BitsAsBF16) {
  for (int bits = 0; bits < 256; ++bits)
    for (int32_t type : {MW_F8E4M3, MW_F8E5M2}) {
      float have = bf16ToFloat(type == MW_F8E4M3 ? f8E4M3ToBf16(uint8_t(bits)) : f8E5M2ToBf16(uint8_t(bits)));
      double want = numberOf(type, uint8_t(bits));
      EXPECT_TRUE(std::isnan(want) ? std::isnan(have) : have == want && std::signbit(have) == std::signbit(want))
          << "bits " << bits << " of type " << type << ": " << have << " for " << want;
    }
}

/// Factors of 8 bits, each of its own type and with its own scale.
TEST(Matmul, Fp8) {
  std::mt19937 generator(8);
  for (int i = 0; i < 60; ++i) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % limit); };
    int64_t limit = i % 5 == 0 ? 500 : 50;
    Shape p{int32_t(generator() % 2), int32_t(generator() % 2), size(limit), size(limit),
            size(limit)};
    p.beta = generator() % 2 ? 0.0f : 1.0f;
    p.batch = generator() % 3 ? 1 : size(4);
    p.padding = generator() % 2 ? 0 : size(9);
    float scaleA = std::ldexp(1.0f, int(generator() % 9) - 8), scaleB = std::ldexp(1.0f, int(generator() % 9) - 8);
    p.alpha = scaleA * scaleB;
    const int32_t types[] = {MW_F8E4M3, MW_F8E5M2};
    int32_t typeA = types[generator() % 2], typeB = types[generator() % 2];
    int32_t result = generator() % 2 ? MW_F32 : MW_BF16;
    Operands o(p, generator);
    auto fill = [&](int32_t type, std::vector<float> &numbers) {
      std::vector<uint8_t> bytes;
      for (float &number : numbers) {
        uint8_t bits;
        // Of neighbouring magnitudes, so that no factor is lost beside another.
        do
          bits = uint8_t(generator());
        while (!(std::fabs(numberOf(type, bits)) <= 16) || std::fabs(numberOf(type, bits)) < 0x1p-6);
        number = float(numberOf(type, bits));
        bytes.push_back(bits);
      }
      return bytes;
    };
    std::vector<uint8_t> a = fill(typeA, o.a), b = fill(typeB, o.b);
    std::vector<char> c = encode(result, o.c);
    o.c = decode(result, c);
    std::vector<double> wanted = expected(p, o);
    std::vector<char> scratch(mw_matmul_mixed_workspace(p.m, p.n, p.k, p.batch));
    for (const cpu::PanelKernels *kernels : panelKernels()) {
      SCOPED_TRACE(::testing::Message() << kernels->name << " types " << typeA << " " << typeB << " trans " << p.transA
                                        << p.transB << " m " << p.m << " n " << p.n << " k " << p.k << " beta "
                                        << p.beta << " batch " << p.batch << " padding " << p.padding);
      auto multiply = [&](int threads) {
        std::vector<char> out = c;
        cpu::MixedProduct product{p.transA != 0, p.transB != 0, p.m,      p.n,       p.k,
                                  p.alpha,       p.beta,        typeA,    a.data(),  o.lda,
                                  b.data(),      o.ldb,         result,   out.data(), o.ldc,
                                  p.batch,       o.strideA,     o.strideB, o.strideC, typeB};
        cpu::multiplyMixed(*kernels, threads, product, scratch.data());
        return out;
      };
      std::vector<char> actual = multiply(1);
      EXPECT_EQ(multiply(3), actual) << "depends on the number of threads";
      EXPECT_LT(relativeError(decode(result, actual), wanted), result == MW_F32 ? 1e-6 : 0x1p-8);
      if (kernels != panelKernels()[0])
        continue;
      std::vector<char> out = c;
      MwContext context{2};
      mw_matmul_fp8(&context, p.transA, p.transB, p.m, p.n, p.k, typeA, a.data(), o.lda, &scaleA, typeB,
                    b.data(), o.ldb, &scaleB, p.beta, result, out.data(), o.ldc, p.batch, o.strideA,
                    o.strideB, o.strideC, scratch.data());
      EXPECT_EQ(out, actual) << "generated code calls something else";
    }
  }
}

/// What generated code calls takes the best of them.
TEST(Matmul, MixedTakesTheBestKernels) {
  std::mt19937 generator(6);
  for (int32_t factor : {MW_BF16, MW_F16, MW_F32}) {
    Mixed mixed({0, 1, 70, 90, 500}, factor, MW_BF16, generator);
    std::vector<char> best = mixed.multiply(*panelKernels()[0], 2), out = mixed.c;
    std::vector<char> scratch(mw_matmul_mixed_workspace(70, 90, 500, 1));
    MwContext context{2};
    mw_matmul_mixed(&context, 0, 1, 70, 90, 500, 1, factor, mixed.a.data(), 500, mixed.b.data(),
                    500, 0, MW_BF16, out.data(), 90, 1, 0, 0, 0, scratch.data());
    EXPECT_EQ(out, best);
  }
}

/// A NaN or an infinity reaches its row and its column of C and nothing else: zeros beside what is
/// packed are multiplied with nothing of it.
TEST(Matmul, MixedKeepsWhatIsNotFinite) {
  std::mt19937 generator(7);
  const float infinity = std::numeric_limits<float>::infinity();
  for (int form = 0; form < 8; ++form) {
    Shape p{form & 1, form >> 1 & 1, 21, 37, 403};
    p.padding = form & 4 ? 3 : 0;
    Mixed mixed(p, MW_BF16, MW_F32, generator);
    auto a = [&](int64_t row, int64_t x) -> float & {
      return mixed.o.a[size_t(p.transA ? x * mixed.o.lda + row : row * mixed.o.lda + x)];
    };
    auto b = [&](int64_t x, int64_t column) -> float & {
      return mixed.o.b[size_t(p.transB ? column * mixed.o.ldb + x : x * mixed.o.ldb + column)];
    };
    a(20, 402) = std::numeric_limits<float>::quiet_NaN();
    a(3, 100) = infinity;
    b(402, 36) = -infinity;
    b(7, 16) = infinity, b(8, 16) = -infinity;
    mixed.store();
    std::vector<double> wanted = expected(p, mixed.o);
    for (const cpu::PanelKernels *kernels : panelKernels()) {
      std::vector<float> actual = decode(MW_F32, mixed.multiply(*kernels, 1));
      for (int64_t row = 0; row < p.m; ++row)
        for (int64_t column = 0; column < p.n; ++column) {
          double want = wanted[size_t(row * mixed.o.ldc + column)];
          float is = actual[size_t(row * mixed.o.ldc + column)];
          if (std::isfinite(want))
            EXPECT_NEAR(is, want, 1e-3) << kernels->name << " at " << row << " " << column;
          else if (std::isnan(want))
            EXPECT_TRUE(std::isnan(is)) << kernels->name << " at " << row << " " << column;
          else
            EXPECT_EQ(is, float(want)) << kernels->name << " at " << row << " " << column;
        }
    }
  }
}

/// The processor's products of bf16 take subnormal numbers for 0, and others are exact.
TEST(Matmul, SubnormalFactors) {
  std::mt19937 generator(8);
  Mixed mixed({0, 0, 1, 1, 1}, MW_BF16, MW_F32, generator);
  mixed.o.a = {0x1p-130f};
  mixed.o.b = {0x1p20f};
  mixed.store();
  for (const cpu::PanelKernels *kernels : panelKernels())
    EXPECT_EQ(decode(MW_F32, mixed.multiply(*kernels, 1))[0], kernels->elementsOfWord(MW_BF16) == 2 ? 0 : 0x1p-110f)
        << kernels->name;
}

TEST(Matmul, EmptyMixedProducts) {
  std::mt19937 generator(9);
  for (const cpu::PanelKernels *kernels : panelKernels()) {
    for (Shape p : {Shape{0, 0, 0, 3, 4}, Shape{0, 1, 3, 0, 4}, Shape{1, 0, 3, 4, 5, 1, 0, 0}}) {
      Mixed mixed(p, MW_BF16, MW_BF16, generator);
      EXPECT_EQ(mixed.multiply(*kernels, 2), mixed.c);
    }
    Mixed scaled({0, 0, 3, 5, 0, 1.0f, 0.5f}, MW_BF16, MW_BF16, generator);
    EXPECT_LT(relativeError(decode(MW_BF16, scaled.multiply(*kernels, 2)),
                            expected(scaled.p, scaled.o)),
              1e-9);
    Mixed cleared({0, 0, 3, 5, 0}, MW_BF16, MW_F32, generator);
    EXPECT_EQ(decode(MW_F32, cleared.multiply(*kernels, 2)), std::vector<float>(15, 0.0f));
  }
}

TEST(Matmul, LongSumsAndSkinnyShapes) {
  std::mt19937 generator(2);
  for (int32_t form = 0; form < 4; ++form) {
    check(2, {form / 2, form % 2, 3, 5, 5000}, generator);
    check(2, {form / 2, form % 2, 1, 2000, 70}, generator);
    check(2, {form / 2, form % 2, 2000, 1, 70}, generator);
    check(3, {form / 2, form % 2, 500, 33, 800, 1.0f, 1.0f}, generator);
  }
}

TEST(Matmul, EmptySumScalesC) {
  std::mt19937 generator(3);
  check(2, {0, 0, 7, 9, 0, 1.0f, 0.5f}, generator);
  check(2, {0, 1, 7, 9, 0, 1.0f, 0.0f}, generator);
}

TEST(Matmul, RanksCallAtOnce) {
  std::mt19937 generator(4);
  Shape p{0, 1, 130, 200, 300};
  Operands o(p, generator);
  std::vector<float> expected = multiply(2, p, o);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 8; ++rank)
    ranks.emplace_back([&] {
      for (int i = 0; i < 30; ++i)
        EXPECT_EQ(multiply(2, p, o), expected);
    });
  for (std::thread &rank : ranks)
    rank.join();
}
