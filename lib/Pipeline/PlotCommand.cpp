//===- PlotCommand.cpp - meshwright plot ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"
#include "meshwright/runtime/FileArguments.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace meshwright {

static constexpr const char *plotUsage =
    "usage: meshwright plot FILE... [--metric KEY] [--smooth N] [--over step|tokens]\n"
    "                       [--log-x] [--log-y] [-o FILE.svg]\n"
    "       meshwright plot --experts FILE.jsonl [-o FILE.svg]\n"
    "  Plots training and evaluation losses from --metrics files (JSON lines or CSV) on the terminal,\n"
    "  and as SVG with -o. --metric plots another metric, such as grad_norm, lr or tokens_per_s;\n"
    "  --smooth N plots a moving average over N steps; --over tokens uses tokens as the x axis, to\n"
    "  compare runs with different batch sizes; --log-x and --log-y use logarithmic axes. --experts\n"
    "  shows the load balance of experts, which executables log with --expert-tokens-every: a table\n"
    "  for the first and the last step and, with -o, each expert's load over time.\n";

static Error refuseToPlot(const Twine &why) { return createStringError(why + "\n" + plotUsage); }

Error plot(ArrayRef<std::string> args, raw_ostream &os) {
  LossPlot what;
  bool experts = false, curves = false; // Whether a flag of curves is given.
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef flag = args[i];
    std::string value = i + 1 < args.size() ? args[i + 1] : "";
    bool takesValue = is_contained({"-o", "--metric", "--smooth", "--over"}, flag);
    if (flag == "-h" || flag == "--help")
      return make_error<HelpRequested>(plotUsage);
    if (takesValue && value.empty())
      return refuseToPlot(flag + (flag == "-o" ? " needs a file" : " needs a value"));
    i += takesValue;
    curves |= flag != "-o" && flag != "--experts" && flag.starts_with("-");
    if (flag == "-o")
      what.svg = value;
    else if (flag == "--experts")
      experts = true;
    else if (flag == "--metric")
      what.metric = value;
    else if (flag == "--smooth") {
      if (!to_integer(value, what.smooth, 10) || what.smooth < 1)
        return refuseToPlot("--smooth '" + value + "' must be a whole number of steps, at least 1");
    } else if (flag == "--over") {
      if (value != "step" && value != "tokens")
        return refuseToPlot("--over '" + value + "' must be step or tokens");
      what.overTokens = value == "tokens";
    } else if (flag == "--log-x")
      what.logSteps = true;
    else if (flag == "--log-y")
      what.logValues = true;
    else if (flag.starts_with("-"))
      return refuseToPlot("unknown option '" + flag + "'");
    else
      what.files.push_back(flag.str());
  }
  if (what.files.empty())
    return refuseToPlot("no file given");
  std::vector<FileArgument> arguments;
  for (const std::string &file : what.files)
    arguments.push_back({"FILE", file, FileUse::Input});
  if (!what.svg.empty())
    arguments.push_back({"-o", what.svg, FileUse::Output});
  if (std::string clash = clashOf(arguments); !clash.empty())
    return createStringError(clash);
  if (!experts)
    return plotLosses(what, os);
  if (what.files.size() > 1)
    return refuseToPlot("--experts draws one file");
  if (curves)
    return refuseToPlot("--experts draws no curves: leave out --metric, --smooth, --over, --log-x and --log-y");
  return plotExperts(what.files[0], what.svg, os);
}

} // namespace meshwright
