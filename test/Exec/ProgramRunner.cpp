//===- ProgramRunner.cpp - runs the memory form, slowly ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ProgramRunner.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static RankedTensorType tensorType(Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

/// What a call of attention reads, and what it writes, without its workspace.
static SmallVector<Value> inputsBefore(Operation *op, Value output) {
  SmallVector<Value> inputs(op->getOperands());
  inputs.erase(llvm::find(inputs, output), inputs.end());
  return inputs;
}
static SmallVector<Value> inputsOf(AttentionOp op) { return inputsBefore(op, op.getOut()); }
static SmallVector<Value> inputsOf(AttentionGradOp op) { return inputsBefore(op, op.getDq()); }
static SmallVector<Value> outputsOf(AttentionOp op) { return {op.getOut(), op.getLse()}; }
static SmallVector<Value> outputsOf(AttentionGradOp op) {
  SmallVector<Value> outputs{op.getDq(), op.getDk(), op.getDv()};
  for (Value value : {op.getDsinks(), op.getDdistances()})
    if (value)
      outputs.push_back(value);
  return outputs;
}

/// A function that computes what `op`, a call on memory, does: `Op` on tensors.
template <typename Op, typename Call>
static std::string wrap(Call op, ValueRange inputs, ValueRange outputs, unsigned number) {
  auto module = op->template getParentOfType<ModuleOp>();
  OpBuilder builder(module.getBodyRegion());
  auto types = [](ValueRange values) {
    return llvm::map_to_vector(values, [](Value v) { return Type(tensorType(v)); });
  };
  std::string name = "attention." + std::to_string(number);
  auto function = func::FuncOp::create(builder, op.getLoc(), name,
                                       builder.getFunctionType(types(inputs), types(outputs)));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  auto arguments = entry->getArguments();
  OperationState state(op.getLoc(), Op::getOperationName());
  state.addOperands(ValueRange(arguments));
  state.addTypes(types(outputs));
  SmallVector<Value> optional;
  train::AttentionOptions options = op.getOptions();
  for (const train::AttentionOption &option : train::attentionOptions)
    optional.push_back(options.*option.member);
  if constexpr (std::is_same_v<Call, AttentionOp>)
    optional.append({op.getBefore(), op.getBeforeLse()});
  auto present = llvm::map_to_vector(optional, [](Value value) { return int32_t(bool(value)); });
  SmallVector<int32_t> segments(inputs.size() - llvm::count(present, 1), 1);
  segments.append(present);
  state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(segments));
  state.addAttribute(op.getSpecAttrName(), op.getSpec());
  Operation *call = builder.create(state);
  func::ReturnOp::create(builder, op.getLoc(), call->getResults());
  return name;
}

ProgramRunner::ProgramRunner(ModuleOp module) : module(module) {
  for (MemorySpace space : memorySpaces)
    if (auto bytes = module->getAttrOfType<IntegerAttr>(memoryAttributes[space].bytes))
      arenas[space].assign(bytes.getInt() / 2, std::nan(""));
  module.walk([&](BufferOp buffer) {
    if (buffer.isPersistent())
      persistent[buffer.getName()] = buffer;
  });
  module.walk([&](Operation *op) {
    if (auto forward = dyn_cast<AttentionOp>(op)) {
      attentions[op] = wrap<train::AttentionOp>(forward, inputsOf(forward), outputsOf(forward),
                                                attentions.size());
    } else if (auto grad = dyn_cast<AttentionGradOp>(op)) {
      attentions[op] =
          wrap<train::AttentionGradOp>(grad, inputsOf(grad), outputsOf(grad), attentions.size());
    }
  });
  session = *interp::Session::create(module, 1, interp::Precision::F64);
}

int64_t ProgramRunner::cells(Value memory) {
  return llvm::divideCeil(cast<MemRefType>(memory.getType()).getElementTypeBitWidth(), 16);
}

double *ProgramRunner::at(Value memory) {
  if (isa<BlockArgument>(memory))
    return arguments.at(memory);
  if (auto view = memory.getDefiningOp<ViewOp>())
    return at(view.getBase()) + int64_t(view.getOffset()) * cells(memory);
  if (auto slot = memory.getDefiningOp<SlotOp>())
    return at(slot.getBase()) +
           indexOf(slot.getIndex()) * slot.getSlice().getType().getNumElements() * cells(memory);
  auto buffer = memory.getDefiningOp<BufferOp>();
  double *base = arenas[spaceOf(buffer.getType())].data();
  if (!isOffloaded(buffer.getType()))
    base = workspaces.lookup_or(buffer->getParentOp(), base);
  return base + *buffer.getOffset() / 2;
}

