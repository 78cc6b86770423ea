//===- Subgraphs.h - Graphs of branches and bodies --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_SUBGRAPHS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_SUBGRAPHS_H

#include "top_dialect/Import/Onnx/Model/OnnxProto.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

using Values = llvm::SmallVector<mlir::Value>;

/// Returns the graph that attribute |name| holds. It is an error if it is missing.
const onnx::GraphProto *subgraph(NodeImporter &n, llvm::StringRef name);

/// Imports the nodes of |graph| at the insertion point of |builder| and returns its outputs, or nothing on an error.
Values importInto(NodeImporter &n, const onnx::GraphProto &graph, mlir::OpBuilder &builder,
                  llvm::ArrayRef<mlir::Value> arguments);

/// Creates a region with one block whose contents |import| adds, and whose values it returns are yielded. The region is
/// built before its op, so constants of the enclosing graph that are first used in the region are created before the
/// op, where both can use them.
std::unique_ptr<mlir::Region> importRegion(NodeImporter &n, llvm::ArrayRef<mlir::Type> argumentTypes,
                                           llvm::function_ref<Values(mlir::OpBuilder &, const Values &)> import);

/// Imports |graph| as the only block of a new region.
std::unique_ptr<mlir::Region> importRegion(NodeImporter &n, const onnx::GraphProto &graph,
                                           llvm::ArrayRef<mlir::Type> argumentTypes);

/// The handler of If.
void importIf(NodeImporter &n);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_SUBGRAPHS_H
