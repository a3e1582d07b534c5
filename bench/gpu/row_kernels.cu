// Row kernels at the shapes of the benchmarks, in forms that the generator does not make yet, beside a copy of as many bytes.
//   norm: dx = r + gradient of layer norm or RMS norm, with the sums for the gradients of scale and shift, a warp a row, row in registers
//   loss: the gradient of cross-entropy in place of the logits, the row in shared memory of a cluster, so that it is read once
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s:%d %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(e_)); exit(1); } } while (0)
using bf16 = __nv_bfloat16;
namespace cg = cooperative_groups;

__device__ __forceinline__ float2 up(uint32_t v) { return make_float2(__uint_as_float(v << 16), __uint_as_float(v & 0xFFFF0000u)); }
__device__ __forceinline__ uint32_t down(float a, float b) { __nv_bfloat162 v = __floats2bfloat162_rn(a, b); return *(uint32_t *)&v; }
__device__ __forceinline__ float warpSum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); return v; }

// W columns, VEC = ceil(W / 256) vectors of 8 a lane. The last vector may be beyond the row.
template <int W, bool LAYER, int WARPS, int MINB>
__global__ void __launch_bounds__(WARPS * 32, MINB) normBackward(const bf16 *x, const bf16 *dy, const bf16 *r, const float *gamma, bf16 *dx, float *partial, int rows) {
  constexpr int VEC = (W / 8 + 31) / 32;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float dg[VEC * 8], db[LAYER ? VEC * 8 : 1];
  for (int i = 0; i < VEC * 8; ++i) dg[i] = 0;
  if (LAYER) for (int i = 0; i < VEC * 8; ++i) db[i] = 0;
  for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
    uint4 vx[VEC], vy[VEC], vr[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      int c = (v * 32 + lane) * 8;
      bool in = W % 256 == 0 || c < W;
      size_t at = (size_t)row * W + c;
      vx[v] = in ? *(const uint4 *)(x + at) : make_uint4(0, 0, 0, 0);
      vy[v] = in ? *(const uint4 *)(dy + at) : make_uint4(0, 0, 0, 0);
      vr[v] = in ? *(const uint4 *)(r + at) : make_uint4(0, 0, 0, 0);
    }
    float s = 0, q = 0;
#pragma unroll
    for (int v = 0; v < VEC; ++v)
#pragma unroll
      for (int j = 0; j < 4; ++j) { float2 f = up((&vx[v].x)[j]); s += f.x + f.y; q += f.x * f.x + f.y * f.y; }
    float mean = LAYER ? warpSum(s) / W : 0.f;
    float var = warpSum(q) / W - mean * mean, inv = rsqrtf(var + 1e-5f);
    float a = 0, b = 0;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      int c = (v * 32 + lane) * 8;
      bool in = W % 256 == 0 || c < W;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float2 f = up((&vx[v].x)[j]), g = up((&vy[v].x)[j]), w = in ? *(const float2 *)(gamma + c + j * 2) : make_float2(0, 0);
        float hx = (f.x - mean) * inv, hy = (f.y - mean) * inv;
        dg[v * 8 + j * 2] += g.x * hx; dg[v * 8 + j * 2 + 1] += g.y * hy;
        if (LAYER) { db[v * 8 + j * 2] += g.x; db[v * 8 + j * 2 + 1] += g.y; a += g.x * w.x + g.y * w.y; }
        b += g.x * w.x * hx + g.y * w.y * hy;
      }
    }
    a = LAYER ? warpSum(a) / W : 0.f; b = warpSum(b) / W;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      int c = (v * 32 + lane) * 8;
      bool in = W % 256 == 0 || c < W;
      uint4 o;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float2 f = up((&vx[v].x)[j]), g = up((&vy[v].x)[j]), w = in ? *(const float2 *)(gamma + c + j * 2) : make_float2(0, 0), t = up((&vr[v].x)[j]);
        float hx = (f.x - mean) * inv, hy = (f.y - mean) * inv;
        (&o.x)[j] = down(t.x + inv * (g.x * w.x - a - hx * b), t.y + inv * (g.y * w.y - a - hy * b));
      }
      if (in) *(uint4 *)(dx + (size_t)row * W + c) = o;
    }
  }
  __shared__ float sum[(LAYER ? 2 : 1)][W];
  for (int w = 0; w < WARPS; ++w) {
    __syncthreads();
    if (warp == w)
      for (int v = 0; v < VEC; ++v)
        for (int j = 0; j < 8; ++j) {
          int c = (v * 32 + lane) * 8 + j;
          if (c < W) { sum[0][c] = (w ? sum[0][c] : 0) + dg[v * 8 + j]; if (LAYER) sum[1][c] = (w ? sum[1][c] : 0) + db[v * 8 + j]; }
        }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < (LAYER ? 2 : 1) * W; i += blockDim.x) partial[(size_t)blockIdx.x * (LAYER ? 2 : 1) * W + i] = (&sum[0][0])[i];
}

