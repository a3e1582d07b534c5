//===- Device.cpp - what a device and its links can do ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Device.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace meshwright::cost;

/// The expected value of the largest of so many normal variables: the integral of the probability
/// that it is above x, less that it is below -x.
static double expectedLargest(int64_t count) {
  constexpr double step = 1.0 / 128, end = 10; // what is beyond has no weight in double
  auto isBelow = [&](double x) {
    return std::pow(std::erfc(-x / llvm::numbers::sqrt2) / 2, double(count));
  };
  double sum = 0;
  for (double x = step / 2; x < end; x += step)
    sum += step * (1 - isBelow(x) - isBelow(-x));
  return sum;
}

double Device::slowest(int64_t devices) const {
  return spread == 0 ? 1 : 1 + spread * expectedLargest(devices);
}

double Rate::at(double size) const {
  const Point &first = points.front();
  if (size < first.size && points.size() > 1)
    return first.rate * size / first.size;
  return between(size);
}

double Rate::between(double size) const {
  const Point &first = points.front(), &last = points.back();
  if (size >= last.size || points.size() == 1)
    return last.rate;
  if (size <= first.size)
    return first.rate;
  const Point *above = llvm::find_if(points, [&](const Point &p) { return p.size > size; });
  const Point *below = std::prev(above);
  double part = std::log(size / below->size) / std::log(above->size / below->size);
  return below->rate * std::pow(above->rate / below->rate, part);
}
