//===- KernelBench.cpp - bandwidth of the main kernels ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Prints, for each kernel, the bytes it must move (operands read, results
// written) per second, against what memcpy moves on the same threads.
//
//===----------------------------------------------------------------------===//
#include "KernelRunner.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace meshwright;
using namespace meshwright::test;

template <typename Fn> static double bestSeconds(int repeats, Fn fn) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    fn();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

static void copyBandwidth(int64_t megabytes) {
  int64_t elements = megabytes << 18;
  Memory from(elements), to(elements);
  double seconds = bestSeconds(7, [&] {
    std::thread other([&] { std::memcpy(to.data, from.data, elements * 2); });
    std::memcpy(to.data + elements / 2, from.data + elements / 2, elements * 2);
    other.join();
  });
  std::printf("%-28s %8.3f ms %7.1f GB/s\n",
              ("memcpy " + std::to_string(megabytes) + " MB").c_str(), seconds * 1e3,
              double(elements) * 8 / seconds * 1e-9);
}

static void measure(const char *name, const char *text, int64_t ids, bool inplace) {
  auto start = std::chrono::steady_clock::now();
  KernelRunner runner(text);
  double compile = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!runner.valid()) {
    std::printf("%s: does not compile\n", name);
    return;
  }
  auto arguments = runner.makeArguments(1, ids);
  auto results = runner.makeResults();
  llvm::SmallVector<float *> operands;
  double bytes = 0;
  for (Memory &memory : arguments) {
    operands.push_back(memory.data);
    bytes += double(memory.elements) * 4;
  }
  for (Memory &memory : results) {
    operands.push_back(memory.data);
    bytes += double(memory.elements) * 4;
  }
  llvm::DenseSet<unsigned> placed;
  if (inplace)
    for (auto [argument, result] : runner.getLoops().inplace)
      if (placed.insert(argument).second && placed.insert(1000 + result).second)
        operands[arguments.size() + result] = arguments[argument].data;
  for (auto order : {KernelRunner::Forward, KernelRunner::TwoThreads}) {
    double seconds = bestSeconds(9, [&] { runner.run(operands, order); });
    std::printf("%-28s %8.3f ms %7.1f GB/s  %s, compiled in %.0f ms\n", name, seconds * 1e3,
                bytes / seconds * 1e-9,
                order == KernelRunner::TwoThreads ? "2 threads" : "1 thread ", compile * 1e3);
  }
}

