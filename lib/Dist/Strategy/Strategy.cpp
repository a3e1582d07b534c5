//===- Strategy.cpp - meshes and parallel strategies as the user says them --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Strategy/Seeds.h"
#include "meshwright/runtime/Suggestion.h"

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
    if (!is_contained(axisNames, name)) {
      if (size_t sign = item.find_first_of(":*x "); item.find('=') == StringRef::npos && sign != StringRef::npos &&
                                                  is_contained(axisNames, item.take_front(sign).trim()))
        return createStringError("mesh '" + text + "': '" + item.trim() + "' is no axis; write it as " + item.take_front(sign).trim() +
                                 "=" + item.drop_front(sign + 1).trim());
      if (int64_t number; !name.getAsInteger(10, number) && item == name)
        return createStringError("mesh '" + text + "': '" + name + "' is a size without an axis; write e.g. data=" + name +
                                 "; the axes are " + join(ArrayRef(axisNames), ", "));
      std::string meant = axisCalled(name.lower());
      if (meant.empty())
        meant = nearestName(name.lower(), axisNames);
      std::string all = join(ArrayRef(axisNames), ", ");
      if (meant.empty())
        return createStringError("mesh axis '" + name + "' is unknown; the axes are " + all);
      return createStringError("mesh axis '" + name + "' is unknown; did you mean '" + meant + "'" +
                               (name.equals_insensitive("fsdp") ? ", with --zero 3" : "") +
                               "? The axes are " + all);
    }
    if (!mesh.named(name).empty())
      return createStringError("mesh axis '" + name + "' is given twice");
    SmallVector<StringRef> parts;
    if (name == "tensor" || name == "context")
      size.trim().split(parts, 'x');
    else
      parts.push_back(size.trim());
    if (name == "tensor" && parts.size() > 3)
      return createStringError("mesh axis 'tensor' has two or three parts, as 2x4 or 2x2x2, not " +
                               size.trim());
    if (name == "context" && parts.size() > 2)
      return createStringError("mesh axis 'context' has two parts, as 4x2, not " + size.trim());
    for (auto [i, part] : enumerate(parts)) {
      if (part.getAsInteger(10, axis.size) || axis.size < 1)
        return createStringError("mesh axis '" + name + "' needs a number of devices, found '" +
                                 size + "'; write it as " + name + "=2");
      // Before multiplying, which could overflow.
      constexpr int64_t most = Mesh::mostDevices;
      if (axis.size > most || mesh.size() * axis.size > most)
        return createStringError("mesh '" + text + "' has more than 2^20 devices");
      axis.name = parts.size() == 1 ? name.str() : name.str() + "." + std::to_string(i);
      mesh.axes.push_back(axis);
    }
  }
  return mesh;
}

std::string meshText(const Mesh &mesh, bool parts) {
  std::string text;
  for (size_t i = 0; i < mesh.axes.size();) {
    StringRef name = StringRef(mesh.axes[i].name).split('.').first;
    SmallVector<int64_t> sizes;
    for (; i < mesh.axes.size() && StringRef(mesh.axes[i].name).split('.').first == name; ++i)
      sizes.push_back(mesh.axes[i].size);
    if (!parts)
      sizes = {product_of(sizes)};
    text += (text.empty() ? "" : ",") + name.str() + "=" +
            join(map_range(sizes, [](int64_t size) { return std::to_string(size); }), "x");
  }
  return text;
}

bool isRefinement(const Mesh &mesh, const Mesh &asked) {
  size_t next = 0;
  for (const MeshAxis &axis : asked.axes) {
    Axes parts = mesh.named(axis.name);
    if (parts.empty() || mesh.size(parts) != axis.size)
      return false;
    for (unsigned part : parts)
      if (part != next++)
        return false;
  }
  return next == mesh.axes.size();
}

Axes batchAxes(const Mesh &mesh) {
  Axes axes;
  for (auto [i, axis] : enumerate(mesh.axes))
    if ((axis.name == "replica" || axis.name == "data" || axis.name == "tensor.2") && axis.size > 1)
      axes.push_back(i);
  // Where experts are divided, all sequences of these devices' are together.
  llvm::append_range(axes, expertAxes(mesh));
  return axes;
}

Axes expertAxes(const Mesh &mesh) {
  Axes axes = mesh.named("expert");
  erase_if(axes, [&](unsigned axis) { return mesh.axes[axis].size == 1; });
  return axes;
}

