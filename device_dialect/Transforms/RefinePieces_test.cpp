//===- RefinePieces_test.cpp - Refined pieces move the same elements ------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/RefinePieces.h"

#include "device_dialect/Transforms/ComposePieces.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace mlir;
using namespace tessera::device;

namespace {

class RefinePieces : public testing::Test {
protected:
  RefinePieces() { context.loadDialect<DeviceDialect>(); }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  /// Rotates each dim by some positions; occasionally leaves out a region.
  std::vector<Piece> shift(ArrayRef<int64_t> dims) {
    std::vector<Piece> pieces = {Piece::identity(0, dims)};
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t by = pick(0, 2) ? pick(0, dims[d] - 1) : 0;
      std::vector<Piece> made;
      for (const Piece &piece : pieces) {
        for (auto [from, to, size] :
             {std::tuple(int64_t(0), by, dims[d] - by), std::tuple(dims[d] - by, int64_t(0), by)}) {
          Piece part = piece;
          part.sizes[d] = size, part.srcOffsets[d] = from, part.dstOffsets[d] = to;
          if (size > 0 && pick(0, 19)) {
            made.push_back(part);
          }
        }
      }
      pieces = std::move(made);
    }
    return pieces;
  }

  /// Returns a transposition with a random order of dims.
  Piece transpose(ArrayRef<int64_t> dims, Dims &to) {
    Piece piece = Piece::identity(0, dims);
    std::shuffle(piece.srcDims.begin(), piece.srcDims.end(), random);
    to.clear();
    for (auto [size, dim] : llvm::zip_equal(piece.sizes, piece.srcDims)) {
      size = dims[size_t(dim)], to.push_back(size);
    }
    return piece;
  }

  /// Merges some neighbouring |dims| and inserts some dims of 1.
  Dims join(ArrayRef<int64_t> dims) {
    Dims made;
    for (int64_t dim : dims) {
      if (!made.empty() && pick(0, 1)) {
        made.back() *= dim;
      } else {
        made.append(size_t(pick(0, 3) == 0), 1);
        made.push_back(dim);
      }
    }
    return made;
  }

  std::vector<int32_t> move(ArrayRef<Piece> pieces, const std::vector<int32_t> &source, ArrayRef<int64_t> from,
                            ArrayRef<int64_t> to) {
    std::vector<int32_t> result(size_t(ShapedType::getNumElements(to)), -1);
    for (const Piece &piece : pieces) {
      movePiece(piece.get(&context), reinterpret_cast<const char *>(source.data()), from,
                reinterpret_cast<char *>(result.data()), to, 4);
    }
    return result;
  }

  MLIRContext context;
  std::mt19937 random{11};
};

/// Composes windows of shifted images, and shifted-back images of windows, into one copy each.
TEST_F(RefinePieces, RandomShiftsAndWindows) {
  int joined = 0;
  for (int round = 0; round < 3000; ++round) {
    Dims fine;
    for (int64_t d = pick(2, 5); d > 0; --d) {
      fine.push_back(pick(1, 5));
    }
    std::vector<int32_t> source(size_t(ShapedType::getNumElements(fine)));
    std::iota(source.begin(), source.end(), 0);
    bool isShiftedFirst = pick(0, 1);
    Dims x = isShiftedFirst ? join(fine) : fine, middle = x, read, y;
    std::vector<Piece> inner, outer;
    if (isShiftedFirst) {
      inner = shift(x), read = fine, outer = {transpose(read, y)};
    } else {
      inner = {transpose(x, middle)}, read = join(middle), outer = shift(read), y = read;
    }
    std::optional<Dims> common = commonDims(middle, read);
    ASSERT_TRUE(common);
    std::optional<std::vector<Piece>> written = writeRefined(inner, middle, *common);
    ASSERT_TRUE(written);
    ASSERT_EQ(move(*written, source, x, *common), move(inner, source, x, middle)) << "round " << round;
    std::optional<RefinedCopy> refined = readRefined(outer, read, y, *common);
    if (!refined) {
      continue; // a dim of the result is not a multiple
    }
    std::vector<int32_t> between = move(inner, source, x, middle), expected = move(outer, between, read, y);
    ASSERT_EQ(move(refined->pieces, between, *common, refined->resultDims), expected) << "round " << round;
    std::vector<Piece> all;
    for (const Piece &piece : refined->pieces) {
      std::optional<std::vector<Piece>> parts = composePieces(piece, *written);
      ASSERT_TRUE(parts);
      all.insert(all.end(), parts->begin(), parts->end());
    }
    // Elements that the inner copy left out are not written by the composed copy either.
    ASSERT_EQ(move(all, source, x, refined->resultDims), expected) << "round " << round;
    ++joined;
  }
  EXPECT_GT(joined, 2500);
}

TEST_F(RefinePieces, DimsThatDoNotMeet) {
  EXPECT_EQ(commonDims({56, 56, 96}, {1, 8, 7, 8, 7, 96}), Dims({8, 7, 8, 7, 96}));
  EXPECT_EQ(commonDims({6, 4}, {3, 8}), Dims({3, 2, 4}));
  EXPECT_FALSE(commonDims({6, 4}, {4, 6}));
  EXPECT_FALSE(commonDims({6, 4}, {6, 2}));
  Piece back = Piece::identity(0, {6});
  back.srcSteps = {-1}, back.srcOffsets = {5};
  EXPECT_FALSE(readRefined({back}, {6}, {6}, {2, 3}));
  Piece spread = Piece::identity(0, {3});
  spread.dstSteps = {2};
  EXPECT_FALSE(writeRefined({spread}, {6}, {2, 3}));
  EXPECT_FALSE(readRefined({Piece::identity(0, {4})}, {6}, {4}, {2, 3})) << "4 is not a multiple of 3";
}

} // namespace
