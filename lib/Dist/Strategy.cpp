//===- Strategy.cpp - meshes and parallel strategies as the user says them --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Strategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace meshwright::dist {

static constexpr StringLiteral axisNames[] = {"pipe",    "replica", "data",
                                              "context", "expert",  "tensor"};

Expected<Mesh> parseMesh(StringRef text) {
  Mesh mesh;
  if (text.trim().empty())
    return mesh;
  SmallVector<StringRef> items;
  text.split(items, ',');
  for (StringRef item : items) {
    auto [name, size] = item.split('=');
    name = name.trim();
    MeshAxis axis{name.str(), 0};
    if (!is_contained(axisNames, name))
      return createStringError("mesh axis '" + name + "' is unknown; axes are " +
                               join(ArrayRef(axisNames), ", "));
    if (mesh.find(name) >= 0)
      return createStringError("mesh axis '" + name + "' is given twice");
    if (size.trim().getAsInteger(10, axis.size) || axis.size < 1)
      return createStringError("mesh axis '" + name + "' needs a number of devices, found '" +
                               size + "'; write it as " + name + "=2");
    // Before multiplying, which could overflow.
    constexpr int64_t most = int64_t(1) << 20;
    if (axis.size > most || mesh.size() * axis.size > most)
      return createStringError("mesh '" + text + "' has more than 2^20 devices");
    mesh.axes.push_back(axis);
  }
  return mesh;
}

Axes batchAxes(const Mesh &mesh) {
  Axes axes;
  for (auto [i, axis] : enumerate(mesh.axes))
    if ((axis.name == "replica" || axis.name == "data") && axis.size > 1)
      axes.push_back(i);
  return axes;
}

int64_t batchParts(const Mesh &mesh) { return mesh.size(batchAxes(mesh)); }

Error checkStrategy(const Strategy &strategy, const Mesh &mesh,
                    function_ref<bool(unsigned)> seeded) {
  if (strategy.zero < 0 || strategy.zero > 3)
    return createStringError("--zero " + Twine(strategy.zero) + ": stages are 0, 1, 2 and 3");
  if (strategy.zero != 0)
    return createStringError("--zero " + Twine(strategy.zero) +
                             " is not available yet; use --zero 0");
  if (strategy.sequenceParallel)
    return createStringError("--sequence-parallel is not available yet; leave it out");
  Axes batch = batchAxes(mesh);
  for (auto [i, axis] : enumerate(mesh.axes))
    if (axis.size > 1 && !is_contained(batch, i) && !seeded(i))
      return createStringError("mesh axis '" + axis.name + "' = " + Twine(axis.size) +
                               " has no strategy yet: its " + Twine(axis.size) +
                               " devices would all do the same; use data or replica");
  return Error::success();
}

} // namespace meshwright::dist
