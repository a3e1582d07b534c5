//===- TableSum.cpp - the least sum of tables -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TableSum.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cassert>
#include <cmath>
#include <map>
#include <set>

using namespace meshwright::dist;
using llvm::ArrayRef;

unsigned TableSum::addVariable(unsigned values) {
  assert(values > 0 && values <= 1 << 16 && "a variable has from 1 to 2^16 values");
  counts.push_back(values);
  return counts.size() - 1;
}

void TableSum::addTable(ArrayRef<unsigned> variables, std::vector<double> costs) {
  assert(costs.size() == entriesOf(variables) && "one entry for each combination");
  tables.push_back({llvm::SmallVector<unsigned, 4>(variables), std::move(costs)});
}

void TableSum::fix(unsigned variable, unsigned value) {
  std::vector<double> costs(counts[variable], never);
  costs[value] = 0;
  addTable(variable, std::move(costs));
}

size_t TableSum::entriesOf(ArrayRef<unsigned> variables) const {
  size_t entries = 1;
  for (unsigned variable : variables)
    if (__builtin_mul_overflow(entries, size_t(counts[variable]), &entries))
      return std::numeric_limits<size_t>::max();
  return entries;
}

size_t TableSum::indexIn(const Table &table, ArrayRef<unsigned> values) const {
  size_t index = 0;
  for (unsigned variable : table.variables)
    index = index * counts[variable] + values[variable];
  return index;
}

double TableSum::costOf(ArrayRef<unsigned> values) const {
  double sum = 0;
  for (const Table &table : tables)
    sum += table.costs[indexIn(table, values)];
  return sum;
}

/// The least of the tables' sum over `variable`, for each combination of their other variables.
TableSum::Table TableSum::eliminate(unsigned variable, ArrayRef<const Table *> summands,
                                    std::vector<uint16_t> &best) const {
  std::set<unsigned> others;
  for (const Table *table : summands)
    others.insert(table->variables.begin(), table->variables.end());
  others.erase(variable);
  Table result;
  result.variables.assign(others.begin(), others.end());
  size_t width = result.variables.size();
  // By how much the entry of a summand moves when a variable's value is the next one.
  std::vector<std::vector<size_t>> strides;
  std::vector<size_t> own, at(summands.size(), 0);
  for (const Table *table : summands) {
    auto &of = strides.emplace_back(width, 0);
    own.push_back(0);
    size_t stride = 1;
    for (unsigned other : llvm::reverse(table->variables)) {
      if (other == variable)
        own.back() += stride;
      else
        of[llvm::find(result.variables, other) - result.variables.begin()] += stride;
      stride *= counts[other];
    }
  }
  result.costs.resize(entriesOf(result.variables));
  best.assign(result.costs.size(), 0);
  std::vector<unsigned> values(width, 0);
  for (auto [least, chosen] : llvm::zip(result.costs, best)) {
    least = never;
    for (unsigned value = 0; value < counts[variable]; ++value) {
      double sum = 0;
      for (size_t t = 0; t < summands.size(); ++t)
        sum += summands[t]->costs[at[t] + value * own[t]];
      if (sum < least) {
        least = sum;
        chosen = uint16_t(value);
      }
    }
    for (size_t d = width; d-- > 0;) {
      bool wraps = ++values[d] == counts[result.variables[d]];
      for (size_t t = 0; t < summands.size(); ++t)
        at[t] += strides[t][d] * (wraps ? 1 - size_t(values[d]) : 1);
      if (!wraps)
        break;
      values[d] = 0;
    }
  }
  return result;
}

static bool isPast(TableSum::Time end) {
  return end != TableSum::Time::max() && std::chrono::steady_clock::now() >= end;
}

/// Takes better values of single variables until there are none.
void TableSum::improve(Minimum &minimum, Time end) const {
  std::vector<std::vector<const Table *>> tablesOf(size());
  for (const Table &table : tables)
    for (unsigned variable : std::set<unsigned>(table.variables.begin(), table.variables.end()))
      tablesOf[variable].push_back(&table);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned variable = 0; variable < size() && !isPast(end); ++variable) {
      auto cost = [&] {
        double sum = 0;
        for (const Table *table : tablesOf[variable])
          sum += table->costs[indexIn(*table, minimum.values)];
        return sum;
      };
      unsigned before = minimum.values[variable], best = before;
      double least = cost();
      for (unsigned value = 0; value < counts[variable]; ++value) {
        minimum.values[variable] = value;
        // Only what is more than rounding is better, so that this ends.
        if (double sum = cost(); sum < least * (1 - 1e-12)) {
          least = sum;
          best = value;
        }
      }
      minimum.values[variable] = best;
      changed |= best != before;
    }
  }
}

