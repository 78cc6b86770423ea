//===- OnnxSchemas.h - What ONNX says of the form of a node ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxModel.h"

namespace tessera::top::onnx_import {

/// Whether |node|, an operator of ai.onnx, has as many inputs and outputs as it may have in |opset|. An attribute that
/// the operator does not have there is warned about: another tool may read it in another way. Operators that ONNX does
/// not know pass.
llvm::Error checkSchema(const onnx::NodeProto &node, int64_t opset, ImportState &state);

} // namespace tessera::top::onnx_import
