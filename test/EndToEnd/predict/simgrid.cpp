//===- simgrid.cpp - runs Chakra traces of `--emit chakra` on SimGrid --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//   simgrid-judge TRACES RANKS fat-tree HOSTS-OF-A-LEAF LEAVES UPLINKS BANDWIDTH LATENCY
//   simgrid-judge TRACES RANKS torus DIMENSION.. BANDWIDTH LATENCY
//
// Builds the platform, lets each rank's nodes begin when those that they depend on have ended, and prints
// the seconds that all take. Shares nothing with the simulation of `meshwright predict`: messages are flows that
// share links, and collectives are written out as messages between their members.
//
//===----------------------------------------------------------------------===//
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

namespace sg4 = simgrid::s4u;
using std::string;

[[noreturn]] static void fail(const string &why) {
  std::cerr << "simgrid-judge: " << why << "\n";
  exit(1);
}

//===--- traces ---------------------------------------------------------------===//

enum NodeType { Compute = 4, Send = 5, Receive = 6, Collective = 7 };
enum CollectiveType { AllReduce = 0, Reduce = 1, AllGather = 2, Broadcast = 5, AllToAll = 6, ReduceScatter = 7 };

struct Node {
  uint64_t type = 0, micros = 0;
  std::vector<uint64_t> after;
  std::map<string, uint64_t> number;
  string group;
};

static uint64_t varint(const string &data, size_t &at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = uint64_t(uint8_t(data.at(at++)));
    value |= (byte & 127) << shift;
    if (byte < 128)
      return value;
  }
}

/// Visits the fields of a protocol buffer: numbers or texts.
template <class Visit> static void forEachField(const string &data, Visit visit) {
  for (size_t at = 0; at < data.size();) {
    uint64_t key = varint(data, at), value = varint(data, at);
    string text;
    if ((key & 7) == 2) {
      text = data.substr(at, value);
      at += value;
    } else if ((key & 7) != 0) {
      fail("wire type " + std::to_string(key & 7));
    }
    visit(key >> 3, value, text);
  }
}

static std::vector<Node> readNodes(const string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail("cannot read " + path);
  string data{std::istreambuf_iterator<char>(file), {}};
  std::vector<Node> nodes;
  bool isFirst = true;
  for (size_t at = 0; at < data.size();) {
    size_t size = varint(data, at);
    string message = data.substr(at, size);
    at += size;
    if (isFirst) { // the schema's version
      isFirst = false;
      continue;
    }
    Node &node = nodes.emplace_back();
    forEachField(message, [&](uint64_t field, uint64_t value, const string &text) {
      if (field == 3)
        node.type = value;
      else if (field == 7)
        node.micros = value;
      else if (field == 5)
        for (size_t place = 0; place < text.size();)
          node.after.push_back(varint(text, place));
      if (field != 10)
        return;
      string name;
      forEachField(text, [&](uint64_t part, uint64_t number, const string &word) {
        if (part == 1)
          name = word;
        else if (name == "pg_name")
          node.group = word;
        else
          node.number[name] = number;
      });
    });
  }
  return nodes;
}

/// {"0": [0, 1], ..}
static std::map<string, std::vector<int>> readGroups(const string &path) {
  std::ifstream file(path);
  std::map<string, std::vector<int>> groups;
  string word, name;
  for (char c; file.get(c);)
    if (isdigit(c)) {
      word += c;
    } else {
      if (c == '"' && !word.empty())
        groups[name = word];
      else if (!word.empty())
        groups[name].push_back(std::stoi(word));
      word.clear();
    }
  return groups;
}

//===--- the platform ----------------------------------------------------------===//

static std::vector<sg4::Host *> hosts;
static std::vector<int> dimensions; ///< of a torus, the last of which ranks count along first

static int coordinate(int rank, size_t dimension) {
  for (size_t inner = dimension + 1; inner < dimensions.size(); ++inner)
    rank /= dimensions[inner];
  return rank % dimensions[dimension];
}

