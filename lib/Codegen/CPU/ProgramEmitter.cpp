//===- ProgramEmitter.cpp - programs that run on the host -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/ProgramEmitter.h"
#include "Codegen/CPU/KernelEmitter.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

namespace {
class CPUProgramEmitter : public ProgramEmitter {
public:
  using ProgramEmitter::ProgramEmitter;

private:
  LogicalResult launch(exec::LaunchOp op, const KernelLoops &kernelLoops) override;
  LogicalResult product(exec::MatmulOp op) override;
  LogicalResult product(exec::ScaledMatmulOp op) override;
  LogicalResult attention(exec::AttentionOp op) override;
  LogicalResult attention(exec::AttentionGradOp op) override;
  LogicalResult experts(Operation *op) override;
  void copy(Value to, Value from, int64_t bytes) override {
    LLVM::MemcpyOp::create(b, loc, to, from, i64(bytes), /*isVolatile=*/false);
  }
  void store(Value number, Value to) override { LLVM::StoreOp::create(b, loc, number, to); }
  Value load(Value from) override { return LLVM::LoadOp::create(b, loc, b.getI32Type(), from); }

  /// An MwAttention on the stack.
  template <typename Op> Value describe(Op op);
};
} // namespace

LogicalResult CPUProgramEmitter::launch(exec::LaunchOp op, const KernelLoops &kernelLoops) {
  Value operands = addresses(op.getOperands());
  func::FuncOp code = kernelLoops.function; // under the name that it is emitted with
  for (auto [i, nest] : llvm::enumerate(kernelLoops.nests)) {
    Value kernel = LLVM::AddressOfOp::create(b, loc, ptr, cpu::loopNestName(code.getName(), i));
    call("mw_launch", {kernel, operands, i64(nest.iterations), i64(nest.chunks)});
  }
  return success();
}

template <typename Op> Value CPUProgramEmitter::describe(Op op) {
  // The struct as words: the compiler's own, with the pointers that the program knows.
  MwAttention shape = op.getAttention();
  int64_t words[sizeof(MwAttention) / sizeof(int64_t)];
  static_assert(sizeof(words) == sizeof(shape), "the struct is words");
  memcpy(words, &shape, sizeof(words));
  SmallVector<Value> fields = llvm::map_to_vector(words, [&](int64_t word) { return i64(word); });
  for (auto [offset, operand] : {std::pair(offsetof(MwAttention, key), op.getKey()),
                                 {offsetof(MwAttention, sequenceIds), op.getIds()},
                                 {offsetof(MwAttention, headOffset), op.getHeadOffset()},
                                 {offsetof(MwAttention, queryOffset), op.getQueryOffset()},
                                 {offsetof(MwAttention, keyOffset), op.getKeyOffset()},
                                 {offsetof(MwAttention, positions), op.getPositions()},
                                 {offsetof(MwAttention, lengths), op.getLengths()},
                                 {offsetof(MwAttention, slopes), op.getSlopes()},
                                 {offsetof(MwAttention, sinks), op.getSinks()},
                                 {offsetof(MwAttention, distances), op.getDistances()}})
    if (operand)
      fields[offset / sizeof(int64_t)] = at(operand);
  Value memory = stack(b.getI64Type(), sizeof(words) / sizeof(int64_t));
  for (auto [i, field] : llvm::enumerate(fields)) {
    Value slot = LLVM::GEPOp::create(b, loc, ptr, b.getI64Type(), memory,
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, field, slot);
  }
  return memory;
}

LogicalResult CPUProgramEmitter::product(exec::MatmulOp op) {
  bool mixed = op.isMixed();
  SmallVector<Value> arguments{i32(op.getTransA()),
                               i32(op.getTransB()),
                               i64(op.getM()),
                               i64(op.getN()),
                               i64(op.getK()),
                               f32(op.getAlpha().convertToFloat())};
  if (mixed)
    arguments.push_back(elementType(op.getA()));
  llvm::append_values(arguments, at(op.getA()), i64(op.getLda()), at(op.getB()), i64(op.getLdb()),
                      f32(op.getBeta().convertToFloat()));
  if (mixed)
    arguments.push_back(elementType(op.getC()));
  llvm::append_values(arguments, at(op.getC()), i64(op.getLdc()), i64(op.getBatch()),
                      i64(op.getStrideA()), i64(op.getStrideB()), i64(op.getStrideC()));
  if (mixed)
    arguments.push_back(orNull(at(op.getWorkspace())));
  call(mixed ? "mw_matmul_mixed" : "mw_matmul_f32", arguments);
  return success();
}

LogicalResult CPUProgramEmitter::product(exec::ScaledMatmulOp op) {
  call("mw_matmul_fp8",
       {i32(op.getTransA()), i32(op.getTransB()), i64(op.getM()), i64(op.getN()), i64(op.getK()),
        elementType(op.getA()), at(op.getA()), i64(op.getLda()), at(op.getScaleA()),
        elementType(op.getB()), at(op.getB()), i64(op.getLdb()), at(op.getScaleB()),
        f32(op.getBeta().convertToFloat()), elementType(op.getC()), at(op.getC()),
        i64(op.getLdc()), i64(op.getBatch()), i64(op.getStrideA()), i64(op.getStrideB()),
        i64(op.getStrideC()), orNull(at(op.getWorkspace()))});
  return success();
}

