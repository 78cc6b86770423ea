//===- CompareOps.cpp - Comparisons and selections ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Instructions/Halves.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include <type_traits>

namespace ptx {
namespace {

enum Comparison { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan, Comparisons };
const char *const kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                    "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T, Comparison kWhich>
bool compare(T a, T b) {
  bool isUnordered = a != a || b != b;
  switch (kWhich) {
  case Eq:
    return a == b;
  case Ne:
    return a != b && !isUnordered;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  case Equ:
    return a == b || isUnordered;
  case Neu:
    return a != b;
  case Ltu:
    return a < b || isUnordered;
  case Leu:
    return a <= b || isUnordered;
  case Gtu:
    return a > b || isUnordered;
  case Geu:
    return a >= b || isUnordered;
  case Num:
    return !isUnordered;
  default:
    return isUnordered;
  }
}

/// Lane types that are compared by value: 16-bit floats as f32.
struct F16Lane {
  uint16_t bits;
  float get() const { return fromF16(bits); }
};
struct Bf16Lane {
  uint16_t bits;
  float get() const { return fromBf16(bits); }
};
template <class T>
auto valueOf(T lane) {
  if constexpr (std::is_arithmetic_v<T>) {
    return lane;
  } else {
    return lane.get();
  }
}

template <class T, Comparison kWhich>
Mask compareLanes(Warp &warp, const Instruction &in) {
  const T *a = warp.reg<T>(in.a), *b = warp.reg<T>(in.b);
  uint8_t truth[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    truth[i] = compare<decltype(valueOf(a[i])), kWhich>(valueOf(a[i]), valueOf(b[i]));
  }
  Mask result = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    result |= Mask(truth[i]) << i;
  }
  return result;
}

enum CompareFlags : uint32_t { kAnd = 1, kOr = 2, kXor = 3, kNegated = 4, kSetFloat = 8 };

Mask combine(Warp &warp, const Instruction &in, Mask result) {
  if ((in.flags & 3) == 0) {
    return result;
  }
  Mask other = warp.pred(in.c) ^ (in.flags & kNegated ? kAllLanes : 0);
  switch (in.flags & 3) {
  case kAnd:
    return result & other;
  case kOr:
    return result | other;
  default:
    return result ^ other;
  }
}

template <class T, Comparison kWhich>
void setpLanes(Warp &warp, const Instruction &in, Mask mask) {
  Mask compared = compareLanes<T, kWhich>(warp, in);
  if (in.more[0] != kNone) { // p|q: q gets the negated comparison
    Mask opposite = combine(warp, in, ~compared);
    warp.writePred(in.to, combine(warp, in, compared), mask);
    warp.writePred(in.more[0], opposite, mask);
    return;
  }
  warp.writePred(in.to, combine(warp, in, compared), mask);
}

/// For f16x2 and bf16x2, p compares the low halves and q the high halves.
template <class T, Comparison kWhich>
void setpHalves(Warp &warp, const Instruction &in, Mask mask) {
  const uint32_t *a = warp.reg<uint32_t>(in.a), *b = warp.reg<uint32_t>(in.b);
  Mask results[2] = {};
  for (unsigned i = 0; i < kLanes; ++i) {
    for (unsigned half = 0; half < 2; ++half) {
      T x{uint16_t(a[i] >> 16 * half)}, y{uint16_t(b[i] >> 16 * half)};
      results[half] |= Mask(compare<float, kWhich>(x.get(), y.get())) << i;
    }
  }
  Mask low = combine(warp, in, results[0]), high = combine(warp, in, results[1]);
  warp.writePred(in.to, low, mask);
  warp.writePred(in.more[0], high, mask);
}

template <class T, Comparison kWhich>
void setLanes(Warp &warp, const Instruction &in, Mask mask) {
  Mask result = combine(warp, in, compareLanes<T, kWhich>(warp, in));
  uint32_t yes = in.flags & kSetFloat ? bitCast<uint32_t>(1.0f) : ~0u, values[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    values[i] = (result >> i & 1) ? yes : 0;
  }
  warp.write(in.to, values, mask);
}

template <class T, bool kSet, int... kWhich>
Run pick(int which, std::integer_sequence<int, kWhich...>) {
  static const Run runs[] = {(kSet ? setLanes<T, Comparison(kWhich)> : setpLanes<T, Comparison(kWhich)>)...};
  return runs[which];
}
template <class T, bool kSet>
Run pick(int which) {
  return pick<T, kSet>(which, std::make_integer_sequence<int, Comparisons>());
}

template <class T, int... kWhich>
Run pickHalves(int which, std::integer_sequence<int, kWhich...>) {
  static const Run runs[] = {setpHalves<T, Comparison(kWhich)>...};
  return runs[which];
}

template <bool kSet>
Run runFor(const std::string &type, int which) {
  if (type == "f32") {
    return pick<float, kSet>(which);
  }
  if (type == "f64") {
    return pick<double, kSet>(which);
  }
  if (type == "f16") {
    return pick<F16Lane, kSet>(which);
  }
  if (type == "bf16") {
    return pick<Bf16Lane, kSet>(which);
  }
  if (!kSet && type == "f16x2") {
    return pickHalves<F16Lane>(which, std::make_integer_sequence<int, Comparisons>());
  }
  if (!kSet && type == "bf16x2") {
    return pickHalves<Bf16Lane>(which, std::make_integer_sequence<int, Comparisons>());
  }
  if (type == "s16") {
    return pick<int16_t, kSet>(which);
  }
  if (type == "s32") {
    return pick<int32_t, kSet>(which);
  }
  if (type == "s64") {
    return pick<int64_t, kSet>(which);
  }
  if (type == "u16" || type == "b16") {
    return pick<uint16_t, kSet>(which);
  }
  if (type == "u32" || type == "b32") {
    return pick<uint32_t, kSet>(which);
  }
  if (type == "u64" || type == "b64") {
    return pick<uint64_t, kSet>(which);
  }
  return nullptr;
}

int comparison(Decoding &d, const std::string &type) {
  for (int i = 0; i < Comparisons; ++i) {
    if (d.has(kComparisons[i])) {
      return i;
    }
  }
  // lo, ls, hi, hs are the unsigned comparisons.
  return d.has("lo") ? Lt : d.has("ls") ? Le : d.has("hi") ? Gt : d.has("hs") ? Ge : -1;
}

template <bool kSet>
void decodeCompare(Decoding &d, const std::string &type) {
  int which = comparison(d, type);
  d.instruction.run = which < 0 ? nullptr : runFor<kSet>(type, which);
  if (!d.instruction.run) {
    d.reject();
  }
  if (d.has("ftz")) {
    d.reject("is not supported by the PTX machine with .ftz");
  }
  d.instruction.flags |= d.has("and") ? kAnd : d.has("or") ? kOr : d.has("xor") ? kXor : 0;
  d.instruction.a = d.source(1, type);
  d.instruction.b = d.source(2, type);
  if (d.instruction.flags & 3) {
    bool isNegated = false;
    d.instruction.c = d.predicateSource(d.operand(3), isNegated);
    d.instruction.flags |= isNegated ? kNegated : 0;
  }
}

void setp(Decoding &d) {
  std::string type = d.type();
  const Operand &to = d.operand(0);
  d.instruction.more[0] = kNone;
  if (to.kind == Operand::Pair) {
    d.instruction.to = d.predicate(to.parts[0]);
    d.instruction.more[0] = d.predicate(to.parts[1]);
  } else {
    d.instruction.to = d.predicate(to);
  }
  d.instruction.kind = isFloatType(type) ? Kind::Float : Kind::Integer;
  if ((type == "f16x2" || type == "bf16x2") && d.instruction.more[0] == kNone) {
    d.reject("needs two predicates for the halves of its operands");
  }
  decodeCompare<false>(d, type);
}

void set(Decoding &d) {
  std::string type = d.type(), result = d.type();
  if (typeBytes(result) != 4) {
    d.reject();
  }
  d.instruction.flags = result == "f32" ? uint32_t(kSetFloat) : 0;
  d.instruction.to = d.destination(0, 4);
  decodeCompare<true>(d, type);
}

template <class T>
void selpLanes(Warp &warp, const Instruction &in, Mask mask) {
  const T *a = warp.reg<T>(in.a), *b = warp.reg<T>(in.b);
  Mask which = warp.pred(in.c) ^ in.flags;
  T result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    result[i] = (which >> i & 1) ? a[i] : b[i];
  }
  warp.write(in.to, result, mask);
}

