//===- TableSum.h - the least sum of tables ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Variables have few values each; a table says what every combination of some of them
// costs. The least sum is found by eliminating one variable after the other, which is
// dynamic programming along a tree decomposition (Bertele and Brioschi 1972; Dechter
// 1999): first values go that another value of the variable is never worse than, whatever
// its neighbours have (dead-end elimination, Desmet et al. 1992; Goldstein 1994). Then the
// tables of a variable are added up, and the best value of the variable for
// each combination of its neighbours is a new table. Where such a table would be too
// large its summands are minimized apart, as mini-buckets (Dechter and Rish 2003): the
// sum is then a lower bound, and the values found need not be the best. So it goes on where
// time or memory is short, with small tables.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_TABLESUM_H
#define MESHWRIGHT_LIB_DIST_TABLESUM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace meshwright::dist {

class TableSum {
public:
  /// What a combination costs that must not be.
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct Minimum {
    /// For each variable its value.
    std::vector<unsigned> values;
    double cost = 0;
    /// No choice of values costs less.
    double bound = 0;
    /// Entries of the largest table.
    size_t entries = 0;
    /// Whether the cost is the least: no table was too large, or the bound is reached but for
    /// rounding.
    bool isProved = false;
    bool isOutOfTime = false; ///< the time ended before the search
  };
  using Time = std::chrono::steady_clock::time_point;

  unsigned addVariable(unsigned values);
  /// `costs` has an entry for each combination, the last variable's value varying fastest.
  void addTable(llvm::ArrayRef<unsigned> variables, std::vector<double> costs);
  /// Allows one value of a variable.
  void fix(unsigned variable, unsigned value);

  /// The values of least cost, with tables of at most so many entries, and of 64 bytes for each of
  /// these in all. After `end` what is left is done with small tables. Values that are not proved
  /// cost no more than the first ones of all variables. If every combination costs `never`, so does
  /// the result.
  Minimum minimize(size_t mostEntries, Time end = Time::max()) const;
  double costOf(llvm::ArrayRef<unsigned> values) const;
  size_t size() const { return counts.size(); }
  unsigned valuesOf(unsigned variable) const { return counts[variable]; }

  /// The same problem as a mixed-integer linear program in CPLEX's LP format: binary x_V_A is
  /// whether variable V has value A, y_T_R the row of table T. Its optimum is the least cost times
  /// `scale`.
  std::string linearProgram(double scale) const;

private:
  struct Table {
    llvm::SmallVector<unsigned, 4> variables;
    std::vector<double> costs;
  };
  /// Of each variable the values that are left.
  using Values = std::vector<std::vector<unsigned>>;
  Values withoutDominated(Time end) const;
  bool isDominated(unsigned variable, unsigned value, unsigned by, llvm::ArrayRef<const Table *> of,
                   const Values &left) const;
  TableSum restrictedTo(const Values &left) const;
  Minimum eliminateAll(size_t mostEntries, Time end) const;
  size_t indexIn(const Table &table, llvm::ArrayRef<unsigned> values) const;
  size_t entriesOf(llvm::ArrayRef<unsigned> variables) const;
  /// Gives `best` the value of the variable in each entry of the result.
  Table eliminate(unsigned variable, llvm::ArrayRef<const Table *> tables,
                  std::vector<uint16_t> &best) const;
  void improve(Minimum &minimum, Time end) const;

  std::vector<unsigned> counts; ///< values of each variable
  std::vector<Table> tables;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_TABLESUM_H
