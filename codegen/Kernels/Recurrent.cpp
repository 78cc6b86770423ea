//===- Recurrent.cpp - Kernels of RNN, GRU and LSTM -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A tile is some sequences of one direction, which take their steps together, so that a weight serves all of them; or
// one, whose products of weights and inputs come first for some steps. Then step by step come those of weights and the
// state, and the activations in vectors over the hidden units. State and gates lie in scratch.
// Where threads share rows, a sequence has the threads of kBlockRows rows: units are dealt out to the rows, and
// barriers stand between what one row stores and others load.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/RowProducts.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

class RecurrentEmitter {
public:
  RecurrentEmitter(KernelBuilder &kb, device::RecurrentOp op)
      : kb(kb), op(op), element(kb.operandType(0).getElementType()) {
    type = registerType(element);
    ArrayRef<int64_t> shape = kb.operandType(0).getShape();
    steps = shape[0], batch = shape[1], inputs = shape[2], hidden = op.getHiddenSize();
    directions = op.getDirection() == "bidirectional" ? 2 : 1;
    isLstm = op.getKind() == "lstm", isGru = op.getKind() == "gru";
    gates = isLstm ? 4 : isGru ? 3 : 1;
    lanes = kb.target.lanes(type.getIntOrFloatBitWidth());
    for (unsigned i = 0; i < 8; ++i) {
      auto [first, length] = op.getODSOperandIndexAndLength(i);
      operands[i] = length ? int(first) : -1;
    }
  }

  void emit() {
    bool isShared = kb.target.shuffle && directions * batch > 0;
    lanes = isShared ? kRowThreads : lanes;
    // Rows of scratch, each of |hidden| rounded up to whole vectors. One vector a row of threads, so that all of them
    // go the same way.
    rowSize = llvm::alignTo(hidden, isShared ? kBlockRows * lanes : lanes);
    int64_t groups = isShared ? batch : chooseTogether();
    int64_t bytes = type.getIntOrFloatBitWidth() / 8;
    if (isShared) {
      return emitShared(llvm::divideCeil(sequenceNumbers(), kBlockRows * kRowThreads), bytes);
    }
    kb.setScratchBytes(sequences * sequenceNumbers() * bytes);
    kb.forTiles(directions * groups, [&](Value tile) {
      SmallVector<Value> at = delinearize(kb, tile, {directions, groups});
      direction = at[0], sequence = kb.mul(at[1], sequences), rows = kb.scratch();
      emitSequences();
    });
  }

private:
  enum Operand { kX, kW, kR, kBias, kLens, kInitialH, kInitialC, kPeephole };
  enum Row { kH, kC, kResetH, kHiddenSums };

  /// h, c, reset * h, the sums over the state, and those over the inputs of |together| steps.
  int64_t scratchRows() const { return kHiddenSums + (1 + together) * gates; }
  /// Of scratch, for a sequence.
  int64_t sequenceNumbers() const { return scratchRows() * rowSize; }

  /// How many sequences, or steps of one, are multiplied at once; returns the number of groups of sequences. Those of
  /// lengths of their own are apart. There are two tiles at least, for two threads.
  int64_t chooseTogether() {
    int64_t most = kb.target.hasMasks() ? 4 : 2;
    int64_t groups = operands[kLens] >= 0 ? batch : std::max<int64_t>(llvm::divideCeil(batch, most), 2 / directions);
    sequences = std::max<int64_t>(1, llvm::divideCeil(batch, std::max<int64_t>(groups, 1)));
    together = std::clamp<int64_t>(steps, 1, most / sequences);
    return llvm::divideCeil(batch, sequences);
  }

  /// |body| for each sequence of the tile. Where they do not come out even, the last tile has its last one twice.
  void overSequences(function_ref<void()> body) {
    if (sequences == 1) {
      return body();
    }
    Value base = rows, first = sequence;
    kb.forLoop(0, sequences, 1, [&](Value i) {
      sequence = kb.min(kb.add(first, i), kb.constant(batch - 1));
      rows = kb.element(type, base, kb.mul(i, sequenceNumbers()));
      body();
    });
    rows = base, sequence = first;
  }

