//===- RecurrentCell.h - What kernels of RNN, GRU and LSTM share -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_RECURRENTCELL_H
#define TESSERA_CODEGEN_KERNELS_RECURRENTCELL_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// A recurrent op's sizes, the rows of numbers that a sequence has in scratch, and what becomes of the sums of its
/// gates. How the sums are made is the kernel's.
class RecurrentCell {
protected:
  RecurrentCell(KernelBuilder &kb, device::RecurrentOp op);
  virtual ~RecurrentCell() = default;

  /// Operands of the op, by their places.
  enum Operand { kX, kR, kW, kBias, kLens, kInitialH, kInitialC, kPeephole };
  /// Rows in scratch, each of |rowSize|: h, c, reset * h, and the sums over the state of each gate.
  enum Row { kH, kC, kResetH, kHiddenSums };

  /// The sum of |gate| over the inputs of this step, and that over the state, biases included, of the units from |i|
  /// on.
  virtual mlir::Value loadInputSum(int64_t gate, mlir::Value i, mlir::Value mask) = 0;
  virtual mlir::Value loadHiddenSum(int64_t gate, mlir::Value i, mlir::Value) { return loadRow(hiddenRow(gate), i); }
  mlir::Value sumOf(int64_t gate, mlir::Value i, mlir::Value mask) {
    return plus(loadInputSum(gate, i, mask), loadHiddenSum(gate, i, mask));
  }

  /// The next state of units whose sums are there; of an LSTM the cell is stored, too.
  mlir::Value nextUnits(mlir::Value i, mlir::Value mask);
  /// reset * h into its row.
  void storeResetUnits(mlir::Value i, mlir::Value mask);
  /// Whether the candidate of a GRU sums over reset * h, after the other gates.
  bool resetsFirst() { return isGru && !op.getLinearBeforeReset(); }

  mlir::Type vectorType() { return kb.lanesOf(type, lanes); }
  /// Vectors of hidden units, those of this thread's row where threads share the sequence.
  void overUnits(llvm::function_ref<void(mlir::Value i, mlir::Value mask)> body);
  int64_t hiddenRow(int64_t gate) { return kHiddenSums + gate; }
  mlir::Value rowAt(int64_t row, mlir::Value i);
  mlir::Value loadRow(int64_t row, mlir::Value i);
  void storeRow(mlir::Value value, int64_t row, mlir::Value i);
  mlir::Value loadOperand(Operand which, mlir::Value offset, mlir::Value mask);
  bool has(Operand which) const { return operands[which] >= 0; }
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, mlir::Value b);

  /// Loads h and c of the sequence, stores them as the last ones.
  void loadStates();
  void storeStates();
  /// Stores the units' state as the output of the step at |time|; zeros of one that the sequence does not have.
  void storeOutput(mlir::Value value, mlir::Value time, mlir::Value i, mlir::Value mask);
  /// Steps of the sequence.
  mlir::Value loadLength();
  /// The step that is taken as number |step| of |length|.
  mlir::Value timeOf(mlir::Value step, mlir::Value length);

  KernelBuilder &kb;
  device::RecurrentOp op;
  mlir::Type element, type; ///< of results in memory, and in registers
  int64_t steps, batch, inputs, hidden, directions, gates, rowSize = 0;
  bool isLstm, isGru;
  unsigned lanes;
  int operands[8];
  mlir::Value direction;
  mlir::Value sequence; ///< at hand, or the first of some
  mlir::Value team;     ///< of the rows of threads that share the sequence; null: one thread has it
  mlir::Value rows;     ///< base of the sequence's rows in scratch

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
