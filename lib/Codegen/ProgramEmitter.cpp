//===- ProgramEmitter.cpp - exec programs as functions ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/ProgramEmitter.h"
#include "Codegen/HostCode.h"
#include "Dist/Programs.h"
#include "meshwright/LocationText.h"
#include "meshwright/runtime/Fp8.h"
#include "meshwright/runtime/Int8Weights.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

Value ProgramEmitter::call(StringRef name, SmallVector<Value> arguments, Type result) {
  arguments.insert(arguments.begin(), reload(ptr, context));
  auto callee = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(target.getBody());
    auto type =
        LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(b.getContext()),
                                    llvm::to_vector(ValueRange(arguments).getTypes()));
    callee = LLVM::LLVMFuncOp::create(b, target.getLoc(), name, type);
    symbols.insert(callee);
  }
  auto made = LLVM::CallOp::create(b, loc, callee, arguments);
  return result ? made.getResult() : Value();
}

Value ProgramEmitter::groupRank(ArrayAttr axes, int64_t shift, int64_t members) {
  if (shift == 0)
    return groupRank(axes);
  Value sum = arith::AddIOp::create(b, loc, groupRank(axes), i64(shift));
  return arith::RemUIOp::create(b, loc, sum, i64(members));
}

Value ProgramEmitter::groupRank(ArrayAttr axes) {
  Value &known = groupRanks[axes];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(lastKept);
    known = keep(call("mw_group_rank", {i32(communication.numberOf(axes))}, b.getI64Type()));
  }
  return reload(b.getI64Type(), known);
}

Value ProgramEmitter::arenaOf(MemorySpace space) {
  if (space == MemorySpace::Device)
    return arena;
  Value &known = offloaded[space];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(lastKept);
    known = keep(call(("mw_" + Twine(spaceRow(space).name) + "_arena").str(), {}, ptr));
  }
  return known;
}

Value ProgramEmitter::keep(Value value) {
  Value slot = stack(value.getType(), 1);
  lastKept = LLVM::StoreOp::create(b, loc, value, slot);
  return slot;
}

Value ProgramEmitter::stack(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(b, loc, ptr, type, i64(count), /*alignment=*/16);
}

Value ProgramEmitter::addresses(ValueRange memory) {
  for (auto [i, value] : llvm::enumerate(memory)) {
    Value slot =
        LLVM::GEPOp::create(b, loc, ptr, ptr, operands, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, orNull(at(value)), slot);
  }
  return operands;
}

/// A global array of i32.
Value ProgramEmitter::constants(const std::string &name, ArrayRef<int64_t> values) {
  SmallVector<int32_t> narrow(values);
  OpBuilder atModule = OpBuilder::atBlockBegin(target.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI32Type(), values.size());
  auto global = LLVM::GlobalOp::create(atModule, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name,
                                       b.getI32TensorAttr(narrow));
  symbols.insert(global);
  return LLVM::AddressOfOp::create(b, loc, global);
}

/// An array of MwSegment on the stack.
Value ProgramEmitter::segments(const Collective &collective) {
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, Type(b.getI64Type())});
  Value memory = stack(type, collective.segments.size());
  for (auto [i, segment] : llvm::enumerate(collective.segments))
    for (auto [j, value] : llvm::enumerate(SmallVector<Value>{
             at(segment.source), at(segment.target), i64(segment.count)})) {
      Value slot = LLVM::GEPOp::create(b, loc, ptr, type, memory,
                                       ArrayRef<LLVM::GEPArg>{int32_t(i), int32_t(j)});
      LLVM::StoreOp::create(b, loc, value, slot);
    }
  return memory;
}

/// The MwElementType of a type, or -1.
static int32_t elementTypeOf(Type type) {
  return type.isF32()         ? MW_F32
         : type.isBF16()      ? MW_BF16
         : type.isF16()       ? MW_F16
         : type.isInteger(32) ? MW_I32
         : type.isInteger(8)           ? int32_t(MW_I8)
         : isa<Float8E4M3FNType>(type) ? int32_t(MW_F8E4M3)
         : isa<Float8E5M2Type>(type)   ? int32_t(MW_F8E5M2)
                                       : -1;
}