  /// |numbers| of scratch for each thread, of |bytes| each.
  void emitShared(int64_t numbers, int64_t bytes) {
    kb.setScratchBytes(numbers * bytes);
    kb.forSharedRows(directions * batch * kBlockRows, [&](Value row) {
      SmallVector<Value> at = delinearize(kb, row, {directions, batch, kBlockRows});
      direction = at[0], sequence = at[1], team = at[2];
      Value thread = kb.add(kb.mul(team, kRowThreads), kb.sharedLane());
      rows = kb.element(type, kb.scratch(), kb.mul(thread, -numbers)); // the scratch of the block's first thread
      emitSequences();
    });
  }

  /// Where a vector of units of an operand begins; those of a team without units are the last one.
  Value unitsAt(Value base, Value i) { return kb.add(base, team ? kb.min(i, kb.constant(hidden - 1)) : i); }
  /// Stores units; threads without one store in the place that they have in scratch, without a branch.
  void storeUnits(Value value, Value base, Value offset, Value i, Value mask) {
    if (!team || !mask) {
      return kb.storeElements(element, value, base, kb.add(offset, i), mask);
    }
    Value target = kb.element(element, base, kb.add(kb.add(offset, i), kb.sharedLane()));
    Value spare = kb.element(type, rows, rowAt(kHiddenSums, i));
    kb.storeRun(element, value, LLVM::SelectOp::create(kb.b, mask, target, spare), kb.constant(0));
  }

