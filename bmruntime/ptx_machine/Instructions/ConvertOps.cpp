//===- ConvertOps.cpp - cvt -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// Every conversion goes through a type that holds all values of its source: int64_t or double.
#include "bmruntime/ptx_machine/Instructions/Halves.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <algorithm>
#include <limits>

namespace ptx {
namespace {

enum Type : uint8_t { U8, S8, U16, S16, U32, S32, U64, S64, F16, BF16, F32, F64, Types };
const char *const kTypes[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"};

/// Instruction::flags of a conversion.
struct Flags {
  Type to, from;
  Rounding rounding;
  bool isIntegral, isSaturating, isFinite, isRelu;

  static Flags unpack(uint32_t word) {
    return {Type(word & 15),       Type(word >> 4 & 15),  Rounding(word >> 8 & 7), (word >> 11 & 1) != 0,
            (word >> 12 & 1) != 0, (word >> 13 & 1) != 0, (word >> 14 & 1) != 0};
  }
  uint32_t pack() const {
    return uint32_t(to) | uint32_t(from) << 4 | uint32_t(rounding) << 8 | uint32_t(isIntegral) << 11 |
           uint32_t(isSaturating) << 12 | uint32_t(isFinite) << 13 | uint32_t(isRelu) << 14;
  }
};

bool isFloat(Type type) { return type >= F16; }

template <class T, class Wide, class Convert>
void gather(const char *from, unsigned stride, Wide *values, Convert convert) {
  // The value is in the low bytes of a register that may be wider.
  for (unsigned i = 0; i < kLanes; ++i) {
    T value;
    std::memcpy(&value, from + size_t(i) * stride, sizeof value);
    values[i] = convert(value);
  }
}
template <class T, class Wide, class Convert>
void gatherAny(const char *from, unsigned stride, Wide *values, Convert convert) {
  switch (stride) { // constant strides let the compiler vectorise the loops
  case 2:
    return gather<T>(from, 2, values, convert);
  case 4:
    return gather<T>(from, 4, values, convert);
  default:
    return gather<T>(from, 8, values, convert);
  }
}

void fetchIntegers(const char *from, unsigned stride, Type type, int64_t *values) {
  auto same = [](auto value) { return int64_t(value); };
  switch (type) {
  case U8:
    return gatherAny<uint8_t>(from, stride, values, same);
  case S8:
    return gatherAny<int8_t>(from, stride, values, same);
  case U16:
    return gatherAny<uint16_t>(from, stride, values, same);
  case S16:
    return gatherAny<int16_t>(from, stride, values, same);
  case U32:
    return gather<uint32_t>(from, stride, values, same);
  case S32:
    return gather<int32_t>(from, stride, values, same);
  default:
    return gather<int64_t>(from, 8, values, same);
  }
}

void fetchFloats(const char *from, unsigned stride, Type type, double *values) {
  switch (type) {
  case F16:
    return gatherAny<uint16_t>(from, stride, values, [](uint16_t bits) { return double(fromF16(bits)); });
  case BF16:
    return gatherAny<uint16_t>(from, stride, values, [](uint16_t bits) { return double(fromBf16(bits)); });
  case F32:
    return gather<float>(from, 4, values, [](float value) { return double(value); });
  default:
    return gather<double>(from, 8, values, [](double value) { return value; });
  }
}

template <class T>
void clampTo(int64_t *values, Type from) {
  for (unsigned i = 0; i < kLanes; ++i) {
    bool isHuge = from == U64 && values[i] < 0;
    int64_t low = sizeof(T) == 8 && !std::numeric_limits<T>::is_signed ? 0 : int64_t(std::numeric_limits<T>::min());
    int64_t high = sizeof(T) == 8 ? std::numeric_limits<int64_t>::max() : int64_t(std::numeric_limits<T>::max());
    values[i] = isHuge ? (sizeof(T) == 8 && !std::numeric_limits<T>::is_signed ? values[i] : high)
                       : std::clamp(values[i], low, high);
  }
}

/// Converts values to |type|: saturates or truncates them, then extends them.
void fitIntegers(int64_t *values, Type type, Type from, bool isSaturating) {
  auto fit = [&](auto zero) {
    using T = decltype(zero);
    if (isSaturating) {
      clampTo<T>(values, from);
    }
    for (unsigned i = 0; i < kLanes; ++i) {
      values[i] = int64_t(T(values[i]));
    }
  };
  switch (type) {
  case U8:
    return fit(uint8_t());
  case S8:
    return fit(int8_t());
  case U16:
    return fit(uint16_t());
  case S16:
    return fit(int16_t());
  case U32:
    return fit(uint32_t());
  case S32:
    return fit(int32_t());
  case U64:
    return fit(uint64_t());
  default:
    return fit(int64_t());
  }
}

void storeIntegers(Warp &warp, const Instruction &in, Mask mask, const int64_t *values) {
  auto store = [&](auto zero) {
    using T = decltype(zero);
    T result[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) {
      result[i] = T(values[i]);
    }
    warp.write(in.to, result, mask);
  };
  switch (in.registerBytes) {
  case 2:
    return store(uint16_t());
  case 4:
    return store(uint32_t());
  default:
    return store(uint64_t());
  }
}

double integral(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  default:
    return std::trunc(value);
  }
}

template <Rounding kRounding>
void makeIntegral(double *values) {
  for (unsigned i = 0; i < kLanes; ++i) {
    values[i] = integral(values[i], kRounding);
  }
}

void makeIntegral(double *values, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return makeIntegral<Rounding::Nearest>(values);
  case Rounding::Down:
    return makeIntegral<Rounding::Down>(values);
  case Rounding::Up:
    return makeIntegral<Rounding::Up>(values);
  default:
    return makeIntegral<Rounding::Zero>(values);
  }
}

/// Converts to integers of |type|, saturating. NaN becomes 0, or, for f64 sources and 64-bit results, only the highest
/// bit.
void toIntegers(const double *values, Type type, Type from, int64_t *result) {
  static const struct {
    double low, high;
  } kLimits[] = {{0, 255}, {-128, 127}, {0, 65535}, {-32768, 32767}, {0, 4294967295.0}, {-2147483648.0, 2147483647.0}};
  if (type < U64) {
    double low = kLimits[type].low, high = kLimits[type].high;
    for (unsigned i = 0; i < kLanes; ++i) {
      double value = values[i] == values[i] ? values[i] : 0;
      result[i] = int64_t(std::min(std::max(value, low), high));
    }
    if (from == F64) {
      for (unsigned i = 0; i < kLanes; ++i) {
        result[i] = values[i] == values[i] ? result[i]
                                           : int64_t(uint64_t(1) << (type < U16   ? 7
                                                                     : type < U32 ? 15
                                                                                  : 31));
      }
    }
    return;
  }
  for (unsigned i = 0; i < kLanes; ++i) {
    double value = values[i];
    if (value != value) {
      result[i] = std::numeric_limits<int64_t>::min();
    } else if (type == S64) {
      result[i] = value >= 0x1p63   ? std::numeric_limits<int64_t>::max()
                  : value < -0x1p63 ? std::numeric_limits<int64_t>::min()
                                    : int64_t(value);
    } else {
      result[i] = value >= 0x1p64 ? -1 : value <= 0 ? 0 : int64_t(uint64_t(value));
    }
  }
}

uint16_t half(long double value, const Flags &flags) {
  uint16_t bits = flags.to == F16 ? narrowToF16(value, flags.rounding) : narrowToBf16(value, flags.rounding);
  uint16_t infinity = flags.to == F16 ? 0x7c00 : 0x7f80;
  if (flags.isFinite && (bits & 0x7fff) == infinity) {
    --bits;
  }
  return flags.isRelu && (bits & 0x8000) && bits != 0xffff ? uint16_t(0) : bits;
}

/// Rounds exact values once to floats of type flags.to and stores them.
template <class Value>
void storeFloats(Warp &warp, const Instruction &in, Mask mask, const Value *values, const Flags &flags) {
  bool isNearest = flags.rounding == Rounding::Nearest;
  if (flags.to == F64) {
    double result[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) {
      result[i] =
          isNearest ? double(values[i]) : bitCast<double>(narrow<52, -1022>((long double)(values[i]), flags.rounding));
    }
    return warp.write(in.to, result, mask);
  }
  if (flags.to == F32) {
    float result[kLanes];
    if (isNearest) {
      for (unsigned i = 0; i < kLanes; ++i) {
        result[i] = canonical(float(values[i]));
      }
    } else {
      for (unsigned i = 0; i < kLanes; ++i) {
        result[i] = narrowToF32((long double)(values[i]), flags.rounding);
      }
    }
    return warp.write(in.to, result, mask);
  }
  uint16_t result[kLanes];
  bool isPlain = isNearest && !flags.isFinite && !flags.isRelu && flags.from == F32;
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = !isPlain          ? half((long double)(values[i]), flags)
                : flags.to == F16 ? toF16(float(values[i]))
                                  : toBf16(float(values[i]));
  }
  int64_t wide[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    wide[i] = result[i];
  }
  storeIntegers(warp, in, mask, wide);
}

