//===- RatesTest.cpp - rates found from what calls took -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Pipeline/Calibrate/Rates.h"
#include "Pipeline/Calibrate/ClusterText.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace meshwright;
using namespace meshwright::calibrate;
using cost::CallWork;
using cost::Rate;

namespace {
/// A machine whose numbers are to be found again.
cost::Device truth() {
  cost::Device device{};
  device.products = {Rate{{1e6, 1e11}, {1e9, 2e11}}, Rate{{1e6, 3e11}, {1e9, 4e11}}};
  device.attention = {Rate{{64, 5e10}, {1024, 1e11}}, Rate{{64, 6e10}, {1024, 2e11}}};
  device.attentionGrad = {Rate{{64, 7e10}, {1024, 8e10}}, Rate{{64, 9e10}, {1024, 9.5e10}}};
  device.packing = {2e10, 4e10};
  device.groupedShare = 0.5;
  device.kernels = Rate(2e11);
  device.functions = {{"exp", 4e9}, {"sin", 5e8}};
  device.memory = Rate{{1e4, 1e11}, {1e8, 2e10}};
  device.launch = 3e-7;
  device.productRows = 256;
  return device;
}

/// A run of calls of many sizes, each as long as `device` takes.
report::MeasuredRun run(const cost::Device &device) {
  report::MeasuredRun run;
  auto add = [&](CallWork work) {
    work.reuse = work.bytes;
    run.calls.push_back({"call", "", work, work.seconds(device), 1});
  };
  for (unsigned bits : {16, 32}) {
    for (double size = 1e6; size < 2e9; size *= 2) {
      CallWork product{CallWork::Product, size, size / 1e3};
      product.bits = bits;
      product.rows = 512;
      for (double bytes : {size / 1e3, size / 20}) {
        product.bytes = bytes;
        add(product);
      }
      product.kind = CallWork::GroupedProduct;
      add(product);
    }
    for (int64_t keys : {64, 256, 1024})
      for (auto kind : {CallWork::Attention, CallWork::AttentionGrad}) {
        CallWork attention{kind, 1e3 * double(keys * keys), 1e3 * double(keys)};
        attention.bits = bits;
        attention.keys = keys;
        attention.headSize = 64;
        add(attention);
      }
  }
  for (double size = 1e4; size < 2e8; size *= 2) {
    add({CallWork::Kernel, 0, size});
    add({CallWork::Optimizer, 0, size});
    CallWork functions{CallWork::Kernel, 0, size};
    functions.functions = {{"exp", size}};
    add(functions);
    functions.functions = {{"sin", size / 4}, {"exp", size / 8}};
    add(functions);
    // What is evaluated once is measured as noise.
    functions.functions = {{"log", 1}};
    add(functions);
  }
  run.launches = double(run.calls.size());
  run.between = run.launches * device.launch;
  for (const report::MeasuredCall &call : run.calls)
    run.step += call.seconds;
  return run;
}
} // namespace

TEST(Rates, AreThoseThatCallsWereMadeWith) {
  cost::Device device = truth(), found = rateDevice({run(device)});
  EXPECT_EQ(found.packing.f32, 2e10);
  EXPECT_EQ(found.packing.narrow, 4e10);
  EXPECT_NEAR(found.groupedShare, 0.5, 0.02);
  EXPECT_DOUBLE_EQ(found.launch, 3e-7);
  EXPECT_NEAR(found.functions.at("exp") / 4e9, 1, 0.05);
  EXPECT_NEAR(found.functions.at("sin") / 5e8, 1, 0.05);
  EXPECT_FALSE(found.functions.count("log"));
  for (const Misfit &misfit : misfits({run(device)}, found))
    EXPECT_LT(misfit.error, 0.05) << misfit.kind.str();
  EXPECT_NEAR(found.attention.narrow.between(1024) / 2e11, 1, 0.01);
  EXPECT_NEAR(found.attentionGrad.f32.between(64) / 7e10, 1, 0.01);
}

