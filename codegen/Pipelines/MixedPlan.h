//===- MixedPlan.h - A model on an NPU and its host as a file ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The stage's first subnet calls the others one after another. What one makes and another reads is a tensor in
// workspace 1, or an input or output of the model, in memory that both sides see: streams are given it as a buffer,
// kernels as an argument, and nobody copies it. Workspace 0 is the streams' own, workspace 2 the kernels'.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_MIXEDPLAN_H
#define TESSERA_CODEGEN_PIPELINES_MIXEDPLAN_H

#include "codegen/Npu/Npu.h"
#include "codegen/Npu/Stream.h"
#include "codegen/Partition/Outline.h"
#include "codegen/Pipelines/Plan.h"

namespace tessera::codegen {

/// A subnet that has been compiled: for the host its function has layouts and addresses, and its kernels are in the
/// set.
struct CompiledSubnet {
  const partition::Subnet *subnet = nullptr;
  partition::Outlined outlined;
  npu::NpuProgram program; ///< of the NPU
};

struct MixedModel {
  mlir::func::FuncOp function; ///< the whole, of which the subnets are parts
  llvm::ArrayRef<CompiledSubnet> subnets;
  llvm::ArrayRef<partition::HostOp> hostOps;
  bmodel::ChipDefT chip;
  const x86::X86Target &host;
  const KernelSet &kernels; ///< of all host subnets
  std::vector<char> hostCode;
  const npu::Constants &constants; ///< of all streams
};

/// Tells of the constants of streams, which fill that segment, as of tensors of the stage: commands name no tensors,
/// but people want to know what is where, and files that are united share what they have in common.
void addStreamConstants(bmodel::StageDefT &stage, uint32_t segment, const npu::Constants &constants);

/// Segments: commands and constants of streams, code and constants of the host.
llvm::Expected<PlannedModel> planMixed(MixedModel model);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_MIXEDPLAN_H