void convert(Warp &warp, const Instruction &in, Mask mask) {
  Flags flags = Flags::unpack(in.flags);
  const char *from = warp.reg<char>(in.a);
  if (!isFloat(flags.from)) {
    int64_t integers[kLanes];
    fetchIntegers(from, in.elementBytes, flags.from, integers);
    if (!isFloat(flags.to)) {
      fitIntegers(integers, flags.to, flags.from, flags.isSaturating);
      return storeIntegers(warp, in, mask, integers);
    }
    if (flags.from == U64) {
      return storeFloats(warp, in, mask, reinterpret_cast<const uint64_t *>(integers), flags);
    }
    return storeFloats(warp, in, mask, integers, flags);
  }
  double values[kLanes];
  fetchFloats(from, in.elementBytes, flags.from, values);
  if (!isFloat(flags.to)) {
    int64_t integers[kLanes];
    makeIntegral(values, flags.rounding);
    toIntegers(values, flags.to, flags.from, integers);
    return storeIntegers(warp, in, mask, integers);
  }
  if (flags.isIntegral) {
    makeIntegral(values, flags.rounding);
    flags.rounding = Rounding::Nearest;
  }
  if (flags.isSaturating) {
    for (double &value : values) {
      value = value > 0 ? std::min(value, 1.0) : 0;
    }
  }
  storeFloats(warp, in, mask, values, flags);
}

