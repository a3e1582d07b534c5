//===- cuda/ABI.h - what executables for GPUs add to the C interface -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_ABI_H
#define MESHWRIGHT_RUNTIME_CUDA_ABI_H

#include "meshwright/runtime/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

//===--- what the object of an executable for GPUs exports beside them ------===//

/// How each generated kernel is launched, and its name, which ends with a zero.
typedef struct MwKernelShape {
  int32_t operands; ///< addresses it takes
  int32_t blocks, threads;
  int32_t sharedBytes; ///< of shared memory, beside what it declares
} MwKernelShape;
extern const int64_t meshwright_kernel_count;
extern const MwKernelShape meshwright_kernel_shapes[];
extern const char meshwright_kernel_names[];

/// All kernels in the forms that a driver loads: code for GPUs of one architecture (90 is
/// sm_90) and those of its generation that came later, or PTX for all later ones.
typedef struct MwImage {
  int64_t arch, isPtx;
  int64_t begin, size; ///< of its bytes
} MwImage;
extern const int64_t meshwright_image_count;
extern const MwImage meshwright_images[];
extern const char meshwright_image_bytes[];

/// Matrix products of the program, each once: D = op(A) op(B) + C, then the epilogue, of
/// row-major matrices as mw_matmul_mixed has them, with sums in f32.
typedef struct MwProduct {
  int64_t m, n, k, lda, ldb, ldd, batch, strideA, strideB, strideD;
  int64_t transA, transB;
  int64_t factors, result; ///< MwElementType; all but A and B have the result's
  int64_t epilogue;        ///< of MwEpilogue
  int64_t alignment;       ///< bytes, a power of two that divides all addresses
} MwProduct;
enum MwEpilogue {
  MW_ADDEND = 1,        ///< C, which lies as D and may be D; zero without
  MW_BIAS = 2,          ///< a row [n] is added
  MW_GELU = 4,          ///< in its tanh form
  MW_PREACTIVATION = 8, ///< what gelu is taken of is written too, to memory that lies as D
  MW_GELU_GRAD = 16,    ///< D is multiplied by the derivative of gelu at what lies there
  MW_SUM_A = 32,        ///< the sums [m] of op(A) over k are written; A is stored k first
  MW_SUM_B = 64         ///< the sums [n] of op(B) over k are written; B is stored k first
};
extern const int64_t meshwright_product_count;
extern const MwProduct meshwright_products[];
/// Where in the IR each comes from, the first one; each ends with a zero.
extern const char meshwright_product_locations[];

//===--- what the runtime of GPUs exports beside the host's ------------------===//

/// Scratch bytes of a product: 32 MiB, NVIDIA's advice for Hopper, from an address that 256
/// divides.
#define MW_PRODUCT_WORKSPACE ((32 << 20) + 256 - MW_ALIGNMENT)

/// Product `number` of the table. `operands` are the addresses of A, B, D, C, the bias or
/// the sums of a factor, the other operand of the epilogue, and the workspace; null for those it does not have.
void mw_product(MwContext *context, int32_t number, void *const *operands);

/// Launches kernel `kernel` of the table on the addresses in `operands`. Like all calls of a
/// program, it is enqueued on a stream and returns at once.
void mw_launch_kernel(MwContext *context, int32_t kernel, void *const *operands);
/// Lets cuDNN make the call of attention with number `call` in the plan's "attentions", on
/// the addresses of q, k, v, out, lse and scratch memory, or of dout, q, k, v, out, lse, dq,
/// dk, dv and scratch memory. Returns 0 if cuDNN cannot make it, which the runtime has
/// reported at the start; without a fallback in the plan the run has ended there.
int32_t mw_cudnn_attention(MwContext *context, int32_t call, void *const *operands);
void mw_copy(MwContext *context, void *to, const void *from, int64_t bytes);
void mw_store(MwContext *context, int32_t *to, int32_t value);
/// Waits for what is enqueued on the stream, and reads a number that says how the program goes on. Such a
/// program is not captured.
int32_t mw_load(MwContext *context, const int32_t *from);

#ifdef __cplusplus
}
#endif

#endif // MESHWRIGHT_RUNTIME_CUDA_ABI_H
