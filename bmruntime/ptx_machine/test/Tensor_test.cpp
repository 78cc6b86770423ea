//===- Tensor_test.cpp - Tests of mma, ldmatrix and warp instructions -----===//
// SPDX-License-Identifier: Apache-2.0
// Fragments follow NVIDIA's PTX ISA, "Matrix Fragments for mma". They are written out here as in that document,
// independently of the machine's formula.
#include "bmruntime/ptx_machine/test/Evaluate.h"

namespace ptx::test {
namespace {

struct Place {
  unsigned row, column;
};

// m16n8k32, s8: A's a0..a15, B's b0..b7, and C's c0..c3.
Place a32(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  unsigned row = (i < 4 || (i >= 8 && i < 12)) ? group : group + 8;
  unsigned column = i < 8 ? inGroup * 4 + (i & 3) : inGroup * 4 + (i & 3) + 16;
  return {row, column};
}
Place b32(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i < 4 ? inGroup * 4 + (i & 3) : inGroup * 4 + (i & 3) + 16, group};
}
// m16n8k16, f16 and bf16.
Place a16(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  unsigned row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
  unsigned column = i < 4 ? inGroup * 2 + (i & 1) : inGroup * 2 + (i & 1) + 8;
  return {row, column};
}
Place b16(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i < 2 ? inGroup * 2 + (i & 1) : inGroup * 2 + (i & 1) + 8, group};
}
// m16n8k16, s8.
Place a16Bytes(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i < 4 ? group : group + 8, inGroup * 4 + (i & 3)};
}
Place b16Bytes(unsigned lane, unsigned i) { return {(lane % 4) * 4 + i, lane >> 2}; }
// m16n8k8, f16 and bf16.
Place a8Halves(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i < 2 ? group : group + 8, inGroup * 2 + (i & 1)};
}
Place b8Halves(unsigned lane, unsigned i) { return {(lane % 4) * 2 + i, lane >> 2}; }
// m16n8k4, tf32.
Place a4(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i == 0 ? group : group + 8, inGroup};
}
Place b4(unsigned lane, unsigned) { return {lane % 4, lane >> 2}; }
// m16n8k8, tf32.
Place a8(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i == 0 || i == 2 ? group : group + 8, i < 2 ? inGroup : inGroup + 4};
}
Place b8(unsigned lane, unsigned i) { return {i == 0 ? lane % 4 : lane % 4 + 4, lane >> 2}; }
Place sums(unsigned lane, unsigned i) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  return {i < 2 ? group : group + 8, inGroup * 2 + (i & 1)};
}

/// Executes one mma on the registers of A (4 per lane), B (2) and C (4), and returns those of D. |half|: K is half as
/// long and uses only the first registers of A and B.
Words multiply(const std::string &variant, const Words &a, const Words &b, const Words &c, bool half = false) {
  Gpu gpu;
  gpu.load(R"(
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {
  .reg .b32 %t, %a<4>, %b<2>, %c<4>, %d<4>; .reg .b64 %p<4>, %w;
  mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 16;
  ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d];
  add.u64 %p0, %p0, %w; add.u64 %p2, %p2, %w; add.u64 %p3, %p3, %w; shr.u64 %w, %w, 1; add.u64 %p1, %p1, %w;
  ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p0]; ld.global.v2.b32 {%b0, %b1}, [%p1];
  ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%p2];
  mma.sync.aligned.)" +
           variant + " {%d0, %d1, %d2, %d3}, " + (half ? "{%a0, %a1}, {%b0}" : "{%a0, %a1, %a2, %a3}, {%b0, %b1}") +
           R"(, {%c0, %c1, %c2, %c3};
  st.global.v4.b32 [%p3], {%d0, %d1, %d2, %d3};
  ret;
})");
  CUdeviceptr d = gpu.allocate(512);
  EXPECT_EQ(gpu.run("k", 32, gpu.upload(a), gpu.upload(b), gpu.upload(c), d), CUDA_SUCCESS) << Gpu::finding();
  return gpu.download<uint32_t>(d, 128);
}

