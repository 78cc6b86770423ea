//===- ReferenceElementwise.cpp - Arithmetic, logic, comparison ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>
#include <type_traits>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Computes y[i] = f(a[i], b[i]) with broadcasting, in the number type of a's elements.
template <typename F>
LogicalResult evaluateBinary(Inputs inputs, Outputs outputs, F f) {
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> a = readBroadcast<T>(*inputs[0], outputs[0].getShape());
    std::vector<T> b = readBroadcast<T>(*inputs[1], outputs[0].getShape());
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = f(a[i], b[i]);
    }
    write(a, outputs[0]);
    return success();
  });
}

/// Returns a / b. Integer division by zero gives 0.
template <typename T>
T quotient(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return b == 0 ? 0 : b == -1 ? -a : a / b; // the smallest integer / -1 would trap; -a wraps around
  } else if constexpr (std::is_integral_v<T>) {
    return b == 0 ? 0 : a / b;
  } else {
    return a / b;
  }
}

/// Returns C's remainder, with the sign of the dividend. Integer division by zero gives 0.
template <typename T>
T truncatedRemainder(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::fmod(a, b);
  } else {
    return b == 0 ? 0 : a - quotient(a, b) * b;
  }
}

/// Returns Python's remainder, with the sign of the divisor.
template <typename T>
T floorRemainder(T a, T b) {
  T r = truncatedRemainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <typename T>
T power(T base, T exponent) {
  T result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      result *= base;
    }
    base *= base;
  }
  return result;
}

template <typename T>
bool compare(CompareKind kind, T a, T b) {
  switch (kind) {
  case CompareKind::eq:
    return a == b;
  case CompareKind::ne:
    return a != b;
  case CompareKind::lt:
    return a < b;
  case CompareKind::le:
    return a <= b;
  case CompareKind::gt:
    return a > b;
  case CompareKind::ge:
    return a >= b;
  }
  return false;
}

} // namespace

// --- Arithmetic --------------------------------------------------------------

LogicalResult AddOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return a + b; });
}

LogicalResult SubOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return a - b; });
}

LogicalResult MulOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return a * b; });
}

LogicalResult DivOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return quotient(a, b); });
}

LogicalResult PowOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = outputs[0].getShape();
  bool integers = !llvm::isa<mlir::FloatType>(inputs[0]->getElementType()) &&
                  !llvm::isa<mlir::FloatType>(inputs[1]->getElementType());
  std::vector<double> a = readBroadcast<double>(*inputs[0], shape);
  std::vector<double> b = readBroadcast<double>(*inputs[1], shape);
  if (!integers) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = std::pow(a[i], b[i]);
    }
    write(a, outputs[0]);
    return success();
  }
  // Powers of integers are exact; a negative exponent gives the truncated reciprocal.
  std::vector<int64_t> base = readBroadcast<int64_t>(*inputs[0], shape);
  std::vector<int64_t> exponent = readBroadcast<int64_t>(*inputs[1], shape);
  for (size_t i = 0; i < base.size(); ++i) {
    bool negative = exponent[i] < 0 && !inputs[1]->getElementType().isUnsignedInteger();
    base[i] = negative ? static_cast<int64_t>(base[i] == 0 ? 0.0 : std::pow(a[i], b[i]))
                       : static_cast<int64_t>(power<uint64_t>(base[i], exponent[i]));
  }
  write(base, outputs[0]);
  return success();
}

LogicalResult ModOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs,
                        [&](auto a, auto b) { return getFmod() ? truncatedRemainder(a, b) : floorRemainder(a, b); });
}

LogicalResult MinOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return smallerOf(a, b); });
}

LogicalResult MaxOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return largerOf(a, b); });
}

LogicalResult BitShiftOp::evaluate(Inputs inputs, Outputs outputs) {
  bool isSigned = !inputs[0]->getElementType().isUnsignedInteger();
  DimsRef shape = outputs[0].getShape();
  std::vector<uint64_t> a = readBroadcast<uint64_t>(*inputs[0], shape);
  std::vector<uint64_t> b = readBroadcast<uint64_t>(*inputs[1], shape);
  for (size_t i = 0; i < a.size(); ++i) {
    // A shift by the width or more, undefined in C++, shifts out all bits.
    uint64_t by = std::min<uint64_t>(b[i], 63);
    a[i] = !getLeft() && isSigned ? static_cast<uint64_t>(static_cast<int64_t>(a[i]) >> by)
           : b[i] >= 64           ? 0
           : getLeft()            ? a[i] << by
                                  : a[i] >> by;
  }
  write(a, outputs[0]);
  return success();
}

LogicalResult PReluOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBinary(inputs, outputs, [](auto a, auto b) { return a < 0 ? a * b : a; });
}

// --- Logic and comparison ------------------------------------------------------

namespace {

/// Computes y = f(a, b) on the bit patterns.
template <typename F>
LogicalResult evaluateBits(Inputs inputs, Outputs outputs, F f) {
  std::vector<uint64_t> a = readBroadcast<uint64_t>(*inputs[0], outputs[0].getShape());
  std::vector<uint64_t> b = readBroadcast<uint64_t>(*inputs[1], outputs[0].getShape());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = f(a[i], b[i]);
  }
  write(a, outputs[0]);
  return success();
}

} // namespace

