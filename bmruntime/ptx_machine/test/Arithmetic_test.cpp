//===- Arithmetic_test.cpp - Integers, bits, floats and conversions -------===//
// SPDX-License-Identifier: Apache-2.0
// Expected values were computed by hand from the text of the PTX ISA.
#include "bmruntime/ptx_machine/test/Evaluate.h"

#include <cmath>

namespace ptx::test {
namespace {

constexpr float kInfinity = INFINITY;

TEST(Integers, wrapAround) {
  EXPECT_EQ(evaluate("add.s32 %d, %a, %b;", {0x7fffffff, 5}, {1, ~0u}), (Words{0x80000000, 4}));
  EXPECT_EQ(evaluate("sub.u32 %d, %a, %b;", {0, 9}, {1, 4}), (Words{~0u, 5}));
  EXPECT_EQ(evaluate("mul.lo.s32 %d, %a, %b;", {0x10001, ~0u}, {0x10001, 7}), (Words{0x20001, ~0u - 6}));
  EXPECT_EQ(evaluate("mad.lo.u32 %d, %a, %b, %c;", {3}, {5}, {100}), (Words{115}));
  EXPECT_EQ(evaluate("add.sat.s32 %d, %a, %b;", {0x7fffffff, 0x80000000}, {1, ~0u}), (Words{0x7fffffff, 0x80000000}));
}

TEST(Integers, haveHighAndWideProducts) {
  EXPECT_EQ(evaluate("mul.hi.u32 %d, %a, %b;", {~0u}, {~0u}), (Words{~0u - 1}));
  EXPECT_EQ(evaluate("mul.hi.s32 %d, %a, %b;", {~0u, 0x80000000}, {~0u, 2}), (Words{0, ~0u}));
  EXPECT_EQ(evaluate("mul.wide.s32 %l, %a, %b; shr.u64 %l, %l, 32; cvt.u32.u64 %d, %l;", {~0u}, {3}), (Words{~0u}));
  EXPECT_EQ(evaluate<uint64_t>("mul.hi.u64 %d, %a, %b;", {~uint64_t(0)}, {16}), (Longs{15}));
}

TEST(Integers, divideTowardsZero) {
  EXPECT_EQ(evaluate("div.s32 %d, %a, %b;", {uint32_t(-7), 7, 0x80000000}, {2, uint32_t(-2), ~0u}),
            (Words{uint32_t(-3), uint32_t(-3), 0x80000000}));
  EXPECT_EQ(evaluate("rem.s32 %d, %a, %b;", {uint32_t(-7), 7}, {2, uint32_t(-2)}), (Words{~0u, 1}));
  EXPECT_EQ(evaluate("div.u32 %d, %a, %b;", {~0u, 1}, {2, 0}), (Words{0x7fffffff, ~0u}));
}

TEST(Integers, compareBySign) {
  EXPECT_EQ(evaluate("min.s32 %d, %a, %b;", {~0u}, {1}), (Words{~0u}));
  EXPECT_EQ(evaluate("min.u32 %d, %a, %b;", {~0u}, {1}), (Words{1}));
  EXPECT_EQ(evaluate("max.s32 %d, %a, %b;", {~0u}, {1}), (Words{1}));
  EXPECT_EQ(evaluate("abs.s32 %d, %a;", {uint32_t(-5), 5}), (Words{5, 5}));
  EXPECT_EQ(evaluate("setp.lt.s32 %p, %a, %b; selp.b32 %d, 1, 2, %p;", {~0u, 1}, {0, 0}), (Words{1, 2}));
  EXPECT_EQ(evaluate("setp.lo.u32 %p|%q, %a, %b; selp.b32 %d, 1, 2, %q;", {~0u, 1}, {0, 2}), (Words{1, 2}));
  EXPECT_EQ(evaluate("setp.ne.b32 %q, %c, 0; setp.lt.and.s32 %p, %a, %b, !%q; selp.b32 %d, 1, 2, %p;", {1, 1}, {2, 2},
                     {0, 1}),
            (Words{1, 2}));
  EXPECT_EQ(evaluate("set.lt.u32.s32 %d, %a, %b;", {~0u, 1}, {0, 0}), (Words{~0u, 0}));
}

TEST(Bits, shift) {
  EXPECT_EQ(evaluate("shl.b32 %d, %a, %b;", {3, 3, 3}, {1, 31, 32}), (Words{6, 0x80000000, 0}));
  EXPECT_EQ(evaluate("shr.s32 %d, %a, %b;", {0x80000000, 0x80000000}, {4, 99}), (Words{0xf8000000, ~0u}));
  EXPECT_EQ(evaluate("shr.u32 %d, %a, %b;", {0x80000000, 0x80000000}, {4, 32}), (Words{0x08000000, 0}));
  EXPECT_EQ(evaluate("shf.l.wrap.b32 %d, %a, %b, %c;", {0x80000001}, {0x12345678}, {4}), (Words{0x23456788}));
  EXPECT_EQ(evaluate("shf.r.clamp.b32 %d, %a, %b, %c;", {0x12345678}, {0xabcdef01}, {40}), (Words{0xabcdef01}));
}

TEST(Bits, countAndMove) {
  EXPECT_EQ(evaluate("popc.b32 %d, %a;", {0xff00ff01}), (Words{17}));
  EXPECT_EQ(evaluate("clz.b32 %d, %a;", {0, 1, 0x80000000}), (Words{32, 31, 0}));
  EXPECT_EQ(evaluate("brev.b32 %d, %a;", {1, 0xf0}), (Words{0x80000000, 0x0f000000}));
  EXPECT_EQ(evaluate("bfind.s32 %d, %a;", {~0u, 0x100, uint32_t(-256)}), (Words{~0u, 8, 7}));
  EXPECT_EQ(evaluate("bfe.u32 %d, %a, %b, %c;", {0xabcd1234, 0xabcd1234}, {8, 28}, {8, 8}), (Words{0x12, 0xa}));
  EXPECT_EQ(evaluate("bfe.s32 %d, %a, %b, %c;", {0x0000f100, 0x80000000}, {8, 31}, {8, 8}), (Words{0xfffffff1, ~0u}));
  EXPECT_EQ(evaluate("bfi.b32 %d, %a, %b, 8, 8;", {0xff12}, {0xaabbccdd}), (Words{0xaabb12dd}));
}

TEST(Bits, permuteBytes) {
  // Selector nibbles from the lowest: byte 0, byte 7, byte 3 with its sign replicated, byte 4.
  EXPECT_EQ(evaluate("prmt.b32 %d, %a, %b, %c;", {0x83020100}, {0x07060504}, {0x4b70}), (Words{0x04ff0700}));
  EXPECT_EQ(evaluate("lop3.b32 %d, %a, %b, %c, 0xe8;", {0xff00ff00}, {0xffff0000}, {0xf0f0f0f0}), (Words{0xfff0f000}));
  EXPECT_EQ(evaluate("mov.b64 %l, {%a, %b}; mov.b64 {%x, %y}, %l; sub.u32 %d, %y, %x;", {5}, {7}), (Words{2}));
  EXPECT_EQ(evaluate("mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", {0x12345678}), (Words{0x56781234}));
}

TEST(Integers, multiplyBytes) {
  // (-1)(2) + 2(3) + 3(4) + 4(-5) = -4, plus 10.
  EXPECT_EQ(evaluate("dp4a.s32.s32 %d, %a, %b, %c;", {0x040302ff}, {0xfb040302}, {10}), (Words{6}));
  EXPECT_EQ(evaluate("dp4a.u32.s32 %d, %a, %b, %c;", {0x000000ff}, {0x000000ff}, {0}), (Words{uint32_t(-255)}));
}

TEST(Floats, roundAsAsked) {
  float third = 1.0f / 3.0f;
  EXPECT_EQ(evaluateFloats("div.rn.f32 %d, %a, %b;", {1}, {3}), (Words{bitsOf(third)}));
  // 1 + 2^-24 is half-way between 1 and its successor.
  std::vector<float> one = {1, -1}, half = {0x1p-24f, -0x1p-24f};
  EXPECT_EQ(evaluateFloats("add.rn.f32 %d, %a, %b;", one, half), (Words{bitsOf(1), bitsOf(-1)}));
  EXPECT_EQ(evaluateFloats("add.rp.f32 %d, %a, %b;", one, half), (Words{0x3f800001, bitsOf(-1)}));
  EXPECT_EQ(evaluateFloats("add.rm.f32 %d, %a, %b;", one, half), (Words{bitsOf(1), 0xbf800001}));
  EXPECT_EQ(evaluateFloats("add.rz.f32 %d, %a, %b;", one, half), (Words{bitsOf(1), bitsOf(-1)}));
}

TEST(Floats, fuseOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: fma keeps the last term, a rounded product does not.
  float a = 1 + 0x1p-12f;
  EXPECT_EQ(evaluateFloats("fma.rn.f32 %d, %a, %b, %c;", {a}, {a}, {-(1 + 0x1p-11f)}), (Words{bitsOf(0x1p-24f)}));
  EXPECT_EQ(evaluateFloats("mul.rn.f32 %x, %a, %b; add.rn.f32 %d, %x, %c;", {a}, {a}, {-(1 + 0x1p-11f)}), (Words{0}));
}

TEST(Floats, keepSubnormals) {
  EXPECT_EQ(evaluateFloats("mul.rn.f32 %d, %a, %b;", {0x1p-126f}, {0.5f}), (Words{0x00400000}));
  EXPECT_EQ(evaluateFloats("mul.rn.ftz.f32 %d, %a, %b;", {-0x1p-126f}, {0.5f}), (Words{0x80000000}));
  EXPECT_EQ(evaluateFloats("add.ftz.f32 %d, %a, %b;", {0x1p-130f}, {0}), (Words{0}));
  EXPECT_EQ(evaluateFloats("add.sat.f32 %d, %a, %b;", {0.75f, -1, NAN}, {0.5f, 0, 0}), (Words{bitsOf(1), 0, 0}));
}

TEST(Floats, orderZerosAndNan) {
  EXPECT_EQ(evaluateFloats("min.f32 %d, %a, %b;", {0.0f, NAN, NAN}, {-0.0f, 1, NAN}),
            (Words{0x80000000, bitsOf(1), 0x7fffffff}));
  EXPECT_EQ(evaluateFloats("max.f32 %d, %a, %b;", {-0.0f, 2}, {0.0f, NAN}), (Words{0, bitsOf(2)}));
  EXPECT_EQ(evaluateFloats("max.NaN.f32 %d, %a, %b;", {2}, {NAN}), (Words{0x7fffffff}));
  EXPECT_EQ(evaluateFloats("setp.lt.f32 %p, %a, %b; selp.b32 %d, 1, 2, %p;", {1, NAN}, {2, 2}), (Words{1, 2}));
  EXPECT_EQ(evaluateFloats("setp.ltu.f32 %p, %a, %b; selp.b32 %d, 1, 2, %p;", {3, NAN}, {2, 2}), (Words{2, 1}));
  EXPECT_EQ(evaluateFloats("setp.ne.f32 %p, %a, %b; selp.b32 %d, 1, 2, %p;", {3, NAN}, {2, 2}), (Words{1, 2}));
  EXPECT_EQ(evaluateFloats("sub.rn.f32 %d, %a, %b;", {kInfinity}, {kInfinity}), (Words{0x7fffffff}));
}

TEST(Floats, haveRoots) {
  EXPECT_EQ(evaluateFloats("sqrt.rn.f32 %d, %a;", {2, 9}), (Words{bitsOf(std::sqrt(2.0f)), bitsOf(3)}));
  EXPECT_EQ(evaluateFloats("rcp.rn.f32 %d, %a;", {4, -0.0f}), (Words{bitsOf(0.25f), bitsOf(-kInfinity)}));
  EXPECT_EQ(evaluateFloats("ex2.approx.f32 %d, %a;", {3, -kInfinity}), (Words{bitsOf(8), 0}));
  EXPECT_EQ(evaluateFloats("lg2.approx.f32 %d, %a;", {8}), (Words{bitsOf(3)}));
}

TEST(Halves, roundOnce) {
  // 1 + 2^-11 is half-way between two halves and rounds to the even one; 1 + 3 * 2^-11 rounds up.
  EXPECT_EQ(
      evaluateFloats("cvt.rn.f16.f32 %h0, %a; cvt.u32.u16 %d, %h0;", {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65520, NAN}),
      (Words{0x3c00, 0x3c02, 0x7c00, 0x7fff}));
  EXPECT_EQ(evaluateFloats("cvt.rz.f16.f32 %h0, %a; cvt.u32.u16 %d, %h0;", {1 + 3 * 0x1p-11f, 65520}),
            (Words{0x3c01, 0x7bff}));
  EXPECT_EQ(evaluateFloats("cvt.rn.bf16.f32 %h0, %a; cvt.u32.u16 %d, %h0;", {1 + 0x1p-8f, 1 + 3 * 0x1p-8f}),
            (Words{0x3f80, 0x3f82}));
  EXPECT_EQ(evaluateFloats("cvt.rn.bf16x2.f32 %d, %a, %b;", {1}, {-2}), (Words{0x3f80c000}));
  EXPECT_EQ(evaluateFloats("cvt.rn.f16x2.f32 %d, %a, %b;", {1}, {-2}), (Words{0x3c00c000}));
  EXPECT_EQ(evaluate("cvt.u16.u32 %h0, %a; cvt.f32.f16 %d, %h0;", {0x3c00, 0x0001}),
            (Words{bitsOf(1), bitsOf(0x1p-24f)}));
  EXPECT_EQ(evaluateFloats("cvt.rna.tf32.f32 %d, %a;", {1 + 0x1p-11f}), (Words{0x3f802000}));
}

TEST(Halves, calculateInPairs) {
  EXPECT_EQ(evaluate("add.rn.f16x2 %d, %a, %b;", {0x3c004000}, {0x3c003c00}), (Words{0x40004200}));
  EXPECT_EQ(evaluate("fma.rn.f16x2 %d, %a, %b, %c;", {0x40004000}, {0x42003c00}, {0x3c003c00}), (Words{0x47004200}));
  EXPECT_EQ(evaluate("fma.rn.bf16x2 %d, %a, %b, %c;", {0x40004000}, {0x40403f80}, {0x3f803f80}), (Words{0x40e04040}));
  EXPECT_EQ(evaluate("setp.lt.f16x2 %p|%q, %a, %b; selp.b32 %d, 1, 2, %p;", {0x3c004000, 0x40003c00},
                     {0x3c013c00, 0x3c004000}),
            (Words{2, 1})); // the low halves: 2 < 1, 1 < 2
  EXPECT_EQ(evaluate("setp.nan.f16x2 %p|%q, %a, %b; selp.b32 %d, 1, 2, %q;", {0x7e003c00, 0x3c007e00}, {0, 0}),
            (Words{1, 2}));
  EXPECT_EQ(evaluate("setp.gt.bf16x2 %p|%q, %a, %b; selp.b32 %d, 1, 2, %q;", {0x40000000}, {0x3f800000}), (Words{1}));
  EXPECT_EQ(evaluate("max.f16x2 %d, %a, %b;", {0x3c00fc00}, {0x4000bc00}), (Words{0x4000bc00}));
}

TEST(Conversions, saturateAndRound) {
  EXPECT_EQ(evaluateFloats("cvt.rni.s32.f32 %d, %a;", {2.5f, 3.5f, -2.5f, 3e9f, NAN}),
            (Words{2, 4, uint32_t(-2), 0x7fffffff, 0}));
  EXPECT_EQ(evaluateFloats("cvt.rzi.s32.f32 %d, %a;", {2.9f, -2.9f}), (Words{2, uint32_t(-2)}));
  EXPECT_EQ(evaluateFloats("cvt.rmi.s32.f32 %d, %a;", {-2.1f}), (Words{uint32_t(-3)}));
  EXPECT_EQ(evaluateFloats("cvt.rpi.f32.f32 %d, %a;", {2.1f}), (Words{bitsOf(3)}));
  EXPECT_EQ(evaluateFloats("cvt.rzi.u32.f32 %d, %a;", {-1, 4e9f}), (Words{0, 4000000000u}));
  EXPECT_EQ(evaluate("cvt.sat.s8.s32 %d, %a;", {300, uint32_t(-300), 5}), (Words{127, uint32_t(-128), 5}));
  EXPECT_EQ(evaluate("cvt.s8.s32 %h0, %a; cvt.s32.s8 %d, %h0;", {0x1ff}), (Words{~0u}));
  EXPECT_EQ(evaluate("cvt.s32.s8 %d, %a;", {0x180, 0x7f}), (Words{uint32_t(-128), 0x7f}));
  EXPECT_EQ(evaluate("cvt.rn.f32.s32 %d, %a;", {0x01000001, uint32_t(-3)}), (Words{bitsOf(16777216), bitsOf(-3)}));
  EXPECT_EQ(evaluate("cvt.rz.f32.u32 %d, %a;", {0xffffffff}), (Words{0x4f7fffff}));
  EXPECT_EQ(evaluate("cvt.rn.f32.u32 %d, %a;", {0xffffffff}), (Words{0x4f800000}));
  EXPECT_EQ(evaluate("cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", {300}, {uint32_t(-5)}, {0x1234}), (Words{0x12347ffb}));
}

TEST(Conversions, knowDoubles) {
  auto bits = [](double value) {
    uint64_t result;
    std::memcpy(&result, &value, 8);
    return result;
  };
  EXPECT_EQ(evaluate<uint64_t>("fma.rn.f64 %d, %a, %b, %c;", {bits(1.5)}, {bits(2)}, {bits(0.25)}),
            (Longs{bits(3.25)}));
  EXPECT_EQ(evaluate<uint64_t>("cvt.rn.f32.f64 %x, %a; cvt.f64.f32 %d, %x;", {bits(0.1)}), (Longs{bits(double(0.1f))}));
  EXPECT_EQ(evaluate<uint64_t>("cvt.rn.f64.s64 %d, %a;", {uint64_t(-3)}), (Longs{bits(-3)}));
  EXPECT_EQ(evaluate<uint64_t>("cvt.rzi.s64.f64 %d, %a;", {bits(-3.7)}), (Longs{uint64_t(-3)}));
}

} // namespace
} // namespace ptx::test
