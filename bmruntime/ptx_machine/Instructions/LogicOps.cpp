//===- LogicOps.cpp - Bit operations --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Instructions/Lanes.h"

#include "bmruntime/ptx_machine/Instructions/Halves.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace ptx {
namespace {

template <class T>
struct And {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct Or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct Xor {
  T operator()(T a, T b) const { return a ^ b; }
};
template <class T>
struct Not {
  T operator()(T a) const { return T(~a); }
};
/// Shift amounts beyond the width give zeros, or copies of the sign.
template <class T>
struct Shl {
  T operator()(T a, uint32_t b) const { return b >= 8 * sizeof(T) ? T(0) : T(uint64_t(a) << b); }
};
template <class T>
struct Shr {
  T operator()(T a, uint32_t b) const {
    if (b >= 8 * sizeof(T)) {
      return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
    }
    return T(a >> b);
  }
};

Run predicateRun(char op) {
  switch (op) {
  case 'a':
    return [](Warp &w, const Instruction &in, Mask m) {
      w.writePred(in.to, (w.pred(in.a) ^ Mask(in.flags)) & (w.pred(in.b) ^ Mask(in.immediate)), m);
    };
  case 'o':
    return [](Warp &w, const Instruction &in, Mask m) {
      w.writePred(in.to, (w.pred(in.a) ^ Mask(in.flags)) | (w.pred(in.b) ^ Mask(in.immediate)), m);
    };
  case 'x':
    return [](Warp &w, const Instruction &in, Mask m) {
      w.writePred(in.to, (w.pred(in.a) ^ Mask(in.flags)) ^ (w.pred(in.b) ^ Mask(in.immediate)), m);
    };
  default: // not, mov
    return [](Warp &w, const Instruction &in, Mask m) { w.writePred(in.to, w.pred(in.a) ^ Mask(in.flags), m); };
  }
}

/// Decodes operations on predicates; the negation of a is stored in flags, that of b in immediate.
void decodePredicates(Decoding &d, char op, unsigned sources) {
  bool isNegated = false;
  d.instruction.run = predicateRun(op);
  d.instruction.to = d.predicate(d.operand(0));
  d.instruction.a = d.predicateSource(d.operand(1), isNegated);
  d.instruction.flags = (isNegated ? kAllLanes : 0) ^ (op == 'n' ? kAllLanes : 0);
  if (sources == 2) {
    d.instruction.b = d.predicateSource(d.operand(2), isNegated);
    d.instruction.immediate = isNegated ? kAllLanes : 0;
  }
}

template <template <class> class Op, template <class, class> class Make>
Run forBits(const std::string &type) {
  switch (typeBytes(type)) {
  case 2:
    return Make<uint16_t, Op<uint16_t>>::run;
  case 4:
    return Make<uint32_t, Op<uint32_t>>::run;
  case 8:
    return Make<uint64_t, Op<uint64_t>>::run;
  default:
    return nullptr;
  }
}

template <template <class> class Op>
void logic(Decoding &d) {
  std::string type = d.type();
  if (type == "pred") {
    decodePredicates(d, d.base()[0], 2);
  } else {
    decodeBinary(d, forBits<Op, Binary>(type), type);
  }
}

void invert(Decoding &d) {
  std::string type = d.type();
  if (type == "pred") {
    decodePredicates(d, 'n', 1);
  } else {
    decodeUnary(d, forBits<Not, Unary>(type), type, type);
  }
}

void cnot(Decoding &d) {
  struct Op {
    uint32_t operator()(uint32_t a) const { return a == 0; }
  };
  if (d.type() != "b32") {
    d.reject();
  }
  decodeUnary(d, unaryLanes<uint32_t, uint32_t, Op>, "b32", "b32");
}

template <class T, class Op>
struct Shift {
  static constexpr Run run = binaryLanes<T, T, uint32_t, Op>;
};

void shift(Decoding &d) {
  std::string type = d.type();
  Run run = d.base() == "shl" ? forBits<Shl, Shift>(type) : forInteger<Shr, Shift>(type);
  run = run ? run : forBits<Shr, Shift>(type);
  decodeUnary(d, run, type, type);
  d.instruction.b = d.source(2, "u32");
}

template <bool kLeft, bool kClamp>
struct Funnel {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t n = kClamp ? std::min(c, 32u) : c & 31;
    uint64_t both = uint64_t(b) << 32 | a;
    return kLeft ? uint32_t((both << n) >> 32) : uint32_t(both >> n);
  }
};

void shf(Decoding &d) {
  d.type();
  bool isLeft = d.has("l"), isRight = d.has("r"), isClamp = d.has("clamp"), isWrap = d.has("wrap");
  if (isLeft == isRight || isClamp == isWrap) {
    d.reject();
  }
  Run run =
      isLeft ? (isClamp ? Ternary<uint32_t, Funnel<true, true>>::run : Ternary<uint32_t, Funnel<true, false>>::run)
             : (isClamp ? Ternary<uint32_t, Funnel<false, true>>::run : Ternary<uint32_t, Funnel<false, false>>::run);
  decodeTernary(d, run, "b32");
}

struct Popc {
  template <class T>
  uint32_t operator()(T a) const {
    return uint32_t(__builtin_popcountll(a));
  }
};
struct Clz {
  uint32_t operator()(uint32_t a) const { return a == 0 ? 32 : uint32_t(__builtin_clz(a)); }
  uint32_t operator()(uint64_t a) const { return a == 0 ? 64 : uint32_t(__builtin_clzll(a)); }
};
/// Returns the position of the highest bit that differs from the sign; ~0 if there is none.
template <bool kShift>
struct Bfind {
  template <class T>
  uint32_t operator()(T a) const {
    uint64_t value =
        std::is_signed_v<T> && a < 0 ? uint64_t(std::make_unsigned_t<T>(~a)) : uint64_t(std::make_unsigned_t<T>(a));
    if (value == 0) {
      return ~0u;
    }
    uint32_t at = 63 - uint32_t(__builtin_clzll(value));
    return kShift ? 8 * sizeof(T) - 1 - at : at;
  }
};
template <class T>
struct Brev {
  T operator()(T a) const {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
      result |= T(a >> i & 1) << (8 * sizeof(T) - 1 - i);
    }
    return result;
  }
};

