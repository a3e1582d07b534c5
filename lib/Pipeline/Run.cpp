//===- Run.cpp - the `run` command -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Train.h"
#include "common/data/BatchRamp.h"
#include "meshwright/CheckBatchRamp.h"
#include "meshwright/Codegen.h"
#include "meshwright/Pipeline.h"
#include "meshwright/PlanJson.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace meshwright {

static constexpr const char *runUsage =
    "usage: meshwright run -n N [--mpi] [--restarts K [--elastic EXE]..] EXE ARGS...\n"
    "  -n N          ranks to start; must equal the executable's mesh\n"
    "  --mpi         start them as processes under mpirun, also as root and with more ranks than cores\n"
    "                (default: as threads of one process)\n"
    "  --restarts K  start the run again when it ends with an error or a rank is lost, K times at most,\n"
    "                from the newest checkpoint that is not damaged (--resume auto); needs EXE's --save.\n"
    "                SIGTERM and SIGINT end the run and are no reason to start again\n"
    "  --elastic EXE elastic training: an executable of the same model and global batch for fewer ranks,\n"
    "                with which the run goes on after a rank is lost (killed by a signal). Repeat it for\n"
    "                several sizes. Send SIGUSR2 when ranks are available again: the run saves its state\n"
    "                and goes on with N ranks\n";

using Command = std::vector<std::string>;

namespace {
/// An executable with which a run may go on.
struct Member {
  unsigned ranks;
  std::string path;
};
} // namespace

/// Replaces this process by `command`; returns only on failure, with what it is.
static Error become(const Command &command) {
  std::vector<char *> argv;
  for (const std::string &word : command)
    argv.push_back(const_cast<char *>(word.data()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return createStringError("cannot start '" + command[0] + "': " + strerror(errno) +
                           (command[0] == "mpirun" ? " (Debian: apt-get install openmpi-bin)" : ""));
}

//===--- restarts --------------------------------------------------------------===//

/// The values of `flag` in the executable's arguments, as "FLAG VALUE" or "FLAG=VALUE".
static std::vector<std::string> valuesOf(const Command &args, StringRef flag) {
  std::vector<std::string> values;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i] == flag && i + 1 < args.size())
      values.push_back(args[++i]);
    else if (StringRef(args[i]).starts_with((flag + "=").str()))
      values.push_back(args[i].substr(flag.size() + 1));
  return values;
}

/// The arguments with which the run goes on from its last checkpoint.
static Command resuming(const Command &args) {
  Command result;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i] == "--resume")
      ++i;
    else if (!StringRef(args[i]).starts_with("--resume="))
      result.push_back(args[i]);
  result.insert(result.end(), {"--resume", "auto"});
  return result;
}

/// The folders of --save in the executable's arguments.
static std::vector<std::string> saveFolders(const Command &args) {
  std::vector<std::string> folders = valuesOf(args, "--save");
  for (std::string &folder : folders) {
    auto [path, interval] = StringRef(folder).rsplit(':');
    if (!interval.empty() && llvm::all_of(interval, llvm::isDigit))
      folder = path.str();
  }
  return folders;
}

/// The process that is waited for, the signal that has asked it to end, whether it lacks ranks, and whether these are back.
static volatile sig_atomic_t child = 0, stopSignal = 0, lacksRanks = 0, ranksAreBack = 0;

static void passOn(int signal) {
  stopSignal = signal;
  if (child)
    kill(pid_t(child), signal);
}

static void endForMoreRanks(int) {
  if (!lacksRanks)
    return;
  ranksAreBack = 1;
  if (child)
    kill(pid_t(child), SIGTERM);
}

/// Runs `command` to its end. Returns its exit status, 128 + N for signal N.
static llvm::Expected<int> finish(const Command &command) {
  // Between fork and the line that says whom to pass signals on to none arrives, nor in the child before it ends of them.
  sigset_t passed, before;
  sigemptyset(&passed);
  for (int signal : {SIGTERM, SIGINT, SIGUSR2})
    sigaddset(&passed, signal);
  sigprocmask(SIG_BLOCK, &passed, &before);
  pid_t pid = fork();
  if (pid < 0)
    return createStringError(llvm::Twine("cannot start a process: ") + strerror(errno));
  if (pid == 0) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    Error error = become(command);
    llvm::errs() << "meshwright: error: " << toString(std::move(error)) << "\n";
    _exit(127);
  }
  child = pid;
  // What has come before there was anyone to pass it on to.
  if (stopSignal)
    kill(pid, stopSignal);
  else if (ranksAreBack)
    kill(pid, SIGTERM);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// What starts the ranks of `member`.
static Command launcherOf(const Member &member, bool mpi) {
  std::string ranks = std::to_string(member.ranks);
  Command command;
  if (mpi)
    command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks};
  // A bare name is a file here, not something on PATH.
  command.push_back(member.path.find('/') == std::string::npos ? "./" + member.path : member.path);
  if (!mpi)
    command.insert(command.end(), {"--ranks", ranks});
  return command;
}

