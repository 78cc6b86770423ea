//===- CopyNests.cpp - Regions of a copy as loop nests --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/CopyNests.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include <array>

using namespace mlir;

namespace tessera::kernels {
namespace {

/// A rectangle of logical indices: [low, high) in each dim.
struct Box {
  SmallVector<int64_t> low, high;
};

/// Appends the parts of |box| outside |hole| to |parts|, as disjoint boxes.
void subtract(const Box &box, const Box &hole, SmallVectorImpl<Box> &parts) {
  for (size_t d = 0; d < box.low.size(); ++d) {
    if (hole.high[d] <= box.low[d] || hole.low[d] >= box.high[d]) {
      parts.push_back(box);
      return;
    }
  }
  Box rest = box;
  for (size_t d = 0; d < box.low.size(); ++d) {
    if (rest.low[d] < hole.low[d]) {
      Box part = rest;
      part.high[d] = hole.low[d];
      parts.push_back(part);
      rest.low[d] = hole.low[d];
    }
    if (rest.high[d] > hole.high[d]) {
      Box part = rest;
      part.low[d] = hole.high[d];
      parts.push_back(part);
      rest.high[d] = hole.high[d];
    }
  }
}

/// One tensor's side of a region: strides per region dim, and the channel geometry.
struct Side {
  SmallVector<int64_t> strides; ///< in elements, per dim of the region; from block to block for a blocked channel dim
  int64_t base = 0;
  int64_t block = 0; ///< block size of the layout if the channel dim takes part, otherwise 0
};

/// Returns the result's side, or nothing if the region does not consist of whole blocks.
std::optional<Side> resultSide(RankedTensorType y, const device::Piece &piece) {
  Strides layout(y);
  Side side;
  side.block = layout.block;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    if (layout.block && d == 1) {
      int64_t end = piece.dstOffsets[d] + piece.sizes[d];
      if (piece.dstSteps[d] != 1 || piece.dstOffsets[d] % layout.block ||
          (end % layout.block && end != Shape(y)[1].value())) {
        return std::nullopt;
      }
      side.strides.push_back(layout.dims[d]);
      side.base += piece.dstOffsets[d] / layout.block * layout.dims[d];
    } else {
      side.strides.push_back(piece.dstSteps[d] * layout.dims[d]);
      side.base += piece.dstOffsets[d] * layout.dims[d];
    }
  }
  return side;
}

/// Returns the source's side and sets |channel| to the region dim that iterates its channels in whole blocks (or -1).
std::optional<Side> sourceSide(RankedTensorType x, const device::Piece &piece, int64_t &channel) {
  Strides layout(x);
  Side side;
  channel = -1;
  for (auto [s, offset] : llvm::enumerate(piece.srcOffsets)) {
    bool isChannel = layout.block && s == 1;
    side.base += isChannel ? offset / layout.block * layout.dims[s] + offset % layout.block : offset * layout.dims[s];
  }
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    int64_t s = piece.srcDims[d];
    if (s < 0) {
      side.strides.push_back(0);
    } else if (layout.block && s == 1) {
      if (piece.sizes[d] == 1) {
        side.strides.push_back(0);
        continue;
      }
      if (piece.srcSteps[d] != 1 || piece.srcOffsets[1] % layout.block || channel >= 0) {
        return std::nullopt;
      }
      channel = d;
      side.block = layout.block;
      side.strides.push_back(layout.dims[1]);
    } else {
      side.strides.push_back(piece.srcSteps[d] * layout.dims[s]);
    }
  }
  return side;
}

/// Adds the loop nests over |sizes| for |sides| (the written side last): one for whole blocks and one for a partly
/// filled last block. Dim |channel|, if it is not -1, iterates by blocks.
void addNests(int64_t source, ArrayRef<int64_t> sizes, ArrayRef<Side> sides, int64_t channel, int64_t block,
              bool resultBlocked, SmallVectorImpl<CopyNest> &nests) {
  auto dim = [&](int64_t size, auto stride) {
    NestDim result{size, {}};
    for (const Side &side : sides) {
      result.strides.push_back(stride(side));
    }
    return result;
  };
  auto add = [&](int64_t firstBlock, int64_t blocks, int64_t lanes) {
    LoopNest nest;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (int64_t(d) != channel) {
        nest.dims.push_back(dim(sizes[d], [&](const Side &side) { return side.strides[d]; }));
        continue;
      }
      auto blockStride = [&](const Side &side) { return side.block ? side.strides[d] : side.strides[d] * block; };
      nest.dims.push_back(dim(blocks, blockStride));
      if (!resultBlocked) {
        nest.dims.push_back(dim(lanes, [&](const Side &side) { return side.block ? 1 : side.strides[d]; }));
      }
    }
    if (channel >= 0 && resultBlocked) {
      nest.dims.push_back(dim(lanes, [&](const Side &side) { return side.block ? 1 : side.strides[channel]; }));
      nest.paddedLanes = lanes < block ? block : 0;
    }
    for (const Side &side : sides) {
      int64_t stride = channel < 0 ? 0 : side.block ? side.strides[channel] : side.strides[channel] * block;
      nest.bases.push_back(side.base + firstBlock * stride);
    }
    nest.simplify();
    nests.push_back({source, nest});
  };
  if (channel < 0) {
    return add(0, 1, 1);
  }
  if (int64_t whole = sizes[channel] / block) {
    add(0, whole, block);
  }
  if (int64_t rest = sizes[channel] % block) {
    add(sizes[channel] / block, 1, rest);
  }
}