LogicalResult ProgramEmitter::product(exec::ScaledMatmulOp op) {
  return op.emitOpError("multiplies 8 bits, for which this target has no library call; compile with "
                        "--precision bf16");
}

LogicalResult ProgramEmitter::call(const Collective &collective, int64_t number) {
  int32_t type = elementTypeOf(collective.getElementType());
  if (type < 0)
    return collective.op->emitOpError("moves ")
           << collective.getElementType() << "; f32, bf16, f16, i32 and types of 8 bits work";
  auto op = cast<exec::MemoryCollectiveOpInterface>(collective.op);
  SmallVector<Value> arguments{i32(number), i32(collective.group), i32(type)};
  if (auto peer = op.getRootOrPeer())
    arguments.push_back(i32(*peer));
  if (SmallVector<int64_t> table = op.getTable(); !table.empty())
    arguments.push_back(constants(("table." + Twine(number)).str(), table));
  if (auto reduction = op.getReductionKind())
    arguments.push_back(i32(*reduction == train::ReduceKind::Max ? MW_MAX : MW_SUM));
  if (op.isBucket()) {
    llvm::append_values(arguments, segments(collective), i64(collective.segments.size()));
  } else {
    const Collective::Segment &one = collective.segments.front();
    for (Value memory : {one.source, one.target})
      if (memory)
        arguments.push_back(at(memory));
    arguments.push_back(i64(one.count));
  }
  if (auto scratch = op.getScratch())
    arguments.push_back(orNull(at(*scratch)));
  if (std::optional<int64_t> start = exec::asyncTokenOf(collective.op))
    call("mw_start", {i32(*start)});
  call(("mw_" + collective.getName()).str(), arguments);
  return success();
}

void ProgramEmitter::call(exec::CallOp op) {
  SmallVector<Value> arguments{reload(ptr, context), orNull(at(op.getWorkspace()))};
  for (Value memory : llvm::concat<Value>(op.getInputs(), op.getUpdated(), op.getOutputs()))
    arguments.push_back(at(memory));
  LLVM::CallOp::create(b, loc, declare(op.getCallee(), arguments.size()), arguments);
}

Value ProgramEmitter::elementType(Value memory) {
  return i32(elementTypeOf(cast<MemRefType>(memory.getType()).getElementType()));
}