  Type vectorType() { return kb.lanesOf(type, lanes); }
  Value rowAt(int64_t row, Value i) {
    Value at = kb.add(i, row * rowSize);
    return team ? kb.add(at, kb.sharedLane()) : at;
  }
  Value loadRow(int64_t row, Value i) { return kb.load(vectorType(), rows, rowAt(row, i)); }
  void storeRow(Value value, int64_t row, Value i) { kb.store(value, rows, rowAt(row, i)); }
  void barrier() {
    if (team) {
      kb.target.barrier(kb);
    }
  }
  /// Vectors of hidden units, those of this thread's row where threads share the sequence.
  void overUnits(function_ref<void(Value i, Value mask)> body) {
    if (!team) {
      return overRow(kb, hidden, lanes, body);
    }
    kb.forLoop(0, rowSize, kBlockRows * kRowThreads, [&](Value first) {
      Value i = kb.add(first, kb.mul(team, kRowThreads));
      body(i, rowSize > hidden ? kb.maskBelow(lanes, kb.sub(kb.constant(hidden), i)) : Value());
    });
  }
  int64_t inputRow(int64_t gate) { return kHiddenSums + gates + gate; }
  int64_t hiddenRow(int64_t gate) { return kHiddenSums + gate; }
  /// The sum over the inputs of this step.
  Value loadInputSum(int64_t gate, Value i) {
    Value at = rowAt(inputRow(gate), i);
    return kb.load(vectorType(), rows, stepOffset ? kb.add(at, stepOffset) : at);
  }
  Value loadOperand(Operand which, Value offset, Value mask) {
    return kb.loadElements(kb.operandType(operands[which]).getElementType(), lanes, kb.operand(operands[which]), offset,
                           mask);
  }
  Value plus(Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); }
  Value times(Value a, Value b) { return arith::MulFOp::create(kb.b, a, b); }

  /// The sequence's place in [directions, batch, hidden].
  Value stateOffset() { return kb.mul(kb.add(kb.mul(direction, batch), sequence), hidden); }

  void emitSequences() {
    overSequences([&] { initialise(); });
    Value length = kb.constant(steps);
    if (operands[kLens] >= 0) {
      Type lensType = kb.operandType(operands[kLens]).getElementType();
      length = kb.loadElements(lensType, 0, kb.operand(operands[kLens]), sequence);
      if (!length.getType().isInteger(64)) {
        length = arith::ExtSIOp::create(kb.b, kb.b.getI64Type(), length);
      }
      length = kb.max(kb.min(length, kb.constant(steps)), kb.constant(0));
    }
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
    kb.forLoop(length, kb.constant(steps), 1, [&](Value time) {
      overUnits(
          [&](Value i, Value mask) { storeUnits(kb.zero(vectorType()), kb.result(0), outputRow(time), i, mask); });
    });
    overSequences([&] {
      Value state = stateOffset();
      overUnits([&](Value i, Value mask) {
        storeUnits(loadRow(kH, i), kb.result(1), state, i, mask);
        storeUnits(loadRow(isLstm ? kC : kH, i), kb.result(2), state, i, mask);
      });
    });
  }

  void initialise() {
    for (int64_t row = 0; hidden % lanes && !team && row < scratchRows();
         ++row) { // lanes beyond |hidden| are read, too
      storeRow(kb.zero(vectorType()), row, kb.constant(rowSize - lanes));
    }
    for (int64_t row = 0; team && row < scratchRows(); ++row) {
      overUnits([&](Value i, Value) { storeRow(kb.zero(vectorType()), row, i); });
    }
    Value state = stateOffset();
    loadState(kInitialH, kH, state);
    loadState(kInitialC, kC, state);
  }

  Value timeOf(Value step, Value length) {
    Value backward = kb.sub(kb.sub(length, kb.constant(1)), step);
    if (directions == 2) {
      Value second = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, direction, kb.constant(1));
      return arith::SelectOp::create(kb.b, second, backward, step);
    }
    return op.getDirection() == "reverse" ? backward : step;
  }

  /// The sums over the inputs of |together| steps from |first| on; beyond the last step they are its own again.
  void inputSums(Value first, Value length) {
    SmallVector<Value> begins;
    for (int64_t i = 0; i < sequences * together; ++i) {
      Value step = kb.min(kb.add(first, i % together), kb.sub(length, kb.constant(1)));
      Value own = kb.min(kb.add(sequence, i / together), kb.constant(batch - 1));
      begins.push_back(kb.mul(kb.add(kb.mul(timeOf(step, length), batch), own), inputs));
    }
    tileSums(0, gates, kW, inputs, inputRow(0), together,
             [&](int64_t row, Value i, Value mask) { return loadOperand(kX, kb.add(begins[row], i), mask); });
  }

  /// The sums over the states of all sequences, or what they have in row |from|.
  void stateSums(int64_t gate, int64_t count, Row from) {
    tileSums(gate, count, kR, hidden, hiddenRow(gate), 1, [&](int64_t index, Value i, Value) {
      return kb.load(vectorType(), rows, kb.add(i, index * sequenceNumbers() + from * rowSize));
    });
  }

  /// The same sums as gateSums() where one thread has the sequences: of |vectors| vectors of each at once, the rows of
  /// one behind those of all gates of the one before.
  void tileSums(int64_t gate, int64_t count, Operand weights, int64_t depth, int64_t row, int64_t vectors,
                RowVectorFn vector) {
    int64_t left = sequences * vectors, units = rightRows(hidden, lanes, left == 1 ? 8 : 4);
    Value first = kb.mul(direction, gates * hidden);
    kb.forLoop(gate, gate + count, 1, [&](Value g) {
      Value own = kb.mul(g, hidden), target = kb.mul(kb.add(kb.sub(g, kb.constant(gate)), row), rowSize);
      kb.forLoop(0, hidden, units, [&](Value begin) {
        Value u = kb.min(begin, kb.constant(hidden - units)); // some of the last units may be computed twice
        Value base = kb.mul(kb.add(kb.add(first, own), u), depth);
        SmallVector<Value> sums =
            emitRowProducts(kb, type, {depth, lanes, left, units}, vector, [&](int64_t unit, Value i, Value mask) {
              return loadOperand(weights, kb.add(kb.add(base, unit * depth), i), mask);
            });
        for (auto [index, sum] : llvm::enumerate(sums)) {
          Value total = operands[kBias] >= 0 ? plus(sum, biasOf(weights, kb.add(own, u), units)) : sum;
          int64_t place = int64_t(index) / vectors * sequenceNumbers() + int64_t(index) % vectors * gates * rowSize;
          kb.store(total, rows, kb.add(kb.add(target, u), place));
        }
      });
    });
  }

  /// |count| biases from |unit| of all gates on; those of a direction are the input's, then the hidden ones.
  Value biasOf(Operand weights, Value unit, int64_t count) {
    Value offset = kb.add(kb.mul(direction, 2 * gates * hidden), weights == kR ? gates * hidden : 0);
    Type biasType = kb.operandType(operands[kBias]).getElementType();
    return kb.loadElements(biasType, count, kb.operand(operands[kBias]), kb.add(offset, unit));
  }

  void loadState(Operand which, int64_t row, Value state) {
    overUnits([&](Value i, Value mask) {
      storeRow(operands[which] >= 0 ? loadOperand(which, unitsAt(state, i), mask) : kb.zero(vectorType()), row, i);
    });
  }

  /// Offset in y [steps, directions, batch, hidden].
  Value outputRow(Value time) {
    return kb.mul(kb.add(kb.mul(kb.add(kb.mul(time, directions), direction), batch), sequence), hidden);
  }

  void emitStep(Value time) {
    Value x = kb.mul(kb.add(kb.mul(time, batch), sequence), inputs);
    bool resetsFirst = isGru && !op.getLinearBeforeReset();
    auto input = [&](Value i, Value mask) { return loadOperand(kX, kb.add(x, i), mask); };
    auto state = [&](Value i, Value) { return loadRow(kH, i); };
    if (team) {
      gateSums(0, gates, kW, inputs, inputRow(0), input);
      gateSums(0, resetsFirst ? 2 : gates, kR, hidden, hiddenRow(0), state);
      barrier();
    } else {
      stateSums(0, resetsFirst ? 2 : gates, kH);
    }
    if (resetsFirst) {
      overSequences([&] {
        overUnits([&](Value i, Value) { storeRow(times(activate(1, 0, sumOf(1, i)), loadRow(kH, i)), kResetH, i); });
      });
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
        Value next = isLstm ? lstmUnits(i, mask) : isGru ? gruUnits(i) : activate(0, 0, sumOf(0, i));
        storeRow(next, kH, i);
        storeUnits(next, kb.result(0), outputRow(time), i, mask);
      });
    });
    barrier();
  }

  Value sumOf(int64_t gate, Value i) { return plus(loadInputSum(gate, i), loadRow(hiddenRow(gate), i)); }

  /// row[u] = bias + sum over i of weights[direction][gate * hidden + u][i] * vector(i), for |count| gates from |gate|
  /// on, whose rows follow |row|; where threads share the sequence.
  void gateSums(int64_t gate, int64_t count, Operand weights, int64_t depth, int64_t row,
                function_ref<Value(Value, Value)> vector) {
    Value first = kb.add(kb.mul(direction, gates * hidden), gate * hidden);
    kb.forLoop(0, hidden, kBlockRows, [&](Value u) {
      u = kb.min(kb.add(u, team), kb.constant(hidden - 1)); // teams without a unit repeat the last one
      SmallVector<Value> bases, sums(count, kb.zero(vectorType()));
      for (int64_t g = 0; g < count; ++g) {
        bases.push_back(kb.mul(kb.add(kb.add(first, g * hidden), u), depth));
      }
      sums = overRow(kb, depth, lanes, sums, [&](Value i, Value mask, ValueRange old) {
        // The vector's lanes beyond |depth| are undefined in scratch: masked weights alone would keep their NaN.
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
      // Threads of a shared row store the same number: a branch would part them ahead of the next exchange.
      for (int64_t g = 0; g < count; ++g) {
        storeSum(sums[g], gate + g, weights, row + g, u);
      }
    });
  }

  void storeSum(Value total, int64_t gate, Operand weights, int64_t row, Value u) {
    if (operands[kBias] >= 0) {
      // bias [directions, 2 * gates * hidden]: input biases, then hidden ones.
      Value offset =
          kb.add(kb.mul(direction, 2 * gates * hidden), (weights == kR ? gates * hidden : 0) + gate * hidden);
      Type biasType = kb.operandType(operands[kBias]).getElementType();
      total = plus(total, kb.loadElements(biasType, 0, kb.operand(operands[kBias]), kb.add(offset, u)));
    }
    kb.store(total, rows, kb.add(u, row * rowSize));
  }

  Value gruUnits(Value i) {
    Value update = activate(0, 0, sumOf(0, i));
    Value recurrent = loadRow(hiddenRow(2), i);
    if (op.getLinearBeforeReset()) {
      recurrent = times(activate(1, 0, sumOf(1, i)), recurrent);
    }
    Value candidate = activate(2, 1, plus(loadInputSum(2, i), recurrent));
    Value one = kb.floatConstant(vectorType(), 1.0);
    return plus(times(arith::SubFOp::create(kb.b, one, update), candidate), times(update, loadRow(kH, i)));
  }

  Value lstmUnits(Value i, Value mask) {
    enum { kInput, kOutput, kForget, kCell };
    auto peep = [&](int64_t gate, Value sum, Value cell) {
      if (operands[kPeephole] < 0) {
        return sum;
      }
      Value offset = unitsAt(kb.add(kb.mul(direction, 3 * hidden), gate * hidden), i);
      return plus(sum, times(loadOperand(kPeephole, offset, mask), cell));
    };
    Value cell = loadRow(kC, i);
    Value input = activate(kInput, 0, peep(kInput, sumOf(kInput, i), cell));
    Value forget = activate(kForget, 0, peep(kForget, sumOf(kForget, i), cell));
    Value next = plus(times(forget, cell), times(input, activate(kCell, 1, sumOf(kCell, i))));
    storeRow(next, kC, i);
    Value output = activate(kOutput, 0, peep(kOutput, sumOf(kOutput, i), next));
    return times(output, activation(2, next));
  }

  /// Clips the sum of a gate and applies activation |function| of the direction.
  Value activate(int64_t gate, unsigned function, Value sum) {
    double clip = op.getClip().convertToDouble();
    if (clip > 0) {
      Value low = kb.floatConstant(vectorType(), -clip), high = kb.floatConstant(vectorType(), clip);
      sum = arith::MinimumFOp::create(kb.b, arith::MaximumFOp::create(kb.b, sum, low), high);
    }
    return activation(function, sum);
  }

  Value activation(unsigned function, Value x) {
    unsigned perDirection = isLstm ? 3 : isGru ? 2 : 1;
    auto nameOf = [&](unsigned d) {
      return cast<StringAttr>(op.getActivations()[d * perDirection + function]).getValue();
    };
    Value first = apply(nameOf(0), x);
    if (directions == 1 || nameOf(0) == nameOf(1)) {
      return first;
    }
    Value second = apply(nameOf(1), x);
    Value isFirst = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, direction, kb.constant(0));
    return arith::SelectOp::create(kb.b, isFirst, first, second);
  }

  Value apply(StringRef name, Value x) {
    ImplicitLocOpBuilder &b = kb.b;
    auto lit = [&](double value) { return kb.floatConstant(x.getType(), value); };
    auto positive = [&]() -> Value { return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, lit(0)); };
    auto select = [&](Value c, Value p, Value q) -> Value { return arith::SelectOp::create(b, c, p, q); };
    std::string lower = name.lower();
    if (lower == "sigmoid") {
      return emitSigmoid(kb, x);
    }
    if (lower == "tanh" || lower == "scaledtanh") {
      return emitTanh(kb, x);
    }
    if (lower == "relu") {
      return arith::MaximumFOp::create(b, x, lit(0));
    }
    if (lower == "leakyrelu") {
      return select(positive(), x, times(x, lit(0.01)));
    }
    if (lower == "thresholdedrelu") {
      return select(arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, lit(1)), x, lit(0));
    }
    if (lower == "elu") {
      return select(positive(), x, arith::SubFOp::create(b, emitExp(kb, x), lit(1)));
    }
    if (lower == "hardsigmoid") {
      Value line = emitFma(kb, x, lit(0.2), lit(0.5));
      return arith::MinimumFOp::create(b, arith::MaximumFOp::create(b, line, lit(0)), lit(1));
    }
    if (lower == "softsign") {
      return arith::DivFOp::create(b, x, plus(lit(1), math::AbsFOp::create(b, x)));
    }
    if (lower == "softplus") {
      Value magnitude = math::AbsFOp::create(b, x);
      Value tail = emitLog(kb, plus(lit(1), emitExp(kb, arith::NegFOp::create(b, magnitude))));
      return plus(tail, arith::MaximumFOp::create(b, x, lit(0)));
    }
    return x; // Affine with its defaults; the verifier admits no other name
  }

  KernelBuilder &kb;
  device::RecurrentOp op;
  Type element, type;
  int64_t steps, batch, inputs, hidden, directions, gates, rowSize = 0;
  int64_t together = 1;  ///< steps whose inputs are multiplied at once
  int64_t sequences = 1; ///< of a tile
  bool isLstm, isGru;
  unsigned lanes;
  int operands[8];
  Value direction;
  Value sequence;   ///< at hand, or the tile's first
  Value team;       ///< of the rows of threads that share the sequence; null: one thread has it
  Value rows;       ///< base of the rows in scratch
  Value stepOffset; ///< from the sums over the inputs of the first step of those taken together to this one's
};

struct RecurrentModel : KernelInterface::ExternalModel<RecurrentModel, device::RecurrentOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    RecurrentEmitter(kb, cast<device::RecurrentOp>(op)).emit();
    return success();
  }
};

} // namespace

void attachRecurrentModels(MLIRContext *context) { device::RecurrentOp::attachInterface<RecurrentModel>(*context); }

} // namespace tessera::kernels