LogicalResult AndOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBits(inputs, outputs, [](uint64_t a, uint64_t b) { return a & b; });
}

LogicalResult OrOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBits(inputs, outputs, [](uint64_t a, uint64_t b) { return a | b; });
}

LogicalResult XorOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateBits(inputs, outputs, [](uint64_t a, uint64_t b) { return a ^ b; });
}

LogicalResult NotOp::evaluate(Inputs inputs, Outputs outputs) {
  bool logical = inputs[0]->getElementType().isInteger(1);
  std::vector<uint64_t> x = read<uint64_t>(*inputs[0]);
  for (uint64_t &v : x) {
    v = logical ? !v : ~v;
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult CompareOp::evaluate(Inputs inputs, Outputs outputs) {
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> a = readBroadcast<T>(*inputs[0], outputs[0].getShape());
    std::vector<T> b = readBroadcast<T>(*inputs[1], outputs[0].getShape());
    std::vector<uint64_t> y(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      y[i] = compare(getKind(), a[i], b[i]);
    }
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult WhereOp::evaluate(Inputs inputs, Outputs outputs) {
  return withNumbers(inputs[1]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    DimsRef shape = outputs[0].getShape();
    std::vector<uint64_t> condition = readBroadcast<uint64_t>(*inputs[0], shape);
    std::vector<T> a = readBroadcast<T>(*inputs[1], shape);
    std::vector<T> b = readBroadcast<T>(*inputs[2], shape);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = condition[i] ? a[i] : b[i];
    }
    write(a, outputs[0]);
    return success();
  });
}

LogicalResult IsInfOp::evaluate(Inputs inputs, Outputs outputs) {
  std::vector<double> x = read<double>(*inputs[0]);
  for (double &v : x) {
    v = std::isinf(v) && (v < 0 ? getDetectNegative() : getDetectPositive());
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult IsNanOp::evaluate(Inputs inputs, Outputs outputs) {
  std::vector<double> x = read<double>(*inputs[0]);
  for (double &v : x) {
    v = std::isnan(v);
  }
  write(x, outputs[0]);
  return success();
}

// --- Conversion and clamping -----------------------------------------------------

LogicalResult CastOp::evaluate(Inputs inputs, Outputs outputs) {
  mlir::Type to = outputs[0].getElementType();
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    std::vector<decltype(zero)> x = read<decltype(zero)>(*inputs[0]);
    if (!std::is_same_v<decltype(zero), double> && (to.isF16() || to.isBF16())) {
      // Integers are rounded to f32 first, as in onnxruntime and ml_dtypes.
      std::vector<double> singles(x.size());
      llvm::transform(x, singles.begin(), [](auto v) { return static_cast<float>(v); });
      write(singles, outputs[0]);
    } else {
      write(x, outputs[0]);
    }
    return success();
  });
}

LogicalResult BitcastOp::evaluate(Inputs inputs, Outputs outputs) {
  llvm::copy(inputs[0]->getBytes(), outputs[0].getBytes().begin());
  return success();
}

LogicalResult ClipOp::evaluate(Inputs inputs, Outputs outputs) {
  double lo = getLo().convertToDouble(), hi = getHi().convertToDouble();
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> x = read<T>(*inputs[0]);
    for (T &v : x) {
      if constexpr (std::is_same_v<T, double>) {
        v = smallerOf(largerOf(v, lo), hi);
        continue;
      }
      // Compare in double, assign in T, so that an integer within the bounds is never rounded.
      if (static_cast<double>(v) < lo) {
        v = fromDouble<T>(lo);
      }
      if (static_cast<double>(v) > hi) {
        v = fromDouble<T>(hi);
      }
    }
    write(x, outputs[0]);
    return success();
  });
}

LogicalResult ReluOp::evaluate(Inputs inputs, Outputs outputs) {
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    std::vector<decltype(zero)> x = read<decltype(zero)>(*inputs[0]);
    for (auto &v : x) {
      v = v <= 0 ? 0 : v; // also -0
    }
    write(x, outputs[0]);
    return success();
  });
}

// --- Unary arithmetic that integers have too --------------------------------------

namespace {

template <typename F>
LogicalResult evaluateUnaryNumbers(Inputs inputs, Outputs outputs, F f) {
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    std::vector<decltype(zero)> x = read<decltype(zero)>(*inputs[0]);
    for (auto &v : x) {
      v = f(v);
    }
    write(x, outputs[0]);
    return success();
  });
}

} // namespace

LogicalResult AbsOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnaryNumbers(inputs, outputs, [](auto x) {
    if constexpr (std::is_same_v<decltype(x), double>) {
      return std::fabs(x);
    } else {
      return x < 0 ? -x : x;
    }
  });
}

LogicalResult NegOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnaryNumbers(inputs, outputs, [](auto x) { return -x; });
}

LogicalResult SignOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnaryNumbers(inputs, outputs, [](auto x) -> decltype(x) {
    return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
  });
}