// Each cluster a row at a time; each block of it has V / CLUSTER columns in shared memory.
template <int CLUSTER, int THREADS>
__global__ void __launch_bounds__(THREADS) lossGradient(bf16 *logits, const int *target, float weight, float *loss, int rows, int V) {
  extern __shared__ __align__(128) uint8_t raw[];
  uint4 *part = (uint4 *)raw;
  __shared__ float2 all[CLUSTER];
  __shared__ float2 warps[THREADS / 32];
  __shared__ alignas(8) uint64_t bar;
  auto cluster = cg::this_cluster();
  int rank = CLUSTER == 1 ? 0 : cluster.block_rank(), columns = V / CLUSTER, vectors = columns / 8;
  uint32_t barAt = (uint32_t)__cvta_generic_to_shared(&bar), partAt = (uint32_t)__cvta_generic_to_shared(part);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(barAt));
  __syncthreads();
  int phase = 0;
  for (int row = blockIdx.x / CLUSTER; row < rows; row += gridDim.x / CLUSTER, phase ^= 1) {
    bf16 *mine = logits + (size_t)row * V + rank * columns;
    if (threadIdx.x == 0) {
      asm volatile("fence.proxy.async.shared::cta;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barAt), "r"(columns * 2) : "memory");
      for (int at = 0; at < columns * 2; at += 16384) {
        int size = min(16384, columns * 2 - at);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(partAt + at), "l"((const char *)mine + at), "r"(size), "r"(barAt) : "memory");
      }
    }
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(barAt), "r"(phase) : "memory");
    float m = -INFINITY, s = 0;
    for (int i = threadIdx.x; i < vectors; i += THREADS) {
      uint4 v = part[i];
      float2 f[4] = {up(v.x), up(v.y), up(v.z), up(v.w)};
      float most = m;
      for (int j = 0; j < 4; ++j) most = fmaxf(most, fmaxf(f[j].x, f[j].y));
      float t = 0;
      for (int j = 0; j < 4; ++j) t += __expf(f[j].x - most) + __expf(f[j].y - most);
      s = s * __expf(m - most) + t; m = most;
    }
    auto merge = [](float2 a, float2 b) { float m = fmaxf(a.x, b.x); return make_float2(m, (a.x == -INFINITY ? 0 : a.y * __expf(a.x - m)) + (b.x == -INFINITY ? 0 : b.y * __expf(b.x - m))); };
    float2 p = make_float2(m, s);
    for (int o = 16; o; o >>= 1) p = merge(p, make_float2(__shfl_xor_sync(~0u, p.x, o), __shfl_xor_sync(~0u, p.y, o)));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = p;
    __syncthreads();
    if (threadIdx.x < 32) {
      p = threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : make_float2(-INFINITY, 0);
      for (int o = 16; o; o >>= 1) p = merge(p, make_float2(__shfl_xor_sync(~0u, p.x, o), __shfl_xor_sync(~0u, p.y, o)));
      if (CLUSTER == 1) { if (threadIdx.x == 0) all[0] = p; }
      else if (threadIdx.x < CLUSTER) *cluster.map_shared_rank(&all[rank], threadIdx.x) = p;
    }
    if (CLUSTER == 1) __syncthreads(); else cluster.sync();
    p = all[0];
    for (int i = 1; i < CLUSTER; ++i) p = merge(p, all[i]);
    float scale = weight / p.y;
    int t = target[row] - rank * columns;
    for (int i = threadIdx.x; i < vectors; i += THREADS) {
      uint4 v = part[i], o;
      for (int j = 0; j < 4; ++j) {
        float2 f = up((&v.x)[j]);
        float a = __expf(f.x - p.x) * scale, b = __expf(f.y - p.x) * scale;
        int c = i * 8 + j * 2;
        if (c == t) { a -= weight; loss[row] = p.x + logf(p.y) - f.x; }
        if (c + 1 == t) { b -= weight; loss[row] = p.x + logf(p.y) - f.y; }
        (&o.x)[j] = down(a, b);
      }
      *(uint4 *)((char *)mine + (size_t)i * 16) = o;
    }
    if (CLUSTER == 1) __syncthreads(); else cluster.sync(); // `all` and `part` are free again
  }
}
// As the generator has it: a block a row, logits read twice from memory or cache.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) lossTwice(bf16 *logits, const int *target, float weight, float *loss, int rows, int V) {
  __shared__ float2 warps[THREADS / 32];
  __shared__ float2 all;
  int vectors = V / 8;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    uint4 *mine = (uint4 *)(logits + (size_t)row * V);
    float m = -INFINITY, s = 0;
    for (int i = threadIdx.x; i < vectors; i += THREADS) {
      uint4 v = mine[i];
      float2 f[4] = {up(v.x), up(v.y), up(v.z), up(v.w)};
      float most = m;
      for (int j = 0; j < 4; ++j) most = fmaxf(most, fmaxf(f[j].x, f[j].y));
      float t = 0;
      for (int j = 0; j < 4; ++j) t += __expf(f[j].x - most) + __expf(f[j].y - most);
      s = s * __expf(m - most) + t; m = most;
    }
    auto merge = [](float2 a, float2 b) { float m = fmaxf(a.x, b.x); return make_float2(m, (a.x == -INFINITY ? 0 : a.y * __expf(a.x - m)) + (b.x == -INFINITY ? 0 : b.y * __expf(b.x - m))); };
    float2 p = make_float2(m, s);
    for (int o = 16; o; o >>= 1) p = merge(p, make_float2(__shfl_xor_sync(~0u, p.x, o), __shfl_xor_sync(~0u, p.y, o)));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = p;
    __syncthreads();
    if (threadIdx.x < 32) {
      p = threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : make_float2(-INFINITY, 0);
      for (int o = 16; o; o >>= 1) p = merge(p, make_float2(__shfl_xor_sync(~0u, p.x, o), __shfl_xor_sync(~0u, p.y, o)));
      if (threadIdx.x == 0) all = p;
    }
    __syncthreads();
    p = all;
    float scale = weight / p.y;
    int t = target[row];
    for (int i = vectors - 1 - threadIdx.x; i >= 0; i -= THREADS) {
      uint4 v = mine[i], o;
      for (int j = 0; j < 4; ++j) {
        float2 f = up((&v.x)[j]);
        float a = __expf(f.x - p.x) * scale, b = __expf(f.y - p.x) * scale;
        int c = i * 8 + j * 2;
        if (c == t) { a -= weight; loss[row] = p.x + logf(p.y) - f.x; }
        if (c + 1 == t) { b -= weight; loss[row] = p.x + logf(p.y) - f.y; }
        (&o.x)[j] = down(a, b);
      }
      mine[i] = o;
    }
    __syncthreads();
  }
}

