//===- IndexClassesTest.cpp - which dimensions are one index ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Strategy/IndexClasses.h"

#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

//===--- atoms without IR ---------------------------------------------------===//

static SmallVector<int64_t> sizes(const Atoms &atoms, ArrayRef<unsigned> list) {
  return llvm::map_to_vector(atoms.resolve(list), [&](unsigned a) { return atoms.size(a); });
}

TEST(Atoms, JoinsEqualSizes) {
  Atoms atoms;
  Atoms::List a = atoms.make(8), b = atoms.make(8), c = atoms.make(8);
  EXPECT_TRUE(atoms.join(a, b));
  EXPECT_EQ(atoms.resolve(a), atoms.resolve(b));
  EXPECT_NE(atoms.resolve(a), atoms.resolve(c));
}

TEST(Atoms, RefinesEverywhere) {
  Atoms atoms;
  Atoms::List whole = atoms.make(40), twin = atoms.make(40), five = atoms.make(5),
              eight = atoms.make(8);
  ASSERT_TRUE(atoms.join(whole, twin));
  Atoms::List parts = {five[0], eight[0]};
  ASSERT_TRUE(atoms.join(whole, parts));
  EXPECT_EQ(sizes(atoms, twin), (SmallVector<int64_t>{5, 8}));
  EXPECT_EQ(atoms.resolve(twin)[1], atoms.resolve(eight)[0]);
}

TEST(Atoms, MeetsInTheCommonRefinement) {
  Atoms atoms;
  Atoms::List whole = atoms.make(48), coarse = {atoms.make(6)[0], atoms.make(8)[0]},
              fine = {atoms.make(12)[0], atoms.make(4)[0]};
  ASSERT_TRUE(atoms.join(whole, coarse));
  ASSERT_TRUE(atoms.join(whole, fine));
  EXPECT_EQ(sizes(atoms, whole), (SmallVector<int64_t>{6, 2, 4}));
  EXPECT_EQ(atoms.resolve(coarse), atoms.resolve(fine));
}

TEST(Atoms, LeavesOutContradictions) {
  Atoms atoms;
  Atoms::List whole = atoms.make(12), first = {atoms.make(2)[0], atoms.make(6)[0]},
              second = {atoms.make(3)[0], atoms.make(4)[0]};
  ASSERT_TRUE(atoms.join(whole, first));
  EXPECT_FALSE(atoms.join(whole, second));
  EXPECT_EQ(sizes(atoms, whole), (SmallVector<int64_t>{2, 6}));
  EXPECT_EQ(sizes(atoms, second), (SmallVector<int64_t>{3, 4}));
  // Nor may a walk that failed late leave splits behind.
  Atoms::List other = {atoms.make(4)[0], atoms.make(15)[0]},
              last = {atoms.make(2)[0], atoms.make(2)[0], atoms.make(4)[0]};
  EXPECT_FALSE(atoms.join(other, last));
  EXPECT_EQ(sizes(atoms, other), (SmallVector<int64_t>{4, 15}));
  EXPECT_FALSE(atoms.join(first, atoms.make(2))) << "products differ";
}

TEST(Atoms, HaveNoneOfSizeOne) {
  Atoms atoms;
  EXPECT_TRUE(atoms.make(1).empty());
  EXPECT_TRUE(atoms.join({}, atoms.make(1)));
  EXPECT_FALSE(atoms.join({}, atoms.make(2)));
}

//===--- programs -----------------------------------------------------------===//