/// Calls `visit` with the index of each entry of `table` in which `variable` has its first value
/// and the others values that are left, and with by how much the index grows from value to value.
static void forEachContext(ArrayRef<unsigned> scope, ArrayRef<unsigned> counts, unsigned variable,
                           const std::vector<std::vector<unsigned>> &left,
                           llvm::function_ref<bool(size_t, size_t)> visit) {
  llvm::SmallVector<size_t, 4> strides(scope.size());
  size_t stride = 1, own = 0;
  for (size_t d = scope.size(); d-- > 0; stride *= counts[scope[d]]) {
    strides[d] = stride;
    own += scope[d] == variable ? stride : 0;
  }
  auto walk = [&](auto &walk, size_t d, size_t index) -> bool {
    if (d == scope.size())
      return visit(index, own);
    if (scope[d] == variable)
      return walk(walk, d + 1, index);
    for (unsigned value : left[scope[d]])
      if (!walk(walk, d + 1, index + value * strides[d]))
        return false;
    return true;
  };
  walk(walk, 0, 0);
}

/// Whether `by` costs no more than `value` whatever the neighbours have.
bool TableSum::isDominated(unsigned variable, unsigned value, unsigned by,
                           ArrayRef<const Table *> of, const Values &left) const {
  double sum = 0;
  for (const Table *table : of) {
    double most = -never;
    forEachContext(table->variables, counts, variable, left, [&](size_t index, size_t own) {
      double a = table->costs[index + value * own], b = table->costs[index + by * own];
      if (a != never)
        most = std::max(most, b - a);
      return most != never;
    });
    if (most == never)
      return false;
    if (most == -never)
      return true; // It never can be.
    sum += most;
  }
  return sum <= 0;
}

/// Those that are left when the time ends are only more than need be.
TableSum::Values TableSum::withoutDominated(Time end) const {
  Values left(size());
  std::vector<std::vector<const Table *>> of(size());
  std::vector<std::set<unsigned>> neighbours(size());
  for (const Table &table : tables)
    for (unsigned a : std::set<unsigned>(table.variables.begin(), table.variables.end())) {
      of[a].push_back(&table);
      neighbours[a].insert(table.variables.begin(), table.variables.end());
    }
  // In rounds, so that a variable with many neighbours is looked at once for all that change.
  std::set<unsigned> open, next;
  for (unsigned variable = 0; variable < size(); ++variable) {
    for (unsigned value = 0; value < counts[variable]; ++value)
      left[variable].push_back(value);
    open.insert(variable);
    // Tables of fewer entries first, which show soonest that a value is needed.
    llvm::stable_sort(of[variable], [](const Table *a, const Table *b) {
      return a->costs.size() < b->costs.size();
    });
  }
  while (!open.empty() && !isPast(end)) {
    unsigned variable = *open.begin();
    open.erase(open.begin());
    std::vector<unsigned> &values = left[variable];
    size_t before = values.size();
    // Of two values that cost the same everywhere the first stays.
    for (size_t i = values.size(); i-- > 0 && values.size() > 1;)
      for (size_t j = 0; j < values.size(); ++j)
        if (j != i && isDominated(variable, values[i], values[j], of[variable], left)) {
          values.erase(values.begin() + i);
          break;
        }
    if (values.size() < before)
      next.insert(neighbours[variable].begin(), neighbours[variable].end());
    if (open.empty())
      open.swap(next);
  }
  return left;
}

TableSum TableSum::restrictedTo(const Values &left) const {
  TableSum result;
  for (const auto &values : left)
    result.addVariable(values.size());
  for (const Table &table : tables) {
    // Those with one value left are no variables of the table any more.
    llvm::SmallVector<unsigned, 4> scope;
    for (unsigned variable : table.variables)
      if (left[variable].size() > 1)
        scope.push_back(variable);
    std::vector<double> costs;
    constexpr unsigned none = ~0u;
    forEachContext(table.variables, counts, none, left, [&](size_t index, size_t) {
      costs.push_back(table.costs[index]);
      return true;
    });
    result.addTable(scope, std::move(costs));
  }
  return result;
}