LogicalResult CPUProgramEmitter::attention(exec::AttentionOp op) {
  call("mw_attention_forward",
       {describe(op), at(op.getQ()), at(op.getK()), at(op.getV()), orNull(at(op.getBefore())),
        orNull(at(op.getBeforeLse())), at(op.getOut()), at(op.getLse()), at(op.getWorkspace())});
  return success();
}

LogicalResult CPUProgramEmitter::attention(exec::AttentionGradOp op) {
  call("mw_attention_backward",
       {describe(op), at(op.getDout()), at(op.getQ()), at(op.getK()), at(op.getV()),
        at(op.getOut()), at(op.getLse()), at(op.getDq()), at(op.getDk()), at(op.getDv()),
        orNull(at(op.getDsinks())), orNull(at(op.getDdistances())), at(op.getWorkspace())});
  return success();
}

static int64_t blocksOf(Value experts) {
  return cast<MemRefType>(experts.getType()).getDimSize(0);
}

LogicalResult CPUProgramEmitter::experts(Operation *op) {
  if (auto route = dyn_cast<exec::RouteOp>(op)) {
    ArrayRef<int64_t> mask = cast<MemRefType>(route.getMask().getType()).getShape();
    int64_t k = cast<MemRefType>(route.getChosen().getType()).getDimSize(0);
    ArrayRef<int64_t> slots = cast<MemRefType>(route.getChoices().getType()).getShape();
    call("mw_route", {i64(mask[0]), i64(mask[1]), i64(mask[2]), i64(k), i64(slots[0]),
                      i64(slots[1] * slots[2]), i64(int64_t(route.getCapacity())), elementType(route.getMask()), at(route.getMask()),
                      at(route.getChosen()), at(route.getRows()), at(route.getChoices()),
                      at(route.getExperts())});
  } else if (auto rounds = dyn_cast<exec::RoundsOp>(op)) {
    ArrayRef<int64_t> slots = cast<MemRefType>(rounds.getChoices().getType()).getShape();
    call("mw_rounds", {i64(slots[0]), i64(slots[1] * slots[2]),
                       i64(slots[1] * int64_t(rounds.getSlots())), at(rounds.getChoices()),
                       at(rounds.getRounds())});
  } else if (auto rows = dyn_cast<exec::RowsOfRoundOp>(op)) {
    ArrayRef<int64_t> slots = cast<MemRefType>(rows.getChoices().getType()).getShape();
    int64_t ofRound = cast<MemRefType>(rows.getOwnChoices().getType()).getDimSize(2);
    call("mw_rows_of_round",
         {orNull(at(rows.getRound())), i64(int64_t(rows.getPart())), i64(int64_t(rows.getParts())),
          i64(cast<MemRefType>(rows.getRows().getType()).getNumElements()), i64(slots[0]),
          i64(slots[1] * slots[2]), i64(slots[1] * ofRound), at(rows.getRows()),
          at(rows.getChoices()), at(rows.getExperts()), at(rows.getOwnRows()),
          at(rows.getOwnChoices()), at(rows.getOwnExperts())});
  } else if (auto product = dyn_cast<exec::GroupedMatmulOp>(op)) {
    exec::ProductShape shape = product.getShape();
    int64_t count = cast<MemRefType>(product.getWeight().getType()).getDimSize(0);
    call("mw_grouped_matmul",
         {i32(shape.transB), i64(shape.m), i64(shape.n), i64(shape.k),
          i64(blocksOf(product.getExperts())), i64(count), at(product.getExperts()), elementType(product.getX()), at(product.getX()),
          at(product.getWeight()), at(product.getY()), orNull(at(product.getWorkspace()))});
  } else {
    auto grad = cast<exec::GroupedMatmulGradOp>(op);
    exec::ProductShape shape = grad.getShape();
    int64_t count = cast<MemRefType>(grad.getResult().getType()).getDimSize(0);
    call("mw_grouped_matmul_grad",
         {i64(shape.k), i64(shape.m), i64(shape.n), i64(blocksOf(grad.getExperts())), i64(count),
          at(grad.getExperts()),
          elementType(grad.getX()), at(grad.getDy()), at(grad.getX()),
          f32(grad.getAccumulates() ? 1 : 0), elementType(grad.getResult()), at(grad.getResult()),
          orNull(at(grad.getWorkspace()))});
  }
  return success();
}

LogicalResult cpu::emitPrograms(const ModuleKernels &kernels, ModuleOp target) {
  if (failed(codegen::emitPrograms(kernels, target, [](const ProgramEmitter::Scope &scope) {
        return std::make_unique<CPUProgramEmitter>(scope);
      })))
    return failure();
  // Without programs the kernels are what the object is for.
  if (kernels.hasPrograms())
    for (const KernelLoops *kernelLoops : kernels.distinct)
      for (unsigned i = 0; i < kernelLoops->nests.size(); ++i) {
        auto function = target.lookupSymbol<LLVM::LLVMFuncOp>(loopNestName(func::FuncOp(kernelLoops->function).getName(), i));
        function.setLinkage(LLVM::Linkage::Internal);
        // Two that do the same may be one.
        function.setUnnamedAddr(LLVM::UnnamedAddr::Global);
      }
  return success();
}