__global__ void fillRandom(bf16 *p, size_t n, uint32_t seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint32_t x = (uint32_t)i * 2654435761u + seed; x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; x ^= x >> 16;
    p[i] = __float2bfloat16((float)(int)x * (1.f / 2147483648.f));
  }
}
template <typename F> float median(F f) {
  cudaEvent_t a, b; CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  std::vector<float> times;
  for (int i = 0; i < 30; ++i) { CK(cudaEventRecord(a)); f(); CK(cudaEventRecord(b)); CK(cudaEventSynchronize(b)); float ms; CK(cudaEventElapsedTime(&ms, a, b)); times.push_back(ms); }
  CK(cudaGetLastError());
  std::sort(times.begin(), times.end());
  return times[15];
}
static float up16(bf16 v) { return __bfloat162float(v); }

template <int W, bool LAYER, int WARPS, int MINB> void norm(int rows, int perSm) {
  bf16 *x, *dy, *r, *dx; float *gamma, *partial;
  size_t n = (size_t)rows * W;
  int grid = 132 * perSm;
  CK(cudaMalloc(&x, n * 2)); CK(cudaMalloc(&dy, n * 2)); CK(cudaMalloc(&r, n * 2)); CK(cudaMalloc(&dx, n * 2)); CK(cudaMalloc(&gamma, W * 4)); CK(cudaMalloc(&partial, (size_t)grid * 2 * W * 4));
  fillRandom<<<1024, 256>>>(x, n, 1); fillRandom<<<1024, 256>>>(dy, n, 2); fillRandom<<<1024, 256>>>(r, n, 3);
  std::vector<float> g(W); for (int i = 0; i < W; ++i) g[i] = 1 + 0.01f * (i % 7); CK(cudaMemcpy(gamma, g.data(), W * 4, cudaMemcpyHostToDevice));
  CK(cudaMemset(dx, 0xFF, n * 2));
  float ms = median([&] { normBackward<W, LAYER, WARPS, MINB><<<grid, WARPS * 32>>>(x, dy, r, gamma, dx, partial, rows); });
  // one row against f64
  int row = rows - 3; std::vector<bf16> hx(W), hy(W), hr(W), hd(W);
  for (auto [h, d] : {std::pair<bf16 *, bf16 *>{hx.data(), x}, {hy.data(), dy}, {hr.data(), r}, {hd.data(), dx}}) CK(cudaMemcpy(h, d + (size_t)row * W, W * 2, cudaMemcpyDeviceToHost));
  double s = 0, q = 0, a = 0, b = 0, e = 0, z = 0; for (int i = 0; i < W; ++i) { s += up16(hx[i]); q += (double)up16(hx[i]) * up16(hx[i]); }
  double mean = LAYER ? s / W : 0, inv = 1 / std::sqrt(q / W - mean * mean + 1e-5);
  for (int i = 0; i < W; ++i) { double h = (up16(hx[i]) - mean) * inv; if (LAYER) a += up16(hy[i]) * g[i]; b += up16(hy[i]) * g[i] * h; }
  a /= W; b /= W;
  for (int i = 0; i < W; ++i) { double h = (up16(hx[i]) - mean) * inv, want = up16(hr[i]) + inv * (up16(hy[i]) * g[i] - a - h * b), got = up16(hd[i]); if (!(got == got)) got = 1e9; e += (got - want) * (got - want); z += want * want; }
  printf("{\"kernel\": \"%s norm backward\", \"width\": %d, \"rows\": %d, \"warps\": %d, \"blocks_per_sm\": %d, \"ms\": %.4f, \"tb_per_s\": %.3f, \"error\": %.1e}\n", LAYER ? "layer" : "rms", W, rows, WARPS, perSm, ms, 8.0 * n / ms / 1e9, std::sqrt(e / z));
  fflush(stdout);
  for (void *p : {(void *)x, (void *)dy, (void *)r, (void *)dx, (void *)gamma, (void *)partial}) CK(cudaFree(p));
}

