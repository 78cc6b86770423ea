//===- RoundedGate_test.cpp - Tests the error bounds of activation tables --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/RoundedGate.h"
#include "codegen/X86/RoundedPower.h"

#include "bmodel/numerics_float.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;
using bmodel::numerics::Single;

namespace {

/// Computes the activation as the scalar regions do, rounded step by step.
float exactGate(GateKind kind, float value) {
  Single x{value}, half = Single{0.5f} * x, one{1.0f};
  if (kind == GateKind::Silu) {
    return (x * bmodel::numerics::sigmoid(x)).v;
  }
  if (kind == GateKind::Gelu) {
    return (half * (one + bmodel::numerics::erf(x * Single{0.707106769f}))).v;
  }
  Single cube = Single{0.044715f} * (x * (x * x));
  return (half * (one + bmodel::numerics::tanh(Single{0.797884583f} * (x + cube)))).v;
}

/// Returns the largest error of |table| as a share of table.error, over arguments of all magnitudes whose results are
/// in [-512, 512].
double shareUsed(GateKind kind, const GateTable &table, std::mt19937 &random, int64_t count) {
  double share = 0;
  float end = 512 / table.factor, divisor = 1 / table.factor;
  for (int64_t i = 0; i < count; ++i) {
    float unit = float(random()) * 0x1p-31f - 1;
    float x = i % 4 == 0   ? unit * end
              : i % 4 == 1 ? unit * table.reach * 1.01f
              : i % 4 == 2 ? std::copysign(table.reach, unit) + unit * 0.01f
                           : std::copysign(std::exp2(unit * 30), unit);
    float expected = exactGate(kind, x) / divisor;
    if (std::fabs(expected) <= 512) {
      share = std::max(share, std::fabs(double(table.value(x)) - expected) / table.error);
    }
  }
  return share;
}

TEST(RoundedGate, TablesAreAsNearAsTheySay) {
  std::mt19937 random(3);
  int result = 0;
  for (GateKind kind : {GateKind::Gelu, GateKind::GeluTanh, GateKind::Silu}) {
    for (int i = 0; i < 16; ++i) {
      float divisor = std::exp2(float(random() % 1000) / 1000 * 14 - 10);
      if (std::optional<GateTable> table = GateTable::make(kind, 1 / divisor)) {
        EXPECT_LT(shareUsed(kind, *table, random, 40000), 1) << "kind " << int(kind) << ", scale " << divisor;
        ++result;
      }
    }
  }
  EXPECT_GE(result, 40);
}

TEST(RoundedPower, IsAsNearAsItSays) {
  std::mt19937 random(5);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    float unit = float(random()) * 0x1p-32f, x = i % 2 ? -20 * unit : -std::exp2(40 * unit - 30);
    int64_t levels = i % 3 ? 255 : 1 + i % 255;
    float exact = bmodel::numerics::expOfNegative(Single{x}).v * float(levels);
    worst = std::max(worst, std::fabs(double(nearPower(x, levels)) - exact));
  }
  EXPECT_LT(worst, kPowerError / 1.5);
  EXPECT_GT(worst, kPowerError / 16);
  EXPECT_EQ(nearPower(-std::numeric_limits<float>::infinity(), 255), nearPower(-1000, 255));
}

/// Tests that there is no table if a quantisation step is as small as the error of the table.
TEST(RoundedGate, RejectsFineSteps) {
  EXPECT_TRUE(GateTable::make(GateKind::Gelu, 100));
  EXPECT_FALSE(GateTable::make(GateKind::Gelu, 1e6f));
  EXPECT_FALSE(GateTable::make(GateKind::Silu, 1e5f));
  EXPECT_FALSE(GateTable::make(GateKind::Gelu, -1));
}

} // namespace
