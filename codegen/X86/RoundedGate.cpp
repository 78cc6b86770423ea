//===- RoundedGate.cpp - Byte-valued activations by polynomials -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/RoundedGate.h"

#include "codegen/X86/RoundedPower.h"
#include "device_dialect/IR/ScalarPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace tessera::x86 {
namespace {

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

double tailOfGelu(double t) { return -0.5 * t * std::erfc(t * std::numbers::sqrt2 / 2); }
double tailOfGeluTanh(double t) {
  double inner = std::sqrt(2 / std::numbers::pi) * (t + 0.044715 * t * t * t);
  return -t / (1 + std::exp(2 * inner));
}
double tailOfSilu(double t) { return -t / (1 + std::exp(t)); }

using Function = double (*)(double);

Function tailOf(GateKind kind) {
  return kind == GateKind::Gelu ? tailOfGelu : kind == GateKind::GeluTanh ? tailOfGeluTanh : tailOfSilu;
}

/// Adding this number leaves the nearest integer in the lowest bits.
constexpr float kShift = 0x1p23f;

/// Allowed errors of a table. Results within the error of the middle of two integers need the exact function; their
/// share is about twice the error. make() raises the degree until the error is at most kFew; beyond kMost, the exact
/// function would cost more than the table saves.
constexpr float kFew = 0x1p-10f, kMost = 0x1p-6f;

/// Bounds of two further errors: the last rounded operations here, and the step-by-step rounding of the exact function.
constexpr double kOfRounding = 0x1p-12, kOfFunction = 1e-6;

/// Returns the coefficients, the highest power first, of the polynomial of degree |degree| that interpolates |function|
/// at the Chebyshev nodes of [from, to].
std::vector<double> interpolate(Function function, double from, double to, int64_t degree) {
  int64_t count = degree + 1;
  std::vector<double> points, differences;
  for (int64_t i = 0; i < count; ++i) {
    double place = std::cos(std::numbers::pi * (double(i) + 0.5) / double(count));
    points.push_back((from + to) / 2 + (to - from) / 2 * place);
    differences.push_back(function(points.back()));
  }
  for (int64_t order = 1; order < count; ++order) {
    for (int64_t i = count - 1; i >= order; --i) {
      differences[i] = (differences[i] - differences[i - 1]) / (points[i] - points[i - order]);
    }
  }
  // Newton's form, from the innermost bracket outwards: p = p (t - point) + difference.
  std::vector<double> powers = {differences[degree]};
  for (int64_t i = degree - 1; i >= 0; --i) {
    powers.push_back(0);
    for (int64_t k = int64_t(powers.size()) - 1; k > 0; --k) {
      powers[k] -= powers[k - 1] * points[i];
    }
    powers.back() += differences[i];
  }
  return powers;
}

} // namespace

void GateTable::fit(Function function, int64_t degree) {
  coefficients.assign(degree + 1, {});
  for (int64_t piece = 0; piece < kPieces; ++piece) {
    double from = (double(piece) - 0.5) / piecesPerOne, to = (double(piece) + 0.5) / piecesPerOne;
    std::vector<double> powers = interpolate(function, from, to, degree);
    for (int64_t power = 0; power <= degree; ++power) {
      coefficients[power][piece] = float(powers[power] * factor);
    }
  }
}

float GateTable::tail(float t) const {
  float shifted = std::fma(t, piecesPerOne, kShift);
  auto piece = int64_t(shifted - kShift);
  float sum = coefficients.front()[piece];
  for (size_t power = 1; power < coefficients.size(); ++power) {
    sum = std::fma(sum, t, coefficients[power][piece]);
  }
  return sum;
}

float GateTable::value(float x) const {
  return std::fma(std::max(x, 0.0f), factor, tail(std::min(std::fabs(x), reach)));
}

/// Returns the largest error of the tail at many points; beyond |reach| the table continues with its value there.
double GateTable::worst(Function function) const {
  constexpr int64_t kPoints = 256 * kPieces;
  double found = std::fabs(tail(reach));
  for (int64_t i = 0; i <= kPoints; ++i) {
    auto t = float(reach * double(i) / kPoints);
    found = std::max(found, std::fabs(tail(t) - factor * function(t)));
  }
  return found;
}

