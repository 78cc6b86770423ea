// SPDX-License-Identifier: Apache-2.0
//===- SizeCheck.cpp - Checks a plan for one vector of sizes --------------===//
#include "SizeCheck.h"

#include "Count.h"
#include "TensorInfo.h"
#include "bmrt/bmrt.h"

#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// The sizes for which a plan is checked.
struct SizeCheck {
  const StageDef &stage;
  const uint64_t *bytes;

  const char *nameOf(uint32_t slot) const { return stage.tensors()->Get(slot)->name()->c_str(); }

  bmrt_code_t checkView(uint32_t slot, bmrt_status_t *status) const {
    const TensorDef &view = *stage.tensors()->Get(slot);
    if (view.view_of() < 0) {
      return BMRT_OK;
    }
    const uint64_t limit = bytes[view.view_of()];
    return view.offset() <= limit && bytes[slot] <= limit - view.offset()
               ? BMRT_OK
               : BMRT_FAIL(status, CORRUPT,
                           "tensor '%.60s' of %" PRIu64 " bytes at %" PRIu64 " exceeds the %" PRIu64
                           " bytes of '%.60s' at these sizes",
                           nameOf(slot), bytes[slot], view.offset(), limit, nameOf(uint32_t(view.view_of())));
  }

  bmrt_code_t checkCopy(const CopyDef &copy, bmrt_status_t *status) const {
    return bytes[copy.from()] == bytes[copy.to()]
               ? BMRT_OK
               : BMRT_FAIL(status, CORRUPT,
                           "a copy of the %" PRIu64 " bytes of '%.60s' to the %" PRIu64 " bytes of '%.60s'",
                           bytes[copy.from()], nameOf(copy.from()), bytes[copy.to()], nameOf(copy.to()));
  }

  bmrt_code_t checkLaunch(const LaunchDef &launch, const KernelContract &contract, const int64_t *params, int64_t tiles,
                          bmrt_status_t *status) const;
};

/// Evaluates expression |index| of |contract|; a missing expression stands for |constant|. Writes the result to
/// |value|. Returns false if the result is negative or undefined.
bool evaluateSize(const KernelContract &contract, uint32_t index, uint64_t constant, const int64_t *params,
                  uint64_t &value) {
  const DimExpression expression = contract.expression(index);
  int64_t result = 0;
  if (expression.size() > 0 && (!evaluate(expression, params, result) || result < 0)) {
    return false;
  }
  value = expression.size() > 0 ? uint64_t(result) : constant;
  return true;
}

/// Checks a launch with the values |params| of its dims, which are in the ranges of their slots; checkContracts has
/// compared these with the kernel's.
bmrt_code_t SizeCheck::checkLaunch(const LaunchDef &launch, const KernelContract &contract, const int64_t *params,
                                   int64_t tiles, bmrt_status_t *status) const {
  uint64_t wanted = 0;
  if (!evaluateSize(contract, 0, contract.head.tiles, params, wanted) || uint64_t(tiles) != wanted) {
    return BMRT_FAIL(status, CORRUPT,
                     "kernel '%.80s' is launched in %" PRId64 " tiles, its code has %" PRIu64 " at these sizes",
                     contract.symbol, tiles, wanted);
  }
  for (uint32_t i = 0; i < contract.head.arg_count; ++i) {
    const uint32_t slot = launch.args()->Get(i);
    if (!evaluateSize(contract, i + 1, contract.arg(i).bytes, params, wanted) || bytes[slot] < wanted) {
      return BMRT_FAIL(status, CORRUPT,
                       "argument %" PRIu32 " of kernel '%.80s' is tensor '%.60s' of %" PRIu64
                       " bytes, its code takes one of %" PRIu64 " at these sizes",
                       i, contract.symbol, nameOf(slot), bytes[slot], wanted);
    }
  }
  return BMRT_OK;
}

/// Returns the largest number of parameters of any kernel.
size_t mostParams(const StageProgram &program) {
  size_t most = 0;
  for (const SubnetProgram &subnet : program.subnets) {
    for (const KernelContract &contract : subnet.contracts) {
      most = contract.paramCount > most ? contract.paramCount : most;
    }
  }
  return most;
}

bool isSetByStep(const StageProgram &program, int64_t slot) {
  return slot >= 0 && program.dimKinds[size_t(slot)] == DimKind::SetByStep;
}

bool usesStepDims(const StageProgram &program, uint32_t tensor) {
  return usesStepDims(program, *program.def->tensors()->Get(tensor));
}

