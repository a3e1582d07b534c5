//===- CompressionSeeds.cpp - states of compressed gradients as seeds -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What compression leaves out of a block of the batch is stored where the block is. With signs, devices add a part of all blocks each, and
// store what the signs of that sum leave out of it. What they send each other is signs: of its blocks each device sends every other
// one its part, as the sum needs blocks whole and its state is sharded, and of its part of the sum to all, as `dist.constrain` says.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

#include "Train/GradientBlocks.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static SmallVector<StringAttr> axisNames(const Mesh &mesh, ArrayRef<unsigned> axes, MLIRContext *context) {
  return llvm::map_to_vector(axes, [&](unsigned axis) { return StringAttr::get(context, mesh.axes[axis].name); });
}

/// Adds the axes of the batch to rows or to groups of columns, what they divide beyond `sharding`: each device adds these parts of all blocks.
static void shardSum(MutableArrayRef<DimAttr> dims, train::VariableOp state, ShardingAttr sharding, const Mesh &mesh, const IndexClasses &classes) {
  MLIRContext *context = sharding.getContext();
  Axes batch = batchAxes(mesh);
  for (size_t d : {dims.size() - 2, dims.size() - 1}) {
    Atoms::List atoms = classes.of(state, d);
    bool isColumns = d + 1 == dims.size();
    if (atoms.empty() || (isColumns && !classes[atoms.front()].neededWhole.empty()) ||
        classes[atoms.front()].size % (mesh.size(sharding.on(mesh).dims[d]) * mesh.size(batch)) != 0)
      continue;
    SmallVector<StringAttr> names(dims[d].getAxes());
    llvm::append_range(names, axisNames(mesh, batch, context));
    dims[d] = DimAttr::get(context, names, false);
    return;
  } // Else all devices add all of it.
}

ShardingAttr dist::shardingOfCompression(train::VariableOp state, ShardingAttr sharding, const Mesh &mesh,
                                         const IndexClasses &classes) {
  MLIRContext *context = sharding.getContext();
  SmallVector<DimAttr> dims(sharding.getDims());
  if (state.getRole() == train::residualRole) {
    dims.insert(dims.end() - 2, DimAttr::get(context, axisNames(mesh, batchAxes(mesh), context), false));
  } else if (state.getRole() == train::serverResidualRole) {
    shardSum(dims, state, sharding, mesh, classes);
  } else {
    dims.erase(dims.end() - 2);
    dims.push_back(DimAttr::get(context, {}, false));
  }
  return ShardingAttr::get(context, sharding.getMesh(), dims, sharding.getPartial(), sharding.getMax(),
                           sharding.getReplicated(), sharding.getRoot());
}

/// `value` as it is when its only user has reshaped it.
static Value reshaped(Value value) {
  auto reshape = value.hasOneUse() ? dyn_cast<train::ReshapeOp>(*value.user_begin()) : train::ReshapeOp();
  return reshape ? reshape.getResult() : value;
}

void Seeder::compression() {
  Axes batch = batchAxes(mesh);
  if (mesh.size(batch) == 1)
    return;
  MLIRContext *context = module.getContext();
  // On each device whole, but for what other axes shard of it.
  auto whole = [&](Value value, OpBuilder &b, bool isBoundary) {
    SmallVector<DimAttr> open(cast<RankedTensorType>(value.getType()).getRank(), DimAttr::get(context, {}, true));
    auto sharding = ShardingAttr::get(context, meshName, open, {}, /*max=*/false, axisNames(mesh, batch, context));
    auto op = ConstrainOp::create(b, value.getLoc(), value.getType(), value, sharding, isBoundary);
    op->setAttr(DistDialect::reasonAttr, b.getStringAttr("signs of all devices"));
    return op;
  };
  module.walk([&](train::SignsOp op) {
    // Signs of blocks are added.
    if (llvm::any_of(op.getBits().getUsers(), [](Operation *user) { return isa<train::SumSignsOp>(user); }))
      return;
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(whole(operand.get(), b, /*isBoundary=*/true));
    // What they leave out is of a device's part, and would have the numbers computed there alone, and gathered.
    Value numbers = reshaped(op.getY());
    b.setInsertionPointAfterValue(numbers);
    ConstrainOp kept = whole(numbers, b, /*isBoundary=*/false);
    numbers.replaceAllUsesExcept(kept, kept);
  });
}
