//===- ReshardPathTest.cpp - paths move every element where it belongs ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs paths on arrays: every pair of shardings of small tensors on meshes of one
// to three axes.
//
//===----------------------------------------------------------------------===//
#include "Dist/Partition/ReshardPath.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace meshwright::dist;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
/// A dense array of integers.
struct Array {
  SmallVector<int64_t> shape;
  std::vector<int64_t> data;

  explicit Array(ArrayRef<int64_t> shape) : shape(shape) {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    data.resize(n);
  }
  int64_t &at(ArrayRef<int64_t> index) {
    int64_t i = 0;
    for (auto [size, x] : llvm::zip(shape, index))
      i = i * size + x;
    return data[i];
  }
  /// Calls f with every index.
  template <typename F> void each(F f) const {
    SmallVector<int64_t> index(shape.size());
    for (size_t i = 0; i < data.size(); ++i) {
      f(ArrayRef<int64_t>(index));
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d])
          break;
        index[d] = 0;
      }
    }
  }
  Array part(unsigned dim, int64_t p, int64_t n) {
    SmallVector<int64_t> small(shape);
    small[dim] /= n;
    Array result(small);
    result.each([&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> from(index);
      from[dim] += p * small[dim];
      result.at(index) = at(from);
    });
    return result;
  }
  static Array join(ArrayRef<Array> parts, unsigned dim) {
    SmallVector<int64_t> big(parts[0].shape);
    int64_t k = big[dim];
    big[dim] *= parts.size();
    Array result(big);
    for (size_t p = 0; p < parts.size(); ++p)
      parts[p].each([&](ArrayRef<int64_t> index) {
        SmallVector<int64_t> to(index);
        to[dim] += p * k;
        result.at(to) = const_cast<Array &>(parts[p]).at(index);
      });
    return result;
  }
};

using Devices = std::vector<Array>;
} // namespace

/// What device `rank` holds of the tensor whose element i is i + 1. A partial one
/// is split into terms, different on every device, of which the last makes up for
/// the others. Devices that hold nothing have a number that spoils every sum.
static Array holds(ArrayRef<int64_t> shape, const Sharding &s, const Mesh &mesh, int64_t rank) {
  Array global(shape);
  std::iota(global.data.begin(), global.data.end(), 1);
  Array local(localShape(shape, s, mesh));
  if (!s.isOn(rank, mesh)) {
    std::fill(local.data.begin(), local.data.end(), -1000003);
    return local;
  }
  SmallVector<int64_t> offset = localOffset(shape, s, mesh, rank);
  int64_t n = mesh.size(s.partial), p = mesh.position(rank, s.partial);
  local.each([&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    for (auto [x, begin] : llvm::zip(at, offset))
      x += begin;
    int64_t value = global.at(at);
    local.at(index) = p < n - 1 ? value * (p + 2) : value - value * ((n - 1) * n / 2 + n - 1);
  });
  return local;
}

static void step(const ReshardStep &s, Devices &devices, const Mesh &mesh) {
  Devices before = devices;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    SmallVector<int64_t> group = mesh.group(rank, s.axes);
    int64_t n = group.size(), p = mesh.position(rank, s.axes);
    std::vector<Array> got;
    for (int64_t peer : group)
      got.push_back(before[peer]);
    Array sum = got[0];
    for (int64_t q = 1; q < n; ++q)
      if (got[q].data.size() == sum.data.size())
        for (size_t i = 0; i < sum.data.size(); ++i)
          sum.data[i] += got[q].data[i];
    switch (s.kind) {
    case ReshardStep::Slice:
      devices[rank] = before[rank].part(s.dim, p, n);
      break;
    case ReshardStep::ReduceScatter:
      devices[rank] = sum.part(s.dim, p, n);
      break;
    case ReshardStep::Permute:
      devices[rank] = got[s.source[p]];
      break;
    case ReshardStep::AllReduce:
      devices[rank] = sum;
      break;
    case ReshardStep::AllGather:
      devices[rank] = Array::join(got, s.dim);
      break;
    case ReshardStep::AllToAll:
      for (Array &array : got)
        array = array.part(s.dim, p, n);
      devices[rank] = Array::join(got, s.concat);
      break;
    case ReshardStep::Reduce:
    case ReshardStep::Gather:
      devices[rank] = s.kind == ReshardStep::Reduce ? sum : Array::join(got, s.dim);
      if (p != 0)
        std::fill(devices[rank].data.begin(), devices[rank].data.end(), -1000003);
      break;
    case ReshardStep::Broadcast:
      devices[rank] = got[0];
      break;
    case ReshardStep::Scatter:
      devices[rank] = got[0].part(s.dim, p, n);
      break;
    case ReshardStep::Forget:
      FAIL() << "a path has a step that does nothing";
    }
  }
}

