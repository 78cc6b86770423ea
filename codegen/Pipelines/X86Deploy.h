//===- X86Deploy.h - From NAME_top.mlir to a .bmodel for x86 ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_X86DEPLOY_H
#define TESSERA_CODEGEN_PIPELINES_X86DEPLOY_H

#include "codegen/Pipelines/Deploy.h"
#include "codegen/Pipelines/Observe.h"
#include "codegen/X86/X86Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace tessera::codegen {

struct X86DeployOptions {
  x86::X86Target target;
  std::string output;      ///< .bmodel
  std::string cacheFolder; ///< kernel cache, empty: none
  std::string deviceMlir;  ///< where to write the device IR, empty: nowhere
  /// Every Top result stays a tensor of its own with memory of its own, which no later step overwrites: for tools that
  /// look at, or change, what lies between the ops. Slower and larger, the same numbers within rounding.
  bool observe = false;
  std::optional<Quantization> quantization; ///< none: F32
  quant::InputsOutputs inputsOutputs;       ///< integers only with |quantization|
  std::string requantisation = "float";     ///< as bmodel::numerics::parseRequantisation() takes it
};

/// What the user is told about the result; sizes in bytes.
struct X86DeployResult {
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;
  uint64_t codeBytes = 0, constantBytes = 0;
  size_t steps = 0, kernels = 0, cacheHits = 0;
  std::optional<std::vector<std::string>> exceptions; ///< nodes whose bits may differ between engines, see addExactness
  std::optional<quant::QuantizeReport> quantization;  ///< with |quantization|: what runs on integers
  std::vector<ObservedTensor> observed; ///< with |observe|: all float inputs and Top results, in program order
};

/// Registers every dialect, interface and pass that deployX86 needs.
void registerX86Deploy(mlir::DialectRegistry &registry);

/// Compiles |module| (Top level, static shapes, function @main), which is changed, and writes the
/// model. Errors about the model are emitted as diagnostics at its ops before failure is returned; the
/// returned error then says which phase failed.
llvm::Expected<X86DeployResult> deployX86(mlir::ModuleOp module, const X86DeployOptions &options,
                                          const PhaseObserver &observer);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_X86DEPLOY_H
