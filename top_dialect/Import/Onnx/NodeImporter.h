//===- NodeImporter.h - Access of a handler to the node it imports --------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_NODEIMPORTER_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_NODEIMPORTER_H

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Import/Onnx/Model/OnnxTensor.h"

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

/// One node being imported. Errors are sticky: after the first one, all accessors return harmless placeholder values
/// and the importer reports the error when the handler returns. Handlers therefore need no checks between calls.
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
  /// Records the first error. The message says what is wrong, the actual and the allowed values, and what to do; the
  /// name of the node is added.
  void fail(const llvm::Twine &message);
  /// Records an error about a valid model that Tessera does not support.
  void unsupported(const llvm::Twine &message);
  void fail(llvm::Error cause);
  /// Adds |before| and |after| to the text of the recorded error.
  void explainError(const llvm::Twine &before, const llvm::Twine &after) { error = (before + error + after).str(); }
  bool failed() const { return !error.empty(); }
  /// The recorded error.
  llvm::Error getError() const;

  /// Rejects attributes other than |attributes|, and inputs from index |inputs| on. The handler does not read them.
  void allowOnly(llvm::ArrayRef<llvm::StringRef> attributes, unsigned inputs);

  //--- inputs ---
  unsigned numInputs() const { return node.input_size(); }
  /// Returns whether input |i| is present: its name is not empty.
  bool hasInput(unsigned i) const { return i < numInputs() && !node.input(i).empty(); }
  /// Returns the tensor's name, or "" if the input is absent.
  llvm::StringRef inputName(unsigned i) const { return i < numInputs() ? llvm::StringRef(node.input(i)) : ""; }
  /// Returns the i-th input. It is an error if it is absent.
  mlir::Value input(unsigned i);
  /// Returns the storage type of input |i| in the file, or null if it has none.
  const StorageType *inputStorage(unsigned i) const;
  void setOutputStorage(unsigned i, const StorageType *type);
  mlir::Value optionalInput(unsigned i) { return hasInput(i) ? input(i) : mlir::Value(); }
  mlir::SmallVector<mlir::Value> inputs();
  static llvm::ArrayRef<int64_t> shape(mlir::Value value);
  static int64_t rank(mlir::Value value) { return static_cast<int64_t>(shape(value).size()); }
  /// Returns the size of dim |axis|, or kDynamic if it is open. Returns 1 if there is no such dim, as can happen after
  /// an error.
  static int64_t dim(mlir::Value value, int64_t axis) {
    return axis >= 0 && axis < rank(value) ? shape(value)[axis] : 1;
  }
  /// Returns the sizes of a tensor, with expressions where shape() has kDynamic.
  static llvm::SmallVector<Dim> sizes(mlir::Value value) { return Shape(value).dims(); }
  /// Checks that |value| is known to have the sizes |wanted|.
  static bool hasSizes(mlir::Value value, llvm::ArrayRef<Dim> wanted);
  static mlir::Type elementType(mlir::Value value);
  static bool isFloat(mlir::Value value) { return llvm::isa<mlir::FloatType>(elementType(value)); }
  /// Returns the constant input |i| as integers. Otherwise it is an error, which uses |what| to name the input's
  /// purpose.
  Ints constantInts(unsigned i, llvm::StringRef what);
  /// Returns the sizes that |value| holds if none is unknown and at least one is an expression.
  std::optional<llvm::SmallVector<Dim>> openSizes(mlir::Value value);
  /// Returns input |i|, which must be constant or computed from dims, as sizes.
  llvm::SmallVector<Dim> sizesInput(unsigned i, llvm::StringRef what);
  /// Returns whether sizes that a run computes become symbols here.
  bool bindsSizes() const;
  /// Returns a new symbol for the single element of |count|, from 0 to |most|, that is dim |axis| of output |i|.
  Dim bindCount(mlir::Value count, unsigned i, int64_t axis, int64_t most);
  /// Returns the elements of |value|, a vector or scalar of integers, as sizes. Elements that are not known become
  /// symbols up to |most|. Returns nothing if they cannot.
  std::optional<llvm::SmallVector<Dim>> bindSizes(mlir::Value value, int64_t most);
  llvm::SmallVector<double> constantDoubles(unsigned i, llvm::StringRef what);
  /// Converts an |axis| in [-rank, rank) to [0, rank). Any other value is an error.
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
  /// Returns attribute |name|, or null if it is absent. It is an error if its type is not |type|.
  const onnx::AttributeProto *typedAttr(llvm::StringRef name, onnx::AttributeProto::AttributeType type);
  /// Returns the element type of an ONNX data type code.
  mlir::Type typeOf(int64_t dataType);

  //--- building ---
  /// Creates an op with one result. The arguments are those of OpTy's builder after the result type. The result type is
  /// inferred, and if all operands are constants the value is computed immediately.
  template <typename OpTy, typename... Args>
  mlir::Value create(Args &&...args) {
    if (failed()) {
      return dummy();
    }
    return finish(OpTy::create(b, loc, placeholder(), std::forward<Args>(args)...).getOperation()).front();
  }
  /// Creates an op with several results in the same way.
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
  /// Reshapes to sizes of which at most one is unknown; it becomes the remaining size.
  mlir::Value reshapeTo(mlir::Value value, llvm::ArrayRef<Dim> sizes);
  mlir::Value expandTo(mlir::Value value, llvm::ArrayRef<Dim> sizes);
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<Dim> starts, llvm::ArrayRef<Dim> sizes,
                    llvm::ArrayRef<int64_t> steps);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> perm);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  mlir::Value constant(const onnx::TensorProto &tensor, llvm::StringRef hint);
  /// Adds |bytes| to the size of the constants computed during import. Returns false, with an error, if the constants
  /// of the model would take too much memory.
  bool charge(int64_t bytes);
  /// Returns a constant with the given type, shape and values.
  mlir::Value floatConstant(mlir::Type element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values);
  /// Infers the result types of a newly created op and folds it where possible.
  llvm::SmallVector<mlir::Value> finish(mlir::Operation *op);

  //--- outputs ---
  unsigned numOutputs() const { return node.output_size(); }
  bool wantsOutput(unsigned i) const { return i < numOutputs() && !node.output(i).empty(); }
  /// Sets the value of output |i|.
  void setOutput(unsigned i, mlir::Value value);

  /// The type of results before their type is inferred.
  static mlir::RankedTensorType placeholder(mlir::OpBuilder &builder);

