//===- SmallFloat_test.cpp - f16 and bf16 conversions ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/Reference/SmallFloat.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

using namespace tessera::top::reference;

namespace {

/// Returns `value` as LLVM's software float rounds it.
uint16_t roundedByLlvm(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

template <typename Float>
void checkAllPatterns(const llvm::fltSemantics &semantics) {
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    Float number;
    number.bits = static_cast<uint16_t>(pattern);
    auto value = static_cast<double>(number);
    llvm::APFloat expected(semantics, llvm::APInt(16, pattern));
    ASSERT_EQ(std::isnan(value), expected.isNaN()) << pattern;
    if (std::isnan(value)) {
      continue;
    }
    EXPECT_EQ(value, expected.convertToDouble()) << pattern;
    EXPECT_EQ(Float(value).bits, pattern);
    // Test values between two neighbours: below, at and above the middle.
    if (std::isfinite(value)) {
      for (double factor : {1 + 0x1p-12, 1 + 0x1p-9, 1 + 0x1p-8, 1 - 0x1p-13, 1 + 0x1p-30}) {
        EXPECT_EQ(Float(value * factor).bits, roundedByLlvm(value * factor, semantics)) << pattern;
      }
    }
  }
}

TEST(SmallFloat, ConvertsEveryHalf) { checkAllPatterns<Float16>(llvm::APFloat::IEEEhalf()); }

TEST(SmallFloat, ConvertsEveryBfloat) { checkAllPatterns<BFloat16>(llvm::APFloat::BFloat()); }

/// Checks that the fast conversions on bits of f32 agree with the obvious ones, ties included.
template <typename Float>
void checkFast(float (*widen)(uint16_t), uint16_t (*round)(float)) {
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    Float number;
    number.bits = static_cast<uint16_t>(pattern);
    auto value = static_cast<double>(number);
    float wide = widen(number.bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(wide)) << pattern;
      EXPECT_EQ(round(wide) & 0x8000, pattern & 0x8000) << pattern;
      continue;
    }
    EXPECT_EQ(wide, value) << pattern;
    EXPECT_EQ(round(wide), pattern);
    // Test all eighths up to the next number, including the middle.
    for (int eighth = -7; std::isfinite(wide) && eighth < 8; ++eighth) {
      Float next;
      next.bits = static_cast<uint16_t>(pattern ^ 1);
      float between = static_cast<float>(value + (static_cast<double>(next) - value) * eighth / 8);
      if (std::isfinite(between)) {
        EXPECT_EQ(round(between), Float(between).bits) << pattern << " " << eighth;
      }
    }
  }
}

TEST(SmallFloat, FastConversionsAgree) {
  checkFast<Float16>(tessera::top::widenF16, tessera::top::roundToF16);
  checkFast<BFloat16>(tessera::top::widenBf16, tessera::top::roundToBf16);
}

TEST(SmallFloat, KeepsNan) {
  EXPECT_TRUE(std::isnan(static_cast<double>(Float16(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<double>(BFloat16(std::nan("")))));
}

TEST(SmallFloat, OverflowsToInfinity) {
  EXPECT_EQ(Float16(65520.0).bits, 0x7c00);
  EXPECT_EQ(Float16(-1e300).bits, 0xfc00);
  EXPECT_EQ(Float16(65519.0).bits, 0x7bff);
}

} // namespace
