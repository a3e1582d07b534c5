//===- Run.cpp - the `run` command -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"

#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace meshwright {

static constexpr const char *usage =
    "usage: meshwright run -n N [--mpi] EXE ARGS...\n"
    "  -n N    ranks to start; must equal the executable's mesh\n"
    "  --mpi   start them as processes under mpirun, also as root and with more ranks than cores\n"
    "          (default: as threads of one process)\n";

Error run(llvm::ArrayRef<std::string> args) {
  std::string ranks;
  bool mpi = false;
  size_t i = 0;
  for (; i < args.size() && StringRef(args[i]).starts_with("-"); ++i) {
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(usage);
    if (args[i] == "--mpi")
      mpi = true;
    else if (args[i] == "-n" && i + 1 < args.size())
      ranks = args[++i];
    else
      return createStringError("unknown option '" + args[i] + "'\n" + usage);
  }
  unsigned count = 0;
  if (StringRef(ranks).getAsInteger(10, count) || count == 0)
    return createStringError("'-n' needs the number of ranks, found '" + ranks + "'\n" + usage);
  if (i == args.size())
    return createStringError(llvm::Twine("no executable given\n") + usage);

  std::vector<std::string> command;
  if (mpi)
    command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks};
  // A bare name is a file here, not something on PATH.
  command.push_back(args[i].find('/') == std::string::npos ? "./" + args[i] : args[i]);
  if (!mpi)
    command.insert(command.end(), {"--ranks", ranks});
  command.insert(command.end(), args.begin() + i + 1, args.end());
  std::vector<char *> argv;
  for (std::string &word : command)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return createStringError("cannot start '" + command[0] + "': " + strerror(errno) +
                           (mpi ? " (Debian: apt-get install openmpi-bin)" : ""));
}

} // namespace meshwright
