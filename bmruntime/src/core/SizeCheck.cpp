// SPDX-License-Identifier: Apache-2.0
//===- SizeCheck.cpp - Checks a plan for one vector of sizes --------------===//
#include "SizeCheck.h"

#include "Count.h"
#include "bmrt/bmrt.h"

#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// The sizes for which a plan is checked.
struct SizeCheck {
  const StageDef &stage;
  const int64_t *dims;
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

  bmrt_code_t checkLaunch(const LaunchDef &launch, const KernelContract &contract, Array<int64_t> &params,
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

bmrt_code_t SizeCheck::checkLaunch(const LaunchDef &launch, const KernelContract &contract, Array<int64_t> &params,
                                   bmrt_status_t *status) const {
  for (uint32_t i = 0; i < contract.paramCount; ++i) {
    params[i] = dims[launch.dims()->Get(i)]; // in the range of the slot, which checkContracts has compared
  }
  const int64_t tiles = launch.tile_count_slot() < 0 ? launch.tile_count() : dims[launch.tile_count_slot()];
  uint64_t wanted = 0;
  if (!evaluateSize(contract, 0, contract.head.tiles, params.data(), wanted) || uint64_t(tiles) != wanted) {
    return BMRT_FAIL(status, CORRUPT,
                     "kernel '%.80s' is launched in %" PRId64 " tiles, its code has %" PRIu64 " at these sizes",
                     contract.symbol, tiles, wanted);
  }
  for (uint32_t i = 0; i < contract.head.arg_count; ++i) {
    const uint32_t slot = launch.args()->Get(i);
    if (!evaluateSize(contract, i + 1, contract.arg(i).bytes, params.data(), wanted) || bytes[slot] < wanted) {
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

} // namespace

bmrt_code_t bmrt::core::checkSizes(const StageProgram &program, const int64_t *dims, const uint64_t *bytes,
                                   bmrt_status_t *status) {
  const SizeCheck check = {*program.def, dims, bytes};
  Array<int64_t> params;
  if (!params.allocate(mostParams(program))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the dims of a kernel");
  }
  for (uint32_t i = 0; i < count(program.def->tensors()); ++i) {
    BMRT_RETURN_IF_ERROR(check.checkView(i, status));
  }
  for (const SubnetProgram &subnet : program.subnets) {
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      const StepDef &step = *subnet.def->plan()->Get(i);
      const LaunchDef *launch = step.op_as_LaunchDef();
      const CopyDef *copy = step.op_as_CopyDef();
      const bool isContracted = launch && subnet.contracts[launch->kernel()].isKnown;
      bmrt_status_t cause = {};
      const bmrt_code_t code = copy ? check.checkCopy(*copy, &cause)
                               : isContracted
                                   ? check.checkLaunch(*launch, subnet.contracts[launch->kernel()], params, &cause)
                                   : BMRT_OK;
      if (code != BMRT_OK) {
        return fail(status, code, cause.file, cause.line, "subnet '%.60s' step %" PRIu32 ": %.380s",
                    subnet.def->name()->c_str(), i, cause.message);
      }
    }
  }
  return BMRT_OK;
}