/// Whether steps of an executable may have fewer microbatches.
static bool mayRamp(const plan::Plan &plan) {
  return llvm::any_of(plan.inputs, [](const plan::Port &input) { return input.name == train::microbatchesInput; });
}

/// The executables of `paths` behind the first, with `count` ranks, the largest first. An error where a run of one with
/// `args` is not that of another on other ranks.
static llvm::Expected<std::vector<Member>> membersOf(const std::vector<std::string> &paths, unsigned count, const Command &args) {
  std::vector<Member> members;
  std::vector<std::string> ramps = valuesOf(args, "--batch-ramp");
  std::string ramp = ramps.empty() || ramps.back() == noBatchRamp ? "" : ramps.back();
  // Without the flag a resumed run has the ramp of its checkpoint.
  bool isRamped = ramps.empty() ? !valuesOf(args, "--resume").empty() : !ramp.empty();
  std::optional<plan::Plan> first;
  for (const std::string &path : paths) {
    llvm::Expected<std::string> text = readPlan(path);
    if (!text)
      return text.takeError();
    llvm::Expected<plan::Plan> plan = plan::parse<plan::Plan>(*text);
    if (!plan)
      return createStringError("the plan in '" + path + "' is damaged: " + toString(plan.takeError()));
    unsigned ranks = 1;
    for (const plan::MeshAxis &axis : plan->mesh)
      ranks *= unsigned(axis.size);
    if (!first) {
      if (ranks != count)
        return createStringError("-n " + llvm::Twine(count) + ": '" + path + "' is for " + llvm::Twine(ranks) + " ranks");
      first = *plan;
    } else if (ranks >= members.back().ranks) {
      return createStringError("--elastic " + path + " is for " + llvm::Twine(ranks) + " ranks, the executable before it, " +
                               members.back().path + ", for " + llvm::Twine(members.back().ranks) +
                               ": name executables for fewer and fewer ranks");
    }
    auto differs = [&](const char *what, const std::string &is, const std::string &was) -> Error {
      return createStringError("--elastic " + path + " computes other numbers than " + paths.front() + ": " + what + " is " + is +
                               ", not " + was + ": compile both with the same flags but --mesh");
    };
    if (plan->batch != first->batch)
      return differs("batch", std::to_string(plan->batch), std::to_string(first->batch));
    if (isRamped && mayRamp(*plan) != mayRamp(*first))
      return differs("batch-ramp", mayRamp(*plan) ? "on" : "not given", mayRamp(*first) ? "on" : "not given");
    if (mayRamp(*plan) && !ramp.empty())
      if (Error error = interp::checkBatchRamp(ramp, plan->batch, plan->microbatches))
        return createStringError(path + ": " + toString(std::move(error)));
    std::map<std::string, std::string> was, is;
    for (const plan::Setting &setting : first->numbers.value_or(plan::List<plan::Setting>()))
      was[setting.name] = setting.value;
    for (const plan::Setting &setting : plan->numbers.value_or(plan::List<plan::Setting>()))
      is[setting.name] = setting.value;
    for (const auto *settings : {&was, &is})
      for (const auto &[name, value] : *settings)
        if (is[name] != was[name])
          return differs(name.c_str(), is[name].empty() ? "not given" : is[name], was[name].empty() ? "not given" : was[name]);
    members.push_back({ranks, path});
  }
  return members;
}

