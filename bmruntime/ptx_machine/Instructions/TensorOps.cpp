//===- TensorOps.cpp - mma and ldmatrix -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
// Fragments, with lane = 4 g + t and P elements per word (4 of 8 bits, 2 of 16, 1 of tf32): word r of A holds row
// g + 8 (r & 1) from column P t + 4 P (r >> 1) on; word r of B holds column g from row P t + 4 P r on; c0 and c1 of C
// and D are columns 2 t and 2 t + 1 of row g, c2 and c3 those of row g + 8.
//
// PTX does not specify the order and rounding of float sums. This machine computes exact products, adds the sum so far
// and the products of 8 consecutive k (4 of tf32) as exactly as double can, and truncates the result to f32. By
// published measurements (Fasi et al., "Numerical behavior of NVIDIA tensor cores", 2021), the tensor cores of an A100
// do the same, except that they lose a few bits below the largest term. Code must not rely on any of it.
#include "bmruntime/ptx_machine/Execution/Block.h"
#include "bmruntime/ptx_machine/Instructions/Halves.h"
#include "bmruntime/ptx_machine/Instructions/Lanes.h"
#include "bmruntime/ptx_machine/Instructions/MemoryOps.h"

#include <algorithm>
#include <immintrin.h>

namespace ptx {
namespace {

constexpr unsigned kRows = 16, kColumns = 8;

/// Lane types of A and B.
enum Element : uint32_t { S8, U8, F16, BF16, TF32, Elements };
const char *const kElements[] = {"s8", "u8", "f16", "bf16", "tf32"};
unsigned perWord(Element element) { return element <= U8 ? 4 : element == TF32 ? 1 : 2; }

/// Instruction::flags of mma.
struct Flags {
  Element a, b;
  unsigned depth; ///< K
  bool isSaturating;

  static Flags unpack(uint32_t word) {
    return {Element(word & 7), Element(word >> 3 & 7), word >> 6 & 63, (word >> 12 & 1) != 0};
  }
  uint32_t pack() const { return a | b << 3 | depth << 6 | uint32_t(isSaturating) << 12; }
  unsigned aWords() const { return depth / (4 * perWord(a)) * 2; }
  unsigned bWords() const { return depth / (4 * perWord(b)); }
};

/// Registers: D in more[0..3], A in more[4..7], B in more[8..9], C in more[10..13].
constexpr unsigned kA = 4, kB = 8, kC = 10;

void requireWhole(Warp &warp, Mask mask) {
  if (warp.block->launch.options.divergence && mask != kAllLanes) {
    warp.block->fault(warp, unsigned(__builtin_ctz(mask)),
                      "divergence: this instruction requires all 32 lanes of the warp; lanes that execute it: " +
                          std::to_string(__builtin_popcount(mask)),
                      Fault::LaunchFailed);
  }
}

/// Visit the elements of A or B: set(row of A or column of B, k, the element's bits).
template <unsigned kPerWord, class Set>
void forA(Warp &warp, const Instruction &in, unsigned words, Set set) {
  for (unsigned r = 0; r < words; ++r) {
    const auto *word = warp.reg<uint32_t>(in.more[kA + r]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < kPerWord; ++i) {
        set(lane / 4 + 8 * (r & 1), kPerWord * (lane % 4) + 4 * kPerWord * (r >> 1) + i,
            word[lane] >> (32 / kPerWord * i % 32));
      }
    }
  }
}
template <unsigned kPerWord, class Set>
void forB(Warp &warp, const Instruction &in, unsigned words, Set set) {
  for (unsigned r = 0; r < words; ++r) {
    const auto *word = warp.reg<uint32_t>(in.more[kB + r]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < kPerWord; ++i) {
        set(lane / 4, kPerWord * (lane % 4) + 4 * kPerWord * r + i, word[lane] >> (32 / kPerWord * i % 32));
      }
    }
  }
}

template <class T>
void readSums(Warp &warp, const Instruction &in, T (&sums)[kRows][kColumns]) {
  for (unsigned r = 0; r < 4; ++r) {
    const T *from = warp.reg<T>(in.more[kC + r]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      sums[lane / 4 + 8 * (r >> 1)][2 * (lane % 4) + (r & 1)] = from[lane];
    }
  }
}
template <class T>
void writeSums(Warp &warp, const Instruction &in, const T (&sums)[kRows][kColumns], Mask mask) {
  for (unsigned r = 0; r < 4; ++r) {
    T to[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      to[lane] = sums[lane / 4 + 8 * (r >> 1)][2 * (lane % 4) + (r & 1)];
    }
    warp.write(in.more[r], to, mask);
  }
}