template <class Op>
void countBits(Decoding &d) {
  std::string type = d.type();
  bool isWide = typeBytes(type) == 8;
  decodeUnary(d, isWide ? unaryLanes<uint32_t, uint64_t, Op> : unaryLanes<uint32_t, uint32_t, Op>, type, "u32");
}

template <class T>
Run bfindRun(bool isShift) {
  return isShift ? unaryLanes<uint32_t, T, Bfind<true>> : unaryLanes<uint32_t, T, Bfind<false>>;
}

void bfind(Decoding &d) {
  std::string type = d.type();
  bool isShift = d.has("shiftamt");
  Run run = type == "u32"   ? bfindRun<uint32_t>(isShift)
            : type == "s32" ? bfindRun<int32_t>(isShift)
            : type == "u64" ? bfindRun<uint64_t>(isShift)
                            : bfindRun<int64_t>(isShift);
  decodeUnary(d, run, type, "u32");
}

void brev(Decoding &d) {
  std::string type = d.type();
  decodeUnary(d, typeBytes(type) == 8 ? Unary<uint64_t, Brev<uint64_t>>::run : Unary<uint32_t, Brev<uint32_t>>::run,
              type, type);
}

template <class T>
struct Bfe {
  T operator()(T a, uint32_t position, uint32_t length) const {
    constexpr unsigned kBits = 8 * sizeof(T);
    position &= 0xff, length &= 0xff;
    if (length == 0) {
      return 0;
    }
    unsigned last = std::min(position + length - 1, kBits - 1);
    bool fill = std::is_signed_v<T> && (a >> last & 1);
    uint64_t mask = length >= 64 ? ~uint64_t(0) : (uint64_t(1) << length) - 1;
    uint64_t low = position >= kBits ? 0 : uint64_t(std::make_unsigned_t<T>(a)) >> position;
    unsigned have = position >= kBits ? 0 : kBits - position;
    uint64_t ones = have >= 64 ? 0 : ~uint64_t(0) << have;
    uint64_t value = (low | (fill ? ones : 0)) & mask;
    return T(fill ? value | ~mask : value);
  }
};

