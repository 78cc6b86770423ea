//===- WidenedMatMul_test.cpp - Matmuls of f32 and narrow weights ---------===//
// SPDX-License-Identifier: Apache-2.0
//
// Compares matmuls whose weights are integers with scales, f16 or bf16 with the reference, for known and open rows.
// Many rows read panels that were widened to scratch, few rows widen them in registers. Every operand is a small
// integer times a power of two and every sum is exact, so results must be bit-equal in any order. TESSERA_QUANT_CASES=N
// runs N random cases instead of the default few.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelHarness.h"

#include "top_dialect/IR/NarrowFloats.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

enum class Weights { Nibbles, Bytes, F16, BF16 };

struct WidenedCase {
  int64_t rows = 1, depth = 64, columns = 32, group = 32;
  Weights weights = Weights::Nibbles;
  bool transposed = false, residual = false;
  const char *x = "f32";

  bool isScaled() const { return weights == Weights::Nibbles || weights == Weights::Bytes; }
};

/// Returns the text of a case as checkPackedKernel() takes it: x, w, bias [, residual] [, scales].
std::string textOf(const WidenedCase &c) {
  const char *element = c.isScaled() ? "i8" : c.weights == Weights::F16 ? "f16" : "bf16";
  std::string x = tensorText({c.rows, c.depth}, c.x), y = tensorText({c.rows, c.columns}, "f32"),
              w = c.transposed ? tensorText({c.columns, c.depth}, element) : tensorText({c.depth, c.columns}, element),
              bias = tensorText({c.columns}, "f32"),
              scales = tensorText({int64_t(llvm::divideCeil(c.depth, c.group)), c.columns}, "f32");
  std::string arguments = "%x: " + x + ", %w: " + w + ", %b: " + bias, types = x + ", " + w + ", " + bias;
  std::string extras, region = "^bb0(%acc: f32): device.yield %acc : f32", attributes = "transB = ";
  attributes += c.transposed ? "true" : "false";
  if (c.residual) {
    arguments += ", %r: " + y, types += ", " + y, extras = "extras(%r) ";
    region = "^bb0(%acc: f32, %v: f32): %z = arith.addf %acc, %v : f32 device.yield %z : f32";
  }
  if (c.isScaled()) {
    arguments += ", %s: " + scales, types += ", " + scales;
    attributes += formatv(", weightGroup = {0} : i64", c.group);
  }
  return formatv("({0}) -> {1} {{ %y = device.matmul %x, %w {2}bias %b {3}epilogue {{ {4} } {{{5}} : ({6}) -> {1} "
                 "return %y : {1} }",
                 arguments, y, c.isScaled() ? "scales %s " : "", extras, region, attributes, types)
      .str();
}

template <typename T>
llvm::MutableArrayRef<T> of(tessera::top::HostTensor &tensor) {
  return {reinterpret_cast<T *>(tensor.getBytes().data()), size_t(tensor.getNumElements())};
}

/// Fills |tensor|, of floats, with the numbers that |draw| returns.
template <typename Draw>
void fillFloats(tessera::top::HostTensor &tensor, Draw draw) {
  const mlir::Type element = tensor.getElementType();
  if (element.isF32()) {
    for (float &value : of<float>(tensor)) {
      value = draw();
    }
    return;
  }
  for (uint16_t &value : of<uint16_t>(tensor)) {
    value = element.isF16() ? tessera::top::roundToF16(draw()) : tessera::top::roundToBf16(draw());
  }
}

void fill(const WidenedCase &c, uint64_t seed, llvm::MutableArrayRef<tessera::top::HostTensor> inputs) {
  std::mt19937_64 random(seed);
  auto integer = [&] { return float(int64_t(random() % 17) - 8); };
  for (auto [index, input] : llvm::enumerate(inputs)) {
    const bool isScales = c.isScaled() && index + 1 == inputs.size();
    if (!input.getElementType().isInteger(8)) {
      fillFloats(input, [&] { return isScales ? std::ldexp(1.0f, int(random() % 4) - 2) : integer(); });
      continue;
    }
    for (int8_t &value : of<int8_t>(input)) {
      const auto bits = int(random() % 256);
      value = int8_t(c.weights == Weights::Nibbles ? bits % 16 - 8 : bits - 128);
    }
  }
}

void check(const WidenedCase &c, uint64_t seed) {
  const std::string text = textOf(c);
  CheckOptions options;
  options.relative = 0;
  options.overwrite = [&](auto inputs) { fill(c, seed, inputs); };
  const auto targets = targetsFor(text);
  for (const X86Target &target : targets) {
    EXPECT_EQ(checkPackedKernel(text, target, options), "") << target.name().str() << " seed " << seed << "\n" << text;
  }
  options.fewLikelyRows = seed % 2;
  for (const X86Target &target : openTargetsOf(targets, text)) {
    EXPECT_EQ(checkOpenPackedKernel(text, target, options), "") << target.name().str() << " open, seed " << seed << "\n"
                                                                << text;
  }
}

WidenedCase draw(std::mt19937_64 &random) {
  auto pick = [&](std::initializer_list<int64_t> values) { return *(values.begin() + random() % values.size()); };
  WidenedCase c;
  c.weights = Weights(random() % 4);
  c.rows = random() % 2 ? int64_t(1 + random() % 9) : int64_t(10 + random() % 140);
  c.group = pick({32, 32, 16, 64, 128, 1024});
  c.depth = random() % 2 ? 16 * int64_t(1 + random() % 10) : int64_t(1 + random() % 150);
  c.columns = random() % 2 ? 16 * int64_t(1 + random() % 6) : int64_t(1 + random() % 90);
  c.transposed = random() % 2, c.residual = random() % 2;
  c.x = c.isScaled() || random() % 2 ? "f32" : c.weights == Weights::F16 ? "f16" : "f32";
  return c;
}

TEST(WidenedMatMul, ManyRows) {
  for (Weights weights : {Weights::Nibbles, Weights::Bytes, Weights::F16, Weights::BF16}) {
    check({43, 100, 40, 32, weights, /*transposed=*/true, /*residual=*/true}, 1);
  }
}

/// Tests one kernel with an open number of rows at few rows and at many.
TEST(WidenedMatMul, OpenRows) {
  for (Weights weights : {Weights::Nibbles, Weights::Bytes, Weights::F16, Weights::BF16}) {
    const WidenedCase c{150, 70, 72, 32, weights, /*transposed=*/false, /*residual=*/true};
    CheckOptions options;
    options.relative = 0, options.fewLikelyRows = true;
    options.overwrite = [&](auto inputs) { fill(c, 1, inputs); };
    for (const X86Target &target : targetsFor(textOf(c))) {
      EXPECT_EQ(checkOpenPackedKernel(textOf(c), target, options), "") << target.name().str() << "\n" << textOf(c);
    }
  }
}

TEST(WidenedMatMul, Random) {
  constexpr int64_t kUsual = 12;
  const char *count = getenv("TESSERA_QUANT_CASES");
  for (int64_t seed = 0; seed < (count ? atoll(count) : kUsual); ++seed) {
    std::mt19937_64 random(seed);
    check(draw(random), seed);
  }
}

} // namespace
