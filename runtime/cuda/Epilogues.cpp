//===- Epilogues.cpp - what follows a product, by kernels -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The same as cuBLASLt's epilogues, in place: no memory is needed that they do not need. The
// kernels' names and operands are those of lib/Codegen/CUDA/Epilogues.cpp.
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"
#include "cuda/Operands.h"

#include <cmath>
#include <cstring>

namespace meshwright::cuda {

Matmuls::Product Matmuls::withKernels(const Product &product) const {
  Product result = product;
  result.byKernels = true;
  prepare(result);
  return result;
}

void Matmuls::runEpilogue(const Product &product, void *const *operands, CUstream stream) const {
  auto [a, b, d, c, row, beside, workspace] = reinterpret_cast<void *const(&)[7]>(*operands);
  const MwProduct &p = product.shape;
  auto number = [](int64_t value) { return reinterpret_cast<void *>(value); };
  auto overResult = [&, d = d](const char *name, void *other) {
    void *arguments[] = {d, other, number(p.m), number(p.n), number(p.ldd)};
    kernels.launch(kernels.find(text("epilogue$", name, "$", nameOf(ElementType(p.result)))),
                   arguments, stream);
  };
  auto sum = [&, row = row](void *factor, int64_t count, int64_t ld) {
    void *arguments[] = {factor, row, number(p.k), number(count), number(ld)};
    kernels.launch(kernels.find(text("epilogue$sums$", nameOf(ElementType(p.factors)), "$",
                                     nameOf(ElementType(p.result)))),
                   arguments, stream);
  };
  if ((p.epilogue & MW_ADDEND) && c != d)
    overResult("addend", c);
  if (p.epilogue & MW_BIAS)
    overResult("bias", row);
  if (p.epilogue & MW_GELU)
    p.epilogue &MW_PREACTIVATION ? overResult("gelu_kept", beside) : overResult("gelu", d);
  if (p.epilogue & MW_GELU_GRAD)
    overResult("gelu_grad", beside);
  if (p.epilogue & MW_SUM_A)
    sum(a, p.m, p.lda);
  if (p.epilogue & MW_SUM_B)
    sum(b, p.n, p.ldb);
}

/// How far numbers may be apart, relative to 1 and themselves: some roundings to the type. What
/// an epilogue does is as large as the product (Operands.h), so that it is seen where it is
/// missing.
static float toleranceOf(ElementType type) {
  return type == ElementType::BF16 ? 1.f / 64 : type == ElementType::F16 ? 1.f / 256 : 1.f / 2048;
}

static float toFloat(ElementType type, const char *element) {
  float value;
  uint16_t bits;
  if (type == ElementType::F32) {
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
  std::memcpy(&bits, element, sizeof(bits));
  return type == ElementType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

/// What a product has written, as f32: some rows of its matrices, and all of the row.
static std::vector<float> results(const MwProduct &p, void *const *operands, CUstream stream) {
  std::vector<float> values;
  auto type = ElementType(p.result);
  auto read = [&](void *address, int64_t elements) {
    std::vector<char> bytes(size_t(elements * bytesOf(type)));
    MW_CUDA(cuMemcpyDtoHAsync, bytes.data(), CUdeviceptr(address), bytes.size(), stream);
    MW_CUDA(cuStreamSynchronize, stream);
    for (int64_t i = 0; i < elements; ++i)
      values.push_back(toFloat(type, &bytes[size_t(i * bytesOf(type))]));
  };
  auto readRows = [&](void *matrix) {
    for (int64_t part = 0; part < 4; ++part)
      read(static_cast<char *>(matrix) + (p.m - 1) * part / 3 * p.ldd * bytesOf(type), p.n);
  };
  readRows(operands[2]);
  if (p.epilogue & (MW_SUM_A | MW_SUM_B))
    read(operands[4], p.epilogue & MW_SUM_A ? p.m : p.n);
  if (p.epilogue & MW_PREACTIVATION)
    readRows(operands[5]);
  return values;
}

std::string Matmuls::compare(const Product &product, void *const *operands, CUstream stream) const {
  const MwProduct &p = product.shape;
  // A product of these is about as large as 1.
  auto first = CUdeviceptr(operands[0]), second = CUdeviceptr(operands[1]);
  fill({first, int64_t(CUdeviceptr(operands[6]) - first)}, stream);
  fill({first, int64_t(second - first)}, stream, ElementType(p.factors),
       int(std::lround(std::log2(double(p.k)) / 2)));
  cublasStatus_t status = call(product, product.algorithm, operands, stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    return text("cublasLtMatmul: ", Blas::load().cublasLtGetStatusString(status));
  std::vector<float> fused = results(p, operands, stream);
  Product plain = withKernels(product);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  const char *reason = findAlgorithms(plain, 1, algorithms);
  if (!reason)
    status = call(plain, algorithms.front(), operands, stream);
  MW_BLAS(cublasLtMatmulDescDestroy, plain.operation);
  if (reason || status != CUBLAS_STATUS_SUCCESS)
    return ""; // Nothing to compare with, or to leave it to.
  runEpilogue(plain, operands, stream);
  std::vector<float> want = results(p, operands, stream);
  float tolerance = toleranceOf(ElementType(p.result));
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(fused[i] - want[i]) <= tolerance * (1 + std::fabs(want[i]))))
      return text("in a trial it made ", fused[i], " of what is ", want[i]);
  return "";
}

std::string Matmuls::check(int64_t number, void *const *operands, CUstream stream) {
  Product &product = products[size_t(number)];
  bool fuses = product.shape.epilogue && !product.byKernels && product.shape.batch == 1;
  std::string wrong = fuses ? compare(product, operands, stream) : "";
  if (!wrong.empty()) {
    Product plain = withKernels(product);
    MW_BLAS(cublasLtMatmulDescDestroy, product.operation);
    product = plain;
    product.algorithm = candidates(number, 1).front();
  }
  if (!fuses || !wrong.empty())
    run(number, operands, stream);
  return wrong;
}

} // namespace meshwright::cuda
