//===- NodeImporter.h - What a handler sees of the node it imports ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Import/Onnx/OnnxTensor.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>

namespace tessera::top::onnx_import {

class GraphImporter;
struct StorageType;
using Ints = llvm::SmallVector<int64_t>;

/// One node being imported. Errors stick: after the first one every accessor gives harmless values,
/// and the importer reports it when the handler returns. So handlers read straight on.
class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const onnx::NodeProto &node, int64_t opset, mlir::OpBuilder &builder,
               mlir::Location loc)
      : graph(graph), node(node), opset(opset), b(builder), loc(loc) {}

  GraphImporter &graph;
  const onnx::NodeProto &node;
  const int64_t opset; ///< of the node's domain
  mlir::OpBuilder &b;
  const mlir::Location loc;

  //--- errors ---
  /// Records the first error ("what, actual versus allowed, what to do"; the node's name is added).
  void fail(const llvm::Twine &message);
  /// The same for what is valid, but not supported.
  void unsupported(const llvm::Twine &message);
  void fail(llvm::Error cause);
  /// Puts |before| in front of the recorded error and |after| behind it.
  void explainError(const llvm::Twine &before, const llvm::Twine &after) { error = (before + error + after).str(); }
  bool failed() const { return !error.empty(); }
  /// The recorded error.
  llvm::Error getError() const;

  /// Rejects attributes that are not among |attributes| and inputs from |inputs| on, which the handler does not read.
  void allowOnly(llvm::ArrayRef<llvm::StringRef> attributes, unsigned inputs);

  //--- inputs ---
  unsigned numInputs() const { return node.input_size(); }
  /// Given and not the empty name.
  bool hasInput(unsigned i) const { return i < numInputs() && !node.input(i).empty(); }
  /// The tensor's name, or "" where the input is absent.
  llvm::StringRef inputName(unsigned i) const { return i < numInputs() ? llvm::StringRef(node.input(i)) : ""; }
  /// The i-th input; an error if it is absent.
  mlir::Value input(unsigned i);
  /// The storage type that the file gives input |i|, or null.
  const StorageType *inputStorage(unsigned i) const;
  void setOutputStorage(unsigned i, const StorageType *type);
  mlir::Value optionalInput(unsigned i) { return hasInput(i) ? input(i) : mlir::Value(); }
  mlir::SmallVector<mlir::Value> inputs();
  static llvm::ArrayRef<int64_t> shape(mlir::Value value);
  static int64_t rank(mlir::Value value) { return static_cast<int64_t>(shape(value).size()); }
  /// The size of dim |axis|, kDynamic if open; 1 where there is no such dim, as may be after an error.
  static int64_t dim(mlir::Value value, int64_t axis) {
    return axis >= 0 && axis < rank(value) ? shape(value)[axis] : 1;
  }
  static mlir::Type elementType(mlir::Value value);
  static bool isFloat(mlir::Value value) { return llvm::isa<mlir::FloatType>(elementType(value)); }
  /// The input as integers; an error that names what |what| is for if it is no constant.
  Ints constantInts(unsigned i, llvm::StringRef what);
  llvm::SmallVector<double> constantDoubles(unsigned i, llvm::StringRef what);
  /// |axis| from -rank..rank-1 made non-negative; an error outside.
  int64_t normalizeAxis(int64_t axis, int64_t rank);
  Ints normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  //--- attributes ---
  bool hasAttr(llvm::StringRef name) const { return findAttr(name); }
  int64_t intAttr(llvm::StringRef name, int64_t byDefault);
  int64_t requiredInt(llvm::StringRef name);
  double floatAttr(llvm::StringRef name, double byDefault);
  Ints intsAttr(llvm::StringRef name, llvm::ArrayRef<int64_t> byDefault = {});
  llvm::SmallVector<double> floatsAttr(llvm::StringRef name);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef byDefault);
  llvm::SmallVector<std::string> stringsAttr(llvm::StringRef name);
  const onnx::AttributeProto *findAttr(llvm::StringRef name) const;
  /// Attribute |name| of that type; null if absent or (an error) of another type.
  const onnx::AttributeProto *typedAttr(llvm::StringRef name, onnx::AttributeProto::AttributeType type);
  /// Element type of an ONNX data type code.
  mlir::Type typeOf(int64_t dataType);

  //--- building ---
  /// Creates a one-result op; arguments as OpTy's builder behind the result type. Types are inferred;
  /// if all operands are constants the value is computed at once.
  template <typename OpTy, typename... Args>
  mlir::Value create(Args &&...args) {
    if (failed()) {
      return dummy();
    }
    return finish(OpTy::create(b, loc, placeholder(), std::forward<Args>(args)...).getOperation()).front();
  }
  /// The same for several results.
  template <typename OpTy, typename... Args>
  llvm::SmallVector<mlir::Value> createMulti(unsigned results, Args &&...args) {
    if (failed()) {
      return llvm::SmallVector<mlir::Value>(results, dummy());
    }
    llvm::SmallVector<mlir::Type> types(results, placeholder());
    return finish(OpTy::create(b, loc, mlir::TypeRange(types), std::forward<Args>(args)...).getOperation());
  }
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value scalarLike(mlir::Value like, double value) { return scalar(elementType(like), value); }
  mlir::Value intVector(llvm::ArrayRef<int64_t> values);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> perm);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  mlir::Value constant(const onnx::TensorProto &tensor, llvm::StringRef hint);
  /// |x| as a constant of these values.
  /// Counts |bytes| of a constant that is computed here; false, with an error, where the model's would take too much
  /// memory.
  bool charge(int64_t bytes);
  mlir::Value floatConstant(mlir::Type element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values);
  /// Infers the types of a freshly made op and folds it if it may.
  llvm::SmallVector<mlir::Value> finish(mlir::Operation *op);

  //--- outputs ---
  unsigned numOutputs() const { return node.output_size(); }
  bool wantsOutput(unsigned i) const { return i < numOutputs() && !node.output(i).empty(); }
  /// Gives output i its value.
  void setOutput(unsigned i, mlir::Value value);

  /// The type of results before they are inferred.
  static mlir::RankedTensorType placeholder(mlir::OpBuilder &builder);

