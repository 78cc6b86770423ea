//===- BlockMatMul_test.cpp - Matmuls of quantised rows and blocks of weights ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Compares the micro-kernel and the loop kernel with the reference bit by bit, on every variant, for known and for open
// rows. TESSERA_QUANT_CASES=N runs N random cases instead of the default few.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelHarness.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using llvm::formatv;

namespace {

enum class Weights { Nibbles, SignedNibbles, Bytes };
enum class Epilogue { None, Column, Full, Row };

struct BlockCase {
  std::vector<int64_t> leading; ///< batch dims and rows
  int64_t depth = 64, columns = 32, block = 32;
  Weights weights = Weights::Nibbles;
  Epilogue epilogue = Epilogue::None;
  bool mins = false, halves = true;
  bool specials = false; ///< rows contain blocks of zeros, tiny and huge numbers, infinities and NaN
  bool extremes = false; ///< rows and weights are mostly the largest integers, so that sums are as large as possible
};

/// Returns the text of a case as checkKernel() takes it.
std::string textOf(const BlockCase &c) {
  std::vector<int64_t> xDims = c.leading, yDims = c.leading;
  xDims.push_back(c.depth), yDims.push_back(c.columns);
  std::string x = tensorText(xDims, "f32"), y = tensorText(yDims, "f32"), w = tensorText({c.depth, c.columns}, "i8"),
              scale = tensorText({int64_t(llvm::divideCeil(c.depth, c.block)), c.columns}, "f32");
  std::string arguments = "%x: " + x + ", %w: " + w + ", %s: " + scale, types = x + ", " + w + ", " + scale;
  std::string op = "%y = device.block_matmul %x, %w scales %s ";
  if (c.mins) {
    arguments += ", %m: " + scale, types += ", " + scale, op += "mins %m ";
  }
  if (c.epilogue != Epilogue::None) {
    std::vector<int64_t> dims = yDims;
    if (c.epilogue == Epilogue::Column) {
      dims = {c.columns};
    } else if (c.epilogue == Epilogue::Row) {
      dims.back() = 1;
    }
    std::string extra = tensorText(dims, "f32");
    arguments += ", %e: " + extra, types += ", " + extra;
    op += "extras(%e) epilogue { ^bb0(%acc: f32, %v: f32): %z = arith.constant 0.0 : f32 %sum = arith.addf %acc, %v "
          ": f32 %r = arith.maximumf %sum, %z : f32 device.yield %r : f32 } ";
  }
  return formatv("({0}) -> {1} {{ {2} {{block = {3} : i64} : ({4}) -> {1} return %y : {1} }", arguments, y, op, c.block,
                 types)
      .str();
}

/// Fills the weights, scales, mins and rows of a case.
class Numbers {
public:
  Numbers(const BlockCase &c, uint64_t seed) : c(c), random(seed) {}

  void fill(llvm::MutableArrayRef<tessera::top::HostTensor> inputs) {
    fillWeights(of<int8_t>(inputs[1]));
    fillScales(of<float>(inputs[2]));
    if (c.mins) {
      fillScales(of<float>(inputs[3]));
    }
    if (c.specials) {
      fillRows(of<float>(inputs[0]));
    }
    if (c.extremes) {
      fillExtremes(of<float>(inputs[0]), of<int8_t>(inputs[1]));
    }
  }

private:
  template <typename T>
  static llvm::MutableArrayRef<T> of(tessera::top::HostTensor &tensor) {
    return {reinterpret_cast<T *>(tensor.getBytes().data()), size_t(tensor.getNumElements())};
  }

  void fillWeights(llvm::MutableArrayRef<int8_t> values) {
    for (int8_t &value : values) {
      const auto bits = int(random() % 256);
      value = int8_t(c.weights == Weights::Nibbles         ? bits % 16
                     : c.weights == Weights::SignedNibbles ? bits % 16 - 8
                     : random() % 4                        ? bits - 128
                     : random() % 2                        ? -128
                                                           : 127);
    }
  }

  void fillScales(llvm::MutableArrayRef<float> values) {
    for (float &value : values) {
      // A number of eleven bits between 0 and 1 is an f16.
      value = float(random() % 2048) / 2048 * (random() % 2 ? 1.0f : -0.125f);
      value = random() % 16 == 0 ? 0 : c.halves ? value : value * 1.0001f;
    }
  }

  /// Draws rows whose blocks are as large as the weights' blocks, but begin anywhere.
  void fillRows(llvm::MutableArrayRef<float> values) {
    constexpr float kFactors[] = {0.0f, 0x1p-121f, 0x1p-119f, 0x1p-140f, 0x1p100f, 1, 1, 1, 1, 1, 1, 1};
    const size_t length = std::min(c.block, c.depth);
    for (size_t first = 0; first < values.size(); first += length) {
      const float factor = kFactors[random() % std::size(kFactors)];
      for (float &value : values.slice(first, std::min(length, values.size() - first))) {
        value = factor * (float(random() % 2001) / 1000 - 1);
      }
      if (random() % 24 == 0) {
        const float infinity = std::numeric_limits<float>::infinity();
        values[first] = random() % 2 ? -infinity : std::numeric_limits<float>::quiet_NaN();
      }
    }
  }

