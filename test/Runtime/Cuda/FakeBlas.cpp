//===- FakeBlas.cpp - a cuBLASLt that only looks on -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Products are computed by FakeCompute.h, if at all. What is checked is what the library's documentation asks of
// their sizes, types, strides, alignment, epilogues and memory. The heuristic offers
// four algorithms, the third of which is the fastest; none of an epilogue that
// FAKE_BLAS_REFUSE names by its number. That of FAKE_BLAS_WRONG is left out where products are
// computed.
//
//===----------------------------------------------------------------------===//
#include "FakeCompute.h"
#include "FakeStreams.h"
#include "cublasLt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace fake;

namespace {
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t ld, stride = 0;
  int32_t batch = 1;
  size_t width() const { return type == CUDA_R_32F ? 4 : 2; }
  Type of() const {
    return type == CUDA_R_32F ? Type::F32 : type == CUDA_R_16BF ? Type::Bf16 : Type::F16;
  }
  Matrix at(const void *data) const { return {const_cast<void *>(data), of(), ld, stride}; }
  size_t bytes() const {
    return width() * size_t((batch - 1) * stride + int64_t(columns - 1) * ld + int64_t(rows));
  }
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
  void *aux = nullptr;
  int64_t auxLd = 0;
  uint32_t alignment = 0; ///< what the heuristic was told

  bool has(int bits) const { return epilogue != CUBLASLT_EPILOGUE_DEFAULT && (epilogue & bits); }
  bool hasBias() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  /// The gradient of a bias, made of factor A or B.
  bool sumsA() const { return epilogue == CUBLASLT_EPILOGUE_BGRADA; }
  bool sumsB() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool hasAux() const { return has(128); }
  bool readsAux() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment = 256, reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};
constexpr int offered = 4, fastest = 2;

/// Whether the types are a row of the documentation's table.
bool supported(const Operation &op, const Layout &a, const Layout &b, const Layout &d) {
  if (op.compute != CUBLAS_COMPUTE_32F || op.scale != CUDA_R_32F || a.type != b.type)
    return false;
  const char *refused = getenv("FAKE_BLAS_REFUSE");
  if (refused && atoi(refused) == int(op.epilogue))
    return false;
  return d.type == a.type || d.type == CUDA_R_32F;
}

void checkSizes(const Operation &op, const Layout &a, const Layout &b, const Layout &d) {
  uint64_t m = op.transA ? a.columns : a.rows, k = op.transA ? a.rows : a.columns;
  uint64_t n = op.transB ? b.rows : b.columns, depth = op.transB ? b.columns : b.rows;
  if (m != d.rows || n != d.columns || k != depth || a.batch != d.batch || b.batch != d.batch)
    wrong("a product of %lu x %lu and %lu x %lu gives %lu x %lu", (unsigned long)m,
          (unsigned long)k, (unsigned long)depth, (unsigned long)n, (unsigned long)d.rows,
          (unsigned long)d.columns);
  if (op.hasAux() && (op.auxLd < int64_t(d.rows) || op.auxLd % 8))
    wrong("what gelu is taken of has rows of %lu, %ld apart", (unsigned long)d.rows,
          long(op.auxLd));
  // Only of a factor whose summed index is not contiguous, and not of one row or column.
  if ((op.sumsA() && (op.transA || m < 2 || k < 2)) || (op.sumsB() && (!op.transB || n < 2 || k < 2)))
    wrong("epilogue %d of a product of %lu x %lu%s and %lu x %lu%s", int(op.epilogue),
          (unsigned long)m, (unsigned long)k, op.transA ? " transposed" : "", (unsigned long)k,
          (unsigned long)n, op.transB ? " transposed" : "");
  if (op.epilogue != CUBLASLT_EPILOGUE_DEFAULT && d.batch != 1)
    wrong("an epilogue of %d products", d.batch);
}

void checkAligned(const char *what, const void *address, size_t alignment) {
  if (!alignment || reinterpret_cast<uintptr_t>(address) % alignment)
    wrong("%s is at %p, not at a multiple of %zu bytes", what, address, alignment);
}

