//===- FoldSpaceToDepth.cpp - Folding space-to-depth into kernels ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstring>
#include <set>

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_FOLDSPACETODEPTHPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

/// Largest window and stride that a command's field or a kernel's table can hold.
constexpr int64_t kLargest = 255;

/// Origin of a channel of the copy's result: a channel of its source and a pixel of each block.
struct Origin {
  int64_t channel, row, column;
  bool operator<(const Origin &other) const {
    return std::tie(channel, row, column) < std::tie(other.channel, other.row, other.column);
  }
};

/// A copy that turns each block of pixels of an image into channels.
struct SpaceToDepth {
  int64_t rows = 0, columns = 0; ///< per block
  std::vector<Origin> origins;   ///< of each channel

  /// Adds what |piece| copies from dims |from| to |to|, both N, C, H, W; returns false if it is not part of a
  /// space-to-depth copy.
  bool add(const Piece &piece, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
    bool isInOrder = llvm::all_of(llvm::seq<size_t>(0, 4), [&](size_t d) {
      return (piece.srcDims[d] == int64_t(d) || piece.sizes[d] == 1) && piece.dstSteps[d] == 1 &&
             (d == 1 || (piece.sizes[d] == to[d] && piece.dstOffsets[d] == 0));
    });
    auto stepOf = [&](size_t d) { return piece.sizes[d] == 1 ? from[d] : piece.srcSteps[d]; };
    if (!isInOrder || piece.srcOffsets[0] != 0 || (piece.sizes[0] > 1 && piece.srcSteps[0] != 1)) {
      return false;
    }
    if (!rows) {
      rows = stepOf(2), columns = stepOf(3);
    }
    bool isOfBlocks = stepOf(2) == rows && stepOf(3) == columns && rows * to[2] == from[2] &&
                      columns * to[3] == from[3] && piece.srcOffsets[2] < rows && piece.srcOffsets[3] < columns;
    for (int64_t c = 0; isOfBlocks && c < piece.sizes[1]; ++c) {
      int64_t channel = piece.srcOffsets[1] + c * (piece.sizes[1] == 1 ? 0 : piece.srcSteps[1]);
      origins[size_t(piece.dstOffsets[1] + c)] = {channel, piece.srcOffsets[2], piece.srcOffsets[3]};
    }
    return isOfBlocks;
  }
};

/// Matches a copy that moves each element of its one source exactly once; returns nothing for other copies.
std::optional<SpaceToDepth> spaceToDepthOf(CopyOp copy) {
  RankedTensorType from = typeOf(copy.getSources()[0]), to = typeOf(copy.getY());
  if (copy.getSources().size() != 1 || copy.getFill() || from.getRank() != 4 || to.getRank() != 4 || isBlocked(from) ||
      isBlocked(to) || !Shape(from).isKnown() || !Shape(to).isKnown() || from.getNumElements() != to.getNumElements()) {
    return std::nullopt;
  }
  SpaceToDepth result;
  result.origins.assign(size_t(to.getDimSize(1)), {-1, 0, 0});
  for (auto attr : copy.getPieces().getAsRange<PieceAttr>()) {
    if (!result.add(Piece(attr), from.getShape(), to.getShape())) {
      return std::nullopt;
    }
  }
  std::set<Origin> all(result.origins.begin(), result.origins.end());
  bool isOneToOne = all.size() == result.origins.size() && all.begin()->channel >= 0;
  return isOneToOne && result.rows * result.columns > 1 ? std::optional(std::move(result)) : std::nullopt;
}

/// Returns the weights of the larger kernel: tap (ky * rows + row, kx * columns + column) of a channel comes from the
/// channel that held this pixel.
Value weightsOf(ConvOp conv, const SpaceToDepth &blocks, OpBuilder &builder) {
  top::TensorData data = *top::getConstantData(getConstantRoot(conv.getW()));
  RankedTensorType type = typeOf(conv.getW());
  int64_t outputs = type.getDimSize(0), channels = type.getDimSize(1), height = type.getDimSize(2);
  int64_t width = type.getDimSize(3), size = type.getElementTypeBitWidth() / 8;
  int64_t dims[] = {outputs, channels / (blocks.rows * blocks.columns), height * blocks.rows, width * blocks.columns};
  std::vector<char> bytes(data.bytes.size());
  const char *from = data.bytes.data();
  for (int64_t o = 0; o < outputs; ++o) {
    for (const Origin &origin : blocks.origins) {
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x, from += size) {
          int64_t row = (o * dims[1] + origin.channel) * dims[2] + y * blocks.rows + origin.row;
          std::memcpy(&bytes[size_t((row * dims[3] + x * blocks.columns + origin.column) * size)], from, size_t(size));
        }
      }
    }
  }
  auto wide = RankedTensorType::get(dims, type.getElementType());
  return top::createConstant(builder, conv.getLoc(), wide, std::move(bytes), "pixels");
}

/// Returns true for integer convolutions that can be folded; float sums have an order that folding would change.
bool canWiden(ConvOp conv) {
  RankedTensorType w = typeOf(conv.getW());
  auto isOne = [](int64_t each) { return each == 1; };
  return w.getRank() == 4 && conv.getGroups() == 1 && !conv.getScales() && !conv.getPacking() &&
         w.getElementType().isInteger() && typeOf(conv.getX()).getElementType().isInteger() &&
         getConstantRoot(conv.getW()) && llvm::all_of(conv.getDilations(), isOne);
}

struct FoldSpaceToDepthPass : impl::FoldSpaceToDepthPassBase<FoldSpaceToDepthPass> {
  void runOnOperation() override {
    for (ConvOp conv : llvm::to_vector(getOperation().getBody().getOps<ConvOp>())) {
      auto copy = conv.getX().getDefiningOp<CopyOp>();
      if (copy && copy->hasOneUse() && canWiden(conv)) {
        fold(conv, copy);
      }
    }
  }

private:
  void fold(ConvOp conv, CopyOp copy) {
    std::optional<SpaceToDepth> blocks = spaceToDepthOf(copy);
    if (!blocks) {
      return;
    }
    const int64_t factors[] = {blocks->rows, blocks->columns};
    SmallVector<int64_t> strides, pads(conv.getPads());
    for (unsigned axis = 0; axis < 2; ++axis) {
      strides.push_back(conv.getStrides()[axis] * factors[axis]);
      pads[axis] *= factors[axis], pads[axis + 2] *= factors[axis];
      if (std::max(strides[axis], typeOf(conv.getW()).getDimSize(2 + axis) * factors[axis]) > kLargest) {
        return;
      }
    }
    OpBuilder builder(conv);
    conv.getWMutable().assign(weightsOf(conv, *blocks, builder));
    conv.getXMutable().assign(copy.getSources()[0]);
    conv.setStrides(strides), conv.setPads(pads);
    top::copyNames({copy, conv}, conv);
    copy.erase();
    ++numFolded;
  }
};

} // namespace
} // namespace tessera::device
