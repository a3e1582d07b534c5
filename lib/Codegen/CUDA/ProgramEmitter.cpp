//===- ProgramEmitter.cpp - programs that drive a GPU -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The host's side of an executable for GPUs: a function a program, which launches
// kernels by their number in a table, and the table and the kernels' images as data.
//
//===----------------------------------------------------------------------===//
#include "Codegen/ProgramEmitter.h"
#include "Codegen/CUDA/Attentions.h"
#include "Codegen/CUDA/Images.h"
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/CUDA/Lowering.h"
#include "Codegen/CUDA/Products.h"
#include "Codegen/HostCode.h"
#include "Dist/Programs.h"
#include "meshwright/PlanJson.h"
#include "meshwright/runtime/cuda/ABI.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

/// The numbers of two operands of `function` whose being the same leaves it nothing to do.
static DenseI32ArrayAttr idleInPlace(gpu::GPUFuncOp function) {
  return function->getAttrOfType<DenseI32ArrayAttr>(cuda::inPlaceAttr);
}
static bool isIdle(DenseI32ArrayAttr pair, ValueRange operands) {
  return pair && operands[pair[0]] == operands[pair[1]];
}

/// Erases functions that have nothing to do in any launch.
static void eraseIdle(ModuleKernels &kernels, gpu::GPUModuleOp functions) {
  llvm::StringSet<> launched;
  auto programs = dist::programsOf(*kernels.module);
  for (size_t p = 0; p < programs.size(); ++p)
    programs[p].walk([&](exec::LaunchOp launch) {
      const KernelLoops &kernelLoops = kernels.programs[p].find(launch.getKernel())->second;
      for (unsigned i = 0; i < kernelLoops.nests.size(); ++i) {
        std::string name = cuda::loopNestName(func::FuncOp(kernelLoops.function).getName(), i);
        auto function = functions.lookupSymbol<gpu::GPUFuncOp>(name);
        if (function && !isIdle(idleInPlace(function), launch.getOperands()))
          launched.insert(name);
      }
    });
  for (auto function : llvm::make_early_inc_range(functions.getOps<gpu::GPUFuncOp>()))
    if (idleInPlace(function) && !launched.contains(function.getName()))
      function.erase();
}

namespace {
/// All GPU functions, numbered.
class KernelTable {
public:
  explicit KernelTable(ModuleOp kernels) {
    for (auto module : kernels.getOps<gpu::GPUModuleOp>())
      for (auto function : module.getOps<gpu::GPUFuncOp>()) {
        numbers[function.getName()] = numbers.size();
        names += function.getName();
        names.push_back('\0');
        // As MwKernelShape in ABI.h.
        int64_t shared = 0;
        if (auto bytes = function->getAttrOfType<IntegerAttr>(cuda::sharedBytesAttr))
          shared = bytes.getInt();
        idle[function.getName()] = idleInPlace(function);
        llvm::append_values(shapes, int32_t(function.getNumArguments()),
                            (*function.getKnownGridSize())[0], (*function.getKnownBlockSize())[0],
                            int32_t(shared));
      }
  }
  bool contains(StringRef name) const { return numbers.contains(name); }
  int64_t numberOf(StringRef name) const { return numbers.at(name); }
  /// Whether the function does something with `operands`.
  bool isLaunched(StringRef name, ValueRange operands) const {
    return contains(name) && !isIdle(idle.at(name), operands);
  }