/// Checks mma of random bytes with |depth| bytes of K, with random initial sums.
void checkBytes(unsigned depth, Place (*placeA)(unsigned, unsigned), Place (*placeB)(unsigned, unsigned)) {
  int8_t a[16][32], b[32][8];
  int32_t c[16][8];
  uint32_t state = 1;
  auto draw = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
  for (auto &row : a) {
    for (int8_t &value : row) {
      value = int8_t(draw());
    }
  }
  for (auto &row : b) {
    for (int8_t &value : row) {
      value = int8_t(draw());
    }
  }
  Words wordsA(128), wordsB(64), wordsC(128);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < depth / 2; ++i) {
      Place at = placeA(lane, i);
      wordsA[lane * 4 + i / 4] |= uint32_t(uint8_t(a[at.row][at.column])) << (8 * (i % 4));
    }
    for (unsigned i = 0; i < depth / 4; ++i) {
      Place at = placeB(lane, i);
      wordsB[lane * 2 + i / 4] |= uint32_t(uint8_t(b[at.row][at.column])) << (8 * (i % 4));
    }
    for (unsigned i = 0; i < 4; ++i) {
      Place at = sums(lane, i);
      c[at.row][at.column] = int32_t(draw());
      wordsC[lane * 4 + i] = uint32_t(c[at.row][at.column]);
    }
  }
  std::string shape = "m16n8k" + std::to_string(depth);
  Words signs = multiply(shape + ".row.col.s32.s8.s8.s32", wordsA, wordsB, wordsC, depth == 16);
  Words mixed = multiply(shape + ".row.col.s32.u8.s8.s32", wordsA, wordsB, wordsC, depth == 16);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      Place at = sums(lane, i);
      int32_t sum = c[at.row][at.column], unsignedSum = sum;
      for (unsigned k = 0; k < depth; ++k) {
        sum += a[at.row][k] * b[k][at.column];
        unsignedSum += uint8_t(a[at.row][k]) * b[k][at.column];
      }
      EXPECT_EQ(int32_t(signs[lane * 4 + i]), sum) << shape << ": " << lane << ", " << i;
      EXPECT_EQ(int32_t(mixed[lane * 4 + i]), unsignedSum) << shape << ": " << lane << ", " << i;
    }
  }
}

TEST(Mma, multipliesBytesByNvidiasLayout) {
  checkBytes(32, a32, b32);
  checkBytes(16, a16Bytes, b16Bytes);
}

TEST(Mma, saturatesIfAsked) {
  Words a(128, 0x7f7f7f7f), b(64, 0x7f7f7f7f), c(128, 0x7fffffff);
  EXPECT_EQ(multiply("m16n8k32.row.col.satfinite.s32.s8.s8.s32", a, b, c)[5], 0x7fffffffu);
  EXPECT_EQ(multiply("m16n8k32.row.col.s32.s8.s8.s32", a, b, c)[5], 0x7fffffffu + 32 * 127 * 127);
}

/// Checks a float layout with small integers, whose sums are exact; |encode| converts an element to its bits.
template <class Encode>
void checkFloats(const char *variant, unsigned depth, unsigned bits, Place (*placeA)(unsigned, unsigned),
                 Place (*placeB)(unsigned, unsigned), Encode encode) {
  unsigned perWord = 32 / bits, words = depth * bits / 128; // of B; of A twice as many
  auto a = [](unsigned row, unsigned k) { return int(row * 7 + k * 3) % 11 - 5; };
  auto b = [](unsigned k, unsigned column) { return int(column * 5 + k) % 7 - 3; };
  Words wordsA(128), wordsB(64), wordsC(128, bitsOf(0.5f));
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 2 * words * perWord; ++i) {
      Place at = placeA(lane, i);
      wordsA[lane * 4 + i / perWord] |= encode(float(a(at.row, at.column))) << (bits * (i % perWord) % 32);
    }
    for (unsigned i = 0; i < words * perWord; ++i) {
      Place at = placeB(lane, i);
      wordsB[lane * 2 + i / perWord] |= encode(float(b(at.row, at.column))) << (bits * (i % perWord) % 32);
    }
  }
  Words result = multiply(variant, wordsA, wordsB, wordsC, words == 1);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      Place at = sums(lane, i);
      float sum = 0.5f;
      for (unsigned k = 0; k < depth; ++k) {
        sum += float(a(at.row, k) * b(k, at.column));
      }
      EXPECT_EQ(floatOf(result[lane * 4 + i]), sum) << variant << ": " << lane << ", " << i;
    }
  }
}

