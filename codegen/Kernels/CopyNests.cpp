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
  SmallVector<Dim> low, high;
};

/// Returns true if |a| is known to be at most |b|.
bool isAtMost(Dim a, Dim b) { return minOf(b - a) >= 0; }

/// Appends the parts of |box| outside |hole| to |parts|, as disjoint boxes, some of which may be empty. Returns false
/// if it is not known how the boxes lie to each other.
bool subtract(const Box &box, const Box &hole, SmallVectorImpl<Box> &parts) {
  auto dims = llvm::seq<size_t>(0, box.low.size());
  if (llvm::any_of(
          dims, [&](size_t d) { return isAtMost(hole.high[d], box.low[d]) || isAtMost(box.high[d], hole.low[d]); })) {
    parts.push_back(box);
    return true;
  }
  Box rest = box;
  for (size_t d : dims) {
    bool cutsLow = !isAtMost(hole.low[d], box.low[d]), cutsHigh = !isAtMost(box.high[d], hole.high[d]);
    bool overlaps = isAtMost(hole.low[d], box.high[d]) && isAtMost(box.low[d], hole.high[d]);
    if (!overlaps || (cutsLow && !isAtMost(box.low[d], hole.low[d])) ||
        (cutsHigh && !isAtMost(hole.high[d], box.high[d]))) {
      return false;
    }
    if (cutsLow) {
      Box part = rest;
      part.high[d] = hole.low[d];
      parts.push_back(part);
      rest.low[d] = hole.low[d];
    }
    if (cutsHigh) {
      Box part = rest;
      part.low[d] = hole.high[d];
      parts.push_back(part);
      rest.high[d] = hole.high[d];
    }
  }
  return true;
}

/// One tensor's side of a region: strides per region dim, and the channel geometry.
struct Side {
  SmallVector<Dim> strides; ///< in elements, per dim of the region; from block to block for a blocked channel dim
  Dim base = 0;
  int64_t block = 0; ///< block size of the layout if the channel dim takes part, otherwise 0
};

/// Returns the result's side, or nothing if the region does not consist of whole blocks.
std::optional<Side> resultSide(RankedTensorType y, const device::SymbolicPiece &piece) {
  Strides layout(y);
  Side side;
  side.block = layout.block;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    if (layout.block && d == 1) {
      int64_t first = piece.dstOffsets[d].value(), end = first + piece.sizes[d].value();
      if (piece.dstSteps[d] != 1 || first % layout.block || (end % layout.block && end != Shape(y)[1].value())) {
        return std::nullopt;
      }
      side.strides.push_back(layout.dims[d]);
      side.base += first / layout.block * layout.dims[d];
    } else {
      side.strides.push_back(piece.dstSteps[d] * layout.dims[d]);
      side.base += piece.dstOffsets[d] * layout.dims[d];
    }
  }
  return side;
}

/// Returns the offset of |channel| in a blocked tensor.
Dim channelOffset(const Strides &layout, int64_t channel) {
  return channel / layout.block * layout.dims[1] + channel % layout.block;
}

/// Returns the source's side and sets |channel| to the region dim that iterates its channels in whole blocks (or -1).
std::optional<Side> sourceSide(RankedTensorType x, const device::SymbolicPiece &piece, int64_t &channel) {
  Strides layout(x);
  Side side;
  channel = -1;
  for (auto [s, offset] : llvm::enumerate(piece.srcOffsets)) {
    bool isChannel = layout.block && s == 1;
    side.base += isChannel ? channelOffset(layout, offset.value()) : offset * layout.dims[s];
  }
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    int64_t s = piece.srcDims[d];
    if (s < 0) {
      side.strides.push_back(0);
    } else if (layout.block && s == 1) {
      if (piece.sizes[d].is(1)) {
        side.strides.push_back(0);
        continue;
      }
      if (piece.srcSteps[d] != 1 || piece.srcOffsets[1].value() % layout.block || channel >= 0) {
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

/// Returns the sizes of |piece|, with the padding of the last channel block if the region reads and writes blocks up to
/// the end of both tensors: padding lanes are zero, so copying them takes one nest where real lanes take two.
SmallVector<Dim> sizesWithPadding(RankedTensorType x, RankedTensorType y, const device::SymbolicPiece &piece,
                                  int64_t block) {
  SmallVector<Dim> sizes = piece.sizes;
  if (sameSize(piece.srcOffsets[1] + sizes[1], Shape(x)[1]) && sameSize(piece.dstOffsets[1] + sizes[1], Shape(y)[1])) {
    sizes[1] = ceilDiv(sizes[1], block) * block;
  }
  return sizes;
}

/// Adds the loop nests over |sizes| for |sides| (the written side last): one for whole blocks and one for a partly
/// filled last block. Dim |channel|, if it is not -1, iterates by blocks.
void addNests(int64_t source, ArrayRef<Dim> sizes, ArrayRef<Side> sides, int64_t channel, int64_t block,
              bool resultBlocked, SmallVectorImpl<CopyNest> &nests) {
  auto dim = [&](Dim size, auto stride) {
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
        nest.dims.push_back(dim(lanes, [&](const Side &side) { return side.block ? Dim(1) : side.strides[d]; }));
      }
    }
    if (channel >= 0 && resultBlocked) {
      nest.dims.push_back(dim(lanes, [&](const Side &side) { return side.block ? Dim(1) : side.strides[channel]; }));
      nest.paddedLanes = lanes < block ? block : 0;
    }
    for (const Side &side : sides) {
      Dim stride = channel < 0 ? Dim(0) : side.block ? side.strides[channel] : side.strides[channel] * block;
      nest.bases.push_back(side.base + firstBlock * stride);
    }
    nest.simplify();
    nests.push_back({source, nest});
  };
  if (channel < 0) {
    return add(0, 1, 1);
  }
  int64_t channels = sizes[channel].value();
  if (int64_t whole = channels / block) {
    add(0, whole, block);
  }
  if (int64_t rest = channels % block) {
    add(channels / block, 1, rest);
  }
}

/// One tensor's side of a region whose channels need not start or end at block boundaries.
struct CutSide {
  SmallVector<Dim> strides;  ///< in elements, per dim of the region; for the channel dim from block to block, or per
                             ///< channel
  Dim base = 0;              ///< offset of the region's first element, without the channel of a blocked tensor
  int64_t block = 0;         ///< block size of the layout if |channel| iterates the channels of a blocked tensor,
                             ///< otherwise 0
  int64_t channelOffset = 0; ///< first channel, if |block| is not 0

  int64_t lane(int64_t c) const { return block ? (channelOffset + c) % block : 0; }
  /// Returns the number of channels from |c| to the end of its block, at most |most|.
  int64_t room(int64_t c, int64_t most) const { return block ? std::min(most, block - lane(c)) : most; }
  Dim baseOf(int64_t c, int64_t channel) const {
    return base + (block ? (channelOffset + c) / block * strides[channel] + lane(c) : c * strides[channel]);
  }
};

std::optional<CutSide> cutResult(RankedTensorType y, const device::SymbolicPiece &piece) {
  Strides layout(y);
  CutSide side;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    bool channel = layout.block && d == 1;
    if (channel && piece.dstSteps[d] != 1) {
      return std::nullopt;
    }
    side.strides.push_back(channel ? layout.dims[d] : piece.dstSteps[d] * layout.dims[d]);
    side.base += channel ? Dim(0) : piece.dstOffsets[d] * layout.dims[d];
  }
  side.block = layout.block;
  side.channelOffset = layout.block ? piece.dstOffsets[1].value() : 0;
  return side;
}

