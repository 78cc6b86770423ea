//===- GraphImporter.h - Import of one ONNX graph or sub-graph ------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_GRAPHIMPORTER_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_GRAPHIMPORTER_H

#include "top_dialect/Import/Onnx/Control/PaddedRows.h"
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/Builders.h"

namespace tessera::top::onnx_import {

/// Imports the nodes of one graph. Holds the values of its names; unknown names are looked up in the enclosing graph.
class GraphImporter {
public:
  GraphImporter(const OnnxModel &model, const onnx::GraphProto &proto, mlir::OpBuilder &builder,
                GraphImporter *parent = nullptr)
      : model(model), proto(proto), builder(builder), parent(parent), prefix(parent ? parent->prefix : "") {}
  /// For the body of a function that the node |call| of |caller| calls: no name of the caller is visible in it.
  GraphImporter(const OnnxModel &body, const onnx::NodeProto &call, GraphImporter &caller)
      : model(body), proto(body.proto->graph()), builder(caller.builder), parent(nullptr),
        prefix(caller.nameOf(nodeName(call)) + "/") {}

  const OnnxModel &model;
  const onnx::GraphProto &proto;

  /// Imports all nodes at the builder's insertion point. The inputs must have been bound before.
  llvm::Error importNodes();
  /// Runs |first|, imports the nodes after the one that is being imported, and returns the graph's outputs. Forgets
  /// what was bound meanwhile, so that the nodes can be imported again.
  llvm::Expected<llvm::SmallVector<mlir::Value>> importRest(llvm::function_ref<llvm::Error()> first);
  /// Makes |values| the graph's outputs. The nodes after the one that is being imported are left out.
  void finishWith(llvm::ArrayRef<mlir::Value> values);
  /// Returns the value of a name, or null if the name is unknown. Initializers become constants on first use.
  mlir::Value lookup(llvm::StringRef name);
  bool knows(llvm::StringRef name) const;
  void bind(llvm::StringRef name, mlir::Value value) { bound.values[name] = value; }
  /// Returns the tensors of a sequence, or null if there is no sequence of this name. Sequences exist only during
  /// import, as lists of tensors; no op of the module holds one.
  const llvm::SmallVector<mlir::Value> *lookupSequence(llvm::StringRef name) const;
  void bindSequence(llvm::StringRef name, llvm::SmallVector<mlir::Value> tensors) {
    bound.sequences[name] = std::move(tensors);
  }
  /// Returns the storage type of a tensor in the file, or null if it has none.
  const StorageType *storageOf(llvm::StringRef name) const;
  void bindStorage(llvm::StringRef name, const StorageType *type) { bound.storages[name] = type; }
  /// Returns the value of the graph's output |name|.
  llvm::Expected<mlir::Value> output(llvm::StringRef name);
  /// Returns the values of the graph's outputs, in order.
  llvm::Expected<llvm::SmallVector<mlir::Value>> outputs();

  /// Counts the imports of loop bodies in the whole model. Returns false beyond a limit that no real model reaches.
  bool takeLoopImport() { return ++model.state->loopBodies <= 4096; }

  /// Returns whether this is the graph of the file itself: no branch, loop body or function.
  bool isOutermost() const { return !parent && prefix.empty(); }

  /// Returns the name of a node or tensor of this graph in the module. Inside the body of a function it is "CALL/NAME".
  std::string nameOf(llvm::StringRef name) const { return (prefix + name).str(); }

  /// The tensors of the whole model whose number of rows is known only at run time.
  PaddedRows &paddedRows() { return parent ? parent->paddedRows() : padded; }

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::MLIRContext *getContext() { return builder.getContext(); }

private:
  /// The values that the names of the graph stand for.
  struct Bindings {
    llvm::StringMap<mlir::Value> values;
    llvm::StringMap<llvm::SmallVector<mlir::Value>> sequences;
    llvm::StringMap<const StorageType *> storages;
  };

  llvm::Error importPending();
  llvm::Error importNode(const onnx::NodeProto &node);
  /// Rejects nodes that compute with tensors of a storage type. For nodes that only move elements, the results get the
  /// storage type of the operand.
  llvm::Error passStorage(const onnx::NodeProto &node);
  llvm::Error callFunction(const onnx::FunctionProto &function, const onnx::NodeProto &node);
  mlir::Value materialize(const onnx::TensorProto &tensor);
  llvm::Error takeInitializerError();

  mlir::OpBuilder &builder;
  GraphImporter *parent;
  Bindings bound;
  llvm::ArrayRef<const onnx::NodeProto *> pending; ///< the nodes that follow the one that is being imported
  bool isFinished = false;                         ///< finishWith() has set the outputs
  llvm::StringMap<const onnx::TensorProto *> initializers;
  bool indexed = false;
  std::string prefix;           ///< for names inside the body of a function
  PaddedRows padded;            ///< used in the outermost graph only
  std::string initializerError; ///< why an initializer could not be read, or empty
  bool initializerUnsupported = false;

  void indexInitializers();
};

/// Returns one error that lists all operators of |graphs| and their sub-graphs that have no handler. Leaves out
/// operators that occur only in branches of an If, because the branch may turn out not to be taken.
llvm::Error checkOperators(const OnnxModel &model, llvm::ArrayRef<const onnx::GraphProto *> graphs);

/// Returns the handler of an operator that a library of the user computes, or null if it is not registered.
Handler findCustomHandler(llvm::StringRef domain, llvm::StringRef name);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_GRAPHIMPORTER_H
