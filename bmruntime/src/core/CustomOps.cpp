// SPDX-License-Identifier: Apache-2.0
//===- CustomOps.cpp - Calls of custom operators --------------------------===//
#include "CustomOps.h"

#include "Count.h"
#include "TensorInfo.h"
#include "bmodel/tensor_layout.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Returns the ONNX node of a step, or "" if the file does not say.
const char *nodeOf(const StepDef &step) {
  const auto *nodes = step.debug() ? step.debug()->onnx_nodes() : nullptr;
  return count(nodes) > 0 ? nodes->Get(0)->c_str() : "";
}

tessera_custom_call_t describeCall(const CustomOpDef &def, tessera_tensor_t *tensors, uint32_t total) {
  tessera_custom_call_t call = {};
  call.version = def.version(), call.attributes = def.attributes()->c_str();
  call.inputs = tensors, call.input_count = def.inputs();
  call.outputs = tensors + def.inputs(), call.output_count = total - def.inputs();
  return call;
}

/// Converts an error of the operator that |step| calls.
bmrt_code_t failAt(const StepDef &step, bmrt_code_t code, const Status &cause, bmrt_status_t *status) {
  return fail(status, code, cause.file, cause.line, "node '%.100s': %.370s", nodeOf(step), cause.message);
}

/// Applies the shape rule of |op| to the tensors of a launch and compares the result with the file. |dims|: the values
/// of the dim slots.
bmrt_code_t checkShapes(const StageDef &stage, const StepDef &step, const CustomOpDef &def, const CustomOp &op,
                        const int64_t *dims, bmrt_status_t *status) {
  const auto *args = step.op_as_LaunchDef()->args();
  Array<tessera_tensor_t> tensors;
  if (!tensors.allocate(count(args))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the tensors of a custom operator");
  }
  for (uint32_t i = 0; i < def.inputs(); ++i) {
    tensors[i] = describeCustomTensor(*stage.tensors()->Get(args->Get(i)), dims);
  }
  Status cause;
  if (!inferCustomOp(op, describeCall(def, tensors.data(), count(args)), cause)) {
    return failAt(step, BMRT_UNSUPPORTED, cause, status);
  }
  for (uint32_t i = def.inputs(); i < count(args); ++i) {
    const tessera_tensor_t expected = describeCustomTensor(*stage.tensors()->Get(args->Get(i)), dims);
    const tessera_tensor_t &given = tensors[i];
    if (memcmp(&expected, &given, sizeof(expected)) != 0) {
      char fromFile[80], fromRule[80];
      return BMRT_FAIL(status, UNSUPPORTED,
                       "node '%.100s': the shape rule of custom operator '%.60s::%.60s' does not give output %" PRIu32
                       " the type and shape that the file has, %s %s, but %s %s: compile the model again with this "
                       "version of the operator",
                       nodeOf(step), def.domain()->c_str(), def.name()->c_str(), i - def.inputs(),
                       dtypeName(DType(expected.dtype)),
                       formatShape(expected.shape, expected.rank, fromFile, sizeof(fromFile)),
                       dtypeName(DType(given.dtype)), formatShape(given.shape, given.rank, fromRule, sizeof(fromRule)));
    }
  }
  return BMRT_OK;
}

/// Returns true if the sizes of all tensors of |step| are known.
bool hasKnownSizes(const StageDef &stage, const StepDef &step, const int64_t *dims) {
  for (uint32_t slot : *step.op_as_LaunchDef()->args()) {
    if (!isKnown(*stage.tensors()->Get(slot), dims)) {
      return false;
    }
  }
  return true;
}

/// Gives |tensors| the sizes of this run. Applies the shape rule if they differ from those of the last run.
bmrt_code_t updateSizes(const StageDef &stage, const StepDef &step, const CustomOpDef &def, const CustomOp &op,
                        const int64_t *dims, tessera_tensor_t *tensors, bmrt_status_t *status) {
  if (!hasKnownSizes(stage, step, dims)) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "node '%.100s' needs a size that no earlier step has set",
                     nodeOf(step));
  }
  const auto *args = step.op_as_LaunchDef()->args();
  bool isChecked = false;
  for (uint32_t i = 0; i < count(args); ++i) {
    tessera_tensor_t current = describeCustomTensor(*stage.tensors()->Get(args->Get(i)), dims);
    current.data = tensors[i].data;
    if (memcmp(&current, &tensors[i], sizeof(current)) != 0) {
      if (!isChecked) {
        BMRT_RETURN_IF_ERROR(checkShapes(stage, step, def, op, dims, status));
      }
      isChecked = true;
      tensors[i] = current;
    }
  }
  return BMRT_OK;
}

} // namespace

bmrt_code_t bmrt::core::resolveCustomOps(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) {
  for (uint32_t i = 0; i < count(subnet.def->plan()); ++i) {
    const StepDef &step = *subnet.def->plan()->Get(i);
    const LaunchDef *launch = step.op_as_LaunchDef();
    const CustomOpDef *def = launch ? subnet.def->kernels()->Get(launch->kernel())->custom() : nullptr;
    if (!def) {
      continue;
    }
    const CustomOp *op = findCustomOp(def->domain()->c_str(), def->name()->c_str());
    if (!op || subnet.usesQueue()) {
      return BMRT_FAIL(status, UNSUPPORTED, "node '%.100s' calls the custom operator '%.60s::%.60s', which %s",
                       nodeOf(step), def->domain()->c_str(), def->name()->c_str(),
                       op ? "only the host can run"
                          : "is not registered: name its library at load time (bmrt_load_custom_ops, --custom_ops) or "
                            "register it (bmrt_register_custom_op)");
    }
    if (hasKnownSizes(*stage.def, step, nullptr)) { // otherwise a run checks them
      BMRT_RETURN_IF_ERROR(checkShapes(*stage.def, step, *def, *op, nullptr, status));
    }
    subnet.kernels[launch->kernel()] = const_cast<CustomOp *>(op); // an opaque handle, like those of kernels
  }
  return BMRT_OK;
}

bmrt_code_t bmrt::core::runCustomOp(const StageDef &stage, const Step &call, const int64_t *dims,
                                    bmrt_status_t *status) {
  const StepDef &step = *call.def;
  const LaunchDef &launch = *step.op_as_LaunchDef();
  const CustomOpDef &def = *call.subnet->def->kernels()->Get(launch.kernel())->custom();
  const CustomOp &op = *static_cast<const CustomOp *>(call.kernel);
  if (dims) {
    BMRT_RETURN_IF_ERROR(updateSizes(stage, step, def, op, dims, call.tensors, status));
  }
  Status cause;
  return bmodel::runCustomOp(op, describeCall(def, call.tensors, count(launch.args())), cause)
             ? BMRT_OK
             : failAt(step, BMRT_INVALID_ARGUMENT, cause, status);
}

extern "C" bmrt_code_t bmrt_register_custom_op(const struct tessera_custom_op_t *op, bmrt_status_t *out_status) {
  BMRT_REQUIRE(op);
  Status cause;
  return addCustomOp(op, cause) ? succeed(out_status) : fail(out_status, cause);
}

extern "C" bmrt_code_t bmrt_load_custom_ops(const char *path, bmrt_status_t *out_status) {
  BMRT_REQUIRE(path);
  Status cause;
  return loadCustomOps(path, cause) ? succeed(out_status) : fail(out_status, cause);
}