/// Reads and writes of one product, which it adds to `accesses`.
class Operands {
public:
  explicit Operands(const Operation &op) : op(op) {}
  void read(const char *what, const void *address, size_t bytes) {
    add(Access::Read, what, address, bytes);
  }
  void write(const char *what, const void *address, size_t bytes) {
    add(Access::Write, what, address, bytes);
  }
  /// Nothing that is written overlaps anything else, but for `same`, which may be `as`.
  void checkApart(const void *same, const void *as) const {
    for (const Access &written : accesses)
      for (const Access &other : accesses)
        if (&written != &other && written.kind == Access::Write &&
            written.begin < other.begin + other.bytes && other.begin < written.begin + written.bytes &&
            !(same == as && written.begin == CUdeviceptr(as) && other.begin == CUdeviceptr(same)))
          wrong("a product writes %zu bytes at %llx and has %zu at %llx", written.bytes,
                (unsigned long long)written.begin, other.bytes, (unsigned long long)other.begin);
  }
  std::vector<Access> accesses;

private:
  void add(Access::Kind kind, const char *what, const void *address, size_t bytes) {
    checkRange(what, CUdeviceptr(address), bytes);
    checkAligned(what, address, op.alignment);
    accesses.push_back({kind, CUdeviceptr(address), bytes});
  }
  const Operation &op;
};
} // namespace

