//===- Communicator.cpp - collectives of a group of ranks -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/Communicator.h"

#include "common/monitor/Error.h"

#include <algorithm>

using namespace meshwright;

int64_t Communicator::filledBytes(const void *data, int64_t bytes, int64_t row) {
  if (row <= 0 || bytes % row != 0)
    return bytes;
  auto isZero = [&](const char *from) {
    return std::all_of(from, from + row, [](char byte) { return byte == 0; });
  };
  while (bytes > 0 && isZero(static_cast<const char *>(data) + bytes - row))
    bytes -= row;
  return bytes;
}

void Calls::check(const Calls *calls, int self, int mine, int peer, int theirs) {
  if (mine == theirs || mine < 0 || theirs < 0 || !calls || calls->meet(mine, theirs))
    return;
  fail("rank ", self, " and rank ", peer, " are out of step: rank ", self, " is at ",
       calls->describe(mine), ", rank ", peer, " at ", calls->describe(theirs),
       "; the program is broken, please report it");
}
