// Grouped products of experts on Hopper: TMA loads, wgmma, warp-specialised, persistent over the tiles of all experts.
//   rows:    out[r, n] = sum_k rows[r, k] W[e(r)][n, k]   (forward; weights K-major)
//            out[r, n] = sum_k rows[r, k] W[e(r)][k, n]   (gradient of rows; weights N-major)
//   weights: dW[e][m, n] (+)= sum over the rows r of e of dy[r, m] x[r, n]
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cmath>
#include <random>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include "wgmma.h"
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s:%d %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(e_)); exit(1); } } while (0)
using bf16 = __nv_bfloat16;
constexpr int BM = 128, BK = 64, MAX_EXPERTS = 256;

__device__ __forceinline__ uint32_t smem(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void barInit(uint64_t *b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(b)), "r"(n)); }
__device__ __forceinline__ void barExpect(uint64_t *b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(b)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void barArrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(b)) : "memory"); }
__device__ __forceinline__ void barWait(uint64_t *b, int phase) {
  asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(smem(b)), "r"(phase) : "memory");
}
__device__ __forceinline__ void load2d(void *dst, const CUtensorMap *map, uint64_t *bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(smem(dst)), "l"(map), "r"(smem(bar)), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ uint64_t descriptor(const void *p, uint32_t lbo, uint32_t sbo) {
  uint64_t d = (uint64_t)((smem(p) & 0x3FFFF) >> 4);
  d |= (uint64_t)(lbo >> 4) << 16;
  d |= (uint64_t)(sbo >> 4) << 32;
  return d | (1ull << 62);
}
template <int BN, int TA, int TB> __device__ __forceinline__ void mma(float (&d)[BN / 2], uint64_t a, uint64_t b, int keep) {
  if constexpr (BN == 256) {
    if constexpr (TA == 0 && TB == 0) wgmma_n256_00(d, a, b, keep);
    else if constexpr (TA == 0) wgmma_n256_01(d, a, b, keep);
    else wgmma_n256_11(d, a, b, keep);
  } else {
    if constexpr (TA == 0 && TB == 0) wgmma_n128_00(d, a, b, keep);
    else if constexpr (TA == 0) wgmma_n128_01(d, a, b, keep);
    else wgmma_n128_11(d, a, b, keep);
  }
}
__device__ __forceinline__ uint32_t pack(float a, float b) {
  __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
  return *(uint32_t *)&v;
}
__device__ __forceinline__ void transposeQuad(uint32_t (&w)[4], int lane) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit <<= 1) {
    bool up = lane & bit;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      int o = i | bit;
      uint32_t got = __shfl_xor_sync(~0u, up ? w[i] : w[o], bit);
      if (up) w[i] = got; else w[o] = got;
    }
  }
}

// Exclusive prefix sums of tiles in `first`, for all threads.
__device__ void schedule(int *first, const int *offsets, int experts, int perUnit, bool byRows) {
  for (int e = threadIdx.x; e < experts; e += blockDim.x)
    first[e + 1] = byRows ? (offsets[e + 1] - offsets[e] + BM - 1) / BM * perUnit : perUnit;
  if (threadIdx.x == 0) first[0] = 0;
  __syncthreads();
  if (threadIdx.x == 0) for (int e = 0; e < experts; ++e) first[e + 1] += first[e];
  __syncthreads();
}
__device__ __forceinline__ int expertOf(const int *first, int experts, int tile) {
  int lo = 0, hi = experts;
  while (hi - lo > 1) { int mid = (lo + hi) / 2; (first[mid] <= tile ? lo : hi) = mid; }
  return lo;
}

