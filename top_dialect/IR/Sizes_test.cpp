//===- Sizes_test.cpp - Unknown sizes never compare equal -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace tessera {
namespace {

constexpr int64_t kUnknown = ShapedType::kDynamic;

// A comparison with == would take two unknown sizes for equal, so it must not compile.
static_assert(!std::equality_comparable<Dim> && !std::equality_comparable_with<Dim, int64_t>);
static_assert(!std::equality_comparable<Shape> && !std::equality_comparable_with<Shape, ArrayRef<int64_t>>);

TEST(Sizes, UnknownSizesAreNeverTheSame) {
  EXPECT_TRUE(sameSize(Dim(3), Dim(3)));
  EXPECT_FALSE(sameSize(Dim(3), Dim(4)));
  EXPECT_FALSE(sameSize(Dim(kUnknown), Dim(kUnknown)));
  EXPECT_FALSE(sameSize(Dim(kUnknown), Dim(3)));
  EXPECT_FALSE(sameSize(Dim(3), Dim(kUnknown)));
  EXPECT_TRUE(Dim(3).is(3));
  EXPECT_FALSE(Dim(kUnknown).is(kUnknown));
}

TEST(Sizes, ShapesAreTheSameIfAllSizesAreKnown) {
  SmallVector<int64_t> a = {2, 3}, b = {2, kUnknown}, c = {2, 3, 1};
  EXPECT_TRUE(sameSizes(a, a));
  EXPECT_FALSE(sameSizes(a, b));
  EXPECT_FALSE(sameSizes(b, b));
  EXPECT_FALSE(sameSizes(a, c));
  EXPECT_TRUE(sameSizes(a, Shape(c).dropBack()));
  EXPECT_TRUE(sameSizes(Shape(b).dropBack(), Shape(a).dropBack()));
  EXPECT_FALSE(sameSizes(Shape(b).dropFront(), Shape(b).dropFront()));
}

TEST(Sizes, NumberOfElements) {
  MLIRContext context;
  Type element = Builder(&context).getF32Type();
  EXPECT_EQ(knownNumElements(RankedTensorType::get({2, 3}, element)), 6);
  EXPECT_EQ(knownNumElements(RankedTensorType::get({0, 3}, element)), 0);
  EXPECT_EQ(knownNumElements(RankedTensorType::get({}, element)), 1);
  EXPECT_EQ(knownNumElements(RankedTensorType::get({2, kUnknown}, element)), std::nullopt);
  EXPECT_EQ(numElements(RankedTensorType::get({4, 5}, element)), 20);
}

} // namespace
} // namespace tessera
