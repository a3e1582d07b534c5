//===- RecomputeGraph.cpp - what to keep and what to compute again -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "RecomputeGraph.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace meshwright::dist;

namespace {
/// Maximum flow by Dinic's algorithm; the graphs have a few dozen nodes.
class Network {
public:
  explicit Network(unsigned nodes) : edgesOf(nodes), level(nodes), next(nodes) {}

  void add(unsigned from, unsigned to, double capacity) {
    edgesOf[from].push_back(edges.size());
    edges.push_back({to, capacity});
    edgesOf[to].push_back(edges.size());
    edges.push_back({from, 0});
  }

  /// The nodes on the source's side of the minimum cut nearest to the source.
  llvm::BitVector cut(unsigned source, unsigned sink) {
    while (levels(source)[sink] >= 0) {
      std::fill(next.begin(), next.end(), 0);
      while (push(source, sink, std::numeric_limits<double>::infinity()) > 0) {
      }
    }
    llvm::BitVector side(edgesOf.size());
    for (unsigned node = 0; node < edgesOf.size(); ++node)
      if (level[node] >= 0)
        side.set(node);
    return side;
  }

private:
  struct Edge {
    unsigned to;
    double left;
  };

  const std::vector<int> &levels(unsigned source) {
    std::fill(level.begin(), level.end(), -1);
    level[source] = 0;
    std::vector<unsigned> queue{source};
    for (size_t i = 0; i < queue.size(); ++i)
      for (unsigned e : edgesOf[queue[i]])
        if (edges[e].left > 0 && level[edges[e].to] < 0) {
          level[edges[e].to] = level[queue[i]] + 1;
          queue.push_back(edges[e].to);
        }
    return level;
  }

  double push(unsigned node, unsigned sink, double most) {
    if (node == sink)
      return most;
    for (; next[node] < edgesOf[node].size(); ++next[node]) {
      unsigned e = edgesOf[node][next[node]];
      if (edges[e].left <= 0 || level[edges[e].to] != level[node] + 1)
        continue;
      double pushed = push(edges[e].to, sink, std::min(most, edges[e].left));
      if (pushed > 0) {
        edges[e].left -= pushed;
        edges[e ^ 1].left += pushed;
        return pushed;
      }
    }
    return 0;
  }

  std::vector<Edge> edges; ///< each followed by its reverse
  std::vector<std::vector<unsigned>> edgesOf;
  std::vector<int> level;
  std::vector<size_t> next;
};
} // namespace

RecomputeChoice meshwright::dist::cheapestChoice(const RecomputeGraph &graph, double price) {
  double all = 1;
  for (const RecomputeGraph::Op &op : graph.ops)
    if (std::isfinite(op.cost))
      all += op.cost;
  // One byte outweighs all operations; a higher price changes nothing but overflows.
  price = std::min(price, all);
  double bytes = 0;
  for (const RecomputeGraph::Value &value : graph.values)
    bytes += double(value.bytes);
  // More than any cut without such an edge.
  const double unlimited = 2 * (all + price * bytes) + 1;

  unsigned values = graph.values.size(), source = values + graph.ops.size(), sink = source + 1;
  Network network(sink + 1);
  for (auto [i, value] : llvm::enumerate(graph.values)) {
    if (value.free)
      continue;
    if (value.needed)
      network.add(source, i, unlimited);
    network.add(i, value.op < 0 ? sink : values + value.op, price * double(value.bytes));
  }
  for (auto [i, op] : llvm::enumerate(graph.ops)) {
    network.add(values + i, sink, std::isfinite(op.cost) ? op.cost : unlimited);
    for (unsigned operand : op.operands)
      if (!graph.values[operand].free)
        network.add(values + i, operand, unlimited);
  }
  llvm::BitVector side = network.cut(source, sink);

  RecomputeChoice choice;
  choice.kept.resize(values);
  choice.recomputed.resize(graph.ops.size());
  for (auto [i, op] : llvm::enumerate(graph.ops))
    if (side.test(values + i)) {
      choice.recomputed.set(i);
      choice.cost += op.cost;
    }
  for (auto [i, value] : llvm::enumerate(graph.values))
    if (side.test(i) && (value.op < 0 || !choice.recomputed.test(value.op))) {
      choice.kept.set(i);
      choice.bytes += value.bytes;
    }
  return choice;
}

/// The choices strictly between two that are cheapest at lower and higher prices.
static void between(const RecomputeGraph &graph, const RecomputeChoice &less,
                    const RecomputeChoice &more, std::vector<RecomputeChoice> &found) {
  if (less.bytes <= more.bytes || more.cost <= less.cost)
    return;
  double price = (more.cost - less.cost) / double(less.bytes - more.bytes);
  RecomputeChoice choice = cheapestChoice(graph, price);
  double here = choice.cost + price * double(choice.bytes),
         there = less.cost + price * double(less.bytes);
  if (here >= there * (1 - 1e-12) || choice.bytes >= less.bytes || choice.bytes <= more.bytes)
    return;
  between(graph, less, choice, found);
  found.push_back(choice);
  between(graph, choice, more, found);
}

std::vector<PricedChoice> meshwright::dist::efficientChoices(const RecomputeGraph &graph) {
  double bytes = 1, least = 1;
  for (const RecomputeGraph::Value &value : graph.values)
    bytes += double(value.bytes);
  for (const RecomputeGraph::Op &op : graph.ops)
    if (op.cost > 0)
      least = std::min(least, op.cost);
  RecomputeChoice first = cheapestChoice(graph, 0.5 * least / bytes),
                  last = cheapestChoice(graph, anyPrice);
  std::vector<RecomputeChoice> choices{first};
  between(graph, first, last, choices);
  if (last.bytes < first.bytes)
    choices.push_back(last);
  // Each is the cheapest between the prices at which it meets its neighbours.
  std::vector<PricedChoice> priced;
  double low = 0.5 * least / bytes;
  for (size_t i = 0; i < choices.size(); ++i) {
    double price = anyPrice;
    if (i + 1 < choices.size()) {
      double high = (choices[i + 1].cost - choices[i].cost) /
                    double(choices[i].bytes - choices[i + 1].bytes);
      price = std::sqrt(low * high);
      low = high;
    }
    priced.push_back({price, choices[i]});
  }
  return priced;
}