int64_t ProgramRunner::indexOf(Value index) {
  if (auto shift = index.getDefiningOp<ShiftOp>())
    return shift.evaluate(indices.at(shift.getIndex()));
  return indices.at(index);
}

void ProgramRunner::finish(Queue queue, size_t count) {
  std::vector<Started> rest;
  for (auto [i, copy] : llvm::enumerate(started))
    if (i < count && copy.queue == queue)
      std::copy_n(copy.from, copy.cells, copy.to);
    else
      rest.push_back(copy);
  started = std::move(rest);
}

void ProgramRunner::copy(CopyOp op) {
  std::optional<Queue> queue = queueOf(op);
  if (!queue) {
    store(op.getTarget(), load(op.getSource()));
    return;
  }
  started.push_back({asyncTokenOf(op).value_or(-1), *queue, at(op.getSource()), at(op.getTarget()),
                     bytesOf(op.getSource().getType()) / 2});
  if (asyncTokenOf(op))
    scribble(op.getTarget());
  else
    finish(*queue, started.size());
}

void ProgramRunner::wait(WaitOp op) {
  for (size_t i = started.size(); i-- > 0;)
    if (started[i].number == int64_t(op.getAsyncToken()))
      return finish(started[i].queue, i + 1);
}

interp::Tensor ProgramRunner::load(Value memory) {
  interp::Tensor tensor(tensorType(memory));
  const double *from = at(memory);
  for (int64_t i = 0, step = cells(memory); i < tensor.size(); ++i) {
    if (tensor.isFloat())
      tensor.writeFloats()[i] = from[i * step];
    else
      tensor.writeIntegers()[i] = int64_t(from[i * step]);
  }
  return tensor;
}

void ProgramRunner::store(Value memory, const interp::Tensor &value) {
  double *to = at(memory);
  int64_t step = cells(memory);
  for (int64_t i = 0; i < value.size(); ++i) {
    to[i * step] = value.isFloat() ? value.floats()[i] : double(value.integers()[i]);
    // The rest of its bytes belong to it: what else would be there is lost.
    std::fill_n(to + i * step + 1, step - 1, std::nan(""));
  }
}

void ProgramRunner::write(StringRef name, const interp::Tensor &value) {
  if (auto it = persistent.find(name); it != persistent.end())
    store(it->second.getMemory(), value);
}

interp::Tensor ProgramRunner::read(StringRef name) const {
  BufferOp buffer = persistent.lookup(name);
  return const_cast<ProgramRunner *>(this)->load(buffer.getMemory());
}

LogicalResult ProgramRunner::call(StringRef function, ValueRange inputs, ValueRange outputs) {
  interp::TensorList arguments, results;
  for (Value input : inputs)
    arguments.push_back(load(input));
  if (failed(session->run(session->lookup(function), arguments, results)))
    return failure();
  for (auto [output, result] : llvm::zip_equal(outputs, results))
    store(output, result);
  return success();
}

/// The tanh form of gelu, written otherwise than in the interpreter: x times the logistic
/// function of twice its argument; and its derivative.
static std::pair<double, double> gelu(double x) {
  double u = std::sqrt(8 / M_PI) * (x + 0.044715 * x * x * x), p = 1 / (1 + std::exp(-u));
  double slope = std::sqrt(8 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return {x * p, p + x * p * (1 - p) * slope};
}

/// What a product does beside its sum, in the order of elements.
void ProgramRunner::epilogue(MatmulOp op, interp::Tensor &result) {
  double *c = result.writeFloats();
  auto each = [&](Value memory, auto apply) {
    if (!memory)
      return;
    interp::Tensor value = load(memory);
    for (int64_t i = 0; i < result.size(); ++i)
      apply(c[i], value.floats()[i % value.size()]);
  };
  auto add = [](double &out, double value) { out += value; };
  each(op.getAddend(), add);
  each(op.getBias(), add);
  each(op.getSlopeAt(), [](double &out, double value) { out *= gelu(value).second; });
  if (op.getPreactivation())
    store(op.getPreactivation(), result);
  if (op.getGelu())
    for (int64_t i = 0; i < result.size(); ++i)
      c[i] = gelu(c[i]).first;
  // Of a factor that is stored as [k, size].
  auto sum = [&](Value sums, Value factor, int64_t size, int64_t ld) {
    if (!sums)
      return;
    interp::Tensor total = load(sums), from = load(factor);
    double *to = total.writeFloats();
    for (int64_t i = 0; i < size; ++i) {
      to[i] = 0;
      for (int64_t s = 0; s < int64_t(op.getK()); ++s)
        to[i] += from.floats()[s * ld + i];
    }
    store(sums, total);
  };
  sum(op.getSumA(), op.getA(), op.getM(), op.getLda());
  sum(op.getSumB(), op.getB(), op.getN(), op.getLdb());
}

void ProgramRunner::matmul(MatmulOp op) {
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  double alpha = op.getAlpha().convertToFloat(), beta = op.getBeta().convertToFloat();
  scribble(op.getWorkspace());
  interp::Tensor left = load(op.getA()), right = load(op.getB()), result = load(op.getC());
  for (int64_t i = 0; i < int64_t(op.getBatch()); ++i) {
    const double *a = left.floats().data() + i * op.getStrideA(),
                 *b = right.floats().data() + i * op.getStrideB();
    double *c = result.writeFloats() + i * op.getStrideC();
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (int64_t s = 0; s < k; ++s)
          sum += (op.getTransA() ? a[s * op.getLda() + row] : a[row * op.getLda() + s]) *
                 (op.getTransB() ? b[column * op.getLdb() + s] : b[s * op.getLdb() + column]);
        double &out = c[row * op.getLdc() + column];
        out = alpha * sum + (beta == 0 ? 0 : beta * out);
      }
  }
  if (op.hasEpilogue())
    epilogue(op, result);
  store(op.getC(), result);
}

