//===- NarrowFloatsTest.cpp - conversions of bf16, f16 and 8 bits -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace meshwright::test;

static const char *const processors[] = {"", "x86-64-v3", "x86-64"};
static const std::pair<const char *, Memory::Element> types[] = {{"bf16", Memory::BF16},
                                                                 {"f16", Memory::F16},
                                                                 {"f8E4M3FN", Memory::E4M3},
                                                                 {"f8E5M2", Memory::E5M2}};

static std::string kernel(const char *op, const std::string &from, const std::string &to) {
  return "func.func @k(%x: " + from + ") -> " + to + " { %0 = arith." + op + " %x : " + from +
         " to " + to + " return %0 : " + to + " }";
}

/// Odd counts leave a last vector under a mask.
static std::string tensor(size_t size, const std::string &element) {
  return "tensor<" + std::to_string(size) + "x" + element + ">";
}

TEST(NarrowFloats, ExtendExactly) {
  for (auto [name, element] : types)
    for (const char *cpu : processors) {
      SCOPED_TRACE(std::string(name) + " " + cpu);
      const int64_t count = Memory(1, element).bytes() == 1 ? 256 : 65536;
      KernelRunner runner(kernel("extf", tensor(count, name), tensor(count, "f32")), 0, cpu);
      ASSERT_TRUE(runner.valid());
      std::vector<Memory> in;
      in.emplace_back(count, element);
      for (int64_t i = 0; i < count; ++i)
        if (count == 256)
          reinterpret_cast<uint8_t *>(in[0].data)[i] = uint8_t(i);
        else
          reinterpret_cast<uint16_t *>(in[0].data)[i] = uint16_t(i);
      auto out = runner.run(in);
      for (int64_t i = 0; i < count; ++i) {
        double want = in[0].get(i), got = out[0].get(i);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                     : got == want && std::signbit(got) == std::signbit(want))
            << "bits " << i << ": " << got << " for " << want;
      }
    }
}

TEST(NarrowFloats, RoundToNearestEven) {
  std::vector<float> x;
  auto add = [&](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    x.push_back(value);
  };
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 9973)
    add(uint32_t(bits));
  // Halfway between two numbers of either type, and beside that.
  for (uint32_t bits = 0; bits < 65536; bits += 3)
    for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u})
      add(bits << 16 | low);
  for (uint32_t bits = 0x33000000; bits < 0x47900000; bits += 0x1000)
    for (uint32_t low : {0u, 1u, 0xfffu})
      add(bits + low);
  // The same for types of 8 bits.
  for (uint32_t bits = 0x36000000; bits < 0x48000000; bits += 0x80000)
    for (uint32_t low : {0u, 1u, 0x7ffffu})
      add(bits + low);
  for (auto [name, element] : types)
    for (const char *cpu : processors) {
      SCOPED_TRACE(std::string(name) + " " + cpu);
      KernelRunner runner(kernel("truncf", tensor(x.size(), "f32"), tensor(x.size(), name)), 0,
                          cpu);
      ASSERT_TRUE(runner.valid());
      std::vector<Memory> in;
      in.emplace_back(x.size());
      std::memcpy(in[0].data, x.data(), x.size() * 4);
      auto out = runner.run(in);
      Memory want(x.size(), element);
      for (size_t i = 0; i < x.size(); ++i) {
        want.set(i, x[i]);
        double got = out[0].get(i);
        // Instructions that round to bf16 take subnormal numbers for zero.
        if (element == Memory::BF16 && !*cpu && std::abs(x[i]) < 0x1p-126f && got == 0)
          continue;
        ASSERT_TRUE(std::isnan(want.get(i))
                        ? std::isnan(got)
                        : got == want.get(i) && std::signbit(got) == std::signbit(x[i]))
            << x[i] << " becomes " << got << ", not " << want.get(i);
      }
    }
}

//===--- quantization -------------------------------------------------------===//

namespace {
/// A type of 8 bits, written out: sign, exponent, `digits` bits behind the point.
struct Emulated {
  const char *name;
  int digits, bias;
  bool isInfinite; ///< whether the last exponent is of infinity and NaN alone
  double largest;

  /// The number with these bits, NaN of those that are none.
  double decode(unsigned bits) const {
    int exponent = int(bits & 0x7f) >> digits, mantissa = int(bits) & ((1 << digits) - 1);
    int last = 0x7f >> digits;
    if (exponent == last && (isInfinite || mantissa == (1 << digits) - 1))
      return std::nan("");
    double number = exponent ? std::ldexp(1 + std::ldexp(mantissa, -digits), exponent - bias)
                             : std::ldexp(mantissa, 1 - bias - digits);
    return bits & 0x80 ? -number : number;
  }
  /// The bits of the number nearest to x: of two, those that are even.
  unsigned encode(double x) const {
    unsigned sign = std::signbit(x) ? 0x80 : 0, best = sign;
    for (unsigned bits = sign; bits < sign + 0x80; ++bits) {
      double distance = std::fabs(decode(bits) - x), least = std::fabs(decode(best) - x);
      if (distance < least || (distance == least && bits % 2 == 0))
        best = bits;
    }
    return best;
  }
};
} // namespace