  /// Draws rows of -1 and 1, which become -127 and 127, and weights of the largest or smallest number. Signs change so
  /// rarely that whole blocks have the same one.
  void fillExtremes(llvm::MutableArrayRef<float> rows, llvm::MutableArrayRef<int8_t> weights) {
    const bool isNibble = c.weights != Weights::Bytes, isSigned = c.weights == Weights::SignedNibbles;
    const int8_t low = isNibble ? (isSigned ? -8 : 0) : -128, high = isNibble ? (isSigned ? 7 : 15) : 127;
    float sign = 1;
    for (float &value : rows) {
      sign = random() % 100 ? sign : -sign;
      value = sign;
    }
    for (int8_t &weight : weights) {
      weight = random() % 16 ? high : low;
    }
  }

  const BlockCase &c;
  std::mt19937_64 random;
};

void check(const BlockCase &c, uint64_t seed) {
  const std::string text = textOf(c);
  const bool isPacked = c.block % 16 == 0 && c.block <= 256;
  CheckOptions options;
  options.relative = 0;
  options.overwrite = [&](auto inputs) { Numbers(c, seed).fill(inputs); };
  const auto targets = targetsFor(text);
  for (const X86Target &target : targets) {
    const bool packs = isPacked && target.hasFma();
    EXPECT_EQ(packs ? checkPackedKernel(text, target, options) : checkKernel(text, target, options), "")
        << target.name().str() << (target.vnni ? " vnni" : "") << " seed " << seed << "\n"
        << text;
  }
  for (const X86Target &target : openTargetsOf(targets, text)) {
    const bool packs = isPacked && target.hasFma();
    EXPECT_EQ(packs ? checkOpenPackedKernel(text, target, options) : checkOpenKernel(text, target, options), "")
        << target.name().str() << (target.vnni ? " vnni" : "") << " open, seed " << seed << "\n"
        << text;
  }
}

BlockCase draw(std::mt19937_64 &random) {
  auto pick = [&](std::initializer_list<int64_t> values) { return *(values.begin() + random() % values.size()); };
  BlockCase c;
  c.block = pick({32, 32, 32, 16, 48, 64, 128, 256, 24, 5});
  c.depth = random() % 2 ? c.block * int64_t(1 + random() % 3) : int64_t(1 + random() % 150);
  c.columns = random() % 2 ? 16 * int64_t(1 + random() % 4) : int64_t(1 + random() % 70);
  const int64_t rows = random() % 4 ? int64_t(1 + random() % 9) : int64_t(10 + random() % 70);
  c.leading = random() % 3 ? std::vector<int64_t>{rows} : std::vector<int64_t>{int64_t(1 + random() % 3), rows};
  c.weights = Weights(random() % 3);
  c.epilogue = Epilogue(random() % 4);
  c.mins = random() % 2, c.halves = random() % 2, c.specials = random() % 4 == 0;
  c.extremes = !c.specials && random() % 3 == 0;
  return c;
}

TEST(BlockMatMul, Forms) {
  check({{3}, 100, 40, 32, Weights::Nibbles, Epilogue::Column, /*mins=*/true, /*halves=*/true}, 1);
  check({{1}, 40, 24, 32, Weights::SignedNibbles, Epilogue::None, /*mins=*/false, /*halves=*/false}, 2);
  check({{2}, 70, 16, 64, Weights::Bytes, Epilogue::Row, /*mins=*/true, /*halves=*/false}, 3);
}

TEST(BlockMatMul, ManyRows) { check({{2, 37}, 96, 48, 32, Weights::Nibbles, Epilogue::Full, true}, 2); }

TEST(BlockMatMul, SpecialRows) {
  check({{40}, 160, 17, 32, Weights::SignedNibbles, Epilogue::None, true, true, /*specials=*/true}, 3);
}

/// Tests the largest sums of integers, which partial sums of 16 bits must hold, in few and many rows.
TEST(BlockMatMul, Extremes) {
  for (Weights weights : {Weights::Nibbles, Weights::SignedNibbles, Weights::Bytes}) {
    BlockCase c{{weights == Weights::Bytes ? 3 : 21}, 160, 24, 32, weights};
    c.extremes = true;
    check(c, 4);
  }
}

TEST(BlockMatMul, Random) {
  constexpr int64_t kUsual = 6;
  const char *count = getenv("TESSERA_QUANT_CASES");
  for (int64_t seed = 0; seed < (count ? atoll(count) : kUsual); ++seed) {
    std::mt19937_64 random(seed);
    check(draw(random), seed);
  }
}

} // namespace