/// Library calls may use their workspace, if they have one, as they like.
void ProgramRunner::scribble(Value workspace) {
  if (!workspace)
    return;
  std::fill_n(at(workspace), bytesOf(workspace.getType()) / 2, std::nan(""));
}

LogicalResult ProgramRunner::runOp(Operation *op) {
  if (isa<BufferOp, SlotOp, ViewOp, ShiftOp, YieldOp>(op))
    return success();
  if (auto when = dyn_cast<WhenOp>(op)) {
    int64_t iteration = indices.at(when.getIndex());
    bool runs = int64_t(when.getBegin()) <= iteration && iteration < int64_t(when.getEnd());
    return runs ? runBlock(when.getBlock()) : success();
  }
  if (auto waiting = dyn_cast<WaitOp>(op)) {
    wait(waiting);
    return success();
  }
  if (auto loop = dyn_cast<LoopOp>(op)) {
    for (int64_t i = 0, count = loop.getCount(); i < count; ++i) {
      indices[loop.getIndex()] = loop.getReverse() ? count - 1 - i : i;
      if (failed(runBlock(loop.getBlock())))
        return failure();
    }
    return success();
  }
  if (auto moved = dyn_cast<CopyOp>(op)) {
    copy(moved);
    return success();
  }
  if (auto index = dyn_cast<StoreIndexOp>(op)) {
    *at(index.getTarget()) = double(indices.at(index.getIndex()));
    return success();
  }
  if (auto call = dyn_cast<exec::CallOp>(op)) {
    auto callee = module.lookupSymbol<ProgramOp>(call.getCallee());
    SmallVector<Value> operands(call.getInputs());
    llvm::append_range(operands, call.getUpdated());
    llvm::append_range(operands, call.getOutputs());
    for (auto [argument, operand] : llvm::zip_equal(callee.getBlock().getArguments(), operands))
      arguments[argument] = at(operand);
    for (Value output : call.getOutputs())
      scribble(output);
    if (call.getWorkspace()) {
      scribble(call.getWorkspace());
      workspaces[callee] = at(call.getWorkspace());
    }
    return runBlock(callee.getBlock());
  }
  if (auto product = dyn_cast<MatmulOp>(op)) {
    matmul(product);
    return success();
  }
  if (auto launch = dyn_cast<LaunchOp>(op))
    return call(launch.getKernel(), launch.getInputs(), launch.getOutputs());
  if (auto forward = dyn_cast<AttentionOp>(op)) {
    scribble(forward.getWorkspace());
    return call(attentions[op], inputsOf(forward), outputsOf(forward));
  }
  if (auto grad = dyn_cast<AttentionGradOp>(op)) {
    scribble(grad.getWorkspace());
    return call(attentions[op], inputsOf(grad), outputsOf(grad));
  }
  return op->emitError("cannot be run here");
}

LogicalResult ProgramRunner::runBlock(Block &block) {
  for (Operation &op : block)
    if (failed(runOp(&op)))
      return failure();
  return success();
}

LogicalResult ProgramRunner::run(StringRef name) {
  LogicalResult result = runBlock(module.lookupSymbol<ProgramOp>(name).getBody().front());
  if (succeeded(result) && !started.empty())
    return module.emitError("copy ") << started[0].number << " is not waited for";
  return result;
}