// WGRAD: A and B are [rows, M] and [rows, N]. Otherwise A is [rows, K], B of TB == 0 [experts * N, K], of TB == 1 [experts * K, N].
template <int BN, int STAGES, int TB, bool WGRAD, typename Out>
__global__ void __launch_bounds__(384, 1) grouped(const __grid_constant__ CUtensorMap mapA, const __grid_constant__ CUtensorMap mapB,
                                                  const int *offsets, Out *out, int experts, int M, int N, int K, int accumulate) {
  constexpr int TA = WGRAD ? 1 : 0;
  constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES;
  extern __shared__ uint8_t raw[];
  uint8_t *base = (uint8_t *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
  __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
  __shared__ int first[MAX_EXPERTS + 1];
  const int tilesN = N / BN, perUnit = WGRAD ? (M / BM) * tilesN : tilesN;
  if (threadIdx.x == 0)
    for (int s = 0; s < STAGES; ++s) { barInit(&full[s], 1); barInit(&empty[s], 2); }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  schedule(first, offsets, experts, perUnit, !WGRAD);
  const int total = first[experts], group = threadIdx.x / 128;
  int stage = 0, phase = 0;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int tile = blockIdx.x; tile < total; tile += gridDim.x) {
        int e = expertOf(first, experts, tile), local = tile - first[e], begin = offsets[e], end = offsets[e + 1];
        int m, n, steps;
        if (WGRAD) { m = local / tilesN * BM; n = local % tilesN * BN; steps = (end - begin + BK - 1) / BK; }
        else { int rowTiles = (end - begin + BM - 1) / BM; m = begin + local % rowTiles * BM; n = local / rowTiles * BN; steps = K / BK; }
        for (int k = 0; k < steps; ++k) {
          barWait(&empty[stage], phase ^ 1);
          barExpect(&full[stage], STAGE);
          uint8_t *a = base + stage * STAGE, *b = a + A_BYTES;
          if (WGRAD) {
            for (int i = 0; i < BM / 64; ++i) load2d(a + i * 8192, &mapA, &full[stage], m + i * 64, begin + k * BK);
            for (int i = 0; i < BN / 64; ++i) load2d(b + i * 8192, &mapB, &full[stage], n + i * 64, begin + k * BK);
          } else {
            load2d(a, &mapA, &full[stage], k * BK, m);
            if (TB == 0) load2d(b, &mapB, &full[stage], k * BK, e * N + n);
            else for (int i = 0; i < BN / 64; ++i) load2d(b + i * 8192, &mapB, &full[stage], n + i * 64, e * K + k * BK);
          }
          if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int w = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
    float d[BN / 2];
    for (int tile = blockIdx.x; tile < total; tile += gridDim.x) {
      int e = expertOf(first, experts, tile), local = tile - first[e], begin = offsets[e], end = offsets[e + 1];
      int m, n, steps;
      if (WGRAD) { m = local / tilesN * BM; n = local % tilesN * BN; steps = (end - begin + BK - 1) / BK; }
      else { int rowTiles = (end - begin + BM - 1) / BM; m = begin + local % rowTiles * BM; n = local / rowTiles * BN; steps = K / BK; }
      if (steps == 0)
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) d[i] = 0.f;
      int before = -1;
      for (int k = 0; k < steps; ++k) {
        barWait(&full[stage], phase);
        uint8_t *a = base + stage * STAGE, *b = a + A_BYTES;
        if (WGRAD) {
          int valid = end - begin - k * BK;
          if (valid < BK) { // rows of the next expert
            for (int box = 0; box < BM / 64 + BN / 64; ++box)
              for (int i = valid * 128 + (w * 128 + thread) * 16; i < 8192; i += 256 * 16)
                *(uint4 *)(a + box * 8192 + i) = make_uint4(0, 0, 0, 0);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync 1, 256;" ::: "memory");
          }
        }
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < BK / 16; ++kk) {
          uint64_t da = TA ? descriptor(a + w * 8192 + kk * 2048, 8192, 1024) : descriptor(a + w * 64 * 128 + kk * 32, 16, 1024);
          uint64_t db = WGRAD || TB ? descriptor(b + kk * 2048, 8192, 1024) : descriptor(b + kk * 32, 16, 1024);
          mma<BN, TA, WGRAD ? 1 : TB>(d, da, db, k | kk);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (before >= 0) {
          asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
          if (thread == 0) barArrive(&empty[before]);
        }
        before = stage;
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (before >= 0 && thread == 0) barArrive(&empty[before]);
      int row = m + w * 64 + warp * 16 + lane / 4;
      if constexpr (sizeof(Out) == 2) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int r = row + half * 8;
          bool write = WGRAD || r < end;
          bf16 *to = (bf16 *)out + (size_t)(WGRAD ? (size_t)e * M + r : r) * N + n + (lane % 4) * 8;
#pragma unroll
          for (int g = 0; g < BN / 32; ++g) {
            uint32_t v[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) v[q] = pack(d[(4 * g + q) * 4 + half * 2], d[(4 * g + q) * 4 + half * 2 + 1]);
            transposeQuad(v, lane);
            if (write) *(uint4 *)(to + g * 32) = make_uint4(v[0], v[1], v[2], v[3]);
          }
        }
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int r = row + half * 8;
          bool write = WGRAD || r < end;
          float *to = (float *)out + (size_t)(WGRAD ? (size_t)e * M + r : r) * N + n + (lane % 4) * 2;
#pragma unroll
          for (int j = 0; j < BN / 8; ++j)
            if (write) {
              float2 v = make_float2(d[j * 4 + half * 2], d[j * 4 + half * 2 + 1]);
              if (accumulate) { float2 o = *(float2 *)(to + j * 8); v.x += o.x; v.y += o.y; }
              *(float2 *)(to + j * 8) = v;
            }
        }
      }
    }
  }
}


