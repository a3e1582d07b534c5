//===- MathTest.cpp - accuracy of the elementary functions ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace meshwright::test;

namespace {
struct Function {
  const char *name;
  double (*exact)(double);
  /// Largest error, in units in the last place of the result.
  double ulps;
  /// Largest argument worth a look.
  double limit;
};
} // namespace

/// Every 997th float, both signs, subnormals, infinities and NaN.
static std::vector<float> arguments() {
  std::vector<float> all;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 997) {
    uint32_t word = uint32_t(bits);
    float value;
    std::memcpy(&value, &word, 4);
    all.push_back(value);
  }
  for (float value : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 88.5f, 88.7228f, 88.7229f, 89.5f,
                      -87.5f, -103.0f, -104.5f})
    all.push_back(value);
  return all;
}

class Elementary : public testing::TestWithParam<Function> {};

TEST_P(Elementary, IsAccurate) {
  const Function &f = GetParam();
  std::vector<float> x = arguments();
  std::string type = "tensor<" + std::to_string(x.size()) + "xf32>";
  for (const char *cpu : {"", "x86-64-v3", "x86-64"}) {
    KernelRunner runner("func.func @k(%x: " + type + ") -> " + type + " { %0 = math." + f.name +
                            " %x : " + type + " return %0 : " + type + " }",
                        0, cpu);
    ASSERT_TRUE(runner.valid());
    std::vector<Memory> in;
    in.emplace_back(x.size());
    std::memcpy(in[0].data, x.data(), x.size() * 4);
    auto out = runner.run(in);
    double worst = 0;
    float worstAt = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(x[i]) > f.limit && std::isfinite(x[i]))
        continue;
      double want = f.exact(x[i]);
      float got = out[0].data[i], rounded = float(want);
      if (std::isnan(want) || std::isinf(rounded)) {
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == rounded)
            << f.name << "(" << x[i] << ") is " << got << ", not " << rounded;
        continue;
      }
      double ulp = std::max<double>(std::nextafter(std::abs(rounded), INFINITY) - std::abs(rounded),
                                    std::ldexp(1.0, -149));
      double error = std::abs(got - want) / ulp;
      if (error > worst || std::isnan(error)) {
        worst = error;
        worstAt = x[i];
      }
    }
    EXPECT_LE(worst, f.ulps) << f.name << " at " << worstAt << " on "
                             << (*cpu ? cpu : "this processor");
    RecordProperty(std::string(f.name) + cpu, std::to_string(worst));
    std::printf("%-5s %-10s %.2f ulp at %g\n", f.name, cpu, worst, worstAt);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Elementary,
    testing::Values(Function{"exp", std::exp, 2, 1e30}, Function{"log", std::log, 2, 1e39},
                    Function{"tanh", std::tanh, 3, 1e39}, Function{"erf", std::erf, 3, 1e39},
                    Function{"sqrt", std::sqrt, 0.51, 1e39}, Function{"sin", std::sin, 1, 1e6},
                    Function{"cos", std::cos, 1, 1e6}),
    [](const auto &info) { return std::string(info.param.name); });