/// Returns true if two tensors are known to have the same size in every run.
bool haveSameSize(const TensorDef &a, const TensorDef &b) {
  if (isKnown(a, nullptr) && isKnown(b, nullptr)) {
    return true; // compared when the file is opened
  }
  bool isSame = count(a.shape()) == count(b.shape());
  for (uint32_t i = 0; isSame && i < count(a.shape()); ++i) {
    const Dim &dim = *a.shape()->Get(i), &other = *b.shape()->Get(i);
    isSame = dim.slot() == other.slot() && dim.value() == other.value();
  }
  return isSame;
}

} // namespace

bool bmrt::core::usesStepDims(const StageProgram &program, const TensorDef &tensor) {
  for (uint32_t i = 0; i < count(tensor.shape()); ++i) {
    if (isSetByStep(program, tensor.shape()->Get(i)->slot())) {
      return true;
    }
  }
  return false;
}

bool bmrt::core::usesStepDims(const StageProgram &program, const StepDef &step) {
  const LaunchDef *launch = step.op_as_LaunchDef();
  const CopyDef *copy = step.op_as_CopyDef();
  if (!launch) { // a branch copies between tensors that have the same size only when it is taken
    return copy &&
           (::usesStepDims(program, copy->from()) || ::usesStepDims(program, copy->to()) ||
            !haveSameSize(*program.def->tensors()->Get(copy->from()), *program.def->tensors()->Get(copy->to())));
  }
  bool found = isSetByStep(program, launch->tile_count_slot());
  for (uint32_t i = 0; i < count(launch->dims()); ++i) {
    found = found || isSetByStep(program, launch->dims()->Get(i));
  }
  for (uint32_t i = 0; i < count(launch->args()); ++i) {
    found = found || ::usesStepDims(program, launch->args()->Get(i));
  }
  return found;
}

bmrt_code_t bmrt::core::checkView(const StageProgram &program, uint32_t slot, const uint64_t *bytes,
                                  bmrt_status_t *status) {
  return SizeCheck{*program.def, bytes}.checkView(slot, status);
}

bmrt_code_t bmrt::core::checkStep(const StageProgram &program, const SubnetProgram &subnet, const StepDef &step,
                                  const int64_t *params, int64_t tiles, const uint64_t *bytes, bmrt_status_t *status) {
  const SizeCheck check = {*program.def, bytes};
  const LaunchDef *launch = step.op_as_LaunchDef();
  const CopyDef *copy = step.op_as_CopyDef();
  const bool isContracted = launch && subnet.contracts[launch->kernel()].isKnown;
  bmrt_status_t cause = {};
  const bmrt_code_t code = copy ? check.checkCopy(*copy, &cause)
                           : isContracted
                               ? check.checkLaunch(*launch, subnet.contracts[launch->kernel()], params, tiles, &cause)
                               : BMRT_OK;
  if (code == BMRT_OK) {
    return BMRT_OK;
  }
  uint32_t index = 0;
  while (subnet.def->plan()->Get(index) != &step) {
    ++index;
  }
  return fail(status, code, cause.file, cause.line, "subnet '%.60s' step %" PRIu32 ": %.380s",
              subnet.def->name()->c_str(), index, cause.message);
}

bmrt_code_t bmrt::core::checkSizes(const StageProgram &program, const int64_t *dims, const uint64_t *bytes,
                                   bmrt_status_t *status) {
  const StageDef &stage = *program.def;
  Array<int64_t> params;
  if (!params.allocate(mostParams(program))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the dims of a kernel");
  }
  for (uint32_t i = 0; i < count(stage.tensors()); ++i) {
    const int32_t root = stage.tensors()->Get(i)->view_of();
    if (root >= 0 && !::usesStepDims(program, i) && !::usesStepDims(program, uint32_t(root))) {
      BMRT_RETURN_IF_ERROR(checkView(program, i, bytes, status));
    }
  }
  for (const SubnetProgram &subnet : program.subnets) {
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      const StepDef &step = *subnet.def->plan()->Get(i);
      if (usesStepDims(program, step)) {
        continue;
      }
      const LaunchDef *launch = step.op_as_LaunchDef();
      for (uint32_t k = 0; launch && k < count(launch->dims()) && k < params.size(); ++k) {
        params[k] = dims[launch->dims()->Get(k)];
      }
      const int64_t tiles = !launch                         ? 0
                            : launch->tile_count_slot() < 0 ? launch->tile_count()
                                                            : dims[launch->tile_count_slot()];
      BMRT_RETURN_IF_ERROR(checkStep(program, subnet, step, params.data(), tiles, bytes, status));
    }
  }
  return BMRT_OK;
}
