//===- SmallFloat_test.cpp - f16 and bf16 conversions ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Reference/SmallFloat.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"

using namespace tessera::top::reference;

namespace {

/// What LLVM's soft float makes of `value`.
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
    // Between two neighbours: below, at and above the middle.
    if (std::isfinite(value)) {
      for (double factor : {1 + 0x1p-12, 1 + 0x1p-9, 1 + 0x1p-8, 1 - 0x1p-13, 1 + 0x1p-30}) {
        EXPECT_EQ(Float(value * factor).bits, roundedByLlvm(value * factor, semantics)) << pattern;
      }
    }
  }
}

TEST(SmallFloat, ConvertsEveryHalf) { checkAllPatterns<Float16>(llvm::APFloat::IEEEhalf()); }

TEST(SmallFloat, ConvertsEveryBfloat) { checkAllPatterns<BFloat16>(llvm::APFloat::BFloat()); }

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
