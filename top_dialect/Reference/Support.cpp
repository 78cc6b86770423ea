//===- Support.cpp - Shared helpers of op evaluation ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Reference/Support.h"
#include "top_dialect/Reference/SmallFloat.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"

#include <limits>
#include <type_traits>

namespace tessera::top::reference {

namespace {

/// Calls `body` with a zero of the C++ type that stores elements of `type`.
template <typename Body>
void withStorage(mlir::Type type, Body &&body) {
  if (type.isF32()) {
    return body(float{});
  }
  if (type.isF64()) {
    return body(double{});
  }
  if (type.isF16()) {
    return body(Float16{});
  }
  if (type.isBF16()) {
    return body(BFloat16{});
  }
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0) {
  case 1:
    return body(bool{});
  case 8:
    return isUnsigned ? body(uint8_t{}) : body(int8_t{});
  case 16:
    return isUnsigned ? body(uint16_t{}) : body(int16_t{});
  case 32:
    return isUnsigned ? body(uint32_t{}) : body(int32_t{});
  case 64:
    return isUnsigned ? body(uint64_t{}) : body(int64_t{});
  default:
    // HostTensor's constructor and the evaluator accept only the types above.
    llvm_unreachable("element type without a memory form");
  }
}

template <typename T>
constexpr bool kIsSmallFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// Converts as C does, with a defined result where C has none: NaN, and a float out of range, becomes the smallest
/// 64-bit integer (32-bit for int32 and narrower types); narrow types take its low bits.
template <typename To, typename From>
To convert(From value) {
  if constexpr (kIsSmallFloat<From>) {
    return convert<To>(static_cast<double>(value));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<double>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>) {
    constexpr double kTwoTo64 = 18446744073709551616.0;
    return value >= 0 && value < kTwoTo64 ? static_cast<uint64_t>(value)
                                          : static_cast<uint64_t>(convert<int64_t>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Whole = std::conditional_t<sizeof(To) < 4 || std::is_same_v<To, int32_t>, int32_t, int64_t>;
    const double limit = std::ldexp(1, 8 * sizeof(Whole) - 1), whole = std::trunc(value);
    bool fits = whole >= -limit && whole < limit;
    return static_cast<To>(fits ? static_cast<Whole>(whole) : std::numeric_limits<Whole>::min());
  } else {
    return static_cast<To>(value);
  }
}

template <typename T>
void moveStridedTyped(const HostTensor &x, HostTensor &y, int64_t base, DimsRef strides) {
  const T *from = x.data<T>().data();
  T *to = y.data<T>().data();
  forEachOffset(y.getShape(), strides, base, [&](int64_t i, int64_t offset) { to[i] = from[offset]; });
}

} // namespace

template <typename T>
T fromDouble(double value) {
  return convert<T>(value);
}
template double fromDouble(double);
template int64_t fromDouble(double);
template uint64_t fromDouble(double);

template <typename T>
void readRange(const HostTensor &tensor, int64_t begin, int64_t stride, int64_t count, T *values) {
  withStorage(tensor.getElementType(), [&](auto zero) {
    using Storage = decltype(zero);
    const Storage *from = tensor.data<Storage>().data() + begin;
    for (int64_t i = 0; i < count; ++i) {
      values[i] = convert<T>(from[i * stride]);
    }
  });
}

template <typename T>
void writeRange(HostTensor &tensor, int64_t begin, int64_t count, const T *values) {
  withStorage(tensor.getElementType(), [&](auto zero) {
    using Storage = decltype(zero);
    Storage *to = tensor.data<Storage>().data() + begin;
    for (int64_t i = 0; i < count; ++i) {
      to[i] = convert<Storage>(values[i]);
    }
  });
}

template void readRange(const HostTensor &, int64_t, int64_t, int64_t, double *);
template void readRange(const HostTensor &, int64_t, int64_t, int64_t, int64_t *);
template void readRange(const HostTensor &, int64_t, int64_t, int64_t, uint64_t *);
template void writeRange(HostTensor &, int64_t, int64_t, const double *);
template void writeRange(HostTensor &, int64_t, int64_t, const int64_t *);
template void writeRange(HostTensor &, int64_t, int64_t, const uint64_t *);

void moveStrided(const HostTensor &x, HostTensor &y, int64_t base, DimsRef strides) {
  switch (elementBytes(x.getElementType())) {
  case 1:
    return moveStridedTyped<uint8_t>(x, y, base, strides);
  case 2:
    return moveStridedTyped<uint16_t>(x, y, base, strides);
  case 4:
    return moveStridedTyped<uint32_t>(x, y, base, strides);
  default:
    return moveStridedTyped<uint64_t>(x, y, base, strides);
  }
}

void fill(HostTensor &y, double value) {
  std::vector<double> values(y.getNumElements(), value);
  write(values, y);
}

} // namespace tessera::top::reference