TableSum::Minimum TableSum::minimize(size_t mostEntries, Time end) const {
  Values left = withoutDominated(end);
  Minimum minimum = restrictedTo(left).eliminateAll(mostEntries, end);
  for (auto [variable, value] : llvm::enumerate(minimum.values))
    value = left[variable][value];
  minimum.cost = costOf(minimum.values);
  // Small tables may miss which combinations must not be.
  if (Minimum first; !minimum.isProved) {
    first.values.resize(size());
    improve(first, end);
    if (double cost = costOf(first.values); cost < minimum.cost) {
      minimum.values = std::move(first.values);
      minimum.cost = cost;
    }
  }
  minimum.isProved |= minimum.cost <= minimum.bound + 1e-12 * std::abs(minimum.bound);
  return minimum;
}

namespace {
/// Variables with tables in common, as some are eliminated. What elimination costs is kept up to date change by change, so
/// that a variable with many neighbours is not looked at as a whole for each of them.
class EliminationGraph {
public:
  using Neighbours = std::vector<std::set<unsigned>>;

  EliminationGraph(Neighbours given, ArrayRef<unsigned> counts)
      : neighbours(std::move(given)), counts(counts), entries(counts.size()), sums(counts.size()),
        fills(counts.size()) {
    for (unsigned variable = 0; variable < counts.size(); ++variable) {
      double squares = 0;
      entries[variable] = bitsOf(variable);
      for (unsigned other : neighbours[variable]) {
        entries[variable] += bitsOf(other);
        sums[variable] += counts[other];
        squares += double(counts[other]) * counts[other];
      }
      fills[variable] = (sums[variable] * sums[variable] - squares) / 2;
    }
    for (unsigned a = 0; a < counts.size(); ++a)
      for (unsigned b : neighbours[a])
        if (a < b)
          forEachCommon(a, b, [&](unsigned common) { fills[common] -= pairsOf(a, b); });
  }

  /// The logarithm of the entries of the sum of a variable's tables, in fixed point: it does not depend on the order in
  /// which neighbours came and went.
  double entriesOf(unsigned variable) const { return double(entries[variable]); }
  /// The pairs of values of neighbours that its elimination makes neighbours.
  double fillOf(unsigned variable) const { return fills[variable]; }
  /// How many entries that logarithm stands for.
  static double entriesFrom(double logarithm) { return std::exp2(logarithm / double(unit)); }

  /// Makes the neighbours of a variable neighbours of each other, and takes it out. Tells whose costs
  /// may have changed.
  void eliminate(unsigned variable, llvm::function_ref<void(unsigned)> changed) {
    std::set<unsigned> around = std::move(neighbours[variable]);
    neighbours[variable].clear();
    for (unsigned a : around) {
      double known = 0; // values of neighbours of both
      for (unsigned b : around)
        if (neighbours[a].count(b))
          known += counts[b];
      neighbours[a].erase(variable);
      entries[a] -= bitsOf(variable);
      sums[a] -= counts[variable];
      fills[a] -= counts[variable] * (sums[a] - known);
      changed(a);
    }
    for (unsigned a : around)
      for (unsigned b : around)
        if (a < b && !neighbours[a].count(b))
          connect(a, b, changed);
  }

private:
  static constexpr int64_t unit = int64_t(1) << 32;

  int64_t bitsOf(unsigned variable) const {
    return std::llround(std::log2(double(counts[variable])) * double(unit));
  }
  double pairsOf(unsigned a, unsigned b) const { return double(counts[a]) * counts[b]; }

  void forEachCommon(unsigned a, unsigned b, llvm::function_ref<void(unsigned)> visit) const {
    if (neighbours[a].size() > neighbours[b].size())
      std::swap(a, b);
    for (unsigned other : neighbours[a])
      if (neighbours[b].count(other))
        visit(other);
  }

  void connect(unsigned a, unsigned b, llvm::function_ref<void(unsigned)> changed) {
    double known = 0;
    forEachCommon(a, b, [&](unsigned common) {
      fills[common] -= pairsOf(a, b);
      known += counts[common];
      changed(common);
    });
    for (auto [at, other] : {std::pair(a, b), std::pair(b, a)}) {
      fills[at] += counts[other] * (sums[at] - known);
      sums[at] += counts[other];
      entries[at] += bitsOf(other);
      neighbours[at].insert(other);
    }
  }

