//===- RecurrentCell.h - Cell of RNN, GRU and LSTM kernels ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_RECURRENTCELL_H
#define TESSERA_CODEGEN_KERNELS_RECURRENTCELL_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"
#include "top_dialect/IR/Sizes.h"

namespace tessera::kernels {

/// Holds the sizes of a recurrent op and its rows in scratch, and computes the next state from the sums of the gates.
/// Subclasses compute the sums.
class RecurrentCell {
protected:
  RecurrentCell(KernelBuilder &kb, device::RecurrentOp op);
  virtual ~RecurrentCell() = default;

  /// Operands of the op, in order.
  enum Operand { kX, kR, kW, kBias, kLens, kInitialH, kInitialC, kPeephole };
  /// Rows in scratch, each of |rowSize| elements: h, c, reset * h, and the sums over the state of each gate.
  enum Row { kH, kC, kResetH, kHiddenSums };

  /// Loads the sum of |gate| over the inputs of this step, or over the state, including biases, for the units from |i|
  /// on.
  virtual mlir::Value loadInputSum(int64_t gate, mlir::Value i, mlir::Value mask) = 0;
  virtual mlir::Value loadHiddenSum(int64_t gate, mlir::Value i, mlir::Value) { return loadRow(hiddenRow(gate), i); }
  mlir::Value sumOf(int64_t gate, mlir::Value i, mlir::Value mask) {
    return plus(loadInputSum(gate, i, mask), loadHiddenSum(gate, i, mask));
  }

  /// Computes the next state of units from their sums; for an LSTM also stores the cell state.
  mlir::Value nextUnits(mlir::Value i, mlir::Value mask);
  /// Stores reset * h of the units in row kResetH.
  void storeResetUnits(mlir::Value i, mlir::Value mask);
  /// Returns true if a GRU's candidate sums over reset * h, after the other gates.
  bool resetsFirst() { return isGru && !op.getLinearBeforeReset(); }

  mlir::Type vectorType() { return kb.lanesOf(type, lanes); }
  /// Calls |body| for vectors of hidden units; if threads share the sequence, for those of this thread's row.
  void overUnits(llvm::function_ref<void(mlir::Value i, mlir::Value mask)> body);
  int64_t hiddenRow(int64_t gate) { return kHiddenSums + gate; }
  mlir::Value rowAt(int64_t row, mlir::Value i);
  mlir::Value loadRow(int64_t row, mlir::Value i);
  void storeRow(mlir::Value value, int64_t row, mlir::Value i);
  mlir::Value loadOperand(Operand which, mlir::Value offset, mlir::Value mask);
  bool has(Operand which) const { return operands[which] >= 0; }
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, mlir::Value b);

  /// Load h and c of the sequence, and store them as the final states.
  void loadStates();
  void storeStates();
  /// Stores the units' state as the output of the step at |time|; the caller passes zeros for a step beyond the
  /// sequence's length.
  void storeOutput(mlir::Value value, mlir::Value time, mlir::Value i, mlir::Value mask);
  /// Returns the number of steps of the sequence.
  mlir::Value loadLength();
  /// Returns the time index of step number |step| of |length|.
  mlir::Value timeOf(mlir::Value step, mlir::Value length);

  KernelBuilder &kb;
  device::RecurrentOp op;
  mlir::Type element, type; ///< of results, in memory and in registers
  Dim steps, batch;
  int64_t inputs, hidden, directions, gates, rowSize = 0;
  bool isLstm, isGru;
  unsigned lanes;
  int operands[8];
  mlir::Value direction;
  mlir::Value sequence; ///< current sequence, or the first of several
  mlir::Value team;     ///< number of this row of threads among those that share the sequence; null: one thread per
                        ///< sequence
  mlir::Value rows;     ///< base address of the sequence's rows in scratch

private:
  void loadState(Operand which, int64_t row, mlir::Value state);
  mlir::Value stateOffset();
  mlir::Value unitsAt(mlir::Value base, mlir::Value i);
  void storeUnits(mlir::Value value, mlir::Value base, mlir::Value offset, mlir::Value i, mlir::Value mask);
  mlir::Value gruUnits(mlir::Value i, mlir::Value mask);
  mlir::Value lstmUnits(mlir::Value i, mlir::Value mask);
  mlir::Value activate(int64_t gate, unsigned function, mlir::Value sum);
  mlir::Value activation(unsigned function, mlir::Value x);
  mlir::Value apply(llvm::StringRef name, mlir::Value x);
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_RECURRENTCELL_H