/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
void convertPair(Warp &warp, const Instruction &in, Mask mask) {
  Flags flags = Flags::unpack(in.flags);
  const auto *a = warp.reg<float>(in.a), *b = warp.reg<float>(in.b);
  uint32_t result[kLanes];
  bool isPlain = flags.rounding == Rounding::Nearest && !flags.isFinite && !flags.isRelu;
  for (unsigned i = 0; i < kLanes; ++i) {
    uint32_t high = !isPlain ? half(a[i], flags) : flags.to == F16 ? toF16(a[i]) : toBf16(a[i]);
    uint32_t low = !isPlain ? half(b[i], flags) : flags.to == F16 ? toF16(b[i]) : toBf16(b[i]);
    result[i] = high << 16 | low;
  }
  warp.write(in.to, result, mask);
}

void convertTf32(Warp &warp, const Instruction &in, Mask mask) {
  const auto *a = warp.reg<float>(in.a);
  uint32_t result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = a[i] == a[i] ? uint32_t(narrow<10, -126>(a[i], Rounding(in.flags))) << 13 : kNan32;
  }
  warp.write(in.to, result, mask);
}

Rounding roundingOf(Decoding &d, bool &isIntegral) {
  isIntegral = true;
  if (d.has("rni")) {
    return Rounding::Nearest;
  }
  if (d.has("rzi")) {
    return Rounding::Zero;
  }
  if (d.has("rmi")) {
    return Rounding::Down;
  }
  if (d.has("rpi")) {
    return Rounding::Up;
  }
  isIntegral = false;
  if (d.has("rz")) {
    return Rounding::Zero;
  }
  if (d.has("rm")) {
    return Rounding::Down;
  }
  if (d.has("rp")) {
    return Rounding::Up;
  }
  if (d.has("rna")) {
    return Rounding::NearestAway;
  }
  d.has("rn");
  return Rounding::Nearest;
}

