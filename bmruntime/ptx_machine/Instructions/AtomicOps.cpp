//===- AtomicOps.cpp - atom and red ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// Lanes execute one after another, the lowest first; a GPU guarantees no order.
#include "bmruntime/ptx_machine/Instructions/Halves.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"
#include "bmruntime/ptx_machine/Instructions/MemoryOps.h"

namespace ptx {
namespace {

enum AtomicFlags : uint32_t { kAcquire = 1, kRelease = 2 };

template <class T>
struct AtomAdd {
  T operator()(T old, T b, T) const {
    if constexpr (std::is_same_v<T, float>) {
      return canonical(old + b);
    } else if constexpr (std::is_same_v<T, double>) {
      return old + b;
    } else {
      return T(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(b));
    }
  }
};
template <class T>
struct AtomMin {
  T operator()(T old, T b, T) const { return b < old ? b : old; }
};
template <class T>
struct AtomMax {
  T operator()(T old, T b, T) const { return old < b ? b : old; }
};
template <class T>
struct AtomExch {
  T operator()(T, T b, T) const { return b; }
};
template <class T>
struct AtomCas {
  T operator()(T old, T b, T c) const { return old == b ? c : old; }
};
template <class T>
struct AtomAnd {
  T operator()(T old, T b, T) const { return old & b; }
};
template <class T>
struct AtomOr {
  T operator()(T old, T b, T) const { return old | b; }
};
template <class T>
struct AtomXor {
  T operator()(T old, T b, T) const { return old ^ b; }
};
template <class T>
struct AtomInc {
  T operator()(T old, T b, T) const { return old >= b ? 0 : old + 1; }
};
template <class T>
struct AtomDec {
  T operator()(T old, T b, T) const { return old == 0 || old > b ? b : old - 1; }
};
/// Adds two halves in a word separately.
struct AddF16x2 {
  uint32_t operator()(uint32_t old, uint32_t b, uint32_t) const {
    return uint32_t(toF16(fromF16(uint16_t(old)) + fromF16(uint16_t(b)))) |
           uint32_t(toF16(fromF16(uint16_t(old >> 16)) + fromF16(uint16_t(b >> 16)))) << 16;
  }
};

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using type = uint32_t;
};
template <>
struct Bits<double> {
  using type = uint64_t;
};
template <>
struct Bits<int32_t> {
  using type = uint32_t;
};
template <>
struct Bits<uint32_t> {
  using type = uint32_t;
};
template <>
struct Bits<int64_t> {
  using type = uint64_t;
};
template <>
struct Bits<uint64_t> {
  using type = uint64_t;
};

template <class T, class Op>
void atomicLanes(Warp &warp, const Instruction &in, Mask mask) {
  using Word = typename Bits<T>::type;
  if (in.flags & kRelease) {
    warp.block->fence();
  }
  Addresses addresses;
  Pointers pointers;
  addressesOf(warp, in, addresses);
  warp.block->resolve(warp, in.space, addresses, mask, sizeof(T), Access::Atomic, pointers);
  const T *b = warp.reg<T>(in.b), *c = warp.reg<T>(in.c == kNone ? in.b : in.c);
  Word results[kLanes];
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    auto lane = unsigned(__builtin_ctz(rest));
    auto *word = reinterpret_cast<Word *>(pointers.lane[lane]);
    Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, bitCast<Word>(Op()(bitCast<T>(old), b[lane], c[lane])), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    results[lane] = old;
  }
  if (in.to != kNone) {
    warp.write(in.to, results, mask);
  }
  if (in.flags & kAcquire) {
    warp.block->fence();
  }
}

template <template <class> class Op>
Run forNumbers(const std::string &type) {
  return type == "u32" || type == "b32"   ? atomicLanes<uint32_t, Op<uint32_t>>
         : type == "s32"                  ? atomicLanes<int32_t, Op<int32_t>>
         : type == "u64" || type == "b64" ? atomicLanes<uint64_t, Op<uint64_t>>
         : type == "s64"                  ? atomicLanes<int64_t, Op<int64_t>>
                                          : nullptr;
}

Run runFor(Decoding &d, const std::string &type) {
  if (d.has("add")) {
    d.has("noftz"); // halves are never flushed
    return type == "f32"     ? atomicLanes<float, AtomAdd<float>>
           : type == "f64"   ? atomicLanes<double, AtomAdd<double>>
           : type == "f16x2" ? atomicLanes<uint32_t, AddF16x2>
                             : forNumbers<AtomAdd>(type);
  }
  return d.has("min")    ? forNumbers<AtomMin>(type)
         : d.has("max")  ? forNumbers<AtomMax>(type)
         : d.has("exch") ? forNumbers<AtomExch>(type)
         : d.has("cas")  ? forNumbers<AtomCas>(type)
         : d.has("and")  ? forNumbers<AtomAnd>(type)
         : d.has("or")   ? forNumbers<AtomOr>(type)
         : d.has("xor")  ? forNumbers<AtomXor>(type)
         : d.has("inc")  ? forNumbers<AtomInc>(type)
         : d.has("dec")  ? forNumbers<AtomDec>(type)
                         : nullptr;
}

void decodeAtomic(Decoding &d, bool hasResult) {
  std::string type = d.type();
  d.instruction.kind = Kind::Atomic;
  d.instruction.space = spaceOf(d);
  bool isBoth = d.has("acq_rel"), isAcquire = d.has("acquire"), isRelease = d.has("release");
  d.instruction.flags = (isBoth || isAcquire ? kAcquire : 0u) | (isBoth || isRelease ? kRelease : 0u);
  takeOrdering(d);
  d.instruction.run = runFor(d, type);
  if (!d.instruction.run) {
    d.reject();
  }
  unsigned at = hasResult ? 1 : 0;
  if (hasResult) {
    d.instruction.to = d.destination(0, typeBytes(type));
  }
  d.address(d.operand(at));
  d.instruction.b = d.source(at + 1, type);
  if (d.has("cas")) {
    d.instruction.c = d.source(at + 2, type);
  }
}

void atom(Decoding &d) { decodeAtomic(d, true); }
void red(Decoding &d) { decodeAtomic(d, false); }

} // namespace

const DecodeTable &atomicInstructions() {
  static const DecodeTable table = {{"atom", atom}, {"red", red}};
  return table;
}

} // namespace ptx
