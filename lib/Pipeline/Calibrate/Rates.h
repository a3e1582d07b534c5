//===- Rates.h - rates of a machine from what calls took ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CALIBRATE_RATES_H
#define MESHWRIGHT_LIB_PIPELINE_CALIBRATE_RATES_H

#include "meshwright/Cost/Cluster.h"
#include "meshwright/MeasuredCalls.h"

namespace meshwright::calibrate {

/// The rates with which `cost::CallWork::seconds` comes nearest to what calls took; what no call
/// measures is taken from what is most like it.
cost::Device rateDevice(llvm::ArrayRef<report::MeasuredRun> runs);

/// The links between ranks: of each collective a time for the call and one for its bytes.
cost::Level rateLinks(llvm::ArrayRef<report::MeasuredRun> runs, const cost::Device &device);

/// The share of the time of collectives by which they delay computation beside them, from a step in
/// which they run beside it and one of the same program in which they do not.
double contention(const report::MeasuredRun &overlapped, const report::MeasuredRun &apart);

/// By how much calls took longer or shorter than `device` says: the mean of |log(predicted /
/// measured)| over the time of a step, of each kind of call that there is.
struct Misfit {
  llvm::StringRef kind;
  double share; ///< of the time of all runs
  double error;
};
std::vector<Misfit> misfits(llvm::ArrayRef<report::MeasuredRun> runs, const cost::Device &device);

} // namespace meshwright::calibrate

#endif // MESHWRIGHT_LIB_PIPELINE_CALIBRATE_RATES_H
