//===- FloatKernel_test.cpp - Contractions of 16-bit floats ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Compares packed convolutions and matmuls whose operands, weights, residuals and results are f32, f16 or bf16 with the
// reference evaluation of the logical op, which sums in double.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelHarness.h"

#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

/// Element types of a contraction; |residual| may be empty.
struct Types {
  std::string x, w, residual, y;
};

/// Returns the text of an epilogue that computes relu(acc + residual), rounded to y.
std::string epilogue(const Types &types) {
  std::string text = "^bb0(%acc: f32" + (types.residual.empty() ? "" : ", %r: " + types.residual) + "): ";
  std::string sum = "%acc";
  if (!types.residual.empty() && types.residual != "f32") {
    text += "%rw = arith.extf %r : " + types.residual + " to f32 %s = arith.addf %acc, %rw : f32 ";
    sum = "%s";
  } else if (!types.residual.empty()) {
    text += "%s = arith.addf %acc, %r : f32 ";
    sum = "%s";
  }
  text += "%z = arith.constant 0.0 : f32 %m = arith.maximumf " + sum + ", %z : f32 ";
  if (types.y == "f32") {
    return text + "device.yield %m : f32";
  }
  return text + "%t = arith.truncf %m : f32 to " + types.y + " device.yield %t : " + types.y;
}

std::string opText(const std::string &name, const Types &types, const std::string &x, const std::string &w,
                   const std::string &bias, const std::string &y, const std::string &attributes) {
  std::string residual = types.residual.empty() ? "" : y.substr(0, y.rfind('x') + 1) + types.residual + ">";
  std::string arguments, operands = "%x, %w bias %b", list;
  if (!residual.empty()) {
    arguments = ", %d: " + residual, operands += " extras(%d)", list = ", " + residual;
  }
  return formatv("(%x: {0}, %w: {1}, %b: {2}{3}) -> {4} {{ %y = device.{5} {6} epilogue {{ {7} } {{ {8} } : ({0}, {1}, "
                 "{2}{9}) -> {4} return %y : {4} }",
                 x, w, bias, arguments, y, name, operands, epilogue(types), attributes, list)
      .str();
}

struct ConvCase {
  int64_t n, c, h, w, oc, k, stride, dilation, pad, groups;
};

std::string convText(const ConvCase &s, const Types &types) {
  auto out = [&](int64_t size) { return (size + 2 * s.pad - s.dilation * (s.k - 1) - 1) / s.stride + 1; };
  std::string attributes = formatv(
      "strides = array<i64: {0}, {0}>, pads = array<i64: {1}, {1}, {1}, {1}>, dilations = array<i64: {2}, {2}>, "
      "groups = {3} : i64",
      s.stride, s.pad, s.dilation, s.groups);
  return opText("conv", types, tensorText({s.n, s.c, s.h, s.w}, types.x),
                tensorText({s.oc, s.c / s.groups, s.k, s.k}, types.w), tensorText({s.oc}, "f32"),
                tensorText({s.n, s.oc, out(s.h), out(s.w)}, types.y), attributes);
}

std::string matMulText(int64_t m, int64_t k, int64_t n, bool transposed, const Types &types) {
  return opText("matmul", types, tensorText({m, k}, types.x),
                transposed ? tensorText({n, k}, types.w) : tensorText({k, n}, types.w), tensorText({n}, "f32"),
                tensorText({m, n}, types.y), transposed ? "transB = true" : "");
}

/// Returns the relative error of a result of type |y| that is rounded to the other neighbour.
double relativeError(const std::string &y) { return y == "bf16" ? 8e-3 : y == "f16" ? 1e-3 : 1e-5; }

void check(const std::string &text, double relative) {
  CheckOptions options;
  options.low = -1, options.high = 1, options.relative = relative;
  llvm::SmallVector<X86Target> targets = targetsFor(text);
  for (const X86Target &target : targets) {
    EXPECT_EQ(checkPackedKernel(text, target, options), "") << target.name().str() << "\n" << text;
  }
  for (const X86Target &target : openTargetsOf(targets, text)) {
    EXPECT_EQ(checkOpenPackedKernel(text, target, options), "") << target.name().str() << "\n" << text;
  }
}

const Types kTypes[] = {{"bf16", "bf16", "", "bf16"}, {"f16", "f16", "f16", "f16"},   {"f32", "bf16", "bf16", "f32"},
                        {"f16", "f16", "f32", "f32"}, {"bf16", "f32", "bf16", "f16"}, {"f32", "f16", "f32", "bf16"}};

