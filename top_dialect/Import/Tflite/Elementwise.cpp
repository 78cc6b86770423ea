//===- Elementwise.cpp - Handlers of elementwise operators ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace tessera::top::tflite_import {
namespace {

bool requireFloat(OperatorImporter &n, Value x) {
  if (!n.failed() && !n.isFloat(x)) {
    n.unsupported("operands of integers are not supported");
  }
  return !n.failed();
}

template <typename Op, typename Options>
void fusedBinary(OperatorImporter &n) {
  n.setOutput(0, n.activate(n.create<Op>(n.input(0), n.input(1)), n.options<Options>().fused_activation_function()));
}

template <typename Op>
void binary(OperatorImporter &n) {
  n.setOutput(0, n.create<Op>(n.input(0), n.input(1)));
}

template <typename Op>
void floatUnary(OperatorImporter &n) {
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.create<Op>(x));
  }
}

/// Handles operators that are defined for integers, too.
template <typename Op>
void unary(OperatorImporter &n) {
  n.setOutput(0, n.create<Op>(n.input(0)));
}

template <CompareKind kind>
void compare(OperatorImporter &n) {
  n.setOutput(0, n.create<CompareOp>(n.input(0), n.input(1), kind));
}

void square(OperatorImporter &n) {
  Value x = n.input(0);
  n.setOutput(0, n.create<MulOp>(x, x));
}

void squaredDifference(OperatorImporter &n) {
  Value difference = n.create<SubOp>(n.input(0), n.input(1));
  n.setOutput(0, n.create<MulOp>(difference, difference));
}

void floorDiv(OperatorImporter &n) {
  Value a = n.input(0);
  if (requireFloat(n, a)) {
    n.setOutput(0, n.create<FloorOp>(n.create<DivOp>(a, n.input(1))));
  }
}

void floorMod(OperatorImporter &n) {
  Value a = n.input(0);
  if (!n.failed() && n.isFloat(a)) {
    n.unsupported("operands of floats are not supported");
  }
  n.setOutput(0, n.create<ModOp>(a, n.input(1), false));
}

template <int low, int high>
void clamp(OperatorImporter &n) {
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.clip(x, low, high));
  }
}

void leakyRelu(OperatorImporter &n) {
  const auto &options = n.options<tflite::LeakyReluOptions>();
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.create<LeakyReluOp>(x, llvm::APFloat(options.alpha())));
  }
}

void prelu(OperatorImporter &n) {
  Value x = n.input(0), alpha = n.input(1);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.create<PReluOp>(x, alpha));
  }
}

void elu(OperatorImporter &n) {
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.create<EluOp>(x, llvm::APFloat(1.0f)));
  }
}

void gelu(OperatorImporter &n) {
  const auto &options = n.options<tflite::GeluOptions>();
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.create<GeluOp>(x, options.approximate()));
  }
}

template <bool log>
void softmax(OperatorImporter &n) {
  Value x = n.input(0);
  if (!requireFloat(n, x) || n.rank(x) == 0) {
    return n.fail("its operand is a scalar");
  }
  if constexpr (!log) {
    float beta = n.options<tflite::SoftmaxOptions>().beta();
    if (!(beta > 0)) {
      n.fail(llvm::formatv("beta is {0}; it must be positive", beta));
    }
    x = beta == 1 ? x : n.create<MulOp>(x, n.b.scalar(n.elementType(x), beta));
  }
  n.setOutput(0, n.create<SoftmaxOp>(x, n.rank(x) - 1, log));
}

/// Divides rows along the last dim by their L2 norm, or by 1e-6 if that is larger.
void l2Normalization(OperatorImporter &n) {
  Value x = n.input(0);
  if (!requireFloat(n, x) || n.rank(x) == 0) {
    return n.fail("its operand is a scalar");
  }
  Value sum = n.create<ReduceOp>(n.create<MulOp>(x, x), ReduceKind::sum, Ints{n.rank(x) - 1}, true);
  Value norm = n.clip(n.create<SqrtOp>(sum), 1e-6, std::numeric_limits<double>::infinity());
  n.setOutput(0, n.activate(n.create<DivOp>(x, norm), n.options<tflite::L2NormOptions>().fused_activation_function()));
}

