//===- IntegerOps.cpp - Integer arithmetic --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Wraps in at least 32 bits, because products of 16-bit integers would overflow an int.
template <class T>
using Wide = std::conditional_t<sizeof(T) < 4, uint32_t, Unsigned<T>>;

template <class T>
struct Add {
  T operator()(T a, T b) const { return T(Wide<T>(a) + Wide<T>(b)); }
};
template <class T>
struct Sub {
  T operator()(T a, T b) const { return T(Wide<T>(a) - Wide<T>(b)); }
};
template <class T>
struct MulLo {
  T operator()(T a, T b) const { return T(Wide<T>(a) * Wide<T>(b)); }
};
template <class T>
struct MulHi {
  T operator()(T a, T b) const {
    using Double =
        std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                           std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
    return T((Double(a) * Double(b)) >> (8 * sizeof(T)));
  }
};
template <class T>
struct MadLo {
  T operator()(T a, T b, T c) const { return T(Wide<T>(a) * Wide<T>(b) + Wide<T>(c)); }
};
template <class T>
struct MadHi {
  T operator()(T a, T b, T c) const { return Add<T>()(MulHi<T>()(a, b), c); }
};
/// PTX does not specify the result of division by zero; this machine returns all ones, as NVIDIA GPUs do.
template <class T>
struct Div {
  T operator()(T a, T b) const {
    if (b == 0) {
      return T(-1);
    }
    return std::is_signed_v<T> && b == T(-1) ? T(Wide<T>(0) - Wide<T>(a)) : T(a / b);
  }
};
template <class T>
struct Rem {
  T operator()(T a, T b) const {
    if (b == 0) {
      return a;
    }
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
template <class T>
struct Min {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct Max {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct Abs {
  T operator()(T a) const { return a < 0 ? T(Wide<T>(0) - Wide<T>(a)) : a; }
};
template <class T>
struct Neg {
  T operator()(T a) const { return T(Wide<T>(0) - Wide<T>(a)); }
};
template <class T>
struct Sad {
  T operator()(T a, T b, T c) const {
    return T(Wide<T>(c) + (a < b ? Wide<T>(b) - Wide<T>(a) : Wide<T>(a) - Wide<T>(b)));
  }
};
struct SaturatedAdd {
  int32_t operator()(int32_t a, int32_t b) const {
    return int32_t(
        std::clamp<int64_t>(int64_t(a) + b, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  }
};
struct SaturatedSub {
  int32_t operator()(int32_t a, int32_t b) const {
    return int32_t(
        std::clamp<int64_t>(int64_t(a) - b, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  }
};

template <class From, class To>
struct MulWide {
  To operator()(From a, From b) const { return To(To(a) * To(b)); }
};
template <class From, class To>
struct MadWide {
  To operator()(From a, From b, To c) const {
    return To(std::make_unsigned_t<To>(To(a) * To(b)) + std::make_unsigned_t<To>(c));
  }
};
template <class A>
struct Mul24 {
  A operator()(A a, A b) const {
    return A(uint32_t((std::is_signed_v<A> ? A(uint32_t(a) << 8) >> 8 : a & A(0xffffff))) *
             uint32_t((std::is_signed_v<A> ? A(uint32_t(b) << 8) >> 8 : b & A(0xffffff))));
  }
};
template <class A>
struct Mad24 {
  A operator()(A a, A b, A c) const { return A(uint32_t(Mul24<A>()(a, b)) + uint32_t(c)); }
};

void require(Decoding &d, Run run) {
  if (!run) {
    d.reject("is not supported by the PTX machine for this type");
  }
}

template <template <class> class Op>
void binary(Decoding &d) {
  std::string type = d.type();
  if (isFloatType(type)) {
    if (!decodeFloat(d, type)) {
      d.reject();
    }
    return;
  }
  Run run = forInteger<Op, Binary>(type);
  if (type[0] == 'b') { // LLVM never emits e.g. add.b32
    run = nullptr;
  }
  require(d, run);
  if (type == "s32" && d.has("sat")) {
    run = d.base() == "add" ? binaryLanes<int32_t, int32_t, int32_t, SaturatedAdd>
                            : binaryLanes<int32_t, int32_t, int32_t, SaturatedSub>;
  }
  decodeBinary(d, run, type);
}

template <template <class> class Op>
void unary(Decoding &d) {
  std::string type = d.type();
  if (isFloatType(type)) {
    if (!decodeFloat(d, type)) {
      d.reject();
    }
    return;
  }
  Run run = forInteger<Op, Unary>(type);
  require(d, run);
  decodeUnary(d, run, type, type);
}

/// The types of mul.wide, whose result is twice as wide.
struct WideType {
  const char *type, *result;
  Run mul, mad;
};
template <class From, class To>
WideType wideType(const char *type, const char *result) {
  return {type, result, binaryLanes<To, From, From, MulWide<From, To>>,
          ternaryLanes<To, From, From, To, MadWide<From, To>>};
}
const WideType kWideTypes[] = {wideType<uint16_t, uint32_t>("u16", "u32"), wideType<int16_t, int32_t>("s16", "s32"),
                               wideType<uint32_t, uint64_t>("u32", "u64"), wideType<int32_t, int64_t>("s32", "s64")};

bool decodeWide(Decoding &d, const std::string &type, bool isMad) {
  for (const WideType &each : kWideTypes) {
    if (type == each.type) {
      decodeUnary(d, isMad ? each.mad : each.mul, type, each.result);
      d.instruction.b = d.source(2, type);
      if (isMad) {
        d.instruction.c = d.source(3, each.result);
      }
      return true;
    }
  }
  return false;
}

void mul(Decoding &d) {
  std::string type = d.type();
  if (isFloatType(type)) {
    if (!decodeFloat(d, type)) {
      d.reject();
    }
  } else if (d.has("wide")) {
    if (!decodeWide(d, type, false)) {
      d.reject();
    }
  } else {
    Run run = d.has("hi") ? forInteger<MulHi, Binary>(type) : d.has("lo") ? forInteger<MulLo, Binary>(type) : nullptr;
    require(d, run);
    decodeBinary(d, run, type);
  }
}

void mad(Decoding &d) {
  std::string type = d.type();
  if (isFloatType(type)) {
    if (!decodeFloat(d, type)) {
      d.reject();
    }
  } else if (d.has("wide")) {
    if (!decodeWide(d, type, true)) {
      d.reject();
    }
  } else {
    Run run = d.has("hi") ? forInteger<MadHi, Ternary>(type) : d.has("lo") ? forInteger<MadLo, Ternary>(type) : nullptr;
    require(d, run);
    decodeTernary(d, run, type);
  }
}

void mul24(Decoding &d) {
  std::string type = d.type();
  if (!d.has("lo") || (type != "u32" && type != "s32")) {
    d.reject();
  }
  bool isSigned = type == "s32";
  if (d.base() == "mul24") {
    decodeBinary(d, isSigned ? Binary<int32_t, Mul24<int32_t>>::run : Binary<uint32_t, Mul24<uint32_t>>::run, type);
  } else {
    decodeTernary(d, isSigned ? Ternary<int32_t, Mad24<int32_t>>::run : Ternary<uint32_t, Mad24<uint32_t>>::run, type);
  }
}

void sad(Decoding &d) {
  std::string type = d.type();
  Run run = forInteger<Sad, Ternary>(type);
  require(d, run);
  decodeTernary(d, run, type);
}

template <class A, class B>
struct Dp4 {
  int32_t operator()(uint32_t a, uint32_t b, int32_t c) const {
    auto sum = uint32_t(c);
    for (unsigned i = 0; i < 32; i += 8) {
      sum += uint32_t(int32_t(A(a >> i)) * int32_t(B(b >> i)));
    }
    return int32_t(sum);
  }
};
template <class A, class B, unsigned kFrom>
struct Dp2 {
  int32_t operator()(uint32_t a, uint32_t b, int32_t c) const {
    auto sum = uint32_t(c);
    for (unsigned i = 0; i < 2; ++i) {
      sum += uint32_t(int32_t(A(a >> (16 * i))) * int32_t(B(b >> (8 * i + kFrom))));
    }
    return int32_t(sum);
  }
};
template <class Op>
constexpr Run dotRun = ternaryLanes<int32_t, uint32_t, uint32_t, int32_t, Op>;

void dp4a(Decoding &d) {
  bool bSigned = d.type() == "s32", aSigned = d.type() == "s32";
  d.instruction.run = aSigned ? (bSigned ? dotRun<Dp4<int8_t, int8_t>> : dotRun<Dp4<int8_t, uint8_t>>)
                              : (bSigned ? dotRun<Dp4<uint8_t, int8_t>> : dotRun<Dp4<uint8_t, uint8_t>>);
  decodeTernary(d, d.instruction.run, "b32");
}

template <class A, class B>
Run dp2Run(bool isHigh) {
  return isHigh ? dotRun<Dp2<A, B, 16>> : dotRun<Dp2<A, B, 0>>;
}

void dp2a(Decoding &d) {
  bool bSigned = d.type() == "s32", aSigned = d.type() == "s32", isHigh = d.has("hi");
  if (!isHigh && !d.has("lo")) {
    d.reject();
  }
  Run run = aSigned ? (bSigned ? dp2Run<int16_t, int8_t>(isHigh) : dp2Run<int16_t, uint8_t>(isHigh))
                    : (bSigned ? dp2Run<uint16_t, int8_t>(isHigh) : dp2Run<uint16_t, uint8_t>(isHigh));
  decodeTernary(d, run, "b32");
}

} // namespace

const DecodeTable &integerInstructions() {
  static const DecodeTable table = {
      {"add", binary<Add>}, {"sub", binary<Sub>}, {"mul", mul},         {"mad", mad},        {"div", binary<Div>},
      {"rem", binary<Rem>}, {"min", binary<Min>}, {"max", binary<Max>}, {"abs", unary<Abs>}, {"neg", unary<Neg>},
      {"sad", sad},         {"mul24", mul24},     {"mad24", mul24},     {"dp4a", dp4a},      {"dp2a", dp2a}};
  return table;
}

} // namespace ptx