extern "C" {

size_t cublasLtGetVersion() {
  const char *text = getenv("FAKE_BLAS_VERSION");
  return text ? size_t(atoll(text)) : 130000;
}
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "not supported";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  return *handle = cublasLtHandle_t(malloc(1)), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return free(handle), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  auto *operation = new Operation;
  operation->compute = compute;
  operation->scale = scale;
  return *made = cublasLtMatmulDesc_t(operation), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  return delete (Operation *)made, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  auto *op = (Operation *)handle;
  auto take = [&](auto &to) {
    if (bytes != sizeof(to))
      wrong("attribute %d of a product has %zu bytes, not %zu", int(attribute), sizeof(to), bytes);
    memcpy(&to, value, bytes);
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    take(op->transA);
    break;
  case CUBLASLT_MATMUL_DESC_TRANSB:
    take(op->transB);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    take(op->epilogue);
    break;
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    take(op->bias);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    take(op->aux);
    break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    take(op->auxLd);
    break;
  default:
    wrong("attribute %d of a product", int(attribute));
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  if (ld < int64_t(rows))
    wrong("a matrix of %lu rows lies %ld elements apart", (unsigned long)rows, long(ld));
  return *made = cublasLtMatrixLayout_t(new Layout{type, rows, columns, ld}), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  return delete (Layout *)made, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t) {
  auto *layout = (Layout *)handle;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    memcpy(&layout->batch, value, sizeof(layout->batch));
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    memcpy(&layout->stride, value, sizeof(layout->stride));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  return *made = cublasLtMatmulPreference_t(new Preference), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  return delete (Preference *)made, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, size_t) {
  auto *preference = (Preference *)handle;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    memcpy(&preference->workspace, value, sizeof(preference->workspace));
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    memcpy(&preference->reductions, value, sizeof(preference->reductions));
  else
    memcpy(&preference->alignment, value, sizeof(preference->alignment));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t layoutA,
                                              cublasLtMatrixLayout_t layoutB, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t layoutD,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
  auto &op = *(Operation *)operation;
  auto &a = *(Layout *)layoutA, &b = *(Layout *)layoutB, &d = *(Layout *)layoutD;
  *found = 0;
  checkSizes(op, a, b, d);
  op.alignment = ((Preference *)preference)->alignment;
  if (((Preference *)preference)->reductions & ~unsigned(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
    wrong("sums along k may be added in the type of the result");
  // Pieces of 16 bytes are what fast kernels read.
  if (op.hasBias() || op.sumsA() || op.sumsB())
    checkAligned("a bias or its gradient", op.bias, op.alignment);
  if (op.hasAux())
    checkAligned("what gelu is taken of", op.aux, 16);
  if (!supported(op, a, b, d))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *found < std::min(wanted, offered); ++*found) {
    cublasLtMatmulHeuristicResult_t &result = results[*found];
    memset(&result, 0, sizeof(result));
    result.algo.data[0] = uint64_t(*found);
    result.algo.data[7] = ~uint64_t(0) - d.rows; // of this product
    result.workspaceSize = ((Preference *)preference)->workspace;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t layoutA,
                                       cublasLtMatrixLayout_t layoutB, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t layoutD,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result) {
  auto &d = *(Layout *)layoutD;
  checkSizes(*(Operation *)operation, *(Layout *)layoutA, *(Layout *)layoutB, d);
  memset(result, 0, sizeof(*result));
  return algorithm->data[0] < offered && algorithm->data[7] == ~uint64_t(0) - d.rows
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t layoutA, const void *b,
                              cublasLtMatrixLayout_t layoutB, const void *beta, const void *c,
                              cublasLtMatrixLayout_t layoutC, void *d,
                              cublasLtMatrixLayout_t layoutD, const cublasLtMatmulAlgo_t *algorithm,
                              void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  auto &op = *(Operation *)operation;
  auto &x = *(Layout *)layoutA, &y = *(Layout *)layoutB, &z = *(Layout *)layoutD;
  checkStream("cublasLtMatmul", CUstream(stream));
  checkSizes(op, x, y, z);
  auto number = [](const void *value) { return *static_cast<const float *>(value); };
  bool adds = number(beta) != 0;
  if (number(alpha) != 1 || (adds && op.readsAux()))
    wrong("a product with alpha %g, beta %g and epilogue %d", double(number(alpha)),
          double(number(beta)), int(op.epilogue));
  if (algorithm->data[0] >= offered || algorithm->data[7] != ~uint64_t(0) - z.rows)
    wrong("a product runs an algorithm that is not its own");
  launchOfLibrary("algorithm " + std::to_string(algorithm->data[0]) + " of a product of " +
                  std::to_string(z.rows) + " x " + std::to_string(z.columns) + " with epilogue " +
                  std::to_string(int(op.epilogue)));
  Operands operands(op);
  operands.read("factor of a product", a, x.bytes());
  operands.read("factor of a product", b, y.bytes());
  operands.write("product", d, z.bytes());
  if (adds)
    operands.read("addend of a product", c, ((Layout *)layoutC)->bytes());
  if (op.hasBias())
    operands.read("bias of a product", op.bias, z.rows * z.width());
  if (op.sumsA() || op.sumsB())
    operands.write("gradient of a bias", const_cast<void *>(op.bias),
                   (op.sumsA() ? z.rows : z.columns) * z.width());
  if (op.hasAux()) {
    size_t bytes = size_t(int64_t(z.columns - 1) * op.auxLd + int64_t(z.rows)) * z.width();
    if (op.readsAux())
      operands.read("what gelu was taken of", op.aux, bytes);
    else
      operands.write("what gelu is taken of", op.aux, bytes);
  }
  checkAligned("workspace of a product", workspace, 256);
  operands.write("workspace of a product", workspace, workspaceBytes);
  operands.checkApart(adds ? c : nullptr, d);
  double ms = algorithm->data[0] == fastest ? 1 : 2 + double(algorithm->data[0]);
  auto compute = [=, beta = number(beta), op = op, x = x, y = y, z = z] {
    Matrix aux{op.aux, z.of(), op.auxLd, 0};
    Epilogue epilogue;
    epilogue.bias = op.hasBias() ? op.bias : nullptr;
    epilogue.biasType = z.of();
    epilogue.gelu = op.has(CUBLASLT_EPILOGUE_GELU);
    epilogue.aux = op.hasAux() ? &aux : nullptr;
    epilogue.sumsOfA = op.sumsA() ? const_cast<void *>(op.bias) : nullptr;
    epilogue.sumsOfB = op.sumsB() ? const_cast<void *>(op.bias) : nullptr;
    if (const char *wrong = getenv("FAKE_BLAS_WRONG"); wrong && atoi(wrong) == int(op.epilogue))
      epilogue = {};
    multiply(int64_t(z.rows), int64_t(z.columns), int64_t(op.transA ? x.rows : x.columns), z.batch,
             1, op.transA, x.at(a), op.transB, y.at(b), beta, z.at(c), z.at(d), epilogue);
  };
  submit(CUstream(stream), {"cublasLtMatmul", operands.accesses, [=] {
                              if (computes())
                                compute();
                              {
                                Lock lock(mutex);
                                busy += ms;
                              }
                              return countLaunch("cublasLtMatmul"), true;
                            }});
  return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
