//===- DeployReport.h - JSON report of a deployed model -------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_DEPLOYREPORT_H
#define TESSERA_CODEGEN_TOOLS_DEPLOYREPORT_H

#include "codegen/Pipelines/Deploy.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Describes the compiled model: sizes in bytes, the reports of its targets, which part runs where and why (if there is
/// more than one target), and what was quantised.
llvm::json::Object describeResult(const codegen::DeployResult &result, const codegen::DeployOptions &options);

/// Returns the chip's rates of arithmetic and memory traffic.
llvm::json::Object describe(const codegen::MachineModel &machineModel);

/// Describes the float tensors of an observed model.
llvm::json::Array describe(llvm::ArrayRef<codegen::InstrumentedTensor> tensors);
llvm::json::Array describe(llvm::ArrayRef<quant::TensorForm> forms);

/// Returns, for the tensors that contractions read and write, the dim that holds their channels.
llvm::json::Object describeChannels(mlir::ModuleOp module);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_DEPLOYREPORT_H