template <class A, class B>
void mmaIntegers(Warp &warp, const Instruction &in, Mask mask) {
  Flags flags = Flags::unpack(in.flags);
  requireWhole(warp, mask);
  alignas(32) int16_t a[kRows][32] = {}, b[16][kColumns][2] = {}; // pairs of k
  alignas(32) int32_t sums[kRows][kColumns];
  forA<4>(warp, in, flags.aWords(), [&](unsigned row, unsigned k, uint32_t bits) { a[row][k] = A(bits); });
  forB<4>(warp, in, flags.bWords(),
          [&](unsigned column, unsigned k, uint32_t bits) { b[k / 2][column][k & 1] = B(bits); });
  readSums(warp, in, sums);
  for (unsigned row = 0; row < kRows; ++row) {
    __m256i sum = _mm256_setzero_si256();
    for (unsigned pair = 0; pair < flags.depth / 2; ++pair) {
      int32_t two;
      std::memcpy(&two, &a[row][2 * pair], sizeof two);
      sum =
          _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_set1_epi32(two), *reinterpret_cast<const __m256i *>(b[pair])));
    }
    alignas(32) int32_t products[kColumns]; // sums of 32 products cannot overflow
    _mm256_store_si256(reinterpret_cast<__m256i *>(products), sum);
    for (unsigned column = 0; column < kColumns; ++column) {
      int64_t exact = int64_t(sums[row][column]) + products[column];
      sums[row][column] =
          flags.isSaturating ? int32_t(std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX)) : int32_t(exact);
    }
  }
  writeSums(warp, in, sums, mask);
  warp.block->counts.tensorProducts += kRows * kColumns * flags.depth;
}

float fromBits(Element element, uint32_t bits) {
  switch (element) {
  case F16:
    return fromF16(uint16_t(bits));
  case BF16:
    return fromBf16(uint16_t(bits));
  default:
    return bitCast<float>(bits & 0xffffe000u);
  }
}

/// Converts to f32 by truncation.
float cut(double value) {
  if (value != value) {
    return bitCast<float>(kNan32);
  }
  return float(bitCast<double>(bitCast<uint64_t>(value) & ~((uint64_t(1) << 29) - 1)));
}

template <Element kElement>
void mmaFloats(Warp &warp, const Instruction &in, Mask mask) {
  constexpr unsigned kPerWord = kElement == TF32 ? 1 : 2, kGroup = 4 * kPerWord;
  Flags flags = Flags::unpack(in.flags);
  requireWhole(warp, mask);
  double a[kRows][16], b[16][kColumns];
  float sums[kRows][kColumns];
  forA<kPerWord>(warp, in, flags.aWords(),
                 [&](unsigned row, unsigned k, uint32_t bits) { a[row][k] = fromBits(kElement, bits); });
  forB<kPerWord>(warp, in, flags.bWords(),
                 [&](unsigned column, unsigned k, uint32_t bits) { b[k][column] = fromBits(kElement, bits); });
  readSums(warp, in, sums);
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned group = 0; group < flags.depth; group += kGroup) {
      double exact[kColumns];
      for (unsigned column = 0; column < kColumns; ++column) {
        exact[column] = sums[row][column];
      }
      for (unsigned k = group; k < group + kGroup; ++k) {
        for (unsigned column = 0; column < kColumns; ++column) {
          exact[column] += a[row][k] * b[k][column];
        }
      }
      for (unsigned column = 0; column < kColumns; ++column) {
        sums[row][column] = cut(exact[column]);
      }
    }
  }
  writeSums(warp, in, sums, mask);
  warp.block->counts.tensorProducts += kRows * kColumns * flags.depth;
}

void registersOf(Decoding &d, size_t index, unsigned first, unsigned count, bool isDestination) {
  const Operand &list = d.operand(index);
  size_t size = list.kind == Operand::Vector ? list.parts.size() : 1;
  if (size != count) {
    d.reject("has " + std::to_string(size) + " registers instead of " + std::to_string(count));
  }
  for (unsigned i = 0; i < count; ++i) {
    const Operand &each = list.kind == Operand::Vector ? list.parts[i] : list;
    d.instruction.more[first + i] = isDestination ? d.destination(each, 4) : d.source(each, "b32");
  }
}

/// Consumes both modifiers; returns true if both are present.
bool hasBoth(Decoding &d, const char *first, const char *second) {
  bool hasFirst = d.has(first);
  return d.has(second) && hasFirst;
}

Element elementOf(Decoding &d, const std::string &type) {
  for (uint32_t i = 0; i < Elements; ++i) {
    if (type == kElements[i]) {
      return Element(i);
    }
  }
  d.reject();
}