__device__ __forceinline__ void copy16(void *dst, const void *src, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(dst)), "l"(src), "r"(there ? 16 : 0) : "memory");
}
// `rows` rows of 64 elements from `from`, whose rows are `stride` elements apart, as the 128-byte swizzle has them.
template <int THREADS> __device__ __forceinline__ void box(uint8_t *to, const bf16 *from, size_t stride, int rows, int valid) {
  int c = threadIdx.x % 8;
  for (int r = threadIdx.x / 8; r < rows; r += THREADS / 8)
    copy16(to + r * 128 + ((c ^ (r & 7)) * 16), from + (size_t)(r < valid ? r : 0) * stride + c * 8, r < valid);
}
// The same without TMA, mbarriers and roles: every thread copies by cp.async, `STAGES - 1` turns ahead, and multiplies.
// GROUPS warpgroups, each of M_OF * 64 rows of the tile.
template <int BN, int GROUPS, int M_OF, int STAGES, int LAG, int TB, bool WGRAD, typename Out>
__global__ void __launch_bounds__(GROUPS * 128, GROUPS == 1 ? 2 : 1) simple(const bf16 *A, const bf16 *B, const int *offsets, Out *out, int experts, int M, int N, int K, int accumulate) {
  constexpr int AHEAD = STAGES - 1 - LAG, THREADS = GROUPS * 128, BM = GROUPS * M_OF * 64, TA = WGRAD ? 1 : 0;
  constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES;
  extern __shared__ uint8_t raw[];
  uint8_t *base = (uint8_t *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
  __shared__ int first[MAX_EXPERTS + 1];
  const int tilesN = N / BN, perUnit = WGRAD ? (M / BM) * tilesN : tilesN;
  for (int e = threadIdx.x; e < experts; e += blockDim.x) first[e + 1] = WGRAD ? perUnit : (offsets[e + 1] - offsets[e] + BM - 1) / BM * perUnit;
  if (threadIdx.x == 0) first[0] = 0;
  __syncthreads();
  if (threadIdx.x == 0) for (int e = 0; e < experts; ++e) first[e + 1] += first[e];
  __syncthreads();
  const int total = first[experts], w = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  for (int tile = blockIdx.x; tile < total; tile += gridDim.x) {
    int e = expertOf(first, experts, tile), local = tile - first[e], begin = offsets[e], end = offsets[e + 1];
    int m, n, steps;
    if (WGRAD) { m = local / tilesN * BM; n = local % tilesN * BN; steps = (end - begin + BK - 1) / BK; }
    else { int rowTiles = (end - begin + BM - 1) / BM; m = begin + local % rowTiles * BM; n = local / rowTiles * BN; steps = K / BK; }
    auto fetch = [&](int k) {
      uint8_t *a = base + k % STAGES * STAGE, *b = a + A_BYTES;
      if (WGRAD) {
        int valid = end - begin - k * BK;
        for (int i = 0; i < BM / 64; ++i) box<THREADS>(a + i * 8192, A + (size_t)(begin + k * BK) * M + m + i * 64, M, 64, valid);
        for (int i = 0; i < BN / 64; ++i) box<THREADS>(b + i * 8192, B + (size_t)(begin + k * BK) * N + n + i * 64, N, 64, valid);
      } else {
        box<THREADS>(a, A + (size_t)m * K + k * BK, K, BM, end - m);
        if (TB == 0) box<THREADS>(b, B + ((size_t)e * N + n) * K + k * BK, K, BN, BN);
        else for (int i = 0; i < BN / 64; ++i) box<THREADS>(b + i * 8192, B + ((size_t)e * K + k * BK) * N + n + i * 64, N, 64, 64);
      }
    };
    float d[M_OF][BN / 2];
    if (steps == 0)
#pragma unroll
      for (int i = 0; i < M_OF; ++i)
#pragma unroll
        for (int j = 0; j < BN / 2; ++j) d[i][j] = 0.f;
    for (int s = 0; s < AHEAD; ++s) { if (s < steps) fetch(s); asm volatile("cp.async.commit_group;" ::: "memory"); }
    for (int k = 0; k < steps; ++k) {
      asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      // Behind it products of turn k - 1 - LAG are done in all warpgroups, so that their part is free.
      __syncthreads();
      if (k + AHEAD < steps) fetch(k + AHEAD);
      asm volatile("cp.async.commit_group;" ::: "memory");
      uint8_t *a = base + k % STAGES * STAGE, *b = a + A_BYTES;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int kk = 0; kk < BK / 16; ++kk) {
        uint64_t db = WGRAD || TB ? descriptor(b + kk * 2048, 8192, 1024) : descriptor(b + kk * 32, 16, 1024);
#pragma unroll
        for (int i = 0; i < M_OF; ++i) {
          int at = w * M_OF + i;
          uint64_t da = TA ? descriptor(a + at * 8192 + kk * 2048, 8192, 1024) : descriptor(a + at * 64 * 128 + kk * 32, 16, 1024);
          mma<BN, TA, WGRAD ? 1 : TB>(d[i], da, db, k | kk);
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LAG) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int i = 0; i < M_OF; ++i) {
      int row = m + (w * M_OF + i) * 64 + warp * 16 + lane / 4;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int r = row + half * 8;
        bool write = WGRAD || r < end;
        size_t at = (size_t)(WGRAD ? (size_t)e * M + r : r) * N + n;
        if constexpr (sizeof(Out) == 2) {
          bf16 *to = (bf16 *)out + at + (lane % 4) * 8;
#pragma unroll
          for (int g = 0; g < BN / 32; ++g) {
            uint32_t v[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) v[q] = pack(d[i][(4 * g + q) * 4 + half * 2], d[i][(4 * g + q) * 4 + half * 2 + 1]);
            transposeQuad(v, lane);
            if (write) *(uint4 *)(to + g * 32) = make_uint4(v[0], v[1], v[2], v[3]);
          }
        } else {
          float *to = (float *)out + at + (lane % 4) * 2;
#pragma unroll
          for (int j = 0; j < BN / 8; ++j)
            if (write) {
              float2 v = make_float2(d[i][j * 4 + half * 2], d[i][j * 4 + half * 2 + 1]);
              if (accumulate) { float2 o = *(float2 *)(to + j * 8); v.x += o.x; v.y += o.y; }
              *(float2 *)(to + j * 8) = v;
            }
        }
      }
    }
  }
}

