//===- RecurrentCell.cpp - Cell of RNN, GRU and LSTM kernels --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/RecurrentCell.h"

#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::kernels {

RecurrentCell::RecurrentCell(KernelBuilder &kb, device::RecurrentOp op)
    : kb(kb), op(op), element(cast<RankedTensorType>(op.getY().getType()).getElementType()),
      steps(Shape(kb.operandType(0))[0]), batch(Shape(kb.operandType(0))[1]),
      inputs(Shape(kb.operandType(0))[2].value()), hidden(op.getHiddenSize()) {
  type = registerType(element);
  directions = op.getNumDirections(), gates = op.getNumGates();
  isLstm = op.getKind() == "lstm", isGru = op.getKind() == "gru";
  lanes = kb.target.lanes(type.getIntOrFloatBitWidth());
  for (unsigned i = 0; i < std::size(operands); ++i) {
    auto [first, length] = op.getODSOperandIndexAndLength(i);
    operands[i] = length ? int(first) : -1;
  }
}

Value RecurrentCell::plus(Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); }
Value RecurrentCell::times(Value a, Value b) { return arith::MulFOp::create(kb.b, a, b); }

//===----------------------------------------------------------------------===//
// Rows and operands
//===----------------------------------------------------------------------===//

Value RecurrentCell::rowAt(int64_t row, Value i) {
  Value at = kb.add(i, row * rowSize);
  return team ? kb.add(at, kb.sharedLane()) : at;
}
Value RecurrentCell::loadRow(int64_t row, Value i) { return kb.load(vectorType(), rows, rowAt(row, i)); }
void RecurrentCell::storeRow(Value value, int64_t row, Value i) { kb.store(value, rows, rowAt(row, i)); }

void RecurrentCell::overUnits(function_ref<void(Value i, Value mask)> body) {
  if (!team) {
    return overRow(kb, hidden, lanes, body);
  }
  kb.forLoop(0, rowSize, kBlockRows * kRowThreads, [&](Value first) {
    Value i = kb.add(first, kb.mul(team, kRowThreads));
    body(i, rowSize > hidden ? kb.maskBelow(lanes, kb.sub(kb.constant(hidden), i)) : Value());
  });
}

Value RecurrentCell::loadOperand(Operand which, Value offset, Value mask) {
  return kb.loadElements(kb.operandType(operands[which]).getElementType(), lanes, kb.operand(operands[which]), offset,
                         mask);
}

/// Returns the offset of a vector of units of an operand; a team without units reads the last unit.
Value RecurrentCell::unitsAt(Value base, Value i) {
  return kb.add(base, team ? kb.min(i, kb.constant(hidden - 1)) : i);
}

/// Stores units; threads without a unit store to their spare slot in scratch, without a branch.
void RecurrentCell::storeUnits(Value value, Value base, Value offset, Value i, Value mask) {
  if (!team || !mask) {
    return kb.storeElements(element, value, base, kb.add(offset, i), mask);
  }
  Value target = kb.element(element, base, kb.add(kb.add(offset, i), kb.sharedLane()));
  Value spare = kb.element(type, rows, rowAt(kHiddenSums, i));
  kb.storeRun(element, value, LLVM::SelectOp::create(kb.b, mask, target, spare), kb.constant(0));
}

/// Returns the sequence's offset in [directions, batch, hidden].
Value RecurrentCell::stateOffset() { return kb.mul(kb.add(kb.mul(direction, batch), sequence), hidden); }

void RecurrentCell::loadState(Operand which, int64_t row, Value state) {
  overUnits([&](Value i, Value mask) {
    storeRow(has(which) ? loadOperand(which, unitsAt(state, i), mask) : kb.zero(vectorType()), row, i);
  });
}

void RecurrentCell::loadStates() {
  Value state = stateOffset();
  loadState(kInitialH, kH, state);
  loadState(kInitialC, kC, state);
}

void RecurrentCell::storeStates() {
  Value state = stateOffset();
  overUnits([&](Value i, Value mask) {
    storeUnits(loadRow(kH, i), kb.result(1), state, i, mask);
    storeUnits(loadRow(isLstm ? kC : kH, i), kb.result(2), state, i, mask);
  });
}

