//===- ComposePieces_test.cpp - Composed pieces move the same elements ----===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/ComposePieces.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace mlir;
using namespace tessera::device;

namespace {

using Dims = SmallVector<int64_t>;

class ComposePieces : public testing::Test {
protected:
  ComposePieces() { context.loadDialect<DeviceDialect>(); }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  /// Returns a random permutation, slice, broadcast, reversal or spread of a source of dims |from|; sets |to| to the
  /// result's dims.
  Piece randomPiece(ArrayRef<int64_t> from, Dims &to) {
    Piece piece;
    Dims order(from.size());
    std::iota(order.begin(), order.end(), 0);
    if (pick(0, 1)) {
      std::shuffle(order.begin(), order.end(), random);
    }
    piece.srcOffsets.assign(from.size(), 0);
    to.clear();
    for (int64_t s : order) {
      if (pick(0, 5) == 0) { // one position of a source dim, broadcast
        piece.srcOffsets[s] = pick(0, from[s] - 1);
        piece.srcDims.push_back(-1), piece.srcSteps.push_back(1), piece.sizes.push_back(pick(1, 3));
      } else {
        int64_t step = pick(1, 2), size = pick(1, (from[s] - 1) / step + 1);
        int64_t first = pick(0, from[s] - 1 - (size - 1) * step);
        bool back = pick(0, 3) == 0;
        piece.srcOffsets[s] = back ? first + (size - 1) * step : first;
        piece.srcDims.push_back(s), piece.srcSteps.push_back(back ? -step : step), piece.sizes.push_back(size);
      }
      int64_t spread = pick(0, 4) == 0 ? 2 : 1, before = pick(0, 3) == 0 ? pick(1, 2) : 0, after = pick(0, 1);
      piece.dstSteps.push_back(spread), piece.dstOffsets.push_back(before);
      to.push_back(before + (piece.sizes.back() - 1) * spread + 1 + after);
    }
    return piece;
  }

  std::vector<int32_t> move(ArrayRef<Piece> pieces, const std::vector<int32_t> &source, ArrayRef<int64_t> from,
                            ArrayRef<int64_t> to) {
    std::vector<int32_t> result(ShapedType::getNumElements(to), -1);
    for (const Piece &piece : pieces) {
      movePiece(piece.get(&context), reinterpret_cast<const char *>(source.data()), from,
                reinterpret_cast<char *>(result.data()), to, 4);
    }
    return result;
  }

  MLIRContext context;
  std::mt19937 random{7};
};

TEST_F(ComposePieces, RandomChains) {
  int composed = 0;
  for (int round = 0; round < 3000; ++round) {
    Dims x, middle, y;
    for (int64_t d = pick(1, 4); d > 0; --d) {
      x.push_back(pick(1, 5));
    }
    std::vector<int32_t> source(ShapedType::getNumElements(x));
    std::iota(source.begin(), source.end(), 0);
    Piece inner = randomPiece(x, middle), outer = randomPiece(middle, y);
    std::optional<std::vector<Piece>> parts = composePieces(outer, inner);
    if (!parts) {
      continue;
    }
    composed += !parts->empty();
    std::vector<int32_t> expected = move(outer, move(inner, source, x, middle), middle, y);
    ASSERT_EQ(move(*parts, source, x, y), expected) << "round " << round;
  }
  EXPECT_GT(composed, 1000);
}

TEST_F(ComposePieces, SliceAcrossConcatenation) {
  // A slice of rows 2..4 of two concatenated tensors of 3 rows each.
  Piece first = Piece::identity(0, {3, 4}), second = Piece::identity(1, {3, 4}), slice = Piece::identity(0, {3, 4});
  second.dstOffsets[0] = 3;
  slice.srcOffsets[0] = 2;
  std::optional<std::vector<Piece>> parts = composePieces(slice, {first, second});
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].sizes, Dims({1, 4}));
  EXPECT_EQ((*parts)[0].srcOffsets, Dims({2, 0}));
  EXPECT_EQ((*parts)[1].sizes, Dims({2, 4}));
  EXPECT_EQ((*parts)[1].source, 1);
  EXPECT_EQ((*parts)[1].dstOffsets, Dims({1, 0}));
}

TEST_F(ComposePieces, SymbolicDimsMeetAsAWhole) {
  context.loadDialect<tessera::top::TopDialect>();
  tessera::Dim n = tessera::Dim::symbol(&context, "n", 1, 9, 9);
  auto inner = SymbolicPiece::identity(0, {n, 8}), outer = SymbolicPiece::identity(0, {n, 2});
  inner.srcOffsets[1] = 3, inner.srcSteps[1] = 2, outer.srcOffsets[1] = 4;
  auto parts = composePieces(outer, inner);
  ASSERT_TRUE(parts && parts->size() == 1);
  EXPECT_TRUE(sameSize((*parts)[0].sizes[0], n) && (*parts)[0].sizes[1].is(2));
  EXPECT_TRUE((*parts)[0].srcOffsets[0].is(0) && (*parts)[0].srcOffsets[1].is(11));
  EXPECT_EQ((*parts)[0].srcSteps, Dims({1, 2}));
  outer.sizes[0] = n - 1;
  EXPECT_FALSE(composePieces(outer, inner));
  outer.sizes[0] = n, outer.srcOffsets[0] = 1;
  EXPECT_FALSE(composePieces(outer, inner));
}

TEST_F(ComposePieces, DiagonalIsNoPiece) {
  Piece inner = Piece::identity(0, {3}), diagonal = Piece::identity(0, {3, 3});
  diagonal.srcDims = {0, 0};
  diagonal.srcOffsets = {0};
  diagonal.sizes = {2, 2};
  EXPECT_FALSE(composePieces(diagonal, inner));
}

TEST_F(ComposePieces, DimsOfOne) {
  auto piece = SymbolicPiece::identity(0, {2, 3});
  Dims from = {2, 3};
  std::optional<SymbolicPiece> moved = readUnderDims(piece, from, Dims{1, 2, 1, 3});
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->srcDims, Dims({1, 3}));
  EXPECT_EQ(moved->srcOffsets.size(), 4u);
  EXPECT_FALSE(readUnderDims(piece, from, Dims{3, 2}));
  EXPECT_FALSE(readUnderDims(piece, from, Dims{6}));
}

} // namespace