static CUtensorMap makeMap(const void *p, uint64_t rows, uint64_t columns, uint32_t boxRows, uint32_t boxColumns) {
  CUtensorMap map;
  cuuint64_t size[2] = {columns, rows}, stride[1] = {columns * 2};
  cuuint32_t box[2] = {boxColumns, boxRows}, ones[2] = {1, 1};
  CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)p, size, stride, box, ones,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r) { printf("cuTensorMapEncodeTiled %d\n", r); exit(1); }
  return map;
}

__global__ void fillRandom(bf16 *p, size_t n, uint32_t seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = (uint32_t)i * 2654435761u + seed; x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; x ^= x >> 16;
    p[i] = __float2bfloat16((float)(int)x * (1.f / 2147483648.f));
  }
}
// mode 0: forward, 1: gradient of rows, 2: gradient of weights
__global__ void naive(const bf16 *a, const bf16 *b, const int *offsets, float *out, int experts, int M, int N, int K, int mode, int rows) {
  int n = blockIdx.x * 32 + threadIdx.x % 32;
  if (mode < 2) {
    int r = blockIdx.y * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    int e = 0;
    while (offsets[e + 1] <= r) ++e;
    float s = 0;
    for (int k = 0; k < K; ++k) s += __bfloat162float(a[(size_t)r * K + k]) * __bfloat162float(mode == 0 ? b[((size_t)e * N + n) * K + k] : b[((size_t)e * K + k) * N + n]);
    out[(size_t)r * N + n] = s;
  } else {
    int m = blockIdx.y * 8 + threadIdx.x / 32, e = blockIdx.z;
    float s = 0;
    for (int r = offsets[e]; r < offsets[e + 1]; ++r) s += __bfloat162float(a[(size_t)r * M + m]) * __bfloat162float(b[(size_t)r * N + n]);
    out[((size_t)e * M + m) * N + n] = s;
  }
}
template <typename T> __global__ void compare(const T *got, const float *want, size_t n, double *sums) {
  double difference = 0, norm = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    double g = (double)(float)got[i], w = want[i];
    if (!(g == g)) g = 1e30;
    difference += (g - w) * (g - w); norm += w * w;
  }
  atomicAdd(&sums[0], difference); atomicAdd(&sums[1], norm);
}