LogicalResult ProgramEmitter::emit(Operation *op) {
  loc = op->getLoc();
  if (std::optional<int64_t> number = exec::collectiveOf(op))
    return call(communication.collectives[*number], *number);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<exec::BufferOp>([&](exec::BufferOp buffer) -> LogicalResult {
        if (!buffer.getOffset())
          return buffer.emitOpError("has no offset; run exec-assign-offsets first");
        known[buffer] = {arenaOf(exec::spaceOf(buffer.getType())), int64_t(*buffer.getOffset()),
                         /*isKept=*/true};
        return success();
      })
      .Case<exec::SlotOp>([&](exec::SlotOp slot) {
        Value stride = i64(exec::bytesOf(slot.getType()));
        known[slot] = {offset(at(slot.getBase()),
                              arith::MulIOp::create(b, loc, at(slot.getIndex()), stride))};
        return success();
      })
      .Case<exec::ViewOp>([&](exec::ViewOp view) {
        int64_t begin = exec::bytesOf(view.getType()) / view.getType().getNumElements() *
                        int64_t(view.getOffset());
        Address base = known.lookup(view.getBase());
        base.bytes += begin;
        known[view] = base;
        return success();
      })
      .Case<exec::WindowOp>([&](exec::WindowOp window) {
        Value stride = i64(exec::bytesOf(window.getType()));
        int64_t parts =
            window.getBase().getType().getNumElements() / window.getType().getNumElements();
        Value number = groupRank(window.getAxes(), window.getShift(), parts);
        known[window] = {
            offset(at(window.getBase()), arith::MulIOp::create(b, loc, number, stride))};
        return success();
      })
      .Case<exec::StoreOffsetOp>([&](exec::StoreOffsetOp store) {
        Value begin = arith::MulIOp::create(
            b, loc, groupRank(store.getAxes(), store.getShift(), store.getMembers()),
            i64(int64_t(store.getSize())));
        this->store(arith::TruncIOp::create(b, loc, b.getI32Type(), begin), at(store.getTarget()));
        return success();
      })
      .Case<exec::CopyOp>([&](exec::CopyOp op) {
        int64_t bytes = exec::bytesOf(op.getSource().getType());
        if (std::optional<CopyEngine> engine = exec::copyEngineOf(op))
          call("mw_transfer", {at(op.getTarget()), at(op.getSource()), i64(bytes),
                               i32(engine->number()), i32(exec::asyncTokenOf(op).value_or(-1))});
        else
          copy(at(op.getTarget()), at(op.getSource()), bytes);
        return success();
      })
      .Case<exec::ObserveOp>([&](exec::ObserveOp observe) {
        call("mw_observe", {i32(int64_t(observe.getValue())), i32(int64_t(observe.getResult())),
                            at(observe.getSource()),
                            i64(exec::bytesOf(observe.getSource().getType()))});
        return success();
      })
      .Case<exec::StoreIndexOp>([&](exec::StoreIndexOp store) {
        Value index = arith::TruncIOp::create(b, loc, b.getI32Type(), at(store.getIndex()));
        this->store(index, at(store.getTarget()));
        return success();
      })
      .Case<exec::LoopOp>([&](exec::LoopOp nested) -> LogicalResult {
        Value count = i64(nested.getCount());
        if (nested.getTimes()) {
          Value times = load(at(nested.getTimes()));
          if (!train::isOverMicrobatches(nested))
            call("mw_note_rounds", {times});
          count = arith::ExtSIOp::create(b, loc, b.getI64Type(), times);
        }
        auto loop = scf::ForOp::create(b, loc, i64(int64_t(nested.getFrom())), count, i64(1));
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(loop.getBody()->getTerminator());
        Value index = loop.getInductionVar();
        if (nested.getReverse())
          index = arith::SubIOp::create(b, loc, i64(int64_t(nested.getCount()) - 1), index);
        known[nested.getIndex()] = {index};
        call("mw_begin", {text("iteration"), text("loop"), text(locationText(nested.getLoc())),
                          index, i64(-1)});
        LogicalResult result = emit(nested.getBlock());
        call("mw_end", {});
        return result;
      })
      .Case<exec::YieldOp>([](auto) { return success(); })
      .Case<exec::ShiftOp>([&](exec::ShiftOp shift) {
        int64_t by = shift.getBy();
        Value index = at(shift.getIndex());
        if (shift.getMirrored())
          index = arith::SubIOp::create(b, loc, i64(int64_t(shift.getLoop().getCount()) - 1 + by),
                                        index);
        else
          index = arith::AddIOp::create(b, loc, index, i64(by));
        if (shift.getModulo()) {
          // The remainder from 0 on, also of negative numbers.
          Value modulo = i64(*shift.getModulo());
          Value rest = arith::RemSIOp::create(b, loc, index, modulo);
          index = arith::RemSIOp::create(b, loc, arith::AddIOp::create(b, loc, rest, modulo),
                                         modulo);
        }
        known[shift] = {index};
        return success();
      })
      .Case<exec::WhenOp>([&](exec::WhenOp when) {
        Value index = at(when.getIndex());
        Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index,
                                            i64(int64_t(when.getBegin())));
        Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index,
                                            i64(int64_t(when.getEnd())));
        auto chosen =
            scf::IfOp::create(b, loc, arith::AndIOp::create(b, loc, above, below), false);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(chosen.thenYield());
        return emit(when.getBlock());
      })
      .Case<exec::WaitOp>([&](exec::WaitOp wait) {
        call("mw_wait", {i32(int64_t(wait.getAsyncToken()))});
        return success();
      })
      .Case<exec::FinishSendsOp>([&](auto) {
        call("mw_finish_sends", {});
        return success();
      })
      .Case<exec::CallOp>([&](exec::CallOp op) {
        call(op);
        return success();
      })
      .Case<exec::MatmulOp, exec::ScaledMatmulOp>([&](auto op) { return product(op); })
      .Case<exec::LaunchOp>([&](exec::LaunchOp op) -> LogicalResult {
        auto kernelLoops = kernels.find(op.getKernel());
        if (kernelLoops == kernels.end())
          return op.emitOpError("launches @")
                 << op.getKernel() << ", which is no kernel of the module";
        if ((kernelLoops->second.workspace != 0) != bool(op.getWorkspace()))
          return op.emitOpError("of a kernel that needs ")
                 << kernelLoops->second.workspace
                 << " bytes of workspace; run exec-schedule-kernels before "
                 << "exec-bufferize";
        return launch(op, kernelLoops->second);
      })
      .Case<exec::AttentionOp, exec::AttentionGradOp>([&](auto op) { return attention(op); })
      .Case<exec::RouteOp, exec::RoundsOp, exec::RowsOfRoundOp, exec::GroupedMatmulOp,
            exec::GroupedMatmulGradOp>([&](auto op) { return experts(op); })
      .Default([](Operation *op) {
        return op->emitOpError("cannot stand in a program; run exec-bufferize first");
      });
}

