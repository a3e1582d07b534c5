//===- Portions.cpp - threads that encode a corpus ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Portions.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace meshwright::tokenizer {

ProgressBar::ProgressBar(uint64_t bytes) : all(bytes), shows(isatty(STDERR_FILENO)) {}

void ProgressBar::done(uint64_t bytes) {
  soFar += bytes;
  Clock::time_point now = Clock::now();
  if (!shows || now - last < std::chrono::milliseconds(200))
    return;
  last = now;
  constexpr int width = 30;
  int full = int(double(width) * double(soFar) / double(all));
  double rate = double(soFar) / seconds();
  fprintf(stderr, "\r[%.*s%*s] %3.0f%%  %.1f of %.1f MB, %.1f MB/s, %.0f s left\x1b[K", full,
          "##############################", width - full, "", 100 * double(soFar) / double(all),
          double(soFar) / 1e6, double(all) / 1e6, rate / 1e6,
          std::ceil(double(all - soFar) / rate));
  fflush(stderr);
}

void ProgressBar::finish() {
  last = Clock::now();
  if (shows)
    fputs("\r\x1b[K", stderr);
}

} // namespace meshwright::tokenizer
