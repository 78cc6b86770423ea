// SPDX-License-Identifier: Apache-2.0
//===- Contract.cpp - Checks launches against kernel contracts ------------===//
#include "Contract.h"

#include "Count.h"
#include "Memory.h"
#include "TensorInfo.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/tensor_layout.h"
#include "bmrt/bmrt.h"

#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Returns true if no step may write the tensor: constants of the file and inputs of the caller.
bool isReadOnly(const StageDef &stage, const TensorDef &tensor) {
  const TensorDef &root = tensor.view_of() < 0 ? tensor : *stage.tensors()->Get(uint32_t(tensor.view_of()));
  return root.role() == TensorRole::Constant || root.role() == TensorRole::Input;
}

/// Checks the ranges of a kernel's parameters, and the structure and the corners of its expressions over them.
bmrt_code_t checkExpressions(const KernelContract &contract, bmrt_status_t *status) {
  for (uint32_t i = 0; i < contract.paramCount; ++i) {
    const bm_kernel_param param = contract.param(i);
    if (param.min < 0 || param.min > param.max) {
      return BMRT_FAIL(status, CORRUPT, "dim %" PRIu32 " of kernel '%.80s' ranges from %" PRId64 " to %" PRId64, i,
                       contract.symbol, param.min, param.max);
    }
  }
  auto rangeOf = [](const void *of, uint32_t index) {
    const bm_kernel_param param = static_cast<const KernelContract *>(of)->param(index);
    return DimRange{param.min, param.max};
  };
  for (uint32_t i = 0; contract.takesDims() && i <= contract.head.arg_count; ++i) {
    const DimExpression expression = contract.expression(i);
    DimRange range;
    const char *fault = expression.size() > 0 ? findFault(expression, contract.paramCount) : nullptr;
    if (!fault && expression.size() > 0 && !findRange(expression, rangeOf, &contract, range)) {
      fault = "may overflow or divide by zero";
    }
    if (fault) {
      return BMRT_FAIL(status, CORRUPT, "expression %" PRIu32 " of kernel '%.80s' %s", i, contract.symbol, fault);
    }
  }
  return BMRT_OK;
}

bmrt_code_t checkKernel(const KernelContract &contract, bmrt_status_t *status) {
  if (contract.head.alignment > BM_ALIGNMENT) {
    return BMRT_FAIL(status, UNSUPPORTED, "kernel '%.80s' needs memory aligned to %" PRIu32 " bytes, there are %d",
                     contract.symbol, contract.head.alignment, BM_ALIGNMENT);
  }
  for (uint32_t i = 0; i < contract.head.arg_count; ++i) {
    const uint32_t asked = contract.alignment(i);
    if (asked > contract.head.alignment || (asked & (asked - 1)) != 0) {
      return BMRT_FAIL(status, CORRUPT,
                       "argument %" PRIu32 " of kernel '%.80s' needs memory aligned to %" PRIu32
                       " bytes, which is not a power of two up to %" PRIu32,
                       i, contract.symbol, asked, contract.head.alignment);
    }
  }
  return BMRT_OK;
}

/// Checks that the dims of a launch stay in the ranges that the code takes.
bmrt_code_t checkDims(const StageDef &stage, const LaunchDef &launch, const KernelContract &contract,
                      bmrt_status_t *status) {
  if (!contract.takesDims() && (launch.tile_count_slot() >= 0 || count(launch.dims()) > 0)) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' is launched with dims, its code takes none", contract.symbol);
  }
  if (count(launch.dims()) != contract.paramCount) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' is given %" PRIu32 " dims, its code takes %" PRIu32,
                     contract.symbol, count(launch.dims()), contract.paramCount);
  }
  for (uint32_t i = 0; i < contract.paramCount; ++i) {
    const DimSlotDef &dim = *stage.dims()->Get(launch.dims()->Get(i));
    const bm_kernel_param param = contract.param(i);
    if (dim.min() < param.min || dim.max() > param.max) {
      return BMRT_FAIL(status, CORRUPT,
                       "kernel '%.80s' is given the dim '%.60s' from %" PRId64 " to %" PRId64
                       ", its code takes %" PRId64 " to %" PRId64,
                       contract.symbol, dim.name()->c_str(), dim.min(), dim.max(), param.min, param.max);
    }
  }
  return BMRT_OK;
}

