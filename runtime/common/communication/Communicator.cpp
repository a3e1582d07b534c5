//===- Communicator.cpp - collectives of a group of ranks -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/Communicator.h"

#include "common/monitor/Error.h"

using namespace meshwright;

void Calls::check(const Calls *calls, int self, int mine, int peer, int theirs) {
  if (mine == theirs || mine < 0 || theirs < 0 || !calls || calls->meet(mine, theirs))
    return;
  fail("rank ", self, " and rank ", peer, " are out of step: rank ", self, " is at ",
       calls->describe(mine), ", rank ", peer, " at ", calls->describe(theirs),
       "; the program is broken, please report it");
}
