//===- Binding.cpp - which cores a rank computes on ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Binding.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <hwloc.h>
#include <set>
#include <sstream>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>
#include <utility>

using namespace meshwright;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

/// hwloc's functions that are used. Executables must start where it is not installed.
#define MW_HWLOC_FUNCTIONS(X)                                                                      \
  X(hwloc_get_api_version)                                                                         \
  X(hwloc_topology_init)                                                                           \
  X(hwloc_topology_load)                                                                           \
  X(hwloc_topology_destroy)                                                                        \
  X(hwloc_topology_get_allowed_cpuset)                                                             \
  X(hwloc_get_type_depth)                                                                          \
  X(hwloc_get_nbobjs_by_depth)                                                                     \
  X(hwloc_get_obj_by_depth)                                                                        \
  X(hwloc_bitmap_first)                                                                            \
  X(hwloc_bitmap_next)                                                                             \
  X(hwloc_bitmap_isset)

namespace {
struct Hwloc {
#define MW_DECLARE(name) decltype(&::name) name = nullptr;
  MW_HWLOC_FUNCTIONS(MW_DECLARE)
#undef MW_DECLARE

  bool load() {
    void *library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    bool all = library != nullptr;
#define MW_LOAD(name)                                                                              \
  all = all && (name = reinterpret_cast<decltype(name)>(dlsym(library, #name))) != nullptr;
    MW_HWLOC_FUNCTIONS(MW_LOAD)
#undef MW_LOAD
    // Types of another major version are laid out differently.
    return all && hwloc_get_api_version() >> 16 == HWLOC_API_VERSION >> 16;
  }
};
} // namespace

static std::vector<Core> readCores() {
  std::vector<Core> cores;
  Hwloc hwloc;
  hwloc_topology_t topology = nullptr;
  if (!hwloc.load() || hwloc.hwloc_topology_init(&topology) != 0)
    return cores;
  int depth = -1;
  if (hwloc.hwloc_topology_load(topology) == 0) {
    depth = hwloc.hwloc_get_type_depth(topology, HWLOC_OBJ_CORE);
    // Where nothing is known of cores.
    if (depth < 0)
      depth = hwloc.hwloc_get_type_depth(topology, HWLOC_OBJ_PU);
  }
  hwloc_const_cpuset_t allowed = depth < 0 ? nullptr : hwloc.hwloc_topology_get_allowed_cpuset(topology);
  unsigned count = allowed ? hwloc.hwloc_get_nbobjs_by_depth(topology, depth) : 0;
  for (unsigned i = 0; i < count; ++i) {
    hwloc_obj_t object = hwloc.hwloc_get_obj_by_depth(topology, depth, i);
    Core core;
    for (int thread = hwloc.hwloc_bitmap_first(object->cpuset); thread >= 0;
         thread = hwloc.hwloc_bitmap_next(object->cpuset, thread))
      if (hwloc.hwloc_bitmap_isset(allowed, unsigned(thread)))
        core.threads.push_back(thread);
    core.node = object->nodeset ? hwloc.hwloc_bitmap_first(object->nodeset) : 0;
    for (hwloc_obj_t above = object->parent; above; above = above->parent)
      if (above->type == HWLOC_OBJ_PACKAGE)
        core.package = int(above->logical_index);
    if (!core.threads.empty())
      cores.push_back(core);
  }
  hwloc.hwloc_topology_destroy(topology);
  return cores;
}

namespace {
/// The two ends of a pipe.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (ends[end] >= 0)
      ::close(std::exchange(ends[end], -1));
  }
  int ends[2];
};
} // namespace

/// Ends the child process, whose parent reads `pipe`: the cores, then success.
[[noreturn]] static void tellCores(Pipe &pipe) {
  // What hwloc says when it fails is nothing that users could mend.
  if (int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0)
    dup2(nowhere, STDERR_FILENO);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::string words;
  try {
    for (const Core &core : readCores()) {
      words += text(core.node, " ", core.package, " ", core.threads.size());
      for (int thread : core.threads)
        words += text(" ", thread);
      words += "\n";
    }
  } catch (const std::exception &) {
    _exit(1); // What ends all ranks is the parent's to do.
  }
  for (size_t done = 0; done < words.size();) {
    ssize_t more = write(pipe.ends[1], words.data() + done, words.size() - done);
    if (more < 0 && errno != EINTR)
      _exit(1);
    done += size_t(std::max<ssize_t>(more, 0));
  }
  _exit(0);
}

// hwloc crashes where it cannot allocate, so a process of its own asks it.
std::vector<Core> meshwright::coresOfMachine() {
  std::vector<Core> cores;
  Pipe pipe;
  pid_t child = pipe.ends[0] < 0 ? -1 : fork();
  if (child == 0)
    tellCores(pipe);
  if (child < 0)
    return cores;
  pipe.close(1);
  std::string words;
  char some[4096];
  for (ssize_t count; (count = read(pipe.ends[0], some, sizeof(some))) != 0;) {
    if (count > 0)
      words.append(some, size_t(count));
    else if (errno != EINTR)
      break;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return cores;
  std::istringstream stream(words);
  stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
  size_t threads = 0;
  for (Core core; stream >> core.node >> core.package >> threads; cores.push_back(core)) {
    core.threads.resize(threads);
    for (int &thread : core.threads)
      stream >> thread;
  }
  return cores;
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

namespace {
/// Cores from `begin` to `end`.
struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};
} // namespace

/// Part `number` of `parts` of a range, all as large as can be.
static Range part(Range of, size_t number, size_t parts) {
  return {of.begin + of.size() * number / parts, of.begin + of.size() * (number + 1) / parts};
}

static std::vector<Range> nodesOf(const std::vector<Core> &cores, Range range) {
  std::vector<Range> nodes;
  for (size_t i = range.begin; i < range.end; ++i)
    if (nodes.empty() || cores[i].node != cores[i - 1].node)
      nodes.push_back({i, i + 1});
    else
      nodes.back().end = i + 1;
  return nodes;
}

/// How many threads cores have room for: one each, or all of their hardware's where ranks want more
/// threads than there are cores.
static size_t roomOf(const std::vector<Core> &cores, Range range, bool all) {
  size_t room = 0;
  for (size_t i = range.begin; i < range.end; ++i)
    room += all ? cores[i].threads.size() : 1;
  return room;
}

/// Of consecutive nodes of a range so few as have room for `threads`, in few packages.
static Range fewestNodes(const std::vector<Core> &cores, Range range, size_t threads, bool all) {
  std::vector<Range> nodes = nodesOf(cores, range);
  Range best = range;
  std::pair<size_t, int> least{nodes.size() + 1, 0};
  for (size_t first = 0; first < nodes.size(); ++first)
    for (size_t last = first; last < nodes.size(); ++last) {
      Range some{nodes[first].begin, nodes[last].end};
      if (roomOf(cores, some, all) < threads)
        continue;
      std::pair<size_t, int> needs{last - first + 1,
                                   cores[some.end - 1].package - cores[some.begin].package};
      if (needs < least)
        std::tie(best, least) = std::pair(some, needs);
      break;
    }
  return best;
}

/// The range of rank `number` within one node, if each node has room for as many ranks as any;
/// else an empty one.
static Range withinNode(const std::vector<Core> &cores, size_t number, size_t ranks,
                        size_t threads, bool all) {
  std::vector<Range> nodes = nodesOf(cores, {0, cores.size()});
  Range mine{0, 0};
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto firstOf = [&](size_t node) { return (node * ranks + nodes.size() - 1) / nodes.size(); };
    size_t first = firstOf(i), here = firstOf(i + 1) - first;
    if (here > nodes[i].size() || here * threads > roomOf(cores, nodes[i], all))
      return {0, 0};
    if (number >= first && number < first + here)
      mine = part(nodes[i], number - first, here);
  }
  return mine;
}

/// The range of rank `number`, or all cores where there is no choice to make.
static Range rangeOf(const std::vector<Core> &cores, int number, int ranks, int threads) {
  Range machine{0, cores.size()};
  size_t wanted = size_t(ranks) * size_t(threads);
  bool all = wanted > cores.size(), several = nodesOf(cores, machine).size() > 1;
  // Ranks that share cores anyway are left to the system, and so are ranks that all of one memory's
  // cores are just enough for.
  if (size_t(ranks) > cores.size() || wanted > roomOf(cores, machine, true) ||
      (!several && wanted >= cores.size()))
    return machine;
  Range mine = withinNode(cores, size_t(number), size_t(ranks), size_t(threads), all);
  if (!mine.size())
    mine = fewestNodes(cores, part(machine, size_t(number), size_t(ranks)), size_t(threads), all);
  // A rank without room for its threads would keep all others waiting.
  return roomOf(cores, mine, true) < size_t(threads) ? machine : mine;
}

CoreList meshwright::shareOf(const std::vector<Core> &cores, int number, int ranks, int threads) {
  CoreList result;
  // If one rank is left to the system, all are: it does not know where the others are.
  for (int rank = 0; rank < ranks; ++rank)
    if (rangeOf(cores, rank, ranks, threads).size() == cores.size())
      return result;
  Range mine = rangeOf(cores, number, ranks, threads);
  for (size_t i = mine.begin; i < mine.end; ++i)
    result.insert(result.end(), cores[i].threads.begin(), cores[i].threads.end());
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<CoreList> meshwright::sharesOfMachine(const CoreList &allowed, int ranks, int threads) {
  std::vector<CoreList> shares(size_t(ranks), CoreList{});
  // OpenMP's own variables bind threads one by one.
  for (const char *variable : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (const char *value = getenv(variable); value && *value && strcasecmp(value, "false") != 0)
      return shares;
  // A rank that uses all cores there are has nothing to choose.
  if (!mayBind() || allowed.empty() || (ranks == 1 && size_t(threads) >= allowed.size()))
    return shares;
  std::vector<Core> cores = coresOfMachine();
  if (cores.empty() && access("/sys/devices/system/node/node1", F_OK) == 0)
    fprintf(stderr, "note: this machine has several NUMA nodes, but libhwloc.so.15 is missing or failed, so ranks are not "
                    "bound to cores near one of them: install it (Debian package libhwloc15)\n");
  std::set<int> all;
  for (const Core &core : cores)
    all.insert(core.threads.begin(), core.threads.end());
  // Fewer than the machine has: a launcher or taskset has chosen.
  if (!std::equal(all.begin(), all.end(), allowed.begin(), allowed.end()))
    return shares;
  for (int rank = 0; rank < ranks; ++rank)
    shares[size_t(rank)] = shareOf(cores, rank, ranks, threads);
  return shares;
}
