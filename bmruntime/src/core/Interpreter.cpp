// SPDX-License-Identifier: Apache-2.0
//===- Interpreter.cpp - Runs the steps of a plan -------------------------===//
//
// validateModel checked indices, sizes and types when the model was opened, so the interpreter checks only conditions
// that depend on values.
//
// Commands submitted to a chip's queue may execute later: a lane waits for the queue before it runs a step of another
// agent, and at the end.
//
//===----------------------------------------------------------------------===//
#include "Count.h"
#include "CustomOps.h"
#include "SizeCheck.h"
#include "StageContext.h"
#include "StepInfo.h"
#include "bmodel/dim_terms.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

bmrt_code_t StageContext::runTask(uint32_t step, uint32_t agent, bool isCaller, bmrt_status_t *status) {
  Lane lane(agent, isCaller);
  return runAndWait(lane, step, step + 1, status);
}

bmrt_code_t StageContext::runAndWait(Lane &lane, uint32_t begin, uint32_t end, bmrt_status_t *status) {
  bmrt_code_t code = runRange(lane, begin, end, status);
  if (lane.pending != kHostAgent) {
    // Wait after an error, too: the caller may free or change memory that is still in use.
    const bmrt_code_t waited = drain(lane, code == BMRT_OK ? status : nullptr);
    code = code == BMRT_OK ? waited : code;
  }
  return code;
}

bmrt_code_t StageContext::drain(Lane &lane, bmrt_status_t *status) {
  Queue &queue = resources.queueOf(lane.pending);
  lane.pending = kHostAgent;
  return queue.wait(resources.interruptFor(lane.isCaller), status);
}

bmrt_code_t StageContext::runSubnet(Lane &lane, uint32_t subnet, bmrt_status_t *status) {
  return runRange(lane, plan.begin(subnet), plan.end(subnet), status);
}

bmrt_code_t StageContext::runRange(Lane &lane, uint32_t begin, uint32_t end, bmrt_status_t *status) {
  const bool timed = profile.isEnabled(), isWatched = timed || resources.hook.function;
  const Array<Step> &steps = plan.getSteps();
  for (uint32_t i = begin; i < end; ++i) {
    const Step &step = steps[i];
    if (lane.isCaller ? resources.interrupt.check() : resources.interrupt.isRequested()) {
      return failCancelled(status);
    }
    const uint64_t start = timed ? nowNs() : 0;
    if (lane.pending != kHostAgent && step.agent != lane.pending && step.agent != kNoAgent) {
      BMRT_RETURN_IF_ERROR(drain(lane, status));
    }
    if (step.kind == StepOp::LaunchDef && step.agent == kHostAgent) {
      BMRT_RETURN_IF_ERROR(runLaunch(step, status));
    } else {
      BMRT_RETURN_IF_ERROR(runStep(lane, step, status));
    }
    if (isWatched) {
      BMRT_RETURN_IF_ERROR(endWatchedStep(lane, i, start, status));
    }
  }
  return BMRT_OK;
}

/// Ends a step for a profile or a hook: waits until its work is done.
bmrt_code_t StageContext::endWatchedStep(Lane &lane, uint32_t step, uint64_t start, bmrt_status_t *status) {
  if (lane.pending != kHostAgent) {
    BMRT_RETURN_IF_ERROR(drain(lane, status));
  }
  if (profile.isEnabled()) {
    profile.record(step, lane.agent, start, nowNs());
  }
  if (!resources.hook.function) {
    return BMRT_OK;
  }
  bmrt_step_info_t info;
  describeStep(plan, step, sizes.dims(), info);
  mirrors.beginHook();
  resources.hook.function(resources.hook.user, resources.hook.context, &info);
  return mirrors.endHook(*this, status);
}

/// Reads a dim slot that a step needs; fails if it is unknown.
bmrt_code_t StageContext::readDim(uint32_t slot, int64_t &value, bmrt_status_t *status) const {
  value = sizes.dims()[slot];
  return value >= 0
             ? BMRT_OK
             : BMRT_FAIL(status, FAILED_PRECONDITION, "dimension '%.60s' of the net is not known when a step needs it",
                         stage->dims()->Get(slot)->name()->c_str());
}