void bfe(Decoding &d) {
  std::string type = d.type();
  Run run = type == "u32"   ? ternaryLanes<uint32_t, uint32_t, uint32_t, uint32_t, Bfe<uint32_t>>
            : type == "s32" ? ternaryLanes<int32_t, int32_t, uint32_t, uint32_t, Bfe<int32_t>>
            : type == "u64" ? ternaryLanes<uint64_t, uint64_t, uint32_t, uint32_t, Bfe<uint64_t>>
                            : ternaryLanes<int64_t, int64_t, uint32_t, uint32_t, Bfe<int64_t>>;
  decodeUnary(d, run, type, type);
  d.instruction.b = d.source(2, "u32");
  d.instruction.c = d.source(3, "u32");
}

template <class T>
void bfiLanes(Warp &warp, const Instruction &in, Mask mask) {
  const T *a = warp.reg<T>(in.a), *b = warp.reg<T>(in.b);
  const auto *position = warp.reg<uint32_t>(in.c), *length = warp.reg<uint32_t>(in.more[0]);
  T result[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    unsigned at = position[i] & 0xff, count = length[i] & 0xff;
    uint64_t field = count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1;
    T bits = at >= 8 * sizeof(T) ? 0 : T(field << at), value = at >= 8 * sizeof(T) ? 0 : T(a[i] << at);
    result[i] = T((b[i] & ~bits) | (value & bits));
  }
  warp.write(in.to, result, mask);
}

void bfi(Decoding &d) {
  std::string type = d.type();
  decodeBinary(d, typeBytes(type) == 8 ? bfiLanes<uint64_t> : bfiLanes<uint32_t>, type);
  d.instruction.c = d.source(3, "u32");
  d.instruction.more[0] = d.source(4, "u32");
}

struct Prmt {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    uint64_t both = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      uint32_t which = selector >> (4 * i) & 15, byte = uint8_t(both >> (8 * (which & 7)));
      byte = which & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
      result |= byte << (8 * i);
    }
    return result;
  }
};
/// The selectors of prmt's modes, indexed by the two low bits of c.
template <int kMode>
struct PrmtMode {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    static constexpr uint16_t kSelectors[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                                  {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                                  {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return Prmt()(a, b, kSelectors[kMode][c & 3]);
  }
};

void prmt(Decoding &d) {
  d.type();
  Run run = d.has("f4e")    ? Ternary<uint32_t, PrmtMode<0>>::run
            : d.has("b4e")  ? Ternary<uint32_t, PrmtMode<1>>::run
            : d.has("rc8")  ? Ternary<uint32_t, PrmtMode<2>>::run
            : d.has("ecl")  ? Ternary<uint32_t, PrmtMode<3>>::run
            : d.has("ecr")  ? Ternary<uint32_t, PrmtMode<4>>::run
            : d.has("rc16") ? Ternary<uint32_t, PrmtMode<5>>::run
                            : Ternary<uint32_t, Prmt>::run;
  decodeTernary(d, run, "b32");
}

void lop3Lanes(Warp &warp, const Instruction &in, Mask mask) {
  const auto *a = warp.reg<uint32_t>(in.a), *b = warp.reg<uint32_t>(in.b), *c = warp.reg<uint32_t>(in.c);
  uint32_t result[kLanes] = {};
  for (unsigned bit = 0; bit < 8; ++bit) {
    if (in.flags >> bit & 1) {
      for (unsigned i = 0; i < kLanes; ++i) {
        result[i] |= (bit & 4 ? a[i] : ~a[i]) & (bit & 2 ? b[i] : ~b[i]) & (bit & 1 ? c[i] : ~c[i]);
      }
    }
  }
  warp.write(in.to, result, mask);
}

void lop3(Decoding &d) {
  d.type();
  decodeTernary(d, lop3Lanes, "b32");
  d.instruction.flags = uint32_t(d.literal(4)) & 0xff;
}

} // namespace

void decodePredicateMove(Decoding &d) { decodePredicates(d, 'm', 1); }

const DecodeTable &logicInstructions() {
  static const DecodeTable table = {{"and", logic<And>},
                                    {"or", logic<Or>},
                                    {"xor", logic<Xor>},
                                    {"not", invert},
                                    {"cnot", cnot},
                                    {"shl", shift},
                                    {"shr", shift},
                                    {"shf", shf},
                                    {"popc", countBits<Popc>},
                                    {"clz", countBits<Clz>},
                                    {"bfind", bfind},
                                    {"brev", brev},
                                    {"bfe", bfe},
                                    {"bfi", bfi},
                                    {"prmt", prmt},
                                    {"lop3", lop3}};
  return table;
}

} // namespace ptx
