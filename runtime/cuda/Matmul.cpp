//===- Matmul.cpp - matrix products by cuBLASLt ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// cuBLASLt's matrices are column-major, so it sees ours transposed: D^T = op(B)^T op(A)^T,
// the factors change places, and its rows, along which it adds a bias, are our columns. Where it
// makes the gradient of a bias of its B, transposed, that is our A, and of its A our B; it takes
// no other forms (NVIDIA's nvmath-python says so).
//
//===----------------------------------------------------------------------===//
#include "cuda/Gpu.h"

#include "common/monitor/Error.h"
#include "common/plan/ElementType.h"

#include <cstring>

namespace meshwright::cuda {

/// Of MW_PRODUCT_WORKSPACE what is left once its address is a multiple of this.
static constexpr size_t workspaceBytes = 32 << 20, workspaceAlignment = 256;
static_assert(MW_PRODUCT_WORKSPACE >= workspaceBytes + workspaceAlignment - MW_ALIGNMENT);

static cudaDataType_t cudaTypeOf(int64_t type) {
  switch (ElementType(type)) {
  case ElementType::F32:
    return CUDA_R_32F;
  case ElementType::BF16:
    return CUDA_R_16BF;
  case ElementType::F16:
    return CUDA_R_16F;
  default:
    fail("cuBLASLt multiplies f32, bf16 and f16, not ", nameOf(ElementType(type)));
  }
}

static cublasLtEpilogue_t epilogueOf(int64_t epilogue) {
  bool bias = epilogue & MW_BIAS, kept = epilogue & MW_PREACTIVATION;
  if (epilogue & MW_GELU_GRAD)
    return CUBLASLT_EPILOGUE_DGELU;
  if (epilogue & MW_SUM_A)
    return CUBLASLT_EPILOGUE_BGRADB;
  if (epilogue & MW_SUM_B)
    return CUBLASLT_EPILOGUE_BGRADA;
  if (epilogue & MW_GELU)
    return kept ? bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX
           : bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}
/// A bias, or its gradient. Their types are that of D.
static bool hasRow(int64_t epilogue) { return epilogue & (MW_BIAS | MW_SUM_A | MW_SUM_B); }
static bool hasMatrixBeside(int64_t epilogue) {
  return epilogue & (MW_PREACTIVATION | MW_GELU_GRAD);
}

template <typename T>
static void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  MW_BLAS(cublasLtMatmulDescSetAttribute, operation, attribute, &value, sizeof(value));
}

/// A matrix stored with `rows` rows of `columns`.
static cublasLtMatrixLayout_t layoutOf(int64_t type, int64_t rows, int64_t columns, int64_t ld,
                                       int64_t batch, int64_t stride) {
  cublasLtMatrixLayout_t layout;
  MW_BLAS(cublasLtMatrixLayoutCreate, &layout, cudaTypeOf(type), uint64_t(columns), uint64_t(rows), ld);
  auto count = int32_t(batch);
  MW_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
          sizeof(count));
  MW_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
          &stride, sizeof(stride));
  return layout;
}

Matmuls::Matmuls(const Kernels &kernels) : kernels(kernels) {
  MW_BLAS(cublasLtCreate, &handle);
  const char *location = meshwright_product_locations;
  products.resize(size_t(meshwright_product_count));
  for (int64_t i = 0; i < size(); ++i, location += std::strlen(location) + 1) {
    Product &product = products[size_t(i)];
    product.shape = meshwright_products[i];
    product.location = location;
    prepare(product);
    std::vector<cublasLtMatmulAlgo_t> found;
    if (const char *reason = product.shape.epilogue ? findAlgorithms(product, 1, found) : nullptr) {
      fprintf(stderr,
              "note: kernels, which are slower, instead of cuBLASLt's epilogue of the product %s "
              "(%s): it has no algorithm: %s\n",
              describe(i).c_str(), product.location, reason);
      MW_BLAS(cublasLtMatmulDescDestroy, product.operation);
      product = withKernels(product);
    }
    product.algorithm = candidates(i, 1).front();
  }
}

// The process ends with the run: nothing here may fail any more.
Matmuls::~Matmuls() {
  const Blas &blas = Blas::load();
  for (Product &product : products) {
    blas.cublasLtMatmulDescDestroy(product.operation);
    for (cublasLtMatrixLayout_t layout : {product.a, product.b, product.d})
      blas.cublasLtMatrixLayoutDestroy(layout);
  }
  blas.cublasLtDestroy(handle);
}