/// Converts a small integer to f16.
uint32_t half(float value) {
  if (value == 0) {
    return 0;
  }
  uint32_t bits = bitsOf(value);
  return (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112 << 10));
}

TEST(Mma, multipliesFloatsByNvidiasLayout) {
  checkFloats("m16n8k16.row.col.f32.f16.f16.f32", 16, 16, a16, b16, half);
  checkFloats("m16n8k8.row.col.f32.f16.f16.f32", 8, 16, a8Halves, b8Halves, half);
  auto brain = [](float value) { return bitsOf(value) >> 16; };
  checkFloats("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, a16, b16, brain);
  checkFloats("m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, a8Halves, b8Halves, brain);
  checkFloats("m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, a8, b8, bitsOf);
  checkFloats("m16n8k4.row.col.f32.tf32.tf32.f32", 4, 32, a4, b4, bitsOf);
}

Words loadMatrices(const std::string &variant, const std::string &registers) {
  Gpu gpu;
  gpu.load(R"(
.visible .entry k(.param .u64 out) {
  .shared .align 16 .b8 tile[512];
  .reg .b32 %t, %s, %v, %w, %r<4>; .reg .b64 %o, %l;
  mov.u32 %t, %tid.x; mov.u32 %s, tile;
  // Each lane fills 16 bytes: elements 8 t to 8 t + 7, each with its index as value.
  shl.b32 %w, %t, 4; add.u32 %s, %s, %w;
  shl.b32 %v, %t, 3; mad.lo.u32 %v, %v, 0x10001, 0x10000;
  st.shared.b32 [%s], %v; add.u32 %v, %v, 0x20002; st.shared.b32 [%s+4], %v;
  add.u32 %v, %v, 0x20002; st.shared.b32 [%s+8], %v; add.u32 %v, %v, 0x20002; st.shared.b32 [%s+12], %v;
  mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.)" +
           variant + ".shared.b16 {" + registers + R"(}, [%s];
  ld.param.u64 %o, [out]; mul.wide.u32 %l, %t, 16; add.u64 %o, %o, %l;
  st.global.v4.b32 [%o], {%r0, %r1, %r2, %r3};
  ret;
})");
  CUdeviceptr out = gpu.allocate(512);
  EXPECT_EQ(gpu.run("k", 32, out), CUDA_SUCCESS) << Gpu::finding();
  return gpu.download<uint32_t>(out, 128);
}

TEST(Ldmatrix, distributesRows) {
  // Row r of matrix m is that of lane 8 m + r: elements from 64 m + 8 r on. Lane 4 g + t gets elements 2 t, 2 t + 1 of
  // row g.
  Words plain = loadMatrices("x4", "%r0, %r1, %r2, %r3"), transposed = loadMatrices("x4.trans", "%r0, %r1, %r2, %r3");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t m = 0; m < 4; ++m) {
      uint32_t low = 64 * m + 8 * g + 2 * t;
      EXPECT_EQ(plain[lane * 4 + m], (low + 1) << 16 | low);
      uint32_t above = 64 * m + 8 * (2 * t) + g;
      EXPECT_EQ(transposed[lane * 4 + m], (above + 8) << 16 | above);
    }
  }
  Words two = loadMatrices("x2", "%r0, %r1"), one = loadMatrices("x1", "%r0");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(two[lane * 4 + 1], plain[lane * 4 + 1]);
    EXPECT_EQ(two[lane * 4 + 2], 0u);
    EXPECT_EQ(one[lane * 4], plain[lane * 4]);
    EXPECT_EQ(one[lane * 4 + 1], 0u);
  }
}