int main() {
  for (int64_t megabytes : {256, 4})
    copyBandwidth(megabytes);
#define BIG "tensor<50304x768xf32>"
#define X "tensor<2048x768xf32>"
#define F "tensor<2048x3072xf32>"
#define L "tensor<2048x50257xf32>"
#define S "tensor<f32>"
#define R "tensor<2048xf32>"
  measure("adamw 39M in place",
          "func.func @k(%p: " BIG ", %g: " BIG ", %m: " BIG ", %v: " BIG ", %c: " S ", %l: " S
          ", %b1: " S ", %b2: " S ", %e: " S ", %w: " S ", %c1: " S ", %c2: " S ") -> (" BIG
          ", " BIG ", " BIG ") { %0:3 = train.update \"adamw\" decay %p, %g, %m, %v, %c, %l, "
          "%b1, %b2, %e, %w, %c1, %c2 : (" BIG ", " BIG ", " BIG ", " BIG
          ", " S ", " S ", " S ", " S ", " S ", " S ", " S ", " S ") -> (" BIG ", " BIG ", " BIG
          ") return %0#0, %0#1, %0#2 : " BIG ", " BIG ", " BIG " }",
          1, true);
  measure("square_sum 39M",
          "func.func @k(%x: " BIG ") -> " S " { %0 = train.square_sum %x : (" BIG ") -> " S
          " return %0 : " S " }",
          1, false);
  measure("layer_norm 2048x768",
          "func.func @k(%x: " X ", %w: tensor<768xf32>, %b: tensor<768xf32>) -> " X
          " { %0 = train.layer_norm %x, %w, %b eps 1.0e-5 : (" X
          ", tensor<768xf32>, tensor<768xf32>) -> " X " return %0 : " X " }",
          1, false);
  measure("layer_norm_grad 2048x768",
          "func.func @k(%y: " X ", %x: " X ", %w: tensor<768xf32>) -> (" X
          ", tensor<768xf32>, tensor<768xf32>) { %0:3 = train.layer_norm_grad %y, %x, %w eps 1.0e-5"
          " : (" X ", " X ", tensor<768xf32>) -> (" X ", tensor<768xf32>, tensor<768xf32>) return "
          "%0#0, %0#1, %0#2 : " X ", tensor<768xf32>, tensor<768xf32> }",
          1, true);
  measure("gelu 2048x3072",
          "func.func @k(%x: " F ") -> " F " { %0 = train.gelu tanh %x : (" F ") -> " F
          " return %0 : " F " }",
          1, false);
  measure("bias+gelu in place",
          "func.func @k(%x: " F ", %b: tensor<3072xf32>) -> (" F ", " F
          ") { %0 = train.add %x, %b : (" F ", tensor<3072xf32>) -> " F
          " %1 = train.gelu tanh %0 : (" F ") -> " F " return %0, %1 : " F ", " F " }",
          1, true);
  measure("gelu_grad+bias sum",
          "func.func @k(%y: " F ", %x: " F ") -> (" F ", tensor<3072xf32>) { %0 = train.gelu_grad "
          "tanh %y, %x : (" F ", " F ") -> " F " %1 = train.reduce sum %0 over [0] : (" F
          ") -> tensor<3072xf32> return %0, %1 : " F ", tensor<3072xf32> }",
          1, true);
  measure("gelu(erf) 2048x3072",
          "func.func @k(%x: " F ") -> " F " { %0 = train.gelu %x : (" F ") -> " F " return %0 : " F
          " }",
          1, false);
  measure(
      "dropout 2048x768",
      "func.func @k(%x: tensor<4x512x768xf32>, %i: tensor<4xi32>, %k: tensor<2xi32>) -> "
      "tensor<4x512x768xf32> { %0 = train.dropout %x, %i, %k rate 0.1 stream 1 : "
      "(tensor<4x512x768xf32>, tensor<4xi32>, tensor<2xi32>) -> tensor<4x512x768xf32> return %0 "
      ": tensor<4x512x768xf32> }",
      1, false);
  measure("cross_entropy 2048x50257",
          "func.func @k(%x: " L ", %t: tensor<2048xi32>) -> (" S ", " R
          ") { %0:2 = train.cross_entropy %x, %t scale 0.01 : (" L ", tensor<2048xi32>) -> (" S
          ", " R ") return %0#0, %0#1 : " S ", " R " }",
          50257, false);
  measure("cross_entropy_grad in place",
          "func.func @k(%x: " L ", %t: tensor<2048xi32>, %l: " R ", %g: " S ") -> " L
          " { %0 = train.cross_entropy_grad %x, %t, %l, %g scale 0.01 : (" L
          ", tensor<2048xi32>, " R ", " S ") -> " L " return %0 : " L " }",
          50257, true);
  measure("embedding_grad in place",
          "func.func @k(%y: " X ", %i: tensor<2048xi32>, %a: tensor<50257x768xf32>) -> "
          "tensor<50257x768xf32> { %0 = train.embedding_grad %y, %i init %a rows 50257 : (" X
          ", tensor<2048xi32>, tensor<50257x768xf32>) -> tensor<50257x768xf32> return %0 : "
          "tensor<50257x768xf32> }",
          50257, true);
  measure("rope 4x512x12x64",
          "func.func @k(%x: tensor<4x512x12x64xf32>, %c: tensor<512x32xf32>, %s: "
          "tensor<512x32xf32>) -> tensor<4x512x12x64xf32> { %0 = train.rope %x, %c, %s : "
          "(tensor<4x512x12x64xf32>, tensor<512x32xf32>, tensor<512x32xf32>) -> "
          "tensor<4x512x12x64xf32> return %0 : tensor<4x512x12x64xf32> }",
          1, false);
}
