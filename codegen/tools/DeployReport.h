//===- DeployReport.h - What the user is told of a deployed model, as JSON ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/Pipelines/Deploy.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Of the file at |path|: sizes in bytes, what its targets tell, which part of it runs where and why (where there is
/// more than one target), and what was quantised.
llvm::json::Object describeResult(const codegen::DeployResult &result, const codegen::DeployOptions &options);

/// Returns the chip's rates of arithmetic and memory traffic.
llvm::json::Object describe(const codegen::Rates &rates);

/// The float tensors of an observed model.
llvm::json::Array describe(llvm::ArrayRef<codegen::ObservedTensor> tensors);
llvm::json::Array describe(llvm::ArrayRef<quant::TensorForm> forms);

/// Along which of their dims the tensors that products read and make have their channels.
llvm::json::Object describeChannels(mlir::ModuleOp module);

} // namespace tessera::tool
