//===- CalibrateCommand.cpp - the `calibrate` command -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ClusterText.h"
#include "Programs.h"
#include "Rates.h"

#include "meshwright/AtomicFile.h"
#include "meshwright/MeasuredCalls.h"
#include "meshwright/Pipeline.h"
#include "meshwright/runtime/FileArguments.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <chrono>
#include <ctime>
#include <random>
#include <thread>
#include <unistd.h>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace sys = llvm::sys;

namespace meshwright {

/// With more ranks the programs, whose widths and experts they divide, would have to be larger.
static constexpr int64_t maxRanks = 8;

static constexpr const char *calibrateUsage =
    "usage: meshwright calibrate -o FILE.toml [--ranks N] [--mpi|--launcher COMMAND] [--quick] [--samples FILE]\n"
    "  Measures this machine's CPUs and writes a cluster file for predict, plan and compile --cluster:\n"
    "  trains small models for a few steps each and derives the rates of matrix products, attention,\n"
    "  kernels and collectives from the times of their calls. Run it on an otherwise idle machine.\n"
    "  --ranks N       number of ranks that share the machine: 1, 2, 4 or 8 (default: 1). The rates\n"
    "                  are those of one rank while all are busy, so the file is for meshes of N ranks\n"
    "  --mpi           run ranks as processes under mpirun (default: as threads of one process)\n"
    "  --launcher COMMAND  start ranks by this command, for ranks on several machines:\n"
    "                  'mpirun --hostfile hosts -n 2', 'srun -n 2'\n"
    "  --quick         measure small models alone, and once: large products are then predicted from small\n"
    "                  ones, and what disturbs the machine counts\n"
    "  --samples FILE  also write every measured call, as JSON\n";

namespace {
struct Settings {
  std::string output, samples;
  int64_t ranks = 1;
  bool quick = false;
  /// Words that start the ranks as processes; none: threads of one process.
  std::vector<std::string> launcher;
};

class Calibration {
public:
  Calibration(const Settings &settings, MLIRContext &context, StringRef folder)
      : settings(settings), context(context), folder(folder) {}
  /// What the programs train on: bytes at random.
  Error writeTokens() const;
  /// Compiles the next program.
  Error compileNext(const calibrate::Program &program);
  /// Trains a program that is compiled; of what is measured again the shorter time counts.
  Error measure(size_t number, int64_t steps);
  std::vector<report::MeasuredRun> runs; ///< by program

private:
  std::string path(const llvm::Twine &name) const { return (folder + "/" + name).str(); }
  Error train(size_t number, int64_t steps) const;

