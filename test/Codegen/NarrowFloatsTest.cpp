//===- NarrowFloatsTest.cpp - conversions of bf16 and f16 -------------------===//
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
                                                                 {"f16", Memory::F16}};

static std::string kernel(const char *op, const std::string &from, const std::string &to) {
  return "func.func @k(%x: " + from + ") -> " + to + " { %0 = arith." + op + " %x : " + from +
         " to " + to + " return %0 : " + to + " }";
}

/// Odd counts leave a last vector under a mask.
static std::string tensor(size_t size, const std::string &element) {
  return "tensor<" + std::to_string(size) + "x" + element + ">";
}

TEST(NarrowFloats, ExtendExactly) {
  constexpr int64_t count = 65536;
  for (auto [name, element] : types)
    for (const char *cpu : processors) {
      SCOPED_TRACE(std::string(name) + " " + cpu);
      KernelRunner runner(kernel("extf", tensor(count, name), tensor(count, "f32")), 0, cpu);
      ASSERT_TRUE(runner.valid());
      std::vector<Memory> in;
      in.emplace_back(count, element);
      for (int64_t i = 0; i < count; ++i)
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
        ASSERT_TRUE(std::isnan(x[i])
                        ? std::isnan(got)
                        : got == want.get(i) && std::signbit(got) == std::signbit(x[i]))
            << x[i] << " becomes " << got << ", not " << want.get(i);
      }
    }
}