TEST(NarrowConv, Shapes) {
  for (const Types &types : kTypes) {
    double relative = relativeError(types.y);
    check(convText({1, 32, 7, 9, 48, 1, 1, 1, 0, 1}, types), relative);  // positions in one row
    check(convText({2, 67, 5, 11, 33, 1, 1, 1, 0, 1}, types), relative); // with channel tails
    check(convText({1, 64, 7, 7, 64, 1, 2, 1, 0, 1}, types), relative);
    check(convText({1, 3, 21, 23, 16, 7, 2, 1, 3, 1}, types), relative); // rows of an image
    check(convText({1, 19, 6, 5, 37, 3, 2, 1, 1, 1}, types), relative);
    check(convText({1, 17, 13, 9, 24, 3, 1, 2, 2, 1}, types), relative);
    check(convText({1, 64, 8, 8, 64, 3, 2, 1, 1, 2}, types), relative);
    check(convText({1, 35, 13, 37, 35, 3, 1, 1, 1, 35}, types), relative); // depthwise
    check(convText({1, 16, 9, 16, 16, 5, 2, 1, 2, 16}, types), relative);
  }
}

/// Allowed error of Winograd. Each sum has some hundred to a thousand products of numbers up to 1, and sums spread by 5
/// to 12. The transformed weights of F(2 x 2), rounded to 11 bits, change sums by 3e-4 of that, at most five times as
/// much.
constexpr double kWinogradError = 0.02;

TEST(NarrowConv, Winograd) {
  for (const Types &types : llvm::ArrayRef(kTypes).take_front(3)) {
    check(convText({1, 128, 28, 28, 128, 3, 1, 1, 1, 1}, types), kWinogradError);
    check(convText({1, 40, 15, 33, 72, 3, 1, 1, 1, 1}, types), kWinogradError);
  }
}

TEST(NarrowConv, Random) {
  std::mt19937 random(5);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0; i < 16; ++i) {
    ConvCase s{pick(1, 2), pick(1, 67), pick(7, 16), pick(7, 40), pick(1, 67),
               pick(1, 3), pick(1, 2),  pick(1, 2),  pick(0, 2),  1};
    if (pick(0, 3) == 0) {
      s.groups = s.oc = s.c;
    }
    const char *names[] = {"f32", "bf16", "f16"};
    Types types{names[pick(0, 2)], names[pick(0, 2)], pick(0, 1) ? names[pick(0, 2)] : "", names[pick(0, 2)]};
    bool maybeWinograd = s.k == 3 && s.stride == 1 && s.dilation == 1;
    check(convText(s, types), maybeWinograd ? kWinogradError : relativeError(types.y));
  }
}

/// Tests kernels whose outer taps see only padding zeros at many positions; the tiles of these positions skip such
/// taps.
TEST(NarrowConv, FarTaps) {
  std::mt19937 random(3);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0; i < 16; ++i) {
    ConvCase s{pick(1, 2), pick(16, 50), pick(5, 26), pick(15, 40), pick(10, 67), 3, pick(0, 3) ? 1 : 2, pick(3, 16), 0,
               1};
    s.pad = std::max<int64_t>(s.dilation - pick(-2, 2), (2 * s.dilation + 1 - s.h) / 2 + 1);
    const char *names[] = {"f32", "bf16", "f16"};
    Types types{names[pick(0, 2)], names[pick(0, 2)], pick(0, 1) ? names[pick(0, 2)] : "", names[pick(0, 2)]};
    if (i % 2) {
      types.x = types.w = "f32";
    }
    check(convText(s, types), relativeError(types.y));
  }
}

TEST(NarrowMatMul, Shapes) {
  for (const Types &types : kTypes) {
    for (int64_t k : {1, 17, 64, 131}) {
      for (int64_t n : {1, 16, 33, 70}) {
        check(matMulText(1 + (k + n) % 31, k, n, n % 2, types), relativeError(types.y));
      }
    }
  }
}

/// Tests matmuls whose rows of A are whole pages apart. The kernel copies them so that they do not share cache sets,
/// and splits the work by rows, or by columns as well.
TEST(NarrowMatMul, RowsOfPages) {
  for (const Types &types : {Types{"f32", "f32", "f32", "f32"}, Types{"bf16", "bf16", "", "bf16"}}) {
    check(matMulText(42, 1024, 225, true, types), relativeError(types.y) * 10);
    check(matMulText(16, 2048, 480, false, types), relativeError(types.y) * 10);
  }
}