// GROUPS == 0: TMA and roles; otherwise `simple`.
template <int BN, int STAGES, int TB, bool WGRAD, typename Out, int GROUPS = 0, int M_OF = 1, int LAG = 1>
void run(const char *name, const std::vector<int> &counts, int M, int N, int K, const char *routing, int accumulate = 0) {
  int experts = counts.size();
  std::vector<int> off(experts + 1, 0);
  for (int e = 0; e < experts; ++e) off[e + 1] = off[e] + counts[e];
  int rows = off[experts];
  int *offsets; CK(cudaMalloc(&offsets, off.size() * 4)); CK(cudaMemcpy(offsets, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
  size_t na = WGRAD ? (size_t)rows * M : (size_t)rows * K, nb = WGRAD ? (size_t)rows * N : (size_t)experts * N * K;
  size_t no = WGRAD ? (size_t)experts * M * N : (size_t)rows * N;
  bf16 *a, *b; Out *out; float *want; double *sums;
  CK(cudaMalloc(&a, na * 2)); CK(cudaMalloc(&b, nb * 2)); CK(cudaMalloc(&out, no * sizeof(Out))); CK(cudaMalloc(&want, no * 4)); CK(cudaMalloc(&sums, 16));
  fillRandom<<<1024, 256>>>(a, na, 1); fillRandom<<<1024, 256>>>(b, nb, 77);
  CK(cudaMemset(out, accumulate ? 0 : 0xFF, no * sizeof(Out))); CK(cudaMemset(sums, 0, 16));
  CUtensorMap mapA = WGRAD ? makeMap(a, rows, M, 64, 64) : makeMap(a, rows, K, BM, 64);
  CUtensorMap mapB = WGRAD ? makeMap(b, rows, N, 64, 64) : TB == 0 ? makeMap(b, (uint64_t)experts * N, K, BN, 64) : makeMap(b, (uint64_t)experts * K, N, 64, 64);
  constexpr int ROWS = GROUPS ? GROUPS * M_OF * 64 : BM;
  constexpr int SMEM = STAGES * (ROWS + BN) * BK * 2 + 1024;
  const void *kernel;
  if constexpr (GROUPS) kernel = (const void *)simple<BN, GROUPS, M_OF, STAGES, LAG, TB, WGRAD, Out>; else kernel = (const void *)grouped<BN, STAGES, TB, WGRAD, Out>;
  CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
  int perSm = 1; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, kernel, GROUPS ? GROUPS * 128 : 384, SMEM));
  int sms = 132; CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  auto launch = [&] {
    if constexpr (GROUPS) simple<BN, GROUPS, M_OF, STAGES, LAG, TB, WGRAD, Out><<<sms * perSm, GROUPS * 128, SMEM>>>(a, b, offsets, out, experts, M, N, K, accumulate);
    else grouped<BN, STAGES, TB, WGRAD, Out><<<sms, 384, SMEM>>>(mapA, mapB, offsets, out, experts, M, N, K, accumulate);
  };
  launch(); CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
  dim3 grid(N / 32, WGRAD ? M / 8 : (rows + 7) / 8, WGRAD ? experts : 1);
  naive<<<grid, 256>>>(a, b, offsets, want, experts, M, N, K, WGRAD ? 2 : TB, rows);
  compare<Out><<<512, 256>>>(out, want, no, sums);
  CK(cudaDeviceSynchronize());
  double s[2]; CK(cudaMemcpy(s, sums, 16, cudaMemcpyDeviceToHost));
  cudaEvent_t t0, t1; CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
  std::vector<float> times;
  for (int i = 0; i < 30; ++i) { CK(cudaEventRecord(t0)); launch(); CK(cudaEventRecord(t1)); CK(cudaEventSynchronize(t1)); float ms; CK(cudaEventElapsedTime(&ms, t0, t1)); times.push_back(ms); }
  std::sort(times.begin(), times.end());
  float ms = times[15];
  double flops = 2.0 * rows * (WGRAD ? (double)M * N : (double)N * K);
  printf("{\"kernel\": \"%s\", \"form\": \"%s\", \"tile\": \"%dx%d\", \"stages\": %d, \"lag\": %d, \"blocks_per_sm\": %d, \"routing\": \"%s\", \"rows\": %d, \"experts\": %d, \"M\": %d, \"N\": %d, \"K\": %d, \"ms\": %.4f, \"tflops\": %.1f, \"error\": %.2e}\n",
         name, GROUPS ? "cp.async, all threads alike" : "TMA, producer and consumers", ROWS, BN, STAGES, LAG, perSm, routing, rows, experts, M, N, K, ms, flops / ms / 1e9, std::sqrt(s[0] / s[1]));
  fflush(stdout);
  for (void *p : {(void *)a, (void *)b, (void *)out, (void *)want, (void *)sums, (void *)offsets}) CK(cudaFree(p));
}

