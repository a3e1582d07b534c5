//===- CostTableTest.cpp - numbers of devices and what follows from them ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/CostTable.h"

#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace meshwright::cost;

TEST(Rate, OfOnePointIsTheSameForEverySize) {
  Rate rate(2e12);
  EXPECT_EQ(rate.at(1), 2e12);
  EXPECT_EQ(rate.at(1e15), 2e12);
  EXPECT_EQ(rate.seconds(4e12), 2);
  EXPECT_EQ(rate.seconds(0), 0);
}

TEST(Rate, IsInterpolatedBetweenPointsAndBoundedOutside) {
  Rate rate{{1e6, 1e9}, {1e8, 4e9}};
  EXPECT_EQ(rate.at(1e6), 1e9);
  EXPECT_EQ(rate.at(1e8), 4e9);
  EXPECT_NEAR(rate.at(1e7), 2e9, 1); // half-way on logarithmic scales
  EXPECT_EQ(rate.at(1e10), 4e9);
  EXPECT_EQ(rate.peak(), 4e9);
  // A call takes at least as long as that of the first point.
  EXPECT_DOUBLE_EQ(rate.seconds(1), 1e-3);
  EXPECT_DOUBLE_EQ(rate.seconds(1e5), 1e-3);
  EXPECT_DOUBLE_EQ(rate.seconds(1e6), 1e-3);
}

TEST(Rate, IsByType) {
  RatesByType rates{1e12, 8e12};
  EXPECT_EQ(rates.ofBits(32).peak(), 1e12);
  EXPECT_EQ(rates.ofBits(64).peak(), 1e12);
  EXPECT_EQ(rates.ofBits(16).peak(), 8e12);
}

TEST(Link, TakesALatencyForEachMessage) {
  Link link{1e-5, 1e9};
  EXPECT_DOUBLE_EQ(link.seconds(1e6), 1e-5 + 1e-3);
  EXPECT_DOUBLE_EQ(link.seconds(1e6, 3), 3e-5 + 1e-3);
  EXPECT_DOUBLE_EQ(link.seconds(0, 0), 0);
}

TEST(CostTable, HasWhatDataSheetsSay) {
  const Device &a100 = getDevice("a100-sxm");
  EXPECT_EQ(a100.products.f32.peak(), 19.5e12);
  EXPECT_EQ(a100.products.narrow.peak(), 312e12);
  EXPECT_EQ(a100.memory.peak(), 2.039e12);
  EXPECT_EQ(a100.machine.bandwidth, 300e9);
  EXPECT_EQ(a100.network.bandwidth, 25e9);
  EXPECT_EQ(a100.flopsPerByteSent(), 1040);
  const Device &h100 = getDevice("h100-sxm");
  EXPECT_EQ(h100.products.narrow.peak(), 989.5e12);
  EXPECT_EQ(h100.attention.narrow.peak(), 989.5e12);
  EXPECT_EQ(h100.kernels.peak(), 67e12);
  EXPECT_NEAR(h100.flopsPerByteSent(), 2199, 1);
  const Device &cpu = getDevice("epyc-9654");
  EXPECT_NEAR(cpu.products.f32.peak(), 10.9e12, 0.1e12);
  EXPECT_NEAR(cpu.flopsPerByteSent(), 94.7, 0.1);
  EXPECT_EQ(cpu.productRows, 1024);
}

TEST(CostTable, KnowsTheMeasuredDeviceBySize) {
  const Device &sheet = getDevice("h100-sxm"), &measured = getDevice("h100-sxm-measured");
  // The time of a product of 1,024 x 1,024 x 1,024 in bf16, and the rate of the largest.
  EXPECT_NEAR(measured.products.narrow.seconds(2.0 * 1024 * 1024 * 1024), 8.68e-6, 1e-8);
  EXPECT_NEAR(measured.products.narrow.at(1e13), 705e12, 1e10);
  EXPECT_LT(measured.products.narrow.peak(), sheet.products.narrow.peak());
  EXPECT_LT(measured.memory.peak(), sheet.memory.peak());
  EXPECT_LT(measured.attentionGrad.narrow.peak(), measured.attention.narrow.peak());
  EXPECT_EQ(measured.machine.bandwidth, sheet.machine.bandwidth);
}

TEST(CostTable, IsPlausible) {
  llvm::StringSet<> names;
  for (const Device &device : getDevices()) {
    SCOPED_TRACE(device.name);
    EXPECT_TRUE(names.insert(device.name).second);
    EXPECT_EQ(findDevice(device.name), &device);
    EXPECT_FALSE(device.description.empty());
    EXPECT_LE(device.products.f32.peak(), device.products.narrow.peak());
    EXPECT_GT(device.productRows, 0);
    EXPECT_GE(device.launch, 0);
    EXPECT_LT(device.launch, device.machine.latency);
    EXPECT_GT(device.machine.latency, 0);
    EXPECT_LE(device.machine.latency, device.network.latency);
    EXPECT_LE(device.network.bandwidth, device.machine.bandwidth);
    EXPECT_GT(device.network.bandwidth, 0);
    for (const Rate *rate : {&device.products.f32, &device.products.narrow, &device.attention.f32,
                             &device.attention.narrow, &device.attentionGrad.f32,
                             &device.attentionGrad.narrow, &device.kernels, &device.memory}) {
      for (size_t i = 1; i < rate->getPoints().size(); ++i)
        EXPECT_GT(rate->getPoints()[i].size, rate->getPoints()[i - 1].size);
      // More at once is no slower a rate, and takes no less time.
      for (double size = 1; size < 1e16; size *= 1.5) {
        EXPECT_LE(rate->at(size), rate->at(1.5 * size) * (1 + 1e-12)) << size;
        EXPECT_GE(rate->seconds(1.5 * size), rate->seconds(size) * (1 - 1e-12)) << size;
        EXPECT_LE(rate->at(size), rate->peak() * (1 + 1e-12)) << size;
      }
    }
  }
}

/// Expected largest values of normal samples (Harter 1961, Biometrika 48, table 1).
TEST(CostTable, TheSlowestOfManyDevicesIsAsExpected) {
  Device device = getDevice("h100-sxm");
  EXPECT_EQ(device.slowest(1000), 1);
  device.spread = 0.1;
  for (auto [count, largest] : {std::pair<int64_t, double>{1, 0}, {2, 0.56419}, {4, 1.02938}, {8, 1.42360}, {100, 2.50759}})
    EXPECT_NEAR(device.slowest(count), 1 + 0.1 * largest, 1e-6) << count;
}

TEST(CostTable, IsReadByName) {
  DeviceChoice choice;
  EXPECT_EQ(optionText(choice), "a100-sxm");
  ASSERT_FALSE(parseOption("h100-sxm", choice));
  EXPECT_EQ(choice->description, "an H100 SXM");
  EXPECT_EQ(findDevice("h100"), nullptr);
  EXPECT_EQ(
      llvm::toString(parseOption("h100-sxn", choice)),
      "'h100-sxn' is not supported; did you mean h100-sxm? The choices are epyc-9654, a100-sxm, "
      "a40, l40s, h100-sxm, b200-hgx, h100-sxm-measured");
  EXPECT_EQ(optionText(choice), "a100-sxm");
}

TEST(CostTableDeathTest, NamesADeviceThatIsNotThere) {
  EXPECT_DEATH(getDevice("tpu"), "the table of costs has no device 'tpu'");
}