Type typeOf(Decoding &d, const std::string &name) {
  for (int i = 0; i < Types; ++i) {
    if (name == kTypes[i]) {
      return Type(i);
    }
  }
  d.reject();
}

/// cvt.pack.sat.u8.s32.b32 d, a, b, c: from the lowest bits on, d holds b, a, and then the low bits of c.
void convertPack(Warp &warp, const Instruction &in, Mask mask) {
  const auto *a = warp.reg<int32_t>(in.a), *b = warp.reg<int32_t>(in.b);
  const auto *c = warp.reg<uint32_t>(in.c);
  Type type = Type(in.flags);
  int64_t high[kLanes], low[kLanes];
  std::copy(a, a + kLanes, high);
  std::copy(b, b + kLanes, low);
  fitIntegers(high, type, S32, true);
  fitIntegers(low, type, S32, true);
  uint32_t result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = type <= S8 ? (uint32_t(low[i]) & 0xff) | (uint32_t(high[i]) & 0xff) << 8 | c[i] << 16
                           : (uint32_t(low[i]) & 0xffff) | uint32_t(high[i]) << 16;
  }
  warp.write(in.to, result, mask);
}

void decodePack(Decoding &d) {
  bool hasSum = d.statement.operands.size() > 3;
  if (hasSum && d.type() != "b32") {
    d.reject();
  }
  if (d.type() != "s32" || !d.has("sat")) {
    d.reject();
  }
  d.instruction.flags = typeOf(d, d.type());
  if (d.instruction.flags > S16) {
    d.reject();
  }
  decodeBinary(d, convertPack, "b32");
  d.instruction.c = hasSum ? d.source(3, "b32") : d.decoder.constant(0, 4);
}

void cvt(Decoding &d) {
  d.instruction.kind = Kind::Convert;
  if (d.has("pack")) {
    return decodePack(d);
  }
  std::string from = d.type(), to = d.type();
  Flags flags{};
  flags.rounding = roundingOf(d, flags.isIntegral);
  flags.isSaturating = d.has("sat");
  flags.isFinite = d.has("satfinite");
  flags.isRelu = d.has("relu");
  if (to == "tf32" && from == "f32" && !flags.isFinite && !flags.isRelu) {
    decodeUnary(d, convertTf32, "f32", "b32");
    d.instruction.flags = uint32_t(flags.rounding);
    return;
  }
  if ((to == "f16x2" || to == "bf16x2") && from == "f32") {
    flags.to = to == "f16x2" ? F16 : BF16;
    flags.from = F32;
    decodeUnary(d, convertPair, "f32", "b32");
    d.instruction.b = d.source(2, "f32");
    d.instruction.flags = flags.pack();
    return;
  }
  flags.to = typeOf(d, to);
  flags.from = typeOf(d, from);
  if (flags.isRelu && flags.to != F16 && flags.to != BF16) {
    d.reject();
  }
  if (d.has("ftz")) { // affects f32 only
    d.reject("is not supported by the PTX machine with .ftz");
  }
  d.instruction.run = convert;
  d.instruction.to = d.anyDestination(d.operand(0), d.instruction.registerBytes);
  d.instruction.a = d.anySource(d.operand(1), from, d.instruction.elementBytes);
  if (d.instruction.registerBytes < typeBytes(to) || d.instruction.elementBytes < typeBytes(from)) {
    d.reject("has a register narrower than its type");
  }
  d.instruction.flags = flags.pack();
}

} // namespace

const DecodeTable &conversionInstructions() {
  static const DecodeTable table = {{"cvt", cvt}};
  return table;
}

} // namespace ptx
