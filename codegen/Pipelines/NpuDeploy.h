//===- NpuDeploy.h - From NAME_top.mlir to a .bmodel for an NPU -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H
#define TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H

#include "codegen/Pipelines/Deploy.h"

#include "bmodel/npu/report.h"
#include "codegen/Npu/Npu.h"
#include "codegen/X86/X86Target.h"

namespace tessera::codegen {

/// The description of a built-in chip, as JSON; nothing if there is none of that name.
std::optional<std::string> findNpuChip(llvm::StringRef name);

struct NpuDeployOptions {
  bmodel::npu::Chip chip;
  std::string description;                  ///< the chip's JSON
  std::string output;                       ///< .bmodel
  std::string deviceMlir;                   ///< where to write the device IR, empty: nowhere
  std::optional<Quantization> quantization; ///< none: all in f32
  quant::InputsOutputs inputsOutputs;
  unsigned opt = 2;                   ///< npu::NpuOptions::opt
  std::optional<npu::Decisions> plan; ///< is followed; layers count through all streams
  bool strict = false;                ///< whatever the NPU cannot compute is an error, not left to the host
  x86::X86Target host;                ///< of what is left to it
  std::string cacheFolder;            ///< of its kernels, empty: none
};

/// A part of the model that runs on one side.
struct SubnetResult {
  std::string name;
  bool onHost = false;
  size_t ops = 0;
  int64_t products = 0;                     ///< multiplications
  uint64_t inputBytes = 0, outputBytes = 0; ///< that it reads of, and leaves for, others
  double seconds = 0;                       ///< on the host: by the model of Partition/Costs.h
};

/// An op on the host.
struct HostOpResult {
  std::string name, op, reason, subnet; ///< name: of the ONNX nodes
  bool isRefused = false;               ///< the chip cannot run it; else it costs less on the host
  int64_t products = 0;
};

struct NpuDeployResult {
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0, codeBytes = 0, constantBytes = 0;
  size_t commands = 0;
  uint64_t localPeak = 0;          ///< most bytes of a lane in use at once
  std::vector<std::string> layers; ///< ONNX names of nodes, by number in the report
  npu::Decisions plan;
  std::optional<std::vector<std::string>> exceptions; ///< nodes whose bits may differ between engines, see addExactness
  std::optional<quant::QuantizeReport> quantization;
  bmodel::npu::Report report; ///< of one run of all streams, by the model of bmodel/npu/latency.h
  std::vector<SubnetResult> subnets;
  std::vector<HostOpResult> hostOps;
  double handOverSeconds = 0;    ///< of all changes of side
  uint64_t transferredBytes = 0; ///< that one side leaves for the other
};

/// As deployX86. What the NPU cannot compute runs on the host, in subnets of the same file.
llvm::Expected<NpuDeployResult> deployNpu(mlir::ModuleOp module, const NpuDeployOptions &options,
                                          const PhaseObserver &observer);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_NPUDEPLOY_H