  /// Writes it as ABI.h says.
  void emit(ModuleOp target) const;

private:
  llvm::StringMap<int64_t> numbers;
  llvm::StringMap<DenseI32ArrayAttr> idle;
  std::string names;
  SmallVector<int32_t> shapes;
};

class CUDAProgramEmitter : public ProgramEmitter {
public:
  CUDAProgramEmitter(const Scope &scope, const KernelTable &table, const cuda::CallKernels &ofCalls,
                     const cuda::Attentions &calls, cuda::ProductTable &products)
      : ProgramEmitter(scope), table(table), ofCalls(ofCalls), calls(calls), products(products) {}

private:
  void launch(StringRef name, Value operands) {
    call("mw_launch_kernel", {i32(table.numberOf(name)), operands});
  }
  LogicalResult launch(exec::LaunchOp op, const KernelLoops &kernelLoops) override {
    Value operands = addresses(op.getOperands());
    StringRef kernel = func::FuncOp(kernelLoops.function).getName();
    for (unsigned i = 0; i < kernelLoops.nests.size(); ++i)
      if (std::string name = cuda::loopNestName(kernel, i);
          table.isLaunched(name, op.getOperands()))
        launch(name, operands);
    return success();
  }
  LogicalResult product(exec::MatmulOp op) override {
    FailureOr<int64_t> number = products.numberOf(op);
    if (failed(number))
      return failure();
    call("mw_product", {i32(*number), addresses(cuda::ProductTable::operandsOf(op))});
    return success();
  }
  LogicalResult attention(exec::AttentionOp op) override {
    return attention(op, {op.getQ(), op.getK(), op.getV(), op.getOut(), op.getLse(),
                          op.getWorkspace()});
  }
  LogicalResult attention(exec::AttentionGradOp op) override {
    return attention(op, {op.getDout(), op.getQ(), op.getK(), op.getV(), op.getOut(), op.getLse(),
                          op.getDq(), op.getDk(), op.getDv(), op.getWorkspace()});
  }
  /// `memory` is what cuDNN takes. It says whether it made the call: what is missing there
  /// and what it refuses is known when the executable has started.
  template <typename Op> LogicalResult attention(Op op, SmallVector<Value> memory) {
    std::optional<cuda::Library> library = cuda::libraryOf(op.getLibraryAttr());
    if (!library) {
      launchAttention(op);
      return success();
    }
    Value made = call("mw_cudnn_attention", {i32(calls.numberOf(op)), addresses(memory)},
                      b.getI32Type());
    if (!library->fallback)
      return success();
    Value missing = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, made, i32(0));
    auto otherwise = scf::IfOp::create(b, loc, missing, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(otherwise.thenYield());
    launchAttention(op);
    return success();
  }
  void launchAttention(Operation *op) {
    Value operands = addresses(cuda::AttentionKernels::operandsOf(op));
    for (const std::string &name : ofCalls.attention.functionsOf(op))
      launch(name, operands);
  }
  LogicalResult experts(Operation *op) override {
    Value operands = addresses(op->getOperands());
    for (const std::string &name : ofCalls.experts.functionsOf(op))
      launch(name, operands);
    return success();
  }
  void copy(Value to, Value from, int64_t bytes) override {
    call("mw_copy", {to, from, i64(bytes)});
  }
  void store(Value number, Value to) override { call("mw_store", {to, number}); }
  Value load(Value from) override { return call("mw_load", {from}, b.getI32Type()); }

  const KernelTable &table;
  const cuda::CallKernels &ofCalls;
  const cuda::Attentions &calls;
  cuda::ProductTable &products;
};
} // namespace

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

static LLVM::GlobalOp addConstant(ModuleOp target, Type type, StringRef name, Attribute value) {
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  return LLVM::GlobalOp::create(b, target.getLoc(), type, /*isConstant=*/true,
                                LLVM::Linkage::External, name, value, /*alignment=*/64);
}

static void addBytes(ModuleOp target, StringRef name, StringRef bytes) {
  Builder b(target.getContext());
  addConstant(target, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()), name,
              b.getStringAttr(bytes));
}

static void addCount(ModuleOp target, StringRef name, int64_t count) {
  Builder b(target.getContext());
  addConstant(target, b.getI64Type(), name, b.getI64IntegerAttr(count));
}

void KernelTable::emit(ModuleOp target) const {
  Builder b(target.getContext());
  addCount(target, "meshwright_kernel_count", numbers.size());
  addBytes(target, "meshwright_kernel_names", names);
  addConstant(target, LLVM::LLVMArrayType::get(b.getI32Type(), shapes.size()),
              "meshwright_kernel_shapes", b.getI32TensorAttr(shapes));
}

static void emitProducts(ModuleOp target, const cuda::ProductTable &products) {
  Builder b(target.getContext());
  addCount(target, "meshwright_product_count", products.size());
  addBytes(target, "meshwright_product_locations", products.locations().str() + '\0');
  std::vector<int64_t> rows = products.rows();
  rows.push_back(0); // so that there is something where there are none
  addConstant(target, LLVM::LLVMArrayType::get(b.getI64Type(), rows.size()), "meshwright_products",
              b.getI64TensorAttr(rows));
}

