//===- Deploy.h - Compiling NAME_top.mlir to a .bmodel ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of every model, on all chips: lower, split into subnets over the list of targets, compile each target's
// subnets, and link the stage. A model for one chip has one subnet.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_DEPLOY_H
#define TESSERA_CODEGEN_PIPELINES_DEPLOY_H

#include "codegen/Pipelines/Buckets.h"
#include "codegen/Pipelines/Instrument.h"
#include "codegen/Pipelines/Prepare.h"
#include "codegen/Target/Target.h"
#include "quant/Transforms/StripQDQ.h"

namespace tessera::codegen {

struct DeployOptions {
  llvm::ArrayRef<const Target *> targets; ///< in the order of preference; the last one runs what no other target can
  CompileOptions compile;
  std::string output;                       ///< .bmodel
  std::string deviceMlir;                   ///< file for the device IR; empty: not written
  bool strict = false;                      ///< an op that the first target cannot run is an error
  BucketChoice bucket;                      ///< for a model with symbolic sizes on a target that supports only numbers
  std::optional<Quantization> quantization; ///< none: F32
  quant::InputsOutputs inputsOutputs;       ///< integer ports need |quantization|
  /// Called with the device ops before they are split into subnets; if layers are kept, all tensors are named. An error
  /// ends the deployment.
  std::function<llvm::Error(mlir::ModuleOp module)> onLowered;
  std::string requantisation; ///< one of the first target's modes; empty: its preferred one
  /// With |compile.observe| and quantisation: hashes (DeployResult::contents) of models that need not be compiled
  /// again.
  std::vector<std::string> known;
};

/// A part of the model that runs on one target.
struct SubnetResult {
  std::string name;
  uint32_t target = 0;                      ///< index of DeployOptions::targets
  size_t ops = 0;                           ///< device ops without views
  int64_t macs = 0;                         ///< multiplications
  uint64_t inputBytes = 0, outputBytes = 0; ///< read from, and written for, other subnets
  double seconds = 0;                       ///< SubnetProgram::seconds, or the sum of Target::secondsOf
};

/// An op that does not run on the first target.
struct MovedOpResult {
  std::string name, op, reason, subnet; ///< |name|: the op's ONNX nodes
  bool isUnsupported = false;           ///< the first target cannot run it; if false, it is cheaper elsewhere
  int64_t macs = 0;
};

/// Facts about the result that are reported to the user; sizes in bytes.
struct DeployResult {
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0, codeBytes = 0, constantBytes = 0;
  llvm::json::Object report; ///< merged TargetProgram::report of all targets
  std::vector<SubnetResult> subnets;
  std::vector<MovedOpResult> movedOps;
  double handOverSeconds = 0;                         ///< for all changes of target
  uint64_t transferredBytes = 0;                      ///< that pass from one target to another
  std::optional<std::vector<std::string>> exceptions; ///< nodes whose bits may differ between engines, see addExactness
  std::optional<quant::QuantizeReport> quantization;  ///< with |quantization|: what runs on integers
  std::vector<quant::TensorForm> forms;               ///< with |compile.observe| and quantisation, whose pairs are
                                                      ///< removed again
  std::string contents;                               ///< hash of the model to which |forms| belong
  bool isKnown = false;                               ///< the model is one of DeployOptions::known; the fields below
                                                      ///< are then empty
  bool isSplit = false;                               ///< the model has branches or loops that are decided at run time
  std::vector<std::string> outputOrigins;             ///< see listOutputOrigins
  std::vector<std::pair<std::string, std::string>> logits; ///< with |compile.observe|: see listLogits
  std::vector<InstrumentedTensor>
      instrumented; ///< with |compile.observe|: float inputs and Top results, in program order
};

/// Appends the passes that lower Top functions to the device ops about which all targets are asked.
void buildLowering(mlir::OpPassManager &manager, const Target &first, const std::string &requantisation,
                   bool instrument);

/// Compiles |module| (Top level, static shapes, function @main) and writes the model; changes |module|. Errors in the
/// model are emitted as diagnostics at its ops; the returned error then names the phase that failed.
llvm::Expected<DeployResult> deploy(mlir::ModuleOp module, const DeployOptions &options, const PhaseObserver &observer);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_DEPLOY_H