bmrt_code_t StageContext::runLaunch(const Step &step, bmrt_status_t *status) {
  if (step.tensors) {
    return runCustomOp(*stage, step, sizes.dims(), status);
  }
  Launch launch{reinterpret_cast<bm_kernel_fn>(step.kernel), step.args, step.tiles, step.grain, &resources.interrupt};
  if (step.dimValues || sizes.dims()) {
    const LaunchDef *def = step.def->op_as_LaunchDef();
    for (uint32_t i = 0; step.dimValues && i < def->dims()->size(); ++i) {
      BMRT_RETURN_IF_ERROR(readDim(def->dims()->Get(i), step.dimValues[i], status));
    }
    if (def->tile_count_slot() >= 0) {
      BMRT_RETURN_IF_ERROR(readDim(uint32_t(def->tile_count_slot()), launch.tiles, status));
      launch.grain = chooseGrain(def->grain(), launch.tiles, resources.pool.threads());
    }
    BMRT_RETURN_IF_ERROR(checkStepDims(step, launch.tiles, status));
  }
  if (launch.tiles > 0) {
    resources.pool.run(launch);
    if (resources.interrupt.isRequested()) {
      return failCancelled(status); // some tiles may not have run
    }
  }
  return BMRT_OK;
}

/// Checks a launch or copy whose sizes depend on dims that earlier steps set.
bmrt_code_t StageContext::checkStepDims(const Step &step, int64_t tiles, bmrt_status_t *status) const {
  return step.usesStepDims ? checkStep(*program, *step.subnet, *step.def, step.dimValues, tiles, sizes.bytes(), status)
                           : BMRT_OK;
}

/// Runs a stream and records the times that the chip reports for its parts.
bmrt_code_t StageContext::runTimed(const Step &step, const bmrt_stream_t &call, bmrt_status_t *status) {
  struct LayerTimes {
    Profile &profile;
    uint32_t step, parts;
  } times{profile, uint32_t(&step - plan.getSteps().data()), 0};
  const bmrt_part_sink_t sink = {[](void *user, uint32_t layer, uint64_t ns) {
                                   LayerTimes &to = *static_cast<LayerTimes *>(user);
                                   to.profile.recordPart(to.step, to.parts++, layer, ns);
                                 },
                                 &times};
  return resources.queueOf(step.agent).runTimed(step.subnet->code, call, sink, status);
}

bmrt_code_t StageContext::runStream(Lane &lane, const Step &step, bmrt_status_t *status) {
  const Stream &stream = *step.stream;
  bmrt_stream_t call = stream.call;
  call.tensors = step.args;
  call.dims = step.dimValues;
  call.workspace = stream.workspace >= 0 ? workspaceData[size_t(stream.workspace)] : nullptr;
  call.interrupt = resources.interruptFor(lane.isCaller);
  for (uint32_t i = 0; i < call.dim_count; ++i) {
    BMRT_RETURN_IF_ERROR(readDim(step.def->op_as_RunStreamOnDef()->dims()->Get(i), step.dimValues[i], status));
  }
  if (call.dim_count) {
    for (uint32_t i = 0; i < stream.slots.size(); ++i) {
      step.tensorBytes[i] = sizes.bytesOf(stream.slots[i]);
    }
    call.tensor_bytes = step.tensorBytes;
  }
  lane.pending = step.agent;
  Queue &queue = resources.queueOf(step.agent);
  return profile.isEnabled() && queue.reportsTimes() ? runTimed(step, call, status)
                                                     : queue.run(step.subnet->code, call, status);
}

/// Submits a launch to a chip's queue.
bmrt_code_t StageContext::enqueueLaunch(Lane &lane, const Step &step, bmrt_status_t *status) {
  const LaunchDef &def = *step.def->op_as_LaunchDef();
  bmrt_launch_t launch = {};
  launch.struct_size = sizeof(launch);
  launch.kernel = step.kernel;
  launch.args = step.args, launch.arg_count = count(def.args());
  launch.dims = step.dimValues, launch.dim_count = count(def.dims());
  launch.tile_count = step.tiles, launch.grain = step.grain, launch.scratch_bytes = def.scratch_bytes();
  launch.interrupt = resources.interruptFor(lane.isCaller);
  for (uint32_t i = 0; i < launch.dim_count; ++i) {
    BMRT_RETURN_IF_ERROR(readDim(def.dims()->Get(i), step.dimValues[i], status));
  }
  if (def.tile_count_slot() >= 0) {
    BMRT_RETURN_IF_ERROR(readDim(uint32_t(def.tile_count_slot()), launch.tile_count, status));
  }
  BMRT_RETURN_IF_ERROR(checkStepDims(step, launch.tile_count, status));
  lane.pending = step.agent;
  return launch.tile_count > 0 ? resources.queueOf(step.agent).launch(launch, status) : BMRT_OK;
}