void Matmuls::prepare(Product &product) const {
  const MwProduct &p = product.shape;
  int64_t epilogue = product.byKernels ? 0 : p.epilogue;
  // Without TF32: f32 means f32. Sums, alpha and beta are f32 for all types.
  MW_BLAS(cublasLtMatmulDescCreate, &product.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  set(product.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transB ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transA ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(epilogue));
  // The heuristic looks at how these are aligned; addresses come with each run.
  auto aligned = reinterpret_cast<void *>(p.alignment);
  if (hasRow(epilogue))
    set(product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  if (hasMatrixBeside(epilogue)) {
    set(product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
        reinterpret_cast<void *>(16)); // as the compiler has made sure
    set(product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldd);
  }
  if (product.a)
    return;
  product.a = layoutOf(p.factors, p.transA ? p.k : p.m, p.transA ? p.m : p.k, p.lda, p.batch,
                       p.strideA);
  product.b = layoutOf(p.factors, p.transB ? p.n : p.k, p.transB ? p.k : p.n, p.ldb, p.batch,
                       p.strideB);
  product.d = layoutOf(p.result, p.m, p.n, p.ldd, p.batch, p.strideD);
}

std::string Matmuls::describe(int64_t number) const {
  const MwProduct &p = shape(number);
  std::string type = nameOf(ElementType(p.factors));
  std::string words =
      text("m=", p.m, " n=", p.n, " k=", p.k, " A=", type, p.transA ? "^T" : "", " lda=", p.lda,
           " B=", type, p.transB ? "^T" : "", " ldb=", p.ldb, " D=",
           nameOf(ElementType(p.result)), " ldd=", p.ldd);
  if (p.batch != 1)
    words += text(" batch=", p.batch, " strides=", p.strideA, ",", p.strideB, ",", p.strideD);
  constexpr std::pair<int, const char *> names[] = {{MW_ADDEND, "addend"},
                                                    {MW_BIAS, "bias"},
                                                    {MW_GELU, "gelu"},
                                                    {MW_PREACTIVATION, "preactivation"},
                                                    {MW_GELU_GRAD, "gelu-grad"},
                                                    {MW_SUM_A, "bias-grad-of-A"},
                                                    {MW_SUM_B, "bias-grad-of-B"}};
  for (auto [bit, name] : names)
    if (p.epilogue & bit)
      words += text(" +", name);
  if (products[size_t(number)].byKernels)
    words += " by kernels";
  return words + text(" alignment=", p.alignment);
}

const char *Matmuls::findAlgorithms(const Product &product, int most,
                                    std::vector<cublasLtMatmulAlgo_t> &algorithms) const {
  cublasLtMatmulPreference_t preference;
  MW_BLAS(cublasLtMatmulPreferenceCreate, &preference);
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    MW_BLAS(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceBytes));
  // Or the parts of a sum along k may be added in bf16; sums are f32 (lib/Codegen/CUDA/README.md).
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (cublasLtMatmulPreferenceAttributes_t attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(attribute, uint32_t(product.shape.alignment));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  cublasStatus_t status = Blas::load().cublasLtMatmulAlgoGetHeuristic(
      handle, product.operation, product.b, product.a, product.d, product.d, preference, most,
      results.data(), &found);
  MW_BLAS(cublasLtMatmulPreferenceDestroy, preference);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i)
    if (results[size_t(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(results[size_t(i)].algo);
  return algorithms.empty() ? Blas::load().cublasLtGetStatusString(status) : nullptr;
}

std::vector<cublasLtMatmulAlgo_t> Matmuls::candidates(int64_t number, int most) const {
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (const char *reason = findAlgorithms(products[size_t(number)], most, algorithms))
    fail("cuBLASLt has no algorithm for the product ", describe(number), " (", location(number),
         ") with ", workspaceBytes, " bytes of workspace: ", reason);
  return algorithms;
}

void Matmuls::choose(int64_t number, const cublasLtMatmulAlgo_t &algorithm) {
  Product &product = products[size_t(number)];
  cublasLtMatmulHeuristicResult_t result = {};
  cublasStatus_t status = Blas::load().cublasLtMatmulAlgoCheck(
      handle, product.operation, product.b, product.a, product.d, product.d, &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspaceBytes)
    fail("cuBLASLt refuses the algorithm chosen for the product ", describe(number), ": ",
         Blas::load().cublasLtGetStatusString(status), ", ", result.workspaceSize,
         " bytes of workspace");
  product.algorithm = algorithm;
}

cublasStatus_t Matmuls::call(const Product &product, const cublasLtMatmulAlgo_t &algorithm,
                             void *const *operands, CUstream stream) const {
  auto [a, b, d, c, row, beside, workspace] =
      reinterpret_cast<void *const(&)[7]>(*operands);
  int64_t epilogue = product.byKernels ? 0 : product.shape.epilogue;
  // To what is there already cuBLASLt adds in any case.
  if (product.byKernels && c == d)
    epilogue = product.shape.epilogue & MW_ADDEND;
  if (hasRow(epilogue))
    set(product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, row);
  if (hasMatrixBeside(epilogue))
    set(product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside);
  float alpha = 1, beta = epilogue & MW_ADDEND ? 1 : 0;
  uintptr_t scratch = (reinterpret_cast<uintptr_t>(workspace) + workspaceAlignment - 1) /
                      workspaceAlignment * workspaceAlignment;
  return Blas::load().cublasLtMatmul(handle, product.operation, &alpha, b, product.b, a, product.a,
                                     &beta, epilogue & MW_ADDEND ? c : d, product.d, d,
                                     product.d, &algorithm, reinterpret_cast<void *>(scratch),
                                     workspaceBytes, stream);
}

bool Matmuls::tryRun(int64_t number, const cublasLtMatmulAlgo_t &algorithm, void *const *operands,
                     CUstream stream) {
  return call(products[size_t(number)], algorithm, operands, stream) == CUBLAS_STATUS_SUCCESS;
}

void Matmuls::run(int64_t number, void *const *operands, CUstream stream) {
  Product &product = products[size_t(number)];
  cublasStatus_t status = call(product, product.algorithm, operands, stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    fail("cublasLtMatmul of ", describe(number), " (", product.location, "): ",
         Blas::load().cublasLtGetStatusString(status));
  if (product.byKernels)
    runEpilogue(product, operands, stream);
}

} // namespace meshwright::cuda

using namespace meshwright;

void mw_product(MwContext *context, int32_t number, void *const *operands) {
  cuda::Gpu::enqueue(context, [&](cuda::Gpu &device) {
    device.matmuls->run(number, operands, device.stream);
  });
}
