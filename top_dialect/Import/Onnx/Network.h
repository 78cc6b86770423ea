//===- Network.h - Which network a module is of ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxImport.h"
#include "top_dialect/Import/Onnx/OnnxModel.h"

#include "mlir/IR/MLIRContext.h"

namespace tessera::top::onnx_import {

/// The value of kNetworkAttr: 32 hex digits over the file, the bytes of its tensors that lie beside it and the outputs
/// and values of inputs that were chosen. Empty where such bytes cannot be read, which is no error for tensors that
/// nothing uses.
std::string identifyNetwork(const OnnxModel &model, const ImportOptions &options, mlir::MLIRContext *context);

} // namespace tessera::top::onnx_import