private:
  /// Rejects the node because input |i|, described by |what|, is not constant.
  void rejectRunTime(unsigned i, llvm::StringRef what);
  std::string describeResult(unsigned i) const;
  /// Infers the result types of |op|. If it needs two sizes to be equal that are not known to be, and one is a symbol
  /// of an input, makes them equal everywhere. Fails with an error otherwise.
  bool inferTypes(mlir::Operation *op, llvm::SmallVectorImpl<mlir::RankedTensorType> &types);
  /// Returns the dims that a |shape| op computes if one of them is known only at run time, else null.
  mlir::Value paddedShape(ShapeOp shape);
  mlir::RankedTensorType placeholder() { return placeholder(b); }
  mlir::Value dummy();

  std::string error;
  bool isUnsupported = false;
};

/// Imports one node: reads it through the NodeImporter and sets its outputs.
using Handler = void (*)(NodeImporter &n);

/// A handler for an operator from opset |since| on.
struct HandlerEntry {
  llvm::StringLiteral domain; ///< "" is ai.onnx
  llvm::StringLiteral name;
  Handler handler;
  int64_t since = 1;
};

/// Maps the domain and name of an operator to its handlers, one per range of opsets.
using HandlerTable = std::map<std::pair<llvm::StringRef, llvm::StringRef>, llvm::SmallVector<HandlerEntry, 1>>;

/// Returns all entries of |families| by operator. Two entries with the same operator and the same first opset are an
/// error, because it would be unspecified which of them is used.
llvm::Expected<HandlerTable> makeHandlerTable(llvm::ArrayRef<llvm::ArrayRef<HandlerEntry>> families);

/// The handlers of each family. Together they form the handler table.
llvm::ArrayRef<HandlerEntry> elementwiseHandlers();
llvm::ArrayRef<HandlerEntry> convHandlers();
llvm::ArrayRef<HandlerEntry> reduceHandlers();
llvm::ArrayRef<HandlerEntry> constantHandlers();
llvm::ArrayRef<HandlerEntry> reshapeHandlers();
llvm::ArrayRef<HandlerEntry> sliceHandlers();
llvm::ArrayRef<HandlerEntry> padHandlers();
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
llvm::ArrayRef<HandlerEntry> blockedLayoutHandlers();
llvm::ArrayRef<HandlerEntry> expertHandlers();
llvm::ArrayRef<HandlerEntry> randomHandlers();
llvm::ArrayRef<HandlerEntry> deformConvHandlers();
llvm::ArrayRef<HandlerEntry> featureHandlers();
llvm::ArrayRef<HandlerEntry> tfIdfHandlers();
llvm::ArrayRef<HandlerEntry> treeHandlers();

/// Returns the handler of an ai.onnx operator whose meaning in |opset|, below 7, differs from that in opset 7, or null
/// if the meaning is the same.
Handler findLegacyHandler(llvm::StringRef name, int64_t opset);

/// Returns the newest handler of an operator that is valid for |opset|, or null if there is none.
Handler findHandler(llvm::StringRef domain, llvm::StringRef name, int64_t opset);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_NODEIMPORTER_H
