//===- Portions.h - threads that encode a corpus --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_PORTIONS_H
#define MESHWRIGHT_TOKENIZER_PORTIONS_H

#include "Tokenizer/Corpus.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace meshwright::tokenizer {

/// Says on a terminal how far a command has come.
class ProgressBar {
public:
  explicit ProgressBar(uint64_t bytes);
  /// Of one thread at a time.
  void done(uint64_t bytes);
  /// Removes the bar. Called once, and then `seconds` is the time since the start.
  void finish();
  double seconds() const { return std::chrono::duration<double>(last - start).count(); }

private:
  using Clock = std::chrono::steady_clock;
  uint64_t all, soFar = 0;
  bool shows;
  Clock::time_point start = Clock::now(), last = start;
};

/// Makes a Result of each portion of a corpus, on `threads` threads, and takes them in order.
/// `makeWorker` makes, for each thread, a function of a portion that returns its Result. The first
/// Error, by the order of portions as far as they were begun, ends it and is thrown.
template <typename Result, typename MakeWorker, typename Take>
void forEachPortion(Corpus &corpus, const Tokenizer &tokenizer, int threads, ProgressBar &progress,
                    MakeWorker &&makeWorker, Take &&take) {
  std::mutex mutex;
  std::condition_variable taken;
  std::map<size_t, std::pair<Result, uint64_t>> waiting; ///< what is made, but not yet its turn
  size_t begun = 0, next = 0;
  std::map<size_t, std::exception_ptr> errors; // by portion
  auto work = [&] {
    size_t number = 0;
    std::unique_lock lock(mutex);
    try {
      lock.unlock();
      auto worker = makeWorker();
      lock.lock();
      Portion portion;
      while (true) {
        // One thread may be long at a portion; what the others made meanwhile is kept in memory.
        taken.wait(lock, [&] { return begun < next + 4 * size_t(threads) || !errors.empty(); });
        if (!errors.empty() || !corpus.next(tokenizer, portion))
          return;
        number = begun++;
        lock.unlock();
        Result result = worker(portion);
        lock.lock();
        waiting.emplace(number, std::pair(std::move(result), portion.bytes.size()));
        for (auto first = waiting.find(next); first != waiting.end() && errors.empty();
             first = waiting.find(next)) {
          take(first->second.first);
          progress.done(first->second.second);
          waiting.erase(first);
          ++next;
          taken.notify_all();
        }
      }
    } catch (...) {
      if (!lock.owns_lock())
        lock.lock();
      errors.emplace(number, std::current_exception());
      taken.notify_all();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &thread : others)
    thread.join();
  progress.finish();
  if (!errors.empty())
    std::rethrow_exception(errors.begin()->second);
}

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_PORTIONS_H
