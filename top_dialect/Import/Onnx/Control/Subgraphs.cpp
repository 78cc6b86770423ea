//===- Subgraphs.cpp - Graphs of branches and bodies ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Control/Subgraphs.h"

#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

const onnx::GraphProto *subgraph(NodeImporter &n, llvm::StringRef name) {
  const onnx::AttributeProto *attribute = n.typedAttr(name, onnx::AttributeProto::GRAPH);
  if (!attribute || !attribute->has_g()) {
    n.fail(llvm::formatv("attribute '{0}' with a graph is missing", name));
    return nullptr;
  }
  return &attribute->g();
}

Values importInto(NodeImporter &n, const onnx::GraphProto &graph, mlir::OpBuilder &builder,
                  llvm::ArrayRef<Value> arguments) {
  GraphImporter importer(n.graph.model, graph, builder, &n.graph);
  for (auto [input, value] : llvm::zip(graph.input(), arguments)) {
    importer.bind(input.name(), value);
  }
  if (llvm::Error error = importer.importNodes()) {
    n.fail(std::move(error));
    return {};
  }
  auto outputs = importer.outputs();
  if (!outputs) {
    n.fail(outputs.takeError());
    return {};
  }
  return *outputs;
}

std::unique_ptr<mlir::Region> importRegion(NodeImporter &n, llvm::ArrayRef<mlir::Type> argumentTypes,
                                           llvm::function_ref<Values(mlir::OpBuilder &, const Values &)> import) {
  auto region = std::make_unique<mlir::Region>();
  mlir::Block &block = region->emplaceBlock();
  Values arguments;
  for (mlir::Type type : argumentTypes) {
    arguments.push_back(block.addArgument(type, n.loc));
  }
  mlir::OpBuilder builder(n.b.getContext());
  builder.setInsertionPointToEnd(&block);
  OpenRegions &regions = n.graph.model.state->regions;
  regions.push_back({&block, {}});
  Values outputs = import(builder, arguments);
  replaceAgain(regions.back());
  regions.pop_back();
  YieldOp::create(builder, n.loc, outputs);
  return region;
}

std::unique_ptr<mlir::Region> importRegion(NodeImporter &n, const onnx::GraphProto &graph,
                                           llvm::ArrayRef<mlir::Type> argumentTypes) {
  return importRegion(n, argumentTypes, [&](mlir::OpBuilder &builder, const Values &arguments) {
    return importInto(n, graph, builder, arguments);
  });
}

} // namespace tessera::top::onnx_import
