//===- Recurrent.cpp - Kernels of RNN, GRU and LSTM -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each tile computes some sequences of one direction, which advance together so that each weight serves all of them, or
// a single sequence, for which the contraction of weights and inputs is computed for several steps ahead. Each step
// then multiplies weights and state and applies the activations in vectors over the hidden units. State and gates lie
// in scratch.
//
// On targets whose threads share rows, a sequence has the threads of kBlockRows rows: the rows of threads divide the
// units among them, and barriers separate the stores of one row from the loads of others.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/RecurrentCell.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/RowContraction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

class RecurrentEmitter : RecurrentCell {
public:
  RecurrentEmitter(KernelBuilder &kb, device::RecurrentOp op) : RecurrentCell(kb, op) {}

  void emit() {
    bool isShared = kb.target.shuffle && !batch.is(0);
    lanes = isShared ? kRowThreads : lanes;
    // Each row of scratch holds |hidden| numbers, rounded up to whole vectors, or to one vector per row of threads, so
    // that all threads execute the same branches.
    rowSize = llvm::alignTo(hidden, isShared ? kBlockRows * lanes : lanes);
    Dim groups = isShared ? batch : chooseTogether();
    int64_t bytes = type.getIntOrFloatBitWidth() / 8;
    if (isShared) {
      return emitShared(llvm::divideCeil(sequenceNumbers(), kBlockRows * kRowThreads), bytes);
    }
    kb.setScratchBytes(sequences * sequenceNumbers() * bytes);
    kb.forTiles(directions * groups, [&](Value tile) {
      SmallVector<Value> at = delinearize(kb, tile, {Dim(directions), groups});
      direction = at[0], sequence = kb.mul(at[1], sequences), rows = kb.scratch();
      emitSequences();
    });
  }

private:
  /// Returns the number of scratch rows: h, c, reset * h, the sums over the state, and the sums over the inputs of
  /// |together| steps.
  int64_t scratchRows() const { return kHiddenSums + (1 + together) * gates; }
  /// Returns the number of scratch elements per sequence.
  int64_t sequenceNumbers() const { return scratchRows() * rowSize; }

  /// Chooses how many sequences, or steps of one sequence, are multiplied at once, for the likely number of sequences;
  /// returns the number of groups of sequences. Sequences with individual lengths are not grouped. There are at least
  /// two tiles, for two threads.
  Dim chooseTogether() {
    int64_t most = kb.target.hasMasks() ? 4 : 2, likely = likelyOf(batch);
    int64_t groups = has(kLens) ? likely : std::max<int64_t>(llvm::divideCeil(likely, most), 2 / directions);
    sequences = std::max<int64_t>(1, llvm::divideCeil(likely, std::max<int64_t>(groups, 1)));
    together = std::clamp<int64_t>(maxOf(steps), 1, most / sequences);
    return ceilDiv(batch, sequences);
  }

  /// Runs |body| for each sequence of the tile. If the sequences do not divide evenly, the last tile computes its last
  /// sequence twice.
  void overSequences(function_ref<void()> body) {
    if (sequences == 1) {
      return body();
    }
    Value base = rows, first = sequence;
    kb.forLoop(0, sequences, 1, [&](Value i) {
      sequence = kb.min(kb.add(first, i), kb.index(batch - 1));
      rows = kb.element(type, base, kb.mul(i, sequenceNumbers()));
      body();
    });
    rows = base, sequence = first;
  }

  /// Emits threads that share sequences, with |numbers| scratch elements of |bytes| bytes for each thread.
  void emitShared(int64_t numbers, int64_t bytes) {
    kb.setScratchBytes(numbers * bytes);
    kb.forSharedRows(batch * (directions * kBlockRows), [&](Value row) {
      SmallVector<Value> at = delinearize(kb, row, {Dim(directions), batch, Dim(kBlockRows)});
      direction = at[0], sequence = at[1], team = at[2];
      Value thread = kb.add(kb.mul(team, kRowThreads), kb.sharedLane());
      rows = kb.element(type, kb.scratch(), kb.mul(thread, -numbers)); // the scratch of the block's first thread
      emitSequences();
    });
  }

  void barrier() {
    if (team) {
      kb.target.barrier(kb);
    }
  }
  int64_t inputRow(int64_t gate) { return kHiddenSums + gates + gate; }
  Value loadInputSum(int64_t gate, Value i, Value) override {
    Value at = rowAt(inputRow(gate), i);
    return kb.load(vectorType(), rows, stepOffset ? kb.add(at, stepOffset) : at);
  }

