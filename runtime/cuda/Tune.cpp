//===- Tune.cpp - which algorithm of cuBLASLt is fastest ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Tune.h"

#include "common/ElementType.h"
#include "common/Error.h"
#include "common/OutputFile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace meshwright::cuda {

using Json = nlohmann::ordered_json;

//===--- algorithms as text -------------------------------------------------===//

// cuBLASLt lets them be stored as they are and used with the same version of it.
static Json toJson(const cublasLtMatmulAlgo_t &algorithm) {
  Json words = Json::array();
  for (uint64_t word : algorithm.data)
    words.push_back(word);
  return words;
}

static cublasLtMatmulAlgo_t algorithmOf(const Json &words) {
  cublasLtMatmulAlgo_t algorithm = {};
  if (words.size() != std::size(algorithm.data))
    throw std::runtime_error("an algorithm is so many words: " +
                             std::to_string(std::size(algorithm.data)));
  for (size_t i = 0; i < words.size(); ++i)
    algorithm.data[i] = words.at(i).get<uint64_t>();
  return algorithm;
}

//===--- timing -------------------------------------------------------------===//

namespace {
/// Times products on operands that lie one after the other.
class Stopwatch {
public:
  Stopwatch(Matmuls &matmuls, Space space, CUstream stream)
      : matmuls(matmuls), space(space), stream(stream) {
    MW_CUDA(cuEventCreate, &begin, CU_EVENT_DEFAULT);
    MW_CUDA(cuEventCreate, &end, CU_EVENT_DEFAULT);
  }
  ~Stopwatch() {
    Driver::load().cuEventDestroy(begin);
    Driver::load().cuEventDestroy(end);
  }

  /// Numbers about as large as 1, of both signs, in each of the types that products
  /// have: an arithmetic unit that is fed zeros is faster than it will be.
  void fill() {
    std::vector<uint16_t> block(size_t(std::min<int64_t>(space.bytes, 64 << 20) / 2));
    uint32_t state = 1;
    for (uint16_t &half : block) {
      state = state * 1664525 + 1013904223;
      half = uint16_t((state >> 16 & 0x8000) | 0x3f00 | (state >> 24 & 0x7f));
    }
    int64_t size = int64_t(block.size() * 2);
    if (!size)
      return;
    MW_CUDA(cuMemcpyHtoDAsync, space.begin, block.data(), size_t(size), stream);
    // The rest within the GPU's memory, which is faster by far: twice as much each time.
    for (int64_t at = size; at < space.bytes; at *= 2)
      MW_CUDA(cuMemcpyDtoDAsync, space.begin + CUdeviceptr(at), space.begin,
              size_t(std::min(at, space.bytes - at)), stream);
    MW_CUDA(cuStreamSynchronize, stream);
  }

  /// Says where a product's operands are; false where there is not enough memory.
  bool place(int64_t number) {
    const MwProduct &p = matmuls.shape(number);
    int64_t at = 0;
    auto next = [&](bool is, int64_t elements, int64_t type) -> void * {
      if (!is)
        return nullptr;
      int64_t here = at;
      at += (elements * bytesOf(ElementType(type)) + 255) / 256 * 256;
      return reinterpret_cast<void *>(space.begin + CUdeviceptr(here));
    };
    auto matrix = [&](bool is, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                      int64_t type) {
      return next(is, (p.batch - 1) * stride + (rows - 1) * ld + columns, type);
    };
    bool beside = p.epilogue & (MW_PREACTIVATION | MW_GELU_GRAD);
    operands[0] = matrix(true, p.transA ? p.k : p.m, p.transA ? p.m : p.k, p.lda, p.strideA, p.factors);
    operands[1] = matrix(true, p.transB ? p.n : p.k, p.transB ? p.k : p.n, p.ldb, p.strideB, p.factors);
    operands[2] = matrix(true, p.m, p.n, p.ldd, p.strideD, p.result);
    operands[3] = matrix(p.epilogue & MW_ADDEND, p.m, p.n, p.ldd, p.strideD, p.result);
    operands[4] = next(p.epilogue & MW_BIAS, p.n, p.result);
    operands[5] = matrix(beside, p.m, p.n, p.ldd, p.strideD, p.result);
    operands[6] = reinterpret_cast<void *>(space.begin + CUdeviceptr(at));
    return at + MW_PRODUCT_WORKSPACE <= space.bytes;
  }

  /// Milliseconds of one run, the least of some; nothing where it does not run.
  std::optional<float> time(int64_t number, const cublasLtMatmulAlgo_t &algorithm) {
    constexpr int warmUp = 2, runs = 4, rounds = 3;
    for (int i = 0; i < warmUp; ++i)
      if (!matmuls.tryRun(number, algorithm, operands, stream))
        return std::nullopt;
    std::optional<float> best;
    for (int round = 0; round < rounds; ++round) {
      MW_CUDA(cuEventRecord, begin, stream);
      for (int i = 0; i < runs; ++i)
        if (!matmuls.tryRun(number, algorithm, operands, stream))
          return std::nullopt;
      MW_CUDA(cuEventRecord, end, stream);
      MW_CUDA(cuEventSynchronize, end);
      float ms = 0;
      MW_CUDA(cuEventElapsedTime, &ms, begin, end);
      best = std::min(best.value_or(ms / runs), ms / runs);
    }
    return best;
  }

private:
  Matmuls &matmuls;
  Space space;
  CUstream stream;
  CUevent begin = nullptr, end = nullptr;
  void *operands[7] = {};
};
} // namespace

