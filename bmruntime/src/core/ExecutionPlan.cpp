// SPDX-License-Identifier: Apache-2.0
//===- ExecutionPlan.cpp - A stage's steps, resolved for one context ------===//
#include "ExecutionPlan.h"

#include "Count.h"
#include "SizeCheck.h"
#include "TensorInfo.h"
#include "bmodel/reader.h"

using namespace bmrt::core;
using namespace bmodel;

int64_t bmrt::core::chooseGrain(int64_t requested, int64_t tiles, uint32_t threads) {
  constexpr int64_t kClaimsPerThread = 8;
  if (requested > 0) {
    return requested;
  }
  const int64_t grain = tiles / (int64_t(threads) * kClaimsPerThread);
  // A single thread does not have to share, and a kernel may process a few tiles together faster.
  constexpr int64_t kFewTiles = 4;
  const int64_t least = threads > 1 ? 1 : tiles < kFewTiles ? tiles : kFewTiles;
  return grain < least ? (least < 1 ? 1 : least) : grain;
}

int32_t bmrt::core::chipOfCopy(const StageDef &stage, const CopyDef &copy) {
  const int32_t from = memoryOf(stage, *stage.tensors()->Get(copy.from()));
  return from != kHostMemory ? from : memoryOf(stage, *stage.tensors()->Get(copy.to()));
}

namespace {

/// Calls |use| with the tensors (two lists) and the dims of a launch or a stream.
template <typename Use>
void withArguments(const StageDef &stage, const StepDef &step, Use use) {
  StreamCall call;
  if (const LaunchDef *launch = step.op_as_LaunchDef()) {
    use(launch->args(), decltype(launch->args()){}, launch->dims());
  } else if (findStreamCall(stage, step, call)) {
    use(call.inputs, call.outputs, call.dims);
  }
}

/// Returns true if |step| is a launch that calls a custom operator.
bool callsCustomOp(const SubnetDef &subnet, const StepDef &step) {
  const LaunchDef *launch = step.op_as_LaunchDef();
  return launch && subnet.kernels()->Get(launch->kernel())->custom();
}

uint32_t agentOf(const StageProgram &program, const SubnetProgram &subnet, const StepDef &step) {
  switch (step.op_type()) {
  case StepOp::CallSubnetDef:
  case StepOp::EvalDimDef:
    return kNoAgent;
  case StepOp::CopyDef:
    return uint32_t(chipOfCopy(*program.def, *step.op_as_CopyDef()) + 1);
  case StepOp::LaunchDef:
  case StepOp::RunStreamDef:
  case StepOp::RunStreamOnDef:
    return subnet.usesQueue() ? subnet.def->chip() + 1 : uint32_t(kHostAgent);
  default:
    return kHostAgent;
  }
}

} // namespace

bmrt_code_t ExecutionPlan::allocate(const StageProgram &program, bmrt_status_t *status) {
  size_t stepCount = 0, argCount = 0, dimCount = 0, tensorCount = 0, sizeCount = 0;
  for (const SubnetProgram &subnet : program.subnets) {
    stepCount += count(subnet.def->plan());
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      withArguments(*program.def, *subnet.def->plan()->Get(i), [&](auto *first, auto *second, auto *dims) {
        argCount += count(first) + count(second) + 1;
        dimCount += count(dims);
        sizeCount += count(dims) ? count(first) + count(second) : 0;
        tensorCount += callsCustomOp(*subnet.def, *subnet.def->plan()->Get(i)) ? count(first) : 0;
      });
    }
  }
  return steps.allocate(stepCount) && firstStep.allocate(program.subnets.size() + 1) && args.allocate(argCount) &&
                 dimValues.allocate(dimCount) && tensorBytes.allocate(sizeCount) && customTensors.allocate(tensorCount)
             ? BMRT_OK
             : BMRT_FAIL(status, NO_MEMORY, "no memory for a plan of %zu steps", stepCount);
}

bmrt_code_t ExecutionPlan::build(const StageProgram &program, uint32_t threads, bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(allocate(program, status));
  stage = program.def;
  uint32_t nextStep = 0;
  void **nextArg = args.data();
  int64_t *nextDim = dimValues.data();
  uint64_t *nextSize = tensorBytes.data();
  tessera_tensor_t *nextTensor = customTensors.data();
  for (uint32_t s = 0; s < program.subnets.size(); ++s) {
    const SubnetProgram &subnet = program.subnets[s];
    const Stream *nextStream = subnet.streams.data();
    firstStep[s] = nextStep;
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      Step &step = steps[nextStep++];
      step.def = subnet.def->plan()->Get(i);
      step.kind = step.def->op_type();
      step.subnet = &subnet;
      step.agent = agentOf(program, subnet, *step.def);
      step.usesStepDims = usesStepDims(program, *step.def);
      withArguments(*stage, *step.def, [&](auto *first, auto *second, auto *dims) {
        step.args = nextArg;
        nextArg += count(first) + count(second) + 1;
        step.dimValues = count(dims) ? nextDim : nullptr;
        nextDim += count(dims);
        step.tensorBytes = count(dims) ? nextSize : nullptr;
        nextSize += count(dims) ? count(first) + count(second) : 0;
      });
      if (const LaunchDef *launch = step.def->op_as_LaunchDef()) {
        step.kernel = subnet.kernels[launch->kernel()];
        if (callsCustomOp(*subnet.def, *step.def)) {
          step.tensors = nextTensor;
          for (uint32_t slot : *launch->args()) {
            *nextTensor++ = describeCustomTensor(*stage->tensors()->Get(slot), nullptr);
          }
        }
        step.tiles = launch->tile_count();
        step.grain = step.agent == kHostAgent ? chooseGrain(launch->grain(), step.tiles, threads) : launch->grain();
        scratchBytes =
            step.agent == kHostAgent && launch->scratch_bytes() > scratchBytes ? launch->scratch_bytes() : scratchBytes;
      } else if (step.args) {
        step.stream = nextStream++;
      }
    }
  }
  firstStep[program.subnets.size()] = nextStep;
  return BMRT_OK;
}

void ExecutionPlan::bind(char *const *data) {
  for (Step &step : steps) {
    withArguments(*stage, *step.def, [&](auto *first, auto *second, auto *) {
      const uint32_t inputs = count(first), total = inputs + count(second);
      for (uint32_t i = 0; i < total; ++i) {
        step.args[i] = data[i < inputs ? first->Get(i) : second->Get(i - inputs)];
      }
      step.args[total] = step.dimValues;
      for (uint32_t i = 0; step.tensors && i < total; ++i) {
        step.tensors[i].data = step.args[i];
      }
    });
  }
}