void RecurrentCell::storeOutput(Value value, Value time, Value i, Value mask) {
  // y is [steps, directions, batch, hidden].
  Value row = kb.add(kb.mul(kb.add(kb.mul(time, directions), direction), batch), sequence);
  storeUnits(value, kb.result(0), kb.mul(row, hidden), i, mask);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Value RecurrentCell::loadLength() {
  if (!has(kLens)) {
    return kb.index(steps);
  }
  Type lensType = kb.operandType(operands[kLens]).getElementType();
  Value length = kb.loadElements(lensType, 0, kb.operand(operands[kLens]), sequence);
  if (!length.getType().isInteger(64)) {
    length = arith::ExtSIOp::create(kb.b, kb.b.getI64Type(), length);
  }
  return kb.max(kb.min(length, kb.index(steps)), kb.constant(0));
}

Value RecurrentCell::timeOf(Value step, Value length) {
  Value backward = kb.sub(kb.sub(length, kb.constant(1)), step);
  if (directions == 2) {
    Value second = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, direction, kb.constant(1));
    return arith::SelectOp::create(kb.b, second, backward, step);
  }
  return op.getDirection() == "reverse" ? backward : step;
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

Value RecurrentCell::nextUnits(Value i, Value mask) {
  return isLstm ? lstmUnits(i, mask) : isGru ? gruUnits(i, mask) : activate(0, 0, sumOf(0, i, mask));
}

void RecurrentCell::storeResetUnits(Value i, Value mask) {
  storeRow(times(activate(1, 0, sumOf(1, i, mask)), loadRow(kH, i)), kResetH, i);
}

Value RecurrentCell::gruUnits(Value i, Value mask) {
  Value update = activate(0, 0, sumOf(0, i, mask));
  Value recurrent = loadHiddenSum(2, i, mask);
  if (op.getLinearBeforeReset()) {
    recurrent = times(activate(1, 0, sumOf(1, i, mask)), recurrent);
  }
  Value candidate = activate(2, 1, plus(loadInputSum(2, i, mask), recurrent));
  Value one = kb.floatConstant(vectorType(), 1.0);
  return plus(times(arith::SubFOp::create(kb.b, one, update), candidate), times(update, loadRow(kH, i)));
}

Value RecurrentCell::lstmUnits(Value i, Value mask) {
  enum { kInput, kOutput, kForget, kCell };
  auto peep = [&](int64_t gate, Value sum, Value cell) {
    if (!has(kPeephole)) {
      return sum;
    }
    Value offset = unitsAt(kb.add(kb.mul(direction, 3 * hidden), gate * hidden), i);
    return plus(sum, times(loadOperand(kPeephole, offset, mask), cell));
  };
  Value cell = loadRow(kC, i);
  Value input = activate(kInput, 0, peep(kInput, sumOf(kInput, i, mask), cell));
  Value forget = activate(kForget, 0, peep(kForget, sumOf(kForget, i, mask), cell));
  Value next = plus(times(forget, cell), times(input, activate(kCell, 1, sumOf(kCell, i, mask))));
  storeRow(next, kC, i);
  Value output = activate(kOutput, 0, peep(kOutput, sumOf(kOutput, i, mask), next));
  return times(output, activation(2, next));
}

/// Clips the sum of a gate and applies activation number |function| of the direction.
Value RecurrentCell::activate(int64_t gate, unsigned function, Value sum) {
  double clip = op.getClip().convertToDouble();
  if (clip > 0) {
    Value low = kb.floatConstant(vectorType(), -clip), high = kb.floatConstant(vectorType(), clip);
    sum = arith::MinimumFOp::create(kb.b, arith::MaximumFOp::create(kb.b, sum, low), high);
  }
  return activation(function, sum);
}

Value RecurrentCell::activation(unsigned function, Value x) {
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

Value RecurrentCell::apply(StringRef name, Value x) {
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
  return x; // Affine with its defaults; the verifier rejects other names
}

} // namespace tessera::kernels