  Neighbours neighbours;
  ArrayRef<unsigned> counts;
  std::vector<int64_t> entries;
  std::vector<double> sums; ///< values of all neighbours
  std::vector<double> fills;
};
} // namespace

/// An order of elimination in which next comes the variable that `weigh` gives least, and the entries of the largest
/// sum on the way. When the time ends, the variables that are left come as they are weighed then.
static std::pair<std::vector<unsigned>, double> orderBy(EliminationGraph graph, size_t variables,
                                                        TableSum::Time end,
                                                        double (EliminationGraph::*weigh)(unsigned)
                                                            const) {
  std::set<std::pair<double, unsigned>> queue;
  std::vector<double> weights(variables);
  for (unsigned variable = 0; variable < variables; ++variable)
    queue.insert({weights[variable] = (graph.*weigh)(variable), variable});
  std::vector<unsigned> order;
  double largest = 0;
  while (!queue.empty()) {
    unsigned variable = queue.begin()->second;
    queue.erase(queue.begin());
    order.push_back(variable);
    if (isPast(end)) {
      largest = TableSum::never;
      continue;
    }
    largest = std::max(largest, EliminationGraph::entriesFrom(graph.entriesOf(variable)));
    llvm::SmallSetVector<unsigned, 8> changed;
    graph.eliminate(variable, [&](unsigned other) { changed.insert(other); });
    for (unsigned other : changed) {
      double weight = (graph.*weigh)(other);
      if (weight == weights[other])
        continue;
      queue.erase({weights[other], other});
      queue.insert({weights[other] = weight, other});
    }
  }
  return {order, largest};
}