Run mmaRun(const Flags &flags) {
  switch (flags.a) {
  case F16:
    return mmaFloats<F16>;
  case BF16:
    return mmaFloats<BF16>;
  case TF32:
    return mmaFloats<TF32>;
  case S8:
    return flags.b == S8 ? mmaIntegers<int8_t, int8_t> : mmaIntegers<int8_t, uint8_t>;
  default:
    return flags.b == S8 ? mmaIntegers<uint8_t, int8_t> : mmaIntegers<uint8_t, uint8_t>;
  }
}

void mma(Decoding &d) {
  d.instruction.kind = Kind::Tensor;
  std::string c = d.type(), b = d.type(), a = d.type(), to = d.type();
  Flags flags{elementOf(d, a), elementOf(d, b), 0, d.has("satfinite")};
  bool isInteger = flags.a <= U8;
  for (unsigned depth : {4u, 8u, 16u, 32u}) {
    flags.depth = d.has(("m16n8k" + std::to_string(depth)).c_str()) ? depth : flags.depth;
  }
  bool isShape = flags.depth == 4 * perWord(flags.a) || flags.depth == 8 * perWord(flags.a);
  bool isTyped =
      isInteger ? flags.b <= U8 && c == "s32" && to == "s32" : flags.a == flags.b && c == "f32" && to == "f32";
  bool isSync = hasBoth(d, "sync", "aligned"), isOrder = hasBoth(d, "row", "col");
  if (!isShape || !isTyped || !isSync || !isOrder || (flags.isSaturating && !isInteger)) {
    d.reject();
  }
  d.instruction.run = mmaRun(flags);
  d.instruction.flags = flags.pack();
  registersOf(d, 0, 0, 4, true);
  registersOf(d, 1, kA, flags.aWords(), false);
  registersOf(d, 2, kB, flags.bWords(), false);
  registersOf(d, 3, kC, 4, false);
}

/// Loads matrices whose rows are at the addresses of lanes 8 m to 8 m + 7. Lane 4 g + t gets elements 2 t and 2 t + 1
/// of row g, or of column g if transposed.
void ldmatrixLanes(Warp &warp, const Instruction &in, Mask mask) {
  requireWhole(warp, mask);
  Addresses addresses;
  Pointers rows;
  addressesOf(warp, in, addresses);
  Mask naming = in.elements == 4 ? kAllLanes : (1u << (8 * in.elements)) - 1;
  warp.block->resolve(warp, in.space, addresses, naming, 16, Access::Read, rows);
  for (unsigned matrix = 0; matrix < in.elements; ++matrix) {
    uint16_t from[8][8];
    for (unsigned row = 0; row < 8; ++row) {
      std::memcpy(from[row], rows.lane[8 * matrix + row], 16);
    }
    uint32_t result[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned g = lane / 4, t = lane % 4;
      result[lane] = in.flags ? from[2 * t][g] | uint32_t(from[2 * t + 1][g]) << 16
                              : from[g][2 * t] | uint32_t(from[g][2 * t + 1]) << 16;
    }
    warp.write(in.more[matrix], result, mask);
  }
}

void ldmatrix(Decoding &d) {
  d.instruction.kind = Kind::SharedLoad;
  if (d.type() != "b16" || !hasBoth(d, "sync", "aligned") || !d.has("m8n8")) {
    d.reject();
  }
  d.instruction.elements = d.has("x4") ? 4 : d.has("x2") ? 2 : d.has("x1") ? 1 : 0;
  if (d.instruction.elements == 0) {
    d.reject();
  }
  d.instruction.flags = d.has("trans");
  d.instruction.space = spaceOf(d);
  d.instruction.run = ldmatrixLanes;
  registersOf(d, 0, 0, d.instruction.elements, true);
  d.address(d.operand(1));
}

void movmatrixLanes(Warp &warp, const Instruction &in, Mask mask) {
  requireWhole(warp, mask);
  const auto *a = warp.reg<uint32_t>(in.a);
  uint16_t from[8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    from[lane / 4][2 * (lane % 4)] = uint16_t(a[lane]);
    from[lane / 4][2 * (lane % 4) + 1] = uint16_t(a[lane] >> 16);
  }
  uint32_t result[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    result[lane] = from[2 * (lane % 4)][lane / 4] | uint32_t(from[2 * (lane % 4) + 1][lane / 4]) << 16;
  }
  warp.write(in.to, result, mask);
}

void movmatrix(Decoding &d) {
  d.instruction.kind = Kind::Warp;
  if (d.type() != "b16" || !hasBoth(d, "sync", "aligned") || !d.has("m8n8") || !d.has("trans")) {
    d.reject();
  }
  decodeUnary(d, movmatrixLanes, "b32", "b32");
}

} // namespace

const DecodeTable &tensorInstructions() {
  static const DecodeTable table = {{"mma", mma}, {"ldmatrix", ldmatrix}, {"movmatrix", movmatrix}};
  return table;
}

} // namespace ptx
