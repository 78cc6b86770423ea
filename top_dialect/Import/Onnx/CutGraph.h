//===- CutGraph.h - Remove what the chosen outputs do not need --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_CUTGRAPH_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_CUTGRAPH_H

#include "top_dialect/Import/Onnx/Model/OnnxProto.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace tessera::top::onnx_import {

/// Removes every node of |graph| that no tensor in |outputs| depends on, so that unsupported operators after those
/// tensors do not matter. Inputs stay, except those whose type cannot be imported and which only removed nodes read.
void keepAncestors(onnx::GraphProto &graph, llvm::ArrayRef<std::string> outputs);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_CUTGRAPH_H