/// Every sharding of a tensor with `rank` dimensions, with or without those that have
/// a root.
static std::vector<Sharding> allShardings(int64_t rank, const Mesh &mesh, bool roots) {
  std::vector<Sharding> result{Sharding::replicated(rank)}, next;
  // Axes are added in every order, so that every order on a dimension appears.
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, mesh.axes.size()));
  std::vector<Sharding> all;
  do {
    std::vector<Sharding> made{Sharding::replicated(rank)};
    for (unsigned axis : order) {
      std::vector<Sharding> more;
      for (const Sharding &s : made) {
        more.push_back(s);
        for (int64_t d = 0; d <= rank + roots; ++d) {
          Sharding t = s;
          (d < rank ? t.dims[d] : d == rank ? t.partial : t.root).push_back(axis);
          t.normalize();
          more.push_back(t);
        }
      }
      made = std::move(more);
    }
    for (const Sharding &s : made)
      if (!llvm::is_contained(all, s))
        all.push_back(s);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

/// What a device sends that completes and gathers everything and then keeps its part.
static double sentByGathering(const Sharding &from, const Sharding &to, ArrayRef<int64_t> shape,
                              const Mesh &mesh) {
  double sent = 0, elements = 1;
  for (int64_t size : localShape(shape, from, mesh))
    elements *= size;
  Axes completed = from.partial;
  llvm::erase_if(completed, [&](unsigned axis) { return to.isPartial(axis); });
  sent += ReshardStep{ReshardStep::AllReduce, completed}.sent(elements, mesh);
  for (auto [d, axes] : llvm::enumerate(from.dims))
    if (axes != to.dims[d]) {
      sent += ReshardStep{ReshardStep::AllGather, axes}.sent(elements, mesh);
      elements *= mesh.size(axes);
    }
  return sent;
}

/// Whether one collective makes `to` of `from`, without a slice.
static bool oneIsEnough(const Sharding &from, const Sharding &to, const Mesh &mesh) {
  SmallVector<unsigned> changed;
  bool sameParts = true, onlyShorter = true, onlyLonger = true;
  Axes gone, come;
  for (auto [d, lists] : llvm::enumerate(llvm::zip(from.dims, to.dims))) {
    const auto &[have, want] = lists;
    sameParts &= mesh.size(have) == mesh.size(want);
    if (have == want)
      continue;
    changed.push_back(d);
    size_t common = std::min(have.size(), want.size());
    if (!std::equal(have.begin(), have.begin() + common, want.begin())) {
      onlyShorter = onlyLonger = false;
      continue;
    }
    (have.size() > common ? onlyLonger : onlyShorter) = false;
    gone.append(have.begin() + common, have.end());
    come.append(want.begin() + common, want.end());
  }
  bool samePartial = from.partial == to.partial;
  if (samePartial && sameParts && !changed.empty())
    return true; // permute
  if (changed.empty())
    return !samePartial; // all_reduce
  if (samePartial && changed.size() == 1)
    return onlyShorter; // all_gather
  if (samePartial && changed.size() == 2)
    return !gone.empty() && gone == come; // all_to_all
  Axes left = to.partial;
  left.append(come);
  llvm::sort(left);
  return changed.size() == 1 && onlyLonger && left == from.partial; // reduce_scatter
}

static void check(const Sharding &from, const Sharding &to, ArrayRef<int64_t> shape,
                  const Mesh &mesh) {
  std::string what = from.str(mesh) + " -> " + to.str(mesh);
  auto path = findReshardPath(from, to, shape, mesh);
  bool possible = llvm::all_of(to.partial, [&](unsigned a) { return from.isPartial(a); });
  ASSERT_EQ(bool(path), possible) << what;
  if (!possible)
    return llvm::consumeError(path.takeError());
  if (from == to)
    EXPECT_TRUE(path->empty()) << what;
  Devices devices;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    devices.push_back(holds(shape, from, mesh, rank));
  double sent = 0, most = std::max(devices[0].data.size(), holds(shape, to, mesh, 0).data.size());
  for (const ReshardStep &s : *path) {
    what += "; " + s.str(mesh);
    sent += s.sent(devices[0].data.size(), mesh);
    step(s, devices, mesh);
    EXPECT_LE(devices[0].data.size(), most) << what << " makes a part larger than at both ends";
  }
  if (from.root.empty() && to.root.empty()) {
    if (oneIsEnough(from, to, mesh))
      EXPECT_EQ(path->size(), 1u) << what;
    EXPECT_LE(sent, sentByGathering(from, to, shape, mesh) * (1 + 1e-9)) << what;
  }
  // A value that stays partial is compared by its sum: the terms are its own.
  ReshardStep finish{ReshardStep::AllReduce, to.partial, 0, 0};
  if (!to.partial.empty())
    step(finish, devices, mesh);
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    if (!to.isOn(rank, mesh))
      continue;
    Array want = holds(shape, to.complete(), mesh, rank);
    ASSERT_EQ(devices[rank].shape, want.shape) << what << " on rank " << rank;
    ASSERT_EQ(devices[rank].data, want.data) << what << " on rank " << rank;
  }
}

