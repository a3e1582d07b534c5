//===- Tune.cpp - which algorithms of libraries are fastest ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Tune.h"

#include "common/checkpoint/OutputFile.h"
#include "common/monitor/Error.h"
#include "cuda/Rehearsal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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
/// The fastest of some candidates.
struct Fastest {
  size_t candidate = 0;
  float ms = 0;
  float firstMs = -1; ///< the heuristic's choice; -1 where it does not run
};

/// Times calls of libraries on operands that lie one after the other.
class Stopwatch {
public:
  Stopwatch(Space space, CUstream stream) : space(space), stream(stream) {
    MW_CUDA(cuEventCreate, &begin, CU_EVENT_DEFAULT);
    MW_CUDA(cuEventCreate, &end, CU_EVENT_DEFAULT);
  }
  ~Stopwatch() {
    Driver::load().cuEventDestroy(begin);
    Driver::load().cuEventDestroy(end);
  }

  /// An arithmetic unit that is fed zeros is faster than it will be.
  void fill() const { cuda::fill(space, stream); }

  /// A call's operands; empty where there is not enough memory.
  template <typename Call> std::vector<void *> bindOperands(const Call &call) const {
    BoundOperands bound = cuda::bindOperands(call, space.begin);
    return bound.bytes <= space.bytes ? bound.operands : std::vector<void *>();
  }

  /// `run` runs a candidate once, or says that it does not run; nothing where none does.
  template <typename Run> std::optional<Fastest> fastest(size_t candidates, Run run) {
    std::optional<Fastest> best;
    float first = -1;
    for (size_t i = 0; i < candidates; ++i) {
      std::optional<float> ms = time([&] { return run(i); });
      if (i == 0)
        first = ms.value_or(-1);
      if (ms && (!best || *ms < best->ms))
        best = {i, *ms, -1};
    }
    if (best)
      best->firstMs = first;
    return best;
  }

private:
  /// Milliseconds of one run, the least of some; nothing where it does not run.
  template <typename Run> std::optional<float> time(Run run) {
    constexpr int warmUp = 2, runs = 4, rounds = 3;
    for (int i = 0; i < warmUp; ++i)
      if (!run())
        return std::nullopt;
    std::optional<float> best;
    for (int round = 0; round < rounds; ++round) {
      MW_CUDA(cuEventRecord, begin, stream);
      for (int i = 0; i < runs; ++i)
        if (!run())
          return std::nullopt;
      MW_CUDA(cuEventRecord, end, stream);
      MW_CUDA(cuEventSynchronize, end);
      float ms = 0;
      MW_CUDA(cuEventElapsedTime, &ms, begin, end);
      best = std::min(best.value_or(ms / runs), ms / runs);
    }
    return best;
  }

  Space space;
  CUstream stream;
  CUevent begin = nullptr, end = nullptr;
};

/// What has been gained so far.
struct Gain {
  int others = 0;
  double before = 0, after = 0;

  Json add(const Fastest &fastest, size_t candidates) {
    others += fastest.candidate != 0;
    before += fastest.firstMs < 0 ? fastest.ms : fastest.firstMs;
    after += fastest.ms;
    return {{"candidate", fastest.candidate},
            {"of", candidates},
            {"ms", fastest.ms},
            {"heuristic_ms", fastest.firstMs}};
  }
  void say(size_t count, const char *what) const {
    printf("tuned %zu %s: for %d another algorithm than the heuristic's is faster; one run of "
           "each takes %.3f ms, before %.3f ms\n",
           count, what, others, after, before);
  }
};
} // namespace

/// Why `products` has no algorithm for product `i`; empty if it has one.
static std::string missing(const Json &products, const Matmuls &matmuls, int64_t i) {
  if (!products.contains(matmuls.describe(i)))
    return text("it has no product ", matmuls.describe(i));
  algorithmOf(products.at(matmuls.describe(i)).at("algorithm"));
  return "";
}

/// Adds to `products` those that are missing: times the heuristic's candidates.
static void measure(Json &products, Matmuls &matmuls, Stopwatch &watch, CUstream stream) {
  constexpr int candidates = 16;
  Gain gain;
  size_t count = 0;
  for (int64_t i = 0; i < matmuls.size(); ++i) {
    if (missing(products, matmuls, i).empty())
      continue;
    ++count;
    auto algorithms = matmuls.candidates(i, candidates);
    std::vector<void *> operands = watch.bindOperands(matmuls.shape(i));
    if (operands.empty()) {
      // A product of other ranks, larger than all memory of this one.
      products[matmuls.describe(i)] = {{"algorithm", toJson(algorithms.front())}};
      fprintf(stderr,
              "--tune: the arena has no room for the operands of the product %s (%s), "
              "which keeps the heuristic's choice\n",
              matmuls.describe(i).c_str(), matmuls.location(i));
      continue;
    }
    std::optional<Fastest> best = watch.fastest(algorithms.size(), [&](size_t a) {
      return matmuls.tryRun(i, algorithms[a], operands.data(), stream);
    });
    if (!best)
      fail("--tune: cuBLASLt runs none of ", algorithms.size(), " algorithms for the product ",
           matmuls.describe(i), " (", matmuls.location(i), ")");
    Json &product = products[matmuls.describe(i)] = {{"algorithm", toJson(algorithms[best->candidate])}};
    product.update(gain.add(*best, algorithms.size()));
  }
  if (count)
    gain.say(count, "products");
}