TableSum::Minimum TableSum::eliminateAll(size_t mostEntries, Time end) const {
  Minimum minimum;
  minimum.isProved = true;
  minimum.values.resize(size());
  EliminationGraph::Neighbours neighbours(size());
  for (const Table &table : tables)
    for (unsigned a : table.variables)
      for (unsigned b : table.variables)
        if (a != b)
          neighbours[a].insert(b);
  EliminationGraph graph(std::move(neighbours), counts);
  auto bySize = orderBy(graph, size(), end, &EliminationGraph::entriesOf);
  auto byFill = orderBy(graph, size(), end, &EliminationGraph::fillOf);
  const std::vector<unsigned> &next = byFill.second < bySize.second ? byFill.first : bySize.first;

  // Tables that are not part of a sum yet, by their variables. Those that elimination makes are freed
  // with the sum that they are part of, where that is one sum: its best values say enough. Numbered, as a variable with
  // many neighbours has many of them.
  using Shared = std::shared_ptr<const Table>;
  using Open = std::map<size_t, Shared>;
  size_t tablesMade = 0;
  size_t bytes = 0, mostBytes = 64 * mostEntries;
  std::vector<Open> open(size());
  auto add = [&](const Shared &table) {
    if (table->variables.empty())
      minimum.bound += table->costs.front();
    for (unsigned variable : std::set<unsigned>(table->variables.begin(), table->variables.end()))
      open[variable].insert({tablesMade, table});
    ++tablesMade;
  };
  for (const Table &table : tables)
    add(Shared(Shared(), &table));
  struct Step {
    unsigned variable;
    llvm::SmallVector<unsigned, 4> scope; ///< of `best`
    std::vector<uint16_t> best;
    std::vector<Shared> bucket; ///< where its tables are several sums
  };
  std::vector<Step> steps;
  for (unsigned variable : next) {
    std::vector<Shared> bucket;
    for (auto &[number, table] : Open(open[variable])) {
      bucket.push_back(table);
      for (unsigned other : std::set<unsigned>(table->variables.begin(), table->variables.end()))
        open[other].erase(number);
    }
    bool isLate = isPast(end);
    minimum.isOutOfTime |= isLate;
    constexpr size_t fewEntries = 1 << 10;
    auto fitsInto = [&](size_t entries) {
      constexpr size_t each = sizeof(double) + sizeof(uint16_t);
      bool isShort = isLate || bytes > mostBytes || entries > (mostBytes - bytes) / each;
      return entries <= (isShort ? std::min(mostEntries, fewEntries) : mostEntries);
    };
    // The large tables first, each to the first sum that it fits into.
    std::vector<std::pair<std::set<unsigned>, std::vector<const Table *>>> sums;
    std::vector<const Table *> sorted;
    for (const Shared &table : bucket)
      sorted.push_back(table.get());
    llvm::stable_sort(
        sorted, [](const Table *a, const Table *b) { return a->costs.size() > b->costs.size(); });
    for (const Table *table : sorted) {
      auto joined = [&](std::set<unsigned> scope) {
        scope.insert(table->variables.begin(), table->variables.end());
        return scope;
      };
      auto fits = llvm::find_if(sums, [&](auto &sum) {
        std::set<unsigned> scope = joined(sum.first);
        return scope.size() == sum.first.size() ||
               fitsInto(entriesOf(std::vector<unsigned>(scope.begin(), scope.end())));
      });
      if (fits == sums.end())
        fits = sums.emplace(sums.end());
      fits->first = joined(fits->first);
      fits->second.push_back(table);
    }
    minimum.isProved &= sums.size() <= 1;
    Step &step = steps.emplace_back();
    step.variable = variable;
    for (auto &[scope, summands] : sums) {
      auto made = new Table(eliminate(variable, summands, step.best));
      bytes += made->costs.size() * sizeof(double);
      step.scope = made->variables;
      minimum.entries = std::max(minimum.entries, made->costs.size());
      add(Shared(made, [&bytes](const Table *table) {
        bytes -= table->costs.size() * sizeof(double);
        delete table;
      }));
    }
    if (sums.size() > 1) {
      step.best.clear();
      step.bucket = std::move(bucket);
    }
    bytes += step.best.size() * sizeof(uint16_t);
  }
  for (const Step &step : llvm::reverse(steps)) {
    unsigned best = 0;
    if (!step.best.empty()) {
      size_t index = 0;
      for (unsigned other : step.scope)
        index = index * counts[other] + minimum.values[other];
      best = step.best[index];
    }
    double least = never;
    for (unsigned value = 0; !step.bucket.empty() && value < counts[step.variable]; ++value) {
      minimum.values[step.variable] = value;
      double sum = 0;
      for (const Shared &table : step.bucket)
        sum += table->costs[indexIn(*table, minimum.values)];
      if (sum < least) {
        least = sum;
        best = value;
      }
    }
    minimum.values[step.variable] = best;
  }
  if (!minimum.isProved)
    improve(minimum, end);
  minimum.cost = costOf(minimum.values);
  return minimum;
}

std::string TableSum::linearProgram(double scale) const {
  std::string objective, rows, binaries;
  auto addCost = [&](double cost, const std::string &name) {
    if (cost != 0)
      objective += llvm::formatv(" + {0:E17} {1}\n", cost * scale, name).str();
  };
  for (unsigned variable = 0; variable < size(); ++variable) {
    for (unsigned value = 0; value < counts[variable]; ++value) {
      std::string name = llvm::formatv("x_{0}_{1}", variable, value).str();
      rows += " + " + name;
      binaries += " " + name + "\n";
    }
    rows += " = 1\n";
  }
  for (auto [t, table] : llvm::enumerate(tables)) {
    // For each variable and value, the rows with it.
    std::map<std::pair<unsigned, unsigned>, std::string> with;
    for (unsigned variable : table.variables)
      for (unsigned value = 0; value < counts[variable]; ++value)
        with[{variable, value}];
    for (size_t row = 0; row < table.costs.size(); ++row) {
      if (table.costs[row] == never)
        continue;
      std::string name = llvm::formatv("y_{0}_{1}", t, row).str();
      addCost(table.costs[row], name);
      size_t rest = row;
      for (unsigned variable : llvm::reverse(table.variables)) {
        with[{variable, unsigned(rest % counts[variable])}] += " + " + name;
        rest /= counts[variable];
      }
    }
    for (auto &[which, sum] : with)
      rows += sum + llvm::formatv(" - x_{0}_{1} = 0\n", which.first, which.second).str();
  }
  // Solvers refuse an objective without a term.
  return "Minimize\n obj: 0 x_0_0\n" + objective + "Subject To\n" + rows + "Binaries\n" + binaries +
         "End\n";
}
