//===- Agreement.h - what ranks must have in common ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks are started apart from each other, with flags and files of their own. Before
// anything else they compare the executable's plan, the value of every flag, except
// for those of which the flag table says otherwise, and the files that all of them
// read: sizes and a hash of their contents, since each machine may have its own path.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_AGREEMENT_H
#define MESHWRIGHT_RUNTIME_COMMON_AGREEMENT_H

#include <map>
#include <string>
#include <vector>

namespace meshwright {

class RankGroup;
struct Options;
struct Plan;

/// One thing that is compared.
struct Term {
  std::string name;   ///< "--lr"
  std::string value;  ///< what must be the same
  std::string where;  ///< a path, for errors; may differ
  std::string remedy; ///< what to do where values differ
};

/// What a rank brings. Reads samples of the files.
std::vector<Term> termsOf(const Plan &plan, const Options &options);

/// What a run trains on: the sizes and samples of the files of --data, their masks, documents and
/// sources, and of the weights that adapters are trained beside, as `termsOf` compares them, by the
/// flags that are given.
std::map<std::string, std::string> trainingData(const Options &options);

/// The size and a sample of the contents of the weights that the flag `flag` names.
std::string weightsWords(const std::string &path, const std::string &flag);

/// An Error, the same on every rank, that names the first term of which two ranks have different
/// values, with the ranks and their values. Collective.
void checkAgreement(RankGroup &world, const std::vector<Term> &mine);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_AGREEMENT_H
