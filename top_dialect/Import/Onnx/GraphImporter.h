//===- GraphImporter.h - Imports one ONNX graph or sub-graph ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"
#include "top_dialect/Import/Onnx/PaddedRows.h"
#include "top_dialect/Import/Onnx/StorageTypes.h"

#include "mlir/IR/Builders.h"

namespace tessera::top::onnx_import {

/// Names of one graph, chained to those of the enclosing graph.
class GraphImporter {
public:
  GraphImporter(const OnnxModel &model, const onnx::GraphProto &proto, mlir::OpBuilder &builder,
                GraphImporter *parent = nullptr)
      : model(model), proto(proto), builder(builder), parent(parent), prefix(parent ? parent->prefix : "") {}
  /// The body of a function that the node |call| of |caller| calls: no name of the caller is visible in it.
  GraphImporter(const OnnxModel &body, const onnx::NodeProto &call, GraphImporter &caller)
      : model(body), proto(body.proto->graph()), builder(caller.builder), parent(nullptr),
        prefix(caller.nameOf(nodeName(call)) + "/") {}

  const OnnxModel &model;
  const onnx::GraphProto &proto;

  /// Imports all nodes at the builder's place. Inputs must have been bound.
  llvm::Error importNodes();
  /// Value of a name; initializers become constants when first asked for. Null: unknown.
  mlir::Value lookup(llvm::StringRef name);
  bool knows(llvm::StringRef name) const;
  void bind(llvm::StringRef name, mlir::Value value) { values[name] = value; }
  /// Sequences are lists of tensors that are known while the model is imported; no op holds one. Null: none of this
  /// name.
  const llvm::SmallVector<mlir::Value> *lookupSequence(llvm::StringRef name) const;
  void bindSequence(llvm::StringRef name, llvm::SmallVector<mlir::Value> tensors) {
    sequences[name] = std::move(tensors);
  }
  /// Returns the storage type that the file gives a tensor, or null.
  const StorageType *storageOf(llvm::StringRef name) const;
  void bindStorage(llvm::StringRef name, const StorageType *type) { storages[name] = type; }
  /// Values of the graph's outputs, in order.
  llvm::Expected<llvm::SmallVector<mlir::Value>> outputs();

  /// Counts the imports of loop bodies in the whole model; false beyond a limit no real model reaches.
  bool takeLoopImport() { return ++model.state->loopBodies <= 4096; }

  /// What a node or tensor of this graph is called in the module: in the body of a function "CALL/NAME".
  std::string nameOf(llvm::StringRef name) const { return (prefix + name).str(); }

  /// The tensors of the whole model whose size only a run tells.
  PaddedRows &paddedRows() { return parent ? parent->paddedRows() : padded; }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::MLIRContext *getContext() { return builder.getContext(); }

private:
  llvm::Error importNode(const onnx::NodeProto &node);
  /// Rejects nodes that compute with tensors of a storage type; the results of those that move them have it too.
  llvm::Error passStorage(const onnx::NodeProto &node);
  llvm::Error callFunction(const onnx::FunctionProto &function, const onnx::NodeProto &node);
  mlir::Value materialize(const onnx::TensorProto &tensor);
  llvm::Error takeInitializerError();

  mlir::OpBuilder &builder;
  GraphImporter *parent;
  llvm::StringMap<mlir::Value> values;
  llvm::StringMap<llvm::SmallVector<mlir::Value>> sequences;
  llvm::StringMap<const StorageType *> storages;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  bool indexed = false;
  std::string prefix;           ///< of names inside a function's body
  PaddedRows padded;            ///< of the outermost graph
  std::string initializerError; ///< why an initializer could not be read
  bool initializerUnsupported = false;

  void indexInitializers();
};

/// An error for every operator of |graphs| and their sub-graphs that has no handler, all at once; not for those in
/// branches of an If alone, which may turn out not to be taken.
llvm::Error checkOperators(const OnnxModel &model, llvm::ArrayRef<const onnx::GraphProto *> graphs);

} // namespace tessera::top::onnx_import
