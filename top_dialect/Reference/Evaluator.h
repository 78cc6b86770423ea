//===- Evaluator.h - Runs Top functions and single ops on host tensors ---===//
// SPDX-License-Identifier: Apache-2.0
//
// The golden of every test: one op after the other, each evaluated by its `evaluate` member.
#pragma once

#include "top_dialect/IR/HostTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <map>
#include <string>

namespace tessera::top {

class IfOp;
class LoopOp;

/// Tensors by ONNX name.
using TensorMap = std::map<std::string, HostTensor, std::less<>>;

/// Told of every tensor that an op's `top.outputs` names, once it is computed.
using TensorCallback = std::function<void(llvm::StringRef name, const HostTensor &tensor)>;

/// Not thread-safe; one run at a time. Errors are emitted as diagnostics at the function or op.
class Evaluator {
public:
  explicit Evaluator(TensorCallback callback = nullptr) : callback(std::move(callback)) {}

  /// Runs `function` on `inputs`, one per argument by `top.name`: all of them, no others, each of
  /// the declared element type and shape (any size where a dim is `?`). Gives the results by
  /// `top.name`.
  llvm::FailureOr<TensorMap> run(mlir::func::FuncOp function, const TensorMap &inputs);

  /// Evaluates one op on the values of its operands. Regions may use constants from outside.
  llvm::LogicalResult runOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                            llvm::SmallVectorImpl<HostTensor> &outputs);

private:
  using Tensors = llvm::SmallVector<HostTensor, 2>;

  llvm::LogicalResult runIf(IfOp op, const HostTensor &condition, Tensors &outputs);
  llvm::LogicalResult runLoop(LoopOp op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs);
  /// Runs a block whose arguments have been set; `yielded` are the operands of its terminator.
  llvm::LogicalResult runBlock(mlir::Block &block, Tensors &yielded);
  llvm::LogicalResult runInBlock(mlir::Operation *op);
  llvm::LogicalResult runSimpleOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs);
  /// The value's tensor; constants are looked up when first asked for. Null: never computed.
  const HostTensor *lookup(mlir::Value value);
  const HostTensor *lookupOrError(mlir::Operation *user, mlir::Value value);
  /// What may be freed after which op of `block`.
  const llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> &lastUses(mlir::Block &block);

  TensorCallback callback;
  llvm::DenseMap<mlir::Value, HostTensor> tensors;
  std::map<mlir::Block *, llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>>> deaths;
};

/// Evaluates one op, for constant folding: appends its results to `outputs`.
llvm::LogicalResult evaluateOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                               llvm::SmallVectorImpl<HostTensor> &outputs);

} // namespace tessera::top