/// One tensor's side of a region whose channels need not start or end at block boundaries.
struct CutSide {
  SmallVector<int64_t> strides; ///< in elements, per dim of the region; for the channel dim from block to block, or per
                                ///< channel
  int64_t base = 0;             ///< offset of the region's first element, without the channel of a blocked tensor
  int64_t block = 0;            ///< block size of the layout if |channel| iterates the channels of a blocked tensor,
                                ///< otherwise 0
  int64_t channelOffset = 0;    ///< first channel, if |block| is not 0

  int64_t lane(int64_t c) const { return block ? (channelOffset + c) % block : 0; }
  /// Returns the number of channels from |c| to the end of its block, at most |most|.
  int64_t room(int64_t c, int64_t most) const { return block ? std::min(most, block - lane(c)) : most; }
  int64_t baseOf(int64_t c, int64_t channel) const {
    return base + (block ? (channelOffset + c) / block * strides[channel] + lane(c) : c * strides[channel]);
  }
};

std::optional<CutSide> cutResult(RankedTensorType y, const device::Piece &piece) {
  Strides layout(y);
  CutSide side;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    bool channel = layout.block && d == 1;
    if (channel && piece.dstSteps[d] != 1) {
      return std::nullopt;
    }
    side.strides.push_back(channel ? layout.dims[d] : piece.dstSteps[d] * layout.dims[d]);
    side.base += channel ? 0 : piece.dstOffsets[d] * layout.dims[d];
  }
  side.block = layout.block;
  side.channelOffset = layout.block ? piece.dstOffsets[1] : 0;
  return side;
}

std::optional<CutSide> cutSource(RankedTensorType x, const device::Piece &piece, size_t channel) {
  Strides layout(x);
  CutSide side;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    int64_t s = piece.srcDims[d];
    bool walksChannels = layout.block && s == 1;
    if (walksChannels && piece.sizes[d] > 1) {
      if (d != channel || piece.srcSteps[d] != 1) {
        return std::nullopt;
      }
      side.block = layout.block;
      side.channelOffset = piece.srcOffsets[1];
    }
    side.strides.push_back(s < 0 ? 0 : walksChannels ? layout.dims[1] : piece.srcSteps[d] * layout.dims[s]);
  }
  for (auto [s, offset] : llvm::enumerate(piece.srcOffsets)) {
    bool isChannel = layout.block && s == 1;
    side.base += !isChannel   ? offset * layout.dims[s]
                 : side.block ? 0
                              : offset / layout.block * layout.dims[s] + offset % layout.block;
  }
  return side;
}

/// Returns the nest for |lanes| channels from each of |c|, |c| + block, ... (|blocks| of them).
LoopNest cutNest(ArrayRef<int64_t> sizes, ArrayRef<CutSide> sides, int64_t channel, int64_t block, int64_t c,
                 int64_t blocks, int64_t lanes) {
  LoopNest nest;
  NestDim lane{lanes, {}};
  for (const CutSide &side : sides) {
    lane.strides.push_back(side.block ? 1 : side.strides[channel]);
    nest.bases.push_back(side.baseOf(c, channel));
  }
  bool lanesLast = sides.back().block;
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d) {
    NestDim dim{d == channel ? blocks : sizes[d], {}};
    for (const CutSide &side : sides) {
      dim.strides.push_back(d == channel && !side.block ? side.strides[d] * block : side.strides[d]);
    }
    nest.dims.push_back(dim);
    if (d == channel && !lanesLast) {
      nest.dims.push_back(lane);
    }
  }
  if (lanesLast) {
    nest.dims.push_back(lane);
  }
  return nest;
}

