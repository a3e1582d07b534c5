//===- Inspect.cpp - the `inspect` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Codegen.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/EmbeddedIr.h"
#include "meshwright/InputFile.h"
#include "meshwright/KernelTable.h"
#include "meshwright/Pipeline.h"
#include "meshwright/PlanJson.h"
#include "meshwright/Report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::Error;
using llvm::Expected;

namespace meshwright {

static constexpr llvm::StringLiteral inspectUsage =
    "usage: meshwright inspect EXE|PLAN.json [--json | --ir PHASE | --kernels [--trace FILE] [--device "
    "NAME] [--copy-rate BYTES --matmul-rate FLOPS] | --expert-loads METRICS]";

/// The number behind a flag: 4.3e12.
static Expected<double> rateOf(llvm::StringRef flag, llvm::StringRef text) {
  double rate = 0;
  if (text.getAsDouble(rate) || !(rate > 0))
    return llvm::createStringError(flag + " '" + text +
                                   "' is not a positive number, such as 4.3e12");
  return rate;
}

/// The plan in a text; `whose` begins the error if it is none.
static Expected<plan::Plan> parsePlan(llvm::StringRef text, const llvm::Twine &whose) {
  Expected<plan::Plan> plan = plan::parse<plan::Plan>(text);
  if (!plan)
    return llvm::createStringError(whose + ": " + toString(plan.takeError()));
  for (const plan::Collective &collective : plan->collectives)
    if (collective.group < 0 || collective.group >= int64_t(plan->groups.size()))
      return llvm::createStringError(whose + ": a collective is of group " +
                                     llvm::Twine(collective.group) + ", which is not there");
  if (std::string hash = planHash(*plan); hash != plan->hash)
    return llvm::createStringError(whose + ": its hash is " + plan->hash +
                                   ", but what it says has the hash " + hash +
                                   ": it was changed, or is of another version of Meshwright");
  return plan;
}

/// Adds what an assembler said of the kernels.
static Error addAssembled(llvm::StringRef executable, plan::Plan &plan) {
  Expected<std::string> text = readAssembled(executable);
  if (!text || text->empty())
    return text.takeError();
  Expected<plan::AssembledKernels> assembled = plan::parse<plan::AssembledKernels>(*text);
  if (!assembled)
    return assembled.takeError();
  for (auto [program, made] : llvm::zip(plan.programs, assembled->programs))
    for (plan::Kernel &kernel : program.kernels)
      if (auto found = made.kernels.find(kernel.op); found != made.kernels.end())
        kernel.assembled = found->second;
  return Error::success();
}

/// The plan in an executable, or in a file as `inspect --json` or `--report` writes it.
static Expected<plan::Plan> planOf(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path)) {
    bool isReport = llvm::sys::fs::exists(path + "/report.json");
    return llvm::createStringError("'" + path + "' is a folder; name " +
                                   (isReport ? "its file " + path + "/report.json"
                                             : "an executable or a report.json, or use 'meshwright checkpoint inspect' for a checkpoint"));
  }
  auto file = readInput(path, planInput);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + toString(file.takeError()));
  if (llvm::StringRef text = (*file)->getBuffer(); text.ltrim().starts_with("{"))
    return parsePlan(text, "'" + path + "' has no whole plan in it");
  Expected<std::string> text = readPlan(path);
  if (!text)
    return text.takeError();
  Expected<plan::Plan> plan =
      parsePlan(*text, "the plan in '" + path + "' is damaged; compile the model again");
  if (!plan)
    return plan;
  // What else is in the text changes nothing here, but an executable refuses it.
  if (planText(*plan) != *text)
    return llvm::createStringError("the plan in '" + path +
                                   "' is not as it was written; compile the model again");
  if (Error error = addAssembled(path, *plan))
    return error;
  return plan;
}

/// The IR of a phase that an executable carries.
static Error printIr(llvm::StringRef file, llvm::StringRef name, llvm::raw_ostream &os) {
  std::optional<Phase> phase = phaseNamed(name);
  if (!phase)
    return llvm::createStringError("--ir '" + name + "' is no phase; executables carry IR of the phases train, step and dist");
  Expected<PhaseTexts> texts = readEmbeddedIr(file);
  if (!texts)
    return texts.takeError();
  if (texts->empty())
    return llvm::createStringError("'" + file + "' carries no IR; an executable of 'meshwright compile' does");
  if (auto found = texts->find(*phase); found != texts->end()) {
    os << found->second;
    return Error::success();
  }
  auto names = llvm::map_range(*texts, [](const auto &entry) { return nameOf(entry.first); });
  return llvm::createStringError("--ir " + name + ": '" + file + "' carries IR of the phases " + llvm::join(names, ", ") +
                                 " alone; 'meshwright compile --emit " + name + "' prints others");
}

/// `trace` is the file with what was measured; empty: nothing was.
static Error listKernels(const plan::Plan &plan, KernelTimes times, llvm::StringRef trace,
                         llvm::raw_ostream &os) {
  if (trace.empty())
    return printKernels(plan, times, os);
  Expected<MeasuredKernels> measured = readMeasuredKernels(trace, plan);
  if (!measured)
    return measured.takeError();
  times.measured = &*measured;
  return printKernels(plan, times, os);
}

/// What --certify proved, of an executable; plans in files have none.
static Error printCertificate(llvm::StringRef path, llvm::raw_ostream &os) {
  auto file = readInput(path, planInput);
  if (!file)
    return file.takeError();
  if ((*file)->getBuffer().ltrim().starts_with("{"))
    return Error::success();
  Expected<std::string> certificate = readCertificate(path);
  if (certificate && !certificate->empty())
    os << "\n" << *certificate;
  return certificate.takeError();
}

