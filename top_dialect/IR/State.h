//===- State.h - Tensors that a network keeps between runs ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A state is an argument of a network, and the result that is the argument's value in the next run. Both have the
// attribute `top.state` with the state's name:
//
//   func.func @main(%x: tensor<4xf32> {top.name = "x"},
//                   %h: tensor<4xf32> {top.name = "h_in", top.state = "h_in"})
//       -> (tensor<4xf32> {top.name = "y"}, tensor<4xf32> {top.name = "h_out", top.state = "h_in"})
//
// Passes treat them like other arguments and results. The planner of a stage turns a pair into one tensor of the stage,
// which is neither an input nor an output.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_STATE_H
#define TESSERA_TOP_DIALECT_IR_STATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace tessera::top {

inline constexpr llvm::StringLiteral kStateAttr = "top.state";
/// Value of a state before the first run, an attribute of its argument. Without it, the value is zero.
inline constexpr llvm::StringLiteral kInitialAttr = "top.initial";

struct State {
  llvm::StringRef name;
  unsigned argument = 0, result = 0;
};

/// Returns the states of a verified function, in the order of their arguments.
llvm::SmallVector<State> listStates(mlir::func::FuncOp function);

bool isStateArgument(mlir::func::FuncOp function, unsigned argument);
bool isStateResult(mlir::func::FuncOp function, unsigned result);

/// Marks |argument| and |result| as a state.
void addState(mlir::func::FuncOp function, const State &state);

/// Makes all states inputs and outputs again.
void removeStates(mlir::func::FuncOp function);

/// Returns an error unless each state has one argument and one result, of the same type with known sizes, and an
/// initial value of that type.
llvm::Error verifyStates(mlir::func::FuncOp function);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_STATE_H
