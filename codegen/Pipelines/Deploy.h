//===- Deploy.h - From NAME_top.mlir to a .bmodel ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The way of every model, whatever the chips: lower, cut into subnets over the list of targets, compile each target's
// subnets, and lay out the stage. A model for one chip is the case of one subnet.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_DEPLOY_H
#define TESSERA_CODEGEN_PIPELINES_DEPLOY_H

#include "codegen/Pipelines/Observe.h"
#include "codegen/Pipelines/Prepare.h"
#include "codegen/Target/Target.h"
#include "quant/Transforms/Undo.h"

namespace tessera::codegen {

struct DeployOptions {
  llvm::ArrayRef<const Target *> targets; ///< in the order of preference; the last one runs what no other does
  CompileOptions compile;
  std::string output;                       ///< .bmodel
  std::string deviceMlir;                   ///< where to write the device IR, empty: nowhere
  bool strict = false;                      ///< whatever the first target cannot run is an error
  std::optional<Quantization> quantization; ///< none: F32
  quant::InputsOutputs inputsOutputs;       ///< integers only with |quantization|
  /// Is shown the device ops before they are cut into subnets, all tensors named where layers are kept; an error ends
  /// the deployment.
  std::function<llvm::Error(mlir::ModuleOp module)> onLowered;
  std::string requantisation; ///< one of the first target's; empty: the one that it prefers
  /// With |compile.observe| and a quantisation: contents (DeployResult) of models that need not be compiled again.
  std::vector<std::string> known;
};

/// A part of the model that runs on one target.
struct SubnetResult {
  std::string name;
  uint32_t target = 0;                      ///< index of DeployOptions::targets
  size_t ops = 0;                           ///< device ops, but for views
  int64_t products = 0;                     ///< multiplications
  uint64_t inputBytes = 0, outputBytes = 0; ///< that it reads of, and leaves for, others
  double seconds = 0;                       ///< SubnetProgram::seconds, or the sum of Target::secondsOf
};

/// An op that does not run on the first target.
struct MovedOpResult {
  std::string name, op, reason, subnet; ///< name: of the ONNX nodes
  bool isRefused = false;               ///< the first target cannot run it; else it costs less elsewhere
  int64_t products = 0;
};

/// What the user is told about the result; sizes in bytes.
struct DeployResult {
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0, codeBytes = 0, constantBytes = 0;
  llvm::json::Object report; ///< of the targets: Program::report, united
  std::vector<SubnetResult> subnets;
  std::vector<MovedOpResult> movedOps;
  double handOverSeconds = 0;                         ///< of all changes of target
  uint64_t transferredBytes = 0;                      ///< that one target leaves for another
  std::optional<std::vector<std::string>> exceptions; ///< nodes whose bits may differ between engines, see addExactness
  std::optional<quant::QuantizeReport> quantization;  ///< with |quantization|: what runs on integers
  std::vector<quant::TensorForm> forms;               ///< with |compile.observe| and a quantisation, which is undone
  std::string contents;                               ///< hash of the model that these forms are of
  bool isKnown = false;                               ///< it is one of those known: nothing else is there
  std::vector<std::pair<std::string, std::string>> logits; ///< with |compile.observe|: see listLogits
  std::vector<std::string> fixedOutputs;                   ///< with |compile.observe|: see listFixedOutputs
  std::vector<ObservedTensor> observed; ///< with |compile.observe|: float inputs and Top results, in program order
};

/// Appends the way from Top functions to device ops that the first target, and all behind it, are asked about.
void buildLowering(mlir::OpPassManager &manager, const Target &first, const std::string &requantisation, bool observe);

/// Compiles |module| (Top level, static shapes, function @main), which is changed, and writes the model. Errors about
/// the model are emitted as diagnostics at its ops before failure is returned; the returned error then says which phase
/// failed.
llvm::Expected<DeployResult> deploy(mlir::ModuleOp module, const DeployOptions &options, const PhaseObserver &observer);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_DEPLOY_H
