//===- Sizes_test.cpp - Unknown sizes never compare equal -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

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

/// Sizes of three symbols, and the values of the symbols.
struct Algebra : testing::Test {
  Algebra() {
    context.loadDialect<top::TopDialect>();
    symbols = {Dim::symbol(&context, "batch", 0, 8, 4), Dim::symbol(&context, "h", 1, 40, 40),
               Dim::symbol(&context, "min", 3, 7, 7)};
  }
  Dim at(Dim size, ArrayRef<int64_t> values) {
    return substitute(size, [&](top::SizeSymbolAttr symbol) {
      return Dim(values[symbol.getName() == "batch" ? 0 : symbol.getName() == "h" ? 1 : 2]);
    });
  }
  RankedTensorType typeOf(Dim size) { return tensorType({size}, Float32Type::get(&context)); }

  MLIRContext context;
  std::vector<Dim> symbols;
};

TEST_F(Algebra, EqualPolynomialsAreTheSameSize) {
  Dim h = symbols[1], batch = symbols[0];
  EXPECT_TRUE(sameSize((h + 1) * (h - 1), h * h - 1));
  EXPECT_TRUE(sameSize(floorDiv(32 * h - 1, 2) + 1, 16 * h));
  EXPECT_TRUE(sameSize(floorDiv(floorDiv(h - 1, 2), 2), floorDiv(h - 1, 4)));
  EXPECT_TRUE(sameSize(floorDiv(batch * h * 512, batch * 8), 64 * h));
  EXPECT_TRUE(sameSize(floorDiv((batch + h) * 64, batch + h), 64));
  EXPECT_TRUE(sameSize(mod(6 * h + 7, 6), 1));
  EXPECT_TRUE(sameSize(min(h, h + batch), h));
  EXPECT_TRUE(sameSize(max(batch, h), max(h, batch)));
  EXPECT_TRUE((h - h).is(0));
  EXPECT_FALSE(sameSize(h, batch));
  EXPECT_TRUE((h + ShapedType::kDynamic).isUnknown());
  EXPECT_TRUE(floorDiv(h, batch).isUnknown()); // batch may be 0
  EXPECT_TRUE((h * INT64_MAX + h).isUnknown());
  EXPECT_TRUE(Dim::symbol(&context, "fixed", 3, 3, 3).is(3));
  EXPECT_EQ(divisorOf(32 * h + 8), 8);
  EXPECT_EQ(likelyOf(batch * h), 160);
  EXPECT_EQ(toText(32 * h * batch - 1 + floorDiv(h, 3)), "32*batch*h + floordiv(h, 3) - 1");
  Dim quotient = Dim::symbol(&context, "x.2/32", 1, 40, 40), other = Dim::symbol(&context, "n3/8", 1, 4, 4);
  EXPECT_EQ(toText(32 * quotient), "x.2");
  EXPECT_EQ(toText(1 - 8 * quotient), "-x.2/4 + 1");
  EXPECT_EQ(toText(48 * quotient), "3*x.2/2");
  EXPECT_EQ(toText(8 * other * quotient), "n3*x.2/32");
}

int64_t evaluate(ArrayRef<SizeStep> steps, ArrayRef<int64_t> values) {
  std::vector<int64_t> stack;
  for (const SizeStep &step : steps) {
    if (step.kind == SizeStep::Number || step.kind == SizeStep::Symbol) {
      StringRef name = step.symbol ? step.symbol.getName() : "";
      stack.push_back(name.empty() ? step.number : values[name == "batch" ? 0 : name == "h" ? 1 : 2]);
      continue;
    }
    int64_t b = stack.back();
    stack.pop_back();
    int64_t &a = stack.back();
    a = step.kind == SizeStep::Add        ? a + b
        : step.kind == SizeStep::Multiply ? a * b
        : step.kind == SizeStep::FloorDiv ? llvm::divideFloorSigned(a, b)
        : step.kind == SizeStep::Min      ? std::min(a, b)
                                          : std::max(a, b);
  }
  return stack.back();
}

TEST_F(Algebra, RandomExpressionsKeepTheirValues) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const std::vector<int64_t> values = {int64_t(random() % 9), int64_t(1 + random() % 40), int64_t(3 + random() % 5)};
    std::vector<Dim> sizes = symbols;
    std::vector<int64_t> expected = values;
    for (int step = 0; step < 6; ++step) {
      size_t x = random() % sizes.size(), y = random() % sizes.size();
      bool takesNumber = random() % 2;
      int64_t number = int64_t(random() % 9) - 2, b = takesNumber ? number : expected[y], a = expected[x];
      Dim left = sizes[x], right = takesNumber ? Dim(number) : sizes[y], result = 0;
      int64_t value = 0;
      unsigned function = random() % 7;
      switch (function) {
      case 0:
        result = left + right, value = a + b;
        break;
      case 1:
        result = left - right, value = a - b;
        break;
      case 2:
        result = left * right, value = a * b;
        break;
      case 3:
        result = min(left, right), value = std::min(a, b);
        break;
      case 4:
        result = max(left, right), value = std::max(a, b);
        break;
      case 5:
        result = floorDiv(left, right), value = b ? llvm::divideFloorSigned(a, b) : 0;
        break;
      case 6:
        result = mod(left, right), value = b ? a - b * llvm::divideFloorSigned(a, b) : 0;
        break;
      }
      if (result.isUnknown() || std::abs(value) > 1000000) {
        continue;
      }
      if (b == 0 && function >= 5) {
        continue; // a division by zero has no value, although the quotient of two polynomials may be one
      }
      SizeRange range = rangeOf(result);
      ASSERT_TRUE(at(result, values).is(value))
          << toText(result) << " at " << values[0] << " " << values[1] << " " << values[2] << " is not " << value;
      ASSERT_TRUE(range.min <= value && value <= range.max) << toText(result);
      ASSERT_TRUE(divisorOf(result) == 0 ? value == 0 : value % divisorOf(result) == 0) << toText(result);
      ASSERT_EQ(evaluate(toPostfix(result), values), value) << toText(result);
      sizes.push_back(result), expected.push_back(value);
    }
    if (RankedTensorType type = typeOf(sizes.back()); !Shape(type).isKnown()) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      ASSERT_EQ(parseType(text, &context), type) << text;
    }
  }
}