/// Every `stride`-th pair.
static void checkAllPairs(int64_t rank, const Mesh &mesh, bool roots = true, unsigned stride = 1) {
  std::vector<Sharding> all = allShardings(rank, mesh, roots);
  SmallVector<int64_t> shape(rank, mesh.size());
  unsigned pair = 0;
  for (const Sharding &from : all)
    for (const Sharding &to : all) {
      if (pair++ % stride)
        continue;
      check(from, to, shape, mesh);
      if (testing::Test::HasFailure())
        return;
    }
}

TEST(ReshardPath, AllPairsOnOneAxis) {
  for (int64_t rank : {0, 1, 2, 3})
    checkAllPairs(rank, {{{"a", 3}}});
}

TEST(ReshardPath, AllPairsOnTwoAxes) {
  for (int64_t rank : {0, 1, 2, 3}) {
    checkAllPairs(rank, {{{"a", 2}, {"b", 2}}});
    checkAllPairs(rank, {{{"a", 2}, {"b", 3}}});
  }
}

TEST(ReshardPath, AllPairsOnThreeAxes) {
  // There are many of them; ./check --all, which sets this, takes all.
  unsigned stride = std::getenv("MESHWRIGHT_RANDOM_PROGRAMS") ? 1 : 7;
  for (int64_t rank : {0, 1, 2, 3})
    checkAllPairs(rank, {{{"a", 2}, {"b", 2}, {"c", 2}}}, rank < 2, stride);
  for (int64_t rank : {1, 2})
    checkAllPairs(rank, {{{"a", 2}, {"b", 3}, {"c", 2}}}, rank < 2, stride);
}

static std::string text(const Sharding &from, const Sharding &to, const Mesh &mesh) {
  std::string result;
  SmallVector<int64_t> shape(from.dims.size(), 64);
  auto path = findReshardPath(from, to, shape, mesh);
  for (const ReshardStep &s : *path)
    result += (result.empty() ? "" : "; ") + s.str(mesh);
  return result;
}

