//===- ExponentialTest.cpp - accuracy of the vectorised exponential -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#define MW_ISA unit
#include "Simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace meshwright::cpu::unit;

static float exponentialOf(float x) { return exponential(splat(x))[0]; }

TEST(Exponential, IsWithinTwoUnits) {
  double worst = 0;
  for (float x = -87.33f; x < 88.37f; x += 1.0f / 4096) {
    double exact = std::exp(double(x));
    float near = float(exact);
    double unit = std::nextafter(near, std::numeric_limits<float>::infinity()) - near;
    worst = std::max(worst, std::abs(exponentialOf(x) - exact) / unit);
  }
  EXPECT_LE(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Exponential, HandlesTheEnds) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponentialOf(0.0f), 1.0f);
  EXPECT_EQ(exponentialOf(-infinity), 0.0f);
  EXPECT_EQ(exponentialOf(-1000.0f), 0.0f);
  EXPECT_EQ(exponentialOf(-88.0f), 0.0f);
  EXPECT_GT(exponentialOf(-87.33f), 0.0f);
  EXPECT_EQ(exponentialOf(1000.0f), exponentialOf(88.37f));
  EXPECT_TRUE(std::isnan(exponentialOf(std::nanf(""))));
}

TEST(Exponential, LanesAgreeWithHorizontalReductions) {
  alignas(64) float values[kLanes];
  float sum = 0;
  for (int i = 0; i < kLanes; ++i)
    sum += values[i] = float((i * 7) % kLanes);
  EXPECT_EQ(horizontalSum(load(values)), sum);
  EXPECT_EQ(horizontalMaximum(load(values)), float(kLanes - 1));
}
