//===- GraphBuilder.h - Builds a Top module op by op ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_BUILDER_GRAPHBUILDER_H
#define TESSERA_TOP_DIALECT_BUILDER_GRAPHBUILDER_H

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::top {

/// Builds the function of a Top module. Errors are sticky: after the first one, all calls return placeholders, and
/// finish() returns the error.
class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext *context, llvm::StringRef modelName);

  /// Sets the name of the ops that follow, as reports and errors show it.
  void setName(const llvm::Twine &name);

  mlir::Value addInput(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<Dim> sizes);
  void addOutput(llvm::StringRef name, mlir::Value value);
  /// Adds an input whose value in the next run is the output |after|, which addOutput() adds later.
  mlir::Value addState(llvm::StringRef name, llvm::StringRef after, mlir::Type element, llvm::ArrayRef<Dim> sizes);

  /// Creates an op with one result. The arguments are those of OpTy's builder after the result type, which is inferred.
  template <typename OpTy, typename... Args>
  mlir::Value create(Args &&...args) {
    return hasFailed() ? placeholder() : finishOp(OpTy::create(b, loc, unknownType(), std::forward<Args>(args)...));
  }

  mlir::Value constant(mlir::RankedTensorType type, std::vector<char> bytes, llvm::StringRef hint);
  /// Creates a constant without a copy. |owner| keeps the bytes alive and unchanged; |isMapped|: they are those of a
  /// mapped file.
  mlir::Value constant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner,
                       bool isMapped, llvm::StringRef hint);
  /// Creates a constant whose bytes |make| computes when they are read.
  mlir::Value lazyConstant(mlir::RankedTensorType type, std::function<std::vector<char>()> make, llvm::StringRef hint);
  mlir::Value constant(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<float> values, llvm::StringRef hint);
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<Dim> sizes);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<Dim> starts, llvm::ArrayRef<Dim> sizes);
  /// Returns the elements |start| to |start| + |size| - 1 along |axis|.
  mlir::Value slice(mlir::Value x, int64_t axis, Dim start, Dim size);
  mlir::Value concat(mlir::Value a, mlir::Value c, int64_t axis);
  mlir::Value add(mlir::Value a, mlir::Value c) { return create<AddOp>(a, c); }
  mlir::Value mul(mlir::Value a, mlir::Value c) { return create<MulOp>(a, c); }
  /// Multiplies by the transpose of |weight| [N, K] and adds |bias| [N] unless it is null.
  mlir::Value linear(mlir::Value x, mlir::Value weight, mlir::Value bias);

  void fail(llvm::Error cause);
  void fail(const llvm::Twine &message);
  bool hasFailed() const { return static_cast<bool>(error); }

  mlir::OpBuilder &getBuilder() { return b; }
  mlir::Type f32() { return b.getF32Type(); }
  /// Ends the function and verifies the module.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> finish();

private:
  mlir::RankedTensorType unknownType();
  mlir::Value placeholder();
  mlir::Value finishOp(mlir::Operation *op);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::string name;
  std::vector<std::string> outputNames;
  llvm::SmallVector<mlir::Value> outputs;
  std::vector<std::pair<std::string, std::string>> states;
  std::unique_ptr<llvm::ErrorInfoBase> error;
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_BUILDER_GRAPHBUILDER_H