TEST(ReshardPath, OneCollectiveWhereOneIsEnough) {
  Mesh mesh{{{"a", 2}, {"b", 4}, {"one", 1}}};
  auto s = [](Axes d0, Axes d1, Axes partial = {}) { return Sharding{{d0, d1}, partial, false}; };
  EXPECT_EQ(text(s({}, {}, {0}), s({}, {}), mesh), "all_reduce {a}");
  EXPECT_EQ(text(s({}, {}, {0, 1}), s({}, {}), mesh), "all_reduce {a, b}");
  EXPECT_EQ(text(s({}, {}, {0}), s({}, {0}), mesh), "reduce_scatter dim 1 {a}");
  EXPECT_EQ(text(s({0}, {}), s({}, {0}), mesh), "all_to_all split 1 concat 0 {a}");
  EXPECT_EQ(text(s({0, 1}, {}), s({}, {}), mesh), "all_gather dim 0 {a, b}");
  EXPECT_EQ(text(s({}, {}), s({1, 0}, {}), mesh), "slice dim 0 {b, a}");
  EXPECT_EQ(text(s({0}, {}), s({0, 1}, {}), mesh), "slice dim 0 {b}");
  EXPECT_EQ(text(s({0, 1}, {}), s({1, 0}, {}), mesh),
            "permute from [0, 2, 4, 6, 1, 3, 5, 7] {a, b}");
  EXPECT_EQ(text(s({2}, {}), s({}, {2}), mesh), "") << "an axis with one device moves nothing";
}

TEST(ReshardPath, ToAndFromARoot) {
  Mesh mesh{{{"a", 2}, {"b", 4}}};
  auto s = [](Axes d0, Axes partial, Axes root) { return Sharding{{d0}, partial, false, root}; };
  EXPECT_EQ(text(s({}, {0}, {}), s({}, {}, {0}), mesh), "reduce {a}");
  EXPECT_EQ(text(s({}, {0, 1}, {}), s({}, {}, {0, 1}), mesh), "reduce {a, b}");
  EXPECT_EQ(text(s({1}, {0}, {}), s({1}, {}, {0}), mesh), "reduce {a}");
  EXPECT_EQ(text(s({}, {}, {}), s({}, {}, {0}), mesh), "") << "the root has it already";
  EXPECT_EQ(text(s({}, {}, {0}), s({}, {}, {}), mesh), "broadcast {a}");
  EXPECT_EQ(text(s({1}, {}, {0}), s({1}, {}, {}), mesh), "broadcast {a}");
  EXPECT_EQ(text(s({1}, {}, {}), s({}, {}, {1}), mesh), "gather dim 0 {b}");
  EXPECT_EQ(text(s({}, {}, {1}), s({1}, {}, {}), mesh), "scatter dim 0 {b}");
  EXPECT_EQ(text(s({}, {1}, {0}), s({}, {}, {0}), mesh), "all_reduce {b}") << "at the root alone";
}

TEST(ReshardPath, MovesPartsAlongAnotherAxis) {
  Mesh mesh{{{"a", 2}, {"b", 2}}};
  Sharding from = Sharding::replicated(2), to = from;
  from.dims[0] = {0};
  to.dims[0] = {1};
  // Devices (0, 0) and (1, 1) have what they need.
  EXPECT_EQ(text(from, to, mesh), "permute from [0, 2, 1, 3] {a, b}");
  from.dims[1] = {1};
  to.dims[1] = {0};
  EXPECT_EQ(text(from, to, mesh), "permute from [0, 2, 1, 3] {a, b}");
}

TEST(ReshardPath, RefusesWhatNoStepDoes) {
  Mesh mesh{{{"a", 2}, {"b", 2}}};
  Sharding from = Sharding::replicated(1), to = from;
  to.partial = {0};
  EXPECT_EQ(llvm::toString(findReshardPath(from, to, {8}, mesh).takeError()),
            "nothing becomes partial by moving");
  Mesh many;
  from = to = Sharding::replicated(2);
  for (unsigned i = 0; i < 7; ++i) {
    many.axes.push_back({"x" + std::to_string(i), 2});
    from.dims[0].push_back(i);
    to.dims[1].push_back(6 - i);
  }
  EXPECT_EQ(llvm::toString(findReshardPath(from, to, {128, 128}, many).takeError()),
            "more than six mesh axes change their roles; reshard the value in two steps");
}

TEST(ReshardPath, CutsBeforeItReduces) {
  Mesh mesh{{{"a", 2}, {"b", 4}}};
  Sharding from = Sharding::replicated(1), to = from;
  from.partial = {0};
  to.dims[0] = {1};
  EXPECT_EQ(text(from, to, mesh), "slice dim 0 {b}; all_reduce {a}");
}