int64_t batchParts(const Mesh &mesh) { return mesh.size(batchAxes(mesh)); }

SmallDenseSet<StringRef> seededAxes(mlir::ModuleOp module) {
  SmallDenseSet<StringRef> axes;
  module->walk([&](mlir::Operation *op) {
    op->getAttrDictionary().walk([&](DimAttr dim) {
      for (mlir::StringAttr axis : dim.getAxes())
        axes.insert(axis.getValue());
    });
  });
  return axes;
}

Error checkStrategy(const DistApplyStrategyOptions &strategy, const Mesh &mesh,
                    function_ref<bool(unsigned)> seeded) {
  if (strategy.zero < 0 || strategy.zero > 3)
    return createStringError("--zero " + Twine(strategy.zero) + ": levels are 0, 1, 2 and 3");
  if (!mesh.named("tensor.2").empty() && (strategy.zero == 1 || strategy.zero == 2))
    return createStringError("--zero " + Twine(strategy.zero) +
                             " does not go with tensor=RxCxD, whose third part stores parameters "
                             "once; use --zero 3 or 0");
  if (strategy.zero > 0 && mesh.named("data").empty() && mesh.named("context").empty() &&
      mesh.named("expert").empty() && mesh.named("tensor.2").empty())
    return createStringError("--zero " + Twine(strategy.zero) +
                             " shares state out over the data axis, which the mesh does not have; "
                             "add e.g. data=2");
  if (strategy.dataSync == DataSync::parameterServer) {
    if (strategy.zero != 0)
      return createStringError("--data-sync parameter-server does not go with --zero " +
                               Twine(strategy.zero) +
                               ", which stores in parts what the server stores alone; leave one "
                               "of them out");
    if (!mesh.named("tensor.2").empty())
      return createStringError("--data-sync parameter-server does not go with tensor=RxCxD, whose "
                               "third part stores parameters once; use tensor=RxC");
    if (!expertAxes(mesh).empty())
      return createStringError("--data-sync parameter-server does not go with mesh axis 'expert', "
                               "whose devices store different experts; use data instead or "
                               "--data-sync all-reduce");
    if (mesh.size(mesh.named("pipe")) > 1)
      return createStringError("--data-sync parameter-server does not go with pipeline stages; "
                               "use --data-sync all-reduce or leave the mesh axis pipe out");
    if (batchParts(mesh) == 1)
      return createStringError("--data-sync parameter-server needs workers beside the server, but "
                               "the mesh has one data rank; add e.g. data=2");
  }
  Axes tensor = mesh.named("tensor");
  bool parts = mesh.find("tensor") < 0 && !tensor.empty();
  if (strategy.sequenceParallel && tensor.empty())
    return createStringError("--sequence-parallel shards the sequence over the tensor axis, which "
                             "the mesh does not have; add e.g. tensor=2");
  if (strategy.tensor2d && !parts)
    return createStringError("--tensor-2d needs a mesh axis tensor=RxC, e.g. tensor=2x2");
  if (parts && !strategy.tensor2d)
    return createStringError(
        "mesh axis tensor of " + Twine(mesh.size(tensor)) +
        " devices has parts, which --tensor-2d is for; add it or write tensor=" +
        Twine(mesh.size(tensor)));
  Axes context = mesh.named("context");
  bool divided = mesh.size(context) > 1 && !llvm::any_of(context, seeded);
  if (divided && strategy.contextParallel == ContextParallel::none)
    return createStringError(
        "mesh axis 'context' = " + Twine(mesh.size(context)) +
        " divides sequences, but not attention; add --context-parallel ring, gather, ulysses or hybrid");
  if (!divided && strategy.contextParallel != ContextParallel::none)
    return createStringError("--context-parallel divides attention over the context axis, which "
                             "the mesh does not have; add e.g. context=2");
  bool contextParts = mesh.find("context") < 0 && !context.empty();
  if (strategy.contextParallel == ContextParallel::hybrid && !contextParts)
    return createStringError("--context-parallel hybrid needs a mesh axis context=RxU, whose first part "
                             "divides queries and whose second divides heads, e.g. context=2x2");
  if (contextParts && divided && strategy.contextParallel != ContextParallel::hybrid)
    return createStringError("mesh axis context of " + Twine(mesh.size(context)) +
                             " devices has parts, which --context-parallel hybrid is for; add it or "
                             "write context=" +
                             Twine(mesh.size(context)));
  return Error::success();
}

} // namespace meshwright::dist