/// SELECT with a condition of rank 1 selects rows, which broadcasting does not express.
template <bool broadcasts>
void select(OperatorImporter &n) {
  Value condition = n.input(0), a = n.input(1), c = n.input(2);
  if (!n.failed() && !broadcasts && (n.shape(condition) != n.shape(a) || n.shape(a) != n.shape(c))) {
    n.unsupported("operands of different shapes are not supported");
  }
  n.setOutput(0, n.create<WhereOp>(condition, a, c));
}

/// Converts f16 constants. Dequantisation of integers is not supported.
void dequantize(OperatorImporter &n) {
  Value x = n.input(0);
  if (requireFloat(n, x)) {
    n.setOutput(0, n.cast(x, n.b.f32()));
  }
}

void cast(OperatorImporter &n) {
  Value x = n.input(0);
  mlir::Type to = elementType(n.file.tensor(n.op.outputs()->Get(0)).type(), n.b.getBuilder().getContext());
  if (!n.failed() && n.isFloat(x) && llvm::isa<mlir::IntegerType>(to) && to.getIntOrFloatBitWidth() < 32 &&
      !to.isInteger(1)) {
    n.unsupported("a cast of floats to integers of 8 or 16 bits is not supported");
  }
  n.setOutput(0, n.cast(x, to));
}

} // namespace

llvm::ArrayRef<HandlerEntry> elementwiseHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::ADD, fusedBinary<AddOp, tflite::AddOptions>},
      {Code::SUB, fusedBinary<SubOp, tflite::SubOptions>},
      {Code::MUL, fusedBinary<MulOp, tflite::MulOptions>},
      {Code::DIV, fusedBinary<DivOp, tflite::DivOptions>},
      {Code::POW, binary<PowOp>},
      {Code::MAXIMUM, binary<MaxOp>},
      {Code::MINIMUM, binary<MinOp>},
      {Code::LOGICAL_AND, binary<AndOp>},
      {Code::LOGICAL_OR, binary<OrOp>},
      {Code::LOGICAL_NOT, unary<NotOp>},
      {Code::EQUAL, compare<CompareKind::eq>},
      {Code::NOT_EQUAL, compare<CompareKind::ne>},
      {Code::LESS, compare<CompareKind::lt>},
      {Code::LESS_EQUAL, compare<CompareKind::le>},
      {Code::GREATER, compare<CompareKind::gt>},
      {Code::GREATER_EQUAL, compare<CompareKind::ge>},
      {Code::SQUARED_DIFFERENCE, squaredDifference},
      {Code::FLOOR_DIV, floorDiv},
      {Code::FLOOR_MOD, floorMod},
      {Code::ABS, unary<AbsOp>},
      {Code::NEG, unary<NegOp>},
      {Code::SIGN, unary<SignOp>},
      {Code::SQUARE, square},
      {Code::EXP, floatUnary<ExpOp>},
      {Code::LOG, floatUnary<LogOp>},
      {Code::SQRT, floatUnary<SqrtOp>},
      {Code::RSQRT, floatUnary<RsqrtOp>},
      {Code::SIN, floatUnary<SinOp>},
      {Code::COS, floatUnary<CosOp>},
      {Code::FLOOR, floatUnary<FloorOp>},
      {Code::CEIL, floatUnary<CeilOp>},
      {Code::ROUND, floatUnary<RoundOp>},
      {Code::LOGISTIC, floatUnary<SigmoidOp>},
      {Code::TANH, floatUnary<TanhOp>},
      {Code::RELU, floatUnary<ReluOp>},
      {Code::RELU6, clamp<0, 6>},
      {Code::RELU_N1_TO_1, clamp<-1, 1>},
      {Code::RELU_0_TO_1, clamp<0, 1>},
      {Code::LEAKY_RELU, leakyRelu},
      {Code::PRELU, prelu},
      {Code::ELU, elu},
      {Code::HARD_SWISH, floatUnary<HardSwishOp>},
      {Code::GELU, gelu},
      {Code::SOFTMAX, softmax<false>},
      {Code::LOG_SOFTMAX, softmax<true>},
      {Code::L2_NORMALIZATION, l2Normalization},
      {Code::SELECT, select<false>},
      {Code::SELECT_V2, select<true>},
      {Code::DEQUANTIZE, dequantize},
      {Code::CAST, cast},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