private:
  /// Rejects the node because input |i|, |what|, is not constant.
  void rejectRunTime(unsigned i, llvm::StringRef what);
  std::string describeResult(unsigned i) const;
  /// The dims that a |shape| op asks for if one of them is known at run time only, else null.
  mlir::Value paddedShape(ShapeOp shape);
  mlir::RankedTensorType placeholder() { return placeholder(b); }
  mlir::Value dummy();

  std::string error;
  bool isUnsupported = false;
};

/// Imports one node: reads it through the NodeImporter, sets its outputs.
using Handler = void (*)(NodeImporter &n);

/// A handler for a range of opset versions of an operator.
struct HandlerEntry {
  llvm::StringLiteral domain; ///< "" is ai.onnx
  llvm::StringLiteral name;
  Handler handler;
  int64_t since = 1;
};

/// Domain and name of an operator -> its handlers, one for each opset from which another is to be used.
using HandlerTable = std::map<std::pair<llvm::StringRef, llvm::StringRef>, llvm::SmallVector<HandlerEntry, 1>>;

/// All entries of |families| by operator. Two that serve the same operator from the same opset on are an error: which
/// of them were taken would be chance.
llvm::Expected<HandlerTable> makeHandlerTable(llvm::ArrayRef<llvm::ArrayRef<HandlerEntry>> families);

/// The handlers of each family; the table of handlers is their sum.
llvm::ArrayRef<HandlerEntry> elementwiseHandlers();
llvm::ArrayRef<HandlerEntry> convHandlers();
llvm::ArrayRef<HandlerEntry> reduceHandlers();
llvm::ArrayRef<HandlerEntry> shapeHandlers();
llvm::ArrayRef<HandlerEntry> indexHandlers();
llvm::ArrayRef<HandlerEntry> resizeHandlers();
llvm::ArrayRef<HandlerEntry> roiHandlers();
llvm::ArrayRef<HandlerEntry> controlHandlers();
llvm::ArrayRef<HandlerEntry> recurrentHandlers();
llvm::ArrayRef<HandlerEntry> compositeHandlers();
llvm::ArrayRef<HandlerEntry> quantizeHandlers();
llvm::ArrayRef<HandlerEntry> qLinearHandlers();
llvm::ArrayRef<HandlerEntry> integerProductHandlers();
llvm::ArrayRef<HandlerEntry> selectionHandlers();
llvm::ArrayRef<HandlerEntry> sequenceHandlers();
llvm::ArrayRef<HandlerEntry> signalHandlers();
llvm::ArrayRef<HandlerEntry> trainingHandlers();
llvm::ArrayRef<HandlerEntry> attentionHandlers();
llvm::ArrayRef<HandlerEntry> microsoftAttentionHandlers();
llvm::ArrayRef<HandlerEntry> microsoftHandlers();
llvm::ArrayRef<HandlerEntry> packedWeightHandlers();
llvm::ArrayRef<HandlerEntry> deformConvHandlers();
llvm::ArrayRef<HandlerEntry> featureHandlers();
llvm::ArrayRef<HandlerEntry> tfIdfHandlers();
llvm::ArrayRef<HandlerEntry> treeHandlers();

/// The handler of an operator of ai.onnx whose meaning in |opset|, below 7, is another than in opset 7; else null.
Handler findLegacyHandler(llvm::StringRef name, int64_t opset);

/// The newest handler of an operator that serves |opset|; null if there is none.
Handler findHandler(llvm::StringRef domain, llvm::StringRef name, int64_t opset);

} // namespace tessera::top::onnx_import
