// SPDX-License-Identifier: Apache-2.0
//===- StepInfo.cpp - Descriptions of steps for the C interface -----------===//
#include "StepInfo.h"

using namespace bmrt::core;
using namespace bmodel;

namespace {

const char *text(const flatbuffers::String *string) { return string ? string->c_str() : ""; }

const char *kindName(StepOp kind) {
  switch (kind) {
  case StepOp::LaunchDef:
    return "launch";
  case StepOp::RunStreamDef:
  case StepOp::RunStreamOnDef:
    return "stream";
  case StepOp::CallSubnetDef:
    return "call";
  case StepOp::BranchDef:
    return "branch";
  case StepOp::LoopDef:
    return "loop";
  case StepOp::EvalDimDef:
  case StepOp::ReadDimDef:
  case StepOp::WriteDimDef:
    return "dim";
  case StepOp::CopyDef:
    return "copy";
  case StepOp::NONE:
    break;
  }
  return "?";
}

} // namespace

void bmrt::core::describeStep(const ExecutionPlan &plan, uint32_t index, const int64_t *dims, bmrt_step_info_t &out) {
  const Step &step = plan.getSteps()[index];
  out = {};
  out.index = index;
  out.def = step.def;
  out.kind = kindName(step.kind);
  out.symbol = out.top_op = out.device_op = out.bound = "";
  out.tile_count = step.tiles;
  out.write_count = step.def->writes() ? step.def->writes()->size() : 0;
  if (const LaunchDef *launch = step.def->op_as_LaunchDef()) {
    out.tile_count = launch->tile_count_slot() < 0 ? step.tiles : dims ? dims[launch->tile_count_slot()] : -1;
    out.symbol = step.subnet->def->kernels()->Get(launch->kernel())->symbol()->c_str();
  }
  if (const StepDebugDef *debug = step.def->debug()) {
    out.top_op = text(debug->top_op());
    out.device_op = text(debug->device_op());
    out.bound = text(debug->bound());
    out.onnx_node_count = debug->onnx_nodes() ? debug->onnx_nodes()->size() : 0;
    out.flops = debug->flops();
    out.bytes = debug->bytes();
    out.estimated_ns = debug->estimated_ns();
  }
}

extern "C" const char *bmrt_step_onnx_node(const bmrt_step_info_t *step, uint32_t index) {
  return step && index < step->onnx_node_count
             ? static_cast<const StepDef *>(step->def)->debug()->onnx_nodes()->Get(index)->c_str()
             : nullptr;
}
