//===- StorageRows.h - which rows of a file's tensor a variable has ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A variable may have rows of a file's tensor that do not lie together: of each `period`
// of them those of `runs`, triples of begin, count and step. The compiler's interpreter and the
// runtime find them here.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_STORAGEROWS_H
#define MESHWRIGHT_RUNTIME_STORAGEROWS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace meshwright {

/// Rows of a variable that lie evenly in the file's tensor.
struct StoredRows {
  int64_t row; ///< the first one's number in the variable
  int64_t count;
  int64_t fileRow; ///< the first one's number in the file's tensor
  int64_t step;    ///< from one to the next there
};

/// Calls body(StoredRows) for the variable's rows [begin, begin + count), in order. Without a
/// period they lie together from `offset` on.
template <typename Runs, typename Body>
void forEachStoredRows(int64_t offset, int64_t period, const Runs &runs, int64_t begin,
                       int64_t count, Body body) {
  if (period == 0) {
    body(StoredRows{begin, count, offset + begin, 1});
    return;
  }
  int64_t taken = 0;
  for (size_t i = 0; i < size_t(runs.size()); i += 3)
    taken += runs[i + 1];
  for (int64_t end = begin + count; begin < end;) {
    int64_t within = begin % taken;
    size_t run = 0;
    for (; within >= runs[run + 1]; run += 3)
      within -= runs[run + 1];
    int64_t rows = std::min<int64_t>(end - begin, runs[run + 1] - within);
    body(StoredRows{begin, rows,
                    offset + begin / taken * period + runs[run] + within * runs[run + 2],
                    runs[run + 2]});
    begin += rows;
  }
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_STORAGEROWS_H
