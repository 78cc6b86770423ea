//===- OnnxSchemas.h - Check of nodes against the ONNX operator schemas ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXSCHEMAS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXSCHEMAS_H

#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

namespace tessera::top::onnx_import {

/// Checks that |node|, an operator of ai.onnx, has a number of inputs and outputs that is allowed in |opset|. Warns
/// about attributes that the operator does not have in this opset, because other tools may interpret them differently.
/// Accepts operators that are not in ONNX.
llvm::Error checkSchema(const onnx::NodeProto &node, int64_t opset, ImportState &state);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXSCHEMAS_H