/// Bit by bit what f64 and a search of all numbers of the type give.
TEST(NarrowFloats, QuantizeAsEmulated) {
  for (Emulated type : {Emulated{"f8E4M3FN", 3, 7, false, 448}, {"f8E5M2", 2, 15, true, 57344}})
    for (const char *from : {"f32", "bf16"})
      for (const char *cpu : processors)
        for (double magnitude : {1.0, 3e-12, 7e20, 0.0, 1e-37}) {
          SCOPED_TRACE(testing::Message() << type.name << " " << from << " " << cpu << " " << magnitude);
          const int64_t count = 1237;
          std::string x = tensor(count, from), y = tensor(count, type.name);
          KernelRunner runner("func.func @k(%x: " + x + ") -> (" + y + ", tensor<f32>) {"
                              "%a = train.amax %x : (" + x + ") -> tensor<f32> "
                              "%s = train.quantization_scale %a to " + type.name +
                              " : (tensor<f32>) -> tensor<f32> "
                              "%y = train.quantize %x by %s : (" + x + ", tensor<f32>) -> " + y +
                              " return %y, %s : " + y + ", tensor<f32> }", 3, cpu);
          ASSERT_TRUE(runner.valid());
          auto in = runner.makeArguments(11, 1);
          double amax = 0;
          for (int64_t i = 0; i < count; ++i) {
            // Of many magnitudes, with some half-way cases.
            in[0].set(i, i % 5 ? in[0].get(i) * std::ldexp(magnitude, -int(i % 17))
                               : std::ldexp(magnitude * double(i % 32), -9 - int(i % 4)));
            amax = std::max(amax, std::fabs(in[0].get(i)));
          }
          double scale = amax == 0 ? 1 : 0x1p-126;
          while (amax > type.largest * scale)
            scale *= 2;
          auto out = runner.run(in);
          ASSERT_EQ(out[1].get(0), scale);
          for (int64_t i = 0; i < count; ++i)
            ASSERT_EQ(unsigned(reinterpret_cast<uint8_t *>(out[0].data)[i]),
                      type.encode(in[0].get(i) / scale))
                << in[0].get(i) << " by " << scale;
        }
}

/// What is infinite is no number, whatever the scale.
TEST(NarrowFloats, InfiniteIsNoNumber) {
  for (const char *name : {"f8E4M3FN", "f8E5M2"}) {
    KernelRunner runner(std::string("func.func @k(%x: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4x") + name + ">) { "
                        "%q = train.quantize %x by %s : (tensor<4xf32>, tensor<f32>) -> tensor<4x" + name +
                        "> return %q : tensor<4x" + name + "> }");
    ASSERT_TRUE(runner.valid());
    std::vector<Memory> in;
    in.emplace_back(4);
    in.emplace_back(1);
    in[0].data[0] = INFINITY;
    in[0].data[1] = -INFINITY;
    in[0].data[2] = 3e38f;
    in[0].data[3] = -1;
    in[1].data[0] = 0x1p-20f; // by which 3e38 is beyond all numbers of f32
    auto out = runner.run(in);
    auto *codes = reinterpret_cast<uint8_t *>(out[0].data);
    bool isWide = std::string(name) == "f8E5M2";
    auto isNaN = [&](uint8_t code) { return (code & 0x7f) > (isWide ? 0x7c : 0x7e); };
    EXPECT_TRUE(isNaN(codes[0])) << unsigned(codes[0]);
    EXPECT_TRUE(isNaN(codes[1])) << unsigned(codes[1]);
    EXPECT_EQ(unsigned(codes[2]), isWide ? 0x7bu : 0x7eu); // the largest
    EXPECT_FALSE(isNaN(codes[3]));
  }
}

/// The largest number of a type decides between two scales.
TEST(NarrowFloats, ScaleAtTheLargestNumber) {
  for (Emulated type : {Emulated{"f8E4M3FN", 3, 7, false, 448}, {"f8E5M2", 2, 15, true, 57344}}) {
    KernelRunner runner(std::string("func.func @k(%a: tensor<f32>) -> tensor<f32> { "
                                    "%s = train.quantization_scale %a to ") +
                        type.name + " : (tensor<f32>) -> tensor<f32> return %s : tensor<f32> }");
    ASSERT_TRUE(runner.valid());
    auto scaleOf = [&](double amax) {
      std::vector<Memory> in;
      in.emplace_back(1);
      in[0].data[0] = float(amax);
      return runner.run(in)[0].get(0);
    };
    EXPECT_EQ(scaleOf(type.largest), 1);
    EXPECT_EQ(scaleOf(std::nextafterf(float(type.largest), INFINITY)), 2);
    EXPECT_EQ(scaleOf(type.largest / 2), 0.5);
    EXPECT_EQ(scaleOf(type.largest * 0x1p-140), 0x1p-126);
    EXPECT_EQ(scaleOf(0), 1);
    EXPECT_TRUE(std::isnan(scaleOf(INFINITY)));
    EXPECT_TRUE(std::isnan(scaleOf(NAN)));
  }
}

/// Numbers that a scale was not made for: too large ones saturate, NaN stays.
TEST(NarrowFloats, QuantizeSaturates) {
  KernelRunner runner("func.func @k(%x: tensor<5xf32>, %s: tensor<f32>) -> tensor<5xf8E4M3FN> { "
                      "%y = train.quantize %x by %s : (tensor<5xf32>, tensor<f32>) -> tensor<5xf8E4M3FN> "
                      "return %y : tensor<5xf8E4M3FN> }");
  ASSERT_TRUE(runner.valid());
  std::vector<Memory> in;
  in.emplace_back(5);
  in.emplace_back(1);
  const float x[] = {1000, -1e30f, NAN, 463, 0};
  std::memcpy(in[0].data, x, sizeof(x));
  in[1].data[0] = 1;
  auto out = runner.run(in);
  EXPECT_EQ(out[0].get(0), 448);
  EXPECT_EQ(out[0].get(1), -448);
  EXPECT_TRUE(std::isnan(out[0].get(2)));
  EXPECT_EQ(out[0].get(3), 448);
  EXPECT_EQ(out[0].get(4), 0);
}
