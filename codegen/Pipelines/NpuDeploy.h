//===- NpuDeploy.h - From NAME_top.mlir to a .bmodel for an NPU -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H
#define TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H

#include "codegen/Pipelines/Deploy.h"

#include "bmodel/npu/report.h"

namespace tessera::codegen {

/// The description of a built-in chip, as JSON; nothing if there is none of that name.
std::optional<std::string> findNpuChip(llvm::StringRef name);

struct NpuDeployOptions {
  bmodel::npu::Chip chip;
  std::string description;                  ///< the chip's JSON
  std::string output;                       ///< .bmodel
  std::string deviceMlir;                   ///< where to write the device IR, empty: nowhere
  std::optional<Quantization> quantization; ///< always there: what runs on integers
  quant::InputsOutputs inputsOutputs;
};

struct NpuDeployResult {
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0, codeBytes = 0, constantBytes = 0;
  size_t commands = 0;
  quant::QuantizeReport quantization;
  bmodel::npu::Report report; ///< of one run, by the model of bmodel/npu/latency.h
};

/// As deployX86. Whatever the NPU cannot compute is refused: nothing is left to the host yet.
llvm::Expected<NpuDeployResult> deployNpu(mlir::ModuleOp module, const NpuDeployOptions &options,
                                          const PhaseObserver &observer);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H