  const Settings &settings;
  MLIRContext &context;
  std::string folder;
  std::vector<OwningOpRef<ModuleOp>> modules; ///< of phase exec
};
} // namespace

Error Calibration::writeTokens() const {
  std::mt19937 random(1);
  std::string tokens;
  for (int i = 0; i < 1 << 18; ++i)
    tokens += {char(random() & 255), 0}; // 16 bits, below each vocabulary
  return writeFileAtomically(tokens, path("tokens.bin"));
}

/// Trains the executable, with each rank's spans of all but the first two steps.
Error Calibration::train(size_t number, int64_t steps) const {
  std::string log = path("log");
  std::vector<std::string> words = settings.launcher;
  words.push_back(path("exe" + llvm::Twine(number)));
  if (settings.launcher.empty())
    words.insert(words.end(), {"--ranks", std::to_string(settings.ranks)});
  words.insert(words.end(), {"--data", path("tokens.bin"), "--steps", std::to_string(steps + 2),
                             "--trace", path("trace.json"), "--trace-from", "2"});
  std::vector<StringRef> args(words.begin(), words.end());
  auto program = sys::findProgramByName(words.front());
  if (!program)
    return createStringError("there is no '" + words.front() + "' to start ranks with" +
                             (words.front() == "mpirun" ? " (Debian: apt-get install openmpi-bin)"
                                                        : "; give the command as --launcher"));
  std::string message;
  int code = sys::ExecuteAndWait(*program, args, std::nullopt,
                                 {StringRef(), StringRef(log), StringRef(log)}, 0, 0, &message);
  if (code == 0)
    return Error::success();
  auto text = llvm::MemoryBuffer::getFile(log);
  return createStringError("a program that measures ended with " + llvm::Twine(code) + ": " +
                           message + (text ? (*text)->getBuffer().take_back(1000) : ""));
}

Error Calibration::compileNext(const calibrate::Program &program) {
  if (Error error = writeFileAtomically(program.config, path("config.json")))
    return error;
  std::vector<std::string> flags{path("config.json")};
  flags.insert(flags.end(), program.flags.begin(), program.flags.end());
  std::vector<std::string> toExe = flags;
  toExe.insert(toExe.end(), {"-o", path("exe" + llvm::Twine(modules.size()))});
  Expected<CompileOptions> options = parseCompileOptions(flags);
  if (!options)
    return options.takeError();
  Expected<CompileOptions> exeOptions = parseCompileOptions(toExe);
  if (!exeOptions)
    return exeOptions.takeError();
  std::string said;
  llvm::raw_string_ostream log(said);
  auto module = compileTo(Phase::exec, *options, context, log);
  if (!module)
    return module.takeError();
  modules.push_back(std::move(*module));
  return compile(*exeOptions, context, log);
}

Error Calibration::measure(size_t number, int64_t steps) {
  if (Error error = train(number, steps))
    return error;
  Expected<report::MeasuredRun> run =
      report::readMeasuredCalls(path("trace.json"), *modules[number]);
  if (!run)
    return run.takeError();
  if (number == runs.size())
    runs.push_back(std::move(*run));
  else
    runs[number].keepShorter(*run);
  return Error::success();
}

/// All that was measured, for those who want to look.
static std::string samplesText(const std::vector<report::MeasuredRun> &runs) {
  llvm::json::Array all;
  for (const report::MeasuredRun &run : runs) {
    llvm::json::Array calls, collectives;
    for (const report::MeasuredCall &call : run.calls) {
      llvm::json::Object functions;
      for (auto &[name, count] : call.work.functions)
        functions[name] = count;
      calls.push_back(llvm::json::Object{{"name", call.name},
                                         {"location", call.location},
                                         {"kind", int64_t(call.work.kind)},
                                         {"bits", int64_t(call.work.bits)},
                                         {"keys", call.work.keys},
                                         {"head_size", call.work.headSize},
                                         {"flops", call.work.flops},
                                         {"bytes", call.work.bytes},
                                         {"functions", std::move(functions)},
                                         {"seconds", call.seconds},
                                         {"runs", call.runs}});
    }
    for (const report::MeasuredCollective &collective : run.collectives)
      collectives.push_back(llvm::json::Object{{"name", collective.name},
                                               {"members", collective.members},
                                               {"bytes", collective.bytes},
                                               {"seconds", collective.seconds}});
    all.push_back(llvm::json::Object{{"step", run.step},
                                     {"between", run.between},
                                     {"launches", run.launches},
                                     {"calls", std::move(calls)},
                                     {"collectives", std::move(collectives)}});
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(all))).str();
}

/// "AMD EPYC 9654", of what the machine says of itself.
static std::string processorName() {
  if (auto text = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo"))
    for (StringRef line : llvm::split((*text)->getBuffer(), '\n'))
      if (line.starts_with("model name"))
        return line.split(':').second.trim().str();
  return "processor";
}

/// The machine as its ranks see it. `programs` are those of the runs.
static cost::Cluster clusterOf(llvm::ArrayRef<report::MeasuredRun> runs,
                               llvm::ArrayRef<calibrate::Program> programs,
                               const Settings &settings) {
  cost::Cluster cluster;
  std::string processor = processorName();
  cluster.name = sys::path::stem(settings.output).str();
  cluster.target = "cpu";
  cluster.description = llvm::formatv("{0} {1} of a machine with {2} cores ({3})", settings.ranks,
                                      settings.ranks == 1 ? "rank" : "ranks",
                                      std::thread::hardware_concurrency(), processor);
  cost::Device device = calibrate::rateDevice(runs);
  device.name = processor;
  device.description = "a rank on " + processor;
  device.capacity = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) /
                    double(settings.ranks);
  // A copy reads and writes each byte.
  device.host = {0, device.memory.peak() / 2};
  cost::Level level = calibrate::rateLinks(runs, device);
  level.name = settings.launcher.empty() ? "memory" : "MPI";
  level.count = settings.ranks;
  auto runOf = [&](calibrate::Program::Overlap overlap) -> const report::MeasuredRun * {
    for (auto [program, run] : llvm::zip(programs, runs))
      if (program.overlap == overlap)
        return &run;
    return nullptr;
  };
  if (const report::MeasuredRun *overlapped = runOf(calibrate::Program::On))
    level.contention = calibrate::contention(*overlapped, *runOf(calibrate::Program::Off));
  cluster.devices.push_back({device, 0});
  cluster.levels.push_back(level);
  return cluster;
}