struct Logits {
  int rows, V; bf16 *fresh, *work; int *target; float *loss;
  Logits(int rows, int V) : rows(rows), V(V) {
    size_t n = (size_t)rows * V;
    CK(cudaMalloc(&fresh, n * 2)); CK(cudaMalloc(&work, n * 2)); CK(cudaMalloc(&target, rows * 4)); CK(cudaMalloc(&loss, rows * 4));
    fillRandom<<<1024, 256>>>(fresh, n, 5);
    std::vector<int> t(rows); for (int i = 0; i < rows; ++i) t[i] = (i * 7919) % V; CK(cudaMemcpy(target, t.data(), rows * 4, cudaMemcpyHostToDevice));
  }
  ~Logits() { for (void *p : {(void *)fresh, (void *)work, (void *)target, (void *)loss}) CK(cudaFree(p)); }
  template <typename F> void measure(const char *name, int cluster, int threads, int grid, F launch) {
    CK(cudaMemcpy(work, fresh, (size_t)rows * V * 2, cudaMemcpyDeviceToDevice));
    launch(); CK(cudaGetLastError()); CK(cudaDeviceSynchronize());
    int row = rows - 5; std::vector<bf16> l(V), d(V);
    CK(cudaMemcpy(l.data(), fresh + (size_t)row * V, V * 2, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(d.data(), work + (size_t)row * V, V * 2, cudaMemcpyDeviceToHost));
    double sum = 0, e = 0, z = 0; for (int i = 0; i < V; ++i) sum += std::exp((double)up16(l[i]));
    for (int i = 0; i < V; ++i) { double want = std::exp((double)up16(l[i])) / sum - (i == (row * 7919) % V), got = up16(d[i]); if (!(got == got)) got = 1e9; e += (got - want) * (got - want); z += want * want; }
    float ms = median(launch);
    printf("{\"kernel\": \"loss %s\", \"rows\": %d, \"V\": %d, \"cluster\": %d, \"threads\": %d, \"grid\": %d, \"ms\": %.4f, \"tb_per_s_once\": %.3f, \"error\": %.1e}\n", name, rows, V, cluster, threads, grid, ms, 4.0 * rows * V / ms / 1e9, std::sqrt(e / z));
    fflush(stdout);
  }
  template <int CLUSTER, int THREADS> void once() {
    if (V % (CLUSTER * 8)) return;
    int bytes = V / CLUSTER * 2;
    if (bytes > 225 * 1024) return;
    auto kernel = lossGradient<CLUSTER, THREADS>;
    CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    int perSm; CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, kernel, THREADS, bytes));
    int grid = 132 * perSm / CLUSTER * CLUSTER;
    cudaLaunchConfig_t c = {}; c.gridDim = grid; c.blockDim = THREADS; c.dynamicSmemBytes = bytes;
    cudaLaunchAttribute a[1]; a[0].id = cudaLaunchAttributeClusterDimension; a[0].val.clusterDim.x = CLUSTER; a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1; c.attrs = a; c.numAttrs = 1;
    int fit = 0; CK(cudaOccupancyMaxActiveClusters(&fit, kernel, &c)); if (fit > 0) grid = c.gridDim.x = fit * CLUSTER;
    measure("row in shared memory", CLUSTER, THREADS, grid, [&] { CK(cudaLaunchKernelEx(&c, kernel, work, (const int *)target, 1.0f, loss, rows, V)); });
  }
  template <int THREADS> void twice(int perSm) {
    measure("row read twice", 1, THREADS, 132 * perSm, [&] { lossTwice<THREADS><<<132 * perSm, THREADS>>>(work, target, 1.0f, loss, rows, V); });
  }
};

