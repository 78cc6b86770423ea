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
//
// A state may grow along one dim: the argument has size `past` there, the result size `past` + n. The largest value of
// `past` is the capacity. Lowering gives the argument space for all sizes of the result, and removes the result because
// it is written in place.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_STATE_H
#define TESSERA_TOP_DIALECT_IR_STATE_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace tessera::top {

inline constexpr llvm::StringLiteral kStateAttr = "top.state";
/// Value of a state before the first run, an attribute of its argument. Without it, the value is zero.
inline constexpr llvm::StringLiteral kInitialAttr = "top.initial";

/// Name of the output of a state that is written in place and therefore has no result; an attribute of its argument.
inline constexpr llvm::StringLiteral kInPlaceAttr = "top.in_place";

struct State {
  llvm::StringRef name;
  unsigned argument = 0, result = 0;
};

/// How a state grows: along |axis|, from |before|, a symbol, to |after| indices in a run. Several states may have the
/// same length.
struct Growth {
  unsigned axis = 0;
  Dim before = 0, after = 0;

  /// Returns the largest length that a run may leave behind.
  int64_t capacity() const { return maxOf(before); }
  /// Returns the size of the state in memory. It exceeds the capacity by the largest number of new indices, so that no
  /// combination of ranges leaves the memory; the rest is never touched.
  int64_t space() const { return maxOf(after); }
  std::string name() const { return toText(before); }
};
/// Returns the symbols that are lengths of growing states before a run, each with a range that leaves space for the new
/// indices of any run.
llvm::DenseMap<SizeSymbolAttr, Dim> lengthsBelowCapacity(mlir::func::FuncOp function);

/// Returns the growth of a state of these types, with a symbol as length before a run, or nothing if the types do not
/// fit.
std::optional<Growth> findGrowth(mlir::Type argument, mlir::Type result);

/// Returns the growth of the state |argument|, or nothing for other arguments.
std::optional<Growth> findGrowth(mlir::func::FuncOp function, unsigned argument);

/// Returns the growth of a state that recordGrowth() has recorded at the argument.
std::optional<Growth> getGrowth(mlir::func::FuncOp function, unsigned argument);

/// Returns true if |op| concatenates a growing state that recordGrowth() has recorded and new indices. The result has
/// the type of the state in every precision.
bool appendsToState(mlir::Operation *op);

/// Returns the states of a verified function, in the order of their arguments.
llvm::SmallVector<State> listStates(mlir::func::FuncOp function);

/// Records at the arguments how states grow. Returns an error that names the state if states of one length grow
/// differently.
llvm::Error recordGrowth(mlir::func::FuncOp function);

bool isStateArgument(mlir::func::FuncOp function, unsigned argument);
bool isStateResult(mlir::func::FuncOp function, unsigned result);

/// Marks |argument| and |result| as a state.
void addState(mlir::func::FuncOp function, const State &state);

/// Makes all states inputs and outputs again.
void removeStates(mlir::func::FuncOp function);

/// Returns an error unless each state has one argument and one result, of the same type with known sizes or of types
/// that grow, and an initial value of that type.
llvm::Error verifyStates(mlir::func::FuncOp function);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_STATE_H