static Expected<Settings> parseSettings(llvm::ArrayRef<std::string> args) {
  Settings settings;
  std::string ranks = "1", launcher;
  bool mpi = false;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string *value = llvm::StringSwitch<std::string *>(args[i])
                             .Case("-o", &settings.output)
                             .Case("--samples", &settings.samples)
                             .Case("--ranks", &ranks)
                             .Case("--launcher", &launcher)
                             .Default(nullptr);
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(calibrateUsage);
    if (args[i] == "--mpi")
      mpi = true;
    else if (args[i] == "--quick")
      settings.quick = true;
    else if (value && i + 1 < args.size())
      *value = args[++i];
    else
      return createStringError((value ? "a value is missing after '" : "unknown option '") +
                               args[i] + "'\n" + calibrateUsage);
  }
  if (StringRef(ranks).getAsInteger(10, settings.ranks) || settings.ranks < 1 ||
      settings.ranks > maxRanks || !llvm::isPowerOf2_64(settings.ranks))
    return createStringError("--ranks must be 1, 2, 4 or 8, found '" + ranks + "'\n" + calibrateUsage);
  if (mpi && !launcher.empty())
    return createStringError("--mpi starts ranks by mpirun, so leave --launcher out, or --mpi");
  if (mpi)
    settings.launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks};
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(launcher, words);
  for (StringRef word : words)
    settings.launcher.push_back(word.str());
  if (!StringRef(settings.output).ends_with(".toml"))
    return createStringError("-o must name the cluster file to write, whose name ends in .toml; found '" +
                             settings.output + "'\n" + calibrateUsage);
  if (!settings.samples.empty())
    if (std::string clash = clashOf({{"-o", settings.output, FileUse::Output},
                                     {"--samples", settings.samples, FileUse::Output}});
        !clash.empty())
      return createStringError(clash);
  for (StringRef file : {settings.output, settings.samples}) {
    StringRef folder = sys::path::parent_path(file);
    if (std::error_code code =
            sys::fs::access(folder.empty() ? "." : folder, sys::fs::AccessMode::Write))
      return createStringError("cannot write '" + file + "': " + code.message());
  }
  return settings;
}

/// Says on a terminal how far the measurement has come.
static void showProgress(size_t done, size_t all) {
  if (!isatty(STDERR_FILENO))
    return;
  if (done == all)
    llvm::errs() << "\r\x1b[K";
  else
    llvm::errs() << "\r[" << std::string(30 * done / all, '#')
                 << std::string(30 - 30 * done / all, ' ') << "] " << done << " of " << all
                 << "\x1b[K";
  llvm::errs().flush();
}

Error calibrateMachine(llvm::ArrayRef<std::string> args, MLIRContext &context,
                       llvm::raw_ostream &os) {
  Expected<Settings> settings = parseSettings(args);
  if (!settings)
    return settings.takeError();
  llvm::SmallString<128> folder;
  if (std::error_code code = sys::fs::createUniqueDirectory("meshwright-calibrate", folder))
    return createStringError("cannot make a folder for the programs that measure: " +
                             code.message());
  auto cleanUp = llvm::scope_exit([&] { sys::fs::remove_directories(folder); });
  auto begin = std::chrono::steady_clock::now();
  Calibration calibration(*settings, context, folder);
  if (Error error = calibration.writeTokens())
    return error;
  std::vector<calibrate::Program> programs = calibrate::programsFor(settings->ranks, settings->quick);
  // Programs are measured twice, some time apart, so that what disturbs a machine for seconds does
  // not count.
  size_t rounds = settings->quick ? 1 : 2;
  size_t all = programs.size() * (1 + rounds);
  for (size_t i = 0; i < all; ++i) {
    showProgress(i, all);
    size_t number = i % programs.size();
    if (Error error = i < programs.size()
                          ? calibration.compileNext(programs[number])
                          : calibration.measure(number, programs[number].steps))
      return error;
  }
  showProgress(all, all);
  cost::Cluster cluster = clusterOf(calibration.runs, programs, *settings);
  std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::string source =
      llvm::formatv("meshwright calibrate --ranks {0}{1}, {2}, {3}", settings->ranks, settings->quick ? " --quick" : "",
                    settings->launcher.empty() ? "threads" : llvm::join(settings->launcher, " "), date);
  if (Error error = writeFileAtomically(calibrate::clusterText(cluster, source), settings->output))
    return error;
  if (!settings->samples.empty())
    if (Error error = writeFileAtomically(samplesText(calibration.runs), settings->samples))
      return error;
  os << llvm::formatv("{0}: {1}, measured by {2} programs in {3:F0} s\n", settings->output,
                      cluster.description, programs.size(),
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  os << "calls by these rates beside what they took, mean distance over all programs:\n";
  for (const calibrate::Misfit &misfit :
       calibrate::misfits(calibration.runs, cluster.devices.front().device))
    os << llvm::formatv("  {0,-22}{1,7:P1} of a step, {2:P1} apart\n", misfit.kind, misfit.share,
                        std::expm1(misfit.error));
  return Error::success();
}

} // namespace meshwright
