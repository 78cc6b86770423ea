//===- ScalarOps.cpp - Semantics of the ops of scalar regions -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Reference/ScalarOps.h"
#include "bmodel/numerics_float.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/Reference/SmallFloat.h"
#include "top_dialect/Reference/Support.h"
#include "llvm/ADT/StringMap.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::device::reference {

double Rounding::toOther(double value) const {
  switch (to) {
  case f16:
    return static_cast<double>(top::reference::Float16(value));
  case bf16:
    return static_cast<double>(top::reference::BFloat16(value));
  default:
    return value;
  }
}

namespace {

/// Returns the bits of an integer of `width` bits as an unsigned number.
uint64_t asUnsigned(int64_t value, unsigned width) {
  return width >= 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

using Float1 = double (*)(double);
using Float2 = double (*)(double, double);
using Int2 = int64_t (*)(int64_t, int64_t, unsigned width);

const llvm::StringMap<Float1> &floatUnary() {
  static const llvm::StringMap<Float1> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.roundeven", [](double x) { return std::nearbyint(x); }},
      {"math.round", [](double x) { return std::round(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.cbrt", [](double x) { return std::cbrt(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.cosh", [](double x) { return std::cosh(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.asinh", [](double x) { return std::asinh(x); }},
      {"math.acosh", [](double x) { return std::acosh(x); }},
      {"math.atanh", [](double x) { return std::atanh(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.erfc", [](double x) { return std::erfc(x); }},
  };
  return table;
}

namespace numerics = bmodel::numerics;
using numerics::Single;
using Single1 = Single (*)(Single);

/// Functions that are specified in single precision, for types of at most 32 bits.
const llvm::StringMap<Single1> &singleUnary() {
  static const llvm::StringMap<Single1> table = {
      {"math.exp", numerics::exp<Single>},
      {"math.log", numerics::log<Single>},
      {"math.log1p", numerics::log1p<Single>},
      {"math.tanh", numerics::tanh<Single>},
      {"math.erf", numerics::erf<Single>},
      {"math.erfc", [](Single x) { return Single{1.0f} - numerics::erf(x); }},
      {"math.rsqrt", [](Single x) { return Single{1.0f} / Single{std::sqrt(x.v)}; }},
  };
  return table;
}

/// Returns true for a power with the constant exponent 3, which is computed as two multiplications.
bool isCube(Operation *op) {
  auto constant = op->getNumOperands() == 2 ? op->getOperand(1).getDefiningOp<arith::ConstantOp>() : nullptr;
  auto exponent = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  return op->getName().getStringRef() == "math.powf" && exponent && exponent.getValueAsDouble() == 3.0;
}

const llvm::StringMap<Float2> &floatBinary() {
  static const llvm::StringMap<Float2> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.remf", [](double a, double b) { return std::fmod(a, b); }},
      {"arith.maximumf", top::reference::largerOf<double>},
      {"arith.minimumf", top::reference::smallerOf<double>},
      {"arith.maxnumf", [](double a, double b) { return std::fmax(a, b); }},
      {"arith.minnumf", [](double a, double b) { return std::fmin(a, b); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
      {"math.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"math.copysign", [](double a, double b) { return std::copysign(a, b); }},
  };
  return table;
}

/// Returns false for quotients without a value (division by zero or overflow), which become 0.
bool divides(int64_t a, int64_t b, unsigned width) {
  return b != 0 && !(b == -1 && a == std::numeric_limits<int64_t>::min());
}

int64_t shiftLeft(int64_t a, int64_t b, unsigned width) {
  uint64_t by = asUnsigned(b, width);
  return by >= width ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}

int64_t integerPower(int64_t base, int64_t exponent, unsigned) {
  if (exponent < 0) {
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1;
  for (auto factor = static_cast<uint64_t>(base); exponent; exponent >>= 1, factor *= factor) {
    result *= exponent & 1 ? factor : 1;
  }
  return static_cast<int64_t>(result);
}

const llvm::StringMap<Int2> &intBinary() {
  static const llvm::StringMap<Int2> table = {
      {"arith.addi", [](int64_t a, int64_t b, unsigned) { return int64_t(uint64_t(a) + uint64_t(b)); }},
      {"arith.subi", [](int64_t a, int64_t b, unsigned) { return int64_t(uint64_t(a) - uint64_t(b)); }},
      {"arith.muli", [](int64_t a, int64_t b, unsigned) { return int64_t(uint64_t(a) * uint64_t(b)); }},
      {"arith.divsi", [](int64_t a, int64_t b, unsigned w) { return divides(a, b, w) ? a / b : 0; }},
      {"arith.remsi", [](int64_t a, int64_t b, unsigned w) { return divides(a, b, w) ? a % b : 0; }},
      {"arith.divui", [](int64_t a, int64_t b,
                         unsigned w) { return b ? static_cast<int64_t>(asUnsigned(a, w) / asUnsigned(b, w)) : 0; }},
      {"arith.remui", [](int64_t a, int64_t b,
                         unsigned w) { return b ? static_cast<int64_t>(asUnsigned(a, w) % asUnsigned(b, w)) : 0; }},
      {"arith.floordivsi",
       [](int64_t a, int64_t b, unsigned w) {
         return divides(a, b, w) ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
       }},
      {"arith.ceildivsi", [](int64_t a, int64_t b,
                             unsigned w) { return divides(a, b, w) ? a / b + (a % b != 0 && (a < 0) == (b < 0)) : 0; }},
      {"arith.andi", [](int64_t a, int64_t b, unsigned) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b, unsigned) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b, unsigned) { return a ^ b; }},
      {"arith.maxsi", [](int64_t a, int64_t b, unsigned) { return std::max(a, b); }},
      {"arith.minsi", [](int64_t a, int64_t b, unsigned) { return std::min(a, b); }},
      {"arith.maxui", [](int64_t a, int64_t b, unsigned w) { return asUnsigned(a, w) > asUnsigned(b, w) ? a : b; }},
      {"arith.minui", [](int64_t a, int64_t b, unsigned w) { return asUnsigned(a, w) < asUnsigned(b, w) ? a : b; }},
      {"arith.shli", shiftLeft},
      {"arith.shrui",
       [](int64_t a, int64_t b, unsigned w) {
         uint64_t by = asUnsigned(b, w);
         return by >= w ? 0 : static_cast<int64_t>(asUnsigned(a, w) >> by);
       }},
      {"arith.shrsi",
       [](int64_t a, int64_t b, unsigned w) {
         uint64_t by = asUnsigned(b, w);
         return a >> std::min<uint64_t>(by, 63);
       }},
      {"math.ipowi", integerPower},
  };
  return table;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = a != a || b != b;
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return !unordered && a == b;
  case P::UEQ:
    return unordered || a == b;
  case P::ONE:
    return !unordered && a != b;
  case P::UNE:
    return unordered || a != b;
  case P::OLT:
    return !unordered && a < b;
  case P::ULT:
    return unordered || a < b;
  case P::OLE:
    return !unordered && a <= b;
  case P::ULE:
    return unordered || a <= b;
  case P::OGT:
    return !unordered && a > b;
  case P::UGT:
    return unordered || a > b;
  case P::OGE:
    return !unordered && a >= b;
  case P::UGE:
    return unordered || a >= b;
  }
  return false;
}

bool compareInts(arith::CmpIPredicate predicate, int64_t a, int64_t b, unsigned width) {
  using P = arith::CmpIPredicate;
  uint64_t ua = asUnsigned(a, width), ub = asUnsigned(b, width);
  // An i1 is stored as 0 or 1; as a signed number it is 0 or -1.
  int64_t sa = width == 1 ? -a : a, sb = width == 1 ? -b : b;
  switch (predicate) {
  case P::eq:
    return ua == ub;
  case P::ne:
    return ua != ub;
  case P::slt:
    return sa < sb;
  case P::sle:
    return sa <= sb;
  case P::sgt:
    return sa > sb;
  case P::sge:
    return sa >= sb;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Truncates a number to an integer of `width` bits. NaN and numbers out of range become the smallest integer, as on
/// common processors.
int64_t toSigned(double value, unsigned width = 64) {
  const double limit = std::ldexp(1, static_cast<int>(width) - 1), whole = std::trunc(value);
  return whole >= -limit && whole < limit ? static_cast<int64_t>(whole) : static_cast<int64_t>(-limit);
}

int64_t toUnsigned(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0, kTwoTo64 = 2 * kTwoTo63;
  return value >= kTwoTo63 && value < kTwoTo64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : toSigned(value);
}

uint64_t bitsOf(Type type, double value) {
  if (type.isF32()) {
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
  if (type.isF16()) {
    return top::reference::Float16(value).bits;
  }
  if (type.isBF16()) {
    return top::reference::BFloat16(value).bits;
  }
  return std::bit_cast<uint64_t>(value);
}

double fromBits(Type type, uint64_t bits) {
  APInt value(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/false, /*implicitTrunc=*/true);
  APFloat number(cast<FloatType>(type).getFloatSemantics(), value);
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// Returns a function that applies `element`, which writes column `f` or `i` of the result, to every element.
template <typename Element>
ColumnFunction perElement(Element element) {
  return [element](ArrayRef<const Column *> operands, Column &result, size_t size) {
    for (size_t k = 0; k < size; ++k) {
      element(operands, result, k);
    }
  };
}

ColumnFunction getCast(Operation *op) {
  Type from = op->getNumOperands() ? op->getOperand(0).getType() : Type(), to = op->getResult(0).getType();
  Rounding rounded(to);
  Wrapping wrapped(to);
  bool fromBool = from && from.isInteger(1);
  unsigned fromWidth = from && from.isIntOrFloat() ? from.getIntOrFloatBitWidth() : 64;
  unsigned toWidth = to.isIntOrFloat() ? to.getIntOrFloatBitWidth() : 64;
  bool toDouble = to.isF64(); // for f16 and bf16, integers are rounded to f32 first
  using Cast = std::function<void(ArrayRef<const Column *>, Column &, size_t)>;
  const std::pair<StringRef, Cast> casts[] = {
      {"arith.extf", [=](auto in, Column &out, size_t k) { out.f[k] = in[0]->f[k]; }},
      {"arith.truncf", [=](auto in, Column &out, size_t k) { out.f[k] = rounded(in[0]->f[k]); }},
      {"arith.sitofp",
       [=](auto in, Column &out, size_t k) {
         int64_t value = fromBool ? -in[0]->i[k] : in[0]->i[k];
         out.f[k] = toDouble ? static_cast<double>(value) : rounded(static_cast<float>(value));
       }},
      {"arith.uitofp",
       [=](auto in, Column &out, size_t k) {
         uint64_t value = asUnsigned(in[0]->i[k], fromWidth);
         out.f[k] = toDouble ? static_cast<double>(value) : rounded(static_cast<float>(value));
       }},
      {"arith.fptosi", [=](auto in, Column &out, size_t k) { out.i[k] = toSigned(in[0]->f[k], toWidth); }},
      {"arith.fptoui", [=](auto in, Column &out, size_t k) { out.i[k] = wrapped(toUnsigned(in[0]->f[k])); }},
      {"arith.extsi",
       [=](auto in, Column &out, size_t k) { out.i[k] = wrapped(fromBool ? -in[0]->i[k] : in[0]->i[k]); }},
      {"arith.extui", [=](auto in, Column &out,
                          size_t k) { out.i[k] = wrapped(static_cast<int64_t>(asUnsigned(in[0]->i[k], fromWidth))); }},
      {"arith.trunci", [=](auto in, Column &out, size_t k) { out.i[k] = wrapped(in[0]->i[k]); }},
      {"arith.bitcast",
       [=](auto in, Column &out, size_t k) {
         uint64_t bits = isa<FloatType>(from) ? bitsOf(from, in[0]->f[k]) : asUnsigned(in[0]->i[k], fromWidth);
         if (isa<FloatType>(to)) {
           out.f[k] = fromBits(to, bits);
         } else {
           out.i[k] = wrapped(static_cast<int64_t>(bits));
         }
       }},
  };
  for (const auto &[name, function] : casts) {
    if (name == op->getName().getStringRef()) {
      return perElement(function);
    }
  }
  return {};
}

/// Returns the function of an op that is in none of the tables.
ColumnFunction getSpecial(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    bool isFloat = isa<FloatAttr>(constant.getValue());
    double f = isFloat ? cast<FloatAttr>(constant.getValue()).getValueAsDouble() : 0;
    int64_t i = isFloat ? 0
                        : Wrapping(constant.getType())(
                              static_cast<int64_t>(cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue()));
    return perElement([=](auto, Column &out, size_t k) { isFloat ? void(out.f[k] = f) : void(out.i[k] = i); });
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    auto predicate = compare.getPredicate();
    return perElement(
        [=](auto in, Column &out, size_t k) { out.i[k] = compareFloats(predicate, in[0]->f[k], in[1]->f[k]); });
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    auto predicate = compare.getPredicate();
    unsigned width = compare.getLhs().getType().getIntOrFloatBitWidth();
    return perElement(
        [=](auto in, Column &out, size_t k) { out.i[k] = compareInts(predicate, in[0]->i[k], in[1]->i[k], width); });
  }
  if (isa<arith::SelectOp>(op)) {
    bool isFloat = isa<FloatType>(op->getResult(0).getType());
    return perElement([=](auto in, Column &out, size_t k) {
      const Column *from = in[0]->i[k] ? in[1] : in[2];
      isFloat ? void(out.f[k] = from->f[k]) : void(out.i[k] = from->i[k]);
    });
  }
  Type type = op->getNumResults() ? op->getResult(0).getType() : Type();
  Rounding rounded(type);
  Wrapping wrapped(type);
  if (name == "math.fma") {
    return perElement([=](auto in, Column &out, size_t k) {
      double a = in[0]->f[k], b = in[1]->f[k], c = in[2]->f[k];
      out.f[k] = rounded.isToSingle() ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))
                                      : rounded(std::fma(a, b, c));
    });
  }
  if (name == "math.fpowi") {
    return perElement([=](auto in, Column &out, size_t k) {
      out.f[k] = rounded(std::pow(in[0]->f[k], static_cast<double>(in[1]->i[k])));
    });
  }
  if (name == "math.absi") {
    return perElement([=](auto in, Column &out, size_t k) {
      out.i[k] = wrapped(in[0]->i[k] < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(in[0]->i[k])) : in[0]->i[k]);
    });
  }
  if (name == "math.isnan" || name == "math.isinf" || name == "math.isfinite") {
    bool nan = name == "math.isnan", inf = name == "math.isinf";
    return perElement([=](auto in, Column &out, size_t k) {
      double x = in[0]->f[k];
      out.i[k] = nan ? std::isnan(x) : inf ? std::isinf(x) : std::isfinite(x);
    });
  }
  return {};
}

} // namespace

ColumnFunction getColumnFunction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (Single1 function = singleUnary().lookup(name); function && !op->getResult(0).getType().isF64()) {
    Rounding rounded(op->getResult(0).getType());
    return perElement([=](auto in, Column &out, size_t k) {
      out.f[k] = rounded(function(Single{static_cast<float>(in[0]->f[k])}).v);
    });
  }
  if (isCube(op) && op->getResult(0).getType().isF32()) {
    return perElement([](auto in, Column &out, size_t k) {
      Single x{static_cast<float>(in[0]->f[k])};
      out.f[k] = (x * x * x).v;
    });
  }
  if (Float1 function = floatUnary().lookup(name)) {
    Rounding rounded(op->getResult(0).getType());
    return perElement([=](auto in, Column &out, size_t k) { out.f[k] = rounded(function(in[0]->f[k])); });
  }
  if (Float2 function = floatBinary().lookup(name)) {
    Rounding rounded(op->getResult(0).getType());
    return perElement([=](auto in, Column &out, size_t k) { out.f[k] = rounded(function(in[0]->f[k], in[1]->f[k])); });
  }
  if (Int2 function = intBinary().lookup(name)) {
    Type type = op->getResult(0).getType();
    Wrapping wrapped(type);
    unsigned width = type.getIntOrFloatBitWidth();
    return perElement(
        [=](auto in, Column &out, size_t k) { out.i[k] = wrapped(function(in[0]->i[k], in[1]->i[k], width)); });
  }
  ColumnFunction special = getSpecial(op);
  return special ? special : getCast(op);
}

ColumnFunction sigmoidColumn() {
  return perElement(
      [](auto in, Column &out, size_t k) { out.f[k] = numerics::sigmoid(Single{static_cast<float>(in[0]->f[k])}).v; });
}

} // namespace tessera::device::reference
