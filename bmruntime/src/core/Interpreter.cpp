// SPDX-License-Identifier: Apache-2.0
//===- Interpreter.cpp - Runs the steps of a plan -------------------------===//
//
// Indices, sizes and types were checked when the model was opened (validateModel), so nothing is
// checked here but what depends on values.
//
//===----------------------------------------------------------------------===//
#include "Context.h"
#include "StepInfo.h"
#include "TensorInfo.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// a op b; false if there is no such value.
bool applyDimOp(DimOp op, int64_t a, int64_t b, int64_t &result) {
  switch (op) {
  case DimOp::Add:
    return !__builtin_add_overflow(a, b, &result);
  case DimOp::Sub:
    return !__builtin_sub_overflow(a, b, &result);
  case DimOp::Mul:
    return !__builtin_mul_overflow(a, b, &result);
  case DimOp::Min:
    result = a < b ? a : b;
    return true;
  case DimOp::Max:
    result = a > b ? a : b;
    return true;
  case DimOp::FloorDiv:
  case DimOp::CeilDiv:
  case DimOp::Mod:
    if (b == 0 || (a == INT64_MIN && b == -1)) {
      return false;
    }
    result = floorDiv(a, b);
    if (op == DimOp::CeilDiv) {
      result += result * b != a;
    } else if (op == DimOp::Mod) {
      result = a - result * b;
    }
    return true;
  case DimOp::Const:
  case DimOp::Slot:
    break;
  }
  return false;
}

} // namespace

bmrt_code_t StageContext::runSubnet(uint32_t subnet, bmrt_status_t *status) {
  return runRange(plan.begin(subnet), plan.end(subnet), status);
}

bmrt_code_t StageContext::runRange(uint32_t begin, uint32_t end, bmrt_status_t *status) {
  const bool timed = profile.isEnabled();
  const Array<Step> &steps = plan.getSteps();
  for (uint32_t i = begin; i < end; ++i) {
    if (context.interrupt.check()) {
      return failCancelled(status);
    }
    const uint64_t start = timed ? nowNs() : 0;
    if (steps[i].kind == StepOp::LaunchDef) {
      BMRT_RETURN_IF_ERROR(runLaunch(steps[i], status));
    } else {
      BMRT_RETURN_IF_ERROR(runStep(steps[i], status));
    }
    if (timed) {
      profile.record(i, start, nowNs());
    }
    if (context.hook) {
      bmrt_step_info_t info;
      describeStep(plan, i, info);
      context.hook(context.hookUser, &context, &info);
    }
  }
  return BMRT_OK;
}

/// The value of a dim slot that a step needs.
bmrt_code_t StageContext::readDim(uint32_t slot, int64_t &value, bmrt_status_t *status) const {
  value = dims[slot];
  return value >= 0
             ? BMRT_OK
             : BMRT_FAIL(status, FAILED_PRECONDITION, "dimension '%.60s' of the net is not known when a step needs it",
                         stage->dims()->Get(slot)->name()->c_str());
}

bmrt_code_t StageContext::runLaunch(const Step &step, bmrt_status_t *status) {
  Launch launch{step.kernel, step.args, step.tiles, step.grain, &context.interrupt};
  if (step.dimValues || dims.size() > 0) {
    const LaunchDef *def = step.def->op_as_LaunchDef();
    for (uint32_t i = 0; step.dimValues && i < def->dims()->size(); ++i) {
      BMRT_RETURN_IF_ERROR(readDim(def->dims()->Get(i), step.dimValues[i], status));
    }
    if (def->tile_count_slot() >= 0) {
      BMRT_RETURN_IF_ERROR(readDim(uint32_t(def->tile_count_slot()), launch.tiles, status));
      launch.grain = chooseGrain(def->grain(), launch.tiles, context.pool.threads());
    }
  }
  if (launch.tiles > 0) {
    context.pool.run(launch);
    if (context.interrupt.isRequested()) {
      return failCancelled(status); // some tiles may be missing
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::runStream(const Step &step, bmrt_status_t *status) {
  const Stream &stream = *step.stream;
  for (uint32_t i = 0; i < stream.slots.size(); ++i) {
    streamIo[i] = data[stream.slots[i]];
  }
  StreamRun run = stream.run;
  run.workspace = workspaceData.size() ? workspaceData[0] : nullptr;
  run.io = streamIo.data();
  run.interrupt = &context.interrupt;
  return runners[step.subnetIndex]->run(run, status);
}

bmrt_code_t StageContext::runStep(const Step &step, bmrt_status_t *status) {
  switch (step.kind) {
  case StepOp::CallSubnetDef:
    return runSubnet(step.def->op_as_CallSubnetDef()->subnet(), status);
  case StepOp::BranchDef: {
    const BranchDef &branch = *step.def->op_as_BranchDef();
    const int32_t target = *data[branch.condition()] ? branch.then_subnet() : branch.else_subnet();
    return target < 0 ? BMRT_OK : runSubnet(uint32_t(target), status);
  }
  case StepOp::LoopDef:
    return runLoop(*step.def->op_as_LoopDef(), status);
  case StepOp::EvalDimDef:
    return evalDim(*step.def->op_as_EvalDimDef(), status);
  case StepOp::CopyDef: {
    const CopyDef &copy = *step.def->op_as_CopyDef();
    memmove(data[copy.to()], data[copy.from()], stage->tensors()->Get(copy.to())->bytes());
    return BMRT_OK;
  }
  case StepOp::RunStreamDef:
  case StepOp::RunStreamOnDef:
    return runStream(step, status);
  case StepOp::LaunchDef: // see runSubnet
  case StepOp::NONE:
    break;
  }
  return BMRT_FAIL(status, UNSUPPORTED, "this runtime cannot run a step of kind %u", unsigned(step.kind));
}

bmrt_code_t StageContext::runLoop(const LoopDef &loop, bmrt_status_t *status) {
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
    if (context.interrupt.check()) {
      return failCancelled(status); // bodies may be empty
    }
    if (loop.condition() >= 0 && !*data[size_t(loop.condition())]) {
      break;
    }
    if (loop.iteration() >= 0) {
      memcpy(data[size_t(loop.iteration())], &i, sizeof(i));
    }
    BMRT_RETURN_IF_ERROR(runSubnet(loop.body(), status));
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::evalDim(const EvalDimDef &def, bmrt_status_t *status) {
  int64_t stack[33]; // validateModel allows a depth of 32
  uint32_t top = 0;
  bool valid = true;
  for (const DimTerm *term : *def.terms()) {
    if (term->op() == DimOp::Const) {
      stack[top++] = term->value();
    } else if (term->op() == DimOp::Slot) {
      BMRT_RETURN_IF_ERROR(readDim(uint32_t(term->value()), stack[top++], status));
    } else {
      --top;
      valid = valid && applyDimOp(term->op(), stack[top - 1], stack[top], stack[top - 1]);
    }
  }
  const DimSlotDef &slot = *stage->dims()->Get(def.slot());
  if (!valid || stack[0] < slot.min() || stack[0] > slot.max()) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "dimension '%.60s' of the net becomes %" PRId64 ", allowed is %" PRId64 " to %" PRId64
                     ": give inputs of other shapes",
                     slot.name()->c_str(), valid ? stack[0] : -1, slot.min(), slot.max());
  }
  dims[def.slot()] = stack[0];
  return BMRT_OK;
}