static void build(const std::vector<string> &words) {
  auto number = [&](size_t i) { return std::stoul(words.at(i)); };
  double bandwidth = std::stod(words.at(words.size() - 2)), latency = std::stod(words.back());
  sg4::ClusterCallbacks callbacks([](sg4::NetZone *zone, const std::vector<unsigned long> &,
                                     unsigned long id) {
    hosts.resize(std::max(hosts.size(), size_t(id + 1)));
    hosts[id] = zone->create_host("host" + std::to_string(id), 1e9);
    return std::make_pair(hosts[id]->get_netpoint(), (simgrid::kernel::routing::NetPoint *)nullptr);
  });
  if (words[0] == "fat-tree") {
    auto down = unsigned(number(1)), leaves = unsigned(number(2)), up = unsigned(number(3));
    sg4::create_fatTree_zone("zone", nullptr, {2, {down, leaves}, {1, up}, {1, 1}}, callbacks,
                             bandwidth, latency, sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  } else {
    std::vector<unsigned long> sizes;
    for (size_t i = 1; i + 2 < words.size(); ++i)
      sizes.push_back(number(i));
    dimensions.assign(sizes.begin(), sizes.end());
    // SimGrid counts along the first dimension first.
    sg4::create_torus_zone("zone", nullptr, {sizes.rbegin(), sizes.rend()}, callbacks, bandwidth,
                           latency, sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  }
}

//===--- messages --------------------------------------------------------------===//

/// Messages that have arrived, by whatever tells them apart.
static std::map<string, sg4::SemaphorePtr> arrived;
static sg4::Semaphore &arrivalOf(const string &key) {
  sg4::SemaphorePtr &semaphore = arrived[key];
  if (!semaphore)
    semaphore = sg4::Semaphore::create(0);
  return *semaphore;
}

static void send(int from, int to, double bytes, const string &key) {
  sg4::Comm::sendto_async(hosts[from], hosts[to], std::max<uint64_t>(1, std::llround(bytes)))->wait();
  arrivalOf(key).release();
}

/// Runs all functions at once, and waits for them.
static void together(std::vector<std::function<void()>> functions) {
  std::vector<sg4::ActorPtr> actors;
  for (auto &function : functions)
    actors.push_back(sg4::Actor::create("part", sg4::this_actor::get_host(), function));
  for (auto &actor : actors)
    actor->join();
}

/// One direction of a ring or a line: `mine` passes on what it has and what it gets, for so many steps.
static void passOn(const std::vector<int> &members, int mine, int next, int previous, int first, int steps,
                   double bytes, const string &key) {
  // In step s a member of a line passes on what began s members before it, if there is one.
  for (int step = 0; step < steps; ++step) {
    string name = key + "/" + std::to_string(step) + "/";
    std::vector<std::function<void()>> parts;
    if (next >= 0 && step <= first)
      parts.push_back([=] { send(members[mine], members[next], bytes, name + std::to_string(members[next])); });
    if (previous >= 0 && step <= first - 1)
      parts.push_back([=] { arrivalOf(name + std::to_string(members[mine])).acquire(); });
    together(parts);
  }
}

/// All gather along one ring or line, each member `bytes` of its own.
static void gatherAlong(const std::vector<int> &members, int rank, bool isRing, bool bothWays,
                        double bytes, const string &key) {
  int size = int(members.size()), mine = int(std::find(members.begin(), members.end(), rank) - members.begin());
  constexpr int always = 1 << 30;
  if (isRing) {
    double part = bothWays ? bytes / 2 : bytes;
    std::vector<std::function<void()>> ways = {
        [=] { passOn(members, mine, (mine + 1) % size, (mine + size - 1) % size, always, size - 1, part, key + "u"); }};
    if (bothWays)
      ways.push_back([=] { passOn(members, mine, (mine + size - 1) % size, (mine + 1) % size, always, size - 1, part, key + "d"); });
    return together(ways);
  }
  together({[=] { passOn(members, mine, mine + 1 < size ? mine + 1 : -1, mine - 1, mine, size - 1, bytes, key + "u"); },
            [=] { passOn(members, mine, mine - 1, mine + 1 < size ? mine + 1 : -1, size - 1 - mine, size - 1, bytes, key + "d"); }});
}

/// All gather of a group in a torus, by the bucket algorithm: in as many parts as there are dimensions, each along
/// another one first. A reduce-scatter goes the same way back.
static void gatherInTorus(const std::vector<int> &members, int rank, double bytes, bool isBack, const string &key) {
  std::vector<size_t> along;
  for (size_t dimension = 0; dimension < dimensions.size(); ++dimension)
    for (int member : members)
      if (coordinate(member, dimension) != coordinate(rank, dimension)) {
        along.push_back(dimension);
        break;
      }
  std::vector<std::function<void()>> parts;
  for (size_t part = 0; part < along.size(); ++part)
    parts.push_back([=] {
      double have = bytes / double(along.size());
      std::vector<std::function<void()>> phases;
      for (size_t phase = 0; phase < along.size(); ++phase) {
        size_t dimension = along[(part + phase) % along.size()];
        std::vector<int> line;
        for (int member : members) {
          bool isOnLine = true;
          for (size_t other = 0; other < dimensions.size(); ++other)
            isOnLine &= other == dimension || coordinate(member, other) == coordinate(rank, other);
          if (isOnLine)
            line.push_back(member);
        }
        int stride = coordinate(line[1], dimension) - coordinate(line[0], dimension);
        bool isRing = line.size() > 2 && int(line.size()) * stride == dimensions[dimension];
        string name = key + "p" + std::to_string(part) + "." + std::to_string(phase);
        phases.push_back([=] { gatherAlong(line, rank, isRing, true, have, name); });
        have *= double(line.size());
      }
      if (isBack)
        std::reverse(phases.begin(), phases.end());
      for (auto &phase : phases)
        phase();
    });
  together(parts);
}

static void collective(const Node &node, const std::vector<int> &members, int rank, const string &key) {
  int size = int(members.size()), mine = int(std::find(members.begin(), members.end(), rank) - members.begin());
  auto bytes = double(node.number.at("comm_size"));
  auto gather = [&](double own, bool isBack, const string &name) {
    if (dimensions.empty())
      gatherAlong(members, rank, true, false, own, name);
    else
      gatherInTorus(members, rank, own, isBack, name);
  };
  switch (node.number.at("comm_type")) {
  case AllReduce:
    gather(bytes / size, true, key + "s");
    gather(bytes / size, false, key + "g");
    return;
  case AllGather:
    return gather(bytes, false, key);
  case ReduceScatter:
    return gather(bytes / size, true, key);
  case Reduce:
  case Broadcast: // of single numbers: from member to member
    if (mine > 0)
      arrivalOf(key + std::to_string(mine)).acquire();
    if (mine + 1 < size)
      send(rank, members[mine + 1], bytes, key + std::to_string(mine + 1));
    return;
  case AllToAll: {
    std::vector<std::function<void()>> parts;
    for (int distance = 1; distance < size; ++distance) {
      int to = members[(mine + distance) % size];
      string name = key + "/" + std::to_string(distance) + "/";
      auto both = [=] {
        together({[=] { send(rank, to, bytes / size, name + std::to_string(to)); },
                  [=] { arrivalOf(name + std::to_string(rank)).acquire(); }});
      };
      // Between switches in rounds of pairs; in a torus all at once.
      if (dimensions.empty())
        both();
      else
        parts.push_back(both);
    }
    return together(parts);
  }
  default:
    fail("collective " + std::to_string(node.number.at("comm_type")) + " is not known");
  }
}

//===--- ranks -------------------------------------------------------------------===//

namespace {
/// A rank's nodes: each begins when those that it depends on have ended.
struct Rank {
  int number;
  std::vector<Node> nodes;
  std::vector<size_t> left = {}; ///< nodes that have not ended, of those that each depends on
  std::vector<std::vector<size_t>> next = {};
  std::vector<int> calls = {}; ///< of collectives: which one of its group it is
  size_t ended = 0;

  void start(const std::map<string, std::vector<int>> &groups) {
    std::map<string, int> counts;
    left.resize(nodes.size());
    next.resize(nodes.size());
    calls.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      calls[i] = counts[nodes[i].group]++;
      left[i] = nodes[i].after.size();
      for (uint64_t before : nodes[i].after)
        next[before - 1].push_back(i);
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].after.empty())
        begin(i, groups);
  }

private:
  void begin(size_t i, const std::map<string, std::vector<int>> &groups) {
    sg4::Actor::create("node", hosts[number], [this, i, &groups] {
      run(i, groups);
      ++ended;
      for (size_t after : next[i])
        if (--left[after] == 0)
          begin(after, groups);
    });
  }
  void run(size_t i, const std::map<string, std::vector<int>> &groups) {
    const Node &node = nodes[i];
    auto number = [&](const char *name) { return std::to_string(node.number.at(name)); };
    if (node.type == Compute)
      return sg4::this_actor::sleep_for(1e-6 * double(node.micros));
    if (node.type == Collective)
      return collective(node, groups.at(node.group), this->number,
                        "c" + node.group + "." + std::to_string(calls[i]));
    if (node.type != Send && node.type != Receive)
      fail("nodes of type " + std::to_string(node.type) + " are not known");
    string key = "m" + number("comm_src") + "." + number("comm_dst") + "." + number("comm_tag");
    if (node.type == Send)
      send(this->number, int(node.number.at("comm_dst")), double(node.number.at("comm_size")), key);
    else
      arrivalOf(key).acquire();
  }
};
} // namespace

int main(int argc, char **argv) {
  sg4::Engine engine(&argc, argv);
  if (argc < 6)
    fail("usage: simgrid-judge TRACES RANKS fat-tree|torus SIZES.. BANDWIDTH LATENCY");
  // Flows get equal shares of links, all of which they can use.
  for (const char *option : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0",
                             "network/bandwidth-factor:1", "network/latency-factor:1"})
    sg4::Engine::set_config(option);
  // In KiB. Each node of a trace has a stack, and allocators that fill memory would take minutes to fill 8 MiB for each.
  sg4::Engine::set_config("contexts/stack-size:64");
  string folder = argv[1];
  build({argv + 3, argv + argc});
  auto groups = readGroups(folder + "/groups.json");
  std::deque<Rank> ranks;
  for (int number = 0; number < std::stoi(argv[2]); ++number)
    ranks.push_back({number, readNodes(folder + "/step." + std::to_string(number) + ".et")});
  for (Rank &rank : ranks)
    rank.start(groups);
  engine.run();
  for (Rank &rank : ranks)
    if (rank.ended != rank.nodes.size())
      fail("rank " + std::to_string(rank.number) + " waits for ever");
  std::cout.precision(9);
  std::cout << sg4::Engine::get_clock() << "\n";
}
