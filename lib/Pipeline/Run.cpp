//===- Run.cpp - the `run` command -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace meshwright {

static constexpr const char *usage =
    "usage: meshwright run -n N [--mpi] [--restarts K] EXE ARGS...\n"
    "  -n N          ranks to start; must equal the executable's mesh\n"
    "  --mpi         start them as processes under mpirun, also as root and with more ranks than cores\n"
    "                (default: as threads of one process)\n"
    "  --restarts K  start the run again when it ends with an error or a rank is lost, K times at most,\n"
    "                from the newest checkpoint that is not damaged (--resume auto); needs EXE's --save.\n"
    "                SIGTERM and SIGINT end the run and are no reason to start again\n";

using Command = std::vector<std::string>;

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

/// Where the link "latest" of `folder` leads; empty if there is none.
static std::string latestIn(StringRef folder) {
  char target[4096];
  ssize_t length = readlink((folder + "/latest").str().c_str(), target, sizeof(target));
  return length > 0 ? (folder + "/" + StringRef(target, size_t(length))).str() : "";
}

/// The process that is waited for, and the signal that has asked it to end.
static volatile sig_atomic_t child = 0, stopSignal = 0;

static void passOn(int signal) {
  stopSignal = signal;
  if (child)
    kill(pid_t(child), signal);
}

/// Runs `command` to its end. Returns its exit status, 128 + N for signal N.
static llvm::Expected<int> finish(const Command &command) {
  pid_t pid = fork();
  if (pid < 0)
    return createStringError(llvm::Twine("cannot start a process: ") + strerror(errno));
  if (pid == 0) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    Error error = become(command);
    llvm::errs() << "meshwright: error: " << toString(std::move(error)) << "\n";
    _exit(127);
  }
  child = pid;
  if (stopSignal) // It has come before there was anyone to pass it on to.
    kill(pid, stopSignal);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Runs `launcher` with `args` and starts it again, `most` times at most. Exits with its last status.
static Error runWithRestarts(const Command &launcher, Command args, unsigned most) {
  std::vector<std::string> folders = saveFolders(args);
  if (folders.empty())
    return createStringError("--restarts needs --save DIR among the executable's arguments: a run without checkpoints "
                             "has nothing to go on from");
  // A run that ends before its first checkpoint must not go on from another run's.
  if (valuesOf(args, "--resume").empty())
    for (const std::string &folder : folders)
      if (std::string latest = latestIn(folder); !latest.empty())
        return createStringError("--restarts: --save " + folder + " has the checkpoint " + latest +
                                 " already: give --resume auto to go on from it, or name a new folder");
  struct sigaction action = {};
  action.sa_handler = passOn;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
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
  for (unsigned restarts = 0, inVain = 0;;) {
    Command command = launcher;
    command.insert(command.end(), args.begin(), args.end());
    llvm::Expected<int> status = finish(command);
    if (!status)
      return status.takeError();
    // 2 and 127: the command line is wrong, or there is no such program.
    if (*status == 0 || *status == 2 || *status == 127 || stopSignal)
      exit(*status);
    std::vector<std::string> now = saved();
    inVain = now == before ? inVain + 1 : 0;
    before = now;
    std::string ended = (llvm::Twine("the run ended with status ") + llvm::Twine(*status)).str();
    if (inVain == mostInVain)
      return createStringError(ended + ", and has ended " + llvm::Twine(mostInVain) +
                               " times in a row without a new checkpoint: it is not started again");
    if (restarts == most)
      return createStringError(ended + " after " + llvm::Twine(restarts) + (restarts == 1 ? " restart" : " restarts") +
                               ", as many as --restarts allows");
    hasSaved |= now != first;
    std::string from;
    for (const std::string &latest : now)
      if (llvm::sys::path::filename(latest) > llvm::sys::path::filename(from))
        from = latest;
    llvm::errs() << "meshwright: " << ended << ": restart " << ++restarts << " of " << most
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
  size_t i = 0;
  for (; i < args.size() && StringRef(args[i]).starts_with("-"); ++i) {
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(usage);
    if (args[i] == "--mpi")
      mpi = true;
    else if (args[i] == "-n" && i + 1 < args.size())
      ranks = args[++i];
    else if (args[i] == "--restarts" && i + 1 < args.size()) {
      restarting = true;
      if (StringRef(args[++i]).getAsInteger(10, restarts) || restarts == 0)
        return createStringError("'--restarts' needs a number of at least 1, found '" + args[i] + "'\n" + usage);
    } else
      return createStringError("unknown option '" + args[i] + "'\n" + usage);
  }
  if (ranks.empty())
    return createStringError(llvm::Twine("'-n' is missing: give the number of ranks, which 'meshwright inspect EXE' shows as the mesh\n") + usage);
  unsigned count = 0;
  if (StringRef(ranks).getAsInteger(10, count) || count == 0)
    return createStringError("'-n' needs the number of ranks, found '" + ranks + "'\n" + usage);
  if (i == args.size())
    return createStringError(llvm::Twine("no executable given\n") + usage);

  Command command;
  if (mpi)
    command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks};
  // A bare name is a file here, not something on PATH.
  command.push_back(args[i].find('/') == std::string::npos ? "./" + args[i] : args[i]);
  if (!mpi)
    command.insert(command.end(), {"--ranks", ranks});
  Command own(args.begin() + i + 1, args.end());
  if (restarting)
    return runWithRestarts(command, own, restarts);
  command.insert(command.end(), own.begin(), own.end());
  return become(command);
}

} // namespace meshwright