LogicalResult ProgramEmitter::emit(Block &block) {
  for (Operation &op : block) {
    // What uses memory; the runtime itself says how long ranks communicate and wait.
    bool traced = !isMemoryEffectFree(&op) && op.getNumRegions() == 0 && op.getNumOperands() > 0 &&
                  !isa<exec::MemoryCollectiveOpInterface, exec::ObserveOp>(op);
    if (traced)
      beginSpan(op);
    if (failed(emit(&op)))
      return failure();
    if (traced)
      call("mw_end", {});
  }
  return success();
}

Value ProgramEmitter::text(StringRef value) {
  std::string name = ("text." + Twine(llvm::xxh3_64bits(value))).str();
  if (!symbols.lookup(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(target.getBody());
    std::string bytes = value.str() + '\0';
    symbols.insert(LLVM::GlobalOp::create(b, target.getLoc(),
                                          LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
                                          /*isConstant=*/true, LLVM::Linkage::Internal, name,
                                          b.getStringAttr(bytes)));
  }
  return LLVM::AddressOfOp::create(b, loc, ptr, name);
}

void ProgramEmitter::beginSpan(Operation &op) {
  loc = op.getLoc();
  std::string name = op.getName().stripDialect().str();
  StringRef category = "compute";
  int64_t bytes = 0;
  for (Value operand : op.getOperands())
    if (isa<MemRefType>(operand.getType()))
      bytes += exec::bytesOf(operand.getType());
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    name = launch.getKernel().str();
  if (auto call = dyn_cast<exec::CallOp>(op)) {
    auto task = op.getAttrOfType<StringAttr>(dist::taskAttr);
    name = task ? task.str() : call.getCallee().str();
    category = task ? "task" : "call";
    bytes = -1;
  }
  call("mw_begin", {text(name), text(category), text(locationText(loc)),
                    i64(rows.numberOf(&op)), i64(bytes)});
}

LLVM::LLVMFuncOp ProgramEmitter::declare(StringRef program, size_t arguments) {
  std::string name = ("meshwright_" + program + suffix).str();
  if (auto known = symbols.lookup<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(target.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          SmallVector<Type>(arguments, ptr));
  auto declared = LLVM::LLVMFuncOp::create(b, target.getLoc(), name, type);
  symbols.insert(declared);
  return declared;
}

LogicalResult ProgramEmitter::emit(exec::ProgramOp program) {
  unsigned most = 7; // addresses in one array; those of a product with nulls
  program.walk([&](Operation *op) {
    if (isa<exec::LaunchOp, exec::AttentionOp, exec::AttentionGradOp>(op))
      most = std::max(most, op->getNumOperands());
  });
  auto arguments = program.getBlock().getArguments();
  function = declare(program.getSymName(), 2 + arguments.size());
  disableOptimization(function);
  if (program.isPrivate() || !suffix.empty())
    function.setLinkage(LLVM::Linkage::Internal);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  context = keep(entry->getArgument(0));
  arena = keep(entry->getArgument(1));
  for (auto [memory, address] : llvm::zip(arguments, entry->getArguments().drop_front(2)))
    known[memory] = {keep(address), 0, /*isKept=*/true};
  operands = stack(ptr, most);
  if (failed(emit(program.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(b, program.getLoc(), ValueRange());
  return success();
}

/// What the runtime calls where ranks run different programs: `entry` of this rank's.
static void emitDispatch(ModuleOp target, StringRef entry, ArrayRef<ModuleOp> programs) {
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  Location loc = target.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  std::string name = ("meshwright_" + entry).str();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {ptr, ptr});
  auto function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  disableOptimization(function);
  auto which = target.lookupSymbol<LLVM::LLVMFuncOp>("mw_program");
  if (!which)
    which = LLVM::LLVMFuncOp::create(b, loc, "mw_program",
                                     LLVM::LLVMFunctionType::get(b.getI32Type(), {ptr}));
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  Value number = LLVM::CallOp::create(b, loc, which, ValueRange{block->getArgument(0)}).getResult();
  Block *end = new Block;
  SmallVector<int32_t> values;
  SmallVector<Block *> cases;
  for (unsigned i = 0; i < programs.size(); ++i) {
    StringRef program = ModuleOp(programs[i]).getSymName().value();
    auto callee = target.lookupSymbol<LLVM::LLVMFuncOp>((name + "." + program).str());
    if (!callee)
      continue; // it has no such entry point
    Block *call = new Block;
    function.getBody().push_back(call);
    OpBuilder inside = OpBuilder::atBlockEnd(call);
    LLVM::CallOp::create(inside, loc, callee, block->getArguments());
    LLVM::BrOp::create(inside, loc, end);
    values.push_back(i);
    cases.push_back(call);
  }
  function.getBody().push_back(end);
  LLVM::SwitchOp::create(b, loc, number, end, ValueRange(), values, cases,
                         SmallVector<ValueRange>(cases.size()));
  b.setInsertionPointToStart(end);
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

LogicalResult codegen::emitPrograms(const ModuleKernels &kernels, ModuleOp target,
                                    MakeEmitter make) {
  ModuleOp source = *kernels.module;
  Communication communication(source);
  SymbolTable symbols(target);
  SmallVector<ModuleOp> programs = dist::programsOf(source);
  llvm::SetVector<StringRef> entries;
  for (auto [program, scheduled, rows] :
       llvm::zip_equal(programs, kernels.programs, kernels.rows)) {
    std::string suffix = program == source ? "" : ("." + program.getSymName().value()).str();
    for (auto op : program.getOps<exec::ProgramOp>()) {
      if (failed(make({target, symbols, scheduled, communication, rows, suffix})->emit(op)))
        return failure();
      if (!op.isPrivate())
        entries.insert(op.getSymName());
    }
  }
  if (dist::hasPrograms(source))
    for (StringRef entry : entries)
      emitDispatch(target, entry, programs);
  return success();
}

void codegen::emitText(ModuleOp target, StringRef name, StringRef text) {
  if (text.empty())
    return;
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  std::string symbol = ("meshwright_" + name).str();
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), text.size());
  auto global = LLVM::GlobalOp::create(b, target.getLoc(), bytes, /*isConstant=*/true,
                                       LLVM::Linkage::External, symbol, b.getStringAttr(text));
  global.setSection((".meshwright." + name).str());
  LLVM::GlobalOp::create(b, target.getLoc(), b.getI64Type(), /*isConstant=*/true,
                         LLVM::Linkage::External, symbol + "_size",
                         b.getI64IntegerAttr(text.size()));
}