/// Adds nests over parts of blocks for a region whose channels begin or end inside blocks or have a different offset
/// within the blocks of source and result.
bool addCutPiece(ArrayRef<RankedTensorType> sources, RankedTensorType y, const device::Piece &piece,
                 SmallVectorImpl<CopyNest> &nests) {
  std::optional<CutSide> to = cutResult(y, piece);
  int64_t channel = to && to->block ? 1 : -1;
  for (size_t d = 0; d < piece.sizes.size() && channel < 0; ++d) {
    channel = piece.source >= 0 && piece.srcDims[d] == 1 ? d : -1;
  }
  if (!to || channel < 0) {
    return false;
  }
  SmallVector<CutSide, 2> sides;
  if (piece.source >= 0) {
    std::optional<CutSide> from = cutSource(sources[piece.source], piece, channel);
    if (!from) {
      return false;
    }
    sides.push_back(*from);
  }
  sides.push_back(*to);
  int64_t block = std::max(sides.front().block, to->block), size = piece.sizes[channel];
  if (block == 0) {
    return false;
  }
  // Parts at the same position within their blocks share a nest: with a shift of 8 in blocks of 16, all first halves
  // form one nest and all second halves another.
  SmallVector<std::array<int64_t, 3>> runs; // first channel, blocks, lanes
  for (int64_t c = 0, lanes = 0; c < size; c += lanes) {
    lanes = to->room(c, sides.front().room(c, std::min(size - c, block)));
    bool padded = to->block && to->channelOffset + c + lanes == Shape(y)[1].value();
    auto *run = llvm::find_if(runs, [&](const auto &run) { return run[0] + run[1] * block == c && run[2] == lanes; });
    if (run != runs.end() && !padded) {
      ++(*run)[1];
    } else {
      runs.push_back({c, 1, lanes});
    }
  }
  for (auto [c, blocks, lanes] : runs) {
    LoopNest nest = cutNest(piece.sizes, sides, channel, block, c, blocks, lanes);
    int64_t free = to->block ? to->block - to->lane(c) : lanes;
    bool last = to->block && to->channelOffset + c + (blocks - 1) * block + lanes == Shape(y)[1].value();
    nest.paddedLanes = last && lanes < free ? free : 0;
    nest.simplify();
    nests.push_back({piece.source, nest});
  }
  return true;
}

bool addPiece(ArrayRef<RankedTensorType> sources, RankedTensorType y, const device::Piece &piece,
              SmallVectorImpl<CopyNest> &nests) {
  RankedTensorType x = sources[piece.source];
  int64_t channel;
  std::optional<Side> from = sourceSide(x, piece, channel), to = resultSide(y, piece);
  if (!from || !to) {
    return false;
  }
  if (to->block) {
    if (channel >= 0 && (channel != 1 || from->block != to->block)) {
      return false; // the source's channels become another dim of the result
    }
    channel = 1;
  }
  int64_t block = std::max(from->block, to->block);
  // A source dim that does not iterate channels must not be split into blocks.
  if (channel < 0) {
    block = 1;
  }
  addNests(piece.source, piece.sizes, {*from, *to}, channel, block, to->block != 0, nests);
  return true;
}

bool addFill(RankedTensorType y, ArrayRef<device::Piece> pieces, SmallVectorImpl<CopyNest> &nests) {
  SmallVector<Box> rest = {{SmallVector<int64_t>(y.getRank(), 0), llvm::to_vector(Shape(y).values())}};
  for (const device::Piece &piece : pieces) {
    Box hole{piece.dstOffsets, piece.dstOffsets};
    for (size_t d = 0; d < piece.sizes.size(); ++d) {
      if (piece.dstSteps[d] != 1 && piece.sizes[d] > 1) {
        return false;
      }
      hole.high[d] += piece.sizes[d];
    }
    SmallVector<Box> parts;
    for (const Box &box : rest) {
      subtract(box, hole, parts);
    }
    rest = std::move(parts);
    if (rest.size() > 64) { // for many small holes, filling slabs is cheaper than code for each hole
      return false;
    }
  }
  for (const Box &box : rest) {
    device::Piece fill;
    fill.dstOffsets = box.low;
    fill.dstSteps.assign(box.low.size(), 1);
    for (size_t d = 0; d < box.low.size(); ++d) {
      fill.sizes.push_back(box.high[d] - box.low[d]);
    }
    std::optional<Side> to = resultSide(y, fill);
    if (!to) {
      fill.source = -1;
      if (!addCutPiece({}, y, fill, nests)) {
        return false;
      }
      continue;
    }
    addNests(-1, fill.sizes, {*to}, to->block ? 1 : -1, std::max<int64_t>(to->block, 1), to->block != 0, nests);
  }
  return true;
}

} // namespace

std::optional<SmallVector<CopyNest>> copyNests(ArrayRef<RankedTensorType> sources, RankedTensorType result,
                                               ArrayRef<device::Piece> pieces, bool fill) {
  if (pieces.size() > 64) {
    return std::nullopt;
  }
  SmallVector<CopyNest> nests;
  for (const device::Piece &piece : pieces) {
    if (!addPiece(sources, result, piece, nests) && !addCutPiece(sources, result, piece, nests)) {
      return std::nullopt;
    }
  }
  if (fill && !addFill(result, pieces, nests)) {
    return std::nullopt;
  }
  return nests;
}

} // namespace tessera::kernels
