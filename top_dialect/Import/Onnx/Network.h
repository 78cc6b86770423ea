//===- Network.h - Identity of the network of a module --------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_NETWORK_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_NETWORK_H

#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/MLIRContext.h"

namespace tessera::top::onnx_import {

/// Returns the value of kNetworkAttr: a hash of 32 hex digits over the file, its external tensor data, the chosen
/// outputs and the given input values. Returns an empty string if external data cannot be read. That is no error here,
/// because the tensors may be unused.
std::string identifyNetwork(const OnnxModel &model, const ImportOptions &options, mlir::MLIRContext *context);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_NETWORK_H