std::optional<CutSide> cutSource(RankedTensorType x, const device::SymbolicPiece &piece, size_t channel) {
  Strides layout(x);
  CutSide side;
  for (size_t d = 0; d < piece.sizes.size(); ++d) {
    int64_t s = piece.srcDims[d];
    bool walksChannels = layout.block && s == 1;
    if (walksChannels && maxOf(piece.sizes[d]) > 1) {
      if (d != channel || piece.srcSteps[d] != 1) {
        return std::nullopt;
      }
      side.block = layout.block;
      side.channelOffset = piece.srcOffsets[1].value();
    }
    side.strides.push_back(s < 0 ? Dim(0) : walksChannels ? layout.dims[1] : piece.srcSteps[d] * layout.dims[s]);
  }
  for (auto [s, offset] : llvm::enumerate(piece.srcOffsets)) {
    bool isChannel = layout.block && s == 1;
    side.base += !isChannel ? offset * layout.dims[s] : side.block ? Dim(0) : channelOffset(layout, offset.value());
  }
  return side;
}

/// Returns the nest for |lanes| channels from each of |c|, |c| + block, ... (|blocks| of them).
LoopNest cutNest(ArrayRef<Dim> sizes, ArrayRef<CutSide> sides, int64_t channel, int64_t block, int64_t c,
                 int64_t blocks, int64_t lanes) {
  LoopNest nest;
  NestDim lane{lanes, {}};
  for (const CutSide &side : sides) {
    lane.strides.push_back(side.block ? Dim(1) : side.strides[channel]);
    nest.bases.push_back(side.baseOf(c, channel));
  }
  bool lanesLast = sides.back().block;
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d) {
    NestDim dim{d == channel ? Dim(blocks) : sizes[d], {}};
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
bool addCutPiece(ArrayRef<RankedTensorType> sources, RankedTensorType y, const device::SymbolicPiece &piece,
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
  int64_t block = std::max(sides.front().block, to->block);
  if (block == 0) {
    return false;
  }
  int64_t size = piece.sizes[channel].value();
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

bool addPiece(ArrayRef<RankedTensorType> sources, RankedTensorType y, const device::SymbolicPiece &piece,
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
  bool movesBlocks = from->block && to->block;
  addNests(piece.source, movesBlocks ? sizesWithPadding(x, y, piece, block) : piece.sizes, {*from, *to}, channel, block,
           to->block != 0, nests);
  return true;
}

bool addFill(RankedTensorType y, ArrayRef<device::SymbolicPiece> pieces, SmallVectorImpl<CopyNest> &nests) {
  SmallVector<Box> rest = {{SmallVector<Dim>(y.getRank(), Dim(0)), Shape(y).dims()}};
  for (const device::SymbolicPiece &piece : pieces) {
    Box hole{piece.dstOffsets, piece.dstOffsets};
    for (size_t d = 0; d < piece.sizes.size(); ++d) {
      if (piece.dstSteps[d] != 1 && maxOf(piece.sizes[d]) > 1) {
        return false;
      }
      hole.high[d] += piece.sizes[d];
    }
    SmallVector<Box> parts;
    for (const Box &box : rest) {
      if (!subtract(box, hole, parts)) {
        return false;
      }
    }
    rest = std::move(parts);
    if (rest.size() > 64) { // for many small holes, filling slabs is cheaper than code for each hole
      return false;
    }
  }
  for (const Box &box : rest) {
    device::SymbolicPiece fill;
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
                                               ArrayRef<device::SymbolicPiece> pieces, bool fill) {
  if (pieces.size() > 64) {
    return std::nullopt;
  }
  SmallVector<CopyNest> nests;
  for (const device::SymbolicPiece &piece : pieces) {
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