  void emitSequences() {
    overSequences([&] { initialise(); });
    Value length = loadLength();
    barrier();
    if (team) {
      kb.forLoop(kb.constant(0), length, 1, [&](Value step) { emitStep(timeOf(step, length)); });
    } else {
      kb.forLoop(kb.constant(0), length, together, [&](Value first) {
        inputSums(first, length);
        kb.forLoop(first, kb.min(kb.add(first, together), length), 1, [&](Value step) {
          stepOffset = kb.mul(kb.sub(step, first), gates * rowSize);
          emitStep(timeOf(step, length));
        });
      });
    }
    kb.forLoop(length, kb.index(steps), 1, [&](Value time) {
      overUnits([&](Value i, Value mask) { storeOutput(kb.zero(vectorType()), time, i, mask); });
    });
    overSequences([&] { storeStates(); });
  }

  void initialise() {
    for (int64_t row = 0; hidden % lanes && !team && row < scratchRows(); ++row) { // lanes beyond |hidden| are read too
      storeRow(kb.zero(vectorType()), row, kb.constant(rowSize - lanes));
    }
    for (int64_t row = 0; team && row < scratchRows(); ++row) {
      overUnits([&](Value i, Value) { storeRow(kb.zero(vectorType()), row, i); });
    }
    loadStates();
  }

  /// Computes the sums over the inputs of |together| steps from |first| on; steps beyond the last repeat the last.
  void inputSums(Value first, Value length) {
    SmallVector<Value> begins;
    for (int64_t i = 0; i < sequences * together; ++i) {
      Value step = kb.min(kb.add(first, i % together), kb.sub(length, kb.constant(1)));
      Value own = kb.min(kb.add(sequence, i / together), kb.index(batch - 1));
      begins.push_back(kb.mul(kb.add(kb.mul(timeOf(step, length), batch), own), inputs));
    }
    tileSums(0, gates, kW, inputs, inputRow(0), together,
             [&](int64_t row, Value i, Value mask) { return loadOperand(kX, kb.add(begins[row], i), mask); });
  }

  /// Computes the sums over the states, or over row |from| of each sequence, for all sequences.
  void stateSums(int64_t gate, int64_t count, Row from) {
    tileSums(gate, count, kR, hidden, hiddenRow(gate), 1, [&](int64_t index, Value i, Value) {
      return kb.load(vectorType(), rows, kb.add(i, index * sequenceNumbers() + from * rowSize));
    });
  }

  /// Computes the sums of gateSums() for the sequences of one thread, |vectors| vectors of each sequence at once. The
  /// results of each further vector follow the rows of all gates of the previous vector.
  void tileSums(int64_t gate, int64_t count, Operand weights, int64_t depth, int64_t row, int64_t vectors,
                RowVectorFn vector) {
    int64_t left = sequences * vectors, units = rightRows(hidden, lanes, left == 1 ? 8 : 4);
    Value first = kb.mul(direction, gates * hidden);
    kb.forLoop(gate, gate + count, 1, [&](Value g) {
      Value own = kb.mul(g, hidden), target = kb.mul(kb.add(kb.sub(g, kb.constant(gate)), row), rowSize);
      kb.forLoop(0, hidden, units, [&](Value begin) {
        Value u = kb.min(begin, kb.constant(hidden - units)); // may compute some of the last units twice
        Value base = kb.mul(kb.add(kb.add(first, own), u), depth);
        SmallVector<Value> sums =
            emitRowContraction(kb, type, {depth, lanes, left, units}, vector, [&](int64_t unit, Value i, Value mask) {
              return loadOperand(weights, kb.add(kb.add(base, unit * depth), i), mask);
            });
        for (auto [index, sum] : llvm::enumerate(sums)) {
          Value total = has(kBias) ? plus(sum, biasOf(weights, kb.add(own, u), units)) : sum;
          int64_t place = int64_t(index) / vectors * sequenceNumbers() + int64_t(index) % vectors * gates * rowSize;
          kb.store(total, rows, kb.add(kb.add(target, u), place));
        }
      });
    });
  }

  /// Returns |count| biases from |unit| on, counted over all gates; a direction's input biases precede its hidden
  /// biases.
  Value biasOf(Operand weights, Value unit, int64_t count) {
    Value offset = kb.add(kb.mul(direction, 2 * gates * hidden), weights == kR ? gates * hidden : 0);
    Type biasType = kb.operandType(operands[kBias]).getElementType();
    return kb.loadElements(biasType, count, kb.operand(operands[kBias]), kb.add(offset, unit));
  }

