//===- Sharding.cpp - meshes and shardings without IR -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Sharding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace meshwright::dist {

int64_t Mesh::size() const {
  int64_t n = 1;
  for (const MeshAxis &axis : axes)
    n *= axis.size;
  return n;
}

int64_t Mesh::size(ArrayRef<unsigned> group) const {
  int64_t n = 1;
  for (unsigned axis : group)
    n *= axes[axis].size;
  return n;
}

int Mesh::find(StringRef name) const {
  for (auto [i, axis] : enumerate(axes))
    if (axis.name == name)
      return i;
  return -1;
}

Axes Mesh::named(StringRef name) const {
  Axes parts;
  for (auto [i, axis] : enumerate(axes)) {
    StringRef rest = axis.name;
    if (rest.consume_front(name) && (rest.empty() || rest.front() == '.'))
      parts.push_back(i);
  }
  return parts;
}

std::string Mesh::str(ArrayRef<unsigned> group) const {
  return "{" + join(map_range(group, [&](unsigned a) { return axes[a].name; }), ", ") + "}";
}

int64_t Mesh::coordinate(int64_t rank, unsigned axis) const {
  for (size_t i = axes.size() - 1; i > axis; --i)
    rank /= axes[i].size;
  return rank % axes[axis].size;
}

int64_t Mesh::position(int64_t rank, ArrayRef<unsigned> group) const {
  int64_t position = 0;
  for (unsigned axis : group)
    position = position * axes[axis].size + coordinate(rank, axis);
  return position;
}

SmallVector<int64_t> Mesh::group(int64_t rank, ArrayRef<unsigned> group) const {
  auto stride = [&](unsigned axis) {
    int64_t s = 1;
    for (size_t i = axis + 1; i < axes.size(); ++i)
      s *= axes[i].size;
    return s;
  };
  for (unsigned axis : group)
    rank -= coordinate(rank, axis) * stride(axis);
  SmallVector<int64_t> ranks{rank};
  for (unsigned axis : group) {
    SmallVector<int64_t> next;
    for (int64_t r : ranks)
      for (int64_t i = 0; i < axes[axis].size; ++i)
        next.push_back(r + i * stride(axis));
    ranks = std::move(next);
  }
  return ranks;
}

bool Sharding::isReplicated() const {
  return partial.empty() && root.empty() &&
         all_of(dims, [](const Axes &axes) { return axes.empty(); });
}

bool Sharding::uses(unsigned axis) const {
  return isPartial(axis) || isRoot(axis) || dimOf(axis) >= 0;
}

int Sharding::dimOf(unsigned axis) const {
  for (auto [d, axes] : enumerate(dims))
    if (is_contained(axes, axis))
      return d;
  return -1;
}

bool Sharding::isPartial(unsigned axis) const { return is_contained(partial, axis); }

bool Sharding::isRoot(unsigned axis) const { return is_contained(root, axis); }

bool Sharding::isOn(int64_t rank, const Mesh &mesh) const { return mesh.position(rank, root) == 0; }

Sharding Sharding::complete() const {
  Sharding s = *this;
  s.partial.clear();
  s.max = false;
  return s;
}

void Sharding::normalize() {
  llvm::sort(partial);
  llvm::sort(root);
}

std::string Sharding::str(const Mesh &mesh) const {
  std::string text =
      "[" + join(map_range(dims, [&](const Axes &axes) { return mesh.str(axes); }), ", ") + "]";
  if (!partial.empty())
    text += (max ? " partial max " : " partial ") + mesh.str(partial);
  if (!root.empty())
    text += " root " + mesh.str(root);
  return text;
}

int firstUneven(ArrayRef<int64_t> shape, const Sharding &sharding, const Mesh &mesh) {
  for (auto [d, size] : enumerate(shape))
    if (size % mesh.size(sharding.dims[d]))
      return d;
  return -1;
}

SmallVector<int64_t> localShape(ArrayRef<int64_t> shape, const Sharding &sharding,
                                const Mesh &mesh) {
  SmallVector<int64_t> local;
  for (auto [d, size] : enumerate(shape))
    local.push_back(size / mesh.size(sharding.dims[d]));
  return local;
}

SmallVector<int64_t> localOffset(ArrayRef<int64_t> shape, const Sharding &sharding,
                                 const Mesh &mesh, int64_t rank) {
  SmallVector<int64_t> offset = localShape(shape, sharding, mesh);
  for (auto [d, begin] : enumerate(offset))
    begin *= mesh.position(rank, sharding.dims[d]);
  return offset;
}

} // namespace meshwright::dist
