//===- KernelInput.cpp - a kernel, its plan, its arguments and results ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KernelInput.h"

#include "meshwright/Codegen.h"

#include "mlir/Parser/Parser.h"

#include <cstring>
#include <random>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

Memory::Memory(int64_t elements, Element element) : elements(elements), element(element) {
  // A guard behind the end catches vectors that write too far.
  data = static_cast<float *>(std::aligned_alloc(64, llvm::alignTo(bytes() + 64, 64)));
  std::memset(data, 0x55, llvm::alignTo(bytes() + 64, 64));
}

Memory::Memory(const Memory &other) : Memory(other.elements, other.element) {
  std::memcpy(data, other.data, bytes());
}

/// The type of elements that are narrow.
static const llvm::fltSemantics &semanticsOf(Memory::Element element) {
  return element == Memory::BF16   ? APFloat::BFloat()
         : element == Memory::F16  ? APFloat::IEEEhalf()
         : element == Memory::E4M3 ? APFloat::Float8E4M3FN()
                                   : APFloat::Float8E5M2();
}

double Memory::get(int64_t i) const {
  if (element == I32)
    return reinterpret_cast<int32_t *>(data)[i];
  if (element == I8)
    return reinterpret_cast<int8_t *>(data)[i];
  if (element == F32)
    return data[i];
  bool isByte = bytes() == elements;
  llvm::APInt bits(isByte ? 8 : 16, isByte ? reinterpret_cast<uint8_t *>(data)[i]
                                           : reinterpret_cast<uint16_t *>(data)[i]);
  return APFloat(semanticsOf(element), bits).convertToDouble();
}

void Memory::set(int64_t i, double value) {
  if (element == I32) {
    reinterpret_cast<int32_t *>(data)[i] = int32_t(value);
  } else if (element == I8) {
    reinterpret_cast<int8_t *>(data)[i] = int8_t(value);
  } else if (element == F32) {
    data[i] = float(value);
  } else {
    bool lossy;
    APFloat number(value);
    number.convert(semanticsOf(element), APFloat::rmNearestTiesToEven, &lossy);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    if (bytes() == elements)
      reinterpret_cast<uint8_t *>(data)[i] = uint8_t(bits);
    else
      reinterpret_cast<uint16_t *>(data)[i] = uint16_t(bits);
  }
}

void test::decompose(func::FuncOp kernel) {
  SmallVector<train::KernelOpInterface> ops;
  kernel.walk([&](train::KernelOpInterface op) { ops.push_back(op); });
  for (train::KernelOpInterface op : ops) {
    OpBuilder b(op);
    op->replaceAllUsesWith(train::decomposeInF32(op, b));
    op->erase();
  }
}

KernelInput::KernelInput(StringRef text, exec::ScheduleLimits options, int64_t chunks) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, train::TrainDialect>();
  registerCodegen(registry);
  registerTargets();
  for (const auto &target : exec::getTargets())
    target->registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return;
  auto kernel = *module->getOps<func::FuncOp>().begin();
  kernel->setAttr("exec.kernel", UnitAttr::get(&context));
  decompose(kernel);
  if (chunks) {
    options.maxChunks = chunks;
    options.chunkWork = 1;
  }
  auto made = codegen::buildKernelLoops(kernel, options);
  if (failed(made))
    return;
  kernelLoops = std::move(*made);
  SmallVector<int64_t> counts;
  for (const codegen::LoopNest &nest : kernelLoops->nests)
    counts.push_back(nest.chunks);
  kernel->setAttr("exec.chunks", DenseI64ArrayAttr::get(&context, counts));
}

static int64_t elementsOf(Type type) { return cast<RankedTensorType>(type).getNumElements(); }
static Memory::Element elementOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isInteger(32) ? Memory::I32
         : element.isInteger(8)  ? Memory::I8
         : element.isBF16()    ? Memory::BF16
         : element.isF16()     ? Memory::F16
         : isa<Float8E4M3FNType>(element) ? Memory::E4M3
         : isa<Float8E5M2Type>(element)   ? Memory::E5M2
                               : Memory::F32;
}

std::vector<Memory> KernelInput::makeArguments(unsigned seed, int64_t ids) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Memory> arguments;
  for (Type type : getFunction().getArgumentTypes()) {
    Memory &memory = arguments.emplace_back(elementsOf(type), elementOf(type));
    for (int64_t i = 0; i < memory.elements; ++i)
      memory.set(i, memory.element == Memory::I32  ? double(random() % ids)
                    : memory.element == Memory::I8 ? double(random() % 255) - 127
                                                   : normal(random));
  }
  return arguments;
}

std::vector<Memory> KernelInput::makeResults() {
  std::vector<Memory> results;
  for (Type type : getFunction().getResultTypes())
    results.emplace_back(elementsOf(type), elementOf(type));
  return results;
}

std::vector<Values> KernelInput::reference(const std::vector<Memory> &arguments) {
  std::vector<Values> values;
  for (const Memory &memory : arguments) {
    Values &out = values.emplace_back();
    for (int64_t i = 0; i < memory.elements; ++i)
      out.push_back(memory.get(i));
  }
  return evaluate(getFunction(), values);
}