/// The number of a call's plan of that name, if cuDNN offers it.
static std::optional<int64_t> planOf(const AttentionGraph &graph, const std::string &name) {
  for (int64_t i = 0; i < graph.candidates(); ++i)
    if (graph.engine(i) == name)
      return i;
  return std::nullopt;
}

/// Why `calls` has no plan for call `i`, which cuDNN makes; empty if it has one.
static std::string missing(const Json &calls, Attentions &attentions, size_t i) {
  if (!calls.contains(attentions.describe(i)))
    return text("it has no ", attentions.describe(i));
  std::string plan = calls.at(attentions.describe(i)).at("plan");
  if (!planOf(*attentions.graph(i), plan))
    return text("cuDNN has no plan ", plan, " for ", attentions.describe(i));
  return "";
}

/// Adds to `calls` those that are missing and that cuDNN makes: times its plans. A plan is known
/// by its name.
static void measure(Json &calls, Attentions &attentions, Stopwatch &watch) {
  Gain gain;
  size_t count = 0;
  for (size_t i = 0; i < attentions.size(); ++i) {
    AttentionGraph *graph = attentions.graph(i);
    if (!graph || missing(calls, attentions, i).empty())
      continue;
    ++count;
    const AttentionEntry &entry = attentions.entry(i);
    Json &call = calls[attentions.describe(i)] = {{"plan", graph->engine()}};
    std::vector<void *> operands = watch.bindOperands(entry);
    if (operands.empty()) {
      fprintf(stderr,
              "--tune: the arena has no room for the operands of %s (%s), which keeps the "
              "heuristic's plan\n",
              attentions.describe(i).c_str(), entry.location.c_str());
      continue;
    }
    auto candidates = size_t(graph->candidates());
    std::optional<Fastest> best = watch.fastest(candidates, [&](size_t candidate) {
      if (graph->candidate() != int64_t(candidate) &&
          !graph->choose(int64_t(candidate), entry.workspaceBytes))
        return false;
      graph->run(operands.data());
      return true;
    });
    if (!best)
      fail("--tune: cuDNN makes none of ", candidates, " plans of ", attentions.describe(i), " (",
           entry.location, ")");
    call["plan"] = graph->engine(int64_t(best->candidate));
    call.update(gain.add(*best, candidates));
  }
  if (count)
    gain.say(count, "calls of attention");
}

//===--- files --------------------------------------------------------------===//

static bool usesCudnn(const Attentions &attentions) {
  for (size_t i = 0; i < attentions.size(); ++i)
    if (attentions.graph(i))
      return true;
  return false;
}

static Json headerOf(const Attentions &attentions, CUdevice device) {
  char name[256] = {};
  MW_CUDA(cuDeviceGetName, name, int(sizeof(name)), device);
  int driver = 0;
  MW_CUDA(cuDriverGetVersion, &driver);
  Json header = {
      {"cublasLt", Blas::load().cublasLtGetVersion()}, {"device", name}, {"driver", driver}};
  if (usesCudnn(attentions))
    header["cudnn"] = cudnnVersion();
  return header;
}

/// Why what is in a file is for something else; empty if it is not.
static std::string mismatch(const Json &stored, const Json &header) {
  for (auto &[key, value] : header.items())
    if (Json had = stored.value(key, Json()); had != value)
      return text("its ", key, " is ", had.dump(), ", not ", value.dump());
  return "";
}

/// Why what is in a file does not serve; empty if it does.
static std::string mismatch(const Json &stored, const Json &header, const Matmuls &matmuls,
                            Attentions &attentions) {
  try {
    if (std::string why = mismatch(stored, header); !why.empty())
      return why;
    for (int64_t i = 0; i < matmuls.size(); ++i)
      if (std::string why = missing(stored.at("products"), matmuls, i); !why.empty())
        return why;
    for (size_t i = 0; i < attentions.size(); ++i)
      if (attentions.graph(i))
        if (std::string why = missing(stored.at("attentions"), attentions, i); !why.empty())
          return why;
  } catch (const std::exception &error) {
    return text("it is not what --tune writes: ", error.what());
  }
  return "";
}