TEST_F(Algebra, BoundsDoNotDependOnHowAProductIsWritten) {
  Dim h = floorDiv(symbols[1] + 1, 2), w = symbols[2]; // 1..20 and 3..7
  SizeRange expanded = rangeOf(h * w * 5 - h * 5);
  EXPECT_EQ(expanded.min, 1 * (3 - 1) * 5);
  EXPECT_EQ(expanded.max, 20 * (7 - 1) * 5);
  EXPECT_EQ(minOf(w * w - w * 2), 3);
  EXPECT_EQ(maxOf(h * 8 - h * w), 100); // falls in w
  // It neither rises nor falls in w.
  EXPECT_LE(minOf(w * 10 - w * w), 21);
  EXPECT_GE(maxOf(w * 10 - w * w), 25);
}

TEST_F(Algebra, SlicesOfOpenDimsStayWithinThem) {
  using top::detail::isAtMost;
  Dim h = symbols[1], start = min(h, 8);
  // x[8:10], whose start and end a dim may stay below.
  EXPECT_TRUE(isAtMost(start + max(min(h, 10) - start, 0), h));
  EXPECT_FALSE(isAtMost(start + max(min(h, 10) - start, 0) + 1, h));
  for (int64_t step : {2, 3, 7}) { // x[::step] and x[::-step]
    Dim last = (ceilDiv(h, step) - 1) * step;
    EXPECT_TRUE(isAtMost(last + 1, h) && isAtMost(0, h - 1 - last)) << step;
    EXPECT_FALSE(isAtMost(last + 2, h) || isAtMost(last + step, h)) << step;
  }
  EXPECT_TRUE(isAtMost(floorDiv(h, 2) * 2, h) && isAtMost(h, floorDiv(h, 2) * 2 + 1));
  EXPECT_FALSE(isAtMost(h, floorDiv(h, 2) * 2));
  EXPECT_FALSE(isAtMost(max(h, 8), h) || isAtMost(h, start) || isAtMost(Dim(0), Dim(kUnknown)));
}

TEST_F(Algebra, TypesHoldSizes) {
  Type f32 = Float32Type::get(&context);
  Dim h = symbols[1];
  RankedTensorType type = tensorType({symbols[0], 3, 2 * h}, f32);
  EXPECT_TRUE(Shape(type).isDetermined() && !Shape(type).isKnown());
  EXPECT_TRUE(sameSize(Shape(type).back(), h + h));
  EXPECT_TRUE(sameSize(countElements(type), 6 * h * symbols[0]));
  EXPECT_TRUE(sameSizes(Shape(type).dropFront(2), tensorType({h * 2}, f32)));
  EXPECT_FALSE(sameSizes(type, tensorType({symbols[0], 3, h}, f32)));
  EXPECT_EQ(tensorType({2, 3}, f32), RankedTensorType::get({2, 3}, f32));
  EXPECT_EQ(tensorType({kUnknown}, f32), RankedTensorType::get({kUnknown}, f32));
  EXPECT_EQ(substitute(type, [](auto) { return Dim(5); }), RankedTensorType::get({5, 3, 10}, f32));
}

TEST_F(Algebra, TextThatNoTypeHasIsRejected) {
  context.getDiagEngine().registerHandler([](Diagnostic &) {});
  for (const char *text :
       {"tensor<?xf32, #top.dims<[batch[1:8], 3]>>", "tensor<3xf32, #top.dims<[batch[1:8]]>>",
        "tensor<?xf32, #top.dims<[4]>>", "tensor<?xf32, #top.dims<[?]>>", "tensor<?xf32, #top.dims<[b[8:1]]>>",
        "tensor<?xf32, #top.dims<[b[-1:8]]>>", "tensor<?xf32, #top.dims<[b[1:8:9]]>>",
        "tensor<?xf32, #top.dims<[b[1:8] +]>>", "tensor<?xf32, #top.dims<[floordiv(b[0:8])]>>",
        "tensor<?xf32, #top.dims<[9223372036854775807*b[1:8] + b[1:8]]>>"}) {
    EXPECT_FALSE(parseType(text, &context)) << text;
  }
}

} // namespace
} // namespace tessera