/// Runs the first of `members` with `args` and starts it again, `most` times at most; after a rank is lost the next one,
/// and after SIGUSR2 the first. Exits with its last status.
static Error runWithRestarts(const std::vector<Member> &members, bool mpi, Command args, unsigned most) {
  std::vector<std::string> folders = saveFolders(args);
  if (folders.empty())
    return createStringError("--restarts needs --save DIR among the executable's arguments: a run without checkpoints "
                             "has nothing to go on from");
  // A run that ends before its first checkpoint must not go on from another run's.
  std::vector<std::string> inMemory = valuesOf(args, "--buddy");
  llvm::append_range(folders, inMemory);
  if (valuesOf(args, "--resume").empty())
    for (const std::string &folder : folders)
      if (std::string latest = latestIn(folder); !latest.empty())
        return createStringError(llvm::Twine("--restarts: ") + (llvm::is_contained(inMemory, folder) ? "--buddy " : "--save ") + folder +
                                 " has the checkpoint " + latest +
                                 " already: give --resume auto to go on from it, or name a new folder");
  struct sigaction action = {};
  action.sa_handler = passOn;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  if (members.size() > 1) {
    action.sa_handler = endForMoreRanks;
    sigaction(SIGUSR2, &action, nullptr);
  }
  auto saved = [&] {
    std::vector<std::string> found;
    for (const std::string &folder : folders)
      found.push_back(latestIn(folder));
    return found;
  };
  constexpr unsigned mostInVain = 3;
  const std::vector<std::string> first = saved();
  std::vector<std::string> before = first;
  const std::vector<std::string> given = valuesOf(args, "--resume");
  // Until the run has a checkpoint of its own, it begins where it was told to.
  bool hasSaved = given.empty() || given.back() == "auto";
  size_t at = 0; // of the members
  for (unsigned restarts = 0, inVain = 0;;) {
    Command command = launcherOf(members[at], mpi);
    command.insert(command.end(), args.begin(), args.end());
    llvm::Expected<int> status = finish(command);
    if (!status)
      return status.takeError();
    // 2 and 127: the command line is wrong, or there is no such program.
    if (*status == 0 || *status == 2 || *status == 127 || stopSignal)
      exit(*status);
    std::vector<std::string> now = saved();
    bool grows = ranksAreBack;
    inVain = now == before && !grows ? inVain + 1 : 0;
    before = now;
    std::string ended = (llvm::Twine("the run ended with status ") + llvm::Twine(*status)).str();
    if (grows) {
      at = 0;
      ranksAreBack = 0;
      ended = "ranks are back";
    } else if (*status > 128 && at + 1 < members.size()) {
      ++at;
      ended += ", a rank is lost";
    }
    lacksRanks = at > 0;
    if (!lacksRanks) // It may have come meanwhile.
      ranksAreBack = 0;
    if (inVain == mostInVain)
      return createStringError(ended + ", and has ended " + llvm::Twine(mostInVain) +
                               " times in a row without a new checkpoint: it is not started again");
    // What was asked for is no failure.
    if (restarts == most && !grows)
      return createStringError(ended + " after " + llvm::Twine(restarts) + (restarts == 1 ? " restart" : " restarts") +
                               ", as many as --restarts allows");
    hasSaved |= now != first;
    std::string from;
    for (const std::string &latest : now)
      if (llvm::sys::path::filename(latest) > llvm::sys::path::filename(from))
        from = latest;
    restarts += !grows;
    llvm::errs() << "meshwright: " << ended << ": "
                 << (grows ? "the run goes on" : "restart " + std::to_string(restarts) + " of " + std::to_string(most))
                 << (members.size() > 1 ? " with " + std::to_string(members[at].ranks) + " ranks" : "")
                 << (!hasSaved      ? ", from " + given.back() + " again, since there is no new checkpoint yet"
                     : from.empty() ? ", from the beginning, since there is no checkpoint yet"
                                    : ", from " + from)
                 << "\n";
    if (hasSaved)
      args = resuming(args);
  }
}

Error run(llvm::ArrayRef<std::string> args) {
  std::string ranks;
  bool mpi = false;
  unsigned restarts = 0;
  bool restarting = false;
  std::vector<std::string> elastic;
  size_t i = 0;
  for (; i < args.size() && StringRef(args[i]).starts_with("-"); ++i) {
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(runUsage);
    if (args[i] == "--mpi")
      mpi = true;
    else if (args[i] == "-n" && i + 1 < args.size())
      ranks = args[++i];
    else if (args[i] == "--elastic" && i + 1 < args.size())
      elastic.push_back(args[++i]);
    else if (args[i] == "--restarts" && i + 1 < args.size()) {
      restarting = true;
      if (StringRef(args[++i]).getAsInteger(10, restarts) || restarts == 0)
        return createStringError("'--restarts' needs a number of at least 1, found '" + args[i] + "'\n" + runUsage);
    } else
      return createStringError("unknown option '" + args[i] + "'\n" + runUsage);
  }
  if (ranks.empty())
    return createStringError(llvm::Twine("'-n' is missing: give the number of ranks, which 'meshwright inspect EXE' shows as the mesh\n") + runUsage);
  unsigned count = 0;
  if (StringRef(ranks).getAsInteger(10, count) || count == 0)
    return createStringError("'-n' needs the number of ranks, found '" + ranks + "'\n" + runUsage);
  if (i == args.size())
    return createStringError(llvm::Twine("no executable given\n") + runUsage);

  if (!elastic.empty() && !restarting)
    return createStringError("--elastic needs --restarts K: without it a run that loses a rank is not started again");
  std::vector<Member> members = {{count, args[i]}};
  Command own(args.begin() + i + 1, args.end());
  if (!elastic.empty()) {
    elastic.insert(elastic.begin(), args[i]);
    llvm::Expected<std::vector<Member>> found = membersOf(elastic, count, own);
    if (!found)
      return found.takeError();
    members = std::move(*found);
  }
  if (restarting)
    return runWithRestarts(members, mpi, own, restarts);
  Command command = launcherOf(members.front(), mpi);
  command.insert(command.end(), own.begin(), own.end());
  return become(command);
}

} // namespace meshwright