/// Checks sums of products of bf16 pairs, which no epilogue rounds or changes, bit by bit against docs/numerics.md.
void checkPairs(const std::string &text, double largest) {
  CheckOptions options;
  options.low = -largest, options.high = largest, options.relative = 0, options.exactPairs = true;
  for (bool amx : {false, true}) {
    const X86Target target{Isa::Avx512, /*vnni=*/true, /*bf16=*/true, amx};
    if (!amx || X86Target::native().amx) {
      EXPECT_EQ(checkPackedKernel(text, target, options), "") << (amx ? "tiles\n" : "vectors\n") << text;
    }
  }
}

/// Largest operand magnitudes: huge ones, and ones whose products or operands lie around the smallest normal number.
constexpr double kLargest[] = {1, 3e18, 2e-19, 4e-38};

std::string plain(const std::string &text) {
  std::string region = epilogue({"", "", "", "f32"});
  return std::string(text).replace(text.find(region), region.size(), "^bb0(%acc: f32): device.yield %acc : f32");
}

class Bf16Pairs : public testing::Test {
  void SetUp() override {
    if (!X86Target{Isa::Avx512, /*vnni=*/true, /*bf16=*/true}.runsHere()) {
      GTEST_SKIP() << "this machine does not multiply bf16";
    }
  }
};

TEST_F(Bf16Pairs, MatMul) {
  for (double largest : kLargest) {
    for (int64_t k : {1, 2, 17, 64, 131}) {
      for (int64_t n : {1, 16, 33, 70, 200}) {
        checkPairs(plain(matMulText(1 + (k + n) % 31, k, n, n % 2, {"bf16", "bf16", "", "f32"})), largest);
      }
    }
  }
}

TEST_F(Bf16Pairs, RowsOfPages) {
  for (auto [m, k] : {std::pair(42, 2048), {42, 2047}}) {
    checkPairs(plain(matMulText(m, k, 225, false, {"bf16", "bf16", "", "f32"})), 1);
  }
}

TEST_F(Bf16Pairs, Conv) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int64_t i = 0; i < 60; ++i) {
    ConvCase s{pick(1, 2), pick(16, 67), pick(7, 16), pick(7, 40), pick(1, 67),
               pick(1, 3), pick(1, 2),   pick(1, 2),  pick(0, 2),  1};
    if (i % 4 == 0) { // rows of an image
      s.c = pick(1, 4), s.k = pick(2, 5), s.dilation = 1;
    } else if (i % 4 == 1) {
      s.c = s.oc = 64, s.groups = pick(1, 2) * 2;
    }
    checkPairs(plain(convText(s, {"bf16", "bf16", "", "f32"})), kLargest[i % std::size(kLargest)]);
  }
}

/// Tests few and many rows; keys, depths and features below, at and beyond whole blocks; odd numbers of keys; a mask;
/// and depths that AMX takes in chunks of 64 bytes, of 32 bytes, or not at all.
TEST_F(Bf16Pairs, Attention) {
  CheckOptions options;
  options.relative = 1e-2; // powers have 8 bits
  for (auto [s, t, e, f] : {std::tuple(1, 1, 2, 1),
                            {5, 7, 10, 3},
                            {33, 41, 64, 64},
                            {4, 100, 32, 16},
                            {150, 33, 8, 24},
                            {29, 64, 18, 48},
                            {17, 70, 96, 80},
                            {45, 131, 16, 33}}) {
    auto tensor = [](llvm::ArrayRef<int64_t> shape, const char *element) { return tensorText(shape, element); };
    std::string q = tensor({2, 3, s, e}, "bf16"), k = tensor({2, 3, t, e}, "bf16"), v = tensor({2, 3, t, f}, "bf16"),
                m = tensor({2, 1, s, t}, "f32"), y = tensor({2, 3, s, f}, "f32");
    for (const std::string &text :
         {formatv("(%q: {0}, %k: {1}, %v: {2}, %m: {3}) -> {4} {{ %y = device.attention %q, %k, %v, %m {{scale = 0.3 : "
                  "f64} : ({0}, {1}, {2}, {3}) -> {4} return %y : {4} }",
                  q, k, v, m, y)
              .str(),
          formatv("(%q: {0}, %k: {1}, %v: {2}) -> {3} {{ %y = device.attention %q, %k, %v {{scale = 0.3 : f64} : ({0}, "
                  "{1}, {2}) -> {3} return %y : {3} }",
                  q, k, v, y)
              .str()}) {
      EXPECT_EQ(checkKernel(text, X86Target::native(), options), "") << text;
      EXPECT_EQ(checkKernel(text, {Isa::Avx512, /*vnni=*/true, /*bf16=*/true}, options), "") << "vectors\n" << text;
    }
  }
}

} // namespace
