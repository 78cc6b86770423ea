//===- Evaluator.h - Runs Top functions and single ops on host tensors ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates one op after the other with its `evaluate` member; the result is the reference of every test.
#ifndef TESSERA_TOP_DIALECT_REFERENCE_EVALUATOR_H
#define TESSERA_TOP_DIALECT_REFERENCE_EVALUATOR_H

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/TopAttrs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <map>
#include <string>

namespace tessera::top {

class BindOp;
class IfOp;
class LoopOp;

/// Tensors by ONNX name.
using TensorMap = std::map<std::string, HostTensor, std::less<>>;

/// Called with every tensor that an op's `top.outputs` names, when it has been computed.
using TensorCallback = std::function<void(llvm::StringRef name, const HostTensor &tensor)>;

/// Runs Top functions. Not thread-safe; one run at a time. Errors are emitted as diagnostics at the function or op.
class Evaluator {
public:
  explicit Evaluator(TensorCallback callback = nullptr) : callback(std::move(callback)) {}

  /// Runs `function` on `inputs`, which must contain exactly one tensor per argument, by its `top.name`, with the
  /// declared element type and shape (any size for `?` dims). Returns the results by `top.name`.
  llvm::FailureOr<TensorMap> run(mlir::func::FuncOp function, const TensorMap &inputs);

  /// Evaluates one op on the values of its operands. Its regions may use constants defined outside.
  llvm::LogicalResult runOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                            llvm::SmallVectorImpl<HostTensor> &outputs);

private:
  /// Runs a function without symbols of arguments.
  llvm::FailureOr<TensorMap> runBound(mlir::func::FuncOp function, const TensorMap &inputs);

  using Tensors = llvm::SmallVector<HostTensor, 2>;

  /// Sets the symbol of |op| to its value.
  llvm::LogicalResult runBind(BindOp op);
  llvm::LogicalResult setSymbol(mlir::Operation *op, SizeSymbolAttr symbol, int64_t value);
  /// Sets the symbols that |types| are to have as sizes, and that control flow sets, to the sizes of |values|.
  llvm::LogicalResult setSymbols(mlir::Operation *op, mlir::TypeRange types, llvm::ArrayRef<HostTensor> values);
  /// Evaluates an op without regions.
  llvm::LogicalResult evaluate(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs);
  llvm::LogicalResult runIf(IfOp op, const HostTensor &condition, Tensors &outputs);
  llvm::LogicalResult runLoop(LoopOp op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs);
  /// Runs a block whose arguments are set. `yielded` receives the operands of its terminator.
  llvm::LogicalResult runBlock(mlir::Block &block, Tensors &yielded);
  llvm::LogicalResult runInBlock(mlir::Operation *op);
  llvm::LogicalResult runSimpleOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs);
  /// Returns the value's tensor, or null if it was not computed. Constants are loaded at their first use.
  const HostTensor *lookup(mlir::Value value);
  const HostTensor *lookupOrError(mlir::Operation *user, mlir::Value value);
  /// Returns, per op of `block`, the values that can be freed after it.
  const llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> &lastUses(mlir::Block &block);

  TensorCallback callback;
  llvm::DenseMap<mlir::Value, HostTensor> tensors;
  llvm::DenseMap<mlir::Attribute, int64_t> symbols; ///< the values of symbols that ops set
  std::map<mlir::Block *, llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>>> deaths;
};

/// Evaluates one op, for constant folding: appends its results to `outputs`.
llvm::LogicalResult evaluateOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                               llvm::SmallVectorImpl<HostTensor> &outputs);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_REFERENCE_EVALUATOR_H