/// Checks everything about a launch that does not depend on sizes known at run time.
bmrt_code_t checkLaunch(const StageProgram &program, const LaunchDef &launch, const KernelContract &contract,
                        bmrt_status_t *status) {
  const StageDef &stage = *program.def;
  const bm_kernel_contract &head = contract.head;
  const char *symbol = contract.symbol;
  BMRT_RETURN_IF_ERROR(checkDims(stage, launch, contract, status));
  if (!contract.takesDims() && uint64_t(launch.tile_count()) != head.tiles) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' is launched in %" PRId64 " tiles, its code has %" PRIu64, symbol,
                     launch.tile_count(), head.tiles);
  }
  if (launch.scratch_bytes() != head.scratch_bytes) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' is given %" PRIu64 " bytes of scratch, its code uses %" PRIu64,
                     symbol, launch.scratch_bytes(), head.scratch_bytes);
  }
  if (count(launch.args()) != head.arg_count) {
    return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' is given %" PRIu32 " arguments, its code takes %" PRIu32, symbol,
                     count(launch.args()), head.arg_count);
  }
  for (uint32_t i = 0; i < head.arg_count; ++i) {
    const bm_kernel_arg arg = contract.arg(i);
    const TensorDef &tensor = *stage.tensors()->Get(launch.args()->Get(i));
    const bool hasOpenSize = !isKnown(tensor, nullptr); // compared at each size (SizeCheck.h)
    if (!contract.takesDims() && !hasOpenSize && tensor.bytes() != arg.bytes) {
      return BMRT_FAIL(status, CORRUPT,
                       "argument %" PRIu32 " of kernel '%.80s' is tensor '%.60s' of %" PRIu64
                       " bytes, its code takes one of %" PRIu64,
                       i, symbol, tensor.name()->c_str(), tensor.bytes(), arg.bytes);
    }
    if ((arg.access & BM_ARG_WRITE) && isReadOnly(stage, tensor)) {
      return BMRT_FAIL(status, CORRUPT,
                       "argument %" PRIu32 " of kernel '%.80s' is tensor '%.60s', an input or a constant; its code "
                       "writes it",
                       i, symbol, tensor.name()->c_str());
    }
  }
  return BMRT_OK;
}

} // namespace

bmrt_code_t bmrt::core::checkContracts(const StageProgram &stage, SubnetProgram &program, bmrt_status_t *status) {
  const SubnetDef &subnet = *program.def;
  Array<KernelContract> &contracts = program.contracts;
  if (!contracts.allocate(count(subnet.kernels()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " kernels", count(subnet.kernels()));
  }
  for (uint32_t i = 0; i < contracts.size() && program.backend->find_contract; ++i) {
    if (subnet.kernels()->Get(i)->custom()) {
      continue;
    }
    const char *symbol = subnet.kernels()->Get(i)->symbol()->c_str();
    const void *note = nullptr;
    BMRT_RETURN_IF_ERROR(program.backend->find_contract(program.code, symbol, &note, StatusOrOwn(status)));
    if (note && !contracts[i].read(note, UINT64_MAX)) { // the back end has checked that the note ends in its code
      return BMRT_FAIL(status, CORRUPT, "the contract of kernel '%.80s' is malformed", symbol);
    }
    if (note) {
      BMRT_RETURN_IF_ERROR(checkKernel(contracts[i], status));
      BMRT_RETURN_IF_ERROR(checkExpressions(contracts[i], status));
    }
  }
  for (uint32_t i = 0; i < count(subnet.plan()); ++i) {
    const LaunchDef *launch = subnet.plan()->Get(i)->op_as_LaunchDef();
    if (!launch || !contracts[launch->kernel()].isKnown) {
      continue;
    }
    bmrt_status_t cause;
    const bmrt_code_t result = checkLaunch(stage, *launch, contracts[launch->kernel()], &cause);
    if (result != BMRT_OK) {
      return fail(status, result, cause.file, cause.line, "subnet '%.60s' step %" PRIu32 ": %.380s",
                  subnet.name()->c_str(), i, cause.message);
    }
  }
  return BMRT_OK;
}

namespace {

/// The required alignment of each tensor; a view's requirement counts for its root.
struct Alignments {
  const StageDef &stage;
  Array<uint32_t> &found;

  void require(uint32_t slot, uint32_t bytes) {
    const int32_t root = stage.tensors()->Get(slot)->view_of();
    uint32_t &most = found[root < 0 ? slot : uint32_t(root)];
    most = bytes > most ? bytes : most;
  }
  void requireOfAll(uint32_t bytes) {
    for (uint32_t &most : found) {
      most = bytes;
    }
  }
  void addStep(const SubnetProgram &subnet, const StepDef &step) {
    if (const LaunchDef *launch = step.op_as_LaunchDef()) {
      const KernelContract &contract = subnet.contracts[launch->kernel()];
      for (uint32_t i = 0; i < count(launch->args()); ++i) {
        require(launch->args()->Get(i), contract.isKnown ? contract.alignment(i) : BMRT_ALIGNMENT);
      }
    } else if (const CopyDef *copy = step.op_as_CopyDef()) {
      require(copy->from(), BMRT_ALIGNMENT);
      require(copy->to(), BMRT_ALIGNMENT);
    } else if (!step.op_as_CallSubnetDef() && !step.op_as_ReadDimDef() && !step.op_as_WriteDimDef()) {
      requireOfAll(BMRT_ALIGNMENT);
    }
  }
};

} // namespace

bmrt_code_t bmrt::core::findAlignments(StageProgram &program, bmrt_status_t *status) {
  const StageDef &stage = *program.def;
  Alignments alignments = {stage, program.alignments};
  if (!program.alignments.allocate(count(stage.tensors()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " tensors", count(stage.tensors()));
  }
  for (uint32_t i = 0; i < count(stage.tensors()); ++i) {
    const uint32_t element = dtypeBytes(stage.tensors()->Get(i)->dtype());
    alignments.require(i, element ? element : BMRT_ALIGNMENT);
  }
  for (const SubnetProgram &subnet : program.subnets) {
    for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
      alignments.addStep(subnet, *subnet.def->plan()->Get(i));
    }
  }
  return BMRT_OK;
}