TEST(Rates, ProductRowsAreTheFewestOfFastProducts) {
  report::MeasuredRun run = ::run(truth());
  for (report::MeasuredCall &call : run.calls)
    call.work.rows = 0;
  for (int64_t rows : {8, 32, 128, 512, 2048}) {
    CallWork product{CallWork::Product, 1e9, 1e6};
    product.rows = rows;
    product.bytes = 1;
    run.calls.push_back({"call", "", product, 1e9 / (rows < 128 ? 1e11 : 2e11), 1});
  }
  EXPECT_EQ(rateDevice({run}).productRows, 128);
}

TEST(Rates, OfLinksAreATimeForTheCallAndOneForItsBytes) {
  report::MeasuredRun run;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) {
    run.collectives.push_back({"all_reduce", 2, bytes, 5e-6 + bytes / 3e9});
    run.collectives.push_back({"permute", 2, bytes, 2e-6 + bytes / 8e9});
  }
  cost::Level level = rateLinks({run}, truth());
  ASSERT_EQ(level.algorithms.size(), 1u);
  EXPECT_EQ(level.algorithms[0].collectives, std::vector<std::string>{"all_reduce"});
  EXPECT_NEAR(level.algorithms[0].base / 5e-6, 1, 0.02);
  EXPECT_NEAR(level.algorithms[0].bandwidth.peak() / 3e9, 1, 0.02);
  EXPECT_NEAR(level.link.latency / 2e-6, 1, 0.02);
  EXPECT_NEAR(level.link.bandwidth / 8e9, 1, 0.02);
}

TEST(Rates, OfContentionAreWhatOverlapDoesNotHide) {
  report::MeasuredRun overlapped, apart;
  apart.step = 10;
  overlapped.beside = 4;
  overlapped.step = 6; // all is hidden
  EXPECT_DOUBLE_EQ(contention(overlapped, apart), 0);
  overlapped.step = 9;
  EXPECT_DOUBLE_EQ(contention(overlapped, apart), 0.75);
  overlapped.step = 11; // more than nothing is hidden
  EXPECT_DOUBLE_EQ(contention(overlapped, apart), 1);
  overlapped.beside = 0; // nothing can be said
  EXPECT_DOUBLE_EQ(contention(overlapped, apart), 1);
}

TEST(ClusterText, IsReadAsTheClusterThatItIsOf) {
  cost::Cluster cluster;
  cluster.name = "here";
  cluster.target = "cpu";
  cluster.description = "two ranks of a \"machine\"";
  cost::Device device = truth();
  device.name = "core";
  device.description = "a core";
  device.capacity = 1e9;
  device.host = {1e-6, 1e10};
  cluster.devices.push_back({device, 0});
  cost::Level level;
  level.name = "memory";
  level.count = 2;
  level.link = {2e-6, 8e9};
  level.contention = 1;
  cost::CollectiveAlgorithm algorithm;
  algorithm.name = "all of it";
  algorithm.collectives = {"all_reduce", "all_gather"};
  algorithm.pattern = cost::CollectiveAlgorithm::Pattern::tree;
  algorithm.base = 1e-6;
  algorithm.step = 2e-6;
  algorithm.bandwidth = Rate{{2, 1e9}, {4, 2e9}};
  level.algorithms.push_back(algorithm);
  cluster.levels.push_back(level);
  std::string text = clusterText(cluster, "a test");
  cost::Cluster read = llvm::cantFail(cost::readCluster(text, "here.toml"));
  EXPECT_EQ(read.description, cluster.description);
  EXPECT_EQ(read.levels.front().algorithms.front().pattern, algorithm.pattern);
  EXPECT_EQ(read.levels.front().contention, 1);
  EXPECT_EQ(read.devices.front().device.functions, device.functions);
  EXPECT_EQ(read.devices.front().device.groupedShare, 0.5);
  EXPECT_EQ(read.devices.front().device.productRows, 256);
  EXPECT_EQ(read.devices.front().device.capacity, 1e9);
  EXPECT_EQ(clusterText(read, "a test"), text);
}