/// The file of --tune cache for this kind of GPU and these versions, whose names it bears.
static std::string cacheFile(const Json &header) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (!(cache && *cache == '/') && !(home && *home == '/'))
    fail(
        "--tune cache: neither XDG_CACHE_HOME nor HOME says where a cache may be; set one, or name "
        "a file");
  std::filesystem::path folder = cache && *cache == '/' ? cache : text(home, "/.cache");
  folder /= "meshwright";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail("--tune cache: cannot make the folder ", folder.string(), ": ", error.message(),
         "; name a file elsewhere");
  std::string name = "tuned";
  for (auto &[key, value] : header.items())
    name += text("-", key, "-", value.is_string() ? value.get<std::string>() : value.dump());
  for (char &letter : name)
    if (!isalnum(static_cast<unsigned char>(letter)) && letter != '.' && letter != '-')
      letter = '_';
  return folder / (name + ".json");
}

/// Rank 0's part: the choice as text, from the file or measured. The cache also keeps what other
/// executables have found.
static std::string choice(Matmuls &matmuls, Attentions &attentions, const std::string &asked,
                          Space space, CUdevice device, CUstream stream) {
  Json header = headerOf(attentions, device), known;
  bool cached = asked == "cache";
  std::string file = cached ? cacheFile(header) : asked;
  std::stringstream words;
  if (std::ifstream in(file); in)
    words << in.rdbuf();
  if (!words.str().empty()) {
    Json stored = Json::parse(words.str(), nullptr, /*allow_exceptions=*/false);
    if (!stored.is_object() || !stored.contains("products"))
      fail("--tune ", file, ": the file is there and is not what --tune writes, which would replace it; "
           "name another, or remove it");
    std::string why = mismatch(stored, header, matmuls, attentions);
    if (why.empty())
      return stored.dump();
    if (cached && mismatch(stored, header).empty())
      known = std::move(stored);
    else
      fprintf(stderr, "--tune %s: %s; tuning again\n", file.c_str(), why.c_str());
  }
  checkWritable(file);
  Stopwatch watch(space, stream);
  watch.fill();
  auto complete = [&](const char *key, auto &...what) {
    Json &list = header[key] =
        known.is_object() ? known.value(key, Json::object()) : Json::object();
    try {
      measure(list, what...);
    } catch (const Json::exception &error) {
      fail("--tune ", file, ": it is not what --tune writes: ", error.what(), "; remove it");
    }
  };
  complete("products", matmuls, watch, stream);
  if (usesCudnn(attentions))
    complete("attentions", attentions, watch);
  OutputFile out(file);
  out.write(header.dump(1) + "\n");
  out.close();
  return header.dump();
}

/// Has a call made by the plan that rank 0 has chosen.
static void take(const Attentions &attentions, size_t number, const std::string &name) {
  AttentionGraph &graph = *attentions.graph(number);
  std::optional<int64_t> plan = planOf(graph, name);
  if (!plan || (*plan != graph.candidate() &&
                !graph.choose(*plan, attentions.entry(number).workspaceBytes)))
    fail("--tune: cuDNN refuses the plan ", name, " that rank 0 has chosen for ",
         attentions.describe(number), " (", attentions.entry(number).location, ")");
}

void tune(Matmuls &matmuls, Attentions &attentions, const std::string &file, Space space,
          CUdevice device, CUstream stream, RankGroup &world, RankStatus &status) {
  std::string words;
  if (world.rank() == 0)
    words = choice(matmuls, attentions, file, space, device, stream);
  auto size = int32_t((words.size() + 3) / 4);
  world.broadcast(ElementType::I32, &size, 1, 0);
  words.resize(size_t(size) * 4, ' ');
  world.broadcast(ElementType::I32, words.data(), size, 0);
  Json chosen = Json::parse(words);
  for (int64_t i = 0; i < matmuls.size(); ++i)
    matmuls.choose(i, algorithmOf(chosen.at("products").at(matmuls.describe(i)).at("algorithm")));
  for (size_t i = 0; i < attentions.size(); ++i)
    if (attentions.graph(i) && chosen.contains("attentions") &&
        chosen["attentions"].contains(attentions.describe(i)))
      take(attentions, i, chosen["attentions"][attentions.describe(i)].at("plan"));
  // Ranks but the first have loaded nothing of it, and what kernels of the library's do behind
  // a product is another matter for each algorithm.
  rehearse(matmuls, attentions, space, status, stream);
  MW_CUDA(cuMemsetD8Async, space.begin, 0, size_t(space.bytes), stream);
  MW_CUDA(cuStreamSynchronize, stream);
}

} // namespace meshwright::cuda
