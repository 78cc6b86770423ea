//===- GraphImporter.h - Imports one ONNX graph or sub-graph ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/Builders.h"

namespace tessera::top::onnx_import {

/// Names of one graph, chained to those of the enclosing graph.
class GraphImporter {
public:
  GraphImporter(const OnnxModel &model, const onnx::GraphProto &proto, mlir::OpBuilder &builder,
                GraphImporter *parent = nullptr)
      : model(model), proto(proto), builder(builder), parent(parent) {}

  const OnnxModel &model;
  const onnx::GraphProto &proto;

  /// Imports all nodes at the builder's place. Inputs must have been bound.
  llvm::Error importNodes();
  /// Value of a name; initializers become constants when first asked for. Null: unknown.
  mlir::Value lookup(llvm::StringRef name);
  bool knows(llvm::StringRef name) const;
  void bind(llvm::StringRef name, mlir::Value value) { values[name] = value; }
  /// Values of the graph's outputs, in order.
  llvm::Expected<llvm::SmallVector<mlir::Value>> outputs();

  /// Counts the imports of loop bodies in the whole model; false beyond a limit no real model reaches.
  bool takeLoopImport() { return parent ? parent->takeLoopImport() : ++loopImports <= 4096; }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::MLIRContext *getContext() { return builder.getContext(); }

private:
  llvm::Error importNode(const onnx::NodeProto &node);
  mlir::Value materialize(const onnx::TensorProto &tensor);
  llvm::Error takeInitializerError();

  mlir::OpBuilder &builder;
  GraphImporter *parent;
  llvm::StringMap<mlir::Value> values;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  bool indexed = false;
  unsigned loopImports = 0;
  std::string initializerError; ///< why an initializer could not be read
  bool initializerUnsupported = false;

  void indexInitializers();
};

/// An error for every operator of |graph| and its sub-graphs that has no handler, all at once.
llvm::Error checkOperators(const OnnxModel &model, const onnx::GraphProto &graph);

} // namespace tessera::top::onnx_import