int main() {
  CK(cudaFree(0));
  bf16 *a, *b; size_t bytes = 512u << 20; CK(cudaMalloc(&a, bytes)); CK(cudaMalloc(&b, bytes)); fillRandom<<<1024, 256>>>(a, bytes / 2, 9);
  float ms = median([&] { CK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice)); });
  printf("{\"kernel\": \"copy\", \"bytes\": %zu, \"tb_per_s\": %.3f}\n", bytes, 2.0 * bytes / ms / 1e9);
  CK(cudaFree(a)); CK(cudaFree(b));
  norm<1600, true, 4, 2>(16384, 2); norm<1600, true, 4, 2>(16384, 4); norm<1600, true, 8, 1>(16384, 1); norm<1600, true, 8, 1>(16384, 2); norm<1600, true, 12, 1>(16384, 1);
  norm<2048, false, 4, 2>(16384, 2); norm<2048, false, 4, 3>(16384, 3); norm<2048, false, 8, 1>(16384, 1); norm<2048, false, 8, 2>(16384, 2); norm<2048, false, 12, 1>(16384, 1);
  for (auto [rows, V] : {std::pair<int, int>{4096, 50304}, {4096, 128256}}) {
    Logits l(rows, V);
    l.twice<1024>(1); l.twice<1024>(2); l.twice<512>(2); l.twice<512>(4); l.twice<256>(8);
    l.once<1, 1024>(); l.once<1, 512>(); l.once<2, 1024>(); l.once<2, 512>(); l.once<4, 1024>(); l.once<4, 512>(); l.once<4, 256>(); l.once<8, 512>(); l.once<8, 256>();
  }
}
