// SPDX-License-Identifier: Apache-2.0
//===- Plan.cpp - A stage's steps, resolved for one context ---------------===//
#include "Plan.h"

using namespace bmrt::core;
using namespace bmodel;

int64_t bmrt::core::chooseGrain(int64_t requested, int64_t tiles, uint32_t threads) {
  constexpr int64_t kClaimsPerThread = 8;
  if (requested > 0) {
    return requested;
  }
  const int64_t grain = tiles / (int64_t(threads) * kClaimsPerThread);
  return grain < 1 ? 1 : grain;
}

bmrt_code_t Plan::build(const StageProgram &program, uint32_t threads, bmrt_status_t *status) {
  size_t stepCount = 0, argCount = 0, dimCount = 0;
  for (const SubnetProgram &subnet : program.subnets) {
    stepCount += count(subnet.def->plan());
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      if (const LaunchDef *launch = subnet.def->plan()->Get(i)->op_as_LaunchDef()) {
        argCount += count(launch->args()) + 1;
        dimCount += count(launch->dims());
      }
    }
  }
  if (!steps.allocate(stepCount) || !firstStep.allocate(program.subnets.size() + 1) || !args.allocate(argCount) ||
      !dimValues.allocate(dimCount)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a plan of %zu steps", stepCount);
  }
  uint32_t nextStep = 0;
  void **nextArg = args.data();
  int64_t *nextDim = dimValues.data();
  for (uint32_t s = 0; s < program.subnets.size(); ++s) {
    const SubnetProgram &subnet = program.subnets[s];
    const Stream *nextStream = subnet.streams.data();
    firstStep[s] = nextStep;
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      Step &step = steps[nextStep++];
      step.def = subnet.def->plan()->Get(i);
      step.kind = step.def->op_type();
      step.subnet = subnet.def;
      const LaunchDef *launch = step.def->op_as_LaunchDef();
      if (StreamCall call; subnet.streams.size() && findStreamCall(*program.def, *step.def, call)) {
        step.stream = nextStream++;
        step.subnetIndex = s;
      }
      if (!launch) {
        continue;
      }
      step.kernel = subnet.kernels[launch->kernel()];
      step.tiles = launch->tile_count();
      step.grain = chooseGrain(launch->grain(), step.tiles, threads);
      step.args = nextArg;
      nextArg += count(launch->args()) + 1;
      if (count(launch->dims()) > 0) {
        step.dimValues = nextDim;
        nextDim += count(launch->dims());
      }
      if (launch->scratch_bytes() > scratchBytes) {
        scratchBytes = launch->scratch_bytes();
      }
    }
  }
  firstStep[program.subnets.size()] = nextStep;
  return BMRT_OK;
}

void Plan::bind(char *const *data) {
  for (Step &step : steps) {
    if (step.kind != StepOp::LaunchDef) {
      continue;
    }
    const auto *slots = step.def->op_as_LaunchDef()->args();
    const uint32_t argCount = count(slots);
    for (uint32_t i = 0; i < argCount; ++i) {
      step.args[i] = data[slots->Get(i)];
    }
    step.args[argCount] = step.dimValues;
  }
}
