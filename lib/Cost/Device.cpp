//===- Device.cpp - what a device and its links can do ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Device.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace meshwright::cost;

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