Error inspect(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  std::string file, phase, trace, loads;
  bool json = false, kernels = false;
  KernelTimes times;
  Ceilings &ceilings = times.ceilings;
  for (size_t i = 0; i < args.size(); ++i) {
    llvm::StringRef arg = args[i];
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(
          (inspectUsage + "\n"
                   "  Shows a plan, as tables or as JSON (docs/plan.md), of an executable, of the output of\n"
                   "  --json, or of the report.json of 'meshwright compile --report'.\n"
                   "  Of an executable that was compiled with --certify it also shows the certificate.\n"
                   "  --ir prints the IR that an executable was compiled from: of phase train (the model), step (the\n"
                   "  training graph) or dist (with shardings).\n"
                   "  --kernels lists the bytes that each kernel, matrix product and attention of a step\n"
                   "  reads and writes on one rank, and its FLOPs. With measured rates of copies within device\n"
                   "  memory (bytes read and written per second) and of matrix products (FLOP/s), it adds the\n"
                   "  roofline time, a lower bound: the larger of the two. With --device, a name of the table of\n"
                   "  devices such as h100-sxm-measured, it adds the time that 'meshwright predict' would expect\n"
                   "  there: matrix products by tiles, where their rates are measured. With the file that an executable's\n"
                   "  --trace wrote, it adds how long each took, as the mean over all runs and ranks in it, and\n"
                   "  fails if one was more than 5% faster than its lower bound. For kernels that ptxas assembled\n"
                   "  it also lists registers per thread and spilled bytes, by architecture.\n"
                   "  --expert-loads says how many rows the busiest device along mesh axis expert computes in each layer,\n"
                   "  without copies of experts and with those that the executable would choose by these loads, the last\n"
                   "  ones in a file that --metrics and --expert-tokens-every wrote.\n")
              .str());
    if (arg == "--json") {
      json = true;
    } else if (arg == "--kernels") {
      kernels = true;
    } else if (arg == "--ir") {
      if (i + 1 == args.size())
        return llvm::createStringError(arg + " needs a phase, such as dist; " + inspectUsage);
      phase = args[++i];
    } else if (arg == "--device") {
      if (i + 1 == args.size())
        return llvm::createStringError(arg + " needs a name, such as h100-sxm-measured; " + inspectUsage);
      cost::DeviceChoice choice;
      if (Error error = cost::parseOption(args[++i], choice))
        return llvm::createStringError(arg + " " + toString(std::move(error)));
      times.device = choice.device;
    } else if (arg == "--trace") {
      if (i + 1 == args.size())
        return llvm::createStringError(arg + " needs a file; " + inspectUsage);
      trace = args[++i];
    } else if (arg == "--expert-loads") {
      if (i + 1 == args.size())
        return llvm::createStringError(arg + " needs a file of metrics; " + inspectUsage);
      loads = args[++i];
    } else if (arg == "--copy-rate" || arg == "--matmul-rate") {
      if (i + 1 == args.size())
        return llvm::createStringError(arg + " needs a number; " + inspectUsage);
      Expected<double> rate = rateOf(arg, args[++i]);
      if (!rate)
        return rate.takeError();
      (arg == "--copy-rate" ? ceilings.copyRate : ceilings.matmulRate) = *rate;
    } else if (!file.empty() || arg.starts_with("-")) {
      return llvm::createStringError("unexpected argument '" + arg + "'; " + inspectUsage);
    } else {
      file = arg.str();
    }
  }
  if (file.empty())
    return llvm::createStringError("no executable given; " + inspectUsage);
  if ((ceilings.copyRate > 0) != (ceilings.matmulRate > 0) || (ceilings.known() && !kernels))
    return llvm::createStringError("--copy-rate and --matmul-rate belong together, with --kernels");
  if ((!trace.empty() || times.device) && !kernels)
    return llvm::createStringError(llvm::Twine(trace.empty() ? "--device" : "--trace") + " belongs to --kernels");
  if (json && kernels)
    return llvm::createStringError("--json has the kernels too; give one of --json and --kernels");
  if (!phase.empty() && (json || kernels))
    return llvm::createStringError("--ir prints IR alone; give one of --ir, --json and --kernels");
  if (!loads.empty() && (!phase.empty() || json || kernels))
    return llvm::createStringError("--expert-loads prints the rows of devices alone; give one of --expert-loads, --ir, --json and "
                                   "--kernels");
  if (!phase.empty())
    return printIr(file, phase, os);
  Expected<plan::Plan> plan = planOf(file);
  if (!plan)
    return plan.takeError();
  if (!loads.empty())
    return printPlacement(*plan, loads, os);
  if (json)
    os << llvm::formatv("{0:2}\n", llvm::json::Value(*plan));
  else if (kernels)
    return listKernels(*plan, times, trace, os);
  else
    printPlan(*plan, os);
  return json || kernels ? Error::success() : printCertificate(file, os);
}

Expected<bool> diff(llvm::StringRef a, llvm::StringRef b, llvm::raw_ostream &os) {
  Expected<plan::Plan> first = planOf(a);
  if (!first)
    return first.takeError();
  Expected<plan::Plan> second = planOf(b);
  if (!second)
    return second.takeError();
  return diffPlans(*first, *second, os) > 0;
}

} // namespace meshwright