bmrt_code_t StageContext::copy(Lane &lane, const Step &step, bmrt_status_t *status) {
  const CopyDef &def = *step.def->op_as_CopyDef();
  const TensorDef &from = *stage->tensors()->Get(def.from()), &to = *stage->tensors()->Get(def.to());
  BMRT_RETURN_IF_ERROR(checkStepDims(step, 0, status));
  if (step.agent == kHostAgent) {
    memmove(data[def.to()], data[def.from()], sizes.bytesOf(def.to()));
    return BMRT_OK;
  }
  if ((isOnChip[def.from()] || isOnChip[def.to()]) && data[def.to()] == data[def.from()]) {
    return BMRT_OK; // the chip's tensor already uses the caller's memory
  }
  const bool isFromHost = memoryOf(*stage, from) == kHostMemory && !isOnChip[def.from()];
  const bool isToHost = memoryOf(*stage, to) == kHostMemory && !isOnChip[def.to()];
  const bmrt_copy_t direction = isFromHost ? BMRT_COPY_TO_CHIP : isToHost ? BMRT_COPY_FROM_CHIP : BMRT_COPY_ON_CHIP;
  lane.pending = step.agent;
  return resources.queueOf(step.agent)
      .copy(direction, data[def.to()], data[def.from()], sizes.bytesOf(def.to()), status);
}

bmrt_code_t StageContext::runStep(Lane &lane, const Step &step, bmrt_status_t *status) {
  switch (step.kind) {
  case StepOp::CallSubnetDef:
    return runSubnet(lane, step.def->op_as_CallSubnetDef()->subnet(), status);
  case StepOp::BranchDef: {
    const BranchDef &branch = *step.def->op_as_BranchDef();
    const int32_t target = *data[branch.condition()] ? branch.then_subnet() : branch.else_subnet();
    return target < 0 ? BMRT_OK : runSubnet(lane, uint32_t(target), status);
  }
  case StepOp::LoopDef:
    return runLoop(lane, *step.def->op_as_LoopDef(), status);
  case StepOp::EvalDimDef:
    return evalDim(*step.def->op_as_EvalDimDef(), status);
  case StepOp::ReadDimDef: {
    const ReadDimDef &read = *step.def->op_as_ReadDimDef();
    int64_t value = 0;
    memcpy(&value, data[read.from()] + read.index() * sizeof(value), sizeof(value));
    return sizes.setByStep(read.slot(), value, status);
  }
  case StepOp::WriteDimDef: {
    const WriteDimDef &write = *step.def->op_as_WriteDimDef();
    int64_t value = 0;
    BMRT_RETURN_IF_ERROR(readDim(write.slot(), value, status));
    memcpy(data[write.to()] + write.index() * sizeof(value), &value, sizeof(value));
    return BMRT_OK;
  }
  case StepOp::CopyDef:
    return copy(lane, step, status);
  case StepOp::RunStreamDef:
  case StepOp::RunStreamOnDef:
    return runStream(lane, step, status);
  case StepOp::LaunchDef: // on a chip; runRange handles launches on the host
    return enqueueLaunch(lane, step, status);
  case StepOp::NONE:
    break;
  }
  return BMRT_FAIL(status, UNSUPPORTED, "this runtime cannot run a step of kind %u", unsigned(step.kind));
}

bmrt_code_t StageContext::runLoop(Lane &lane, const LoopDef &loop, bmrt_status_t *status) {
  auto load = [&](int32_t slot) {
    int64_t value;
    memcpy(&value, data[size_t(slot)], sizeof(value));
    return value;
  };
  const int64_t trips = loop.trip_count() < 0 ? INT64_MAX : load(loop.trip_count());
  if (loop.condition() < 0 && trips > kMaxTrips) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "a loop without a condition would take %" PRId64 " trips ('%.100s'), allowed are %" PRId64, trips,
                     stage->tensors()->Get(uint32_t(loop.trip_count()))->name()->c_str(), kMaxTrips);
  }
  for (int64_t i = 0; i < trips; ++i) {
    if (resources.interrupt.check()) { // only the host runs loops, on the caller's thread
      return failCancelled(status);    // check here as well, because bodies may be empty
    }
    if (lane.pending != kHostAgent) { // commands of the previous iteration
      BMRT_RETURN_IF_ERROR(drain(lane, status));
    }
    if (loop.condition() >= 0 && !*data[size_t(loop.condition())]) {
      break;
    }
    if (loop.iteration() >= 0) {
      memcpy(data[size_t(loop.iteration())], &i, sizeof(i));
    }
    BMRT_RETURN_IF_ERROR(runSubnet(lane, loop.body(), status));
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::evalDim(const EvalDimDef &def, bmrt_status_t *status) {
  const DimExpression terms(def.terms());
  const int64_t *dims = sizes.dims();
  int64_t value = -1;
  if (const int64_t unknown = findUnknownSlot(terms, dims); unknown >= 0) {
    return readDim(uint32_t(unknown), value, status);
  }
  return evaluate(terms, dims, value) ? sizes.setByStep(def.slot(), value, status)
                                      : failOutOfRange(*stage->dims()->Get(def.slot()), value, status);
}