void selp(Decoding &d) {
  std::string type = d.type();
  unsigned bytes = typeBytes(type);
  decodeBinary(d, bytes == 2 ? selpLanes<uint16_t> : bytes == 4 ? selpLanes<uint32_t> : selpLanes<uint64_t>, type);
  bool isNegated = false;
  d.instruction.c = d.predicateSource(d.operand(3), isNegated);
  d.instruction.flags = isNegated ? kAllLanes : 0;
}

template <class T, class C>
struct Slct {
  T operator()(T a, T b, C c) const { return c >= 0 ? a : b; }
};

void slct(Decoding &d) {
  std::string condition = d.type(), type = d.type();
  bool isFloat = condition == "f32";
  unsigned bytes = typeBytes(type);
  if (!isFloat && condition != "s32") {
    d.reject();
  }
  Run run = bytes == 4   ? (isFloat ? ternaryLanes<uint32_t, uint32_t, uint32_t, float, Slct<uint32_t, float>>
                                    : ternaryLanes<uint32_t, uint32_t, uint32_t, int32_t, Slct<uint32_t, int32_t>>)
            : bytes == 8 ? (isFloat ? ternaryLanes<uint64_t, uint64_t, uint64_t, float, Slct<uint64_t, float>>
                                    : ternaryLanes<uint64_t, uint64_t, uint64_t, int32_t, Slct<uint64_t, int32_t>>)
                         : (isFloat ? ternaryLanes<uint16_t, uint16_t, uint16_t, float, Slct<uint16_t, float>>
                                    : ternaryLanes<uint16_t, uint16_t, uint16_t, int32_t, Slct<uint16_t, int32_t>>);
  decodeBinary(d, run, type);
  d.instruction.c = d.source(3, condition);
}

} // namespace

const DecodeTable &compareInstructions() {
  static const DecodeTable table = {{"setp", setp}, {"set", set}, {"selp", selp}, {"slct", slct}};
  return table;
}

} // namespace ptx
