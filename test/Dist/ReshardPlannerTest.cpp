//===- ReshardPlannerTest.cpp - plans move every element where it belongs ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs plans on arrays: every pair of shardings of small tensors on meshes of one
// to three axes.
//
//===----------------------------------------------------------------------===//
#include "Dist/ReshardPlanner.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <random>

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
/// the others.
static Array holds(ArrayRef<int64_t> shape, const Sharding &s, const Mesh &mesh, int64_t rank) {
  Array global(shape);
  std::iota(global.data.begin(), global.data.end(), 1);
  Array local(localShape(shape, s, mesh));
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
    }
  }
}

/// Every sharding of a tensor with `rank` dimensions.
static std::vector<Sharding> allShardings(int64_t rank, const Mesh &mesh) {
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
        for (int64_t d = 0; d <= rank; ++d) {
          Sharding t = s;
          (d < rank ? t.dims[d] : t.partial).push_back(axis);
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

static void check(const Sharding &from, const Sharding &to, ArrayRef<int64_t> shape,
                  const Mesh &mesh) {
  std::string what = from.str(mesh) + " -> " + to.str(mesh);
  auto plan = planReshard(from, to, mesh);
  bool possible = llvm::all_of(to.partial, [&](unsigned a) { return from.isPartial(a); });
  ASSERT_EQ(plan.has_value(), possible) << what;
  if (!possible)
    return;
  if (from == to)
    EXPECT_TRUE(plan->empty()) << what;
  Devices devices;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    devices.push_back(holds(shape, from, mesh, rank));
  for (const ReshardStep &s : *plan) {
    what += "; " + s.str(mesh);
    step(s, devices, mesh);
  }
  // A value that stays partial is compared by its sum: the terms are its own.
  ReshardStep finish{ReshardStep::AllReduce, to.partial, 0, 0};
  if (!to.partial.empty())
    step(finish, devices, mesh);
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    Array want = holds(shape, to.complete(), mesh, rank);
    ASSERT_EQ(devices[rank].shape, want.shape) << what << " on rank " << rank;
    ASSERT_EQ(devices[rank].data, want.data) << what << " on rank " << rank;
  }
}

static void checkAllPairs(int64_t rank, const Mesh &mesh, size_t atMost) {
  std::vector<Sharding> all = allShardings(rank, mesh);
  SmallVector<int64_t> shape(rank, mesh.size());
  bool everything = all.size() * all.size() <= atMost;
  std::mt19937 random(rank * 100 + mesh.axes.size());
  size_t n = everything ? all.size() * all.size() : atMost;
  for (size_t i = 0; i < n && !testing::Test::HasFatalFailure(); ++i) {
    size_t pair = everything ? i : random() % (all.size() * all.size());
    check(all[pair / all.size()], all[pair % all.size()], shape, mesh);
  }
}

TEST(ReshardPlanner, AllPairsOnOneAxis) {
  for (int64_t rank : {0, 1, 2, 3})
    checkAllPairs(rank, {{{"a", 3}}}, 10000);
}

TEST(ReshardPlanner, AllPairsOnTwoAxes) {
  for (int64_t rank : {0, 1, 2, 3})
    checkAllPairs(rank, {{{"a", 2}, {"b", 3}}}, 10000);
}

TEST(ReshardPlanner, PairsOnThreeAxes) {
  for (int64_t rank : {0, 1, 2})
    checkAllPairs(rank, {{{"a", 2}, {"b", 2}, {"c", 2}}}, 4000);
  checkAllPairs(3, {{{"a", 2}, {"b", 2}, {"c", 2}}}, 1000);
}

static std::string text(const Sharding &from, const Sharding &to, const Mesh &mesh) {
  std::string result;
  auto plan = planReshard(from, to, mesh);
  for (const ReshardStep &s : *plan)
    result += (result.empty() ? "" : "; ") + s.str(mesh);
  return result;
}

TEST(ReshardPlanner, OneCollectiveWhereOneIsEnough) {
  Mesh mesh{{{"a", 2}, {"b", 4}, {"one", 1}}};
  auto s = [](Axes d0, Axes d1, Axes partial = {}) { return Sharding{{d0, d1}, partial, false}; };
  EXPECT_EQ(text(s({}, {}, {0}), s({}, {}), mesh), "all_reduce {a}");
  EXPECT_EQ(text(s({}, {}, {0, 1}), s({}, {}), mesh), "all_reduce {a, b}");
  EXPECT_EQ(text(s({}, {}, {0}), s({}, {0}), mesh), "reduce_scatter dim 1 {a}");
  EXPECT_EQ(text(s({0}, {}), s({}, {0}), mesh), "all_to_all split 1 concat 0 {a}");
  EXPECT_EQ(text(s({0, 1}, {}), s({}, {}), mesh), "all_gather dim 0 {a, b}");
  EXPECT_EQ(text(s({}, {}), s({1, 0}, {}), mesh), "slice dim 0 {b, a}");
  EXPECT_EQ(text(s({0}, {}), s({0, 1}, {}), mesh), "slice dim 0 {b}");
  EXPECT_EQ(text(s({2}, {}), s({}, {2}), mesh), "") << "an axis with one device moves nothing";
}

TEST(ReshardPlanner, CutsBeforeItReduces) {
  Mesh mesh{{{"a", 2}, {"b", 4}}};
  Sharding from = Sharding::replicated(1), to = from;
  from.partial = {0};
  to.dims[0] = {1};
  EXPECT_EQ(text(from, to, mesh), "slice dim 0 {b}; all_reduce {a}");
}
