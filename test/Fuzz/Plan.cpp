//===- Plan.cpp - any bytes as the plan of an executable --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "common/plan/PlanHash.h"
#include "common/plan/Sharding.h"

using namespace meshwright;

static void read(std::string_view json, int64_t rank) {
  try {
    Plan plan = Plan::parse(json, rank);
    for (const Variable &variable : plan.variables) {
      Box box = shardOf(plan, variable, rank);
      storageLayout(variable);
      if (variable.isWeight() && box.elements() > 0 && tensorsIn(variable, box).size() < 1000)
        for (int64_t number : tensorsIn(variable, box)) {
          storageName(variable, number);
          tensorOffset(variable, box, number);
        }
    }
    plan.variableRange();
    for (size_t i = 0; i < plan.collectives.size(); ++i)
      plan.describeCollective(int(i));
    if (rank == 0 && plan.ranks() > 1)
      read(json, plan.ranks() - 1);
  } catch (const Error &) {
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view json(reinterpret_cast<const char *>(data), size);
  hashOfPlan(json);
  try {
    checkPlanHash(json);
  } catch (const Error &) {
  }
  read(json, 0);
  return 0;
}