TEST(Warps, shuffle) {
  Words lanes(32);
  for (uint32_t i = 0; i < 32; ++i) {
    lanes[i] = i;
  }
  auto check = [&](const char *body, auto expected) {
    Words result = evaluate(body, lanes);
    for (uint32_t i = 0; i < 32; ++i) {
      EXPECT_EQ(result[i], expected(i)) << body << ", lane " << i;
    }
  };
  check("shfl.sync.bfly.b32 %d, %a, 5, 31, -1;", [](uint32_t i) { return i ^ 5; });
  check("shfl.sync.down.b32 %d, %a, 4, 31, -1;", [](uint32_t i) { return i + 4 < 32 ? i + 4 : i; });
  check("shfl.sync.up.b32 %d, %a, 4, 0, -1;", [](uint32_t i) { return i >= 4 ? i - 4 : i; });
  check("shfl.sync.idx.b32 %d, %a, 9, 31, -1;", [](uint32_t) { return 9; });
  // Segments of 8 lanes: segment mask 0x18 in bits 8 to 12.
  check("shfl.sync.idx.b32 %d, %a, 3, 0x181f, -1;", [](uint32_t i) { return i / 8 * 8 + 3; });
  check("shfl.sync.down.b32 %d|%p, %a, 4, 31, -1; selp.b32 %d, 1, 0, %p;", [](uint32_t i) { return i + 4 < 32; });
}

TEST(Warps, voteMatchAndReduce) {
  Words lanes(32);
  for (uint32_t i = 0; i < 32; ++i) {
    lanes[i] = i;
  }
  EXPECT_EQ(evaluate("setp.lt.u32 %p, %a, 5; vote.sync.ballot.b32 %d, %p, -1;", lanes)[7], 31u);
  EXPECT_EQ(evaluate("setp.lt.u32 %p, %a, 5; vote.sync.any.pred %q, %p, -1; selp.b32 %d, 1, 0, %q;", lanes)[7], 1u);
  EXPECT_EQ(evaluate("setp.lt.u32 %p, %a, 5; vote.sync.all.pred %q, %p, -1; selp.b32 %d, 1, 0, %q;", lanes)[7], 0u);
  EXPECT_EQ(evaluate("redux.sync.add.s32 %d, %a, -1;", lanes)[3], 496u);
  EXPECT_EQ(evaluate("redux.sync.max.u32 %d, %a, -1;", lanes)[3], 31u);
  EXPECT_EQ(evaluate("and.b32 %x, %a, 3; match.any.sync.b32 %d, %x, -1;", lanes)[1], 0x22222222u);
  EXPECT_EQ(evaluate("match.all.sync.b32 %d|%p, %b, -1; selp.b32 %d, %d, 0, %p;", lanes)[1], ~0u);
  EXPECT_EQ(evaluate("activemask.b32 %d;", lanes)[0], ~0u);
}

TEST(Warps, convergeAfterBranches) {
  // Lanes run loops of different lengths and reconverge: the sum over all lanes of 1 + .. + lane.
  Words lanes(32);
  for (uint32_t i = 0; i < 32; ++i) {
    lanes[i] = i;
  }
  Words result = evaluate(R"(
    mov.u32 %d, 0; mov.u32 %x, %a;
$loop:
    setp.eq.u32 %p, %x, 0; @%p bra $done;
    add.u32 %d, %d, %x; sub.u32 %x, %x, 1; bra $loop;
$done:
    redux.sync.add.s32 %y, %d, -1;
    mad.lo.u32 %d, %y, 1000, %d;)",
                          lanes);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(result[i], 5456000 + i * (i + 1) / 2);
  }
}

} // namespace
} // namespace ptx::test
