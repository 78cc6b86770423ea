//===- FloatOps.cpp - Floating-point arithmetic ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
// Results are those of IEEE 754 in the requested rounding mode; nothing is flushed without .ftz. A NaN result of f32,
// f16 and bf16 is the NaN that NVIDIA GPUs produce. Approximations (.approx, .full) are the rounded exact results,
// which are within the bounds that a GPU guarantees but rarely equal its bits.
#include "bmruntime/ptx_machine/Instructions/FloatFlags.h"
#include "bmruntime/ptx_machine/Instructions/Halves.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <cmath>
#include <cstdlib>
#include <immintrin.h>

namespace ptx {
namespace {

template <class T>
T clean(T value) {
  if constexpr (sizeof(T) == 4) {
    return canonical(value);
  } else {
    return value;
  }
}

struct FAdd {
  template <class T>
  T operator()(T a, T b) const {
    return clean(a + b);
  }
};
struct FSub {
  template <class T>
  T operator()(T a, T b) const {
    return clean(a - b);
  }
};
struct FMul {
  template <class T>
  T operator()(T a, T b) const {
    return clean(a * b);
  }
};
struct FDiv {
  template <class T>
  T operator()(T a, T b) const {
    return clean(a / b);
  }
};
struct FFma {
  float operator()(float a, float b, float c) const { return clean(__builtin_fmaf(a, b, c)); }
  double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
/// Numbers win over NaN, and -0 is less than +0.
template <bool kIsMax, bool kNan>
struct FMinMax {
  template <class T>
  T operator()(T a, T b) const {
    bool isBelow = a < b || (a == b && std::signbit(a));
    T result = isBelow != kIsMax ? a : b;
    if constexpr (kNan) {
      result = a != a || b != b ? a + b : result;
    } else {
      result = a != a ? b : b != b ? a : result;
    }
    return clean(result);
  }
};
struct FAbs {
  template <class T>
  T operator()(T a) const {
    return clean(std::fabs(a));
  }
};
struct FNeg {
  template <class T>
  T operator()(T a) const {
    return clean(-a);
  }
};
struct FSqrt {
  template <class T>
  T operator()(T a) const {
    return clean(std::sqrt(a));
  }
};
struct FRcp {
  template <class T>
  T operator()(T a) const {
    return clean(T(1) / a);
  }
};
struct FRsqrt {
  float operator()(float a) const { return clean(float(1 / std::sqrt(double(a)))); }
  double operator()(double a) const { return double(1 / sqrtl(a)); }
};
struct FEx2 {
  float operator()(float a) const { return clean(std::exp2(a)); }
};
struct FLg2 {
  float operator()(float a) const { return clean(std::log2(a)); }
};
struct FSin {
  float operator()(float a) const { return clean(std::sin(a)); }
};
struct FCos {
  float operator()(float a) const { return clean(std::cos(a)); }
};
struct FTanh {
  float operator()(float a) const { return clean(std::tanh(a)); }
};
/// copysign d, a, b: the sign of a and the magnitude of b.
struct FCopysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// Computes one operation on f16. f32 is exact enough that the second rounding does not show (24 >= 2 * 11 + 2 bits).
/// fma uses double, in which the sums that matter are exact.
template <class Op>
struct OnF16 {
  uint16_t operator()(uint16_t a) const { return toF16(Op()(fromF16(a))); }
  uint16_t operator()(uint16_t a, uint16_t b) const { return toF16(Op()(fromF16(a), fromF16(b))); }
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const {
    return narrowToF16(Op()(double(fromF16(a)), double(fromF16(b)), double(fromF16(c))), Rounding::Nearest);
  }
};

/// Returns a * b + c for bf16 operands so that narrowing rounds once: the product is exact in double, the sum is
/// rounded to odd.
double fmaToOdd(double a, double b, double c) {
  double product = a * b, sum = product + c;
  double part = sum - product, error = (product - (sum - part)) + (c - part);
  if (error != 0 && std::isfinite(sum) && (bitCast<uint64_t>(sum) & 1) == 0) {
    sum = std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
  }
  return sum;
}

template <class Op>
struct OnBf16 {
  uint16_t operator()(uint16_t a) const { return narrowToBf16(Op()(fromBf16(a)), Rounding::Nearest); }
  uint16_t operator()(uint16_t a, uint16_t b) const {
    if constexpr (std::is_same_v<Op, FAdd>) {
      return narrowToBf16(fmaToOdd(fromBf16(a), 1, fromBf16(b)), Rounding::Nearest);
    } else if constexpr (std::is_same_v<Op, FSub>) {
      return narrowToBf16(fmaToOdd(fromBf16(a), 1, -fromBf16(b)), Rounding::Nearest);
    } else {
      return narrowToBf16(Op()(double(fromBf16(a)), double(fromBf16(b))), Rounding::Nearest);
    }
  }
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c) const {
    return narrowToBf16(fmaToOdd(fromBf16(a), fromBf16(b), fromBf16(c)), Rounding::Nearest);
  }
};

/// Applies Op to both halves of a word.
template <class Op>
struct OnPairs {
  template <class... T>
  uint32_t operator()(T... words) const {
    return uint32_t(Op()(uint16_t(words)...)) | uint32_t(Op()(uint16_t(words >> 16)...)) << 16;
  }
};

/// Computes max(result, 0); NaN stays NaN.
template <class Op>
struct Relu {
  template <class... T>
  auto operator()(T... values) const {
    auto result = Op()(values...);
    return (result & 0x8000) && result != 0xffff ? decltype(result)(0) : result;
  }
};

template <class T, unsigned kCount, class Op>
constexpr Run lanesOf() {
  if constexpr (kCount == 1) {
    return unaryLanes<T, T, Op>;
  } else if constexpr (kCount == 2) {
    return binaryLanes<T, T, T, Op>;
  } else {
    return ternaryLanes<T, T, T, T, Op>;
  }
}

/// Returns the instance of Op for |type|; null if there is none.
template <class Op, unsigned kCount>
Run runFor(const std::string &type, bool isRelu = false) {
  if (isRelu) {
    return type == "f16"      ? lanesOf<uint16_t, kCount, Relu<OnF16<Op>>>()
           : type == "bf16"   ? lanesOf<uint16_t, kCount, Relu<OnBf16<Op>>>()
           : type == "f16x2"  ? lanesOf<uint32_t, kCount, OnPairs<Relu<OnF16<Op>>>>()
           : type == "bf16x2" ? lanesOf<uint32_t, kCount, OnPairs<Relu<OnBf16<Op>>>>()
                              : nullptr;
  }
  return type == "f32"      ? lanesOf<float, kCount, Op>()
         : type == "f64"    ? lanesOf<double, kCount, Op>()
         : type == "f16"    ? lanesOf<uint16_t, kCount, OnF16<Op>>()
         : type == "bf16"   ? lanesOf<uint16_t, kCount, OnBf16<Op>>()
         : type == "f16x2"  ? lanesOf<uint32_t, kCount, OnPairs<OnF16<Op>>>()
         : type == "bf16x2" ? lanesOf<uint32_t, kCount, OnPairs<OnBf16<Op>>>()
                            : nullptr;
}

template <class T>
void saturate(Warp &warp, const Instruction &in, Mask mask) {
  T *values = warp.reg<T>(in.to);
  for (unsigned i = 0; i < kLanes; ++i) {
    if (mask >> i & 1) {
      values[i] = values[i] > 0 ? std::min(values[i], T(1)) : T(0); // NaN becomes 0, too
    }
  }
}

void wrapped(Warp &warp, const Instruction &in, Mask mask) {
  unsigned before = _mm_getcsr();
  unsigned control = (before & ~0x6000u) | (in.flags & kFloatRounding) << 13;
  control |= in.flags & kFloatFlush ? 0x8040 : 0; // FTZ and DAZ
  _mm_setcsr(control);
  in.inner(warp, in, mask);
  _mm_setcsr(before);
  if (in.flags & kFloatSaturate) {
    in.flags &kFloatDouble ? saturate<double>(warp, in, mask) : saturate<float>(warp, in, mask);
  }
}

} // namespace

void wrapFloat(Decoding &d, const std::string &type, bool takesRounding) {
  uint32_t flags = 0;
  d.has("rn");
  if (takesRounding) {
    flags = d.has("rm") ? 1 : d.has("rp") ? 2 : d.has("rz") ? 3 : 0;
  }
  flags |= d.has("ftz") ? kFloatFlush : 0;
  flags |= d.has("sat") ? kFloatSaturate : 0;
  if (flags == 0) {
    return;
  }
  if (type != "f32" && type != "f64") {
    d.reject("is supported by the PTX machine for f32 and f64 only");
  }
  d.instruction.inner = d.instruction.run;
  d.instruction.run = wrapped;
  d.instruction.flags = flags | (type == "f64" ? kFloatDouble : 0);
}

namespace {

template <bool kIsMax>
Run minMax(bool isNan, const std::string &type) {
  return isNan ? runFor<FMinMax<kIsMax, true>, 2>(type) : runFor<FMinMax<kIsMax, false>, 2>(type);
}

void decodeFma(Decoding &d, const std::string &type) {
  Run run = runFor<FFma, 3>(type, d.has("relu"));
  if (!run) {
    d.reject();
  }
  decodeTernary(d, run, type);
  wrapFloat(d, type, true);
}

void fma(Decoding &d) {
  d.instruction.kind = Kind::Float;
  decodeFma(d, d.type());
}

} // namespace

bool decodeFloat(Decoding &d, const std::string &type) {
  d.instruction.kind = Kind::Float;
  const std::string &base = d.base();
  if (base == "mad") {
    decodeFma(d, type);
    return true;
  }
  if (base == "abs" || base == "neg") {
    Run run = base == "abs" ? runFor<FAbs, 1>(type) : runFor<FNeg, 1>(type);
    decodeUnary(d, run, type, type);
    wrapFloat(d, type, false);
    return run;
  }
  bool isMinMax = base == "min" || base == "max";
  bool isApproximate = base == "div" && (d.has("approx") || d.has("full"));
  Run run = base == "add"   ? runFor<FAdd, 2>(type)
            : base == "sub" ? runFor<FSub, 2>(type)
            : base == "mul" ? runFor<FMul, 2>(type)
            : base == "div" ? runFor<FDiv, 2>(type)
            : base == "min" ? minMax<false>(d.has("NaN"), type)
            : base == "max" ? minMax<true>(d.has("NaN"), type)
                            : nullptr;
  if (!run) {
    return false;
  }
  decodeBinary(d, run, type);
  wrapFloat(d, type, !isMinMax && !isApproximate);
  return true;
}

namespace {

template <class Op>
void function(Decoding &d) {
  std::string type = d.type();
  d.instruction.kind = Kind::Float;
  bool isApproximate = d.has("approx");
  Run run = type == "f32" ? unaryLanes<float, float, Op> : nullptr;
  if constexpr (std::is_invocable_v<Op, double>) {
    run = type == "f64" ? unaryLanes<double, double, Op> : run;
  }
  if constexpr (!std::is_same_v<Op, FSqrt> && !std::is_same_v<Op, FRcp>) {
    run = type == "f16"     ? unaryLanes<uint16_t, uint16_t, OnF16<Op>>
          : type == "f16x2" ? unaryLanes<uint32_t, uint32_t, OnPairs<OnF16<Op>>>
                            : run;
  }
  if (!run) {
    d.reject();
  }
  decodeUnary(d, run, type, type);
  wrapFloat(d, type, !isApproximate);
}

void tanhApproximate(Decoding &d) {
  if (!std::getenv("PTX_MACHINE_TANH_APPROX")) {
    d.reject("is a coarse approximation that Tessera does not use (PTX_MACHINE_TANH_APPROX=1 allows it)");
  }
  function<FTanh>(d);
}

void copysign(Decoding &d) {
  std::string type = d.type();
  d.instruction.kind = Kind::Float;
  decodeBinary(
      d, type == "f32" ? binaryLanes<float, float, float, FCopysign> : binaryLanes<double, double, double, FCopysign>,
      type);
}

template <class T>
bool testp(T value, uint32_t what) {
  switch (what) {
  case 0:
    return std::isfinite(value);
  case 1:
    return std::isinf(value);
  case 2:
    return value == value;
  case 3:
    return value != value;
  case 4:
    return std::isnormal(value);
  default:
    return std::fpclassify(value) == FP_SUBNORMAL;
  }
}

template <class T>
void testpLanes(Warp &warp, const Instruction &in, Mask mask) {
  const T *a = warp.reg<T>(in.a);
  Mask result = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    result |= Mask(testp(a[i], in.flags)) << i;
  }
  warp.writePred(in.to, result, mask);
}

void decodeTestp(Decoding &d) {
  static const char *const names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  std::string type = d.type();
  d.instruction.kind = Kind::Float;
  for (uint32_t i = 0; i < 6; ++i) {
    d.instruction.flags = d.has(names[i]) ? i : d.instruction.flags;
  }
  d.instruction.run = type == "f64" ? testpLanes<double> : testpLanes<float>;
  d.instruction.to = d.predicate(d.operand(0));
  d.instruction.a = d.source(1, type);
}

} // namespace

const DecodeTable &floatInstructions() {
  static const DecodeTable table = {{"fma", fma},
                                    {"sqrt", function<FSqrt>},
                                    {"rsqrt", function<FRsqrt>},
                                    {"rcp", function<FRcp>},
                                    {"ex2", function<FEx2>},
                                    {"lg2", function<FLg2>},
                                    {"sin", function<FSin>},
                                    {"cos", function<FCos>},
                                    {"tanh", tanhApproximate},
                                    {"copysign", copysign},
                                    {"testp", decodeTestp}};
  return table;
}

} // namespace ptx
