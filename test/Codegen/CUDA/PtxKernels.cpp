//===- PtxKernels.cpp - runs the PTX of kernels without a GPU ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PtxKernels.h"
#include "../../Runtime/Cuda/PtxJudge.h"
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/CUDA/Lowering.h"
#include "Exec/Exec.h"
#include "Exec/Target.h"
#include "meshwright/Codegen.h"
#include "meshwright/Register.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <stdexcept>
#include <sys/mman.h>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

std::unique_ptr<PtxKernels> PtxKernels::ofProgram(StringRef text) {
  DialectRegistry registry;
  registerCodegen(registry);
  registerTargets();
  exec::findTarget("cuda")->registerDialects(registry);
  registry.insert<exec::ExecDialect, train::TrainDialect, func::FuncDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto program = parseSourceString<ModuleOp>(text, &context);
  if (!program)
    return nullptr;
  auto emitted = codegen::cuda::emitKernels(*program);
  if (failed(emitted) || failed(verify(**emitted)))
    return nullptr;
  return std::make_unique<PtxKernels>(**emitted);
}

PtxKernels::PtxKernels(ModuleOp kernels) {
  kernels.walk([&](gpu::GPUFuncOp function) {
    auto bytes = function->getAttrOfType<IntegerAttr>(codegen::cuda::sharedBytesAttr);
    launches[function.getName().str()] = {(*function.getKnownGridSize())[0],
                                          (*function.getKnownBlockSize())[0],
                                          bytes ? bytes.getInt() : 0};
  });
  OwningOpRef<ModuleOp> converted = kernels.clone();
  if (failed(codegen::cuda::convertKernels(*converted)))
    return;
  auto written = codegen::cuda::writePTX(*converted, "sm_90");
  if (failed(written))
    return;
  text = std::move(*written);
  try {
    module = std::make_unique<ptx::Module>(text);
  } catch (const std::exception &e) {
    error = e.what();
  }
}

PtxKernels::~PtxKernels() = default;

struct PtxRun::Memory : ptx::Memories {
  /// Between tensors, and what there is room for; the system gives memory where it is touched.
  static constexpr uint64_t gap = 1 << 20, room = uint64_t(1) << 32;
  struct Tensor {
    char *data;
    uint64_t begin, bytes;
  };
  std::vector<Tensor> tensors;
  ptx::Judge judge;
  const ptx::Module *module;
  uint64_t begin, end;

  explicit Memory(const ptx::Module *module) : module(module) {
    begin = end = uint64_t(mmap(nullptr, room, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Memory() override { munmap(reinterpret_cast<void *>(begin), room); }

  std::pair<uint64_t, uint64_t> around(uint64_t address) override {
    for (const Tensor &tensor : tensors)
      if (address >= tensor.begin && address < tensor.begin + tensor.bytes)
        return {tensor.begin, tensor.begin + tensor.bytes};
    for (auto &[name, bytes] : module->constants())
      if (address - uint64_t(bytes.data()) < bytes.size())
        return {uint64_t(bytes.data()), uint64_t(bytes.data()) + bytes.size()};
    std::string place = "address " + std::to_string(address) + " is of no tensor";
    for (const Tensor &tensor : tensors)
      if (address >= tensor.begin - gap / 2)
        place += "; byte " + std::to_string(int64_t(address - tensor.begin)) + " of tensor " +
                 std::to_string(&tensor - tensors.data()) + " of " + std::to_string(tensor.bytes);
    throw std::runtime_error(place);
  }
};

PtxRun::PtxRun(const PtxKernels &kernels)
    : kernels(kernels), memory(std::make_unique<Memory>(kernels.module.get())) {}
PtxRun::~PtxRun() = default;

unsigned PtxRun::add(void *data, int64_t bytes, bool isWritten) {
  // Kernels rely on a multiple of 16 bytes, and get no more.
  uint64_t begin = llvm::alignTo(memory->end + Memory::gap, 32) + 16;
  memory->end = begin + uint64_t(bytes);
  if (memory->end + Memory::gap > memory->begin + Memory::room)
    llvm::report_fatal_error("no room for a tensor");
  memory->tensors.push_back({static_cast<char *>(data), begin, uint64_t(bytes)});
  std::memcpy(reinterpret_cast<void *>(begin), data, size_t(bytes));
  if (!isWritten)
    memory->judge.addUnwritten(begin, uint64_t(bytes));
  return memory->tensors.size() - 1;
}

std::string PtxRun::launch(StringRef name, ArrayRef<unsigned> tensors, ArrayRef<int64_t> numbers) {
  if (!kernels.module)
    return kernels.error.empty() ? "no PTX was written" : kernels.error;
  std::vector<uint64_t> parameters;
  for (unsigned tensor : tensors)
    parameters.push_back(memory->tensors[tensor].begin);
  parameters.insert(parameters.end(), numbers.begin(), numbers.end());
  const PtxKernels::Launch &launch = kernels.launches.at(name.str());
  try {
    ptx::run(kernels.module->entries().at(name.str()), launch.blocks, launch.threads,
             launch.sharedBytes, parameters, *memory, &memory->judge);
  } catch (const std::exception &error) {
    return error.what();
  }
  for (const Memory::Tensor &tensor : memory->tensors)
    std::memcpy(tensor.data, reinterpret_cast<void *>(tensor.begin), tensor.bytes);
  return "";
}