int main() {
  CK(cudaFree(0));
  std::mt19937 random(1);
  int experts = 64, total = 131072;
  std::vector<int> even(experts, total / experts), uneven(experts, 0), small = {0, 1, 127, 128, 129, 300, 0, 64, 63, 65, 500};
  { std::vector<double> weight(experts); double sum = 0; for (auto &x : weight) { x = std::exp(0.5 * std::normal_distribution<double>()(random)); sum += x; }
    int left = total; for (int e = 0; e < experts; ++e) { uneven[e] = e + 1 == experts ? left : std::min(left, (int)(weight[e] / sum * total)); left -= uneven[e]; } }
  run<256, 4, 0, false, bf16>("forward", small, 0, 512, 256, "small");
  run<256, 4, 1, false, bf16>("gradient of rows", small, 0, 512, 256, "small");
  run<256, 4, 0, true, bf16>("gradient of weights bf16", small, 256, 512, 0, "small");
  run<256, 4, 0, true, float>("gradient of weights f32 +=", small, 256, 512, 0, "small", 1);
  for (auto &[name, counts] : {std::pair<const char *, std::vector<int>>{"even", even}, {"uneven", uneven}}) {
    run<256, 4, 0, false, bf16>("forward", counts, 0, 1024, 2048, name);
    run<256, 4, 0, false, bf16>("forward", counts, 0, 2048, 1024, name);
    run<256, 4, 1, false, bf16>("gradient of rows", counts, 0, 2048, 1024, name);
    run<256, 4, 1, false, bf16>("gradient of rows", counts, 0, 1024, 2048, name);
    run<256, 4, 0, true, bf16>("gradient of weights bf16", counts, 1024, 2048, 0, name);
    run<256, 4, 0, true, float>("gradient of weights f32", counts, 1024, 2048, 0, name);
    run<128, 6, 0, false, bf16>("forward", counts, 0, 1024, 2048, name);
    run<128, 6, 1, false, bf16>("gradient of rows", counts, 0, 2048, 1024, name);
    run<128, 6, 0, true, float>("gradient of weights f32", counts, 1024, 2048, 0, name);
  }
  run<128, 3, 0, false, bf16, 1, 2, 0>("forward", small, 0, 512, 256, "small");
  run<128, 3, 1, false, bf16, 1, 2, 0>("gradient of rows", small, 0, 512, 256, "small");
  run<128, 3, 0, true, bf16, 1, 2, 0>("gradient of weights bf16", small, 256, 512, 0, "small");
  run<128, 3, 0, true, float, 1, 2, 0>("gradient of weights f32 +=", small, 256, 512, 0, "small", 1);
  run<256, 4, 0, true, float, 2, 1>("gradient of weights f32 +=", small, 256, 512, 0, "small", 1);
  for (auto &[name, counts] : {std::pair<const char *, std::vector<int>>{"even", even}, {"uneven", uneven}}) {
    run<128, 3, 0, false, bf16, 1, 2, 0>("forward", counts, 0, 1024, 2048, name);
    run<128, 3, 0, false, bf16, 1, 2, 0>("forward", counts, 0, 2048, 1024, name);
    run<128, 3, 1, false, bf16, 1, 2, 0>("gradient of rows", counts, 0, 2048, 1024, name);
    run<128, 3, 0, true, bf16, 1, 2, 0>("gradient of weights bf16", counts, 1024, 2048, 0, name);
    run<128, 3, 0, true, float, 1, 2, 0>("gradient of weights f32", counts, 1024, 2048, 0, name);
    run<256, 4, 0, false, bf16, 2, 1>("forward", counts, 0, 1024, 2048, name);
    run<256, 4, 0, false, bf16, 2, 1>("forward", counts, 0, 2048, 1024, name);
    run<256, 4, 1, false, bf16, 2, 1>("gradient of rows", counts, 0, 2048, 1024, name);
    run<256, 4, 0, true, bf16, 2, 1>("gradient of weights bf16", counts, 1024, 2048, 0, name);
    run<256, 4, 0, true, float, 2, 1>("gradient of weights f32", counts, 1024, 2048, 0, name);
    run<128, 3, 0, false, bf16, 1, 2, 1>("forward", counts, 0, 1024, 2048, name);
    run<128, 5, 0, false, bf16, 2, 1, 1>("forward", counts, 0, 1024, 2048, name);
    run<256, 4, 0, false, bf16, 2, 1, 0>("forward", counts, 0, 1024, 2048, name);
  }
  std::vector<int> one(1, 8192);
  run<256, 4, 0, false, bf16>("forward", one, 0, 8192, 8192, "one expert");
}