/// Times the heuristic's candidates for all products.
static Json measure(Matmuls &matmuls, Space space, CUstream stream) {
  constexpr int candidates = 16;
  Stopwatch watch(matmuls, space, stream);
  watch.fill();
  Json products = Json::object();
  int others = 0;
  double before = 0, after = 0;
  for (int64_t i = 0; i < matmuls.size(); ++i) {
    auto algorithms = matmuls.candidates(i, candidates);
    if (!watch.place(i)) {
      // A product of other ranks, larger than all memory of this one.
      products[matmuls.describe(i)] = {{"algorithm", toJson(algorithms.front())}};
      fprintf(stderr, "--tune: the arena has no place for the operands of the product %s (%s), "
                      "which keeps the heuristic's choice\n",
              matmuls.describe(i).c_str(), matmuls.location(i));
      continue;
    }
    size_t best = 0;
    std::optional<float> first, least;
    for (size_t a = 0; a < algorithms.size(); ++a) {
      std::optional<float> ms = watch.time(i, algorithms[a]);
      if (a == 0)
        first = ms;
      if (ms && (!least || *ms < *least)) {
        least = ms;
        best = a;
      }
    }
    if (!least)
      fail("--tune: cuBLASLt runs none of ", algorithms.size(), " algorithms for the product ",
           matmuls.describe(i), " (", matmuls.location(i), ")");
    others += best != 0;
    before += first.value_or(*least);
    after += *least;
    products[matmuls.describe(i)] = {{"algorithm", toJson(algorithms[best])},
                                     {"candidate", best},
                                     {"of", algorithms.size()},
                                     {"ms", *least},
                                     {"heuristic_ms", first.value_or(-1)}};
  }
  MW_CUDA(cuMemsetD8Async, space.begin, 0, size_t(space.bytes), stream);
  MW_CUDA(cuStreamSynchronize, stream);
  printf("tuned %lld products: for %d another algorithm than the heuristic's is faster; one run of "
         "each takes %.3f ms, before %.3f ms\n",
         static_cast<long long>(matmuls.size()), others, after, before);
  return products;
}

//===--- files --------------------------------------------------------------===//

static Json headerOf(CUdevice device) {
  char name[256] = {};
  MW_CUDA(cuDeviceGetName, name, int(sizeof(name)), device);
  return {{"cublasLt", Blas::load().cublasLtGetVersion()}, {"device", name}};
}

/// Why what is in a file does not serve; empty if it does.
static std::string mismatch(const Json &stored, const Json &header, const Matmuls &matmuls) {
  try {
    for (auto &[key, value] : header.items())
      if (stored.at(key) != value)
        return text("its ", key, " is ", stored.at(key).dump(), ", not ", value.dump());
    for (int64_t i = 0; i < matmuls.size(); ++i) {
      const Json &products = stored.at("products");
      if (!products.contains(matmuls.describe(i)))
        return text("it has no product ", matmuls.describe(i));
      algorithmOf(products.at(matmuls.describe(i)).at("algorithm"));
    }
  } catch (const std::exception &error) {
    return text("it is not what --tune writes: ", error.what());
  }
  return "";
}

/// Rank 0's part: the choice as text, from the file or measured.
static std::string choice(Matmuls &matmuls, const std::string &file, Space space, CUdevice device,
                          CUstream stream) {
  Json header = headerOf(device);
  std::ifstream in(file);
  if (in) {
    std::stringstream words;
    words << in.rdbuf();
    Json stored = Json::parse(words.str(), nullptr, /*allow_exceptions=*/false);
    std::string why = mismatch(stored, header, matmuls);
    if (why.empty())
      return stored.dump();
    fprintf(stderr, "--tune %s: %s; tuning again\n", file.c_str(), why.c_str());
  }
  checkWritable(file);
  header["products"] = measure(matmuls, space, stream);
  OutputFile out(file);
  out.write(header.dump(1) + "\n");
  out.close();
  return header.dump();
}

void tune(Matmuls &matmuls, const std::string &file, Space space, CUdevice device, CUstream stream,
          Communicator &world) {
  std::string words;
  if (world.rank() == 0)
    words = choice(matmuls, file, space, device, stream);
  auto size = int32_t((words.size() + 3) / 4);
  world.broadcast(ElementType::I32, &size, 1, 0);
  words.resize(size_t(size) * 4, ' ');
  world.broadcast(ElementType::I32, words.data(), size, 0);
  Json chosen = Json::parse(words);
  for (int64_t i = 0; i < matmuls.size(); ++i)
    matmuls.choose(i, algorithmOf(chosen.at("products").at(matmuls.describe(i)).at("algorithm")));
}

} // namespace meshwright::cuda