namespace {
struct Program {
  explicit Program(StringRef text) {
    context.loadDialect<func::FuncDialect, train::TrainDialect, DistDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
    if (module)
      found = IndexClasses::of(*module);
  }
  const IndexClasses &classes() { return *found; }
  train::VariableOp variable(StringRef name) {
    return module->lookupSymbol<train::VariableOp>(name);
  }
  Atoms::List of(StringRef name, unsigned dim) { return classes().of(variable(name), dim); }
  Value argument(StringRef function, unsigned i) {
    return module->lookupSymbol<func::FuncOp>(function).getArgument(i);
  }
  Value result(StringRef function, unsigned i) {
    auto body = module->lookupSymbol<func::FuncOp>(function);
    return body.getBody().front().getTerminator()->getOperand(i);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  FailureOr<IndexClasses> found = failure();
};
} // namespace

static constexpr StringLiteral layers = R"mlir(
  train.variable @table : tensor<20x16xf32> init <"normal", 1.0>
  train.variable @q : tensor<3x24x16xf32> stacked init <"normal", 1.0>
  train.variable @k : tensor<3x8x16xf32> stacked init <"normal", 1.0>
  train.variable @v : tensor<3x8x16xf32> stacked init <"normal", 1.0>
  train.variable @o : tensor<3x16x24xf32> stacked init <"normal", 1.0>
  train.variable @norm : tensor<3x16xf32> stacked init <"normal", 1.0>
  func.func private @layer(%x: tensor<2x5x16xf32>, %n: tensor<16xf32>, %wq: tensor<24x16xf32>, %wk: tensor<8x16xf32>,
                           %wv: tensor<8x16xf32>, %wo: tensor<16x24xf32>) -> tensor<2x5x16xf32> {
    %0 = train.rms_norm %x, %n eps 1.0e-05 : (tensor<2x5x16xf32>, tensor<16xf32>) -> tensor<2x5x16xf32>
    %1 = train.linear %0, %wq : (tensor<2x5x16xf32>, tensor<24x16xf32>) -> tensor<2x5x24xf32>
    %2 = train.linear %0, %wk : (tensor<2x5x16xf32>, tensor<8x16xf32>) -> tensor<2x5x8xf32>
    %3 = train.linear %0, %wv : (tensor<2x5x16xf32>, tensor<8x16xf32>) -> tensor<2x5x8xf32>
    %q = train.reshape %1 : (tensor<2x5x24xf32>) -> tensor<2x5x6x4xf32>
    %k = train.reshape %2 : (tensor<2x5x8xf32>) -> tensor<2x5x2x4xf32>
    %v = train.reshape %3 : (tensor<2x5x8xf32>) -> tensor<2x5x2x4xf32>
    %out, %lse = train.attention %q, %k, %v scale 0.5 causal : (tensor<2x5x6x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>) -> (tensor<2x5x6x4xf32>, tensor<2x6x5xf32>)
    %4 = train.reshape %out : (tensor<2x5x6x4xf32>) -> tensor<2x5x24xf32>
    %5 = train.linear %4, %wo : (tensor<2x5x24xf32>, tensor<16x24xf32>) -> tensor<2x5x16xf32>
    %6 = train.add %x, %5 : (tensor<2x5x16xf32>, tensor<2x5x16xf32>) -> tensor<2x5x16xf32>
    return %6 : tensor<2x5x16xf32>
  }
  func.func @loss(%tokens: tensor<2x5xi32>) -> tensor<2x5x16xf32> {
    %t = train.get @table : tensor<20x16xf32>
    %n = train.get @norm : tensor<3x16xf32>
    %q = train.get @q : tensor<3x24x16xf32>
    %k = train.get @k : tensor<3x8x16xf32>
    %v = train.get @v : tensor<3x8x16xf32>
    %o = train.get @o : tensor<3x16x24xf32>
    %x = train.embedding %t, %tokens : (tensor<20x16xf32>, tensor<2x5xi32>) -> tensor<2x5x16xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%n, %q, %k, %v, %o) shared() : (tensor<2x5x16xf32>, tensor<3x16xf32>, tensor<3x24x16xf32>, tensor<3x8x16xf32>, tensor<3x8x16xf32>, tensor<3x16x24xf32>) -> tensor<2x5x16xf32>
    return %y : tensor<2x5x16xf32>
  }
)mlir";

