//===- PlanHash.cpp - whether a plan is as it was written -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/PlanHash.h"

#include "common/monitor/Error.h"
#include "meshwright/runtime/PlanHash.h"

#include <cstdio>
#define XXH_INLINE_ALL
#include <xxhash.h>

std::string meshwright::hashOfPlan(std::string_view json) {
  std::string hashed = plan::hashedText(std::string(json));
  if (hashed.empty())
    return "";
  char digits[plan::hashDigits + 1];
  snprintf(digits, sizeof(digits), "%016llx",
           static_cast<unsigned long long>(XXH3_64bits(hashed.data(), hashed.size())));
  return digits;
}

void meshwright::checkPlanHash(std::string_view json) {
  std::string hash = hashOfPlan(json);
  if (hash.empty())
    fail("plan: the executable's plan has no hash: it is damaged; compile the executable again");
  std::string_view said = json.substr(plan::hashPosition(json), plan::hashDigits);
  if (hash != said)
    fail("plan: the executable's plan has the hash ", hash, ", not ", said,
         ", with which it was written: the file is damaged or was changed; compile the executable "
         "again");
}