std::optional<GateTable> GateTable::make(GateKind kind, float factor) {
  Function function = tailOf(kind);
  GateTable table;
  table.factor = factor;
  for (table.reach = 2; std::fabs(function(table.reach)) * factor > kFew / 4 && table.reach < 64;) {
    table.reach += 0.125f;
  }
  // The factor below 1 keeps rounding from selecting a piece behind the last one.
  table.piecesPerOne = (kPieces - 0.5f) / table.reach * (1 - 0x1p-20f);
  for (int64_t degree = 3; degree <= 5; ++degree) {
    table.fit(function, degree);
    table.error = float(1.25 * table.worst(function) + kOfFunction * factor + kOfRounding);
    if (table.error <= kFew) {
      break;
    }
  }
  bool isNear = std::isfinite(table.error) && table.error <= kMost;
  return factor > 0 && isNear ? std::optional(table) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Matching epilogues
//===----------------------------------------------------------------------===//

namespace {

std::optional<float> constantOf(Value value) {
  FloatAttr number;
  return matchPattern(value, m_Constant(&number)) && number.getType().isF32()
             ? std::optional(float(number.getValueAsDouble()))
             : std::nullopt;
}

bool isNumber(Value value, double number) { return constantOf(value) == float(number); }

/// If |value| is an Op with the constant |number| as one operand, returns the other operand, else null.
template <typename Op>
Value without(Value value, double number) {
  auto op = value.getDefiningOp<Op>();
  if (!op) {
    return {};
  }
  return isNumber(op.getLhs(), number) ? op.getRhs() : isNumber(op.getRhs(), number) ? op.getLhs() : Value();
}

/// Returns true if |value| is |x| + 0.044715 (x x x), with the factors in any order.
bool isCubic(Value value, Value x) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  Value cube = !sum ? Value() : sum.getLhs() == x ? sum.getRhs() : sum.getRhs() == x ? sum.getLhs() : Value();
  Value power = cube ? without<arith::MulFOp>(cube, 0.044715) : Value();
  auto outer = power ? power.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  Value square = !outer ? Value() : outer.getLhs() == x ? outer.getRhs() : outer.getLhs();
  auto inner = square ? square.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  return inner && (outer.getLhs() == x || outer.getRhs() == x) && inner.getLhs() == x && inner.getRhs() == x;
}

struct Gate {
  GateKind kind;
  Value x;
};

/// Matches 0.5 x (1 + curve(x)), given |half| = 0.5 x and |sum| = 1 + curve(x).
std::optional<Gate> matchGelu(Value half, Value sum) {
  Value x = without<arith::MulFOp>(half, 0.5), curve = without<arith::AddFOp>(sum, 1);
  if (!x || !curve) {
    return std::nullopt;
  }
  if (auto erf = curve.getDefiningOp<math::ErfOp>()) {
    bool fits = without<arith::MulFOp>(erf.getOperand(), std::numbers::sqrt2 / 2) == x;
    return fits ? std::optional(Gate{GateKind::Gelu, x}) : std::nullopt;
  }
  auto tanh = curve.getDefiningOp<math::TanhOp>();
  Value cubic = tanh ? without<arith::MulFOp>(tanh.getOperand(), std::sqrt(2 / std::numbers::pi)) : Value();
  return cubic && isCubic(cubic, x) ? std::optional(Gate{GateKind::GeluTanh, x}) : std::nullopt;
}

std::optional<Gate> matchGate(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  for (int side = 0; product && side < 2; ++side) {
    Value first = product->getOperand(side), second = product->getOperand(1 - side);
    if (device::matchSigmoid(second.getDefiningOp<arith::DivFOp>()) == first) {
      return Gate{GateKind::Silu, first};
    }
    if (std::optional<Gate> gelu = matchGelu(first, second)) {
      return gelu;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<RoundedGate> RoundedGate::match(Region &epilogue, const X86Target &target) {
  std::optional<Requantise> end;
  if (!epilogue.empty() && target.hasMasks()) {
    end = matchRequantise(epilogue.front().getTerminator()->getOperand(0));
  }
  auto divide = end && end->fitsBytes() ? end->value.getDefiningOp<arith::DivFOp>() : arith::DivFOp();
  std::optional<float> divisor = divide ? constantOf(divide.getRhs()) : std::nullopt;
  std::optional<Gate> gate = divisor ? matchGate(divide.getLhs()) : std::nullopt;
  if (!gate || !gate->x.getType().isF32() || mayBeNaN(gate->x)) {
    return std::nullopt;
  }
  std::optional<GateTable> table = GateTable::make(gate->kind, 1 / *divisor);
  return table ? std::optional(RoundedGate(*end, gate->x, *table)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

namespace {

VectorType vectorOf(Type element) { return VectorType::get({GateTable::kPieces}, element); }

Value larger(KernelBuilder &kb, Value x, Value y) {
  return arith::SelectOp::create(kb.b, arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OGT, x, y), x, y);
}

Value smaller(KernelBuilder &kb, Value x, Value y) {
  return arith::SelectOp::create(kb.b, arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OLT, x, y), x, y);
}

} // namespace

Value RoundedGate::emit(KernelBuilder &kb, Value x, Value &worst) const {
  Type type = x.getType();
  auto number = [&](double value) { return kb.floatConstant(type, value); };
  Value t = smaller(kb, math::AbsFOp::create(kb.b, x), number(table.reach));
  Value shifted = math::FmaOp::create(kb.b, t, number(table.piecesPerOne), number(kShift));
  Value piece = arith::BitcastOp::create(kb.b, vectorOf(kb.b.getI32Type()), shifted);
  Value sum;
  for (const auto &power : table.coefficients) {
    Value row = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(vectorOf(kb.b.getF32Type()), ArrayRef(power)));
    Value own = emitIntrinsic(kb, "llvm.x86.avx512.permvar.sf.512", type, {row, piece});
    sum = sum ? Value(math::FmaOp::create(kb.b, sum, t, own)) : own;
  }
  Value value = math::FmaOp::create(kb.b, larger(kb, x, number(0)), number(table.factor), sum);
  Value bounded = larger(kb, value, number(double(end.low - end.zero)));
  bounded = smaller(kb, bounded, number(double(end.high - end.zero)));
  worst = emitDistance(kb, bounded, worst);
  Value integer = emitIntrinsic(kb, "llvm.lrint", vectorOf(kb.b.getI32Type()), bounded);
  if (end.zero) {
    integer = arith::AddIOp::create(kb.b, integer, splatLike(kb, integer.getType(), end.zero));
  }
  return arith::TruncIOp::create(kb.b, vectorOf(end.type), integer);
}

} // namespace tessera::x86