  void emitStep(Value time) {
    Value x = kb.mul(kb.add(kb.mul(time, batch), sequence), inputs);
    auto input = [&](Value i, Value mask) { return loadOperand(kX, kb.add(x, i), mask); };
    auto state = [&](Value i, Value) { return loadRow(kH, i); };
    if (team) {
      gateSums(0, gates, kW, inputs, inputRow(0), input);
      gateSums(0, resetsFirst() ? 2 : gates, kR, hidden, hiddenRow(0), state);
      barrier();
    } else {
      stateSums(0, resetsFirst() ? 2 : gates, kH);
    }
    if (resetsFirst()) {
      overSequences([&] { overUnits([&](Value i, Value mask) { storeResetUnits(i, mask); }); });
      barrier();
      if (team) {
        gateSums(2, 1, kR, hidden, hiddenRow(2), [&](Value i, Value) { return loadRow(kResetH, i); });
      } else {
        stateSums(2, 1, kResetH);
      }
      barrier();
    }
    overSequences([&] {
      overUnits([&](Value i, Value mask) {
        Value next = nextUnits(i, mask);
        storeRow(next, kH, i);
        storeOutput(next, time, i, mask);
      });
    });
    barrier();
  }

  /// Computes row[u] = bias + sum over i of weights[direction][gate * hidden + u][i] * vector(i) for |count| gates from
  /// |gate| on, whose rows begin at |row|, with the threads that share the sequence.
  void gateSums(int64_t gate, int64_t count, Operand weights, int64_t depth, int64_t row,
                function_ref<Value(Value, Value)> vector) {
    Value first = kb.add(kb.mul(direction, gates * hidden), gate * hidden);
    kb.forLoop(0, hidden, kBlockRows, [&](Value u) {
      u = kb.min(kb.add(u, team), kb.constant(hidden - 1)); // teams without a unit repeat the last unit
      SmallVector<Value> bases, sums(count, kb.zero(vectorType()));
      for (int64_t g = 0; g < count; ++g) {
        bases.push_back(kb.mul(kb.add(kb.add(first, g * hidden), u), depth));
      }
      sums = overRow(kb, depth, lanes, sums, [&](Value i, Value mask, ValueRange old) {
        // Lanes beyond |depth| are undefined in scratch and may hold NaN, which masking the weights alone would not
        // remove.
        Value values = keepActive(kb, mask, vector(i, mask), kb.zero(vectorType()));
        SmallVector<Value> next;
        for (int64_t g = 0; g < count; ++g) {
          next.push_back(emitMultiplyAdd(kb, loadOperand(weights, kb.add(bases[g], i), mask), values, old[g]));
        }
        return next;
      });
      for (Value &sum : sums) {
        sum = reduceLanes(kb, sum, [&](Value a, Value b) { return plus(a, b); });
      }
      // All threads of a shared row store the same number: a branch would separate them before the next exchange.
      for (int64_t g = 0; g < count; ++g) {
        storeSum(sums[g], gate + g, weights, row + g, u);
      }
    });
  }

  void storeSum(Value total, int64_t gate, Operand weights, int64_t row, Value u) {
    if (has(kBias)) {
      // bias [directions, 2 * gates * hidden]: input biases, then hidden ones.
      Value offset =
          kb.add(kb.mul(direction, 2 * gates * hidden), (weights == kR ? gates * hidden : 0) + gate * hidden);
      Type biasType = kb.operandType(operands[kBias]).getElementType();
      total = plus(total, kb.loadElements(biasType, 0, kb.operand(operands[kBias]), kb.add(offset, u)));
    }
    kb.store(total, rows, kb.add(u, row * rowSize));
  }

  int64_t together = 1;  ///< steps whose inputs are multiplied at once
  int64_t sequences = 1; ///< per tile
  Value stepOffset;      ///< offset of the current step's input sums from those of the first step computed together
                         ///< with it
};

struct RecurrentModel : KernelInterface::ExternalModel<RecurrentModel, device::RecurrentOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto recurrent = cast<device::RecurrentOp>(op);
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    if (!recurrent.getW()) {
      return op->emitOpError("does not have input weights, which the loop kernel needs");
    }
    RecurrentEmitter(kb, recurrent).emit();
    return success();
  }

  /// Steps and sequences may be open. Packed weights are constants, whose sizes are numbers.
  bool acceptsOpenSizes(Operation *op) const {
    auto recurrent = cast<device::RecurrentOp>(op);
    Shape x = op->getOperand(0);
    auto isKnown = [](Value tensor) { return !tensor || Shape(tensor).isKnown(); };
    return (recurrent.getW() || recurrent.getPacking()) && x.back().isKnown() && isKnown(recurrent.getW()) &&
           isKnown(recurrent.getR()) && isKnown(recurrent.getBias()) && isKnown(recurrent.getPeephole());
  }
};

} // namespace

void attachRecurrentModels(MLIRContext *context) { device::RecurrentOp::attachInterface<RecurrentModel>(*context); }

} // namespace tessera::kernels