static void emitImages(ModuleOp target, ArrayRef<cuda::Image> images) {
  Builder b(target.getContext());
  std::string bytes;
  SmallVector<int64_t> table; // as MwImage in ABI.h
  for (const cuda::Image &image : images) {
    bytes.resize(llvm::alignTo(bytes.size(), 64));
    llvm::append_values(table, int64_t(image.arch), int64_t(image.isPTX), int64_t(bytes.size()),
                        int64_t(image.bytes.size()));
    bytes += image.bytes;
  }
  addCount(target, "meshwright_image_count", images.size());
  addConstant(target, LLVM::LLVMArrayType::get(b.getI64Type(), table.size()), "meshwright_images",
              b.getI64TensorAttr(table));
  addBytes(target, "meshwright_image_bytes", bytes);
}

/// What ptxas says of each kernel's functions, one entry an architecture: the most registers
/// of a thread, and bytes spilled by all. Empty where it was not asked.
static std::string assembledText(const ModuleKernels &kernels,
                                 ArrayRef<cuda::Assembled> assembled) {
  if (assembled.empty())
    return "";
  plan::AssembledKernels result;
  for (const ScheduledKernels &scheduled : kernels.programs) {
    plan::AssembledProgram &program = result.programs.emplace_back();
    for (const auto &kernel : scheduled) {
      StringRef name = func::FuncOp(kernel.second.function).getName();
      std::map<unsigned, plan::Assembled> found; // by architecture
      for (unsigned i = 0; i < kernel.second.nests.size(); ++i) {
        std::string function = cuda::loopNestName(name, i);
        for (const cuda::Assembled &entry : assembled) {
          if (entry.function != function)
            continue;
          plan::Assembled &row = found[entry.arch];
          row.arch = ("sm_" + Twine(entry.arch)).str();
          row.registers = std::max(row.registers, entry.registers);
          row.spilledBytes += entry.spilledBytes;
        }
      }
      llvm::append_range(program.kernels[kernel.first().str()], llvm::make_second_range(found));
    }
  }
  return llvm::formatv("{0}", llvm::json::Value(result)).str();
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

FailureOr<OwningOpRef<ModuleOp>> cuda::lower(ModuleOp module, ArrayRef<std::string> archs,
                                            const CodegenOptions &options,
                                            llvm::raw_ostream &log) {
  // What a stream copies has addresses.
  WalkResult onDisk = module.walk([](exec::BufferOp buffer) {
    const MemorySpaceRow &row = spaceRow(exec::spaceOf(buffer.getType()));
    if (row.hasAddresses())
      return WalkResult::advance();
    buffer.emitOpError("'") << buffer.getName() << "' is on " << row.text
                            << ", which target cuda does not copy from; " << row.option
                            << " with host memory instead, as in --offload optimizer, and --target cpu are possible";
    return WalkResult::interrupt();
  });
  if (onDisk.wasInterrupted())
    return failure();
  auto kernels = cuda::buildKernels(module);
  if (failed(kernels))
    return failure();
  cuda::CallKernels ofCalls;
  auto functions = cuda::emitKernels(*kernels, ofCalls);
  if (failed(functions))
    return failure();
  eraseIdle(*kernels, *(*functions)->getOps<gpu::GPUModuleOp>().begin());
  KernelTable table(**functions);
  cuda::Attentions calls(*kernels->module);
  cuda::ProductTable products(*kernels->module);
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  if (failed(emitPrograms(*kernels, *result, [&](const ProgramEmitter::Scope &scope) {
        return std::make_unique<CUDAProgramEmitter>(scope, table, ofCalls, calls, products);
      })) ||
      failed(convertToLLVMDialect(*result)) || failed(cuda::convertKernels(**functions)))
    return failure();
  std::vector<cuda::Assembled> assembled;
  auto images = cuda::makeImages(**functions, archs, log, assembled);
  if (failed(images))
    return failure();
  table.emit(*result);
  emitProducts(*result, products);
  emitImages(*result, *images);
  emitText(*result, "plan", options.plan);
  emitText(*result, "assembled", assembledText(*kernels, assembled));
  emitText(*result, "program", options.program);
  emitText(*result, "no_decoder", options.noDecoder);
  return result;
}