TEST(IndexClasses, FindsTheIndicesOfALayer) {
  Program p(layers);
  ASSERT_TRUE(succeeded(p.found));
  const IndexClasses &classes = p.classes();
  auto sizesOf = [&](Atoms::List list) {
    return llvm::map_to_vector(list, [&](unsigned id) { return classes[id].size; });
  };
  // Queries: groups, heads of a group, head elements; keys: groups, elements.
  Atoms::List q = p.of("q", 1), k = p.of("k", 1), o = p.of("o", 2), v = p.of("v", 1);
  EXPECT_EQ(sizesOf(q), (SmallVector<int64_t>{2, 3, 4}));
  EXPECT_EQ(k, (Atoms::List{q[0], q[2]}));
  EXPECT_EQ(o[0], q[0]);
  EXPECT_EQ(o[1], q[1]);
  EXPECT_NE(o[2], q[2]) << "elements of values are not those of keys";
  EXPECT_EQ(v, (Atoms::List{q[0], o[2]}));
  EXPECT_EQ(classes.of(p.argument("layer", 2), 0), q);

  // The residual stream is one index from the table to the result.
  Atoms::List residual = p.of("table", 1);
  for (auto [name, dim] : {std::pair("q", 2), {"k", 2}, {"v", 2}, {"o", 1}, {"norm", 1}})
    EXPECT_EQ(p.of(name, dim), residual) << name;
  EXPECT_EQ(classes.of(p.result("loss", 0), 2), residual);
  EXPECT_EQ(classes[residual[0]].parameters.size(), 6u);
  EXPECT_EQ(classes[residual[0]].neededWhole.size(), 1u) << "by the norm";

  // Batch and sequence are the integer inputs' indices, in no parameter.
  for (unsigned d : {0, 1}) {
    Atoms::List dim = classes.of(p.argument("loss", 0), d);
    EXPECT_EQ(dim, classes.of(p.argument("layer", 0), d));
    EXPECT_TRUE(classes[dim[0]].inIntegerInputs);
    EXPECT_TRUE(classes[dim[0]].parameters.empty());
  }
  EXPECT_FALSE(classes[q[0]].inIntegerInputs);
  EXPECT_TRUE(classes[q[0]].neededWhole.empty());
  EXPECT_TRUE(classes[q[1]].neededWhole.empty());
  EXPECT_FALSE(classes[q[2]].neededWhole.empty()) << "by attention";

  // Layers are taken slices of.
  const IndexClass &layers = classes[p.of("q", 0)[0]];
  ASSERT_FALSE(layers.neededWhole.empty());
  EXPECT_EQ(layers.neededWhole[0].second, -1);
}

TEST(IndexClasses, StopsAtBoundaries) {
  Program p(R"mlir(
    dist.mesh @mesh ["data" = 2]
    func.func @f(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
      %0 = dist.constrain %x to <@mesh, [{data}, {}]> : (tensor<4x6xf32>) -> tensor<4x6xf32>
      %1 = dist.constrain %x to <@mesh, [{}, {data}]> boundary : (tensor<4x6xf32>) -> tensor<4x6xf32>
      return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
    }
  )mlir");
  ASSERT_TRUE(succeeded(p.found));
  for (unsigned d : {0, 1}) {
    EXPECT_EQ(p.classes().of(p.argument("f", 0), d), p.classes().of(p.result("f", 0), d));
    EXPECT_NE(p.classes().of(p.argument("f", 0), d), p.classes().of(p.result("f", 1), d));
  }
}

TEST(IndexClasses, KeepsTheFirstOfContradictingReshapes) {
  Program p(R"mlir(
    func.func @f(%x: tensor<6xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
      %0 = train.reshape %x : (tensor<6xf32>) -> tensor<2x3xf32>
      %1 = train.reshape %x : (tensor<6xf32>) -> tensor<3x2xf32>
      return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
    }
  )mlir");
  ASSERT_TRUE(succeeded(p.found));
  const IndexClasses &classes = p.classes();
  Atoms::List x = classes.of(p.argument("f", 0), 0);
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(classes.of(p.result("f", 0), 0), Atoms::List{x[0]});
  EXPECT_EQ(classes.of(p.result("f", 0), 1), Atoms::List{x[1]});
  for (unsigned d : {0, 1})
    EXPECT_FALSE(llvm::is_contained(x, classes.of(p.result("f", 1), d)[0]));
}
