//===- Failure.h - one rank's failure ends all ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A rank that fails prints one message and takes the others with it. Ranks that
// are threads end with the process. Ranks that are processes often all see the
// same error (a bad flag, a missing file); then only rank 0 speaks: the others
// give it three seconds to end the job before they say what they saw. A rank that lost
// another gives a launcher half a second to end it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_FAILURE_H
#define MESHWRIGHT_RUNTIME_COMMON_FAILURE_H

#include <exception>
#include <functional>
#include <string>

namespace meshwright {

/// Exit codes of an executable.
enum ExitCode { exitFailure = 1, exitUsage = 2 };

/// Sets which rank of how many processes this process is. Before it is called the
/// process speaks for itself alone.
void setFailureProcess(int rank, int processes);

/// Sets what ends the other processes of the job (MPI_Abort). Called at most once
/// per failure, from the thread that failed.
void setFailureAbort(std::function<void(int code)> abort);

/// What must be stopped before a failed process ends, such as communication on a GPU. It
/// is called from a thread of its own, and given two seconds. Until this is destroyed, which
/// ends no more once some thread fails: what the hook uses stays until the process has ended.
class FailureHook {
public:
  explicit FailureHook(std::function<void()> stop);
  ~FailureHook();
  FailureHook(const FailureHook &) = delete;
  FailureHook &operator=(const FailureHook &) = delete;
};

/// Files and directories to remove if the process fails while they are half written, or
/// are its own. `dropFailureCleanup` does not return once the process is failing, so that what is
/// being removed gets no name that says it is whole.
void addFailureCleanup(const std::string &path);
void dropFailureCleanup(const std::string &path);

/// Whether other processes may see the same error, so that rank 0 is to speak first, or see
/// that another has ended, which a launcher answers by ending them.
enum class Failed { PerhapsAll, AnotherRank, ThisRank };

/// Prints "error: MESSAGE" to stderr, ends every rank, and does not return. When
/// several threads fail only the first is heard.
[[noreturn]] void endAllRanks(const std::string &message, int code = exitFailure,
                              Failed which = Failed::PerhapsAll);

/// The same with what `error` says, after `where`. A lack of memory is this rank's own, a
/// LostRank another's.
[[noreturn]] void endAllRanks(const std::exception &error, const std::string &where = "");

/// Makes exceptions that nothing catches, as in parallel regions, end the ranks so.
void endAllRanksOnTerminate();

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_FAILURE_H
